"""Descriptions of mechanisms as plain data: joint types, constraints, bodies, frames and visuals, which the core checks and reads."""

from .constraints import ConstraintSpec, CouplerSpec, DistanceSpec, PfaffianSpec, RollingSpec, TargetSpec
from .contacts import ContactSpec, ShapeSpec
from .specs import BodySpec, Description, FrameSpec, JointSpec, SpringSpec, VisualSpec

__all__ = [
    "BodySpec", "ConstraintSpec", "ContactSpec", "CouplerSpec", "Description", "DistanceSpec", "FrameSpec",
    "JointSpec", "PfaffianSpec", "RollingSpec", "ShapeSpec", "SpringSpec", "TargetSpec", "VisualSpec",
]  # fmt: skip
