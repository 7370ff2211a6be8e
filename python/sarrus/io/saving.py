"""Writing a mechanism to a file; the suffix chooses the format."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .._arrays import checked_path
from ..errors import ModelError
from ..mechanism import Mechanism, checked_mechanism
from . import complete, write_mjcf, write_sdf, write_urdf, write_usd

WRITERS: dict[str, Callable[..., list[Path]]] = {
    ".json": complete.save,
    ".urdf": write_urdf.save,
    ".xml": write_mjcf.save,
    ".sdf": write_sdf.save,
    ".usda": write_usd.save,
    ".usd": write_usd.save,
}


def save(robot: Mechanism, path: str | os.PathLike[str], *, lossy: bool = False) -> list[Path]:
    """Write a mechanism to a file, as :meth:`sarrus.Mechanism.save`; returns the files that were written."""
    checked_mechanism(robot, "robot")
    file = checked_path(path)
    suffix = file.suffix.lower()
    if suffix not in WRITERS:
        raise ModelError(
            f"{file}: cannot write {suffix or 'a file without suffix'}; {', '.join(WRITERS)} can be written"
        )
    return WRITERS[suffix](robot, file, lossy=lossy)
