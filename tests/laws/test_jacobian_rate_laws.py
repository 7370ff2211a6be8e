"""Rates by dual numbers: of J along any motion, for all kinds of constraints, and their relation to gamma; rates of coordinates."""

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose

import sarrus
from tests.random_closed import ALL_CONSTRAINTS, closed_mechanisms, random_closed
from tests.random_mechanisms import random_mechanism, seeds

EPS = np.finfo(float).eps
# fourth-order differences with steps of 1e-3: truncation 1e-12 of the fifth derivative, rounding EPS/1e-3; both of short rods and wheels
DIFFERENCES = 1e-7


def rate_of(function, q, v, time, h=1e-3):
    """Return the rate of a mechanism's function of q and time by differences, along a motion with constant v."""
    at = [function(function.__self__.integrate(q, k * h * v), time=time + k * h) for k in (-2, -1, 1, 2)]
    return (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * h)


@settings(deadline=None)
@given(closed_mechanisms())
def test_it_is_the_rate_of_the_jacobian(closed):
    robot, (q, v, _, time) = closed.robot, closed.state
    v = v / max(1.0, np.abs(v).sum())
    found = robot.constraint_jacobian_derivative(q, v, time=time)
    expected = rate_of(robot.constraint_jacobian, q, v, time)
    assert_allclose(found, expected, rtol=0, atol=DIFFERENCES * max(1.0, np.abs(expected).max(initial=0.0)))


@pytest.mark.parametrize("kind", ALL_CONSTRAINTS)
def test_it_goes_with_the_bias_of_allowed_motions(kind):
    """J-dot v = c-dot - gamma if J v = c."""
    for seed in range(3):
        robot, (q, v, _, time) = (closed := random_closed(seed, kinds=(kind,), loops=2, bodies=4)).robot, closed.state
        v_dot = robot.constraint_jacobian_derivative(q, v, time=time) @ v
        c_dot = rate_of(robot.constraint_velocity, q, v, time)
        expected = c_dot - robot.constraint_bias(q, v, time=time)
        assert_allclose(v_dot, expected, rtol=0, atol=1e-6 * max(1.0, np.abs(expected).max(initial=0.0)))


def test_a_batch_is_its_states_and_a_bad_state_spoils_no_other():
    closed = random_closed(5, loops=3)
    robot, states = closed.robot, closed.states(np.random.default_rng(0), 9)
    q, v, _, time = map(np.array, zip(*states, strict=True))
    one_by_one = np.array([robot.constraint_jacobian_derivative(*s[:2], time=s.time) for s in states])
    batch = robot.constraint_jacobian_derivative(q, v, time=time, threads=3)
    assert_allclose(batch, one_by_one, rtol=0, atol=1e3 * EPS * np.abs(one_by_one).max())
    v[4, 0] = np.nan
    found, status = robot.constraint_jacobian_derivative(q, v, time=time, return_status=True)
    assert status.tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert np.isnan(found[4]).all() and np.array_equal(np.delete(found, 4, 0), np.delete(batch, 4, 0))
    with pytest.raises(sarrus.StateError, match=r"v\[0\] is nan"):
        robot.constraint_jacobian_derivative(q[4], v[4])


@pytest.mark.parametrize(
    "derivative", [None, lambda q, v: np.stack([np.cos(q[..., :1]) * v[..., :1], 0 * q[..., :1]], -1)]
)
def test_rows_of_the_users_own(derivative):
    """User-defined rows that are functions of q, with or without their derivative."""

    def rows(q):
        return np.stack([np.sin(q[..., :1]), 1 + 0 * q[..., :1]], -1)

    b = sarrus.Builder()
    b.add_body("cart", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_body("bob", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("slide", sarrus.Prismatic("x"), "ground", "cart")
    b.add_joint("hinge", sarrus.Revolute("y"), "cart", "bob")
    b.add_pfaffian("rows", rows, ["slide", "hinge"], derivative=derivative)
    robot = b.build()
    found = robot.constraint_jacobian_derivative([0.3, 0.1], [2.0, 1.0])
    assert_allclose(found, [[2.0 * np.cos(0.3), 0.0]], rtol=0, atol=1e-10)


@settings(deadline=None)
@given(seeds())
def test_rates_of_coordinates(seed):
    """q-dot and q-dot-dot, by differences along a motion with constant acceleration of the velocities."""
    robot, rng = random_mechanism(seed, bodies=5), np.random.default_rng(seed)
    q, v, a = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    t = 1e-3 * np.arange(-2, 3)[:, None]
    way = robot.integrate(q, t * v + t**2 / 2 * a)
    first, second = np.array([1, -8, 0, 8, -1]) / 12e-3, np.array([-1, 16, -30, 16, -1]) / 12e-6
    assert_allclose(robot._coordinate_rate(q, v), first @ way, rtol=0, atol=1e-8)
    assert_allclose(robot._coordinate_acceleration(q, v, a), second @ way, rtol=0, atol=1e-6)
