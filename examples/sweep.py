"""A sweep over gains: the HSLM mechanism rises by 0.25 m with many pairs of gains, on threads and in several processes.

One call simulates all runs; each core computes several runs at once in its SIMD lanes. An executor distributes the runs over processes; an
executor of Dask distributes them over machines:

    from dask.distributed import Client

    with Client("tcp://scheduler:8786") as client:  # or Client(): all cores of this machine
        runs = rise(robot, kp, kd, 1.0, client.get_executor())
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import Executor, ProcessPoolExecutor
from time import perf_counter

import numpy as np
from hslm import GAINS, LEGS, leg_at
from showing import Panel, Path, command_line, figure, table

import sarrus
from sarrus.control import PID, FeedforwardEffort

STIFFNESS = np.array([400.0, 800.0, 1600.0, 3200.0])  # proportional gains; the thesis has 800
DAMPING = np.linspace(20.0, 200.0, 37)  # derivative gains; the thesis has 50
BAND = 0.01  # tolerance of the final height [m]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def rise(
    robot: sarrus.Mechanism, proportional: np.ndarray, derivative: np.ndarray, duration: float, executor: Executor | None = None
) -> tuple[sarrus.results.Sweep, float]:  # fmt: skip
    """Simulate all runs from rest, with slide forces that balance the weight; return the runs, and the wall time [s]."""
    home, rest = robot.assemble(), np.zeros(robot.nv)
    slides = [f"slide{k}" for k in LEGS]
    weight = robot.actuator_efforts(home, rest, rest, actuated=slides)
    length, angle = leg_at(0.25)
    numbers = {"proportional": proportional, "integral": GAINS["integral"], "derivative": derivative}
    drives = [FeedforwardEffort(name, float(effort)) for name, effort in zip(slides, weight, strict=True)]
    drives += [PID(f"slide{k}", target=length, **numbers) for k in LEGS]
    drives += [PID(f"pitch{k}", target=angle, **numbers) for k in LEGS]
    threads = CORES if executor is None else 1
    begun = perf_counter()
    runs = sarrus.simulate_many(robot, home, rest, duration, drives, every=10, threads=threads, executor=executor)
    return runs, perf_counter() - begun


def main(output: Path | None = None, duration: float = 4.0) -> dict[str, float]:
    """Compute the sweep on threads and in processes, compare the results, draw figures."""
    robot = sarrus.mechanisms.hslm()
    kp, kd = (x.ravel() for x in np.meshgrid(STIFFNESS, DAMPING, indexing="ij"))
    runs, on_threads = rise(robot, kp, kd, duration)
    with ProcessPoolExecutor(CORES, mp_context=multiprocessing.get_context("spawn")) as pool:
        again, over_processes = rise(robot, kp, kd, duration, pool)

    height = robot.pose(runs.q, "reference")[..., 1, 3].reshape(len(STIFFNESS), len(DAMPING), -1)
    overshoot = 1e3 * (height.max(axis=-1) - 0.25)
    outside = np.abs(height - 0.25) > BAND
    settled = np.where(outside, runs.t, 0.0).max(axis=-1)
    thesis = STIFFNESS.tolist().index(GAINS["proportional"]), int(np.abs(DAMPING - GAINS["derivative"]).argmin())
    best = np.unravel_index(settled.argmin(), settled.shape)
    results = {
        "runs": len(runs.status),
        "failed": np.count_nonzero(runs.status),
        "difference": np.abs(again.q - runs.q).max(),
        "overshoot": overshoot[thesis],
        "settled": settled[thesis],
        "soonest": settled[best],
    }
    table(
        f"{results['runs']} runs of {duration:g} s",
        ["sarrus"],
        [
            ("runs that failed", (results["failed"],)),
            (f"wall time on {CORES} threads [s]", (on_threads,)),
            (f"wall time in {CORES} processes, with their start [s]", (over_processes,)),
            ("difference between threads and processes", (results["difference"],)),
            ("gains of the thesis: overshoot [mm]", (results["overshoot"],)),
            (f"gains of the thesis: error below {1e3 * BAND:g} mm after [s]", (results["settled"],)),
            (f"best gains, {STIFFNESS[best[0]]:g} and {DAMPING[best[1]]:g}: after [s]", (results["soonest"],)),
        ],
    )
    shown = {"thesis: 800, 50": thesis, f"{STIFFNESS[best[0]]:g}, {DAMPING[best[1]]:g}": best}
    figure(
        "HSLM mechanism: choice of gains",
        [
            Panel("Overshoot", "mm", DAMPING, _by_stiffness(overshoot), "derivative gain [N s/m]"),
            Panel(
                f"Time until the error stays below {1e3 * BAND:g} mm",
                "time [s]",
                DAMPING,
                _by_stiffness(settled),
                "derivative gain [N s/m]",
            ),
            Panel("Rise by 0.25 m", "height [m]", runs.t, {name: height[at] for name, at in shown.items()}),
        ],
        output,
    )
    return results


def _by_stiffness(values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{k:g} N/m": row for k, row in zip(STIFFNESS, values, strict=True)}


if __name__ == "__main__":
    command_line(main)
