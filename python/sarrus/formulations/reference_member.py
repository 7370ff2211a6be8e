"""Reference-member algorithm of Lilly and Orin: each chain between the ground and one body, the member, is reduced to a force at its tip.

The module `chains` decomposes the mechanism and its states, and computes the quantities of each chain. This module couples the chains at
the member.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, NDArray, into
from .._core import Status
from .._showing import Brief
from ..analysis.linear_algebra import applied, transposed
from ..dynamics.loop_operations import LoopFunctions, LoopReactions, raise_contradiction
from ..dynamics.options import TimeOptions, Unpack, Wrenches
from ..dynamics.reactions import least_reactions
from ..errors import check_name
from ..mechanism import checked_mechanism
from .chains import (
    INSTEAD,
    ChainAnswer,
    Decomposition,
    States,
    answer,
    decomposition,
    inverse_root,
    inverse_where,
    states,
)

ByChain = dict[str, Array]

ALIKE = 1e-7  # sine of the angle below which two chains block the same direction; larger than the drift of loops
PASSES = 3
CONTRADICTION = 1e-6  # residual of the accelerations in blocked directions, relative to their terms
REST = 1e-12  # accelerations below this value are rounding [rad/s2, m/s2]


@dataclass(frozen=True, eq=False, repr=False)
class ReferenceMemberSolution(Brief):
    """Quantities of the reference-member algorithm (van der Merwe 1995, ch. 6), in the order of their computation.

    Quantities of chains are dicts by the name of the chain, which is the name of its end joint at the member. The tip frame is this joint's frame on
    the chain's last body (on the ground, for a chain of one joint). n is the number of degrees of freedom of the chain, and n_c the number of blocked
    directions of its end joint. Quantities of the member are in its frame. All are in SI units and radians; motions are [angular; linear], forces
    [moment; force]. Equation numbers are van der Merwe's. If `status` is not 0, all other arrays are NaN.

    Attributes
    ----------
    member : name of the reference member
    chains : joints of each chain from the ground to the tip, without the end joint
    H, bias_forces : (..., n, n), (..., n) mass matrix and bias forces, tau = H qdd + bias_forces + J^T f (6.1). The n coordinates are those of the
        chain's joints in their order. If one of them is a loop joint, they are any n independent coordinates that satisfy its constraint
    J : (..., 6, n) Jacobian of the tip frame (6.1)
    open_accelerations, open_tip_acceleration : (..., n), (..., 6) accelerations of the released chain and of its tip (6.2, 6.3); classical
    Omega, Lambda_inverse : (..., n, 6), (..., 6, 6) H^-1 J^T and J H^-1 J^T (5.12, 5.20)
    X : (..., 6, 6) maps the member's motion to the tip frame (6.40)
    phi, phi_c : (..., 6, 6 - n_c), (..., 6, n_c) free and blocked directions of the end joint in the tip frame, orthonormal (2.10-2.16,
        6.9). phi_c also contains free directions with armature, which are treated as compliant: 1/armature is added to M_inverse
    M_inverse, M : (..., n_c, n_c) phi_c^T Lambda^-1 phi_c (6.57) and its pseudo-inverse (instead of 6.59 and 6.60)
    S : (..., n_c) right-hand side of M^-1 h_c = S - phi_c^T X a_r (6.21; 6.20 with the sign of the open tip acceleration corrected)
    P, R : (..., 6), (..., 6, 6): P - R a_r is the force of the tip on the member in compliant directions (6.24, 6.25)
    effective_inertia : (..., 6, 6) I_r + sum X^T R (6.62) [kg m2, kg m, kg]
    motion_space : (..., 6, 6) orthogonal projector on the motions of the member that all chains allow (instead of 6.63) [rad, m per rad, m]
    member_acceleration : (..., 6) a_r, classical (6.31, in the motion space) [rad/s2, m/s2]
    tip_forces : (..., 6) forces on the member: P - R a_r (6.33), and the forces of least norm in immovable directions of the tip
    accelerations : (..., nv) accelerations of the mechanism (6.34, with the sign of 6.2) [rad/s2, m/s2]
    multipliers : (..., nc) multipliers in M a + h = tau + J^T multipliers [N m, N]
    wrenches : loop joint to its wrench (..., 6) on its child
    status : (...) int8: 0 fine, 1 the state is invalid, 2 no solution exists, 3 the chains contradict one another
    """

    member: str
    chains: dict[str, tuple[str, ...]]
    H: ByChain
    bias_forces: ByChain
    J: ByChain
    open_accelerations: ByChain
    open_tip_acceleration: ByChain
    Omega: ByChain
    Lambda_inverse: ByChain
    X: ByChain
    phi: ByChain
    phi_c: ByChain
    M_inverse: ByChain
    M: ByChain
    S: ByChain
    P: ByChain
    R: ByChain
    effective_inertia: Array
    motion_space: Array
    member_acceleration: Array
    tip_forces: ByChain
    accelerations: Array
    multipliers: Array
    wrenches: ByChain
    status: NDArray[np.int8]


def reference_member(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, member: str | None = None,
    wrenches: Mapping[str, ArrayLike] | None = None, time: ArrayLike | None = None, return_status: bool = False,
) -> ReferenceMemberSolution:  # fmt: skip
    """Compute forward dynamics by the reference-member algorithm, with its intermediate results.

    Without the member, the mechanism consists of serial chains from the ground. The force of each tip on the member is P - R a_r, with the member's
    acceleration a_r. The sum of these forces and the member's inertia determine a_r, from which the accelerations of the chains follow.
    ``forward_dynamics(..., solver="reference-member")`` returns the accelerations only.

    Parameters
    ----------
    q, v, tau : (..., nq), (..., nv), (..., nv) configuration, velocity and generalised force [rad, m; rad/s, m/s; N m, N]
    member : name of the reference member, which any number of chains or single joints connect to the ground. Mechanisms of Type 0 (fingers with an
        object: motors near the ground) and Type 1 (legs with a trunk: motors near the member) are treated equally. Default: the suitable body with
        the most joints; among several, the one farthest from the ground
    wrenches, time : as in :meth:`~sarrus.Mechanism.forward_dynamics`
    return_status : True returns NaN and the status for a single state without a result, as in a batch; False raises the error

    Raises
    ------
    ModelError
        A chain branches, returns to the member or does not reach the ground. Or there are constraints that are not joints.
    StateError
        - The state is invalid.
        - A released chain has no inertia, or the member has none in a direction that the chains allow.
        - The axes of an end joint with coordinates are parallel.
        - No acceleration satisfies the constraints of all chains.

    Notes
    -----
    If the tip of a chain cannot move in all blocked directions of its end joint, M^-1 is singular, and the member cannot move in all directions.
    The motion space of the member is the intersection of the spaces that the chains allow. Let b be a basis of the null space of all blocked
    directions, and a_p the acceleration that blocked directions prescribe (centripetal, or of prescribed motions). Then a_r = a_p + b eta with
    b^T I_eff b eta = b^T (f - I_eff a_p). Equations 6.63-6.65 use the column space of sum X^T R instead, which is correct only for symmetric loads.

    References
    ----------
    Lilly, Efficient Dynamic Simulation of Robotic Mechanisms, 1993; van der Merwe 1995, 6.1-6.62, signs of 6.20 and 6.34 corrected.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.two_links()
    >>> solution = sarrus.formulations.reference_member(robot, robot.assemble(), np.zeros(robot.nv), np.zeros(robot.nv))
    >>> solution.chains
    {'tip1': ('joint1',), 'tip2': ('joint2',)}
    >>> solution.P["tip1"].round(6) + 0.0
    array([ 0.      ,  0.      ,  0.      ,  0.      ,  0.      , -3.535534])
    >>> solution.member_acceleration.round(6) + 0.0
    array([ 0.      ,  0.      ,  0.      , -5.242718,  0.      , -5.242718])
    """
    checked_mechanism(robot, "robot")
    if member is not None:
        check_name("body", member, robot.bodies)
    cut = decomposition(robot, member)
    s = states(robot, cut, q, v, tau, wrenches, time, return_status)
    chains = [answer(robot, cut, s, c) for c in cut.chains]
    met = _meet(cut, s, chains)
    if s.explain and s.status == Status.INCONSISTENT_CONSTRAINTS:
        raise_contradiction(robot, "reference_member", {"q": s.q, "v": s.v, "time": s.time})

    accelerations = np.zeros((*s.lead, robot.nv))
    for c, k, f in zip(cut.chains, chains, met.tip_forces, strict=True):
        a = k.start + applied(k.N, k.open_accelerations - applied(k.Omega, f))  # 6.34
        accelerations[..., c.kept] = a[..., : len(c.kept)]
        if not c.closes:
            relative = applied(k.X, met.a_r - s.turning) - applied(k.jacobian, a)
            accelerations[..., robot.joint(c.name).v_slice] = applied(transposed(k.psi), relative) + k.rate
    required = robot.inverse_dynamics(s.q, s.v, accelerations, wrenches=wrenches, return_status=True)[0]
    J = robot.constraint_jacobian(s.q, time=s.time)
    inverse = np.asarray(np.linalg.pinv(transposed(J), rcond=ALIKE), dtype=np.float64)
    multipliers = applied(inverse, required - s.tau)
    along = robot._efforts_of_closing_motors(s.q, s.tau, s.time)
    multipliers = least_reactions(robot, s.q, s.v, accelerations, multipliers, along, wrenches=wrenches, time=s.time)
    carried = robot._loop_wrenches(s.q, multipliers, time=s.time)

    def sound(x: Array) -> Array:
        return np.where(s.status.reshape(s.lead + (1,) * (x.ndim - len(s.lead))), np.nan, x)

    # omit a chain that consists of one joint to the ground without blocked directions, because it exerts no force
    shown = [n for n, c in enumerate(cut.chains) if c.joints or chains[n].S.size]
    by_chain = {f.name for f in fields(ChainAnswer)} & {f.name for f in fields(ReferenceMemberSolution)}
    names = [c.name for c in cut.chains]
    return ReferenceMemberSolution(
        member=cut.member,
        chains={names[n]: cut.chains[n].joints for n in shown},
        effective_inertia=sound(met.effective_inertia),
        motion_space=sound(met.motion_space),
        member_acceleration=sound(met.a_r),
        tip_forces={names[n]: sound(met.tip_forces[n]) for n in shown},
        accelerations=sound(accelerations),
        multipliers=sound(multipliers),
        wrenches={name: sound(carried[..., k, :]) for k, name in enumerate(robot.constraints)},
        status=s.status,
        **{field: {names[n]: sound(getattr(chains[n], field)) for n in shown} for field in by_chain},
    )


def forward_by_reference_member(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None, return_reactions: bool = False,
    **options: Unpack[TimeOptions],
) -> Any:  # fmt: skip
    """Return the results of :meth:`~sarrus.Mechanism.forward_dynamics` with solver="reference-member"."""
    time, return_status = options.get("time"), options.get("return_status", False)
    s = reference_member(robot, q, v, tau, wrenches=wrenches, time=time, return_status=return_status)
    a = into(options.get("out"), s.accelerations)
    reactions: list[Any] = []
    if return_reactions:
        residual = _residual(robot, q, v, tau, s, wrenches=wrenches, time=time)
        reactions = [LoopReactions(s.multipliers, s.wrenches, residual, np.full(np.shape(residual), np.nan))]
    answers = (a, *reactions, *([s.status] if return_status else []))
    return answers if len(answers) > 1 else a


def _residual(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike, s: ReferenceMemberSolution, *,
    wrenches: Mapping[str, ArrayLike] | None, time: ArrayLike | None,
) -> Array:  # fmt: skip
    """Return the relative residual of M a + h = tau + J^T multipliers and J a = gamma, weighted by mobilities."""
    h = robot.bias_forces(q, v, wrenches=wrenches, return_status=True)[0]
    M = robot.mass_matrix(q, return_status=True)[0]
    J = robot.constraint_jacobian(q, time=time, return_status=True)[0]
    gamma = robot.constraint_bias(q, v, time=time, return_status=True)[0]
    with np.errstate(all="ignore"):  # NaN without a result
        mobility = np.diagonal(M, axis1=-2, axis2=-1)
        mobility = inverse_where(mobility, mobility > 0.0)
        moved = applied(np.square(J), mobility)
        share = inverse_where(moved, moved > 0.0)
        forces = applied(M, s.accelerations) + h - tau - applied(transposed(J), s.multipliers)
        left = applied(J, s.accelerations) - gamma
        size = ((np.square(tau) + np.square(h)) * mobility).sum(axis=-1) + (np.square(gamma) * share).sum(axis=-1)
        missing = (np.square(forces) * mobility).sum(axis=-1) + (np.square(left) * share).sum(axis=-1)
        return np.asarray(np.sqrt(missing / np.where(size > 0.0, size, 1.0)))


@dataclass(frozen=True, eq=False)
class _Met:
    """Results for the member with all its chains."""

    effective_inertia: Array
    motion_space: Array
    a_r: Array
    tip_forces: list[Array]


def _meet(cut: Decomposition, s: States, chains: list[ChainAnswer]) -> _Met:
    """Return the member's acceleration, and the forces of the tips on it: 6.26-6.33, and 6.61-6.65 corrected."""
    # 6.21, with the rows of all chains: M^-1 h_c = S - B a_r
    S = np.concatenate([k.S for k in chains], axis=-1)
    B = np.concatenate([transposed(k.phi_c) @ k.X for k in chains], axis=-2)
    M, M_inverse = _blocks([k.M for k in chains]), _blocks([k.M_inverse for k in chains])
    firm = _blocks([k.firm for k in chains])
    I_r = s.M[..., s.r, s.r]
    effective = I_r + transposed(B) @ M @ B

    # motion_space projects onto the directions that no chain blocks. A large inertia in all other directions makes the matrix regular
    size = np.linalg.norm(B, axis=(-2, -1))
    U, sines, Vt = np.linalg.svd(firm @ B, full_matrices=False)
    blocked = transposed(Vt) @ (inverse_where(sines, sines > ALIKE * size[..., None])[..., None] * transposed(U))
    motion_space = np.eye(6) - blocked @ firm @ B
    heavy = np.trace(effective, axis1=-2, axis2=-1)[..., None, None] * (np.eye(6) - motion_space)
    half, weightless = inverse_root(motion_space @ effective @ motion_space + heavy)
    s.no_answer(weightless, f"the chains let body '{cut.member}' move in a direction without inertia; {INSTEAD}")
    response = motion_space @ transposed(half) @ half @ motion_space

    # 6.30 and 6.22. The first pass is the algorithm of the thesis. For nearly singular chains, which are very stiff, this pass loses digits;
    # therefore further passes reduce the residual
    a_r, h_c = np.zeros((*s.lead, 6)), np.zeros(S.shape)
    end_forces = sum((applied(transposed(k.X), k.end_force) for k in chains), np.zeros(6))
    for _ in range(PASSES):
        left = S - applied(B, a_r) - applied(M_inverse, h_c)
        # with classical a_r the bias forces on the member are b_r - g_r
        force = end_forces - s.bias[..., s.r] - applied(I_r, a_r - s.turning)
        force = force + applied(transposed(B), h_c + applied(M, left))
        a_p = applied(blocked, applied(firm, left))
        more = a_p + applied(response, force - applied(effective, a_p))
        # distribute the remaining force over the immovable directions of the tips, by the solution of least norm
        lacking = applied(effective, more) - force
        h_c = h_c + applied(M, left - applied(B, more)) + applied(transposed(blocked), lacking)
        a_r = a_r + more

    left = np.linalg.norm(applied(firm, S - applied(B, a_r)), axis=-1)
    terms = np.linalg.norm(S, axis=-1) + size * np.linalg.norm(a_r, axis=-1)
    s.status[(left > CONTRADICTION * terms + REST) & (s.status == Status.FINE)] = Status.INCONSISTENT_CONSTRAINTS

    ends = np.cumsum([k.S.shape[-1] for k in chains])[:-1]
    shares = np.split(h_c, ends, axis=-1)
    tip_forces = [k.end_force + applied(k.phi_c, h) for k, h in zip(chains, shares, strict=True)]  # 6.23
    return _Met(effective, motion_space, a_r, tip_forces)


def _blocks(parts: list[Array]) -> Array:
    """Return the block-diagonal matrix of square matrices."""
    matrix, first = np.zeros((*parts[0].shape[:-2], *[sum(A.shape[-1] for A in parts)] * 2)), 0
    for A in parts:
        n = A.shape[-1]
        matrix[..., first : first + n, first : first + n] = A
        first += n
    return matrix
