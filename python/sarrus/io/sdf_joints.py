"""The types of an SDF's joints, and the directions of their axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..description import joints
from ..spatial import Rotation
from .document import Element
from .formats import NO_LIMIT, SDF
from .sdf_scene import truth, version_of

ONE_AXIS = {"revolute": joints.Revolute, "continuous": joints.Revolute, "prismatic": joints.Prismatic}
TWO_AXES = ("universal", "revolute2")

Direction = Callable[[Element], tuple[float, float, float]]


def joint_type(element: Element, direction: Direction) -> tuple[joints.JointType, bool]:
    """The type of a <joint>, and whether a motor drives it; `direction` is that of an <axis> in the joint's frame."""
    kind = element.text("type")
    if kind == "fixed":
        return joints.Fixed(), False
    tags = ("axis", "axis2") if kind in TWO_AXES else ("axis",)
    axes = [element.child(tag) for tag in tags]
    numbers = [{} if axis is None else _numbers(axis, kind) for axis in axes]
    if kind in TWO_AXES and None in axes:
        element.note(f"{element} has no <{tags[axes.index(None)]}>: taken as SDF's default, along z")
    gear = element.child_number("drake:gear_ratio", 0.0)
    if inertia := element.child_number("drake:rotor_inertia", 0.0):
        numbers[0]["armature"] = inertia * (gear or 1.0) ** 2
    driven = not all(map(_is_passive, axes))
    if kind == "ball":
        return joints.Spherical(**{name: numbers[0].get(name, 0.0) for name in ("damping", "friction")}), False
    directions = [direction(axis) if axis is not None else (0.0, 0.0, 1.0) for axis in axes]
    if kind in ONE_AXIS:
        return ONE_AXIS[kind](directions[0], **numbers[0]), driven
    if kind == "screw":
        return joints.Helical(directions[0], _lead(element), **numbers[0]), driven
    if kind not in TWO_AXES:
        known = f"fixed, ball, screw, gearbox, {', '.join((*ONE_AXIS, *TWO_AXES))}"
        element.fail(f"has an unknown type {kind!r}; known are {known}")
    one, two = numbers
    none = {"limits": (-math.inf, math.inf), "velocity_limit": math.inf, "effort_limit": math.inf}
    usual = {name: none.get(name, 0.0) for name in {**one, **two}}
    both: dict[str, Any] = {name: (one.get(name, x), two.get(name, x)) for name, x in usual.items()}
    if "limits" in both:
        both["limits"] = tuple(zip(*both["limits"], strict=True))
    return joints.Universal(*directions, **both), driven


def _numbers(axis: Element, kind: str) -> dict[str, Any]:
    """What a joint type takes of an axis."""
    values: dict[str, Any] = SDF.read(axis)
    low, high = values.pop("lower", -NO_LIMIT), values.pop("upper", NO_LIMIT)
    for limit in axis.all("limit"):
        if low > high:
            limit.fail(f"has its lower limit above the upper: {low:g} > {high:g}")
    low, high = (math.copysign(math.inf, x) if abs(x) >= NO_LIMIT else x for x in (low, high))
    if kind not in ("continuous", "ball") and (math.isfinite(low) or math.isfinite(high)):
        values["limits"] = (low, high)
    if kind == "ball" and values.get("stiffness"):
        axis.note("the spring of a ball joint is not read")
    return values


def _is_passive(axis: Element | None) -> bool:
    """Whether its effort is zero."""
    efforts = [effort for limit in (axis.all("limit") if axis else ()) for effort in limit.all("effort")]
    return any(effort.number(None, -1.0, finite=False) == 0.0 for effort in efforts)


def _lead(joint: Element) -> float:
    """Metres per radian of a screw: right-handed screw_thread_pitch [m/rev], or left-handed thread_pitch [rad/m]."""
    pitch, old = joint.child("screw_thread_pitch"), joint.child("thread_pitch")
    if pitch is not None:
        return pitch.number(None) / (2.0 * math.pi)
    if old is None:
        joint.note(f"{joint} has no <screw_thread_pitch>: taken as SDF's default, 1 m/rev")
        return 1.0 / (2.0 * math.pi)
    per_metre = old.number(None)
    if per_metre == 0.0:
        old.fail("is zero: the screw would have no end of a pitch")
    return -1.0 / per_metre


def axis_in_model(axis: Element) -> bool:
    """Whether an axis of a version up to 1.6 is told in the model's frame."""
    version, in_model = version_of(axis), axis.child("use_parent_model_frame")
    if version >= (1, 7):
        if in_model is not None:
            in_model.note("use_parent_model_frame ended with version 1.6: not read")
        return False
    return version < (1, 5) if in_model is None else truth(in_model)


def axis_direction(axis: Element, turned: Callable[[Element], Rotation | None]) -> tuple[float, float, float]:
    """Direction of an axis in the joint's frame, which `turned` leads to from the frame that it is told in."""
    xyz = axis.child("xyz")
    x, y, z = (0.0, 0.0, 1.0) if xyz is None else xyz.numbers(None, 3)
    if not (x or y or z):
        axis.fail("is zero; a joint that moves wants a direction")
    rotation = turned(axis if xyz is None else xyz)
    if rotation is not None:
        x, y, z = rotation.apply((x, y, z)).tolist()
    return x, y, z
