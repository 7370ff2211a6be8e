"""What must hold of a wheel that is installed here: `python tools/check_wheel.py WHEEL`."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import sarrus

LARGEST = 5_000_000
NOTICES = ("LICENSE", "licenses/DAQP.txt", "licenses/Eigen.txt", "licenses/pybind11.txt")
# what is compiled in, of which the wheel says which release it is
COMPONENTS = {"DAQP", "Eigen", "pybind11"}
# of the levels that this processor has, each must be inside
LEVELS = {"x86-64-v4": 3, "x86-64-v3": 2, "baseline": 1}


def main() -> None:
    """Size, contents, levels."""
    wheel = Path(sys.argv[1])
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        (metadata,) = (name.removesuffix("METADATA") for name in names if name.endswith(".dist-info/METADATA"))
        listed = f"{metadata}sboms/sarrus.cdx.json"
        components = json.loads(opened.read(listed))["components"] if listed in names else []
    lacking = [notice for notice in NOTICES if f"{metadata}licenses/{notice}" not in names]
    unlisted = sorted(COMPONENTS - {part["name"] for part in components if part.get("version")})
    build = sarrus.build_info()
    faults = {
        f"it has {wheel.stat().st_size} bytes: more than {LARGEST}": wheel.stat().st_size > LARGEST,
        f"notices are not in it: {', '.join(lacking)}": bool(lacking),
        f"its list of components, {listed}, has no release of {', '.join(unlisted)}": bool(unlisted),
        "stubs of the core are not in it": "sarrus/_core/__init__.pyi" not in names,
        "it is not for manylinux": "manylinux" not in wheel.name,
        f"the processor has {build['processor']}; it runs {build['isa']}": build["isa"] != build["processor"],
        f"levels are lacking; there are {build['available']}": len(build["available"]) != LEVELS[build["processor"]],
        f"sarrus is taken from {sarrus.__file__}": "site-packages" not in (sarrus.__file__ or ""),
    }
    found = [fault for fault, holds in faults.items() if holds]
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {build}")
    if found:
        raise SystemExit("no: " + "; ".join(found))


if __name__ == "__main__":
    main()
