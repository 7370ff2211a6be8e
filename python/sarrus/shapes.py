"""Shapes of bodies: for visuals (:meth:`sarrus.Builder.add_visual`) and for collision (:meth:`sarrus.Builder.add_shape`).

A shape has a bounding sphere, an inertia for unit density, and parameters that are passed to the core. The parameters are checked when the shape is
added to a body. The tables of file formats are in :mod:`sarrus.io.formats`.
"""

from __future__ import annotations

import abc
import contextlib
import math
from typing import Any, NamedTuple

import numpy as np

from ._deferred import dataclass

Vector = tuple[float, float, float]

__all__ = ["Box", "Capsule", "ConvexPoints", "Cylinder", "Ellipsoid", "Mesh", "Plane", "Point", "Sphere", "Terrain"]


class AnyShape:
    """Base class of all shapes: bounding sphere and parameters for the core."""

    _reach: float = math.inf  # radius of the bounding sphere [m]
    _middle: Vector = (0.0, 0.0, 0.0)  # centre of the bounding sphere in the shape's frame [m]

    @property
    def _kind(self) -> str:
        """Name of the shape's kind in the core."""
        return type(self).__name__

    def _core_terms(self) -> dict[str, Any]:
        """Return the shape's parameters for the core by name; missing ones are zero, see to_shape in bindings/contact.cpp."""
        return {}


class Volume(NamedTuple):
    """Geometric properties of a solid shape, centred at its frame's origin.

    halves : half sizes [m] along x, y and z; for a body of revolution about z, the radius and half the length
    reach : radius of the bounding sphere [m]
    size : volume [m³]
    squares : integrals of x², y² and z² over the volume [m⁵]
    """

    halves: tuple[float, ...]
    reach: float
    size: float
    squares: Vector

    @property
    def inertia(self) -> Any:
        """Rotational inertia (3, 3) about the centre, for unit density."""
        return np.diag(sum(self.squares) - np.array(self.squares))


class Solid(AnyShape, abc.ABC):
    """Shape with a volume, and thus with an inertia for a density."""

    @property
    @abc.abstractmethod
    def _volume(self) -> Volume:
        """Return the volume and the integrals over it."""

    @property
    def _reach(self) -> float:  # type: ignore[override]
        return self._volume.reach

    def _core_terms(self) -> dict[str, Any]:
        halves = self._volume.halves
        return {"box": halves} if len(halves) == 3 else dict(zip(("radius", "half"), halves, strict=False))


@dataclass(frozen=True)
class Box(Solid):
    """Box centred at its frame's origin.

    Attributes
    ----------
    size : (3,) lengths along the x, y and z axes of its frame [m]
    """

    size: tuple[float, float, float]

    @property
    def _volume(self) -> Volume:
        a, b, c = (x / 2 for x in self.size)
        V = 8.0 * a * b * c
        return Volume((a, b, c), math.hypot(a, b, c), V, (V * a * a / 3.0, V * b * b / 3.0, V * c * c / 3.0))


@dataclass(frozen=True)
class Cylinder(Solid):
    """Cylinder along z, centred at its frame's origin.

    Attributes
    ----------
    radius : radius [m]
    length : length along z [m]
    """

    radius: float
    length: float

    @property
    def _volume(self) -> Volume:
        r, h = self.radius, self.length / 2
        V = 2.0 * math.pi * r * r * h
        return Volume((r, h), math.hypot(r, h), V, (V * r * r / 4.0, V * r * r / 4.0, V * h * h / 3.0))


@dataclass(frozen=True)
class Sphere(Solid):
    """Sphere centred at its frame's origin.

    Attributes
    ----------
    radius : radius [m]
    """

    radius: float

    @property
    def _volume(self) -> Volume:
        return Ellipsoid(3 * (self.radius,))._volume._replace(halves=(self.radius,))


@dataclass(frozen=True)
class Mesh(AnyShape):
    """Mesh in a file. The file is read when the mesh is drawn for the first time.

    If `beside` is set, the file must be in this folder, in its package or in `package_dirs` (:func:`sarrus.load`); otherwise it may be in any folder.

    As a collision shape (:meth:`sarrus.Builder.add_shape`), a mesh is the convex hull of its vertices. It collides with planes only, and passes
    through all other shapes. The file is then read when contacts are evaluated for the first time.

    Attributes
    ----------
    file : a path, "package://name/path" or "file://...". Relative paths are relative to the folder `beside`
    scale : (3,) factors along x, y and z that convert the file's unit to metres (dimensionless); a negative factor mirrors the mesh
    beside : folder of the model file that refers to the mesh; "": no model file
    package_dirs : folders that are searched for packages first, before `beside` and the folders above it
    """

    file: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    beside: str = ""
    package_dirs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Capsule(Solid):
    """Cylinder along z with a half sphere on both ends, centred at its frame's origin.

    Attributes
    ----------
    radius : radius of the cylinder and of both half spheres [m]
    length : distance between the centres of the half spheres [m]
    """

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
    """Ellipsoid centred at its frame's origin, with semi-axes along x, y and z. It collides with planes only.

    Attributes
    ----------
    semi_axes : (3,) half lengths along the x, y and z axes of its frame [m]
    """

    semi_axes: tuple[float, float, float]

    @property
    def _volume(self) -> Volume:
        a, b, c = self.semi_axes
        V = 4.0 / 3.0 * math.pi * a * b * c
        return Volume((a, b, c), max(a, b, c), V, (V * a * a / 5.0, V * b * b / 5.0, V * c * c / 5.0))


@dataclass(frozen=True)
class ConvexPoints(AnyShape):
    """Convex hull of points (n, 3) [m] in its frame, such as the vertices of a mesh. Interior points have no effect. It collides with planes only.

    At most four points are in contact at a time: the deepest point, and three points far from it. At most 16384 points are accepted, and the time of
    each step grows with their number. For a fine mesh, pass the corners of its hull, ``trimesh.load(file).convex_hull.vertices``, or a :class:`Mesh`.

    Attributes
    ----------
    points : (n, 3) points in its frame [m]

    Examples
    --------
    >>> from sarrus.shapes import ConvexPoints
    >>> wedge = ConvexPoints([(x, y, z) for y in (-0.1, 0.1) for x, z in ((-0.2, 0.0), (0.2, 0.0), (0.2, 0.15))])
    """

    points: tuple[tuple[float, float, float], ...]

    def __post_init__(self) -> None:
        """Convert an array or lists to tuples, so that shapes can be compared. Other types raise an error when the shape is added to a body."""
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
        # heights are relative to the centre of the bounding sphere, so that the sphere does not depend on the frame
        return {"heights": np.subtract(self.points, self._middle).tolist()}


@dataclass(frozen=True)
class Point(AnyShape):
    """Point at its frame's origin, for collision: a sphere of radius zero."""

    _reach, _kind = 0.0, "Sphere"


@dataclass(frozen=True)
class Plane(AnyShape):
    """Half space z < 0 of its frame, for example level ground, a wall or a ramp."""


@dataclass(frozen=True)
class Terrain(AnyShape):
    """Ground with heights z = f(x, y) over a rectangle centred at its frame's origin. It collides with points and spheres only.

    Parameters
    ----------
    heights : (rows along y, columns along x) heights [m], both in increasing order, at least (2, 2)
    size : lengths of the rectangle along x and y, between its outermost heights [m]

    Notes
    -----
    The surface is smooth: cubic polynomials interpolate all heights, with slopes from central differences (Catmull and Rom 1974). Beyond the
    rectangle the surface continues horizontally. In a valley narrower than a sphere, two points of the surface can be equally near; one of them is
    used.

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
