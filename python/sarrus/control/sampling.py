"""Digital control: sampled controllers with zero-order hold and delay, and tables of precomputed efforts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import ArrayLike
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ShapeError
from .coordinates import velocities
from .element import Element, Run, array, constant, number

__all__ = ["EffortTable", "Quantisation", "SampleAndHold"]

Steps = float | Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Quantisation:
    """Quantisation of a sampled controller's inputs and outputs, which are rounded to multiples of a step; 0: no rounding.

    Attributes
    ----------
    position : step of encoders, 2 pi / counts per revolution [rad or m]: a number for all coordinates except quaternions, or joint to number
    velocity : step of tachometers [rad/s or m/s]: a number, or joint to number
    effort : step of motor commands [N m or N]: a number, or joint to number
    """

    position: Steps = 0.0
    velocity: Steps = 0.0
    effort: Steps = 0.0

    def _values(self, mechanism: LoopFunctions) -> dict[str, list[float]]:
        names = ("position", "velocity", "effort")
        return {f"{name}_step": _steps(mechanism, name, getattr(self, name)) for name in names}


def _steps(mechanism: LoopFunctions, quantity: str, periods: Any) -> list[float]:
    """Return the steps of all coordinates or velocities, of tree joints, then of loop joints; empty if all steps are zero."""
    label = f"{quantity} of Quantisation"
    names = (*mechanism.joints, *mechanism.loop_joints)
    places = {name: getattr(mechanism.joint(name), "_all_q" if quantity == "position" else "_all_v") for name in names}
    steps = np.zeros(max((place.stop for place in places.values()), default=0))
    for name, step in periods.items() if isinstance(periods, Mapping) else ((name, periods) for name in names):
        joint, size = mechanism.joint(name), constant(label, step)
        if size < 0.0:
            raise ModelError(f"{label} must not be negative; got {step!r}")
        if quantity == "position" and joint.type.quaternion:
            if isinstance(periods, Mapping):
                raise ModelError(f"{label} needs a joint without quaternion; '{name}' is {joint.type}")
            continue
        steps[places[name]] = size
    return steps.tolist() if steps.any() else []


@dataclass(frozen=True, eq=False)
class SampleAndHold(Element):
    """Digital controller: controllers that are evaluated once per ``period``, with a zero-order hold and a delay.

    The first sample is at the initial time. The efforts that are computed from the sample at t act from t + ``delay`` until the efforts of the next
    sample act. Before the first efforts act, the efforts are zero. Steps of every method end at samples and at changes of
    effort, so that efforts are constant within a step. A function is called once per sample if `dt` divides the period and there are no events
    within steps. The integral of a PID is computed by Euler's method with one step per period. The current efforts are part of the state: they follow
    the internal states in ``Trajectory.internal_state``, and are in checkpoints. With ``delay=0`` and a period of one step of "euler" or
    "semi_implicit", the motion is bit for bit the same as without SampleAndHold.

    Attributes
    ----------
    law : controller: a function (t, q, v) -> tau (nv,) [N m, N], a :class:`TaskControl`, :class:`PID`, :class:`ComputedTorque`, :class:`PDPlus`,
        :class:`GravityCompensation` or :class:`FeedforwardEffort`, or a list of these
    period, delay : sampling period and delay of the efforts [s]; the delay may be shorter or longer than the period
    quantisation : :class:`Quantisation`, or the step of all encoders [rad or m]

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> hold = sarrus.control.PID("pivot", proportional=100.0, derivative=20.0, target=0.5)
    >>> slow = sarrus.control.SampleAndHold(hold, period=0.02, delay=0.01)
    >>> run = sarrus.simulate(robot, [0.0], [0.0], 4.0, controller=slow)
    >>> float(run.q[-1, 0].round(2)), run.tau[[0, 9, 10, 29, 30], 0].round(2).tolist()
    (0.46, [0.0, 0.0, 50.0, 50.0, 39.75])
    """

    law: Any
    period: float = 1e-3
    delay: float = 0.0
    quantisation: Quantisation | float | None = None

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        """Return all fields except the controllers."""
        period, delay = (constant(f"{name} of SampleAndHold", getattr(self, name)) for name in ("period", "delay"))
        number("period of SampleAndHold", period, "positive")
        if not 0.0 <= delay <= 1e4 * period:
            raise ModelError(f"delay of SampleAndHold must be from 0 to 10000 periods of {period!r} s; got {delay!r} s")
        steps = self.quantisation
        if not isinstance(steps, Quantisation):
            steps = Quantisation(position=0.0 if steps is None else steps)
        return steps._values(mechanism)


@dataclass(frozen=True, eq=False)
class EffortTable(Element):
    """Table of motor efforts over time, such as those of an optimal trajectory or a recording.

    Before the first time the efforts are zero; after the last time they are constant. With `hold`, steps end at the times of the table.

    Attributes
    ----------
    times : (n,) increasing times [s]
    u : (n, m) efforts [N m, N], or (runs, n, m) for :func:`~sarrus.simulate_many`
    joints : names of the joints whose m velocities are the columns of `u`; default: the actuated joints in the order of
        ``mechanism.actuated``, or all tree joints if no joint is actuated
    hold : True: each row acts until the time of the next row (zero-order hold); False: linear interpolation

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> run = sarrus.simulate(robot, [0.0], [0.0], 0.3, sarrus.control.EffortTable([0.1, 0.2], [[1.0], [-1.0]]))
    >>> run.tau[[50, 150, 250], 0].tolist()
    [0.0, 1.0, -1.0]
    """

    times: ArrayLike
    u: ArrayLike
    joints: Sequence[str] | None = None
    hold: bool = True

    @property
    def _kind(self) -> str:
        return "ZeroOrderHold" if self.hold else "EffortTable"

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        times, u = array("times of EffortTable", self.times), array("u of EffortTable", self.u)
        if times.ndim != 1 or not len(times):
            raise ShapeError(f"times of EffortTable must be (n,), the same in all runs; got {times.shape}")
        if not (np.diff(times) > 0.0).all():
            raise ModelError("times of EffortTable must increase")
        if isinstance(self.joints, str) or not (self.joints is None or isinstance(self.joints, Iterable)):
            raise TypeError(f"joints of EffortTable must be a sequence of names; got {self.joints!r}")
        names = tuple(mechanism.actuated or mechanism.joints) if self.joints is None else tuple(self.joints)
        motors = velocities(mechanism, names)
        if u.ndim not in (2, 3) or u.shape[-2:] != (len(times), len(motors)):
            raise ShapeError(
                f"u of EffortTable must be (n, m) = ({len(times)}, {len(motors)}) for joints {', '.join(names)}, or (runs, n, m); got {u.shape}"
            )
        return {"times": times.tolist(), "motors": motors, "u": u.reshape(*u.shape[:-2], -1)}
