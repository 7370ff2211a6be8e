"""Reader of URDF.

The table lists the elements of a file and their counterparts in the mechanism:

============================  =====================================================================================
`<link>`                      a body; its frame is the link's frame
`<inertial>`                  the body's inertia; the tensor is rotated by the origin's rpy; without it the body is massless.
                              A tensor that no body can have is accepted with a warning: a principal moment is negative, or larger than the sum of the
                              other two
`<joint>`                     a joint, in the order of the file: fixed, revolute, continuous, prismatic, floating, ball,
                              planar (the axis is the plane's normal; x and y follow by the smallest rotation from z to it, as in MuJoCo)
`<limit>`                     limits, velocity_limit, effort_limit. Exporters write zeros for "not set":
                              a velocity or effort of zero is not a limit, and an empty range is none, with a warning.
                              lower and upper are read of revolute and prismatic joints only
`<dynamics>`                  damping, friction: part of inverse dynamics
`<mimic>`                     a coupler "<joint> mimics <other>" between two joints of one axis, both in the tree;
                              for other joints a warning, and the joint moves freely
root link (no joint's child)  the first joint of the mechanism, "root_joint", connects it to the ground: Fixed or Free. Additional root links float by
                              Free joints "root_joint_<link>", with a warning. "world" is the ground if no link has this name
a link called "ground"        becomes the body "ground_link", with a warning: "ground" is the world
`<visual>`                    a visual for `sarrus.view`: box, cylinder, sphere, mesh. A faulty one is left out, with a warning. Mesh
                              files are searched when they are shown, in the folders of `sarrus.load`
`<material>`                  the colour of a visual, in it or by name; textures are not read, a mesh keeps its own
<loop>, <loop_joint>, …       extensions that close loops: :mod:`sarrus.io.urdf_loops`
drake:…                       ball, planar, screw and universal joints, and :mod:`sarrus.io.extensions`; <frame>: a frame
transmission, ros2_control    the joints in these elements are actuated, and all others are passive, with a warning. Without these elements, all
                              moving joints are actuated, except joints that follow another joint. DifferentialTransmission and
                              FourBarLinkageTransmission with a rotor inertia become transmissions (`Builder.add_transmission`)
`<collision>`                 a collision shape (`robot.contacts`): box, cylinder, sphere; a mesh, if its file exists, against planes.
                              Its friction is `<mu1>` in Gazebo's extensions of the link, or Drake's
sensor, calibration,          ignored, because they do not affect the dynamics
safety_controller
gazebo                        joints, springs, and plugins that couple two joints; a warning for other plugins that may act
other elements                a warning
============================  =====================================================================================

A document type declaration is an error, because it allows entities, which model files do not need and attacks use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..building.builder import Builder
from ..description import joints
from ..errors import ModelError, did_you_mean, printable
from ..spatial import Inertia, Transform
from . import document, extensions, urdf_loops
from .document import Element, Mimic, Names, at
from .formats import URDF, VISIBLE
from .outline import IDENTITY, on_plane
from .urdf_loops import TAGS as LOOP_TAGS

WORLD = "world"  # the ground, if no link has this name


def read(
    text: str | bytes, *, source: str = "<string>", floating_base: bool | None = None, beside: str = "",
    package_dirs: Iterable[str] = (), loops: urdf_loops.Loops = None,
) -> Builder:  # fmt: skip
    """Return a builder of the mechanism in a URDF document.

    Raises ModelError with file, line and element.

    Parameters
    ----------
    text : the document
    source : name of the document in errors and warnings
    beside : folder of the file, in which meshes are searched first; default: the working directory
    floating_base, package_dirs, loops : arguments of :func:`sarrus.load`

    Examples
    --------
    >>> from sarrus.io import urdf
    >>> b = urdf.read('<robot name="stone"><link name="stone"/></robot>')
    >>> b.add_frame("top", "stone", (0, 0, 0.1))
    >>> b.build().frames
    ('ground', 'stone', 'top')
    """
    if not isinstance(floating_base, bool | np.bool_ | None):
        raise ModelError(f"floating_base: expected True or False; got {floating_base!r}")
    robot = URDF.parse(text, source)
    if robot.tag != "robot":
        robot.fail("is not the root of a URDF document; expected <robot>")
    robot.note_unread()
    reader = _Reader(robot, beside, loops)
    reader.add_bodies(bool(floating_base))
    reader.add_joints()
    reader.add_closures()
    reader.add_couplers()
    reader.add_transmissions()
    reader.add_drake_elements()
    _add_shapes(reader, beside, tuple(package_dirs))
    reader.builder.warnings += [*robot.notes, *reader.sidecar.notes]
    return reader.builder


class _Reader:
    """Reader that adds the parts of a URDF to a Builder."""

    def __init__(self, robot: Element, beside: str, loops: urdf_loops.Loops) -> None:
        self.robot = robot
        self.links, self.elements = document.by_name(robot, "link"), document.by_name(robot, "joint", "drake:joint")
        if not self.links:
            robot.fail("has no links")
        self.ends = {name: _ends(element, self.links) for name, element in self.elements.items()}
        document.check_pairs(self.ends.values(), robot.source)
        self.body = {name: name for name in self.links}
        if link := self.links.get("ground"):
            self.body["ground"] = document.free_name("ground_link", self.links)
            link.note(f"{link} becomes body {self.body['ground']!r}: 'ground' is the world")
        self.body.setdefault(WORLD, "ground")
        self.bodies = Names(self.body.values())
        self.names = Names(self.elements)  # names of joints and constraints
        self.sidecar = urdf_loops.Sidecar.read(loops, beside)
        if loops is None and (unread := urdf_loops.unread_sidecar(beside, robot.source)):
            name, contents = unread
            robot.note(f"{name} in its folder seems to contain {contents} and is not read: load(..., loops={name!r})")
        with at(robot):
            self.builder = Builder(name=robot.get("name") or "robot")

    def add_bodies(self, floating_base: bool) -> None:
        """Add the bodies, and the joints between the ground and the root links."""
        for name, link in self.links.items():
            with at(link):
                self.builder.add_body(self.body[name], _inertia(link))
        anchored = WORLD not in self.links and any(parent == WORLD for parent, _ in self.ends.values())
        for k, root in enumerate(_roots(self.robot, self.links, self.ends, anchored, floating_base)):
            name = self.names.new(f"root_joint_{self.body[root]}" if k else "root_joint")
            floats = floating_base or anchored or k > 0
            self.builder.add_joint(name, joints.Free() if floats else joints.Fixed(), "ground", self.body[root])

    def add_joints(self) -> None:
        """Add the <joint> elements. They are tree joints if they are in couplers, or if other elements close the loops."""
        self.types: dict[str, joints.JointType] = {}
        for name, element in self.elements.items():
            with at(element):
                self.types[name] = _joint(element)
        for name, armature in extensions.armatures(self.robot).items():
            joint = self.types.get(name)
            if joint is None or joint.nv != 1:
                fact = f"the rotor inertia of a motor of {name!r} is not read: {name!r} is not a joint of one axis"
                self.robot.all("transmission")[0].note(fact)
                continue
            with at(self.elements[name]):
                self.types[name] = replace(joint, armature=armature)
        pairs = self.sidecar.retype(self.types)
        unchanged = {name: e for name, e in self.elements.items() if name not in self.sidecar.retyped}
        self.mimics = _mimics(unchanged, self.types, self.robot)
        self._read_loops()
        coupled = {name for follower, mimic in self.mimics.items() for name in (follower, mimic.leader)}
        coupled |= {name for coupling in self.couplings for name in coupling.terms} | extensions.coupled(self.robot)
        motors = _motors(self.robot, self.sidecar, self.types, pairs)
        for name, element in self.elements.items():
            parent, child = (self.body[end] for end in self.ends[name])
            with at(element):
                if name in pairs:
                    self._add_pair(name, pairs[name], (parent, child), motors)
                    continue
                # without transmissions all moving joints are actuated, except those that follow another joint
                joint = self.types[name]
                moves = joint.nv > 0 and joint.kind != "Free" and not (element.all("mimic") or name in self.mimics)
                driven, keep = moves if motors is None else name in motors, name in coupled
                place, at_child = _origin(element), None
                if isinstance(joint, joints.Planar) and (turned := on_plane(joint.normal)) is not IDENTITY:
                    place, at_child = place @ turned, turned
                places: dict[str, Any] = {"at_parent": place, "at_child": at_child}
                self.builder.add_joint(name, joint, parent, child, **places, actuated=driven, tree=keep)

    def _read_loops(self) -> None:
        """Read the loops and couplings of URDF+ and Gazebo; poses at q = 0 are computed only if an element needs them."""
        robot = self.robot
        has_loops = robot.all(*LOOP_TAGS) or any(block.all("joint") for block in robot.all("gazebo"))
        self.at_zero = _at_zero(self.body, self.elements, self.ends) if has_loops or self.sidecar.hinges else {}
        hinges = {
            self.ends[name]: (name, self.at_zero[self.ends[name][1]].rotation @ joint.axis)
            for name, joint in self.types.items()
            if has_loops and isinstance(joint, joints.Revolute)
        }
        in_gazebo = list(urdf_loops.gazebo_joints(robot, self.body, self.at_zero, hinges))
        self.gazebo_closures = [part for part in in_gazebo if isinstance(part, urdf_loops.Closure)]
        couplings = [part for part in in_gazebo if isinstance(part, document.Coupling)]
        self.couplings = [*urdf_loops.loop_couplings(robot, self.body, self.ends), *couplings]

    def _add_pair(self, name: str, axes: str, ends: tuple[str, str], motors: set[str] | None) -> None:
        """Add two revolute joints about axes of one frame, with a massless body between them."""
        bodies, place = (ends[0], self.bodies.new(f"{name}_{axes[0]}"), ends[1]), _origin(self.elements[name])
        self.builder.add_body(bodies[1])
        for k, axis in enumerate(axes):
            half, hinge = self.names.new(f"{name}_{axis}"), joints.Revolute(axis.lower())
            driven = motors is None or half in motors
            at_parent = Transform() if k else place
            self.builder.add_joint(half, hinge, *bodies[k : k + 2], at_parent=at_parent, actuated=driven)

    def add_closures(self) -> None:
        """Add the loop joints, and frames that the sidecar refers to."""
        tagged = urdf_loops.closures(self.robot, self.body, _of_type, _origin_of, self.at_zero)
        for closure in (*tagged, *self.gazebo_closures, *self.sidecar.closures(self.body, self.ends, self.at_zero)):
            with at(closure.element or self.robot):
                (parent, X_A), (child, X_B), name = closure.parent, closure.child, self.names.new(closure.name)
                ends = self.body[parent], self.body[child]
                self.builder.add_joint(name, closure.joint, *ends, at_parent=X_A, at_child=X_B, loop=True)
        for name in dict.fromkeys(name for loop in self.sidecar.loops for name in loop[:2] if name not in self.body):
            with at(self.elements[name]):
                self.builder.add_frame(name, self.body[self.ends[name][1]])  # the frame of a joint is its child's

    def add_couplers(self) -> None:
        """Add the couplers of mimic joints and couplings."""
        for name, mimic in self.mimics.items():
            coupler = self.names.new(f"{name} mimics {mimic.leader}")  # a joint may have this name
            with at(self.elements[name]):
                terms = {name: 1.0, mimic.leader: -mimic.multiplier}
                self.builder.add_coupler(coupler, terms, offset=mimic.offset)
        for coupling in self.couplings:
            with at(coupling.element):
                self.builder.add_coupler(self.names.new(coupling.name), coupling.terms)

    def add_transmissions(self) -> None:
        """Add the transmissions of two motors and two joints."""
        for element, motors, joint_names, matrix, numbers in extensions.transmissions(self.robot):
            single = [name for name in joint_names if name in self.types and self.types[name].nq == 1]
            if self.sidecar.motors is not None or len(single) < 2:
                reason = "the sidecar lists the motors" if len(single) == 2 else "it needs two joints of one axis"
                element.note(f"{element} is not read: {reason}")
                continue
            if any(self.types[name].effort_limit is not None for name in joint_names):
                element.note(f"effort limits of joints that {element} drives have no effect: set those of its motors")
            with at(element):
                name, motors = element.get("name") or "transmission", [self.names.new(motor) for motor in motors]
                self.builder.add_transmission(name, motors, joint_names, matrix, **numbers)

    def add_drake_elements(self) -> None:
        """Add frames, and the constraints and springs of :mod:`sarrus.io.extensions`."""
        places = {name: (link, Transform()) for name, link in self.body.items()}
        for name, frame in document.by_name(self.robot, "frame").items():
            frame.note_unread()
            places[name] = self.body[document.referred(frame, frame.text("link"), self.body, "link")], _origin_of(frame)
            with at(frame):
                self.builder.add_frame(name, *places[name])

        def place(element: Element, name: str) -> tuple[str, Transform]:
            return places[document.referred(element, name, places, "link or frame")]

        def joint(element: Element, name: str) -> str:
            return document.referred(element, name, self.types, "joint")

        extensions.add(self.builder, self.robot, place, joint, self.names)


# --- the graph ----------------------------------------------------------------------------------------------------


def _ends(joint: Element, links: dict[str, Element]) -> tuple[str, str]:
    ends = joint.needed("parent"), joint.needed("child")
    parent, child = (end.text("link") for end in ends)
    for end, name in zip(ends, (parent, child), strict=True):
        if name != WORLD or end.tag != "parent":
            document.referred(end, name, links, "link")
    if parent == child:
        joint.fail(f"connects link {parent!r} to itself")
    return parent, child


def _roots(
    robot: Element, links: dict[str, Element], ends: dict[str, tuple[str, str]], anchored: bool, floating_base: bool
) -> list[str]:
    """Return the root links, which are no joint's child: one for each connected group of links."""
    parts = document.Connected((*links, WORLD), ends.values())
    if anchored:
        parts.reach(WORLD)
        if floating_base:
            robot.fail("cannot float, because a joint connects it to 'world', the ground: omit floating_base=True")
    children = {child for _, child in ends.values()}
    roots = list(parts.groups(name for name in links if name not in children))
    for link in (links[name] for name in roots[0 if anchored else 1 :]):
        link.note(f"{link} is no joint's child, and not the first such link: it floats freely")
    if not (roots or anchored):
        robot.fail("has no root: every link is the child of a joint")
    # a closed ring of links has no root link, and can be separate from the root's group
    if adrift := [name for name in links if name not in parts.reached]:
        before = WORLD if anchored else roots[0]
        links[adrift[0]].fail(
            f"is not connected to the root {before!r}; all links without a connection: {document.listed(adrift)}"
        )
    return roots


def _at_zero(
    body: dict[str, str], elements: dict[str, Element], ends: dict[str, tuple[str, str]]
) -> dict[str, Transform]:
    """Return the poses of the links at q = 0, with all root links at the world's origin."""
    neighbours: dict[str, list[tuple[str, Transform]]] = {name: [] for name in body}
    for name, (parent, child) in ends.items():
        X = _origin(elements[name])
        neighbours[parent].append((child, X))
        neighbours[child].append((parent, X.inverse()))
    children = {child for _, child in ends.values()}
    poses: dict[str, Transform] = {}
    for root in (WORLD, *(name for name in body if name not in children)):
        frontier = [] if root in poses else [(root, Transform())]
        while frontier:
            name, X = frontier.pop()
            if name not in poses:
                poses[name] = X
                frontier += [(other, X @ step) for other, step in neighbours[name] if other not in poses]
    return poses


# --- links and joints ---------------------------------------------------------------------------------------------

ZERO = (0.0, 0.0, 0.0)


def _origin(element: Element) -> Transform:
    return _origin_of(element.child("origin"))


def _origin_of(origin: Element | None) -> Transform:
    if origin is None:
        return Transform()
    place, (roll, pitch, yaw) = origin.numbers("xyz", 3, ZERO), origin.numbers("rpy", 3, ZERO)
    turned = roll or pitch or yaw
    return Transform.from_rpy(roll, pitch, yaw, place) if turned else Transform(translation=place)


def _inertia(link: Element) -> Inertia:
    link.note_unread()
    inertial = link.child("inertial")
    if inertial is None:
        return Inertia.zero()
    mass, tensor = inertial.needed("mass"), inertial.needed("inertia")
    m = mass.number("value")
    if m < 0:
        mass.fail(f"is negative: {m:g} kg; expected a mass of zero or more")
    xx, yy, zz = (tensor.number(name) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (tensor.number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    return document.placed_inertia(tensor, link, m, (xx, yy, zz, xy, xz, yz), _origin(inertial))


AXIAL = {
    "revolute": joints.Revolute, "continuous": joints.Revolute, "prismatic": joints.Prismatic, "planar": joints.Planar,
}  # fmt: skip
# types without an axis; "universal" is Drake's
OTHERS: dict[str, Callable[..., joints.JointType]] = {
    "floating": joints.Free, "ball": joints.Spherical, "universal": partial(joints.Universal, "x", "y"),
}  # fmt: skip


def _joint(element: Element) -> joints.JointType:
    element.note_unread()
    if element.get("type") == "fixed":  # some exporters write axes and limits of fixed joints
        return joints.Fixed()
    axis = element.child("axis")
    direction = (1.0, 0.0, 0.0) if axis is None else axis.numbers("xyz", 3)
    kind = element.text("type")
    if kind in AXIAL and not any(direction):
        (axis or element).fail("is zero; expected the direction of a moving joint")
    if kind in ("revolute", "prismatic") and not element.all("limit"):
        element.note(f"{element} has no <limit>: read as unlimited")
    return _of_type(element, kind, direction)


def _of_type(element: Element, kind: str, direction: tuple[float, ...]) -> joints.JointType:
    """Return a joint of a type and direction, with the limits and passive terms of its element."""
    if kind == "fixed":
        return joints.Fixed()
    properties = _numbers(element, kind)
    if kind in OTHERS:
        return OTHERS[kind](**properties)
    if kind == "screw":
        turn = element.needed("drake:screw_thread_pitch").number("value")
        return joints.Helical(direction, turn / (2.0 * math.pi), **properties)
    if kind not in AXIAL:
        expected = f"fixed, floating, ball, {', '.join(AXIAL)}, universal, screw"
        element.fail(f"has an unknown type {kind!r}; expected one of {expected}")
    return AXIAL[kind](direction, **properties)


def _numbers(joint: Element, kind: str) -> dict[str, Any]:
    """Return the limits and passive terms of a joint."""
    values: dict[str, Any] = URDF.read(joint)
    lower, upper, ranged = values.pop("lower", 0.0), values.pop("upper", 0.0), kind in ("revolute", "prismatic")
    for limit in joint.all("limit"):
        if lower > upper:
            limit.fail(f"has its lower limit above the upper: {lower:g} > {upper:g}")
        if ranged and lower == upper and math.copysign(1.0, lower) == math.copysign(1.0, upper):
            limit.note("empty ranges are read as unlimited: joints", repr((joint.get("name") or "")[:200]))
        elif ranged:
            values["limits"] = lower, upper
        elif any(x and math.isfinite(x) for x in (lower, upper)):
            limit.note(f"lower and upper limit of a {kind} joint are not read")
    return values


def _mimics(elements: dict[str, Element], made: dict[str, joints.JointType], robot: Element) -> dict[str, Mimic]:
    """Return the joints that follow another joint, by their <mimic> or by a plugin of Gazebo."""
    requests: dict[str, tuple[Element, Mimic]] = {}
    for plugin in (plugin for block in robot.all("gazebo") for plugin in block.all("plugin")):
        if (mimic := extensions.mimic(plugin)) is not None and mimic.follower in elements:
            requests[mimic.follower] = plugin, mimic
        elif mimic is not None:
            fault = f"couples joint {mimic.follower!r} to {mimic.leader!r}, and is not read"
            plugin.note(f"{plugin} {fault}: there is no joint {mimic.follower!r}")
    for name, element in elements.items():
        if (child := element.child("mimic")) is not None:
            numbers = child.number("multiplier", 1.0), child.number("offset", 0.0)
            requests[name] = child, Mimic(name, child.text("joint"), *numbers)
    mimics = {}
    for name, (part, mimic) in requests.items():
        element, leader = elements[name], mimic.leader
        if made[name].nv == 0:
            continue
        if leader == name:
            part.fail("names the joint itself")
        not_scalar = [j for j in (name, leader) if j in made and made[j].nq != 1]
        if leader in made and not not_scalar:
            mimics[name] = mimic
            continue
        law = f"{name} = {mimic.multiplier:g} {leader}" + (f" {mimic.offset:+g}" if mimic.offset else "")
        reason = f"joint {not_scalar[0]!r} has no single axis" if not_scalar else f"there is no joint {leader!r}"
        part.note(f"{element} moves freely, its <mimic> ({printable(law)}) is not read: {reason}")
    for name, fault in document.mimic_circles(mimics.values()):
        elements[name].note(fault)
    return mimics


# --- motors ---------------------------------------------------------------------------------------------------------


def _motors(
    robot: Element, sidecar: urdf_loops.Sidecar, made: dict[str, joints.JointType], pairs: dict[str, str]
) -> set[str] | None:
    """Return the joints that a sidecar, transmissions or ros2_control drive; None if the model has none of the three."""
    split = {f"{name}_{axis}" for name, axes in pairs.items() for axis in axes}
    moving = {name for name, joint in made.items() if joint.nv > 0} - set(pairs) | split
    if sidecar.motors is not None:
        for name in sidecar.motors:
            if name not in moving:
                sidecar.note(f"name_mot {name!r} is not a moving joint{did_you_mean(name, moving)}")
        return moving & set(sidecar.motors)
    motors = list(urdf_loops.driven_joints(robot))
    for element, name in motors:
        if name not in made:
            element.note(f"a motor drives {name!r}, which is not a joint{did_you_mean(name, made)}")
    if not motors:
        return None
    driven = {name for _, name in motors}
    passive = [name for name in made if name in moving - driven and made[name].kind != "Free"]
    if passive:
        joint_names = document.listed(passive)
        motors[0][0].note(f"joints without a motor, in a file that has motors, are read as passive: {joint_names}")
    return moving & driven


# --- visuals and collision shapes: faults raise warnings, because the dynamics does not need visuals ---------------


def _add_shapes(reader: _Reader, beside: str, package_dirs: tuple[str, ...]) -> None:
    """Add visuals and collision shapes to bodies; warn about shapes and colours that are left out."""
    shape_of = partial(URDF.shape, kinds=VISIBLE, beside=beside, package_dirs=package_dirs)
    for name, link in reader.links.items():
        for collision in link.all("collision"):
            collision.note(f"shapes of <collision> may touch, {document.NO_CONTACTS}")
            with document.left_out(collision, "it has no contacts"):
                shape, numbers = shape_of(document.only_shape(collision)), _friction(reader.robot, name, collision)
                document.add_shape(reader.builder, reader.body[name], collision, shape, _origin(collision), **numbers)
    visuals = [(reader.body[name], visual) for name, link in reader.links.items() for visual in link.all("visual")]
    colors: dict[Element | str | None, tuple[float, ...]] = {}
    # visuals may refer to materials that other visuals define; the robot's materials come first
    for material in (m for owner in (reader.robot, *(visual for _, visual in visuals)) for m in owner.all("material")):
        for color in material.all("color"):
            with document.left_out(color, "the colour is left out"):
                colors[material] = document.color_of(color, "rgba")
                colors.setdefault(material.get("name"), colors[material])
    for body, visual in visuals:
        keys = [key for material in visual.all("material") for key in (material, material.get("name"))]
        color_of = next((colors[key] for key in keys if key in colors), None)
        with document.left_out(visual, "it is not shown"):
            shape = shape_of(document.only_shape(visual))
            reader.builder.add_visual(body, shape, _origin(visual), color=color_of)


def _friction(robot: Element, link: str, collision: Element) -> dict[str, float]:
    """Return {"friction": coefficient} of a collision shape: Gazebo's for all shapes of the link, or Drake's for the shape."""
    blocks = [block for block in robot.all("gazebo") if block.get("reference") == link]
    mu1, mu2 = ([mu.number(None) for block in blocks for mu in block.all(tag)] for tag in ("mu1", "mu2"))
    if mu2 and mu2[-1:] != (mu1 or [1.0])[-1:]:
        collision.note(document.ONE_FRICTION)
    return ({"friction": mu1[-1]} if mu1 else {}) | extensions.friction(collision)
