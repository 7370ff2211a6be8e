"""What callers give by the names of joints, coordinates and paths of coordinates: checked, and made arrays.

A joint with one coordinate takes a number, any other its coordinates [rad, m, quaternions (x, y, z, w)].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, checked_time, real_array
from ..errors import ModelError, ShapeError, StateError
from ..state import Joint
from .functions import LoopFunctions

JointCoordinates = Mapping[str, ArrayLike]


def _checked(robot: LoopFunctions, name: str, value: ArrayLike, path: bool = False) -> Array:
    """Coordinates (nq,) of a joint, or (n, nq) of a path; quaternions are made unit."""
    joint = robot.joint(name)
    if joint.closes_loop:
        raise ModelError(
            f"joint '{name}' closes a loop and has no coordinates in q: add it with tree=True to make it a coordinate"
        )
    x = real_array(f"coordinates of joint '{name}'", value)
    x = x[..., None] if joint.nq == 1 and x.ndim == int(path) else x
    if x.ndim != 1 + path or x.shape[-1] != joint.nq:
        wanted = f"(n, {joint.nq})" if path else f"({joint.nq},)"
        raise ShapeError(f"joint '{name}' takes {wanted} coordinates; got shape {np.shape(value)}")
    q = np.broadcast_to(robot.neutral(), (*x.shape[:-1], robot.nq)).copy()
    if not np.isfinite(x).all():
        raise StateError(f"coordinates of joint '{name}' must be finite; got {np.array2string(x, threshold=12)}")
    q[..., joint.q_slice] = x
    return np.asarray(robot.normalize(q)[..., joint.q_slice])


def coordinates(robot: LoopFunctions, given: JointCoordinates | None) -> dict[str, Array]:
    """Coordinates (nq,) per joint."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"joints to coordinates are a mapping; got {given!r}")
    return {name: _checked(robot, name, value) for name, value in (given or {}).items()}


def start_near(
    robot: LoopFunctions, near: ArrayLike | JointCoordinates | None, given: Mapping[str, Array], time: float | None
) -> Array:
    """The configuration near which to look: (nq,), or home, with the coordinates that are prescribed or given besides."""
    time = checked_time(time)
    if near is None or isinstance(near, Mapping):
        q = robot.neutral()
        for name, home in robot.description.home:
            q[robot.joint(name).q_slice] = home
    else:
        near = real_array("near", near)
        if near.shape != (robot.nq,):
            raise ShapeError(
                f"near has shape {near.shape}; it must be one configuration, ({robot.nq},), or joints to coordinates"
            )
        q = robot.normalize(near)
    for spec in robot.description.constraints:
        if coordinate := spec.prescribed(time or 0.0):  # by then it may have gone far
            joint, index, prescribed = coordinate
            q[robot.joint(joint).q_slice.start + index] = prescribed
    for name, value in given.items():
        q[robot.joint(name).q_slice] = value
    return q


def paths(robot: LoopFunctions, inputs: JointCoordinates, time: ArrayLike | None) -> tuple[dict[str, Array], Array]:
    """Coordinates (n, nq) per joint, one per input, and times (n,) [s]."""
    if not isinstance(inputs, Mapping):
        raise TypeError(f"inputs are a mapping of joints to coordinates; got {inputs!r}")
    ways = {name: _checked(robot, name, value, path=True) for name, value in inputs.items()}
    lengths = {name: len(way) for name, way in ways.items()} | (
        {} if time is None else {"time": np.size(real_array("time", time))}
    )
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ShapeError(f"inputs need equally many values, at least one; got {lengths or 'none'}")
    times = np.zeros(max(lengths.values())) if time is None else real_array("time", time)
    if times.ndim != 1 or not np.isfinite(times).all():
        raise StateError(f"time must be (n,) finite seconds; got {time!r}")
    return ways, times


def tree_joints(robot: LoopFunctions) -> list[Joint]:
    """Those that have coordinates, in the order of these."""
    return [robot.joint(name) for name in robot.joints]


def quoted(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(f"'{name}'" for name in names)
