"""The installed package: files of the wheel, modules that an import loads, and requirements of extras."""

import importlib.metadata
import json
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import pytest

import sarrus

ROOT = Path(__file__).parents[2]
DISTRIBUTION = importlib.metadata.distribution("sarrus")
EDITABLE = json.loads(DISTRIBUTION.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable", False)
not_editable = pytest.mark.skipif(EDITABLE, reason="an editable install looks for changes at every import")


def run(code, *flags):
    """Return the output of a fresh interpreter that runs the code."""
    done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_version_is_that_of_the_metadata():
    assert sarrus.__version__ == DISTRIBUTION.version
    assert sarrus.build_info()["version"] == DISTRIBUTION.version


def test_metadata():
    assert DISTRIBUTION.metadata["License-Expression"] == "BSD-3-Clause AND MIT AND MPL-2.0"
    assert [r for r in DISTRIBUTION.requires if "extra" not in r] == ["numpy>=1.24"]
    assert "sarrus" in {e.name for e in DISTRIBUTION.entry_points.select(group="console_scripts")}


def test_notices_of_what_is_compiled_in():
    """Every compiled component has its licence in the metadata, with the source of Eigen, and its release in a CycloneDX list."""
    licences = DISTRIBUTION.metadata.get_all("License-File")
    assert sorted(licences) == ["LICENSE", "licenses/DAQP.txt", "licenses/Eigen.txt", "licenses/pybind11.txt"]
    notices = {name: DISTRIBUTION.read_text(f"licenses/{name}") for name in licences}
    # of MIT and BSD, the notice itself; of MPL-2.0 (3.2), where the source is to be had
    for name, words in (
        ("licenses/DAQP.txt", "Permission is hereby granted, free of charge"),
        ("licenses/Eigen.txt", "https://gitlab.com/libeigen/eigen"),
        ("licenses/pybind11.txt", "Redistributions in binary form must reproduce the above copyright notice"),
    ):
        assert words in notices[name]
    listed = json.loads(DISTRIBUTION.read_text("sboms/sarrus.cdx.json"))
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.6")
    assert listed["metadata"]["component"]["version"] == DISTRIBUTION.version
    parts = {part["name"]: part for part in listed["components"]}
    assert {"DAQP", "Eigen", "pybind11"} <= set(parts)
    expression = set(DISTRIBUTION.metadata["License-Expression"].split(" AND "))
    assert {parts[name]["licenses"][0]["expression"] for name in ("DAQP", "Eigen", "pybind11")} == expression
    pinned = re.search(r"daqp_hash ([0-9a-f]{64})", (ROOT / "cmake" / "daqp.cmake").read_text(encoding="utf-8"))[1]
    assert parts["DAQP"].get("hashes", [{"content": pinned}])[0]["content"] == pinned
    for part in parts.values():
        assert "version" not in part or re.match(r"\d+\.\d+|of zig", part["version"])


def test_types_are_in_the_wheel():
    """py.typed, and stubs of the extension module that name everything in it."""
    from sarrus import _core

    files = {str(f) for f in DISTRIBUTION.files}
    assert {"sarrus/py.typed", "sarrus/_core/__init__.pyi", "sarrus/_core/spatial.pyi"} <= files
    assert "sarrus/figures/player.html" in files
    for module in (_core, _core.spatial):
        path = f"sarrus/_core/{'__init__' if module is _core else 'spatial'}.pyi"
        stub = Path(DISTRIBUTION.locate_file(path)).read_text(encoding="utf-8")
        missing = [name for name in vars(module) if not name.startswith("_") and name not in stub]
        assert missing == []


def test_nothing_but_the_package_is_in_the_wheel():
    """The wheel has no sources, tests or build folders."""
    top = {f.parts[0] for f in DISTRIBUTION.files if f.parts[0] != ".."}
    assert {t for t in top if not t.endswith((".dist-info", ".pth", ".py")) and t != "__pycache__"} == {"sarrus"}
    assert [str(f) for f in DISTRIBUTION.files if f.suffix in (".hpp", ".cpp", ".h", ".a")] == []


def test_import_needs_the_standard_library_and_numpy_only():
    loaded = run("import sys; before = set(sys.modules); import sarrus; print(*set(sys.modules) - before)").split()
    foreign = {name.split(".")[0] for name in loaded} - sys.stdlib_module_names - {"numpy", "sarrus"}
    # extension modules of Cython's register themselves under names of their own
    assert {name for name in foreign if not name.startswith(("_cython", "cython_")) and find_spec(name)} == set()


# what takes long to load, and what only a command, a file, a plot, a view or a batch of runs needs
HEAVY = {
    *("matplotlib", "viser", "websockets", "scipy", "pandas", "tqdm", "dask", "distributed", "collada", "pytest"),
    *("difflib", "numpy.ma"),
    *("argparse", "asyncio", "http", "ssl", "socket", "multiprocessing", "concurrent.futures", "xml", "webbrowser"),
    *("sarrus.cli", "sarrus.cli.commands", "sarrus.cli.demo", *(f"sarrus.{module}" for module in sarrus._ON_DEMAND)),
}


def test_import_leaves_heavy_modules_alone():
    """`python -m benchmarks --import` measures the cost of the import."""
    code = "import sys, numpy; its_own = set(sys.modules); import sarrus; print(*set(sys.modules) - its_own)"
    loaded = set(run(code).split())
    assert "sarrus.dynamics.operations" in loaded
    assert not loaded & HEAVY


def loaded_by(code):
    """Return the names of the sarrus modules that a program loads."""
    last = run(f"{code}\nimport sys\nprint('loaded:', *sys.modules)").splitlines()[-1].split()[1:]
    return {name.removeprefix("sarrus.") for name in last if name.startswith("sarrus.")}


def test_the_first_example_loads_what_it_uses():
    """The README's example (build, assemble, move, simulate) loads no module for files, pictures, gallery or toolboxes.

    Of control it loads only the modules that all runs share.
    """
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (example,) = (code for code in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "Builder" in code)
    loaded = loaded_by(example)
    used = {"analysis", "building", "control", "description", "dynamics", "mechanism", "simulation"}
    below = {"errors", "laws", "spatial"}
    assert {name for name in loaded if name.split(".")[0] not in used | below and not name.startswith("_")} == set()
    assert {name for name in loaded if name.startswith("control.")} == {"control.element"}
    for module in ("dynamics.variants", "dynamics.derivatives", "analysis.linearization", "description.contacts"):
        assert module not in loaded
    for module in ("sweep", "storage", "workers", "derivatives", "histories"):
        assert f"simulation.{module}" not in loaded
    assert run(f"{example}\nimport sys\nprint('numpy.ma' in sys.modules)").splitlines()[-1] == "False"


def test_one_mechanism_of_the_gallery_loads_its_module():
    loaded = loaded_by("import sarrus; sarrus.mechanisms.four_bar()")
    assert {name for name in loaded if name.startswith("mechanisms.")} == {"mechanisms.linkages", "mechanisms.drawing"}


def test_one_force_element_loads_no_tasks():
    loaded = loaded_by("import sarrus; sarrus.control.PID('pivot')")
    assert "control.elements" in loaded
    assert not loaded & {"control.tasks", "control.path"}


@pytest.mark.parametrize(
    ("suffix", "reader"), [(".json", "complete"), (".urdf", "urdf"), (".xml", "mjcf"), (".sdf", "sdf")]
)
def test_a_file_loads_the_reader_of_its_format(suffix, reader, tmp_path):
    path = str(tmp_path / f"arm{suffix}")
    sarrus.mechanisms.double_pendulum().save(path)
    loaded = loaded_by(f"import sarrus; sarrus.load({path!r})")
    readers = {"io.complete", "io.urdf", "io.mjcf", "io.sdf", "io.usd"}
    assert loaded & readers == {f"io.{reader}"}
    assert not {name for name in loaded if name.startswith("io.write_") or name == "io.pinocchio"}


WATCH = """
import sys
events = []
def watch(event, arguments):
    writes = event == "open" and (
        isinstance(arguments[1], str) and set(arguments[1]) & set("wax+") or (arguments[2] or 0) & 0b11
    )
    if writes or event.split(".")[0] in ("socket", "subprocess", "urllib", "http", "ftplib", "smtplib") or event in (
        "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.mkdir", "os.remove", "os.rename", "os.putenv",
        "shutil.copyfile", "tempfile.mkstemp", "tempfile.mkdtemp",
    ):
        events.append((event, repr(arguments)))
import numpy  # its own affairs
sys.addaudithook(watch)
import sarrus
robot = sarrus.mechanisms.double_pendulum()
robot.forward_dynamics(robot.random(0, size=100), numpy.zeros(2), numpy.zeros(2), threads=2)
print(events)
"""


@not_editable
def test_no_network_no_writes_no_processes():
    """Neither an import nor a computation opens a connection, writes a file or starts a process."""
    assert run(WATCH, "-B").strip() == "[]"


def test_what_is_compiled_finds_its_headers():
    """Pinocchio's wheels do not include Eigen's headers; benchmarks and developers require the same package as the build."""
    toml = pytest.importorskip("tomllib")
    project = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (eigen,) = (wanted for wanted in project["build-system"]["requires"] if wanted.startswith("cmeel-eigen"))
    extras = project["project"]["optional-dependencies"]
    assert eigen in extras["bench"] and eigen in extras["dev"]


COMPILER = """#!/bin/sh
[ "$1" = --version ] && echo "compiler 1.0" && exit
echo "In file included from peer.cpp:1:" >&2
echo "peer.hpp:1: fatal error: gone.hpp: No such file or directory" >&2
exit 1
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a compiler of three lines of sh")
def test_a_peer_that_cannot_be_built_says_what_lacks(tmp_path, monkeypatch):
    include = tmp_path / "include"
    (include / "pinocchio").mkdir(parents=True)
    (tmp_path / "cxx").write_text(COMPILER)
    (tmp_path / "cxx").chmod(0o755)
    monkeypatch.setenv("CXX", str(tmp_path / "cxx"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pinocchio = SimpleNamespace(__file__=str(tmp_path / "pinocchio.py"), __version__="4")
    monkeypatch.setitem(sys.modules, "pinocchio", pinocchio)
    spec = spec_from_file_location("benchmarks.peers_of_nobody", ROOT / "benchmarks" / "peers.py")
    peers = module_from_spec(spec)
    spec.loader.exec_module(peers)
    with pytest.raises(peers.PeerNotBuiltError, match="add --build-peer"):
        peers.build_pinocchio_peer()
    with pytest.raises(peers.PeerNotBuiltError, match=r"Eigen's headers are not .*: pip install 'cmeel-eigen<4'"):
        peers.build_pinocchio_peer(build=True)
    (include / "eigen3/Eigen").mkdir(parents=True)
    (include / "eigen3/Eigen/Core").touch()
    with pytest.raises(peers.PeerNotBuiltError, match=r"^pinocchio_peer.cpp does not compile: peer.hpp:1: .*gone.hpp"):
        peers.build_pinocchio_peer(build=True)
