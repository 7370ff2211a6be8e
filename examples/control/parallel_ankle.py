"""An ankle with two axes, driven by two motors on the shank with rods: motor torques for a desired ankle torque.

J is the Jacobian from ankle to motor velocities, so ankle torques are tau = J^T u with the motor torques u. J depends on the configuration;
complete_velocity() computes it from the loops. In the simulation, a TaskControl with tasks for the ankle's angles follows a target about both axes. Its
motor efforts are those of the map.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, command_line, table, written

import sarrus
from sarrus import control
from sarrus.laws import harmonic

DESIRED = np.array([20.0, 5.0])  # torques about the ankle's pitch and roll axes [N m]
MOTORS = ("left_motor", "right_motor")


def motor_torques(robot: sarrus.Mechanism, q: np.ndarray, desired: np.ndarray) -> np.ndarray:
    """Return motor torques (..., 2) [N m] that are equivalent to ankle torques (..., 2) [N m], with hip and knee at rest."""
    motors = [robot.joint(name).v_slice.start for name in MOTORS]
    resting = {name: 0.0 for name in robot.actuated if name not in MOTORS}
    turned = [robot.complete_velocity(q, {**resting, "ankle": rate})[..., motors] for rate in np.eye(2)]
    return np.linalg.solve(np.stack(turned, axis=-2), desired[..., None])[..., 0]


def main(figures: Figures = None, duration: float = 4.0) -> dict[str, float]:
    """Map torques, simulate the ankle, compare the efforts, draw figures."""
    robot = sarrus.mechanisms.humanoid_leg(floating=False)
    home = robot.assemble()
    pitches = np.radians([-30, -15, 0, 15, 30])
    placed = robot.assemble(np.tile(home, (5, 1)), fixed={"ankle": np.stack([pitches, np.full(5, 0.1)], axis=-1)})
    torques = motor_torques(robot, placed, np.tile(DESIRED, (5, 1)))
    rows = [(f"pitch of {np.degrees(pitch):g} degrees", list(u)) for pitch, u in zip(pitches, torques, strict=True)]
    title = f"Torques [N m] for {DESIRED[0]:g} N m of pitch and {DESIRED[1]:g} N m of roll at the ankle, at a roll of 0.1 rad"
    table(title, ["left", "right"], rows)

    targets = harmonic(0.3, rate=5.0, offset=-0.3), harmonic(0.2, rate=8.0)
    law = control.TaskControl(
        robot,
        [
            control.JointTask("ankle", targets[0], index=0, stiffness=900.0),
            control.JointTask("ankle", targets[1], index=1, stiffness=900.0),
            *(control.JointTask(n, float(home[robot.joint(n).q_slice][0])) for n in robot.actuated if n not in MOTORS),
        ],
    )
    start = {"ankle": [target(0.0) for target in targets]}
    q = robot.assemble(near=home, fixed=start)
    v = robot.complete_velocity(
        q, {"ankle": [target.derivatives(0.0)[1] for target in targets], **dict.fromkeys(robot.actuated[:4], 0.0)}
    )
    run = sarrus.simulate(robot, q, v, duration, law)
    motors = [robot.joint(name).v_slice.start for name in MOTORS]
    goal = np.stack([target(run.t) for target in targets], axis=-1)
    off = np.abs(run.q[:, robot.joint("ankle").q_slice] - goal).max(axis=1)
    # torques of an ankle with motors in its own axes, and the equivalent torques of the real motors
    needed = robot.actuator_efforts(run.q, run.v, run.a, actuated=[*robot.actuated[:4], "ankle"])[:, 4:]
    mapped = motor_torques(robot, run.q, needed)
    results = {
        "error of the ankle's angles [rad]": off.max(),
        "largest torque at the ankle [N m]": np.abs(needed).max(),
        "largest torque of a motor [N m]": np.abs(run.tau[:, motors]).max(),
        "TaskControl's torques off the map's [N m]": np.abs(mapped - run.tau[:, motors]).max(),
    }
    table("A foot follows", ["sarrus"], [(name, [x]) for name, x in results.items()])
    panels = [
        Panel(
            "Angles of the ankle",
            "rad",
            run.t,
            dict(zip(("pitch", "roll"), run.q[:, robot.joint("ankle").q_slice].T, strict=True)),
        ),
        Panel("Error", "rad", run.t, {"larger of both": off}),
        Panel(
            "Torques at the ankle, were it driven", "N m", run.t, dict(zip(("pitch", "roll"), needed.T, strict=True))
        ),
        Panel("Torques of the motors", "N m", run.t, dict(zip(MOTORS, run.tau[:, motors].T, strict=True))),
    ]
    written(figures, "parallel_ankle", "An ankle on two rods", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
