"""Dimensional synthesis, compared with SciPy's differential evolution: a six-bar linkage whose coupler point passes through 30 points.

``python -m benchmarks --synthesis`` measures the root mean square error that each method reaches in equal time. Both methods evaluate mechanisms as
variants in a batch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import numpy as np

import sarrus
from sarrus.design import FramePath, Variable, _Problem, design
from sarrus.dimensions import checked_inputs

from .tables import Row, Run, installed


def six_bar() -> sarrus.Mechanism:
    """Return a Stephenson III six-bar linkage: a four-bar linkage whose coupler is connected to the ground by a link and an arm.

    The tracer point is on the link.
    """
    b, pin = sarrus.Builder("six-bar"), sarrus.Revolute("y")
    for name, length in {"crank": 0.3, "coupler": 0.8, "rocker": 0.6, "link": 0.7, "arm": 0.5}.items():
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.01))
    b.add_joint("motor", pin, "ground", "crank", actuated=True)
    b.add_joint("pin1", pin, "crank", "coupler", at_parent=(0.3, 0, 0))
    b.add_joint("pivot", pin, "ground", "rocker", at_parent=(0.8, 0, 0))
    b.add_joint("pin2", pin, "coupler", "rocker", at_parent=(0.8, 0, 0), at_child=(0.6, 0, 0), loop=True)
    b.add_joint("pin3", pin, "coupler", "link", at_parent=(0.5, 0, 0.4))
    b.add_joint("base", pin, "ground", "arm", at_parent=(1.2, 0, 0.5))
    b.add_joint("pin4", pin, "link", "arm", at_parent=(0.7, 0, 0), at_child=(0.5, 0, 0), loop=True)
    b.add_frame("tracer", "link", (0.4, 0, 0.3))
    return b.build()


# largest changes [m] of twelve lengths and positions
VARIABLES = [
    Variable(name, -0.15, 0.15)
    for name in (
        "pin1.parent.x", "pivot.parent.x", "pin2.parent.x", "pin2.child.x", "pin3.parent.x", "pin3.parent.z", "base.parent.x", "base.parent.z",
        "pin4.parent.x", "pin4.child.x", "tracer.x", "tracer.z",
    )
]  # fmt: skip


def task(seed: int = 1, spread: float = 0.08) -> tuple[sarrus.Mechanism, dict[str, np.ndarray], FramePath]:
    """Return a six-bar linkage, 30 crank angles, and the path objective: points on the coupler curve of a six-bar linkage with random dimensions."""
    from sarrus.dimensions import Dimensions

    robot, crank = six_bar(), {"motor": np.linspace(0.3, 2.9, 30)}
    of = Dimensions(robot, ["motor"], [v.name for v in VARIABLES])
    rng = np.random.default_rng(seed)
    while True:
        wanted = of.variants(rng.uniform(-spread, spread, (32, len(of))))
        q = wanted.follow(crank)
        if (good := np.isfinite(q).all(axis=(1, 2))).any():
            points = wanted.pose(q, "tracer")[int(np.argmax(good)), :, :3, 3]
            return robot, crank, FramePath("tracer", points)


def rows(run: Run) -> Iterator[Row]:
    """Measure both methods, in two minutes each."""
    if not installed("scipy"):  # sarrus.design needs SciPy, too
        yield Row("sarrus.design", None)
        return
    from scipy.optimize import differential_evolution

    robot, crank, path = task()
    run.tell("sarrus.design")
    begun = time.perf_counter()
    starts, improved, seconds = run.of((256, 8, 120.0), (256, 8, 10.0), (16, 1, 0.5))
    found = design(robot, crank, VARIABLES, [path], starts=starts, improved=improved, seconds=seconds)
    took = time.perf_counter() - begun
    told = f"{took:.1f} s, {found.starts} starts, {found.evaluations} with derivatives"
    yield Row("sarrus.design", float(np.sqrt(2 * found.cost / 30)), "m", told)

    run.tell("differential evolution")
    problem = _Problem(robot, checked_inputs(robot, crank), VARIABLES, [path], None)
    best, evaluations, end = np.inf, 0, time.perf_counter() + took

    def cost(x: np.ndarray) -> np.ndarray:
        nonlocal best, evaluations
        if time.perf_counter() > end:
            raise StopIteration
        costs = np.minimum(problem.costs(x.T), 1e3)
        best, evaluations = min(best, float(costs.min())), evaluations + len(costs)
        return costs

    with contextlib.suppress(StopIteration, RuntimeError):
        differential_evolution(
            cost, [(v.low, v.high) for v in VARIABLES], popsize=15, maxiter=10**9, tol=0.0, seed=0, polish=False, vectorized=True,
            updating="deferred",
        )  # fmt: skip
    yield Row("differential evolution", float(np.sqrt(2 * best / 30)), "m", f"{took:.1f} s, {evaluations} evaluations")
