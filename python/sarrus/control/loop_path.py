"""What keeps a path on closed loops near the spline through its way-points: see :mod:`~sarrus.control.path`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays import Array
from ..errors import StateError
from ..mechanism import Mechanism
from .interpolation import Motion, conjugate, glided, motion, product, turned


@dataclass(frozen=True, eq=False)
class Guide:
    """The spline p, and along which combinations K (n, d, nv) of velocities, in the loops' scale, the path keeps to it at each way-point."""

    mechanism: Mechanism
    t: Array
    q: Array
    v: Array
    row_scale: Array
    column_scale: Array
    K: Array

    def follow(self, times: Array, k: NDArray[np.intp], to: NDArray[np.intp], near: Array) -> Motion:
        """The motion on the loops at times (m,) from way-points k towards others; Newton's steps start at configurations nearby."""
        robot, t, C = self.mechanism, self.t, self.column_scale
        p = motion(robot, t, self.q, self.v, times, k, to)
        h = (t[to] - t[k])[:, None, None]
        s = np.maximum((times - t[k])[:, None, None] / h, 0.0)
        change = self.K[to] - self.K[k]
        K = self.K[k] + s**2 * (3.0 - 2.0 * s) * change
        K1 = 6.0 * s * (1.0 - s) / h * change
        K2 = np.where(s > 0.0, (6.0 - 12.0 * s) / h**2, 0.0) * change

        def equations(q: Array) -> tuple[Array, Array, Array]:
            J = self.row_scale[:, None] * robot.constraint_jacobian(q, time=times) * C
            offset, E = _offset(robot, q, p[0])
            return np.concatenate([J, K @ (E / C[:, None] * C)], axis=1), offset / C, E

        q = near
        for _ in range(40):
            A, offset, _ = equations(q)
            off = np.concatenate([self.row_scale * robot.loop_residual(q, time=times), _times(K, offset)], axis=1)
            step = -_solve(A, off)
            size = np.abs(step).max(axis=1, initial=0.0)
            if not np.isfinite(size).all():
                break
            q = robot.integrate(q, C * step * np.minimum(1.0, 0.3 / np.maximum(size, 1e-300))[:, None])
            if size.max(initial=0.0) < 1e-9:  # Newton's: after it 1e-18
                break
        else:
            size = np.where(np.isfinite(size), size, np.inf)
        A, offset, E = equations(q)
        lost = ~(size < 1e-9) | (np.abs(offset).max(axis=1, initial=0.0) > 1.0)
        if lost.any():
            first = int(np.argmax(lost))
            raise self._lost(times[first], int(min(k[first], to[first])))
        still = np.zeros_like(p[1])
        rate = _offset_motion(robot, (q, still, still), p)[0] / C
        c = self.row_scale * robot.constraint_velocity(q, time=times)
        v = C * _solve(A, np.concatenate([c, -_times(K, rate) - _times(K1, offset)], axis=1))
        rate, bend = (x / C for x in _offset_motion(robot, (q, v, still), p))
        bias = self.row_scale * robot.constraint_bias(q, v, time=times)
        led = -_times(K, bend) - 2.0 * _times(K1, rate) - _times(K2, offset)
        return q, v, C * _solve(A, np.concatenate([bias, led], axis=1))

    def _lost(self, time: float, k: int) -> StateError:
        t = self.t
        if t[0] <= time <= t[-1]:
            return too_far(k)
        return StateError(
            f"at t = {time:.9g} s the loops cannot close: the path has no way-points beyond {t[0]:.9g} s to {t[-1]:.9g} s, and goes straight on"
        )


def _times(A: Array, x: Array) -> Array:
    """Products (m, k) of matrices (m, k, n) and vectors (m, n)."""
    return np.asarray((A @ x[..., None])[..., 0])


def _solve(A: Array, b: Array) -> Array:
    """(m, n) from consistent equations A x = b, more than unknowns, of full column rank: no rank must be told from rounding.

    One refinement makes up for the squared condition of A^T A.
    """
    normal, transposed = np.swapaxes(A, 1, 2) @ A, np.swapaxes(A, 1, 2)
    try:
        x = np.linalg.solve(normal, transposed @ b[..., None])
        x = x + np.linalg.solve(normal, transposed @ (b[..., None] - A @ x))
    except np.linalg.LinAlgError:
        return np.full(A.shape[::2], np.nan)
    return np.asarray(x[..., 0])


def _offset(robot: Mechanism, q: Array, p: Array) -> tuple[Array, Array]:
    """q - p (m, nv) in the coordinates of joints, and its derivative E (m, nv, nv) by the velocity."""
    offset, E = np.empty((len(q), robot.nv)), np.zeros((len(q), robot.nv, robot.nv))
    for name in robot.joints:
        joint = robot.joint(name)
        iv, x, y = joint.v_slice, q[:, joint.q_slice], p[:, joint.q_slice]
        if joint.type.quaternion:
            e = _near(x, y)
            part = np.hstack([2.0 * e[:, :3], x[:, 4:] - y[:, 4:]])
            turns = slice(iv.start, iv.start + 3)
            for k, unit in enumerate(np.eye(3)):
                E[:, turns, iv.start + k] = e[:, 3:] * unit + np.cross(e[:, :3], unit)
                if joint.kind == "Free":
                    E[:, iv.start + 3 : iv.stop, iv.start + 3 + k] = turned(
                        x[:, :4], np.broadcast_to(unit, (len(x), 3))
                    )
        else:
            part = x - y
            for k, unit in enumerate(np.eye(joint.nv)):
                column = glided(x[:, 2], np.broadcast_to(unit, (len(x), 3))) if joint.kind == "Planar" else unit
                E[:, iv, iv.start + k] = column
        offset[:, iv] = part
    return offset, E


def _offset_motion(robot: Mechanism, of: Motion, p: Motion) -> tuple[Array, Array]:
    """First and second derivative (m, nv) of q - p in the coordinates of joints."""
    rate, bend = np.empty_like(of[1]), np.empty_like(of[1])
    for name in robot.joints:
        joint = robot.joint(name)
        iq, iv = joint.q_slice, joint.v_slice
        first = of[0][:, iq], of[1][:, iv], of[2][:, iv]
        second = p[0][:, iq], p[1][:, iv], p[2][:, iv]
        if joint.type.quaternion:
            parts = [_turning_offset(first, second)]
            if joint.kind == "Free":
                (r0, b0), (r1, b1) = _origin(first), _origin(second)
                parts.append((r0 - r1, b0 - b1))
            rate[:, iv], bend[:, iv] = (np.hstack(x) for x in zip(*parts, strict=True))
        else:
            if joint.kind == "Planar":
                first, second = gliding_motion(*first), gliding_motion(*second)
            rate[:, iv], bend[:, iv] = first[1] - second[1], first[2] - second[2]
    return rate, bend


def _near(q: Array, p: Array) -> Array:
    """Unit quaternions (m, 4) that lead from p to q the shorter way."""
    e = product(conjugate(p[:, :4]), q[:, :4])
    return np.where(e[:, 3:] < 0.0, -e, e)


def _turning_offset(of: Motion, p: Motion) -> tuple[Array, Array]:
    """Derivatives of twice the vector part of e = p^-1 q: e' = e ω/2, with ω that of q as seen from p."""
    e = _near(of[0], p[0])
    moved, moved_rate = (turned(conjugate(e), x[:, :3]) for x in p[1:])
    spin = of[1][:, :3] - moved
    # what stands still in p turns backwards in q
    spin_rate = of[2][:, :3] - moved_rate + np.cross(spin, moved)
    vector, scalar = e[:, :3], e[:, 3:]
    rate = scalar * spin + np.cross(vector, spin)
    scalar_rate = -(vector * spin).sum(axis=1, keepdims=True) / 2.0
    bend = scalar_rate * spin + np.cross(rate, spin) / 2.0 + scalar * spin_rate + np.cross(vector, spin_rate)
    return rate, bend


def _origin(of: Motion) -> tuple[Array, Array]:
    """Velocity and acceleration of a free joint's origin, in the axes of the predecessor."""
    turn, spin, along = of[0][:, :4], of[1][:, :3], of[1][:, 3:]
    return turned(turn, along), turned(turn, of[2][:, 3:] + np.cross(spin, along))


def gliding_motion(q: Array, v: Array, a: Array) -> Motion:
    """Coordinates of a planar joint and their derivatives, from the velocity in its own axes and that one's rate."""
    a = a.copy()
    a[:, :2] += v[:, 2:] * np.column_stack([-v[:, 1], v[:, 0]])
    return q, glided(q[:, 2], v), glided(q[:, 2], a)


def too_far(k: int) -> StateError:
    return StateError(
        f"the loops turn too far between way-points {k} and {k + 1} for a path to be led along them, or the way-points are on different "
        "branches: add way-points in between, such as mechanism.follow finds"
    )
