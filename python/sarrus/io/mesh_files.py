"""Mesh files: where they are, the convex hulls of meshes, and their mass properties. Files are read with trimesh, which viser brings along; hulls are SciPy's."""

from __future__ import annotations

import importlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays import Array
from .._files import check_regular, is_within
from ..errors import ModelError
from ..shapes import ConvexPoints, Mesh

# what the folder of a package is called that holds model files, with "meshes" beside it
PARTS = ("urdf", "xacro", "sdf")
# files that make a folder a package of ROS, or a model of Gazebo
MARKS = ("package.xml", "manifest.xml", "model.config")
# environment variables of ROS and ROS 2 with folders, and where packages lie in those
ROS = {"ROS_PACKAGE_PATH": "", "AMENT_PREFIX_PATH": "share"}


LARGEST = 2**29  # bytes of a mesh
MOST_DECLARED = 2**26  # numbers of which a file may say that they are there, each as often as it shows them
KNOWN = (
    ".stl",
    ".obj",
    ".dae",
    ".glb",
    ".gltf",
    ".ply",
)  # of what trimesh reads: no archives, and nothing that runs other programs


def opened(path: Path, **options: Any) -> Any:
    """What trimesh makes of a file, and of others in its folder that it names, such as textures: ImportError without trimesh."""
    trimesh: Any = importlib.import_module("trimesh")
    _check_format(path)

    class Beside(trimesh.resolvers.FilePathResolver):  # type: ignore[misc]
        def get(self, name: str) -> Any:
            file = Path(self.parent) / name.strip()
            if not is_within(file, [self.parent]):
                raise ValueError(f"{name[:200]!r} leads out of the mesh's folder")
            check_regular(file, LARGEST)
            return super().get(name)

    return trimesh.load(os.fspath(path), file_type=path.suffix.lower()[1:], resolver=Beside(os.fspath(path)), **options)


def _check_format(path: Path) -> None:
    """ValueError for what is no mesh of a known format: an archive, whatever its name, or a glTF of more numbers than are read."""
    suffix = path.suffix.lower()
    with path.open("rb") as file:
        start = file.read(20)
        if suffix not in KNOWN or start.startswith(b"PK\x03\x04"):
            raise ValueError(
                f"it is {'an archive' if start[:2] == b'PK' else 'of another format'}; {', '.join(KNOWN)} are read"
            )
        if suffix not in (".glb", ".gltf"):
            return
        text = file.read(int.from_bytes(start[12:16], "little")) if suffix == ".glb" else start + file.read()
    document = json.loads(text)
    numbers = [
        SIZES.get(accessor.get("type"), 16) * int(accessor["count"]) for accessor in document.get("accessors", ())
    ]
    # a node shows a mesh once more
    shown = Counter(node["mesh"] for node in document.get("nodes", ()) if "mesh" in node)
    parts = [
        (
            shown[k],
            [
                k
                for part in mesh.get("primitives", ())
                for k in (part.get("indices"), *part.get("attributes", {}).values())
            ],
        )
        for k, mesh in enumerate(document.get("meshes", ()))
    ]
    total = sum(numbers) + sum(times * sum(numbers[k] for k in used if k is not None) for times, used in parts)
    if total > MOST_DECLARED:
        raise ValueError(f"it declares {total:.3g} numbers, and at most {MOST_DECLARED} are read")


SIZES = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}  # of accessors


class MeshError(Exception):
    """A mesh cannot be shown: what is wrong and would be right, which other files may share; the message has the file in front."""

    def __init__(self, file: str, cause: str) -> None:
        super().__init__(file, cause)
        self.file, self.cause = file, cause

    def __str__(self) -> str:
        return f"{self.file}: {self.cause}"


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


def at_hand(mesh: Mesh) -> bool:
    """Whether its file is there, and trimesh, which reads it."""
    try:
        return find_spec("trimesh") is not None and bool(find(mesh))
    except MeshError:
        return False


def _hull_of(points: Array) -> Any:
    """SciPy's; None without it, and of points (n, 3) that have no inside."""
    if not find_spec("scipy"):
        return None
    spatial: Any = importlib.import_module("scipy.spatial")
    try:
        return spatial.ConvexHull(points)
    except (spatial.QhullError, ValueError):
        return None


def corners(points: Array) -> Array:
    """Of points those at the corners of their convex hull; where there is none all, which touch planes in the same places."""
    solid = _hull_of(points)
    return points if solid is None else points[solid.vertices]


def hull_faces(points: Array) -> tuple[Array, NDArray[np.int64]] | None:
    """Corners (n, 3) of a convex hull, and its triangles (m, 3), counterclockwise from outside; None where there is none."""
    if (solid := _hull_of(points)) is None:
        return None
    kept, triangles = np.unique(solid.simplices, return_inverse=True)
    a, b, c = np.moveaxis(points[solid.simplices], 1, 0)
    triangles = triangles.reshape(-1, 3)
    inward = (np.cross(b - a, c - a) * solid.equations[:, :3]).sum(axis=1) < 0.0
    triangles[inward] = triangles[inward, ::-1]
    return points[kept], triangles


def hull(mesh: Mesh) -> ConvexPoints:
    """The corners of its convex hull [m]; without SciPy all its vertices: ModelError where it cannot be read."""
    try:
        path = find(mesh)
        solid = opened(path, force="mesh")
        vertices = corners(np.asarray(solid.vertices, np.float64))
    except MeshError as error:
        raise ModelError(f"mesh {error}: what it touches is not known") from None
    except Exception as error:  # of a dozen kinds, by format and damage
        raise ModelError(f"cannot read mesh {mesh.file!r}, to say what it touches: {error}") from None
    vertices = np.unique(vertices, axis=0) * mesh.scale
    if not 1 <= len(vertices) <= _core.most_points or not np.isfinite(vertices).all():
        raise ModelError(
            f"mesh {mesh.file!r} has {len(vertices)} vertices; from 1 to {_core.most_points} finite ones can touch"
        )
    return ConvexPoints(tuple(map(tuple, vertices.tolist())))


# ---- mass properties of meshes, as MuJoCo takes them from their triangles --------------------------------------------


def triangles(path: Path, *, hull: bool = False) -> Array:
    """Corners (n, 3, 3) of the triangles in a file, or of their convex hull: ModelError where it cannot be read, ImportError without trimesh."""
    importlib.import_module("trimesh")
    path = Path(path)
    try:
        mesh = opened(path, force="mesh", process=False)
        corners = np.asarray((mesh.convex_hull if hull else mesh).triangles, dtype=np.float64)
    except Exception as error:  # of a dozen kinds, by format and damage
        raise ModelError(f"cannot read mesh {path.name!r}: {error}") from None
    if not corners.size or not np.isfinite(corners).all():
        raise ModelError(f"mesh {path.name!r} has no triangles, or some that are not finite")
    return corners.astype(np.float32).astype(np.float64)  # as many digits as MuJoCo keeps


def mass_properties(corners: Array, way: str) -> tuple[float, Array, Array]:
    """Volume, centre of mass, and inertia about it by unit density.

    Of the pyramids from one point to all triangles: with signed volumes ("exact", "convex"); with positive ones, which count some of what
    is not convex twice ("legacy"); or of the triangles themselves, by unit density per area ("shell").
    """
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2.0
    area: Array = np.sqrt((normal**2).sum(axis=1))
    middle = corners.mean(axis=1)
    apex = area @ middle / area.sum()

    def parts(apex: Array) -> Array:
        if way == "shell":
            return area
        volumes: Array = ((middle - apex) * normal).sum(axis=1) / 3.0
        return np.abs(volumes) if way == "legacy" else volumes

    first = parts(apex)
    com = first @ (middle if way == "shell" else 0.75 * middle + 0.25 * apex) / first.sum()
    part, arms = parts(com), corners - com  # "legacy" finds another volume from there, and keeps it
    volume = float(part.sum())
    if not 0.0 < volume < np.inf:
        raise ModelError(f"mesh of volume {volume:g}: its triangles are to be seen from outside, counterclockwise")
    total = arms.sum(axis=1)
    # second moments of a tetrahedron from the origin, or of a triangle: those of its corners and of their sum
    spread = np.einsum("n,nki,nkj->ij", part, arms, arms) + np.einsum("n,ni,nj->ij", part, total, total)
    spread /= 12.0 if way == "shell" else 20.0
    return volume, com, np.trace(spread) * np.eye(3) - spread
