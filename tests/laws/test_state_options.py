"""Options of all functions of a state, as the class documents them: batches, threads, `out=` and statuses, by inspection."""

import dataclasses
import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sarrus
from tests.public import ROWS, ask, case, leaves, public

SIGNATURES = public()
STATES = [name for name, s in SIGNATURES.items() if "q" in s.parameters]
TAKE_ALL = [name for name in STATES if {"threads", "return_status"} <= set(SIGNATURES[name].parameters)]
ARRAYS = [name for name in TAKE_ALL if SIGNATURES[name].return_annotation in ("Array", "ArrayLike")]


def of_states(c, count, bad=()):
    """Return the case in this number of equal states, some of which are NaN."""
    parts = {name: np.repeat(getattr(c, name)[None], count, axis=0) for name in ("q", "v", "a", "tau")}
    for x in parts.values():
        x[list(bad)] = np.nan
    return dataclasses.replace(c, **parts)


def chosen(name):
    """Return options that a batch otherwise chooses for all of its states."""
    return {"independent": "actuated"} if name == "reduced_dynamics" else {}


@pytest.mark.parametrize("name", [name for name in STATES if name not in TAKE_ALL])
def test_those_that_take_less_are_listed(name):
    assert f"`{name}`" in inspect.getdoc(sarrus.Mechanism)


@pytest.mark.parametrize("name", ARRAYS)
def test_what_answers_with_an_array_takes_a_place_for_it(name):
    assert "out" in SIGNATURES[name].parameters


@pytest.mark.parametrize("name", TAKE_ALL)
def test_batch_threads_out_and_status(name):
    """Each row equals the single state, to the last bit, for any neighbours."""
    c = case(ROWS[name].of[0])
    *alone, status = ask(c.robot, name, of_states(c, 1), return_status=True, **chosen(name))
    *many, statuses = ask(c.robot, name, of_states(c, 7), return_status=True, threads=2, **chosen(name))
    *some, some_statuses = ask(c.robot, name, of_states(c, 7, [1]), return_status=True, **chosen(name))
    good = [0, *range(2, 7)]
    assert_array_equal(status, [0])
    assert_array_equal(statuses, [0] * 7)
    assert some_statuses[1] != 0 and not some_statuses[good].any()
    one, every, rest = leaves(alone), leaves(many), leaves(some)
    compared = [at for at, x in every.items() if x.shape[:1] == (7,) and one[at].shape[:1] == (1,)]
    assert compared
    for at in compared:
        assert_array_equal(rest[at][good], every[at][good], err_msg=at)
        assert_array_equal(every[at], np.repeat(one[at], 7, axis=0), err_msg=at)
        if every[at].dtype.kind == "f":
            assert np.isnan(rest[at][1]).all(), at
    *single, its_status = ask(c.robot, name, c, return_status=True, **chosen(name))
    assert its_status == 0
    for at, x in leaves(single).items():
        assert np.shape(x) == one[at].shape[at in compared :], at
    if "out" in SIGNATURES[name].parameters and isinstance(many[0], np.ndarray):
        out = np.empty(many[0].shape)
        assert ask(c.robot, name, of_states(c, 7), out=out, **chosen(name)) is out
        assert_array_equal(out, many[0])
