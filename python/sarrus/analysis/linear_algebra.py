"""Linear algebra of many matrices at once: what solves equations whose rows may depend on one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array, NDArray, common_axes, real_array
from .._showing import Brief
from ..errors import ShapeError, StateError

NEGLIGIBLE = 1e-9  # singular values below this part of the largest are zero: loops are seldom closed better


@dataclass(frozen=True, eq=False, repr=False)
class FreeMotions(Brief):
    """The solutions of J x = g: x = inverse g + basis y with any y.

    Attributes
    ----------
    basis : N (..., nv, freedom), orthonormal columns; where states of a batch differ, as many columns as the most needs, which are zero
        after a state's own
    freedom : (...) how many there are; -1 where J is not finite
    inverse : the pseudo-inverse of J, (..., nv, nc)
    """

    basis: Array
    freedom: Array
    inverse: Array

    def same_freedom(self) -> int:
        """Their number, where it is one for all states; StateError otherwise."""
        return same_freedom(self.freedom[self.freedom >= 0])

    def constrained_inverse(self, M: Array) -> Array:
        """N (N^T M N)^-1 N^T (..., nv, nv): accelerations per generalised force of what M is the mass matrix of."""
        N, M = self.basis, real_array("M", M)
        if M.ndim < 2 or M.shape[-2:] != (N.shape[-2],) * 2:
            raise ShapeError(f"M has shape {M.shape}; its last axes must be (nv, nv) = {(N.shape[-2],) * 2}")
        # in units in which the masses of all velocities are one: rounding of the heavy ones is nothing beside the light ones
        units = np.sqrt(np.maximum(np.diagonal(M, axis1=-2, axis2=-1), 0.0))
        units = np.where(units > 0.0, units, 1.0)[..., None]
        N, present = orthonormal(units * N)
        reduced = transposed(N) @ (M / units / transposed(units)) @ N + (1.0 - present)[..., None] * np.eye(N.shape[-1])
        try:
            return np.asarray(N @ np.linalg.solve(reduced, transposed(N)) / units / transposed(units))
        except np.linalg.LinAlgError:
            raise StateError("there is a motion that the constraints allow and that moves nothing with mass") from None


def same_freedom(known: NDArray[Any]) -> int:
    """The number of freedoms that states have in common; StateError where they differ."""
    if known.size and known.min() < known.max():
        raise StateError(
            f"these states have from {known.min()} to {known.max()} degrees of freedom, so that one array cannot "
            "hold what belongs to them: ask for each by itself"
        )
    return int(known.max(initial=0))


def orthonormal(basis: Array) -> tuple[Array, Array]:
    """The same spaces (..., n, k) by orthonormal columns, those that are zero last, and which are not (..., k)."""
    present = np.asarray(np.isfinite(basis).all(axis=-2) & basis.any(axis=-2))
    clean = np.where(np.isfinite(basis), basis, 0.0)
    Q = np.linalg.qr(clean)[0]
    sound = np.isfinite(basis).all(axis=(-2, -1), keepdims=True)
    return np.where(sound, Q * present[..., None, :], np.nan), present.astype(np.float64)


def transposed(A: Array) -> Array:
    """The matrices with their last two axes exchanged."""
    return np.swapaxes(A, -1, -2)


def applied(A: Array, x: Array) -> Array:
    """A x of matrices (..., m, n) and vectors (..., n); leading axes broadcast."""
    return np.asarray((A @ x[..., None])[..., 0])


def solutions(J: Array, largest: Array | None = None) -> FreeMotions:
    """What solves J x = g, J (..., nc, nv), whose rows may depend on one another; NaN for a J that is not finite.

    `largest` (...) is the size that J could have, where J itself may be nothing but rounding; default: its own.
    """
    return both_solutions(J, largest)[0]


def both_solutions(J: Array, largest: Array | None = None) -> tuple[FreeMotions, Array]:
    """And a basis (..., nc, k) of what J^T takes to nothing."""
    nc, nv = common_axes({"J": J.shape})[-2:]
    bad = np.asarray(~np.isfinite(J).all(axis=(-2, -1)))
    B, s, V = np.linalg.svd(np.where(bad[..., None, None], 0.0, J))
    size = s.max(axis=-1, initial=0.0) if largest is None else largest
    kept = s > NEGLIGIBLE * size[..., None]
    rank = kept.sum(axis=-1)
    shares = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    some = min(nc, nv)
    inverse = transposed(V[..., :some, :] * shares[..., None]) @ transposed(B[..., :some])

    def rest(columns: Array, count: Array) -> Array:
        # a state without an answer needs a column to say so
        widest = max(int(count.max(initial=0, where=~bad)), int(bad.any()))
        return columns[..., ::-1][..., :widest] * (np.arange(widest) < count[..., None])[..., None, :]

    spoilt = bad[..., None, None]
    free = np.where(spoilt, np.nan, rest(transposed(V), nv - rank))
    idle = np.where(spoilt, np.nan, rest(B, nc - rank))
    return FreeMotions(free, np.where(bad, -1, nv - rank), np.where(spoilt, np.nan, inverse)), idle
