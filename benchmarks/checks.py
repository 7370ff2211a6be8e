"""What the look whether a state is off the loops costs forward dynamics and efforts of one state: with it and without, in turns."""

from __future__ import annotations

from statistics import quantiles

import numpy as np

import sarrus
from sarrus import _core

from .loop_models import FAST, LoopModel

MODELS = [LoopModel("four_bar", "four-bar", sarrus.mechanisms.four_bar), *FAST]
OPERATIONS = ("forward_dynamics", "actuator_efforts")
ROUNDS, STATES = 60, 16


def rows() -> dict[tuple[str, str], list[float]]:
    """Times with the look over times without it, by mechanism and function."""
    ratios = {}
    for model in MODELS:
        states = [np.ascontiguousarray(x) for x in model.states(STATES)]
        for operation in OPERATIONS if model.robot.nu else OPERATIONS[:1]:
            times: dict[bool, list[float]] = {True: [], False: []}
            for k in range(ROUNDS):
                for check in (True, False) if k % 2 else (False, True):
                    repeats = max(1, 400 // model.robot.nv)
                    times[check].append(_core.time_one_state(model.robot, operation, states, repeats, check))
            ratios[model.title, operation] = [a / b for a, b in zip(times[True], times[False], strict=True)]
    return ratios


def markdown(ratios: dict[tuple[str, str], list[float]]) -> str:
    """Medians and quartiles."""
    lines = ["| mechanism | function | with / without | quartiles |", "|---|---|---|---|"]
    for (title, operation), found in ratios.items():
        low, median, high = quantiles(found, n=4)
        lines.append(f"| {title} | {operation} | {median:.3f} | {low:.3f} to {high:.3f} |")
    return "\n".join([*lines, "", "To reach: at most 1.05.\n"])
