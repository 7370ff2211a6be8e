"""A copy of the project to which toys are added, as CONTRIBUTING's recipes say."""

import os
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
    """Copy of the project with changed files, which it lists."""

    def __init__(self, folder):
        self.folder, self.installed, self.changed = folder, folder / "installed", set()
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

    def compile(self, source, *more):
        """Compile a file of the core with every template that it uses; return the result of the process."""
        options = ["-std=c++17", "-fsyntax-only", "-DSARRUS_ONE_STATE", "-DEIGEN_DONT_VECTORIZE", f"-I{eigen()}", *more]
        command = ["c++", *options, str(self.folder / source)]
        return subprocess.run(command, capture_output=True, text=True)

    def install(self):
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--target"]
        subprocess.run([*pip, self.installed, self.folder], check=True)

    def run(self, program, *arguments):
        """Run a program with the installed copy."""
        # -S: nothing of site-packages' own paths, where an editable install would come first
        paths = os.pathsep.join([str(self.installed), str(Path(numpy.__file__).parents[1])])
        command = [sys.executable, "-S", program, *arguments]
        subprocess.run(command, check=True, cwd=self.folder, env=os.environ | {"PYTHONPATH": paths})


def eigen():
    for folder in (Path(sys.prefix), *map(Path, sys.path), Path("/usr")):
        for below in ("cmeel.prefix/include/eigen3", "include/eigen3"):
            if (folder / below / "Eigen" / "Core").exists():
                return folder / below
    pytest.skip("Eigen's headers are not installed here")


soak = pytest.mark.skipif("SARRUS_SOAK" not in os.environ, reason="minutes: SARRUS_SOAK=1 pytest tests/repository")
