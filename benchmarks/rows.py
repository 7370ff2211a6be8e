"""Measurements of trees; goals are in goals.json."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import numpy as np

import sarrus

from .allocations import can_count, count_allocations, tree_calls
from .measure import Sample, interleave, ratio, repeated, statement
from .models import Model
from .peers import SOURCE, pin
from .subjects import Subject
from .tables import GOALS, Goal, Run

TREE_ALGORITHMS = {"rnea": "inverse_dynamics", "aba": "forward_dynamics", "crba": "mass_matrix"}
ALGORITHMS = {
    **TREE_ALGORITHMS,
    "christoffel": "christoffel_symbols",
    "loops": "forward_dynamics",
    "efforts": "actuator_efforts",
    "gjm": "generalized_jacobian",
}
TREE_GROUPS = {
    "cpp": "One state, inside C++",
    "python": "One state, called from Python with `out=`",
    "batch": "10,000 states, one thread, called from Python with `out=`",
    "threads": "10,000 states, two threads over one",
    "pin-threads": "The same for Pinocchio",
}
GROUPS = {
    **TREE_GROUPS,
    "alone-cpp": "Christoffel symbols, which no peer has: one state, inside C++",
    "loops-cpp": "Constrained forward dynamics: one state, inside C++",
    "loops-growth": "Constrained forward dynamics: 64 four-bars beside 8",
    "loops-batch": "Constrained forward dynamics: 10,000 states, one thread, over one state inside C++",
    "loops-python": "Efforts of redundant motors: one state, called from Python with `out=`",
    "floating-python": "Generalized Jacobian on a floating base: one state, called from Python with `out=`",
    "floating-batch": "Generalized Jacobian on a floating base: 10,000 states, one thread, over one state from Python",
    "allocations": "Allocations in a warm call with `out=`",
}
CYCLE, BATCH = 256, 10_000  # number of states for measurements of one state per call, and number of states of a batch
# [bytes] a batch with a larger result is not measured; 10,000 mass matrices of a chain of 100 links have three times as many
LARGEST_OUTPUT = 256e6


@dataclass(frozen=True)
class Selection:
    """Selection of rows by ``--only``. If none of its words is a group, all groups are selected; the same holds for algorithms and models."""

    algorithms: frozenset[str]
    groups: frozenset[str]
    models: frozenset[str]

    @classmethod
    def of(cls, words: set[str], models: Iterable[str]) -> Selection:
        kinds = [frozenset(kind) for kind in (ALGORITHMS, GROUPS, models)]
        if unknown := words.difference(*kinds):
            raise ValueError(f"--only knows nothing of {', '.join(sorted(unknown))}")
        return cls(*(kind & words or kind for kind in kinds))


@dataclass(frozen=True)
class Result:
    """Measured comparison.

    Attributes
    ----------
    times : side (library and call) -> median time per state [s]
    peer : the fastest side of the other libraries, or None
    ratio : sarrus' time divided by the peer's time: median and quartiles over measurements in the same round
    allocations : allocations per call, if the row counts them
    errors : side -> relative error, in rows in which errors differ
    """

    group: str
    algorithm: str
    model: str
    times: dict[str, float]
    peer: str | None = None
    ratio: tuple[float, float, float] | None = None
    rounds: int = 0
    allocations: float | None = None
    errors: dict[str, float] = field(default_factory=dict)

    @property
    def goal(self) -> Goal | None:
        if self.allocations is not None:
            return GOALS["dynamics"]["allocations"]
        return GOALS["dynamics"].get(f"{self.group}, {self.algorithm}, {self.model}")

    @property
    def seen(self) -> float | None:
        """Measured value to compare with the goal; None without a goal or a peer."""
        if self.allocations is not None:
            return self.allocations
        if self.goal and self.goal.unit == "µs":
            return 1e6 * next(iter(self.times.values()))
        if not (self.goal and self.ratio):
            return None
        return self.ratio[0] if self.goal.sense == "at most" else 1 / self.ratio[0]

    @property
    def target(self) -> float | None:
        """Goal, expressed as speed relative to the peer."""
        if not (self.goal and self.ratio):
            return None
        return 1 / self.goal.number if self.goal.sense == "at most" else self.goal.number


@dataclass(frozen=True)
class Row:
    """Functions (sides) that are timed alternately; the first one is compared with the fastest of `peers`."""

    group: str
    algorithm: str
    model: str
    sides: dict[str, Sample]
    peers: tuple[str, ...]

    def measure(self, seconds: float) -> Result:
        times = interleave(self.sides, seconds)
        median = {name: float(np.median(t)) for name, t in times.items()}
        ours = times[next(iter(times))]
        peer = min((p for p in self.peers if p in times), key=median.__getitem__, default=None)
        of_peer = ratio(ours, times[peer]) if peer else None
        return Result(self.group, self.algorithm, self.model, median, peer, of_peer, len(ours))


def inside_cpp(s: Subject, algorithm: str) -> Row:
    """Measure one state per call, with both loops inside C++."""
    x, pin_x = (s.a, s.pin_a) if algorithm == "rnea" else (s.tau, s.pin_tau)
    inputs = [s.q] if algorithm == "crba" else [s.q, s.v, x]

    def ours(repeats: int) -> float:
        return float(sarrus._core.time_one_state(s.robot, ALGORITHMS[algorithm], inputs, repeats))

    sides = {"sarrus": repeated(ours, len(s.q))}
    if cpp := s.cpp:
        # Pinocchio has RNEA in one convention, and other algorithms in two conventions, of which the faster depends on algorithm and model
        for convention in [""] if algorithm == "rnea" else [" local", " world"]:
            which = algorithm + convention
            sides[f"Pinocchio C++{convention}"] = repeated(partial(cpp.time, which, s.pin_q, s.pin_v, pin_x), len(s.q))
    return Row("cpp", algorithm, s.model.name, sides, tuple(sides)[1:])


def christoffel(s: Subject) -> Row:
    """Measure one state per call, inside C++."""

    def ours(repeats: int) -> float:
        return float(sarrus._core.time_one_state(s.robot, ALGORITHMS["christoffel"], [s.q], repeats))

    return Row("alone-cpp", "christoffel", s.model.name, {"sarrus": repeated(ours, len(s.q))}, ())


def from_python(s: Subject, algorithm: str) -> Row:
    """Measure one state per call, from Python."""
    nv = s.robot.nv
    ours, x = getattr(s.robot, ALGORITHMS[algorithm]), s.a if algorithm == "rnea" else s.tau
    if algorithm == "crba":
        sides = {"sarrus": statement("f(q, out=M)", "q", list(s.q), f=ours, M=np.empty((nv, nv)))}
    else:
        states = list(zip(s.q, s.v, x))
        sides = {"sarrus": statement("f(q, v, x, out=y)", "q, v, x", states, f=ours, y=np.empty(nv))}
    if not s.pin:
        return Row("python", algorithm, s.model.name, sides, ())
    common = {"f": getattr(pin, algorithm), "model": s.pin, "data": s.pin_data, "world": pin.Convention.WORLD}
    if algorithm == "crba":
        sides["pin"] = statement("f(model, data, q)", "q", list(s.pin_q), **common)
        return Row("python", algorithm, s.model.name, sides, ("pin",))
    pin_states = list(zip(s.pin_q, s.pin_v, s.pin_a if algorithm == "rnea" else s.pin_tau))
    sides["pin"] = statement("f(model, data, q, v, x)", "q, v, x", pin_states, **common)
    if algorithm == "aba":
        sides["pin world"] = statement("f(model, data, q, v, x, world)", "q, v, x", pin_states, **common)
    peers = tuple(sides)[1:]
    if s.mujoco:
        q, v, a, tau = s.mujoco_states()
        d = s.mujoco.data
        sides["MuJoCo"] = statement(
            "qpos[:] = q; qvel[:] = v; given[:] = x; f(m, d)",
            "q, v, x",
            list(zip(q, v, a if algorithm == "rnea" else tau)),
            f=s.mujoco.mj_inverse if algorithm == "rnea" else s.mujoco.mj_forward,
            given=d.qacc if algorithm == "rnea" else d.qfrc_applied,
            qpos=d.qpos,
            qvel=d.qvel,
            m=s.mujoco.model,
            d=d,
        )
    return Row("python", algorithm, s.model.name, sides, peers)


def many_states(s: Subject, algorithm: str) -> Iterator[Row]:
    """Measure the rows "batch", "threads" and "pin-threads"; every call writes into an output array."""
    n, nv = len(s.q), s.robot.nv
    out = np.empty((n, nv, nv) if algorithm == "crba" else (n, nv))
    x, pin_x = (s.a, s.pin_a) if algorithm == "rnea" else (s.tau, s.pin_tau)
    inputs = (s.q,) if algorithm == "crba" else (s.q, s.v, x)
    f = getattr(s.robot, ALGORITHMS[algorithm])

    def ours(threads: int) -> Sample:
        def sample() -> float:
            start = perf_counter()
            f(*inputs, out=out, threads=threads)
            return (perf_counter() - start) / n

        return sample

    sides, name = {"sarrus": ours(1)}, s.model.name
    # Pinocchio has no parallel CRBA. Its C++ function is called in a loop, and results are not copied from its workspace
    if algorithm == "crba":
        if cpp := s.cpp:
            for convention in ("local", "world"):
                loop = partial(cpp.time, f"crba {convention}", s.pin_q, s.pin_v, pin_x, 1)
                sides[f"Pinocchio C++ {convention}"] = loop
    elif s.pin:
        parallel, pool = getattr(pin, f"{algorithm}InParallel"), pin.ModelPool(s.pin, 2)
        # states are columns, as Pinocchio requires
        columns = [y.T for y in (s.pin_q, s.pin_v, pin_x, np.empty((n, nv)))]

        def theirs(threads: int) -> Sample:
            def sample() -> float:
                start = perf_counter()
                parallel(threads, pool, *columns)
                return (perf_counter() - start) / n

            return sample

        sides[f"pin.{algorithm}InParallel(1)"] = theirs(1)
    yield Row("batch", algorithm, name, sides, tuple(sides)[1:])
    if (os.cpu_count() or 1) > 1:
        sides = {"sarrus(2)": ours(2), "sarrus(1)": ours(1)}
        yield Row("threads", algorithm, name, sides, ("sarrus(1)",))
        if (
            algorithm != "crba" and s.pin
        ):  # measured separately from sarrus, because OpenMP's idle threads keep cores busy for a while
            sides = {f"pin.{algorithm}InParallel({k})": theirs(k) for k in (2, 1)}
            yield Row("pin-threads", algorithm, name, sides, (f"pin.{algorithm}InParallel(1)",))


def measured(models: list[Model], run: Run, selection: Selection) -> list[Result]:
    """Check that the results of all libraries agree, then measure the rows."""
    library, states = run.library(SOURCE), run.of(BATCH, BATCH, 64)
    algorithms = [algorithm for algorithm in TREE_ALGORITHMS if algorithm in selection.algorithms]
    groups = selection.groups & {*TREE_GROUPS, "allocations"}
    alone = selection.algorithms & {"christoffel"} if "alone-cpp" in selection.groups else frozenset()
    results: list[Result] = []
    for model in models if (algorithms and groups) or alone else ():
        judged = alone and f"alone-cpp, christoffel, {model.name}" in GOALS["dynamics"]
        if model.name not in selection.models or not (judged or (algorithms and groups)):
            continue
        subject = Subject(model, library, states)
        errors = subject.check()
        run.tell(
            f"{model.title}: the libraries agree to {max(e for what, e in errors.items() if 'MuJoCo' not in what):.0e}"
        )
        cycle = subject.first(CYCLE)
        rows: list[Row] = []
        for algorithm in algorithms:
            if "cpp" in groups:
                rows.append(inside_cpp(cycle, algorithm))
            if "python" in groups:
                rows.append(from_python(cycle, algorithm))
            output = 8 * states * subject.robot.nv ** (2 if algorithm == "crba" else 1)
            if groups & {"batch", "threads", "pin-threads"} and output < LARGEST_OUTPUT:
                rows += [row for row in many_states(subject, algorithm) if row.group in groups]
        if judged:
            rows.append(christoffel(cycle))
        for row in rows:
            run.tell(f"{model.title}: {row.algorithm}, {row.group}")
            results.append(row.measure(run.of(3.0, 0.3, 0.0)))
        if "allocations" in groups and can_count():
            counts = count_allocations(subject.robot, tree_calls(subject.robot))
            for algorithm in algorithms:
                count = counts[ALGORITHMS[algorithm]]
                results.append(Result("allocations", algorithm, model.name, {}, allocations=count))
    return results
