"""Between the effort that a controller asks for and the one that a joint feels."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

Number = float | ArrayLike


@dataclass(frozen=True, eq=False)
class ActuatorDynamics:
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
