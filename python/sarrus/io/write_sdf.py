"""Writer of SDF 1.11 for Gazebo and Drake.

============================  ==========================================================================================================
zero                          SDF requires that the file's poses close the loops. The file has the poses at q = 0 if these close the loops. Otherwise
                              it has the poses of assemble(), at which all coordinates in SDF are zero, with a warning
bodies                        links
joints                        SDF's joints, tree joints and loop joints alike; a joint of several axes (except Universal) is a chain with
                              massless links. A body with a Free joint to the ground has no joint
motors                        passive joints have an effort limit of zero
couplers                      mimic, of two joints of one axis if one is passive; other linear ones as Drake's tendon
armature, distances, springs  Drake's tags
frames; gravity               frames; gravity of a world around the model, if it is not 9.81 m/s² downward
visuals                       visuals
collision shapes              shapes, with capsules, friction, torsional friction and restitution; the ground's shapes are left out
============================  ==========================================================================================================
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from .._arrays import Array
from ..description import ConstraintSpec, FrameSpec, JointSpec, ShapeSpec
from ..errors import AssemblyError
from ..mechanism import Mechanism
from ..spatial import Inertia, Rotation, Transform
from . import lowering
from .document import Mimic, Names
from .formats import SDF, put
from .lowering import PosedWriter, Step
from .outline import IDENTITY, Element, Link, Losses, add, add_drake, listed
from .sdf_document import COEFFICIENTS, PATCH, TORSIONAL


class _Writer(PosedWriter):
    """Writer of SDF."""

    format = SDF
    scalar_only, coefficients = ("rest", "stiffness", "armature"), ("friction", "restitution", "torsional_friction")
    distinct, scope, gravity = True, "::", True

    def __init__(self, robot: Mechanism, losses: Losses, path: Path) -> None:
        super().__init__(robot, losses, path)
        d = robot.description
        self.root = owner = ET.Element("sdf", {"version": "1.11"})
        if d.gravity != (0.0, 0.0, -9.81):
            owner = add(self.root, "world", name="world")
            put(owner, "gravity", d.gravity)
        self.model = add(owner, "model", name=robot.name)
        self.links = self.joints = Names(self.links | self.joints)  # in SDF, links and joints share one set of names
        self.axis_of: dict[str, Element] = {}
        self.elements: dict[str, Element] = {}  # of links
        self.parts()
        for spring in d.springs:
            add_drake(self.model, spring, {}, words=True)
            self.losses.note_nonlinear(spring)
        self.looks(self.elements)
        self.declare_drake()

    def home(self) -> Array:
        robot = self.robot
        q = robot.neutral()
        loops = [np.arange(robot.nc)[robot.constraint(name).rows] for name in robot.loop_joints]
        rows = np.concatenate([np.empty(0, int), *loops])  # empty without loop joints
        if np.abs(robot.constraint_residual(q, time=0.0)[rows]).max(initial=0.0) < 1e-12 * min(1.0, robot._length):
            return q
        try:
            q = robot.assemble(time=0.0)
        except AssemblyError as error:
            self.losses.motion.append(f"loops that are open ({error})")
            return robot.neutral()
        moved = np.abs(q - robot.neutral())
        if off := [name for name in robot.joints if moved[robot.joint(name).q_slice].max(initial=0) > 0]:
            fact = f"those of {listed(off)} are zero at the file's poses, which close the loops"
            self.losses.minor.append(f"the zero of coordinates: {fact}")
        return np.asarray(q)

    def body(self, name: str, inertia: Inertia) -> None:
        link, I = add(self.model, "link", name=name), inertia.about_com
        self.elements[name] = link
        self.place(link, self.pose[name])
        inertial = add(link, "inertial")
        self.place(inertial, Transform(translation=inertia.com))
        put(inertial, "mass", inertia.mass)
        for i, k in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
            put(inertial, f"inertia/i{'xyz'[i]}{'xyz'[k]}", I[i, k])

    # ---- joints ------------------------------------------------------------------------------------------------------

    def frame(self, frame: FrameSpec) -> None:
        on = None if frame.body == "ground" else frame.body
        self.place(add(self.model, "frame", name=frame.name, attached_to=on), frame.placement)

    def joint(self, link: Link) -> None:
        spec, kind = link.spec, link.kind
        if kind not in SDF.joints:
            self.note_missing(spec)
            self.joint_chain(link)
            return
        element = self._element(spec.name, SDF.joints[kind], spec.parent, spec.child, spec.at_child)
        if kind == "Spherical":
            self._ball(element, spec)
        elif kind == "Universal":
            self.note_missing(spec)
            # the first axis is fixed in the parent
            in_child, in_parent = self.pose[spec.child] @ spec.at_child, self.pose[spec.parent] @ spec.at_parent
            turned = in_child.rotation.T @ in_parent.rotation
            for axis, R, tag in zip(link.axes, (turned, np.eye(3)), ("axis", "axis2"), strict=True):
                step = Step(spec.name, axis, self.numbers(link, axis))
                self._axis(element, spec, step, R @ axis.direction, tag)
        elif kind != "Fixed":
            self.note_missing(spec)
            if kind == "Helical":
                put(element, "screw_thread_pitch", 2 * np.pi * vars(link.joint)["pitch"])
            step = next(self.steps(link))
            self._axis(element, spec, step, step.axis.direction)

    def step(self, spec: JointSpec, step: Step, inner: tuple[str, Transform], outer: tuple[str, Transform]) -> None:
        element = self._element(step.name, "revolute" if step.turns else "prismatic", inner[0], *outer)
        self._axis(element, spec, step, step.axis.direction)

    def _element(self, name: str, kind: str, parent: str, child: str, in_child: Transform) -> Element:
        element = add(self.model, "joint", name=name, type=kind)
        self.place(element, in_child)
        put(element, "parent", "world" if parent == "ground" else parent)
        put(element, "child", "world" if child == "ground" else child)
        return element

    def _axis(self, element: Element, spec: JointSpec, step: Step, direction: Array, tag: str = "axis") -> None:
        axis, zero, numbers = add(element, tag), self.at_home[spec.name][step.index], dict(step.numbers)
        self.axis_of.setdefault(step.name, axis)
        put(axis, "xyz", direction)
        for name in ("lower", "upper"):
            numbers[name] = numbers[name] - zero if numbers[name] is not None and np.isfinite(numbers[name]) else None
        most, speed, armature = numbers["effort_limit"], numbers["velocity_limit"], numbers.pop("armature")
        if not spec.actuated and np.isfinite(most):
            self.losses.minor.append(f"the effort limit of joint '{spec.name}', which is passive")
        numbers["effort_limit"] = 0.0 if not spec.actuated else most if np.isfinite(most) else -1.0
        numbers["velocity_limit"] = speed if np.isfinite(speed) else None
        numbers["rest"] -= zero
        SDF.write(axis, numbers)
        if armature and spec.joint.kind == "Universal":
            self.losses.motion.append(f"armature of joint '{spec.name}' (Universal)")
        elif armature:
            put(element, "drake:rotor_inertia", armature)
            put(element, "drake:gear_ratio", 1.0)

    def _ball(self, element: Element, spec: JointSpec) -> None:
        if any((values := self.uniform_numbers(spec)).values()):
            axis = add(element, "axis")
            put(axis, "xyz", (0, 0, 1))
            SDF.write(axis, values)

    def place(self, element: Element, place: Transform) -> None:
        if place != IDENTITY:
            put(element, "pose", [*place.translation, *Rotation(place.rotation).rpy])

    # ---- constraints -------------------------------------------------------------------------------------------------

    def excluded(self) -> set[str]:
        # a driven joint must not be the follower, because readers of <mimic> make the follower passive
        return self.followers | self.driven

    def other_constraint(self, spec: ConstraintSpec) -> bool:
        return add_drake(self.model, spec, self.coordinates, words=True, zero=self.at_home)

    def mimic(self, mimic: Mimic) -> None:
        follower, leader, multiplier, offset = mimic
        zero = {name: self.at_home[joint][index] for (joint, index), name in self.coordinates.items()}
        element = add(self.axis_of[follower], "mimic", joint=leader, axis="axis")
        offset += multiplier * zero[leader] - zero[follower]
        for name, value in (("multiplier", multiplier), ("offset", offset), ("reference", 0.0)):
            put(element, name, value)

    def collision(self, link: Element | None, spec: ShapeSpec) -> Element | None:
        element = super().collision(link, spec)
        for name, path in COEFFICIENTS.items():
            if element is not None and getattr(spec, name) is not None:
                put(element, f"surface/{path}", getattr(spec, name))
        if element is not None and spec.torsional_friction is not None:
            for name, number in (("coefficient", 1.0), ("patch_radius", spec.torsional_friction / PATCH)):
                put(element, f"surface/{TORSIONAL}/{name}", number)
        return element

    def visual(self, link: Element | None, visual: Any) -> None:
        super().visual(link, visual)
        for k, element in enumerate(link.findall("visual") if link is not None else ()):
            element.set("name", f"visual{k}")


save = partial(lowering.save, _Writer)
