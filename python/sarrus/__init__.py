"""sarrus: rigid-body dynamics for mechanisms that close on themselves.

>>> import numpy as np
>>> import sarrus
>>> arm = sarrus.mechanisms.double_pendulum()
>>> arm.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2)).round(6).tolist()
[0.0, 0.0]
"""

from __future__ import annotations

from . import control, errors, laws, mechanisms
from ._build import __version__, build_info
from .builder import Builder
from .constraint import Constraint
from .description import (
    BodySpec,
    CouplerSpec,
    Description,
    DistanceSpec,
    FrameSpec,
    JointSpec,
    PfaffianSpec,
    RollingSpec,
    SpringSpec,
)
from .errors import (
    AssemblyError,
    BranchEnd,
    IntegrationError,
    ModelError,
    NameNotFoundError,
    NotRealizableError,
    SarrusError,
    ShapeError,
    StateError,
)
from .io import load, loads
from .joints import Cylindrical, Fixed, Free, Gimbal, Helical, Planar, Prismatic, Revolute, Spherical, Universal
from .loops.cog import CogJacobians
from .loops.functions import LoopReactions
from .loops.mobility import ActuationMobility, Mobility
from .loops.projected import ProjectedEquations
from .loops.reduced import ReducedForm
from .loops.reference_member import ReferenceMemberSolution
from .many import simulate_many
from .mechanism import Joint, Kinematics, Mechanism
from .simulation import Event, simulate
from .spatial import Inertia, Rotation, Transform
from .tables import from_dh, from_screws, from_sdof, from_spacedyn
from .trajectory import Trajectory

__all__ = [
    "ActuationMobility",
    "AssemblyError",
    "BodySpec",
    "BranchEnd",
    "Builder",
    "CogJacobians",
    "Constraint",
    "CouplerSpec",
    "Cylindrical",
    "Description",
    "DistanceSpec",
    "Event",
    "Fixed",
    "FrameSpec",
    "Free",
    "Gimbal",
    "Helical",
    "Inertia",
    "IntegrationError",
    "Joint",
    "JointSpec",
    "Kinematics",
    "LoopReactions",
    "Mechanism",
    "Mobility",
    "ModelError",
    "NameNotFoundError",
    "NotRealizableError",
    "PfaffianSpec",
    "Planar",
    "Prismatic",
    "ProjectedEquations",
    "ReducedForm",
    "ReferenceMemberSolution",
    "Revolute",
    "RollingSpec",
    "Rotation",
    "SarrusError",
    "ShapeError",
    "Spherical",
    "SpringSpec",
    "StateError",
    "Trajectory",
    "Transform",
    "Universal",
    "__version__",
    "build_info",
    "control",
    "errors",
    "from_dh",
    "from_screws",
    "from_sdof",
    "from_spacedyn",
    "laws",
    "load",
    "loads",
    "mechanisms",
    "simulate",
    "simulate_many",
]
