"""A rattleback spins in one direction only: in the other direction it begins to rattle, stops, and reverses its spin. Kane and Levinson 1982.

Half an ellipsoid rolls on the ground. Its axes of inertia are slightly rotated against those of its surface: spin in one direction transfers energy to
pitching, in the other direction pitching transfers energy to spin. The sign of the product of inertia determines the direction.
"""

from __future__ import annotations

import numpy as np
import touching
from touching import Panel, Path, command_line, figure, residuals, simulated, table

import sarrus
from sarrus.shapes import Ellipsoid, Plane

SEMI_AXES, LOW, MASS = (
    (0.2, 0.03, 0.02),
    0.01,
    1.0,
)  # [m]; depth of the centre of mass below the ellipsoid's centre [m]; [kg]
MOMENTS, PRODUCT = (2e-4, 1.6e-3, 1.7e-3), -2e-5  # about the centre of mass [kg m2]
SPIN, TILT = 5.0, np.radians(0.5)  # initial spin [rad/s], initial roll and pitch [rad]


def rattleback(product: float = PRODUCT) -> sarrus.Mechanism:
    """Return the stone above the ground, with its frame at the ellipsoid's centre."""
    s = sarrus.Builder("rattleback")
    moments = np.diag(MOMENTS)
    moments[0, 1] = moments[1, 0] = product
    s.add_body("stone", sarrus.Inertia(MASS, (0, 0, -LOW), moments))
    s.add_joint("float", sarrus.Free(), "ground", "stone")
    s.add_shape("stone", Ellipsoid(SEMI_AXES), friction=1.0)
    s.add_shape("ground", Plane())
    s.set_home({"float": (0, 0, 0, 1, 0, 0, SEMI_AXES[2])})
    return s.build()


def spun(spin: float, duration: float, product: float = PRODUCT, dt: float = 2e-4) -> sarrus.Trajectory:
    """Simulate a spin from a tilted position, with the lowest point at rest."""
    robot = rattleback(product)
    q = robot.assemble()
    q[:4] = sarrus.Rotation.from_rpy(TILT, np.sign(product) * -TILT, 0.0).quaternion
    q[6] -= robot.contacts(q, within=1.0).distance[0]
    lowest = robot.contacts(q, within=1.0).position[0] - q[4:7]
    turning, R = np.array([0.0, 0.0, spin]), robot.pose(q, "stone")[:3, :3]
    v = np.r_[R.T @ turning, R.T @ -np.cross(turning, lowest)]
    return simulated(robot, q, v, duration, dt=dt, times=np.linspace(0.0, duration, 501))


def spin_of(run: sarrus.Trajectory) -> np.ndarray:
    """Return the spin (n,) [rad/s] about the vertical."""
    return np.einsum("nj,nj->n", run.frame("stone")[:, 2, :3], run.v[:, :3])


def main(output: Path | None = None, duration: float = 5.0, films: Path | None = None) -> dict[str, float]:
    """Simulate both directions, draw figures."""
    runs = {"with its liking": spun(SPIN, duration), "against it": spun(-SPIN, duration)}
    spins = {name: spin_of(run) for name, run in runs.items()}
    results = {f"spun {name}: at the end [rad/s]": float(spin[-1]) for name, spin in spins.items()} | residuals(
        runs["against it"]
    )
    table("A rattleback", ["sarrus"], [(name, (x,)) for name, x in results.items()])
    figure("A rattleback", [Panel("Spin", "rad/s", runs["against it"].t, spins)], output)
    touching.films({"rattleback": runs["against it"]}, films)
    return results


if __name__ == "__main__":
    command_line(main)
