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
from .._files import check_regular, is_within
from ..io.mesh_inertia import LARGEST, opened
from ..shapes import Mesh

# what the folder of a package is called that holds model files, with "meshes" beside it
PARTS = ("urdf", "xacro", "sdf")
# files that make a folder a package of ROS, or a model of Gazebo
MARKS = ("package.xml", "manifest.xml", "model.config")
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
    """The file of a mesh. Raises MeshError where there is none, or none that may be read.

    A model file may name what lies in its own folder, in the package that this lies in, and in those that the user names, all links
    followed. In folders of ROS links stand for what was built elsewhere, and may lead there. A mesh without a folder is a user's own.
    """
    from urllib.request import url2pathname

    scheme, separator, name = mesh.file.partition("://")
    beside = mesh.beside or "the working directory"
    if not separator or scheme == "file":
        path = Path(url2pathname(name) if separator else mesh.file)
        candidates: Iterable[tuple[Path, list[Path]]] = [(mesh.beside / path, _own(mesh))]
        cure = "there is no such file" + ("" if path.is_absolute() else f" in {beside}")
    elif scheme in ("package", "model"):
        package, _, inside = name.lstrip("/").partition("/")
        inside = os.path.normpath(inside.lstrip("/"))
        if package in ("", ".", "..") or inside.split(os.sep)[0] == "..":
            raise MeshError(mesh.file, "it leads out of its package")
        candidates = ((path / inside, allowed) for path, allowed in _packages(mesh, package))
        cure = (
            f"there is no folder '{package}' with that file above {beside}: "
            "load(..., package_dirs=[...]), or the variable ROS_PACKAGE_PATH, says where it is"
        )
    else:
        raise MeshError(mesh.file, f"{scheme}:// is not fetched: a path, package:// and file:// are read")
    for path, allowed in candidates:
        if allowed and not is_within(path, allowed):
            cure = f"it leads out of {beside}: load(..., package_dirs=[...]) names other folders that it may lie in"
        elif path.exists():
            try:
                check_regular(path, LARGEST)
            except OSError as error:
                cure = str(error.strerror)
            else:
                return path
    raise MeshError(mesh.file, cure)


def _own(mesh: Mesh) -> list[Path]:
    """Where a model file's meshes may lie: in its folder, in the package that holds that, and where the user says; none: anywhere."""
    if not mesh.beside:
        return []
    beside = Path(mesh.beside).absolute()
    package = beside.parent if beside.name in PARTS else beside
    package = next((folder for folder in (beside, *beside.parents) if _is_package(folder)), package)
    return [beside, package, *map(Path, mesh.package_dirs)]


def _is_package(folder: Path) -> bool:
    return any((folder / name).is_file() for name in MARKS)


def _packages(mesh: Mesh, name: str) -> Iterator[tuple[Path, list[Path]]]:
    """Folders that may be the package of that name, and where what it holds may lie; none: anywhere, but not above it by its name."""
    beside = Path(mesh.beside).absolute()
    named, above = list(map(Path, mesh.package_dirs)), [beside, *beside.parents]
    for folder in (*named, *above):
        for path in (folder / name, folder):
            # of what lies near the file and was not named, a package says that it is one, or holds the file
            if path.name == name and (folder in named or path in above or _is_package(path)):
                yield path, [path, *named]
    for variable, below in ROS.items():
        for prefix in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            for path in (Path(prefix, below, name), Path(prefix, below)):
                if path.name == name:
                    yield path, []


def read(path: Path) -> Content:
    """What is in a mesh file: .stl .obj .dae .glb .ply. Raises MeshError for a file that is no mesh, or a format that cannot be read.

    COLLADA's unit counts, its up-axis does not: so do RViz and Pinocchio.
    """
    trimesh: Any = importlib.import_module("trimesh")
    suffix = path.suffix.lower()
    if suffix == ".dae" and find_spec("collada") is None:
        raise MeshError(path.name, "COLLADA files need pycollada: pip install pycollada")
    try:
        scene = opened(path, force="scene")
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
