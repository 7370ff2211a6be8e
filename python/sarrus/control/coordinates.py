"""Coordinates of joints that controllers follow: where they stand, and what they count."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from ..description.joints import JointType
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError


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
