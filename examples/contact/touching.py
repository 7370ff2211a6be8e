"""What the demonstrations of rigid contact share: a table, films, a command line, and how well loops and cones were held."""

from __future__ import annotations

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # where showing.py stands, which all examples share
from showing import Panel, Path, command_line, figure, films, table

import sarrus

__all__ = ["Panel", "Path", "command_line", "figure", "films", "held", "simulated", "table"]


def simulated(robot: sarrus.Mechanism, *state: object, **how: object) -> sarrus.Trajectory:
    """A run on rigid ground, whose limits are stops."""
    return sarrus.simulate(robot, *state, method="contact", **how)


def held(run: sarrus.Trajectory) -> dict[str, float]:
    """The worst of all steps: loops in position, all rows in velocity, and the cones' natural map."""
    left = run.statistics["contact"]
    return {
        "loops open by [m, rad]": left["positions"],
        "loops, velocities [m/s, rad/s]": left["kinematics"],
        "cones, natural map [N s, m/s]": left["natural_map"],
    }
