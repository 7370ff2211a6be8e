"""The dependency check finds planted violations of the architecture, and none in the checkout."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

spec = importlib.util.spec_from_file_location("check_layers", ROOT / "tools" / "check_layers.py")
check_layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_layers)


def test_every_arrow_points_down():
    assert check_layers.upward(ROOT) == []


def test_nothing_was_overlooked():
    """The check has read all files of the architecture."""
    assert len(list((ROOT / "cpp").rglob("*.hpp"))) > 20
    assert len(list((ROOT / "python" / "sarrus").rglob("*.py"))) > 10


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        ("cpp/simd/planted.hpp", '#include "../spatial/motion.hpp"', "simd includes spatial, which is above it"),
        ("cpp/joints/planted.hpp", '#pragma once\n#  include "../mechanism/tree.hpp"', ":2: joints includes mechanism"),
        ("cpp/dynamics/planted.cpp", '#include "../bindings/state.hpp"', "dynamics includes bindings"),
        ("cpp/dynamics/planted.cpp", "#include <pybind11/pybind11.h>", "which only bindings may"),
        ("cpp/spatial/planted.hpp", "#include <Python.h>", "which only bindings may"),
        ("cpp/spatial/planted.hpp", '#include "nowhere.hpp"', "is no file"),
        ("cpp/spatial/planted.hpp", '#include "../../outside.hpp"', "is no file under"),
        (
            "cpp/bindings/planted.cpp",
            '\npy::module_::import("sarrus.errors").attr("StateError")',
            ":2: bindings looks up by name",
        ),
        ("cpp/bindings/planted.cpp", 'py::handle(self).attr("reactions")(q, v)', "looks up by name"),
        ("cpp/attic/planted.hpp", "", "'attic' has no layer"),
        ("python/sarrus/errors.py", "from .description.joints import Revolute", "errors imports description"),
        ("python/sarrus/spatial.py", "import numpy\nimport sarrus.cli", ":2: spatial imports cli"),
        ("python/sarrus/description/joints.py", "from .. import mechanism", "description imports mechanism"),
        (
            "python/sarrus/description/specs.py",
            "def late():\n    from sarrus.building.builder import Builder",
            ":2: description imports building",
        ),
        (
            "python/sarrus/analysis/linear_algebra.py",
            "if TYPE_CHECKING:\n    from ..io.urdf import read",
            ":2: analysis imports io",
        ),
        ("python/sarrus/mechanism.py", "from .mechanisms import delta", "mechanism imports mechanisms"),
        ("python/sarrus/io/urdf.py", "from ..cli import main", "io imports cli"),
        ("python/sarrus/io/__init__.py", "from .. import mechanisms", "io imports mechanisms"),
        ("python/sarrus/building/tables.py", "from .. import load", "building imports __init__"),
        ("python/sarrus/mechanisms/thesis.py", "import sarrus", "mechanisms imports __init__"),
        ("python/sarrus/attic.py", "", "'attic' has no layer"),
    ],
)
def test_planted_faults_are_found(tmp_path, path, text, fault):
    for known in (
        "cpp/spatial/motion.hpp",
        "cpp/mechanism/tree.hpp",
        "cpp/bindings/state.hpp",
        "outside.hpp",
        "python/sarrus/__init__.py",
        path,
    ):
        (tmp_path / known).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / known).write_text("")
    (tmp_path / path).write_text(text)
    found = check_layers.upward(tmp_path)
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("cpp/spatial/fine.hpp", '#include <Eigen/Core>\n#include <cmath>\n#include "motion.hpp"'),
        ("cpp/bindings/fine.cpp", '#include <pybind11/numpy.h>\n#include "../spatial/motion.hpp"'),
        ("cpp/spatial/fine.hpp", '// #include "../bindings/state.hpp" would be wrong'),
        ("python/sarrus/cli/commands.py", "from .. import load\nfrom ..errors import SarrusError\nimport sarrus"),
        (
            "python/sarrus/io/urdf.py",
            "from xml.etree import ElementTree\nfrom .. import description\nfrom . import sdf",
        ),
        ("python/sarrus/io/__init__.py", "from ..errors import ModelError\nfrom . import urdf\nfrom .urdf import read"),
        ("python/sarrus/__init__.py", "from . import errors, mechanisms\nfrom .building.builder import Builder"),
    ],
)
def test_what_points_down_is_fine(tmp_path, path, text):
    for known in ("cpp/spatial/motion.hpp", "python/sarrus/__init__.py", "python/sarrus/mechanisms/__init__.py", path):
        (tmp_path / known).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / known).write_text("")
    (tmp_path / path).write_text(text)
    assert check_layers.upward(tmp_path) == []
