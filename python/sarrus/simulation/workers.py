"""Parallel runs as jobs, which are executed in this thread, on several threads, or by the workers of an executor; runs with a policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, real_array
from .._core import Status
from ..control.element import ForceElements
from ..errors import OF_MOTORS, ShapeError, StateError
from . import setup
from .setup import METHODS, Ended, Record, Setup

# number of lanes in a SIMD packet, the largest of any instruction set: groups of full packets, so that each run always has the same neighbours
LANES = 8
OFTEN = 64  # number of runs of each thread between reports of progress, or between writes to a file
SHARE = 2**22  # largest number of bytes sent to a worker at once: Dask warns about more than 10 MB

Rows = slice | NDArray[np.intp]
# indices of runs, their samples, statuses and records
Result = tuple[Rows, Array, Ended, Record]


class Executor(Protocol):
    """Methods of :class:`concurrent.futures.Executor` that are used here."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Submitted: ...


class Submitted(Protocol):
    """Methods of :class:`concurrent.futures.Future` that are used here."""

    def result(self) -> Any: ...

    def cancel(self) -> Any: ...

    def done(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class Job:
    """Shared data of runs, sufficient for a worker in another process."""

    setup: Setup
    schedule: _core.Schedule
    threads: int

    def __call__(self, x: Array, parameters: Array) -> tuple[Array, Ended, Record]:
        """Simulate from states x (runs, size); return samples (runs, n, size), statuses (runs,) and records."""
        return self.run(self.setup.core(), x, parameters, slice(None))

    def run(self, core: _core.Simulation, x: Array, parameters: Array, share: Rows) -> tuple[Array, Ended, Record]:
        """Simulate a group of the runs with an existing core Simulation, because creating one with thousands of time functions takes time."""
        return core.run_many(x, parameters, self.setup.variants(share), self.schedule, self.threads)

    def of(self, share: Rows) -> Job:
        """Return the job of a group of the runs."""
        return replace(self, setup=self.setup.of(share))


Work = Sequence[tuple[Rows, Job]]


def results(
    executor: Executor | None, work: Work, x: Array, parameters: Array, often: bool = False
) -> Generator[Result, None, None]:
    """Yield the results of groups of runs, one after another; with `often`, the groups are small."""
    if executor is not None:
        return _spread(executor, work, x, parameters)
    if len(work) > 1 and work[0][1].threads > 1:
        return _on_threads(work, x, parameters)
    return _in_this_thread(work, x, parameters, OFTEN if often else setup.BLOCK)


def _in_this_thread(work: Work, x: Array, parameters: Array, size: int) -> Generator[Result, None, None]:
    pending: list[Result] = []  # results of several mechanisms with few runs each, which are yielded together
    count = 0
    try:
        for rows, job in work:
            core = job.setup.core()
            for share, _ in _cut([(rows, job)], size * job.threads):
                states, ended, record = job.run(core, x[share], parameters_of(parameters, share), share)
                pending.append((share, states, ended, record))
                count += len(ended)
                if len(work) == 1 or count >= size or (ended == Status.INTERRUPTED).any():
                    yield _merged(pending)
                    pending, count = [], 0
    except KeyboardInterrupt:
        if pending:
            yield _merged(pending)
        raise
    if pending:
        yield _merged(pending)


def _merged(results: list[Result]) -> Result:
    if len(results) == 1:
        return results[0]
    rows, states, ended, records = zip(*results, strict=True)
    record = {name: np.concatenate([record[name] for record in records]) for name in records[0]}
    return np.concatenate(rows), np.concatenate(states), np.concatenate(ended), record


def _on_threads(work: Work, x: Array, parameters: Array) -> Generator[Result, None, None]:
    """Distribute mechanisms with few runs each over threads."""
    pool = _Threads(work[0][1].threads)
    try:
        yield from _spread(pool, [(rows, replace(job, threads=1)) for rows, job in work], x, parameters)
    finally:
        pool.stop()


class _Threads:
    """Executor whose threads can be stopped during a job, so that Ctrl-C and the exit of the interpreter do not wait for the job's end."""

    def __init__(self, count: int) -> None:
        self._max_workers, self._stopped = count, False
        self._jobs: SimpleQueue[tuple[Future[Any], Job, tuple[Any, ...]] | None] = SimpleQueue()
        self._running: set[_core.Simulation] = set()
        self._begun = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._jobs.put((future, cast(Job, fn), args))
        if self._begun < self._max_workers:
            self._begun += 1
            Thread(target=self._work, daemon=True).start()
        return future

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            future, job, args = item
            if self._stopped or not future.set_running_or_notify_cancel():
                continue
            try:
                core = job.setup.core()
                self._running.add(core)
                if self._stopped:
                    core.stop()
                future.set_result(job.run(core, args[0], args[1], slice(None)))
                self._running.discard(core)
            except BaseException as error:
                future.set_exception(error)

    def stop(self) -> None:
        self._stopped = True
        for core in list(self._running):
            core.stop()
        for _ in range(self._begun):
            self._jobs.put(None)


def _spread(executor: Executor, work: Work, x: Array, parameters: Array) -> Generator[Result, None, None]:
    """Distribute groups of runs over an executor's workers.

    At the end or after an error, jobs that have not begun are cancelled, and the results of finished jobs are kept.
    """
    unit = 1 if not METHODS[work[0][1].setup.method].in_lanes else LANES
    size = -(-len(x) // (4 * _workers(executor)))  # four groups for each worker, because workers differ in speed
    size = max(1, min(size, SHARE // (8 * (x.shape[1] + parameters.shape[-1]))))
    jobs: deque[tuple[Rows, Submitted]] = deque()
    try:
        for share, job in _cut(work, -(-size // unit) * unit):
            jobs.append((share, executor.submit(job.of(share), x[share], parameters_of(parameters, share))))
        while jobs:
            share, submitted = jobs[0]
            result = submitted.result()
            jobs.popleft()  # frees its memory
            yield share, *result
    except KeyboardInterrupt:
        for share, submitted in jobs:
            if not submitted.cancel() and submitted.done():
                yield share, *submitted.result()
    finally:
        for _, submitted in jobs:
            submitted.cancel()


def _workers(executor: Executor) -> int:
    """Return the number of an executor's workers; 8 if unknown."""
    count = getattr(executor, "_max_workers", None)
    client = getattr(executor, "_client", executor)  # Dask's
    if count is None and hasattr(client, "ncores"):
        count = sum(client.ncores().values())
    return count or 8


def _cut(work: Work, size: int) -> Iterator[tuple[Rows, Job]]:
    """Yield groups of at most `size` runs of each job."""
    for rows, job in work:
        runs = rows.stop if isinstance(rows, slice) else len(rows)
        for share in setup.shares(runs, size):
            yield share if isinstance(rows, slice) else rows[share], job


def parameters_of(parameters: Array, share: Rows | int) -> Array:
    return parameters[share] if parameters.ndim == 2 else parameters


# ---- runs with a policy, whose efforts along all velocities are passed to the core as the last parameters -----------------

SUMS = ("supplied", "apart", "pushed")  # fields of a record that are summed over the steps
EVER = 1e300  # [s] used with a minus sign as a time before all others, because the kernels do not support infinity
Policy = Callable[[float, Array, Array], ArrayLike]


def hold(forces: ForceElements, nv: int) -> None:
    """Add a force element with constant efforts (nv,), whose values :func:`set_efforts` sets before each step."""
    u = forces.add(np.zeros(nv))
    forces.terms.append({"kind": "EffortTable", "times": [-EVER], "motors": list(range(nv)), "u": u})


def set_efforts(parameters: Array, efforts: Array) -> None:
    parameters[..., -efforts.shape[-1] :] = efforts


def by_policy(work: Work, x: Array, parameters: Array, policy: Policy, efforts: Array) -> Result:
    """Simulate all runs step by step, and write the policy's efforts at each sample into `efforts` (runs, n, nv)."""
    each_setup, clock = work[0][1].setup, work[0][1].schedule
    each = [(np.arange(len(x))[rows], job.setup.core(), job.threads) for rows, job in work]
    nq, nv = each_setup.mechanism.nq, each_setup.mechanism.nv
    kept = np.full((len(x), clock.samples, x.shape[1]), np.nan)
    ended = np.full(len(x), Status.FINISHED, np.int8)
    record = {name: np.repeat(initial, len(x), axis=0) for name, initial in each[0][1].record.items()}
    going = np.ones(len(x), bool)
    try:
        for k in range(clock.steps):
            step = clock.step(k)
            t = step.start
            u = _checked_efforts(policy(t, x[:, :nq].copy(), x[:, nq : nq + nv].copy()), going, (len(x), nv), t)
            set_efforts(parameters, u)
            if k % clock.every == 0:
                efforts[going, k // clock.every] = u[going]
            for share, core, threads in each:
                rows = share[going[share]]
                if not rows.size:
                    continue
                after, ended[rows], increments = core.run_many(
                    x[rows], parameters[rows], each_setup.variants(rows), step, threads
                )
                x[rows] = np.where((ended[rows] == Status.FINISHED)[:, None], after[:, 0], x[rows])
                for name, value in increments.items():
                    before = record[name][rows]
                    larger = value < before if name == "left_at" else np.abs(value) > np.abs(before)
                    record[name][rows] = before + value if name in SUMS else np.where(larger, value, before)
            going = ended == Status.FINISHED
            if (k + 1) % clock.every == 0 or k + 1 == clock.steps:
                kept[going, -(-(k + 1) // clock.every) - 1] = x[going]
                efforts[going, -1] = u[going]  # the efforts at the last sample are those of the step before it
            if (ended == Status.INTERRUPTED).any():
                break
    except KeyboardInterrupt:
        ended[going] = Status.INTERRUPTED
    return slice(None), kept, ended, record


def _checked_efforts(returned: ArrayLike, going: Any, shape: tuple[int, int], t: float) -> Array:
    """Return the efforts (runs, nv) of a policy, zero for failed runs."""
    efforts = real_array("the policy's return value", returned)
    if efforts.shape != shape:
        raise ShapeError(f"the policy returned shape {efforts.shape}; it must return {shape}{OF_MOTORS}")
    checked = np.zeros(shape)
    checked[going] = efforts[going]
    bad = np.flatnonzero(~np.isfinite(checked).all(axis=1))
    if len(bad):
        raise StateError(
            f"the policy returned {checked[bad[0]]} for run {bad[0]} at t = {t:.9g} s; efforts must be finite"
        )
    return checked
