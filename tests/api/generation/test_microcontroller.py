"""examples/embedded: generated C on a Cortex-M4F under qemu, if qemu and the cross-compiler are installed."""

import importlib.util
import shutil
from pathlib import Path

import pytest

PATH = Path(__file__).parents[3] / "examples" / "embedded" / "ankle.py"


def test_ankle_on_a_microcontroller(tmp_path):
    spec = importlib.util.spec_from_file_location("embedded_ankle", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    if missing := [tool for tool in example.NEEDED if shutil.which(tool) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    instructions, said, code, stack, calls = example.run(tmp_path)
    assert instructions < 3000 and code < 12_000 and stack < 600
    assert calls == []
    assert "status 0" in said
    within = float(said.split("within ")[1].split()[0])
    assert within < 1e-5
