"""The description of a mechanism: bodies, joints between them, frames on them, and their appearance.

Plain data, which pickles, compares and hashes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import _core
from ..laws import Law
from ..shapes import Shape
from ..spatial import Inertia, Transform
from .constraints import ConstraintSpec
from .contacts import ContactSpec, ShapeSpec
from .joints import JointType
from .part import Part

_IDENTITY = Transform()


@dataclass(frozen=True)
class BodySpec(Part):
    """A rigid body: its name and its inertia in its own frame."""

    name: str
    inertia: Inertia


@dataclass(frozen=True)
class JointSpec(Part):
    """A joint between two bodies, and the placement of its frame in each.

    `tree` and `loop` are hints: keep it in the spanning tree, or make it a loop joint. With `laws`, one or None for each of
    rx ry rz tx ty tz, a gimbal that follows them moves its frame on the parent.
    """

    name: str
    joint: JointType
    parent: str
    child: str
    at_parent: Transform = _IDENTITY
    at_child: Transform = _IDENTITY
    actuated: bool = False
    tree: bool = False
    loop: bool = False
    laws: tuple[Law | None, ...] = ()

    @property
    def kind(self) -> str:
        """Name of the joint's type."""
        return self.joint.kind

    @property
    def bodies(self) -> tuple[str, ...]:
        """(parent, child)."""
        return (self.parent, self.child)

    def __str__(self) -> str:
        return f"{self.name}: {self.joint} ─ from {self.parent} to {self.child}{', driven' if self.laws else ''}"


@dataclass(frozen=True)
class SpringSpec(Part):
    """A linear spring with a damper between a point of one body and a point of another."""

    name: str
    first: tuple[str, tuple[float, float, float]]
    second: tuple[str, tuple[float, float, float]]
    stiffness: float
    rest_length: float
    damping: float = 0.0


@dataclass(frozen=True)
class FrameSpec(Part):
    """A named frame on a body."""

    name: str
    body: str
    placement: Transform = _IDENTITY


@dataclass(frozen=True)
class VisualSpec(Part):
    """The appearance of a body, or of a part of it: a shape, its placement in the body, and its colour.

    The colour is red, green, blue and opacity from 0 to 1; None: the file's own colours, or a colour for each body.
    """

    body: str
    shape: Shape
    placement: Transform = _IDENTITY
    color: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Description:
    """All parts of a mechanism. Assembly starts at `home`; `configurations` have names. Both are coordinates of joints.

    Warnings and visuals are no part of its identity: files have other paths on another machine.
    """

    name: str
    gravity: tuple[float, float, float]
    bodies: tuple[BodySpec, ...]
    joints: tuple[JointSpec, ...]
    frames: tuple[FrameSpec, ...] = ()
    constraints: tuple[ConstraintSpec, ...] = ()
    home: tuple[tuple[str, tuple[float, ...]], ...] = ()
    springs: tuple[SpringSpec, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)
    visuals: tuple[VisualSpec, ...] = field(default=(), compare=False)
    configurations: tuple[tuple[str, tuple[tuple[str, tuple[float, ...]], ...]], ...] = ()
    shapes: tuple[ShapeSpec, ...] = ()
    contacts: tuple[ContactSpec, ...] = ()


_core.hand_over(Transform=Transform, Inertia=Inertia)
