"""Representations of results in notebooks and terminals: short, well-formed, never raw arrays."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import sarrus
from tests import gallery
from tests.trajectories import fourbar_run

SVG = "{http://www.w3.org/2000/svg}"


def shown(thing):
    page = thing._repr_html_()
    tree = ElementTree.fromstring(f"<body>{page}</body>")  # every element is closed, every name escaped
    assert "array(" not in page and "[[" not in page and "dtype" not in page
    return page, tree


def answers():
    robot = sarrus.mechanisms.four_bar()
    q, rest = robot.assemble(fixed={"motor": 0.5}), np.zeros(3)
    linear = robot.linearize(q, rest)
    run = fourbar_run(11)
    return [
        linear, linear.modes(), robot.mobility(q), robot.mobility(q).actuation, robot.mobility_map(np.array([q, q])),
        robot.constraint("pin2"), robot.joint_wrenches(q, rest, rest), sarrus.formulations.cog_jacobians(robot, q), sarrus.formulations.poe_factors(robot, q), run, run.reactions, run.joint_wrenches(),
        sarrus.formulations.reference_member(sarrus.mechanisms.five_bar(), sarrus.mechanisms.five_bar().assemble(), np.zeros(4), np.zeros(4)),
    ]  # fmt: skip


@pytest.mark.parametrize("answer", answers(), ids=lambda answer: type(answer).__name__)
def test_answers_are_short(answer):
    page, _ = shown(answer)
    assert len(page) < 6000
    assert "array(" not in repr(answer) and len(repr(answer)) < 1000 and "\n" not in repr(answer)


@gallery.every
def test_mechanisms_have_a_picture(mechanism):
    page, tree = shown(mechanism)
    assert len(page) < 12000
    assert "".join(tree.itertext()).startswith(str(mechanism).split("\n")[0])
    svg = next(tree.iter(f"{SVG}svg"))
    width, height = float(svg.get("width")), float(svg.get("height"))
    assert 10.0 < min(width, height) <= max(width, height) <= 220.0
    for path in svg.iter(f"{SVG}path"):
        if path.get("fill") == "none":
            points = np.array(re.findall(r"[ML](\S+?) ([^MLz]+)", path.get("d")), float)
            assert (points >= 0.0).all() and (points <= [width, height]).all()


def test_what_a_picture_shows():
    """The bars end at the joints; earlier configurations of a run are grey."""
    _, tree = shown(fourbar_run(11))
    paths = [path for path in tree.iter(f"{SVG}path") if path.get("fill") == "none"]
    assert [path.get("opacity") for path in paths] == ["0.25", "0.25", "0.25", None]
    _, tree = shown(sarrus.mechanisms.four_bar())
    assert len(list(tree.iter(f"{SVG}circle"))) == 4
    text = "".join(tree.itertext())
    assert "└─ pivot: Revolute('y') ─ rocker" in text


def test_long_trees_and_strange_names():
    page, tree = shown(sarrus.mechanisms.ring(40))
    text = "".join(tree.itertext())
    assert text.count("\n") == 24 and "lines more: print(robot)" in text
    b = sarrus.Builder("</pre><script>alert(1)</script>")
    b.add_body("rod", sarrus.Inertia.rod(1.0, [0, 0, 0], [1, 0, 0], 0.1))
    b.add_joint("pin", sarrus.Revolute("y"), "ground", "rod")
    page, _ = shown(b.build())
    assert "<script>" not in page
    # a loop that cannot be closed is shown as it stands
    b = sarrus.mechanisms.four_bar().to_builder()
    b.add_distance("rod", ("crank", (0, 0, 0)), ("rocker", (0, 0, 0)), length=9.0)
    assert "<svg" in b.build()._repr_html_()
