"""A four-bar of boxes and two boxes on a ball are dropped on the ground; the four-bar lies on its side for a minute.

The boxes are those of Kamino's examples in Newton (four-bar and nunchaku). They come to rest and stay at rest: the bodies do not creep, and hinges
whose boxes only touch the ground do not tremble.
"""

from __future__ import annotations

import numpy as np
import touching
from touching import Panel, Path, command_line, figure, residuals, simulated, table

import sarrus
from sarrus.shapes import Box, Plane, Sphere

FRICTION, LONG, THICK = 0.7, 0.1, 0.01  # lengths and thicknesses of the four-bar's boxes [m]


def four_bar() -> sarrus.Mechanism:
    """Return four boxes of 1 kg, connected by hinges in a ring."""
    b = sarrus.Builder("four-bar of boxes")
    level, upright = (LONG, THICK, THICK), (THICK, THICK, LONG)
    arm = 0.5 * LONG + 0.6 * THICK  # distance of a box's centre from its hinges [m]
    for name, size in (("lower", level), ("right", upright), ("upper", level), ("left", upright)):
        b.add_body(name, sarrus.Inertia.box(1.0, size))
        b.add_shape(name, Box(size), friction=FRICTION)
    b.add_shape("ground", Plane())
    b.add_joint("float", sarrus.Free(), "ground", "lower")
    for k, (parent, child, at_parent, at_child) in enumerate(
        [
            ("lower", "right", (arm, 0, 0), (0, 0, -arm)),
            ("right", "upper", (0, 0, arm), (arm, 0, 0)),
            ("upper", "left", (-arm, 0, 0), (0, 0, arm)),
            ("left", "lower", (0, 0, -arm), (-arm, 0, 0)),
        ]
    ):
        b.add_joint(
            f"hinge{k}", sarrus.Revolute("y"), parent, child, at_parent=at_parent, at_child=at_child, loop=k == 3
        )
    b.set_home({"float": (0, 0, 0, 1, 0, 0, LONG)})
    return b.build()


def nunchaku() -> sarrus.Mechanism:
    """Return two boxes, connected to a ball between them by ball joints."""
    b = sarrus.Builder("nunchaku")
    size, radius = (0.5, 0.1, 0.1), 0.05
    b.add_shape("ground", Plane())
    for name, inertia, shape in (
        ("left", sarrus.Inertia.box(1.0, size), Box(size)),
        ("ball", sarrus.Inertia.sphere(1.0, radius), Sphere(radius)),
        ("right", sarrus.Inertia.box(1.0, size), Box(size)),
    ):
        b.add_body(name, inertia)
        b.add_shape(name, shape, friction=FRICTION)
    b.add_joint("float", sarrus.Free(), "ground", "left")
    b.add_joint("one", sarrus.Spherical(), "left", "ball", at_parent=(0.25, 0, 0), at_child=(-radius, 0, 0))
    b.add_joint("other", sarrus.Spherical(), "ball", "right", at_parent=(radius, 0, 0), at_child=(-0.25, 0, 0))
    b.set_contact("left", "right", enabled=False)
    b.set_home({"float": (0, 0, 0, 1, 0, 0, 0.35)})
    return b.build()


def started(robot: sarrus.Mechanism, turn: tuple[float, float, float], height: float) -> np.ndarray:
    """Return the configuration with the first body at a height [m], rotated by roll, pitch and yaw [rad]."""
    q = robot.assemble()
    q[robot.joint("float").q_slice] = [*sarrus.Rotation.from_rpy(*turn).quaternion, 0.0, 0.0, height]
    return q


def on_its_side(duration: float) -> sarrus.Trajectory:
    """Simulate the four-bar with nearly vertical hinges, from a millimetre above the ground; samples from 0.5 s on."""
    robot = four_bar()
    q = started(robot, (0.5 * np.pi - 0.01, 0, 0.3), 0.5 * THICK + 1e-3)
    times = np.linspace(min(0.5, duration), duration, 601)
    return simulated(robot, q, np.zeros(robot.nv), duration, dt=4e-3, times=times)


def main(output: Path | None = None, duration: float = 3.0, films: Path | None = None) -> dict[str, float]:
    """Simulate both mechanisms, draw figures."""
    runs = {}
    for robot, turn, height in ((four_bar(), (0.3, 0.4, 0.1), 0.15), (nunchaku(), (0.1, 0.3, 0.2), 0.4)):
        q = started(robot, turn, height)
        runs[robot.name] = simulated(robot, q, np.zeros(robot.nv), duration, dt=2e-3)
    results, rows = {}, []
    for name, run in runs.items():
        energy = run.energy
        numbers = {
            "energy [J]": energy[-1],
            "gained in a step [J]": np.diff(energy).max(),
            "moves by [m/s, rad/s]": np.abs(run.v[-1]).max(),
        }
        numbers |= residuals(run)
        results |= {f"{name}: {quantity}": float(x) for quantity, x in numbers.items()}
    resting = on_its_side(20.0 * duration)
    results["on its side: moves by [m/s, rad/s]"] = float(np.abs(resting.v).max())
    results["on its side: has moved [m, rad]"] = float(np.abs(resting.q - resting.q[0]).max())
    results["on its side: energy at the end [J]"] = float(resting.energy[-1])
    rows = [(name, (x,)) for name, x in results.items()]
    table("Dropped", ["sarrus"], rows)
    t = next(iter(runs.values())).t
    fast = {name: np.abs(run.v).max(axis=1) for name, run in runs.items()}
    panels = [
        Panel("Energy", "J", t, {name: run.energy for name, run in runs.items()}),
        Panel("Largest velocity", "m/s, rad/s", t, fast),
    ]
    figure("Dropped on the ground", panels, output)
    touching.films({name.replace(" ", "_"): run for name, run in runs.items()}, films)
    return results


if __name__ == "__main__":
    command_line(main)
