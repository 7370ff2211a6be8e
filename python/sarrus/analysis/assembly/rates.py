"""Velocities and accelerations on the loops with which joints and frames move as said: prepared as for positions, then one call of the core's.

Velocities of a joint of the tree are held; those of one that closes a loop, and of frames, are rows, to whose right-hand side they are added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import Array, common_axes, real_array
from ...dynamics.loop_operations import LoopFunctions
from ...errors import ShapeError
from ..joint_targets import rates_of
from .closing import Closing, Frames, check_frames, check_movable, closing

Rates = Mapping[str, ArrayLike]
FLOATS = {float}


def completed(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None, known: Rates, frames: Rates | None, options: dict[str, Any]
) -> Any:
    """Velocities (..., nv), or at v accelerations, with which joints and frames move as said and all else moves as little as it can."""
    how = None if frames is not None or type(known) is not dict else robot._prepared.get(((), tuple(known)))
    if how is not None and how.simple and {*map(type, known.values())} <= FLOATS:
        x, rows, values = np.zeros(robot.nv), None, None
        for place, rate in zip(how.v_places, known.values(), strict=True):
            if place >= 0:
                x[place] = rate
        if how.led:
            rows, values = np.zeros(how.robot.nc), np.zeros(how.numbers)
            for place, name in zip(how.rows, how.led, strict=True):
                rows[place] = known[name]
        options.pop("expressed_in", None)
    else:
        how, x, rows, values = _checked(
            robot, q, v, known, {} if frames is None else frames, options.pop("expressed_in", "frame")
        )
    besides = {} if values is None else {"pfaffian_values": values}
    if v is None:
        return how.robot._least_motion(q, x, None, how.weight, rows, **besides, **options)
    return how.robot._least_motion(q, v, x, how.weight, rows, **besides, **options)


def _checked(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None, known: Rates, frames: Rates, expressed_in: str
) -> tuple[Closing, Array, Array | None, Array | None]:
    """How to complete the motion, the velocities (..., nv) that are held, what is added to rows (..., nc), and what the core is told of these."""
    what = "velocities" if v is None else "accelerations"
    rates = rates_of(robot, known, what)
    check_frames(robot, frames, "known")
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
    """A frame's velocity (..., 6), or its origin's (..., 3), in its own axes; or, of an acceleration, the rate of these components at v."""
    check_movable(robot, frame)
    x = real_array(f"{what} of frame '{frame}'", value)
    if x.ndim == 0 or x.shape[-1] not in (3, 6):
        expected = "(..., 6), [angular; linear], or those of its origin, (..., 3)"
        raise ShapeError(f"{what} of frame '{frame}' are {expected}; got shape {x.shape}")
    if expressed_in not in ("frame", "world_aligned"):
        raise ValueError(
            f"{what} of frames are given in the axes of the 'frame' or 'world_aligned'; got {expressed_in!r}"
        )
    parts = [x[..., k : k + 3] for k in range(0, x.shape[-1], 3)]
    if expressed_in == "world_aligned":
        R = robot.pose(q, frame, return_status=True)[0][..., :3, :3]
        parts = [np.einsum("...ji,...j->...i", R, part) for part in parts]
    if v is not None:  # the axes turn
        V = robot.velocity(q, v, frame, return_status=True)[0]
        parts[-1] = parts[-1] - np.cross(V[..., :3], V[..., 3:])
    lead = np.broadcast_shapes(*(part.shape for part in parts))
    return np.concatenate([np.broadcast_to(part, lead) for part in parts], axis=-1)


def holding(
    robot: LoopFunctions, q: ArrayLike, joints: tuple[str, ...], time: ArrayLike | None
) -> tuple[LoopFunctions, Array, dict[str, Any]]:
    """How to hold joints where they are: on which mechanism, 0 or 1 of each velocity, and what the core is to be told besides."""
    how = closing(robot, (), joints)
    besides = {}
    if how.led:
        now = robot.joint_states(q, time=time).q
        besides["pfaffian_values"] = how.values(q, None, np.concatenate([now[name] for name in how.led], axis=-1))
    return how.robot, np.sign(how.weight), besides
