"""Comparison of every algorithm that Pinocchio also has, over random trees with all joint types; requires the extra [bench]."""

import numpy as np
import pytest
from hypothesis import assume, given

import sarrus
from tests.core.test_against_oracle import (
    OPERATIONS,
    REVERSIBLE,
    SOLVING,
    assert_agrees,
    draw_state,
    solving_tolerance,
)
from tests.effort import examples
from tests.oracles import Dense
from tests.random_mechanisms import PLACES, mechanisms, random_mechanism, random_state, seeds

pytest.importorskip("pinocchio")
from tests.oracles.pinocchio_model import Pinocchio

ABSENT = {"integrate", "regressor", "inverse_dynamics, carried", "reactions, carried"}
OF_MASSES = {name for name in OPERATIONS if name.startswith(("cent", "momentum", "kinetic", "potential"))}


def assert_all_agree(robot, state, singular=False):
    theirs = Pinocchio(robot.description)
    left_out = ABSENT | OF_MASSES if theirs.welded else ABSENT
    for name, ask in OPERATIONS.items():
        if name not in left_out:
            expected = ask(theirs, state)
            ours = ask(robot, state)
            if name == "reactions":
                ours = {joint: ours[joint] for joint in expected}
            assert_agrees(ours, expected)
    if not singular:
        tolerance = solving_tolerance(Dense(robot.description), [state])
        for ask in SOLVING.values():
            assert_agrees(ask(robot, state), ask(theirs, state), tolerance)


def moves(robot):
    """Return true if any joint moves; if none does, Pinocchio returns arrays of another shape."""
    return robot.nv > 0


@pytest.mark.parametrize("at", [*PLACES, "singular"])
@examples(25)
@given(robot=mechanisms(friction=True, armature=True).filter(moves), seed=seeds())
def test_agrees(at, robot, seed):
    assert_all_agree(robot, draw_state(robot, np.random.default_rng(seed), at), at == "singular")


@examples(25)
@given(robot=mechanisms(joints=REVERSIBLE, floating=False, backward=0.5).filter(moves), seed=seeds())
def test_agrees_where_joints_point_to_the_ground(robot, seed):
    """Reversed joints, with reactions: Pinocchio has the joint in the opposite direction."""
    assert_all_agree(robot, draw_state(robot, np.random.default_rng(seed)))


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize(("bodies", "branching"), [(25, 0.3), (60, 0.1), (60, 0.6)])
def test_agrees_on_large_trees(bodies, branching, floating):
    robot = random_mechanism(
        bodies, bodies=bodies, branching=branching, floating=floating, friction=True, armature=True
    )
    assert_all_agree(robot, draw_state(robot, np.random.default_rng(bodies)))


@examples(25)
@given(robot=mechanisms().filter(moves), seed=seeds())
def test_difference_agrees(robot, seed):
    """Differences of less than half a turn: Pinocchio stores cosine and sine of a planar joint's angle, sarrus the angle."""
    theirs = Pinocchio(robot.description)
    q0, dv, _ = random_state(robot, np.random.default_rng(seed))
    q1 = robot.integrate(q0, np.clip(dv, -1, 1))
    dv = robot.difference(q0, q1)
    assert_agrees(dv, theirs.difference(q0, q1))


@examples(25)
@given(robot=mechanisms(floating=True).filter(moves), seed=seeds())
def test_generalized_jacobian_agrees(robot, seed):
    """J* against the result from Pinocchio's centroidal map and Jacobians."""
    theirs = Pinocchio(robot.description)
    assume(not robot._tie)
    q, v, _ = random_state(robot, np.random.default_rng(seed))
    A, J = theirs.centroidal_momentum_matrix(q), theirs.jacobian(q, "tool")
    base = next(j.v_slice for j in map(robot.joint, robot.joints) if j.parent == "ground")
    joints = np.delete(np.arange(robot.nv), base)
    J_star = J[:, joints] - J[:, base] @ np.linalg.solve(A[:, base], A[:, joints])
    assert_agrees(sarrus.floating.generalized_jacobian(robot, q, "tool"), J_star)
    assert_agrees(theirs.momentum(q, sarrus.floating.momentum_velocity(robot, q, v, np.arange(6.0))), np.arange(6.0))
