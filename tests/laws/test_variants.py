"""Variants: every function of a state answers of each what the mechanism answers that has its numbers."""

import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import Inertia, ModelError, Transform
from sarrus import derivatives as D
from sarrus.dynamics.variants import VariantFunctions
from tests.gallery import made
from tests.laws.test_copies import ASKED, KINDS, OF_FRAMES, OPERATIONS, one_answer, outcome, random_changes
from tests.random_closed import random_closed
from tests.random_mechanisms import random_mechanism

GALLERY = ("four_bar", "slider_crank", "stewart", "delta", "four_bar_ladder", "whipple_bicycle", "ring", "net", "double_pendulum")
N = 11  # more than the lanes of any register, and no multiple
WITHOUT = {"path_motion"}  # asks for pieces of a path, which are no states


def varied(robot, rng, kinds=KINDS, count=N):
    """Variants, and the same mechanisms one by one."""
    each = [random_changes(robot, rng, kinds) for _ in range(count)]
    changes = {}
    for key in each[0]:
        if key == "gravity":
            changes[key] = [x[key] for x in each]
        else:
            of = {name: [x[key][name] for x in each] for name in each[0][key]}
            changes[key] = of if key in ("inertias", "placements") else {n: np.array(x) for n, x in of.items()}
    return robot.variants(**changes), [robot.replace(**x) for x in each]


def states(robot, rng, count=N):
    q = np.stack([robot.integrate(robot.neutral(), x) for x in 0.3 * rng.normal(size=(count, robot.nv))])
    return {"q": q} | {key: rng.normal(size=(count, robot.nv)) for key in ("v", "a", "tau")}


def inputs_of(robot, name, numbers):
    """What the function takes, by asking one mechanism until it is content; and what that says in the end."""
    options = {"return_status": True} | ({"frame": robot.bodies[-1]} if name in OF_FRAMES else {})
    inputs = {}
    for key in (x for x in OPERATIONS[name].split() if not x.endswith("?")):
        source = {"dv": "v", "q0": "q"}.get(key, key)
        inputs[key] = numbers["q"][::-1] if key == "q1" else np.ones(N) if key == "tangent" else numbers.get(source)
    for _ in range(len(inputs) + 2):
        given = {k: np.ones(1) if x is None else x[0] for k, x in inputs.items()}
        said = outcome(lambda given=given: ASKED[name](robot, **given, **options))
        found = re.match(r"(\w+) (?:has|is) .*; it (?:wants|needs an axis of) (\d+)", said[1]) if isinstance(said[0], type) else None
        if not found:
            return {k: np.ones((N, 1)) if x is None else x for k, x in inputs.items()}, options, said
        inputs[found[1]] = np.tile(np.linspace(0.1, 1.0, int(found[2])), (N, 1))
    raise AssertionError(name, said)


def same_answers(variants, each, rng):
    robot, checked, refused = variants.base, 0, []
    numbers = states(robot, rng)
    for name in sorted((ASKED.keys() & OPERATIONS.keys()) - WITHOUT):
        inputs, options, said = inputs_of(robot, name, numbers)
        if isinstance(said[0], type):
            refused.append(name)
            continue
        result, status = ASKED[name](variants, **inputs, **options)
        for i, one in enumerate(each):
            expected, expected_status = ASKED[name](one, **{k: x[i] for k, x in inputs.items()}, **options)
            assert status[i] == expected_status, (name, i)
            size = np.nanmax(np.abs(expected), initial=0.0)
            assert_allclose(result[i], expected, rtol=0, atol=3e-9 * max(size, 1e-300), err_msg=f"{name}, {i}")
        checked += 1
    assert checked > 60, refused


@pytest.mark.filterwarnings("ignore::sarrus.errors.ModelWarning")
@pytest.mark.parametrize("name", GALLERY)
def test_variants_answer_as_their_mechanisms_do(name):
    rng = np.random.default_rng(4)
    same_answers(*varied(made(name), rng), rng)


@pytest.mark.filterwarnings("ignore::sarrus.errors.ModelWarning")
@pytest.mark.parametrize("seed", range(6))
def test_random_variants(seed):
    rng = np.random.default_rng(seed)
    options = {"friction": True, "armature": seed % 2 == 0, "springs": True, "floating": seed % 3 == 0}
    tree = random_mechanism(seed, bodies=8, backward=0.3, **options).description
    closed = random_closed(seed, bodies=7, hints=seed % 2 == 0, **options).description
    cut = random_closed(seed + 100, bodies=9, loops=3, **options).description
    for description, substructures in ((tree, None), (closed, None), (cut, 1)):
        robot = sarrus.Mechanism(description, substructures=substructures)
        same_answers(*varied(robot, rng), rng)
