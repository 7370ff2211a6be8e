"""What is said of an answer near a singular position is what is true of it: against the exact accelerations of a flat parallelogram.

Its two branches meet there. On each all rods turn by the same angle s, up or down, for ever, so q = turn + s u, v = s' u and a = s'' u with a
constant u, and Lagrange's equation of the one freedom is s'' = u (tau - h) / (u M u), in which nothing cancels, however flat it is. Where it
is flat, two freedoms are left, and the acceleration is that of the pseudo-inverse.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from benchmarks.loop_models import almost_flat

EPS = np.finfo(np.float64).eps
STATES = 60
WITHIN = 100.0  # of the truth
# [rad]: the regularisation's square root is 4.5e-8, and nearer than that of rounding times it the row that vanishes is rounding
TOLD_APART, FLAT = 5e-8, 1e-12


@pytest.fixture(scope="module", params=[1, 3])
def ladder(request):
    return sarrus.mechanisms.four_bar_ladder(request.param)


def states(robot, angle):
    return (np.array(x) for x in almost_flat(robot, angle, STATES))


def on_the_branch(robot, q, v, tau):
    u = np.zeros(robot.nv)
    for name in robot.joints:
        u[robot.joint(name).v_slice] = 1 if robot.joint(name).parent == "ground" else -1
    return ((tau - robot.bias_forces(q, v)) @ u / (robot.mass_matrix(q) @ u @ u))[:, None] * u


def where_flat(robot, q, v, tau):
    """In the null space of J, whose entries that vanish there are set to zero."""
    J, M, f = robot.constraint_jacobian(q), robot.mass_matrix(q), tau - robot.bias_forces(q, v)
    out = np.empty_like(v)
    for k, (Jk, gamma) in enumerate(zip(np.where(np.abs(J) < 1e-7, 0.0, J), robot.constraint_bias(q, v), strict=True)):
        _, s, V = np.linalg.svd(Jk)
        free = V[(s > 1e-6).sum() :].T
        a = np.linalg.pinv(Jk, rcond=1e-6) @ gamma
        out[k] = a + free @ np.linalg.solve(free.T @ M[k] @ free, free.T @ (f[k] - M[k] @ a))
    return out


def off(a, truth):
    return np.linalg.norm(a - truth, axis=1) / np.linalg.norm(truth, axis=1)


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
    truth = (on_the_branch if angle > TOLD_APART / 2 else where_flat)(ladder, q, v, tau)
    error = off(a, truth)[answered]
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
