"""Code that the recipe adds to python/sarrus/control/tasks.py, after its imports."""

from collections.abc import Sequence
from dataclasses import dataclass

from sarrus.control.tasks import Following, Gain
from sarrus.laws import Law


@dataclass(frozen=True, eq=False)
class DistanceTask(Following):
    """The distance between the origins of two frames is to follow a law or number [m]; gains as of :class:`FrameTask`."""

    frame: str
    reference: str
    target: Law | Gain | Sequence[Sequence[Law | float]]
