"""Times of derivatives with respect to a state: trees relative to Pinocchio, in C++ and from Python; closed chains relative to their forward
dynamics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import sarrus

from . import measure
from .models import models_of
from .peers import SOURCE, pin, pinocchio_model
from .simulation import crank_rocker
from .subjects import DisagreementError, Subject
from .tables import Run


class Row(NamedTuple):
    """Time [µs], and its ratios to Pinocchio's time (NaN without Pinocchio) and to the time of the differentiated function."""

    what: str
    time: float
    peer: float
    own: float


def rows(run: Run) -> list[Row]:
    """Measure inverse and forward dynamics of trees, forward dynamics with loops, and gradients of runs."""
    results: list[Row] = []
    library, seconds, count = run.library(SOURCE), run.seconds, run.of(1000, 1000, 16)
    for model in models_of(run):
        run.tell(model.title)
        if library:
            results += _in_cpp(Subject(model, library, count), seconds)
        robot = sarrus.loads(model.urdf, floating_base=model.floating)
        results += _of_tree(model.name, robot, pinocchio_model(model) if pin else None, seconds)
    gallery = sarrus.mechanisms
    robots = [gallery.four_bar(), gallery.stewart(), gallery.four_bar_ladder(8), gallery.four_bar_ladder(64)]
    for robot in run.of(robots, robots, robots[:2]):
        run.tell(robot.name)
        q = robot.assemble()
        v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
        state = {"robot": robot, "D": sarrus.derivatives, "q": q, "v": v, "tau": v}
        times = measure.interleave(
            {
                "own": measure.statement("robot.forward_dynamics(q, v, tau)", "_", [None], **state),
                "D": measure.statement("D.forward_dynamics(robot, q, v, tau)", "_", [None], **state),
                "vjp": measure.statement("D.forward_dynamics_vjp(robot, q, v, tau, tau)", "_", [None], **state),
            },
            seconds,
        )
        results.append(_row(f"{robot.name}: forward dynamics", times["D"], None, times["own"]))
        results.append(_row(f"{robot.name}: a cotangent times that", times["vjp"], None, times["own"]))
        results.append(_products_of_many(robot, q, count, seconds))
    results += _linear(gallery.delta(), count, seconds)
    for robot in (gallery.delta(), gallery.stewart()):
        q = robot.assemble()
        v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
        results.append(_through_time(robot.name, robot, q, v, *run.of((100, 100), (100, 100), (4, 5)), seconds))
    return [
        *results,
        _through_time("crank-rocker", *crank_rocker(), *run.of((1000, 100), (1000, 100), (8, 5)), seconds),
    ]


def _products_of_many(robot: sarrus.Mechanism, q: np.ndarray, count: int, seconds: float) -> Row:
    """Measure a cotangent times the derivatives of forward dynamics in a batch; the time is per state."""
    v = robot.project_velocity(q, np.random.default_rng(1).normal(size=(count, robot.nv)))
    state = {"robot": robot, "D": sarrus.derivatives, "q": np.tile(q, (count, 1)), "v": v}
    codes = {"own": "robot.forward_dynamics(q, v, v)", "vjp": "D.forward_dynamics_vjp(robot, q, v, v, v)"}
    sides = {side: measure.statement(code, "_", [None], **state) for side, code in codes.items()}
    times = {side: x / count for side, x in measure.interleave(sides, seconds).items()}
    return _row(f"{robot.name}: a cotangent times that, one of {count}", times["vjp"], None, times["own"])


def _through_time(
    name: str, robot: sarrus.Mechanism, q: np.ndarray, v: np.ndarray, count: int, steps: int, seconds: float
) -> Row:
    """Measure gradients of runs with respect to the initial state and to a motor's torque at each step, relative to the time of the runs."""
    motor = next(name for name in robot.joints if robot.joint(name).actuated)
    at = np.arange(steps + 1) * 1e-3
    push = sarrus.control.EffortTable(at, np.sin(9.0 * at)[:, None], [motor])
    starts = np.linspace(0.5, 1.0, count)[:, None] * v
    runs = sarrus.simulate_many(robot, q, starts, steps * 1e-3, push)
    state = {"sarrus": sarrus, "robot": robot, "q": q, "v": starts, "push": push, "end": steps * 1e-3, "runs": runs}
    codes = {
        "own": "sarrus.simulate_many(robot, q, v, end, push)",
        "back": "sarrus.derivatives.rollouts_vjp(runs, v=runs.v)",
    }
    sides = {side: measure.statement(code, "_", [None], **state) for side, code in codes.items()}
    times = measure.interleave(sides, seconds)
    return _row(f"{name}: gradient of {count} runs of {steps} steps", times["back"], None, times["own"])


def _in_cpp(s: Subject, seconds: float) -> list[Row]:
    """Measure one state, and a batch in one call from Python, relative to Pinocchio's templates in a loop.

    The calls of both libraries also compute M or its inverse, because Pinocchio's function always does.
    """
    D, one, n = sarrus.derivatives, np.ones((len(s.q), 1)), len(s.q)
    results = []
    for what, x, pin_x, peer, theirs in (
        ("inverse", s.a, s.pin_a, "rnea", pin.computeRNEADerivatives),
        ("forward", s.tau, s.pin_tau, "aba", pin.computeABADerivatives),
    ):
        call = partial(getattr(D, f"{what}_dynamics"), s.robot, s.q, s.v, x)
        theirs(s.pin, s.pin_data, s.pin_q[-1], s.pin_v[-1], pin_x[-1])
        wanted = (s.pin_data.dtau_dq if what == "inverse" else s.pin_data.ddq_dq)[s.v_order][:, s.v_order]
        error = abs(call().q[-1] - wanted).max() / abs(wanted).max()
        if not error < 1e-9:
            raise DisagreementError(f"{s.model.title}, derivatives of {what} dynamics: off by {error:.1e}")

        def ours(repeats: int, name: str = f"{what}_dynamics_derivatives", x: np.ndarray = x) -> float:
            time = partial(sarrus._core.time_one_state, s.robot)
            return float(time(name, [s.q, s.v, x] if name.startswith("inverse") else [s.q, s.v, x, one], repeats))

        def batch(call: Callable[[], object] = call) -> float:
            start = perf_counter()
            call()
            return (perf_counter() - start) / n

        assert s.cpp
        sides = {
            "own": measure.repeated(ours, n),
            "batch": batch,
            "peer": measure.repeated(partial(s.cpp.time, f"{peer} derivatives", s.pin_q, s.pin_v, pin_x), n),
            "function": measure.repeated(
                lambda r, x=x, what=what: sarrus._core.time_one_state(s.robot, f"{what}_dynamics", [s.q, s.v, x], r), n
            ),
        }
        times = measure.interleave(sides, seconds)
        results.append(_row(f"{s.model.name}: {what} dynamics, C++", times["own"], times["peer"], times["function"]))
        results.append(
            _row(f"{s.model.name}: {what} dynamics, one of {n}", times["batch"], times["peer"], times["function"])
        )
    return results


def _linear(robot: sarrus.Mechanism, count: int, seconds: float) -> list[Row]:
    """Measure linearised equations of motion in the motors' coordinates, at one state and in a batch; times are per state."""
    q = robot.assemble()
    v = robot.project_velocity(q, np.random.default_rng(0).normal(size=robot.nv))
    results = []
    for name, lead in (("linearize", ()), (f"linearize, one of {count}", (count, 1))):
        state = {"robot": robot, "q": np.tile(q, lead), "v": np.tile(v, lead)}
        codes = {
            "own": "robot.forward_dynamics(q, v, v)",
            "linear": "robot.linearize(q, v, v, coordinates='actuated')",
        }
        sides = {side: measure.statement(code, "_", [None], **state) for side, code in codes.items()}
        times = {side: x / math.prod(lead) for side, x in measure.interleave(sides, seconds).items()}
        results.append(_row(f"{robot.name}: {name}", times["linear"], None, times["own"]))
    return results


def _of_tree(name: str, robot: sarrus.Mechanism, model: Any, seconds: float) -> list[Row]:
    rng = np.random.default_rng(0)
    v, a = rng.normal(size=(2, robot.nv))
    state = {"robot": robot, "D": sarrus.derivatives, "at": robot.neutral(), "v": v, "a": a}
    if model:
        state |= {"pin": pin, "model": model, "data": model.createData(), "q": pin.neutral(model)}
    results = []
    for what, own, peer in (("inverse", "inverse", "RNEA"), ("forward", "forward", "ABA")):
        codes = {
            "own": f"robot.{own}_dynamics(at, v, a)",
            "D": f"D.{own}_dynamics(robot, at, v, a)",
            "vjp": f"D.{own}_dynamics_vjp(robot, at, v, a, v)",
        }
        if model:
            codes["peer"] = f"pin.compute{peer}Derivatives(model, data, q, v, a)"
        sides = {side: measure.statement(code, "_", [None], **state) for side, code in codes.items()}
        times = measure.interleave(sides, seconds)
        results.append(_row(f"{name}: {what} dynamics", times["D"], times.get("peer"), times["own"]))
        results.append(_row(f"{name}: a cotangent times that", times["vjp"], None, times["own"]))
    return results


def _row(name: str, times: np.ndarray, peer: np.ndarray | None, own: np.ndarray) -> Row:
    beside = np.nan if peer is None else measure.ratio(times, peer)[0]
    return Row(name, float(np.median(times)) * 1e6, beside, measure.ratio(times, own)[0])


def markdown(results: list[Row]) -> str:
    """Return a table of the rows."""
    lines = ["| derivatives by a state | µs a call | over Pinocchio's | over the function |", "|---|---|---|---|"]
    for name, per_call, beside, own in results:
        lines.append(f"| {name} | {per_call:.1f} | {'' if np.isnan(beside) else f'{beside:.2f}'} | {own:.1f} |")
    return "\n".join(lines) + "\n"
