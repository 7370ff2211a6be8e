"""The list of skips that are allowed if everything is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import skips_beside

ALLOWED = Path(__file__).parents[1] / "allowed_skips.txt"


def test_each_line_is_a_test_a_reason_and_why():
    lines = [x for x in ALLOWED.read_text(encoding="utf-8").splitlines() if x and not x.startswith("#")]
    for line in lines:
        test, reason, why = (part.strip() for part in line.split("|"))
        assert reason and why, line
        pattern = test.removeprefix("? ").partition("::")[0].rstrip("*")
        assert list(ALLOWED.parents[1].glob(pattern if pattern.endswith(".py") else pattern + "*")), line


def test_skips_beside_the_list():
    allowed = (
        "# a comment\na.py::test_* | no bread | shops are shut\nb.py::* | no wine | never\n? c.py::* | no salt | here\n"
    )
    skipped = [("a.py::test_one[x]", "Skipped: no bread today"), ("a.py::test_two", "Skipped: no water")]
    unknown, stale = skips_beside(allowed, skipped, {"b.py::test", "c.py::test"})
    assert unknown == ["a.py::test_two: no water"]
    assert stale == ["b.py::* | no wine"]
    assert skips_beside(allowed, skipped[:1], set()) == ([], [])


@pytest.mark.parametrize(("line", "code"), [("", 1), ("* | no bread | shops are shut\n", 0)])
def test_a_run_fails_at_another_skip(line, code, tmp_path):
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_sessionfinish\n")
    (tmp_path / "test_it.py").write_text("import pytest\ndef test_it():\n    pytest.skip('no bread')\n")
    (tmp_path / "allowed.txt").write_text(line)
    root = str(ALLOWED.parents[1])
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", tmp_path, tmp_path],
        env={"PYTHONPATH": root, "SARRUS_ALLOWED_SKIPS": str(tmp_path / "allowed.txt"), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == code, run.stdout + run.stderr
    assert ("not in the list" in run.stdout) == bool(code)
