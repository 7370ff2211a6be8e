"""The result of a simulation: quantities derived from its samples, and between them."""

import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.simulation.trajectory import Trajectory
from tests.random_mechanisms import ALL_JOINTS, random_mechanism
from tests.trajectories import fourbar_run, same, sampled, smooth_motion

ROUNDING = 1e-12  # of numbers of size 1, over some dozen operations
MOVING = [kind for kind in ALL_JOINTS if kind != "fixed"]


@pytest.fixture
def rng():
    return np.random.default_rng(4)


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
    carried = mixed.reactions  # of the constraints of loops, of which there are none
    assert carried.multipliers.shape == (7, 0)
    assert carried.wrenches == {}
    loads, expected = mixed.joint_wrenches(), robot.joint_wrenches(q, v, mixed.a)
    assert list(loads) == list(expected)
    for name, wrench in expected.items():
        assert_allclose(loads[name], wrench, rtol=0, atol=1e-9 * np.abs(wrench).max(initial=1.0))


def test_what_follows_around_a_loop():
    run = fourbar_run(efforts=lambda t, q, v, z: np.sin(t)[:, None] * [2.0, 0.0, 0.0])
    robot = run.mechanism
    assert_array_equal(run.tau[:, 0], 2.0 * np.sin(run.t))
    assert_array_equal(run.loop_error, np.abs(robot.constraint_residual(run.q)).max(axis=1))
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
    with pytest.raises(AttributeError, match="is immutable"):
        run.q = q
    with pytest.raises(AttributeError, match="is immutable"):
        del run.q


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"t": [[0.0, 1.0]]}, "t must be (n,)"),
        ({"q": np.zeros((3, 1))}, "q must be (2, 1), a row for each time; got (3, 1)"),
        ({"v": np.zeros((2, 2))}, "v must be (2, 1), a row for each time; got (2, 2)"),
        ({"internal_state": np.zeros(2)}, "internal_state must be (2, m)"),
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


def test_very_many_samples():
    """An algorithm quadratic in the samples would not finish."""
    robot = sarrus.mechanisms.four_bar()
    n = 200_000
    q = np.tile(robot.assemble(fixed={"motor": 0.5}), (n, 1))
    run = Trajectory(robot, np.linspace(0.0, 10.0, n), q, np.zeros((n, 3)))
    assert run.energy.shape == run.loop_error.shape == (n,)
    assert run.loop_error.max() < ROUNDING
    there, still = run.at(run.t[:-1] + 2.5e-5)
    assert_allclose(there, q[1:], rtol=0, atol=ROUNDING)
    assert not still.any()


def test_samples_alone_do_not_tell_what_acts():
    """A pendulum at rest in the air: the acceleration without its forces would be wrong."""
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
    loads = robot.joint_wrenches(q, v, np.zeros((2, 1)), actuated=["pivot"])
    assert_array_equal(held.joint_wrenches(actuated=["pivot"])["pivot"], loads["pivot"])
    for name in ("tau", "reactions"):
        with pytest.raises(sarrus.ModelError, match="unknown"):
            getattr(held, name)
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
    driven = robot.joint_wrenches(q, v, a, actuated=robot.joints)
    for name, wrench in run.joint_wrenches(actuated=robot.joints).items():
        assert_array_equal(wrench, driven[name])
    assert not run.reactions.wrenches
    assert run.status == "prescribed"
    if ending == "pickle":
        back = pickle.loads(pickle.dumps(run))
    else:
        run.save(tmp_path / f"run.{ending}")
        back = Trajectory.load(tmp_path / f"run.{ending}", mechanism=robot)
    same(back, run)


def test_from_motion_around_a_loop():
    """Motors and loops together cause the motion: M a + h = tau + J^T multipliers, with tau only at motors."""
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


@pytest.mark.parametrize("name", ["t", "q", "v", "a", "efforts", "internal_state", "events"])
def test_hidden_parts_of_numbers(name):
    robot, x = sarrus.mechanisms.pendulum(), np.zeros((2, 1))
    sound = {"t": np.array([0.0, 1.0]), "events": {"touch": np.zeros(1)}} | dict.fromkeys(
        ("q", "v", "a", "efforts", "internal_state"), x
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
    """Errors are O(dt^4) in q and O(dt^3) in v, which is the rate of q."""
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
    """The cubic interpolates both states, at any distance and velocity, and v is the rate of q."""
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
    """Its origin follows a parabola, and it rotates uniformly, so cubics are exact."""
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
    """Express vectors (n, 3) of the world in the axes of rotated bodies."""
    u, w = quaternion[:, :3], quaternion[:, 3:]
    around = 2.0 * np.cross(-u, x)
    return x + w * around + np.cross(-u, around)


@pytest.mark.parametrize("t", [-1e-9, 1.0 + 1e-9, np.nan, np.inf])
def test_outside(t):
    with pytest.raises(ValueError, match="is out of range; expected 0 s to 1 s"):
        fourbar_run(5).at([0.5, t])


def test_two_samples_at_one_time():
    """At an impact the later sample is used, and no division by zero occurs."""
    run = Trajectory(
        sarrus.mechanisms.pendulum(), [0.0, 1.0, 1.0, 2.0], [[0.0], [1.0], [1.0], [0.0]], [[1.0], [1.0], [-1.0], [-1.0]]
    )
    q, v = run.at([0.5, 1.0, 1.5])
    assert_allclose(q, [[0.5], [1.0], [0.5]], rtol=0, atol=ROUNDING)
    assert_allclose(v, [[1.0], [-1.0], [-1.0]], rtol=0, atol=ROUNDING)


# ---- loads over a motion ---------------------------------------------------------------------------------------------


def turning(n=9):
    """Return a slider-crank with uniform rotation, and a gas force on its piston."""
    robot = sarrus.mechanisms.slider_crank()
    t = np.linspace(0.0, 1.0, n)
    q = robot.follow({"motor": 0.3 + 5.0 * t})
    v = robot.complete_velocity(q, {"motor": np.full(n, 5.0)})
    a = robot.complete_acceleration(q, v, {"motor": np.zeros(n)})
    gas = np.zeros((n, 6))
    gas[:, 3] = -200.0 * np.sin(3.0 * t)
    return robot, (t, q, v, a), gas


def test_loads_over_a_motion():
    """Motor efforts, and loads of loops and joints, are those of each state with its wrench."""
    robot, motion, gas = turning()
    t, q, v, a = motion
    piston = robot.bodies[-1]
    run = Trajectory.from_motion(robot, *motion, wrenches={piston: gas})
    u = robot.actuator_efforts(q, v, a, wrenches={piston: gas})
    assert_allclose(run.tau[:, :1], u, rtol=1e-12, atol=1e-9)
    assert np.abs(run.tau - Trajectory.from_motion(robot, *motion).tau).max() > 10.0
    loads, expected = run.joint_wrenches(), robot.joint_wrenches(q, v, a, wrenches={piston: gas})
    for name in expected:
        assert_allclose(loads[name], expected[name], rtol=1e-9, atol=1e-7)
    assert_allclose(run.reactions.residual, 0.0, atol=1e-9)
    assert_allclose(Trajectory(robot, t, q, v, efforts=run.tau, wrenches={piston: gas}).a, a, rtol=1e-8, atol=1e-7)


def test_loads_as_laws_and_numbers():
    robot, motion, gas = turning()
    piston, law = robot.bodies[-1], sarrus.laws.harmonic(-200.0, 3.0)
    by_law = Trajectory.from_motion(robot, *motion, wrenches={piston: [0, 0, 0, law, 0, 0]})
    assert_allclose(by_law.wrenches[piston], gas, atol=1e-12)
    held = Trajectory.from_motion(robot, *motion, wrenches={piston: [0, 0, 0, 5.0, 0, 0]})
    assert held.wrenches[piston].shape == (9, 6)
    arm = sarrus.mechanisms.double_pendulum()
    q = np.ones((9, 2))
    run = Trajectory.from_motion(arm, motion[0], q, 0 * q, 0 * q, wrenches={"tip": [0, 0, 0, 1.0, 0, 0]})
    push = arm.jacobian(q, "tip")[:, 3]
    assert_allclose(run.tau, arm.gravity_forces(q) - push, atol=1e-12)
    assert_allclose(
        run.joint_wrenches()["elbow"],
        arm.joint_wrenches(q, 0 * q, 0 * q, wrenches={"tip": [0, 0, 0, 1.0, 0, 0]})["elbow"],
    )


def test_loads_travel(tmp_path):
    robot, motion, gas = turning()
    run = Trajectory.from_motion(robot, *motion, wrenches={"wrist.child": gas, robot.bodies[-1]: gas})
    run.save(tmp_path / "x.npz")
    again = Trajectory.load(tmp_path / "x.npz")
    for name, wrench in run.wrenches.items():
        assert_array_equal(again.wrenches[name], wrench)
        assert_array_equal(pickle.loads(pickle.dumps(run)).wrenches[name], wrench)
    assert_allclose(again.joint_wrenches()["pin"], run.joint_wrenches()["pin"])
    run.save(tmp_path / "x.csv")
    again = Trajectory.load(tmp_path / "x.csv", robot)
    for name, wrench in run.wrenches.items():
        assert_array_equal(again.wrenches[name], wrench)
    assert_allclose(again.joint_wrenches()["pin"], run.joint_wrenches()["pin"])


@pytest.mark.parametrize(
    ("wrenches", "error", "text"),
    [
        ([1.0], TypeError, "mapping of frame names"),
        ({"nowhere": np.zeros(6)}, sarrus.NameNotFoundError, "nowhere"),
        ({"tip": np.zeros((3, 6))}, sarrus.ShapeError, r"must be \(6,\) or \(2, 6\)"),
        ({"tip": [0, 0, 0, np.nan, 0, 0]}, sarrus.StateError, "finite"),
    ],
)
def test_loads_that_are_none(wrenches, error, text):
    arm, x = sarrus.mechanisms.double_pendulum(), np.zeros((2, 2))
    with pytest.raises(error, match=text):
        Trajectory.from_motion(arm, [0.0, 1.0], x, x, x, wrenches=wrenches)


def test_wrenches_that_change_while_they_are_read():
    """A mapping that its own values empty is read as it was passed."""
    robot = sarrus.mechanisms.pendulum()
    loads = {}

    class Emptying:
        def __array__(self, *_, **__):
            loads.clear()
            return np.full(6, 2.0)

    loads["tip"] = Emptying()
    run = Trajectory(robot, [0.0, 1.0], np.zeros((2, 1)), np.zeros((2, 1)), wrenches=loads)
    assert_allclose(run.wrenches["tip"], np.full((2, 6), 2.0))
