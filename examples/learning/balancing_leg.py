"""A leg learns to balance on its parallel ankle, by stable-baselines3's PPO.

    pip install "sarrus[gymnasium,plot]" stable-baselines3
    python examples/learning/balancing_leg.py --output curve.png

Two motors on the shank drive the ankle by rods. The leg carries a mass, and its foot is fixed to the ground. For training, 256 legs with different
masses are simulated in C++; the result is tested on legs with other masses.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

import sarrus
import sarrus.gymnasium

sys.path.append(str(Path(__file__).parents[1]))
from showing import Panel, figure, table

CRANK, ROD, SIDE = 0.05, 0.24, 0.05  # [m]
MASS, HEIGHT = 10.0, 0.6  # mass on the ankle [kg], and its height [m]
PERIOD, SECONDS = 0.02, 4.0


def leg() -> sarrus.Mechanism:
    """Return the leg: ankle, shank with the mass, and on each side a motor with a crank and a rod."""
    b = sarrus.Builder("balancing leg")
    upper = sarrus.Inertia.box(MASS, (0.15, 0.2, 0.3))
    b.add_body("shank", upper.transformed(sarrus.Transform(translation=(0, 0, HEIGHT))))
    b.add_joint("ankle", sarrus.Universal("y", "x"), "ground", "shank")
    for name, y in (("left", SIDE), ("right", -SIDE)):
        crank, rod = f"{name}_crank", f"{name}_rod"
        b.add_body(crank, sarrus.Inertia.rod(0.1, (0, 0, 0), (-CRANK, 0, 0), 0.01))
        b.add_body(rod, sarrus.Inertia.rod(0.1, (0, 0, 0), (0, 0, -ROD), 0.01))
        motor = sarrus.Revolute("y", effort_limit=30.0, damping=0.1)
        b.add_joint(f"{name}_motor", motor, "shank", crank, at_parent=(0, y, ROD), actuated=True)
        b.add_joint(rod, sarrus.Universal("y", "x"), crank, rod, at_parent=(-CRANK, 0, 0))
        ends = {"at_parent": (0, 0, -ROD), "at_child": (-CRANK, y, 0)}
        b.add_joint(f"{name}_ball", sarrus.Spherical(), rod, "ground", loop=True, **ends)
    return b.build()


def environment(num_envs: int, seed: int = 0) -> sarrus.gymnasium.VectorEnv:
    """Return an environment of legs with masses from 8 to 12 kg; the reward of a period is 1 minus terms for inclination and effort."""
    robot, rng = leg(), np.random.default_rng(seed)
    inertia = {body.name: body.inertia.parameters for body in robot.description.bodies}["shank"]
    several = robot.variants(inertias={"shank": rng.uniform(0.8, 1.2, (num_envs, 1)) * inertia})
    ankle = robot.joint("ankle").q_slice
    return sarrus.gymnasium.VectorEnv(
        several,
        num_envs,
        observe=lambda q, v: np.hstack([5.0 * q[:, ankle], v[:, ankle]]),
        reward=lambda q, v, u: 1.0 - 5.0 * (q[:, ankle] ** 2).sum(1) - 1e-4 * (u**2).sum(1),
        ends=lambda q, v: (abs(q[:, ankle]) > 0.35).any(1),
        start={"ankle": (np.full(2, -0.1), np.full(2, 0.1))},
        period=PERIOD,
        dt=2e-3,
        seconds=SECONDS,
    )


def upright(act: Callable[[np.ndarray], np.ndarray], num_envs: int = 64) -> float:
    """Return the mean time [s] that legs with other masses stay upright."""
    env = environment(num_envs, seed=1)
    seen, _ = env.reset(seed=1)
    stood, going = np.zeros(num_envs), np.ones(num_envs, bool)
    for _ in range(round(SECONDS / PERIOD)):
        seen, _, terminated, _, _ = env.step(act(seen))
        going &= ~terminated
        stood += PERIOD * going
    return float(stood.mean())


def main(output: Path | None = None, periods: int = 120_000) -> dict[str, float]:
    """Train the policy, test it during training, draw the learning curve."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)  # for a network this small, starting a thread takes longer than the computation
    passive = upright(lambda seen: np.zeros((len(seen), 2)))
    curve = [(0, passive)]

    class Tried(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            stood = upright(lambda seen: self.model.predict(seen, deterministic=True)[0])
            curve.append((self.num_timesteps, stood))

    many = sarrus.gymnasium.for_stable_baselines3(environment(256))
    options = {"n_steps": 64, "batch_size": 2048, "n_epochs": 5, "learning_rate": 1e-3, "seed": 0, "device": "cpu"}
    begun = perf_counter()
    PPO("MlpPolicy", many, **options).learn(periods, callback=Tried())
    took = perf_counter() - begun
    experience, stood = np.array(curve, dtype=float).T
    rows = [
        ("upright, without control [s]", (passive,)),
        ("upright, of 4 s, at the end [s]", (stood[-1],)),
        ("learned in [s]", (took,)),
    ]
    table(f"A leg on a parallel ankle, {experience[-1]:.0f} periods", ["sarrus"], rows)
    lines = {"legs of other masses": stood}
    figure("Learning to stand", [Panel("Upright", "of 4 s", experience, lines, "periods")], output)
    return {"nothing": passive, "stood": stood[-1], "took": took}


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", metavar="FILE", help="file for the curve (.png, .pdf, .svg); default: no figure")
    parser.add_argument("--periods", type=int, default=120_000)
    main(**vars(parser.parse_args()))
