"""What callers give by the names of joints, coordinates and paths of coordinates: checked, and made arrays.

A joint with one coordinate takes a number, any other its coordinates [rad, m, quaternions (x, y, z, w)].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, check_mapping, common_axes, real_array
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ShapeError, StateError, warn_of_model

JointCoordinates = Mapping[str, ArrayLike]
MOST_AXES = 32  # that NumPy's oldest version can have


def _of_joint(robot: LoopFunctions, name: str, value: ArrayLike, what: str = "coordinates") -> Array:
    """Numbers (..., n) of a joint, as many as it has coordinates, or velocities."""
    joint = robot.joint(name).type
    count, x = joint.nq if what == "coordinates" else joint.nv, real_array(f"{what} of joint '{name}'", value)
    if count == 1 and (x.ndim == 0 or x.shape[-1] != 1):
        x = x[..., None]
    if x.ndim > MOST_AXES:
        raise ShapeError(f"{what} of joint '{name}' have {x.ndim} axes; there may be {MOST_AXES}")
    if x.ndim == 0 or x.shape[-1] != count:
        raise ShapeError(f"joint '{name}' takes (..., {count}) {what}; got shape {np.shape(value)}")
    return x


def _coordinates_of(robot: LoopFunctions, name: str, value: ArrayLike) -> Array:
    """Coordinates (..., nq) of a joint; quaternions are made unit."""
    x = _of_joint(robot, name, value)
    if not np.isfinite(x).all():
        raise StateError(f"coordinates of joint '{name}' must be finite; got {np.array2string(x, threshold=12)}")
    if not robot.joint(name).type.quaternion:
        return x
    size = np.linalg.norm(x[..., :4], axis=-1, keepdims=True)
    if not (size > 0.0).all():
        raise StateError(f"the quaternion of joint '{name}' is no rotation; got {np.array2string(x, threshold=12)}")
    return np.concatenate([x[..., :4] / size, x[..., 4:]], axis=-1)


def coordinates(robot: LoopFunctions, by_joint: JointCoordinates | None, *, many: bool = False) -> dict[str, Array]:
    """Coordinates (nq,) per joint; (..., nq) where `many` says so."""
    check_mapping("what joints are given", by_joint, "joints to coordinates", 0, optional=True)
    checked = {name: _coordinates_of(robot, name, value) for name, value in (by_joint or {}).items()}
    for name, x in checked.items():
        if x.ndim > 1 and not many:
            raise ShapeError(f"joint '{name}' takes ({x.shape[-1]},) coordinates; got those of {x.shape[:-1]} states")
        lower, upper = robot.joint(name).limits or (np.inf, -np.inf)
        if x.ndim == 1 and _core.in_degrees(robot.joint(name).type, x) and not ((lower <= x) & (x <= upper)).all():
            numbers = ", ".join(f"{angle:g}" for angle in x)
            warn_of_model(f"joint '{name}' at {numbers} looks like degrees, and is taken as radians: numpy.radians()")
    return checked


def velocities_of(robot: LoopFunctions, by_joint: Mapping[str, ArrayLike], what: str) -> Array:
    """(..., nv) with joints' velocities, or accelerations, as given; zero for the others. Joints that close loops have none there."""
    checked = rates_of(robot, by_joint, what)
    v = np.zeros((*common_axes({f"{what} of joint '{name}'": x.shape[:-1] for name, x in checked.items()}), robot.nv))
    for name, x in checked.items():
        v[..., robot._tree_joint(name, f"{what} in v").v_slice] = x
    return v


def rates_of(robot: LoopFunctions, by_joint: Mapping[str, ArrayLike], what: str) -> dict[str, Array]:
    """Velocities, or accelerations, (..., nv of the joint) per joint."""
    check_mapping(what, by_joint, "joints to numbers", 0)
    return {name: _of_joint(robot, name, value, what) for name, value in by_joint.items()}


def start_near(
    robot: LoopFunctions, near: ArrayLike | JointCoordinates | None, by_joint: Mapping[str, Array], time: Any, lead: tuple[int, ...] = ()
) -> Array:  # fmt: skip
    """The configurations (*lead, nq) near which to look: given, or home, with the coordinates that are prescribed or given besides."""
    if near is None or isinstance(near, Mapping):
        q = robot._at(robot.description.home)
    else:
        q = real_array("near", near)
        if q.shape[-1:] != (robot.nq,):
            expected = f"it must be configurations, (..., {robot.nq}), or joints to coordinates"
            raise ShapeError(f"near has shape {q.shape}; {expected}")
        q = robot.normalize(q)
    q = np.broadcast_to(q, (*lead, robot.nq)).copy()
    for spec in robot.description.constraints:
        if coordinate := spec.prescribed(0.0 if time is None else time):  # by then it may have gone far
            joint, index, prescribed = coordinate
            q[..., robot.joint(joint).q_slice.start + index] = prescribed
    for name, value in by_joint.items():
        if not robot.joint(name).closes_loop:
            q[..., robot.joint(name).q_slice] = value
    return q


def paths(
    robot: LoopFunctions, inputs: JointCoordinates, time: ArrayLike | None, lengths: Mapping[str, int]
) -> tuple[dict[str, Array], Array]:
    """Coordinates (n, nq) per joint, one per input, and times (n,) [s]; `lengths` are those of other inputs."""
    check_mapping("joints", inputs, "joints to where they go", 0)
    ways, lengths = {}, dict(lengths)
    for name, value in inputs.items():
        way = _coordinates_of(robot, name, value)
        if way.ndim == 1 and way.size == 1 and np.ndim(value) == 1:  # of one number
            way = way[None]
        if way.ndim != 2:
            raise ShapeError(f"joint '{name}' takes (n, {way.shape[-1]}) coordinates; got shape {np.shape(value)}")
        ways[name], lengths[name] = way, len(way)
    if time is not None:
        lengths["time"] = np.size(real_array("time", time))
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ShapeError(f"inputs need equally many values, at least one; got {lengths or 'none'}")
    times = np.zeros(max(lengths.values())) if time is None else real_array("time", time)
    if times.ndim != 1 or not np.isfinite(times).all():
        raise StateError(f"time must be (n,) finite seconds; got {time!r}")
    return ways, times


def quoted(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(f"'{name}'" for name in names)
