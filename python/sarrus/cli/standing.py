"""What keeps a mechanism of the gallery up in a demonstration: its motors, each a PID that swings about where it stands."""

from __future__ import annotations

import numpy as np

from .._arrays import Array
from ..control import PID, PrescribedEffort
from ..laws import harmonic
from ..mechanism import Mechanism

STIFF = 30.0  # [rad/s] the frequency of each motor by itself, critically damped
ANGLE, SHIFT = 0.2, 0.03  # by which they swing [rad, m]
RATE, APART = 3.0, 1.1  # [rad/s] and how far one is ahead of the next [rad]


def servos(robot: Mechanism, q: Array) -> list[PID | PrescribedEffort]:
    """For motors, or all joints of a tree that has none: what bears the weight at q, and a PID each."""
    names = [name for name in robot.actuated or robot.joints if all(robot.joint(name).type.rates)]
    motors = [(name, index) for name in names for index in range(robot.joint(name).type.nv)]
    rest, S = np.zeros(robot.nv), robot.actuation_matrix(q, actuated=names)
    if not robot.nc:
        weight = robot.inverse_dynamics(q, rest, rest) @ S
    elif robot.actuator_efforts(q, rest, rest, actuated=names, exact=True, return_status=True)[1] == 0:
        weight = robot.actuator_efforts(q, rest, rest, actuated=names)
    else:
        weight = np.zeros(len(motors))
    # how fast a unit of effort moves its own motor, the others free
    free = robot.forward_dynamics(q, rest, S @ weight)
    quick = [float((robot.forward_dynamics(q, rest, S @ weight + column) - free) @ column) for column in S.T]
    coordinates = robot.joint_states(q).q
    elements: list[PID | PrescribedEffort] = []
    for k, (name, index) in enumerate(motors):
        inertia, phase = 1.0 / quick[k], APART * k
        swing = SHIFT if robot.joint(name).type.coordinates[index][1] == "m" else ANGLE
        target = harmonic(swing, rate=RATE, phase=phase, offset=float(coordinates[name][index] - swing * np.sin(phase)))
        gains = inertia * STIFF**2, inertia * STIFF**3 / 10.0, 2.0 * inertia * STIFF
        elements += [PrescribedEffort(name, float(weight[k]), index), PID(name, *gains, target=target, index=index)]
    return elements
