"""Functions of the caller's that a simulation asks on its way: controllers, and events with their zeros; what they return is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from .._arrays import Array, checked_text, is_masked, real_array
from ..errors import OF_MOTORS, ShapeError, StateError
from ..mechanism import Mechanism

__all__ = ["Event"]

Controller = Callable[[float, Array, Array], Any]
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
        checked_text("name of an Event", self.name)
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


# ---- controllers -------------------------------------------------------------------------------------------------------


def force(mechanism: Mechanism, functions: Sequence[Controller]) -> Controller:
    """Their sums as generalised forces (2, nv): efforts of motors, and what wrenches do."""
    nv = mechanism.nv

    def forces(t: float, q: Array, v: Array) -> Array:
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            return np.full((2, nv), np.nan)  # it diverges, which is not the controller's fault
        total = np.zeros((2, nv))
        for function in functions:
            answer, wrenches = function(t, q, v), None
            # a tuple of nv numbers is an effort too
            if isinstance(answer, tuple) and len(answer) == 2 and (answer[1] is None or isinstance(answer[1], Mapping)):
                answer, wrenches = answer
            total[0] += _returned(answer, nv, "tau")
            for frame, wrench in (wrenches or {}).items():
                total[1] += mechanism.jacobian(q, frame).T @ _returned(wrench, 6, f"a wrench on '{frame}'")
        if not np.isfinite(total).all():
            raise StateError(f"the controller returned {total.sum(axis=0)} at t = {t:.9g}: it must be finite")
        return total

    return forces


def sampled_force(mechanism: Mechanism, functions: Sequence[Controller]) -> Controller:
    """Efforts (nv,) of functions that are asked at samples, which give no wrenches."""

    def checked(function: Controller) -> Controller:
        def efforts(t: float, q: Array, v: Array) -> Any:
            answer = function(t, q, v)
            if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping) and answer[1]:
                raise TypeError(
                    f"a function in SampleAndHold returns efforts ({mechanism.nv},), which are held; it returned wrenches too: give those by a "
                    "function beside SampleAndHold, or return tau + mechanism.jacobian(q, frame).T @ wrench"
                )
            return answer

        return efforts

    both = force(mechanism, [checked(function) for function in functions])
    return lambda t, q, v: both(t, q, v)[0]


def _returned(value: Any, size: int, what: str) -> Array:
    """What a controller returned, as (size,) numbers; one number will do where size is 1."""
    if value is None:
        raise TypeError(f"the controller returned None; it must return {what} ({size},)")
    try:
        x = real_array(f"{what} of the controller", value)
    except ValueError:
        raise ShapeError(f"the controller returned {value!r}; it must return {what} ({size},)") from None
    if x.shape != (size,) and not (size == 1 and x.shape == ()):
        fault = f"the controller returned shape {x.shape}; it must return {what} ({size},)"
        raise ShapeError(fault + OF_MOTORS * (what == "tau"))
    return x
