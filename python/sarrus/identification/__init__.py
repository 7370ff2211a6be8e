"""Identification of masses, friction and springs of a machine from its motions and the efforts of its motors, loops included.

:func:`identify` fits equations of motion; :func:`identify_runs` fits simulated runs, without accelerations. :func:`exciting_motion` optimises motions for it.
"""

from .excitation import exciting_motion
from .identify import identify, identify_runs
from .samples import Samples

__all__ = ["Samples", "exciting_motion", "identify", "identify_runs"]


def __dir__() -> list[str]:
    return sorted(__all__)
