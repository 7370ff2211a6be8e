"""Many simulations side by side: in the lanes of a core, on threads, and over processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, checked_count, checked_truth, is_masked
from .._core import Status
from .._renamed import ELEMENTS, with_new_kinds
from ..control.element import ForceElement, functions_and_elements
from ..dynamics.options import Unpack, shows_options
from ..errors import ModelError, ShapeError
from ..mechanism import Mechanism, checked_mechanism
from ..variants import Listed, Variants
from . import arguments
from .arguments import RunOptions, Stepping
from .limits import JointLimits, Record, joint_limits
from .policy import Policy, by_policy, hold, set_efforts
from .runs import Sweep
from .setup import Ended, Prepared, Setup, feel_the_start, has_functions_of_q
from .store import Store, arguments_of
from .warnings import warn_of_runs, warn_of_starts
from .workers import Executor, Job, Result, Rows, Work, parameters_of, results

MOST_THREADS = 2**16  # more than any machine has


@shows_options
def simulate_many(
    mechanism: Mechanism | Sequence[Mechanism] | Variants,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    controller: ForceElement | Sequence[ForceElement] | None = None,
    *,
    every: int = 1,
    threads: int = 1,
    executor: Executor | None = None,
    policy: Policy | None = None,
    progress: bool | Callable[[int, int], object] = False,
    store: str | os.PathLike[str] | None = None,
    **options: Unpack[RunOptions],
) -> Sweep:
    """Many runs side by side, several in the lanes of a processor's core and some on each thread.

    Each is to rounding what :func:`~sarrus.simulate` makes of the same start.

    Parameters
    ----------
    mechanism : what moves; or one a run: variants, or a sequence (runs,) of mechanisms that differ in numbers (lengths, masses, places) but not in joints.
        They are side by side too, unless they differ in more than variants do, as in limits of joints: then only runs of the same one are
    q, v : (runs, nq), (runs, nv), or one of them for all; where there are loops they are brought onto them
    duration : [s]; where it is no whole number of steps, the last one is shorter
    controller : force elements of :mod:`sarrus.control`, whose numbers may be arrays (runs,) and whose laws sequences (runs,) of laws. The rest is
        the same in all runs: joints, frames, times of :class:`~sarrus.control.EffortTable`, periods of :class:`~sarrus.control.SampleAndHold`
    method : "auto" as for :func:`~sarrus.simulate`, or one with fixed steps; "implicit_midpoint", "independent", "contact" and "rosenbrock" run one after the other
        on each thread, and each is bit for bit what :func:`~sarrus.simulate` makes of it
    near : as for :func:`~sarrus.simulate`, (nq of the joint), or (runs, nq of the joint)
    dt, stabilisation, gains, limits, start : as for :func:`~sarrus.simulate`
    every : keep the start, the state after every so many steps, and the end. Each takes 8 (nq + nv) bytes of each run: a million runs of
        10 coordinates 0.3 GB for start and end alone, 160 GB for a second in steps of 1 ms
    threads : how many work on it; the answer does not depend on it
    executor : a :class:`concurrent.futures.Executor`, or what acts as one (``dask.distributed.Client(...).get_executor()``, for which
        ``pip install "dask[distributed]"``): shares of the runs are its jobs, on `threads` each. The answer is the same bit for bit,
        where the workers' processors are the same
    policy : a function (t, q (runs, nq), v (runs, nv)) -> efforts (runs, nv) of all joints of the tree, as a network computes them: it is asked
        once a step, and what it says is held until the next one, within the joints' effort limits as other controllers' efforts. Runs that
        have failed stay as they were last, and it does not matter what it says of them
    progress : whether a bar shows how many runs are done (tqdm); or a function (done, runs) that is called after each share of them. An executor's shares are
        larger than those on threads; the runs of a policy are done all at once
    store : a folder in which runs are kept as they are done, q.npy, v.npy, status.npy and so on, mapped into memory and not held there. The same
        call goes on where it was cut off, by Ctrl-C or a crash, bit for bit; a finished one is read. Arguments that differ are refused, and so
        is a folder that another call is writing to

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
        have not begun are cancelled. ModelError where `store` holds runs from other arguments, was changed, or is another call's now,
        ValueError of a `policy` with one, OSError where it cannot be made.
    MemoryError
        The runs would not fit into memory, or on the disk of `store`.
    ImportError
        A bar is asked for, and tqdm is not installed.

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

    >>> push = sarrus.control.FeedforwardEffort("pivot", [sarrus.laws.harmonic(1.0, rate) for rate in (2.0, 4.0, 6.0)])
    >>> sarrus.simulate_many(robot, [0.0], [0.0], 1.0, push).q[:, -1, 0].round(3).tolist()
    [0.156, 0.124, 0.011]

    A policy for all of them at once:

    >>> held = sarrus.simulate_many(robot, [[0.1], [0.4]], [0.0], 4.0, policy=lambda t, q, v: 50.0 * (0.2 - q) - 10.0 * v)
    >>> held.q[:, -1, 0].round(2).tolist()
    [0.17, 0.17]
    """
    robots, of_run = _robots(mechanism)
    how = Stepping.checked("simulate_many", robots[0], duration, options)
    if how.method != "auto" and arguments.METHODS[how.method].adaptive:
        raise ValueError(f"simulate_many() takes fixed steps: '{how.method}' decides on its own steps for each state")
    threads, every = checked_count("threads", threads, most=MOST_THREADS), checked_count("every", every)
    dt, near, end = how.dt, how.near, how.start + how.duration
    arguments.check_advance(how.start, how.duration, dt)
    schedule = _core.Schedule(how.start, end, dt, min(every, arguments.MOST_STEPS))
    rows = _rows_of_each(of_run)
    prepared = _prepared(robots, controller, how, q, rows)
    _check_functions(robots, prepared[0].setup.method)
    _check_callables(policy, executor, store)
    arguments.check_periods(prepared[0].setup.terms, how.duration, dt)
    if policy is not None:
        for one in prepared:
            hold(one.forces, robots[0].nv)
    numbers = prepared[0].forces.parameters
    runs = max(1, robots[0]._count) if of_run is None else len(of_run)
    numbers = numbers if of_run is None else np.zeros(numbers.shape[-1])
    q, v, parameters = _equally_many(robots[0], q, v, numbers, runs)
    rows = [slice(0, len(q))] if of_run is None else rows
    if policy is not None or of_run is not None:
        parameters = np.array(np.broadcast_to(parameters, (len(q), parameters.shape[-1])))
    for these, one in zip(rows, prepared, strict=True) if of_run is not None else ():
        parameters[these] = one.forces.parameters
    work = [(these, Job(one.setup, schedule, threads)) for these, one in zip(rows, prepared, strict=True)]
    opened: contextlib.AbstractContextManager[Store | None] = contextlib.nullcontext()
    if store is not None:
        of_steps = [prepared[0].setup.method, how.stabilisation, how.gains, dt]
        opened = Store.opened(store, arguments_of(work, prepared, of_steps, (q, v, near), parameters, end))
    with opened as folder, _shown(progress, len(q)) as tell:
        kept = _Kept.of(prepared[0], len(q), schedule, folder)
        kept.run(work, (q, v, near), parameters, executor, policy, tell)
    acting = [RunForces(one.setup, dt, parameters, schedule.every, one.forces.names) for one in prepared]
    sweep = kept.sweep(end, prepared[0].limits, acting, of_run)
    warn_of_runs(
        list(zip(rows, prepared, strict=True)), kept.record, kept.q, kept.v, sweep.__getitem__, step=min(dt, how.duration),
        steps=schedule.steps, end=kept.end(end),
    )  # fmt: skip
    return sweep


Tell = Callable[[int], object]


@contextlib.contextmanager
def _shown(progress: bool | Callable[[int, int], object], runs: int) -> Generator[Tell | None, None, None]:
    """What is to be called with how many runs are done."""
    if callable(progress):
        yield lambda done: progress(done, runs)
        return
    bar = arguments.progress_bar(runs, checked_truth("progress", progress), "run")
    if bar is None:
        yield None
        return
    with bar:
        yield lambda done: bar.update(done - bar.n)


@dataclass(eq=False)
class _Kept:
    """What has come back of the runs: samples (runs, n, ...), how each ended, and its record; `begun`: what became of its start."""

    core: _core.Simulation
    schedule: _core.Schedule
    q: Array
    v: Array
    z: Array
    ended: Ended
    begun: Ended
    record: Record
    store: Store | None
    efforts: Array | None = None  # of a policy

    @classmethod
    def of(cls, prepared: Prepared, runs: int, schedule: _core.Schedule, store: Store | None) -> _Kept:
        core, robot, n = prepared.setup.core(), prepared.setup.mechanism, schedule.samples + 1

        sizes = {"q": robot.nq, "v": robot.nv, "z": core.size - robot.nq - robot.nv}
        shapes = {name: (runs, n, k) for name, k in sizes.items()}
        shapes |= {name: (runs, *one.shape[1:]) for name, one in core.record.items()}
        if store is None:
            arguments.check_memory(n, runs, core.size)
            record = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
        else:
            store.check_room(shapes)
            record = {name: store.array(name, shape, np.nan) for name, shape in shapes.items()}
        q, v, z = map(record.pop, sizes)
        ended, begun = (np.full(runs, status, np.int8) for status in (Status.INTERRUPTED, Status.FINISHED))
        if store is not None:
            ended = store.begin(ended, t=schedule.times)
        return cls(core, schedule, q, v, z, ended, begun, record, store)

    def run(
        self, work: Work, start: tuple[Array, Array, Mapping[str, ArrayLike] | None], parameters: Array, executor: Executor | None, policy: Policy | None,
        tell: Tell | None,
    ) -> None:  # fmt: skip
        """All of them, up to Ctrl-C: what has not come back then stays marked as interrupted, as simulate() does."""
        if policy is not None:
            self.efforts = np.full((*self.q.shape[:2], work[0][1].setup.mechanism.nv), np.nan)
        with contextlib.suppress(KeyboardInterrupt):
            x = self.begin(work, *start, parameters)
            if self.store is not None:
                work = self.store.left(work, self.ended)
            if not work:
                return
            if policy is None or self.efforts is None:
                shares = results(executor, work, x, parameters, tell is not None or self.store is not None)
            else:
                shares = (one for one in [by_policy(work, x, parameters, policy, self.efforts)])
            try:
                with contextlib.closing(shares):
                    self.take(shares, tell)
            finally:
                if self.store is not None:
                    self.store.keep(self.ended, now=True)

    def begin(self, work: Work, q: Array, v: Array, near: Mapping[str, ArrayLike] | None, parameters: Array) -> Array:
        """The states (runs, size) from which runs go on."""
        turns = arguments.checked_turns(work[0][1].setup.mechanism, near, len(q))
        x, start = np.zeros((len(q), self.core.size)), self.schedule.start
        for rows, job in work:
            some = {name: angles[rows] for name, angles in turns.items()}
            core = self.core if len(work) == 1 else job.setup.core()
            begun, self.begun[rows] = job.setup.begin(core, q[rows], v[rows], start, some, job.threads)
            if core.holds:
                begun, sampled = core.sample(begun, parameters_of(parameters, rows), job.setup.variants(rows), start)
                self.begun[rows] = np.where(self.begun[rows] == Status.FINISHED, sampled, self.begun[rows])
            x[rows] = begun
        robot, good = work[0][1].setup.mechanism, self.begun == Status.FINISHED
        if isinstance(robot, Mechanism):  # variants may have other lengths than what their starts were closed for
            warn_of_starts(robot, q[good], x[good][:, : robot.nq], start)
        self._keep(slice(None), 0, np.where((self.begun != Status.FINISHED)[:, None], np.nan, x))
        return x

    def _keep(self, rows: Rows, samples: int | slice, x: Array) -> None:
        nq, nv = self.q.shape[-1], self.v.shape[-1]
        self.q[rows, samples], self.v[rows, samples] = x[..., :nq], x[..., nq : nq + nv]
        self.z[rows, samples] = x[..., nq + nv :]

    def take(self, shares: Generator[Result, None, None], tell: Tell | None) -> None:
        """Of each share of the runs what it did, until one is interrupted."""
        unsound = self.begun != Status.FINISHED
        for share, states, status, record in shares:
            states = np.require(states, requirements="W")  # Ray's workers answer with what is read only
            states[unsound[share]] = np.nan
            self._keep(share, slice(1, None), states)
            ended = np.where(unsound[share], self.begun[share], status)
            failed = (ended != Status.FINISHED) & (ended != Status.INTERRUPTED)
            for name, seen in record.items():
                seen = np.where(failed.reshape(-1, *(1,) * (seen.ndim - 1)), np.nan, seen)
                self.record[name][share] = seen
            self.ended[share] = ended
            if self.store is not None:
                self.store.keep(self.ended)
            if tell is not None:
                tell(int((self.ended != Status.INTERRUPTED).sum()))
            if (status == Status.INTERRUPTED).any():
                break

    def end(self, time: float) -> tuple[float, Array, Array, NDArray[np.bool_]]:
        """When runs end, where, and whether they have come there."""
        return time, self.q[:, -1], self.v[:, -1], self.ended == Status.FINISHED

    def sweep(self, end: float, limits: JointLimits, acting: list[RunForces], of_run: NDArray[np.intp] | None) -> Sweep:
        t = self.schedule.times
        t[-1] = end  # with its last digit
        q, v, z = map(np.asarray, (self.q, self.v, self.z))
        for x in (q, v, z) if self.store is not None else ():
            x.flags.writeable = False  # the folder's
        robots = [one.setup.mechanism for one in acting]
        per_run: Any = None if of_run is None else [robots[k] for k in of_run]
        if isinstance(robots[0], Variants):
            per_run = list(robots[0]) if isinstance(robots[0], Listed) else robots[0]
        pairs = enumerate(() if of_run is None else of_run)
        each = [replace(acting[k], parameters=acting[k].parameters[i]) for i, k in pairs]
        return Sweep(
            robots[0], t, q, v, self.ended, internal_state=z, counted=self.core.counted, limits=limits.watched,
            excess=self.record["excess"], stiffness=self.record["stiffness"], efforts=self.efforts,
            mechanisms=per_run, acting=acting[0] if of_run is None else each,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class RunForces:
    """The force elements of runs: what they share, and the numbers that differ."""

    setup: Setup
    dt: float
    parameters: Array
    every: int = 1  # steps from a sample to the next
    names: Mapping[str, slice] = field(default_factory=dict)  # of the numbers in a row of parameters

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "job" in state:  # of a file of before
            job = state.pop("job")
            state |= {"setup": Setup(*(getattr(job, field.name) for field in fields(Setup))), "dt": job.clock.dt}
        kinds = ((name.partition("."), part) for name, part in state.get("names", {}).items())
        state["names"] = {"".join((ELEMENTS.get(kind, kind), *key)): part for (kind, *key), part in kinds}
        state["setup"] = replace(state["setup"], terms=with_new_kinds(state["setup"].terms))
        self.__dict__.update(state)

    def of(self, which: Any) -> RunForces:
        """In some of the runs."""
        return replace(self, setup=self.setup.of(which), parameters=parameters_of(self.parameters, which))

    def of_one(self, run: int, robot: Mechanism) -> RunForces:
        """Where each has a variant, in that run, whose own mechanism this is."""
        if not isinstance(self.setup.mechanism, Variants):
            return self
        return replace(self, setup=replace(self.setup, mechanism=robot), parameters=parameters_of(self.parameters, run))

    def efforts(self, run: int, held: Array | None, t: Array, q: Array, v: Array, z: Array) -> Array:
        """Generalised force (n, nv) in states of one run, in which a policy asked for what is held."""
        return self._evaluated(lambda core, t, x: core.efforts(t, x), run, held, t, np.concatenate([q, v, z], axis=-1))

    def friction(self, run: int, held: Array | None, t: Array, q: Array, v: Array, z: Array) -> Array:
        """Dry friction (n, all nv) along all joints there."""
        x = np.concatenate([q, v, z], axis=-1)
        return self._evaluated(lambda core, t, x: core.friction(t, x, self.dt), run, held, t, x)

    def _evaluated(
        self, ask: Callable[[_core.Simulation, Array, Array], Array], run: int, held: Array | None, t: Array, x: Array
    ) -> Array:
        numbers = parameters_of(self.parameters, run)
        if held is None:
            return ask(self.setup.core(numbers), t, x)
        numbers, forces = numbers.copy(), []
        for k in range(len(t)):
            set_efforts(numbers, held[k])
            forces.append(ask(self.setup.core(numbers), t[k : k + 1], x[k : k + 1]))
        return np.concatenate(forces)


def _prepared(
    robots: Sequence[Any], controller: Any, how: Stepping, q: ArrayLike, rows: Sequence[Rows], varies: bool = False
) -> list[Prepared]:
    """Each mechanism with the force elements, which no function of the caller's may be among. `varies`: its steps are to have derivatives."""
    functions, elements = functions_and_elements(controller)
    if functions:
        raise TypeError(
            "simulate_many() takes elements of sarrus.control; a Python function runs in simulate(), or as policy= over all runs at once"
        )
    watches = [joint_limits(one, how.limits, elements) for one in robots]
    _check_alike(robots, watches)
    start = q if feel_the_start([*elements, *watches[0].end_stops]) else None
    runs = sum(len(these) for these in rows if not isinstance(these, slice))
    prepared = [
        Prepared.of(one, ([], elements), watch, how, start, these if runs else None, runs, varies, at=q)
        for one, watch, these in zip(robots, watches, rows, strict=True)
    ]
    if any(prepared[0].forces.sampled):
        raise TypeError(
            "simulate_many() takes elements of sarrus.control; simulate() also takes Python functions, and SampleAndHold of them"
        )
    return prepared


def _rows_of_each(of_run: NDArray[np.intp] | None) -> list[Rows]:
    """Which runs are of each mechanism."""
    if of_run is None:
        return [slice(None)]
    sorted_runs, counts = np.argsort(of_run, kind="stable"), np.bincount(of_run, minlength=1)
    return [*np.split(sorted_runs, np.cumsum(counts)[:-1])]


def _check_functions(robots: Sequence[Any], method: str) -> None:
    touching = _core.methods[method].rigid and any(pair.points for one in robots for pair in one._may_touch)
    for what, there in (("Pfaffian rows", any(map(has_functions_of_q, robots))), ("points of shapes", touching)):
        if there:
            raise ModelError(f"{what} that are Python functions cannot run side by side: use simulate()")


def _check_callables(policy: Any, executor: Any, store: Any) -> None:
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, or have its submit(); got {executor!r}")
    if policy is None:
        return
    if not callable(policy):
        raise TypeError(f"policy must be a function (t, q, v) -> efforts; got {policy!r}")
    if store is not None:
        raise ValueError(
            "a policy leads all runs at once, of which none is done before the others: give it without store="
        )
    if executor is not None:
        raise TypeError("a policy is asked here, and not on an executor's workers: give one of them")


def _robots(mechanisms: Mechanism | Sequence[Mechanism] | Variants) -> tuple[Sequence[Any], NDArray[np.intp] | None]:
    """What moves: one, or variants, which many are that may share a structure; else each once, and which of them a run has."""
    if isinstance(mechanisms, Variants):
        return [mechanisms if len(mechanisms) > 1 else mechanisms[0]], None
    if not isinstance(mechanisms, (list, tuple)) or not mechanisms:
        return [checked_mechanism(mechanisms)], None
    if len(mechanisms) == 1:
        return [checked_mechanism(mechanisms[0])], None
    each = {id(one): checked_mechanism(one) for one in mechanisms}
    numbered = {one: k for k, one in enumerate(each)}
    of_run = np.array([numbered[id(one)] for one in mechanisms], dtype=np.intp)
    if (many := _alike(list(each.values()))) is not None:
        return [many if len(each) == len(of_run) else many[of_run]], None
    return _once(list(each.values()), of_run)


def _once(robots: Sequence[Any], of_run: NDArray[np.intp]) -> tuple[list[Mechanism], NDArray[np.intp]]:
    """Those that are equal as one."""
    numbered = {one: k for k, one in enumerate(dict.fromkeys(robots))}
    return list(numbered), np.array([numbered[one] for one in robots], dtype=np.intp)[of_run]


def _alike(robots: Sequence[Any]) -> Variants | None:
    """Mechanisms as variants, where they differ in nothing that these share."""
    if len(robots) == 1 or any(map(has_functions_of_q, robots[:1])):
        return None
    first = _limits_from(robots[0])
    others = [one for one in robots if _limits_from(one) is not first]
    limits = _limits(robots[0]) if others else None
    if any(_limits(one) != limits for one in others):
        return None
    try:
        return Listed(robots)
    except ModelError:
        return None


def _limits_from(robot: Mechanism) -> Any:
    """Where a copy has its limits from, and other numbers that no copy changes."""
    return vars(robot)["_changed"][0] if "_changed" in vars(robot) else robot.description


def _limits(robot: Mechanism) -> Any:
    """With what else no copy changes: what touches."""
    joints = [spec.joint for spec in robot.description.joints]
    return (
        robot.description.shapes,
        robot.description.contacts,
        [[np.asarray(x).tolist() for x in (j.limits, j.velocity_limit, j.effort_limit)] for j in joints],
    )


def _check_alike(robots: Sequence[Mechanism], watches: Sequence[JointLimits]) -> None:
    """ModelError where mechanisms have not the same coordinates, motors and kinds of limits."""

    def of(robot: Mechanism, watch: JointLimits) -> dict[str, Any]:
        types = {name: robot.joint(name).type for name in robot.joints}
        return {
            "joints": [(name, kind.coordinates, kind.velocities) for name, kind in types.items()],
            "joints that close loops": list(robot.loop_joints),
            "actuated joints": list(robot.actuated),
            "limits of joints": [(w.joint, w.index, w.quantity) for w in watch.watched],
            "shapes that touch": [(type(spec.shape), spec.body) for spec in robot.description.shapes]
            + [pair[:2] for pair in robot._may_touch],
        }

    first = of(robots[0], watches[0])
    for robot, watch in zip(robots[1:], watches[1:], strict=True):
        for what, mine in of(robot, watch).items():
            if mine != first[what]:
                raise ModelError(
                    f"mechanisms side by side may differ in numbers only; '{robot.name}' has other {what} than '{robots[0].name}'"
                )


def _equally_many(
    mechanism: Mechanism | Variants, q: ArrayLike, v: ArrayLike, parameters: Array, mechanisms: int
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
