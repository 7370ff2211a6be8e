"""Regressions of closed chains: speed, accuracy and allocations."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from .allocations import count_allocations
from .loop_models import FAST, REDUNDANT, LoopModel, almost_flat


def by_name(models: list[LoopModel]) -> Any:
    return pytest.mark.parametrize("model", models, ids=lambda model: model.name)


@by_name(FAST)
def test_one_state(benchmark: Any, model: LoopModel) -> None:
    states = model.states(1)
    benchmark.group = "one state, forward_dynamics with loops"
    benchmark(model.robot.forward_dynamics, *(x[0] for x in states), out=np.empty(model.robot.nv))


@by_name(FAST)
def test_many_states(benchmark: Any, model: LoopModel) -> None:
    states = model.states(1000)
    benchmark.group = "1000 states, forward_dynamics with loops"
    benchmark(model.robot.forward_dynamics, *states, out=np.empty_like(states.v))


@by_name(REDUNDANT)
def test_efforts(benchmark: Any, model: LoopModel) -> None:
    q, v, tau = (x[0] for x in model.states(1))
    a = model.robot.forward_dynamics(q, v, tau)
    benchmark.group = "one state, actuator_efforts"
    benchmark(model.robot.actuator_efforts, q, v, a, out=np.empty(model.robot.nu))


@pytest.mark.skipif(sys.platform != "linux", reason="counts by preloading a malloc")
@by_name([*FAST, *REDUNDANT])
def test_no_allocation(model: LoopModel) -> None:
    """A warm call with out= allocates nothing, in the core or in Python."""
    q, v, tau = model.states(8)
    calls = {"forward_dynamics": list(zip(q, v, tau))}
    if model in REDUNDANT:
        calls["actuator_efforts"] = list(zip(q, v, model.robot.forward_dynamics(q, v, tau)))
    assert count_allocations(model.robot, calls) == dict.fromkeys(calls, 0.0)


@by_name(FAST)
def test_right(model: LoopModel) -> None:
    """Accelerations and the reported residual agree with the dense reference of ``python -m benchmarks --accuracy``."""
    accuracy = pytest.importorskip("benchmarks.accuracy")
    measured = accuracy.measure("anywhere", model.title, model.robot, model.states(2), accuracy.ANYWHERE, None)
    assert measured.reached and measured.honest, measured


@pytest.mark.parametrize("angle", [1e-2, 1e-4, 1e-6, 0.0])
def test_right_where_the_rank_drops(angle: float) -> None:
    accuracy = pytest.importorskip("benchmarks.accuracy")
    robot = FAST[1].robot
    states = almost_flat(robot, angle, 4)
    measured = accuracy.measure("nearly flat", f"{angle:g} rad", robot, states, accuracy.NEARLY_FLAT, None)
    assert measured.reached and measured.honest, measured
