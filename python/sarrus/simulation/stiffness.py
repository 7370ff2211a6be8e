"""Rates of joints' own dampers and springs, beside which steps of a simulation are long or short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .. import _core
from .._arrays import Array
from ..analysis.assembly.closing import prepared
from ..control.coordinates import direction, felt_along
from ..mechanism import Mechanism

STABLE = _core.methods["rk4"].stable


@dataclass(frozen=True)
class JointRate:
    """How fast a damper or a spring of a joint makes it move: `rate` [1/s], of `what` it is ("damping" or "stiffness") with which `number`."""

    rate: float
    what: str
    number: float
    joint: str

    def beside(self, method: str, dt: float) -> str:
        """Say that steps of a method are too long for it, and what is to be done."""
        stable = _core.methods[method].stable
        return (
            f"{self.what} {self.number:.3g} of joint '{self.joint}' is too fast for '{method}' with dt = {dt:.3g} s: its rate is "
            f"{self.rate:.3g}/s, {self.rate * dt:.3g} a step, where '{method}' can follow {stable:.3g}. Give method='implicit_midpoint', "
            f"dt = {stable / self.rate:.1g} or less, or the joint's bodies more inertia"
        )


def fastest_joint(robot: Mechanism, q: Array) -> JointRate | None:
    """The fastest rate of the joints' own dampers and springs at q (nq,), on the loops, with the inertia that each velocity feels."""
    terms = prepared(robot, "joint rates", lambda: _terms(robot))
    if not terms:
        return None
    inertia = felt_along(robot, np.stack([direction(robot, iv, q) for *_, iv in terms]), q).tolist()
    rates = [n / I if what == "damping" else (n / I) ** 0.5 for (what, n, *_), I in zip(terms, inertia, strict=True)]
    k = int(np.argmax(rates))
    what, number, name, _ = terms[k]
    return JointRate(rates[k], what, number, name)


def _terms(robot: Mechanism) -> list[tuple[str, float, str, int]]:
    """Dampers and springs: what each is, its number, its joint, and the place of its velocity among all."""
    return [
        (what, number, name, joint._all_v.start + i)
        for name, joint in ((name, cast(Any, robot.joint(name))) for name in (*robot.joints, *robot.loop_joints))
        for what in ("damping", "stiffness")
        for i, number in enumerate(np.broadcast_to(getattr(joint.type, what), (joint.type.nv,)).tolist())
        if number > 0.0
    ]


def joints_outrun(robot: Mechanism, q: Array, dt: float) -> bool:
    """Return True if one of them is faster than half of what explicit steps follow: felt inertia changes along a motion."""
    return (fastest := fastest_joint(robot, q)) is not None and fastest.rate * dt > 0.5 * STABLE
