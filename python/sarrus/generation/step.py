"""Recorded steps of a simulation: symbolic numbers of the next state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._arrays import checked_count, checked_number
from ..errors import ModelError, check_choice
from .recorder import Numbers, Recorder, eliminated, solutions

METHODS = ("semi_implicit",)


def recorded_step(
    recorder: Recorder, *, dt: float, method: str = "semi_implicit", elements: Sequence[Any] = (), substeps: int = 1,
    corrections: int = 2,
) -> Mapping[str, Numbers]:  # fmt: skip
    """Record a step of a simulation, of inputs `q`, `v`, `z`, `tau` (efforts along all velocities) and `time`, as far as the step uses them.

    The results are `q` and `v` (nq,), (nv,), the internal states `z` of the elements, and `residual` (2,): the largest residuals of the loops in
    position (relative to the size) and in velocity.

    Parameters
    ----------
    recorder : recorder of the mechanism
    dt : length of the step [s]
    method : "semi_implicit"
    elements : force elements
    substeps : number of equal parts of the step
    corrections : number of projections onto the loops
    """
    check_choice("method", method, METHODS)
    if elements:
        raise ModelError("steps with force elements are not recorded yet")
    checked_number("dt", dt)
    checked_count("substeps", substeps, most=1000)
    checked_count("corrections", corrections, most=100)
    r, robot = recorder, recorder.robot
    q, v, tau, h = r.q, r.v, r.tau, dt / substeps
    time = r._time()
    residual = np.array([r.constant(0.0)] * 2, dtype=object)
    for _ in range(substeps):
        begin = q
        v = v + h * r.call("forward_dynamics", q, v, tau, time)
        q = r.call("integrate", begin, v * h)
        time = None if time is None else time + h
        if robot.constraints:
            change = 0.0
            for _ in range(corrections):
                least = _least_motion(r, q, -r._rows("constraint_residual", q, time))
                q, change = r.call("integrate", q, least), change + least
            v = v + change / h
            phi = r._rows("constraint_residual", q, time) * r._loops.row_scale
            slip = (r._rows("constraint_jacobian", q, time) @ v) * r._loops.row_scale
            residual = np.array([_largest(phi), _largest(slip)], dtype=object)
    return {"q": q, "v": v, "z": np.zeros(0, dtype=object), "residual": residual}


def _least_motion(r: Recorder, q: Numbers, change: Numbers) -> Numbers:
    """Return the motion that changes the rows by `change`, least in the metric of the mass matrix."""
    J, M = r._rows("constraint_jacobian", q, r._time()), r.call("mass_matrix", q)
    x, N = solutions(r, J, change)
    return x - N @ eliminated(r, N.T @ M @ N, N.T @ M @ x)


def _largest(x: Numbers) -> Numbers:
    largest = np.sqrt(x[0] * x[0])
    for each in x[1:]:
        largest = largest.larger(np.sqrt(each * each))
    return largest
