"""Reader of compiled MuJoCo models, and MuJoCo's rules of bodies and joints, which the MJCF reader uses too.

In MuJoCo, a body has any number of joints to its parent, which move the body one after the other. In sarrus they become a chain of joints with
massless bodies between them. At the joint's coordinate `ref` the body has the pose in the model. q has the same zero as MuJoCo's qpos, so that the
two differ only in the order of quaternions and free joints (:mod:`sarrus.interop`). Equality constraints become loop joints and couplers.

The table lists the arrays of a compiled model and their counterparts in the mechanism:

=========================  ========================================================================================
`body_*`                   bodies; bodies without joints are welded to their parents
`jnt_*`, `dof_*`           joints in MuJoCo's order, all in the spanning tree: hinge Revolute, slide Prismatic, ball Spherical, free Free;
                           limits, stiffness, damping, frictionloss as friction, armature
`eq_*`: connect, weld      loop joints, Spherical and Fixed (Spherical if torquescale is zero)
`eq_*`: joint, tendon      couplers, with polynomials up to degree 4. Constraints are exact: solref and solimp are not read
`tendon_*`, `wrap_*`       fixed tendons in equalities and actuators; tendons between two sites as springs, or as distances in equalities. A fixed
                           tendon with armature, stiffness, damping or friction is a transmission: the coordinate of its motor, the length of the
                           tendon, is at the end of q. The same holds for a fixed tendon of several joints whose actuator has armature or damping.
                           Stiffness and damping may have three terms, polynomials in the deflection and in the velocity
`actuator_*`               their joints are actuated, with an effort_limit from gear and ranges; control laws are not read
`site_*`                   frames
`qpos0`, `key_qpos`        configurations; "qpos0" is home too
`geom_*`, `pair_*`,        visuals of groups 0 to 2: boxes, spheres, cylinders, capsules; collision shapes, if any pair may touch: boxes,
`exclude_*`                spheres, cylinders, capsules, planes, hulls of meshes against planes, with friction, in groups by their masks
`opt`                      gravity; flags that disable springs, dampers, equalities and the like
other arrays               a warning, if they act on bodies
=========================  ========================================================================================
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from .. import _core
from .._arrays import Array, ArrayLike
from ..building.builder import Builder
from ..description.joints import SPRINGS, Fixed, Free, JointType, Prismatic, Revolute, Spherical
from ..errors import ModelError
from ..interop import FROM_QPOS
from ..mechanism import Mechanism
from ..shapes import Box, Capsule, ContactShape, ConvexPoints, Cylinder, Ellipsoid, Plane, Sphere
from ..spatial import Inertia, Rotation, Transform
from .document import NO_CONTACTS, ONE_FRICTION, Notes, free_name, noted_inertia
from .formats import FLAGS, MJCF
from .mesh_files import corners

if TYPE_CHECKING:
    import mujoco

HERE = Transform()
Point = tuple[str, tuple[float, ...]]  # body, and a point in its frame
Ends = tuple[Point, Point]
Note = Callable[[str], None]  # function that adds a warning
NO_CONTACT = 16  # flag that disables contacts; it affects a warning only
PRIMITIVES = {2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box"}
# kind of a geom -> number of its half sizes, and the function that returns its shape from them
GEOMS: dict[str, tuple[int, Callable[..., ContactShape]]] = {
    "sphere": (1, Sphere), "capsule": (2, lambda r, half: Capsule(r, 2 * half)), "cylinder": (2, lambda r, half: Cylinder(r, 2 * half)),
    "plane": (0, Plane), "ellipsoid": (3, lambda *axes: Ellipsoid(axes)), "box": (3, lambda a, b, c: Box((2 * a, 2 * b, 2 * c))),
}  # fmt: skip
# constants of MuJoCo's enumerations mjtTrn, mjtWrap and mjtObj
JOINT, JOINT_IN_PARENT, TENDON, WRAP_JOINT, WRAP_SITE, SITE = 0, 1, 3, 1, 3, 6
CONNECT, WELD, JOINT_EQUALITY, TENDON_EQUALITY = range(4)  # values of MuJoCo's enumeration mjtEq
# arrays that have an effect on bodies but are not read -> text of the warning
UNREAD = dict.fromkeys(
    ("body_gravcomp", "jnt_springyield", "tendon_stiffness", "tendon_stiffnesspoly", "tendon_damping", "tendon_dampingpoly",
     "tendon_armature", "tendon_frictionloss"), "",
) | {
    "tendon_limited": "range of tendons is not read",
    "tendon_actfrclimited": "actuatorfrcrange of tendons is not read",
    "nflex": "forces inside flexes are not read",
    "nmocap": "mocap bodies do not move",
}  # fmt: skip
UNREAD |= {f"geom_{row.name}": row.note for row in MJCF.rows if row.element == "geom"}
SLACK = "a tendon whose springlength is a range is not read: springs that are slack in a range are not supported"
# field of a joint -> attribute, index of the number in it, and flag that disables the term. A fixed tendon with any of these is a transmission
MOTOR = {
    "armature": ("armature", 0, ""), "friction": ("frictionloss", 0, "frictionloss"),
    "stiffness": ("stiffness", 0, "spring"), "quadratic_stiffness": ("stiffness", 1, "spring"), "cubic_stiffness": ("stiffness", 2, "spring"),
    "damping": ("damping", 0, "damper"), "quadratic_damping": ("damping", 1, "damper"), "cubic_damping": ("damping", 2, "damper"),
}  # fmt: skip
STRING = tuple(name for name in MOTOR if name not in ("armature", "friction"))  # fields of a spring between points
TRANSMITTED = ("tendon_limited", *(f"tendon_{name}{end}" for name, *_ in MOTOR.values() for end in ("", "poly")))
KINDS = ("free", "ball", "slide", "hinge")
HIDDEN = 3  # first group of geoms that MuJoCo hides by default


class Hinge(NamedTuple):
    """Joint of a body: its pose in the body's frame, and `ref`, the value of its coordinate at the pose of the model (qpos0)."""

    name: str
    type: JointType
    place: Sequence[float] = (0.0, 0.0, 0.0)
    reference: float = 0.0
    actuated: bool = False


class Tree:
    """Builder that adds bodies and equalities by MuJoCo's rules; `names` has the names of joints and constraints in the model."""

    def __init__(self, name: str, gravity: ArrayLike, names: Iterable[str]) -> None:
        self.builder = Builder(name, gravity)
        self.names = set(names)
        self.count: dict[str, int] = {}
        self.bodies = {"ground"}
        self.placed: dict[str, Transform] = {"ground": HERE}  # poses of bodies in the world, at qpos0
        self.keys = set[str]()
        # joint -> its coordinates at qpos0 in the order of q; the joints are in MuJoCo's order
        self.qpos0: dict[str, tuple[float, ...]] = {}

    def invent(self, name: str) -> str:
        """Return the name, with a number appended if a joint or a constraint has the name already."""
        new = name
        while new in self.names:
            self.count[name] = self.count.get(name, 1) + 1
            new = f"{name}{self.count[name]}"
        self.names.add(new)
        return new

    def constraint_name(self, name: str | None, default: str) -> str:
        """Return a name for an equality. In MuJoCo an equality may have the name of a joint; in sarrus it may not."""
        return name if name and name not in self.qpos0 else self.invent(name or default)

    def add_body(self, name: str, parent: str, place: Transform, inertia: Inertia, hinges: Sequence[Hinge]) -> None:
        """Add a body: its pose in the parent, its inertia, and its joints to the parent."""
        pose = self.placed[name] = self.placed[parent] @ place
        if not hinges:
            self.builder.add_body(name, inertia)
            self.builder.add_joint(self.invent(f"{name}_weld"), Fixed(), parent, name, at_parent=place)
        for k, hinge in enumerate(hinges, start=1):
            last = k == len(hinges)
            child = name if last else free_name(f"{name}.{hinge.name}", self.bodies)
            self.bodies.add(child)
            joint, back, at_child = hinge.type, -hinge.reference, Transform(translation=hinge.place)
            at_parent = place @ at_child
            q0: tuple[float, ...] = (hinge.reference,)
            if isinstance(joint, Revolute) and back:
                at_parent @= Transform(Rotation.from_axis_angle(joint.axis, back))
            elif isinstance(joint, Prismatic) and back:
                at_parent @= Transform(translation=back * joint.axis)
            elif isinstance(joint, Spherical):
                q0 = (0.0, 0.0, 0.0, 1.0)
            elif isinstance(joint, Free):
                # MuJoCo's coordinates of a free joint are the pose in the world, not relative to the body's pose in the model
                at_parent = at_child = HERE
                q0 = (*Rotation(pose.rotation).quaternion.tolist(), *pose.translation.tolist())
            self.builder.add_body(child, inertia if last else None)
            self.builder.add_joint(
                hinge.name, joint, parent, child, at_parent=at_parent, at_child=at_child, actuated=hinge.actuated,
                tree=True,
            )  # fmt: skip
            self.qpos0[hinge.name] = q0
            parent, place = child, HERE

    def join(
        self, name: str, ends: Sequence[str], at: Transform | None, other: Transform | None, *, rotation: bool
    ) -> None:
        """Add a loop joint, by which two frames, or only their origins, coincide. A frame that is None is computed from the poses at qpos0."""
        first, second = ends
        between = self.placed[first].inverse() @ self.placed[second]
        if other is None:
            other = between.inverse() @ (at or HERE)
        joint, at = Fixed() if rotation else Spherical(), between @ other if at is None else at
        self.builder.add_joint(name, joint, first, second, at_parent=at, at_child=other, loop=True)

    def couple(self, name: str | None, parts: Mapping[str, Mapping[str, float]], polynomial: Sequence[float]) -> None:
        """Add the coupler y - y0 = P(x - x0). y and x are linear combinations of coordinates; y0 and x0 are their values at qpos0.

        `parts` has y, and x if there is one, by the names of their joints or tendons.
        """
        name, (first, second) = self.constraint_name(name, " follows ".join(parts)), [*parts.values(), {}][:2]
        P, offset = Polynomial(polynomial).trim(), sum(c * self.qpos0[joint][0] for joint, c in first.items())
        terms = {joint: Polynomial([0.0, c]) for joint, c in first.items()}
        shifted = {joint: Polynomial([-c * self.qpos0[joint][0], c]) for joint, c in second.items()}
        if len(shifted) == 1:
            shifted = {joint: P(x) for joint, x in shifted.items()}
        elif P.degree() <= 1 or not shifted:
            offset += P(0.0)
            shifted = {joint: P.deriv()(0.0) * x for joint, x in shifted.items()}
        else:
            fault = f"a polynomial of degree {P.degree()} of a sum of {len(second)} joints; expected degree 1"
            raise ModelError(f"constraint '{name}' has {fault}")
        for joint, part in shifted.items():
            terms[joint] = terms.get(joint, Polynomial([0.0])) - part
            offset += part(0.0)
        self.builder.add_coupler(name, {j: p.coef[1:] for j, p in terms.items() if p.degree() > 0}, offset=offset)

    def distance(self, first: Point, second: Point, changed: Mapping[str, tuple[float, ...]] | None = None) -> float:
        """Return the distance [m] of two points of bodies at qpos0, after replacing the coordinates in `changed`."""
        robot = Mechanism(self.builder._described(()))
        q = robot._at({**self.qpos0, **(changed or {})}.items())
        start, end = (robot.pose(q, body) @ [*point, 1.0] for body, point in (first, second))
        return float(np.linalg.norm(end - start))

    def add_spring(
        self, name: str, ends: Ends, terms: Mapping[str, float], rest: Sequence[float], note: Note,
        changed: Mapping[str, tuple[float, ...]] | None = None,
    ) -> None:  # fmt: skip
        """Add a spring between points of two bodies, with the terms of STRING. A negative length `rest` means the distance that :meth:`distance` returns."""
        if len(set(rest)) > 1:
            note(SLACK)
        elif ends[0][0] != ends[1][0]:
            length = self.distance(*ends, changed) if rest[0] < 0.0 else rest[0]
            numbers: dict[str, Any] = {field: terms[field] for field in STRING}
            self.builder.add_spring(name, *ends, rest_length=length, **numbers)

    def set_springs(self, targets: Mapping[str, tuple[float, float, float]], off: Iterable[str]) -> None:
        """Set springs and dampers of joints from (time constant [s], damping ratio, rest) and the effective inertia at qpos0."""
        if not targets:
            return
        robot = Mechanism(self.builder._described(()))
        M = robot.mass_matrix(robot._at(self.qpos0.items()))
        size = np.sqrt(M.diagonal())
        if not size.all() or np.linalg.cond(scaled := M / np.outer(size, size)) > 1e14:
            fault = f"springdamper of joint '{next(iter(targets))}' needs a regular mass matrix"
            raise ModelError(f"{fault}: a body, or joint, has no inertia, or several joints move it in the same way")
        mobility = np.linalg.inv(scaled).diagonal() / size**2
        for name, (time, ratio, rest) in targets.items():
            inertia = 1.0 / mobility[robot.joint(name).v_slice].mean()
            terms = {"damping": 0.0 if "damper" in off else 2.0 * inertia / time}
            if "spring" not in off:
                terms["stiffness"] = inertia / (time * ratio) ** 2
                if robot.joint(name).nv == 1:
                    terms["rest"] = rest
            spec = self.builder._joints[name]
            self.builder._joints[name] = replace(spec, joint=replace(spec.joint, **terms))

    def transmit(
        self, name: str, length: Mapping[str, float], drive: Array | None, rest: Sequence[float],
        limits: tuple[float, ...] | None, terms: dict[str, Any], off: Container[str], note: Note,
    ) -> None:  # fmt: skip
        """Add a fixed tendon with passive terms as a transmission, whose motor has the length of the tendon as its coordinate.

        `drive` has the sums of its actuators (:class:`Drives`), None without actuators. `rest` is the length, or the range of lengths, without spring
        force. `terms` are the passive terms of the tendon.
        """
        types, terms = {joint: self.builder._joints[joint] for joint in length}, dict(terms)
        if drive is not None:
            terms |= {field: terms[field] + float(x) for field, x in zip(ROTOR, drive[1:], strict=True)}
        if any(terms[field] for field in SPRINGS) and len(set(rest)) > 1:
            note(SLACK)
            terms |= dict.fromkeys(SPRINGS, 0.0)
        motor, linear = self.invent(name), any(spec.kind == "Prismatic" for spec in types.values())
        self.builder.add_transmission(
            "tendon", [motor], list(length), [list(length.values())], rotor_inertia=terms.pop("armature"), linear=linear,
            limits=None if "limit" in off else limits, rest=rest[0] if any(terms[field] for field in SPRINGS) else 0.0,
            effort_limit=float(drive[0]) if drive is not None and np.isfinite(drive[0]) else None, **terms,
        )  # fmt: skip
        # joints of the tendon may have actuators of their own
        for joint in (joint for joint, spec in types.items() if spec.actuated):
            self.builder.set_joint(joint, actuated=True)
        if drive is None:
            self.builder.set_joint(motor, actuated=False)

    def add_site(self, name: str, body: str, place: Transform) -> None:
        """Add the frame of a site. If a body has the site's name, which MuJoCo allows, the frame gets another name."""
        self.builder.add_frame(free_name(f"{name}_site", self.bodies) if name in self.bodies else name, body, place)

    def coordinates(self, qpos: Sequence[float]) -> dict[str, tuple[float, ...]]:
        """Return joint -> coordinates in the order of q, from MuJoCo's qpos."""
        q, at = {}, 0
        for joint, q0 in self.qpos0.items():
            q[joint] = tuple(qpos[at + k] for k in FROM_QPOS[len(q0)])
            at += len(q0)
        return q

    def reference(self) -> tuple[float, ...]:
        """Return MuJoCo's qpos0."""
        return tuple(x[k] for x in self.qpos0.values() for k in np.argsort(FROM_QPOS[len(x)]))

    def set_reference(self) -> None:
        """Set the poses of the model (qpos0) as the first named configuration, "qpos0", and as home."""
        self.builder.set_configuration("qpos0", self.qpos0)
        self.builder.set_home(self.qpos0)

    def add_key(self, name: str, qpos: Sequence[float] | None, note: Note) -> None:
        """Add a named configuration; `qpos` None means qpos0."""
        if name in self.keys:
            raise ModelError(f"has the same name as another key: {name!r}")
        name = name or free_name(f"key{len(self.keys)}", self.keys)
        self.keys.add(name)
        q = self.qpos0 if qpos is None else self.coordinates(qpos)
        for joint, x in q.items():
            if len(x) >= 4 and not any(x[:4]):
                fault = f"key {name!r} has a quaternion of zeros for joint {joint!r}"
                note(f"{fault}: read as no rotation, as in MuJoCo")
                q = {**q, joint: (0.0, 0.0, 0.0, 1.0, *x[4:])}
        self.builder.set_configuration(name, q)

    def finish(self, notes: Iterable[str]) -> Builder:
        """Return the builder; its home is the key "home", or the only key."""
        keys = self.keys - {"qpos0"}
        if "home" in keys or len(keys) == 1:
            self.builder.set_home(self.builder._configurations["home" if "home" in keys else keys.pop()])
        self.builder.warnings += notes
        return self.builder


def joint_type(kind: str, axis: ArrayLike, note: Note, **properties: Any) -> JointType:
    """Return the joint type for one of MuJoCo's kinds; `note` is called with the properties that the type cannot represent."""
    if kind in ("hinge", "slide"):
        return Revolute(axis, **properties) if kind == "hinge" else Prismatic(axis, **properties)
    properties.pop("rest", None)
    if properties.pop("limits", None) and kind == "ball":
        note("the limit of a ball joint is not read")
    if kind == "free":
        if any(list(map(properties.pop, SPRINGS, (0.0,) * 3))):
            note("the spring of a free joint is not read")
        linear = np.broadcast_to(properties.get("damping", 0.0), 6)[3:]
        turned = ["damping"] if (linear != linear[0]).any() else []
        for name in ("armature", "friction", "quadratic_damping", "cubic_damping", *turned):
            if np.any(properties.get(name)):
                note(f"{name} of a free joint acts along the body's axes; in MuJoCo along the world's axes")
        return Free(**properties)
    return Spherical(**properties)


def greatest(limits: Sequence[float], note: Note) -> float:
    """Return the largest effort of a range; warn if the limits of the two directions differ."""
    low, high = map(float, limits)
    if low != -high:
        note("effort limits of the two directions differ; the larger one is used for both")
    return max(abs(low), abs(high))


def shape_of(kind: str, halves: Sequence[float]) -> ContactShape | None:
    """Return the shape of a geom from its half sizes [m]; None for height fields and meshes."""
    count, shape = GEOMS.get(kind, (0, lambda: None))
    return shape(*halves[:count])


def show(builder: Builder, body: str, shape: ContactShape | None, place: Transform, color: Any) -> bool:
    """Add the visual of a geom to a body; return False if sarrus has no visual for the shape."""
    places = [place]
    if isinstance(shape, Ellipsoid) and len(set(shape.semi_axes)) == 1:
        shape = Sphere(shape.semi_axes[0])
    elif isinstance(shape, Capsule):
        builder.add_visual(body, Cylinder(shape.radius, shape.length), place, color=color)
        places = [place @ Transform(translation=(0.0, 0.0, end * shape.length / 2)) for end in (-1, 1)]
        shape = Sphere(shape.radius)
    if not isinstance(shape, Box | Cylinder | Sphere):
        return False
    for at in places:
        builder.add_visual(body, shape, at, color=color)
    return True


def point_of(site: tuple[str, Transform]) -> Point:
    """Return the body of a site, and its origin in the body's frame."""
    return site[0], tuple(site[1].translation.tolist())


def group_of(contype: int, conaffinity: int) -> str:
    """Return the name of the group of shapes that have these masks."""
    return f"contype {contype}, conaffinity {conaffinity}"


FRICTIONS = ("friction", "torsional_friction", "rolling_friction")


def coefficients(friction: Sequence[float], condim: float, note: Note) -> dict[str, Any]:
    """Return those of the coefficients of sliding, spinning and rolling friction that condim selects."""
    if condim == 1:
        note("condim 1 (no friction) is read as 3 (with friction)")
    count = 3 if condim >= 6 else 2 if condim >= 4 else 1
    return dict(zip(FRICTIONS[:count], map(float, friction), strict=False))


class Touching:
    """Groups of collision shapes with the same masks, and the friction of all shapes."""

    def __init__(self) -> None:
        self.masks: dict[str, tuple[int, int]] = {}
        self.frictions: list[Sequence[float]] = []
        self.used = set[str]()  # names of coefficients that a shape has

    def add(self, masks: tuple[int, int], friction: Sequence[float], used: Iterable[str]) -> None:
        """Add a shape with its masks, its three coefficients of friction, and the names of those that condim selects."""
        self.masks[group_of(*masks)] = masks
        self.frictions.append(friction)
        self.used.update(used)

    def settle(self, builder: Builder, note: Note | None) -> None:
        """Exclude contacts between groups of shapes without a common mask; warn about different friction."""
        for (first, (c, a)), (second, (d, b)) in combinations_with_replacement(self.masks.items(), 2):
            if not (c & b or d & a):
                builder.set_contact(first, second, enabled=False)
        # in MuJoCo the larger condim of a pair applies, so that a geom's coefficient is used although its own condim disables it
        values = zip(FRICTIONS, map(set, zip(*self.frictions, strict=True)), strict=False)
        if note and any(name in self.used and len(different) > 1 for name, different in values):
            note("the friction of a pair is the geometric mean of both geoms; MuJoCo takes the larger one")


def note_contacts(geoms: Sequence[tuple[str, int, int]], bodies: Iterable[tuple[str, str, bool]], note: Note) -> bool:
    """Return True, and warn, if MuJoCo would check any pair of geoms for contact. The <exclude> elements of the file are not considered.

    Parameters
    ----------
    geoms : (body, contype, conaffinity) of each geom
    bodies : (body, parent, True if it has joints), parents first
    """
    # body -> first body of the group that is welded together; group -> parent group
    welded, above = {"ground": "ground"}, {"ground": ""}
    for body, parent, moves in bodies:
        welded[body] = body if moves else welded[parent]
        above.setdefault(welded[body], "" if welded[parent] == "ground" else welded[parent])
    kinds = {(welded[body], c, a) for body, c, a in geoms if c or a}
    pairs = combinations(kinds, 2) if len(kinds) < 1000 else [(("", 1, 1), (" ", 1, 1))]
    for (first, c, a), (second, d, b) in pairs:
        if (c & b or d & a) and first not in (second, above.get(second)) and second != above.get(first):
            note(f"{sum(1 for _, c, a in geoms if c or a)} geoms may touch, {NO_CONTACTS}")
            return True
    return False


ROTOR = ("armature", "damping", "quadratic_damping", "cubic_damping")  # terms that actuators have


class Drives:
    """Actuated joints with their largest efforts, and with the armature and damping of their motors at the joint (after the gears)."""

    def __init__(self) -> None:
        self.sums: dict[Any, Array] = {}  # joint -> largest effort, then ROTOR

    def add(self, joint: Any, gear: float, most: float, rotor: Sequence[float], coefficient: float = 1.0) -> None:
        """Add an actuator of a joint, or of a tendon whose length is `coefficient` times the joint's coordinate.

        `most` is its largest force or torque before the gear, infinite without a limit; `rotor` are its terms ROTOR. MuJoCo multiplies all of them by the
        square of the gear, also the nonlinear ones.
        """
        g, c = abs(gear), abs(coefficient)
        terms = zip(
            (most, *rotor), (g * c, *(g * g * x for x in (c * c, c * c, c * c * c, c * c * c * c))), strict=True
        )
        numbers = np.array([x * factor if x and factor else 0.0 for x, factor in terms])  # 0 * inf would be nan
        self.sums[joint] = self.sums.get(joint, 0.0) + numbers

    def add_tendon(
        self,
        length: Mapping[Any, float],
        gear: float,
        most: float,
        rotor: Sequence[float],
        note: Note,
        motor: Any = None,
    ) -> None:
        """Add an actuator of a fixed tendon. Its gear ratio to each joint is `gear` times the tendon's coefficient of the joint.

        `motor` is the key of a tendon that is a transmission; None for other tendons.
        """
        if len(length) > 1 and motor is None:
            cure = "for one motor of all of them, use Builder.add_transmission"
            note(f"an actuator of a tendon with several joints is read as a motor at each of them; {cure}")
        for joint, coefficient in ({motor: 1.0} if motor is not None else length).items():
            self.add(joint, gear, most, rotor, coefficient)

    def properties(self, joint: Any, limit: float, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the properties of a joint that follow from its actuators, as arguments of the joint type.

        `limit` bounds the sum of the actuators' efforts; `own` has the terms ROTOR of the joint itself.
        """
        most, *rotors = self.sums.get(joint, (np.inf, 0.0, 0.0, 0.0, 0.0))
        most = min(limit, most)
        bound = float(most) if np.isfinite(most) else None
        return {"effort_limit": bound} | {name: own.get(name, 0.0) + x for name, x in zip(ROTOR, rotors, strict=True)}


# --- compiled models ------------------------------------------------------------------------------------------------------------------


def from_mujoco(model: mujoco.MjModel) -> Mechanism:
    """Return the mechanism of a compiled MuJoCo model; :mod:`sarrus.io.mujoco` lists the arrays that are read.

    Parameters
    ----------
    model : a ``mujoco.MjModel``, or an object with its arrays; MuJoCo is not imported

    Returns
    -------
    Mechanism; `robot.warnings` lists the parts that were not used. :mod:`sarrus.interop` converts q and v to MuJoCo's qpos and qvel

    Raises
    ------
    ModelError
        The model has an equality of a flex, or of a spatial tendon that is not straight.

    Examples
    --------
    >>> model = mujoco.MjModel.from_xml_path("robot.xml")  # doctest: +SKIP
    >>> robot = sarrus.io.from_mujoco(model)  # doctest: +SKIP
    """
    return read(model).build()


def read(model: Any) -> Builder:
    """Return a builder of the mechanism of a compiled MuJoCo model, see :func:`sarrus.io.from_mujoco`."""
    if not hasattr(model, "body_parentid"):
        raise TypeError(f"model: expected a mujoco.MjModel, or an object with its arrays; got {model!r}")
    notes = Notes()

    def note(message: str) -> None:
        notes.add("MjModel", message)

    off = _switched_off(model)
    for switch in off:
        note(f"{switch} is disabled, and left out")
    bodies, joints = _body_names(model, note), _names(model, "jnt", model.njnt)
    equalities = _names(model, "eq", model.neq)
    name = bytes(model.names).split(b"\0", 1)[0].decode() if hasattr(model, "names") else ""
    tree = Tree(name or "mujoco", (0, 0, 0) if "gravity" in off else model.opt.gravity, {*joints, *equalities})
    tree.bodies |= {*bodies}
    joints = [
        name or tree.invent(f"{bodies[body]}_{KINDS[kind]}")
        for name, body, kind in zip(joints, model.jnt_bodyid, model.jnt_type, strict=True)
    ]
    rotors = _rotors(model, off)
    drives = _drives(model, rotors, off, note)
    _add_bodies(tree, model, bodies, joints, drives, off, note)
    sites = [(bodies[model.site_bodyid[i]], _place(model, "site", i)) for i in range(model.nsite)]
    for name, (body, place) in zip(_names(model, "site", model.nsite), sites, strict=True):
        if name:
            tree.add_site(name, body, place)
    strings = _strings(model, bodies, sites)
    _note_unread(model, strings, rotors, note)
    _add_springs(tree, model, strings, off, note)
    for i in range(0 if "equality" in off else model.neq):
        if model.eq_active0[i]:
            _equality(tree, model, i, equalities[i], bodies, joints, sites, strings)
        else:
            note(f"equality {equalities[i] or i} is inactive, and left out")
    for i in range(model.ngeom):
        kind, body = PRIMITIVES.get(int(model.geom_type[i])), bodies[model.geom_bodyid[i]]
        if kind and model.geom_group[i] < HIDDEN:
            shape = shape_of(kind, model.geom_size[i].tolist())
            show(tree.builder, body, shape, _place(model, "geom", i), model.geom_rgba[i])
    if model.ngeom and not int(model.opt.disableflags) & NO_CONTACT:
        masks = zip(model.geom_bodyid, model.geom_contype.tolist(), model.geom_conaffinity.tolist(), strict=True)
        moving = zip(bodies, model.body_parentid, model.body_jntnum, strict=True)
        tree_bodies = [(body, bodies[parent], bool(n)) for body, parent, n in moving][1:]
        if note_contacts([(bodies[b], c, a) for b, c, a in masks], tree_bodies, note):
            _touch(tree.builder, model, bodies, note)
    names = _names(model, "tendon", getattr(model, "ntendon", 0))
    for k, length in rotors.items():
        called = names[k] or f"tendon{k}", {joints[j]: c for j, c in length.items()}, drives.sums.get(("tendon", k))
        rest, limits = (getattr(model, f"tendon_{name}")[k] for name in ("lengthspring", "range"))
        limits = tuple(limits.tolist()) if model.tendon_limited[k] else None
        tree.transmit(*called, np.broadcast_to(rest, 2).tolist(), limits, _terms(model, "tendon", k, off), off, note)
    tree.qpos0 = tree.coordinates(model.qpos0.tolist())  # quaternions with MuJoCo's signs
    tree.set_reference()
    for name, qpos in zip(_names(model, "key", model.nkey), model.key_qpos.tolist(), strict=True):
        tree.add_key(name, qpos, note)
    return tree.finish(notes)


def _body_names(model: Any, note: Note) -> list[str]:
    names = _names(model, "body", model.nbody)
    bodies = ["ground", *(name or free_name(f"body{i}", names) for i, name in enumerate(names) if i)]
    if "ground" in bodies[1:]:
        bodies[bodies.index("ground", 1)] = free_name("ground_body", bodies)
        note("body 'ground' becomes 'ground_body': 'ground' is the world")
    return bodies


def _add_bodies(
    tree: Tree, model: Any, bodies: list[str], joints: list[str], drives: Drives, off: Sequence[str], note: Note
) -> None:
    for i in range(1, model.nbody):
        R = _rotation(model.body_iquat[i]).matrix
        about_com = R @ np.diag(model.body_inertia[i]) @ R.T
        inertia = noted_inertia(float(model.body_mass[i]), model.body_ipos[i], about_com, note)
        first = int(model.body_jntadr[i])
        hinges = [_hinge(model, k, joints[k], drives, off, note) for k in range(first, first + model.body_jntnum[i])]
        tree.add_body(bodies[i], bodies[model.body_parentid[i]], _place(model, "body", i), inertia, hinges)


def _note_unread(model: Any, strings: Container[int], rotors: Container[int], note: Note) -> None:
    """Warn about arrays that affect the dynamics and are not read. `strings` and `rotors` have the indices of springs and transmissions."""
    for attribute, warning in UNREAD.items():
        values: Any = getattr(model, attribute, 0)
        if attribute in TRANSMITTED and np.ndim(values):
            springs = strings if attribute.startswith(("tendon_stiffness", "tendon_damping")) else ()
            values = [np.any(x) for k, x in enumerate(values) if k not in springs and k not in rotors]
        if np.any(values):
            note(warning or f"{attribute} is not read")
    if any(getattr(model.opt, name, 0.0) for name in ("density", "viscosity")):
        note("the drag of the medium is not read")
    if np.any(np.asarray(getattr(model, "body_plugin", -1)) >= 0):
        note("forces of plugins on bodies are not read")


def _place(model: Any, kind: str, i: int) -> Transform:
    return Transform(_rotation(getattr(model, f"{kind}_quat")[i]), getattr(model, f"{kind}_pos")[i])


def _touch(builder: Builder, model: Any, bodies: Sequence[str], note: Note) -> None:
    """Add collision shapes to bodies, as :func:`sarrus.io.mjcf_document.touch_geoms` does for a file."""
    touching, shapes = Touching(), dict[int, str]()
    for i, name in enumerate(_names(model, "geom", model.ngeom)):
        masks = int(model.geom_contype[i]), int(model.geom_conaffinity[i])
        kind = TOUCHING.get(int(model.geom_type[i]), "")
        if not any(masks):
            continue
        shape = shape_of(kind, model.geom_size[i].tolist()) if kind != "mesh" else _convex(model, i, note)
        if shape is None:
            note(f"a geom of type {kind or int(model.geom_type[i])} is not read as a collision shape")
            continue
        friction = model.geom_friction[i].tolist()
        numbers = coefficients(friction, model.geom_condim[i], note)
        free, body = name if name and name not in builder._shapes else None, bodies[model.geom_bodyid[i]]
        builder.add_shape(body, shape, _place(model, "geom", i), name=free, group=group_of(*masks), **numbers)
        touching.add(masks, friction, numbers)
        shapes[i] = next(reversed(builder._shapes))
    touching.settle(builder, note)
    for signature in model.exclude_signature.tolist():
        ends = [
            [shapes[i] for i in shapes if model.geom_bodyid[i] == body]
            for body in (signature >> 16, signature & 0xFFFF)
        ]
        for first, second in product(*ends):
            builder.set_contact(first, second, enabled=False)
    for k in range(model.npair):
        pair = [int(model.pair_geom1[k]), int(model.pair_geom2[k])]
        if not all(i in shapes for i in pair):
            note("<pair> in <contact> is not read: it names a geom that does not exist or has no contacts")
            continue
        sliding, across, spin, roll, rolling = model.pair_friction[k].tolist()
        if sliding != across or roll != rolling:
            note(ONE_FRICTION)
        numbers = coefficients((sliding, spin, roll), model.pair_dim[k], note)
        builder.set_contact(*(shapes[i] for i in pair), **numbers)


# type of a geom -> kind of a collision shape; contacts of ellipsoids are not supported
TOUCHING = {0: "plane", 2: "sphere", 3: "capsule", 5: "cylinder", 6: "box", 7: "mesh"}


def _convex(model: Any, i: int, note: Note) -> ContactShape | None:
    """Return the convex hull of a compiled mesh, which touches planes only."""
    k = int(model.geom_dataid[i])
    if k < 0 or not hasattr(model, "mesh_vert"):
        return None
    first = int(model.mesh_vertadr[k])
    points = corners(np.unique(np.asarray(model.mesh_vert[first : first + int(model.mesh_vertnum[k])], float), axis=0))
    if not 1 <= len(points) <= _core.most_points:
        return None
    note("meshes touch planes only, by their convex hulls")
    return ConvexPoints(tuple(map(tuple, points.tolist())))


def _switched_off(model: Any) -> list[str]:
    library = sys.modules.get("mujoco")  # the bits of flags differ between versions of MuJoCo
    bit = {
        name: getattr(getattr(library, "mjtDisableBit", None), f"mjDSBL_{name.upper()}", b) for name, b in FLAGS.items()
    }
    off = {name for name in FLAGS if int(model.opt.disableflags) & int(bit[name])}
    return sorted(off | ({"equality", "frictionloss", "limit"} if "constraint" in off else set()))


def _names(model: Any, kind: str, n: int) -> list[str]:
    """Return the names of all parts of a kind; empty for parts without a name."""
    if not hasattr(model, "names"):
        return [""] * n
    text = bytes(model.names)
    return [text[at : text.index(b"\0", at)].decode() for at in getattr(model, f"name_{kind}adr")]


def _rotation(quaternion: ArrayLike) -> Rotation:
    w, x, y, z = np.asarray(quaternion).tolist()
    return Rotation.from_quaternion((x, y, z, w))


def _drives(model: Any, rotors: Container[int], off: Container[str], note: Note) -> Drives:
    drives, n = Drives(), len(model.actuator_trntype)
    # an actuator may have several controls and several forces since MuJoCo 4
    control, out = (getattr(model, f"actuator_{name}", range(n)) for name in ("ctrladr", "outadr"))
    controls = getattr(model, "actuator_ctrlnum", np.ones(n))
    for i in range(n):
        if not controls[i]:
            note("actuators without an input are not motors: their effects on joints are not read")
            continue
        limits = []
        if model.actuator_forcelimited[i]:
            limits.append(greatest(model.actuator_forcerange[i], note))
        laws = (model.actuator_gaintype[i], model.actuator_biastype[i], model.actuator_dyntype[i])
        if any(laws):
            note("control laws of actuators are not read")
        elif model.actuator_ctrllimited[control[i]]:
            gain = abs(float(model.actuator_gainprm[i][0]))
            limits.append(gain * greatest(model.actuator_ctrlrange[control[i]], note))
        most = min(limits, default=np.inf)
        terms = _terms(model, "actuator", i, off)
        rotor = [terms[name] for name in ROTOR]
        gear, kind = float(model.actuator_gear[out[i]][0]), model.actuator_trntype[i]
        target = model.actuator_trnid[i][0]
        if kind in (JOINT, JOINT_IN_PARENT):
            scalar = KINDS[model.jnt_type[target]] in ("slide", "hinge")
            drives.add(int(target), gear if scalar else 1.0, most if scalar else np.inf, rotor)
        elif kind == TENDON and (length := _length(model, target)) is not None:
            motor = ("tendon", int(target)) if target in rotors else None
            drives.add_tendon(length, gear, most, rotor, note, motor)
        else:
            note("actuators that act on neither joints nor fixed tendons are not read")
    return drives


def _length(model: Any, tendon: int) -> dict[int, float] | None:
    """Return joint -> coefficient of a fixed tendon; None for other tendons."""
    at = slice(model.tendon_adr[tendon], model.tendon_adr[tendon] + model.tendon_num[tendon])
    if any(kind != WRAP_JOINT for kind in model.wrap_type[at]):
        return None
    return dict(zip(map(int, model.wrap_objid[at]), map(float, model.wrap_prm[at]), strict=True))


def _rotors(model: Any, off: Container[str]) -> dict[int, dict[int, float]]:
    """Return index -> coefficients by joint of the fixed tendons with passive terms, or of several joints with an actuator that has such terms."""
    count, rotors = getattr(model, "ntendon", 0), {}
    driven = {
        int(model.actuator_trnid[i][0])
        for i, kind in enumerate(model.actuator_trntype)
        if kind == TENDON and any(_terms(model, "actuator", i, off).values())
    }
    for k in range(count):
        if any(_terms(model, "tendon", k, off).values()) or k in driven:
            length = _length(model, k)
            if length and any(length.values()) and (len(length) > 1 or any(_terms(model, "tendon", k, off).values())):
                rotors[k] = length
    return rotors


def _terms(model: Any, kind: str, i: int, off: Container[str]) -> dict[str, float]:
    """Return field of a joint -> passive term of a tendon or an actuator."""

    def number(attribute: str, at: int) -> float:
        values = getattr(model, f"{kind}_{attribute}poly" if at else f"{kind}_{attribute}", None)
        return 0.0 if values is None else float(values[i][at - 1] if at else values[i])

    return {field: 0.0 if flag in off else number(name, at) for field, (name, at, flag) in MOTOR.items()}


def _strings(model: Any, bodies: list[str], sites: list[tuple[str, Transform]]) -> dict[int, Ends]:
    """Return index -> ends of the spatial tendons that are straight between two sites of two bodies."""
    strings = {}
    for k in range(getattr(model, "ntendon", 0)):
        at = slice(model.tendon_adr[k], model.tendon_adr[k] + model.tendon_num[k])
        if [*model.wrap_type[at]] == [WRAP_SITE, WRAP_SITE]:
            first, second = (point_of(sites[i]) for i in model.wrap_objid[at])
            if first[0] != second[0]:
                strings[k] = first, second
    return strings


def _add_springs(tree: Tree, model: Any, strings: Mapping[int, Ends], off: Sequence[str], note: Note) -> None:
    names = _names(model, "tendon", getattr(model, "ntendon", 0))
    for k, ends in strings.items():
        terms = _terms(model, "tendon", k, off)
        if any(terms[field] for field in STRING):
            rest = np.broadcast_to(model.tendon_lengthspring[k], 2).tolist()
            tree.add_spring(names[k] or f"tendon{k}", ends, terms, rest, note)


def _hinge(model: Any, k: int, name: str, drives: Drives, off: Sequence[str], note: Note) -> Hinge:
    kind, q, v = KINDS[model.jnt_type[k]], model.jnt_qposadr[k], model.jnt_dofadr[k]
    low, high = model.jnt_range[k].tolist()

    def along(name: str, at: int = 0) -> Any:
        """Return one number, or one for each velocity of a ball or a free joint, in the order of v."""
        order = {"free": (3, 4, 5, 0, 1, 2), "ball": (0, 1, 2)}.get(kind, (0,))
        of_velocity = getattr(model, name if at == 0 else f"{name}poly", np.zeros((model.nv, 2)))
        values = [float(of_velocity[v + i][at - 1] if at else of_velocity[v + i]) for i in order]
        return values[0] if len(set(values)) == 1 else np.array(values)

    damping = {field: 0.0 if "damper" in off else along("dof_damping", MOTOR[field][1]) for field in ROTOR[1:]}
    springs = {field: _terms(model, "jnt", k, off)[field] for field in SPRINGS}
    limit = greatest(model.jnt_actfrcrange[k], note) if model.jnt_actfrclimited[k] else np.inf
    joint = joint_type(
        kind,
        model.jnt_axis[k],
        note,
        **springs,
        rest=float(model.qpos_spring[q]) if any(springs.values()) else 0.0,
        limits=(low, high) if model.jnt_limited[k] and "limit" not in off else None,
        friction=0.0 if "frictionloss" in off else along("dof_frictionloss"),
        **drives.properties(k, limit, {"armature": along("dof_armature"), **damping}),
    )
    return Hinge(name, joint, model.jnt_pos[k].tolist(), float(model.qpos0[q]), k in drives.sums)


def _equality(
    tree: Tree, model: Any, i: int, name: str, bodies: list[str], joints: list[str], sites: list[tuple[str, Transform]],
    strings: Mapping[int, Ends],
) -> None:  # fmt: skip
    kind, first_id, second_id, data = (getattr(model, f"eq_{x}")[i] for x in ("type", "obj1id", "obj2id", "data"))
    if kind in (CONNECT, WELD):
        by_sites = model.eq_objtype[i] == SITE
        ends = [sites[k][0] if by_sites else bodies[k] for k in (first_id, second_id)]
        if by_sites:
            places = [sites[k][1] for k in (first_id, second_id)]
        elif kind == CONNECT:
            places = [Transform(translation=data[:3]), Transform(translation=data[3:6])]
        else:
            places = [Transform(_rotation(data[6:10]), data[3:6]), Transform(translation=data[:3])]
        name = tree.constraint_name(name, " to ".join(ends))
        tree.join(name, ends, *places, rotation=kind == WELD and data[10] != 0.0)
        return
    lengths: list[dict[int, float] | None] = [None]
    pair = [int(k) for k in (first_id, second_id) if k >= 0]
    if kind == TENDON_EQUALITY and len(pair) == 1 and pair[0] in strings:
        length = float(model.tendon_length0[pair[0]] + data[0])
        name = tree.constraint_name(name, _names(model, "tendon", model.ntendon)[pair[0]] or f"tendon{pair[0]}")
        tree.builder.add_distance(name, *strings[pair[0]], length=length)
        return
    if kind == JOINT_EQUALITY:
        lengths = [{k: 1.0} for k in pair]
    elif kind == TENDON_EQUALITY:
        lengths = [_length(model, k) for k in pair]
    named = [{joints[k]: c for k, c in length.items()} for length in lengths if length is not None]
    if len(named) < len(lengths):
        raise ModelError(f"equality {name or i} is of a flex or a spatial tendon, which is not supported")
    tendons = _names(model, "tendon", model.ntendon) if kind == TENDON_EQUALITY else []
    called = [(tendons[k] or f"tendon{k}") if tendons else joints[k] for k in pair]
    tree.couple(name, dict(zip(called, named, strict=True)), data[:5].tolist())
