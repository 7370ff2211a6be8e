"""Cost of `import sarrus`, compared with `import numpy`, in alternating new interpreters."""

from __future__ import annotations

import subprocess
import sys
from statistics import quantiles

from .tables import Row, Run

TIMED = "from time import perf_counter; start = perf_counter(); {}; print(perf_counter() - start)"


def rows(run: Run) -> list[Row]:
    """Return times [ms]. The first round, in which Python writes compiled files, is discarded."""
    rounds = run.of(15, 5, 2)
    times: dict[str, list[float]] = {"import numpy": [], "import sarrus": []}
    for _ in range(rounds + 1):
        for statement, found in times.items():
            done = subprocess.run(
                [sys.executable, "-c", TIMED.format(statement)], capture_output=True, text=True, check=True
            )
            found.append(1e3 * float(done.stdout))
    told = [quantiles(seconds[1:], n=4) for seconds in times.values()]
    return [
        Row(what, median, "ms", f"quartiles {low:.0f} to {high:.0f}, {rounds} fresh interpreters")
        for what, (low, median, high) in zip(("import numpy", "import sarrus, NumPy included"), told, strict=True)
    ]
