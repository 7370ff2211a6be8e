"""Centre of mass, and momentum about it, of mechanisms with floating or fixed base."""

from __future__ import annotations

from .._arrays import Array, ArrayLike
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.operations import _operation
from ..dynamics.options import StateOptions, Unpack


@_operation
def center_of_mass_jacobian(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return the Jacobian (..., 3, nv) of :meth:`~sarrus.Mechanism.center_of_mass` by the velocities of the tree (SpaceDyn 3.24 per total mass).

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.floating.center_of_mass_jacobian(sarrus.mechanisms.pendulum(length=0.5), [0.0]).ravel().tolist()
    [-0.5, 0.0, 0.0]
    """


@_operation
def centroidal_momentum(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return the momentum (..., 6): [angular, about the centre of mass; linear], in world axes.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.floating.centroidal_momentum(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], [1.0])[:3].tolist()
    [0.0, 0.0, 0.0]
    """


@_operation
def centroidal_momentum_matrix(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return the centroidal momentum matrix A_G (..., 6, nv), by the velocities of the tree: centroidal momentum = A_G v (Orin, Goswami and Lee 2013).

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.floating.centroidal_momentum_matrix(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0])[3]
    array([-1.])
    """


@_operation
def centroidal_momentum_bias(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[StateOptions]
) -> Array:
    """Return (d A_G / dt) v (..., 6), the rate of the centroidal momentum at zero acceleration of the joints of the tree.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> float(sarrus.floating.centroidal_momentum_bias(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], [1.0])[5])
    1.0
    """
