"""Times of solving for configurations of closed chains, one at a time and in batches, relative to the mechanism's forward dynamics."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import sarrus

from . import measure
from .tables import Run


class Row(NamedTuple):
    """Time per call or configuration [µs], its ratio to the time of one forward_dynamics call, and the largest error."""

    what: str
    time: float
    ratio: float
    error: float = np.nan


def rows(run: Run) -> list[Row]:
    """Measure a platform with target points, and a platform with target poses."""
    results: list[Row] = []
    for robot, turned in ((sarrus.mechanisms.delta(), False), (sarrus.mechanisms.stewart(), True)):
        run.tell(robot.name)
        results += _rows_of(robot, turned, run)
    return results


def _rows_of(robot: sarrus.Mechanism, turned: bool, run: Run) -> list[Row]:
    """Measure a platform with target points or, if `turned`, with target poses."""
    results: list[Row] = []
    rng, count = np.random.default_rng(0), run.of(10_000, 10_000, 50)
    q = robot.assemble()
    v = tau = np.zeros(robot.nv)
    pose = robot.pose(q, "platform")
    poses = np.repeat(pose[None], count, axis=0)
    poses[:, :3, 3] += rng.uniform(-0.05, 0.05, (count, 3))
    if turned:
        turns = rng.uniform(-0.1, 0.1, (count, 3))
        poses[:, :3, :3] = pose[:3, :3] @ np.array([sarrus.Rotation.exp(turn).matrix for turn in turns])
    places = poses if turned else poses[:, :3, 3].copy()
    near = robot.inverse_kinematics({"platform": places[0]}, near=q)
    motors = {name: float(near[robot.joint(name).q_slice][0]) + 0.005 for name in robot.actuated}
    step = places[0].copy()
    np.add(step[:3, 3] if turned else step, 0.003, out=step[:3, 3] if turned else step)

    def sample(code: str, **names: Any) -> measure.Sample:
        return measure.statement(code, "_", [None], robot=robot, q=q, v=v, tau=tau, near=near, **names)

    times = measure.interleave(
        {
            "forward_dynamics": sample("robot.forward_dynamics(q, v, tau)"),
            "assemble, motors given": sample("robot.assemble(near=near, fixed=motors)", motors=motors),
            "inverse_kinematics": sample("robot.inverse_kinematics(targets, near=near)", targets={"platform": step}),
        },
        run.seconds,
    )
    reference_time = times["forward_dynamics"]
    for name, time in times.items():
        results.append(
            Row(f"{robot.name}: {name}", float(np.median(time)) * 1e6, measure.ratio(time, reference_time)[0])
        )

    def batch(call: Callable[[], Any]) -> Any:
        spent, answer = [], None
        for _ in range(run.of(5, 2, 1)):
            start = perf_counter()
            answer = call()
            spent.append((perf_counter() - start) / count * 1e6)
        return min(spent), answer

    each, many = batch(lambda: robot.inverse_kinematics({"platform": places}, near=q))
    error = float(np.abs(robot.constraint_residual(many)).max())
    there = robot.pose(many, "platform")
    error = max(error, float(np.abs((there - poses)[:, :3, slice(None) if turned else 3]).max()))
    per_call = float(np.median(reference_time)) * 1e6
    results.append(Row(f"{robot.name}: inverse_kinematics, {count:,} at once", each, each / per_call, error))
    output = "platform" if turned else ("platform", "tx ty tz")
    each, _ = batch(lambda: robot.mobility_map(many, output=output))
    results.append(Row(f"{robot.name}: mobility_map, {count:,} at once", each, each / per_call))
    return results


def markdown(results: list[Row]) -> str:
    lines = ["| what | µs each | of one forward_dynamics call | largest error |", "| --- | ---: | ---: | ---: |"]
    for what, time, ratio, error in results:
        lines.append(f"| {what} | {time:.2f} | {ratio:.2f} | {'' if np.isnan(error) else f'{error:.1e}'} |")
    return "\n".join(lines) + "\n"
