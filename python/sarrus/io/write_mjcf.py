"""MJCF, as MuJoCo reads it.

============================  ==========================================================================================================
bodies                        bodies, nested along the tree
joints                        hinges, slides and balls; those of several axes several, which MuJoCo takes one after the other; a Free joint
                              from the ground a freejoint; a screw a hinge and a slide that an equality ties
loops                         equalities between sites, which lie where the joint's frames are: Fixed a weld, Spherical a connect, Revolute
                              two connects (one of their six rows says what the others say)
distances                     spatial tendons whose length an equality holds
couplers                      joint equalities of two joints; of more, where they are linear, a fixed tendon's
springs between points        spatial tendons
frames; home, configurations  sites; keyframes
visuals                       geoms without mass, but for meshes
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
from ..description import Box, CouplerSpec, Cylinder, DistanceSpec, JointSpec, Mesh, Sphere
from ..spatial import Inertia, Rotation, Transform
from .outline import (
    Axis,
    Element,
    Link,
    Losses,
    add,
    coordinate_names,
    document,
    has_passive,
    limits_of,
    listed,
    no_shape,
    number_of,
    tree_links,
    with_plain_names,
)

if TYPE_CHECKING:
    from ..mechanism import Mechanism

__all__ = ["save"]

SMALLEST = 1e-14  # moments of inertia of moving bodies have to be larger than MuJoCo's mjMINVAL = 1e-15


def save(robot: Mechanism, path: Path, *, lossy: bool = False) -> list[Path]:
    """Write a file, as :meth:`sarrus.Mechanism.save` says."""
    losses = Losses("MJCF")
    robot = with_plain_names(robot, losses)
    text = document(_Writer(robot, losses).root)
    losses.settle(path, lossy)
    with replacing(path) as file:
        file.write_text(text, encoding="utf-8")
    return [path]


class _Writer:
    def __init__(self, robot: Mechanism, losses: Losses) -> None:
        self.robot, self.losses, d = robot, losses, robot.description
        self.root = root = ET.Element("mujoco", {"model": robot.name})
        compiler = add(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        add(root, "option", gravity=d.gravity)
        world = add(root, "worldbody")
        self.body: dict[str, Element] = {"ground": world}
        self.names = {spec.name for spec in d.joints}
        self.coordinates: dict[str, dict[int, str]] = {}  # joint -> index -> the name of MuJoCo's joint
        self.link_to: dict[str | None, Link] = {}
        self.inertia = {body.name: body.inertia for body in d.bodies}
        self.equality, self.tendon, self.actuator = (ET.Element(tag) for tag in ("equality", "tendon", "actuator"))
        self.sites: set[str] = set()
        self.thin = False
        links = tree_links(robot)
        below: dict[str, list[Link]] = {}
        for link in links.values():
            below.setdefault(link.near, []).append(link)
        stack = list(reversed(below.get("ground", [])))
        while stack:  # depth first, as MuJoCo counts
            link = stack.pop()
            self.link_to[link.far] = link
            self._body(link)
            stack += reversed(below.get(link.far, []))
        massless = [n for n, I in self.inertia.items() if I.mass == 0.0 and not self._carries(n, below)]
        if massless:
            losses.minor.append(f"bodies that move and have no mass, which MuJoCo itself refuses: {listed(massless)}")
        if self.thin:
            compiler.set("boundinertia", f"{SMALLEST:g}")
        for frame in d.frames:
            self._site(frame.body, frame.name, frame.placement)
        for visual in d.visuals:
            self._geom(visual)
        for name in robot.constraints:
            self._constraint(robot.constraint(name).spec)
        for spring in d.springs:
            tendon = add(
                self.tendon, "spatial", name=spring.name, stiffness=spring.stiffness, springlength=spring.rest_length
            )
            if spring.damping:
                tendon.set("damping", repr(spring.damping))
            for k, (body, point) in enumerate((spring.first, spring.second)):
                add(tendon, "site", site=self._site(body, f"{spring.name}_{'ab'[k]}", Transform(translation=point)))
        keys = ET.Element("keyframe")
        named = dict(d.configurations)
        for name in robot.configurations:
            add(keys, "key", name=name, qpos=self._qpos(robot.configuration(name)))
        if d.home and "home" not in named:
            add(keys, "key", name="home", qpos=self._qpos(robot._at(d.home)))
        for section in (self.equality, self.tendon, self.actuator, keys):
            if len(section):
                root.append(section)

    def _carries(self, body: str, below: dict[str, list[Link]]) -> bool:
        """Whether something with mass is welded to it, or it does not move itself."""
        own = [link for links in below.values() for link in links if link.far == body]
        if any(link.joint.nv == 0 for link in own):
            return True
        welded = [link.far for link in below.get(body, []) if link.joint.nv == 0]
        return any(self.inertia[name].mass > 0.0 or self._carries(name, below) for name in welded if name != body)

    # ---- bodies and joints -------------------------------------------------------------------------------------------

    def _body(self, link: Link) -> None:
        name, joint, spec = link.far, link.joint, link.spec
        near, place = link.near, link.place
        if joint.kind == "Free" and near != "ground":  # which holds nothing: it floats in the world as well
            near, place = "ground", Transform.from_matrix(self.robot.pose(self.robot.neutral(), name))
        element = self.body[name] = add(self.body[near], "body", name=name, **_placed(place))
        if joint.kind == "Free":
            self._free(link, element)
        elif joint.kind == "Spherical":
            point = link.end.inverse().translation
            self._note_inverse(link)
            alike = {term: getattr(joint, term) for term in has_passive(joint)}
            if any((values != values[0]).any() for values in alike.values()):
                self.losses.motion.append(
                    f"{', '.join(alike)} of ball joint '{spec.name}' that differ between directions"
                )
            given = {"damping": joint.damping[0], "frictionloss": joint.friction[0]}
            given |= {"armature": joint.armature[0], "stiffness": joint.stiffness[0]}
            add(element, "joint", name=spec.name, type="ball", pos=point, **{k: x for k, x in given.items() if x})
            if link.end.inverse().rotation.tolist() != np.eye(3).tolist():
                self.losses.minor.append(f"the axes in which '{spec.name}' counts its coordinates: they are the body's")
        elif joint.nv:
            self._axes(link, element)
        self._inertial(element, self.inertia[name])
        bounds = [b for b in ("velocity_limit",) if getattr(joint, b) is not None]
        if bounds:
            self.losses.minor.append(f"the velocity limit of joint '{spec.name}'")
        if spec.actuated and joint.nv and spec.name not in self.coordinates:
            self.losses.minor.append(f"that joint '{spec.name}' ({joint.kind}) is actuated")

    def _free(self, link: Link, element: Element) -> None:
        spec = link.spec
        if has_passive(spec.joint):
            self.losses.motion.append(f"{', '.join(has_passive(spec.joint))} of Free joint '{spec.name}'")
        if link.backward or link.near != "ground" or link.place != Transform():
            self.losses.minor.append(
                f"where the frames of Free joint '{spec.name}' sit: its coordinates are the body's pose in the world"
            )
        add(element, "freejoint", name=spec.name)

    def _note_inverse(self, link: Link) -> None:
        if link.backward:
            self.losses.minor.append(
                f"joint '{link.spec.name}' from '{link.far}' to '{link.near}': its coordinates are those of the inverse"
            )

    def _axes(self, link: Link, element: Element) -> None:
        spec, joint = link.spec, link.joint
        names = coordinate_names(link, self.names)
        known = self.coordinates[spec.name] = {}
        for axis, name in zip(link.axes, names, strict=True):
            direction, point = link.on_far(axis)
            attributes: dict[str, Any] = {"name": name, "type": "hinge" if axis.turns else "slide", "axis": direction}
            if axis.turns and point.any():
                attributes["pos"] = point
            if joint.kind != "Helical" or axis.turns:
                known[axis.index] = name
                attributes |= self._properties(link, axis)
            add(element, "joint", **attributes)
        if joint.kind == "Planar":
            self.losses.minor.append(
                f"velocities of joint '{spec.name}' along the body's own axes: they are along the plane's"
            )
        if joint.kind == "Helical":
            add(
                self.equality,
                "joint",
                name=f"{spec.name}_pitch",
                joint1=next(name for name in names if name != spec.name),
                joint2=spec.name,
                polycoef=(0, vars(joint)["pitch"], 0, 0, 0),
            )
        if spec.actuated:
            for axis in link.axes:
                if joint.kind == "Helical" and not axis.turns:
                    continue
                most = number_of(link, axis, "effort_limit", np.inf)
                force = (-most, most) if np.isfinite(most) else None
                add(self.actuator, "motor", name=known[axis.index], joint=known[axis.index], forcerange=force)

    def _properties(self, link: Link, axis: Axis) -> dict[str, Any]:
        given: dict[str, Any] = {}
        limits = limits_of(link, axis)
        if limits is not None and np.isfinite(limits).all():
            given["range"] = limits
        elif limits is not None:
            self.losses.minor.append(f"limits of joint '{link.spec.name}' on one side only")
        names = {"damping": "damping", "friction": "frictionloss", "armature": "armature", "stiffness": "stiffness"}
        given |= {word: number_of(link, axis, name) for name, word in names.items() if number_of(link, axis, name)}
        if number_of(link, axis, "stiffness"):
            given["springref"] = number_of(link, axis, "rest")
        most = number_of(link, axis, "effort_limit", np.inf)
        if np.isfinite(most) and not link.spec.actuated:
            given["actuatorfrcrange"] = (-most, most)
        return given

    def _inertial(self, element: Element, inertia: Inertia) -> None:
        I = inertia.about_com
        if np.array_equal(I, np.diag(np.diag(I))):
            moments, turned = np.diag(I), None
        else:
            moments, axes = np.linalg.eigh(I)
            turned = _wxyz(axes * np.sign(np.linalg.det(axes)))
        rounding = 1e-15 * np.abs(moments).max()
        moments = np.where(np.abs(moments) <= rounding, 0.0, moments)
        low, middle, high = np.sort(moments)
        if 0.0 < high - (low + middle) <= 10 * rounding:  # of a flat body, whose largest is the sum of the others
            moments[moments.argmax()] = low + middle
        self.thin |= bool((moments < SMALLEST).any()) and inertia.mass > 0.0
        add(element, "inertial", pos=inertia.com, quat=turned, mass=inertia.mass, diaginertia=moments)
        if not inertia.is_physical():
            self.losses.minor.append(
                f"the inertia of body '{element.get('name')}', which no body has and MuJoCo itself refuses"
            )

    # ---- what else ---------------------------------------------------------------------------------------------------

    def _site(self, body: str, name: str, place: Transform) -> str:
        while name in self.sites:
            name += "_"
        self.sites.add(name)
        add(self.body[body], "site", name=name, **_placed(place))
        return name

    def _geom(self, visual: Any) -> None:
        shape, body = visual.shape, self.body[visual.body]
        if isinstance(shape, Box):
            kind, size = "box", [x / 2 for x in shape.size]
        elif isinstance(shape, Cylinder):
            kind, size = "cylinder", [shape.radius, shape.length / 2]
        elif isinstance(shape, Sphere):
            kind, size = "sphere", [shape.radius]
        else:
            mesh = isinstance(shape, Mesh)
            self.losses.minor.append(f"the mesh '{shape.file}' of body '{visual.body}'" if mesh else no_shape(visual))
            return
        seen = {"rgba": visual.color, "contype": "0", "conaffinity": "0", "group": "2", "mass": "0"}
        add(body, "geom", type=kind, size=size, **_placed(visual.placement), **seen)

    def _constraint(self, spec: Any) -> None:
        if isinstance(spec, JointSpec):
            self._closing(spec)
        elif isinstance(spec, DistanceSpec):
            self._rod(spec)
        elif not (isinstance(spec, CouplerSpec) and spec.law is None and self._coupler(spec)):
            self.losses.motion.append(f"constraint '{spec}'")

    def _closing(self, spec: JointSpec) -> None:
        name, joint = spec.name, spec.joint
        if spec.laws or joint.kind not in ("Fixed", "Spherical", "Revolute"):
            self.losses.motion.append(f"that joint '{spec}' closes a loop; Fixed, Spherical and Revolute can")
            return
        if has_passive(joint):
            self.losses.motion.append(f"{', '.join(has_passive(joint))} of joint '{name}', which closes a loop")
        if joint.limits is not None or joint.velocity_limit is not None or joint.effort_limit is not None:
            self.losses.minor.append(f"limits of joint '{name}', which closes a loop")
        if spec.actuated:
            self.losses.motion.append(f"that joint '{name}' is actuated, which closes a loop")
        offsets = {"": np.zeros(3)} | (
            {" axis": vars(joint)["axis"] * self._size(spec)} if joint.kind == "Revolute" else {}
        )
        for word, offset in offsets.items():
            there = Transform(translation=offset)
            sites = [
                self._site(body, f"{name}{word}_{letter}", place @ there)
                for body, place, letter in ((spec.parent, spec.at_parent, "a"), (spec.child, spec.at_child, "b"))
            ]
            tag = "weld" if joint.kind == "Fixed" else "connect"
            add(self.equality, tag, name=f"{name}{word}", site1=sites[0], site2=sites[1])

    def _size(self, spec: JointSpec) -> float:
        """How far along its axis a hinge is held a second time: as far as its bodies reach."""
        places = [np.linalg.norm(place.translation) for place in (spec.at_parent, spec.at_child)]
        return float(max(places)) or 1.0

    def _rod(self, spec: DistanceSpec) -> None:
        """A tendon whose length is held; MuJoCo counts it from that where all coordinates are zero."""
        tendon, ends = add(self.tendon, "spatial", name=spec.name), []
        for k, (body, point) in enumerate(spec.points):
            add(tendon, "site", site=self._site(body, f"{spec.name}_{'ab'[k]}", Transform(translation=point)))
            ends.append(self.robot.pose(self.robot.neutral(), body) @ [*point, 1.0])
        longer = spec.length - float(np.linalg.norm(ends[1] - ends[0]))
        add(self.equality, "tendon", name=spec.name, tendon1=spec.name, polycoef=(longer, 0, 0, 0, 0))

    def _coupler(self, spec: CouplerSpec) -> bool:
        """Whether it could be written."""
        named = [(self.coordinates.get(joint, {}).get(index), c) for joint, index, c in spec.terms]
        if any(name is None for name, _ in named):
            return False
        linear = [k for k, (_, c) in enumerate(named) if len(c) == 1 or not any(c[1:])]
        if len(named) <= 2 and linear:
            lead = next((k for k in linear if named[k][1][0]), None)
            others = [named[k] for k in range(len(named)) if k != lead]
            if lead is None or any(len(c) > 4 for _, c in others):
                return False
            name, (c, *_) = named[lead]
            right = np.zeros(5)
            right[0] = spec.offset / c
            for _, coefficients in others:
                right[1 : 1 + len(coefficients)] = -np.array(coefficients) / c
            add(
                self.equality,
                "joint",
                name=spec.name,
                joint1=name,
                joint2=others[0][0] if others else None,
                polycoef=right,
            )
            return True
        if len(linear) < len(named):
            return False
        tendon = add(self.tendon, "fixed", name=spec.name)
        for name, coefficients in named:
            add(tendon, "joint", joint=name, coef=coefficients[0])
        add(self.equality, "tendon", name=spec.name, tendon1=spec.name, polycoef=(spec.offset, 0, 0, 0, 0))
        return True

    def _qpos(self, q: Array) -> list[float]:
        """As MuJoCo stacks it; positions before quaternions, whose real part comes first, of a body and not of its joint's frame."""
        x: list[float] = []
        for link in (self.link_to[body.get("name")] for body in self.body["ground"].iter("body")):
            own, joint = q[self.robot.joint(link.spec.name).q_slice], link.joint
            if joint.quaternion:
                near, far = (Transform.from_matrix(self.robot.pose(q, body)) for body in (link.near, link.far))
                moved = near.inverse() @ far
                x += (
                    [*far.translation, *_wxyz(far.rotation)]
                    if joint.kind == "Free"
                    else _wxyz(link.place.rotation.T @ moved.rotation)
                )
            elif joint.kind == "Helical":
                x += [own[0] * (1.0 if axis.turns else vars(joint)["pitch"]) for axis in link.axes]
            else:
                x += [own[axis.index] for axis in link.axes]
        return x


def _placed(place: Transform) -> dict[str, Any]:
    turned = not np.array_equal(place.rotation, np.eye(3))
    return {
        "pos": place.translation if place.translation.any() else None,
        "quat": _wxyz(place.rotation) if turned else None,
    }


def _wxyz(rotation: ArrayLike) -> list[float]:
    x, y, z, w = Rotation(rotation).quaternion.tolist()
    return [w, x, y, z]
