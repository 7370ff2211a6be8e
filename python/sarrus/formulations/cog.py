"""Dynamics of open and closed mechanisms by the Jacobians of the links' centres of gravity (Sonoda, Ishii and Isobe)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import Array, ArrayLike, common_axes, real_rows
from .._showing import Brief
from ..analysis.independent_coordinates import Coordinates, ReducedForm, reduced_form
from ..analysis.linear_algebra import applied, transposed
from ..description.specs import BodySpec
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.operations import Kinematics
from ..dynamics.options import BatchOptions, Unpack, of_states


@dataclass(frozen=True, eq=False, repr=False)
class CogJacobians(Brief):
    """Dynamics by the links' centres of gravity (Sonoda, Ishii and Isobe): H theta-ddot + B = tau in active coordinates theta.

    Equation numbers are those of the paper. As in the paper, the velocity of a link is [linear; angular], of its centre of gravity, in the world's
    axes: q_i-dot = G_i theta-dot. There are N links and M coordinates. If the mechanism has fewer degrees of freedom than coordinates, these are
    dependent. Then G is the Jacobian of least norm that is correct for all motions that the loops allow, and tau are the efforts of least norm.

    Attributes
    ----------
    coordinates, links : names of the coordinates and of the links
    G, G_dot : (..., N, 6, M) Jacobian of each link, and its time derivative (3-6) [m, rad per rad, m; per s]
    mass : (..., N, 6, 6) mass matrix M_i of each link [kg, kg m2]
    b : (..., N, 6) b_i, gravity force and gyroscopic moment of each link (10) [N, N m]
    bias_acceleration : (..., N, 6) acceleration of each link at theta-ddot = 0, G_i-dot theta-dot plus that of prescribed motions [m/s2, rad/s2]
    """

    coordinates: tuple[str, ...]
    links: tuple[str, ...]
    G: Array
    G_dot: Array
    mass: Array
    b: Array
    bias_acceleration: Array

    @property
    def stack(self) -> Array:
        """G of all links (..., 6 N, M) (9)."""
        return self._stacked(self.G)

    @property
    def stack_derivative(self) -> Array:
        """G-dot of all links (..., 6 N, M) (9)."""
        return self._stacked(self.G_dot)

    def _stacked(self, link_arrays: Array) -> Array:
        return link_arrays.reshape(*link_arrays.shape[:-3], 6 * len(self.links), len(self.coordinates))

    @property
    def link_H(self) -> Array:
        """G_i^T M_i G_i (..., N, M, M) of each link."""
        return np.asarray(transposed(self.G) @ self.mass @ self.G)

    @property
    def link_B(self) -> Array:
        """G_i^T (M_i G_i-dot theta-dot + b_i) (..., N, M) of each link."""
        return applied(transposed(self.G), applied(self.mass, self.bias_acceleration) + self.b)

    @property
    def H(self) -> Array:
        """G^T M G (..., M, M) (17)."""
        return np.asarray(self.link_H.sum(axis=-3))

    @property
    def B(self) -> Array:
        """G^T (M G-dot theta-dot + b) (..., M) (18, corrected)."""
        return np.asarray(self.link_B.sum(axis=-2))

    @property
    def body_G(self) -> Array:
        """Jacobian (..., 3, M) of the whole body's centre of gravity: the linear part of G_0 (1)."""
        masses = self.mass[..., 0, 0]
        moments = np.einsum("...i,...ijk->...jk", masses, self.G[..., :3, :])
        return np.asarray(moments / masses.sum(axis=-1)[..., None, None])

    def forces(self, acceleration: ArrayLike) -> Array:
        """Return F_i = M_i q_i-ddot + b_i (..., N, 6), [force; moment] on each link at its centre of gravity (10) [N, N m].

        Parameters
        ----------
        acceleration : (..., M) theta-ddot [rad/s^2, m/s^2]
        """
        rates = real_rows("acceleration", acceleration, len(self.coordinates), self.G.shape[:-3])
        motion = applied(self.G, rates[..., None, :]) + self.bias_acceleration
        return applied(self.mass, motion) + self.b

    def efforts(self, acceleration: ArrayLike) -> Array:
        """Return tau = G^T F (..., M) (15, 16) [N m, N].

        Parameters
        ----------
        acceleration : (..., M) theta-ddot [rad/s^2, m/s^2]
        """
        return np.asarray(applied(transposed(self.G), self.forces(acceleration)).sum(axis=-2))


@of_states
def cog_jacobians(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None = None, *, active: Coordinates = "actuated",
    time: ArrayLike | None = None,
    **options: Unpack[BatchOptions],
) -> CogJacobians:  # fmt: skip
    """Compute the COG Jacobians of all links in active coordinates, and the equations of motion.

    Armature, friction and springs are not included; :func:`~sarrus.formulations.reduced_dynamics` includes them.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s] that satisfy the constraints; default v: zero
    active : names of joints, as `independent` of :func:`~sarrus.formulations.reduced_dynamics`; at least as many velocities as degrees of freedom
    time : (...) time for prescribed motions [s]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    References
    ----------
    Sonoda, Ishii and Isobe, Dynamics computation of link mechanisms employing COG Jacobian, eqs 1-20, 38-47.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble()
    >>> cog = sarrus.formulations.cog_jacobians(fourbar, q)
    >>> bool(np.allclose(cog.H, sarrus.formulations.reduced_dynamics(fourbar, q, np.zeros(3), independent="actuated").mass_matrix))
    True
    """
    v = np.zeros(robot.nv) if v is None else v
    motion, _ = reduced_form(robot, q, v, active, time, independent=False)
    names, unanswered = motion.coordinates, np.isnan(motion.drift).any(axis=-1, keepdims=True)
    v = np.where(unanswered, np.nan, real_rows("v", v, robot.nv))
    common_axes({"the result": (*v.shape[:-1], len(robot.bodies), 6, robot.nv)})
    state = robot.kinematics(q, v, motion.bias_acceleration)
    links = [_link(state, body, robot.gravity, motion) for body in robot.description.bodies]
    # stack the links along a new axis in front of the axes of a link
    G, G_dot, mass, b, rest = (
        np.stack(np.broadcast_arrays(*each), axis=-1 - axes)
        for each, axes in zip(zip(*links, strict=True), (2, 2, 2, 1, 1), strict=True)
    )
    return CogJacobians(names, robot.bodies, G, G_dot, mass, b, rest)


def _link(
    state: Kinematics, body: BodySpec, gravity: Array, motion: ReducedForm
) -> tuple[Array, Array, Array, Array, Array]:
    """Return G_i, its rate, M_i, b_i and the acceleration at theta-ddot = 0 of one link."""
    R = state.pose(body.name)[..., :3, :3]
    J, J_dot, V, A = (
        function(body.name, expressed_in="world_aligned")
        for function in (state.jacobian, state.jacobian_derivative, state.velocity, state.acceleration)
    )
    turn, turn_dot, w, dw = J[..., :3, :], J_dot[..., :3, :], V[..., :3], A[..., :3]
    # from the body's origin to its centre of gravity: u + w x r
    r, inertia = applied(R, body.inertia.com), R @ body.inertia.about_com @ transposed(R)
    r_dot = np.cross(w, r)
    shift = J[..., 3:, :] + _crossed(turn, r)
    shift_dot = J_dot[..., 3:, :] + _crossed(turn_dot, r) + _crossed(turn, r_dot)
    J_G, J_G_dot = np.concatenate([shift, turn], axis=-2), np.concatenate([shift_dot, turn_dot], axis=-2)
    mass = np.zeros((*R.shape[:-2], 6, 6))
    mass[..., :3, :3], mass[..., 3:, 3:] = body.inertia.mass * np.eye(3), inertia
    weight = np.broadcast_to(-body.inertia.mass * gravity, w.shape)
    b = np.concatenate([weight, np.cross(w, applied(inertia, w))], axis=-1)
    rest = np.concatenate([A[..., 3:] + np.cross(dw, r) + np.cross(w, r_dot), dw], axis=-1)
    return J_G @ motion.jacobian, J_G_dot @ motion.jacobian + J_G @ motion.jacobian_derivative, mass, b, rest


def _crossed(columns: Array, r: Array) -> Array:
    """Return the cross products of columns (..., 3, n) with r (..., 3)."""
    return np.cross(columns, r[..., None], axis=-2)
