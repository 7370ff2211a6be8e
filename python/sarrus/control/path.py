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

The core computes paths (cpp/position/waypoint_path.hpp).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, real_array
from ..errors import ModelError, ShapeError, StateError
from ..laws import Law, quintic_pieces, spline
from ..mechanism import Mechanism, checked_mechanism

if TYPE_CHECKING:
    from .timing import TimedPath

__all__ = ["Path", "path_through"]

JointBounds = float | Mapping[str, ArrayLike] | None

Motion = tuple[Array, Array, Array]


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
    ends = None
    if v is not None:
        if not hasattr(v, "__len__") or len(v) != 2:
            raise ShapeError(f"v of a path must be two velocities, at its first and at its last waypoint; got {v!r}")
        ends = np.array([_numbers("v", x, "two velocities of (nv,)", (mechanism.nv,)) for x in v])
    q, velocities, guide = _core.Path.through(mechanism, t, configurations, ends)
    return Path(mechanism, t, q, velocities, guide and Guide(*guide))


class Guide(NamedTuple):
    """Guide equation K (q - p) = 0 of a path on loops: velocities v (n, nv) of the spline p, scales (nv + nc) of velocities and constraint rows, and
    K (n, d nv) at each waypoint, in scaled velocities.
    """

    v: Array
    scale: Array
    K: Array


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
        _ = self._spline  # raises the error of times that do not increase

    @cached_property
    def _spline(self) -> _core.Path:
        return _core.Path(self.mechanism, self.t, self.q, self.v, self._guide)

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if name != "_spline"}

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
        if type(t) is float and math.isfinite(t):  # a control loop's call
            return parted(self.mechanism, self._spline.at(t))
        instants = _numbers("t", t)
        motions = self._spline.motions(instants.ravel())
        return parted(self.mechanism, motions.reshape(*instants.shape, motions.shape[-1]))

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
        starts, rows = self._spline.time_function(k, size)
        return Law(tuple(starts.tolist()), tuple(map(tuple, rows.tolist())))

    def timed(
        self, *, velocity: JointBounds = None, acceleration: JointBounds = None, effort: JointBounds = None,
        feed: Mapping[str, ArrayLike] | None = None, grid: int = 1000,
    ) -> TimedPath:  # fmt: skip
        """Return the fastest motion along this path, from rest to rest, within limits of motors and tools.

        Only the geometry q(s) of the path is used, with its time as the parameter s. The timing s(t) is computed by reachability analysis: s'' is
        constant in each interval of a grid, and the limits hold in the whole interval, up to errors of third order in its length. The efforts
        of mechanisms with loops are those of :meth:`~sarrus.Mechanism.actuator_efforts`; they include dampers, also nonlinear ones, and dry friction of joints.

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


def _quintics(t: Array, values: Array, ends: Array | None = None) -> Law:
    """Return the time function by :func:`~sarrus.laws.quintic_pieces`; it is linear before and after."""
    pieces = quintic_pieces(t, values, ends)
    rows = np.array([[*values[0, :2], 0, 0, 0, 0], *pieces, [*values[-1, :2], 0, 0, 0, 0]])
    return Law((t[0], *t.tolist()), tuple(map(tuple, rows.tolist())))


# ---- checks of arguments -------------------------------------------------------------------------------------------------------------


def _way_points(mechanism: Mechanism, times: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Return checked increasing times (n,) and configurations (n, nq)."""
    checked_mechanism(mechanism)
    t = _numbers("times", times)
    if t.ndim != 1 or len(t) < 2:
        raise ShapeError(f"times of a path must be (n,), one for each of two waypoints or more; got shape {t.shape}")
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


class Chart:
    """Coordinates x (nv) of a mechanism, one for each velocity: those of q, except that a quaternion is replaced by the rotation vector from its
    initial value. The rates are x-dot = E(q) v, with E orthogonal.
    """

    def __init__(self, robot: Mechanism) -> None:
        self.robot = robot
        balls = [joint for joint in map(robot.joint, robot.joints) if joint.type.quaternion]
        # indices of all coordinates that are not rotation vectors, in x and v, and in q
        self._plain = np.setdiff1d(np.arange(robot.nv), [j.v_slice.start + np.arange(3) for j in balls])
        self._plain_q = np.setdiff1d(np.arange(robot.nq), [j.q_slice.start + np.arange(4) for j in balls])

    def difference(self, q0: Array, q1: Array) -> Array:
        """Return x of q1 (m, nv) from q0, by the shorter rotation; a rotation by half a revolution is about the vector part of q0^-1 q1."""
        x = self.robot.difference(q0, q1)
        x[..., self._plain] = (q1 - q0)[..., self._plain_q]
        return x

    def rates(self, q: Array, v: Array) -> Array:
        """Return the rates E v (..., nv); for rotations, the angular velocity."""
        rates = np.broadcast_to(v, (*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.robot.nv)).copy()
        rates[..., self._plain] = self.robot._coordinate_rate(q, v)[..., self._plain_q]
        return rates


def between(
    mechanism: Mechanism, t: Array, q: Array, v: Array, times: Array, k: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return q (m, nq) and v (m, nv) at times (m,) after samples k (m,) of t (n,), q (n, nq), v (n, nv)."""
    pieces = np.column_stack([q[k], v[k], q[k + 1], v[k + 1], t[k], t[k + 1]])
    return parted(mechanism, mechanism._path_motion(pieces, time=times))[:2]


def parted(mechanism: Mechanism, numbers: Array) -> Motion:
    """Split rows of the core into coordinates, velocities and accelerations."""
    nq, nv = mechanism.nq, mechanism.nv
    return numbers[..., :nq], numbers[..., nq : nq + nv], numbers[..., nq + nv : nq + 2 * nv]
