"""Measurements of closed chains; goals are in goals.json."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import sarrus

from .accuracy import Reference, relative_error
from .allocations import can_count, count_allocations
from .loop_models import FAST, REDUNDANT, LoopModel
from .loop_peers import SOURCE, PinocchioLoops, Settings
from .measure import Sample, repeated, statement
from .rows import BATCH, CYCLE, Result, Row, Selection
from .subjects import DisagreementError
from .tables import Run

# Pinocchio's two solvers with the settings of its headers, and one iteration of the loop-constrained ABA, which is faster and less exact.
SIDES = {
    "exact": ("exact", Settings(accuracy=1e-10, mu=1e-12, iterations=10)),
    "loop-constrained ABA": ("loop-constrained ABA", Settings(accuracy=1e-8, mu=1e-6, iterations=10)),
    "one step of it": ("loop-constrained ABA", Settings(mu=1e-8, iterations=1)),
}
# solvers that are compared; one iteration of the loop-constrained ABA is excluded, because its errors on long ladders are about 0.1
JUDGED = ("exact", "loop-constrained ABA")
TOLERANCE = {"sarrus": 1e-10, "exact": 1e-10, "loop-constrained ABA": 1e-4}

LARGE = 100  # number of velocities, above which fewer states are measured
CHECKED = 8


class LoopSubject:
    """Mechanism in both libraries, at the same states.

    Attributes
    ----------
    states : states in sarrus' coordinates
    peers : name in `SIDES` -> solver of Pinocchio; empty without Pinocchio
    """

    def __init__(self, model: LoopModel, library: Path | None) -> None:
        self.model, self.robot = model, model.robot
        self._fewer = 16 if self.robot.nv > LARGE else 1
        self.states = model.states(CYCLE // self._fewer)
        self.peers: dict[str, PinocchioLoops] = {}
        for side, (solver, settings) in SIDES.items() if library else ():
            assert library
            self.peers[side] = PinocchioLoops(library, self.robot)
            self.peers[side].set(solver, settings)

    def errors(self) -> dict[str, float]:
        """Return the median error of each solver's accelerations, relative to the dense reference.

        Raises
        ------
        DisagreementError
            The error of a solver exceeds its `TOLERANCE`.
        """
        few = self.states.first(max(2, CHECKED // self._fewer))
        wanted = Reference(self.robot).accelerations(few)
        answers = {"sarrus": np.array([self.robot.forward_dynamics(*state) for state in zip(*few)])}
        answers |= {side: peer.accelerations(SIDES[side][0], few)[0] for side, peer in self.peers.items()}
        errors = {side: float(np.median(relative_error(a, wanted))) for side, a in answers.items()}
        for side, tolerance in TOLERANCE.items():
            if side in errors and not errors[side] < tolerance:
                raise DisagreementError(
                    f"{self.model.title}, {side}: off by {errors[side]:.1e}, more than {tolerance:.0e}"
                )
        return errors

    def ours(self) -> Sample:
        """Measure one state per call, inside C++."""

        def sample(repeats: int) -> float:
            return float(sarrus._core.time_one_state(self.robot, "forward_dynamics", list(self.states), repeats))

        return repeated(sample, len(self.states.q))

    def theirs(self, side: str) -> Sample:
        """Return the sample of :meth:`ours` for a solver of Pinocchio."""
        peer = self.peers[side]
        return repeated(partial(peer.time, SIDES[side][0], peer.states(self.states)), len(self.states.q))


def one_state(s: LoopSubject) -> Row:
    sides = {"sarrus": s.ours(), **{side: s.theirs(side) for side in s.peers}}
    return Row("loops-cpp", "loops", s.model.name, sides, JUDGED)


def growth(long: LoopSubject, short: LoopSubject) -> Row:
    """Measure the factor by which the time grows for a ladder that is eight times as long."""
    sides = {"sarrus": long.ours(), "sarrus, short": short.ours()}
    for side in JUDGED if long.peers else ():
        sides |= {side: long.theirs(side), f"{side}, short": short.theirs(side)}
    return Row("loops-growth", "loops", long.model.name, sides, ("sarrus, short",))


def many_states(s: LoopSubject, count: int) -> Row:
    """Measure all states in one call on one thread, relative to one state inside C++."""
    states = s.model.states(count)
    out = np.empty_like(states.v)

    def together() -> float:
        start = perf_counter()
        s.robot.forward_dynamics(*states, out=out, threads=1)
        return (perf_counter() - start) / count

    return Row("loops-batch", "loops", s.model.name, {"sarrus": together, "one state": s.ours()}, ("one state",))


def motions(model: LoopModel, count: int) -> list[tuple[Any, Any, Any]]:
    """Return states (q, v, a) that satisfy the constraints."""
    states = model.states(count)
    return list(zip(states.q, states.v, model.robot.forward_dynamics(*states)))


def efforts(model: LoopModel) -> Row:
    """Measure the computation of efforts of least norm for redundant motors, one state per call, from Python."""
    f, u = model.robot.actuator_efforts, np.empty(model.robot.nu)
    sides = {"sarrus": statement("f(q, v, a, out=u)", "q, v, a", motions(model, CYCLE), f=f, u=u)}
    return Row("loops-python", "efforts", model.name, sides, ())


def allocations(model: LoopModel, algorithm: str) -> Result:
    """Count the allocations of a call with out= after warm-up."""
    if algorithm == "loops":
        function, inputs = "forward_dynamics", list(zip(*model.states(32)))
    else:
        function, inputs = "actuator_efforts", motions(model, 32)
    count = count_allocations(model.robot, {function: inputs})[function]
    return Result("allocations", algorithm, model.name, {}, allocations=count)


def measured(run: Run, selection: Selection) -> list[Result]:
    """Check against the dense reference, then measure."""
    results: list[Result] = []
    library, seconds, count = run.library(SOURCE), run.of(3.0, 0.3, 0.0), run.of(BATCH, BATCH, 64)
    names = run.of([m.name for m in FAST], [m.name for m in FAST], ["ladder1", "ladder8", "stewart"])
    long, short = run.of(("ladder64", "ladder8"), ("ladder64", "ladder8"), ("ladder8", "ladder1"))
    groups = selection.groups
    fast = [m for m in FAST if m.name in selection.models & {*names} and "loops" in selection.algorithms]
    subjects: dict[str, LoopSubject] = {}
    for model in fast if groups & {"loops-cpp", "loops-growth", "loops-batch"} else ():
        run.tell(f"{model.title}: do the libraries agree?")
        subjects[model.name] = subject = LoopSubject(model, library)
        errors = subject.errors()
        rows = [one_state(subject)] if "loops-cpp" in groups else []
        if "loops-growth" in groups and model.name == long and short in subjects:
            rows.append(growth(subject, subjects[short]))
        if "loops-batch" in groups:
            run.tell(f"{model.title}: {count} states")
            rows.append(many_states(subject, count))
        for row in rows:
            run.tell(f"{model.title}: {row.algorithm}, {row.group}")
            results.append(replace(row.measure(seconds), errors=errors))
    redundant = [
        m
        for m in run.of(REDUNDANT, REDUNDANT, REDUNDANT[:1])
        if m.name in selection.models and "efforts" in selection.algorithms
    ]
    for model in redundant if "loops-python" in groups else ():
        run.tell(f"{model.title}: efforts")
        results.append(efforts(model).measure(seconds))
    if "allocations" in groups and can_count():
        results += [allocations(model, "loops") for model in fast]
        results += [allocations(model, "efforts") for model in redundant]
    return results


def titles() -> dict[str, str]:
    return {model.name: model.title for model in (*FAST, *REDUNDANT)}
