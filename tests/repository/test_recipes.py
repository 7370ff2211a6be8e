"""What a user can name stands in as many product files as CONTRIBUTING's recipes say: toys are added to a copy, as told there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).parents[2]
TOYS = ROOT / "tests" / "toys"
COPIED = ("cpp", "python", "cmake", "tools", "licenses", "CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE")


class Copy:
    """Of the project, in which files are changed; which ones, it keeps."""

    def __init__(self, folder):
        self.folder, self.changed = folder, set()
        for name in COPIED:
            here = ROOT / name
            (shutil.copytree if here.is_dir() else shutil.copy)(here, folder / name)

    def add(self, path, text):
        (self.folder / path).write_text(text)
        self.changed.add(path)

    def put_before(self, path, line, new):
        text = (self.folder / path).read_text()
        assert text.count(line) == 1, line
        self.add(path, text.replace(line, new + line))

    def compile(self, source):
        """Whether the compiler takes a file of the core's, every template that it uses among it."""
        options = ["-std=c++17", "-fsyntax-only", "-DSARRUS_FALLBACK", "-DEIGEN_DONT_VECTORIZE", f"-I{eigen()}"]
        command = ["c++", *options, str(self.folder / source)]
        return subprocess.run(command, capture_output=True, text=True)

    def run(self, program):
        """Build and install the copy, and run a program with it."""
        there = self.folder / "installed"
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--target", there]
        subprocess.run([*pip, self.folder], check=True)
        # -S: nothing of site-packages' own paths, where an editable install would come first
        paths = os.pathsep.join([str(there), str(Path(numpy.__file__).parents[1])])
        command = [sys.executable, "-S", program]
        subprocess.run(command, check=True, cwd=self.folder, env=os.environ | {"PYTHONPATH": paths})


def eigen():
    for folder in (Path(sys.prefix), *map(Path, sys.path), Path("/usr")):
        for below in ("cmeel.prefix/include/eigen3", "include/eigen3"):
            if (folder / below / "Eigen" / "Core").exists():
                return folder / below
    pytest.skip("Eigen's headers are not installed here")


soak = pytest.mark.skipif(
    "SARRUS_SOAK" not in os.environ, reason="minutes: SARRUS_SOAK=1 pytest tests/repository/test_recipes.py"
)


def with_a_joint(folder):
    copy = Copy(folder)
    copy.add("cpp/joints/elliptic.hpp", (TOYS / "elliptic.hpp").read_text())
    path = "cpp/joints/joint_set.hpp"
    copy.put_before(path, '#include "fixed.hpp"', '#include "elliptic.hpp"\n')
    copy.put_before(path, "  X(gimbal, Gimbal<1>", "  X(elliptic, Elliptic)       \\\n")
    assert len(copy.changed) == 2
    return copy


def test_a_joint_is_its_file_and_a_line(tmp_path):
    copy = with_a_joint(tmp_path)
    assert shutil.which("c++"), "a C++ compiler"
    every_question = "cpp/kernels/shared_joints.cpp"
    said = copy.compile(every_question)
    assert said.returncode == 0, said.stderr
    whole = (TOYS / "elliptic.hpp").read_text()
    for question in ("read", "close", "subspace_rate"):
        copy.add("cpp/joints/elliptic.hpp", whole.replace(f" {question}(", f" {question}_of_another_name("))
        assert copy.compile(every_question).returncode != 0, question


@soak
def test_a_joint_that_was_added_works(tmp_path):
    with_a_joint(tmp_path).run(TOYS / "use_elliptic.py")


def test_no_file_but_its_own_knows_a_joint():
    """In C++ outside of cpp/joints; a Gimbal carries frames along there, and a Spherical leads points."""
    names = {
        re.search(r'name = "(\w+)"', f.read_text())[1]
        for f in (ROOT / "cpp" / "joints").glob("*.hpp")
        if "name = " in f.read_text()
    }
    assert len(names) == 10
    for file in (ROOT / "cpp").rglob("*.[ch]pp"):
        if file.parent.name != "joints":
            code = re.sub(r"//.*", "", file.read_text())
            known = {n for n in names - {"Fixed", "Free"} if re.search(rf"\b{n}\b|JointKind::{n.lower()}\b", code)}
            assert known <= {"Gimbal", "Spherical"}, (file, known)
