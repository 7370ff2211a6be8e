"""Many simulations side by side: in the lanes of a core, on threads, and over processes."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._arrays import Array, checked_count, is_masked, real_array, real_rows
from .._core import Status
from ..control.element import Run
from ..control.elements import EndStop, ForceElement, Stiction
from ..control.terms import ForceElements, force_elements, functions_and_elements
from ..errors import OF_MOTORS, ModelError, ShapeError, StateError
from ..mechanism import Mechanism, checked_mechanism
from .energy import energy_error, warn_of_energy
from .integration import (
    METHODS,
    STABILISATIONS,
    MethodName,
    Stabilisation,
    check_advance,
    check_choice,
    check_memory,
    check_periods,
    checked_near,
    has_functions_of_q,
    loop_coordinates,
    method_for,
    on_the_loops,
    start_of,
    whole_steps,
)
from .limits import HEAD, LIMITS, JointLimits, OnLimits, ends_off_loops, warn_of_drift, warn_of_stiffness
from .runs import Sweep
from .simulate import checked_gains, checked_times

__all__ = ["Status", "Sweep", "simulate_many"]

LANES = 8  # the most of any instruction set: in shares of whole packets each run meets the same neighbours as without
SHARE = 2**22  # bytes at most that are sent to a worker at once: Dask warns of more than 10 MB
MOST_THREADS = 2**16  # more than any machine has
BLOCK = 1024  # runs a thread of which all is kept at once
EVER = 1e300  # before all times: kernels know no infinity
Ended = NDArray[np.int8]  # (runs,), a Status each


Rows = slice | NDArray[np.intp]
Result = tuple[Rows, Array, Ended, Array]  # which runs, what is kept of them, how they ended, what was seen
Policy = Callable[[float, Array, Array], ArrayLike]


class Executor(Protocol):
    """What takes jobs, as :class:`concurrent.futures.Executor` does."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Job: ...


class Job(Protocol):
    """What is asked of a :class:`concurrent.futures.Future`."""

    def result(self) -> Any: ...

    def cancel(self) -> Any: ...

    def done(self) -> bool: ...


def simulate_many(
    mechanism: Mechanism | Sequence[Mechanism],
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    controller: ForceElement | Sequence[ForceElement] | None = None,
    *,
    method: MethodName = "auto",
    dt: float = 1e-3,
    stabilisation: Stabilisation = "projection",
    gains: tuple[float, float] | None = None,
    every: int = 1,
    limits: OnLimits = "warn",
    start: float = 0.0,
    near: Mapping[str, ArrayLike] | None = None,
    threads: int = 1,
    executor: Executor | None = None,
    policy: Policy | None = None,
) -> Sweep:
    """Many runs side by side, several in the lanes of a processor's core and some on each thread.

    Each is to rounding what :func:`~sarrus.simulate` makes of the same start.

    Parameters
    ----------
    mechanism : what moves; or one a run, a sequence (runs,) of mechanisms that differ in numbers (lengths, masses, places) but not in joints:
        runs of the same one are side by side, others one after the other on each thread
    q, v : (runs, nq), (runs, nv), or one of them for all; where there are loops they are brought onto them
    duration : [s]; where it is no whole number of steps, the last one is shorter
    controller : force elements of :mod:`sarrus.control`, whose numbers may be arrays (runs,) and whose laws sequences (runs,) of laws. The rest is
        the same in all runs: joints, frames, times of :class:`~sarrus.control.Efforts`, periods of :class:`~sarrus.control.Sampled`
    method : "auto" as for :func:`~sarrus.simulate`, or one with fixed steps; "implicit_midpoint" and "independent" run one after the other on each thread
    near : as for :func:`~sarrus.simulate`, (nq of the joint), or (runs, nq of the joint)
    dt, stabilisation, gains, limits, start : as for :func:`~sarrus.simulate`
    every : keep the start, the state after every so many steps, and the end. Each takes 8 (nq + nv) bytes of each run: a million runs of
        10 coordinates 0.3 GB for start and end alone, 160 GB for a second in steps of 1 ms
    threads : how many work on it; the answer does not depend on it
    executor : a :class:`concurrent.futures.Executor`, or what acts as one (``dask.distributed.Client(...).get_executor()``, for which
        ``pip install "sarrus[distributed]"``): shares of the runs are its jobs, on `threads` each. The answer is the same bit for bit,
        where the workers' processors are the same
    policy : a function (t, q (runs, nq), v (runs, nv)) -> efforts (runs, nv) of all joints of the tree, as a network computes them: it is asked
        once a step, and what it says is held until the next one, within the joints' effort limits as other controllers' efforts. Runs that
        have failed stay as they were last, and it does not matter what it says of them

    Returns
    -------
    Sweep : t (n,), q (runs, n, nq), v (runs, n, nv), status (runs,), a :class:`~sarrus.results.Status` each. A run that fails, or whose start
        is unsound, has NaN from there on, and the others do not know. Ctrl-C ends early, with what there is. What it has besides, see
        :class:`Sweep`.

    Warns
    -----
    LimitWarning, StiffnessWarning, DriftWarning
        As :func:`~sarrus.simulate`, once for all runs.

    Raises
    ------
    ModelError, ShapeError, NameNotFoundError, TypeError, ValueError
        What is given does not fit the mechanism, before anything runs. What a job of the executor raises comes through, and the jobs that
        have not begun are cancelled.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> runs = sarrus.simulate_many(robot, np.linspace(0.1, 0.4, 4)[:, None], [0.0], 1.0, every=100)
    >>> runs.q.shape, int(runs.status.max())
    ((4, 11, 1), 0)
    >>> t, q, v, status = runs

    Each run with a law of its own:

    >>> push = sarrus.control.PrescribedEffort("pivot", [sarrus.laws.harmonic(1.0, rate) for rate in (2.0, 4.0, 6.0)])
    >>> sarrus.simulate_many(robot, [0.0], [0.0], 1.0, push).q[:, -1, 0].round(3).tolist()
    [0.156, 0.124, 0.011]

    A policy for all of them at once:

    >>> held = sarrus.simulate_many(robot, [[0.1], [0.4]], [0.0], 4.0, policy=lambda t, q, v: 50.0 * (0.2 - q) - 10.0 * v)
    >>> held.q[:, -1, 0].round(2).tolist()
    [0.17, 0.17]
    """
    robots, of_run = _robots(mechanism)
    robot = robots[0]
    _check_choices(method, limits, stabilisation)
    gains = checked_gains(robot, stabilisation, gains)
    threads, every = checked_count("threads", threads, most=MOST_THREADS), checked_count("every", every)
    start, duration, dt = checked_times(start, duration, dt)
    check_advance(start, duration, dt)
    clock = _Clock.of(start, duration, dt, every)
    if any(map(has_functions_of_q, robots)):
        raise ModelError("Pfaffian rows that are Python functions cannot run side by side: use simulate()")
    functions, elements = functions_and_elements(controller)
    if functions:
        raise TypeError(
            "simulate_many() takes elements of sarrus.control; a Python function runs in simulate(), or as policy= over all runs at once"
        )
    _check_callables(policy, executor, len(robots))
    chosen, watches = method_for(method, elements), [JointLimits(one, limits, elements) for one in robots]
    _check_alike(robots, watches)
    acts = [
        force_elements(
            one,
            [*elements, *watch.end_stops],
            Run(watch.effort_limits, _felt_at(one, [*elements, *watch.end_stops], q)),
        )
        for one, watch in zip(robots, watches, strict=True)
    ]
    check_periods(acts[0].terms, duration, dt)
    if any(acts[0].sampled):
        raise TypeError("simulate_many() takes elements of sarrus.control; a Python function is Sampled in simulate()")
    if policy is not None:
        _hold(acts[0], robot.nv)
    several = 1 if of_run is None else len(of_run)
    q, v, parameters = _equally_many(robot, q, v, acts[0].parameters, several)
    if policy is not None or of_run is not None:
        parameters = np.array(np.broadcast_to(parameters, (len(q), parameters.shape[-1])))

    jobs = [
        _Job(one, chosen, stabilisation, gains, act.terms, act.effort_limits, watch.terms, clock, threads)
        for one, act, watch in zip(robots, acts, watches, strict=True)
    ]
    work: Work = [(slice(0, len(q)), jobs[0])]
    if of_run is not None:
        sorted_runs, counts = np.argsort(of_run, kind="stable"), np.bincount(of_run, minlength=1)
        work = list(zip(np.split(sorted_runs, np.cumsum(counts)[:-1]), jobs, strict=True))
        for (rows, _), act in zip(work, acts, strict=True):
            parameters[rows] = act.parameters[rows] if act.parameters.ndim == 2 else act.parameters
    kept = _Kept.of(robot, len(q), clock.samples + 1, jobs[0].core().size, len(watches[0].watched))
    asked = None if policy is None else np.full((*kept.q.shape[:2], robot.nv), np.nan)
    try:
        x = kept.begin(work, q, v, near)
        if asked is not None:
            shares = _once(_by_policy(jobs[0], x, parameters, cast(Policy, policy), asked))
        elif executor is not None:
            shares = _spread(executor, work, x, parameters)
        else:
            shares = (_on_threads if threads > 1 and len(work) > 1 else _here)(work, x, parameters)
        with contextlib.closing(shares):
            kept.take(shares)
    except KeyboardInterrupt:
        pass  # what has not come back is marked as interrupted, as simulate() does
    kept.records[~np.isin(kept.ended, (Status.FINISHED, Status.INTERRUPTED))] = np.nan
    sweep = Sweep(
        robot, clock.times(start + duration), kept.q, kept.v, kept.ended, z=kept.z, counted=jobs[0].core().counted, limits=watches[0].watched,
        excess=kept.records[:, HEAD + 1 :: 2], stiffness=kept.records[:, 0], efforts=asked,
        mechanisms=None if of_run is None else [robots[k] for k in of_run],
        acting=Acting(jobs[0], parameters) if of_run is None else [Acting(jobs[k], row) for k, row in zip(of_run, parameters, strict=True)],
    )  # fmt: skip
    watches[0].warn(*_exceeded(watches, of_run, kept.records))
    if (
        not warn_of_stiffness(chosen, min(dt, duration), **_stiffest(chosen, kept.records), steps=clock.steps)
        and policy is None
    ):
        acting = [[*elements, *watch.end_stops] for watch in watches]
        warn_of_energy(chosen, min(dt, duration), _energy_errors(chosen, work, acting, sweep))
    if stabilisation != "projection":
        warn_of_drift(stabilisation, kept.ends_off_loops(robots, of_run, start + duration))
    return sweep


def _energy_errors(method: str, work: Work, acting: Sequence[Sequence[Any]], sweep: Sweep) -> Array:
    """As :func:`energy_error`, of runs of several mechanisms, each with its force elements."""
    share = np.zeros(len(sweep))
    for (runs, job), elements in zip(work, acting, strict=True):
        some = sweep[runs]
        share[runs] = energy_error(method, job.mechanism, [], elements, some.q, some.v, some.__getitem__)
    return share


@dataclass(frozen=True, eq=False)
class _Kept:
    """What has come back of the runs: samples (runs, n, ...), how each ended, and its record; `begun`: what became of its start."""

    q: Array
    v: Array
    z: Array
    ended: NDArray[np.int8]
    records: Array
    begun: NDArray[np.int8]

    @classmethod
    def of(cls, robot: Mechanism, runs: int, samples: int, size: int, limits: int) -> _Kept:
        check_memory(samples, runs, size)
        q, v, z = (np.full((runs, samples, k), np.nan) for k in (robot.nq, robot.nv, size - robot.nq - robot.nv))
        ended, begun = (np.full(runs, status, np.int8) for status in (Status.INTERRUPTED, Status.FINISHED))
        return cls(q, v, z, ended, np.full((runs, HEAD + 2 * limits), np.nan), begun)

    def begin(self, work: Work, q: Array, v: Array, near: Mapping[str, ArrayLike] | None) -> Array:
        """The states (runs, size) from which runs go on."""
        turns = {}
        for name, angles in checked_near(near).items():
            size = work[0][1].mechanism.joint(name).type.nq
            turns[name] = np.broadcast_to(real_rows(f"near['{name}']", angles, size, (len(q),)), (len(q), size))
        nq, nv = self.q.shape[-1], self.v.shape[-1]
        x = np.zeros((len(self.q), nq + nv + self.z.shape[-1]))
        for rows, job in work:
            part = x[rows]
            self.begun[rows] = job.begin(q[rows], v[rows], part, {name: x[rows] for name, x in turns.items()})
            x[rows] = part
        self.q[:, 0], self.v[:, 0], self.z[:, 0] = x[:, :nq], x[:, nq : nq + nv], x[:, nq + nv :]
        unsound = self.begun != Status.FINISHED
        self.q[unsound] = self.v[unsound] = self.z[unsound] = np.nan
        return x

    def take(self, shares: Generator[Result, None, None]) -> None:
        """Of each share of the runs what it did, until one is interrupted."""
        nq, nv = self.q.shape[-1], self.v.shape[-1]
        unsound = self.begun != Status.FINISHED
        for share, states, status, record in shares:
            self.records[share] = record
            states[unsound[share]] = np.nan
            self.q[share, 1:], self.v[share, 1:] = states[..., :nq], states[..., nq : nq + nv]
            self.z[share, 1:] = states[..., nq + nv :]
            self.ended[share] = np.where(unsound[share], self.begun[share], status)
            if (status == Status.INTERRUPTED).any():
                break

    def ends_off_loops(
        self, robots: list[Mechanism], of_run: NDArray[np.intp] | None, time: float
    ) -> NDArray[np.bool_]:
        off = np.zeros(len(self.q), dtype=bool)
        for k, robot in enumerate(robots):
            these = (self.ended == Status.FINISHED) & (of_run is None or of_run == k) & (robot.nc > 0)
            off[these] = ends_off_loops(robot, self.q[these, -1], self.v[these, -1], time)
        return off


def _stiffest(method: str, records: Array) -> dict[str, Any]:
    """What :func:`warn_of_stiffness` is told of all runs."""
    beyond, eaten = np.nan_to_num(records[:, 0]), np.nan_to_num(records[:, HEAD - 1])
    stable = METHODS[method].stable
    fast = (beyond > stable) if (beyond > stable).any() else (eaten > 0.0)
    return {
        "largest": float(beyond.max(initial=0.0)),
        "runs": f" (in {int(fast.sum())} of {len(records)} runs)",
        "eaten": float(eaten.max(initial=0.0)),
    }


def _check_choices(method: str, limits: str, stabilisation: str) -> None:
    check_choice("method", method, ("auto", *METHODS))
    check_choice("limits", limits, LIMITS)
    check_choice("stabilisation", stabilisation, STABILISATIONS)
    if method != "auto" and METHODS[method].adaptive:
        raise ValueError(f"simulate_many() takes fixed steps: '{method}' decides on its own steps for each state")


def _check_callables(policy: Any, executor: Any, mechanisms: int) -> None:
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, or have its submit(); got {executor!r}")
    if policy is None:
        return
    if not callable(policy):
        raise TypeError(f"policy must be a function (t, q, v) -> efforts; got {policy!r}")
    if executor is not None:
        raise TypeError("a policy is asked here, and not on an executor's workers: give one of them")
    if mechanisms > 1:
        raise TypeError("a policy is asked for all runs at once, which must be of one mechanism")


def _felt_at(robot: Mechanism, elements: Sequence[Any], q: ArrayLike) -> Array | None:
    """Where runs begin, if some default is to be of what is felt there."""
    if not any(isinstance(e, (EndStop, Stiction)) and (e.damping is None or e.stiffness is None) for e in elements):
        return None
    return start_of(robot, q)


def _robots(mechanisms: Mechanism | Sequence[Mechanism]) -> tuple[list[Mechanism], NDArray[np.intp] | None]:
    """What moves; of several, one a run, each once, and which of them a run has."""
    if not isinstance(mechanisms, (list, tuple)) or not mechanisms:
        return [checked_mechanism(mechanisms)], None
    numbered = {one: k for k, one in enumerate(dict.fromkeys(checked_mechanism(one) for one in mechanisms))}
    return list(numbered), np.array([numbered[one] for one in mechanisms], dtype=np.intp)


def _check_alike(robots: Sequence[Mechanism], watches: Sequence[JointLimits]) -> None:
    """ModelError where mechanisms have not the same coordinates, motors and kinds of limits."""

    def of(robot: Mechanism, watch: JointLimits) -> dict[str, Any]:
        return {
            "joints": [
                (name, robot.joint(name).type.coordinates, robot.joint(name).type.velocities) for name in robot.joints
            ],
            "joints that close loops": list(robot.loop_joints),
            "actuated joints": list(robot.actuated),
            "limits of joints": [(w.joint, w.index, w.quantity) for w in watch.watched],
        }

    first = of(robots[0], watches[0])
    for robot, watch in zip(robots[1:], watches[1:], strict=True):
        for what, mine in of(robot, watch).items():
            if mine != first[what]:
                raise ModelError(
                    f"mechanisms side by side may differ in numbers only; '{robot.name}' has other {what} than '{robots[0].name}'"
                )


def _exceeded(
    watches: Sequence[JointLimits], of_run: NDArray[np.intp] | None, records: Array
) -> tuple[list[dict[str, Any]], str]:
    """Limits that any of the runs left, as the first of these did, and in how many runs."""
    out = np.nan_to_num(records[:, HEAD + 1 :: 2]) != 0.0
    left = []
    for k in np.flatnonzero(out.any(axis=0)):
        first = int(out[:, k].argmax())
        watch = watches[0 if of_run is None else of_run[first]]
        left.append(watch.exceeded(records[first])[out[first, :k].sum()])
    return left, f" (in {int(out.any(axis=1).sum())} of {len(records)} runs some limit is left)"


@dataclass(frozen=True)
class _Clock:
    """Whole steps of dt from the start, and the rest [s] up to the end if it is more than rounding."""

    start: float
    dt: float
    whole: int
    rest: float
    every: int

    @classmethod
    def of(cls, start: float, duration: float, dt: float, every: int) -> _Clock:
        clock = cls(start, dt, *whole_steps(start, start + duration, dt), every)
        return replace(clock, every=min(every, max(clock.steps, 1)))

    @property
    def steps(self) -> int:
        return self.whole + (self.rest > 0.0)

    @property
    def samples(self) -> int:
        """How many states are kept after the start."""
        return -(-self.steps // self.every)

    def times(self, end: float) -> Array:
        """Of the start and of what is kept, up to the end with its last digit."""
        steps = np.minimum(np.arange(self.samples + 1) * self.every, self.steps)
        t: Array = self.start + steps * self.dt
        t[-1] = end
        return t


@dataclass(frozen=True)
class _Job:
    """What all runs share: enough for a worker far away."""

    mechanism: Mechanism
    method: str
    stabilisation: str
    gains: tuple[float, float]
    terms: list[dict[str, Any]]
    effort_limits: list[float]
    limits: list[tuple[int, int, float, float]]
    clock: _Clock
    threads: int

    def core(self, parameters: ArrayLike = ()) -> _core.Simulation:
        return _core.Simulation(
            self.mechanism, self.method, self.stabilisation, self.gains, self.terms, self.effort_limits,
            parameters, None, [], None, [], self.limits, self.mechanism._units_of_motion, True,
        )  # fmt: skip

    def begin(self, q: Array, v: Array, x: Array, near: Mapping[str, Array]) -> Ended:
        """Writes the states to start from, on the loops, into x (runs, size), neutral ones where there is none; tells why (runs,) not."""
        robot, nq, counted = self.mechanism, self.mechanism.nq, self.core().counted
        begun = np.full(len(q), Status.FINISHED, np.int8)
        for rows in _shares(len(q), BLOCK * self.threads):
            q_on, v_on, begun[rows] = self._on_the_loops(q[rows], v[rows])
            off = begun[rows] != Status.FINISHED
            x[rows, :nq] = np.where(off[:, None], robot.neutral(), q_on)
            x[rows, nq : nq + robot.nv] = np.where(off[:, None], 0.0, v_on)
            if counted or near:
                turns = {name: angles[rows] for name, angles in near.items()}
                coordinates = loop_coordinates(robot, x[rows, :nq], self.clock.start, turns)
                x[rows, x.shape[1] - counted :] = coordinates[:, :counted]
        return begun

    def _on_the_loops(self, q: Array, v: Array) -> tuple[Array, Array, Ended]:
        robot = self.mechanism
        asked: dict[str, Any] = {"threads": self.threads, "return_status": True}
        q, off = robot.normalize(q, **asked)
        unsound = (off != 0) | ~np.isfinite(v).all(axis=1)
        if not robot.nc or self.stabilisation == "none":
            return q, v, np.where(unsound, Status.UNSOUND, Status.FINISHED)
        q, v = np.where(unsound[:, None], robot.neutral(), q), np.where(unsound[:, None], 0.0, v)
        q, v, off = on_the_loops(robot, q, v, self.clock.start, self.threads)
        return q, v, np.where(unsound, Status.UNSOUND, off)

    def __call__(self, x: Array, parameters: Array) -> tuple[Array, Ended, Array]:
        """From states x (runs, size): those after every so many steps (runs, n - 1, size), how it ended (runs,), and what was seen."""
        return self.run(self.core(), x, parameters)

    def run(self, core: _core.Simulation, x: Array, parameters: Array) -> tuple[Array, Ended, Array]:
        """The same by a core that there is already: of thousands of laws one takes its time to make."""
        clock = self.clock
        kept, status, record = core.run_many(
            x, parameters, clock.start, clock.dt, clock.whole, clock.rest, clock.every, self.threads
        )
        return kept, status, record if record.shape[1] else np.zeros((len(x), HEAD))


Work = Sequence[tuple[Rows, _Job]]


@dataclass(frozen=True, eq=False)
class Acting:
    """What acts in runs: all that they share, and the numbers that differ."""

    job: _Job
    parameters: Array

    def of(self, which: Any) -> Acting:
        """In some of the runs."""
        return Acting(self.job, self.parameters[which] if self.parameters.ndim == 2 else self.parameters)

    def efforts(self, run: int, held: Array | None, t: Array, q: Array, v: Array, z: Array) -> Array:
        """Generalised force (n, nv) in states of one run, in which a policy asked for what is held."""
        return self._evaluated(lambda core, t, x: core.efforts(t, x), run, held, t, np.concatenate([q, v, z], axis=-1))

    def friction(self, run: int, held: Array | None, t: Array, q: Array, v: Array, z: Array) -> Array:
        """Dry friction (n, all nv) along all joints there."""
        dt = self.job.clock.dt
        return self._evaluated(
            lambda core, t, x: core.friction(t, x, dt), run, held, t, np.concatenate([q, v, z], axis=-1)
        )

    def _evaluated(
        self, ask: Callable[[_core.Simulation, Array, Array], Array], run: int, held: Array | None, t: Array, x: Array
    ) -> Array:
        numbers = _of(self.parameters, run)
        if held is None:
            return ask(self.job.core(numbers), t, x)
        numbers, forces = numbers.copy(), []
        for k in range(len(t)):
            _set(numbers, held[k])
            forces.append(ask(self.job.core(numbers), t[k : k + 1], x[k : k + 1]))
        return np.concatenate(forces)


# ---- a policy: efforts of all velocities, at the end of the parameters -------------------------------------------------


def _hold(forces: ForceElements, nv: int) -> None:
    """What it asks for acts at all times, whatever its last value."""
    u = forces.add(np.zeros(nv))
    forces.terms.append({"kind": "Efforts", "times": [-EVER], "motors": list(range(nv)), "u": u})


def _set(parameters: Array, efforts: Array) -> None:
    parameters[..., -efforts.shape[-1] :] = efforts


def _once(result: Result) -> Generator[Result, None, None]:
    yield result


def _by_policy(sweep: _Job, x: Array, parameters: Array, policy: Policy, asked: Array) -> Result:
    """All runs step by step; what the policy asks for at each state that is kept is written into asked (runs, n, nv)."""
    clock, core, (nq, nv) = sweep.clock, sweep.core(), (sweep.mechanism.nq, sweep.mechanism.nv)
    kept = np.full((len(x), clock.samples, x.shape[1]), np.nan)
    ended, record = np.full(len(x), Status.FINISHED, np.int8), np.zeros((len(x), HEAD + 2 * len(sweep.limits)))
    record[:, HEAD::2] = np.inf
    going: Any = slice(None)  # or the indices of those that have not failed
    try:
        for k in range(clock.steps):
            t = clock.start + k * clock.dt
            efforts = _answer(policy(t, x[:, :nq].copy(), x[:, nq : nq + nv].copy()), going, (len(x), nv), t)
            _set(parameters, efforts)
            if k % clock.every == 0:
                asked[going, k // clock.every] = efforts[going]
            step = clock.dt if k < clock.whole else clock.rest
            now, status, seen = core.run_many(x[going], parameters[going], t, step, 1, 0.0, 1, sweep.threads)
            x[going] = np.where((status == Status.FINISHED)[:, None], now[:, 0], x[going])
            if seen.shape[1]:
                before = record[going].copy()
                record[going] = np.where(np.abs(seen) > np.abs(before), seen, before)
                record[going, HEAD::2] = np.minimum(seen[:, HEAD::2], before[:, HEAD::2])  # when limits were left first
            ended[going] = status
            if status.any():
                going = np.flatnonzero(ended == Status.FINISHED)
            if (k + 1) % clock.every == 0 or k + 1 == clock.steps:
                kept[going, -(-(k + 1) // clock.every) - 1] = x[going]
                asked[going, -1] = efforts[going]  # of the last state, that which led there
            if (status == Status.INTERRUPTED).any():
                break
    except KeyboardInterrupt:
        ended[going] = Status.INTERRUPTED
    return slice(None), kept, ended, record


def _answer(returned: ArrayLike, going: Any, shape: tuple[int, int], t: float) -> Array:
    """Efforts (runs, nv) of a policy, zero for runs that have failed."""
    efforts = real_array("what the policy returned", returned)
    if efforts.shape != shape:
        raise ShapeError(f"the policy returned shape {efforts.shape}; it must return {shape}{OF_MOTORS}")
    answer = np.zeros(shape)
    answer[going] = efforts[going]
    bad = np.flatnonzero(~np.isfinite(answer).all(axis=1))
    if len(bad):
        raise StateError(
            f"the policy returned {answer[bad[0]]} for run {bad[0]} at t = {t:.9g} s; efforts must be finite"
        )
    return answer


def _here(work: Work, x: Array, parameters: Array) -> Generator[Result, None, None]:
    for rows, job in work:
        core = job.core()
        for share, _ in _cut([(rows, job)], BLOCK * job.threads):
            yield share, *job.run(core, x[share], _of(parameters, share))


def _on_threads(work: Work, x: Array, parameters: Array) -> Generator[Result, None, None]:
    """Of mechanisms of which few runs are alike: some on each thread."""
    pool = _Threads(work[0][1].threads)
    try:
        yield from _spread(pool, [(rows, replace(job, threads=1)) for rows, job in work], x, parameters)
    finally:
        pool.stop()


class _Threads:
    """Threads that are stopped in the middle of their jobs, and for which nothing waits: neither Ctrl-C nor the interpreter's end."""

    def __init__(self, count: int) -> None:
        self._max_workers, self._stopped = count, False
        self._jobs: SimpleQueue[tuple[Future[Any], _Job, tuple[Any, ...]] | None] = SimpleQueue()
        self._running: set[_core.Simulation] = set()
        self._begun = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._jobs.put((future, cast(_Job, fn), args))
        if self._begun < self._max_workers:
            self._begun += 1
            Thread(target=self._work, daemon=True).start()
        return future

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            future, job, args = item
            if self._stopped or not future.set_running_or_notify_cancel():
                continue
            try:
                core = job.core()
                self._running.add(core)
                if self._stopped:
                    core.stop()
                future.set_result(job.run(core, *args))
                self._running.discard(core)
            except BaseException as error:
                future.set_exception(error)

    def stop(self) -> None:
        self._stopped = True
        for core in list(self._running):
            core.stop()
        for _ in range(self._begun):
            self._jobs.put(None)


def _spread(executor: Executor, work: Work, x: Array, parameters: Array) -> Generator[Result, None, None]:
    """In shares that an executor's workers take; however it ends, none begins after that, and what is done by then is kept."""
    unit = 1 if not METHODS[work[0][1].method].in_lanes else LANES
    size = -(-len(x) // (4 * _workers(executor)))  # some for each, as they are not equally fast
    size = max(1, min(size, SHARE // (8 * (x.shape[1] + parameters.shape[-1]))))
    jobs: deque[tuple[Rows, Job]] = deque()
    try:
        for share, sweep in _cut(work, -(-size // unit) * unit):
            jobs.append((share, executor.submit(sweep, x[share], _of(parameters, share))))
        while jobs:
            share, job = jobs[0]
            result = job.result()
            jobs.popleft()  # with what it holds
            yield share, *result
    except KeyboardInterrupt:
        for share, job in jobs:
            if not job.cancel() and job.done():
                yield share, *job.result()
    finally:
        for _, job in jobs:
            job.cancel()


def _workers(executor: Executor) -> int:
    """How many jobs it does at once; 8 where it does not say."""
    count = getattr(executor, "_max_workers", None)
    client = getattr(executor, "_client", executor)  # Dask's
    if count is None and hasattr(client, "ncores"):
        count = sum(client.ncores().values())
    return count or 8


def _shares(runs: int, size: int) -> Iterator[slice]:
    for first in range(0, runs, size):
        yield slice(first, min(first + size, runs))


def _cut(work: Work, size: int) -> Iterator[tuple[Rows, _Job]]:
    """Shares of runs of one mechanism."""
    for rows, job in work:
        runs = rows.stop if isinstance(rows, slice) else len(rows)
        for share in _shares(runs, size):
            yield share if isinstance(rows, slice) else rows[share], job


def _of(parameters: Array, share: Rows | int) -> Array:
    return parameters[share] if parameters.ndim == 2 else parameters


def _equally_many(
    mechanism: Mechanism, q: ArrayLike, v: ArrayLike, parameters: Array, mechanisms: int
) -> tuple[Array, Array, Array]:
    """States (runs, nq), (runs, nv), and numbers (runs, parameters) or (parameters,)."""
    nq, nv = mechanism.nq, mechanism.nv
    arrays = []
    for name, values, width in (("q", q, nq), ("v", v, nv)):
        try:
            x = np.asarray(values)
            if x.dtype.kind not in "fiub" or is_masked(values):
                raise TypeError
            x = x.astype(np.float64, copy=False)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be numbers (runs, {width}); got {values!r}") from None
        arrays.append(x)
    q, v = arrays
    if q.ndim not in (1, 2) or v.ndim not in (1, 2) or q.shape[-1] != nq or v.shape[-1] != nv:
        raise ShapeError(f"q and v must be (runs, {nq}) and (runs, {nv}), or one for all; got {q.shape} and {v.shape}")
    try:
        (runs,) = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], parameters.shape[:-1], (mechanisms,))
        if runs != mechanisms > 1:
            raise ValueError
    except ValueError:
        several = f", with {mechanisms} mechanisms," * (mechanisms > 1)
        raise ShapeError(
            f"q {q.shape}, v {v.shape} and numbers {parameters.shape}{several} are not equally many runs"
        ) from None
    if parameters.ndim == 2:
        parameters = np.ascontiguousarray(np.broadcast_to(parameters, (runs, parameters.shape[1])))
    return np.broadcast_to(q, (runs, nq)), np.broadcast_to(v, (runs, nv)), parameters
