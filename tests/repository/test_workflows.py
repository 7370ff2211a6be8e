"""Workflows with rights to publish use reviewed versions: actions by commit, tools by version."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(workflow):
    uses = re.findall(r"uses:\s*(.*)", workflow.read_text(encoding="utf-8"))
    assert uses and [said for said in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", said)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_tools_are_pinned_by_version(workflow):
    tools = re.findall(r"pipx run (\S+)", workflow.read_text(encoding="utf-8"))
    assert [tool for tool in tools if not re.fullmatch(r"[\w-]+==[\d.]+", tool)] == []


def test_a_commit_has_one_version():
    pins = re.findall(r"uses:\s*([\w./-]+@\w+)  # (\S+)", "\n".join(path.read_text() for path in WORKFLOWS))
    assert len({action.partition("@")[0] for action, _ in pins}) == len(set(pins))
