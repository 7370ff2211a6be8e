"""Motion between two samples: cubics that have the configurations and velocities of both (Hermite's), joint by joint.

    x(s) = x0 + s h (r0 + s (3 m - 2 r0 - r1 + s (r0 + r1 - 2 m)))      m = (x1 - x0) / h, rates r, share s of the interval h

What x is depends on the joint. Where coordinates are the integral of velocities, it is q. A ball joint's is the rotation vector
from the first sample, a free joint's that and its origin, and a planar joint's is q with the velocity turned to the axes of q.
Values, rates and accelerations are off by O(h^4), O(h^3) and O(h^2). Before the first sample x goes straight on.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray

from .._arrays import Array
from ..mechanism import Mechanism

Motion = tuple[Array, Array, Array]
Columns = NDArray[np.intp]
Way = Callable[[Array, Array, Array, Array, Array, Array], Motion]

# cosine of half an angle up to which both ways count as half a turn: there the signs of quaternions decide, not rounding
HALF_TURN = 1e-9


def between(
    mechanism: Mechanism, t: Array, q: Array, v: Array, times: Array, k: NDArray[np.intp]
) -> tuple[Array, Array]:
    """State at times (m,) after samples k (m,) of t (n,), q (n, nq), v (n, nv)."""
    return motion(mechanism, t, q, v, times, k, k + 1)[:2]


def motion(
    mechanism: Mechanism, t: Array, q: Array, v: Array, times: Array, k: NDArray[np.intp], to: NDArray[np.intp]
) -> Motion:
    """Coordinates (m, nq), velocities and accelerations (m, nv) at times (m,) from samples k towards samples `to`, both (m,).

    A sample `to` may be the earlier one: times beyond the last sample are before it, seen from there.
    """
    h = (t[to] - t[k])[:, None]
    s = (times - t[k])[:, None] / h
    answer = (
        np.empty((len(times), mechanism.nq)),
        np.empty((len(times), mechanism.nv)),
        np.empty((len(times), mechanism.nv)),
    )
    parts: list[tuple[Way, Columns, Columns]] = []
    plain: list[tuple[Columns, Columns]] = [(np.zeros(0, np.intp), np.zeros(0, np.intp))]
    for name in mechanism.joints:
        joint = mechanism.joint(name)
        columns = np.arange(mechanism.nq)[joint.q_slice], np.arange(mechanism.nv)[joint.v_slice]
        if joint.kind in _WAYS:
            parts.append((_WAYS[joint.kind], *columns))
        else:
            plain.append(columns)
    # coordinates that add up all at once
    in_q, in_v = (np.concatenate(columns) for columns in zip(*plain, strict=True))
    parts.append((_hermite, in_q, in_v))
    for way, iq, iv in parts:
        moved = way(s, h, q[k[:, None], iq], v[k[:, None], iv], q[to[:, None], iq], v[to[:, None], iv])
        for all_of_it, part, where in zip(answer, moved, (iq, iv, iv), strict=True):
            all_of_it[:, where] = part
    return answer


def _hermite(s: Array, h: Array, x0: Array, r0: Array, x1: Array, r1: Array) -> Motion:
    """Cubic at the share s of an interval h, its rate and acceleration, from values x and rates r at the ends; straight before."""
    slope = (x1 - x0) / h
    second, third = 3 * slope - 2 * r0 - r1, r0 + r1 - 2 * slope
    inside = np.maximum(s, 0.0)
    x = x0 + s * h * r0 + inside**2 * h * (second + inside * third)
    return (
        x,
        r0 + inside * (2 * second + 3 * inside * third),
        np.where(s < 0.0, 0.0, (2 * second + 6 * inside * third) / h),
    )


def _turning(s: Array, h: Array, q0: Array, v0: Array, q1: Array, v1: Array) -> Motion:
    """Unit quaternion q0 exp(x) with x(s) a cubic: smooth, so that the error is that of any Hermite cubic."""
    x1 = rotation_between(q0, q1)
    x, rate, acceleration = _hermite(s, h, np.zeros_like(x1), v0, x1, exponential_rate(x1, v1))
    angle = np.linalg.norm(x, axis=1, keepdims=True)
    step = np.concatenate([x * np.sinc(angle / (2.0 * np.pi)) / 2.0, np.cos(angle / 2.0)], axis=1)
    q = product(q0, step)
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return q, *exponential_motion(x, rate, acceleration)


def _flying(s: Array, h: Array, q0: Array, v0: Array, q1: Array, v1: Array) -> Motion:
    """A free joint: it turns, and its origin goes on a cubic in the axes of its predecessor: a thrown body's parabola is exact."""
    q, spin, spin_rate = _turning(s, h, q0[:, :4], v0[:, :3], q1[:, :4], v1[:, :3])
    r0, r1 = turned(q0[:, :4], v0[:, 3:]), turned(q1[:, :4], v1[:, 3:])
    p, rate, acceleration = _hermite(s, h, q0[:, 4:], r0, q1[:, 4:], r1)
    velocity = turned(conjugate(q), rate)
    along = turned(conjugate(q), acceleration) - np.cross(spin, velocity)
    return np.hstack([q, p]), np.hstack([spin, velocity]), np.hstack([spin_rate, along])


def _gliding(s: Array, h: Array, q0: Array, v0: Array, q1: Array, v1: Array) -> Motion:
    """A planar joint: its velocity is in its own axes, its coordinates are not."""
    q, rate, acceleration = _hermite(s, h, q0, glided(q0[:, 2], v0), q1, glided(q1[:, 2], v1))
    v, a = glided(-q[:, 2], rate), glided(-q[:, 2], acceleration)
    a[:, :2] += v[:, 2:] * np.column_stack([v[:, 1], -v[:, 0]])
    return q, v, a


# ---- rotations -----------------------------------------------------------------------------------------------------------------------
# a body turned by exp(x) has, in its own axes, the angular velocity (right Jacobian of the exponential; c2 ... Stumpff's functions)
#   ω = x' - c2 x × x' + c3 x × (x × x')        x' = ω + ½ x × ω + (1 - |x|/2 cot |x|/2)/|x|² x × (x × ω)


def exponential_motion(x: Array, rate: Array, acceleration: Array) -> tuple[Array, Array]:
    """Angular velocity and acceleration (m, 3), in the turned axes, of exp(x) for x (m, 3) and its derivatives."""
    c2, c3, c4, c5 = _stumpff((x**2).sum(axis=1, keepdims=True))
    along = (x * rate).sum(axis=1, keepdims=True)
    once, again = np.cross(x, rate), np.cross(x, acceleration)
    twice = np.cross(x, once)
    velocity = rate - c2 * once + c3 * twice
    # the derivatives of c2 and c3 by |x|²/2 are c3 - 2 c4 and c4 - 3 c5, less than zero
    changes = (c3 - 2.0 * c4) * along * once - (c4 - 3.0 * c5) * along * twice
    return velocity, acceleration - c2 * again + c3 * (np.cross(rate, once) + np.cross(x, again)) + changes


def exponential_rate(x: Array, velocity: Array) -> Array:
    """The rate (m, 3) of the rotation vectors x, shorter than a whole turn, that gives exp(x) an angular velocity."""
    angle = np.linalg.norm(x, axis=1, keepdims=True)
    small = angle < 1e-2
    safe = np.where(small, 1.0, angle / 2.0)
    inverse = np.where(small, 1 / 12 + angle**2 / 720, (1.0 - safe / np.tan(safe)) / (4.0 * safe**2))
    once = np.cross(x, velocity)
    return velocity + once / 2.0 + inverse * np.cross(x, once)


def rotation_between(q0: Array, q1: Array) -> Array:
    """Rotation vectors (m, 3) that lead from unit quaternions q0 (m, 4) to q1 the shorter way.

    Where both ways are half a turn, the vector part of q0^-1 q1 is the axis.
    """
    return logarithm(product(conjugate(q0), q1))


def logarithm(q: Array) -> Array:
    """Rotation vectors (..., 3) of unit quaternions (..., 4), (x, y, z, w), of at most half a turn."""
    q = np.where(q[..., 3:] < -HALF_TURN, -q, q)
    sine = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    factor = 2.0 * np.arctan2(sine, q[..., 3:]) / np.where(sine > 0.0, sine, 1.0)
    return np.asarray(factor * q[..., :3])


def product(p: Array, q: Array) -> Array:
    """Of quaternions (m, 4), (x, y, z, w)."""
    u, v, a, b = p[:, :3], q[:, :3], p[:, 3:], q[:, 3:]
    return np.hstack([a * v + b * u + np.cross(u, v), a * b - (u * v).sum(axis=1, keepdims=True)])


def conjugate(q: Array) -> Array:
    """The unit quaternions (m, 4) that turn back."""
    return np.asarray(q * [-1.0, -1.0, -1.0, 1.0])


def turned(q: Array, x: Array) -> Array:
    """Vectors (m, 3), turned by unit quaternions."""
    around = 2.0 * np.cross(q[:, :3], x)
    return x + q[:, 3:] * around + np.cross(q[:, :3], around)


def glided(angle: Array, v: Array) -> Array:
    """Vectors (m, 3) of a plane, (x, y, turn), turned by angles (m,)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.column_stack([c * v[:, 0] - s * v[:, 1], s * v[:, 0] + c * v[:, 1], v[:, 2]])


def _stumpff(square: Array) -> tuple[Array, Array, Array, Array]:
    """c2 to c5 of the squares of angles, c_k = 1/k! - x/(k + 2)! + x²/(k + 4)! - ...; c2 = (1 - cos)/θ², c3 = (θ - sin)/θ³."""
    small = square < 1.0
    near, far = np.where(small, square, 0.0), np.where(small, 1.0, square)
    angle = np.sqrt(far)
    fourth, fifth = (polyval(-near, [1 / factorial(k + 2 * j) for j in range(8)]) for k in (4, 5))
    c4: Array = np.where(small, fourth, (0.5 - (1.0 - np.cos(angle)) / far) / far)
    c5: Array = np.where(small, fifth, (1 / 6 - (angle - np.sin(angle)) / (far * angle)) / far)
    return 0.5 - square * c4, 1 / 6 - square * c5, c4, c5


_WAYS = {"Spherical": _turning, "Free": _flying, "Planar": _gliding}
