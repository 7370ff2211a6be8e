"""Slow reference: dynamics of a tree, dense, in world axes, by definition.

Newton's and Euler's equations give the force of each body about its centre of mass. D'Alembert's principle projects it onto the generalised
velocities with the bodies' Jacobians. There are no recursions over forces, no spatial algebra and no link frames.
"""

import numpy as np

from .extended import solve
from .joint_motion import coordinate_rate, skew
from .kinematics import STEP, Tree


class Dense(Tree):
    """Slow reference for trees; methods have the names and meaning of `sarrus.Mechanism`, for one state at a time.

    Examples
    --------
    >>> Dense(robot.description).mass_matrix(q)                                          # doctest: +SKIP
    >>> Dense(robot.description, dtype=np.longdouble).inverse_dynamics(q, v, a)          # doctest: +SKIP
    """

    def __init__(self, description, *, closing=(), dtype=np.float64):
        super().__init__(description, closing=closing, dtype=dtype)
        self.mass = np.array([b.inertia.mass for b in self.bodies], dtype)
        self.com = np.array([b.inertia.com for b in self.bodies], dtype).reshape(-1, 3)
        self.about_com = np.array([b.inertia.about_com for b in self.bodies], dtype).reshape(-1, 3, 3)
        names = "armature", "damping", "friction", "stiffness", "rest"
        stack = {name: np.zeros(self.nv, dtype) for name in names}
        for joint, spec in self.joints.items():
            for name, values in stack.items():
                values[self.v_slice[joint]] = getattr(spec.joint, name)
        self.armature, self.damping, self.friction, self.stiffness, self.rest = stack.values()

    # -- what Newton and Euler need to know of the bodies

    def centers(self, place):
        """Return the centres of mass (bodies, 3)."""
        return place.p[:-1] + np.einsum("bij,bj->bi", place.R[:-1], self.com)

    def inertias(self, place):
        """Return the inertia tensors about the centres of mass, world axes (bodies, 3, 3)."""
        return place.R[:-1] @ self.about_com @ place.R[:-1].transpose(0, 2, 1)

    def body_jacobians(self, q):
        """Return J_w, J_c (bodies, 3, nv): v -> angular velocity of each body, velocity of its centre of mass."""
        J = self.jacobians_at(self.centers, q)
        return J[:, :3], J[:, 3:]

    def jacobians_at(self, points, q):
        """Return (bodies, 6, nv) of one point in each body, points(place) (bodies, 3), along world axes."""
        place = self.place(q)
        J = [self.point_jacobian(place, b, point) for b, point in enumerate(points(place))]
        return np.array(J).reshape(len(self.bodies), 6, self.nv)

    def body_accelerations(self, q, v, a, base_velocity=None, base_acceleration=None):
        """w, alpha, a_c (bodies, 3): of each body and its centre of mass, along the ground's axes.

        The ground may move: relative motion, transport and Coriolis' term, as in any textbook.
        """
        q, v, a = self._array(q), self._array(v), self._array(a)
        rest = np.zeros(6)
        # only the rotation counts of the ground's velocity: uniform motion is felt by nobody
        w_0 = self._array(rest if base_velocity is None else base_velocity)[:3]
        alpha_0, a_0 = self._array(rest if base_acceleration is None else base_acceleration).reshape(2, 3)
        J_w, J_c = self.body_jacobians(q)
        Jdot_w = self.rate(lambda q: self.body_jacobians(q)[0], q, v)
        Jdot_c = self.rate(lambda q: self.body_jacobians(q)[1], q, v)
        c = self.centers(self.place(q))
        w, alpha = w_0 + J_w @ v, alpha_0 + np.cross(w_0, J_w @ v) + J_w @ a + Jdot_w @ v
        transport = a_0 + np.cross(alpha_0, c) + np.cross(w_0, np.cross(w_0, c))
        return w, alpha, transport + 2 * np.cross(w_0, J_c @ v) + J_c @ a + Jdot_c @ v

    def required(self, q, v, a, wrenches=None, base_velocity=None, base_acceleration=None):
        """Return moment about the centre of mass, and force (bodies, 3), that the motion requires, world axes."""
        place = self.place(q)
        c, inertias = self.centers(place), self.inertias(place)
        w, alpha, a_c = self.body_accelerations(q, v, a, base_velocity, base_acceleration)
        spin = np.einsum("bij,bj->bi", inertias, w)
        moment = np.einsum("bij,bj->bi", inertias, alpha) + np.cross(w, spin)
        force = self.mass[:, None] * (a_c - self.gravity)
        for frame, wrench in (wrenches or {}).items():
            b, R, p = self.frame_at(place, frame)
            if b < len(self.bodies):  # the ground needs no help
                m, f = R @ self._array(wrench)[:3], R @ self._array(wrench)[3:]
                force[b] -= f
                moment[b] -= m + np.cross(p - c[b], f)
        return moment, force

    # -- dynamics

    def inverse_dynamics(
        self,
        q,
        v,
        a,
        *,
        wrenches=None,
        base_velocity=None,
        base_acceleration=None,
        return_reactions=False,
    ):
        moment, force = self.required(q, v, a, wrenches, base_velocity, base_acceleration)
        J_w, J_c = self.body_jacobians(q)
        rigid = np.einsum("bij,bi->j", J_w, moment) + np.einsum("bij,bi->j", J_c, force)
        tau = rigid + self.armature * self._array(a) + self.joint_forces(q, v)
        return (tau, self._reactions(q, moment, force)) if return_reactions else tau

    def joint_forces(self, q, v):
        """Return the forces (nv,) of damping, Coulomb friction and springs."""
        v = self._array(v)
        return self.damping * v + self.friction * np.sign(v) + self.spring_forces(q)

    def spring_forces(self, q):
        """Return the force (nv,) against the springs: (dq/dv)^T dU/dq, which is dU/dq except for the planar joint."""
        q = self._array(q)
        tau = np.zeros(self.nv, self.dtype)
        for name, spec in self.joints.items():
            where = self.v_slice[name]
            if np.any(self.stiffness[where]):
                x = q[self.q_slice[name]]
                if len(x) != spec.joint.nv:
                    raise NotImplementedError(f"a spring on the quaternion of joint {name!r}")
                rates = np.array([coordinate_rate(spec.joint, x, e) for e in np.eye(len(x))])
                tau[where] = rates @ (self.stiffness[where] * (x - self.rest[where]))
        return tau

    def reactions(self, q, v, a, *, wrenches=None, base_velocity=None, base_acceleration=None):
        """joint name -> [moment; force] (6,) that the predecessor gives the successor through the joint.

        All of it, drive and bearing, at the origin of the successor's joint frame and in its axes: what
        the free bodies beyond the joint need together.
        """
        return self._reactions(q, *self.required(q, v, a, wrenches, base_velocity, base_acceleration))

    def _reactions(self, q, moment, force):
        place = self.place(q)
        c = self.centers(place)
        wrenches = {}
        for name in self.joints:
            R, o, beyond = place.joint_R[name], place.joint_p[name], self.carries[name][:-1]
            wrenches[name] = np.concatenate(
                [R.T @ (beyond @ (moment + np.cross(c - o, force))), R.T @ (beyond @ force)]
            )
        return wrenches

    def mass_matrix(self, q):
        J_w, J_c = self.body_jacobians(q)
        turning = np.einsum("bki,bkl,blj->ij", J_w, self.inertias(self.place(q)), J_w)
        return turning + np.einsum("b,bki,bkj->ij", self.mass, J_c, J_c) + np.diag(self.armature)

    def bias_forces(self, q, v):
        return self.inverse_dynamics(q, v, np.zeros(self.nv))

    def gravity_forces(self, q):
        _, J_c = self.body_jacobians(q)
        return -np.einsum("bij,b,i->j", J_c, self.mass, self.gravity)

    def forward_dynamics(self, q, v, tau, *, wrenches=None, return_reactions=False):
        zero = np.zeros(self.nv)
        a = self.solve(q, self._array(tau) - self.inverse_dynamics(q, v, zero, wrenches=wrenches))
        return (a, self.reactions(q, v, a, wrenches=wrenches)) if return_reactions else a

    def solve(self, q, b):
        """Return M(q)^-1 b, refined in the working precision by its residual."""
        M = self.mass_matrix(q)
        x = np.zeros_like(b, self.dtype)
        for _ in range(4):
            x = x + np.linalg.solve(M.astype(float), (b - M @ x).astype(float))
        return x

    def mass_matrix_inverse(self, q):
        return self.solve(q, np.eye(self.nv))

    def coriolis_matrix(self, q, v):
        """Return C. C v and the skewness of dM/dt - 2 C do not determine C; here C(q, v) w = C(q, w) v."""
        return self.christoffel_symbols(q) @ self._array(v)

    def christoffel_symbols(self, q):
        """Christoffel's symbols of the first kind [i, j, k], from derivatives of M that are exact to rounding.

        Only for mechanisms all of whose joints have v = dq/dt; no coordinates belong to others' v.
        """
        for spec in self.joints.values():
            if type(spec.joint).__name__ in ("Spherical", "Free", "Planar"):
                raise NotImplementedError(f"joint {spec.name!r} has no coordinates whose rate is v")
        q = self._array(q)
        dM = [self.mass_matrix(q + 1j * STEP * e).imag / STEP for e in np.eye(self.nv)]
        dM = np.reshape(dM, (self.nv,) * 3)  # [k, i, j]
        return 0.5 * (dM.transpose(1, 2, 0) + dM.transpose(1, 0, 2) - dM)

    # -- momentum and energy

    def center_of_mass(self, q):
        return self.mass @ self.centers(self.place(q)) / np.sum(self.mass)

    def center_of_mass_jacobian(self, q):
        return np.einsum("b,bij->ij", self.mass, self.body_jacobians(q)[1]) / np.sum(self.mass)

    def momentum_matrix(self, q, about):
        """Return (6, nv): v -> [angular momentum about a fixed point; linear momentum], world axes."""
        place = self.place(q)
        J_w, J_c = self.body_jacobians(q)
        spins = self.inertias(place) @ J_w
        arms = [m * skew(c - about) for m, c in zip(self.mass, self.centers(place), strict=True)]
        angular = sum(spin + arm @ J for spin, arm, J in zip(spins, arms, J_c, strict=True))
        return np.concatenate([angular, np.einsum("b,bij->ij", self.mass, J_c)])

    def momentum(self, q, v):
        return self.momentum_matrix(q, np.zeros(3)) @ self._array(v)

    def centroidal_momentum_matrix(self, q):
        return self.momentum_matrix(q, self.center_of_mass(q))

    def centroidal_momentum(self, q, v):
        return self.centroidal_momentum_matrix(q) @ self._array(v)

    def centroidal_momentum_bias(self, q, v):
        return self.rate(self.centroidal_momentum_matrix, q, v) @ self._array(v)

    def kinetic_energy(self, q, v):
        v = self._array(v)
        J_w, J_c = self.body_jacobians(q)
        w, u = J_w @ v, J_c @ v
        turning = np.einsum("bi,bij,bj->", w, self.inertias(self.place(q)), w)
        return 0.5 * (turning + np.einsum("b,bi,bi->", self.mass, u, u) + self.armature @ (v * v))

    def potential_energy(self, q):
        q = self._array(q)
        energy = -self.mass @ self.centers(self.place(q)) @ self.gravity
        for name, where in self.v_slice.items():
            if np.any(self.stiffness[where]):
                energy += 0.5 * self.stiffness[where] @ (q[self.q_slice[name]] - self.rest[where]) ** 2
        return energy

    # -- floating bases: momentum about the world's origin, and nothing else, says how the base moves

    def _base_and_joints(self):
        (base,) = (
            where
            for name, where in self.v_slice.items()
            if "ground" in (self.joints[name].parent, self.joints[name].child)
        )
        return np.arange(self.nv)[base], np.delete(np.arange(self.nv), base)

    def motions_without_momentum(self, q):
        """Return N (nv, nv - 6): joint velocities -> v at zero momentum."""
        base, joints = self._base_and_joints()
        A = self.momentum_matrix(q, np.zeros(3))
        N = np.zeros((self.nv, len(joints)), A.dtype)
        N[joints] = np.eye(len(joints))
        N[base] = -solve(A[:, base], A[:, joints])
        return N

    def generalized_jacobian(self, q, frame, *, expressed_in="frame"):
        return self.jacobian(q, frame, expressed_in=expressed_in) @ self.motions_without_momentum(q)

    def generalized_jacobian_derivative(self, q, v, frame, *, expressed_in="frame"):
        return self.rate(lambda q: self.generalized_jacobian(q, frame, expressed_in=expressed_in), q, v)

    def momentum_velocity(self, q, v, momentum=None):
        base, joints = self._base_and_joints()
        v = self.motions_without_momentum(q) @ self._array(v)[joints]
        if momentum is not None:
            v[base] += solve(self.momentum_matrix(q, np.zeros(3))[:, base], self._array(momentum))
        return v

    # -- operational space and identification

    def omega(self, q, frame):
        return self.solve(q, self.jacobian(q, frame).T)

    def operational_inertia_inverse(self, q, frame):
        return self.jacobian(q, frame) @ self.omega(q, frame)

    def operational_inertia(self, q, frame):
        return np.linalg.inv(self.operational_inertia_inverse(q, frame).astype(float))

    def regressor(self, q, v, a):
        """(nv, 10 bodies): the force that each inertial parameter, alone and equal to one, asks for.

        Parameters [m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz] about the body's origin, so Newton and Euler
        stand there: force = m a_o + alpha x h + w x (w x h), moment = I alpha + w x I w + h x a_o, with
        h = m c and gravity in a_o.
        """
        q, v, a = self._array(q), self._array(v), self._array(a)
        place = self.place(q)

        def origin_jacobians(q):
            return self.jacobians_at(lambda place: place.p[:-1], q)

        J, J_dot = origin_jacobians(q), self.rate(origin_jacobians, q, v)
        columns = []
        for b in range(len(self.bodies)):
            w = J[b, :3] @ v
            alpha, a_o = (J[b] @ a + J_dot[b] @ v).reshape(2, 3)
            a_o = a_o - self.gravity
            for m, x, y, z, xx, xy, yy, xz, yz, zz in np.eye(10):
                h = place.R[b] @ np.array([x, y, z])
                tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
                inertia = place.R[b] @ tensor @ place.R[b].T
                moment = inertia @ alpha + np.cross(w, inertia @ w) + np.cross(h, a_o)
                force = m * a_o + np.cross(alpha, h) + np.cross(w, np.cross(w, h))
                columns.append(J[b].T @ np.concatenate([moment, force]))
        return np.array(columns).reshape(10 * len(self.bodies), self.nv).T
