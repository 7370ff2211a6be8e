"""A Stewart platform simulates a take-off with less than a metre of travel, by classical washout (Reid and Nahon 1985).

The platform follows the high-frequency part of the aircraft's acceleration a, and drifts back (washout). Gravity replaces the low-frequency part: the
platform tilts at a rate below the threshold of perception (tilt coordination). Both filters are of second order. The tilt
theta'' + 2 zeta w theta' + w^2 (theta - a / g) = 0 settles at the angle at which gravity replaces the acceleration. Until then, the surge
x'' + 2 zeta w x' + w^2 x = a - g theta supplies the difference; it returns to zero. A TaskControl makes the platform follow surge and tilt.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, along, command_line, norm, rise, table, written

import sarrus
from sarrus import control

GRAVITY, SURGE, ROTATION = 9.81, 2.0, 0.12  # [m/s2], acceleration of the take-off [m/s2], pitch when it rotates [rad]
WASHOUT, COORDINATION, DAMPING = 1.0, 1.5, 1.0  # corner frequencies [rad/s], zeta
TILT_RATE = 0.06  # threshold of perception [rad/s]


def cues(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return surge x [m] and pitch [rad] of the platform, the aircraft's specific force along x [m/s²] and its pitch [rad], all (n,)."""
    dt = t[1] - t[0]
    pitch = ROTATION * rise(t - 6.0, 2.0)
    felt = SURGE * rise(t - 0.5, 1.0) + GRAVITY * np.sin(pitch)
    surge, tilt, quick = np.zeros((3, len(t)))
    x = rate = lean = leaning = turn = 0.0
    for k in range(len(t)):
        surge[k], tilt[k], quick[k] = x, lean, turn
        # high-frequency part of the aircraft's rotation, and the surge without the acceleration that the tilt replaces
        turn += pitch[min(k + 1, len(t) - 1)] - pitch[k] - dt * COORDINATION * turn
        rate += dt * (felt[k] - GRAVITY * lean - 2 * DAMPING * WASHOUT * rate - WASHOUT**2 * x)
        x += dt * rate
        leaning += dt * (COORDINATION**2 * (felt[k] / GRAVITY - lean) - 2 * DAMPING * COORDINATION * leaning)
        leaning = np.clip(leaning, -TILT_RATE, TILT_RATE)
        lean += dt * leaning
    return surge, tilt + quick, felt, pitch


def main(figures: Figures = None, duration: float = 12.0) -> dict[str, float]:
    """Filter the acceleration, simulate the platform, compare the specific forces, draw figures."""
    robot = sarrus.mechanisms.stewart()
    q = robot.assemble()
    fine = np.arange(0.0, duration + 1e-3, 1e-3)
    surge, pitch, felt, _ = cues(fine)
    t, poses = fine[::20], np.tile(robot.pose(q, "platform"), (len(fine[::20]), 1, 1))
    nose_up = [sarrus.Rotation.from_axis_angle("y", -angle).matrix for angle in pitch[::20]]
    poses[:, :3, :3] = nose_up
    poses[:, 0, 3] += surge[::20]
    path = along(t, poses)
    law = control.TaskControl(robot, control.FrameTask("platform", path, stiffness=2500.0))
    run = sarrus.simulate(robot, q, np.zeros(robot.nv), duration, law, dt=2e-3)

    X = run.frame("platform")
    goal = np.stack([law(run.t) for law in path], axis=-1)
    position = norm(X[:, :3, 3] - goal[:, 3:])
    angle = np.arctan2(X[:, 2, 0], X[:, 0, 0])
    # specific force of a pilot at the centre: acceleration minus gravity, along the platform's x
    acceleration = robot.acceleration(run.q, run.v, run.a, "platform", expressed_in="world_aligned")[:, 3:]
    simulated = np.einsum("ti,ti->t", X[:, :3, 0], acceleration - robot.gravity)
    aircraft = np.interp(run.t, fine, felt)
    legs = run.q[:, [robot.joint(f"leg{k}").q_slice.start for k in range(1, 7)]]
    forces = run.tau[:, [robot.joint(f"leg{k}").v_slice.start for k in range(1, 7)]]
    results = {
        "position error [m]": position.max(),
        "pitch error [rad]": np.abs(angle + goal[:, 1]).max(),
        "way of the platform [m]": np.ptp(X[:, 0, 3]),
        "travel of the legs [m]": np.ptp(legs, axis=0).max(),
        "largest force of a leg [N]": np.abs(forces).max(),
        "specific force missed, root mean square [m/s2]": np.sqrt(np.mean((simulated - aircraft) ** 2)),
        "largest specific force of the aircraft [m/s2]": np.abs(aircraft).max(),
    }
    table("Take-off in a flight simulator", ["sarrus"], [(name, [x]) for name, x in results.items()])
    panels = [
        Panel("Specific force along the pilot's x", "m/s²", run.t, {"aircraft": aircraft, "simulator": simulated}),
        Panel("Platform", "m, rad", run.t, {"surge": X[:, 0, 3], "pitch": angle}),
        Panel("Position error", "m", run.t, {"platform": position}),
        Panel("Forces of the legs", "N", run.t, {"largest": forces.max(axis=1), "least": forces.min(axis=1)}),
    ]
    written(figures, "stewart_washout", "A take-off in a flight simulator", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
