"""Measurements of floating bases: the generalized Jacobian of an arm of six joints. Goals are in goals.json."""

from __future__ import annotations

from time import perf_counter

import numpy as np

import sarrus

from .measure import statement
from .rows import BATCH, CYCLE, Result, Row, Selection
from .tables import Run

TITLES = {"satellite6": "satellite with an arm of 6 joints"}


def satellite() -> sarrus.Mechanism:
    b = sarrus.Builder("satellite6", gravity=(0, 0, 0))
    b.add_body("satellite", sarrus.Inertia.box(200.0, (1.0, 1.0, 1.0)))
    b.add_joint("base", sarrus.Free(), "ground", "satellite")
    before, at = "satellite", (0.5, 0.1, 0.2)
    for k, axis in enumerate("zyyxyx"):
        b.add_body(f"link{k}", sarrus.Inertia.rod(8.0 - k, (0, 0, 0), (0.4, 0, 0), radius=0.05))
        b.add_joint(f"joint{k}", sarrus.Revolute(axis), before, f"link{k}", at_parent=at)
        before, at = f"link{k}", (0.4, 0, 0)
    b.add_frame("hand", before, (0.4, 0, 0))
    return b.build()


def measured(run: Run, selection: Selection) -> list[Result]:
    groups = selection.groups & {"floating-python", "floating-batch"}
    if not groups or "gjm" not in selection.algorithms or not selection.models & set(TITLES):
        return []
    robot, count = satellite(), run.of(BATCH, BATCH, CYCLE)
    f, q = sarrus.floating.generalized_jacobian, robot.random(np.random.default_rng(0), size=count)
    one = statement("f(robot, q, 'hand', out=J)", "q", list(q[:CYCLE]), f=f, robot=robot, J=np.empty((6, 6)))
    out = np.empty((count, 6, 6))

    def together() -> float:
        start = perf_counter()
        f(robot, q, "hand", out=out, threads=1)
        return (perf_counter() - start) / count

    rows = {
        "floating-python": Row("floating-python", "gjm", robot.name, {"sarrus": one}, ()),
        "floating-batch": Row(
            "floating-batch", "gjm", robot.name, {"sarrus": together, "one state": one}, ("one state",)
        ),
    }
    results = []
    for group in sorted(groups):
        run.tell(f"{TITLES[robot.name]}: generalized Jacobian, {group}")
        results.append(rows[group].measure(run.of(3.0, 0.3, 0.0)))
    return results
