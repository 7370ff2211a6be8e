"""Constraint-consistent velocities and accelerations with given motions of joints and frames, by one call of the core.

Velocities of a tree joint are fixed. Those of a loop joint or a frame are constraint rows, and are added to their right-hand side.
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
Asked = tuple[Closing, Array, Array | None, Array | None]


def completed(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None, known: Rates, frames: Rates | None, options: Any
) -> Any:
    """Return velocities (..., nv), or accelerations if v is given, with the given motions of joints and frames; other motions are minimal."""
    axes = options.pop("expressed_in", "frame")
    if not isinstance(axes, str) or axes not in AXES:
        raise ValueError(f"expressed_in must be 'frame' or 'world_aligned'; got {axes!r}")
    asked = _known_before(robot, q, v, known, frames, axes)
    how, x, rows, values = asked or _checked(robot, q, v, known, {} if frames is None else frames, axes)
    if values is not None:
        options["pfaffian_values"] = values
    if v is None:
        return how.robot._least_motion(q, x, None, how.weight, rows, **options)
    return how.robot._least_motion(q, v, x, how.weight, rows, **options)


def _known_before(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None, known: Rates, frames: Rates | None, axes: str
) -> Asked | None:
    """Return the result of `_checked` for floats of joints and frames of an earlier call, as in a control loop; None for other calls.

    Names were checked when the closure was prepared, and the core checks numbers. So only types are checked, as in :meth:`Closing.nearby`.
    """
    moved = {} if frames is None else _of_one_state(q, v, frames)
    if type(known) is not dict or moved is None:
        return None
    how = robot._prepared.get(
        (tuple([(name, len(x) == 6) for name, x in moved.items()]) if moved else (), tuple(known))
    )
    if how is None or not how.simple:
        return None
    held = how.still.copy()
    for place, rate in zip(how.v_places, known.values()):  # noqa: B905 (equal lengths: these are the key of the closure)
        if type(rate) not in FLOATS:
            return None
        if place >= 0:
            held[place] = rate
    if how.robot is robot:
        return how, held, None, None
    if axes == "world_aligned":
        moved = {name: (x.reshape(-1, 3) @ robot.pose(q, name)[:3, :3]).ravel() for name, x in moved.items()}
    rows = np.zeros(how.robot.nc)
    for place, x in zip(how.rows, [*moved.values(), *(known[name] for name in how.led)], strict=True):
        rows[place] = x
    return how, held, rows, how.no_change


def _of_one_state(q: ArrayLike, v: ArrayLike | None, frames: Rates) -> dict[str, Array] | None:
    """Return the velocities of frames, (3,) or (6,), if all are floats of one state; else None."""
    if type(frames) is not dict or v is not None or type(q) is not np.ndarray or q.ndim != 1:
        return None
    arrays = {name: np.asarray(x) for name, x in frames.items() if type(x) in (tuple, list, np.ndarray)}
    good = len(arrays) == len(frames) and all(x.shape in ((3,), (6,)) and x.dtype == float for x in arrays.values())
    return arrays if good else None


def _checked(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None, known: Rates, frames: Rates, expressed_in: str
) -> Asked:
    """Return the closure, the fixed velocities (..., nv), the additions to rows (..., nc), and the values of target rows."""
    what = "velocities" if v is None else "accelerations"
    rates = rates_of(robot, known, what)
    check_frames(robot, frames, "joints")
    of_frames = {name: _in_frame(robot, q, v, name, value, what, expressed_in) for name, value in frames.items()}
    which: Frames = tuple((name, x.shape[-1] == 6) for name, x in of_frames.items())
    how = closing(robot, which, known)
    shapes = {f"{what} of joint '{name}'": x.shape[:-1] for name, x in rates.items()}
    lead = common_axes(shapes | {f"{what} of frame '{name}'": x.shape[:-1] for name, x in of_frames.items()})
    x = np.zeros((*lead, robot.nv))
    for name in rates.keys() - set(how.led):
        x[..., robot.joint(name).v_slice] = rates[name]
    if how.robot is robot:
        return how, x, None, None
    rows = np.zeros((*lead, how.robot.nc))
    for place, rate in zip(how.rows, [*of_frames.values(), *(rates[name] for name in how.led)], strict=True):
        rows[..., place] = rate
    return how, x, rows, how.values(q, v, np.zeros(how.numbers))


def _in_frame(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None, frame: str, value: ArrayLike, what: str, expressed_in: str
) -> Array:
    """Return the velocity of a frame (..., 6), or of its origin (..., 3), in the frame's axes; for an acceleration, the rate of these components at v."""
    check_movable(robot, frame)
    x = real_array(f"{what} of frame '{frame}'", value)
    if x.ndim == 0 or x.shape[-1] not in (3, 6):
        expected = "(..., 6), [angular; linear], or those of its origin, (..., 3)"
        raise ShapeError(f"{what} of frame '{frame}' are {expected}; got shape {x.shape}")
    parts = [x[..., k : k + 3] for k in range(0, x.shape[-1], 3)]
    if expressed_in == "world_aligned":
        R = robot.pose(q, frame, return_status=True)[0][..., :3, :3]
        parts = [np.einsum("...ji,...j->...i", R, part) for part in parts]
    if v is not None:  # the frame's axes turn
        V = robot.velocity(q, v, frame, return_status=True)[0]
        parts[-1] = parts[-1] - np.cross(V[..., :3], V[..., 3:])
    lead = np.broadcast_shapes(*(part.shape for part in parts))
    return np.concatenate([np.broadcast_to(part, lead) for part in parts], axis=-1)


def holding(
    robot: LoopFunctions, q: ArrayLike, joints: tuple[str, ...], time: ArrayLike | None
) -> tuple[LoopFunctions, Array, dict[str, Any]]:
    """Return the arguments for locked joints: the mechanism, a mask (nv,) that is 0 for locked velocities, and more keyword arguments."""
    how = closing(robot, (), joints)
    besides = {}
    if how.led:
        now = robot.joint_states(q, time=time).q
        besides["pfaffian_values"] = how.values(q, None, np.concatenate([now[name] for name in how.led], axis=-1))
    return how.robot, np.sign(how.weight), besides
