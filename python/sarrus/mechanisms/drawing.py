"""Functions for the gallery: checks of arguments, and construction of planar linkages in their home position.

Points and directions of the x-z plane are complex numbers, x + i z. A rotation by q about y takes x towards -z, so that it is a multiplication by
exp(-i q).
"""

from __future__ import annotations

import cmath
import math
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from .._arrays import ArrayLike
from ..building.builder import Builder
from ..description.joints import Prismatic, Revolute
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


def is_zero(value: object) -> bool:
    """Return True if a dimension is zero, so that its part is omitted."""
    return isinstance(value, Real) and value == 0


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


class Drawing:
    """Planar linkage described by its home position: bodies with directions, and pins about y between them.

    Pins with ``loop=True`` are loop joints and have no coordinate in q.
    """

    def __init__(self, name: str) -> None:
        self.builder = Builder(name)
        self.home: dict[str, ArrayLike] = {}
        self._angles = {"ground": 0.0}

    def bar(self, name: str, mass: float, length: float, direction: complex) -> None:
        """Add a uniform rod. Its frame is at the end nearer to the ground, with x along the rod."""
        self.body(name, Inertia.rod(mass, (0, 0, 0), (length, 0, 0)), direction)

    def body(self, name: str, inertia: Inertia, direction: complex = 1) -> None:
        """Add a body; `direction` is the direction of its x axis at home, as a complex number."""
        self.builder.add_body(name, inertia)
        self._angles[name] = -cmath.phase(direction)

    def pin(
        self,
        name: str,
        parent: str,
        child: str,
        at_parent: complex = 0,
        at_child: complex = 0,
        *,
        actuated: bool = False,
        loop: bool = False,
    ) -> None:
        """Add a revolute joint about y between a point of the parent and a point of the child, each expressed in the axes of its body."""
        places: dict[str, Any] = {"at_parent": in_space(at_parent), "at_child": in_space(at_child)}
        self.builder.add_joint(name, Revolute("y"), parent, child, **places, actuated=actuated, loop=loop)
        if not loop:
            self.home[name] = math.remainder(self._angles[child] - self._angles[parent], 2 * math.pi)

    def slide(
        self, name: str, parent: str, child: str, displacement: float, at_parent: complex = 0, *, actuated: bool = False
    ) -> None:
        """Add a prismatic joint along the parent's x axis; `displacement` is its coordinate [m] at home."""
        self.builder.add_joint(name, Prismatic("x"), parent, child, at_parent=in_space(at_parent), actuated=actuated)
        self.home[name] = displacement

    def build(self) -> Mechanism:
        """Return the mechanism, with the drawing as its home."""
        self.builder.set_home(self.home)
        return self.builder.build()
