"""Constraints of a mechanism, scaled such that rotations and displacements are comparable.

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

from .._arrays import Array, ArrayLike, checked_time
from .._core import tolerances
from ..description.constraints import ConstraintSpec, TargetSpec
from ..description.joints import JointType
from ..dynamics.loop_operations import LoopFunctions

if TYPE_CHECKING:
    from ..dynamics.variants import VariantFunctions

CLOSED, PRESENT = tolerances.given_closed, tolerances.present
# Problem: after a Newton step, the rows of a loop joint are closed only to second order in the step. Prescribed coordinates of this loop joint are
# computed from its bodies' poses, so the next step, which closes the rows, changes the coordinates by the same amount. It must nevertheless reduce
# the residual. Cure: a larger unit for these rows.
SHIFTED = 64.0


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
        self.column_scale = np.where(self.sliding, self.length, 1.0)
        self.row_scale = 1.0 / self._row_sizes(q)
        constraints = map(robot.constraint, robot.constraints)
        self.holonomic = np.array([h for constraint in constraints for h in constraint.holonomic], dtype=bool)

    def for_variants(self, variants: VariantFunctions) -> ScaledLoops:
        """Return the scaled constraints of variants, each with its own length.

        Rows between coordinates, such as those of gears, have the scale of the base mechanism.
        """
        loops, lengths = copy.copy(self), variants._lengths[:, None]
        loops.robot = variants
        loops.column_scale = np.where(self.sliding, lengths, 1.0)
        moments, forces = self._squares
        base_squares = moments + self.length**2 * forces
        larger = np.where(
            base_squares > 0.0, (moments + lengths**2 * forces) / np.where(base_squares > 0.0, base_squares, 1.0), 1.0
        )
        loops.row_scale = self.row_scale / np.sqrt(larger)
        return loops

    def _row_sizes(self, q: Array) -> Array:
        """Return the largest possible norm of each row, (nc,); a row whose norm is much smaller indicates a singularity."""
        robot = self.robot
        # infinite norms occur only so far from closed loops that no function returns a result
        with np.errstate(over="ignore"):
            squares = (robot._loop_wrenches(q, np.eye(robot.nc)) ** 2).sum(axis=1)
            self._squares = squares[:, :3].sum(axis=1), squares[:, 3:].sum(axis=1)
            sizes = np.sqrt(self._squares[0] + self.length**2 * self._squares[1])
        J = robot.constraint_jacobian(q, **self.data(q)) * self.column_scale
        for constraint in map(robot.constraint, robot.constraints):
            rows, spec = constraint.rows, constraint.spec
            if isinstance(spec, TargetSpec) and spec.joint and spec.index < 0:
                sizes[rows] *= SHIFTED
            if isinstance(spec, ConstraintSpec) and not spec.bodies:
                sizes[rows] = spec.row_sizes(J[rows], lambda joint: self.column_scale[robot.joint(joint).v_slice])
        return np.where(sizes > 0.0, sizes, 1.0)

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
        return np.concatenate([self.column_scale * moving, self.row_scale * self.holonomic * weights], axis=-1)


def sliding_velocities(robot: LoopFunctions, joints: Iterable[str] | None = None) -> Array:
    """Return a mask (nv,) of the velocities in m/s, of all tree joints or of the given joints."""
    types = [robot.joint(name).type for name in (robot.joints if joints is None else joints)]
    return np.concatenate([np.zeros(0, dtype=bool), *map(sliding, types)])


def velocity_scale(robot: LoopFunctions, joints: Iterable[str] | None = None) -> Array:
    """Return the equivalent of 1 rad/s (nv,): the characteristic length for a sliding velocity, 1 for an angular velocity."""
    return np.where(sliding_velocities(robot, joints), robot._length, 1.0)


def units_of_motion(robot: LoopFunctions) -> tuple[Array, Array, Array]:
    """Return the scales of a simulation: the neutral configuration, a scale of each velocity, and a scale of power.

    The scale of a velocity, including those of loop joints, is 1 rad/s or the characteristic length per second. The scale of power belongs to efforts
    that accelerate all masses to these velocities within one second. With variants, the scales of velocity and power have an axis of variants.
    """
    several = robot._count > 0
    length = robot._lengths if several else np.array([robot._length])
    mass = robot._masses if several else np.array([robot.mass])
    slides = np.concatenate([sliding_velocities(robot), *(sliding(joint.type) for joint in robot._closing_joints)])
    return robot.neutral(), np.where(slides, length[:, None], 1.0), np.where(mass > 0.0, mass, 1.0) * length**2


def coordinate_scale(joint: JointType, length: float) -> Array:
    """Return the scale of a joint's coordinates (nq,): `length` for displacements, 1 for angles and quaternions."""
    return np.array([length if unit == "m" else 1.0 for _, unit in joint.coordinates])


def sliding(joint: JointType) -> Array:
    """Return a mask (nv,), true for the joint's translational velocities [m/s]."""
    return np.array([unit == "m" for _, unit in joint.velocities], dtype=bool)


# ---- linear algebra ------------------------------------------------------------------------------------------------------------------


def null_space(A: Array, tolerance: float) -> Array:
    """Return an orthonormal basis (n, k) of the null space of A (m, n): right singular vectors whose singular values are at most `tolerance`."""
    _, s, V = np.linalg.svd(A)
    return V[int((s > tolerance).sum()) :].T


def six(angular: float, linear: float) -> Array:
    return np.repeat([angular, linear], 3)
