"""Poses, velocities and Jacobians of a tree of bodies, in world axes and by definition.

The Jacobian of a point is the classical one: column j is the effect of joint velocity j alone, a rotation about a line in space or a translation, on
a point of the moved bodies. The derivatives of Jacobians are exact too, by a complex step: f(q + i h q') = f(q) + i h f'(q) + O(h^2), and with h =
1e-40 the square is below any rounding.
"""

from dataclasses import dataclass

import numpy as np

from .joint_motion import coordinate_rate, cross, integrate, joint_motion, neutral, turned

# of the complex step: its square is nothing beside one, in double and in extended precision
STEP = 1e-40


@dataclass
class Placement:
    """Poses of all bodies at one q, in world axes; the ground is the last body."""

    R: np.ndarray  # (bodies + 1, 3, 3) body axes
    p: np.ndarray  # (bodies + 1, 3) body origins
    joint_R: dict  # joint name -> axes of the successor's joint frame
    joint_p: dict  # joint name -> its origin
    turning: np.ndarray  # (3, nv) angular velocity that each joint velocity gives
    sliding: np.ndarray  # (3, nv) linear velocity that it gives to the successor's joint frame's origin ...
    centers: np.ndarray  # (3, nv) ... which is here


class Tree:
    """Kinematics of a mechanism's description, one state at a time.

    Parameters
    ----------
    description : object with .bodies, .joints, .frames, .gravity, as `sarrus.Mechanism.description`
    closing : names of the joints that close loops; they are left out, and have no place in q and v
    dtype : numpy.float64, or numpy.longdouble to see what rounding does
    """

    def __init__(self, description, *, closing=(), dtype=np.float64):
        self.dtype = dtype
        self.gravity = np.asarray(description.gravity, dtype)
        self.bodies = list(description.bodies)
        self.joints = {spec.name: spec for spec in description.joints if spec.name not in closing}
        self.index = {"ground": len(self.bodies)} | {body.name: b for b, body in enumerate(self.bodies)}
        self.frames = {name: (b, np.eye(3), np.zeros(3)) for name, b in self.index.items()}
        for f in description.frames:
            placement = np.asarray(f.placement.rotation), np.asarray(f.placement.translation)
            self.frames[f.name] = self.index[f.body], *placement

        # q and v are stacked in the order in which joints were added, whatever the tree looks like
        self.q_slice, self.v_slice, self.nq, self.nv = {}, {}, 0, 0
        for name, spec in self.joints.items():
            self.q_slice[name] = slice(self.nq, self.nq + spec.joint.nq)
            self.v_slice[name] = slice(self.nv, self.nv + spec.joint.nv)
            self.nq, self.nv = self.nq + spec.joint.nq, self.nv + spec.joint.nv
        self._grow_from_ground()
        self._placed = None, None

    def _grow_from_ground(self):
        """Order the joints outward, and find which of them carries which body.

        carries[joint] (bodies + 1,) is 1 for the bodies beyond the joint, or -1 if the path to them passes it from its child to its parent; support
        (bodies + 1, nv) is the same per velocity.
        """
        self.outward, path = [], {"ground": {}}
        pending = dict(self.joints)
        while pending:
            reached = [s for s in pending.values() if s.parent in path or s.child in path]
            if not reached:
                raise ValueError(f"joints {list(pending)} are not connected to the ground")
            spec = reached[0]
            if spec.parent in path and spec.child in path:
                raise ValueError(f"joint {spec.name!r} closes a loop; name it in closing=")
            near, far, sign = spec.parent, spec.child, 1
            if spec.child in path:
                near, far, sign = spec.child, spec.parent, -1
            path[far] = path[near] | {spec.name: sign}
            self.outward.append((pending.pop(spec.name), sign))
        if missing := self.index.keys() - path.keys():
            raise ValueError(f"bodies {missing} are not connected to the ground")
        ends = [*(body.name for body in self.bodies), "ground"]
        self.carries = {name: np.array([path[end].get(name, 0) for end in ends]) for name in self.joints}
        self.support = np.zeros((len(self.bodies) + 1, self.nv))
        for name, where in self.v_slice.items():
            self.support[:, where] = self.carries[name][:, None]

    # -- coordinates

    def neutral(self):
        return np.concatenate([np.zeros(0), *(neutral(spec.joint) for spec in self.joints.values())])

    def coordinate_rate(self, q, v):
        """Return dq/dt (nq,) for the generalised velocity v (nv,)."""
        q, v = self._array(q), self._array(v)
        rates = [coordinate_rate(s.joint, q[self.q_slice[n]], v[self.v_slice[n]]) for n, s in self.joints.items()]
        return np.concatenate([np.zeros(0, self.dtype), *rates])

    def integrate(self, q, dv):
        """Return the configuration after unit time at constant velocity dv; free and planar joints move along screws."""
        q, dv = self._array(q), self._array(dv)
        ends = [integrate(s.joint, q[self.q_slice[n]], dv[self.v_slice[n]]) for n, s in self.joints.items()]
        return np.concatenate([np.zeros(0, self.dtype), *ends])

    def _array(self, x):
        """Convert to the oracle's scalar type; complex numbers of the complex step are unchanged."""
        x = np.asarray(x)
        return x if np.iscomplexobj(x) else x.astype(self.dtype)

    def rate(self, function, q, v):
        """Return d/dt function(q) while q moves with v, exact to rounding; the function must use no conjugate and no modulus."""
        q = self._array(q)
        return np.imag(function(q + 1j * STEP * self.coordinate_rate(q, v))) / STEP

    # -- poses

    def place(self, q):
        """Compose the joints' displacements outward. The last result is stored, because most functions of a state begin with it."""
        q = self._array(q)
        of = q.dtype, q.tobytes()
        if self._placed[0] != of:
            self._placed = of, self._place(q)
        return self._placed[1]

    def _place(self, q):
        n = len(self.bodies) + 1
        R, p = np.tile(np.eye(3, dtype=q.dtype), (n, 1, 1)), np.zeros((n, 3), q.dtype)
        joint_R, joint_p = {}, {}
        turning, sliding, centers = np.zeros((3, 3, self.nv), q.dtype)
        for spec, sign in self.outward:
            R_J, p_J, J = joint_motion(spec.joint, q[self.q_slice[spec.name]])
            parent, child = self.index[spec.parent], self.index[spec.child]
            R_P, p_P = np.asarray(spec.at_parent.rotation), np.asarray(spec.at_parent.translation)
            R_C, p_C = np.asarray(spec.at_child.rotation), np.asarray(spec.at_child.translation)
            if sign > 0:
                R_before, p_before = R[parent] @ R_P, p[parent] + R[parent] @ p_P
                R_after, p_after = R_before @ R_J, p_before + R_before @ p_J
                R[child] = R_after @ R_C.T
                p[child] = p_after - R[child] @ p_C
            else:  # the child is where we come from
                R_after, p_after = R[child] @ R_C, p[child] + R[child] @ p_C
                R_before = R_after @ R_J.T
                p_before = p_after - R_before @ p_J
                R[parent] = R_before @ R_P.T
                p[parent] = p_before - R[parent] @ p_P
            joint_R[spec.name], joint_p[spec.name] = R_after, p_after
            where = self.v_slice[spec.name]
            turning[:, where], sliding[:, where] = R_before @ J[:3], R_before @ J[3:]
            centers[:, where] = p_after[:, None]
        return Placement(R, p, joint_R, joint_p, turning, sliding, centers)

    def frame_at(self, place, frame):
        """Return body, axes (3, 3) and origin (3,) of a frame."""
        b, R, p = self.frames[frame]
        return b, place.R[b] @ R, place.p[b] + place.R[b] @ p

    def point_jacobian(self, place, body, point):
        """Return (6, nv): v -> [angular velocity of a body; velocity of its point at this position], world axes."""
        arms = point[:, None] - place.centers
        linear = place.sliding + cross(place.turning, arms)
        return self.support[body] * np.concatenate([place.turning, linear])

    def pose(self, q, frame):
        _, R, p = self.frame_at(self.place(q), frame)
        return np.concatenate([np.concatenate([R, p[:, None]], axis=1), [[0, 0, 0, 1]]])

    # -- motion of frames

    def jacobian(self, q, frame, *, expressed_in="frame"):
        place = self.place(q)
        body, R, p = self.frame_at(place, frame)
        J = self.point_jacobian(place, body, 0 * p if expressed_in == "world" else p)
        return turned(R.T, J) if expressed_in == "frame" else J

    def jacobian_derivative(self, q, v, frame, *, expressed_in="frame"):
        return self.rate(lambda q: self.jacobian(q, frame, expressed_in=expressed_in), q, v)

    def velocity(self, q, v, frame, *, expressed_in="frame"):
        return self.jacobian(q, frame, expressed_in=expressed_in) @ self._array(v)

    def acceleration(self, q, v, a, frame, *, expressed_in="frame"):
        """Return the classical acceleration; in "world" the derivative of the "world" velocity."""
        fixed_axes = "world" if expressed_in == "world" else "world_aligned"
        J = self.jacobian(q, frame, expressed_in=fixed_axes)
        J_dot = self.jacobian_derivative(q, v, frame, expressed_in=fixed_axes)
        A = J @ self._array(a) + J_dot @ self._array(v)
        if expressed_in == "frame":  # the components of the vector, not the derivative of components
            A = turned(self.pose(q, frame)[:3, :3].T, A)
        return A
