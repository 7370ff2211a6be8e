"""Many parallel runs, compared with MuJoCo's rollout, on one thread each. ``python -m benchmarks --rollout``

Both libraries store every state of every run. In sarrus, the loop of the crank-rocker is closed up to rounding in every step; in MuJoCo it is an
equality constraint, which acts as a stiff spring.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import sarrus

from .simulation import crank_rocker
from .tables import Row, Run, installed

DT = 1e-3


def rows(run: Run) -> Iterator[Row]:
    """Measure steps per second, relative to MuJoCo."""
    runs, steps, repeats = run.of((256, 1000, 5), (64, 250, 3), (8, 20, 1))
    for name, (robot, q, v) in {"crank-rocker": crank_rocker(), "double pendulum": double_pendulum()}.items():
        # one configuration, with velocities from half of v to v
        starts = np.tile(q, (runs, 1)), np.linspace(0.5, 1.0, runs)[:, None] * v
        for method, kind in (("semi_implicit", "Euler"), ("rk4", "RK4")):
            run.tell(f"{name}, {method}")
            ours, theirs = runs * steps / fastest(sarrus_runs(robot, *starts, method, steps), repeats), None
            told = f"{runs} runs, one thread, {ours / 1e6:.3g} million steps/s"
            if installed("mujoco"):
                theirs = runs * steps / fastest(mujoco_runs(robot, *starts, kind, steps), repeats)
                told += f", mujoco.rollout {kind} {theirs / 1e6:.3g}"
            yield Row(f"{name}, {method}", theirs and ours / theirs, "times", told)


def double_pendulum() -> tuple[sarrus.Mechanism, np.ndarray, np.ndarray]:
    """Return a double pendulum and its initial state (q, v), half a radian from the hanging position."""
    return sarrus.mechanisms.double_pendulum(), np.array([0.5, 0.3]), np.array([1.0, -1.0])


def sarrus_runs(robot: sarrus.Mechanism, q: np.ndarray, v: np.ndarray, method: Any, steps: int) -> Callable[[], None]:
    """Return a function that simulates all runs by sarrus."""

    def run() -> None:
        assert not sarrus.simulate_many(robot, q, v, steps * DT, method=method, dt=DT).status.any()

    return run


def mujoco_runs(
    robot: sarrus.Mechanism, q: np.ndarray, v: np.ndarray, integrator: str, steps: int
) -> Callable[[], None]:
    """Return a function that simulates the same runs by mujoco.rollout."""
    import mujoco
    from mujoco import rollout

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", sarrus.ModelWarning)
        path = os.path.join(folder, "model.xml")
        robot.save(path, lossy=True)
        model = mujoco.MjModel.from_xml_path(path)
    model.opt.timestep, model.opt.integrator = DT, getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    data = mujoco.MjData(model)
    order = [model.joint(i).name for i in range(model.njnt)]
    qpos, qvel = sarrus.interop.to_mujoco_state(robot, q, v, joints=order)
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((len(q), mujoco.mj_stateSize(model, kind)))
    states[:, 1 : 1 + model.nq], states[:, 1 + model.nq : 1 + model.nq + model.nv] = qpos, qvel
    return lambda: rollout.rollout(model, data, initial_state=states, nstep=steps)


def fastest(run: Callable[[], None], repeats: int) -> float:
    """Return the shortest time [s] of several calls of `run`."""
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)
