"""sarrus: rigid-body dynamics for mechanisms that close on themselves.

>>> import numpy as np
>>> import sarrus
>>> arm = sarrus.mechanisms.double_pendulum()
>>> arm.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2)).round(6).tolist()
[0.0, 0.0]
"""

from __future__ import annotations

from . import errors, mechanisms
from ._build import __version__, build_info
from .builder import Builder
from .description import BodySpec, Description, FrameSpec, JointSpec
from .errors import (
    AssemblyError,
    IntegrationError,
    LoopsNotSolvedError,
    ModelError,
    NameNotFoundError,
    NotRealizableError,
    SarrusError,
    ShapeError,
    StateError,
)
from .io import load, loads
from .joints import Cylindrical, Fixed, Free, Gimbal, Helical, Planar, Prismatic, Revolute, Spherical, Universal
from .mechanism import Joint, Kinematics, Mechanism
from .spatial import Inertia, Rotation, Transform
from .tables import from_dh, from_screws, from_sdof, from_spacedyn

__all__ = [
    "AssemblyError",
    "BodySpec",
    "Builder",
    "Cylindrical",
    "Description",
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
    "LoopsNotSolvedError",
    "Mechanism",
    "ModelError",
    "NameNotFoundError",
    "NotRealizableError",
    "Planar",
    "Prismatic",
    "Revolute",
    "Rotation",
    "SarrusError",
    "ShapeError",
    "Spherical",
    "StateError",
    "Transform",
    "Universal",
    "__version__",
    "build_info",
    "errors",
    "from_dh",
    "from_screws",
    "from_sdof",
    "from_spacedyn",
    "load",
    "loads",
    "mechanisms",
]
