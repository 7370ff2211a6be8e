"""Common parts of all tables: sizes, installed libraries, facts of the machine, and goals.

The module of a table has a function ``rows(run)``. If the rows are not of type `Row`, the module also has ``markdown(rows)`` and, if there are goals,
``seen(rows)``. If the table has a picture, the module has ``plot(path, rows, run)``.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import sarrus

HERE = Path(__file__).parent

# option -> description; the module has the option's name
TABLES = {
    "dynamics": "trees, closed chains and floating bases, compared with Pinocchio and MuJoCo (the default)",
    "accuracy": "errors of closed chains' accelerations",
    "near-singular": "errors of accelerations near a singular position",
    "simulation": "simulations: time per step, drift of loops and energy",
    "rollout": "many runs, compared with mujoco.rollout, on one thread each",
    "control": "a step of each control law, many runs, and one law by Pinocchio and ProxQP",
    "position": "closing loops and moving frames, single and in batches",
    "derivatives": "derivatives by a state, compared with Pinocchio",
    "variants": "variants of mechanisms, in batches and one by one",
    "graphs": "rings, strips and nets, compared with SciPy's sparse factorisation",
    "engines": "closed chains with and without contact, in all engines",
    "learning": "gradients by PyTorch and JAX compared with the core's, steps of environments",
    "synthesis": "dimensions of a six-bar, compared with SciPy's differential evolution",
    "checks": "cost of the check that states are on the loops",
    "import": "cost of `import sarrus`",
}
# package that tables compare with or need -> name of its module
PEERS = {
    "pin": "pinocchio",
    "mujoco": "mujoco",
    "proxsuite": "proxsuite",
    "scipy": "scipy",
    "drake": "pydrake",
    "exudyn": "exudyn",
    "torch": "torch",
    "jax": "jax",
    "gymnasium": "gymnasium",
    "example-robot-data": "example_robot_data",
    "matplotlib": "matplotlib",
}

T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """Options of a measurement.

    Attributes
    ----------
    size : 0, 1 with ``--quick``, 2 with ``--smoke``
    only : the words of ``--only``
    build_peer, peer_flags : True if Pinocchio's templates may be compiled, and additional compiler flags
    """

    size: int = 0
    only: str = ""
    build_peer: bool = False
    peer_flags: tuple[str, ...] = ()

    def of(self, full: T, quick: T, smallest: T) -> T:
        """Return one of three values, by the size."""
        return (full, quick, smallest)[self.size]

    @property
    def seconds(self) -> float:
        """Return the duration of each row [s]."""
        return self.of(2.0, 0.3, 0.0)

    def tell(self, what: str) -> None:
        print(what, file=sys.stderr)

    def library(self, source: Path) -> Path | None:
        """Return Pinocchio's compiled templates, None if they are not compiled.

        Raises
        ------
        PeerNotBuiltError
            The compilation failed.
        """
        if not installed("pin"):
            return None
        from .peers import PeerNotBuiltError, build_pinocchio_peer

        try:
            return build_pinocchio_peer(self.peer_flags, build=self.build_peer, source=source)
        except PeerNotBuiltError as error:
            if self.build_peer:
                raise
            self.tell(f"{error}; the rows inside C++ have no peer")
            return None


class Goal(NamedTuple):
    """Goal of a measured value."""

    sense: str
    number: float
    unit: str

    def __str__(self) -> str:
        return f"{self.sense} {self.number:g} {self.unit}".rstrip()

    def reached_by(self, seen: float) -> bool:
        return seen >= self.number if self.sense == "at least" else seen <= self.number  # false for NaN


GOALS = {
    table: {name: Goal(*goal) for name, goal in goals.items()}
    for table, goals in json.loads((HERE / "goals.json").read_text(encoding="utf-8")).items()
}


class Row(NamedTuple):
    """Row with one measured value, and the name of its goal if it has one. The value is None if the library that it is compared with is missing."""

    what: str
    seen: float | None
    unit: str = ""
    detail: str = ""


def module(table: str) -> ModuleType:
    """Return the module of a table."""
    return import_module(f".{'imports' if table == 'import' else table.replace('-', '_')}", __package__)


def markdown(table: str, rows: Iterable[Row]) -> str:
    """Return a table of rows with their goals."""
    goals = GOALS.get(table, {})
    lines = ["| what | seen | to reach | |", "|---|---|---|---|"]
    for row in rows:
        goal, told = goals.get(row.what), _told(row.seen, row.unit)
        detail = f"; {row.detail}" if row.detail else ""
        lines.append(f"| {row.what} | {told}{detail} | {goal or ''} | {verdict(row.seen, goal)} |")
    return "\n".join(lines) + "\n"


def verdict(seen: float | None, goal: Goal | None) -> str:
    if goal is None or seen is None:
        return ""
    return "reached" if goal.reached_by(seen) else "**not reached**"


def summary(levels: dict[str, dict[str, dict[str, float | None]]]) -> str:
    """Return a summary of the measured values and their goals. `levels`: for each instruction set level and table, the values of the rows."""
    titles = " | ".join(f"seen, {level}" for level in levels) if len(levels) > 1 else "seen"
    lines = [f"| table | what | {titles} | to reach | |", "|---|---|" + "---|" * len(levels) + "---|---|"]
    judged = []
    for table in next(iter(levels.values())):
        for name, goal in GOALS.get(table, {}).items():
            numbers = [seen.get(table, {}).get(name) for seen in levels.values()]
            judged += [goal.reached_by(number) for number in numbers if number is not None]
            unit = goal.unit if goal.unit in UNITS else ""
            told = " | ".join("not measured" if number is None else _told(number, unit) for number in numbers)
            verdicts = ", ".join(filter(None, (verdict(number, goal) for number in numbers)))
            lines.append(f"| {table} | {name} | {told} | {goal} | {verdicts} |")
    if not judged:
        return "No goal was measured.\n"
    lines += ["", f"{sum(judged)} of {len(judged)} goals reached."]
    return "\n".join(["## Summary", "", *lines]) + "\n"


def other_levels() -> list[str]:
    """Return the instruction set levels with which a run is repeated: all that the build contains and this processor supports, other than the loaded
    one and the baseline. None if the environment variable SARRUS_ISA selects a level.
    """
    info: dict[str, Any] = sarrus.build_info()
    return [] if os.environ.get("SARRUS_ISA") else [x for x in info["available"] if x not in (info["isa"], "baseline")]


UNITS = ("µs", "ms", "s", "m", "J", "rad")


def _told(seen: float | None, unit: str) -> str:
    return "no peer" if seen is None else f"{seen:.3g} {unit}".rstrip()


# ---- installed libraries and facts --------------------------------------------------------------------------------


def hide_peers() -> None:
    """Hide all packages in `PEERS`; call this function before any of them is imported."""
    sys.modules.update(dict.fromkeys(PEERS.values()))  # type: ignore[arg-type]  # None there is an ImportError


def installed(package: str) -> str | None:
    """Return the version of a package, None if it is not installed or hidden."""
    if package in PEERS and sys.modules.get(PEERS[package], sys) is None:
        return None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def facts(run: Run) -> dict[str, Any]:
    """Return the machine's properties, the date, and the versions of all libraries."""
    entries: dict[str, Any] = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "load": " ".join(f"{x:.2f}" for x in os.getloadavg()) if hasattr(os, "getloadavg") else "",
        "sarrus": "{version}, {compiler}, kernels {isa}".format(**sarrus.build_info()),
        "Python": f"{platform.python_version()}, NumPy {metadata.version('numpy')}",
        "peers": {package: v for package in PEERS if (v := installed(package))},
    }
    if installed("pin"):
        from .peers import FLAGS, cxx, cxx_version

        if shutil.which(cxx()):
            entries["Pinocchio's templates"] = f"{cxx_version()}, {' '.join([*FLAGS[:2], *run.peer_flags])}"
    return entries


def told(facts: dict[str, Any]) -> str:
    """Return the facts as a Markdown list, with the packages that are missing."""
    peers = facts["peers"]
    versions = ", ".join(f"{package} {v}" for package, v in peers.items()) or "none"
    lines = {
        **facts,
        "peers": versions,
        "not installed": ", ".join(package for package in PEERS if package not in peers) or "none",
    }
    return "\n".join(f"- {name}: {value}" for name, value in lines.items()) + "\n"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
        return next(line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
