"""Simulations: time per step, drift of the loops, drift of the energy. ``python -m benchmarks --simulation``"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import sarrus

from .tables import Row, Run


def crank_rocker() -> tuple[sarrus.Mechanism, np.ndarray, np.ndarray]:
    """Return a four-bar linkage of 0.4, 1.1, 0.9 and 1.0 m with bars of 1 kg, and its initial state.

    The crank is at 0.5 rad and rotates with 6 rad/s; the rocker is below the ground line.
    """
    robot = sarrus.mechanisms.four_bar(crank=0.4, coupler=1.1, rocker=0.9, ground=1.0)
    q = min(robot.assembly_modes(fixed={"motor": 0.5}), key=robot.potential_energy)
    return robot, q, along_the_loops(robot, q, "motor", 6.0)


def along_the_loops(robot: sarrus.Mechanism, q: np.ndarray, joint: str, speed: float) -> np.ndarray:
    """Return the velocity (nv,) of a mechanism with one degree of freedom that satisfies the constraints, for the speed of a joint."""
    v = np.linalg.svd(robot.constraint_jacobian(q))[2][-1]
    return v * (speed / v[robot.joint(joint).v_slice][0])


def ladder(n: int, speed: float) -> tuple[sarrus.Mechanism, np.ndarray, np.ndarray]:
    """Return a ladder, its upright configuration, and a velocity of the ladder that is proportional to `speed`; at 1 m/s, uprights of 1 m rotate at 1
    rad/s.
    """
    robot = sarrus.mechanisms.four_bar_ladder(n)
    q = robot.assemble(fixed={"pivot0": 0.0})
    v = np.zeros(robot.nv)
    J = robot.constraint_jacobian(q)
    free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, 1e-9) :]
    # the motion in which all uprights rotate with the same velocity
    alike = np.array([1.0 if robot.joint(name).parent == "ground" else -1.0 for name in robot.joints])
    v = free.T @ (free @ alike)
    return robot, q, v * speed


def measured(run: Callable[[], sarrus.Trajectory], repeats: int) -> tuple[float, sarrus.Trajectory]:
    """Return the median time of the steps [s], and the last run."""
    seconds = []
    for _ in range(repeats):
        trajectory = run()
        seconds.append(trajectory.statistics["seconds"])
    return float(np.median(seconds)), trajectory


def drift(trajectory: sarrus.Trajectory) -> float:
    """Return the largest change of the energy [J]."""
    return float(np.abs(trajectory.energy - trajectory.energy[0]).max())


def rows(run: Run) -> list[Row]:
    """Measure all simulations with their goals; times of shortened runs are scaled to the full duration."""
    results, share, repeats = [], run.of(1.0, 0.1, 0.01), run.of(5, 3, 1)

    def runs(what: str, state: Any, method: Any, seconds: float, **options: Any) -> tuple[float, sarrus.Trajectory]:
        run.tell(what)
        return measured(lambda: sarrus.simulate(*state, share * seconds, method=method, **options), repeats)

    def step(seconds: float, trajectory: sarrus.Trajectory) -> float:
        return 1e6 * seconds / trajectory.statistics["steps"]

    state = crank_rocker()
    for method, name in (("rk4", "RK4"), ("semi_implicit", "semi-implicit Euler")):
        what = f"crank-rocker, {name}"
        seconds, trajectory = runs(what, state, method, 10.0)
        results += [
            Row(f"{what}: a step", step(seconds, trajectory), "µs"),
            Row(f"{what}: loop", float(trajectory.loop_error.max()), "m"),
            Row(f"{what}: energy", drift(trajectory), "J"),
        ]

    for name in ("delta", "stewart", "biped"):
        robot = getattr(sarrus.mechanisms, name)()
        q = robot.assemble()
        v = robot.project_velocity(q, np.random.default_rng(1).normal(size=robot.nv))
        what = f"{name}, a step of the implicit midpoint rule over one of RK4"
        run.tell(what)
        ratios = []
        for _ in range(repeats):  # alternate, because the ratio should not depend on other processes
            times = [
                sarrus.simulate(robot, q, v, share * 1.0, method=method).statistics["seconds"]
                for method in ("implicit_midpoint", "rk4")
            ]
            ratios.append(times[0] / times[1])
        results.append(Row(what, float(np.median(ratios)), "times"))

    what = "ladder(8) through its flat positions, RK4"
    seconds, trajectory = runs(what, ladder(8, 1.0), "rk4", 10.0)
    angles = trajectory.q * np.sign(trajectory.v[0])
    results += [
        Row(f"{what}: a step", step(seconds, trajectory), "µs"),
        Row(f"{what}: energy", drift(trajectory), "J"),
        Row(f"{what}: off the smooth branch", float(np.ptp(angles - angles[0], axis=1).max()), "rad"),
    ]

    count, some = run.of(1000, 200, 10), run.of(20, 10, 2)
    run.tell(f"{count} runs of the HSLM mechanism")
    robot = sarrus.mechanisms.hslm()
    rng = np.random.default_rng(0)
    home = np.broadcast_to(robot.assemble(), (count, robot.nq))
    starts = robot.project_configuration(robot.integrate(home, 1e-3 * rng.normal(size=(count, robot.nv))))
    rest, duration = np.zeros((count, robot.nv)), run.of(1.0, 1.0, 0.01)
    begun = time.perf_counter()
    for q in starts[:some]:
        sarrus.simulate(robot, q, rest[0], duration)
    one_by_one = (time.perf_counter() - begun) * count / some
    begun = time.perf_counter()
    status = sarrus.simulate_many(robot, starts, rest, duration, every=100, threads=2).status
    together = time.perf_counter() - begun
    assert not status.any()
    what = "many runs of the HSLM mechanism, two threads, over one by one"
    results.append(Row(what, one_by_one / together, "times", f"{count} runs of {duration:g} s"))

    what = "IFToMM A02, 40 four-bars"
    seconds, trajectory = runs(what, ladder(40, 1.0), "rk4", 20.0, dt=0.01)
    results += [Row(f"{what}: 20 s", seconds / share, "s"), Row(f"{what}: energy", drift(trajectory), "J")]

    what = "IFToMM A04, Bricard"
    robot = sarrus.mechanisms.bricard()
    seconds, trajectory = runs(what, (robot, robot.assemble(), np.zeros(robot.nv)), "rk4", 10.0, dt=0.005)
    return [*results, Row(f"{what}: 10 s", seconds / share, "s"), Row(f"{what}: energy", drift(trajectory), "J")]
