"""Slow reference for closed chains: constraints from geometry, dynamics by projection onto the free motions.

For a loop joint, its coordinates x are those whose pose is nearest to the relative pose X of its two frames; with its motion space Phi(x), the
relative velocity must be in that space. No rows are listed by joint type: rows are any basis of the complement of Phi, and their rates come from a
complex step along the motion of q, x and t together.

Accelerations are a = J^+ gamma + Z y with J Z = 0, and y follows from Z^T (M a + h - tau) = 0, to which reactions do not contribute. Multipliers are
computed last, those of least norm.
"""

import numpy as np

from .dense import Dense
from .extended import orthonormal, singular_vectors, solve
from .joint_motion import compose, coordinate_rate, cross, joint_coordinates, joint_motion, turned, unskew
from .kinematics import STEP


class Closed(Dense):
    """Slow reference for closed chains; methods have the names and meaning of `sarrus.Mechanism`, for one state at a time.

    Parameters
    ----------
    description : as `sarrus.Mechanism.description`
    closing : names of the joints that close loops, as `sarrus.Mechanism.loop_joints`; if not given, those described so
    dtype : numpy.float64, or numpy.longdouble where rounding is asked about
    negligible : singular values of J below this times the largest, or one, count as zero
    """

    def __init__(self, description, *, closing=None, dtype=np.float64, negligible=1e-9):
        if closing is None:
            closing = [spec.name for spec in description.joints if spec.loop or spec.laws]
        super().__init__(description, closing=closing, dtype=dtype)
        self.negligible = negligible
        holding = (spec for spec in description.joints if spec.joint.kind != "Cable")  # a cable holds nothing
        self.loops = {spec.name: spec for spec in holding if spec.name in closing}
        self.relations = {spec.name: spec for spec in description.constraints}
        self.rows, self.nc, self.holonomic = {}, 0, []
        for name, spec in (self.loops | self.relations).items():
            count = row_count(spec)
            self.rows[name] = slice(self.nc, self.nc + count)
            self.nc += count
            kind = type(spec).__name__
            self.holonomic += {"RollingSpec": [True] + [False] * (count - 1), "PfaffianSpec": [False] * count}.get(
                kind, [True] * count
            )
        self.holonomic = np.array(self.holonomic, bool)

    def length(self):
        """Return the mean of the bodies' largest distances between attachment points, and of the constraints' own lengths."""
        held, own = {}, []
        for spec in [*self.joints.values(), *self.loops.values()]:
            held.setdefault(spec.parent, []).append(spec.at_parent.translation)
            held.setdefault(spec.child, []).append(spec.at_child.translation)
        for spec in self.relations.values():
            if own_length := {"DistanceSpec": "length", "RollingSpec": "radius"}.get(type(spec).__name__):
                own.append(getattr(spec, own_length))
            for body, point in spec.points:
                held.setdefault(body, []).append(point)
        reach = {body: max(np.linalg.norm(np.subtract(p, r)) for p in at for r in at) for body, at in held.items()}
        ground = reach.pop("ground", 0.0)
        return np.mean([x for x in [*reach.values(), *own] if x] or [ground or 1.0])

    # -- closing joints

    def closing_motion(self, spec, place, time):
        """R, p: pose of the child's joint frame in the parent's; J (6, nv), c (6,): it moves there with J v - c.

        [angular; linear] velocity at the child's frame's origin, in the axes of the parent's frame.
        """
        parent, child = self.index[spec.parent], self.index[spec.child]
        R_P = place.R[parent] @ spec.at_parent.rotation
        p_P = place.p[parent] + place.R[parent] @ spec.at_parent.translation
        R_C = place.R[child] @ spec.at_child.rotation
        p_C = place.p[child] + place.R[child] @ spec.at_child.translation
        c = np.zeros(6)
        if spec.laws:
            g, g_rate = np.array([law_values(law, time) if law else (0.0, 0.0) for law in spec.laws]).T
            kinds, axes = ["turn"] * 3 + ["slide"] * 3, np.eye(3)[[0, 1, 2, 0, 1, 2]]
            R_g, p_g, J_g = compose(list(zip(kinds, axes, g, strict=True)))  # as a gimbal's
            w, u = R_P @ J_g[:3] @ g_rate, R_P @ J_g[3:] @ g_rate
            p_P, R_P = p_P + R_P @ p_g, R_P @ R_g
            c = np.concatenate([w, u + cross(w, p_C - p_P)])
        J = self.point_jacobian(place, child, p_C) - self.point_jacobian(place, parent, p_C)
        return R_P.T @ R_C, R_P.T @ (p_C - p_P), turned(R_P.T, J), turned(R_P.T, c)

    def closing_coordinates(self, q, time=0.0):
        """Return name -> coordinates of each loop joint, nearest to its relative pose."""
        place = self.place(q)
        poses = {name: self.closing_motion(spec, place, self._array(time))[:2] for name, spec in self.loops.items()}
        return {
            name: joint_coordinates(self.loops[name].joint, *pose).astype(self.dtype) for name, pose in poses.items()
        }

    def closing_velocities(self, q, v, time=0.0):
        """Return name -> velocities of each loop joint, nearest to its relative velocity."""
        place, x = self.place(q), self.closing_coordinates(q, time)
        velocities = {}
        for name, spec in self.loops.items():
            _, _, J, c = self.closing_motion(spec, place, self._array(time))
            velocities[name] = share_of(joint_motion(spec.joint, x[name])[2], J @ self._array(v) - c)
        return velocities

    def closing_bases(self, x):
        """Return name -> (6, rows) orthonormal wrenches that a loop joint transmits, in the parent's axes at the child's origin."""
        return {name: complement(joint_motion(spec.joint, x[name])[2]) for name, spec in self.loops.items()}

    # -- rows

    def _velocity_rows(self, q, time, x, bases):
        """Return J (nc, nv), c (nc,) with J v = c. Analytic in q, time and x."""
        place = self.place(q)
        J = np.zeros((self.nc, self.nv), np.result_type(place.p, q))
        c = np.zeros(self.nc, J.dtype)
        for name, rows in self.rows.items():
            if name in self.loops:
                spec = self.loops[name]
                _, _, J_6, c_6 = self.closing_motion(spec, place, time)
                Phi = joint_motion(spec.joint, x[name])[2]
                both = np.concatenate([J_6, c_6[:, None]], axis=1)
                both = bases[name].T @ (both - Phi @ share_of(Phi, both))
                J[rows], c[rows] = both[:, :-1], both[:, -1]
            else:
                J[rows], c[rows], _ = self._relation(self.relations[name], q, place, time)
        return J, c

    def _point(self, place, body, point):
        b = self.index[body]
        return b, place.p[b] + place.R[b] @ np.asarray(point)

    def _relation(self, spec, q, place, time):
        """Return the rows J and c of a relation, and phi."""
        ask = {
            "DistanceSpec": self._distance,
            "RollingSpec": self._rolling,
            "CouplerSpec": self._coupler,
            "PfaffianSpec": self._pfaffian,
        }
        return ask[type(spec).__name__](spec, q, place, time)

    def _distance(self, spec, q, place, time):
        (b_0, p_0), (b_1, p_1) = (self._point(place, *end) for end in (spec.first, spec.second))
        along = p_1 - p_0
        length = np.sqrt(along @ along)
        J = self.point_jacobian(place, b_1, p_1)[3:] - self.point_jacobian(place, b_0, p_0)[3:]
        return along / length @ J, 0.0, length - spec.length

    def _rolling(self, spec, q, place, time):
        body, center = self._point(place, spec.body, spec.center)
        on, point = self._point(place, spec.on, spec.point)
        if spec.on_radius is not None:
            outward = center - point
            distance = np.sqrt(outward @ outward)
            reach = spec.radius + spec.on_radius
            up, height = outward / distance, distance - abs(reach)
            contact = point + np.sign(reach) * spec.on_radius * up
        else:
            up = place.R[on] @ unit(np.asarray(spec.normal, float))
            toward = up
            if spec.axle is not None:
                axle = place.R[body] @ unit(np.asarray(spec.axle, float))
                toward = unit(up - axle * (axle @ up))
            contact = center - spec.radius * toward
            height = up @ (contact - point)
        # the normal and two directions across it, which turn with the body underneath
        side = place.R[on][:, np.argmin(np.abs(place.R[on].real.T @ up.real))]
        side = unit(side - up * (up @ side))
        directions = np.stack([up, side, cross(up, side)])
        relative = self.point_jacobian(place, body, contact) - self.point_jacobian(place, on, contact)
        J = directions @ relative[3:]
        if not spec.spin:
            J = np.vstack([J, up @ relative[:3]])
        return J, np.zeros(len(J)), np.array([height] + [0 * height] * (len(J) - 1))

    def _coupler(self, spec, q, place, time):
        target, target_rate = law_values(spec.law, time) if spec.law else (0.0, 0.0)
        J, value = np.zeros(self.nv, q.dtype), -spec.offset - target
        for name, k, coefficients in spec.terms:
            joint, x = self.joints[name].joint, q[self.q_slice[name]]
            value = value + sum(c * x[k] ** n for n, c in enumerate(coefficients, 1))
            slope = sum(n * c * x[k] ** (n - 1) for n, c in enumerate(coefficients, 1))
            J[self.v_slice[name]] += slope * np.array([coordinate_rate(joint, x, e)[k] for e in np.eye(joint.nv)])
        for product in spec.products:
            at = [q[self.q_slice[name]] for name, _, _ in product]
            factors = [law_values(function, x[k]) for x, (_, k, function) in zip(at, product, strict=True)]
            value = value + np.prod([f for f, _ in factors])
            for i, (x, (name, k, _)) in enumerate(zip(at, product, strict=True)):
                joint, others = self.joints[name].joint, [f for j, (f, _) in enumerate(factors) if j != i]
                rates = np.array([coordinate_rate(joint, x, e)[k] for e in np.eye(joint.nv)])
                J[self.v_slice[name]] += factors[i][1] * np.prod(others) * rates
        return J, target_rate, value

    def _pfaffian(self, spec, q, place, time):
        columns = np.concatenate([np.arange(self.nv)[self.v_slice[name]] for name in spec.joints])
        J = np.zeros((len(spec.value), self.nv), q.dtype)
        J[:, columns] = spec.rows(q) if callable(spec.rows) else np.asarray(spec.rows)
        return J, np.asarray(spec.value, float), np.zeros(len(spec.value))

    # -- functions of a state

    def constraint_rows(self, q, v=None, time=0.0):
        """Return J (nc, nv), c (nc,) and, if v is given, gamma (nc,): J v = c and J a = gamma."""
        q, time = self._array(q), self._array(time)
        x = self.closing_coordinates(q, time)
        bases = self.closing_bases(x)
        J, c = self._velocity_rows(q, time, x, bases)
        if v is None:
            return J, c
        v = self._array(v)
        moved = {
            name: x[name] + 1j * STEP * coordinate_rate(self.loops[name].joint, x[name], x_rate)
            for name, x_rate in self.closing_velocities(q, v, time).items()
        }
        moved_q = q + 1j * STEP * self.coordinate_rate(q, v)
        J_rate, c_rate = (y.imag / STEP for y in self._velocity_rows(moved_q, time + 1j * STEP, moved, bases))
        return J, c, c_rate - J_rate @ v

    def constraint_jacobian(self, q, *, time=0.0):
        return self.constraint_rows(q, time=time)[0]

    def constraint_velocity(self, q, *, time=0.0):
        return self.constraint_rows(q, time=time)[1]

    def constraint_bias(self, q, v, *, time=0.0):
        return self.constraint_rows(q, v, time)[2]

    def constraint_residual(self, q, *, time=0.0):
        """Return phi (nc,): displacements of loop joints to first order, lengths, and values of relations. Not used in `rate`."""
        q, time = self._array(q), self._array(time)
        place, x = self.place(q), self.closing_coordinates(q, time)
        bases = self.closing_bases(x)
        phi = np.zeros(self.nc, self.dtype)
        for name, rows in self.rows.items():
            if name in self.loops:
                R, p, _, _ = self.closing_motion(self.loops[name], place, time)
                R_J, p_J, _ = joint_motion(self.loops[name].joint, x[name])
                off = R @ R_J.T
                phi[rows] = bases[name].T @ np.concatenate([unskew(off) / 2, p - p_J])
            else:
                phi[rows] = self._relation(self.relations[name], q, place, time)[2]
        return phi

    def close(self, q, *, time=0.0, fixed=(), tolerance=1e-13):
        """Return a configuration near q that closes every loop (Levenberg-Marquardt); ValueError if none is found.

        `fixed` names joints whose coordinates do not change.
        """
        q, time = self._array(q), self._array(time)
        loose = np.ones(self.nv, bool)
        for name in fixed:
            loose[self.v_slice[name]] = False
        damping = 1e-3
        phi = self.constraint_residual(q, time=time)
        for _ in range(200):
            if np.sqrt(phi @ phi) <= tolerance:
                return q
            J = self.constraint_rows(q, time=time)[0] * self.holonomic[:, None] * loose
            B, s, V = singular_vectors(J)
            size = phi @ phi
            share = np.where(s > self.negligible * s.max(initial=1), 1 / (s**2 + damping * min(size, 1) + 1e-300), 0)
            step = -V @ (share * (B.T @ phi))
            tried = self.integrate(q, step)
            tried_phi = self.constraint_residual(tried, time=time)
            if tried_phi @ tried_phi < size:
                q, phi, damping = tried, tried_phi, damping / 4
            else:
                damping *= 8
        raise ValueError(f"the loops do not close: {np.abs(phi).max()} is left")

    # -- what the constraints leave free

    def spaces(self, J):
        """Return Z (nv, dof) with J Z = 0, and J^+ and (J^T)^+ as functions."""
        B, s, V = singular_vectors(J)
        rank = int(np.sum(s > self.negligible * s.max(initial=1)))
        B, V, Z, squares = B[:, :rank], V[:, :rank], V[:, rank:], s[:rank] ** 2
        return Z, lambda g: V @ ((B.T @ g) / squares), lambda f: B @ ((V.T @ f) / squares)

    def degrees_of_freedom(self, q, *, time=0.0):
        return self.spaces(self.constraint_jacobian(q, time=time))[0].shape[1]

    def _satisfying(self, J, g, M, f):
        """Return x, lambda: J x = g, M x = f + J^T lambda with lambda of least norm; if g is impossible, J x is nearest to g."""
        Z, particular, least_norm = self.spaces(J)
        x = particular(g)
        x = x + Z @ solve(Z.T @ M @ Z, Z.T @ (f - M @ x))
        return x, least_norm(M @ x - f)

    def forward_dynamics(self, q, v, tau, *, wrenches=None, time=0.0, return_reactions=False):
        J, _, gamma = self.constraint_rows(q, v, time)
        f = self._array(tau) - self.inverse_dynamics(q, v, np.zeros(self.nv), wrenches=wrenches)
        a, multipliers = self._satisfying(J, gamma, self.mass_matrix(q), f)
        return (a, multipliers, self.closing_wrenches(q, multipliers, time=time)) if return_reactions else a

    def closing_wrenches(self, q, multipliers, *, time=0.0):
        """Return name -> [moment; force] (6,) on the child of each loop joint, in its joint frame there."""
        place, x = self.place(q), self.closing_coordinates(q, time)
        wrenches = {}
        for name, basis in self.closing_bases(x).items():
            R = self.closing_motion(self.loops[name], place, self._array(time))[0]
            wrenches[name] = turned(R.T, basis @ multipliers[self.rows[name]])
        return wrenches

    def project_velocity(self, q, v, *, metric="mass", time=0.0):
        J, c = self.constraint_rows(q, time=time)
        M = self.mass_matrix(q) if metric == "mass" else np.eye(self.nv)
        return self._satisfying(J, c, M, M @ self._array(v))[0]

    def impact(self, q, v, *, restitution=0.0, time=0.0):
        J, c = self.constraint_rows(q, time=time)
        M, v = self.mass_matrix(q), self._array(v)
        return self._satisfying(J, c - restitution * (J @ v - c), M, M @ v)

    def actuation_matrix(self, q, actuated, *, time=0.0):
        """Return (nv, nu): efforts of these joints -> generalised force; the effort of a loop joint acts along its own velocities."""
        place, x = self.place(q), self.closing_coordinates(q, time)
        blocks = [np.zeros((self.nv, 0), self.dtype)]
        for name in actuated:
            if name in self.loops:
                _, _, J, _ = self.closing_motion(self.loops[name], place, self._array(time))
                blocks.append(share_of(joint_motion(self.loops[name].joint, x[name])[2], J).T)
            else:
                blocks.append(np.eye(self.nv, dtype=self.dtype)[:, self.v_slice[name]])
        return np.concatenate(blocks, axis=1)

    def actuator_efforts(self, q, v, a, *, actuated, wrenches=None, weights=None, time=0.0):
        """u (nu,) of least sum weights u^2 that the motion needs, and what no u could do, relative.

        By default the least moments, and forces times the mechanism's length.
        """
        Z = self.spaces(self.constraint_jacobian(q, time=time))[0]
        need = Z.T @ self.inverse_dynamics(q, v, a, wrenches=wrenches)
        S = self.actuation_matrix(q, actuated, time=time)
        if weights is None:
            joints = [(self.loops.get(name) or self.joints[name]).joint for name in actuated]
            weights = [self.length() ** 2 if unit == "m" else 1.0 for joint in joints for _, unit in joint.velocities]
        share = 1 / np.sqrt(self._array(weights))
        effect = Z.T @ (S * share)
        u = self.spaces(effect)[1](need)
        return share * u, np.linalg.norm((effect @ u - need).astype(float)) / max(1, np.linalg.norm(need.astype(float)))


def row_count(spec):
    match type(spec).__name__:
        case "JointSpec":
            return 6 - spec.joint.nv
        case "RollingSpec":
            return 3 if spec.spin else 4
        case "PfaffianSpec":
            return len(spec.value)
        case _:
            return 1


def law_values(law, time):
    """Return g(t) and its rate, which are analytic in t except at the ends of pieces."""
    turns = np.floor((np.real(time) - law.starts[0]) / law.period) if law.period else 0.0
    at = time - turns * law.period
    piece = max((k for k, start in enumerate(law.starts) if np.real(at) >= start), default=0)
    s = at - law.starts[piece]
    coefficients = law.coefficients[piece]
    value = sum((c * s**k for k, c in enumerate(coefficients)), 0 * s)
    slope = sum((k * c * s ** (k - 1) for k, c in enumerate(coefficients) if k), 0 * s)
    for amplitude, rate, phase in law.harmonics:
        value += amplitude * np.sin(rate * time + phase)
        slope += amplitude * rate * np.cos(rate * time + phase)
    return value, slope


def unit(x):
    return x / np.sqrt(x @ x)


def share_of(Phi, V):
    """Return the x for which Phi x is nearest to V: least squares by the normal equations, which are analytic and small."""
    return solve(Phi.T @ Phi, Phi.T @ V)


def complement(Phi):
    """Return an orthonormal basis (6, 6 - n) of the complement of the columns of Phi (6, n)."""
    n = Phi.shape[1]
    N = np.linalg.svd(Phi.astype(float))[0][:, n:].astype(Phi.dtype)
    return orthonormal(N - Phi @ share_of(Phi, N))
