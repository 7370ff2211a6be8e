"""Derivatives of the equations of motion by a state, exact, loops included: each function is asked of a mechanism.

Those by q belong to displacements in the tangent space, of nv entries, after which the configuration is ``robot.integrate(q, dq)``.
"""

from .dynamics.derivatives import forward_dynamics, inverse_dynamics

__all__ = ["forward_dynamics", "inverse_dynamics"]


def __dir__() -> list[str]:
    return sorted(__all__)
