"""Functions for the gallery: checks of arguments, and construction of mechanisms in their home position.

Points and directions of the x-z plane are complex numbers, x + i z. A rotation by q about y takes x towards -z, so that it is a multiplication by
exp(-i q).
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from .._arrays import ArrayLike
from ..building.builder import Builder
from ..building.changes import Placement
from ..description.joints import Free, JointType, Prismatic, Revolute
from ..errors import ModelError
from ..mechanism import Mechanism
from ..spatial import Inertia

Point = tuple[float, float, float]

LARGEST = 1e60  # largest argument [SI], so that mass times length squared, and the square of this, do not overflow
SMALLEST = 1.0 / LARGEST  # smallest argument [SI], so that these products are neither zero nor denormal
MANY = 100_000  # largest number of members of a mechanism; larger ones need gigabytes of memory, and hours to build


def positive(**sizes: float) -> None:
    """Raise ModelError if an argument is not a positive number, or so large or small that inertias would overflow or vanish."""
    for name, value in sizes.items():
        with suppress(OverflowError):  # raised for integers beyond the range of floats
            if isinstance(value, Real) and SMALLEST <= float(value) <= LARGEST:
                continue
        raise ModelError(f"{name} must be a positive number, from {SMALLEST:g} to {LARGEST:g}; got {value!r}")


def between_zero_and(limit: Literal["pi", "pi/2"], **angles: float) -> None:
    """Raise ModelError if an angle [rad] is not between zero and `limit`, both excluded."""
    for name, value in angles.items():
        if not (isinstance(value, Real) and 0 < value < {"pi": math.pi, "pi/2": math.pi / 2}[limit]):
            raise ModelError(f"{name} must be between 0 and {limit}; got {value!r}")


def positive_or_zero(**sizes: Any) -> None:
    """Raise ModelError as :func:`positive`; zero is accepted, for a part that is omitted."""
    positive(**{name: value for name, value in sizes.items() if not (isinstance(value, Real) and value == 0)})


def real(name: str, value: float) -> float:
    """Return a value as a float; raise ModelError if it is not a finite number."""
    if isinstance(value, bool) or not (isinstance(value, Real) and -LARGEST <= value <= LARGEST):
        raise ModelError(f"{name} must be a number of magnitude at most {LARGEST:g}; got {value!r}")
    return float(value)


def true_or_false(**choices: bool) -> None:
    """Raise ModelError if an argument is neither True nor False."""
    for name, value in choices.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ModelError(f"{name} must be True or False; got {value!r}")


def integer(name: str, value: int, lowest: int, highest: int = MANY) -> None:
    """Raise ModelError if a number is not an integer in the range."""
    if isinstance(value, bool) or not (isinstance(value, Integral) and lowest <= value <= highest):
        raise ModelError(f"{name} must be a whole number from {lowest} to {highest}; got {value!r}")


def cells(rows: int, columns: int, fewest: int = 1) -> None:
    """Raise ModelError if a lattice has too few rows or columns, or too many cells."""
    integer("rows", rows, fewest)
    integer("columns", columns, fewest)
    if rows * columns > MANY:
        raise ModelError(f"rows times columns must be at most {MANY}; got {rows!r} times {columns!r}")


def apex(a: complex, b: complex, from_a: float, from_b: float) -> complex:
    """Return the third corner of a triangle to the left of its side from a to b; raise ModelError if the bars do not meet.

    >>> from sarrus.mechanisms.drawing import apex
    >>> apex(0, 5, 3, 4)
    (1.8+2.4j)
    """
    base = abs(b - a)
    rounding = 1e-9 * (from_a + from_b)
    if not abs(from_a - from_b) + rounding < base < from_a + from_b - rounding:
        raise ModelError(
            f"bars of {from_a:g} and {from_b:g} m from pins at a distance of {base:g} m do not form a triangle"
        )
    along = (base + (from_a - from_b) * (from_a + from_b) / base) / 2
    return a + complex(along, math.sqrt((from_a - along) * (from_a + along))) * (b - a) / base


def in_space(point: complex) -> Point:
    """Return a point (3,) of the x-z plane."""
    return float(point.real), 0.0, float(point.imag)


class Drawing(Builder):
    """Builder that also collects the home position: bodies with the joints that carry them, and planar linkages of bars and plates with pins about y.

    `home` maps joints to their coordinates. Options of the methods are those of :meth:`~sarrus.Builder.add_joint`.
    """

    def __init__(self, name: str, gravity: ArrayLike = (0.0, 0.0, -9.81)) -> None:
        super().__init__(name, gravity)
        self.home: dict[str, ArrayLike] = {}
        self._angles: dict[str, float] = {}  # of the bodies of a linkage, about y

    def link(
        self, body: str, inertia: Inertia | None, joint: str, kind: JointType, parent: str, at: Placement = None, *,
        home: ArrayLike | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """Add a body and the joint between its frame and a placement in its parent."""
        self.add_body(body, inertia)
        self.add_joint(joint, kind, parent, body, at_parent=at, **options)
        if home is not None:
            self.home[joint] = home

    def floating(
        self, body: str, inertia: Inertia, position: Iterable[float], joint: str = "float", *, free: bool = True
    ) -> None:
        """Add a body with a Free joint and its position (3,) at home; if not `free`, add only the body, which other joints carry."""
        if free:
            self.link(body, inertia, joint, Free(), "ground", home=[0, 0, 0, 1, *position])
        else:
            self.add_body(body, inertia)

    def bar(
        self, body: str, mass: float, length: float, direction: complex, pin: str, parent: str, at: complex = 0, **options: Any
    ) -> None:  # fmt: skip
        """Add a uniform rod pinned to its parent. Its frame is at the pin, with x along the rod."""
        self.plate(body, Inertia.rod(mass, (0, 0, 0), (length, 0, 0)), direction, pin, parent, at, **options)

    def plate(
        self, body: str, inertia: Inertia, direction: complex, pin: str, parent: str, at: complex = 0, **options: Any
    ) -> None:
        """Add a body pinned to a point of its parent, in the parent's axes; `direction` is that of the body's x axis at home."""
        self._angles[body] = -cmath.phase(direction)
        angle = math.remainder(self._angles[body] - self._angles.get(parent, 0.0), 2 * math.pi)
        self.link(body, inertia, pin, Revolute("y"), parent, in_space(at), home=angle, **options)

    def slider(
        self, body: str, inertia: Inertia, displacement: float, slide: str, parent: str, at: complex = 0, **options: Any
    ) -> None:
        """Add a body that slides along its parent's x axis; `displacement` is its coordinate [m] at home."""
        self._angles[body] = self._angles.get(parent, 0.0)
        self.link(body, inertia, slide, Prismatic("x"), parent, in_space(at), home=displacement, **options)

    def close(
        self, pin: str, first: str, second: str, at_first: complex = 0, at_second: complex = 0, *, loop: bool = True
    ) -> None:
        """Close a loop by a pin between a point of one body and a point of another, each in the axes of its body."""
        places: dict[str, Any] = {"at_parent": in_space(at_first), "at_child": in_space(at_second)}
        self.add_joint(pin, Revolute("y"), first, second, **places, loop=loop)

    def build(self) -> Mechanism:
        """Return the mechanism, with the drawing as its home."""
        self.set_home(self.home)
        return super().build()
