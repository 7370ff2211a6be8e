"""An old name says what it is called now, and that is there; the changelog's table lists them all."""

import importlib
import re
from pathlib import Path

import pytest

import sarrus
from sarrus._renamed import RENAMED

CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
OLD = [(owner, name) for owner, names in RENAMED.items() for name in names]


@pytest.mark.parametrize(("owner", "name"), OLD)
def test_an_old_name_tells_the_new_one(owner, name):
    thing = sarrus.mechanisms.pendulum() if owner == "Mechanism" else importlib.import_module(owner)
    with pytest.raises(AttributeError, match=f"{owner}.{name} is now {re.escape(RENAMED[owner][name])}$"):
        getattr(thing, name)
    assert name not in dir(thing)


@pytest.mark.parametrize(("owner", "name"), OLD)
def test_the_new_name_is_there(owner, name):
    found = re.match(r"(sarrus\.(\w+)|Mechanism)\.(\w+)", RENAMED[owner][name])
    if found:
        home = importlib.import_module(f"sarrus.{found[2]}") if found[2] else sarrus.mechanisms.pendulum()
        assert hasattr(home, found[3])


@pytest.mark.parametrize(("owner", "name"), OLD)
def test_the_changelog_lists_it(owner, name):
    table = CHANGELOG.partition("| old | new |")[2].partition("\n\n")[0]
    assert f"`{name}" in table


def test_an_old_keyword_tells_the_new_one():
    robot = sarrus.mechanisms.four_bar()
    with pytest.raises(TypeError, match="as locked="):
        robot.project_configuration(robot.assemble(), fixed=["motor"])
    with pytest.raises(TypeError, match="'known'"):
        robot.complete_velocity(robot.assemble(), given={"motor": 1.0})
    with pytest.raises(TypeError, match="'frames'"):
        robot.inverse_kinematics(targets={})
