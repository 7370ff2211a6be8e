"""Linear algebra of constraint matrices: solutions of equations whose rows may be dependent, and comparable scales of rotations and displacements.

The scale is the mechanism's characteristic length l, the mean size of its bodies (distances between their joints). One radian is equivalent to a
displacement of l. The constraints J v = c, with residual phi, become R J C, R c and R phi. C multiplies the velocities of sliding
joints by l. R divides each row by its largest possible norm, the norm of its wrench [moment; l force]. Masses have no effect.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, checked_time, common_axes, real_array
from .._core import tolerances
from .._deferred import dataclass
from .._showing import Brief
from ..description.joints import JointType
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ShapeError, StateError

if TYPE_CHECKING:
    from ..dynamics.variants import VariantFunctions


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
        lead = common_axes({"the basis": N.shape[:-2], "M": M.shape[:-2]})
        N, M = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (N, M))
        return _core.constrained_inverse(N, M)


def same_freedom(freedoms: NDArray[Any]) -> int:
    """Return the number of independent motions, which must be the same in all states (StateError otherwise); 0 for an empty batch."""
    if freedoms.size and freedoms.min() < freedoms.max():
        raise StateError(
            f"these states have from {freedoms.min()} to {freedoms.max()} degrees of freedom, so their results do not fit into one "
            "array; pass each state separately"
        )
    return int(freedoms.max(initial=0))


def transposed(A: Array) -> Array:
    """Return the matrices with their last two axes exchanged."""
    return np.swapaxes(A, -1, -2)


def applied(A: Array, x: Array) -> Array:
    """Return A x of matrices (..., m, n) and vectors (..., n); leading axes broadcast."""
    return np.asarray((A @ x[..., None])[..., 0])


def solutions(J: Array) -> FreeMotions:
    """Return the solutions of J x = g for J (..., nc, nv), whose rows may be dependent; NaN if J is not finite."""
    return FreeMotions(*_core.free_motions(J, np.ones(J.shape[-1]), np.ones(J.shape[-2])))


CLOSED, PRESENT = tolerances.given_closed, tolerances.present


class ScaledLoops:
    """Scaled constraints R J C and R phi, with R from one configuration.

    Attributes
    ----------
    robot, time : the mechanism, and the time of prescribed motions [s]
    targets : (..., k) prescribed poses, points and coordinates of target constraints, or None
    length : characteristic length l [m]
    sliding : (nv,) True for velocities in m/s
    column_scale, row_scale : (nv,) and (nc,) diagonals of C and R
    holonomic : (nc,) True for rows that constrain positions
    """

    def __init__(self, robot: LoopFunctions, q: Array, time: float | None, targets: Array | None = None) -> None:
        self.robot, self.time, self.targets = robot, checked_time(time), targets
        self.length = robot._length
        self.sliding = sliding_velocities(robot)
        self._at = robot, q, self.data(q).get("pfaffian_values")
        self._set_scales(None)

    def _set_scales(self, lengths: Array | None) -> None:
        base, q, values = self._at
        scales: tuple[Array, Array, NDArray[np.bool_]] = _core.loop_scales(base, q, self.time, values, lengths)
        self.column_scale, self.row_scale, self.holonomic = scales

    def for_variants(self, variants: VariantFunctions) -> ScaledLoops:
        """Return the scaled constraints of variants, each with its own length.

        Rows between coordinates, such as those of gears, have the scale of the base mechanism.
        """
        loops = copy.copy(self)
        loops.robot = variants
        loops._set_scales(variants._lengths)
        return loops

    @cached_property
    def units(self) -> Array:
        """Diagonals of C and R as the core expects them, (nv + nc,)."""
        return np.concatenate([self.column_scale, self.row_scale])

    def data(self, q: Array) -> dict[str, Any]:
        """Return the keyword arguments of the core's functions of configurations q (..., nq): the time and the targets."""
        if self.targets is None:
            return {"time": self.time}
        rows = self.robot._pfaffian_numbers(q, None)
        targets = np.broadcast_to(self.targets, (*rows.shape[:-1], self.targets.shape[-1]))
        return {"time": self.time, "pfaffian_values": np.concatenate([rows, targets], axis=-1)}

    def jacobian(self, q: Array) -> Array:
        """Return R J C (..., nc, nv)."""
        return self.row_scale[:, None] * self.robot.constraint_jacobian(q, **self.data(q)) * self.column_scale

    def residual(self, q: Array) -> Array:
        """Return R phi (..., nc)."""
        return self.row_scale * self.robot.constraint_residual(q, **self.data(q))

    def scale(self, moving: ArrayLike = True, weights: ArrayLike = 1.0) -> Array:
        """Return the scales (nv + nc,) for the core's steps: C of the movable velocities, and R of the holonomic rows times `weights`; zero
        otherwise.
        """
        return np.concatenate(
            [self.column_scale * np.asarray(moving), self.row_scale * self.holonomic * np.asarray(weights)], axis=-1
        )


def sliding_velocities(robot: LoopFunctions, joints: Iterable[str] | None = None) -> Array:
    """Return a mask (nv,) of the velocities in m/s, of all tree joints or of the given joints."""
    types = [robot.joint(name).type for name in (robot.joints if joints is None else joints)]
    return np.concatenate([np.zeros(0, dtype=bool), *map(sliding, types)])


def velocity_scale(robot: LoopFunctions, joints: Iterable[str] | None = None) -> Array:
    """Return the equivalent of 1 rad/s (nv,): the characteristic length for a sliding velocity, 1 for an angular velocity."""
    return np.where(sliding_velocities(robot, joints), robot._length, 1.0)


def units_of_motion(robot: LoopFunctions) -> tuple[Array, Array, Array]:
    """Return the scales of a simulation: the neutral configuration, a scale of each velocity, and a scale of power.

    The scale of a velocity, including those of loop joints, is 1 rad/s or the characteristic length per second. The scale of power is that of efforts
    that accelerate all masses to these velocities within one second. With variants, the scales of velocity and power have an axis of variants.
    """
    several = robot._count > 0
    length = robot._lengths if several else np.array([robot._length])
    mass = robot._masses if several else np.array([robot.mass])
    slides = np.concatenate([sliding_velocities(robot), *(sliding(joint.type) for joint in robot._closing_joints)])
    return robot.neutral(), np.where(slides, length[:, None], 1.0), np.where(mass > 0.0, mass, 1.0) * length**2


def sliding(joint: JointType) -> Array:
    """Return a mask (nv,), true for the joint's translational velocities [m/s]."""
    return np.array([unit == "m" for _, unit in joint.velocities], dtype=bool)


def six(angular: float, linear: float) -> Array:
    return np.repeat([angular, linear], 3)
