"""Joints with dampers or springs faster than the steps: "auto" agrees with tiny steps, and other methods raise errors with the cause."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus


def light_joint(ratio, what, dt):
    """Return a body with a light one on a hinge whose damping or stiffness has a rate of `ratio` per step."""
    inertia, rate = 1e-5, ratio / dt
    number = rate * inertia if what == "damping" else rate**2 * inertia
    b = sarrus.Builder("imu")
    b.add_body("body", sarrus.Inertia.box(1.0, (0.2, 0.2, 0.1)))
    b.add_body("imu", sarrus.Inertia(0.15, (0, 0, 0), np.diag([inertia, 2e-5, 2e-5])))
    b.add_joint("float", sarrus.Free(), "ground", "body")
    b.add_joint("imu_joint", sarrus.Revolute("x", **{what: number}), "body", "imu")
    return b.build()


def four_bar(closing, **own):
    """Return a four-bar with a light rocker, one of whose pins has a damper; that pin is the loop joint, or carries the rocker."""
    b = sarrus.Builder("four-bar")
    for name, length, mass in (("a", 0.4, 1.0), ("b", 1.1, 1.0), ("c", 0.9, 1e-3)):
        b.add_body(name, sarrus.Inertia.rod(mass, (0, 0, 0), (length, 0, 0), 0.01))
    b.add_joint("m", sarrus.Revolute("y"), "ground", "a")
    b.add_joint("p1", sarrus.Revolute("y"), "a", "b", at_parent=(0.4, 0, 0))
    b.add_joint("p", sarrus.Revolute("y"), "ground", "c", at_parent=(1.0, 0, 0), loop=closing == "p")
    b.add_joint(
        "p2", sarrus.Revolute("y", **own), "b", "c", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0), loop=closing == "p2"
    )
    return b.build()


@pytest.mark.parametrize("ratio", [2.9, 30.0, 1000.0])
def test_damping_of_a_light_joint(ratio):
    """The joint stops within a step, and the coupled rotation conserves total momentum."""
    dt = 1e-3
    robot = light_joint(ratio, "damping", dt)
    run = sarrus.simulate(robot, robot.neutral(), np.ones(7), 0.5, dt=dt)
    assert run.statistics["method"] == "implicit_midpoint"
    assert abs(run.q[-1, -1]) < 2 * dt  # 1 rad/s for no more than a step or two
    assert np.abs(run.v[5:, -1]).max() < 1e-3
    finer = sarrus.simulate(robot, robot.neutral(), np.ones(7), 0.5, method="rk4", dt=dt / ratio)
    assert_allclose(run.q[-1, :7], finer.q[-1, :7], atol=1e-4)
    with pytest.raises(sarrus.IntegrationError, match=r"damping .* of joint 'imu_joint' .*rate.*implicit_midpoint"):
        sarrus.simulate(robot, robot.neutral(), np.ones(7), 3.0, method="rk4", dt=dt)


def test_damping_beyond_all_differences():
    """iCub's joints: almost no inertia, and a damper. Finite differences of a step have no correct digits."""
    robot = light_joint(1e8, "damping", 1e-3)
    run = sarrus.simulate(robot, robot.neutral(), np.ones(7), 0.1, method="implicit_midpoint")
    assert np.abs(run.v[5:, -1]).max() < 1e-9


@pytest.mark.parametrize("ratio", [5.0, 100.0])
def test_stiffness_of_a_light_joint_keeps_its_energy(ratio):
    dt = 1e-3
    robot = light_joint(ratio, "stiffness", dt)
    run = sarrus.simulate(robot, robot.neutral(), np.ones(7), 0.5, dt=dt)
    assert run.statistics["method"] == "implicit_midpoint"
    assert np.abs(run.energy - run.energy[0]).max() < 1e-3 * run.kinetic_energy.max()


@pytest.mark.parametrize("closing", ["p", "p2"])
def test_damping_in_a_loop(closing):
    robot = four_bar(closing, damping=0.5)
    q = robot.assemble(fixed={"m": 0.5}, tolerance=1e-13)
    v = robot.complete_velocity(q, {"m": 6.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = sarrus.simulate(robot, q, v, 0.3, dt=2e-3)
    finer = sarrus.simulate(robot, q, v, 0.3, method="rk4", dt=1e-4)
    assert_allclose(run.q[-1], finer.q[-1], atol=1e-3)


def test_runs_side_by_side_and_slow_joints():
    """A single fast run of a sweep selects the method; for a joint that steps resolve, rk4 is used."""
    robot = light_joint(100.0, "damping", 1e-3)
    q = np.stack([robot.neutral()] * 3)
    runs = sarrus.simulate_many(robot, q, np.ones((3, 7)), 0.1)
    assert_allclose(runs.v[:, 5:, -1], 0.0, atol=1e-3)
    slow = light_joint(0.5, "damping", 1e-3)
    assert sarrus.simulate(slow, slow.neutral(), np.ones(7), 0.01).statistics["method"] == "rk4"
