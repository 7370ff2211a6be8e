"""Coordinates and velocities of joints on which controllers act: their indices, and full revolutions."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from ..description.joints import JointType
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError


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


def velocities(mechanism: LoopFunctions, names: Iterable[str]) -> list[int]:
    """Return the indices of all velocities of joints."""
    return [k for name in names for k in range(*mechanism.joint(name)._all_v.indices(2**31))]
