"""Tables of URDF, SDF, MJCF and USD: parameters of joints, entries that are not read, and the grammar of elements.

Each parameter of a joint, each warning and each error is one row of a table. Reading, writing, the error of a format that lacks the parameter, and
the documentation page docs/_made/formats.md are generated from the row. A row with the values CUSTOM is an entry that one number cannot represent:
the format's reader and writer have code for it. The grammar of an element is the text "attributes | children"; names in () have no effect on the
dynamics and are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from .._arrays import ArrayLike
from ..description.joints import BOUNDS, PASSIVE, JointType
from ..shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Sphere
from . import extensions
from .document import Element, Grammar, parse

# ---- rows and formats ------------------------------------------------------------------------------------------------

FREE, POSITIVE, BOUND, CUSTOM = "any number", "not negative", "no bound, if not positive", "read by the format's reader"
# shapes that are written to files if the format has a tag for them
VISIBLE, TOUCHING = (Box, Cylinder, Sphere, Mesh), (Box, Cylinder, Sphere, Mesh, Capsule)
NO_ROOM = "-0"  # lower limit of a joint whose limits are both zero: exporters of URDF write "0 0" for no limits
COUNTS = {"str": 0, "float": 1, "tuple[float, float, float]": 3}  # declared type of a field -> count of its numbers


@dataclass(frozen=True)
class Row:
    """Row of a format's table: a parameter of a joint in a file, or an entry that is not read.

    element : tags of the elements that contain the entry
    place : path in the element: "dynamics/@damping" is an attribute, "dynamics/damping" a text; empty: the element itself
    field : field of a joint type; "lower" and "upper" are the ends of its limits
    values : allowed values. BOUND: zero and negative values mean "no bound". CUSTOM: code of the format's reader reads the entry. For an entry that
        is not read, a list of words: the first word of an attribute triggers the message, and the last word is the default. In an element's text,
        each word of the list triggers the message
    default : value of a missing entry
    unit : units for a revolute and a prismatic joint
    needs : field of the joint that must be in the file, because the entry has no effect without it
    terms : largest count of numbers in the entry; the first number is read
    angle : True if the entry is in the file's unit of angles
    switch : setting of the file that disables the entry
    note, refusal : text of the warning or the error for an entry whose value is not `default`
    """

    element: str
    place: str
    field: str = ""
    values: str = FREE
    default: float = 0.0
    unit: str = ""
    needs: str = ""
    terms: int = 1
    term: int = 0
    angle: bool = False
    switch: str = ""
    note: str = ""
    refusal: str = ""

    @property
    def path(self) -> str:
        """Tags of the elements between the element and the entry, separated by "/"."""
        return self.place.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.place.rpartition("/")[2].lstrip("@")

    @property
    def in_attribute(self) -> bool:
        return "@" in self.place

    def read(self, part: Element) -> float | None:
        """Return the number of this row in an element; None if the element lacks it or the number means "no bound"."""
        if not self.in_attribute:
            child = part.child(self.name)
            if child is None:
                return None
            part = child
        name = self.name if self.in_attribute else None
        default, finite = self.default, self.values != BOUND and self.field not in ("lower", "upper")
        if self.terms > 1:
            numbers = part.several(self.name, self.terms, (default,))
            value = numbers[self.term] if self.term < len(numbers) else default
        else:
            value = part.number(name, default, finite=finite)
        if self.values == POSITIVE and value < 0.0:
            part.fail(f"has a negative {name}: {value:g}" if name else f"is negative: {value:g}")
        if self.values == BOUND and value <= 0.0:
            # a negative number means "unlimited" only in formats whose default is negative; in other formats, note it
            if value < 0.0 <= default and part.owner is not None:
                part.note(f"{part.owner} has a negative limit of {name}: read as unlimited")
            return None
        return value

    def applies_to(self, element: Element) -> bool:
        """Return True if the entry in the element differs from the default."""
        if not self.place:
            return self.values == FREE or element.content.strip().lower() in self.values.split()
        if self.values != FREE:
            words = self.values.split()
            return element.word(self.name, self.values, words[-1]) == words[0]
        return any(element.several(self.name, self.terms, (self.default,)))

    def is_default(self, value: Any) -> bool:
        """Return True if `value` has the same meaning as a missing entry."""
        if self.needs or self.values == CUSTOM or self.field in ("lower", "upper"):
            return False
        return bool(value == (np.inf if self.values == BOUND else self.default))


class Format:
    """File format: grammar of its elements, and its rows.

    joints : kind of a joint that the format has -> its name in the format
    shapes : class of a shape -> its tag in a <geometry> and the places of its fields, in order
    color : places of the colour in a visual
    """

    def __init__(
        self, name: str, elements: Mapping[str, str], rows: Sequence[Row], joints: Mapping[str, str],
        shapes: Mapping[type, str] | None = None, color: str = "",
    ) -> None:  # fmt: skip
        self.name, self.elements, self.rows, self.joints = name, elements, tuple(rows), joints
        self.shapes, self.color = {kind: places.split() for kind, places in (shapes or {}).items()}, color

    @property
    def grammar(self) -> Grammar:
        """Allowed attributes and children of each tag."""
        rules = {
            tag: [set(part.split()) for part in rule.replace("(", " ").replace(")", " ").split("|")]
            for tag, rule in self.elements.items()
        }
        for row in self.rows:
            for tag in row.element.split() if row.place else ():
                for step in filter(None, row.path.split("/")):
                    rules[tag][1].add(step)
                    rules.setdefault(tag := step, [set(), set()])
                rules[tag][0 if row.in_attribute else 1].add(row.name)
        return {tag: tuple(map(frozenset, parts)) for tag, parts in rules.items()}

    @property
    def numbers(self) -> list[Row]:
        """Rows of the parameters of joints."""
        return [row for row in self.rows if row.field]

    # ---- reading -----------------------------------------------------------------------------------------------------

    def parse(self, text: str | bytes, source: str) -> Element:
        """Return the root of a document, and warn about entries that are not read.

        Formats with inherited attributes (MJCF) are an exception: their reader calls :meth:`remark` for each element after inheritance.
        """
        root = parse(text, source, self.grammar)
        pending = [root] if any(row.note or row.refusal for row in self.rows) else []
        while pending:
            self.remark(element := pending.pop())
            pending += reversed(element.children)
        return root

    def read(self, owner: Element, *, angle: float = 1.0, off: Container[str] = ()) -> dict[str, float]:
        """Return the dict: field of a joint type -> value in an element. Fields whose `switch` is in `off` are zero."""
        parts: dict[str, Element | None] = {"": owner}
        values: dict[str, float] = {}
        for row in self.numbers:
            if row.values == CUSTOM:
                continue
            if row.path not in parts:
                parts[row.path] = owner.child(row.path)
            part = parts[row.path]
            value = None if part is None else row.read(part)
            if value is not None:
                values[row.field] = 0.0 if row.switch in off else value * (angle if row.angle else 1.0)
        return {
            row.field: values[row.field] for row in self.numbers if row.field in values and self._counts(row, values)
        }

    @staticmethod
    def _counts(row: Row, values: Mapping[str, Any]) -> bool:
        return not row.needs or any(values.get(name) for name in row.needs.split())

    def remark(self, element: Element) -> None:
        """Warn about entries of an element that are not read; raise ModelError if the model would be wrong without an entry."""
        for row in self.rows:
            if element.tag in row.element.split() and (row.note or row.refusal) and row.applies_to(element):
                if row.refusal:
                    element.fail(row.refusal)
                element.note(row.note.format(tag=element.tag))

    def shape(self, element: Element, kinds: Sequence[type], **folders: Any) -> Any:
        """Return the shape of an element in a <geometry>, of one of the given classes; `folders` are arguments of a mesh."""
        tags = {self.shapes[kind][0]: kind for kind in kinds}
        kind = tags.get(element.tag) or element.fail(f"is an unknown shape; expected one of {', '.join(tags)}")
        values = {field.name: _value(element, place, field) for field, place in self.places(kind)}
        given_values = {name: value for name, value in values.items() if value is not None}
        return kind(**given_values, **(folders if kind is Mesh else {}))

    def places(self, kind: type) -> list[tuple[Field[Any], str]]:
        """Return the fields of a class of shapes, with their places in its element."""
        return list(zip(fields(kind), self.shapes[kind][1:], strict=False))

    # ---- writing -----------------------------------------------------------------------------------------------------

    def write(self, owner: ET.Element, values: Mapping[str, Any]) -> None:
        """Write the parameters of a joint that are not None.

        If a parameter in a child element differs from its default, all parameters of this child are written.
        """
        for path, rows in groupby(self.numbers, key=lambda row: row.path):
            defined = [row for row in rows if values.get(row.field) is not None and self._counts(row, values)]
            changed = [row for row in defined if not row.is_default(values[row.field])]
            for row in defined if path and changed else changed:
                put_term(owner, row.place, row.term, values[row.field]) if row.terms > 1 else put(
                    owner, row.place, values[row.field]
                )

    def missing(self, joint: JointType) -> tuple[list[str], list[str]]:
        """Return the fields of a joint for which the format has no row, in two lists: passive terms that are not zero, and bounds."""
        fields_of_rows = {row.field for row in self.numbers}
        bounds = [name for name in BOUNDS if getattr(joint, name) is not None]
        passive, missing = ([x for x in names if x not in fields_of_rows] for names in (has_passive(joint), bounds))
        return passive, missing

    # ---- documentation -----------------------------------------------------------------------------------------------

    def page(self) -> Iterator[str]:
        """Yield lines of Markdown: all tables of the format."""
        yield from (
            f"## {self.name}",
            "",
            "| number of a joint | becomes | unit | default | values |",
            "|---|---|---|---|---|",
        )
        for row in self.numbers:
            number = f" ({row.term + 1})" if row.terms > 1 else ""
            yield f"| `{row.element.split()[0]}/{row.place}`{number} | `{row.field}` | {row.unit} | {row.default:g} | {row.values} |"
        yield from ("", "| not read | |", "|---|---|")
        for row in self.rows:
            if row.note or row.refusal:
                message = f"error: `{row.refusal}`" if row.refusal else f"warning: `{row.note.format(tag='…')}`"
                yield f"| `{row.element}{'/' if row.place else ''}{row.place}` | {message} |"
        yield from ("", "| element | attributes | elements in it | ignored |", "|---|---|---|---|")
        for tag, allowed in sorted(self.grammar.items()):
            rule = self.elements.get(tag, "")
            ignored = {word for part in rule.split("(")[1:] for word in part.partition(")")[0].split()}
            attributes, children = (" ".join(f"`{word}`" for word in sorted(part - ignored)) for part in allowed)
            yield f"| `{tag}` | {attributes} | {children} | {' '.join(f'`{word}`' for word in sorted(ignored))} |"
        yield ""


def _value(element: Element, place: str, field: Field[Any]) -> Any:
    """Return numbers or a text, by the declared type of the field; None if it is missing and has a default."""
    count, attribute = COUNTS[str(field.type)], place[1:] if place.startswith("@") else None
    part = element if attribute else next(iter(element.all(place)), None)
    if field.default is not MISSING and (part is None or (attribute and attribute not in part.attributes)):
        return None
    if part is None:
        element.fail(f"has no <{place}>")
    if not count:
        return part.text(attribute) if attribute else part.words()
    numbers = part.numbers(attribute, count)
    return numbers[0] if count == 1 else numbers


def combined(axes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters of a joint from those of its axes. A missing bound is infinite, and any other missing number is zero."""
    numbers: dict[str, Any] = {}
    for name in dict.fromkeys(name for axis in axes for name in axis):
        default: Any = (-math.inf, math.inf) if name == "limits" else math.inf if name in BOUNDS else 0.0
        values = [axis.get(name, default) for axis in axes]
        numbers[name] = list(zip(*values, strict=True)) if name == "limits" else values
    return numbers


def has_passive(joint: JointType) -> list[str]:
    """Return the names of the passive terms that are not zero."""
    return [name for name in PASSIVE if name != "rest" and getattr(joint, name).any()]


def text_of(values: ArrayLike) -> str:
    """Return numbers as text, with enough digits to read back the same numbers."""
    return " ".join(repr(float(x) + 0.0).removesuffix(".0") for x in np.ravel(values))


def put_term(owner: ET.Element, place: str, term: int, value: float) -> None:
    """Write a number of an attribute that is a list; numbers before it that are missing are zero."""
    numbers = owner.get(place[1:], "").split()
    numbers += ["0"] * (term + 1 - len(numbers))
    numbers[term] = text_of(value)
    owner.set(place[1:], " ".join(numbers))


def put(owner: ET.Element, place: str, value: ArrayLike | str) -> None:
    """Write a value at a path in an element, such as "dynamics/@damping"; missing elements of the path are added."""
    *path, last = place.split("/")
    for tag in path:
        child = next((child for child in owner if child.tag == tag), None)
        owner = ET.SubElement(owner, tag) if child is None else child
    text = value if isinstance(value, str) else text_of(value)
    if last.startswith("@"):
        owner.set(last[1:], text)
    else:
        ET.SubElement(owner, last).text = text


NO_LIMIT = 1e16  # the number by which SDF represents "no limit"
WAY_OUT = "compile the file with MuJoCo: sarrus.io.from_mujoco(mujoco.MjModel.from_xml_path(...))"
_PLACE, _SPEED, _EFFORT = "rad, m", "rad/s, m/s", "N m, N"
_DAMPING, _STIFFNESS, _INERTIA = "N m s/rad, N s/m", "N m/rad, N/m", "kg m², kg"


def page() -> str:
    """Return the documentation page with all tables, in Markdown."""
    formats = (URDF, SDF, MJCF, USD)
    return "\n".join(["# Entries of model files", "", *(line for entry in formats for line in entry.page())])


# ---- URDF ------------------------------------------------------------------------------------------------------------

URDF = Format(
    "URDF",
    {
        "robot": f"name version | link joint drake:joint frame loop loop_joint constraint coupling {' '.join(extensions.TAGS)} (material transmission "
        "gazebo ros2_control sensor)",
        "link": "name | inertial (visual collision)",
        "inertial": "| origin mass inertia",
        "joint": "name type (independent) | origin parent child axis limit dynamics mimic (calibration safety_controller)",
        "drake:joint": "name type | origin parent child axis limit dynamics drake:screw_thread_pitch",
        "drake:screw_thread_pitch": "value |",
        "transmission": "name type | (type joint)",
        "frame": "name link xyz rpy |",
        "origin": "xyz rpy |",
        "mass": "value |",
        "inertia": "ixx iyy izz ixy ixz iyz |",
        "axis": "xyz frame |",
        "mimic": "joint multiplier offset |",
        "parent": "link |",
        "child": "link |",
        # extensions that close loops
        "loop": "name type | predecessor successor axis",
        "predecessor": "link | origin",
        "successor": "link | origin",
        "coupling": "name | predecessor successor ratio",
        "ratio": "value |",
        "loop_joint": "name type | link1 link2 parent child parent_origin child_origin axis limit dynamics",
        "link1": "link xyz rpy |",
        "link2": "link xyz rpy |",
        "constraint": "name type | parent parent_origin parent_axis child child_origin child_axis limit dynamics",
        "parent_origin": "xyz rpy |",
        "child_origin": "xyz rpy |",
        "parent_axis": "xyz |",
        "child_axis": "xyz |",
        **extensions.KNOWN,
    },
    [
        Row("joint", "limit/@lower", "lower", unit=_PLACE),
        Row("joint", "limit/@upper", "upper", unit=_PLACE),
        Row("joint", "limit/@effort", "effort_limit", BOUND, unit=_EFFORT),
        Row("joint", "limit/@velocity", "velocity_limit", BOUND, unit=_SPEED),
        Row("joint", "dynamics/@damping", "damping", POSITIVE, unit=_DAMPING),
        Row("joint", "dynamics/@friction", "friction", POSITIVE, unit=_EFFORT),
        Row("transmission", "actuator/drake:rotor_inertia/@value", "armature", CUSTOM, unit=_INERTIA),  # times drake:gear_ratio, squared
        Row("springStiffness springReference turnGravityOff", "", note="<{tag}> in <gazebo> is not read"),
        Row("selfCollide self_collide", "", values="false 0", note="<{tag}> is not read: links that no joint connects may touch each other"),
        Row("dampingFactor", "", note="<dampingFactor> in <gazebo> is not read: links move without this drag"),
    ],
    joints={
        "Fixed": "fixed", "Revolute": "revolute", "Prismatic": "prismatic", "Spherical": "ball", "Free": "floating", "Planar": "planar",
    },
    shapes={Box: "box @size", Cylinder: "cylinder @radius @length", Sphere: "sphere @radius", Mesh: "mesh @filename @scale"},
    color="material/color/@rgba",
)  # fmt: skip

# ---- SDF -------------------------------------------------------------------------------------------------------------

_AXIS = "| xyz limit dynamics mimic use_parent_model_frame"
SDF = Format(
    "SDF",
    {
        "sdf": "version | world model (light actor)",
        "world": "name | gravity model include joint frame physics (light actor plugin scene gui audio state road magnetic_field "
        "atmosphere spherical_coordinates wind population)",
        "physics": "name type default | gravity (max_step_size real_time_factor real_time_update_rate ode bullet dart simbody "
        "max_contacts)",
        "model": "name canonical_link placement_frame | pose static link joint frame model include drake:joint (self_collide "
        f"allow_auto_disable enable_wind plugin gripper audio drake:collision_filter_group) {' '.join(extensions.TAGS)}",
        "include": "merge | uri name pose static placement_frame (plugin)",
        "link": "name type | pose inertial gravity visual collision (self_collide kinematic must_be_base_link enable_wind "
        "velocity_decay sensor light projector audio_sink audio_source battery particle_emitter plugin)",
        "inertial": "auto | pose mass inertia density (auto_inertia_params)",
        "inertia": "| ixx ixy ixz iyy iyz izz",
        "pose": "relative_to frame degrees rotation_format |",
        "frame": "name attached_to | pose",
        "joint": "name type | pose parent child axis axis2 gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch "
        "drake:mimic drake:gear_ratio (physics sensor plugin drake:controller_gains)",
        "drake:joint": "name type | drake:parent drake:child drake:damping",
        "drake:mimic": "joint multiplier offset |",
        "axis": _AXIS,
        "axis2": _AXIS,
        "xyz": "expressed_in |",
        "limit": "| (stiffness dissipation)",
        "mimic": "joint axis | multiplier offset reference",
        **extensions.KNOWN,
    },
    [
        Row("axis axis2", "limit/lower", "lower", default=-NO_LIMIT, unit=_PLACE),
        Row("axis axis2", "limit/upper", "upper", default=NO_LIMIT, unit=_PLACE),
        # an effort limit of zero makes the joint passive
        Row("axis axis2", "limit/effort", "effort_limit", BOUND, default=-1.0, unit=_EFFORT),
        Row("axis axis2", "limit/velocity", "velocity_limit", BOUND, default=-1.0, unit=_SPEED),
        Row("axis axis2", "dynamics/damping", "damping", POSITIVE, unit=_DAMPING),
        Row("axis axis2", "dynamics/friction", "friction", POSITIVE, unit=_EFFORT),
        Row("axis axis2", "dynamics/spring_stiffness", "stiffness", POSITIVE, unit=_STIFFNESS),
        Row("axis axis2", "dynamics/spring_reference", "rest", unit=_PLACE, needs="stiffness"),
        Row("joint", "drake:rotor_inertia", "armature", CUSTOM, unit=_INERTIA),  # times drake:gear_ratio, squared
        Row("kinematic", "", values="true 1", note="<kinematic> is not read: the link moves by its joints and forces"),
        Row("self_collide", "", values="false 0", note="<{tag}> is not read: links that no joint connects may touch each other"),
        Row("collide_without_contact", "", values="true 1", note="collide_without_contact is not read: contact forces act on the shape"),
        Row("collide_bitmask category_bitmask", "", note="<{tag}> is not read: no pair of shapes is excluded by it"),
        Row("drake:collision_filter_group", "", note="<{tag}> is not read: no pair of shapes is excluded by it"),
        Row("gripper", "", note="<gripper> is not read: grasped bodies are not attached"),
    ],
    joints={
        "Fixed": "fixed", "Revolute": "revolute", "Prismatic": "prismatic", "Helical": "screw", "Universal": "universal", "Spherical": "ball",
    },
    shapes={
        Box: "box size", Cylinder: "cylinder radius length", Sphere: "sphere radius", Mesh: "mesh uri scale",
        Capsule: "capsule radius length", Ellipsoid: "ellipsoid radii",
    },
    color="material/ambient material/diffuse",
)  # fmt: skip

# ---- MJCF ------------------------------------------------------------------------------------------------------------

ORIENTATION = ("quat", "euler", "axisangle", "xyaxes", "zaxis")
# flags of <option> that affect the mechanism, with their bits in MuJoCo 4
FLAGS = {"constraint": 1, "equality": 2, "frictionloss": 4, "limit": 8, "spring": 32, "damper": 64, "gravity": 128}
_ORIENTED = " ".join(ORIENTATION)
_GEOM = f"""size pos {_ORIENTED} type fromto mass density shellinertia mesh material rgba group (contype conaffinity condim
    friction solmix solref solimp gap hfield fitscale fluidshape fluidcoef user castshadow)"""
_TENDON = """name class (range limited margin group material rgba width user solreflimit solimplimit solreffriction solimpfriction
    actuatorfrclimited actuatorfrcrange springlength springyield)"""
_EQUALITY = "name class active (solref solimp)"
_INSIDE = "frame body joint freejoint geom site inertial composite flexcomp attach replicate (camera light)"
_DRIVES = "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion dcmotor plugin"
DRIVES = tuple(_DRIVES.split())
_ACTUATOR = """joint jointinparent tendon site body slidersite cranksite refsite gear ctrlrange ctrllimited forcerange forcelimited armature
    damping gaintype biastype dyntype gainprm (actdim actearly actlimited actrange area bias biasprm class cogging controller
    cranklength dampratio delay diameter dynprm ffrange force fpmax fvmax gain group imax inductance inheritrange input
    instance interp ki kp kv lengthrange lmax lmin lugre motorconst name nominal nsample plugin posrange range resistance
    saturation scale slewmax tausmooth thermal timeconst user velrange vmax)"""
_TENDONS = "fixed spatial tendon"
MJCF = Format(
    "MJCF",
    {
        "mujoco": """model | compiler option default asset worldbody equality tendon actuator keyframe deformable
            (size visual statistic sensor contact custom extension)""",
        "compiler": """angle eulerseq autolimits inertiafromgeom inertiagrouprange boundmass boundinertia balanceinertia settotalmass
            meshdir assetdir (texturedir discardvisual usethread fusestatic conflict fitaabb
            passthrough saveinertial savecompiled savecanonical) | (lengthrange)""",
        "option": """gravity wind (actuatorgroupdisable apirate ccd_iterations ccd_tolerance collision cone impratio integrator
            iterations jacobian ls_iterations ls_tolerance magnetic mpr_iterations mpr_tolerance noslip_iterations noslip_tolerance
            o_friction o_margin o_solimp o_solref sdf_initpoints sdf_iterations sleep_tolerance solver timestep tolerance) | flag""",
        "flag": f"""{" ".join(FLAGS)} passive (contact clampctrl warmstart filterparent actuation refsafe sensor midphase eulerdamp autoreset
            nativeccd island multiccd energy fwdinv invdiscrete sleep diagexact ipc speculative sensornoise) |""",
        "default": f"class | default joint geom site equality tendon mesh material {_DRIVES} (texture camera light pair skin)",
        "asset": "| mesh material (hfield skin texture model)",
        "mesh": "name class file scale inertia refpos refquat (content_type face material maxhullvert normal params smoothnormal texcoord "
        "vertex builtin) | (plugin)",
        "material": "name class rgba (emission metallic reflectance roughness shininess specular texrepeat texture texuniform) | (layer)",
        "worldbody": f"| {_INSIDE}",
        "body": f"name childclass pos {_ORIENTED} (fuse simple sleep user) | {_INSIDE}",
        "replicate": f"count sep offset euler | {_INSIDE}",
        "frame": f"name childclass pos scale scaling massscale {_ORIENTED} | {_INSIDE}",
        "inertial": f"pos {_ORIENTED} mass diaginertia fullinertia |",
        # <joint> has three meanings: a joint of a body, an entry of an equality, an entry of a tendon
        "joint": """name class type pos axis limited ref actuatorfrclimited springdamper (group margin solreflimit solimplimit solreffriction
            solimpfriction actuatorgravcomp user) joint coef active joint1 joint2 polycoef (solref solimp) |""",
        "freejoint": "name (group) |",
        "geom": f"name class {_GEOM} | (plugin)",
        "site": f"name class pos {_ORIENTED} fromto (type size group material mesh rgba user) |",
        "equality": "active (solref solimp) | connect weld joint tendon flex flexvert flexstrain distance",
        "connect": f"{_EQUALITY} body1 body2 anchor site1 site2 |",
        "weld": f"{_EQUALITY} body1 body2 anchor relpose torquescale site1 site2 |",
        "tendon": f"{_EQUALITY} tendon1 tendon2 polycoef {_TENDON} | fixed spatial",
        "fixed": f"{_TENDON} | joint",
        "spatial": f"{_TENDON} | (site geom pulley)",
        "actuator": f"| {_DRIVES}",
        **dict.fromkeys(DRIVES, f"{_ACTUATOR} | (config)"),
        "keyframe": "| key",
        "key": "name qpos (time qvel act ctrl mpos mquat plastic) |",
    },
    [
        Row("joint", "@range", "limits", CUSTOM, unit=_PLACE, angle=True, switch="limit"),
        Row("joint", "@damping", "damping", POSITIVE, unit=_DAMPING, terms=3, switch="damper"),
        Row("joint", "@damping", "quadratic_damping", unit="N m s²/rad², N s²/m²", terms=3, term=1, switch="damper"),
        Row("joint", "@damping", "cubic_damping", unit="N m s³/rad³, N s³/m³", terms=3, term=2, switch="damper"),
        Row("joint", "@frictionloss", "friction", unit=_EFFORT, switch="frictionloss"),
        Row("joint", "@armature", "armature", unit=_INERTIA),
        Row("joint", "@stiffness", "stiffness", POSITIVE, unit=_STIFFNESS, terms=3, switch="spring"),
        Row("joint", "@stiffness", "quadratic_stiffness", unit="N m/rad², N/m²", terms=3, term=1, switch="spring"),
        Row("joint", "@stiffness", "cubic_stiffness", unit="N m/rad³, N/m³", terms=3, term=2, switch="spring"),
        Row("joint", "@springref", "rest", unit=_PLACE, needs="stiffness quadratic_stiffness cubic_stiffness", angle=True),
        Row("joint", "@actuatorfrcrange", "effort_limit", CUSTOM, unit=_EFFORT),
        Row("joint", "@springyield", note="springyield is not read: springs stay elastic"),
        Row("freejoint", "@align", values="true false auto",
            note="align of <freejoint> is not read: the body's frame is not moved"),
        Row("body", "@mocap", values="true false", note="a mocap body does not move"),
        Row("body", "@gravcomp", note="gravcomp is not read"),
        Row("geom", "@margin", note="margin of geoms is not read: contact begins at the surfaces; in MuJoCo it begins at this distance"),
        Row("geom", "@surfacevel", terms=6, note="surfacevel of geoms is not read: surfaces move with their bodies"),
        Row("geom", "@adhesion", note="adhesion of geoms is not read: shapes only push"),
        Row("geom", "@priority", note="priority of geoms is not read: the friction of a pair depends on both geoms"),
        Row(_TENDONS, "@stiffness", terms=3, note="stiffness of tendons is not read"),
        Row(_TENDONS, "@damping", terms=3, note="damping of tendons is not read"),
        Row(_TENDONS, "@armature", note="armature of tendons is not read"),
        Row(_TENDONS, "@frictionloss", note="frictionloss of tendons is not read"),
        Row("compiler", "@alignfree", values="true false", note="alignfree is not read"),
        Row("compiler", "@strippath", values="true false", note="strippath is not read"),
        Row("compiler", "@coordinate", values="global local",
            refusal="has global coordinates; MuJoCo no longer reads them either: write local coordinates"),
        Row("flag", "@override", values="enable disable", note="contact parameters that override those of geoms are not read"),
        Row("option", "@density", note="the drag of the medium is not read"),
        Row("option", "@viscosity", note="the drag of the medium is not read"),
        Row("deformable", "", note="<deformable> is not read"),
        Row("composite flexcomp attach", "", refusal=f"generates bodies and is not read: {WAY_OUT}"),
    ],
    joints={"Fixed": "weld", "Revolute": "hinge", "Prismatic": "slide", "Spherical": "ball", "Free": "free"},
)  # fmt: skip

# ---- USD -------------------------------------------------------------------------------------------------------------

_MASS = "physics:mass physics:density physics:centerOfMass physics:diagonalInertia physics:principalAxes newton:inertia"
_BODY = f"""name type sarrus:frame {_MASS} physics:rigidBodyEnabled physics:kinematicEnabled physics:collisionEnabled
    physics:staticFriction physics:dynamicFriction physics:restitution
    (physics:startsAsleep physics:velocity physics:angularVelocity physics:simulationOwner physics:approximation newton:jointsAddMobility mjc:group mjc:solref mjc:solimp)"""
_LAW = "belongs to a control law, which is not read: sarrus.io.usd.drives returns it"
USD = Format(
    "USD",
    {
        "stage": "metersPerUnit kilogramsPerUnit upAxis defaultPrim | scene joint motor shape prim",
        "scene": "name type physics:gravityDirection physics:gravityMagnitude newton:gravityEnabled mjc:compiler:angle (newton:maxSolverIterations "
        "newton:timeStepsPerSecond mjc:option:timestep mjc:option:integrator mjc:option:iterations mjc:flag:energy mjc:flag:nativeccd) |",
        "joint": """name type physics:axis physics:body0 physics:body1 physics:localPos0 physics:localPos1 physics:localRot0 physics:localRot1
            physics:jointEnabled physics:excludeFromArticulation physics:minDistance physics:maxDistance
            newton:mimicJoint newton:mimicCoef0 newton:mimicCoef1 newton:mimicEnabled mjc:target mjc:coef0 mjc:coef1 mjc:coef2 mjc:coef3 mjc:coef4
            mjc:damping mjc:ref mjc:actuatorfrclimited mjc:actuatorfrcrange:min mjc:actuatorfrcrange:max urdf:limit:effort
            (physics:collisionEnabled newton:limitStiffness newton:limitDamping mjc:solref mjc:solimp mjc:solreflimit mjc:solimplimit
            mjc:solreffriction mjc:solimpfriction mjc:margin mjc:group mjc:actuatorgravcomp) | drive limit""",
        "motor": """name type newton:targets newton:maxEffort mjc:target mjc:gear mjc:forceLimited mjc:forceRange:min mjc:forceRange:max mjc:ctrlLimited mjc:ctrlRange:min
            mjc:ctrlRange:max mjc:gainPrm mjc:gainType mjc:biasType mjc:dynType (mjc:biasPrm mjc:dynPrm mjc:group mjc:actDim mjc:actEarly
            mjc:actLimited mjc:actRange:min mjc:actRange:max mjc:lengthRange:min mjc:lengthRange:max mjc:inheritRange mjc:jointInParent
            mjc:crankLength newton:kp newton:kd newton:ki newton:constEffort newton:integralMax newton:delaySteps) |""",
        "drive": "name physics:type |",
        "limit": "name physics:low physics:high |",
        "shape": f"{_BODY} radius height axis size |",
        "prim": f"{_BODY} |",
    },
    [
        Row("joint", "@physics:lowerLimit", "lower", default=-math.inf, unit="deg, m"),
        Row("joint", "@physics:upperLimit", "upper", default=math.inf, unit="deg, m"),
        Row("joint", "drive/@physics:maxForce", "effort_limit", BOUND, default=math.inf, unit=_EFFORT),
        Row("joint", "@newton:velocityLimit", "velocity_limit", BOUND, default=math.inf, unit="deg/s, m/s"),
        Row("joint", "@newton:damping", "damping", POSITIVE, unit="N m s/deg, N s/m"),
        Row("joint", "@newton:friction", "friction", POSITIVE, unit=_EFFORT),
        Row("joint", "@newton:armature", "armature", POSITIVE, unit=_INERTIA),
        Row("joint", "@mjc:stiffness", "stiffness", POSITIVE, unit=_STIFFNESS),
        Row("joint", "@mjc:springref", "rest", unit="deg, m", needs="stiffness"),
        Row("drive", "@physics:stiffness", unit="N m/deg, N/m", note=f"stiffness of drives {_LAW}"),
        Row("drive", "@physics:damping", unit="N m s/deg, N s/m", note=f"damping of drives {_LAW}"),
        Row("drive", "@physics:targetPosition", unit="deg, m", note=f"targetPosition of drives {_LAW}"),
        Row("drive", "@physics:targetVelocity", unit="deg/s, m/s", note=f"targetVelocity of drives {_LAW}"),
    ],
    joints={
        "Fixed": "fixed", "Revolute": "revolute", "Prismatic": "prismatic", "Spherical": "spherical", "Cylindrical": "d6", "Planar": "d6",
    },
)  # fmt: skip
