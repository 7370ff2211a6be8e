"""cmake/daqp.cmake compiles exactly the released sources, and runs none of the code in the archive."""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HASH = "2f27baf18d2acca14186498e651b34e0bed455627e777d3fd8ba655e7e40f920"
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
CMAKE, COMPILER = shutil.which("cmake", path=PATH), shutil.which(os.environ.get("CC", "cc"), path=PATH)

pytestmark = pytest.mark.skipif(not (CMAKE and COMPILER), reason="CMake and a C compiler build it")


@pytest.fixture
def release(tmp_path):
    """Return an archive like DAQP's, with a setup.py that leaves a trace if it runs."""
    files = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: daqp\nVersion: 0.11.0\n",
        "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n',
        "setup.py": f"open({str(tmp_path / 'PWNED')!r}, 'w')\nfrom setuptools import setup\nsetup(name='daqp', version='0.11.0')\n",
        "csrc/include/daqp.h": "int daqp(void);\n",
        "csrc/src/daqp.c": '#include "daqp.h"\nint daqp(void) { return 1; }\n',
    }
    (tmp_path / "release").mkdir()
    archive = tmp_path / "release" / "daqp-0.11.0.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"daqp-0.11.0/{name}")
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text.encode()))
    return archive


def configure(folder, archive, hash=HASH):
    """Return CMake's output for a release with this hash, without a network."""
    project = folder / "project"
    shutil.copytree(ROOT / "cmake", project / "cmake", dirs_exist_ok=True)
    text = (ROOT / "cmake" / "daqp.cmake").read_text(encoding="utf-8")
    assert HASH in text
    (project / "cmake" / "daqp.cmake").write_text(text.replace(HASH, hash), encoding="utf-8")
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(x C)\ninclude(cmake/daqp.cmake)\n"
    )
    away = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(archive.parent)}
    return cmake("-S", project, "-B", folder / "build", f"-DPython_EXECUTABLE={sys.executable}", **away)


def cmake(*arguments, **environment):
    command = [CMAKE, *map(str, arguments)]
    around = {**os.environ, "PATH": PATH, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=around, check=False)


def test_an_archive_of_another_hash_is_refused_before_its_code_runs(tmp_path, release):
    done = configure(tmp_path, release)
    assert done.returncode != 0 and "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "PWNED").exists() and not [*tmp_path.glob("build/headers/daqp/*.tar.gz")]


def test_what_is_compiled_is_what_the_archive_holds(tmp_path, release):
    """The archive is verified also if it, or a file of it, already existed or has changed since; only C files are used."""
    digest = hashlib.sha256(release.read_bytes()).hexdigest()
    kept = tmp_path / "build" / "headers" / "daqp"
    kept.mkdir(parents=True)
    (kept / release.name).write_bytes(b"another")
    done = configure(tmp_path, release, digest)
    assert done.returncode == 0, done.stderr
    source = kept / "daqp-0.11.0" / "csrc" / "src" / "daqp.c"
    build = "--build", tmp_path / "build", "--target", "daqp"
    assert cmake(*build).returncode == 0
    released = source.read_bytes()
    source.write_text("#error changed\n")
    source.with_name("more.c").write_text("#error more\n")
    again = cmake(*build)
    assert again.returncode == 0, again.stdout
    assert source.read_bytes() == released and not source.with_name("more.c").exists()
    assert not (tmp_path / "PWNED").exists()
