"""Derivatives of closed configurations with respect to input joints and dimensions, for tolerances, calibration and synthesis.

If a joint's frame is displaced on one of its bodies, the loops open. The derivative is the motion that closes the loops again, with the input joints
locked. The change of constraint row r follows from virtual work: it is the work, along the displacement, of the wrench that a unit multiplier of row
r exerts on the joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ..._arrays import Array, ArrayLike, checked_names, checked_times, real_rows
from ..._core import Status
from ..._showing import Brief
from ...description.constraints import DistanceSpec
from ...dynamics.derivatives import check_robot
from ...dynamics.loop_operations import LoopFunctions, raise_explained
from ...errors import ModelError, StateError
from .closing import closing

SIDES = ("parent", "child")


@dataclass(frozen=True, eq=False, repr=False)
class AssembledPositions(Brief):
    """Derivatives of a closed configuration: dq = leading d(input coordinates) + placements d(frames of joints) + lengths d(rods).

    Attributes
    ----------
    leading : (..., nv, k) with respect to the coordinates of the input joints, as displacements along their velocities [rad, m]
    placements : (..., nv, joints, 2, 6) with respect to displacements [rotation; translation] of a joint's frame on its parent (0) and on its
        child (1), in the frame's axes [rad, m]; NaN if `closes` is False
    lengths : (..., nv, rods) with respect to the lengths of distance constraints [m]; NaN if the loops do not close with another length
    closes : (..., joints, 2, 6) True if the loops close after the displacement. Overconstrained mechanisms have displacements that open the loops,
        for example those of a planar linkage out of its plane
    joints, rods : names of joints and of distance constraints, in the order of the axes above
    """

    leading: Array
    placements: Array
    lengths: Array
    closes: Array
    joints: tuple[str, ...]
    rods: tuple[str, ...]
    _at: tuple[LoopFunctions, Array, dict[str, Any]] = field(repr=False)

    def frame(self, name: str) -> tuple[Array, Array, Array]:
        """Return the derivatives of a frame's pose, as displacements [rotation; translation] in its own axes.

        Parameters
        ----------
        name : name of the frame

        Returns
        -------
        (..., 6, k), (..., 6, joints, 2, 6), (..., 6, rods) : with respect to input coordinates, placements and lengths; see the attributes
        """
        robot, q, at_time = self._at
        J = robot.jacobian(q, name, return_status=True)[0]
        moves = [
            np.einsum("...fv,...vp->...fp", J, x.reshape(*x.shape[: J.ndim - 1], -1))
            for x in (self.leading, self.placements, self.lengths)
        ]
        keywords = {key: x[..., None] for key, x in at_time.items()}
        loads = _loads(robot, q[..., None, :], np.zeros(robot.nc), {name: np.eye(6)}, keywords)
        places = dict(robot._load_places)
        carried = _power(robot, q, loads[..., [places[joint] for joint in self.joints], :])
        by_placements = (moves[1] + carried).reshape(*moves[1].shape[:-1], *self.placements.shape[q.ndim :])
        joint, _, side = name.rpartition(".")
        if joint in self.joints and side in SIDES and name not in robot.frames:
            # a displacement of the frame itself
            by_placements[..., self.joints.index(joint), SIDES.index(side), :] += np.eye(6)
        return moves[0], by_placements, moves[2]


def assembled_positions(
    robot: LoopFunctions, q: ArrayLike, leading: Sequence[str], *, time: ArrayLike | None = None
) -> AssembledPositions:
    """Compute derivatives of closed configurations with respect to input coordinates, placements of joints and lengths of rods.

    Parameters
    ----------
    robot : the mechanism
    q : (..., nq) configuration that closes the loops [rad, m, quaternions (x, y, z, w)]
    leading : names of the input joints, tree or loop joints, whose coordinates determine the motion
    time : (...) time for prescribed motions [s]; it is constant

    Returns
    -------
    AssembledPositions

    Raises
    ------
    StateError
        The loops are open. Or the input joints do not determine the motion, because they are too few or the position is singular. In a batch, no
        error is raised and the row is NaN.
    NameNotFoundError, ModelError
        A joint does not exist; input joints close a loop among themselves; a constraint acts on velocities only.

    Examples
    --------
    Derivatives of a slider-crank, among them that of its slider per displacement of its wrist pin:

    >>> import sarrus
    >>> robot = sarrus.mechanisms.slider_crank()
    >>> q = robot.assemble(fixed={"motor": 0.6})
    >>> D = sarrus.derivatives.assembled_positions(robot, q, ["motor"])
    >>> D.leading.shape, D.placements.shape, len(D.joints)
    ((3, 1), (3, 4, 2, 6), 4)
    """
    check_robot(robot, variants=False)
    q = real_rows("q", q, robot.nq)
    names = tuple(checked_names("leading", leading))
    velocities = [name for name, c in robot._constraints.items() if not np.all(c.holonomic)]
    if velocities:
        raise ModelError(
            f"constraint '{velocities[0]}' constrains velocities only, so positions do not follow from dimensions; expected position constraints"
        )
    when = checked_times(time)
    at_time = {} if when is None else {"time": np.broadcast_to(when, q.shape[:-1])}
    velocity = robot.project_velocity(q, np.zeros(robot.nv), return_status=True, **cast(Any, at_time))[0]
    state = {"q": q, "v": velocity, "tau": np.zeros(robot.nv), **at_time}
    open_ = robot.forward_dynamics(**cast(Any, state), return_status=True)[1] == Status.OFF_LOOPS
    if q.ndim == 1 and open_:
        raise_explained(robot, "assembled_positions", Status.OFF_LOOPS, state)
    displacements = _Moves(robot, q, names, at_time)
    freedom = np.where(open_, np.nan, displacements.freedom())
    if q.ndim == 1 and freedom != 0.0:
        raise StateError(
            f"assembled_positions: the input joints ({', '.join(map(repr, names)) or 'none'}) leave {freedom:.0f} degrees of freedom; expected 0: "
            "name more joints, unless the position is singular"
        )
    by_input, _ = displacements.along_leading([np.eye(robot.joint(name).type.nv) for name in names])
    eye = np.eye(displacements.robot.nc)
    opening = _power(robot, q, displacements.loads(eye))  # (..., nc, parameters)
    placements, status = displacements.closing(-np.swapaxes(opening, -1, -2))
    rods = tuple(name for name, c in robot._constraints.items() if isinstance(c.spec, DistanceSpec))
    lengths, _ = displacements.closing(eye[[displacements.robot.constraint(name).rows.start for name in rods]])
    joints, closes = (*robot.joints, *robot.loop_joints), (status == 0) & (freedom == 0.0)[..., None]
    for x in (by_input, placements, lengths):
        x[freedom != 0.0] = np.nan
    shape = (len(joints), 2, 6)
    return AssembledPositions(
        by_input, placements.reshape(*placements.shape[:-1], *shape), lengths, closes.reshape(*q.shape[:-1], *shape), joints, rods, (robot, q,
        at_time)
    )  # fmt: skip


class _Moves:
    """Displacements that keep the loops closed, with the input joints locked or moving; input loop joints are target constraints of `robot`."""

    def __init__(self, robot: LoopFunctions, q: Array, leading: tuple[str, ...], at_time: dict[str, Any]) -> None:
        self.base, self.leading, self.closure = robot, leading, closing(robot, (), leading)
        self.robot, self.q = self.closure.robot, q[..., None, :]
        self.besides = {name: x[..., None] for name, x in at_time.items()}
        self.time = dict(self.besides)
        if self.closure.loop_joints or robot._asks_for_rows:
            current = cast(Any, robot.joint_states(q, return_status=True, **at_time))[0].q
            targets = np.concatenate([q[..., :0], *(current[name] for name in self.closure.loop_joints)], axis=-1)
            self.besides["pfaffian_values"] = self.closure.values(q, None, targets)[..., None, :]
        # cancels the velocities of prescribed motions, because time is constant
        self.still = -self.robot.constraint_velocity(self.q, return_status=True, **self.besides)[0]

    def freedom(self) -> Array:
        """Return the number of degrees of freedom with locked input joints, (...); NaN without a result."""
        answer = self.robot._loop_motions(self.q, self.closure.scale, return_status=True, **self.besides)[0]
        return np.asarray(answer[..., 0, -1] - np.sum(self.closure.weight == 0.0))

    def along_leading(self, units: Sequence[Array]) -> tuple[Array, Array]:
        """Return the displacements (..., nv, k) for unit motions of the input joints, and the status of each."""
        count = sum(map(len, units))
        fixed_velocities, rows = np.zeros((count, self.base.nv)), np.zeros((count, self.robot.nc))
        places, first = dict(zip(self.closure.loop_joints, self.closure.rows, strict=True)), 0
        for name, unit in zip(self.leading, units, strict=True):
            columns = slice(first, first + len(unit))
            (rows if name in places else fixed_velocities)[columns, places.get(name, self.base.joint(name).v_slice)] = (
                unit
            )
            first += len(unit)
        return self._least(fixed_velocities, rows)

    def closing(self, rows: Array) -> tuple[Array, Array]:
        """Return the displacements (..., nv, k) for changes `rows` (..., k, nc) of the constraint rows, and the status of each."""
        return self._least(np.zeros(self.base.nv), rows)

    def loads(self, multipliers: Array) -> Array:
        """Return the wrenches (..., k, joints, 6) of multipliers (..., k, nc) on the joints, including the multipliers of target rows."""
        places = dict(self.robot._load_places)
        names = (*self.base.joints, *self.base.loop_joints)
        loads = _loads(self.robot, self.q, multipliers, None, self.time)
        joint_loads = loads[..., [places[name] for name in names], :]
        first_target = len(self.robot.constraints) - len(self.closure.loop_joints)
        for k, name in enumerate(self.closure.loop_joints):
            joint_loads[..., names.index(name), :] += loads[..., len(self.robot.bodies) + first_target + k, :]
        return joint_loads

    def _least(self, fixed_velocities: Array, rows: Array) -> tuple[Array, Array]:
        dq, status = self.robot._least_motion(
            self.q, fixed_velocities, None, self.closure.weight, rows + self.still, return_status=True, **self.besides
        )
        return np.swapaxes(dq, -1, -2), np.asarray(status)


def _loads(robot: LoopFunctions, q: Array, multipliers: Array, wrenches: Any, at_time: dict[str, Any]) -> Array:
    """Return the wrenches (..., bodies and constraints, 6) that multipliers or wrenches exert on the joints' children, in the joints' frames."""
    rest, no_efforts = np.zeros(robot.nv), np.zeros(robot._all_nv - robot.nv)
    weight_loads = robot._joint_loads(q, rest, rest, np.zeros(robot.nc), no_efforts, return_status=True, **at_time)[0]
    # the multipliers are scaled to the magnitude of the loads of the bodies' weight, so that rounding of these loads does not dominate the difference
    size = np.abs(weight_loads).max(axis=(-2, -1), initial=0.0)[..., None]
    size = np.where(size > 0.0, size, 1.0)
    wrenches = None if wrenches is None else {name: size * w for name, w in wrenches.items()}
    loads = robot._joint_loads(
        q, rest, rest, size * multipliers, no_efforts, wrenches=wrenches, return_status=True, **at_time
    )[0]
    return np.asarray((loads - weight_loads) / size[..., None])


def _power(robot: LoopFunctions, q: Array, loads: Array) -> Array:
    """Return the power (..., k, 12 joints) of loads (..., k, joints, 6) along displacements of the joints' frames on parents, then on children."""
    specs = {spec.name: spec for spec in robot.description.joints}
    on_parents = []
    for i, name in enumerate((*robot.joints, *robot.loop_joints)):
        spec = specs[name]
        parent, child = (
            robot.pose(q, body, return_status=True)[0] @ at.matrix
            for body, at in ((spec.parent, spec.at_parent), (spec.child, spec.at_child))
        )
        R = np.swapaxes(parent[..., :3, :3], -1, -2)[..., None, :, :]
        arm = (child - parent)[..., None, :3, 3]
        turn = np.einsum("...ij,...j->...i", child[..., None, :3, :3], loads[..., i, :3])
        push = np.einsum("...ij,...j->...i", child[..., None, :3, :3], loads[..., i, 3:])
        moment = turn + np.cross(arm, push)
        on_parents.append(-np.concatenate([(R @ moment[..., None])[..., 0], (R @ push[..., None])[..., 0]], axis=-1))
    both = np.stack([np.stack(on_parents, axis=-2), loads], axis=-2)
    return both.reshape(*both.shape[:-3], 12 * len(on_parents))
