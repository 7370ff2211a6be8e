"""Three fingers hold a ball, rotate it and move it on a small circle without slip. Van der Merwe 1995, 6.1; Murray, Li and Sastry 1994, ch. 5.

There are nine motors, and the ball has six degrees of freedom, so the motion does not determine three internal forces. Tasks of the first priority move
the ball. Tasks of the second priority prescribe a force along the normal of each contact. With sufficient normal forces the contact forces stay in their
friction cones. The figure compares the friction coefficient that the grasp needs with and without the internal forces.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, along, command_line, norm, rise, table, written

import sarrus
from sarrus import control

PRESS, FRICTION = 6.0, 0.5  # target force along each normal [N]; available friction
LIFT, TURN, CIRCLE = 0.01, 0.5, 0.008  # motion of the ball: height [m], rotation [rad], radius of the circle [m]


def path(t: np.ndarray, home: np.ndarray) -> np.ndarray:
    """Return poses (n, 4, 4) of the ball: it is lifted and rotated about an inclined axis, then moves on a circle."""
    up, angle = rise(t, 0.5), 2 * np.pi * rise(t - 0.5, 1.5)
    poses = np.tile(home, (len(t), 1, 1))
    axis = np.array([1.0, 1.0, 2.0]) / np.sqrt(6.0)
    poses[:, :3, :3] = [sarrus.Rotation.exp(TURN * s * axis).matrix for s in up]
    poses[:, 0, 3] += CIRCLE * (np.cos(angle) - 1)
    poses[:, 1, 3] += CIRCLE * np.sin(angle)
    poses[:, 2, 3] += LIFT * up
    return poses


def main(figures: Figures = None, duration: float = 2.0) -> dict[str, float]:
    """Simulate with and without the internal forces, compare, draw figures."""
    robot = sarrus.mechanisms.three_finger_hand()
    q = robot.assemble()
    t = np.linspace(0.0, duration, round(200 * duration) + 1)
    poses = path(t, robot.pose(q, "object"))
    # outward normals at the contacts, in the ball's axes; forces on the ball point inwards
    outward = [[np.cos(angle), np.sin(angle), 0.0] for angle in 2 * np.pi / 3 * np.arange(3)]
    contacts = [f"contact{k}" for k in (1, 2, 3)]
    move = control.FrameTask("object", along(t, poses), stiffness=2500.0)
    press = [
        control.ForceTask(name, (-PRESS * np.array(n)).tolist(), priority=1)
        for name, n in zip(contacts, outward, strict=True)
    ]
    runs = {
        name: sarrus.simulate(robot, q, np.zeros(robot.nv), duration, control.TaskControl(robot, tasks))
        for name, tasks in (("pressed", [move, *press]), ("least efforts", [move]))
    }
    results, needed = {}, {}
    for label, run in runs.items():
        normal, across = [], []
        for name, n in zip(contacts, outward, strict=True):
            force = run.reactions.multipliers[:, robot.constraint(name).rows]
            normal.append(-force @ n)
            across.append(norm(force + normal[-1][:, None] * n))
        # limited to 2, because no friction coefficient suffices for a pulling force
        needed[label] = np.minimum(np.max(np.array(across) / np.maximum(normal, 1e-9), axis=0), 2.0)
        goal = path(run.t, poses[0])
        off = norm(run.frame("object")[:, :3, 3] - goal[:, :3, 3])
        results[f"{label}: position error [m]"] = off.max()
        results[f"{label}: least normal force [N]"] = np.min(normal)
        results[f"{label}: friction needed"] = needed[label].max()
        results[f"{label}: largest torque [N m]"] = np.abs(run.tau).max()
    table("Three fingers and a ball", ["sarrus"], [(name, [x]) for name, x in results.items()])
    run, goal = runs["pressed"], path(runs["pressed"].t, poses[0])
    forces = {name: norm(run.reactions.multipliers[:, robot.constraint(name).rows]) for name in contacts}
    panels = [
        Panel("Position error of the ball", "m", run.t, {"ball": norm(run.frame("object")[:, :3, 3] - goal[:, :3, 3])}),
        Panel("Forces of the contacts", "N", run.t, forces),
        Panel("Friction that is needed", "", run.t, {**needed, "available": np.full_like(run.t, FRICTION)}),
    ]
    written(figures, "three_fingers", "Three fingers hold and turn a ball", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
