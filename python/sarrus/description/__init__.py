"""What a mechanism is described by: joint types, constraints, bodies, frames, looks; plain data, and what the core takes of it."""

from .constraints import ConstraintSpec, CouplerSpec, DistanceSpec, PfaffianSpec, RollingSpec, TargetSpec
from .specs import (
    BodySpec,
    Description,
    FrameSpec,
    JointSpec,
    SpringSpec,
    VisualSpec,
    doubtful,
)

__all__ = [
    "BodySpec", "ConstraintSpec", "CouplerSpec", "Description", "DistanceSpec", "FrameSpec",
    "JointSpec", "PfaffianSpec", "RollingSpec", "SpringSpec", "TargetSpec", "VisualSpec",
    "doubtful",
]  # fmt: skip
