"""Dependency check: a file may only include or import files of its own layer or of lower layers.

Usage: ``python tools/check_layers.py [CHECKOUT]``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# layers of C++: folders of cpp/, and the header for C++ programs, the lowest layer first
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
    "position",
    "reading",
    "recording",
    "sarrus.hpp",
    "bindings",
)

# layers of Python: modules and packages of python/sarrus/, the lowest layer first; __init__ is the package's public interface
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
    ("calibration", "cams", "design"),
    ("casadi", "crocoddyl", "cuda", "gymnasium", "jax", "torch"),
    ("results",),
    ("__init__",),
    ("cli",),
    ("__main__",),
)

# allowed exceptions: methods of Mechanism that are defined in higher layers, and imported when they are called
FROM_ABOVE = {("mechanism", "building"), ("mechanism", "figures"), ("mechanism", "io"), ("mechanism", "formulations")}

# headers that only bindings may include, because kernels are compiled without Python
BINDINGS_ONLY = re.compile(r"Python\.h|(pybind11|numpy)/")
# the core never looks up Python attributes by name; bindings/from_python.hpp defines the data that Python passes
BY_NAME = re.compile(r'import\("sarrus|\(self\)\s*\.attr\(')
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def upward(root: Path) -> list[str]:
    """Return a line of text for each include or import of a file in a higher layer, or in no layer."""
    return [*_upward_includes(root / "cpp"), *_upward_imports(root / "python" / "sarrus")]


def _upward_includes(cpp: Path) -> Iterator[str]:
    for path in sorted(p for p in cpp.rglob("*") if p.suffix in (".hpp", ".cpp", ".h")):
        folder = path.relative_to(cpp).parts[0]
        if folder not in CPP:
            yield f"{path}: '{folder}' has no layer; it needs a place in {Path(__file__).name}"
            continue
        text = path.read_text(encoding="utf-8")
        for match in BY_NAME.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {folder} looks up by name what Python is to hand over"
        for match in INCLUDE.finditer(text):
            line, (bracket, name) = text.count("\n", 0, match.start(2)) + 1, match.groups()
            if bracket == "<":
                if BINDINGS_ONLY.match(name) and folder != "bindings":
                    yield f"{path}:{line}: {folder} includes <{name}>, which only bindings may"
                continue
            target = (path.parent / name).resolve()
            if not target.is_relative_to(cpp.resolve()) or not target.is_file():
                yield f'{path}:{line}: "{name}" is no file under {cpp}'
                continue
            target_layer = target.relative_to(cpp.resolve()).parts[0]
            if target_layer in CPP and CPP.index(target_layer) > CPP.index(folder):
                yield f"{path}:{line}: {folder} includes {target_layer}, which is above it"


def _upward_imports(package: Path) -> Iterator[str]:
    layer_of = {name: layer for layer, names in enumerate(PYTHON) for name in names}
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).with_suffix("").parts
        folder = inside[0]
        if folder not in layer_of:
            yield f"{path}: '{folder}' has no layer; it needs a place in {Path(__file__).name}"
            continue
        for line, target_layer in _imports(path, inside):
            if (
                not (package / target_layer).is_dir()
                and not (package / f"{target_layer}.py").is_file()
                and target_layer not in layer_of
            ):
                target_layer = "__init__"  # a name that is defined in the package's __init__
            if target_layer == folder:
                continue
            if target_layer not in layer_of:
                yield f"{path}:{line}: '{target_layer}' has no layer; it needs a place in {Path(__file__).name}"
            elif layer_of[target_layer] > layer_of[folder] and (folder, target_layer) not in FROM_ABOVE:
                yield f"{path}:{line}: {folder} imports {target_layer}, which is above it"


def _imports(path: Path, inside: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Return (line, first name below sarrus) of every import from the package, including imports inside functions and for type checkers."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # one dot refers to the package that contains the file, for modules and for __init__
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
    violations = upward(root)
    print(*violations, sep="\n", end="\n" if violations else "")
    print(f"dependency check: {len(violations)} upward" if violations else "dependency check: every arrow points down")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
