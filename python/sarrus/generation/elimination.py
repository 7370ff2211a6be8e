"""Linear equations between numbers that are not known yet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelError

if TYPE_CHECKING:
    from .recorder import Numbers, Recorder

LARGE = 0.1  # of the best pivot: so much is good enough, and the one that fills in least is taken
DEPENDENT = 1e-9  # of the largest entry: rows with no larger pivot say nothing new (tolerances::negligible)
SMALL = 1e-3  # of a pivot in the samples: what is smaller in use is unlike them


def eliminated(recorder: Recorder, A: Numbers, b: Numbers) -> Numbers:
    """x with A x = b, A (m, n) of rank n in the samples and b (m, ...) a sum of its columns; rows that depend on others are left out."""
    x, N = solutions(recorder, A, b)
    if N.shape[1]:
        raise ModelError("the loops leave motions free while these joints are held: hold more of them")
    return x


def solutions(recorder: Recorder, A: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """All x + N y with A x = b, whatever y: as `eliminated`, where A may be of a smaller rank; y are those entries that the others depend on."""
    (m, n), shape = A.shape, b.shape[1:]
    A, b = A.copy(), b.reshape(m, math.prod(shape)).copy()
    rows, columns, pivots = list(range(m)), list(range(n)), []
    largest = np.abs(recorder.values(A)).max(initial=0.0)
    while columns:
        size = np.abs(recorder.values(A[np.ix_(rows, columns)]))  # (samples, rows, columns)
        least, filled = size.min(axis=0), size.max(axis=0) > 0.0
        if not rows or least.max() <= DEPENDENT * largest:
            break
        cost = np.outer(filled.sum(axis=1) - 1, filled.sum(axis=0) - 1) + 1e9 * (least < LARGE * least.max())
        i, j = np.unravel_index(np.argmin(cost), cost.shape)
        r, c = rows.pop(i), columns.pop(j)
        recorder.assume(A[r, c], SMALL * least[i, j])
        pivots.append((r, c))
        for other in rows:
            factor = A[other, c] / A[r, c]
            A[other, columns] -= factor * A[r, columns]
            b[other] -= factor * b[r]
    b = np.hstack([b, -A[:, columns]])
    x = np.full((n, b.shape[1]), recorder.constant(0.0), dtype=object)
    x[columns, range(-len(columns), 0)] = recorder.constant(1.0)
    for k, (r, c) in reversed(list(enumerate(pivots))):
        later = [column for _, column in pivots[k + 1 :]]
        x[c] = (b[r] - A[r, later] @ x[later] if later else b[r]) / A[r, c]
    free = b.shape[1] - len(columns)
    return x[:, :free].reshape(n, *shape), x[:, free:]
