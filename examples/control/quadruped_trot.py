"""A quadruped stands on four feet, shifts and rotates its trunk, and trots in place with a fixed contact schedule.

Each phase has its own TaskControl: standing feet are contacts with friction cones, swing feet follow a target. The trunk's pose is a task, and efforts
have limits. In the simulation the ground is compliant, with a larger friction coefficient than the cones of the controller. The controller is sampled at
1 kHz, as on a real robot.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from following import Figures, Panel, command_line, norm, rise, table, written

import sarrus
from sarrus import control

STAND, STEP, LIFT = 1.5, 0.25, 0.05  # duration of standing [s], of a step [s], height of a swing foot [m]
FRICTION, GROUND = 0.5, 0.7  # friction of the controller's model, and of the simulated ground
FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
PAIRS = (("LF_foot", "RH_foot"), ("RF_foot", "LH_foot"))


def trunk(t: float, home: np.ndarray) -> np.ndarray:
    """Return the trunk's target pose, which moves sideways, turns and returns while the feet stand."""
    pose = home.copy()
    s = np.sin(2 * np.pi * t / STAND) * rise(t, 0.3) * rise(STAND - t, 0.3)
    pose[:3, 3] += s * np.array([0.02, 0.03, 0.0])
    pose[:3, :3] = sarrus.Rotation.from_rpy(0.1 * s, 0.0, 0.1 * s).matrix @ home[:3, :3]
    return pose


def swing(place: np.ndarray) -> Callable[[float], np.ndarray]:
    """Return a function of time: target poses of a foot that is lifted and set down at the same place; only the position counts."""

    def pose(t: float) -> np.ndarray:
        X = np.eye(4)
        X[:3, 3] = place
        X[2, 3] += LIFT * np.sin(np.pi * (((t - STAND) / STEP) % 1.0)) ** 2
        return X

    return pose


def main(figures: Figures = None, duration: float = 4.0) -> dict[str, float]:
    """Simulate standing and trotting, draw figures."""
    robot = sarrus.mechanisms.quadruped()
    q = robot.assemble()
    home, places = robot.pose(q, "trunk"), {foot: robot.pose(q, foot)[:3, 3] for foot in FEET}

    def standing_on(feet: tuple[str, ...]) -> control.TaskControl:
        tasks = [
            control.FrameTask("trunk", lambda t: trunk(t, home), stiffness=[100, 100, 50, 50, 50, 200], weight=1.0)
        ]
        tasks += [
            control.FrameTask(foot, swing(places[foot]), components="tx ty tz", stiffness=900.0, weight=1.0)
            for foot in FEET
            if foot not in feet
        ]
        contacts = [control.PointContact(foot, friction=FRICTION) for foot in feet]
        return control.TaskControl(robot, tasks, contacts=contacts)

    phases = standing_on(FEET), standing_on(PAIRS[0]), standing_on(PAIRS[1])
    samples: list[tuple[float, np.ndarray]] = []

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        phase = 0 if t < STAND - 1e-9 else 1 + int((t - STAND) / STEP + 1e-9) % 2
        samples.append((t, phases[phase].solve(t, q, v).tau))
        return samples[-1][1]

    ground = [
        control.CompliantContact(foot, stiffness=1e6, dissipation=2.0, friction=GROUND, slip_velocity=0.01)
        for foot in FEET
    ]
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), duration, [control.SampleAndHold(law, period=1e-3), *ground])
    X, stands = run.frame("trunk"), run.t < STAND
    goal = np.array([trunk(t, home) for t in run.t])
    off = norm(X[:, :3, 3] - goal[:, :3, 3])
    tilt = norm(X[:, :3, 2] - goal[:, :3, 2])
    times, efforts = (np.array(x) for x in zip(*samples, strict=True))
    efforts = efforts[:, 6:18]
    heights = {foot: run.frame(foot)[:, 2, 3] for foot in FEET}
    results = {
        "trunk's position error, standing [m]": off[stands].max(),
        "trunk's position error, trotting [m]": off[~stands].max(initial=0.0),
        "trunk's tilt, trotting [rad]": tilt[~stands].max(initial=0.0),
        "steps": max(0, int((run.t[-1] - STAND) / STEP + 1e-9)),
        "height of a swing foot [m]": max(x.max() for x in heights.values()),
        "largest effort [N m]": np.abs(efforts).max(),
    }
    table("A quadruped stands and trots", ["sarrus"], [(name, [x]) for name, x in results.items()])
    panels = [
        Panel("Trunk from home", "m", run.t, dict(zip("xyz", (X[:, :3, 3] - home[:3, 3]).T, strict=True))),
        Panel("Heights of the feet", "m", run.t, {foot: heights[foot] for foot in ("LF_foot", "RF_foot")}),
        Panel("Efforts of the left fore leg", "N m", times, dict(zip(("HAA", "HFE", "KFE"), efforts.T, strict=False))),
    ]
    written(figures, "quadruped_trot", "A quadruped stands and trots", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
