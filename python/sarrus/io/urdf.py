"""URDF, read with the standard library's expat.

What becomes of each part of a file:

============================  =====================================================================================
`<link>`                      a body; its frame is the link's frame
`<inertial>`                  the body's inertia; the tensor is turned by the origin's rpy; none: a massless body.
                              Real robot files hold tensors that no body can have (a principal moment larger than
                              the sum of the other two, or negative): they are kept as they stand, with a warning
`<joint>`                     a joint, in the order of the file: fixed, revolute, continuous, prismatic, floating,
                              planar (the axis is the plane's normal), ball
`<limit>`                     limits, velocity_limit, effort_limit. Zeros are what exporters write for "not set":
                              a velocity or effort of zero is no limit, and an empty range none, with a warning;
                              so are lower and upper of other types than revolute and prismatic
`<dynamics>`                  damping, friction: part of what inverse dynamics returns
`<mimic>`                     a coupler "<joint> mimics <other>" between two joints of one axis, both kept in the tree;
                              otherwise a warning, and the joint moves freely
the root link                 is fixed to the ground, or floats, by a joint "root_joint", the first of all
a link called "ground"        becomes the body "ground_link", with a warning: "ground" is the world
`<visual>`                    what `sarrus.view` shows: box, cylinder, sphere, mesh. A faulty one is left out, with a warning. Mesh
                              files are not looked for until they are shown: not in the folder alone, see `sarrus.load`
`<material>`                  the colour of a visual, there or by name; its texture is not read, a mesh keeps its own
collision, transmission,      known, and of no concern to the dynamics
gazebo, ros2_control, sensor,
calibration, safety_controller
anything else                 a warning
============================  =====================================================================================

A document type declaration is refused, and with it entities: a model file needs none, an attack does.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn
from xml.parsers import expat

import numpy as np

from ..building.builder import Builder
from ..description import joints
from ..description.specs import Box, Cylinder, Mesh, Shape, Sphere
from ..errors import ModelError, did_you_mean, printable
from ..spatial import Inertia, Transform

__all__ = ["read"]


def read(
    text: str | bytes,
    *,
    source: str = "<string>",
    floating_base: bool = False,
    beside: str = "",
    package_dirs: Iterable[str] = (),
) -> Builder:
    """Builder of the mechanism that a URDF document describes.

    Parameters
    ----------
    text : the document
    source : what errors and warnings call it
    floating_base : whether the root link floats (`sarrus.Free`) instead of being fixed to the ground
    beside : folder of the file, where the search for meshes starts; default: the working directory
    package_dirs : folders that hold the packages that meshes lie in, or are one

    Raises
    ------
    ModelError
        With file, line and element; or floating_base is no bool.

    Examples
    --------
    >>> from sarrus.io import urdf
    >>> b = urdf.read('<robot name="stone"><link name="stone"/></robot>')
    >>> b.add_frame("top", "stone", (0, 0, 0.1))
    >>> b.build().frames
    ('ground', 'stone', 'top')
    """
    if not isinstance(floating_base, bool | np.bool_):
        raise ModelError(f"floating_base is True or False; got {floating_base!r}")
    robot = _parse(text, source)
    if robot.tag != "robot":
        _fail(robot, "is not the root of a URDF (<robot>), the format that is read today")
    notes = _Notes()
    notes.look_for_unknown(robot)
    links, joint_elements = _by_name(robot, "link"), _by_name(robot, "joint")
    if not links:
        _fail(robot, "has no links")
    ends = {name: _ends(element, links, notes) for name, element in joint_elements.items()}
    root = _root(robot, links, ends)

    body = {name: name for name in links}
    if "ground" in links:
        body["ground"] = _free_name("ground_link", links)
        notes.add(links["ground"], f"{links['ground']} becomes body {body['ground']!r}: 'ground' is the world")
    with _at(robot):
        builder = Builder(name=robot.get("name") or "robot")
    for name, link in links.items():
        with _at(link):
            builder.add_body(body[name], _inertia(link, notes))
    root_joint = joints.Free() if floating_base else joints.Fixed()
    builder.add_joint(_free_name("root_joint", joint_elements), root_joint, "ground", body[root])
    made = {}
    for name, element in joint_elements.items():
        with _at(element):
            made[name] = _joint(element, notes)
    mimics = _mimics(joint_elements, made, notes)
    coupled = {name for follower, mimic in mimics.items() for name in (follower, mimic.leader)}
    for name, element in joint_elements.items():
        joint, (parent, child) = made[name], ends[name]
        with _at(element):
            # URDF has no word for passive: what moves is driven, but for a joint that follows another
            driven = joint.nv > 0 and joint.kind != "Free" and not element.all("mimic")
            at_parent, tree = _origin(element, notes), name in coupled
            builder.add_joint(name, joint, body[parent], body[child], at_parent=at_parent, actuated=driven, tree=tree)
    taken = set(joint_elements)
    for name, mimic in mimics.items():
        coupler = _free_name(f"{name} mimics {mimic.leader}", taken)
        taken.add(coupler)  # "a mimics b" may follow c, and a "b mimics c"
        with _at(joint_elements[name]):
            builder.add_coupler(coupler, {name: 1.0, mimic.leader: -mimic.multiplier}, offset=mimic.offset)
    looks = _Looks(robot, beside, tuple(package_dirs))
    for name, link in links.items():
        looks.give(builder, body[name], link)
    builder.warnings += [*notes, *looks.faults]
    return builder


# --- the document -------------------------------------------------------------------------------------------------

DEEPEST = 100  # a model nests a dozen levels; thousands are an attack
LONGEST = 10000  # letters of numbers: a few dozen each are all that they need


@dataclass(eq=False)
class _Element:
    """An element that knows where it stands."""

    tag: str
    attributes: dict[str, str]
    source: str
    line: int
    owner: _Element | None
    children: list[_Element] = field(default_factory=list)

    def get(self, attribute: str) -> str | None:
        return self.attributes.get(attribute)

    def all(self, tag: str) -> list[_Element]:
        return [child for child in self.children if child.tag == tag]

    def __str__(self) -> str:
        """As an error names it: <mass> of <link name='arm'>."""
        name, above = self.get("name"), self.owner
        if name is not None:
            return f"<{self.tag} name={name!r}>"
        while above is not None and above.get("name") is None:
            above = above.owner
        return f"<{self.tag}>" if above is None or above.owner is None else f"<{self.tag}> of {above}"


def _parse(text: str | bytes, source: str) -> _Element:
    if not isinstance(text, str | bytes | bytearray | memoryview):
        raise TypeError(f"text is the document itself, str or bytes; got {text!r}: sarrus.load reads files")
    parser = expat.ParserCreate()
    stack: list[_Element] = []
    root: list[_Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        owner = stack[-1] if stack else None
        element = _Element(tag, attributes, source, parser.CurrentLineNumber, owner)
        (root if owner is None else owner.children).append(element)
        stack.append(element)
        if len(stack) > DEEPEST:
            _fail(element, f"is nested deeper than {DEEPEST} elements")
        if tag.startswith("xacro:"):
            _fail(element, "is a xacro macro; expand the file first: xacro FILE.xacro > FILE.urdf")

    def end(_: str) -> None:
        stack.pop()

    def refuse(*_: object) -> NoReturn:
        raise ModelError(f"{source}:{parser.CurrentLineNumber}: a model file needs no DOCTYPE and no entities: refused")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ModelError(f"{source}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}") from None
    except ModelError:
        raise
    except (LookupError, ValueError) as error:  # the ways of an encoding to be wrong
        raise ModelError(f"{source}: cannot decode: {error}") from None
    return root[0]


def _fail(element: _Element, message: str) -> NoReturn:
    raise ModelError(f"{element.source}:{element.line}: {element} {message}")


@contextmanager
def _at(element: _Element) -> Iterator[None]:
    """Inside, a ModelError without a place is given this one."""
    try:
        yield
    except ModelError as error:
        if str(error).startswith(f"{element.source}:"):
            raise
        raise ModelError(f"{element.source}:{element.line}: {element}: {error}") from None


# what may stand in an element: attributes | children; without bearing on the dynamics, and not asked about further: in ()
GRAMMAR = {
    "robot": "name version | link joint (material transmission gazebo ros2_control sensor)",
    "link": "name | inertial (visual collision)",
    "inertial": "| origin mass inertia",
    "joint": "name type | origin parent child axis limit dynamics mimic (calibration safety_controller)",
    "origin": "xyz rpy |",
    "mass": "value |",
    "inertia": "ixx iyy izz ixy ixz iyz |",
    "axis": "xyz |",
    "limit": "lower upper effort velocity |",
    "dynamics": "damping friction |",
    "mimic": "joint multiplier offset |",
    "parent": "link |",
    "child": "link |",
}
KNOWN = {
    tag: tuple(frozenset(part.replace("(", " ").replace(")", " ").split()) for part in rule.split("|"))
    for tag, rule in GRAMMAR.items()
}


class _Notes:
    """Warnings, the same one once: where it was first met, and how often."""

    def __init__(self) -> None:
        self.met: dict[str, tuple[_Element, int]] = {}

    def add(self, element: _Element, message: str) -> None:
        first, n = self.met.get(message, (element, 0))
        self.met[message] = first, n + 1

    def __iter__(self) -> Iterator[str]:
        for message, (element, n) in self.met.items():
            yield f"{element.source}:{element.line}: {message}" + (f" (and {n - 1} more)" if n > 1 else "")

    def look_for_unknown(self, element: _Element) -> None:
        attributes, children = KNOWN[element.tag]
        for attribute in element.attributes:
            if attribute not in attributes and not attribute.startswith("xmlns"):
                self.add(element, f"attribute {attribute!r} of <{element.tag}> is not read")
        for child in element.children:
            if child.tag not in children:
                self.add(child, f"<{child.tag}> in <{element.tag}> is not read")


def _child(element: _Element, tag: str, notes: _Notes) -> _Element | None:
    found = element.all(tag)
    if len(found) > 1:
        _fail(found[1], f"stands there twice; first in line {found[0].line}")
    if not found:
        return None
    notes.look_for_unknown(found[0])
    return found[0]


def _by_name(robot: _Element, tag: str) -> dict[str, _Element]:
    named: dict[str, _Element] = {}
    for element in robot.all(tag):
        name = _text(element, "name")
        if name in named:
            _fail(element, f"has the name of another in line {named[name].line}")
        named[name] = element
    return named


def _text(element: _Element, attribute: str) -> str:
    value = element.get(attribute)
    if not value:
        _fail(element, f"has no {attribute}")
    return value


def _numbers(
    element: _Element, attribute: str, n: int, default: tuple[float, ...] | None = None, *, finite: bool = True
) -> tuple[float, ...]:
    text = element.get(attribute)
    if text is None and default is not None:
        return default
    text = _text(element, attribute)
    words = text.split(None, n)  # not all of them: a file may hold millions
    try:
        # Python reads 1_000; nobody else does
        values = tuple(map(float, words)) if len(words) == n and len(text) < LONGEST and "_" not in text else ()
    except ValueError:
        values = ()
    if len(values) != n:
        _fail(element, f"wants {'a number' if n == 1 else f'{n} numbers'} in {attribute}, not {text[:60]!r}")
    if not all(map(math.isfinite, values)) and (finite or any(map(math.isnan, values))):
        _fail(element, f"has a number in {attribute} that is not finite: {text[:60]!r}")
    return values


def _number(element: _Element, attribute: str, default: float | None = None, *, finite: bool = True) -> float:
    return _numbers(element, attribute, 1, None if default is None else (default,), finite=finite)[0]


# --- the graph ----------------------------------------------------------------------------------------------------


def _ends(joint: _Element, links: dict[str, _Element], notes: _Notes) -> tuple[str, str]:
    names = []
    for tag in ("parent", "child"):
        end = _child(joint, tag, notes)
        if end is None:
            _fail(joint, f"has no <{tag}>")
        names.append(_text(end, "link"))
        if names[-1] not in links:
            _fail(end, f"names an unknown link {names[-1]!r}{did_you_mean(names[-1], links)}")
    if names[0] == names[1]:
        _fail(joint, f"joins link {names[0]!r} to itself")
    return names[0], names[1]


def _root(robot: _Element, links: dict[str, _Element], ends: dict[str, tuple[str, str]]) -> str:
    children = {child for _, child in ends.values()}
    roots = [name for name in links if name not in children]
    if not roots:
        _fail(robot, "has no root: every link is the child of some joint")
    if len(roots) > 1:
        _fail(robot, f"has {len(roots)} links that are no joint's child, {_list(roots)}: one root is wanted")
    # one root does not yet mean connected: a ring of links hangs on nothing
    successors: dict[str, list[str]] = {name: [] for name in links}
    for parent, child in ends.values():
        successors[parent].append(child)
    reached, frontier = {roots[0]}, [roots[0]]
    while frontier:
        new = [child for child in successors[frontier.pop()] if child not in reached]
        reached.update(new)
        frontier.extend(new)
    adrift = [name for name in links if name not in reached]
    if adrift:
        _fail(links[adrift[0]], f"is not connected to the root {roots[0]!r}; nor are others: {_list(adrift)}")
    return roots[0]


def _list(names: list[str], most: int = 5) -> str:
    return ", ".join(map(repr, names[:most])) + (" …" if len(names) > most else "")


def _free_name(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name


# --- links and joints ---------------------------------------------------------------------------------------------


def _origin(element: _Element, notes: _Notes) -> Transform | None:
    origin = _child(element, "origin", notes)
    if origin is None:
        return None
    zero = (0.0, 0.0, 0.0)
    place, (roll, pitch, yaw) = _numbers(origin, "xyz", 3, zero), _numbers(origin, "rpy", 3, zero)
    turns = roll or pitch or yaw
    return Transform.from_rpy(roll, pitch, yaw, place) if turns else Transform(translation=place)


def _inertia(link: _Element, notes: _Notes) -> Inertia:
    notes.look_for_unknown(link)
    inertial = _child(link, "inertial", notes)
    if inertial is None:
        return Inertia.zero()
    mass, tensor = _child(inertial, "mass", notes), _child(inertial, "inertia", notes)
    if mass is None or tensor is None:
        _fail(inertial, f"has no <{'mass' if mass is None else 'inertia'}>")
    m = _number(mass, "value")
    if m < 0:
        _fail(mass, f"is negative: {m:g} kg")
    xx, yy, zz = (_number(tensor, name) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (_number(tensor, name, 0.0) for name in ("ixy", "ixz", "iyz"))
    about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    at = _origin(inertial, notes) or IDENTITY
    with np.errstate(over="ignore", invalid="ignore"):  # it is refused then
        inertia = Inertia(m, at.translation, at.rotation @ about_com @ at.rotation.T, check=False)
    principal = () if inertia.is_physical() else inertia.principal_moments.tolist()
    # a radius of gyration under a micron is what rounding leaves of a point mass
    if max(map(abs, principal), default=0.0) > 1e-12 * m:
        moments = ", ".join(f"{x:.3g}" for x in principal)
        fault = f"no body of {m:g} kg has principal moments of inertia {moments} kg m²; the values are kept"
        notes.add(tensor, f"{link}: {fault}")
    return inertia


IDENTITY = Transform()
AXIAL = {
    "revolute": joints.Revolute,
    "continuous": joints.Revolute,
    "prismatic": joints.Prismatic,
    "planar": joints.Planar,
}


def _joint(element: _Element, notes: _Notes) -> joints.JointType:
    notes.look_for_unknown(element)
    kind = _text(element, "type")
    if kind == "fixed":  # whatever axis or limit its writer left there
        return joints.Fixed()
    properties = {**_limits(element, kind, notes), **_losses(element, notes)}
    if kind == "floating":
        return joints.Free(**properties)
    if kind == "ball":
        return joints.Spherical(**properties)
    if kind not in AXIAL:
        _fail(element, f"has an unknown type {kind!r}; known are fixed, floating, ball, {', '.join(AXIAL)}")
    axis = _child(element, "axis", notes)
    if axis is None:
        return AXIAL[kind]("x", **properties)
    direction = _numbers(axis, "xyz", 3)
    if not any(direction):
        _fail(axis, "is zero; a joint that moves wants a direction")
    return AXIAL[kind](direction, **properties)


def _limits(joint: _Element, kind: str, notes: _Notes) -> dict[str, object]:
    limit = _child(joint, "limit", notes)
    ranged = kind in ("revolute", "prismatic")
    if limit is None:
        if ranged:
            notes.add(joint, f"{joint} has no <limit>: taken as unlimited")
        return {}
    limits: dict[str, object] = {}
    lower, upper = (_number(limit, name, 0.0, finite=False) for name in ("lower", "upper"))
    if lower > upper:
        _fail(limit, f"has its lower limit above the upper: {lower:g} > {upper:g}")
    if ranged and lower == upper:
        notes.add(limit, f"{joint} has an empty range: taken as unlimited")
    elif ranged:
        limits["limits"] = lower, upper
    elif any(x and math.isfinite(x) for x in (lower, upper)):
        notes.add(limit, f"lower and upper limit of a {kind} joint are not read")
    for name in ("velocity", "effort"):
        most = _number(limit, name, 0.0, finite=False)
        if most > 0:
            limits[f"{name}_limit"] = most
        elif most < 0:
            notes.add(limit, f"{joint} has a negative limit of {name}: taken as unlimited")
    return limits


def _losses(joint: _Element, notes: _Notes) -> dict[str, float]:
    dynamics = _child(joint, "dynamics", notes)
    if dynamics is None:
        return {}
    losses = {name: _number(dynamics, name, 0.0) for name in ("damping", "friction")}
    for name, value in losses.items():
        if value < 0:
            _fail(dynamics, f"has a negative {name}: {value:g}")
    return losses


class _Looks:
    """What the links look like. Whatever is wrong with that, one can compute with the robot: faults become warnings.

    Attributes
    ----------
    faults : a line for each visual that was left out, and each colour
    """

    def __init__(self, robot: _Element, beside: str, package_dirs: tuple[str, ...]) -> None:
        self.faults: list[str] = []
        self._beside, self._package_dirs = beside, package_dirs
        self._colors: dict[_Element | str | None, tuple[float, ...]] = {}
        # what one visual defines others may name; the robot's own come first
        for owner in (robot, *(visual for link in robot.all("link") for visual in link.all("visual"))):
            for material in owner.all("material"):
                for color in material.all("color"):
                    try:
                        self._colors[material] = _rgba(color)
                    except ModelError as error:
                        self.faults.append(f"{error}; the colour is left out")
                        continue
                    self._colors.setdefault(material.get("name"), self._colors[material])

    def give(self, builder: Builder, body: str, link: _Element) -> None:
        for visual in link.all("visual"):
            materials = visual.all("material")
            color = next(
                (self._colors[key] for m in materials for key in (m, m.get("name")) if key in self._colors), None
            )
            try:
                with _at(visual):
                    builder.add_visual(body, self._shape(visual), _origin(visual, _Notes()), color=color)
            except ModelError as error:
                self.faults.append(f"{error}; it is not shown")

    def _shape(self, visual: _Element) -> Shape:
        shapes = [shape for geometry in visual.all("geometry") for shape in geometry.children]
        if len(shapes) != 1:
            _fail(visual, f"wants one shape in a <geometry>, and has {len(shapes)}")
        shape = shapes[0]
        if shape.tag == "box":
            x, y, z = _numbers(shape, "size", 3)
            return Box((x, y, z))
        if shape.tag == "cylinder":
            return Cylinder(_number(shape, "radius"), _number(shape, "length"))
        if shape.tag == "sphere":
            return Sphere(_number(shape, "radius"))
        if shape.tag == "mesh":
            x, y, z = _numbers(shape, "scale", 3, (1.0, 1.0, 1.0))
            return Mesh(_text(shape, "filename"), (x, y, z), self._beside, self._package_dirs)
        _fail(shape, "is an unknown shape; known are box, cylinder, sphere, mesh")


def _rgba(color: _Element) -> tuple[float, ...]:
    numbers = _numbers(color, "rgba", 4)
    if min(numbers) < 0 or max(numbers) > 1:
        _fail(color, f"wants numbers from 0 to 1 in rgba, not {color.get('rgba')!r}")
    return numbers


class _Mimic(NamedTuple):
    """q = multiplier q_leader + offset."""

    leader: str
    multiplier: float
    offset: float


def _mimics(elements: dict[str, _Element], made: dict[str, joints.JointType], notes: _Notes) -> dict[str, _Mimic]:
    """The joints that follow another."""
    found = {}
    for name, element in elements.items():
        mimic = _child(element, "mimic", notes)
        if mimic is None or made[name].nv == 0:
            continue
        leader = _text(mimic, "joint")
        multiplier, offset = _number(mimic, "multiplier", 1.0), _number(mimic, "offset", 0.0)
        if leader == name:
            _fail(mimic, "names the joint itself")
        of_many = [j for j in (name, leader) if j in made and made[j].nq != 1]
        if leader in made and not of_many:
            found[name] = _Mimic(leader, multiplier, offset)
            continue
        law = f"{name} = {multiplier:g} {leader}" + (f" {offset:+g}" if offset else "")
        why = f"joint {of_many[0]!r} is not of one axis" if of_many else f"there is no joint {leader!r}"
        notes.add(mimic, f"{element} moves freely, though it mimics ({printable(law)}): {why}")
    return found
