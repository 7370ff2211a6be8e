"""Lattices fall: a net of four-bars, a ring of rods, chain mail, a tensegrity prism, Hoberman's ring and sphere, and Miura's fold.

No publication has numbers for these mechanisms. Therefore the simulations are judged by their loop errors and the drift of their energy. Steps
are short enough for the fastest motions of small bodies.
"""

from __future__ import annotations

import numpy as np
import showing
from showing import Panel, Path, command_line, figure, table

import sarrus

# mechanism, step [s], and a body whose centre of mass is plotted
CASES = (
    (sarrus.mechanisms.net(3, 3), 1e-3, "across3_2"),
    (sarrus.mechanisms.ring(12), 2e-4, "rod7"),
    (sarrus.mechanisms.chain_mail(3, 4), 1e-4, "ring2_3"),
    (sarrus.mechanisms.tensegrity_prism(3), 2e-4, "strut1"),
    (sarrus.mechanisms.hoberman_ring(6), 2e-4, "left4"),
    (sarrus.mechanisms.hoberman_sphere(), 2e-4, "outer-z"),
    (sarrus.mechanisms.miura_fold(4, 4), 1e-3, "facet3_3"),
)


def main(output: Path | None = None, duration: float | None = None, films: Path | None = None) -> dict[str, float]:
    """Simulate all mechanisms, draw figures, write films; `duration` [s] shortens the simulations."""
    rows, panels, results, runs = [], [], {}, {}
    for robot, step, body in CASES:
        q = robot.assemble()
        run = sarrus.simulate(robot, q, np.zeros(robot.nv), min(0.5, duration or 0.5), dt=step)
        runs[robot.name] = run
        freedom = robot.mobility(q).degrees_of_freedom
        drift = np.abs(run.energy - run.energy[0]).max()
        results |= {f"{robot.name}, drift": drift, f"{robot.name}, open": run.loop_error.max()}
        rows.append((robot.name, (robot.nv, robot.nc, freedom, run.kinetic_energy.max(), drift, run.loop_error.max())))
        middle = next(spec.inertia.com for spec in robot.description.bodies if spec.name == body)
        place = run.frame(body) @ [*middle, 1.0]
        panels.append(Panel(f"{robot.name}: {body}", "m", run.t, {axis: place[:, k] for k, axis in enumerate("xyz")}))
    table(
        "Lattices",
        ["velocities", "rows", "freedoms", "kinetic, max [J]", "drift, sarrus [J]", "loop error [m]"],
        rows,
    )
    figure("Lattices that fall", panels, output)
    showing.films(runs, films, speed=0.2)
    return results


if __name__ == "__main__":
    command_line(main)
