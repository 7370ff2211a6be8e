"""Motion between two samples: cubics that have the configurations and velocities of both (Hermite's), which the core evaluates.

They count in the coordinates of a :class:`Chart`, from the first sample (``cpp/loops/path_motion.hpp``). Values, rates and accelerations are off by
O(h^4), O(h^3) and O(h^2); the parabola of a thrown body is exact. Before the first sample motion goes straight on.
"""

from __future__ import annotations

import numpy as np

from .._arrays import Array, NDArray
from ..mechanism import Mechanism

Motion = tuple[Array, Array, Array]


class Chart:
    """Coordinates x (nv) of a mechanism, one a velocity, in which motion from a configuration is interpolated.

    They are those of q, with rates x-dot = E(q) v and E orthogonal; where q has a quaternion, the rotation vector from the first one.

    Attributes
    ----------
    balls : (b, 3) where rotation vectors stand in x and v
    plain, of_q : (k,) where the others stand in x and v, and in q
    """

    def __init__(self, robot: Mechanism) -> None:
        self.robot = robot
        joints = [robot.joint(name) for name in robot.joints]
        balls = [j for j in joints if j.type.quaternion]
        self.balls = np.array([j.v_slice.start + np.arange(3) for j in balls], dtype=np.intp).reshape(-1, 3)
        self.plain = np.setdiff1d(np.arange(robot.nv), self.balls)
        self.of_q = np.setdiff1d(np.arange(robot.nq), [j.q_slice.start + np.arange(4) for j in balls])
        # displacements that the body's own axes measure, three of all joints that have such: where they stand in x, and in q
        in_body_axes = [j for j in joints if not all(j.type.rates) and j.nv != 3 * j.type.quaternion]
        self._own_axes, self._own_in_q = (
            np.array([np.arange(end - 3, end) for end in ends], dtype=np.intp).reshape(-1, 3)
            for ends in ([j.v_slice.stop for j in in_body_axes], [j.q_slice.stop for j in in_body_axes])
        )

    def _of_q(self, in_q: Array, in_v: Array) -> Array:
        in_v[..., self.plain] = in_q[..., self.of_q]
        return in_v

    def difference(self, q0: Array, q1: Array) -> Array:
        """x of q1 (m, nv) from q0, rotations the shorter way; where both are half a turn, about the vector part of q0^-1 q1."""
        return self._of_q(q1 - q0, self.robot.difference(q0, q1))

    def moved(self, q: Array, x: Array) -> Array:
        """The configurations (m, nq) at x from q."""
        turns = np.zeros_like(x)
        turns[:, self.balls] = x[:, self.balls]
        q1 = self.robot.integrate(q, turns)
        q1[:, self.of_q] = q[:, self.of_q] + x[:, self.plain]
        return q1

    def rates(self, q: Array, v: Array) -> Array:
        """E v (..., nv); of rotations the angular velocity."""
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        return self._of_q(self.robot._coordinate_rate(q, v), np.broadcast_to(v, (*lead, self.robot.nv)).copy())

    def velocities(self, q: Array, rates: Array) -> Array:
        """v = E^T x-dot (m, nv)."""
        v = rates.copy()
        for columns in self._own_axes.T if len(self._own_axes) else ():
            along = np.zeros(self.robot.nv)
            along[columns] = 1.0
            axis = self.robot._coordinate_rate(q, along)[:, self._own_in_q]
            v[:, columns] = (axis * rates[:, self._own_axes]).sum(axis=-1)
        return v


def between(
    mechanism: Mechanism, t: Array, q: Array, v: Array, times: Array, k: NDArray[np.intp]
) -> tuple[Array, Array]:
    """State at times (m,) after samples k (m,) of t (n,), q (n, nq), v (n, nv)."""
    return parted(mechanism, mechanism._path_motion(pieces(t, q, v, k, k + 1), time=times))[:2]


def pieces(t: Array, q: Array, v: Array, k: NDArray[np.intp], to: NDArray[np.intp]) -> Array:
    """What the core is told of the way from samples k (m,) towards samples `to` (m,).

    A sample `to` may be the earlier one: times beyond the last sample are before it, seen from there.
    """
    return np.column_stack([q[k], v[k], q[to], v[to], t[k], t[to]])


def parted(mechanism: Mechanism, numbers: Array) -> Motion:
    """Coordinates, velocities and accelerations of the core's answer."""
    nq, nv = mechanism.nq, mechanism.nv
    return numbers[..., :nq], numbers[..., nq : nq + nv], numbers[..., nq + nv : -1]
