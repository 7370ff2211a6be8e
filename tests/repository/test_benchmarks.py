"""The benchmark suite: every table is an option and runs, a failing table fails the run, and pages state the measured values.

`python -m benchmarks --smoke`, which CI runs, checks that all tables run with and without peers.
"""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sarrus
from benchmarks import __main__ as suite
from benchmarks import accuracy, pages, rows, tables
from benchmarks.dynamics import NAMES

ROOT = Path(__file__).parents[2]
SMALLEST = tables.Run(2)


def test_every_table_is_an_option():
    """A module with rows that no option names would never run."""
    registered = {Path(tables.module(name).__file__).stem for name in tables.TABLES}
    with_rows = {
        path.stem
        for path in (ROOT / "benchmarks").glob("*.py")
        if re.search(r"^def rows\(run", path.read_text(encoding="utf-8"), re.M)
    }
    assert registered == with_rows
    assert not tables.GOALS.keys() - tables.TABLES.keys()


def table_of(rows):
    return SimpleNamespace(rows=lambda run: list(rows(run)))


def broken(run):
    raise AttributeError("renamed")


def test_a_table_that_raises_fails_and_others_go_on(monkeypatch, capsys):
    made = {
        "checks": table_of(broken),
        "import": table_of(lambda run: [tables.Row("import sarrus, NumPy included", 70.0, "ms")]),
    }
    monkeypatch.setattr(tables, "module", made.__getitem__)
    assert suite.main(["--checks", "--import"]) == 1
    out, err = capsys.readouterr()
    assert "failed: checks: AttributeError: renamed" in err
    assert "| import | import sarrus, NumPy included | 70 ms | at most 150 ms | reached |" in out
    assert suite.main(["--import"]) == 0


def test_smoke_runs_all_tables_in_their_smallest_form_and_again_without_peers(monkeypatch, capsys):
    sizes, again = [], []
    made = dict.fromkeys(tables.TABLES, table_of(lambda run: [tables.Row("", sizes.append(run.size))]))
    monkeypatch.setattr(tables, "module", made.__getitem__)
    process = SimpleNamespace(run=lambda command, check: again.append(command) or SimpleNamespace(returncode=1))
    monkeypatch.setattr(suite, "subprocess", process)
    assert suite.main(["--smoke"]) == 1  # of the second run
    assert sizes == [2] * len(tables.TABLES)
    assert again[0][1:5] == ["-m", "benchmarks", "--smoke", "--without-peers"]
    assert again[0][5:] == [f"--{name}" for name in tables.TABLES]


def test_without_peers_none_is_seen():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--smoke", "--without-peers", "--rollout"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "- peers: none\n" in done.stdout and "rollout: 4 rows" in done.stdout


@pytest.mark.parametrize("name", sorted(tables.GOALS.keys() - {"accuracy", "dynamics", "import"}))
def test_every_goal_is_measured(name):
    """The summary finds each goal by the name of its row."""
    _, _, seen = suite.measured(name, SMALLEST)
    lacking = tables.GOALS[name].keys() - seen.keys()
    assert not {goal for goal in lacking if "Panda" not in goal and "by hand" not in goal}  # which want a robot's file


def test_goals_of_dynamics_are_of_rows():
    for name in tables.GOALS["dynamics"].keys() - {"allocations"}:
        group, algorithm, model = name.split(", ")
        assert group in rows.GROUPS and algorithm in rows.ALGORITHMS and model in NAMES


def test_goals_of_accuracy_are_of_rows():
    row = accuracy.Accuracy("anywhere", "", 1, 1.0, 1e-16, np.nan, 1e-10, 1e-16, 1e-12)
    seen = accuracy.seen([row, replace(row, section="nearly flat", batch_error=2e-9)])
    assert seen.keys() == tables.GOALS["accuracy"].keys()
    assert np.isnan(seen["error, anywhere"]) and seen["error, nearly flat"] == 2e-9
    assert seen["residual that is reported, off by"] == pytest.approx(1e4)


def test_summary_reads_the_goals():
    goals = tables.GOALS["rollout"]
    name, (sense, number, _) = next(iter(goals.items()))
    assert sense == "at least"
    told = tables.summary({"x86-64-v3": {"rollout": {name: number - 1.0}}})
    assert f"| rollout | {name} | 9 | at least 10 times | **not reached** |" in told and "0 of 1 goals reached" in told
    assert told.count("not measured") == len(goals) - 1
    assert "**not reached**" in tables.summary({"x86-64-v3": {"rollout": {name: float("nan")}}})
    both = tables.summary({level: {"rollout": {name: x}} for level, x in (("x86-64-v4", 12.0), ("x86-64-v3", 9.0))})
    assert "| table | what | seen, x86-64-v4 | seen, x86-64-v3 | to reach | |" in both
    assert (
        f"| rollout | {name} | 12 | 9 | at least 10 times | reached, **not reached** |" in both
        and "1 of 2 goals" in both
    )


def test_other_levels_are_measured_in_another_process(monkeypatch, capsys):
    """The second run has the tables and options of the first one, and the kernels of the other level."""
    info = sarrus.build_info()
    assert not {info["isa"], "baseline"} & {*tables.other_levels()}
    row = SimpleNamespace(rows=lambda run: [tables.Row("import sarrus, NumPy included", 100.0, "ms")])
    monkeypatch.setattr(tables, "module", lambda name: row)
    monkeypatch.setattr(tables, "other_levels", lambda: ["other"])
    calls = []

    def run(command, check, env):
        calls.append((command, env["SARRUS_ISA"]))
        values = {"import": {"import sarrus, NumPy included": 200.0}}
        Path(command[command.index("--seen") + 1]).write_text(json.dumps(values))

    monkeypatch.setattr(suite.subprocess, "run", run)
    assert suite.main(["--import", "--quick", "--only", "panda"]) == 0
    ((command, level),) = calls
    assert level == "other"
    assert {"--import", "--quick", "--only=panda"} < {*command} and "--without-peers" not in command
    told = capsys.readouterr().out
    assert f"seen, {info['isa']} | seen, other |" in told
    assert "| 100 ms | 200 ms | at most 150 ms | reached, **not reached** |" in told


@pytest.mark.parametrize("page", pages.PAGES)
def test_pages_state_what_was_measured(page):
    """`python -m benchmarks.pages` writes the pages from stored results."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert pages.written(text) == text
    assert pages.BLOCK.search(text)


def test_every_result_is_stated():
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in pages.PAGES)
    assert {name for _, name in pages.BLOCK.findall(text)} == pages.BLOCKS.keys()


def test_words_about_the_chart_are_of_the_chart():
    bars = re.findall(r">([\d.]+)</text>", (ROOT / "docs/pictures/speed.svg").read_text(encoding="utf-8"))
    low, high = min(bars, key=float), max(bars, key=float)
    assert f"from {low} to {high}]" in (ROOT / "README.md").read_text(encoding="utf-8")
