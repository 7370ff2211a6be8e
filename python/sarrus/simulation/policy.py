"""Runs side by side by a policy: efforts of all velocities, which stand at the end of the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, real_array
from .._core import Status
from ..control.element import ForceElements
from ..errors import OF_MOTORS, ShapeError, StateError
from .workers import Result, Work

SUMS = ("supplied", "apart", "pushed")  # of a record
EVER = 1e300  # before all times: kernels know no infinity
Policy = Callable[[float, Array, Array], ArrayLike]


def hold(forces: ForceElements, nv: int) -> None:
    """What it asks for acts at all times, whatever its last value."""
    u = forces.add(np.zeros(nv))
    forces.terms.append({"kind": "EffortTable", "times": [-EVER], "motors": list(range(nv)), "u": u})


def set_efforts(parameters: Array, efforts: Array) -> None:
    parameters[..., -efforts.shape[-1] :] = efforts


def by_policy(work: Work, x: Array, parameters: Array, policy: Policy, efforts: Array) -> Result:
    """All runs step by step; what the policy asks for at each state that is kept is written into efforts (runs, n, nv)."""
    setup, clock = work[0][1].setup, work[0][1].schedule
    each = [(np.arange(len(x))[rows], job.setup.core(), job.threads) for rows, job in work]
    nq, nv = setup.mechanism.nq, setup.mechanism.nv
    kept = np.full((len(x), clock.samples, x.shape[1]), np.nan)
    ended = np.full(len(x), Status.FINISHED, np.int8)
    record = {name: np.repeat(one, len(x), axis=0) for name, one in each[0][1].record.items()}
    going = np.ones(len(x), bool)
    try:
        for k in range(clock.steps):
            step = clock.step(k)
            t = step.start
            held = _answer(policy(t, x[:, :nq].copy(), x[:, nq : nq + nv].copy()), going, (len(x), nv), t)
            set_efforts(parameters, held)
            if k % clock.every == 0:
                efforts[going, k // clock.every] = held[going]
            for of_one, core, threads in each:
                rows = of_one[going[of_one]]
                if not rows.size:
                    continue
                now, ended[rows], seen = core.run_many(x[rows], parameters[rows], setup.variants(rows), step, threads)
                x[rows] = np.where((ended[rows] == Status.FINISHED)[:, None], now[:, 0], x[rows])
                for name, of_step in seen.items():
                    before = record[name][rows]
                    larger = of_step < before if name == "left_at" else np.abs(of_step) > np.abs(before)
                    record[name][rows] = before + of_step if name in SUMS else np.where(larger, of_step, before)
            going = ended == Status.FINISHED
            if (k + 1) % clock.every == 0 or k + 1 == clock.steps:
                kept[going, -(-(k + 1) // clock.every) - 1] = x[going]
                efforts[going, -1] = held[going]  # of the last state, that which led there
            if (ended == Status.INTERRUPTED).any():
                break
    except KeyboardInterrupt:
        ended[going] = Status.INTERRUPTED
    return slice(None), kept, ended, record


def _answer(returned: ArrayLike, going: Any, shape: tuple[int, int], t: float) -> Array:
    """Efforts (runs, nv) of a policy, zero for runs that have failed."""
    efforts = real_array("what the policy returned", returned)
    if efforts.shape != shape:
        raise ShapeError(f"the policy returned shape {efforts.shape}; it must return {shape}{OF_MOTORS}")
    answer = np.zeros(shape)
    answer[going] = efforts[going]
    bad = np.flatnonzero(~np.isfinite(answer).all(axis=1))
    if len(bad):
        raise StateError(
            f"the policy returned {answer[bad[0]]} for run {bad[0]} at t = {t:.9g} s; efforts must be finite"
        )
    return answer
