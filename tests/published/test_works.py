"""docs/works.md: every call of its tables runs, and answers with finite numbers."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "works.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| [^|]+ \| `(\w.*)` \|$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def names():
    """What the page's calls name."""
    found = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/works.md", "exec"), found)
    return found


def numbers(answer):
    """Arrays in an answer, however it holds them."""
    if isinstance(answer, np.ndarray | float):
        yield np.asarray(answer)
    elif isinstance(answer, dict):
        for value in answer.values():
            yield from numbers(value)
    elif isinstance(answer, tuple):
        for value in answer:
            yield from numbers(value)
    elif hasattr(answer, "__dataclass_fields__"):
        for name in answer.__dataclass_fields__:
            yield from numbers(getattr(answer, name))


def test_every_row_is_found():
    tables = [line for line in PAGE.splitlines() if line.startswith("| ") and line.endswith("` |")]
    assert len(ROWS) == len(tables) > 45


@pytest.mark.parametrize(("where", "call"), ROWS, ids=[f"{where}-{k}" for k, (where, _) in enumerate(ROWS)])
def test_call(names, where, call):
    answer = eval(call, dict(names))
    assert answer is not None
    for array in numbers(answer):
        if array.dtype.kind == "f":
            assert not np.isnan(array).any()
