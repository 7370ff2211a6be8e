"""Write the results in the folder ``results`` into the pages that quote them: ``python -m benchmarks.pages``. A test checks that both agree.

``python -m benchmarks --TABLE --json benchmarks/results`` measures a table again; ``python docs/pictures`` draws the README's chart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from . import dynamics, engines, position, tables
from .rows import Result
from .tables import HERE, Row, markdown

ROOT = HERE.parent
PAGES = ("README.md", "docs/speed.md")
# text between a comment and its closing comment, or the next heading
BLOCK = re.compile(r"(<!-- benchmark: (.+?) -->\n).*?(?=<!-- /benchmark -->|\n## )", re.DOTALL)

# problem of --engines -> time step that is displayed [s], if it is not 1 ms
SHOWN = {"gripper lifts a cube": 2e-3, "walker of twelve motors, stands": 4e-3, "DR Legs, stands": 4e-3}

# rows of the README's table: label -> (group, algorithm, model)
README = {
    "Panda, inverse dynamics, one state, C++": ("cpp", "rnea", "panda"),
    "Panda, forward dynamics, one state, from Python": ("python", "aba", "panda"),
    "Talos, inverse dynamics, 10,000 states, one thread": ("batch", "rnea", "talos"),
    "ladder of 64 four-bars, forward dynamics, one state, C++": ("loops-cpp", "loops", "ladder64"),
}


def kept(table: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the machine's facts and the rows of a measured table."""
    contents = json.loads((HERE / "results" / f"{table}.json").read_text(encoding="utf-8"))
    return contents["facts"], contents["rows"]


def written(page: str) -> str:
    """Return the text of a page with its blocks replaced by the results."""
    return BLOCK.sub(lambda block: block[1] + BLOCKS[block[2]]().rstrip() + "\n", page)


def _seen(table: str, *peers: str) -> str:
    facts, _ = kept(table)
    versions = ", ".join(f"{peer} {facts['peers'][peer]}" for peer in peers if peer in facts["peers"])
    labels = (facts["processor"], f"sarrus {facts['sarrus']}", versions)
    return f"Seen on {facts['date'][:10]}: {'; '.join(filter(None, labels))}."


def _goals() -> str:
    """Return the goals of the table of dynamics beside what was measured on two processors, with AVX-512 and with AVX2."""
    levels, where = {}, []
    for level, table in (("AVX-512", "dynamics"), ("AVX2", "avx2/dynamics")):
        levels[level] = {"dynamics": dynamics.seen([Result(**row) for row in kept(table)[1]])}
        where.append(f"{level}: {_seen(table, 'pin', 'mujoco')}")
    return "\n".join([*where, *tables.summary(levels).splitlines()[1:]])


def _dynamics() -> str:
    rows = [Result(**row) for row in kept("dynamics")[1]]
    templates = kept("dynamics")[0]["Pinocchio's templates"]
    return f"{_seen('dynamics', 'pin', 'mujoco')} Pinocchio's templates by {templates}. Medians, and ratios with their quartiles:\n\n{dynamics.markdown(rows)}"


def _engines(part: Callable[[Sequence[Any]], list[str]], kind: type) -> str:
    rows = [row for row in kept("engines")[1] if ("runs" in row) == (kind is engines.Cost)]
    if kind is engines.Cost:
        return "\n".join(part([engines.Cost(**row) for row in rows]))
    results = [engines.Row(**{key: float("nan") if x is None else x for key, x in row.items()}) for row in rows]
    return "\n".join(part([row for row in results if row.dt == SHOWN.get(row.problem, 1e-3) and not row.failure]))


def _graphs() -> str:
    return f"{_seen('graphs', 'scipy')}\n\n{markdown('graphs', [Row(**row) for row in kept('graphs')[1]])}"


def _readme() -> str:
    rows = {(r.group, r.algorithm, r.model): r for r in (Result(**row) for row in kept("dynamics")[1])}
    lines = ["| | sarrus | fastest peer | |", "|---|---|---|---|"]
    for what, key in README.items():
        row = rows[key]
        assert row.peer and row.ratio
        show = dynamics.rate if row.group == "batch" else dynamics.microseconds
        peer = row.peer if row.peer.startswith("loop") else "Pinocchio"
        lines.append(
            f"| {what} | {show(row.times['sarrus'])} | {show(row.times[row.peer])}, {peer} | {1 / row.ratio[0]:.1f} times |"
        )
    poses = next(
        row
        for row in map(_position, kept("position")[1])
        if row.what.startswith("Stewart platform: inverse_kinematics, 10,000")
    )
    lines.append(
        f"| inverse kinematics of 10,000 poses of a Stewart platform, one thread | {poses.time * 1e-2:.2g} s | | |"
    )
    return "\n".join([_seen("dynamics", "pin", "mujoco"), "", *lines])


def _position(row: dict[str, Any]) -> position.Row:
    return position.Row(**row)


BLOCKS: dict[str, Callable[[], str]] = {
    "dynamics": _dynamics,
    "goals of dynamics": _goals,
    "engines, where": lambda: _seen("engines", "pin", "mujoco", "drake", "exudyn"),
    "engines, nothing touches": lambda: _engines(engines.smooth, engines.Row),
    "engines, something touches": lambda: _engines(engines.touching, engines.Row),
    "engines, a step": lambda: _engines(engines.of_a_step, engines.Cost),
    "graphs": _graphs,
    "the README's": _readme,
}


if __name__ == "__main__":
    for name in PAGES:
        page = ROOT / name
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
