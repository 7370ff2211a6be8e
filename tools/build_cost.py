#!/usr/bin/env python3
"""Measure the CPU cost of a build, and compare it with the stored cost.

    python3 tools/build_cost.py --python .venv/bin/python [--log FILE] [--keep] "COMMAND"

COMMAND is a shell line that builds and installs sarrus for that Python; the machine should be idle. The tool prints three figures: the CPU seconds of
COMMAND, their ratio to the CPU seconds of compiling benchmarks/build_yardstick.cpp (so that machines are comparable), and the memory of the largest
process, a compiler. benchmarks/build_cost.json stores the ratio and the memory for each instruction set level and compiler. The exit code is 1 if
either exceeds its stored value by more than 20 %. Levels and compilers without stored values pass. --keep stores the measured values instead of
comparing them. The tool also lists the slowest compilation units in ninja's log.
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
MOST = 1.2  # largest allowed ratio of a measured value to its stored value
SHOWN = 8  # number of listed compilation units
CXX = os.environ.get("CXX", "c++")


def cpu_seconds() -> float:
    """Return the CPU seconds of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def yardstick() -> float:
    """Return the CPU seconds of compiling benchmarks/build_yardstick.cpp.

    Several copies are compiled in parallel as in a build, because hardware threads that share a core slow each other down.
    """
    copies, before = os.cpu_count() or 1, cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        compilers = [
            subprocess.Popen([CXX, "-std=c++17", "-O3", "-c", YARDSTICK, "-o", f"{folder}/{k}.o"])
            for k in range(copies)
        ]
        # wait for all compilers, so that their CPU time is counted
        statuses = [compiler.wait() for compiler in compilers]
        if any(statuses):
            sys.exit(f"{CXX} does not compile {YARDSTICK}")
    return (cpu_seconds() - before) / copies


def compiler() -> str:
    """Return the compiler's family and major version, such as GCC 12."""
    version = subprocess.run([CXX, "--version"], capture_output=True, text=True, check=True).stdout
    number = subprocess.run([CXX, "-dumpversion"], capture_output=True, text=True, check=True).stdout
    return f"{'Clang' if 'clang' in version else 'GCC'} {number.partition('.')[0].strip()}"


def slowest_units() -> list[tuple[float, str]]:
    """Return wall time [s] and object file of the slowest units of the last build, from ninja's log."""
    logs = sorted(ROOT.glob("build/*/.ninja_log"), key=lambda log: log.stat().st_mtime)
    lines = logs[-1].read_text().splitlines()[1:] if logs else []
    times = {name: (int(end) - int(start)) / 1e3 for start, end, _, name, *_ in (line.split("\t") for line in lines)}
    return sorted(((time, name) for name, time in times.items() if name.endswith(".o")), reverse=True)[:SHOWN]


def main() -> int:
    """Return 1 if the command fails or costs too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", help="shell line that builds and installs sarrus")
    parser.add_argument(
        "--python", required=True, help="Python for which the command installs sarrus; determines the level"
    )
    parser.add_argument("--log", help="file for the output of the command")
    parser.add_argument("--keep", action="store_true", help="store the figures in benchmarks/build_cost.json")
    options = parser.parse_args()

    units = [yardstick()]
    before = cpu_seconds()
    with open(options.log or os.devnull, "w") as log:
        output = log if options.log else None
        status = subprocess.call(options.command, shell=True, stdout=output, stderr=output and subprocess.STDOUT)
    seconds = cpu_seconds() - before
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6  # [GB]; ru_maxrss is in kilobytes on Linux
    if status:
        print(
            "\n".join(Path(options.log).read_text().splitlines()[-200:]) if options.log else "",
            f"\nfailed: {options.command}",
        )
        return 1
    units.append(yardstick())  # measured before and after the build, because the machine's speed may change
    unit = sum(units) / len(units)

    query = [options.python, "-c", "import sarrus; print(sarrus.build_info()['isa'])"]
    level = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    key, measured = f"{level} {compiler()}", {"CPU seconds over yardstick": seconds / unit, "peak [GB]": peak}
    print(f"{key}: {seconds:.0f} CPU seconds; the yardstick takes {units[0]:.2f} before and {units[1]:.2f} after")
    stored = json.loads(KEPT.read_text())
    if options.keep:
        stored[key] = {name: float(f"{value:.3g}") for name, value in measured.items()}
        KEPT.write_text(json.dumps(stored, indent=2, sort_keys=True) + "\n")
    dearer = False
    for name, value in measured.items():
        if key not in stored:
            print(f"  {name:<28} {value:8.3g}   (no stored value for this level and compiler)")
            continue
        ratio = value / stored[key][name]
        dearer |= ratio > MOST
        print(
            f"  {name:<28} {value:8.3g}   stored {stored[key][name]:g}, {ratio:.2f} of it" + " FAILED" * (ratio > MOST)
        )
    for time, name in slowest_units():
        print(f"  {time:6.1f} s  {re.sub(r'CMakeFiles/|[.]dir', '', name)}")
    return int(dearer)


if __name__ == "__main__":
    sys.exit(main())
