"""What constraints say twice: rows that can go, and the wrenches with which a mechanism can be braced without loads.

Multipliers of the null space of J^T load the joints without any load on the mechanism: what these self-stresses put through a joint is
what no rigid-body model can determine.
"""

from __future__ import annotations

import numpy as np

from ..description import DistanceSpec, JointSpec, RollingSpec
from ..joints import axis_frame
from ..spatial import Transform
from ..state import Array
from .functions import LoopFunctions


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


def braced_wrenches(robot: LoopFunctions, q: Array, multipliers: Array) -> dict[str, Array]:
    """Per joint and constraint (k, 6): what each of k sets of multipliers (k, nc), in equilibrium, puts through it."""
    k = len(multipliers)
    pose = {body: Transform.from_matrix(robot.pose(q, body)) for body in ("ground", *robot.bodies)}
    loads = {body: np.zeros((k, 6)) for body in robot.bodies}
    found = {}
    all_wrenches = np.broadcast_to(robot.loop_wrenches(q, multipliers), (k, len(robot.constraints), 6))
    for i, name in enumerate(robot.constraints):
        constraint, wrench = robot.constraint(name), all_wrenches[:, i]
        found[name] = np.array(wrench)
        if not constraint.bodies:
            continue
        place = _place_on_child(constraint.spec)
        for body, sign in zip(constraint.bodies, (-1.0, 1.0), strict=True):
            if body != "ground":
                there = pose[body].inverse() @ pose[constraint.bodies[1]] @ place
                loads[body] += sign * wrench @ there.force_matrix.T
    if k == 0:
        return found | {name: np.zeros((0, 6)) for name in robot.joints}
    rest = np.zeros(robot.nv)
    falling = np.concatenate([np.zeros(3), robot.gravity])  # together with the ground: nothing has weight
    through: dict[str, Array] = robot.reactions(q, rest, rest, wrenches=loads, base_acceleration=falling)
    return found | through


def _place_on_child(spec: object) -> Transform:
    """Frame of a constraint on its child."""
    if isinstance(spec, JointSpec):
        return spec.at_child
    if isinstance(spec, DistanceSpec):
        return Transform(translation=spec.second[1])
    assert isinstance(spec, RollingSpec)
    return Transform(np.eye(3) if spec.axle is None else axis_frame(spec.axle), spec.center)
