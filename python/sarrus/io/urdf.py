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
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..building.builder import Builder
from ..description import joints
from ..description.specs import Box, Cylinder, Mesh, Shape, Sphere
from ..errors import ModelError, did_you_mean, printable
from ..spatial import Inertia, Transform
from .document import Element, at, by_name, free_name, grammar, listed, parse

__all__ = ["read"]

KNOWN = grammar(
    {
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
)


def read(
    text: str | bytes,
    *,
    source: str = "<string>",
    floating_base: bool = False,
    beside: str = "",
    package_dirs: Iterable[str] = (),
) -> Builder:
    """Builder of the mechanism that a URDF document describes, which can be added to. A ModelError tells file, line and element.

    Parameters
    ----------
    text : the document
    source : what errors and warnings call it
    beside : folder of the file, where the search for meshes starts; default: the working directory
    floating_base, package_dirs : as of :func:`sarrus.load`

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
    robot = parse(text, source, KNOWN)
    if robot.tag != "robot":
        robot.fail("is not the root of a URDF (<robot>), the format that is read today")
    robot.look_for_unknown()
    links, joint_elements = by_name(robot, "link"), by_name(robot, "joint")
    if not links:
        robot.fail("has no links")
    ends = {name: _ends(element, links) for name, element in joint_elements.items()}
    root = _root(robot, links, ends)

    body = {name: name for name in links}
    if "ground" in links:
        body["ground"] = free_name("ground_link", links)
        links["ground"].note(f"{links['ground']} becomes body {body['ground']!r}: 'ground' is the world")
    with at(robot):
        builder = Builder(name=robot.get("name") or "robot")
    for name, link in links.items():
        with at(link):
            builder.add_body(body[name], _inertia(link))
    root_joint = joints.Free() if floating_base else joints.Fixed()
    builder.add_joint(free_name("root_joint", joint_elements), root_joint, "ground", body[root])
    made = {}
    for name, element in joint_elements.items():
        with at(element):
            made[name] = _joint(element)
    mimics = _mimics(joint_elements, made)
    coupled = {name for follower, mimic in mimics.items() for name in (follower, mimic.leader)}
    for name, element in joint_elements.items():
        joint, (parent, child) = made[name], ends[name]
        with at(element):
            # URDF has no word for passive: what moves is driven, but for a joint that follows another
            driven = joint.nv > 0 and joint.kind != "Free" and not element.all("mimic")
            at_parent, tree = _origin(element), name in coupled
            builder.add_joint(name, joint, body[parent], body[child], at_parent=at_parent, actuated=driven, tree=tree)
    taken = set(joint_elements)
    for name, mimic in mimics.items():
        coupler = free_name(f"{name} mimics {mimic.leader}", taken)
        taken.add(coupler)  # "a mimics b" may follow c, and a "b mimics c"
        with at(joint_elements[name]):
            builder.add_coupler(coupler, {name: 1.0, mimic.leader: -mimic.multiplier}, offset=mimic.offset)
    faults = _dress(builder, robot, {body[name]: link for name, link in links.items()}, beside, tuple(package_dirs))
    builder.warnings += [*robot.notes, *faults]
    return builder


# --- the graph ----------------------------------------------------------------------------------------------------


def _ends(joint: Element, links: dict[str, Element]) -> tuple[str, str]:
    ends = joint.needed("parent"), joint.needed("child")
    parent, child = (end.text("link") for end in ends)
    for end, name in zip(ends, (parent, child), strict=True):
        if name not in links:
            end.fail(f"names an unknown link {name!r}{did_you_mean(name, links)}")
    if parent == child:
        joint.fail(f"joins link {parent!r} to itself")
    return parent, child


def _root(robot: Element, links: dict[str, Element], ends: dict[str, tuple[str, str]]) -> str:
    children = {child for _, child in ends.values()}
    roots = [name for name in links if name not in children]
    if not roots:
        robot.fail("has no root: every link is the child of some joint")
    if len(roots) > 1:
        robot.fail(f"has {len(roots)} links that are no joint's child, {listed(roots)}: one root is wanted")
    # one root does not yet mean connected: a ring of links hangs on nothing
    adrift: dict[str, list[str]] = {name: [] for name in links}
    for parent, child in ends.values():
        adrift[parent].append(child)
    frontier = [roots[0]]
    while frontier:
        frontier += adrift.pop(frontier.pop(), [])
    if names := list(adrift):
        links[names[0]].fail(f"is not connected to the root {roots[0]!r}; nor are others: {listed(names)}")
    return roots[0]


# --- links and joints ---------------------------------------------------------------------------------------------

ZERO = (0.0, 0.0, 0.0)


def _origin(element: Element) -> Transform:
    origin = element.child("origin")
    if origin is None:
        return Transform()
    place, (roll, pitch, yaw) = origin.numbers("xyz", 3, ZERO), origin.numbers("rpy", 3, ZERO)
    turned = roll or pitch or yaw
    return Transform.from_rpy(roll, pitch, yaw, place) if turned else Transform(translation=place)


def _inertia(link: Element) -> Inertia:
    link.look_for_unknown()
    inertial = link.child("inertial")
    if inertial is None:
        return Inertia.zero()
    mass, tensor = inertial.needed("mass"), inertial.needed("inertia")
    m = mass.number("value")
    if m < 0:
        mass.fail(f"is negative: {m:g} kg")
    xx, yy, zz = (tensor.number(name) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (tensor.number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    at = _origin(inertial)
    with np.errstate(over="ignore", invalid="ignore"):  # it is refused then
        inertia = Inertia(m, at.translation, at.rotation @ about_com @ at.rotation.T, check=False)
    principal = () if inertia.is_physical() else inertia.principal_moments.tolist()
    # a radius of gyration under a micron is what rounding leaves of a point mass
    if max(map(abs, principal), default=0.0) > 1e-12 * m:
        moments = ", ".join(f"{x:.3g}" for x in principal)
        fault = f"no body of {m:g} kg has principal moments of inertia {moments} kg m²; the values are kept"
        tensor.note(f"{link}: {fault}")
    return inertia


AXIAL = {
    "revolute": joints.Revolute, "continuous": joints.Revolute, "prismatic": joints.Prismatic, "planar": joints.Planar,
}  # fmt: skip


def _joint(element: Element) -> joints.JointType:
    element.look_for_unknown()
    kind = element.text("type")
    if kind == "fixed":  # whatever axis or limit its writer left there
        return joints.Fixed()
    properties = {**_limits(element, kind), **_losses(element)}
    if kind == "floating":
        return joints.Free(**properties)
    if kind == "ball":
        return joints.Spherical(**properties)
    if kind not in AXIAL:
        element.fail(f"has an unknown type {kind!r}; known are fixed, floating, ball, {', '.join(AXIAL)}")
    axis = element.child("axis")
    if axis is None:
        return AXIAL[kind]("x", **properties)
    direction = axis.numbers("xyz", 3)
    if not any(direction):
        axis.fail("is zero; a joint that moves wants a direction")
    return AXIAL[kind](direction, **properties)


def _limits(joint: Element, kind: str) -> dict[str, object]:
    limit = joint.child("limit")
    ranged = kind in ("revolute", "prismatic")
    if limit is None:
        if ranged:
            joint.note(f"{joint} has no <limit>: taken as unlimited")
        return {}
    limits: dict[str, object] = {}
    lower, upper = (limit.number(name, 0.0, finite=False) for name in ("lower", "upper"))
    if lower > upper:
        limit.fail(f"has its lower limit above the upper: {lower:g} > {upper:g}")
    if ranged and lower == upper:
        limit.note(f"{joint} has an empty range: taken as unlimited")
    elif ranged:
        limits["limits"] = lower, upper
    elif any(x and math.isfinite(x) for x in (lower, upper)):
        limit.note(f"lower and upper limit of a {kind} joint are not read")
    for name in ("velocity", "effort"):
        most = limit.number(name, 0.0, finite=False)
        if most > 0:
            limits[f"{name}_limit"] = most
        elif most < 0:
            limit.note(f"{joint} has a negative limit of {name}: taken as unlimited")
    return limits


def _losses(joint: Element) -> dict[str, float]:
    dynamics = joint.child("dynamics")
    if dynamics is None:
        return {}
    losses = {name: dynamics.number(name, 0.0) for name in ("damping", "friction")}
    for name, value in losses.items():
        if value < 0:
            dynamics.fail(f"has a negative {name}: {value:g}")
    return losses


class _Mimic(NamedTuple):
    """q = multiplier q_leader + offset."""

    leader: str
    multiplier: float
    offset: float


def _mimics(elements: dict[str, Element], made: dict[str, joints.JointType]) -> dict[str, _Mimic]:
    """The joints that follow another."""
    found = {}
    for name, element in elements.items():
        mimic = element.child("mimic")
        if mimic is None or made[name].nv == 0:
            continue
        leader, multiplier, offset = mimic.text("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
        if leader == name:
            mimic.fail("names the joint itself")
        of_many = [j for j in (name, leader) if j in made and made[j].nq != 1]
        if leader in made and not of_many:
            found[name] = _Mimic(leader, multiplier, offset)
            continue
        law = f"{name} = {multiplier:g} {leader}" + (f" {offset:+g}" if offset else "")
        why = f"joint {of_many[0]!r} is not of one axis" if of_many else f"there is no joint {leader!r}"
        mimic.note(f"{element} moves freely, though it mimics ({printable(law)}): {why}")
    return found


# --- looks: whatever is wrong with them, one can compute with the robot, and faults become warnings -----------------


def _dress(
    builder: Builder, robot: Element, links: dict[str, Element], beside: str, package_dirs: tuple[str, ...]
) -> list[str]:
    """Give bodies their visuals; a line for each visual that was left out, and each colour."""
    faults: list[str] = []
    visuals = [(body, visual) for body, link in links.items() for visual in link.all("visual")]
    colors: dict[Element | str | None, tuple[float, ...]] = {}
    # what one visual defines others may name; the robot's own come first
    for material in (m for owner in (robot, *(visual for _, visual in visuals)) for m in owner.all("material")):
        for color in material.all("color"):
            try:
                colors[material] = _rgba(color)
            except ModelError as error:
                faults.append(f"{error}; the colour is left out")
            else:
                colors.setdefault(material.get("name"), colors[material])
    for body, visual in visuals:
        keys = [key for material in visual.all("material") for key in (material, material.get("name"))]
        color_of = next((colors[key] for key in keys if key in colors), None)
        try:
            with at(visual):
                builder.add_visual(body, _shape(visual, beside, package_dirs), _origin(visual), color=color_of)
        except ModelError as error:
            faults.append(f"{error}; it is not shown")
    return faults


def _shape(visual: Element, beside: str, package_dirs: tuple[str, ...]) -> Shape:
    shapes = [shape for geometry in visual.all("geometry") for shape in geometry.children]
    if len(shapes) != 1:
        visual.fail(f"wants one shape in a <geometry>, and has {len(shapes)}")
    shape = shapes[0]
    if shape.tag == "box":
        x, y, z = shape.numbers("size", 3)
        return Box((x, y, z))
    if shape.tag == "cylinder":
        return Cylinder(shape.number("radius"), shape.number("length"))
    if shape.tag == "sphere":
        return Sphere(shape.number("radius"))
    if shape.tag != "mesh":
        shape.fail("is an unknown shape; known are box, cylinder, sphere, mesh")
    x, y, z = shape.numbers("scale", 3, (1.0, 1.0, 1.0))
    return Mesh(shape.text("filename"), (x, y, z), beside, package_dirs)


def _rgba(color: Element) -> tuple[float, ...]:
    numbers = color.numbers("rgba", 4)
    if min(numbers) < 0 or max(numbers) > 1:
        color.fail(f"wants numbers from 0 to 1 in rgba, not {color.get('rgba')!r}")
    return numbers
