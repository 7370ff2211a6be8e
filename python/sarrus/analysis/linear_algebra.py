"""Linear algebra of batches of matrices: solutions of linear equations whose rows may be dependent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array, NDArray, common_axes, real_array
from .._showing import Brief
from ..errors import ShapeError, StateError

# singular values below this fraction of the largest are treated as zero, because loops of measured states are rarely closed more exactly
NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class FreeMotions(Brief):
    """Solutions of J x = g: x = inverse g + basis y for any y.

    Attributes
    ----------
    basis : N (..., nv, freedom) with orthonormal columns, velocities [rad/s, m/s]. In a batch, states with fewer independent motions have zero columns at the end
    freedom : (...) number of independent motions (dimensionless); -1 if J is not finite
    inverse : (..., nv, nc) pseudo-inverse of J [rad, m per unit of the row]
    """

    basis: Array
    freedom: Array
    inverse: Array

    def same_freedom(self) -> int:
        """Return the number of independent motions, which must be the same in all states; raise StateError if it is not."""
        return same_freedom(self.freedom[self.freedom >= 0])

    def constrained_inverse(self, M: Array) -> Array:
        """Return N (N^T M N)^-1 N^T (..., nv, nv), the acceleration per generalised force of motions that satisfy the constraints.

        Parameters
        ----------
        M : (..., nv, nv) mass matrix, as :meth:`~sarrus.Mechanism.mass_matrix` returns it [kg m^2, kg m, kg]
        """
        N, M = self.basis, real_array("M", M)
        if M.ndim < 2 or M.shape[-2:] != (N.shape[-2],) * 2:
            raise ShapeError(f"M has shape {M.shape}; its last axes must be (nv, nv) = {(N.shape[-2],) * 2}")
        # M is scaled to a unit diagonal, because otherwise the rounding errors of large masses could exceed small masses
        units = np.sqrt(np.maximum(np.diagonal(M, axis1=-2, axis2=-1), 0.0))
        units = np.where(units > 0.0, units, 1.0)[..., None]
        N, present = orthonormal(units * N)
        reduced = transposed(N) @ (M / units / transposed(units)) @ N + (1.0 - present)[..., None] * np.eye(N.shape[-1])
        try:
            return np.asarray(N @ np.linalg.solve(reduced, transposed(N)) / units / transposed(units))
        except np.linalg.LinAlgError:
            raise StateError(
                "M is singular along a motion that the constraints allow: no mass moves in this motion"
            ) from None


def same_freedom(freedoms: NDArray[Any]) -> int:
    """Return the number of independent motions, which must be the same in all states (StateError otherwise); 0 for an empty batch."""
    if freedoms.size and freedoms.min() < freedoms.max():
        raise StateError(
            f"these states have from {freedoms.min()} to {freedoms.max()} degrees of freedom, so their results do not fit into one "
            "array; pass each state separately"
        )
    return int(freedoms.max(initial=0))


def orthonormal(basis: Array) -> tuple[Array, Array]:
    """Return orthonormal bases (..., n, k) of the column spaces, with zero columns last, and a mask (..., k) that is 1.0 for nonzero columns."""
    present = np.asarray(np.isfinite(basis).all(axis=-2) & basis.any(axis=-2))
    clean = np.where(np.isfinite(basis), basis, 0.0)
    Q = np.linalg.qr(clean)[0]
    sound = np.isfinite(basis).all(axis=(-2, -1), keepdims=True)
    return np.where(sound, Q * present[..., None, :], np.nan), present.astype(np.float64)


def transposed(A: Array) -> Array:
    """Return the matrices with their last two axes exchanged."""
    return np.swapaxes(A, -1, -2)


def applied(A: Array, x: Array) -> Array:
    """Return A x of matrices (..., m, n) and vectors (..., n); leading axes broadcast."""
    return np.asarray((A @ x[..., None])[..., 0])


def solutions(J: Array, largest: Array | None = None) -> FreeMotions:
    """Return the solutions of J x = g for J (..., nc, nv), whose rows may be dependent; NaN if J is not finite.

    Singular values are compared with `largest` (...); default: the largest singular value of J. Pass a known scale if all entries of J may be
    rounding errors.
    """
    return both_solutions(J, largest)[0]


def both_solutions(J: Array, largest: Array | None = None) -> tuple[FreeMotions, Array]:
    """Return the solutions of J x = g, and a basis (..., nc, k) of the null space of J^T."""
    nc, nv = common_axes({"J": J.shape})[-2:]
    bad = np.asarray(~np.isfinite(J).all(axis=(-2, -1)))
    B, s, V = np.linalg.svd(np.where(bad[..., None, None], 0.0, J))
    size = s.max(axis=-1, initial=0.0) if largest is None else largest
    kept = s > NEGLIGIBLE * size[..., None]
    rank = kept.sum(axis=-1)
    shares = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    smaller = min(nc, nv)
    inverse = transposed(V[..., :smaller, :] * shares[..., None]) @ transposed(B[..., :smaller])

    def null_space(columns: Array, count: Array) -> Array:
        # at least one column, so that the row of a state without a result can contain NaN
        widest = max(int(count.max(initial=0, where=~bad)), int(bad.any()))
        return columns[..., ::-1][..., :widest] * (np.arange(widest) < count[..., None])[..., None, :]

    invalid = bad[..., None, None]
    basis = np.where(invalid, np.nan, null_space(transposed(V), nv - rank))
    left_null_space = np.where(invalid, np.nan, null_space(B, nc - rank))
    return FreeMotions(basis, np.where(bad, -1, nv - rank), np.where(invalid, np.nan, inverse)), left_null_space
