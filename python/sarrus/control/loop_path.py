"""What keeps a path on closed loops near the spline through its way-points: see :mod:`~sarrus.control.path`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._arrays import Array
from ..analysis.linear_algebra import applied, transposed
from ..errors import StateError
from ..mechanism import Mechanism
from .interpolation import Chart, Motion, cross, exponential_motion, exponential_rate, in_turned_axes, motion


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

    @cached_property
    def chart(self) -> Chart:
        """In whose coordinates the way from p counts."""
        return Chart(self.mechanism)

    def follow(self, times: Array, k: NDArray[np.intp], to: NDArray[np.intp], near: Array) -> Motion:
        """The motion on the loops at times (m,) from way-points k towards others; Newton's steps start at configurations nearby.

        The closing solver of the core would do them but for the rows of K, which no constraint of the mechanism is.
        """
        robot, t, C = self.mechanism, self.t, self.column_scale
        chart = self.chart
        p = motion(chart, t, self.q, self.v, times, k, to)
        h = (t[to] - t[k])[:, None, None]
        s = np.maximum((times - t[k])[:, None, None] / h, 0.0)
        change = self.K[to] - self.K[k]
        K = self.K[k] + s**2 * (3.0 - 2.0 * s) * change
        K1 = 6.0 * s * (1.0 - s) / h * change
        K2 = np.where(s > 0.0, (6.0 - 12.0 * s) / h**2, 0.0) * change

        def equations(q: Array) -> tuple[Array, Array]:
            J = self.row_scale[:, None] * robot.constraint_jacobian(q, time=times) * C
            offset = chart.difference(p[0], q)
            E = chart.rates(q[:, None], np.eye(robot.nv))
            E[..., chart.balls] = exponential_rate(offset[:, None, chart.balls], E[..., chart.balls])
            return np.concatenate([J, K @ (transposed(E) / C[:, None] * C)], axis=1), offset / C

        q = near
        for _ in range(40):
            A, offset = equations(q)
            off = np.concatenate(
                [self.row_scale * robot.constraint_residual(q, time=times), applied(K, offset)], axis=1
            )
            step = -_solve(A, off)
            size = np.abs(step).max(axis=1, initial=0.0)
            if not np.isfinite(size).all():
                break
            q = robot.integrate(q, C * step * np.minimum(1.0, 0.3 / np.maximum(size, 1e-300))[:, None])
            if size.max(initial=0.0) < 1e-9:  # Newton's: after it 1e-18
                break
        else:
            size = np.where(np.isfinite(size), size, np.inf)
        A, offset = equations(q)
        lost = ~(size < 1e-9) | (np.abs(offset).max(axis=1, initial=0.0) > 1.0)
        if lost.any():
            first = int(np.argmax(lost))
            raise self._lost(times[first], int(min(k[first], to[first])))
        still = np.zeros_like(p[1])
        rate = _offset_motion(chart, (q, still, still), p)[0] / C
        c = self.row_scale * robot.constraint_velocity(q, time=times)
        v = C * _solve(A, np.concatenate([c, -applied(K, rate) - applied(K1, offset)], axis=1))
        rate, bend = (x / C for x in _offset_motion(chart, (q, v, still), p))
        bias = self.row_scale * robot.constraint_bias(q, v, time=times)
        led = -applied(K, bend) - 2.0 * applied(K1, rate) - applied(K2, offset)
        return q, v, C * _solve(A, np.concatenate([bias, led], axis=1))

    def _lost(self, time: float, k: int) -> StateError:
        t = self.t
        if t[0] <= time <= t[-1]:
            return too_far(k)
        return StateError(
            f"at t = {time:.9g} s the loops cannot close: the path has no way-points beyond {t[0]:.9g} s to {t[-1]:.9g} s, and goes straight on"
        )


def _solve(A: Array, b: Array) -> Array:
    """(m, n) from consistent equations A x = b, more than unknowns, of full column rank: no rank must be told from rounding.

    One refinement makes up for the squared condition of A^T A.
    """
    normal = transposed(A) @ A
    try:
        x = np.linalg.solve(normal, transposed(A) @ b[..., None])
        x = x + np.linalg.solve(normal, transposed(A) @ (b[..., None] - A @ x))
    except np.linalg.LinAlgError:
        return np.full(A.shape[::2], np.nan)
    return np.asarray(x[..., 0])


def _offset_motion(chart: Chart, of: Motion, p: Motion) -> tuple[Array, Array]:
    """First and second derivative (m, nv) of the way from p to q in the coordinates of joints."""
    balls, offset = chart.balls, chart.difference(p[0], of[0])[:, chart.balls]
    rate = chart.rates(*of[:2]) - chart.rates(*p[:2])
    bend = chart.second_rates(*of) - chart.second_rates(*p)
    # the angular velocity of q as seen from p; what stands still in p turns backwards in q
    moved, moved_rate = (in_turned_axes(offset, x[:, balls]) for x in p[1:])
    spin = of[1][:, balls] - moved
    rate[:, balls] = exponential_rate(offset, spin)
    spin_rate = of[2][:, balls] - moved_rate + cross(spin, moved)
    apparent = exponential_motion(offset, rate[:, balls], np.zeros_like(spin))[1]
    bend[:, balls] = exponential_rate(offset, spin_rate - apparent)
    return rate, bend


def too_far(k: int) -> StateError:
    return StateError(
        f"the loops turn too far between way-points {k} and {k + 1} for a path to be led along them, or the way-points are on different "
        "branches: add way-points in between, such as mechanism.follow finds"
    )
