"""Solution of linear equations whose coefficients are symbolic numbers of a :class:`~sarrus.generation.Recorder`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelError

if TYPE_CHECKING:
    from .._arrays import Array
    from .recorder import Numbers, Recorder

# pivots above this fraction of the best pivot are acceptable; of these, the one with the least fill-in is used
LARGE = 0.1
# rows without a pivot above this fraction of the largest entry are dependent (tolerances::negligible in the core)
DEPENDENT = 1e-9
# the generated code reports a pivot below this fraction of its smallest value in the samples, because the chosen order may be unsuitable
SMALL = 1e-3


def eliminated(recorder: Recorder, A: Numbers, b: Numbers) -> Numbers:
    """Solve A x = b, where A (m, n) has rank n in the samples, and b (m, ...) is in the span of its columns. Dependent rows of A are omitted."""
    x, N = solutions(recorder, A, b)
    if N.shape[1]:
        raise ModelError("these joints do not determine the configuration: name more joints")
    return x


def solutions(recorder: Recorder, A: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """Return x and N such that x + N y, for any y, are the solutions of A x = b. A may have any rank; y are the undetermined entries of x.

    The rank is the rank that most samples have, because a single sample, such as the home configuration, may be singular.
    """
    (m, n), shape = A.shape, b.shape[1:]
    A, b = A.copy(), b.reshape(m, math.prod(shape)).copy()
    rows, columns, pivots = list(range(m)), list(range(n)), []
    vanishes = DEPENDENT * _sizes(recorder, A).max(initial=0.0)
    # samples that are not singular so far; only these determine the pivots
    regular = np.ones(len(recorder._configurations), dtype=bool)
    while rows and columns:
        size = _sizes(recorder, A[np.ix_(rows, columns)])
        least = size[regular].min(axis=0)
        if least.max() <= vanishes:
            # a sample without a pivot is a singular position if other samples have one; the generated code reports such states by its status
            has_pivot = size > vanishes
            i, j = np.unravel_index(np.argmax(has_pivot[regular].sum(axis=0)), least.shape)
            remaining = regular & has_pivot[:, i, j]
            if 2 * remaining.sum() <= len(regular):
                break
            regular, least = remaining, size[remaining].min(axis=0)
        filled = size[regular].max(axis=0) > 0.0
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


def _sizes(recorder: Recorder, A: Numbers) -> Array:
    """Return the magnitudes (samples, rows, columns) of the entries. Entries that are not finite become zero, so that they are not pivots."""
    values = np.abs(recorder.values(A))
    return np.where(np.isfinite(values), values, 0.0)
