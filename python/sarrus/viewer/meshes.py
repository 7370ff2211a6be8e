"""What is in mesh files. Read with trimesh, which viser brings along, when a mechanism is viewed."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array, NDArray
from ..io.mesh_files import MeshError as MeshError
from ..io.mesh_files import find as find  # which the viewer asks here
from ..io.mesh_files import opened


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


def read(path: Path) -> Content:
    """What is in a mesh file: .stl .obj .dae .glb .gltf .ply. Raises MeshError for a file that is no mesh, or a format that cannot be read.

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
