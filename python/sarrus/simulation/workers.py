"""Parallel runs as jobs, which are executed in this thread, on several threads, or by the workers of an executor; runs with a policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any, Protocol

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, real_array
from .._core import Status
from ..control.element import ForceElements
from ..errors import OF_MOTORS, ShapeError, StateError
from . import setup
from .setup import METHODS, Ended, Groups, Prepared, Record, Rows, Setup

# number of lanes in the largest SIMD packet of any instruction set. Groups of runs consist of full packets, so that each run always shares its
# packet with the same runs
LANES = 8
OFTEN = 64  # number of runs of each thread between reports of progress, or between writes to a file
SHARE = 2**22  # largest number of bytes sent to a worker at once: Dask warns about more than 10 MB

# indices of runs, their samples, statuses and records
Result = tuple[Rows, Array, Ended, Record]


class Executor(Protocol):
    """Methods of :class:`concurrent.futures.Executor` that are used here; results have the methods of :class:`concurrent.futures.Future`."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any: ...


def run_group(
    setup: Setup, schedule: _core.Schedule, threads: int, x: Array, parameters: Array, core: Any = None, share: Rows = slice(None)
) -> tuple[Array, Ended, Record]:  # fmt: skip
    """Simulate from states x (runs, size); return samples (runs, n, size), statuses (runs,) and records.

    `core`: the setup's Simulation, if there is one, because creating one with thousands of time functions takes time; `share`: indices of the runs
    among those of the setup.
    """
    core = setup.core() if core is None else core
    states, ended, record = core.run_many(x, parameters, setup.variants(share), schedule, threads)
    return states, ended, record


def results(
    executor: Executor | None, groups: Groups, schedule: _core.Schedule, threads: int, x: Array, parameters: Array, often: bool = False
) -> Generator[Result, None, None]:  # fmt: skip
    """Yield the results of groups of runs, one after another; with `often`, the groups are small."""
    if executor is not None:
        yield from _spread(executor, groups, schedule, threads, x, parameters)
    elif len(groups) > 1 and threads > 1:  # mechanisms with few runs each, side by side
        shares = list(_cut(groups, _size(groups, threads, x, parameters)))
        for some in (shares[k : k + 4 * threads] for k in range(0, len(shares), 4 * threads)):
            cores = {id(p): p.setup.core() for _, p in some}
            more = [(parameters_of(parameters, rows), p.setup.variants(rows)) for rows, p in some]
            jobs = [(cores[id(p)], x[rows], *rest) for (rows, p), rest in zip(some, more, strict=True)]
            for (rows, _), result in zip(some, _core.Simulation.run_groups(jobs, schedule, threads), strict=True):
                yield rows, *result
    else:
        for group in groups:
            of_group: Setup = group[1].setup
            core = of_group.core()
            for rows, _ in _cut([group], (OFTEN if often else setup.BLOCK) * threads):
                numbers = parameters_of(parameters, rows)
                yield rows, *run_group(of_group, schedule, threads, x[rows], numbers, core, rows)


def _size(groups: Groups, workers: int, x: Array, parameters: Array) -> int:
    """Return the number of runs in a share: four shares for each worker, because workers differ in speed."""
    unit = LANES if METHODS[groups[0][1].setup.method].in_lanes else 1
    size = max(1, min(-(-len(x) // (4 * workers)), SHARE // (8 * (x.shape[1] + parameters.shape[-1]))))
    return int(-(-size // unit) * unit)


def _spread(
    executor: Executor, groups: Groups, schedule: _core.Schedule, threads: int, x: Array, parameters: Array
) -> Generator[Result, None, None]:
    """Distribute groups of runs over an executor's workers.

    At the end or after an error, jobs that have not begun are cancelled, and the results of finished jobs are kept.
    """
    jobs: deque[tuple[Rows, Any]] = deque()
    try:
        for rows, p in _cut(groups, _size(groups, _workers(executor), x, parameters)):
            arguments = p.setup.of(rows), schedule, threads, x[rows], parameters_of(parameters, rows)
            jobs.append((rows, executor.submit(run_group, *arguments)))
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


def _cut(groups: Groups, size: int) -> Iterator[tuple[Rows, Prepared]]:
    """Yield shares of at most `size` runs of each group."""
    for rows, prepared in groups:
        for share in setup.shares(rows.stop if isinstance(rows, slice) else len(rows), size):
            yield share if isinstance(rows, slice) else rows[share], prepared


def parameters_of(parameters: Array, share: Rows | int) -> Array:
    return parameters[share] if parameters.ndim == 2 else parameters


# ---- runs with a policy, whose efforts along all velocities are passed to the core as the last parameters -----------------

EVER = 1e300  # [s] used with a minus sign as a time before all others, because the kernels do not support infinity
Policy = Callable[[float, Array, Array], ArrayLike]


def hold(forces: ForceElements, nv: int) -> None:
    """Add a force element with constant efforts (nv,), whose values :func:`set_efforts` sets before each step."""
    u = forces.add(np.zeros(nv))
    forces.terms.append({"kind": "EffortTable", "times": [-EVER], "motors": list(range(nv)), "u": u})


def set_efforts(parameters: Array, efforts: Array) -> None:
    parameters[..., -efforts.shape[-1] :] = efforts


def by_policy(
    groups: Groups, schedule: _core.Schedule, threads: int, x: Array, parameters: Array, policy: Policy, efforts: Array
) -> Result:
    """Simulate all runs step by step, and write the policy's efforts at each sample into `efforts` (runs, n, nv)."""
    each = [(np.arange(len(x))[rows], p.setup, p.setup.core()) for rows, p in groups]
    carried = each[0][2].carried(len(x))
    nq, nv = each[0][1].mechanism.nq, efforts.shape[-1]
    kept, ended = np.full((len(x), schedule.samples, x.shape[1]), np.nan), np.full(len(x), Status.FINISHED, np.int8)
    try:
        for k in range(schedule.steps):
            step, going = schedule.step(k), ended == Status.FINISHED
            t = step.start
            u = _checked_efforts(policy(t, x[:, :nq].copy(), x[:, nq : nq + nv].copy()), going, (len(x), nv), t)
            set_efforts(parameters, u)
            if k % schedule.every == 0:
                efforts[going, k // schedule.every] = u[going]
            for share, of_group, core in each:
                rows = share[going[share]]
                carries, variants = carried[rows], of_group.variants(rows)
                after, ended[rows], _ = core.run_many(x[rows], parameters[rows], variants, step, threads, carries)
                x[rows] = np.where((ended[rows] == Status.FINISHED)[:, None], after[:, 0], x[rows])
                carried[rows] = carries
            if (ended == Status.INTERRUPTED).any():
                break
            going = ended == Status.FINISHED
            if (k + 1) % schedule.every == 0 or k + 1 == schedule.steps:
                kept[going, -(-(k + 1) // schedule.every) - 1] = x[going]
                efforts[going, -1] = u[going]  # the efforts at the last sample are those of the step before it
    except KeyboardInterrupt:
        ended[ended == Status.FINISHED] = Status.INTERRUPTED
    return slice(None), kept, ended, each[0][2].records(carried)


def _checked_efforts(returned: ArrayLike, going: Any, shape: tuple[int, int], t: float) -> Array:
    """Return the efforts (runs, nv) of a policy, zero for failed runs."""
    efforts = real_array("the policy's return value", returned)
    if efforts.shape != shape:
        raise ShapeError(f"the policy returned shape {efforts.shape}; it must return {shape}{OF_MOTORS}")
    checked = np.zeros(shape)
    checked[going] = efforts[going]
    bad = np.flatnonzero(~np.isfinite(checked).all(axis=1))
    if len(bad):
        run = bad[0]
        raise StateError(f"the policy returned {checked[run]} for run {run} at t = {t:.9g} s; efforts must be finite")
    return checked
