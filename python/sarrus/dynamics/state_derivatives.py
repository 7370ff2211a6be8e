"""Derivatives of functions of a state by forward-mode differentiation of each function's kernel (``cpp/kernels/rate_kernels.cpp``)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array
from .._showing import Brief
from ..errors import StateError
from .derivatives import ask, check_robot
from .loop_operations import LoopFunctions
from .operations import _undeclared
from .options import BatchOptions, BatchTime, ExpressedIn, F, StateOptions, TimeOptions, shows_options

if TYPE_CHECKING:
    from typing import Unpack


@dataclass(frozen=True, eq=False, repr=False)
class StateDerivatives(Brief):
    """Derivatives of a function of a state: d f = q dq + v dv.

    Attributes
    ----------
    q : (..., n, nv), or (..., nv) for a scalar function, with respect to a displacement dq (nv) in the tangent space [unit of f per rad, m]. The displaced
        configuration is ``robot.integrate(q, dq)``
    v : (..., n, nv) or (..., nv), with respect to the velocity [unit of f per rad/s, m/s]
    """

    q: Array
    v: Array


@dataclass(frozen=True, eq=False, repr=False)
class MotionDerivatives(StateDerivatives):
    """Derivatives of a function of a motion: d f = q dq + v dv + a da.

    Attributes
    ----------
    q, v : as in :class:`StateDerivatives`
    a : (..., n, nv) with respect to the acceleration [unit of f per rad/s2, m/s2]
    """

    a: Array


@dataclass(frozen=True, eq=False, repr=False)
class IntegrateDerivatives(Brief):
    """Derivatives of the configuration after motion with a velocity; displacements of the result are in its own tangent space.

    Attributes
    ----------
    q : (..., nv, nv) with respect to a displacement of the initial configuration [rad, m per rad, m]
    dv : (..., nv, nv) with respect to the velocity: the differential of the exponential map [rad, m per rad, m]
    """

    q: Array
    dv: Array


@dataclass(frozen=True, eq=False, repr=False)
class DifferenceDerivatives(Brief):
    """Derivatives of the velocity from one configuration to another.

    Attributes
    ----------
    q0, q1 : (..., nv, nv) with respect to a displacement of each configuration, in its own tangent space [rad, m per rad, m]
    """

    q0: Array
    q1: Array


def _of_core(name: str, kind: type | None = None, *, axes: int = 2, rows: bool = False) -> Callable[[F], F]:
    """Return a decorator that replaces a declaration by the core's function of that name.

    kind : class of a result with a derivative by each input; the core returns these derivatives stacked
    axes : number of axes of a derivative
    rows : True if the function requires rates of the constraint rows
    """
    core: Any = _undeclared(name)
    of_one_state: Any = None
    if kind is not None:
        of_one_state = _core.call_with_parts(name, kind, [(field.name, "") for field in fields(kind)], keeps=False)

    def decorator(declared: F) -> F:
        @functools.wraps(declared)
        def answered(robot: LoopFunctions, *arguments: Any, **options: Any) -> Any:
            if of_one_state and not options and (derivatives := of_one_state(robot, *arguments)):
                return derivatives
            check_robot(robot)
            if rows and robot._asks_for_rows:
                fault = "some constraint rows are a Python function of q, whose derivative is unknown"
                raise StateError(f"derivatives of {declared.__name__} are not available: {fault}")
            try:
                if kind is None:
                    return core(robot, *arguments, **options)
                answer, *status = ask(core, robot, *arguments, options)
            except TypeError:
                declared(robot, *arguments, **options)  # raises an error with the name of the called function
                raise
            part = (slice(None),) * axes
            derivatives = kind(*(answer[(..., k, *part)] for k in range(answer.shape[-1 - axes])))
            return (derivatives, *status) if status else derivatives

        return shows_options(cast(F, answered))

    return decorator


# ---- frames ----------------------------------------------------------------------------------------------------------


@_of_core("pose_derivatives")
def pose(robot: LoopFunctions, q: ArrayLike, frame: str, **options: Unpack[StateOptions]) -> Array:
    """Return the derivative (..., 4, 4, nv) of each entry of a frame's pose with respect to displacements of the tree joints.

    ``robot.jacobian`` returns this derivative as twists.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    frame : name of a frame, see `frames` of the mechanism
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(length=0.5)
    >>> sarrus.derivatives.pose(pendulum, [0.0], "tip")[:3, 3, 0].tolist()
    [-0.5, 0.0, 0.0]
    """


@_of_core("velocity_derivatives", StateDerivatives)
def velocity(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, frame: str, *, expressed_in: ExpressedIn = "frame", **options: Unpack[BatchOptions]
) -> Any:  # fmt: skip
    """Return the derivatives of :meth:`~sarrus.Mechanism.velocity` with respect to q and v of the tree, a :class:`StateDerivatives` of (..., 6, nv).

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    frame : name of a frame, see `frames` of the mechanism
    expressed_in, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(length=0.5)
    >>> D = sarrus.derivatives.velocity(pendulum, [0.0], [2.0], "tip", expressed_in="world_aligned")
    >>> D.q[3:, 0].tolist(), D.v[3:, 0].tolist()
    ([0.0, 0.0, 1.0], [-0.5, 0.0, 0.0])
    """


@_of_core("acceleration_derivatives", MotionDerivatives)
def acceleration(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str, *, expressed_in: ExpressedIn = "frame",
    **options: Unpack[BatchOptions],
) -> Any:  # fmt: skip
    """Return the derivatives of :meth:`~sarrus.Mechanism.acceleration` with respect to q, v and a of the tree, a :class:`MotionDerivatives` of (...,
    6, nv).

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
    frame : name of a frame, see `frames` of the mechanism
    expressed_in, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(length=0.5)
    >>> sarrus.derivatives.acceleration(pendulum, [0.0], [2.0], [0.0], "tip").v[3:, 0].tolist()  # of the centripetal one
    [0.0, 0.0, 2.0]
    """


# ---- masses ----------------------------------------------------------------------------------------------------------


@_of_core("center_of_mass_jacobian")
def center_of_mass(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return the derivative (..., 3, nv) of the centre of mass with respect to q of the tree.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.derivatives.center_of_mass(sarrus.mechanisms.pendulum(length=0.5), [0.0]).ravel().tolist()
    [-0.5, 0.0, 0.0]
    """


@_of_core("momentum_derivatives", StateDerivatives)
def momentum(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Return the derivatives of :meth:`~sarrus.Mechanism.momentum` with respect to q and v of the tree, a :class:`StateDerivatives` of (..., 6, nv).

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.derivatives.momentum(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], [2.0]).v[3:, 0].tolist()
    [-1.0, 0.0, 0.0]
    """


@_of_core("centroidal_momentum_derivatives", StateDerivatives)
def centroidal_momentum(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Return the derivatives of :func:`sarrus.floating.centroidal_momentum` with respect to q and v of the tree, a :class:`StateDerivatives` of (...,
    6, nv).

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.derivatives.centroidal_momentum(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], [2.0]).q[3:, 0].tolist()
    [0.0, 0.0, 2.0]
    """


@_of_core("gravity_forces_derivatives")
def gravity_forces(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return the derivative (..., nv, nv) of :meth:`~sarrus.Mechanism.gravity_forces` with respect to q of the tree; symmetric if v = dq/dt.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.derivatives.gravity_forces(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0]).round(3)  # m g l
    array([[9.81]])
    """


@_of_core("kinetic_energy_derivatives", StateDerivatives, axes=1)
def kinetic_energy(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Return the derivatives of :meth:`~sarrus.Mechanism.kinetic_energy` with respect to q and v of the tree, a :class:`StateDerivatives` of (...,
    nv).

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.derivatives.kinetic_energy(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], [2.0]).v  # M v
    array([1.])
    """


@_of_core("potential_energy_derivatives")
def potential_energy(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return the derivative (..., nv) of :meth:`~sarrus.Mechanism.potential_energy` with respect to q of the tree: forces that balance gravity and
    springs.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> sarrus.derivatives.potential_energy(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [np.pi / 2]).round(3)
    array([9.81])
    """


# ---- constraints -----------------------------------------------------------------------------------------------------


@_of_core("constraint_residual_derivatives", rows=True)
def constraint_residual(robot: LoopFunctions, q: ArrayLike, **options: Unpack[TimeOptions]) -> Array:
    """Return the derivative (..., nc, nv) of :meth:`~sarrus.Mechanism.constraint_residual` with respect to q of the tree, for closed and open loops.

    Rows of velocity constraints are zero. All other rows equal the rows of the constraint Jacobian if the loops are closed.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    time : (...) time for prescribed motions [s]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> q = robot.assemble()
    >>> bool(abs(sarrus.derivatives.constraint_residual(robot, q) - robot.constraint_jacobian(q)).max() < 1e-12)
    True
    """


@_of_core("constraint_rates_derivatives", StateDerivatives, rows=True)
def constraint_rates(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[BatchTime]) -> Any:
    """Return the derivatives of the constraints' rates J(q) v with respect to q and v of the tree, a :class:`StateDerivatives` of (..., nc, nv).

    J is :meth:`~sarrus.Mechanism.constraint_jacobian`.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    time : (...) time for prescribed motions [s]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    StateError
        Constraint rows are a Python function of q, whose derivative is unknown.

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


# ---- configurations --------------------------------------------------------------------------------------------------


@_of_core("integrate_derivatives", IntegrateDerivatives)
def integrate(robot: LoopFunctions, q: ArrayLike, dv: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Return the derivatives of :meth:`~sarrus.Mechanism.integrate` with respect to q and dv, an :class:`IntegrateDerivatives`, in tangent spaces.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    dv : (..., nv) displacement: velocity times unit time [rad, m]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.mechanisms.stanford_arm()
    >>> D = sarrus.derivatives.integrate(arm, arm.neutral(), np.ones(arm.nv))
    >>> bool((D.q == np.eye(arm.nv)).all() and (D.dv == np.eye(arm.nv)).all())  # because v = dq/dt
    True
    """


@_of_core("difference_derivatives", DifferenceDerivatives)
def difference(robot: LoopFunctions, q0: ArrayLike, q1: ArrayLike, **options: Unpack[BatchOptions]) -> Any:
    """Return the derivatives of :meth:`~sarrus.Mechanism.difference` with respect to displacements of both configurations, a
    :class:`DifferenceDerivatives`.

    If the rotation between both configurations is half a revolution, the difference is discontinuous, and there is no derivative.

    Parameters
    ----------
    q0, q1 : (..., nq) configurations [rad, m]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> D = sarrus.derivatives.difference(sarrus.mechanisms.pendulum(), [0.5], [0.75])
    >>> D.q0, D.q1
    (array([[-1.]]), array([[1.]]))
    """


@_of_core("coordinates_by_tangent")
def coordinates_by_tangent(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return E (..., nq, nv), the derivative of the entries of q with respect to a displacement, with q-dot = E v.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.derivatives.coordinates_by_tangent(sarrus.mechanisms.pendulum(), [0.5])
    array([[1.]])
    """


@_of_core("tangent_by_coordinates")
def tangent_by_coordinates(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return N (..., nv, nq), which maps rates of the entries of q to velocities, and changes of a quaternion's norm to zero.

    N E = 1 with E of :func:`coordinates_by_tangent`. A gradient g (nq) with respect to the entries of q is converted to a gradient with respect to
    displacements by ``g @ E``, and a gradient g (nv) with respect to displacements to one with respect to the entries by ``g @ N``.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.derivatives.tangent_by_coordinates(sarrus.mechanisms.pendulum(), [0.5])
    array([[1.]])
    """
