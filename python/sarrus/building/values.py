"""What is given to a Builder, checked: numbers, places, shapes, colours; a ModelError says what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from .._arrays import Array, ArrayLike, real_numbers
from ..description.joints import JointType, unit_axis
from ..errors import ModelError
from ..shapes import ConvexPoints, Mesh, Shape, Terrain
from ..spatial import LARGEST, Transform

Placement = Transform | ArrayLike | None
Coordinate = str | tuple[str, int]
Point = tuple[float, float, float]
BodyPoint = tuple[str, ArrayLike]
Joined = tuple[JointType, str, str, Transform, Transform]  # its type, its ends, and where it sits in them

_IDENTITY = Transform()
MOST_POINTS = 2**14  # of a convex hull: as many features as a pair of shapes has (cpp/contact/scene.hpp)


def checked_placement(value: Placement, what: str) -> Transform:
    if value is None:
        return _IDENTITY
    try:
        placed = value if isinstance(value, Transform) else Transform(translation=value)
    except ValueError as error:
        expected = "a Transform or a translation of three numbers"
        raise ModelError(f"{what} must be {expected}; got {value!r} ({error})") from None
    if np.abs(placed.translation).max() > LARGEST:
        raise ModelError(f"{what} lies {np.abs(placed.translation).max():g} m away: at most {LARGEST:g} m")
    return placed


def checked_shape(shape: Any, what: str, kinds: Any = Shape) -> Any:
    """One of these kinds of shapes, in floats that can be drawn, and can touch."""
    kind = next((kind for kind in get_args(kinds) if isinstance(shape, kind)), None)
    if kind is None:
        *others, last = (kind.__name__ for kind in get_args(kinds))
        raise ModelError(f"{what} needs a {', '.join(others)} or {last} of sarrus.shapes; got {shape!r}")
    if kind in OF_SHAPES:
        return OF_SHAPES[kind](shape, what)
    of = f"of {'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__.lower()}"
    measures = ((f.name, MEASURES[str(f.type)], f"{what}: {f.name.replace('_', '-')} {of}") for f in fields(kind))
    return kind(**{name: check(getattr(shape, name), which) for name, check, which in measures})


def _mesh(shape: Mesh, what: str) -> Mesh:
    scale = checked_point(shape.scale, f"{what}: scale of a mesh", "for x, y and z")
    file: object = shape.file
    if not isinstance(file, str | os.PathLike) or not str(file) or "\0" in str(file):
        raise ModelError(f"{what}: a mesh needs the name of a file; got {file!r}")
    if 0.0 in scale:
        raise ModelError(f"{what}: scale of a mesh must not be zero; got {shape.scale!r}")
    return Mesh(str(file), scale, str(shape.beside), tuple(map(str, shape.package_dirs)))


def _convex_points(shape: ConvexPoints, what: str) -> ConvexPoints:
    expected = f"(n, 3) finite numbers [m], n from 1 to {MOST_POINTS}"
    points = checked_numbers(shape.points, f"{what}: points", expected, 2)
    if points.ndim != 2 or points.shape[1] != 3 or not 1 <= len(points) <= MOST_POINTS:
        raise ModelError(f"{what}: points must be {expected}; got {points.shape}")
    return ConvexPoints(tuple(map(tuple, points.tolist())))


def _terrain(shape: Terrain, what: str) -> Terrain:
    heights = checked_numbers(shape.heights, f"{what}: heights of a terrain", "rows of finite numbers [m]", 2)
    if heights.ndim != 2 or min(heights.shape) < 2:
        raise ModelError(f"{what}: heights of a terrain need two rows or more, and columns; got {heights.shape}")
    x, y = checked_numbers(shape.size, f"{what}: size of a terrain", "two finite numbers [m]", 1, (2,)).tolist()
    if min(x, y) <= 0.0:
        raise ModelError(f"{what}: size of a terrain must be positive; got {shape.size!r}")
    return Terrain(tuple(map(tuple, heights.tolist())), (x, y))


# of shapes whose numbers are more than lengths
OF_SHAPES: dict[type, Callable[[Any, str], Any]] = {Mesh: _mesh, ConvexPoints: _convex_points, Terrain: _terrain}


def checked_coefficients(what: str, **numbers: ArrayLike | None) -> dict[str, float | None]:
    """Of a shape or a pair, by their names."""
    most = {"restitution": 1.0}
    return {name: _coefficient(x, f"{what}: {name}", most.get(name, np.inf)) for name, x in numbers.items()}


def _coefficient(value: ArrayLike | None, what: str, most: float = np.inf) -> float | None:
    if value is None:
        return None
    number = checked_number(value, what)
    if not 0.0 <= number <= most:
        raise ModelError(f"{what} must be {'from 0 to 1' if most == 1.0 else 'not negative'}; got {value!r}")
    return number


def checked_color(value: str | ArrayLike, what: str) -> tuple[float, float, float, float]:
    what, expected = f"{what}: color", "three or four numbers from 0 to 1, or text such as '#4477aa'"
    if isinstance(value, str):
        try:
            numbers = np.frombuffer(bytes.fromhex(value.removeprefix("#")), np.uint8) / 255
        except ValueError:
            numbers = np.empty(0)
    else:
        numbers = checked_numbers(value, what, expected, 1)
    if numbers.shape not in ((3,), (4,)) or numbers.min() < 0.0 or numbers.max() > 1.0:
        raise ModelError(f"{what} needs {expected}; got {value!r}")
    red, green, blue, opacity = [*numbers.tolist(), 1.0][:4]
    return red, green, blue, opacity


def joined(what: str, joint: JointType, parent: str, child: str, at_parent: Placement, at_child: Placement) -> Joined:
    if not isinstance(joint, JointType):
        raise ModelError(f"{what} needs a joint type such as sarrus.Revolute('z'); got {joint!r}")
    for end in (parent, child):
        if not isinstance(end, str):
            raise ModelError(f"{what}: parent and child are names of bodies; got {end!r}")
    if parent == child:
        raise ModelError(f"{what} joins body '{parent}' to itself")
    places = checked_placement(at_parent, f"{what}: at_parent"), checked_placement(at_child, f"{what}: at_child")
    return joint, parent, child, *places


def check_mapping(value: object, what: str, of: str, least: int = 1) -> None:
    if not isinstance(value, Mapping) or len(value) < least:
        raise ModelError(f"{what} wants a dict from {of}; got {value!r}")


def checked_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    try:
        listed = () if isinstance(names, str) else tuple(names)
    except TypeError:
        listed = ()
    if not listed or not all(isinstance(name, str) for name in listed):
        raise ModelError(f"{what} wants one name or more, in a list; got {names!r}")
    return listed


def checked_numbers(value: ArrayLike, what: str, expected: str, axes: int, *shapes: tuple[int, ...]) -> Array:
    """Finite numbers in that many axes, or fewer; of one of these shapes where any are told."""
    try:
        array = real_numbers(value)
        if array.ndim <= axes and np.isfinite(array).all() and (not shapes or array.shape in shapes):
            return array
    except (TypeError, ValueError):  # also rows of unequal lengths
        pass
    raise ModelError(f"{what} needs {expected}; got {value!r}")


def checked_number(value: ArrayLike, what: str) -> float:
    return float(checked_numbers(value, what, "one finite number", 0))


def checked_positive(value: ArrayLike, what: str, if_zero: str = "") -> float:
    number = checked_number(value, what)
    if number <= 0.0:
        raise ModelError(f"{what} must be positive; got {value!r}{'' if number else if_zero}")
    return number


def _lengths(value: ArrayLike, what: str) -> Point:
    """Positive, along x, y and z."""
    lengths = checked_point(value, what)
    if min(lengths) <= 0.0:
        raise ModelError(f"{what} must be positive; got {value!r}")
    return lengths


# of other shapes, by how they are declared
MEASURES: dict[str, Callable[[Any, str], Any]] = {"float": checked_positive, "tuple[float, float, float]": _lengths}


def checked_sequence(value: ArrayLike, what: str) -> tuple[float, ...]:
    numbers = np.atleast_1d(checked_numbers(value, what, "a finite number or a sequence of them", 1))
    if not numbers.size:
        raise ModelError(f"{what} needs one number or more; got {value!r}")
    return tuple(numbers.tolist())


def checked_point(value: ArrayLike, what: str, unit: str = "[m]") -> Point:
    x, y, z = checked_numbers(value, what, f"three finite numbers {unit}", 1, (3,)).tolist()
    return x, y, z


def checked_direction(axis: str | ArrayLike, what: str) -> Point:
    try:
        x, y, z = unit_axis(axis).tolist()
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    return x, y, z


def per_row(c: tuple[float, ...], k: int, what: str) -> tuple[float, ...]:
    if len(c) not in (1, k):
        raise ModelError(f"{what}: value has {len(c)} entries for {k} rows; it wants one number or one a row")
    return c if len(c) == k else c * k


def joint_coordinates(joint: JointType, value: ArrayLike, what: str) -> tuple[float, ...]:
    """(nq,) of a joint; a number will do for one."""
    expected = "one finite number" if joint.nq == 1 else f"{joint.nq} finite numbers"
    shapes = ((), (1,)) if joint.nq == 1 else ((joint.nq,),)
    q = np.atleast_1d(checked_numbers(value, what, expected, 1, *shapes))
    if joint.quaternion:
        length = np.linalg.norm(q[:4])
        if length == 0.0:
            raise ModelError(f"{what} needs a quaternion that is a rotation; got {value!r}")
        if abs(length - 1.0) > 4e-16:  # a unit quaternion stays what it is, so that it reads as it was written
            q[:4] /= length
    return tuple(q.tolist())
