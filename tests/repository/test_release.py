"""tools/release.py reports obstacles to a release, and a release makes the expected changes."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = spec_from_file_location("release", ROOT / "tools" / "release.py")
release = module_from_spec(SPEC)
SPEC.loader.exec_module(release)


@pytest.fixture
def texts():
    read = {path: (ROOT / path).read_text(encoding="utf-8") for path in (*release.PLACES, release.CHANGELOG)}
    read[release.CHANGELOG] = "# Changelog\n\n## [Unreleased]\n\n- something\n\n## [0.1.0]\n"
    return read


def test_the_version_is_the_same_everywhere(texts):
    assert len({*release.versions(texts).values()}) == 1


@pytest.mark.parametrize(
    ("version", "tags", "status", "fault"),
    [
        ("99.0.0", ["v99.0.0"], "", "there is a tag"),
        ("0.0.1", [], "", "not later than"),
        ("99.0", [], "", "three numbers"),
        ("99.0.0", [], " M README.md", "not committed"),
    ],
)
def test_what_stands_in_the_way_is_said(texts, version, tags, status, fault):
    assert [fault in said for said in release.faults(version, texts, tags, status)] == [True]


def test_a_release_needs_news_and_one_version(texts):
    assert release.faults("99.0.0", texts, [], "") == []
    texts[release.CHANGELOG] = "## [Unreleased]\n\n## [0.1.0]\n"
    texts["CITATION.cff"] = "version: 0.0.7\n"
    assert len(release.faults("99.0.0", texts, [], "")) == 2


def test_a_release_changes_versions_and_the_changelog(texts):
    made = release.changed("99.0.0", texts, "2030-01-02")
    assert {*release.versions(made).values()} == {"99.0.0"}
    assert "## [Unreleased]\n\n## [99.0.0] - 2030-01-02\n\n- something" in made[release.CHANGELOG]
    assert made["CITATION.cff"].count("date-released: 2030-01-02") == 1
    for path in ("pyproject.toml", "python/sarrus/_build.py"):
        assert [*map(len, map(str.splitlines, (made[path], texts[path])))] == [len(texts[path].splitlines())] * 2
        assert len(re.findall("99.0.0", made[path])) == 1
