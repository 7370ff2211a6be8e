"""Time of a batch of variants, compared with a batch of one mechanism, and with single calls. ``python -m benchmarks --variants``"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import sarrus

from . import measure
from .models import all_models
from .tables import Run


class Row(NamedTuple):
    """Time per variant [µs] in a batch, its ratio to a batch of one mechanism, and the ratio of single calls to it."""

    what: str
    time: float
    plain: float = np.nan
    each: float = np.nan


def rows(run: Run) -> list[Row]:
    """Measure functions of a state for 10,000 variants, assembled configurations, and a full crank rotation of four-bar linkages."""
    rng, seconds, (count, few) = np.random.default_rng(0), run.seconds, run.of((10_000, 100), (10_000, 100), (16, 2))
    gallery = sarrus.mechanisms
    robots = [sarrus.loads(model.urdf) for model in all_models() if model.name == "panda"]
    robots += [gallery.four_bar(), gallery.stewart(), gallery.four_bar_ladder(8)]
    results = []
    for robot in robots:
        run.tell(robot.name)
        changes = other_sizes(robot, rng.uniform(0.9, 1.1, count))
        variants = robot.variants(**changes)
        q = np.tile(robot.assemble() if robot.nc else robot.neutral(), (count, 1))
        if robot.nc:
            q = variants.assemble(near=q)
        v = np.zeros((count, robot.nv))
        state = {"robot": robot, "variants": variants, "each": [variants[i] for i in range(few)], "q": q, "v": v}
        calls = {
            "forward dynamics": "forward_dynamics(q, v, v, check=False)",
            "inverse dynamics": "inverse_dynamics(q, v, v)",
        }
        if robot.nc:
            calls["actuator efforts"] = "actuator_efforts(q, v, v, check=False, return_status=True)"
            calls["configurations from 1e-2 off"] = "project_configuration(q + 1e-2, return_status=True)"
        for what, call in calls.items():
            one = (
                call.replace("q + ", "q[i] + ").replace("(q,", "(q[i],").replace("v,", "v[i],").replace(" v)", " v[i])")
            )
            times = measure.interleave(
                {
                    "variants": measure.statement(f"variants.{call}", "_", [None], **state),
                    "plain": measure.statement(f"robot.{call}", "_", [None], **state),
                    "each": measure.statement(f"[each[i].{one} for i in range({few})]", "_", [None], **state),
                },
                seconds,
            )
            results.append(_row(f"{robot.name}: {what}", times, count, few))
        made = measure.interleave(
            {"variants": measure.statement("robot.variants(**changes)", "_", [None], robot=robot, changes=changes)},
            seconds,
        )
        results.append(Row(f"{robot.name}: made", float(np.median(made["variants"])) * 1e6 / count))
    run.tell("turns of four-bars")
    variants = gallery.four_bar().variants(
        placements={"pin1.parent": np.outer(rng.uniform(0.35, 0.45, count), [1.0, 0.0, 0.0])}
    )
    steps = run.of(200, 200, 5)
    turn = {"variants": variants, "way": {"motor": np.linspace(0.0, 2.0 * np.pi, steps)}}
    times = measure.interleave({"turn": measure.statement("variants.follow(way)", "_", [None], **turn)}, seconds)
    results.append(
        Row(f"four-bars: a position of a turn of {steps}", float(np.median(times["turn"])) * 1e6 / count / steps)
    )
    run.tell("quadrupeds")
    return [*results, *quadrupeds(run)]


def quadrupeds(run: Run) -> list[Row]:
    """Measure a simulation of ten steps with contact for 256 variants with different masses, and for a list of 256 mechanisms."""
    rng, (number, steps) = np.random.default_rng(0), run.of((256, 10), (256, 10), (8, 2))
    robot = sarrus.mechanisms.quadruped()
    factor = rng.uniform(0.9, 1.1, number)
    inertias = {body.name: np.outer(factor, body.inertia.parameters) for body in robot.description.bodies}
    variants = robot.variants(inertias=inertias)
    feet = [
        sarrus.control.CompliantContact(f, stiffness=1e3, slip_velocity=0.5, friction=0.8)
        for f in robot.frames
        if "foot" in f
    ]
    q = np.tile(robot.neutral(), (number, 1))
    q[:, 6] += 0.3
    state = {"run": sarrus.simulate_many, "robot": robot, "variants": variants, "listed": list(variants), "q": q, "v": np.zeros((number, robot.nv)), "feet": feet}  # fmt: skip
    call = f"run({{}}, q, v, {steps}e-4, feet, method='semi_implicit', dt=1e-4, every={steps})"
    names = {"variants": "variants", "listed": "listed", "plain": "robot"}
    times = measure.interleave(
        {name: measure.statement(call.format(of), "_", [None], **state) for name, of in names.items()},
        run.seconds,
    )
    return [
        Row(f"{number} quadrupeds, {steps} steps with contact{how}", float(np.median(times[name])) * 1e6 / number, measure.ratio(times[name], times["plain"])[0])
        for name, how in (("variants", ""), ("listed", ", as a list"))
    ]  # fmt: skip


def other_sizes(robot: sarrus.Mechanism, factor: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """Return arguments of `Mechanism.variants`: positions of joints on their bodies and inertial parameters, scaled by `factor` (N,)."""
    joints = {f"{j.name}.parent": np.outer(factor, j.at_parent.translation) for j in robot.description.joints}
    closing = {f"{j.name}.child": np.outer(factor, j.at_child.translation) for j in robot.description.joints}
    places = {name: x for name, x in (joints | closing).items() if _is_a_shift(robot, name)}
    return {
        "placements": places,
        "inertias": {body.name: np.outer(factor, body.inertia.parameters) for body in robot.description.bodies},
    }


def _is_a_shift(robot: sarrus.Mechanism, name: str) -> bool:
    """Return True if a frame's placement in its body is a translation without rotation."""
    joint, end = name.rsplit(".", 1)
    placement = getattr(next(j for j in robot.description.joints if j.name == joint), f"at_{end}")
    return bool(
        np.array_equal(
            placement.rotation.matrix if hasattr(placement.rotation, "matrix") else placement.rotation, np.eye(3)
        )
    )


def _row(name: str, times: dict[str, np.ndarray], count: int, few: int) -> Row:
    each = float(np.median(times["each"]) / few / (np.median(times["variants"]) / count))
    return Row(
        name,
        float(np.median(times["variants"])) * 1e6 / count,
        measure.ratio(times["variants"], times["plain"])[0],
        each,
    )


def markdown(results: list[Row]) -> str:
    """Return a table of the rows."""
    lines = [
        "| variants, 10,000 where nothing else is said | µs each | over a batch of one mechanism | one by one over it |",
        "|---|---|---|---|",
    ]
    for name, each, plain, one_by_one in results:
        beside = ["" if np.isnan(x) else f"{x:.2f}" for x in (plain, one_by_one)]
        lines.append(f"| {name} | {each:.2f} | {beside[0]} | {beside[1]} |")
    return "\n".join(lines) + "\n"
