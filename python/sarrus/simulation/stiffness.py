"""Rates of dampers, springs and contacts, which bound the steps of a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .. import _core
from .._arrays import Array
from ..analysis.assembly.closing import prepared
from ..control.coordinates import direction, effective_inertia_along
from ..mechanism import Mechanism

STABLE = _core.methods["rk4"].stable
CURE = "method='implicit_midpoint', {shorter}"


@dataclass(frozen=True)
class FastRate:
    """Rate of a damper or spring [1/s], with its `quantity` ("damping" or "stiffness"), the `number` (value), the `owner`, and a `cure`."""

    rate: float
    quantity: str
    number: float
    owner: str
    cure: str
    is_contact: bool = False

    def message(self, method: str, dt: float) -> str:
        """Return the message that a method's steps are too long, with the cure."""
        stable = _core.methods[method].stable
        follows = f", and '{method}' is stable up to {stable:.3g} per step" if np.isfinite(stable) else ""
        shorter = min(stable, STABLE) / self.rate
        return (
            f"{self.quantity} {self.number:.3g} of {self.owner} is too fast for '{method}' with dt = {dt:.3g} s: its rate is "
            f"{self.rate:.3g}/s, or {self.rate * dt:.3g} per step{follows}. Give {self.cure.format(shorter=f'dt = {shorter:.1g} or less')}"
        )


def fastest_rate(mechanism: Mechanism, q: Array, elements: Iterable[Any] = ()) -> FastRate | None:
    """Return the fastest rate of the mechanism's dampers and springs, and of contacts among force elements, at q (nq,) with closed loops."""
    rates = [*_of_joints(mechanism, q), *_of_springs(mechanism), *_of_contacts(mechanism, elements)]
    return max(rates, key=lambda fast: fast.rate, default=None)


def _of_joints(mechanism: Mechanism, q: Array) -> Iterator[FastRate]:
    """Yield the rates of dampers and springs of joints, computed with the effective inertia along each velocity."""
    terms = prepared(mechanism, "joint rates", lambda: _terms(mechanism))
    if not terms:
        return
    inertia = effective_inertia_along(
        mechanism, np.stack([direction(mechanism, iv, q) for *_, iv in terms]), q
    ).tolist()
    for (quantity, n, name, _), m in zip(terms, inertia, strict=True):
        rate = n / m if quantity == "damping" else (n / m) ** 0.5
        yield FastRate(rate, quantity, n, f"joint '{name}'", CURE + ", or more inertia to the bodies of the joint")


def _of_springs(mechanism: Mechanism) -> Iterator[FastRate]:
    """Yield the rates of springs between points, computed with the masses of the bodies at their ends."""
    mass = {body.name: body.inertia.mass for body in mechanism.description.bodies}
    for spring in mechanism.description.springs:
        per_mass = sum(1.0 / mass[end[0]] for end in (spring.first, spring.second) if mass.get(end[0]))
        owner = f"spring '{spring.name}'"
        yield FastRate((spring.stiffness * per_mass) ** 0.5, "stiffness", spring.stiffness, owner, CURE)
        yield FastRate(spring.damping * per_mass, "damping", spring.damping, owner, CURE)


def _of_contacts(mechanism: Mechanism, elements: Iterable[Any]) -> Iterator[FastRate]:
    """Yield the rates of compliant contacts, for a contact force equal to the mechanism's weight."""
    weight = mechanism.mass * float(np.linalg.norm(mechanism.gravity))
    for contact in (e for e in elements if getattr(e, "_kind", "") == "CompliantContact"):
        k, n = (float(np.max(x)) for x in (contact.stiffness, contact.exponent))
        slope = n * k ** (1.0 / n) * weight ** (1.0 - 1.0 / n)
        rate = (slope / mechanism.mass) ** 0.5 if mechanism.mass > 0.0 else 0.0
        cure = "{shorter}, or RigidContact, which has no stiffness, in method='contact'"
        yield FastRate(rate, "stiffness", k, f"CompliantContact of '{contact.frame}'", cure, is_contact=True)


def _terms(mechanism: Mechanism) -> list[tuple[str, float, str, int]]:
    """Return (quantity, value, joint, index of the velocity) of each damper and spring of a joint."""
    return [
        (quantity, number, name, joint._all_v.start + i)
        for name, joint in (
            (name, cast(Any, mechanism.joint(name))) for name in (*mechanism.joints, *mechanism.loop_joints)
        )
        for quantity in ("damping", "stiffness")
        for i, number in enumerate(np.broadcast_to(getattr(joint.type, quantity), (joint.type.nv,)).tolist())
        if number > 0.0
    ]


def outruns(mechanism: Mechanism, q: Array, dt: float) -> bool:
    """Return True if a rate exceeds half of the stability limit of explicit steps; the margin is needed because effective inertia changes."""
    return (fastest := fastest_rate(mechanism, q)) is not None and fastest.rate * dt > 0.5 * STABLE
