"""XML documents whose elements store their file and line; the parser is the standard library's expat.

Each format has a grammar: the allowed attributes and children of each tag. All other entries raise a warning, so that no entry is ignored silently. A
document type declaration is an error, because it allows entities, which model files do not need and attacks use.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

import numpy as np

from .._arrays import ArrayLike
from ..building.builder import Builder
from ..description.contacts import NO_CONTACTS as NO_CONTACTS  # re-exported to the readers of formats
from ..description.joints import Fixed, Free
from ..errors import ModelError, did_you_mean
from ..shapes import ContactShape, Mesh
from ..spatial import Inertia, Rotation, Transform
from .mesh_files import at_hand

DEEPEST = 100  # largest depth of nested elements: models nest a dozen levels; thousands are an attack
# largest number of elements, that of a chain of 12,500 links with inertias, limits and visuals; parsing takes about 3 s and 0.2 GB
MOST = 300000
# largest number of elements with a tag in PARTS, each of which takes as long as ten other elements; this number takes 15 s and 0.5 GB
MOST_PARTS = 50000
PARTS = frozenset((
    "link", "body", "joint", "freejoint", "site", "frame", "loop", "loop_joint",
    "coupling", "constraint", "connect", "weld", "fixed", "spatial", "key",
))  # fmt: skip
# patterns of a tag, and of an attribute's value with the character after it; no value contains "<", so that matching takes linear time
TAG, VALUE = r"""<[\w:](?:[^<>"']|"[^"<]*"|'[^'<]*')*>""", r"""("[^"<]*"|'[^'<]*')([\w:]?)"""
LATE = r"(\s+)(<\?xml[^>]*\?>)"  # an XML declaration after blank space
# pattern of comments, and of sections that may contain "<!--". An unclosed comment or section extends to the end of the text, so that matching
# takes linear time
COMMENT = r"<!--(?P<inside>.*?)(?P<end>-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
# elements that contain text; formats other than SDF mostly use attributes
WITH_TEXT = ("sdf", "gazebo", "model", "transmission", "ros2_control")
# largest number of joints and constraints between two bodies: six rows fix the pair, and the cost of redundant rows grows with the cube of their
# number
MOST_BETWEEN_TWO = 100
ONE_FRICTION = "anisotropic friction is not read: the coefficient of the first direction is used for all"
LARGEST = 2**26  # bytes of a model, and of all that it includes
LONGEST_TAG = 2**23  # bytes between two "<": some MJCF files have all vertices of a mesh in one attribute
LONGEST = 10000  # characters of a list of numbers, each of which has at most a few dozen
LONGEST_NAME = 4096  # characters of names and file names


def check_pairs(pairs: Iterable[tuple[str, ...]], source: str) -> None:
    """Raise ModelError if too many joints and constraints connect the same two bodies.

    `pairs` contains the two bodies of each joint and constraint.
    """
    for pair, count in Counter(tuple(sorted(pair)) for pair in pairs).items():
        if pair and count > MOST_BETWEEN_TWO:
            most = f"expected at most {MOST_BETWEEN_TWO} (six rows already fix a pair of bodies)"
            raise ModelError(f"{source}: {count} joints and constraints connect '{pair[0]}' and '{pair[-1]}'; {most}")


Grammar = Mapping[str, tuple[frozenset[str], ...]]
NOTHING: tuple[frozenset[str], ...] = (frozenset(), frozenset())


class Notes:
    """Warnings of a document. Equal messages are merged into one, with the position of the first element and the number or the names of all
    elements.
    """

    def __init__(self) -> None:
        self.met: dict[str, tuple[str, list[str]]] = {}

    def add(self, place: str, message: str, name: str = "") -> None:
        self.met.setdefault(message, (place, []))[1].append(name)

    def __iter__(self) -> Iterator[str]:
        for message, (place, names) in self.met.items():
            listed = f" {', '.join(names[:6])}" if names[0] else ""
            n = len(names) - (6 if names[0] else 1)
            yield f"{place}: {message}{listed}" + (f" (and {n} more)" if n > 0 else "")


def add_shape(
    builder: Builder, body: str, element: Element, shape: ContactShape | Mesh, place: Transform, **options: Any
) -> str | None:
    """Add a collision shape to a body and return the name of the shape; `options` are its contact coefficients, and its group.

    The shape gets the element's name if no other shape has it. A mesh raises a warning, because it can touch planes only. Returns None for a mesh if
    its file is missing or trimesh is not installed.
    """
    if isinstance(shape, Mesh):
        if not at_hand(shape):
            cure = "its file or trimesh is missing: load(..., package_dirs=[...]), pip install trimesh"
            element.note(f"a mesh in <{element.tag}> is not read as a collision shape: {cure}")
            return None
        element.note(f"a mesh in <{element.tag}> touches planes only, by its convex hull")
    name = element.get("name") or None
    builder.add_shape(body, shape, place, name=None if name in builder._shapes else name, **options)
    return next(reversed(builder._shapes))


def only_shape(owner: Element) -> Element:
    """Return the shape in the <geometry> of an element; raise ModelError unless it has exactly one."""
    shapes = [shape for geometry in owner.all("geometry") for shape in geometry.children]
    if len(shapes) != 1:
        owner.fail(f"has {len(shapes)} shapes in <geometry>; expected one")
    return shapes[0]


def color_of(element: Element, attribute: str | None, count: int = 4) -> tuple[float, ...]:
    """Return the colour in an attribute, or in the element's text."""
    numbers = element.numbers(attribute, count)
    if min(numbers) < 0 or max(numbers) > 1:
        where, text = (f" in {attribute}", element.text(attribute)) if attribute else ("", element.words())
        element.fail(f"expects numbers from 0 to 1{where}, got {text[:60]!r}")
    return numbers


@dataclass(eq=False, slots=True)
class Element:
    """XML element with its file and line, and methods that read its entries; `notes` are the warnings of the document."""

    tag: str
    attributes: dict[str, str]
    source: str
    line: int | str  # line in the file; in USD the path of the prim
    owner: Element | None
    notes: Notes
    grammar: Grammar
    children: list[Element] = field(default_factory=list)
    content: str = ""  # text of the element, up to the length of a list of numbers

    def __str__(self) -> str:
        """Return a description of the element for messages, for example <mass> of <link name='arm'>."""
        name, above = self.attributes.get("name"), self.owner
        if name is not None:
            return f"<{self.tag} name={name[:200]!r}>"
        while above is not None and "name" not in above.attributes:
            above = above.owner
        return f"<{self.tag}>" if above is None or above.owner is None else f"<{self.tag}> of {above}"

    def fail(self, message: str) -> NoReturn:
        """Raise ModelError with the file, line and description of the element."""
        raise ModelError(f"{self.source}:{self.line}: {self} {message}")

    def note(self, message: str, name: str = "") -> None:
        """Add a warning. Equal messages with different `name` are merged into one warning that lists the names."""
        self.notes.add(f"{self.source}:{self.line}", message, name)

    def note_unread(self) -> None:
        """Warn about attributes and children that are not in the grammar."""
        attributes, children = self.grammar.get(self.tag, NOTHING)
        for attribute in self.attributes:
            if attribute not in attributes and not attribute.startswith("xmlns"):
                self.note(f"attribute {attribute!r} of <{self.tag}> is not read")
        for child in self.children:
            if child.tag not in children:
                child.note(f"<{child.tag}> in <{self.tag}> is not read")

    def all(self, *tags: str) -> list[Element]:
        """Return all children with one of the given tags."""
        return [child for child in self.children if child.tag in tags]

    def child(self, tag: str) -> Element | None:
        """Return the child with a tag, or None; raise ModelError if there are several."""
        children = [child for child in self.children if child.tag == tag]
        if len(children) > 1:
            children[1].fail(f"appears twice; first in line {children[0].line}")
        if not children:
            return None
        children[0].note_unread()
        return children[0]

    def child_number(self, tag: str, default: float) -> float:
        """Return the number in the text of a child; `default` if there is no such child."""
        child = self.child(tag)
        return default if child is None else child.number(None)

    def needed(self, tag: str) -> Element:
        """Return the child with a tag; raise ModelError if there is none."""
        return self.child(tag) or self.fail(f"has no <{tag}>")

    def get(self, attribute: str) -> str | None:
        """Return the string in an attribute, such as a name, or None if the attribute is missing; raise ModelError if the string is too long."""
        value = self.attributes.get(attribute)
        if value is not None and len(value) > LONGEST_NAME:
            self.fail(f"has {len(value)} characters in {attribute}; expected at most {LONGEST_NAME}")
        return value

    def text(self, attribute: str) -> str:
        """Return the string in an attribute, such as a name; raise ModelError if the attribute is missing."""
        return self.get(attribute) or self.fail(f"has no {attribute}")

    def _needed(self, attribute: str) -> str:
        return self.attributes.get(attribute) or self.fail(f"has no {attribute}")

    def words(self) -> str:
        """Return the text of the element without surrounding space; raise ModelError if it is empty."""
        return self.content.strip() or self.fail("is empty")

    def numbers(
        self, attribute: str | None, n: int, default: tuple[float, ...] | None = None, *, finite: bool = True
    ) -> tuple[float, ...]:
        """Return the n numbers in an attribute, or in the element's text if `attribute` is None; `default` if the attribute or the text is
        missing.
        """
        if default is not None and (attribute not in self.attributes if attribute else not self.content.strip()):
            return default
        text, where = (self._needed(attribute), f" in {attribute}") if attribute else (self.words(), "")
        words = text.split(None, n)  # at most n + 1 words, because a file may contain millions
        try:
            # float() accepts 1_000 and digits of other scripts, which other readers reject
            plain = len(words) == n and len(text) < LONGEST + 40 * n and "_" not in text and text.isascii()
            values = tuple(map(float, words)) if plain else ()
        except ValueError:
            values = ()
        if len(values) != n:
            self.fail(f"expects {'a number' if n == 1 else f'{n} numbers'}{where}, got {text[:60]!r}")
        if not all(map(math.isfinite, values)) and (finite or any(map(math.isnan, values))):
            self.fail(f"has a number{where} that is not finite: {text[:60]!r}")
        return values

    def number(self, attribute: str | None, default: float | None = None, *, finite: bool = True) -> float:
        """Return the number in an attribute, or in the element's text if `attribute` is None; `default` if the attribute or the text is missing."""
        return self.numbers(attribute, 1, None if default is None else (default,), finite=finite)[0]

    def several(self, attribute: str, most: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """Return the numbers in an attribute, between one and `most` of them; `default` if there is no such attribute."""
        if default is not None and attribute not in self.attributes:
            return default
        text = self._needed(attribute)
        if len(text) > LONGEST + 40 * most:
            self.fail(f"expects at most {most} numbers in {attribute}, got {text[:60]!r}")
        count = len(text.split())
        if not 0 < count <= most:
            self.fail(f"expects 1 to {most} numbers in {attribute}, got {count}")
        return self.numbers(attribute, count)

    def word(self, attribute: str, allowed: str, default: str) -> str:
        """Return the word in an attribute, one of the words in `allowed`; `default` if there is no such attribute."""
        word = self.attributes.get(attribute, default)
        if word not in allowed.split():
            self.fail(f"expects one of {', '.join(allowed.split())} in {attribute}, got {word[:60]!r}")
        return word

    def truth(self, attribute: str, default: bool) -> bool:
        """Return the value of an attribute that is "true" or "false"."""
        return self.word(attribute, "true false", "true" if default else "false") == "true"


def parse(
    text: str | bytes, source: str, grammar: Grammar, *, deepest: int = DEEPEST, notes: Notes | None = None
) -> Element:
    """Return the root element of a document.

    `source` is the name of the file in messages. `notes` collects the warnings; an included document passes the object of the document that includes
    it.
    """
    if not isinstance(text, str | bytes | bytearray | memoryview):
        raise TypeError(f"text: expected the document, as str or bytes; got {text!r}. sarrus.load reads files")
    text = _readable(text, source)
    parser, notes, count, parts = expat.ParserCreate(), Notes() if notes is None else notes, 0, 0
    stack: list[Element] = []
    root: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count, parts
        if any(len(name) > LONGEST_NAME for name in (tag, *attributes)):
            fault = f"a tag or the name of an attribute has more than {LONGEST_NAME} characters"
            raise ModelError(f"{source}:{parser.CurrentLineNumber}: {fault}")
        owner = stack[-1] if stack else None
        element = Element(tag, attributes, source, parser.CurrentLineNumber, owner, notes, grammar)
        (root if owner is None else owner.children).append(element)
        stack.append(element)
        count += 1
        parts += tag in PARTS
        if tag in WITH_TEXT:
            parser.CharacterDataHandler = written
        if len(stack) > deepest:
            element.fail(f"is nested deeper than {deepest} elements")
        if count > MOST:
            element.fail(f"exceeds the limit of {MOST} elements in a model file")
        if parts > MOST_PARTS:
            element.fail(
                f"exceeds the limit of {MOST_PARTS} bodies, joints, constraints, sites and frames in a model file"
            )
        if tag.startswith("xacro:"):
            element.fail("is a xacro macro; expand the file first: xacro FILE.xacro > FILE.urdf")

    def written(text: str) -> None:
        if not text.isspace() and len(stack[-1].content) < LONGEST:
            stack[-1].content += text[:LONGEST]

    def end(_: str) -> None:
        if stack.pop().tag in WITH_TEXT and not any(above.tag in WITH_TEXT for above in stack):
            parser.CharacterDataHandler = None

    def refuse(*_: object) -> NoReturn:
        fault = "a DOCTYPE, or an entity, is not allowed in a model file: remove it"
        raise ModelError(f"{source}:{parser.CurrentLineNumber}: {fault}")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler, parser.buffer_text = refuse, True
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        if (spaced := _changed(text, _with_spaces)) != text:
            return parse(spaced, source, grammar, deepest=deepest, notes=notes)
        raise ModelError(f"{source}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}") from None
    except ModelError:
        raise
    except (LookupError, ValueError) as error:  # unknown or wrong encodings
        raise ModelError(f"{source}: cannot decode: {error}") from None
    return root[0]


def _readable(text: Any, source: str) -> Any:
    """Return the text with faults corrected that other parsers accept; raise ModelError if the text or one of its tags is too long."""
    if isinstance(text, memoryview):
        text = text.tobytes()
    if len(text) > LARGEST:
        raise ModelError(f"{source}: has {len(text)} bytes; expected at most {LARGEST}")
    less, start = ("<", 0) if isinstance(text, str) else (b"<", 0)
    while len(text) - start > LONGEST_TAG:
        start = text.rfind(less, start, start + LONGEST_TAG) + 1
        if start == 0:
            raise ModelError(f"{source}: has a tag, a text or a comment of more than {LONGEST_TAG} bytes")
    return _changed(text, lambda document: _without_dashes(_with_declaration_first(document)))


def _changed(text: Any, change: Callable[[str], str]) -> Any:
    """Return the changed text. Bytes are changed as Latin-1, which has one character for each byte."""
    return change(text) if isinstance(text, str) else change(text.decode("latin-1")).encode("latin-1")


def _with_declaration_first(text: str) -> str:
    """Return the text with its XML declaration before blank lines, which XML forbids there and TinyXML accepts."""
    late = re.match(LATE, text)
    return late[2] + late[1] + text[late.end() :] if late else text


def _with_spaces(text: str) -> str:
    """Return the text with a space added between attributes that have none. TinyXML accepts such text. This function is called only after a parser
    error.
    """
    return re.sub(TAG, lambda at: re.sub(VALUE, lambda v: f"{v[1]} {v[2]}" if v[2] else v[0], at[0]), text)


def _without_dashes(text: str) -> str:
    """Return the text with the contents of comments that contain "--" replaced by blanks.

    XML forbids "--" in a comment, but TinyXML (ROS, Gazebo, MuJoCo) accepts it. Line numbers, CDATA sections and processing instructions do not
    change.
    """

    def cleaned(match: re.Match[str]) -> str:
        if match["end"] and ("--" in match["inside"] or match["inside"].endswith("-")):
            return match[0][:4] + re.sub(r"[^\r\n]", " ", match["inside"]) + match["end"]
        return match[0]

    return re.sub(COMMENT, cleaned, text, flags=re.DOTALL)


def root_tag(text: str | bytes) -> str:
    """Return the tag of a document's root; empty if it has none."""
    root = [""]

    def first(tag: str, _: object) -> NoReturn:
        root[0] = tag
        raise StopIteration

    parser = expat.ParserCreate()
    parser.StartElementHandler = first
    with suppress(StopIteration, expat.ExpatError, LookupError, ValueError, TypeError, ModelError):
        parser.Parse(_readable(text, ""), True)
    return root[0]


@contextmanager
def at(element: Element) -> Iterator[None]:
    """Context that adds the file and line of an element to a ModelError that has none."""
    try:
        yield
    except ModelError as error:
        if str(error).startswith(f"{element.source}:"):
            raise
        raise ModelError(f"{element.source}:{element.line}: {element}: {error}") from None


@contextmanager
def left_out(element: Element, consequence: str) -> Iterator[None]:
    """Context that catches a ModelError, and warns that the element is omitted."""
    try:
        with at(element):
            yield
    except ModelError as error:
        element.notes.add(*f"{error}; {consequence}".split(": ", 1))


def by_name(robot: Element, *tags: str) -> dict[str, Element]:
    """Return the children with one of the given tags, by name; raise ModelError if two of them have the same name."""
    named: dict[str, Element] = {}
    for element in robot.all(*tags):
        first = named.setdefault(element.text("name"), element)
        if first is not element:
            element.fail(f"has the same name as the element in line {first.line}")
    return named


def listed(names: list[str], most: int = 5) -> str:
    """Return the first `most` names, quoted and separated by commas."""
    return ", ".join(map(repr, names[:most])) + (" …" if len(names) > most else "")


def referred(element: Element, name: str, names: Collection[str], kind: str) -> str:
    """Return a name to which an element refers; raise ModelError if it is not in `names`.

    `kind`, such as "link", describes the names in the message.
    """
    if name not in names:
        element.fail(f"names an unknown {kind} {name!r}{did_you_mean(name, names)}")
    return name


class Connected:
    """Graph of bodies, with the set of bodies that are reachable from the bodies passed to :meth:`reach`."""

    def __init__(self, names: Iterable[str], edges: Iterable[Sequence[str]]) -> None:
        self.neighbours: dict[str, list[str]] = {name: [] for name in names}
        self.reached: set[str] = set()
        for parent, child in edges:
            if parent in self.neighbours and child in self.neighbours:
                self.neighbours[parent].append(child)
                self.neighbours[child].append(parent)

    def groups(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the first name of each connected group that is not reached, and reach the group."""
        for name in names:
            if name not in self.reached:
                self.reach(name)
                yield name

    def reach(self, *start: str) -> None:
        """Add these bodies, and all bodies connected to them, to `reached`."""
        frontier = list(start)
        while frontier:
            if (name := frontier.pop()) not in self.reached:
                self.reached.add(name)
                frontier += self.neighbours[name]


class Names(set[str]):
    """Set of names in use."""

    def new(self, name: str) -> str:
        """Return an unused name and add it to the set: the requested name, with underscores appended if it is in use."""
        name = free_name(name, self)
        self.add(name)
        return name


def free_name(name: str, used: Container[str]) -> str:
    """Return the name, with underscores appended until it is not in `used`."""
    while name in used:
        name += "_"
    return name


@dataclass(frozen=True)
class Coupling:
    """Coupling of joints: the sum of coefficient times coordinate = offset. A coordinate is a joint, or (joint, index)."""

    element: Element
    name: str
    terms: dict[Any, float]
    offset: float = 0.0


class Mimic(NamedTuple):
    """Coupling of two joints: q of `follower` = multiplier times q of `leader` + offset."""

    follower: str
    leader: str
    multiplier: float
    offset: float


def add_root(
    builder: Builder, name: str, body: str, pose: Transform, floats: bool, home: dict[str, list[float]]
) -> None:
    """Add a joint from the ground to a body. A body that floats gets a Free joint, and its pose in the file becomes the joint's entry in `home`."""
    builder.add_joint(name, Free() if floats else Fixed(), "ground", body, at_parent=None if floats else pose)
    if floats:
        home[name] = [*Rotation(pose.rotation).quaternion.tolist(), *pose.translation.tolist()]


def mimic_circles(mimics: Iterable[Mimic]) -> Iterator[tuple[str, str]]:
    """Yield (joint, warning) for each cycle of joints that mimic one another."""
    follows = {mimic.follower: mimic for mimic in mimics}
    done: set[str] = set()
    for name in follows:
        path: dict[str, None] = {}
        while name in follows and name not in done:
            done.add(name)
            path[name] = None
            name = follows[name].leader
        if name not in path:
            continue
        circle = list(path)[list(path).index(name) :]
        factor, rest = 1.0, 0.0  # the relation after one cycle: q = factor q + rest
        for joint in reversed(circle):
            _, _, multiplier, offset = follows[joint]
            factor, rest = multiplier * factor, multiplier * rest + offset
        if abs(factor - 1.0) > 1e-9:
            fact = "they cannot move"
        else:
            fact = "the last one is redundant" if abs(rest) < 1e-12 else "they contradict one another"
        yield name, f"joints mimic one another in a circle, {listed(circle)}: {fact}"


def placed_inertia(tensor: Element, link: Element, mass: float, moments: tuple[float, ...], pose: Transform) -> Inertia:
    """Return an inertia in the link frame from moments xx yy zz xy xz yz in the frame at `pose`; warn if it is not physical."""
    xx, yy, zz, xy, xz, yz = moments
    about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    # overflow is harmless here, because Builder rejects numbers that are not finite
    with np.errstate(over="ignore", invalid="ignore"):
        about_com = pose.rotation @ about_com @ pose.rotation.T
    return noted_inertia(mass, pose.translation, about_com, lambda text: tensor.note(f"{link}: {text}"))


def noted_inertia(mass: float, com: ArrayLike, about_com: ArrayLike, note: Callable[[str], None]) -> Inertia:
    """Return an inertia without checking it; call `note` with a warning if no body can have it."""
    with np.errstate(over="ignore", invalid="ignore"):
        inertia = Inertia(mass, com, about_com, check=False)
        principal = [] if inertia.is_physical() else inertia.principal_moments.tolist()
    # a radius of gyration below 1 µm is a rounding error of a point mass
    if max(map(abs, principal), default=0.0) > 1e-12 * abs(inertia.mass):
        values = ", ".join(f"{x:.3g}" for x in principal)
        note(f"no body of {inertia.mass:g} kg has principal moments of inertia {values} kg m²; the values are kept")
    return inertia
