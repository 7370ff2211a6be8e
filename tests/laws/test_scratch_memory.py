"""Results do not depend on earlier calls: what a function reads from scratch memory, it has written itself."""

import dataclasses

import numpy as np
import pytest

import sarrus
from tests.laws.test_closing_joint_laws import CHAINS, CLOSING, TERMS, in_two_ways, with_terms
from tests.laws.test_default_laws import differ
from tests.public import ANY, ROWS, ask, case, public
from tests.random_closed import random_closed

LADDER = sarrus.mechanisms.four_bar_ladder(60)
OPEN = LADDER.neutral()


def fill_memory(x):
    """Leave numbers of the size of x in the scratch memory of this thread, from its beginning to farther than other mechanisms use it."""
    forces, rest = np.full(LADDER.nv, x), np.zeros(LADDER.nv)
    LADDER.forward_dynamics(OPEN, rest, forces, check=False, return_status=True)
    LADDER.forward_dynamics(np.tile(OPEN, (8, 1)), rest, forces, check=False, return_status=True)


@pytest.mark.parametrize("which", ANY)
def test_public_functions(which):
    c, wrong = case(which), []
    for name in public():
        if ROWS[name].args is None or which not in ROWS[name].of or name == "random":
            continue
        answers = []
        for x in (0.0, 1e290):
            fill_memory(x)
            answers.append(ask(c.robot, name, c))
        if differ(*answers):
            wrong.append(name)
    assert not wrong


@pytest.mark.parametrize("which", ANY)
def test_batches(which):
    """The same for the functions that broadcast: five states fill one packet of lanes and begin another."""
    c, wrong, compared = case(which), [], 0
    rows = {name: np.tile(getattr(c, name), (5, 1)) for name in ("q", "v", "a", "tau")}
    many = dataclasses.replace(c, **rows)
    for name, signature in public().items():
        if "threads" not in signature.parameters or ROWS[name].args is None or which not in ROWS[name].of:
            continue
        answers = []
        for x in (0.0, 1e290):
            fill_memory(x)
            answers.append(ask(many.robot, name, many, threads=1))
        compared += 1
        if differ(*answers):
            wrong.append(name)
    assert compared > 20 and not wrong


@pytest.mark.parametrize("seed", range(30))
def test_terms_of_closing_joints(seed):
    """Armatures of closing joints add rows to the solved equation, whose multipliers are not part of the result."""
    closed = random_closed(
        seed, bodies=3, loops=2, floating=True, branching=0.3, hints=False, kinds=CLOSING, joints=CHAINS
    )
    one = with_terms(closed, np.random.default_rng(seed), *TERMS)
    one = one.in_other_tree(one.description, one.robot.loop_joints)
    for robot in in_two_ways(one.description, 1):
        answers = []
        for x in (0.0, 1e290, -1e200):
            fill_memory(x)
            a, loops = robot.forward_dynamics(one.q, one.v, one.tau, return_reactions=True)
            answers.append((a, loops.multipliers, loops.residual, loops.error, robot.impact(one.q, one.v)))
        assert not differ(answers[0], answers[1]) and not differ(answers[0], answers[2])
