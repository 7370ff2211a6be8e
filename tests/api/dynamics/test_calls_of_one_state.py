"""The short way of derivatives for one state in plain arrays returns what the general way returns."""

import dataclasses
import pickle

import numpy as np
import pytest

import sarrus
from sarrus import derivatives, mechanisms
from sarrus.analysis.closing import on_its_tree

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


# ---- functions that combine several kernels --------------------------------------------------------------------------


COMPOSED = {
    "arm": mechanisms.stanford_arm(), "loop": mechanisms.four_bar(), "delta": mechanisms.delta(), "redundant": mechanisms.five_bar(actuated=3),
    "overconstrained": mechanisms.bricard(), "floats": mechanisms.free_flyer(), "rolls": mechanisms.whipple_bicycle(),
    "motor in a loop joint": on_its_tree(mechanisms.four_bar(), actuated=mechanisms.four_bar().loop_joints),
}  # fmt: skip


def composed_calls(robot):
    """Yield functions of arrays, and their arrays."""
    q = robot.assemble()
    v, tau = robot.project_velocity(q, np.full(robot.nv, 0.3)), np.linspace(-1.0, 1.0, robot.nv)
    a = robot.forward_dynamics(q, v, tau)
    yield "linearize", robot.linearize, (q, v, tau)
    yield "linearize, no force", robot.linearize, (q, v)
    yield "joint_states", robot.joint_states, (q, v, a)
    yield "joint_states, q", robot.joint_states, (q,)
    yield "joint_states, v", robot.joint_states, (q, v)
    yield "forward_dynamics", lambda *x: robot.forward_dynamics(*x, return_reactions=True), (q, v, tau)
    yield "impact", robot.impact, (q, tau)
    yield "impact, elastic", lambda *x: robot.impact(*x, restitution=0.5), (q, tau)
    fixed = {name: 0.2 for name in robot.actuated[:1] if robot.joint(name).type.nv == 1}
    if fixed and robot.nc:
        robot.complete_velocity(q, fixed)
        yield "complete_velocity", lambda q: robot.complete_velocity(q, fixed), (q,)
        yield "complete_acceleration", lambda *x: robot.complete_acceleration(*x, fixed), (q, v)
    driven = robot.nc == 0 or robot.actuator_efforts(q, v, a, return_status=True)[1] == 0
    if driven:
        yield "joint_wrenches", robot.joint_wrenches, (q, v, a)
    if driven and robot.nc and robot.nu:
        most = abs(robot.actuator_efforts(q, v, a)).max()
        yield "reactions", lambda *x: robot.actuator_efforts(*x, return_reactions=True), (q, v, a)
        yield "wide limits", lambda *x: robot.actuator_efforts(*x, limits=(-2.0 * most, 2.0 * most)), (q, v, a)
        yield "derivatives", lambda *x: derivatives.actuator_efforts(robot, *x), (q, v, a)


def assert_same(short, general):
    assert type(short) is type(general)
    if isinstance(short, np.ndarray):
        assert short.flags.writeable
        np.testing.assert_array_equal(short, general)
    elif isinstance(short, dict):
        assert list(short) == list(general)
        for name, value in short.items():
            assert_same(value, general[name])
        if hasattr(short, "efforts"):
            assert_same(short.efforts, general.efforts)
            assert short.indeterminate == general.indeterminate
    elif isinstance(short, tuple):
        for value, expected in zip(short, general, strict=True):
            assert_same(value, expected)
    elif dataclasses.is_dataclass(short):
        assert repr(short) == repr(general)
        for field in dataclasses.fields(short):
            assert_same(getattr(short, field.name), getattr(general, field.name))
    else:
        assert short == general


COMPOSED_CASES = [
    (f"{kind}-{name}", function, arrays)
    for kind, robot in COMPOSED.items()
    for name, function, arrays in composed_calls(robot)
]


@pytest.mark.parametrize(("name", "function", "arrays"), COMPOSED_CASES, ids=[name for name, *_ in COMPOSED_CASES])
def test_several_kernels(name, function, arrays):
    assert_same(function(*arrays), function(*(x.tolist() for x in arrays)))


def test_limits_that_are_reached():
    """Redundant motors share a motion anew; a motion that needs more than the limits raises the error of the general way."""
    robot = COMPOSED["redundant"]
    q, rest = robot.assemble(), np.zeros(robot.nv)
    free, inner = robot.actuator_efforts(q, rest, rest), robot.internal_efforts(q)[:, 0]
    least = min(abs(free + x * inner).max() for x in np.linspace(-2.0, 2.0, 401))
    most = 0.5 * (least + abs(free).max())
    assert least < 0.99 * abs(free).max()
    for limits in ((-most, most), (np.full(robot.nu, -most), np.full(robot.nu, most)), (-np.inf, most)):
        short, general = (
            robot.actuator_efforts(*state, limits=limits) for state in ((q, rest, rest), (q.tolist(), rest, rest))
        )
        assert_same(short, general)
        assert (short <= most * (1.0 + 1e-12)).all() and (short >= np.multiply(limits[0], 1.0 + 1e-12)).all()
    for wrong, error in (
        ((-1e-6, 1e-6), sarrus.NotRealizableError),
        ((1.0, -1.0), ValueError),
        ((np.nan, 1.0), ValueError),
        (1.0, sarrus.ShapeError),
    ):
        with pytest.raises(error):
            robot.actuator_efforts(q, rest, rest, limits=wrong)


@pytest.mark.parametrize("axes", ["frame", "world_aligned"])
@pytest.mark.parametrize("size", [3, 6])
def test_motions_of_frames(axes, size):
    """The second call uses what the first one has prepared; lists of integers go the general way."""
    robot = COMPOSED["delta"]
    q, motion = robot.assemble(fixed={robot.actuated[0]: 0.3}), [0.0] * (size - 3) + [1.0, -2.0, 3.0]
    out = np.empty(robot.nv)
    for frames in ({"platform": np.array(motion)}, {"platform": tuple(motion)}):
        first, short = (robot.complete_velocity(q, frames=frames, expressed_in=axes) for _ in range(2))
        general = robot.complete_velocity(q, frames={"platform": [int(x) for x in motion]}, expressed_in=axes)
        np.testing.assert_allclose(short, general, rtol=0, atol=1e-13)
        np.testing.assert_allclose(first, general, rtol=0, atol=1e-13)
        assert robot.complete_velocity(q, frames=frames, expressed_in=axes, out=out) is out
        np.testing.assert_array_equal(out, short)
    for wrong, error in ((np.array([np.nan] * size), sarrus.StateError), (np.zeros(4), sarrus.ShapeError)):
        with pytest.raises(error):
            robot.complete_velocity(q, frames={"platform": wrong}, expressed_in=axes)
    with pytest.raises(TypeError, match="unexpected keyword"):
        robot.complete_velocity(q, frames=frames, expressed_in=axes, near=q)


def test_states_without_a_result():
    """Errors are those of the general way."""
    robot = COMPOSED["loop"]
    q, rest = robot.assemble(), np.zeros(3)
    functions = (
        robot.linearize, lambda q, v: robot.joint_states(q, v, v), lambda q, v: robot.joint_wrenches(q, v, v), robot.impact,
        lambda q, v: robot.actuator_efforts(q, v, v, limits=(-1.0, 1.0)), lambda q, v: derivatives.actuator_efforts(robot, q, v, v),
        lambda q, v: robot.forward_dynamics(q, v, v, return_reactions=True),
    )  # fmt: skip
    off = q + 0.1
    for function in functions:
        for state in ((np.full(3, np.nan), rest), (q, np.full(3, np.inf)), (q, np.zeros(2)), (off, rest), (None, rest)):
            ends = []
            for given in (state, tuple(x if x is None else x.tolist() for x in state)):
                try:
                    ends.append(repr(function(*given)))
                except (sarrus.SarrusError, TypeError, ValueError) as error:
                    ends.append((type(error), str(error).replace("\n", " ")))
            assert ends[0] == ends[1] or "list" in str(ends[1])


@pytest.mark.parametrize("count", [0, 1, 2, 10])
def test_wrenches(count):
    """A few wrenches take the short way, many the general one; the results agree with those of lists, and errors name the wrench."""
    robot = COMPOSED["delta"]
    q, zero = robot.assemble(), np.zeros(robot.nv)
    pushes = {frame: np.arange(6.0) + k for k, frame in enumerate(robot.frames[:count])}
    assert len(pushes) == count
    for function in (robot.forward_dynamics, robot.inverse_dynamics, robot.bias_forces, robot.actuator_efforts):
        state = (q, zero) if function == robot.bias_forces else (q, zero, zero)
        short = function(*state, wrenches=pushes)
        general = function(*state, wrenches={frame: x.tolist() for frame, x in pushes.items()})
        np.testing.assert_array_equal(short, general)
    for frame in pushes:
        for wrong, error, match in (
            (np.full(6, np.nan), sarrus.StateError, "wrenches"), (np.zeros(5), sarrus.ShapeError, "wrenches"), (np.full(6, 1j), TypeError, "wrenches"),
        ):  # fmt: skip
            with pytest.raises(error, match=match):
                robot.forward_dynamics(q, zero, zero, wrenches=pushes | {frame: wrong})
    with pytest.raises(sarrus.NameNotFoundError, match="nobody"):
        robot.forward_dynamics(q, zero, zero, wrenches=pushes | {"nobody": np.zeros(6)})
    memory = np.zeros(robot.nv)
    with pytest.raises(sarrus.ShapeError, match="shares memory"):
        robot.forward_dynamics(q, zero, zero, wrenches={"platform": memory[:6]}, out=memory)
