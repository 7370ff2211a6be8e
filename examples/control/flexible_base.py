"""A small arm damps vibrations of the long arm that carries it, by inertial forces.

The long arm's joints have springs and no motors. Tasks on these passive joints specify accelerations that damp them. TaskControl computes the motion
of the small arm whose reaction produces these accelerations. The posture of the small arm is a task of the same priority with a small weight, so the
small arm returns to it. The mechanism is SpaceDyn's macro-micro arm; for the suppression of vibrations see Nenchev and others 1999.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, command_line, table, written

import sarrus
from sarrus import control

SPRINGS = ("yaw", "shoulder", "elbow")


def main(figures: Figures = None, duration: float = 10.0) -> dict[str, float]:
    """Simulate with fixed joints of the small arm, and with damping; draw figures."""
    robot = sarrus.mechanisms.macro_micro_arm(damping=40.0)
    q, v = robot.assemble(), np.zeros(robot.nv)
    v[:3] = 0.05, 0.05, -0.03
    home = {name: float(q[robot.joint(name).q_slice][0]) for name in robot.actuated}
    posture = control.PostureTask(home, stiffness=4.0)
    damped = [control.JointTask(name, 0.0, stiffness=15.0, damping=3.0, weight=1000.0) for name in SPRINGS]
    runs = {}
    for name, tasks in (("held", [posture]), ("at work", [*damped, posture])):
        runs[name] = sarrus.simulate(robot, q, v, duration, control.TaskControl(robot, tasks, limits=None))
    swing = {name: np.abs(run.q[:, :3]).max(axis=1) for name, run in runs.items()}
    last = -max(1, len(swing["held"]) // 5)
    work = runs["at work"]
    results = {
        "swing at first [rad]": swing["held"][:1000].max(),
        "held: swing in the last fifth [rad]": swing["held"][last:].max(),
        "at work: swing in the last fifth [rad]": swing["at work"][last:].max(),
        "farthest joint of the small arm [rad]": np.abs(work.q[:, 3:] - q[3:]).max(),
        "largest torque [N m]": np.abs(work.tau[:, 3:]).max(),
    }
    table("A long arm swings", ["sarrus"], [(name, [x]) for name, x in results.items()])
    panels = [
        Panel("Farthest joint of the long arm", "rad", work.t, swing),
        Panel("The small arm", "rad", work.t, dict(zip(robot.actuated, work.q[:, 3:].T, strict=True))),
    ]
    written(figures, "flexible_base", "Vibrations damped by inertia", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
