"""The short way of derivatives for one state in plain arrays returns what the general way returns."""

import dataclasses
import pickle

import numpy as np
import pytest

import sarrus
from sarrus import derivatives, mechanisms

COTANGENT = {"inverse_dynamics_vjp", "forward_dynamics_vjp"}
ROBOTS = {"arm": mechanisms.stanford_arm(), "loop": mechanisms.four_bar(), "floats": mechanisms.free_flyer()}


def calls(robot):
    """Return the arguments of each function, for one state."""
    q = robot.assemble()
    v = robot.project_velocity(q, np.full(robot.nv, 0.3))
    a, w, frame = np.linspace(0.2, 1.0, robot.nv), np.linspace(1.0, -0.5, robot.nv), robot.bodies[-1]
    motion, moves = (q, v, a), (w, 2.0 * w, 3.0 * w)
    yield from (
        ("inverse_dynamics", motion),
        ("forward_dynamics", motion),
        ("inverse_dynamics_jvp", motion + moves),
        ("inverse_dynamics_vjp", (*motion, w)),
        ("forward_dynamics_vjp", (*motion, w)),
        ("velocity", (q, v, frame)),
        ("acceleration", (q, v, a, frame)),
        ("momentum", (q, v)),
        ("centroidal_momentum", (q, v)),
        ("kinetic_energy", (q, v)),
        ("constraint_rates", (q, v)),
        ("integrate", (q, v)),
        ("difference", (q, q)),
    )
    if robot.nc:
        dq = robot.project_velocity(q, w)
        yield "forward_dynamics_jvp", (*motion, dq, dq, w)
    if robot.nu and robot.nc:
        a = robot.forward_dynamics(q, v, a)
        yield "actuator_efforts_vjp", (q, v, a, np.ones(robot.nu))


CASES = [(kind, name, arguments) for kind, robot in ROBOTS.items() for name, arguments in calls(robot)]


@pytest.mark.parametrize(("kind", "name", "arguments"), CASES, ids=[f"{kind}-{name}" for kind, name, _ in CASES])
def test_plain_arrays_and_lists(kind, name, arguments):
    robot, function = ROBOTS[kind], getattr(derivatives, name)
    short, general = (
        function(robot, *(x if isinstance(x, str) else convert(x) for x in arguments))
        for convert in (np.asarray, np.ndarray.tolist)
    )
    assert type(short) is type(general)
    if isinstance(short, np.ndarray):
        np.testing.assert_array_equal(short, general)
        return
    assert repr(short) == repr(general)
    for field in dataclasses.fields(short):
        value, expected = (getattr(result, field.name) for result in (short, general))
        if field.name.startswith("_") or expected is None:
            continue
        np.testing.assert_array_equal(value, expected)
        assert value.flags.writeable


@pytest.mark.parametrize("kind", ROBOTS)
def test_later_changes_of_the_inputs(kind):
    """What is computed at first access is about the state of the call."""
    robot = ROBOTS[kind]
    q = robot.assemble()
    x = np.zeros(robot.nv)
    for function, attributes in (
        (derivatives.inverse_dynamics, ("parameters", "dimensions")),
        (derivatives.forward_dynamics, ("dimensions",)),
    ):
        inputs = (q.copy(), x.copy(), x.copy())
        D, expected = function(robot, *inputs), function(robot, q.tolist(), x.tolist(), x.tolist())
        for values in inputs:
            values += 0.3
        for name in attributes:
            np.testing.assert_array_equal(getattr(D, name), getattr(expected, name))
        np.testing.assert_array_equal(D.q, expected.q)


def test_multipliers_and_copies():
    robot = ROBOTS["loop"]
    q, zero = robot.assemble(), np.zeros(3)
    D, expected = (
        derivatives.forward_dynamics(robot, *state) for state in ((q, zero, zero), (q.tolist(), [0] * 3, [0] * 3))
    )
    np.testing.assert_array_equal(D.multipliers.q, expected.multipliers.q)
    again = pickle.loads(pickle.dumps(D))
    np.testing.assert_array_equal(again.multipliers.tau, expected.multipliers.tau)
    with pytest.raises(dataclasses.FrozenInstanceError):
        D.q = zero


def test_arguments_of_the_short_way():
    """Everything that is not one state of a mechanism in plain arrays is refused with the general errors, or goes the general way."""
    robot = ROBOTS["loop"]
    q, zero = robot.assemble(), np.zeros(3)
    for wrong in (np.zeros(4), np.full(3, np.nan), None, "q"):
        with pytest.raises((sarrus.StateError, sarrus.ShapeError, TypeError)) as of_array:
            derivatives.forward_dynamics(robot, wrong, zero, zero)
        with pytest.raises(of_array.type):
            derivatives.forward_dynamics(robot, wrong, zero.tolist(), zero)
    for function in (derivatives.forward_dynamics, derivatives.inverse_dynamics, derivatives.momentum):
        for someone in (None, 3, robot.description):
            with pytest.raises(TypeError, match="Mechanism"):
                function(someone, q, zero, zero) if function is not derivatives.momentum else function(someone, q, zero)
    for name in ("inverse_dynamics_jvp", "forward_dynamics_jvp"):
        with pytest.raises(sarrus.ShapeError, match="dv"):
            getattr(derivatives, name)(robot, q, zero, zero, zero, np.zeros(2), zero)
    several = robot.variants(gravity=[(0, 0, -9.81), (0, 0, -1.6)])
    assert derivatives.forward_dynamics(several, q, zero, zero).q.shape == (2, 3, 3)
    rough = robot.replace(friction={"motor": 0.1})
    with pytest.warns(sarrus.ModelWarning, match="at rest"):
        derivatives.forward_dynamics(rough, q, zero, zero)
