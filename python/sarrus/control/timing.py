"""Fastest timing of a path within limits of motors and tools, by reachability analysis.

The path q(s) has the timing s(t), with x = s'² and u = s''. The derivatives of q with respect to s are v and a. Then the velocity is v sqrt(x), the
acceleration a x + v u, and the efforts are A u + B x + C. Therefore limits are linear in u and x at each s. Linear dampers add D sqrt(x), quadratic ones are a part of B, and
cubic ones add E x sqrt(x), which is replaced by its tangents at the previous timing, until it converges. The core computes the timing (``cpp/control/path_timing.hpp``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, check_mapping, checked_count, real_array
from ..errors import ModelError, NameNotFoundError, ShapeError, StateError
from ..laws import Law
from ..mechanism import Mechanism
from .path import Motion, Path, _numbers, _quintics

__all__ = ["TimedPath"]

RESTING = 1e-9  # speed at the end of a path, relative to its largest speed, below which the path is at rest there
STILL = 1e-12  # length of a path, relative to its coordinates, that is rounding of a path at rest
CONVERGED = 1e-9  # change of x, as a fraction of the largest x, at which tangents of cubic dampers are accurate
ROUNDS = 100  # largest number of timings with these tangents


@dataclass(frozen=True, eq=False, repr=False)
class TimedPath(Path):
    """Fastest motion along a path, from :meth:`sarrus.control.Path.timed`. It starts and ends at rest, and rests before and after.

    Attributes
    ----------
    mechanism : the moving mechanism
    t : (n + 1,) times of the grid points [s], from 0
    q, v : (n + 1, nq), (n + 1, nv) configurations and velocities at the grid points [rad, m; rad/s, m/s]
    path : the original path q(s)
    s : (n + 1,) its parameter at the grid points, which is its original time [s]
    rates : (n + 1,) ds/dt at the grid points [s/s]
    active : (n) name of the limit that is active in each interval of the grid; empty if none is
    duration : duration of the motion [s]
    """

    path: Path = field(kw_only=True)
    s: Array = field(kw_only=True)
    rates: Array = field(kw_only=True)
    active: tuple[str, ...] = field(kw_only=True)

    @property
    def duration(self) -> float:
        return float(self.t[-1])

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("s", "rates"):
            kept = np.array(getattr(self, name))
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        fields: dict[str, Any] = {"path": self.path, "s": self.s, "rates": self.rates, "active": self.active}
        return partial(type(self), **fields), (self.mechanism, self.t, self.q, self.v, self._guide)

    def __repr__(self) -> str:
        return f"<TimedPath of '{self.mechanism.name}', {self.duration:.9g} s>"

    def at(self, t: ArrayLike) -> Motion:
        """Return configurations q (..., nq), velocities v and accelerations a (..., nv).

        The acceleration is discontinuous at grid points, where s'' changes.

        Parameters
        ----------
        t : (...) times [s]
        """
        times = _numbers("t", t)
        k = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, len(self.t) - 2)
        moving, step = (times >= 0.0) & (times <= self.t[-1]), np.diff(self.t)
        dt, u = np.clip(times - self.t[k], 0.0, step[k]), (np.diff(self.rates) / step)[k]
        s = np.clip(self.s[k] + dt * (self.rates[k] + 0.5 * u * dt), self.s[k], self.s[k + 1])
        return _at_rates(self.path.at(s if s.ndim else float(s)), moving * (self.rates[k] + u * dt), moving * u)

    def _law(self, k: int, size: float) -> Law:
        """Return quintics with the motion at both ends of each interval of the grid."""
        robot, u, ends = self.mechanism, np.diff(self.rates) / np.diff(self.t), []
        for at in (slice(None, -1), slice(1, None)):
            q, v, a = _at_rates(self.path.at(self.s[at]), self.rates[at], u)
            ends.append((q[:, k], robot._coordinate_rate(q, v)[:, k], robot._coordinate_acceleration(q, v, a)[:, k]))
        after, before = (np.stack(x, axis=-1) for x in ends)
        return _quintics(self.t, np.vstack([after, before[-1]]), before)


def _at_rates(motion: Motion, rate: Array, u: Array) -> Motion:
    """Return the motion at s' = rate (...) and s'' = u (...), from the derivatives with respect to s."""
    q, v, a = motion
    return q, v * rate[..., None], a * rate[..., None] ** 2 + v * u[..., None]


def timed(path: Path, velocity: Any, acceleration: Any, effort: Any, feed: Any, grid: int) -> TimedPath:
    """Return the fastest timing of a path, or of the original path of a timed one; see :meth:`Path.timed`."""
    path = path.path if isinstance(path, TimedPath) else path
    robot = path.mechanism
    share = checked_count("grid", grid, most=10**6) * np.diff(path.t) / np.ptp(path.t)
    ends = np.append(0, np.cumsum(np.maximum(2, np.rint(share))))  # equal intervals between two waypoints
    s = np.interp(np.arange(ends[-1] + 1), ends, path.t)
    samples = np.insert(s, np.arange(1, len(s)), (s[1:] + s[:-1]) / 2.0)
    motion = q, v, _ = path.at(samples)
    if robot.nc and robot.constraint_velocity(q, time=samples).any():
        raise ModelError(f"paths of '{robot.name}' have one timing: expected a mechanism without prescribed motions")
    if np.abs(v).max() * np.ptp(path.t) <= STILL * np.abs(q).max():
        raise ModelError(f"the path of '{robot.name}' does not move: expected waypoints that differ")
    resting = np.abs(v[[0, -1]]).max(axis=1) <= RESTING * np.abs(v).max()
    v[[0, -1]] *= ~resting[:, None]
    limits = _Limits(robot, motion)
    limits.add_joints("velocity", velocity)
    limits.add_joints("acceleration", acceleration)
    limits.add_efforts(effort)
    vectors = limits.add_feed(feed)
    steps, (A, B, C, D, E) = np.diff(s), (np.concatenate(x, axis=1) for x in zip(*limits.columns, strict=True))

    def fastest(x: Array) -> dict[str, Any]:
        """Return the timing with the tangents of cubic dampers at x (n + 1)."""
        root = np.sqrt(np.insert(x, np.arange(1, len(x)), (x[1:] + x[:-1]) / 2.0))[:, None]
        b, c, d = B + 1.5 * root * E, C - 0.5 * root**3 * E, D if D.any() else None
        found: dict[str, Any] = _core.fastest_timing(
            steps, A, b, c, d, vectors, free_start=resting[0], free_end=resting[1]
        )
        return found

    timing, x, rounds = fastest(np.zeros(len(s))), np.zeros(len(s)), 0
    while E.any() and (timing["interval"] < 0 or x.any()):
        # the tangents at a much too fast timing can have no solution; those at a slower one have
        before, x = x, 0.25 * x if timing["interval"] >= 0 else np.array(timing["x"])
        if timing["interval"] < 0 and np.abs(x - before).max() <= CONVERGED * x.max():
            break
        if (rounds := rounds + 1) > ROUNDS:
            damped = ", ".join(_dampers(robot, "cubic_damping"))
            raise StateError(f"timing with cubic_damping of {damped}: no convergence; expected smaller damping")
        timing = fastest(x)
    if (k := timing["interval"]) >= 0:
        after = min(int(np.searchsorted(path.t, s[k], side="right")), len(path.t) - 1)
        place = f"at s = {s[k]:.6g}, between waypoints {after - 1} and {after}"
        if timing["unbounded"]:
            raise ModelError(f"no limit bounds the motion {place}: pass limits of joints or frames that move there")
        needs = {j: np.abs(C[2 * k : 2 * k + 3, j]).max() for j in {timing["first"], timing["second"]} - {-1}}
        names = [
            limits.names[j] + f" (rest needs {need:.3g} times this)" * bool(need > 1.0) for j, need in needs.items()
        ]
        reason = " and ".join(names) or "the limits further along the path"
        raise StateError(f"no speed satisfies the limits {place}: expected other values of {reason}")
    rates = np.sqrt(timing["x"])
    t = np.append(0.0, np.cumsum(2.0 * steps / (rates[1:] + rates[:-1])))
    active = tuple((*limits.names, "")[k] for k in timing["active"])
    return TimedPath(robot, t, q[::2], v[::2] * rates[:, None], path=path, s=s, rates=rates, active=active)


def _dampers(robot: Mechanism, name: str) -> list[str]:
    """Return the names of joints and springs that have a term of dampers."""
    d = robot.description
    parts = [(j.name, j.joint) for j in d.joints] + [(spring.name, spring) for spring in d.springs]
    return [owner for owner, part in parts if np.any(getattr(part, name, 0.0))]


class _Limits:
    """Limits |a u + b x + c + d sqrt(x) + e x sqrt(x)| <= 1 of scalars, and then of vectors with three columns each, at N samples of a path.

    Attributes
    ----------
    names : name of each limit
    columns : (a, b, c, d, e) of each group of limits, each (N, m)
    """

    def __init__(self, robot: Mechanism, motion: Motion) -> None:
        self.robot, self.motion = robot, motion
        self.names: list[str] = []
        self.columns: list[tuple[Array, ...]] = [(np.zeros((len(motion[0]), 0)),) * 5]

    def _add(self, names: list[str], bound: Array, *columns: Any) -> None:
        """Add limits; those with infinite bounds are omitted."""
        finite = np.isfinite(bound)
        self.names += [name for name, is_finite in zip(names, finite, strict=True) if is_finite]
        shape = (len(self.motion[0]), len(bound))
        with np.errstate(all="ignore"):  # the core detects overflow
            self.columns.append(
                tuple((np.broadcast_to(x, shape) / bound)[:, finite] for x in (*columns, 0.0, 0.0, 0.0)[:5])
            )

    def _bounds(self, quantity: str, value: Any) -> tuple[list[str], dict[str, Any], Array]:
        """Return a name for each limited number, the joints, and the bounds, which are infinite without a limit."""
        robot, names, bounds = self.robot, [], []
        joints = dict.fromkeys(robot.actuated or (() if quantity == "effort" else robot.joints), value)
        if value is None or isinstance(value, Mapping):
            joints = {name: getattr(robot.joint(name).type, f"{quantity}_limit", None) for name in joints}
            joints |= dict(value or {})
        for name, limit in joints.items():
            size = robot.joint(name).type.nv
            bound = real_array(f"{quantity} of '{name}'", np.inf if limit is None else limit)
            if bound.shape not in ((), (size,)):
                raise ShapeError(f"{quantity} of '{name}' must be a number or ({size},); got shape {bound.shape}")
            if not (bound > 0.0).all():
                raise ModelError(f"{quantity} of '{name}' must be positive; got {limit!r}")
            bounds += np.broadcast_to(bound, size).tolist()
            names += [f"the {quantity} {x:.6g} of '{name}'" for x in bounds[len(bounds) - size :]]
        return names, joints, np.array(bounds)

    def add_joints(self, quantity: str, value: Any) -> None:
        """Add limits of velocities or accelerations of joints."""
        names, joints, bound = self._bounds(quantity, value)
        if not np.isfinite(bound).any():
            return
        states = self.robot.joint_states(*self.motion)
        v, a = (np.concatenate([x[name] for name in joints], axis=1) for x in (states.v, states.a))
        # the square of a velocity is linear in x
        self._add(names, *((bound**2, 0.0, v**2) if quantity == "velocity" else (bound, v, a)))

    def add_efforts(self, value: Any) -> None:
        """Add limits of efforts of motors."""
        names, joints, bound = self._bounds("effort", value)
        if not np.isfinite(bound).any():
            return
        if unknown := set(joints) - set(self.robot.actuated):
            raise NameNotFoundError(f"effort: '{min(unknown)}' is no motor; motors: {', '.join(self.robot.actuated)}")
        _, v, a = self.motion
        rest, driven, onward, back = (self._efforts(*x) for x in ((0.0 * v, 0.0 * a), (0.0 * v, v), (v, a), (-v, a)))
        odd, damping, quadratic, cubic, friction = (onward - back) / 2.0, *np.zeros((3, *rest.shape)), [0.0]
        if np.abs(odd).max() > 1e-12 * np.abs(onward).max():
            # a polynomial of the speed, whose constant is dry friction
            nonlinear = [
                k for k, name in ((2, "quadratic_damping"), (3, "cubic_damping")) if _dampers(self.robot, name)
            ]
            powers = [0, 1, *nonlinear]
            speeds = np.arange(1.0, len(powers) + 1.0)
            odds = [odd, *((self._efforts(k * v, a) - self._efforts(-k * v, a)) / 2.0 for k in speeds[1:])]
            terms = np.zeros((4, *rest.shape))
            terms[powers] = np.tensordot(np.linalg.inv(speeds[:, None] ** powers), odds, axes=1)
            terms[np.abs(terms) <= 1e-13 * np.abs(odds).max()] = 0.0
            constant, damping, quadratic, cubic = terms
            # dry friction jumps where a joint stops or turns back: both values apply to the samples next to a jump
            near = np.pad(constant, ((1, 1), (0, 0)), mode="edge")
            friction = [of([near[:-2], near[1:-1], near[2:]], axis=0) for of in (np.max, np.min)]
        even = (onward + back) / 2.0 - rest
        for constant in friction:
            self._add(names, bound, driven - rest, even + quadratic, rest + constant, damping, cubic)

    def _efforts(self, v: Array, a: Array) -> Array:
        u: Array
        u, status = self.robot.actuator_efforts(self.motion[0], v, a, return_status=True)
        if status.any():
            self.robot.actuator_efforts(*(x[status.argmax()] for x in (self.motion[0], v, a)))  # raises the error
        return u

    def add_feed(self, value: Any) -> int:
        """Add limits of the speed of frames, and then of their acceleration. Return the number of the latter."""
        check_mapping("feed", value, "frames to speeds, or to (speed, acceleration)", least=0, optional=True)
        vectors = []
        for frame, limit in (value or {}).items():
            bound = real_array(f"feed of '{frame}'", limit)
            if bound.shape not in ((), (2,)) or not (bound > 0.0).all():
                raise ModelError(f"feed of '{frame}' must be a positive speed, or (speed, acceleration); got {limit!r}")
            speed, acceleration = np.append(bound, np.inf)[:2]
            a = self.robot.acceleration(*self.motion, frame, expressed_in="world_aligned")[:, 3:]
            v = self.robot.velocity(*self.motion[:2], frame, expressed_in="world_aligned")[:, 3:]
            self._add([f"the feed {speed:.6g} of '{frame}'"], np.array([speed**2]), 0.0, (v**2).sum(axis=1)[:, None])
            if np.isfinite(acceleration):
                vectors.append((f"the acceleration {acceleration:.6g} of '{frame}'", acceleration, v, a))
        for name, most, v, a in vectors:
            self._add([name] * 3, np.full(3, most), v, a)
            del self.names[-2:]
        return len(vectors)
