"""What a format says, one row a thing: reading, writing, refusing and docs/_made/formats.md all go by these rows.

A format's elements are told as "attributes | children", in () what has no bearing on the dynamics and is passed over. A number of a joint,
a warning and a refusal have a row each. Formats: :mod:`sarrus.io.formats`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from .._arrays import ArrayLike
from ..description.joints import BOUNDS, PASSIVE, JointType
from ..shapes import Box, Capsule, Cylinder, Mesh, Sphere
from .document import Element, Grammar, parse

FREE, POSITIVE, BOUND, CUSTOM = "any number", "not negative", "none, if not positive", "as the reader says"
VISIBLE, TOUCHING = (
    (Box, Cylinder, Sphere, Mesh),
    (Box, Cylinder, Sphere, Mesh, Capsule),
)  # shapes that files have, where a row says so
NO_ROOM = (
    "-0"  # the lower end of limits that are zero both: in a URDF zeros are what exporters write where there are none
)
COUNTS = {"str": 0, "float": 1, "tuple[float, float, float]": 3}  # of numbers, in what is declared so


@dataclass(frozen=True)
class Row:
    """A number of a joint, or what is not read.

    element : tag of what has it; several that are alike in this
    place : where it stands in there: "dynamics/@damping" is an attribute, "dynamics/damping" a text; empty: the element itself
    field : the number of a joint type that it is; "lower" and "upper" are the ends of its limits
    values : which are allowed, and for BOUND, which mean that there is none; CUSTOM: the reader of the format reads it. Of what is not read,
        words: the first one is what is remarked, the last one the default; of a text, all are remarked
    default : of a file that does not say it
    unit : of a turning and of a sliding joint
    needs : the field without which it means nothing
    terms : how many numbers may stand there, of which the first is read
    angle : whether it follows the file's unit of angles
    switch : the setting that switches it off
    note, refusal : what a warning, an error says where it stands there with another value than `default`
    """

    element: str
    place: str
    field: str = ""
    values: str = FREE
    default: float = 0.0
    unit: str = ""
    needs: str = ""
    terms: int = 1
    angle: bool = False
    switch: str = ""
    note: str = ""
    refusal: str = ""

    @property
    def way(self) -> str:
        """The elements on the way there."""
        return self.place.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.place.rpartition("/")[2].lstrip("@")

    @property
    def in_attribute(self) -> bool:
        return "@" in self.place

    def read(self, part: Element) -> float | None:
        """The number in the element that has it; None where there is none."""
        if not self.in_attribute:
            child = part.child(self.name)
            if child is None:
                return None
            part = child
        name = self.name if self.in_attribute else None
        default, finite = self.default, self.values != BOUND and self.field not in ("lower", "upper")
        if self.terms > 1:
            value, *higher = part.several(self.name, self.terms, (default,))
            if any(higher):
                part.note(f"nonlinear {self.name} of <{part.tag}> is not read")
        else:
            value = part.number(name, default, finite=finite)
        if self.values == POSITIVE and value < 0.0:
            part.fail(f"has a negative {name}: {value:g}" if name else f"is negative: {value:g}")
        if self.values == BOUND and value <= 0.0:
            if value < 0.0 <= default and part.owner is not None:  # where a negative one is no word for none
                part.note(f"{part.owner} has a negative limit of {name}: taken as unlimited")
            return None
        return value

    def stands_in(self, element: Element) -> bool:
        """Whether an element says something else than the default."""
        if not self.place:
            return self.values == FREE or element.content.strip().lower() in self.values.split()
        if self.values != FREE:
            words = self.values.split()
            return element.word(self.name, self.values, words[-1]) == words[0]
        return any(element.several(self.name, self.terms, (self.default,)))

    def is_silent(self, value: Any) -> bool:
        """Whether a value is what a file means that does not say it."""
        if self.needs or self.values == CUSTOM or self.field in ("lower", "upper"):
            return False
        return bool(value == (np.inf if self.values == BOUND else self.default))


class Format:
    """A format's elements, and its rows.

    joints : the kinds of joints that it has as they are -> its words for them
    shapes : of a kind of shape the tag in a <geometry>, and where in there its fields are, one after the other
    color : where a visual says its own
    """

    def __init__(
        self, name: str, elements: Mapping[str, str], rows: Sequence[Row], joints: Mapping[str, str],
        shapes: Mapping[type, str] | None = None, color: str = "",
    ) -> None:  # fmt: skip
        self.name, self.elements, self.rows, self.joints = name, elements, tuple(rows), joints
        self.shapes, self.color = {kind: said.split() for kind, said in (shapes or {}).items()}, color

    @property
    def grammar(self) -> Grammar:
        known = {
            tag: [set(part.split()) for part in rule.replace("(", " ").replace(")", " ").split("|")]
            for tag, rule in self.elements.items()
        }
        for row in self.rows:
            for tag in row.element.split() if row.place else ():
                for step in filter(None, row.way.split("/")):
                    known[tag][1].add(step)
                    known.setdefault(tag := step, [set(), set()])
                known[tag][0 if row.in_attribute else 1].add(row.name)
        return {tag: tuple(map(frozenset, parts)) for tag, parts in known.items()}

    @property
    def numbers(self) -> list[Row]:
        """The rows of joints."""
        return [row for row in self.rows if row.field]

    # ---- reading -----------------------------------------------------------------------------------------------------

    def parse(self, text: str | bytes, source: str) -> Element:
        """The root of a document, and remarks on all that is in it; where attributes are inherited they are made later, one by one."""
        root = parse(text, source, self.grammar)
        pending = [root] if any(row.note or row.refusal for row in self.rows) else []
        while pending:
            self.remark(element := pending.pop())
            pending += reversed(element.children)
        return root

    def read(self, owner: Element, *, angle: float = 1.0, off: Container[str] = ()) -> dict[str, float]:
        """The numbers of a joint that an element says: field -> value. What is switched `off` is zero."""
        parts: dict[str, Element | None] = {"": owner}
        values: dict[str, float] = {}
        for row in self.numbers:
            if row.values == CUSTOM:
                continue
            if row.way not in parts:
                parts[row.way] = owner.child(row.way)
            part = parts[row.way]
            value = None if part is None else row.read(part)
            if value is not None:
                values[row.field] = 0.0 if row.switch in off else value * (angle if row.angle else 1.0)
        return {
            row.field: values[row.field] for row in self.numbers if row.field in values and self._counts(row, values)
        }

    @staticmethod
    def _counts(row: Row, values: Mapping[str, Any]) -> bool:
        return not row.needs or bool(values.get(row.needs))

    def remark(self, element: Element) -> None:
        """Warn of what an element says and nobody reads; ModelError where it cannot be left out."""
        for row in self.rows:
            if element.tag in row.element.split() and (row.note or row.refusal) and row.stands_in(element):
                if row.refusal:
                    element.fail(row.refusal)
                element.note(row.note.format(tag=element.tag))

    def shape(self, element: Element, kinds: Sequence[type], **besides: Any) -> Any:
        """What an element in a <geometry> is, of one of these kinds; `besides`: what the file does not say of meshes."""
        tags = {self.shapes[kind][0]: kind for kind in kinds}
        kind = tags.get(element.tag) or element.fail(f"is an unknown shape; known are {', '.join(tags)}")
        values = {field.name: _value(element, place, field) for field, place in self.places(kind)}
        said = {name: value for name, value in values.items() if value is not None}
        return kind(**said, **(besides if kind is Mesh else {}))

    def places(self, kind: type) -> list[tuple[Field[Any], str]]:
        """The fields of a kind of shape, and where in its element they are."""
        return list(zip(fields(kind), self.shapes[kind][1:], strict=False))

    # ---- writing -----------------------------------------------------------------------------------------------------

    def write(self, owner: ET.Element, values: Mapping[str, Any]) -> None:
        """Say the numbers of a joint, but for those that are None; those in one element all or none."""
        for way, rows in groupby(self.numbers, key=lambda row: row.way):
            said = [row for row in rows if values.get(row.field) is not None and self._counts(row, values)]
            loud = [row for row in said if not row.is_silent(values[row.field])]
            for row in said if way and loud else loud:
                put(owner, row.place, values[row.field])

    def lacks(self, joint: JointType) -> tuple[list[str], list[str]]:
        """The passive terms, and the bounds, that a joint has and no row can say."""
        known = {row.field for row in self.numbers}
        bounds = [name for name in BOUNDS if getattr(joint, name) is not None]
        passive, lacking = ([x for x in names if x not in known] for names in (has_passive(joint), bounds))
        return passive, lacking

    # ---- documentation -----------------------------------------------------------------------------------------------

    def page(self) -> Iterator[str]:
        """Lines of Markdown: tables of all that is known of the format."""
        yield from (
            f"## {self.name}",
            "",
            "| number of a joint | becomes | unit | default | values |",
            "|---|---|---|---|---|",
        )
        for row in self.numbers:
            yield f"| `{row.element.split()[0]}/{row.place}` | `{row.field}` | {row.unit} | {row.default:g} | {row.values} |"
        yield from ("", "| not read | |", "|---|---|")
        for row in self.rows:
            if row.note or row.refusal:
                what = f"error: `{row.refusal}`" if row.refusal else f"warning: `{row.note.format(tag='…')}`"
                yield f"| `{row.element}{'/' if row.place else ''}{row.place}` | {what} |"
        yield from ("", "| element | attributes | elements in it | passed over |", "|---|---|---|---|")
        for tag, known in sorted(self.grammar.items()):
            rule = self.elements.get(tag, "")
            ignored = {word for part in rule.split("(")[1:] for word in part.partition(")")[0].split()}
            attributes, children = (" ".join(f"`{word}`" for word in sorted(part - ignored)) for part in known)
            yield f"| `{tag}` | {attributes} | {children} | {' '.join(f'`{word}`' for word in sorted(ignored))} |"
        yield ""


def _value(element: Element, place: str, field: Field[Any]) -> Any:
    """Numbers or a text, as the field is declared; None where it is left out and has a default."""
    count, attribute = COUNTS[str(field.type)], place[1:] if place.startswith("@") else None
    part = element if attribute else next(iter(element.all(place)), None)
    if field.default is not MISSING and (part is None or (attribute and attribute not in part.attributes)):
        return None
    if part is None:
        element.fail(f"has no <{place}>")
    if not count:
        return part.text(attribute) if attribute else part.words()
    numbers = part.numbers(attribute, count)
    return numbers[0] if count == 1 else numbers


def has_passive(joint: JointType) -> list[str]:
    """Names of the passive terms that it has."""
    return [name for name in PASSIVE if name != "rest" and getattr(joint, name).any()]


def text_of(values: ArrayLike) -> str:
    """Numbers, in as many digits as it takes to read the same ones."""
    return " ".join(repr(float(x) + 0.0).removesuffix(".0") for x in np.ravel(values))


def put(owner: ET.Element, place: str, value: ArrayLike | str) -> None:
    """Write a value at a place in an element, in elements on the way that are there or are made."""
    *way, last = place.split("/")
    for tag in way:
        child = next((child for child in owner if child.tag == tag), None)
        owner = ET.SubElement(owner, tag) if child is None else child
    text = value if isinstance(value, str) else text_of(value)
    if last.startswith("@"):
        owner.set(last[1:], text)
    else:
        ET.SubElement(owner, last).text = text
