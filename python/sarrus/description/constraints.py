"""Constraints that are not joints: rods, gears, rolling contact, Pfaffian rows. There is a class for each kind.

The objects are plain data that can be pickled, compared and hashed. The equations and the names of the rows of each kind are in cpp/constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, fields, replace
from typing import Any

import numpy as np

from .. import _core
from .._deferred import dataclass
from ..errors import ModelError
from ..laws import Law
from ..spatial import Transform

# ---- parts of a description ------------------------------------------------------------------------------------------


class Part:
    """Base class of all parts of a description, such as bodies, joints and frames."""


def renamed(value: Any, name: Callable[[str], str]) -> Any:
    """Return elements of a description in which every name is changed. Every str is a name, except those in joint types, shapes and other objects."""
    if isinstance(value, str):
        return name(value)
    if isinstance(value, tuple):
        return tuple(renamed(x, name) for x in value)
    if isinstance(value, Part):
        names = [field.name for field in fields(value)]  # type: ignore[arg-type]
        return replace(value, **{key: renamed(getattr(value, key), name) for key in names})  # type: ignore[type-var]
    return value


# ---- constraints -----------------------------------------------------------------------------------------------------

# kind of constraint in the core -> names of its parameters; None if frames and parameters do not define such a constraint completely
KINDS: dict[str, tuple[str, ...] | None] = _core.constraint_kinds()
Point = tuple[float, float, float]


@dataclass(frozen=True)
class ConstraintSpec(Part):
    """Constraint that is not a joint; base class of all kinds, which override some of the properties.

    Attributes
    ----------
    name : name of the constraint
    """

    name: str

    @property
    def kind(self) -> str:
        """Name of the kind: Distance, Coupler, PrescribedMotion, Rolling or Pfaffian."""
        return type(self).__name__.removesuffix("Spec")

    @property
    def bodies(self) -> tuple[str, ...]:
        """(parent, child), or () for a relation of coordinates."""
        return ()

    @property
    def points(self) -> tuple[tuple[str, Point], ...]:
        """(body, point) of each point of application of the constraint; the child's point is the last."""
        return ()

    @property
    def at_child(self) -> Transform:
        """Frame on the child at which the constraint wrench acts, and in whose axes it is expressed."""
        return Transform(translation=self.points[-1][1]) if self.points else Transform()

    @property
    def circles(self) -> tuple[tuple[Point, Point, float], ...]:
        """(centre, normal, radius) of circles that represent the child in drawings, in the child's frame; () for none."""
        return ()

    @property
    def position_joints(self) -> tuple[str, ...]:
        """Names of the joints whose coordinates the constraint constrains, including the number of full revolutions."""
        return ()

    @property
    def joints_related(self) -> tuple[str, ...]:
        """Names of the joints whose coordinates or velocities the constraint relates."""
        return self.position_joints

    def with_locked(self, joint: str, q: Sequence[float]) -> ConstraintSpec | None:
        """Return the constraint that remains if one of its joints is locked; None if none remains.

        Raise ModelError if it cannot be satisfied.

        Parameters
        ----------
        joint : name of the locked joint
        q : (nq of the joint,) coordinates at which the joint is locked [rad, m]
        """
        raise ModelError(
            f"joint '{joint}' cannot be locked: constraint '{self.name}' relates it to other joints; first remove the constraint"
        )

    def prescribed(self, time: float) -> tuple[str, int, float] | None:
        """Return (joint, index, value [rad, m]) of the coordinate that the constraint prescribes at a time; None for other constraints.

        Parameters
        ----------
        time : time [s]
        """
        return None


@dataclass(frozen=True)
class DistanceSpec(ConstraintSpec):
    """Massless rod between points of two bodies.

    Attributes
    ----------
    name : name of the constraint
    first, second : end points, each (body, (3,) position in the body's frame [m])
    length : length of the rod [m]
    """

    first: tuple[str, Point]
    second: tuple[str, Point]
    length: float

    @property
    def bodies(self) -> tuple[str, ...]:
        return (self.first[0], self.second[0])

    @property
    def points(self) -> tuple[tuple[str, Point], ...]:
        return (self.first, self.second)

    def __str__(self) -> str:
        return f"{self.name}: Distance({self.length:g}) ─ from {self.first[0]} to {self.second[0]}"


@dataclass(frozen=True)
class RollingSpec(ConstraintSpec):
    """Rolling of a disc (with an axle) or a sphere on a plane or a sphere of another body, see :meth:`sarrus.Builder.add_rolling`.

    Attributes
    ----------
    name : name of the constraint
    body, on : names of the rolling body, and of the body on which it rolls
    radius : radius of the disc's rim or of the sphere [m]
    center : (3,) centre of the disc or the sphere, in the body's frame [m]
    axle : (3,) unit vector of the disc's axis in the body's axes (dimensionless); None for a sphere
    point : (3,) point of the plane, or centre of the sphere `on`, in the frame of `on` [m]
    normal : (3,) unit normal of the plane, towards the rolling body, in the axes of `on` (dimensionless)
    on_radius : radius of the sphere on which a sphere rolls, negative if it rolls inside [m]; None for a plane
    spin : True if the bodies may spin on each other about the normal
    """

    body: str
    radius: float
    center: Point
    axle: Point | None
    on: str
    point: Point
    normal: Point
    on_radius: float | None
    spin: bool = True

    @property
    def bodies(self) -> tuple[str, ...]:
        return (self.on, self.body)

    @property
    def points(self) -> tuple[tuple[str, Point], ...]:
        return ((self.body, self.center),)

    @property
    def circles(self) -> tuple[tuple[Point, Point, float], ...]:
        normals = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)) if self.axle is None else (self.axle,)
        return tuple((self.center, normal, self.radius) for normal in normals)

    def __str__(self) -> str:
        wheel = "disc" if self.axle is not None else "sphere"
        spin = "" if self.spin else ", no spin"
        return f"{self.name}: Rolling({wheel}, radius={self.radius:g}{spin}) ─ {self.body} on {self.on}"


@dataclass(frozen=True)
class CouplerSpec(ConstraintSpec):
    """Relation between joint coordinates: the sum of polynomials, and of products of functions, equals offset + law(t) [rad, m].

    Attributes
    ----------
    name : name of the constraint
    terms : (joint, index of its coordinate, coefficients of q, q^2, ...) of each polynomial [rad, m; per powers of the coordinate's unit]; the
        polynomials have no constant terms
    offset : constant part of the right-hand side [rad, m]
    law : time function that is added to the offset [rad, m], or None
    products : factors (joint, index of its coordinate, function of the coordinate) of each product [rad, m]
    """

    terms: tuple[tuple[str, int, tuple[float, ...]], ...]
    offset: float = 0.0
    law: Law | None = None
    products: tuple[tuple[tuple[str, int, Law], ...], ...] = ()

    @property
    def kind(self) -> str:
        return "Coupler" if self.law is None else "PrescribedMotion"

    @property
    def position_joints(self) -> tuple[str, ...]:
        return tuple(joint for joint, _ in self.coordinates)

    @property
    def coordinates(self) -> tuple[tuple[str, int], ...]:
        """(joint, index) of the coordinates, each once."""
        parts = (*self.terms, *(factor for product in self.products for factor in product))
        return tuple(dict.fromkeys((joint, index) for joint, index, _ in parts))

    @property
    def is_polynomial(self) -> bool:
        """True if the sum contains only polynomials of one coordinate each, and the right-hand side is a number."""
        return self.law is None and not self.products

    def prescribed(self, time: float) -> tuple[str, int, float] | None:
        if self.law is None or self.products or len(self.terms) != 1 or self.terms[0][2] != (1.0,):
            return None
        joint, index, _ = self.terms[0]
        return joint, index, self.offset + self.law(time)

    def with_locked(self, joint: str, q: Sequence[float]) -> ConstraintSpec | None:
        fixed = [(q[k], coefficients) for name, k, coefficients in self.terms if name == joint]
        numbers = [c * x**n for x, coefficients in fixed for n, c in enumerate(coefficients, 1)]
        products = []
        for product in self.products:
            number = float(np.prod([function(q[k]) for name, k, function in product if name == joint]))
            moving = tuple(factor for factor in product if factor[0] != joint)
            if moving and number:
                (name, k, function), *rest = moving
                products.append(((name, k, function * number), *rest))
            elif not moving:
                numbers.append(number)
        left, offset = tuple(term for term in self.terms if term[0] != joint), self.offset - sum(numbers)
        if left or products:
            return replace(self, terms=left, offset=offset, products=tuple(products))
        size = sum(map(abs, numbers))
        if self.law is None and abs(offset) <= 1e-9 * (size + abs(self.offset)):
            return None
        reason = "prescribes it by a time function" if self.law else f"would be violated by {offset:.3g}"
        raise ModelError(
            f"joint '{joint}' cannot be locked at {list(q)}: constraint '{self.name}' {reason}; first remove the constraint"
        )

    def __str__(self) -> str:
        right = "law(t)" if self.law is not None else f"{self.offset:g}"
        products = [" ".join(f"f({_named(joint, index)})" for joint, index, _ in product) for product in self.products]
        return f"{self.name}: {self.kind} ─ {' + '.join([*(_polynomial(*term) for term in self.terms), *products])} = {right}"


@dataclass(frozen=True)
class PfaffianSpec(ConstraintSpec):
    """Constraint rows A(q) v = c on the velocities of some joints; A is constant (row-major) or a function of q.

    Attributes
    ----------
    name : name of the constraint
    rows : A, (k, n) for the n velocities of the joints, in the order of `joints` [units such that A v has the unit of `value`]; or a function of
        configurations (..., nq) that returns (..., k, n)
    joints : names of the joints whose velocities are in the rows
    value : (k,) right-hand side c [rad/s, m/s]
    derivative : function of configurations (..., nq) and velocities (..., nv) that returns dA/dt (..., k, n); None: central differences
    """

    rows: tuple[tuple[float, ...], ...] | Callable[[Any], Any]
    joints: tuple[str, ...]
    value: tuple[float, ...]
    derivative: Callable[[Any, Any], Any] | None = None

    @property
    def joints_related(self) -> tuple[str, ...]:
        return self.joints

    def __str__(self) -> str:
        return f"{self.name}: Pfaffian({len(self.value)} rows) ─ {', '.join(self.joints)}"


@dataclass(frozen=True)
class _BetweenFrames:
    """Base class of kinds for which a class is generated: a frame on each of two bodies, and numerical parameters."""

    parent: str
    child: str
    at_parent: Transform = field(default=Transform(), kw_only=True)
    at_child: Transform = field(default=Transform(), kw_only=True)

    @property
    def bodies(self) -> tuple[str, ...]:
        return (self.parent, self.child)

    @property
    def points(self) -> tuple[tuple[str, Point], ...]:
        ends = (self.parent, self.at_parent), (self.child, self.at_child)
        return tuple((body, tuple(place.translation.tolist())) for body, place in ends)

    def __str__(self: Any) -> str:
        numbers = ", ".join(f"{key}={getattr(self, key):g}" for key in KINDS[self.kind] or ())
        return f"{self.name}: {self.kind}({numbers}) ─ from {self.parent} to {self.child}"


@dataclass(frozen=True)
class TargetSpec(ConstraintSpec):
    """Constraint to a target, which is an argument of each call.

    The target is a position of a frame, a pose of a frame (`turned`), the coordinates of a loop joint, or the coordinate `index` of a tree joint. It
    occurs only in auxiliary mechanisms for loop closure.

    Attributes
    ----------
    name : name of the constraint
    frame : name of the frame, or "" for a target of coordinates
    turned : True for a pose, False for a position of the frame
    components : bit set of the prescribed components of [angular; linear]; 0: all components of a pose, or of a position
    in_world : True if the components are along the world's axes, False for the frame's axes
    joint : name of the joint, or "" for a target of a frame
    index : index of the coordinate of a tree joint; -1 for all coordinates of a loop joint
    bodies : (parent, child) of the constraint rows
    """

    frame: str = ""
    turned: bool = False
    components: int = 0
    in_world: bool = False
    joint: str = ""
    index: int = -1
    bodies: tuple[str, ...] = ("ground", "ground")

    def __str__(self) -> str:
        return f"{self.name}: {'coordinates' if self.joint else 'pose' if self.turned else 'point'}"


def _named(joint: str, index: int) -> str:
    return joint if index == 0 else f"{joint}[{index}]"


def _polynomial(joint: str, index: int, coefficients: Sequence[float]) -> str:
    q = _named(joint, index)
    powers = [f"{c:g} {q}{'' if k == 0 else f'^{k + 1}'}" for k, c in enumerate(coefficients) if c != 0.0]
    return " + ".join(powers) or f"0 {q}"


def _declared(kind: str) -> type[ConstraintSpec]:
    """Return the class of a kind that has none above."""
    numbers = KINDS[kind] or ()
    doc = f"{kind} of {', '.join(numbers)}, between frames of two bodies."
    members = {"__doc__": doc, "__module__": __name__, "__annotations__": dict.fromkeys(numbers, float)}
    return dataclass(type(f"{kind}Spec", (_BetweenFrames, ConstraintSpec), members), frozen=True)


DECLARED = {
    f"{kind}Spec": _declared(kind) for kind, numbers in KINDS.items() if numbers and f"{kind}Spec" not in globals()
}
globals().update(DECLARED)
