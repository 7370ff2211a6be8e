"""Configurations that close all loops: assembly, assembly modes, inverse kinematics and path continuation.

The core solves for one state, by damped Newton steps of least norm from many initial guesses (``cpp/position``). Batches take the first of these steps
side by side, here. The target of a frame is an additional loop joint from the ground to the frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import Array, checked_count, checked_time, checked_times, checked_truth, common_axes, into, real_array
from ..._core import Status
from ...dynamics.loop_operations import LoopFunctions
from ...dynamics.options import Branching, FrameTimeOptions, SearchOptions, Unpack, shows_options
from ...errors import (
    AssemblyError,
    BranchWarning,
    PathTrackingError,
    ShapeError,
    StateError,
    check_choice,
    warn_caller,
)
from ...spatial import Transform
from ..joint_targets import JointCoordinates, coordinates, paths, start_near
from .closing import (
    TOLERANCE,
    Closing,
    Frames,
    Request,
    check_frames,
    checked_target,
    checked_tolerance,
    closing,
    from_each,
    of_one_state,
    positions,
)
from .rates import Rates, completed
from .recut import Recut, searched

Targets = Mapping[str, ArrayLike | Transform]


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
    - If `fixed` does not determine the motion, or the initial guess is singular, no branch is defined. A single state is then searched from many
      initial guesses, and each state of a batch from its own guess only.

    The result depends neither on the spanning tree nor on the order of the description. Angles are shifted by full revolutions to be as near to
    the initial guess as limits allow.

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
        returned; solutions within the limits have priority
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
    answer: Array = _closed(robot, {}, near, fixed, **options)
    return answer


def _closed(
    robot: LoopFunctions, targets: Targets, near: Any, fixed: Any, *, warns: bool = True, **options: Any
) -> Any:
    """Return configurations with closed loops, fixed joints and frames at their targets, on the branch that `branch` selects."""
    if (
        (not options or options.keys() == {"time"})
        and type(near) is np.ndarray
        and type(time := options.get("time", 0.0)) is float
    ):
        quick: Array | None = positions(robot).quick(near, targets, fixed, time)
        if quick is not None:
            return quick
    if request := of_one_state(robot, targets, near, fixed, options.get("time") if options else None):
        return _solved(robot, request, warns, **options) if options else _solved_by_default(robot, request, warns)
    branch = options.pop("branch", "start")
    check_choice("branch", branch, Branching)
    if branch != "any" and (fixed or targets) and (targets or robot.nc):
        return _continue_or_search(robot, targets, near, fixed, branch, warns, **options)
    return _nearest(robot, targets, near, fixed, **options)


def _solved_by_default(robot: LoopFunctions, request: Request, warns: bool) -> Array:
    """Return the core's solution for one state, without options: the call of a control loop."""
    q: Array
    q, other, reason = positions(robot).solve(*request, "start", 60, 0, TOLERANCE, None)
    if other and warns:
        warn_of_branch(1, 1, reason)
    return q


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


# ---- batches: first steps side by side, and continuation on branches -------------------------------------------------


def _nearest(robot: LoopFunctions, targets: Targets, near: Any, fixed: Any, **options: Any) -> Any:
    """Return configurations (..., nq) with closed loops, fixed joints and frames at their targets, on any branch."""
    tree, near = searched(robot, fixed, near=near)
    if tree is None:
        return search_in_tree(robot, targets, near, fixed, **options)
    return _search_in_trees(robot, tree, targets, near, fixed, **options)


def _continue_or_search(
    robot: LoopFunctions, targets: Targets, near: Any, fixed: Any, branch: str, warns: bool, *, out: Array | None = None,
    return_status: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Return solutions on the branch of the initial guess; if this fails and `branch` allows it, return the nearest solutions."""
    return_status, time = checked_truth("return_status", return_status), checked_times(options.get("time"))
    frames, fixed_coordinates = _targets(robot, targets), coordinates(robot, fixed, many=True)
    shapes = {f"coordinates of joint '{name}'": x.shape[:-1] for name, x in fixed_coordinates.items()}
    shapes["time"] = () if time is None else np.asarray(time).shape
    shapes |= {f"the target of frame '{name}'": x.shape[: -1 - turned] for (name, turned), x in frames.items()}
    if near is not None and not isinstance(near, Mapping):
        shapes["near"] = real_array("near", near).shape[:-1]
    axes = common_axes(shapes)
    start, open_ = _closed(robot, {}, near, None, return_status=True, **options)

    def nearest() -> Any:
        return _nearest(robot, targets, near, fixed, out=out, return_status=return_status, **options)

    if open_.all():
        return nearest()

    def in_rows(x: Any, size: int = 1) -> Array:
        x = np.asarray(x)
        inner = x.shape[x.ndim - size :]
        return np.broadcast_to(x, (*axes, *inner)).reshape(math.prod(axes), *inner)

    guess = coordinates(robot, near, many=True) if isinstance(near, Mapping) else {}
    begin = in_rows(start_near(robot, near, guess, time, axes if guess else np.shape(start)[:-1]))
    start, goals = in_rows(start), {name: in_rows(x) for name, x in fixed_coordinates.items()}
    places = {key: in_rows(x, 1 + key[1]) for key, x in frames.items()}
    times = None if time is None else in_rows(time, 0)

    def again(rows: Any, origin: Array) -> Any:
        at = options if times is None else options | {"time": times[rows]}
        aims = {frame: x[rows] for (frame, _), x in places.items()}
        inputs = {name: x[rows] for name, x in goals.items()}
        return _nearest(robot, aims, origin[rows], inputs, return_status=True, **at)

    search_options = {"tolerance": options.get("tolerance", TOLERANCE), "threads": options.get("threads", 1)}
    from .leading import continue_or_search

    result = continue_or_search(
        robot, places, goals, begin, start, in_rows(open_, 0), times, branch, again, **search_options
    )
    if result is None:
        return nearest()
    if warns and not return_status and (count := int((result.state == Status.OTHER_BRANCH).sum())):
        warn_of_branch(count, len(start))
    q = into(out, result.q.reshape(*axes, robot.nq))
    return (q, result.state.reshape(axes)) if return_status else q


def warn_of_branch(count: int, total: int, reason: str = "") -> None:
    """Issue a BranchWarning for `count` of `total` states, or for a single state with the reason."""
    where = f"{count} of {total} configurations are" if not reason else "this configuration is"
    reason_text = f": {reason}" if reason else f" (status {Status.OTHER_BRANCH:d})"
    text = f"{where} on another branch than that of the start, or on an undecided one{reason_text}"
    warn_caller(f"{text}; branch='any' accepts it without a warning, branch='only' raises an error", BranchWarning)


def _search_in_trees(
    robot: LoopFunctions, tree: Recut, targets: Targets, near: Any, fixed: Any, *, out: Array | None = None, return_status: bool = False,
    **options: Any,
) -> Any:  # fmt: skip
    """Return solutions by three attempts: from nearly closed guesses in this tree, by a search in the other tree, by a search in this tree."""
    time, return_status = options.get("time"), checked_truth("return_status", return_status)
    in_tree = not any(robot.joint(name).closes_loop for name in fixed or ())

    def nearby(near: Any) -> tuple[Array, Array]:
        answer: tuple[Array, Array] = search_in_tree(
            robot, targets, near, fixed, nearby=True, return_status=True, **options
        )
        return answer

    q = state = None
    if near is not None and not isinstance(near, Mapping):
        q, state = nearby(near)
    if state is None or state.any():
        found_in_tree = search_in_tree(
            tree.robot, targets, tree.start(near, time), fixed, return_status=return_status or in_tree, **options
        )
        found_in_tree, other = (
            found_in_tree
            if return_status or in_tree
            else (found_in_tree, np.isnan(found_in_tree).any(axis=-1) * np.int8(2))
        )
        fixed_in_tree = tuple(name for name in fixed or {} if name in robot.joints)
        back = tree.convert_back(found_in_tree, near, time, fixed_in_tree)
        # close the loops to rounding in the coordinates of this tree as well
        closer, open_ = nearby(np.where(np.isfinite(back), back, robot.neutral()))
        back = np.where(((open_ == 0) & (other == 0))[..., None], closer, back)
        q, state = _merged(q, state, back, other)
    if in_tree and state.any():
        more = search_in_tree(robot, targets, near, fixed, return_status=return_status, **options)
        more, other = more if return_status else (more, np.isnan(more).any(axis=-1) * np.int8(2))
        q, state = _merged(q, state, more, other)
    result = into(out, np.asarray(q))
    return (result, state) if return_status else result


def search_in_tree(
    robot: LoopFunctions, targets: Targets, near: Any, fixed: Any, *, time: Any = None, starts: int = 60, seed: int = 0,
    tolerance: float = TOLERANCE, out: Array | None = None, threads: int = 1, return_status: bool = False,
    nearby: bool = False,
) -> Any:  # fmt: skip
    """Return solutions of :meth:`assemble` or :meth:`inverse_kinematics` in the coordinates of this tree; with `nearby`, for nearly closed guesses
    only.
    """
    threads, return_status = checked_count("threads", threads), checked_truth("return_status", return_status)
    starts, seed = checked_count("starts", starts, 0), checked_count("seed", seed, 0)
    tolerance = checked_tolerance(tolerance)
    time = checked_times(time)
    frames, fixed_coordinates = _targets(robot, targets), coordinates(robot, fixed, many=True)
    start_coordinates = (coordinates(robot, near, many=True) if isinstance(near, Mapping) else {}) | fixed_coordinates
    shapes = {f"coordinates of joint '{name}'": x.shape[:-1] for name, x in start_coordinates.items()} | {
        "time": np.shape(time)
    }
    shapes |= {f"the target of frame '{name}'": x.shape[: -1 - turned] for (name, turned), x in frames.items()}
    if near is not None and not isinstance(near, Mapping):
        shapes["near"] = real_array("near", near).shape[:-1]
    lead = common_axes(shapes)
    frame_names: Frames = tuple(frames)
    numbers = [x[..., :3, :].reshape(*x.shape[:-2], 12) if turned else x for (_, turned), x in frames.items()]

    def to(fixed_joints: Mapping[str, Array], states: Any = slice(None)) -> tuple[Closing, Array | None]:
        """Return the closure with these fixed joints, and the targets of joints and frames."""
        closure = closing(robot, frame_names, fixed_joints)
        targets = closure.targets(numbers, fixed_joints, lead)
        return closure, None if targets is None else targets.reshape(-1, closure.numbers)[states]

    start = start_near(robot, near, start_coordinates, time, lead).reshape(math.prod(lead), robot.nq)
    time = None if time is None else np.broadcast_to(time, lead).ravel()
    closure, target_numbers = to(start_coordinates)
    q, state = from_each(closure, start, target_numbers, time, tolerance, threads, nearby)
    if len(start_coordinates) > len(fixed_coordinates) and (open_ := state == 2).any():
        closure, target_numbers = to(fixed_coordinates, open_)
        when = None if time is None else time[open_]
        q[open_], state[open_] = from_each(closure, start[open_], target_numbers, when, tolerance, threads)
    q = into(out, q.reshape(*lead, robot.nq))
    return (q, state.reshape(lead)) if return_status else q


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

    If the targets determine the motion, the result is on the branch of the initial guess, along straight lines and uniform rotations of the frames.
    Otherwise the solution is near the initial guess: the motion that targets and loops do not determine is minimal.

    Parameters
    ----------
    frames : frame to its pose in the world, (..., 4, 4) or a Transform, or to the position of its origin (..., 3) [m]
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
    """
    check_frames(robot, frames, "fixed")
    answer: Array = _closed(robot, frames, near, fixed, **options)
    return answer


def follow(
    robot: LoopFunctions, joints: JointCoordinates | None = None, near: ArrayLike | JointCoordinates | None = None, *,
    frames: Targets | None = None, time: ArrayLike | None = None, max_step: float = 0.2, min_step: float = 1e-7, tolerance: float = TOLERANCE,
    out: Array | None = None, return_status: bool = False,
) -> Array:  # fmt: skip
    """Compute closed configurations (n, nq) along prescribed inputs, on one branch (path continuation).

    Each step between two inputs is a prediction along the tangent and a correction that closes the loops; a step with a large correction is
    halved. Where branches cross, the path continues in the direction of its tangent. The motion that inputs and loops do not determine is
    minimal.

    Parameters
    ----------
    joints : joint to its coordinates along the path, (n,) or (n, nq of the joint) [rad, m, quaternions (x, y, z, w)]; interpolated linearly
    frames : frame to its poses (n, 4, 4) or positions (n, 3) in the world along the path [m]
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
    from .continuation import checked_steps

    steps = checked_steps(max_step, min_step)
    joints, frames = {} if joints is None else joints, {} if frames is None else frames
    check_frames(robot, frames, "joints")
    targets_by_frame = _targets(robot, frames)
    for (name, turned), x in targets_by_frame.items():
        if x.ndim != 2 + turned or not np.isfinite(x).all():
            expected = "expected finite poses (n, 4, 4) or points (n, 3)"
            raise ShapeError(f"path of frame '{name}': {expected}, got shape {x.shape}")
    paths_by_joint, times = paths(robot, joints, time, {name: len(x) for (name, _), x in targets_by_frame.items()})
    frame_paths = {
        name: np.array([Transform.from_matrix(matrix).matrix for matrix in x]) if turned else x
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
    robot: LoopFunctions, q: ArrayLike, joints: Rates, *, frames: Rates | None = None, **options: Unpack[FrameTimeOptions]
) -> Array:  # fmt: skip
    """Compute the constraint-consistent velocity (..., nv), J v = c, with given velocities of joints and frames.

    If these do not determine the motion, the velocity of least norm is returned.

    Parameters
    ----------
    q : (..., nq) configuration that closes the loops [rad, m, quaternions (x, y, z, w)]
    joints : joint to its velocity: (...), or (..., nv of the joint) [rad/s, m/s]
    frames : frame to its velocity [angular; linear] (..., 6), as :meth:`velocity` returns it, or to the velocity of its origin only, (..., 3)
        [rad/s, m/s]
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
    >>> v = delta.complete_velocity(q, {}, frames={"platform": (0.1, 0.0, 0.0)}, expressed_in="world_aligned")
    >>> [round(float(v[delta.joint(name).v_slice][0]), 3) for name in delta.actuated]
    [-0.254, 0.165, 0.165]
    """
    answer: Array = completed(robot, q, None, joints, frames, options)
    return answer


@shows_options
def complete_acceleration(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, joints: Rates, *, frames: Rates | None = None,
    **options: Unpack[FrameTimeOptions],
) -> Array:  # fmt: skip
    """Compute the constraint-consistent acceleration (..., nv) with given accelerations of joints and frames, J a = gamma(q, v).

    If these do not determine the motion, the acceleration of least norm is returned.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s] that satisfy the constraints
    joints : joint to its acceleration: (...), or (..., nv of the joint) [rad/s², m/s²]
    frames : frame to its classical acceleration (..., 6), as :meth:`acceleration` returns it, or to the acceleration of its origin only, (..., 3)
        [rad/s², m/s²]
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


def _merged(q: Array | None, state: Array | None, more: Array, other: Array) -> tuple[Array, Array]:
    """Return configurations and statuses in which the failed rows of `q` and `state` are replaced by `more` and `other`."""
    if q is None or state is None:
        return more, np.asarray(other)
    return np.where((state == 0)[..., None], q, more), np.where(state == 0, state, other).astype(np.int8)


def _targets(robot: LoopFunctions, frames: Targets) -> dict[tuple[str, bool], Array]:
    """Return the target of each frame, a pose (..., 4, 4) if its flag is True, else a point (..., 3)."""
    targets = {name: checked_target(robot, name, value) for name, value in frames.items()}
    return {(name, x.shape[-1] == 4): x for name, x in targets.items()}
