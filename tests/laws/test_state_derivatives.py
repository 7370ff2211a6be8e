"""Derivatives of functions of a state, compared with differences on the manifold, and closed forms."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from tests.effort import examples
from tests.laws.test_derivatives import NEAR, SMOOTH, assert_close, columns
from tests.laws.test_variants import four_bars
from tests.public import of
from tests.random_closed import closed_mechanisms
from tests.random_mechanisms import PLACES, mechanisms, random_state, seeds

D = sarrus.derivatives
EXACT = 1e-11  # the same numbers by two ways
AXES = ("frame", "world_aligned", "world")


def by_each(robot, f, *inputs, configurations=1):
    """Return differences of f by each input, of which the first is the configuration, along every displacement."""
    one = np.eye(robot.nv)
    if robot.nv == 0:
        return [np.zeros((*np.shape(f(*inputs)), 0)) for _ in inputs]

    def moved(k):
        def at(d):
            x = robot.integrate(inputs[k], d) if k < configurations else inputs[k] + d
            return f(*inputs[:k], x, *inputs[k + 1 :])

        return columns(at, one)

    return [moved(k) for k in range(len(inputs))]


def assert_parts(found, expected, names):
    for name, matrix in zip(names, expected, strict=True):
        assert_close(getattr(found, name), matrix, NEAR)


@examples(25)
@given(mechanisms(springs=True, armature=True, backward=st.sampled_from([0.0, 0.5])), seeds(), st.sampled_from(PLACES))
def test_of_trees(robot, seed, place):
    """Every joint, in both directions; also at and near the neutral configuration, where rotations use series."""
    rng = np.random.default_rng(seed)
    q, v, a = random_state(robot, rng, place)
    frame, axes = rng.choice(robot.frames), rng.choice(AXES)
    assert_close(D.pose(robot, q, frame), by_each(robot, lambda q: robot.pose(q, frame), q)[0], NEAR)
    of_velocity = by_each(robot, lambda q, v: robot.velocity(q, v, frame, expressed_in=axes), q, v)
    assert_parts(D.velocity(robot, q, v, frame, expressed_in=axes), of_velocity, "qv")
    of_acceleration = by_each(robot, lambda q, v, a: robot.acceleration(q, v, a, frame, expressed_in=axes), q, v, a)
    assert_parts(D.acceleration(robot, q, v, a, frame, expressed_in=axes), of_acceleration, "qva")
    for name in ("momentum", "centroidal_momentum", "kinetic_energy"):
        assert_parts(getattr(D, name)(robot, q, v), by_each(robot, of(robot, name), q, v), "qv")
    for name in ("center_of_mass", "gravity_forces", "potential_energy"):
        assert_close(getattr(D, name)(robot, q), by_each(robot, getattr(robot, name), q)[0], NEAR)


@examples(15)
@given(mechanisms(springs=True, armature=True), seeds())
def test_in_closed_form(robot, seed):
    rng = np.random.default_rng(seed)
    q, v, a = random_state(robot, rng)
    M, frame = robot.mass_matrix(q), rng.choice(robot.frames)
    J = robot.jacobian(q, frame)
    X = robot.pose(q, frame)
    turn = np.einsum("ic,jcn->ijn", X[:3, :3], np.cross(np.eye(3)[:, :, None], -J[None, :3], axis=1))
    of_pose = D.pose(robot, q, frame)
    assert_close(of_pose[:3, :3], turn, EXACT)
    assert_close(of_pose[:3, 3], X[:3, :3] @ J[3:], EXACT)
    assert_array_equal(of_pose[3], 0.0)
    assert_close(D.velocity(robot, q, v, frame).v, J, EXACT)
    assert_close(D.acceleration(robot, q, v, a, frame, expressed_in="world_aligned").a, robot.jacobian(q, frame, expressed_in="world_aligned"), EXACT)  # fmt: skip
    assert_close(D.centroidal_momentum(robot, q, v).v, sarrus.floating.centroidal_momentum_matrix(robot, q), EXACT)
    assert_close(D.kinetic_energy(robot, q, v).v, M @ v, EXACT)
    assert_close(D.potential_energy(robot, q), robot.inverse_dynamics(q, 0 * v, 0 * v), EXACT)


@examples(25)
@given(mechanisms(), seeds(), st.sampled_from(["random", "nothing", "little", "long"]))
def test_of_configurations(robot, seed, how):
    rng = np.random.default_rng(seed)
    q, dv, _ = random_state(robot, rng)
    dv *= {"random": 0.3, "nothing": 0.0, "little": 1e-9, "long": 3.0}[how]
    one, q1 = np.eye(robot.nv), robot.integrate(q, dv)
    there = by_each(robot, lambda q, dv: robot.difference(q1, robot.integrate(q, dv)), q, dv)
    found = D.integrate(robot, q, dv)
    assert_parts(found, there, ("q", "dv"))
    E, N = D.coordinates_by_tangent(robot, q), D.tangent_by_coordinates(robot, q)
    assert_close(N @ E, one, EXACT)
    assert_close(E, columns(lambda d: robot.integrate(q, d), one) if robot.nv else np.zeros((robot.nq, 0)), NEAR)
    assert_close(N @ robot.normalize(q), D.tangent_by_coordinates(robot, robot.normalize(q)) @ q, EXACT)
    if how != "long":  # less than half a turn
        back = by_each(robot, robot.difference, q, q1, configurations=2)
        difference = D.difference(robot, q, q1)
        assert_parts(difference, back, ("q0", "q1"))
        assert_close(difference.q1 @ found.dv, one, 1e-9)  # the inverse
        assert_close(difference.q0 + difference.q1 @ found.q, 0 * one, 1e-9)


@examples(20)
@given(closed_mechanisms(kinds=st.just(SMOOTH)), seeds())
def test_of_constraints(closed, seed):
    """Every kind of constraint and loop joint, on and off the loops."""
    robot, (q, v, _, time) = closed.robot, closed.state
    J = robot.constraint_jacobian(q, time=time)
    held = [row for c in robot.constraints for row in robot.constraint(c).holonomic]
    assert_close(D.constraint_residual(robot, q, time=time)[held], J[held], 1e-9)
    assert_close(D.constraint_rates(robot, q, v, time=time).v, J, EXACT)
    away = robot.integrate(q, 0.05 * np.random.default_rng(seed).normal(size=robot.nv))
    for at in (q, away):
        if np.abs(robot.constraint_jacobian(at, time=time)).max(initial=0.0) > 1e3:
            continue  # next to where a row has no direction
        residual = by_each(robot, lambda q: robot.constraint_residual(q, time=time), at)[0]
        assert_close(D.constraint_residual(robot, at, time=time), residual, 1e-6)
        rates = by_each(robot, lambda q, v: robot.constraint_jacobian(q, time=time) @ v, at, v)
        assert_parts(D.constraint_rates(robot, at, v, time=time), rates, "qv")


CALLS = {
    "pose": ("q", "frame"), "velocity": ("qv", "frame"), "acceleration": ("qva", "frame"), "center_of_mass": ("q",), "momentum": ("qv",),
    "centroidal_momentum": ("qv",), "gravity_forces": ("q",), "kinetic_energy": ("qv",), "potential_energy": ("q",),
    "constraint_residual": ("q",), "constraint_rates": ("qv",), "integrate": ("qv",), "difference": ("qQ",),
    "coordinates_by_tangent": ("q",), "tangent_by_coordinates": ("q",),
}  # fmt: skip


def arrays(answer):
    return [answer] if isinstance(answer, np.ndarray) else [getattr(answer, name) for name in vars(answer)]


@pytest.mark.parametrize("name", CALLS)
def test_batches_threads_statuses_and_places(name):
    robot, rng = sarrus.mechanisms.stewart(), np.random.default_rng(0)
    q = robot.integrate(robot.assemble(), 0.1 * rng.normal(size=(7, robot.nv)))
    inputs = {"q": q, "Q": q[::-1], "v": rng.normal(size=(7, robot.nv)), "a": rng.normal(size=(7, robot.nv))}
    letters, *frame = CALLS[name]
    frame = ["platform"] * len(frame)
    function, state = getattr(D, name), [inputs[letter] for letter in letters]
    many = arrays(function(robot, *state, *frame))
    for i in range(7):
        for batch, one in zip(many, arrays(function(robot, *(x[i] for x in state), *frame)), strict=True):
            assert_allclose(batch[i], one, rtol=0, atol=1e-14)  # the Jacobian goes in lanes
    threaded, status = function(robot, *state, *frame, threads=2, return_status=True)
    assert_array_equal(status, 0)
    for batch, one in zip(many, arrays(threaded), strict=True):
        assert_array_equal(batch, one)
    q[2] = np.nan
    broken, status = function(robot, *state, *frame, return_status=True)
    rows = [2, 4] if name == "difference" else [2]
    assert sorted(np.flatnonzero(status)) == rows
    assert all(np.isnan(x[2]).all() for x in arrays(broken))
    if len(many) == 1:
        one = [x[0] for x in state]
        out = np.empty_like(many[0][0])
        assert function(robot, *one, *frame, out=out) is out
        assert_array_equal(out, function(robot, *one, *frame))
    with pytest.raises(TypeError, match="must be a Mechanism"):
        function("arm", *state, *frame)


def test_of_variants():
    variants, each = four_bars(5)
    q = variants.assemble(fixed={"motor": 0.6})
    v = np.random.default_rng(0).normal(size=q.shape)
    for name, (letters, *frame) in CALLS.items():
        inputs = [{"q": q, "Q": q + 0.1, "v": v, "a": v}[letter] for letter in letters]
        frame = ["rocker"] * len(frame)
        many = arrays(getattr(D, name)(variants, *inputs, *frame))
        for i, one in enumerate(each):
            alone = arrays(getattr(D, name)(one, *(x[i] for x in inputs), *frame))
            for batch, expected in zip(many, alone, strict=True):
                assert_allclose(batch[i], expected, rtol=0, atol=1e-12)


@examples(10)
@given(closed_mechanisms(kinds=st.just(("pfaffian of q",))))
def test_rows_that_are_a_function_are_refused(closed):
    assume(closed.robot._asks_for_rows)
    q, v, _, time = closed.state
    for name, inputs in (("constraint_residual", (q,)), ("constraint_rates", (q, v))):
        with pytest.raises(sarrus.StateError, match=f"derivatives of {name} are not available"):
            getattr(D, name)(closed.robot, *inputs, time=time)


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_argument_is_one_of_the_function_that_was_called(name):
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing \d required positional argument"):
        getattr(D, name)(sarrus.mechanisms.pendulum())
