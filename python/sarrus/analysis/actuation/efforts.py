"""What motors must do in a closed mechanism: which efforts bring a motion about, and how redundant motors share them.

A motion needs tau = M a + h, of which the motors give S u and the loops J^T lambda:

  S u + J^T lambda = tau    <=>    N^T S u = N^T tau     with J N = 0

so many equations as there are degrees of freedom. The core solves them (cpp/loops/efforts.hpp); here is what chooses the motors, keeps limits and says what is lacking.

Newtons and newton metres compare by the mechanism's length, metres and radians too (analysis/scaling.py).
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
FAR = 1e30  # no limit: bounded_efforts.hpp


@of_states
def actuation_matrix(
    robot: LoopFunctions, q: ArrayLike, *, actuated: Sequence[str] | None = None, **options: Unpack[StateOptions]
) -> Array:
    """S (..., nv, nu) of chosen joints, those that close loops too, by the velocities of the tree: S^T v are those that they drive.

    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> fourbar.actuation_matrix(fourbar.assemble(), actuated=["pin2"]).shape
    (3, 1)
    """
    names = motors_of(robot, actuated)
    q = robot.normalize(q)  # which says what is wrong with it
    common_axes({"the answer": (*q.shape, robot.nv)})
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
    """Orthonormal basis (..., nu, k) of the efforts that move nothing: redundant motors that work against each other.

    >>> import sarrus
    >>> robot = sarrus.mechanisms.five_bar(actuated=3)
    >>> robot.internal_efforts(robot.assemble()).shape
    (3, 1)
    """
    q, when = robot.normalize(q), None if time is None else real_array("time", time)
    lead = q.shape[:-1] if when is None else common_axes({"q": q.shape[:-1], "time": when.shape})
    states = np.broadcast_to(q, (*lead, robot.nq)).reshape(-1, robot.nq)
    when = None if when is None else np.broadcast_to(when, lead).ravel()
    bases, freedom = _core.internal_efforts(robot, states, motors_of(robot, actuated), when)
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
    """Efforts u (..., nu) of the motors that bring a motion about in a mechanism with loops.

    S u + J^T lambda = M a + h: one answer where there are as many motors as freedoms; of many answers the least (a loop of
    redundant motors can be tightened without moving); with too few motors only a motion that needs no more.

    Of a counts what the loops leave of it: the efforts are those of the acceleration that satisfies them and is nearest to a in the
    metric of the mass matrix (Gauss's principle), so that drift in a does no harm; v is taken as it is, within what `check` allows.
    With ``exact=True`` a motion that the loops do not allow is none. Whether motors can bring a motion about at all:
    ``actuator_efforts(..., exact=True, return_status=True)[1] == 0``.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv)
    actuated : names of joints whose motors share the work; default: those that the description says
    wrenches, time, check : as :meth:`forward_dynamics`
    distribution : "minimum-norm", of moments and of forces times the mechanism's length; or "weighted" with weights
    weights : (nu,), least u^T diag(weights) u
    limits : (lower, upper), each (nu,) or a number, which the efforts keep to; where the least efforts do, they are the answer
    preload : (nu,) efforts that the answer stays as near to as the motion lets it
    return_reactions : also return the multipliers (..., nc), as :meth:`forward_dynamics` does
    exact : whether a motion that the loops do not allow is refused (status 3)

    Returns
    -------
    (..., nu) [N m, N], in the order of `actuated`, or of the mechanism's own; `actuation_matrix(q, actuated=...)` maps it to tau

    Raises
    ------
    NotRealizableError
        The motors cannot bring the motion about, or not within the limits.
    StateError
        The state is unsound, or off the loops (status 4).

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
    # weights, preload and exact= alone are the core's
    _check_distribution(distribution, weights)
    out, return_status = options.pop("out", None), checked_truth("return_status", options.pop("return_status", False))
    motors = _motors(robot, motors_of(robot, actuated))
    with_reactions = checked_truth("return_reactions", return_reactions)
    known: dict[str, Any] = {"wrenches": wrenches, "check": check, **options}
    choice = {"weights": motors.placed("weights", weights), "preload": motors.placed("preload", preload)}
    ask: Any = functools.partial(cast(Any, motors.robot).actuator_efforts, q, v, a, **choice, **known, exact=exact)
    if limits is None and motors.order is None and not with_reactions:
        return ask(out=out, return_status=return_status)
    u, status = ask(return_status=True) if return_status else (ask(), Status.FINE)
    if limits is not None:
        low, high = (motors.placed(k, x) for k, x in zip(("low", "high"), _both(limits), strict=True))
        if not (low <= high).all():
            what = "a lower limit is above the upper one, or not a number"
            raise ValueError(f"limits: {what}; got {limits[0]!r} and {limits[1]!r}")
        if max(low.ndim, high.ndim) > 1:
            lead = common_axes({"the motion": u.shape[:-1], "limits[0]": low.shape[:-1], "limits[1]": high.shape[:-1]})
            u, status = np.broadcast_to(u, (*lead, u.shape[-1])), np.broadcast_to(status, lead)
        if (outside := (u < low) | (u > high)).any():
            motion = {"q": q, "v": v, "a": a, **choice, **known}
            explain = u.ndim == 1 and not return_status
            u, status = _narrowed(motors.robot, motion, u, status, low, high, outside.any(axis=-1), explain)
    multipliers = [_multipliers(motors, q, v, a, u, known)] if with_reactions else []
    answers = [into(out, u if motors.order is None else u[..., motors.order]), *multipliers, *[status] * return_status]
    return answers[0] if len(answers) == 1 else tuple(answers)


@dataclass(frozen=True, eq=False)
class _Motors:
    """A mechanism with motors in some of its joints alone.

    Attributes
    ----------
    robot : with these motors
    order, back : where the efforts of the motors, as they were named, stand among the mechanism's, and these among those; None: the same
    tree : efforts, and the velocities that they drive; closing : efforts, and rows of what the core tells of all joints that close loops
    """

    robot: LoopFunctions
    order: NDArray[np.intp] | None
    back: NDArray[np.intp] | None
    tree: NDArray[np.intp]
    closing: NDArray[np.intp]

    def placed(self, name: str, value: ArrayLike | None) -> Any:
        """Of each motor (..., nu) in the mechanism's order, or a number for all."""
        if value is None:
            return None
        what = _ARGUMENT.get(name, name)
        x = real_array(what, value)
        if x.ndim == 0 or (self.back is None and name not in _ARGUMENT):
            return x if name in _ARGUMENT else value  # the core says what is wrong
        x = real_rows(what, x, self.robot.nu, finite=False)
        return x if self.back is None else x[..., self.back]

    def force(self, q: ArrayLike, u: Array, time: ArrayLike | None) -> Array:
        """S u (..., nv)."""
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
        # a joint that laws of time carry along cannot be driven
        actuation_matrix(robot, robot.neutral(), actuated=names)
        robot = on_its_tree(robot, actuated=names)
    joints = [(name, index) for name in robot.actuated for index in range(robot.joint(name).type.nv)]
    asked = [(name, index) for name in names for index in range(robot.joint(name).type.nv)]
    order = np.array([joints.index(one) for one in asked], np.intp)
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
    """The least efforts within limits where those without are `outside`, and the status; with `explain` an error instead."""
    limits = np.empty((*u.shape[:-1], 2 * robot.nu))
    limits[..., : robot.nu], limits[..., robot.nu :] = np.maximum(low, -FAR), np.minimum(high, FAR)
    asked = {name: x for name, x in motion.items() if x is not None and name != "check"} | {"limits": limits}
    weights, preload = asked.pop("weights", None), asked.pop("preload", None)
    if weights is not None or preload is not None:
        units = velocity_scale(robot, robot.actuated)
        weights = units**2 if weights is None else _per_motor("weights", weights, robot.nu)
        preload = np.zeros(robot.nu) if preload is None else _per_motor("preload", preload, robot.nu)
        lead = np.broadcast_shapes(weights.shape, preload.shape)
        asked["sharing"] = np.concatenate([np.broadcast_to(x, lead) for x in (weights, preload)], axis=-1)

    def of_them(x: Any) -> Any:
        if isinstance(x, Mapping):
            return {name: of_them(value) for name, value in x.items()}
        x = np.asarray(x, dtype=float)
        return np.broadcast_to(x, (*u.shape[:-1], *x.shape[-1:]))[outside]

    ask = cast(Any, robot)._bounded_efforts
    if explain:
        *least, lacking = ask(**asked)
        if lacking > 0.0:
            raise NotRealizableError(
                f"{_listed(robot.actuated)} cannot bring this motion about within the limits: these would have to be wider by "
                f"{lacking:.3g} [N m, N] at the least"
            )
        return np.array(least), status
    if not outside.all():
        time, threads = asked.pop("time", None), asked.pop("threads", 1)
        asked = {name: of_them(x) for name, x in asked.items()} | {"threads": threads}
        if time is not None:
            asked["time"] = of_them(np.asarray(time)[..., None])[..., 0]
    answer, fault = ask(**asked, return_status=True)
    u, status = u.copy(), np.broadcast_to(status, u.shape[:-1]).copy()
    lacks = answer[..., -1:] > 0.0
    u[outside] = np.where(lacks, np.nan, answer[..., :-1])
    status[outside] = np.where(lacks[..., 0], Status.NO_ANSWER, fault)
    return u, status


def _multipliers(
    motors: _Motors, q: ArrayLike, v: ArrayLike, a: ArrayLike, u: Array, known: Mapping[str, Any]
) -> Array:
    """What the loops carry under efforts (..., nu): (..., nc), of least norm."""
    robot, tau = motors.robot, motors.force(q, u, known.get("time"))
    motion = robot._constrained_motion(q, v, tau, **known, return_status=True)[0]
    along = np.zeros((*u.shape[:-1], robot._all_nv - robot.nv))
    along[..., motors.closing[1]] = u[..., motors.closing[0]]
    acting: Any = {"wrenches": known.get("wrenches"), "time": known.get("time"), "least_pivot": motion[..., -1]}
    multipliers = motion[..., robot.nv : robot.nv + robot.nc]
    multipliers = np.asarray(least_reactions(robot, q, v, motion[..., : robot.nv], multipliers, along, **acting))
    if np.isnan(multipliers).any() and (lost := np.isnan(multipliers).any(axis=-1) & ~np.isnan(u).any(axis=-1)).any():
        # as of a frame that nothing moves: by statics
        J = robot.constraint_jacobian(q, time=known.get("time"))
        left = robot.inverse_dynamics(q, v, a, wrenches=known.get("wrenches")) - tau
        by_statics = applied(transposed(loop_motions(robot, J).inverse), left)
        multipliers = np.where(lost[..., None], by_statics, multipliers)
    return multipliers


def raise_not_realizable(
    robot: LoopFunctions, q: ArrayLike, v: Array, a: Array, *, wrenches: Wrenches | None = None, time: ArrayLike | None = None,
    exact: bool = False, **_: Any,
) -> NoReturn:  # fmt: skip
    """Say which constraint forbids one motion, where that is asked for, or which joints lack a motor."""
    J = robot.constraint_jacobian(q, time=time)
    rows = 1.0 / closing(robot, (), ()).loops.row_scale
    velocity = _off(J, np.asarray(v, dtype=float), robot.constraint_velocity(q, time=time), rows)
    acceleration = _off(J, np.asarray(a, dtype=float), robot.constraint_bias(q, v, time=time), rows)
    if exact and max(velocity.max(initial=0.0), acceleration.max(initial=0.0)) > 1.0:
        raise StateError(_motion_fault(robot, velocity, acceleration))
    names, free, unit = robot.actuated, loop_motions(robot, J), velocity_scale(robot)
    basis = orthonormal(free.basis / unit[:, None])[0]  # in units of the mechanism's length
    effect = unit[:, None] * actuation_matrix(robot, q) / velocity_scale(robot, names)
    shares = solutions(basis.T @ effect, np.linalg.norm(effect, axis=(-2, -1)))
    need = basis.T @ (unit * robot.inverse_dynamics(q, v, a, wrenches=wrenches))
    missing = basis @ (need - basis.T @ effect @ (shares.inverse @ need)) / unit
    if not missing.any():
        raise NotRealizableError("the actuated joints cannot bring this motion about")
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
            raise ModelError(f"actuated names joint '{name}' twice")
    return names


def _motion_fault(robot: LoopFunctions, velocity: Array, acceleration: Array) -> str:
    if velocity.max(initial=0.0) > 1.0:
        what, cure, worst = "velocity", "project_velocity() gives one that does", int(velocity.argmax())
    else:
        what, cure, worst = "acceleration", "forward_dynamics() gives such", int(acceleration.argmax())
    return f"the loops do not allow this motion: its {what} does not satisfy '{robot._row_names[worst]}' ({cure})"


def _effort_fault(robot: LoopFunctions, names: Sequence[str], missing: Array, rank: int, freedom: int) -> str:
    parts = [(float(np.linalg.norm(missing[robot.joint(name).v_slice])), name) for name in robot.joints]
    parts = [(size, name) for size, name in sorted(parts, reverse=True)[:3] if size > 0.1 * max(parts)[0]]
    listed = ", ".join(f"{size:.3g} along '{name}'" for size, name in parts)
    return (
        f"{_listed(names)} cannot bring this motion about: that takes another {listed} [N m, N]; of {freedom} degrees of freedom "
        f"{rank} can be driven here"
    )


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"the {'motor' if len(names) == 1 else 'motors'} {listed}" if names else "a mechanism without motors"


def _check_distribution(distribution: Distribution, weights: ArrayLike | None) -> None:
    check_choice("distribution", distribution, Distribution)
    if distribution == "weighted" and weights is None:
        raise ValueError("distribution='weighted' needs weights, one for each motor")


def _per_motor(name: str, value: ArrayLike, nu: int) -> Array:
    x = real_array(_ARGUMENT.get(name, name), value)
    return np.full(nu, float(x)) if x.ndim == 0 else real_rows(_ARGUMENT.get(name, name), x, nu, finite=False)


def _both(limits: Any) -> tuple[ArrayLike, ArrayLike]:
    try:
        low, high = limits
    except (TypeError, ValueError):
        expected = "two, (lower, upper), each a number or one for each motor"
        raise ShapeError(f"limits must be {expected}; got {limits!r}") from None
    return low, high


def _off(J: Array, x: Array, required: Array, unit: Array) -> Array:
    """How far J x is from what it must be, in units of what is still tolerated."""
    size = applied(np.abs(J), np.abs(x)) + np.abs(required)
    return np.abs(applied(J, x) - required) / (tolerances.allowed * size + tolerances.at_rest * unit)
