"""sarrus.gymnasium: many runs as environments, with the results of simulate_many."""

import copy
import pickle

import numpy as np
import pytest

import sarrus
from tests.small_mechanisms import gate, shaken_four_bar

gymnasium = pytest.importorskip("gymnasium")
AutoresetMode = gymnasium.vector.AutoresetMode
FOURBAR = sarrus.mechanisms.four_bar()
N = 6


def made(robot=FOURBAR, num_envs=N, **changes):
    import sarrus.gymnasium

    how = {
        "observe": lambda q, v: np.hstack([q, v]), "reward": lambda q, v, u: v[:, 0] - 0.1 * u[:, 0],
        "start": {"motor": (-0.5, 0.5)}, "efforts": [4.0], "period": 0.01, "seconds": 1.0, "dtype": np.float64,
    }  # fmt: skip
    return sarrus.gymnasium.VectorEnv(robot, num_envs, **how | changes)


def played(env, actions):
    return [env.step(a) for a in actions]


@pytest.mark.parametrize("stabilisation", ["projection", "baumgarte"])
def test_periods_are_those_of_simulate_many(stabilisation):
    env = made(stabilisation=stabilisation)
    seen, _ = env.reset(seed=1)
    actions = np.random.default_rng(0).uniform(-1.5, 1.5, (7, N, 1))
    steps = played(env, actions)
    u = 4.0 * np.clip(actions, -1.0, 1.0)
    efforts = sarrus.control.EffortTable(0.01 * np.arange(7), u.swapaxes(0, 1))
    runs = sarrus.simulate_many(
        FOURBAR, seen[:, :3], seen[:, 3:], 0.07, efforts, method="semi_implicit", stabilisation=stabilisation, every=10
    )
    for k, (now, reward, *_) in enumerate(steps):
        np.testing.assert_allclose(now, np.hstack([runs.q[:, k + 1], runs.v[:, k + 1]]), atol=1e-11)
        np.testing.assert_allclose(reward, runs.v[:, k + 1, 0] - 0.1 * u[k, :, 0], atol=1e-11)


def test_elements_are_checked_at_home():
    """The strut of the gas spring is too short for the zero configuration, which no run has."""
    robot = gate()
    spring = sarrus.control.GasSpring("stud", "pillar", extended_length=0.5, stroke=0.15, force=320.0)
    env = made(robot, controller=spring, start={"hinge": (-0.85, -0.75)})
    seen, _ = env.reset(seed=0)
    now, *_ = env.step(np.zeros((N, 1)))
    run = sarrus.simulate(robot, seen[0, :1], seen[0, 1:], 0.01, spring, method="semi_implicit", dt=1e-3)
    np.testing.assert_allclose(now[0], np.hstack([run.q[-1], run.v[-1]]), atol=1e-11)


@pytest.mark.parametrize("robot", [FOURBAR, FOURBAR.variants(damping={"motor": np.linspace(0.0, 0.5, N)})])
def test_defaults_are_those_of_each_start(robot):
    """Default parameters of elements depend on the initial configuration: of each run, and of runs that restart."""
    control, DISABLED = sarrus.control, AutoresetMode.DISABLED
    stops = [
        control.EndStop("motor", (-0.1, 0.1)),
        control.EndStop("pivot", (-1.6, -1.5), stiffness=np.arange(1, 7) * 9.0),
    ]
    env = made(robot, controller=[*stops, control.LuGreFriction("pin1", 0.1)], autoreset_mode=DISABLED, dt=1e-4)
    begun, _ = env.reset(seed=1)
    rows, still = np.arange(N) >= N // 2, np.zeros((N, 1))
    env.step(still)
    again, _ = env.reset(options={"reset_mask": rows})
    now = env.step(still)[0]
    how = {"method": "semi_implicit", "limits": "ignore", "dt": 1e-4, "every": 100}
    for which, start, duration in ((~rows, begun, 0.02), (rows, again, 0.01)):
        runs = sarrus.simulate_many(robot, start[:, :3], start[:, 3:], duration, env._made_with["controller"], **how)
        end = np.hstack([runs.q[:, -1], runs.v[:, -1]])
        np.testing.assert_allclose(now[which], end[which], atol=1e-10)


def test_laws_of_time_go_by_the_clock_of_all():
    """The clock continues when episodes end."""
    push = sarrus.control.FeedforwardEffort("motor", sarrus.laws.harmonic(3.0, 40.0))
    env = made(controller=push, seconds=0.02)
    env.reset(seed=1)
    played(env, np.zeros((2, N, 1)))
    q, v = env.q, env.v
    env.step(np.zeros((N, 1)))
    runs = sarrus.simulate_many(FOURBAR, q, v, 0.01, push, method="semi_implicit", start=0.02, every=10)
    np.testing.assert_allclose(env.q, runs.q[:, -1], atol=1e-11)
    np.testing.assert_allclose(env.v, runs.v[:, -1], atol=1e-11)


def test_starts_follow_prescribed_motions():
    """Drawn joints stay in their ranges when runs restart, and default parameters are those at the time of the clock."""
    robot, stop = shaken_four_bar(), sarrus.control.EndStop("motor", (0.0, 0.45))
    motor = robot.joint("motor").q_slice.start
    env = made(robot, start={"motor": (0.4, 0.5)}, controller=stop, seconds=0.4, period=0.1)
    env.reset(seed=1)
    played(env, np.zeros((4, N, 1)))
    q, v = env.q, env.v
    assert (q[:, motor] >= 0.4).all() and (q[:, motor] <= 0.5).all()
    np.testing.assert_allclose(robot.constraint_residual(q, time=0.4), 0.0, atol=1e-12)
    env.step(np.zeros((N, 1)))
    runs = sarrus.simulate_many(robot, q, v, 0.1, stop, method="semi_implicit", start=0.4, every=100, limits="ignore")
    np.testing.assert_allclose(env.q, runs.q[:, -1], atol=1e-11)


def test_starts_close_the_loops_within_their_ranges():
    env = made(num_envs=200)
    seen, _ = env.reset(seed=3)
    assert abs(FOURBAR.constraint_residual(seen[:, :3])).max() < 1e-12
    assert -0.5 <= seen[:, 0].min() < -0.4 and 0.4 < seen[:, 0].max() <= 0.5
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(again, seen)
    other, _ = env.reset()
    assert abs(other - seen).max() > 0.1


def test_each_variant_moves_as_its_own_mechanism():
    lengths = np.linspace(0.3, 0.45, N)
    several = FOURBAR.variants(placements={"pin1.parent": np.outer(lengths, [1.0, 0.0, 0.0])})
    env = made(several, seconds=0.03)
    seen, _ = env.reset(seed=2)
    for robot, one in zip(several, seen):
        assert abs(robot.constraint_residual(one[:3])).max() < 1e-12
    then = env.step(np.ones((N, 1)))[0]
    push = sarrus.control.EffortTable([0.0], [[4.0]])
    for robot, a, b in zip(several, seen, then):
        run = sarrus.simulate(robot, a[:3], a[3:], 0.01, push, method="semi_implicit", dt=1e-3)
        np.testing.assert_allclose(b, np.hstack([run.q[-1], run.v[-1]]), atol=1e-9)
    *_, (now, _, _, truncated, _) = played(env, np.ones((2, N, 1)))  # which begin anew
    assert truncated.all()
    for robot, one in zip(several, now):
        assert abs(robot.constraint_residual(one[:3])).max() < 1e-12


def test_one_of_the_variants_begins_anew():
    lengths = np.linspace(0.3, 0.45, N)
    several = FOURBAR.variants(placements={"pin1.parent": np.outer(lengths, [1.0, 0.0, 0.0])})
    env = made(several, ends=lambda q, v: np.arange(N) == 4)
    env.reset(seed=2)
    seen, _, terminated, _, infos = env.step(np.zeros((N, 1)))
    assert terminated.tolist() == [False] * 4 + [True, False]
    assert abs(several[4].constraint_residual(seen[4, :3])).max() < 1e-12
    assert (seen[4, 3:] == 0.0).all() and (infos["final_obs"][4, 3:] != 0.0).any()


def test_what_fails_ends_and_is_finite():
    """An initial state from which a step fails ends that run only."""
    env = made(efforts=[1e200], reward=lambda q, v, u: v[:, 0])
    env.reset(seed=0)
    before = np.hstack([env.q, env.v])
    actions = np.zeros((N, 1))
    actions[2] = 1.0
    with np.errstate(all="ignore"):
        seen, reward, terminated, truncated, infos = env.step(actions)
    assert terminated.tolist() == [i == 2 for i in range(N)] and not truncated.any()
    assert infos["status"][2] != sarrus.results.Status.FINISHED and (np.delete(infos["status"], 2) == 0).all()
    assert np.isfinite(seen).all() and np.isfinite(reward).all()
    np.testing.assert_array_equal(infos["final_obs"][2], before[2])  # where it was last
    assert abs(FOURBAR.constraint_residual(seen[:, :3])).max() < 1e-12


def test_episodes_are_cut_at_their_length():
    env = made(seconds=0.03)
    env.reset(seed=0)
    cut = [step[3].all() for step in played(env, np.zeros((7, N, 1)))]
    assert cut == [False, False, True, False, False, True, False]


def test_next_step_autoreset():
    env = made(seconds=0.02, autoreset_mode=AutoresetMode.NEXT_STEP)
    env.reset(seed=0)
    first, last, anew, on = played(env, np.ones((4, N, 1)))
    assert last[3].all() and "final_obs" not in last[4] and (last[0][:, 3:] != 0.0).any()
    assert not anew[3].any() and (anew[1] == 0.0).all() and (anew[0][:, 3:] == 0.0).all()
    assert (on[0][:, 3:] != 0.0).any()


def test_resets_by_hand():
    """Only environments of the mask are reset; a finished one must be reset before the next step."""
    env = made(seconds=0.02, autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=0)
    *_, last = played(env, np.ones((2, N, 1)))
    assert last[3].all()
    with pytest.raises(sarrus.StateError, match="reset_mask"):
        env.step(np.ones((N, 1)))
    which = np.arange(N) < 4
    before = env.q
    seen, _ = env.reset(options={"reset_mask": which})
    assert (seen[:4, 3:] == 0.0).all() and (seen[:4, :3] != before[:4]).any()
    np.testing.assert_array_equal(env.q[4:], before[4:])
    for wrong in (np.zeros(N, bool), np.ones(N), np.ones(N - 1, bool)):
        with pytest.raises(sarrus.ShapeError, match="reset_mask"):
            env.reset(options={"reset_mask": wrong})
    env.reset(options={"reset_mask": ~which})
    env.step(np.ones((N, 1)))


def test_what_ends_says_so_in_the_last_infos():
    env = made(seconds=0.02)
    env.reset(seed=0)
    *_, last = played(env, np.zeros((2, N, 1)))
    infos = last[4]
    assert infos["_final_info"].all() and infos["final_info"]["_status"].all()
    np.testing.assert_array_equal(infos["final_info"]["status"], infos["status"])


def _both(q, v):
    return np.hstack([q, v])


def _speed(q, v, u):
    return v[:, 0]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on_as_the_environment(copied):
    env = made(observe=_both, reward=_speed, seconds=0.05)
    env.reset(seed=4)
    played(env, np.ones((2, N, 1)))
    other = copied(env)
    for a, b in zip(played(env, np.ones((5, N, 1))), played(other, np.ones((5, N, 1))), strict=True):  # new starts too
        for one, beside in zip(a[:4], b[:4], strict=True):
            np.testing.assert_array_equal(one, beside)


def test_tensors_share_the_arrays_memory():
    torch = pytest.importorskip("torch")
    env, beside = made(tensors="torch"), made()
    seen, _ = env.reset(seed=0)
    beside.reset(seed=0)
    a, b = env.step(torch.ones(N, 1)), beside.step(np.ones((N, 1)))
    assert all(isinstance(one, torch.Tensor) for one in (seen, *a[:4]))
    np.testing.assert_array_equal(a[0].numpy(), b[0])


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"efforts": None}, sarrus.ModelError, "pass efforts="),
        ({"efforts": [-1.0]}, sarrus.ModelError, "must be positive"),
        ({"efforts": [1.0, 2.0]}, sarrus.ShapeError, r"efforts must be \(1,\)"),
        ({"period": 0.0105}, ValueError, "whole number of steps"),
        ({"tensors": "jax"}, ValueError, "'numpy' or 'torch'"),
        ({"motors": ["none"]}, sarrus.NameNotFoundError, "none"),
        ({"observe": lambda q, v: q[:, 0]}, sarrus.ShapeError, r"observe must return \(6, k\)"),
        ({"start": {"motor": (0.1, 0.2), "pin1": (3.0, 3.1)}}, sarrus.AssemblyError, "20 random draws"),
        ({"robot": FOURBAR.variants(gravity=np.zeros((2, 3)))}, sarrus.ShapeError, "a variant for each of 6"),
        ({"controller": lambda t, q, v: q}, TypeError, "elements of sarrus.control"),
    ],
)
def test_bad_arguments(changes, error, says):
    with pytest.raises(error, match=says):
        made(**changes)


def test_bad_actions():
    env = made()
    env.reset()
    for actions, message in (
        (np.zeros((N, 2)), r"actions have shape \(6, 2\); expected \(6, 1\)"),
        (np.full((N, 1), np.nan), "actions must be finite"),
    ):
        with pytest.raises(sarrus.ShapeError, match=message):
            env.step(actions)


def test_stable_baselines3_resets_differ_after_a_seed():
    pytest.importorskip("stable_baselines3", exc_type=ImportError)
    import sarrus.gymnasium

    env, again = (sarrus.gymnasium.for_stable_baselines3(made(observe=_both, reward=_speed)) for _ in range(2))
    env.seed(0)
    again.seed(0)
    first, second = env.reset(), env.reset()
    np.testing.assert_array_equal(again.reset(), first)
    assert (first != second).any()
    copied = copy.deepcopy(env)
    np.testing.assert_array_equal(copied.reset(), env.reset())
    with pytest.raises(sarrus.ModelError, match="tensors='numpy'"):
        sarrus.gymnasium.for_stable_baselines3(_of_torch())


def _of_torch():
    env = made()
    env._tensors = "torch"  # as if torch were there
    return env


def test_stable_baselines3_sees_episodes():
    pytest.importorskip("stable_baselines3", exc_type=ImportError)
    import sarrus.gymnasium

    env = sarrus.gymnasium.for_stable_baselines3(made(seconds=0.02))
    first = env.reset()
    env.step(np.zeros((N, 1)))
    seen, reward, done, infos = env.step(np.zeros((N, 1)))
    assert done.all() and all(info["TimeLimit.truncated"] for info in infos)
    assert (
        seen.shape == first.shape and (infos[0]["terminal_observation"][3:] != 0.0).any() and (seen[0, 3:] == 0.0).all()
    )
    with pytest.raises(sarrus.ModelError, match="SAME_STEP"):
        sarrus.gymnasium.for_stable_baselines3(made(autoreset_mode=AutoresetMode.NEXT_STEP))


@pytest.fixture
def leg(monkeypatch):
    import importlib.util
    from pathlib import Path

    folder = Path(__file__).parents[3] / "examples"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("balancing_leg", folder / "learning" / "balancing_leg.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_leg_falls_and_gains_hold_it(leg):
    """The leg has two degrees of freedom, and motors that act together and against each other."""
    assert leg.leg().mobility(leg.leg().assemble()).degrees_of_freedom == 2
    assert 0.3 < leg.upright(lambda seen: np.zeros((len(seen), 2)), 8) < 1.0
    gains = 2.0 * np.array([[1.0, 1.0], [1.0, -1.0]])
    assert leg.upright(lambda seen: (seen[:, :2] + seen[:, 2:]) @ gains, 8) > 3.99


def test_the_leg_learns(leg, tmp_path):
    pytest.importorskip("stable_baselines3", exc_type=ImportError)
    pytest.importorskip("matplotlib")
    found = leg.main(tmp_path / "curve.png", 49_152)
    assert found["nothing"] < 0.7 < found["stood"]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_starts_are_on_the_branch_of_the_home():
    """The crank of a crank-rocker may start at any angle."""
    robot = sarrus.mechanisms.four_bar(0.5, 1.2, 0.8, 1.0)
    env = made(robot, num_envs=60, start={"motor": (-np.pi, np.pi)})
    seen, _ = env.reset(seed=3)
    home = robot.assemble()
    for q in seen[:, :3]:
        path = robot.follow({"motor": np.linspace(home[0], q[0], 61)}, near=home)
        np.testing.assert_allclose(np.cos(path[-1] - q), 1.0, atol=1e-9)


def test_motors_in_joints_that_close_loops_are_refused():
    robot = sarrus.mechanisms.cable_platform()
    with pytest.raises(sarrus.ModelError, match="which has no entries for loop joints"):
        sarrus.gymnasium.VectorEnv(robot, 2, observe=lambda q, v: q, reward=lambda q, v, u: q[:, 0], start={})


def test_environments_without_motors_move_freely():
    env = made(motors=(), efforts=(), reward=lambda q, v, u: v[:, 0])
    seen, _ = env.reset(seed=1)
    now, *_ = env.step(np.zeros((N, 0)))
    run = sarrus.simulate(FOURBAR, seen[0, :3], seen[0, 3:], 0.01, method="semi_implicit", dt=1e-3)
    np.testing.assert_allclose(now[0], np.hstack([run.q[-1], run.v[-1]]), atol=1e-11)
