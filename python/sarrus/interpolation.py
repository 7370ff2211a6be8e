"""Motion between two samples: cubics that have the configurations and velocities of both (Hermite's), joint by joint.

    x(s) = x0 + s h (r0 + s (3 m - 2 r0 - r1 + s (r0 + r1 - 2 m)))      m = (x1 - x0) / h, rates r, share s of the interval h

What x is depends on the joint. Where coordinates are the integral of velocities, it is q. A ball joint's is the rotation vector
from the first sample, a free joint's that and its origin, and a planar joint's is q with the velocity turned to the axes of q.
Values and rates are off by O(h^4) and O(h^3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .mechanism import Mechanism
from .state import Array


def between(
    mechanism: Mechanism, t: Array, q: Array, v: Array, times: Array, k: NDArray[np.intp]
) -> tuple[Array, Array]:
    """State at times (m,) after samples k (m,) of t (n,), q (n, nq), v (n, nv)."""
    h = (t[k + 1] - t[k])[:, None]
    s = (times - t[k])[:, None] / h
    q_between, v_between = np.empty((len(times), mechanism.nq)), np.empty((len(times), mechanism.nv))
    for name in mechanism.joints:
        joint = mechanism.joint(name)
        iq, iv = joint.q_slice, joint.v_slice
        way = _WAYS.get(joint.kind, _hermite)
        q_between[:, iq], v_between[:, iv] = way(s, h, q[k, iq], v[k, iv], q[k + 1, iq], v[k + 1, iv])
    return q_between, v_between


def _hermite(s: Array, h: Array, x0: Array, r0: Array, x1: Array, r1: Array) -> tuple[Array, Array]:
    """Cubic and its rate at the share s of an interval h, from values x and rates r at the ends."""
    slope = (x1 - x0) / h
    second, third = 3 * slope - 2 * r0 - r1, r0 + r1 - 2 * slope
    return x0 + s * h * (r0 + s * (second + s * third)), r0 + s * (2 * second + 3 * s * third)


def _turning(s: Array, h: Array, q0: Array, v0: Array, q1: Array, v1: Array) -> tuple[Array, Array]:
    """Unit quaternion q0 exp(x) with x(s) a cubic: smooth, so that the error is that of any Hermite cubic.

    v = x' - (1 - cos)/|x|² x × x' + (|x| - sin)/|x|³ x × (x × x') is the velocity in the body (right Jacobian), and
    x' = v + ½ x × v + (1 - |x|/2 cot |x|/2)/|x|² x × (x × v) its inverse.
    """
    between = _product(q0 * [-1, -1, -1, 1], q1)
    between = np.where(between[:, 3:] < 0.0, -between, between)  # the shorter way
    sine = np.linalg.norm(between[:, :3], axis=1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, between[:, 3:])
    x1 = between[:, :3] * angle / np.where(sine > 0.0, sine, 1.0)
    half, small = angle / 2.0, angle < 1e-2
    safe = np.where(small, 1.0, half)
    inverse = np.where(small, 1 / 12 + angle**2 / 720, (1.0 - safe / np.tan(safe)) / (4.0 * safe**2))
    turned = np.cross(x1, v1)
    x, rate = _hermite(s, h, np.zeros_like(x1), v0, x1, v1 + turned / 2.0 + inverse * np.cross(x1, turned))
    angle = np.linalg.norm(x, axis=1, keepdims=True)
    small = angle < 1e-2
    safe = np.where(small, 1.0, angle)
    first = np.sinc(angle / (2.0 * np.pi)) ** 2 / 2.0
    second = np.where(small, 1 / 6 - angle**2 / 120, (safe - np.sin(safe)) / safe**3)
    turned = np.cross(x, rate)
    step = np.concatenate([x * np.sinc(angle / (2.0 * np.pi)) / 2.0, np.cos(angle / 2.0)], axis=1)
    q = _product(q0, step)
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return q, rate - first * turned + second * np.cross(x, turned)


def _flying(s: Array, h: Array, q0: Array, v0: Array, q1: Array, v1: Array) -> tuple[Array, Array]:
    """A free joint: it turns, and its origin goes on a cubic in the axes of its predecessor: a thrown body's parabola is exact."""
    q, spin = _turning(s, h, q0[:, :4], v0[:, :3], q1[:, :4], v1[:, :3])
    r0, r1 = _turned(q0[:, :4], v0[:, 3:]), _turned(q1[:, :4], v1[:, 3:])
    p, rate = _hermite(s, h, q0[:, 4:], r0, q1[:, 4:], r1)
    return np.hstack([q, p]), np.hstack([spin, _turned(q * [-1, -1, -1, 1], rate)])


def _gliding(s: Array, h: Array, q0: Array, v0: Array, q1: Array, v1: Array) -> tuple[Array, Array]:
    """A planar joint: its velocity is in its own axes, its coordinates are not."""

    def along(angle: Array, v: Array, sign: float) -> Array:
        c, s = np.cos(angle), sign * np.sin(angle)
        return np.column_stack([c * v[:, 0] - s * v[:, 1], s * v[:, 0] + c * v[:, 1], v[:, 2]])

    q, rate = _hermite(s, h, q0, along(q0[:, 2], v0, 1.0), q1, along(q1[:, 2], v1, 1.0))
    return q, along(q[:, 2], rate, -1.0)


def _product(p: Array, q: Array) -> Array:
    """Of quaternions (m, 4), (x, y, z, w)."""
    u, v, a, b = p[:, :3], q[:, :3], p[:, 3:], q[:, 3:]
    return np.hstack([a * v + b * u + np.cross(u, v), a * b - (u * v).sum(axis=1, keepdims=True)])


def _turned(q: Array, x: Array) -> Array:
    """Vectors (m, 3), turned by unit quaternions."""
    around = 2.0 * np.cross(q[:, :3], x)
    return x + q[:, 3:] * around + np.cross(q[:, :3], around)


_WAYS = {"Spherical": _turning, "Free": _flying, "Planar": _gliding}
