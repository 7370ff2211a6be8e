"""Writer of URDF, with loops in a sidecar.

============================  ==========================================================================================================
bodies                        links. The ground is a link "world", unless a single Fixed joint connects the mechanism to it
joints                        URDF's joints, and "ball". A joint of several axes is a chain of hinges and slides with massless links; a
                              screw is a hinge and a slide that mimics it. In URDF the frame of a joint is its child's: a body with another
                              frame gets a massless link and a fixed joint
loops                         ROBOT.yaml in the format of Gepetto's example-parallel-robots, see :class:`sarrus.io.urdf_loops.Sidecar`: frames
                              that coincide, which are massless links. Fixed (6d), Spherical (3d), Revolute, Universal of
                              perpendicular axes. It lists the motors too, which URDF does not have
couplers                      mimic, of two joints of one axis; other linear ones as Drake's tendon
distances, springs            Drake's tags, which other readers ignore
armature                      transmissions with Drake's rotor inertia, of joints of one axis
frames                        massless links on fixed joints
visuals                       visuals
collision shapes              boxes, cylinders and spheres with their names; the ground's shapes are left out
============================  ==========================================================================================================
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from ..description import ConstraintSpec, FrameSpec, JointSpec
from ..description.joints import JointType
from ..mechanism import Mechanism
from ..spatial import Inertia, Rotation, Transform
from . import lowering
from .document import Mimic
from .formats import NO_ROOM, URDF, put
from .lowering import Step, Writer, closes
from .outline import IDENTITY, Element, Link, Losses, add, add_drake, frame_along, on_plane, tree_links

NO_BOUNDS = {"lower": -np.inf, "upper": np.inf, "effort_limit": np.inf, "velocity_limit": np.inf}


class _Writer(Writer):
    """Writer of URDF."""

    format = URDF
    drives_all, scalar_only = True, ("rest", "armature")

    def __init__(self, robot: Mechanism, losses: Losses, path: Path) -> None:
        super().__init__(robot, losses, path)
        d = robot.description
        self.root = ET.Element("robot", {"name": robot.name})
        self.loops: list[tuple[str, str, str]] = []
        self.movable: dict[str, bool] = {}  # moving joint in the file -> True for an actuated joint
        self.armature: dict[str, float] = {}
        self.afloat = set[str]()  # names of Free joints
        self.elements: dict[str, Element] = {}
        tree = tree_links(robot)
        self.ground = self.links.new("world")
        bare = self._root_joint(tree)
        if bare is None:
            add(self.root, "link", name=self.ground)
        links = {body.name: add(self.root, "link", name=body.name) for body in d.bodies}
        for body in d.bodies:
            _inertial(links[body.name], body.inertia)
        self.looks(links)
        for name, link in tree.items():
            if name != bare:
                self._joint(link)
        for frame in d.frames:
            self._frame(frame)
        self.constraints()
        for spring in d.springs:
            add_drake(self.root, spring, {}, words=False)
            self.losses.note_nonlinear(spring)
        self._transmissions()
        self.declare_drake()

    def files(self) -> dict[Path, str]:
        """Return the texts of the document and of its sidecar; no sidecar if the URDF is complete without it."""
        sidecar: dict[str, Any] = {}
        if self.loops:
            sidecar = {"closed_loop": [[a, b] for a, b, _ in self.loops], "type": [kind for _, _, kind in self.loops]}
        followers = {name for name, element in self.elements.items() if element.find("mimic") is not None}
        # without a list of motors, readers assume that all moving joints are actuated, except floating joints and followers
        if sidecar or any(is_driven == (x in followers or x in self.afloat) for x, is_driven in self.movable.items()):
            sidecar["name_mot"] = [name for name, is_driven in self.movable.items() if is_driven]
        if not sidecar:
            return super().files()
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in sidecar.items())
        return super().files() | {self.path.with_suffix(".yaml"): f"{{\n{lines}\n}}\n"}  # JSON is YAML

    def _called(self, body: str) -> str:
        return self.ground if body == "ground" else body

    def _root_joint(self, tree: dict[str, Link]) -> str | None:
        """Return a joint that can be omitted in the file, or None: a Fixed joint without an offset that is the only connection to the ground."""
        d = self.robot.description
        roots = [link for link in tree.values() if link.inner == "ground"]
        used_bodies = [body for c in d.constraints for body in c.bodies] + [body for j in d.joints for body in j.bodies]
        used_bodies += [frame.body for frame in d.frames] + [visual.body for visual in d.visuals]
        used_bodies += [end[0] for spring in d.springs for end in (spring.first, spring.second)]
        if len(roots) != 1 or used_bodies.count("ground") != 1 or roots[0].joint.nv or roots[0].place != IDENTITY:
            return None
        return roots[0].spec.name

    # ---- joints ------------------------------------------------------------------------------------------------------

    def _joint(self, link: Link) -> None:
        kind = link.kind
        if kind in ("Fixed", "Spherical", "Free") or (kind == "Planar" and not link.backward):
            self.note_inverse(link)
            self._direct(link)
        else:
            self.note_missing(link.spec)
            self._chain(link)

    def _transmissions(self) -> None:
        """Write a transmission for each rotor. Readers take joints without a transmission as passive, so that all other motors have one too."""
        driven = [name for name, is_driven in self.movable.items() if self.armature and is_driven]
        for name in dict.fromkeys((*self.armature, *driven)):
            transmission = add(self.root, "transmission", name=f"{name}_transmission")
            put(transmission, "type", "transmission_interface/SimpleTransmission")
            put(add(transmission, "joint", name=name), "hardwareInterface", "hardware_interface/EffortJointInterface")
            motor = add(transmission, "actuator", name=f"{name}_motor")
            if name in self.armature:
                add(motor, "drake:rotor_inertia", value=self.armature[name])
                add(motor, "drake:gear_ratio", value=1.0)

    def _chain(self, link: Link) -> None:
        parts = list(self.chain(link))
        for _, _, (child, _) in parts[:-1]:
            add(self.root, "link", name=child)
        parts.sort(key=lambda part: part[0].index)  # sorted in the order of coordinates
        for step, inner, (child, _) in parts:
            rest = Transform(translation=step.axis.point).inverse() @ link.end if child == link.outer else IDENTITY
            kind = "revolute" if step.turns else "prismatic"
            element = self._joined(link, step.name, kind, inner, (child, rest), self.massless_name(link, step))
            add(element, "axis", xyz=step.axis.direction)
            self._numbers(element, step, link.spec)

    def massless_name(self, link: Link, step: Step) -> str:
        return f"{link.spec.name}_link{link.axes.index(step.axis) + 1}"

    def _joined(
        self, link: Link, name: str, kind: str, inner: tuple[str, Transform], outer: tuple[str, Transform], spare: str
    ) -> Element:
        """Write a joint between frames on two bodies; if the outer frame is not its body's, add a link and a fixed joint."""
        child = outer[0] if outer[1] == IDENTITY else self.links.new(spare)
        element = self._element(name, kind, self._called(inner[0]), child, inner[1])
        if child != outer[0]:
            add(self.root, "link", name=child)
            self._element(self.joints.new(f"{link.spec.name}_end"), "fixed", child, *outer)
        return element

    def _numbers(self, element: Element, step: Step, spec: JointSpec) -> None:
        numbers = dict(step.numbers)
        if armature := numbers.pop("armature", 0.0):
            self.armature[step.name] = armature
        self.movable[step.name] = spec.actuated and step.pitch is None
        if step.pitch is not None:
            add(element, "mimic", joint=spec.name, multiplier=step.pitch, offset=0.0)
            numbers = NO_BOUNDS
        elif numbers["lower"] is None and step.turns:
            element.set("type", "continuous")
        elif numbers["lower"] is None:
            numbers |= {"lower": -np.inf, "upper": np.inf}
        elif numbers["lower"] == numbers["upper"]:
            numbers |= {"lower": numbers["lower"] or NO_ROOM}
            self.losses.note(f"limits of joint '{spec.name}' that are equal, which other readers read as no limits")
        URDF.write(element, numbers)

    def _direct(self, link: Link) -> None:
        """Write a joint that URDF has."""
        joint, name = link.joint, link.spec.name
        # a planar joint has no constant coordinates, so that `link.start` and `link.end` are the poses of its frames in the bodies
        start, rest = (link.place, IDENTITY) if joint.nv == 0 else (link.start, link.end)
        if joint.kind == "Planar" and (turned := on_plane(vars(joint)["normal"])) is not IDENTITY:
            start, rest = start @ turned.inverse(), turned @ rest
            rest = IDENTITY if np.allclose(rest.matrix, np.eye(4), rtol=0.0, atol=1e-14) else rest
        kind = URDF.joints[link.kind]
        element = self._joined(link, name, kind, (link.inner, start), (link.outer, rest), f"{name}_link")
        if joint.kind == "Planar":
            add(element, "axis", xyz=vars(joint)["normal"])
        if joint.nv:
            URDF.write(element, self.uniform_numbers(link.spec))
            self.movable[name] = link.spec.actuated
        if joint.kind == "Free":
            self.afloat.add(name)

    def _element(self, name: str, kind: str, parent: str, child: str, origin: Transform) -> Element:
        element = self.elements[name] = add(self.root, "joint", name=name, type=kind)
        self.place(element, origin)
        add(element, "parent", link=parent)
        add(element, "child", link=child)
        return element

    def _frame(self, frame: FrameSpec) -> str:
        add(self.root, "link", name=frame.name)
        joint = self.joints.new(f"{frame.name}_joint")
        self._element(joint, "fixed", self._called(frame.body), frame.name, frame.placement)
        return frame.name

    def place(self, element: Element, place: Transform) -> None:
        if place != IDENTITY:
            turned = not np.array_equal(place.rotation, np.eye(3))
            add(element, "origin", xyz=place.translation, rpy=Rotation(place.rotation).rpy if turned else None)

    def color(self, visual: Element, color: tuple[float, ...]) -> None:
        put(visual, "material/@name", "")
        super().color(visual, color)

    # ---- constraints -------------------------------------------------------------------------------------------------

    def loop_joint(self, spec: JointSpec) -> None:
        closing, can = _closing_type(spec.joint), "Fixed, Spherical, Revolute and Universal of perpendicular axes"
        if not closes(spec, closing is not None, self.losses, can=can) or closing is None:
            return
        kind, turned = closing
        ends = [
            self._frame(FrameSpec(self.links.new(f"{spec.name}_{letter}"), body, place @ turned))
            for letter, body, place in (("A", spec.parent, spec.at_parent), ("B", spec.child, spec.at_child))
        ]
        self.loops.append((ends[0], ends[1], kind))

    def mimic(self, mimic: Mimic) -> None:
        follower, leader, multiplier, offset = mimic
        add(self.elements[follower], "mimic", joint=leader, multiplier=multiplier, offset=offset)

    def other_constraint(self, spec: ConstraintSpec) -> bool:
        return add_drake(self.root, spec, self.coordinates, words=False)


def _closing_type(joint: JointType) -> tuple[str, Transform] | None:
    """Return the sidecar's name of a joint type, and the rotation of the sidecar's frames in the joint's frames.

    Returns None if a sidecar cannot have the type.
    """
    if joint.kind in ("Fixed", "Spherical"):
        return ("6d" if joint.kind == "Fixed" else "3d"), IDENTITY
    if joint.kind == "Revolute":
        return "revolute", frame_along(vars(joint)["axis"])
    if joint.kind == "Universal":
        first, second = vars(joint)["axis1"], vars(joint)["axis2"]
        if abs(first @ second) < 1e-12:
            return "universal", Transform(np.column_stack([first, second, np.cross(first, second)]))
    return None


def _inertial(link: Element, inertia: Inertia) -> None:
    if inertia.mass == 0.0 and not inertia.about_com.any():
        return
    inertial, I = add(link, "inertial"), inertia.about_com
    add(inertial, "origin", xyz=inertia.com)
    add(inertial, "mass", value=inertia.mass)
    add(inertial, "inertia", ixx=I[0, 0], ixy=I[0, 1], ixz=I[0, 2], iyy=I[1, 1], iyz=I[1, 2], izz=I[2, 2])


save = partial(lowering.save, _Writer)
