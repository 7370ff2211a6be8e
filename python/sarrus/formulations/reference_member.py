"""Formulations of van der Merwe's thesis: the reference-member algorithm, and quantities of the spanning tree with all loops open.

The reference-member algorithm is that of Lilly and Orin: each chain between the ground and one body, the member, is reduced to a force at its tip. The
module `chains` decomposes the mechanism and its states, and computes the quantities of each chain. This module couples the chains at the member.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, checked_truth, common_axes, into, real_array, real_rows
from .._core import Status
from .._showing import Brief
from ..analysis.actuation import across_loops, actuation_matrix, actuator_efforts, motors_of
from ..analysis.linear_algebra import applied, transposed
from ..dynamics.loop_operations import LoopFunctions, LoopReactions, raise_contradiction
from ..dynamics.operations import _operation
from ..dynamics.options import (
    BatchOptions,
    FrameOptions,
    ReactionOptions,
    StateOptions,
    ThreadedLoads,
    TimeOptions,
    Unpack,
    Wrenches,
    of_states,
    shows_options,
)
from ..dynamics.reactions import joint_bases, least_reactions
from ..errors import ModelError, NotRealizableError, ShapeError, StateError, check_name
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


@_operation
def omega(robot: LoopFunctions, q: ArrayLike, frame: str, **options: Unpack[FrameOptions]) -> Array:
    """Compute Omega = M^-1 J^T (..., nv, 6) of the tree, with open loops: joint accelerations per wrench on a frame (van der Merwe 5.51).

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    frame : name of a frame, see `frames` of the mechanism
    expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.formulations.omega(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], "tip")[0].tolist()
    [0.0, 2.0, 0.0, -1.0, 0.0, 0.0]
    """


@_operation
def christoffel_symbols(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Compute Gamma(q) (..., nv, nv, nv) of the tree, C(q, v)_ij = sum over k of Gamma_ijk v_k, in closed form.

    C is the matrix of :meth:`~sarrus.Mechanism.coriolis_matrix`. For joints with v = dq/dt, Gamma are the Christoffel symbols of the first kind of
    the mass matrix, (dM_ij/dq_k + dM_ik/dq_j - dM_kj/dq_i) / 2, symmetric in j and k. The velocities of ball, free and planar joints are not rates of
    coordinates. For these joints, too, C v are the Coriolis and centrifugal forces, and dM/dt - 2C is skew. But Gamma_ijk - Gamma_ikj is not zero: it
    is the Lie bracket of the joint's motions (gyroscopic terms). Armature of tree joints is constant and has no effect. The cost is O(bodies
    depth^2).

    Raises ShapeError if nv^3 exceeds 2^31.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    References
    ----------
    Li and Wu 2011, 4.3; Murray, Li and Sastry 1994, 4.23; Echeandia and Wensing 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.mechanisms.double_pendulum()
    >>> q, v = np.array([0.3, 0.5]), np.array([1.0, -2.0])
    >>> bool(np.allclose(sarrus.formulations.christoffel_symbols(arm, q) @ v, arm.coriolis_matrix(q, v)))
    True
    """


@_operation
def mass_matrix_derivative(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Compute the derivative (..., nv, nv, nv) of the tree's mass matrix M_ij along each velocity k: dM/dt = mass_matrix_derivative(q) @ v.

    For joints with v = dq/dt it is dM_ij/dq_k. For ball, free and planar joints it is the derivative along :meth:`~sarrus.Mechanism.integrate`. It is
    computed in closed form, as Gamma_ijk + Gamma_jik of :func:`~sarrus.formulations.christoffel_symbols`.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.mechanisms.double_pendulum()
    >>> q, step = np.array([0.3, 0.5]), np.array([0.0, 1e-6])
    >>> difference = (arm.mass_matrix(q + step) - arm.mass_matrix(q - step)) / 2e-6
    >>> bool(np.allclose(sarrus.formulations.mass_matrix_derivative(arm, q)[..., 1], difference))
    True
    """


@shows_options
def constraint_forces(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, multipliers: ArrayLike | None = None, time: ArrayLike | None = None,
    **options: Unpack[ThreadedLoads],
) -> dict[str, Array]:  # fmt: skip
    """Compute the components (..., 6 - nv) of every joint's reaction in its constraint space: tau_c of f = psi tau + psi_c tau_c (2.16).

    The bases psi and psi_c are those of :func:`~sarrus.formulations.joint_bases`.

    Parameters
    ----------
    multipliers, base_velocity, base_acceleration : as in :func:`~sarrus.formulations.reactions`
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
    time : (...) time for prescribed motions [s]
    wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
    threads : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> sarrus.formulations.constraint_forces(pendulum, [0.0], [0.0], [0.0])["pivot"].shape
    (5,)
    """
    checked_mechanism(robot, "robot")
    return {
        name: np.einsum("...ij,...i->...j", joint_bases(robot, q, name)[1], f)
        for name, f in reactions(robot, q, v, a, multipliers=multipliers, time=time, **options).items()
    }


@shows_options
def reactions(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, multipliers: ArrayLike | None = None, time: ArrayLike | None = None,
    **options: Unpack[ReactionOptions],
) -> dict[str, Array]:  # fmt: skip
    """Compute the wrench that every tree joint, including fixed joints, exerts on its successor (the body farther from the ground).

    The result maps joint names to (..., 6) [moment; force] in the joint's frame on this body, at its origin: van der Merwe's f (4.23, 4.30) [N m, N].
    Its component along the motion space is the sum of motor, friction, spring and armature forces. Its component in the constraint space is returned
    by :func:`~sarrus.formulations.constraint_forces`. In contrast, :meth:`~sarrus.Mechanism.joint_wrenches` includes loop joints, returns wrenches on
    the child of each joint, and returns efforts separately.

    Parameters
    ----------
    multipliers : (..., nc) multipliers of the constraint rows in this motion [N m, N], as :meth:`~sarrus.Mechanism.forward_dynamics` and
        :meth:`~sarrus.Mechanism.actuator_efforts` return them; default: the multipliers for motor efforts, by
        :meth:`~sarrus.Mechanism.actuator_efforts`. Indeterminate components (``indeterminate`` of :meth:`~sarrus.Mechanism.joint_wrenches`) are those
        of least norm over all joints
    base_velocity, base_acceleration : as in :meth:`~sarrus.Mechanism.inverse_dynamics`
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
    time : (...) time for prescribed motions [s]
    wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    NotRealizableError
        `multipliers` is None, and motors alone cannot produce this motion.
    ValueError
        `multipliers` is None, for a mechanism with loops and a moving base.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> sarrus.formulations.reactions(pendulum, [0.0], [0.0], [0.0])["pivot"].round(3).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 19.62]

    All pins of a released four-bar, those of its tree and the loop joint:

    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q, v, tau = fourbar.assemble(), np.zeros(3), np.zeros(3)
    >>> a, loops = fourbar.forward_dynamics(q, v, tau, return_reactions=True)
    >>> pins = sarrus.formulations.reactions(fourbar, q, v, a) | loops.wrenches
    >>> sorted(pins) == sorted(joint.name for joint in fourbar.description.joints)
    True
    """
    checked_mechanism(robot, "robot")
    with_status = checked_truth("return_status", options.get("return_status", False))
    wrenches, status = robot._open_reactions(q, v, a, **options)
    if not robot.nc:
        return cast("Any", (wrenches, status)) if with_status else wrenches
    if multipliers is None:
        across, state = _carried_across(robot, q, v, a, time, options)
        status = np.maximum(status, state)
    else:
        multipliers = real_rows("multipliers", multipliers, robot.nc, np.shape(q)[:-1], finite=False)
        across = robot._loop_wrenches(q, multipliers, time=time, return_status=True)[0]
    # a joint also transmits the reactions of loop constraints on its outer bodies: minus their wrenches on these bodies
    q = np.broadcast_to(np.asarray(q, dtype=np.float64), (*across.shape[:-2], robot.nq))
    loads = _core.loads_on_tree(robot, q[..., None], across)
    places = {joint.name: k for k, joint in enumerate(robot.description.joints)}
    wrenches = {name: wrench - loads[..., places[name], :] for name, wrench in wrenches.items()}
    return cast("Any", (wrenches, status)) if with_status else wrenches


def _carried_across(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, time: ArrayLike | None, options: Mapping[str, Any]
) -> tuple[Array, Any]:
    """Return the wrenches (..., constraints, 6) on the constraints' children while the motors produce a motion, and the status."""
    if any(np.any(0.0 if (x := options.get(base)) is None else x) for base in ("base_velocity", "base_acceleration")):
        raise ValueError("multipliers: required for loops with a moving base; expected (..., nc), got None")
    keywords = {name: options[name] for name in ("wrenches", "threads", "return_status") if name in options}
    try:
        results: Any = actuator_efforts(robot, q, v, a, time=time, return_reactions=True, **keywords)
    except NotRealizableError as error:
        raise NotRealizableError(f"{error}; if other forces act, too, pass multipliers=") from None
    u, mu, *status = results
    across = across_loops(robot, real_array("q", q), u, mu, motors_of(robot, None), time)
    return across, status[0] if status else Status.FINE


JAMMED = 1e-10  # smallest singular value of the contact's linear system below which the contact jams


@of_states
def sliding_contact(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike, joint: str, ratio: ArrayLike, *, wrenches: Wrenches | None = None,
    time: ArrayLike | None = None, **options: Unpack[BatchOptions],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Compute forward dynamics with friction in a loop joint, where the friction is proportional to the joint's constraint force (Class II contact).

    The effort along the joint is h = ratio h_c, with the joint's multipliers h_c. For Coulomb friction of a tip that slides on a surface, the ratio
    for the normal force is -mu in the direction of sliding, and +mu in the opposite direction: the caller selects the sign. h_c depends linearly on
    h, therefore h is the solution of a small linear system.

    Parameters
    ----------
    q, v, tau : (..., nq), (..., nv), (..., nv) configuration, velocity and generalised force [rad, m; rad/s, m/s; N m, N]; q and v satisfy the loops
    joint : name of a loop joint with n velocities and r constraint rows
    ratio : (..., n, r) ratio of the efforts along its velocities to its multipliers (dimensionless; m for a moment from a force)
    wrenches, time : as in :meth:`~sarrus.Mechanism.forward_dynamics`
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    a : (..., nv) generalised acceleration [rad/s^2, m/s^2]
    multipliers : (..., nc) multipliers of all constraint rows [N m, N]
    h : (..., n) efforts along the joint [N m, N]

    Raises
    ------
    StateError
        The contact jams, because with this ratio the constraint force increases as fast as the friction force (Painlevé paradox).
    ModelError, ShapeError
        The joint is not a loop joint; the ratio is not (..., n, r).

    References
    ----------
    van der Merwe 1995, 5.2.4 (Class II), with 5.21 to 5.29.

    Examples
    --------
    A block on an incline of 45 degrees, mu = 0.3: a = g (sin - mu cos).

    >>> import numpy as np
    >>> import sarrus
    >>> b = sarrus.Builder("block")
    >>> b.add_body("block", sarrus.Inertia.box(2.0, (0.1, 0.1, 0.1)))
    >>> b.add_joint("float", sarrus.Free(), "ground", "block")
    >>> down = sarrus.Transform.from_rpy(0.0, np.pi / 4, 0.0)  # its x goes down
    >>> b.add_joint("slope", sarrus.Prismatic("x"), "ground", "block", at_parent=down, at_child=down, loop=True)
    >>> robot = b.build()
    >>> q, v = robot.neutral(), np.zeros(6)
    >>> ratio = [[0.0, 0.0, 0.0, 0.0, -0.3]]  # multipliers: three moments, a side force and the normal force
    >>> a, _, h = sarrus.formulations.sliding_contact(robot, q, v, v, "slope", ratio)
    >>> float(np.linalg.norm(a).round(6)), float((9.81 * np.sqrt(0.5) * 0.7).round(6))
    (4.855702, 4.855702)
    """
    contact_joint = robot.joint(joint)
    if not contact_joint.closes_loop:
        raise ModelError(f"joint '{joint}' is a tree joint; expected a loop joint (loop=True) for a sliding contact")
    rows, n = robot.constraint(joint).rows, contact_joint.type.nv
    count = rows.stop - rows.start
    K = real_array("ratio", ratio)
    if K.shape[-2:] != (n, count):
        raise ShapeError(f"ratio of joint '{joint}' must be (..., {n}, {count}); got {K.shape}")
    q, v = robot.normalize(q), real_rows("v", v, robot.nv, finite=False)
    tau = real_rows("tau", tau, robot.nv, finite=False)
    S = actuation_matrix(robot, q, actuated=[joint])
    lead = common_axes({"q": q.shape[:-1], "v": v.shape[:-1], "tau": tau.shape[:-1], "ratio": K.shape[:-2]})
    unit = max(1.0, float(np.abs(tau[np.isfinite(tau)]).max(initial=0.0)))  # force along the joint in each column
    along = [np.zeros(robot.nv), *(unit * S[..., k] for k in range(n))]
    pushes = np.stack([np.broadcast_to(tau + x, (*lead, robot.nv)) for x in along])
    a, reactions = robot.forward_dynamics(q, v, pushes, wrenches=wrenches, time=time, return_reactions=True)
    carried = reactions.multipliers
    per_unit = np.moveaxis(carried[1:] - carried[0], 0, -1) / unit
    with np.errstate(over="ignore", invalid="ignore"):
        system, constant = np.eye(n) - K @ per_unit[..., rows, :], applied(K, carried[0][..., rows])
    sound = np.isfinite(system).all(axis=(-2, -1)) & np.isfinite(constant).all(axis=-1)
    if not lead and not sound:
        raise StateError(f"joint '{joint}' has no result: with a ratio of {np.abs(K).max():.3g} the result overflows")
    system = np.where(sound[..., None, None], system, np.eye(n))  # the forces of invalid states are NaN
    if np.linalg.svd(system, compute_uv=False).min(initial=1.0) <= JAMMED:
        raise StateError(
            f"joint '{joint}' jams: the required force grows with the friction force; expected a smaller ratio"
        )
    h = np.linalg.solve(system, np.where(sound[..., None], constant, np.nan)[..., None])[..., 0]
    a = a[0] + applied(np.moveaxis(a[1:] - a[0], 0, -1) / unit, h)
    return a, carried[0] + applied(per_unit, h), h
