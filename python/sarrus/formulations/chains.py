"""A mechanism taken apart at one body, the reference member, into the chains that carry it (van der Merwe 1995, 6.1 and 6.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, NDArray, checked_truth, common_axes, real_array, real_rows
from .._core import Status
from .._core.spatial import motion_matrix, quaternion_from_rotation
from ..analysis.linear_algebra import applied, transposed
from ..description.joints import Free
from ..description.specs import Description, FrameSpec, JointSpec
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.reactions import joint_bases, orthonormal_basis
from ..errors import ModelError, StateError
from ..spatial import Inertia, Transform

INSTEAD = "choose another body with member=, or let forward_dynamics() solve it, which takes any mechanism"


@dataclass(frozen=True, eq=False)
class Chain:
    """A serial chain from the ground to the joint by which it ends at the member. Its tip is the body on this joint's far side.

    Attributes
    ----------
    name : that of the end joint
    joints : the others, from the ground to the tip
    tip, frame : the last body (the ground, where there are no others), and a frame of the pieces: the end joint's on it
    at_member : the end joint's frame on the member
    sign : 1 where the end joint's motion is the member's against the tip, -1 where it is the other way round
    closes : whether the end joint closes a loop in the mechanism; if not, it has coordinates there
    armature : of the end joint
    inner : the joint on the way that closes a loop in the mechanism, if there is one. Then the tree carries the tip from the member
    kept : its velocities in the mechanism
    columns : the same among the velocities of the pieces, and those of a tip that is afloat there
    rows, inner_rows : of the end joint and of the inner one among the rows of the pieces
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
class TakenApart:
    """A mechanism with the joints of one body, and those that close loops on the chains' way, cut.

    Attributes
    ----------
    member : that body
    chains : what carries it
    pieces : the mechanism in which the cut joints are constraints, so that the chains' coordinates are independent of one another
    weightless : the mechanism without masses and gravity: of its bias forces what acts along the joints is left
    kept : joints that have coordinates in the mechanism and in the pieces
    afloat : bodies that nothing carries in the pieces, and the free joints that they have there
    """

    member: str
    chains: tuple[Chain, ...]
    pieces: LoopFunctions
    weightless: LoopFunctions
    kept: tuple[str, ...]
    afloat: dict[str, str]


@lru_cache(maxsize=64)
def taken_apart(robot: LoopFunctions, member: str | None) -> TakenApart:
    """The mechanism apart at that body; by default at the first that will do of those with many joints and far from the ground."""
    d = robot.description
    for constraint in d.constraints:
        raise ModelError(
            f"the reference-member algorithm takes loops that joints close, and constraint '{constraint.name}' is no joint: "
            "forward_dynamics() takes all constraints"
        )
    errors = []
    for body in _candidates(d) if member is None else [member]:
        try:
            return _apart(robot, body, _ways(d, body))
        except ModelError as error:
            errors.append(error)
    raise errors[0]


def _joints_at(d: Description) -> dict[str, list[JointSpec]]:
    bodies = ("ground", *(body.name for body in d.bodies))
    return {body: [j for j in d.joints if body in (j.parent, j.child)] for body in bodies}


def _across(joint: JointSpec, body: str) -> str:
    return joint.child if joint.parent == body else joint.parent


def _candidates(d: Description) -> list[str]:
    """Bodies with many joints first; of equal ones, those far from the ground."""
    at, distance, queue = _joints_at(d), {"ground": 0}, ["ground"]
    for body in queue:
        for other in (_across(j, body) for j in at[body]):
            if other not in distance:
                distance[other] = distance[body] + 1
                queue.append(other)
    return sorted((b.name for b in d.bodies), key=lambda body: (-len(at[body]), -distance[body]))


def _ways(d: Description, member: str) -> list[list[JointSpec]]:
    """The joints from the member to the ground, chain by chain."""
    at, ways, met = _joints_at(d), [], {member, "ground"}

    def refuse(why: str) -> None:
        raise ModelError(
            "the reference-member algorithm takes one body and serial chains from it to the ground; "
            f"with '{member}' as that body, {why}: {INSTEAD}"
        )

    for end in at[member]:
        way, body = [end], _across(end, member)
        while body != "ground":
            onward = [j for j in at[body] if j is not way[-1]]
            if body == member:
                refuse(f"the chain that starts with joint '{end.name}' comes back to it")
            if len(onward) != 1:
                does = "branches at" if onward else "does not reach the ground but ends with"
                refuse(f"the chain that starts with joint '{end.name}' {does} body '{body}'")
            met.add(body)
            way += onward
            body = _across(onward[0], body)
        ways.append(way)
    for stray in [body for body in at if body not in met]:
        refuse(f"body '{stray}' is on none of them")
    return ways


def _apart(robot: LoopFunctions, member: str, ways: list[list[JointSpec]]) -> TakenApart:
    d, closing = robot.description, set(robot.loop_joints)
    tips = {end.name: _across(end, member) for end, *_ in ways}
    # the bodies on a way have two joints each and hang together with the tree, so that at most one joint of it closes a loop
    inner = {end.name: next((j.name for j in way if j.name in closing), None) for end, *way in ways}
    names = _new_names({*robot.joints, *closing, *robot.frames})

    # the tree enters a chain that closes on its way from both sides: its outer part is carried by the member
    carried = (member, *(tip for end, tip in tips.items() if inner[end]))
    afloat = {body: next(names) for body in carried}
    frames = {end: next(names) for end in tips}
    cut = closing | set(tips)
    for j in d.joints:
        if j.name in closing and j.joint.armature.any():
            raise ModelError(
                f"the reference-member algorithm takes no armature of a joint that closes a loop, such as '{j.name}': forward_dynamics() does"
            )
    # of an end joint that has coordinates, what acts along it is known apart from the pieces
    specs = [_without_terms(j) if j.name in tips and j.name not in closing else j for j in d.joints]
    joints = [replace(j, actuated=False, tree=j.name not in cut, loop=j.name in cut) for j in specs]
    for body, name in afloat.items():
        joints.append(JointSpec(name, Free(), "ground", body, Transform(), Transform(), False, tree=True))
    places = {end.name: end.at_child if end.parent == member else end.at_parent for end, *_ in ways}
    at_tip = [FrameSpec(frames[name], tips[name], place) for name, place in places.items()]
    pieces = type(robot)(replace(d, joints=tuple(joints), frames=(*d.frames, *at_tip), home=()))
    massless = tuple(replace(body, inertia=Inertia.zero()) for body in d.bodies)

    def rows(name: str | None) -> slice:
        return pieces.constraint(name).rows if name in pieces.constraints else slice(0, 0)

    def chain(end: JointSpec, *way: JointSpec) -> Chain:
        name, tip = end.name, tips[end.name]
        kept = [j.name for j in reversed(way) if j.name not in closing]
        return Chain(
            name=name,
            joints=tuple(j.name for j in reversed(way)),
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

    return TakenApart(
        member=member,
        chains=tuple(chain(*way) for way in ways),
        pieces=pieces,
        weightless=type(robot)(
            replace(
                d,
                gravity=(0.0, 0.0, 0.0),
                bodies=massless,
                joints=tuple(_without_terms(j) if j.name in closing else j for j in d.joints),
            )
        ),
        kept=tuple(name for name in robot.joints if name not in tips),
        afloat=afloat,
    )


def _without_terms(spec: JointSpec) -> JointSpec:
    """The joint with nothing that acts along it."""
    nothing = dict.fromkeys(("damping", "friction", "armature", "stiffness", "rest"), 0.0)
    return replace(spec, joint=replace(spec.joint, **nothing))


def _columns(mechanism: LoopFunctions, names: list[str]) -> NDArray[np.intp]:
    return np.array([i for name in names for i in range(mechanism.nv)[mechanism.joint(name).v_slice]], dtype=np.intp)


def _new_names(taken: set[str]) -> Iterator[str]:
    number = 0
    while True:
        if (name := f"piece {number}") not in taken:
            yield name
        number += 1


# ---- what each chain answers -----------------------------------------------------------------------------------------
# What each chain does when it is let go, and the force with which its tip answers to the member's motion: 6.1-6.25.


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
