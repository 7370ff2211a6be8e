"""What each chain does when it is let go, and the force with which its tip answers to the member's motion: 6.1-6.25."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Array
from ..analysis.linear_algebra import applied, transposed
from ..dynamics.joint_bases import joint_bases, orthonormal_basis
from ..dynamics.loop_operations import LoopFunctions
from .chain_states import States
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
    X = _motion(to_tip @ s.place)  # 6.40
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
        psi = transposed(_inverse(_motion(to_tip @ s.place @ c.at_member.matrix))) @ psi
    else:  # the tree passes it from the member to the tip, and this is the force on the tip
        psi = -psi

    def between(m: LoopFunctions, q: Array, v: Array) -> Array:
        rest = np.zeros(v.shape)
        here, there = (m.acceleration(q, v, rest, body, expressed_in="world") for body in (cut.member, c.tip))
        return here - there

    # both at zero accelerations, which for the mechanism includes this joint's
    rate = between(cut.pieces, s.x, s.u) - between(robot, s.q, s.v)
    return psi, (s.tau - s.passive)[..., joint.v_slice], applied(transposed(psi) @ _motion(to_tip), rate)


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


def _motion(pose: NDArray[Any]) -> Array:
    """(..., 6, 6) that takes a motion's components in a frame to those in the frame in which it has this pose (2.6 inverted)."""
    R, p = pose[..., :3, :3], pose[..., :3, 3]
    X = np.zeros((*pose.shape[:-2], 6, 6))
    X[..., :3, :3] = X[..., 3:, 3:] = R
    X[..., 3:, :3] = np.cross(p[..., :, None], R, axis=-2)
    return X
