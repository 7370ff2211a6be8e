"""Functions that write a mechanism to a file; the suffix selects the format."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from .._arrays import checked_path
from ..errors import ModelError
from ..mechanism import Mechanism, checked_mechanism

# suffix -> name of the module that writes the format; it is imported when needed
WRITERS = {
    ".json": "complete",
    ".urdf": "write_urdf",
    ".xml": "write_mjcf",
    ".sdf": "write_sdf",
    ".usda": "write_usd",
    ".usd": "write_usd",
}


def save(robot: Mechanism, path: str | os.PathLike[str], *, lossy: bool = False) -> list[Path]:
    """Write a mechanism to a file as :meth:`sarrus.Mechanism.save` does, and return the paths of the written files."""
    checked_mechanism(robot, "robot")
    file = checked_path(path)
    suffix = file.suffix.lower()
    if suffix not in WRITERS:
        raise ModelError(
            f"{file}: cannot write {suffix or 'a file without suffix'}; expected one of {', '.join(WRITERS)}"
        )
    writer = importlib.import_module(f".{WRITERS[suffix]}", __package__)
    files: list[Path] = writer.save(robot, file, lossy=lossy)
    return files
