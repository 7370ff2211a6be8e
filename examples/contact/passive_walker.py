"""Two legs without motors walk down a slope. Garcia and others 1998, the simplest walking model.

The mass is in the hip; the feet have hardly any mass. As in the paper, the swing foot may pass below the ground: therefore each foot has its own
stepping stones, as in McGeer's walkers. Every step should repeat the first one: an angle of 0.2003 rad, and a duration of 3.882 sqrt(leg / gravity).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import touching
from touching import Panel, Path, command_line, figure, residuals, simulated, table

import sarrus
from sarrus.shapes import Box, Point

SLOPE, GRAVITY = 0.009, 9.81  # [rad], [m/s2]; legs are 1 m long
WIDE, RATE = (
    0.200310900544287,
    -0.199832473004977,
)  # angle [rad] from the slope's normal, and its rate, of the stance leg when a step begins
PERIOD = 3.882
UNIT = GRAVITY**-0.5  # [s]
STEPS = 12


def walker(feet: float = 1e-4) -> sarrus.Mechanism:
    """Return the walker in the x-z plane, with x down the slope, and its stones; `feet` is the mass of a foot [kg], the hip has 1 kg."""
    b = sarrus.Builder("passive walker", gravity=(GRAVITY * np.sin(SLOPE), 0, -GRAVITY * np.cos(SLOPE)))
    b.add_body("rail")
    b.add_body("hip", sarrus.Inertia(1.0, (0, 0, 0), np.zeros((3, 3))))
    b.add_joint("along", sarrus.Prismatic("x"), "ground", "rail")
    b.add_joint("up", sarrus.Prismatic("z"), "rail", "hip")
    for leg in ("left", "right"):
        b.add_body(leg, sarrus.Inertia.from_points([feet], [(0, 0, -1)]))
        b.add_joint(f"{leg}_hip", sarrus.Revolute("y"), "hip", leg)
        b.add_shape(leg, Point(), (0, 0, -1), name=f"{leg}_foot")
    stride = 2.0 * np.sin(WIDE)
    for k in range(STEPS + 1):
        b.add_shape(
            "ground", Box((0.16, 0.1, 0.02)), (k * stride, 0, -0.01), group=("left_stones", "right_stones")[k % 2]
        )
    for leg, other in (("left", "right"), ("right", "left")):
        b.set_contact(f"{leg}_foot", f"{other}_stones", enabled=False)
    b.set_contact("left_foot", "right_foot", enabled=False)
    b.set_home({"up": np.cos(WIDE), "along": -np.sin(WIDE), "left_hip": -WIDE, "right_hip": WIDE})
    return b.build()


def main(output: Path | None = None, duration: float = 9.0, films: Path | None = None) -> dict[str, float]:
    """Simulate the walker, compare its steps with the paper, draw figures."""
    robot = walker()
    turning = RATE * np.cos(2.0 * WIDE) / UNIT  # rate of the swing leg: its foot leaves the ground along the leg
    v = [-np.cos(WIDE) * RATE / UNIT, -np.sin(WIDE) * RATE / UNIT, -RATE / UNIT, -turning]
    run = simulated(robot, robot.assemble(), v, duration, dt=2e-4)
    # a step begins when the contact changes to the other foot
    feet = [shapes[0] if "foot" in shapes[0] else shapes[1] for shapes in run.contacts.shapes]
    changes = [b for a, b in pairwise(zip(run.contacts.sample, feet, strict=True)) if a[1] != b[1]]
    begins = np.array([sample for sample, _ in changes], int)
    legs = run.q[begins, 2:]
    wide = np.abs(legs[:, 0] - legs[:, 1]) / 2
    results = {
        "steps": float(len(begins)),
        "half a step [rad]": float(wide[-1]) if len(wide) else np.nan,
        "period": float(np.diff(run.t[begins])[-1] / UNIT) if len(begins) > 1 else np.nan,
        "stands upright [m]": float(run.q[-1, 1]),
        **residuals(run),
    }
    published = {"half a step [rad]": WIDE, "period": PERIOD}
    rows = [(name, (published.get(name), x if np.isfinite(x) else None)) for name, x in results.items()]
    table("A passive walker", ["Garcia 1998", "sarrus"], rows)
    angles = {"left": run.q[:, 2], "right": run.q[:, 3]}
    figure("A passive walker", [Panel("Legs, from the slope's normal", "rad", run.t, angles)], output)
    touching.films({"passive_walker": run}, films)
    return results


if __name__ == "__main__":
    command_line(main)
