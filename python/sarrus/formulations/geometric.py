"""Projections, reduced equations and products of exponentials of Li and Wu's lecture notes of 2011 ("the slides").

Free motions of constraints
---------------------------
The constraints J v = c of the mechanism, holonomic or not, are A(q) v = 0 in the slides, where they define the configuration space Q in E. The
columns of N span the motions that the constraints allow. In the metric of the mass matrix

  P_T = N (N^T M N)^-1 N^T M         maps a velocity to the nearest allowed one
  P_omega = P_T^T = M P_T M^-1       maps a force to the part that causes motion

These are the slides' I - M^-1 A^T (A M^-1 A^T)^-1 A and its dual, without the assumption of independent rows and a regular mass matrix.

Products of exponentials (Ploen and Park; slides, 4.5)
------------------------------------------------------
With the velocities V = (V_1, ..., V_N) of the bodies, each in the frame of its body, and the forces on the bodies in the same frames,

  V     = Gamma V + S v + P_0 V_0                               each body moves with its parent, and along its joint
        = G (S v + P_0 V_0)                                     G = (1 - Gamma)^-1 = 1 + Gamma + Gamma^2 + ...
  V-dot = G (S a + S-dot v + ad_S (Gamma V + P_0 V_0) + P_0 V_0-dot)
  tau   = S^T G^T (M V-dot + ad_V^T M V + P_t^T F_t)

Gamma contains Ad of the parent's pose in the body's frame; ad_S has -ad(S_i v_i) and ad_V has -ad(V_i) on their diagonals. The slides treat a chain,
with Gamma next to the diagonal, and joints with constant axes, so that S-dot = 0. Here the bodies form any tree.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .. import spatial
from .._arrays import Array, ArrayLike, NDArray, checked_truth, common_axes, into, real_array, real_rows
from .._core import tolerances
from .._showing import Brief
from ..analysis.independent_coordinates import Coordinates, ReducedForm, component_rows, loop_motions, reduced_form
from ..analysis.linear_algebra import FreeMotions, applied, transposed
from ..description.joints import PARAMETERS
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.options import (
    BatchOptions,
    ExpressedIn,
    FrameTimeOptions,
    StateOptions,
    Unpack,
    Wrenches,
    of_states,
    shows_options,
)
from ..errors import ModelError, StateError
from ..mechanism import checked_mechanism

# ---- reduced dynamics ------------------------------------------------------------------------------------------------
# Equations of motion in as many coordinates as a closed mechanism has degrees of freedom: independent, actuated or task coordinates.
#
# With v = G y-dot + g of :mod:`~sarrus.analysis.independent_coordinates`
#
#   G^T M G y-ddot + G^T (M (G-dot y-dot + g-dot) + h) = G^T tau
#
# This is Lagrange's and d'Alembert's equation with the dependent velocities eliminated (Li and Wu 2011, 4.6). In terms of the
# links' centres of gravity it is the COG Jacobian of Sonoda, Ishii and Isobe.

ROUNDING = 1e-12  # relative rounding of mobilities without loops


@shows_options
def reduced_dynamics(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, *, independent: Coordinates = None, task: str | tuple[str, str] | None = None,
    wrenches: Wrenches | None = None, time: ArrayLike | None = None, out: ReducedForm | None = None,
    **options: Unpack[BatchOptions],
) -> ReducedForm:  # fmt: skip
    """Compute the equations of motion in independent coordinates, as many as degrees of freedom.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s] that satisfy the constraints
    independent : names of tree joints, or (joint, index) for one of several velocities; "actuated" for the actuated joints.
        Default: the best-conditioned velocities (by a pivoted factorisation of the projector), the same for all states
    task : alternative to `independent`: the name of a frame, or (frame, "rx ty ..."), whose velocity components in the world's axes are the
        coordinates
    wrenches : frame to (..., 6) [moment; force], as in :meth:`~sarrus.Mechanism.inverse_dynamics` [N m, N]; they are included in `bias`
    time : (...) time for prescribed motions [s]
    out : result of an earlier call with the same number of states and the same coordinates, whose arrays are overwritten
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    StateError
        The coordinates are not independent, or do not determine the motion. Singular values below 1e-9 of the largest count as zero, both of J and of
        the map from free motions to the coordinates. In a batch, no error is raised: the row is NaN and its status 2.

    References
    ----------
    Li and Wu 2011, 4.6 (Lagrange and d'Alembert); Sonoda, Ishii and Isobe, eqs 3-18.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble()
    >>> v = fourbar.project_velocity(q, [1.0, 0.0, 0.0])
    >>> form = sarrus.formulations.reduced_dynamics(fourbar, q, v, independent=["motor"])
    >>> bool(np.allclose(form.full_acceleration(form.forward([2.0])), fourbar.forward_dynamics(q, v, [2.0, 0.0, 0.0])))
    True
    """
    checked_mechanism(robot, "robot")
    form, status = reduced_form(robot, q, v, independent, time, task=task, wrenches=wrenches, out=out, **options)
    return form if status is None else cast("ReducedForm", (form, status))


@shows_options
def operational_inertia_inverse(
    robot: LoopFunctions, q: ArrayLike, frame: str, **options: Unpack[FrameTimeOptions]
) -> Array:
    """Compute the inverse operational-space inertia (..., 6, 6) of a frame with closed loops: J_f N (N^T M N)^-1 N^T J_f^T.

    It is the acceleration of the frame per wrench on the frame, and exists in every configuration (van der Merwe 5.58). J_f is the frame's Jacobian,
    and N a basis of the free motions. With all loops open it is J_f :func:`~sarrus.formulations.omega`.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    frame : name of a frame, see `frames` of the mechanism
    time : (...) time for prescribed motions [s]
    expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> float(sarrus.formulations.operational_inertia_inverse(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], "tip")[3, 3])
    0.5
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> sarrus.formulations.operational_inertia_inverse(fourbar, fourbar.assemble(), "coupler").shape
    (6, 6)
    """
    checked_mechanism(robot, "robot")
    time = cast("dict[str, Any]", options).pop("time", None)
    if not robot.nc:
        return robot._tree_operational_inertia_inverse(q, frame, **options)
    out, with_status = options.pop("out", None), checked_truth("return_status", options.pop("return_status", False))
    if not with_status:
        cast("Any", robot.jacobian)(q, frame, **options)  # raises the errors of its arguments
    J, status = cast("Any", robot.jacobian)(q, frame, **options, return_status=True)
    M = robot.mass_matrix(q, return_status=True)[0]
    A, rows = cast("tuple[Array, Array]", robot.constraint_jacobian(q, time=time, return_status=True))
    bad = (np.asarray(status) != 0) | (np.asarray(rows) != 0)
    M, A = np.where(bad[..., None, None], np.eye(robot.nv), M), np.where(bad[..., None, None], 0.0, A)
    answer = J @ loop_motions(robot, A).constrained_inverse(M) @ transposed(J)
    answer = into(out, np.where(bad[..., None, None], np.nan, answer))
    return cast("Array", (answer, np.maximum(status, rows)) if with_status else answer)


@of_states
def operational_inertia(
    robot: LoopFunctions, q: ArrayLike, frame: str, *, components: str = "rx ry rz tx ty tz", expressed_in: ExpressedIn = "frame",
    time: ArrayLike | None = None,
    **options: Unpack[StateOptions],
) -> Array:  # fmt: skip
    """Compute the operational-space inertia (..., n, n) of a frame with closed loops, along n components (van der Merwe 5.57).

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    frame : name of a frame, see `frames` of the mechanism
    components : names from "rx ry rz tx ty tz", rotation about and translation along the axes of `expressed_in`
    time : (...) time for prescribed motions [s]
    expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    StateError
        The frame cannot move in one of these directions, so that its inertia is infinite. Use
        :func:`~sarrus.formulations.operational_inertia_inverse` instead.
    ModelError
        `components` has an unknown name.

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> sarrus.formulations.operational_inertia(fourbar, fourbar.assemble(), "coupler", components="ry").shape
    (1, 1)
    >>> sarrus.formulations.operational_inertia(sarrus.mechanisms.pendulum(), [0.0], "tip")
    Traceback (most recent call last):
        ...
    sarrus.errors.StateError: frame 'tip' can move in 1 of 6 directions: its inertia is infinite in the other directions
    """
    rows = component_rows(components)
    if not rows:
        raise ModelError(f"components must be one or more of {' '.join(PARAMETERS)}; got {components!r}")
    closed = operational_inertia_inverse(robot, q, frame, expressed_in=expressed_in, time=time)
    common_axes({"the result": closed.shape})
    # scale by the mobility (inverse inertia) with open loops, because the mobility with closed loops may consist of rounding errors only
    open_ = robot._tree_operational_inertia_inverse(q, frame, expressed_in=expressed_in, return_status=True)[0]
    mobility = np.sqrt(np.diagonal(np.where(np.isnan(open_), np.abs(closed), open_), axis1=-2, axis2=-1))[..., rows]
    # invalid states remain NaN, and have no effect on other states
    bad = np.asarray(np.isnan(closed).any(axis=(-2, -1), keepdims=True))
    scale = np.where((mobility > 0.0) & ~bad[..., 0], mobility, 1.0)
    inverse = np.where(bad, np.eye(len(rows)), closed[..., np.array(rows)[:, None], rows])
    relative = inverse / (scale[..., :, None] * scale[..., None, :])
    rank = np.linalg.matrix_rank(relative, tol=tolerances.negligible if robot.nc else ROUNDING, hermitian=True)
    if np.any(rank < len(rows)):
        directions = "directions" if len(rows) == 6 else f"directions {components}"
        raise StateError(
            f"frame '{frame}' can move in {int(np.min(rank))} of {len(rows)} {directions}: its inertia is infinite in the other directions"
        )
    return np.where(bad, np.nan, np.linalg.inv(relative) / (scale[..., :, None] * scale[..., None, :]))


# ---- projected dynamics ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class ProjectedEquations(Brief):
    """Equations of motion projected onto the free motions, and onto the constraint forces.

    Along the free motions (T*Q): inertia acceleration + bias = force. Along the constraint forces (its complement): curvature = across +
    constraint_force.

    Attributes
    ----------
    P_omega, P_T : (..., nv, nv) projections of forces and of velocities [N m, N per N m, N; rad, m per rad, m]
    inertia : (..., nv, nv) P_omega M = M P_T, whose rank is the number of degrees of freedom [kg m2, kg m, kg]
    bias, force : (..., nv) P_omega h and P_omega tau [N m, N]
    acceleration : (..., nv) acceleration, which also satisfies the constraints [rad/s2, m/s2]
    curvature : (..., nv) M S(v, v) = (1 - P_omega)(M a + C v) [N m, N], the force that is required for the motion to satisfy the constraints,
        including prescribed motions; S is the second fundamental form of Q in E
    across : (..., nv) (1 - P_omega)(tau - N), with N = h - C v [N m, N]
    constraint_force : (..., nv) M a + h - tau = J^T multipliers, which P_omega maps to zero [N m, N]
    multipliers : (..., nc) multipliers of least norm [N m, N]
    """

    P_omega: Array
    P_T: Array
    inertia: Array
    bias: Array
    force: Array
    acceleration: Array
    curvature: Array
    across: Array
    constraint_force: Array
    multipliers: Array


@of_states
def free_motions(
    robot: LoopFunctions, q: ArrayLike, *, time: ArrayLike | None = None, **options: Unpack[BatchOptions]
) -> FreeMotions:
    """Compute a basis of the velocities that the constraints allow, and their number.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    time : (...) time for prescribed motions [s]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> free = sarrus.formulations.free_motions(fourbar, fourbar.assemble())
    >>> int(free.freedom), free.basis.shape
    (1, (3, 1))
    """
    return loop_motions(robot, robot.constraint_jacobian(q, time=time))


@of_states
def projections(
    robot: LoopFunctions, q: ArrayLike, *, time: ArrayLike | None = None, **options: Unpack[BatchOptions]
) -> tuple[Array, Array]:
    """Compute P_omega and P_T (..., nv, nv) in the coordinates of the tree, in the metric of the mass matrix: P_omega M = M P_T and P_omega = P_T^T.

    P_T v is the allowed velocity nearest to v in kinetic energy (without prescribed motions). (1 - P_omega) tau is the component of a force that the
    constraints balance. Rows may be dependent. References: Li and Wu 2011, 4.6 (lemmas 1 and 2).

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    time : (...) time for prescribed motions [s]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> P_omega, P_T = sarrus.formulations.projections(fourbar, fourbar.assemble())
    >>> bool(np.allclose(P_T @ P_T, P_T)), int(np.trace(P_T).round())
    (True, 1)
    """
    M = robot.mass_matrix(q)
    P_T = free_motions(robot, q, time=time).constrained_inverse(M) @ M
    return transposed(P_T), P_T


@of_states
def projected_dynamics(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, wrenches: Wrenches | None = None,
    time: ArrayLike | None = None,
    **options: Unpack[BatchOptions],
) -> ProjectedEquations:  # fmt: skip
    """Compute the equations of motion along the free motions, and the constraint forces.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s] that satisfy the constraints
    tau : (..., nv) generalised force [N m, N]; default: zero
    wrenches, time : as in :meth:`~sarrus.Mechanism.forward_dynamics`
    threads, return_status : as in :class:`~sarrus.Mechanism`

    References
    ----------
    Li and Wu 2011, 4.6, the dynamics in T*Q and in its complement. The sign of multipliers is that of M a + h = tau + J^T multipliers, as in the
    slides from number 61 on. The slides omit an inverse in the equation of P_omega.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble()
    >>> v = fourbar.project_velocity(q, [1.0, 0.0, 0.0])
    >>> equations = sarrus.formulations.projected_dynamics(fourbar, q, v, [2.0, 0.0, 0.0])
    >>> bool(np.allclose(equations.acceleration, fourbar.forward_dynamics(q, v, [2.0, 0.0, 0.0])))
    True
    """
    gamma = robot.constraint_bias(q, v, time=time)
    M, h = robot.mass_matrix(q), robot.bias_forces(q, v, wrenches=wrenches)
    lead = common_axes({"q, v and time": gamma.shape[:-1], "q, v and wrenches": h.shape[:-1]})
    tau = real_rows("tau", np.zeros(robot.nv) if tau is None else tau, robot.nv, lead)
    centrifugal = applied(robot.coriolis_matrix(q, v), np.asarray(v, dtype=np.float64))
    free = free_motions(robot, q, time=time)
    inverse = free.constrained_inverse(M)
    P_T = inverse @ M
    P_omega = transposed(P_T)
    # `normal` is unique: two allowed accelerations differ by an allowed motion, which 1 - P_T removes
    allowed = applied(free.inverse, gamma)
    normal = allowed - applied(P_T, allowed)
    a = normal + applied(inverse, tau - h)
    constraint_force = applied(M, a) + h - tau
    remainder = tau - h + centrifugal
    return ProjectedEquations(
        P_omega=P_omega,
        P_T=P_T,
        inertia=P_omega @ M,
        bias=applied(P_omega, h),
        force=applied(P_omega, tau),
        acceleration=a,
        curvature=applied(M, normal) + centrifugal - applied(P_omega, centrifugal),
        across=remainder - applied(P_omega, remainder),
        constraint_force=constraint_force,
        multipliers=applied(transposed(free.inverse), constraint_force),
    )


@of_states
def virtual_work(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike | None = None, *, wrenches: Wrenches | None = None,
    time: ArrayLike | None = None,
    **options: Unpack[StateOptions],
) -> Array:  # fmt: skip
    """Compute P_omega (M a + h - tau) (..., nv), the residual of the Lagrange-d'Alembert equation, which is zero if tau causes the motion.

    By this equation (M a + h - tau) . dq = 0 for all dq with A dq = 0, because constraint forces do no work. References: Li and Wu 2011, 4.6 (theorem
    2).

    Parameters
    ----------
    q, v, a, tau : (..., nq), (..., nv), (..., nv), (..., nv) configuration, velocity, acceleration and generalised force [rad, m; rad/s, m/s;
        rad/s^2, m/s^2; N m, N]
    wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
    time : (...) time for prescribed motions [s]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q, rest = fourbar.assemble(), np.zeros(3)
    >>> a = fourbar.forward_dynamics(q, rest, [2.0, 0.0, 0.0])
    >>> bool(abs(sarrus.formulations.virtual_work(fourbar, q, rest, a, [2.0, 0.0, 0.0])).max() < 1e-9)
    True
    """
    required = robot.inverse_dynamics(q, v, a, wrenches=wrenches)
    P_omega = projections(robot, q, time=time)[0]
    lead = common_axes({"q, v, a and wrenches": required.shape[:-1], "q and time": P_omega.shape[:-2]})
    return applied(P_omega, required - real_rows("tau", np.zeros(robot.nv) if tau is None else tau, robot.nv, lead))


# ---- integrability of velocity constraints: Frobenius' theorem --------------------------------------------------------


# tolerance relative to the rates of J: the error of finite differences for constraint rows that are functions without a derivative
BENT = 1e-7


@of_states
def is_involutive(
    robot: LoopFunctions, q: ArrayLike, *, time: ArrayLike | None = None, **options: Unpack[BatchOptions]
) -> NDArray[np.bool_]:
    """Return True if the velocities that all constraints allow, J v = 0, are an involutive distribution at a configuration.

    The distribution is involutive if the Lie bracket of any two allowed velocities is an allowed velocity: dJ(x) y - dJ(y) x - J [x, y] = 0 for all x
    and y with J x = J y = 0. If this is true in a neighbourhood, the constraints are holonomic (Frobenius). The constraints of a rolling disc are
    not.

    Parameters
    ----------
    q : (..., nq) regular configuration [rad, m] that closes the loops
    time : (...) time for prescribed motions [s]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    (...) bool

    References
    ----------
    Li and Wu 2011, 4.6 (slide 44; the rolling arm's J_f is not involutive).

    Examples
    --------
    >>> import sarrus
    >>> disc, fourbar = sarrus.mechanisms.rolling_disc(), sarrus.mechanisms.four_bar()
    >>> bool(sarrus.formulations.is_involutive(disc, disc.assemble())), bool(sarrus.formulations.is_involutive(fourbar, fourbar.assemble()))
    (False, True)
    """
    q, when = robot.normalize(q), real_array("time", 0.0 if time is None else time)
    lead = common_axes({"q": q.shape[:-1], "time": when.shape})
    q, when = np.broadcast_to(q, (*lead, robot.nq)), np.broadcast_to(when, lead)
    J = robot.constraint_jacobian(q, time=when)
    free = loop_motions(robot, J)
    answer = np.ones(lead, bool)
    for at in np.ndindex(lead):
        basis = np.atleast_2d(free.basis[at][:, : np.asarray(free.freedom)[at]].T)
        rates = robot.constraint_jacobian_derivative(q[at], basis, time=float(when[at]))
        for (x, dJ_x), (y, dJ_y) in itertools.combinations(zip(basis, rates, strict=True), 2):
            terms = np.array([applied(dJ_x, y), -applied(dJ_y, x), -applied(J[at], robot._bracket(x, y))])
            size = np.abs(rates).max(initial=0.0) + np.abs(J[at]).max(initial=0.0)
            answer[at] &= bool(np.abs(terms.sum(axis=0)).max(initial=0.0) <= BENT * size)
    return answer


@dataclass(frozen=True, eq=False, repr=False)
class PoeFactors(Brief):
    """Matrices whose products are the equations of motion of the tree, with 6 rows for each of N bodies; see the module's docstring.

    Attributes
    ----------
    bodies : names of the bodies, each after its parent
    S : (..., 6N, nv) motion subspaces of the joints (xi in Li and Wu) [rad, m per rad, m]
    S_dot : (..., 6N, nv) time derivative of S [rad, m per rad, m; per s]; zero except for gimbals, universal joints and reversed joints
    Gamma : (..., 6N, 6N) maps motions of each body's parent to the body; nilpotent [dimensionless, m]
    G : (..., 6N, 6N) (1 - Gamma)^-1, maps motions of each body to all bodies beyond it in the tree [dimensionless, m]
    P_0 : (..., 6N, 6) maps motions of the ground to its children [dimensionless, m]
    P_t : (..., 6, 6N) maps motions of the last body to the end frame [dimensionless, m]
    M : (..., 6N, 6N) inertias of the bodies, block-diagonal [kg m2, kg m, kg]
    ad_S, ad_V : (..., 6N, 6N) matrices with the blocks -ad(S_i v_i) and -ad(V_i) on the diagonal [rad/s, m/s]
    h_V : (..., 6N, 6N) skew matrix with h_V V = ad_V^T M V; for momenta (n, f) = M_i V_i, its diagonal blocks are [-n~ -f~; -f~ 0]
    armature : (nv, nv) armature of the joints, diagonal [kg m2, kg]
    V : (..., 6N) velocities of the bodies [rad/s, m/s]
    V_0_dot : (6,) acceleration of the ground that is equivalent to gravity, (0, -g) [rad/s2, m/s2]
    """

    bodies: tuple[str, ...]
    S: Array
    S_dot: Array
    Gamma: Array
    G: Array
    P_0: Array
    P_t: Array
    M: Array
    ad_S: Array
    ad_V: Array
    h_V: Array
    armature: Array
    V: Array
    V_0_dot: Array

    @property
    def J(self) -> Array:
        """G S (..., 6N, nv): the Jacobians of all bodies, stacked."""
        return np.asarray(self.G @ self.S)

    @property
    def J_t(self) -> Array:
        """P_t G S (..., 6, nv): Jacobian of the end frame. If the end applies the force F to its environment, the joints must supply J_t^T F."""
        return np.asarray(self.P_t @ self.J)

    @property
    def mass_matrix(self) -> Array:
        """S^T G^T M G S (..., nv, nv) plus the joints' armature."""
        return np.asarray(transposed(self.J) @ self.M @ self.J + self.armature)

    @property
    def coriolis_matrix(self) -> Array:
        """S^T G^T (M G (ad_S Gamma G S + S-dot) + h_V G S) (..., nv, nv), dM/dt - 2C skew.

        The slides use ad_V^T M instead of h_V. The product with v is the same, but ad_V^T M and dM/dt - 2C are not skew.
        """
        J_dot = self.G @ (self.ad_S @ self.Gamma @ self.J + self.S_dot)
        return np.asarray(transposed(self.J) @ (self.M @ J_dot + self.h_V @ self.J))

    @property
    def gravity_forces(self) -> Array:
        """S^T G^T M G P_0 V_0-dot (..., nv), the forces that balance gravity (phi in Li and Wu)."""
        return applied(transposed(self.J) @ self.M @ self.G @ self.P_0, self.V_0_dot)


@of_states
def joint_screws(robot: LoopFunctions, q: ArrayLike | None = None, **options: Unpack[StateOptions]) -> Array:
    """Return the screws (..., nv, 6) of the tree joints, [angular; linear] in world axes, of the point at the world's origin.

    A screw is the velocity, for a unit velocity of the joint, of all bodies beyond it (farther from the ground). The screws are in the order of v.
    With the screws of the zero configuration, the pose of a frame is a product of exponentials over the joints from the ground to the frame
    (:func:`sarrus.spatial.product_of_exponentials`).

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]; default: all coordinates zero
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    ModelError
        A joint has several degrees of freedom, and therefore no single screw.

    References
    ----------
    Li and Wu 2011, 4.3; Murray, Li and Sastry 1994, 3.2.2.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.formulations.joint_screws(sarrus.mechanisms.double_pendulum(lengths=(1.0, 1.0))).tolist()
    [[0.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]]
    """
    for name in robot.joints:
        if (joint := robot.joint(name)).nv > 1:
            raise ModelError(
                f"joint '{name}' has {joint.nv} freedoms ({joint.type}); expected a joint with one freedom, which has one screw: for other joints use joint_bases"
            )
    return robot._joint_screws(robot.neutral() if q is None else q)


def poe_factors(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None = None, *, frame: str | None = None
) -> PoeFactors:
    """Return the invariant factors of the tree's mass matrix, Coriolis matrix, gravity forces and Jacobian; loops are open.

    Use these matrices to study the equations. :meth:`~sarrus.Mechanism.mass_matrix` and similar methods need about 1/1000 of the time.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]; default v: zero
    frame : name of the end frame of P_t and J_t; default: the frame of the last body

    Raises
    ------
    ModelError
        A loop joint has armature, which the factors cannot represent.

    References
    ----------
    Li and Wu 2011, 4.5; Ploen and Park, Coordinate-invariant algorithms for robot dynamics, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.mechanisms.double_pendulum()
    >>> q, v = np.array([0.3, 0.5]), np.array([1.0, -2.0])
    >>> form = sarrus.formulations.poe_factors(arm, q, v)
    >>> form.S.shape, form.G.shape
    ((12, 2), (12, 12))
    >>> bool(np.allclose(form.S.T @ form.G.T @ form.M @ form.G @ form.S, arm.mass_matrix(q)))
    True
    """
    checked_mechanism(robot, "robot")
    for name in robot.loop_joints:
        if np.any(np.asarray(robot.joint(name).type.armature) > 0.0):
            raise ModelError(
                f"loop joint '{name}' has armature; this formulation factorises the tree's mass matrix and supports armature in tree joints only"
            )
    q = real_array("q", q)
    motion = robot.kinematics(q, np.zeros(robot.nv) if v is None else v)
    parent, joint_of = _tree_edges(robot)
    names = tuple(parent)
    poses = {name: motion.pose(name) for name in ("ground", *names)}
    lead, n = poses[names[0]].shape[:-2], 6 * len(names)
    inertia = {body.name: body.inertia.matrix for body in robot.description.bodies}
    v = np.broadcast_to(np.zeros(robot.nv) if v is None else real_rows("v", v, robot.nv), (*lead, robot.nv))

    def between(of: str, seen_from: str) -> Array:
        """Return Ad from the frame of a body to another frame."""
        # Ad^-1 is the transpose of Ad*
        return np.asarray(transposed(spatial.adjoint_dual(poses[seen_from])) @ spatial.adjoint(poses[of]))

    def empty(*shape: int) -> Array:
        return np.zeros((*lead, *shape))

    S, S_dot, P_0, P_t, V = empty(n, robot.nv), empty(n, robot.nv), empty(n, 6), empty(6, n), empty(n)
    Gamma, G, M, ad_S, ad_V, h_V = (empty(n, n) for _ in range(6))
    rows = {name: slice(6 * i, 6 * i + 6) for i, name in enumerate(names)}
    for name, block in rows.items():
        columns = robot.joint(joint_of[name]).v_slice
        S[..., block, columns] = motion.jacobian(name)[..., columns]
        S_dot[..., block, columns] = motion.jacobian_derivative(name)[..., columns]
        G[..., block, block] = np.eye(6)
        V[..., block] = motion.velocity(name)
        M[..., block, block] = inertia[name]
        ad_S[..., block, block] = -spatial.ad(applied(S[..., block, columns], v[..., columns]))
        ad_V[..., block, block] = -spatial.ad(V[..., block])
        momentum = V[..., block] @ inertia[name]
        # momentum is (n, f), angular and linear; the blocks of ad of (f, n) are f~ and n~
        turned = spatial.ad(momentum[..., [3, 4, 5, 0, 1, 2]])
        force_block, moment_block = turned[..., :3, :3], turned[..., 3:, :3]
        h_V[..., block, block] = -np.block([[moment_block, force_block], [force_block, 0.0 * force_block]])
        if parent[name] == "ground":
            P_0[..., block, :] = between("ground", name)
        else:
            before = rows[parent[name]]
            Gamma[..., block, before] = step = between(parent[name], name)
            G[..., block, :] += step @ G[..., before, :]
    end = names[-1] if frame is None else frame
    poses[end], carrier = motion.pose(end), {f.name: f.body for f in robot.description.frames}.get(end, end)
    if carrier != "ground":
        P_t[..., rows[carrier]] = between(carrier, end)
    armature = np.concatenate([np.broadcast_to(j.type.armature, j.nv) for j in map(robot.joint, robot.joints)])
    V_0_dot = np.concatenate([np.zeros(3), -robot.gravity])
    return PoeFactors(names, S, S_dot, Gamma, G, P_0, P_t, M, ad_S, ad_V, h_V, np.diag(armature), V, V_0_dot)


def _tree_edges(robot: LoopFunctions) -> tuple[dict[str, str], dict[str, str]]:
    """Return the parent of each body, and the joint that carries it; parents first."""
    edges = {}
    for name in robot.joints:
        j = robot.joint(name)
        inner, outer = (j.child, j.parent) if j.reversed else (j.parent, j.child)
        edges[outer] = inner, name
    placed = {"ground": ""}
    while len(placed) <= len(edges):
        placed |= {outer: inner for outer, (inner, _) in edges.items() if inner in placed and outer not in placed}
    del placed["ground"]
    return placed, {outer: edges[outer][1] for outer in placed}
