"""Identification of masses, friction and springs from measured motions and motor efforts, also for mechanisms with loops.

:func:`identify` fits the equations of motion. :func:`identify_runs` fits simulated motions, and requires no accelerations. :func:`exciting_motion`
optimises motions for the measurement.
"""

from .identify import exciting_motion, identify, identify_runs
from .model import Samples

__all__ = ["Samples", "exciting_motion", "identify", "identify_runs"]


def __dir__() -> list[str]:
    return sorted(__all__)
