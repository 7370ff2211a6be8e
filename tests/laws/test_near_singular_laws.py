"""What is said of an answer near a singular position is what is true of it: against the exact accelerations of a flat parallelogram."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from benchmarks.loop_models import almost_flat
from benchmarks.near_singular import TOLD_APART, exact, off

EPS = np.finfo(np.float64).eps
STATES = 60
WITHIN = 100.0  # of the truth
# [rad]: the regularisation's square root is 4.5e-8, and nearer than that of rounding times it the row that vanishes is rounding
FLAT = 1e-12


@pytest.fixture(scope="module", params=[1, 3])
def ladder(request):
    return sarrus.mechanisms.four_bar_ladder(request.param)


def states(robot, angle):
    return (np.array(x) for x in almost_flat(robot, angle, STATES))


def rms(x):
    return np.sqrt(np.mean(np.square(x)))


@pytest.mark.parametrize("angle", [*10.0 ** np.arange(-3.0, -16.1, -0.5), 0.0])
def test_the_error_is_what_it_is_said_to_be(ladder, angle):
    q, v, tau = states(ladder, angle)
    a, loops, status = ladder.forward_dynamics(q, v, tau, return_reactions=True, return_status=True)
    assert_array_equal(ladder.forward_dynamics(q, v, tau, return_status=True)[1] == 0, status == 0)
    answered = status == 0
    assert np.isin(status, [0, 2]).all()
    assert np.isnan(loops.error[~answered]).all()
    assert np.isnan(loops.residual[~answered]).all()
    assert (loops.residual[answered] < 1e-11).all()
    if angle > TOLD_APART or angle < FLAT:
        assert answered.all()
    if not answered.any():
        return
    error = off(a, exact(ladder, angle, q, v, tau))[answered]
    assert (error < WITHIN * loops.error[answered] + EPS).all(), (error, loops.error)
    assert rms(loops.error[answered]) < WITHIN * (rms(error) + EPS)


def test_the_error_of_regular_positions_is_rounding():
    for name in ("four_bar", "delta", "stewart", "bennett", "three_rrr"):
        robot = getattr(sarrus.mechanisms, name)()
        q = robot.assemble()
        v = robot.project_velocity(q, np.ones(robot.nv))
        _, loops = robot.forward_dynamics(q, v, np.zeros(robot.nv), return_reactions=True)
        assert 1e-18 < loops.error < 1e-12


def test_one_state_and_many_say_the_same(ladder):
    q, v, tau = states(ladder, 1e-5)
    many = ladder.forward_dynamics(q, v, tau, return_reactions=True)[1]
    one = [ladder.forward_dynamics(*x, return_reactions=True)[1].error for x in zip(q, v, tau, strict=True)]
    assert_allclose(np.log10(many.error), np.log10(one), atol=1.0)


def test_where_rounding_decides_which_velocities_are_allowed(ladder):
    """An error that says so, and not that constraints contradict one another: rest satisfies them."""
    q, v, _ = (x[0] for x in states(ladder, 1e-8))
    with pytest.raises(sarrus.StateError, match="so near to a singular one that rounding decides"):
        ladder.project_velocity(q, v + np.arange(ladder.nv))
