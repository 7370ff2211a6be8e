"""What the joints of a mechanism carry, told in the same way wherever its tree was cut: what bearings are chosen by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ... import _core
from ..._arrays import Array, ArrayLike, NDArray, common_axes, real_array, real_rows
from ..._renamed import renamed_attribute
from ..._showing import largest, table
from ...dynamics.loop_operations import LoopFunctions
from ...dynamics.options import Wrenches
from ...dynamics.reactions import compliance_roots, determined, shared_reactions
from ...dynamics.variants import VariantFunctions
from ...errors import ModelError, SarrusError
from ..assembly.closing import prepared
from ..linear_algebra import applied, transposed
from ..scaling import PRESENT
from .efforts import actuation_matrix, actuator_efforts, motors_of

COMPONENTS = ("moment x", "moment y", "moment z", "force x", "force y", "force z")
NONE = np.zeros(0)
LOOKED_AT = 5  # states of a batch in which it is asked what is unique: of a mechanism it is the same nearly everywhere


class JointWrenches(dict[str, Array]):
    """Wrench on the child of every joint: name -> (..., 6) [moment; force], in the joint's frame on the child [N m, N].

    What :meth:`~sarrus.Mechanism.joint_wrenches` returns. Rods and rolling contacts are in it too, by the names of their constraints.

    Attributes
    ----------
    efforts : name -> (..., k) what brings the motion about: motors, by their joints' names, and prescribed motions, by their constraints' [N m, N]
    """

    efforts: dict[str, Array]

    def __init__(self, loads: dict[str, Array], efforts: dict[str, Array], at: tuple[Any, Array, Array | None]) -> None:
        super().__init__(loads)
        self.efforts, self._at = efforts, at

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute

    # of themselves only, as all answers that hold arrays: those of two would be neither equal nor not
    __eq__, __ne__, __hash__ = object.__eq__, object.__ne__, object.__hash__  # type: ignore[assignment]

    @cached_property
    def indeterminate(self) -> dict[str, tuple[str, ...]]:
        """Joint -> components that no rigid-body model determines, such as ("moment x", "force y"); those that have any.

        Of these the loads have the share of the solution of least norm over all joints, or that of `compliance`; clearances, and parts that give,
        decide in the end. Looked at in up to five of the states, evenly spread.

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
        loose_of: dict[str, NDArray[np.bool_]] = {}
        for k in np.unique(sound[np.linspace(0, len(sound) - 1, LOOKED_AT).astype(int)]) if len(sound) else ():
            sizes = _core.open_reactions(robot, q[k], None if when is None else float(when[k]))
            for name, size in sizes.items():
                loose_of[name] = loose_of.get(name, False) | (size > PRESENT)
        named = {name: tuple(c for c, one in zip(COMPONENTS, loose_of[name], strict=True) if one) for name in self}
        return {name: components for name, components in named.items() if components}

    def __repr__(self) -> str:
        shape = next((load.shape[:-1] for load in self.values()), ())
        states = f" in {' x '.join(map(str, shape))} states" if shape else ""
        return f"<JointWrenches of '{self._at[0].name}': {len(self)} joints{states}>"

    def _repr_html_(self) -> str:
        rows = [
            (name, largest(load[..., 3:]), largest(load[..., :3]), ", ".join(self.indeterminate.get(name, ())))
            for name, load in self.items()
        ]
        return table(rows, "What joints carry at most", ("", "force [N]", "moment [N m]", "not unique"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), self.efforts, self._at)


def joint_wrenches(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, multipliers: ArrayLike | None = None,
    actuated: Sequence[str] | None = None, wrenches: Wrenches | None = None, time: ArrayLike | None = None,
    compliance: Mapping[str, ArrayLike] | None = None,
) -> JointWrenches:  # fmt: skip
    """What every joint carries in a motion: the wrench that it exerts on its child, with what its own motor, friction and spring do.

    It does not depend on which joint closes a loop, nor on the order of joints, and a reversed joint is no exception. Of reactions that rigid
    bodies do not determine, in `indeterminate` components, it is those of least norm over all joints, forces beside moments divided by the
    mechanism's characteristic length; with `compliance`, those of joints that give so much.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv); where there are loops, a motion that they allow
    multipliers : (..., nc) what the loops carry, as :meth:`forward_dynamics` returns it for known forces, or any others of the same
        J^T multipliers: what these leave open is shared anew; default: what they carry
        while the motors bring the motion about, by :meth:`actuator_efforts`, or the prescribed motions
    actuated : names of the joints that have motors; default: those that the description says. On a tree every joint is driven
    wrenches, time : as :meth:`forward_dynamics`
    compliance : joint to 6 numbers or 6 x 6 in its frame on the child, what it gives under a wrench [moment; force] on it [rad/(N m), m/N and
        mixed]; of a rod one number does. Positive semidefinite; entries along the joint's motion do not count. Joints without an entry are
        rigid. Reactions are those of least elastic energy, and of least norm where that leaves some open (docs/reactions.md)

    Returns
    -------
    JointWrenches : a dict, joint -> (..., 6) [moment; force] on the child, in the joint's frame there [N m, N]

    Raises
    ------
    NotRealizableError, StateError
        As :meth:`actuator_efforts`, where the motors cannot bring the motion about or the loops do not allow it.
    ModelError
        With multipliers, motors in joints that close loops do not account for all that acts: what of it is in which joint is not known.

    References
    ----------
    van der Merwe 4.23, 4.30 with 5.22. Wojtyra, Joint reaction forces in multibody systems with redundant constraints, Multibody
    System Dynamics 14, 2005.

    Examples
    --------
    A four-bar that its motor holds still: its pins carry its weight.

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

    A frame of 10 kg on two hinges, of which the lower gives three times as much along their axis:

    >>> b = sarrus.Builder("frame")
    >>> b.add_body("frame", sarrus.Inertia(10.0, (0.4, 0.0, 0.0), np.eye(3)))
    >>> for name, z in (("low", 0.2), ("high", 1.8)):
    ...     b.add_joint(name, sarrus.Revolute("z"), "ground", "frame", at_parent=(0, 0, z), at_child=(0, 0, z))
    >>> frame, at_rest = b.build(), ([0.0], [0.0], [0.0])
    >>> loads = frame.joint_wrenches(*at_rest, actuated=["low"])
    >>> [round(float(loads[name][5]), 3) for name in ("low", "high")]
    [49.05, 49.05]
    >>> gives = {"low": [0, 0, 0, 0, 0, 3e-6], "high": [0, 0, 0, 0, 0, 1e-6]}
    >>> loads = frame.joint_wrenches(*at_rest, actuated=["low"], compliance=gives)
    >>> [round(float(loads[name][5]), 3) for name in ("low", "high")]
    [24.525, 73.575]
    """
    roots = None if compliance is None else compliance_roots(robot, compliance)
    how: Any = {"multipliers": multipliers, "actuated": actuated, "wrenches": wrenches, "time": time}
    return joint_wrenches_with(robot, q, v, a, **how, compliance=roots)


def joint_wrenches_with(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, multipliers: ArrayLike | None = None,
    actuated: Sequence[str] | None = None, wrenches: Wrenches | None = None, time: ArrayLike | None = None,
    friction: Array | None = None, compliance: Array | None = None,
) -> JointWrenches:  # fmt: skip
    """The same where forces (..., all nv) act along joints too, which are no motors'. With loops it takes multipliers."""
    names = motors_of(robot, actuated)
    q = real_array("q", q)
    how: dict[str, Any] = {"wrenches": wrenches} | ({} if time is None else {"time": time})
    if not robot.constraints:
        tau = robot.inverse_dynamics(q, v, a, wrenches=wrenches) - (0.0 if friction is None else friction)
        efforts = {name: tau[..., robot.joint(name).v_slice] for name in robot.joints if robot.joint(name).nv}
        loads = robot._joint_loads(q, v, a, NONE, NONE, **how)
        return JointWrenches(_on_children(robot, loads), efforts, (robot, q, None))

    if multipliers is None:
        u, mu = actuator_efforts(robot, q, v, a, actuated=actuated, return_reactions=True, wrenches=wrenches, time=time)
    else:
        u = _efforts_behind(robot, q, v, a, multipliers, names, wrenches, time, friction)
        mu = real_rows("multipliers", multipliers, robot.nc, finite=False)
        lead = common_axes({"the motion": u.shape[:-1], "multipliers": mu.shape[:-1]})
        mu = np.broadcast_to(mu, (*lead, robot.nc))
    efforts = efforts_by_name(robot, u, mu, names)
    across = efforts_across(robot, mu.shape[:-1], efforts, friction)
    shared: Array | None = None
    if compliance is not None or (multipliers is not None and _may_be_open(robot)):
        mu, shared = shared_reactions(robot, q, v, a, mu, across, **how, compliance=compliance)
        efforts = efforts_by_name(robot, u, mu, names)
    loads = robot._joint_loads(q, v, a, mu, across, **how, return_status=True)[0] if shared is None else shared
    when = None if time is None else real_array("time", time)
    return JointWrenches(_on_children(robot, loads), efforts, (robot, q, when))


def _may_be_open(robot: LoopFunctions) -> bool:
    """Whether reactions are not unique in the mechanism's own configuration, or it has none. Multipliers that are given are shared anew then."""

    def looked() -> tuple[bool]:
        if isinstance(robot, VariantFunctions):
            return (_may_be_open(robot.base),)
        try:
            rest = np.zeros(robot.nv)
            return (not determined(robot._constrained_motion(cast(Any, robot).assemble(), rest, rest)[..., -1]),)
        except SarrusError:
            return (True,)

    return prepared(robot, "may be open", looked)[0]


def efforts_by_name(robot: LoopFunctions, u: Array, multipliers: Array, names: Sequence[str]) -> dict[str, Array]:
    """What brings a motion about: motors' efforts by their joints' names, and those of prescribed motions by their constraints'."""
    efforts, end = {}, 0
    for name in names:
        first, end = end, end + robot.joint(name).type.nv
        efforts[name] = u[..., first:end]
    return efforts | {name: multipliers[..., rows] for name, rows in robot._prescribed}


def efforts_across(
    robot: LoopFunctions, lead: tuple[int, ...], efforts: Mapping[str, Array], friction: Array | None
) -> Array:
    """(*lead, all nv - nv) of motors, and of other forces (..., all nv), along joints that close loops."""
    along = np.zeros((*lead, robot._all_nv - robot.nv))
    if friction is not None:
        along += friction[..., robot.nv :]
    for joint in robot._closing_joints:
        if joint.name in efforts:
            along[..., joint._all_v.start - robot.nv : joint._all_v.stop - robot.nv] += efforts[joint.name]
    return along


def _on_children(robot: LoopFunctions, loads: Array) -> dict[str, Array]:
    """Of what the core says of all bodies and constraints (..., bodies + constraints, 6), each joint's."""
    return {name: loads[..., place, :] for name, place in robot._load_places}


def across_loops(
    robot: LoopFunctions, q: Array, u: Array, multipliers: Array, names: Sequence[str], time: ArrayLike | None
) -> Array:
    """Wrenches (..., constraints, 6) on the constraints' children, with those of motors there."""
    efforts = efforts_by_name(robot, u, multipliers, names)
    across = robot._loop_wrenches(q, multipliers, time=time, return_status=True)[0]
    of_motors = efforts_across(robot, u.shape[:-1], efforts, None)
    return np.asarray(across + robot._effort_wrenches(q, of_motors, time=time, return_status=True)[0])


def by_friction(robot: LoopFunctions, q: Array, friction: Array, time: ArrayLike | None) -> dict[str, Array]:
    """Wrenches (..., 6) of forces (..., all nv) along joints that close loops, on their children; of those that have any."""
    wrenches = robot._effort_wrenches(q, friction[..., robot.nv :], time=time, return_status=True)[0]
    places = {name: k for k, name in enumerate(robot.constraints)}
    return {
        joint.name: wrenches[..., places[joint.name], :]
        for joint in robot._closing_joints
        if friction[..., joint._all_v].any()
    }


def along_tree(robot: LoopFunctions, q: Array, friction: Array, time: ArrayLike | None) -> Array:
    """Forces (..., all nv) along joints as a generalised force (..., nv)."""
    tau: Array = friction[..., : robot.nv]
    if friction.shape[-1] > robot.nv:
        J = robot._loop_joint_jacobian(q, time=time, return_status=True)[0]
        tau = tau + applied(transposed(J), friction[..., robot.nv :])
    return tau


def _efforts_behind(
    robot: LoopFunctions, q: Array, v: ArrayLike, a: ArrayLike, multipliers: ArrayLike, names: Sequence[str], wrenches: Wrenches | None,
    time: ArrayLike | None, friction: Array | None,
) -> Array:  # fmt: skip
    """Efforts of motors (..., nu) where it is known what the loops carry: of tau = M a + h - J^T lambda."""
    mu = real_rows("multipliers", multipliers, robot.nc, np.shape(q)[:-1], finite=False)
    needed = robot.inverse_dynamics(q, v, a, wrenches=wrenches)
    carried = applied(transposed(robot.constraint_jacobian(q, time=time)), mu)
    tau = needed - carried - (0.0 if friction is None else along_tree(robot, q, friction, time))
    if all(not robot.joint(name).closes_loop for name in names):
        return np.concatenate([tau[..., :0], *(tau[..., robot.joint(name).v_slice] for name in names)], axis=-1)
    S = actuation_matrix(robot, q, actuated=names)
    sound = np.isfinite(S).all(axis=(-2, -1), keepdims=True)
    u = applied(np.linalg.pinv(np.where(sound, S, 0.0)), tau)
    with np.errstate(invalid="ignore"):
        other = np.abs(tau - applied(S, u)).max(axis=-1) > 1e-6 * (np.abs(needed) + np.abs(carried)).max(axis=-1)
    if other.any():
        raise ModelError(
            "what the joints carry is not known: more acts than the motors, of which some are in joints that close loops; "
            "name in actuated= the joints that are driven"
        )
    return u
