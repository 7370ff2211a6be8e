"""Decomposition of a mechanism at one body, the reference member, into the chains that carry it (van der Merwe 1995, 6.1 and 6.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, checked_truth, common_axes, real_array, real_rows
from .._core import Status
from .._core.spatial import motion_matrix, quaternion_from_rotation
from ..analysis.linear_algebra import applied, transposed
from ..description.joints import PASSIVE, Free
from ..description.specs import Description, FrameSpec, JointSpec
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.reactions import joint_bases
from ..errors import ModelError, StateError
from ..spatial import Inertia, Transform

INSTEAD = "choose another body with member=, or use forward_dynamics(), which accepts any mechanism"


@dataclass(frozen=True, eq=False)
class Chain:
    """Serial chain from the ground to the reference member; its last body is the tip, and its end joint connects the tip to the member.

    "Pieces" is the mechanism with cut joints, see :class:`Decomposition`.

    Attributes
    ----------
    name : name of the end joint
    joints : names of all joints before the end joint, from the ground to the tip
    tip, frame : name of the last body (the ground for a chain of the end joint only), and the end joint's frame on it, a frame of the pieces
    at_member : the end joint's frame on the member
    sign : 1 if the end joint's velocity is that of the member relative to the tip, -1 if it is that of the tip relative to the member
    closes : True if the end joint is a loop joint of the mechanism; otherwise it has coordinates
    armature : armature of the end joint
    inner : loop joint of the mechanism inside the chain, or None. With such a joint, the tip's path to the root of the tree passes through the member
    kept : indices of the chain's velocities in the mechanism
    columns : indices of these velocities in the pieces, and of the velocities of a floating tip
    rows, inner_rows : constraint rows of the end joint and of the inner joint in the pieces
    """

    name: str
    joints: tuple[str, ...]
    tip: str
    frame: str
    at_member: Transform
    sign: float
    closes: bool
    armature: Array
    inner: str | None
    kept: NDArray[np.intp]
    columns: NDArray[np.intp]
    rows: slice
    inner_rows: slice


@dataclass(frozen=True)
class Decomposition:
    """A mechanism in which the joints of one body, and the loop joints inside the chains, are cut.

    Attributes
    ----------
    member : the reference member
    chains : chains from the ground to the member
    pieces : the mechanism with cut joints as constraints, so that the coordinates of the chains are independent of one another
    weightless : the mechanism without masses and gravity, whose bias forces are only the spring and friction forces of its joints
    kept : joints that have coordinates both in the mechanism and in the pieces
    afloat : floating bodies of the pieces, with the names of their free joints
    """

    member: str
    chains: tuple[Chain, ...]
    pieces: LoopFunctions
    weightless: LoopFunctions
    kept: tuple[str, ...]
    afloat: dict[str, str]


@lru_cache(maxsize=64)
def decomposition(robot: LoopFunctions, member: str | None) -> Decomposition:
    """Return the decomposition at the body `member`; default: the first candidate at which the mechanism can be decomposed.

    Candidates are sorted by their number of joints, then by their distance from the ground.
    """
    d = robot.description
    for constraint in d.constraints:
        raise ModelError(
            f"the reference-member algorithm requires loops of joints, and constraint '{constraint.name}' is not a joint: use "
            "forward_dynamics(), which accepts all constraints"
        )
    errors = []
    for body in _candidates(d) if member is None else [member]:
        try:
            return _decomposed(robot, body, _chain_joints(d, body))
        except ModelError as error:
            errors.append(error)
    raise errors[0]


def _joints_at(d: Description) -> dict[str, list[JointSpec]]:
    bodies = ("ground", *(body.name for body in d.bodies))
    return {body: [j for j in d.joints if body in (j.parent, j.child)] for body in bodies}


def _across(joint: JointSpec, body: str) -> str:
    return joint.child if joint.parent == body else joint.parent


def _candidates(d: Description) -> list[str]:
    """Return the bodies sorted by number of joints, most first, then by distance from the ground, farthest first."""
    at, distance, queue = _joints_at(d), {"ground": 0}, ["ground"]
    for body in queue:
        for other in (_across(j, body) for j in at[body]):
            if other not in distance:
                distance[other] = distance[body] + 1
                queue.append(other)
    return sorted((b.name for b in d.bodies), key=lambda body: (-len(at[body]), -distance[body]))


def _chain_joints(d: Description, member: str) -> list[list[JointSpec]]:
    """Return the joints of each chain, from the member to the ground."""
    at, paths, met = _joints_at(d), [], {member, "ground"}

    def fail(reason: str) -> None:
        raise ModelError(
            "the reference-member algorithm requires a body and serial chains from it to the ground; "
            f"with '{member}' as that body, {reason}: {INSTEAD}"
        )

    for end in at[member]:
        path, body = [end], _across(end, member)
        while body != "ground":
            onward = [j for j in at[body] if j is not path[-1]]
            if body == member:
                fail(f"the chain that starts with joint '{end.name}' returns to it")
            if len(onward) != 1:
                does = "branches at" if onward else "does not reach the ground but ends with"
                fail(f"the chain that starts with joint '{end.name}' {does} body '{body}'")
            met.add(body)
            path += onward
            body = _across(onward[0], body)
        paths.append(path)
    for stray in [body for body in at if body not in met]:
        fail(f"body '{stray}' is on no chain")
    return paths


def _decomposed(robot: LoopFunctions, member: str, paths: list[list[JointSpec]]) -> Decomposition:
    d, closing = robot.description, set(robot.loop_joints)
    tips = {end.name: _across(end, member) for end, *_ in paths}
    # each body of a chain has two joints and belongs to the tree, therefore at most one joint of the chain is a loop joint
    inner = {end.name: next((j.name for j in path if j.name in closing), None) for end, *path in paths}
    used = {*robot.joints, *closing, *robot.frames}
    names = (name for k in count() if (name := f"piece {k}") not in used)

    # a chain with an inner loop joint is in the tree from both of its ends: the bodies between this joint and the member are descendants of the
    # member
    carried = (member, *(tip for end, tip in tips.items() if inner[end]))
    afloat = {body: next(names) for body in carried}
    frames = {end: next(names) for end in tips}
    cut = closing | set(tips)
    for j in d.joints:
        if j.name in closing and j.joint.armature.any():
            raise ModelError(
                f"the reference-member algorithm does not support armature of a loop joint, such as '{j.name}': use forward_dynamics()"
            )
    # forces along an end joint with coordinates are computed here, because the pieces do not contain its coordinates
    specs = [_without_terms(j) if j.name in tips and j.name not in closing else j for j in d.joints]
    joints = [replace(j, actuated=False, tree=j.name not in cut, loop=j.name in cut) for j in specs]
    for body, name in afloat.items():
        joints.append(JointSpec(name, Free(), "ground", body, Transform(), Transform(), False, tree=True))
    places = {end.name: end.at_child if end.parent == member else end.at_parent for end, *_ in paths}
    at_tip = [FrameSpec(frames[name], tips[name], place) for name, place in places.items()]
    pieces = type(robot)(replace(d, joints=tuple(joints), frames=(*d.frames, *at_tip), home=()))
    massless = tuple(replace(body, inertia=Inertia.zero()) for body in d.bodies)
    unsprung = tuple(_without_terms(j) if j.name in closing else j for j in d.joints)

    def rows(name: str | None) -> slice:
        return pieces.constraint(name).rows if name in pieces.constraints else slice(0, 0)

    def chain(end: JointSpec, *path: JointSpec) -> Chain:
        name, tip = end.name, tips[end.name]
        kept = [j.name for j in reversed(path) if j.name not in closing]
        return Chain(
            name=name,
            joints=tuple(j.name for j in reversed(path)),
            tip=tip,
            frame=frames[name],
            at_member=end.at_parent if end.parent == member else end.at_child,
            sign=1.0 if end.child == member else -1.0,
            closes=name in closing,
            armature=np.zeros(0) if name in closing else np.array(end.joint.armature),
            inner=inner[name],
            kept=_columns(robot, kept),
            columns=_columns(pieces, [*kept, *([afloat[tip]] if inner[name] else [])]),
            rows=rows(name),
            inner_rows=rows(inner[name]),
        )

    return Decomposition(
        member=member,
        chains=tuple(chain(*path) for path in paths),
        pieces=pieces,
        weightless=type(robot)(replace(d, gravity=(0.0, 0.0, 0.0), bodies=massless, joints=unsprung)),
        kept=tuple(name for name in robot.joints if name not in tips),
        afloat=afloat,
    )


def _without_terms(spec: JointSpec) -> JointSpec:
    """Return the joint without springs, friction and armature."""
    zeros = dict.fromkeys(PASSIVE, 0.0)
    return replace(spec, joint=replace(spec.joint, **zeros))


def _columns(mechanism: LoopFunctions, names: list[str]) -> NDArray[np.intp]:
    return np.array([i for name in names for i in range(mechanism.nv)[mechanism.joint(name).v_slice]], dtype=np.intp)


# ---- quantities of a chain -------------------------------------------------------------------------------------------
# Accelerations of each released chain, and the force of its tip in response to the member's motion: 6.1-6.25.


UNFELT = 1e-7  # directions whose mobility is below this fraction of the tip's largest mobility count as immovable
NOTHING = 1e-14  # relative magnitude below which a positive number may be rounding of zero


@dataclass(eq=False)
class ChainAnswer:
    """Quantities of one chain: those of :class:`ReferenceMemberSolution`, with its symbols, and intermediate results.

    Attributes
    ----------
    N, start : (..., m, n), (..., m) accelerations a = start + N qdd of the m velocities in `columns` that satisfy the inner loop joint
    jacobian : (..., 6, m) Jacobian of the tip frame for these velocities; J = jacobian N
    firm : (..., n_c, n_c) orthogonal projector on the immovable directions of the tip: 1 - M M^-1
    psi, rate : (..., 6, k), (..., k) for an end joint with coordinates: qdd = psi^T (relative acceleration) + rate
    end_force : (..., 6) prescribed force along an end joint with coordinates, phi_k h_k of 6.18 [N m, N]
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


def answer(robot: LoopFunctions, cut: Decomposition, s: States, c: Chain) -> ChainAnswer:
    """Return the quantities of one chain."""
    # 6.1-6.4: the released chain, in accelerations y that satisfy its inner loop joint: a = start + N y
    D = c.columns
    inertia, jacobian = s.M[..., D[:, None], D], cut.pieces.jacobian(s.x, c.frame)[..., D]
    N, start = _solutions(s.rows[..., c.inner_rows, :][..., D], s.gamma[..., c.inner_rows])
    H, J = transposed(N) @ inertia @ N, jacobian @ N
    half, moves_nothing = inverse_root(H)
    reason = f"the chain that ends with joint '{c.name}' has motions without inertia when released; {INSTEAD}"
    s.no_answer(moves_nothing, reason)
    bias_forces = applied(transposed(N), applied(inertia, start) + s.bias[..., D])
    H_inverse = transposed(half) @ half
    open_accelerations = applied(H_inverse, applied(transposed(N), s.drive[..., D]) - bias_forces)  # 5.9, 6.2
    a = np.zeros(s.u.shape)
    a[..., D] = start + applied(N, open_accelerations)
    Omega = H_inverse @ transposed(J)
    Lambda_inverse = J @ Omega

    # 2.10-2.16: the rows of the end joint are C^T times the member's velocity relative to the tip, therefore they contain C^T X
    to_tip = _inverse(cut.pieces.pose(s.x, c.frame))
    X = motion_matrix(to_tip @ s.place)  # 6.40
    C = c.sign * transposed(s.rows[..., c.rows, s.r] @ _inverse(X))
    n_c, C_inverse = C.shape[-1], np.asarray(np.linalg.pinv(C), dtype=np.float64)
    phi_c = _core.orthonormal_basis(C @ C_inverse, n_c)
    phi = _core.orthonormal_basis(np.eye(6) - phi_c @ transposed(phi_c), 6 - n_c)
    g = c.sign * applied(transposed(phi_c), applied(transposed(C_inverse), s.gamma[..., c.rows]))

    # 6.18: along the axes of an end joint of the tree, the force is its effort, minus its passive forces and the inertia force of its armature
    psi, force, rate = _motor(robot, cut, s, c, to_tip)
    soft, give = c.armature > 0.0, 1.0 / c.armature[c.armature > 0.0]
    end_force = applied(psi[..., ~soft], force[..., ~soft])
    phi_c = np.concatenate([phi_c, psi[..., soft]], axis=-1)
    g = np.concatenate([g, give * force[..., soft] - rate[..., soft]], axis=-1)

    # 6.57: M^-1 = W W^T. The rank is determined from W, which is better conditioned
    moved = J @ transposed(half)
    slack = np.diag(np.concatenate([np.zeros(n_c), np.sqrt(give)]))[:, n_c:]
    W = np.concatenate([transposed(phi_c) @ moved, np.broadcast_to(slack, (*s.lead, *slack.shape))], axis=-1)
    U, sizes, _ = np.linalg.svd(W, full_matrices=False)
    felt = sizes > UNFELT * np.linalg.norm(moved, axis=(-2, -1))[..., None]
    M = (U * inverse_where(sizes**2, felt)[..., None, :]) @ transposed(U)

    # 6.20: open_accelerations are accelerations of coordinates, so that gamma must contain the velocity terms of tip and member
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
    robot: LoopFunctions, cut: Decomposition, s: States, c: Chain, to_tip: NDArray[Any]
) -> tuple[Array, Array, Array]:
    """Return psi of an end joint with coordinates, in the tip frame, the force along it on the member, and its rate from velocities."""
    if c.closes:
        return np.zeros((*s.lead, 6, 0)), np.zeros((*s.lead, 0)), np.zeros((*s.lead, 0))
    joint = robot.joint(c.name)
    motion, _, psi, _ = joint_bases(robot, s.q, c.name)
    sizes = np.linalg.svd(motion, compute_uv=False)
    parallel = sizes.min(axis=-1, initial=np.inf) <= NOTHING * sizes.max(axis=-1, initial=0.0)
    s.no_answer(parallel, f"axes of joint '{c.name}', the end joint of a chain, have become parallel; {INSTEAD}")
    if (joint.parent if joint.reversed else joint.child) == cut.member:
        psi = transposed(_inverse(motion_matrix(to_tip @ s.place @ c.at_member.matrix))) @ psi
    else:  # the member is the joint's predecessor in the tree: psi belongs to the force on the tip
        psi = -psi

    def between(m: LoopFunctions, q: Array, v: Array) -> Array:
        zero = np.zeros(v.shape)
        member, tip = (m.acceleration(q, v, zero, body, expressed_in="world") for body in (cut.member, c.tip))
        return member - tip

    # difference between the relative accelerations in the pieces and in the mechanism, if all coordinates have zero acceleration; only the
    # mechanism has coordinates of this joint
    rate = between(cut.pieces, s.x, s.u) - between(robot, s.q, s.v)
    return psi, (s.tau - s.passive)[..., joint.v_slice], applied(transposed(psi) @ motion_matrix(to_tip), rate)


def _solutions(rows: Array, gamma: Array) -> tuple[Array, Array]:
    """Return N and a_0 of the solutions a_0 + N y of rows a = gamma, for independent rows."""
    independent, n = rows.shape[-2:]
    if independent == 0:
        return np.broadcast_to(np.eye(n), (*rows.shape[:-2], n, n)), np.zeros((*rows.shape[:-2], n))
    Q, L = np.linalg.qr(transposed(rows), mode="complete")
    return Q[..., independent:], applied(Q[..., :independent] @ transposed(_inverse(L[..., :independent, :])), gamma)


def inverse_root(A: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return L^-1 of A = L L^T, and a mask (...) that is True if A is not positive definite; such an A is replaced by the identity."""
    n = A.shape[-1]
    size = np.sqrt(np.maximum(np.diagonal(A, axis1=-2, axis2=-1), 0.0))
    size = np.where(size > 0.0, size, 1.0)
    alike = A / (size[..., :, None] * size[..., None, :])  # a unit diagonal makes metres and radians comparable
    singular = np.linalg.eigvalsh(alike).min(axis=-1, initial=np.inf) <= NOTHING
    alike = np.where(singular[..., None, None], np.eye(n), alike)
    return _inverse(np.linalg.cholesky(alike)) / size[..., None, :], singular


def _inverse(A: NDArray[Any]) -> Array:
    return np.asarray(np.linalg.inv(A), dtype=np.float64)


def inverse_where(x: Array, where: NDArray[np.bool_]) -> Array:
    """Return 1/x for entries at which the mask `where` is True, else 0."""
    return np.where(where, 1.0, 0.0) / np.where(where, x, 1.0)


# ---- checked states of a mechanism and of its pieces ------------------------------------------------------------------


LARGEST = 1e50  # products of several larger values could overflow


@dataclass(eq=False)
class States:
    """States of a mechanism and of its pieces, with their forces; an invalid state is replaced by the neutral configuration at rest.

    Attributes
    ----------
    status : (...) int8, as in :class:`ReferenceMemberSolution`
    explain : True if a state without a result raises an error: for a single state, if return_status is False
    q, v, tau, time : states of the mechanism, and their times
    x, u, drive : (..., nq), (..., nv), (..., nv) configuration, velocity and joint forces of the pieces
    M, bias : (..., nv, nv), (..., nv) mass matrix and bias forces of the pieces, M a + bias = force
    rows, gamma : (..., nc, nv), (..., nc) constraints between the pieces, rows a = gamma
    passive : (..., nv) forces of springs and friction along the mechanism's joints
    place, r : pose (..., 4, 4) of the member, and the slice of its velocity in the velocities of the pieces
    turning : (..., 6) classical acceleration of the member, minus the time derivative of the components of its velocity in its own frame
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
        """Leading axes of the states."""
        return self.status.shape

    def no_answer(self, where: NDArray[np.bool_], why: str) -> None:
        """Set the status of the given states to 2; or raise StateError with the reason if `explain` is True."""
        if self.explain and where.any():
            raise StateError(f"reference_member has no result: {why}")
        self.status[where & (self.status == Status.FINE)] = Status.NO_ANSWER


def states(
    robot: LoopFunctions, cut: Decomposition, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
    wrenches: Mapping[str, ArrayLike] | None, time: ArrayLike | None, return_status: bool,
) -> States:  # fmt: skip
    """Return the checked states as arrays with common leading axes; raise StateError or ShapeError if they are invalid."""
    return_status = checked_truth("return_status", return_status)
    force, when = real_rows("tau", tau, robot.nv, finite=False), real_array("time", 0.0 if time is None else time)
    bias_status = robot.bias_forces(q, v, wrenches=wrenches, return_status=True)[1]
    lead = common_axes({"q, v and wrenches": bias_status.shape, "tau": force.shape[:-1], "time": when.shape})
    explain = lead == () and not return_status
    if explain and bias_status:
        robot.bias_forces(q, v, wrenches=wrenches)  # raises the error
    unsound = ~np.isfinite(force).all(axis=-1) | ~np.isfinite(when)
    if explain and unsound:
        raise StateError("tau and time must be finite")
    status = np.where(unsound, Status.INVALID_STATE, bias_status).astype(np.int8)

    s = _states(robot, cut, q, v, force, wrenches, None if time is None else when, status, explain)
    sizes = [np.abs(x).max(axis=-1, initial=0.0) for x in (s.tau, s.bias, s.gamma)]
    sizes += [np.abs(A).max(axis=(-2, -1), initial=0.0) for A in (s.M, s.rows, s.place)]
    small = np.all([size <= LARGEST for size in sizes], axis=0)
    if small.all():
        return s
    s.no_answer(~small, "the numbers overflow")
    return _states(robot, cut, q, v, force, wrenches, s.time, status, explain)


def _states(
    robot: LoopFunctions, cut: Decomposition, q: ArrayLike, v: ArrayLike, tau: Array,
    wrenches: Mapping[str, ArrayLike] | None, time: Array | None, status: NDArray[np.int8], explain: bool,
) -> States:  # fmt: skip
    pieces, lead, fine = cut.pieces, status.shape, status == Status.FINE
    q = np.where(fine[..., None], q, robot.neutral())
    v, tau = np.where(fine[..., None], v, 0.0), np.where(fine[..., None], tau, 0.0)
    time = None if time is None else np.where(fine, time, 0.0)
    x, u, drive = (np.zeros((*lead, n)) for n in (pieces.nq, pieces.nv, pieces.nv))
    for name in cut.kept:
        piece, joint = pieces.joint(name), robot.joint(name)
        x[..., piece.q_slice] = q[..., joint.q_slice]
        u[..., piece.v_slice] = v[..., joint.v_slice]
        drive[..., piece.v_slice] = tau[..., joint.v_slice]
    for body, name in cut.afloat.items():
        piece, pose = pieces.joint(name), robot.pose(q, body)
        x[..., piece.q_slice] = np.concatenate([quaternion_from_rotation(pose[..., :3, :3]), pose[..., :3, 3]], axis=-1)
        u[..., piece.v_slice] = robot.velocity(q, v, body)
    r = pieces.joint(cut.afloat[cut.member]).v_slice
    turning = np.zeros((*lead, 6))
    turning[..., 3:] = np.cross(u[..., r][..., :3], u[..., r][..., 3:])
    M, bias = pieces.mass_matrix(x), pieces.bias_forces(x, u, wrenches=wrenches, return_status=True)[0]
    rows, gamma = pieces.constraint_jacobian(x, time=time), pieces.constraint_bias(x, u, time=time)
    passive, place = cut.weightless.bias_forces(q, v), pieces.pose(x, cut.member)
    return States(status, explain, q, v, tau, time, x, u, drive, M, bias, rows, gamma, passive, place, r, turning)
