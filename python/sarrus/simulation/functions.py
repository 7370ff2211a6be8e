"""Functions of the caller's that are controllers: what they return is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._arrays import Array, real_array
from ..errors import ShapeError, StateError
from ..mechanism import Mechanism

__all__: list[str] = []

Controller = Callable[[float, Array, Array], Any]


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
                    f"a function that is Sampled returns efforts ({mechanism.nv},), which are held; it returned wrenches too: give those by a "
                    "function beside Sampled, or return tau + mechanism.jacobian(q, frame).T @ wrench"
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
        raise ShapeError(f"the controller returned shape {x.shape}; it must return {what} ({size},)")
    return x
