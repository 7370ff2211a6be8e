"""Rows that others share: a warning of forces that no rigid-body model determines, and which contacts are of one rigid body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._arrays import Array, NDArray
from .._core import tolerances
from ..analysis.scaling import PRESENT, ScaledLoops, null_space
from ..errors import AssemblyError, StateError, warn_of_model
from ..mechanism import Mechanism

ASIDE = 0.1  # [rad/s, m/s], for a second: how far from home it is looked too


def warn_of_shared_rows(robot: Mechanism, constraint: str, rows: Sequence[int], what: str) -> None:
    """ModelWarning where redundant rows carry what others might: at home and beside it, as home may be a singular position."""
    shared, places = set(rows), _places(robot)
    for q in places:
        J = ScaledLoops(robot, q, None).jacobian(q)
        stress = _null_space(J.T)
        shared &= set(np.flatnonzero(np.linalg.norm(stress, axis=1) > PRESENT).tolist())
    if shared and places:
        first = robot.constraint(constraint).rows.start
        warn_of_model(
            f"{what}: what rows {sorted(r - first for r in shared)} carry is not unique, as redundant rows might carry it instead; "
            "the target is that of one choice of many. Name in rows= those that JointWrenches.indeterminate does not list"
        )


def of_one_body(robot: Mechanism, frames: Sequence[str]) -> list[list[str]]:
    """The frames in groups that do not move relative to each other: on one body, or on bodies that welds or loops hold together."""
    alike = _move_alike(robot, frames, robot.neutral(), np.eye(robot.nv))
    if robot.nc and not alike.all() and (places := _places(robot)):
        held = []
        for q in places:
            loops = ScaledLoops(robot, q, None)
            held.append(_move_alike(robot, frames, q, loops.column_scale[:, None] * _null_space(loops.jacobian(q))))
        alike |= np.all(held, axis=0)
    groups: list[list[int]] = []
    for k in range(len(frames)):
        group = next((g for g in groups if alike[g[0], k]), None)
        groups.append([k]) if group is None else group.append(k)
    return [[frames[k] for k in group] for group in groups]


def _move_alike(robot: Mechanism, frames: Sequence[str], q: Array, free: Array) -> NDArray[np.bool_]:
    """Whether the free motions (nv, k) give two frames the same twist, for each pair."""
    length, twists = robot._length, []
    middle = robot.pose(q, frames[0])[:3, 3]
    for frame in frames:
        J, p = robot.jacobian(q, frame, expressed_in="world_aligned") @ free, robot.pose(q, frame)[:3, 3] - middle
        twists.append(np.concatenate([J[:3], (J[3:] + np.cross(p, J[:3], axisb=0, axisc=0)) / length]))
    between = np.linalg.norm([[a - b for a in twists] for b in twists], axis=(2, 3))
    alike: NDArray[np.bool_] = between <= PRESENT * max(1.0, float(np.linalg.norm(twists)))
    return alike


def _places(robot: Mechanism) -> list[Array]:
    """Home and a place beside it, as home may be a singular position; none where it is not known where the loops are closed."""
    try:
        home = robot.assemble()
        aside = robot.project_velocity(home, ASIDE * np.random.default_rng(0).normal(size=robot.nv))
        return [home, robot.project_configuration(robot.integrate(home, aside))]
    except (AssemblyError, StateError):
        return []


def _null_space(J: Array) -> Array:
    return null_space(J, tolerances.negligible * max(1.0, float(np.linalg.norm(J, 2))))
