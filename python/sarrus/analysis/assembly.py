"""Configurations that close all loops (assembly, inverse kinematics, path continuation), and velocities and accelerations that keep them closed.

The core solves by damped Newton steps of least norm from many initial guesses (``cpp/position``). The target of a frame is an additional loop joint from
the ground to the frame, with rows for the prescribed components. Given velocities of a tree joint are fixed coordinates. Given velocities of a loop joint
or a frame are right-hand sides of constraint rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import numpy as np

from .. import _core
from .._arrays import (
    MOST_THREADS,
    Array,
    ArrayLike,
    checked_count,
    checked_time,
    checked_times,
    checked_truth,
    common_axes,
    into,
    real_array,
)
from .._core import Status
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.options import Branching, FrameTimeOptions, SearchOptions, Unpack, shows_options
from ..errors import (
    AssemblyError,
    BranchWarning,
    PathTrackingError,
    ShapeError,
    StateError,
    check_choice,
    warn_caller,
    warn_of_model,
)
from ..spatial import Transform
from .closing import (
    TOLERANCE,
    Closing,
    JointCoordinates,
    Request,
    check_frames,
    check_movable,
    checked_pose,
    checked_steps,
    checked_target,
    checked_tolerance,
    closing,
    coordinates,
    of_one_state,
    paths,
    positions,
    rates_of,
)

Targets = Mapping[str, ArrayLike | Transform]
USUAL = 8  # number of random configurations whose ranks are those of regular positions


@shows_options
def assemble(
    robot: LoopFunctions, near: ArrayLike | JointCoordinates | None = None, *, fixed: JointCoordinates | None = None,
    **options: Unpack[SearchOptions],
) -> Array:  # fmt: skip
    """Solve the loop-closure equations for a configuration (..., nq) near another one, on its branch (forward kinematics of closed chains).

    The initial guess is `near`. If its loops are nearly closed, as in a control loop, the solution takes microseconds.

    - If `fixed` determines the motion, the result is on the branch of the initial guess: the end of a path along which the fixed joints move in
      small steps to their prescribed coordinates, as in :meth:`follow`. Joints without limits rotate in the shorter direction. The steps are
      replaced by a single Newton solve if this is certified to stay on the branch.
    - If `fixed` does not determine the motion, or the initial guess is singular, no branch is defined. The state is then searched from its initial
      guess, and from random ones if this fails (see `starts`).

    The result depends neither on the spanning tree nor on the order of the description. Angles are shifted by full revolutions to be as near to
    the initial guess as limits allow. Pfaffian rows do not restrict positions; a :class:`~sarrus.ModelWarning` names them if `fixed` joints move.

    Parameters
    ----------
    near : initial guess [rad, m, quaternions (x, y, z, w)]: (..., nq), or joints to coordinates. The coordinates of a mapping are unchanged in the
        result if the loops can close with them. If joints of the mapping close a loop among themselves, the last one by name is not used.
        Default, and for joints that are not in the mapping: the home configuration of the description, or neutral coordinates
    fixed : joints to prescribed coordinates [rad, m, quaternions (x, y, z, w)]: numbers (...) for joints with one coordinate. If more coordinates are
        prescribed than the mechanism has degrees of freedom, the redundant ones must be consistent with the loops
    branch : behaviour if the branch of the initial guess does not lead to a valid result, because it ends, passes a singular position (after which it
        is undecided) or violates joint limits. "start": return the nearest solution on any branch, with a BranchWarning; "only": raise
        AssemblyError; "any": do not follow the branch at all
    starts : number of random initial guesses that are tried if the first guess fails or its solution violates joint limits. The nearest solution is
        returned; solutions within the limits have priority. The default 60 applies to a single state, and to an initial guess that all states of a
        batch share. The states of a batch are searched from random guesses only if `starts` is passed, because each unreachable state then takes
        milliseconds
    seed : seed of the random initial guesses; equal seeds give equal results
    tolerance : largest residual of a closed loop [rad, mean body sizes], at least 1e-13, the level of rounding. Loops are always closed to
        rounding if possible; a larger tolerance accepts mechanisms whose parts do not fit exactly
    out, threads, return_status : see :class:`~sarrus.Mechanism`. Status 1: the initial guess is invalid; 2: the loops stay open, or with
        branch="only" the result is not on the branch; 9 (`Status.OTHER_BRANCH`, with a result): the result is on another branch, or the branch is
        undecided
    time : (...) time for prescribed motions [s]

    Raises
    ------
    AssemblyError
        The loops do not close from any initial guess, or not with the fixed joints and prescribed motions; the message names the open loop.
        If the branch of the initial guess ends, the error is an errors.PathTrackingError, whose `last` (nq,) is the end of the branch. In a batch, no
        error is raised and the row is NaN.
    ModelError, NameNotFoundError
        Fixed joints close a loop among themselves; a joint does not exist.
    ShapeError, StateError
        The number of coordinates is wrong; coordinates are not finite, or a quaternion is zero.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble(fixed={"motor": 0.5})
    >>> float(q[0]), bool(abs(fourbar.constraint_residual(q)).max() < 1e-14)
    (0.5, True)
    >>> fourbar.assemble(near=q, fixed={"motor": np.linspace(0.4, 0.6, 5)}).shape
    (5, 3)

    A start on the other branch leads to the other solution:

    >>> mirrored = fourbar.assembly_modes(fixed={"motor": 0.5})[1]
    >>> [round(float(fourbar.assemble(near, fixed={"motor": -2.5})[2]), 3) for near in (q, mirrored)]
    [-2.01, 2.369]
    """
    if fixed is not None:
        warn_of_velocity_rows(robot, fixed, "assemble")
    answer: Array = _closed(robot, {}, near, fixed, **options)
    return answer


def warn_of_velocity_rows(robot: LoopFunctions, prescribed: object, function: str) -> None:
    """Issue a ModelWarning with the constraints that have rows on velocities only, unless all joints of the rows are prescribed.

    Rolling rows, which have no list of joints, restrict paths, but not single configurations.
    """
    if not robot._velocity_rows:
        return
    joints = prescribed if isinstance(prescribed, Mapping) else {}
    names = [
        f"'{name}'"
        for name, related in robot._velocity_rows.items()
        if (any(joint not in joints for joint in related) if related else function == "follow")
    ]
    if names:
        warn_of_model(
            f"{function}() does not use rows that constrain velocities only: those of {', '.join(names)}; for a relation of positions call "
            "Builder.add_coupler, for a motion that keeps these rows call simulate()"
        )


def _closed(
    robot: LoopFunctions, targets: Targets, near: Any, fixed: Any, *, warns: bool = True, **options: Any
) -> Any:
    """Return configurations with closed loops, fixed joints and frames at their targets, on the branch that `branch` selects."""
    if (quick := _quick(robot, targets, near, fixed, options)) is not None:
        return quick
    return _searched(robot, targets, near, fixed, warns=warns, **options)


def _quick(robot: LoopFunctions, targets: Targets, near: Any, fixed: Any, options: Mapping[str, Any]) -> Array | None:
    """Return the configuration near a single one, if one call of the kernels determines it; otherwise None."""
    if (options and options.keys() != {"time"}) or type(near) is not np.ndarray:
        return None
    time = options.get("time", 0.0)
    return positions(robot).quick(near, targets, fixed, time) if type(time) is float else None


def _searched(
    robot: LoopFunctions, targets: Targets, near: Any, fixed: Any, *, warns: bool = True, **options: Any
) -> Any:
    if request := of_one_state(robot, targets, near, fixed, options.get("time") if options else None):
        return _solved(robot, request, warns, **options)
    return solved_many(robot, targets, near, fixed, warns, **options)


def _solved(
    robot: LoopFunctions, request: Request, warns: bool, *, branch: str = "start", starts: int = 60, seed: int = 0, tolerance: float = TOLERANCE,
    time: Any = None, out: Array | None = None, threads: int = 1, return_status: bool = False,
) -> Any:  # fmt: skip
    """Return the core's solution for one state."""
    check_choice("branch", branch, Branching)
    checked_count("threads", threads)
    return_status, time = checked_truth("return_status", return_status), checked_time(time)
    starts, seed = checked_count("starts", starts, 0, most=10**6), checked_count("seed", seed, 0) % 2**64
    q, state, reason = np.full(robot.nq, np.nan), Status.FINE, ""
    if request.near is not None and not np.isfinite(request.near).all():
        if not return_status:
            raise StateError(f"near must be finite; got {request.near}")
        state = Status.INVALID_STATE
    else:
        try:
            q, other, reason = positions(robot).solve(
                *request, branch, starts, seed, checked_tolerance(tolerance), time
            )
            state = Status.OTHER_BRANCH if other else state
        except AssemblyError:
            if not return_status:
                raise
            state = Status.NO_ANSWER
    if state == Status.OTHER_BRANCH and warns and not return_status:
        warn_of_branch(1, 1, reason)
    q = q if out is None else into(out, q)
    return (q, np.asarray(np.int8(state))) if return_status else q


def solved_many(
    robot: LoopFunctions, targets: Targets, near: Any, fixed: Any, warns: bool = True, *, branch: str = "start", starts: int | None = None,
    seed: int = 0, tolerance: float = TOLERANCE, time: Any = None, out: Array | None = None, threads: int = 1, return_status: bool = False,
) -> Any:  # fmt: skip
    """Return configurations (..., nq) with closed loops and reached targets, for many states. For variants, their axis is the first one."""
    check_choice("branch", branch, Branching)
    threads, return_status = (
        min(checked_count("threads", threads), MOST_THREADS),
        checked_truth("return_status", return_status),
    )
    if starts is not None and robot._count:
        raise ValueError(
            "starts= does not apply to variants, which are solved from their own initial guesses only; omit starts="
        )
    starts = None if starts is None else checked_count("starts", starts, 0, most=10**6)
    seed, tolerance = checked_count("seed", seed, 0) % 2**64, checked_tolerance(tolerance)
    frames = {name: checked_target(robot, name, value) for name, value in targets.items()}
    states = States(
        robot,
        near,
        fixed,
        checked_times(time),
        {name: x.shape[: -1 - (x.shape[-1] == 4)] for name, x in frames.items()},
    )
    rows = [
        (name, states.rows(x[..., :3, :].reshape(*x.shape[:-2], 12) if x.shape[-1] == 4 else x, True))
        for name, x in frames.items()
    ]
    q, state = positions(robot).solve_many(
        rows, states.near, states.guess, states.fixed, branch, starts, seed, tolerance, states.time, threads, states.count
    )  # fmt: skip
    other = int((state == Status.OTHER_BRANCH).sum())
    if other and warns and not return_status:
        warn_of_branch(other, states.count)
    q = into(out, q.reshape(*states.axes, robot.nq))
    return (q, state.reshape(states.axes)) if return_status else q


class States:
    """Arguments of a batch as the core expects them: a row for each state, or one row for all states.

    Attributes
    ----------
    axes, count : leading axes of the batch, and the number of states
    near : (n, nq) or (1, nq) initial guesses, or None
    guess, fixed : joints with their coordinates (n or 1, nq of the joint), as guesses and prescribed
    time : (n, 1) or (1, 1) [s], or None
    """

    def __init__(
        self, robot: LoopFunctions, near: Any, fixed: Any, time: Any, frames: Mapping[str, tuple[int, ...]]
    ) -> None:
        guess, by_joint = (
            coordinates(robot, near if isinstance(near, Mapping) else None, many=True),
            coordinates(robot, fixed, many=True),
        )
        start = None if near is None or isinstance(near, Mapping) else real_array("near", near)
        if start is not None and start.shape[-1:] != (robot.nq,):
            expected = f"expected configurations (..., {robot.nq}), or a mapping of joints to coordinates"
            raise ShapeError(f"near has shape {start.shape}; {expected}")
        shapes = {f"coordinates of joint '{name}'": x.shape[:-1] for name, x in (*guess.items(), *by_joint.items())}
        shapes["time"] = np.shape(time)
        shapes |= {f"the target of frame '{name}'": shape for name, shape in frames.items()}
        shapes["near"] = () if start is None else start.shape[:-1]
        axes, variants = common_axes(shapes), robot._count
        if variants and (not axes or axes[0] == 1):
            axes = (variants, *axes[1:])
        if variants and axes[0] != variants:
            raise ShapeError(
                f"the first axis of each argument must be that of the {variants} variants; got leading axes {axes}"
            )
        self.axes, self.count = axes, math.prod(axes)
        self.near = None if start is None else self.rows(start)
        self.guess, self.fixed = ([(name, self.rows(x)) for name, x in given.items()] for given in (guess, by_joint))
        self.time = None if time is None else self.rows(np.asarray(time, dtype=np.float64)[..., None])

    def rows(self, x: Array, always: bool = False) -> Array:
        """Return x (..., k) with a row for each state; without leading axes it is one row, unless `always`."""
        if x.ndim == 1 and not always:
            return x[None]
        return np.ascontiguousarray(np.broadcast_to(x, (*self.axes, x.shape[-1]))).reshape(self.count, x.shape[-1])


def warn_of_branch(count: int, total: int, reason: str = "") -> None:
    """Issue a BranchWarning for `count` of `total` states, or for a single state with the reason."""
    where = f"{count} of {total} configurations are" if not reason else "this configuration is"
    reason_text = f": {reason}" if reason else f" (status {Status.OTHER_BRANCH:d})"
    text = f"{where} not on the branch of the initial configuration, or the branch is ambiguous{reason_text}"
    warn_caller(f"{text}; branch='any' accepts it without a warning, branch='only' raises an error", BranchWarning)


def assembly_modes(
    robot: LoopFunctions, *, fixed: JointCoordinates | None = None, time: float | None = None, attempts: int = 200, seed: int = 0,
    tolerance: float = TOLERANCE,
) -> list[Array]:  # fmt: skip
    """Search for all assembly modes: the configurations (nq,) in which the loops close with the given joints fixed.

    The search may miss modes; increase `attempts` to find more. The list is sorted by distance from the home configuration, and empty if no mode was
    found. Joint limits are ignored.

    Parameters
    ----------
    fixed, time, seed, tolerance : as in :meth:`assemble`, for one state
    attempts : number of random initial guesses

    Returns
    -------
    list of (nq,) configurations, whose bodies have different poses

    Raises
    ------
    ModelError
        With these joints fixed the mechanism can still move, so that the number of configurations is infinite. Also the errors of :meth:`assemble`.

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> [float(fourbar.pose(q, "rocker")[0, 0].round(3)) for q in fourbar.assembly_modes(fixed={"motor": 0.5})]
    [-0.329, 0.237]
    """
    attempts, tolerance = checked_count("attempts", attempts, most=10**6), checked_tolerance(tolerance)
    time, seed = checked_time(time), checked_count("seed", seed, 0) % 2**64
    fixed_joints = [(name, x.tolist()) for name, x in coordinates(robot, fixed).items()]
    modes: list[Array] = positions(robot).assembly_modes(fixed_joints, time, attempts, seed, tolerance)
    return modes


@shows_options
def inverse_kinematics(
    robot: LoopFunctions, frames: Targets, *, near: ArrayLike | JointCoordinates | None = None, fixed: JointCoordinates | None = None,
    **options: Unpack[SearchOptions],
) -> Array:  # fmt: skip
    """Solve the inverse kinematics: return a configuration (..., nq) with frames at their targets and all loops closed.

    If the targets determine the motion, the result is on the branch of the initial guess: it is the end of a path along which the frames move to their
    targets on straight lines, with uniform rotations.
    Otherwise the solution is near the initial guess: the motion that targets and loops do not determine is minimal.

    Parameters
    ----------
    frames : frame to its pose in the world, (..., 4, 4) or a Transform, or to the position of its origin (..., 3) [m]. NaN marks free components: of a
        position, which may differ from state to state, or a whole rotation (nine NaN)
    near, fixed, branch, starts, seed, tolerance : as in :meth:`assemble`
    time : (...) time for prescribed motions [s]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    AssemblyError
        A target is out of reach; the message contains the remaining distance of the frame. Also the errors of :meth:`assemble`.

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.delta()
    >>> q = robot.inverse_kinematics({"platform": (0.05, 0.0, -0.5)})
    >>> [round(float(q[robot.joint(name).q_slice][0]), 4) for name in robot.actuated]
    [0.139, 0.3476, 0.3476]
    >>> robot.inverse_kinematics({"platform": [(0.05, 0.0, -0.5), (0.0, 0.05, -0.5)]}, near=q).shape
    (2, 22)

    x and y of the platform, with a fixed motor:

    >>> q = robot.inverse_kinematics({"platform": (0.1, 0.0, float("nan"))}, near=q, fixed={"motor1": 0.139})
    >>> robot.pose(q, "platform")[:3, 3].round(4) + 0.0
    array([ 0.1   ,  0.    , -0.5379])
    """
    if not robot._velocity_rows and (quick := _quick(robot, frames, near, fixed, options)) is not None:
        return quick
    check_frames(robot, frames, "fixed")
    warn_of_velocity_rows(robot, fixed, "inverse_kinematics")
    answer: Array = _searched(robot, frames, near, fixed, **options)
    return answer


def follow(
    robot: LoopFunctions, joints: JointCoordinates | None = None, near: ArrayLike | JointCoordinates | None = None, *,
    frames: Targets | None = None, time: ArrayLike | None = None, max_step: float = 0.2, min_step: float = 1e-7, tolerance: float = TOLERANCE,
    out: Array | None = None, return_status: bool = False,
) -> Array:  # fmt: skip
    """Compute closed configurations (n, nq) along prescribed inputs, on one branch (path continuation).

    Each step between two inputs is a prediction along the tangent and a correction that closes the loops; a step with a large correction is
    halved. Where branches cross, the path continues in the direction of its tangent. The motion that inputs and loops do not determine is
    minimal. Rows that constrain velocities only, as of rolling wheels, are not used; a :class:`~sarrus.ModelWarning` names them.

    Parameters
    ----------
    joints : joint to its coordinates along the path, (n,) or (n, nq of the joint) [rad, m, quaternions (x, y, z, w)]; interpolated linearly
    frames : frame to its poses (n, 4, 4) or positions (n, 3) in the world along the path [m]. NaN marks free components, as in
        :meth:`inverse_kinematics`, which are the same in all rows
    near : as in :meth:`assemble`: initial guess of the configuration at the first inputs
    time : (n,) times for prescribed motions [s]
    max_step : largest motion of a joint in one step [rad, mean body sizes], at least min_step
    min_step : smallest step, as a fraction of the path between two inputs (dimensionless). If a shorter step would be necessary, the branch ends. It
        must exceed rounding
    tolerance : as in :meth:`assemble`
    out, return_status : see :class:`~sarrus.Mechanism`. Status 2: the branch ends, and the configurations after its end are NaN

    Raises
    ------
    AssemblyError
        The loops do not close at the first inputs, or the branch ends, for example at a dead point. If the branch ends, the error is an
        errors.PathTrackingError: `path` (k, nq) are the configurations before the end, and `last` (nq,) is the end of the branch.
    ModelError, NameNotFoundError, ShapeError, StateError
        See :meth:`assemble`.

    Examples
    --------
    The midpoint of a four-bar's coupler in a turn of the crank:

    >>> import numpy as np
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.follow({"motor": np.linspace(0.0, 2 * np.pi, 91)})
    >>> curve = fourbar.pose(q, "coupler") @ (0.55, 0.0, 0.0, 1.0)
    >>> bool(np.allclose(curve[0], curve[-1])), curve[:, 0].min().round(3).item(), curve[:, 0].max().round(3).item()
    (True, 0.005, 0.784)

    Driven by its rocker, the four-bar moves until crank and coupler are in line:

    >>> try:
    ...     fourbar.follow({"pivot": np.linspace(-1.6, -1.0, 31)})
    ... except sarrus.AssemblyError as end:
    ...     print(end.path.shape, end.last_configuration[fourbar.joint("pivot").q_slice].round(3))
    (14, 3) [-1.324]
    """
    steps = checked_steps(max_step, min_step)
    warn_of_velocity_rows(robot, joints, "follow")
    joints, frames = {} if joints is None else joints, {} if frames is None else frames
    check_frames(robot, frames, "joints")
    targets_by_frame = {
        (name, x.shape[-1] == 4): x
        for name, x in ((name, checked_target(robot, name, value)) for name, value in frames.items())
    }
    for (name, turned), x in targets_by_frame.items():
        if x.ndim != 2 + turned:
            raise ShapeError(f"path of frame '{name}': expected poses (n, 4, 4) or points (n, 3), got shape {x.shape}")
    paths_by_joint, times = paths(robot, joints, time, {name: len(x) for (name, _), x in targets_by_frame.items()})
    frame_paths = {
        name: np.array([checked_pose(matrix) for matrix in x]) if turned else x
        for (name, turned), x in targets_by_frame.items()
    }
    start = real_array("near", near) if near is not None and not isinstance(near, Mapping) else None
    if start is not None and start.shape != (robot.nq,):
        raise ShapeError(
            f"near must be one configuration, ({robot.nq},), the initial configuration of a path; got shape {start.shape}"
        )
    guess = [(name, x.tolist()) for name, x in (coordinates(robot, near) if isinstance(near, Mapping) else {}).items()]
    by_joint = [(name, x.ravel().tolist()) for name, x in paths_by_joint.items()]
    rows = {name: x[:, :3].reshape(len(x), 12) if x.ndim == 3 else x for name, x in frame_paths.items()}
    by_frame = [(name, x.ravel().tolist()) for name, x in rows.items()]
    status = Status.FINE
    try:
        path = positions(robot).follow(
            by_joint, by_frame, times.tolist(), start, guess, *steps, checked_tolerance(tolerance)
        )
    except AssemblyError as error:
        if not checked_truth("return_status", return_status):
            raise
        path, status = np.full((len(times), robot.nq), np.nan), Status.NO_ANSWER
        if isinstance(error, PathTrackingError):
            path[: len(error.path)] = error.path
    path = path if out is None else into(out, path)
    return cast("Array", (path, np.asarray(np.int8(status)))) if checked_truth("return_status", return_status) else path


@shows_options
def complete_velocity(
    robot: LoopFunctions, q: ArrayLike, joints: Rates | None = None, *, frames: Rates | None = None, **options: Unpack[FrameTimeOptions]
) -> Array:  # fmt: skip
    """Compute the constraint-consistent velocity (..., nv), J v = c, with given velocities of joints and frames.

    If these do not determine the motion, the velocity of least norm is returned.

    Parameters
    ----------
    q : (..., nq) configuration that closes the loops [rad, m, quaternions (x, y, z, w)]
    joints : joint to its velocity: (...), or (..., nv of the joint) [rad/s, m/s]; default: none, if there are `frames`
    frames : frame to its velocity [angular; linear] (..., 6), as :meth:`velocity` returns it, or to the velocity of its origin only, (..., 3)
        [rad/s, m/s]. Components that are NaN in all states are free
    expressed_in : axes of the frames' velocities: "frame", the frame's own, or "world_aligned"
    time, out, threads, return_status : see :class:`~sarrus.Mechanism`. Status 3: the loops do not allow these velocities

    Raises
    ------
    StateError
        The loops do not allow these velocities. In a batch, no error is raised and the row is NaN.
    ModelError, NameNotFoundError, ShapeError
        Joints in `joints` close a loop among themselves; a frame is fixed to the ground; a joint or frame does not exist; the number
        of velocities is wrong.

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble(fixed={"motor": 0.5})
    >>> v = fourbar.complete_velocity(q, {"motor": 6.0})
    >>> float(v[0]), bool(abs(fourbar.constraint_jacobian(q) @ v).max() < 1e-12)
    (6.0, True)

    Motor velocities of a Delta robot for a lateral velocity of its platform:

    >>> delta = sarrus.mechanisms.delta()
    >>> q = delta.inverse_kinematics({"platform": (0.05, 0.0, -0.5)})
    >>> v = delta.complete_velocity(q, frames={"platform": (0.1, 0.0, 0.0)}, expressed_in="world_aligned")
    >>> [round(float(v[delta.joint(name).v_slice][0]), 3) for name in delta.actuated]
    [-0.254, 0.165, 0.165]
    """
    answer: Array = completed(robot, q, None, joints, frames, options)
    return answer


@shows_options
def complete_acceleration(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, joints: Rates | None = None, *, frames: Rates | None = None,
    **options: Unpack[FrameTimeOptions],
) -> Array:  # fmt: skip
    """Compute the constraint-consistent acceleration (..., nv) with given accelerations of joints and frames, J a = gamma(q, v).

    If these do not determine the motion, the acceleration of least norm is returned.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s] that satisfy the constraints
    joints : joint to its acceleration: (...), or (..., nv of the joint) [rad/s², m/s²]; default: none, if there are `frames`
    frames : frame to its classical acceleration (..., 6), as :meth:`acceleration` returns it, or to the acceleration of its origin only, (..., 3)
        [rad/s², m/s²]; NaN as in :meth:`complete_velocity`
    expressed_in, time, out, threads, return_status : as in :meth:`complete_velocity`

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble(fixed={"motor": 0.5})
    >>> v = fourbar.complete_velocity(q, {"motor": 6.0})
    >>> a = fourbar.complete_acceleration(q, v, {"motor": 0.0})
    >>> missing = fourbar.constraint_jacobian(q) @ a - fourbar.constraint_bias(q, v)
    >>> float(a[0]), bool(abs(missing).max() < 1e-12)
    (0.0, True)
    """
    answer: Array = completed(robot, q, v, joints, frames, options)
    return answer


def random(
    robot: LoopFunctions,
    rng: np.random.Generator | int | None = None,
    size: int | tuple[int, ...] = (),
    *,
    closed: bool = False,
) -> Array:
    """Draw random configurations of shape ``(*size, nq)`` [rad, m, quaternions (x, y, z, w)], within joint limits.

    Without limits, angles are in [-pi, pi], displacements in [-1, 1] m, and rotations are uniformly distributed.

    Parameters
    ----------
    rng : random generator, or its seed; default: an unpredictable seed
    size : number of configurations, or shape of the batch
    closed : True returns configurations with closed loops, with all joints within their limits. Each draw is then an initial guess, with
        displacements up to the mean body size. A draw whose loops do not close, or close in a singular position, is replaced by a new draw

    Raises
    ------
    AssemblyError
        The loops did not close in 100 draws of a configuration.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> q = robot.random(np.random.default_rng(0), size=5, closed=True)
    >>> q.shape, bool(abs(robot.constraint_residual(q)).max() < 1e-12)
    ((5, 3), True)
    """
    if not isinstance(rng, np.random.Generator):
        rng = np.random.default_rng(None if rng is None else checked_count("rng", rng, 0))
    if not checked_truth("closed", closed) or not robot.constraints:
        return robot._drawn(rng, size)
    drawn = robot._drawn(rng, size, robot._length)
    rows = drawn.reshape(-1, robot.nq)
    closed_rows = positions(robot).closed_configurations(rows, lambda n: robot._drawn(rng, n, robot._length))
    return closed_rows.reshape(drawn.shape)


def usual_configurations(robot: LoopFunctions, time: float | None) -> Array:
    """Return some random configurations (n, nq) with closed loops at a time, the same in each call; none if the loops did not close."""
    rng = np.random.default_rng(0)
    if time is None or not robot.constraints:
        with suppress(AssemblyError):  # for example, the mechanism closes in a single configuration only
            return random(robot, rng, USUAL, closed=True)
        return np.zeros((0, robot.nq))
    drawn = robot._drawn(rng, 8 * USUAL, robot._length)
    q, status = _closed(robot, {}, drawn, None, branch="any", time=time, return_status=True)
    return cast(Array, q[status == 0][:USUAL])


Rates = Mapping[str, ArrayLike]
AXES = ("frame", "world_aligned")
Prepared = tuple[Closing, Array, Array | None, Array | None]
_of_one_state: Any = _core.of_one_state("complete")


def completed(
    robot: LoopFunctions,
    q: ArrayLike,
    v: ArrayLike | None,
    joint_rates: Rates | None,
    frames: Rates | None,
    options: Any,
) -> Any:
    """Return velocities (..., nv), or accelerations if v is not None, of least norm with the given motions of joints and frames."""
    if joint_rates is None:
        if frames is None:
            raise TypeError("no motion is given: pass that of joints, as 'joints', or that of frames, as 'frames'")
        joint_rates = {}
    axes = options.pop("expressed_in", "frame")
    if not isinstance(axes, str) or axes not in AXES:
        raise ValueError(f"expressed_in must be 'frame' or 'world_aligned'; got {axes!r}")
    # one state with the joints and frames of an earlier call, as in a control loop
    if (motion := _of_one_state(robot, q, v, joint_rates, frames, axes, options)) is not None:
        return motion
    closure, x, rows, values = _checked(robot, q, v, joint_rates, {} if frames is None else frames, axes)
    if values is not None:
        options["pfaffian_values"] = values
    if v is None:
        return closure.robot._least_motion(q, x, None, closure.weight, rows, **options)
    return closure.robot._least_motion(q, v, x, closure.weight, rows, **options)


def _checked(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None, joint_rates: Rates, frames: Rates, expressed_in: str
) -> Prepared:
    """Return the closure, the fixed velocities (..., nv), the additions to the right-hand side (..., nc), and the values of target rows."""
    quantity = "velocities" if v is None else "accelerations"
    rates = rates_of(robot, joint_rates, quantity)
    check_frames(robot, frames, "joints")
    frame_rates, keys = {}, []
    for name, value in frames.items():
        key, frame_rates[name] = _prescribed(robot, q, v, name, value, quantity, expressed_in)
        keys.append(key)
    closure = closing(robot, tuple(keys), joint_rates)
    shapes = {f"{quantity} of joint '{name}'": x.shape[:-1] for name, x in rates.items()}
    lead = common_axes(shapes | {f"{quantity} of frame '{name}'": x.shape[:-1] for name, x in frame_rates.items()})
    x = np.zeros((*lead, robot.nv))
    for name in rates.keys() - set(closure.loop_joints):
        x[..., robot.joint(name).v_slice] = rates[name]
    if closure.robot is robot:
        return closure, x, None, None
    rows = np.zeros((*lead, closure.robot.nc))
    for place, rate in zip(
        closure.rows, [*frame_rates.values(), *(rates[name] for name in closure.loop_joints)], strict=True
    ):
        rows[..., place] = rate
    return closure, x, rows, closure.values(q, v, np.zeros(closure.numbers))


def _prescribed(
    robot: LoopFunctions,
    q: ArrayLike,
    v: ArrayLike | None,
    frame: str,
    value: ArrayLike,
    quantity: str,
    expressed_in: str,
) -> tuple[tuple[str, bool] | tuple[str, bool, int, bool], Array]:
    """Return an entry of `Frames`, and the prescribed components of a frame's velocity (..., k), or for an acceleration their rates at v.

    All components, (..., 6) or (..., 3) of the origin, are in the frame's axes. If some are NaN in all states, the others are in the axes `expressed_in`.
    """
    check_movable(robot, frame)
    x = real_array(f"{quantity} of frame '{frame}'", value)
    if x.ndim == 0 or x.shape[-1] not in (3, 6):
        expected = "(..., 6), [angular; linear], or (..., 3) for its origin"
        raise ShapeError(f"{quantity} of frame '{frame}' must be {expected}; got shape {x.shape}")
    size, fixed = x.shape[-1], ~np.isnan(x).all(axis=tuple(range(x.ndim - 1))) | (x.size == 0)
    if x.ndim == 1 and not fixed.any():
        meaning = "NaN marks free components, expected a number for at least one"
        raise StateError(f"{quantity} of frame '{frame}' are NaN in all components; {meaning}")
    aligned = expressed_in == "world_aligned"
    partial = (
        (int(2 ** (6 - size) * (2 ** np.arange(size) @ fixed)), aligned) if fixed.any() and not fixed.all() else ()
    )
    key: Any = (frame, size == 6, *partial)
    if partial and aligned:  # rows along the world's axes, whose rates are those of a classical acceleration
        return key, x[..., fixed]
    parts = [x[..., k : k + 3] for k in range(0, x.shape[-1], 3)]
    if aligned:
        R = robot.pose(q, frame, return_status=True)[0][..., :3, :3]
        parts = [np.einsum("...ji,...j->...i", R, part) for part in parts]
    if v is not None:  # the frame's axes rotate, which adds to the rate of the components
        V = robot.velocity(q, v, frame, return_status=True)[0]
        parts[-1] = parts[-1] - np.cross(V[..., :3], V[..., 3:])
    lead = np.broadcast_shapes(*(part.shape for part in parts))
    components = np.concatenate([np.broadcast_to(part, lead) for part in parts], axis=-1)
    return key, components[..., fixed] if partial else components


def holding(
    robot: LoopFunctions, q: ArrayLike, joints: tuple[str, ...], time: ArrayLike | None
) -> tuple[LoopFunctions, Array, dict[str, Any]]:
    """Return the arguments for locked joints: the mechanism, weights (nv,) that are 0 for locked velocities, and keyword arguments."""
    closure = closing(robot, (), joints)
    keywords = {}
    if closure.loop_joints:
        current = robot.joint_states(q, time=time).q
        keywords["pfaffian_values"] = closure.values(
            q, None, np.concatenate([current[name] for name in closure.loop_joints], axis=-1)
        )
    return closure.robot, np.sign(closure.weight), keywords
