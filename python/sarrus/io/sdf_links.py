"""What an SDF says of links: inertias, and what they look like."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..building.builder import Builder
from ..building.values import checked_shape
from ..shapes import ContactShape, Ellipsoid, Mesh, Plane
from ..spatial import Inertia, Transform
from . import drake
from .document import NO_CONTACTS, ONE_FRICTION, Element, add_shape, left_out, only_shape, placed_inertia
from .formats import SDF
from .outline import frame_along
from .sdf_scene import Scene, base_name, pose_of, truth
from .table import TOUCHING, VISIBLE

COEFFICIENTS = {"friction": "friction/ode/mu", "restitution": "bounce/restitution_coefficient"}  # in <surface>
TORSIONAL = "friction/torsional"
# moment by coefficient, radius and force: Hertz' pressure on the whole patch, as Gazebo has it
PATCH = 3.0 * math.pi / 16.0
SOLIDS = (*(kind for kind in TOUCHING if kind is not Mesh), Ellipsoid)  # that have an inertia
WATER = 1000.0  # kg/m³, where no density is told


def inertia_of(scene: Scene, key: str, link: Element) -> Inertia:
    """Of a link, in its frame."""
    if (gravity := link.child("gravity")) is not None and not truth(gravity):
        link.note("<gravity> is off for a link, which is not read: it falls like the others")
    drag = [rate for decay in link.all("velocity_decay") for rate in decay.children]
    if any(rate.number(None, 0.0) for rate in drag):
        link.note("<velocity_decay> is not read: links move without that drag")
    inertial = link.child("inertial")
    if inertial is None:
        link.note(f"{link} has no <inertial>: taken are SDF's defaults, 1 kg and 1 kg m² about each axis")
        return Inertia(1.0, np.zeros(3), np.eye(3))
    m = inertial.child_number("mass", 1.0)
    if m < 0:
        inertial.needed("mass").fail(f"is negative: {m:g} kg")
    if inertial.get("auto") in ("true", "1"):
        whole = _of_collisions(scene, key, link, inertial)
        scale = m / whole.mass if inertial.all("mass") else 1.0
        return Inertia(scale * whole.mass, whole.com, scale * whole.about_com, check=False)
    tensor = inertial.child("inertia")
    moments, pose = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0, "ixy": 0.0, "ixz": 0.0, "iyz": 0.0}, inertial.child("pose")
    for name, default in moments.items():
        if tensor is not None and (part := tensor.child(name)) is not None:
            moments[name] = part.number(None, default)
    place = Transform() if pose is None else pose_of(pose)
    return placed_inertia(tensor or inertial, link, m, tuple(moments.values()), place)


def _of_collisions(scene: Scene, key: str, link: Element, inertial: Element) -> Inertia:
    """The inertia of a link's collisions, as of solid bodies of their density."""
    usual = inertial.child("density")
    whole = Inertia.zero()
    for collision in link.all("collision"):
        density = next(iter(collision.all("density")), usual)
        solid = _solid(collision, WATER if density is None else density.number(None))
        whole += solid.transformed(_pose_in_link(scene, key, collision))
    if whole.mass <= 0.0:
        inertial.fail("is to be found by itself (auto), and no <collision> has a volume")
    return whole


def _solid(collision: Element, density: float) -> Inertia:
    shape = only_shape(collision)
    if shape.tag in ("plane", "empty"):
        return Inertia.zero()
    if shape.tag not in [SDF.shapes[kind][0] for kind in SOLIDS]:
        known = "box, capsule, cylinder, ellipsoid and sphere"
        shape.fail(f"has no inertia that is known here, {known} have: write <mass> and <inertia>")
    filled = checked_shape(SDF.shape(shape, SOLIDS), str(shape), ContactShape)._volume
    return Inertia(density * filled.size, np.zeros(3), density * filled.inertia)


def _pose_in_link(scene: Scene, key: str, owner: Element) -> Transform:
    """Pose of a collision or visual in its link."""
    pose = next(iter(owner.all("pose")), None)
    if pose is None:
        return Transform()
    frame_name = base_name(pose)
    if not frame_name:
        return pose_of(pose)
    scope = key.rpartition("::")[0]
    frame = scope if frame_name == "__model__" else f"{scope}::{frame_name}"
    return scene.between(key, frame, pose) @ pose_of(pose)


def dress(scene: Scene, builder: Builder, links: dict[str, tuple[str, Element]]) -> list[str]:
    """Give bodies their visuals and what they touch with; a line for each that was left out."""
    faults: list[str] = []
    for body, (key, link) in links.items():
        for collision in link.all("collision"):
            collision.note(f"shapes of <collision> may touch, {NO_CONTACTS}")
            with left_out(collision, "it touches nothing", faults.append):
                solid, place = _contact_shape(scene, collision)
                if solid is not None:
                    place = _pose_in_link(scene, key, collision) @ place
                    add_shape(builder, body, collision, solid, place, **_coefficients(collision))
        for visual in link.all("visual"):
            with left_out(visual, "it is not shown", faults.append):
                shape = only_shape(visual)
                if shape.tag not in ("plane", "empty"):
                    color = _color(visual)
                    look = SDF.shape(shape, VISIBLE, **_beside(scene, shape))
                    builder.add_visual(body, look, _pose_in_link(scene, key, visual), color=color)
    return faults


def _contact_shape(scene: Scene, collision: Element) -> tuple[ContactShape | Mesh | None, Transform]:
    """What touches, and where in the collision: a plane is turned into its normal."""
    shape = only_shape(collision)
    if shape.tag == "plane":
        normal = next(iter(shape.all("normal")), None)
        return Plane(), frame_along((0.0, 0.0, 1.0) if normal is None else normal.numbers(None, 3))
    made = None if shape.tag == "empty" else SDF.shape(shape, TOUCHING, **_beside(scene, shape))
    return made, Transform()


def _beside(scene: Scene, shape: Element) -> dict[str, Any]:
    return {"beside": scene.folders[shape.source], "package_dirs": scene.package_dirs}


def _coefficients(collision: Element) -> dict[str, float]:
    """Of <surface>: Coulomb's of ODE, restitution, and torsional friction of a patch of a given radius."""

    def at(way: str) -> Element | None:
        parts = [collision]
        for tag in ("surface", *way.split("/")):
            parts = [part for owner in parts for part in owner.all(tag)]
        return next(iter(parts), None)

    numbers = {name: part.number(None) for name, way in COEFFICIENTS.items() if (part := at(way)) is not None}
    across = at("friction/ode/mu2")
    if across is not None and across.number(None) != numbers.get("friction", 1.0):
        collision.note(ONE_FRICTION)
    numbers |= drake.friction(collision)
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
        colors[0].fail(f"wants numbers from 0 to 1, not {colors[0].words()[:60]!r}")
    return numbers
