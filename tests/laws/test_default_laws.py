"""Explicit defaults have no effect, for all public functions, by inspection."""

import inspect

import numpy as np
import pytest

import sarrus
from tests.public import ANY, ROWS, ask, case, leaves, public

# what a None, or another default, stands for, where a caller can say it in full
MEANT = {
    "actuated": lambda c: [c.robot.actuated, list(c.robot.actuated)],
    "wrenches": lambda c: [{}],
    "weights": lambda c: [1.0, np.ones(c.robot.nu)],
    "preload": lambda c: [0.0, [0.0] * c.robot.nu],
    "limits": lambda c: [(-np.inf, np.inf)],
    "base_velocity": lambda c: [np.zeros(6)],
    "base_acceleration": lambda c: [np.zeros(6)],
    "time": lambda c: [0.0],
    "locked": lambda c: [(), []],
    "frames": lambda c: [{}],
    "restitution": lambda c: [0],
    "expressed_in": lambda c: ["frame"],
    "end_points": lambda c: [[]],
}


def test_every_public_function_is_in_the_table():
    assert set(public()) == set(ROWS)


def differ(one, other):
    """Return True if two results differ in any bit."""
    one, other = leaves(one), leaves(other)
    return one.keys() != other.keys() or any(not equal(x, other[name]) for name, x in one.items())


def equal(x, y):
    return np.array_equal(x, y, equal_nan=x.dtype.kind in "fc" and y.dtype.kind in "fc")


@pytest.mark.parametrize("which", ANY)
def test_a_default_that_is_spelled_out_changes_nothing(which):
    """Each default alone and all at once, as in the signature, and the full value for None."""
    c, wrong = case(which), []
    for name, signature in public().items():
        row = ROWS[name]
        if row.args is None or which not in row.of:
            continue
        given = [p for p in signature.parameters if p not in ("self", "robot")][: len(row.args(c))]
        defaults = {
            p.name: p.default
            for p in signature.parameters.values()
            if p.default is not inspect.Parameter.empty and p.name not in (*given, *row.more(c))
        }
        if name == "random":
            defaults.pop("rng", None)
        plain, tried = ask(c.robot, name, c), [{option: default} for option, default in defaults.items()]
        for option in defaults:
            for said in MEANT.get(option, lambda c: [])(c):
                if (option == "actuated" and "mobility" in name) or (option == "time" and name == "follow"):
                    continue
                tried.append({option: said})
        for said in (*tried, defaults):
            try:
                if differ(plain, ask(c.robot, name, c, **said)):
                    wrong.append((name, said))
            except (TypeError, ValueError) as error:
                wrong.append((name, said, error))
    assert not wrong


CONSTRUCTED = {
    "Builder": (),
    "Revolute": ("y",),
    "Prismatic": ("x",),
    "Helical": ("x", 0.1),
    "Cylindrical": ("z",),
    "Universal": ("x", "y"),
    "Planar": ("z",),
    "Spherical": (),
    "Free": (),
    "Fixed": (),
    "Gimbal": (("rx", "tz"),),
    "Inertia": (1.0, (0, 0, 0), np.eye(3)),
    "Rotation": (),
    "Transform": (),
}


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_constructors(name):
    """Joints, inertias and placements with explicit defaults equal those without."""
    make = getattr(sarrus, name)
    signature, args = inspect.signature(make), CONSTRUCTED[name]
    defaults = {p.name: p.default for p in list(signature.parameters.values())[len(args) :]}
    plain = make(*args)
    for given in (*({key: x} for key, x in defaults.items()), defaults):
        made = make(*args, **given)
        if name == "Builder":
            plain.add_body("b"), made.add_body("b"), plain.add_joint("j", sarrus.Revolute("y"), "ground", "b")
            made.add_joint("j", sarrus.Revolute("y"), "ground", "b")
            assert made.build() == plain.build()
            plain = make(*args)
        else:
            assert made == plain, given


def test_gallery():
    """Every mechanism of the gallery with explicit defaults."""
    for name in sarrus.mechanisms.__all__:
        make = getattr(sarrus.mechanisms, name)
        defaults = {p.name: p.default for p in inspect.signature(make).parameters.values()}
        if inspect.Parameter.empty not in defaults.values():
            assert make(**defaults) == make(), name


def test_runs():
    """simulate() with each of its defaults explicit."""
    c = case("four-bar")
    signature = inspect.signature(sarrus.simulate)
    given = ("mechanism", "q", "v", "duration")
    defaults = {p.name: p.default for p in signature.parameters.values() if p.name not in given}
    plain = sarrus.simulate(c.robot, c.q, c.v, 0.02)
    for option in (*({key: x} for key, x in defaults.items()), defaults):
        run = sarrus.simulate(c.robot, c.q, c.v, 0.02, **option)
        np.testing.assert_array_equal(run.q, plain.q, err_msg=str(option))
        np.testing.assert_array_equal(run.v, plain.v, err_msg=str(option))
