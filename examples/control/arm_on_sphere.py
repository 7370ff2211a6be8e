"""A six-axis arm slides on a ball without friction: its tip follows a path and applies a given force. Li and Wu 2011, 4.6.

The arm has six motors. The contact leaves five degrees of freedom of motion; the sixth controlled quantity is the contact force. Five task components
control the tip's pose, along the target's axes, and one task controls the multiplier of the constraint: hybrid velocity and force control. A cable
pulls on the tool, and the elbow's motor has a torque ripple. The controller has no model of these disturbances, so it needs feedback and integral action.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, along, command_line, norm, rise, table, written

import sarrus
from sarrus import control
from sarrus.laws import harmonic

RADIUS, FORCE, TURN = 0.2, 20.0, 4.0  # radius of the ball [m], force on it [N], time of a revolution [s]
CABLE, RIPPLE = 0.5, 0.2  # disturbances: force on the tip [N], torque ripple of the elbow's motor [N m]


def circle(t: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Return poses (n, 4, 4) from the ball's top to a circle around it, and along the circle; x points into the ball."""
    away, around = 0.3 * rise(t, 1.0), 2 * np.pi / TURN * t * rise(t, 1.0)
    n = np.stack([np.sin(away) * np.cos(around), np.sin(away) * np.sin(around), np.cos(away)], axis=-1)
    y = np.cross(n, [1.0, 0.0, 0.0])
    y /= norm(y)[:, None]
    poses = np.tile(np.eye(4), (len(t), 1, 1))
    poses[:, :3, :3] = np.stack([-n, y, np.cross(-n, y)], axis=-1)
    poses[:, :3, 3] = middle + RADIUS * n
    return poses


def main(figures: Figures = None, duration: float = 5.0) -> dict[str, float]:
    """Simulate the arm, compare it with the targets, draw figures."""
    robot = sarrus.mechanisms.six_axis_arm(sphere=RADIUS)
    t = np.linspace(0.0, duration, round(200 * duration) + 1)
    poses = circle(t, robot.pose(robot.assemble(), "ball")[:3, 3])
    law = control.TaskControl(
        robot,
        [
            control.FrameTask("tip", along(t, poses), components="rx ry rz ty tz", axes="target", stiffness=1e4),
            control.ForceTask("contact", FORCE, integral=200.0),
        ],
    )
    disturbances = [control.Thruster("tip", CABLE, "x"), control.FeedforwardEffort("elbow", harmonic(RIPPLE, rate=3.0))]
    q = robot.inverse_kinematics({"tip": poses[0]}, near=robot.assemble())
    run = sarrus.simulate(robot, q, np.zeros(6), duration, [law, *disturbances])

    goal = circle(run.t, robot.pose(q, "ball")[:3, 3])
    position = norm(run.frame("tip")[:, :3, 3] - goal[:, :3, 3])
    turned = norm(run.frame("tip")[:, :3, 0] - goal[:, :3, 0])
    force = run.reactions.multipliers[:, 0]
    late = run.t > min(1.0, 0.5 * duration)
    results = {
        "position error [m]": position.max(),
        "error of the tool's axis [rad]": turned.max(),
        "force error after 1 s, of the set value": np.abs(force[late] / FORCE - 1).max(),
        "force error before, of the set value": np.abs(force[~late] / FORCE - 1).max(),
    }
    table("Arm on a ball without friction", ["sarrus"], [(name, [x]) for name, x in results.items()])
    panels = [
        Panel("Position error", "m", run.t, {"tip": position}),
        Panel("Force on the ball", "N", run.t, {"force": force, "set value": np.full_like(force, FORCE)}),
        Panel("Efforts", "N m", run.t, dict(zip(robot.actuated[:3], run.tau.T, strict=False))),
    ]
    written(figures, "arm_on_sphere", "Hybrid velocity and force control on a ball", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
