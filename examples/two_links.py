"""Two links carry a body between their ends: the mechanism is released, or motors hold it. van der Merwe 1995, 6.5.

The thesis computes the accelerations at one instant. This script simulates the motion. The mechanism is a parallelogram, so the result is
compared with its equation of motion, (90 / 12.875) cos(angle) = angle'', which follows from its energy.
"""

from __future__ import annotations

import numpy as np
from showing import Panel, Path, command_line, figure, table

import sarrus
from sarrus.control import FeedforwardEffort

HOLDING = -31.819805153394636  # torque of each joint that balances gravity, 90 N m cos(45 degrees) / 2 (6.147) [N m]
ANGLES = {1.0: 2.2220537479083537, 2.0: 1.2818549026151194, 5.0: 0.7934368779841943}  # time [s]: angle [rad]


def main(output: Path | None = None, duration: float = 5.0) -> dict[str, float]:
    """Simulate both cases, compare them with the thesis, draw figures."""
    robot = sarrus.mechanisms.two_links()
    home, rest = robot.assemble(), np.zeros(robot.nv)
    member = robot.joint("float").v_slice.start
    run = sarrus.simulate(robot, home, rest, duration, method="dopri5", rtol=1e-11, atol=1e-11, dt=0.01)
    motors = [FeedforwardEffort(f"joint{k}", HOLDING) for k in (1, 2)]
    held = sarrus.simulate(robot, home, rest, min(duration, 0.5), motors)

    angle = run.joint("joint1")[:, 0]
    results = {
        "acceleration": run.a[0, 0],
        "member": run.a[0, member + 5],
        "moved while held": np.abs(held.q - held.q[0]).max(),
        "drift": np.abs(run.energy - run.energy[0]).max(),
    }
    reached = {f"at {t:g} s": run.at(t)[0][0] for t in ANGLES if t <= duration}
    table(
        "Two links and a reference member",
        ["thesis", "one equation", "sarrus"],
        [
            ("initial acceleration of the links [rad/s²]", (4.9428824, 4.942882353925381, results["acceleration"])),
            ("initial acceleration of the member, x and z [m/s²]", (-5.2427184, -5.242718446601942, results["member"])),
            *((f"angle at {t:g} s [rad]", (None, x, reached.get(f"at {t:g} s"))) for t, x in ANGLES.items()),
            ("motion in half a second if motors hold it [rad, m]", (None, 0.0, results["moved while held"])),
            ("drift of the energy [J]", (None, 0.0, results["drift"])),
        ],
    )
    place = run.frame("reference")[:, :3, 3]
    figure(
        "Two links and a reference member",
        [
            Panel("Both links", "angle [rad]", run.t, {"joint1": angle}),
            Panel("Reference member", "m", run.t, {"x": place[:, 0], "z": place[:, 2]}),
            Panel(
                "Force in the joints at the tips",
                "N",
                run.t,
                {name: np.linalg.norm(run.reactions.wrenches[name][:, 3:], axis=1) for name in ("tip1", "tip2")},
            ),
        ],
        output,
    )
    return results | reached


if __name__ == "__main__":
    command_line(main)
