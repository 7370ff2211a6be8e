"""What constraints leave free, and the equations of motion split into motion along it and forces across it.

The constraints J v = c of the mechanism are the slides' A(q) v = 0 of Q in E, holonomic or not. N spans the motions that they allow, so
that in the metric of the mass matrix

  P_T = N (N^T M N)^-1 N^T M         takes a velocity to the nearest that is allowed
  P_omega = P_T^T = M P_T M^-1       takes a force to the part of it that moves something

which are the slides' I - M^-1 A^T (A M^-1 A^T)^-1 A and its dual, but need neither independent rows nor a mass everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import Array, common_axes, real_array, real_rows
from ..._showing import Brief
from ...dynamics.loop_operations import LoopFunctions
from ...dynamics.options import Wrenches
from ...errors import ShapeError, StateError
from ..assembly.closing import closing

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
        known = self.freedom[self.freedom >= 0]
        if known.size and known.min() < known.max():
            raise StateError(
                f"these states have from {known.min()} to {known.max()} degrees of freedom, so that one array cannot "
                "hold what belongs to them: ask for each by itself"
            )
        return int(known.max(initial=0))

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
    return _solutions(J, largest)[0]


def _solutions(J: Array, largest: Array | None) -> tuple[FreeMotions, Array]:
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


def loop_motions(robot: LoopFunctions, J: Array) -> FreeMotions:
    """What solves J x = g of the mechanism's constraints, whose rank is decided where radians and metres compare: in any units."""
    loops = closing(robot, (), ()).loops
    R, C = loops.row_scale[:, None], loops.column_scale[:, None]
    solution, idle = _solutions(R * J * C[:, 0], None)
    basis, idle = orthonormal(C * solution.basis)[0], orthonormal(R * idle)[0]
    # of all x that solve it the shortest, and nothing for what no x gives
    inverse = C * solution.inverse * R[:, 0]
    inverse = inverse - basis @ (transposed(basis) @ inverse)
    return FreeMotions(basis, solution.freedom, inverse - (inverse @ idle) @ transposed(idle))


@dataclass(frozen=True, eq=False, repr=False)
class ProjectedEquations(Brief):
    """The equations of motion on the motions that the constraints allow, and on the forces that do no work on these.

    On T*Q, inertia acceleration + bias = force; on its complement, curvature = across + constraint_force.

    Attributes
    ----------
    P_omega, P_T : (..., nv, nv) projections of forces and of velocities
    inertia : (..., nv, nv) P_omega M = M P_T, of rank as high as there are degrees of freedom
    bias, force : (..., nv) P_omega h and P_omega tau [N m, N]
    acceleration : (..., nv) that also satisfies the constraints [rad/s2, m/s2]
    curvature : (..., nv) M S(v, v) = (1 - P_omega)(M a + C v), what it takes to stay on the constraints, S being the second fundamental
        form of Q in E; prescribed motions add theirs [N m, N]
    across : (..., nv) (1 - P_omega)(tau - N), N = h - C v [N m, N]
    constraint_force : (..., nv) M a + h - tau = J^T multipliers, which P_omega makes zero [N m, N]
    multipliers : (..., nc) of least norm
    """

    P_omega: Array
    P_T: Array
    inertia: Array
    bias: Array
    force: Array
    acceleration: Array
    curvature: Array
    across: Array
    constraint_force: Array
    multipliers: Array


class ProjectedDynamics(LoopFunctions):
    """Projections onto the constraints' motions and forces."""

    def free_motions(self, q: ArrayLike, *, time: ArrayLike | None = None) -> FreeMotions:
        """Basis of the velocities that the constraints leave free, and how many there are.

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> free = fourbar.free_motions(fourbar.assemble())
        >>> int(free.freedom), free.basis.shape
        (1, (3, 1))
        """
        return loop_motions(self, self.constraint_jacobian(q, time=time))

    def projections(self, q: ArrayLike, *, time: ArrayLike | None = None) -> tuple[Array, Array]:
        """P_omega and P_T (..., nv, nv) on the tree, in the metric of the mass matrix: P_omega M = M P_T and P_omega = P_T^T.

        P_T v is the velocity nearest in kinetic energy that the constraints allow (where nothing is driven), (1 - P_omega) tau what
        they carry of a force. Rows may depend on one another. References: Li and Wu 2011, 4.6 (lemmas 1 and 2).

        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> P_omega, P_T = fourbar.projections(fourbar.assemble())
        >>> bool(np.allclose(P_T @ P_T, P_T)), int(np.trace(P_T).round())
        (True, 1)
        """
        M = self.mass_matrix(q)
        P_T = self.free_motions(q, time=time).constrained_inverse(M) @ M
        return transposed(P_T), P_T

    def projected_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, wrenches: Wrenches | None = None,
        time: ArrayLike | None = None,
    ) -> ProjectedEquations:  # fmt: skip
        """The equations of motion along the constraints, and the forces across them.

        Parameters
        ----------
        q, v : (..., nq), (..., nv) that satisfy the constraints
        tau : (..., nv) generalised force [N m, N]; default: none

        References
        ----------
        Li and Wu 2011, 4.6, the dynamics in T*Q and in its complement; multipliers with the sign of M a + h = tau + J^T multipliers, which
        is that of the slides from 61 on. The slides leave out an inverse in the equation of P_omega.

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.assemble()
        >>> v = fourbar.project_velocity(q, [1.0, 0.0, 0.0])
        >>> equations = fourbar.projected_dynamics(q, v, [2.0, 0.0, 0.0])
        >>> bool(np.allclose(equations.acceleration, fourbar.forward_dynamics(q, v, [2.0, 0.0, 0.0])))
        True
        """
        gamma = self.constraint_bias(q, v, time=time)
        M, h = self.mass_matrix(q), self.bias_forces(q, v, wrenches=wrenches)
        lead = common_axes({"q, v and time": gamma.shape[:-1], "q, v and wrenches": h.shape[:-1]})
        tau = real_rows("tau", np.zeros(self.nv) if tau is None else tau, self.nv, lead)
        centrifugal = applied(self.coriolis_matrix(q, v), np.asarray(v, dtype=np.float64))
        free = self.free_motions(q, time=time)
        inverse = free.constrained_inverse(M)
        P_T = inverse @ M
        P_omega = transposed(P_T)
        # any acceleration that the constraints allow will do: P_T takes away in what two of them differ
        allowed = applied(free.inverse, gamma)
        normal = allowed - applied(P_T, allowed)
        a = normal + applied(inverse, tau - h)
        constraint_force = applied(M, a) + h - tau
        rest = tau - h + centrifugal
        return ProjectedEquations(
            P_omega=P_omega,
            P_T=P_T,
            inertia=P_omega @ M,
            bias=applied(P_omega, h),
            force=applied(P_omega, tau),
            acceleration=a,
            curvature=applied(M, normal) + centrifugal - applied(P_omega, centrifugal),
            across=rest - applied(P_omega, rest),
            constraint_force=constraint_force,
            multipliers=applied(transposed(free.inverse), constraint_force),
        )

    def virtual_work(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike | None = None, *, wrenches: Wrenches | None = None,
        time: ArrayLike | None = None,
    ) -> Array:  # fmt: skip
        """P_omega (M a + h - tau) (..., nv): Lagrange's and d'Alembert's equation, zero where tau brings the motion about.

        (M a + h - tau) . dq = 0 for all dq with A dq = 0, Pfaffian rows or others: constraint forces do no work in it.
        References: Li and Wu 2011, 4.6 (theorem 2).

        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q, rest = fourbar.assemble(), np.zeros(3)
        >>> a = fourbar.forward_dynamics(q, rest, [2.0, 0.0, 0.0])
        >>> bool(abs(fourbar.virtual_work(q, rest, a, [2.0, 0.0, 0.0])).max() < 1e-9)
        True
        """
        needed = self.inverse_dynamics(q, v, a, wrenches=wrenches)
        P_omega = self.projections(q, time=time)[0]
        lead = common_axes({"q, v, a and wrenches": needed.shape[:-1], "q and time": P_omega.shape[:-2]})
        return applied(P_omega, needed - real_rows("tau", np.zeros(self.nv) if tau is None else tau, self.nv, lead))
