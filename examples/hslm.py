"""The High Stiffness Low Mass mechanism under PID control: held, and moved up. van der Merwe 1995, 8.2, figures 8.3 to 8.5.

Initially the integrators of the controllers are zero, so the mechanism falls and the controllers move it back. Then the set-point rises by
0.25 m. The rise is repeated with controllers on the prismatic joints (slides) only. If the set-points of slides and revolute joints (pitch) are
inconsistent, even by rounding, their controllers act against each other with growing forces, as the thesis reports.
"""

from __future__ import annotations

from math import hypot

import numpy as np
from showing import Panel, Path, command_line, figure, table

import sarrus
from sarrus.control import PID, FeedforwardEffort

LEGS = (1, 2, 3)
GAINS = {"proportional": 800.0, "integral": 1000.0, "derivative": 50.0}  # for slides and pitch joints
# horizontal and vertical extent of a leg in the home configuration, Table 8.1 [m]
REACH, DEPTH = 1.0874871 * np.array([np.cos(1.1669367), np.sin(1.1669367)])


def leg_at(height: float) -> tuple[float, float]:
    """Return the length [m] of each leg and its pitch angle [rad] if the tool is level and raised by `height` [m]."""
    up = height - DEPTH
    return hypot(REACH, up), -np.arctan2(up, REACH)


def controllers(height: float, turns: bool = True, digits: int = 15) -> list[PID | FeedforwardEffort]:
    """Return a controller for each slide and, with `turns`, for each pitch joint; set-points are rounded to `digits` decimals."""
    length, angle = (round(float(x), digits) for x in leg_at(height))
    slides = [PID(f"slide{k}", target=length, **GAINS) for k in LEGS]
    return slides + [PID(f"pitch{k}", target=angle, **GAINS) for k in LEGS if turns]


def main(output: Path | None = None, duration: float = 10.0) -> dict[str, float]:
    """Simulate all cases, compare them with the thesis, draw figures."""
    robot = sarrus.mechanisms.hslm()
    home, rest = robot.assemble(), np.zeros(robot.nv)
    slide, turn, member = (robot.joint(name).v_slice.start for name in ("slide1", "pitch1", "float"))
    fall = robot.forward_dynamics(home, rest, rest)[member + 4]

    # holding force of the slides: the efforts at zero acceleration
    weight = float(robot.actuator_efforts(home, rest, rest, actuated=[f"slide{k}" for k in LEGS])[0])
    held = sarrus.simulate(robot, home, rest, duration, controllers(0.0))
    risen = sarrus.simulate(robot, duration=duration, controller=controllers(0.25), resume=held.checkpoint)
    rounded = sarrus.simulate(robot, duration=duration, controller=controllers(0.25, digits=2), resume=held.checkpoint)
    loaded = [FeedforwardEffort(f"slide{k}", weight) for k in LEGS]  # because the integrators are zero initially
    freely = sarrus.simulate(robot, home, rest, duration, [*controllers(0.25, turns=False), *loaded])

    def height(run: sarrus.Trajectory) -> np.ndarray:
        return run.frame("reference")[:, 1, 3]

    seconds = sum(run.statistics["seconds"] for run in (held, risen, rounded, freely))
    results = {
        "fall": fall,
        "lowest": height(held).min(),
        "overshoot": height(risen).max() - 0.25,
        "overshoot, slides alone": height(freely).max() - 0.25,
        "pushing on": rounded.tau[-1, slide] - rounded.tau[len(rounded) // 2, slide],
        "held": height(held)[-1],
        "risen": height(risen)[-1],
    }
    table(
        "High Stiffness Low Mass mechanism",
        ["thesis", "dense model", "sarrus"],
        [
            ("released: acceleration of the tool [m/s²]", (-10.0286429, -10.02864293, fall)),
            ("force of each slide at rest [N]", (None, -43.49750056, weight)),
            ("held: lowest height [m]", (None, -0.05881240, results["lowest"])),
            (f"held: height at {duration:g} s [m]", (None, -6.971e-8 if duration == 10 else None, results["held"])),
            ("moved up: largest height [m]", (None, 0.32705418, 0.25 + results["overshoot"])),
            (
                "moved up by slides only: largest height [m]",
                (None, 0.35090461, 0.25 + results["overshoot, slides alone"]),
            ),
            (
                "rounded set-points: change of the slide's force in the last half [N]",
                (None, None, results["pushing on"]),
            ),
            (f"wall time for {4 * duration:g} s of simulation [s]", (None, None, seconds)),
        ],
    )

    panels = []
    for title, run in (
        ("8.3  held in place", held),
        ("8.4  set-point raised by 0.25 m", risen),
        ("8.4  set-point raised, rounded to two decimals", rounded),
        ("8.5  controllers on the slides only", freely),
    ):
        t = run.t - run.t[0]
        forces = {"slide [N]": run.tau[:, slide], "pitch [N m]": run.tau[:, turn]}
        shown = t <= (10.0 if run is rounded else 4.0)
        panels += [
            Panel(title, "height [m]", t[shown], {"reference": height(run)[shown]}),
            Panel("efforts of each leg", "effort", t[shown], {name: y[shown] for name, y in forces.items()}),
        ]
    figure("High Stiffness Low Mass mechanism under PID", panels, output)
    return results


if __name__ == "__main__":
    command_line(main)
