"""What happens on the way of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from .._arrays import Array, is_masked
from ..errors import StateError

__all__ = ["Event"]

EventFunction = Callable[[float, Array, Array], float]


@dataclass(frozen=True, eq=False)
class Event:
    """Something that happens where a function of time and state goes through zero.

    Attributes
    ----------
    function : of (t, q, v), a number
    name : under which its times are found in ``Trajectory.events``, of one simulation no two alike
    terminal : whether the simulation ends there
    direction : 1: only where the function rises, -1: only where it falls, 0: both

    Raises
    ------
    TypeError, ValueError
        The function is none, or there is no such direction.
    """

    function: Callable[[float, Array, Array], float]
    name: str = "event"
    terminal: bool = True
    direction: int = 0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"an Event watches a function (t, q, v); got {self.function!r}")
        if not isinstance(self.name, str):
            raise TypeError(f"name of an Event must be a str; got {self.name!r}")
        if not isinstance(self.direction, Real) or self.direction not in (-1, 0, 1):
            raise ValueError(f"direction of event '{self.name}' must be 1, -1 or 0; got {self.direction!r}")

    def _value(self, t: float, q: Array, v: Array) -> float:
        """Of the function; TypeError or StateError where it is no finite number."""
        returned: Any = self.function(t, q, v)
        if is_masked(returned):
            raise TypeError(
                f"event '{self.name}' returned a masked number; it must return one that is not, such as q[0] - 1.0"
            )
        x = returned.item() if isinstance(returned, np.ndarray) and returned.ndim == 0 else returned
        if isinstance(x, bool) or not isinstance(x, Real):
            raise TypeError(f"event '{self.name}' returned {returned!r}; it must return one number, such as q[0] - 1.0")
        try:
            number = float(x)
        except OverflowError:  # of an integer
            number = np.inf
        if not np.isfinite(number):
            raise StateError(f"event '{self.name}' returned {returned!r} at t = {t:.9g}: it must be finite")
        return number


def as_events(value: Any) -> list[Event]:
    if isinstance(value, Event) or callable(value):
        value = [value]
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"events must be Event or functions (t, q, v), one or several; got {value!r}")
    events = list(value)
    for event in events:
        if not isinstance(event, Event) and not callable(event):
            raise TypeError(f"events must be Event or functions (t, q, v); one of them is {event!r}")
    events = [event if isinstance(event, Event) else Event(event) for event in events]
    names = [event.name for event in events]
    for name in (name for k, name in enumerate(names) if name in names[:k]):
        raise ValueError(
            f"two events are named '{name}', under which their times are found; name each: Event(function, name=...)"
        )
    return events
