"""Derivatives of functions of a state, by name: each function's own kernel, on numbers that carry their rates (``cpp/kernels/rate_kernels.cpp``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import ArrayLike

from .._arrays import Array
from .._showing import Brief
from ..errors import StateError
from .derivatives import ask, check_robot
from .loop_operations import LoopFunctions
from .operations import _undeclared
from .options import BatchOptions, BatchTime, ExpressedIn, StateOptions, TimeOptions, shows_options

if TYPE_CHECKING:
    from typing import Unpack


@dataclass(frozen=True, eq=False, repr=False)
class StateDerivatives(Brief):
    """How a function of a state changes: d f = q dq + v dv.

    Attributes
    ----------
    q : (..., n, nv) by a displacement dq (nv) in the tangent space, after which the configuration is ``robot.integrate(q, dq)``; of a number
        (..., nv)
    v : likewise by the velocity
    """

    q: Array
    v: Array


@dataclass(frozen=True, eq=False, repr=False)
class MotionDerivatives(StateDerivatives):
    """The same of a function of a motion.

    Attributes
    ----------
    q, v : as in :class:`StateDerivatives`
    a : (..., n, nv) by the acceleration
    """

    a: Array


@dataclass(frozen=True, eq=False, repr=False)
class IntegrateDerivatives(Brief):
    """How the configuration to which a velocity leads is displaced, in its own tangent space.

    Attributes
    ----------
    q : (..., nv, nv) by a displacement of the one from which it leads
    dv : (..., nv, nv) by the velocity: the differential of the exponential
    """

    q: Array
    dv: Array


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceDerivatives(Brief):
    """How the velocity that leads from one configuration to another changes.

    Attributes
    ----------
    q0, q1 : (..., nv, nv) by a displacement of either, in its own tangent space
    """

    q0: Array
    q1: Array


Parts = TypeVar("Parts")
_FUNCTIONS = {
    name: _undeclared(name)
    for name in (
        "pose_derivatives", "velocity_derivatives", "acceleration_derivatives", "center_of_mass_jacobian", "momentum_derivatives",
        "centroidal_momentum_derivatives", "gravity_forces_derivatives", "kinetic_energy_derivatives", "potential_energy_derivatives",
        "constraint_residual_derivatives", "constraint_rates_derivatives", "integrate_derivatives", "difference_derivatives",
        "coordinates_by_tangent", "tangent_by_coordinates",
    )
}  # fmt: skip


def _array(name: str, robot: LoopFunctions, *arguments: Any, **options: Any) -> Array:
    check_robot(robot)
    return _FUNCTIONS[name](robot, *arguments, **options)


def _parts(kind: type[Parts], name: str, robot: LoopFunctions, *arguments: Any, axes: int = 2, **options: Any) -> Any:
    """A part for each input that varies, which the core's answer has side by side, and the status if it is asked for."""
    check_robot(robot)
    answer, *status = ask(_FUNCTIONS[name], robot, *arguments, options)
    of_one = (slice(None),) * axes
    derivatives = kind(*(answer[(..., k, *of_one)] for k in range(answer.shape[-1 - axes])))
    return (derivatives, *status) if status else derivatives


# ---- frames ----------------------------------------------------------------------------------------------------------


@shows_options
def pose(robot: LoopFunctions, q: ArrayLike, frame: str, **options: Unpack[StateOptions]) -> Array:
    """Derivative (..., 4, 4, nv) of a frame's pose by q: each entry's by each displacement. ``robot.jacobian`` has the same as motions.

    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(length=0.5)
    >>> sarrus.derivatives.pose(pendulum, [0.0], "tip")[:3, 3, 0].tolist()
    [-0.5, 0.0, 0.0]
    """
    return _array("pose_derivatives", robot, q, frame, **options)


@shows_options
def velocity(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, frame: str, *, expressed_in: ExpressedIn = "frame", **options: Unpack[BatchOptions]
) -> Any:  # fmt: skip
    """Derivatives of :meth:`~sarrus.Mechanism.velocity` of a frame by q and v of the tree, a :class:`StateDerivatives` of (..., 6, nv).

    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(length=0.5)
    >>> D = sarrus.derivatives.velocity(pendulum, [0.0], [2.0], "tip", expressed_in="world_aligned")
    >>> D.q[3:, 0].tolist(), D.v[3:, 0].tolist()
    ([0.0, 0.0, 1.0], [-0.5, 0.0, 0.0])
    """
    return _parts(StateDerivatives, "velocity_derivatives", robot, q, v, frame, expressed_in=expressed_in, **options)


@shows_options
def acceleration(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str, *, expressed_in: ExpressedIn = "frame",
    **options: Unpack[BatchOptions],
) -> Any:  # fmt: skip
    """Derivatives of :meth:`~sarrus.Mechanism.acceleration` of a frame by q, v and a of the tree, a :class:`MotionDerivatives` of (..., 6, nv).

    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(length=0.5)
    >>> sarrus.derivatives.acceleration(pendulum, [0.0], [2.0], [0.0], "tip").v[3:, 0].tolist()  # of the centripetal one
    [0.0, 0.0, 2.0]
    """
    return _parts(
        MotionDerivatives, "acceleration_derivatives", robot, q, v, a, frame, expressed_in=expressed_in, **options
    )


# ---- masses ----------------------------------------------------------------------------------------------------------


@shows_options
def center_of_mass(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Derivative (..., 3, nv) of the centre of mass by q of the tree.

    >>> import sarrus
    >>> sarrus.derivatives.center_of_mass(sarrus.mechanisms.pendulum(length=0.5), [0.0]).ravel().tolist()
    [-0.5, 0.0, 0.0]
    """
    return _array("center_of_mass_jacobian", robot, q, **options)


@shows_options
def momentum(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Derivatives of :meth:`~sarrus.Mechanism.momentum` by q and v of the tree, a :class:`StateDerivatives` of (..., 6, nv).

    >>> import sarrus
    >>> sarrus.derivatives.momentum(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], [2.0]).v[3:, 0].tolist()
    [-1.0, 0.0, 0.0]
    """
    return _parts(StateDerivatives, "momentum_derivatives", robot, q, v, **options)


@shows_options
def centroidal_momentum(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Derivatives of :func:`sarrus.floating.centroidal_momentum` by q and v of the tree, a :class:`StateDerivatives` of (..., 6, nv).

    >>> import sarrus
    >>> sarrus.derivatives.centroidal_momentum(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], [2.0]).q[3:, 0].tolist()
    [0.0, 0.0, 2.0]
    """
    return _parts(StateDerivatives, "centroidal_momentum_derivatives", robot, q, v, **options)


@shows_options
def gravity_forces(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Derivative (..., nv, nv) of :meth:`~sarrus.Mechanism.gravity_forces` by q of the tree. It is symmetric where coordinates' rates are v.

    >>> import sarrus
    >>> sarrus.derivatives.gravity_forces(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0]).round(3)  # m g l
    array([[9.81]])
    """
    return _array("gravity_forces_derivatives", robot, q, **options)


@shows_options
def kinetic_energy(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Derivatives of :meth:`~sarrus.Mechanism.kinetic_energy` by q and v of the tree, a :class:`StateDerivatives` of (..., nv).

    >>> import sarrus
    >>> sarrus.derivatives.kinetic_energy(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], [2.0]).v  # M v
    array([1.])
    """
    return _parts(StateDerivatives, "kinetic_energy_derivatives", robot, q, v, axes=1, **options)


@shows_options
def potential_energy(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Derivative (..., nv) of :meth:`~sarrus.Mechanism.potential_energy` by q of the tree: what gravity and springs ask of the joints.

    >>> import numpy as np
    >>> import sarrus
    >>> sarrus.derivatives.potential_energy(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [np.pi / 2]).round(3)
    array([9.81])
    """
    return _array("potential_energy_derivatives", robot, q, **options)


# ---- constraints -----------------------------------------------------------------------------------------------------


@shows_options
def constraint_residual(robot: LoopFunctions, q: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
    """Derivative (..., nc, nv) of :meth:`~sarrus.Mechanism.constraint_residual` by q of the tree.

    On the loops and off them. Zero in rows that hold no positions; the others are on the loops those of the Jacobian.

    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> q = robot.assemble()
    >>> bool(abs(sarrus.derivatives.constraint_residual(robot, q) - robot.constraint_jacobian(q)).max() < 1e-12)
    True
    """
    check_robot(robot)
    _check_rows(robot, "constraint_residual")
    return _array("constraint_residual_derivatives", robot, q, **options)


@shows_options
def constraint_rates(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[BatchTime]) -> Any:
    """Derivatives of the constraints' rates J(q) v by q and v of the tree, a :class:`StateDerivatives` of (..., nc, nv).

    J is :meth:`~sarrus.Mechanism.constraint_jacobian`.

    Raises
    ------
    StateError
        Rows of the constraints are a function of q whose rate nobody knows.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> q, v = robot.assemble(), np.ones(3)
    >>> D = sarrus.derivatives.constraint_rates(robot, q, v)
    >>> bool(abs(D.q @ v - robot.constraint_jacobian_derivative(q, v) @ v).max() < 1e-12)
    True
    """
    check_robot(robot)
    _check_rows(robot, "constraint_rates")
    return _parts(StateDerivatives, "constraint_rates_derivatives", robot, q, v, **options)


def _check_rows(robot: LoopFunctions, name: str) -> None:
    if robot._asks_for_rows:
        raise StateError(f"rows of the constraints are a function of q, whose rate the derivatives of {name} lack")


# ---- configurations --------------------------------------------------------------------------------------------------


@shows_options
def integrate(robot: LoopFunctions, q: ArrayLike, dv: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Derivatives of :meth:`~sarrus.Mechanism.integrate` by q and dv, an :class:`IntegrateDerivatives`: of displacements, as all are.

    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.mechanisms.stanford_arm()
    >>> D = sarrus.derivatives.integrate(arm, arm.neutral(), np.ones(arm.nv))
    >>> bool((D.q == np.eye(arm.nv)).all() and (D.dv == np.eye(arm.nv)).all())  # where coordinates' rates are v
    True
    """
    return _parts(IntegrateDerivatives, "integrate_derivatives", robot, q, dv, **options)


@shows_options
def difference(robot: LoopFunctions, q0: ArrayLike, q1: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Derivatives of :meth:`~sarrus.Mechanism.difference` by displacements of both configurations, a :class:`DifferenceDerivatives`.

    Where a rotation from one to the other is half a turn, the difference jumps, and there is no derivative.

    >>> import sarrus
    >>> D = sarrus.derivatives.difference(sarrus.mechanisms.pendulum(), [0.5], [0.75])
    >>> D.q0, D.q1
    (array([[-1.]]), array([[1.]]))
    """
    return _parts(DifferenceDerivatives, "difference_derivatives", robot, q0, q1, **options)


@shows_options
def coordinates_by_tangent(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """E (..., nq, nv): how the entries of q change with a displacement, and at which rates with a velocity, q-dot = E v.

    >>> import sarrus
    >>> sarrus.derivatives.coordinates_by_tangent(sarrus.mechanisms.pendulum(), [0.5])
    array([[1.]])
    """
    return _array("coordinates_by_tangent", robot, q, **options)


@shows_options
def tangent_by_coordinates(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """N (..., nv, nq), which takes rates of q's entries to velocities: N E = 1, and a change of a quaternion's length to nothing.

    A gradient g (nq) by the entries of q is ``g @ E`` by displacements; one by displacements (nv) times N is one by entries again.

    >>> import sarrus
    >>> sarrus.derivatives.tangent_by_coordinates(sarrus.mechanisms.pendulum(), [0.5])
    array([[1.]])
    """
    return _array("tangent_by_coordinates", robot, q, **options)
