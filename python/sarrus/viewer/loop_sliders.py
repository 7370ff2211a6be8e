"""Independent coordinates that move a mechanism with its loops closed.

A coordinate x goes to its goal in steps small enough that the mechanism stays on its branch. After each step the chosen coordinates and
those being moved are put where they are to be, and the core closes the loops by moving the others as little as it can. A step that does not
close them is halved; where even small ones do not, the mechanism has reached the end of its range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays import Array
from ..analysis.scaling import ScaledLoops
from ..control.interpolation import Chart
from ..mechanism import Mechanism

CLOSED = 1e-11  # relative residual up to which a moved mechanism counts as closed, and miss of a coordinate
STEPS = np.array([1e-6, 20.0, 1e300])  # damping and steps of the core: the way is short


class Inputs:
    """Independent coordinates of a mechanism, which move it with its loops closed.

    Coordinates are q, joint by joint; rotations of ball and free joints count as rotation vectors, so that there are nv of them. As many
    as there are degrees of freedom in q are chosen: those of motors first, then the ones that the motion shows best.

    Attributes
    ----------
    names : of the coordinates, all nv: the joint's, with the coordinate where there are several
    joints : of which joint each is
    lengths : (nv,) whether it is one [m] instead of an angle [rad]
    chosen : indices of the independent ones
    """

    def __init__(self, mechanism: Mechanism, q: Array, time: float = 0.0) -> None:
        self.mechanism, self.time = mechanism, time
        self.names: list[str] = []
        self.joints: list[str] = []
        for name in mechanism.joints:
            labels = [label for label, _ in mechanism.joint(name).type.velocities]
            self.names += [name] if len(labels) == 1 else [f"{name}: {label}" for label in labels]
            self.joints += [name] * len(labels)
        self._chart = Chart(mechanism)
        self.loops = ScaledLoops(mechanism, q, time)
        self.lengths = self.loops.sliding
        self.chosen = self._choose(q)

    def coordinates(self, q: ArrayLike) -> Array:
        """All coordinates (..., nv) of configurations (..., nq)."""
        return self._chart.difference(self.mechanism.neutral(), np.asarray(q, dtype=np.float64))

    def lead(self, q: Array, goal: Mapping[int, float]) -> tuple[Array, bool]:
        """Move coordinates to a goal in small steps, the other chosen ones held; how far that led, and whether all the way."""
        rows = np.array(sorted({*self.chosen, *goal}), dtype=np.intp)
        if len(rows) == 0:
            return q, not goal
        start = self.coordinates(q)[rows]
        way = np.array([goal.get(int(k), x) for k, x in zip(rows, start, strict=True)]) - start
        count = max(1, math.ceil(float(np.abs(way / self.loops.column_scale[rows]).max()) / 0.1))
        longest = part_step = 1.0 / count
        part = 0.0
        while part < 1.0:
            there = min(1.0, part + part_step)
            closed = self._close(q, rows, start + there * way)
            if closed is None:
                part_step /= 2
                if part_step < longest / 256:
                    return q, False
            else:
                q, part, part_step = closed, there, min(longest, 2 * part_step)
        return q, True

    def reach(self, q: Array, k: int, ends: tuple[float, float]) -> tuple[float, float]:
        """How far a chosen coordinate goes between these ends, the other chosen ones held; the ends, where no loop holds it."""
        rows = self.loops.holonomic
        if not rows.any() or not np.abs(self.loops.jacobian(q)[rows][:, k]).max() > CLOSED:
            return ends
        low, high = (float(self.coordinates(self.lead(q, {k: end})[0])[k]) for end in ends)
        return low, high

    def _close(self, q: Array, rows: NDArray[np.intp], target: Array) -> Array | None:
        """The configuration with closed loops and these coordinates; None where the loops stay open, or close far away only."""
        loops, now = self.loops, q
        scale = loops.scale(~np.isin(np.arange(self.mechanism.nv), rows))
        # where axes turn with a body a coordinate moves a little though its velocity is held: once more
        for _ in range(60):
            x = self.coordinates(now)
            x[rows] = target
            closed, left = loops.close(self._chart.moved(self.mechanism.neutral()[None], x[None]), scale, STEPS)
            now = np.asarray(closed[0])
            if not left[0] < CLOSED or not np.abs(loops.difference(q, now)).max() < 0.6:
                return None
            if np.abs(self.coordinates(now)[rows] - target).max() < CLOSED:
                return now
        return None

    def _rates(self, q: Array) -> Array:
        """Derivative (nv, nv) of the coordinates by the velocities, by differences: Newton's steps need no more."""
        h = 1e-6
        steps = h * np.eye(self.mechanism.nv)
        return np.asarray((self.coordinates(self.mechanism.integrate(q, steps)) - self.coordinates(q)).T / h)

    def _choose(self, q: Array) -> list[int]:
        if self.mechanism.nv == 0:
            return []
        J = self.loops.jacobian(q)[self.loops.holonomic]
        _, sizes, directions = np.linalg.svd(J, full_matrices=True)
        rank = int((sizes > 1e-7 * max(1.0, sizes.max(initial=0.0))).sum())
        scale = self.loops.column_scale
        shown = (self._rates(q) * scale / scale[:, None]) @ directions[rank:].T
        chosen: list[int] = []

        def take(k: int) -> None:
            nonlocal shown
            chosen.append(k)
            along = shown[k] / np.linalg.norm(shown[k])
            shown = shown - np.outer(shown @ along, along)

        motors = [k for k, name in enumerate(self.joints) if name in self.mechanism.actuated]
        for candidates in (motors, range(self.mechanism.nv)):
            while len(chosen) < self.mechanism.nv - rank:
                # the first of equals; digits that rounding decides must not decide on it
                best = max(candidates, key=lambda k: (float(np.linalg.norm(shown[k]).round(6)), -k), default=-1)
                if best < 0 or np.linalg.norm(shown[best]) < 1e-3:
                    break
                take(best)
        chosen.sort()
        return [k for k in chosen if k in motors] + [k for k in chosen if k not in motors]
