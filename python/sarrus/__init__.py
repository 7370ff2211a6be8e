"""sarrus: rigid-body dynamics for mechanisms with closed loops.

>>> import numpy as np
>>> import sarrus
>>> arm = sarrus.mechanisms.double_pendulum()
>>> arm.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2)).round(6).tolist()
[0.0, 0.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import description, errors, laws
from ._build import __version__ as __version__
from ._build import build_info
from ._deferred import attributes
from .building.builder import Builder
from .description import Description
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
from .errors import (
    AssemblyError,
    BranchWarning,
    DriftWarning,
    IntegrationError,
    LimitWarning,
    ModelError,
    ModelWarning,
    NameNotFoundError,
    NotRealizableError,
    PathTrackingError,
    SarrusError,
    ShapeError,
    StateError,
    StiffnessWarning,
)
from .mechanism import Mechanism
from .spatial import Inertia, Rotation, Transform

if TYPE_CHECKING:
    from . import control, derivatives, floating, formulations, interop, io, mechanisms, results, rolling, shapes
    from .analysis.contacts import ContactPoint
    from .analysis.linearization import equilibrium
    from .analysis.mobility import without_redundant_constraints
    from .building.tables import from_dh, from_screws, from_sdof, from_spacedyn
    from .figures.skeleton import Skeleton
    from .io import load, load_builder, loads
    from .simulation.simulate import Event, simulate
    from .simulation.sweep import simulate_many
    from .simulation.trajectory import Trajectory
    from .viewer.viewer import view

__all__ = [
    "AssemblyError",
    "BranchWarning",
    "Builder",
    "ContactPoint",
    "Cylindrical",
    "Description",
    "DriftWarning",
    "Event",
    "Fixed",
    "Free",
    "Gimbal",
    "Helical",
    "Inertia",
    "IntegrationError",
    "LimitWarning",
    "Mechanism",
    "ModelError",
    "ModelWarning",
    "NameNotFoundError",
    "NotRealizableError",
    "PathTrackingError",
    "Planar",
    "Prismatic",
    "Revolute",
    "Rotation",
    "SarrusError",
    "ShapeError",
    "Skeleton",
    "Spherical",
    "StateError",
    "StiffnessWarning",
    "Trajectory",
    "Transform",
    "Universal",
    "build_info",
    "control",
    "derivatives",
    "description",
    "equilibrium",
    "errors",
    "floating",
    "formulations",
    "from_dh",
    "from_screws",
    "from_sdof",
    "from_spacedyn",
    "interop",
    "io",
    "laws",
    "load",
    "load_builder",
    "loads",
    "mechanisms",
    "results",
    "rolling",
    "shapes",
    "simulate",
    "simulate_many",
    "view",
    "without_redundant_constraints",
]  # fmt: skip

# joint types and constraints of the core for which description/joints.py and constraints.py have no class
globals().update(JOINT_TYPES | DECLARED)
__all__ += [name for name in (*JOINT_TYPES, *DECLARED) if name not in __all__]

_MODULES = [
    "calibration", "cams", "casadi", "control", "crocoddyl", "cuda", "derivatives", "design", "dimensions", "floating", "formulations", "generation", "gymnasium",
    "identification", "interop", "jax", "mechanisms", "results", "rolling", "shapes", "torch",
]  # fmt: skip
_ON_DEMAND = {
    "analysis.linearization": ("equilibrium",),
    "analysis.mobility": ("without_redundant_constraints",),
    "analysis.contacts": ("ContactPoint",),
    "building.tables": ("from_dh", "from_screws", "from_sdof", "from_spacedyn"),
    "figures.skeleton": ("Skeleton",),
    "io": ("io", "load", "load_builder", "loads"),
    "simulation.simulate": ("Event", "simulate"),
    "simulation.sweep": ("simulate_many",),
    "simulation.trajectory": ("Trajectory",),
    "viewer.viewer": ("view",),
    **{module: (module,) for module in _MODULES},
}


__getattr__ = attributes(__name__, _ON_DEMAND)


def __dir__() -> list[str]:
    return sorted(__all__)
