"""Between the effort that a controller asks for and the one that a joint feels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import ArrayLike
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError
from .element import Element, Run, number, numbers_of

Number = float | ArrayLike
MOST = 1e300  # for infinity, where compilers are told that numbers are finite


@dataclass(frozen=True, eq=False)
class ActuatorDynamics(Element):
    """A drive at a joint: it delivers what controllers ask for along a velocity with a lag, and less the faster it turns.

    First order: T dz/dt = u - z. Second order: d2z/dt2 = w^2 (u - z) - 2 d w dz/dt. Here u is what all controllers ask for, functions of
    the caller too, and z is delivered, from zero at the start. A torque-speed line then keeps it, where it drives the joint, within
    stall (1 - |v|/v0), and where it brakes it, within stall.

    The inertia of a rotor behind a gear is the joint's own ``armature`` = gear_ratio^2 J, which all dynamics know: it has no place here.

    Attributes
    ----------
    joint, index : the joint, and which of its velocities
    time_constant : T of a lag of first order [s]; None: none
    natural_frequency, damping_ratio : w [rad/s] and d of one of second order; None: none
    torque_speed : (stall torque, no-load speed) of the motor [N m, rad/s or N, m/s]; None: no such line
    gear_ratio : turns of the motor for one of the joint: at the joint the torque is so many times larger, the speed so many times less

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> drive = sarrus.control.ActuatorDynamics("pivot", time_constant=0.1)
    >>> run = sarrus.simulate(robot, [0.0], [0.0], 0.3, [sarrus.control.PrescribedEffort("pivot", 2.0), drive])
    >>> bool(np.allclose(run.tau[:, 0], 2.0 * (1.0 - np.exp(-run.t / 0.1))))
    True
    """

    joint: str
    time_constant: Number | None = None
    natural_frequency: Number | None = None
    damping_ratio: Number = 0.7
    torque_speed: tuple[Number, Number] | None = None
    gear_ratio: Number = 1.0
    index: int = 0

    one_a_velocity = True

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        """Its lag and its line, at the joint."""
        if self.time_constant is not None and self.natural_frequency is not None:
            raise ModelError(
                f"ActuatorDynamics of '{self.joint}' has a time_constant (first order) or a natural_frequency (second order); got both"
            )
        order = 1 if self.time_constant is not None else 2 if self.natural_frequency is not None else 0
        if order == 0 and self.torque_speed is None:
            raise ModelError(
                f"ActuatorDynamics of '{self.joint}' does nothing: give a time_constant, a natural_frequency or torque_speed"
            )
        bandwidth: Any = 1.0
        if order == 1:
            bandwidth = 1.0 / numbers_of(self, time_constant="positive")[0]
        if order == 2:
            (bandwidth,) = numbers_of(self, natural_frequency="positive")
        (gear,) = numbers_of(self, gear_ratio="positive")
        line: Any = (np.inf, np.inf) if self.torque_speed is None else self.torque_speed
        if not isinstance(line, (tuple, list, np.ndarray)) or len(line) != 2:
            raise ModelError(f"torque_speed of ActuatorDynamics is (stall torque, no-load speed); got {line!r}")
        stall, fastest = (number("torque_speed of ActuatorDynamics", x, "positive or infinite") for x in line)
        at_joint = {"stall": np.minimum(stall * gear, MOST), "no_load_speed": np.minimum(fastest / gear, MOST)}
        return {"order": order, "bandwidth": bandwidth, **at_joint}
