"""Force elements of a simulation: controllers, friction, contact, end stops, and motions to follow."""

from .elements import *  # noqa: F403
from .elements import ForceElement as ForceElement
from .elements import __all__ as __all__


def __dir__() -> list[str]:
    return sorted(__all__)
