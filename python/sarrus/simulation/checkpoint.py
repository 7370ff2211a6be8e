"""Checkpoints from which a simulation resumes."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._arrays import Array, real_array
from .._renamed import with_new_kinds
from ..description.specs import Description
from ..errors import ModelError, check_choice
from .arguments import STABILISATIONS
from .trajectory import Trajectory

# required fields of a checkpoint, in addition to the state x, with their types
FIELDS: dict[str, Any] = {
    "mechanism": Description, "method": str, "start": Real, "k": Integral, "dt": Real, "t": Real, "h": Real, "shown": tuple,
    "stabilisation": str, "close_stages": bool, "force_elements": tuple,
}  # fmt: skip


def check_fields(checkpoint: Mapping[str, Any]) -> None:
    """Raise TypeError or ModelError for the first invalid field of a checkpoint."""
    for name, kind in FIELDS.items():
        x: Any = checkpoint[name]
        if not isinstance(x, kind) or (isinstance(x, bool) and kind is not bool):
            raise TypeError(f"'{name}' of the checkpoint must be a {kind.__name__.lower()}; got {x!r}")
        if name == "stabilisation":
            check_choice("'stabilisation' of the checkpoint", x, STABILISATIONS, ModelError)
        if name == "k" and not 0 <= x <= 2**53:
            raise ModelError(f"'k' of the checkpoint must be a number of steps, not negative; got {x!r}")
        if kind is Real and not (np.isfinite(x) and (x > 0.0 or name in ("start", "t"))):
            raise ModelError(
                f"'{name}' of the checkpoint must be {'positive and ' * (name in ('dt', 'h'))}finite; got {x!r}"
            )
        if name == "shown" and not (len(x) == 2 and isinstance(x[0], Real) and np.isfinite(float(x[0]))):
            raise ModelError(f"'shown' of the checkpoint must be a finite time and a state; got {x!r}")


def checked_spacing(checkpoint: Mapping[str, Any]) -> int:
    """Return the number of steps between samples; 1 for a checkpoint of an earlier version."""
    every: object = checkpoint.get("every", 1)
    if isinstance(every, bool) or not isinstance(every, (int, np.integer)) or every < 1:
        raise ModelError(f"'every' of the checkpoint must be a positive number of steps; got {every!r}")
    return int(every)


def state_of_checkpoint(name: str, value: Any, size: int) -> Array:
    """Return a checked copy of a state (size,)."""
    x = real_array(f"'{name}' of the checkpoint", value).copy()
    if x.shape != (size,):
        raise ModelError(
            f"'{name}' of the checkpoint has shape {x.shape}; expected ({size},). It belongs to a controller with other internal states"
        )
    if not np.isfinite(x).all():
        raise ModelError(f"'{name}' of the checkpoint must be finite; got {x}")
    return x


def as_checkpoint(value: Any) -> dict[str, Any]:
    """Return a copy of a checkpoint, or of the checkpoint of a Trajectory."""
    checkpoint = value.checkpoint if isinstance(value, Trajectory) else value
    if isinstance(value, Trajectory) and checkpoint is None:
        raise ModelError(
            "resume: this Trajectory has no checkpoint, because it was not simulated, or was loaded without it"
        )
    if not isinstance(checkpoint, Mapping):
        raise TypeError(f"resume must be a Trajectory or its checkpoint; got {value!r}")
    missing = sorted({"x", *FIELDS} - checkpoint.keys())
    if missing:
        raise ModelError(f"resume: the checkpoint lacks {', '.join(missing)}")
    return {**checkpoint, "force_elements": with_new_kinds(checkpoint["force_elements"])}
