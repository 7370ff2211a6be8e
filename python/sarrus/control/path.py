"""Paths through waypoints, with continuous velocity and acceleration: splines on the configuration manifold of a mechanism.

Between two waypoints every joint follows a cubic Hermite polynomial (:class:`Chart`). The velocities at the waypoints
are chosen such that accelerations are continuous. For scalar coordinates, and for the origins of free and planar joints, the path is the complete
cubic spline of :func:`sarrus.laws.spline`. For rotations it is the spline of Kang and Park,

    R(t) = R_k exp(x(t)),  x cubic,  with continuous ω and ω̇.

With loops, this spline p(t) violates the loop constraints between waypoints. Then the path q(t) is defined by the constraints and a guide equation,

    φ(q, t) = 0,    K(t) (q - p(t)) = 0          q - p in the coordinates of the joints, rotations as vectors

At a waypoint K = N^T, where N is an orthonormal basis (van der Merwe's E) of the motions that the loops allow there. Between two waypoints K is a
blend of both bases with the weight σ = s²(3 - 2s), s from 0 to 1. The derivatives of q are exact: from J v = c and J a = γ with the derivatives of
the guide equation. At waypoints q - p and σ' vanish, so that jumps of K'' have no effect.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, real_array
from ..analysis.linear_algebra import CLOSED, PRESENT, ScaledLoops, applied, null_space
from ..errors import ModelError, ShapeError, StateError
from ..laws import Law, quintic_pieces, spline
from ..mechanism import Mechanism, checked_mechanism
from ..spatial import left_jacobian_inverse

if TYPE_CHECKING:
    from .timing import TimedPath

__all__ = ["Path", "path_through"]

TOGETHER = 512  # number of times whose equations are solved at once
# if cos(angle / 2) is below this value, the angle is half a revolution; the sign of the quaternion, instead of rounding, then determines its
# direction
HALF_TURN = 1e-9
LAW_ERROR = 1e-10  # largest error of `Path.law` with loops, relative to the range of the coordinate


def path_through(
    mechanism: Mechanism, times: ArrayLike, q: ArrayLike, *, v: tuple[ArrayLike, ArrayLike] | None = None
) -> Path:
    """Return a path through configurations at given times, with continuous velocity and acceleration.

    - Scalar coordinates follow cubic splines.
    - Rotations follow piecewise exponentials of cubic polynomials, by the shorter rotation from one waypoint to the next, independent of the
      quaternions' signs. A rotation by half a revolution is about the vector part of q_k^-1 q_k+1. For the longer rotation, add waypoints.
    - Origins of free joints follow cubic splines in the axes of the joints' predecessors.

    Joint limits are not checked.

    With loops, the waypoints must satisfy the loop constraints, and the path satisfies them, too. Between waypoints it follows the spline in the
    directions that the loops allow. The path is continuous if J has constant rank. Choose the waypoints so close together that these directions
    change little from one waypoint to the next.

    Parameters
    ----------
    mechanism : mechanism; with loops, it must not have velocity constraints such as rolling
    times : (n,) increasing times [s], n at least 2
    q : (n, nq) waypoints; quaternions are normalised [rad, m, quaternions (x, y, z, w)]
    v : two velocities (nv,), at the first and at the last waypoint, that satisfy the loop constraints [rad/s, m/s]; default: at rest, or as slow as
        prescribed motions allow

    Raises
    ------
    ModelError
        Times do not increase, or the mechanism has velocity constraints.
    ShapeError
        Arrays have wrong shapes.
    StateError
        - Values are not finite, or quaternions are zero.
        - Waypoints or velocities violate the loop constraints, waypoints are too far apart, or the Jacobian of the loops loses rank.
        - Rotations are so uneven in time that no spline was found.

    References
    ----------
    Kang and Park, Cubic spline algorithms for orientation interpolation, Int. J. Numer. Meth. Engng 46, 1999; de Boor, A practical guide to
    splines, 1978, ch. IV.

    Examples
    --------
    >>> import sarrus
    >>> from sarrus.control.path import path_through
    >>> arm = sarrus.mechanisms.double_pendulum()
    >>> path = path_through(arm, [0.0, 1.0, 3.0], [[0.0, 0.0], [0.5, 1.0], [1.0, 0.0]])
    >>> q, v, a = path.at(1.0)
    >>> q.tolist(), v.round(6).tolist()
    ([0.5, 1.0], [0.625, 0.75])
    >>> drive = sarrus.control.ComputedTorque({name: path.law(name) for name in arm.joints})
    >>> run = sarrus.simulate(arm, [0.0, 0.0], [0.0, 0.0], 3.0, controller=drive)
    >>> bool(abs(run.q - path.at(run.t)[0]).max() < 1e-6)
    True
    """
    t, configurations = _way_points(mechanism, times, q)
    unit, status = mechanism.normalize(configurations, return_status=True)
    if status.any():
        raise StateError(f"waypoint {int(status.argmax())}: a quaternion is [0, 0, 0, 0]; expected a rotation")
    chart, q = Chart(mechanism), _same_signs(mechanism, unit)
    end_velocities: Any = np.zeros((2, mechanism.nv)) if v is None else v
    if not isinstance(end_velocities, (tuple, list, np.ndarray)) or len(end_velocities) != 2:
        raise ShapeError(f"v of a path must be two velocities, at its first and at its last waypoint; got {v!r}")
    ends = [_numbers("v", x, "two velocities of (nv,)", (mechanism.nv,)) for x in end_velocities]
    if not mechanism.nc:
        return Path(mechanism, t, q, _velocities(chart, t, q, ends))
    q, loops, K = _on_loops(mechanism, t, q, ends if v is not None else None)
    spline_v = _velocities(chart, t, q, ends)
    guide = Guide(mechanism, t, q, spline_v, loops.row_scale, loops.column_scale, K)
    path = Path(mechanism, t, q, Path(mechanism, t, q, spline_v, guide).at(t)[1], guide)
    _check_continuity(path, guide)
    return path


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """Motion q(t), v(t), a(t) through waypoints, from :func:`path_through`.

    The desired path of a frame in the design of a mechanism is a :class:`sarrus.design.FramePath`.

    Attributes
    ----------
    mechanism : the moving mechanism
    t : (n,) times of the waypoints [s]
    q : (n, nq) waypoints [rad, m]; the signs of quaternions are continuous from one to the next
    v : (n, nv) velocities at the waypoints [rad/s, m/s]
    """

    mechanism: Mechanism
    t: Array
    q: Array
    v: Array
    _guide: Guide | None = None

    def __post_init__(self) -> None:
        t, q = _way_points(self.mechanism, self.t, self.q)
        v = _numbers("v", self.v, "a velocity for each time, (n, nv)", (len(t), self.mechanism.nv))
        if not isinstance(self._guide, Guide | None):
            raise TypeError(f"the private field _guide of a Path is set by path_through() only; got {self._guide!r}")
        for name, array in (("t", t), ("q", q), ("v", v)):
            kept = array.copy()
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)

    @cached_property
    def _pieces(self) -> Array:
        """(n, k) polynomial pieces between waypoints, for the core; the last row is the last piece in reverse, for extrapolation."""
        to = np.append(np.arange(1, len(self.t)), len(self.t) - 2)
        v = self.v if self._guide is None else self._guide.v
        return pieces(self.t, self.q, v, np.arange(len(self.t)), to)

    @cached_property
    def _starts(self) -> list[float]:
        """Initial times of all pieces except the first; the last piece begins after the last waypoint."""
        return [*self.t[1:-1].tolist(), math.nextafter(self.t[-1], math.inf)]

    @cached_property
    def _core_input(self) -> list[tuple[Array, ...]]:
        """The core's input for each piece."""
        guide = self._guide
        return [
            (piece,) if guide is None else (piece, guide.scale, guide.rows[k]) for k, piece in enumerate(self._pieces)
        ]

    def __reduce__(self) -> tuple[type[Path], tuple[Any, ...]]:
        return type(self), (self.mechanism, self.t, self.q, self.v, self._guide)

    def __repr__(self) -> str:
        return f"<Path of '{self.mechanism.name}' through {len(self.t)} waypoints, {self.t[0]:.9g} s to {self.t[-1]:.9g} s>"

    def at(self, t: ArrayLike) -> Motion:
        """Return configurations q (..., nq), velocities v and accelerations a (..., nv).

        v and a are the derivatives of q, in the axes of each joint's velocity. Before the first and after the last waypoint the path continues
        with constant velocity, so that `a` is discontinuous at these two waypoints.

        Parameters
        ----------
        t : (...) times [s]

        Raises
        ------
        ShapeError, StateError
            Times are not numbers, or not finite; or the loops cannot close, which may happen before and after the waypoints.
        """
        if type(t) is float and math.isfinite(t):
            return self._at_time(bisect.bisect_right(self._starts, t), t)
        instants = _numbers("t", t)
        times = instants.reshape(-1)
        k = np.searchsorted(self._starts, times, side="right")
        chunks = range(0, max(len(times), 1), TOGETHER)
        parts = [self._at(k[i : i + TOGETHER], times[i : i + TOGETHER]) for i in chunks]
        q, v, a = (np.concatenate(x).reshape(*instants.shape, x[0].shape[-1]) for x in zip(*parts, strict=True))
        return q, v, a

    def _at_time(self, k: int, time: float) -> Motion:
        """Return the motion at a single time in piece k; a fast path for control loops."""
        numbers = self.mechanism._path_motion(*self._core_input[k], time=time)
        if self._guide is not None and numbers[-1]:
            raise self._guide.lost(time, k)
        return parted(self.mechanism, numbers)

    def _at(self, k: NDArray[np.intp], times: Array) -> Motion:
        """Return the motion at times in pieces k."""
        robot, guide = self.mechanism, self._guide
        if guide is None:
            return parted(robot, robot._path_motion(self._pieces[k], time=times))
        numbers = robot._path_motion(self._pieces[k], guide.scale, guide.rows[k], time=times)
        if (lost := ~(numbers[:, -1] == 0.0)).any():
            first = int(lost.argmax())
            raise guide.lost(times[first], int(k[first]))
        return parted(robot, numbers)

    def law(self, joint: str, index: int = 0) -> Law:
        """Return a coordinate of a joint as a function of time, for example as the target of a controller in C++.

        Without loops the function equals the path. With loops it interpolates values, rates and accelerations of the path, at so many times that its
        error is less than 1e-10 of the coordinate's range.

        Parameters
        ----------
        joint, index : name of a tree joint, and index of its coordinate

        Raises ModelError for ball and free joints, which have more coordinates than velocities, and for loop joints.
        """
        j = self.mechanism._tree_joint(joint)
        if j.type.quaternion:
            raise ModelError(f"Path.law requires a joint without a quaternion; '{joint}' is {j.type}: use Path.at")
        if not isinstance(index, Integral) or isinstance(index, bool) or index not in range(j.nq):
            raise ModelError(f"joint '{joint}' has {j.nq} coordinates; index {index!r} is out of range")
        return self._law(
            j.q_slice.start + int(index), self.mechanism._length if j.type.coordinates[int(index)][1] == "m" else 1.0
        )

    def _law(self, k: int, size: float) -> Law:
        """Return coordinate k of q as a function of time; `size`: its typical size."""
        if self._guide is None:
            rates = self.mechanism._coordinate_rate(self.q[[0, -1]], self.v[[0, -1]])[:, k].tolist()
            return spline(self.t, self.q[:, k], slopes=(rates[0], rates[1]))
        return self._fitted(k, size)

    def timed(
        self, *, velocity: Any = None, acceleration: Any = None, effort: Any = None,
        feed: Mapping[str, ArrayLike] | None = None, grid: int = 1000,
    ) -> TimedPath:  # fmt: skip
        """Return the fastest motion along this path, from rest to rest, within limits of motors and tools.

        Only the geometry q(s) of the path is used, with its time as the parameter s. The timing s(t) is computed by reachability analysis: s'' is
        constant in each interval of a grid, and the limits hold in the whole interval, up to errors of third order in its length. The efforts
        of mechanisms with loops are those of :meth:`~sarrus.Mechanism.actuator_efforts`; they include dampers and dry friction of joints.

        Parameters
        ----------
        velocity, acceleration : limits of joints [rad/s, m/s; rad/s², m/s²], one number for all motors (without motors: all joints of the tree), or a
            mapping of joints (of the tree or of loops) to numbers or (nv,); default and joints without an entry: the `velocity_limit` of motors, and no limit of accelerations
        effort : limits of motors, as a number or a mapping [N m, N]; default and motors without an entry: `effort_limit`
        feed : mapping of frames' names to the largest speed of their origin [m/s], or to (speed, acceleration [m/s²])
        grid : approximate number of intervals; at least two between two waypoints

        Returns
        -------
        TimedPath, a :class:`Path` that starts at t = 0, with `duration` and `active`, the active limit in each interval

        Raises
        ------
        ModelError, ShapeError, NameNotFoundError
            A limit is not positive, no limit bounds the motion, or the mechanism has prescribed motions.
        StateError, NotRealizableError
            The path cannot be traversed within the limits, for example because a motor cannot hold a pose; or the motors cannot produce the motion.

        References
        ----------
        Pham and Pham, A New Approach to Time-Optimal Path Parameterization Based on Reachability Analysis, IEEE T-RO 34, 2018.

        Examples
        --------
        >>> import sarrus
        >>> from sarrus.control.path import path_through
        >>> arm = sarrus.mechanisms.double_pendulum()
        >>> path = path_through(arm, [0.0, 1.0, 3.0], [[0.0, 0.0], [0.5, 1.0], [1.0, 0.0]])
        >>> timed = path.timed(velocity=2.0, acceleration=10.0)
        >>> q, v, a = timed.at(timed.duration / 2)
        >>> bool(abs(v).max() <= 2.0 and abs(a).max() <= 10.0), timed.duration < 3.0
        (True, True)
        """
        from .timing import timed

        return timed(self, velocity, acceleration, effort, feed, grid)

    def _fitted(self, k: int, size: float) -> Law:
        """Return piecewise quintics, with as many pieces as the error requires.

        The error is relative to the coordinate's range, or to a thousandth of `size` if this is larger.
        """
        robot, count = self.mechanism, 4
        while True:
            times = _divided(self.t, 2 * count)
            q, v, a = self.at(times)
            x, rate, bend = (
                y[:, k] for y in (q, robot._coordinate_rate(q, v), robot._coordinate_acceleration(q, v, a))
            )
            law = _quintics(times[::2], np.stack([x, rate, bend], axis=-1)[::2])
            if np.abs(law(times) - x).max() <= LAW_ERROR * max(float(np.ptp(x)), 1e-3 * size) or count >= 256:
                return law
            count *= 2


def _quintics(t: Array, values: Array, ends: Array | None = None) -> Law:
    """Return the time function by :func:`~sarrus.laws.quintic_pieces`; it is linear before and after."""
    pieces = quintic_pieces(t, values, ends)
    rows = np.array([[*values[0, :2], 0, 0, 0, 0], *pieces, [*values[-1, :2], 0, 0, 0, 0]])
    return Law((t[0], *t.tolist()), tuple(map(tuple, rows.tolist())))


# ---- velocities at the waypoints ----------------------------------------------------------------------------------------------------


def _velocities(chart: Chart, t: Array, q: Array, ends: Sequence[Array]) -> Array:
    """Return the velocities (n, nv) that make the accelerations of all joints continuous."""
    end_rates, turns = chart.rates(q[[0, -1]], np.array(ends)), chart.difference(q[:-1], q[1:])
    rates = np.empty((len(t), chart.robot.nv))
    for x, k in zip(chart.plain, chart.plain_q, strict=True):
        first, last = end_rates[:, x].tolist()
        rates[:, x] = spline(t, q[:, k], slopes=(first, last)).derivatives(t)[1]
    names = [name for name in chart.robot.joints if chart.robot.joint(name).type.quaternion]
    for name, ball in zip(names, chart.balls, strict=True):
        rates[:, ball] = _spins(name, t, turns[:, ball], end_rates[:, ball])
    v = chart.velocities(q, rates)
    v[0], v[-1] = ends
    return v


def _spins(name: str, t: Array, x: Array, ends: Array) -> Array:
    """Return the angular velocities (n, 3) that make the angular acceleration continuous, by Newton's method on

    ω̇ at the end of piece k - 1 = ω̇ at the start of piece k.

    Each side is at most quadratic in the velocities at both ends of its piece, so that central differences are exact. All pieces are solved together,
    because errors of a solution piece by piece (Kang and Park) grow from piece to piece.
    """
    h, vector_rates = np.diff(t)[:, None], left_jacobian_inverse(-x)

    def jumps(first: Array, second: Array) -> tuple[Array, Array]:
        rate = applied(vector_rates, second)
        start = (6.0 * x / h - 4.0 * first - 2.0 * rate) / h
        derivatives = np.concatenate([rate, (2.0 * first + 4.0 * rate - 6.0 * x / h) / h], axis=-1)
        return start, _core.spatial.spin(np.broadcast_to(x, rate.shape), derivatives)[..., 3:]

    def jump(spin: Array) -> Array:
        start, end = jumps(spin[:-1], spin[1:])
        return end[:-1] - start[1:]

    spin = np.empty((len(t), 3))
    spin[0], spin[-1] = ends
    spin[1:-1] = (x[:-1] / h[:-1] + x[1:] / h[1:]) / 2.0
    if len(t) == 2:
        return spin
    left = jump(spin)
    size = max(float(np.abs(spin).max()), float(np.abs(x / h).max()))
    for _ in range(100):
        if size == 0.0:
            return spin
        steps = size * np.eye(6).reshape(6, 1, 2, 3)
        ahead, back = (jumps(spin[:-1] + s * steps[..., 0, :], spin[1:] + s * steps[..., 1, :]) for s in (1.0, -1.0))
        # derivatives of the accelerations at both ends of a piece with respect to the velocities at its start and at its end
        (start_by_first, start_by_second), (end_by_first, end_by_second) = (
            ((a - b) / (2.0 * size)).reshape(2, 3, -1, 3).transpose(0, 2, 3, 1)
            for a, b in zip(ahead, back, strict=True)
        )
        step = np.zeros_like(spin)
        step[1:-1] = _tridiagonal(
            end_by_first[:-1], end_by_second[:-1] - start_by_first[1:], -start_by_second[1:], -left
        )
        part = 1.0
        while True:
            tried = spin + part * step
            jumped = jump(tried)
            if np.linalg.norm(jumped / h[1:]) <= (1.0 - part / 4.0) * np.linalg.norm(left / h[1:]) or part < 1e-3:
                break
            part /= 2.0
        if not np.isfinite(jumped).all():
            break
        spin, left = tried, jumped
        if np.abs(step).max() <= 1e-9 * size:  # quadratic convergence: the next step would be about 1e-18
            return spin
    angle = np.linalg.norm(x, axis=1)
    worst = int(angle.argmax())
    raise StateError(
        f"no smooth rotation of joint '{name}' through its waypoints was found: from waypoint {worst} to {worst + 1} it rotates by "
        f"{angle[worst]:.3g} rad within {h[worst, 0]:.3g} s; add waypoints, or space them more evenly in time"
    )


def _tridiagonal(below: Array, diagonal: Array, above: Array, right_side: Array) -> Array:
    """Return the solution (m, 3) of a block tridiagonal system with blocks (m, 3, 3), by elimination and substitution."""
    m = len(diagonal)
    x, ratio = right_side.copy(), np.empty_like(above)
    for k in range(m):
        pivot = diagonal[k] - (below[k] @ ratio[k - 1] if k else 0.0)
        right = x[k] - (below[k] @ x[k - 1] if k else 0.0)
        both = np.linalg.solve(pivot, np.column_stack([above[k], right]))
        ratio[k], x[k] = both[:, :3], both[:, 3]
    for k in range(m - 2, -1, -1):
        x[k] -= ratio[k] @ x[k + 1]
    return x


def _same_signs(mechanism: Mechanism, q: Array) -> Array:
    """Return the waypoints with signs of quaternions such that each quaternion is nearest to the previous one."""
    q = q.copy()
    for name in mechanism.joints:
        joint = mechanism.joint(name)
        if joint.type.quaternion:
            x = q[:, joint.q_slice.start : joint.q_slice.start + 4]
            flips = np.where((x[:-1] * x[1:]).sum(axis=1) < -HALF_TURN, -1.0, 1.0)
            x[1:] *= np.cumprod(flips)[:, None]
    return q


# ---- closed loops --------------------------------------------------------------------------------------------------------------------


def _on_loops(
    mechanism: Mechanism, t: Array, q: Array, ends: Sequence[Array] | None
) -> tuple[Array, ScaledLoops, Array]:
    """Return the waypoints with loops closed to rounding, the scaled loops, and K (n, d, nv) at the waypoints (see the module's docstring)."""
    loops = ScaledLoops(mechanism, q[0], float(t[0]))
    if not loops.holonomic.all():
        rolls = [name for name in mechanism.constraints if not all(mechanism.constraint(name).holonomic)]
        raise ModelError(
            f"constraint '{rolls[0]}' constrains velocities only, so that reachable waypoints depend on the path; expected position constraints"
        )
    off = np.abs(loops.row_scale * mechanism.constraint_residual(q, time=t))
    if off.max(initial=0.0) > CLOSED:
        k, row = divmod(int(off.argmax()), mechanism.nc)
        raise StateError(
            f"waypoint {k} does not close the loops: '{mechanism._row_names[row]}' is violated by {mechanism.constraint_residual(q[k], time=t[k])[row]:.3g} "
            f"(relative to the mechanism's length: {off[k, row]:.1g}; allowed: {CLOSED:g}); project it by mechanism.project_configuration(q), or from "
            "farther away by mechanism.assemble(near=q)"
        )
    q, status = mechanism.project_configuration(q, metric="euclidean", time=t, return_status=True)
    if status.any():
        raise StateError(
            f"waypoint {int(np.argmax(status != 0))} does not close the loops, and the projection onto them failed: "
            "try mechanism.assemble(near=q)"
        )
    q = _same_signs(mechanism, q)
    J = loops.row_scale[:, None] * mechanism.constraint_jacobian(q, time=t) * loops.column_scale
    for at, v in zip((0, -1), ends or (), strict=False):
        x, c = v / loops.column_scale, loops.row_scale * mechanism.constraint_velocity(q[at], time=t[at])
        wrong = float(np.abs(J[at] @ x - c).max())
        if wrong > CLOSED * max(1.0, float(np.abs(x).max())):
            raise StateError(
                f"the velocity at the {'last' if at else 'first'} waypoint violates the loops: J v - c is up to {wrong:.3g}; "
                "pass mechanism.project_velocity(q, v), the nearest consistent velocity"
            )
    bases = [null_space(rows, PRESENT) for rows in J]
    freedoms = [basis.shape[1] for basis in bases]
    most, least = max(freedoms), min(freedoms)
    if most > least:
        raise StateError(
            f"at waypoint {freedoms.index(most)} the loops allow {most} independent motions, elsewhere {least}: the loops lose rank at "
            "this waypoint, where branches meet; omit it, or pass another waypoint nearby"
        )
    # rotate each basis so that it is nearest to the previous basis, because an interpolation of the two must also be a basis
    for k in range(1, len(bases)):
        U, cosines, V = np.linalg.svd(bases[k].T @ bases[k - 1])
        if cosines.min(initial=1.0) < 0.1:
            raise too_far(k - 1)
        bases[k] = bases[k] @ U @ V
    return q, loops, np.swapaxes(np.array(bases), 1, 2)


def _check_continuity(path: Path, guide: Guide) -> None:
    """Raise StateError if the loops cannot close along the path, or the path jumps to another branch, before a controller uses it.

    A jump is detected by cubic interpolation: its error in the middle of a piece does not vanish with the length of the pieces.
    """
    times = _divided(path.t, 8)
    first, last = times[:-1], times[1:]
    for _ in range(10):
        middle = (first + last) / 2.0
        ends, (q, _, _) = path.at(np.concatenate([first, last])), path.at(middle)
        robot, k = path.mechanism, np.arange(len(middle))
        cubics = pieces(np.concatenate([first, last]), *ends[:2], k, k + len(k))
        interpolated = parted(robot, robot._path_motion(cubics, time=middle))[0]
        off = np.abs(robot.difference(interpolated, q) / guide.column_scale).max(axis=1)
        first, middle, last = first[off > 1e-4], middle[off > 1e-4], last[off > 1e-4]
        if len(middle) == 0:
            return
        first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
    raise too_far(int(np.searchsorted(path.t, first.min(), side="right")) - 1)


def _divided(t: Array, pieces: int) -> Array:
    """Return the times t (n,) with `pieces` equal intervals in each of their intervals."""
    return np.append(t[:-1, None] + np.diff(t)[:, None] * np.arange(pieces) / pieces, t[-1])


# ---- checks of arguments -------------------------------------------------------------------------------------------------------------


def _way_points(mechanism: Mechanism, times: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Return checked increasing times (n,) and configurations (n, nq)."""
    checked_mechanism(mechanism)
    t = _numbers("times", times)
    if t.ndim != 1 or len(t) < 2:
        raise ShapeError(f"times of a path must be (n,), one for each of two waypoints or more; got shape {t.shape}")
    late = np.flatnonzero(~(np.diff(t) > 0.0))
    if late.size:
        raise ModelError(f"times of a path must increase; got {t[late[0]]:.9g} and then {t[late[0] + 1]:.9g}")
    return t, _numbers("q", q, "a waypoint for each time, (n, nq)", (len(t), mechanism.nq))


def _numbers(name: str, value: ArrayLike, expected: str = "", shape: tuple[int, ...] = ()) -> Array:
    """Return a finite array with this shape, if any; raise TypeError, ShapeError or StateError otherwise."""
    array = real_array(f"{name} of a path", value)
    if expected and array.shape != shape:
        raise ShapeError(f"{name} of a path must be {expected} = {shape}; got shape {array.shape}")
    if not np.isfinite(array).all():
        wrong = np.argwhere(~np.isfinite(array))[0]
        at = f"[{', '.join(map(str, wrong))}]" if wrong.size else ""
        raise StateError(f"{name} of a path must be finite; {name}{at} is {array[tuple(wrong)]}")
    return array


# ---- paths of mechanisms with loops ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Guide:
    """Guide equation K (q - p) = 0 of a path: the spline p, and K (n, d, nv) at each waypoint, in scaled velocities."""

    mechanism: Mechanism
    t: Array
    q: Array
    v: Array
    row_scale: Array
    column_scale: Array
    K: Array

    @cached_property
    def rows(self) -> Array:
        """(n, k) flattened K at both ends of each piece, as input of the core.

        The last row contains the last piece in reverse, for extrapolation after it.
        """
        K = self.K.reshape(len(self.K), -1)
        both = np.concatenate([np.column_stack([K[:-1], K[1:]]), [np.concatenate([K[-1], K[-2]])]])
        rows = np.zeros((len(both), 1 + 2 * self.mechanism.nv**2))
        rows[:, 0], rows[:, 1 : 1 + both.shape[1]] = self.K.shape[1], both
        return rows

    @cached_property
    def scale(self) -> Array:
        return np.concatenate([self.column_scale, self.row_scale])

    def lost(self, time: float, k: int) -> StateError:
        t = self.t
        if t[0] <= time <= t[-1]:
            return too_far(k)
        return StateError(
            f"at t = {time:.9g} s the loops cannot close: the waypoints are from {t[0]:.9g} s to {t[-1]:.9g} s, and the path is extrapolated"
        )


def too_far(k: int) -> StateError:
    return StateError(
        f"waypoints {k} and {k + 1} are too far apart for a path along the loops, or on different branches: "
        "add waypoints in between, for example by mechanism.follow"
    )


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
        # indices, in x and in q, of the three displacements of each joint whose linear velocity is in the axes of the body
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
