"""What constraints say twice: rows that can go, and the wrenches with which a mechanism can be braced without loads.

Multipliers of the null space of J^T load the joints without any load on the mechanism: what these self-stresses put through a joint is
what no rigid-body model can determine.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ...dynamics.loop_operations import LoopFunctions
from ...dynamics.reactions import carried_by_tree

BLOCK = 64  # rows that are looked at one by one, before all others are told what they span at once


def removable_rows(stress: Array) -> list[int]:
    """The last rows whose removal keeps the rank: those where the self-stresses (nc, k), restricted to them, are independent."""
    rows: list[int] = []
    left = stress.copy()
    while len(rows) < stress.shape[1]:
        size = np.linalg.norm(left, axis=1)
        last = np.flatnonzero(size > 1e-3 * size.max())[-BLOCK:]
        block, directions = left[last], []
        for k in reversed(range(len(last))):
            length = np.linalg.norm(block[k])
            if length <= 1e-3 * size.max() or len(rows) == stress.shape[1]:
                continue
            direction = block[k] / length
            block -= np.outer(block @ direction, direction)
            directions.append(direction)
            rows.append(int(last[k]))
        D = np.array(directions)
        left -= (left @ D.T) @ D
        left[rows] = 0.0
    return sorted(rows)


def braced_wrenches(robot: LoopFunctions, q: Array, multipliers: Array, time: float | None) -> dict[str, Array]:
    """Per joint and constraint (k, 6): what each of k sets of multipliers (k, nc), in equilibrium, puts through it."""
    k = len(multipliers)
    wrenches = np.broadcast_to(robot._loop_wrenches(q, multipliers, time=time), (k, len(robot.constraints), 6))
    of_constraints = {name: np.array(wrenches[:, i]) for i, name in enumerate(robot.constraints)}
    through = carried_by_tree(robot, q, wrenches)
    return of_constraints | {name: 0.0 - through.get(name, np.zeros((k, 6))) for name in robot.joints}
