"""Interpolation between two samples by cubic Hermite polynomials, which match the configurations and velocities of both samples.

The core evaluates the polynomials in the coordinates of a :class:`Chart` at the first sample (``cpp/loops/path_motion.hpp``). The errors of values,
rates and accelerations are O(h^4), O(h^3) and O(h^2) for a distance h of the samples. Before the first sample, extrapolation is linear.
"""

from __future__ import annotations

import numpy as np

from .._arrays import Array, NDArray
from ..mechanism import Mechanism

Motion = tuple[Array, Array, Array]


class Chart:
    """Coordinates x (nv) of a mechanism, one for each velocity, in which motion from a configuration is interpolated.

    x are the coordinates of q, except that a quaternion is replaced by the rotation vector from its initial value. The rates are x-dot = E(q) v, with
    E orthogonal.

    Attributes
    ----------
    balls : (b, 3) indices of rotation vectors in x and v
    plain, plain_q : (k,) indices of all coordinates that are not rotation vectors, in x and v, and in q
    """

    def __init__(self, robot: Mechanism) -> None:
        self.robot = robot
        joints = [robot.joint(name) for name in robot.joints]
        balls = [j for j in joints if j.type.quaternion]
        self.balls = np.array([j.v_slice.start + np.arange(3) for j in balls], dtype=np.intp).reshape(-1, 3)
        self.plain = np.setdiff1d(np.arange(robot.nv), self.balls)
        self.plain_q = np.setdiff1d(np.arange(robot.nq), [j.q_slice.start + np.arange(4) for j in balls])
        # joints whose linear velocity is in the axes of the body: indices of their three displacements in x, and in q
        in_body_axes = [j for j in joints if not all(j.type.rates) and j.nv != 3 * j.type.quaternion]
        self._body_axes, self._body_axes_q = (
            np.array([np.arange(end - 3, end) for end in ends], dtype=np.intp).reshape(-1, 3)
            for ends in ([j.v_slice.stop for j in in_body_axes], [j.q_slice.stop for j in in_body_axes])
        )

    def _with_plain(self, in_q: Array, in_v: Array) -> Array:
        in_v[..., self.plain] = in_q[..., self.plain_q]
        return in_v

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return x of q1 (m, nv) from q0, by the shorter rotation; a rotation by half a revolution is about the vector part of q0^-1 q1."""
        return self._with_plain(q1 - q0, self.robot.difference(q0, q1))

    def moved(self, q: Array, x: Array) -> Array:
        """Return the configurations (m, nq) at x from q."""
        turns = np.zeros_like(x)
        turns[:, self.balls] = x[:, self.balls]
        q1 = self.robot.integrate(q, turns)
        q1[:, self.plain_q] = q[:, self.plain_q] + x[:, self.plain]
        return q1

    def rates(self, q: Array, v: Array) -> Array:
        """Return the rates E v (..., nv); for rotations, the angular velocity."""
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        return self._with_plain(self.robot._coordinate_rate(q, v), np.broadcast_to(v, (*lead, self.robot.nv)).copy())

    def velocities(self, q: Array, rates: Array) -> Array:
        """Return the velocities v = E^T x-dot (m, nv)."""
        v = rates.copy()
        for columns in self._body_axes.T if len(self._body_axes) else ():
            along = np.zeros(self.robot.nv)
            along[columns] = 1.0
            axis = self.robot._coordinate_rate(q, along)[:, self._body_axes_q]
            v[:, columns] = (axis * rates[:, self._body_axes]).sum(axis=-1)
        return v


def between(
    mechanism: Mechanism, t: Array, q: Array, v: Array, times: Array, k: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return q (m, nq) and v (m, nv) at times (m,) after samples k (m,) of t (n,), q (n, nq), v (n, nv)."""
    return parted(mechanism, mechanism._path_motion(pieces(t, q, v, k, k + 1), time=times))[:2]


def pieces(t: Array, q: Array, v: Array, k: NDArray[np.intp], to: NDArray[np.intp]) -> Array:
    """Return the core's input for the interpolation from samples k (m,) to samples `to` (m,).

    For extrapolation after the last sample, `to` is the sample before k.
    """
    return np.column_stack([q[k], v[k], q[to], v[to], t[k], t[to]])


def parted(mechanism: Mechanism, numbers: Array) -> Motion:
    """Split the core's result into coordinates, velocities and accelerations."""
    nq, nv = mechanism.nq, mechanism.nv
    return numbers[..., :nq], numbers[..., nq : nq + nv], numbers[..., nq + nv : -1]
