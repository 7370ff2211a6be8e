"""Checks of a wheel that is installed in this environment: `python tools/check_wheel.py WHEEL`."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import sarrus

LARGEST = 5_000_000
NOTICES = ("LICENSE", "licenses/DAQP.txt", "licenses/Eigen.txt", "licenses/pybind11.txt")
# compiled-in components, whose releases the wheel must list
COMPONENTS = {"DAQP", "Eigen", "pybind11"}
# for each level: number of levels that must be available on a processor whose best level it is
LEVELS = {"x86-64-v4": 3, "x86-64-v3": 2, "baseline": 1}


def main() -> None:
    """Check size, contents and levels."""
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
        f"size {wheel.stat().st_size} bytes; at most {LARGEST}": wheel.stat().st_size > LARGEST,
        f"missing notices: {', '.join(lacking)}": bool(lacking),
        f"component list {listed} without the release of {', '.join(unlisted)}": bool(unlisted),
        "missing stubs of the core": "sarrus/_core/__init__.pyi" not in names,
        "not a manylinux wheel": "manylinux" not in wheel.name,
        f"the processor has {build['processor']}, but {build['isa']} runs": build["isa"] != build["processor"],
        f"missing levels; available: {build['available']}": len(build["available"]) != LEVELS[build["processor"]],
        f"sarrus is imported from {sarrus.__file__}, not from site-packages": "site-packages"
        not in (sarrus.__file__ or ""),
    }
    failed = [fault for fault, holds in faults.items() if holds]
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {build}")
    if failed:
        raise SystemExit("failed: " + "; ".join(failed))


if __name__ == "__main__":
    main()
