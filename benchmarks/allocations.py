"""Count of memory allocations in a call with ``out=`` after warm-up, by a preloaded malloc (Linux with glibc).

Python's own allocator is switched off (PYTHONMALLOC=malloc), so that Python objects are counted, too. Objects from Python's free lists (floats,
tuples, frames) are not counted.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

CALLS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def can_count() -> bool:
    """Return True if the counter can be compiled and preloaded on this machine."""
    return sys.platform == "linux" and shutil.which(compiler()) is not None


def compiler() -> str:
    return os.environ.get("CC", "gcc")


def tree_calls(robot: Any, states: int = 64) -> dict[str, list[tuple[Any, ...]]]:
    """Return the arguments of the functions in `CALLS` at random states, in which all loops are closed."""
    rng = np.random.default_rng(0)
    triples = []
    for _ in range(states):
        q, (v, a) = robot.assemble() if robot.nc else robot.random(rng), rng.standard_normal((2, robot.nv))
        triples.append((q, robot.project_velocity(q, v) if robot.nc else v, a))
    return {call: [triple[:1] if call == "mass_matrix" else triple for triple in triples] for call in CALLS}


def count_allocations(robot: Any, calls: Mapping[str, Sequence[tuple[Any, ...]]]) -> dict[str, float]:
    """Return the number of allocations per call with ``out=`` after warm-up, for each function. A separate process counts them.

    Parameters
    ----------
    robot : `sarrus.Mechanism`
    calls : name of a method of `robot` -> list of arguments, one entry for each state
    """
    with tempfile.TemporaryDirectory() as directory:
        counter = Path(directory) / "allocations.so"
        source = Path(__file__).with_name("allocations.c")
        subprocess.run([compiler(), "-O2", "-fPIC", "-shared", str(source), "-o", str(counter)], check=True)
        answer = subprocess.run(
            [sys.executable, "-m", "benchmarks.allocations"],
            input=pickle.dumps({"robot": robot, "calls": dict(calls), "counter": str(counter)}),
            env={**os.environ, "LD_PRELOAD": str(counter), "PYTHONMALLOC": "malloc"},
            cwd=Path(__file__).parents[1],
            capture_output=True,
            check=True,
        )
    counts: dict[str, float] = json.loads(answer.stdout)
    return counts


def _count_here() -> None:
    """Count allocations, in the process that `count_allocations` starts."""
    task = pickle.load(sys.stdin.buffer)
    allocations = ctypes.CDLL(task["counter"]).allocations
    allocations.restype = ctypes.c_ulong

    def nothing(q: object, v: object = None, x: object = None, *, out: object) -> None: ...

    def loop(call: Any, states: Any, out: Any) -> int:
        before = allocations()
        if len(states[0]) == 1:  # avoids call(*arguments), which would allocate memory
            for (q,) in states:
                call(q, out=out)
        else:
            for q, v, x in states:
                call(q, v, x, out=out)
        return int(allocations() - before)

    counts = {}
    for name, pickled in task["calls"].items():
        call = getattr(task["robot"], name)
        states = [list(arguments) for arguments in pickled]
        out = np.empty_like(call(*states[0]))
        for warm in (nothing, call):
            loop(warm, states, out)
        # subtracts an empty loop, because the counting itself allocates memory
        counts[name] = (loop(call, states, out) - loop(nothing, states, out)) / len(states)
    print(json.dumps(counts))


if __name__ == "__main__":
    _count_here()
