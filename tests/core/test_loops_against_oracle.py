"""Comparison of closed chains with the slow reference: random mechanisms with every constraint, redundant and nearly singular ones."""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sarrus
from tests.core.test_against_oracle import assert_agrees
from tests.effort import examples
from tests.oracles import Closed
from tests.oracles.reactions import Equilibrium
from tests.random_closed import ALL_CONSTRAINTS, State, closed_mechanisms, random_closed
from tests.random_mechanisms import seeds

EPS = np.finfo(float).eps
# the issue's
RELATIVE = 1e-10
# constraints and their rates, of bodies that a few joints carry
ROUNDING = 1e-12
# multipliers of least norm come by steps that each leave a share of what is not yet there; the last is below this
LEAST = 1e-8

# rows whose basis is not orthonormal: a force along a screw, or through the centre of a gimbal's turns
SKEWED = ("Helical", "Gimbal")
law = examples(12)
ANY_CLOSED = closed_mechanisms(friction=st.booleans(), armature=st.booleans(), springs=st.booleans())


def stack(states):
    return State(*map(np.array, zip(*states, strict=True)))


def basis_change(robot, oracle, name, J, J_expected):
    """Return T: the library's rows of a constraint are T times the independent rows of the oracle."""
    rows = oracle.rows[name]
    assert robot.constraint(name).rows == rows
    return J[rows] @ np.linalg.pinv(J_expected[rows])


# ---- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL_CONSTRAINTS)
@examples(2)
@given(seed=seeds(), floating=st.booleans())
def test_rows(kind, seed, floating):
    """J, c, gamma and phi' are one linear map of the oracle's, for any basis of the rows; for most kinds it is a rotation."""
    closed = random_closed(seed, bodies=4, kinds=(kind,), floating=floating)
    robot, oracle, time = closed.robot, closed.oracle, closed.time
    assert robot.loop_joints == closed.closing
    assert robot.constraints == tuple(oracle.rows)
    assert robot.nc == oracle.nc

    states = closed.states(np.random.default_rng(seed), 2)
    batch = stack(states)
    many = (
        robot.constraint_jacobian(batch.q, time=batch.time),
        robot.constraint_velocity(batch.q, time=batch.time),
        robot.constraint_bias(batch.q, batch.v, time=batch.time),
        robot.constraint_residual(batch.q, time=batch.time),
    )
    for k, (q, v, _, _) in enumerate(states):
        J, c, gamma, phi = (x[k] for x in many)
        expected = oracle.constraint_rows(q, v, time)
        assert np.abs(phi).max(initial=0) < ROUNDING
        for name, rows in oracle.rows.items():
            T = basis_change(robot, oracle, name, J, expected[0])
            if not (name in oracle.loops and oracle.loops[name].joint.kind in SKEWED):
                assert_agrees(T @ T.T, np.eye(len(T)), ROUNDING)
            assert np.linalg.matrix_rank(T, tol=1e-3) == len(T)
            for ours, theirs in zip((J, c, gamma), expected, strict=True):
                assert_agrees(ours[rows], T @ theirs[rows], ROUNDING * np.linalg.cond(T) if len(T) else ROUNDING)


@pytest.mark.parametrize("kind", ["distance", "coupler", "prescribed motion"])
def test_open_loops(kind):
    """Residuals that are a length or a coordinate, with open loops."""
    for seed in range(5):
        closed = random_closed(seed, kinds=(kind,))
        q = closed.oracle.integrate(closed.q, 0.3 * np.ones(closed.oracle.nv))
        assert_agrees(
            closed.robot.constraint_residual(q, time=closed.time),
            closed.oracle.constraint_residual(q, time=closed.time),
            ROUNDING,
        )


# ---- motion ----------------------------------------------------------------------------------------------------------


@law
@given(closed=ANY_CLOSED, seed=seeds())
def test_forward_dynamics(closed, seed):
    """Single states, and all in one call with more states than lanes; redundant rows, and external wrenches."""
    rng = np.random.default_rng(seed)
    states = closed.states(rng, 3)
    states += [s._replace(tau=rng.normal(size=len(s.tau))) for s in states[:2]]
    wrenches = {"tool": rng.normal(size=(5, 6)), "frame1": rng.normal(size=(5, 6))}
    batch = stack(states)
    many = closed.robot.forward_dynamics(batch.q, batch.v, batch.tau, time=batch.time, wrenches=wrenches)
    for k, s in enumerate(states):
        pushed = {name: w[k] for name, w in wrenches.items()}
        expected = closed.oracle.forward_dynamics(s.q, s.v, s.tau, time=s.time, wrenches=pushed)
        assert_agrees(many[k], expected)
        assert_agrees(closed.robot.forward_dynamics(s.q, s.v, s.tau, time=s.time, wrenches=pushed), expected, RELATIVE)


@law
@given(closed=ANY_CLOSED)
def test_reactions(closed):
    """Reactions of least norm over all joints, and wrenches in the joints' own bases if they are unique."""
    q, v, tau, time = closed.state
    robot, oracle = closed.robot, closed.oracle
    a, reactions = robot.forward_dynamics(q, v, tau, time=time, return_reactions=True)
    assert_agrees(a, oracle.forward_dynamics(q, v, tau, time=time))
    assert set(reactions.wrenches) == set(robot.constraints)
    assert reactions.residual < ROUNDING

    J = robot.constraint_jacobian(q, time=time)
    carried = oracle.inverse_dynamics(q, v, a) - tau
    assert_agrees(J.T @ reactions.multipliers, carried, LEAST)
    loads = robot.joint_wrenches(q, v, a, multipliers=reactions.multipliers, actuated=robot.joints, time=time)
    at = Equilibrium(robot, q, time)
    x = at.coordinates(loads, reactions.multipliers)
    assert_agrees(x, at.least(x), LEAST)
    if np.linalg.matrix_rank(J, tol=1e-9) < robot.nc:
        return
    assert_agrees(reactions.multipliers, oracle.spaces(J)[2](carried), LEAST)
    if not any(spec.joint.kind in SKEWED for spec in oracle.loops.values()):
        _, _, wrenches = oracle.forward_dynamics(q, v, tau, time=time, return_reactions=True)
        for name, wrench in wrenches.items():
            assert_agrees(reactions.wrenches[name], wrench, LEAST)


@law
@given(closed=closed_mechanisms(copies=st.integers(1, 3)))
def test_redundant_copies_change_nothing(closed):
    q, v, tau, time = closed.state
    d = closed.description
    once = sarrus.Mechanism(
        dataclasses.replace(
            d,
            joints=tuple(spec for spec in d.joints if not spec.name.startswith("copy")),
            constraints=tuple(spec for spec in d.constraints if not spec.name.startswith("copy")),
        )
    )
    expected = once.forward_dynamics(q, v, tau, time=time)
    assert_agrees(closed.robot.forward_dynamics(q, v, tau, time=time), expected)


@law
# the copy of a tree joint at the ground: its rows are the rounding of two places, and no constraint
@example(closed=random_closed(100, bodies=3, loops=1, copies=1, branching=0.0, hints=False, armature=False))
@given(closed=closed_mechanisms(hints=False, armature=False))
def test_the_tree_does_not_matter(closed):
    """The choice of loop joints and of the direction of tree joints does not change the motion of the bodies."""
    robot, time = closed.robot, closed.time
    chosen = closed.in_other_tree(closed.description, robot.loop_joints)
    q, v, tau, _ = chosen.state
    assert_agrees(robot.constraint_residual(q, time=time), np.zeros(robot.nc), ROUNDING)
    a = robot.forward_dynamics(q, v, tau, time=time)
    assert_agrees(a, chosen.oracle.forward_dynamics(q, v, tau, time=time))
    expected = closed.oracle.forward_dynamics(closed.q, closed.v, closed.tau, time=time)
    for body in robot.bodies:
        assert_agrees(robot.pose(q, body), closed.oracle.pose(closed.q, body), ROUNDING)
        assert_agrees(robot.velocity(q, v, body), closed.oracle.velocity(closed.q, closed.v, body), ROUNDING)
        acceleration = closed.oracle.acceleration(closed.q, closed.v, expected, body)
        assert_agrees(robot.acceleration(q, v, a, body), acceleration, RELATIVE * (1 + np.abs(expected).max(initial=0)))


@law
@given(closed=ANY_CLOSED, seed=seeds())
def test_velocities(closed, seed):
    rng = np.random.default_rng(seed)
    q, _, _, time = closed.state
    v = rng.normal(size=closed.robot.nv)
    for metric in "mass", "euclidean":
        ours = closed.robot.project_velocity(q, v, metric=metric, time=time)
        assert_agrees(ours, closed.oracle.project_velocity(q, v, metric=metric, time=time))
    e = rng.uniform(0, 1)
    after, impulses = closed.robot.impact(q, v, restitution=e, time=time)
    expected, _ = closed.oracle.impact(q, v, restitution=e, time=time)
    assert_agrees(after, expected)
    jump = closed.oracle.mass_matrix(q) @ (after - v)
    assert_agrees(closed.robot.constraint_jacobian(q, time=time).T @ impulses, jump, LEAST)


@law
@given(closed=closed_mechanisms(), seed=seeds())
def test_actuator_efforts(closed, seed):
    """Motors in all joints, including loop joints: the efforts of least norm, also weighted."""
    rng = np.random.default_rng(seed)
    robot, oracle, (q, v, tau, time) = closed.robot, closed.oracle, closed.state
    a = oracle.forward_dynamics(q, v, tau, time=time)
    actuated = [name for name in oracle.joints if oracle.joints[name].joint.nv]
    S = oracle.actuation_matrix(q, actuated, time=time)
    weights = rng.uniform(0.5, 2, S.shape[1])
    u, left = oracle.actuator_efforts(q, v, a, actuated=actuated, time=time)
    assert left < RELATIVE
    assert_agrees(robot.actuator_efforts(q, v, a, actuated=actuated, time=time), u, LEAST)
    u, _ = oracle.actuator_efforts(q, v, a, actuated=actuated, weights=weights, time=time)
    ours = robot.actuator_efforts(q, v, a, actuated=actuated, distribution="weighted", weights=weights, time=time)
    assert_agrees(ours, u, LEAST)


# ---- near singular positions -----------------------------------------------------------------------------------------


def ladder(stages):
    """Return a ladder: each stage has two uprights of equal length. If flat, every stage may fold up or down, and J loses rank."""
    b = sarrus.Builder("ladder", gravity=(0, 0, -9.81))
    rod = sarrus.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0))
    for k in range(stages + 1):
        b.add_body(f"upright{k}", rod)
        b.add_joint(f"foot{k}", sarrus.Revolute("y"), "ground", f"upright{k}", at_parent=(k, 0, 0), actuated=True)
    for k in range(stages):
        b.add_body(f"rung{k}", rod)
        b.add_joint(f"left{k}", sarrus.Revolute("y"), f"upright{k}", f"rung{k}", at_parent=(1, 0, 0))
        b.add_joint(
            f"right{k}",
            sarrus.Revolute("y"),
            f"rung{k}",
            f"upright{k + 1}",
            at_parent=(1, 0, 0),
            at_child=(1, 0, 0),
            loop=True,
        )
    return b.build()


@pytest.mark.parametrize("angle", [1e-2, 1e-4, 1e-6, 0.0])
def test_near_the_flat_position(angle):
    """8 loops with three of five rows redundant, near a loss of rank, compared with extended precision."""
    stages = 4
    robot = ladder(stages)
    oracle = Closed(robot.description, closing=robot.loop_joints, dtype=np.longdouble, negligible=1e-10)
    q = np.zeros(robot.nq)
    for name in robot.joints:
        if robot.joint(name).closes_loop:
            continue
        q[robot.joint(name).q_slice] = -angle if name.startswith("foot") else angle
    rng = np.random.default_rng(1)
    v = np.array(oracle.project_velocity(q, rng.normal(size=robot.nv), metric="euclidean"), float)
    if angle == 0.0:
        v = np.zeros(robot.nv)  # moving, it could not stay on one branch
    tau = rng.normal(size=robot.nv)
    expected = np.array(oracle.forward_dynamics(q, v, tau), float)
    a, status = robot.forward_dynamics(q, v, tau, return_status=True)
    assert status == 0
    assert_agrees(a, expected, 1e-8)
