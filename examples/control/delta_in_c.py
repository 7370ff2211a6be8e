"""A Delta robot on a circle under TaskControl as C, called once a millisecond as the update() of a controller on the robot's computer is.

The efforts of the C are held for the millisecond, and compared with those of the TaskControl that it was generated from.
"""

from __future__ import annotations

import tempfile

import numpy as np
from following import Figures, Panel, command_line, norm, rise, table, written

import sarrus
from sarrus import control

PERIOD, RADIUS, RATE = 1e-3, 0.05, 4 * np.pi  # [s], [m], [rad/s]


def circle(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and accelerations (n, 3), entered within 0.2 s."""

    def place(at: np.ndarray) -> np.ndarray:
        return RADIUS * np.stack(
            [np.cos(RATE * at) * rise(at, 0.2), np.sin(RATE * at) * rise(at, 0.2), 0 * at], axis=-1
        )

    before, now, after = (place(t + h) for h in (-1e-4, 0.0, 1e-4))
    return now, (after - before) / 2e-4, (after - 2 * now + before) / 1e-8


def main(figures: Figures = None, duration: float = 0.6) -> dict[str, float]:
    """Follow by the C, and ask the other one at the same states."""
    robot = sarrus.mechanisms.delta()
    q, v = robot.assemble(), np.zeros(robot.nv)
    middle = robot.pose(q, "platform")[:3, 3]
    t = np.arange(0.0, duration, PERIOD)
    target, velocity, acceleration = circle(t)
    target = target + middle

    def law(position: object) -> control.TaskControl:
        task = control.FrameTask("platform", position, "tx ty tz", stiffness=1e4)
        return control.TaskControl(robot, task, limits=None)

    rng = np.random.default_rng(0)
    near = [robot.assemble(near=robot.integrate(q, 0.2 * rng.uniform(-1.0, 1.0, robot.nv))) for _ in range(6)]
    with tempfile.TemporaryDirectory() as folder:
        made = sarrus.generation.generate(robot, {"update": law(middle)}, folder, configurations=near)
        update = sarrus.generation.compiled(made)
    off, differs, raised = np.zeros(len(t)), 0.0, 0
    motors = [robot.joint(name).v_slice.start for name in robot.actuated]
    for k in range(len(t)):
        results, status = update("update", q, v, target[k], velocity[k], acceleration[k])
        tau = np.zeros(robot.nv)
        tau[motors] = results["efforts"]
        raised += int(status != 0)
        here = [sarrus.laws.polynomial(*c) for c in zip(target[k], velocity[k], acceleration[k] / 2, strict=True)]
        differs = max(differs, np.abs(law(here)(0.0, q, v) - tau).max()) if k % 20 == 0 else differs
        off[k] = norm(robot.pose(q, "platform")[:3, 3] - target[k])
        v = v + PERIOD * robot.forward_dynamics(q, v, tau)
        q = robot.project_configuration(robot.integrate(q, PERIOD * v))
        v = robot.project_velocity(q, v)
    f = made.functions["update"]
    found = {
        "position error [m]": off.max(),
        "efforts of the C off TaskControl's [N m]": differs,
        "flags raised": float(raised),
        "operations": float(f.statements),
    }
    print(f.declaration)
    table("Delta robot under generated C", ["here"], [(name, [x]) for name, x in found.items()])
    written(figures, "delta_in_c", "Delta on a circle", [Panel("Position error", "m", t, {"platform": off})])
    return found


if __name__ == "__main__":
    command_line(main)
