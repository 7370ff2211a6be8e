"""Description of a mechanism: bodies, joints, frames and visual shapes.

The objects are plain data that can be pickled, compared and hashed.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from .. import _core
from .._deferred import dataclass
from ..spatial import Inertia, Transform
from .constraints import ConstraintSpec, Part
from .joints import JointType

if TYPE_CHECKING:
    from ..laws import Law
    from ..shapes import Shape
    from .contacts import ContactSpec, ShapeSpec

_IDENTITY = Transform()


@dataclass(frozen=True)
class BodySpec(Part):
    """Rigid body: name, and inertia in the body's own frame.

    Attributes
    ----------
    name : name of the body
    inertia : inertia in the body's frame [kg, m, kg m²]
    """

    name: str
    inertia: Inertia


@dataclass(frozen=True)
class JointSpec(Part):
    """Joint between two bodies, and the placements of its frames in both bodies.

    Attributes
    ----------
    name : name of the joint
    joint : joint type with its parameters
    parent, child : names of the connected bodies
    at_parent, at_child : poses of the joint's frames in the parent and in the child [m]
    actuated : True for a joint with a motor
    tree, loop : True if the joint must be a tree joint, or a loop joint; if both are False, the library selects it
    laws : time function or None for each of rx ry rz tx ty tz [rad, m], which move the joint's frame on the parent as in
        ``Builder.add_prescribed_frame``; () for none
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
    """Spring with a damper between points of two bodies.

    Attributes
    ----------
    name : name of the spring
    first, second : end points, each (body, (3,) position in the body's frame [m])
    stiffness, damping : stiffness [N/m] and damping [N s/m]
    rest_length : length at zero force [m]
    quadratic_stiffness, cubic_stiffness, quadratic_damping, cubic_damping : nonlinear terms, as those of joints [N/m², N/m³, N s²/m², N s³/m³]
    """

    name: str
    first: tuple[str, tuple[float, float, float]]
    second: tuple[str, tuple[float, float, float]]
    stiffness: float
    rest_length: float
    damping: float = 0.0
    quadratic_stiffness: float = 0.0
    cubic_stiffness: float = 0.0
    quadratic_damping: float = 0.0
    cubic_damping: float = 0.0

    @property
    def _damped(self) -> bool:
        """True if the spring has a damper."""
        return any((self.damping, self.quadratic_damping, self.cubic_damping))


@dataclass(frozen=True)
class FrameSpec(Part):
    """A named frame on a body.

    Attributes
    ----------
    name : name of the frame
    body : name of the body
    placement : pose of the frame in the body [m]
    """

    name: str
    body: str
    placement: Transform = _IDENTITY


@dataclass(frozen=True)
class VisualSpec(Part):
    """Visual shape of a body: shape, placement in the body, and colour.

    Attributes
    ----------
    body : name of the body; "ground" for the world
    shape : geometry, of a class in :mod:`sarrus.shapes`
    placement : pose of the shape's frame in the body [m]
    color : red, green, blue and opacity from 0 to 1 (dimensionless); None: the colours of the mesh file, or a colour for each body
    """

    body: str
    shape: Shape
    placement: Transform = _IDENTITY
    color: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Description:
    """All parts of a mechanism.

    Descriptions are compared without warnings and visuals, because paths of files differ between machines.

    Attributes
    ----------
    name : name of the mechanism
    gravity : (3,) acceleration of free fall in the world's axes [m/s²]
    bodies, joints, frames, constraints, springs, visuals, shapes, contacts : parts of each kind, in the order in which they were added
    home : joint to the coordinates of the initial guess of assembly, as pairs [rad, m, quaternions (x, y, z, w)]
    configurations : name to the coordinates of a named configuration, as pairs [rad, m, quaternions (x, y, z, w)]
    warnings : messages about entries of the model or of its file that have no effect
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
