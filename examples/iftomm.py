"""IFToMM's benchmark mechanisms: a row of 40 four-bars that passes its flat positions, and Bricard's linkage.

These are problems A02 and A04 of IFToMM's library of computational benchmark problems. Both have redundant constraints. The criteria are
the drift of the energy and the computation time.
"""

from __future__ import annotations

import numpy as np
from showing import Panel, Path, command_line, figure, table

import sarrus


def upright(ladder: sarrus.Mechanism, speed: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the state with vertical rods, whose upper ends move at `speed` [m/s] along x."""
    v = np.zeros(ladder.nv)
    for name in ladder.joints:  # vertical rods rotate, horizontal rods do not
        v[ladder.joint(name).v_slice] = speed if name.startswith("pivot") else -speed
    return np.zeros(ladder.nq), v


def main(output: Path | None = None, duration: float | None = None) -> dict[str, float]:
    """Simulate all mechanisms, compare, draw figures; `duration` [s] shortens the simulations."""
    rows, panels, results = [], [], {}
    cases = [  # name, four-bars (0: Bricard), duration [s], method, step [s], published time of OpenSim on an i5-4570 [s]
        ("2 four-bars", 2, 10.0, "rk4", 0.005, 0.455),
        ("40 four-bars", 40, 20.0, "rk4", 0.005, None),
        # the stages of this method satisfy the loops; with open loops Bricard's linkage would be stiff
        ("Bricard", 0, 10.0, "independent", 0.005, 0.258),
    ]
    for name, n, full_duration, method, step, opensim in cases:
        if n:
            robot = sarrus.mechanisms.four_bar_ladder(n)
            q, v = upright(robot, 1.0)
        else:
            robot = sarrus.mechanisms.bricard()
            q, v = robot.assemble(), np.zeros(robot.nv)
        run = sarrus.simulate(robot, q, v, min(full_duration, duration or full_duration), method=method, dt=step)
        drift = np.abs(run.energy - run.energy[0])
        results |= {f"{name}, drift": drift.max(), f"{name}, seconds": run.statistics["seconds"]}
        rows.append((name, (run.t[-1], opensim, run.statistics["seconds"], drift.max(), run.loop_error.max())))
        point = "vertical0" if n else "link3"  # link3 of Bricard's linkage ends at the loop joint
        end = run.frame(point) @ [0.0, 0.0, 1.0, 1.0]
        panels.append(Panel(f"{name}: a rod's end", "m", run.t, {axis: end[:, k] for k, axis in enumerate("xyz")}))
    table(
        "IFToMM benchmarks",
        ["simulated [s]", "OpenSim took [s]", "sarrus [s]", "drift [J]", "loops open [m]"],
        rows,
    )
    figure("IFToMM benchmark mechanisms", panels, output)
    return results


if __name__ == "__main__":
    command_line(main)
