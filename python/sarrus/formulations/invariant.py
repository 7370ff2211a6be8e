"""Coordinate-invariant equations of motion: products of exponentials, and the factors of M and C (Ploen and Park; Li and Wu 2011, 4.5).

With the velocities V = (V_1, ..., V_N) of the bodies, each in the frame of its body, and the forces on the bodies in the same frames,

  V     = Gamma V + S v + P_0 V_0                               each body moves with its parent, and along its joint
        = G (S v + P_0 V_0)                                     G = (1 - Gamma)^-1 = 1 + Gamma + Gamma^2 + ...
  V-dot = G (S a + S-dot v + ad_S (Gamma V + P_0 V_0) + P_0 V_0-dot)
  tau   = S^T G^T (M V-dot + ad_V^T M V + P_t^T F_t)

Gamma contains Ad of the parent's pose in the body's frame; ad_S has -ad(S_i v_i) and ad_V has -ad(V_i) on their diagonals. "The slides" are Li and
Wu's lecture notes. They treat a chain, with Gamma next to the diagonal, and joints with constant axes, so that S-dot = 0. Here the bodies form any
tree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import spatial
from .._arrays import Array, ArrayLike, real_array, real_rows
from .._showing import Brief
from ..analysis.linear_algebra import applied, transposed
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.options import StateOptions, Unpack
from ..dynamics.states import of_states
from ..errors import ModelError
from ..mechanism import checked_mechanism


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
    checked_mechanism(robot, "robot")
    for name in robot.joints:
        if (joint := robot.joint(name)).nv > 1:
            raise ModelError(
                f"joint '{name}' has {joint.nv} freedoms ({joint.type}); expected a joint with one freedom, which has one screw: for other joints use joint_bases"
            )
    return robot._joint_screws(robot.neutral() if q is None else q)


def poe_factors(
    robot: LoopFunctions,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    frame: str | None = None,
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
        # -ad of (f, n) contains -f~ and -n~ in these blocks
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
    poses[end], carrier = motion.pose(end), _body_of(robot, end)
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


def _body_of(robot: LoopFunctions, frame: str) -> str:
    return {f.name: f.body for f in robot.description.frames}.get(frame, frame)
