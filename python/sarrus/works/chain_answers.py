"""What each chain does when it is let go, and the force with which its tip answers to the member's motion: 6.1-6.25."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, NDArray, checked_truth, common_axes, real_array, real_rows
from .._core import Status
from .._core.spatial import motion_matrix, quaternion_from_rotation
from ..analysis.linear_algebra import applied, transposed
from ..dynamics.joint_bases import joint_bases, orthonormal_basis
from ..dynamics.loop_operations import LoopFunctions
from ..errors import StateError
from .chains import INSTEAD, Chain, TakenApart

UNFELT = 1e-7  # of the tip's mobility: a direction in which forces move the tip less than this is one in which they do not move it
NOTHING = 1e-14  # a positive number that rounding does not tell from zero, relative


@dataclass(eq=False)
class ChainAnswer:
    """The quantities of one chain: those of :class:`ReferenceMemberSolution`, and what the rest of the algorithm needs.

    Attributes
    ----------
    N, start : (..., m, n), (..., m) of a = start + N qdd, which satisfies the joint that closes on the chain's way: a of its m columns
    jacobian : (..., 6, m) of the tip frame for these; J = jacobian N
    firm : (..., n_c, n_c) orthogonal projector on the directions in which the tip does not give way: 1 - M M^-1
    psi, end_force, rate : (..., 6, k), (..., 6), (..., k) of an end joint with coordinates: qdd = psi^T (relative acceleration) + rate; end_force
        is the force along it that is known, phi_k h_k of 6.18
    """

    H: Array
    bias_forces: Array
    J: Array
    open_accelerations: Array
    open_tip_acceleration: Array
    Omega: Array
    Lambda_inverse: Array
    X: Array
    phi: Array
    phi_c: Array
    M_inverse: Array
    M: Array
    S: Array
    P: Array
    R: Array
    N: Array
    start: Array
    jacobian: Array
    firm: Array
    psi: Array
    end_force: Array
    rate: Array


def answer(robot: LoopFunctions, cut: TakenApart, s: States, c: Chain) -> ChainAnswer:
    """One chain's quantities."""
    # 6.1-6.4: the chain let go, in coordinates y that satisfy what closes on its way, a = start + N y
    D = c.columns
    inertia, jacobian = s.M[..., D[:, None], D], cut.pieces.jacobian(s.x, c.frame)[..., D]
    N, start = _solutions(s.rows[..., c.inner_rows, :][..., D], s.gamma[..., c.inner_rows])
    H, J = transposed(N) @ inertia @ N, jacobian @ N
    half, moves_nothing = inverse_root(H)
    why = f"the chain that ends with joint '{c.name}' has motions without inertia when let go; {INSTEAD}"
    s.no_answer(moves_nothing, why)
    bias_forces = applied(transposed(N), applied(inertia, start) + s.bias[..., D])
    H_inverse = transposed(half) @ half
    open_accelerations = applied(H_inverse, applied(transposed(N), s.drive[..., D]) - bias_forces)  # 5.9, 6.2
    a = np.zeros(s.u.shape)
    a[..., D] = start + applied(N, open_accelerations)
    Omega = H_inverse @ transposed(J)
    Lambda_inverse = J @ Omega

    # 2.10-2.16: the rows of the end joint take C^T of the member's velocity against the tip, and so hold C^T X
    to_tip = _inverse(cut.pieces.pose(s.x, c.frame))
    X = motion_matrix(to_tip @ s.place)  # 6.40
    C = c.sign * transposed(s.rows[..., c.rows, s.r] @ _inverse(X))
    n_c, C_inverse = C.shape[-1], np.asarray(np.linalg.pinv(C), dtype=np.float64)
    phi_c = orthonormal_basis(C @ C_inverse, n_c)
    phi = orthonormal_basis(np.eye(6) - phi_c @ transposed(phi_c), 6 - n_c)
    g = c.sign * applied(transposed(phi_c), applied(transposed(C_inverse), s.gamma[..., c.rows]))

    # 6.18: along an end joint with coordinates the force is its motor's, but for what its armature takes of it
    psi, force, rate = _motor(robot, cut, s, c, to_tip)
    soft, give = c.armature > 0.0, 1.0 / c.armature[c.armature > 0.0]
    end_force = applied(psi[..., ~soft], force[..., ~soft])
    phi_c = np.concatenate([phi_c, psi[..., soft]], axis=-1)
    g = np.concatenate([g, give * force[..., soft] - rate[..., soft]], axis=-1)

    # 6.57. M^-1 = W W^T: in W its rank shows better
    moved = J @ transposed(half)
    slack = np.diag(np.concatenate([np.zeros(n_c), np.sqrt(give)]))[:, n_c:]
    W = np.concatenate([transposed(phi_c) @ moved, np.broadcast_to(slack, (*s.lead, *slack.shape))], axis=-1)
    U, sizes, _ = np.linalg.svd(W, full_matrices=False)
    felt = sizes > UNFELT * np.linalg.norm(moved, axis=(-2, -1))[..., None]
    M = (U * inverse_where(sizes**2, felt)[..., None, :]) @ transposed(U)

    # 6.20: with accelerations of coordinates for open_accelerations, what velocities add to the tip's and the member's stands in gamma
    tip = applied(jacobian, a[..., D]) - applied(Lambda_inverse, end_force) + applied(X, s.turning)
    S = g + applied(transposed(phi_c), tip)
    P, R = end_force + applied(phi_c @ M, S), phi_c @ M @ transposed(phi_c) @ X
    firm = np.eye(W.shape[-2]) - (U * felt[..., None, :]) @ transposed(U)
    open_tip_acceleration = cut.pieces.acceleration(s.x, s.u, a, c.frame)
    return ChainAnswer(
        H, bias_forces, J, open_accelerations, open_tip_acceleration, Omega, Lambda_inverse, X, phi, phi_c, W @ transposed(W), M, S, P, R,
        N, start, jacobian, firm, psi, end_force, rate,
    )  # fmt: skip


def _motor(
    robot: LoopFunctions, cut: TakenApart, s: States, c: Chain, to_tip: NDArray[Any]
) -> tuple[Array, Array, Array]:
    """psi of an end joint of the tree, in the tip frame; what acts along it on the member; and the rate that velocities alone give it."""
    if c.closes:
        return np.zeros((*s.lead, 6, 0)), np.zeros((*s.lead, 0)), np.zeros((*s.lead, 0))
    joint = robot.joint(c.name)
    motion, _, psi, _ = joint_bases(robot, s.q, c.name)
    sizes = np.linalg.svd(motion, compute_uv=False)
    parallel = sizes.min(axis=-1, initial=np.inf) <= NOTHING * sizes.max(axis=-1, initial=0.0)
    s.no_answer(parallel, f"axes of joint '{c.name}', which ends a chain, have become parallel; {INSTEAD}")
    if (joint.parent if joint.reversed else joint.child) == cut.member:
        psi = transposed(_inverse(motion_matrix(to_tip @ s.place @ c.at_member.matrix))) @ psi
    else:  # the tree passes it from the member to the tip, and this is the force on the tip
        psi = -psi

    def between(m: LoopFunctions, q: Array, v: Array) -> Array:
        rest = np.zeros(v.shape)
        here, there = (m.acceleration(q, v, rest, body, expressed_in="world") for body in (cut.member, c.tip))
        return here - there

    # both at zero accelerations, which for the mechanism includes this joint's
    rate = between(cut.pieces, s.x, s.u) - between(robot, s.q, s.v)
    return psi, (s.tau - s.passive)[..., joint.v_slice], applied(transposed(psi) @ motion_matrix(to_tip), rate)


def _solutions(rows: Array, gamma: Array) -> tuple[Array, Array]:
    """N and a_0, where a_0 + N y are the solutions of rows a = gamma, and rows are independent."""
    count, n = rows.shape[-2:]
    if count == 0:
        return np.broadcast_to(np.eye(n), (*rows.shape[:-2], n, n)), np.zeros((*rows.shape[:-2], n))
    Q, L = np.linalg.qr(transposed(rows), mode="complete")
    return Q[..., count:], applied(Q[..., :count] @ transposed(_inverse(L[..., :count, :])), gamma)


def inverse_root(A: Array) -> tuple[Array, NDArray[np.bool_]]:
    """L^-1 of A = L L^T, and where (...) A is not positive definite: the identity stands for such an A."""
    n = A.shape[-1]
    size = np.sqrt(np.maximum(np.diagonal(A, axis1=-2, axis2=-1), 0.0))
    size = np.where(size > 0.0, size, 1.0)
    alike = A / (size[..., :, None] * size[..., None, :])  # metres and radians weigh the same
    singular = np.linalg.eigvalsh(alike).min(axis=-1, initial=np.inf) <= NOTHING
    alike = np.where(singular[..., None, None], np.eye(n), alike)
    return _inverse(np.linalg.cholesky(alike)) / size[..., None, :], singular


def _inverse(A: NDArray[Any]) -> Array:
    return np.asarray(np.linalg.inv(A), dtype=np.float64)


def inverse_where(x: Array, where: NDArray[np.bool_]) -> Array:
    """1/x where, and 0 elsewhere."""
    return np.where(where, 1.0, 0.0) / np.where(where, x, 1.0)


# ---- states of a mechanism, checked, and the same of the pieces into which it is taken apart -------------------------


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
        x[..., here.q_slice] = np.concatenate([quaternion_from_rotation(pose[..., :3, :3]), pose[..., :3, 3]], axis=-1)
        u[..., here.v_slice] = robot.velocity(q, v, body)
    r = pieces.joint(cut.afloat[cut.member]).v_slice
    turning = np.zeros((*lead, 6))
    turning[..., 3:] = np.cross(u[..., r][..., :3], u[..., r][..., 3:])
    M, bias = pieces.mass_matrix(x), pieces.bias_forces(x, u, wrenches=wrenches, return_status=True)[0]
    rows, gamma = pieces.constraint_jacobian(x, time=time), pieces.constraint_bias(x, u, time=time)
    passive, place = cut.weightless.bias_forces(q, v), pieces.pose(x, cut.member)
    return States(status, explain, q, v, tau, time, x, u, drive, M, bias, rows, gamma, passive, place, r, turning)
