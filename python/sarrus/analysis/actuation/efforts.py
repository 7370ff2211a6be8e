"""Motor efforts that produce a motion of a mechanism with loops, and their distribution over redundant motors.

A motion requires the generalised force tau = M a + h. The motors contribute S u, and the loop constraints J^T lambda:

  S u + J^T lambda = tau    <=>    N^T S u = N^T tau     with J N = 0

The number of equations is the number of degrees of freedom. The core solves them (cpp/loops/efforts.hpp). This module selects the motors,
applies effort limits and writes the error messages.

Forces and displacements are scaled by the mechanism's characteristic length, so that N and N m, and m and rad, are comparable
(analysis/scaling.py).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, cast, overload

import numpy as np

from ... import _core
from ..._arrays import Array, ArrayLike, NDArray, checked_truth, common_axes, into, real_array, real_rows
from ..._core import Status, tolerances
from ...dynamics.loop_operations import LoopFunctions
from ...dynamics.operations import _operation
from ...dynamics.options import Distribution, StateOptions, TimeOptions, Unpack, Wrenches
from ...dynamics.reactions import least_reactions
from ...dynamics.states import of_states
from ...errors import ModelError, NotRealizableError, ShapeError, StateError, check_choice
from ..assembly.closing import closing, on_its_tree, prepared
from ..independent_coordinates import joint_velocity, loop_motions
from ..linear_algebra import applied, orthonormal, same_freedom, solutions, transposed
from ..scaling import velocity_scale

_ARGUMENT = {"low": "limits[0]", "high": "limits[1]"}
FAR = 1e30  # value of a limit that means "no limit" in bounded_efforts.hpp


@of_states
def actuation_matrix(
    robot: LoopFunctions, q: ArrayLike, *, actuated: Sequence[str] | None = None, **options: Unpack[StateOptions]
) -> Array:
    """Return the actuation matrix S (..., nv, nu) of motors in tree joints or loop joints, in the coordinates of the tree.

    Motor efforts u produce the generalised force tau = S u. The velocities of the motors are S^T v.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m, quaternions (x, y, z, w)]
    actuated : names of the joints with motors, tree or loop joints; default: the actuated joints of the description
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> fourbar.actuation_matrix(fourbar.assemble(), actuated=["pin2"]).shape
    (3, 1)
    """
    names = motors_of(robot, actuated)
    q = robot.normalize(q)  # raises the errors of q
    common_axes({"the result": (*q.shape, robot.nv)})
    parts = [transposed(joint_velocity(robot, q, name)) for name in names]
    empty = np.zeros((*q.shape[:-1], robot.nv, 0))
    S = np.concatenate([empty, *(np.broadcast_to(p, (*q.shape[:-1], *p.shape[-2:])) for p in parts)], axis=-1)
    return np.where(np.asarray(np.isnan(q).any(axis=-1))[..., None, None], np.nan, S)


@of_states
def internal_efforts(
    robot: LoopFunctions,
    q: ArrayLike,
    *,
    actuated: Sequence[str] | None = None,
    time: ArrayLike | None = None,
    **options: Unpack[StateOptions],
) -> Array:
    """Return an orthonormal basis (..., nu, k) of the efforts that cause no motion, because redundant motors act against each other.

    Parameters
    ----------
    q : (..., nq) configuration that closes the loops [rad, m, quaternions (x, y, z, w)]
    actuated : names of the joints with motors; default: the actuated joints of the description
    time : (...) time for prescribed motions [s]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.five_bar(actuated=3)
    >>> robot.internal_efforts(robot.assemble()).shape
    (3, 1)
    """
    q, times = robot.normalize(q), None if time is None else real_array("time", time)
    lead = q.shape[:-1] if times is None else common_axes({"q": q.shape[:-1], "time": times.shape})
    states = np.broadcast_to(q, (*lead, robot.nq)).reshape(-1, robot.nq)
    times = None if times is None else np.broadcast_to(times, lead).ravel()
    bases, freedom = _core.internal_efforts(robot, states, motors_of(robot, actuated), times)
    bases = bases[..., : same_freedom(freedom[freedom >= 0])]
    return np.asarray(bases.reshape(*lead, *bases.shape[1:]))


@overload
def actuator_efforts(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, actuated: Sequence[str] | None = None, wrenches: Wrenches | None = None,
    distribution: Distribution = "minimum-norm", weights: ArrayLike | None = None, limits: tuple[ArrayLike, ArrayLike] | None = None,
    preload: ArrayLike | None = None, return_reactions: Literal[False] = False, exact: bool = False, check: bool = True, **options: Unpack[TimeOptions],
) -> Array: ...  # fmt: skip


@overload
def actuator_efforts(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, actuated: Sequence[str] | None = None, wrenches: Wrenches | None = None,
    distribution: Distribution = "minimum-norm", weights: ArrayLike | None = None, limits: tuple[ArrayLike, ArrayLike] | None = None,
    preload: ArrayLike | None = None, return_reactions: Literal[True], exact: bool = False, check: bool = True, **options: Unpack[TimeOptions],
) -> tuple[Array, Array]: ...  # fmt: skip


@_operation
def actuator_efforts(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, actuated: Sequence[str] | None = None, wrenches: Wrenches | None = None,
    distribution: Distribution = "minimum-norm", weights: ArrayLike | None = None, limits: tuple[ArrayLike, ArrayLike] | None = None,
    preload: ArrayLike | None = None, return_reactions: bool = False, exact: bool = False, check: bool = True,
    **options: Unpack[TimeOptions],
) -> Any:  # fmt: skip
    """Compute the motor efforts u (..., nu) that produce a motion of a mechanism with loops (inverse dynamics of closed chains).

    The efforts solve S u + J^T lambda = M a + h. With as many motors as degrees of freedom, the solution is unique. With redundant motors,
    the solution of least norm is returned. With too few motors, only some motions have a solution.

    If `a` violates the loop constraints, it is replaced by the nearest acceleration that satisfies them, in the metric of the mass matrix (Gauss's
    principle). Numerical drift of `a` therefore has no effect. With ``exact=True``, such an acceleration raises an error instead. The velocity is
    never changed; it must satisfy the constraints within the tolerance of `check`. To test if the motors can produce a motion:
    ``actuator_efforts(..., exact=True, return_status=True)[1] == 0``.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m, quaternions (x, y, z, w); per s; per s²]
    actuated : names of the joints with motors; default: the actuated joints of the description
    wrenches, time, check : as in :meth:`forward_dynamics`
    distribution : norm that is minimal with redundant motors. "minimum-norm": norm of the moments, and of the forces times the mechanism's
        characteristic length; "weighted": with `weights`
    weights : (nu,) positive weights (dimensionless); u^T diag(weights) u is minimal
    limits : (lower, upper) limits of the efforts, each (nu,) or a number [N m, N]. If the solution without limits exceeds them, the solution of least
        norm within them is returned
    preload : (nu,) efforts [N m, N]; the norm of u - preload is minimal
    return_reactions : True also returns the multipliers (..., nc) [N m, N] of the constraint rows
    exact : True raises StateError for a motion that the loops do not allow (status 3)
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    (..., nu) efforts [N m, N], in the order of `actuated` or of the mechanism's actuated joints; `actuation_matrix(q, actuated=...)` maps them to tau

    Raises
    ------
    NotRealizableError
        The motors cannot produce the motion, or not within the limits.
    StateError
        The state is invalid, or it violates the loop constraints (status 4).

    References
    ----------
    Sonoda, Ishii and Isobe, eqs 36-47; Li and Wu 4.6; van der Merwe 5.22.

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble()
    >>> v = fourbar.project_velocity(q, [1.0, 0.0, 0.0])
    >>> a = fourbar.forward_dynamics(q, v, [2.0, 0.0, 0.0])
    >>> fourbar.actuator_efforts(q, v, a).round(9)
    array([2.])
    """
    # without limits, the core solves the complete problem, with weights, preload and exact=
    _check_distribution(distribution, weights)
    out, return_status = options.pop("out", None), checked_truth("return_status", options.pop("return_status", False))
    motors = _motors(robot, motors_of(robot, actuated))
    with_reactions = checked_truth("return_reactions", return_reactions)
    keywords: dict[str, Any] = {"wrenches": wrenches, "check": check, **options}
    choice = {"weights": motors.placed("weights", weights), "preload": motors.placed("preload", preload)}
    solve: Any = functools.partial(cast(Any, motors.robot).actuator_efforts, q, v, a, **choice, **keywords, exact=exact)
    if limits is None and motors.order is None and not with_reactions:
        return solve(out=out, return_status=return_status)
    u, status = solve(return_status=True) if return_status else (solve(), Status.FINE)
    if limits is not None:
        low, high = (motors.placed(k, x) for k, x in zip(("low", "high"), _both(limits), strict=True))
        if not (low <= high).all():
            fault = "a lower limit is above the upper one, or not a number; expected lower <= upper"
            raise ValueError(f"limits: {fault}, got {limits[0]!r} and {limits[1]!r}")
        if max(low.ndim, high.ndim) > 1:
            lead = common_axes({"the motion": u.shape[:-1], "limits[0]": low.shape[:-1], "limits[1]": high.shape[:-1]})
            u, status = np.broadcast_to(u, (*lead, u.shape[-1])), np.broadcast_to(status, lead)
        if (outside := (u < low) | (u > high)).any():
            motion = {"q": q, "v": v, "a": a, **choice, **keywords}
            explain = u.ndim == 1 and not return_status
            u, status = _narrowed(motors.robot, motion, u, status, low, high, outside.any(axis=-1), explain)
    multipliers = [_multipliers(motors, q, v, a, u, keywords)] if with_reactions else []
    results = [into(out, u if motors.order is None else u[..., motors.order]), *multipliers, *[status] * return_status]
    return results[0] if len(results) == 1 else tuple(results)


@dataclass(frozen=True, eq=False)
class _Motors:
    """A mechanism with motors in the named joints only.

    Attributes
    ----------
    robot : the mechanism with these motors
    order, back : permutation from the mechanism's order of efforts to the order of `actuated`, and its inverse; None if the orders are equal
    tree : (2, k) indices of the efforts of tree joints, and of the velocities of these joints
    closing : (2, k) indices of the efforts of loop joints, and of the rows of these joints in the Jacobian of all loop joints
    """

    robot: LoopFunctions
    order: NDArray[np.intp] | None
    back: NDArray[np.intp] | None
    tree: NDArray[np.intp]
    closing: NDArray[np.intp]

    def placed(self, name: str, value: ArrayLike | None) -> Any:
        """Return an argument with a value for each motor, (..., nu), in the mechanism's order of motors; a number is returned unchanged."""
        if value is None:
            return None
        argument = _ARGUMENT.get(name, name)
        x = real_array(argument, value)
        if x.ndim == 0 or (self.back is None and name not in _ARGUMENT):
            return x if name in _ARGUMENT else value  # the core checks it
        x = real_rows(argument, x, self.robot.nu, finite=False)
        return x if self.back is None else x[..., self.back]

    def force(self, q: ArrayLike, u: Array, time: ArrayLike | None) -> Array:
        """Return the generalised force S u (..., nv) of the efforts u."""
        tau = np.zeros((*u.shape[:-1], self.robot.nv))
        tau[..., self.tree[1]] = u[..., self.tree[0]]
        if self.closing.size:
            J = self.robot._loop_joint_jacobian(q, time=time, return_status=True)[0][..., self.closing[1], :]
            tau = tau + applied(transposed(J), u[..., self.closing[0]])
        return tau


def _motors(robot: LoopFunctions, names: tuple[str, ...]) -> _Motors:
    return prepared(robot, ("efforts of", names), lambda: _with_motors(robot, names))


def _with_motors(robot: LoopFunctions, names: tuple[str, ...]) -> _Motors:
    if names != robot.actuated:
        # this raises an error for joints that follow functions of time, because they cannot have motors
        actuation_matrix(robot, robot.neutral(), actuated=names)
        robot = on_its_tree(robot, actuated=names)
    joints = [(name, index) for name in robot.actuated for index in range(robot.joint(name).type.nv)]
    requested = [(name, index) for name in names for index in range(robot.joint(name).type.nv)]
    order = np.array([joints.index(item) for item in requested], np.intp)
    same = bool((order == np.arange(len(order))).all())
    places: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
    for k, (name, index) in enumerate(joints):
        joint = robot.joint(name)
        places[joint.closes_loop].append((k, joint._all_v.start - robot.nv * joint.closes_loop + index))
    tree, closing = (np.array(places[closes], np.intp).reshape(-1, 2).T for closes in (False, True))
    return _Motors(robot, None if same else order, None if same else np.argsort(order), tree, closing)


def _narrowed(
    robot: LoopFunctions, motion: dict[str, Any], u: Array, status: Any, low: Array, high: Array, outside: NDArray[np.bool_], explain: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Replace efforts outside of the limits by efforts of least norm within them; return all efforts and the status.

    `outside` (...) marks the states whose efforts violate the limits. With `explain`, a state without solution raises its error.
    """
    limits = np.empty((*u.shape[:-1], 2 * robot.nu))
    limits[..., : robot.nu], limits[..., robot.nu :] = np.maximum(low, -FAR), np.minimum(high, FAR)
    arguments = {name: x for name, x in motion.items() if x is not None and name != "check"} | {"limits": limits}
    weights, preload = arguments.pop("weights", None), arguments.pop("preload", None)
    if weights is not None or preload is not None:
        units = velocity_scale(robot, robot.actuated)
        weights = units**2 if weights is None else _per_motor("weights", weights, robot.nu)
        preload = np.zeros(robot.nu) if preload is None else _per_motor("preload", preload, robot.nu)
        lead = np.broadcast_shapes(weights.shape, preload.shape)
        arguments["sharing"] = np.concatenate([np.broadcast_to(x, lead) for x in (weights, preload)], axis=-1)

    def selected(x: Any) -> Any:
        if isinstance(x, Mapping):
            return {name: selected(value) for name, value in x.items()}
        x = np.asarray(x, dtype=float)
        return np.broadcast_to(x, (*u.shape[:-1], *x.shape[-1:]))[outside]

    solve = cast(Any, robot)._bounded_efforts
    if explain:
        *least, lacking = solve(**arguments)
        if lacking > 0.0:
            raise NotRealizableError(
                f"{_listed(robot.actuated)} cannot produce this motion within the limits; expected limits wider by "
                f"{lacking:.3g} [N m, N] or more"
            )
        return np.array(least), status
    if not outside.all():
        time, threads = arguments.pop("time", None), arguments.pop("threads", 1)
        arguments = {name: selected(x) for name, x in arguments.items()} | {"threads": threads}
        if time is not None:
            arguments["time"] = selected(np.asarray(time)[..., None])[..., 0]
    solution, fault = solve(**arguments, return_status=True)
    u, status = u.copy(), np.broadcast_to(status, u.shape[:-1]).copy()
    lacks = solution[..., -1:] > 0.0
    u[outside] = np.where(lacks, np.nan, solution[..., :-1])
    status[outside] = np.where(lacks[..., 0], Status.NO_ANSWER, fault)
    return u, status


def _multipliers(
    motors: _Motors, q: ArrayLike, v: ArrayLike, a: ArrayLike, u: Array, keywords: Mapping[str, Any]
) -> Array:
    """Return the multipliers (..., nc) of least norm under efforts u (..., nu)."""
    robot, tau = motors.robot, motors.force(q, u, keywords.get("time"))
    motion = robot._constrained_motion(q, v, tau, **keywords, return_status=True)[0]
    along = np.zeros((*u.shape[:-1], robot._all_nv - robot.nv))
    along[..., motors.closing[1]] = u[..., motors.closing[0]]
    acting: Any = {"wrenches": keywords.get("wrenches"), "time": keywords.get("time"), "least_pivot": motion[..., -1]}
    multipliers = motion[..., robot.nv : robot.nv + robot.nc]
    multipliers = np.asarray(least_reactions(robot, q, v, motion[..., : robot.nv], multipliers, along, **acting))
    if np.isnan(multipliers).any() and (lost := np.isnan(multipliers).any(axis=-1) & ~np.isnan(u).any(axis=-1)).any():
        # a mechanism without degrees of freedom, such as a truss: the multipliers follow from statics
        J = robot.constraint_jacobian(q, time=keywords.get("time"))
        left = robot.inverse_dynamics(q, v, a, wrenches=keywords.get("wrenches")) - tau
        by_statics = applied(transposed(loop_motions(robot, J).inverse), left)
        multipliers = np.where(lost[..., None], by_statics, multipliers)
    return multipliers


def raise_not_realizable(
    robot: LoopFunctions, q: ArrayLike, v: Array, a: Array, *, wrenches: Wrenches | None = None, time: ArrayLike | None = None,
    exact: bool = False, **_: Any,
) -> NoReturn:  # fmt: skip
    """Raise the error for a motion that the motors cannot produce.

    With `exact`, it names the constraint that the motion violates; otherwise it names joints that lack a motor.
    """
    J = robot.constraint_jacobian(q, time=time)
    rows = 1.0 / closing(robot, (), ()).loops.row_scale
    velocity = _off(J, np.asarray(v, dtype=float), robot.constraint_velocity(q, time=time), rows)
    acceleration = _off(J, np.asarray(a, dtype=float), robot.constraint_bias(q, v, time=time), rows)
    if exact and max(velocity.max(initial=0.0), acceleration.max(initial=0.0)) > 1.0:
        raise StateError(_motion_fault(robot, velocity, acceleration))
    names, free, unit = robot.actuated, loop_motions(robot, J), velocity_scale(robot)
    basis = orthonormal(free.basis / unit[:, None])[0]  # scaled by the mechanism's characteristic length
    effect = unit[:, None] * actuation_matrix(robot, q) / velocity_scale(robot, names)
    shares = solutions(basis.T @ effect, np.linalg.norm(effect, axis=(-2, -1)))
    need = basis.T @ (unit * robot.inverse_dynamics(q, v, a, wrenches=wrenches))
    missing = basis @ (need - basis.T @ effect @ (shares.inverse @ need)) / unit
    if not missing.any():
        raise NotRealizableError("the actuated joints cannot produce this motion")
    rank = robot.nu - int(shares.freedom)
    raise NotRealizableError(_effort_fault(robot, names, missing, rank, int(free.freedom)))


def motors_of(robot: LoopFunctions, actuated: Sequence[str] | None) -> tuple[str, ...]:
    if actuated is None:
        return robot.actuated
    if isinstance(actuated, str):
        raise ModelError(f"actuated must be a sequence of joints' names, such as ['{actuated}']; got '{actuated}'")
    try:
        names = tuple(actuated)
    except TypeError:
        raise TypeError(f"actuated must be a sequence of joints' names; got {actuated!r}") from None
    for k, name in enumerate(names):
        robot.joint(name)
        if name in names[:k]:
            raise ModelError(f"actuated contains joint '{name}' twice")
    return names


def _motion_fault(robot: LoopFunctions, velocity: Array, acceleration: Array) -> str:
    if velocity.max(initial=0.0) > 1.0:
        quantity, cure, worst = "velocity", "project_velocity() returns one that does", int(velocity.argmax())
    else:
        quantity, cure, worst = "acceleration", "forward_dynamics() returns one that does", int(acceleration.argmax())
    return f"the loops do not allow this motion: its {quantity} does not satisfy '{robot._row_names[worst]}' ({cure})"


def _effort_fault(robot: LoopFunctions, names: Sequence[str], missing: Array, rank: int, freedom: int) -> str:
    parts = [(float(np.linalg.norm(missing[robot.joint(name).v_slice])), name) for name in robot.joints]
    parts = [(size, name) for size, name in sorted(parts, reverse=True)[:3] if size > 0.1 * max(parts)[0]]
    listed = ", ".join(f"{size:.3g} along '{name}'" for size, name in parts)
    return (
        f"{_listed(names)} cannot produce this motion: it requires another {listed} [N m, N]; of {freedom} degrees of freedom "
        f"{rank} can be driven in this configuration"
    )


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"the {'motor' if len(names) == 1 else 'motors'} {listed}" if names else "a mechanism without motors"


def _check_distribution(distribution: Distribution, weights: ArrayLike | None) -> None:
    check_choice("distribution", distribution, Distribution)
    if distribution == "weighted" and weights is None:
        raise ValueError("distribution='weighted' needs weights; expected weights (nu,), got None")


def _per_motor(name: str, value: ArrayLike, nu: int) -> Array:
    x = real_array(_ARGUMENT.get(name, name), value)
    return np.full(nu, float(x)) if x.ndim == 0 else real_rows(_ARGUMENT.get(name, name), x, nu, finite=False)


def _both(limits: Any) -> tuple[ArrayLike, ArrayLike]:
    try:
        low, high = limits
    except (TypeError, ValueError):
        expected = "a pair (lower, upper), each a number or (nu,)"
        raise ShapeError(f"limits must be {expected}; got {limits!r}") from None
    return low, high


def _off(J: Array, x: Array, required: Array, unit: Array) -> Array:
    """Return the residual of J x = required, divided by its tolerance."""
    size = applied(np.abs(J), np.abs(x)) + np.abs(required)
    return np.abs(applied(J, x) - required) / (tolerances.allowed * size + tolerances.at_rest * unit)
