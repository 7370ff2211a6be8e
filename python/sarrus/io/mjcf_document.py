"""MJCF as a document: includes, classes of defaults, settings that hold for all of it, and how poses are written in it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from .._files import check_regular, is_within, read_bytes
from ..errors import did_you_mean
from ..spatial import Rotation, Transform
from .document import LARGEST, MOST_PARTS, Element, at, parse
from .formats import DRIVES, MJCF, ORIENTATION, WAY_OUT
from .mujoco import FLAGS
from .outline import turn_from_z

DEEPEST = 500  # what MuJoCo reads; a chain of bodies is nested as deep as it is long
ELSEWHERE = "load(..., package_dirs=[...]) names other folders that files may lie in"
# numbers of which a file may give the first few: the others are those of the default
PARTIAL = ("size", "stiffness", "damping", "polycoef", "gear", "gainprm")


def include(root: Element, beside: str | None, package_dirs: Sequence[str] = ()) -> None:
    """Put in place of each <include> what is in its file."""
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
                include.fail("needs a folder to look in: sarrus.load reads files")
            folder, name = os.path.abspath(beside), include.text("file")
            path = os.path.normpath(os.path.join(folder, name))
            if "\0" in path or not is_within(path, [folder, *package_dirs]):
                include.fail(f"leaves the folder of the main file: {name!r}: {ELSEWHERE}")
            if (key := _path_key(path)) in first:
                include.fail(f"names {name!r} again: {first[key]} has it, and a file may be there once")
            first[key] = f"{include.source}:{include.line}"
            try:
                check_regular(path, LARGEST)
                text = read_bytes(path, LARGEST)
            except OSError as error:
                include.fail(f"cannot read {name!r}: {error.strerror}")
            if (total := total + len(text)) > LARGEST:
                include.fail(f"makes the model larger than the {LARGEST} bytes that are read")
            part = parse(text, os.path.relpath(path, folder), root.known, deepest=DEEPEST, notes=root.notes)
            for child in part.children:
                child.owner = element
            element.children[k : k + 1] = part.children
        pending += element.children


def _path_key(path: str) -> str:
    return os.path.normcase(os.path.realpath(path))


Attributes = dict[str, str]


def _merged(attributes: Mapping[str, str], inherited: Mapping[str, str]) -> Attributes:
    """Attributes with those of a class below them."""
    if any(name in attributes for name in ORIENTATION):  # there are five ways to tell one
        inherited = {name: value for name, value in inherited.items() if name not in ORIENTATION}
    merged = {**inherited, **attributes}
    for name in PARTIAL:
        if name in attributes and name in inherited:
            words = attributes[name].split(None, 10)
            merged[name] = " ".join(words + inherited[name].split(None, 10)[len(words) : 10])
    return merged


def _classes(sections: Sequence[Element]) -> dict[str, dict[str, Attributes]]:
    """Of each class, the attributes that it has for a tag; all actuators share one set."""
    classes: dict[str, dict[str, Attributes]] = {"main": {}}
    pending = [(section, "") for section in reversed(sections)]
    while pending:
        section, parent = pending.pop()
        section.look_for_unknown()
        name = section.get("class") or ("" if parent else "main")
        if not parent and name != "main":
            section.fail(f"is the outermost, whose class is 'main', and calls it {name!r}")
        if not name or (parent and name in classes):
            section.fail("needs a class of its own" + (f": there is another {name!r}" if name else ""))
        attributes = classes[name] = {**classes[parent or name]}
        for child in section.children:
            if child.tag == "default" or child.tag not in child.known:
                continue
            child.look_for_unknown()
            for attribute in PARTIAL:
                child.several(attribute, 10, ())
            tag = "actuator" if child.tag in DRIVES else child.tag
            known = {name: value for name, value in child.attributes.items() if name in child.known[child.tag][0]}
            attributes[tag] = _merged(known, attributes.get(tag, {}))
        pending += [(child, name) for child in reversed(section.all("default"))]
    return classes


class Document:
    """What holds for a whole document: settings, classes, assets."""

    def __init__(self, root: Element, beside: str, package_dirs: tuple[str, ...] = ()) -> None:
        root.look_for_unknown()
        self.package_dirs = package_dirs
        self.root, self.notes, self.beside = root, root.notes, beside
        self.compiler, self.option, self.flag = (self.settings(tag) for tag in ("compiler", "option", "flag"))
        self.angle = math.radians(1.0) if self.compiler.word("angle", "degree radian", "degree") == "degree" else 1.0
        self.autolimits = self.compiler.truth("autolimits", True)
        self.eulerseq = self.compiler.get("eulerseq") or "xyz"
        if len(self.eulerseq) != 3 or set(self.eulerseq.lower()) - set("xyz"):
            self.compiler.fail(f"wants three letters of xyzXYZ in eulerseq, not {self.eulerseq[:60]!r}")
        switches = (*FLAGS, "passive")
        self.off = {x for x in switches if self.flag.word(x, "enable disable", "enable") == "disable"}
        self.off |= {"equality", "frictionloss", "limit"} if "constraint" in self.off else set()
        self.off |= {"spring", "damper"} if "passive" in self.off else set()
        for name in sorted(self.off):
            self.flag.note(f"{name} is switched off, and left out")
        for element in (self.compiler, self.option, self.flag, *root.all("deformable")):
            MJCF.remark(element)
        self.classes = _classes(root.all("default"))
        self.meshes, self.materials = self.assets("mesh"), self.assets("material")
        self.replicate()

    def replicate(self) -> None:
        """Put in place of each <replicate> frames, one step behind the other, with what is in it and a number behind its names."""
        order, made = [self.root], 0
        for element in order:
            order += element.children
        for owner in reversed(order):  # what is inside of another one comes first
            for k, element in reversed([*enumerate(owner.children)]):
                if element.tag != "replicate":
                    continue
                element.look_for_unknown()
                count = element.number("count")
                if count < 1.0 or count != int(count):
                    element.fail(f"wants a count of one or more, not {count:g}")
                inside = [replace(element, tag="frame", attributes={})]
                for part in inside:
                    inside += part.children
                made += int(count) * len(inside)
                if made > MOST_PARTS:
                    element.fail(f"makes too many elements: a model may have {MOST_PARTS}")
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
        """All elements of the document that set something, in one: later ones win."""
        owners = self.root.all("option") if tag == "flag" else [self.root]
        elements = [element for owner in owners for element in owner.all(tag)]
        for element in elements:
            element.look_for_unknown()
        attributes = {name: value for element in elements for name, value in element.attributes.items()}
        return replace(elements[-1] if elements else self.root, tag=tag, attributes=attributes)

    def assets(self, tag: str) -> dict[str, Element]:
        assets = {}
        for owner in self.root.all("asset"):
            owner.look_for_unknown()
            for element in owner.all(tag):
                element.look_for_unknown()
                stem = os.path.splitext(os.path.basename((element.get("file") or "").replace("\\", "/")))[0]
                assets[element.get("name") or stem] = self.classed(element)
        return assets

    def grouped(self, section: str) -> list[Element]:
        """What is in the sections of that name, with the attributes of classes."""
        elements = []
        for owner in self.root.all(section):
            owner.look_for_unknown()
            for element in owner.children:
                if element.tag in owner.known[section][1]:
                    if element.tag in owner.known:
                        element.look_for_unknown()
                    elements.append(self.classed(element, tag=section))
        return elements

    def classed(self, element: Element, childclass: str = "", tag: str = "") -> Element:
        """The element with the attributes of its class, or else of the nearest childclass around it."""
        name = element.get("class") or childclass or "main"
        if name not in self.classes:
            element.fail(f"has an unknown class {name!r}{did_you_mean(name, self.classes)}")
        return replace(element, attributes=_merged(element.attributes, self.classes[name].get(tag or element.tag, {})))

    def pose(self, element: Element) -> Transform:
        return Transform(self.orientation(element), element.numbers("pos", 3, (0.0, 0.0, 0.0)))

    def orientation(self, element: Element) -> Rotation:
        ways = [name for name in ORIENTATION if name in element.attributes]
        if not ways:
            return Rotation()
        if len(ways) > 1:
            element.fail(f"tells its orientation twice: by {ways[0]} and by {ways[1]}")
        x = element.numbers(ways[0], {"quat": 4, "axisangle": 4, "xyaxes": 6}.get(ways[0], 3))
        if ways[0] == "euler":
            return self.turned(x)
        with at(element):
            if ways[0] == "quat":
                return Rotation.from_quaternion((*x[1:], x[0]))
            if ways[0] == "axisangle":
                return Rotation.from_axis_angle(x[:3], x[3] * self.angle)
            if ways[0] == "zaxis":
                return turn_from_z(x)
            first, y = np.array(x[:3]), np.array(x[3:])
            first = first / (np.linalg.norm(first) or 1.0)
            y = y - first * (first @ y)
            y = y / (np.linalg.norm(y) or 1.0)
            return Rotation(np.stack([first, y, np.cross(first, y)], axis=1))

    def turned(self, angles: Sequence[float]) -> Rotation:
        R = Rotation()
        for letter, angle in zip(self.eulerseq, angles, strict=True):
            turn = Rotation.from_axis_angle(letter.lower(), angle * self.angle)
            R = R @ turn if letter.islower() else turn @ R  # about its own axis, or a fixed one
        return R

    def between(self, element: Element) -> tuple[Transform, float]:
        """Frame in the middle between two points, z along them, and half their distance."""
        ends = np.reshape(element.numbers("fromto", 6), (2, 3))
        along = ends[0] - ends[1]
        length = float(np.linalg.norm(along))
        if not 0.0 < length < math.inf:
            element.fail("has the same point twice in fromto, or points too far away")
        return Transform(turn_from_z(along), ends.mean(axis=0)), length / 2.0

    def mesh_file(self, mesh: Element) -> str:
        """As it would be found from the file's folder."""
        made = next((name for name in ("vertex", "builtin") if name in mesh.attributes), None)
        if made and "file" not in mesh.attributes:
            mesh.fail(f"is told by {made} and has no file, which is not read: {WAY_OUT}")
        return os.path.join(self.compiler.get("meshdir") or self.compiler.get("assetdir") or "", mesh.text("file"))

    def named(self, tags: Sequence[str]) -> dict[str, Element]:
        """Elements in the world by their names, each there once."""
        named: dict[str, Element] = {}
        pending = list(self.root.all("worldbody"))
        while pending:
            element = pending.pop()
            pending += element.children
            name = element.get("name")
            if name and element.tag in tags and named.setdefault(name, element) is not element:
                element.fail(f"has the name of another: {named[name].source}:{named[name].line}")
        return named


def _copied(element: Element, suffix: str) -> Element:
    """With all that is in it, and the suffix behind its names."""
    copy = replace(element, attributes=dict(element.attributes))
    pending = [copy]
    while pending:
        part = pending.pop()
        if "name" in part.attributes:
            part.attributes["name"] += suffix
        part.children = [replace(child, attributes=dict(child.attributes), owner=part) for child in part.children]
        pending += part.children
    return copy


def referred(element: Element, attribute: str, known: Mapping[str, object]) -> str:
    name = element.text(attribute)
    if name not in known:
        element.fail(f"names the {attribute} {name!r}, which is not there{did_you_mean(name, known)}")
    return name
