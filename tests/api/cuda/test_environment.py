"""Environments of torch's tensors on the processor."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import sarrus
import sarrus.cuda

torch = pytest.importorskip("torch", exc_type=ImportError)
pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SARRUS_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))


def made(**options):
    worlds = sarrus.cuda.Worlds(sarrus.mechanisms.pendulum(), 8, dt=1e-3, substeps=10, device="cpu")
    given = {
        "observe": lambda q, v: torch.cat([q, v], 1), "reward": lambda q, v, u: u[:, 0], "q": [[0.1], [-0.2]], "efforts": [2.0], "seconds": 0.05,
    }  # fmt: skip
    return sarrus.cuda.Environment(worlds, **(given | options))


def test_episodes_end_and_restart():
    env = made(ends=lambda q, v: q[:, 0] > 0.15)
    assert (env.num_envs, env.num_obs, env.num_actions, env.max_episode_length) == (8, 2, 1, 5)
    starts = torch.tensor([0.1, -0.2])
    seen, extras = env.reset()
    assert torch.isin(seen[:, 0], starts).all() and extras == {}
    env.q[0, 0] = 0.3  # the memory of the worlds
    seen, rewards, dones, extras = env.step(torch.full((8, 1), -5.0))
    assert rewards.tolist() == [-2.0] * 8  # actions are clipped
    assert dones.tolist() == [True] + [False] * 7 and not extras["time_outs"].any()
    assert seen[0, 0] in starts and seen[0, 1] == 0.0 and env.episode_length_buf.tolist() == [0] + [1] * 7
    for _ in range(4):
        *_, dones, extras = env.step(torch.zeros(8, 1))
    assert extras["time_outs"].tolist() == [False] + [True] * 7 and torch.equal(dones, extras["time_outs"])
    env.step(torch.full((8, 1), torch.nan))
    env.reset(torch.tensor([2, 3]))
    assert env.episode_length_buf[[2, 3]].tolist() == [0, 0]


def test_failed_worlds_end_their_episodes():
    env = made()
    actions = torch.zeros(8, 1)
    actions[5] = torch.nan
    seen, rewards, dones, extras = env.step(actions)
    assert dones.tolist() == [k == 5 for k in range(8)] and extras["status"].tolist() == [
        2 * (k == 5) for k in range(8)
    ]
    assert torch.isfinite(seen).all()


def test_seeds_draw_the_same_starts():
    first, second, other = (made(seed=seed, q=np.linspace(0.0, 1.0, 50)[:, None]).q.clone() for seed in (1, 1, 2))
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_episodes_draw_variants():
    """The same seed draws the same variants, with their own initial configurations; other environments keep theirs."""
    robot, lengths = sarrus.mechanisms.four_bar(), np.linspace(0.35, 0.45, 5)
    variants = robot.variants(placements={"pin1.parent": np.outer(lengths, [1.0, 0.0, 0.0])})
    starts = np.stack([variants.assemble(fixed={"motor": x}) for x in (0.1, 0.3)], axis=1)

    def random(seed, q=starts):
        worlds = sarrus.cuda.Worlds(variants, 40, scalar="double", device="cpu")
        return sarrus.cuda.Environment(
            worlds, lambda q, v: q, lambda q, v, u: q[:, 0], q=q, efforts=[1.0], seconds=1.0, seed=seed
        )

    first, second, other = random(1), random(1), random(2)
    drawn = first.worlds.variant.copy()
    assert len(np.unique(drawn)) == 5 and not np.array_equal(drawn, other.worlds.variant)
    chosen = np.arange(0, 40, 2)
    for _ in range(3):
        for env in (first, second):
            env.reset(torch.as_tensor(chosen))
        assert np.array_equal(first.worlds.variant, second.worlds.variant) and torch.equal(first.q, second.q)
        assert np.array_equal(first.worlds.variant[1::2], drawn[1::2])
    assert not np.array_equal(first.worlds.variant, drawn)
    for env in (first, second):
        env.step(torch.ones(40, 1))
    assert torch.equal(first.v, second.v)
    assert np.abs(variants[first.worlds.variant].constraint_residual(first.worlds.q)).max() < 1e-12
    with pytest.raises(
        sarrus.ShapeError, match=r"q must be \(rows, 3\) or 5 of these for the variants; got \(4, 2, 3\)"
    ):
        random(1, starts[:4])


def test_wrong_arguments_are_named():
    with pytest.raises(sarrus.ModelError, match="efforts for actions of 1 must be positive and finite"):
        made(efforts=None)
    with pytest.raises(sarrus.ShapeError, match=r"q must be \(rows, 1\)"):
        made(q=[[0.0, 1.0]])
    with pytest.raises(TypeError, match="worlds must be"):
        sarrus.cuda.Environment(None, None, None, q=[[0.0]])


def test_the_biped_learns(monkeypatch):
    """A round of training runs; the biped is closed by two four-bars and can move in nine directions."""
    folder = Path(__file__).parents[3] / "examples"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("walking_biped", folder / "learning" / "walking_biped.py")
    biped = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(biped)
    robot = biped.biped()
    assert robot.mobility(robot.assemble()).degrees_of_freedom == 9
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # other processes test at the same time
    env = biped.environment(64, "cpu", variants=8)
    policy, curve = biped.learn(env, 2, 0)
    assert env.worlds.variants == 8 and len(np.unique(env.worlds.variant)) > 3
    torch.set_num_threads(threads)
    assert 0.0 < curve[0] < 2.0 and len(curve) == 2
    assert all(torch.isfinite(x).all() for x in policy.parameters())
