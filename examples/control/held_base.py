"""A satellite's arm moves in three cases: thrusters hold the base, the arm itself keeps the base from rotating, or the base is free.

Thrusters are limited efforts of the base's free joint. The base's pose has priority over the hand's path, and the fuel is computed. Without thrusters
the same tasks in the same order make the arm move in the reaction null space, where its reaction does not rotate the base (Nenchev and others 1999).
This uses three of the six degrees of freedom; the remaining three move the hand along its path. The model is SpaceDyn's free flyer with flexible
paddles.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, command_line, norm, rise, table, written

import sarrus
from sarrus import control

WAY, TIME = np.array([-0.25, 0.2, 0.15]), 20.0  # displacement of the hand [m], duration [s]
THRUST, LEVER, SPECIFIC_IMPULSE = 5.0, 1.2, 220.0 * 9.81  # [N, and N m], [m], [N s/kg]


def main(figures: Figures = None, duration: float = 25.0) -> dict[str, float]:
    """Simulate the three cases, draw figures."""
    robot = sarrus.mechanisms.free_flyer()
    q, v = robot.assemble(), np.zeros(robot.nv)
    base, pose, hand = robot.joint("base"), robot.pose(q, "satellite"), robot.pose(q, "hand")[:3, 3]
    t = np.linspace(0.0, TIME, 41)
    path = [sarrus.laws.spline(t, x, slopes=(0.0, 0.0)) for x in (hand + np.outer(rise(t, TIME), WAY)).T]
    carry = control.FrameTask("hand", path, "tx ty tz", stiffness=4.0, priority=1)
    home = {name: float(q[robot.joint(name).q_slice][0]) for name in robot.actuated}
    still = control.PostureTask(home, stiffness=0.0, damping=1.0, priority=2)  # uses the degrees of freedom that remain
    cases = {  # tasks with priority over the hand, and actuated joints
        "held": ([control.FrameTask("satellite", pose, stiffness=1.0)], [*robot.actuated, "base"]),
        "quiet": ([control.FrameTask("satellite", pose, "rx ry rz", stiffness=1.0)], robot.actuated),
        "free": ([], robot.actuated),
    }
    results, turned, moved = {}, {}, {}
    for name, (first, actuated) in cases.items():
        limits = control.Limits(effort={"base": THRUST} if "base" in actuated else None, velocity=np.inf, position={})
        law = control.TaskControl(robot, [*first, carry, still], limits, actuated=actuated)
        run = sarrus.simulate(robot, q, v, duration, law, dt=1e-2, limits="ignore")
        at, push = run.q[:, base.q_slice], run.tau[:, base.v_slice]  # push: [moment; force]
        turned[name], moved[name] = 2.0 * np.arcsin(norm(at[:, :3])), norm(at[:, 4:] - pose[:3, 3])
        goal = np.stack([[x(min(time, TIME)) for x in path] for time in run.t])
        spent = integral(run.t, np.abs(push))
        results |= {
            f"{name}: hand off its way [m]": norm(run.frame("hand")[:, :3, 3] - goal).max(),
            f"{name}: base turned [rad]": turned[name].max(),
            f"{name}: base moved [m]": moved[name].max(),
            f"{name}: thrusters' impulse [N s]": spent[3:].sum(),
            f"{name}: fuel [kg]": (spent[3:].sum() + spent[:3].sum() / LEVER) / SPECIFIC_IMPULSE,
        }
        if name == "held":
            thrust, times = push[:, 3:], run.t
            results["held: largest thrust [N]"] = np.abs(thrust).max()
            half = min(
                int(np.searchsorted(times, TIME / 2)), len(times) - 1
            )  # at this time the momentum comes from the thrusters
            impulse = integral(times[: half + 1], thrust[: half + 1])
            results["held: momentum half way [N s]"] = norm(run.momentum[half, 3:])
            results["held: impulse off it [N s]"] = norm(impulse - run.momentum[half, 3:])
    table("A satellite's arm moves", ["sarrus"], [(name, [x]) for name, x in results.items()])
    panels = [
        Panel("Base turned", "rad", times, turned),
        Panel("Base moved", "m", times, moved),
        Panel("Thrust, held", "N", times, dict(zip("xyz", thrust.T, strict=True))),
    ]
    written(figures, "held_base", "A base held by thrusters, and by the arm's own motion", panels)
    return {name: float(x) for name, x in results.items()}


def integral(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the integral over time by the trapezoidal rule."""
    return np.diff(t) @ (0.5 * (x[1:] + x[:-1]))


if __name__ == "__main__":
    command_line(main)
