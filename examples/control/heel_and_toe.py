"""A leg stands on the four corners of its foot, and squats: several contacts of one body.

Tasks control the centre of mass and the trunk's orientation. The corners are contacts with friction cones; each corner has its own force. In the
simulation the ground is compliant, so the foot moves slightly. The controller is sampled at 1 kHz, as on a real robot.
"""

from __future__ import annotations

import numpy as np
from following import Figures, Panel, command_line, norm, table, written

import sarrus
from sarrus import control

DEPTH, PERIOD, SHIFT = 0.1, 2.0, 0.02  # depth [m] and period [s] of the squat; shift towards the toes and back [m]
FRICTION, GROUND = 0.5, 0.7  # friction of the controller's model, and of the simulated ground
CORNERS = {
    "heel left": (-0.05, 0.05),
    "heel right": (-0.05, -0.05),
    "toe left": (0.15, 0.05),
    "toe right": (0.15, -0.05),
}


def leg() -> sarrus.Mechanism:
    """Return the humanoid leg with frames at the corners of its foot."""
    robot = sarrus.mechanisms.humanoid_leg()
    q, b = robot.assemble(), robot.to_builder()
    down = (np.linalg.inv(robot.pose(q, "foot")) @ robot.pose(q, "sole"))[2, 3]
    for name, (x, y) in CORNERS.items():
        b.add_frame(name, "foot", (x, y, down))
    return b.build()


def main(figures: Figures = None, duration: float = PERIOD) -> dict[str, float]:
    """Simulate a squat, draw figures."""
    robot = leg()
    q = robot.assemble()
    start, upright = robot.center_of_mass(q), robot.pose(q, "pelvis")[:3, :3]
    rate = 2 * np.pi / PERIOD
    goal = [  # from rest, down and up again; over the toes at the lowest point
        sarrus.laws.harmonic(-SHIFT / 2, rate, np.pi / 2, offset=start[0] + SHIFT / 2),
        float(start[1]),
        sarrus.laws.harmonic(DEPTH / 2, rate, np.pi / 2, offset=start[2] - DEPTH / 2),
    ]
    pelvis = np.eye(4)
    pelvis[:3, :3] = upright
    tasks = [
        control.CenterOfMassTask(goal, stiffness=100.0),
        control.FrameTask("pelvis", pelvis, "rx ry rz", stiffness=100.0),
    ]
    feet = [control.PointContact(corner, friction=FRICTION) for corner in CORNERS]
    law = control.TaskControl(robot, tasks, contacts=feet)
    ground = [
        control.CompliantContact(corner, stiffness=1e6, dissipation=2.0, friction=GROUND, slip_velocity=0.01)
        for corner in CORNERS
    ]
    run = sarrus.simulate(
        robot, q, np.zeros(robot.nv), duration, [control.SampleAndHold(law, period=1e-3), *ground], limits="ignore"
    )
    instants = range(0, len(run.t), 10)
    solutions = [law.solve(run.t[k], run.q[k], run.v[k]) for k in instants]
    forces = {corner: np.array([solution.forces[corner] for solution in solutions]) for corner in CORNERS}
    place = np.array([robot.center_of_mass(x) for x in run.q])
    target = np.stack([np.broadcast_to(x(run.t) if callable(x) else x, run.t.shape) for x in goal], axis=-1)
    turned = np.array([robot.velocity(run.q[k], run.v[k], "foot")[:3] for k in instants])
    pushed = np.stack(list(forces.values()))
    results = {
        "error of the centre of mass [m]": norm(place - target).max(),
        "squat [m]": start[2] - place[:, 2].min(),
        "foot turns at most by [rad/s]": norm(turned).max(),
        "foot rises at most by [m]": max((run.frame(corner)[:, 2, 3]).max() for corner in CORNERS),
        "friction needed at most": (norm(pushed[..., :2]) / pushed[..., 2]).max(),
        "least force of a corner [N]": pushed[..., 2].min(),
        "largest effort [N m]": max(np.abs(list(solution.efforts.values())).max() for solution in solutions),
    }
    table("A leg squats on the corners of its foot", ["sarrus"], [(name, [x]) for name, x in results.items()])
    t = run.t[instants]
    panels = [
        Panel("Centre of mass", "m", run.t, {"height": place[:, 2], "target": target[:, 2]}),
        Panel("Normal forces", "N", t, {corner: force[:, 2] for corner, force in forces.items()}),
        Panel("Angular velocity of the foot", "rad/s", t, dict(zip("xyz", turned.T, strict=True))),
    ]
    written(figures, "heel_and_toe", "A leg squats on the corners of its foot", panels)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
