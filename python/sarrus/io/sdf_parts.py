"""Readers of the joints and links of an SDF: types, axes, inertias, visuals and collision shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..building.builder import Builder
from ..description import joints
from ..shapes import ContactShape, Ellipsoid, Mesh, Plane
from ..spatial import Inertia, Rotation, Transform
from . import extensions
from .document import NO_CONTACTS, ONE_FRICTION, Element, add_shape, left_out, only_shape, placed_inertia
from .formats import NO_LIMIT, SDF
from .outline import frame_along
from .sdf_scene import Scene, base_name, pose_of, truth, version_of
from .table import TOUCHING, VISIBLE

ONE_AXIS = {"revolute": joints.Revolute, "continuous": joints.Revolute, "prismatic": joints.Prismatic}
TWO_AXES = ("universal", "revolute2")

Direction = Callable[[Element], tuple[float, float, float]]


def joint_type(element: Element, direction: Direction) -> tuple[joints.JointType, bool]:
    """Return the type of a <joint>, and True if it is actuated.

    `direction` is a function that returns the direction of an <axis> in the joint's frame.
    """
    kind = element.text("type")
    if kind == "fixed":
        return joints.Fixed(), False
    tags = ("axis", "axis2") if kind in TWO_AXES else ("axis",)
    axes = [element.child(tag) for tag in tags]
    numbers = [{} if axis is None else _numbers(axis, kind) for axis in axes]
    if kind in TWO_AXES and None in axes:
        element.note(f"{element} has no <{tags[axes.index(None)]}>: it has SDF's default, along z")
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
        expected = f"fixed, ball, screw, gearbox, {', '.join((*ONE_AXIS, *TWO_AXES))}"
        element.fail(f"has an unknown type {kind!r}; expected one of {expected}")
    first, second = numbers
    no_bounds = {"limits": (-math.inf, math.inf), "velocity_limit": math.inf, "effort_limit": math.inf}
    defaults = {name: no_bounds.get(name, 0.0) for name in {**first, **second}}
    both: dict[str, Any] = {name: (first.get(name, x), second.get(name, x)) for name, x in defaults.items()}
    if "limits" in both:
        both["limits"] = tuple(zip(*both["limits"], strict=True))
    return joints.Universal(*directions, **both), driven


def _numbers(axis: Element, kind: str) -> dict[str, Any]:
    """Return the parameters of an axis, arguments of a joint type."""
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
    """Return True if the effort limit of an axis is zero."""
    efforts = [effort for limit in (axis.all("limit") if axis else ()) for effort in limit.all("effort")]
    return any(effort.number(None, -1.0, finite=False) == 0.0 for effort in efforts)


def _lead(joint: Element) -> float:
    """Return the pitch [m/rad] of a screw, from a right-handed screw_thread_pitch [m/rev] or a left-handed thread_pitch [rad/m]."""
    pitch, old = joint.child("screw_thread_pitch"), joint.child("thread_pitch")
    if pitch is not None:
        return pitch.number(None) / (2.0 * math.pi)
    if old is None:
        joint.note(f"{joint} has no <screw_thread_pitch>: it has SDF's default, 1 m/rev")
        return 1.0 / (2.0 * math.pi)
    per_metre = old.number(None)
    if per_metre == 0.0:
        old.fail("is zero: the pitch would be infinite")
    return -1.0 / per_metre


def axis_in_model(axis: Element) -> bool:
    """Return True if an axis, in a version up to 1.6, is expressed in the model's frame."""
    version, in_model = version_of(axis), axis.child("use_parent_model_frame")
    if version >= (1, 7):
        if in_model is not None:
            in_model.note("use_parent_model_frame is not read: it ended with version 1.6")
        return False
    return version < (1, 5) if in_model is None else truth(in_model)


def axis_direction(axis: Element, turned: Callable[[Element], Rotation | None]) -> tuple[float, float, float]:
    """Return the direction of an axis in the joint's frame; `turned` returns the rotation from the axis' frame to it, or None."""
    xyz = axis.child("xyz")
    x, y, z = (0.0, 0.0, 1.0) if xyz is None else xyz.numbers(None, 3)
    if not (x or y or z):
        axis.fail("is zero; expected the direction of a moving joint")
    rotation = turned(axis if xyz is None else xyz)
    if rotation is not None:
        x, y, z = rotation.apply((x, y, z)).tolist()
    return x, y, z


# ---- links: inertias, visuals and collision shapes -------------------------------------------------------------------


COEFFICIENTS = {"friction": "friction/ode/mu", "restitution": "bounce/restitution_coefficient"}  # in <surface>
TORSIONAL = "friction/torsional"
# torsional friction moment / (coefficient x patch radius x normal force) for Hertz' pressure distribution, as in Gazebo
PATCH = 3.0 * math.pi / 16.0
SOLIDS = (*(kind for kind in TOUCHING if kind is not Mesh), Ellipsoid)  # shapes with an inertia
WATER = 1000.0  # default density [kg/m³]


def inertia_of(scene: Scene, key: str, link: Element) -> Inertia:
    """Return the inertia of a link, in its frame."""
    if (gravity := link.child("gravity")) is not None and not truth(gravity):
        link.note("<gravity> of a link is not read: gravity acts on it")
    drag = [rate for decay in link.all("velocity_decay") for rate in decay.children]
    if any(rate.number(None, 0.0) for rate in drag):
        link.note("<velocity_decay> is not read: links move without this drag")
    inertial = link.child("inertial")
    if inertial is None:
        link.note(f"{link} has no <inertial>: it has SDF's defaults, 1 kg and 1 kg m² about each axis")
        return Inertia(1.0, np.zeros(3), np.eye(3))
    m = inertial.child_number("mass", 1.0)
    if m < 0:
        inertial.needed("mass").fail(f"is negative: {m:g} kg; expected a mass of zero or more")
    if inertial.get("auto") in ("true", "1"):
        inertia = _collision_inertia(scene, key, link, inertial)
        scale = m / inertia.mass if inertial.all("mass") else 1.0
        return Inertia(scale * inertia.mass, inertia.com, scale * inertia.about_com, check=False)
    tensor = inertial.child("inertia")
    moments, pose = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0, "ixy": 0.0, "ixz": 0.0, "iyz": 0.0}, inertial.child("pose")
    for name, default in moments.items():
        if tensor is not None and (part := tensor.child(name)) is not None:
            moments[name] = part.number(None, default)
    place = Transform() if pose is None else pose_of(pose)
    return placed_inertia(tensor or inertial, link, m, tuple(moments.values()), place)


def _collision_inertia(scene: Scene, key: str, link: Element, inertial: Element) -> Inertia:
    """Return the inertia of a link's collision shapes, as solids of their density."""
    default = inertial.child("density")
    total = Inertia.zero()
    for collision in link.all("collision"):
        density = next(iter(collision.all("density")), default)
        solid = _solid(collision, WATER if density is None else density.number(None))
        total += solid.transformed(_pose_in_link(scene, key, collision))
    if total.mass <= 0.0:
        inertial.fail("has auto=true, but no <collision> has a volume: write <mass> and <inertia>")
    return total


def _solid(collision: Element, density: float) -> Inertia:
    shape = only_shape(collision)
    if shape.tag in ("plane", "empty"):
        return Inertia.zero()
    if shape.tag not in [SDF.shapes[kind][0] for kind in SOLIDS]:
        expected = "box, capsule, cylinder, ellipsoid or sphere"
        shape.fail(f"has no inertia by auto; expected {expected}: write <mass> and <inertia>")
    filled = _core.checked_shape(SDF.shape(shape, SOLIDS), str(shape))._volume
    return Inertia(density * filled.size, np.zeros(3), density * filled.inertia)


def _pose_in_link(scene: Scene, key: str, owner: Element) -> Transform:
    """Return the pose of a collision or visual in its link."""
    pose = next(iter(owner.all("pose")), None)
    if pose is None:
        return Transform()
    frame_name = base_name(pose)
    if not frame_name:
        return pose_of(pose)
    scope = key.rpartition("::")[0]
    frame = scope if frame_name == "__model__" else f"{scope}::{frame_name}"
    return scene.between(key, frame, pose) @ pose_of(pose)


def add_shapes(scene: Scene, builder: Builder, links: dict[str, tuple[str, Element]]) -> list[str]:
    """Add visuals and collision shapes to bodies; return a warning for each one that was left out."""
    faults: list[str] = []
    for body, (key, link) in links.items():
        for collision in link.all("collision"):
            collision.note(f"shapes of <collision> may touch, {NO_CONTACTS}")
            with left_out(collision, "it has no contacts", faults.append):
                solid, place = _contact_shape(scene, collision)
                if solid is not None:
                    place = _pose_in_link(scene, key, collision) @ place
                    add_shape(builder, body, collision, solid, place, **_coefficients(collision))
        for visual in link.all("visual"):
            with left_out(visual, "it is not shown", faults.append):
                shape = only_shape(visual)
                if shape.tag not in ("plane", "empty"):
                    color = _color(visual)
                    solid = SDF.shape(shape, VISIBLE, **_folders(scene, shape))
                    builder.add_visual(body, solid, _pose_in_link(scene, key, visual), color=color)
    return faults


def _contact_shape(scene: Scene, collision: Element) -> tuple[ContactShape | Mesh | None, Transform]:
    """Return the shape of a collision, and the pose of the shape in the collision's frame. The z-axis of a plane's shape is its normal."""
    shape = only_shape(collision)
    if shape.tag == "plane":
        normal = next(iter(shape.all("normal")), None)
        return Plane(), frame_along((0.0, 0.0, 1.0) if normal is None else normal.numbers(None, 3))
    made = None if shape.tag == "empty" else SDF.shape(shape, TOUCHING, **_folders(scene, shape))
    return made, Transform()


def _folders(scene: Scene, shape: Element) -> dict[str, Any]:
    return {"beside": scene.folders[shape.source], "package_dirs": scene.package_dirs}


def _coefficients(collision: Element) -> dict[str, float]:
    """Return the contact coefficients in <surface>: ODE's friction, restitution, torsional friction [m] of a patch."""

    def at(path: str) -> Element | None:
        parts = [collision]
        for tag in ("surface", *path.split("/")):
            parts = [part for owner in parts for part in owner.all(tag)]
        return next(iter(parts), None)

    numbers = {name: part.number(None) for name, path in COEFFICIENTS.items() if (part := at(path)) is not None}
    across = at("friction/ode/mu2")
    if across is not None and across.number(None) != numbers.get("friction", 1.0):
        collision.note(ONE_FRICTION)
    numbers |= extensions.friction(collision)
    if at(TORSIONAL) is not None:
        mu, radius, by_patch = (at(f"{TORSIONAL}/{tag}") for tag in ("coefficient", "patch_radius", "use_patch_radius"))
        if radius is None or (by_patch is not None and not truth(by_patch)):
            collision.note("torsional friction without a patch_radius is not read")
        else:
            numbers["torsional_friction"] = PATCH * (1.0 if mu is None else mu.number(None)) * radius.number(None)
    return numbers


def _color(visual: Element) -> tuple[float, ...] | None:
    colors = [color for material in visual.all("material") for color in material.all("diffuse", "ambient")]
    if not colors:
        return None
    words = colors[0].words().split(None, 4)
    numbers = colors[0].numbers(None, 3 if len(words) == 3 else 4)
    if min(numbers) < 0 or max(numbers) > 1:
        colors[0].fail(f"expects numbers from 0 to 1, got {colors[0].words()[:60]!r}")
    return numbers
