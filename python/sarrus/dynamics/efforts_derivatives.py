"""Derivatives of what motors must do for a motion, loops and redundant motors included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, checked_times, checked_truth, real_rows
from .._showing import Brief
from .derivatives import ask, check_forward, warn_of_friction
from .loop_operations import LoopFunctions
from .operations import _undeclared
from .options import BatchTime, Wrenches, shows_options

if TYPE_CHECKING:
    from typing import Unpack

_vjp = _undeclared("actuator_efforts_vjp")


@dataclass(frozen=True, eq=False, repr=False)
class ActuatorEffortsDerivatives(Brief):
    """How the efforts of the motors change with the motion, or a cotangent of them times that: then without the axis of nu.

    Attributes
    ----------
    q : (..., nu, nv) by a displacement in the tangent space, after which the configuration is ``robot.integrate(q, dq)``
    v, a : (..., nu, nv) by the velocity and by the acceleration
    parameters : (..., nu, 10 bodies) by the inertial parameters, in the order of :meth:`~sarrus.Mechanism.regressor`
    """

    q: Array
    v: Array
    a: Array
    parameters: Array


@shows_options
def actuator_efforts(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, weights: ArrayLike | None = None,
    wrenches: Wrenches | None = None, check: bool = True, **options: Unpack[BatchTime],
) -> Any:  # fmt: skip
    """Derivatives of :meth:`~sarrus.Mechanism.actuator_efforts`, one pass over the bodies a motor.

    Exact by v and a, and by displacements that the loops allow; by others as if rows were never dependent. Wrenches stay as they are in
    the axes of their frames. Coulomb friction counts as constant: where a joint that has some stands still, a warning says so.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv); q and v satisfy the loops
    weights : (nu,) of the motors; default: by the mechanism's length
    wrenches, check, time : as in :meth:`~sarrus.Mechanism.actuator_efforts`
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    ActuatorEffortsDerivatives

    Raises
    ------
    NotRealizableError, StateError
        As :meth:`~sarrus.Mechanism.actuator_efforts`. Rows of the constraints are a function of q whose rate nobody knows.

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
    check_forward(robot, "any")
    sizes = (("q", q, robot.nq), ("v", v, robot.nv), ("a", a, robot.nv))
    states = [real_rows(name, x, size, finite=False) for name, x, size in sizes]
    loads = _before_motors(wrenches) if isinstance(wrenches, Mapping) else wrenches
    how = {"weights": weights, "wrenches": loads, "check": check} | cast(Any, options)
    if (when := checked_times(options.get("time"))) is not None:
        how["time"] = np.asarray(when)[..., None]
    with_status = checked_truth("return_status", how.pop("return_status", False))
    answer, of_motors = _vjp(robot, *(x[..., None, :] for x in states), np.eye(robot.nu), return_status=True, **how)
    status = of_motors.max(axis=-1, initial=0)
    if np.ndim(status) == 0 and status and not with_status:  # which raises what it means
        _vjp(
            robot, *states, np.ones(robot.nu), weights=weights, wrenches=wrenches, check=check, time=options.get("time")
        )
    warn_of_friction(robot, q, v, options.get("time"))
    derivatives = _parts(answer, robot.nv)
    return (derivatives, status) if with_status else derivatives


@shows_options
def actuator_efforts_vjp(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, cotangent: ArrayLike, *, weights: ArrayLike | None = None,
    wrenches: Wrenches | None = None, check: bool = True, **options: Unpack[BatchTime],
) -> Any:  # fmt: skip
    """A cotangent w (..., nu) of the efforts times their derivatives, in one pass over the bodies and two solves.

    Otherwise as :func:`actuator_efforts`.

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
    check_forward(robot, "any")
    how = {"weights": weights, "wrenches": wrenches, "check": check} | cast(Any, options)
    answer, *status = ask(_vjp, robot, q, v, a, real_rows("cotangent", cotangent, robot.nu, finite=False), how)
    warn_of_friction(robot, q, v, options.get("time"))
    products = _parts(answer, robot.nv)
    return (products, *status) if status else products


def _before_motors(wrenches: Wrenches) -> dict[str, Array]:
    return {
        name: real_rows(f"wrenches['{name}']", w, 6, finite=False)[..., None, :] for name, w in list(wrenches.items())
    }


def _parts(answer: Array, nv: int) -> ActuatorEffortsDerivatives:
    cuts = (slice(0, nv), slice(nv, 2 * nv), slice(2 * nv, 3 * nv), slice(3 * nv, None))
    return ActuatorEffortsDerivatives(*(answer[..., part] for part in cuts))
