"""One argument wrong, of all that is public, found by inspection: an error of ours that says so, and never Python's or NumPy's own words."""

import os
import random

import pytest

from tests.effort import SOAK
from tools.fuzz.one_wrong import WRONG, OneWrong

# without a package, or a mechanism with a name for it, there is no right call
UNTRIED = {"Mechanism.configuration", "Mechanism.to_pinocchio", "from_pinocchio", "to_pinocchio"}
EACH = len(WRONG) if SOAK else 5  # of the wrong values
PARTS = 4


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("part", range(PARTS))
def test_one_wrong_argument(part, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    calls = OneWrong()
    told, untried = [], set()
    for target in calls.asked[part::PARTS]:
        if target.key.startswith(("View", "view")):  # its own tests ask them, of a server
            continue
        values = random.Random(target.key).sample(WRONG, EACH)
        found = calls.findings(target, values)
        if found is None:
            untried.add(target.key)
        else:
            told += [f"{what}\n    {'; '.join(program)}" for what, program in found]
    assert not told, f"{len(told)} bad errors, such as\n" + os.linesep.join(told[:10])
    assert untried <= UNTRIED
