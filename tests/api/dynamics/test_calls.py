"""Calls: broadcasting, batches, threads, out=, array types, invalid samples; and mechanisms as values."""

import gc
import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus import _build, _core
from tests.effort import SOAK, examples
from tests.public import functions, of
from tests.random_mechanisms import random_mechanism, random_state, seeds

EPS = np.finfo(float).eps
# one state and many run the same source, contracted to fused multiplications in other places: an ulp or two a body, twenty deep
ROUNDING = 32 * EPS
FRAME = "tool"

# every function of a state: the inputs that it takes
TAKES = {
    "inverse_dynamics": "q v a",
    "forward_dynamics": "q v tau",
    "mass_matrix": "q",
    "mass_matrix_inverse": "q",
    "bias_forces": "q v",
    "gravity_forces": "q",
    "coriolis_matrix": "q v",
    "christoffel_symbols": "q",
    "mass_matrix_derivative": "q",
    "regressor": "q v a",
    "integrate": "q dv",
    "difference": "q0 q1",
    "normalize": "q",
    "center_of_mass": "q",
    "center_of_mass_jacobian": "q",
    "momentum": "q v",
    "centroidal_momentum": "q v",
    "centroidal_momentum_matrix": "q",
    "centroidal_momentum_bias": "q v",
    "kinetic_energy": "q v",
    "potential_energy": "q",
    "pose": "q frame",
    "velocity": "q v frame",
    "acceleration": "q v a frame",
    "jacobian": "q frame",
    "jacobian_derivative": "q v frame",
    "operational_inertia_inverse": "q frame",
    "omega": "q frame",
    "generalized_jacobian": "q frame",
    "generalized_jacobian_derivative": "q v frame",
    "momentum_velocity": "q v momentum",
}
every_function = pytest.mark.parametrize("name", TAKES)
SOLVING = {"forward_dynamics", "mass_matrix_inverse", "operational_inertia_inverse", "omega"}
DIVIDING = SOLVING | {"generalized_jacobian", "generalized_jacobian_derivative", "momentum_velocity"}


def make_robot():
    return random_mechanism(3, bodies=20, floating=True, friction=True, armature=True, springs=True)


ROBOT = make_robot()


def arguments(name, robot=ROBOT, lead=(), seed=0):
    """Return the array arguments of a function with these leading axes, and a frame name if it has one."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(lead))
    given = []
    for word in TAKES[name].split():
        if word == "frame":
            given.append(FRAME)
        elif word == "momentum":
            given.append(rng.normal(size=(*lead, 6)))
        else:
            rows = [random_state(robot, rng)[0 if word[0] == "q" else 1] for _ in range(count)]
            width = robot.nq if word[0] == "q" else robot.nv
            given.append(np.array(rows).reshape(*lead, width))
    return given


def tolerance(name):
    """Return the tolerance of solves: rounding of the mass matrix times its condition number."""
    return 4 * EPS * np.linalg.cond(ROBOT.mass_matrix(arguments(name)[0])) if name in DIVIDING else ROUNDING


def chunks(name):
    """Return a number of states for several chunks of 64 per thread, or slightly more than one chunk if a state has 10^4 numbers."""
    return 70 if name in ("christoffel_symbols", "mass_matrix_derivative") else 300


def row(args, *index):
    return [x if isinstance(x, str) else x[index] for x in args]


def assert_close(x, y, relative):
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape
    assert np.abs(x - y).max(initial=0.0) <= relative * max(1.0, np.abs(y).max(initial=0.0))


# ---- batches ---------------------------------------------------------------------------------------------------------


@every_function
def test_batch_is_a_loop(name):
    """All remainders of packets of four and eight; more than one chunk of a thread."""
    many = chunks(name)
    args = arguments(name, lead=(many,))
    call = of(ROBOT, name)
    loop = np.array([call(*row(args, k)) for k in range(many)])
    for count in (*range(1, 10), many):
        assert_close(call(*row(args, slice(count))), loop[:count], tolerance(name))


@every_function
def test_a_row_does_not_depend_on_its_neighbours(name):
    """Bit for bit, for any lane of a packet and any position in the batch."""
    args = arguments(name, lead=(21,))
    call = of(ROBOT, name)
    whole = call(*args)
    for start in (1, 2, 3, 5, 20):
        assert_array_equal(call(*row(args, slice(start, None))), whole[start:])
    assert_array_equal(call(*row(args, slice(None, None, -1))), whole[::-1])


@every_function
def test_results_do_not_depend_on_threads(name):
    args = arguments(name, lead=(chunks(name),))
    call = of(ROBOT, name)
    one = call(*args, threads=1)
    for threads in (2, 3, 4, 1000):
        assert_array_equal(call(*args, threads=threads), one)
    assert_array_equal(call(*row(args, 0), threads=2), call(*row(args, 0)))


@every_function
def test_no_states(name):
    args = arguments(name)
    shape = np.shape(of(ROBOT, name)(*args))
    for lead in ((0,), (0, 3), (2, 0)):
        result = of(ROBOT, name)(*arguments(name, lead=lead), threads=2)
        assert result.shape == (*lead, *shape)


@examples(60)
@given(
    lead=st.lists(st.integers(0, 3), max_size=3),
    masks=st.lists(st.integers(0, 7), min_size=3, max_size=3),
    drops=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    seed=seeds(),
)
def test_leading_axes_broadcast_as_numpys_do(lead, masks, drops, seed):
    """Any axis of any input may be one; leading axes may be missing."""
    rng = np.random.default_rng(seed)
    inputs = []
    for x, mask, drop in zip(arguments("inverse_dynamics", lead=lead, seed=seed), masks, drops, strict=True):
        for axis in range(len(lead)):
            if mask >> axis & 1 and lead[axis]:
                x = x.take([rng.integers(lead[axis])], axis)
        while drop and x.ndim > 1 and x.shape[0] == 1:
            x, drop = x[0], drop - 1
        inputs.append(x)
    q, v, a = inputs
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], a.shape[:-1])
    wide = [np.broadcast_to(x, (*lead, x.shape[-1])).copy() for x in inputs]
    expected = ROBOT.inverse_dynamics(*wide)
    assert expected.shape == (*lead, ROBOT.nv)
    assert_array_equal(ROBOT.inverse_dynamics(q, v, a), expected)
    assert_array_equal(ROBOT.inverse_dynamics(q, v, a, threads=2), expected)


def test_wrenches_and_base_motion_broadcast():
    q, v, a = arguments("inverse_dynamics", lead=(5,))
    rng = np.random.default_rng(1)
    w, base = rng.normal(size=(3, 1, 6)), rng.normal(size=(5, 6))
    asked = {"wrenches": {FRAME: w, "body0": base[0]}, "base_velocity": base, "base_acceleration": base[1]}
    tau = ROBOT.inverse_dynamics(q, v, a, **asked)
    assert tau.shape == (3, 5, ROBOT.nv)
    for i in range(3):
        for j in range(5):
            one = {
                "wrenches": {FRAME: w[i, 0], "body0": base[0]},
                "base_velocity": base[j],
                "base_acceleration": base[1],
            }
            assert_close(tau[i, j], ROBOT.inverse_dynamics(q[j], v[j], a[j], **one), ROUNDING)


def test_python_side_functions_broadcast_too():
    q, v, a = arguments("inverse_dynamics", lead=(4, 3))
    joint = ROBOT.joints[2]
    for name, f in sarrus.formulations.reactions(ROBOT, q, v, a).items():
        assert_close(f[2, 1], sarrus.formulations.reactions(ROBOT, q[2, 1], v[2, 1], a[2, 1])[name], ROUNDING)
    for name, f in sarrus.formulations.constraint_forces(ROBOT, q, v[0], a[0, 0]).items():
        assert f.shape == (4, 3, 6 - ROBOT.joint(name).nv)
    for x, y in zip(
        sarrus.formulations.joint_bases(ROBOT, q, joint),
        sarrus.formulations.joint_bases(ROBOT, q[2, 1], joint),
        strict=True,
    ):
        assert_close(x[2, 1], y, ROUNDING)
    assert_close(
        sarrus.formulations.operational_inertia(ROBOT, q, FRAME)[2, 1],
        sarrus.formulations.operational_inertia(ROBOT, q[2, 1], FRAME),
        tolerance("omega"),
    )


@pytest.mark.parametrize("lead", [(), (4,)])
def test_reactions_come_on_request(lead):
    q, v, a = arguments("inverse_dynamics", lead=lead)
    asked = {"wrenches": {FRAME: np.ones(6)}}
    tau, out = np.ones(ROBOT.nv), np.empty((*lead, ROBOT.nv))
    acceleration, found, status = ROBOT.forward_dynamics(
        q, v, tau, **asked, return_reactions=True, return_status=True, solver=None, out=out, threads=2
    )
    assert acceleration is out
    assert_array_equal(status, np.zeros(lead))
    assert_array_equal(acceleration, ROBOT.forward_dynamics(q, v, tau, **asked))
    assert (
        found.multipliers.shape == (*lead, 0) and found.wrenches == {}
    )  # as of any mechanism: a tree's constraints carry nothing


@pytest.mark.parametrize("lead", [(), (4,)])
def test_reactions_of_a_bad_sample(lead):
    q, v, a = arguments("inverse_dynamics", lead=lead)
    first = (0,) * len(lead)
    q[first] = np.nan
    found, status = sarrus.formulations.reactions(ROBOT, q, v, a, return_status=True)
    assert status[first] == 1
    assert np.count_nonzero(status) == 1
    for f in found.values():
        assert np.isnan(f[first]).all()
        assert np.isnan(f).any(axis=-1).sum() == 1  # and no other row


@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
@pytest.mark.parametrize("expressed_in", ["frame", "world", "world_aligned"])
def test_kinematics_answers_as_the_functions_do(lead, expressed_in):
    q, v, a = arguments("acceleration", lead=lead)[:3]
    state = ROBOT.kinematics(q, v, a)
    for frame in (FRAME, "body7", "ground"):
        assert_close(state.pose(frame), ROBOT.pose(q, frame), ROUNDING)
        ask = {"expressed_in": expressed_in}
        assert_close(state.velocity(frame, **ask), ROBOT.velocity(q, v, frame, **ask), ROUNDING)
        assert_close(state.acceleration(frame, **ask), ROBOT.acceleration(q, v, a, frame, **ask), ROUNDING)
        assert_close(state.jacobian(frame, **ask), ROBOT.jacobian(q, frame, **ask), ROUNDING)
        assert_close(state.jacobian_derivative(frame, **ask), ROBOT.jacobian_derivative(q, v, frame, **ask), ROUNDING)
    at_rest = ROBOT.kinematics(q)
    assert_array_equal(at_rest.velocity(FRAME), np.zeros((*lead, 6)))
    assert_array_equal(at_rest.acceleration(FRAME), np.zeros((*lead, 6)))


# ---- kinds of input --------------------------------------------------------------------------------------------------


class Subclass(np.ndarray):
    """A subclass of ndarray."""


KINDS = {
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(map(tuple, x)) if x.ndim > 1 else tuple(x),
    "Fortran order": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: x[..., ::-1].copy()[..., ::-1],
    "read-only": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "unaligned": lambda x: np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(x.shape),
    "subclass": lambda x: x.view(Subclass),
    "memoryview": memoryview,
    "broadcast": lambda x: np.broadcast_to(x, (1, *x.shape))[0],
}


@pytest.mark.parametrize("lead", [(), (3,)])
@pytest.mark.parametrize("kind", KINDS)
def test_any_array_will_do(kind, lead):
    args = arguments("inverse_dynamics", lead=lead)
    kept = [x.copy() for x in args]
    result = ROBOT.inverse_dynamics(*map(KINDS[kind], args))
    assert type(result) is np.ndarray
    assert_array_equal(result, ROBOT.inverse_dynamics(*args))
    assert_array_equal(np.concatenate(args, axis=-1), np.concatenate(kept, axis=-1))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint64, np.bool_, ">f8", ">i2"])
def test_narrower_numbers_are_widened(dtype):
    robot = sarrus.mechanisms.double_pendulum()
    args = [np.array([1, 0], dtype) for _ in range(3)]
    assert_array_equal(robot.inverse_dynamics(*args), robot.inverse_dynamics(*([1.0, 0.0],) * 3))


@pytest.mark.parametrize(
    "bad", [[1j, 0], ["a", "b"], np.array([1, 0], object), [[1], [1, 2]], b"0123456789abcdef", {1: 2}, iter([1, 2])]
)
def test_what_is_no_array_of_real_numbers_is_refused(bad):
    robot = sarrus.mechanisms.double_pendulum()
    with pytest.raises(TypeError, match="q must hold real numbers"):
        robot.mass_matrix(bad)


# ---- out= ------------------------------------------------------------------------------------------------------------


@every_function
@pytest.mark.parametrize("lead", [(), (7,), (2, 3)])
def test_out_is_filled_and_returned(name, lead):
    args = arguments(name, lead=lead)
    expected = of(ROBOT, name)(*args)
    out = np.full(np.shape(expected), np.nan)
    assert of(ROBOT, name)(*args, out=out) is out
    assert_array_equal(out, expected)


def _overlapping(nv, lead):
    memory = np.zeros(int(np.prod(lead)) * nv + 1)
    return memory[:-1].reshape(*lead, nv), memory[1:].reshape(*lead, nv)


@pytest.mark.parametrize("lead", [(), (4,)])
def test_out_that_cannot_take_the_result(lead):
    robot = sarrus.mechanisms.double_pendulum()
    q, v, a = (np.zeros((*lead, 2)) for _ in range(3))
    read_only = np.zeros((*lead, 2))
    read_only.flags.writeable = False
    fits = "out must be a writable, C-contiguous float64 array"
    for out, message in [
        (np.zeros((*lead, 3)), "out has shape"),
        (np.zeros((1, *lead, 2)), "out has shape"),
        (np.zeros(()), "out has shape"),
        (np.zeros((*lead, 2), np.float32), fits),
        (np.zeros((*lead, 2), ">f8"), fits),
        (np.zeros((*lead, 4))[..., ::2], fits),
        (np.zeros((*lead, 2)).view(Subclass), fits),
        (read_only, fits),
        ([0.0, 0.0], fits),
    ]:
        with pytest.raises(sarrus.ShapeError, match=message):
            robot.inverse_dynamics(q, v, a, out=out)


@pytest.mark.parametrize("lead", [(), (4,)])
def test_out_that_overlaps_an_input(lead):
    """An overlap of one number is an error, because a kernel may write before it reads; adjacent memory is allowed."""
    robot = sarrus.mechanisms.double_pendulum()
    free = np.zeros((*lead, 2))
    for x, out in (_overlapping(2, lead), _overlapping(2, lead)[::-1], (free, free)):
        for args in ((x, free * 0, free * 0), (free * 0, x, free * 0), (free * 0, free * 0, x)):
            with pytest.raises(sarrus.ShapeError, match=r"out shares memory with [qva]"):
                robot.inverse_dynamics(*args, out=out)
    both = np.zeros((2, *lead, 2))
    robot.inverse_dynamics(both[0], free, free, out=both[1])
    wrench = np.zeros(6)
    with pytest.raises(sarrus.ShapeError, match="out shares memory with wrenches"):
        robot.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2), wrenches={"tip": wrench}, out=wrench[4:])


# ---- bad samples -----------------------------------------------------------------------------------------------------

BAD = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


@every_function
@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_one_bad_state_raises(name, value):
    for k, word in enumerate(TAKES[name].split()):
        if word != "frame":
            args = arguments(name)
            args[k][-1] = value
            with pytest.raises(sarrus.StateError, match=rf"{word}\[{len(args[k]) - 1}\] is (nan|infinite)"):
                of(ROBOT, name)(*args)


@every_function
def test_a_bad_sample_spoils_its_row_only(name):
    """NaN, infinity and an invalid quaternion: the row is NaN and has status 1; other rows are unchanged bit for bit."""
    count, bad = 140, {1: np.nan, 6: np.inf, 129: -np.inf}  # in two chunks
    args = arguments(name, lead=(count,))
    clean, status = of(ROBOT, name)(*args, return_status=True)
    assert status.dtype == np.int8
    assert_array_equal(status, np.zeros(count))
    for k, word in enumerate(TAKES[name].split()):
        if word == "frame":
            continue
        spoilt = [x if isinstance(x, str) else x.copy() for x in args]
        for index, value in bad.items():
            spoilt[k][index, -1] = value
        wrong = dict(bad)
        if word[0] == "q" and name != "normalize":
            start = ROBOT.joint("joint0").q_slice.start
            spoilt[k][9, start : start + 4] *= 1.1
            spoilt[k][10, start : start + 4] = 0.0
            wrong |= {9: 0, 10: 0}
        result, status = of(ROBOT, name)(*spoilt, return_status=True, threads=2)
        assert_array_equal(np.flatnonzero(status), sorted(wrong))
        assert (status[list(wrong)] == 1).all()
        assert np.isnan(result[list(wrong)]).all()
        good = status == 0
        assert_array_equal(result[good], clean[good])


def test_bad_wrenches_and_base_motions():
    args = arguments("inverse_dynamics")
    wrong = np.zeros(6)
    wrong[4] = np.nan
    for name, asked in {
        f"wrenches\\['{FRAME}'\\]": {"wrenches": {FRAME: wrong}},
        "base_velocity": {"base_velocity": wrong},
        "base_acceleration": {"base_acceleration": wrong},
    }.items():
        with pytest.raises(sarrus.StateError, match=name + r"\[4\] is nan"):
            ROBOT.inverse_dynamics(*args, **asked)
        tau, status = ROBOT.inverse_dynamics(*args, **asked, return_status=True)
        assert status == 1
        assert np.isnan(tau).all()


def test_python_side_functions_keep_bad_samples_apart():
    q, v, a = arguments("inverse_dynamics", lead=(4,))
    clean = [
        sarrus.formulations.operational_inertia(ROBOT, q, FRAME),
        *sarrus.formulations.joint_bases(ROBOT, q, "joint1"),
        *sarrus.formulations.constraint_forces(ROBOT, q, v, a).values(),
    ]
    q[2] = np.nan
    spoilt = [
        sarrus.formulations.operational_inertia(ROBOT, q, FRAME),
        *sarrus.formulations.joint_bases(ROBOT, q, "joint1"),
        *sarrus.formulations.constraint_forces(ROBOT, q, v, a).values(),
    ]
    for x, y in zip(spoilt, clean, strict=True):
        assert np.isnan(x[2]).all()
        assert_array_equal(x[[0, 1, 3]], y[[0, 1, 3]])


def test_status_of_one_state():
    robot = sarrus.mechanisms.pendulum()
    tau, status = robot.inverse_dynamics([1.0], [0.0], [0.0], return_status=True)
    assert_array_equal(tau, robot.inverse_dynamics([1.0], [0.0], [0.0]))
    assert status.shape == ()
    assert status == 0
    tau, status = robot.inverse_dynamics([np.nan], [0.0], [0.0], return_status=True)
    assert np.isnan(tau).all()
    assert status == 1


def singular_chain():
    """Return two hinges on one line: their accelerations are indeterminate, although each moves mass."""
    builder = sarrus.Builder()
    builder.add_body("between")
    builder.add_body("end", sarrus.Inertia.sphere(1.0, 0.1))
    builder.add_joint("first", sarrus.Revolute((1, 2, 3)), "ground", "between")
    builder.add_joint("second", sarrus.Revolute((1, 2, 3)), "between", "end")
    return builder.build(), np.array([0.3, 0.2])


def singular_gimbal():
    builder = sarrus.Builder()
    builder.add_body("body", sarrus.Inertia(1.0, (0.1, 0.2, 0.3), 0.1 * np.eye(3)))
    builder.add_joint("gimbal", sarrus.Gimbal("rx ry rz"), "ground", "body")
    return builder.build(), np.array([0.3, np.pi / 2, 0.2])


def hanging_point():
    """Return a spherical pendulum of one point, on the axis of its first hinge."""
    builder = sarrus.Builder()
    builder.add_body("fork")
    builder.add_body("point", sarrus.Inertia(1.0, (0, 0, -1), np.zeros((3, 3))))
    builder.add_joint("pan", sarrus.Revolute("z"), "ground", "fork")
    builder.add_joint("tilt", sarrus.Revolute("y"), "fork", "point")
    return builder.build(), np.array([0.3, 0.0])


@pytest.mark.parametrize("make", [singular_chain, singular_gimbal, hanging_point])
@pytest.mark.parametrize("name", sorted(SOLVING))
def test_a_singular_mass_matrix_is_not_answered(name, make):
    """One state raises an error; in a batch its status is 2; neither returns numbers of the order of 1/EPS."""
    robot, q = make()
    args = [{"q": q, "v": 0 * q, "tau": 1 + q, "frame": "ground"}[word] for word in TAKES[name].split()]
    with pytest.raises(sarrus.StateError, match="no result"):
        of(robot, name)(*args)
    args[0] = np.stack([q, 0 * q])
    result, status = of(robot, name)(*args, return_status=True)
    assert status[0] == 2
    assert np.isnan(result[0]).all()


def test_overflow_is_not_answered():
    """Valid numbers whose products overflow: an error for one state, a status in a batch."""
    q, v, a = arguments("inverse_dynamics", lead=(3,))
    v[1] = 1e200
    tau, status = ROBOT.inverse_dynamics(q, v, a, return_status=True)
    assert_array_equal(status, [0, 2, 0])
    assert_array_equal(np.isnan(tau).any(axis=-1), [False, True, False])
    with pytest.raises(sarrus.StateError, match="overflow"):
        ROBOT.inverse_dynamics(q[1], v[1], a[1])


# ---- threads ---------------------------------------------------------------------------------------------------------


def test_batches_release_the_gil():
    """While one Python thread computes, another sees the batch half done, which would be impossible if the call held the lock."""
    q, v, a = (np.tile(x, (500, 1)) for x in arguments("inverse_dynamics", lead=(64,)))
    out = np.empty_like(v)

    def seen_half_done():
        out[:] = np.nan
        worker = threading.Thread(target=ROBOT.inverse_dynamics, args=(q, v, a), kwargs={"out": out, "threads": 1})
        worker.start()
        half = False
        while worker.is_alive():
            half |= bool(np.isfinite(out[0, 0])) and bool(np.isnan(out[-1, 0]))  # in this order
        worker.join()
        return half

    # a busy machine may let this thread sleep through a call
    assert any(seen_half_done() for _ in range(100))


def test_many_python_threads_ask_one_mechanism():
    args = arguments("forward_dynamics", lead=(64,))
    one = [ROBOT.forward_dynamics(*row(args, k)) for k in range(64)]
    many = ROBOT.forward_dynamics(*args)
    other = sarrus.mechanisms.double_pendulum()
    swing = other.mass_matrix([0.1, 0.2])

    def ask(k):
        for _ in range(20):
            assert_array_equal(ROBOT.forward_dynamics(*row(args, k)), one[k])
            assert_array_equal(ROBOT.forward_dynamics(*args, threads=1 + k % 2), many)
            assert_array_equal(other.mass_matrix([0.1, 0.2]), swing)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(16)))


# ---- instruction sets ------------------------------------------------------------------------------------------------


@cache
def answers():
    """Return the results of every function for one state and several; a process with another instruction set prints them."""
    return {
        name: [np.ravel(of(ROBOT, name)(*arguments(name, lead=lead))).tolist() for lead in ((), (11,))]
        for name in TAKES
    }


@pytest.mark.parametrize("level", sarrus.build_info()["available"])
def test_results_do_not_depend_on_the_instruction_set(level):
    code = "import json, sarrus; from tests.api.dynamics.test_calls import answers; print(json.dumps([sarrus.build_info()['isa'], answers()]))"
    environment = {**os.environ, "SARRUS_ISA": level, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    used, theirs = json.loads(ran.stdout)
    assert used == level
    for name, ours in answers().items():
        for x, y in zip(theirs[name], ours, strict=True):
            assert_close(x, y, tolerance(name))


def test_an_instruction_set_that_is_none():
    ran = subprocess.run(
        [sys.executable, "-c", "import sarrus"], env={**os.environ, "SARRUS_ISA": "vax"}, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert "SARRUS_ISA=vax is not one of" in ran.stderr


def test_the_build_tells_what_it_holds():
    """Levels that were built and can run, of which the best is used; one that was not built raises an error with the cure."""
    info = sarrus.build_info()
    every = ["x86-64-v4", "x86-64-v3", "baseline"]
    assert info["available"] == [level for level in every if level in info["available"]]
    assert os.environ.get("SARRUS_ISA") or info["isa"] == info["available"][0]
    assert every.index(info["processor"]) <= every.index(info["available"][0])
    for level in set(every) - set(info["available"]):
        ran = subprocess.run(
            [sys.executable, "-c", "import sarrus"],
            env={**os.environ, "SARRUS_ISA": level},
            capture_output=True,
            text=True,
        )
        assert ran.returncode != 0
        assert f"SARRUS_ISA={level} was not built" in ran.stderr or "is not supported by this processor" in ran.stderr


def test_a_processor_that_no_level_was_built_for(monkeypatch):
    """Code for missing instructions is not loaded; the error lists the built levels, and how to build another."""
    loaded = []
    monkeypatch.setattr(_build._core, "processor_supports", lambda level: False)
    monkeypatch.setattr(_build.importlib, "import_module", loaded.append)
    with pytest.raises(
        ImportError,
        match=r"built for processors of the level \S+, which this processor does not support: .*pip install --force-reinstall",
    ):
        _build._choose()
    assert not loaded


def test_arrays_that_were_pickled_are_arrays():
    """An unpickled dtype is a separate object, but the same type."""
    q, v, tau, out = pickle.loads(
        pickle.dumps([np.zeros(ROBOT.nq), np.zeros(ROBOT.nv), np.ones(ROBOT.nv), np.empty(ROBOT.nv)])
    )
    q = ROBOT.normalize(q + ROBOT.neutral())
    assert ROBOT.forward_dynamics(q, v, tau, out=out) is out
    assert_array_equal(out, ROBOT.forward_dynamics(q, np.zeros(ROBOT.nv), np.ones(ROBOT.nv)))


# ---- allocations -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("gcc"), reason="counts in glibc's malloc")
@pytest.mark.parametrize(
    "make", [sarrus.mechanisms.stanford_arm, sarrus.mechanisms.stewart, sarrus.mechanisms.biped_leg]
)
def test_a_warm_call_with_out_does_not_allocate(make):
    allocations = pytest.importorskip("benchmarks.allocations")
    robot = make()
    counts = allocations.count_allocations(robot, allocations.tree_calls(robot))
    assert counts == dict.fromkeys(allocations.CALLS, 0.0)


# ---- signatures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "positional", "keywords"),
    [
        ("inverse_dynamics", "q v a", "wrenches base_velocity base_acceleration out threads"),
        ("forward_dynamics", "q v tau", "wrenches return_reactions solver out threads"),
        ("jacobian", "q frame", "expressed_in"),
        ("jacobian_derivative", "q v frame", "expressed_in"),
        ("velocity", "q v frame", "expressed_in"),
        ("acceleration", "q v a frame", "expressed_in"),
        *((name, words, "out threads return_status") for name, words in TAKES.items()),
    ],
)
def test_signatures(name, positional, keywords):
    """External checks rely on these names and keywords."""
    _, *parameters = inspect.signature(functions()[name]).parameters.values()
    assert [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD] == positional.split()
    assert {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} >= set(keywords.split())
    given = dict(zip(positional.split(), arguments(name), strict=True))
    assert_array_equal(of(ROBOT, name)(**given), of(ROBOT, name)(*given.values()))


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("actuator_efforts", "actuated distribution limits check time out threads return_status"),
        ("project_velocity", "metric time out threads return_status"),
        ("project_configuration", "metric time out threads return_status"),
        ("reactions", "multipliers time wrenches base_velocity base_acceleration threads return_status"),
    ],
)
def test_help_lists_every_keyword(name, keywords):
    """Including keywords that many functions share, with their defaults."""
    parameters = inspect.signature(functions()[name]).parameters
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    assert all(parameters[word].kind is inspect.Parameter.KEYWORD_ONLY for word in keywords.split())
    assert parameters["threads"].default == 1
    assert parameters["return_status"].default is False


def test_a_keyword_of_no_function_is_refused_by_its_name():
    """Also for functions some of whose keywords are evaluated in Python."""
    q, v, tau = arguments("forward_dynamics")
    for function in (ROBOT.forward_dynamics, ROBOT.inverse_dynamics, ROBOT.actuator_efforts, of(ROBOT, "reactions")):
        with pytest.raises(TypeError, match="unexpected keyword argument 'wrench'"):
            function(q, v, tau, wrench={})
    for function in (ROBOT.forward_dynamics, ROBOT.actuator_efforts):
        with pytest.raises(TypeError, match="unexpected keyword argument 'wrench'"):
            function(q, v, tau, return_reactions=True, wrench={})


def _functions_of_a_mechanism():
    """Return the functions of a mechanism in modules that return a status."""
    every = (getattr(module, name) for module in (sarrus.formulations, sarrus.floating) for name in module.__all__)
    return [f for f in every if inspect.isfunction(f) and "return_status" in inspect.signature(f).parameters]


@pytest.mark.parametrize("function", _functions_of_a_mechanism(), ids=lambda function: function.__name__)
def test_what_is_no_mechanism_is_refused_where_a_status_is_asked_for_too(function):
    _, *parameters = inspect.signature(function).parameters.values()
    others = [[0.0] for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    for options in ({}, {"return_status": True}):
        with pytest.raises(TypeError, match="robot must be a Mechanism"):
            function(3, *others, **options)


def test_what_reactions_are_asked_of_goes_where_they_are_not():
    """The fast and the general path are one function: same result, same `out`, same status."""
    args, out = arguments("forward_dynamics", lead=(3,)), np.empty((3, ROBOT.nv))
    function = ROBOT.forward_dynamics
    result, status = function(*args, return_reactions=False, out=out, return_status=True, threads=2)
    assert result is out
    assert_array_equal(result, function(*args))
    assert_array_equal(status, np.zeros(3))


# ---- what callers may do while the core works, or before it is there ------------------------------------------------------


class TooEarly(sarrus.Mechanism):
    """A class that calls a function before the core is initialised."""

    def __init__(self, description, ask):
        self.asked = ask(self)
        super().__init__(description)


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.nv,
        lambda m: m.nu,
        lambda m: m._placed_joints,
        lambda m: (m.nq, m.mass_matrix([0.0])),
        lambda m: sarrus.simulate(m, [0.0], [0.0], 1.0),
        lambda m: _core.time_one_state(m, "mass_matrix", [np.zeros((1, 1))], 1),
    ],
)
def test_a_mechanism_that_was_not_built_says_so(ask):
    with pytest.raises(TypeError, match="was never initialised"):
        TooEarly(sarrus.mechanisms.pendulum().description, ask)
    with pytest.raises(TypeError, match="was never initialised"):
        ask(sarrus.Mechanism.__new__(sarrus.Mechanism))


def test_wrenches_may_change_while_they_are_read():
    robot = sarrus.mechanisms.pendulum()
    wrenches = {}

    class Clears:
        def __array__(self, dtype=None, copy=None):
            wrenches.clear()
            gc.collect()
            return np.zeros(6)

    wrenches |= (
        {"bob": Clears(), "ground": np.ones(6)}
        if "bob" in robot.frames
        else {robot.bodies[0]: Clears(), "ground": np.ones(6)}
    )
    assert robot.inverse_dynamics([0.0], [0.0], [0.0], wrenches=wrenches).shape == (1,)
    assert wrenches == {}


def test_results_that_32_bits_cannot_count():
    b = sarrus.Builder()
    for k in range(14_700):  # the regressor then has 10 k^2 numbers, which is more than 2^31
        b.add_body(f"b{k}")
        b.add_joint(f"j{k}", sarrus.Revolute("z"), "ground", f"b{k}")
    robot = b.build()
    q = np.zeros(robot.nv)
    with pytest.raises(sarrus.ShapeError, match=r"has 2160900000 numbers per state"):
        robot.regressor(q, q, q)
    assert robot.gravity_forces(q).shape == q.shape


def test_more_threads_than_there_can_be():
    robot = sarrus.mechanisms.pendulum()
    assert robot.mass_matrix(np.zeros((3, 1)), threads=10**30).shape == (3, 1, 1)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        robot.mass_matrix(np.zeros((3, 1)), threads=-(10**30))


def test_hidden_numbers_are_none():
    robot = sarrus.mechanisms.pendulum()
    hidden = np.ma.masked_array([0.5], [True])
    with pytest.raises(TypeError, match="q is a masked array with masked entries"):
        robot.mass_matrix(hidden)
    assert robot.mass_matrix(np.ma.masked_array([0.5])).shape == (1, 1)


def test_ctrl_c_ends_a_batch_between_chunks():
    """The last rows are not computed, because the signal does not wait for the end of the call."""
    code = """
import signal, numpy as np, sarrus
robot = sarrus.mechanisms.delta()
q, rest = robot.assemble(), np.zeros(robot.nv)
tau = np.zeros((600_000, robot.nv))
out = np.full_like(tau, 7.0)
def raises(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, raises)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    robot.forward_dynamics(q, rest, tau, out=out)
    print("whole")
except KeyboardInterrupt:
    print("ended", bool((out[-1] == 7.0).all()))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["ended", "True"]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_process_may_end_while_a_batch_is_on_its_way(threads):
    code = f"""
import threading, time, numpy as np, sarrus
robot = sarrus.mechanisms.stanford_arm()
q, zero = robot.random(0, size=100_000), np.zeros(robot.nv)
out = np.empty((len(q), robot.nv))
def work():
    while True:
        robot.forward_dynamics(q, zero, zero, out=out, threads={threads})
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(10 if SOAK else 1):
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_a_time_with_an_axis_is_a_batch():
    robot = sarrus.mechanisms.four_bar()
    q, rest = robot.assemble(), np.zeros(robot.nv)
    one = robot.forward_dynamics(q, rest, rest, time=0.5)
    assert one.shape == (robot.nv,)
    for time in np.array([0.5]), np.array([0.5, 1.0]):
        many = robot.forward_dynamics(q, rest, rest, time=time)
        assert_array_equal(many, robot.forward_dynamics(np.stack([q] * len(time)), rest, rest, time=0.5))
        assert_allclose(
            many, np.stack([one] * len(time)), rtol=0, atol=1e-14 * np.abs(one).max()
        )  # lanes round otherwise


@pytest.mark.parametrize("return_reactions", [False, True])
def test_an_error_names_the_public_function(return_reactions):
    robot = sarrus.mechanisms.four_bar()
    rest, huge = np.zeros(robot.nv), np.full(robot.nv, 1e308)
    with pytest.raises(sarrus.StateError, match=r"^forward_dynamics has no result"):
        robot.forward_dynamics(robot.assemble(), rest, huge, return_reactions=return_reactions)
