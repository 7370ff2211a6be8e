"""A Delta robot follows a circle with a TaskControl in generated C, which is called once a millisecond like the update() of a robot's controller.

The efforts of the C code are constant for a millisecond, and are compared with those of the original TaskControl.
"""

from __future__ import annotations

import tempfile

import numpy as np
from following import Figures, Panel, command_line, norm, rise, table, written

import sarrus
from sarrus import control

PERIOD, RADIUS, RATE = 1e-3, 0.05, 4 * np.pi  # sampling period [s], radius of the circle [m], angular rate [rad/s]


def circle(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, velocities and accelerations (n, 3) of a path that enters a circle within 0.2 s."""

    def place(at: np.ndarray) -> np.ndarray:
        return RADIUS * np.stack(
            [np.cos(RATE * at) * rise(at, 0.2), np.sin(RATE * at) * rise(at, 0.2), 0 * at], axis=-1
        )

    before, now, after = (place(t + h) for h in (-1e-4, 0.0, 1e-4))
    return now, (after - before) / 2e-4, (after - 2 * now + before) / 1e-8


def main(figures: Figures = None, duration: float = 0.6) -> dict[str, float]:
    """Simulate with the C code, compare its efforts with TaskControl at the same states, draw figures."""
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
    error, difference, raised = np.zeros(len(t)), 0.0, 0
    motors = [robot.joint(name).v_slice.start for name in robot.actuated]
    for k in range(len(t)):
        outputs, status = update("update", q, v, target[k], velocity[k], acceleration[k])
        tau = np.zeros(robot.nv)
        tau[motors] = outputs["efforts"]
        raised += int(status != 0)
        position = [sarrus.laws.polynomial(*c) for c in zip(target[k], velocity[k], acceleration[k] / 2, strict=True)]
        difference = max(difference, np.abs(law(position)(0.0, q, v) - tau).max()) if k % 20 == 0 else difference
        error[k] = norm(robot.pose(q, "platform")[:3, 3] - target[k])
        v = v + PERIOD * robot.forward_dynamics(q, v, tau)
        q = robot.project_configuration(robot.integrate(q, PERIOD * v))
        v = robot.project_velocity(q, v)
    f = made.functions["update"]
    results = {
        "position error [m]": error.max(),
        "efforts of the C off TaskControl's [N m]": difference,
        "flags raised": float(raised),
        "operations": float(f.statements),
    }
    print(f.declaration)
    table("Delta robot under generated C", ["sarrus"], [(name, [x]) for name, x in results.items()])
    written(figures, "delta_in_c", "Delta on a circle", [Panel("Position error", "m", t, {"platform": error})])
    return results


if __name__ == "__main__":
    command_line(main)
