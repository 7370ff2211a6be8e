"""Python functions of the caller in a simulation, with checks of their return values: controllers and events."""

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
    """Event of a simulation, at zeros of a function of time and state.

    Attributes
    ----------
    function : function of time [s], configuration (nq,) [rad, m] and velocity (nv,) [rad/s, m/s] that returns a number; the event occurs at its zeros
    name : key of the event times in ``Trajectory.events``, unique within a simulation
    terminal : True ends the simulation at the event
    direction : zeros that count. 1: the function increases; -1: it decreases; 0: both

    Raises
    ------
    TypeError, ValueError
        The function is not callable, or the direction is invalid.
    """

    function: Callable[[float, Array, Array], float]
    name: str = "event"
    terminal: bool = True
    direction: int = 0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function of an Event must be callable (t, q, v); got {self.function!r}")
        checked_text("name of an Event", self.name)
        if not isinstance(self.direction, Real) or self.direction not in (-1, 0, 1):
            raise ValueError(f"direction of event '{self.name}' must be 1, -1 or 0; got {self.direction!r}")

    def _value(self, t: float, q: Array, v: Array) -> float:
        """Return the value of the function; raise TypeError or StateError unless it is a finite number."""
        returned: Any = self.function(t, q, v)
        if is_masked(returned):
            raise TypeError(
                f"event '{self.name}' returned a masked number; it must return a plain number, such as q[0] - 1.0"
            )
        x = returned.item() if isinstance(returned, np.ndarray) and returned.ndim == 0 else returned
        if isinstance(x, bool) or not isinstance(x, Real):
            raise TypeError(f"event '{self.name}' returned {returned!r}; it must return one number, such as q[0] - 1.0")
        try:
            number = float(x)
        except OverflowError:  # a large integer
            number = np.inf
        if not np.isfinite(number):
            raise StateError(f"event '{self.name}' returned {returned!r} at t = {t:.9g}: it must be finite")
        return number


def as_events(value: Any) -> list[Event]:
    if isinstance(value, Event) or callable(value):
        value = [value]
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"events must be an Event or a function (t, q, v), or a sequence of these; got {value!r}")
    events = list(value)
    for event in events:
        if not isinstance(event, Event) and not callable(event):
            raise TypeError(f"events must be Event or functions (t, q, v); got {event!r}")
    events = [event if isinstance(event, Event) else Event(event) for event in events]
    names = [event.name for event in events]
    for name in (name for k, name in enumerate(names) if name in names[:k]):
        raise ValueError(f"two events are named '{name}'; names must be unique: Event(function, name=...)")
    return events


# ---- controllers -------------------------------------------------------------------------------------------------------


def force(mechanism: Mechanism, functions: Sequence[Controller]) -> Controller:
    """Return a function for the sum of all functions' forces (2, nv): motor efforts, and the generalised force of wrenches."""
    nv = mechanism.nv

    def forces(t: float, q: Array, v: Array) -> Array:
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            return np.full((2, nv), np.nan)  # the motion has diverged; the controller is not called with NaN
        total = np.zeros((2, nv))
        for function in functions:
            answer, wrenches = function(t, q, v), None
            # a tuple of nv numbers is an effort, not (effort, wrenches)
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
    """Return a function for the summed efforts (nv,) of sampled functions, which must not return wrenches."""

    def checked(function: Controller) -> Controller:
        def efforts(t: float, q: Array, v: Array) -> Any:
            answer = function(t, q, v)
            if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping) and answer[1]:
                raise TypeError(
                    f"a function in SampleAndHold returned wrenches; expected efforts ({mechanism.nv},) only. Return wrenches from a function "
                    "outside SampleAndHold, or return tau + mechanism.jacobian(q, frame).T @ wrench"
                )
            return answer

        return efforts

    both = force(mechanism, [checked(function) for function in functions])
    return lambda t, q, v: both(t, q, v)[0]


def _returned(value: Any, size: int, name: str) -> Array:
    """Return the checked return value (size,) of a controller; a number is valid for size 1."""
    if value is None:
        raise TypeError(f"the controller returned None; it must return {name} ({size},)")
    try:
        x = real_array(f"{name} of the controller", value)
    except ValueError:
        raise ShapeError(f"the controller returned {value!r}; it must return {name} ({size},)") from None
    if x.shape != (size,) and not (size == 1 and x.shape == ()):
        fault = f"the controller returned shape {x.shape}; it must return {name} ({size},)"
        raise ShapeError(fault + OF_MOTORS * (name == "tau"))
    return x
