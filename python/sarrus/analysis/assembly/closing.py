"""Which joints are held and which frames led while loops are closed: prepared once, then each call is one of the core's.

The core takes the steps (``cpp/loops/closing.hpp``), for one configuration or many, in the units of :mod:`sarrus.analysis.scaling`. A frame that is led
somewhere is a closing joint from the ground to a place that comes with the call. A held joint of the tree keeps its velocities; of one that
closes a loop these are rows, whose residual is what its coordinates are off by.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from ..._arrays import Array, ArrayLike, NDArray, check_mapping
from ..._core import branch_outcome, tolerances
from ...description.constraints import ConstraintSpec, TargetSpec
from ...description.joints import LIMIT_MARGIN, TURN, JointType, middle, turns_into
from ...description.specs import JointSpec
from ...dynamics.loop_operations import LoopFunctions
from ...errors import ModelError, SarrusError, check_name
from ...spatial import Transform
from ..joint_targets import quoted
from ..scaling import ScaledLoops, coordinate_scale, velocity_scale

if TYPE_CHECKING:
    from ...dynamics.variants import VariantFunctions

# Damping, most steps, and how far off a start may be, in rad and sizes of the bodies: of a search its first steps, those of later ones, and others
NEAR: Array = np.array([tolerances.near_damping, tolerances.near_steps, tolerances.near_gap])
EACH: Array = np.array([1e-2, 30.0, 1e300])  # from anywhere, to whatever is there
FAR: Array = np.array([1.0, 100.0, 1e300])
STEPS = (0.2, 1e-7)  # of a way the longest and the shortest, as `follow` has them
LEADING: Array = np.array([*STEPS, tolerances.closed])
FLOAT = np.dtype(np.float64)
PLAIN = frozenset((float, np.float64, int))  # types of numbers
EVERY = slice(None)

Kept = TypeVar("Kept")
Frames = tuple[tuple[str, bool], ...]  # names, and whether each is to be turned too
# joints of the tree, and which of their coordinates, of as many as they have velocities
Coordinates = tuple[tuple[str, int], ...]


class Closing:
    """Closing the loops of a mechanism with joints held and frames led: what does not change from call to call.

    Attributes
    ----------
    robot : the mechanism, with a constraint more for each frame that is led, and each held joint that closes a loop
    led : held joints that close loops; `targets` are the numbers of the frames, then their coordinates, then single ones of the tree
    scale : (nv + nc,) how velocities and rows compare; 0 where a joint is held, and in rows that hold no positions
    moving : (nv,) what may move
    low, high : (nq,) limits of what may move; limited : whether there are any
    simple : whether a number holds each joint, and `targets` are all that the core has to be told
    """

    def __init__(self, robot: LoopFunctions, frames: Frames, held: tuple[str, ...], single: Coordinates = ()) -> None:
        self.base, self.frames = robot, frames
        self.led = tuple(name for name in held if robot.joint(name).closes_loop and robot.joint(name).type.nv)
        if self.led and len(fitting(robot, held)) < len(held):
            raise ModelError(
                f"joints {quoted(held)} cannot all be given: they close a loop among themselves, so that their coordinates depend on each other"
            )
        to = [TargetSpec(target_name(frame), frame, turned, bodies=("ground", frame)) for frame, turned in frames]
        to += [TargetSpec(target_name(f"joint {name}"), joint=name) for name in self.led]
        to += [TargetSpec(target_name(f"joint {name} {k}"), joint=name, index=k, bodies=()) for name, k in single]
        self.robot = on_its_tree(robot, *to) if to else robot
        neutral = [neutral_coordinates(robot.joint(name).type) for name in self.led]
        poses = [np.eye(3, 4).ravel() if turned else np.zeros(3) for _, turned in frames]
        targets = np.concatenate([np.zeros(0), *poses, *neutral, np.zeros(len(single))])
        self.numbers, self.of_joints = len(targets), len(single) + sum(map(len, neutral))
        # rows are as large as they usually are away from a special place, such as one where a rod has no length
        self.by_name = _by_name(robot)
        scale = velocity_scale(robot)
        away = robot.integrate(robot.neutral(), scale * _anywhere(robot.nv)[self.by_name])
        self.loops = ScaledLoops(self.robot, away, None, targets if to else None)
        joints = [robot.joint(name) for name in robot.joints]
        self.rows = [self.robot.constraint(spec.name).rows for spec in to]  # of frames, then of joints
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
        self.turns_end = bool((np.isfinite(self.low) | np.isfinite(self.high))[self.whole_turns].any())
        self.loop_limits = _loop_limits(robot, self.led, self.loops.length)
        self.limited = bool(np.isfinite(self.low).any() or np.isfinite(self.high).any() or self.loop_limits is not None)
        self.scale = self.loops.scale(self.moving)
        self.simple = all(robot.joint(name).type.nq == 1 for name in held) and not robot._asks_for_rows
        self.weight, self.held, self.units = self.scale[: robot.nv].copy(), 1.0 - self.moving, self.loops.scale()
        # in q and v, of held joints with one coordinate; -1 where it is among the targets
        self.places, self.v_places = (
            [-1 if name in self.led else getattr(robot.joint(name), part).start for name in held]
            for part in ("q_slice", "v_slice")
        )
        # an input of `lead`: time, a configuration of which held joints count, and targets; and where held joints stand in it, in their order
        self.way, self.end = np.zeros(1 + robot.nq + self.numbers), 1 + robot.nq
        first = self.end + self.numbers - self.of_joints
        self.in_way = [
            place + 1 if place >= 0 else first + self.led.index(name)
            for name, place in zip(held, self.places, strict=True)
        ]
        self.still, self.no_change = np.zeros(robot.nv), np.zeros(self.numbers) if to else None

    def of_variants(self, variants: VariantFunctions) -> Closing:
        """The same, of variants of the mechanism."""
        how, robot = copy.copy(self), variants if self.robot is self.base else variants._like(self.robot)
        how.robot, how.loops = robot, self.loops.of_variants(robot)
        how.scale = how.loops.scale(self.moving)
        return how

    def of_rows(self, which: Any) -> Closing:
        """Of these rows of a batch, which may be variants."""
        how, robot = copy.copy(self), self.robot._of_rows(which)
        if robot is not self.robot:
            how.robot, how.loops, how.scale = robot, copy.copy(self.loops), self.scale[which]
            how.loops.robot = robot
            how.loops.column_scale, how.loops.row_scale = self.loops.column_scale[which], self.loops.row_scale[which]
        return how

    def of_frames(self, targets: Array | None) -> Array | None:
        """Those of the targets (..., numbers) that lead frames; None without any."""
        return targets[..., : self.numbers - self.of_joints] if targets is not None and self.frames else None

    def start(self, near: Array, way: Array) -> tuple[Array, Array | None]:
        """The configuration `near` with joints held as an input says, and its targets."""
        q = near.copy()
        places = [place for place in self.places if place >= 0]
        q[places] = way[1 : self.end][places]
        return q, way[self.end :] if self.numbers else None

    def targets(self, frames: Sequence[Array], coordinates: Mapping[str, Array], lead: tuple[int, ...]) -> Array | None:
        """Numbers of frames and coordinates of joints as the core has them, (*lead, numbers); None where nothing is led."""
        parts = [*frames, *(coordinates[name] for name in self.led)]
        rows = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in parts]
        return np.concatenate(rows, axis=-1) if rows else None

    def values(self, q: ArrayLike, v: ArrayLike | None, targets: Array) -> Array:
        """What the core is told of rows that come with the call: those that depend on the state, then targets (..., numbers)."""
        if not self.base._asks_for_rows:
            return targets
        rows = self.base._pfaffian_numbers(q, v)
        return np.concatenate([rows, np.broadcast_to(targets, (*rows.shape[:-1], self.numbers))], axis=-1)

    def at(self, time: Any, targets: Array | None) -> ScaledLoops:
        """The loops at a time, with frames led there."""
        loops = copy.copy(self.loops)
        loops.time, loops.targets = time, targets
        return loops

    def nearby(self, q: Array, targets: Array | None, time: Any, steps: Array = NEAR) -> Array | None:
        """The configuration (nq,) to which such steps lead from q; None where there is more to it, or to say about it.

        The one call of a control loop: it checks no more than it must to be sure of the answer.
        """
        try:
            solution = self.robot._close(q, self.scale, steps, time=time, pfaffian_values=targets)
        except SarrusError:
            return None
        if not solution[-1] <= tolerances.closed:
            return None
        closed = solution[:-1].copy() if steps is NEAR else self.unwound(solution[:-1], q)
        return None if self.limited and not self.within(closed, 0.0, time) else closed

    def on_branch(self, near: Array, way: Array, time: Any) -> Array | None:
        """The same from `near` (nq,) to an input, on its branch if it has one."""
        if time is not None:
            way[0] = time
        try:
            answer = self.robot._move_along_branch(near, self.held, self.units, LEADING, way)
        except SarrusError:
            return None
        outcome, _, passed, crossings = answer[-branch_outcome.numbers :].tolist()
        if outcome < branch_outcome.free or passed < 1.0 or crossings:
            return None
        closed = (
            answer[: -branch_outcome.numbers].copy()
            if outcome < branch_outcome.followed
            else self.unwound(answer[: -branch_outcome.numbers], near)
        )
        return None if self.limited and not self.within(closed, 0.0, time) else closed

    def unwound(self, q: Array, start: Array) -> Array:
        """The same configurations (..., nq) without needless whole turns: as near to the start as limits allow."""
        q = q - self.whole_turns * TURN * np.round((q - start) / TURN)
        return q + self.whole_turns * turns_into(q, self.low, self.high, self.margin) if self.turns_end else q

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


def neutral_coordinates(joint: JointType) -> Array:
    """(nq,) of a joint at rest."""
    return np.array([float(name == "qw") for name, _ in joint.coordinates])


def _loop_limits(robot: LoopFunctions, led: Sequence[str], length: float) -> tuple[Array, Array, Array, Array] | None:
    """Of the coordinates of all joints that close loops: lower and upper limits, from where turns are counted, margins; None without limits."""
    joints = robot._closing_joints
    free = [(np.full(joint.type.nq, -np.inf), np.full(joint.type.nq, np.inf)) for joint in joints]
    ranges = [
        none if joint.limits is None or joint.name in led else joint.limits
        for joint, none in zip(joints, free, strict=True)
    ]
    if not any(np.isfinite(limits).any() for limits in ranges):
        return None
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


def closing(robot: LoopFunctions, frames: Frames, held: Iterable[str], single: Coordinates = ()) -> Closing:
    """The one for these frames, joints and single coordinates, which have to be known to the mechanism."""
    names = tuple(held)
    if robot._base is not robot:
        variants = cast("VariantFunctions", robot)
        return prepared(robot, (frames, names), lambda: closing(robot._base, frames, names).of_variants(variants))
    return prepared(robot, (frames, names, *single), lambda: Closing(robot, frames, names, single))


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


def check_frames(robot: LoopFunctions, frames: Any, of_joints: str) -> None:
    """What frames are to do is a mapping, of frames."""
    check_mapping("frames", frames, "frames to where they are to be", 0)
    for name in frames:
        if name in robot._joints and name not in robot.frames:
            raise ModelError(f"'{name}' is a joint, no frame: it belongs to {of_joints}=")
        check_name("frame", name, robot.frames)


def check_movable(robot: LoopFunctions, frame: str) -> None:
    """Whether it can be led; looking for that takes as long as closing loops, so that it is asked where something new is made."""
    if frame not in movable_frames(robot):
        raise ModelError(f"frame '{frame}' is fixed to the ground: it cannot be led anywhere")


def target_name(frame: str) -> str:
    """Name of the constraint that leads a frame."""
    return f"target of {frame}"


def fitting(robot: LoopFunctions, joints: Iterable[str]) -> list[str]:
    """Of these joints, those that close no loop with the ones before them."""
    group: dict[str, str] = {}

    def root(body: str) -> str:
        while body in group:
            body = group[body]
        return body

    def ties(name: str) -> bool:
        if robot.joint(name).type.holds_nothing:  # as many lengths as there are freedoms may be given
            return True
        parent, child = root(robot.joint(name).parent), root(robot.joint(name).child)
        if parent != child:
            group[parent] = child
        return parent != child

    return [name for name in dict.fromkeys(joints) if ties(name)]


def plain_question(
    robot: LoopFunctions, targets: Mapping[str, Any], near: Any, fixed: Any, time: Any
) -> tuple[Closing, Array] | None:
    """The usual call of a control loop: how to close, and the input to which `near` is to go. None where more has to be checked."""
    if type(near) is not np.ndarray or near.dtype is not FLOAT or near.shape != (robot.nq,):
        return None
    if not (time is None or type(time) is float) or not (fixed is None or type(fixed) is dict):
        return None
    frames: Frames = ()
    numbers = None
    if targets:
        parts = []
        for name, value in targets.items():
            x = value.matrix if type(value) is Transform else np.array(value) if type(value) in (list, tuple) else value
            if type(x) is not np.ndarray or x.dtype is not FLOAT or (turned := x.shape == (4, 4)) is (x.shape == (3,)):
                return None
            if turned and x[3].tolist() != [0.0, 0.0, 0.0, 1.0]:
                return None
            frames += ((name, turned),)
            parts.append(x[:3].ravel() if turned else x)
        numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
    values = fixed or {}
    held = tuple(values)
    how = robot._prepared.get((frames, held))
    if how is None:
        if not set(held) <= robot._joints.keys() or not {name for name, _ in frames} <= movable_frames(robot):
            return None
        how = closing(robot, frames, held)
    if not how.simple:
        return None
    way = how.way.copy()
    if numbers is not None:
        way[how.end : how.end + len(numbers)] = numbers
    for place, value in zip(how.in_way, values.values()):  # noqa: B905 (as many: `how` is found by these)
        if type(value) not in PLAIN:
            return None
        way[place] = value
    return how, way


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
        some = how if which is EVERY else how.of_rows(which)
        return some.robot._close(
            start[which], some.scale, way, **loops.data(start[which]), threads=threads, return_status=True
        )

    solution, status = steps(EVERY, first)
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
