"""`python -m benchmarks.machine`, and the example script for models."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sarrus
from benchmarks import machine

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_script_that_models_start_from():
    """The script runs without a warning, and prints its subject."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "crank_rocker.py"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for printed in (
        "Mechanism 'crank-rocker': 3 bodies",
        "Mobility of 'crank-rocker'",
        "largest motor torque at 3.14 rad/s: 7.44 N m",
        "loop error",
    ):
        assert printed in done.stdout


def test_the_machine_beside_its_earlier_run(capsys, monkeypatch, tmp_path):
    """Comparison with the stored earlier run of the machine, or with a named file; a broken earlier file is not an error of this run."""
    monkeypatch.setattr(machine, "MEASURED", 0.0)
    monkeypatch.setattr(machine, "STATES", 16)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert machine.main(["--json", str(tmp_path / "first.json")]) == 0
    assert "Times as fast" not in capsys.readouterr().out
    kept = tmp_path / "cache" / "sarrus" / "machine.json"
    first = json.loads(kept.read_text())
    assert first == json.loads((tmp_path / "first.json").read_text())
    # ten times as slow it was once, in another compiler, and had no chain of 30
    for row in first["models"].values():
        row |= {what: 1e4 * x for what, x in row.items()}
    del first["models"]["chain of 30"]
    first["compiler"] = "abacus"
    kept.write_text(json.dumps(first))
    assert machine.main([]) == 0
    out = capsys.readouterr().out
    ratios = out[out.index("Times as fast") :].splitlines()
    assert "that was with compiler abacus" in out
    assert all(float(x) > 100.0 for x in next(line for line in ratios if line.startswith("hslm ")).split()[1:])
    assert next(line for line in ratios if line.startswith("chain of 30")).split()[3:] == ["-"] * 6
    for row in first["models"].values():
        row |= {what: 1e-8 * x for what, x in row.items()}
    (tmp_path / "fast.json").write_text(json.dumps(first))
    assert machine.main(["--against", str(tmp_path / "fast.json")]) == 0
    assert "0.00*" in capsys.readouterr().out
    kept.write_text("{}")
    assert machine.main([]) == 0
    assert "Times as fast" not in capsys.readouterr().out
    (tmp_path / "fast.json").write_text("[]")
    with pytest.raises(ValueError, match=r"fast\.json: not what `python -m benchmarks\.machine --json` writes"):
        machine.main(["--against", str(tmp_path / "fast.json")])
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        machine.main(["--against", "none.json"])
    with pytest.raises(FileNotFoundError, match=r"x\.json"):
        machine.main(["--json", str(tmp_path / "no/such/x.json")])


def test_the_machine(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(machine, "MEASURED", 0.0)
    monkeypatch.setattr(machine, "STATES", 16)
    path = tmp_path / "machine.json"
    assert machine.main(["--json", str(path)]) == 0
    out, err = capsys.readouterr()
    info = sarrus.build_info()
    assert info["isa"] in out.splitlines()[0] and "python -m benchmarks" in out and not err
    written = json.loads(path.read_text())
    assert written["isa"] == info["isa"] and written["unit"] == "ns" and written["threads"] >= 1
    assert {"four_bar", "hslm", "chain of 30"} <= set(written["models"])
    for name, numbers in written["models"].items():
        assert all(x > 0 for key, x in numbers.items() if key != "nc")
        shown = next(line for line in out.splitlines() if line.startswith(f"{name} "))
        assert shown.endswith(f"{numbers['batch_forward_dynamics']:,.0f}")
    assert all(len(line) <= 80 for line in out.splitlines()[1:-1]), "a terminal's width"
