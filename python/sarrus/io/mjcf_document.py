"""MJCF documents: includes, classes of defaults, global settings, formats of poses, and geoms."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._arrays import Array
from .._files import check_regular, is_within, read_bytes
from ..building.builder import Builder
from ..errors import did_you_mean
from ..shapes import ContactShape, Mesh, Solid
from ..spatial import Inertia, Rotation, Transform
from .document import LARGEST, MOST_PARTS, ONE_FRICTION, Element, add_shape, at, left_out, parse, placed_inertia
from .formats import DRIVES, FLAGS, MJCF, ORIENTATION, WAY_OUT
from .mesh_files import LARGEST as LARGEST_MESH
from .mesh_files import mass_properties, triangles
from .mujoco import GEOMS, HERE, HIDDEN, Touching, coefficients, group_of, shape_of, show
from .outline import turn_from_z

DEEPEST = 500  # MuJoCo's limit; a chain of n bodies is nested n deep
ELSEWHERE = "load(..., package_dirs=[...]) allows other folders"
# attributes with lists of numbers. The last numbers of a list may be missing; the missing ones are inherited from the class
PARTIAL = ("size", "stiffness", "damping", "polycoef", "gear", "gainprm")


def include(root: Element, beside: str | None, package_dirs: Sequence[str] = ()) -> None:
    """Replace each <include> by the elements of its file."""
    first = {_path_key(os.path.join(beside, root.source)): "the main file"} if beside is not None else {}
    pending, total = [root], 0
    while pending:
        element = pending.pop()
        k = 0
        while k < len(element.children):
            include = element.children[k]
            if include.tag != "include":
                k += 1
                continue
            if beside is None:
                include.fail("needs the folder of the document: read the file with sarrus.load")
            folder, name = os.path.abspath(beside), include.text("file")
            path = os.path.normpath(os.path.join(folder, name))
            if "\0" in path or not is_within(path, [folder, *package_dirs]):
                include.fail(f"names {name!r}, which is outside of the main file's folder: {ELSEWHERE}")
            if (key := _path_key(path)) in first:
                include.fail(f"names {name!r}, which {first[key]} includes already; a file can be included once")
            first[key] = f"{include.source}:{include.line}"
            try:
                check_regular(path, LARGEST)
                text = read_bytes(path, LARGEST)
            except OSError as error:
                include.fail(f"cannot read {name!r}: {error.strerror}")
            if (total := total + len(text)) > LARGEST:
                include.fail(f"makes the model larger than the limit of {LARGEST} bytes")
            part = parse(text, os.path.relpath(path, folder), root.grammar, deepest=DEEPEST, notes=root.notes)
            for child in part.children:
                child.owner = element
            element.children[k : k + 1] = part.children
        pending += element.children


def _path_key(path: str) -> str:
    return os.path.normcase(os.path.realpath(path))


Attributes = dict[str, str]


def _merged(attributes: Mapping[str, str], inherited: Mapping[str, str]) -> Attributes:
    """Return the attributes of an element, completed by the attributes of its class."""
    if any(name in attributes for name in ORIENTATION):  # an orientation has one of five attributes
        inherited = {name: value for name, value in inherited.items() if name not in ORIENTATION}
    merged = {**inherited, **attributes}
    for name in PARTIAL:
        if name in attributes and name in inherited:
            words = attributes[name].split(None, 10)
            merged[name] = " ".join(words + inherited[name].split(None, 10)[len(words) : 10])
    return merged


def _classes(sections: Sequence[Element]) -> dict[str, dict[str, Attributes]]:
    """Return the dict: class -> tag -> default attributes. All kinds of actuators share one set of attributes."""
    classes: dict[str, dict[str, Attributes]] = {"main": {}}
    pending = [(section, "") for section in reversed(sections)]
    while pending:
        section, parent = pending.pop()
        section.note_unread()
        name = section.get("class") or ("" if parent else "main")
        if not parent and name != "main":
            section.fail(f"is the outermost and has class {name!r}; expected 'main'")
        if not name or (parent and name in classes):
            section.fail("needs a unique class" + (f": there is another {name!r}" if name else ""))
        attributes = classes[name] = {**classes[parent or name]}
        for child in section.children:
            if child.tag == "default" or child.tag not in child.grammar:
                continue
            child.note_unread()
            for attribute in PARTIAL:
                child.several(attribute, 10, ())
            tag = "actuator" if child.tag in DRIVES else child.tag
            allowed = {name: value for name, value in child.attributes.items() if name in child.grammar[child.tag][0]}
            attributes[tag] = _merged(allowed, attributes.get(tag, {}))
        pending += [(child, name) for child in reversed(section.all("default"))]
    return classes


class Document:
    """MJCF document with its global settings, classes and assets."""

    def __init__(self, root: Element, beside: str, package_dirs: tuple[str, ...] = ()) -> None:
        root.note_unread()
        self.package_dirs = package_dirs
        self.root, self.notes, self.beside = root, root.notes, beside
        self.compiler, self.option, self.flag = (self.settings(tag) for tag in ("compiler", "option", "flag"))
        self.angle = math.radians(1.0) if self.compiler.word("angle", "degree radian", "degree") == "degree" else 1.0
        self.autolimits = self.compiler.truth("autolimits", True)
        self.eulerseq = self.compiler.get("eulerseq") or "xyz"
        if len(self.eulerseq) != 3 or set(self.eulerseq.lower()) - set("xyz"):
            self.compiler.fail(f"expects three letters of xyzXYZ in eulerseq, got {self.eulerseq[:60]!r}")
        switches = (*FLAGS, "passive")
        self.off = {x for x in switches if self.flag.word(x, "enable disable", "enable") == "disable"}
        self.off |= {"equality", "frictionloss", "limit"} if "constraint" in self.off else set()
        self.off |= {"spring", "damper"} if "passive" in self.off else set()
        for name in sorted(self.off):
            self.flag.note(f"{name} is disabled, and left out")
        for element in (self.compiler, self.option, self.flag, *root.all("deformable")):
            MJCF.remark(element)
        self.classes = _classes(root.all("default"))
        self.meshes, self.materials = self.assets("mesh"), self.assets("material")
        self.replicate()

    def replicate(self) -> None:
        """Replace each <replicate> by a series of frames with copies of its contents.

        Each frame is offset from the previous one; the names get numbers.
        """
        order, made = [self.root], 0
        for element in order:
            order += element.children
        for owner in reversed(order):  # nested <replicate> elements first
            for k, element in reversed([*enumerate(owner.children)]):
                if element.tag != "replicate":
                    continue
                element.note_unread()
                count = element.number("count")
                if count < 1.0 or count != int(count):
                    element.fail(f"expects a count of one or more, got {count:g}")
                inside = [replace(element, tag="frame", attributes={})]
                for part in inside:
                    inside += part.children
                made += int(count) * len(inside)
                if made > MOST_PARTS:
                    element.fail(f"generates more than {MOST_PARTS} elements, the limit of a model")
                angles = np.array(element.numbers("euler", 3, (0.0, 0.0, 0.0)))
                offset = np.array(element.numbers("offset", 3, (0.0, 0.0, 0.0)))
                frames, place = list[Element](), np.zeros(3)
                for i in range(int(count)):
                    suffix = f"{element.get('sep') or ''}{i:0{len(str(int(count)))}d}"
                    frames.append(_copied(inside[0], suffix))
                    R = self.turned((i * angles).tolist())
                    x, y, z, w = R.quaternion.tolist()
                    pos = " ".join(map(repr, place.tolist()))
                    frames[-1].attributes |= {"pos": pos, "quat": f"{w!r} {x!r} {y!r} {z!r}"}
                    place = place + R.apply(offset)
                owner.children[k : k + 1] = frames

    def settings(self, tag: str) -> Element:
        """Return one element with the attributes of all elements of a tag; later elements override earlier ones."""
        owners = self.root.all("option") if tag == "flag" else [self.root]
        elements = [element for owner in owners for element in owner.all(tag)]
        for element in elements:
            element.note_unread()
        attributes = {name: value for element in elements for name, value in element.attributes.items()}
        return replace(elements[-1] if elements else self.root, tag=tag, attributes=attributes)

    def assets(self, tag: str) -> dict[str, Element]:
        """Return name -> asset of a tag, with the attributes of its class."""
        assets = {}
        for owner in self.root.all("asset"):
            owner.note_unread()
            for element in owner.all(tag):
                element.note_unread()
                stem = os.path.splitext(os.path.basename((element.get("file") or "").replace("\\", "/")))[0]
                assets[element.get("name") or stem] = self.classed(element)
        return assets

    def grouped(self, section: str) -> list[Element]:
        """Return the elements in all sections of a name, with the attributes of their classes."""
        elements = []
        for owner in self.root.all(section):
            owner.note_unread()
            for element in owner.children:
                if element.tag in owner.grammar[section][1]:
                    if element.tag in owner.grammar:
                        element.note_unread()
                    elements.append(self.classed(element, tag=section))
        return elements

    def classed(self, element: Element, childclass: str = "", tag: str = "") -> Element:
        """Return the element with the default attributes of its class. If it has no class, `childclass` of a surrounding element is its class."""
        name = element.get("class") or childclass or "main"
        if name not in self.classes:
            element.fail(f"has an unknown class {name!r}{did_you_mean(name, self.classes)}")
        return replace(element, attributes=_merged(element.attributes, self.classes[name].get(tag or element.tag, {})))

    def pose(self, element: Element) -> Transform:
        """Return the pose in an element's attributes."""
        return Transform(self.orientation(element), element.numbers("pos", 3, (0.0, 0.0, 0.0)))

    def orientation(self, element: Element) -> Rotation:
        """Return the orientation in an element's attributes."""
        formats = [name for name in ORIENTATION if name in element.attributes]
        if not formats:
            return Rotation()
        if len(formats) > 1:
            element.fail(f"has two orientations, {formats[0]} and {formats[1]}; expected one")
        kind = formats[0]
        x = element.numbers(kind, {"quat": 4, "axisangle": 4, "xyaxes": 6}.get(kind, 3))
        if kind == "euler":
            return self.turned(x)
        with at(element):
            if kind == "quat":
                return Rotation.from_quaternion((*x[1:], x[0]))
            if kind == "axisangle":
                return Rotation.from_axis_angle(x[:3], x[3] * self.angle)
            if kind == "zaxis":
                return turn_from_z(x)
            first, y = np.array(x[:3]), np.array(x[3:])
            first = first / (np.linalg.norm(first) or 1.0)
            y = y - first * (first @ y)
            y = y / (np.linalg.norm(y) or 1.0)
            return Rotation(np.stack([first, y, np.cross(first, y)], axis=1))

    def turned(self, angles: Sequence[float]) -> Rotation:
        """Return the rotation of Euler angles in the document's unit and sequence."""
        R = Rotation()
        for letter, angle in zip(self.eulerseq, angles, strict=True):
            turn = Rotation.from_axis_angle(letter.lower(), angle * self.angle)
            R = R @ turn if letter.islower() else turn @ R  # lower case: rotated axes; upper case: fixed axes
        return R

    def between(self, element: Element) -> tuple[Transform, float]:
        """Return the frame at the midpoint of the two points of `fromto`, with z from one to the other, and half their distance [m]."""
        ends = np.reshape(element.numbers("fromto", 6), (2, 3))
        along = ends[0] - ends[1]
        length = float(np.linalg.norm(along))
        if not 0.0 < length < math.inf:
            element.fail("has two points in fromto whose distance is zero or not finite")
        return Transform(turn_from_z(along), ends.mean(axis=0)), length / 2.0

    def mesh_file(self, mesh: Element) -> str:
        """Return the file name of a mesh, relative to the document's folder."""
        made = next((name for name in ("vertex", "builtin") if name in mesh.attributes), None)
        if made and "file" not in mesh.attributes:
            mesh.fail(f"is defined by {made} instead of a file, which is not read: {WAY_OUT}")
        return os.path.join(self.compiler.get("meshdir") or self.compiler.get("assetdir") or "", mesh.text("file"))

    def named(self, tags: Sequence[str]) -> dict[str, Element]:
        """Return name -> element for all elements with one of the given tags in the world; raise ModelError for a duplicate name."""
        named: dict[str, Element] = {}
        pending = list(self.root.all("worldbody"))
        while pending:
            element = pending.pop()
            pending += element.children
            name = element.get("name")
            if name and element.tag in tags and named.setdefault(name, element) is not element:
                element.fail(f"has the same name as the element at {named[name].source}:{named[name].line}")
        return named


# ---- <frame scale> ---------------------------------------------------------------------------------------------------


class Scale(NamedTuple):
    """Factors of lengths and masses in a <frame>, and those of its forces, which differ if only the geometry is scaled."""

    length: float = 1.0
    mass: float = 1.0
    force_length: float = 1.0
    force_mass: float = 1.0

    def within(self, frame: Element) -> Scale:
        """Return the factors in a <frame> that is in an element with these factors."""
        several = frame.several("scale", 3, (1.0,))
        length, similar = several[0], frame.word("scaling", "similar geometry", "similar") == "similar"
        mass = frame.number("massscale", length**3)
        if set(several) != {length} or not (0.0 < length < math.inf and 0.0 <= mass < math.inf):
            frame.fail(f"expects one positive number in scale, and none that is negative in massscale: {WAY_OUT}")
        forces = (length, mass) if similar else (1.0, 1.0)
        factors = zip(self, (length, mass, *forces), strict=True)
        return Scale(*(x * factor for x, factor in factors))

    @property
    def of_slide(self) -> Array:
        """Factors (5,) of the forces along a slide: force, armature, then the coefficients of damping or stiffness."""
        return self.force_mass * self.force_length ** np.array([1.0, 0.0, 0.0, -1.0, -2.0])

    def of(self, element: Element) -> Element:
        """Return the element with scaled attributes."""
        if self == Scale():
            return element
        kind = element.tag if element.tag != "joint" else element.word("type", "free ball slide hinge", "hinge")
        force, rotor, *springs = self.of_slide if kind == "slide" else [self.force_mass * self.force_length**2] * 5
        inertia = [self.mass * self.length**2]
        factors = {key: [self.length] for key in ("pos", "size", "fromto")} | {
            "mass": [self.mass],
            "friction": [1.0, self.length],
        }
        factors |= {
            "diaginertia": inertia,
            "fullinertia": inertia,
            "stiffness": springs,
            "damping": springs,
            "armature": [rotor],
        }
        factors |= {"frictionloss": [force], "actuatorfrcrange": [force], "density": [self.mass / self.length**3]}
        factors |= {key: [self.length if kind == "slide" else 1.0] for key in ("range", "ref", "springref")}
        numbers = dict[str, tuple[float, ...]]()
        if kind == "geom":
            numbers = {"density": (1000.0,), "friction": (1.0, 0.005, 0.0001)}
        numbers |= {name: element.several(name, 6) for name in element.attributes if name in factors}
        if "mesh" in element.attributes or (
            kind == "free" and {"stiffness", "damping", "armature", "frictionloss"} & numbers.keys()
        ):
            element.fail(
                f"is in a <frame> with a scale, which is read neither for meshes nor for forces of free joints: {WAY_OUT}"
            )
        texts = dict[str, str]()
        for name, x in numbers.items():
            by = [*factors[name], *[factors[name][-1]] * len(x)]
            texts[name] = " ".join(repr(float(number * factor)) for number, factor in zip(x, by, strict=False))
        return replace(element, attributes=element.attributes | texts)


def _copied(element: Element, suffix: str) -> Element:
    """Return a copy of an element and its contents, with a suffix added to all names."""
    copy = replace(element, attributes=dict(element.attributes))
    pending = [copy]
    while pending:
        part = pending.pop()
        if "name" in part.attributes:
            part.attributes["name"] += suffix
        part.children = [replace(child, attributes=dict(child.attributes), owner=part) for child in part.children]
        pending += part.children
    return copy


def referred(element: Element, attribute: str, names: Mapping[str, object]) -> str:
    """Return the name in an attribute; raise ModelError if it is not among `names`."""
    name = element.text(attribute)
    if name not in names:
        element.fail(f"names an unknown {attribute} {name!r}{did_you_mean(name, names)}")
    return name


# ---- geoms -----------------------------------------------------------------------------------------------------------


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
        check_regular(path, LARGEST_MESH)
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
    touching = Touching()
    named: dict[str, str] = {}  # name of a geom in the file -> name of its shape
    for body, geom in ((name, geom) for name in geoms for geom in geoms[name]):
        element, masks = geom.element, masks_of(geom)
        if not any(masks):
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
            friction = _friction(element)
            numbers = coefficients(*friction, element.note)
            name = add_shape(builder, body, element, shape, geom.place, group=group_of(*masks), **numbers)
            if name is not None:
                touching.add(masks, friction[0], numbers)
                named[element.get("name") or ""] = name
    touching.settle(builder, element.note if warn else None)
    shapes_of: dict[str, list[str]] = {}
    for spec in builder._shapes.values():
        shapes_of.setdefault(spec.body, []).append(spec.name)
    for element in (element for owner in document.root.all("contact") for element in owner.all("exclude", "pair")):
        excluded = element.tag == "exclude"
        keys, allowed = (("body1", "body2"), names) if excluded else (("geom1", "geom2"), named)
        ends = [element.get(key) or "" for key in keys]
        if not all(end in allowed for end in ends):
            fact = "it names a body or geom that does not exist or has no contacts"
            element.note(f"<{element.tag}> in <contact> is not read: {fact}")
            continue
        for name in ("margin", "adhesion"):
            if not excluded and any(element.several(name, 3, (0.0,))):
                element.note(f"{name} of <pair> is not read")
        for first, second in product(*(shapes_of.get(names[x], ()) if excluded else (named[x],) for x in ends)):
            numbers = {} if excluded else coefficients(*_friction(element, pair=True), element.note)
            builder.set_contact(first, second, enabled=not excluded, **numbers)


def _friction(element: Element, *, pair: bool = False) -> tuple[tuple[float, ...], float]:
    """Return the coefficients of sliding, spinning and rolling, and condim; a <pair> has two coefficients of sliding, and two of rolling."""
    default = (1.0, 1.0, 0.005, 0.0001, 0.0001) if pair else (1.0, 0.005, 0.0001)
    numbers = element.several("friction", 5, ())
    mu = (*numbers, *default[len(numbers) :])
    if pair and any(len(numbers) > k + 1 and numbers[k] != numbers[k + 1] for k in (0, 3)):
        element.note(ONE_FRICTION)
    return (mu[0], mu[2], mu[3]) if pair else mu[:3], element.number("condim", 3.0)


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
