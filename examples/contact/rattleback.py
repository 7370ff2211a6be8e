"""A rattleback turns one way only: spun the other way it begins to rattle, stops, and turns back. Half an ellipsoid, its mass a little askew.

What rolls has two frequencies, of pitching and of rolling; as axes of inertia are turned against those of the surface, turning one way feeds the one, and the
other way the other. The mechanism has no number that says left or right but that angle: turned the other way, it turns the other way.
"""

from __future__ import annotations

import numpy as np
import touching
from touching import Panel, Path, command_line, figure, held, simulated, table

import sarrus
from sarrus.shapes import Ellipsoid, Plane

SEMI_AXES = (0.1, 0.02, 0.015)  # [m]
MASS, SPIN, TILT = 0.1, 5.0, 0.02  # [kg], [rad/s], [rad]
ASKEW = 0.1  # of the mass against the surface, about the vertical [rad]
LIKED = 1.0  # the sense of turning that it keeps


def rattleback(askew: float = ASKEW) -> sarrus.Mechanism:
    """A solid half ellipsoid, flat side up: its frame in the middle of that side."""
    a, b, c = SEMI_AXES
    low = 3.0 * c / 8.0  # of the centre of mass below the flat side
    moments = MASS / 5.0 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    turn = sarrus.Rotation.from_rpy(0.0, 0.0, askew).matrix
    about_com = np.diag(moments) - MASS * low**2 * np.diag([1.0, 1.0, 0.0])
    s = sarrus.Builder("rattleback")
    s.add_body("stone", sarrus.Inertia(MASS, (0, 0, -low), turn @ about_com @ turn.T))
    s.add_joint("float", sarrus.Free(), "ground", "stone")
    s.add_shape("stone", Ellipsoid(SEMI_AXES), friction=1.0)
    s.add_shape("ground", Plane())
    s.set_home({"float": (0, 0, 0, 1, 0, 0, c)})
    return s.build()


def spun(spin: float, duration: float, askew: float = ASKEW, dt: float = 2e-4) -> sarrus.Trajectory:
    """With a small tilt to begin with, its lowest point at rest."""
    robot = rattleback(askew)
    q = robot.assemble()
    q[:4] = sarrus.Rotation.from_rpy(0.0, TILT, 0.0).quaternion
    q[6] -= robot.contacts(q, within=1.0).distance[0]
    lowest = robot.contacts(q, within=1.0).position[0] - q[4:7]
    turning = np.array([0.0, 0.0, spin])
    R = robot.pose(q, "stone")[:3, :3]
    v = np.r_[R.T @ turning, R.T @ -np.cross(turning, lowest)]
    return simulated(robot, q, v, duration, dt=dt, times=np.linspace(0.0, duration, 501))


def spin_of(run: sarrus.Trajectory) -> np.ndarray:
    """About the vertical [rad/s]."""
    return np.einsum("nj,nj->n", run.frame("stone")[:, 2, :3], run.v[:, :3])


def main(output: Path | None = None, duration: float = 6.0, films: Path | None = None) -> dict[str, float]:
    """Spin both ways."""
    runs = {name: spun(sign * SPIN, duration) for name, sign in (("one way", 1.0), ("the other way", -1.0))}
    found = {}
    for name, run in runs.items():
        found[f"spun {name}: at the end [rad/s]"] = float(spin_of(run)[-1])
        found[f"spun {name}: energy at the end, of that at the start"] = float((run.energy[-1] - rest(run)) / (run.energy[0] - rest(run)))
    found |= held(runs["one way"])
    table("A rattleback", ["here"], [(name, (x,)) for name, x in found.items()])
    t = runs["one way"].t
    figure("A rattleback", [Panel("Spin", "rad/s", t, {f"spun {name}": spin_of(run) for name, run in runs.items()})], output)
    touching.films({"rattleback": runs["one way"]}, films)
    return found


def rest(run: sarrus.Trajectory) -> float:
    """Its energy at home [J]."""
    return float(run.mechanism.potential_energy(run.mechanism.assemble()))


if __name__ == "__main__":
    command_line(main)
