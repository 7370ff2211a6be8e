"""An inclined spacecraft touches an asteroid with its sampling horn, and bounces off. SpaceDyn 1999, figure 7(c).

The spacecraft descends at 0.1 m/s, as planned for MUSES-C, and drifts along the ground. The rim of the horn has four contact points (Hunt and
Crossley's contact force with friction). The impulse of the ground is compared with the change of momentum minus the impulse of gravity.
"""

from __future__ import annotations

import numpy as np
import showing
from showing import Panel, Path, command_line, figure, table

import sarrus
from sarrus.control import CompliantContact

DESCENT, DRIFT, LEAN = 0.1, 0.02, 0.08  # initial velocities down and along the ground [m/s], inclination [rad]
HEIGHT = 0.02  # initial height of the lowest point of the rim [m]


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
    """Return the force of the ground (n, 3) [N]: it is the only external force, so the entries of tau for the base contain it."""
    turned = run.frame("spacecraft")[:, :3, :3]
    return np.einsum("nij,nj->ni", turned, run.tau[:, 3:6])


def main(output: Path | None = None, duration: float = 4.0, films: Path | None = None) -> dict[str, float]:
    """Simulate the touch-down, compare impulse and momentum, draw figures."""
    run = fall(duration)
    robot, force = run.mechanism, ground_force(run)
    impulse = ((force[1:] + force[:-1]) / 2 * np.diff(run.t)[:, None]).sum(axis=0)
    gained = run.momentum[-1, 3:] - run.momentum[0, 3:] - robot.mass * robot.gravity * run.t[-1]
    # effective inertia of the rim along the normal, if the joints of the horn move freely
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
            ("largest force [N]", (None, results["greatest force"])),
            ("final upward velocity of the centre of mass [m/s]", (None, rebound)),
            ("effective inertia of the rim [kg]", (None, felt)),
        ],
    )
    attitude = run.frame("spacecraft")[:, :3, :3]
    figure(
        "Touch-down on an asteroid",
        [
            Panel("Height of the centre of mass", "m", run.t, {"spacecraft": com[:, 2]}),
            Panel("Force of the ground", "N", run.t, {"x": force[:, 0], "z": force[:, 2]}),
            Panel(
                "Inclination of the spacecraft; angles of horn and paddle", "rad", run.t,
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
