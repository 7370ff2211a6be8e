"""SpaceDyn's four applications (3.8): the examples, compared with momentum, energy and linear theory."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    """Import an example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def test_reactionless_motion_leaves_satellite_and_paddles_alone(example):
    """Momentum stays zero; without changes of attitude and height nothing bends the paddles."""
    found = example("free_flyer").main()
    assert found["turn, straight"] > 0.03 and found["swing, straight"] > 0.1
    assert found["turn, reactionless"] < 1e-6 and found["swing, reactionless"] < 1e-5
    # of steps of 5 ms, in N m s of a satellite of 3 t; splines have jumps in what rk4's error is of
    assert found["momentum, straight"] < 1e-8 and found["momentum, reactionless"] < 1e-4


def test_paddles_swing_at_their_own_frequency(example):
    """After the motion the controllers hold the arm, and the paddles swing at the frequency of the linear equations."""
    module = example("free_flyer")
    robot = sarrus.mechanisms.free_flyer()
    home = robot.assemble()[7:13]
    ends = home + module.TRAVEL
    run = module.driven([sarrus.control.rest_to_rest(x, y, 5.0) for x, y in zip(home, ends, strict=True)], 30.0)
    held = run.mechanism.to_builder()
    for k in range(6):
        held.remove_constraint(f"law{k + 1}")
        held.lock(f"joint{k + 1}", at=ends[k])
    held = held.build()
    rates = held.linearize(np.delete(run.q[-1], np.s_[7:13]), np.zeros(held.nv)).modes().eigenvalues
    after = run.t > 6.0
    swings = np.exp(np.outer(run.t[after] - 6.0, rates[rates.imag > 0.1]))
    shapes = np.concatenate([swings.real, swings.imag], axis=1)
    for panel in ("left1", "left3", "right1", "right2"):
        bend = run.joint(f"{panel} hinge")[after, 0]
        off = bend - shapes @ np.linalg.lstsq(shapes, bend, rcond=None)[0]
        assert np.abs(off).max() < 5e-3 * np.abs(bend).max(), panel


def test_held_joints_do_no_work(example):
    """The long arm swings, and only its own damping dissipates energy, up to the error of steps of 10 ms."""
    run = example("macro_micro_arm").swing(0.0, 3.0)
    assert np.abs(run.q[:, 3:] - run.q[0, 3:]).max() < 1e-9
    damping = run.mechanism.joint("yaw").type.damping[0]
    loss = damping * (run.v[:, :3] ** 2).sum(axis=1)
    lost = ((loss[1:] + loss[:-1]) / 2 * np.diff(run.t)).sum()
    assert lost > 0.02 * run.energy[0]
    assert_allclose(run.energy[0] - run.energy[-1], lost, rtol=2e-3)


def test_small_arm_damps_the_long_one(example):
    """Damping is at least as fast as the slowest rate of the linear equations, and a hundred times as fast as without control."""
    found = example("macro_micro_arm").main()
    assert found["rate, damped"] > 20 * found["rate, held"]
    assert found["left, held"] > 0.7
    assert found["left, damped"] < np.exp(-found["rate, damped"] * 16.0)
    assert found["greatest joint angle"] < 0.3


def test_touch_down_impulse_is_the_momentum_gained(example):
    """The time integral of the ground's force equals the change of momentum: linear, and angular about the world's origin."""
    module = example("touch_down")
    run = module.fall(4.0)
    robot, force = run.mechanism, module.ground_force(run)
    h = np.diff(run.t)[:, None]
    impulse = ((force[1:] + force[:-1]) / 2 * h).sum(axis=0)
    gained = run.momentum[-1, 3:] - run.momentum[0, 3:] - robot.mass * robot.gravity * run.t[-1]
    assert gained[2] > 50.0
    assert_allclose(impulse, gained, atol=1e-2)  # of trapezia over the first touch
    # the moment of the wrench on the base about its frame, and of the force there, about the origin
    frame = run.frame("spacecraft")
    moment = np.einsum("nij,nj->ni", frame[:, :3, :3], run.tau[:, :3]) + np.cross(frame[:, :3, 3], force)
    weight = np.cross(robot.center_of_mass(run.q), robot.mass * robot.gravity)
    turned = ((moment[1:] + moment[:-1] + weight[1:] + weight[:-1]) / 2 * h).sum(axis=0)
    assert_allclose(turned, run.momentum[-1, :3] - run.momentum[0, :3], atol=1e-2)
    # it leaves, slower than it came: contact and dampers take energy
    assert 0.0 < rise_at_the_end(run) < module.DESCENT
    assert run.energy[-1] < run.energy[0]
    assert force[run.t > 3.0].max() == 0.0


def rise_at_the_end(run):
    return np.gradient(run.mechanism.center_of_mass(run.q)[:, 2], run.t)[-1]


def test_rover_climbs_the_step(example):
    """Both sides are up at the end, and the gained energy is weight times height."""
    module = example("rover")
    run = module.drive(7.0)
    robot = run.mechanism
    assert run.loop_error.max() < 1e-10
    rise = robot.center_of_mass(run.q[-1])[2] - robot.center_of_mass(run.q[200])[2]
    assert rise == pytest.approx(module.STEP, abs=2e-3)
    gain = run.potential_energy[-1] - run.potential_energy[200]
    assert_allclose(gain, robot.mass * 9.81 * rise, rtol=1e-9)
    # wheels stay on the ground of their side, whatever is under the others
    for contact in module.contacts(robot):
        place = run.frame(contact.frame)[:, :3, 3]
        s = np.linspace(-0.1, 0.1, 201)
        ground = place[::50, :1] + s
        near = np.hypot(s, contact.height(ground) - place[::50, 2:]).min(axis=1)
        assert np.abs(near - contact.radius).max() < 5e-3, contact.frame


def test_rolling_rover_keeps_its_energy():
    robot = sarrus.mechanisms.rover(rolling=True)
    q = robot.assemble()
    v = robot.complete_velocity(q, {robot.actuated[0]: 3.0})
    run = sarrus.simulate(robot, q, v, 1.0)
    assert_allclose(run.q[-1, 4:7] - q[4:7], [3.0 * 0.065, 0.0, 0.0], atol=1e-10)
    assert_allclose(run.energy, run.energy[0], rtol=1e-10)
