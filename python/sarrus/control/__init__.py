"""Force elements of a simulation: controllers, friction, contact, end stops, and motions to follow."""

from . import elements, task_control, tasks
from .elements import *  # noqa: F403
from .elements import ForceElement as ForceElement
from .task_control import *  # noqa: F403
from .tasks import *  # noqa: F403

__all__ = [*elements.__all__, *task_control.__all__, *tasks.__all__]


def __dir__() -> list[str]:
    return sorted(__all__)
