"""Motion between two samples: cubics that have the configurations and velocities of both (Hermite's).

    x(s) = s h (r0 + s (3 m - 2 r0 - r1 + s (r0 + r1 - 2 m)))      m = x1 / h, rates r, share s of the interval h

x is the way from the first sample in the coordinates of a :class:`Chart`. Values, rates and accelerations are off by O(h^4), O(h^3) and
O(h^2); the parabola of a thrown body is exact. Before the first sample x goes straight on.
"""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray

from .._arrays import Array
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

    def second_rates(self, q: Array, v: Array, a: Array) -> Array:
        """d/dt E v (m, nv), where v changes by a; of rotations the angular acceleration."""
        return self._of_q(self.robot._coordinate_acceleration(q, v, a), a.copy())

    def accelerations(self, q: Array, v: Array, second_rates: Array) -> Array:
        """a (m, nv) with these."""
        return self.velocities(q, second_rates - self.second_rates(q, v, np.zeros_like(v)))


def between(
    mechanism: Mechanism, t: Array, q: Array, v: Array, times: Array, k: NDArray[np.intp]
) -> tuple[Array, Array]:
    """State at times (m,) after samples k (m,) of t (n,), q (n, nq), v (n, nv)."""
    return _cubics(Chart(mechanism), t, q, v, times, k, k + 1)[:2]


def motion(
    chart: Chart, t: Array, q: Array, v: Array, times: Array, k: NDArray[np.intp], to: NDArray[np.intp]
) -> Motion:
    """Coordinates (m, nq), velocities and accelerations (m, nv) at times (m,) from samples k towards samples `to`, both (m,).

    A sample `to` may be the earlier one: times beyond the last sample are before it, seen from there.
    """
    at, velocity, second_rates = _cubics(chart, t, q, v, times, k, to)
    return at, velocity, chart.accelerations(at, velocity, second_rates)


def _cubics(
    chart: Chart, t: Array, q: Array, v: Array, times: Array, k: NDArray[np.intp], to: NDArray[np.intp]
) -> Motion:
    balls, h = chart.balls, (t[to] - t[k])[:, None]
    s = (times - t[k])[:, None] / h
    x1, r0, r1 = chart.difference(q[k], q[to]), chart.rates(q[k], v[k]), chart.rates(q[to], v[to])
    r1[:, balls] = exponential_rate(x1[:, balls], r1[:, balls])
    slope, inside = x1 / h, np.maximum(s, 0.0)
    second, third = 3 * slope - 2 * r0 - r1, r0 + r1 - 2 * slope
    x = s * h * r0 + inside**2 * h * (second + inside * third)
    rate = r0 + inside * (2 * second + 3 * inside * third)
    acceleration = np.where(s < 0.0, 0.0, (2 * second + 6 * inside * third) / h)
    at = chart.moved(q[k], x)
    rate[:, balls], acceleration[:, balls] = exponential_motion(x[:, balls], rate[:, balls], acceleration[:, balls])
    return at, chart.velocities(at, rate), acceleration


# ---- rotations -----------------------------------------------------------------------------------------------------------------------
# a body turned by exp(x) has, in its own axes, the angular velocity (right Jacobian of the exponential; c2 ... Stumpff's functions)
#   ω = x' - c2 x × x' + c3 x × (x × x')        x' = ω + ½ x × ω + (1 - |x|/2 cot |x|/2)/|x|² x × (x × ω)


def cross(a: Array, b: Array) -> Array:
    """NumPy's (..., 3), bit for bit, in a tenth of the time where there is little to do."""
    after = (1, 2, 0)
    return (a * b.take(after, -1) - a.take(after, -1) * b).take(after, -1)


def exponential_motion(x: Array, rate: Array, acceleration: Array) -> tuple[Array, Array]:
    """Angular velocity and acceleration (..., 3), in the turned axes, of exp(x) for x (..., 3) and its derivatives."""
    if not x.size:
        return rate, acceleration
    c2, c3, c4, c5 = _stumpff((x**2).sum(axis=-1, keepdims=True))
    along = (x * rate).sum(axis=-1, keepdims=True)
    once, again = cross(x, rate), cross(x, acceleration)
    twice = cross(x, once)
    velocity = rate - c2 * once + c3 * twice
    # the derivatives of c2 and c3 by |x|²/2 are c3 - 2 c4 and c4 - 3 c5, less than zero
    changes = (c3 - 2.0 * c4) * along * once - (c4 - 3.0 * c5) * along * twice
    return velocity, acceleration - c2 * again + c3 * (cross(rate, once) + cross(x, again)) + changes


def exponential_rate(x: Array, velocity: Array) -> Array:
    """The rate (..., 3) of the rotation vectors x, shorter than a whole turn, that gives exp(x) an angular velocity."""
    if not x.size:
        return velocity
    angle = np.linalg.norm(x, axis=-1, keepdims=True)
    small = angle < 1e-2
    safe = np.where(small, 1.0, angle / 2.0)
    inverse = np.where(small, 1 / 12 + angle**2 / 720, (1.0 - safe / np.tan(safe)) / (4.0 * safe**2))
    once = cross(x, velocity)
    return velocity + once / 2.0 + inverse * cross(x, once)


def in_turned_axes(x: Array, v: Array) -> Array:
    """The components (..., 3) of v in axes turned by exp(x)."""
    if not x.size:
        return v
    square = (x**2).sum(axis=-1, keepdims=True)
    c2, c3, _, _ = _stumpff(square)
    once = cross(x, v)
    return np.asarray(v - (1.0 - square * c3) * once + c2 * cross(x, once))


def _stumpff(square: Array) -> tuple[Array, Array, Array, Array]:
    """c2 to c5 of the squares of angles, c_k = 1/k! - x/(k + 2)! + x²/(k + 4)! - ...; c2 = (1 - cos)/θ², c3 = (θ - sin)/θ³."""
    small = square < 1.0
    near, far = np.where(small, square, 0.0), np.where(small, 1.0, square)
    angle = np.sqrt(far)
    fourth, fifth = (polyval(-near, [1 / factorial(k + 2 * j) for j in range(8)]) for k in (4, 5))
    c4: Array = np.where(small, fourth, (0.5 - (1.0 - np.cos(angle)) / far) / far)
    c5: Array = np.where(small, fifth, (1 / 6 - (angle - np.sin(angle)) / (far * angle)) / far)
    return 0.5 - square * c4, 1 / 6 - square * c5, c4, c5
