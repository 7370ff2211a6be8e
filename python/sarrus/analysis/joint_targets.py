"""Checks of mappings of joint names to coordinates, velocities and paths, and their conversion to arrays.

The value of a joint with one coordinate is a number. The value of a joint with more coordinates is an array [rad, m, quaternions (x, y, z, w)].
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
MOST_AXES = 32  # limit of the oldest supported NumPy


def _joint_values(robot: LoopFunctions, name: str, value: ArrayLike, quantity: str = "coordinates") -> Array:
    """Return the checked coordinates (..., nq of the joint), velocities or accelerations (..., nv of the joint) of a joint."""
    joint = robot.joint(name).type
    count, x = joint.nq if quantity == "coordinates" else joint.nv, real_array(f"{quantity} of joint '{name}'", value)
    if count == 1 and (x.ndim == 0 or x.shape[-1] != 1):
        x = x[..., None]
    if x.ndim > MOST_AXES:
        raise ShapeError(f"{quantity} of joint '{name}' have {x.ndim} axes; there may be {MOST_AXES}")
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
                f"joint '{name}' requires the coordinates ({x.shape[-1]},) of one state; got those of {x.shape[:-1]} states"
            )
        lower, upper = robot.joint(name).limits or (np.inf, -np.inf)
        if (
            x.ndim == 1
            and _core.in_degrees(robot.joint(name).type, x.tolist())
            and not ((lower <= x) & (x <= upper)).all()
        ):
            numbers = ", ".join(f"{angle:g}" for angle in x)
            warn_of_model(f"joint '{name}' at {numbers} looks like degrees, and is taken as radians: numpy.radians()")
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


def quoted(names: Iterable[str]) -> str:
    """Return the quoted names, separated by commas, for a message."""
    return ", ".join(f"'{name}'" for name in names)
