"""Type stubs of the extension module that was just linked: ``python tools/make_stubs.py MODULE_FILE FOLDER`` (CMake runs it)."""

import shutil
import sys
from pathlib import Path

import pybind11_stubgen

# what signatures name and a build does not need: stubgen is not to look for it
ELSEWHERE = ("numpy", "numpy.typing", "typing_extensions")
FIRST = "from __future__ import annotations\n"


def main() -> None:
    module, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    name = module.name.split(".")[0]
    shutil.rmtree(folder / name, ignore_errors=True)
    sys.path.insert(0, str(module.parent))  # alone, not as part of the package, which needs NumPy
    unresolved = r"(numpy|typing_extensions)\..*"
    pybind11_stubgen.main([name, "--output-dir", str(folder), "--exit-code", "--ignore-unresolved-names", unresolved])
    for stub in (folder / name).rglob("*.pyi"):
        text = stub.read_text(encoding="utf-8")
        missing = [f"import {m}\n" for m in ELSEWHERE if f"{m}." in text and f"import {m}\n" not in text]
        stub.write_text(text.replace(FIRST, FIRST + "".join(missing), 1), encoding="utf-8")


if __name__ == "__main__":
    main()
