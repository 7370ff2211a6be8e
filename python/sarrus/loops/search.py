"""The search for configurations that close the loops: steps from many starts, of which one is given, and what to say if none succeeds.

From each start :mod:`.closing` goes as far as it can. The first start is the one given; others lie about it, a little, some way and all
the way round, until loops close within the joints' limits. Of what was found by then the nearest is the answer. Joints that are held do
not take part. All in units of :mod:`.scaled`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays import Array, checked_count, checked_number
from .closing import SMALL, SOLVED, damped_steps, sizes, undamped_steps
from .functions import LoopFunctions
from .given import JointCoordinates, coordinates, quoted, start_near, tree_joints
from .scaled import ScaledLoops

TOLERANCE = 1e-10  # residual up to which a loop counts as closed, unless the caller knows better
SAME = 1e-5  # poses that differ by less are one assembly mode
TURN = 2.0 * np.pi


class Search:
    """Ways from many starts to configurations that close the loops, with the joints that are held where the given start has them."""

    def __init__(self, robot: LoopFunctions, start: Array, held: Iterable[str], time: float | None, seed: int) -> None:
        self.robot, self.start, self.held = robot, start, tuple(held)
        self.rng = np.random.default_rng(checked_count("seed", seed, 0))
        # sizes of rows are asked for away from the start, which may be as special as a rod of no length
        away = robot.integrate(start, 0.1 * self.rng.normal(size=robot.nv))
        self.loops = ScaledLoops(robot, away, time)
        self.weights = np.ones(int(self.loops.holonomic.sum()))
        joints = tree_joints(robot)
        driven = {name for spec in robot.description.constraints for name in spec.position_joints}
        self.moving = np.concatenate([np.zeros(0, bool), *(np.full(j.nv, j.name not in self.held) for j in joints)])
        # coordinates of joints that may move: their limits, and whether whole turns make no difference to anything else
        self.low, self.high = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
        self.whole_turns = np.zeros(robot.nq, bool)
        for joint in joints:
            if joint.name in self.held:
                continue
            if joint.limits is not None:
                self.low[joint.q_slice], self.high[joint.q_slice] = joint.limits
            if joint.type.whole_turns_return and joint.name not in driven:
                self.whole_turns[joint.q_slice] = [unit == "rad" for _, unit in joint.type.coordinates]

    def residual(self, q: Array) -> Array:
        """Weighted residuals (k, rows) of what holds positions."""
        return self.weights * self.loops.residual(q)[:, self.loops.holonomic]

    def jacobian(self, q: Array) -> Array:
        """Its derivative (k, rows, nv) by what may move."""
        J = self.weights[:, None] * self.loops.jacobian(q)[:, self.loops.holonomic] * self.moving
        return np.where(np.isfinite(J), J, 0.0)

    def close(self, q: Array, steps: int = 100, damping: float = 1.0) -> tuple[Array, Array]:
        """Configurations (k, nq) on from q that close the loops as well as they can, and the residuals (k,) that are left."""
        q, _ = damped_steps(q, self.residual, self.jacobian, self.loops.step, count=steps, damping=damping)
        return undamped_steps(q, self.residual, self.jacobian, self.loops.step)

    def starts(self, first: int, count: int) -> Array:
        """Some of an endless row of starts: the one that was given, then others about it, a little and all the way round."""
        k = np.arange(first, first + count)[:, None]
        spread = np.where(k > 0, np.array([0.1, 0.3, 1.0])[k % 3], 0.0)
        reach = np.where(self.loops.sliding, 1.0, np.pi) * self.moving
        x = spread * reach * self.rng.uniform(-1.0, 1.0, (count, self.robot.nv))
        q = self.loops.step(np.broadcast_to(self.start, (count, self.robot.nq)), x)
        return np.where(spread > 0.0, np.clip(q, self.low, self.high), self.start)

    def nearest(self, starts: int, tolerance: float) -> tuple[Array, float]:
        """The configuration nearest to the start, of the first found, within joint limits if possible; or the one that is least open."""
        ends, lefts = np.empty((0, self.robot.nq)), np.empty(0)
        while len(lefts) <= starts:
            tried = len(lefts)
            q, left = self.close(self.starts(tried, min(1 + 3 * tried, starts + 1 - tried)))
            ends, lefts = np.concatenate([ends, self.unwound(q)]), np.concatenate([lefts, left])
            if ((lefts <= tolerance) & self.within(ends)).any():
                break
        closed = lefts <= tolerance
        if closed.any():
            ends, lefts = ends[closed], lefts[closed]
            best = int(np.lexsort([self.distance(ends), ~self.within(ends)])[0])
        else:
            best = int(lefts.argmin())
        return ends[best].copy(), float(lefts[best])

    def unwound(self, q: Array) -> Array:
        """The same configurations (k, nq) without needless whole turns: as near to the start as can be, or within limits."""
        q = q - self.whole_turns * TURN * np.round((q - self.start) / TURN)
        bounded = self.whole_turns & np.isfinite(self.low) & np.isfinite(self.high)
        middle = (np.where(bounded, self.low, 0.0) + np.where(bounded, self.high, 0.0)) / 2.0
        beyond = bounded & ((q < self.low) | (q > self.high))
        return np.asarray(q - beyond * TURN * np.round((q - middle) / TURN))

    def within(self, q: Array) -> NDArray[np.bool_]:
        """(k,) whether all joints that may move are within their limits."""
        return np.asarray(((q >= self.low - SAME) & (q <= self.high + SAME)).all(axis=1))

    def distance(self, q: Array) -> Array:
        """(k,) how far all joints are from the start."""
        return sizes(self.loops.difference(self.start, q))

    def appearance(self, q: Array) -> Array:
        """(k, 12 bodies) how the bodies lie: what does not depend on the coordinates that say so."""
        poses = [self.robot.pose(q, body)[:, :3] / (1.0, 1.0, 1.0, self.loops.length) for body in self.robot.bodies]
        return np.asarray(np.concatenate(poses, axis=1).reshape(len(q), -1))

    def freedom(self, q: Array) -> int:
        """Degrees of freedom that the loops leave to the joints that may move."""
        s = np.linalg.svd(self.jacobian(q[None])[0], compute_uv=False)
        return int(self.moving.sum() - (s > SMALL * s.max(initial=0.0)).sum())


def checked_tolerance(given: float) -> float:
    """Of residuals, which the search does not make smaller than rounding, however many starts it has."""
    tolerance = checked_number("tolerance", given)
    if tolerance < SOLVED:
        raise ValueError(
            f"tolerance must be at least {SOLVED:g}, which rounding leaves of a closed loop; got {given!r}"
        )
    return tolerance


def sought(
    robot: LoopFunctions,
    near: ArrayLike | JointCoordinates | None,
    fixed: JointCoordinates | None,
    time: float | None,
    starts: int,
    seed: int,
    tolerance: float,
) -> tuple[Search, Array, float]:
    """The last search that was made, what it found and how far that is open."""
    starts, tolerance = checked_count("starts", starts, 0), checked_tolerance(tolerance)
    held = coordinates(robot, fixed)
    guess = coordinates(robot, near) if isinstance(near, Mapping) else {}
    start = start_near(robot, near, {**guess, **held}, time)
    for kept in ({**guess, **held}, held) if guess.keys() - held.keys() else (held,):
        search = Search(robot, start, kept, time, seed)
        q, left = search.nearest(starts, tolerance)
        if left <= tolerance:
            break
    return search, q, left


def open_by(search: Search, q: Array) -> dict[str, float]:
    """How far each constraint is open, relative to the mechanism's size."""
    phi = search.loops.residual(q)[None]
    return {name: float(sizes(phi[:, search.robot.constraint(name).rows])[0]) for name in search.robot.constraints}


def why_open(search: Search, q: Array) -> str:
    """What stays open in the best configuration that was found, and why."""
    robot, off = search.robot, open_by(search, q)
    name = max(off, key=lambda name: off[name])
    constraint, phi = robot.constraint(name), robot.loop_residual(q, time=search.loops.time)
    row = constraint.rows.start + int(np.abs(search.loops.residual(q)[constraint.rows]).argmax())
    text = (
        f"no configuration was found that closes all loops: '{name}' ({constraint.kind}) stays open, at best by {off[name]:.3g} of the "
        f"mechanism's size ({constraint.row_names[row - constraint.rows.start]}: {phi[row]:.3g})"
    )
    others = [other for other in off if other != name and off[other] > 0.1 * off[name]]
    if others:
        text += f"; so do {quoted(others)}: they contradict one another, or none of them can close"
    if search.held:
        free = Search(robot, q, (), search.loops.time, 0)
        if free.nearest(10, TOLERANCE)[1] <= TOLERANCE:
            return f"{text}; loops do close where {quoted(search.held)} may move: the coordinates fixed for them contradict the loops"
    if off[name] < 1e-3:
        return f"{text}; if parts fit no better than that, say so by tolerance="
    return f"{text}; either lengths and places do not allow it, or another start is needed: near=, starts="
