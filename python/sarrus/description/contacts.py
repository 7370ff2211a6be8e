"""Collision shapes, the pairs of shapes that may touch, and their input for the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays import Array, ArrayLike
from .._deferred import dataclass
from ..errors import ModelError, ShapeError, StateError
from ..shapes import ContactShape
from ..spatial import Transform
from .constraints import Part

if TYPE_CHECKING:
    from .specs import Description

_IDENTITY = Transform()
PointsFunction = Callable[[Array, Array, float], tuple[ArrayLike, ArrayLike, ArrayLike]]
MOST_POINTS = 4  # largest number of contact points of a pair
MOMENTS = ("torsional_friction", "rolling_friction")
COEFFICIENTS = ("friction", "restitution", *MOMENTS)
RESTITUTION_LAWS = ("newton", "poisson")
# ends of the warning about the shapes of a file; the second replaces the first when the caller adds a shape
NO_CONTACTS, SOME_CONTACTS = _core.contact_sentences
OVERLAP = 1e-6  # overlap relative to the smaller shape, below which it is due to rounded input values


@dataclass(frozen=True)
class ShapeSpec(Part):
    """Collision shape of a body, and its placement; a coefficient that is None is taken from the other shape of a pair.

    Attributes
    ----------
    name : name of the shape
    body : name of the body; "ground" for the world
    shape : geometry, of a class in :mod:`sarrus.shapes`
    placement : pose of the shape's frame in the body [m]
    friction, restitution : coefficients of Coulomb friction and of restitution (dimensionless), or None
    group : name of the shape's group, or None
    torsional_friction, rolling_friction : largest moments against spinning and against rolling, per normal force [m], or None
    """

    name: str
    body: str
    shape: ContactShape
    placement: Transform = _IDENTITY
    friction: float | None = None
    restitution: float | None = None
    group: str | None = None
    torsional_friction: float | None = None
    rolling_friction: float | None = None


@dataclass(frozen=True)
class ContactSpec(Part):
    """Contact setting of a pair of shapes, or of all pairs of two groups: if they may touch, and coefficients (None: combined from the shapes).

    Attributes
    ----------
    first, second : names of two shapes or of two groups
    touching : True if the shapes may touch, False if they pass through each other
    friction, restitution : coefficients of Coulomb friction and of restitution of the pair (dimensionless), or None
    torsional_friction, rolling_friction : largest moments against spinning and against rolling, per normal force [m], or None
    points : function that computes the contact points of the pair, see :meth:`sarrus.Builder.set_contact`; None: the core computes them
    """

    first: str
    second: str
    touching: bool = True
    friction: float | None = None
    restitution: float | None = None
    torsional_friction: float | None = None
    rolling_friction: float | None = None
    points: PointsFunction | None = None


class Pair(NamedTuple):
    """Indices of two shapes that may touch, and the coefficients of the pair."""

    first: int
    second: int
    friction: float
    restitution: float
    torsional_friction: float
    rolling_friction: float
    points: _Points | None


def touching_pairs(d: Description) -> list[Pair]:
    """Return the pairs of shapes that may touch, with the caller's functions of contact points."""
    pairs = []
    for i, j, *coefficients, k in _core.pairs_of_shapes(d):
        function, names = d.contacts[k].points if k >= 0 else None, (d.shapes[i].name, d.shapes[j].name)
        points = None if function is None else _Points(function, names, d.contacts[k].first == names[1])
        pairs.append(Pair._make((i, j, *coefficients, points)))
    return pairs


@dataclass(frozen=True)
class _Points:
    """The caller's function for the contact points of two shapes, with checks of its result.

    With `turned`, the function expects the shapes in the opposite order.
    """

    function: PointsFunction
    shapes: tuple[str, str]
    turned: bool
    middles: tuple[tuple[float, ...], ...] = 2 * ((0.0, 0.0, 0.0),)  # origins of the shapes in the core's frames

    def __call__(self, first: Array, second: Array, within: float) -> Array:
        """Return the contact points (n, 7): position, normal and distance."""
        for pose, middle in zip((first, second), self.middles, strict=True):
            pose[:3, 3] -= pose[:3, :3] @ middle
        poses = (second, first) if self.turned else (first, second)
        subject = "points of '{}' and '{}'".format(*self.shapes)
        answer: object = self.function(*poses, within)
        if not isinstance(answer, tuple) or len(answer) != 3:
            raise TypeError(f"{subject} must be (positions, normals, distances); got {type(answer).__name__}")
        position, normal, distance = (np.asarray(x, dtype=float) for x in answer)
        n = distance.size
        if distance.shape != (n,) or position.shape != normal.shape or position.size != 3 * n or n > MOST_POINTS:
            got = ", ".join(str(x.shape) for x in (position, normal, distance))
            raise ShapeError(f"{subject} must be (n, 3), (n, 3) and (n,), with n at most {MOST_POINTS}; got {got}")
        rows: NDArray[np.float64] = np.column_stack([position.reshape(n, 3), normal.reshape(n, 3), distance])
        if not np.isfinite(rows).all():
            raise StateError(f"{subject} are not finite: {rows.tolist()}")
        if (abs(np.linalg.norm(rows[:, 3:6], axis=1) - 1.0) > 1e-9).any():
            raise StateError(f"{subject} have normals that are not of length 1: {rows[:, 3:6].tolist()}")
        if self.turned:
            rows[:, 3:6] *= -1.0
        return rows


def scene(
    d: Description, solids: list[ContactShape], pairs: list[Pair]
) -> tuple[tuple[list[Any], list[Pair]], list[str]]:
    """Return the arguments of the core's Scene, and the bodies whose poses it expects; raise ModelError if a pair is not implemented.

    `solids` are the shapes, with meshes replaced by points.
    """
    faults: list[tuple[str, str]] = []
    for pair in pairs:
        first, second = d.shapes[pair.first], d.shapes[pair.second]
        if pair.points is None and not _core.can_touch(solids[pair.first]._kind, solids[pair.second]._kind):
            faults.append((f"'{first.name}' ({first.shape._kind})", f"'{second.name}' ({second.shape._kind})"))
    if faults:
        listed = ", ".join(f"{first} and {second}" for first, second in faults[:4]) + (" …" if len(faults) > 4 else "")
        raise ModelError(
            f"shapes {listed} may touch, but the library cannot compute contact points of such pairs. Supported pairs: {_core.touching_pairs}. "
            "Use other shapes, pass a function of the contact points by Builder.set_contact(one, other, points=...), or exclude the pair by enabled=False"
        )
    bodies = list(dict.fromkeys(spec.body for spec in d.shapes))
    shapes = [
        shape_terms(solid, bodies.index(spec.body), spec.placement)
        for spec, solid in zip(d.shapes, solids, strict=True)
    ]
    by_core = [
        x
        if x.points is None
        else x._replace(points=replace(x.points, middles=(solids[x.first]._middle, solids[x.second]._middle)))
        for x in pairs
    ]
    return (shapes, by_core), bodies


def shape_terms(shape: ContactShape, body: int, placement: Transform) -> tuple[Any, ...]:
    """Return the core's input for a shape on a body; to_shape in bindings/shapes.cpp converts it."""
    none = {"radius": 0.0, "half": 0.0, "box": (0.0, 0.0, 0.0), "heights": None, "spacing": (0.0, 0.0)}
    place = placement @ Transform(translation=shape._middle)
    return shape._kind, *(none | shape._core_terms()).values(), body, place


def check_apart(d: Description, frame: str, on: str, subject: str) -> None:
    """Raise ModelError if a point and a plane are on the same body, because they can never touch."""
    body = {f.name: f.body for f in d.frames}
    if body.get(frame, frame) == body.get(on, on):
        raise ModelError(
            f"{subject} of '{frame}' is on '{on}', which belongs to the same body, so they never touch; expected a plane on another body"
        )


def told_by_file(d: Description) -> bool:
    """Return True if the warnings of a file already state that its shapes act only with method="contact", where they may overlap."""
    return any(NO_CONTACTS in text for text in d.warnings)
