"""Wrenches of all joints of a mechanism, independent of its spanning tree, for the choice of bearings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from ... import _core
from ..._arrays import Array, ArrayLike, real_array
from ..._renamed import renamed_attribute
from ..._showing import largest, table
from ...dynamics.loop_operations import LoopFunctions
from ...dynamics.options import Wrenches
from ...dynamics.reactions import compliance_roots, determined
from ...errors import SarrusError, StateError
from ..assembly.closing import prepared
from ..linear_algebra import applied, transposed
from .efforts import _motors, actuator_efforts, motors_of

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
        `multipliers` is an argument, the mechanism has motors in loop joints, and applied forces are not all efforts of motors. Then the forces of
        joints are indeterminate.

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


def efforts_by_name(robot: LoopFunctions, u: Array, multipliers: Array, names: Sequence[str]) -> dict[str, Array]:
    """Return the efforts of motors, by the names of their joints, and of prescribed motions, by the names of their constraints."""
    efforts, end = {}, 0
    for name in names:
        first, end = end, end + robot.joint(name).type.nv
        efforts[name] = u[..., first:end]
    return efforts | {name: multipliers[..., rows] for name, rows in robot._prescribed}


def efforts_across(
    robot: LoopFunctions, lead: tuple[int, ...], efforts: Mapping[str, Array], friction: Array | None
) -> Array:
    """Return the sum (*lead, all nv - nv) of motor efforts and additional forces `friction` (..., all nv) along loop joints."""
    along = np.zeros((*lead, robot._all_nv - robot.nv))
    if friction is not None:
        along += friction[..., robot.nv :]
    for joint in robot._closing_joints:
        if joint.name in efforts:
            along[..., joint._all_v.start - robot.nv : joint._all_v.stop - robot.nv] += efforts[joint.name]
    return along


def across_loops(
    robot: LoopFunctions, q: Array, u: Array, multipliers: Array, names: Sequence[str], time: ArrayLike | None
) -> Array:
    """Return the wrenches (..., constraints, 6) on the constraints' children, including the wrenches of motors in loop joints."""
    efforts = efforts_by_name(robot, u, multipliers, names)
    across = robot._loop_wrenches(q, multipliers, time=time, return_status=True)[0]
    motor_efforts = efforts_across(robot, u.shape[:-1], efforts, None)
    return np.asarray(across + robot._effort_wrenches(q, motor_efforts, time=time, return_status=True)[0])


def by_friction(robot: LoopFunctions, q: Array, friction: Array, time: ArrayLike | None) -> dict[str, Array]:
    """Return the wrenches (..., 6) that forces (..., all nv) along joints apply to the children of loop joints.

    Loop joints without force are omitted.
    """
    wrenches = robot._effort_wrenches(q, friction[..., robot.nv :], time=time, return_status=True)[0]
    places = {name: k for k, name in enumerate(robot.constraints)}
    return {
        joint.name: wrenches[..., places[joint.name], :]
        for joint in robot._closing_joints
        if friction[..., joint._all_v].any()
    }


def along_tree(robot: LoopFunctions, q: Array, friction: Array, time: ArrayLike | None) -> Array:
    """Return the generalised force (..., nv) of forces (..., all nv) along tree joints and loop joints."""
    tau: Array = friction[..., : robot.nv]
    if friction.shape[-1] > robot.nv:
        J = robot._loop_joint_jacobian(q, time=time, return_status=True)[0]
        tau = tau + applied(transposed(J), friction[..., robot.nv :])
    return tau
