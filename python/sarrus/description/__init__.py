"""What a mechanism is described by: joint types, constraints, bodies, frames, looks; plain data, and what the core takes of it."""

from .constraints import ConstraintSpec, CouplerSpec, DistanceSpec, PfaffianSpec, RollingSpec, TargetSpec
from .contacts import ContactSpec, ShapeSpec
from .specs import BodySpec, Description, FrameSpec, JointSpec, SpringSpec, VisualSpec, doubtful

__all__ = [
    "BodySpec", "ConstraintSpec", "ContactSpec", "CouplerSpec", "Description", "DistanceSpec", "FrameSpec",
    "JointSpec", "PfaffianSpec", "RollingSpec", "ShapeSpec", "SpringSpec", "TargetSpec", "VisualSpec",
    "doubtful",
]  # fmt: skip
