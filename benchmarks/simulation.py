"""Simulations by the clock: time a step, drift of the loops, drift of the energy. ``python -m benchmarks --simulation``"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import sarrus

REPEATS = 5


@dataclass(frozen=True)
class Row:
    """A number that was seen beside the one to reach."""

    what: str
    quantity: str
    seen: float
    reach: float
    at_least: bool = False

    @property
    def reached(self) -> bool:
        """Whether it is good enough."""
        return self.seen >= self.reach if self.at_least else self.seen <= self.reach


def crank_rocker() -> tuple[sarrus.Mechanism, np.ndarray, np.ndarray]:
    """0.4, 1.1, 0.9 and 1.0 m between the ground's pins, rods of 1 kg, at 0.5 rad with 6 rad/s, the rocker below."""
    robot = sarrus.mechanisms.four_bar(crank=0.4, coupler=1.1, rocker=0.9, ground=1.0)
    q = min(robot.assembly_modes(fixed={"motor": 0.5}), key=robot.potential_energy)
    return robot, q, along_the_loops(robot, q, "motor", 6.0)


def along_the_loops(robot: sarrus.Mechanism, q: np.ndarray, joint: str, speed: float) -> np.ndarray:
    """The velocity of a mechanism of one freedom with which a joint has this speed."""
    v = np.linalg.svd(robot.constraint_jacobian(q))[2][-1]
    return v * (speed / v[robot.joint(joint).v_slice][0])


def ladder(n: int, speed: float) -> tuple[sarrus.Mechanism, np.ndarray, np.ndarray]:
    """Upright, its top moving at `speed` [m/s]."""
    robot = sarrus.mechanisms.four_bar_ladder(n)
    q = robot.assemble(fixed={"pivot0": 0.0})
    v = np.zeros(robot.nv)
    J = robot.constraint_jacobian(q)
    free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, 1e-9) :]
    # of what the loops allow here, the motion in which all uprights turn alike
    alike = np.array([1.0 if robot.joint(name).parent == "ground" else -1.0 for name in robot.joints])
    v = free.T @ (free @ alike)
    return robot, q, v * speed


def measured(run: Callable[[], sarrus.Trajectory]) -> tuple[float, sarrus.Trajectory]:
    """Median of the seconds that the steps took, and the last run."""
    seconds = []
    for _ in range(REPEATS):
        trajectory = run()
        seconds.append(trajectory.statistics["seconds"])
    return float(np.median(seconds)), trajectory


def drift(trajectory: sarrus.Trajectory) -> float:
    """Largest change of the energy [J]."""
    return float(np.abs(trajectory.energy - trajectory.energy[0]).max())


def rows(tell: Callable[[str], None]) -> list[Row]:
    """All of the table."""
    found = []

    def run(what: str, state: Any, method: str, seconds: float, **options: Any) -> tuple[float, sarrus.Trajectory]:
        tell(what)
        return measured(lambda: sarrus.simulate(*state, seconds, method=method, **options))

    state = crank_rocker()
    for method, name, microseconds, loop, energy in (
        ("rk4", "RK4", 4.5, 1e-12, 4e-7),
        ("semi_implicit", "semi-implicit Euler", 1.8, 1e-10, 0.1),
    ):
        what = f"crank-rocker, {name}"
        seconds, trajectory = run(what, state, method, 10.0)
        found += [
            Row(what, "microseconds a step", 1e6 * seconds / trajectory.statistics["steps"], microseconds),
            Row(what, "loop [m]", float(trajectory.loop_error.max()), loop),
            Row(what, "energy [J]", drift(trajectory), energy),
        ]

    what = "ladder(8) through its flat positions, RK4"
    seconds, trajectory = run(what, ladder(8, 1.0), "rk4", 10.0)
    angles = trajectory.q * np.sign(trajectory.v[0])
    found += [
        Row(what, "microseconds a step", 1e6 * seconds / trajectory.statistics["steps"], 12.0),
        Row(what, "energy [J]", drift(trajectory), 1e-7),
        Row(what, "off the smooth branch [rad]", float(np.ptp(angles - angles[0], axis=1).max()), 1e-6),
    ]

    what = "1,000 runs of the HSLM mechanism, 1 s at 1 ms, two threads"
    tell(what)
    robot = sarrus.mechanisms.hslm()
    rng = np.random.default_rng(0)
    home = np.broadcast_to(robot.assemble(), (1000, robot.nq))
    starts = robot.project_configuration(robot.integrate(home, 1e-3 * rng.normal(size=(1000, robot.nv))))
    rest = np.zeros((1000, robot.nv))
    begun = time.perf_counter()
    for q in starts[:20]:
        sarrus.simulate(robot, q, rest[0], 1.0)
    one_by_one = (time.perf_counter() - begun) * 50.0
    begun = time.perf_counter()
    status = sarrus.simulate_many(robot, starts, rest, 1.0, every=100, threads=2).status
    together = time.perf_counter() - begun
    found.append(Row(what, "times one by one", one_by_one / together if not status.any() else 0.0, 6.0, at_least=True))

    what = "IFToMM N-four-bar, N = 40, 20 s"
    seconds, trajectory = run(what, ladder(40, 1.0), "rk4", 20.0, dt=0.01)
    found += [Row(what, "wall time [s]", seconds, 1.0), Row(what, "energy [J]", drift(trajectory), 1e-4)]

    what = "Bricard mechanism, 10 s"
    robot = sarrus.mechanisms.bricard()
    q = robot.assemble()
    seconds, trajectory = run(what, (robot, q, np.zeros(robot.nv)), "rk4", 10.0, dt=0.005)
    found += [Row(what, "wall time [s]", seconds, 0.05), Row(what, "energy [J]", drift(trajectory), 1e-4)]
    return found


def markdown(found: list[Row]) -> str:
    """The table."""
    lines = ["| what | quantity | seen | to reach | |", "|---|---|---|---|---|"]
    for row in found:
        sign, verdict = ("at least" if row.at_least else "at most"), "reached" if row.reached else "**not reached**"
        lines.append(f"| {row.what} | {row.quantity} | {row.seen:.3g} | {sign} {row.reach:g} | {verdict} |")
    return "\n".join([*lines, "", f"{sum(row.reached for row in found)} of {len(found)} reached.", ""])
