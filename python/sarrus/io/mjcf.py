"""MJCF, MuJoCo's XML, read with the standard library's expat.

What becomes of each part of a file, where it differs from what :mod:`sarrus.io.mujoco` says of compiled models:

=============================  ====================================================================================
`<include>`                    the file's elements in its place; names start from the main file's folder and stay in it, each file once
`<default>`, `class`,          inherited as MuJoCo does, "main" last
`childclass`
`<compiler>`                   angle, eulerseq, autolimits, inertiafromgeom, inertiagrouprange, boundmass, boundinertia,
                               balanceinertia, settotalmass, meshdir, assetdir
`<inertial>`                   the body's inertia; none: that of its geoms, which for meshes takes trimesh and the files
`<joint>`, `<freejoint>`       joints; `springdamper` as stiffness and damping
`<frame>`                      a pose for what is inside it
`<geom>`                       mass, and visuals: those of primitives and meshes, in the colour of their material
`<connect>`, `<weld>`          by bodies: at qpos0, or as told by `anchor` and `relpose`; by sites: theirs
`<tendon>`                     fixed ones; spatial ones guide nothing here, and are left out with a warning
`<actuator>`                   a joint or a fixed tendon that it drives is actuated
`<key>`                        a configuration: ``robot.configuration("home")``
mocap bodies, inactive         stay where they are, are left out; both with a warning
equalities
`<attach>`, `<replicate>`,     refused: they make bodies. MuJoCo compiles them, for :func:`sarrus.from_mujoco`
`<composite>`, `<flexcomp>`
visual, statistic, sensor,     known, and of no concern to the dynamics
contact, custom, size, ...
anything else                  a warning
=============================  ====================================================================================

A document type declaration is refused, and with it entities: a model file needs none, an attack does.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..building.builder import Builder
from ..description.specs import Mesh
from ..errors import ModelError, did_you_mean
from ..spatial import Inertia, Rotation, Transform
from .document import Element, at, free_name, grammar, parse
from .mujoco import FLAGS, HERE, HIDDEN, Drives, Hinge, Tree, inertia_of, joint_type, show

__all__ = ["read"]

DEFAULT = (0.0, 1.0, 0.0, 0.0, 0.0)  # polycoef of an equality
DEEPEST = 500  # what MuJoCo reads; a chain of bodies is nested as deep as it is long
WAY_OUT = "let MuJoCo compile the file, and take sarrus.from_mujoco(mujoco.MjModel.from_xml_path(...))"

ORIENTATION = ("quat", "euler", "axisangle", "xyaxes", "zaxis")
_ORIENTED = " ".join(ORIENTATION)
_JOINT = """type pos axis range limited ref springref stiffness damping frictionloss armature actuatorfrcrange actuatorfrclimited
    springdamper springyield (group margin solreflimit solimplimit solreffriction solimpfriction actuatorgravcomp user)"""
_GEOM = f"""type size pos {_ORIENTED} fromto mass density shellinertia mesh material rgba group (contype conaffinity condim priority
    friction solmix solref solimp margin gap hfield fitscale fluidshape fluidcoef user adhesion castshadow surfacevel)"""
_SITE = f"pos {_ORIENTED} fromto (type size group material mesh rgba user)"
_TENDON = """(range limited margin group material rgba width user solreflimit solimplimit solreffriction solimpfriction
    actuatorfrclimited actuatorfrcrange springlength springyield)"""
_EQUALITY = "name class active (solref solimp)"
_INSIDE = "frame body joint freejoint geom site inertial composite flexcomp attach replicate (camera light plugin)"
_DRIVES = "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion dcmotor plugin"
DRIVES = tuple(_DRIVES.split())
_ACTUATOR = """joint jointinparent tendon site body slidersite cranksite refsite gear ctrlrange ctrllimited forcerange forcelimited armature
    damping gaintype biastype dyntype gainprm (actdim actearly actlimited actrange area bias biasprm class cogging controller
    cranklength dampratio delay diameter dynprm ffrange force fpmax fvmax gain group imax inductance inheritrange input
    instance interp ki kp kv lengthrange lmax lmin lugre motorconst name nominal nsample plugin posrange range resistance
    saturation scale slewmax tausmooth thermal timeconst user velrange vmax)"""

KNOWN = grammar(
    {
        "mujoco": """model | compiler option default asset worldbody equality tendon actuator keyframe deformable
            (size visual statistic sensor contact custom extension)""",
        "compiler": """angle eulerseq autolimits inertiafromgeom inertiagrouprange boundmass boundinertia balanceinertia settotalmass
            meshdir assetdir strippath coordinate alignfree (texturedir discardvisual usethread fusestatic conflict fitaabb
            passthrough saveinertial savecompiled savecanonical) | (lengthrange)""",
        "option": """gravity density viscosity wind (actuatorgroupdisable apirate ccd_iterations ccd_tolerance collision cone impratio integrator
            iterations jacobian ls_iterations ls_tolerance magnetic mpr_iterations mpr_tolerance noslip_iterations noslip_tolerance
            o_friction o_margin o_solimp o_solref sdf_initpoints sdf_iterations sleep_tolerance solver timestep tolerance) | flag""",
        "flag": f"""{" ".join(FLAGS)} passive (contact clampctrl warmstart filterparent actuation refsafe sensor midphase eulerdamp autoreset
            nativeccd island multiccd override energy fwdinv invdiscrete sleep diagexact ipc speculative sensornoise) |""",
        "default": f"""class | default joint geom site equality tendon mesh material {_DRIVES}
            (texture camera light pair skin)""",
        "asset": "| mesh material (hfield skin texture model)",
        "mesh": "name class file scale inertia refpos refquat (content_type face material maxhullvert normal params smoothnormal texcoord "
        "vertex builtin) | (plugin)",
        "material": "name class rgba (emission metallic reflectance roughness shininess specular texrepeat texture texuniform) | (layer)",
        "worldbody": f"| {_INSIDE}",
        "body": f"name childclass pos {_ORIENTED} mocap gravcomp (fuse simple sleep user) | {_INSIDE}",
        "frame": f"name childclass pos {_ORIENTED} | {_INSIDE}",
        "inertial": f"pos {_ORIENTED} mass diaginertia fullinertia |",
        # the same tag in a body, an equality and a tendon
        "joint": f"name class {_JOINT} joint coef active joint1 joint2 polycoef (solref solimp) |",
        "freejoint": "name align (group) |",
        "geom": f"name class {_GEOM} | (plugin)",
        "site": f"name class {_SITE} |",
        "equality": "active (solref solimp) | connect weld joint tendon flex flexvert flexstrain distance",
        "connect": f"{_EQUALITY} body1 body2 anchor site1 site2 |",
        "weld": f"{_EQUALITY} body1 body2 anchor relpose torquescale site1 site2 |",
        "tendon": f"{_EQUALITY} tendon1 tendon2 polycoef {_TENDON} stiffness damping armature frictionloss | fixed spatial",
        "fixed": f"name class stiffness damping armature frictionloss {_TENDON} | joint",
        "spatial": f"name class stiffness damping armature frictionloss {_TENDON} | (site geom pulley)",
        "actuator": f"| {_DRIVES}",
        **dict.fromkeys(DRIVES, f"{_ACTUATOR} | (config)"),
        "keyframe": "| key",
        "key": "name qpos (time qvel act ctrl mpos mquat plastic) |",
    }
)
# numbers of which a file may give the first few: the others are those of the default
PARTIAL = ("size", "stiffness", "damping", "polycoef", "gear", "gainprm")


def read(
    text: str | bytes, *, source: str = "<string>", floating_base: bool | None = None, beside: str | None = None,
    package_dirs: Iterable[str] = (),
) -> Builder:  # fmt: skip
    """Builder of the mechanism that an MJCF document describes, which can be added to. A ModelError tells file, line and element.

    Parameters
    ----------
    text : the document
    source : what errors and warnings call it
    beside : folder of the file, where includes and meshes are; default: there are no includes
    floating_base, package_dirs : of no use here: an MJCF says itself what floats, and knows no packages

    Examples
    --------
    >>> from sarrus.io import mjcf
    >>> b = mjcf.read('<mujoco><worldbody><body name="stone"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>')
    >>> b.add_frame("top", "stone", (0, 0, 0.1))
    >>> b.build().frames
    ('ground', 'stone', 'top')
    """
    if floating_base is not None:
        raise ModelError(f"floating_base is for URDF; an MJCF says by <freejoint/> what floats; got {floating_base!r}")
    root = parse(text, source, KNOWN, deepest=DEEPEST)
    if root.tag != "mujoco":
        root.fail("is not the root of an MJCF, <mujoco>")
    _include(root, beside)
    return _Reader(root, beside or "").read()


# --- the document -----------------------------------------------------------------------------------------------------


def _include(root: Element, beside: str | None) -> None:
    """Put in place of each <include> what is in its file."""
    first = (
        {}
        if beside is None
        else {os.path.normcase(os.path.join(os.path.abspath(beside), root.source)): "the main file"}
    )
    pending = [root]
    while pending:
        element = pending.pop()
        k = 0
        while k < len(element.children):
            include = element.children[k]
            if include.tag != "include":
                k += 1
                continue
            if beside is None:
                include.fail("needs a folder to look in: sarrus.load reads files")
            folder, name = os.path.abspath(beside), include.text("file")
            path = os.path.normpath(os.path.join(folder, name))
            if "\0" in path or not path.startswith(os.path.join(folder, "")):
                include.fail(f"leaves the folder of the main file: {name!r}")
            if (key := os.path.normcase(path)) in first:
                include.fail(f"names {name!r} again: {first[key]} has it, and a file may be there once")
            first[key] = f"{include.source}:{include.line}"
            try:
                with open(path, "rb") as file:
                    text = file.read()
            except OSError as error:
                include.fail(f"cannot read {name!r}: {error.strerror}")
            part = parse(text, os.path.relpath(path, folder), KNOWN, deepest=DEEPEST, notes=root.notes)
            for child in part.children:
                child.owner = element
            element.children[k : k + 1] = part.children
        pending += element.children


Attributes = dict[str, str]


def _merged(own: Mapping[str, str], inherited: Mapping[str, str]) -> Attributes:
    """Attributes with those of a class below them."""
    if any(name in own for name in ORIENTATION):  # there are five ways to tell one
        inherited = {name: value for name, value in inherited.items() if name not in ORIENTATION}
    merged = {**inherited, **own}
    for name in PARTIAL:
        if name in own and name in inherited:
            words = own[name].split(None, 10)
            merged[name] = " ".join(words + inherited[name].split(None, 10)[len(words) : 10])
    return merged


def _classes(sections: Sequence[Element]) -> dict[str, dict[str, Attributes]]:
    """Of each class, the attributes that it has for a tag; all actuators share one set."""
    classes: dict[str, dict[str, Attributes]] = {"main": {}}
    pending = [(section, "") for section in reversed(sections)]
    while pending:
        section, parent = pending.pop()
        section.look_for_unknown()
        name = section.get("class") or ("" if parent else "main")
        if not parent and name != "main":
            section.fail(f"is the outermost, whose class is 'main', and calls it {name!r}")
        if not name or (parent and name in classes):
            section.fail("needs a class of its own" + (f": there is another {name!r}" if name else ""))
        own = classes[name] = {**classes[parent or name]}
        for child in section.children:
            if child.tag == "default":
                continue
            if child.tag not in KNOWN:
                continue
            child.look_for_unknown()
            for attribute in PARTIAL:
                child.several(attribute, 10, ())
            tag = "actuator" if child.tag in DRIVES else child.tag
            known = {name: value for name, value in child.attributes.items() if name in KNOWN[child.tag][0]}
            own[tag] = _merged(known, own.get(tag, {}))
        pending += [(child, name) for child in reversed(section.all("default"))]
    return classes


# --- what it describes ------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Body:
    """A body, and what is in it and in the frames in it: each with the pose of its frame, and with its classes' attributes."""

    element: Element
    name: str
    parent: str
    place: Transform
    inside: list[tuple[Element, Transform]]


class _Geom(NamedTuple):
    element: Element
    kind: str
    size: tuple[float, ...]
    place: Transform


class _Reader:
    """What holds for a whole document, and the tree that is made of it."""

    def __init__(self, root: Element, beside: str) -> None:
        root.look_for_unknown()
        self.root, self.notes, self.beside = root, root.notes, beside
        self.compiler, self.option, self.flag = (self.settings(tag) for tag in ("compiler", "option", "flag"))
        self.angle = math.radians(1.0) if self.compiler.word("angle", "degree radian", "degree") == "degree" else 1.0
        self.eulerseq = self.compiler.get("eulerseq") or "xyz"
        if len(self.eulerseq) != 3 or set(self.eulerseq.lower()) - set("xyz"):
            self.compiler.fail(f"wants three letters of xyzXYZ in eulerseq, not {self.eulerseq[:60]!r}")
        if self.compiler.get("coordinate") == "global":
            self.compiler.fail("tells global coordinates, which MuJoCo has given up too")
        for switch in ("alignfree", "strippath"):
            if self.compiler.truth(switch, False):
                self.compiler.note(f"{switch} is not read")
        self.off = {
            name for name in (*FLAGS, "passive") if self.flag.word(name, "enable disable", "enable") == "disable"
        }
        self.off |= {"equality", "frictionloss", "limit"} if "constraint" in self.off else set()
        self.off |= {"spring", "damper"} if "passive" in self.off else set()
        for name in sorted(self.off):
            self.flag.note(f"{name} is switched off, and left out")
        self.classes = _classes(root.all("default"))
        self.meshes, self.materials = self.assets("mesh"), self.assets("material")

    def settings(self, tag: str) -> Element:
        """All elements of the document that set something, in one: later ones win."""
        owners = self.root.all("option") if tag == "flag" else [self.root]
        found = [element for owner in owners for element in owner.all(tag)]
        for element in found:
            element.look_for_unknown()
        attributes = {name: value for element in found for name, value in element.attributes.items()}
        return replace(found[-1] if found else self.root, tag=tag, attributes=attributes)

    def assets(self, tag: str) -> dict[str, Element]:
        found = {}
        for owner in self.root.all("asset"):
            owner.look_for_unknown()
            for element in owner.all(tag):
                element.look_for_unknown()
                stem = os.path.splitext(os.path.basename((element.get("file") or "").replace("\\", "/")))[0]
                found[element.get("name") or stem] = self.classed(element)
        return found

    def grouped(self, section: str) -> list[Element]:
        """What is in the sections of that name, with the attributes of classes."""
        found = []
        for owner in self.root.all(section):
            owner.look_for_unknown()
            for element in owner.children:
                if element.tag in KNOWN[section][1]:
                    if element.tag in KNOWN:
                        element.look_for_unknown()
                    tag = {"actuator": "actuator", "equality": "equality", "tendon": "tendon"}.get(section, element.tag)
                    found.append(self.classed(element, tag=tag))
        return found

    def classed(self, element: Element, childclass: str = "", tag: str = "") -> Element:
        """The element with the attributes of its class, or else of the nearest childclass around it."""
        name = element.get("class") or childclass or "main"
        if name not in self.classes:
            element.fail(f"has an unknown class {name!r}{did_you_mean(name, self.classes)}")
        return replace(element, attributes=_merged(element.attributes, self.classes[name].get(tag or element.tag, {})))

    # --- poses ---

    def pose(self, element: Element) -> Transform:
        return Transform(self.orientation(element), element.numbers("pos", 3, (0.0, 0.0, 0.0)))

    def orientation(self, element: Element) -> Rotation:
        told = [name for name in ORIENTATION if name in element.attributes]
        if not told:
            return Rotation()
        if len(told) > 1:
            element.fail(f"tells its orientation twice: by {told[0]} and by {told[1]}")
        x = element.numbers(told[0], {"quat": 4, "axisangle": 4, "xyaxes": 6}.get(told[0], 3))
        if told[0] == "euler":
            R = Rotation()
            for letter, angle in zip(self.eulerseq, x, strict=True):
                turn = Rotation.from_axis_angle(letter.lower(), angle * self.angle)
                R = R @ turn if letter.islower() else turn @ R  # about its own axis, or a fixed one
            return R
        with at(element):
            if told[0] == "quat":
                return Rotation.from_quaternion((*x[1:], x[0]))
            if told[0] == "axisangle":
                return Rotation.from_axis_angle(x[:3], x[3] * self.angle)
            if told[0] == "zaxis":
                return _from_z(x)
            first, y = np.array(x[:3]), np.array(x[3:])
            first = first / (np.linalg.norm(first) or 1.0)
            y = y - first * (first @ y)
            y = y / (np.linalg.norm(y) or 1.0)
            return Rotation(np.stack([first, y, np.cross(first, y)], axis=1))

    # --- bodies ---

    def bodies(self) -> list[_Body]:
        """All of them, the world first, a body before those on it."""
        world = [replace(self.root, tag="worldbody", attributes={}, children=[])]
        for section in self.root.all("worldbody"):
            section.look_for_unknown()
            world[0].children += section.children
        named = self.named(["body"])
        self.springdampers: dict[str, tuple[float, float, float]] = {}
        self.names = {"world": "ground"}  # of bodies, from those in the file
        pending, found = [(world[0], "", HERE, "")], list[_Body]()
        while pending:
            element, parent, place, childclass = pending.pop()
            name = "ground"
            if found:
                name = element.get("name") or free_name(f"body{len(found)}", named)
                if name == "world":
                    element.fail("has the name of the world")
                if name == "ground":
                    name = free_name("ground_body", named)
                    element.note(f"{element} becomes body {name!r}: 'ground' is the world")
                self.names[element.get("name") or name] = name
            inside, children = [], []
            for child, frame, of_child in self.contents(element, childclass):
                if child.tag == "body":
                    child.look_for_unknown()
                    children.append((child, name, frame @ self.pose(child), child.get("childclass") or of_child))
                elif child.tag in KNOWN:
                    child.look_for_unknown()
                    inside.append(
                        (child if child.tag in ("inertial", "freejoint") else self.classed(child, of_child), frame)
                    )
            found.append(_Body(element, name, parent, place, inside))
            pending += reversed(children)
        return found

    def contents(self, element: Element, childclass: str) -> Iterator[tuple[Element, Transform, str]]:
        """What is in a body, and in frames in it; with the pose of the frame and the class for what has none."""
        pending = [(child, HERE, childclass) for child in reversed(element.children)]
        while pending:
            child, frame, of_child = pending.pop()
            if child.tag in ("composite", "flexcomp", "attach", "replicate"):
                child.fail(f"makes bodies, which is not read: {WAY_OUT}")
            if child.tag != "frame":
                yield child, frame, of_child
                continue
            child.look_for_unknown()
            inner = frame @ self.pose(child), child.get("childclass") or of_child
            pending += [(grandchild, *inner) for grandchild in reversed(child.children)]

    def named(self, tags: Sequence[str]) -> dict[str, Element]:
        """Elements in the world by their names, each there once."""
        named: dict[str, Element] = {}
        pending = list(self.root.all("worldbody"))
        while pending:
            element = pending.pop()
            pending += element.children
            name = element.get("name")
            if name and element.tag in tags and named.setdefault(name, element) is not element:
                element.fail(f"has the name of another in line {named[name].line}")
        return named

    # --- inertias ---

    def inertia(self, body: _Body, geoms: list[_Geom]) -> Inertia:
        way = self.compiler.word("inertiafromgeom", "true false auto", "auto")
        low, high = self.compiler.numbers("inertiagrouprange", 2, (0.0, 5.0))
        told = [(element, frame) for element, frame in body.inside if element.tag == "inertial"]
        if len(told) > 1:
            told[1][0].fail(f"stands there twice; first in line {told[0][0].line}")
        geoms = [geom for geom in geoms if low <= geom.element.number("group", 0.0) <= high]
        if told and not (way == "true" and geoms):
            inertia = self.told_inertia(*told[0])
        else:
            if way == "false":
                body.element.fail("has no <inertial>, and inertiafromgeom is false")
            inertia = Inertia.zero()
            for geom in geoms:
                part = self.geom_inertia(geom, body)
                inertia = inertia + part if inertia.mass or part.mass else inertia
        return self.bounded(inertia)

    def told_inertia(self, element: Element, frame: Transform) -> Inertia:
        place = frame @ Transform(self.orientation(element), element.numbers("pos", 3))
        mass = element.number("mass")
        if mass < 0.0:
            element.fail(f"has a negative mass: {mass:g} kg")
        if ("diaginertia" in element.attributes) == ("fullinertia" in element.attributes):
            element.fail("wants either diaginertia or fullinertia")
        if "diaginertia" in element.attributes:
            about_com = np.diag(element.numbers("diaginertia", 3))
        else:
            xx, yy, zz, xy, xz, yz = element.numbers("fullinertia", 6)
            about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        R = place.rotation
        with at(element), np.errstate(over="ignore", invalid="ignore"):
            return inertia_of(
                mass, place.translation, R @ about_com @ R.T, lambda text: element.note(f"{element}: {text}")
            )

    def bounded(self, inertia: Inertia) -> Inertia:
        least, thin = self.compiler.number("boundmass", 0.0), self.compiler.number("boundinertia", 0.0)
        balance = self.compiler.truth("balanceinertia", False)
        if not (least > inertia.mass or thin > 0.0 or balance):
            return inertia
        moments, axes = np.linalg.eigh(inertia.about_com)
        moments = np.maximum(moments, thin)
        if balance and 2.0 * moments.max() > moments.sum():
            moments[:] = moments.mean()
        return Inertia(max(inertia.mass, least), inertia.com, axes @ np.diag(moments) @ axes.T, check=False)

    def geom(self, element: Element, frame: Transform) -> _Geom:
        kind = element.word("type", "plane hfield sphere capsule ellipsoid cylinder box mesh sdf", "sphere")
        size, place = element.several("size", 3, ()), HERE
        if "mesh" in element.attributes and kind in SIZES:
            return _Geom(element, "fitted", size, frame @ self.pose(element))
        if "fromto" in element.attributes and kind in ("capsule", "cylinder", "ellipsoid", "box"):
            place, half = self.between(element)
            size = (*size[:1], half) if kind in ("capsule", "cylinder") else (*size[:1], *size[:1], half)
        else:
            place = self.pose(element)
        needed = SIZES.get(kind, 0)
        if len(size) < needed or min(size[:needed], default=1.0) <= 0.0:
            element.fail(
                f"of type {kind} wants {needed} positive numbers in size, and has {' '.join(map(str, size)) or 'none'}"
            )
        return _Geom(element, kind, size, frame @ place)

    def between(self, element: Element) -> tuple[Transform, float]:
        """Frame in the middle between two points, z along them, and half their distance."""
        ends = np.reshape(element.numbers("fromto", 6), (2, 3))
        along = ends[0] - ends[1]
        length = float(np.linalg.norm(along))
        if not 0.0 < length < math.inf:
            element.fail("has the same point twice in fromto, or points too far away")
        return Transform(_from_z(along), ends.mean(axis=0)), length / 2.0

    def geom_inertia(self, geom: _Geom, body: _Body) -> Inertia:
        element, (a, b, c) = geom.element, (*geom.size, 0.0, 0.0, 0.0)[:3]
        told, density = element.attributes.get("mass"), element.number("density", 1000.0)
        if geom.kind in ("plane", "hfield") or (density if told is None else element.number("mass")) == 0.0:
            return Inertia.zero()
        if geom.kind not in SIZES:
            element.fail(
                f"gives {body.element} its mass by mesh {element.get('mesh')!r}, which is not read: write an <inertial>, or {WAY_OUT}"
            )
        if element.truth("shellinertia", False):
            element.fail(f"has its mass on its surface, which is not read: write an <inertial>, or {WAY_OUT}")
        volume, ratios = _solid(geom.kind, a, b, c)
        mass = density * volume if told is None else element.number("mass")
        if mass < 0.0:
            element.fail(f"has a negative mass: {mass:g} kg")
        with at(element):
            return Inertia(mass, (0.0, 0.0, 0.0), np.diag([mass * r for r in ratios])).transformed(geom.place)

    # --- joints and what drives them ---

    def limit(self, element: Element, limited: str, limits: str) -> tuple[float, float] | None:
        told = element.word(limited, "true false auto", "auto")
        if told == "false" or limits not in element.attributes:
            return None
        low, high = element.numbers(limits, 2)
        if told == "auto" and not self.autolimits:
            element.note(f"{limits} of <{element.tag}> is not read: autolimits is false, and {limited} is not true")
            return None
        if low > high:
            element.fail(f"has the lower end of {limits} above the upper: {low:g} > {high:g}")
        return (low, high) if low < high or told == "true" else None

    @property
    def autolimits(self) -> bool:
        return self.compiler.truth("autolimits", True)

    def hinge(self, element: Element, frame: Transform, name: str, drives: Drives) -> Hinge:
        if element.tag == "freejoint":
            if element.word("align", "true false auto", "auto") == "true":
                element.note("align of <freejoint> is not read: the body's frame stays where it is")
            element = replace(element, attributes={"type": "free"})
        kind = element.word("type", "free ball slide hinge", "hinge")
        angle = self.angle if kind in ("hinge", "ball") else 1.0
        springs = {}
        for term, off in (("stiffness", "spring"), ("damping", "damper")):
            springs[term], *higher = element.several(term, 3, (0.0,))
            if any(higher):
                element.note(f"nonlinear {term} of <{element.tag}> is not read")
            if springs[term] < 0.0:
                element.fail(f"has a negative {term}: {springs[term]:g}")
            if off in self.off:
                springs[term] = 0.0
        if element.number("springyield", 0.0):
            element.note("springyield is not read: springs stay elastic")
        limits, most = (
            self.limit(element, "limited", "range"),
            self.limit(element, "actuatorfrclimited", "actuatorfrcrange"),
        )
        reference = element.number("ref", 0.0) * angle
        time, ratio = element.numbers("springdamper", 2, (0.0, 0.0))
        if time > 0.0 and ratio > 0.0:
            self.springdampers[name] = time, ratio, element.number("springref", 0.0) * angle
        with at(element):
            properties = drives.properties(
                name, max(map(abs, most)) if most else math.inf, element.number("armature", 0.0), springs["damping"]
            )
            joint = joint_type(
                kind,
                frame.rotation @ np.array(element.numbers("axis", 3, (0.0, 0.0, 1.0))),
                stiffness=springs["stiffness"],
                rest=element.number("springref", 0.0) * angle,
                limits=(limits[0] * angle, limits[1] * angle) if limits and "limit" not in self.off else None,
                friction=0.0 if "frictionloss" in self.off else element.number("frictionloss", 0.0),
                note=element.note,
                **properties,
            )
        place = frame.apply(element.numbers("pos", 3, (0.0, 0.0, 0.0))).tolist()
        return Hinge(name, joint, place, reference if kind in ("slide", "hinge") else 0.0, name in drives.most)

    def tendons(self, joints: Mapping[str, Element]) -> dict[str, dict[str, float] | None]:
        """Coefficients by joint of fixed tendons; None of spatial ones."""
        found: dict[str, dict[str, float] | None] = {}
        for element in self.grouped("tendon"):
            name = element.get("name") or f"tendon{len(found)}"
            if name in found:
                element.fail("has the name of another tendon")
            for term in ("stiffness", "damping"):
                if any(element.several(term, 3, (0.0,))):
                    element.note(f"{term} of tendons is not read")
            for term in ("armature", "frictionloss"):
                if element.number(term, 0.0):
                    element.note(f"{term} of tendons is not read")
            if self.limit(element, "limited", "range"):
                element.note("range of tendons is not read")
            found[name] = None
            if element.tag == "fixed":
                length = found[name] = {}
                for part in element.all("joint"):
                    joint = _referred(part, "joint", joints)
                    length[joint] = length.get(joint, 0.0) + part.number("coef")
            else:
                element.note("<spatial> tendons guide nothing here, and are left out")
        return found

    def drives(self, joints: Mapping[str, Element], tendons: Mapping[str, dict[str, float] | None]) -> Drives:
        drives = Drives()
        for element in self.grouped("actuator"):
            limits = []
            if limit := self.limit(element, "forcelimited", "forcerange"):
                limits.append(max(map(abs, limit)))
            law = [element.get(name) for name in ("gaintype", "biastype", "dyntype")]
            straight = element.tag == "motor" or (element.tag == "general" and set(law) <= {None, "none", "fixed"})
            if straight and (limit := self.limit(element, "ctrllimited", "ctrlrange")):
                gain = element.several("gainprm", 10, (1.0,))[0] if element.tag == "general" else 1.0
                limits.append(abs(gain) * max(map(abs, limit)))
            elif not straight:
                element.note(f"<{element.tag}> drives what it acts on; its control law is not read")
            own = element.number("armature", 0.0), element.several("damping", 3, (0.0,))[0]
            gear, most = element.several("gear", 6, (1.0,))[0], min(limits, default=math.inf)
            kind = next((kind for kind in ("joint", "jointinparent", "tendon") if element.get(kind)), None)
            if kind == "tendon":
                name = _referred(element, "tendon", tendons)
                if (length := tendons[name]) is not None:
                    drives.add_tendon(length, gear, most, *own, element.note)
                    continue
            elif kind:
                name = _referred(element, kind, joints)
                scalar = joints[name].tag == "joint" and (joints[name].get("type") or "hinge") in ("slide", "hinge")
                drives.add(name, gear if scalar else 1.0, most if scalar else math.inf, *own)
                continue
            element.note("an actuator that acts on neither a joint nor a fixed tendon is not read")
        return drives

    # --- all of it ---

    def read(self) -> Builder:
        gravity = (0.0, 0.0, 0.0) if "gravity" in self.off else self.option.numbers("gravity", 3, (0.0, 0.0, -9.81))
        if any(self.option.number(name, 0.0) for name in ("density", "viscosity")):
            self.option.note("the drag of the medium is not read")
        for element in self.root.all("deformable"):
            element.note("<deformable> is not read")
        bodies = self.bodies()
        joints = self.named(["joint", "freejoint"])
        for body in bodies:  # with the attributes of their classes, which tell their types
            joints |= {
                element.attributes["name"]: element for element, _ in body.inside if element.get("name") in joints
            }
        equalities = self.grouped("equality")
        tendons = self.tendons(joints)
        drives = self.drives(joints, tendons)
        taken = {*joints, *(element.get("name") or "" for element in equalities)}
        with at(self.root):
            tree = Tree(self.root.get("model") or "mujoco", gravity, taken)
        tree.bodies |= {body.name for body in bodies}
        self.build(tree, bodies, drives)
        tree.set_springs(self.springdampers, self.off)
        sites = self.sites(tree, bodies)
        for element in equalities if "equality" not in self.off else ():
            with at(element):
                self.equality(tree, element, sites, tendons)
        for element in self.grouped("keyframe"):
            nq = sum(map(len, tree.qpos0.values()))
            q = tree.qpos0
            if "qpos" in element.attributes:
                q = tree.coordinates(element.numbers("qpos", nq))
            with at(element):
                tree.add_key(element.get("name") or "", q)
        return tree.finish(self.notes)

    def build(self, tree: Tree, bodies: Sequence[_Body], drives: Drives) -> None:
        geoms = {
            body.name: [self.geom(element, frame) for element, frame in body.inside if element.tag == "geom"]
            for body in bodies
        }
        inertias = {body.name: self.inertia(body, geoms[body.name]) for body in bodies[1:]}
        total, wanted = sum(inertia.mass for inertia in inertias.values()), self.compiler.number("settotalmass", -1.0)
        if wanted > 0.0 and total > 0.0:
            scale = wanted / total
            inertias = {
                name: Inertia(scale * x.mass, x.com, scale * x.about_com, check=False) for name, x in inertias.items()
            }
        for body in bodies[1:]:
            element, own = body.element, [(e, frame) for e, frame in body.inside if e.tag in ("joint", "freejoint")]
            if element.truth("mocap", False):
                element.note("a mocap body stays where it is")
            if element.number("gravcomp", 0.0):
                element.note("gravcomp is not read")
            hinges = []
            for joint, frame in own:
                name = joint.get("name")
                if name is None:
                    kind = "free" if joint.tag == "freejoint" else joint.get("type") or "hinge"
                    name = tree.invent(f"{body.name}_{kind}")
                hinges.append(self.hinge(joint, frame, name, drives))
                if hinges[-1].type.kind == "Free" and (len(own) > 1 or body.parent != "ground"):
                    joint.fail("is free, and not the only joint of a body of the world")
            with at(element):
                tree.add_body(body.name, body.parent, body.place, inertias[body.name], hinges)
            if hinges and hinges[-1].type.kind == "Free" and "quat" in element.attributes:
                w, x, y, z = element.numbers(
                    "quat", 4
                )  # of the two quaternions of a rotation, the one that was written
                q0 = np.array(tree.qpos0[hinges[-1].name])
                if q0[:4] @ (x, y, z, w) < 0.0:
                    q0[:4] *= -1.0
                    tree.qpos0[hinges[-1].name] = tuple(q0.tolist())
        for body in bodies:
            for geom in geoms[body.name]:
                self.show(tree.builder, body.name, geom)

    def show(self, builder: Builder, body: str, geom: _Geom) -> None:
        """Whatever is wrong with looks, one can compute with the robot: faults become warnings."""
        element = geom.element
        if element.number("group", 0.0) >= HIDDEN or geom.kind in ("plane", "hfield"):
            return
        try:
            with at(element):
                material = self.materials.get(element.get("material") or "")
                owner = element if "rgba" in element.attributes or material is None else material
                color = owner.numbers("rgba", 4, (0.5, 0.5, 0.5, 1.0))
                if geom.kind != "mesh":
                    if not show(builder, body, geom.kind, geom.size, geom.place, color):
                        element.note(f"a geom of type {geom.kind} is not shown")
                    return
                mesh = self.meshes[_referred(element, "mesh", self.meshes)]
                x, y, z = mesh.numbers("scale", 3, (1.0, 1.0, 1.0))
                if "refpos" in mesh.attributes or "refquat" in mesh.attributes or not mesh.get("file"):
                    mesh.fail("has refpos, refquat or no file")
                builder.add_visual(body, Mesh(self.mesh_file(mesh), (x, y, z), self.beside), geom.place, color=color)
        except ModelError as error:
            self.notes.add(str(error).split(": ", 1)[0], f"{str(error).split(': ', 1)[-1]}; it is not shown")

    def mesh_file(self, mesh: Element) -> str:
        folder = self.compiler.get("meshdir") or self.compiler.get("assetdir") or ""
        return os.path.join(folder, mesh.text("file"))

    def sites(self, tree: Tree, bodies: Sequence[_Body]) -> dict[str, tuple[str, Transform]]:
        found = {}
        for body in bodies:
            for element, frame in body.inside:
                if element.tag != "site" or not (name := element.get("name")):
                    continue
                if name in found:
                    element.fail("has the name of another site")
                place = self.between(element)[0] if "fromto" in element.attributes else self.pose(element)
                found[name] = body.name, frame @ place
                with at(element):
                    tree.add_site(name, *found[name])
        return found

    def equality(
        self,
        tree: Tree,
        element: Element,
        sites: Mapping[str, tuple[str, Transform]],
        tendons: Mapping[str, dict[str, float] | None],
    ) -> None:
        if not element.truth("active", True):
            element.note(f"{element} is inactive, and left out")
            return
        if element.tag in ("connect", "weld"):
            self.join(tree, element, sites)
            return
        if element.tag not in ("joint", "tendon"):
            element.fail(f"is of a kind that is not read: {WAY_OUT}")
        names = [
            _referred(element, name, tree.qpos0 if element.tag == "joint" else tendons)
            for name in (f"{element.tag}1", f"{element.tag}2")
            if name in element.attributes
        ]
        lengths = [{name: 1.0} if element.tag == "joint" else tendons[name] for name in names]
        if not names or f"{element.tag}1" not in element.attributes:
            element.fail(f"has no {element.tag}1")
        if len(set(names)) < len(names):
            element.fail(f"names {names[0]!r} twice")
        for name, length in zip(names, lengths, strict=True):
            if length is None:
                element.fail(f"is of the spatial tendon {name!r}, which is not read")
            for joint in length:
                if len(tree.qpos0[joint]) > 1:
                    element.fail(f"is of joint {joint!r}, which has several coordinates")
        told = element.several("polycoef", 5, DEFAULT)
        first, second = [*lengths, {}][:2]
        tree.couple(
            element.get("name") or tree.invent(" follows ".join(names)),
            first or {},
            second or {},
            (*told, *DEFAULT[len(told) :]),
        )

    def join(self, tree: Tree, element: Element, sites: Mapping[str, tuple[str, Transform]]) -> None:
        rotation = element.tag == "weld" and element.number("torquescale", 1.0) != 0.0
        at_one: Transform | None
        at_other: Transform | None
        if "site1" in element.attributes:
            (one, at_one), (other, at_other) = (sites[_referred(element, f"site{k}", sites)] for k in (1, 2))
        else:
            one = self.names[_referred(element, "body1", self.names)]
            other = self.names[_referred(element, "body2", self.names) if "body2" in element.attributes else "world"]
            anchor = element.numbers("anchor", 3, (0.0, 0.0, 0.0) if element.tag == "weld" else None)
            at_one, at_other = None, Transform(translation=anchor)
            if element.tag == "connect":
                at_one, at_other = at_other, None
            relpose = element.several("relpose", 7, (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
            relpose += (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)[len(relpose) :]
            if element.tag == "weld" and any(relpose[3:]):
                at_one = Transform(Rotation.from_quaternion((*relpose[4:], relpose[3])), relpose[:3])
        name = element.get("name") or tree.invent(f"{one} to {other}")
        tree.join(name, (one, other), at_one, at_other, rotation=rotation)


def _referred(element: Element, attribute: str, known: Mapping[str, object]) -> str:
    name = element.text(attribute)
    if name not in known:
        element.fail(f"names the {attribute} {name!r}, which is not there{did_you_mean(name, known)}")
    return name


def _from_z(along: Sequence[float] | np.ndarray) -> Rotation:
    """The least rotation that takes z there; about x by half a turn for -z."""
    x, y, z = (np.asarray(along) / (np.abs(along).max() or 1.0)).tolist()
    across = math.hypot(x, y)
    if across == 0.0 == z:
        raise ModelError("a direction of zero length")
    return Rotation.from_axis_angle((-y, x, 0.0) if across > 1e-10 * abs(z) else "x", math.atan2(across, z))


# geoms that have a mass of their own, and how many numbers tell their size
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}


def _solid(kind: str, a: float, b: float, c: float) -> tuple[float, tuple[float, float, float]]:
    """Volume, and principal moments of inertia by mass: of radius a and half length b, or of half sizes a, b, c."""
    if kind in ("sphere", "ellipsoid"):
        a, b, c = (a, a, a) if kind == "sphere" else (a, b, c)
        return 4.0 / 3.0 * math.pi * a * b * c, ((b * b + c * c) / 5.0, (a * a + c * c) / 5.0, (a * a + b * b) / 5.0)
    if kind == "box":
        return 8.0 * a * b * c, ((b * b + c * c) / 3.0, (a * a + c * c) / 3.0, (a * a + b * b) / 3.0)
    middle, ends = math.pi * a * a * 2.0 * b, (4.0 / 3.0 * math.pi * a * a * a if kind == "capsule" else 0.0)
    of_ends = ends / (middle + ends)
    across = (1.0 - of_ends) * (a * a / 4.0 + b * b / 3.0) + of_ends * (0.4 * a * a + b * b + 0.75 * a * b)
    return middle + ends, (across, across, (1.0 - of_ends) * a * a / 2.0 + of_ends * 0.4 * a * a)
