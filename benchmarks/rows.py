"""What is measured, and the numbers to reach."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pinocchio as pin

import sarrus

from .allocations import count_allocations, tree_calls
from .measure import Sample, interleave, ratio, repeated, statement
from .models import Model
from .subjects import Subject

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
CYCLE, BATCH = 256, 10_000  # states that the one-state rows go round, and states of a batch
LARGEST_OUTPUT = 256e6  # bytes; the mass matrices of 10,000 chains of 100 links are three times that

# (group, algorithm, model) to what must be reached: sarrus' time over its peer's at most this, ...
AT_MOST = {
    ("cpp", "rnea", "panda"): 0.5,
    ("cpp", "aba", "panda"): 0.5,
    ("cpp", "crba", "panda"): 0.8,
    ("cpp", "rnea", "talos"): 0.5,
    ("cpp", "aba", "talos"): 0.5,
    ("cpp", "crba", "talos"): 0.8,
    ("python", "rnea", "panda"): 0.45,
    ("python", "aba", "panda"): 0.5,
    ("loops-cpp", "loops", "ladder1"): 0.6,
    ("loops-cpp", "loops", "ladder8"): 0.45,
    ("loops-cpp", "loops", "ladder64"): 0.35,
    ("loops-cpp", "loops", "welds64"): 0.5,
    ("loops-cpp", "loops", "stewart"): 0.5,
    ("loops-growth", "loops", "ladder64"): 9.0,
}
# ... or so many times as fast as its peer, at least
AT_LEAST = {
    ("batch", "rnea", "panda"): 10.0,
    ("batch", "aba", "panda"): 8.0,
    ("batch", "crba", "panda"): 4.0,
    ("batch", "rnea", "talos"): 6.0,
    ("batch", "aba", "talos"): 6.0,
    ("threads", "rnea", "panda"): 1.8,
    ("threads", "aba", "panda"): 1.8,
    ("threads", "crba", "panda"): 1.8,
    ("floating-batch", "gjm", "satellite6"): 6.0,
    **{("loops-batch", "loops", name): 4.0 for name in ("ladder1", "ladder8", "ladder64", "welds64", "stewart")},
}
# ... or so many seconds a call, at most
WITHIN = {
    ("alone-cpp", "christoffel", "panda"): 3e-6,
    ("loops-python", "efforts", "five_bar3"): 3e-6,
    ("loops-python", "efforts", "five_bar4"): 3e-6,
    ("loops-python", "efforts", "three_rrr3"): 5e-6,
    ("loops-python", "efforts", "three_rrr6"): 5e-6,
    ("floating-python", "gjm", "satellite6"): 1.5e-6,
}


@dataclass(frozen=True)
class Selection:
    """What ``--only`` leaves; a kind of which nothing is named is measured whole."""

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
    """One measured comparison.

    Attributes
    ----------
    times : median seconds per state of every side
    peer : the fastest of the sides that sarrus is judged against, or None
    ratio : sarrus' time over the peer's: median and quartiles over pairs of neighbours
    allocations : a call, for the rows that count them
    errors : relative error of what the sides computed, for the rows in which they differ
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
    def key(self) -> tuple[str, str, str]:
        return self.group, self.algorithm, self.model

    @property
    def bar(self) -> str:
        if self.group == "allocations":
            return "none"
        if self.key in WITHIN:
            return f"at most {WITHIN[self.key] * 1e6:g} µs"
        if self.group == "loops-growth":
            return f"at most {AT_MOST[self.key]:g} times"
        if self.key in AT_MOST:
            return f"at most {AT_MOST[self.key]:g} of its time"
        return f"at least {AT_LEAST[self.key]:g} times" if self.key in AT_LEAST else ""

    @property
    def target(self) -> float | None:
        """What must be reached, as times as fast as the peer."""
        return 1 / AT_MOST[self.key] if self.key in AT_MOST else AT_LEAST.get(self.key)

    @property
    def reached(self) -> bool | None:
        """None where there is no number to reach, or no peer to compare with."""
        if self.allocations is not None:
            return self.allocations == 0
        if self.key in WITHIN:
            return next(iter(self.times.values())) <= WITHIN[self.key]
        return 1 / self.ratio[0] >= self.target if self.ratio and self.target else None


@dataclass(frozen=True)
class Row:
    """Sides to time in turns; the first is judged against the fastest of `peers`."""

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
    """One state a call, both loops inside C++."""
    x, pin_x = (s.a, s.pin_a) if algorithm == "rnea" else (s.tau, s.pin_tau)
    inputs = [s.q] if algorithm == "crba" else [s.q, s.v, x]

    def ours(repeats: int) -> float:
        return float(sarrus._core.time_one_state(s.robot, ALGORITHMS[algorithm], inputs, repeats))

    sides = {"sarrus": repeated(ours, len(s.q))}
    if cpp := s.cpp:
        # RNEA has one form; which of the two conventions is the faster depends on the algorithm and the model
        for convention in [""] if algorithm == "rnea" else [" local", " world"]:
            which = algorithm + convention
            sides[f"Pinocchio C++{convention}"] = repeated(partial(cpp.time, which, s.pin_q, s.pin_v, pin_x), len(s.q))
    return Row("cpp", algorithm, s.model.name, sides, tuple(sides)[1:])


def christoffel(s: Subject) -> Row:
    """One state a call, inside C++."""

    def ours(repeats: int) -> float:
        return float(sarrus._core.time_one_state(s.robot, ALGORITHMS["christoffel"], [s.q], repeats))

    return Row("alone-cpp", "christoffel", s.model.name, {"sarrus": repeated(ours, len(s.q))}, ())


def from_python(s: Subject, algorithm: str) -> Row:
    """One state a call, from Python."""
    nv = s.robot.nv
    ours, theirs = getattr(s.robot, ALGORITHMS[algorithm]), getattr(pin, algorithm)
    common = {"f": theirs, "model": s.pin, "data": s.pin_data, "world": pin.Convention.WORLD}
    if algorithm == "crba":
        sides = {
            "sarrus": statement("f(q, out=M)", "q", list(s.q), f=ours, M=np.empty((nv, nv))),
            "pin": statement("f(model, data, q)", "q", list(s.pin_q), **common),
        }
        return Row("python", algorithm, s.model.name, sides, ("pin",))
    x, pin_x = (s.a, s.pin_a) if algorithm == "rnea" else (s.tau, s.pin_tau)
    pin_states = list(zip(s.pin_q, s.pin_v, pin_x))
    sides = {
        "sarrus": statement("f(q, v, x, out=y)", "q, v, x", list(zip(s.q, s.v, x)), f=ours, y=np.empty(nv)),
        "pin": statement("f(model, data, q, v, x)", "q, v, x", pin_states, **common),
    }
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
    """Rows "batch", "threads" and "pin-threads"; every call gets its output array."""
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
    if algorithm == "crba":  # Pinocchio has no parallel CRBA: its C++ in a loop, each result left in its workspace
        if cpp := s.cpp:
            for convention in ("local", "world"):
                loop = partial(cpp.time, f"crba {convention}", s.pin_q, s.pin_v, pin_x, 1)
                sides[f"Pinocchio C++ {convention}"] = loop
    else:
        parallel, pool = getattr(pin, f"{algorithm}InParallel"), pin.ModelPool(s.pin, 2)
        columns = [y.T for y in (s.pin_q, s.pin_v, pin_x, np.empty((n, nv)))]  # column-major, as Pinocchio wants

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
        if algorithm != "crba":  # apart from ours: OpenMP's idle threads spin for a while and keep a core busy
            sides = {f"pin.{algorithm}InParallel({k})": theirs(k) for k in (2, 1)}
            yield Row("pin-threads", algorithm, name, sides, (f"pin.{algorithm}InParallel(1)",))


def run(
    models: list[Model], library: Path | None, selection: Selection, seconds: float, tell: Callable[[str], None]
) -> tuple[list[Result], dict[str, dict[str, float]]]:
    """Check that the libraries agree, then measure.

    Returns
    -------
    results, and the differences between the libraries by model and function
    """
    algorithms = [algorithm for algorithm in TREE_ALGORITHMS if algorithm in selection.algorithms]
    groups = selection.groups & {*TREE_GROUPS, "allocations"}
    alone = selection.algorithms & {"christoffel"} if "alone-cpp" in selection.groups else frozenset()
    results: list[Result] = []
    errors: dict[str, dict[str, float]] = {}
    for model in models if (algorithms and groups) or alone else ():
        judged = alone and ("alone-cpp", "christoffel", model.name) in WITHIN
        if model.name not in selection.models or not (judged or (algorithms and groups)):
            continue
        tell(f"{model.title}: do the libraries agree?")
        subject = Subject(model, library, BATCH)
        errors[model.name] = subject.check()
        cycle = subject.first(CYCLE)
        rows: list[Row] = []
        for algorithm in algorithms:
            if "cpp" in groups:
                rows.append(inside_cpp(cycle, algorithm))
            if "python" in groups:
                rows.append(from_python(cycle, algorithm))
            output = 8 * BATCH * subject.robot.nv ** (2 if algorithm == "crba" else 1)
            if groups & {"batch", "threads", "pin-threads"} and output < LARGEST_OUTPUT:
                rows += [row for row in many_states(subject, algorithm) if row.group in groups]
        if judged:
            rows.append(christoffel(cycle))
        for row in rows:
            tell(f"{model.title}: {row.algorithm}, {row.group}")
            results.append(row.measure(seconds))
        if "allocations" in groups and sys.platform == "linux":
            counts = count_allocations(subject.robot, tree_calls(subject.robot))
            for algorithm in algorithms:
                count = counts[ALGORITHMS[algorithm]]
                results.append(Result("allocations", algorithm, model.name, {}, allocations=count))
    return results, errors
