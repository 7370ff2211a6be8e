"""A walker with two feet, four limbs, twelve motors and six loops stands, and is pushed; then its motors move at random.

Twelve of the thirty constraint rows of its loops are redundant, and the forces at the eight corners of its soles are not unique. Loops are closed to
rounding after every step, standing feet do not creep, and the contact problem is solved in every step of the random motions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import touching
from touching import Panel, Path, command_line, figure, residuals, simulated, table

import sarrus
from sarrus.control import PID, Thruster, rest_to_rest
from sarrus.shapes import Box, Plane

SOLE, FRICTION = (0.14, 0.1, 0.012), 0.7
STEP, PUSH, AT, LASTS = 4e-3, 20.0, 1.0, 0.1  # step [s]; push on the pelvis [N], its begin [s], its duration [s]
WIDE, PERIOD = 0.5, 0.08  # range of the random targets of the motors [rad], time between new targets [s]


def walker() -> sarrus.Mechanism:
    """Return the gallery's biped on the ground, with rotors in its motors and a little damping in all joints."""
    robot = sarrus.mechanisms.biped()
    b = robot.to_builder()
    for spec in robot.description.joints:
        if spec.kind == "Revolute":
            b.set_joint(spec.name, replace(spec.joint, armature=0.01 * spec.actuated, damping=0.04))
    for side in ("left", "right"):
        b.add_shape(f"{side}_foot", Box(SOLE), (0, 0, -0.03 + SOLE[2] / 2), friction=FRICTION)
    b.add_shape("pelvis", Box((0.09, 0.27, 0.06)), friction=FRICTION)
    b.add_shape("ground", Plane())
    return b.build()


def pulse(size: float, begin: float, duration: float) -> sarrus.laws.Law:
    """Return a smooth pulse [N] with a peak of `size`."""
    half = duration / 2
    return rest_to_rest(0.0, size, half, begin=begin) + rest_to_rest(0.0, -size, half, begin=begin + half)


def pushed(duration: float) -> sarrus.Trajectory:
    """Simulate standing with a push on the pelvis, forwards and sideways."""
    robot = walker()
    motors = [PID(joint, proportional=15.0, derivative=0.6) for joint in robot.actuated]
    push = Thruster("pelvis", pulse(PUSH, AT, LASTS), (1.0, 0.5, 0.0))
    return simulated(robot, robot.assemble(), np.zeros(robot.nv), duration, [*motors, push], dt=STEP, limits="enforce")


def shaken(runs: int, duration: float, seed: int = 0, threads: int = 1) -> sarrus.Sweep:
    """Simulate runs in which the motors follow curves through random targets."""
    robot, rng = walker(), np.random.default_rng(seed)
    times = np.arange(0.0, duration + 2 * PERIOD, PERIOD)
    motors = [
        PID(joint, proportional=15.0, derivative=0.6, target=[
            sarrus.laws.spline(times, np.r_[0.0, rng.uniform(-WIDE, WIDE, len(times) - 1)]) for _ in range(runs)])
        for joint in robot.actuated
    ]  # fmt: skip
    q = np.broadcast_to(robot.assemble(), (runs, robot.nq))
    options = {"dt": STEP, "method": "contact", "every": 10, "threads": threads, "limits": "enforce"}
    return sarrus.simulate_many(robot, q, np.zeros((runs, robot.nv)), duration, motors, **options)


def main(output: Path | None = None, duration: float = 6.0, films: Path | None = None) -> dict[str, float]:
    """Simulate the push and the random motions, draw figures."""
    run = pushed(duration)
    feet = np.stack([run.frame(f"{side}_sole")[:, :3, 3] for side in ("left", "right")])
    standing, after = run.t <= min(AT, duration), run.t >= duration - 0.2
    still = standing & (run.t >= run.t[standing][-1] / 2)
    many = shaken(4, min(duration, 2.0))
    robot = many.mechanism
    closed = robot.constraint_residual(many.q.reshape(-1, robot.nq))
    results = {
        "feet creep while it stands [m]": np.abs(feet[:, still] - feet[:, still][:, :1]).max(),
        "swings after the push [rad]": 2 * np.abs(run.q[~standing, :3]).max(initial=0.0),
        "moves at the end [m/s, rad/s]": np.abs(run.v[after]).max(),
        "pelvis at the end [m]": run.q[-1, 6],
        **residuals(run),
        "shaken: fastest [m/s, rad/s]": np.abs(many.v).max(),
        "shaken: loops open by [m, rad]": np.abs(closed).max(),
        "shaken: runs that failed": np.count_nonzero(many.status),
    }
    table("A walker of twelve motors", ["sarrus"], [(name, (float(x),)) for name, x in results.items()])
    lean = {"pitch": 2 * run.q[:, 1], "roll": 2 * run.q[:, 0]}
    panels = [
        Panel("Pelvis", "rad", run.t, lean),
        Panel("Left sole's middle", "m", run.t, {"height": feet[0, :, 2], "forward": feet[0, :, 0]}),
    ]
    figure("A walker is pushed", panels, output)
    touching.films({"walker": run}, films)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
