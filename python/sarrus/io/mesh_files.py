"""Paths of mesh files, convex hulls of meshes, and their mass properties.

trimesh, which is installed with viser, reads the files; SciPy computes the convex hulls.
"""

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

# names of a package's subfolders for model files, next to which the package has a folder "meshes"
PARTS = ("urdf", "xacro", "sdf")
# files that mark a folder as a ROS package or a Gazebo model
MARKS = ("package.xml", "manifest.xml", "model.config")
# environment variables of ROS and ROS 2 that list folders -> subfolder of each that contains the packages
ROS = {"ROS_PACKAGE_PATH": "", "AMENT_PREFIX_PATH": "share"}


LARGEST = 2**29  # bytes of a mesh
MOST_DECLARED = 2**26  # largest total of numbers that a glTF file may declare; a mesh counts once per instance
# formats that trimesh reads, except archives and formats for which trimesh starts other programs
READABLE = (".stl", ".obj", ".dae", ".glb", ".gltf", ".ply")


def opened(path: Path, **options: Any) -> Any:
    """Return trimesh's object of a mesh file. The file may refer to other files in its folder, such as textures.

    Raises ImportError if trimesh is not installed.
    """
    trimesh: Any = importlib.import_module("trimesh")
    _check_format(path)

    class Beside(trimesh.resolvers.FilePathResolver):  # type: ignore[misc]
        def get(self, name: str) -> Any:
            file = Path(self.parent) / name.strip()
            if not is_within(file, [self.parent]):
                raise ValueError(f"{name[:200]!r} is outside of the mesh's folder")
            check_regular(file, LARGEST)
            return super().get(name)

    return trimesh.load(os.fspath(path), file_type=path.suffix.lower()[1:], resolver=Beside(os.fspath(path)), **options)


def _check_format(path: Path) -> None:
    """Raise ValueError if a file's format is not supported, such as an archive, or if a glTF declares too many numbers."""
    suffix = path.suffix.lower()
    with path.open("rb") as file:
        start = file.read(20)
        if suffix not in READABLE or start.startswith(b"PK\x03\x04"):
            kind = "an archive" if start[:2] == b"PK" else "of another format"
            raise ValueError(f"the file is {kind}; expected one of {', '.join(READABLE)}")
        if suffix not in (".glb", ".gltf"):
            return
        text = file.read(int.from_bytes(start[12:16], "little")) if suffix == ".glb" else start + file.read()
    document = json.loads(text)
    accessors = document.get("accessors", ())
    numbers = [SIZES.get(accessor.get("type"), 16) * int(accessor["count"]) for accessor in accessors]
    # mesh -> number of its instances; each node that refers to the mesh is one
    shown = Counter(node["mesh"] for node in document.get("nodes", ()) if "mesh" in node)
    total = sum(numbers)
    for k, mesh in enumerate(document.get("meshes", ())):
        for part in mesh.get("primitives", ()):
            used = (part.get("indices"), *part.get("attributes", {}).values())
            total += shown[k] * sum(numbers[i] for i in used if i is not None)
    if total > MOST_DECLARED:
        raise ValueError(f"the file declares {total:.3g} numbers; expected at most {MOST_DECLARED}")


# accessor type -> numbers per element
SIZES = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}


class MeshError(Exception):
    """Error of a mesh file that cannot be read.

    Attributes: the file name, and a text with the cause and the cure. Files with the same fault have the same text.
    """

    def __init__(self, file: str, cause: str) -> None:
        super().__init__(file, cause)
        self.file, self.cause = file, cause

    def __str__(self) -> str:
        return f"{self.file}: {self.cause}"


def find(mesh: Mesh) -> Path:
    """Return the path of a mesh's file; raise MeshError if it does not exist or is outside the allowed folders.

    A model file may refer to files in its own folder, in its package, and in the user's `package_dirs`. Symbolic links are resolved before this
    check, except in ROS folders, which contain links to build folders. The file of a mesh that does not come from a model file may be in any folder.
    """
    from urllib.request import url2pathname

    scheme, separator, name = mesh.file.partition("://")
    beside = mesh.beside or "the working directory"
    if not separator or scheme == "file":
        path = Path(url2pathname(name) if separator else mesh.file)
        candidates: Iterable[tuple[Path, list[Path]]] = [(mesh.beside / path, _allowed_folders(mesh))]
        cure = "there is no such file" + ("" if path.is_absolute() else f" in {beside}")
    elif scheme in ("package", "model"):
        package, _, inside = name.lstrip("/").partition("/")
        inside = os.path.normpath(inside.lstrip("/"))
        if package in ("", ".", "..") or inside.split(os.sep)[0] == "..":
            raise MeshError(mesh.file, "the file is outside of its package")
        candidates = ((path / inside, allowed) for path, allowed in _packages(mesh, package))
        cure = (
            f"there is no folder '{package}' with this file above {beside}: "
            "give its folder by load(..., package_dirs=[...]) or the variable ROS_PACKAGE_PATH"
        )
    else:
        raise MeshError(mesh.file, f"{scheme}:// is not supported; expected a path, package:// or file://")
    for path, allowed in candidates:
        if allowed and not is_within(path, allowed):
            cure = f"the file is outside of {beside}: load(..., package_dirs=[...]) allows other folders"
        elif path.exists():
            try:
                check_regular(path, LARGEST)
            except OSError as error:
                cure = str(error.strerror)
            else:
                return path
    raise MeshError(mesh.file, cure)


def _allowed_folders(mesh: Mesh) -> list[Path]:
    """Return the folders that may contain a model file's meshes: the file's folder, its package, and `package_dirs`. An empty list allows any
    folder.
    """
    if not mesh.beside:
        return []
    beside = Path(mesh.beside).absolute()
    package = beside.parent if beside.name in PARTS else beside
    package = next((folder for folder in (beside, *beside.parents) if _is_package(folder)), package)
    return [beside, package, *map(Path, mesh.package_dirs)]


def _is_package(folder: Path) -> bool:
    return any((folder / name).is_file() for name in MARKS)


def _packages(mesh: Mesh, name: str) -> Iterator[tuple[Path, list[Path]]]:
    """Yield candidates for the folder of a package, each with the folders that may contain its files; an empty list allows any folder."""
    beside = Path(mesh.beside).absolute()
    named, above = list(map(Path, mesh.package_dirs)), [beside, *beside.parents]
    for folder in (*named, *above):
        for path in (folder / name, folder):
            # a folder that is not in package_dirs has to contain the model file, or a file that marks a package
            if path.name == name and (folder in named or path in above or _is_package(path)):
                yield path, [path, *named]
    for variable, below in ROS.items():
        for prefix in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            for path in (Path(prefix, below, name), Path(prefix, below)):
                if path.name == name:
                    yield path, []


def at_hand(mesh: Mesh) -> bool:
    """Return True if the mesh's file exists and trimesh is installed."""
    try:
        return find_spec("trimesh") is not None and bool(find(mesh))
    except MeshError:
        return False


def _hull_of(points: Array) -> Any:
    """Return SciPy's convex hull of points (n, 3); None without SciPy, or if the points have no volume."""
    if not find_spec("scipy"):
        return None
    spatial: Any = importlib.import_module("scipy.spatial")
    try:
        return spatial.ConvexHull(points)
    except (spatial.QhullError, ValueError):
        return None


def corners(points: Array) -> Array:
    """Return the corners (m, 3) of the convex hull of points (n, 3); all points if there is no hull."""
    solid = _hull_of(points)
    return points if solid is None else points[solid.vertices]


def hull_faces(points: Array) -> tuple[Array, NDArray[np.int64]] | None:
    """Return the corners (n, 3) of the convex hull of points, and the corner indices (m, 3) of its triangles.

    The corners of a triangle are counterclockwise seen from outside. Returns None if there is no hull.
    """
    if (solid := _hull_of(points)) is None:
        return None
    kept, triangles = np.unique(solid.simplices, return_inverse=True)
    a, b, c = np.moveaxis(points[solid.simplices], 1, 0)
    triangles = triangles.reshape(-1, 3)
    inward = (np.cross(b - a, c - a) * solid.equations[:, :3]).sum(axis=1) < 0.0
    triangles[inward] = triangles[inward, ::-1]
    return points[kept], triangles


def hull(mesh: Mesh) -> ConvexPoints:
    """Return the corners (n, 3) [m] of a mesh's convex hull, or all vertices if SciPy is not installed.

    Raises ModelError if the mesh cannot be read.
    """
    try:
        path = find(mesh)
        solid = opened(path, force="mesh")
        vertices = corners(np.asarray(solid.vertices, np.float64))
    except MeshError as error:
        raise ModelError(f"mesh {error}: it cannot be a collision shape") from None
    except Exception as error:  # the classes of errors depend on the format and the damage
        raise ModelError(f"mesh {mesh.file!r} cannot be read as a collision shape: {error}") from None
    vertices = np.unique(vertices, axis=0) * mesh.scale
    if not 1 <= len(vertices) <= _core.most_points or not np.isfinite(vertices).all():
        raise ModelError(
            f"mesh {mesh.file!r} has {len(vertices)} vertices; expected 1 to {_core.most_points} finite vertices for contact"
        )
    return ConvexPoints(tuple(map(tuple, vertices.tolist())))


# ---- mass properties of meshes from their triangles, as in MuJoCo ----------------------------------------------------


def triangles(path: Path, *, hull: bool = False) -> Array:
    """Return the corners (n, 3, 3) of the triangles in a file, or of their convex hull.

    Raises ModelError if the file cannot be read, ImportError if trimesh is not installed.
    """
    importlib.import_module("trimesh")
    path = Path(path)
    try:
        mesh = opened(path, force="mesh", process=False)
        corners = np.asarray((mesh.convex_hull if hull else mesh).triangles, dtype=np.float64)
    except Exception as error:  # the classes of errors depend on the format and the damage
        raise ModelError(f"cannot read mesh {path.name!r}: {error}") from None
    if not corners.size or not np.isfinite(corners).all():
        raise ModelError(f"mesh {path.name!r} has no triangles, or vertices that are not finite")
    return corners.astype(np.float32).astype(np.float64)  # rounded to 32 bits, as MuJoCo stores vertices


def mass_properties(corners: Array, method: str) -> tuple[float, Array, Array]:
    """Return the volume [m³], centre of mass (3,) [m], and inertia (3, 3) about it for unit density, of triangles (n, 3, 3) [m].

    Each triangle forms a tetrahedron with one common point. Methods "exact" and "convex" sum these tetrahedra with signed volumes. "legacy" uses
    absolute volumes, which counts some regions of a nonconvex body twice. "shell" sums the triangles themselves, with unit density per area.
    """
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2.0
    area: Array = np.sqrt((normal**2).sum(axis=1))
    middle = corners.mean(axis=1)
    apex = area @ middle / area.sum()

    def parts(apex: Array) -> Array:
        if method == "shell":
            return area
        volumes: Array = ((middle - apex) * normal).sum(axis=1) / 3.0
        return np.abs(volumes) if method == "legacy" else volumes

    first = parts(apex)
    com = first @ (middle if method == "shell" else 0.75 * middle + 0.25 * apex) / first.sum()
    # as in MuJoCo, "legacy" uses the volume of the tetrahedra with their apex at the centre of mass
    part, arms = parts(com), corners - com
    volume = float(part.sum())
    if not 0.0 < volume < np.inf:
        raise ModelError(f"mesh of volume {volume:g}; expected triangles that are counterclockwise from outside")
    total = arms.sum(axis=1)
    # second moment of a tetrahedron with a vertex at the origin, or of a triangle: the sum of p pᵀ over its corners p, plus s sᵀ with s = sum of p
    spread = np.einsum("n,nki,nkj->ij", part, arms, arms) + np.einsum("n,ni,nj->ij", part, total, total)
    spread /= 12.0 if method == "shell" else 20.0
    return volume, com, np.trace(spread) * np.eye(3) - spread
