"""Equivalent descriptions of a mechanism: in other units, other axes of the world, another order, with another spanning tree."""

import dataclasses
from dataclasses import dataclass

import numpy as np

import sarrus
from sarrus.description import CouplerSpec, DistanceSpec, PfaffianSpec, RollingSpec
from sarrus.description.joints import Cable
from sarrus.laws import Law


@dataclass(frozen=True)
class Units:
    """One metre, kilogram and second in the units of the other mechanism. With unchanged gravity a second is the square root of a metre."""

    m: float = 1.0
    kg: float = 1.0
    s: float = 1.0

    @property
    def force(self):
        return self.kg * self.m / self.s**2

    def of(self, unit):
        """Return the factor of a coordinate with this unit."""
        return self.m if unit == "m" else 1.0

    def coordinates(self, robot):
        """Return the factors of q, (nq,)."""
        return per_joint(robot, lambda joint: [self.of(unit) for _, unit in joint.coordinates])

    def velocities(self, robot):
        """Return the factors of v, (nv,)."""
        return per_joint(robot, lambda joint: [self.of(unit) / self.s for _, unit in joint.velocities])

    def efforts(self, robot):
        """Return the factors of generalised forces, (nv,), from those of power and velocities."""
        return self.force * self.m / self.s / self.velocities(robot)


def per_joint(robot, numbers):
    """Return `numbers(type)` of all tree joints, in the order of q or v."""
    joints = sorted(map(robot.joint, robot.joints), key=lambda joint: (joint.q_slice.start, joint.q_slice.stop))
    return np.concatenate([np.zeros(0), *(numbers(joint.type) for joint in joints)])


def rebuilt(robot, **parts):
    return sarrus.Mechanism(dataclasses.replace(robot.description, **parts))


def scaled(robot, m, kg, s=None):
    """Return the mechanism in other units of length and mass, and the units; gravity is unchanged unless a unit of time is given."""
    units, d = Units(m, kg, m**0.5 if s is None else s), robot.description

    def joint_type(joint):
        effort = [units.force * units.m / units.of(unit) for _, unit in joint.velocities]
        per = {
            "stiffness": [x / units.of(unit) for x, (_, unit) in zip(effort, joint.velocities, strict=True)],
            "damping": [x / units.of(unit) * units.s for x, (_, unit) in zip(effort, joint.velocities, strict=True)],
            "armature": [
                x / units.of(unit) * units.s**2 for x, (_, unit) in zip(effort, joint.velocities, strict=True)
            ],
            "friction": effort,
            "rest": [units.of(unit) for _, unit in joint.velocities],
        }
        values = {name: getattr(joint, name) * np.array(by) for name, by in per.items()}
        if joint.limits is not None:
            values["limits"] = tuple(
                x * np.array([units.of(unit) for _, unit in joint.coordinates]) for x in joint.limits
            )
        if isinstance(joint, sarrus.Helical):
            values["pitch"] = joint.pitch * units.m
        if isinstance(joint, sarrus.Gimbal):
            values["fixed"] = np.array(joint.fixed) * [1.0, 1.0, 1.0, *3 * [units.m]]
        if isinstance(joint, Cable):
            values["radius"] = joint.radius * units.m
        if joint.effort_limit is not None:
            values["effort_limit"] = joint.effort_limit * np.array(effort)
        if joint.velocity_limit is not None:
            values["velocity_limit"] = joint.velocity_limit * np.array(
                [units.of(u) / units.s for _, u in joint.velocities]
            )
        return dataclasses.replace(joint, **values)

    def place(T):
        return sarrus.Transform(sarrus.Rotation(T.rotation), T.translation * units.m)

    def point(p):
        return tuple((np.array(p) * units.m).tolist())

    def constraint(spec):
        if isinstance(spec, DistanceSpec):
            ends = {end: (getattr(spec, end)[0], point(getattr(spec, end)[1])) for end in ("first", "second")}
            return dataclasses.replace(spec, length=spec.length * units.m, **ends)
        if isinstance(spec, RollingSpec):
            on = None if spec.on_radius is None else spec.on_radius * units.m
            places = {"center": point(spec.center), "point": point(spec.point)}
            return dataclasses.replace(spec, radius=spec.radius * units.m, on_radius=on, **places)
        if isinstance(spec, CouplerSpec):
            assert spec.law is None
            of = [units.of(robot.joint(name).type.coordinates[index][1]) for name, index, _ in spec.terms]
            terms = [
                (name, index, tuple(c * of[0] / x ** (k + 1) for k, c in enumerate(coefficients)))
                for x, (name, index, coefficients) in zip(of, spec.terms, strict=True)
            ]

            def function(name, index, law, size):
                x = units.of(robot.joint(name).type.coordinates[index][1])
                pieces = size * np.array(law.coefficients) / x ** np.arange(len(law.coefficients[0]))
                waves = tuple((size * amplitude, rate / x, phase) for amplitude, rate, phase in law.harmonics)
                starts = tuple(x * start for start in law.starts)
                return name, index, Law(starts, tuple(map(tuple, pieces.tolist())), waves, x * law.period)

            products = [
                tuple(function(*factor, of[0] if k == 0 else 1.0) for k, factor in enumerate(product))
                for product in spec.products
            ]
            return dataclasses.replace(spec, terms=tuple(terms), offset=spec.offset * of[0], products=tuple(products))
        raise NotImplementedError(spec)

    by = {j.name: [units.of(unit) for _, unit in j.joint.coordinates] for j in d.joints}
    home = tuple((name, tuple((np.array(x) * by[name]).tolist())) for name, x in d.home)
    springs = tuple(
        dataclasses.replace(
            s,
            first=(s.first[0], point(s.first[1])),
            second=(s.second[0], point(s.second[1])),
            stiffness=s.stiffness * units.kg / units.s**2,
            damping=s.damping * units.kg / units.s,
            rest_length=s.rest_length * units.m,
        )
        for s in d.springs
    )
    inertia = np.array([units.kg, *[units.kg * units.m] * 3, *[units.kg * units.m**2] * 6])
    bodies = tuple(
        dataclasses.replace(b, inertia=sarrus.Inertia.from_parameters(b.inertia.parameters * inertia, check=False))
        for b in d.bodies
    )
    joints = tuple(
        dataclasses.replace(j, joint=joint_type(j.joint), at_parent=place(j.at_parent), at_child=place(j.at_child))
        for j in d.joints
    )
    other = rebuilt(
        robot,
        gravity=tuple((np.array(d.gravity) * units.m / units.s**2).tolist()),
        bodies=bodies,
        joints=joints,
        frames=tuple(dataclasses.replace(f, placement=place(f.placement)) for f in d.frames),
        constraints=tuple(map(constraint, d.constraints)),
        springs=springs,
        home=home,
        configurations=(),
        visuals=(),
    )
    return other, units


def moved(robot, T):
    """Return the mechanism displaced in the world, with rotated gravity: its q and v do not change."""
    d = robot.description

    def point(body, p):
        return (body, tuple((T.rotation @ p + T.translation).tolist())) if body == "ground" else (body, p)

    def constraint(spec):
        if isinstance(spec, DistanceSpec):
            return dataclasses.replace(spec, first=point(*spec.first), second=point(*spec.second))
        if isinstance(spec, RollingSpec) and spec.on == "ground":
            normal = tuple((T.rotation @ spec.normal).tolist())
            return dataclasses.replace(spec, point=point(spec.on, spec.point)[1], normal=normal)
        return spec

    def joint(spec):
        ends = {at: T @ getattr(spec, at) for at in ("at_parent", "at_child") if getattr(spec, at[3:]) == "ground"}
        return dataclasses.replace(spec, **ends)

    return rebuilt(
        robot,
        gravity=tuple((T.rotation @ d.gravity).tolist()),
        joints=tuple(map(joint, d.joints)),
        frames=tuple(dataclasses.replace(f, placement=T @ f.placement) if f.body == "ground" else f for f in d.frames),
        constraints=tuple(map(constraint, d.constraints)),
        springs=tuple(dataclasses.replace(s, first=point(*s.first), second=point(*s.second)) for s in d.springs),
    )


def reordered(robot, rng):
    """Return the mechanism with bodies, joints, frames and constraints in another order; its spanning tree may change."""
    d = robot.description
    parts = {
        name: tuple(getattr(d, name)[k] for k in rng.permutation(len(getattr(d, name))))
        for name in ("bodies", "joints", "frames", "constraints", "springs")
    }
    return with_home_of(robot, rebuilt(robot, **parts, home=(), configurations=()))


def with_home_of(robot, other):
    """Return the mechanism on another tree, with the same home."""
    if not robot.description.home:
        return other
    q = in_tree_of(other, robot, robot._at(robot.description.home))
    return rebuilt(other, home=tuple((name, tuple(q[other.joint(name).q_slice].tolist())) for name in other.joints))


def recut(robot, name):
    """Return the mechanism with this loop joint, and without hints for other joints; None if that is impossible."""
    d = robot.description
    needed = {x for c in d.constraints if isinstance(c, PfaffianSpec) for x in c.joints_related}
    needed |= {x for c in d.constraints for x in c.position_joints}
    if name in needed:
        return None
    joints = tuple(dataclasses.replace(j, tree=j.name in needed, loop=bool(j.laws) or j.name == name) for j in d.joints)
    try:
        other = rebuilt(robot, joints=joints, home=(), configurations=())
    except sarrus.ModelError:
        return None
    return with_home_of(robot, other) if other.joint(name).closes_loop else None


def in_tree_of(other, robot, q, v=None, a=None):
    """Return a closed state in the coordinates of another tree of the same mechanism: q, and v and a if given."""
    order = sorted(map(other.joint, other.joints), key=lambda joint: (joint.q_slice.start, joint.q_slice.stop))

    def numbers(of_joints, lead):
        parts = [np.zeros((*lead, 0)), *(of_joints[joint.name] for joint in order)]
        return np.concatenate(parts, axis=-1)

    answer = [numbers(robot.joint_states(q).q, np.shape(q)[:-1])]
    if v is not None:
        answer.append(numbers(robot.joint_states(q, v).v, np.shape(v)[:-1]))
    if a is not None:
        answer.append(numbers(robot.joint_states(q, v, a).a, np.shape(a)[:-1]))
    return answer[0] if len(answer) == 1 else tuple(answer)
