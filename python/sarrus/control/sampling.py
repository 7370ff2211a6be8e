"""Digital control: sampled controllers with zero-order hold and delay, and tables of precomputed efforts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._arrays import ArrayLike
from ..dynamics.loop_operations import LoopFunctions
from .element import Element, Run, entries, functions_and_elements

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
        """Return the controllers, which may be functions, and the steps of quantities."""
        functions, controllers = functions_and_elements(self.law)
        steps = vars(self.quantisation) if isinstance(self.quantisation, Quantisation) else self.quantisation
        inner = entries(mechanism, controllers, run)
        return {"controllers": inner, "calls": bool(functions), "quantisation": steps}


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
        if isinstance(self.joints, str) or not (self.joints is None or isinstance(self.joints, Iterable)):
            raise TypeError(f"joints of EffortTable must be a sequence of names; got {self.joints!r}")
        return {"joints": None if self.joints is None else tuple(self.joints)}
