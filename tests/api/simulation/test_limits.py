"""Joint limits in a simulation: warnings, end stops, or the end of a run."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.control import PID, CompliantContact, EndStop, FeedforwardEffort, LuGreFriction
from tests.small_mechanisms import METHODS, slider, table

LIMITED = {"limits": (-0.2, 0.2), "velocity_limit": 30.0, "effort_limit": 1.0}
PUSHES = [
    FeedforwardEffort("slide", 50.0),
    PID("slide", proportional=1e4, derivative=10.0, target=5.0),
    lambda t, q, v: [50.0],
    [FeedforwardEffort("slide", 30.0), lambda t, q, v: ([20.0], {"block": [0.0] * 6})],
]


@pytest.mark.parametrize("push", PUSHES)
@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint", "dopri5"])
def test_limits_that_nothing_enforces_warn_once(push, method):
    robot = slider(**LIMITED)
    with pytest.warns(sarrus.LimitWarning) as told:
        run = sarrus.simulate(robot, [0.0], [0.0], 1.0, push, method=method)
    assert len(told) == 1 and told[0].filename == __file__
    assert "position of joint 'slide' leaves its limits (-0.2, 0.2) at t = 0." in str(told[0].message)
    assert "limits='enforce'" in str(told[0].message)
    rounding = 1e-2 if method == "dopri5" else 1e-12  # its steps are not its samples
    left = {x["quantity"]: x for x in run.statistics["limits"]}
    assert left["position"]["reached"] == pytest.approx(np.abs(run.q).max(), rel=rounding)
    assert left["position"]["time"] == run.t[np.argmax(np.abs(run.q[:, 0]) > 0.2)] or method == "dopri5"
    assert left["velocity"]["reached"] == pytest.approx(np.abs(run.v).max(), rel=rounding)
    assert (
        left["effort"]["reached"] == pytest.approx(np.abs(run.tau[:-1]).max(), rel=5e-2)
        and left["effort"]["time"] < 1e-3
    )
    assert sarrus.simulate(robot, [0.0], [0.0], 1.0, push, limits="ignore").statistics["limits"] == []


def test_limits_that_are_kept():
    robot = slider(**LIMITED)
    run = sarrus.simulate(robot, [-0.2], [0.0], 0.3, PID("slide", 2.0, limits=(-1.0, 1.0), target=0.0))
    assert run.statistics["limits"] == []
    # a run that an event ends at a limit has not left it
    reached = sarrus.Event(lambda t, q, v: q[0] - 0.2)
    for method in METHODS:
        run = sarrus.simulate(robot, [0.0], [1.0], 1.0, events=reached, method=method)
        assert run.t[-1] == pytest.approx(0.2, rel=1e-9) and run.statistics["limits"] == []


def test_a_limit_left_between_samples():
    with pytest.warns(sarrus.LimitWarning, match="reaches 0.2"):
        run = sarrus.simulate(
            slider(limits=(-1.0, 0.2), stiffness=4.0), [0.0], [0.5], np.pi / 2, times=[0.0, np.pi / 2]
        )
    assert run.q.max() < 0.01 and run.statistics["limits"][0]["reached"] == pytest.approx(0.25, abs=1e-6)


@pytest.mark.parametrize("push", PUSHES)
@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint", "dopri5"])
def test_limits_that_stop(push, method):
    """The effort is limited to 1 N, and the joint stays at its end stop; tau contains all forces."""
    run = sarrus.simulate(slider(**LIMITED), [0.0], [0.0], 3.0, push, method=method, limits="enforce")
    assert run.q.max() < 0.2 + 2e-3
    assert run.q[-1, 0] == pytest.approx(0.2 + 1.0 / 2.5e5, abs=1e-6)
    before = run.t < 0.6
    assert_array_equal(run.tau[before], 1.0)
    assert_allclose(run.q[before, 0], 0.5 * run.t[before] ** 2, atol=1e-9)
    assert run.tau[-1, 0] == pytest.approx(0.0, abs=1e-3)
    assert run.tau.min() < -10.0


def test_wrenches_are_no_motors():
    """Wrenches of a controller and friction are not limited."""
    robot = slider(effort_limit=1.0)
    run = sarrus.simulate(
        robot, [0.0], [0.0], 0.1, lambda t, q, v: ([5.0], {"block": [0.0, 0.0, 0.0, 7.0, 0.0, 0.0]}), limits="enforce"
    )
    assert_allclose(run.tau, 8.0, rtol=1e-14)
    run = sarrus.simulate(robot, [0.0], [3.0], 0.01, LuGreFriction("slide", 20.0), limits="enforce")
    assert run.tau[-1, 0] == pytest.approx(-20.0, rel=1e-2)


def test_a_saturated_pid_does_not_wind_up():
    """Its integral stops while the joint's effort limit is active, as for its own limits."""
    robot, q, v = slider(effort_limit=1.0, limits=(-9.0, 9.0)), [0.0], [0.0]
    gains = {"proportional": 4.0, "integral": 2.0, "derivative": 4.0, "target": 1.0}
    own = sarrus.simulate(robot, q, v, 5.0, PID("slide", **gains, limits=(-1.0, 1.0)), limits="ignore")
    by_joint = sarrus.simulate(robot, q, v, 5.0, PID("slide", **gains), limits="enforce")
    assert_array_equal(own.q, by_joint.q)


def test_velocity_limits_only_warn():
    with pytest.warns(sarrus.LimitWarning, match=r"velocity of joint 'slide' .* \(-2, 2\) at t = 0 s and reaches -3"):
        sarrus.simulate(slider(velocity_limit=2.0), [0.0], [-3.0], 0.1, limits="enforce")


@pytest.mark.parametrize("element", [PID("glide", index=1), EndStop("glide", (0.0, 1.0), index=0)])
def test_planar_coordinates_that_are_no_integrals(element):
    """Velocities of a planar joint are along rotating axes: effort along one does not act along x or y."""
    b = sarrus.Builder("planar")
    b.add_body("puck", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("glide", sarrus.Planar("z"), "ground", "puck")
    with pytest.raises(sarrus.ModelError, match=r"coordinate . of 'glide', .* is not such a coordinate"):
        sarrus.simulate(b.build(), np.zeros(3), np.zeros(3), 0.1, element)


@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint"])
def test_a_stopped_run_goes_on_bit_for_bit(method):
    options = {"controller": PUSHES[1], "limits": "enforce", "method": method}
    robot = slider(**LIMITED)
    whole = sarrus.simulate(robot, [0.0], [0.0], 1.0, **options)
    first = sarrus.simulate(robot, [0.0], [0.0], 0.6371, **options)
    then = sarrus.simulate(robot, duration=1.0 - 0.6371, resume=first, **options)
    assert_array_equal(then.q[-1], whole.q[-1])
    assert_array_equal(then.v[-1], whole.v[-1])


def test_auto_goes_on_by_the_method_that_it_began_with():
    robot = table()
    run = sarrus.simulate(robot, [0.0, 0.1], [0.0, 0.0], 0.1, CompliantContact("block", radius=0.1))
    assert run.statistics["method"] == "rosenbrock"
    assert sarrus.simulate(robot, duration=0.1, resume=run).statistics["method"] == "rosenbrock"
    assert sarrus.simulate(robot, [0.0, 0.1], [0.0, 0.0], 0.1).statistics["method"] == "rk4"


@pytest.mark.parametrize(
    ("element", "error", "words"),
    [
        (EndStop("slide"), sarrus.ModelError, "has no limits"),
        (EndStop("slide", (1.0, 0.0)), sarrus.ModelError, "limits of EndStop"),
        (EndStop("slide", (0.0, 1.0), stiffness=0.0), sarrus.ModelError, "stiffness of EndStop must be positive"),
        (EndStop("slide", (0.0, 1.0), damping=-1.0), sarrus.ModelError, "damping of EndStop must not be negative"),
        (EndStop("slide", (0.0, 1.0), index=1), sarrus.ModelError, "index 1"),
        (EndStop("slode", (0.0, 1.0)), sarrus.NameNotFoundError, "slide"),
    ],
)
def test_bad_end_stops(element, error, words):
    with pytest.raises(error, match=words):
        sarrus.simulate(slider(), [0.0], [0.0], 0.1, element)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("effort", [1e160, 1e300])
def test_efforts_that_overflow(method, effort):
    """Every method reports the overflow."""
    robot = sarrus.mechanisms.double_pendulum()
    with pytest.raises(sarrus.IntegrationError, match="diverges"):
        sarrus.simulate(robot, [0.1, 0.0], [0.0, 0.0], 0.01, FeedforwardEffort(robot.joints[0], effort), method=method)
