"""States of a mechanism, checked, and the same of the pieces into which it is taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays import Array, ArrayLike, checked_truth, common_axes, real_array, real_rows
from .._core import Status
from ..analysis.linear_algebra import transposed
from ..dynamics.loop_operations import LoopFunctions
from ..errors import StateError
from .chains import TakenApart

LARGEST = 1e50  # beyond it products of what is computed from these overflow


@dataclass(eq=False)
class States:
    """States of a mechanism, the same of its pieces, and what moves them. Unsound ones are replaced by something at rest.

    Attributes
    ----------
    status : (...) int8, as in :class:`ReferenceMemberSolution`
    explain : whether a state without an answer is an error: it is alone, and its status was not asked for
    q, v, tau, time : of the mechanism
    x, u, drive : (..., nq), (..., nv), (..., nv) configuration, velocity and joints' forces of the pieces
    M, bias : (..., nv, nv), (..., nv) of M a + bias = force in the pieces
    rows, gamma : (..., nc, nv), (..., nc) of rows a = gamma, which puts the pieces together
    passive : (..., nv) what springs and friction take along the mechanism's joints
    place, r : pose (..., 4, 4) of the member, and where its velocity stands among those of the pieces
    turning : (..., 6) what makes the rate of a velocity's components in the member's frame a classical acceleration
    """

    status: NDArray[np.int8]
    explain: bool
    q: Array
    v: Array
    tau: Array
    time: Array | None
    x: Array
    u: Array
    drive: Array
    M: Array
    bias: Array
    rows: Array
    gamma: Array
    passive: Array
    place: Array
    r: slice
    turning: Array

    @property
    def lead(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.status.shape

    def no_answer(self, where: NDArray[np.bool_], why: str) -> None:
        """These have none: their status is 2; StateError with the reason where one is asked for."""
        if self.explain and where.any():
            raise StateError(f"reference_member has no answer: {why}")
        self.status[where & (self.status == Status.FINE)] = Status.NO_ANSWER


def states(
    robot: LoopFunctions, cut: TakenApart, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
    wrenches: Mapping[str, ArrayLike] | None, time: ArrayLike | None, return_status: bool,
) -> States:  # fmt: skip
    """All of them as arrays with the same leading axes; StateError or ShapeError where they are not what they must be."""
    return_status = checked_truth("return_status", return_status)
    force, when = real_rows("tau", tau, robot.nv, finite=False), real_array("time", 0.0 if time is None else time)
    bias_status = robot.bias_forces(q, v, wrenches=wrenches, return_status=True)[1]
    lead = common_axes({"q, v and wrenches": bias_status.shape, "tau": force.shape[:-1], "time": when.shape})
    explain = lead == () and not return_status
    if explain and bias_status:
        robot.bias_forces(q, v, wrenches=wrenches)  # says what is wrong with it
    unsound = ~np.isfinite(force).all(axis=-1) | ~np.isfinite(when)
    if explain and unsound:
        raise StateError("tau and time must be finite")
    status = np.where(unsound, Status.UNSOUND, bias_status).astype(np.int8)

    s = _states(robot, cut, q, v, force, wrenches, None if time is None else when, status, explain)
    sizes = [np.abs(x).max(axis=-1, initial=0.0) for x in (s.tau, s.bias, s.gamma)]
    sizes += [np.abs(A).max(axis=(-2, -1), initial=0.0) for A in (s.M, s.rows, s.place)]
    small = np.all([size <= LARGEST for size in sizes], axis=0)
    if small.all():
        return s
    s.no_answer(~small, "the numbers overflow")
    return _states(robot, cut, q, v, force, wrenches, s.time, status, explain)


def _states(
    robot: LoopFunctions, cut: TakenApart, q: ArrayLike, v: ArrayLike, tau: Array,
    wrenches: Mapping[str, ArrayLike] | None, time: Array | None, status: NDArray[np.int8], explain: bool,
) -> States:  # fmt: skip
    pieces, lead, fine = cut.pieces, status.shape, status == Status.FINE
    q = np.where(fine[..., None], q, robot.neutral())
    v, tau = np.where(fine[..., None], v, 0.0), np.where(fine[..., None], tau, 0.0)
    time = None if time is None else np.where(fine, time, 0.0)
    x, u, drive = (np.zeros((*lead, n)) for n in (pieces.nq, pieces.nv, pieces.nv))
    for name in cut.kept:
        here, there = pieces.joint(name), robot.joint(name)
        x[..., here.q_slice] = q[..., there.q_slice]
        u[..., here.v_slice] = v[..., there.v_slice]
        drive[..., here.v_slice] = tau[..., there.v_slice]
    for body, name in cut.afloat.items():
        here, pose = pieces.joint(name), robot.pose(q, body)
        x[..., here.q_slice] = np.concatenate([_quaternion(pose[..., :3, :3]), pose[..., :3, 3]], axis=-1)
        u[..., here.v_slice] = robot.velocity(q, v, body)
    r = pieces.joint(cut.afloat[cut.member]).v_slice
    turning = np.zeros((*lead, 6))
    turning[..., 3:] = np.cross(u[..., r][..., :3], u[..., r][..., 3:])
    M, bias = pieces.mass_matrix(x), pieces.bias_forces(x, u, wrenches=wrenches, return_status=True)[0]
    rows, gamma = pieces.constraint_jacobian(x, time=time), pieces.constraint_bias(x, u, time=time)
    passive, place = cut.weightless.bias_forces(q, v), pieces.pose(x, cut.member)
    return States(status, explain, q, v, tau, time, x, u, drive, M, bias, rows, gamma, passive, place, r, turning)


def _quaternion(R: Array) -> Array:
    """(..., 4) unit, (x, y, z, w): the largest column of 4 q q^T, written in the elements of R."""
    Q = np.empty((*R.shape[:-2], 4, 4))
    trace = np.trace(R, axis1=-2, axis2=-1)
    Q[..., :3, :3] = R + transposed(R) + (1.0 - trace)[..., None, None] * np.eye(3)
    Q[..., 3, 3] = 1.0 + trace
    twist = R - transposed(R)
    Q[..., :3, 3] = Q[..., 3, :3] = np.stack([twist[..., 2, 1], twist[..., 0, 2], twist[..., 1, 0]], axis=-1)
    largest = np.argmax(np.diagonal(Q, axis1=-2, axis2=-1), axis=-1)[..., None, None]
    q = np.take_along_axis(Q, largest, axis=-1)[..., 0]
    return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True))
