"""What `import sarrus` costs: fresh interpreters in turns, with NumPy, which it needs, beside it."""

from __future__ import annotations

import subprocess
import sys
from statistics import quantiles

STATEMENTS = ("import numpy", "import sarrus")
TIMED = "from time import perf_counter; start = perf_counter(); {}; print(perf_counter() - start)"
ROUNDS = 15


def rows() -> dict[str, list[float]]:
    """Times of each statement [s]; the first round, which writes compiled files, does not count."""
    times: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for _ in range(ROUNDS + 1):
        for statement, seconds in times.items():
            done = subprocess.run(
                [sys.executable, "-c", TIMED.format(statement)], capture_output=True, text=True, check=True
            )
            seconds.append(float(done.stdout))
    return {statement: seconds[1:] for statement, seconds in times.items()}


def markdown(times: dict[str, list[float]]) -> str:
    """Medians and quartiles [ms]."""
    lines = ["| statement | median [ms] | quartiles |", "|---|---|---|"]
    for statement, seconds in times.items():
        low, median, high = (1e3 * x for x in quantiles(seconds, n=4))
        lines.append(f"| `{statement}` | {median:.0f} | {low:.0f} to {high:.0f} |")
    return "\n".join([*lines, "", f"{ROUNDS} fresh interpreters each; to reach: 150 ms, NumPy included.\n"])
