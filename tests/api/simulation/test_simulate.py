"""simulate() for users: samples, events, failures."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp

import sarrus
from sarrus.control import PID, CompliantContact, ComputedTorque, FeedforwardEffort, LuGreFriction
from tests.small_mechanisms import METHODS, double_pendulum, four_bar, slider

G = 9.81

# ---- samples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_default_samples(method):
    """Initial time, every dt, and the end; all samples are on the loops."""
    robot, q, v = four_bar()
    run = sarrus.simulate(robot, q, v, 0.0105, method=method, dt=1e-3)
    assert_allclose(run.t, [*np.arange(11) * 1e-3, 0.0105], rtol=1e-15)
    assert run.t[-1] == 0.0105
    assert run.loop_error.max() < 1e-12
    none = sarrus.simulate(robot, q, v, 0.0, method=method)
    assert_array_equal(none.t, [0.0])
    assert_array_equal(none.q, run.q[:1])


@pytest.mark.parametrize("method", METHODS)
def test_asked_samples(method):
    """At steps, samples equal the states of steps bit for bit; between them they are as accurate as the step."""
    robot, q, v = double_pendulum()
    options = {"method": method, "dt": 1e-2, "start": 0.5, "rtol": 1e-9, "atol": 1e-9}
    whole = sarrus.simulate(robot, q, v, 0.4, **options)
    fine = sarrus.simulate(robot, q, v, 0.4, method="dopri5", dt=1e-3, start=0.5, rtol=1e-12, atol=1e-12)
    between = (whole.t[:-1] + whole.t[1:]) / 2
    run = sarrus.simulate(robot, q, v, 0.4, times=np.sort(np.r_[whole.t, between]), **options)
    assert_array_equal(run.t[::2], whole.t)
    if method != "dopri5":  # its samples at ends of steps are no other ones
        assert_array_equal(run.q[::2], whole.q)
    off_steps = np.abs(whole.q - fine.at(whole.t)[0]).max()
    assert np.abs(run.q[1::2] - fine.at(between)[0]).max() < 1.1 * off_steps + 1e-8
    few = sarrus.simulate(robot, q, v, 0.4, times=[0.6, 0.75], **options)
    assert_array_equal(few.t, [0.6, 0.75])
    only = sarrus.simulate(robot, q, v, 0.4, times=[], **options)
    assert len(only) == 0
    assert only.status == "finished"


def test_the_last_sample_is_never_lost():
    """n dt may differ from the duration in the last digit."""
    robot = slider()
    for n in (3, 6, 7, 29, 57, 115, 1001):
        for duration in (n * 1e-3, n / 1000, np.nextafter(n / 1000, 1e9), np.nextafter(n / 1000, 0.0)):
            run = sarrus.simulate(robot, [0.0], [1.0], duration, dt=1e-3, times=[duration])
            assert_array_equal(run.t, [duration])
            assert_allclose(run.q[0], duration, rtol=1e-12)
    assert len(sarrus.simulate(robot, [0.0], [1.0], 3 * 0.1, dt=1e-3, times=[3 * 0.1])) == 1


def test_samples_before_time_zero():
    """Times may be negative, including the end."""
    run = sarrus.simulate(slider(), [0.0], [1.0], 1.0, start=-2.0, times=[-2.0, -1.5, -1.0])
    assert_allclose(run.q[:, 0], [0.0, 0.5, 1.0], atol=1e-12)


@pytest.mark.parametrize("tolerance", [1e-5, 1e-8, 1e-11])
def test_dense_output(tolerance):
    """Samples within steps, compared with DOP853: some ten tolerances, as at the ends of steps."""
    robot, q, v = double_pendulum()
    times = np.linspace(0.0, 2.0, 301)
    run = sarrus.simulate(robot, q, v, 2.0, method="dopri5", rtol=tolerance, atol=tolerance, times=times, dt=0.1)
    assert tolerance < 1e-9 or run.statistics["steps"] < 150  # the samples lie within steps
    truth = solve_ivp(
        lambda t, y: np.r_[y[2:], robot.forward_dynamics(y[:2], y[2:], np.zeros(2))],
        (0.0, 2.0), np.r_[q, v], method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times,
    ).y.T  # fmt: skip
    assert np.abs(np.hstack([run.q, run.v]) - truth).max() < 200.0 * tolerance


def test_many_dense_samples():
    """More samples than one call of the core returns: each is within its step."""
    robot, q, v = double_pendulum()
    options = {"method": "dopri5", "dt": 0.1, "rtol": 1e-5, "atol": 1e-5}
    times = np.linspace(0.0, 5.0, 10001)
    run = sarrus.simulate(robot, q, v, 5.0, times=times, **options)
    for part in (slice(4090, 4200), slice(8185, 8300)):
        again = sarrus.simulate(robot, q, v, 5.0, times=times[part], **options)
        assert_array_equal(run.q[part], again.q)
        assert_array_equal(run.v[part], again.v)


# ---- events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["rk4", "rkmk4", "dopri5", "implicit_midpoint", "independent"])
def test_events_are_where_they_are(method):
    """A fall from 2 m: methods of order 2 integrate a parabola exactly, so the time is its root."""
    robot = slider("z", gravity=(0.0, 0.0, -G))
    run = sarrus.simulate(robot, [2.0], [0.0], 5.0, method=method, dt=1e-2, events=lambda t, q, v: q[0])
    assert run.status == "terminated: event"
    assert_allclose(run.events["event"], np.sqrt(4.0 / G), rtol=1e-13)
    assert run.t[-1] == run.events["event"][0]
    assert_allclose(run.q[-1], 0.0, atol=1e-12)
    assert_allclose(run.v[-1], -np.sqrt(4.0 * G), rtol=1e-12)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_direction_of_events(method):
    """cos(w t) falls through zero at (pi/2 + 2 pi k)/w and rises at (3 pi/2 + 2 pi k)/w."""
    w = 7.0
    robot = slider(stiffness=w**2)
    events = [
        sarrus.Event(lambda t, q, v: q[0], name, terminal=False, direction=d)
        for name, d in (("falls", -1), ("rises", 1), ("both", 0))
    ]
    run = sarrus.simulate(robot, [1.0], [0.0], 4.0, method=method, dt=1e-3, rtol=1e-12, atol=1e-12, events=events)
    every = (np.pi / 2 + np.pi * np.arange(9)) / w
    every = every[every < 4.0]
    assert len(every) == 9
    assert_allclose(run.events["both"], every, atol=1e-9)
    assert_array_equal(run.events["falls"], run.events["both"][0::2])
    assert_array_equal(run.events["rises"], run.events["both"][1::2])
    assert run.status == "finished"


@pytest.mark.parametrize("method", METHODS)
def test_several_events_in_one_step(method):
    """Events are ordered in time, with none after the one that ends the run."""
    at = {"b": 0.05, "a": 0.03, "end": 0.07, "late": 0.09}
    events = [
        sarrus.Event(lambda t, q, v, x=x: q[0] - x, name, terminal=name == "end") for name, x in at.items()
    ]  # fmt: skip
    run = sarrus.simulate(slider(), [0.0], [1.0], 1.0, method=method, dt=0.1, max_step=0.1, events=events)
    assert run.status == "terminated: end"
    for name in ("a", "b", "end"):
        assert_allclose(run.events[name], [at[name]], rtol=1e-12)
    assert len(run.events["late"]) == 0
    assert_allclose(run.q[-1], 0.07, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_events_in_what_is_left_of_a_step(method):
    """The last step may be partial, and its events are detected too."""
    event = sarrus.Event(lambda t, q, v: q[0] - 0.104, "mark", terminal=False)
    run = sarrus.simulate(slider(), [0.0], [1.0], 0.105, method=method, dt=1e-2, events=event)
    assert_allclose(run.events["mark"], [0.104], rtol=1e-12)
    ends = sarrus.Event(event.function, "mark")
    run = sarrus.simulate(slider(), [0.0], [1.0], 0.105, method=method, dt=1e-2, events=ends)
    assert run.status == "terminated: mark"
    assert run.t[-1] == pytest.approx(0.104, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_going_on_after_an_event(method):
    """A run continues from the event's time and state, and the event does not occur again."""
    robot = slider("z", gravity=(0.0, 0.0, -G))
    event = sarrus.Event(lambda t, q, v: q[0] - 1.0, "mark")
    options = {"method": method, "dt": 1e-2, "events": event}
    first = sarrus.simulate(robot, [2.0], [0.0], 5.0, **options)
    then = sarrus.simulate(robot, duration=0.2, resume=first.checkpoint, **options)
    assert then.status == "finished"
    assert then.t[0] == first.t[-1]
    assert_array_equal(then.q[0], first.q[-1])
    assert then.t[-1] == pytest.approx(first.t[-1] + 0.2, rel=1e-15)
    assert np.diff(then.t).max() < 1.01e-2
    fresh = sarrus.simulate(robot, first.q[-1], first.v[-1], 0.2, start=first.t[-1], method=method, dt=1e-2)
    assert_allclose(then.q[-1], fresh.q[-1], rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_end_is_shown_among_asked_samples(method):
    """The state of an event that ends the run is the last sample, for any requested samples and all methods."""
    event = sarrus.Event(lambda t, q, v: q[0] - 0.25, "mark")
    options = {"method": method, "dt": 1e-2, "max_step": 1e-2, "events": event}
    run = sarrus.simulate(slider(), [0.0], [1.0], 1.0, times=[0.1, 0.2, 0.9], **options)
    assert_allclose(run.t, [0.1, 0.2, 0.25], rtol=1e-12)
    assert_allclose(run.q[:, 0], run.t, rtol=1e-12)


def test_an_event_at_the_start_is_none():
    """A function that is zero initially has no event there."""
    run = sarrus.simulate(slider(), [0.0], [1.0], 0.1, dt=1e-2, events=lambda t, q, v: q[0])
    assert run.status == "finished"


def test_what_an_event_raises_comes_through():
    class MyError(Exception):
        pass

    def function(t, q, v):
        if t > 0.05:
            raise MyError("of the caller")
        return 1.0

    for method in METHODS:
        with pytest.raises(MyError, match="of the caller"):
            sarrus.simulate(slider(), [0.0], [1.0], 1.0, method=method, dt=1e-2, max_step=0.01, events=function)


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_motion_too_fast_for_its_steps_names_the_joint():
    robot = sarrus.mechanisms.double_pendulum()
    with pytest.raises(
        sarrus.IntegrationError,
        match=r"diverges .* joint 'shoulder' moves by 4 per step .* method='dopri5', or a smaller dt",
    ):
        sarrus.simulate(robot, [0.3, 0.5], [200.0, -200.0], 3.0, method="rk4", dt=0.02)


def test_divergence_keeps_what_was():
    """A spring far too stiff for the step: the error contains the samples before divergence, and can be pickled."""
    with pytest.raises(sarrus.IntegrationError, match=r"diverges at t = .*rk4.*trajectory") as caught:
        sarrus.simulate(slider(stiffness=1e6), [0.1], [0.0], 100.0, dt=0.1, method="rk4")
    run = caught.value.trajectory
    assert run.status == "diverged"
    assert len(run) == run.statistics["steps"] + 1 > 1
    assert np.isfinite(run.q).all()
    assert np.isfinite(run.v).all()
    assert 1e5 < np.abs(run.q[-1]).max() < 1e12
    there = pickle.loads(pickle.dumps(caught.value))
    assert type(there) is sarrus.IntegrationError
    assert str(there) == str(caught.value)
    assert_array_equal(there.trajectory.q, run.q)
    assert there.trajectory.status == "diverged"


def test_divergence_of_adaptive_steps():
    """x'' = x^3 from x = 1 diverges in finite time: steps shrink until an error is raised."""
    with pytest.raises(sarrus.IntegrationError) as caught:
        sarrus.simulate(slider(), [1.0], [1.0], 10.0, lambda t, q, v: q**3, method="dopri5")
    run = caught.value.trajectory
    assert run.status == "diverged"
    assert 0.5 < run.t[-1] < 2.0
    assert np.isfinite(run.q).all()


def test_implicit_steps_that_do_not_converge():
    """A force with jumps everywhere has no midpoint."""
    rng = np.random.default_rng(0)
    rng = np.random.default_rng(0)
    with pytest.raises(sarrus.IntegrationError, match="converge"):
        sarrus.simulate(
            slider(), [0.0], [1.0], 1.0, lambda t, q, v: rng.normal(size=1) * 1e3, method="implicit_midpoint"
        )


@pytest.mark.parametrize("python", [False, True])
@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_ctrl_c_returns_what_there_is(method, python):
    """The run continues from there as if uninterrupted."""
    robot = sarrus.mechanisms.pendulum()
    controller = (lambda t, q, v: [0.0]) if python else None
    options = {"method": method, "dt": 1e-4, "controller": controller, "max_step": 1e-4}
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    run = sarrus.simulate(robot, [1.0], [0.0], 500.0, **options)
    assert run.status == "interrupted"
    assert len(run) > 10
    assert run.t[-1] < 400.0
    assert np.isfinite(run.q).all()
    again = sarrus.simulate(robot, duration=0.05, resume=run.checkpoint, **options)
    assert again.t[0] == run.t[-1]
    assert again.t[-1] == pytest.approx(run.t[-1] + 0.05, abs=1e-12 + 1e-15 * run.t[-1])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_going_on_after_ctrl_c_between_samples(method):
    """Few samples, the last long ago: the run continues from the interrupted state."""
    robot = sarrus.mechanisms.pendulum()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    run = sarrus.simulate(robot, [1.0], [0.0], 1e5, times=[1.0, 1e5], method=method, max_step=1e-3)
    assert run.status == "interrupted"
    assert_array_equal(run.t, [1.0])
    then = sarrus.simulate(robot, duration=0.5, resume=run.checkpoint, method=method)
    assert then.t[0] == run.checkpoint["t"] > 1.0
    assert then.t[-1] == pytest.approx(then.t[0] + 0.5, abs=1e-9)


PENDULUM = {"q": [0.1], "v": [0.0], "duration": 1.0}
BAD_ARGUMENTS = [
    ({"method": "RK4"}, ValueError, "method must be one of .*'rk4'.*got 'RK4'"),
    ({"stabilisation": "baumgart"}, ValueError, "stabilisation must be one of .*'baumgarte'"),
    ({"dt": 0.0}, ValueError, "dt must be positive"),
    ({"dt": -1.0}, ValueError, "dt must be positive"),
    ({"dt": np.nan}, ValueError, "dt must be positive"),
    ({"duration": -1.0}, ValueError, "duration"),
    ({"duration": np.inf}, ValueError, "duration"),
    ({"duration": np.nan}, ValueError, "duration"),
    ({"start": np.nan}, ValueError, "start must be finite"),
    ({"rtol": 0.0}, ValueError, "rtol"),
    ({"atol": -1.0}, ValueError, "atol"),
    ({"max_step": 0.0}, ValueError, "max_step"),
    ({"q": [np.nan]}, sarrus.StateError, "q"),
    ({"v": [np.inf]}, sarrus.StateError, "v must be finite"),
    ({"q": [0.0, 0.0]}, sarrus.ShapeError, r"\(1,\)"),
    ({"v": [[0.0]]}, sarrus.ShapeError, r"\(1,\)"),
    ({"q": None}, TypeError, "q and v"),
    ({"times": [[0.5]]}, ValueError, "times"),
    ({"times": [0.5, 0.5]}, ValueError, "times"),
    ({"times": [2.0]}, ValueError, "times must be between"),
    ({"times": [-0.1]}, ValueError, "times must be between"),
    ({"times": [np.nan]}, ValueError, "times"),
    ({"resume": {}}, TypeError, "resume"),
    ({"controller": 3}, TypeError, "3"),
    ({"controller": PID("elbow")}, sarrus.NameNotFoundError, "elbow"),
    ({"controller": PID("pivot", index=1)}, sarrus.ModelError, "index 1"),
    ({"controller": PID("pivot", proportional=np.nan)}, sarrus.ModelError, "finite"),
    ({"controller": PID("pivot", proportional=[1.0, 2.0])}, sarrus.ShapeError, "simulate_many"),
    ({"controller": FeedforwardEffort("pivot", "up")}, sarrus.ModelError, "up"),
    ({"controller": LuGreFriction("pivot", -1.0)}, sarrus.ModelError, "positive"),
    ({"controller": CompliantContact("nose")}, sarrus.NameNotFoundError, "nose"),
    ({"controller": CompliantContact("tip", normal=(0, 0, 0))}, sarrus.ModelError, "axis"),
    ({"controller": [ComputedTorque({}), ComputedTorque({})]}, sarrus.ModelError, "several"),
    ({"controller": ComputedTorque({"pivot": [0.0, 1.0]})}, sarrus.ShapeError, "differ from run to run"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_ARGUMENTS)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        sarrus.simulate(sarrus.mechanisms.pendulum(), **(PENDULUM | options))


def pendulum_runs(**options):
    return sarrus.simulate(sarrus.mechanisms.pendulum(), **(PENDULUM | options))


def double_pendulum_runs(controller):
    robot, q, v = double_pendulum()
    return sarrus.simulate(robot, q, v, 0.1, controller)


BAUMGARTE = {"stabilisation": "baumgarte"}
BAD_CALLS = [
    # clocks
    ({"dt": 1e-320}, ValueError, "dt = .*too short"),
    ({"dt": 1e-17}, ValueError, r"dt = 1e-17 s is too short: 1.0 s must be at most 2\^53 steps"),
    ({"dt": np.inf}, ValueError, "dt must be positive and finite; got inf"),
    ({"dt": "1"}, TypeError, "dt must be a number; got '1'"),
    ({"dt": True}, TypeError, "dt must be a number; got True"),
    ({"dt": [1e-3]}, TypeError, r"dt must be a number; got \[0.001\]"),
    ({"duration": None}, TypeError, r"simulate\(\) needs a duration"),
    ({"start": 1e308, "duration": 1e308, "dt": 1e300}, ValueError, "start \\+ duration"),
    ({"start": np.inf}, ValueError, "start must be finite; got inf"),
    ({"rtol": "fine"}, TypeError, "rtol must be a number; got 'fine'"),
    ({"rtol": np.nan}, ValueError, "rtol must be positive"),
    ({"atol": np.inf}, ValueError, "atol must be positive and finite; got inf"),
    ({"max_step": np.nan}, ValueError, "max_step must be positive; got nan"),
    (
        {"max_step": 1e-300, "method": "dopri5"},
        ValueError,
        "max_step = 1e-300 s is too short: time near 1.0 s does not advance by such a step",
    ),
    (
        {"max_step": 1e-7, "method": "dopri5", "start": 1e10},
        ValueError,
        "max_step = 1e-07 s is too short: .* near 10000000001.0 s",
    ),
    # gains
    ({"gains": (np.nan, 1.0), **BAUMGARTE}, ValueError, r"gains must be two finite .* got \(nan, 1.0\)"),
    ({"gains": (1.0,), **BAUMGARTE}, ValueError, r"gains must be two .*got \(1.0,\)"),
    ({"gains": 3.0, **BAUMGARTE}, ValueError, "gains must be two .*got 3.0"),
    ({"gains": np.ones((2, 1)), **BAUMGARTE}, ValueError, "gains must be two"),
    ({"gains": (1.0, -1.0), **BAUMGARTE}, ValueError, "not negative"),
    ({"gains": (1.0, "x"), **BAUMGARTE}, ValueError, "gains must be two"),
    ({"gains": (1.0, 1.0)}, ValueError, "'projection' has no gains; only 'corrective' and 'baumgarte' have gains"),
    ({"gains": (1.0, 1.0), "stabilisation": "none"}, ValueError, "'none' has no gains"),
    # events
    ({"events": 3}, TypeError, "events must be an Event or a function .*got 3"),
    ({"events": "up"}, TypeError, "events must be .*got 'up'"),
    ({"events": ["up"]}, TypeError, "events must be Event or functions .*got 'up'"),
    ({"events": lambda t, q, v: np.nan}, sarrus.StateError, "event 'event' returned nan at t = 0"),
    ({"events": lambda t, q, v: q}, TypeError, r"event 'event' returned array\(\[0.1\]\); it must return one number"),
    ({"events": lambda t, q, v: q[0] > 0.0}, TypeError, "returned .*True.*one number"),
    ({"events": lambda t, q, v: None}, TypeError, "returned None"),
    (
        {"events": [lambda t, q, v: t - 0.5, lambda t, q, v: t]},
        ValueError,
        "two events are named 'event'.*must be unique",
    ),
    # numbers of which a part would be lost
    ({"q": [0.1 + 1j]}, TypeError, "q must be real; .*imaginary"),
    ({"v": np.array([1j])}, TypeError, "v must be real; .*imaginary"),
    ({"q": np.ma.array([0.1], mask=[True])}, TypeError, r"q has masked entries.*q\.filled\(value\)"),
    ({"v": np.ma.array([0.1], mask=[True])}, TypeError, r"v has masked entries.*v\.filled\(value\)"),
    ({"duration": np.ma.array(0.1, mask=True)}, TypeError, "duration must be a number"),
    ({"times": np.array([0.5 + 1j])}, TypeError, "times must be real"),
    ({"times": np.ma.array([0.5], mask=[True])}, TypeError, "times has masked entries"),
    ({"gains": (1.0, 1j), **BAUMGARTE}, ValueError, "gains must be two"),
    ({"controller": lambda t, q, v: [1j]}, TypeError, "tau of the controller must be real"),
    ({"controller": lambda t, q, v: np.ma.array([1.0], mask=[True])}, TypeError, "tau of the controller has masked"),
    (
        {"controller": lambda t, q, v: ([0.0], {"tip": [1j] * 6})},
        TypeError,
        "wrench on 'tip' of the controller must be",
    ),
    ({"controller": PID("pivot", np.ma.array([1.0], mask=[True]))}, TypeError, "proportional of PID has masked"),
    ({"events": lambda t, q, v: 1j}, TypeError, "must return one number"),
    ({"events": lambda t, q, v: np.ma.masked}, TypeError, "event 'event' returned a masked number"),
    # times between which there is no double
    ({"start": 1e16}, ValueError, r"time cannot advance from start = 1e\+16 s by dt = 0\.001 s .*differ by 2 s"),
    ({"start": -1e13}, ValueError, "time cannot advance"),
    ({"start": 1e16, "method": "dopri5"}, ValueError, "time cannot advance"),
    ({"start": 1e15, "dt": 1.0, "duration": 0.01}, ValueError, "time cannot advance"),
    # where it goes on from
    ({"q": None, "v": None, "resume": {}}, sarrus.ModelError, "checkpoint .*lacks close_stages, dt"),
    ({"q": None, "v": None, "resume": 3}, TypeError, "resume must be a Trajectory or its checkpoint; got 3"),
    # what acts
    ({"controller": lambda t, q, v: None}, TypeError, r"returned None; it must return tau \(1,\)"),
    ({"controller": [PID("pivot"), 3]}, TypeError, "controller must be a function .*got 3"),
    ({"controller": PID}, TypeError, r"PID is a class; expected an instance, PID"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_CALLS)
def test_bad_calls(options, error, message):
    with pytest.raises(error, match=message):
        pendulum_runs(**options)


def test_bad_events():
    with pytest.raises(ValueError, match="direction of event 'up' must be 1, -1 or 0; got 7"):
        sarrus.Event(lambda t, q, v: 1.0, "up", direction=7)
    with pytest.raises(TypeError, match=r"must be callable .*got 3"):
        sarrus.Event(3)


def test_an_event_keeps_its_hands_off_the_state():
    """Changes that an event makes to its arguments affect neither the next event nor the stored state."""

    def careless(t, q, v):
        x = q[0] - 0.25
        q[:], v[:] = 7.0, np.nan
        return x

    events = [sarrus.Event(careless, "careless", terminal=False), sarrus.Event(lambda t, q, v: q[0] - 0.5, "half")]
    run = sarrus.simulate(slider(), [0.0], [1.0], 1.0, dt=1e-2, events=events)
    assert_allclose([*run.events["careless"], *run.events["half"]], [0.25, 0.5], rtol=1e-12)
    assert_allclose(run.q[:, 0], run.t, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.nan, 1.0, 1.0), "start of rest_to_rest .*nan"),
        ((0.0, "far", 1.0), "end of rest_to_rest .*'far'"),
        ((0.0, 1.0, 0.0), "must be positive; got 0.0"),
        ((0.0, 1.0, np.inf), "duration of rest_to_rest .*inf"),
        ((0.0, 1.0, 1e-200), "within 1e-200 s"),
    ],
)
def test_bad_rests(arguments, message):
    with pytest.raises(sarrus.ModelError, match=message):
        sarrus.control.rest_to_rest(*arguments)
    with pytest.raises(sarrus.ModelError, match=r"begin of rest_to_rest .*nan"):
        sarrus.control.rest_to_rest(0.0, 1.0, 1.0, begin=np.nan)


def test_short_rests():
    """Underflow of powers of the duration has no effect."""
    law = sarrus.control.rest_to_rest(0.0, 1e-250, 1e-70)
    assert_allclose(law([0.5e-70, 1e-70]), [0.5e-250, 1e-250], rtol=1e-12)


@pytest.mark.parametrize("order", [(0.0, 3.0), [0.0, 3.0], np.array([0, 3])])
def test_an_effort_may_be_a_tuple(order):
    """(0, 3) is tau of two joints, not tau with wrenches."""
    assert_array_equal(double_pendulum_runs(lambda t, q, v: order).tau[0], [0.0, 3.0])


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (3.0, sarrus.ShapeError, r"returned shape \(\); it must return tau \(2,\)"),
        ((np.zeros(2), {"tip": np.zeros(3)}), sarrus.ShapeError, r"shape \(3,\).*wrench on 'tip' \(6,\)"),
        ((np.zeros(2), {"tip": None}), TypeError, "None.*wrench on 'tip'"),
        ((np.zeros(2), np.zeros(6)), sarrus.ShapeError, r"tau \(2,\)"),
        ("much", sarrus.ShapeError, "returned 'much'; it must return tau"),
        ((None, {}), TypeError, "None"),
    ],
)
def test_wrong_answers_in_words(answer, error, message):
    with pytest.raises(error, match=message):
        double_pendulum_runs(lambda t, q, v: answer)


def test_one_number_for_one_joint():
    assert_array_equal(pendulum_runs(controller=lambda t, q, v: 2.0).tau[:, 0], 2.0)
    assert_array_equal(pendulum_runs(controller=lambda t, q, v: (2.0, None)).tau[:, 0], 2.0)


def test_a_trajectory_goes_on_as_its_checkpoint_does():
    robot, q, v = four_bar()
    run = sarrus.simulate(robot, q, v, 0.01)
    a, b = (sarrus.simulate(robot, duration=0.01, resume=x) for x in (run, run.checkpoint))
    assert_array_equal(a.q, b.q)
    with pytest.raises(sarrus.ModelError, match="no checkpoint"):
        sarrus.simulate(robot, duration=0.01, resume=sarrus.Trajectory(robot, run.t, run.q, run.v))


@pytest.mark.parametrize("method", METHODS)
def test_going_on_for_no_time(method):
    """Also from a partial step: one sample, at the same state."""
    run = pendulum_runs(duration=0.0105, method=method)
    then = sarrus.simulate(run.mechanism, duration=0.0, resume=run, method=method)
    assert_array_equal(then.t, [0.0105])
    assert_array_equal(then.q, run.q[-1:])


def test_a_rest_that_fails_is_no_success():
    """A partial last step that does not converge raises an error too."""
    rng = np.random.default_rng(0)
    with pytest.raises(sarrus.IntegrationError, match="converge") as caught:
        sarrus.simulate(
            slider(), [0.0], [1.0], 5e-4, lambda t, q, v: rng.normal(size=1) * 1e3, method="implicit_midpoint"
        )
    assert_array_equal(caught.value.trajectory.t, [0.0])


def test_samples_from_where_it_goes_on_to_rounding():
    """0.1 + 0.2 s is not 0.3 s, but is accepted as such."""
    run = sarrus.simulate(slider(), [0.0], [1.0], 0.2, start=0.1, dt=0.1)
    then = sarrus.simulate(slider(), duration=0.1, resume=run, times=[0.3, 0.35])
    assert run.t[-1] > 0.3
    assert_allclose(then.t, [0.3, 0.35], rtol=1e-15)


def test_a_second_ctrl_c_gets_through():
    """A second Ctrl-C works if a user's function does not return."""

    def stuck(t, q, v):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            time.sleep(1e-3)
            os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("it came back")

    with pytest.raises(KeyboardInterrupt):
        pendulum_runs(controller=stuck)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_that_is_ignored_stays_ignored():
    """Under nohup, Ctrl-C is ignored on purpose."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run = pendulum_runs(controller=lambda t, q, v: os.kill(os.getpid(), signal.SIGINT) or 0.0)
        assert run.status == "finished"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def unreachable():
    """Yield states of a four-bar from which small steps do not lead onto its loop: flat, and open along the line."""
    robot, _, v = four_bar()
    x = np.pi * np.round(np.random.default_rng(0).normal(size=(200, 3)))
    far = ~(np.abs(robot.constraint_residual(robot.project_configuration(x))).max(axis=1) <= 1e-8)
    return robot, x[far], v


def test_loops_too_far_open():
    """The loops are not closed by force: the error gives the gap and the cure."""
    robot, x, v = unreachable()
    assert len(x)
    with pytest.raises(sarrus.StateError, match=r"open by .*mechanism.assemble"):
        sarrus.simulate(robot, x[0], v, 0.01)


def test_checkpoints_know_where_they_belong():
    robot, q, v = four_bar()
    run = sarrus.simulate(robot, q, v, 0.01, PID("motor", 1.0, 1.0))
    travelled = pickle.loads(pickle.dumps(run.checkpoint))
    a, b = (
        sarrus.simulate(robot, duration=0.01, controller=PID("motor", 1.0, 1.0), resume=c)
        for c in (run.checkpoint, travelled)
    )
    assert_array_equal(a.q, b.q)
    with pytest.raises(sarrus.ModelError, match="another mechanism"):
        sarrus.simulate(sarrus.mechanisms.slider_crank(), duration=0.1, resume=run.checkpoint)
    with pytest.raises(sarrus.ModelError, match="another method"):
        sarrus.simulate(robot, duration=0.1, resume=run.checkpoint, controller=PID("motor", 1.0, 1.0), method="euler")
    with pytest.raises(sarrus.ModelError, match="controller"):
        sarrus.simulate(robot, duration=0.1, resume=run.checkpoint)
    # a run that goes on leaves the checkpoint as it is
    assert_array_equal(travelled["x"], run.checkpoint["x"])


WRONG_FIELDS = [
    ({"mechanism": None}, TypeError), ({"mechanism": np.zeros(3)}, TypeError), ({"method": 3}, TypeError),
    ({"x": None}, sarrus.ModelError), ({"x": [np.nan] * 6}, sarrus.ModelError), ({"x": np.zeros((2, 3))}, sarrus.ModelError),
    ({"x": np.full(6, 1j)}, TypeError), ({"x": "much"}, sarrus.ShapeError),
    ({"start": None}, TypeError), ({"start": np.nan}, sarrus.ModelError),
    ({"k": 1.5}, TypeError), ({"k": True}, TypeError), ({"k": -1}, sarrus.ModelError), ({"k": 10**400}, sarrus.ModelError),
    ({"dt": "1"}, TypeError), ({"dt": 0.0}, sarrus.ModelError), ({"dt": np.inf}, sarrus.ModelError),
    ({"t": [0.0]}, TypeError), ({"t": np.inf}, sarrus.ModelError),
    ({"h": None}, TypeError), ({"h": -1.0}, sarrus.ModelError),
    ({"shown": 3.0}, TypeError), ({"shown": (0.0,)}, sarrus.ModelError), ({"shown": ("a", np.zeros(6))}, sarrus.ModelError),
    ({"shown": (np.nan, np.zeros(6))}, sarrus.ModelError), ({"shown": (0.0, np.zeros(5))}, sarrus.ModelError),
    ({"shown": (0.0, np.full(6, np.inf))}, sarrus.ModelError),
    ({"stabilisation": 3}, TypeError), ({"close_stages": "yes"}, TypeError), ({"force_elements": np.zeros(2)}, TypeError),
]  # fmt: skip


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_wrong_fields_of_a_checkpoint(method):
    robot, q, v = four_bar()
    run = sarrus.simulate(robot, q, v, 0.01, method=method)
    for change, error in WRONG_FIELDS:
        (name,) = change
        with pytest.raises(error, match=rf"'{name}' of the checkpoint"):
            sarrus.simulate(robot, duration=0.01, resume=run.checkpoint | change, method=method)
    far = run.checkpoint | {"start": 1e16, "t": 1e16, "k": 0, "shown": (1e16, run.checkpoint["x"])}
    with pytest.raises(ValueError, match="time cannot advance"):
        sarrus.simulate(robot, duration=0.01, resume=far, method=method)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
@pytest.mark.parametrize("error", [StopIteration, RuntimeError, GeneratorExit])
def test_errors_of_callers_come_through_as_they_are(error, method):
    raised = error("enough")

    def fail(t, q, v):
        raise raised

    for given in ({"controller": fail}, {"events": fail}):
        with pytest.raises(error) as caught:
            pendulum_runs(method=method, **given)
        assert caught.value is raised


def test_the_gil_is_free():
    """Another thread runs during simulations in threads; two at once have the results of one after the other."""
    robot, q, v = four_bar()
    alone = sarrus.simulate(robot, q, v, 60.0, times=[60.0])

    def ticks():
        done = []
        work = partial(sarrus.simulate, robot, q, v, 60.0, times=[60.0])
        threads = [threading.Thread(target=lambda: done.append(work())) for _ in range(2)]
        for thread in threads:
            thread.start()
        count = 0
        while any(thread.is_alive() for thread in threads):
            time.sleep(1e-3)
            count += 1
        assert len(done) == 2
        for run in done:
            assert_array_equal(run.q, alone.q)
        return count

    # one, if they held it; a busy machine may let this thread sleep through all of it
    assert any(ticks() > 5 for _ in range(20))


@pytest.mark.parametrize("running", ["rk4", "dopri5", "many", "controller", "event"])
def test_process_ends_while_a_daemon_thread_simulates(running):
    """The thread never gets the GIL again, and must not terminate the process."""
    call = {
        "many": "sarrus.simulate_many(robot, [[0.1]] * 64, [0.0], 1e6, every=10**9, threads=2)",
        "controller": "sarrus.simulate(robot, [0.1], [0.0], 1e4, controller=lambda t, q, v: [0.0])",
        "event": "sarrus.simulate(robot, [0.1], [0.0], 1e4, events=lambda t, q, v: 1.0)",
    }.get(running, f"sarrus.simulate(robot, [0.1], [0.0], 1e4, method='{running}')")
    code = (
        "import threading, time, sarrus\n"
        "robot = sarrus.mechanisms.pendulum()\n"
        f"threading.Thread(target=lambda: {call}, daemon=True).start()\n"
        "time.sleep(0.3)"  # so that it is in the core; sooner, nothing is tested, and nothing fails
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
