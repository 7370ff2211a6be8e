"""tools/model_files.py: verdicts on the small files of tests/data/same_file."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_verdicts():
    pytest.importorskip("mujoco")
    pytest.importorskip("pinocchio")
    files = ROOT / "tests" / "data" / "same_file"
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / "model_files.py", files], capture_output=True, text=True, check=True
    )
    verdicts = {Path(line.split()[1]).name: line.split()[0] for line in run.stdout.splitlines() if str(files) in line}
    # Pinocchio moves planar joints along x and y
    assert verdicts == {"planar.urdf": "differs"}
    assert "'same': 12" in run.stdout.splitlines()[-1]
