"""Docstrings of public functions and classes explain every argument, and state the units of physical ones."""

import enum
import importlib.util
import inspect
import re

import pytest

import sarrus
from tests.public import functions

SECTION = re.compile(r"\n(Parameters|Attributes|Returns|Raises|Warns|References|Examples|Notes)\n-+\n")
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*(?:\n(?: .*|(?=\n )))*)", re.MULTILINE)
UNIT = re.compile(r"\[[^\]]+\]|dimensionless|\b(as in|as for|see)\b")  # a unit, or the place that states it
NAMES = ("self", "robot", "mechanism")

CLASSES = (sarrus.Builder, sarrus.Mechanism, sarrus.Skeleton, sarrus.Trajectory, sarrus.results.View)
OPTIONAL = ("casadi", "gymnasium", "jax", "torch")  # libraries, and the modules for them
MODULES = (
    "calibration", "cams", "control", "cuda", "description", "design", "dimensions", "errors", "generation", "identification", "interop", "io", "laws", "mechanisms",
    "results", "rolling", "shapes", "spatial", "variants", *(name for name in OPTIONAL if importlib.util.find_spec(name)),
)  # fmt: skip


def explained(docstring):
    """Return the explanation of each argument in the sections Parameters and Attributes of a docstring, and lines below them that are not indented."""
    titles_and_texts = SECTION.split("\n" + inspect.cleandoc(docstring or ""))[1:]
    sections = dict(zip(titles_and_texts[::2], titles_and_texts[1::2], strict=True))
    text = "\n".join(sections.get(title, "") for title in ("Attributes", "Parameters"))
    entries = {name.lstrip("*"): words for names, words in ENTRY.findall(text) for name in names.split(", ")}
    return entries, re.findall(r"^@\n(?!@)(\S.*)", ENTRY.sub("@", text), re.MULTILINE)


def faults(function):
    """Return the arguments of a function or class that its docstring does not explain, or explains without a unit."""
    entries, others = explained(inspect.getdoc(function))
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except ValueError:  # raised for errors and warnings without arguments of their own
        parameters = []
    if inspect.isclass(function) and issubclass(function, enum.Enum):
        parameters = []  # Python's constructor of enumerations
    arguments = [p for p in parameters if p.name not in NAMES and not p.name.startswith("_")]
    missing = [f"{p.name}: no entry" for p in arguments if p.name not in entries]
    physical = [
        p
        for p in arguments
        if re.search(r"\bArray(Like)?\b|float|complex", str(p.annotation)) or p.name in ["q", "v", "a", "tau", "dv"]
    ]
    loose = [f"{line}: neither an entry nor indented" for line in others]
    return (
        missing
        + [f"{p.name}: no unit" for p in physical if p.name in entries and not UNIT.search(entries[p.name])]
        + loose
    )


def public():
    """Return the functions of a mechanism, and the functions, classes and methods in sarrus and its modules, by name."""
    found = dict(functions())
    for owner in CLASSES:
        found |= methods(owner, dir(owner))
    for module in ("", *MODULES):
        contents = importlib.import_module(f"sarrus.{module}".rstrip("."))
        own = [name for name, x in vars(contents).items() if inspect.isclass(x) and x.__module__ == contents.__name__]
        prefix = f"{module}." if module else ""
        for name in getattr(contents, "__all__", own):
            x = getattr(contents, name)
            if inspect.isclass(x):
                found |= {f"{prefix}{name}": x} | methods(x, vars(x), prefix)
            elif inspect.isfunction(x):
                found[f"{prefix}{name}"] = x
    return found


def methods(owner, names, prefix=""):
    """Return public methods of a class, by the path of the method."""
    members = {name: getattr(owner, name) for name in names if not name.startswith("_")}
    return {
        f"{prefix}{owner.__name__}.{name}": x
        for name, x in members.items()
        if inspect.isfunction(x) or inspect.ismethod(x)
    }


@pytest.mark.parametrize("name", sorted(public()))
def test_every_argument_is_explained_with_its_unit(name):
    assert faults(public()[name]) == []


def test_faults_are_detected():
    def example(q, *, time: float = 0.0, mode="a"):
        """Return q.

        Parameters
        ----------
        q : (nq,) configuration
        time : time [s], which is a
        number
        """

    assert faults(example) == ["mode: no entry", "q: no unit", "number: neither an entry nor indented"]
