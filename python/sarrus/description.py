"""A mechanism as it was written down: bodies, joints between them, and frames on them. Plain data, which pickles, compares and hashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .joints import JointType
from .laws import Law
from .spatial import Inertia, Transform


@dataclass(frozen=True)
class BodySpec:
    """A rigid body: its name and its inertia in its own frame."""

    name: str
    inertia: Inertia


@dataclass(frozen=True)
class JointSpec:
    """A joint between two bodies, and where its frame sits in each.

    `tree` and `loop` are hints: keep it in the spanning tree, or close a loop with it. With `laws`, one or None for each of
    rx ry rz tx ty tz, its frame on the parent is carried along by a gimbal that moves by them.
    """

    name: str
    joint: JointType
    parent: str
    child: str
    at_parent: Transform
    at_child: Transform
    actuated: bool
    tree: bool = False
    loop: bool = False
    laws: tuple[Law | None, ...] = ()


@dataclass(frozen=True)
class DistanceSpec:
    """A massless rod between a point of one body and a point of another."""

    name: str
    first: tuple[str, tuple[float, float, float]]
    second: tuple[str, tuple[float, float, float]]
    length: float


@dataclass(frozen=True)
class CouplerSpec:
    """A relation between joint coordinates: the sum of polynomials without constants, one a coordinate, equals offset + law(t).

    `terms` are (joint, index of its coordinate, coefficients of q, q2, ...).
    """

    name: str
    terms: tuple[tuple[str, int, tuple[float, ...]], ...]
    offset: float = 0.0
    law: Law | None = None


@dataclass(frozen=True)
class RollingSpec:
    """A disc (where it has an axle) or a sphere of a body, which rolls on a plane of another, or on a sphere about `point`."""

    name: str
    body: str
    radius: float
    center: tuple[float, float, float]
    axle: tuple[float, float, float] | None
    on: str
    point: tuple[float, float, float]
    normal: tuple[float, float, float]
    on_radius: float | None


@dataclass(frozen=True)
class PfaffianSpec:
    """Rows A(q) v = c over the velocities of some joints: constant numbers, row by row, or a function of q."""

    name: str
    rows: tuple[tuple[float, ...], ...] | Callable[[Any], Any]
    joints: tuple[str, ...]
    value: tuple[float, ...]
    derivative: Callable[[Any, Any], Any] | None = None


ConstraintSpec = DistanceSpec | CouplerSpec | RollingSpec | PfaffianSpec


@dataclass(frozen=True)
class SpringSpec:
    """A linear spring with a damper between a point of one body and a point of another."""

    name: str
    first: tuple[str, tuple[float, float, float]]
    second: tuple[str, tuple[float, float, float]]
    stiffness: float
    rest_length: float
    damping: float = 0.0


@dataclass(frozen=True)
class FrameSpec:
    """A named frame on a body."""

    name: str
    body: str
    placement: Transform


@dataclass(frozen=True)
class Description:
    """All of a mechanism. `home` is where assembly starts. Warnings are what a reader should know; they are no part of its identity."""

    name: str
    gravity: tuple[float, float, float]
    bodies: tuple[BodySpec, ...]
    joints: tuple[JointSpec, ...]
    frames: tuple[FrameSpec, ...]
    constraints: tuple[ConstraintSpec, ...] = ()
    home: tuple[tuple[str, tuple[float, ...]], ...] = ()
    springs: tuple[SpringSpec, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)
