"""Mesh files, and meshes of bars, pins, sleeves, balls and pedestals, and of boxes, cylinders and spheres.

All shapes except boxes are surfaces of revolution, described by a profile of (radius, height) pairs about an axis. A mesh consists of vertices (k, 3)
[m] and triangles (m, 3), which are indices of vertices.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, NDArray
from ..figures.skeleton import FLAT, Place
from ..io.mesh_files import MeshError as MeshError
from ..io.mesh_files import find as find
from ..io.mesh_files import opened
from ..shapes import Box, Cylinder, Sphere

# ---- mesh files, read with trimesh, a dependency of viser ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Content:
    """Contents of a mesh file: vertices (k, 3) in the file's unit, and faces (m, 3), which are indices of vertices.

    `sharp` is True if the file has no normals, so that edges between faces are drawn sharp. `colored` is the mesh as binary glTF with the file's
    colours and textures, or None if the file has neither.
    """

    vertices: Array
    faces: NDArray[np.int64]
    sharp: bool
    colored: bytes | None


def read(path: Path) -> Content:
    """Read a mesh file (.stl .obj .dae .glb .gltf .ply); raise MeshError if it is not a mesh, or has another format.

    As in RViz and Pinocchio, the unit of a COLLADA file is applied, but its up-axis is ignored.
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
        mesh = trimesh.util.concatenate([trimesh.Trimesh(s.vertices, s.faces, process=False) for s in solids])
        colored = None
        if any(solid.visual.defined for solid in solids):
            scene.apply_scale(unit)
            colored = scene.export(file_type="glb")
    except MeshError:
        raise
    except Exception as error:  # trimesh's readers can raise any error
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise MeshError(path.name, f"cannot be read ({reason}); expected .stl, .obj, .dae or .glb") from error
    vertices = unit * np.asarray(mesh.vertices, dtype=np.float64)
    if not np.isfinite(vertices).all():
        raise MeshError(path.name, "contains vertices that are not finite")
    return Content(vertices, np.asarray(mesh.faces, dtype=np.int64), suffix == ".stl", colored)


# ---- bodies of revolution and plates ---------------------------------------------------------------------------------

Triangles = tuple[Array, NDArray[np.int64]]


def revolved(profile: ArrayLike, at: Array, axis: Array, sides: int = 20, *, sharp: bool = False) -> Triangles:
    """Return a surface of revolution of a profile of (radius, height) pairs about an axis through a point.

    If `sharp` is True, the surface has sharp edges at the corners of the profile.
    """
    points = np.asarray(profile, dtype=np.float64)
    radius, height = (np.repeat(points, 2, axis=0)[1:-1] if sharp else points).T
    _, _, across = np.linalg.svd(axis[None])
    first = across[1]
    second = np.cross(axis, first)
    angle = np.linspace(0.0, 2 * np.pi, sides, endpoint=False)[:, None]
    circle = np.cos(angle) * first + np.sin(angle) * second
    vertices = at + radius[:, None, None] * circle + height[:, None, None] * axis
    row, column = np.arange(len(radius) - 1)[:, None] * sides, np.arange(sides)
    a, b = row + column, row + (column + 1) % sides
    faces = np.stack([a, b, b + sides, a, b + sides, a + sides], axis=-1)
    return vertices.reshape(-1, 3), faces.reshape(-1, 3)


def capsule(a: Array, b: Array, radius: float) -> Triangles:
    """Return a round bar with round ends."""
    length = math.hypot(*(b - a))  # hypot avoids an intermediate overflow
    axis = (b - a) / length if length > 0 else np.array([0.0, 0.0, 1.0])
    angle = np.linspace(-np.pi / 2, np.pi / 2, 9)
    profile = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return revolved(np.concatenate([profile[:5], profile[4:] + np.array([0.0, length])]), a, axis, 14)


def hinge(place: Place, radius: float) -> Triangles:
    """Return a pin along a revolute axis, a sleeve around a prismatic axis, or a ball for joints without a single axis."""
    if place.kind == "Fixed":
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
    if place.axis is None:
        return ball(place.point, 1.5 * radius)
    wide, half = (1.3, 2.2) if place.kind != "Revolute" else (1.15, 1.6)
    r, h, edge = wide * radius, half * radius, 0.15 * radius
    profile = [(0, -h), (r - edge, -h), (r, edge - h), (r, h - edge), (r - edge, h), (0, h)]
    return revolved(profile, place.point, place.axis, sharp=True)


def ball(at: Array, radius: float, rings: int = 9, sides: int = 20) -> Triangles:
    """Return a sphere."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, rings)
    return revolved(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1), at, np.eye(3)[2], sides)


def solid(shape: Box | Cylinder | Sphere) -> Triangles:
    """Return the mesh of a visual's shape, centred at the origin.

    >>> from sarrus.viewer.shapes import solid
    >>> from sarrus.shapes import Box
    >>> vertices, faces = solid(Box((2.0, 4.0, 6.0)))
    >>> vertices.max(axis=0).tolist(), len(vertices), len(faces)
    ([1.0, 2.0, 3.0], 24, 12)
    """
    if isinstance(shape, Sphere):
        return ball(np.zeros(3), shape.radius, 25, 48)
    if isinstance(shape, Cylinder):
        r, h = shape.radius, shape.length / 2
        return revolved([(0, -h), (r, -h), (r, h), (0, h)], np.zeros(3), np.eye(3)[2], 48, sharp=True)
    # each side has its own four corners, so that edges are sharp; this is the side towards z, from which the other five follow
    side = np.array([(-1, -1, 1), (1, -1, 1), (1, 1, 1), (-1, 1, 1)])
    turned = np.concatenate([sign * np.roll(side, k, axis=1)[::sign] for k in range(3) for sign in (1, -1)])
    faces = np.array([(0, 1, 2), (0, 2, 3)]) + 4 * np.arange(6)[:, None, None]
    return turned * np.array(shape.size) / 2, faces.reshape(-1, 3)


def cone(at: Array, side: Array, radius: float) -> Triangles:
    """Return the mesh of a conical pedestal whose tip is at an anchor."""
    h, r = 4.0 * radius, 2.4 * radius
    return revolved([(0.6 * radius, 0), (r, h), (r, 1.15 * h), (0, 1.15 * h)], at, side, sharp=True)


def plate(points: Array, thickness: float) -> tuple[Triangles, bool]:
    """Return the mesh of the convex hull of points (k, 3) that are not on a line, and True if the points are in a plane.

    If the points are in a plane, the mesh is a plate of this thickness [m].

    >>> import numpy as np
    >>> from sarrus.viewer.shapes import plate
    >>> (vertices, faces), flat = plate(np.array([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]), 0.2)
    >>> np.ptp(vertices, axis=0).tolist(), flat
    ([1.0, 1.0, 0.2], True)
    """
    middle = points.mean(axis=0)
    _, extents, axes = np.linalg.svd(points - middle)
    flat = len(points) < 4 or bool(extents[2] <= FLAT * extents[0])
    if flat:
        points = np.concatenate([points + side * thickness / 2 * axes[2] for side in (1, -1)])
    # three points form a face if all other points are on one side of their plane; testing all triples is fast enough for few points
    triples = np.array(list(itertools.combinations(range(len(points)), 3)))
    a, b, c = points[triples].transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    distance = np.einsum("fi,fki->fk", normals, points - a[:, None])
    tiny = 1e-9 * extents[0] ** 3
    outward, inward = (distance <= tiny).all(axis=1), (distance >= -tiny).all(axis=1)
    faces = np.concatenate([triples[outward & ~inward], triples[inward & ~outward][:, ::-1]])
    # corners are not shared between faces, so that edges are sharp
    return (points[faces.ravel()], np.arange(faces.size).reshape(-1, 3)), flat


def together(parts: Sequence[Triangles]) -> Triangles:
    """Return several meshes as one."""
    vertices, faces = zip(*parts, strict=True)
    starts = np.cumsum([0, *map(len, vertices)])
    return np.concatenate(vertices), np.concatenate([f + start for f, start in zip(faces, starts, strict=False)])
