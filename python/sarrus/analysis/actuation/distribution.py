"""Redundant motors within their limits: a small quadratic programme, solved by the core."""

from __future__ import annotations

import numpy as np

from ... import _core
from ..._arrays import Array

ROUNDING = 1e-10  # by which limits may be missed, relative to the largest effort or limit
FAR = 1e30  # no limit


def within_limits(u: Array, moves: Array, lower: Array, upper: Array) -> tuple[Array, float]:
    """Efforts u + moves y (nu,) between the limits, of least |y|, and by how much the limits must be missed (then of least violation).

    `moves` (nu, k) are the directions in which the efforts may be changed.
    """
    k = moves.shape[1]
    low, high = np.maximum(lower - u, -FAR), np.minimum(upper - u, FAR)
    known = np.concatenate([u, lower, upper])
    slack = ROUNDING * float(np.abs(known[np.isfinite(known)]).max(initial=0.0))
    if k and not ((low > slack) | (high < -slack)).any():
        return np.clip(u, lower, upper), 0.0
    if k:
        flag, _, force = _core.quadratic_programme(np.eye(k), np.zeros(k), moves, low - 0.5 * slack, high + 0.5 * slack)
        if flag > 0:
            holds = np.abs(force) > 1e-9 * np.abs(force).max()
            ends = np.where(force > 0.0, high, low)
            y = np.linalg.lstsq(moves[holds], ends[holds], rcond=1e-12)[0]  # with all digits
            return np.clip(u + moves @ y, lower, upper), 0.0
    # the least violation t of any y: |y| counts next to nothing beside it
    little = 1e-4
    one, far = np.ones((len(u), 1)), np.full(len(u), FAR)
    C = np.concatenate([np.hstack([moves / little, one]), np.hstack([moves / little, -one])])
    _, y_and_t, _ = _core.quadratic_programme(
        np.eye(k + 1), np.zeros(k + 1), C, np.concatenate([low, -far]), np.concatenate([far, high])
    )
    t = float(y_and_t[-1])
    reached = u + moves @ (y_and_t[:-1] / little)
    return (np.clip(reached, lower, upper), 0.0) if t <= slack else (reached, t)
