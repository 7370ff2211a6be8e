"""Generate type stubs of the extension module after linking: ``python tools/make_stubs.py MODULE_FILE FOLDER`` (called by CMake)."""

import re
import shutil
import sys
from pathlib import Path

import pybind11_stubgen

# modules that signatures refer to, and that need not be installed for a build; stubgen must not import them
ELSEWHERE = ("numpy", "numpy.typing", "typing_extensions")
# patterns for enumerations: members are written as type checkers expect them, and inherited methods are removed
MEMBER, METHODS = (
    re.compile(r"^    (\w+): typing\.ClassVar\[\w+\].*$", re.MULTILINE),
    re.compile(r"(?:    @\w+\n)?    def __\w+__\(.*\n(?: {8}.*\n)+"),
)
ENUM = re.compile(r"^class \w+\(enum\.\w+\):\n(?:(?:    .*)?\n)+", re.MULTILINE)
FIRST = "from __future__ import annotations\n"


def main() -> None:
    module, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    name = module.name.split(".")[0]
    shutil.rmtree(folder / name, ignore_errors=True)
    # stubgen imports the extension module without the package, because the package needs NumPy
    sys.path.insert(0, str(module.parent))
    unresolved = r"(numpy|typing_extensions)\..*"
    pybind11_stubgen.main([name, "--output-dir", str(folder), "--exit-code", "--ignore-unresolved-names", unresolved])
    for stub in (folder / name).rglob("*.pyi"):
        text = stub.read_text(encoding="utf-8")
        text = ENUM.sub(lambda found: MEMBER.sub(r"    \1 = ...", METHODS.sub("", found[0])), text)
        missing = [f"import {m}\n" for m in ELSEWHERE if f"{m}." in text and f"import {m}\n" not in text]
        stub.write_text(text.replace(FIRST, FIRST + "".join(missing), 1), encoding="utf-8")


if __name__ == "__main__":
    main()
