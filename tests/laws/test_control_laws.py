"""Model-based controllers on trees and on loops: decay of errors, bounded energy, efforts at rest."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus.control import PID, ComputedTorque, GravityCompensation, PDPlus, SampleAndHold
from tests.small_mechanisms import double_pendulum

LOOPS = {
    "four_bar": ("motor",),
    "five_bar": ("left_motor", "right_motor"),
    "three_rrr": ("base1", "base2"),  # of three motors
    "delta": ("motor1", "motor2", "motor3"),
    "stewart": ("leg1", "leg2", "leg3", "leg4", "leg5", "leg6"),
}


def start(name):
    """Return a mechanism at its assembled configuration, and moving targets that begin nearby."""
    robot = getattr(sarrus.mechanisms, name)()
    q = robot.assemble()
    at = {joint: float(q[robot.joint(joint).q_slice][0]) for joint in LOOPS[name]}
    size = 0.03 if name in ("stewart", "three_rrr") else 0.2
    targets = {
        joint: sarrus.laws.harmonic(size, rate=3.0 + k, offset=x + 0.3 * size)
        for k, (joint, x) in enumerate(at.items())
    }
    return robot, q, targets


def tracked(robot, run, targets):
    return np.stack([run.joint(name)[:, 0] - law(run.t) for name, law in targets.items()], axis=1)


@pytest.mark.parametrize("name", LOOPS)
def test_computed_torque_on_loops(name):
    """Errors of the independent coordinates decay as critically damped: (e0 (1 + w t) + e0' t) exp(-w t) with kp = w^2, kd = 2 w."""
    robot, q, targets = start(name)
    w = 10.0 + np.arange(len(targets))
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.3, ComputedTorque(targets, w**2, 2 * w))
    e = tracked(robot, run, targets)
    rates = -np.array([law.derivatives(0.0)[1] for law in targets.values()])
    t = run.t[:, None]
    assert_allclose(e, (e[0] * (1.0 + w * t) + rates * t) * np.exp(-w * t), atol=2e-8)
    assert run.loop_error.max() < 1e-10


@pytest.mark.parametrize("name", ["five_bar", "delta"])
def test_computed_torque_on_loops_is_what_its_parts_make(name):
    """The torques equal those from complete_acceleration() and actuator_efforts()."""
    robot, q, targets = start(name)
    joints = list(targets)
    S = robot.actuation_matrix(q, actuated=robot.actuated)

    def law(t, q, v):
        given = {}
        for joint, target in targets.items():
            g, rate, second = target.derivatives(t)
            at = robot.joint(joint)
            given[joint] = second + 20.0 * (rate - v[at.v_slice][0]) + 100.0 * (g - q[at.q_slice][0])
        return S @ robot.actuator_efforts(q, v, robot.complete_acceleration(q, v, given), check=False)

    native = ComputedTorque(targets, 100.0, 20.0)
    a, b = (sarrus.simulate(robot, q, np.zeros(robot.nv), 0.05, c, dt=5e-3) for c in (native, law))
    assert_allclose(a.joint(joints[0]), b.joint(joints[0]), atol=1e-9)
    assert_allclose(a.tau, b.tau, atol=1e-7)


@pytest.mark.parametrize("law", [ComputedTorque, PDPlus])
@pytest.mark.parametrize("name", ["four_bar", "delta"])
def test_gains_of_their_own_in_lanes(law, name):
    robot, q, targets = start(name)
    kp, kd = np.array([[60.0], [80.0], [100.0]]), np.array([[10.0], [15.0], [20.0]])
    many = sarrus.simulate_many(robot, q, np.zeros(robot.nv), 0.05, law(targets, kp, kd), dt=5e-3)
    for k in range(3):
        one = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.05, law(targets, kp[k, 0], kd[k, 0]), dt=5e-3)
        assert_allclose(many.q[k], one.q, atol=1e-9)


def error_energy(robot, run, targets, kp, names):
    """Return s' M s / 2 + e' kp e / 2 with s = v - v_d, where the loops complete v_d."""
    energy = []
    for t, q, v in zip(run.t, run.q, run.v, strict=True):
        rates = {name: law.derivatives(t)[1] for name, law in targets.items()}
        v_d = robot.complete_velocity(q, rates) if robot.nc else np.array([rates[name] for name in names])
        e = np.array([q[robot.joint(name).q_slice][0] - law(t) for name, law in targets.items()])
        energy.append((v - v_d) @ robot.mass_matrix(q) @ (v - v_d) / 2.0 + e @ (kp * e) / 2.0)
    return np.array(energy)


@pytest.mark.parametrize("name", ["tree", "damped tree", "four_bar", "five_bar", "delta"])
def test_the_energy_of_pd_plus_never_grows(name):
    """Moving targets; without damping kd the energy of the error is constant, which requires this C."""
    if name.endswith("tree"):
        robot, q, v = double_pendulum()
        targets = {"shoulder": sarrus.laws.harmonic(0.5, rate=4.0), "elbow": sarrus.laws.harmonic(0.8, rate=6.0)}
        if name == "damped tree":
            b = robot.to_builder()
            for joint in robot.joints:
                b.set_joint(joint, sarrus.Revolute("y", damping=0.3, friction=0.1, stiffness=2.0))
            robot = b.build()
    else:
        robot, q, targets = start(name)
        v = robot.project_velocity(q, np.random.default_rng(0).uniform(-1.0, 1.0, robot.nv))
    kp, options = np.linspace(20.0, 30.0, len(targets)), {"dt": 1e-3}
    run = sarrus.simulate(robot, q, v, 0.4, PDPlus(targets, kp, 0.0), **options)
    free = error_energy(robot, run, targets, kp, robot.joints)
    if name != "damped tree":
        assert_allclose(free, free[0], rtol=1e-7)
    run = sarrus.simulate(robot, q, v, 0.4, PDPlus(targets, kp, 5.0), **options)
    damped = error_energy(robot, run, targets, kp, robot.joints)
    assert np.diff(damped).max() < 1e-9 * damped[0]
    assert damped[-1] < 0.5 * damped[0]


def test_energy_of_the_error_in_a_mechanism_with_balls():
    """A Delta robot with ball joints in its tree: velocities are not rates of coordinates, and the loops complete v_d."""
    robot, q, targets = start("delta")
    assert robot.nq > robot.nv
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.4, PDPlus(targets, 30.0, 0.0))
    energy = error_energy(robot, run, targets, np.full(3, 30.0), robot.joints)
    assert_allclose(energy, energy[0], rtol=1e-7)


@pytest.mark.parametrize("name", [*LOOPS, "double_pendulum"])
def test_motors_hold_gravity(name):
    """The mechanism rests in any configuration; with half of the efforts it sinks as with half of its weight."""
    robot = getattr(sarrus.mechanisms, name)()
    q = robot.assemble() if robot.nc else np.array([0.7, -0.4])
    held = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.2, GravityCompensation())
    assert np.abs(held.v).max() < 1e-9
    half = sarrus.simulate(robot, q, np.zeros(robot.nv), 0.01, GravityCompensation(scale=0.5), dt=1e-3)
    fall = robot.forward_dynamics(q, np.zeros(robot.nv), np.zeros(robot.nv))
    assert_allclose(half.v[1], 0.5e-3 * fall, rtol=1e-3, atol=1e-6)


def test_a_step_is_reached_with_gravity_held_and_sampled():
    """PD with gravity compensation, both sampled by one clock, has no steady-state error."""
    robot = sarrus.mechanisms.five_bar()
    q = robot.assemble()
    goal = {name: float(q[robot.joint(name).q_slice][0]) + 0.1 for name in LOOPS["five_bar"]}
    law = [GravityCompensation(), *(PID(name, 100.0, 0.0, 30.0, target=x) for name, x in goal.items())]
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), 3.0, SampleAndHold(law, 2e-3, 1e-3))
    for name, x in goal.items():
        assert_allclose(run.joint(name)[-1], x, atol=1e-4)


def test_motors_that_cannot():
    """One motor cannot hold a five-bar linkage, and one motor cannot drive two joints."""
    robot = sarrus.mechanisms.five_bar()
    b = robot.to_builder()
    b.set_joint("right_motor", actuated=False)
    weak, q = b.build(), robot.assemble()
    for law in (GravityCompensation(), ComputedTorque({"left_motor": 0.5, "right_motor": 0.5})):
        with pytest.raises(sarrus.IntegrationError, match="motors cannot realise the efforts of a control law"):
            sarrus.simulate(weak, q, np.zeros(robot.nv), 0.1, law)
