"""Readers of loops in URDF. URDF itself has no loops; other tools describe them by additional tags or by files next to the URDF.

=====================================  ==============================================================================
`<loop>`                               URDF+ (Chignoli et al. 2024, arXiv 2411.19753): a joint between two frames
`<coupling>`                           URDF+: ratio times the sum of q on the path to the predecessor = the sum of q on the path to the successor.
                                       Both paths begin at the last common ancestor of the two links
`<loop_joint>` with links              Isaac Sim; the first two child elements are the links, whatever their tags are
`<loop_joint>` with parent and child   an exporter of Fusion; its axis is expressed in the parent's frame
`<constraint>`                         as proposed for ROS (urdfdom 264)
`<joint>` in `<gazebo>`                an SDF joint; its frame in the parent follows from the poses of links at q = 0
a sidecar (`loops=`)                   of Gepetto's example-parallel-robots or of sw2robot (loop_closures.yaml), as YAML or as a dict: see
                                       :class:`Sidecar`
frames closing_NAME_1, closing_NAME_2  of onshape-to-robot, in SDF and MJCF too: see :func:`close_frames`
=====================================  ==============================================================================

All joints of the table become loop joints, so that q has the coordinates of the URDF's `<joint>` elements only.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .._arrays import Array
from ..building.builder import Builder
from ..description import joints
from ..description.joints import axis_frame
from ..errors import ModelError, did_you_mean
from ..spatial import Rotation, Transform
from .document import Coupling, Element, Notes, at, free_name
from .formats import SDF
from .sdf_document import axis_direction, axis_in_model, gear_terms, joint_type, pose_of

TAGS = ("loop", "loop_joint", "constraint")


@dataclass(frozen=True)
class Closure:
    """Loop joint: its element (None if it is from a sidecar) and its two ends (link, pose in the link). The link "world" is the ground."""

    element: Element | None
    name: str
    joint: joints.JointType
    parent: tuple[str, Transform]
    child: tuple[str, Transform]


JointOf = Callable[[Element, str, tuple[float, ...]], joints.JointType]  # (element, type, direction) -> joint type
Loops = Mapping[str, Any] | str | os.PathLike[str] | None  # a sidecar


def _link(element: Element, name: str | None, links: Mapping[str, object]) -> str:
    """Return the name of a link in an element; raise ModelError if there is no such link."""
    if not name:
        element.fail("names no link")
    if name not in links:
        element.fail(f"names an unknown link {name[:60]!r}{did_you_mean(name, links)}")
    return name


def closures(
    robot: Element, links: Mapping[str, object], joint: JointOf, origin: Callable[[Element | None], Transform],
    at_zero: Mapping[str, Transform],
) -> Iterator[Closure]:  # fmt: skip
    """Yield the loop joints of the document; `at_zero` are the links' poses at q = 0."""
    for element in robot.all(*TAGS):
        element.note_unread()
        name, kind = element.text("name"), element.text("type").lower()
        kind = kind.removesuffix("_joint")  # forks of urdfdom append "_joint" to the type
        kind = "ball" if kind == "spherical" else kind
        with at(element):
            ends: Sequence[tuple[Element, Element | None]]
            by_parent = element.tag == "constraint" or (element.tag != "loop" and bool(element.all("parent")))
            if element.tag == "loop":
                ends = [(end := element.needed(tag), end.child("origin")) for tag in ("predecessor", "successor")]
            elif by_parent:
                ends = [(element.needed(tag), element.child(f"{tag}_origin")) for tag in ("parent", "child")]
            else:
                ends = [(child, child) for child in element.children if child.tag in ("link1", "link2")][:2]
                if len(ends) < 2:
                    element.fail(f"has {len(ends)} of the links <link1> and <link2>; expected both")
            (a, X_A), (b, X_B) = ((_link(end, end.get("link"), links), origin(place)) for end, place in ends)
            if not by_parent:
                made = joint(element, kind, _axis(element.child("axis")))
            else:
                along = _axis(element.child("parent_axis") or element.child("axis"))
                other = element.child("child_axis")
                axis = element.child("axis")
                if axis is not None and axis.get("frame") not in (None, "parent"):
                    axis.fail(f"has frame {axis.get('frame')!r}; expected 'parent'")
                # if the child's axis is missing, both axes coincide at q = 0
                in_child = _axis(other) if other is not None else (at_zero[b].rotation.T @ at_zero[a].rotation @ along)
                if kind not in ("fixed", "ball", "floating"):
                    X_A, X_B = (Transform(axis_frame(d), X.translation) for X, d in ((X_A, along), (X_B, in_child)))
                elif other is None and element.tag == "loop_joint":  # without axes: the frames are parallel at q = 0
                    X_B = Transform(at_zero[b].rotation.T @ at_zero[a].rotation @ X_A.rotation, X_B.translation)
                made = joint(element, kind, (0.0, 0.0, 1.0))
        yield Closure(element, name, made, (a, X_A), (b, X_B))


def _axis(element: Element | None) -> tuple[float, ...]:
    if element is None:
        return (1.0, 0.0, 0.0)
    direction = element.numbers("xyz", 3)
    if not any(direction):
        element.fail("is zero; expected the direction of a moving joint")
    return direction


def loop_couplings(
    robot: Element, links: Mapping[str, object], ends: Mapping[str, tuple[str, str]]
) -> Iterator[Coupling]:
    """Yield URDF+'s couplings: `ratio` times the coordinates on the path to the predecessor, minus those on the path to the successor, is zero.

    Joints on both paths are omitted. `ends` maps a joint to its (parent link, child link).
    """
    above: dict[str, tuple[str, str]] = {}  # link -> (joint whose child it is, parent link of the joint)
    for name, (parent, child) in ends.items():
        above.setdefault(child, (name, parent))

    def path(to: str) -> dict[str, None]:
        joints_above: dict[str, None] = {}
        while to in above and above[to][0] not in joints_above:
            name, to = above[to]
            joints_above[name] = None
        return joints_above

    for element in robot.all("coupling"):
        element.note_unread()
        element_of_ratio = element.child("ratio")
        ratio = 1.0 if element_of_ratio is None else element_of_ratio.number("value")
        ends_of = map(element.needed, ("predecessor", "successor"))
        left, right = (path(_link(end, end.get("link"), links)) for end in ends_of)
        terms = {name: ratio for name in left if name not in right} | {name: -1.0 for name in right if name not in left}
        yield Coupling(element, element.text("name"), terms)


def gazebo_joints(
    robot: Element, links: Mapping[str, object], at_zero: Mapping[str, Transform],
    hinges: Mapping[tuple[str, str], tuple[str, Array]],
) -> Iterator[Closure | Coupling]:  # fmt: skip
    """Yield the loop joints and gears that SDF joints in <gazebo> describe.

    In the file, the pose of such a joint is relative to its child link. `at_zero` are the poses of the links in the world at q = 0, by which it is
    converted to frames on the parent and on the child.

    `hinges` maps (parent, child) of each revolute joint to its name and its axis (3,) in world axes.
    """
    for block in robot.all("gazebo"):
        for element in block.all("joint"):
            _read_as_sdf(element)
            element.note_unread()
            with at(element):
                yield _gazebo_joint(element, links, at_zero, hinges)


def _gazebo_joint(
    element: Element, links: Mapping[str, object], at_zero: Mapping[str, Transform],
    hinges: Mapping[tuple[str, str], tuple[str, Array]],
) -> Closure | Coupling:  # fmt: skip
    parent, child = (_link(end, end.words(), links) for end in map(element.needed, ("parent", "child")))

    def in_world(link: str | None, where: Element) -> Transform:
        """Return the pose of a link's frame, or of the model's."""
        return Transform() if link in (None, "", "__model__") else at_zero[_link(where, link, links)]

    X_W, pose = at_zero[child], element.child("pose")
    if pose is not None:
        frame_name = pose.get("relative_to") or pose.get("frame")
        X_W = (in_world(frame_name, pose) if frame_name else X_W) @ pose_of(pose)

    def turned(xyz: Element) -> Rotation | None:
        frame_name = xyz.get("expressed_in")
        if not frame_name and not (xyz.owner is not None and axis_in_model(xyz.owner)):
            return None
        return Rotation(X_W.rotation.T @ in_world(frame_name, xyz).rotation)

    name, direction = element.text("name"), partial(axis_direction, turned=turned)
    if element.text("type") == "gearbox":
        body = element.needed("gearbox_reference_body")
        reference = _link(body, body.words(), links)

        def about(axis: Element) -> Array:
            return np.asarray(X_W.rotation @ joints.unit_axis(direction(axis)))

        return Coupling(element, name, gear_terms(element, reference, (parent, child), hinges, about))
    made, _ = joint_type(element, direction)
    X_P, X_C = (at_zero[link].inverse() @ X_W for link in (parent, child))
    return Closure(element, name, made, (parent, X_P), (child, X_C))


def _read_as_sdf(element: Element) -> None:
    for part in (frontier := [element]):
        part.grammar = SDF.grammar
        frontier += part.children


class _Pairs(list[tuple[str, Any]]):
    """JSON object as a list of (key, value), so that duplicate keys are detected."""


# --- sidecars -------------------------------------------------------------------------------------------------------

# largest numbers of bytes, nested levels and entries of a sidecar; a robot needs hundreds of entries in three levels
LARGEST, DEEPEST, MOST = 10**6, 10, 20000
KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type", "closures", "independent", "dependent")
# keys by which a sidecar is recognised, with their contents
MARKS = {"closed_loop": "loops", "closures": "loops", "name_mot": "motors", "joint_type": "types of joints"}
PAIR = "UJOINT_"


@dataclass
class Sidecar:
    """Sidecar of a URDF: a mapping of these keys to lists, all of them optional.

    closed_loop : pairs of frames that coincide. A frame is given by the name of a link, or by the name of a joint, which denotes the frame of the
        joint's child
    type : one entry for each pair: "3d" (the origins coincide), "revolute" (the origins and the z-axes coincide), "universal" (the origins coincide,
        and the x-axis of the first frame is perpendicular to the y-axis of the second), "6d" or any other text (both frames coincide). In a dict, an
        entry may also be a joint type of sarrus
    name_mot : names of the actuated joints, which may be followers of other joints; all joints without an entry are passive
    joint_name, joint_type : names of joints of the URDF, and a new type for each: SPHERICAL, FIXED or, for example, UJOINT_XY. UJOINT_XY replaces the
        joint by two revolute joints `<name>_X` and `<name>_Y` about the x- and y-axes of the joint's frame
    closures : revolute loop joints, each a mapping with the keys link_a, link_b, point [m] and axis; point and axis are expressed in the root link's
    frame at zero coordinates
    independent : names of the actuated joints in files with `closures`
    dependent : names of passive joints; read only together with `independent`
    """

    source: str
    loops: list[tuple[str, str, joints.JointType]] = field(default_factory=list)
    hinges: list[tuple[str, str, list[float], list[float]]] = field(default_factory=list)
    motors: list[str] | None = None
    retyped: dict[str, str] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    def note(self, message: str) -> None:
        self.notes.add(self.source, message)

    def fail(self, message: str) -> NoReturn:
        raise ModelError(f"{self.source}: {message}")

    @classmethod
    def read(cls, loops: Mapping[str, Any] | str | os.PathLike[str] | None, beside: str) -> Sidecar:
        if loops is None:
            return cls("")
        if isinstance(loops, Mapping):
            return cls("loops")._filled(loops)
        if not isinstance(loops, str | os.PathLike):
            raise ModelError(f"loops: expected the name of a YAML file, or a dict; got {loops!r}")
        path = Path(os.fsdecode(loops))
        near = Path(beside) / path
        side = cls(path.name)
        if not path.is_file() and near.is_file():
            path = near
        elif near.is_file() and not near.samefile(path):
            side.note(f"read from the working directory; there is another {path.name!r} in the URDF's folder")
        return side._filled(side._yaml(path))

    def _yaml(self, path: Path) -> Mapping[str, Any]:
        if path.stat().st_size > LARGEST:
            self.fail(f"has {path.stat().st_size} bytes; expected at most {LARGEST} in a file of loops")
        document: object = None
        with suppress(ValueError, RecursionError):
            document = json.loads(path.read_bytes(), object_pairs_hook=_Pairs)
        if document is not None:  # `Mechanism.save` writes sidecars as JSON, which is a subset of YAML
            if isinstance(document, _Pairs):
                self._check_duplicates([key for key, _ in document])
            return self._mapping(dict(document) if isinstance(document, _Pairs) else document)
        try:
            import yaml
        except ImportError:
            cure = "pip install pyyaml, or give loops= as a dict"
            raise ModuleNotFoundError(f"{path}: reading loops from YAML needs PyYAML: {cure}", name="yaml") from None
        text, loader, depth = path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader), 0
        try:
            # deep nesting would overflow the interpreter's stack in compose() and load()
            for n, event in enumerate(yaml.parse(text, Loader=loader)):
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                if depth > DEEPEST or n > MOST:
                    self.fail(f"is not a file of loops: it has more than {DEEPEST} nested lists or {MOST} entries")
            if isinstance(root := yaml.compose(text, Loader=loader), yaml.MappingNode):
                self._check_duplicates([str(key.value) for key, _ in root.value])
            read: object = yaml.load(text, Loader=loader)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            self.fail(f"not well-formed YAML: {' '.join(str(error).split())[:200]}")
        return self._mapping(read)

    def _check_duplicates(self, keys: list[str]) -> None:
        if duplicates := [key for key, n in Counter(keys).items() if n > 1]:
            self.fail(f"has the key {duplicates[0][:60]!r} twice")

    def _mapping(self, read: object) -> Mapping[str, Any]:
        if not isinstance(read, Mapping):
            self.fail(f"expected a mapping with keys such as closed_loop; got a {type(read).__name__}")
        return read

    def _filled(self, document: Mapping[str, Any]) -> Sidecar:
        for key in document:
            if key not in KEYS:
                self.note(f"key {str(key)[:60]!r} is not read{did_you_mean(str(key), KEYS)}")
        lists: dict[str, Sequence[Any]] = {key: x for key in KEYS if (x := document.get(key)) is not None}
        for key, value in lists.items():
            if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
                self.fail(f"{key}: expected a list; got {_brief(value)}")
        lists = dict.fromkeys(("closed_loop", "joint_name", "joint_type", "closures"), ()) | lists
        lists.setdefault("type", ["6d"] * len(lists["closed_loop"]))
        for first, second in (("closed_loop", "type"), ("joint_name", "joint_type")):
            n, k = len(lists[first]), len(lists[second])
            if n != k:
                self.fail(f"{first} and {second}: expected the same number of entries; got {n} and {k}")
        for pair, kind in zip(lists["closed_loop"], lists["type"], strict=True):
            if isinstance(pair, str) or not isinstance(pair, Sequence) or [type(name) for name in pair] != [str, str]:
                self.fail(f"closed_loop: expected pairs of names; got {_brief(pair)}")
            self.loops.append((*pair, self._closing(kind)))
        for entry in lists["closures"]:
            hinge: Any = dict(entry) if isinstance(entry, _Pairs) else entry
            if not isinstance(hinge, Mapping) or not {"link_a", "link_b", "point", "axis"} <= set(hinge):
                self.fail(f"closures: expected mappings with link_a, link_b, point and axis; got {_brief(hinge)}")
            point, axis = (self._vector(hinge[key], key) for key in ("point", "axis"))
            if not any(axis):
                self.fail("closures: axis is zero; expected the direction of a hinge")
            link_a, link_b = (self._name(hinge[key], key) for key in ("link_a", "link_b"))
            self.hinges.append((link_a, link_b, point, axis))
        key = "name_mot" if "name_mot" in lists else "independent"
        if key in lists:
            self.motors = [self._name(name, key) for name in lists[key]]
        elif lists.get("dependent"):
            self.note("dependent is not read: list the actuated joints in independent")
        for name, kind in zip(lists["joint_name"], lists["joint_type"], strict=True):
            kind = self._name(kind, "joint_type").upper()
            axes = kind.removeprefix(PAIR)
            paired = kind != axes and len(set(axes) & set("XYZ")) == len(axes) == 2
            if kind not in ("SPHERICAL", "FIXED") and not paired:
                self.fail(f"joint_type {kind[:60]!r} is unknown; expected SPHERICAL, FIXED, UJOINT_XY and so on")
            self.retyped[self._name(name, "joint_name")] = kind
        return self

    def retype(self, made: dict[str, joints.JointType]) -> dict[str, str]:
        """Change the types of joints in `made`; return name -> axes of joints that become two revolute joints."""
        pairs = {}
        for name, kind in self.retyped.items():
            if name not in made:
                self.note(f"joint_name {name!r} is not a joint of the URDF{did_you_mean(name, made)}")
            elif kind.startswith(PAIR):
                pairs[name] = kind.removeprefix(PAIR)
            else:
                made[name] = joints.Spherical() if kind == "SPHERICAL" else joints.Fixed()
        return pairs

    def closures(
        self, links: Mapping[str, object], ends: Mapping[str, tuple[str, str]], at_zero: Mapping[str, Transform]
    ) -> Iterator[Closure]:
        """Yield the loop joints of the sidecar; `ends` are (parent, child) of joints, `at_zero` the links' poses at q = 0."""
        for a, b, point, axis in self.hinges:
            for name in (a, b):
                if name not in links:
                    self.fail(f"closures: {name[:60]!r} is not a link{did_you_mean(name, links)}")
            in_root = Transform(axis_frame(axis), point)
            left, right = (at_zero[name].inverse() @ in_root for name in (a, b))
            yield Closure(None, f"{a} {b}", joints.Revolute("z"), (a, left), (b, right))
        for pair in self.loops:
            sides = []
            for name in pair[:2]:
                if name not in links and name not in ends:
                    guess = did_you_mean(name, [*links, *ends])
                    self.fail(f"closed_loop: {name[:60]!r} is neither a link nor a joint{guess}")
                sides.append(name if name in links else ends[name][1])
            if sides[0] == sides[1]:
                self.fail(f"closed_loop: {list(pair[:2])} connects link {sides[0]!r} to itself")
            yield Closure(None, f"{pair[0]} {pair[1]}", pair[2], (sides[0], Transform()), (sides[1], Transform()))

    def _name(self, name: Any, key: str) -> str:
        return name if isinstance(name, str) else self.fail(f"{key}: expected names; got {_brief(name)}")

    def _vector(self, value: Any, key: str) -> list[float]:
        numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else []
        if len(numbers) != 3 or not all(isinstance(x, int | float) and np.isfinite(x) for x in numbers):
            self.fail(f"{key}: expected three numbers; got {_brief(value)}")
        return [float(x) for x in numbers]

    def _closing(self, kind: Any) -> joints.JointType:
        if isinstance(kind, joints.JointType):
            return kind
        kind = self._name(kind, "type").lower()
        named = {"3d": joints.Spherical(), "revolute": joints.Revolute("z"), "universal": joints.Universal("x", "y")}
        if kind not in (*named, "6d"):
            self.note(f"type {kind[:60]!r} is unknown and read as 6d; expected 3d, 6d, {', '.join(list(named)[1:])}")
        return named.get(kind, joints.Fixed())


def _brief(value: Any) -> str:
    kind = type(value).__name__
    return f"{kind} {value!r}"[:80] if isinstance(value, str | int | float) else f"a {kind}"


def unread_sidecar(beside: str, source: str) -> tuple[str, str] | None:
    """Return the name and the probable contents of a sidecar file in the URDF's folder that was not passed as `loops`, or None."""
    for name in ("robot.yaml", f"{Path(source).stem}.yaml", "loop_closures.yaml"):
        path = Path(beside) / name
        try:
            if beside and path.is_file() and path.stat().st_size < LARGEST:
                text = path.read_bytes()
                parts = [contents for key, contents in MARKS.items() if key.encode() in text]
                if parts:
                    return name, " and ".join(parts)
        except OSError:
            continue
    return None


def driven_joints(robot: Element) -> Iterable[tuple[Element, str]]:
    """Yield (element, joint) for each joint that a transmission or ros2_control drives."""
    for transmission in robot.all("transmission"):
        for joint in transmission.all("joint"):
            if name := joint.get("name"):
                yield joint, name
    for control in robot.all("ros2_control"):
        for joint in control.all("joint"):
            if (name := joint.get("name")) and joint.all("command_interface"):
                yield joint, name


# ---- frames with names of closing mates ------------------------------------------------------------------------------

CLOSING = {"ball": joints.Spherical(), "fixed": joints.Fixed(), "revolute": joints.Revolute("z")}


def close_frames(builder: Builder, source: str) -> None:
    """Add a loop joint for each pair of frames or links called closing_NAME_1 and closing_NAME_2, the names by which onshape-to-robot marks loops.

    The loop joint is a hinge about the z-axis of the frames. For the names closing_ball_NAME_1 and closing_fixed_NAME_1 it is a ball or a fixed
    joint. No loop joint is added if a joint or a constraint already connects the two bodies.
    """
    bodies = {name: name for name in builder._bodies} | {name: spec.body for name, spec in builder._frames.items()}
    specs: list[Any] = [*builder._joints.values(), *builder._constraints.values()]
    joined = {frozenset(spec.bodies) for spec in specs if spec.bodies}
    for first in [name for name in bodies if name.startswith("closing_") and name.endswith("_1")]:
        name, second = first[:-2], f"{first[:-2]}_2"
        pair = frozenset((bodies[first], bodies.get(second, bodies[first])))
        if second not in bodies or len(pair) < 2 or pair in joined:
            continue
        word = name.removeprefix("closing_").split("_")[0]
        made = CLOSING.get(word, CLOSING["revolute"])
        builder.add_joint(free_name(name, {*builder._joints, *builder._constraints}), made, first, second, loop=True)
        builder.warnings.append(
            f"{source}: frames '{first}' and '{second}' close a loop as {made}; "
            "rename them to closing_ball_… or closing_fixed_… for another joint"
        )
