"""Joint reactions in a motion, with loops, for any spanning tree."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from tests.laws.test_assembly_laws import JOINTS, four_bar
from tests.public import LOOPS, case
from tests.variants import in_tree_of

EQUAL = 1e-8  # of the largest


def driven(robot, q, v, effort):
    tau = np.zeros(robot.nv)
    tau[robot.joint(robot.actuated[0]).v_slice] = effort
    return robot.forward_dynamics(q, v, tau)


def motion(closing):
    """Return a driven four-bar in the tree with this loop joint."""
    robot = four_bar(closing)
    q = robot.assemble(fixed={"m": 0.5})
    v = robot.complete_velocity(q, {"m": 3.0})
    first = four_bar("p2")
    q_, v_ = in_tree_of(first, robot, q, v)
    return robot, q, v, in_tree_of(robot, first, q_, v_, driven(first, q_, v_, 2.0))[2]


@pytest.mark.parametrize("closing", JOINTS)
def test_nothing_is_carried_along_a_free_axis(closing):
    """The pins about y have no moment about y; the motor's moment is its effort."""
    robot, q, v, a = motion(closing)
    asked = sarrus.formulations.reactions(robot, q, v, a)
    largest = max(np.abs(x).max() for x in asked.values())
    for name, wrench in asked.items():
        along = 2.0 if name == "m" else 0.0
        assert abs(abs(wrench[1]) - along) < EQUAL * largest, name


@pytest.mark.parametrize("closing", JOINTS)
def test_they_do_not_depend_on_which_joint_closes(closing):
    """The loads of all pins, on the child, for every tree."""
    first, second = motion("p2"), motion(closing)
    robot, q, v, a = second
    loads, expected = robot.joint_wrenches(q, v, a), first[0].joint_wrenches(*first[1:])
    for name, wrench in sarrus.formulations.reactions(robot, q, v, a).items():
        if not robot.joint(name).reversed:
            assert_allclose(wrench, loads[name], atol=1e-7)
    for name in JOINTS:
        assert_allclose(loads[name], expected[name], atol=1e-7)


@pytest.mark.parametrize("which", LOOPS)
def test_batches_and_known_multipliers(which):
    """Many states, and the multipliers of forward dynamics."""
    c = case(which)
    robot, q, v = c.robot, c.q, c.v
    tau = robot.actuation_matrix(q) @ np.linspace(1.0, 2.0, robot.nu)
    a, loops = robot.forward_dynamics(q, v, tau, return_reactions=True)
    known = sarrus.formulations.reactions(robot, q, v, a, multipliers=loops.multipliers)
    asked = sarrus.formulations.reactions(robot, q, v, a)
    many, status = sarrus.formulations.reactions(robot, np.stack([q] * 9), v, a, return_status=True)
    unique = robot.mobility(q).unique_reactions
    largest = max(np.abs(x).max() for x in known.values())
    assert not status.any()
    for name, wrench in asked.items():
        assert_allclose(many[name][3], wrench, atol=EQUAL * largest)
        if all(unique.values()):
            assert_allclose(wrench, known[name], atol=1e-6 * largest)


def test_what_is_not_known_is_said():
    """A moving degree of freedom without a motor; a base that moves."""
    c = case("floating")
    tau = np.zeros(c.robot.nv)
    tau[:6] = 1.0
    a = c.robot.forward_dynamics(c.q, c.v, tau)
    with pytest.raises(sarrus.NotRealizableError, match="if other forces act, too, pass multipliers="):
        sarrus.formulations.reactions(c.robot, c.q, c.v, a)
    _, status = sarrus.formulations.reactions(c.robot, c.q[None], c.v, a, return_status=True)
    assert status.tolist() == [sarrus.results.Status.INCONSISTENT_CONSTRAINTS]
    c = case("four-bar")
    with pytest.raises(ValueError, match="required for loops with a moving base"):
        sarrus.formulations.reactions(c.robot, c.q, c.v, c.a, base_acceleration=np.ones(6))
