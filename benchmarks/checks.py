"""Cost of the check that a state satisfies the loop constraints, in forward dynamics and motor efforts of one state.

Calls with and without the check alternate.
"""

from __future__ import annotations

from statistics import quantiles

import numpy as np

import sarrus
from sarrus import _core

from .loop_models import FAST, LoopModel
from .tables import Row, Run

MODELS = [LoopModel("four_bar", "four-bar", sarrus.mechanisms.four_bar), *FAST]
OPERATIONS = ("forward_dynamics", "actuator_efforts")


def rows(run: Run) -> list[Row]:
    """Return times with the check divided by times without it."""
    rounds, states = run.of((60, 16), (20, 8), (2, 2))
    results = []
    for model in run.of(MODELS, MODELS, MODELS[:2]):
        run.tell(model.title)
        inputs = [np.ascontiguousarray(x) for x in model.states(states)]
        for operation in OPERATIONS if model.robot.nu else OPERATIONS[:1]:
            times: dict[bool, list[float]] = {True: [], False: []}
            for k in range(rounds):
                for check in (True, False) if k % 2 else (False, True):
                    repeats = max(1, 400 // model.robot.nv)
                    times[check].append(_core.time_one_state(model.robot, operation, inputs, repeats, check))
            ratios = [a / b for a, b in zip(times[True], times[False], strict=True)]
            low, median, high = quantiles(ratios, n=4)
            results.append(Row(f"{model.title}: {operation}", median, "times", f"quartiles {low:.3f} to {high:.3f}"))
    return [*results, Row("with the check over without it, most", max(row.seen for row in results), "times")]
