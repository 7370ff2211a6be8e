"""The result of a simulation: what follows from its samples, between them, in files and in pictures."""

import base64
import csv
import io
import json
import pickle
import re
import shutil
import sys
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
import sarrus.simulation.storage
from sarrus.simulation.trajectory import Trajectory
from tests.random_mechanisms import ALL_JOINTS, random_mechanism

ROUNDING = 1e-12  # of numbers of size 1, over some dozen operations
MOVING = [kind for kind in ALL_JOINTS if kind != "fixed"]


@pytest.fixture
def rng():
    return np.random.default_rng(4)


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def fourbar_run(n=201, **given):
    """A crank that turns evenly once in a second, and what follows it."""
    robot = sarrus.mechanisms.four_bar()
    t = np.linspace(0.0, 1.0, n)
    q = robot.follow({"motor": 0.5 + 2.0 * np.pi * t}, robot.assemble(fixed={"motor": 0.5}))
    v = np.array([_crank(robot, row) for row in q])
    return Trajectory(robot, t, q, v, **{"efforts": np.zeros((n, 3))} | given)


def _crank(robot, q):
    """Velocity that the loop allows with the crank at 2 pi rad/s."""
    free = robot.project_velocity(q, [1.0, 0.0, 0.0])
    return free / free[0] * 2 * np.pi


def smooth_motion(robot, rng):
    """q(t) and v(t) of a motion that turns about more than one axis; v by differences, off by 1e-11."""
    start = robot.random(rng)
    one, two = rng.uniform(-0.5, 0.5, (2, robot.nv))

    def q(t):
        t = np.asarray(t)[..., None]
        return robot.integrate(
            robot.integrate(np.broadcast_to(start, (*t.shape[:-1], robot.nq)), np.sin(t) * one), np.cos(2 * t) * two
        )

    def v(t, h=1e-3):
        t = np.asarray(t)
        near, far = (robot.difference(q(t - k * h), q(t + k * h)) / (2 * k * h) for k in (1, 2))
        return (4 * near - far) / 3

    return q, v


def sampled(robot, motion, n, **given):
    t = np.linspace(0.0, 2.0, n)
    return Trajectory(robot, t, motion[0](t), motion[1](t), **given)


@pytest.fixture
def mixed(rng):
    """Joints of every kind, and efforts, events, internal states and a checkpoint."""
    robot = random_mechanism(3, bodies=len(ALL_JOINTS))
    motion = smooth_motion(robot, rng)
    return sampled(
        robot,
        motion,
        7,
        efforts=rng.standard_normal((7, robot.nv)),
        z=rng.standard_normal((7, 2)),
        events={"touch down": [0.5, 1 / 3], "never": []},
        statistics={"method": "rk4", "steps": np.int64(6), "seconds": 0.25, "evaluations": None},
        status="terminated: touch down",
        checkpoint={"x": np.arange(3.0), "h": 0.1},
    )


def same(a, b):
    for name in ("t", "q", "v", "tau", "a"):
        assert_array_equal(getattr(a, name), getattr(b, name))


# ---- what follows from the samples -----------------------------------------------------------------------------------


def test_what_follows_is_what_the_mechanism_says(mixed):
    robot, q, v, t = mixed.mechanism, mixed.q, mixed.v, mixed.t
    assert_array_equal(mixed.tau, mixed.efforts)
    assert_array_equal(mixed.a, robot.forward_dynamics(q, v, mixed.tau, time=t))
    assert_array_equal(mixed.kinetic_energy, robot.kinetic_energy(q, v))
    assert_array_equal(mixed.potential_energy, robot.potential_energy(q))
    assert_array_equal(mixed.energy, mixed.kinetic_energy + mixed.potential_energy)
    assert_array_equal(mixed.momentum, robot.momentum(q, v))
    assert_array_equal(mixed.loop_error, np.zeros(7))
    assert_array_equal(mixed.frame("tool"), robot.pose(q, "tool"))
    assert_array_equal(mixed.joint("joint3"), q[:, robot.joint("joint3").q_slice])
    wanted = robot.reactions(q, v, mixed.a)
    assert list(mixed.reactions) == list(wanted)
    for name, wrench in wanted.items():
        size = np.abs(wrench).max(initial=1.0)
        assert_allclose(mixed.reactions[name], wrench, rtol=0, atol=1e-9 * size)  # two algorithms, some dozen bodies


def test_what_follows_around_a_loop():
    run = fourbar_run(efforts=lambda t, q, v, z: np.sin(t)[:, None] * [2.0, 0.0, 0.0])
    robot = run.mechanism
    assert_array_equal(run.tau[:, 0], 2.0 * np.sin(run.t))
    assert_array_equal(run.loop_error, np.abs(robot.loop_residual(run.q)).max(axis=1))
    assert run.loop_error.max() < ROUNDING
    J, h = robot.constraint_jacobian(run.q), robot.bias_forces(run.q, run.v)
    carried = np.einsum("nji,nj->ni", J, run.reactions.multipliers)
    left = np.einsum("nij,nj->ni", robot.mass_matrix(run.q), run.a) + h - run.tau - carried
    assert np.abs(left).max() < ROUNDING * max(1.0, np.abs(h).max(), np.abs(run.tau).max()) * 10
    assert run.reactions.wrenches["pin2"].shape == (len(run), 6)


@pytest.mark.parametrize("name", ["tau", "a", "energy", "kinetic_energy", "potential_energy", "momentum", "loop_error"])
def test_computed_once_and_read_only(name):
    run = fourbar_run(5)
    once = getattr(run, name)
    assert getattr(run, name) is once
    with pytest.raises(ValueError, match="read-only"):
        once[0] = 1.0


def test_efforts_are_asked_once_for_all_samples():
    calls = []

    def efforts(t, q, v, z):
        calls.append((t, q, v, z))
        return np.ones_like(v)

    run = fourbar_run(5, efforts=efforts)
    assert not calls
    run.a, run.reactions, run.tau, run.to_dataframe  # noqa: B018
    ((t, q, v, z),) = calls
    assert t is run.t and q is run.q and v is run.v and z.shape == (5, 0)


def test_efforts_of_a_wrong_shape():
    with pytest.raises(sarrus.ShapeError, match=re.escape("returned shape (3,); it must return (5, 3)")):
        _ = fourbar_run(5, efforts=lambda t, q, v, z: np.zeros(3)).tau


def test_a_state_that_is_not_finite_spoils_no_other():
    whole = fourbar_run(5)
    q = whole.q.copy()
    q[3] = np.nan
    run = Trajectory(whole.mechanism, whole.t, q, whole.v, efforts=whole.tau)
    for name in ("a", "energy", "loop_error"):
        got, wanted = getattr(run, name), getattr(whole, name)
        assert np.isnan(got[3]).all()
        assert_array_equal(np.delete(got, 3, axis=0), np.delete(wanted, 3, axis=0))


def test_it_does_not_change():
    q = np.zeros((2, 1))
    run = Trajectory(sarrus.mechanisms.pendulum(), [0.0, 1.0], q, q, events={"zero": [0.5]})
    q[:] = 7.0  # the caller's array is the caller's
    assert not run.q.any()
    for array in (run.t, run.q, run.v, run.events["zero"], run.joint("pivot")):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError, match="does not change"):
        run.q = q
    with pytest.raises(AttributeError, match="does not change"):
        del run.q


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"t": [[0.0, 1.0]]}, "t must be (n,)"),
        ({"q": np.zeros((3, 1))}, "q must be (2, 1), a row a time; got (3, 1)"),
        ({"v": np.zeros((2, 2))}, "v must be (2, 1), a row a time; got (2, 2)"),
        ({"z": np.zeros(2)}, "z must be (2, m)"),
        ({"efforts": np.zeros((2, 3))}, "efforts must be (2, 1)"),
    ],
)
def test_wrong_shapes(given, message):
    args = {"t": [0.0, 1.0], "q": np.zeros((2, 1)), "v": np.zeros((2, 1))} | given
    with pytest.raises(sarrus.ShapeError, match=re.escape(message)):
        Trajectory(sarrus.mechanisms.pendulum(), **args)


@pytest.mark.parametrize("t", [[1.0, 0.0], [0.0, np.nan]])
def test_wrong_times(t):
    with pytest.raises(ValueError, match="finite times"):
        Trajectory(sarrus.mechanisms.pendulum(), t, np.zeros((2, 1)), np.zeros((2, 1)))


def test_names():
    run = fourbar_run(5)
    with pytest.raises(sarrus.NameNotFoundError, match="did you mean 'motor'"):
        run.joint("motr")
    with pytest.raises(sarrus.NameNotFoundError, match="cupler"):
        run.frame("cupler")


def test_repr_and_length():
    robot = sarrus.mechanisms.pendulum()
    none = Trajectory(robot, [], np.zeros((0, 1)), np.zeros((0, 1)), efforts=np.zeros((0, 1)), status="interrupted")
    one = Trajectory(robot, [2.0], [[0.0]], [[0.0]], statistics={"method": "rk4"})
    assert (len(none), len(one)) == (0, 1)
    assert repr(none) == "Trajectory of 'pendulum': 0 samples, interrupted"
    assert repr(one) == "Trajectory of 'pendulum': 1 sample over 0 s, rk4, finished"
    assert none.a.shape == none.tau.shape == (0, 1)
    assert none.energy.shape == (0,)


def test_a_million_samples():
    """What is quadratic in the samples would not come to an end."""
    robot = sarrus.mechanisms.four_bar()
    n = 1_000_000
    q = np.tile(robot.assemble(fixed={"motor": 0.5}), (n, 1))
    run = Trajectory(robot, np.linspace(0.0, 10.0, n), q, np.zeros((n, 3)))
    assert run.energy.shape == run.loop_error.shape == (n,)
    assert run.loop_error.max() < ROUNDING
    there, still = run.at(run.t[:-1] + 5e-6)
    assert_allclose(there, q[1:], rtol=0, atol=ROUNDING)
    assert not still.any()


def test_samples_alone_do_not_tell_what_acts():
    """A pendulum that stands still up in the air: free motion's acceleration would be an answer to another question."""
    t, q, v = [0.0, 1.0], np.full((2, 1), 1.0), np.zeros((2, 1))
    robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    run = Trajectory(robot, t, q, v)
    for name in ("tau", "a", "reactions"):
        with pytest.raises(sarrus.ModelError, match=r"unknown.*Trajectory\.from_motion\(mechanism, t, q, v, a\)"):
            getattr(run, name)
    assert run.energy.shape == run.loop_error.shape == (2,)
    free = Trajectory(robot, t, q, v, efforts=np.zeros((2, 1)))
    assert_array_equal(free.a, robot.forward_dynamics(q, v, np.zeros((2, 1))))
    held = Trajectory(robot, t, q, v, a=np.zeros((2, 1)))
    assert not held.a.any()
    assert_array_equal(held.reactions["pivot"], robot.reactions(q, v, np.zeros((2, 1)))["pivot"])
    with pytest.raises(sarrus.ModelError, match="unknown"):
        held.tau  # noqa: B018
    let_go = sarrus.simulate(robot, q[0], v[0], 0.01)
    assert not let_go.tau.any() and abs(let_go.a[0, 0]) > 1.0


@pytest.mark.parametrize("ending", ["npz", "csv", "pickle"])
def test_from_motion_on_a_tree(ending, rng, tmp_path):
    robot = random_mechanism(3, bodies=len(ALL_JOINTS))
    t, q = np.linspace(0.0, 1.0, 5), robot.random(rng, 5)
    v, a = rng.standard_normal((2, 5, robot.nv))
    run = Trajectory.from_motion(robot, t, q, v, a)
    assert_array_equal(run.a, a)
    assert_array_equal(run.tau, robot.inverse_dynamics(q, v, a))
    for name, wrench in robot.reactions(q, v, a).items():
        assert_array_equal(run.reactions[name], wrench)
    assert run.status == "prescribed"
    if ending == "pickle":
        back = pickle.loads(pickle.dumps(run))
    else:
        run.save(tmp_path / f"run.{ending}")
        back = Trajectory.load(tmp_path / f"run.{ending}", mechanism=robot)
    same(back, run)


def test_from_motion_around_a_loop():
    """Motors and loops together make the motion: M a + h = tau + J^T multipliers, with tau where motors are."""
    known = fourbar_run(11)
    robot, t, q, v = known.mechanism, known.t, known.q, known.v
    # the crank turns evenly: its acceleration is zero, and the loop gives the others
    a = np.array([np.linalg.lstsq(np.vstack([J, [1.0, 0.0, 0.0]]), [*gamma, 0.0], rcond=None)[0]
                  for J, gamma in zip(robot.constraint_jacobian(q), robot.constraint_bias(q, v))])  # fmt: skip
    run = Trajectory.from_motion(robot, t, q, v, a)
    assert_array_equal(run.a, a)
    assert_allclose(run.tau[:, 0], robot.actuator_efforts(q, v, a)[:, 0], rtol=1e-9, atol=1e-9)
    assert not run.tau[:, 1:].any() and np.abs(run.tau[:, 0]).max() > 1.0
    carried = np.einsum("nji,nj->ni", robot.constraint_jacobian(q), run.reactions.multipliers)
    assert_allclose(robot.inverse_dynamics(q, v, a), run.tau + carried, rtol=0, atol=1e-9 * np.abs(carried).max())
    other = Trajectory.from_motion(robot, t, q, v, a, actuated=["pivot"])
    assert not other.tau[:, :2].any() and other.tau[:, 2].any()
    assert_array_equal(other.a, a)
    a[4, 0] += 1.0
    with pytest.raises(sarrus.StateError, match=r"sample 4 at t = 0\.4 s: .*acceleration does not satisfy"):
        Trajectory.from_motion(robot, t, q, v, a)
    with pytest.raises(sarrus.NotRealizableError, match="sample 0 at t = 0 s: a mechanism without motors"):
        Trajectory.from_motion(robot, t[:4], q[:4], v[:4], a[:4], actuated=[])


def test_from_motion_refuses():
    robot, x = sarrus.mechanisms.pendulum(), np.zeros((2, 1))
    with pytest.raises(sarrus.StateError, match="sample 1 at t = 1 s"):
        Trajectory.from_motion(robot, [0.0, 1.0], x, x, [[0.0], [np.nan]])
    with pytest.raises(sarrus.ShapeError, match=re.escape("a must be (2, 1)")):
        Trajectory.from_motion(robot, [0.0, 1.0], x, x, np.zeros((3, 1)))
    with pytest.raises(sarrus.ModelError, match="no loops"):
        Trajectory.from_motion(robot, [0.0, 1.0], x, x, x, actuated=["pivot"])


@pytest.mark.parametrize("name", ["t", "q", "v", "a", "efforts", "z", "events"])
def test_hidden_parts_of_numbers(name):
    robot, x = sarrus.mechanisms.pendulum(), np.zeros((2, 1))
    sound = {"t": np.array([0.0, 1.0]), "events": {"touch": np.zeros(1)}} | dict.fromkeys(
        ("q", "v", "a", "efforts", "z"), x
    )
    Trajectory(robot, **sound)

    def changed(change):
        given = {"touch": change(sound[name]["touch"])} if name == "events" else change(sound[name])
        return Trajectory(robot, **sound | {name: given})

    changed(lambda x: np.ma.array(x, mask=False))  # which hides nothing
    with pytest.raises(TypeError, match="imaginary part"):
        changed(lambda x: x + 0j)
    with pytest.raises(TypeError, match=r"masked.*filled"):
        changed(lambda x: np.ma.array(x, mask=np.arange(x.size).reshape(x.shape) == 0))


# ---- between samples -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MOVING)
def test_between_samples(kind, rng):
    """Off by O(dt^4) in q and O(dt^3) in v, which is the rate of q."""
    robot = random_mechanism(1, bodies=1, joints=(kind,))
    motion = smooth_motion(robot, rng)
    t = np.linspace(0.0, 2.0, 801)[5:-5]
    off_q, off_v = [], []
    for n in (41, 81):
        q, v = sampled(robot, motion, n).at(t)
        off_q.append(np.abs(robot.difference(motion[0](t), q)).max())
        off_v.append(np.abs(v - motion[1](t)).max())
    # a sixteenth and an eighth, and what the next order adds
    assert off_q[1] < off_q[0] / 12 + ROUNDING and off_q[1] < 1e-5
    assert off_v[1] < off_v[0] / 6 + 1e-10 and off_v[1] < 1e-3
    run, h = sampled(robot, motion, 41), 1e-4
    rate = robot.difference(run.at(t - h)[0], run.at(t + h)[0]) / (2 * h)
    inside = np.abs(t / 0.05 - np.round(t / 0.05)) > 0.01  # the second derivative jumps at samples
    assert_allclose(rate[inside], run.at(t)[1][inside], rtol=0, atol=1e-5)  # h^2 times a third derivative below 1000


@pytest.mark.parametrize("turn", [0.0, 1e-9, 9e-3, 0.02, 1.0, 3.0])
@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_any_turn_between_samples(kind, turn, rng):
    """The cubic meets both states, however far apart and whatever the velocities, and v is the rate of q."""
    robot = random_mechanism(1, bodies=1, joints=(kind,))
    q, v = robot.random(rng, 2), rng.standard_normal((2, robot.nv))
    axis = rng.standard_normal(robot.nv)
    q[1] = robot.integrate(q[0], turn * axis / np.linalg.norm(axis[:3]))
    for sign in (1.0, -1.0):  # of the second quaternion: the same rotation
        q[1, :4] *= sign
        run = Trajectory(robot, [0.0, 1.0], q, v)
        before, rate = run.at(np.nextafter(1.0, 0.0))
        assert_allclose(robot.difference(before, q[1]), 0.0, rtol=0, atol=20 * ROUNDING)
        assert_allclose(rate, v[1], rtol=0, atol=20 * ROUNDING)
        t = np.linspace(0.1, 0.9, 9)
        near, far = (robot.difference(run.at(t - h)[0], run.at(t + h)[0]) / (2 * h) for h in (1e-3, 2e-3))
        assert_allclose((4 * near - far) / 3, run.at(t)[1], rtol=0, atol=1e-9)  # h^4 times the fifth derivative


def test_exact_at_samples(mixed):
    q, v = mixed.at(mixed.t)
    assert_array_equal(q, mixed.q)
    assert_array_equal(v, mixed.v)
    one, _ = mixed.at(mixed.t[2])
    assert one.shape == (mixed.mechanism.nq,)
    assert_array_equal(one, mixed.q[2])
    several, rates = mixed.at(np.full((2, 3), 0.4))
    assert several.shape == (2, 3, mixed.mechanism.nq) and rates.shape == (2, 3, mixed.mechanism.nv)
    assert_array_equal(several[1, 2], mixed.at(0.4)[0])


def test_a_thrown_body_is_exact():
    """Its origin flies a parabola, and it turns evenly: there is nothing that the cubics miss."""
    robot = random_mechanism(0, bodies=1, joints=("free",), offsets=False)
    spin, speed, fall = np.array([1.0, -2.0, 0.5]), np.array([3.0, 0.0, 4.0]), np.array([0.0, 0.0, -9.81])

    def state(t):
        t = t[:, None]
        q = robot.integrate([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], t * [*spin, 0.0, 0.0, 0.0])
        q[:, 4:] = t * speed + t**2 / 2 * fall
        return q, np.hstack([np.tile(spin, (len(t), 1)), _in_body(q[:, :4], speed + t * fall)])

    t = np.linspace(0.0, 2.0, 5)
    run = Trajectory(robot, t, *state(t))
    between = np.linspace(0.0, 2.0, 33)
    q, v = run.at(between)
    wanted_q, wanted_v = state(between)
    assert_allclose(robot.difference(wanted_q, q), 0.0, rtol=0, atol=20 * ROUNDING)
    assert_allclose(v, wanted_v, rtol=0, atol=20 * ROUNDING)


def _in_body(quaternion, x):
    """Vectors (n, 3) of the world in the axes of turned bodies."""
    u, w = quaternion[:, :3], quaternion[:, 3:]
    around = 2.0 * np.cross(-u, x)
    return x + w * around + np.cross(-u, around)


@pytest.mark.parametrize("t", [-1e-9, 1.0 + 1e-9, np.nan, np.inf])
def test_outside(t):
    with pytest.raises(ValueError, match="is outside: the trajectory holds 0 s to 1 s"):
        fourbar_run(5).at([0.5, t])


def test_two_samples_at_one_time():
    """An impact: the later one counts, and nothing is divided by zero."""
    run = Trajectory(
        sarrus.mechanisms.pendulum(), [0.0, 1.0, 1.0, 2.0], [[0.0], [1.0], [1.0], [0.0]], [[1.0], [1.0], [-1.0], [-1.0]]
    )
    q, v = run.at([0.5, 1.0, 1.5])
    assert_allclose(q, [[0.5], [1.0], [0.5]], rtol=0, atol=ROUNDING)
    assert_allclose(v, [[1.0], [-1.0], [-1.0]], rtol=0, atol=ROUNDING)


# ---- files -----------------------------------------------------------------------------------------------------------


def everything_same(a, b):
    same(a, b)
    assert a.mechanism == b.mechanism
    assert_array_equal(a.z, b.z)
    assert (a.status, a.statistics) == (b.status, b.statistics)
    assert list(a.events) == list(b.events)
    for name in a.events:
        assert_array_equal(a.events[name], b.events[name])


def test_npz_holds_everything(mixed, tmp_path):
    mixed.save(tmp_path / "run.npz")
    back = Trajectory.load(tmp_path / "run.npz")
    everything_same(back, mixed)
    assert_array_equal(back.checkpoint["x"], mixed.checkpoint["x"])
    assert back.checkpoint["h"] == 0.1


def test_npz_with_a_function_for_efforts(tmp_path):
    run = fourbar_run(5, efforts=lambda t, q, v, z: np.ones_like(v))
    run.save(str(tmp_path / "run.npz"))
    same(Trajectory.load(str(tmp_path / "run.npz")), run)


def test_nothing_is_unpickled_with_a_mechanism(mixed, tmp_path, monkeypatch):
    mixed.save(tmp_path / "run.npz")
    monkeypatch.setattr(sarrus.simulation.storage.pickle, "loads", lambda *_: pytest.fail("unpickled"))
    back = Trajectory.load(tmp_path / "run.npz", mechanism=mixed.mechanism)
    everything_same(back, mixed)
    assert back.checkpoint is None


def test_foreign_files(tmp_path):
    text, arrays = tmp_path / "a.npz", tmp_path / "b.npz"
    text.write_text("no archive")
    np.savez(arrays, t=np.zeros(3))
    for path in (text, arrays):
        with pytest.raises(ValueError, match="not a trajectory that sarrus saved"):
            Trajectory.load(path)
    with pytest.raises(FileNotFoundError):
        Trajectory.load(tmp_path / "none.npz")
    for use in (fourbar_run(3).save, Trajectory.load):
        with pytest.raises(ValueError, match=r"\.npz or a \.csv"):
            use(tmp_path / "run.mat")


def rewritten(path, changes):
    """The arrays of an .npz with some of them changed, or left out where they are None."""
    with np.load(path) as file:
        arrays = dict(file) | changes
    np.savez(path, **{name: x for name, x in arrays.items() if x is not None})


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_a_file_of_another_mechanism(ending, tmp_path):
    path = tmp_path / f"run.{ending}"
    sarrus.simulate(sarrus.mechanisms.pendulum(length=1.0), [0.5], [0.0], 0.01).save(path)
    with pytest.raises(ValueError, match=rf"run\.{ending}: it is of another mechanism than 'pendulum': .* not "):
        Trajectory.load(path, mechanism=sarrus.mechanisms.pendulum(length=3.0))
    # what another machine's rounding does to a description is no other mechanism
    near = sarrus.mechanisms.pendulum(length=np.nextafter(1.0, 2.0))
    assert near != sarrus.mechanisms.pendulum(length=1.0)
    assert Trajectory.load(path, mechanism=near).mechanism == near


def test_every_part_of_a_description_is_compared(tmp_path):
    """Whatever makes two mechanisms differ: names, numbers, springs, laws, limits, how many of them there are."""

    def made(name="slide", stiffness=3.0, rate=2.0, limits=None, extra=False):
        builder = sarrus.Builder("made")
        for k in range(2 + extra):
            builder.add_body(f"body{k}", sarrus.Inertia.sphere(1.0, 0.2))
            builder.add_joint(
                name if k == 0 else f"joint{k}", sarrus.Prismatic("x", limits=limits), "ground", f"body{k}"
            )
        builder.add_spring(
            "spring", ("ground", (0, 0, 0)), ("body0", (1.0, 0, 0)), stiffness=stiffness, rest_length=1.0
        )
        builder.add_prescribed_motion("drive", "joint1", sarrus.laws.harmonic(1.0, rate=rate))
        return builder.build()

    robot = made()
    run = Trajectory(robot, [0.0], np.zeros((1, 2)), np.zeros((1, 2)))
    run.save(tmp_path / "run.npz")
    Trajectory.load(tmp_path / "run.npz", mechanism=made())
    for change, told in (
        ({"name": "slip"}, r"joints\[0\]\.name is 'slide', not 'slip'"),
        ({"stiffness": 4.0}, r"springs\[0\]\.stiffness is 3\.0, not 4\.0"),
        ({"rate": 5.0}, r"law\.harmonics\[0\]\[1\] is 2\.0, not 5\.0"),
        ({"limits": (-1.0, 1.0)}, r"joints\[0\]\.joint\.limits is not the same"),
        ({"extra": True}, r"bodies is not the same"),
    ):
        with pytest.raises(ValueError, match=told):
            Trajectory.load(tmp_path / "run.npz", mechanism=made(**change))


def test_an_npz_takes_no_more_memory_than_it_is_long(tmp_path, monkeypatch):
    """Sizes that it declares are compared with its own before anything of that size is made."""
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("an array was made"))
    robot, bomb, boast = sarrus.mechanisms.pendulum(), tmp_path / "bomb.npz", tmp_path / "boast.npz"
    np.savez_compressed(bomb, t=np.zeros(10**6))
    with pytest.raises(
        ValueError, match=r"bomb\.npz: .*compressed, to \d+ bytes of 8000\d+, as sarrus writes none.*np\.savez"
    ):
        Trajectory.load(bomb, mechanism=robot)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    with zipfile.ZipFile(boast, "w") as archive:
        archive.writestr("t.npy", head.getvalue())
    with pytest.raises(ValueError, match=r"boast\.npz: .*t\.npy is not as long as its shape \(1000000000000000,\)"):
        Trajectory.load(boast, mechanism=robot)


WRONG_NPZ = {
    "no notes": {"notes": None},
    "no description": {"description": None},
    "no q": {"q": None},
    "an old format": {"notes": np.array('{"format": 1}')},
    "notes that are no JSON": {"notes": np.array("{")},
    "notes that are a list": {"notes": np.array("[]")},
    "notes that are numbers": {"notes": np.zeros(3)},
    "notes that lack things": {"notes": np.array('{"format": 2}')},
    "events that are not there": {"notes": np.array('{"format": 2, "statistics": {}, "status": "", "events": ["x"]}')},
    "events that are no names": {"notes": np.array('{"format": 2, "statistics": {}, "status": "", "events": 3}')},
    "statistics that are a number": {"notes": np.array('{"format": 2, "statistics": 3, "status": "", "events": []}')},
    "a description that is no JSON": {"description": np.zeros(3, np.uint8)},
    "objects": {"q": np.array([[None]] * 3, dtype=object)},
    "complex numbers": {"q": np.zeros((3, 3), complex)},
    "texts": {"q": np.full((3, 3), "0.0")},
    "records": {"q": np.zeros(3, dtype=[("x", "f8")])},
    "another shape": {"q": np.zeros((3, 4))},
    "one number": {"t": np.array(0.0)},
    "times that go back": {"t": np.array([1.0, 0.0, 2.0])},
    "efforts of another shape": {"tau": np.zeros((2, 3))},
}


@pytest.mark.parametrize("what", WRONG_NPZ)
def test_wrong_npz(what, tmp_path):
    path, run = tmp_path / "run.npz", fourbar_run(3)
    run.save(path)
    rewritten(path, WRONG_NPZ[what])
    with pytest.raises(ValueError, match=r"run\.npz: "):
        Trajectory.load(path, mechanism=run.mechanism)


@pytest.mark.parametrize(
    "pickled", [b"", b"garbage", pickle.dumps(3), pickle.dumps((3, None)), b"cnowhere\nto_be_found\n."]
)
def test_wrong_pickles(pickled, tmp_path):
    path, run = tmp_path / "run.npz", fourbar_run(3)
    run.save(path)
    rewritten(path, {"pickled": np.frombuffer(pickled, np.uint8)})
    with pytest.raises(ValueError, match=r"run\.npz: its mechanism cannot be unpickled .*mechanism="):
        Trajectory.load(path)
    same(Trajectory.load(path, mechanism=run.mechanism), run)


def test_damaged_npz(tmp_path, rng):
    """Cut off, or with bytes that are others: a ValueError that names the file, or what was saved."""
    path, run = tmp_path / "run.npz", fourbar_run(3)
    run.save(path)
    whole = path.read_bytes()
    for k in range(0, len(whole), 97):
        path.write_bytes(whole[:k])
        with pytest.raises(ValueError, match=r"run\.npz: not a trajectory"):
            Trajectory.load(path, mechanism=run.mechanism)
    said = []
    for _ in range(300):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), 3):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            same(Trajectory.load(path, mechanism=run.mechanism), run)
        except ValueError as error:
            said.append(str(error))
    assert said
    assert all(text.startswith(f"{path}: ") for text in said)


WRONG_CSV = {
    "empty": b"",
    "a row too short": b"t,q:pivot,v:pivot,energy,loop_error\n0,0,0,0\n",
    "ragged": b"t,q:pivot,v:pivot,energy,loop_error\n0,0,0,0,0\n1,0,0\n",
    "words": b"t,q:pivot,v:pivot,energy,loop_error\n0,zero,0,0,0\n",
    "a comment": b"t,q:pivot,v:pivot,energy,loop_error\n0,0,0,0,0#,1\n",
    "NUL in the head": b"t,q:pivot\0,v:pivot,energy,loop_error\n",
    "NUL in a row": b"t,q:pivot,v:pivot,energy,loop_error\n0,0\0,0,0,0\n",
    "an endless name": b"t" * 200_000,
    "no text": b"\xff\xfe\x00\x01",
    "no text in a row": b"t,q:pivot,v:pivot,energy,loop_error\n0,0,0,0,\xff\n",
    "other columns": b"t,v:pivot,q:pivot,energy,loop_error\n",
    "times that go back": b"t,q:pivot,v:pivot,energy,loop_error\n1,0,0,0,0\n0,0,0,0,0\n",
}


@pytest.mark.parametrize("what", WRONG_CSV)
def test_wrong_csv(what, tmp_path):
    path = tmp_path / "run.csv"
    path.write_bytes(WRONG_CSV[what])
    with pytest.raises(ValueError, match=r"run\.csv: "):
        Trajectory.load(path, mechanism=sarrus.mechanisms.pendulum())


def test_a_mechanism_that_does_not_pickle(tmp_path):
    builder = sarrus.Builder("skate")
    builder.add_body("skate", sarrus.Inertia.sphere(1.0, 0.2))
    builder.add_joint("x", sarrus.Prismatic("x"), "ground", "skate")
    builder.add_pfaffian("blade", lambda q: np.ones((1, 1)), joints=["x"], value=[0.0])
    run = Trajectory(builder.build(), [0.0], [[0.0]], [[0.0]])
    with pytest.raises(sarrus.ModelError, match="cannot be pickled"):
        run.save(tmp_path / "run.npz")
    assert not (tmp_path / "run.npz").exists()


def test_csv_is_exact(mixed, tmp_path):
    mixed.save(tmp_path / "run.csv")
    back = Trajectory.load(tmp_path / "run.csv", mechanism=mixed.mechanism)
    same(back, mixed)
    assert back.status == "unknown"
    with pytest.raises(TypeError, match="mechanism="):
        Trajectory.load(tmp_path / "run.csv")
    with pytest.raises(ValueError, match="columns are not those of 'pendulum'; column 'q:pivot' is missing"):
        Trajectory.load(tmp_path / "run.csv", mechanism=sarrus.mechanisms.pendulum())


def test_csv_columns(tmp_path):
    builder = sarrus.Builder("odd")
    builder.add_body("ball", sarrus.Inertia.sphere(1.0, 0.2))
    builder.add_joint('socket, "big"', sarrus.Spherical(), "ground", "ball")
    run = Trajectory(builder.build(), [0.1], [[0.0, 0.0, 0.6, 0.8]], [[1.0, 2.0, 1 / 3]], a=[[4.0, 5.0, 6.0]])
    run.save(tmp_path / "run.csv")
    with open(tmp_path / "run.csv", newline="", encoding="utf-8") as file:
        head, row = csv.reader(file)
    assert head == [
        "t",
        *(f'q:socket, "big":{k}' for k in range(4)),
        *(f'v:socket, "big":{k}' for k in range(3)),
        *(f'a:socket, "big":{k}' for k in range(3)),
        "energy",
        "loop_error",
    ]
    assert row[0] == "0.1" and row[7] == repr(1 / 3)
    back = Trajectory.load(tmp_path / "run.csv", run.mechanism)
    assert_array_equal(np.hstack([back.q, back.v, back.a]), np.hstack([run.q, run.v, run.a]))
    with pytest.raises(sarrus.ModelError, match="unknown"):
        back.tau  # noqa: B018


def test_csv_without_samples(tmp_path):
    run = Trajectory(sarrus.mechanisms.pendulum(), [], np.zeros((0, 1)), np.zeros((0, 1)))
    run.save(tmp_path / "run.csv")
    assert len(Trajectory.load(tmp_path / "run.csv", run.mechanism)) == 0


def test_dataframe(tmp_path):
    pandas = pytest.importorskip("pandas")
    run = fourbar_run(5, efforts=np.ones((5, 3)))
    table = run.to_dataframe()
    joints = run.mechanism.joints
    assert list(table) == ["t", *(f"{x}:{name}" for x in ("q", "v", "tau") for name in joints), "energy", "loop_error"]
    assert_array_equal(table["v:motor"], run.v[:, 0])
    assert_array_equal(table["energy"], run.energy)
    run.save(tmp_path / "run.csv")
    # by default some versions of pandas miss the last digit
    pandas.testing.assert_frame_equal(pandas.read_csv(tmp_path / "run.csv"), table, rtol=1e-14, atol=1e-300)
    assert not [name for name in fourbar_run(5, efforts=None).to_dataframe() if name.startswith("tau")]


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=re.escape('pip install "sarrus[dataframe]"')):
        fourbar_run(3).to_dataframe()


def test_pickle(mixed):
    everything_same(pickle.loads(pickle.dumps(mixed)), mixed)
    run = fourbar_run(3, efforts=lambda t, q, v, z: np.ones_like(v))
    same(pickle.loads(pickle.dumps(run)), run)
    error = pickle.loads(pickle.dumps(sarrus.IntegrationError("it diverged", run)))
    same(error.trajectory, run)


# ---- pictures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "label", "names"),
    [
        ("q", "joint coordinates [rad]", ["motor", "pin1", "pivot"]),
        ("v", "joint velocities [rad/s]", ["motor", "pin1", "pivot"]),
        ("a", "joint accelerations [rad/s²]", ["motor", "pin1", "pivot"]),
        ("tau", "joint forces [N m]", ["motor", "pin1", "pivot"]),
        ("energy", "energy [J]", ["total", "kinetic", "potential"]),
        ("loop_error", "opening of the loops [rad, m]", ["loop_error"]),
        ("reactions", "force carried [N]", ["motor", "pin1", "pivot", "pin2"]),
        ("motor", "motor [rad]", ["motor"]),
        ("pin2", "pin2 [rad]", ["pin2"]),
        ("coupler", "position of coupler [m]", ["coupler x", "coupler y", "coupler z"]),
        (["motor", "pivot"], "motor, pivot [rad]", ["motor", "pivot"]),
    ],
)
def test_plot(what, label, names, pyplot):
    run = fourbar_run()
    ax = run.plot(what)
    ax.figure.canvas.draw()
    assert ax.get_ylabel() == label and ax.get_xlabel() == "t [s]"
    assert [line.get_label() for line in ax.lines] == names
    assert all(len(line.get_xdata()) == len(run) for line in ax.lines)
    assert tuple(ax.figure.get_size_inches()) == (6.4, 4.0)
    # each curve can be told: by a name at its end or in a legend, unless it is alone
    legend = [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []
    told = [text.get_text() for text in ax.texts] + legend
    assert sorted(told) == (sorted(names) if len(names) > 1 else [])
    # no two names at the ends overlap, none leaves the figure, and all can be read
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert all(box.x1 <= ax.figure.bbox.x1 for box in boxes)
    words = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label]
    assert min(word.get_fontsize() for word in words) >= 10
    styles = {(str(line._dash_pattern), line.get_color()) for line in ax.lines}
    assert len(styles) == len(names)


def test_plot_shows_the_numbers(pyplot):
    run = fourbar_run()
    for what, k, wanted in (
        ("q", 1, run.q[:, 1]),
        ("v", 2, run.v[:, 2]),
        ("energy", 0, run.energy),
        ("loop_error", 0, run.loop_error),
        ("reactions", 3, np.linalg.norm(run.reactions.wrenches["pin2"][:, 3:], axis=1)),
        ("pin2", 0, run.joint("pin2")[:, 0]),
        ("coupler", 0, run.frame("coupler")[:, 0, 3]),
    ):
        assert_array_equal(run.plot(what).lines[k].get_ydata(), wanted)
        pyplot.close("all")


def test_plot_names_coordinates_of_all_joints(mixed, pyplot):
    robot = mixed.mechanism
    for what, count in (("q", robot.nq), ("v", robot.nv), ("a", robot.nv), ("tau", robot.nv)):
        labels = [line.get_label() for ax in mixed.plot(what).figure.axes for line in ax.lines]
        assert len(labels) == count == len(set(labels))
        pyplot.close("all")
    assert len(mixed.plot("reactions").lines) == len(robot.joints)
    free = next(name for name in robot.joints if robot.joint(name).kind == "Free")
    names = [f"{free} {part}" for part in ("qx", "qy", "qz", "qw", "x", "y", "z")]
    assert [line.get_label() for ax in mixed.plot(free).figure.axes for line in ax.lines] == names


def test_plot_has_one_unit_on_an_axes(pyplot):
    robot = sarrus.mechanisms.slider_crank()
    run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 0.1)
    for what, panels in (
        ("q", {"joint coordinates [rad]": ["motor", "pin"], "guide [m]": ["guide"]}),
        ("a", {"joint accelerations [rad/s²]": ["motor", "pin"], "guide [m/s²]": ["guide"]}),
        (["pin", "energy"], {"pin [rad]": ["pin"], "energy [J]": ["total", "kinetic", "potential"]}),
        ("momentum", {f"momentum [{unit}]": [f"{kind} {axis}" for axis in "xyz"]
                      for kind, unit in (("angular", "kg m²/s"), ("linear", "kg m/s"))}),
    ):  # fmt: skip
        upper = run.plot(what)
        axes = upper.figure.axes
        assert upper is axes[0] and axes[-1].get_xlabel() == "t [s]"
        assert {ax.get_ylabel(): [line.get_label() for line in ax.lines] for ax in axes} == panels
    assert_array_equal(run.plot("q").figure.axes[1].lines[0].get_ydata(), run.joint("guide")[:, 0])
    with pytest.raises(ValueError, match=r"several units, rad, m, .* leave ax= out"):
        run.plot("q", ax=pyplot.figure().subplots())


def test_plot_shows_what_all_pins_carry(pyplot):
    """Those of the tree too, with the loop closed."""
    run = fourbar_run(11)
    robot = run.mechanism
    lines = {line.get_label(): line.get_ydata() for line in run.plot("reactions").lines}
    assert sorted(lines) == sorted(joint.name for joint in robot.description.joints)
    pins = robot.reactions(run.q, run.v, run.a, multipliers=run.reactions.multipliers) | run.reactions.wrenches
    for name, force in lines.items():
        assert_array_equal(force, np.linalg.norm(pins[name][:, 3:], axis=1))
    opened = robot.reactions(run.q, run.v, run.a)
    assert np.abs(lines["pivot"] - np.linalg.norm(opened["pivot"][:, 3:], axis=1)).max() > 1.0


def test_plot_into_given_axes(pyplot):
    run = fourbar_run()
    figure, (left, right) = pyplot.subplots(1, 2)
    assert run.plot("energy", ax=left) is left
    run.plot("motor", ax=right)
    run.plot("pivot", ax=right)
    assert len(right.lines) == 2 and pyplot.get_fignums() == [figure.number]
    # nothing would make room for names between the two
    assert left.get_legend() is not None and not left.texts


def test_plot_of_nothing_known(pyplot):
    with pytest.raises(
        sarrus.NameNotFoundError, match="no quantity, joint or frame is named 'enrgy'; did you mean 'energy'"
    ):
        fourbar_run(3).plot("enrgy")


def test_names_that_would_collide_go_to_a_legend(pyplot):
    builder = sarrus.Builder("three")
    for k in range(3):
        builder.add_body(f"rod{k}", sarrus.Inertia.rod(1.0, [0, 0, 0], [1, 0, 0], 0.1))
        builder.add_joint(f"pin{k}", sarrus.Revolute("y"), "ground", f"rod{k}")
    robot, t = builder.build(), np.linspace(0.0, 1.0, 20)

    def ends(*at):
        q = t[:, None] * at
        return Trajectory(robot, t, q, np.zeros_like(q)).plot()

    assert ends(0.0, 1.0, 2.0).get_legend() is None
    assert ends(1.0, 1.05, 2.0).get_legend() is None  # a little room is made
    for ax in (ends(1.0, 1.0, 1.0), ends(0.0, 1.0, np.nan)):
        assert ax.get_legend() is not None and not ax.texts


@pytest.mark.parametrize("missing", ["plot", "animate"])
def test_without_matplotlib(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=re.escape('pip install "sarrus[plot]"')):
        getattr(fourbar_run(3), missing)()


def test_gif(pyplot, tmp_path):
    from PIL import Image

    fourbar_run(11).animate(tmp_path / "run.gif", speed=0.5, frames_per_second=5)
    with Image.open(tmp_path / "run.gif") as film:
        # two seconds of five pictures, and the last
        assert (film.format, film.n_frames, film.size) == ("GIF", 11, (640, 480))
        pictures = []
        for k in range(film.n_frames):
            film.seek(k)
            pictures.append(np.asarray(film.convert("L")))
    assert all((a != b).any() for a, b in zip(pictures[1:], pictures))


def embedded(page):
    """What the page's script is given."""
    data = json.loads(re.search(r"const data = (.*);", page)[1])
    return data, {name: np.frombuffer(base64.b64decode(data[name]), "<i2") for name in ("bars", "joints", "anchors")}


def test_html(pyplot, tmp_path):
    run = fourbar_run()
    run.animate(tmp_path / "run.html", frames_per_second=10)
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|src=|<link|@import|url\(", page)  # nothing is fetched
    data, numbers = embedded(page)
    assert data["t"] == [k / 10 for k in range(11)]
    rods = numbers["bars"].reshape(11, 3, 2, 3).astype(float)
    length = np.linalg.norm(rods[..., 1, :] - rods[..., 0, :], axis=-1)
    # crank, coupler and rocker keep their lengths, to the rounding of both ends
    assert_allclose(length / length[0, 1] * 1.1, np.tile([0.4, 1.1, 0.9], (11, 1)), rtol=0, atol=2e-4)


def test_a_name_cannot_break_the_page(pyplot, tmp_path):
    builder = sarrus.Builder("</title><script>alert(1)</script>")
    builder.add_body("rod", sarrus.Inertia.rod(1.0, [0, 0, 0], [1, 0, 0], 0.1))
    builder.add_joint("pin", sarrus.Revolute("y"), "ground", "rod")
    film = Trajectory(builder.build(), [0.0, 0.1], [[0.0], [1.0]], [[0.0], [0.0]]).animate(tmp_path / "run.html")
    assert "<script>alert" not in (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "<script>" not in film._repr_html_()  # it stands in an attribute of a frame


def test_notebooks_show_the_film(pyplot):
    film = fourbar_run(3).animate()
    shown = film._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "const data" in shown
    assert not pyplot.get_fignums()  # which a notebook would show as well


def test_mp4(pyplot, tmp_path, monkeypatch):
    from matplotlib.animation import FFMpegWriter

    if FFMpegWriter.isAvailable():
        fourbar_run(3).animate(tmp_path / "run.mp4", frames_per_second=10)
        assert (tmp_path / "run.mp4").read_bytes()[4:8] == b"ftyp"
    monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    with pytest.raises(FileNotFoundError, match="ffmpeg"):
        fourbar_run(3).animate(tmp_path / "none.mp4")


def test_animate_refuses(pyplot):
    run = fourbar_run(3)
    with pytest.raises(ValueError, match=r"\.gif, \.mp4 or \.html"):
        run.animate("run.avi")
    for bad in ({"speed": 0.0}, {"frames_per_second": np.inf}):
        with pytest.raises(ValueError, match="must be positive"):
            run.animate(**bad)
    nothing = Trajectory(run.mechanism, [0.0], np.full((1, 3), np.nan), np.zeros((1, 3)))
    with pytest.raises(ValueError, match="nothing to show"):
        nothing.animate()


def test_a_run_that_diverged_is_shown_up_to_there(pyplot, tmp_path):
    whole = fourbar_run(11)
    v = whole.v.copy()
    v[6:] = np.inf
    Trajectory(whole.mechanism, whole.t, whole.q, v).animate(tmp_path / "run.html", frames_per_second=10)
    data, numbers = embedded((tmp_path / "run.html").read_text(encoding="utf-8"))
    assert data["t"][-1] == 0.5


def test_the_page_plays(pyplot, tmp_path):
    """In a browser: it draws, it goes on, dragging turns it, and it asks for nothing."""
    sync_api = pytest.importorskip("playwright.sync_api")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser")
    fourbar_run().animate(tmp_path / "run.html")
    said, asked = [], []
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 390, "height": 700})
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "run.html").as_uri())
        page.wait_for_function("document.querySelector('input').value > 2")
        page.click("button")
        assert page.inner_text("button") == "Play"

        def picture():
            return page.evaluate("document.querySelector('canvas').toDataURL()")

        def drag(x, y):
            page.mouse.move(200, 300)
            page.mouse.down()
            page.mouse.move(200 + x, 300 + y, steps=4)
            page.mouse.up()
            return picture()

        still = picture()
        assert drag(60, 0) != still
        assert drag(-60, 0) == still
        turned = drag(0, 30)
        page.fill("input", "20")
        assert page.inner_text("output") == f"{20 / 30:.2f} s"
        assert len({still, turned, picture()}) == 3
        # it fits a phone: nothing to scroll sideways
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        chromium.close()
    assert not said
    assert len(asked) == 1
