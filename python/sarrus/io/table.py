"""Tables of file formats, from whose rows reading, writing, errors and the documentation page docs/_made/formats.md are generated.

The grammar of an element is the text "attributes | children"; names in () have no effect on the dynamics and are ignored. Each parameter of a joint,
each warning and each error has a row. The tables of the formats are in :mod:`sarrus.io.formats`.
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

FREE, POSITIVE, BOUND, CUSTOM = "any number", "not negative", "no bound, if not positive", "read by the format's reader"
# shapes that are written to files if the format has a tag for them
VISIBLE, TOUCHING = (Box, Cylinder, Sphere, Mesh), (Box, Cylinder, Sphere, Mesh, Capsule)
NO_ROOM = "-0"  # lower limit of a joint whose limits are both zero: exporters of URDF write "0 0" for no limits
COUNTS = {"str": 0, "float": 1, "tuple[float, float, float]": 3}  # declared type of a field -> count of its numbers


@dataclass(frozen=True)
class Row:
    """Row of a format's table: a parameter of a joint in a file, or an entry that is not read.

    element : tags of the elements that contain the entry
    place : path in the element: "dynamics/@damping" is an attribute, "dynamics/damping" a text; empty: the element itself
    field : field of a joint type; "lower" and "upper" are the ends of its limits
    values : allowed values. BOUND: zero and negative values mean "no bound". CUSTOM: code of the format's reader reads the entry. For an entry that
        is not read, a list of words: the first word of an attribute triggers the message, and the last word is the default. In an element's text,
        each word of the list triggers the message
    default : value of a missing entry
    unit : units for a revolute and a prismatic joint
    needs : field of the joint that must be in the file, because the entry has no effect without it
    terms : largest count of numbers in the entry; the first number is read
    angle : True if the entry is in the file's unit of angles
    switch : setting of the file that disables the entry
    note, refusal : text of the warning or the error for an entry whose value is not `default`
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
    def path(self) -> str:
        """Tags of the elements between the element and the entry, separated by "/"."""
        return self.place.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.place.rpartition("/")[2].lstrip("@")

    @property
    def in_attribute(self) -> bool:
        return "@" in self.place

    def read(self, part: Element) -> float | None:
        """Return the number of this row in an element; None if the element lacks it or the number means "no bound"."""
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
            # in this format a negative number does not mean "unlimited"
            if value < 0.0 <= default and part.owner is not None:
                part.note(f"{part.owner} has a negative limit of {name}: read as unlimited")
            return None
        return value

    def applies_to(self, element: Element) -> bool:
        """Return True if the entry in the element differs from the default."""
        if not self.place:
            return self.values == FREE or element.content.strip().lower() in self.values.split()
        if self.values != FREE:
            words = self.values.split()
            return element.word(self.name, self.values, words[-1]) == words[0]
        return any(element.several(self.name, self.terms, (self.default,)))

    def is_default(self, value: Any) -> bool:
        """Return True if `value` has the same meaning as a missing entry."""
        if self.needs or self.values == CUSTOM or self.field in ("lower", "upper"):
            return False
        return bool(value == (np.inf if self.values == BOUND else self.default))


class Format:
    """File format: grammar of its elements, and its rows.

    joints : kind of a joint that the format has -> its name in the format
    shapes : class of a shape -> its tag in a <geometry> and the places of its fields, in order
    color : places of the colour in a visual
    """

    def __init__(
        self, name: str, elements: Mapping[str, str], rows: Sequence[Row], joints: Mapping[str, str],
        shapes: Mapping[type, str] | None = None, color: str = "",
    ) -> None:  # fmt: skip
        self.name, self.elements, self.rows, self.joints = name, elements, tuple(rows), joints
        self.shapes, self.color = {kind: places.split() for kind, places in (shapes or {}).items()}, color

    @property
    def grammar(self) -> Grammar:
        """Allowed attributes and children of each tag."""
        rules = {
            tag: [set(part.split()) for part in rule.replace("(", " ").replace(")", " ").split("|")]
            for tag, rule in self.elements.items()
        }
        for row in self.rows:
            for tag in row.element.split() if row.place else ():
                for step in filter(None, row.path.split("/")):
                    rules[tag][1].add(step)
                    rules.setdefault(tag := step, [set(), set()])
                rules[tag][0 if row.in_attribute else 1].add(row.name)
        return {tag: tuple(map(frozenset, parts)) for tag, parts in rules.items()}

    @property
    def numbers(self) -> list[Row]:
        """Rows of the parameters of joints."""
        return [row for row in self.rows if row.field]

    # ---- reading -----------------------------------------------------------------------------------------------------

    def parse(self, text: str | bytes, source: str) -> Element:
        """Return the root of a document, and warn about entries that are not read.

        Formats with inherited attributes (MJCF) are an exception: their reader calls :meth:`remark` for each element after inheritance.
        """
        root = parse(text, source, self.grammar)
        pending = [root] if any(row.note or row.refusal for row in self.rows) else []
        while pending:
            self.remark(element := pending.pop())
            pending += reversed(element.children)
        return root

    def read(self, owner: Element, *, angle: float = 1.0, off: Container[str] = ()) -> dict[str, float]:
        """Return the dict: field of a joint type -> value in an element. Fields whose `switch` is in `off` are zero."""
        parts: dict[str, Element | None] = {"": owner}
        values: dict[str, float] = {}
        for row in self.numbers:
            if row.values == CUSTOM:
                continue
            if row.path not in parts:
                parts[row.path] = owner.child(row.path)
            part = parts[row.path]
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
        """Warn about entries of an element that are not read; raise ModelError if the model would be wrong without an entry."""
        for row in self.rows:
            if element.tag in row.element.split() and (row.note or row.refusal) and row.applies_to(element):
                if row.refusal:
                    element.fail(row.refusal)
                element.note(row.note.format(tag=element.tag))

    def shape(self, element: Element, kinds: Sequence[type], **folders: Any) -> Any:
        """Return the shape of an element in a <geometry>, of one of these classes; `folders` are arguments of a mesh."""
        tags = {self.shapes[kind][0]: kind for kind in kinds}
        kind = tags.get(element.tag) or element.fail(f"is an unknown shape; expected one of {', '.join(tags)}")
        values = {field.name: _value(element, place, field) for field, place in self.places(kind)}
        given_values = {name: value for name, value in values.items() if value is not None}
        return kind(**given_values, **(folders if kind is Mesh else {}))

    def places(self, kind: type) -> list[tuple[Field[Any], str]]:
        """Return the fields of a class of shapes, with their places in its element."""
        return list(zip(fields(kind), self.shapes[kind][1:], strict=False))

    # ---- writing -----------------------------------------------------------------------------------------------------

    def write(self, owner: ET.Element, values: Mapping[str, Any]) -> None:
        """Write the parameters of a joint that are not None.

        If a parameter in a child element differs from its default, all parameters of this child are written.
        """
        for path, rows in groupby(self.numbers, key=lambda row: row.path):
            defined = [row for row in rows if values.get(row.field) is not None and self._counts(row, values)]
            changed = [row for row in defined if not row.is_default(values[row.field])]
            for row in defined if path and changed else changed:
                put(owner, row.place, values[row.field])

    def missing(self, joint: JointType) -> tuple[list[str], list[str]]:
        """Return the fields of a joint for which the format has no row, in two lists: passive terms that are not zero, and bounds."""
        fields_of_rows = {row.field for row in self.numbers}
        bounds = [name for name in BOUNDS if getattr(joint, name) is not None]
        passive, missing = ([x for x in names if x not in fields_of_rows] for names in (has_passive(joint), bounds))
        return passive, missing

    # ---- documentation -----------------------------------------------------------------------------------------------

    def page(self) -> Iterator[str]:
        """Yield lines of Markdown: all tables of the format."""
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
                message = f"error: `{row.refusal}`" if row.refusal else f"warning: `{row.note.format(tag='…')}`"
                yield f"| `{row.element}{'/' if row.place else ''}{row.place}` | {message} |"
        yield from ("", "| element | attributes | elements in it | ignored |", "|---|---|---|---|")
        for tag, allowed in sorted(self.grammar.items()):
            rule = self.elements.get(tag, "")
            ignored = {word for part in rule.split("(")[1:] for word in part.partition(")")[0].split()}
            attributes, children = (" ".join(f"`{word}`" for word in sorted(part - ignored)) for part in allowed)
            yield f"| `{tag}` | {attributes} | {children} | {' '.join(f'`{word}`' for word in sorted(ignored))} |"
        yield ""


def _value(element: Element, place: str, field: Field[Any]) -> Any:
    """Return numbers or a text, by the declared type of the field; None if it is missing and has a default."""
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
    """Return the names of the passive terms that are not zero."""
    return [name for name in PASSIVE if name != "rest" and getattr(joint, name).any()]


def text_of(values: ArrayLike) -> str:
    """Return numbers as text, with enough digits to read back the same numbers."""
    return " ".join(repr(float(x) + 0.0).removesuffix(".0") for x in np.ravel(values))


def put(owner: ET.Element, place: str, value: ArrayLike | str) -> None:
    """Write a value at a path in an element, such as "dynamics/@damping"; missing elements of the path are added."""
    *path, last = place.split("/")
    for tag in path:
        child = next((child for child in owner if child.tag == tag), None)
        owner = ET.SubElement(owner, tag) if child is None else child
    text = value if isinstance(value, str) else text_of(value)
    if last.startswith("@"):
        owner.set(last[1:], text)
    else:
        ET.SubElement(owner, last).text = text
