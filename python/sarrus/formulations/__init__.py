"""Formulations of the equations of motion in several publications, as functions of a mechanism and its state.

- van der Merwe (1995): reference member, bases of joint motions and forces, operational-space inertia
- Li and Wu (2011): projections, products of exponentials, reduced equations
- Sonoda, Ishii and Isobe: COG Jacobian

Standard dynamics functions are methods of :class:`~sarrus.Mechanism`. docs/formulations.md lists the function for each equation.
"""

from ..dynamics.reactions import joint_bases
from .cog import cog_jacobians
from .geometric import (
    free_motions,
    is_involutive,
    joint_screws,
    operational_inertia,
    operational_inertia_inverse,
    poe_factors,
    projected_dynamics,
    projections,
    reduced_dynamics,
    virtual_work,
)
from .reference_member import (
    christoffel_symbols,
    constraint_forces,
    mass_matrix_derivative,
    omega,
    reactions,
    reference_member,
    sliding_contact,
)

__all__ = [
    "christoffel_symbols", "cog_jacobians", "constraint_forces", "free_motions", "is_involutive", "joint_bases", "joint_screws", "mass_matrix_derivative", "omega",
    "operational_inertia", "operational_inertia_inverse", "poe_factors", "projected_dynamics", "projections", "reactions",
    "reduced_dynamics", "reference_member", "sliding_contact", "virtual_work",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
