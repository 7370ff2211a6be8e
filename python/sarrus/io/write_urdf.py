"""URDF, and what closes its loops in a file beside it.

============================  ==========================================================================================================
bodies                        links. The ground is a link "world", unless a single Fixed joint leads there
joints                        URDF's, and "ball". A joint of several axes is a chain of hinges and slides with links without mass between; a
                              screw a hinge and a slide that mimics it. A joint's frame being its child's, a body whose frame is elsewhere
                              hangs on a link without mass by a fixed joint
loops                         ROBOT.yaml, as Gepetto's example-parallel-robots have it and :class:`sarrus.io.urdf_loops.Sidecar` says: frames
                              that coincide, which are links without mass. Fixed (6d), Spherical (3d), Revolute, Universal of
                              perpendicular axes. It names the motors too, for which URDF has no word
couplers                      mimic, of two joints of one axis; else, if linear, Drake's tendon
distances, springs            Drake's tags, which others pass over
frames                        links without mass on fixed joints
visuals                       as they are
============================  ==========================================================================================================
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np

from .._files import replacing
from ..description import Box, Cylinder, JointSpec, Mesh, Sphere
from ..description.joints import JointType
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
    frame_along,
    has_passive,
    limits_of,
    mimic_of,
    no_shape,
    number_of,
    tree_links,
    with_plain_names,
)

if TYPE_CHECKING:
    from ..mechanism import Mechanism

__all__ = ["save"]


def save(robot: Mechanism, path: Path, *, lossy: bool = False) -> list[Path]:
    """Write a file, and one beside it where there are loops or passive joints, as :meth:`sarrus.Mechanism.save` says."""
    losses = Losses("URDF")
    losses.look_for_idle(robot)
    robot = with_plain_names(robot, losses)
    writer = _Writer(robot, losses, path)
    text = document(writer.root)
    losses.settle(path, lossy)
    sidecar = writer.sidecar()
    with ExitStack() as files:  # both of them or none
        files.enter_context(replacing(path)).write_text(text, encoding="utf-8")
        if not sidecar:
            return [path]
        beside = path.with_suffix(".yaml")
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in sidecar.items())
        files.enter_context(replacing(beside)).write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")  # JSON is YAML
    return [path, beside]


class _Writer:
    def __init__(self, robot: Mechanism, losses: Losses, path: Path) -> None:
        self.robot, self.losses, self.path, d = robot, losses, path, robot.description
        self.root = ET.Element("robot", {"name": robot.name})
        self.links = {body.name for body in d.bodies} | {frame.name for frame in d.frames}
        self.joints = {spec.name for spec in d.joints}
        self.loops: list[tuple[str, str, str]] = []
        self.movable: dict[str, bool] = {}  # names in the file, and whether a motor drives them
        self.coordinates: dict[tuple[str, int], str] = {}
        self.afloat = set[str]()  # names of Free joints
        self.elements: dict[str, Element] = {}
        tree = tree_links(robot)
        self.ground = self._new("world", self.links)  # a name that is free
        self.bare = self._root_joint(tree)
        if self.bare is None:
            add(self.root, "link", name=self.ground)
        for body in d.bodies:
            link = add(self.root, "link", name=body.name)
            _inertial(link, body.inertia)
            for visual in d.visuals:
                if visual.body == body.name:
                    self._visual(link, visual)
        if any(visual.body == "ground" for visual in d.visuals):
            losses.minor.append("visuals of the ground")
        for name, one in tree.items():
            if name != self.bare:
                self._joint(one)
        for frame in d.frames:
            self._frame(frame.name, frame.body, frame.placement)
        followers: set[str] = set()
        for name in robot.constraints:
            spec = robot.constraint(name).spec
            if isinstance(spec, JointSpec):
                self._closing(spec)
            elif mimic := mimic_of(spec, self.coordinates, followers, self._driven()):
                follower, leader, multiplier, offset = mimic
                followers.add(follower)
                add(self.elements[follower], "mimic", joint=leader, multiplier=multiplier, offset=offset)
            elif not add_drake(self.root, spec, self.coordinates, words=False):
                losses.motion.append(f"constraint '{spec}'")
        for spring in d.springs:
            add_drake(self.root, spring, {}, words=False)
        if any(child.tag.startswith("drake:") for child in self.root):
            self.root.set("xmlns:drake", "http://drake.mit.edu")

    def sidecar(self) -> dict[str, Any]:
        """What the file beside says; nothing where URDF alone is understood."""
        said: dict[str, Any] = {}
        if self.loops:
            said = {"closed_loop": [[a, b] for a, b, _ in self.loops], "type": [kind for _, _, kind in self.loops]}
        followers = {name for name, element in self.elements.items() if element.find("mimic") is not None}
        # where nothing says which joints are driven, those are that move, but for what floats or follows
        if said or any(driven == (name in followers or name in self.afloat) for name, driven in self.movable.items()):
            said["name_mot"] = [name for name, driven in self.movable.items() if driven]
        return said

    def _driven(self) -> set[str]:
        return {name for name, driven in self.movable.items() if driven}

    # ---- names -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _new(name: str, taken: set[str]) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    def _called(self, body: str) -> str:
        return self.ground if body == "ground" else body

    def _root_joint(self, tree: dict[str, Link]) -> str | None:
        """The joint that need not be written: Fixed, in place, and all there is on the ground."""
        d = self.robot.description
        here = [link for link in tree.values() if link.near == "ground"]
        held = [body for c in d.constraints for body in c.bodies] + [body for j in d.joints for body in j.bodies]
        held += [frame.body for frame in d.frames] + [visual.body for visual in d.visuals]
        held += [end[0] for spring in d.springs for end in (spring.first, spring.second)]
        if len(here) == 1 and held.count("ground") == 1 and here[0].joint.nv == 0 and here[0].place == IDENTITY:
            return here[0].spec.name
        return None

    # ---- joints ------------------------------------------------------------------------------------------------------

    def _joint(self, link: Link) -> None:
        name, joint = link.spec.name, link.joint
        if lost := [x for x in has_passive(joint) if x in ("stiffness", "armature")]:
            self.losses.motion.append(f"{' and '.join(lost)} of joint '{name}'")
        whole = {"Fixed": "fixed", "Spherical": "ball", "Free": "floating"} | (
            {} if link.backward else {"Planar": "planar"}
        )
        if joint.kind in whole:
            if link.backward and joint.nv:
                text = f"joint '{name}' from '{link.far}' to '{link.near}': its coordinates are those of the inverse"
                self.losses.minor.append(text)
            self._whole(link, whole[joint.kind])
            return
        names = coordinate_names(link, self.joints)
        near, place, steps = self._called(link.near), link.start, []
        for k, axis in enumerate(link.axes):
            point = Transform(translation=axis.point)
            rest = point.inverse() @ link.end
            last = k == len(link.axes) - 1 and _same(rest)
            child = link.far if last else self._new(f"{name}_link{k + 1}", self.links)
            steps.append((axis, names[k], near, child, place @ point))
            near, place = child, point.inverse()
            if child != link.far:
                add(self.root, "link", name=child)
        steps.sort(key=lambda step: step[0].index)  # as they are stacked
        for axis, own, parent, child, origin in steps:
            element = self._element(own, "revolute" if axis.turns else "prismatic", parent, child, origin)
            add(element, "axis", xyz=axis.direction)
            if joint.kind == "Helical" and not axis.turns:
                add(element, "mimic", joint=name, multiplier=vars(joint)["pitch"], offset=0.0)
                element.set("type", "prismatic")
                self.movable[own] = False
                _limit(element, (-np.inf, np.inf), np.inf, np.inf)
                continue
            self._properties(element, link, axis)
            self.coordinates[link.spec.name, axis.index] = own
        if near != link.far:
            self._element(self._new(f"{name}_end", self.joints), "fixed", near, link.far, place @ link.end)

    def _whole(self, link: Link, kind: str) -> None:
        """A joint that URDF has, coordinates and all."""
        joint, name = link.joint, link.spec.name
        # a planar joint's constants are in `end` as nothing is held
        rest = IDENTITY if joint.nv == 0 else link.end
        child = link.far if _same(rest) else self._new(f"{name}_link", self.links)
        element = self._element(name, kind, self._called(link.near), child, link.place if joint.nv == 0 else link.start)
        if joint.kind == "Planar":
            add(element, "axis", xyz=vars(joint)["normal"])
        for axis in range(joint.nv):
            if any(getattr(joint, term)[axis] != getattr(joint, term)[0] for term in ("damping", "friction")):
                self.losses.motion.append(f"damping and friction of joint '{name}' that differ between directions")
                break
        if joint.nv and (joint.damping[0] or joint.friction[0]):
            add(element, "dynamics", damping=joint.damping[0], friction=joint.friction[0])
        if any(getattr(joint, bound) is not None for bound in ("limits", "velocity_limit", "effort_limit")):
            self.losses.minor.append(f"limits of joint '{name}' ({joint.kind})")
        if joint.nv:
            self.movable[name] = link.spec.actuated
        if joint.kind == "Free":
            self.afloat.add(name)
        if child != link.far:
            add(self.root, "link", name=child)
            self._element(self._new(f"{name}_end", self.joints), "fixed", child, link.far, rest)

    def _properties(self, element: Element, link: Link, axis: Axis) -> None:
        limits = limits_of(link, axis)
        if limits is None and axis.turns:
            element.set("type", "continuous")
        effort, velocity = (number_of(link, axis, bound, np.inf) for bound in ("effort_limit", "velocity_limit"))
        if limits is not None or not axis.turns or np.isfinite([effort, velocity]).any():
            _limit(element, limits or (None if axis.turns else (-np.inf, np.inf)), effort, velocity)
        losses = {name: number_of(link, axis, name) for name in ("damping", "friction")}
        if any(losses.values()):
            add(element, "dynamics", **losses)
        self.movable[element.get("name", "")] = link.spec.actuated

    def _element(self, name: str, kind: str, parent: str, child: str, origin: Transform) -> Element:
        element = add(self.root, "joint", name=name, type=kind)
        if not _same(origin):
            _origin(element, origin)
        add(element, "parent", link=parent)
        add(element, "child", link=child)
        self.elements[name] = element
        return element

    def _frame(self, name: str, body: str, place: Transform) -> str:
        add(self.root, "link", name=name)
        self._element(self._new(f"{name}_joint", self.joints), "fixed", self._called(body), name, place)
        return name

    def _closing(self, spec: JointSpec) -> None:
        found = _closing_type(spec.joint)
        if found is None or spec.laws or has_passive(spec.joint) or spec.actuated:
            what = "" if found else "; Fixed, Spherical, Revolute and Universal of perpendicular axes can"
            what = what or "; there it has no laws, no motor and no damping, friction, springs or armature"
            self.losses.motion.append(f"that joint '{spec}' closes a loop{what}")
            return
        kind, at_parent, at_child = found
        ends = [
            self._frame(self._new(f"{spec.name}_{letter}", self.links), body, place @ turned)
            for letter, body, place, turned in (
                ("A", spec.parent, spec.at_parent, at_parent),
                ("B", spec.child, spec.at_child, at_child),
            )
        ]
        if any(getattr(spec.joint, bound) is not None for bound in ("limits", "velocity_limit", "effort_limit")):
            self.losses.minor.append(f"limits of joint '{spec.name}', which closes a loop")
        self.loops.append((ends[0], ends[1], kind))

    def _visual(self, link: Element, visual: Any) -> None:
        element, shape = add(link, "visual"), visual.shape
        if not _same(visual.placement):
            _origin(element, visual.placement)
        geometry = add(element, "geometry")
        if isinstance(shape, Box):
            add(geometry, "box", size=shape.size)
        elif isinstance(shape, Cylinder):
            add(geometry, "cylinder", radius=shape.radius, length=shape.length)
        elif isinstance(shape, Sphere):
            add(geometry, "sphere", radius=shape.radius)
        elif isinstance(shape, Mesh):
            scale = None if shape.scale == (1.0, 1.0, 1.0) else shape.scale
            add(geometry, "mesh", filename=beside(shape, self.path), scale=scale)
        else:
            self.losses.minor.append(no_shape(visual))
            link.remove(element)
            return
        if visual.color is not None:
            add(add(element, "material", name=""), "color", rgba=visual.color)


def _closing_type(joint: JointType) -> tuple[str, Transform, Transform] | None:
    """What the sidecar calls it, and how its frames there are turned in those that it has here."""
    if joint.kind == "Fixed":
        return "6d", IDENTITY, IDENTITY
    if joint.kind == "Spherical":
        return "3d", IDENTITY, IDENTITY
    if joint.kind == "Revolute":
        turned = frame_along(vars(joint)["axis"])
        return "revolute", turned, turned
    if joint.kind == "Universal":
        one, other = vars(joint)["axis1"], vars(joint)["axis2"]
        if abs(one @ other) < 1e-12:
            turned = Transform(np.column_stack([one, other, np.cross(one, other)]))
            return "universal", turned, turned
    return None


def _same(place: Transform) -> bool:
    return np.array_equal(place.rotation, np.eye(3)) and not place.translation.any()


def _origin(owner: Element, place: Transform) -> None:
    turned = not np.array_equal(place.rotation, np.eye(3))
    add(owner, "origin", xyz=place.translation, rpy=Rotation(place.rotation).rpy if turned else None)


def _inertial(link: Element, inertia: Inertia) -> None:
    if inertia.mass == 0.0 and not inertia.about_com.any():
        return
    inertial, I = add(link, "inertial"), inertia.about_com
    add(inertial, "origin", xyz=inertia.com)
    add(inertial, "mass", value=inertia.mass)
    add(inertial, "inertia", ixx=I[0, 0], ixy=I[0, 1], ixz=I[0, 2], iyy=I[1, 1], iyz=I[1, 2], izz=I[2, 2])


def _limit(element: Element, limits: tuple[float, float] | None, effort: float, velocity: float) -> None:
    low, high = limits or (None, None)
    add(element, "limit", lower=low, upper=high, effort=effort, velocity=velocity)
