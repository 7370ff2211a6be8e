"""Loop closure with fixed joints and prescribed frames: prepared once, then one call of the core per solution.

The iterations run in the core (``cpp/loops/closing.hpp``), for one configuration or many, in the units of :mod:`sarrus.analysis.linear_algebra`:

- a prescribed frame is an additional loop joint from the ground to the frame, whose target pose or position is an argument of each call
- a fixed tree joint has zero velocities
- a fixed loop joint has additional constraint rows, whose residual is the deviation of its coordinates from their prescribed values

Targets of joints are mappings of names to coordinates or velocities. The value of a joint with one coordinate is a number. The value of a joint with more
coordinates is an array [rad, m, quaternions (x, y, z, w)].
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, check_mapping, checked_number, common_axes, real_array
from .._core import normal_numbers, tolerances
from ..description.constraints import ConstraintSpec, TargetSpec
from ..description.joints import JointType
from ..description.specs import JointSpec
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ShapeError, StateError, check_name, warn_of_model
from ..spatial import Transform
from .linear_algebra import ScaledLoops, velocity_scale

if TYPE_CHECKING:
    from ..dynamics.variants import VariantFunctions

JointCoordinates = Mapping[str, ArrayLike]
MOST_AXES = 32  # limit of the oldest supported NumPy


def _joint_values(robot: LoopFunctions, name: str, value: ArrayLike, quantity: str = "coordinates") -> Array:
    """Return the checked coordinates (..., nq of the joint), velocities or accelerations (..., nv of the joint) of a joint."""
    joint = robot.joint(name).type
    count, x = joint.nq if quantity == "coordinates" else joint.nv, real_array(f"{quantity} of joint '{name}'", value)
    if count == 1 and (x.ndim == 0 or x.shape[-1] != 1):
        x = x[..., None]
    if x.ndim > MOST_AXES:
        raise ShapeError(f"{quantity} of joint '{name}' have {x.ndim} axes; expected at most {MOST_AXES}")
    if x.ndim == 0 or x.shape[-1] != count:
        raise ShapeError(f"joint '{name}' requires (..., {count}) {quantity}; got shape {np.shape(value)}")
    return x


def _coordinates_of(robot: LoopFunctions, name: str, value: ArrayLike) -> Array:
    """Return the checked coordinates (..., nq of the joint) of a joint, with normalised quaternions."""
    x = _joint_values(robot, name, value)
    if not np.isfinite(x).all():
        raise StateError(f"coordinates of joint '{name}' must be finite; got {np.array2string(x, threshold=12)}")
    if not robot.joint(name).type.quaternion:
        return x
    size = np.linalg.norm(x[..., :4], axis=-1, keepdims=True)
    if not (size > 0.0).all():
        raise StateError(
            f"quaternion of joint '{name}' is not a rotation; expected a nonzero quaternion, got {np.array2string(x, threshold=12)}"
        )
    return np.concatenate([x[..., :4] / size, x[..., 4:]], axis=-1)


def coordinates(robot: LoopFunctions, by_joint: JointCoordinates | None, *, many: bool = False) -> dict[str, Array]:
    """Check the coordinates of each joint and return them: (nq of the joint,), or (..., nq of the joint) if `many`."""
    check_mapping("coordinates", by_joint, "joints to coordinates", 0, optional=True)
    checked = {name: _coordinates_of(robot, name, value) for name, value in (by_joint or {}).items()}
    for name, x in checked.items():
        if x.ndim > 1 and not many:
            raise ShapeError(
                f"joint '{name}' requires coordinates ({x.shape[-1]},) of one state; got coordinates of {x.shape[:-1]} states"
            )
        lower, upper = robot.joint(name).limits or (np.inf, -np.inf)
        if (
            x.ndim == 1
            and _core.in_degrees(robot.joint(name).type, x.tolist())
            and not ((lower <= x) & (x <= upper)).all()
        ):
            numbers = ", ".join(f"{angle:g}" for angle in x)
            warn_of_model(
                f"joint '{name}' at {numbers} looks like degrees, but is read as radians: numpy.radians() converts degrees"
            )
    return checked


def velocities_of(robot: LoopFunctions, by_joint: Mapping[str, ArrayLike], quantity: str) -> Array:
    """Return v (..., nv) with the given velocities or accelerations of tree joints, and zero for the other joints."""
    checked = rates_of(robot, by_joint, quantity)
    v = np.zeros(
        (*common_axes({f"{quantity} of joint '{name}'": x.shape[:-1] for name, x in checked.items()}), robot.nv)
    )
    for name, x in checked.items():
        v[..., robot._tree_joint(name, f"{quantity} in v").v_slice] = x
    return v


def rates_of(robot: LoopFunctions, by_joint: Mapping[str, ArrayLike], quantity: str) -> dict[str, Array]:
    """Check the velocities or accelerations of each joint and return them, (..., nv of the joint)."""
    check_mapping(quantity, by_joint, "joints to numbers", 0)
    return {name: _joint_values(robot, name, value, quantity) for name, value in by_joint.items()}


def start_near(
    robot: LoopFunctions, near: ArrayLike | JointCoordinates | None, by_joint: Mapping[str, Array], time: Any, lead: tuple[int, ...] = ()
) -> Array:  # fmt: skip
    """Return the initial guesses (*lead, nq) of a search.

    An initial guess is `near`, or the home configuration, in which joints with prescribed motions and the joints of `by_joint` have their prescribed
    coordinates.
    """
    if near is None or isinstance(near, Mapping):
        q = robot._at(robot.description.home)
    else:
        q = real_array("near", near)
        if q.shape[-1:] != (robot.nq,):
            expected = f"expected configurations (..., {robot.nq}), or a mapping of joints to coordinates"
            raise ShapeError(f"near has shape {q.shape}; {expected}")
        q = robot.normalize(q)
    q = np.broadcast_to(q, (*lead, robot.nq)).copy()
    for spec in robot.description.constraints:
        # at this time, the prescribed motion may be far from the home configuration
        if coordinate := spec.prescribed(0.0 if time is None else time):
            joint, index, prescribed = coordinate
            q[..., robot.joint(joint).q_slice.start + index] = prescribed
    for name, value in by_joint.items():
        if not robot.joint(name).closes_loop:
            q[..., robot.joint(name).q_slice] = value
    return q


def paths(
    robot: LoopFunctions, inputs: JointCoordinates, time: ArrayLike | None, lengths: Mapping[str, int]
) -> tuple[dict[str, Array], Array]:
    """Return the coordinates (n, nq of the joint) of each joint, and the times (n,) [s]; `lengths` are the lengths n of other inputs."""
    check_mapping("joints", inputs, "joints to paths of coordinates", 0)
    by_joint, lengths = {}, dict(lengths)
    for name, value in inputs.items():
        path = _coordinates_of(robot, name, value)
        if path.ndim == 1 and path.size == 1 and np.ndim(value) == 1:  # a path of one input
            path = path[None]
        if path.ndim != 2:
            raise ShapeError(f"joint '{name}' requires (n, {path.shape[-1]}) coordinates; got shape {np.shape(value)}")
        by_joint[name], lengths[name] = path, len(path)
    if time is not None:
        lengths["time"] = np.size(real_array("time", time))
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ShapeError(f"inputs must have equally many values, at least one each; got {lengths or 'none'}")
    times = np.zeros(max(lengths.values())) if time is None else real_array("time", time)
    if times.ndim != 1 or not np.isfinite(times).all():
        raise StateError(f"time must be (n,) finite times [s]; got {time!r}")
    return by_joint, times


def check_timeless(robot: LoopFunctions, function: str) -> None:
    """Raise ModelError if a prescribed motion varies in time, for a function whose configurations have no times."""
    d = robot.description
    laws = [(c.name, getattr(c, "law", None)) for c in d.constraints] + [
        (j.name, law) for j in d.joints for law in j.laws
    ]
    for name, law in laws:
        if law is not None and (law.starts[1:] or law.harmonics or any(law.coefficients[0][1:])):
            raise ModelError(
                f"{function}: the prescribed motion '{name}' of '{robot.name}' varies in time, but configurations have no times here; expected "
                "constant prescribed motions"
            )


def quoted(names: Iterable[str]) -> str:
    """Return the quoted names, separated by commas, for a message."""
    return ", ".join(f"'{name}'" for name in names)


EPS = float(np.finfo(np.float64).eps)
TOLERANCE: float = tolerances.closed
DEGREES = 12.0  # larger angles may be in degrees

Kept = TypeVar("Kept")
# (name, True for a pose or False for a point); if only some components are prescribed, then also `components` and `in_world` of a TargetSpec
Frames = tuple[tuple[str, bool] | tuple[str, bool, int, bool], ...]
# (joint, index) of single fixed coordinates, of tree joints whose velocities are the rates of their coordinates
Coordinates = tuple[tuple[str, int], ...]


class Closing:
    """Loop closure of a mechanism with fixed joints and prescribed frames: the data that all calls share.

    Attributes
    ----------
    robot : the mechanism, with a target constraint for each prescribed frame and each fixed loop joint
    loop_joints : fixed loop joints. `targets` of a call stacks the poses or positions of the frames, the coordinates of these joints, and the
        single coordinates of tree joints
    scale : (nv + nc,) scales of velocities and rows; 0 for fixed velocities and for rows that are not holonomic
    moving : (nv,) True for velocities that are not fixed
    simple : True if each fixed joint has one coordinate, and `targets` is the only array that a call passes to the core
    """

    def __init__(self, robot: LoopFunctions, frames: Frames, fixed: tuple[str, ...], single: Coordinates = ()) -> None:
        self.base, self.frames = robot, frames
        self.loop_joints = tuple(name for name in fixed if robot.joint(name).closes_loop and robot.joint(name).type.nv)
        if self.loop_joints and len(fitting(robot, fixed)) < len(fixed):
            raise ModelError(
                f"joints {quoted(fixed)} cannot all be fixed: they form a loop, so their coordinates depend on each other; "
                "expected joints that do not form a loop"
            )
        to = [target(*frame) for frame in frames]
        to += [TargetSpec(target_name(f"joint {name}"), joint=name) for name in self.loop_joints]
        to += [TargetSpec(target_name(f"joint {name} {k}"), joint=name, index=k, bodies=()) for name, k in single]
        self.robot = on_its_tree(robot, *to) if to else robot
        neutral = [neutral_coordinates(robot.joint(name).type) for name in self.loop_joints]
        poses = [np.eye(3, 4).ravel() if frame[1] else np.zeros(3) for frame in frames]
        targets = np.concatenate([np.zeros(0), *poses, *neutral, np.zeros(len(single))])
        self.numbers, self.joint_numbers = len(targets), len(single) + sum(map(len, neutral))
        # the scale of rows is measured in a random configuration, because rows may vanish in special ones, for example if the ends of a rod coincide
        self.by_name = _by_name(robot)
        scale = velocity_scale(robot)
        away = robot.integrate(robot.neutral(), scale * _anywhere(robot.nv)[self.by_name])
        self.loops = ScaledLoops(self.robot, away, None, targets if to else None)
        joints = [robot.joint(name) for name in robot.joints]
        # rows of the constraints that prescribe targets: first those of frames, then those of loop joints
        self.rows = [self.robot.constraint(spec.name).rows for spec in to]
        self.moving = np.concatenate([np.zeros(0, bool), *(np.full(j.nv, j.name not in fixed) for j in joints)])
        self.scale = self.loops.scale(self.moving)
        self.simple = all(robot.joint(name).type.nq == 1 for name in fixed) and not robot._asks_for_rows
        self.weight, self.fixed_mask, self.units = self.scale[: robot.nv].copy(), 1.0 - self.moving, self.loops.scale()
        # indices in v of fixed joints with one velocity; -1 for a loop joint, whose velocity is in the rates of target rows instead
        self.v_places = [-1 if name in self.loop_joints else robot.joint(name).v_slice.start for name in fixed]
        self.still, self.no_change = np.zeros(robot.nv), np.zeros(self.numbers) if to else None

    def for_variants(self, variants: VariantFunctions) -> Closing:
        """Return the same closure for variants of the mechanism."""
        closure, robot = copy.copy(self), variants if self.robot is self.base else variants._like(self.robot)
        closure.robot, closure.loops = robot, self.loops.for_variants(robot)
        closure.scale = closure.loops.scale(self.moving)
        return closure

    def targets(self, frames: Sequence[Array], coordinates: Mapping[str, Array], lead: tuple[int, ...]) -> Array | None:
        """Return the targets (*lead, n) of frames and loop joints in the core's order; None without targets."""
        parts = [*frames, *(coordinates[name] for name in self.loop_joints)]
        rows = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in parts]
        return np.concatenate(rows, axis=-1) if rows else None

    def values(self, q: ArrayLike, v: ArrayLike | None, targets: Array) -> Array:
        """Return the values (..., n) of constraint rows that a call passes to the core: of Python functions of the state, then targets."""
        if not self.base._asks_for_rows:
            return targets
        rows = self.base._pfaffian_numbers(q, v)
        return np.concatenate([rows, np.broadcast_to(targets, (*rows.shape[:-1], self.numbers))], axis=-1)

    def at(self, time: Any, targets: Array | None) -> ScaledLoops:
        """Return the scaled loops at a time, with these targets."""
        loops = copy.copy(self.loops)
        loops.time, loops.targets = time, targets
        return loops


def _anywhere(nv: int) -> Array:
    """Return a random step (nv,) in scaled velocities."""
    return 0.1 * normal_numbers(nv)


def _by_name(robot: LoopFunctions) -> NDArray[np.intp]:
    """Return the index (nv,) of each velocity among joints sorted by name.

    Random numbers are assigned in this order, so that they do not depend on the order of the description.
    """
    order = [np.arange(robot.nv)[robot.joint(name).v_slice] for name in sorted(robot.joints)]
    return np.argsort(np.concatenate([np.zeros(0, np.intp), *order]))


def neutral_coordinates(joint: JointType) -> Array:
    """Return the neutral coordinates (nq,) of a joint."""
    return np.array([float(name == "qw") for name, _ in joint.coordinates])


def prepared(robot: LoopFunctions, key: Hashable, make: Callable[[], Kept]) -> Kept:
    """Return the cached result of `make` for a mechanism and a key."""
    if "_prepared" not in vars(robot):
        _ = robot.nq  # raises the error of a mechanism that was not initialised
    kept = robot._prepared.get(key)
    if kept is None:
        if len(robot._prepared) > 100:
            robot._prepared.clear()
        kept = robot._prepared[key] = make()
    return cast("Kept", kept)


def closing(robot: LoopFunctions, frames: Frames, fixed: Iterable[str], single: Coordinates = ()) -> Closing:
    """Return the cached closure for these frames, fixed joints and single coordinates, which must exist in the mechanism."""
    names = tuple(fixed)
    if robot._base is not robot:
        variants = cast("VariantFunctions", robot)
        return prepared(robot, (frames, names), lambda: closing(robot._base, frames, names).for_variants(variants))
    return prepared(robot, (frames, names, *single), lambda: Closing(robot, frames, names, single))


def on_its_tree(robot: LoopFunctions, *more: ConstraintSpec, actuated: Sequence[str] | None = None) -> LoopFunctions:
    """Return the mechanism on the same tree, with additional constraints `more`, or with motors in the joints `actuated`."""

    def fixed(j: JointSpec) -> JointSpec:
        closes, driven = robot.joint(j.name).closes_loop, j.actuated if actuated is None else j.name in actuated
        return dataclasses.replace(j, tree=not closes, loop=closes, actuated=driven)

    d = robot.description
    return type(robot)(dataclasses.replace(d, joints=tuple(map(fixed, d.joints)), constraints=(*d.constraints, *more)))


def movable_frames(robot: LoopFunctions) -> set[str]:
    """Return the names of the frames that are not fixed to the ground."""
    return set(robot.frames) - {"ground", *(f.name for f in robot.description.frames if f.body == "ground")}


def check_frames(robot: LoopFunctions, frames: Any, argument: str) -> None:
    """Raise an error if `frames` is not a mapping of frames; `of_joints` names the argument for joints."""
    check_mapping("frames", frames, "frames to their targets", 0)
    for name in frames:
        if name in robot._joints and name not in robot.frames:
            raise ModelError(f"frames: '{name}' is a joint; expected a frame, pass joints to {argument}=")
        check_name("frame", name, robot.frames)


def check_movable(robot: LoopFunctions, frame: str) -> None:
    """Raise ModelError for a frame that is fixed to the ground.

    The check takes as long as closing the loops; therefore the fast path of a control loop omits it.
    """
    if frame not in movable_frames(robot):
        raise ModelError(f"frame '{frame}' is fixed to the ground; expected a frame of a moving body")


def target(frame: str, turned: bool, components: int = 0, in_world: bool = False) -> TargetSpec:
    """Return the target constraint of an entry of `Frames`."""
    return TargetSpec(target_name(frame), frame, turned, components, in_world, bodies=("ground", frame))


def target_name(frame: str) -> str:
    """Return the name of the target constraint of a frame."""
    return f"target of {frame}"


def fitting(robot: LoopFunctions, joints: Iterable[str]) -> list[str]:
    """Return the names in `joints`, except joints that close a loop with preceding joints of the list."""
    group: dict[str, str] = {}

    def root(body: str) -> str:
        while body in group:
            body = group[body]
        return body

    def ties(name: str) -> bool:
        # without constraint rows, at most as many single coordinates can be fixed as there are degrees of freedom
        if robot.joint(name).type.holds_nothing:
            return True
        parent, child = root(robot.joint(name).parent), root(robot.joint(name).child)
        if parent != child:
            group[parent] = child
        return parent != child

    return [name for name in dict.fromkeys(joints) if ties(name)]


class Request(NamedTuple):
    """Input of the core for one state: targets of frames, initial configuration, first guesses, and coordinates of fixed joints."""

    frames: list[tuple[str, Any]]
    near: Array | None
    guess: list[tuple[str, Any]]
    fixed: list[tuple[str, Any]]


def of_one_state(robot: LoopFunctions, targets: Mapping[str, Any], near: Any, fixed: Any, time: Any) -> Request | None:
    """Return the request of a call for one state; None for a batch. Raise the errors of invalid arguments."""
    start, guess = None, None
    if type(near) is np.ndarray or not (near is None or isinstance(near, Mapping)):
        start = real_array("near", near)
        if start.ndim != 1:
            return None
        if len(start) != robot.nq:
            expected = f"expected configurations (..., {robot.nq}), or a mapping of joints to coordinates"
            raise ShapeError(f"near has shape {start.shape}; {expected}")
    else:
        guess = near
    if time is not None and np.ndim(time):
        return None
    frames = []
    for name, value in targets.items():
        x = checked_target(robot, name, value)
        if x.ndim > 1 + (x.shape[-1] == 4):
            return None
        frames.append((name, (x[:3].ravel() if x.ndim == 2 else x).tolist()))
    guessed, by_joint = _of_joints(robot, guess) if guess else [], _of_joints(robot, fixed) if fixed else []
    if guessed is None or by_joint is None:
        return None
    return Request(frames, start, guessed, by_joint)


def _of_joints(robot: LoopFunctions, by_joint: Any) -> list[tuple[str, Any]] | None:
    """Return the checked coordinates of joints; None if they are those of several states."""
    if type(by_joint) is dict and all(
        type(x) is float and -DEGREES < x < DEGREES and name in robot._joints and robot._joints[name].type.nq == 1
        for name, x in by_joint.items()
    ):
        return [(name, (x,)) for name, x in by_joint.items()]
    checked = coordinates(robot, by_joint, many=True)
    return None if any(x.ndim > 1 for x in checked.values()) else [(name, x.tolist()) for name, x in checked.items()]


def positions(robot: LoopFunctions) -> _core.Positions:
    """Return the core's positions of a mechanism."""

    def make() -> _core.Positions:
        d = robot.description
        limits = [None if j.joint.limits is None else tuple(x.tolist() for x in j.joint.limits) for j in d.joints]
        home = robot._at(d.home) if d.home or robot._motors else None
        variants: Any = robot if robot._base is not robot and cast(Any, robot)._changes else None
        return _core.Positions(robot, limits, home, *((variants._varied, variants._changes) if variants else ()))

    return robot._prepared.get("positions") or prepared(robot, "positions", make)


def checked_target(robot: LoopFunctions, frame: str, value: ArrayLike | Transform) -> Array:
    """Return the target of a frame: a pose (..., 4, 4), or a point (..., 3). NaN marks free components, which the core checks."""
    check_movable(robot, frame)
    if isinstance(value, Transform):
        return value.matrix
    target = real_array(f"the target of frame '{frame}'", value)
    if target.shape[-1:] != (3,) and target.shape[-2:] != (4, 4):
        expected = "a pose (..., 4, 4) or a point (..., 3)"
        raise ShapeError(f"the target of frame '{frame}' must be {expected}; got shape {target.shape}")
    if target.ndim > 2 or (target.shape[-1] == 3 and target.ndim > 1):
        return target  # its numbers are checked later, state by state
    return target if target.ndim == 1 else checked_pose(target)


def checked_pose(pose: Array) -> Array:
    """Return a pose (4, 4) with a checked rotation. The position, or the whole rotation, may contain NaN for free components."""
    free = np.isnan(pose)
    free[3] = False
    turns = free[:3, :3]
    if turns.any() and not turns.all():
        return pose  # the core raises the error
    return np.where(free, np.nan, Transform.from_matrix(np.where(free, np.eye(4), pose)).matrix)


def checked_tolerance(value: float) -> float:
    """Return the checked tolerance of residuals; raise ValueError if it is below rounding, which no search reaches."""
    tolerance = checked_number("tolerance", value)
    if tolerance < tolerances.rounding:
        raise ValueError(
            f"tolerance must be at least {tolerances.rounding:g}, the rounding error of a closed loop; got {value!r}"
        )
    return tolerance


def checked_steps(max_step: float, min_step: float) -> tuple[float, float]:
    """Return both step sizes; raise ValueError if a path with such steps would not terminate."""
    longest, shortest = checked_number("max_step", max_step), checked_number("min_step", min_step)
    if not EPS <= shortest <= 1.0:
        raise ValueError(
            f"min_step must be a fraction of the distance between two inputs, from {EPS:.3g} (rounding) to 1; got {min_step!r}"
        )
    if longest < shortest:
        raise ValueError(f"max_step must be at least min_step = {min_step!r}; got {max_step!r}")
    return longest, shortest
