"""Allocations in a warm call with ``out=``, counted by a preloaded malloc (Linux with glibc).

Python's own allocator is switched off (PYTHONMALLOC=malloc), so that its objects count as well as the core's memory;
only what Python keeps in free lists (floats, tuples, frames) escapes.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CALLS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def count_allocations(urdf: str, *, floating: bool, states: int = 64) -> dict[str, float]:
    """Allocations a call with ``out=`` after warm-up, by function, in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        counter = Path(directory) / "allocations.so"
        source = Path(__file__).with_name("allocations.c")
        compiler = os.environ.get("CC", "gcc")
        subprocess.run([compiler, "-O2", "-fPIC", "-shared", str(source), "-o", str(counter)], check=True)
        answer = subprocess.run(
            [sys.executable, "-m", "benchmarks.allocations"],
            input=json.dumps({"urdf": urdf, "floating": floating, "states": states, "counter": str(counter)}),
            env={**os.environ, "LD_PRELOAD": str(counter), "PYTHONMALLOC": "malloc"},
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        )
    counts: dict[str, float] = json.loads(answer.stdout)
    return counts


def _count_here() -> None:
    """What the process started by `count_allocations` does."""
    import numpy as np

    import sarrus

    task = json.load(sys.stdin)
    allocations = ctypes.CDLL(task["counter"]).allocations
    allocations.restype = ctypes.c_ulong
    robot = sarrus.loads(task["urdf"], floating_base=task["floating"])
    rng = np.random.default_rng(0)
    states = [
        (robot.random(rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)) for _ in range(task["states"])
    ]
    out, matrix = np.empty(robot.nv), np.empty((robot.nv, robot.nv))

    def nothing(q: object, v: object, x: object) -> None: ...

    def loop(name: str) -> int:
        call: Any = getattr(robot, name, nothing)
        before = allocations()
        if name == "mass_matrix":
            for q, _, _ in states:
                call(q, out=matrix)
        elif name == "nothing":
            for q, v, x in states:
                call(q, v, x)
        else:
            for q, v, x in states:
                call(q, v, x, out=out)
        return int(allocations() - before)

    counts = {}
    for name in CALLS:
        for warm in ("nothing", name):
            loop(warm)
        counts[name] = (loop(name) - loop("nothing")) / len(states)  # the counting itself allocates a little
    print(json.dumps(counts))


if __name__ == "__main__":
    _count_here()
