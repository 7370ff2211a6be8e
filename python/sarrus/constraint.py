"""What ties a mechanism's velocities besides its tree, and how that shows itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .description import ConstraintSpec, CouplerSpec, DistanceSpec, JointSpec, RollingSpec, TargetSpec

_COMPONENTS = ("rotation about x", "rotation about y", "rotation about z", "x", "y", "z")


@dataclass(frozen=True)
class Constraint:
    """A joint that closes a loop, or another relation between velocities.

    Attributes
    ----------
    spec : as it was described
    rows : slice into the nc rows of all constraints
    row_names : one name a row
    """

    spec: JointSpec | ConstraintSpec
    rows: slice
    row_names: tuple[str, ...]

    @classmethod
    def placed(cls, spec: JointSpec | ConstraintSpec, row: int, components: Sequence[int]) -> Constraint:
        """`components` says which component of the relative motion each row takes away, or -1."""
        names = _row_names(spec, components)
        return cls(spec, slice(row, row + len(components)), tuple(f"{spec.name}: {name}" for name in names))

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name

    @property
    def kind(self) -> str:
        """The joint's type, or Distance, Coupler, PrescribedMotion, Rolling, Pfaffian."""
        if isinstance(self.spec, JointSpec):
            return self.spec.joint.kind
        if isinstance(self.spec, CouplerSpec) and self.spec.law is not None:
            return "PrescribedMotion"
        return type(self.spec).__name__.removesuffix("Spec")

    @property
    def bodies(self) -> tuple[str, ...]:
        """(parent, child), or () where it relates coordinates."""
        if isinstance(self.spec, JointSpec):
            return (self.spec.parent, self.spec.child)
        if isinstance(self.spec, DistanceSpec):
            return (self.spec.first[0], self.spec.second[0])
        if isinstance(self.spec, TargetSpec):
            return ("ground", self.spec.frame)
        return (self.spec.on, self.spec.body) if isinstance(self.spec, RollingSpec) else ()

    @property
    def holonomic(self) -> tuple[bool, ...]:
        """Per row, whether it also holds positions."""
        rows = len(self.row_names)
        if isinstance(self.spec, RollingSpec):
            return (True, False, False)
        return (self.kind != "Pfaffian",) * rows

    def __str__(self) -> str:
        spec = self.spec
        if isinstance(spec, JointSpec):
            driven = ", driven" if spec.laws else ""
            return f"{spec.name}: {spec.joint} ─ from {spec.parent} to {spec.child}{driven}"
        if isinstance(spec, DistanceSpec):
            return f"{spec.name}: Distance({spec.length:g}) ─ from {spec.first[0]} to {spec.second[0]}"
        if isinstance(spec, RollingSpec):
            what = "disc" if spec.axle is not None else "sphere"
            return f"{spec.name}: Rolling({what}, radius={spec.radius:g}) ─ {spec.body} on {spec.on}"
        if isinstance(spec, CouplerSpec):
            right = "law(t)" if spec.law is not None else f"{spec.offset:g}"
            return f"{spec.name}: {self.kind} ─ {' + '.join(_term(*t) for t in spec.terms)} = {right}"
        if isinstance(spec, TargetSpec):
            return f"{spec.name}: {'pose' if spec.turned else 'point'}"
        return f"{spec.name}: Pfaffian({len(self.row_names)} rows) ─ {', '.join(spec.joints)}"


def _term(joint: str, index: int, coefficients: Sequence[float]) -> str:
    q = joint if index == 0 else f"{joint}[{index}]"
    powers = [f"{c:g} {q}{'' if k == 0 else f'^{k + 1}'}" for k, c in enumerate(coefficients) if c != 0.0]
    return " + ".join(powers) or f"0 {q}"


def _row_names(spec: JointSpec | ConstraintSpec, components: Sequence[int]) -> list[str]:
    if isinstance(spec, RollingSpec):
        return ["contact", "slip 1", "slip 2"]
    if isinstance(spec, TargetSpec):
        return [_COMPONENTS[k] for k in components]
    if isinstance(spec, JointSpec):
        plain = all(k >= 0 for k in components)
        turned = getattr(spec.joint, "axis", getattr(spec.joint, "normal", None)) is not None
        if plain:  # in axes of which the joint's own is z
            return [_COMPONENTS[k] + (" across" if turned and k % 3 < 2 else "") for k in components]
    return ["length"] if isinstance(spec, DistanceSpec) else [f"row {k + 1}" for k in range(len(components))]
