"""Keywords that many functions of a state share, each list of them in one place, and how help() shows them."""

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
    Unpack = Any  # of annotations, which nobody evaluates

F = TypeVar("F", bound=Callable[..., Any])
Wrenches = Mapping[str, ArrayLike]
ExpressedIn = Literal["frame", "world_aligned", "world"]
Metric = Literal["mass", "euclidean"]
Distribution = Literal["minimum-norm", "weighted"]
Solver = Literal["reference-member"]
Branching = Literal["start", "only", "any"]


class BatchOptions(TypedDict, total=False):
    """Of all functions of a state: see :class:`~sarrus.Mechanism`."""

    threads: int
    return_status: bool


class StateOptions(BatchOptions, total=False):
    """And a place for the result."""

    out: Array | None


class FrameOptions(StateOptions, total=False):
    """And the axes in which it is: see :class:`~sarrus.Mechanism`."""

    expressed_in: ExpressedIn


class TimeOptions(StateOptions, total=False):
    """And a time (...) [s], where motion is prescribed."""

    time: ArrayLike | None


class FrameTimeOptions(FrameOptions, total=False):
    """And a time (...) [s], where motion is prescribed."""

    time: ArrayLike | None


class SearchOptions(TimeOptions, total=False):
    """And how to look for configurations that close loops: see :meth:`~sarrus.Mechanism.assemble`."""

    branch: Branching
    starts: int
    seed: int
    tolerance: float


class Loads(TypedDict, total=False):
    """What acts on a tree besides its joints: see :meth:`~sarrus.Mechanism.inverse_dynamics`."""

    wrenches: Wrenches | None
    base_velocity: ArrayLike | None
    base_acceleration: ArrayLike | None


class BatchTime(BatchOptions, total=False):
    """And a time (...) [s], where motion is prescribed."""

    time: ArrayLike | None


class ReactionOptions(Loads, BatchOptions, total=False):
    """Loads, of a batch."""


class ThreadedLoads(Loads, total=False):
    """Loads of a batch whose status is asked for, or not, by a keyword that tells what is returned."""

    threads: int


class MotionOptions(Loads, StateOptions, total=False):
    """Loads, and a place for the result."""


DEFAULTS: dict[str, Any] = {
    "wrenches": None, "base_velocity": None, "base_acceleration": None, "time": None, "expressed_in": "frame",
    "branch": "start", "starts": 60, "seed": 0, "tolerance": tolerances.closed, "out": None, "threads": 1, "return_status": False,
}  # fmt: skip


def keywords_behind(function: Callable[..., Any]) -> dict[str, Any]:
    """What ``**options: Unpack[...]`` of a function stands for, and the defaults."""
    annotation = str(function.__annotations__.get("options", ""))
    if not annotation:
        return {}
    known = (globals() | cast(Any, function).__globals__)[annotation.removeprefix("Unpack[").removesuffix("]")]
    defaults = vars(sys.modules[known.__module__])["DEFAULTS"]
    return {name: default for name, default in defaults.items() if name in known.__annotations__}


def shows_options(function: F) -> F:
    """Let help() list the options by name."""
    signature = inspect.signature(function)
    *leading, _ = signature.parameters.values()
    behind = keywords_behind(function).items()
    shared = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default) for name, default in behind]
    cast(Any, function).__signature__ = signature.replace(parameters=[*leading, *shared])
    return function
