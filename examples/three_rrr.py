"""A parallel manipulator with a redundant motor follows a circle, without and with preload. Li and Wu 2011, 4.6.

The manipulator has two degrees of freedom and three motors. Therefore the torques of a motion are unique except for one direction of torques,
which only strains the links. Two simulations without feedback are compared: with the torques of least norm, and with an additional preload along
this internal direction.
"""

from __future__ import annotations

from math import pi

import numpy as np
from showing import Panel, Path, command_line, figure, played_back, table

import sarrus

RADIUS, PRELOAD = 0.05, 0.5  # radius of the circle [m], torque along the internal direction [N m]
MOTORS = ("base1", "base2", "base3")
MODEL = {  # time [s]: torques of least norm [N m]
    0.0: (0.15373675791300218, 0.033329171339642895, -0.14091758123316234),
    0.2: (-0.02027644331422866, 0.19887843920699275, -0.15933352156757075),
}
INTERNAL = (
    0.48070055011608726,
    0.5764615561547832,
    0.6607715606725949,
)  # internal direction in the initial configuration


def circle(robot: sarrus.Mechanism, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v and a (n, 6) of the motion with the tip on its circle, one revolution per second."""
    middle = robot.pose(robot.assemble(), "tip")[:2, 3]
    out = np.stack([np.cos(2 * pi * t), np.sin(2 * pi * t)], axis=-1)
    along = np.stack([-out[:, 1], out[:, 0]], axis=-1)
    task = ("tip", "tx ty")
    q, near = np.empty((len(t), 6)), robot.assemble()
    for k, goal in enumerate(middle + RADIUS * out):
        for _ in range(8):  # Newton's method, from the configuration of the previous point
            away = goal - robot.pose(near, "tip")[:2, 3]
            near = robot.project_configuration(
                near + sarrus.formulations.reduced_dynamics(robot, near, np.zeros(6), task=task).full_velocity(away)
            )
            if np.abs(away).max() < 1e-9:
                break
        q[k] = near
    v = sarrus.formulations.reduced_dynamics(robot, q, np.zeros_like(q), task=task).full_velocity(
        2 * pi * RADIUS * along
    )
    a = sarrus.formulations.reduced_dynamics(robot, q, v, task=task).full_acceleration(-4 * pi**2 * RADIUS * out)
    return q, v, a


def main(output: Path | None = None, duration: float = 1.0) -> dict[str, float]:
    """Compute the torques of the motion, simulate the manipulator with them, compare the motions, draw figures."""
    robot = sarrus.mechanisms.three_rrr()
    t = np.linspace(0.0, duration, round(200 * duration) + 1)
    q, v, a = circle(robot, t)
    least = robot.actuator_efforts(q, v, a)
    internal = robot.internal_efforts(q)[..., 0]
    internal *= np.sign(internal[:, :1])
    tight = least + PRELOAD * internal

    runs = {
        name: sarrus.simulate(robot, q[0], v[0], duration, played_back(MOTORS, t, torques))
        for name, torques in (("slack", least), ("tight", tight))
    }
    goal = robot.pose(q, "tip")[:, :2, 3]
    results = {
        f"{name}, off": np.abs(run.frame("tip")[np.searchsorted(run.t, t - 1e-9), :2, 3] - goal).max()
        for name, run in runs.items()
    }
    force = {name: np.linalg.norm(run.reactions.wrenches["tip2"][:, 3:], axis=1) for name, run in runs.items()}
    results |= {f"{name}, force": x.max() for name, x in force.items()}

    rows = []
    for instant, torques in MODEL.items():
        computed = least[round(200 * instant)] if instant <= duration else [None] * 3
        pairs = zip(MOTORS, torques, computed, strict=True)
        rows += [(f"{name} at {instant:g} s [N m]", pair) for name, *pair in pairs]
    rows += [(f"internal direction, {name}", pair) for name, *pair in zip(MOTORS, INTERNAL, internal[0], strict=True)]
    rows += [(f"{name}: largest error of the circle [m]", (0.0, results[f"{name}, off"])) for name in runs]
    rows += [(f"{name}: largest force between tips 1 and 2 [N]", (None, results[f"{name}, force"])) for name in runs]
    table("Redundant parallel manipulator", ["dense model", "sarrus"], rows)

    def of_motors(x: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(MOTORS, x.T, strict=True))

    tip = runs["tight"].frame("tip")[:, :2, 3]
    figure(
        "Three motors for two freedoms",
        [
            Panel("Path of the tip, without feedback", "y [m]", tip[:, 0], {"tip": tip[:, 1]}, "x [m]", True),
            Panel("Torques of least norm", "N m", t, of_motors(least)),
            Panel("With internal preload", "N m", t, of_motors(tight)),
            Panel("Force between tips 1 and 2", "N", runs["slack"].t, force),
        ],
        output,
    )
    return results


if __name__ == "__main__":
    command_line(main)
