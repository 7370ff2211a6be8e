"""Motor efforts that produce a motion of a mechanism with loops, their distribution over redundant motors, and the wrenches of all joints.

A motion requires the generalised force tau = M a + h. The motors contribute S u, and the loop constraints J^T lambda:

  S u + J^T lambda = tau    <=>    N^T S u = N^T tau     with J N = 0

The number of equations is the number of degrees of freedom. The core solves them (cpp/loops/efforts.hpp). This module selects the motors,
applies effort limits and writes the error messages.

Forces and displacements are scaled by the mechanism's characteristic length, so that N and N m, and m and rad, are comparable
(analysis/linear_algebra.py). Wrenches of joints are independent of the spanning tree.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, overload

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, checked_truth, common_axes, into, real_array, real_rows
from .._core import Status
from .._renamed import renamed_attribute
from .._showing import largest, table
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.operations import _operation
from ..dynamics.options import Distribution, StateOptions, TimeOptions, Unpack, Wrenches, of_states
from ..dynamics.reactions import compliance_roots, determined, least_reactions
from ..errors import ModelError, NotRealizableError, SarrusError, ShapeError, StateError, check_choice
from .closing import on_its_tree, prepared
from .independent_coordinates import loop_motions
from .linear_algebra import applied, same_freedom, transposed, velocity_scale

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
    names = None if actuated is None else motors_of(robot, actuated)
    q = robot.normalize(q)  # raises the errors of q
    if q.ndim > 1:
        common_axes({"the result": (*q.shape, robot.nv)})
    return _core.actuation_matrix(robot, q, names)


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
    names, q, times = None if actuated is None else motors_of(robot, actuated), robot.normalize(q), None
    if time is not None:
        times = real_array("time", time)
        lead = common_axes({"q": q.shape[:-1], "time": times.shape})
        q, times = np.broadcast_to(q, (*lead, robot.nq)), np.broadcast_to(times, lead).ravel()
    bases, freedom = _core.internal_efforts(robot, q, names, times)
    return cast(Array, bases if q.ndim == 1 else bases[..., : same_freedom(freedom[freedom >= 0])])


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
    return_reactions : True also returns the multipliers (..., nc) [N m, N] of the constraint rows, as `multipliers` of the
        :class:`~sarrus.results.LoopReactions` of `forward_dynamics`; :meth:`joint_wrenches` returns wrenches
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
    _check_distribution(distribution, weights)
    motors = None if actuated is None else _motors(robot, motors_of(robot, actuated))
    usual = wrenches is None and weights is None and preload is None and check is True and exact is False
    if usual and not options and distribution == "minimum-norm" and (motors is None or motors.order is None):
        driven, answer = cast(Any, robot if motors is None else motors.robot), None
        with_reactions: object = return_reactions
        if with_reactions is False:
            answer = driven.actuator_efforts(q, v, a) if limits is None else _limited_efforts(driven, q, v, a, limits)
        elif with_reactions is True and limits is None:
            answer = _efforts_and_reactions(driven, q, v, a)
        if answer is not None:
            return answer
    # without limits, the core solves the complete problem, with weights, preload and exact=
    motors = motors or _motors(robot, robot.actuated)
    out, return_status = options.pop("out", None), checked_truth("return_status", options.pop("return_status", False))
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
            fault = "a lower limit is above the upper limit, or a limit is NaN; expected lower <= upper"
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


_limited_efforts: Any = _core.of_one_state("limited_efforts")
_efforts_and_reactions: Any = _core.of_one_state("efforts_and_reactions")


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

    def along_loops(self, u: Array) -> Array:
        """Return the efforts (..., all nv - nv) of motors along loop joints."""
        along = np.zeros((*u.shape[:-1], self.robot._all_nv - self.robot.nv))
        along[..., self.closing[1]] = u[..., self.closing[0]]
        return along

    def force(self, q: ArrayLike, u: Array, time: ArrayLike | None) -> Array:
        """Return the generalised force S u (..., nv) of the efforts u."""
        tau = np.zeros((*u.shape[:-1], self.robot.nv))
        tau[..., self.tree[1]] = u[..., self.tree[0]]
        if self.closing.size:
            J = self.robot._loop_joint_jacobian(q, time=time, return_status=True)[0]
            tau = tau + applied(transposed(J), self.along_loops(u))
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
    acting: Any = {"wrenches": keywords.get("wrenches"), "time": keywords.get("time"), "least_pivot": motion[..., -1]}
    multipliers = motion[..., robot.nv : robot.nv + robot.nc]
    multipliers = np.asarray(
        least_reactions(robot, q, v, motion[..., : robot.nv], multipliers, motors.along_loops(u), **acting)
    )
    if np.isnan(multipliers).any() and (lost := np.isnan(multipliers).any(axis=-1) & ~np.isnan(u).any(axis=-1)).any():
        # a state without a result belongs to a mechanism without degrees of freedom, such as a truss: compute its multipliers from statics
        J = robot.constraint_jacobian(q, time=keywords.get("time"))
        left = robot.inverse_dynamics(q, v, a, wrenches=keywords.get("wrenches")) - tau
        by_statics = applied(transposed(loop_motions(robot, J).inverse), left)
        multipliers = np.where(lost[..., None], by_statics, multipliers)
    return multipliers


def raise_not_realizable(
    robot: LoopFunctions, q: ArrayLike, v: Array, a: Array, *, wrenches: Wrenches | None = None, time: float | None = None,
    exact: bool = False, **_: Any,
) -> NoReturn:  # fmt: skip
    """Raise the error for a motion that the motors cannot produce.

    With `exact`, it names the constraint that the motion violates; otherwise it names joints that lack a motor.
    """
    force = robot.inverse_dynamics(q, v, a, wrenches=wrenches)
    _core.raise_not_realizable(robot, q, v, a, force, time, exact)
    raise AssertionError("the core raises the error")


def motors_of(robot: LoopFunctions, actuated: Sequence[str] | None, argument: str = "actuated") -> tuple[str, ...]:
    if actuated is None:
        return robot.actuated
    if isinstance(actuated, str):
        raise ModelError(f"{argument} must be a sequence of joints' names, such as ['{actuated}']; got '{actuated}'")
    try:
        names = tuple(actuated)
    except TypeError:
        raise TypeError(f"{argument} must be a sequence of joints' names; got {actuated!r}") from None
    for k, name in enumerate(names):
        robot.joint(name)
        if name in names[:k]:
            raise ModelError(f"{argument} contains joint '{name}' twice")
    return names


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


COMPONENTS = ("moment x", "moment y", "moment z", "force x", "force y", "force z")
# number of states of a batch in which uniqueness is tested; a few are sufficient, because uniqueness rarely depends on the configuration
TESTED = 5


class JointWrenches(dict[str, Array]):
    """Wrench on the child of every joint: name -> (..., 6) [moment; force], in the joint's frame on the child [N m, N].

    This dict is the result of :meth:`~sarrus.Mechanism.joint_wrenches`. Rods and rolling contacts are included, with the names of their constraints.

    Attributes
    ----------
    efforts : name -> (..., k) efforts that produce the motion [N m, N]. Efforts of motors have the names of their joints; efforts of prescribed
        motions have the names of their constraints
    loads : the wrenches by name [N m, N]
    at : mechanism, configuration (..., nq) [rad, m] and time (...) [s] of the state
    """

    efforts: dict[str, Array]

    def __init__(self, loads: dict[str, Array], efforts: dict[str, Array], at: tuple[Any, Array, Array | None]) -> None:
        super().__init__(loads)
        self.efforts, self._at = efforts, at

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute

    # compared by identity, like all results with arrays, because comparing arrays does not return a bool
    __eq__, __ne__, __hash__ = object.__eq__, object.__ne__, object.__hash__  # type: ignore[assignment]

    @cached_property
    def indeterminate(self) -> dict[str, tuple[str, ...]]:
        """Joint -> components that a rigid-body model does not determine, such as ("moment x", "force y").

        Joints whose components are all determined are omitted. Indeterminate components have the values of the least-norm solution over all
        joints, or of the solution with `compliance`. In a real mechanism, clearances and compliance determine them. In a batch, up to five
        states, evenly distributed, are tested.

        >>> import sarrus
        >>> robot = sarrus.mechanisms.four_bar()
        >>> rest = [0.0, 0.0, 0.0]
        >>> robot.joint_wrenches(robot.assemble(), rest, rest).indeterminate["pin2"]
        ('moment x', 'moment z', 'force y')
        """
        robot, q, time = self._at
        if not robot.nc:
            return {}
        q = q.reshape(-1, robot.nq)
        when = None if time is None else np.broadcast_to(time, self._at[1].shape[:-1]).ravel()
        sound = np.flatnonzero(np.isfinite(q).all(axis=1))
        found: dict[str, set[str]] = {name: set() for name in self}
        for k in np.unique(sound[np.linspace(0, len(sound) - 1, TESTED).astype(int)]) if len(sound) else ():
            components = _core.indeterminate_reactions(robot, q[k], None if when is None else float(when[k]))
            for name in found.keys() & components.keys():
                found[name].update(components[name])
        return {name: tuple(c for c in COMPONENTS if c in open_ones) for name, open_ones in found.items() if open_ones}

    def __repr__(self) -> str:
        shape = next((load.shape[:-1] for load in self.values()), ())
        states = f" in {' x '.join(map(str, shape))} states" if shape else ""
        return f"<JointWrenches of '{self._at[0].name}': {len(self)} joints{states}>"

    def _repr_html_(self) -> str:
        rows = [
            (name, largest(load[..., 3:]), largest(load[..., :3]), ", ".join(self.indeterminate.get(name, ())))
            for name, load in self.items()
        ]
        return table(rows, "Largest joint loads", ("", "force [N]", "moment [N m]", "not unique"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), self.efforts, self._at)


_wrenches_of_one_state: Any = _core.of_one_state("joint_wrenches", JointWrenches)


def joint_wrenches(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, multipliers: ArrayLike | None = None,
    actuated: Sequence[str] | None = None, wrenches: Wrenches | None = None, time: ArrayLike | None = None,
    compliance: Mapping[str, ArrayLike] | None = None,
) -> JointWrenches:  # fmt: skip
    """Compute the wrench that every joint exerts on its child in a motion, including the forces of its motor, friction and spring.

    The result depends neither on the spanning tree, nor on the order and direction of joints. If a rigid-body model does not determine a reaction
    (`indeterminate` components), the solution of least norm over all joints is returned, with moments divided by the mechanism's characteristic
    length. With `compliance`, the solution for compliant joints is returned instead.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2] that the loops allow
    multipliers : (..., nc) multipliers of the constraint rows [N m, N], as :meth:`forward_dynamics` returns them for given forces. Only the product
        J^T multipliers is used; indeterminate components are recomputed. Default: the multipliers for motor efforts by
        :meth:`actuator_efforts`, or for prescribed motions
    actuated : names of the joints with motors; default: the actuated joints of the description. Without loops, every joint has a motor
    wrenches, time : as in :meth:`forward_dynamics`
    compliance : joint to its compliance in its frame on the child, (6,) for a diagonal or (6, 6): displacement [rotation; translation] per wrench
        [moment; force] [rad/(N m), m/N; mixed: rad/N, m/(N m)]; for a rod, a number [m/N]. It is positive semidefinite; entries along the joint's
        motion are ignored. Joints without an entry are rigid. The reactions have least elastic energy; if they are not unique, the
        reactions of least norm among them are returned (docs/reactions.md)

    Returns
    -------
    JointWrenches : a dict, joint -> (..., 6) [moment; force] on the child, in the joint's frame there [N m, N]

    Raises
    ------
    NotRealizableError, StateError
        The motors cannot produce the motion, or the loops do not allow it; see :meth:`actuator_efforts`.
    ModelError
        `multipliers` is passed for a mechanism with motors in loop joints, and some applied forces are not motor efforts. The forces of joints are
        then indeterminate.

    References
    ----------
    van der Merwe 4.23, 4.30 with 5.22. Wojtyra, Joint reaction forces in multibody systems with redundant constraints, Multibody
    System Dynamics 14, 2005.

    Examples
    --------
    A four-bar at rest, held by its motor: the pins on the ground carry its weight.

    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> q, rest = robot.assemble(fixed={"motor": 0.5}), np.zeros(3)
    >>> loads = robot.joint_wrenches(q, rest, rest)
    >>> loads
    <JointWrenches of 'four-bar': 4 joints>
    >>> on_ground = [robot.pose(q, robot.joint(name).child)[:3, :3] @ loads[name][3:] for name in ("motor", "pivot")]
    >>> bool(np.allclose(sum(on_ground), [0.0, 0.0, 9.81 * robot.mass]))
    True
    >>> bool(np.allclose(loads.efforts["motor"], loads["motor"][1]))
    True

    A frame of 10 kg on two hinges; the lower one has three times the compliance along their axis:

    >>> b = sarrus.Builder("frame")
    >>> b.add_body("frame", sarrus.Inertia(10.0, (0.4, 0.0, 0.0), np.eye(3)))
    >>> for name, z in (("low", 0.2), ("high", 1.8)):
    ...     b.add_joint(name, sarrus.Revolute("z"), "ground", "frame", at_parent=(0, 0, z), at_child=(0, 0, z))
    >>> frame, at_rest = b.build(), ([0.0], [0.0], [0.0])
    >>> loads = frame.joint_wrenches(*at_rest, actuated=["low"])
    >>> [round(float(loads[name][5]), 3) for name in ("low", "high")]
    [49.05, 49.05]
    >>> compliance = {"low": [0, 0, 0, 0, 0, 3e-6], "high": [0, 0, 0, 0, 0, 1e-6]}
    >>> loads = frame.joint_wrenches(*at_rest, actuated=["low"], compliance=compliance)
    >>> [round(float(loads[name][5]), 3) for name in ("low", "high")]
    [24.525, 73.575]
    """
    usual = multipliers is None and actuated is None and wrenches is None and time is None
    if usual and compliance is None and (loads := _wrenches_of_one_state(robot, q, v, a)):
        return cast(JointWrenches, loads)
    roots = None if compliance is None else compliance_roots(robot, compliance)
    keywords: Any = {"multipliers": multipliers, "actuated": actuated, "wrenches": wrenches, "time": time}
    return joint_wrenches_with(robot, q, v, a, **keywords, compliance=roots)


def joint_wrenches_with(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, multipliers: ArrayLike | None = None,
    actuated: Sequence[str] | None = None, wrenches: Wrenches | None = None, time: ArrayLike | None = None,
    friction: Array | None = None, compliance: Array | None = None,
) -> JointWrenches:  # fmt: skip
    """Return the joint wrenches with additional forces `friction` (..., all nv) along joints.

    For a mechanism with loops, `friction` requires `multipliers`.
    """
    names, closed = motors_of(robot, actuated), bool(robot.constraints)
    if not closed:
        multipliers = time = compliance = None
        names = tuple(name for name in robot.joints if robot.joint(name).nv)
    # the core computes the least efforts of the mechanism's own motors
    driven = _motors(robot, names).robot if closed and multipliers is None else robot
    determinate = compliance is not None or (multipliers is not None and not _may_be_open(robot))
    numbers, fails = _core.joint_wrenches(driven, q, v, a, multipliers, friction, time, wrenches, names, determinate)
    if fails:  # such states of a batch have NaN
        keywords: dict[str, Any] = {"wrenches": wrenches} | ({"time": time} if closed else {})
        _explain(robot, q, v, a, multipliers, names, keywords)
    first_row = robot._base._all_nv
    first_load = first_row + robot.nc
    efforts, mu, loads = numbers[..., :first_row], numbers[..., first_row:first_load], numbers[..., first_load:]
    q = real_array("q", q)
    if compliance is not None and robot.nc:
        shared = robot._least_reactions(q, mu, loads, compliance, time=time, return_status=True)[0]
        mu, loads = np.split(shared, [robot.nc], axis=-1)
    by_name = {name: efforts[..., robot.joint(name)._all_v] for name in names}
    by_name |= {name: mu[..., rows] for name, rows in robot._prescribed}
    placed = {name: loads[..., 6 * place : 6 * place + 6] for name, place in robot._load_places}
    return JointWrenches(placed, by_name, (robot, q, None if time is None else real_array("time", time)))


def _explain(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, multipliers: ArrayLike | None, names: tuple[str, ...],
    keywords: Mapping[str, Any],
) -> NoReturn:  # fmt: skip
    """Raise the error of a single state."""
    if multipliers is None and robot.constraints:
        actuator_efforts(robot, q, v, a, actuated=names, **keywords)
    robot.inverse_dynamics(q, v, a, wrenches=keywords["wrenches"])
    raise StateError(
        "the joint wrenches of this state cannot be computed: multipliers or time are not finite, or a result overflows"
    )


def _may_be_open(robot: LoopFunctions) -> bool:
    """Return True if reactions are indeterminate in the home configuration, or if no home configuration closes the loops.

    Then the caller's multipliers are recomputed.
    """

    def tested() -> tuple[bool]:
        if robot._base is not robot:  # variants
            return (_may_be_open(robot._base),)
        try:
            rest = np.zeros(robot.nv)
            return (not determined(robot._constrained_motion(cast(Any, robot).assemble(), rest, rest)[..., -1]),)
        except SarrusError:
            return (True,)

    return prepared(robot, "may be open", tested)[0]


def across_loops(
    robot: LoopFunctions, q: Array, u: Array, multipliers: Array, names: Sequence[str], time: ArrayLike | None
) -> Array:
    """Return the wrenches (..., constraints, 6) on the constraints' children, including the wrenches of motors in loop joints."""
    motors = _motors(robot, tuple(names))
    along = motors.along_loops(u if motors.back is None else u[..., motors.back])
    across = robot._loop_wrenches(q, multipliers, time=time, return_status=True)[0]
    return np.asarray(across + robot._effort_wrenches(q, along, time=time, return_status=True)[0])


def by_friction(robot: LoopFunctions, q: Array, friction: Array, time: ArrayLike | None) -> dict[str, Array]:
    """Return the wrenches (..., 6) that forces (..., all nv) along joints apply to the children of constraints."""
    wrenches = robot._effort_wrenches(q, friction[..., robot.nv :], time=time, return_status=True)[0]
    return {name: wrenches[..., k, :] for k, name in enumerate(robot.constraints)}


def along_tree(robot: LoopFunctions, q: Array, friction: Array, time: ArrayLike | None) -> Array:
    """Return the generalised force (..., nv) of forces (..., all nv) along tree joints and loop joints."""
    tau: Array = friction[..., : robot.nv]
    if friction.shape[-1] > robot.nv:
        J = robot._loop_joint_jacobian(q, time=time, return_status=True)[0]
        tau = tau + applied(transposed(J), friction[..., robot.nv :])
    return tau
