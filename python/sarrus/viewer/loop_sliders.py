"""Independent coordinates that move a mechanism with its loops closed.

The chosen coordinates and those being moved are rows of the core's, beside the loops, and go to their goal as inputs of
:func:`~sarrus.Mechanism.follow` do; the others move as little as they can. Where the branch ends the mechanism has reached the end of its range.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._arrays import Array, ArrayLike
from ..analysis.assembly.closing import closing
from ..analysis.assembly.continuation import Branch
from ..analysis.scaling import ScaledLoops
from ..control.interpolation import Chart
from ..mechanism import Mechanism

CLOSED = 1e-11  # relative residual up to which a moved mechanism counts as closed, and miss of a coordinate
STEPS = 0.2, 1e-4  # the longest [rad, mean sizes of the bodies], and the part of the way that is the shortest


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
        self._single: list[tuple[str, int]] = []
        for name in mechanism.joints:
            labels = [label for label, _ in mechanism.joint(name).type.velocities]
            self.names += [name] if len(labels) == 1 else [f"{name}: {label}" for label in labels]
            self._single += [(name, k) for k in range(len(labels))]
        self.joints = [name for name, _ in self._single]
        self._chart = Chart(mechanism)
        self.loops = ScaledLoops(mechanism, q, time)
        self.lengths = self.loops.sliding
        self.chosen = self._choose(q)

    def coordinates(self, q: ArrayLike) -> Array:
        """All coordinates (..., nv) of configurations (..., nq)."""
        return self._chart.difference(self.mechanism.neutral(), np.asarray(q, dtype=np.float64))

    def lead(self, q: Array, goal: Mapping[int, float]) -> tuple[Array, bool]:
        """Move coordinates to a goal on their branch, the other chosen ones held; how far that led, and whether all the way."""
        rows = sorted({*self.chosen, *goal})
        start = self.coordinates(q)[rows]
        end = [goal.get(k, x) for k, x in zip(rows, start, strict=True)]
        how = closing(self.mechanism, (), (), tuple(self._single[k] for k in rows))
        branch = Branch(how, np.full(2, self.loops.time or 0.0), {}, np.array([start, end]), STEPS, CLOSED)
        q, passed = branch.last(q)
        return q, passed == 1.0

    def reach(self, q: Array, k: int, ends: tuple[float, float]) -> tuple[float, float]:
        """How far a chosen coordinate goes between these ends, the other chosen ones held; the ends, where no loop holds it."""
        rows = self.loops.holonomic
        if not rows.any() or not np.abs(self.loops.jacobian(q)[rows][:, k]).max() > CLOSED:
            return ends
        low, high = (float(self.coordinates(self.lead(q, {k: end})[0])[k]) for end in ends)
        return low, high

    def _choose(self, q: Array) -> list[int]:
        if self.mechanism.nv == 0:
            return []
        J = self.loops.jacobian(q)[self.loops.holonomic]
        _, sizes, directions = np.linalg.svd(J, full_matrices=True)
        rank = int((sizes > 1e-7 * max(1.0, sizes.max(initial=0.0))).sum())
        scale = self.loops.column_scale
        shown = (self._chart.rates(q, np.eye(self.mechanism.nv)).T * scale / scale[:, None]) @ directions[rank:].T
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
