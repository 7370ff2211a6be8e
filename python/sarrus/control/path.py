"""Paths through way-points, with continuous velocity and acceleration: splines on the configurations of a mechanism.

Between two way-points every joint goes as in :mod:`~sarrus.control.interpolation`: on the cubic that has the configurations and velocities of both.
The velocities at the way-points are those for which accelerations have no jumps: for coordinates that add up, and for the origins
of free and planar joints, the complete cubic spline of :func:`sarrus.laws.spline`; for rotations the spline of Kang and Park,

    R(t) = R_k exp(x(t)),  x cubic,  of which ω and ω̇ are continuous.

Where loops close, that spline p(t) leaves them between way-points. The path is then what both the loops and a guide determine,

    φ(q, t) = 0,    K(t) (q - p(t)) = 0          q - p in the coordinates of the joints, rotations as vectors

with K = N^T at a way-point, N an orthonormal basis (van der Merwe's E) of the motions that the loops allow there, and a blend σ = s²(3 - 2s)
of both in between. Its derivatives are exact, J v = c and J a = γ with those of the guide. q - p vanishes at way-points, and so does σ', so
that no jump of K'' is felt.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, real_array
from ..analysis.linear_algebra import applied
from ..analysis.scaling import CLOSED, PRESENT, ScaledLoops, null_space
from ..errors import ModelError, ShapeError, StateError
from ..laws import Law, spline
from ..mechanism import Mechanism, checked_mechanism
from ..spatial import left_jacobian_inverse
from .interpolation import Chart, Motion, parted, pieces

__all__ = ["Path", "path_through"]

TOGETHER = 512  # times whose equations are solved at once
HALF_TURN = 1e-9  # cosine of half an angle up to which both ways count as half a turn: there signs of quaternions decide, not rounding
LAW_ERROR = 1e-10  # of a law that stands for a coordinate which loops move, relative to how far it goes


def path_through(
    mechanism: Mechanism, times: ArrayLike, q: ArrayLike, *, v: tuple[ArrayLike, ArrayLike] | None = None
) -> Path:
    """A path through configurations at given times, with continuous velocity and acceleration.

    Coordinates that add up go on cubic splines, rotations on piecewise exponentials of cubics, origins of free joints on splines in the axes of
    their predecessors. A ball or free joint goes the shorter way from one way-point to the next, whatever the signs of the quaternions; where
    both are half a turn, about the vector part of q_k^-1 q_k+1 as they are given. For the longer way, add way-points. Joint limits are not
    asked for.

    Where loops close, way-points must be on them, and between them the path stays on them. There it goes as the spline does along the motions
    that the loops allow; what else the spline wants is left out. That costs no continuity where J keeps its rank. The way-points should be so
    near to each other that the loops do not turn far from one to the next.

    Parameters
    ----------
    mechanism : without constraints that hold velocities only, such as rolling, if loops close
    times : (n,) increasing, n at least 2 [s]
    q : (n, nq) way-points; quaternions are made unit [rad, m, quaternions (x, y, z, w)]
    v : velocities (nv,) at the first and at the last way-point, which the loops must allow; default: at rest, or as near to it as prescribed
        motion lets it be

    Raises
    ------
    ModelError
        Times that do not increase; a mechanism that rolls.
    ShapeError
        Arrays of other shapes.
    StateError
        Numbers that are not finite, quaternions that are no rotation; way-points or velocities that the loops do not allow, or way-points too
        far apart, or where loops lose rank; rotations so uneven in time that no spline was found.

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
    t, given_q = _way_points(mechanism, times, q)
    unit, status = mechanism.normalize(given_q, return_status=True)
    if status.any():
        raise StateError(f"way-point {int(status.argmax())}: a quaternion is [0, 0, 0, 0], which is no rotation")
    chart, q = Chart(mechanism), _same_signs(mechanism, unit)
    end_velocities: Any = np.zeros((2, mechanism.nv)) if v is None else v
    if not isinstance(end_velocities, (tuple, list, np.ndarray)) or len(end_velocities) != 2:
        raise ShapeError(f"v of a path is two velocities, at its first and at its last way-point; got {v!r}")
    ends = [_numbers("v", one, "two velocities of (nv,)", (mechanism.nv,)) for one in end_velocities]
    if not mechanism.nc:
        return Path(mechanism, t, q, _velocities(chart, t, q, ends))
    q, loops, K = _on_loops(mechanism, t, q, ends if v is not None else None)
    spline_v = _velocities(chart, t, q, ends)
    guide = Guide(mechanism, t, q, spline_v, loops.row_scale, loops.column_scale, K)
    path = Path(mechanism, t, q, Path(mechanism, t, q, spline_v, guide).at(t)[1], guide)
    _check_way(path, guide)
    return path


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """A motion q(t), v(t), a(t) through way-points, made by :func:`path_through`; what a designed mechanism is to trace is a
    :class:`sarrus.design.FramePath`.

    Attributes
    ----------
    mechanism : whose motion it is
    t : (n,) times of the way-points [s]
    q : (n, nq) way-points; quaternions with the signs with which they go on from one to the next
    v : (n, nv) velocities at the way-points
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
            raise TypeError(f"a path along loops is made by path_through(); got the guide {self._guide!r}")
        for name, array in (("t", t), ("q", q), ("v", v)):
            kept = array.copy()
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)

    @cached_property
    def _pieces(self) -> Array:
        """(n, numbers) between way-points, for the core; the last row is the last piece seen from its end, where it goes on."""
        to = np.append(np.arange(1, len(self.t)), len(self.t) - 2)
        v = self.v if self._guide is None else self._guide.v
        return pieces(self.t, self.q, v, np.arange(len(self.t)), to)

    @cached_property
    def _starts(self) -> list[float]:
        """At which times pieces after the first one start; beyond the last way-point is a piece, too."""
        return [*self.t[1:-1].tolist(), math.nextafter(self.t[-1], math.inf)]

    @cached_property
    def _asked(self) -> list[tuple[Array, ...]]:
        """What the core is told of each piece."""
        guide = self._guide
        return [
            (piece,) if guide is None else (piece, guide.scale, guide.rows[k]) for k, piece in enumerate(self._pieces)
        ]

    def __reduce__(self) -> tuple[type[Path], tuple[Any, ...]]:
        return type(self), (self.mechanism, self.t, self.q, self.v, self._guide)

    def __repr__(self) -> str:
        return f"<Path of '{self.mechanism.name}' through {len(self.t)} way-points, {self.t[0]:.9g} s to {self.t[-1]:.9g} s>"

    def at(self, t: ArrayLike) -> Motion:
        """Configuration q (..., nq), velocity v and acceleration a (..., nv) at times (...) [s].

        v and a are the derivatives of q, in the axes that v has in each joint. Before and after its way-points the path goes straight on with
        the velocities that it has there: at rest, it stays. At the first and at the last one a jumps, as it does at the ends of a spline.

        Raises
        ------
        ShapeError, StateError
            Times that are no numbers, or not finite; or where the loops cannot close, as they may before and after the way-points.
        """
        if type(t) is float and math.isfinite(t):
            return self._at_one(bisect.bisect_right(self._starts, t), t)
        instants = _numbers("t", t)
        times = instants.reshape(-1)
        k = np.searchsorted(self._starts, times, side="right")
        chunks = range(0, max(len(times), 1), TOGETHER)
        parts = [self._at(k[i : i + TOGETHER], times[i : i + TOGETHER]) for i in chunks]
        q, v, a = (np.concatenate(x).reshape(*instants.shape, x[0].shape[-1]) for x in zip(*parts, strict=True))
        return q, v, a

    def _at_one(self, k: int, time: float) -> Motion:
        """Of piece k: the call of a control loop."""
        numbers = self.mechanism._path_motion(*self._asked[k], time=time)
        if self._guide is not None and numbers[-1]:
            raise self._guide.lost(time, k)
        return parted(self.mechanism, numbers)

    def _at(self, k: NDArray[np.intp], times: Array) -> Motion:
        """Of pieces k, at times in them."""
        robot, guide = self.mechanism, self._guide
        if guide is None:
            return parted(robot, robot._path_motion(self._pieces[k], time=times))
        numbers = robot._path_motion(self._pieces[k], guide.scale, guide.rows[k], time=times)
        if (lost := ~(numbers[:, -1] == 0.0)).any():
            first = int(lost.argmax())
            raise guide.lost(times[first], int(k[first]))
        return parted(robot, numbers)

    def law(self, joint: str, index: int = 0) -> Law:
        """One coordinate of a joint as a law of time: target of a controller that runs without Python in the loop.

        Without loops it is the path. With loops it has the values, rates and accelerations of the path at so many times that it is off by less
        than 1e-10 of the way that the coordinate goes.

        Raises ModelError for ball and free joints, whose coordinates are not as many as their velocities, and for joints that close loops.
        """
        j = self.mechanism._tree_joint(joint)
        if j.type.quaternion:
            raise ModelError(f"a law is one coordinate's; those of '{joint}', {j.type}, do not add up: use Path.at")
        if not isinstance(index, Integral) or isinstance(index, bool) or index not in range(j.nq):
            raise ModelError(f"joint '{joint}' has {j.nq} coordinates; index={index!r} is none of them")
        k = j.q_slice.start + int(index)
        if self._guide is None:
            rates = self.mechanism._coordinate_rate(self.q[[0, -1]], self.v[[0, -1]])[:, k].tolist()
            return spline(self.t, self.q[:, k], slopes=(rates[0], rates[1]))
        return self._fitted(k, self.mechanism._length if j.type.coordinates[int(index)][1] == "m" else 1.0)

    def _fitted(self, k: int, size: float) -> Law:
        """Quintics between times that are halved until the law is good enough, beside how far the coordinate goes and a thousandth of a size."""
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


def _quintics(t: Array, known: Array) -> Law:
    """The law that has values, rates and accelerations known (n, 3) at t (n,), and goes straight on before and after."""
    h = np.diff(t)
    (x0, r0, b0), (x1, r1, b1) = known[:-1].T, known[1:].T
    # what value, rate and acceleration still lack at the end of each piece
    x = x1 - x0 - h * (r0 + h * b0 / 2.0)
    r, b = (r1 - r0 - h * b0) * h, (b1 - b0) * h**2
    third, fourth, fifth = 10 * x - 4 * r + b / 2, -15 * x + 7 * r - b, 6 * x - 3 * r + b / 2
    inner = np.stack([x0, r0, b0 / 2.0, third / h**3, fourth / h**4, fifth / h**5], axis=-1)
    rows = np.array([[*known[0, :2], 0, 0, 0, 0], *inner, [*known[-1, :2], 0, 0, 0, 0]])
    return Law((t[0], *t.tolist()), tuple(map(tuple, rows.tolist())))


# ---- velocities at the way-points ----------------------------------------------------------------------------------------------------


def _velocities(chart: Chart, t: Array, q: Array, ends: Sequence[Array]) -> Array:
    """(n, nv) with which the accelerations of all joints are continuous."""
    end_rates, turns = chart.rates(q[[0, -1]], np.array(ends)), chart.difference(q[:-1], q[1:])
    rates = np.empty((len(t), chart.robot.nv))
    for x, k in zip(chart.plain, chart.of_q, strict=True):
        first, last = end_rates[:, x].tolist()
        rates[:, x] = spline(t, q[:, k], slopes=(first, last)).derivatives(t)[1]
    names = [name for name in chart.robot.joints if chart.robot.joint(name).type.quaternion]
    for name, ball in zip(names, chart.balls, strict=True):
        rates[:, ball] = _spins(name, t, turns[:, ball], end_rates[:, ball])
    v = chart.velocities(q, rates)
    v[0], v[-1] = ends
    return v


def _spins(name: str, t: Array, x: Array, ends: Array) -> Array:
    """Angular velocities (n, 3) with which the angular acceleration is continuous, by Newton's method on

    ω̇ at the end of piece k - 1 = ω̇ at the start of piece k,

    in which each depends on the velocities at both ends of its piece: at most as their squares, of which central differences are exact.
    Pieces one after the other (Kang and Park) would be shorter, but errors would grow from piece to piece.
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
        # of start and end, by the first and by the second velocity
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
        if np.abs(step).max() <= 1e-9 * size:  # Newton's next would be 1e-18
            return spin
    angle = np.linalg.norm(x, axis=1)
    worst = int(angle.argmax())
    raise StateError(
        f"no smooth rotation of joint '{name}' through its way-points was found: from way-point {worst} to {worst + 1} it turns by "
        f"{angle[worst]:.3g} rad within {h[worst, 0]:.3g} s; add way-points, or space them more evenly in time"
    )


def _tridiagonal(below: Array, diagonal: Array, above: Array, known: Array) -> Array:
    """Solution (m, 3) of a block tridiagonal system, of blocks (m, 3, 3): forth and back."""
    m = len(diagonal)
    x, ratio = known.copy(), np.empty_like(above)
    for k in range(m):
        pivot = diagonal[k] - (below[k] @ ratio[k - 1] if k else 0.0)
        right = x[k] - (below[k] @ x[k - 1] if k else 0.0)
        both = np.linalg.solve(pivot, np.column_stack([above[k], right]))
        ratio[k], x[k] = both[:, :3], both[:, 3]
    for k in range(m - 2, -1, -1):
        x[k] -= ratio[k] @ x[k + 1]
    return x


def _same_signs(mechanism: Mechanism, q: Array) -> Array:
    """Way-points in which quaternions have the signs with which each is near to the one before."""
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
    """The way-points, closed to rounding, the scale of the loops, and K (n, d, nv) at the way-points."""
    loops = ScaledLoops(mechanism, q[0], float(t[0]))
    if not loops.holonomic.all():
        rolls = [name for name in mechanism.constraints if not all(mechanism.constraint(name).holonomic)]
        raise ModelError(
            f"constraint '{rolls[0]}' holds velocities only: which way-points it lets one reach depends on the way, and a path through "
            "way-points cannot ask it"
        )
    off = np.abs(loops.row_scale * mechanism.constraint_residual(q, time=t))
    if off.max(initial=0.0) > CLOSED:
        k, row = divmod(int(off.argmax()), mechanism.nc)
        raise StateError(
            f"way-point {k} does not close the loops: '{mechanism._row_names[row]}' is off by {mechanism.constraint_residual(q[k], time=t[k])[row]:.3g} "
            f"({off[k, row]:.1g} of the mechanism's size, {CLOSED:g} is allowed); mechanism.project_configuration(q) leads to one nearby that "
            "does, mechanism.assemble(near=q) from farther away"
        )
    q, status = mechanism.project_configuration(q, metric="euclidean", time=t, return_status=True)
    if status.any():
        raise StateError(
            f"way-point {int(np.argmax(status != 0))} does not close the loops, and small steps do not lead onto them: "
            "mechanism.assemble(near=q) goes farther"
        )
    q = _same_signs(mechanism, q)
    J = loops.row_scale[:, None] * mechanism.constraint_jacobian(q, time=t) * loops.column_scale
    for at, v in zip((0, -1), ends or (), strict=False):
        x, c = v / loops.column_scale, loops.row_scale * mechanism.constraint_velocity(q[at], time=t[at])
        wrong = float(np.abs(J[at] @ x - c).max())
        if wrong > CLOSED * max(1.0, float(np.abs(x).max())):
            raise StateError(
                f"the loops do not allow the velocity at the {'last' if at else 'first'} way-point: J v - c is up to {wrong:.3g} there; "
                "mechanism.project_velocity(q, v) is the nearest that they do"
            )
    bases = [null_space(rows, PRESENT) for rows in J]
    freedoms = [basis.shape[1] for basis in bases]
    most, least = max(freedoms), min(freedoms)
    if most > least:
        raise StateError(
            f"at way-point {freedoms.index(most)} the loops allow {most} motions at once, elsewhere {least}: they lose rank there, and a path "
            "through it would have to choose a branch; go round it, or take a way-point nearby"
        )
    for k in range(1, len(bases)):  # the basis that is nearest to the one before, so that their blend is one too
        U, cosines, V = np.linalg.svd(bases[k].T @ bases[k - 1])
        if cosines.min(initial=1.0) < 0.1:
            raise too_far(k - 1)
        bases[k] = bases[k] @ U @ V
    return q, loops, np.swapaxes(np.array(bases), 1, 2)


def _check_way(path: Path, guide: Guide) -> None:
    """Say here what cannot be, not to a controller: a way that does not close, or that jumps to where the loops close otherwise.

    Where there is a jump, what cubics say of the middle stays wrong however short the pieces are.
    """
    times = _divided(path.t, 8)
    first, last = times[:-1], times[1:]
    for _ in range(10):
        middle = (first + last) / 2.0
        ends, (q, _, _) = path.at(np.concatenate([first, last])), path.at(middle)
        robot, k = path.mechanism, np.arange(len(middle))
        cubics = pieces(np.concatenate([first, last]), *ends[:2], k, k + len(k))
        said = parted(robot, robot._path_motion(cubics, time=middle))[0]
        off = np.abs(robot.difference(said, q) / guide.column_scale).max(axis=1)
        first, middle, last = first[off > 1e-4], middle[off > 1e-4], last[off > 1e-4]
        if len(middle) == 0:
            return
        first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
    raise too_far(int(np.searchsorted(path.t, first.min(), side="right")) - 1)


def _divided(t: Array, pieces: int) -> Array:
    """Times t (n,) and those that divide what is between them into equal pieces."""
    return np.append(t[:-1, None] + np.diff(t)[:, None] * np.arange(pieces) / pieces, t[-1])


# ---- what callers give ---------------------------------------------------------------------------------------------------------------


def _way_points(mechanism: Mechanism, times: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Increasing times (n,) and as many configurations (n, nq)."""
    checked_mechanism(mechanism)
    t = _numbers("times", times)
    if t.ndim != 1 or len(t) < 2:
        raise ShapeError(f"times of a path are (n,) for two way-points or more; got shape {t.shape}")
    late = np.flatnonzero(~(np.diff(t) > 0.0))
    if late.size:
        raise ModelError(f"times of a path must increase; got {t[late[0]]:.9g} and then {t[late[0] + 1]:.9g}")
    return t, _numbers("q", q, "a way-point for each time, (n, nq)", (len(t), mechanism.nq))


def _numbers(name: str, value: ArrayLike, expected: str = "", shape: tuple[int, ...] = ()) -> Array:
    """An array of finite numbers, of that shape where one is wanted; TypeError, ShapeError or StateError where it is none."""
    array = real_array(f"{name} of a path", value)
    if expected and array.shape != shape:
        raise ShapeError(f"{name} of a path is {expected} = {shape}; got shape {array.shape}")
    if not np.isfinite(array).all():
        wrong = np.argwhere(~np.isfinite(array))[0]
        at = f"[{', '.join(map(str, wrong))}]" if wrong.size else ""
        raise StateError(f"{name} of a path must be finite; {name}{at} is {array[tuple(wrong)]}")
    return array


# ---- paths of mechanisms with loops ----------------------------------------------------------------------------------
# What keeps a path on closed loops near the spline through its way-points.


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
    def rows(self) -> Array:
        """(n - 1, numbers) for the core, K at both ends of each piece; and of the last one backwards, beyond the last way-point."""
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
            f"at t = {time:.9g} s the loops cannot close: the path has no way-points beyond {t[0]:.9g} s to {t[-1]:.9g} s, and goes straight on"
        )


def too_far(k: int) -> StateError:
    return StateError(
        f"the loops turn too far between way-points {k} and {k + 1} for a path to be led along them, or the way-points are on different "
        "branches: add way-points in between, such as mechanism.follow finds"
    )
