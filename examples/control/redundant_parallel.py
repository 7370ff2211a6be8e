"""A parallel manipulator with a redundant motor: its tip follows a circle with a constant internal force. Li and Wu 2011, 4.6.

Three motors control three quantities: two components of the tip's position, and one force between the chains. After the circle the tip is at rest, with
a constant force.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, command_line, norm, rise, table, written

import sarrus
from sarrus import control
from sarrus.laws import spline

RADIUS, FORCE = 0.05, 5.0  # radius of the circle [m], force between tips 1 and 2 along x [N]


def main(figures: Figures = None, duration: float = 3.0) -> dict[str, float]:
    """Simulate the manipulator, compare it with the targets, draw figures."""
    robot = sarrus.mechanisms.three_rrr()
    q = robot.assemble()
    t = np.linspace(0.0, duration, round(200 * duration) + 1)
    home = robot.pose(q, "tip")[:2, 3]

    def circle(t: np.ndarray) -> np.ndarray:
        angle = 2 * np.pi * rise(t, 0.7 * duration)
        return home + RADIUS * np.stack([np.cos(angle) - 1, np.sin(angle)], axis=-1)

    law = control.TaskControl(
        robot,
        [
            control.FrameTask("tip", [spline(t, x) for x in circle(t).T], components="tx ty", stiffness=2500.0),
            control.ForceTask("tip2", FORCE, rows=[2]),
        ],
    )
    run = sarrus.simulate(robot, q, np.zeros(6), duration, law)

    position = norm(run.frame("tip")[:, :2, 3] - circle(run.t))
    rows = robot.constraint("tip2").rows
    force = run.reactions.multipliers[:, rows][:, 2]
    motors = [robot.joint(name).v_slice.start for name in robot.actuated]
    least = robot.actuator_efforts(run.q, run.v, run.a)
    rest = run.t > 0.9 * duration
    results = {
        "position error [m]": position.max(),
        "force error at rest, of the set value": np.abs(force[rest] / FORCE - 1).max(),
        "force error on the way, of the set value": np.abs(force / FORCE - 1).max(),
        "largest torque [N m]": np.abs(run.tau[:, motors]).max(),
        "largest torque without internal force [N m]": np.abs(least).max(),
    }
    table("Redundant parallel manipulator", ["sarrus"], [(name, [x]) for name, x in results.items()])
    panels = [
        Panel("Position error", "m", run.t, {"tip": position}),
        Panel("Force between tips 1 and 2 along x", "N", run.t, {"force": force}),
        Panel("Torques", "N m", run.t, dict(zip(robot.actuated, run.tau[:, motors].T, strict=True))),
        Panel("Least torques of the same motion", "N m", run.t, dict(zip(robot.actuated, least.T, strict=True))),
    ]
    written(figures, "redundant_parallel", "Position and internal force", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
