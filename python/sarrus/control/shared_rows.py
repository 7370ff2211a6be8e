"""A warning of forces that no rigid-body model determines: of rows of constraints that redundant ones might carry instead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._core import tolerances
from ..analysis.scaling import PRESENT, ScaledLoops, null_space
from ..errors import AssemblyError, StateError, warn_of_model
from ..mechanism import Mechanism

ASIDE = 0.1  # [rad/s, m/s], for a second: how far from home it is looked too


def warn_of_shared_rows(robot: Mechanism, constraint: str, rows: Sequence[int], what: str) -> None:
    """ModelWarning where redundant rows carry what others might: at home and beside it, as home may be a singular position."""
    shared = set(rows)
    try:
        home = robot.assemble()
        aside = robot.project_velocity(home, ASIDE * np.random.default_rng(0).normal(size=robot.nv))
        for q in (home, robot.project_configuration(robot.integrate(home, aside))):
            loops = ScaledLoops(robot, q, None)
            J = loops.jacobian(q)
            stress = null_space(J.T, tolerances.negligible * max(1.0, float(np.linalg.norm(J, 2))))
            shared &= set(np.flatnonzero(np.linalg.norm(stress, axis=1) > PRESENT).tolist())
    except (AssemblyError, StateError):
        return  # it is not known where the loops are closed
    if shared:
        first = robot.constraint(constraint).rows.start
        warn_of_model(
            f"{what}: what rows {sorted(r - first for r in shared)} carry is not unique, as redundant rows might carry it instead; "
            "the target is that of one choice of many. Name in rows= those that JointWrenches.not_unique does not list"
        )
