"""Laws of mechanics that any tree of bodies obeys, drawn at random over all joint types."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sarrus
from tests.effort import examples
from tests.oracles import Dense, structurally_recursive_mass_matrix
from tests.oracles.joint_motion import skew
from tests.random_mechanisms import (
    ALL_JOINTS,
    PLACES,
    mechanisms,
    random_inertia,
    random_mechanism,
    random_state,
    random_transform,
    seeds,
)

EPS = np.finfo(float).eps
# up to eight bodies, and each turns, moves and adds what it passes on
ROUNDING = 256 * EPS
# of `rate`: rounding over the step, 16 EPS 183; its truncation is h^6/140 = 7e-15 times a seventh derivative at unit speed
DIFFERENCING = 4e-12

PLACE = st.sampled_from(PLACES)
ANYWHERE = st.sampled_from([*PLACES, "singular"])
REPRESENTATION = st.sampled_from(["frame", "world", "world_aligned"])
law = examples(25)


def assert_equal(x, y, tolerance=ROUNDING, scale=0.0):
    """Assert equality relative to the largest entry, or to the scale of the inputs."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape
    assert np.abs(x - y).max(initial=0.0) <= tolerance * max(1.0, scale, np.abs(y).max(initial=0.0))


def condition(M):
    return np.linalg.cond(M) if len(M) else 1.0


# the central difference of sixth order, on a step at which truncation and rounding are alike
STEP = 1e-2
TIMES = STEP * np.array([-3, -2, -1, 1, 2, 3])
WEIGHTS = np.array([-1, 9, -45, 45, -9, 1]) / (60 * STEP)


def path(robot, q, v):
    """Return (6, ..., nq) configurations at TIMES along a path through q with velocity v (..., nv)."""
    v = np.asarray(v)
    return robot.integrate(q, TIMES.reshape(-1, *[1] * v.ndim) * v)


def rate(values):
    """Return the time derivative of a function along a path."""
    return np.tensordot(WEIGHTS, values, 1)


def slow_state(robot, seed, at="random"):
    """Return a state whose speeds together are one, so that differencing errors are bounded."""
    q, v, a = random_state(robot, np.random.default_rng(seed), at)
    return q, v / max(1.0, np.abs(v).sum()), a / max(1.0, np.abs(a).sum())


def wrench_at(wrench, T):
    """Return [moment; force] about the world's origin, in world axes, of a wrench in a frame at T."""
    moment, force = T[:3, :3] @ wrench[:3], T[:3, :3] @ wrench[3:]
    return np.concatenate([moment + np.cross(T[:3, 3], force), force])


# ---- the mass matrix and the two dynamics ----------------------------------------------------------------------------


@law
@given(mechanisms(), seeds(), PLACE)
def test_mass_matrix_is_symmetric_and_positive_definite(robot, seed, at):
    q, _, _ = random_state(robot, np.random.default_rng(seed), at)
    M = robot.mass_matrix(q)
    np.testing.assert_array_equal(M, M.T)
    np.linalg.cholesky(M)


@law
@given(mechanisms(), seeds())
def test_mass_matrix_is_semidefinite_where_gimbals_are_singular(robot, seed):
    q, _, _ = random_state(robot, np.random.default_rng(seed), "singular")
    eigenvalues = np.linalg.eigvalsh(robot.mass_matrix(q))
    assert (eigenvalues >= -ROUNDING * eigenvalues.max(initial=1.0)).all()


@law
@given(mechanisms(armature=st.booleans()), seeds(), ANYWHERE)
def test_mass_matrix_is_the_structural_recursion(robot, seed, at):
    """van der Merwe 5.46."""
    q, _, _ = random_state(robot, np.random.default_rng(seed), at)
    assert_equal(robot.mass_matrix(q), structurally_recursive_mass_matrix(robot.description, q))


@law
@given(mechanisms(friction=True, armature=st.booleans(), springs=True), seeds(), PLACE)
def test_forward_dynamics_solves_the_equation_of_motion(robot, seed, at):
    """M a + h = tau, with wrenches, to rounding of the terms times the condition number."""
    rng = np.random.default_rng(seed)
    q, v, tau = random_state(robot, rng, at)
    wrenches = {"tool": rng.normal(size=6), "frame0": rng.normal(size=6)}
    a = robot.forward_dynamics(q, v, tau, wrenches=wrenches)
    M, h = robot.mass_matrix(q), robot.bias_forces(q, v, wrenches=wrenches)
    assert_equal(M @ a + h, tau, ROUNDING + 8 * EPS * condition(M), scale=np.abs(M @ a).max(initial=0.0))
    assert_equal(
        robot.inverse_dynamics(q, v, a, wrenches=wrenches),
        M @ a + h,
        scale=np.abs(M).max(initial=0.0) * np.abs(a).max(initial=0.0),
    )


@law
@given(mechanisms(friction=True, armature=st.booleans(), springs=True), seeds(), PLACE)
def test_forward_dynamics_inverts_inverse_dynamics(robot, seed, at):
    q, v, a = random_state(robot, np.random.default_rng(seed), at)
    again = robot.forward_dynamics(q, v, robot.inverse_dynamics(q, v, a))
    # tau is known to rounding of its largest part, which is at most the bias for these accelerations of order one
    parts = max(1.0, np.abs(robot.bias_forces(q, v)).max(initial=0.0))
    M = robot.mass_matrix(q)
    assert_equal(again, a, ROUNDING + 64 * EPS * condition(M) * parts)


@law
@given(mechanisms(armature=st.booleans()), seeds(), PLACE)
def test_mass_matrix_inverse(robot, seed, at):
    q, _, _ = random_state(robot, np.random.default_rng(seed), at)
    M, inverse = robot.mass_matrix(q), robot.mass_matrix_inverse(q)
    assert_equal(M @ inverse, np.eye(robot.nv), 64 * EPS * condition(M))
    assert_equal(inverse, inverse.T)


@law
@given(mechanisms(), seeds(), ANYWHERE)
def test_mass_matrix_rate_minus_2c_is_skew(robot, seed, at):
    q, v, _ = slow_state(robot, seed, at)
    C = robot.coriolis_matrix(q, v)
    M_rate = rate(robot.mass_matrix(path(robot, q, v)))
    assert_equal(C + C.T, M_rate, DIFFERENCING, scale=np.abs(robot.mass_matrix(q)).max(initial=0.0))


@law
@given(mechanisms(), seeds(), ANYWHERE)
def test_coriolis_matrix_gives_the_coriolis_forces(robot, seed, at):
    q, v, _ = random_state(robot, np.random.default_rng(seed), at)
    h = robot.bias_forces(q, v)
    assert_equal(robot.coriolis_matrix(q, v) @ v, h - robot.gravity_forces(q), scale=np.abs(h).max(initial=0.0))


# ---- energy and momentum ---------------------------------------------------------------------------------------------


@law
@given(mechanisms(friction=True, armature=True, springs=True), seeds(), ANYWHERE)
def test_power_is_the_rate_of_energy(robot, seed, at):
    """(tau - friction).v = d(T + U)/dt along any motion."""
    q, v, a = slow_state(robot, seed, at)
    specs = [spec.joint for spec in robot.description.joints]
    damping, friction = (
        np.concatenate([np.zeros(0), *(getattr(j, name) for j in specs)]) for name in ("damping", "friction")
    )
    drive = robot.inverse_dynamics(q, v, a) - damping * v - friction * np.sign(v)
    qs, vs = path(robot, q, v), v + TIMES[:, None] * a
    energy = robot.kinetic_energy(qs, vs) + robot.potential_energy(qs)
    assert_equal(drive @ v, rate(energy), DIFFERENCING, scale=np.abs(energy).max())


@law
@given(mechanisms(armature=st.booleans()), seeds(), ANYWHERE)
def test_energies_are_those_of_the_matrices(robot, seed, at):
    q, v, _ = slow_state(robot, seed, at)
    assert_equal(robot.kinetic_energy(q, v), 0.5 * v @ robot.mass_matrix(q) @ v)
    U = robot.potential_energy(path(robot, q, v))
    assert_equal(robot.gravity_forces(q) @ v, rate(U), DIFFERENCING, scale=np.abs(U).max())


@law
@given(mechanisms(), seeds(), ANYWHERE)
def test_momentum(robot, seed, at):
    """Linear momentum is mass times the velocity of the centre of mass; A_G v is the momentum about it; its rate has a bias."""
    q, v, a = slow_state(robot, seed, at)
    p = robot.momentum(q, v)
    A, c = sarrus.floating.centroidal_momentum_matrix(robot, q), robot.center_of_mass(q)
    assert_equal(p[3:], robot.mass * sarrus.floating.center_of_mass_jacobian(robot, q) @ v)
    assert_equal(sarrus.floating.centroidal_momentum(robot, q, v), A @ v)
    assert_equal(A @ v, p - np.concatenate([np.cross(c, p[3:]), np.zeros(3)]))
    qs = path(robot, q, v)
    assert_equal(sarrus.floating.center_of_mass_jacobian(robot, q) @ v, rate(robot.center_of_mass(qs)), DIFFERENCING)
    later = sarrus.floating.centroidal_momentum(robot, qs, v + TIMES[:, None] * a)
    assert_equal(
        A @ a + sarrus.floating.centroidal_momentum_bias(robot, q, v),
        rate(later),
        DIFFERENCING,
        scale=np.abs(A).max(initial=0.0),
    )


def fly(robot, q, v, duration=0.1, steps=50):
    """Integrate dq/dt and dv/dt by RK4, without motor forces."""
    coordinates, h = Dense(robot.description).coordinate_rate, duration / steps
    nothing = np.zeros(robot.nv)

    def slope(q, v):
        return coordinates(q, v), robot.forward_dynamics(robot.normalize(q), v, nothing)

    for _ in range(steps):
        q1, v1 = slope(q, v)
        q2, v2 = slope(q + h / 2 * q1, v + h / 2 * v1)
        q3, v3 = slope(q + h / 2 * q2, v + h / 2 * v2)
        q4, v4 = slope(q + h * q3, v + h * v3)
        q = robot.normalize(q + h / 6 * (q1 + 2 * q2 + 2 * q3 + q4))
        v = v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
    return q, v


# h = 2 ms, fourth order, motions of a few rad/s: (h w)^4 with w = 5 is 1e-8, and the flight is a fraction of 1/w
FLIGHT = 1e-8


def kept_in_flight(robot, q, v, quantity, scale=0.0):
    """Assert that a quantity is conserved within the error of steps; for fast rotations the error falls by 2^4 with half the step."""
    at_start = quantity(q, v)
    bound = FLIGHT * max(1.0, scale, np.abs(at_start).max(initial=0.0))
    off = np.abs(quantity(*fly(robot, q, v)) - at_start).max(initial=0.0)
    if off > bound:
        finer = np.abs(quantity(*fly(robot, q, v, steps=100)) - at_start).max(initial=0.0)
        assert finer < off / 8.0


@examples(8)
@given(mechanisms(bodies=st.integers(2, 5), floating=True), seeds())
def test_momentum_and_energy_are_conserved_in_free_flight(robot, seed):
    robot = sarrus.Mechanism(dataclasses.replace(robot.description, gravity=(0.0, 0.0, 0.0)))
    q, v, _ = random_state(robot, np.random.default_rng(seed))
    kept_in_flight(robot, q, v, robot.momentum)
    kept_in_flight(robot, q, v, robot.kinetic_energy)


@examples(8)
@given(mechanisms(bodies=st.integers(1, 5), springs=True, armature=True), seeds())
def test_energy_is_conserved_where_there_is_no_friction(robot, seed):
    q, v, _ = slow_state(robot, seed)

    def energy(q, v):
        return robot.kinetic_energy(q, v) + robot.potential_energy(q)

    kept_in_flight(robot, q, v, energy, scale=robot.kinetic_energy(q, v))


# ---- motion ----------------------------------------------------------------------------------------------------------


@law
@given(mechanisms(), seeds(), ANYWHERE, st.sampled_from(["tool", "frame1", "body0", "ground"]))
def test_jacobians_are_derivatives_of_poses(robot, seed, at, frame):
    q, _, _ = slow_state(robot, seed, at)
    T = robot.pose(q, frame)
    R, p = T[:3, :3], T[:3, 3]
    rates = rate(robot.pose(path(robot, q, np.eye(robot.nv)), frame))  # (nv, 4, 4): one velocity at a time
    spin = rates[:, :3, :3] @ R.T
    w, u = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]]), rates[:, :3, 3].T
    scale = np.abs(p).max()
    assert_equal(robot.jacobian(q, frame, expressed_in="world_aligned"), np.vstack([w, u]), DIFFERENCING, scale)
    assert_equal(robot.jacobian(q, frame, expressed_in="world"), np.vstack([w, u + skew(p) @ w]), DIFFERENCING, scale)
    assert_equal(robot.jacobian(q, frame), np.vstack([R.T @ w, R.T @ u]), DIFFERENCING, scale)


@law
@given(mechanisms(), seeds(), ANYWHERE, st.sampled_from(["tool", "frame1", "body0", "ground"]), REPRESENTATION)
def test_jacobian_derivative_is_the_derivative_of_the_jacobian(robot, seed, at, frame, expressed_in):
    q, v, _ = slow_state(robot, seed, at)
    J = robot.jacobian(path(robot, q, v), frame, expressed_in=expressed_in)
    ours = robot.jacobian_derivative(q, v, frame, expressed_in=expressed_in)
    assert_equal(ours, rate(J), DIFFERENCING, scale=np.abs(J).max(initial=0.0))


@law
@given(mechanisms(), seeds(), ANYWHERE, st.sampled_from(["tool", "frame1", "body0"]), REPRESENTATION)
def test_velocity_and_acceleration_follow_from_the_jacobian(robot, seed, at, frame, expressed_in):
    q, v, a = random_state(robot, np.random.default_rng(seed), at)
    J = robot.jacobian(q, frame, expressed_in=expressed_in)
    J_rate = robot.jacobian_derivative(q, v, frame, expressed_in=expressed_in)
    V = robot.velocity(q, v, frame, expressed_in=expressed_in)
    assert_equal(V, J @ v)
    expected = J @ a + J_rate @ v
    if expressed_in == "frame":  # the axes turn under the linear velocity
        expected[3:] += np.cross(V[:3], V[3:])
    scale = np.abs(J_rate @ v).max() + np.abs(V).max() ** 2
    assert_equal(robot.acceleration(q, v, a, frame, expressed_in=expressed_in), expected, scale=scale)


@law
@given(mechanisms(), seeds(), st.sampled_from([0.0, 1e-300, 1e-8, 1e-4, 1e-2, 1.0, np.pi - 1e-3, np.pi - 1e-6]))
def test_difference_inverts_integrate(robot, seed, angle):
    """Rotations from zero to nearly half a turn."""
    q, dv, _ = random_state(robot, np.random.default_rng(seed))
    for spec in robot.description.joints:
        if spec.joint.kind in ("Spherical", "Free"):
            start = robot.joint(spec.name).v_slice.start
            turn = dv[start : start + 3]
            dv[start : start + 3] = turn / np.linalg.norm(turn) * angle
        elif angle < 1.0:
            dv[robot.joint(spec.name).v_slice] *= angle
    # q and q + dv are rounded; near half a turn the axis of a rotation is known to 1/(pi - angle) of that
    tolerance = ROUNDING / max(np.pi - angle, 1e-7) if angle > 1 else ROUNDING
    assert_equal(robot.difference(q, robot.integrate(q, dv)), dv, tolerance, scale=np.abs(q).max(initial=0.0))


@law
@given(mechanisms(), seeds())
def test_integrate_inverts_difference(robot, seed):
    """Poses are compared: the two quaternions of a rotation are equal."""
    rng = np.random.default_rng(seed)
    (q0, _, _), (q1, _, _) = random_state(robot, rng), random_state(robot, rng)
    arrived = robot.integrate(q0, robot.difference(q0, q1))
    assert_equal(robot.pose(arrived, "tool"), robot.pose(q1, "tool"))
    assert_equal(robot.difference(arrived, q1), np.zeros(robot.nv), scale=np.abs(q1).max(initial=0.0))
    assert_equal(robot.difference(q0, q0), np.zeros(robot.nv))


@law
@given(mechanisms(), seeds())
def test_integrate_is_a_flow(robot, seed):
    q, dv, _ = random_state(robot, np.random.default_rng(seed))
    assert_equal(robot.integrate(robot.integrate(q, 0.3 * dv), 0.7 * dv), robot.integrate(q, dv))


# ---- frames do not matter --------------------------------------------------------------------------------------------


@law
@given(mechanisms(friction=True, armature=True), seeds(), ANYWHERE)
def test_nothing_changes_when_all_is_moved(robot, seed, at):
    """The whole mechanism moved, with rotated gravity, has the same results."""
    rng = np.random.default_rng(seed)
    T, d = random_transform(rng), robot.description
    joints = [dataclasses.replace(j, at_parent=T @ j.at_parent) if j.parent == "ground" else j for j in d.joints]
    moved = sarrus.Mechanism(
        dataclasses.replace(d, gravity=tuple((T.rotation @ d.gravity).tolist()), joints=tuple(joints))
    )
    q, v, a = random_state(robot, rng, at)
    tau = robot.inverse_dynamics(q, v, a)
    assert_equal(moved.inverse_dynamics(q, v, a), tau)
    assert_equal(moved.mass_matrix(q), robot.mass_matrix(q))
    assert_equal(moved.kinetic_energy(q, v), robot.kinetic_energy(q, v))
    assert_equal(moved.pose(q, "tool"), T.matrix @ robot.pose(q, "tool"))
    assert_equal(moved.acceleration(q, v, a, "tool"), robot.acceleration(q, v, a, "tool"))


@law
@given(mechanisms(friction=True, armature=True), seeds(), ANYWHERE)
def test_nothing_changes_with_the_frames_of_the_bodies(robot, seed, at):
    """Every body described in other axes about another origin has the same results."""
    rng = np.random.default_rng(seed)
    d = robot.description
    X = {body.name: random_transform(rng) for body in d.bodies} | {
        "ground": sarrus.Transform()
    }  # the old frame in the new one
    other = dataclasses.replace(
        d,
        bodies=tuple(dataclasses.replace(b, inertia=b.inertia.transformed(X[b.name])) for b in d.bodies),
        joints=tuple(
            dataclasses.replace(j, at_parent=X[j.parent] @ j.at_parent, at_child=X[j.child] @ j.at_child)
            for j in d.joints
        ),
        frames=tuple(dataclasses.replace(f, placement=X[f.body] @ f.placement) for f in d.frames),
    )
    other = sarrus.Mechanism(other)
    q, v, a = random_state(robot, rng, at)
    wrenches = {"tool": rng.normal(size=6)}
    assert_equal(other.inverse_dynamics(q, v, a, wrenches=wrenches), robot.inverse_dynamics(q, v, a, wrenches=wrenches))
    assert_equal(other.acceleration(q, v, a, "frame1"), robot.acceleration(q, v, a, "frame1"))
    assert_equal(other.momentum(q, v), robot.momentum(q, v))


@law
@given(mechanisms(friction=True), seeds(), ANYWHERE)
def test_a_moving_base_is_a_free_joint(robot, seed, at):
    """The same tree on a base that moves like the ground."""
    rng = np.random.default_rng(seed)
    d = robot.description
    builder = sarrus.Builder(gravity=d.gravity)
    builder.add_body("carriage", sarrus.Inertia(1.0, (0, 0, 0), np.eye(3)))
    builder.add_joint("free", sarrus.Free(), "ground", "carriage")
    for body in d.bodies:
        builder.add_body(body.name, body.inertia)
    for j in d.joints:
        ends = ("carriage" if end == "ground" else end for end in (j.parent, j.child))
        builder.add_joint(j.name, j.joint, *ends, at_parent=j.at_parent, at_child=j.at_child)
    for f in d.frames:
        builder.add_frame(f.name, f.body, f.placement)
    carried = builder.build()
    q, v, a = random_state(robot, rng, at)
    V, A = rng.normal(size=(2, 6))
    rates = np.concatenate([A[:3], A[3:] - np.cross(V[:3], V[3:])])  # of the components of V in the carriage's axes
    state = np.concatenate([[0, 0, 0, 1, 0, 0, 0], q]), np.concatenate([V, v]), np.concatenate([rates, a])
    wrenches = {"tool": rng.normal(size=6)}
    ours = robot.inverse_dynamics(q, v, a, wrenches=wrenches, base_velocity=V, base_acceleration=A)
    assert_equal(ours, carried.inverse_dynamics(*state, wrenches=wrenches)[6:])
    reactions = sarrus.formulations.reactions(robot, q, v, a, wrenches=wrenches, base_velocity=V, base_acceleration=A)
    expected = sarrus.formulations.reactions(carried, *state, wrenches=wrenches)
    for name, f in reactions.items():
        assert_equal(f, expected[name])


# ---- forces between bodies -------------------------------------------------------------------------------------------


@law
@given(mechanisms(joints=(*ALL_JOINTS, "fixed")), seeds(), ANYWHERE)
def test_reactions_and_weights_change_the_momentum(robot, seed, at):
    """For the free bodies together, the ground's joints, gravity and wrenches are the only external forces."""
    rng = np.random.default_rng(seed)
    q, v, a = slow_state(robot, rng.integers(2**32), at)
    wrenches = {"tool": rng.normal(size=6), "frame1": rng.normal(size=6)}
    reactions = sarrus.formulations.reactions(robot, q, v, a, wrenches=wrenches)
    weight = robot.mass * robot.gravity
    total = np.concatenate([np.cross(robot.center_of_mass(q), weight), weight])
    for name, wrench in wrenches.items():
        total += wrench_at(wrench, robot.pose(q, name))
    for spec in robot.description.joints:
        if spec.parent == "ground":
            total += wrench_at(reactions[spec.name], robot.pose(q, spec.child) @ spec.at_child.matrix)
    qs, vs = path(robot, q, v), v + TIMES[:, None] * a
    assert_equal(
        total, rate(robot.momentum(qs, vs)), DIFFERENCING, scale=max(np.abs(f).max() for f in reactions.values())
    )


@law
@given(mechanisms(), seeds(), PLACE)
def test_joint_bases_are_dual(robot, seed, at):
    """van der Merwe 2.12 to 2.15; and 2.16: the forces along and across the joint's motion add up to its reaction."""
    q, v, a = random_state(robot, np.random.default_rng(seed), at)
    tau, reactions = robot.inverse_dynamics(q, v, a), sarrus.formulations.reactions(robot, q, v, a)
    held = sarrus.formulations.constraint_forces(robot, q, v, a)
    for name in robot.joints:
        joint = robot.joint(name)
        phi, phi_c, psi, psi_c = sarrus.formulations.joint_bases(robot, q, name)
        motion, dual = np.hstack([phi, phi_c]), np.hstack([psi, psi_c])
        assert phi.shape == (6, joint.nv)
        assert phi_c.shape == (6, 6 - joint.nv)
        assert_equal(motion.T @ dual, np.eye(6), ROUNDING * condition(motion))
        f = psi @ tau[joint.v_slice] + psi_c @ held[name]
        assert_equal(f, reactions[name], ROUNDING * condition(motion), scale=np.abs(tau).max(initial=0.0))


@law
@given(mechanisms(), seeds(), st.sampled_from(["tool", "frame1", "body0"]))
def test_operational_space(robot, seed, frame):
    """5.51 and 5.58: accelerations of the joints, and of the frame, per wrench on the frame."""
    rng = np.random.default_rng(seed)
    q, v, tau = random_state(robot, rng)
    w = rng.normal(size=6)
    M, J, omega = robot.mass_matrix(q), robot.jacobian(q, frame), sarrus.formulations.omega(robot, q, frame)
    solving = 64 * EPS * condition(M)
    assert_equal(M @ omega, J.T, solving, scale=np.abs(J).max(initial=0.0))
    pushed = robot.forward_dynamics(q, v, tau, wrenches={frame: w})
    left = robot.forward_dynamics(q, v, tau)
    assert_equal(pushed - left, omega @ w, solving, scale=np.abs(left).max(initial=0.0))

    inverse = sarrus.formulations.operational_inertia_inverse(robot, q, frame)
    assert_equal(inverse, J @ omega, solving)
    assert_equal(inverse, inverse.T)
    R = np.kron(np.eye(2), robot.pose(q, frame)[:3, :3])
    assert_equal(
        sarrus.formulations.operational_inertia_inverse(robot, q, frame, expressed_in="world_aligned"),
        R @ inverse @ R.T,
        solving,
    )
    assert_equal(sarrus.formulations.omega(robot, q, frame, expressed_in="world_aligned"), omega @ R.T, solving)


@law
@given(mechanisms(floating=True), seeds())
def test_operational_inertia_is_the_inverse_of_its_inverse(robot, seed):
    q, _, _ = random_state(robot, np.random.default_rng(seed))
    inertia, inverse = (
        sarrus.formulations.operational_inertia(robot, q, "tool"),
        sarrus.formulations.operational_inertia_inverse(robot, q, "tool"),
    )
    assert_equal(inertia @ inverse, np.eye(6), 64 * EPS * condition(inverse))


@law
@given(mechanisms(), seeds(), ANYWHERE)
def test_inverse_dynamics_is_linear_in_the_inertias(robot, seed, at):
    """tau = Y pi, and the regressor does not depend on pi."""
    rng = np.random.default_rng(seed)
    q, v, a = random_state(robot, rng, at)
    Y = robot.regressor(q, v, a)
    others = tuple(dataclasses.replace(body, inertia=random_inertia(rng)) for body in robot.description.bodies)
    other = sarrus.Mechanism(dataclasses.replace(robot.description, bodies=others))
    assert_equal(other.regressor(q, v, a), Y)
    for mechanism in robot, other:
        pi = np.concatenate([body.inertia.parameters for body in mechanism.description.bodies])
        assert_equal(Y @ pi, mechanism.inverse_dynamics(q, v, a), scale=np.abs(Y).max(initial=0.0))


# ---- one body --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL_JOINTS)
@law
@given(seed=seeds(), at=ANYWHERE)
def test_a_joint_only_guides_a_body(kind, seed, at):
    """d'Alembert: tau is the projection of the force for the same motion of the free body. Also for singular gimbals."""
    rng = np.random.default_rng(seed)
    robot = random_mechanism(seed, bodies=1, joints=(kind,), offsets=False)
    builder = sarrus.Builder(gravity=robot.gravity)
    builder.add_body("body0", robot.description.bodies[0].inertia)
    builder.add_joint("free", sarrus.Free(), "ground", "body0")
    free = builder.build()

    q, v, a = random_state(robot, rng, at)
    T = sarrus.Transform.from_matrix(robot.pose(q, "body0"))
    V, A = robot.velocity(q, v, "body0"), robot.acceleration(q, v, a, "body0")
    q_free = np.concatenate([sarrus.Rotation.from_matrix(T.rotation).quaternion, T.translation])
    wrench = free.inverse_dynamics(q_free, V, np.concatenate([A[:3], A[3:] - np.cross(V[:3], V[3:])]))
    tau = robot.inverse_dynamics(q, v, a)
    assert np.isfinite(tau).all()
    assert_equal(tau, robot.jacobian(q, "body0").T @ wrench, scale=np.abs(wrench).max())
