"""Equilibrium of bodies, dense, without tree, loop rows or cut: A x are the loads of reactions x on the bodies, and x of least norm is A^+ A x.

A joint's reaction does no work on its motion; x are its components in an orthonormal basis of such wrenches [moment / l; force], with the moment
about the midpoint between the joint's two frames. l is the mechanism's characteristic length.
"""

import numpy as np

from .joint_motion import joint_motion, skew


def about(point):
    """Return (6, 6): wrenches [moment; force] about a point -> about the origin."""
    return np.block([[np.eye(3), skew(point)], [np.zeros((3, 3)), np.eye(3)]])


class Equilibrium:
    """Equilibrium in one configuration.

    Attributes
    ----------
    A : (6 bodies, m) on bodies [moment / l about their origins; force], world axes
    """

    def __init__(self, robot, q, time=None):
        self.robot, self.l, d = robot, robot._length, robot.description
        self.pose = {"ground": np.eye(4)} | {body: robot.pose(q, body) for body in robot.bodies}
        self.parts, motions = (
            [],
            {},
        )  # (name, parent, child, frame of the load, basis about `at`, at), or (rows, reading)
        coordinates, _columns = robot.joint_states(q, time=time).q, []
        scale = np.repeat([1.0 / self.l, 1.0], 3)
        for spec in d.joints:
            X_P, X = self.pose[spec.parent] @ spec.at_parent.matrix, self.pose[spec.child] @ spec.at_child.matrix
            at, R, Phi = (X_P[:3, 3] + X[:3, 3]) / 2, np.eye(3), np.eye(6)
            if spec.joint.kind not in ("Cable", "Free"):
                R, _, Phi = joint_motion(spec.joint, np.asarray(coordinates[spec.name], float))
            Phi = np.kron(np.eye(2), X[:3, :3] @ R.T) @ Phi.reshape(
                6, -1
            )  # at the child's origin, along the world's axes
            Phi = (about(at - X[:3, 3]).T @ Phi) / scale[:, None]
            U, s, _ = np.linalg.svd(Phi)
            self.parts.append(
                (spec.name, spec.parent, spec.child, X, U[:, int((s > 1e-6 * s.max(initial=0)).sum()) :], at)
            )
            motions[spec.name] = (spec.parent, spec.child, at, np.linalg.pinv(Phi.T))
        forces = robot._loop_wrenches(q, np.eye(robot.nc), time=time) if robot.nc else np.zeros((0, 0, 6))
        J = robot.constraint_jacobian(q, time=time) if robot.nc else np.zeros((0, robot.nv))
        for k, c in enumerate(map(robot.constraint, robot.constraints)):
            if c.name in motions:
                continue
            if c.bodies:
                X = self.pose[c.bodies[1]] @ c.spec.at_child.matrix
                W = np.kron(np.eye(2), X[:3, :3]) @ forces[c.rows, k].T * scale[:, None]
                U, s, _ = np.linalg.svd(W, full_matrices=False)
                self.parts.append((c.name, *c.bodies, X, U[:, s > 1e-9 * s.max()], X[:3, 3]))
                continue
            units = [np.where([u == "m" for _, u in robot.joint(n).type.velocities], self.l, 1.0) for n in robot.joints]
            unit = np.concatenate([*units, []]) / self.l
            U, s, V = np.linalg.svd((J[c.rows] * unit).T, full_matrices=False)
            keep = s > 1e-9 * s.max(initial=0)
            efforts = (U / unit[:, None])[:, keep]
            along = []
            for n in robot.joints:
                parent, child, at, psi = motions[n]
                sign = -1.0 if robot.joint(n).reversed else 1.0
                along.append((parent, child, at, sign * psi @ efforts[robot.joint(n).v_slice]))
            self.parts.append((c.name, along, (s[:, None] * V)[keep], c.rows))
        self.A = np.concatenate([np.zeros((6 * len(d.bodies), 0)), *map(self._columns, self.parts)], axis=1)

    def _columns(self, part):
        bodies = {body: 6 * k for k, body in enumerate(self.robot.bodies)}
        entries = [(*part[1:3], part[5], part[4])] if len(part) == 6 else part[1]
        A = np.zeros((6 * len(bodies), entries[0][-1].shape[1]))
        for parent, child, at, basis in entries:
            for body, sign in ((parent, -1.0), (child, 1.0)):
                if body in bodies:
                    rows = slice(bodies[body], bodies[body] + 6)
                    A[rows] += sign * about((at - self.pose[body][:3, 3]) / self.l) @ basis
        return A

    def coordinates(self, loads, multipliers):
        """Return x (m,) from wrenches on the children, in the joints' frames there, and from relations' multipliers."""
        x = []
        for part in self.parts:
            if len(part) == 6:
                name, _, _, X, basis, at = part
                wrench = (
                    about(X[:3, 3] - at) @ np.kron(np.eye(2), X[:3, :3]) @ loads[name] if name in loads else np.zeros(6)
                )
                x.append(basis.T @ (wrench / np.repeat([self.l, 1.0], 3)))
            else:
                x.append(part[2] @ multipliers[part[3]])
        return np.concatenate([np.zeros(0), *x])

    def least(self, x):
        return np.linalg.pinv(self.A, rcond=1e-11) @ (self.A @ x)
