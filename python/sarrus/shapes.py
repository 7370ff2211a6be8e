"""What bodies look like: shapes, which :meth:`sarrus.Builder.add_visual` puts in their places."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Box", "Cylinder", "Mesh", "Sphere"]


@dataclass(frozen=True)
class Box:
    """A box about its frame's origin, of that size along x, y and z [m]."""

    size: tuple[float, float, float]


@dataclass(frozen=True)
class Cylinder:
    """A cylinder [m] about its frame's origin, along z."""

    radius: float
    length: float


@dataclass(frozen=True)
class Sphere:
    """A sphere [m] about its frame's origin."""

    radius: float


@dataclass(frozen=True)
class Mesh:
    """A mesh in a file, which is looked for and read when it is shown, not before.

    The file is named as it was written: a path, "package://name/path" or "file://..."; relative names start from the folder `beside`,
    packages are looked for in `package_dirs` first, then in it and above it. With a folder, the file has to lie in it, in its package or in
    `package_dirs` (:func:`sarrus.load`); without one it may lie anywhere. The scale along x, y and z takes the file's unit to metres;
    a negative one mirrors.
    """

    file: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    beside: str = ""
    package_dirs: tuple[str, ...] = ()


Shape = Box | Cylinder | Sphere | Mesh
