"""A Strandbeest walks: twelve of Theo Jansen's legs on one crankshaft, thirty-six loops, and contact with the ground.

Two legs that face each other share a pin of the crankshaft. On each side of the body there are three such pins, 120 degrees apart. The shaft rotates
at a constant rate, and the feet touch the ground one after the other, with little slip.
"""

from __future__ import annotations

import numpy as np
import touching
from touching import Panel, Path, command_line, figure, residuals, simulated, table

import sarrus
from sarrus.control import PID
from sarrus.shapes import Plane, Sphere

RATE, FRICTION, SOLE = 3.0, 0.8, 0.02  # rate of the shaft [rad/s]; friction and radius [m] of the feet
PHASES = np.radians([0, 120, 240])
TURNS = {"front": sarrus.Transform(), "rear": sarrus.Transform.from_rpy(0, 0, np.pi)}


def beast(pairs: int = 6) -> sarrus.Mechanism:
    """Return a chassis on pairs of legs."""
    leg = sarrus.mechanisms.strandbeest_leg()
    b = sarrus.Builder("Strandbeest")
    b.add_body("chassis", sarrus.Inertia.box(5.0, (0.8, 1.0, 0.1)))
    b.add_joint("float", sarrus.Free(), "ground", "chassis")
    b.add_body("shaft", sarrus.Inertia.rod(1.0, (0, -0.5, 0), (0, 0.5, 0), 0.02))
    b.add_joint("shaft", sarrus.Revolute("y"), "chassis", "shaft", actuated=True)
    home: dict[str, object] = {"shaft": 0.0}
    for k in range(pairs):
        y = (k - 0.5 * (pairs - 1)) / pairs
        for name, turn in TURNS.items():
            at = sarrus.Transform(translation=(0, y, 0)) @ turn
            # the pin's angle in the leg's frame
            pin = np.pi / 3 + PHASES[k % 3]
            angle = -pin if name == "front" else pin - np.pi
            home |= add_leg(b, leg, f"{name}{k}", at, angle)
    b.set_home(home)
    hanging = b.build()
    q = hanging.assemble()
    lowest = min(hanging.pose(q, foot)[2, 3] for foot in hanging.frames if foot.endswith("foot"))
    b.add_shape("ground", Plane())
    b.set_home(home | {"float": (0, 0, 0, 1, 0, 0, SOLE - lowest)})
    return b.build()


def add_leg(
    b: sarrus.Builder, leg: sarrus.Mechanism, name: str, at: sarrus.Transform, angle: float
) -> dict[str, object]:
    """Add a leg, with the shaft as its crank at an angle [rad]; return the coordinates of its joints."""
    start = leg.joint_states(leg.assemble()).q["motor"][0]
    angles = start + np.linspace(0.0, (angle - start + np.pi) % (2 * np.pi) - np.pi, 40)
    states = leg.joint_states(leg.follow({"motor": angles})[-1]).q
    places = {"ground": ("chassis", at), "crank": ("shaft", at @ sarrus.Transform.from_rpy(0, angle, 0))}
    for body in leg.description.bodies:
        if body.name != "crank":
            b.add_body(f"{name}_{body.name}", body.inertia)
    home = {}
    for joint in leg.description.joints:
        if joint.name == "motor":
            continue
        parent, before = places.get(joint.parent, (f"{name}_{joint.parent}", sarrus.Transform()))
        ends = {"at_parent": before @ joint.at_parent, "at_child": joint.at_child, "loop": joint.loop}
        b.add_joint(f"{name}_{joint.name}", joint.joint, parent, f"{name}_{joint.child}", **ends)
        if not joint.loop:
            home[f"{name}_{joint.name}"] = states[joint.name]
    (foot,) = (frame for frame in leg.description.frames if frame.name == "foot")
    b.add_frame(f"{name}_foot", f"{name}_lower", foot.placement)
    b.add_shape(f"{name}_lower", Sphere(SOLE), foot.placement, friction=FRICTION, group="feet")
    b.set_contact("feet", "feet", enabled=False)
    return home


def main(output: Path | None = None, duration: float = 6.0, films: Path | None = None) -> dict[str, float]:
    """Simulate the walk, measure it, draw figures."""
    robot = beast()
    q = robot.assemble()
    turning = PID("shaft", proportional=400.0, derivative=40.0, target=sarrus.laws.polynomial(0.0, RATE))
    times = np.linspace(0.0, duration, max(2, round(duration * 50) + 1))
    run = simulated(robot, q, np.zeros(robot.nv), duration, turning, dt=4e-3, times=times)
    chassis = run.frame("chassis")
    feet = np.bincount(run.contacts.sample, minlength=len(run))
    places = np.stack([run.frame(name)[:, [0, 2], 3] for name in robot.frames if name.endswith("foot")], axis=1)
    lowest, passed = places[..., 1].argmin(axis=1)[:-1], np.diff(places[..., 0] - chassis[:, None, 0, 3], axis=0)
    results = {
        "walked [m]": chassis[-1, 0, 3],
        "by the lowest feet [m]": -passed[np.arange(len(lowest)), lowest].sum(),
        "turns of the shaft": run.joint("shaft")[-1, 0] / (2 * np.pi),
        "sideways [m]": np.abs(chassis[:, 1, 3]).max(),
        "rises and falls by [m]": np.ptp(chassis[:, 2, 3]),
        "feet on the ground, on average": feet[1:].mean(),
        **residuals(run),
    }
    table("A Strandbeest", ["sarrus"], [(name, (float(x),)) for name, x in results.items()])
    panels = [
        Panel("Chassis", "m", run.t, {"forward": chassis[:, 0, 3]}),
        Panel("Feet on the ground", "", run.t, {"feet": feet}),
    ]
    figure("A Strandbeest walks", panels, output)
    touching.films({"strandbeest": run}, films)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
