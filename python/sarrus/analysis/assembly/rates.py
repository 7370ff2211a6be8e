"""Constraint-consistent velocities and accelerations with given motions of joints and frames, by one call of the core.

Given velocities of a tree joint are fixed coordinates. Given velocities of a loop joint or a frame are right-hand sides of constraint rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._arrays import Array, ArrayLike, common_axes, real_array
from ...dynamics.loop_operations import LoopFunctions
from ...errors import ShapeError
from ..joint_targets import rates_of
from .closing import Closing, Frames, check_frames, check_movable, closing

Rates = Mapping[str, ArrayLike]
FLOATS, AXES = {float, np.float64}, ("frame", "world_aligned")
Prepared = tuple[Closing, Array, Array | None, Array | None]


def completed(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None, joint_rates: Rates, frames: Rates | None, options: Any
) -> Any:
    """Return velocities (..., nv), or accelerations if v is not None, of least norm with the given motions of joints and frames."""
    axes = options.pop("expressed_in", "frame")
    if not isinstance(axes, str) or axes not in AXES:
        raise ValueError(f"expressed_in must be 'frame' or 'world_aligned'; got {axes!r}")
    prepared_call = _from_earlier_call(robot, q, v, joint_rates, frames, axes)
    closure, x, rows, values = prepared_call or _checked(
        robot, q, v, joint_rates, {} if frames is None else frames, axes
    )
    if values is not None:
        options["pfaffian_values"] = values
    if v is None:
        return closure.robot._least_motion(q, x, None, closure.weight, rows, **options)
    return closure.robot._least_motion(q, v, x, closure.weight, rows, **options)


def _from_earlier_call(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None, joint_rates: Rates, frames: Rates | None, axes: str
) -> Prepared | None:
    """Return the result of `_checked` for a call with the same joints and frames as an earlier call, as in a control loop; None for other calls.

    Only types are checked, because names were checked in the earlier call and the core checks values.
    """
    moved = {} if frames is None else _of_one_state(q, v, frames)
    if type(joint_rates) is not dict or moved is None:
        return None
    closure = robot._prepared.get(
        (tuple([(name, len(x) == 6) for name, x in moved.items()]) if moved else (), tuple(joint_rates))
    )
    if closure is None or not closure.simple:
        return None
    fixed_velocities = closure.still.copy()
    for place, rate in zip(closure.v_places, joint_rates.values()):  # noqa: B905 (equal lengths: these are the key of the closure)
        if type(rate) not in FLOATS:
            return None
        if place >= 0:
            fixed_velocities[place] = rate
    if closure.robot is robot:
        return closure, fixed_velocities, None, None
    if axes == "world_aligned":
        moved = {name: (x.reshape(-1, 3) @ robot.pose(q, name)[:3, :3]).ravel() for name, x in moved.items()}
    rows = np.zeros(closure.robot.nc)
    for place, x in zip(
        closure.rows, [*moved.values(), *(joint_rates[name] for name in closure.loop_joints)], strict=True
    ):
        rows[place] = x
    return closure, fixed_velocities, rows, closure.no_change


def _of_one_state(q: ArrayLike, v: ArrayLike | None, frames: Rates) -> dict[str, Array] | None:
    """Return the velocities of frames, (3,) or (6,), if all arguments are floats of a single state; otherwise None."""
    if type(frames) is not dict or v is not None or type(q) is not np.ndarray or q.ndim != 1:
        return None
    arrays = {name: np.asarray(x) for name, x in frames.items() if type(x) in (tuple, list, np.ndarray)}
    good = len(arrays) == len(frames) and all(x.shape in ((3,), (6,)) and x.dtype == float for x in arrays.values())
    return arrays if good else None


def _checked(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None, joint_rates: Rates, frames: Rates, expressed_in: str
) -> Prepared:
    """Return the closure, the fixed velocities (..., nv), the additions to the right-hand side (..., nc), and the values of target rows."""
    quantity = "velocities" if v is None else "accelerations"
    rates = rates_of(robot, joint_rates, quantity)
    check_frames(robot, frames, "joints")
    frame_rates = {name: _in_frame(robot, q, v, name, value, quantity, expressed_in) for name, value in frames.items()}
    frame_names: Frames = tuple((name, x.shape[-1] == 6) for name, x in frame_rates.items())
    closure = closing(robot, frame_names, joint_rates)
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


def _in_frame(
    robot: LoopFunctions,
    q: ArrayLike,
    v: ArrayLike | None,
    frame: str,
    value: ArrayLike,
    quantity: str,
    expressed_in: str,
) -> Array:
    """Return the velocity of a frame (..., 6), or of its origin (..., 3), in the frame's axes; for an acceleration, the rate of these components at v."""
    check_movable(robot, frame)
    x = real_array(f"{quantity} of frame '{frame}'", value)
    if x.ndim == 0 or x.shape[-1] not in (3, 6):
        expected = "(..., 6), [angular; linear], or (..., 3) for its origin"
        raise ShapeError(f"{quantity} of frame '{frame}' must be {expected}; got shape {x.shape}")
    parts = [x[..., k : k + 3] for k in range(0, x.shape[-1], 3)]
    if expressed_in == "world_aligned":
        R = robot.pose(q, frame, return_status=True)[0][..., :3, :3]
        parts = [np.einsum("...ji,...j->...i", R, part) for part in parts]
    if v is not None:  # the frame's axes rotate, which adds to the rate of the components
        V = robot.velocity(q, v, frame, return_status=True)[0]
        parts[-1] = parts[-1] - np.cross(V[..., :3], V[..., 3:])
    lead = np.broadcast_shapes(*(part.shape for part in parts))
    return np.concatenate([np.broadcast_to(part, lead) for part in parts], axis=-1)


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
