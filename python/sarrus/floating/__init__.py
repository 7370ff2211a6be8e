"""Functions of mechanisms with a floating base, whose motion follows from the conservation of momentum (SpaceDyn).

Functions of the centre of mass also accept mechanisms with a fixed base.
"""

from .partition import (
    base_reaction,
    center_of_mass_jacobian,
    centroidal_momentum,
    centroidal_momentum_bias,
    centroidal_momentum_matrix,
    equations_of_motion,
    generalized_jacobian,
    generalized_jacobian_derivative,
    momentum_about,
    momentum_velocity,
)
from .planning import dynamic_singularity_map, motion, path, reaction_null_space, resolved_rate

__all__ = [
    "base_reaction", "center_of_mass_jacobian", "centroidal_momentum", "centroidal_momentum_bias", "centroidal_momentum_matrix",
    "dynamic_singularity_map", "equations_of_motion", "generalized_jacobian", "generalized_jacobian_derivative",
    "momentum_about", "momentum_velocity", "motion", "path", "reaction_null_space", "resolved_rate",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
