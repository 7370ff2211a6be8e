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
============================  ==========================================================================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array
from .._files import replacing
from ..description import Box, Cylinder, JointSpec, Mesh, Sphere
from ..errors import AssemblyError
from ..spatial import Inertia, Rotation, Transform
from .outline import (
    IDENTITY,
    Axis,
    Element,
    Link,
    Losses,
    add,
    add_drake,
    beside,
    coordinate_names,
    document,
    has_passive,
    limits_of,
    link_of,
    listed,
    mimic_of,
    no_shape,
    number_of,
    text_of,
    with_plain_names,
)

if TYPE_CHECKING:
    from ..mechanism import Mechanism

__all__ = ["save"]

NATIVE = {"Revolute": "revolute", "Prismatic": "prismatic", "Helical": "screw", "Universal": "universal"}


def save(robot: Mechanism, path: Path, *, lossy: bool = False) -> list[Path]:
    """Write a file, as :meth:`sarrus.Mechanism.save` says."""
    losses = Losses("SDF")
    losses.look_for_idle(robot, gravity=True)
    robot = with_plain_names(robot, losses, apart=True, scope="::")
    text = document(_Writer(robot, losses, path).root)
    losses.settle(path, lossy)
    with replacing(path) as file:
        file.write_text(text, encoding="utf-8")
    return [path]


class _Writer:
    def __init__(self, robot: Mechanism, losses: Losses, path: Path) -> None:
        self.robot, self.losses, self.path, d = robot, losses, path, robot.description
        self.root = owner = ET.Element("sdf", {"version": "1.11"})
        if d.gravity != (0.0, 0.0, -9.81):
            owner = add(self.root, "world", name="world")
            _word(owner, "gravity", d.gravity)
        self.model = add(owner, "model", name=robot.name)
        self.links = {body.name for body in d.bodies} | {frame.name for frame in d.frames} | {s.name for s in d.joints}
        self.joints = self.links  # which share their names
        self.names: dict[tuple[str, int], str] = {}  # of coordinates with a joint of one axis
        self.axis_of: dict[str, Element] = {}
        self.driven = set[str]()  # names of joints of one axis with a motor
        q = self._zero()
        self.zero = {name: np.atleast_1d(x) for name, x in robot.joint_coordinates(q, time=0.0).items()}
        self.place = {"ground": IDENTITY}
        for body in d.bodies:
            self.place[body.name] = Transform.from_matrix(robot.pose(q, body.name))
            self._link(body.name, self.place[body.name], body.inertia)
        for spec in d.joints:
            if spec.laws:
                losses.motion.append(f"constraint '{spec}'")
            elif spec.joint.kind == "Free":
                self._free(spec)
            else:
                self._joint(spec)
        for frame in d.frames:
            element = add(
                self.model, "frame", name=frame.name, attached_to=None if frame.body == "ground" else frame.body
            )
            _pose(element, frame.placement)
        followers: set[str] = set()
        for c in d.constraints:
            # whoever reads a mimic takes the follower as passive
            if mimic := mimic_of(c, self.names, {*followers, *self.driven}):
                follower, leader, multiplier, offset = mimic
                followers.add(follower)
                (a, i), (b, k) = (next(key for key, name in self.names.items() if name == end) for end in mimic[:2])
                element = add(self.axis_of[follower], "mimic", joint=leader, axis="axis")
                _word(element, "multiplier", multiplier)
                _word(element, "offset", offset + multiplier * self.zero[b][k] - self.zero[a][i])
                _word(element, "reference", 0.0)
            elif not add_drake(self.model, c, self.names, words=True, zero=self.zero):
                losses.motion.append(f"constraint '{c}'")
        for spring in d.springs:
            add_drake(self.model, spring, {}, words=True)
        for visual in d.visuals:
            self._visual(visual)
        if any(child.tag.startswith("drake:") for child in self.model.iter()):
            self.root.set("xmlns:drake", "http://drake.mit.edu")

    def _zero(self) -> Array:
        """The configuration of the file's pose."""
        robot = self.robot
        q = robot.neutral()
        links = [np.arange(robot.nc)[robot.constraint(name).rows] for name in robot.loop_joints]
        held = np.concatenate([np.empty(0, int), *links])  # of loops that hold nothing there is none to close
        if np.abs(robot.loop_residual(q, time=0.0)[held]).max(initial=0.0) < 1e-12:
            return q
        try:
            q = robot.assemble(time=0.0)
        except AssemblyError as error:
            self.losses.motion.append(f"loops that are open ({error})")
            return robot.neutral()
        off = [
            name for name in robot.joints if np.abs(q - robot.neutral())[robot.joint(name).q_slice].max(initial=0) > 0
        ]
        if off:
            self.losses.minor.append(
                f"where coordinates count from: those of {listed(off)} are zero where the file closes the loops"
            )
        return np.asarray(q)

    def _new(self, name: str, taken: set[str]) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    def _link(self, name: str, place: Transform, inertia: Inertia) -> None:
        link = add(self.model, "link", name=name)
        _pose(link, place)
        inertial = add(link, "inertial")
        _pose(inertial, Transform(translation=inertia.com))
        _word(inertial, "mass", inertia.mass)
        tensor, I = add(inertial, "inertia"), inertia.about_com
        for i, k in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
            _word(tensor, f"i{'xyz'[i]}{'xyz'[k]}", I[i, k])

    def _free(self, spec: JointSpec) -> None:
        if lost := has_passive(spec.joint):
            self.losses.motion.append(f"{', '.join(lost)} of joint '{spec.name}' (Free)")
        if spec.actuated:
            self.losses.minor.append(f"that joint '{spec.name}' (Free) is actuated")
        self.losses.minor.append(f"the name and the frames of joint '{spec.name}': what no joint leads to floats")

    # ---- joints ------------------------------------------------------------------------------------------------------

    def _joint(self, spec: JointSpec) -> None:
        joint, name = spec.joint, spec.name
        link, in_child = link_of(spec), self.place[spec.child] @ spec.at_child
        if joint.nv == 0 or joint.kind == "Spherical":
            element = self._element(name, "fixed" if joint.nv == 0 else "ball", spec.parent, spec.child, in_child)
            if joint.nv:
                self._ball(element, spec)
        elif joint.kind in NATIVE:
            element = self._element(name, NATIVE[joint.kind], spec.parent, spec.child, in_child)
            if joint.kind == "Helical":
                _word(element, "screw_thread_pitch", 2 * np.pi * vars(joint)["pitch"])
            if joint.kind == "Universal":
                # the first axis stands still in the parent
                turned = in_child.rotation.T @ (self.place[spec.parent] @ spec.at_parent).rotation
                self._axis(element, link, link.axes[0], turned @ link.axes[0].direction, "axis")
                self._axis(element, link, link.axes[1], link.axes[1].direction, "axis2")
            else:
                self._name(spec, 0, name)
                self._axis(element, link, link.axes[0], link.axes[0].direction, "axis")
        else:
            self._chain(link)

    def _chain(self, link: Link) -> None:
        spec, near = link.spec, link.spec.parent
        at, zero = self.place[near] @ link.start, self.zero[spec.name]
        for axis, name in zip(link.axes, coordinate_names(link, self.joints), strict=True):
            p, u, q = axis.point, axis.direction, zero[axis.index]
            at = at @ Transform.exp(np.concatenate([u, np.cross(p, u)] if axis.turns else [np.zeros(3), u]) * q)
            joint_frame = at @ Transform(translation=p)
            if axis is link.axes[-1]:
                child = spec.child
            else:
                child = self._new(f"{name}_link", self.links)
                self.place[child] = joint_frame
                self._link(child, joint_frame, Inertia.zero())
            element = self._element(name, "revolute" if axis.turns else "prismatic", near, child, joint_frame)
            self._name(spec, axis.index, name)
            self._axis(element, link, axis, u, "axis")
            near = child
        if spec.joint.kind == "Planar":
            self.losses.minor.append(
                f"velocities of joint '{spec.name}' along the body's own axes: they are along the plane's"
            )

    def _name(self, spec: JointSpec, index: int, name: str) -> None:
        """Of a coordinate, which has a joint of its own."""
        self.names[spec.name, index] = name
        if spec.actuated:
            self.driven.add(name)

    def _element(self, name: str, kind: str, parent: str, child: str, in_world: Transform) -> Element:
        element = add(self.model, "joint", name=name, type=kind)
        _pose(element, self.place[child].inverse() @ in_world)
        _word(element, "parent", "world" if parent == "ground" else parent)
        _word(element, "child", "world" if child == "ground" else child)
        return element

    def _axis(self, element: Element, link: Link, axis: Axis, direction: Array, tag: str) -> None:
        own, zero = add(element, tag), self.zero[link.spec.name][axis.index]
        if tag == "axis":
            self.axis_of[element.get("name", "")] = own
        _word(own, "xyz", direction)
        limits, limit = limits_of(link, axis), add(own, "limit")
        for word, bound in zip(("lower", "upper"), limits or (), strict=False):
            if np.isfinite(bound):
                _word(limit, word, bound - zero)
        most = number_of(link, axis, "effort_limit", np.inf)
        _word(limit, "effort", 0.0 if not link.spec.actuated else most if np.isfinite(most) else -1.0)
        if not link.spec.actuated and np.isfinite(most):
            self.losses.minor.append(f"the effort limit of joint '{link.spec.name}', which is passive")
        if np.isfinite(speed := number_of(link, axis, "velocity_limit", np.inf)):
            _word(limit, "velocity", speed)
        terms = {name: number_of(link, axis, name) for name in ("damping", "friction", "stiffness")}
        if any(terms.values()):
            dynamics = add(own, "dynamics")
            for name, value in terms.items():
                _word(dynamics, {"stiffness": "spring_stiffness"}.get(name, name), value)
            if terms["stiffness"]:
                _word(dynamics, "spring_reference", number_of(link, axis, "rest") - zero)
        if armature := number_of(link, axis, "armature"):
            if link.spec.joint.kind == "Universal":
                self.losses.motion.append(f"armature of joint '{link.spec.name}' (Universal)")
                return
            _word(element, "drake:rotor_inertia", armature)
            _word(element, "drake:gear_ratio", 1.0)

    def _ball(self, element: Element, spec: JointSpec) -> None:
        joint, name = spec.joint, spec.name
        if spec.actuated:
            self.losses.minor.append(f"that joint '{name}' ({joint.kind}) is actuated")
        if joint.limits is not None or joint.velocity_limit is not None or joint.effort_limit is not None:
            self.losses.minor.append(f"limits of joint '{name}' ({joint.kind})")
        terms = {word: getattr(joint, word) for word in ("damping", "friction")}
        if any((x != x[0]).any() for x in terms.values()) or joint.stiffness.any() or joint.armature.any():
            text = "springs, armature, and damping and friction that differ between directions"
            self.losses.motion.append(f"{text}, of joint '{name}' ({joint.kind})")
        if any(x.any() for x in terms.values()):
            axis = add(element, "axis")
            _word(axis, "xyz", (0, 0, 1))
            dynamics = add(axis, "dynamics")
            for word, values in terms.items():
                _word(dynamics, word, values[0])

    # ---- looks -------------------------------------------------------------------------------------------------------

    def _visual(self, visual: Any) -> None:
        link = next((x for x in self.model.findall("link") if x.get("name") == visual.body), None)
        if link is None:
            self.losses.minor.append("visuals of the ground")
            return
        element, shape = add(link, "visual", name=f"visual{len(link.findall('visual'))}"), visual.shape
        _pose(element, visual.placement)
        geometry = add(element, "geometry")
        if isinstance(shape, Box):
            _word(add(geometry, "box"), "size", shape.size)
        elif isinstance(shape, Cylinder):
            cylinder = add(geometry, "cylinder")
            _word(cylinder, "radius", shape.radius)
            _word(cylinder, "length", shape.length)
        elif isinstance(shape, Sphere):
            _word(add(geometry, "sphere"), "radius", shape.radius)
        elif isinstance(shape, Mesh):
            mesh = add(geometry, "mesh")
            _word(mesh, "uri", beside(shape, self.path))
            _word(mesh, "scale", shape.scale)
        else:
            self.losses.minor.append(no_shape(visual))
            link.remove(element)
            return
        if visual.color is not None:
            material = add(element, "material")
            _word(material, "ambient", visual.color)
            _word(material, "diffuse", visual.color)


def _word(owner: Element, tag: str, value: ArrayLike | str) -> None:
    ET.SubElement(owner, tag).text = value if isinstance(value, str) else text_of(value)


def _pose(owner: Element, place: Transform) -> None:
    if not np.array_equal(place.matrix, np.eye(4)):
        _word(owner, "pose", [*place.translation, *Rotation(place.rotation).rpy])
