"""Writer of MJCF for MuJoCo.

============================  ==========================================================================================================
bodies                        bodies, nested along the tree
joints                        hinges, slides and balls. A joint of several axes becomes several joints of one body, which MuJoCo applies one after the
                              other. A Free joint from the ground becomes a freejoint, a screw a hinge and a slide with an equality
loops                         equalities between sites at the joint's frames: Fixed is a weld, Spherical a connect, Revolute two connects
                              (one of their six rows is redundant)
distances                     spatial tendons with an equality for their length
couplers                      joint equalities of two joints; linear ones of more joints as an equality of a fixed tendon
transmissions                 fixed tendons with the rotor inertia, damping, friction, springs and limits of the motors, which drive them
springs between points        spatial tendons
frames; home, configurations  sites; keyframes
visuals                       massless geoms, except meshes
collision shapes              massless geoms of group 3, with their friction; excluded pairs are not written
============================  ==========================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from .._arrays import Array
from ..description import ConstraintSpec, CouplerSpec, DistanceSpec, JointSpec, ShapeSpec, SpringSpec, VisualSpec
from ..description.joints import SPRINGS
from ..mechanism import Mechanism
from ..shapes import Box, Capsule, Cylinder, Mesh, Plane, Sphere
from ..spatial import Inertia, Transform
from . import lowering
from .document import Names
from .formats import MJCF, has_passive, put, put_term, text_of
from .lowering import Step, Writer, closes, coincident_points
from .mujoco import HIDDEN, MOTOR, STRING
from .outline import Element, Link, Losses, add, depth_first, listed, no_shape, principal_axes, tree_links, wxyz

# lower bound of moments of inertia [kg m²], written as boundinertia if a body has a smaller moment: MuJoCo requires more than mjMINVAL = 1e-15
SMALLEST = 1e-14


class _Writer(Writer):
    """Writer of MJCF."""

    format = MJCF
    coefficients = ("friction", "torsional_friction", "rolling_friction")
    gravity = configurations = True

    def __init__(self, robot: Mechanism, losses: Losses, path: Path) -> None:
        super().__init__(robot, losses, path)
        d = robot.description
        self.root = root = ET.Element("mujoco", {"model": robot.name})
        compiler = add(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        add(root, "option", gravity=d.gravity)
        self.body: dict[str, Element] = {"ground": add(root, "worldbody")}
        self.link_to: dict[str, Link] = {}
        self.inertia = {body.name: body.inertia for body in d.bodies}
        self.equality, self.tendon, self.actuator = (ET.Element(tag) for tag in ("equality", "tendon", "actuator"))
        self.sites = Names()
        self.thin = False
        ends = [spec.body for specs in (d.frames, d.visuals, d.shapes) for spec in specs]
        ends += [body for spring in d.springs for body, _ in (spring.first, spring.second)]
        self.motors: dict[str, Link] = {}  # coupler -> motor of a transmission, whose rotor is not written
        for link in depth_first(tree_links(robot)):
            if (coupler := robot._motors.get(link.spec.name)) and link.outer not in ends:
                self.motors[coupler.name] = link
                del self.inertia[link.outer]
                continue
            self.link_to[link.outer] = link
            self._body(link)
        mass = {"ground": 0.0} | {name: I.mass for name, I in self.inertia.items()}
        for link in reversed(self.link_to.values()):  # MuJoCo adds the masses of welded bodies
            mass[link.inner] += mass[link.outer] if link.joint.nv == 0 else 0.0
        if massless := [name for name in self.inertia if mass[name] == 0.0 and self.link_to[name].joint.nv]:
            losses.minor.append(f"moving bodies without mass, which MuJoCo rejects: {listed(massless)}")
        if self.thin:
            compiler.set("boundinertia", f"{SMALLEST:g}")
        for frame in d.frames:
            self._site(frame.body, frame.name, frame.placement)
        self.meshes: dict[str, None] = {}
        for visual in d.visuals:
            self._shape(visual, rgba=visual.color, contype="0", conaffinity="0", group="2")
        for shape in d.shapes:
            self._collision(shape)
        if self.meshes:
            losses.note(f"meshes {listed(self.meshes)}")
        self.note_shapes()
        self.constraints()
        for spring in d.springs:
            self._spring(spring)
        for section in (self.equality, self.tendon, self.actuator, self._keys()):
            if len(section):
                root.append(section)

    # ---- bodies and joints -------------------------------------------------------------------------------------------

    def _body(self, link: Link) -> None:
        name, joint, spec = link.outer, link.joint, link.spec
        inner, place = link.inner, link.place
        if joint.kind == "Free" and inner != "ground":  # a freejoint has to be in the world
            inner, place = "ground", Transform.from_matrix(self.robot.pose(self.robot.neutral(), name))
        element = self.body[name] = add(self.body[inner], "body", name=name, **_placed(place))
        if joint.kind == "Free":
            self._free(link, element)
        elif joint.kind == "Spherical":
            self._ball(link, element)
        elif link.kind != "Fixed":
            self._axes(link, element)
        self._inertial(element, self.inertia[name])
        if link.axes:
            self.note_missing(spec)

    def _free(self, link: Link, element: Element) -> None:
        spec = link.spec
        if passive := has_passive(spec.joint):
            self.losses.motion.append(f"{', '.join(passive)} of Free joint '{spec.name}'")
        if link.backward or link.inner != "ground" or link.place != Transform():
            text = f"the frames of Free joint '{spec.name}': its coordinates are the body's pose in the world"
            self.losses.minor.append(text)
        self.note_bounds(spec)
        add(element, "freejoint", name=spec.name)

    def _ball(self, link: Link, element: Element) -> None:
        name, home = link.spec.name, link.end.inverse()
        self.note_inverse(link)
        MJCF.write(add(element, "joint", name=name, type="ball", pos=home.translation), self.uniform_numbers(link.spec))
        if home.rotation.tolist() != np.eye(3).tolist():
            self.losses.minor.append(f"the axes of the coordinates of joint '{name}': they are the body's")

    def _axes(self, link: Link, element: Element) -> None:
        spec = link.spec
        for step in self.steps(link):
            direction, point = link.in_outer(step.axis)
            kind = MJCF.joints["Revolute" if step.turns else "Prismatic"]
            joint = add(element, "joint", name=step.name, type=kind, axis=direction)
            if step.turns and point.any():
                joint.set("pos", text_of(point))
            if step.pitch is not None:
                polynomial = (0, step.pitch, 0, 0, 0)
                names = {"name": f"{spec.name}_pitch", "joint1": step.name, "joint2": spec.name}
                add(self.equality, "joint", **names, polycoef=polynomial)
                continue
            most = step.numbers["effort_limit"]
            force = (-most, most) if np.isfinite(most) else None
            low, high = step.numbers["lower"], step.numbers["upper"]
            if low is not None and low == high:  # without "limited" MuJoCo reads an empty range as no limits
                joint.set("limited", "true")
                self.losses.note(f"limits of joint '{spec.name}' that are equal, which MuJoCo rejects")
            MJCF.write(joint, self._numbers(step, spec) | {"effort_limit": None if spec.actuated else force})
            if spec.actuated:
                add(self.actuator, "motor", name=step.name, joint=step.name, forcerange=force)
        self.note_planar(link)

    def _numbers(self, step: Step, spec: JointSpec) -> dict[str, Any]:
        limits = step.numbers["lower"], step.numbers["upper"]
        both = limits[0] is not None and bool(np.isfinite(limits).all())
        if limits[0] is not None and not both:
            self.losses.minor.append(f"limits of joint '{spec.name}' on one side only")
        return step.numbers | {"limits": limits if both else None}

    def _inertial(self, element: Element, inertia: Inertia) -> None:
        moments, axes = principal_axes(inertia)
        turned = None if np.array_equal(axes, np.eye(3)) else wxyz(axes)
        rounding = 1e-15 * np.abs(moments).max()
        moments = np.where(np.abs(moments) <= rounding, 0.0, moments)
        low, middle, high = np.sort(moments)
        # the largest moment of a flat body is the sum of the other two; remove the excess that is due to rounding
        if 0.0 < high - (low + middle) <= 10 * rounding:
            moments[moments.argmax()] = low + middle
        self.thin |= bool((moments < SMALLEST).any()) and inertia.mass > 0.0
        add(element, "inertial", pos=inertia.com, quat=turned, mass=inertia.mass, diaginertia=moments)
        if not inertia.is_physical():
            self.losses.minor.append(
                f"the inertia of body '{element.get('name')}', which is not physical: MuJoCo rejects it"
            )

    # ---- other parts -------------------------------------------------------------------------------------------------

    def _site(self, body: str, name: str, place: Transform) -> str:
        name = self.sites.new(name)
        add(self.body[body], "site", name=name, **_placed(place))
        return name

    def _shape(self, spec: VisualSpec | ShapeSpec, **attributes: Any) -> None:
        shape = spec.shape
        if isinstance(shape, Box | Capsule | Cylinder | Sphere):
            size = shape._volume.halves
        elif isinstance(shape, Plane):
            size = (0.0, 0.0, 1.0)  # half sizes of zero mean an infinite plane
        else:
            if isinstance(shape, Mesh):
                self.meshes[shape.file] = None
            else:
                self.losses.note(no_shape(spec))
            return
        place, kind = _placed(spec.placement), shape._kind.lower()
        add(self.body[spec.body], "geom", type=kind, size=size, **place, **attributes, mass="0")

    def _collision(self, spec: ShapeSpec) -> None:
        spin, roll = spec.torsional_friction, spec.rolling_friction
        friction, condim = [] if spec.friction is None else [spec.friction], None
        if spin is not None or roll is not None:
            friction = [1.0 if spec.friction is None else spec.friction, spin or 0.0, roll or 0.0]
            condim = "6" if roll else "4"
        self._shape(spec, name=spec.name, friction=friction or None, condim=condim, group=str(HIDDEN))

    def _spring(self, spring: SpringSpec) -> None:
        tendon = add(self.tendon, "spatial", name=spring.name, springlength=spring.rest_length)
        _put_terms(tendon, {field: getattr(spring, field) for field in STRING})
        self._string(tendon, spring.name, (spring.first, spring.second))

    def _string(self, tendon: Element, name: str, ends: Any) -> None:
        for letter, (body, point) in zip("ab", ends, strict=True):
            add(tendon, "site", site=self._site(body, f"{name}_{letter}", Transform(translation=point)))

    def _keys(self) -> Element:
        keys, d = ET.Element("keyframe"), self.robot.description
        if not self.robot.nq:  # a keyframe would be empty
            return keys
        for name in dict(d.configurations):
            add(keys, "key", name=name, qpos=self._qpos(self.robot.configuration(name)))
        if d.home and "home" not in dict(d.configurations):
            add(keys, "key", name="home", qpos=self._qpos(self.robot._at(d.home)))
        return keys

    def constraint(self, spec: ConstraintSpec) -> bool:
        if isinstance(spec, DistanceSpec):
            self._rod(spec)
            return True
        if isinstance(spec, CouplerSpec) and spec.name in self.motors:
            return self._motor(self.motors[spec.name], spec)
        return isinstance(spec, CouplerSpec) and spec.is_polynomial and self._coupler(spec)

    def loop_joint(self, spec: JointSpec) -> None:
        name, joint = spec.name, spec.joint
        points = coincident_points(joint, self._size(spec))
        if not closes(spec, bool(points), self.losses):
            return
        for word, point in zip(("", " axis"), points, strict=False):
            at_point = Transform(translation=point)
            sites = [
                self._site(body, f"{name}{word}_{letter}", place @ at_point)
                for body, place, letter in ((spec.parent, spec.at_parent, "a"), (spec.child, spec.at_child, "b"))
            ]
            tag = "weld" if joint.kind == "Fixed" else "connect"
            add(self.equality, tag, name=f"{name}{word}", site1=sites[0], site2=sites[1])

    def _size(self, spec: JointSpec) -> float:
        """Return the distance [m] between the two points on a hinge's axis at which it is closed, equal to the size of the hinge's bodies."""
        places = [np.linalg.norm(place.translation) for place in (spec.at_parent, spec.at_child)]
        return float(max(places)) or 1.0

    def _rod(self, spec: DistanceSpec) -> None:
        """Write a tendon, and an equality for its length. MuJoCo's equality constrains the difference from the length at zero coordinates."""
        self._string(add(self.tendon, "spatial", name=spec.name), spec.name, spec.points)
        q = self.robot.neutral()
        ends = [self.robot.pose(q, body) @ [*point, 1.0] for body, point in spec.points]
        longer = spec.length - float(np.linalg.norm(ends[1] - ends[0]))
        add(self.equality, "tendon", name=spec.name, tendon1=spec.name, polycoef=(longer, 0, 0, 0, 0))

    def _motor(self, link: Link, coupler: CouplerSpec) -> bool:
        """Write a motor of a transmission as a tendon, whose length is the coordinate minus its offset; return False if a joint has several axes."""
        motor, coordinates = link.spec, coupler.terms[1:]
        if any((joint, index) not in self.coordinates for joint, index, _ in coordinates):
            return False
        step = Step(motor.name, link.axes[0], self.numbers(link, link.axes[0]))
        numbers = self._numbers(step, motor)
        self.note_missing(motor)
        if coupler.offset:
            self.losses.minor.append(
                f"the offset of motor '{motor.name}': its coordinate becomes the length of the tendon"
            )
        tendon = add(self.tendon, "fixed", name=motor.name)
        _put_terms(tendon, numbers)
        if any(numbers[field] for field in SPRINGS):
            rest = numbers["rest"] - coupler.offset
            put(tendon, "@springlength", np.nextafter(rest, 0.0) if rest == -1.0 else rest)  # -1 is MuJoCo's default
        if numbers["limits"] is not None:
            put(tendon, "@range", [x - coupler.offset for x in numbers["limits"]])
        for joint, index, (c, *_) in coordinates:
            add(tendon, "joint", joint=self.coordinates[joint, index], coef=-c)
        if motor.actuated:
            most = numbers["effort_limit"]
            add(
                self.actuator,
                "motor",
                name=motor.name,
                tendon=motor.name,
                forcerange=(-most, most) if np.isfinite(most) else None,
            )
        return True

    def _coupler(self, spec: CouplerSpec) -> bool:
        """Write a coupler; return False if MJCF cannot represent it."""
        named = [(self.coordinates.get((joint, index)), c) for joint, index, c in spec.terms]
        if any(name is None for name, _ in named):
            return False
        linear = [k for k, (_, c) in enumerate(named) if len(c) == 1 or not any(c[1:])]
        if len(named) <= 2 and linear:
            follower = next((k for k in linear if named[k][1][0]), None)
            leaders = [named[k] for k in range(len(named)) if k != follower]
            if follower is None or any(len(c) > 4 for _, c in leaders):
                return False
            name, (c, *_) = named[follower]
            right = np.zeros(5)
            right[0] = spec.offset / c
            for _, coefficients in leaders:
                right[1 : 1 + len(coefficients)] = -np.array(coefficients) / c
            leader = leaders[0][0] if leaders else None
            add(self.equality, "joint", name=spec.name, joint1=name, joint2=leader, polycoef=right)
            return True
        if len(linear) < len(named):
            return False
        tendon = add(self.tendon, "fixed", name=spec.name)
        for name, coefficients in named:
            add(tendon, "joint", joint=name, coef=coefficients[0])
        add(self.equality, "tendon", name=spec.name, tendon1=spec.name, polycoef=(spec.offset, 0, 0, 0, 0))
        return True

    def _qpos(self, q: Array) -> list[float]:
        """Return MuJoCo's qpos of a configuration (nq,).

        For a free joint, MuJoCo stores the position before the quaternion (w, x, y, z); both describe the body's frame, not the joint's frame.
        """
        x: list[float] = []
        for link in (self.link_to[body.get("name", "")] for body in self.body["ground"].iter("body")):
            coordinates, joint = q[self.robot.joint(link.spec.name).q_slice], link.joint
            if joint.quaternion:
                inner, outer = (Transform.from_matrix(self.robot.pose(q, body)) for body in (link.inner, link.outer))
                moved = inner.inverse() @ outer
                floats = joint.kind == "Free"
                x += [*outer.translation] if floats else []
                x += wxyz(outer.rotation if floats else link.place.rotation.T @ moved.rotation)
            elif joint.kind == "Helical":
                x += [coordinates[0] * (1.0 if axis.turns else vars(joint)["pitch"]) for axis in link.axes]
            else:
                x += [coordinates[axis.index] for axis in link.axes]
        return x


def _put_terms(tendon: Element, terms: Mapping[str, float]) -> None:
    """Write the passive terms of a tendon that are not zero."""
    for field, (attribute, at, _) in MOTOR.items():
        if terms.get(field):
            put_term(tendon, f"@{attribute}", at, terms[field])


def _placed(place: Transform) -> dict[str, Any]:
    turned = not np.array_equal(place.rotation, np.eye(3))
    position = place.translation if place.translation.any() else None
    return {"pos": position, "quat": wxyz(place.rotation) if turned else None}


save = partial(lowering.save, _Writer)
