"""Control through a clock: controllers that are asked at samples, and efforts that were computed beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

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


@dataclass(frozen=True, eq=False)
class Sampled:
    """Controllers that are asked every ``period``, and whose efforts are held in between (zero-order hold).

    The first sample is at the start of the run. The efforts of the sample at t act from t + ``delay`` on, until those of the next one do;
    before the first ones act there are none. Steps of every method end where a sample or a change of effort is due, those of fixed
    length too, so that no step sees a jump; a function is asked once a sample where `dt` divides the period and no event is watched for in
    longer steps. A PID's integral goes on by Euler's method, one period a sample. What is held is part of the state: behind the internal
    states in ``Trajectory.z``, and in checkpoints. With ``delay=0`` and a period of one step of "euler" or "semi_implicit" the motion is that of
    the controller itself, to the last bit.

    Attributes
    ----------
    law : a function (t, q, v) -> tau (nv,), a :class:`TaskControl`, :class:`PID`, :class:`ComputedTorque`, :class:`PDPlus`,
        :class:`GravityCompensation` or :class:`PrescribedEffort`, or several of these in a list
    period, delay : [s]; the delay may be a part of the period, or several periods
    quantisation : :class:`Quantisation`, or the step of all encoders [rad or m]

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> hold = sarrus.control.PID("pivot", proportional=100.0, derivative=20.0, target=0.5)
    >>> slow = sarrus.control.Sampled(hold, period=0.02, delay=0.01)
    >>> run = sarrus.simulate(robot, [0.0], [0.0], 4.0, controller=slow)
    >>> float(run.q[-1, 0].round(2)), run.tau[[0, 9, 10, 29, 30], 0].round(2).tolist()
    (0.46, [0.0, 0.0, 50.0, 50.0, 39.75])
    """

    law: Any
    period: float = 1e-3
    delay: float = 0.0
    quantisation: Quantisation | float | None = None


@dataclass(frozen=True, eq=False)
class Efforts:
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
    >>> run = sarrus.simulate(robot, [0.0], [0.0], 0.3, sarrus.control.Efforts([0.1, 0.2], [[1.0], [-1.0]]))
    >>> run.tau[[50, 150, 250], 0].tolist()
    [0.0, 1.0, -1.0]
    """

    times: ArrayLike
    u: ArrayLike
    joints: Sequence[str] | None = None
    hold: bool = True
