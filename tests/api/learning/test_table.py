"""Derivatives of the functions for other programs, compared with differences by array entries."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import _differentiable
from tests.api.learning.states import NAMES, asked, on_loops, stewart

ON_LOOPS = (
    "forward_dynamics",
    "actuator_efforts",
    "step",
    "rollouts",
)  # others are of the tree, and have derivatives along all of it
H = 1e-5  # differences are good to H^2 and eps / H times what a function's values are


def moved(name, f, x, dx):
    """Return the state after a change, on the loops if the change is."""
    kinds = [key if key in "qv" and name in ON_LOOPS else "" for key in f.row.inputs]
    return on_loops(kinds, [one + d for one, d in zip(x, dx)])


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_differences(name):
    """Along an allowed motion, if the loops matter."""
    f, x = asked(name)
    rng = np.random.default_rng(1)
    y = f.value(*x)
    dx = [H * rng.standard_normal(one.shape) for one in x]
    after, before = moved(name, f, x, dx), moved(name, f, x, [-one for one in dx])
    change = [(a - b) / (2 * H) for a, b in zip(after, before)]
    differences = [(a - b) / (2 * H) for a, b in zip(f.value(*after), f.value(*before))]
    w = [rng.standard_normal(one.shape) for one in y]
    along = sum(np.vdot(a, b) for a, b in zip(w, differences))
    scale = sum(np.linalg.norm(a) * np.linalg.norm(b) for a, b in zip(w, differences))
    back = sum(np.vdot(g, d) for g, d in zip(f.vjp(x, y, w), change))
    assert abs(back - along) < 1e-6 * scale
    if f.row.jvp is not None:
        on = f.jvp(x, y, change)
        for got, expected in zip(on, differences):
            assert_allclose(got, expected, atol=1e-6 * max(1.0, abs(np.asarray(expected)).max()))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "rollouts"])
def test_back_is_the_transpose_of_on(name):
    f, x = asked(name)
    rng, y = np.random.default_rng(2), f.value(*x)
    dx, w = ([rng.standard_normal(one.shape) for one in of] for of in (x, y))
    on, back = (np.array([np.vdot(a, b) for a, b in zip(*of)]) for of in ((w, f.jvp(x, y, dx)), (dx, f.vjp(x, y, w))))
    assert abs(on.sum() - back.sum()) < 1e-9 * (abs(on).sum() + abs(back).sum())


@pytest.mark.parametrize("name", ["forward_dynamics", "step", "pose", "kinetic_energy"])
def test_gradients_by_entries_are_of_the_nearest_state(name):
    """By every entry of every array, including quaternions, on and off the loops."""
    f, x = asked(name)
    y = f.value(*x)
    w = [np.random.default_rng(3).standard_normal(one.shape) for one in y]
    for k, g in enumerate(f.vjp(x, y, w)):
        for i in range(x[k].size):
            sides = []
            for h in (H, -H):
                there = [one.copy() for one in x]
                there[k].flat[i] += h
                there[0] = stewart().normalize(there[0])
                values = f.value(*moved(name, f, there, [0.0] * len(there)))
                sides.append(sum(np.vdot(a, b) for a, b in zip(w, values)))
            assert abs(g.flat[i] - (sides[0] - sides[1]) / (2 * H)) < 1e-6 * (1.0 + abs(g).max()), (k, i)


def test_nothing_comes_of_a_quaternion_s_length():
    f, x = asked("pose")
    at = stewart().joint("float").q_slice
    quaternion = x[0][at][:4]
    (g,) = f.vjp(x, f.value(*x), [np.ones((4, 4))])
    assert abs(g[at][:4] @ quaternion) < 1e-12 * abs(g).max() > 0.0


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_its_states(name):
    (f, a), (_, b) = asked(name, 0), asked(name, 1)
    if name == "assemble":
        b = [one + 1e-3 for one in a]
    both = [np.stack(pair) for pair in zip(a, b)]
    y = f.value(*both)
    assert [one.shape for one in y] == f.outputs([one.shape for one in both])
    w = [np.random.default_rng(4).standard_normal(one.shape) for one in y]
    g = f.vjp(both, y, w)
    for i, x in enumerate((a, b)):
        alone = f.value(*x)
        for got, expected in zip(y, alone):
            assert_allclose(got[i], expected, atol=1e-9 * max(1.0, abs(np.asarray(expected)).max()))
        for got, expected in zip(g, f.vjp(x, alone, [one[i] for one in w])):
            assert_allclose(got[i], expected, atol=1e-8 * max(1.0, abs(expected).max()))


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_nothing_is_nothing(name):
    f, x = asked(name)
    none = [np.zeros((0, *one.shape)) for one in x]
    y = f.value(*none)
    assert [one.shape for one in y] == f.outputs([one.shape for one in none])
    for got, given in zip(f.vjp(none, y, [np.zeros_like(one) for one in y]), none):
        assert got.shape == given.shape
    if f.row.jvp is not None:
        assert [one.shape for one in f.jvp(none, y, none)] == [one.shape for one in y]


def test_rollouts_are_steps():
    f, x = asked("rollouts", every=1)
    step, _ = asked("step")
    q, v, u = x
    rows = [(q, v)]
    for one in u:
        rows.append(step.value(*rows[-1], one))
    for got, expected in zip(f.value(*x), zip(*rows)):
        assert_allclose(got, np.stack(expected), atol=1e-10)


def test_a_run_that_fails_is_an_error_for_a_single_state_and_nan_in_a_batch():
    robot = sarrus.mechanisms.bennett()
    q, v = np.array([0.1, 2.8, -2.2]), np.zeros(3)  # off the loops
    for name, u in (("step", np.ones(1)), ("rollouts", np.ones((2, 1)))):
        f, _ = _differentiable.function(name, robot, (None, None, None, 1e-3), {})
        with pytest.raises(sarrus.StateError, match="the run of this state ends with the status 'invalid state'"):
            f.value(q, v, u)
        both = f.value(np.stack([q, robot.assemble()]), np.stack([v, v]), np.stack([u, u]))
        for got in both:
            assert np.isnan(got[0]).all() and np.isfinite(got[1]).all()


def test_what_the_way_forth_made_serves_the_way_back():
    f, x = asked("rollouts")
    remembers = _differentiable.Function(f.row, f.robot, f.options, remembers=True)
    y = remembers.value(*x)
    w = [np.ones_like(one) for one in y]
    first = remembers.vjp(x, y, w)
    for got, expected in zip(first, f.vjp(x, y, w)):
        assert_array_equal(got, expected)
    assert "runs" in remembers.memory and "runs" not in f.memory
    two = [np.stack([one, one]) for one in x]  # more runs than are remembered
    for got, expected in zip(remembers.vjp(two, f.value(*two), [np.stack([one, one]) for one in w]), first):
        assert_allclose(got[1], expected, rtol=1e-9, atol=1e-12)


def test_what_does_not_fit_is_refused():
    f, x = asked("forward_dynamics")
    with pytest.raises(sarrus.ShapeError, match=r"v of 'Stewart platform' must have shape \(..., 24\)"):
        f.spread([x[0].shape, x[0].shape, x[1].shape])
    with pytest.raises(sarrus.ShapeError, match="leading axes do not broadcast"):
        f.spread([(2, *x[0].shape), (3, *x[1].shape), x[1].shape])
    with pytest.raises(TypeError, match="missing a required argument: 'tau'"):
        _differentiable.function("forward_dynamics", stewart(), (x[0], x[1]), {})
    with pytest.raises(TypeError, match="robot must be a Mechanism"):
        _differentiable.function("forward_dynamics", 3, (x[0], x[1], x[2]), {})
    f, x = asked("rollouts", every=0)
    with pytest.raises(ValueError, match="every must be at least 1; got 0"):
        f.spread([one.shape for one in x])
    runs, x = asked("rollouts")
    with pytest.raises(sarrus.ModelError, match="reverse-mode derivatives only"):
        runs.jvp(x, runs.value(*x), x)
