"""A Delta robot picks and places at 10 g: 25 mm up, 305 mm across and 25 mm down, and back.

Three controllers follow the same motion: a TaskControl in continuous time, a TaskControl at 1 kHz, and a PID controller at each motor. TaskControl
uses the robot's dynamics with its loops and passive joints; the PID controllers use no model.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, along, command_line, norm, rise, table, written

import sarrus
from sarrus import control
from sarrus.laws import spline

ACROSS, LIFT, DWELL = 0.305, 0.025, 0.05  # horizontal distance [m], height [m], pause between moves [s]
MOVE = np.sqrt(10 / np.sqrt(3) * ACROSS / (10 * 9.81))  # time of a quintic with a peak of 10 g [s]


def cycle(t: np.ndarray) -> np.ndarray:
    """Return displacements (n, 3) [m] from the start, one cycle after another."""
    phase = np.mod(t, 2 * (MOVE + DWELL))
    back = phase > MOVE + DWELL
    s = np.where(back, phase - MOVE - DWELL, phase)
    across = rise(s, MOVE)
    height = rise(s, MOVE / 2) - rise(s - MOVE / 2, MOVE / 2)
    return np.stack([ACROSS * np.where(back, 1 - across, across), 0 * s, LIFT * height], axis=-1)


def main(figures: Figures = None, duration: float = 0.736) -> dict[str, float]:
    """Simulate the three controllers, compare them, draw figures."""
    robot = sarrus.mechanisms.delta()
    home = robot.assemble(fixed={f"motor{k}": 0.4 for k in (1, 2, 3)})
    t = np.linspace(0.0, duration, round(1000 * duration) + 1)
    poses = np.tile(robot.pose(home, "platform"), (len(t), 1, 1))
    start = poses[0, :3, 3] - [ACROSS / 2, 0.0, 0.0]
    poses[:, :3, 3] = start + cycle(t)
    q = robot.inverse_kinematics({"platform": poses[0]}, near=home)
    law = control.TaskControl(
        robot, [control.FrameTask("platform", along(t, poses), components="tx ty tz", stiffness=1e4)]
    )
    # motor angles of the same motion
    near, angles = q, []
    for X in poses[::5]:
        near = robot.inverse_kinematics({"platform": X}, near=near)
        angles.append(near[[robot.joint(name).q_slice.start for name in robot.actuated]])
    pids = [
        control.PID(name, proportional=4000.0, integral=20000.0, derivative=80.0, target=spline(t[::5], x))
        for name, x in zip(robot.actuated, np.array(angles).T, strict=True)
    ]
    runs = {
        name: sarrus.simulate(robot, q, np.zeros(robot.nv), duration, controller, dt=5e-4)
        for name, controller in (
            ("TaskControl", law),
            ("TaskControl at 1 kHz", control.SampleAndHold(law)),
            ("PID", pids),
        )
    }
    motors = [robot.joint(name).v_slice.start for name in robot.actuated]
    results, off = {}, {}
    for name, run in runs.items():
        off[name] = norm(run.frame("platform")[:, :3, 3] - start - cycle(run.t))
        results[f"{name}: position error [m]"] = off[name].max()
    run = runs["TaskControl"]
    results["acceleration [g]"] = norm(robot.acceleration(run.q, run.v, run.a, "platform")[:, 3:]).max() / 9.81
    results["cycles a minute"] = 60 / (2 * (MOVE + DWELL))
    results["largest torque [N m]"] = np.abs(run.tau[:, motors]).max()
    results["largest power of a motor [W]"] = np.abs(run.tau[:, motors] * run.v[:, motors]).max()
    table("Delta robot, pick and place", ["sarrus"], [(name, [x]) for name, x in results.items()])
    x = run.frame("platform")[:, :3, 3]
    panels = [
        Panel("Path", "z [m]", x[:, 0], {"platform": x[:, 2]}, "x [m]", True),
        *(Panel(f"Position error, {name}", "m", runs[name].t, {name: e}) for name, e in off.items()),
        Panel("Torques, TaskControl", "N m", run.t, dict(zip(robot.actuated, run.tau[:, motors].T, strict=True))),
    ]
    written(figures, "delta_pick_and_place", "Pick and place at 10 g", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
