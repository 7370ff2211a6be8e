"""Many runs side by side beside MuJoCo's rollout, one thread each. ``python -m benchmarks --rollout``

Both keep every state of every run. The crank-rocker's loop is closed to rounding in every step of sarrus; in MuJoCo it is an equality
constraint, a stiff spring.
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

from .simulation import Row, crank_rocker

RUNS, STEPS, DT, REPEATS = 256, 1000, 1e-3, 5


def rows(tell: Callable[[str], None]) -> Iterator[Row]:
    """How many times as many steps a second as MuJoCo."""
    for name, state in {"crank-rocker": crank_rocker(), "double pendulum": double_pendulum()}.items():
        for method, kind in (("semi_implicit", "Euler"), ("rk4", "RK4")):
            ours, theirs = fastest(sarrus_runs(*state, method)), fastest(mujoco_runs(*state, kind))
            told = f"{method} {ours / 1e6:.2f}, mujoco.rollout {kind} {theirs / 1e6:.3f} million steps/s"
            tell(f"{name}: {told}")
            yield Row(f"{name}, {RUNS} runs, one thread", f"times as fast: {told}", ours / theirs, 10.0, at_least=True)


def double_pendulum() -> tuple[sarrus.Mechanism, np.ndarray, np.ndarray]:
    """Raised by half a radian."""
    return sarrus.mechanisms.double_pendulum(), np.array([0.5, 0.3]), np.array([1.0, -1.0])


def starts(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From one place, at half the speed to the whole."""
    return np.tile(q, (RUNS, 1)), np.linspace(0.5, 1.0, RUNS)[:, None] * v


def sarrus_runs(robot: sarrus.Mechanism, q: np.ndarray, v: np.ndarray, method: Any) -> Callable[[], None]:
    """All of them."""
    q, v = starts(q, v)

    def run() -> None:
        assert not sarrus.simulate_many(robot, q, v, STEPS * DT, method=method, dt=DT).status.any()

    return run


def mujoco_runs(robot: sarrus.Mechanism, q: np.ndarray, v: np.ndarray, integrator: str) -> Callable[[], None]:
    """The same states of the same mechanism, as MuJoCo has them."""
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
    qpos, qvel = sarrus.interop.to_mujoco(robot, *starts(q, v), joints=order)
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((RUNS, mujoco.mj_stateSize(model, kind)))
    states[:, 1 : 1 + model.nq], states[:, 1 + model.nq : 1 + model.nq + model.nv] = qpos, qvel
    return lambda: rollout.rollout(model, data, initial_state=states, nstep=STEPS)


def fastest(run: Callable[[], None]) -> float:
    """Steps a second."""
    seconds = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begun)
    return RUNS * STEPS / min(seconds)
