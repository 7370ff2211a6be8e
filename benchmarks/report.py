"""The results as a table, as JSON and as a picture."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import sarrus

from .peers import FLAGS, cxx_version
from .rows import ALGORITHMS, GROUPS, Result


def facts(extra_flags: tuple[str, ...]) -> dict[str, Any]:
    """Where, when and with what the numbers were taken."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "load": " ".join(f"{x:.2f}" for x in os.getloadavg()),
        "sarrus": f"{_version('sarrus')}, {_build_info()}",
        "Pinocchio": f"{_version('pin')}, templates: {cxx_version()}, {' '.join([*FLAGS[:2], *extra_flags])}",
        "MuJoCo": _version("mujoco"),
        "Python": f"{platform.python_version()}, NumPy {_version('numpy')}",
    }


def markdown(
    results: list[Result], facts: dict[str, Any], errors: dict[str, dict[str, float]], titles: dict[str, str]
) -> str:
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    if errors:
        worst = max((e for model in errors.values() for what, e in model.items() if "MuJoCo" not in what), default=0.0)
        lines.append(f"- the libraries agree to {worst:.0e} relative, {len(errors)} models, one state and many")
    tables = {
        "alone-cpp": _calls,
        "loops-cpp": _solvers,
        "loops-growth": _growth,
        "loops-python": _calls,
        "floating-python": _calls,
        "allocations": _allocations,
    }
    for group, heading in GROUPS.items():
        rows = [r for r in results if r.group == group]
        if rows:
            lines += ["", f"**{heading}**", "", *tables.get(group, _comparison)(rows, titles)]
    judged = [r.reached for r in results if r.reached is not None]
    lines += ["", f"{sum(judged)} of {len(judged)} numbers reached."]
    return "\n".join(lines) + "\n"


def _comparison(rows: list[Result], titles: dict[str, str]) -> list[str]:
    """Two sides, of which the first is judged."""
    group = rows[0].group
    show = _microseconds if group in ("cpp", "python") else _rate
    compared = "sarrus / peer" if show is _microseconds else "times as fast"
    mujoco = group == "python" and any("MuJoCo" in r.times for r in rows)
    names = "two threads | one thread" if "threads" in group else "sarrus | fastest peer"
    if group == "loops-batch":
        names = "many states | one state, inside C++"
    if group == "floating-batch":
        names = "many states | one state, from Python"
    lines = [f"| model | function | {names} | {compared} | to reach | |" + (" MuJoCo |" if mujoco else "")]
    lines.append("|---|---|---|---|---|---|---|" + ("---|" if mujoco else ""))
    for r in rows:
        ours = next(iter(r.times.values()))
        peer = "not built"
        if r.peer:
            peer = show(r.times[r.peer]) + ("" if group in ("loops-batch", "floating-batch") else f", {r.peer}")
        line = f"| {titles[r.model]} | {ALGORITHMS[r.algorithm]} | {show(ours)} | {peer} | {_ratio(r)} |"
        line += f" {r.bar} | {_verdict(r)} |"
        if mujoco:
            line += f" {show(r.times['MuJoCo'])} |" if "MuJoCo" in r.times else " |"
        lines.append(line)
    return lines


def _solvers(rows: list[Result], titles: dict[str, str]) -> list[str]:
    """Every side with the relative error of its accelerations."""
    sides = list(rows[0].times)
    peers = "".join(f" {side} |" for side in sides[1:])
    lines = [f"| model | sarrus |{peers} sarrus / faster | to reach | |", "|---" * (len(sides) + 4) + "|"]
    for r in rows:
        cells = " | ".join(f"{_microseconds(t)} ({r.errors[side]:.0e})" for side, t in r.times.items())
        lines.append(f"| {titles[r.model]} | {cells} | {_ratio(r)} | {r.bar} | {_verdict(r)} |")
    return lines


def _growth(rows: list[Result], titles: dict[str, str]) -> list[str]:
    """How much longer each side takes for the long ladder."""
    sides = [side for side in rows[0].times if f"{side}, short" in rows[0].times]
    lines = [f"| model | {' | '.join(sides)} | to reach | |", "|---" * (len(sides) + 3) + "|"]
    for r in rows:
        grown = " | ".join(f"{r.times[side] / r.times[f'{side}, short']:.1f} times" for side in sides)
        lines.append(f"| {titles[r.model]} | {grown} | {r.bar} | {_verdict(r)} |")
    return lines


def _calls(rows: list[Result], titles: dict[str, str]) -> list[str]:
    """Without a peer."""
    lines = ["| model | function | a call | to reach | |", "|---|---|---|---|---|"]
    for r in rows:
        time = _microseconds(next(iter(r.times.values())))
        lines.append(f"| {titles[r.model]} | {ALGORITHMS[r.algorithm]} | {time} | {r.bar} | {_verdict(r)} |")
    return lines


def _allocations(rows: list[Result], titles: dict[str, str]) -> list[str]:
    lines = ["| model | function | allocations a call | to reach | |", "|---|---|---|---|---|"]
    for r in rows:
        count = f"{r.allocations:g}"
        lines.append(f"| {titles[r.model]} | {ALGORITHMS[r.algorithm]} | {count} | {r.bar} | {_verdict(r)} |")
    return lines


def write_json(path: Path, results: list[Result], facts: dict[str, Any], errors: dict[str, dict[str, float]]) -> None:
    rows = [{**asdict(r), "bar": r.bar, "reached": r.reached} for r in results]
    path.write_text(json.dumps({"facts": facts, "differences": errors, "rows": rows}, indent=1) + "\n")


def plot(path: Path, results: list[Result], facts: dict[str, Any], titles: dict[str, str]) -> None:
    """How many times as fast as the fastest peer each row is, with the number to reach as a stroke."""
    from matplotlib.figure import Figure

    rows = [r for r in results if r.ratio and r.group not in ("pin-threads", "loops-growth")]
    groups = [g for g in GROUPS if any(r.group == g for r in rows)]
    figure = Figure(figsize=(9, 1.5 + 0.24 * len(rows)), layout="constrained")
    axes = figure.subplots()
    labels: list[str] = []
    for colour, group in enumerate(groups):
        members = [r for r in rows if r.group == group]
        for r in members:
            assert r.ratio
            y = len(labels)
            median, low, high = (1 / x for x in r.ratio)
            axes.barh(y, median - 1, left=1, color=f"C{colour}", label=GROUPS[group] if r is members[0] else None)
            axes.plot([low, high], [y, y], color="black", linewidth=1)  # quartiles
            if r.target:
                axes.plot([r.target] * 2, [y - 0.5, y + 0.5], color="black", linewidth=2)
            labels.append(f"{titles[r.model]}: {ALGORITHMS[r.algorithm]}")
    axes.set_xscale("log")
    ticks = [1, 2, 4, 8, 16, 32]
    axes.set_xticks(ticks, [f"{t}×" for t in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("times as fast as the fastest peer, or as the legend says; stroke: to reach; line: quartiles")
    axes.set_title(f"sarrus beside its peers, {facts['date']}, {facts['processor']}", fontsize=9)
    figure.legend(loc="outside lower center", fontsize=8)
    figure.savefig(path, dpi=150)


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} µs"


def _rate(seconds: float) -> str:
    return f"{1e-6 / seconds:.3g} M/s"


def _ratio(r: Result) -> str:
    if not r.ratio:
        return ""
    median, low, high = r.ratio if r.group in ("cpp", "python", "loops-cpp") else (1 / x for x in r.ratio)
    return f"{median:.2f} ({min(low, high):.2f} to {max(low, high):.2f})"


def _verdict(r: Result) -> str:
    return {True: "reached", False: "**not reached**", None: ""}[r.reached]


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
        return next(line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _build_info() -> str:
    info = sarrus.build_info()
    return ", ".join(f"{k} {v}" for k, v in info.items()) if isinstance(info, dict) else str(info)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
