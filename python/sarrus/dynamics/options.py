"""Shared keyword options of functions of a state, and their display by help()."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict, TypeVar, cast

from .._arrays import Array, ArrayLike
from .._core import tolerances

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
    """Loads, and options of a batch."""


class ThreadedLoads(Loads, total=False):
    """Loads, and threads, for functions whose return type depends on return_status."""

    threads: int


class MotionOptions(Loads, StateOptions, total=False):
    """Loads, and options of a state."""


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
