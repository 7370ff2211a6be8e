"""The measures of plain writing find their places in a small checkout."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("words", ROOT / "tools" / "words.py")
words = importlib.util.module_from_spec(spec)
spec.loader.exec_module(words)

PYTHON = '''"""Tools of a robot."""


def speed(how):
    """What the robot tells of its speed.

    Parameters
    ----------
    how : a word of the caller
    mode : another word
    """
    return how  # a reason
'''
CPP = """// Rigid bodies.
/// Where the body is.
int place(int mode);
"""
PAGE = f"# What there is\n\n```\n# What a comment is\n```\n\n{'word ' * 31}.\n\n- An item.\n- Another item.\n"


@pytest.fixture
def report(tmp_path):
    for name, text in (("python/a.py", PYTHON), ("cpp/a.hpp", CPP), ("docs/a.md", PAGE)):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text)
    return words.measured(tmp_path)


def test_places(report):
    assert report.places["summaries"] == [
        "python/a.py:4: What the robot tells of its speed.",
        "cpp/a.hpp:2: Where the body is.",
    ]
    assert [place.split(": ")[:2] for place in report.places["voice"]] == [["python/a.py:4", "tells"]]
    assert report.places["names"] == ["python/a.py:4: how", "python/a.py:12: how"]
    assert [place.split(": ")[0] for place in report.places["sentences"]] == ["docs/a.md"]
    assert report.places["headings"] == ["docs/a.md: What there is"]


def test_shares(report):
    assert report.value("summaries") == pytest.approx(100 * 2 / 4)
    assert report.value("headings") == 1.0
    assert report.totals["identifiers"] == 9


def test_entries_of_a_section_are_separate_sentences():
    assert [*words.sentences(PYTHON.split('"""')[3])] == [
        "What the robot tells of its speed.",
        "Parameters",
        "how : a word of the caller",
        "mode : another word",
    ]
