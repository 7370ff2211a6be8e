"""The search for configurations that close the loops: steps from many starts, of which one is given, and what to say if none succeeds.

From each start the core's steps (:mod:`sarrus.analysis.assembly.closing`) go as far as they can. The first start is the one given; others lie about it, a little, some way and all
the way round, until loops close within the joints' limits. Of what was found by then the nearest is the answer. Joints that are held do
not take part. All in units of :mod:`sarrus.analysis.scaling`.
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
SAME = 1e-5  # poses that differ by less are one assembly mode
SMALL = 1e-6  # relative singular values of independent velocities are larger
ZERO = 1e-12  # and those that are zero everywhere smaller, by rounding


class Search:
    """Ways from many starts to configurations that close the loops, with the joints that are held where the given start has them."""

    def __init__(
        self, robot: LoopFunctions, start: Array, held: Iterable[str], time: float | None, seed: int,
        frames: Frames = (), targets: Array | None = None, single: Coordinates = (),
    ) -> None:  # fmt: skip
        self.start, self.held, self.base, self.frames = start, tuple(held), robot, frames
        self._seed = seed
        self.how = closing(robot, frames, self.held, single)
        self.robot, self.loops = self.how.robot, self.how.at(time, targets)
        self.moving, self.weights = self.how.moving, np.ones(self.robot.nc)

    @cached_property
    def rng(self) -> np.random.Generator:
        """Made where the given start alone does not do, which takes longer than to try it; that start has had its numbers."""
        rng = np.random.default_rng(self._seed)
        rng.uniform(size=self.robot.nv)
        return rng

    def close(self, q: Array, steps: ArrayLike = FAR) -> tuple[Array, Array]:
        """Configurations (k, nq) on from q that close the loops as well as they can, and the residuals (k,) that are left."""
        return self.loops.close(q, self.loops.scale(self.moving, self.weights), steps)

    def jacobian(self, q: Array) -> Array:
        """Derivative (k, rows, nv) of what holds positions by what may move, scaled."""
        J = self.loops.jacobian(q)[:, self.loops.holonomic] * self.moving
        return np.where(np.isfinite(J), J, 0.0)

    def starts(self, first: int, count: int) -> Array:
        """Some of an endless row of starts: the one that was given, then others about it, a little and all the way round."""
        if first == 0:
            others = self.starts(1, count - 1) if count > 1 else np.empty((0, self.robot.nq))
            return np.concatenate([self.start[None], others])
        k = np.arange(first, first + count)[:, None]
        spread = np.array([0.1, 0.3, 1.0])[k % 3]
        reach = np.where(self.loops.sliding, 1.0, np.pi) * self.moving
        x = spread * reach * self.rng.uniform(-1.0, 1.0, (count, self.robot.nv))[:, self.how.by_name]
        q = self.loops.step(np.broadcast_to(self.start, (count, self.robot.nq)), x)
        return np.clip(q, self.how.low, self.how.high)

    def nearest(self, starts: int, tolerance: float) -> tuple[Array, float]:
        """The configuration nearest to the start, of the first found, within joint limits if possible; or the one that is least open."""
        q, left = self.close(self.start[None], NEAR)
        q = self.how.unwound(q, self.start)
        if left[0] <= min(tolerance, TOLERANCE) and self.how.within(q, time=self.loops.time)[0]:
            return q[0].copy(), float(left[0])
        ends, lefts = np.empty((0, self.robot.nq)), np.empty(0)
        while len(lefts) <= starts:
            tried = len(lefts)
            q, left = self.close(self.starts(tried, min(1 + 3 * tried, starts + 1 - tried)))
            ends, lefts = np.concatenate([ends, self.how.unwound(q, self.start)]), np.concatenate([lefts, left])
            if ((lefts <= tolerance) & self.how.within(ends, time=self.loops.time)).any():
                break
        closed = lefts <= tolerance
        if closed.any():
            ends, lefts = ends[closed], lefts[closed]
            best = int(np.lexsort([*self.order(ends), ~self.how.within(ends, time=self.loops.time)])[0])
        else:
            best = int(lefts.argmin())
        return ends[best].copy(), float(lefts[best])

    def distance(self, q: Array) -> Array:
        """(k,) how far all joints are from the start."""
        with np.errstate(over="ignore"):
            return np.asarray(np.linalg.norm(self.loops.difference(self.start, q), axis=1))

    def order(self, q: Array) -> Array:
        """Keys (nv + 1, k) of :func:`numpy.lexsort` by which the nearest comes first; digits that rounding decides must not decide."""
        x = self.loops.difference(self.start, q)[:, np.argsort(self.how.by_name)]
        return np.vstack([x.T.round(6), self.distance(q).round(6)])

    def appearance(self, q: Array) -> Array:
        """(k, 12 bodies) how the bodies lie: what does not depend on the coordinates that say so."""
        poses = [self.robot.pose(q, body)[:, :3] / (1.0, 1.0, 1.0, self.loops.length) for body in self.robot.bodies]
        return np.asarray(np.concatenate(poses, axis=1).reshape(len(q), -1))

    def freedom(self, q: Array) -> int:
        """Degrees of freedom that the loops leave to the joints that may move."""
        s = np.linalg.svd(self.jacobian(q[None])[0], compute_uv=False)
        return int(self.moving.sum() - (s > SMALL * s.max(initial=0.0)).sum())


def nearly_singular(J: Array) -> NDArray[np.bool_]:
    """(k,) whether scaled Jacobians (k, rows, nv) have lost rank by less than rounding: closing loops ends within 1e-8 of a double root."""
    s = np.linalg.svd(J, compute_uv=False)
    relative = s / np.maximum(s.max(axis=-1, initial=0.0, keepdims=True), 1e-300)
    return np.asarray(((relative > ZERO) & (relative < SMALL)).any(axis=-1))


def checked_tolerance(value: float) -> float:
    """Of residuals, which the search does not make smaller than rounding, however many starts it has."""
    tolerance = checked_number("tolerance", value)
    if tolerance < tolerances.rounding:
        raise ValueError(
            f"tolerance must be at least {tolerances.rounding:g}, which rounding leaves of a closed loop; got {value!r}"
        )
    return tolerance


def open_by(search: Search, q: Array) -> dict[str, float]:
    """How far each constraint is open, relative to the mechanism's size."""
    phi = search.loops.residual(q)
    with np.errstate(over="ignore"):
        return {
            name: float(np.linalg.norm(phi[search.robot.constraint(name).rows])) for name in search.robot.constraints
        }


def why_open(search: Search, q: Array) -> str:
    """What stays open in the best configuration that was found, and why."""
    robot, off = search.robot, open_by(search, q)
    name = max(off, key=lambda name: off[name])
    constraint, phi = robot.constraint(name), robot.constraint_residual(q, **search.loops.data(q))
    row = constraint.rows.start + int(np.abs(search.loops.residual(q)[constraint.rows]).argmax())
    text = (
        f"no configuration was found that closes all loops: '{name}' ({constraint.kind}) stays open, at best by {off[name]:.3g} of the "
        f"mechanism's size ({constraint.row_names[row - constraint.rows.start]}: {phi[row]:.3g})"
    )
    if constraint.bodies:
        turns = np.array(["rotation" in row for row in constraint.row_names])
        with np.errstate(over="ignore"):
            apart = {
                unit: float(np.linalg.norm(phi[constraint.rows][those]))
                for unit, those in (("m", ~turns), ("rad", turns))
                if those.any()
            }
        text += f", its closest approach {' and '.join(f'{x:.3g} {unit}' for unit, x in apart.items())}"
    others = [other for other in off if other != name and off[other] > 0.1 * off[name]]
    if others:
        text += f"; so do {quoted(others)}: they contradict one another, or none of them can close"
    if search.held:
        free = Search(
            search.base, q, (), search.loops.time, 0, search.frames, search.how.of_frames(search.loops.targets)
        )
        if free.nearest(10, TOLERANCE)[1] <= TOLERANCE:
            return f"{text}; loops do close where {quoted(search.held)} may move: the coordinates fixed for them contradict the loops"
    if off[name] < 1e-3:
        return (
            f"{text}; if parts fit no better than that, as numbers of a file are rounded, sarrus.without_redundant_constraints(robot) is the "
            "mechanism without the rows that they contradict; tolerance= finds where parts fit best, which most functions take for open loops"
        )
    return f"{text}; either lengths and places do not allow it, or another start is needed: near=, starts="
