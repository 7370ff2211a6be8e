"""The demonstrations of control: each runs, draws, and tracks as well as it says."""

import importlib
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = tuple(sorted(path.stem for path in (EXAMPLES / "control").glob("*.py") if path.stem != "following"))


@pytest.fixture
def example(monkeypatch):
    """An example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(str(EXAMPLES / "control"))
    return importlib.import_module


@pytest.mark.parametrize("name", NAMES)
def test_demonstration_runs(example, name, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    found = example(name).main(figures=tmp_path, duration=0.2)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert all(np.isfinite(x) for x in found.values())
    assert "here" in capsys.readouterr().out


def test_pole_is_caught_upright(example):
    found = example("swing_up").main()
    assert found["angle at the end [rad]"] < 1e-3 and found["cart, farthest [m]"] < 1.0
