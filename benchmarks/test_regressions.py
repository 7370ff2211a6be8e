"""Regressions of speed and allocations: times of sarrus only, for pytest-benchmark.

pytest benchmarks --benchmark-autosave                                   # before a change
pytest benchmarks --benchmark-compare --benchmark-compare-fail=min:20%   # after it, on the same machine
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import sarrus

from .allocations import CALLS, count_allocations, tree_calls
from .models import Model, all_models

MODELS = {model.name: model for model in all_models()}
LARGEST_OUTPUT = 64e6  # a batch with a larger result is skipped [bytes]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    return MODELS[request.param]


def arguments(robot: Any, call: str, shape: tuple[int, ...]) -> tuple[list[Any], Any]:
    """Return random inputs of `call` and an array for its result."""
    rng = np.random.default_rng(0)
    states = np.array([robot.random(rng) for _ in range(int(np.prod(shape)))]).reshape(*shape, robot.nq)
    if call == "mass_matrix":
        return [states], np.empty((*shape, robot.nv, robot.nv))
    return [states, *rng.standard_normal((2, *shape, robot.nv))], np.empty((*shape, robot.nv))


@pytest.mark.parametrize("call", CALLS)
def test_one_state(benchmark: Any, model: Model, call: str) -> None:
    robot = sarrus.loads(model.urdf, floating_base=model.floating)
    inputs, out = arguments(robot, call, ())
    benchmark.group = f"one state, {call}"
    benchmark(getattr(robot, call), *inputs, out=out)


@pytest.mark.parametrize("call", CALLS)
def test_many_states(benchmark: Any, model: Model, call: str) -> None:
    robot = sarrus.loads(model.urdf, floating_base=model.floating)
    count = 1000
    if call == "mass_matrix" and 8 * count * robot.nv**2 > LARGEST_OUTPUT:
        pytest.skip("its mass matrices fill the memory")
    inputs, out = arguments(robot, call, (count,))
    benchmark.group = f"{count} states, {call}"
    benchmark(getattr(robot, call), *inputs, out=out)


@pytest.mark.skipif(sys.platform != "linux", reason="counts by preloading a malloc")
def test_no_allocation(model: Model) -> None:
    """A warm call with out= allocates nothing, in the core or in Python."""
    robot = sarrus.loads(model.urdf, floating_base=model.floating)
    assert count_allocations(robot, tree_calls(robot)) == dict.fromkeys(CALLS, 0.0)
