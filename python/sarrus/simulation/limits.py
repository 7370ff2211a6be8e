"""Limits of joints in a simulation: monitoring, end stops, saturation of efforts, and reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from .._arrays import Array
from ..analysis.assembly.closing import prepared
from ..control.element import ForceElement
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError

if TYPE_CHECKING:
    from ..control.elements import EndStop

__all__ = ["Limit"]

OnLimits = Literal["warn", "enforce", "ignore"]
QUANTITIES = ("position", "velocity", "effort")  # in the order of the core's indices
# tolerance of a limit, relative to its value and to 1 rad or the characteristic length (per second for velocities)
ROUNDING = 1e-9
Record = dict[str, Array]  # name of a field of the core's struct -> array (runs,) or (runs, limits)


@dataclass(frozen=True)
class Limit:
    """Limit of a joint that a simulation monitors: lower and upper bound of a coordinate, a velocity or an effort with this index in the joint.

    The quantity is a "position" [rad, m], a "velocity" [rad/s, m/s] or an "effort", the sum of all controllers' efforts [N m, N].
    """

    joint: str
    index: int
    quantity: str
    lower: float
    upper: float


def _stopped(elements: Sequence[ForceElement]) -> set[tuple[str, int]]:
    """Return (joint, index) of the coordinates that have an end stop among the force elements."""
    stops = (cast("EndStop", e) for e in elements if e._kind == "EndStop")
    return {(e.joint, e.index) for e in stops if isinstance(e.joint, str)}


def joint_limits(mechanism: LoopFunctions, mode: str, elements: Sequence[ForceElement]) -> JointLimits:
    """Return the limits of a mechanism, cached by mode and end stops."""
    stopped = frozenset(_stopped(elements))
    return prepared(mechanism, ("limits", mode, stopped), lambda: JointLimits(mechanism, mode, elements))


class JointLimits:
    """Limits of a mechanism's joints in a simulation with force elements; `mode` is the argument `limits` of simulate().

    Raises ModelError if a limit cannot be enforced by an end stop.
    """

    def __init__(self, mechanism: LoopFunctions, mode: str, elements: Sequence[ForceElement]) -> None:
        self.watched: list[Limit] = []
        self.terms: list[tuple[int, int, float, float]] = []  # limits in the core's format
        self.end_stops: list[EndStop] = []
        self.effort_limits: list[float] = []
        stopped = _stopped(elements)
        self.enforced = {(*place, "position") for place in stopped}
        if mode == "ignore":
            return
        most = np.full(mechanism.nv + sum(joint.type.nv for joint in mechanism._closing_joints), np.inf)
        for name in (*mechanism.joints, *mechanism.loop_joints):
            joint = mechanism.joint(name)
            limits = joint.limits if mode == "enforce" else None
            for k in () if limits is None else np.flatnonzero(np.isfinite(limits).any(axis=0)).tolist():
                from ..control.coordinates import coordinate

                try:
                    coordinate(mechanism, name, k, "an end stop")
                except ModelError as error:
                    cure = "Remove the limits, or give limits='warn'"
                    raise ModelError(f"limits of '{name}' do not allow an end stop: {error}. {cure}") from None
                if (name, k) not in stopped:
                    from ..control.elements import EndStop

                    self.end_stops.append(EndStop(name, index=k))
                    self.enforced.add((name, k, "position"))
            fast, strong = joint.type.velocity_limit, joint.type.effort_limit
            sizes = [
                np.array([mechanism._length if unit == "m" else 1.0 for _, unit in of])
                for of in (joint.type.coordinates, joint.type.velocities)
            ]
            self._watch(name, "position", joint._all_q.start, joint.limits, sizes[0])
            self._watch(name, "velocity", joint._all_v.start, None if fast is None else (-fast, fast), sizes[1])
            none = np.zeros_like(sizes[1])
            self._watch(name, "effort", joint._all_v.start, None if strong is None else (-strong, strong), none)
            if strong is not None:
                most[joint._all_v] = strong
        if mode == "enforce" and np.isfinite(most).any():
            self.effort_limits = most.tolist()
            self.enforced |= {(w.joint, w.index, "effort") for w in self.watched if w.quantity == "effort"}

    def _watch(self, joint: str, quantity: str, first: int, limits: Any, sizes: Array) -> None:
        for k, bounds in enumerate(zip(*(() if limits is None else limits), strict=True)):
            lower, upper = map(float, bounds)
            if math.isfinite(lower) or math.isfinite(upper):
                self.watched.append(Limit(joint, k, quantity, lower, upper))
                slack = [ROUNDING * (float(sizes[k]) + abs(x)) for x in (lower, upper)]
                self.terms.append((QUANTITIES.index(quantity), first + k, lower - slack[0], upper + slack[1]))

    def exceeded(self, record: Record, run: int) -> list[dict[str, Any]]:
        """Return the limits that a run violates, each with the time of its first violation [s] and the largest value of its quantity."""
        return [self.exceeded_one(record, run, k) for k in np.flatnonzero(record["excess"][run]).tolist()]

    def exceeded_one(self, record: Record, run: int, k: int) -> dict[str, Any]:
        _, _, lower, upper = self.terms[k]
        excess = float(record["excess"][run, k])
        reached = (upper if excess > 0.0 else lower) + excess
        return {**asdict(self.watched[k]), "time": float(record["left_at"][run, k]), "reached": reached}
