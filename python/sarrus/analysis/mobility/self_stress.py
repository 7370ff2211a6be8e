"""What constraints say twice: rows that can go, and the wrenches with which a mechanism can be braced without loads.

Multipliers of the null space of J^T load the joints without any load on the mechanism: what these self-stresses put through a joint is
what no rigid-body model can determine.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ...dynamics.loop_operations import LoopFunctions
from ...dynamics.reactions import carried_by_tree


def removable_rows(stress: Array) -> list[int]:
    """The last rows whose removal keeps the rank: those where the self-stresses (nc, k), restricted to them, are independent."""
    left, rows = stress.copy(), []
    for _ in range(stress.shape[1]):
        size = np.linalg.norm(left, axis=1)
        row = int(np.flatnonzero(size > 1e-3 * size.max())[-1])
        direction = left[row] / size[row]
        left -= np.outer(left @ direction, direction)
        left[row] = 0.0
        rows.append(row)
    return sorted(rows)


def braced_wrenches(robot: LoopFunctions, q: Array, multipliers: Array, time: float | None) -> dict[str, Array]:
    """Per joint and constraint (k, 6): what each of k sets of multipliers (k, nc), in equilibrium, puts through it."""
    k = len(multipliers)
    wrenches = np.broadcast_to(robot.loop_wrenches(q, multipliers, time=time), (k, len(robot.constraints), 6))
    found = {name: np.array(wrenches[:, i]) for i, name in enumerate(robot.constraints)}
    through = carried_by_tree(robot, q, wrenches)
    return found | {name: 0.0 - through.get(name, np.zeros((k, 6))) for name in robot.joints}
