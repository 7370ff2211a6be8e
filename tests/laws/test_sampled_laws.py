"""Digital control, drives and effort tables: discrete-time closed forms, exact holds, and equal results for all kinds of runs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.control import (
    PID,
    ActuatorModel,
    ComputedTorque,
    EffortTable,
    FeedforwardEffort,
    Quantisation,
    SampleAndHold,
)
from tests.small_mechanisms import FIXED, METHODS, double_pendulum, four_bar, slider

TIGHT = {"rtol": 1e-12, "atol": 1e-13}  # of dopri5


def exponential(A):
    """exp(A) by scaling and squaring of its series: a matrix of a few rows."""
    small, total, term = A / 1024.0, np.eye(len(A)), np.eye(len(A))
    for k in range(1, 20):
        term = term @ small / k
        total = total + term
    for _ in range(10):
        total = total @ total
    return total


def held(A, B, x, u, h):
    """Return x after h under a held effort u: the exact zero-order hold."""
    both = exponential(np.block([[A, B[:, None]], [np.zeros((1, len(A) + 1))]]) * h)
    return both[:-1, :-1] @ x + both[:-1, -1] * u


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delay", [0.0, 0.003, 0.01, 0.024])
def test_sampled_pd_is_its_discrete_time_closed_form(method, delay):
    """A double integrator by its matrix exponential from event to event, with a delay of zero, a fraction, one and several periods."""
    period, kp, kd, target = 0.01, 60.0, 9.0, 0.4
    law = SampleAndHold(PID("slide", kp, 0.0, kd, target=target), period, delay)
    A, B, x, acting, commands = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([0.0, 0.5]), np.array([0.1, -0.2]), 0.0, []
    wanted = [x]
    ticks = 1000  # of 1 ms; samples every 10th, a command acts so many after its own
    for k in range(300):
        if k % 10 == 0:
            commands.append((k + round(delay * ticks), kp * (target - x[0]) - kd * x[1]))
        acting = next((u for at, u in reversed(commands) if at <= k), 0.0)
        x = held(A, B, x, acting, 1.0 / ticks)
        wanted.append(x)
    # 4 ms: the steps are cut where something is due
    for dt in (1e-3, 4e-3):
        run = sarrus.simulate(slider(mass=2.0), [0.1], [-0.2], 0.3, law, method=method, dt=dt, **TIGHT)
        every = round(dt * ticks)
        got = np.hstack([run.q, run.v])
        if method in ("euler", "semi_implicit"):
            assert_allclose(
                got[:, 1], np.array(wanted)[::every, 1], atol=0.02
            )  # of first order: q, and what kp makes of it, is off
        else:
            assert_allclose(got, np.array(wanted)[::every], atol=1e-10)


@pytest.mark.parametrize("method", ["rk4", "rkmk4", "dopri5"])
def test_sampled_pd_on_an_oscillator(method):
    """With a spring and a damper, and a period that is no multiple of the step: 2.5 ms with steps of 1 ms."""
    period, delay = 0.0025, 0.001
    law = SampleAndHold(PID("slide", 80.0, 0.0, 5.0, target=0.4), period, delay)
    A, B, x = np.array([[0.0, 1.0], [-30.0, -0.5]]), np.array([0.0, 1.0]), np.array([0.1, 0.0])
    acting = 0.0
    for _ in range(120):
        u = 80.0 * (0.4 - x[0]) - 5.0 * x[1]
        x = held(A, B, x, acting, delay)
        x, acting = held(A, B, x, u, period - delay), u
    run = sarrus.simulate(slider(damping=0.5, stiffness=30.0), [0.1], [0.0], 0.3, law, method=method, dt=1e-3, **TIGHT)
    assert_allclose([run.q[-1, 0], run.v[-1, 0]], x, atol=1e-10)


CONTROLLERS = {
    "pid": lambda name: PID(name, 30.0, 20.0, 3.0, target=sarrus.laws.harmonic(0.3, rate=5.0), limits=(-8.0, 9.0)),
    "function": lambda name: lambda t, q, v: 5.0 * np.cos(q) - 0.3 * v - t,
    "both": lambda name: [PID(name, 30.0, 20.0, 3.0), lambda t, q, v: 1.0 - v],
}


@pytest.mark.parametrize("method", ["euler", "semi_implicit"])
@pytest.mark.parametrize("kind", CONTROLLERS)
@pytest.mark.parametrize("state", [double_pendulum, four_bar])
def test_a_sample_a_step_is_the_controller_itself(method, kind, state):
    """Equal to the last bit, for methods with one call of the controller per step, at its beginning; also with loops."""
    robot, q, v = state()
    law = CONTROLLERS[kind](robot.joints[0])
    options = {"method": method, "dt": 1e-3}
    plain = sarrus.simulate(robot, q, v, 0.3, law, **options)
    sampled = sarrus.simulate(robot, q, v, 0.3, SampleAndHold(law, period=1e-3), **options)
    assert_array_equal(sampled.q, plain.q)
    assert_array_equal(sampled.v, plain.v)


def test_computed_torque_sampled_a_step():
    robot, q, v = double_pendulum()
    law = ComputedTorque({"shoulder": sarrus.laws.harmonic(0.5, rate=3.0)}, 100.0, 15.0)
    plain, sampled = (
        sarrus.simulate(robot, q, v, 0.2, c, method="euler", dt=1e-3) for c in (law, SampleAndHold(law, period=1e-3))
    )
    assert_array_equal(sampled.q, plain.q)


@pytest.mark.parametrize("method", METHODS)
def test_a_function_is_asked_once_a_sample(method):
    """The function gets the state of the trajectory; its efforts are held, and are in the trajectory from the sample on."""
    robot, q, v = double_pendulum()
    asked = []

    def law(t, q, v):
        asked.append((t, *q, *v))
        return [np.sin(40.0 * t) * 3.0, -v[1]]

    run = sarrus.simulate(robot, q, v, 0.1, SampleAndHold(law, period=0.01), method=method, dt=1e-3)
    seen = np.array(asked)
    assert_allclose(seen[:, 0], np.arange(11) * 0.01, atol=1e-12)
    assert_array_equal(seen[:, 1:3], run.q[::10])
    assert_array_equal(seen[:, 3:], run.v[::10])
    wanted = np.stack([np.sin(40.0 * seen[:, 0]) * 3.0, -seen[:, 4]], axis=1)
    assert_allclose(run.tau[:-1], np.repeat(wanted[:-1], 10, axis=0), atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("state", [double_pendulum, four_bar])
def test_a_run_in_parts_is_the_run(method, state):
    """Equal bit for bit, with delayed commands, an integral, and a drive's lag; segments end close to samples."""
    robot, q, v = state()
    name = robot.joints[0]
    law = [
        SampleAndHold([PID(name, 30.0, 20.0, 3.0, target=0.7), FeedforwardEffort(name, 0.3)], 0.004, 0.0105),
        SampleAndHold(lambda t, q, v: -0.1 * v + t, 0.006),
        EffortTable([0.013, 0.021, 0.05], np.ones((3, robot.nv)), robot.joints),
        ActuatorModel(name, natural_frequency=80.0),
    ]
    options = {"method": method, "dt": 1e-3} | (TIGHT if method == "dopri5" else {})
    whole = sarrus.simulate(robot, q, v, 0.08, law, **options)
    part = sarrus.simulate(robot, q, v, 0.025, law, **options)
    for end in (0.036, 0.0475, 0.0601, 0.08):
        part = sarrus.simulate(robot, duration=end - part.t[-1], controller=law, resume=part, **options)
    assert part.t[-1] == whole.t[-1]
    assert_array_equal(part.q[-1], whole.q[-1])
    assert_array_equal(part.v[-1], whole.v[-1])
    assert_array_equal(part.internal_state[-1], whole.internal_state[-1])


@pytest.mark.parametrize("method", FIXED)
@pytest.mark.parametrize("state", [double_pendulum, four_bar])
def test_many_are_as_one(method, state):
    robot, q, v = state()
    name, gains, runs = robot.joints[0], np.linspace(10.0, 60.0, 5), 5
    u = np.random.default_rng(0).uniform(-1.0, 1.0, (runs, 4, robot.nv))

    def law(kp, u):
        return [
            SampleAndHold(
                PID(name, kp, 5.0, 0.1 * kp, target=0.4), 0.0035, 0.005, Quantisation(1e-3, 0.01, {name: 0.05})
            ),
            EffortTable([0.0, 0.02, 0.03, 0.061], u, robot.joints),
            EffortTable([0.011, 0.02, 0.03, 0.061], -u, robot.joints, hold=False),
            ActuatorModel(name, time_constant=gains.max() / 1e3 / kp, torque_speed=(kp, 20.0)),
        ]

    many = sarrus.simulate_many(robot, q, v, 0.1, law(gains, u), method=method, dt=2e-3)
    for k in range(runs):
        one = sarrus.simulate(robot, q, v, 0.1, law(gains[k], u[k]), method=method, dt=2e-3)
        assert_allclose(many.q[k], one.q, atol=1e-11)
        assert_allclose(many.v[k], one.v, atol=1e-9)


def test_what_is_quantised():
    """A function gets multiples of the encoder's and tachometer's steps, and its result is rounded to multiples of the converter's step."""
    seen = []

    def law(t, q, v):
        seen.append((q[0], v[0]))
        return [np.sin(30.0 * t)]

    steps = Quantisation(position=2 * np.pi / 4096, velocity=0.02, effort=0.1)
    run = sarrus.simulate(sarrus.mechanisms.pendulum(), [0.5], [0.0], 0.2, SampleAndHold(law, 0.01, quantisation=steps))
    q, v = np.array(seen).T
    for x, true, step in ((q, run.q[::10, 0], steps.position), (v, run.v[::10, 0], 0.02)):
        assert_allclose(x / step, np.rint(true / step), atol=1e-9)
    assert_allclose(run.tau[:-1:10, 0], np.rint(10.0 * np.sin(30.0 * run.t[:-1:10])) / 10.0, atol=1e-12)
    encoder = SampleAndHold(law, 0.01, quantisation=2 * np.pi / 4096)
    seen.clear()
    sarrus.simulate(sarrus.mechanisms.pendulum(), [0.5], [0.0], 0.2, encoder)
    assert_allclose(np.array(seen)[:, 0] * 4096 / (2 * np.pi), np.rint(np.array(seen)[:, 0] * 4096 / (2 * np.pi)))
    assert np.unique(np.array(seen)[:, 1] / 0.02 % 1.0).size > 2


def test_sampled_efforts_meet_limits():
    """Limits of a held command are checked, and with limits="enforce" enforced, as those of any controller."""
    robot = slider(effort_limit=2.0)
    law = SampleAndHold(PID("slide", 10.0, 3.0, 1.0, target=1.0), 0.01)
    with pytest.warns(sarrus.errors.LimitWarning, match="effort of joint 'slide'.*reaches 10"):
        sarrus.simulate(robot, [0.0], [0.0], 0.1, law)
    run = sarrus.simulate(robot, [0.0], [0.0], 0.1, law, limits="enforce")
    assert_array_equal(run.tau[:-1], 2.0)
    assert_allclose(run.internal_state[-1, 0 + 3], 0.0, atol=1e-12)  # it does not wind up


@pytest.mark.parametrize("method", ["rk4", "dopri5", "implicit_midpoint"])
def test_an_event_between_samples(method):
    """The event is found in the motion under the held effort, and the run continues: the next sample keeps its time."""
    law = SampleAndHold(lambda t, q, v: [1.0 + t], 0.02)
    half = sarrus.Event(lambda t, q, v: v[0] - 0.05, name="half")
    options = {"method": method, "dt": 1e-3} | TIGHT
    run = sarrus.simulate(slider(), [0.0], [0.0], 0.1, law, events=half, **options)
    # v = 0.02 (1 + 1.02) = 0.0404 at 40 ms, then 1.04 a second
    assert_allclose(run.t[-1], 0.04 + (0.05 - 0.0404) / 1.04, atol=1e-12)
    on = sarrus.simulate(slider(), duration=0.1 - run.t[-1], resume=run, controller=law, **options)
    assert_allclose(on.v[-1, 0], 0.02 * np.sum(1.0 + 0.02 * np.arange(5)), atol=1e-12)
    assert_allclose(on.tau[0], 1.04, atol=1e-12)


@pytest.mark.parametrize("state", [double_pendulum, four_bar])
def test_tasks_sampled_a_step(state):
    robot, q, v = state()
    name = robot.joints[0]
    law = sarrus.control.TaskControl(
        robot, [sarrus.control.JointTask(name, 0.7, stiffness=50.0)], actuated=[name] if robot.nc else robot.joints
    )
    plain, sampled = (
        sarrus.simulate(robot, q, v, 0.1, c, method="semi_implicit", dt=1e-3) for c in (law, SampleAndHold(law))
    )
    assert_allclose(sampled.q, plain.q, atol=1e-13)
    many = sarrus.simulate_many(robot, np.tile(q, (3, 1)), v, 0.1, SampleAndHold(law, 0.01, 0.002))
    one = sarrus.simulate(robot, q, v, 0.1, SampleAndHold(law, 0.01, 0.002))
    assert_allclose(many.q[1], one.q, atol=1e-9)


def test_another_controller_begins_anew():
    """Held values of another clock do not affect a controller that continues from a checkpoint."""
    robot = slider()
    first = sarrus.simulate(robot, [0.0], [0.0], 0.05, SampleAndHold(lambda t, q, v: [3.0], 0.02))
    run = sarrus.simulate(robot, duration=0.05, resume=first, controller=SampleAndHold(lambda t, q, v: [t], 0.01))
    assert_allclose(run.tau[::10, 0], 0.05 + 0.01 * np.arange(6), atol=1e-12)


@pytest.mark.parametrize("method", ["rk4", "rkmk4", "dopri5", "implicit_midpoint"])
def test_efforts_in_a_table(method):
    """Held efforts make v piecewise linear and q piecewise quadratic; linear interpolation makes v quadratic: exact for every method."""
    times, u = np.array([0.0, 0.1, 0.15, 0.4]), np.array([1.0, -2.0, 0.5, 3.0])
    run = sarrus.simulate(slider(), [0.0], [0.0], 0.5, EffortTable(times, u[:, None]), method=method, dt=0.01, **TIGHT)
    grid = np.append(times, 0.5)
    lengths = np.clip(run.t[:, None] - grid[:-1], 0.0, np.diff(grid))
    assert_allclose(run.v[:, 0], lengths @ u, atol=1e-11)
    before = np.append(0.0, np.cumsum(np.diff(grid) * u))[:-1]
    assert_allclose(run.q[:, 0], lengths @ before + lengths**2 @ u / 2.0, atol=1e-11)
    sloped = EffortTable(times, u[:, None], hold=False)
    run = sarrus.simulate(slider(), [0.0], [0.0], 0.5, sloped, method=method, dt=0.01, **TIGHT)
    lengths = np.clip(run.t[:, None] - grid[:-1], 0.0, np.diff(grid))
    slopes = np.append(np.diff(u) / np.diff(times), 0.0)
    assert_allclose(run.v[:, 0], lengths @ u + lengths**2 @ slopes / 2.0, atol=1e-11)
    assert_allclose(run.tau[:, 0], np.interp(run.t, times, u), atol=1e-12)


def test_held_efforts_of_a_run_that_starts_late():
    """The row of the last time before the beginning of the run acts from the first instant on."""
    table = EffortTable([0.0, 0.1, 0.2], [[1.0], [2.0], [3.0]])
    run = sarrus.simulate(slider(), [0.0], [0.0], 0.1, table, start=0.15)
    assert_allclose(run.tau[[0, 49, 50, 99], 0], [2.0, 2.0, 3.0, 3.0])


def test_lags_of_drives():
    """Step responses of first and second order in closed form, by a complex formula that also covers underdamped lags."""
    u, t = 2.0, np.linspace(0.0, 0.5, 501)
    robot, push = slider(mass=1e9), FeedforwardEffort("slide", u)
    first = sarrus.simulate(robot, [0.0], [0.0], 0.5, [push, ActuatorModel("slide", time_constant=0.05)])
    assert_allclose(first.tau[:, 0], u * (1.0 - np.exp(-t / 0.05)), atol=1e-7)
    for w, d in ((40.0, 0.3), (40.0, 2.0)):
        drive = ActuatorModel("slide", natural_frequency=w, damping_ratio=d)
        run = sarrus.simulate(robot, [0.0], [0.0], 0.5, [push, drive])
        a, b = np.roots([1.0, 2.0 * d * w, w * w]).astype(complex)
        step = 1.0 + (b * np.exp(a * t) - a * np.exp(b * t)) / (a - b)
        assert_allclose(run.tau[:, 0], u * step.real, atol=1e-6)


def test_the_torque_speed_line_of_a_geared_motor():
    """Full throttle: v = v0 (1 - exp(-stall t / (m v0))), at the joint's side of the gear; braking has the full stall torque."""
    mass, stall, fastest, gear = 3.0, 0.5, 60.0, 20.0
    motor = ActuatorModel("slide", torque_speed=(stall, fastest), gear_ratio=gear)
    run = sarrus.simulate(slider(mass=mass), [0.0], [0.0], 2.0, [FeedforwardEffort("slide", 1e3), motor])
    top, force = fastest / gear, stall * gear
    assert_allclose(run.v[:, 0], top * (1.0 - np.exp(-force / (mass * top) * run.t)), atol=1e-9)
    for asked, speed, given in ((-1e3, 2.0, -force), (1e3, -5.0, force), (1e3, 5.0, 0.0), (2.0, 1.0, 2.0)):
        run = sarrus.simulate(slider(mass=mass), [0.0], [speed], 1e-3, [FeedforwardEffort("slide", asked), motor])
        assert_allclose(run.tau[0, 0], given)
