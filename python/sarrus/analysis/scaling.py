"""The constraints of a mechanism in units in which rotations and displacements compare.

Radians and metres are compared by the mechanism's characteristic length l, the mean size of its bodies between joints: one radian
weighs as much as a displacement of l. Of the constraints J v = c, with residual phi, this makes R J C, R c and R phi, where C multiplies
the velocities of sliding joints by l and R divides each row by what it could be at most, the size of its wrench [moment; l force].
Masses do not matter.
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
from ..errors import AssemblyError

if TYPE_CHECKING:
    from ..dynamics.variants import VariantFunctions

CLOSED, PRESENT = tolerances.given_closed, tolerances.present
# coordinates of a joint that closes a loop are read off poses that its own rows close only to the square of a step; where they are led, the step that
# closes these rows shifts them by as much, and must count as one that brings something
SHIFTED = 64.0


class ScaledLoops:
    """R J C and what goes with it, of the constraints about one configuration; `targets` are where frames are led."""

    def __init__(self, robot: LoopFunctions, q: Array, time: float | None, targets: Array | None = None) -> None:
        self.robot, self.time, self.targets = robot, checked_time(time), targets
        self.length = robot._length
        self.sliding = sliding_velocities(robot)
        self.column_scale = np.where(self.sliding, self.length, 1.0)
        self.row_scale = 1.0 / self._row_sizes(q)
        constraints = map(robot.constraint, robot.constraints)
        self.holonomic = np.array([h for constraint in constraints for h in constraint.holonomic], dtype=bool)

    def of_variants(self, variants: VariantFunctions) -> ScaledLoops:
        """The same of variants, each with a length of its own; rows that relate coordinates count as the base's."""
        loops, lengths = copy.copy(self), variants._lengths[:, None]
        loops.robot = variants
        loops.column_scale = np.where(self.sliding, lengths, 1.0)
        moments, forces = self._squares
        here = moments + self.length**2 * forces
        larger = np.where(here > 0.0, (moments + lengths**2 * forces) / np.where(here > 0.0, here, 1.0), 1.0)
        loops.row_scale = self.row_scale / np.sqrt(larger)
        return loops

    def _row_sizes(self, q: Array) -> Array:
        """How large each row could be, whatever the configuration: a row that has become small says that it is near a singularity."""
        robot = self.robot
        with np.errstate(over="ignore"):  # infinite, so far off the loops that nobody is answered
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
        """(nv + nc,) C and R, for the core."""
        return np.concatenate([self.column_scale, self.row_scale])

    def data(self, q: Array) -> dict[str, Any]:
        """What the core is to know besides configurations (..., nq)."""
        if self.targets is None:
            return {"time": self.time}
        rows = self.robot._pfaffian_numbers(q, None)
        targets = np.broadcast_to(self.targets, (*rows.shape[:-1], self.targets.shape[-1]))
        return {"time": self.time, "pfaffian_values": np.concatenate([rows, targets], axis=-1)}

    def jacobian(self, q: Array) -> Array:
        """R J C (..., nc, nv)."""
        return self.row_scale[:, None] * self.robot.constraint_jacobian(q, **self.data(q)) * self.column_scale

    def residual(self, q: Array) -> Array:
        """R phi (..., nc)."""
        return self.row_scale * self.robot.constraint_residual(q, **self.data(q))

    def scale(self, moving: ArrayLike = True, weights: ArrayLike = 1.0) -> Array:
        """(nv + nc,) for the core's steps: C of what may move, and R of the rows that hold positions, weighted."""
        return np.concatenate([self.column_scale * moving, self.row_scale * self.holonomic * weights], axis=-1)

    def step(self, q: Array, x: Array) -> Array:
        """From q along scaled velocities."""
        return self.robot.integrate(q, self.column_scale * x)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The scaled velocities that lead from q0 to q1."""
        return self.robot.difference(q0, q1) / self.column_scale

    def check_closed(self, q: Array) -> float:
        """The largest relative residual; AssemblyError where it is too large."""
        robot, residual = self.robot, np.abs(self.residual(q))
        if residual.size == 0 or residual.max() <= CLOSED:
            return float(residual.max(initial=0.0))
        worst = int(residual.argmax())
        off = robot.constraint_residual(q, time=self.time)[worst]
        raise AssemblyError(
            f"q does not close the loops: '{robot._row_names[worst]}' is off by {off:.3g} ({residual[worst]:.1g} of the mechanism's size, "
            f"{CLOSED:g} is allowed); mobility is that of a closed configuration, which assemble or project_configuration find"
        )

    def contradicted(self, q: Array, reach: Array) -> bool:
        """Whether no velocity gives what is prescribed; `reach` is a basis of what velocities can give."""
        c = self.row_scale * self.robot.constraint_velocity(q, time=self.time)
        return bool(np.linalg.norm(c - reach @ (reach.T @ c)) > PRESENT * np.linalg.norm(c))

    def close(
        self, q: Array, scale: Array | None = None, steps: ArrayLike = (1.0, 100.0, 1e300)
    ) -> tuple[Array, Array]:
        """Configurations near q (k, nq) that close the loops as well as they can, and the residuals (k,) that are left.

        `steps` are the damping of the first step, how many are taken at most, and the residual up to which a start is tried at all.
        """
        scale = self.scale() if scale is None else scale
        closed, _ = self.robot._close(q, scale, steps, **self.data(q), return_status=True)
        return closed[:, :-1], np.where(np.isfinite(closed[:, -1]), closed[:, -1], np.inf)


def sliding_velocities(robot: LoopFunctions, joints: Iterable[str] | None = None) -> Array:
    """(nv,) which velocities are in metres per second, of all joints of the tree or of these."""
    types = [robot.joint(name).type for name in (robot.joints if joints is None else joints)]
    return np.concatenate([np.zeros(0, dtype=bool), *map(sliding, types)])


def velocity_scale(robot: LoopFunctions, joints: Iterable[str] | None = None) -> Array:
    """(nv,) what is as much as 1 rad/s: the characteristic length where a velocity slides, 1 where it turns."""
    return np.where(sliding_velocities(robot, joints), robot._length, 1.0)


def units_of_motion(robot: LoopFunctions) -> tuple[Array, Array, Array]:
    """What a simulation compares numbers with: a configuration, of every velocity, those of joints that close loops too, 1 rad/s or the
    characteristic length a second, and the power of an effort that moves all masses so; the last two of each variant, where there are some.
    """
    several = robot._count > 0
    length = robot._lengths if several else np.array([robot._length])
    mass = robot._masses if several else np.array([robot.mass])
    slides = np.concatenate([sliding_velocities(robot), *(sliding(joint.type) for joint in robot._closing_joints)])
    return robot.neutral(), np.where(slides, length[:, None], 1.0), np.where(mass > 0.0, mass, 1.0) * length**2


def coordinate_scale(joint: JointType, length: float) -> Array:
    """(nq,) by what a joint's coordinates compare: this length for displacements, 1 for the others."""
    return np.array([length if unit == "m" else 1.0 for _, unit in joint.coordinates])


def sliding(joint: JointType) -> Array:
    """(nv,) which of a joint's velocities are in metres per second."""
    return np.array([unit == "m" for _, unit in joint.velocities], dtype=bool)


# ---- linear algebra ------------------------------------------------------------------------------------------------------------------


def null_space(A: Array, tolerance: float) -> Array:
    """Orthonormal basis (n, k) of the vectors that A (m, n) takes to less than the tolerance."""
    _, s, V = np.linalg.svd(A)
    return V[int((s > tolerance).sum()) :].T


def six(angular: float, linear: float) -> Array:
    return np.repeat([angular, linear], 3)
