"""sarrus: rigid-body dynamics for mechanisms that close on themselves.

>>> import numpy as np
>>> import sarrus
>>> arm = sarrus.mechanisms.double_pendulum()
>>> arm.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2)).round(6).tolist()
[0.0, 0.0]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import errors, laws
from ._build import __version__, build_info
from .analysis.actuation.pin_loads import PinLoads
from .analysis.formulations.cog import CogJacobians
from .analysis.formulations.invariant import Factors
from .analysis.formulations.linearization import Linearization, Modes
from .analysis.formulations.projected import ProjectedEquations
from .analysis.formulations.reduced import ReducedForm
from .analysis.formulations.reference_member import ReferenceMemberSolution
from .analysis.free_floating.partition import EndPoint, FreeFloatingForm
from .analysis.free_floating.planning import DynamicSingularityMap, FreeFloatingMotion, ReactionNullSpace
from .analysis.mobility.map import MobilityMap
from .analysis.mobility.report import ActuationMobility, Mobility
from .building.builder import Builder
from .description import (
    BodySpec,
    Box,
    CouplerSpec,
    Cylinder,
    Description,
    DistanceSpec,
    FrameSpec,
    JointSpec,
    Mesh,
    PfaffianSpec,
    RollingSpec,
    Sphere,
    SpringSpec,
    VisualSpec,
)
from .description.constraints import DECLARED
from .description.joints import (
    JOINT_TYPES,
    Cylindrical,
    Fixed,
    Free,
    Gimbal,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from .dynamics.loop_operations import LoopReactions
from .errors import (
    AssemblyError,
    BranchEnd,
    DriftWarning,
    IntegrationError,
    LimitWarning,
    ModelError,
    ModelWarning,
    NameNotFoundError,
    NotRealizableError,
    SarrusError,
    ShapeError,
    StateError,
    StiffnessWarning,
)
from .mechanism import Constraint, Joint, Kinematics, Mechanism
from .spatial import Inertia, Rotation, Transform

if TYPE_CHECKING:
    from . import control, interop, io, mechanisms, rolling
    from .building.tables import from_dh, from_screws, from_sdof, from_spacedyn
    from .figures.skeleton import Skeleton
    from .io import load, load_builder, loads
    from .io.mujoco import from_mujoco
    from .io.pinocchio import from_pinocchio
    from .simulation.runs import Sweep
    from .simulation.simulate import Event, simulate
    from .simulation.sweep import Status, simulate_many
    from .simulation.trajectory import Trajectory
    from .viewer.viewer import View, view

__all__ = [
    "ActuationMobility", "AssemblyError", "BodySpec", "Box", "BranchEnd", "Builder", "CogJacobians", "Constraint",
    "CouplerSpec", "Cylinder", "Cylindrical", "Description", "DistanceSpec", "DriftWarning", "DynamicSingularityMap", "EndPoint",
    "Event", "Factors", "Fixed", "FrameSpec", "Free", "FreeFloatingForm", "FreeFloatingMotion", "Gimbal", "Helical",
    "Inertia", "IntegrationError", "Joint", "JointSpec", "Kinematics", "LimitWarning", "Linearization",
    "LoopReactions", "Mechanism", "Mesh", "Mobility", "MobilityMap", "ModelError", "ModelWarning", "Modes",
    "NameNotFoundError", "NotRealizableError", "PfaffianSpec", "PinLoads", "Planar", "Prismatic", "ProjectedEquations",
    "ReactionNullSpace", "ReducedForm", "ReferenceMemberSolution", "Revolute", "RollingSpec", "Rotation",
    "SarrusError", "ShapeError", "Skeleton", "Sphere", "Spherical", "SpringSpec", "StateError", "Status",
    "StiffnessWarning", "Sweep", "Trajectory", "Transform", "Universal", "View", "VisualSpec", "__version__",
    "build_info", "control", "errors", "from_dh", "from_mujoco", "from_pinocchio", "from_screws", "from_sdof",
    "from_spacedyn", "interop", "io", "laws", "load", "load_builder", "loads", "mechanisms", "rolling", "simulate",
    "simulate_many", "view",
]  # fmt: skip

# those of the core's that have no class of their own in description/joints.py and constraints.py
globals().update(JOINT_TYPES | DECLARED)
__all__ += [name for name in (*JOINT_TYPES, *DECLARED) if name not in __all__]

_ON_DEMAND = {
    "building.tables": ("from_dh", "from_screws", "from_sdof", "from_spacedyn"),
    "control": ("control",),
    "figures.skeleton": ("Skeleton",),
    "interop": ("interop",),
    "io": ("io", "load", "load_builder", "loads"),
    "io.mujoco": ("from_mujoco",),
    "io.pinocchio": ("from_pinocchio",),
    "mechanisms": ("mechanisms",),
    "rolling": ("rolling",),
    "simulation.simulate": ("Event", "simulate"),
    "simulation.runs": ("Sweep",),
    "simulation.sweep": ("Status", "simulate_many"),
    "simulation.trajectory": ("Trajectory",),
    "viewer.viewer": ("View", "view"),
}


def __getattr__(name: str) -> Any:
    """What a control loop does without is loaded when it is asked for: an import takes half the time."""
    for module, names in _ON_DEMAND.items():
        if name in names:
            imported = importlib.import_module(f".{module}", __name__)
            value = globals()[name] = imported if name == module else getattr(imported, name)
            return value
    raise AttributeError(f"module 'sarrus' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
