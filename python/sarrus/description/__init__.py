"""What a mechanism is described by: joint types, constraints, bodies, frames, looks; plain data, and what the core takes of it."""

from .constraints import ConstraintSpec, CouplerSpec, DistanceSpec, PfaffianSpec, RollingSpec, TargetSpec
from .specs import (
    BodySpec,
    Box,
    Cylinder,
    Description,
    FrameSpec,
    JointSpec,
    Mesh,
    Shape,
    Sphere,
    SpringSpec,
    VisualSpec,
    without_effect,
)

__all__ = [
    "BodySpec", "Box", "ConstraintSpec", "CouplerSpec", "Cylinder", "Description", "DistanceSpec", "FrameSpec",
    "JointSpec", "Mesh", "PfaffianSpec", "RollingSpec", "Shape", "Sphere", "SpringSpec", "TargetSpec", "VisualSpec",
    "without_effect",
]  # fmt: skip
