"""Shapes of bodies: what they look like (:meth:`sarrus.Builder.add_visual`), and where they touch (:meth:`sarrus.Builder.add_shape`)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

__all__ = ["Box", "Capsule", "ConvexPoints", "Cylinder", "Ellipsoid", "Mesh", "Plane", "Point", "Sphere", "Terrain"]


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

    As a shape that touches (:meth:`sarrus.Builder.add_shape`) it is the convex hull of its vertices, which touches planes alone and passes through
    all else; the file is read where that is asked first.
    """

    file: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    beside: str = ""
    package_dirs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Capsule:
    """A cylinder [m] about its frame's origin, along z, with half a sphere on either end; the length is that between their centres. It touches."""

    radius: float
    length: float


@dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid about its frame's origin, of these semi-axes along x, y and z [m]. It touches planes."""

    semi_axes: tuple[float, float, float]


@dataclass(frozen=True)
class ConvexPoints:
    """The convex hull of points in its frame, (n, 3) [m], of which those within count for nothing: a mesh's vertices, say. It touches planes.

    At most four of them touch at a time: the lowest, and three that are far from it. At most 16384 are taken, each of which costs time in every step:
    of a fine mesh give the corners of its hull, ``trimesh.load(file).convex_hull.vertices``, or a :class:`Mesh`.

    Examples
    --------
    >>> from sarrus.shapes import ConvexPoints
    >>> wedge = ConvexPoints([(x, y, z) for y in (-0.1, 0.1) for x, z in ((-0.2, 0.0), (0.2, 0.0), (0.2, 0.15))])
    """

    points: tuple[tuple[float, float, float], ...]

    def __post_init__(self) -> None:
        """Tuples of an array or of lists, so that shapes compare; what is neither is refused where the shape is added."""
        if isinstance(self.points, list | tuple) or hasattr(self.points, "__array__"):
            with contextlib.suppress(TypeError, ValueError):
                points = tuple((float(x), float(y), float(z)) for x, y, z in self.points)
                object.__setattr__(self, "points", points)


@dataclass(frozen=True)
class Point:
    """The origin of its frame: a sphere without a radius. It touches."""


@dataclass(frozen=True)
class Plane:
    """All that is below z = 0 of its frame: level ground, a wall, a ramp. It touches."""


@dataclass(frozen=True)
class Terrain:
    """Ground of heights z = f(x, y) over a rectangle about its frame's origin. It touches points and spheres.

    Parameters
    ----------
    heights : rows along y, from the lowest, of heights along x, from the lowest; two or more of either [m]
    size : of the rectangle along x and y, between its outermost heights [m]

    Notes
    -----
    Between heights it is smooth: cubics with the slopes of central differences (Catmull and Rom 1974), which go through all of them. Beyond
    its border it goes on level. Where two places of it are equally near, in a valley narrower than the sphere, one of them is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from sarrus.shapes import Terrain
    >>> x, y = np.meshgrid(np.linspace(-2, 2, 41), np.linspace(-1, 1, 21))
    >>> hills = Terrain(0.1 * np.sin(3 * x) * np.cos(2 * y), (4.0, 2.0))
    """

    heights: tuple[tuple[float, ...], ...]
    size: tuple[float, float]


Shape = Box | Cylinder | Sphere | Mesh
ContactShape = Box | Capsule | ConvexPoints | Cylinder | Ellipsoid | Mesh | Plane | Point | Sphere | Terrain
