"""Parallel runs with a policy, whose efforts along all velocities are passed to the core as the last parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, real_array
from .._core import Status
from ..control.element import ForceElements
from ..errors import OF_MOTORS, ShapeError, StateError
from .workers import Result, Work

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
    setup, clock = work[0][1].setup, work[0][1].schedule
    each = [(np.arange(len(x))[rows], job.setup.core(), job.threads) for rows, job in work]
    nq, nv = setup.mechanism.nq, setup.mechanism.nv
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
                    x[rows], parameters[rows], setup.variants(rows), step, threads
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
