"""Shared options of functions of a state that are written in NumPy."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from .. import _core
from .._arrays import Array, NDArray, checked_count, checked_truth, common_axes, into, real_array, real_rows
from .._core import Status
from ..errors import NotRealizableError, StateError
from .options import F, shows_options

SIZES: dict[str, Callable[[Any], int]] = {
    "q": lambda robot: robot.nq, "v": lambda robot: robot.nv, "a": lambda robot: robot.nv, "tau": lambda robot: robot.nv,
    "multipliers": lambda robot: robot.nc, "momentum": lambda robot: 6, "wrenches": lambda robot: 6, "motions": lambda robot: 0,
    "near": lambda robot: 0,
}  # fmt: skip
SHARED = {"out", "threads", "return_status"}


def of_states(function: F) -> F:
    """Add the options `threads`, `return_status` and, if the function's options contain it, `out` to a function of arrays (..., n).

    NumPy evaluates all states at once; therefore `threads` has no effect. With return_status=True, the function is evaluated for the valid states
    only; if it raises an error, it is evaluated for each of them separately.
    """
    shown = inspect.signature(shows_options(function)).parameters
    declared = inspect.signature(function, follow_wrapped=False).parameters.values()
    parameters = [p.name for p in declared if p.kind != p.VAR_KEYWORD and p.name not in SHARED]
    bare = inspect.Signature([shown[name] for name in parameters])

    @functools.wraps(function)
    def answered(*arguments: Any, **keywords: Any) -> Any:
        if not keywords.keys() & SHARED:
            return function(*arguments, **keywords)
        out = keywords.pop("out", None) if "out" in shown else None
        checked_count("threads", keywords.pop("threads", 1))
        if not checked_truth("return_status", keywords.pop("return_status", False)):
            return into(out, function(*arguments, **keywords))
        try:
            inputs = bare.bind(*arguments, **keywords).arguments
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None
        answer, status = _with_status(function, dict(inputs))
        return (*answer, status) if type(answer) is tuple else (into(out, answer), status)

    return cast(F, answered)


def _with_status(function: Callable[..., Any], inputs: dict[str, Any]) -> tuple[Any, Any]:
    """Return the result, with NaN for failed states, and the status: 1 for invalid states, 2 for states in which the function raised an error."""
    (parameter, robot), *_ = inputs.items()
    if not isinstance(robot, _core.Mechanism):
        function(**inputs)  # raises the error
    rows: dict[Any, Array] = {}
    for name, value in inputs.items():
        if value is not None and name in SIZES:
            pairs: Any = list(value.items()) if isinstance(value, Mapping) else [(None, value)]
            for key, x in pairs:
                size = SIZES[name](robot) or (np.shape(x) or (1,))[-1]
                rows[name, key] = real_rows(name if key is None else f"{name}['{key}']", x, size, finite=False)
        if value is not None and name == "time":
            rows[name, None] = real_array("time", value)[..., None]
    if ("q", None) not in rows:  # the function uses its own configuration
        return function(**inputs), np.int8(Status.FINE)
    lead = common_axes(
        {f"{name}" if key is None else f"{name}['{key}']": x.shape[:-1] for (name, key), x in rows.items()}
    )
    variants = getattr(robot, "base", None) is not None  # variants: a mechanism for each row of the first axis
    if variants:
        lead = np.broadcast_shapes(lead or (1,), (len(robot), *[1] * (len(lead) - 1)))
    count = math.prod(lead)
    owner = np.arange(count) // (count // len(robot)) if variants and count else None
    rows = {place: np.broadcast_to(x, (*lead, x.shape[-1])).reshape(count, x.shape[-1]) for place, x in rows.items()}
    every = robot if owner is None else robot._of_rows(owner)
    sound = np.asarray(every.normalize(rows["q", None], return_status=True)[1]) == 0
    for x in rows.values():
        sound = sound & np.isfinite(x).all(axis=-1)
    status = np.where(sound, Status.FINE, Status.INVALID_STATE).astype(np.int8)

    def evaluated(states: Sequence[int] | NDArray[np.intp]) -> Any:
        arguments = dict(inputs)
        if owner is not None:
            arguments[parameter] = robot._of_rows(owner[states])
        for (name, key), x in rows.items():
            x = x[states]
            if key is None:
                arguments[name] = x[..., 0] if name == "time" else x
            else:
                arguments[name] = {**arguments[name], key: x}
        return function(**arguments)

    fine = np.flatnonzero(sound)
    parts: list[tuple[Any, Any]] = []
    try:
        parts = [(fine, evaluated(fine))] if fine.size else []
    except (StateError, NotRealizableError):
        for i in fine.tolist():
            try:
                parts.append((np.array([i]), evaluated([i])))
            except (StateError, NotRealizableError):
                status[i] = Status.NO_ANSWER
    if not parts:  # an empty batch determines the shapes of the result
        base = inputs | {parameter: robot.base if variants else robot}
        parts = [(np.zeros(0, np.intp), _empty_result(function, base, rows))]
    unanswered = np.zeros(count, dtype=bool)
    answer = _joined([at for at, _ in parts], [part for _, part in parts], lead, unanswered)
    status[unanswered & (status == Status.FINE)] = Status.NO_ANSWER
    return answer, status.reshape(lead)


def _empty_result(function: Callable[..., Any], inputs: dict[str, Any], rows: Mapping[Any, Array]) -> Any:
    """Return the result for an empty batch of states."""
    arguments = dict(inputs)
    for (name, key), x in rows.items():
        empty = x[:0, 0] if name == "time" else x[:0]
        arguments[name] = empty if key is None else {**arguments[name], key: empty}
    return function(**arguments)


def _joined(
    places: list[NDArray[np.intp]], parts: list[Any], lead: tuple[int, ...], unanswered: NDArray[np.bool_]
) -> Any:
    """Combine the results of valid states into a result of all states, with NaN (-1, False) for all other states; mark NaN in `unanswered`."""
    first = parts[0]
    if isinstance(first, np.ndarray | float):
        arrays = [np.asarray(x).reshape(len(at), *np.shape(x)[1:]) for at, x in zip(places, parts, strict=True)]
        missing: Any = {"f": np.nan, "b": False}.get(arrays[0].dtype.kind, -1)
        joined = np.full((unanswered.size, *arrays[0].shape[1:]), missing, dtype=arrays[0].dtype)
        for at, x in zip(places, arrays, strict=True):
            joined[at] = x
        if joined.dtype.kind == "f":
            unanswered |= np.isnan(joined).reshape(len(joined), -1).any(axis=-1) if joined[:1].size else False
        return joined.reshape((*lead, *joined.shape[1:]))[()]
    if isinstance(first, Mapping):
        return {k: _joined(places, [part[k] for part in parts], lead, unanswered) for k in first}
    if isinstance(first, tuple) and any(isinstance(x, np.ndarray | float) for x in first):
        return tuple(_joined(places, [part[k] for part in parts], lead, unanswered) for k in range(len(first)))
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        fields = [f.name for f in dataclasses.fields(first) if isinstance(getattr(first, f.name), np.ndarray | Mapping)]
        return dataclasses.replace(
            first, **{f: _joined(places, [getattr(part, f) for part in parts], lead, unanswered) for f in fields}
        )
    return first
