"""Control through a clock: controllers that are asked at samples, and efforts that were computed beforehand."""

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
    """What a sampled controller sees, and gives, in steps: the nearest multiple of each; 0: as it is.

    Attributes
    ----------
    position : of encoders, 2 pi / counts per turn [rad or m]; a number for all coordinates, but for quaternions, or joint to number
    velocity : of tachometers [rad/s or m/s], as well
    effort : of what it asks motors for [N m or N], as well
    """

    position: Steps = 0.0
    velocity: Steps = 0.0
    effort: Steps = 0.0

    def _values(self, mechanism: LoopFunctions) -> dict[str, list[float]]:
        names = ("position", "velocity", "effort")
        return {f"{name}_step": _steps(mechanism, name, getattr(self, name)) for name in names}


def _steps(mechanism: LoopFunctions, quantity: str, periods: Any) -> list[float]:
    """Of every coordinate or velocity, in the order of the tree's and of those of joints that close loops; none where all are zero."""
    what = f"{quantity} of Quantisation"
    names = (*mechanism.joints, *mechanism.loop_joints)
    places = {name: getattr(mechanism.joint(name), "_all_q" if quantity == "position" else "_all_v") for name in names}
    steps = np.zeros(max((place.stop for place in places.values()), default=0))
    for name, step in periods.items() if isinstance(periods, Mapping) else ((name, periods) for name in names):
        joint, size = mechanism.joint(name), constant(what, step)
        if size < 0.0:
            raise ModelError(f"{what} must not be negative; got {step!r}")
        if quantity == "position" and joint.type.quaternion:
            if isinstance(periods, Mapping):
                raise ModelError(f"{what} needs coordinates that add up; '{name}' is {joint.type}")
            continue
        steps[places[name]] = size
    return steps.tolist() if steps.any() else []


@dataclass(frozen=True, eq=False)
class SampleAndHold(Element):
    """Controllers that are asked every ``period``, and whose efforts are held in between (zero-order hold).

    The first sample is at the start of the run. The efforts of the sample at t act from t + ``delay`` on, until those of the next one do;
    before the first ones act there are none. Steps of every method end where a sample or a change of effort is due, those of fixed
    length too, so that no step sees a jump; a function is asked once a sample where `dt` divides the period and no event is watched for in
    longer steps. A PID's integral goes on by Euler's method, one period a sample. What is held is part of the state: behind the internal
    states in ``Trajectory.internal_state``, and in checkpoints. With ``delay=0`` and a period of one step of "euler" or "semi_implicit" the motion is that of
    the controller itself, to the last bit.

    Attributes
    ----------
    law : a function (t, q, v) -> tau (nv,), a :class:`TaskControl`, :class:`PID`, :class:`ComputedTorque`, :class:`PDPlus`,
        :class:`GravityCompensation` or :class:`FeedforwardEffort`, or several of these in a list
    period, delay : [s]; the delay may be a part of the period, or several periods
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
        """All but its controllers."""
        period, delay = (constant(f"{name} of SampleAndHold", getattr(self, name)) for name in ("period", "delay"))
        number("period of SampleAndHold", period, "positive")
        if not 0.0 <= delay <= 1e4 * period:
            raise ModelError(
                f"delay of SampleAndHold must be from 0 to 10000 periods; got {delay!r} s, the period being {period!r} s"
            )
        steps = self.quantisation
        if not isinstance(steps, Quantisation):
            steps = Quantisation(position=0.0 if steps is None else steps)
        return steps._values(mechanism)


@dataclass(frozen=True, eq=False)
class EffortTable(Element):
    """Efforts of motors that were computed beforehand: an optimal trajectory's, a recording's.

    Before the first time there are none, after the last one they stay. Steps end at the times of efforts that are held.

    Attributes
    ----------
    times : (n,) [s], each after the one before
    u : (n, m) [N m, N], or (runs, n, m) for :func:`~sarrus.simulate_many`
    joints : whose velocities, m in all, the columns are; default: the actuated joints in the order of ``mechanism.actuated``, or, where none is
        marked, all joints of the tree
    hold : whether each row acts until the next one does; else efforts go from row to row in straight lines

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
            raise ShapeError(f"times of EffortTable are (n,), the same in all runs; got {times.shape}")
        if not (np.diff(times) > 0.0).all():
            raise ModelError("times of EffortTable must increase")
        if isinstance(self.joints, str) or not (self.joints is None or isinstance(self.joints, Iterable)):
            raise TypeError(f"joints of EffortTable are a sequence of names; got {self.joints!r}")
        names = tuple(mechanism.actuated or mechanism.joints) if self.joints is None else tuple(self.joints)
        motors = velocities(mechanism, names)
        if u.ndim not in (2, 3) or u.shape[-2:] != (len(times), len(motors)):
            raise ShapeError(
                f"u of EffortTable is (n, m) = ({len(times)}, {len(motors)}) for joints {', '.join(names)}, or (runs, n, m); got {u.shape}"
            )
        return {"times": times.tolist(), "motors": motors, "u": u.reshape(*u.shape[:-2], -1)}
