"""Redundancy of constraint rows and contacts: a warning of indeterminate forces, and groups of contacts on one rigid body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._arrays import Array, NDArray
from .._core import tolerances
from ..analysis.scaling import PRESENT, ScaledLoops, null_space
from ..errors import AssemblyError, StateError, warn_of_model
from ..mechanism import Mechanism

ASIDE = 0.1  # distance of the second tested configuration from the home configuration [rad, m]


def warn_of_shared_rows(robot: Mechanism, constraint: str, rows: Sequence[int], label: str) -> None:
    """Issue a ModelWarning if rows are redundant in the home configuration and in a nearby one, because home may be a singular position."""
    shared, places = set(rows), _places(robot)
    for q in places:
        J = ScaledLoops(robot, q, None).jacobian(q)
        stress = _null_space(J.T)
        shared &= set(np.flatnonzero(np.linalg.norm(stress, axis=1) > PRESENT).tolist())
    if shared and places:
        first = robot.constraint(constraint).rows.start
        warn_of_model(
            f"{label}: the forces of rows {sorted(r - first for r in shared)} are not unique, because redundant rows share them; "
            "the target selects one of many distributions. Give rows= without those that JointWrenches.indeterminate lists"
        )


def rigid_groups(robot: Mechanism, frames: Sequence[str]) -> list[list[str]]:
    """Return groups of frames without relative motion: on one body, or on bodies that are welded or rigidly connected by loops."""
    alike = _move_alike(robot, frames, robot.neutral(), np.eye(robot.nv))
    if robot.nc and not alike.all() and (places := _places(robot)):
        rigid = []
        for q in places:
            loops = ScaledLoops(robot, q, None)
            rigid.append(_move_alike(robot, frames, q, loops.column_scale[:, None] * _null_space(loops.jacobian(q))))
        alike |= np.all(rigid, axis=0)
    groups: list[list[int]] = []
    for k in range(len(frames)):
        group = next((g for g in groups if alike[g[0], k]), None)
        groups.append([k]) if group is None else group.append(k)
    return [[frames[k] for k in group] for group in groups]


def _move_alike(robot: Mechanism, frames: Sequence[str], q: Array, free: Array) -> NDArray[np.bool_]:
    """Return True for each pair of frames that have the same twist in all free motions (nv, k)."""
    length, twists = robot._length, []
    middle = robot.pose(q, frames[0])[:3, 3]
    for frame in frames:
        J, p = robot.jacobian(q, frame, expressed_in="world_aligned") @ free, robot.pose(q, frame)[:3, 3] - middle
        twists.append(np.concatenate([J[:3], (J[3:] + np.cross(p, J[:3], axisb=0, axisc=0)) / length]))
    between = np.linalg.norm([[a - b for a in twists] for b in twists], axis=(2, 3))
    alike: NDArray[np.bool_] = between <= PRESENT * max(1.0, float(np.linalg.norm(twists)))
    return alike


def _places(robot: Mechanism) -> list[Array]:
    """Return the home configuration and a nearby one, because home may be a singular position; an empty list if the loops do not close."""
    try:
        home = robot.assemble()
        aside = robot.project_velocity(home, ASIDE * np.random.default_rng(0).normal(size=robot.nv))
        return [home, robot.project_configuration(robot.integrate(home, aside))]
    except (AssemblyError, StateError):
        return []


def _null_space(J: Array) -> Array:
    return null_space(J, tolerances.negligible * max(1.0, float(np.linalg.norm(J, 2))))
