"""The dependency check: a file includes or imports from its own layer or a lower one. ``python tools/check_layers.py [CHECKOUT]``"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# folders of cpp/, and what C++ programs include, from the ground up
CPP = (
    "simd",
    "spatial",
    "joints",
    "constraints",
    "mechanism",
    "model",
    "dynamics",
    "loops",
    "contact",
    "control",
    "contact",
    "elements",
    "simulation",
    "kernels",
    "mobility",
    "recording",
    "sarrus.hpp",
    "bindings",
)

# modules and packages of python/sarrus/, from the ground up; __init__ is the package as a user sees it
PYTHON = (
    ("_core", "_deferred", "_recording", "_renamed", "errors", "works"),
    ("_arrays", "_files", "_showing"),
    ("_build", "spatial"),
    ("laws", "rolling", "shapes"),
    ("description",),
    ("dynamics",),
    ("analysis",),
    ("variants",),
    ("mechanism",),
    ("floating", "formulations"),
    ("building",),
    ("interop",),
    ("io",),
    ("mechanisms",),
    ("control",),
    ("figures", "simulation"),
    ("derivatives", "dimensions", "generation", "viewer"),
    ("_differentiable", "_motor_motions", "identification"),
    ("calibration", "design"),
    ("casadi", "crocoddyl", "gymnasium", "jax", "torch"),
    ("results",),
    ("__init__",),
    ("cli",),
    ("__main__",),
)

# methods of a mechanism that layers above it answer, and which are imported when they are called
FROM_ABOVE = {("mechanism", "building"), ("mechanism", "figures"), ("mechanism", "io"), ("mechanism", "formulations")}

# where Python may be seen: kernels are compiled without it
BINDINGS_ONLY = re.compile(r"Python\.h|(pybind11|numpy)/")
# what Python has to answer is handed over (bindings/from_python.hpp): nothing above is called by its name
BY_NAME = re.compile(r'import\("sarrus|\(self\)\s*\.attr\(')
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def upward(root: Path) -> list[str]:
    """One line for each include or import of the checkout that runs upward, or that has no layer."""
    return [*_upward_includes(root / "cpp"), *_upward_imports(root / "python" / "sarrus")]


def _upward_includes(cpp: Path) -> Iterator[str]:
    for path in sorted(p for p in cpp.rglob("*") if p.suffix in (".hpp", ".cpp", ".h")):
        here = path.relative_to(cpp).parts[0]
        if here not in CPP:
            yield f"{path}: '{here}' has no layer; it needs a place in {Path(__file__).name}"
            continue
        text = path.read_text(encoding="utf-8")
        for match in BY_NAME.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {here} looks up by name what Python is to hand over"
        for match in INCLUDE.finditer(text):
            line, (bracket, name) = text.count("\n", 0, match.start(2)) + 1, match.groups()
            if bracket == "<":
                if BINDINGS_ONLY.match(name) and here != "bindings":
                    yield f"{path}:{line}: {here} includes <{name}>, which only bindings may"
                continue
            target = (path.parent / name).resolve()
            if not target.is_relative_to(cpp.resolve()) or not target.is_file():
                yield f'{path}:{line}: "{name}" is no file under {cpp}'
                continue
            there = target.relative_to(cpp.resolve()).parts[0]
            if there in CPP and CPP.index(there) > CPP.index(here):
                yield f"{path}:{line}: {here} includes {there}, which is above it"


def _upward_imports(package: Path) -> Iterator[str]:
    layer_of = {name: layer for layer, names in enumerate(PYTHON) for name in names}
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).with_suffix("").parts
        here = inside[0]
        if here not in layer_of:
            yield f"{path}: '{here}' has no layer; it needs a place in {Path(__file__).name}"
            continue
        for line, there in _imports(path, inside):
            if not (package / there).is_dir() and not (package / f"{there}.py").is_file() and there not in layer_of:
                there = "__init__"  # a name that the package itself holds
            if there == here:
                continue
            if there not in layer_of:
                yield f"{path}:{line}: '{there}' has no layer; it needs a place in {Path(__file__).name}"
            elif layer_of[there] > layer_of[here] and (here, there) not in FROM_ABOVE:
                yield f"{path}:{line}: {here} imports {there}, which is above it"


def _imports(path: Path, inside: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """(line, first name below sarrus) of every import from the package: late ones and those for type checkers count too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # one dot is the package that holds the file, whether the file is a module in it or its __init__
            base = ["sarrus", *inside[: len(inside) - node.level]] if node.level else []
            base += node.module.split(".") if node.module else []
            targets = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            if target[0] == "sarrus":
                yield node.lineno, target[1] if len(target) > 1 else "__init__"


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1])
    found = upward(root)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"dependency check: {len(found)} upward" if found else "dependency check: every arrow points down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
