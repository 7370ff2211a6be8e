"""What a machine's true masses, friction and springs are, from its motions and the efforts of its motors, loops included.

:func:`identify` compares equations, :func:`identify_runs` runs, where no accelerations are known; :func:`exciting_motion` proposes motions that tell much.
"""

from .excitation import exciting_motion
from .identify import identify, identify_runs
from .samples import Samples

__all__ = ["Samples", "exciting_motion", "identify", "identify_runs"]


def __dir__() -> list[str]:
    return sorted(__all__)
