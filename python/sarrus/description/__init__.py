"""Descriptions of mechanisms as plain data: joint types, constraints, bodies, frames and visuals, which the core checks and reads."""

from typing import TYPE_CHECKING

from .._deferred import attributes
from .constraints import ConstraintSpec, CouplerSpec, DistanceSpec, PfaffianSpec, RollingSpec, TargetSpec
from .specs import BodySpec, Description, FrameSpec, JointSpec, SpringSpec, VisualSpec

__all__ = [
    "BodySpec", "ConstraintSpec", "ContactSpec", "CouplerSpec", "Description", "DistanceSpec", "FrameSpec",
    "JointSpec", "PfaffianSpec", "RollingSpec", "ShapeSpec", "SpringSpec", "TargetSpec", "VisualSpec",
]  # fmt: skip

if TYPE_CHECKING:
    from .contacts import ContactSpec, ShapeSpec

__getattr__ = attributes(__name__, {"contacts": ("ContactSpec", "ShapeSpec")})
