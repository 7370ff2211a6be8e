"""Speed of sarrus on this machine: inverse dynamics, mass matrix, forward dynamics, steps and batches, compared with an earlier run.

The times are stored in the cache folder ($XDG_CACHE_HOME/sarrus, or ~/.cache/sarrus). A measurement takes a few seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from timeit import Timer
from typing import Any

import numpy as np

import sarrus

MEASURED = 0.12  # duration of each measurement [s]
STATES = 4096  # size of a batch
SIZES: dict[str, dict[str, Any]] = {"four_bar_ladder": {"n": 8}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure times, compare them with an earlier run, and store them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.machine", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the numbers")
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="compare with this file instead of the earlier run"
    )
    options = parser.parse_args(arguments)
    path: Path | None = options.json
    kept = _cache() / "machine.json"
    before = _earlier(options.against or kept, required=options.against is not None)
    machine = {**sarrus.build_info(), "threads": _threads()}
    robots = {
        name: getattr(sarrus.mechanisms, name)(**SIZES.get(name, {}))
        for name in ("stanford_arm", "four_bar", "stewart", "hslm", "four_bar_ladder")
    }
    robots |= {"chain of 7": _chain(7), "chain of 30": _chain(30)}
    print(f"sarrus {machine['version']}, {machine['isa']} in {machine['lanes']} lanes, {machine['compiler']}")
    print(f"[ns], medians; batches of {STATES} on {_threads()} threads\n")
    print(f"{'':<23}{'one state':>27}{'':9}{'each of a batch':>18}")
    heads = ("inverse", "mass", "forward", "rk4 step", "inverse", "forward")
    print(f"{'':<16}{'nv':>3}{'nc':>4}" + "".join(f"{head:>9}" for head in heads))
    rows: dict[str, dict[str, float]] = {}
    for name, robot in robots.items():
        rows[name] = {"nv": robot.nv, "nc": robot.nc, **_measured(robot)}
        numbers = list(rows[name].values())[2:]
        print(f"{name:<16}{robot.nv:>3}{robot.nc:>4}" + "".join(f"{x:9,.0f}" for x in numbers), flush=True)
    print("\nForward dynamics satisfy the loops (nc rows).")
    measured = {**machine, "unit": "ns", "date": time.strftime("%Y-%m-%d %H:%M"), "models": rows}
    if before is not None:
        _compare(before, measured)
    text = json.dumps(measured, indent=2) + "\n"
    with contextlib.suppress(OSError):  # the folder may be read-only
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text, encoding="utf-8")
    print("The comparison with other libraries is `python -m benchmarks`.")
    if path is not None:
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    return 0


def _cache() -> Path:
    """Return the path of the cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sarrus"


def _earlier(path: Path, required: bool) -> dict[str, Any] | None:
    """Return the times of an earlier run, or None if there are none. If `required`, a missing file raises an error."""
    try:
        measured = json.loads(path.read_text(encoding="utf-8"))
        for row in measured["models"].values():
            if not all(isinstance(x, (int, float)) and x >= 0.0 for x in row.values()):
                raise ValueError("a number is none")
        return dict(measured)
    except OSError:
        if required:
            raise
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        if required:
            raise ValueError(f"{path}: not what `python -m benchmarks.machine --json` writes ({error})") from error
    return None


def _compare(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Return the speed relative to an earlier run, for each column of the table."""
    print(
        f"\nTimes as fast as on {before.get('date', 'an earlier day')}, sarrus {before.get('version')}; * where slower by more than a sixth\n"
    )
    for name in ("isa", "lanes", "compiler", "threads"):
        if before.get(name) != now[name]:
            print(f"  that was with {name} {before.get(name)}, this with {now[name]}")
    for name, row in now["models"].items():
        then = before["models"].get(name, {})
        ratios = [then.get(what, 0.0) / x for what, x in row.items() if what not in ("nv", "nc")]
        cells = (f"{'-':>9}" if x == 0.0 else f"{x:>8.2f}{'*' if x < 6.0 / 7.0 else ' '}" for x in ratios)
        print(f"{name:<23}{''.join(cells)}".rstrip())


def _measured(robot: sarrus.Mechanism) -> dict[str, float]:
    """Return the median times [ns] of the most frequent calls."""
    q = robot.assemble()
    v = robot.project_velocity(q, np.ones(robot.nv)) if robot.nc else np.ones(robot.nv)
    run = sarrus.simulate(robot, q, v, 0.1)
    # states along a simulated motion, so that loops are closed
    pick = np.arange(STATES) % len(run)
    many = run.q[pick], run.v[pick], np.zeros((STATES, robot.nv))
    a, M, many_a, tau = np.empty(robot.nv), np.empty((robot.nv, robot.nv)), np.empty_like(many[2]), np.zeros(robot.nv)
    threads = _threads()
    return {
        "inverse_dynamics": _median(lambda: robot.inverse_dynamics(q, v, tau, out=a)),
        "mass_matrix": _median(lambda: robot.mass_matrix(q, out=M)),
        "forward_dynamics": _median(lambda: robot.forward_dynamics(q, v, tau, out=a)),
        "rk4_step": _median(lambda: sarrus.simulate(robot, q, v, 0.1), 100),
        "batch_inverse_dynamics": _median(lambda: robot.inverse_dynamics(*many, out=many_a, threads=threads), STATES),
        "batch_forward_dynamics": _median(lambda: robot.forward_dynamics(*many, out=many_a, threads=threads), STATES),
    }


def _median(work: Callable[[], Any], count: int = 1) -> float:
    """Return the median time [ns] of a call divided by `count`, the number of states that the call evaluates."""
    work()
    timer = Timer(work)
    once = max(timer.timeit(1), 1e-9)
    calls = max(1, round(0.001 / once))
    samples = timer.repeat(max(3, round(MEASURED / (calls * once))), calls)
    return median(samples) / (calls * count) * 1e9


def _chain(n: int) -> sarrus.Mechanism:
    """Return a chain of n rods of 0.3 m with revolute joints perpendicular to the rods."""
    b = sarrus.Builder(f"chain of {n}")
    for k in range(n):
        parent, place = ("ground", (0, 0, 0)) if k == 0 else (f"rod{k - 1}", (0, 0, -0.3))
        b.add_body(f"rod{k}", sarrus.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(0, 0, -0.3)))
        b.add_joint(f"hinge{k}", sarrus.Revolute("xy"[k % 2]), parent, f"rod{k}", at_parent=place)
    return b.build()


def _threads() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main())
