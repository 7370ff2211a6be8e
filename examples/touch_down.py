"""A leaning spacecraft touches an asteroid with its sampling horn, and bounces off. SpaceDyn 1999, figure 7(c).

It descends at 0.1 m/s, as planned for MUSES-C, and drifts along the ground. The horn's rim touches in four points (Hunt and Crossley's
contact with friction). The ground's impulse is compared with the change of momentum without the part of gravity.
"""

from __future__ import annotations

import numpy as np
import showing
from showing import Panel, Path, command_line, figure, table

import sarrus
from sarrus.control import CompliantContact

DESCENT, DRIFT, LEAN = 0.1, 0.02, 0.08  # [m/s], [m/s], [rad]
HEIGHT = 0.02  # of the lowest point of the rim at the start [m]


def fall(duration: float) -> sarrus.Trajectory:
    """Simulate the descent from just above the ground."""
    robot = sarrus.mechanisms.sampler()
    q = robot.assemble()
    q[:4] = sarrus.Rotation.from_axis_angle("y", LEAN).quaternion
    rim = [f"rim{k}" for k in (1, 2, 3, 4)]
    q[6] += HEIGHT - min(robot.pose(q, point)[2, 3] for point in rim)
    v = np.zeros(robot.nv)
    v[3:6] = robot.pose(q, "spacecraft")[:3, :3].T @ [DRIFT, 0.0, -DESCENT]
    ground = [
        CompliantContact(point, stiffness=1e5, dissipation=2.0, friction=0.5, slip_velocity=2e-3) for point in rim
    ]
    return sarrus.simulate(robot, q, v, duration, ground, dt=1e-3)


def ground_force(run: sarrus.Trajectory) -> np.ndarray:
    """Return the ground's force (n, 3) [N]: contact is the only external force, so it is the base's part of tau."""
    turned = run.frame("spacecraft")[:, :3, :3]
    return np.einsum("nij,nj->ni", turned, run.tau[:, 3:6])


def main(output: Path | None = None, duration: float = 4.0, films: Path | None = None) -> dict[str, float]:
    """Simulate, compare impulse and momentum, draw."""
    run = fall(duration)
    robot, force = run.mechanism, ground_force(run)
    impulse = ((force[1:] + force[:-1]) / 2 * np.diff(run.t)[:, None]).sum(axis=0)
    gained = run.momentum[-1, 3:] - run.momentum[0, 3:] - robot.mass * robot.gravity * run.t[-1]
    # effective inertia of the rim along the normal, with the horn's springs as they are
    felt = (
        1.0
        / sarrus.formulations.operational_inertia_inverse(robot, run.q[0], "rim1", expressed_in="world_aligned")[5, 5]
    )
    com = robot.center_of_mass(run.q)
    rebound = np.gradient(com[:, 2], run.t)[-1]
    results = {
        "impulse": float(impulse[2]),
        "momentum gained": float(gained[2]),
        "off": float(np.abs(impulse - gained).max()),
        "greatest force": float(force[:, 2].max()),
        "rebound": float(rebound),
    }
    table(
        "Touch-down",
        ["momentum", "sarrus"],
        [
            ("impulse along x [N s]", (gained[0], impulse[0])),
            ("impulse along z [N s]", (gained[2], impulse[2])),
            ("greatest force [N]", (None, results["greatest force"])),
            ("the centre of mass rises at the end with [m/s]", (None, rebound)),
            ("inertia at the rim, the horn's springs as they are [kg]", (None, felt)),
        ],
    )
    attitude = run.frame("spacecraft")[:, :3, :3]
    figure(
        "Touch-down on an asteroid",
        [
            Panel("Height of the centre of mass", "m", run.t, {"spacecraft": com[:, 2]}),
            Panel("Force of the ground", "N", run.t, {"x": force[:, 0], "z": force[:, 2]}),
            Panel(
                "Lean of the spacecraft, horn and paddles", "rad", run.t,
                {
                    "spacecraft": np.arctan2(attitude[:, 0, 2], attitude[:, 2, 2]),
                    "horn": run.joint("swing")[:, 1],
                    "left paddle": run.joint("left hinge")[:, 0],
                },
            ),
        ],
        output,
    )  # fmt: skip
    showing.films({"touch-down": run}, films)
    return results


if __name__ == "__main__":
    command_line(main)
