"""Shared keyword options of functions of a state: their display by help(), and their evaluation for functions that are written in NumPy."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, checked_count, checked_truth, common_axes, into, real_array, real_rows
from .._core import Status, tolerances
from ..errors import NotRealizableError, StateError

if sys.version_info >= (3, 11):
    from typing import Unpack as Unpack
else:
    Unpack = Any  # for annotations, which are not evaluated

F = TypeVar("F", bound=Callable[..., Any])
Wrenches = Mapping[str, ArrayLike]
ExpressedIn = Literal["frame", "world_aligned", "world"]
Metric = Literal["mass", "euclidean"]
Distribution = Literal["minimum-norm", "weighted"]
Solver = Literal["reference-member"]
Branching = Literal["start", "only", "any"]


class BatchOptions(TypedDict, total=False):
    """Options of all functions of a state; see :class:`~sarrus.Mechanism`."""

    threads: int
    return_status: bool


class StateOptions(BatchOptions, total=False):
    """Options of a batch, and an array for the result."""

    out: Array | None


class FrameOptions(StateOptions, total=False):
    """Options of a state, and the axes of the result; see :class:`~sarrus.Mechanism`."""

    expressed_in: ExpressedIn


class TimeOptions(StateOptions, total=False):
    """Options of a state, and a time (...) [s] for prescribed motions."""

    time: ArrayLike | None


class FrameTimeOptions(FrameOptions, total=False):
    """Options of a frame, and a time (...) [s] for prescribed motions."""

    time: ArrayLike | None


class SearchOptions(TimeOptions, total=False):
    """Options of a search for configurations that close the loops; see :meth:`~sarrus.Mechanism.assemble`."""

    branch: Branching
    starts: int
    seed: int
    tolerance: float


class Loads(TypedDict, total=False):
    """External loads on a tree; see :meth:`~sarrus.Mechanism.inverse_dynamics`."""

    wrenches: Wrenches | None
    base_velocity: ArrayLike | None
    base_acceleration: ArrayLike | None


class BatchTime(BatchOptions, total=False):
    """Options of a batch, and a time (...) [s] for prescribed motions."""

    time: ArrayLike | None


class ReactionOptions(Loads, BatchOptions, total=False):
    """Keyword arguments: loads, and options of functions for batches of states."""


class ThreadedLoads(Loads, total=False):
    """Loads, and threads, for functions whose return type depends on return_status."""

    threads: int


class MotionOptions(Loads, StateOptions, total=False):
    """Keyword arguments: loads, and options of functions for one or more states."""


DEFAULTS: dict[str, Any] = {
    "wrenches": None, "base_velocity": None, "base_acceleration": None, "time": None, "expressed_in": "frame",
    "branch": "start", "starts": 60, "seed": 0, "tolerance": tolerances.closed, "out": None, "threads": 1, "return_status": False,
}  # fmt: skip


def keywords_behind(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the keywords that a function accepts through ``**options: Unpack[...]``, with their defaults."""
    annotation = str(function.__annotations__.get("options", ""))
    if not annotation:
        return {}
    options = (globals() | cast(Any, function).__globals__)[annotation.removeprefix("Unpack[").removesuffix("]")]
    defaults = vars(sys.modules[options.__module__])["DEFAULTS"]
    return {name: default for name, default in defaults.items() if name in options.__annotations__}


def shows_options(function: F) -> F:
    """Add the options to the signature, so that help() lists them by name."""
    signature = inspect.signature(function)
    *leading, _ = signature.parameters.values()
    behind = keywords_behind(function).items()
    shared = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default) for name, default in behind]
    cast(Any, function).__signature__ = signature.replace(parameters=[*leading, *shared])
    return function


SIZES: dict[str, Callable[[Any], int]] = {
    "q": lambda robot: robot.nq, "v": lambda robot: robot.nv, "a": lambda robot: robot.nv, "tau": lambda robot: robot.nv,
    "multipliers": lambda robot: robot.nc, "momentum": lambda robot: 6, "wrenches": lambda robot: 6, "motions": lambda robot: 0,
    "near": lambda robot: 0,
}  # fmt: skip
SHARED = {"out", "threads", "return_status"}


def check_core(name: str, robot: object) -> None:
    """Raise TypeError if an argument is not a mechanism, or if it is variants, which have only methods."""
    if not isinstance(robot, _core.Mechanism) or (name != "self" and getattr(robot, "_count", False)):
        raise TypeError(f"{name} must be a Mechanism, such as sarrus.mechanisms.four_bar(); got {robot!r}")


def of_states(function: F) -> F:
    """Add the options `threads`, `return_status` and, if the function's options contain it, `out` to a function of arrays (..., n).

    NumPy evaluates all states at once; therefore `threads` has no effect. With return_status=True, the function is evaluated for the valid states
    only; if it raises an error, it is evaluated for each of them separately.
    """
    shown = inspect.signature(shows_options(function)).parameters
    declared = inspect.signature(function, follow_wrapped=False).parameters.values()
    parameters = [p.name for p in declared if p.kind != p.VAR_KEYWORD and p.name not in SHARED]
    bare = inspect.Signature([shown[name] for name in parameters])
    first = parameters[0]

    @functools.wraps(function)
    def answered(*arguments: Any, **keywords: Any) -> Any:
        if arguments or first in keywords:
            check_core(first, arguments[0] if arguments else keywords[first])
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
