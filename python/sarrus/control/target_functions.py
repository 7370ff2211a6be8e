"""Targets of tasks that are Python functions of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import Array, real_array
from ..errors import ModelError, ShapeError, StateError
from ..spatial import Rotation

DIFFERENCE = 1e-3  # step of the finite differences for the velocity and acceleration of a target function's poses [s]


def _check_pose(pose: Array, label: str) -> None:
    try:
        Rotation.from_matrix(pose[:3, :3])
    except ValueError as error:
        raise ModelError(f"{label}: {error}") from None
    if not np.isfinite(pose).all() or not np.array_equal(pose[3], [0.0, 0.0, 0.0, 1.0]):
        raise ModelError(f"{label} must be a finite pose with last row [0, 0, 0, 1]; got {pose.tolist()}")


def pose_numbers(function: Callable[[float], Any], t: float, label: str) -> Array:
    """Return R, p, V and A (24,) of a target function at time t."""

    def pose(at: float, value: Any) -> Array:
        x = real_array(f"{label} at t = {at:.6g}", value)
        if x.shape != (4, 4):
            raise ShapeError(
                f"{label} at t = {at:.6g} must be a pose (4, 4), or (pose, velocity (6,), acceleration (6,)); got {value!r}"
            )
        _check_pose(x, label)
        return x

    returned = function(t)
    if isinstance(returned, tuple):
        if len(returned) != 3 or np.shape(returned[1]) != (6,) or np.shape(returned[2]) != (6,):
            raise ShapeError(
                f"{label} at t = {t:.6g} must be a pose, or (pose, velocity (6,), acceleration (6,)); got {returned!r}"
            )
        now, V, A = pose(t, returned[0]), real_array(label, returned[1]), real_array(label, returned[2])
    else:
        now, h = pose(t, returned), DIFFERENCE
        before, after = (pose(at, function(at)) for at in (t - h, t + h))
        turn = [Rotation.from_matrix(x[:3, :3] @ now[:3, :3].T).log() for x in (before, after)]
        V = np.concatenate([turn[1] - turn[0], after[:3, 3] - before[:3, 3]]) / (2.0 * h)
        A = np.concatenate([turn[1] + turn[0], after[:3, 3] - 2.0 * now[:3, 3] + before[:3, 3]]) / h**2
    numbers = np.concatenate([now[:3, :3].ravel(), now[:3, 3], V, A])
    if not np.isfinite(numbers).all():
        raise StateError(f"{label} at t = {t:.6g} must be finite; got {returned!r}")
    return numbers
