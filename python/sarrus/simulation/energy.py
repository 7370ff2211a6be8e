"""Whether runs have energy that nothing gave them, or lost some that nothing took: then steps are too long for the motion, whatever acts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..control.elements import Contact, EndStop, Stiction
from ..mechanism import Mechanism
from .setup import Prepared
from .trajectory import Trajectory

__all__: list[str] = []

Array = NDArray[np.float64]

WRONG = 0.02  # of the largest kinetic energy
ROUNDING = 1e-9  # of the potential energies, whose zero is far away
FEWEST = 8  # states, of which the largest kinetic energy is known
MOST = 32  # states of a run that are looked at, at irregular distances: a motion may be periodic
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
STORES = (Contact, EndStop, Stiction)  # forces that give back at most what they took


def energy_error(prepared: Prepared, q: Array, v: Array, run: Callable[[int], Trajectory]) -> Array:
    """(runs,) by how much the energy in the end of runs (runs, n, nq) is wrong, as a share of the largest kinetic energy; 0: nothing is known to be.

    What stores energy may give back what it had in the beginning: then `run`, the Trajectory of a run, has forces there. Methods of first order
    are not judged: who takes them knows that their energy swings, or grows.
    """
    robot, elements = prepared.setup.mechanism, prepared.elements
    unknown = prepared.functions or any(not isinstance(element, STORES) for element in elements)
    if q.shape[1] < FEWEST or unknown or _core.methods[prepared.setup.method].order < 2:
        return np.zeros(len(q))
    share = _change(robot, q, v, run)
    if not share.any() or _driven(robot):
        return np.zeros(len(q))
    if elements or _brakes(robot):
        share[share < 0.0] = 0.0
    for k in np.flatnonzero(share) if elements else ():
        share[k] *= not run(int(k)).tau[0].any()
    return share


def _change(robot: Mechanism, q: Array, v: Array, run: Callable[[int], Trajectory]) -> Array:
    """(runs,) of the energy, from the first state to the last, as a share of the largest kinetic energy; 0 where it is small."""
    last = q.shape[1] - 1
    some = np.unique([0, last, *(last * (np.arange(1, MOST - 1) * GOLDEN % 1.0)).astype(int)])
    kinetic = robot.kinetic_energy(q[:, some], v[:, some])
    if any(joint.type.stiffness.any() for joint in robot._closing_joints):  # of the turns that each run has counted
        potential = np.array([run(k).potential_energy[[0, -1]] for k in range(len(q))])
    else:
        potential = robot.potential_energy(q[:, [0, last]])
    change, largest = kinetic[:, -1] - kinetic[:, 0] + potential[:, 1] - potential[:, 0], kinetic.max(axis=1)
    seen = np.abs(change) > WRONG * largest + ROUNDING * np.abs(potential).max(axis=1)  # never where a run failed: NaN
    return np.asarray(np.divide(change, largest, out=np.zeros(len(q)), where=seen & (largest > 0.0)))


def _driven(robot: Mechanism) -> bool:
    """Whether laws of time or Pfaffian rows may bring energy."""
    d = robot.description
    return (
        any(spec.laws for spec in d.joints)
        or any(hasattr(spec, "rows") or spec.prescribed(0.0) for spec in d.constraints)
        or bool(robot.nc and robot.constraint_velocity(robot.neutral()).any())
    )


def _brakes(robot: Mechanism) -> bool:
    joints = [spec.joint for spec in robot.description.joints]
    return any(np.any(joint.damping) or np.any(joint.friction) for joint in joints) or any(
        spring.damping for spring in robot.description.springs
    )
