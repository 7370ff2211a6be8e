"""Mesh files: where they are, and what is in them. Read with trimesh, which viser brings along, when a mechanism is viewed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Array
from ..description.specs import Mesh

# environment variables of ROS and ROS 2 with folders, and where packages lie in those
ROS = {"ROS_PACKAGE_PATH": "", "AMENT_PREFIX_PATH": "share"}


class MeshError(Exception):
    """A mesh cannot be shown: what is wrong and would be right, which other files may share; the message has the file in front."""

    def __init__(self, file: str, cause: str) -> None:
        super().__init__(file, cause)
        self.file, self.cause = file, cause

    def __str__(self) -> str:
        return f"{self.file}: {self.cause}"


@dataclass(frozen=True, eq=False)
class Content:
    """What is in a mesh file: vertices (k, 3) in the file's unit, and faces (m, 3) of indices into them.

    Faces are sharp where they meet in edges: the file has no normals that would say otherwise. Colored is the same as binary glTF with the
    file's colours and textures, None where it has none.
    """

    vertices: Array
    faces: NDArray[np.int64]
    sharp: bool
    colored: bytes | None


def find(mesh: Mesh) -> Path:
    """The file of a mesh. Raises MeshError where there is none, or none that may be read."""
    from urllib.request import url2pathname

    scheme, separator, name = mesh.file.partition("://")
    beside = mesh.beside or "the working directory"
    if not separator or scheme == "file":
        path = Path(url2pathname(name) if separator else mesh.file)
        found: Iterable[Path] = [mesh.beside / path]
        cure = "there is no such file" + ("" if path.is_absolute() else f" in {beside}")
    elif scheme in ("package", "model"):
        package, _, inside = name.lstrip("/").partition("/")
        found = (
            path / inside for folder in _folders(mesh) for path in (folder / package, folder) if path.name == package
        )
        cure = (
            f"there is no folder '{package}' with that file above {beside}: "
            "load(..., package_dirs=[...]), or the variable ROS_PACKAGE_PATH, says where it is"
        )
    else:
        raise MeshError(mesh.file, f"{scheme}:// is not fetched: a path, package:// and file:// are read")
    for path in found:
        if os.path.isfile(path):
            return path
    raise MeshError(mesh.file, cure)


def _folders(mesh: Mesh) -> Iterator[Path]:
    """Where packages may lie, or which may be one."""
    beside = Path(mesh.beside).absolute()
    yield from (*map(Path, mesh.package_dirs), beside, *beside.parents)
    for variable, below in ROS.items():
        for folder in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(folder, below)


def read(path: Path) -> Content:
    """What is in a mesh file: .stl .obj .dae .glb .ply. Raises MeshError for a file that is no mesh, or a format that cannot be read.

    COLLADA's unit counts, its up-axis does not: so do RViz and Pinocchio.
    """
    trimesh: Any = importlib.import_module("trimesh")
    suffix = path.suffix.lower()
    if suffix == ".dae" and find_spec("collada") is None:
        raise MeshError(path.name, "COLLADA files need pycollada: pip install pycollada")
    try:
        scene = trimesh.load(os.fspath(path), force="scene", file_type=suffix[1:])
        solids = [solid for solid in scene.dump() if isinstance(solid, trimesh.Trimesh) and len(solid.faces)]
        if not solids:
            raise MeshError(path.name, "trimesh finds no faces in it")
        unit = trimesh.units.unit_conversion(scene.units, "meters") if suffix == ".dae" and scene.units else 1.0
        whole = trimesh.util.concatenate([trimesh.Trimesh(s.vertices, s.faces, process=False) for s in solids])
        colored = None
        if any(solid.visual.defined for solid in solids):
            scene.apply_scale(unit)
            colored = scene.export(file_type="glb")
    except MeshError:
        raise
    except Exception as error:  # a foreign file in the hands of any of a dozen readers
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise MeshError(path.name, f"cannot be read ({reason}): .stl, .obj, .dae and .glb are") from error
    vertices = unit * np.asarray(whole.vertices, dtype=np.float64)
    if not np.isfinite(vertices).all():
        raise MeshError(path.name, "holds numbers that are not finite")
    return Content(vertices, np.asarray(whole.faces, dtype=np.int64), suffix == ".stl", colored)
