"""Plugins of Gazebo, which act while it runs: those that make one joint follow another are read, and others warned of that may tie or push bodies."""

from __future__ import annotations

import re
from typing import NamedTuple

from .document import Element

# sensors, what shows or reports, and laws of control, by words in their names
OF_NO_CONCERN = re.compile(
    "sensor|camera|laser|lidar|imu|gps|navsat|magnetometer|altimeter|contact|bumper|state|publish|odometry|p3d|pose|video|gui|light|"
    "user|scene|broadcast|physics|control|drive|record|log|label|battery|init"
)


class Mimic(NamedTuple):
    """q of `follower` = multiplier q of `leader` + offset."""

    leader: str
    follower: str
    multiplier: float
    offset: float


def mimic(plugin: Element) -> Mimic | None:
    """The joint that a plugin makes follow another one; None, and a warning if it may act on bodies, of other plugins."""
    leader, follower = (next(iter(plugin.all(tag)), None) for tag in ("joint", "mimicJoint"))
    if leader is not None and follower is not None:
        numbers = plugin.child_number("multiplier", 1.0), plugin.child_number("offset", 0.0)
        return Mimic(leader.words(), follower.words(), *numbers)
    called = [plugin.get(attribute) or "" for attribute in ("name", "filename")]
    name = next(filter(None, called), "without a name")
    if "detachablejoint" in "".join(called).lower().replace("-", ""):
        ends = [child.words() for child in plugin.all("parent_link", "child_link")]
        what = f"plugin {name!r} holds {' and '.join(map(repr, ends))} together while Gazebo runs"
        plugin.note(f"{what}, which is not read: write a <joint> of type fixed between them")
    elif not OF_NO_CONCERN.search(" ".join(called).lower()):
        plugin.note("plugins are not read, whatever they do to bodies and joints:", repr(name[:200]))
    return None
