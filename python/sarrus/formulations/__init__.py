"""Formulations of the equations of motion in the publications that sarrus began with, each a function of a mechanism and a state of it.

van der Merwe (1995): the reference member, bases of joints, forces in them, and what a frame's inertia is. Li and Wu (2011): projections,
products of exponentials, reduced equations. Sonoda, Ishii and Isobe: the COG Jacobian. What they have in common with everybody's
dynamics is in :class:`~sarrus.Mechanism`; which equation is where: docs/formulations.md.
"""

from ..dynamics.reactions import joint_bases
from .cog import cog_jacobians
from .contact import sliding_contact
from .invariant import joint_screws, poe_factors
from .projected import (
    free_motions,
    is_involutive,
    operational_inertia,
    operational_inertia_inverse,
    projected_dynamics,
    projections,
    reduced_dynamics,
    virtual_work,
)
from .reference_member import reference_member
from .tree import christoffel_symbols, constraint_forces, mass_matrix_derivative, omega, reactions

__all__ = [
    "christoffel_symbols", "cog_jacobians", "constraint_forces", "free_motions", "is_involutive", "joint_bases", "joint_screws", "mass_matrix_derivative", "omega",
    "operational_inertia", "operational_inertia_inverse", "poe_factors", "projected_dynamics", "projections", "reactions",
    "reduced_dynamics", "reference_member", "sliding_contact", "virtual_work",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
