"""Rates of dampers, springs and contacts, beside which steps of a simulation are long or short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .. import _core
from .._arrays import Array
from ..analysis.assembly.closing import prepared
from ..control.coordinates import direction, felt_along
from ..mechanism import Mechanism

STABLE = _core.methods["rk4"].stable
CURE = "method='implicit_midpoint', {shorter}"


@dataclass(frozen=True)
class FastRate:
    """A fast motion that a force makes: `rate` [1/s], `what` makes it ("damping" or "stiffness") with which `number`, the `owner` of that, and a `cure`."""

    rate: float
    what: str
    number: float
    owner: str
    cure: str
    of_contact: bool = False

    def beside(self, method: str, dt: float) -> str:
        """Return that steps of a method are too long for it, and the cure."""
        stable = _core.methods[method].stable
        follows = f", where '{method}' can follow {stable:.3g}" if np.isfinite(stable) else ""
        shorter = min(stable, STABLE) / self.rate
        return (
            f"{self.what} {self.number:.3g} of {self.owner} is too fast for '{method}' with dt = {dt:.3g} s: its rate is "
            f"{self.rate:.3g}/s, {self.rate * dt:.3g} a step{follows}. Give {self.cure.format(shorter=f'dt = {shorter:.1g} or less')}"
        )


def fastest_rate(robot: Mechanism, q: Array, elements: Iterable[Any] = ()) -> FastRate | None:
    """Return the fastest rate of the mechanism's dampers and springs and of contacts among force elements, on the loops at q (nq,)."""
    rates = [*_of_joints(robot, q), *_of_springs(robot), *_of_contacts(robot, elements)]
    return max(rates, key=lambda fast: fast.rate, default=None)


def _of_joints(robot: Mechanism, q: Array) -> Iterator[FastRate]:
    """Yield those of joints' own dampers and springs, with the inertia that each velocity feels."""
    terms = prepared(robot, "joint rates", lambda: _terms(robot))
    if not terms:
        return
    inertia = felt_along(robot, np.stack([direction(robot, iv, q) for *_, iv in terms]), q).tolist()
    for (what, n, name, _), felt in zip(terms, inertia, strict=True):
        rate = n / felt if what == "damping" else (n / felt) ** 0.5
        yield FastRate(rate, what, n, f"joint '{name}'", CURE + ", or the joint's bodies more inertia")


def _of_springs(robot: Mechanism) -> Iterator[FastRate]:
    """Yield those of springs between points, with the masses of the bodies at their ends."""
    mass = {body.name: body.inertia.mass for body in robot.description.bodies}
    for spring in robot.description.springs:
        per_mass = sum(1.0 / mass[end[0]] for end in (spring.first, spring.second) if mass.get(end[0]))
        owner = f"spring '{spring.name}'"
        yield FastRate((spring.stiffness * per_mass) ** 0.5, "stiffness", spring.stiffness, owner, CURE)
        yield FastRate(spring.damping * per_mass, "damping", spring.damping, owner, CURE)


def _of_contacts(robot: Mechanism, elements: Iterable[Any]) -> Iterator[FastRate]:
    """Yield those of compliant contacts that carry the mechanism's weight."""
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    for contact in (e for e in elements if getattr(e, "_kind", "") == "CompliantContact"):
        k, n = (float(np.max(x)) for x in (contact.stiffness, contact.exponent))
        slope = n * k ** (1.0 / n) * weight ** (1.0 - 1.0 / n)
        rate = (slope / robot.mass) ** 0.5 if robot.mass > 0.0 else 0.0
        cure = "{shorter}, or RigidContact, which has no stiffness, in method='contact'"
        yield FastRate(rate, "stiffness", k, f"CompliantContact of '{contact.frame}'", cure, of_contact=True)


def _terms(robot: Mechanism) -> list[tuple[str, float, str, int]]:
    """Dampers and springs: what each is, its number, its joint, and the place of its velocity among all."""
    return [
        (what, number, name, joint._all_v.start + i)
        for name, joint in ((name, cast(Any, robot.joint(name))) for name in (*robot.joints, *robot.loop_joints))
        for what in ("damping", "stiffness")
        for i, number in enumerate(np.broadcast_to(getattr(joint.type, what), (joint.type.nv,)).tolist())
        if number > 0.0
    ]


def outruns(robot: Mechanism, q: Array, dt: float) -> bool:
    """Return True if one of a mechanism's own is faster than half of what explicit steps follow: felt inertia changes along a motion."""
    return (fastest := fastest_rate(robot, q)) is not None and fastest.rate * dt > 0.5 * STABLE
