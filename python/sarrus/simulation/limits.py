"""Limits of joints in a simulation: what is watched, what stops there, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays import Array
from .._core import Status
from ..control.coordinates import coordinate
from ..control.elements import EndStop, ForceElement
from ..dynamics.loop_operations import LoopFunctions
from ..errors import DriftWarning, LimitWarning, ModelError, StiffnessWarning, warn_caller

__all__ = ["Limit"]

OnLimits = Literal["warn", "stop", "ignore"]
LIMITS = get_args(OnLimits)
QUANTITIES = ("position", "velocity", "effort")  # as the core counts them
ROUNDING = 1e-9  # by which a limit may be missed, of 1 + |limit|
EATEN = 0.1  # of a motion's energy, which a run may lose to its steps
TOLD = 1e-3  # how well a rate is known: by differences, and a few turns of an iteration
HEAD = 4  # numbers of a record before those of limits, which have two each: when first, and by how much


@dataclass(frozen=True)
class Limit:
    """What a simulation is watched for: that a coordinate or velocity of a joint, by its index, stays between two bounds.

    The quantity is a "position" [rad, m], a "velocity" [rad/s, m/s] or an "effort", what controllers ask for in all [N m, N].
    """

    joint: str
    index: int
    quantity: str
    lower: float
    upper: float


class JointLimits:
    """Those of a mechanism in one simulation, with force elements of :mod:`sarrus.control`; mode is "warn", "stop" or "ignore".

    Raises ModelError for a limit that is to stop a joint and cannot.
    """

    def __init__(self, mechanism: LoopFunctions, mode: str, elements: Sequence[ForceElement]) -> None:
        self.watched: list[Limit] = []
        self.terms: list[tuple[int, int, float, float]] = []  # of the core
        self.end_stops: list[EndStop] = []
        self.effort_limits: list[float] = []
        stopped = {(e.joint, e.index) for e in elements if isinstance(e, EndStop)}
        self.enforced = {(*place, "position") for place in stopped}
        if mode == "ignore":
            return
        most = np.full(mechanism.nv + sum(joint.type.nv for joint in mechanism._closing_joints), np.inf)
        for name in (*mechanism.joints, *mechanism.loop_joints):
            joint = mechanism.joint(name)
            limits = joint.limits if mode == "stop" else None
            for k in () if limits is None else np.flatnonzero(np.isfinite(limits).any(axis=0)).tolist():
                try:
                    coordinate(mechanism, name, k, "an end stop")
                except ModelError as error:
                    cure = "Take them away, or give limits='warn'"
                    raise ModelError(f"limits of '{name}' cannot stop it: {error}. {cure}") from None
                if (name, k) not in stopped:
                    self.end_stops.append(EndStop(name, index=k))
                    self.enforced.add((name, k, "position"))
            fast, strong = joint.type.velocity_limit, joint.type.effort_limit
            self._watch(name, "position", joint._all_q.start, joint.limits)
            self._watch(name, "velocity", joint._all_v.start, None if fast is None else (-fast, fast))
            self._watch(name, "effort", joint._all_v.start, None if strong is None else (-strong, strong))
            if strong is not None:
                most[joint._all_v] = strong
        if mode == "stop" and np.isfinite(most).any():
            self.effort_limits = most.tolist()
            self.enforced |= {(w.joint, w.index, "effort") for w in self.watched if w.quantity == "effort"}

    def _watch(self, joint: str, quantity: str, first: int, limits: Any) -> None:
        for k, (lower, upper) in enumerate(zip(*(() if limits is None else limits), strict=True)):
            if np.isfinite([lower, upper]).any():
                self.watched.append(Limit(joint, k, quantity, float(lower), float(upper)))
                slack = ROUNDING * (1.0 + np.abs([lower, upper]))
                self.terms.append((QUANTITIES.index(quantity), first + k, lower - slack[0], upper + slack[1]))

    def exceeded(self, record: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Limits that were exceeded, as a record says: which, when first [s], and how far."""
        left = []
        for limit, term, (time, excess) in zip(self.watched, self.terms, record[HEAD:].reshape(-1, 2), strict=True):
            if excess:
                reached = term[3 if excess > 0.0 else 2] + excess
                left.append({**asdict(limit), "time": float(time), "reached": float(reached)})
        return left

    def warn(self, exceeded: Sequence[dict[str, Any]], runs: str = "") -> None:
        """Of limits that were left though nothing enforces them."""
        said = [x for x in exceeded if (x["joint"], x["index"], x["quantity"]) not in self.enforced]
        if not said:
            return
        x = said[0]
        cure = "nothing enforces it: limits='stop' puts end stops there and keeps efforts within limits"
        if x["quantity"] == "velocity":
            cure = "a velocity limit is watched only"
        others = f"; so do {len(said) - 1} others" if said[1:] else ""
        which = f"'{x['joint']}'" + (f"[{x['index']}]" if x["index"] else "")
        warn_caller(
            f"{x['quantity']} of joint {which} leaves its limits ({x['lower']:.6g}, {x['upper']:.6g}) at t = {x['time']:.6g} s "
            f"and reaches {x['reached']:.6g}{runs}{others}; {cure}. limits='ignore' says nothing of it",
            LimitWarning,
        )


def ends_off_loops(robot: LoopFunctions, q: Array, v: Array, time: float) -> NDArray[np.bool_]:
    """Whether accelerations mean anything where runs end (..., nq), (..., nv)."""
    _, status = robot.forward_dynamics(q, v, np.zeros(robot.nv), time=time, return_status=True)
    return np.asarray(status == Status.OFF_LOOPS)


def warn_of_drift(stabilisation: str, off: NDArray[np.bool_]) -> None:
    """Of runs that end off the loops."""
    if not off.any():
        return
    which = f"{off.sum()} of {off.size} runs end" if off.ndim else "the run ends"
    warn_caller(
        f"stabilisation='{stabilisation}' has not held the loops: {which} off them, where accelerations mean nothing. Give "
        "stabilisation='projection', a smaller dt, or other gains",
        DriftWarning,
    )


def warn_of_stiffness(
    method: str, dt: float, largest: float, runs: str = "", *, eaten: float = 0.0, steps: int = 0
) -> bool:
    """Where |rate| dt of the forces is more than the method's steps can follow, or they eat a motion."""
    stable = _core.methods[method].stable
    swings = steps * largest > 2.0 * np.pi  # a run of less than a period is not to be judged
    share = -np.expm1(-eaten) if swings else 0.0
    if largest > stable * (1.0 + TOLD):
        what = (
            f"is unstable for the forces that act: their fastest rate is {largest / dt:.3g}/s, {largest:.3g} a step, where "
            f"it can follow {stable:.3g}"
        )
        shorter = dt * stable / largest
    elif share > EATEN:
        what = f"takes {100.0 * share:.2g} % of the energy of the fastest motion that the forces make, {largest / dt:.3g} rad/s, which nothing damps so"
        shorter = dt * (EATEN / eaten) ** 0.2  # the loss of a second goes with the fifth power
    else:
        return False
    warn_caller(
        f"'{method}' with dt = {dt:.3g} s {what}{runs}; the motion is not to be trusted. Give method='implicit_midpoint', or "
        f"dt = {shorter:.1g} or less",
        StiffnessWarning,
    )
    return True
