"""Continuation of a closed configuration to prescribed joints and frames, on its branch.

The loop constraints are F(u, x) = 0, with the prescribed coordinates x and all other coordinates u. If x determines the motion in the initial
configuration, dF/du has full rank there. While dF/du keeps full rank along the straight path from the initial x to the prescribed x, the branch is
one curve u(s). The core computes the end of this curve (``Branch::move`` in ``cpp/loops/branch.hpp``). It uses a single Newton solve if this is
certain to stay on the branch, otherwise many steps as :meth:`~sarrus.Mechanism.follow`. Each state of a batch has its own path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..._arrays import Array, NDArray
from ..._core import Status, determining_groups, tolerances
from ..._core import branch_outcome as outcomes
from ...description.joints import TURN
from ...dynamics.loop_operations import LoopFunctions
from .closing import EACH, STEPS, Closing, Frames, closing, from_each

# largest deviation of dependent joints from their prescribed coordinates [rad, mean body sizes]
FITS = 1e-6
PASSED = 1.0 - 1e-12  # fraction of the path at which its end counts as reached


@dataclass(eq=False)
class Continuation:
    """Results of a continuation from n initial configurations.

    Attributes
    ----------
    q : (n, nq) configurations [rad, m]
    on_branch : (n,) True if the configuration is on the branch of its initial configuration
    free : (n,) True if no branch is defined, because the prescribed coordinates do not determine the motion or the initial configuration is
        singular
    closure : loop closure with the prescribed joints and frames
    joints : the prescribed joints that determine the motion
    state : (n,) a Status: OTHER_BRANCH also if the branch is undecided; NO_ANSWER without a configuration
    outside_limits : (n,) True if joints leave their limits on the branch
    """

    q: Array
    on_branch: NDArray[np.bool_]
    free: NDArray[np.bool_]
    closure: Closing
    joints: tuple[str, ...]
    state: NDArray[np.int8]
    outside_limits: NDArray[np.bool_]


def continue_or_search(
    robot: LoopFunctions, places: Mapping[tuple[str, bool], Array], goals: Mapping[str, Array], near: Array, start: Array, open_: Array,
    times: Array | None, branch: str, nearest: Callable[[Any, Array], Any], *, tolerance: float, threads: int,
) -> Continuation | None:  # fmt: skip
    """Return the continuation of configurations `start` (n, nq) on their branches; None if no state has a branch.

    States without a branch are solved by the search `nearest`. `places` are the targets (n, 3) or (n, 4, 4) of frames, and `goals` the prescribed
    coordinates (n, nq of the joint) of joints. `start` was computed from the guesses `near` (n, nq); `open_` (n,) is nonzero for rows of `start` with
    open loops. If a row of `start` is far from its guess, it does not define a branch.
    """
    began = np.flatnonzero(open_ == 0)
    if not began.size:
        return None
    selected = robot if len(began) == len(start) else robot._of_rows(began)
    when = None if times is None else times[began]
    numbers = [x[began, :3].reshape(-1, 12) if x.ndim == 3 else x[began] for x in places.values()]
    result = continued(
        selected, tuple(places), numbers, {name: x[began] for name, x in goals.items()}, near[began], start[began], when, tolerance, threads
    )  # fmt: skip
    # with more prescribed coordinates than degrees of freedom, the straight path may violate the loops: only as many coordinates are followed
    if places and not (result.on_branch | result.free).all():
        prescribed = sum(x.shape[-1] for x in (*goals.values(), *numbers)) - 6 * sum(turned for _, turned in places)
        result.free |= ~result.on_branch & (
            prescribed > free_motions(robot, start[began[0]], None if when is None else when[0])[1]
        )
    moved = selected.difference(near[began], start[began]) / result.closure.loops.column_scale
    result.free |= (
        ~result.on_branch & (np.abs(moved).max(axis=1, initial=0.0) > tolerances.longest_step) & (branch != "only")
    )
    closure = closing(robot, tuple(places), result.joints)

    def within(q: Array) -> NDArray[np.bool_]:
        return closure.within(q, time=times) if closure.limited else np.ones(len(q), bool)

    q, on_branch, free = start.copy(), np.zeros(len(start), bool), np.ones(len(start), bool)
    q[began], on_branch[began], free[began] = result.q, result.on_branch, result.free
    outside_limits = on_branch & ~within(q) & (branch != "only")
    # an initial configuration outside of the limits does not define a branch: the limits select the solution
    free |= outside_limits & ~within(start)
    if free.all():
        return None
    failed = ~on_branch & ~free
    seek = free | outside_limits | failed & (branch != "only")
    state = np.where(on_branch, 0, 2).astype(np.int8)
    if (rows := np.flatnonzero(seek)).size:
        p, other = np.full(q.shape, np.nan), np.full(len(q), 2, np.int8)
        p[rows], other[rows] = nearest(rows, np.where(free[:, None], near, start))
        accepted = seek & (~on_branch | (other == 0) & within(p))
        q[accepted], state[accepted] = p[accepted], np.where((other == 0) & ~free, Status.OTHER_BRANCH, other)[accepted]
    off = state == Status.OTHER_BRANCH
    q[(state != 0) & ~off] = np.nan
    result.q, result.state, result.outside_limits = q, state, outside_limits & off
    return result


def continued(
    robot: LoopFunctions, frames: Frames, numbers: Sequence[Array], fixed: Mapping[str, Array], near: Array, start: Array, time: Array | None,
    tolerance: float, threads: int,
) -> Continuation:  # fmt: skip
    """Continue closed configurations `start` (n, nq) to joints at `fixed` (n, nq of the joint) and frames at `numbers` (n, 3 or 12).

    Angles are shifted by full revolutions to be nearest to `near`.
    """
    n = len(start)
    names = _leading(robot, start[0], fixed, None if time is None else time[0]) if fixed else ()
    closure = closing(robot, frames, names)
    base, current = closure.base, _coordinates_now(robot, names, start, time)
    q, turns, paths = start.copy(), np.zeros(start.shape), {}
    for name in names:
        joint, x, x0 = base.joint(name), fixed[name], current[name]
        returns = joint.type.whole_turns_return and joint.limits is None
        turning = np.array([unit == "rad" and returns for _, unit in joint.type.coordinates])
        turns_removed = TURN * turning * np.round((x - x0) / TURN)
        paths[name] = np.stack([x0, x - turns_removed], axis=1)
        if not joint.closes_loop:
            q[:, joint.q_slice], turns[:, joint.q_slice] = x - turns_removed, turns_removed
    start_numbers = [_numbers_now(robot, frame, turned, start) for frame, turned in frames]
    targets = np.stack([_row(start_numbers, [paths[name][:, 0] for name in closure.loop_joints], n),
                        _row(numbers, [paths[name][:, 1] for name in closure.loop_joints], n)], axis=1)  # fmt: skip
    row_numbers = base._pfaffian_numbers(base.neutral(), None).shape[-1] if base._asks_for_rows else 0
    times = np.zeros(n) if time is None else np.asarray(time)

    def inputs(selection: Any, k: int) -> Array:
        rest = np.zeros((len(times[selection]), row_numbers))
        return np.concatenate([times[selection, None], q[selection], rest, targets[selection, k]], axis=1)

    def solve(selection: Any, path: Array) -> Array:
        selected = closure if isinstance(selection, slice) else closure.select(selection)
        arguments = start[selection], closure.fixed_mask, selected.loops.scale(), steps, path
        answer: Array = selected.robot._move_along_branch(*arguments, threads=threads, return_status=True)[0]
        return answer

    steps = np.array([*STEPS, tolerance])
    every = slice(None)
    answer = solve(every, inputs(every, 1))
    doubtful = np.flatnonzero(answer[:, -outcomes.numbers] == outcomes.doubtful)
    if doubtful.size:
        answer[doubtful] = solve(doubtful, np.concatenate([inputs(doubtful, 0), inputs(doubtful, 1)], axis=1))
    configurations, (outcome, _, passed, crossings) = answer[:, : -outcomes.numbers], answer[:, -outcomes.numbers :].T
    crossed = (outcome == outcomes.followed) & (crossings > 0)
    reached = passed >= PASSED
    on_branch = (outcome >= outcomes.jumped) & reached & ~crossed
    configurations = np.where(on_branch[:, None], closure.unwound(configurations, near) + turns, configurations)
    free = (outcome == outcomes.free) | (outcome == outcomes.off_loops)
    state = np.where(on_branch, 0, 2).astype(np.int8)
    result = Continuation(
        configurations, on_branch, free, closure, names, state, np.zeros(n, bool)
    )  # fmt: skip
    if len(names) < len(fixed) and on_branch.any():
        rows = np.flatnonzero(on_branch)
        on_branch[rows] = _fits(robot, result, frames, numbers, fixed, rows, time, tolerance, threads)
    return result


def free_motions(robot: LoopFunctions, q: Array, time: Any) -> tuple[Array, float]:
    """Return the scaled projector (nv, nv) onto the motions that the loops allow at q (nq,), and the number of these motions."""
    robot = robot._base  # variants have the same structure
    if not robot.nc:
        return np.eye(robot.nv), float(robot.nv)
    loops = closing(robot, (), ()).at(time, None)
    numbers = robot._loop_motions(q, loops.scale(), **loops.data(q), return_status=True)[0]
    return numbers[:-1].reshape(robot.nv, robot.nv), float(numbers[-1])


def _leading(robot: LoopFunctions, start: Array, fixed: Mapping[str, Array], time: Any) -> tuple[str, ...]:
    """Return the names of independent joints among `fixed`, in the order of names; the motion of all other fixed joints depends on them."""
    robot = robot._base
    prescribed = sum(robot.joint(name).type.nv for name in fixed)
    if prescribed <= robot.nv - robot.nc:
        return tuple(fixed)
    projector, count = free_motions(robot, start, time)
    if not prescribed > count:  # also for a count of NaN
        return tuple(fixed)
    places = {name: robot.joint(name).v_slice for name in sorted(fixed) if not robot.joint(name).closes_loop}
    independent = dict(
        zip(places, determining_groups(projector, [(x.start, x.stop) for x in places.values()]), strict=True)
    )
    return tuple(name for name in fixed if independent.get(name, True))


def _coordinates_now(robot: LoopFunctions, names: Sequence[str], q: Array, time: Any) -> dict[str, Array]:
    """Return the coordinates (n, nq of the joint) of these joints at q (n, nq)."""
    if not any(robot.joint(name).closes_loop for name in names):
        return {name: q[:, robot.joint(name).q_slice] for name in names}
    states = cast(Any, robot).joint_states(q, time=time, return_status=True)[0]
    return {name: states.q[name] for name in names}


def _numbers_now(robot: LoopFunctions, frame: str, turned: bool, q: Array) -> Array:
    """Return the pose (n, 12) or point (n, 3) of a frame at q (n, nq), in the core's order of targets."""
    pose = cast(Any, robot).pose(q, frame, return_status=True)[0]
    return np.asarray(pose[:, :3].reshape(len(q), 12) if turned else pose[:, :3, 3])


def _row(frames: Sequence[Array], coordinates: Sequence[Array], n: int) -> Array:
    return np.concatenate([np.zeros((n, 0)), *frames, *coordinates], axis=1)


def _fits(
    robot: LoopFunctions, result: Continuation, frames: Frames, numbers: Sequence[Array], fixed: Mapping[str, Array], rows: NDArray[np.intp], time:
    Array | None, tolerance: float, threads: int,
) -> NDArray[np.bool_]:  # fmt: skip
    """Return True for the rows whose dependent joints have their prescribed coordinates, and set these coordinates exactly in `result.q`."""
    closure = closing(robot, frames, tuple(fixed)).select(rows)
    q, targets_q = result.q[rows], result.q[rows].copy()
    for name, x in fixed.items():
        if not robot.joint(name).closes_loop:
            targets_q[:, robot.joint(name).q_slice] = x[rows]
    targets = closure.targets([x[rows] for x in numbers], {name: x[rows] for name, x in fixed.items()}, (len(rows),))
    when = None if time is None else time[rows]
    p, state = from_each(closure, targets_q, targets, when, tolerance, threads, first=EACH)
    deviation = np.abs(p - q)
    for name in fixed:
        joint = robot.joint(name)
        if not joint.closes_loop and joint.type.whole_turns_return:
            at = joint.q_slice
            angles = np.array([unit == "rad" for _, unit in joint.type.coordinates])
            deviation[:, at] = np.abs(p[:, at] - q[:, at] - TURN * angles * np.round((p[:, at] - q[:, at]) / TURN))
    fit = np.asarray((state == 0) & (deviation < FITS * closure.coordinate_scale).all(axis=1))
    result.q[rows[fit]] = p[fit]
    return fit
