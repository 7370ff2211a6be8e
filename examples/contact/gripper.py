"""The linkage of a Robotiq 2F-85 lifts a cube from the ground, and holds it for a minute, in steps of 2 ms.

Each finger has five bars, a spring and an end stop; one motor closes both fingers by a gear. Only friction holds the cube, which must not slip.
"""

from __future__ import annotations

import numpy as np
import touching
from touching import Panel, Path, command_line, figure, residuals, simulated, table

import sarrus
from sarrus.control import PID, rest_to_rest
from sarrus.shapes import Box, Plane

SIDE, MASS, FRICTION = 0.04, 0.1, 0.7  # edge [m] and mass [kg] of the cube, friction coefficient
LOW, HIGH, GRIPS, LIFTED = (
    0.17,
    0.32,
    0.6,
    1.6,
)  # initial and final height of the hand [m]; times at which it begins and ends to rise [s]


def workplace() -> sarrus.Mechanism:
    """Return the gripper above the ground, and a cube."""
    robot = sarrus.mechanisms.gripper()
    b = robot.to_builder()
    for side, inwards in (("left", 1.0), ("right", -1.0)):
        pad = np.linalg.inv(robot.pose(robot.assemble(), f"{side}_finger")) @ robot.pose(
            robot.assemble(), f"{side}_pad"
        )
        thick = 0.008
        b.add_shape(
            f"{side}_finger", Box((thick, 0.022, 0.0375)), pad[:3, 3] - [inwards * thick / 2, 0, 0], friction=FRICTION
        )
    b.add_body("cube", sarrus.Inertia.box(MASS, (SIDE, SIDE, SIDE)))
    b.add_joint("cube", sarrus.Free(), "ground", "cube")
    b.add_shape("cube", Box((SIDE, SIDE, SIDE)), friction=FRICTION)
    b.add_shape("ground", Plane())
    b.set_contact("left_finger", "right_finger", enabled=False)
    b.set_home({"lift": LOW, "cube": (0, 0, 0, 1, 0.004, 0, SIDE / 2)})  # the cube is not exactly between the pads
    return b.build()


def main(output: Path | None = None, duration: float = 60.0, films: Path | None = None) -> dict[str, float]:
    """Simulate the gripper, which closes, lifts and holds the cube; draw figures."""
    robot = workplace()
    close = PID("right_driver", proportional=2.0, derivative=0.02, target=rest_to_rest(0.0, 0.8, 0.5))
    lift = PID(
        "lift", proportional=4000.0, derivative=400.0, target=rest_to_rest(LOW, HIGH, LIFTED - GRIPS, begin=GRIPS)
    )
    q = robot.assemble()
    times = np.unique(np.r_[np.linspace(0, min(3.0, duration), 151), np.linspace(0, duration, 121)])
    run = simulated(robot, q, np.zeros(robot.nv), duration, [close, lift], dt=2e-3, limits="enforce", times=times)
    cube = np.linalg.inv(run.frame("right_finger")) @ run.frame("cube")
    holding = run.t >= min(LIFTED + 0.4, duration)
    slip = np.linalg.norm(cube[holding, :3, 3] - cube[holding][0, :3, 3], axis=1)
    last = run.contacts.sample == len(run) - 1
    pressed = np.abs(run.contacts.force[last, 2]).sum() if last.any() else 0.0
    results = {
        "lifted by [m]": run.frame("cube")[-1, 2, 3] - SIDE / 2,
        "slips by [m]": slip.max(),
        "moves by [m/s, rad/s]": np.abs(run.v[-1]).max(),
        "off the stops by [rad]": np.abs(run.joint("left_stop")[-1, 0]) + np.abs(run.joint("right_stop")[-1, 0]),
        "vertical forces at the end [N]": pressed,
        **residuals(run),
    }
    table("A gripper", ["sarrus"], [(name, (float(x),)) for name, x in results.items()])
    short = run.t <= 3.0
    heights = {"hand": run.frame("hand")[short, 2, 3], "cube": run.frame("cube")[short, 2, 3]}
    panels = [
        Panel("Heights", "m", run.t[short], heights),
        Panel("Slip", "m", run.t[holding], {"cube on the right pad": slip}),
    ]
    figure("A gripper of linkages lifts a cube", panels, output)
    touching.films({"gripper": run}, films)
    return {name: float(x) for name, x in results.items()}


if __name__ == "__main__":
    command_line(main)
