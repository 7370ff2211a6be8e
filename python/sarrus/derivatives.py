"""Exact derivatives of the equations of motion and of functions of a state, also for closed chains. A derivative has the name of the function that it
differentiates.

Functions ``*_jvp`` return the product of a Jacobian with a change of the state, functions ``*_vjp`` the product of a cotangent with a Jacobian.
Derivatives through time are :func:`step` for one step, :func:`rollouts_vjp` for simulations in reverse mode, and ``sarrus.simulate(...,
sensitivities=...)`` for a simulation in forward mode.

Derivatives with respect to q are those with respect to displacements dq (nv) in the tangent space; the displaced configuration is
``robot.integrate(q, dq)``.
"""

from .dimensions import assembled_positions
from .dynamics.derivatives import dimensions, forward_dynamics, inverse_dynamics
from .dynamics.products import (
    actuator_efforts,
    actuator_efforts_vjp,
    forward_dynamics_jvp,
    forward_dynamics_vjp,
    inverse_dynamics_jvp,
    inverse_dynamics_vjp,
)
from .dynamics.state_derivatives import (
    acceleration,
    center_of_mass,
    centroidal_momentum,
    constraint_rates,
    constraint_residual,
    coordinates_by_tangent,
    difference,
    gravity_forces,
    integrate,
    kinetic_energy,
    momentum,
    pose,
    potential_energy,
    tangent_by_coordinates,
    velocity,
)
from .simulation.derivatives import rollouts_vjp, step, step_jvp, step_vjp

__all__ = [
    "acceleration", "actuator_efforts", "actuator_efforts_vjp", "assembled_positions", "center_of_mass", "centroidal_momentum",
    "constraint_rates", "constraint_residual", "coordinates_by_tangent", "difference", "dimensions", "forward_dynamics",
    "forward_dynamics_jvp", "forward_dynamics_vjp", "gravity_forces", "integrate", "inverse_dynamics", "inverse_dynamics_jvp", "inverse_dynamics_vjp", "kinetic_energy",
    "momentum", "pose", "potential_energy", "rollouts_vjp", "step", "step_jvp", "step_vjp", "tangent_by_coordinates", "velocity",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
