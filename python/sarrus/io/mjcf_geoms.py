"""Readers of MJCF's geoms: inertias of bodies without an `<inertial>`, collision shapes and visuals."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array
from .._files import check_regular, is_within
from ..building.builder import Builder
from ..errors import did_you_mean
from ..shapes import ContactShape, Mesh, Solid
from ..spatial import Inertia, Rotation, Transform
from .document import ONE_FRICTION, Element, add_shape, at, left_out, placed_inertia
from .formats import MJCF, WAY_OUT
from .mesh_files import LARGEST, mass_properties, triangles
from .mjcf_document import ELSEWHERE, Document, referred
from .mujoco import GEOMS, HERE, HIDDEN, exclude_by_masks, group_of, shape_of, show


class Geom(NamedTuple):
    """Geom of a body.

    The kind is "fitted" if a primitive is fitted to a mesh. The shape is None if half sizes do not define the geometry, as for meshes.
    """

    element: Element
    kind: str
    shape: ContactShape | None
    place: Transform


def geom_of(document: Document, element: Element, frame: Transform) -> Geom:
    """Return the geom of an element; `frame` is the pose of the <frame> around it."""
    kind = element.word("type", "plane hfield sphere capsule ellipsoid cylinder box mesh sdf", "sphere")
    size = element.several("size", 3, ())
    if "mesh" in element.attributes and kind != "mesh":
        return Geom(element, "fitted", None, HERE)
    if "fromto" in element.attributes and kind in ("capsule", "cylinder", "ellipsoid", "box"):
        place, half = document.between(element)
        size = (*size[:1], half) if kind in ("capsule", "cylinder") else (*size[:1], *size[:1], half)
    else:
        place = document.pose(element)
    needed = GEOMS[kind][0] if kind in GEOMS else 0
    if len(size) < needed or min(size[:needed], default=1.0) <= 0.0:
        numbers = " ".join(map(str, size)) or "none"
        element.fail(f"of type {kind} expects {needed} positive numbers in size, got {numbers}")
    return Geom(element, kind, shape_of(kind, size), frame @ place)


def masks_of(geom: Geom) -> tuple[int, int]:
    """Return (contype, conaffinity) of a geom."""
    contype, conaffinity = (int(geom.element.number(name, 1.0)) for name in ("contype", "conaffinity"))
    return contype, conaffinity


# --- inertias ---------------------------------------------------------------------------------------------------------


def body_inertia(
    document: Document, body: Element, inertials: Sequence[tuple[Element, Transform]], geoms: Sequence[Geom]
) -> Inertia:
    """Return the inertia of a body, from its <inertial> elements (each with the pose of the <frame> around it) or from its geoms."""
    from_geoms = document.compiler.word("inertiafromgeom", "true false auto", "auto")
    low, high = document.compiler.numbers("inertiagrouprange", 2, (0.0, 5.0))
    if len(inertials) > 1:
        inertials[1][0].fail(f"appears twice; first in line {inertials[0][0].line}")
    heavy = [geom for geom in geoms if low <= geom.element.number("group", 0.0) <= high]
    if inertials and not (from_geoms == "true" and heavy):
        return _bounded(document, _from_inertial(document, *inertials[0]))
    inertia = Inertia.zero()
    if from_geoms == "false":
        if (bounded := _bounded(document, inertia)).mass == 0.0:
            body.fail("has no <inertial>, and inertiafromgeom is false")
        return bounded
    for geom in heavy:
        inertia = inertia + _geom_inertia(document, geom, body)
    return _bounded(document, inertia)


def _from_inertial(document: Document, element: Element, frame: Transform) -> Inertia:
    place = frame @ Transform(document.orientation(element), element.numbers("pos", 3))
    mass = element.number("mass")
    if mass < 0.0:
        element.fail(f"has a negative mass: {mass:g} kg")
    if ("diaginertia" in element.attributes) == ("fullinertia" in element.attributes):
        element.fail("expects one of diaginertia and fullinertia")
    if "diaginertia" in element.attributes:
        moments: tuple[float, ...] = (*element.numbers("diaginertia", 3), 0.0, 0.0, 0.0)
    else:
        moments = element.numbers("fullinertia", 6)
    with at(element):
        return placed_inertia(element, element, mass, moments, place)


def _bounded(document: Document, inertia: Inertia) -> Inertia:
    """Return the inertia after the compiler's settings boundmass, boundinertia and balanceinertia."""
    least, thin = document.compiler.number("boundmass", 0.0), document.compiler.number("boundinertia", 0.0)
    balance = document.compiler.truth("balanceinertia", False)
    if not (least > inertia.mass or thin > 0.0 or balance):
        return inertia
    moments, axes = np.linalg.eigh(inertia.about_com)
    moments = np.maximum(moments, thin)
    if balance and 2.0 * moments.max() > moments.sum():
        moments[:] = moments.mean()
    return Inertia(max(inertia.mass, least), inertia.com, axes @ np.diag(moments) @ axes.T, check=False)


def _geom_inertia(document: Document, geom: Geom, body: Element) -> Inertia:
    """Return the inertia of a geom in the frame of its body."""
    element = geom.element
    mass = element.number("mass") if "mass" in element.attributes else None
    density = element.number("density", 1000.0)
    if geom.kind in ("plane", "hfield") or (density if mass is None else mass) == 0.0:
        return Inertia.zero()
    if geom.kind in ("fitted", "sdf") or element.truth("shellinertia", False):
        source = "the surface of a shape" if geom.kind in GEOMS else "a shape fitted to a mesh"
        element.fail(f"gives {body} its mass by {source}, which is not read: write an <inertial>, or {WAY_OUT}")
    with at(element):
        try:
            if isinstance(geom.shape, Solid):
                filled = geom.shape._volume
                volume, com, moments = filled.size, np.zeros(3), filled.inertia
            else:
                volume, com, moments = _mesh_inertia(document, element, body)
            mass = density * volume if mass is None else mass
            about_com = mass / volume * moments
        except ZeroDivisionError:
            fault = f"gives {body} its mass by a shape whose volume is zero in double precision"
            element.fail(f"{fault}: write an <inertial>")
        if mass < 0.0:
            element.fail(f"has a negative mass: {mass:g} kg")
        return Inertia(mass, com, about_com).transformed(geom.place)


def _mesh_inertia(document: Document, element: Element, body: Element) -> tuple[float, Array, Array]:
    """Return the volume [m³] of a mesh, its centre of mass (3,) [m], and its inertia (3, 3) about it for unit density, in its frame."""
    name = element.get("mesh") or ""
    mesh, fault = document.meshes.get(name), f"gives {body} its mass by mesh {name!r}"
    if mesh is None:
        element.fail(f"{fault}, which does not exist{did_you_mean(name, document.meshes)}")
    folder, file = os.path.abspath(document.beside), document.mesh_file(mesh)
    path = os.path.normpath(os.path.join(folder, file))
    cure = f"write an <inertial>, or {WAY_OUT}"
    if "\0" in path or not is_within(path, [folder, *document.package_dirs]):
        element.fail(f"{fault}, outside of the file's folder: {ELSEWHERE}, or copy it there, {cure}")
    try:
        check_regular(path, LARGEST)
    except FileNotFoundError:
        element.fail(f"{fault}, whose file {file!r} does not exist: {cure}")
    except OSError as error:
        element.fail(f"{fault}, whose file {file!r} cannot be read, {error.strerror}: {cure}")
    method = mesh.word("inertia", "convex exact legacy shell", "legacy")
    try:
        corners = triangles(Path(path), hull=method == "convex")
    except ImportError:
        element.fail(f"{fault}, which needs trimesh (pip install trimesh): {cure}")
    w, x, y, z = mesh.numbers("refquat", 4, (1.0, 0.0, 0.0, 0.0))
    scale, R = np.array(mesh.numbers("scale", 3, (1.0, 1.0, 1.0))), Rotation.from_quaternion((x, y, z, w)).matrix
    corners = (corners - mesh.numbers("refpos", 3, (0.0, 0.0, 0.0))) @ R * scale
    # a reflection (negative determinant of the scale) reverses the orientation of the faces
    return mass_properties(corners if scale.prod() > 0.0 else corners[:, ::-1], method)


# --- collision shapes -------------------------------------------------------------------------------------------------


def touch_geoms(
    document: Document, builder: Builder, geoms: Mapping[str, Sequence[Geom]], names: Mapping[str, str], warn: bool
) -> None:
    """Add collision shapes to bodies; with `warn`, entries that are not read raise warnings.

    Geoms with the same contype and conaffinity form a group. Two groups collide only if MuJoCo's masks allow it, and their bodies are not excluded.
    `names` maps names of bodies in the file to names in the builder.
    """
    masks: dict[str, tuple[int, int]] = {}
    frictions: list[dict[str, float]] = []
    counted: set[str] = set()
    named: dict[str, str] = {}  # name of a geom in the file -> name of its shape
    for body, geom in ((name, geom) for name in geoms for geom in geoms[name]):
        element, (contype, conaffinity) = geom.element, masks_of(geom)
        if not (contype or conaffinity):
            continue
        with left_out(element, "it has no contacts"):
            if warn:
                MJCF.remark(element)
            shape = None if geom.kind == "ellipsoid" else geom.shape
            if geom.kind == "mesh" and warn:
                shape = _mesh(document, element)
            if shape is None:
                if warn:
                    element.note(f"a geom of type {geom.kind} is not read as a collision shape")
                continue
            numbers, group = _frictions(element), group_of(contype, conaffinity)
            touching = add_shape(builder, body, element, shape, geom.place, group=group, **numbers)  # type: ignore[arg-type]
            if touching is None:
                continue
            frictions.append(_frictions(element, condim=6.0))
            counted.update(numbers)
            masks[group], named[element.get("name") or ""] = (contype, conaffinity), touching
    exclude_by_masks(builder, masks)
    # in MuJoCo the larger condim of a pair applies, so that a geom's coefficient is used although its own condim disables it
    if warn and any(len({mu[name] for mu in frictions}) > 1 for name in counted):
        element.note("the friction of a pair is the geometric mean of both geoms; MuJoCo takes the larger one")
    shapes_of: dict[str, list[str]] = {}
    for spec in builder._shapes.values():
        shapes_of.setdefault(spec.body, []).append(spec.name)
    for element in (element for owner in document.root.all("contact") for element in owner.all("exclude", "pair")):
        excluded = element.tag == "exclude"
        keys, allowed = (("body1", "body2"), names) if excluded else (("geom1", "geom2"), named)
        ends = [element.get(key) or "" for key in keys]
        if not all(end in allowed for end in ends):
            element.note(
                f"<{element.tag}> in <contact> is not read: it names a body or geom that does not exist or has no contacts"
            )
            continue
        for name in ("margin", "adhesion"):
            if not excluded and any(element.several(name, 3, (0.0,))):
                element.note(f"{name} of <pair> is not read")
        for first, second in product(*(shapes_of.get(names[x], ()) if excluded else (named[x],) for x in ends)):
            numbers = {} if excluded else _frictions(element, pair=True)
            builder.set_contact(first, second, enabled=not excluded, **numbers)


def _frictions(element: Element, *, pair: bool = False, condim: float | None = None) -> dict[str, Any]:
    """Return the coefficients of friction that condim selects; a <pair> has separate ones for two directions of sliding and rolling."""
    numbers, (spin, roll) = element.several("friction", 5, ()), ((2, 3) if pair else (1, 2))
    if condim is None:
        condim = element.number("condim", 3.0)
        if condim == 1.0:
            element.note("condim 1 (no friction) is read as 3 (with friction)")
    if pair and any(len(numbers) > k + 1 and numbers[k] != numbers[k + 1] for k in (0, 3)):
        element.note(ONE_FRICTION)
    mu = dict(enumerate(numbers))
    coefficients = {"friction": mu.get(0, 1.0)}
    if condim >= 4.0:
        coefficients["torsional_friction"] = mu.get(spin, 0.005)
    if condim >= 6.0:
        coefficients["rolling_friction"] = mu.get(roll, 0.0001)
    return coefficients


# --- visuals ----------------------------------------------------------------------------------------------------------


def show_geom(document: Document, builder: Builder, body: str, geom: Geom) -> None:
    """Add the visual of a geom; faults are warnings, because the dynamics does not need it."""
    element = geom.element
    if element.number("group", 0.0) >= HIDDEN or geom.kind in ("plane", "hfield"):
        return
    with left_out(element, "it is not shown"):
        material = document.materials.get(element.get("material") or "")
        owner = element if "rgba" in element.attributes or material is None else material
        color = owner.numbers("rgba", 4, (0.5, 0.5, 0.5, 1.0))
        if geom.kind != "mesh":
            if not show(builder, body, geom.shape, geom.place, color):
                element.note(f"a geom of type {geom.kind} is not shown")
            return
        builder.add_visual(body, _mesh(document, element), geom.place, color=color)


def _mesh(document: Document, element: Element) -> Mesh:
    mesh = document.meshes[referred(element, "mesh", document.meshes)]
    if "refpos" in mesh.attributes or "refquat" in mesh.attributes:
        mesh.fail("has a refpos or refquat, which is not read")
    x, y, z = mesh.numbers("scale", 3, (1.0, 1.0, 1.0))
    return Mesh(document.mesh_file(mesh), (x, y, z), document.beside, document.package_dirs)
