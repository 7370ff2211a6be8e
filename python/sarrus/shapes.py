"""Shapes of bodies: what they look like (:meth:`sarrus.Builder.add_visual`), and where they touch (:meth:`sarrus.Builder.add_shape`).

What is asked of a shape it tells itself: how far it reaches, how its mass would lie, and what the core takes of it; its numbers are checked as they are
declared. Files say it where their tables do: :mod:`sarrus.io.formats`.
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
    """What all shapes say of themselves."""

    _reach: float = math.inf  # radius of the sphere about its middle that holds it [m]
    _middle: Vector = (0.0, 0.0, 0.0)  # in its frame

    @property
    def _kind(self) -> str:
        """What the core calls it."""
        return type(self).__name__

    def _core_terms(self) -> dict[str, Any]:
        """Its numbers as the core takes them, where they are not zero: see to_shape in bindings/contact.cpp."""
        return {}


class Volume(NamedTuple):
    """What a shape fills.

    halves : half sizes [m]: along x, y and z, or of what is round about z the radius and half the length
    reach : radius of the sphere that holds it [m]
    size : [m³]
    squares : integrals of x², y² and z² over it
    """

    halves: tuple[float, ...]
    reach: float
    size: float
    squares: Vector

    @property
    def inertia(self) -> Any:
        """(3, 3) about its centre, by unit density."""
        return np.diag(sum(self.squares) - np.array(self.squares))


class Solid(AnyShape, abc.ABC):
    """A shape with a volume of its own."""

    @property
    @abc.abstractmethod
    def _volume(self) -> Volume:
        """What it fills."""

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
class Capsule(Solid):
    """A cylinder [m] about its frame's origin, along z, with half a sphere on either end; the length is that between their centres. It touches."""

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
    """An ellipsoid about its frame's origin, of these semi-axes along x, y and z [m]. It touches planes."""

    semi_axes: tuple[float, float, float]

    @property
    def _volume(self) -> Volume:
        a, b, c = self.semi_axes
        V = 4.0 / 3.0 * math.pi * a * b * c
        return Volume((a, b, c), max(a, b, c), V, (V * a * a / 5.0, V * b * b / 5.0, V * c * c / 5.0))


@dataclass(frozen=True)
class ConvexPoints(AnyShape):
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

    @property
    def _middle(self) -> Vector:  # type: ignore[override]
        points = np.array(self.points, np.float64)
        x, y, z = (0.5 * (points.min(axis=0) + points.max(axis=0))).tolist()
        return x, y, z

    @property
    def _reach(self) -> float:  # type: ignore[override]
        return float(np.linalg.norm(self._core_terms()["heights"], axis=1).max())

    def _core_terms(self) -> dict[str, Any]:
        # about their middle: their size is theirs, wherever their frame is
        return {"heights": np.subtract(self.points, self._middle).tolist()}


@dataclass(frozen=True)
class Point(AnyShape):
    """The origin of its frame: a sphere without a radius. It touches."""

    _reach, _kind = 0.0, "Sphere"


@dataclass(frozen=True)
class Plane(AnyShape):
    """All that is below z = 0 of its frame: level ground, a wall, a ramp. It touches."""


@dataclass(frozen=True)
class Terrain(AnyShape):
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

    def _core_terms(self) -> dict[str, Any]:
        spacing = self.size[0] / (len(self.heights[0]) - 1), self.size[1] / (len(self.heights) - 1)
        return {"heights": self.heights, "spacing": spacing}


Shape = Box | Cylinder | Sphere | Mesh
ContactShape = Box | Capsule | ConvexPoints | Cylinder | Ellipsoid | Mesh | Plane | Point | Sphere | Terrain
