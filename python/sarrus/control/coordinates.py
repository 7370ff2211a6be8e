"""Coordinates and velocities of joints at which controllers act: where they stand, what they count, and the inertia that is felt there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from .._arrays import Array
from ..analysis.independent_coordinates import reduced_form
from ..description.joints import JointType
from ..dynamics.loop_operations import LoopFunctions
from ..errors import AssemblyError, ModelError, StateError

MOST_FELT = 1e6  # times what a joint would feel of an open tree: beyond that loops hold it, or nearly


def coordinate(mechanism: LoopFunctions, name: str, index: int, what: str) -> tuple[int, int]:
    """Where a coordinate of a joint, and the velocity that is its rate, stand; ModelError where there are none."""
    joint = mechanism.joint(name)
    if joint.type.quaternion:
        raise ModelError(f"{what} needs a joint whose coordinates add up; '{name}' is {joint.type}")
    k = checked_index(name, joint.type.nv, index, "coordinates")
    if not joint.type.rates[k]:
        raise ModelError(
            f"{what} needs a coordinate whose rate is one of the velocities; that of coordinate {k} of '{name}', {joint.type}, is not, "
            "as its velocities are along axes that turn with it"
        )
    return joint._all_q.start + k, joint._all_v.start + k


def one_a_coordinate(value: Any, count: int) -> list[Any]:
    """Targets of a joint's coordinates; of a single coordinate a longer sequence is one a run."""
    several = isinstance(value, (tuple, list)) and (count != 1 or len(value) == 1)
    return list(value) if several else [value]


def loses_turns(mechanism: LoopFunctions, name: str, index: int) -> bool:
    """Whether a coordinate is an angle whose whole turns no pose tells: of a joint that closes a loop, which a screw's displacement tells."""
    joint = mechanism.joint(name)
    returns = joint.type.whole_turns_return or getattr(joint.type, "pitch", None) == 0.0
    return bool(joint.closes_loop and returns and joint.type.coordinates[index][1] == "rad")


def turning(kind: JointType) -> list[bool]:
    """Of each velocity of a joint, whether it is angular."""
    return [unit.startswith("rad") for _, unit in kind.velocities]


def checked_index(name: str, count: int, index: Any, what: str) -> int:
    if isinstance(index, bool) or not isinstance(index, Integral) or not 0 <= int(index) < count:
        raise ModelError(f"joint '{name}' has {count} {what}; index={index!r} is none of them")
    return int(index)


def velocity(mechanism: LoopFunctions, name: str, index: Any) -> int:
    """Where a velocity of a joint stands."""
    joint = mechanism.joint(name)
    return int(joint._all_v.start) + checked_index(name, joint.type.nv, index, "velocities")


def velocities(mechanism: LoopFunctions, names: Iterable[str]) -> list[int]:
    """Where all velocities of joints stand."""
    return [k for name in names for k in range(*mechanism.joint(name)._all_v.indices(2**31))]


def motors(mechanism: LoopFunctions, what: str) -> list[int]:
    """The velocity that each motor drives."""
    if not mechanism.actuated:
        raise ModelError(f"{what} needs motors, and no joint has one: give those that do actuated=True")
    return velocities(mechanism, mechanism.actuated)


def check_independent(mechanism: Any, what: str, names: list[tuple[str, int]]) -> None:
    """ModelError where in none of several configurations these coordinates determine the motion, and do not depend on one another."""
    mechanism = mechanism._base  # of variants, which have the same freedoms
    rest, wrong = np.zeros(mechanism.nv), None
    for draw in range(4):
        try:
            q = mechanism.random(draw, closed=True) if draw else mechanism.assemble()
        except AssemblyError:
            continue
        try:
            reduced_form(mechanism, q, rest, names)
            return
        except StateError as error:  # perhaps only there
            wrong = wrong or error
    if wrong:
        raise ModelError(
            f"targets of {what} must be as many independent coordinates as there are degrees of freedom: {wrong}"
        )


def felt_inertia(mechanism: Any, velocities: Sequence[int], start: Any) -> Array:
    """What a force along the sum of some velocities accelerates where a run begins, or each of them does, at rest: on the loops, which know no cut."""
    q = mechanism.neutral() if start is None else np.asarray(start, dtype=np.float64)
    return felt_along(mechanism, np.sum([direction(mechanism, iv, q) for iv in velocities], axis=0), q)


def felt_along(mechanism: Any, along: Array, q: Array) -> Array:
    """The same along directions (..., nv)."""
    rest = np.zeros_like(q[..., : mechanism.nv])
    asked = {"check": False} if mechanism.nc else {}
    left = np.asarray(mechanism.forward_dynamics(q, rest, rest, **asked))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        free = (along * (np.asarray(mechanism.mass_matrix(q)) @ along[..., None])[..., 0]).sum(axis=-1)
        # as hard as what acts there, beside which a push of 1 N is nothing to a large mechanism
        push = np.where(free > 0.0, free * (1.0 + np.abs((left * along).sum(axis=-1))), 1.0)
        pushed = np.asarray(mechanism.forward_dynamics(q, rest, push[..., None] * along, **asked))
        felt = push / ((pushed - left) * along).sum(axis=-1)
    # a joint that loops hold fast feels no end of it
    sound = np.isfinite(felt) & (felt > 0.0) & (felt < MOST_FELT * free)
    return np.asarray(np.where(sound, felt, np.where(free > 0.0, free, 1.0)))


def direction(mechanism: Any, iv: int, q: Array) -> Array:
    """(..., nv) of the tree's velocities, what a velocity of any joint is made of."""
    if iv >= mechanism.nv:
        return np.asarray(mechanism._loop_joint_jacobian(q))[..., iv - mechanism.nv, :]
    return np.broadcast_to(np.eye(mechanism.nv)[iv], (*q.shape[:-1], mechanism.nv))
