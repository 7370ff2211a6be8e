"""Runs side by side as jobs: here, on threads, and over the workers of an executor."""

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
from .._arrays import Array, NDArray
from .._core import Status
from . import setup
from .arguments import METHODS
from .limits import Record
from .setup import Ended, Setup

LANES = 8  # the most of any instruction set: in shares of whole packets each run meets the same neighbours as without
OFTEN = 64  # runs a thread after which somebody is told, or a file has them
SHARE = 2**22  # bytes at most that are sent to a worker at once: Dask warns of more than 10 MB

Rows = slice | NDArray[np.intp]
# which runs, what is kept of them, how they ended, and what they were watched for
Result = tuple[Rows, Array, Ended, Record]


class Executor(Protocol):
    """What takes jobs, as :class:`concurrent.futures.Executor` does."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Submitted: ...


class Submitted(Protocol):
    """What is asked of a :class:`concurrent.futures.Future`."""

    def result(self) -> Any: ...

    def cancel(self) -> Any: ...

    def done(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class Job:
    """What runs share: enough for a worker far away."""

    setup: Setup
    schedule: _core.Schedule
    threads: int

    def __call__(self, x: Array, parameters: Array) -> tuple[Array, Ended, Record]:
        """From states x (runs, size): those that are kept (runs, samples, size), how it ended (runs,), and what was seen."""
        return self.run(self.setup.core(), x, parameters, slice(None))

    def run(self, core: _core.Simulation, x: Array, parameters: Array, share: Rows) -> tuple[Array, Ended, Record]:
        """The same of a share of the runs, by a core that there is already: of thousands of laws one takes its time to make."""
        return core.run_many(x, parameters, self.setup.variants(share), self.schedule, self.threads)

    def of(self, share: Rows) -> Job:
        """For these runs alone."""
        return replace(self, setup=self.setup.of(share))


Work = Sequence[tuple[Rows, Job]]


def results(
    executor: Executor | None, work: Work, x: Array, parameters: Array, often: bool = False
) -> Generator[Result, None, None]:
    """Of shares of the runs, one after the other; `often`: of small ones."""
    if executor is not None:
        return _spread(executor, work, x, parameters)
    if len(work) > 1 and work[0][1].threads > 1:
        return _on_threads(work, x, parameters)
    return _here(work, x, parameters, OFTEN if often else setup.BLOCK)


def _here(work: Work, x: Array, parameters: Array, size: int) -> Generator[Result, None, None]:
    some: list[Result] = []  # of several mechanisms, which have few runs each
    count = 0
    try:
        for rows, job in work:
            core = job.setup.core()
            for share, _ in _cut([(rows, job)], size * job.threads):
                states, ended, record = job.run(core, x[share], parameters_of(parameters, share), share)
                some.append((share, states, ended, record))
                count += len(ended)
                if len(work) == 1 or count >= size or (ended == Status.INTERRUPTED).any():
                    yield _together(some)
                    some, count = [], 0
    except KeyboardInterrupt:
        if some:
            yield _together(some)
        raise
    if some:
        yield _together(some)


def _together(some: list[Result]) -> Result:
    if len(some) == 1:
        return some[0]
    rows, states, ended, records = zip(*some, strict=True)
    record = {name: np.concatenate([one[name] for one in records]) for name in records[0]}
    return np.concatenate(rows), np.concatenate(states), np.concatenate(ended), record


def _on_threads(work: Work, x: Array, parameters: Array) -> Generator[Result, None, None]:
    """Of mechanisms of which few runs are alike: some on each thread."""
    pool = _Threads(work[0][1].threads)
    try:
        yield from _spread(pool, [(rows, replace(job, threads=1)) for rows, job in work], x, parameters)
    finally:
        pool.stop()


class _Threads:
    """Threads that are stopped in the middle of their jobs, and for which nothing waits: neither Ctrl-C nor the interpreter's end."""

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
    """In shares that an executor's workers take; however it ends, none begins after that, and what is done by then is kept."""
    unit = 1 if not METHODS[work[0][1].setup.method].in_lanes else LANES
    size = -(-len(x) // (4 * _workers(executor)))  # some for each, as they are not equally fast
    size = max(1, min(size, SHARE // (8 * (x.shape[1] + parameters.shape[-1]))))
    jobs: deque[tuple[Rows, Submitted]] = deque()
    try:
        for share, job in _cut(work, -(-size // unit) * unit):
            jobs.append((share, executor.submit(job.of(share), x[share], parameters_of(parameters, share))))
        while jobs:
            share, submitted = jobs[0]
            result = submitted.result()
            jobs.popleft()  # with what it holds
            yield share, *result
    except KeyboardInterrupt:
        for share, submitted in jobs:
            if not submitted.cancel() and submitted.done():
                yield share, *submitted.result()
    finally:
        for _, submitted in jobs:
            submitted.cancel()


def _workers(executor: Executor) -> int:
    """How many jobs it does at once; 8 where it does not say."""
    count = getattr(executor, "_max_workers", None)
    client = getattr(executor, "_client", executor)  # Dask's
    if count is None and hasattr(client, "ncores"):
        count = sum(client.ncores().values())
    return count or 8


def _cut(work: Work, size: int) -> Iterator[tuple[Rows, Job]]:
    """Shares of runs of one mechanism."""
    for rows, job in work:
        runs = rows.stop if isinstance(rows, slice) else len(rows)
        for share in setup.shares(runs, size):
            yield share if isinstance(rows, slice) else rows[share], job


def parameters_of(parameters: Array, share: Rows | int) -> Array:
    return parameters[share] if parameters.ndim == 2 else parameters
