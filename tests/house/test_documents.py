"""Every example in a docstring and in the README runs and says what it shows."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import sarrus

ROOT = Path(__file__).parents[2]
MODULES = ["sarrus", *(m.name for m in pkgutil.walk_packages(sarrus.__path__, "sarrus."))]
MODULES = [name for name in MODULES if name.split(".")[1:2] not in (["_core"], ["__main__"]) and "_kernels" not in name]


class Finder(doctest.DocTestFinder):
    """Finds the examples of the C functions that stand in for the declarations in `sarrus.mechanism` too."""

    def _from_module(self, module, obj):
        of_the_core = getattr(getattr(obj, "__objclass__", None), "__module__", "") == "sarrus._core"
        if inspect.ismethoddescriptor(obj) and of_the_core:
            return module.__name__ == "sarrus.mechanism"
        return super()._from_module(module, obj)


def examples(name):
    found = Finder(exclude_empty=True).find(importlib.import_module(name), extraglobs={"np": np, "sarrus": sarrus})
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in examples(name):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_every_function_of_a_state_has_an_example():
    shown = {test.name.rpartition(".")[2] for test in examples("sarrus.mechanism")}
    functions = {
        name
        for name, member in vars(sarrus.Mechanism).items()
        if not name.startswith("_") and (inspect.isfunction(member) or inspect.ismethoddescriptor(member))
    }
    assert functions - shown == set()


def test_readme(tmp_path, monkeypatch):
    """The Python blocks of the README run in order, and the assertions in them hold."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


@pytest.mark.parametrize("document", sorted(p.name for p in ROOT.glob("*.md")))
def test_links_lead_somewhere(document):
    """A document of the project that another one points at is there."""
    for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / document).read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (ROOT / target).exists(), target
