"""Turns of joints that close loops, which bodies do not count: a run that loses one says so."""

import warnings

import numpy as np
import pytest

import sarrus
from sarrus import Builder, Inertia, Revolute, control


def four_bar(closing, kind):
    """One with something that reads the angle of its pin p, and where it begins: p at -1.9, rest at 1."""
    b = Builder("four-bar", gravity=(0, 0, 0))
    for name, length in ("a", 0.4), ("b", 1.1), ("c", 0.9):
        b.add_body(name, Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.01))
    own = {"stiffness": 5.0, "rest": 1.0} if kind == "spring" else {}
    for name, parent, child, at_parent, at_child in (
        ("m", "ground", "a", 0.0, 0.0), ("p1", "a", "b", 0.4, 0.0), ("p", "ground", "c", 1.0, 0.0), ("p2", "b", "c", 1.1, 0.9),
    ):  # fmt: skip
        b.add_joint(
            name, Revolute("y", **(own if name == "p" else {})), parent, child, at_parent=(at_parent, 0, 0),
            at_child=(at_child, 0, 0), tree=name != closing, loop=name == closing,
        )  # fmt: skip
    robot = b.build()
    q = robot.assemble(fixed={"m": 0.5}, near={"p": -1.9})
    acts = {
        "spring": None,
        "pid": control.PID("p", proportional=5.0, target=1.0),
        "sampled": control.Sampled(control.PID("p", proportional=5.0, target=1.0), 0.01),
        "stop": control.EndStop("p", limits=(0.5, 1.5), stiffness=5.0),
    }
    return robot, q, acts[kind]


@pytest.mark.parametrize("kind", ["spring", "pid", "sampled", "stop"])
def test_a_turn_that_is_lost_is_said(kind):
    """Of a joint that closes a loop, more than half a turn from rest; the tree's joints count turns."""
    robot, q, acts = four_bar("p", kind)
    v = robot.velocities(q, {"p": -6.0})
    with pytest.warns(sarrus.TurnWarning, match=r"joint 'p' closes a loop .* more than half a turn from .* tree=True"):
        sarrus.simulate(robot, q, v, 0.3, acts)
    with pytest.warns(sarrus.TurnWarning, match="joint 'p'"):
        sarrus.simulate_many(robot, np.stack([q, q]), np.stack([0 * v, v]), 0.3, acts, every=10)
    for closing, begun in (("p2", v), ("p", 0 * v)):  # in the tree, and where it does not come so far
        robot, start, acts = four_bar(closing, kind)
        with warnings.catch_warnings():
            warnings.simplefilter("error", sarrus.TurnWarning)
            speed = 0.0 if not begun.any() else -6.0
            sarrus.simulate(robot, start, robot.velocities(start, {"p": speed}), 0.05, acts)
