"""Description of a mechanism: bodies, joints, frames and visual shapes.

The objects are plain data that can be pickled, compared and hashed.
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
    """Rigid body: name, and inertia in the body's own frame."""

    name: str
    inertia: Inertia


@dataclass(frozen=True)
class JointSpec(Part):
    """Joint between two bodies, and the placements of its frames in both bodies.

    `tree` selects a tree joint, `loop` a loop joint. `laws` has a time function or None for each of rx ry rz tx ty tz; the joint's frame on the
    parent then moves as in ``Builder.add_prescribed_frame``.
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
    """Linear spring with a damper between points of two bodies; stiffness [N/m], rest_length [m], damping [N s/m]."""

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
    """Visual shape of a body: shape, placement in the body, and colour.

    The colour is red, green, blue and opacity from 0 to 1; None: the colours of the mesh file, or a colour for each body.
    """

    body: str
    shape: Shape
    placement: Transform = _IDENTITY
    color: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Description:
    """All parts of a mechanism.

    `home` has the joint coordinates of the initial guess of assembly, and `configurations` those of named configurations [rad, m, quaternions
    (x, y, z, w)]. Comparisons of descriptions ignore warnings and visuals, because paths of files differ between machines.
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
