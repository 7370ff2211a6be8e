"""Joint types: comparison of each with its definition in the oracle, and the forces along joints."""

import copy
import dataclasses
import itertools
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sarrus
from tests.oracles import joint_motion as definition
from tests.random_mechanisms import random_inertia, random_state, random_transform

EPS = np.finfo(float).eps
# one joint: a few dozen operations on numbers of order one
ROUNDING = 64 * EPS
# of the sixth-order difference below: rounding over the step, and h^6/140 times a seventh derivative at speeds of order one
DIFFERENCING = 1e-10
PLACES = ("neutral", "near", "random", "random", "singular")

OBLIQUE, OTHER = (1.0, -2.0, 0.5), (0.3, 1.0, 2.0)
HELD = (0.3, -0.4, 0.5, 0.1, -0.2, 0.3)
SUBSETS = [" ".join(s) for n in range(1, 7) for s in itertools.combinations(definition.GIMBAL, n)]
JOINTS = [
    sarrus.Fixed(),
    *(
        joint(axis)
        for joint in (sarrus.Revolute, sarrus.Prismatic, sarrus.Cylindrical)
        for axis in ("x", "-y", "z", OBLIQUE)
    ),
    *(sarrus.Helical(axis, pitch) for axis, pitch in (("z", 0.1), ("-x", -0.3), (OBLIQUE, 0.2), (OBLIQUE, 0.0))),
    *(
        sarrus.Universal(*axes)
        for axes in (("x", "y"), ("z", "x"), (OBLIQUE, OTHER), ("y", OBLIQUE), ("z", "z"), ("z", "-z"))
    ),
    *(sarrus.Planar(normal) for normal in ("z", "x", "-x", "y", OBLIQUE)),
    sarrus.Spherical(),
    sarrus.Free(),
    *(sarrus.Gimbal(free, fixed=HELD) for free in SUBSETS),
]
MOVING = [joint for joint in JOINTS if joint.nv]
# one of each type, for what does not depend on the axes
TYPES = [*{joint.kind: joint for joint in MOVING}.values()]


def every(joints):
    return pytest.mark.parametrize("joint", joints, ids=str)


def on_ground(joint, *, inertia=None, **places):
    """Return a mechanism of one body on the ground; the body's frame is the joint's unless placed."""
    builder = sarrus.Builder()
    builder.add_body("body", inertia or random_inertia(np.random.default_rng(7)))
    builder.add_joint("joint", joint, "ground", "body", **places)
    return builder.build()


def states(robot):
    rng = np.random.default_rng(5)
    return [random_state(robot, rng, at) for at in PLACES]


def assert_equal(x, y, tolerance=ROUNDING):
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape
    assert np.abs(x - y).max(initial=0.0) <= tolerance * max(1.0, np.abs(y).max(initial=0.0))


STEP = 1e-2
TIMES = STEP * np.array([-3, -2, -1, 1, 2, 3])


def rate(values):
    return np.tensordot([-1, 9, -45, 45, -9, 1], values, 1) / (60 * STEP)


def path(robot, q, v):
    """Return (6, nq) configurations at TIMES along v from q, with decreasing speed."""
    return robot.integrate(q, TIMES[:, None] * v)


# ---- what a joint is -------------------------------------------------------------------------------------------------


@every(JOINTS)
def test_transform_is_the_definition(joint):
    robot = on_ground(joint)
    for q, _, _ in states(robot):
        R, p, _ = definition.joint_motion(joint, q)
        assert_equal(robot.pose(q, "body"), np.vstack([np.column_stack([R, p]), [0, 0, 0, 1]]))


@every(JOINTS)
def test_motion_space_is_the_derivative_of_the_transform(joint):
    """phi of van der Merwe 2.9 and 2.37 in the successor's axes; the definition gives it in the predecessor's."""
    robot = on_ground(joint)
    for q, v, _ in states(robot):
        phi = sarrus.formulations.joint_bases(robot, q, "joint")[0]
        T, T_rate = robot.pose(q, "body"), rate(robot.pose(path(robot, q, v), "body"))
        twist = np.linalg.inv(T) @ T_rate  # [w x, u; 0, 0]
        assert_equal(phi @ v, [twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]], DIFFERENCING)
        R, _, J = definition.joint_motion(joint, q)
        assert_equal(phi, np.kron(np.eye(2), R.T) @ J)


@every(JOINTS)
def test_rate_of_the_motion_space(joint):
    """The bias term is zero if the motion space is constant in the successor (2.38, 2.39, 5.68 to 5.71)."""
    robot = on_ground(joint)
    for q, v, _ in states(robot):
        phi = np.array([sarrus.formulations.joint_bases(robot, x, "joint")[0] for x in path(robot, q, v)])
        J_rate = robot.jacobian_derivative(q, v, "body")
        assert_equal(J_rate, rate(phi), DIFFERENCING)
        if joint.kind not in ("Gimbal", "Universal"):
            assert_equal(J_rate, np.zeros((6, joint.nv)))


@every(JOINTS)
def test_bases(joint):
    """The complement is orthonormal, and perpendicular to the remaining motions if axes become parallel."""
    robot = on_ground(joint)
    for q, _, _ in states(robot):
        phi, phi_c, psi, psi_c = sarrus.formulations.joint_bases(robot, q, "joint")
        assert_equal(phi_c.T @ phi_c, np.eye(6 - joint.nv))
        assert_equal(phi.T @ phi_c, np.zeros((joint.nv, 6 - joint.nv)))
        assert_equal(phi @ psi.T @ phi, phi)
        assert_equal(psi_c, phi_c)


@every(JOINTS)
def test_integrate_and_difference(joint):
    robot = on_ground(joint)
    for q, v, _ in states(robot):
        assert_equal(rate(path(robot, q, v)), definition.coordinate_rate(joint, q, v), DIFFERENCING)
        for dv in (0 * v, 1e-9 * v, v):
            q1 = robot.integrate(q, dv)
            assert_equal(q1, definition.integrate(joint, q, dv))
            assert_equal(robot.difference(q, q1), dv)
            assert_equal(robot.difference(q1, q), -dv)


@every(JOINTS)
def test_neutral(joint):
    robot = on_ground(joint)
    assert_array_equal(robot.neutral(), definition.neutral(joint))
    assert (robot.nq, robot.nv) == (joint.nq, joint.nv)


@every(JOINTS)
def test_what_the_core_says_of_a_type_is_what_it_does(joint):
    """The facts table that Python reads agrees with the behaviour of each type."""
    robot = on_ground(joint)
    spaces, rates = [], []
    for q, _, _ in states(robot):
        spaces.append(sarrus.formulations.joint_bases(robot, q, "joint")[0])
        columns = [definition.coordinate_rate(joint, q, v) for v in np.eye(joint.nv)]
        rates.append([k < joint.nv and np.abs(columns[k] - np.eye(joint.nq)[k]).max() < 1e-6 for k in range(joint.nq)])
        assert [unit == "m" for _, unit in joint.velocities] == [not column[:3].any() for column in spaces[-1].T]
        for k, (_, unit) in enumerate(joint.coordinates):
            if unit == "rad" and joint.whole_turns_return:
                turned = robot.pose(q + 2 * np.pi * np.eye(joint.nq)[k], "body")
                assert_equal(turned, robot.pose(q, "body"))
    assert (len(joint.coordinates), len(joint.velocities)) == (joint.nq, joint.nv)
    assert [*joint.rates[: joint.nq]] == np.all(rates, axis=0).tolist()
    assert joint.quaternion == (definition.neutral(joint)[:4].tolist() == [0, 0, 0, 1])
    assert [unit for _, unit in joint.coordinates].count("1") == 4 * joint.quaternion
    if joint.constant_subspace:
        assert_equal(np.stack(spaces), np.broadcast_to(spaces[0], (len(spaces), 6, joint.nv)))
    if joint.kind == "Helical":
        assert not joint.whole_turns_return


@every([sarrus.Spherical(), sarrus.Free()])
def test_quaternions(joint):
    """Both quaternions of a rotation are accepted, and an error of the norm at rounding level or of 1e-4 has no effect."""
    robot = on_ground(joint)
    q, v, a = states(robot)[2]
    for factor in (-1.0, 1.0 + 1e-4, 1.0 - 1e-4):
        other = q.copy()
        other[:4] *= factor
        assert_equal(robot.pose(other, "body"), robot.pose(q, "body"))
        assert_equal(robot.inverse_dynamics(other, v, a), robot.inverse_dynamics(q, v, a))
        assert_equal(robot.difference(q, other), np.zeros(robot.nv))
        assert_equal(np.linalg.norm(robot.integrate(other, v)[:4]), 1.0)
        assert_equal(robot.normalize(other)[:4], np.sign(factor) * q[:4])


@pytest.mark.parametrize("angle", [np.pi - 1e-4, np.pi - 1e-9, np.pi, np.pi + 1e-4])
def test_difference_takes_the_shorter_way_round(angle):
    robot = on_ground(sarrus.Spherical())
    axis = np.array(OBLIQUE) / np.linalg.norm(OBLIQUE)
    q = robot.integrate(robot.neutral(), angle * axis)
    dv = robot.difference(robot.neutral(), q)
    # the sine of half the angle is flat here, its cosine, known to EPS, is not
    assert np.linalg.norm(dv) <= np.pi * (1 + ROUNDING)
    assert_equal(np.linalg.norm(dv), min(angle, 2 * np.pi - angle))
    assert_equal(robot.pose(robot.integrate(robot.neutral(), dv), "body"), robot.pose(q, "body"))


def test_angles_of_many_turns():
    robot = on_ground(sarrus.Revolute("z"))
    q = np.array([1e3, -1e5, 1e8, 1e15, 1e300, 3.0, -1e22])[:, None]
    T = robot.pose(q, "body")
    assert_equal(T[:, 0, 0], np.cos(q[:, 0]))
    assert_equal(T[:, 1, 0], np.sin(q[:, 0]))
    assert_equal([robot.pose(x, "body") for x in q], T)


# ---- compound joints are chains of simple ones -----------------------------------------------------------------------


@every([joint for joint in MOVING if joint.kind in ("Universal", "Cylindrical", "Gimbal")])
def test_is_a_chain_of_simple_joints(joint):
    """A chain of simple joints with massless bodies has the same force for the same motion, and the inverse."""
    builder = sarrus.Builder()
    before, place = "ground", sarrus.Transform()
    steps = definition.displacements(joint, np.zeros(joint.nq))
    free = definition.gimbal_free(joint) if joint.kind == "Gimbal" else range(len(steps))
    for k, (kind, axis, amount) in enumerate(steps):
        if k in free:
            simple = sarrus.Revolute(axis) if kind == "turn" else sarrus.Prismatic(axis)
            last = k == max(free)
            builder.add_body(f"body{k}", random_inertia(np.random.default_rng(7)) if last else None)
            builder.add_joint(f"joint{k}", simple, before, f"body{k}", at_parent=place)
            before, place = f"body{k}", sarrus.Transform()
        else:
            R = sarrus.Rotation.from_axis_angle(axis, amount) if kind == "turn" else sarrus.Rotation()
            place = place @ sarrus.Transform(R, (0, 0, 0) if kind == "turn" else amount * axis)
    chain = builder.build()
    robot = on_ground(joint, at_child=place)
    for q, v, a in states(robot)[:4]:
        assert_equal(robot.pose(q, "body"), chain.pose(q, before), 8 * ROUNDING)
        tau = chain.inverse_dynamics(q, v, a)
        assert_equal(robot.inverse_dynamics(q, v, a), tau, 8 * ROUNDING)
        condition = np.linalg.cond(robot.mass_matrix(q))
        if condition < 1e8:  # parallel axes have no answer
            assert_equal(robot.forward_dynamics(q, v, tau), a, condition * ROUNDING)
            assert_equal(chain.forward_dynamics(q, v, tau), a, condition * ROUNDING)


def test_a_gimbal_with_nothing_free_is_a_weld():
    robot = on_ground(sarrus.Gimbal("", fixed=HELD))
    q = np.array(HELD)
    assert robot.nq == 0
    assert_equal(robot.pose([], "body"), on_ground(sarrus.Gimbal("rx ry rz tx ty tz")).pose(q, "body"))


# ---- what acts along a joint -----------------------------------------------------------------------------------------


@every(TYPES)
def test_friction_opposes_motion(joint):
    """van der Merwe 4.26: the drive overcomes damping v and friction sign(v); both are zero at rest."""
    rng = np.random.default_rng(3)
    damping, friction = rng.uniform(0.1, 1, (2, joint.nv))
    plain, rough = on_ground(joint), on_ground(dataclasses.replace(joint, damping=damping, friction=friction))
    for q, v, a in states(plain):
        v[0] = 0.0
        tau = plain.inverse_dynamics(q, v, a)
        extra = damping * v + friction * np.sign(v)
        assert_equal(rough.inverse_dynamics(q, v, a), tau + extra)
        assert_equal(rough.bias_forces(q, v), plain.bias_forces(q, v) + extra)
        assert_equal(rough.gravity_forces(q), plain.gravity_forces(q))
        assert_equal(
            sarrus.formulations.reactions(rough, q, v, a)["joint"],
            sarrus.formulations.reactions(plain, q, v, a)["joint"],
        )


@every(TYPES)
def test_armature_adds_to_the_mass_matrix(joint):
    armature = np.random.default_rng(3).uniform(0.1, 1, joint.nv)
    plain, geared = on_ground(joint), on_ground(dataclasses.replace(joint, armature=armature))
    for q, v, a in states(plain):
        assert_equal(geared.mass_matrix(q), plain.mass_matrix(q) + np.diag(armature))
        assert_equal(geared.inverse_dynamics(q, v, a), plain.inverse_dynamics(q, v, a) + armature * a)
        assert_equal(geared.kinetic_energy(q, v), plain.kinetic_energy(q, v) + 0.5 * armature @ (v * v))
        assert_equal(geared.momentum(q, v), plain.momentum(q, v))


def test_armature_makes_a_singular_gimbal_solvable():
    """If the first and third axes of a gimbal coincide, only the armature of the rotors makes the mass matrix regular."""
    robot = on_ground(sarrus.Gimbal("rx ry rz", armature=0.1))
    q, v, tau = np.array([0.3, np.pi / 2, -0.8]), np.array([1.0, 2.0, 3.0]), np.array([0.5, -0.2, 0.1])
    a = robot.forward_dynamics(q, v, tau)
    assert_equal(robot.inverse_dynamics(q, v, a), tau, 100 * ROUNDING)


@pytest.mark.parametrize(
    ("joint", "stiffness", "rest"),
    [
        (sarrus.Revolute(OBLIQUE), 3.0, 0.4),
        (sarrus.Prismatic("x"), 3.0, -0.4),
        (sarrus.Helical("z", 0.1), 3.0, 0.4),
        (sarrus.Cylindrical("y"), (3.0, 5.0), (0.1, -0.2)),
        (sarrus.Universal("x", "y"), (3.0, 5.0), (0.1, -0.2)),
        (sarrus.Gimbal("rx ry tz"), (3.0, 5.0, 7.0), (0.1, -0.2, 0.3)),
        (sarrus.Planar(OBLIQUE), (0.0, 0.0, 3.0), (0.0, 0.0, 0.4)),
    ],
    ids=str,
)
def test_spring(joint, stiffness, rest):
    k, plain = np.atleast_1d(stiffness), on_ground(joint)
    sprung = on_ground(dataclasses.replace(joint, stiffness=stiffness, rest=rest))
    for q, v, a in states(plain):
        stretch = q - rest
        assert_equal(sprung.inverse_dynamics(q, v, a), plain.inverse_dynamics(q, v, a) + k * stretch)
        assert_equal(sprung.potential_energy(q), plain.potential_energy(q) + 0.5 * k @ stretch**2)
        assert_equal(sprung.gravity_forces(q), plain.gravity_forces(q))


@pytest.mark.parametrize("angle", [0.0, 1e-8, 1e-3, 1.0, 3.0])
def test_spring_of_a_ball_joint(angle):
    """The spring acts along the rotation vector of q, which has the same components in the successor's axes."""
    plain, sprung = on_ground(sarrus.Spherical()), on_ground(sarrus.Spherical(stiffness=3.0))
    turn = angle * np.array(OBLIQUE) / np.linalg.norm(OBLIQUE)
    q, v = plain.integrate(plain.neutral(), turn), np.array([0.3, -0.1, 0.2])
    for same in (q, -q):
        assert_equal(sprung.bias_forces(same, v), plain.bias_forces(q, v) + 3.0 * turn)
        assert_equal(sprung.potential_energy(same), plain.potential_energy(q) + 1.5 * angle**2)


# ---- limits ----------------------------------------------------------------------------------------------------------


@every(TYPES)
def test_random_configurations_keep_the_limits(joint):
    lower, upper = np.linspace(-0.7, 0.2, joint.nq), np.linspace(0.3, 0.9, joint.nq)
    where = slice(4 if joint.kind in ("Spherical", "Free") else 0, None)  # of a quaternion there are none
    lower[: where.start], upper[: where.start] = -np.inf, np.inf
    robot = on_ground(dataclasses.replace(joint, limits=(lower, upper)))
    low, high = robot.joint("joint").limits
    assert_array_equal(low, lower)
    assert_array_equal(high, upper)
    q = robot.random(np.random.default_rng(0), size=200)
    assert (q >= low)[:, where].all()
    assert (q <= high)[:, where].all()
    assert np.isfinite(robot.mass_matrix(q)).all()


@pytest.mark.parametrize("limits", [(5.0, np.inf), (-np.inf, -5.0), (2.0, 2.0), (-np.inf, np.inf), (4.0, 9.0)])
def test_random_configurations_keep_limits_on_one_side(limits):
    robot = on_ground(sarrus.Revolute("z", limits=limits))
    q = robot.random(np.random.default_rng(0), size=50)
    assert (q >= limits[0]).all()
    assert (q <= limits[1]).all()
    assert np.isfinite(q).all()


# what a simulation is to keep: no function of a state looks at them
OF_MOTIONS = ("velocity_limit", "effort_limit")
VALUES = {
    "axis": (0.3, -1, 2),
    "axis1": (1, 2, 3),
    "axis2": (3, -1, 1),
    "normal": (1, 2, 3),
    "pitch": 0.7,
    "free": "ry tz",
}
VALUES |= {
    "fixed": 0.2,
    "limits": (0.1, 0.2),
    "damping": 0.7,
    "friction": 0.4,
    "armature": 0.9,
    "stiffness": 3.0,
    "rest": 0.3,
    **{f"{power}_{term}": 0.4 for power in ("quadratic", "cubic") for term in ("stiffness", "damping")},
}


@every([*TYPES, sarrus.Fixed(), sarrus.Gimbal("rx", fixed=HELD)])
def test_whatever_a_joint_is_given_acts_or_is_refused_or_warned_of(joint):
    """Every parameter changes some result, or raises an error, or a warning."""

    def answers(robot):
        q, v, a = (np.random.default_rng(3).normal(size=n) for n in (robot.nq, robot.nv, robot.nv))
        q = robot.normalize(q)
        of_body = robot.pose(q, "body"), robot.velocity(q, v, "body"), robot.inverse_dynamics(q, v, a)
        return [*of_body, robot.random(0, size=3)]

    def differ(one, other):
        return len(one) != len(other) or any(not np.array_equal(x, y) for x, y in zip(one, other, strict=True))

    plain = answers(on_ground(joint))
    for field in dataclasses.fields(joint):
        if field.name in OF_MOTIONS:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                changed = dataclasses.replace(joint, **{field.name: VALUES[field.name]})
                robot = on_ground(changed)
            except sarrus.ModelError:
                continue
        if changed == joint:  # a Gimbal's fixed values of what is free: they are no part of it
            continue
        assert differ(answers(robot), plain) != bool(caught), field.name
        assert [str(warning.message) for warning in caught] == list(robot.warnings)


# ---- seen from the other end -----------------------------------------------------------------------------------------

REVERSIBLE = [joint for joint in JOINTS if joint.kind in ("Fixed", "Revolute", "Prismatic", "Helical", "Cylindrical")]


@every(REVERSIBLE)
def test_reversed_joint_has_its_axis_reversed(joint):
    """A joint with reversed parent and child moves like one with the opposite axis in the usual direction."""
    rng = np.random.default_rng(11)
    near, far = random_transform(rng), random_transform(rng)
    builder = sarrus.Builder()
    builder.add_body("body", random_inertia(np.random.default_rng(7)))
    passive = {"damping": 0.3, "friction": 0.2, "armature": 0.1, "stiffness": 2.0, "rest": 0.1} if joint.nv else {}
    passive |= {"quadratic_stiffness": 0.3, "cubic_stiffness": 0.2, "quadratic_damping": 0.1} if joint.nv else {}
    builder.add_joint("joint", dataclasses.replace(joint, **passive), "body", "ground", at_parent=far, at_child=near)
    backward = builder.build()
    opposite = {"axis": -joint.axis} if joint.nv else {}
    forward = on_ground(dataclasses.replace(joint, **opposite, **passive), at_parent=near, at_child=far)
    assert backward.joint("joint").reversed
    assert not forward.joint("joint").reversed
    for q, v, a in states(forward):
        assert_equal(backward.pose(q, "body"), forward.pose(q, "body"))
        assert_equal(backward.inverse_dynamics(q, v, a), forward.inverse_dynamics(q, v, a))
        assert_equal(backward.mass_matrix(q), forward.mass_matrix(q))
        assert_equal(backward.integrate(q, v), forward.integrate(q, v))
        assert_equal(backward.potential_energy(q), forward.potential_energy(q))
        assert_equal(
            sarrus.formulations.reactions(backward, q, v, a)["joint"],
            sarrus.formulations.reactions(forward, q, v, a)["joint"],
        )
        assert_equal(
            sarrus.formulations.joint_bases(backward, q, "joint")[0],
            sarrus.formulations.joint_bases(forward, q, "joint")[0],
        )


@every(JOINTS)
def test_any_joint_may_be_passed_backwards(joint):
    """A reversed joint gives the inverse pose, with its derivatives."""
    rng = np.random.default_rng(11)
    near, far = random_transform(rng), random_transform(rng)
    builder = sarrus.Builder()
    builder.add_body("body", random_inertia(np.random.default_rng(7)))
    builder.add_joint("joint", joint, "body", "ground", at_parent=far, at_child=near)
    backward, forward = builder.build(), on_ground(joint)
    assert backward.joint("joint").reversed
    inertia = np.zeros((6, 6))
    body = backward.description.bodies[0].inertia
    inertia[:3, :3], inertia[3:, 3:] = body.about_origin, body.mass * np.eye(3)
    inertia[:3, 3:] = body.mass * skew(body.com)
    inertia[3:, :3] = inertia[:3, 3:].T
    for q, v, _ in states(forward):
        moved = sarrus.Transform.from_matrix(forward.pose(q, "body"))
        expected = near @ moved.inverse() @ far.inverse()
        assert_equal(backward.pose(q, "body"), expected.matrix)
        J = backward.jacobian(q, "body")
        assert_equal(backward.mass_matrix(q), J.T @ inertia @ J)
        h = 1e-5
        ahead, behind = (backward.integrate(q, s * h * v) for s in (1.0, -1.0))
        step = sarrus.Transform.from_matrix(np.linalg.inv(backward.pose(behind, "body")) @ backward.pose(ahead, "body"))
        np.testing.assert_allclose(J @ v, step.log() / (2 * h), atol=1e-7)
        rate = (backward.jacobian(ahead, "body") - backward.jacobian(behind, "body")) / (2 * h)
        np.testing.assert_allclose(backward.jacobian_derivative(q, v, "body"), rate, atol=1e-7)
        energy = [backward.kinetic_energy(x, v) + backward.potential_energy(x) for x in (behind, ahead)]
        power = backward.bias_forces(q, v) @ v  # a = 0
        np.testing.assert_allclose(power, (energy[1] - energy[0]) / (2 * h), atol=1e-6)


def skew(x):
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


# ---- values ----------------------------------------------------------------------------------------------------------


@every(JOINTS)
def test_joints_are_values(joint):
    for other in (
        copy.copy(joint),
        copy.deepcopy(joint),
        pickle.loads(pickle.dumps(joint)),
        dataclasses.replace(joint),
    ):
        assert other == joint
        assert hash(other) == hash(joint)
    assert joint != (dataclasses.replace(joint, limits=(-np.inf, np.inf)) if joint.nq else sarrus.Revolute("x"))
    assert sum(joint == other for other in JOINTS) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        joint.damping = 1.0
    for same in (joint, copy.deepcopy(joint), pickle.loads(pickle.dumps(joint))):
        with pytest.raises(ValueError, match="read-only"):
            same.damping[...] = 1.0


def test_fixed_values_of_what_is_free_tell_gimbals_apart_no_more_than_they_act():
    assert sarrus.Gimbal("rx", fixed=HELD) == sarrus.Gimbal("rx", fixed=(7.0, *HELD[1:]))
    assert sarrus.Gimbal("rx", fixed=HELD) != sarrus.Gimbal("ry", fixed=HELD)


def test_fractions_are_numbers():
    half = Fraction(1, 2)
    assert sarrus.Helical((half, 0, 0), half, damping=half) == sarrus.Helical("x", 0.5, damping=0.5)
    assert sarrus.Transform(translation=(half, 0, 2**70)) == sarrus.Transform(translation=(0.5, 0, 2.0**70))


def test_equal_axes_make_equal_joints():
    assert sarrus.Revolute("-z") == sarrus.Revolute((0, 0, -1)) == sarrus.Revolute((0, 0, -5.0))
    assert hash(sarrus.Revolute("-z")) == hash(sarrus.Revolute((0, 0, -1)))
    assert sarrus.Gimbal("tx rz") == sarrus.Gimbal(("rz", "tx"))
