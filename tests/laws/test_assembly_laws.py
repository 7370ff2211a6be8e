"""Invariance of assembled configurations, their branch and their number of turns.

Spanning tree, order of the description, axes of the world, size of the mechanism and redundant inputs have no effect.
"""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from tests.variants import moved, recut, reordered, scaled

mechanisms = sarrus.mechanisms

SAME = 1e-7  # rad and sizes of the bodies: a configuration near a double root is known to the square root of rounding
JOINTS = ("m", "p1", "p", "p2")


def four_bar(closing, limits=None):
    """Return a four-bar with pins m, p1, p2, p in a row; one of them is the loop joint."""

    def where(name):
        return {"tree": name != closing, "loop": name == closing}

    def pin(name):
        return sarrus.Revolute("y", limits=(limits or {}).get(name))

    b = sarrus.Builder("four-bar")
    for name, length in (("a", 0.4), ("b", 1.1), ("c", 0.9)):
        b.add_body(name, sarrus.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0), 0.01))
    b.add_joint("m", pin("m"), "ground", "a", actuated=True, **where("m"))
    b.add_joint("p1", pin("p1"), "a", "b", at_parent=(0.4, 0, 0), **where("p1"))
    b.add_joint("p", pin("p"), "ground", "c", at_parent=(1.0, 0, 0), **where("p"))
    b.add_joint("p2", pin("p2"), "b", "c", at_parent=(1.1, 0, 0), at_child=(0.9, 0, 0), **where("p2"))
    return b.build()


def angles(robot, q):
    return {name: float(x[0]) for name, x in robot.joint_states(q).q.items()}


def poses(robot, q):
    return np.array([robot.pose(q, body) for body in sorted(robot.bodies)])


@pytest.mark.parametrize("limited", [("p2", 3.2, 6.2), ("p", 3.7, 5.2), ("p2", 3.2, np.inf), ("p1", -np.inf, -5.0)])
@pytest.mark.parametrize(
    "near", [None, {"p": -1.9}, {"p2": 1.0}, {"m": 0.5, "p1": -1.7, "p": -1.9, "p2": -0.6}], ids=str
)
def test_whole_turns_keep_limits_wherever_the_loop_is_cut(limited, near):
    """A limit that a whole turn of its joint can satisfy is satisfied, with the same result for every tree."""
    name, low, high = limited
    answers = []
    for closing in JOINTS:
        robot = four_bar(closing, {name: (low, high)})
        q = robot.assemble(fixed={"m": 0.5}, near=near)
        assert low <= angles(robot, q)[name] <= high
        if name in robot.joints:
            assert low <= q[robot.joint(name).q_slice] <= high
        many = robot.assemble(fixed={"m": np.array([0.5, 0.5])}, near=q)
        assert_allclose(many, [q, q], atol=SAME)
        answers.append(angles(robot, q))
    for other in answers[1:]:
        assert other == pytest.approx(answers[0], abs=SAME)


def drawn_fixed(robot, rng):
    """Return coordinates of the motors near home, which determine the mechanism."""
    home = robot.joint_states(robot.assemble()).q
    slides = np.array([home[name].size == 1 for name in robot.actuated])
    assert slides.all()
    return {name: float(home[name][0]) + 0.1 * float(rng.uniform(-1, 1)) for name in robot.actuated}


SMALL = [mechanisms.four_bar, mechanisms.slider_crank, mechanisms.five_bar, mechanisms.delta, mechanisms.stewart]


@pytest.mark.parametrize("make", SMALL)
def test_the_branch_does_not_depend_on_tree_order_or_axes(make):
    """Poses of bodies and numbers of turns are equal from home, from neutral and from a bad guess."""
    robot, rng = make(), np.random.default_rng(5)
    bare = sarrus.Mechanism(dataclasses.replace(robot.description, home=(), configurations=()))
    names = sorted(robot.loop_joints) + [name for name in robot.joints if name not in robot.actuated]
    for one in (robot, bare):
        fixed = drawn_fixed(robot, rng)
        variants = [reordered(one, rng), *(recut(one, name) for name in names[:: max(1, len(names) // 3)])]
        for near in (
            None,
            {names[-1]: one.random(rng)[one.joint(names[-1]).q_slice]} if names[-1] in one.joints else {},
        ):
            try:
                q = one.assemble(near, fixed=fixed)
            except sarrus.AssemblyError:
                continue
            for other in filter(None, variants):
                q_ = other.assemble(near, fixed=fixed)
                assert_allclose(poses(other, q_), poses(one, q), atol=SAME)
                for name in set(one.joints) & set(other.joints):  # which count turns
                    if one.joint(name).kind != "Spherical":
                        assert_allclose(q_[other.joint(name).q_slice], q[one.joint(name).q_slice], atol=SAME)
            turned = moved(one, sarrus.Transform(sarrus.Rotation.exp([0.3, -0.5, 0.8]), (0.1, -0.2, 0.3)))
            assert_allclose(turned.assemble(near, fixed=fixed), q, atol=SAME)


@pytest.mark.parametrize("length", [1e-5, 1e-2, 1e3])
@pytest.mark.parametrize("make", SMALL)
def test_the_branch_does_not_depend_on_size(make, length):
    robot, rng = make(), np.random.default_rng(5)
    other, by = scaled(robot, length, length**3)
    fixed = drawn_fixed(robot, rng)
    in_metres = {name for name in fixed if robot.joint(name).type.coordinates[0][1] == "m"}
    for near in (None, robot.neutral()):
        q = robot.assemble(near, fixed=fixed)
        longer = {name: x * (length if name in in_metres else 1.0) for name, x in fixed.items()}
        units = by.coordinates(robot)
        q_ = other.assemble(near if near is None else near * units, fixed=longer)
        assert_allclose(q_ / units, q, atol=SAME)


@pytest.mark.parametrize("make", [*SMALL, mechanisms.sarrus_linkage, mechanisms.quadruped])
def test_what_is_said_that_holds_anyway_changes_nothing(make):
    """Explicit defaults, more initial guesses than necessary, and batches give the same configuration, exactly or to rounding."""
    robot, rng = make(), np.random.default_rng(2)
    q0 = robot.assemble()
    for reach in (0.0, 1e-3, 0.03, 0.3):
        start = robot.integrate(q0, reach * rng.uniform(-1, 1, robot.nv))
        q = robot.assemble(start)
        for said in (
            {"starts": 60},
            {"seed": 0},
            {"tolerance": 1e-10},
            {"threads": 1, "return_status": False, "out": None},
        ):
            assert np.array_equal(robot.assemble(start, **said), q), said
        assert_allclose(robot.assemble(start, starts=61), q, atol=SAME)  # beginning with the state among many
        assert_allclose(robot.assemble(list(start), fixed={}), q, atol=SAME)
        found, status = robot.assemble(start, return_status=True)
        assert status == 0
        assert_allclose(found, q, atol=SAME)
        assert_allclose(robot.assemble(np.array([start, start])), [q, q], atol=SAME)


def test_random_configurations_of_the_delta_are_regular():
    """No elbow is in gimbal lock: the loops leave the usual number of degrees of freedom."""
    robot = mechanisms.delta()
    q = robot.random(np.random.default_rng(0), 100, closed=True)
    s = np.linalg.svd(robot.constraint_jacobian(q), compute_uv=False)
    regular = np.linalg.svd(robot.constraint_jacobian(robot.assemble()), compute_uv=False)
    rank = int((regular > 1e-6 * regular[0]).sum())
    assert (s[:, rank - 1] > 1e-6 * s[:, 0]).all()


@pytest.mark.parametrize("make", SMALL)
def test_random_configurations_do_not_depend_on_size(make):
    """Mechanisms of micrometres and of kilometres have the same draws in their units, if slides have no limits."""
    robot = make()
    q = robot.random(7, 20, closed=True)
    for length in (1e-5, 1e3):
        other, by = scaled(robot, length, length**3)
        assert_allclose(other.random(7, 20, closed=True) / by.coordinates(robot), q, atol=1e-5)
