"""Multistart search for configurations that close the loops, and its error messages.

The core iterates from each initial guess (:mod:`sarrus.analysis.assembly.closing`). The first guess is the caller's. Further guesses are drawn
around it, at small, medium and large distances, until the loops close within the joints' limits. The result is the nearest configuration that was
found. Fixed joints do not move. Units are those of :mod:`sarrus.analysis.scaling`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from ..._arrays import Array, ArrayLike, NDArray, checked_number
from ..._core import tolerances
from ...dynamics.loop_operations import LoopFunctions
from ..joint_targets import quoted
from .closing import FAR, NEAR, Coordinates, Frames, closing

TOLERANCE: float = tolerances.closed
SAME = 1e-5  # configurations whose poses differ by less are the same assembly mode
SMALL = 1e-6  # below this relative singular value, velocities count as dependent
ZERO = 1e-12  # below this relative singular value, a singular value is zero up to rounding


class Search:
    """Search from many initial guesses for configurations that close the loops; fixed joints have their coordinates of the first guess."""

    def __init__(
        self, robot: LoopFunctions, start: Array, fixed: Iterable[str], time: float | None, seed: int,
        frames: Frames = (), targets: Array | None = None, single: Coordinates = (),
    ) -> None:  # fmt: skip
        self.start, self.fixed, self.base, self.frames = start, tuple(fixed), robot, frames
        self._seed = seed
        self.closure = closing(robot, frames, self.fixed, single)
        self.robot, self.loops = self.closure.robot, self.closure.at(time, targets)
        self.moving, self.weights = self.closure.moving, np.ones(self.robot.nc)

    @cached_property
    def rng(self) -> np.random.Generator:
        """Generator of further guesses; created only if the first guess fails, because creating it takes longer than one attempt."""
        rng = np.random.default_rng(self._seed)
        # the first guess also consumes nv numbers, so that results do not depend on its success
        rng.uniform(size=self.robot.nv)
        return rng

    def close(self, q: Array, steps: ArrayLike = FAR) -> tuple[Array, Array]:
        """Return configurations (k, nq) of minimal residual from initial guesses q (k, nq), and these residuals (k,)."""
        return self.loops.close(q, self.loops.scale(self.moving, self.weights), steps)

    def jacobian(self, q: Array) -> Array:
        """Return the scaled Jacobian (k, rows, nv) of the holonomic rows, zero for fixed velocities and for entries that are not finite."""
        J = self.loops.jacobian(q)[:, self.loops.holonomic] * self.moving
        return np.where(np.isfinite(J), J, 0.0)

    def starts(self, first: int, count: int) -> Array:
        """Return `count` guesses (count, nq), from index `first` of an endless sequence: the caller's, then random ones at three distances from
        it.
        """
        if first == 0:
            further = self.starts(1, count - 1) if count > 1 else np.empty((0, self.robot.nq))
            return np.concatenate([self.start[None], further])
        k = np.arange(first, first + count)[:, None]
        spread = np.array([0.1, 0.3, 1.0])[k % 3]
        reach = np.where(self.loops.sliding, 1.0, np.pi) * self.moving
        x = spread * reach * self.rng.uniform(-1.0, 1.0, (count, self.robot.nv))[:, self.closure.by_name]
        q = self.loops.step(np.broadcast_to(self.start, (count, self.robot.nq)), x)
        return np.clip(q, self.closure.low, self.closure.high)

    def nearest(self, starts: int, tolerance: float) -> tuple[Array, float]:
        """Return the closed configuration nearest to the first guess, and its residual.

        Configurations within the joint limits have priority. If the loops close from no guess, the configuration of smallest residual is returned.
        """
        q, residual = self.close(self.start[None], NEAR)
        q = self.closure.unwound(q, self.start)
        if residual[0] <= min(tolerance, TOLERANCE) and self.closure.within(q, time=self.loops.time)[0]:
            return q[0].copy(), float(residual[0])
        candidates, residuals = np.empty((0, self.robot.nq)), np.empty(0)
        while len(residuals) <= starts:
            tried = len(residuals)
            q, residual = self.close(self.starts(tried, min(1 + 3 * tried, starts + 1 - tried)))
            candidates, residuals = (
                np.concatenate([candidates, self.closure.unwound(q, self.start)]),
                np.concatenate([residuals, residual]),
            )
            if ((residuals <= tolerance) & self.closure.within(candidates, time=self.loops.time)).any():
                break
        closed = residuals <= tolerance
        if closed.any():
            candidates, residuals = candidates[closed], residuals[closed]
            best = int(np.lexsort([*self.order(candidates), ~self.closure.within(candidates, time=self.loops.time)])[0])
        else:
            best = int(residuals.argmin())
        return candidates[best].copy(), float(residuals[best])

    def distance(self, q: Array) -> Array:
        """Return the distance (k,) of configurations q (k, nq) from the first guess, over all joints."""
        with np.errstate(over="ignore"):
            return np.asarray(np.linalg.norm(self.loops.difference(self.start, q), axis=1))

    def order(self, q: Array) -> Array:
        """Return keys (nv + 1, k) for :func:`numpy.lexsort` that sort by distance; they are rounded, so that rounding errors do not affect the
        order.
        """
        x = self.loops.difference(self.start, q)[:, np.argsort(self.closure.by_name)]
        return np.vstack([x.T.round(6), self.distance(q).round(6)])

    def appearance(self, q: Array) -> Array:
        """Return the poses of the bodies (k, 12 bodies), to compare configurations independently of the choice of coordinates."""
        poses = [self.robot.pose(q, body)[:, :3] / (1.0, 1.0, 1.0, self.loops.length) for body in self.robot.bodies]
        return np.asarray(np.concatenate(poses, axis=1).reshape(len(q), -1))

    def freedom(self, q: Array) -> int:
        """Return the number of degrees of freedom of the joints that are not fixed."""
        s = np.linalg.svd(self.jacobian(q[None])[0], compute_uv=False)
        return int(self.moving.sum() - (s > SMALL * s.max(initial=0.0)).sum())


def nearly_singular(J: Array) -> NDArray[np.bool_]:
    """Return True (k,) for scaled Jacobians (k, rows, nv) that are singular up to rounding.

    The tolerance is that of a double root, near which iterations stop at a distance of about 1e-8.
    """
    s = np.linalg.svd(J, compute_uv=False)
    relative = s / np.maximum(s.max(axis=-1, initial=0.0, keepdims=True), 1e-300)
    return np.asarray(((relative > ZERO) & (relative < SMALL)).any(axis=-1))


def checked_tolerance(value: float) -> float:
    """Return the tolerance of residuals; raise ValueError if it is below the level of rounding, which no search reaches."""
    tolerance = checked_number("tolerance", value)
    if tolerance < tolerances.rounding:
        raise ValueError(
            f"tolerance must be at least {tolerances.rounding:g}, the rounding error of a closed loop; got {value!r}"
        )
    return tolerance


def open_by(search: Search, q: Array) -> dict[str, float]:
    """Return the scaled residual of each constraint, by name."""
    phi = search.loops.residual(q)
    with np.errstate(over="ignore"):
        return {
            name: float(np.linalg.norm(phi[search.robot.constraint(name).rows])) for name in search.robot.constraints
        }


def why_open(search: Search, q: Array) -> str:
    """Return the message of a failed search: the open constraints of its best configuration, and the likely cause."""
    robot, residuals = search.robot, open_by(search, q)
    name = max(residuals, key=lambda name: residuals[name])
    constraint, phi = robot.constraint(name), robot.constraint_residual(q, **search.loops.data(q))
    row = constraint.rows.start + int(np.abs(search.loops.residual(q)[constraint.rows]).argmax())
    text = (
        f"no configuration was found that closes all loops: '{name}' ({constraint.kind}) stays open, by {residuals[name]:.3g} of the "
        f"mechanism's size in the best one ({constraint.row_names[row - constraint.rows.start]}: {phi[row]:.3g})"
    )
    if constraint.bodies:
        turns = np.array(["rotation" in row for row in constraint.row_names])
        with np.errstate(over="ignore"):
            gaps = {
                unit: float(np.linalg.norm(phi[constraint.rows][part]))
                for unit, part in (("m", ~turns), ("rad", turns))
                if part.any()
            }
        text += f", its closest approach {' and '.join(f'{x:.3g} {unit}' for unit, x in gaps.items())}"
    further = [other for other in residuals if other != name and residuals[other] > 0.1 * residuals[name]]
    if further:
        text += f"; {quoted(further)} stay open, too: they contradict one another, or none of them can close"
    if search.fixed:
        free = Search(
            search.base, q, (), search.loops.time, 0, search.frames, search.closure.frame_targets(search.loops.targets)
        )
        if free.nearest(10, TOLERANCE)[1] <= TOLERANCE:
            return f"{text}; loops do close if {quoted(search.fixed)} may move: the coordinates fixed for them contradict the loops"
    if residuals[name] < 1e-3:
        return (
            f"{text}; if parts fit no better than that, because a file has rounded numbers, sarrus.without_redundant_constraints(robot) returns the "
            "mechanism without the contradictory rows; tolerance= accepts the best fit, which most functions treat as open loops"
        )
    return f"{text}; either lengths and placements do not allow it, or another start is needed: near=, starts="
