"""Shapes of bodies: for visuals (:meth:`sarrus.Builder.add_visual`) and for collision (:meth:`sarrus.Builder.add_shape`).

A shape has its bounding sphere, its inertia by unit density, and its numbers for the core. The numbers are checked when the shape is added to a body.
The tables of file formats are in :mod:`sarrus.io.formats`.
"""

from __future__ import annotations

import abc
import contextlib
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Vector = tuple[float, float, float]

__all__ = ["Box", "Capsule", "ConvexPoints", "Cylinder", "Ellipsoid", "Mesh", "Plane", "Point", "Sphere", "Terrain"]


class AnyShape:
    """Base of all shapes: bounding sphere and numbers for the core."""

    _reach: float = math.inf  # radius of the sphere about its middle that holds it [m]
    _middle: Vector = (0.0, 0.0, 0.0)  # in its frame

    @property
    def _kind(self) -> str:
        """Name of its kind in the core."""
        return type(self).__name__

    def _core_terms(self) -> dict[str, Any]:
        """Return its numbers for the core; missing ones are zero: see to_shape in bindings/contact.cpp."""
        return {}


class Volume(NamedTuple):
    """Volume of a shape.

    halves : half sizes [m] along x, y and z; of a body of revolution about z the radius and half the length
    reach : radius of the bounding sphere [m]
    size : [m³]
    squares : integrals of x², y² and z² over it
    """

    halves: tuple[float, ...]
    reach: float
    size: float
    squares: Vector

    @property
    def inertia(self) -> Any:
        """Rotational inertia (3, 3) about its centre, for unit density."""
        return np.diag(sum(self.squares) - np.array(self.squares))


class Solid(AnyShape, abc.ABC):
    """A shape with a volume of its own."""

    @property
    @abc.abstractmethod
    def _volume(self) -> Volume:
        """Its volume, with the integrals over it."""

    @property
    def _reach(self) -> float:  # type: ignore[override]
        return self._volume.reach

    def _core_terms(self) -> dict[str, Any]:
        halves = self._volume.halves
        return {"box": halves} if len(halves) == 3 else dict(zip(("radius", "half"), halves, strict=False))


@dataclass(frozen=True)
class Box(Solid):
    """A box about its frame's origin, of that size along x, y and z [m]."""

    size: tuple[float, float, float]

    @property
    def _volume(self) -> Volume:
        a, b, c = (x / 2 for x in self.size)
        V = 8.0 * a * b * c
        return Volume((a, b, c), math.hypot(a, b, c), V, (V * a * a / 3.0, V * b * b / 3.0, V * c * c / 3.0))


@dataclass(frozen=True)
class Cylinder(Solid):
    """A cylinder [m] about its frame's origin, along z."""

    radius: float
    length: float

    @property
    def _volume(self) -> Volume:
        r, h = self.radius, self.length / 2
        V = 2.0 * math.pi * r * r * h
        return Volume((r, h), math.hypot(r, h), V, (V * r * r / 4.0, V * r * r / 4.0, V * h * h / 3.0))


@dataclass(frozen=True)
class Sphere(Solid):
    """A sphere [m] about its frame's origin."""

    radius: float

    @property
    def _volume(self) -> Volume:
        return Ellipsoid(3 * (self.radius,))._volume._replace(halves=(self.radius,))


@dataclass(frozen=True)
class Mesh(AnyShape):
    """Mesh in a file, which is read when the mesh is drawn first.

    `file` is the name as written: a path, "package://name/path" or "file://...". Relative names start from the folder `beside`.
    Packages are searched for in `package_dirs`, then in that folder and above it. With a folder, the file must be in it, in its package or in
    `package_dirs` (:func:`sarrus.load`); without one it may be anywhere. The scale along x, y and z converts the file's unit to metres;
    a negative factor mirrors.

    As a collision shape (:meth:`sarrus.Builder.add_shape`) it is the convex hull of its vertices. It collides with planes only, and passes through
    all other shapes. The file is read when the contacts are evaluated first.
    """

    file: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    beside: str = ""
    package_dirs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Capsule(Solid):
    """A cylinder [m] about its frame's origin, along z, with half a sphere on either end; the length is that between their centres. For collision too."""

    radius: float
    length: float

    @property
    def _volume(self) -> Volume:
        r, h = self.radius, self.length / 2
        middle, ends = 2.0 * math.pi * r * r * h, 4.0 / 3.0 * math.pi * r * r * r
        across = middle * r * r / 4.0 + ends * r * r / 5.0
        along = middle * h * h / 3.0 + ends * (r * r / 5.0 + h * h + 0.75 * r * h)
        return Volume((r, h), r + h, middle + ends, (across, across, along))


@dataclass(frozen=True)
class Ellipsoid(Solid):
    """An ellipsoid about its frame's origin, with these semi-axes along x, y and z [m]. It collides with planes only."""

    semi_axes: tuple[float, float, float]

    @property
    def _volume(self) -> Volume:
        a, b, c = self.semi_axes
        V = 4.0 / 3.0 * math.pi * a * b * c
        return Volume((a, b, c), max(a, b, c), V, (V * a * a / 5.0, V * b * b / 5.0, V * c * c / 5.0))


@dataclass(frozen=True)
class ConvexPoints(AnyShape):
    """The convex hull of points in its frame, (n, 3) [m], such as vertices of a mesh. Interior points have no effect. It collides with planes only.

    At most four points touch at a time: the lowest, and three that are far from it. At most 16384 points are accepted, and each costs time in
    every step. For a fine mesh, pass the corners of its hull, ``trimesh.load(file).convex_hull.vertices``, or a :class:`Mesh`.

    Examples
    --------
    >>> from sarrus.shapes import ConvexPoints
    >>> wedge = ConvexPoints([(x, y, z) for y in (-0.1, 0.1) for x, z in ((-0.2, 0.0), (0.2, 0.0), (0.2, 0.15))])
    """

    points: tuple[tuple[float, float, float], ...]

    def __post_init__(self) -> None:
        """Convert an array or lists to tuples, so that shapes compare; other types raise an error when the shape is added."""
        if isinstance(self.points, list | tuple) or hasattr(self.points, "__array__"):
            with contextlib.suppress(TypeError, ValueError):
                points = tuple((float(x), float(y), float(z)) for x, y, z in self.points)
                object.__setattr__(self, "points", points)

    @property
    def _middle(self) -> Vector:  # type: ignore[override]
        points = np.array(self.points, np.float64)
        x, y, z = (0.5 * (points.min(axis=0) + points.max(axis=0))).tolist()
        return x, y, z

    @property
    def _reach(self) -> float:  # type: ignore[override]
        return float(np.linalg.norm(self._core_terms()["heights"], axis=1).max())

    def _core_terms(self) -> dict[str, Any]:
        # relative to the middle, so that the bounding sphere does not depend on the frame
        return {"heights": np.subtract(self.points, self._middle).tolist()}


@dataclass(frozen=True)
class Point(AnyShape):
    """The origin of its frame: a sphere without a radius, for collision."""

    _reach, _kind = 0.0, "Sphere"


@dataclass(frozen=True)
class Plane(AnyShape):
    """Half space below z = 0 of its frame: level ground, a wall, a ramp. For collision too."""


@dataclass(frozen=True)
class Terrain(AnyShape):
    """Ground of heights z = f(x, y) over a rectangle about its frame's origin. It collides with points and spheres only.

    Parameters
    ----------
    heights : (rows along y, columns along x) heights [m], both in increasing order, at least (2, 2)
    size : lengths of the rectangle along x and y, between its outermost heights [m]

    Notes
    -----
    The surface is smooth: cubics through all heights, with the slopes of central differences (Catmull and Rom 1974). Beyond
    its border it continues level. If two points of it are equally near, in a valley narrower than the sphere, one of them is used.

    Examples
    --------
    >>> import numpy as np
    >>> from sarrus.shapes import Terrain
    >>> x, y = np.meshgrid(np.linspace(-2, 2, 41), np.linspace(-1, 1, 21))
    >>> hills = Terrain(0.1 * np.sin(3 * x) * np.cos(2 * y), (4.0, 2.0))
    """

    heights: tuple[tuple[float, ...], ...]
    size: tuple[float, float]

    def _core_terms(self) -> dict[str, Any]:
        spacing = self.size[0] / (len(self.heights[0]) - 1), self.size[1] / (len(self.heights) - 1)
        return {"heights": self.heights, "spacing": spacing}


Shape = Box | Cylinder | Sphere | Mesh
ContactShape = Box | Capsule | ConvexPoints | Cylinder | Ellipsoid | Mesh | Plane | Point | Sphere | Terrain
