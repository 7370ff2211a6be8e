"""Measures of plain writing, each with a bar: ``python tools/words.py [CHECKOUT] [--list MEASURE]``

The rules are in CONTRIBUTING.md, "Words". Exit code 1 if a measure exceeds its bar; --list prints the places of one measure.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Bar(NamedTuple):
    """Largest allowed number of places per `per` units of a total; without a total, of places."""

    most: float
    per: int
    total: str
    places: str


BARS = {
    "summaries": Bar(2.0, 100, "summaries", "begin with a relative, a preposition or a pronoun"),
    "voice": Bar(1.0, 1000, "words", "ascribe speech or thought to software"),
    "names": Bar(2.0, 1000, "identifiers", "are pronouns, particles or participles"),
    "sentences": Bar(5.0, 100, "sentences", "have more than 30 words"),
    "headings": Bar(0.0, 1, "", "headings are relative clauses"),
}

LONG = 30  # a sentence with more words is long
FIRST_WORDS = {
    "what", "of", "where", "whether", "how", "those", "as", "and", "by", "who", "whose", "that", "which", "so", "such", "but", "to", "in", "at",
    "from", "with", "if", "when", "one", "it", "they", "these",
}  # fmt: skip
SPEECH = re.compile(
    r"\b(tells?|told|foretold|says?|said|asks?|asked|wants?|knows?|led|looks? (?:at|for)|looked|ha(?:s|ve) (?:a|no) say|nobody|"
    r"somebody|gives? way|stands? (?:in|for|beside|open|on)|beside)\b",
    re.IGNORECASE,
)
NAMES = {
    "how", "known", "one", "ones", "those", "that", "said", "asked", "asks", "held", "there", "here", "way", "ways", "apart", "given", "told",
    "found", "own", "wanted", "led", "taken", "gone", "what", "whose", "which", "whole", "others", "it", "these", "come", "goes", "beyond",
    "nothing", "some", "any_", "like", "thing", "things", "much", "far", "near_", "alone",
}  # fmt: skip
RELATIVE_HEADING = re.compile(r"(What|Of|Where|Whether|Those|Whose|That|Who)\b(?!.*\?)")
PROSE_FILES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "NOTATION.md")


class Report:
    """Totals of words, sentences, summaries and identifiers, and the places of each measure."""

    def __init__(self) -> None:
        self.totals = dict.fromkeys((bar.total for bar in BARS.values()), 0)
        self.places: dict[str, list[str]] = {measure: [] for measure in BARS}

    def value(self, measure: str) -> float:
        """Return the value of a measure, in the units of its bar: places per 100 or 1000, or the number of places."""
        bar = BARS[measure]
        return len(self.places[measure]) * bar.per / (max(1, self.totals[bar.total]) if bar.total else 1)

    def add_prose(self, place: str, text: str) -> None:
        """Count words, sentences and verbs of speech."""
        for sentence in sentences(text):
            words = re.findall(r"[A-Za-z][A-Za-z'-]*", sentence)
            self.totals["words"] += len(words)
            self.totals["sentences"] += 1
            if len(words) > LONG:
                self.places["sentences"].append(f"{place}: {sentence[:160]}")
            self.places["voice"] += [f"{place}: {verb[0]}: {sentence[:140]}" for verb in SPEECH.finditer(sentence)]

    def add_summary(self, place: str, text: str) -> None:
        """Count the first word of a docstring or a file's head comment."""
        first = re.search(r"[A-Za-z']+", text[:200])
        if first:
            self.totals["summaries"] += 1
            if first[0].lower() in FIRST_WORDS:
                self.places["summaries"].append(f"{place}: {text.strip().splitlines()[0][:150]}")

    def add_name(self, place: str, name: str) -> None:
        """Count an identifier."""
        self.totals["identifiers"] += 1
        if name in NAMES or name.startswith("of_"):
            self.places["names"].append(f"{place}: {name}")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; lists, headings, code and entries of NumPy sections separate them."""
    text = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    text = re.sub(r"^\s*(>>>|\.\.\. ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "x", text)
    for block in re.split(r"\n\s*\n|\n\s*[-*|]|\n#+ |\n(?=\s*[\w\", *.]+ : )", text):
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])", " ".join(block.split())):
            if re.search(r"[A-Za-z]{2}", sentence):
                yield sentence


def read_python(path: Path, place: str, report: Report) -> None:
    """Measure docstrings, comments and identifiers of a Python file."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = ast.get_docstring(node)
            if docstring:
                line = f"{place}:{getattr(node, 'lineno', 1)}"
                report.add_summary(line, docstring)
                report.add_prose(line, re.split(r"\n\s*(?:Examples|References)\n\s*-+", docstring)[0])
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            report.add_name(f"{place}:{token.start[0]}", token.string)
        elif token.type == tokenize.COMMENT:
            report.add_prose(f"{place}:{token.start[0]}", token.string.lstrip("# "))


def read_cpp(path: Path, place: str, report: Report) -> None:
    """Measure comments and identifiers of a C++ file; blocks of ``///`` and the head comment have summaries."""
    source = path.read_text(encoding="utf-8")
    if head := re.match(r"(?:// ?[^\n]*\n)+", source):
        report.add_summary(f"{place}:1", re.sub(r"^// ?", "", head[0], flags=re.MULTILINE))
    block: list[str] = []
    for number, line in enumerate([*source.split("\n"), ""], 1):
        comment = re.match(r"\s*(///?) ?(.*)", line)
        if comment and comment[1] == "///":
            block.append(comment[2])
            continue
        if block:
            start, text = f"{place}:{number - len(block)}", "\n".join(block)
            report.add_summary(start, text)
            report.add_prose(start, text)
            block = []
        if comment:
            report.add_prose(f"{place}:{number}", comment[2])
    for number, line in enumerate(re.sub(r"//[^\n]*|\"[^\"\n]*\"", "", source).split("\n"), 1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            report.add_name(f"{place}:{number}", name)


def read_page(path: Path, place: str, report: Report) -> None:
    """Measure sentences and headings of a Markdown page."""
    text = path.read_text(encoding="utf-8")
    report.add_prose(place, text)
    without_code = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    headings = re.findall(r"^#+ +(.*)$", without_code, flags=re.MULTILINE)
    report.places["headings"] += [f"{place}: {heading}" for heading in headings if RELATIVE_HEADING.match(heading)]


def measured(checkout: Path) -> Report:
    """Return the measures of python/, cpp/, docs/ and the pages at the root of a checkout."""
    report = Report()
    pages = [*sorted((checkout / "docs").rglob("*.md")), *(checkout / name for name in PROSE_FILES)]
    readers = (
        (read_python, sorted((checkout / "python").rglob("*.py"))),
        (read_cpp, sorted([*(checkout / "cpp").rglob("*.hpp"), *(checkout / "cpp").rglob("*.cpp")])),
        (read_page, [page for page in pages if page.exists()]),
    )
    for read, paths in readers:
        for path in paths:
            read(path, path.relative_to(checkout).as_posix(), report)
    return report


def main() -> int:
    """Print all measures, and the places of one; return 1 if a measure exceeds its bar."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--list", choices=BARS, help="print the places of this measure")
    arguments = parser.parse_args()
    report = measured(arguments.checkout)
    for measure, bar in BARS.items():
        exceeded = "EXCEEDED" if report.value(measure) > bar.most else ""
        share = f"per {bar.per} {bar.total} {bar.places}" if bar.total else bar.places
        print(f"{report.value(measure):7.1f}  at most {bar.most:4.1f}  {exceeded:8}  {measure}: {share}")
    if arguments.list:
        print(*report.places[arguments.list], sep="\n")
    return int(any(report.value(measure) > bar.most for measure, bar in BARS.items()))


if __name__ == "__main__":
    sys.exit(main())
