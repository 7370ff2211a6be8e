"""A biped with closed ankles learns to walk, by proximal policy optimisation (PPO) of torch tensors on a GPU or on the processor.

    pip install "sarrus[cuda,plot]" torch
    python examples/learning/walking_biped.py --device cuda --output curve.png

The biped moves in a plane. In each leg, motors at the hip and the knee move thigh and shank, and a motor on the shank moves the foot by a crank and a
rod: a four-bar that closes a loop. The policy commands the six efforts 100 times per second; it should walk at 0.5 m/s. Observations include the ankles,
which are passive joints. The method is that of Schulman et al., Proximal policy optimization algorithms, arXiv:1707.06347 (2017).
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

import sarrus
import sarrus.cuda
from sarrus import control

sys.path.append(str(Path(__file__).parents[1]))
from showing import Panel, figure, table

THIGH, SHANK, ROD, LEVER, HEEL, TOE = 0.35, 0.35, 0.25, 0.05, -0.07, 0.13  # [m]
SPEED, SECONDS = 0.5, 10.0
AIM = 1.05 * SPEED  # with the highest reward; it exceeds the required mean speed, because the bipeds start at rest
EFFORTS = (60.0, 60.0, 30.0) * 2  # hip, knee and ankle of each leg [N m]
LOW, HIGH = (-1.2, 0.0, -0.9), (0.8, 1.9, 0.9)  # range of hip, knee and ankle [rad]
JOINTS = [f"{side}_{joint}" for side in ("left", "right") for joint in ("hip", "knee", "ankle")]


def biped() -> sarrus.Mechanism:
    """Return the biped; the coordinates of its trunk are those of a planar joint."""
    b = sarrus.Builder("walking biped")
    trunk = sarrus.Inertia.box(10.0, (0.2, 0.25, 0.4))
    b.add_body("trunk", trunk.transformed(sarrus.Transform(translation=(0, 0, 0.2))))
    b.add_joint("float", sarrus.Planar("y"), "ground", "trunk")
    for side, y in (("left", 0.1), ("right", -0.1)):
        b.add_body(f"{side}_thigh", sarrus.Inertia.rod(2.0, (0, 0, 0), (0, 0, -THIGH), 0.05))
        b.add_body(f"{side}_shank", sarrus.Inertia.rod(1.5, (0, 0, 0), (0, 0, -SHANK), 0.04))
        b.add_body(f"{side}_foot", sarrus.Inertia.rod(0.5, (HEEL, 0, -0.05), (TOE, 0, -0.05), 0.03))
        b.add_body(f"{side}_crank", sarrus.Inertia.rod(0.2, (0, 0, 0), (-LEVER, 0, 0), 0.02))
        b.add_body(f"{side}_rod", sarrus.Inertia.rod(0.1, (0, 0, 0), (0, 0, -ROD), 0.01))
        motor = sarrus.Revolute("y", damping=0.5, armature=0.02)
        b.add_joint(f"{side}_hip", motor, "trunk", f"{side}_thigh", at_parent=(0, y, 0), actuated=True)
        b.add_joint(f"{side}_knee", motor, f"{side}_thigh", f"{side}_shank", at_parent=(0, 0, -THIGH), actuated=True)
        at_crank = (0, 0, ROD - SHANK)
        b.add_joint(f"{side}_motor", motor, f"{side}_shank", f"{side}_crank", at_parent=at_crank, actuated=True)
        b.add_joint(f"{side}_ankle", sarrus.Revolute("y"), f"{side}_shank", f"{side}_foot", at_parent=(0, 0, -SHANK))
        b.add_joint(f"{side}_pin", sarrus.Revolute("y"), f"{side}_crank", f"{side}_rod", at_parent=(-LEVER, 0, 0))
        ends = {"at_parent": (0, 0, -ROD), "at_child": (-LEVER, 0, 0)}
        b.add_joint(f"{side}_heel", sarrus.Revolute("y"), f"{side}_rod", f"{side}_foot", loop=True, **ends)
        for end, x in (("back", HEEL), ("front", TOE)):
            b.add_frame(f"{side}_{end}", f"{side}_foot", (x, 0, -0.05))
    return b.build()


def environment(count: int, device: str, seed: int = 0, variants: int = 1) -> sarrus.cuda.Environment:
    """Return environments of walking bipeds, which begin with one foot in front of the other.

    With several variants, each episode draws one: masses within 20 %, friction of the ground from 0.6 to 1, damping of the motors from 0.25 to 1 N m s.
    """
    robot, rng = biped(), np.random.default_rng(seed)
    simulated, friction = robot, 0.9
    if variants > 1:
        simulated = robot.variants(
            inertias={
                b.name: np.outer(rng.uniform(0.8, 1.2, variants), b.inertia.parameters)
                for b in robot.description.bodies
            },
            damping={joint: rng.uniform(0.25, 1.0, variants) for joint in robot.actuated},
        )
        friction = rng.uniform(0.6, 1.0, variants)
    ground = {"stiffness": 2e4, "exponent": 1.0, "dissipation": 1.0, "friction": friction, "slip_velocity": 0.1}
    soles = [f"{side}_{end}" for side in ("left", "right") for end in ("back", "front")]
    elements = [control.CompliantContact(frame, **ground) for frame in soles]
    for joint, low, high in zip(JOINTS, LOW * 2, HIGH * 2, strict=True):
        elements.append(control.EndStop(joint, (low, high), stiffness=300.0, damping=3.0))
    worlds = sarrus.cuda.Worlds(simulated, count, dt=1e-3, substeps=10, elements=elements, device=device)
    rng, starts = np.random.default_rng(seed), []  # the same starts with and without variants
    for lead in np.resize([0.15, -0.15], 32):
        fixed = {"float": (0.0, 0.0, 0.0)}
        for side, bend, turn in zip(("left", "right"), rng.uniform(0.2, 0.4, 2), (lead, -lead), strict=True):
            fixed |= {f"{side}_hip": turn - bend, f"{side}_knee": 2 * bend, f"{side}_ankle": -turn - bend}
        q = robot.assemble(fixed=fixed)
        q[1] = min(robot.pose(q, frame)[2, 3] for frame in soles)  # the second coordinate of the trunk points down
        starts.append(q)
    at, rates = ([getattr(robot.joint(name), f"{letter}_slice").start for name in JOINTS] for letter in "qv")

    def observe(q: Any, v: Any) -> Any:
        return torch.cat([-q[:, 1:2] - 0.7, q[:, 2:3], q[:, at], v[:, :2], 0.3 * v[:, 2:3], 0.1 * v[:, rates]], 1)

    def reward(q: Any, v: Any, u: Any) -> Any:
        walks = torch.exp(-((v[:, 0] - AIM) ** 2) / 0.1)
        return 1.5 * walks + 0.5 - q[:, 2] ** 2 - 2e-5 * (u**2).sum(1) - 2e-4 * (v[:, rates] ** 2).sum(1)

    def ends(q: Any, v: Any) -> Any:
        return (q[:, 1] > -0.5) | (q[:, 2].abs() > 0.6)

    return sarrus.cuda.Environment(
        worlds, observe, reward, q=starts, ends=ends, efforts=EFFORTS, seconds=SECONDS, seed=seed
    )


# ---- proximal policy optimisation -------------------------------------------------------------------------------------

STEPS, EPOCHS, BATCHES, DISCOUNT, TRACE, CLIP, ENTROPY, DIVERGENCE = 32, 4, 4, 0.99, 0.95, 0.2, 2e-3, 0.012


class Policy(torch.nn.Module):
    """Networks of the mean action and of the value of a state, and the spread of actions."""

    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()

        def network(outputs: int, gain: float) -> torch.nn.Sequential:
            layers = [torch.nn.Linear(a, b) for a, b in ((observations, 128), (128, 64), (64, outputs))]
            torch.nn.init.orthogonal_(layers[-1].weight, gain)
            return torch.nn.Sequential(layers[0], torch.nn.ELU(), layers[1], torch.nn.ELU(), layers[2])

        self.mean, self.value = network(actions, 0.01), network(1, 1.0)
        self.log_spread = torch.nn.Parameter(torch.full((actions,), -0.7))

    def actions(self, observations: torch.Tensor) -> torch.distributions.Normal:
        """Return the distribution of actions."""
        return torch.distributions.Normal(self.mean(observations), self.log_spread.exp())


def learn(env: sarrus.cuda.Environment, rounds: int, seed: int) -> tuple[Policy, list[float]]:
    """Train a policy; return it, and the mean reward of each round of actions."""
    torch.manual_seed(seed)
    policy = Policy(env.num_obs, env.num_actions).to(env.device)
    optimiser, rate, curve = torch.optim.Adam(policy.parameters()), 1e-3, []
    seen = env.get_observations()
    env.episode_length_buf.random_(0, env.max_episode_length)  # so that episodes do not end at the same time
    for _ in range(rounds):
        rows = []
        with torch.no_grad():
            for _ in range(STEPS):
                chosen = policy.actions(seen)
                actions = chosen.sample()
                value, before = policy.value(seen)[:, 0], seen
                seen, reward, done, extras = env.step(actions)
                reward = reward + DISCOUNT * value * extras["time_outs"]  # the episode would go on
                rows.append(
                    (before, actions, chosen.log_prob(actions).sum(1), value, reward, done.float(), chosen.mean)
                )
            x, actions, old, value, reward, done, mean = (torch.stack(column) for column in zip(*rows, strict=True))
            gain, gains, after = torch.zeros_like(value[0]), torch.zeros_like(value), policy.value(seen)[:, 0]
            for k in reversed(range(STEPS)):
                gain = reward[k] + (1 - done[k]) * DISCOUNT * (after + TRACE * gain) - value[k]
                gains[k], after = gain, value[k]
            curve.append(float(reward.mean()))
            target, spread = gains + value, policy.log_spread.exp().clone()
            gains = (gains - gains.mean()) / (gains.std() + 1e-6)
            data = [y.flatten(0, 1) for y in (x, actions, old, gains, target, mean)]
        for _ in range(EPOCHS):
            for part in torch.randperm(len(data[0]), device=env.device).chunk(BATCHES):
                x, actions, old, gains, target, mean = (y[part] for y in data)
                chosen = policy.actions(x)
                with torch.no_grad():  # the step size follows from the change of the distribution
                    moved = (
                        torch.distributions.kl_divergence(torch.distributions.Normal(mean, spread), chosen)
                        .sum(1)
                        .mean()
                    )
                    rate = (
                        max(rate / 1.5, 1e-5)
                        if moved > 2 * DIVERGENCE
                        else min(rate * 1.5, 3e-3)
                        if moved < DIVERGENCE / 2
                        else rate
                    )
                ratio = (chosen.log_prob(actions).sum(1) - old).exp()
                surrogate = torch.min(ratio * gains, ratio.clamp(1 - CLIP, 1 + CLIP) * gains).mean()
                loss = (
                    (policy.value(x)[:, 0] - target).square().mean()
                    - surrogate
                    - ENTROPY * chosen.entropy().sum(1).mean()
                )
                optimiser.param_groups[0]["lr"] = rate
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
                optimiser.step()
    return policy, curve


def walked(policy: Policy, device: str, count: int = 64) -> tuple[float, float]:
    """Return the share of bipeds that walk for the whole duration, and their mean speed [m/s]."""
    env = environment(count, device, seed=1)
    going, start = torch.ones(count, dtype=torch.bool, device=env.device), env.q[:, 0].clone()
    with torch.no_grad():
        for _ in range(env.max_episode_length - 1):
            _, _, done, _ = env.step(policy.mean(env.get_observations()))
            going &= ~done
    way = (env.q[:, 0] - start)[going]
    return float(going.float().mean()), float(way.mean()) / SECONDS if len(way) else 0.0


def main(
    output: Path | None = None,
    device: str = "cpu",
    rounds: int = 400,
    count: int = 1024,
    seed: int = 0,
    variants: int = 1,
) -> dict[str, float]:
    """Train the policy, test it, draw the learning curve."""
    torch.set_num_threads(1)  # for a network this small, starting a thread takes longer than the computation
    env = environment(count, device, seed, variants)
    begun = perf_counter()
    policy, curve = learn(env, rounds, seed)
    took = perf_counter() - begun
    share, speed = walked(policy, device)
    rows = [
        ("walk for 10 s, of all", (share,)),
        ("their speed [m/s], 0.5 required", (speed,)),
        ("learned in [s]", (took,)),
    ]
    table(f"Biped with closed ankles, {rounds * STEPS * count / 1e6:.1f} million actions", ["sarrus"], rows)
    figure(
        "Learning to walk",
        [Panel("Reward", "of an action", np.arange(rounds), {"mean": np.array(curve)}, "rounds")],
        output,
    )
    return {"share": share, "speed": speed, "took": took, "first": curve[0], "last": curve[-1]}


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", metavar="FILE", help="file for the curve (.png, .pdf, .svg); default: no figure")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--count", type=int, default=1024, help="number of bipeds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--variants", type=int, default=1, help="number of bipeds with random masses, damping and ground"
    )
    main(**vars(parser.parse_args()))
