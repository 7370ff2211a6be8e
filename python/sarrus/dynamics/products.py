"""Products of the derivatives of the equations of motion: with a vector (jvp), and with a cotangent (vjp)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array, checked_times, checked_truth, common_axes, real_rows
from .._showing import Brief
from .derivatives import (
    Along,
    ask,
    check_forward,
    check_robot,
    forward_by_dimensions,
    inverse_by_dimensions,
    is_default,
    is_smooth,
    warn_of_friction,
)
from .loop_operations import LoopFunctions
from .operations import _undeclared
from .options import BatchTime, MotionOptions, ReactionOptions, TimeOptions, Unpack, Wrenches, shows_options

if TYPE_CHECKING:
    from typing import Unpack

_inverse_jvp = _undeclared("inverse_dynamics_jvp")
_forward_jvp = _undeclared("forward_dynamics_jvp")
_inverse_vjp = _undeclared("inverse_dynamics_vjp")
_forward_vjp = _undeclared("forward_dynamics_vjp")


@dataclass(frozen=True, eq=False, repr=False)
class InverseDynamicsVJP(Brief):
    """Product of a cotangent of the generalised force with the derivatives of the generalised force.

    Attributes
    ----------
    q : (..., nv) with respect to a displacement dq in the tangent space, where the displaced configuration is ``robot.integrate(q, dq)``
    v, a : (..., nv) with respect to the velocity and to the acceleration
    parameters : (..., 10 bodies) with respect to the inertial parameters, in the order of :meth:`~sarrus.Mechanism.regressor`
    dimensions : (..., n) with respect to placements of joints, springs and gravity, in the order of :func:`dimensions`; None unless ``dimensions=True``
    """

    q: Array
    v: Array
    a: Array
    parameters: Array
    dimensions: Array | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ForwardDynamicsVJP(Brief):
    """Product of a cotangent of the acceleration with the derivatives of the acceleration.

    Attributes
    ----------
    q : (..., nv) with respect to a displacement dq in the tangent space, where the displaced configuration is ``robot.integrate(q, dq)``
    v, tau : (..., nv) with respect to the velocity and to the generalised force
    parameters : (..., 10 bodies) with respect to the inertial parameters, in the order of :meth:`~sarrus.Mechanism.regressor`
    dimensions : (..., n) with respect to placements, lengths, radii, ratios, springs and gravity, in the order of :func:`dimensions`. q and v change
        with the dimensions, with least kinetic energy, so that the loops stay closed; NaN if the loops cannot close with changed dimensions; None
        unless requested
    """

    q: Array
    v: Array
    tau: Array
    parameters: Array
    dimensions: Array | None = None


_inverse_jvp_of_one_state = _core.call_with_parts("inverse_dynamics_jvp", None, [], keeps=False)
_forward_jvp_of_one_state = _core.call_with_parts("forward_dynamics_jvp", None, [], keeps=False)
_inverse_vjp_of_one_state = _core.call_with_parts(
    "inverse_dynamics_vjp", InverseDynamicsVJP, [("q", "v"), ("v", "v"), ("a", "v"), ("parameters", "P")], keeps=False
)
_forward_vjp_of_one_state = _core.call_with_parts(
    "forward_dynamics_vjp", ForwardDynamicsVJP, [("q", "v"), ("v", "v"), ("tau", "v"), ("parameters", "P")], keeps=False
)


@shows_options
def inverse_dynamics_jvp(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, dq: ArrayLike, dv: ArrayLike, da: ArrayLike,
    **options: Unpack[MotionOptions],
) -> Array:  # fmt: skip
    """Return the change of the generalised force of the tree due to a change of its motion.

    This takes two to three times as long as inverse dynamics.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
    dq, dv, da : (..., nv) each: a displacement in the tangent space, where the displaced configuration is ``robot.integrate(q, dq)``, and
        changes of v and a [rad, m; rad/s, m/s; rad/s^2, m/s^2]
    wrenches, base_velocity, base_acceleration, out, threads, return_status : as in :meth:`~sarrus.Mechanism.inverse_dynamics`

    Returns
    -------
    (..., nv) q dq + v dv + a da with the matrices of :func:`inverse_dynamics`

    Examples
    --------
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)  # hangs along -z
    >>> sarrus.derivatives.inverse_dynamics_jvp(pendulum, [0.0], [0.0], [0.0], [1.0], [0.0], [2.0]).round(2)  # m g l + 2 m l^2
    array([10.81])
    """
    if (
        not options
        and is_smooth(robot)
        and (change := _inverse_jvp_of_one_state(robot, q, v, a, dq, dv, da)) is not None
    ):
        return cast(Array, change)
    check_robot(robot)
    warn_of_friction(robot, q, v, None)
    return _inverse_jvp(robot, q, v, a, _concatenated(robot, dq=dq, dv=dv, da=da), **cast(Any, options))


@shows_options
def forward_dynamics_jvp(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike, dq: ArrayLike, dv: ArrayLike, dtau: ArrayLike, *,
    wrenches: Wrenches | None = None, along: Along = "tangent", check: bool = True, **options: Unpack[TimeOptions],
) -> Array:  # fmt: skip
    """Return the change of the acceleration due to a change of the state and of tau, with loops.

    Parameters
    ----------
    q, v, tau : (..., nq), (..., nv), (..., nv) configuration, velocity and generalised force [rad, m; rad/s, m/s; N m, N]; q and v satisfy the loops
    dq, dv, dtau : (..., nv) each: a displacement in the tangent space, where the displaced configuration is ``robot.integrate(q, dq)``, and
        changes of v and tau [rad, m; rad/s, m/s; N m, N]
    along : "tangent" projects dq and dv onto the loop constraints, with a consistent change of v; "any" uses dq and dv unchanged, as if the
        constraint rows were independent
    wrenches, check, time, out, threads, return_status : as in :meth:`~sarrus.Mechanism.forward_dynamics`

    Returns
    -------
    (..., nv) q dq + v dv + tau dtau with the matrices of :func:`forward_dynamics`

    Raises
    ------
    StateError
        The conditions of :func:`forward_dynamics` are violated, or constraint rows are inconsistent along dq and dv.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> q, zero = robot.assemble(), np.zeros(3)
    >>> D = sarrus.derivatives.forward_dynamics(robot, q, zero, zero)
    >>> along = sarrus.derivatives.forward_dynamics_jvp(robot, q, zero, zero, [0.1, 0.0, 0.0], zero, zero)
    >>> bool(abs(along - 0.1 * D.q[:, 0]).max() < 1e-12)
    True
    """
    usual = is_default(wrenches, along, check, options) and is_smooth(robot)
    if usual and (change := _forward_jvp_of_one_state(robot, q, v, tau, dq, dv, dtau)) is not None:
        return cast(Array, change)
    tangent = check_forward(robot, along)
    warn_of_friction(robot, q, v, options.get("time"))
    arguments = {"tangent": tangent, "wrenches": wrenches, "check": check} | cast(Any, options)
    return _forward_jvp(robot, q, v, tau, _concatenated(robot, dq=dq, dv=dv, dtau=dtau), **arguments)


@shows_options
def inverse_dynamics_vjp(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, cotangent: ArrayLike, *, dimensions: bool = False,
    **options: Unpack[ReactionOptions],
) -> Any:  # fmt: skip
    """Return the product of a cotangent w of the tree's generalised force with the derivatives of that force.

    The product takes one pass over the bodies. The matrices of derivatives are not computed.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
    cotangent : (..., nv) w [unit of the differentiated function per unit of this function's result]
    dimensions : True also computes derivatives with respect to :func:`dimensions`, in one more pass
    wrenches, base_velocity, base_acceleration : as in :meth:`~sarrus.Mechanism.inverse_dynamics`
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    InverseDynamicsVJP

    Examples
    --------
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)  # hangs along -z
    >>> w = sarrus.derivatives.inverse_dynamics_vjp(pendulum, [0.0], [0.0], [1.0], [1.0])
    >>> w.q.round(2), w.a.round(2)  # m g l and m l^2
    (array([9.81]), array([0.5]))
    """
    usual = not options and dimensions is False and is_smooth(robot)
    if usual and (products := _inverse_vjp_of_one_state(robot, q, v, a, cotangent)):
        return products
    checked_truth("dimensions", dimensions)
    check_robot(robot)
    answer, *status = ask(_inverse_vjp, robot, q, v, a, cotangent, options)
    warn_of_friction(robot, q, v, None)
    by_dimensions = inverse_by_dimensions(robot, (q, v, a), cotangent, cast(Any, options)) if dimensions else None
    by_q, by_v, by_a, by_bodies = _parts(answer, robot.nv)
    products = InverseDynamicsVJP._made(q=by_q, v=by_v, a=by_a, parameters=by_bodies, dimensions=by_dimensions)
    return (products, *status) if status else products


@shows_options
def forward_dynamics_vjp(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike, cotangent: ArrayLike, *,
    wrenches: Wrenches | None = None, along: Along = "tangent", check: bool = True, dimensions: bool = False,
    **options: Unpack[BatchTime],
) -> Any:  # fmt: skip
    """Return the product of a cotangent w of the acceleration with the derivatives of the acceleration, with loops.

    The cost is one pass over the bodies and one linear solve; if constraint rows are dependent, up to three passes.

    Parameters
    ----------
    q, v, tau : (..., nq), (..., nv), (..., nv) configuration, velocity and generalised force [rad, m; rad/s, m/s; N m, N]; q and v satisfy the loops
    cotangent : (..., nv) w [unit of the differentiated function per unit of this function's result]
    along : "tangent" projects displacements and changes of v onto the loop constraints; "any" uses them unchanged, as if the constraint rows were
        independent
    dimensions : True also computes derivatives with respect to :func:`dimensions`
    wrenches, check, time : as in :meth:`~sarrus.Mechanism.forward_dynamics`
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    ForwardDynamicsVJP

    Raises
    ------
    StateError
        The conditions of :func:`forward_dynamics` are violated, or dependent rows are inconsistent in the directions of `along`.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> q, zero, w = robot.assemble(), np.zeros(3), np.array([1.0, 0.0, 0.0])
    >>> D = sarrus.derivatives.forward_dynamics(robot, q, zero, zero)
    >>> product = sarrus.derivatives.forward_dynamics_vjp(robot, q, zero, zero, w)
    >>> bool(abs(product.q - w @ D.q).max() < 1e-12)
    True
    """
    usual = dimensions is False and is_default(wrenches, along, check, options) and is_smooth(robot)
    if usual and (products := _forward_vjp_of_one_state(robot, q, v, tau, cotangent)):
        return products
    checked_truth("dimensions", dimensions)
    check_robot(robot)
    arguments: Any = {"tangent": check_forward(robot, along), "wrenches": wrenches, "check": check, **options}
    answer, *status = ask(_forward_vjp, robot, q, v, tau, cotangent, arguments)
    warn_of_friction(robot, q, v, options.get("time"))
    by_dimensions = forward_by_dimensions(robot, (q, v, tau), cotangent, arguments) if dimensions else None
    by_q, by_v, by_tau, by_bodies = _parts(answer, robot.nv)
    products = ForwardDynamicsVJP._made(q=by_q, v=by_v, tau=by_tau, parameters=by_bodies, dimensions=by_dimensions)
    return (products, *status) if status else products


def _concatenated(robot: LoopFunctions, **changes: ArrayLike) -> Array:
    rows = [real_rows(name, value, robot.nv, finite=False) for name, value in changes.items()]
    if any(x.shape != rows[0].shape for x in rows):
        lead = common_axes({name: x.shape[:-1] for name, x in zip(changes, rows, strict=True)})
        rows = [np.broadcast_to(x, (*lead, robot.nv)) for x in rows]
    return np.concatenate(rows, axis=-1)


def _parts(answer: Array, nv: int) -> tuple[Array, Array, Array, Array]:
    return answer[..., :nv], answer[..., nv : 2 * nv], answer[..., 2 * nv : 3 * nv], answer[..., 3 * nv :]


# ---- derivatives of the efforts of actuators -------------------------------------------------------------------------


_vjp = _undeclared("actuator_efforts_vjp")


@dataclass(frozen=True, eq=False, repr=False)
class ActuatorEffortsDerivatives(Brief):
    """Derivatives of the motor efforts with respect to the motion, or the product of a cotangent with these derivatives.

    Arrays of the product have no axis nu.

    Attributes
    ----------
    q : (..., nu, nv) with respect to a displacement dq in the tangent space, where the displaced configuration is ``robot.integrate(q, dq)``
    v, a : (..., nu, nv) with respect to the velocity and to the acceleration
    parameters : (..., nu, 10 bodies) with respect to the inertial parameters, in the order of :meth:`~sarrus.Mechanism.regressor`
    """

    q: Array
    v: Array
    a: Array
    parameters: Array


_efforts_of_one_state = _core.of_one_state("efforts_derivatives", ActuatorEffortsDerivatives)
_vjp_of_one_state = _core.call_with_parts(
    "actuator_efforts_vjp", ActuatorEffortsDerivatives, [("q", "v"), ("v", "v"), ("a", "v"), ("parameters", "P")], keeps=False
)  # fmt: skip


@shows_options
def actuator_efforts(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, weights: ArrayLike | None = None,
    wrenches: Wrenches | None = None, check: bool = True, **options: Unpack[BatchTime],
) -> Any:  # fmt: skip
    """Return the derivatives of :meth:`~sarrus.Mechanism.actuator_efforts`, by one pass over the bodies for each motor.

    The derivatives are exact with respect to v and a, and along displacements that the loops allow. Along displacements that open the loops, they are
    computed as if the constraint rows were independent. External wrenches are constant in the axes of their frames. The Coulomb friction torque is
    treated as constant, which is correct only for moving joints. A ModelWarning is issued if a joint with friction is at rest.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]; q and v satisfy the loops
    weights : (nu,) positive weights of the motors as in :meth:`~sarrus.Mechanism.actuator_efforts` (dimensionless); default: from the characteristic
        length
    wrenches, check, time : as in :meth:`~sarrus.Mechanism.actuator_efforts`
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    ActuatorEffortsDerivatives

    Raises
    ------
    NotRealizableError, StateError
        As in :meth:`~sarrus.Mechanism.actuator_efforts`; also if constraint rows are a Python function of q, whose derivative is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> q, rest = robot.assemble(), np.zeros(3)
    >>> D = sarrus.derivatives.actuator_efforts(robot, q, rest, rest)
    >>> step = 1e-6 * robot.complete_velocity(q, {"motor": 1.0})
    >>> moved = robot.actuator_efforts(robot.integrate(q, step), rest, rest) - robot.actuator_efforts(q, rest, rest)
    >>> bool(abs(moved - D.q @ step).max() < 1e-9)
    True
    """
    usual = not options and weights is None and wrenches is None and check is True
    if usual and (derivatives := _efforts_of_one_state(robot, q, v, a)):
        return derivatives
    check_forward(robot, "any")
    sizes = (("q", q, robot.nq), ("v", v, robot.nv), ("a", a, robot.nv))
    states = [real_rows(name, x, size, finite=False) for name, x, size in sizes]
    loads = _before_motors(wrenches) if isinstance(wrenches, Mapping) else wrenches
    arguments = {"weights": weights, "wrenches": loads, "check": check} | cast(Any, options)
    if (when := checked_times(options.get("time"))) is not None:
        arguments["time"] = np.asarray(when)[..., None]
    with_status = checked_truth("return_status", arguments.pop("return_status", False))
    answer, statuses = _vjp(
        robot, *(x[..., None, :] for x in states), np.eye(robot.nu), return_status=True, **arguments
    )
    status = statuses.max(axis=-1, initial=0)
    if np.ndim(status) == 0 and status and not with_status:  # raises the error
        _vjp(
            robot, *states, np.ones(robot.nu), weights=weights, wrenches=wrenches, check=check, time=options.get("time")
        )
    warn_of_friction(robot, q, v, options.get("time"))
    derivatives = _efforts_parts(answer, robot.nv)
    return (derivatives, status) if with_status else derivatives


@shows_options
def actuator_efforts_vjp(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, cotangent: ArrayLike, *, weights: ArrayLike | None = None,
    wrenches: Wrenches | None = None, check: bool = True, **options: Unpack[BatchTime],
) -> Any:  # fmt: skip
    """Return the product of a cotangent w of the motor efforts with their derivatives, in one pass over the bodies and two linear solves.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]; q and v satisfy the loops
    cotangent : (..., nu) w [unit of the differentiated function per N m, N]
    weights, wrenches, check, time, threads, return_status : as in :func:`actuator_efforts`

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> q, rest = robot.assemble(), np.zeros(3)
    >>> product = sarrus.derivatives.actuator_efforts_vjp(robot, q, rest, rest, [2.0])
    >>> D = sarrus.derivatives.actuator_efforts(robot, q, rest, rest)
    >>> bool(abs(product.q - 2.0 * D.q[0]).max() < 1e-12)
    True
    """
    usual = not options and weights is None and wrenches is None and check is True and is_smooth(robot)
    if usual and (products := _vjp_of_one_state(robot, q, v, a, cotangent)):
        return products
    check_forward(robot, "any")
    arguments = {"weights": weights, "wrenches": wrenches, "check": check} | cast(Any, options)
    answer, *status = ask(_vjp, robot, q, v, a, real_rows("cotangent", cotangent, robot.nu, finite=False), arguments)
    warn_of_friction(robot, q, v, options.get("time"))
    products = _efforts_parts(answer, robot.nv)
    return (products, *status) if status else products


def _before_motors(wrenches: Wrenches) -> dict[str, Array]:
    return {
        name: real_rows(f"wrenches['{name}']", w, 6, finite=False)[..., None, :] for name, w in list(wrenches.items())
    }


def _efforts_parts(answer: Array, nv: int) -> ActuatorEffortsDerivatives:
    cuts = (slice(0, nv), slice(nv, 2 * nv), slice(2 * nv, 3 * nv), slice(3 * nv, None))
    return ActuatorEffortsDerivatives(*(answer[..., part] for part in cuts))
