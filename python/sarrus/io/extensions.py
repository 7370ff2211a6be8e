"""Extensions of URDF and SDF: Gazebo's plugins, and what Drake adds: constraints and springs, ``drake:ball_constraint`` and its like.

==============================  ===================================================================================
`drake:ball_constraint`         a Spherical joint that closes a loop
`drake:distance_constraint`     a distance; with a finite stiffness, a spring with a damper
`drake:tendon_constraint`       a coupler, where it has one length and is stiff; otherwise a warning
`drake:linear_spring_damper`    a spring
`drake:rotor_inertia`,          the armature of the joint that a `<transmission>` of a URDF drives, or of an SDF's joint: inertia times the square of the
`drake:gear_ratio`              ratio
`drake:mu_dynamic`              the friction of a collision's shape, `drake:mu_static` where it stands alone; a warning where they differ
`drake:linear_bushing_rpy`      a Gimbal between the two frames of which everything is free, with six springs and dampers: the
                                same torques; forces act along the axes of frame C, Drake's half way between the frames' axes
==============================  ===================================================================================

Names and numbers stand in attributes (URDF) or in the text (SDF).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container
from typing import NamedTuple

from ..building.builder import Builder
from ..description import joints
from ..spatial import Transform
from .document import Element, at, free_name

# body and pose in it of a link or frame that an element names
Place = Callable[[Element, str], tuple[str, Transform]]

_POINTS = "body_A body_B p_AP p_BQ"
_PARTS = {
    "ball_constraint": ("ball_constraint", _POINTS),
    "distance_constraint": ("distance_constraint", f"{_POINTS} distance stiffness damping"),
    "tendon_constraint": ("tendon_constraint", "joint offset lower_limit upper_limit stiffness damping"),
    "linear_spring_damper": ("linear_spring_damper", f"{_POINTS} free_length stiffness damping"),
    "linear_bushing_rpy": ("bushing", "frameA frameC torque_stiffness torque_damping force_stiffness force_damping"),
}
FRICTIONS = ("drake:mu_static", "drake:mu_dynamic")  # the last that is told counts
ROTOR = ("drake:rotor_inertia", "drake:gear_ratio")  # of a motor
TAGS = tuple(f"drake:{kind}" for kind in _PARTS)
KNOWN = {
    f"drake:{kind}": f"name | {' '.join(f'drake:{prefix}_{part}' for part in parts.split())}"
    for kind, (prefix, parts) in _PARTS.items()
} | {f"drake:{prefix}_{part}": "value name a |" for prefix, parts in _PARTS.values() for part in parts.split()}


def coupled(model: Element) -> set[str]:
    """Names of the joints that tendons couple, which have to keep their coordinates."""
    tendons = model.all("drake:tendon_constraint")
    return {joint.text("name") for tendon in tendons for joint in tendon.all("drake:tendon_constraint_joint")}


def armatures(robot: Element) -> dict[str, float]:
    """Rotors of joints that a URDF's transmissions drive, by their names."""
    found: dict[str, float] = {}
    for transmission in robot.all("transmission"):
        numbers = {
            part.tag: part.number("value") for motor in transmission.all("actuator") for part in motor.all(*ROTOR)
        }
        if inertia := numbers.get(ROTOR[0], 0.0):
            ratio = numbers.get(ROTOR[1], 1.0)
            found |= {name: inertia * ratio**2 for joint in transmission.all("joint") if (name := joint.get("name"))}
    return found


def friction(collision: Element) -> dict[str, float]:
    """Coulomb's coefficient of a collision, by name, where its proximity properties tell it."""
    told = [part for owner in collision.all("drake:proximity_properties") for part in owner.children]
    mu = {part.tag: part.number("value" if part.get("value") else None) for part in told if part.tag in FRICTIONS}
    if len(set(mu.values())) > 1:
        collision.note("friction at rest that differs from that of sliding (drake:mu_static) is not read")
    return {"friction": mu[max(mu, key=FRICTIONS.index)]} if mu else {}


def add(
    builder: Builder, model: Element, place: Place, joint: Callable[[Element, str], str], taken: Container[str]
) -> None:
    """Add the constraints and springs of a model; `joint` is the name of a joint of one axis that an element names."""
    count = dict.fromkeys(TAGS, 0)
    for element in model.all(*TAGS):
        element.look_for_unknown()
        count[element.tag] += 1
        kind = element.tag.removeprefix("drake:")
        name = element.get("name") or f"{kind}_{count[element.tag]}"
        with at(element):
            _add(builder, kind, free_name(name, taken), _Parts(element, _PARTS[kind][0]), place, joint)


class _Parts:
    """The children of an element, by what follows the prefix of their tags."""

    def __init__(self, element: Element, prefix: str) -> None:
        self.element, self.prefix = element, f"drake:{prefix}_"

    def needed(self, part: str) -> Element:
        return self.element.needed(self.prefix + part)

    def numbers(self, part: str, n: int) -> tuple[float, ...]:
        return self._numbers(self.needed(part), n)

    def number(self, part: str, default: float) -> float:
        child = self.element.child(self.prefix + part)
        return default if child is None else self._numbers(child, 1)[0]

    @staticmethod
    def _numbers(child: Element, n: int) -> tuple[float, ...]:
        return child.numbers("value" if child.get("value") else None, n, finite=False)

    def place(self, part: str, place: Place) -> tuple[str, Transform]:
        child = self.needed(part)
        return place(child, child.get("name") or child.words())

    def point(self, which: str, place: Place) -> tuple[str, tuple[float, ...]]:
        """(body, point) of end A or B."""
        body, pose = self.place(f"body_{which}", place)
        return body, tuple(pose.apply(self.numbers({"A": "p_AP", "B": "p_BQ"}[which], 3)).tolist())


def _add(
    builder: Builder, kind: str, name: str, parts: _Parts, place: Place, joint: Callable[[Element, str], str]
) -> None:
    if kind == "linear_bushing_rpy":
        (a, at_a), (c, at_c) = parts.place("frameA", place), parts.place("frameC", place)
        stiffness, damping = (
            [*parts.numbers(f"torque_{what}", 3), *parts.numbers(f"force_{what}", 3)]
            for what in ("stiffness", "damping")
        )
        # R_AC = Rz(yaw) Ry(pitch) Rx(roll), so that A in C is Rx(-roll) Ry(-pitch) Rz(-yaw): a gimbal's rotations
        bushing = joints.Gimbal(joints.PARAMETERS, stiffness=stiffness, damping=damping)
        builder.add_joint(name, bushing, c, a, at_parent=at_c, at_child=at_a, loop=True)
        return
    stiffness_of, damping_of = parts.number("stiffness", math.inf), parts.number("damping", 0.0)
    if kind == "tendon_constraint":
        low, high = (parts.number(f"{which}_limit", sign * math.inf) for which, sign in (("lower", -1), ("upper", 1)))
        if low != high or math.isfinite(stiffness_of):
            parts.element.note(f"{parts.element} is elastic or has some play, which is not read: it holds nothing")
            return
        terms = {
            joint(one, one.text("name")): one.number("a") for one in parts.element.all("drake:tendon_constraint_joint")
        }
        builder.add_coupler(name, terms, offset=low - parts.number("offset", 0.0))
        return
    first, second = parts.point("A", place), parts.point("B", place)
    if kind == "ball_constraint":
        (a, p_A), (b, p_B) = first, second
        builder.add_joint(name, joints.Spherical(), a, b, at_parent=p_A, at_child=p_B, loop=True)
        return
    length = parts.numbers("distance" if kind == "distance_constraint" else "free_length", 1)[0]
    if kind == "distance_constraint" and math.isinf(stiffness_of):
        builder.add_distance(name, first, second, length=length)
    else:
        builder.add_spring(name, first, second, stiffness=stiffness_of, rest_length=length, damping=damping_of)


# ---- plugins of Gazebo -----------------------------------------------------------------------------------------------
# Plugins of Gazebo, which act while it runs: those that make one joint follow another are read, and others warned of that may tie or push bodies.

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
