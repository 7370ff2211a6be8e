"""Every example in a docstring runs and prints what it shows; the examples of README and docs/ run, and their links resolve."""

import doctest
import importlib.util
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import sarrus

ROOT = Path(__file__).parents[2]
MODULES = ["sarrus", *(m.name for m in pkgutil.walk_packages(sarrus.__path__, "sarrus."))]
MODULES = [
    name
    for name in MODULES
    if name.split(".")[1:2] not in (["_core"], ["__main__"], ["works"])
    and "_kernels" not in name
    and "._gate" not in name
]
EXTRAS = ("casadi", "crocoddyl", "gymnasium", "jax", "torch")  # programs that modules of their names are for
MISSING = [name for name in EXTRAS if importlib.util.find_spec(name) is None]
MODULES = [name for name in MODULES if name.removeprefix("sarrus.") not in EXTRAS]


class Finder(doctest.DocTestFinder):
    """Finder of examples that also reads the docstrings of C functions, in their classes."""

    def _from_module(self, module, obj):
        return inspect.ismethoddescriptor(obj) or super()._from_module(module, obj)


for _name in dir(sarrus.Mechanism):
    getattr(sarrus.Mechanism, _name)  # methods of deferred modules take their places


# as somebody pastes them: nothing is imported that the example does not import
def examples(module):
    found = Finder(exclude_empty=True).find(importlib.import_module(module), globs={"__name__": "__main__"})
    return {test.name: test for test in found if test.examples}


EXAMPLES = {name: test for module in MODULES for name, test in examples(module).items()}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_docstrings(example, tmp_path, monkeypatch):
    for name in MISSING:
        if re.search(rf">>> import .*\b{name}\b", example.docstring):
            pytest.skip(f"{name} is not installed")
    monkeypatch.chdir(tmp_path)
    run_example(example)


@pytest.mark.parametrize("extra", EXTRAS)
def test_docstrings_for_other_programs(extra, tmp_path, monkeypatch):
    """Skipped by name if the program is not installed; otherwise they run."""
    pytest.importorskip(extra, exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    for example in examples(f"sarrus.{extra}").values():
        run_example(example)


def run_example(example):
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


def functions_of_a_mechanism():
    """Map public functions to the name of the docstring in their class or module."""
    return {
        name: f"{member.__module__}.{member.__qualname__}"
        if inspect.isfunction(member)
        else f"{owner.__module__}.{owner.__qualname__}.{name}"
        for owner in reversed(sarrus.Mechanism.__mro__)
        for name, member in vars(owner).items()
        if not name.startswith("_") and (inspect.isfunction(member) or inspect.ismethoddescriptor(member))
    }


def test_every_function_of_a_mechanism_has_an_example():
    functions = functions_of_a_mechanism()
    listed = {name for name, _ in inspect.getmembers(sarrus.Mechanism, inspect.isroutine) if not name.startswith("_")}
    assert set(functions) == listed and len(functions) > 50
    of_the_core = [n for n in functions if inspect.ismethoddescriptor(inspect.getattr_static(sarrus.Mechanism, n))]
    assert len(of_the_core) > 25
    assert {name for name, where in functions.items() if where not in EXAMPLES} == set()


def test_examples_were_found():
    """Examples are found in every part of the package; a sudden drop of their number would reveal a broken finder."""
    assert len(EXAMPLES) > 120
    packages = {name.split(".")[1] for name in EXAMPLES if "." in name}
    assert {
        "analysis",
        "building",
        "control",
        "description",
        "dynamics",
        "io",
        "laws",
        "mechanisms",
        "simulation",
    } <= packages


# what stands in folders and files whose names begin with an underscore is made by a build of the documentation
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    if not any(part.startswith("_") for part in path.relative_to(ROOT).parts)
)
PICTURES = ROOT / "docs" / "pictures"


def python_blocks(page):
    return re.findall(
        r"^```python[^\n]*\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)])
def test_pages(page, tmp_path, monkeypatch):
    """The Python blocks of a page run in order; a build of the documentation also runs them, and shows their output."""
    blocks = python_blocks(page)
    if any(re.search(r"\.plot\(|\.animate\(|matplotlib", block) for block in blocks):
        pyplot = pytest.importorskip("matplotlib.pyplot")
        pyplot.switch_backend("agg")
    for library in EXTRAS:
        if any(f"sarrus.{library}" in block for block in blocks):
            pytest.importorskip(library)
    if any("to_dataframe(" in block for block in blocks):
        pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


COLUMN = 90  # characters of code that the site's column shows in a window of 1280 pixels; wider windows show up to 109


@pytest.mark.parametrize("page", PAGES)
def test_code_fits_its_column(page):
    """Lines that are too long are cut off in the page, trailing comments first."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    of_code = [code.splitlines() for what, code in blocks if not what.startswith("{")]
    long = [line for lines in of_code for line in lines if len(line) > COLUMN]
    assert not long, "\n".join(long)


def test_pages_have_examples():
    with_code = {page for page in PAGES if python_blocks(page)}
    assert {"README.md", "docs/closed-chains.md", "docs/tutorials/student.md", "docs/theory/solver.md"} <= with_code
    assert len(with_code) > 25


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """A document that another one links to exists."""
    for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / page).read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (ROOT / page).parent.joinpath(target).exists(), target


def test_first_pages_are_short():
    """The README can be read in a minute, and the crank example is written as a first user would write it."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90
    page = (ROOT / "docs/tutorials/student.md").read_text(encoding="utf-8")
    turn = re.search(r"## Constant crank speed.*?```python\n(.*?)```", page, re.DOTALL)[1].splitlines()
    assert len(turn) <= 8 and "actuator_efforts" in "".join(turn)


def test_pictures_of_the_readme():
    """The film is small, and the chart shows the numbers of docs/speed.md; `python docs/pictures` draws both again."""
    spec = importlib.util.spec_from_file_location("pictures", PICTURES / "__main__.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    assert len(pictures.BARS) == 10
    assert (PICTURES / "speed.svg").read_text(encoding="utf-8") == pictures.chart()
    assert (PICTURES / "linkages.gif").stat().st_size < 300_000


QUOTED = re.compile(r"(?<![\w./])(sarrus|control|robot|run)\.((?:[a-zA-Z_]\w*\.)*[a-zA-Z_]\w*)")
OWNERS = {"sarrus": sarrus, "control": sarrus.control, "robot": sarrus.mechanisms.pendulum(), "run": sarrus.Trajectory}
ENDINGS = ("hpp", "yaml", "urdf", "xml", "sdf", "json", "npz", "html", "pdf", "csv")  # of files that are called so


def lacks(name):
    """Return true if an example needs a library that is not installed."""
    module = name.partition(".")[0]
    return module in ("casadi", "crocoddyl", "gymnasium", "jax", "torch") and not importlib.util.find_spec(module)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_names_in_prose_exist(page):
    """Names in backticks, such as `robot.assemble` or `sarrus.control.PID`, exist, also if no code of the page uses them."""
    prose = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for first, rest in {found for code in re.findall(r"`([^`\n]+)`", prose) for found in QUOTED.findall(code)}:
        of_library = first in ("sarrus", "control")  # of a robot and a run the answer's attributes are not looked at
        thing = OWNERS[first]
        for name in (
            [] if rest in ENDINGS or (of_library and lacks(rest)) else rest.split(".")[: None if of_library else 1]
        ):
            assert hasattr(thing, name), f"{first}.{rest}"
            thing = getattr(thing, name)


def test_notebooks_of_examples_need_nothing_beside_them(tmp_path, monkeypatch):
    """Cells write the modules that later cells import, so a notebook needs no other file."""
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.syspath_prepend(ROOT / "docs")
    importlib.import_module("pages").write_notebooks(tmp_path, tmp_path)
    beside = {path.stem for path in (ROOT / "examples").rglob("*.py")}
    made = sorted((tmp_path / "examples").rglob("*.ipynb"))
    assert {"hslm", "sweep", "swing_up", "control_loop"} <= {path.stem for path in made}
    for path in made:
        written = set()
        for cell in nbformat.read(path, 4).cells[1:]:
            magic, _, code = cell.source.partition("\n")
            file = re.fullmatch(r"%%writefile (\w+)\.py", magic)
            compile(code if file else cell.source, path.name, "exec")
            needs = set(re.findall(r"^(?:from|import) (\w+)", cell.source, re.MULTILINE)) & beside
            assert needs <= written, f"{path.name} imports {needs - written}"
            written |= {file[1]} if file else set()
        assert "main(" in cell.source
