"""An arm responds to a push like a mass with a spring and a damper, by impedance control and by admittance control.

With impedance control, the push is measured, and TaskControl accelerates the arm's tip like the virtual mass (Hogan 1985). With admittance control, a
user-defined class integrates the motion of the virtual mass, and a stiff task follows this motion.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from following import Figures, Panel, command_line, table, written

import sarrus
from sarrus import control

MASS, DAMPING, STIFFNESS, PUSH = (
    4.0,
    80.0,
    400.0,
    20.0,
)  # virtual mass, damper and spring [kg, N s/m, N/m]; push along the x-axis of the tip [N]


class Admittance:
    """Target of TaskControl: the virtual mass under the measured push, integrated from sample to sample."""

    def __init__(self, home: np.ndarray) -> None:
        self.home, self.along, self.t, self.x, self.v = home, home[:3, 0], 0.0, 0.0, 0.0

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pose, velocity and acceleration at time t [s], which must not decrease."""
        h, w = (
            max(t - self.t, 0.0),
            np.sqrt(STIFFNESS / MASS),
        )  # critically damped motion, exact for a push that is constant over the step
        e = self.x - PUSH / STIFFNESS
        e, self.v = (e + (self.v + w * e) * h) * np.exp(-w * h), (self.v - w * (self.v + w * e) * h) * np.exp(-w * h)
        self.t, self.x = max(t, self.t), e + PUSH / STIFFNESS
        a = (PUSH - DAMPING * self.v - STIFFNESS * self.x) / MASS
        pose = self.home.copy()
        pose[:3, 3] += self.along * self.x
        return pose, np.r_[0.0, 0.0, 0.0, self.along * self.v], np.r_[0.0, 0.0, 0.0, self.along * a]


def main(figures: Figures = None, duration: float = 2.0) -> dict[str, float]:
    """Simulate both controllers, compare the motions with that of the mass, draw figures."""
    robot = sarrus.mechanisms.six_axis_arm()
    q, v = np.array([0.3, 0.8, -1.6, 0.2, 1.2, 0.1]), np.zeros(6)
    home = robot.pose(q, "tip")
    wrench = np.r_[0.0, 0.0, 0.0, home[:3, 0] * PUSH]
    push = control.Thruster("tip", PUSH, axis="x")
    unit = np.diag([0.1] * 3 + [1.0] * 3)
    yields = control.TaskControl(
        robot, control.ImpedanceTask("tip", home, MASS * unit, STIFFNESS * unit, DAMPING * unit, wrench=wrench.tolist()), limits=None
    )  # fmt: skip
    follows = control.TaskControl(robot, control.FrameTask("tip", Admittance(home), stiffness=2500.0), limits=None)

    # the measured push also acts on the arm, so both controllers compensate for it
    def compensated(law: control.TaskControl) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray]:
        def tau(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            force = robot.pose(q, "tip")[:3, 0] * PUSH
            return law(t, q, v) - robot.jacobian(q, "tip", expressed_in="world_aligned")[3:].T @ force

        return tau

    runs = {
        "impedance": sarrus.simulate(robot, q, v, duration, [compensated(yields), push]),
        "admittance": sarrus.simulate(
            robot, q, v, duration, [control.SampleAndHold(compensated(follows), period=1e-3), push]
        ),
    }
    w, results, moved = np.sqrt(STIFFNESS / MASS), {}, {}
    for name, run in runs.items():
        moved[name] = (run.frame("tip")[:, :3, 3] - home[:3, 3]) @ home[:3, 0]
        closed = PUSH / STIFFNESS * (1.0 - (1.0 + w * run.t) * np.exp(-w * run.t))
        results[f"{name}: off the mass [m]"] = np.abs(moved[name] - closed).max()
        results[f"{name}: at the end [m]"] = moved[name][-1]
    table(f"A push of {PUSH:g} N", ["sarrus"], [(name, [x]) for name, x in results.items()])
    written(
        figures, "yielding", "An arm that yields", [Panel("Displacement of the tip", "m", runs["impedance"].t, moved)]
    )
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
