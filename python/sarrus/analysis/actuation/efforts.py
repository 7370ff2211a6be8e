"""What motors must do in a closed mechanism: which efforts bring a motion about, and how redundant motors share them.

A motion needs tau = M a + h, of which the motors give S u and the loops J^T lambda:

  S u + J^T lambda = tau    <=>    N^T S u = N^T tau     with J N = 0

so many equations as there are degrees of freedom. The core solves them for the usual call; here are the other ways to share.

Newtons and newton metres compare by the mechanism's length, metres and radians too (analysis/scaling.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._arrays import Array, checked_truth, common_axes, into, real_array, real_rows
from ..._core import Status
from ...dynamics.loop_operations import LoopFunctions, raise_off_loops
from ...dynamics.operations import _operation
from ...dynamics.options import Distribution, TimeOptions, Wrenches
from ...errors import ModelError, NotRealizableError, ShapeError, StateError
from ..independent_coordinates import joint_velocity, loop_motions
from ..linear_algebra import applied, orthonormal, solutions, transposed
from ..scaling import sliding
from .distribution import within_limits

if TYPE_CHECKING:
    from typing import Unpack

TOLERANCE = 1e-6  # of what rounding and badly closed loops may do to a motion and to the forces that it needs, relative
AT_REST = 1e-9  # velocities and accelerations that are nothing [rad/s, m/s; per s]

_ARGUMENT = {"low": "limits[0]", "high": "limits[1]"}


def actuation_matrix(robot: LoopFunctions, q: ArrayLike, *, actuated: Sequence[str] | None = None) -> Array:
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


def internal_efforts(
    robot: LoopFunctions, q: ArrayLike, *, actuated: Sequence[str] | None = None, time: ArrayLike | None = None
) -> Array:
    """Orthonormal basis (..., nu, k) of the efforts that move nothing: redundant motors that work against each other.

    >>> import sarrus
    >>> robot = sarrus.mechanisms.five_bar(actuated=3)
    >>> robot.internal_efforts(robot.assemble()).shape
    (3, 1)
    """
    S = actuation_matrix(robot, q, actuated=actuated)
    free = loop_motions(robot, robot.constraint_jacobian(q, time=time))
    idle = solutions(transposed(free.basis) @ S, np.linalg.norm(S, axis=(-2, -1)))
    return idle.basis[..., : idle.same_freedom()]


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
    return_reactions : also return the multipliers (..., nc) of least norm
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
    out, return_status = options.pop("out", None), options.pop("return_status", False)
    choice: dict[str, Any] = {
        "distribution": distribution,
        "weights": weights,
        "limits": limits,
        "preload": preload,
    }
    known: dict[str, Any] = {"wrenches": wrenches, "check": check, **options}
    share = functools.partial(shared_efforts, robot, q, v, a, actuated=actuated, **choice, **known, exact=exact)
    _weights(distribution, weights)
    nothing_else = not checked_truth("exact", exact) and (
        actuated is None or motors_of(robot, actuated) == robot.actuated
    )
    if weights is not None:
        nothing_else &= _is_usual("weights", weights, _units(robot, robot.actuated) ** 2)
    if preload is not None:
        nothing_else &= _is_usual("preload", preload, np.zeros(robot.nu))
    with_reactions = checked_truth("return_reactions", return_reactions)
    if not nothing_else or (with_reactions and limits is not None):
        return share(return_reactions=with_reactions, out=out, return_status=return_status)
    if with_reactions:
        answer: Any = actuator_efforts(robot, q, v, a, out=out, return_status=return_status, **known)
        u, *status = answer if return_status else (answer,)
        multipliers = _multipliers(robot, q, v, u, known)
        lost = np.isnan(multipliers).any(axis=-1) & ~np.isnan(u).any(axis=-1)  # as of a frame that nothing moves
        if lost.any():
            return share(return_reactions=True, out=out, return_status=return_status)
        return (u, multipliers, *status)
    if limits is None:
        return actuator_efforts(robot, q, v, a, out=out, return_status=return_status, **known)
    low, high = (_per_motor(k, limit, robot.nu) for k, limit in zip(("low", "high"), _both(limits), strict=True))
    u, status = actuator_efforts(robot, q, v, a, return_status=True, **known)
    within = ((low <= u) & (u <= high)).all(axis=-1)
    if not within.all():
        if within.ndim == 0 and not return_status:
            missing = 1.0
            if (low <= high).all():  # u is the least: what else brings the motion about differs by internal efforts
                u, missing = within_limits(u, internal_efforts(robot, q, time=known.get("time")), low, high)
            return share(out=out) if missing else into(out, u)  # the first says what is wrong
        narrowed, narrowed_status = share(return_status=True)
        u, status = np.where(within[..., None], u, narrowed), np.where(within, status, narrowed_status)
    result = into(out, np.broadcast_to(u, (*within.shape, robot.nu)))
    return (result, np.broadcast_to(status, within.shape)) if return_status else result


def _multipliers(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, u: Array, known: Mapping[str, Any]) -> Array:
    """What the loops carry under efforts (..., nu): (..., nc), of least norm."""
    joints = [robot.joint(name) for name in robot.actuated]
    if any(joint.closes_loop for joint in joints):
        tau = applied(actuation_matrix(robot, q), u)
    else:
        tau = np.zeros((*u.shape[:-1], robot.nv))
        tau[..., [k for joint in joints for k in range(joint.v_slice.start, joint.v_slice.stop)]] = u
    motion = robot._constrained_motion(q, v, tau, **known, return_status=True)[0]
    return np.asarray(motion[..., robot.nv : robot.nv + robot.nc])


def shared_efforts(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, actuated: Sequence[str] | None = None, wrenches: Wrenches | None = None,
    distribution: Distribution = "minimum-norm", weights: ArrayLike | None = None, limits: tuple[ArrayLike, ArrayLike] | None = None,
    preload: ArrayLike | None = None, return_reactions: bool = False, exact: bool = True, check: bool = True,
    time: ArrayLike | None = None, out: Array | None = None, threads: int = 1, return_status: bool = False,
) -> Any:  # fmt: skip
    """Shared in any way that the core does not know; where it is to be `exact`, a motion that the loops do not allow is contradictory."""
    names = motors_of(robot, actuated)
    nu = sum(robot.joint(name).type.nv for name in names)
    return_reactions = checked_truth("return_reactions", return_reactions)
    return_status = checked_truth("return_status", return_status)
    if wrenches is not None and not isinstance(wrenches, Mapping):
        raise TypeError(f"wrenches must be a mapping of frame names to [moment; force]; got {wrenches!r}")
    low, high = (-np.inf, np.inf) if limits is None else _both(limits)
    when = real_array("time", 0.0 if time is None else time)[..., None]
    lead, rows = _rows(
        {"q": (q, robot.nq), "v": (v, robot.nv), "a": (a, robot.nv), "time": (when, 1)}
        | {f"wrenches['{name}']": (w, 6) for name, w in (wrenches or {}).items()},
        {
            "preload": 0.0 if preload is None else preload,
            "weights": _weights(distribution, weights),
            "low": low,
            "high": high,
        },
        nu,
    )
    loads = {name: rows[f"wrenches['{name}']"] for name in wrenches or {}}
    explain = lead == () and not return_status

    # always many states, of which the sound ones go on
    q, v, a, time = rows["q"], rows["v"], rows["a"], rows["time"][:, 0]
    tau, status = robot.inverse_dynamics(q, v, a, wrenches=loads, threads=threads, return_status=True)
    gamma, bias_status = robot.constraint_bias(q, v, time=time, return_status=True)
    status = np.maximum(status, bias_status)
    if explain and status[0]:
        robot.inverse_dynamics(q[0], v[0], a[0], wrenches={name: w[0] for name, w in loads.items()})
        robot.constraint_bias(q[0], v[0], time=time[0])
    sound = np.flatnonzero(status == Status.FINE)
    q, v, a, time = q[sound], v[sound], a[sound], time[sound]
    J = robot.constraint_jacobian(q, time=time)
    if not exact:
        loads_there = {name: w[sound] for name, w in loads.items()}
        known: dict[str, Any] = {"wrenches": loads_there, "time": time, "threads": threads, "check": check}
        impossible, refused = _off_loops(robot, q, v, a, explain, known), Status.OFF_LOOPS
    else:
        impossible, refused = _contradictory(robot, J, q, v, a, gamma[sound], time, explain), Status.CONTRADICTORY

    choice = {name: rows[name][sound] for name in ("preload", "weights", "low", "high")}
    S = actuation_matrix(robot, q, actuated=names)
    if weights is None:
        choice["weights"] = np.broadcast_to(_units(robot, names) ** 2, choice["weights"].shape)
    u, multipliers, shared = _share(robot, names, J, S, tau[sound], **choice, explain=explain)
    status[sound] = np.where(impossible, refused, shared)
    answers = [_back(u, sound, status, lead, out)]
    if return_reactions:
        answers.append(_back(multipliers, sound, status, lead))
    if return_status:
        answers.append(status.reshape(lead))
    return answers[0] if len(answers) == 1 else tuple(answers)


def _off_loops(
    robot: LoopFunctions, q: Array, v: Array, a: Array, explain: bool, known: dict[str, Any]
) -> NDArray[np.bool_]:
    """Which states the core takes to be off the loops; with `explain` an error instead."""
    off: NDArray[np.bool_] = actuator_efforts(robot, q, v, a, return_status=True, **known)[1] == Status.OFF_LOOPS
    if explain and off.any():
        raise_off_loops(robot, "actuator_efforts", {"q": q[0], "v": v[0], "time": known["time"][0]})
    return off


def _contradictory(
    robot: LoopFunctions, J: Array, q: Array, v: Array, a: Array, gamma: Array, time: Array, explain: bool
) -> NDArray[np.bool_]:
    """Which motions the loops do not allow; with `explain` an error instead."""
    off = np.stack([_off(J, v, robot.constraint_velocity(q, time=time)), _off(J, a, gamma)], axis=1)
    contradictory: NDArray[np.bool_] = off.max(axis=(1, 2), initial=0.0) > 1.0
    if explain and contradictory.any():
        raise StateError(_motion_fault(robot, *off[0]))
    return contradictory


def _share(
    robot: LoopFunctions, names: Sequence[str], J: Array, S: Array, tau: Array, *, preload: Array, weights: Array, low: Array, high: Array,
    explain: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Efforts, multipliers and status of many states, of least |W^1/2 (u - preload)|; with `explain`, errors instead of the status."""
    free, unit, root = loop_motions(robot, J), _units(robot, robot.joints)[:, None], np.sqrt(weights)
    # in units of the mechanism's length
    basis = orthonormal(free.basis / unit)[0]
    plain, S, tau = (S, tau), S * unit, tau * unit[:, 0]
    NT, nu = transposed(basis), S.shape[-1]
    effect = S / root[:, None, :]
    shares = solutions(NT @ effect, np.linalg.norm(effect, axis=(-2, -1)))
    u = preload + applied(shares.inverse, applied(NT, tau - applied(S, preload))) / root
    missing = applied(basis, applied(NT, tau - applied(S, u)))
    size = np.linalg.norm(tau, axis=-1) + np.linalg.norm(applied(S, u), axis=-1)
    lacking = np.linalg.norm(missing, axis=-1) > TOLERANCE * size
    if explain and lacking.any():
        freedom = int(free.freedom[0])
        raise NotRealizableError(
            _effort_fault(robot, names, missing[0] / unit[:, 0], nu - int(shares.freedom[0]), freedom)
        )
    status = np.where(lacking, Status.CONTRADICTORY, Status.FINE)
    for i in np.flatnonzero(((u < low) | (u > high)).any(axis=-1) & ~lacking):
        internal = shares.basis[i][:, : shares.freedom[i]] / root[i][:, None]
        u[i], violation = within_limits(u[i], internal, low[i], high[i])
        status[i] = Status.NO_ANSWER if violation else Status.FINE
        if violation and explain:
            raise NotRealizableError(
                f"{_listed(names)} cannot bring this motion about within the limits: these would have to be wider by "
                f"{violation:.3g} [N m, N] at the least"
            )
    S, tau = plain
    return u, applied(transposed(free.inverse), tau - applied(S, u)), status


def _units(robot: LoopFunctions, names: Iterable[str]) -> Array:
    """Of each velocity of these joints, what is as much as 1 rad/s: 1, or the mechanism's length where it slides."""
    slides = np.concatenate([np.zeros(0, dtype=bool), *(sliding(robot.joint(name).type) for name in names)])
    return np.where(slides, robot._length, 1.0)


def motors_of(robot: LoopFunctions, actuated: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(actuated, str):
        raise ModelError(f"actuated must be a sequence of joints' names, such as ['{actuated}']; got '{actuated}'")
    try:
        names = robot.actuated if actuated is None else tuple(actuated)
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


def _weights(distribution: Distribution, weights: ArrayLike | None) -> ArrayLike:
    if not isinstance(distribution, str) or distribution not in ("minimum-norm", "weighted"):  # type: ignore[redundant-expr]
        raise ValueError(f"distribution must be 'minimum-norm' or 'weighted'; got {distribution!r}")
    if distribution == "weighted" and weights is None:
        raise ValueError("distribution='weighted' needs weights, one for each motor")
    return 1.0 if weights is None else weights


def _is_usual(name: str, value: ArrayLike, usual: Array) -> bool:
    numbers = real_array(name, value)
    return numbers.shape in ((), usual.shape) and bool((numbers == usual).all())


def _rows(
    states: Mapping[str, tuple[ArrayLike, int]], per_motor: Mapping[str, ArrayLike], nu: int
) -> tuple[tuple[int, ...], dict[str, Array]]:
    """The leading axes of all, broadcast, and all as rows (n, size); where there is one for each motor, a number stands for all."""
    arrays = {name: real_rows(name, value, size, finite=False) for name, (value, size) in states.items()}
    arrays |= {name: _per_motor(name, value, nu) for name, value in per_motor.items()}
    if not (np.isfinite(arrays["weights"]) & (arrays["weights"] > 0.0)).all():
        raise ValueError(f"weights must be positive; got {per_motor['weights']!r}")
    if not np.isfinite(arrays["preload"]).all():
        raise ValueError(f"preload must be finite; got {per_motor['preload']!r}")
    lead = common_axes({_ARGUMENT.get(name, name): array.shape[:-1] for name, array in arrays.items()})
    count = math.prod(lead)
    rows = {name: np.broadcast_to(x, (*lead, x.shape[-1])).reshape(count, x.shape[-1]) for name, x in arrays.items()}
    if not (rows["low"] <= rows["high"]).all():
        raise ValueError(
            f"limits: a lower limit is above the upper one, or not a number; got {per_motor['low']!r} and {per_motor['high']!r}"
        )
    return lead, rows


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


def _off(J: Array, x: Array, required: Array) -> Array:
    """How far J x is from what it must be, in units of what is still tolerated."""
    size = applied(np.abs(J), np.abs(x)) + np.abs(required)
    return np.abs(applied(J, x) - required) / (TOLERANCE * size + AT_REST)


def _back(
    values: Array, sound: NDArray[np.intp], status: Array, lead: tuple[int, ...], out: Array | None = None
) -> Array:
    """Values of the sound states in their places, NaN in the others'."""
    all_of_them = np.full((len(status), values.shape[-1]), np.nan)
    all_of_them[sound] = np.where(status[sound, None] == Status.FINE, values, np.nan)
    return into(out, all_of_them.reshape(*lead, values.shape[-1]))
