"""A mechanism as it was written down: bodies, joints between them, and frames on them. Plain data, which pickles, compares and hashes."""

from __future__ import annotations

from dataclasses import dataclass, field

from .joints import JointType
from .spatial import Inertia, Transform


@dataclass(frozen=True)
class BodySpec:
    """A rigid body: its name and its inertia in its own frame."""

    name: str
    inertia: Inertia


@dataclass(frozen=True)
class JointSpec:
    """A joint between two bodies, and where its frame sits in each."""

    name: str
    joint: JointType
    parent: str
    child: str
    at_parent: Transform
    at_child: Transform
    actuated: bool


@dataclass(frozen=True)
class FrameSpec:
    """A named frame on a body."""

    name: str
    body: str
    placement: Transform


@dataclass(frozen=True)
class Description:
    """All of a mechanism. Warnings are what a reader of it should know; they are no part of its identity."""

    name: str
    gravity: tuple[float, float, float]
    bodies: tuple[BodySpec, ...]
    joints: tuple[JointSpec, ...]
    frames: tuple[FrameSpec, ...]
    warnings: tuple[str, ...] = field(default=(), compare=False)
