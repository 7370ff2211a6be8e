"""Motions of end points by the motors of a mechanism with floating base, and the resulting motion of the base.

All functions solve linear equations for the joints' velocities phi-dot, with one block of rows for each requirement:

- loops: J phi-dot = c
- given velocity x_h-dot of a frame: J* phi-dot = x_h-dot - drift
- zero components of the base's velocity: rows of the J* of the base

The solution has the least norm, with displacements divided by the mechanism's characteristic length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, check_callable, check_mapping, checked_number, real_array, real_rows
from .._core import tolerances
from .._showing import Brief
from ..analysis.assembly import usual_configurations
from ..analysis.independent_coordinates import component_rows, frame_components
from ..analysis.linear_algebra import six, solutions, velocity_scale
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.options import BatchOptions, StateOptions, Unpack, of_states
from ..errors import ModelError, ShapeError, StateError
from ..mechanism import checked_mechanism
from .partition import base_joint, generalized_jacobian, joint_columns, momentum_velocity


@dataclass(frozen=True, eq=False, repr=False)
class ReactionNullSpace(Brief):
    """Joint velocities that leave the base at rest.

    Attributes
    ----------
    basis : (..., nv, freedom) velocities of the mechanism including the base [rad/s, m/s], orthonormal in the joints' velocities if linear velocities
        are divided by the characteristic length. In a batch, states with fewer basis vectors have zero columns at the end
    freedom : (...) number of basis vectors; -1 for states that are not finite
    projector : (..., nv - 6, nv - 6) maps joint velocities to the nearest joint velocities with the base at rest [rad, m per rad, m]
    """

    basis: Array
    freedom: NDArray[np.int64]
    projector: Array


@dataclass(frozen=True, eq=False, repr=False)
class DynamicSingularityMap(Brief):
    """Result of :func:`~sarrus.floating.dynamic_singularity_map`; each attribute is an array (...).

    Singular values are for independent unit motions, with displacements divided by the characteristic length.

    Attributes
    ----------
    smallest, smallest_fixed : (...) smallest singular value, at the rank of regular configurations, of the generalized Jacobian and of the Jacobian
        with fixed base (dimensionless)
    rank, rank_fixed : (...) number of nonzero singular values; -1 without a result
    condition : (...) ratio of the largest to the smallest singular value of the generalized Jacobian (dimensionless); infinite at singularities
    manipulability : (...) product of the singular values, sqrt(det J* J*^T) if J* has at most as many rows as columns (dimensionless)
    singularity : (...) "regular", "dynamic" (singular only with floating base, because of the masses), "kinematic" (singular only with fixed base),
        "both"; "" without a result
    """

    smallest: Array
    smallest_fixed: Array
    rank: NDArray[np.int64]
    rank_fixed: NDArray[np.int64]
    condition: Array
    manipulability: Array
    singularity: NDArray[np.str_]


@dataclass(frozen=True, eq=False, repr=False)
class FreeFloatingMotion(Brief):
    """Motion of a mechanism with floating base.

    Attributes
    ----------
    t, q, v : (n,), (n, nq), (n, nv) times, configurations and velocities [s; rad, m; rad/s, m/s]
    base_rotation : (n, 3) rotation vector of the base from its initial orientation, in world axes [rad]
    """

    t: Array
    q: Array
    v: Array
    base_rotation: Array

    @property
    def disturbance(self) -> float:
        """Largest rotation angle of the base [rad]."""
        return float(np.linalg.norm(self.base_rotation, axis=-1).max())


@of_states
def reaction_null_space(
    robot: LoopFunctions,
    q: ArrayLike,
    *,
    components: str = "rx ry rz",
    time: ArrayLike | None = None,
    **options: Unpack[BatchOptions],
) -> ReactionNullSpace:
    """Return joint velocities that the loops allow and that do not move the base, at zero momentum.

    Parameters
    ----------
    robot : a mechanism with floating base
    q : (..., nq) configuration [rad, m]
    components : names of the components of the base's velocity, at its frame's origin in the world's axes, that must be zero. Default: rotation only.
        With "rx ry rz tx ty tz" the result is the kernel of H_bm
    time : (...) time for prescribed motions [s]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    ModelError
        The mechanism is connected to the ground; or `components` has an unknown name.

    References
    ----------
    Nenchev, Umetani and Yoshida 1992; Nenchev 2013. SpaceDyn 3.18 has H_bm.

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.box(9.0, (1, 1, 1)))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> for name, x in ("left", -0.5), ("right", 0.5):
    ...     b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (2 * x, 0, 0), radius=0.1))
    ...     b.add_joint(name + " shoulder", sarrus.Revolute("z"), "satellite", name, at_parent=(x, 0, 0))
    >>> still = sarrus.floating.reaction_null_space(b.build(), [0, 0, 0, 1, 0, 0, 0, 0, 0])
    >>> int(still.freedom), (still.basis[6:, 0] / still.basis[6, 0]).round(6).tolist()        # the arms turn against each other
    (1, [1.0, -1.0])
    """
    base_joint(robot, "reaction_null_space")
    rows = component_rows(components)
    if not rows:
        raise ModelError("components of the base's velocity must be among rx ry rz tx ty tz, such as 'rx ry rz'")
    rest = momentum_velocity(robot, q, np.zeros(robot.nv))  # checks q
    q, t = real_array("q", q), None if time is None else real_array("time", time)
    lead = np.broadcast_shapes(rest.shape[:-1], () if t is None else t.shape)
    states = _in_rows(np.where(np.isnan(rest[..., :1]), np.nan, q), lead)
    arrays = _core.reaction_null_spaces(robot, states, rows, _times(t, lead))
    return ReactionNullSpace(*(x.reshape((*lead, *x.shape[1:])) for x in arrays))


@of_states
def resolved_rate(
    robot: LoopFunctions, q: ArrayLike, motions: Mapping[str | tuple[str, str], ArrayLike], *, still: str = "",
    momentum: ArrayLike | None = None, time: ArrayLike | None = None,
    **options: Unpack[StateOptions],
) -> Array:  # fmt: skip
    """Return the velocity (..., nv), with joint velocities of least norm, in which frames of a floating mechanism have given velocities.

    Parameters
    ----------
    robot : a mechanism with floating base
    q : (..., nq) configuration [rad, m]
    motions : frame to its velocity (..., 6), [angular; linear] in the world's axes at its origin [rad/s, m/s]; or (frame, "tx ty ..") to the velocity
        along these components
    still : components of the base's velocity that must be zero, as `components` of :func:`~sarrus.floating.reaction_null_space`
    momentum : (..., 6) momentum as returned by :meth:`~sarrus.Mechanism.momentum` [kg m2/s, kg m/s]; default: zero
    time : (...) time for prescribed motions [s]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    StateError
        No joint velocities produce these motions, because of a dynamic singularity, of `still` or of the loops. In a batch, no error is raised and
        the rows are NaN.
    ModelError
        The mechanism is connected to the ground.

    References
    ----------
    Umetani and Yoshida 1989, resolved motion rate control by the generalized Jacobian.

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.box(3.0, (1, 1, 1)))
    >>> b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), radius=0.1))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> b.add_joint("shoulder", sarrus.Revolute("z"), "satellite", "arm", at_parent=(0.5, 0, 0))
    >>> robot = b.build()
    >>> v = sarrus.floating.resolved_rate(robot, robot.neutral(), {("arm", "rz"): [0.1]})
    >>> float(robot.velocity(robot.neutral(), v, "arm")[2].round(12)), bool(v[6] > 0.1)
    (0.1, True)
    """
    base_joint(robot, "resolved_rate")
    check_mapping("motions", motions, "frames to velocities", 0)
    rest = momentum_velocity(robot, q, np.zeros(robot.nv), momentum)  # checks q and momentum
    q = real_array("q", q)
    zero_rows = _still_rows(still)
    frames, velocities = [], []
    for key, motion in motions.items():
        frame, rows = frame_components("motions", key)
        frames.append((frame, rows))
        velocities.append(real_rows(f"motions[{key!r}]", motion, len(rows), q.shape[:-1]))
    h = None if momentum is None else real_rows("momentum", momentum, 6, finite=False)
    t = None if time is None else real_array("time", time)
    more = [*(x.shape[:-1] for x in velocities), () if t is None else t.shape]
    lead = np.broadcast_shapes(rest.shape[:-1], *more)
    given = np.concatenate([np.zeros((math.prod(lead), 0)), *(_in_rows(x, lead) for x in velocities)], axis=-1)
    sound = np.where(np.isnan(_in_rows(rest, lead)[:, :1]), np.nan, _in_rows(q, lead))
    h = None if h is None else _in_rows(h, lead)
    v = _core.resolved_rates(robot, sound, frames, given, zero_rows, h, _times(t, lead), not lead)
    return v.reshape(*lead, robot.nv)


def motion(
    robot: LoopFunctions, q: ArrayLike, velocity: Callable[[float, Array], ArrayLike], times: ArrayLike, *,
    momentum: ArrayLike | None = None, step: float = 0.01,
) -> FreeFloatingMotion:  # fmt: skip
    """Integrate the motion of the base for given joint velocities, from a configuration, at constant momentum.

    Parameters
    ----------
    robot : a mechanism with floating base
    q : (nq,) configuration [rad, m] at times[0]
    velocity : function (t, q) that returns v (nv,) consistent with the loops [rad/s, m/s]; the six entries of the base are ignored
    times : (n,) increasing times [s]
    momentum : (6,) momentum as returned by :meth:`~sarrus.Mechanism.momentum` [kg m2/s, kg m/s]; default: zero
    step : longest step [s]; the method has order four (commutator-free, Celledoni, Marthinsen and Owren 2003)

    Returns
    -------
    :class:`~sarrus.results.FreeFloatingMotion`, with the base's rotation

    Raises
    ------
    ModelError
        The mechanism is connected to the ground.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.sphere(1.0, 0.5))
    >>> b.add_body("wheel", sarrus.Inertia.sphere(1.0, 0.5))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> b.add_joint("axle", sarrus.Revolute("z"), "satellite", "wheel")
    >>> robot = b.build()
    >>> turned = sarrus.floating.motion(robot, robot.neutral(), lambda t, q: [0, 0, 0, 0, 0, 0, 1.0], [0.0, 1.0])
    >>> turned.base_rotation[-1].round(9).tolist()
    [0.0, 0.0, -0.5]
    """
    checked_mechanism(robot, "robot")
    base_joint(robot, "motion")
    check_callable("velocity", velocity)

    start, h = _checked_start(robot, q, momentum)
    t = real_array("times", times)
    if t.ndim != 1:
        raise ShapeError(f"times must be finite and increasing, (n,); got shape {t.shape}")

    def of_joints(t: float, q: Array) -> Array:
        return real_rows("v", velocity(t, q), robot.nv)

    run = _core.free_floating_motion(robot, start, of_joints, t.tolist(), checked_number("step", step), h)
    return FreeFloatingMotion(**run)


def path(
    robot: LoopFunctions, q: ArrayLike, way_points: Mapping[str, ArrayLike], times: ArrayLike, *, still: str = "",
    momentum: ArrayLike | None = None, step: float = 0.01, tolerance: float = 1e-6,
) -> FreeFloatingMotion:  # fmt: skip
    """Plan a motion of a mechanism with floating base, in which frames pass through waypoints.

    With ``still="rx ry rz"`` the motion does not rotate the base.

    Frames move from each waypoint to the next along a straight line (and rotate about a fixed axis), from rest to rest. Joint velocities are computed
    by :func:`~sarrus.floating.resolved_rate`.

    Parameters
    ----------
    robot : a mechanism with floating base
    q : (nq,) initial configuration [rad, m]
    way_points : frame to (k, 3) positions or (k, 4, 4) poses in the world [m]
    times : (k,) times of the waypoints, increasing and after 0 [s]. If the first time is 0, as for :func:`~sarrus.control.path_through`, the frames must
        be at their first waypoints in the initial configuration
    still : components of the base's velocity that must be zero: "rx ry rz" keeps its attitude
    momentum : (6,) momentum as returned by :meth:`~sarrus.Mechanism.momentum` [kg m2/s, kg m/s]; default: zero
    step : step of the integration and of the result [s]
    tolerance : largest error of a frame at a waypoint, and of the base in its `still` components [m, rad]

    Raises
    ------
    NotRealizableError
        A waypoint is not reached; the message names the waypoint and the reason.
    ModelError
        The mechanism is connected to the ground.

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.box(20.0, (1, 1, 1)))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> before, at = "satellite", (0.5, 0, 0)
    >>> for name in "abc":
    ...     b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0), radius=0.05))
    ...     b.add_joint(name + " joint", sarrus.Revolute("z"), before, name, at_parent=at)
    ...     before, at = name, (0.5, 0, 0)
    >>> b.add_frame("hand", "c", (0.5, 0, 0))
    >>> robot = b.build()
    >>> q = [0, 0, 0, 1, 0, 0, 0, 0.5, -1.2, 0.8]
    >>> goal = robot.pose(q, "hand")[:3, 3] + [-0.05, 0.05, 0.0]
    >>> run = sarrus.floating.path(robot, q, {"hand": [goal]}, [1.0], step=0.05)
    >>> bool(abs(robot.pose(run.q[-1], "hand")[:3, 3] - goal).max() < 1e-6), bool(run.disturbance > 1e-3)
    (True, True)
    """
    checked_mechanism(robot, "robot")
    base_joint(robot, "path")
    start, h = _checked_start(robot, q, momentum)
    longest, tolerance = checked_number("step", step), checked_number("tolerance", tolerance)
    check_mapping("way_points", way_points, "frames to positions or poses, one for each time", 0)
    arrivals = real_array("times", times).ravel().tolist()
    targets = [_way_points(name, points, len(arrivals)) for name, points in way_points.items()]
    if arrivals and arrivals[0] == 0.0:  # the motion starts at q: a waypoint at time 0 is a check
        for name, turned, poses in targets:
            difference = (robot.pose(start, name)[:3] - poses[0].reshape(3, 4))[:, 0 if turned else 3 :]
            if (off := float(np.abs(difference).max())) > tolerance:
                raise StateError(
                    f"way_points['{name}'] at time 0 must be where the configuration q has this frame; they differ by {off:.3g}: pass another q, "
                    "or times after 0"
                )
        if len(arrivals) == 1:
            raise ValueError(f"times must contain a time after 0; got {arrivals}")
        targets, arrivals = [(name, turned, poses[1:]) for name, turned, poses in targets], arrivals[1:]
    run = _core.free_floating_path(robot, start, targets, arrivals, _still_rows(still), h, longest, tolerance)
    return FreeFloatingMotion(**run)


def dynamic_singularity_map(
    robot: LoopFunctions,
    q: ArrayLike,
    output: str | tuple[str, str],
    *,
    time: ArrayLike | None = None,
    threads: int = 1,
) -> DynamicSingularityMap:
    """Detect dynamic singularities in many configurations: positions in which a frame loses a direction of motion because the base floats.

    Dynamic singularities are singular positions of the generalized Jacobian, so they depend on the masses. A position is singular if the rank is
    lower than in a few random configurations.

    Parameters
    ----------
    robot : a mechanism with floating base
    q : (..., nq) configurations [rad, m] that close the loops
    output : name of a frame, or (frame, "tx ty ..") for components of its velocity in the world's axes
    time : (...) time for prescribed motions [s]
    threads : number of threads; the result does not depend on it

    Raises
    ------
    ModelError
        The mechanism is connected to the ground.

    References
    ----------
    Papadopoulos and Dubowsky 1993, dynamic singularities in free-floating space manipulators.

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.box(3.0, (1, 1, 1)))
    >>> b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), radius=0.1))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> b.add_joint("shoulder", sarrus.Revolute("z"), "satellite", "arm", at_parent=(0.5, 0, 0))
    >>> robot = b.build()
    >>> sarrus.floating.dynamic_singularity_map(robot, robot.neutral()[None], ("arm", "rz")).singularity.tolist()
    ['regular']
    """
    checked_mechanism(robot, "robot")
    base = base_joint(robot, "dynamic_singularity_map")
    frame, rows = frame_components("output", output)
    columns = joint_columns(robot, base)
    C, scale = velocity_scale(robot)[columns], six(1.0, 1.0 / robot._length)[rows]

    def values(q: Array, time: ArrayLike | None) -> tuple[Array, Array]:
        """Return singular values (..., rows), largest first, of the Jacobians with floating and fixed base."""
        axes: dict[str, Any] = {"expressed_in": "world_aligned", "threads": threads}
        J = [generalized_jacobian(robot, q, frame, **axes), robot.jacobian(q, frame, **axes)[..., columns]]
        N: Array = np.eye(len(columns))
        if robot.nc:
            N = solutions(robot.constraint_jacobian(q, time=time)[..., columns] * C).basis
        floating, fixed = (_singular_values(scale[:, None] * (A[..., rows, :] * C) @ N) for A in J)
        return floating, fixed

    q = real_array("q", q)
    requested = values(q, time)
    first = None if time is None else float(next(filter(np.isfinite, real_array("time", time).ravel()), 0.0))
    usual = values(drawn, first) if len(drawn := usual_configurations(robot, first)) else requested
    ranks, least, lost = [], [], []
    for s, u in zip(requested, usual, strict=True):
        size = np.nan_to_num(s[..., :1]) if s.shape[-1] else np.zeros((*s.shape[:-1], 1))
        rank = (s > tolerances.present * np.maximum(size, np.nan_to_num(u[..., 0]).max(initial=0.0))).sum(axis=-1)
        most = int((u > tolerances.present * u[..., :1]).sum(axis=-1).max(initial=0)) if u.shape[-1] else 0
        ranks.append(np.where(np.isnan(s).any(axis=-1), -1, rank))
        least.append(s[..., most - 1] if 0 < most <= s.shape[-1] else np.zeros(s.shape[:-1]))
        lost.append(ranks[-1] < most)
    bad = ranks[0] < 0
    s = requested[0]
    full = np.where(lost[0], 0.0, least[0])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # infinite at singularities, or by overflow
        condition = np.where(bad, np.nan, (s[..., 0] if s.shape[-1] else 0.0 * full) / full)
    kinds = np.array(["regular", "dynamic", "kinematic", "both", ""])
    return DynamicSingularityMap(
        smallest=np.where(bad, np.nan, least[0]),
        smallest_fixed=np.where(bad, np.nan, least[1]),
        rank=ranks[0],
        rank_fixed=ranks[1],
        condition=condition,
        manipulability=np.prod(s, axis=-1),
        singularity=kinds[np.where(bad, 4, lost[0] + 2 * lost[1])],
    )


def _still_rows(still: Any) -> list[int]:
    """Return the indices of components rx ry rz tx ty tz of the base that must be zero; none for an empty text."""
    return [] if isinstance(still, str) and not still.strip() else component_rows(still)


# ---- rows ----------------------------------------------------------------------------------------------------------------------------


def _in_rows(x: Array, lead: tuple[int, ...]) -> Array:
    """Return an array (..., n) of states as rows (k, n), one for each state of a batch."""
    return np.broadcast_to(x, (*lead, x.shape[-1])).reshape(math.prod(lead), x.shape[-1])


def _times(t: Array | None, lead: tuple[int, ...]) -> Array | None:
    return None if t is None else np.broadcast_to(t, lead).ravel()


def _singular_values(A: Array) -> Array:
    bad = np.asarray(~np.isfinite(A).all(axis=(-2, -1)))
    s = np.linalg.svd(np.asarray(np.where(bad[..., None, None], 0.0, A), dtype=np.float64), compute_uv=False)
    return np.where(bad[..., None], np.nan, s)


# ---- motions -------------------------------------------------------------------------------------------------------------------------


def _checked_start(robot: LoopFunctions, q: ArrayLike, momentum: ArrayLike | None) -> tuple[Array, Array | None]:
    """Return the checked initial configuration (nq,) of a motion, and its momentum (6,)."""
    start = real_rows("q", q, robot.nq)
    if start.ndim != 1:
        raise ShapeError(
            f"q has shape {start.shape}; expected one configuration, ({robot.nq},), the initial configuration of the motion"
        )
    momentum_velocity(robot, start, np.zeros(robot.nv), momentum)  # raises the errors of invalid states
    return start, None if momentum is None else real_array("momentum", momentum)


def _way_points(name: str, points: ArrayLike, count: int) -> tuple[str, bool, Array]:
    """Return a frame's name, True for poses, and the rows (count, 12) of [R p] of its waypoints."""
    x = real_array(f"way_points['{name}']", points)
    if x.shape not in ((count, 3), (count, 4, 4)):
        shapes = f"({count}, 3) or ({count}, 4, 4)"
        raise ShapeError(f"way_points['{name}'] has shape {x.shape}; expected {shapes}, one for each time")
    if not np.isfinite(x).all():
        raise StateError(f"way_points['{name}'] must be finite")
    poses = np.tile(np.eye(3, 4), (count, 1, 1))
    if x.ndim == 3:
        poses[:] = x[:, :3]
    else:
        poses[:, :, 3] = x
    return name, x.ndim == 3, poses.reshape(count, 12)
