"""Mass properties of meshes, as MuJoCo takes them from their triangles."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np

from .._arrays import Array
from ..errors import ModelError
from .mesh_files import opened


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
