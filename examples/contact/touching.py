"""Functions for the demonstrations of rigid contact: tables, films, command line, and residuals of loops and cones."""

from __future__ import annotations

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # folder of showing.py
from showing import Panel, Path, command_line, figure, films, table

import sarrus

__all__ = ["Panel", "Path", "command_line", "figure", "films", "residuals", "simulated", "table"]


def simulated(robot: sarrus.Mechanism, *state: object, **options: object) -> sarrus.Trajectory:
    """Simulate with rigid contact."""
    return sarrus.simulate(robot, *state, method="contact", **options)


def residuals(run: sarrus.Trajectory) -> dict[str, float]:
    """Return the largest residuals of all steps: loop error, constraint velocities, and residual (natural map) of the friction cones."""
    largest = run.statistics["contact"]
    return {
        "loops open by [m, rad]": largest["positions"],
        "loops, velocities [m/s, rad/s]": largest["kinematics"],
        "cones, natural map [N s, m/s]": largest["natural_map"],
    }
