#!/usr/bin/env python3
"""Measure what a build costs the compiler, beside what it cost before.

    python3 tools/build_cost.py --python .venv/bin/python [--log FILE] [--keep] "COMMAND"

COMMAND, a line for a shell, builds and installs sarrus for that Python, on a machine that does nothing else. Printed are its CPU seconds, these
over the CPU seconds of compiling benchmarks/build_yardstick.cpp, so that machines compare, and the memory of its largest process, which is a
compiler. benchmarks/build_cost.json has both figures by instruction set level and compiler: more than a fifth above them exits with 1, and a
level or compiler that has none there passes. --keep writes the measured figures instead. The units of compilation that took longest, of ninja's log,
say where to look.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "benchmarks" / "build_cost.json"
YARDSTICK = ROOT / "benchmarks" / "build_yardstick.cpp"
MOST = 1.2  # times the kept figure
SHOWN = 8  # units of compilation
CXX = os.environ.get("CXX", "c++")


def cpu_seconds() -> float:
    """CPU seconds of all processes that this one has waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def yardstick() -> float:
    """CPU seconds of compiling the fixed file, as many times at once as the build compiles: processors that share a core are slower then."""
    copies, before = os.cpu_count() or 1, cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        compilers = [
            subprocess.Popen([CXX, "-std=c++17", "-O3", "-c", YARDSTICK, "-o", f"{folder}/{k}.o"])
            for k in range(copies)
        ]
        statuses = [compiler.wait() for compiler in compilers]  # of all: they are to be counted
        if any(statuses):
            sys.exit(f"{CXX} does not compile {YARDSTICK}")
    return (cpu_seconds() - before) / copies


def compiler() -> str:
    """Its family and major version, such as GCC 12."""
    said = subprocess.run([CXX, "--version"], capture_output=True, text=True, check=True).stdout
    number = subprocess.run([CXX, "-dumpversion"], capture_output=True, text=True, check=True).stdout
    return f"{'Clang' if 'clang' in said else 'GCC'} {number.partition('.')[0].strip()}"


def slowest_units() -> list[tuple[float, str]]:
    """Seconds by the clock and object file of the units that took longest in the last build, of ninja's log."""
    logs = sorted(ROOT.glob("build/*/.ninja_log"), key=lambda log: log.stat().st_mtime)
    lines = logs[-1].read_text().splitlines()[1:] if logs else []
    times = {name: (int(end) - int(start)) / 1e3 for start, end, _, name, *_ in (line.split("\t") for line in lines)}
    return sorted(((time, name) for name, time in times.items() if name.endswith(".o")), reverse=True)[:SHOWN]


def main() -> int:
    """Return 1 if the command fails or costs too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", help="a line for a shell")
    parser.add_argument("--python", required=True, help="for which the command installs sarrus: it names the level")
    parser.add_argument("--log", help="file for what the command prints")
    parser.add_argument("--keep", action="store_true", help="write the figures to benchmarks/build_cost.json")
    given = parser.parse_args()

    units = [yardstick()]
    before = cpu_seconds()
    with open(given.log or os.devnull, "w") as log:
        output = log if given.log else None
        status = subprocess.call(given.command, shell=True, stdout=output, stderr=output and subprocess.STDOUT)
    seconds = cpu_seconds() - before
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6  # [GB], of kilobytes on Linux
    if status:
        print(
            "\n".join(Path(given.log).read_text().splitlines()[-200:]) if given.log else "",
            f"\nfailed: {given.command}",
        )
        return 1
    units.append(yardstick())  # the machine's speed may have changed meanwhile
    unit = sum(units) / len(units)

    ask = [given.python, "-c", "import sarrus; print(sarrus.build_info()['isa'])"]
    level = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    key, seen = f"{level} {compiler()}", {"CPU seconds over yardstick": seconds / unit, "peak [GB]": peak}
    print(f"{key}: {seconds:.0f} CPU seconds; the yardstick takes {units[0]:.2f} before and {units[1]:.2f} after")
    kept = json.loads(KEPT.read_text())
    if given.keep:
        kept[key] = {name: float(f"{value:.3g}") for name, value in seen.items()}
        KEPT.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")
    dearer = False
    for name, value in seen.items():
        if key not in kept:
            print(f"  {name:<28} {value:8.3g}   (benchmarks/build_cost.json has none for this level and compiler)")
            continue
        ratio = value / kept[key][name]
        dearer |= ratio > MOST
        print(f"  {name:<28} {value:8.3g}   kept {kept[key][name]:g}, {ratio:.2f} of it" + " FAILED" * (ratio > MOST))
    for time, name in slowest_units():
        print(f"  {time:6.1f} s  {re.sub(r'CMakeFiles/|[.]dir', '', name)}")
    return int(dearer)


if __name__ == "__main__":
    sys.exit(main())
