"""A rover with rockers and bogies climbs a step, one side first. SpaceDyn 1999, figure 7(d).

The ground under the six wheels rises by 6 cm, nearly the radius of a wheel. A PID controller on each motor follows a constant speed. The result
is compared with that of wheels that roll without slip on level ground.
"""

from __future__ import annotations

import numpy as np
import showing
from showing import Panel, Path, command_line, figure, table

import sarrus
from sarrus.control import PID, CompliantContact, rest_to_rest

STEP, RAMP, RATE = 0.06, 0.2, 3.0  # height and length of the step [m], speed of the wheels [rad/s]
BEGINS = {"left": 0.4, "right": 0.7}  # x at which the step begins on each side [m]


def contacts(robot: sarrus.Mechanism) -> list[CompliantContact]:
    """Return the contacts of the wheels with the ground of their side."""
    ground = {side: rest_to_rest(0.0, STEP, RAMP, begin=x) for side, x in BEGINS.items()}
    firm = {"stiffness": 2e4, "exponent": 1.0, "dissipation": 1.0, "friction": 0.8, "slip_velocity": 1e-2}
    wheels = [body for body in robot.bodies if body.endswith("wheel")]
    return [CompliantContact(wheel, radius=0.065, height=ground[wheel.split()[0]], **firm) for wheel in wheels]


def drive(duration: float) -> sarrus.Trajectory:
    """Simulate the drive over the step."""
    robot = sarrus.mechanisms.rover()
    speed = sarrus.laws.polynomial(0.0, RATE)
    motors = [PID(axle, proportional=2.0, integral=10.0, derivative=0.5, target=speed) for axle in robot.actuated]
    return sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), duration, contacts(robot) + motors, dt=2e-3)


def main(output: Path | None = None, duration: float = 7.0, films: Path | None = None) -> dict[str, float]:
    """Simulate the drive, compare it with rolling wheels, draw figures."""
    run = drive(duration)
    robot = run.mechanism
    chassis = run.frame("chassis")
    wheels = [body for body in robot.bodies if body.startswith("left") and body.endswith("wheel")]
    heights = {wheel.split()[1]: run.frame(wheel)[:, 2, 3] for wheel in wheels}
    climbed = chassis[-1, 2, 3] - chassis[0, 2, 3]

    ideal = sarrus.mechanisms.rover(rolling=True)
    v = ideal.complete_velocity(ideal.assemble(), {robot.actuated[0]: RATE})
    results = {
        "climbed": float(climbed),
        "distance": float(chassis[-1, 0, 3]),
        "ideal distance": float(v[3] * duration),
        "greatest pitch": float(np.abs(np.arcsin(chassis[:, 2, 0])).max()),
        "differential": float(run.loop_error.max()),
    }
    table(
        "Rover",
        ["rolling", "sarrus"],
        [
            ("distance [m]", (results["ideal distance"], results["distance"])),
            ("height gained [m]", (None, climbed)),
            ("greatest pitch of the chassis [rad]", (None, results["greatest pitch"])),
        ],
    )
    left, right = run.joint("left rocker pivot")[:, 0], run.joint("left bogie pivot")[:, 0]
    figure(
        "A rover climbs a step",
        [
            Panel("Heights of the left wheels", "m", run.t, heights),
            Panel("Chassis", "rad", run.t, {
                "pitch": -np.arcsin(chassis[:, 2, 0]), "roll": np.arcsin(chassis[:, 2, 1])}),
            Panel("Left side", "rad", run.t, {"rocker": left, "bogie": right}),
        ],
        output,
    )  # fmt: skip
    showing.films({"rover": run}, films)
    return results


if __name__ == "__main__":
    command_line(main)
