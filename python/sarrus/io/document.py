"""XML documents whose elements know where they stand, read with the standard library's expat.

Each reader of a format brings its grammar: what may stand in an element. What does not is a warning, so that nothing is passed over
without a word. A document type declaration is refused, and with it entities: a model file needs none, an attack does.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat

import numpy as np

from .._arrays import ArrayLike
from ..building.builder import Builder
from ..description.contacts import NO_CONTACTS as NO_CONTACTS  # which the readers of formats take from here
from ..errors import ModelError, did_you_mean
from ..shapes import ContactShape, Mesh
from ..spatial import Inertia, Transform
from .mesh_files import at_hand

DEEPEST = 100  # a model nests a dozen levels; thousands are an attack
# elements: of a chain of 12,500 links with inertias, limits and looks; they take some 3 s and 0.2 GB
MOST = 300000
# of which so many are bodies, joints and the like, each of which takes as long as ten others: 15 s and 0.5 GB in all
MOST_PARTS = 50000
PARTS = frozenset((
    "link", "body", "joint", "freejoint", "site", "frame", "loop", "loop_joint",
    "coupling", "constraint", "connect", "weld", "fixed", "spatial", "key",
))  # fmt: skip
# tags, and values in them with what follows; as no "<" is in a value, all is gone through once
TAG, VALUE = r"""<[\w:](?:[^<>"']|"[^"<]*"|'[^'<]*')*>""", r"""("[^"<]*"|'[^'<]*')([\w:]?)"""
TAGS_OF_TEXT = re.compile(TAG), re.compile(VALUE), " "
TAGS_OF_BYTES = re.compile(TAG.encode()), re.compile(VALUE.encode()), b" "
LATE = r"(\s+)(<\?xml[^>]*\?>)"  # a declaration
LATE_IN_TEXT, LATE_IN_BYTES = re.compile(LATE), re.compile(LATE.encode())
# comments, and what may hold the look of one; what does not end goes on to the end, so that all is gone through once
COMMENT = r"<!--(?P<inside>.*?)(?P<end>-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
OF_TEXT = re.compile(COMMENT, re.DOTALL), re.compile(r"[^\r\n]"), " ", "-"
OF_BYTES = re.compile(COMMENT.encode(), re.DOTALL), re.compile(rb"[^\r\n]"), b" ", b"-"
WITH_TEXT = ("sdf", "gazebo", "model")  # inside of these: elsewhere all is said in attributes
# joints and constraints of one pair of bodies: six leave nothing free, and dependent rows cost the cube of their number
MOST_BETWEEN_TWO = 100
ONE_FRICTION = "friction that differs with the direction is read as that of the first"
LARGEST = 2**26  # bytes of a model, and of all that it includes
LONGEST_TAG = 2**23  # bytes from one < to the next: there are MJCFs with the vertices of a mesh in an attribute
LONGEST = 10000  # letters of numbers: a few dozen each are all that they need
LONGEST_NAME = 4096  # letters of names, and of names of files


def check_ties(pairs: Iterable[tuple[str, ...]], source: str) -> None:
    """ModelError where two bodies, of the names that each joint or constraint has, are tied together by too many."""
    for pair, count in Counter(tuple(sorted(pair)) for pair in pairs).items():
        if pair and count > MOST_BETWEEN_TWO:
            most = f"a file is read with {MOST_BETWEEN_TWO} at most, of which six leave nothing free"
            raise ModelError(f"{source}: {count} joints and constraints tie '{pair[0]}' to '{pair[-1]}'; {most}")


Grammar = Mapping[str, tuple[frozenset[str], ...]]
NOTHING: tuple[frozenset[str], ...] = (frozenset(), frozenset())


class Notes:
    """Warnings, the same one once: where it was first met, and how often, or of which things by their names."""

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
    builder: Builder, body: str, element: Element, shape: ContactShape | Mesh, place: Transform, **numbers: float
) -> str | None:
    """Give a body a shape that touches, by the name that the element has if that is free, which it returns; of a mesh it is told that it
    touches planes, or nothing: then None.
    """
    if isinstance(shape, Mesh):
        if not at_hand(shape):
            element.note(
                f"a mesh in <{element.tag}> is not read as a shape that touches: its file is not there, or trimesh"
            )
            return None
        element.note(f"a mesh in <{element.tag}> touches planes alone, by its convex hull")
    name = element.get("name") or None
    builder.add_shape(body, shape, place, name=None if name in builder._shapes else name, **numbers)  # type: ignore[arg-type]
    return next(reversed(builder._shapes))


def only_shape(owner: Element) -> Element:
    shapes = [shape for geometry in owner.all("geometry") for shape in geometry.children]
    if len(shapes) != 1:
        owner.fail(f"wants one shape in a <geometry>, and has {len(shapes)}")
    return shapes[0]


@dataclass(eq=False, slots=True)
class Element:
    """An element that knows where it stands, and reads what stands in it; `notes` are those of the document."""

    tag: str
    attributes: dict[str, str]
    source: str
    line: int | str  # in USD the path of its prim
    owner: Element | None
    notes: Notes
    known: Grammar
    children: list[Element] = field(default_factory=list)
    content: str = ""  # its own text, of which no more is kept than numbers and names need

    def __str__(self) -> str:
        """As an error names it: <mass> of <link name='arm'>."""
        name, above = self.attributes.get("name"), self.owner
        if name is not None:
            return f"<{self.tag} name={name[:200]!r}>"
        while above is not None and "name" not in above.attributes:
            above = above.owner
        return f"<{self.tag}>" if above is None or above.owner is None else f"<{self.tag}> of {above}"

    def fail(self, message: str) -> NoReturn:
        raise ModelError(f"{self.source}:{self.line}: {self} {message}")

    def note(self, message: str, name: str = "") -> None:
        """Warn; of what has a name once for all of them, where the message does not hold it."""
        self.notes.add(f"{self.source}:{self.line}", message, name)

    def look_for_unknown(self) -> None:
        attributes, children = self.known.get(self.tag, NOTHING)
        for attribute in self.attributes:
            if attribute not in attributes and not attribute.startswith("xmlns"):
                self.note(f"attribute {attribute!r} of <{self.tag}> is not read")
        for child in self.children:
            if child.tag not in children:
                child.note(f"<{child.tag}> in <{self.tag}> is not read")

    def all(self, *tags: str) -> list[Element]:
        return [child for child in self.children if child.tag in tags]

    def child(self, tag: str) -> Element | None:
        children = [child for child in self.children if child.tag == tag]
        if len(children) > 1:
            children[1].fail(f"stands there twice; first in line {children[0].line}")
        if not children:
            return None
        children[0].look_for_unknown()
        return children[0]

    def child_number(self, tag: str, default: float) -> float:
        """The number in the text of a child; the default where there is none."""
        child = self.child(tag)
        return default if child is None else child.number(None)

    def needed(self, tag: str) -> Element:
        return self.child(tag) or self.fail(f"has no <{tag}>")

    def get(self, attribute: str) -> str | None:
        """A name, or another word; numbers may be longer."""
        value = self.attributes.get(attribute)
        if value is not None and len(value) > LONGEST_NAME:
            self.fail(f"has {len(value)} letters in {attribute}; at most {LONGEST_NAME} are read")
        return value

    def text(self, attribute: str) -> str:
        return self.get(attribute) or self.fail(f"has no {attribute}")

    def _needed(self, attribute: str) -> str:
        return self.attributes.get(attribute) or self.fail(f"has no {attribute}")

    def words(self) -> str:
        """Its text, which has to be there, without the space around it."""
        return self.content.strip() or self.fail("is empty")

    def numbers(
        self, attribute: str | None, n: int, default: tuple[float, ...] | None = None, *, finite: bool = True
    ) -> tuple[float, ...]:
        """The n numbers in an attribute, or in its text where that is None."""
        if default is not None and (attribute not in self.attributes if attribute else not self.content.strip()):
            return default
        text, where = (self._needed(attribute), f" in {attribute}") if attribute else (self.words(), "")
        words = text.split(None, n)  # not all of them: a file may hold millions
        try:
            # Python reads 1_000, and digits of other scripts; nobody else does
            plain = len(words) == n and len(text) < LONGEST + 40 * n and "_" not in text and text.isascii()
            values = tuple(map(float, words)) if plain else ()
        except ValueError:
            values = ()
        if len(values) != n:
            self.fail(f"wants {'a number' if n == 1 else f'{n} numbers'}{where}, not {text[:60]!r}")
        if not all(map(math.isfinite, values)) and (finite or any(map(math.isnan, values))):
            self.fail(f"has a number{where} that is not finite: {text[:60]!r}")
        return values

    def number(self, attribute: str | None, default: float | None = None, *, finite: bool = True) -> float:
        return self.numbers(attribute, 1, None if default is None else (default,), finite=finite)[0]

    def several(self, attribute: str, most: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """One number or more, at most so many."""
        if default is not None and attribute not in self.attributes:
            return default
        text = self._needed(attribute)
        if len(text) > LONGEST + 40 * most:
            self.fail(f"wants at most {most} numbers in {attribute}, not {text[:60]!r}")
        count = len(text.split())
        if not 0 < count <= most:
            self.fail(f"wants 1 to {most} numbers in {attribute}, and has {count}")
        return self.numbers(attribute, count)

    def word(self, attribute: str, known: str, default: str) -> str:
        """One of the known words."""
        word = self.attributes.get(attribute, default)
        if word not in known.split():
            self.fail(f"wants one of {', '.join(known.split())} in {attribute}, not {word[:60]!r}")
        return word

    def truth(self, attribute: str, default: bool) -> bool:
        return self.word(attribute, "true false", "true" if default else "false") == "true"


def parse(
    text: str | bytes, source: str, known: Grammar, *, deepest: int = DEEPEST, notes: Notes | None = None
) -> Element:
    """The root of a document; `source` is what errors and warnings call it. Notes may be those of another, which it is a part of."""
    if not isinstance(text, str | bytes | bytearray | memoryview):
        raise TypeError(f"text is the document itself, str or bytes; got {text!r}: sarrus.load reads files")
    text = _readable(text, source)
    parser, notes, count, parts = expat.ParserCreate(), Notes() if notes is None else notes, 0, 0
    stack: list[Element] = []
    root: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count, parts
        if any(len(name) > LONGEST_NAME for name in (tag, *attributes)):
            what = f"a tag or an attribute's name has more than {LONGEST_NAME} letters"
            raise ModelError(f"{source}:{parser.CurrentLineNumber}: {what}")
        owner = stack[-1] if stack else None
        element = Element(tag, attributes, source, parser.CurrentLineNumber, owner, notes, known)
        (root if owner is None else owner.children).append(element)
        stack.append(element)
        count += 1
        parts += tag in PARTS
        if tag in WITH_TEXT:
            parser.CharacterDataHandler = written
        if len(stack) > deepest:
            element.fail(f"is nested deeper than {deepest} elements")
        if count > MOST:
            element.fail(f"is one too many: a model file may have {MOST} elements")
        if parts > MOST_PARTS:
            what = f"{MOST_PARTS} bodies, joints, and what ties or marks them"
            element.fail(f"is one too many: a model file may have {what}")
        if tag.startswith("xacro:"):
            element.fail("is a xacro macro; expand the file first: xacro FILE.xacro > FILE.urdf")

    def written(text: str) -> None:
        if not text.isspace() and len(stack[-1].content) < LONGEST:
            stack[-1].content += text[:LONGEST]

    def end(_: str) -> None:
        if stack.pop().tag in WITH_TEXT and not any(above.tag in WITH_TEXT for above in stack):
            parser.CharacterDataHandler = None

    def refuse(*_: object) -> NoReturn:
        raise ModelError(f"{source}:{parser.CurrentLineNumber}: a model file needs no DOCTYPE and no entities: refused")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler, parser.buffer_text = refuse, True
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        if (spaced := _with_spaces(text)) != text:
            return parse(spaced, source, known, deepest=deepest, notes=notes)
        raise ModelError(f"{source}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}") from None
    except ModelError:
        raise
    except (LookupError, ValueError) as error:  # the ways of an encoding to be wrong
        raise ModelError(f"{source}: cannot decode: {error}") from None
    return root[0]


def _readable(text: Any, source: str) -> Any:
    """The text, its comments without what XML forbids there and others read; ModelError where it, or a piece, is longer than is read."""
    if isinstance(text, memoryview):
        text = text.tobytes()
    if len(text) > LARGEST:
        raise ModelError(f"{source}: has {len(text)} bytes; at most {LARGEST} of a model are read")
    less, start = ("<", 0) if isinstance(text, str) else (b"<", 0)
    while len(text) - start > LONGEST_TAG:
        start = text.rfind(less, start, start + LONGEST_TAG) + 1
        if start == 0:
            raise ModelError(f"{source}: has a tag, a text or a comment of more than {LONGEST_TAG} bytes")
    return _without_dashes(_begun(text))


def _begun(text: Any) -> Any:
    """The text, blank lines before its declaration put behind it: XML forbids them, and TinyXML reads them."""
    late: Any = (LATE_IN_TEXT if isinstance(text, str) else LATE_IN_BYTES).match(text)
    return late[2] + late[1] + text[late.end() :] if late else text


def _with_spaces(text: Any) -> Any:
    """The text, with a space between attributes where there is none: as above, and only looked for where something is wrong."""
    how: Any = TAGS_OF_TEXT if isinstance(text, str) else TAGS_OF_BYTES
    tag, value, space = how
    return tag.sub(lambda at: value.sub(lambda v: v[1] + space + v[2] if v[2] else v[0], at[0]), text)


def _without_dashes(text: Any) -> Any:
    """The text, its comments blank where "--" is in them: XML forbids it, and TinyXML, with which ROS, Gazebo and MuJoCo read, does not.

    Lines stay where they are. What looks like a comment in a CDATA section or a processing instruction is none.
    """
    how: Any = OF_TEXT if isinstance(text, str) else OF_BYTES
    whole, inside, blank, dash = how

    def cleaned(match: Any) -> Any:
        if match["end"] and (dash + dash in match["inside"] or match["inside"].endswith(dash)):
            return match[0][:4] + inside.sub(blank, match["inside"]) + match["end"]
        return match[0]

    return whole.sub(cleaned, text)


def root_tag(text: str | bytes) -> str:
    """The tag of a document's root; empty where there is none."""
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
    """Inside, a ModelError without a place is given this one."""
    try:
        yield
    except ModelError as error:
        if str(error).startswith(f"{element.source}:"):
            raise
        raise ModelError(f"{element.source}:{element.line}: {element}: {error}") from None


@contextmanager
def left_out(element: Element, consequence: str, told: Callable[[str], None] | None = None) -> Iterator[None]:
    """Inside, a ModelError is no error but a fault, of a part that is left out: a note of the document, or what is told else."""
    try:
        with at(element):
            yield
    except ModelError as error:
        text = f"{error}; {consequence}"
        element.notes.add(*text.split(": ", 1)) if told is None else told(text)


def by_name(robot: Element, *tags: str) -> dict[str, Element]:
    named: dict[str, Element] = {}
    for element in robot.all(*tags):
        first = named.setdefault(element.text("name"), element)
        if first is not element:
            element.fail(f"has the name of another in line {first.line}")
    return named


def listed(names: list[str], most: int = 5) -> str:
    return ", ".join(map(repr, names[:most])) + (" …" if len(names) > most else "")


def referred(element: Element, name: str, known: Collection[str], what: str) -> str:
    """The name of one of the known ones, which an element refers to."""
    if name not in known:
        element.fail(f"names an unknown {what} {name!r}{did_you_mean(name, known)}")
    return name


class Connected:
    """Bodies by the edges that connect them, and which of them were reached."""

    def __init__(self, names: Iterable[str], edges: Iterable[Sequence[str]]) -> None:
        self.near: dict[str, list[str]] = {name: [] for name in names}
        self.reached: set[str] = set()
        for parent, child in edges:
            if parent in self.near and child in self.near:
                self.near[parent].append(child)
                self.near[child].append(parent)

    def reach(self, *start: str) -> None:
        """All that is connected with these."""
        frontier = list(start)
        while frontier:
            if (name := frontier.pop()) not in self.reached:
                self.reached.add(name)
                frontier += self.near[name]


class Names(set[str]):
    """Names that are taken."""

    def new(self, name: str) -> str:
        """This name, or one like it that is free; taken from then on."""
        name = free_name(name, self)
        self.add(name)
        return name


def free_name(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name


def mimic_circles(follows: Mapping[str, tuple[str, float, float]]) -> Iterator[tuple[str, str]]:
    """A joint of each circle of joints that mimic one another, q = multiplier q_leader + offset, and what is to be said of it."""
    done: set[str] = set()
    for name in follows:
        way: dict[str, None] = {}
        while name in follows and name not in done:
            done.add(name)
            way[name] = None
            name = follows[name][0]
        if name not in way:
            continue
        circle = list(way)[list(way).index(name) :]
        factor, rest = 1.0, 0.0  # once around, q = factor q + rest
        for one in reversed(circle):
            _, multiplier, offset = follows[one]
            factor, rest = multiplier * factor, multiplier * rest + offset
        if abs(factor - 1.0) > 1e-9:
            means = "they hold one another fast"
        else:
            means = "the last one says nothing new" if abs(rest) < 1e-12 else "they contradict one another"
        yield name, f"joints mimic one another in a circle, {listed(circle)}: {means}"


def placed_inertia(tensor: Element, link: Element, mass: float, moments: tuple[float, ...], pose: Transform) -> Inertia:
    """An inertia xx yy zz xy xz yz as it stands in a file, at that pose in its link; a note where no body has it."""
    xx, yy, zz, xy, xz, yz = moments
    about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    with np.errstate(over="ignore", invalid="ignore"):  # it is refused then
        about_com = pose.rotation @ about_com @ pose.rotation.T
    return noted_inertia(mass, pose.translation, about_com, lambda text: tensor.note(f"{link}: {text}"))


def noted_inertia(mass: float, com: ArrayLike, about_com: ArrayLike, note: Callable[[str], None]) -> Inertia:
    """Kept as it stands, with a note where no body can have it."""
    with np.errstate(over="ignore", invalid="ignore"):
        inertia = Inertia(mass, com, about_com, check=False)
    if text := no_body_has(inertia):
        note(text)
    return inertia


def no_body_has(inertia: Inertia) -> str:
    """What is to be said of an inertia that no body has; empty where one may."""
    principal = () if inertia.is_physical() else inertia.principal_moments.tolist()
    # a radius of gyration under a micron is what rounding leaves of a point mass
    if max(map(abs, principal), default=0.0) <= 1e-12 * abs(inertia.mass):
        return ""
    values = ", ".join(f"{x:.3g}" for x in principal)
    return f"no body of {inertia.mass:g} kg has principal moments of inertia {values} kg m²; the values are kept"
