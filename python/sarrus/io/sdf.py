"""SDF, versions 1.3 to 1.12, read with the standard library's expat.

What becomes of each part of a file:

============================  =====================================================================================
`<model>`                     the mechanism; the only one of a world that is not static, the one that `model=` names, or all of them
                              where joints of the world connect them. Links of nested models are called "nested::link"
`<include>`                   as a nested model, or merged; its file is looked for as :func:`sarrus.load` says
`<pose>`                      with `relative_to` (up to 1.6 `frame`), `degrees`, `rotation_format`, `placement_frame`
`<link>`                      a body. Without `<inertial>` it has SDF's defaults, 1 kg and 1 kg m² about each axis, with a warning;
                              `auto`: the inertia of its collisions (box, capsule, cylinder, ellipsoid, sphere)
`<frame>`                     a frame
`<joint>`                     a joint, whose frame is one in the file's pose: q = 0 there. Any two links may be joined, so that loops
                              close: revolute, continuous, prismatic, screw, ball, universal and revolute2 (Universal), fixed. An effort
                              of 0 makes it passive, a negative one is no limit; ball joints are passive
`<axis>`                      in the joint's frame, unless `expressed_in` another one, or up to 1.6 in the model's where
                              `use_parent_model_frame` says so, as files up to 1.4 always mean it
`<limit>`, `<dynamics>`       limits, velocity_limit, effort_limit, damping, friction, stiffness and rest
gearbox, `<mimic>`            couplers of two joints, both kept in the tree
`drake:…`                     planar joints, mimic, and :mod:`sarrus.io.drake`
what no joint leads to        floats, by a Free joint "root_joint" of the canonical link, with the file's pose as home
`<static>`                    its links are fixed to the ground
`<gravity>` of the world      gravity
`<visual>`                    what `sarrus.view` shows, as in :mod:`sarrus.io.urdf`
anything else                 a warning, but for what has no bearing on the dynamics
============================  =====================================================================================
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..building.builder import Builder
from ..description import joints
from ..description.specs import Box, Cylinder, Mesh, Shape, Sphere
from ..errors import ModelError, did_you_mean
from ..spatial import Inertia, Rotation, Transform
from . import drake
from .document import Element, at, free_name, grammar, listed, parse, placed_inertia

__all__ = ["read"]

_MODEL = (
    "name canonical_link placement_frame | pose static link joint frame model include drake:joint (self_collide allow_auto_disable "
    f"enable_wind plugin gripper audio drake:collision_filter_group) {' '.join(drake.TAGS)}"
)
_AXIS = "| xyz limit dynamics mimic use_parent_model_frame"
KNOWN = grammar(
    {
        "sdf": "version | world model (light actor)",
        "world": "name | gravity model include joint frame physics (light actor plugin scene gui audio state road magnetic_field "
        "atmosphere spherical_coordinates wind population)",
        "physics": "name type default | gravity (max_step_size real_time_factor real_time_update_rate ode bullet dart simbody "
        "max_contacts)",
        "model": _MODEL,
        "include": "merge | uri name pose static placement_frame (plugin)",
        "link": "name type | pose inertial gravity visual collision (self_collide kinematic must_be_base_link enable_wind "
        "velocity_decay sensor light projector audio_sink audio_source battery particle_emitter plugin)",
        "inertial": "auto | pose mass inertia density (auto_inertia_params)",
        "inertia": "| ixx ixy ixz iyy iyz izz",
        "pose": "relative_to frame degrees rotation_format |",
        "frame": "name attached_to | pose",
        "joint": "name type | pose parent child axis axis2 gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch "
        "drake:mimic drake:rotor_inertia drake:gear_ratio (physics sensor plugin drake:controller_gains)",
        "drake:joint": "name type | drake:parent drake:child drake:damping",
        "drake:mimic": "joint multiplier offset |",
        "axis": _AXIS,
        "axis2": _AXIS,
        "xyz": "expressed_in |",
        "limit": "| lower upper effort velocity (stiffness dissipation)",
        "dynamics": "| damping friction spring_stiffness spring_reference",
        "mimic": "joint axis | multiplier offset reference",
        **drake.KNOWN,
    }
)

FIRST, LAST = (1, 3), (1, 12)
MOST_INCLUDES, DEEPEST_INCLUDE = 1000, 20
NO_LIMIT = 1e16  # what SDF writes for none
OF_WORLDS = ("sun", "ground_plane")  # a lamp and the ground, which most worlds include


def read(
    text: str | bytes,
    *,
    source: str = "<string>",
    floating_base: bool | None = None,
    beside: str = "",
    package_dirs: Iterable[str] = (),
    model: str | None = None,
) -> Builder:
    """Builder of the mechanism that an SDF document describes, which can be added to. A ModelError tells file, line and element.

    Parameters
    ----------
    text : the document
    source : what errors and warnings call it
    beside : folder of the file, where the search for meshes and included models starts; empty: there is none
    floating_base : False fixes the canonical link to the ground, where the file lets it float
    package_dirs, model : as of :func:`sarrus.load`

    Examples
    --------
    >>> from sarrus.io import sdf
    >>> b = sdf.read('<sdf version="1.7"><model name="stone"><link name="stone"><inertial/></link></model></sdf>')
    >>> b.build().joint("root_joint").kind
    'Free'
    """
    if not isinstance(floating_base, bool | np.bool_ | None):
        raise ModelError(f"floating_base is True or False; got {floating_base!r}")
    scene = _Scene(beside, tuple(package_dirs))
    root = scene.document(text, source)
    top = scene.choose(root, model)
    return _built(scene, root, top, floating_base)


# --- frames -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    """A frame of the file: its pose in another one (or, of a model, that of its placement frame), and to what it is attached."""

    element: Element
    base: str
    pose: Transform
    on: str
    placed: str = ""


@dataclass(frozen=True)
class _Joint:
    """A joint where it stands: its own frame, those that it joins, parent first, and what names in it are relative to."""

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
class _Scene:
    """What documents hold, by scoped names "model::nested::link"; the world's frame is "world"."""

    beside: str
    package_dirs: tuple[str, ...]
    frames: dict[str, _Frame] = field(default_factory=dict)
    links: dict[str, Element] = field(default_factory=dict)
    joints: list[_Joint] = field(default_factory=list)
    models: dict[str, Element] = field(default_factory=dict)  # with links or joints of their own
    static: set[str] = field(default_factory=set)  # links
    documents: list[Element] = field(default_factory=list)
    folders: dict[str, str] = field(default_factory=dict)  # of the documents
    reading: tuple[str, ...] = ()  # files that include one another, down to this one
    poses: dict[str, Transform] = field(default_factory=lambda: {"world": Transform()})
    bodies: dict[str, str] = field(default_factory=lambda: {"world": "world"})  # that frames are attached to

    # what documents hold

    def document(self, text: str | bytes, source: str) -> Element:
        root = parse(text, source, KNOWN)
        self.documents.append(root)
        self.folders[source] = self.beside
        if root.tag != "sdf":
            root.fail("is not the root of an SDF (<sdf>)")
        root.look_for_unknown()
        _version(root)
        return root

    def choose(self, root: Element, wanted: str | None) -> str:
        """Gather what the document's models hold; the name of the one that is read, empty for all."""
        worlds = root.all("world")
        if len(worlds) > 1:
            worlds[1].fail(f"is one of {len(worlds)} worlds: one is wanted")
        owner = worlds[0] if worlds else root
        if worlds:
            owner.look_for_unknown()
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
        if wanted is not None:
            if wanted not in tops:
                owner.fail(f"has no model {wanted!r}{did_you_mean(wanted, tops)}")
            return wanted
        tied = any(joint.scope == "" and "world" not in joint.ends for joint in self.joints)
        loose = {link.partition("::")[0] for link in self.links if link not in self.static}
        moving = [top for top in tops if top in loose]
        if len(moving) > 1 and not tied:
            owner.fail(
                f"has {len(moving)} models that move, {listed(moving)}: say which one is wanted, model={moving[0]!r}"
            )
        return "" if tied else (moving or tops)[0]

    def model(
        self, element: Element, scope: str, home: str, given: Element | None = None, *, merged: bool = False
    ) -> str:
        """Gather a model, of which an <include> may override name and pose; its name."""
        element.look_for_unknown()
        own = (given and _word(given, "name")) or element.text("name")
        placing = given if given is not None and given.child("pose") else element
        if "::" in own and _version(element) >= (1, 8):
            element.fail("has a name with '::', which divides the names of nested models")
        name = self.new(element, f"{scope}_merged__{own}__" if merged else scope + own)
        inside = scope if merged else f"{name}::"
        self.models[name] = element
        fixed = next((e for e in (given, element) if e is not None and e.child("static")), None)
        still = fixed is not None and _truth(fixed.needed("static"))
        before = len(self.links)
        for link in element.all("link"):
            link.look_for_unknown()
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
        if still:
            self.static.update(links)
        canonical = element.get("canonical_link")
        on = inside + canonical if canonical else (links[0] if links else "")
        at_frame = (given and _word(given, "placement_frame")) or element.get("placement_frame") or ""
        self.frames[name] = self.placed(
            element,
            placing,
            scope if placing is given or scope else "",
            home,
            on,
            inside + at_frame if at_frame else "",
        )
        return name

    def include(self, element: Element, scope: str, home: str) -> str:
        """Gather the model that an <include> names; its name, empty where a world is as well without."""
        element.look_for_unknown()
        uri = element.needed("uri").words()
        path = self.find(element, uri)
        if path is None:
            if scope == "" and uri.rstrip("/").rpartition("/")[2] in OF_WORLDS:
                return ""
            element.needed("uri").fail(
                f"names {uri[:200]!r}, which is not there: load(..., package_dirs=[...]) or the variable SDF_PATH says where models are"
            )
        if len(self.documents) > MOST_INCLUDES:
            element.fail(f"is one of more than {MOST_INCLUDES}")
        if str(path) in self.reading:
            element.fail(f"includes in a circle: {' > '.join(Path(p).name for p in (*self.reading, str(path)))}")
        if len(self.reading) >= DEEPEST_INCLUDE:
            element.fail(f"is nested deeper than {DEEPEST_INCLUDE} files")
        before, self.reading, self.beside = (self.reading, self.beside), (*self.reading, str(path)), str(path.parent)
        root = self.document(path.read_bytes(), f"{path.parent.name}/{path.name}")
        models = root.all("model")
        if len(models) != 1:
            root.fail(f"has {len(models)} models; a file that is included has one")
        name = self.model(models[0], scope, home, element, merged=element.get("merge") in ("true", "1"))
        self.reading, self.beside = before
        return name

    def find(self, element: Element, uri: str) -> Path | None:
        """The file that an include names; None where there is none."""
        scheme, separator, rest = uri.partition("://")
        if separator and ".." in Path(rest).parts:
            element.needed("uri").fail(f"names {uri[:200]!r}, which leads out of a folder")
        if separator and scheme not in ("model", "package", "file"):
            element.needed("uri").fail(
                f"names {uri[:200]!r}: {scheme}:// is not fetched; model://, package:// and files are read"
            )
        here = [self.beside] if self.beside else []
        near = [str(folder) for start in here for folder in (Path(start), *list(Path(start).parents)[:-1])]
        folders = (
            [*self.package_dirs, *near, *_from_environment()] if scheme in ("model", "package") and separator else here
        )
        name = rest if separator else uri
        allowed = [os.path.abspath(folder) for folder in (*folders, *self.package_dirs)]
        for folder in folders:
            # a package is a folder in one of these, or one of these
            inside = (
                [name, name.partition("/")[2]] if separator and Path(folder).name == name.partition("/")[0] else [name]
            )
            for one in inside:
                path = os.path.abspath(os.path.join(folder, one))
                if "\0" in path or not any(os.path.commonpath([path, root]) == root for root in allowed):
                    fault = "leads out of the folders that are searched; package_dirs=[...] names others"
                    element.needed("uri").fail(f"names {uri[:200]!r}, which {fault}")
                if os.path.isfile(path):
                    return Path(path)
                if os.path.isdir(path) and (found := _of_folder(Path(path))):
                    return found
        return None

    def frame(self, element: Element, scope: str, home: str) -> None:
        element.look_for_unknown()
        key = self.new(element, scope + element.text("name"))
        on = element.get("attached_to")
        on = home if on in (None, "", "__model__") else on if scope == "" and on == "world" else scope + str(on)
        self.frames[key] = self.placed(element, element, scope, on, on)

    def joint(self, element: Element, scope: str, home: str) -> None:
        element.look_for_unknown()
        name = scope + element.text("name")
        if element.tag == "drake:joint":  # its frames are those of what it joins
            parent, child = (self.named(element.needed(f"drake:{end}"), scope, home) for end in ("parent", "child"))
            self.joints.append(_Joint(element, name, child, (parent, child), scope, home))
            return
        # up to 1.6 a link may have the name of a joint
        frame = (
            free_name(f"{name}_joint_frame", self.frames)
            if name in self.frames and _version(element) < (1, 7)
            else name
        )
        self.new(element, frame)
        parent, child = (self.named(element.needed(end), scope, home) for end in ("parent", "child"))
        self.frames[frame] = self.placed(element, element, scope, child, child, home=home)
        self.joints.append(_Joint(element, name, frame, (parent, child), scope, home))

    def placed(
        self, owner: Element, element: Element, scope: str, base: str, on: str, placed: str = "", home: str = ""
    ) -> _Frame:
        """A frame at an element's <pose>, which is told in `base` if it does not say itself."""
        pose = element.child("pose")
        if pose is None:
            return _Frame(owner, base, Transform(), on, placed)
        told = pose.get("relative_to") or pose.get("frame")
        if told:
            model = home or (scope.removesuffix("::") if scope else "world")
            base = model if told == "__model__" else "world" if scope == "" and told == "world" else scope + told
        return _Frame(owner, base, pose_of(pose), on, placed)

    def new(self, element: Element, key: str) -> str:
        """A name that no other frame has."""
        first = self.frames.get(key)
        if first is not None:
            element.fail(f"has the name of another {first.element.tag} in line {first.element.line}")
        self.frames[key] = _Frame(element, "world", Transform(), "")  # its place is held until it is known
        return key

    @staticmethod
    def named(element: Element, scope: str, home: str) -> str:
        """The frame that an element's text names."""
        name = element.words()
        return name if name == "world" else home if name == "__model__" else scope + name

    # where they are

    def known(self, element: Element, key: str) -> _Frame:
        if key not in self.frames:
            name = key.rpartition("::")[2]
            near = [other.rpartition("::")[2] for other in self.frames] if len(self.frames) < 10000 else []
            element.fail(f"refers to {key!r}, which is no frame, link, joint or model{did_you_mean(name, near)}")
        return self.frames[key]

    def step(self, key: str) -> Transform:
        """Pose of a frame in its base."""
        frame = self.frames[key]
        if not frame.placed:
            return frame.pose
        inside, name = Transform(), frame.placed
        way: set[str] = set()
        while name != key:
            if name in way or name == "world":
                frame.element.fail("has a placement frame that is not in it")
            way.add(name)
            base = self.known(frame.element, name).base
            inside, name = self.step(name) @ inside, base
        return frame.pose @ inside.inverse()

    def pose(self, key: str, element: Element) -> Transform:
        """Pose of a frame in the world."""
        way: dict[str, None] = {}
        while key not in self.poses:
            if key in way:
                self.frames[key].element.fail(f"is placed relative to itself: {listed(list(way))}")
            way[key] = None
            key = self.known(element, key).base
            element = self.frames[next(reversed(way))].element
        X = self.poses[key]
        for name in reversed(way):
            X = self.poses[name] = X @ self.step(name)
        return X

    def body(self, key: str, element: Element) -> str:
        """The link that a frame is attached to, or "world"."""
        way: dict[str, None] = {}
        while key not in self.bodies:
            if key in self.links:
                self.bodies[key] = key
                break
            if key in way:
                self.frames[key].element.fail("is attached to itself")
            way[key] = None
            key = self.known(element, key).on
            if not key:
                element.fail(f"refers to {next(iter(way))!r}, a model without links")
        link = self.bodies[key]
        self.bodies.update(dict.fromkeys(way, link))
        return link

    def on_body(self, key: str, element: Element) -> tuple[str, Transform]:
        """The link that a frame is attached to, or "world", and the frame's pose there."""
        link = self.body(key, element)
        return link, self.between(link, key, element)

    def between(self, key: str, other: str, element: Element) -> Transform:
        """Pose of another frame in a frame; without rounding where the file tells it so."""
        if key == other:
            return Transform()
        if other in self.frames and self.frames[other].base == key:
            return self.step(other)
        return self.pose(key, element).inverse() @ self.pose(other, element)


def _in(key: str, model: str) -> bool:
    return key.startswith(f"{model}::") or not model


def _version(element: Element) -> tuple[int, int]:
    while element.owner is not None:
        element = element.owner
    if element.tag != "sdf":  # within a URDF
        return (1, 6)
    text = element.text("version")
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and minor.isdecimal() and len(text) < 10):
        element.fail(f"has version {text[:20]!r}, which is none")
    version = int(major), int(minor)
    if version < FIRST:
        element.fail(f"has version {text}; read are 1.3 to 1.12")
    if version > LAST:
        element.note(f"version {text} is newer than 1.12, the last one that is read: taken as that")
    return version


def _word(element: Element, tag: str) -> str:
    child = element.child(tag)
    return "" if child is None else child.words()


def _truth(element: Element) -> bool:
    text = element.content.strip().lower()
    if text not in ("true", "1", "false", "0"):
        element.fail(f"is true or false, not {text[:60]!r}")
    return text in ("true", "1")


def pose_of(element: Element) -> Transform:
    how = element.get("rotation_format") or "euler_rpy"
    if how == "quat_xyzw":
        *place, x, y, z, w = element.numbers(None, 7, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        length = math.hypot(x, y, z, w)
        if abs(length - 1.0) > 1e-3:
            element.fail(f"has a quaternion of length {length:g}")
        return Transform(Rotation.from_quaternion(np.array([x, y, z, w]) / length), place)
    if how != "euler_rpy":
        element.fail(f"has an unknown rotation_format {how!r}; known are euler_rpy, quat_xyzw")
    *place, roll, pitch, yaw = element.numbers(None, 6, (0.0,) * 6)
    if element.get("degrees") in ("true", "1"):
        roll, pitch, yaw = map(math.radians, (roll, pitch, yaw))
    return Transform.from_rpy(roll, pitch, yaw, place) if roll or pitch or yaw else Transform(translation=place)


def _from_environment() -> Iterator[str]:
    for variable in (
        "SDF_PATH",
        "GZ_SIM_RESOURCE_PATH",
        "IGN_GAZEBO_RESOURCE_PATH",
        "GAZEBO_MODEL_PATH",
        "ROS_PACKAGE_PATH",
    ):
        yield from filter(None, os.environ.get(variable, "").split(os.pathsep))


def _of_folder(folder: Path) -> Path | None:
    """The SDF of a model's folder: the newest that its model.config names, or model.sdf."""
    config = folder / "model.config"
    if config.is_file():
        root = parse(config.read_bytes(), config.name, {})
        versions = sorted(
            root.all("sdf"),
            key=lambda e: [int(n) if n.isdecimal() else 0 for n in (e.get("version") or "0").split(".")],
        )
        for element in reversed(versions):
            path = folder / element.words()
            if ".." not in path.parts and path.is_file() and path.parent.samefile(folder):
                return path
    return folder / "model.sdf" if (folder / "model.sdf").is_file() else None


# --- joints -------------------------------------------------------------------------------------------------------

ONE_AXIS = {"revolute": joints.Revolute, "continuous": joints.Revolute, "prismatic": joints.Prismatic}
TWO_AXES = ("universal", "revolute2")

Vector = NDArray[np.float64]
Direction = Callable[[Element], tuple[float, float, float]]


def joint_type(element: Element, direction: Direction) -> tuple[joints.JointType, bool]:
    """The type of a <joint>, and whether a motor drives it; `direction` is that of an <axis> in the joint's frame."""
    kind = element.text("type")
    if kind == "fixed":
        return joints.Fixed(), False
    axes = [element.child("axis"), element.child("axis2") if kind in TWO_AXES else None]
    told = [_properties(axis, kind) for axis in axes if axis is not None]
    inertia, gear = (
        0.0 if part is None else part.number(None)
        for part in (element.child("drake:rotor_inertia"), element.child("drake:gear_ratio"))
    )
    if inertia:
        told[:1] = [{**each, "armature": inertia * (gear or 1.0) ** 2} for each in told[:1]]
    efforts = [one.pop("effort") for one in told]
    driven = any(efforts) or not told
    if kind == "ball":
        losses = {name: told[0].get(name, 0.0) for name in ("damping", "friction")} if told else {}
        return joints.Spherical(**losses), False
    directions = [direction(axis) if axis is not None else (0.0, 0.0, 1.0) for axis in axes]
    if kind in ONE_AXIS:
        return ONE_AXIS[kind](directions[0], **(told[0] if told else {})), driven
    if kind == "screw":
        return joints.Helical(directions[0], _lead(element), **(told[0] if told else {})), driven
    if kind not in TWO_AXES:
        element.fail(
            f"has an unknown type {kind!r}; known are fixed, ball, screw, gearbox, {', '.join((*ONE_AXIS, *TWO_AXES))}"
        )
    if None in axes:
        element.fail(f"has no <axis{2 if axes[0] is not None else ''}>")
    one, two = told
    none = {"limits": (-math.inf, math.inf), "velocity_limit": math.inf, "effort_limit": math.inf}
    both: dict[str, Any] = {
        name: (one.get(name, none.get(name, 0.0)), two.get(name, none.get(name, 0.0))) for name in {**one, **two}
    }
    if "limits" in both:
        both["limits"] = tuple(zip(*both["limits"], strict=True))
    return joints.Universal(*directions, **both), driven


def _properties(axis: Element, kind: str) -> dict[str, Any]:
    """What a joint type takes of an axis, and its effort."""
    found: dict[str, Any] = {"effort": -1.0}
    limit, dynamics = axis.child("limit"), axis.child("dynamics")
    if limit is not None:
        low, high, effort, speed = (
            default if part is None else part.number(None, default, finite=False)
            for part, default in ((limit.child(name), d) for name, d in
                                  (("lower", -NO_LIMIT), ("upper", NO_LIMIT), ("effort", -1.0), ("velocity", -1.0)))
        )  # fmt: skip
        if low > high:
            limit.fail(f"has its lower limit above the upper: {low:g} > {high:g}")
        found["effort"] = effort
        if effort > 0:
            found["effort_limit"] = effort
        if speed > 0:  # zero is what exporters write for "not set"
            found["velocity_limit"] = speed
        low, high = (math.copysign(math.inf, x) if abs(x) >= NO_LIMIT else x for x in (low, high))
        if kind not in ("continuous", "ball") and (math.isfinite(low) or math.isfinite(high)):
            found["limits"] = (low, high)
    if dynamics is not None:
        for name, ours in (("damping", "damping"), ("friction", "friction"), ("spring_stiffness", "stiffness")):
            part = dynamics.child(name)
            value = 0.0 if part is None else part.number(None, 0.0)
            if part is not None and value < 0:
                part.fail(f"is negative: {value:g}")
            if value:
                found[ours] = value
        rest = dynamics.child("spring_reference")
        if rest is not None and "stiffness" in found and (value := rest.number(None, 0.0)):
            found["rest"] = value
    if kind == "ball" and "stiffness" in found:
        axis.note("the spring of a ball joint is not read")
    return found


def _lead(joint: Element) -> float:
    """Metres per radian of a screw: right-handed screw_thread_pitch [m/rev], or left-handed thread_pitch [rad/m]."""
    pitch, old = joint.child("screw_thread_pitch"), joint.child("thread_pitch")
    if pitch is not None:
        return pitch.number(None) / (2.0 * math.pi)
    if old is None:
        joint.fail("has no <screw_thread_pitch> [m/rev]")
    per_metre = old.number(None)
    if per_metre == 0.0:
        old.fail("is zero: the screw would have no end of a pitch")
    return -1.0 / per_metre


def axis_in_model(axis: Element) -> bool:
    """Whether an axis of a version up to 1.6 is told in the model's frame."""
    version, told = _version(axis), axis.child("use_parent_model_frame")
    if version >= (1, 7):
        if told is not None:
            told.note("use_parent_model_frame ended with version 1.6: not read")
        return False
    return version < (1, 5) if told is None else _truth(told)


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


# --- the mechanism ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Coupler:
    """Sum of coefficients times coordinates (joint, index) = offset."""

    element: Element
    name: str
    terms: dict[tuple[str, int], float]
    offset: float


def _built(scene: _Scene, root: Element, top: str, floating_base: bool | None) -> Builder:
    """The Builder of one model, or of all."""
    links = {key: link for key, link in scene.links.items() if _in(key, top)}
    if not links:
        scene.models[top].fail("has no links")
    body = {key: _short(key, top) for key in links}
    if "ground" in body.values():
        root.note("a link called 'ground' becomes body 'ground_link': 'ground' is the world")
        body = {
            key: free_name("ground_link", body.values()) if name == "ground" else name for key, name in body.items()
        }
    body["world"] = "ground"

    def place(element: Element, key: str) -> tuple[str, Transform]:
        link, pose = scene.on_body(key, element)
        if link not in body:
            element.fail(f"refers to {key!r}, which is no part of model {top!r}")
        return body[link], pose

    world = next(iter(root.all("world")), None)
    with at(root):
        builder = Builder(name=top or (world and world.get("name")) or "world")
    if (gravity := _gravity(world)) is not None:
        builder.gravity = gravity
    for key, link in links.items():
        with at(link):
            builder.add_body(body[key], _inertia(scene, key, link))

    still = {"world", *scene.static}
    ends = {joint.name: tuple(scene.body(end, joint.element) for end in joint.ends) for joint in scene.joints}
    moving = [
        joint for joint in scene.joints if not still.issuperset(ends[joint.name]) and _is_of(joint, ends, body, top)
    ]
    hinges = [joint for joint in moving if not joint.is_gearbox]
    couplers = [*_mimics(scene, hinges, top), *_gearboxes(scene, moving, ends, top)]
    coupled = {name for coupler in couplers for name, _ in coupler.terms}
    models = {key: model for key, model in scene.models.items() if _in(key, top) or key == top}
    coupled |= {_short(f"{key}::{name}", top) for key, model in models.items() for name in drake.coupled(model)}
    followers = {next(iter(coupler.terms))[0] for coupler in couplers if coupler.element.tag.endswith("mimic")}
    taken = {_short(joint.name, top) for joint in hinges}

    home: dict[str, list[float]] = {}
    for key in links:
        if key in scene.static:
            at_pose = scene.pose(key, links[key])
            builder.add_joint(
                _new(f"{body[key]}_to_ground", taken), joints.Fixed(), "ground", body[key], at_parent=at_pose
            )
    for k, key in enumerate(_afloat(scene, links, [ends[joint.name] for joint in hinges])):
        pose, name = scene.pose(key, links[key]), _new(f"root_joint_{body[key]}" if k else "root_joint", taken)
        if k:
            links[key].note(
                f"{links[key]} is joined neither to the ground nor to what stands before it: it floats by itself"
            )
        if floating_base is False and k == 0:
            builder.add_joint(name, joints.Fixed(), "ground", body[key], at_parent=pose)
        else:
            builder.add_joint(name, joints.Free(), "ground", body[key])
            home[name] = [*Rotation(pose.rotation).quaternion.tolist(), *pose.translation.tolist()]
    for joint in hinges:
        name, element = _short(joint.name, top), joint.element
        with at(element):
            if element.tag == "drake:joint":
                kind, driven = _planar(element), False
                (parent, at_parent), (child, at_child) = (place(element, end) for end in joint.ends)
                home[name] = _on_plane(*(scene.pose(end, element) for end in joint.ends))
            else:
                kind, driven = joint_type(element, partial(_direction, scene, joint))
                parent, child = (place(element, end)[0] for end in joint.ends)
                # the frame of a joint is one frame: where it is in the parent follows from the pose of the file
                at_parent, at_child = (scene.between(end, joint.frame, element) for end in ends[joint.name])
            driven = driven and kind.nv > 0 and name not in followers
            keep = name in coupled or element.tag == "drake:joint"
            builder.add_joint(
                name, kind, parent, child, at_parent=at_parent, at_child=at_child, actuated=driven, tree=keep
            )
    for coupler in couplers:
        with at(coupler.element):
            builder.add_coupler(_new(coupler.name, taken), coupler.terms, offset=coupler.offset)
    bodies = set(body.values())
    for key, frame in scene.frames.items():
        if frame.element.tag == "frame" and _in(key, top):
            with at(frame.element):
                builder.add_frame(_new(_short(key, top), bodies), *place(frame.element, key))
    for key, model in models.items():

        def place_in(element: Element, name: str, model: str = key) -> tuple[str, Transform]:
            return place(element, name if name == "world" else f"{model}::{name}")

        def joint_in(element: Element, name: str, model: str = key) -> str:
            if f"{model}::{name}" not in ends:
                element.fail(f"names an unknown joint {name!r}{did_you_mean(name, taken)}")
            return _short(f"{model}::{name}", top)

        drake.add(builder, model, place_in, joint_in, taken)
    with at(root):
        builder.set_home(home)
    faults = _dress(scene, builder, {body[key]: (key, link) for key, link in links.items()})
    builder.warnings += [*(note for document in scene.documents for note in document.notes), *faults]
    return builder


def _is_of(joint: _Joint, ends: dict[str, tuple[str, ...]], body: dict[str, str], top: str) -> bool:
    """Whether a joint is the model's own, or one of the world that holds it."""
    if joint.scope:
        return _in(joint.name, top)
    read = [end in body for end in ends[joint.name]]
    if any(end in body for end in ends[joint.name] if end != "world") and not all(read):
        joint.element.note(f"{joint.element} leads to another model than {top!r}, which is not read: it holds nothing")
    return all(read)


def _short(key: str, top: str) -> str:
    return key.removeprefix(f"{top}::")


def _new(name: str, taken: set[str]) -> str:
    name = free_name(name, taken)
    taken.add(name)
    return name


def _gravity(world: Element | None) -> tuple[float, float, float] | None:
    if world is None:
        return None
    physics = world.all("physics")  # where versions before 1.6 have it
    told = world.child("gravity") or next((g for p in physics if (g := p.child("gravity")) is not None), None)
    if told is None:
        return None
    x, y, z = told.numbers(None, 3)
    return x, y, z


def _afloat(scene: _Scene, links: dict[str, Element], edges: list[tuple[str, ...]]) -> Iterator[str]:
    """A link of each part that no joint leads to from the ground: the model's canonical one, or its first."""
    near: dict[str, list[str]] = {key: [] for key in ("world", *links)}
    for parent, child in edges:
        if parent in near and child in near:
            near[parent].append(child)
            near[child].append(parent)
    reached: set[str] = set()

    def reach(*start: str) -> None:
        frontier = [key for key in start if key not in reached]
        while frontier:
            key = frontier.pop()
            if key not in reached:
                reached.add(key)
                frontier += near[key]

    reach("world", *(key for key in links if key in scene.static))
    canonical = [scene.body(key, model) for key, model in scene.models.items() if scene.frames[key].on]
    for key in (*(key for key in canonical if key in links), *links):
        if key not in reached:
            reach(key)
            yield key


def _direction(scene: _Scene, joint: _Joint, axis: Element) -> tuple[float, float, float]:
    """Of an axis, in the joint's frame."""

    def turned(xyz: Element) -> Rotation | None:
        told = xyz.get("expressed_in")
        frame = (
            joint.model if axis_in_model(axis) or told == "__model__" else joint.scope + told if told else joint.frame
        )
        if frame == joint.frame:
            return None
        return Rotation(scene.pose(joint.frame, axis).rotation.T @ scene.pose(frame, xyz).rotation)

    return axis_direction(axis, turned)


def _mimics(scene: _Scene, hinges: list[_Joint], top: str) -> Iterator[_Coupler]:
    """A joint that follows another: q = multiplier (q_leader - reference) + offset."""
    known = {joint.name for joint in hinges}
    for joint in hinges:
        for index, tag in enumerate(("axis", "axis2")):
            axis = joint.element.child(tag)
            mimic = (axis and axis.child("mimic")) or (joint.element.child("drake:mimic") if index == 0 else None)
            if mimic is None:
                continue
            leader = joint.scope + mimic.text("joint")
            if leader not in known:
                mimic.fail(f"names an unknown joint {mimic.text('joint')!r}{did_you_mean(leader, known)}")
            if mimic.tag == "mimic":
                multiplier, offset, reference = (
                    default if (part := mimic.child(name)) is None else part.number(None)
                    for name, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
                )
            else:
                multiplier, offset, reference = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0), 0.0
            follower = (_short(joint.name, top), index)
            led = (_short(leader, top), int(mimic.get("axis") == "axis2"))
            if follower == led:
                mimic.fail("names the joint itself")
            terms = {follower: 1.0, led: -multiplier}
            yield _Coupler(mimic, f"{follower[0]} mimics {led[0]}", terms, offset - multiplier * reference)


def _gearboxes(scene: _Scene, moving: list[_Joint], ends: dict[str, tuple[str, ...]], top: str) -> Iterator[_Coupler]:
    hinges = {
        (ends[j.name][0], ends[j.name][1]): (_short(j.name, top), _in_world(scene, j, j.element.child("axis")))
        for j in moving
        if j.element.get("type") in ("revolute", "continuous")
    }
    for gear in (joint for joint in moving if joint.is_gearbox):
        element = gear.element
        reference = scene.body(scene.named(element.needed("gearbox_reference_body"), gear.scope, gear.model), element)
        terms = gear_terms(element, reference, ends[gear.name], hinges, partial(_in_world, scene, gear))
        yield _Coupler(element, _short(gear.name, top), {(name, 0): factor for name, factor in terms.items()}, 0.0)


def gear_terms(
    element: Element, reference: str, ends: Sequence[str], hinges: Mapping[tuple[str, str], tuple[str, Vector]],
    in_world: Callable[[Element], Vector],
) -> dict[str, float]:  # fmt: skip
    """Coefficients of joints in theta2 + ratio theta1 = 0, the angles from the reference body to parent and child, about axis and axis2.

    `hinges` are the names and axes in the world of the revolute joints that lead from one body to another.
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
        if abs(along) < 0.999:  # files write 1.57 for a quarter turn
            about.fail(f"is not parallel to that of joint {name!r}, whose angle it couples")
        terms[name] = factor * sign * math.copysign(1.0, along)
    return terms


def _in_world(scene: _Scene, joint: _Joint, axis: Element | None) -> Vector:
    """Unit direction (3,) of an axis in the world."""
    direction = (0.0, 0.0, 1.0) if axis is None else _direction(scene, joint, axis)
    return np.asarray(scene.pose(joint.frame, joint.element).rotation @ joints.unit_axis(direction))


def _planar(element: Element) -> joints.JointType:
    """Drake's own joint, which moves the frame of its child in the plane of that of its parent."""
    if element.text("type") != "planar":
        element.fail(f"has an unknown type {element.text('type')!r}; known is planar")
    damping = element.child("drake:damping")
    return joints.Planar("z", damping=(0.0, 0.0, 0.0) if damping is None else damping.numbers(None, 3))


def _on_plane(parent: Transform, child: Transform) -> list[float]:
    """Coordinates of a planar joint in the pose of the file."""
    X = parent.inverse() @ child
    return [*X.translation[:2].tolist(), math.atan2(X.rotation[1, 0], X.rotation[0, 0])]


# --- links --------------------------------------------------------------------------------------------------------

WATER = 1000.0  # kg/m³, where no density is told


def _inertia(scene: _Scene, key: str, link: Element) -> Inertia:
    """Of a link, in its frame."""
    if (gravity := link.child("gravity")) is not None and not _truth(gravity):
        link.note("<gravity> is off for a link, which is not read: it falls like the others")
    inertial = link.child("inertial")
    if inertial is None:
        link.note(f"{link} has no <inertial>: taken are SDF's defaults, 1 kg and 1 kg m² about each axis")
        return Inertia(1.0, np.zeros(3), np.eye(3))
    mass = inertial.child("mass")
    m = 1.0 if mass is None else mass.number(None)
    if m < 0:
        (mass or inertial).fail(f"is negative: {m:g} kg")
    if inertial.get("auto") in ("true", "1"):
        whole = _of_collisions(scene, key, link, inertial)
        return whole if mass is None else Inertia(m, whole.com, whole.about_com * (m / whole.mass), check=False)
    tensor = inertial.child("inertia")
    xx, yy, zz, xy, xz, yz = (
        default if tensor is None or (part := tensor.child(name)) is None else part.number(None, default)
        for name, default in (("ixx", 1.0), ("iyy", 1.0), ("izz", 1.0), ("ixy", 0.0), ("ixz", 0.0), ("iyz", 0.0))
    )
    pose = inertial.child("pose")
    return placed_inertia(
        tensor or inertial, link, m, (xx, yy, zz, xy, xz, yz), Transform() if pose is None else pose_of(pose)
    )


def _of_collisions(scene: _Scene, key: str, link: Element, inertial: Element) -> Inertia:
    """The inertia of a link's collisions, as of solid bodies of their density."""
    usual = inertial.child("density")
    whole = Inertia.zero()
    for collision in link.all("collision"):
        told = next(iter(collision.all("density")), usual)
        solid = _solid(collision, WATER if told is None else told.number(None))
        whole += solid.transformed(_pose_in_link(scene, key, collision))
    if whole.mass <= 0.0:
        inertial.fail("is to be found by itself (auto), and no <collision> has a volume")
    return whole


def _solid(collision: Element, density: float) -> Inertia:
    shape = _only_shape(collision)
    if shape.tag in ("plane", "empty"):
        return Inertia.zero()
    if shape.tag == "box":
        size = _positive(shape, "size", 3)
        return Inertia.box(density * math.prod(size), size)
    if shape.tag == "ellipsoid":
        a, b, c = _positive(shape, "radii", 3)
        m = density * 4 / 3 * math.pi * a * b * c
        return Inertia(m, np.zeros(3), m / 5 * np.diag([b * b + c * c, c * c + a * a, a * a + b * b]))
    if shape.tag not in ("sphere", "cylinder", "capsule"):
        known = "box, capsule, cylinder, ellipsoid and sphere"
        shape.fail(f"has no inertia that is known here, {known} have: write <mass> and <inertia>")
    r = _positive(shape, "radius")[0]
    if shape.tag == "sphere":
        return Inertia.sphere(density * 4 / 3 * math.pi * r**3, r)
    l = _positive(shape, "length")[0]
    whole = Inertia.cylinder(density * math.pi * r**2 * l, r, l)
    if shape.tag == "capsule":  # halves of a ball, whose centres of mass are 3/8 r away from their flat faces
        m = density * 2 / 3 * math.pi * r**3
        moments = np.diag([83 / 320, 83 / 320, 2 / 5]) * m * r * r
        for z in (l / 2 + 3 / 8 * r, -l / 2 - 3 / 8 * r):
            whole += Inertia(m, (0.0, 0.0, z), moments)
    return whole


def _positive(shape: Element, tag: str, n: int = 1) -> tuple[float, ...]:
    part = next(iter(shape.all(tag)), None) or shape.fail(f"has no <{tag}>")
    numbers = part.numbers(None, n)
    if min(numbers) <= 0.0:
        part.fail(f"must be positive; got {part.words()[:60]!r}")
    return numbers


def _only_shape(owner: Element) -> Element:
    shapes = [shape for geometry in owner.all("geometry") for shape in geometry.children]
    if len(shapes) != 1:
        owner.fail(f"wants one shape in a <geometry>, and has {len(shapes)}")
    return shapes[0]


def _pose_in_link(scene: _Scene, key: str, owner: Element) -> Transform:
    """Pose of a collision or visual in its link."""
    pose = next(iter(owner.all("pose")), None)
    if pose is None:
        return Transform()
    told = pose.get("relative_to") or pose.get("frame")
    if not told:
        return pose_of(pose)
    scope = key.rpartition("::")[0]
    frame = scope if told == "__model__" else f"{scope}::{told}"
    return scene.between(key, frame, pose) @ pose_of(pose)


def _dress(scene: _Scene, builder: Builder, links: dict[str, tuple[str, Element]]) -> list[str]:
    """Give bodies their visuals; a line for each that was left out."""
    faults = []
    for body, (key, link) in links.items():
        for visual in link.all("visual"):
            try:
                with at(visual):
                    shape = _only_shape(visual)
                    if shape.tag in ("plane", "empty"):
                        continue
                    color = _color(visual)
                    builder.add_visual(body, _shape(scene, shape), _pose_in_link(scene, key, visual), color=color)
            except ModelError as error:
                faults.append(f"{error}; it is not shown")
    return faults


def _shape(scene: _Scene, shape: Element) -> Shape:
    if shape.tag == "box":
        x, y, z = _positive(shape, "size", 3)
        return Box((x, y, z))
    if shape.tag == "cylinder":
        return Cylinder(*(_positive(shape, tag)[0] for tag in ("radius", "length")))
    if shape.tag == "sphere":
        return Sphere(*_positive(shape, "radius"))
    if shape.tag != "mesh":
        shape.fail("is an unknown shape; known are box, cylinder, sphere, mesh")
    uri = next(iter(shape.all("uri")), None) or shape.fail("has no <uri>")
    scale = next(iter(shape.all("scale")), None)
    x, y, z = (1.0, 1.0, 1.0) if scale is None else scale.numbers(None, 3)
    return Mesh(uri.words(), (x, y, z), scene.folders[shape.source], scene.package_dirs)


def _color(visual: Element) -> tuple[float, ...] | None:
    told = [color for material in visual.all("material") for color in material.all("diffuse", "ambient")]
    if not told:
        return None
    words = told[0].words().split(None, 4)
    numbers = told[0].numbers(None, 3 if len(words) == 3 else 4)
    if min(numbers) < 0 or max(numbers) > 1:
        told[0].fail(f"wants numbers from 0 to 1, not {told[0].words()[:60]!r}")
    return numbers
