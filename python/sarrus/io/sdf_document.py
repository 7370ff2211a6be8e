"""Contents of SDF documents: models, links, frames and joints by scoped names, their poses, and the readers of joints and links."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import _core
from .._arrays import Array
from .._files import check_regular, is_within, read_bytes
from ..building.builder import Builder
from ..description import joints
from ..errors import did_you_mean
from ..shapes import ContactShape, Ellipsoid, Mesh, Plane
from ..spatial import Inertia, Rotation, Transform
from . import document, extensions
from .document import LARGEST, NO_CONTACTS, ONE_FRICTION, Element, free_name, left_out, listed, only_shape, parse
from .formats import NO_LIMIT, SDF, TOUCHING, VISIBLE, combined
from .outline import frame_along

FIRST, LAST = (1, 3), (1, 12)
VARIABLES = ["SDF_PATH", "GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "GAZEBO_MODEL_PATH", "ROS_PACKAGE_PATH"]
MOST_INCLUDES, DEEPEST_INCLUDE = 1000, 20
SCENERY = ("sun", "ground_plane")  # models in most worlds that are not part of a mechanism


@dataclass(frozen=True)
class _Frame:
    """Frame of the file: its pose in the frame `base`, and the frame `on` that it is attached to.

    If the frame belongs to a model with a placement frame `placed`, the pose is that of the placement frame instead.
    """

    element: Element
    base: str
    pose: Transform
    on: str
    placed: str = ""


@dataclass(frozen=True)
class SdfJoint:
    """Joint of the file: its frame, the frames (parent, child) that it connects, and the scope and model in which its names are resolved."""

    element: Element
    name: str
    frame: str
    ends: tuple[str, str]
    scope: str
    model: str

    @property
    def is_gearbox(self) -> bool:
        return self.element.get("type") == "gearbox"


@dataclass
class Scene:
    """Contents of documents by scoped names "model::nested::link"; the world's frame is "world"."""

    beside: str
    package_dirs: tuple[str, ...]
    frames: dict[str, _Frame] = field(default_factory=dict)
    links: dict[str, Element] = field(default_factory=dict)
    joints: list[SdfJoint] = field(default_factory=list)
    models: dict[str, Element] = field(default_factory=dict)
    static: set[str] = field(default_factory=set)  # links
    documents: list[Element] = field(default_factory=list)
    folders: dict[str, str] = field(default_factory=dict)  # of the documents
    size: int = 0  # bytes of the included files
    reading: tuple[str, ...] = ()  # chain of included files, down to the current one
    poses: dict[str, Transform] = field(default_factory=lambda: {"world": Transform()})
    bodies: dict[str, str] = field(default_factory=lambda: {"world": "world"})  # frame -> link that it is attached to

    # contents of documents

    def document(self, text: str | bytes, source: str) -> Element:
        """Return the root of a document, and add it to the scene."""
        root = SDF.parse(text, source)
        self.documents.append(root)
        self.folders[source] = self.beside
        if root.tag != "sdf":
            root.fail("is not the root of an SDF document; expected <sdf>")
        root.note_unread()
        version_of(root)
        return root

    def choose(self, root: Element, model: str | None) -> str:
        """Add the document's models; return the name of the model to read, or an empty name for all models."""
        worlds = root.all("world")
        if len(worlds) > 1:
            worlds[1].fail(f"is one of {len(worlds)} worlds; expected one")
        owner = worlds[0] if worlds else root
        if worlds:
            owner.note_unread()
        tops = []
        for element in owner.all("model", "include"):
            name = self.include(element, "", "world") if element.tag == "include" else self.model(element, "", "world")
            if name:
                tops.append(name)
        for frame in owner.all("frame") if worlds else ():
            self.frame(frame, "", "world")
        for joint in owner.all("joint") if worlds else ():
            self.joint(joint, "", "world")
        if not tops:
            owner.fail("has no model")
        if model is not None:
            if model not in tops:
                owner.fail(f"has no model {model!r}{did_you_mean(model, tops)}")
            return model
        tied = any(joint.scope == "" and "world" not in joint.ends for joint in self.joints)
        loose = {link.partition("::")[0] for link in self.links if link not in self.static}
        moving = [top for top in tops if top in loose]
        if len(moving) > 1 and not tied:
            owner.fail(f"has {len(moving)} moving models, {listed(moving)}: select one, model={moving[0]!r}")
        return "" if tied else (moving or tops)[0]

    def model(
        self, element: Element, scope: str, home: str, overriding: Element | None = None, *, merged: bool = False
    ) -> str:
        """Add a model and return its name; `overriding` is an <include> that may change its name and pose."""
        element.note_unread()
        model_name = (overriding and _word(overriding, "name")) or element.text("name")
        placing = overriding if overriding is not None and overriding.child("pose") else element
        if "::" in model_name and version_of(element) >= (1, 8):
            element.fail("has a name with '::', the separator of the names of nested models")
        name = self.new(element, f"{scope}_merged__{model_name}__" if merged else scope + model_name)
        inside = scope if merged else f"{name}::"
        self.models[name] = element
        fixed = next((e for e in (overriding, element) if e is not None and e.child("static")), None)
        is_static = fixed is not None and truth(fixed.needed("static"))
        before = len(self.links)
        for link in element.all("link"):
            link.note_unread()
            key = self.new(link, inside + link.text("name"))
            self.links[key] = link
            self.frames[key] = self.placed(link, link, inside, name, key)
        for frame in element.all("frame"):
            self.frame(frame, inside, name)
        for nested in element.all("model"):
            self.model(nested, inside, name)
        for include in element.all("include"):
            self.include(include, inside, name)
        for joint in element.all("joint", "drake:joint"):
            self.joint(joint, inside, name)
        links = list(self.links)[before:]
        if is_static:
            self.static.update(links)
        canonical = element.get("canonical_link")
        on = inside + canonical if canonical else (links[0] if links else "")
        at_frame = (overriding and _word(overriding, "placement_frame")) or element.get("placement_frame") or ""
        at_frame = inside + at_frame if at_frame else ""
        outside = scope if placing is overriding or scope else ""
        self.frames[name] = self.placed(element, placing, outside, home, on, at_frame)
        return name

    def include(self, element: Element, scope: str, home: str) -> str:
        """Add the model of an <include> and return its name; empty for missing scenery of a world."""
        element.note_unread()
        uri = element.needed("uri").words()
        path = self.find(element, uri)
        if path is None:
            if scope == "" and uri.rstrip("/").rpartition("/")[2] in SCENERY:
                return ""
            cure = "give the folder of models by load(..., package_dirs=[...]) or the variable SDF_PATH"
            _refuse(element, f", which does not exist: {cure}")
        if len(self.documents) > MOST_INCLUDES:
            element.fail(f"is one of more than {MOST_INCLUDES} included files")
        if str(path) in self.reading:
            element.fail(f"includes in a circle: {' > '.join(Path(p).name for p in (*self.reading, str(path)))}")
        if len(self.reading) >= DEEPEST_INCLUDE:
            element.fail(f"is nested deeper than {DEEPEST_INCLUDE} files")
        before, self.reading, self.beside = (self.reading, self.beside), (*self.reading, str(path)), str(path.parent)
        try:
            check_regular(path, LARGEST)
            text = read_bytes(path, LARGEST)
        except OSError as error:
            _refuse(element, f", which cannot be read: {error.strerror}")
        self.size += len(text)
        if self.size > LARGEST:
            element.fail(f"makes the model larger than the limit of {LARGEST} bytes")
        root = self.document(text, f"{path.parent.name}/{path.name}")
        models = root.all("model")
        if len(models) != 1:
            root.fail(f"has {len(models)} models; expected one in an included file")
        name = self.model(models[0], scope, home, element, merged=element.get("merge") in ("true", "1"))
        self.reading, self.beside = before
        return name

    def find(self, element: Element, uri: str) -> Path | None:
        """Return the file of an include, or None if it does not exist."""
        scheme, separator, rest = uri.partition("://")
        if separator and ".." in Path(rest).parts:
            _refuse(element, ", which is outside of its folder")
        if separator and scheme not in ("model", "package", "file"):
            _refuse(element, f": {scheme}:// is not read; expected model://, package:// or a file")
        start = [self.beside] if self.beside else []
        above = [str(folder) for path in start for folder in (Path(path), *list(Path(path).parents)[:-1])]
        named = scheme in ("model", "package") and bool(separator)
        lists = [os.environ.get(variable, "").split(os.pathsep) for variable in VARIABLES if named]
        installed = [folder for folders in lists for folder in folders if folder]
        name = rest if separator else uri
        for folder in [*self.package_dirs, *above, *installed] if named else start:
            # installed folders of ROS and Gazebo contain symbolic links to build folders, so that any folder is allowed
            allowed = [] if folder in installed else [folder, *self.package_dirs]
            # a package is a subfolder of a searched folder, or a searched folder itself
            inside = [name, name.partition("/")[2]] if named and Path(folder).name == name.partition("/")[0] else [name]
            for candidate in inside:
                path, root = os.path.abspath(os.path.join(folder, candidate)), os.path.abspath(folder)
                in_folder = path == root or path.startswith(os.path.join(root, ""))
                if "\0" in path or not (is_within(path, allowed) if allowed and path != root else in_folder):
                    _refuse(element, ", which is outside of the searched folders; package_dirs=[...] adds folders")
                file = Path(path) if os.path.exists(path) and not os.path.isdir(path) else _model_file(Path(path))
                if file is not None and allowed and not is_within(file, allowed):
                    _refuse(element, ", which is a link out of the searched folders")
                if file is not None:
                    return file
        return None

    def frame(self, element: Element, scope: str, home: str) -> None:
        """Add a <frame> of the model `home`."""
        element.note_unread()
        key = self.new(element, scope + element.text("name"))
        on = element.get("attached_to")
        on = home if on in (None, "", "__model__") else on if scope == "" and on == "world" else scope + str(on)
        self.frames[key] = self.placed(element, element, scope, on, on)

    def joint(self, element: Element, scope: str, home: str) -> None:
        """Add a joint of the model `home`, and its frame."""
        element.note_unread()
        name = scope + element.text("name")
        if element.tag == "drake:joint":  # Drake's joint names its two frames, both of which are in the file
            parent, child = (self.named(element.needed(f"drake:{end}"), scope, home) for end in ("parent", "child"))
            self.joints.append(SdfJoint(element, name, child, (parent, child), scope, home))
            return
        # in versions up to 1.6 a link may have the name of a joint
        frame = name
        if name in self.frames and version_of(element) < (1, 7):
            frame = free_name(f"{name}_joint_frame", self.frames)
        self.new(element, frame)
        parent, child = (self.named(element.needed(end), scope, home) for end in ("parent", "child"))
        self.frames[frame] = self.placed(element, element, scope, child, child, home=home)
        self.joints.append(SdfJoint(element, name, frame, (parent, child), scope, home))

    def placed(
        self, owner: Element, element: Element, scope: str, base: str, on: str, placed: str = "", home: str = ""
    ) -> _Frame:
        """Return the frame at an element's <pose>, which is in `base` unless it names another frame."""
        pose = element.child("pose")
        if pose is None:
            return _Frame(owner, base, Transform(), on, placed)
        frame_name = base_name(pose)
        if frame_name:
            model = home or (scope.removesuffix("::") if scope else "world")
            in_world = scope == "" and frame_name == "world"
            base = model if frame_name == "__model__" else "world" if in_world else scope + frame_name
        return _Frame(owner, base, pose_of(pose), on, placed)

    def new(self, element: Element, key: str) -> str:
        """Register the name of a new frame and return it; raise ModelError if another frame has this name."""
        first = self.frames.get(key)
        if first is not None:
            element.fail(f"has the same name as the {first.element.tag} in line {first.element.line}")
        self.frames[key] = _Frame(element, "world", Transform(), "")  # placeholder that reserves the name
        return key

    @staticmethod
    def named(element: Element, scope: str, home: str) -> str:
        """Return the scoped name of the frame in an element's text."""
        name = element.words()
        return name if name == "world" else home if name == "__model__" else scope + name

    # poses

    def frame_of(self, element: Element, key: str) -> _Frame:
        """Return the frame of a scoped name; raise ModelError if there is none."""
        if key not in self.frames:
            name = key.rpartition("::")[2]
            names = [other.rpartition("::")[2] for other in self.frames] if len(self.frames) < 10000 else []
            element.fail(f"refers to {key!r}, which is no frame, link, joint or model{did_you_mean(name, names)}")
        return self.frames[key]

    def step(self, key: str) -> Transform:
        """Return the pose of a frame in its base."""
        frame = self.frames[key]
        if not frame.placed:
            return frame.pose
        inside, name = Transform(), frame.placed
        path: set[str] = set()
        while name != key:
            if name in path or name == "world":
                frame.element.fail("has a placement frame that is not in it")
            path.add(name)
            base = self.frame_of(frame.element, name).base
            inside, name = self.step(name) @ inside, base
        return frame.pose @ inside.inverse()

    def pose(self, key: str, element: Element) -> Transform:
        """Return the pose of a frame in the world."""
        path: dict[str, None] = {}
        while key not in self.poses:
            if key in path:
                self.frames[key].element.fail(f"is placed relative to itself: {listed(list(path))}")
            path[key] = None
            key = self.frame_of(element, key).base
            element = self.frames[next(reversed(path))].element
        X = self.poses[key]
        for name in reversed(path):
            X = self.poses[name] = X @ self.step(name)
        return X

    def body(self, key: str, element: Element) -> str:
        """Return the link that a frame is attached to, or "world"."""
        path: dict[str, None] = {}
        while key not in self.bodies:
            if key in self.links:
                self.bodies[key] = key
                break
            if key in path:
                self.frames[key].element.fail("is attached to itself")
            path[key] = None
            key = self.frame_of(element, key).on
            if not key:
                element.fail(f"refers to {next(iter(path))!r}, a model without links")
        link = self.bodies[key]
        self.bodies.update(dict.fromkeys(path, link))
        return link

    def on_body(self, key: str, element: Element) -> tuple[str, Transform]:
        """Return the link that a frame is attached to, or "world", and the frame's pose in it."""
        link = self.body(key, element)
        return link, self.between(link, key, element)

    def between(self, key: str, other: str, element: Element) -> Transform:
        """Return the pose of frame `other` in frame `key`. If the file states this pose, it is returned without rounding errors."""
        if key == other:
            return Transform()
        if other in self.frames and self.frames[other].base == key:
            return self.step(other)
        return self.pose(key, element).inverse() @ self.pose(other, element)


def _refuse(include: Element, fault: str) -> NoReturn:
    uri = include.needed("uri")
    uri.fail(f"names {uri.words()[:200]!r}{fault}")


def inside(key: str, model: str) -> bool:
    """Return True if a scoped name is in a model."""
    return key.startswith(f"{model}::") or not model


def version_of(element: Element) -> tuple[int, int]:
    """Return (major, minor) of the SDF version of an element; 1.6 in a URDF."""
    while element.owner is not None:
        element = element.owner
    if element.tag != "sdf":
        return (1, 6)
    text = element.text("version")
    major, _, minor = text.partition(".")
    if not (text.isascii() and major.isdecimal() and minor.isdecimal() and len(text) < 10):
        element.fail(f"has version {text[:20]!r}; expected 1.3 to 1.12")
    version = int(major), int(minor)
    if version < FIRST:
        element.fail(f"has version {text}; expected 1.3 to 1.12")
    if version > LAST:
        element.note(f"version {text} is newer than 1.12, and is read as 1.12")
    return version


def _word(element: Element, tag: str) -> str:
    child = element.child(tag)
    return "" if child is None else child.words()


def truth(element: Element) -> bool:
    """Return the boolean in the text of an element."""
    text = element.content.strip().lower()
    if text not in ("true", "1", "false", "0"):
        element.fail(f"expects true or false, got {text[:60]!r}")
    return text in ("true", "1")


def base_name(pose: Element) -> str | None:
    """Return the name of the frame that a <pose> is relative to, or None."""
    return pose.get("relative_to") or pose.get("frame")


def pose_of(element: Element) -> Transform:
    """Return the pose in the text of a <pose>."""
    rotation_format = element.get("rotation_format") or "euler_rpy"
    if rotation_format == "quat_xyzw":
        *place, x, y, z, w = element.numbers(None, 7, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        length = math.hypot(x, y, z, w)
        if abs(length - 1.0) > 1e-3:
            element.fail(f"has a quaternion of length {length:g}; expected 1")
        return Transform(Rotation.from_quaternion(np.array([x, y, z, w]) / length), place)
    if rotation_format != "euler_rpy":
        element.fail(f"has an unknown rotation_format {rotation_format!r}; expected one of euler_rpy, quat_xyzw")
    *place, roll, pitch, yaw = element.numbers(None, 6, (0.0,) * 6)
    if element.get("degrees") in ("true", "1"):
        roll, pitch, yaw = map(math.radians, (roll, pitch, yaw))
    return Transform.from_rpy(roll, pitch, yaw, place) if roll or pitch or yaw else Transform(translation=place)


def _model_file(folder: Path) -> Path | None:
    """Return the SDF in a model's folder: the newest one in its model.config, or model.sdf; None if there is none."""
    config = folder / "model.config"
    if config.is_file():
        root = parse(read_bytes(config, LARGEST), config.name, {})

        def version(element: Element) -> list[int]:
            return [int(n) if n.isdecimal() else 0 for n in (element.get("version") or "0").split(".")]

        for element in sorted(root.all("sdf"), key=version, reverse=True):
            path = folder / element.words()
            if ".." not in path.parts and path.is_file() and path.parent.samefile(folder):
                return path
    return folder / "model.sdf" if (folder / "model.sdf").is_file() else None


# ---- joints: types, axes and their parameters ------------------------------------------------------------------------

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
    return joints.Universal(*directions, **combined(numbers)), driven


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


def gear_terms(
    element: Element, reference: str, ends: Sequence[str], hinges: Mapping[tuple[str, str], tuple[str, Array]],
    in_world: Callable[[Element], Array],
) -> dict[str, float]:  # fmt: skip
    """Return the coefficients of joints in theta2 + ratio theta1 = 0 of a gearbox.

    theta1 is the angle from the reference body to the parent about `axis`; theta2 is the angle from the reference body to the child about `axis2`.
    `hinges` maps (parent, child) of each revolute joint to its name and its axis (3,) in the world.
    """
    ratio = element.needed("gearbox_ratio").number(None)
    terms: dict[str, float] = {}
    for end, tag, factor in zip(ends, ("axis", "axis2"), (ratio, 1.0), strict=True):
        about = element.child(tag) or element.needed("axis")
        sign = 1.0 if (reference, end) in hinges else -1.0
        hinge = hinges.get((reference, end)) or hinges.get((end, reference))
        if hinge is None:
            element.fail(f"couples {end!r} and {reference!r}, which no revolute joint connects")
        name, axis = hinge
        along = float(axis @ in_world(about))
        if abs(along) < 0.999:  # many files write pi/2 as 1.57
            about.fail(f"is not parallel to the axis of joint {name!r}, whose angle it couples")
        terms[name] = factor * sign * math.copysign(1.0, along)
    return terms


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
    return document.placed_inertia(tensor or inertial, link, m, tuple(moments.values()), place)


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
                    document.add_shape(builder, body, collision, solid, place, **_coefficients(collision))
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
    return document.color_of(colors[0], None, 3 if len(colors[0].words().split(None, 4)) == 3 else 4)
