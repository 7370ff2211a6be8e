"""Which joints are held and which frames led while loops are closed: prepared once, then each call is one of the core's.

The core takes the steps (``cpp/loops/closing.hpp``), for one configuration or many, in the units of :mod:`sarrus.analysis.scaling`. A frame that is led
somewhere is a closing joint from the ground to a place that comes with the call.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..._arrays import Array
from ..._core import tolerances
from ...description.constraints import ConstraintSpec, TargetSpec
from ...description.joints import LIMIT_MARGIN, TURN, middle, turns_into
from ...description.specs import JointSpec
from ...dynamics.loop_operations import LoopFunctions
from ...errors import SarrusError
from ...spatial import Transform
from ..scaling import ScaledLoops, characteristic_length, coordinate_scale, sliding_velocities

# Damping, most steps, and how far off a start may be, in rad and sizes of the bodies. Near: in at most 6 steps no joint goes half a turn, so
# that nothing is wound up, and no other start would be nearer.
NEAR: Array = np.array([1e-2, 6.0, 0.1])
EACH: Array = np.array([1e-2, 30.0, 1e300])  # from anywhere, to whatever is there
FAR: Array = np.array([1.0, 100.0, 1e300])
FLOAT = np.dtype(np.float64)

Kept = TypeVar("Kept")
Frames = tuple[tuple[str, bool], ...]  # names, and whether each is to be turned too


class Closing:
    """Closing the loops of a mechanism with joints held and frames led: what does not change from call to call.

    Attributes
    ----------
    robot : the mechanism, with a constraint more for each frame that is led
    scale : (nv + nc,) how velocities and rows compare; 0 where a joint is held, and in rows that hold no positions
    moving : (nv,) what may move
    low, high : (nq,) limits of what may move; limited : whether there are any
    places : where the coordinates of held joints stand in q; None where one is more than a number
    """

    def __init__(self, robot: LoopFunctions, frames: Frames, held: tuple[str, ...]) -> None:
        to = (TargetSpec(target_name(frame), frame, turned) for frame, turned in frames)
        self.robot = on_its_tree(robot, *to) if frames else robot
        targets = np.concatenate(
            [np.zeros(0), *(np.eye(3, 4).ravel() if turned else np.zeros(3) for _, turned in frames)]
        )
        # rows are as large as they usually are away from a special place, such as one where a rod has no length
        self.by_name = _by_name(robot)
        scale = np.where(sliding_velocities(robot), characteristic_length(robot.description), 1.0)
        away = robot.integrate(robot.neutral(), scale * _anywhere(robot.nv)[self.by_name])
        self.loops = ScaledLoops(self.robot, away, None, targets if frames else None)
        joints = [robot.joint(name) for name in robot.joints]
        driven = {name for spec in robot.description.constraints for name in spec.position_joints}
        self.moving = np.concatenate([np.zeros(0, bool), *(np.full(j.nv, j.name not in held) for j in joints)])
        self.low, self.high = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
        self.whole_turns = np.zeros(robot.nq, bool)  # which make no difference to anything else
        self.margin = np.full(robot.nq, LIMIT_MARGIN)
        for joint in joints:
            self.margin[joint.q_slice] *= coordinate_scale(joint.type, self.loops.length)
            if joint.name in held:
                continue
            if joint.limits is not None:
                self.low[joint.q_slice], self.high[joint.q_slice] = joint.limits
            if joint.type.whole_turns_return and joint.name not in driven:
                self.whole_turns[joint.q_slice] = [unit == "rad" for _, unit in joint.type.coordinates]
        self.loop_limits = _loop_limits(robot, self.loops.length)
        self.limited = bool(np.isfinite(self.low).any() or np.isfinite(self.high).any() or self.loop_limits is not None)
        self.scale = self.loops.scale(self.moving)
        places = [robot.joint(name).q_slice for name in held]
        simple = all(place.stop == place.start + 1 for place in places) and not robot._asks_for_rows
        self.places = [place.start for place in places] if simple else None

    def at(self, time: Any, targets: Array | None) -> ScaledLoops:
        """The loops at a time, with frames led there."""
        loops = copy.copy(self.loops)
        loops.time, loops.targets = time, targets
        return loops

    def unwound(self, q: Array, start: Array) -> Array:
        """The same configurations (..., nq) without needless whole turns: as near to the start as limits allow."""
        q = q - self.whole_turns * TURN * np.round((q - start) / TURN)
        return q + self.whole_turns * turns_into(q, self.low, self.high, self.margin)

    def within(self, q: Array, margin: float = 1.0, time: Any = None) -> NDArray[np.bool_]:
        """(...) whether all joints that may move are within their limits, and those that close loops; to so many margins."""
        aside = margin * self.margin
        within = np.asarray(((q >= self.low - aside) & (q <= self.high + aside)).all(axis=-1))
        if self.loop_limits is not None:
            low, high, near, aside = self.loop_limits
            x = self.robot._loop_joint_coordinates(q, near, time=time, return_status=True)[0]
            within &= ((x >= low - margin * aside) & (x <= high + margin * aside)).all(axis=-1)
        return within


@functools.lru_cache(maxsize=64)
def _anywhere(nv: int) -> Array:
    """A step (nv,) to no special place, in scaled velocities; drawing it takes as long as half of what closing needs besides."""
    return 0.1 * np.random.default_rng(0).normal(size=nv)


def _by_name(robot: LoopFunctions) -> NDArray[np.intp]:
    """(nv,) places of the velocities if the joints stood in the order of their names, in which random numbers are handed out."""
    order = [np.arange(robot.nv)[robot.joint(name).v_slice] for name in sorted(robot.joints)]
    return np.argsort(np.concatenate([np.zeros(0, np.intp), *order]))


def _loop_limits(robot: LoopFunctions, length: float) -> tuple[Array, Array, Array, Array] | None:
    """Of the coordinates of all joints that close loops: lower and upper limits, from where turns are counted, margins; None without limits."""
    joints = robot._closing_joints
    if all(joint.limits is None or not np.isfinite(joint.limits).any() for joint in joints):
        return None
    free = [(np.full(joint.type.nq, -np.inf), np.full(joint.type.nq, np.inf)) for joint in joints]
    ranges = [joint.limits if joint.limits is not None else none for joint, none in zip(joints, free, strict=True)]
    low, high = (np.concatenate([limits[side] for limits in ranges]) for side in (0, 1))
    near = np.array([middle(*both) for both in zip(low.tolist(), high.tolist(), strict=True)])
    return low, high, near, LIMIT_MARGIN * np.concatenate([coordinate_scale(joint.type, length) for joint in joints])


def prepared(robot: LoopFunctions, key: Hashable, make: Callable[[], Kept]) -> Kept:
    """What is made once for a mechanism and such a question, and kept for the next call."""
    kept = robot._prepared.get(key)
    if kept is None:
        if len(robot._prepared) > 100:
            robot._prepared.clear()
        kept = robot._prepared[key] = make()
    return cast("Kept", kept)


def closing(robot: LoopFunctions, frames: Frames, held: Iterable[str]) -> Closing:
    """The one for these frames and joints, which have to be known to the mechanism."""
    names = tuple(held)
    return prepared(robot, (frames, names), lambda: Closing(robot, frames, names))


def on_its_tree(robot: LoopFunctions, *more: ConstraintSpec, actuated: Sequence[str] | None = None) -> LoopFunctions:
    """The mechanism on the same tree, with more constraints, or with motors in these joints."""

    def fixed(j: JointSpec) -> JointSpec:
        closes, driven = robot.joint(j.name).closes_loop, j.actuated if actuated is None else j.name in actuated
        return dataclasses.replace(j, tree=not closes, loop=closes, actuated=driven)

    d = robot.description
    return type(robot)(dataclasses.replace(d, joints=tuple(map(fixed, d.joints)), constraints=(*d.constraints, *more)))


def movable_frames(robot: LoopFunctions) -> set[str]:
    """Those that do not sit on the ground."""
    return set(robot.frames) - {"ground", *(f.name for f in robot.description.frames if f.body == "ground")}


def target_name(frame: str) -> str:
    """Name of the constraint that leads a frame."""
    return f"target of {frame}"


def from_nearby(robot: LoopFunctions, targets: Mapping[str, Any], near: Any, fixed: Any, time: Any) -> Array | None:
    """The configuration (nq,) to which a few steps lead from one that is nearly closed; None where there is more to it, or to say about it.

    The one call of a control loop: it checks no more than it must to be sure of the answer.
    """
    if type(near) is not np.ndarray or near.dtype is not FLOAT or near.shape != (robot.nq,):
        return None
    if not (time is None or type(time) is float) or not (fixed is None or type(fixed) is dict):
        return None
    frames: Frames = ()
    numbers = None
    if targets:
        parts = []
        for name, value in targets.items():
            x = value.matrix if type(value) is Transform else value
            if type(x) is not np.ndarray or x.dtype is not FLOAT or (turned := x.shape == (4, 4)) is (x.shape == (3,)):
                return None
            if turned and x[3].tolist() != [0.0, 0.0, 0.0, 1.0]:
                return None
            frames += ((name, turned),)
            parts.append(x[:3].ravel() if turned else x)
        numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
    held = tuple(fixed) if fixed else ()
    how = robot._prepared.get((frames, held))
    if how is None:
        if not set(held) <= set(robot.joints) or not {name for name, _ in frames} <= movable_frames(robot):
            return None
        how = closing(robot, frames, held)
    if how.places is None:
        return None
    q = near
    if held:
        q = near.copy()
        for place, value in zip(how.places, (fixed or {}).values(), strict=True):
            if type(value) not in (float, np.float64, int):
                return None
            q[place] = value
    try:
        solution = how.robot._close(q, how.scale, NEAR, time=time, pfaffian_values=numbers)
    except SarrusError:
        return None
    if not solution[-1] <= tolerances.closed:
        return None
    q = solution[:-1].copy()
    return None if how.limited and not how.within(q, 0.0, time) else q


def from_each(
    how: Closing, start: Array, targets: Array | None, time: Any, tolerance: float, threads: int, nearby: bool = False,
    first: Array = NEAR,
) -> tuple[Array, NDArray[np.int8]]:  # fmt: skip
    """Configurations (n, nq) on from starts (n, nq), and a status (n,): 1 for starts that are unsound, 2 where loops stay open.

    The steps are those of the search for one state: the first ones where they close the loops, and else those from afar. Only the nearby
    ones, and only to where limits are kept, if `nearby` says so.
    """

    def steps(which: Any, way: Array) -> Any:
        loops = how.at(*(x if x is None or np.ndim(x) == base else x[which] for x, base in ((time, 0), (targets, 1))))
        return how.robot._close(
            start[which], how.scale, way, **loops.data(start[which]), threads=threads, return_status=True
        )

    solution, status = steps(slice(None), first)
    again = np.flatnonzero((status == 0) & ~(solution[:, -1] <= min(tolerance, tolerances.closed)))
    if nearby:
        status[again] = 2
    elif again.size:
        solution[again] = steps(again, FAR)[0]
    status[(status == 0) & ~(solution[:, -1] <= tolerance)] = 2
    q = how.unwound(solution[:, :-1], start)
    if nearby:
        status[(status == 0) & ~how.within(q, time=time)] = 2
    q[status != 0] = np.nan
    return q, status
