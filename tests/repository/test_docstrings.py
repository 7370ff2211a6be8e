"""Docstrings of public functions explain every argument, and state the units of physical ones."""

import inspect
import re

import pytest

import sarrus
from tests.public import functions

SECTION = re.compile(r"\n(Parameters|Attributes|Returns|Raises|Warns|References|Examples|Notes)\n-+\n")
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*(?:\n(?: .*|(?=\n )))*)", re.MULTILINE)
UNIT = re.compile(r"\[[^\]]+\]|dimensionless|\b(as in|as for|see)\b")  # a unit, or the place that states it
NAMES = ("self", "robot", "mechanism")

CLASSES = (sarrus.Builder, sarrus.Mechanism, sarrus.Trajectory)
LIKE_LOAD = ("load_builder", "loads")  # their docstrings refer to sarrus.load


def explained(docstring):
    """Return the explanation of each argument in the section Parameters of a docstring."""
    titles_and_texts = SECTION.split("\n" + inspect.cleandoc(docstring or ""))[1:]
    sections = dict(zip(titles_and_texts[::2], titles_and_texts[1::2], strict=True))
    entries = ENTRY.findall(sections.get("Parameters", ""))
    return {name.lstrip("*"): words for names, words in entries for name in names.split(", ")}


def faults(function):
    """Return the arguments of a function that its docstring does not explain, or explains without a unit."""
    known = explained(function.__doc__)
    arguments = [p for p in inspect.signature(function).parameters.values() if p.name not in NAMES]
    missing = [f"{p.name}: no entry" for p in arguments if p.name not in known]
    physical = [
        p for p in arguments if re.search(r"Array|float", str(p.annotation)) or p.name in ["q", "v", "a", "tau", "dv"]
    ]
    return missing + [f"{p.name}: no unit" for p in physical if p.name in known and not UNIT.search(known[p.name])]


def public():
    """Return the functions of a mechanism, the functions in sarrus, and the methods of its large classes, by name."""
    found = dict(functions())
    found |= {name: x for name in sarrus.__all__ if inspect.isfunction(x := getattr(sarrus, name))}
    for owner in CLASSES:
        members = {name: getattr(owner, name) for name in vars(owner) if not name.startswith("_")}
        found |= {
            f"{owner.__name__}.{name}": x for name, x in members.items() if inspect.isfunction(x) or inspect.ismethod(x)
        }
    return {name: x for name, x in found.items() if name not in LIKE_LOAD}


@pytest.mark.parametrize("name", sorted(public()))
def test_every_argument_is_explained_with_its_unit(name):
    assert faults(public()[name]) == []


def test_faults_are_detected():
    def example(q, *, time: float = 0.0, mode="a"):
        """Return q.

        Parameters
        ----------
        q : (nq,) configuration
        time : time [s]
        """

    assert faults(example) == ["mode: no entry", "q: no unit"]
