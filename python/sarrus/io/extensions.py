"""Readers of extensions of URDF and SDF: Gazebo's plugins, and Drake's constraints, springs, rotors and friction.

==============================  ===================================================================================
`drake:ball_constraint`         a Spherical loop joint
`drake:distance_constraint`     a distance; with a finite stiffness, a spring with a damper
`drake:tendon_constraint`       a coupler if the tendon is rigid and its two limits are equal; otherwise a warning
`drake:linear_spring_damper`    a spring
`drake:rotor_inertia`,          the armature (rotor inertia times gear ratio squared) of a joint: in a URDF the joint that the
`drake:gear_ratio`              `<transmission>` drives, in an SDF the joint that contains the tags. In a differential: the motor's
                                rotor inertia
`drake:mu_dynamic`              the friction coefficient of a collision shape. `drake:mu_static` is used if it is the only one of the two; a warning
                                if the two differ
`drake:linear_bushing_rpy`      a Gimbal joint with six degrees of freedom between frames A and C, with six springs and dampers. The torques equal
                                Drake's. The forces act along the axes of frame C; in Drake they act along axes halfway between A and C
==============================  ===================================================================================

Names and numbers are attributes (URDF) or text (SDF).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

import numpy as np

from .._arrays import Array
from ..building.builder import Builder
from ..description import joints
from ..spatial import Transform
from .document import Element, Mimic, at, free_name

# function (element, name) -> (body, pose in the body) of the link or frame with this name; errors refer to the element
Place = Callable[[Element, str], tuple[str, Transform]]

_POINTS = "body_A body_B p_AP p_BQ"
_PARTS = {
    "ball_constraint": ("ball_constraint", _POINTS),
    "distance_constraint": ("distance_constraint", f"{_POINTS} distance stiffness damping"),
    "tendon_constraint": ("tendon_constraint", "joint offset lower_limit upper_limit stiffness damping"),
    "linear_spring_damper": ("linear_spring_damper", f"{_POINTS} free_length stiffness damping"),
    "linear_bushing_rpy": ("bushing", "frameA frameC torque_stiffness torque_damping force_stiffness force_damping"),
}
FRICTIONS = ("drake:mu_static", "drake:mu_dynamic")  # if a file has both, the last one in this list is used
ROTOR = ("drake:rotor_inertia", "drake:gear_ratio")
TAGS = tuple(f"drake:{kind}" for kind in _PARTS)
KNOWN = {
    f"drake:{kind}": f"name | {' '.join(f'drake:{prefix}_{part}' for part in parts.split())}"
    for kind, (prefix, parts) in _PARTS.items()
} | {f"drake:{prefix}_{part}": "value name a |" for prefix, parts in _PARTS.values() for part in parts.split()}


def coupled(model: Element) -> set[str]:
    """Return the names of joints that tendons couple. They must be tree joints."""
    tendons = model.all("drake:tendon_constraint")
    return {joint.text("name") for tendon in tendons for joint in tendon.all("drake:tendon_constraint_joint")}


def armatures(robot: Element) -> dict[str, float]:
    """Return joint -> armature [kg m², kg] of the rotors in a URDF's transmissions of one motor."""
    rotors: dict[str, float] = {}
    for transmission in robot.all("transmission"):
        if _kind(transmission) not in RATIOS and (armature := _armature(transmission.all("actuator"))):
            rotors |= {name: armature for joint in transmission.all("joint") if (name := joint.get("name"))}
    return rotors


def _armature(motors: Iterable[Element]) -> float:
    numbers = {part.tag: part.number("value") for motor in motors for part in motor.all(*ROTOR)}
    return numbers.get(ROTOR[0], 0.0) * numbers.get(ROTOR[1], 1.0) ** 2


# kind of ros_control's transmissions of two motors and two joints -> matrix, from the reductions of motors and joints
RATIOS: dict[str, Callable[..., list[list[float]]]] = {
    "DifferentialTransmission": lambda a, b, j, k: [[a * j, a * k], [b * j, -b * k]],
    "FourBarLinkageTransmission": lambda a, b, j, k: [[a * j, 0.0], [b, b * k]],
}


def _kind(transmission: Element) -> str:
    texts = [part.content for part in transmission.all("type", "plugin")]
    return next(iter(texts), transmission.get("type") or "").strip().rpartition("/")[2]


def transmissions(robot: Element) -> Iterator[tuple[Element, list[str], list[str], Array, dict[str, Any]]]:
    """Yield the differentials and four-bar linkages of ros_control and ros2_control with rotor inertia; warn about those that are not complete.

    Without rotor inertia they do not change the motion, and the motors are those of the joints, as in other programs. Each has its element, motors, joints, matrix and other arguments of ``Builder.add_transmission``.
    """
    inside = (part for control in robot.all("ros2_control") for part in control.all("transmission"))
    for element in (*robot.all("transmission"), *inside):
        motors, joints = (sorted(element.all(tag), key=_role) for tag in ("actuator", "joint"))
        rotors = [_armature([motor]) for motor in motors]
        if (kind := _kind(element)) not in RATIOS or not any(rotors):
            continue
        if (len(motors), len(joints)) != (2, 2):
            element.note(
                f"{element} is not read: {len(motors)} actuators and {len(joints)} joints; expected two of each"
            )
            continue
        ratios = [
            next((part.number(None) for part in end.all("mechanicalReduction", "mechanical_reduction")), 1.0)
            for end in (*motors, *joints)
        ]
        matrix, zeros = np.array(RATIOS[kind](*ratios)), [joint.child_number("offset", 0.0) for joint in joints]
        numbers = {"offset": -matrix @ zeros, "rotor_inertia": rotors}
        names = [[end.text("name") for end in ends] for ends in (motors, joints)]
        yield element, names[0], names[1], matrix, numbers


def _role(end: Element) -> str:
    return end.get("role") or next((part.content.strip() for part in end.all("role")), "")


def friction(collision: Element) -> dict[str, float]:
    """Return {"friction": coefficient} of a collision's proximity properties; empty if they have none."""
    parts = [part for owner in collision.all("drake:proximity_properties") for part in owner.children]
    mu = {part.tag: part.number("value" if part.get("value") else None) for part in parts if part.tag in FRICTIONS}
    if len(set(mu.values())) > 1:
        collision.note("drake:mu_static is not read: the friction at rest is drake:mu_dynamic")
    return {"friction": mu[max(mu, key=FRICTIONS.index)]} if mu else {}


def add(
    builder: Builder, model: Element, place: Place, joint: Callable[[Element, str], str], used: Container[str]
) -> None:
    """Add the constraints and springs of a model.

    `place` is a function that returns (body, pose) for the name of a frame in an element, and `joint` one that returns the single-axis joint of a
    name. `used` contains the names in use.
    """
    count = dict.fromkeys(TAGS, 0)
    for element in model.all(*TAGS):
        element.note_unread()
        count[element.tag] += 1
        kind = element.tag.removeprefix("drake:")
        name = element.get("name") or f"{kind}_{count[element.tag]}"
        with at(element):
            _add(builder, kind, free_name(name, used), _Parts(element, _PARTS[kind][0]), place, joint)


class _Parts:
    """Children of an element by their tags without the prefix."""

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

    def point(self, end: str, place: Place) -> tuple[str, tuple[float, ...]]:
        """Return (body, point in the body's frame) of end "A" or "B"."""
        body, pose = self.place(f"body_{end}", place)
        return body, tuple(pose.apply(self.numbers({"A": "p_AP", "B": "p_BQ"}[end], 3)).tolist())


def _add(
    builder: Builder, kind: str, name: str, parts: _Parts, place: Place, joint: Callable[[Element, str], str]
) -> None:
    if kind == "linear_bushing_rpy":
        (a, at_a), (c, at_c) = parts.place("frameA", place), parts.place("frameC", place)
        stiffness, damping = (
            [*parts.numbers(f"torque_{quantity}", 3), *parts.numbers(f"force_{quantity}", 3)]
            for quantity in ("stiffness", "damping")
        )
        # R_AC = Rz(yaw) Ry(pitch) Rx(roll). Its inverse, Rx(-roll) Ry(-pitch) Rz(-yaw), has the order of a Gimbal's rotations: x, y, z
        bushing = joints.Gimbal(joints.PARAMETERS, stiffness=stiffness, damping=damping)
        builder.add_joint(name, bushing, c, a, at_parent=at_c, at_child=at_a, loop=True)
        return
    stiffness_of, damping_of = parts.number("stiffness", math.inf), parts.number("damping", 0.0)
    if kind == "tendon_constraint":
        low, high = (parts.number(f"{end}_limit", sign * math.inf) for end, sign in (("lower", -1), ("upper", 1)))
        if low != high or math.isfinite(stiffness_of):
            parts.element.note(f"{parts.element} is elastic or has play, and is not read: the joints are not coupled")
            return
        coupled_joints = parts.element.all("drake:tendon_constraint_joint")
        terms = {joint(part, part.text("name")): part.number("a") for part in coupled_joints}
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
# Plugins that couple two joints are read. Other plugins raise a warning if they may connect bodies or apply forces.

# substrings in the names of plugins that are sensors, displays or controllers
IGNORED = re.compile(
    "sensor|camera|laser|lidar|imu|gps|navsat|magnetometer|altimeter|contact|bumper|state|publish|odometry|p3d|pose|video|gui|light|"
    "user|scene|broadcast|physics|control|drive|record|log|label|battery|init"
)


def attached(plugin: Element) -> tuple[str, str, str] | None:
    """Return (parent link, child model, child link) of Gazebo's DetachableJoint; None for other plugins."""
    called = "".join(plugin.get(attribute) or "" for attribute in ("name", "filename"))
    if "detachablejoint" not in called.lower().replace("-", ""):
        return None
    parts = [next(iter(plugin.all(tag)), None) for tag in ("parent_link", "child_model", "child_link")]
    parent, model, child = ("" if part is None else part.words() for part in parts)
    return parent, model, child


def mimic(plugin: Element) -> Mimic | None:
    """Return the coupling of a plugin that couples two joints; None for other plugins, with a warning if they may act on bodies."""
    leader, follower = (next(iter(plugin.all(tag)), None) for tag in ("joint", "mimicJoint"))
    if leader is not None and follower is not None:
        numbers = plugin.child_number("multiplier", 1.0), plugin.child_number("offset", 0.0)
        return Mimic(follower.words(), leader.words(), *numbers)
    called = [plugin.get(attribute) or "" for attribute in ("name", "filename")]
    name = next(filter(None, called), "without a name")
    if (ends := attached(plugin)) is not None:
        fact = f"plugin {name!r} connects {ends[0]!r} and {ends[2]!r} at run time in Gazebo"
        plugin.note(f"{fact}, and is not read: write a <joint> of type fixed between them")
    elif not IGNORED.search(" ".join(called).lower()):
        plugin.note("plugins are not read, and their effects on bodies and joints are missing:", repr(name[:200]))
    return None
