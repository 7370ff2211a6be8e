"""Trees, closed chains and floating bases, compared with Pinocchio and MuJoCo, as tables and as a picture. ``python -m benchmarks``"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import floating_rows, loop_rows
from . import rows as tree_rows
from .models import TITLES, models_of
from .rows import ALGORITHMS, GROUPS, Result, Selection
from .tables import Run, installed, verdict

NAMES = TITLES | loop_rows.titles() | floating_rows.TITLES


def rows(run: Run) -> list[Result]:
    """Measure the rows that ``--only`` selects."""
    selection = Selection.of({word for word in run.only.split(",") if word}, NAMES)
    found = tree_rows.measured(models_of(run), run, selection)
    return [*found, *loop_rows.measured(run, selection), *floating_rows.measured(run, selection)]


def seen(rows: Sequence[Result]) -> dict[str, float | None]:
    """Return the measured values by the names of their goals; for allocations the largest value."""
    found = {f"{r.group}, {r.algorithm}, {r.model}": r.seen for r in rows if r.allocations is None}
    counted = [r.allocations for r in rows if r.allocations is not None]
    return found | ({"allocations": max(counted)} if counted else {})


def markdown(rows: Sequence[Result]) -> str:
    """Return a table of each group."""
    lines = []
    tables = {
        "alone-cpp": _calls,
        "loops-cpp": _solvers,
        "loops-growth": _growth,
        "loops-python": _calls,
        "floating-python": _calls,
        "allocations": _allocations,
    }
    for group, heading in GROUPS.items():
        if members := [r for r in rows if r.group == group]:
            lines += [f"**{heading}**", "", *tables.get(group, _comparison)(members, NAMES), ""]
    return "\n".join(lines)


def _comparison(rows: list[Result], titles: dict[str, str]) -> list[str]:
    """Return a table that compares two libraries, the first relative to the second."""
    group = rows[0].group
    show = microseconds if group in ("cpp", "python") else rate
    compared = "sarrus / peer" if show is microseconds else "times as fast"
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
        line += f" {_goal(r)} |"
        if mujoco:
            line += f" {show(r.times['MuJoCo'])} |" if "MuJoCo" in r.times else " |"
        lines.append(line)
    return lines


def _solvers(rows: list[Result], titles: dict[str, str]) -> list[str]:
    """Return a table of all solvers, with the relative error of their accelerations."""
    sides = list(rows[0].times)
    peers = "".join(f" {side} |" for side in sides[1:])
    lines = [f"| model | sarrus |{peers} sarrus / faster | to reach | |", "|---" * (len(sides) + 4) + "|"]
    for r in rows:
        cells = " | ".join(f"{microseconds(t)} ({r.errors[side]:.0e})" for side, t in r.times.items())
        lines.append(f"| {titles[r.model]} | {cells} | {_ratio(r)} | {_goal(r)} |")
    return lines


def _growth(rows: list[Result], titles: dict[str, str]) -> list[str]:
    """Return a table of the factor by which the time of each solver grows for a longer ladder."""
    sides = [side for side in rows[0].times if f"{side}, short" in rows[0].times]
    lines = [f"| model | {' | '.join(sides)} | to reach | |", "|---" * (len(sides) + 3) + "|"]
    for r in rows:
        grown = " | ".join(f"{r.times[side] / r.times[f'{side}, short']:.1f} times" for side in sides)
        lines.append(f"| {titles[r.model]} | {grown} | {_goal(r)} |")
    return lines


def _calls(rows: list[Result], titles: dict[str, str]) -> list[str]:
    """Return a table of the rows without a peer."""
    lines = ["| model | function | a call | to reach | |", "|---|---|---|---|---|"]
    for r in rows:
        time = microseconds(next(iter(r.times.values())))
        lines.append(f"| {titles[r.model]} | {ALGORITHMS[r.algorithm]} | {time} | {_goal(r)} |")
    return lines


def _allocations(rows: list[Result], titles: dict[str, str]) -> list[str]:
    lines = ["| model | function | allocations a call | to reach | |", "|---|---|---|---|---|"]
    for r in rows:
        count = f"{r.allocations:g}"
        lines.append(f"| {titles[r.model]} | {ALGORITHMS[r.algorithm]} | {count} | {_goal(r)} |")
    return lines


def plot(path: Path, results: Sequence[Result], run: Run) -> None:
    """Draw the speed of each row relative to the fastest peer, and mark the goal by a line."""
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
            labels.append(f"{NAMES[r.model]}: {ALGORITHMS[r.algorithm]}")
    axes.set_xscale("log")
    ticks = [1, 2, 4, 8, 16, 32]
    axes.set_xticks(ticks, [f"{t}×" for t in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("times as fast as the fastest peer, or as the legend says; stroke: to reach; line: quartiles")
    axes.set_title(f"sarrus beside Pinocchio {installed('pin')} and MuJoCo {installed('mujoco')}", fontsize=9)
    figure.legend(loc="outside lower center", fontsize=8)
    figure.savefig(path, dpi=150)


def _goal(r: Result) -> str:
    return f"{r.goal or ''} | {verdict(r.seen, r.goal)}"


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} µs"


def rate(seconds: float) -> str:
    return f"{1e-6 / seconds:.3g} M/s"


def _ratio(r: Result) -> str:
    if not r.ratio:
        return ""
    median, low, high = r.ratio if r.group in ("cpp", "python", "loops-cpp") else (1 / x for x in r.ratio)
    return f"{median:.2f} ({min(low, high):.2f} to {max(low, high):.2f})"
