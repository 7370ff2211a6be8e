"""Coordinates and velocities of joints on which controllers act: their indices, full revolutions, and the effective inertia along them."""

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

# largest effective inertia, relative to the inertia with open loops: above this value, the loops lock the joint
MOST_INERTIA = 1e6


def coordinate(mechanism: LoopFunctions, name: str, index: int, label: str) -> tuple[int, int]:
    """Return the indices of a coordinate of a joint, and of the velocity that is its rate; raise ModelError if there are none."""
    joint = mechanism.joint(name)
    if joint.type.quaternion:
        raise ModelError(f"{label} needs a joint without quaternion; '{name}' is {joint.type}")
    k = checked_index(name, joint.type.nv, index, "coordinates")
    if not joint.type.rates[k]:
        raise ModelError(
            f"{label} needs a coordinate whose rate is a velocity; coordinate {k} of '{name}', {joint.type}, is not such a coordinate, "
            "because the velocities of this joint are along axes that rotate with it"
        )
    return joint._all_q.start + k, joint._all_v.start + k


def joint_targets(value: Any, count: int) -> list[Any]:
    """Return the targets of a joint's coordinates; for a single coordinate, a longer sequence has a target for each run."""
    several = isinstance(value, (tuple, list)) and (count != 1 or len(value) == 1)
    return list(value) if several else [value]


def loses_turns(mechanism: LoopFunctions, name: str, index: int) -> bool:
    """Return True if a coordinate is an angle of a loop joint whose full revolutions are unknown from the poses of its bodies.

    They are known for a helical joint, because its displacement determines them.
    """
    joint = mechanism.joint(name)
    returns = joint.type.whole_turns_return or getattr(joint.type, "pitch", None) == 0.0
    return bool(joint.closes_loop and returns and joint.type.coordinates[index][1] == "rad")


def turning(kind: JointType) -> list[bool]:
    """Return True for each angular velocity of a joint."""
    return [unit.startswith("rad") for _, unit in kind.velocities]


def checked_index(name: str, count: int, index: Any, label: str) -> int:
    if isinstance(index, bool) or not isinstance(index, Integral) or not 0 <= int(index) < count:
        raise ModelError(f"joint '{name}' has {count} {label}; index {index!r} is out of range")
    return int(index)


def velocity(mechanism: LoopFunctions, name: str, index: Any) -> int:
    """Return the index of a velocity of a joint."""
    joint = mechanism.joint(name)
    return int(joint._all_v.start) + checked_index(name, joint.type.nv, index, "velocities")


def velocities(mechanism: LoopFunctions, names: Iterable[str]) -> list[int]:
    """Return the indices of all velocities of joints."""
    return [k for name in names for k in range(*mechanism.joint(name)._all_v.indices(2**31))]


def motors(mechanism: LoopFunctions, label: str) -> list[int]:
    """Return the indices of the velocities that motors drive."""
    if not mechanism.actuated:
        raise ModelError(f"{label} needs motors, but no joint is actuated: build joints with actuated=True")
    return velocities(mechanism, mechanism.actuated)


def check_independent(mechanism: Any, label: str, names: list[tuple[str, int]]) -> None:
    """Raise ModelError unless these coordinates are independent and determine the motion, in at least one of several configurations."""
    mechanism = mechanism._base  # variants have the same degrees of freedom
    rest, wrong = np.zeros(mechanism.nv), None
    for draw in range(4):
        try:
            q = mechanism.random(draw, closed=True) if draw else mechanism.assemble()
        except AssemblyError:
            continue
        try:
            reduced_form(mechanism, q, rest, names)
            return
        except StateError as error:  # this configuration may be singular; the next one is tested
            wrong = wrong or error
    if wrong:
        raise ModelError(
            f"targets of {label} must be as many independent coordinates as there are degrees of freedom: {wrong}"
        )


def effective_inertia(mechanism: Any, velocities: Sequence[int], start: Any) -> Array:
    """Return the effective inertia along the sum of these velocities in the initial configuration of a run, or of each run.

    It is computed at rest, with closed loops.
    """
    q = mechanism.neutral() if start is None else np.asarray(start, dtype=np.float64)
    return effective_inertia_along(mechanism, np.sum([direction(mechanism, iv, q) for iv in velocities], axis=0), q)


def effective_inertia_along(mechanism: Any, along: Array, q: Array) -> Array:
    """Return the effective inertia along directions (..., nv) at q (..., nq), at rest."""
    rest = np.zeros_like(q[..., : mechanism.nv])
    options = {"check": False} if mechanism.nc else {}
    unforced = np.asarray(mechanism.forward_dynamics(q, rest, rest, **options))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        free = (along * (np.asarray(mechanism.mass_matrix(q)) @ along[..., None])[..., 0]).sum(axis=-1)
        # the test force has the magnitude of the acting forces, because the effect of 1 N on a large mechanism would be lost in rounding
        push = np.where(free > 0.0, free * (1.0 + np.abs((unforced * along).sum(axis=-1))), 1.0)
        pushed = np.asarray(mechanism.forward_dynamics(q, rest, push[..., None] * along, **options))
        effective = push / ((pushed - unforced) * along).sum(axis=-1)
    # the effective inertia of a locked joint is infinite
    sound = np.isfinite(effective) & (effective > 0.0) & (effective < MOST_INERTIA * free)
    return np.asarray(np.where(sound, effective, np.where(free > 0.0, free, 1.0)))


def direction(mechanism: Any, iv: int, q: Array) -> Array:
    """Return the velocity of any joint as a combination (..., nv) of the tree's velocities."""
    if iv >= mechanism.nv:
        return np.asarray(mechanism._loop_joint_jacobian(q))[..., iv - mechanism.nv, :]
    return np.broadcast_to(np.eye(mechanism.nv)[iv], (*q.shape[:-1], mechanism.nv))
