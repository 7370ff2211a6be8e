"""SpaceDyn's equations (1999, chapter 3) as the manual has them: link by link, in inertial axes, linear parts first; slow and clear.

Misprints are corrected: 3.24 has no /w and w includes the base, 3.35 means k_i phi_i, end forces enter 3.32 with the sign of 3.18.
"""

import numpy as np

Z = np.array([0.0, 0.0, 1.0])


def tilde(a):
    """Return the skew-symmetric tilde(a) with tilde(a) b = a x b."""
    x, y, z = a
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def c1(angle):
    """Return the direction cosines of a rotation about x, by definition."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, s], [0, -s, c]])


def c2(angle):
    """Return the direction cosines of a rotation about y."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])


def c3(angle):
    """Return the direction cosines of a rotation about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])


def rodrigues(w):
    """Return the rotation by a vector: 3.4 with a unit axis and both signs corrected."""
    angle = np.linalg.norm(w)
    k = tilde(w / angle)
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


class SpaceDyn:
    """A model in SpaceDyn's variables, and its functions."""

    def __init__(self, BB, cc, c0, Qi, J_type, m0, m, inertia0, inertia, ce, Qe):
        self.BB, self.J_type, self.ce, self.Qe = [b - 1 for b in BB], J_type, ce, Qe
        self.n, self.cc, self.c0, self.Qi = len(BB), cc, c0, Qi
        self.m0, self.m, self.inertia0 = m0, m, inertia0
        self.inertia = [inertia[:, 3 * i : 3 * i + 3] for i in range(self.n)]
        self.ends = [i for i in range(self.n) if i not in self.BB]

    def to_joint(self, i):
        """Return c_{B_i i}, from the centroid of the link below."""
        return self.c0[:, i] if self.BB[i] < 0 else self.cc[:, self.BB[i], i]

    def places(self, R0, A0, q):
        """calc_aa, calc_pos (3.1): attitudes and centroids of the links, positions and axes of the joints."""
        AA, RR, joints, axes = [], [], [], []
        for i in range(self.n):
            A, R = (A0, R0) if self.BB[i] < 0 else (AA[self.BB[i]], RR[self.BB[i]])
            roll, pitch, yaw = self.Qi[:, i]
            turns = self.J_type[i] == "R"
            AA.append(A @ (c3(q[i] * turns) @ c3(yaw) @ c2(pitch) @ c1(roll)).T)
            joints.append(R + A @ self.to_joint(i))
            axes.append(AA[i] @ Z)
            RR.append(joints[i] + axes[i] * q[i] * (not turns) - AA[i] @ self.cc[:, i, i])
        return AA, RR, joints, axes

    def end(self, R0, A0, q, e):
        """f_kin_e: position and attitude of the e-th end-point, from 0."""
        AA, RR, *_ = self.places(R0, A0, q)
        i = self.ends[e]
        roll, pitch, yaw = self.Qe[:, i]
        return RR[i] + AA[i] @ self.ce[:, i], AA[i] @ (c3(yaw) @ c2(pitch) @ c1(roll)).T

    def motion(self, R0, A0, v0, w0, q, qd, vd0, wd0, qdd):
        """calc_vel, calc_acc (3.8-3.15): v, w, v-dot, w-dot of the links' centroids."""
        AA, _, _, axes = self.places(R0, A0, q)
        moving = []
        for i in range(self.n):
            v, w, vd, wd = (v0, w0, vd0, wd0) if self.BB[i] < 0 else moving[self.BB[i]]
            c = (A0 if self.BB[i] < 0 else AA[self.BB[i]]) @ self.to_joint(i)
            v_joint = v + np.cross(w, c)
            vd_joint = vd + np.cross(wd, c) + np.cross(w, np.cross(w, c))
            k, own = axes[i], AA[i] @ self.cc[:, i, i]
            if self.J_type[i] == "R":
                wd = wd + np.cross(w, k * qd[i]) + k * qdd[i]
                w = w + k * qd[i]
                slide, slide_rate, slide_rate2 = 0.0 * k, 0.0 * k, 0.0 * k
            else:
                slide, slide_rate, slide_rate2 = k * q[i], k * qd[i], k * qdd[i]
            r = slide - own
            moving.append(
                (
                    v_joint + np.cross(w, r) + slide_rate,
                    w,
                    vd_joint
                    + np.cross(wd, r)
                    + np.cross(w, np.cross(w, r))
                    + 2 * np.cross(w, slide_rate)
                    + slide_rate2,
                    wd,
                )
            )
        return moving

    def way(self, i):
        """j_num: the joints from the base to link i."""
        return [] if i < 0 else [*self.way(self.BB[i]), i]

    def jacobians(self, R0, A0, q, point, i):
        """3.25, 3.26: J_T and J_R (3, n) of a point of link i."""
        _, _, joints, axes = self.places(R0, A0, q)
        J_T, J_R = np.zeros((3, self.n)), np.zeros((3, self.n))
        for j in self.way(i):
            if self.J_type[j] == "R":
                J_T[:, j], J_R[:, j] = np.cross(axes[j], point - joints[j]), axes[j]
            else:
                J_T[:, j] = axes[j]
        return J_T, J_R

    def hh(self, R0, A0, q):
        """calc_hh (3.18-3.28): (6 + n, 6 + n)."""
        AA, RR, *_ = self.places(R0, A0, q)
        w = self.m0 + sum(self.m)
        H_w, H_wq = A0 @ self.inertia0 @ A0.T, np.zeros((3, self.n))
        H_q, J_Tw, first = np.zeros((self.n, self.n)), np.zeros((3, self.n)), np.zeros(3)
        for i in range(self.n):
            I, r, m = AA[i] @ self.inertia[i] @ AA[i].T, RR[i] - R0, self.m[i]
            J_T, J_R = self.jacobians(R0, A0, q, RR[i], i)
            first = first + m * r
            J_Tw += m * J_T
            H_w = H_w + I + m * tilde(r).T @ tilde(r)
            H_wq += I @ J_R + m * tilde(r) @ J_T
            H_q += J_R.T @ I @ J_R + m * J_T.T @ J_T
        return np.block([[w * np.eye(3), tilde(first).T, J_Tw], [tilde(first), H_w, H_wq], [J_Tw.T, H_wq.T, H_q]])

    def r_ne(self, R0, A0, v0, w0, q, qd, vd0, wd0, qdd, Fe=None):
        """Newton and Euler (3.30-3.39): [F_0; N_0; tau], and separately the first six of the joints on the base. Fe: (n, 6)."""
        AA, RR, joints, axes = self.places(R0, A0, q)
        moving = self.motion(R0, A0, v0, w0, q, qd, vd0, wd0, qdd)
        Fe = np.zeros((self.n, 6)) if Fe is None else Fe
        f, n, tau = np.zeros((self.n, 3)), np.zeros((self.n, 3)), np.zeros(self.n)
        on_base = np.zeros(6)
        for i in reversed(range(self.n)):
            _, w, vd, wd = moving[i]
            I = AA[i] @ self.inertia[i] @ AA[i].T
            F, N = self.m[i] * vd, I @ wd + np.cross(w, I @ w)
            # moments about the joint's place on the link below
            f[i] += F - Fe[i, :3]
            n[i] += N + np.cross(RR[i] - joints[i], F)
            n[i] -= np.cross(RR[i] + AA[i] @ self.ce[:, i] - joints[i], Fe[i, :3]) + Fe[i, 3:]
            tau[i] = (n[i] if self.J_type[i] == "R" else f[i]) @ axes[i]
            if (b := self.BB[i]) < 0:
                on_base += [*f[i], *(np.cross(joints[i] - R0, f[i]) + n[i])]
            else:
                f[b] += f[i]
                n[b] += np.cross(joints[i] - joints[b], f[i]) + n[i]
        I = A0 @ self.inertia0 @ A0.T
        own = [*(self.m0 * vd0), *(I @ wd0 + np.cross(w0, I @ w0))]
        return np.concatenate([own + on_base, tau]), on_base

    def f_dyn(self, R0, A0, v0, w0, q, qd, tau, Fe=None):
        """3.29: [v0-dot; w0-dot; q-ddot]."""
        none = np.zeros(3)
        bias, _ = self.r_ne(R0, A0, v0, w0, q, qd, none, none, np.zeros(self.n), Fe)
        return np.linalg.solve(self.hh(R0, A0, q), np.concatenate([np.zeros(6), tau]) - bias)

    def simulate(self, R0, A0, v0, w0, q, qd, tau, duration, steps):
        """Integrate all nine entries of the attitude by RK4: R0, A0, q at the end."""
        cut = np.cumsum([3, 9, 3, 3, self.n])

        def rate(x):
            R0, A0, v0, w0, q, qd = np.split(x, cut)
            a = self.f_dyn(R0, A0.reshape(3, 3), v0, w0, q, qd, tau)
            return np.concatenate([v0, (tilde(w0) @ A0.reshape(3, 3)).ravel(), a[:6], qd, a[6:]])

        x, h = np.concatenate([R0, A0.ravel(), v0, w0, q, qd]), duration / steps
        for _ in range(steps):
            k1 = rate(x)
            k2 = rate(x + h / 2 * k1)
            k3 = rate(x + h / 2 * k2)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + h * k3))
        R0, A0, _, _, q, _ = np.split(x, cut)
        return R0, A0.reshape(3, 3), q
