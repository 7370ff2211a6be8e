"""Force elements of a simulation (controllers, friction, contact, end stops), clutches and locks, and paths through waypoints."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .._renamed import raise_renamed

if TYPE_CHECKING:
    from . import elements, path, switches, tasks, timing
    from .element import ForceElement as ForceElement
    from .elements import *  # noqa: F403
    from .path import *  # noqa: F403
    from .switches import *  # noqa: F403
    from .tasks import *  # noqa: F403
    from .timing import *  # noqa: F403

    __all__: list[str] = []
    for _module in (elements, path, switches, tasks, timing):
        __all__ += _module.__all__

_MODULES = ("elements", "switches", "path", "tasks", "timing")  # in the order of their loading times


def __getattr__(name: str) -> Any:
    modules = (importlib.import_module(f"{__name__}.{module}") for module in _MODULES)
    if name == "__all__":
        return [each for module in modules for each in module.__all__]
    home = next((module for module in modules if name in (*module.__all__, "ForceElement")), None)
    if home is None:
        raise_renamed(__name__, name)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted(__getattr__("__all__"))
