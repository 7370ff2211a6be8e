"""Trajectories for tests, and their comparison."""

import numpy as np
from numpy.testing import assert_array_equal

import sarrus
from sarrus.simulation.trajectory import Trajectory


def fourbar_run(n=201, **given):
    """Return a trajectory of a four-bar whose crank makes one even turn per second."""
    robot = sarrus.mechanisms.four_bar()
    t = np.linspace(0.0, 1.0, n)
    q = robot.follow({"motor": 0.5 + 2.0 * np.pi * t}, robot.assemble(fixed={"motor": 0.5}))
    v = np.array([_crank(robot, row) for row in q])
    return Trajectory(robot, t, q, v, **{"efforts": np.zeros((n, 3))} | given)


def _crank(robot, q):
    """Return the constraint-consistent velocity with the crank at 2 pi rad/s."""
    free = robot.project_velocity(q, [1.0, 0.0, 0.0])
    return free / free[0] * 2 * np.pi


def smooth_motion(robot, rng):
    """Return q(t) and v(t) of a motion that turns about several axes; v by differences, with an error of 1e-11."""
    start = robot.random(rng)
    one, two = rng.uniform(-0.5, 0.5, (2, robot.nv))

    def q(t):
        t = np.asarray(t)[..., None]
        return robot.integrate(
            robot.integrate(np.broadcast_to(start, (*t.shape[:-1], robot.nq)), np.sin(t) * one), np.cos(2 * t) * two
        )

    def v(t, h=1e-3):
        t = np.asarray(t)
        near, far = (robot.difference(q(t - k * h), q(t + k * h)) / (2 * k * h) for k in (1, 2))
        return (4 * near - far) / 3

    return q, v


def sampled(robot, motion, n, **given):
    t = np.linspace(0.0, 2.0, n)
    return Trajectory(robot, t, motion[0](t), motion[1](t), **given)


def same(a, b):
    for name in ("t", "q", "v", "tau", "a"):
        assert_array_equal(getattr(a, name), getattr(b, name))


def everything_same(a, b):
    same(a, b)
    assert a.mechanism == b.mechanism
    assert_array_equal(a.internal_state, b.internal_state)
    assert (a.status, a.statistics) == (b.status, b.statistics)
    assert list(a.events) == list(b.events)
    for name in a.events:
        assert_array_equal(a.events[name], b.events[name])
