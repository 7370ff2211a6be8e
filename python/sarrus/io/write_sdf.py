"""SDF 1.11, as Gazebo and Drake read it.

============================  ==========================================================================================================
zero                          The file's pose has to close the loops, so the joints' coordinates count from a configuration that does:
                              all zero where that is one, else that of assemble(), with a warning
bodies                        links
joints                        SDF's, each as it is, whether it closes a loop or not; one of several axes (but Universal) a chain with
                              links without mass between. What floats by a Free joint from the ground has none
motors                        an effort of zero for the passive
couplers                      mimic, of two joints of one axis of which one is passive; else, if linear, Drake's tendon
armature, distances, springs  Drake's tags
frames; gravity               frames; that of a world around the model, where it is not 9.81 m/s² downward
visuals                       as they are
shapes that touch             with capsules, friction, torsional friction and restitution; not those of the ground
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
from .document import Names
from .formats import SDF
from .lowering import PosedWriter, Step
from .outline import Element, Link, Losses, add, add_drake, listed, mimic_of
from .sdf_parts import COEFFICIENTS, PATCH, TORSIONAL
from .table import put


class _Writer(PosedWriter):
    format = SDF
    of_one_axis, coefficients = ("rest", "stiffness", "armature"), ("friction", "restitution", "torsional_friction")
    apart, scope, gravity = True, "::", True

    def __init__(self, robot: Mechanism, losses: Losses, path: Path) -> None:
        super().__init__(robot, losses, path)
        d = robot.description
        self.root = owner = ET.Element("sdf", {"version": "1.11"})
        if d.gravity != (0.0, 0.0, -9.81):
            owner = add(self.root, "world", name="world")
            put(owner, "gravity", d.gravity)
        self.model = add(owner, "model", name=robot.name)
        self.links = self.joints = Names(self.links | self.joints)  # which share their names
        self.axis_of: dict[str, Element] = {}
        self.followers = set[str]()
        self.elements: dict[str, Element] = {}  # of links
        self.parts()
        for spring in d.springs:
            add_drake(self.model, spring, {}, words=True)
        self.looks(self.elements)
        self.declare_drake()

    def home(self) -> Array:
        robot, q = self.robot, self._zero()
        self.zero = {name: np.atleast_1d(x) for name, x in robot.joint_states(q, time=0.0).q.items()}
        return q

    def _zero(self) -> Array:
        robot = self.robot
        q = robot.neutral()
        links = [np.arange(robot.nc)[robot.constraint(name).rows] for name in robot.loop_joints]
        held = np.concatenate([np.empty(0, int), *links])  # of loops that hold nothing there is none to close
        if np.abs(robot.constraint_residual(q, time=0.0)[held]).max(initial=0.0) < 1e-12 * min(1.0, robot._length):
            return q
        try:
            q = robot.assemble(time=0.0)
        except AssemblyError as error:
            self.losses.motion.append(f"loops that are open ({error})")
            return robot.neutral()
        moved = np.abs(q - robot.neutral())
        if off := [name for name in robot.joints if moved[robot.joint(name).q_slice].max(initial=0) > 0]:
            text = f"where coordinates count from: those of {listed(off)} are zero where the file closes the loops"
            self.losses.minor.append(text)
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
            self.look_for_lacking(spec)
            self._chain(link)
            return
        element = self._element(spec.name, SDF.joints[kind], spec.parent, spec.child, spec.at_child)
        if kind == "Spherical":
            self._ball(element, spec)
        elif kind == "Universal":
            self.look_for_lacking(spec)
            # the first axis stands still in the parent
            in_child, in_parent = self.pose[spec.child] @ spec.at_child, self.pose[spec.parent] @ spec.at_parent
            turned = in_child.rotation.T @ in_parent.rotation
            for axis, R, tag in zip(link.axes, (turned, np.eye(3)), ("axis", "axis2"), strict=True):
                step = Step(spec.name, axis, self.numbers(link, axis))
                self._axis(element, spec, step, R @ axis.direction, tag)
        elif kind != "Fixed":
            self.look_for_lacking(spec)
            if kind == "Helical":
                put(element, "screw_thread_pitch", 2 * np.pi * vars(link.joint)["pitch"])
            axis = link.axes[0]
            self.coordinates[spec.name, 0] = spec.name
            self.driven |= {spec.name} if spec.actuated else set()
            self._axis(element, spec, Step(spec.name, axis, self.numbers(link, axis)), axis.direction)

    def _chain(self, link: Link) -> None:
        for step, (near, at_near), (child, at_child) in self.chain(link):
            if child != link.far:
                self.pose[child] = self.pose[near] @ at_near @ self._moved(step, link.spec)
                self.body(child, Inertia.zero())
            element = self._element(step.name, "revolute" if step.turns else "prismatic", near, child, at_child)
            self._axis(element, link.spec, step, step.axis.direction)

    def _moved(self, step: Step, spec: JointSpec) -> Transform:
        """By a hinge or slide, where the file's zero is."""
        way, none = step.axis.direction * self.zero[spec.name][step.index], np.zeros(3)
        return Transform.exp(np.concatenate([way, none] if step.turns else [none, way]))

    def _element(self, name: str, kind: str, parent: str, child: str, in_child: Transform) -> Element:
        element = add(self.model, "joint", name=name, type=kind)
        self.place(element, in_child)
        put(element, "parent", "world" if parent == "ground" else parent)
        put(element, "child", "world" if child == "ground" else child)
        return element

    def _axis(self, element: Element, spec: JointSpec, step: Step, direction: Array, tag: str = "axis") -> None:
        axis, zero, numbers = add(element, tag), self.zero[spec.name][step.index], dict(step.numbers)
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
        if any((values := self.whole(spec)).values()):
            axis = add(element, "axis")
            put(axis, "xyz", (0, 0, 1))
            SDF.write(axis, values)

    def place(self, element: Element, place: Transform) -> None:
        if not np.array_equal(place.matrix, np.eye(4)):
            put(element, "pose", [*place.translation, *Rotation(place.rotation).rpy])

    # ---- constraints -------------------------------------------------------------------------------------------------

    def tie(self, spec: ConstraintSpec) -> bool:
        # whoever reads a mimic takes the follower as passive
        mimic = mimic_of(spec, self.coordinates, {*self.followers, *self.driven})
        if mimic is None:
            return add_drake(self.model, spec, self.coordinates, words=True, zero=self.zero)
        follower, leader, multiplier, offset = mimic
        self.followers.add(follower)
        zero = {name: self.zero[joint][index] for (joint, index), name in self.coordinates.items()}
        element = add(self.axis_of[follower], "mimic", joint=leader, axis="axis")
        offset += multiplier * zero[leader] - zero[follower]
        for name, value in (("multiplier", multiplier), ("offset", offset), ("reference", 0.0)):
            put(element, name, value)
        return True

    def collision(self, link: Element | None, spec: ShapeSpec) -> Element | None:
        element = super().collision(link, spec)
        for name, way in COEFFICIENTS.items():
            if element is not None and getattr(spec, name) is not None:
                put(element, f"surface/{way}", getattr(spec, name))
        if element is not None and spec.torsional_friction is not None:
            for name, number in (("coefficient", 1.0), ("patch_radius", spec.torsional_friction / PATCH)):
                put(element, f"surface/{TORSIONAL}/{name}", number)
        return element

    def visual(self, link: Element | None, visual: Any) -> None:
        super().visual(link, visual)
        for k, element in enumerate(link.findall("visual") if link is not None else ()):
            element.set("name", f"visual{k}")


save = partial(lowering.save, _Writer)
