"""Many simulations side by side: in the lanes of a core, on threads, and over processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from .control import Element, acting
from .errors import ModelError, ShapeError
from .mechanism import Mechanism
from .run import GAINS, METHODS, STABILISATIONS, check_choice, has_functions_of_q
from .state import Array

Many = tuple[Array, Array, Array, Any]  # t, q, v, status

__all__ = ["simulate_many"]


def simulate_many(
    mechanism: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    controller: Element | Sequence[Element] | None = None,
    *,
    method: str = "rk4",
    dt: float = 1e-3,
    stabilisation: str = "projection",
    gains: tuple[float, float] | None = None,
    every: int = 1,
    start: float = 0.0,
    threads: int = 1,
    executor: Any = None,
) -> Many:
    """Many runs side by side, several in the lanes of a processor's core and some on each thread.

    Parameters
    ----------
    q, v : (runs, nq), (runs, nv), or one of them for all; where there are loops they are brought onto them
    controller : elements of :mod:`sarrus.control`, whose numbers may be arrays (runs,)
    method : one with fixed steps; "implicit_midpoint" and "independent" run one after the other on each thread
    every : keep the state after every so many steps
    threads : how many work on it; the answer does not depend on it
    executor : a :class:`concurrent.futures.Executor`, or what acts as one (``dask.distributed.Client.get_executor()``): shares of the
        runs are its jobs

    Returns
    -------
    t (n,), q (runs, n, nq), v (runs, n, nv), status (runs,) int8: 0, or why a run ended early; it is NaN from there on
        (1 unsound state, 3 contradictory constraints, 5 no convergence, 6 diverged)

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> t, q, v, status = sarrus.simulate_many(robot, np.linspace(0.1, 0.4, 4)[:, None], [0.0], 1.0, every=100)
    >>> q.shape, int(status.max())
    ((4, 11, 1), 0)
    """
    check_choice("method", method, METHODS)
    check_choice("stabilisation", stabilisation, STABILISATIONS)
    if method == "dopri5":
        raise ValueError("simulate_many() takes fixed steps: 'dopri5' decides on its own steps for each state")
    if threads < 1 or every < 1:
        raise ValueError(f"threads and every must be at least 1; got {threads} and {every}")
    if has_functions_of_q(mechanism):
        raise ModelError("Pfaffian rows that are Python functions cannot run side by side: use simulate()")
    given: Any = controller
    elements = list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]
    if any(callable(c) for c in elements):
        raise TypeError("simulate_many() takes elements of sarrus.control; a Python function runs in simulate()")
    parts = acting(mechanism, elements)
    parameters = parts.parameters
    q, v = np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64)
    if q.shape[-1:] != (mechanism.nq,) or v.shape[-1:] != (mechanism.nv,) or q.ndim > 2 or v.ndim > 2:
        raise ShapeError(
            f"q and v must be (runs, {mechanism.nq}) and (runs, {mechanism.nv}); got {q.shape} and {v.shape}"
        )
    runs = max(
        q.shape[0] if q.ndim == 2 else 1,
        v.shape[0] if v.ndim == 2 else 1,
        len(parameters) if parameters.ndim == 2 else 1,
    )
    try:
        q, v = np.broadcast_to(q, (runs, mechanism.nq)), np.broadcast_to(v, (runs, mechanism.nv))
        if parameters.ndim == 2:
            parameters = np.ascontiguousarray(np.broadcast_to(parameters, (runs, parameters.shape[1])))
    except ValueError:
        raise ShapeError(f"q {q.shape}, v {v.shape} and numbers {parameters.shape} are not equally many runs") from None
    everything = (
        mechanism, q, v, duration, (parts.terms, parts.memory, parameters), method, dt, stabilisation, gains, every, start, threads,
    )  # fmt: skip
    return _side_by_side(*everything) if executor is None else _spread(executor, *everything)


def _side_by_side(
    mechanism: Mechanism, q: Array, v: Array, duration: float, parts: tuple[Any, int, Array], method: str, dt: float,
    stabilisation: str, gains: tuple[float, float] | None, every: int, start: float, threads: int,
) -> Many:  # fmt: skip
    terms, memory, parameters = parts
    runs, nq, nv = len(q), mechanism.nq, mechanism.nv
    core = _core.Simulation(
        mechanism, METHODS[method], STABILISATIONS[stabilisation], gains or GAINS.get(stabilisation, (0.0, 0.0)), terms, None, None
    )  # fmt: skip
    q, unsound = mechanism.normalize(q, return_status=True)
    unsound = (unsound != 0) | ~np.isfinite(v).all(axis=1)
    q, v = np.where(unsound[:, None], mechanism.neutral(), q), np.where(unsound[:, None], 0.0, v)
    if mechanism.nc and stabilisation != "none":
        q = mechanism.project_configuration(q, time=start, threads=threads)
        v, off = mechanism.project_velocity(q, v, time=start, threads=threads, return_status=True)
        unsound |= off != 0
        v = np.where(unsound[:, None], 0.0, v)
    steps = int(np.floor(duration / dt * (1.0 + 1e-14) + 1e-9))
    x = np.ascontiguousarray(np.concatenate([q, v, np.zeros((runs, memory))], axis=1))
    samples = -(-steps // every)
    out = np.empty((runs, samples + 1, core.size))
    out[:, 0] = x
    kept = np.empty((runs, samples, core.size))
    status = core.run_many(x, parameters, start, dt, steps, every, kept, threads)
    out[:, 1:] = kept
    status[unsound] = 1
    out[unsound] = np.nan
    t = start + np.minimum(np.arange(samples + 1) * every, steps) * dt
    return t, out[..., :nq], out[..., nq : nq + nv], status


def _spread(
    executor: Any,
    mechanism: Mechanism,
    q_of_all: Array,
    v_of_all: Array,
    duration: float,
    parts: tuple[Any, int, Array],
    *rest: Any,
) -> Many:
    """The same, in shares that an executor's workers take."""
    terms, memory, parameters = parts
    workers = getattr(executor, "_max_workers", None) or 8
    shares = np.array_split(np.arange(len(q_of_all)), min(len(q_of_all), 4 * workers))
    jobs = [
        executor.submit(
            _side_by_side, mechanism, q_of_all[share], v_of_all[share], duration,
            (terms, memory, parameters[share] if parameters.ndim == 2 else parameters), *rest,
        )
        for share in shares
    ]  # fmt: skip
    done = [job.result() for job in jobs]
    q, v, status = (np.concatenate([share[k] for share in done]) for k in (1, 2, 3))
    return done[0][0], q, v, status
