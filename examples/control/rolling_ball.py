"""An arm rolls a ball over a table with its flat palm; the ball returns to its place, and is rotated. Montana 1988; Li and Wu 2011, 4.6.

Montana's equations predict the rotation: the contact point follows a circle on the table, without spin, and another curve on the ball. The simulation
does not use these equations: it has a ball that rolls on two planes, an arm with six motors, and TaskControl. The tasks control two components of the
ball's position, three components of the palm's orientation, and the force that squeezes the ball.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, along, command_line, norm, rise, table, written

import sarrus
from sarrus import control
from sarrus.rolling import PlaneSurface, RollingContact, SphereSurface

BALL, CIRCLE, SQUEEZE, TURN = (
    0.05,
    0.06,
    10.0,
    4.0,
)  # radii of ball and circle [m], squeezing force [N], time of a revolution [s]


def arm_and_ball() -> sarrus.Mechanism:
    """Return the arm with its palm on the ball, and the ball on a table."""
    arm = sarrus.mechanisms.six_axis_arm()
    tip = arm.pose(arm.assemble(), "tip")[:3, 3]
    b = arm.to_builder()
    b.add_body("ball", sarrus.Inertia.sphere(0.1, BALL))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    b.add_rolling("table", "ball", radius=BALL, point=tip - [0.0, 0.0, 2 * BALL])
    b.add_rolling("palm", "ball", radius=BALL, on="tool", point=(0.1, 0.0, 0.0), normal="x")
    home = {name: arm.assemble()[arm.joint(name).q_slice] for name in arm.joints}
    b.set_home({**home, "float": [0, 0, 0, 1, *(tip - [0.0, 0.0, BALL])]})
    return b.build()


def circle(t: np.ndarray | float) -> np.ndarray:
    """Return positions (..., 2) [m] on one revolution of the circle, from rest to rest."""
    angle = 2 * np.pi * rise(t, TURN)
    return CIRCLE * np.stack([1 - np.cos(angle), np.sin(angle)], axis=-1)


def planned(t: np.ndarray) -> np.ndarray:
    """Return the contact coordinates (n, 5) by Montana's equations."""
    ball, h = RollingContact(PlaneSurface(), SphereSurface(BALL)), 1e-5

    def plan(t: float, eta: np.ndarray) -> np.ndarray:
        return ball.along(eta, (circle(t + h) - circle(t - h)) / (2 * h))

    return ball.motion(np.zeros(5), plan, t, tolerance=1e-8)


def main(figures: Figures = None, duration: float = TURN) -> dict[str, float]:
    """Plan the motion, simulate it, compare the rotation with Montana's equations, draw figures."""
    robot = arm_and_ball()
    q = robot.assemble()
    t = np.linspace(0.0, duration, round(100 * duration) + 1)
    eta = planned(t[::10])
    poses = np.tile(robot.pose(q, "ball"), (len(t), 1, 1))
    poses[:, :2, 3] += circle(t)
    law = control.TaskControl(
        robot,
        [
            control.FrameTask("ball", along(t, poses), components="tx ty", stiffness=900.0),
            control.FrameTask("tip", robot.pose(q, "tip"), components="rx ry rz", stiffness=900.0),
            control.ForceTask("palm", SQUEEZE, rows=[0]),
        ],
    )
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), duration, law, dt=2e-3)

    X = run.frame("ball")
    goal = X[0, :2, 3] + circle(run.t)
    position = norm(X[:, :2, 3] - goal)
    contact = RollingContact(PlaneSurface(), SphereSurface(BALL))
    predicted = contact.pose(eta)[:, :3, :3]
    predicted = predicted @ predicted[0].T  # rotation since the start
    turned = X[np.searchsorted(run.t, t[::10] - 1e-9), :3, :3] @ X[0, :3, :3].T
    off = np.array([norm(sarrus.Rotation.from_matrix(a.T @ b).log()) for a, b in zip(predicted, turned, strict=True)])
    angle = np.array([norm(sarrus.Rotation.from_matrix(a).log()) for a in predicted])
    force = run.reactions.multipliers[:, robot.constraint("palm").rows][:, 0]
    results = {
        "position error of the ball [m]": position.max(),
        "orientation off Montana's equations [rad]": off.max(),
        "turned after the circle [rad]": angle[-1],
        "squeezing force, error of the set value": np.abs(force / SQUEEZE - 1).max(),
        "palm's tilt [rad]": norm(run.frame("tip")[:, :3, 0] - run.frame("tip")[0, :3, 0]).max(),
    }
    table("A ball rolled by a palm", ["sarrus"], [(name, [x]) for name, x in results.items()])
    panels = [
        Panel("Path of the ball", "y [m]", X[:, 0, 3], {"ball": X[:, 1, 3]}, "x [m]", True),
        Panel("Contact on the ball", "rad", t[::10], {"longitude": eta[:, 2], "latitude": eta[:, 3], "psi": eta[:, 4]}),
        Panel("Orientation off Montana's equations", "rad", t[::10], {"ball": off}),
        Panel("Squeezing force", "N", run.t, {"palm": force}),
    ]
    written(figures, "rolling_ball", "A ball rolled by a palm", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
