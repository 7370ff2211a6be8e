"""Parallel simulation of many runs: in SIMD lanes, on threads, and in several processes."""

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
from .warnings import fault_of_steps, warn_of_runs, warn_of_starts
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
    """Simulate many runs in parallel, in SIMD lanes and on threads.

    Each run equals, up to rounding, the result of :func:`~sarrus.simulate` from the same initial state with the same dt.

    Parameters
    ----------
    mechanism : one mechanism for all runs; or a mechanism for each run: variants, or a sequence (runs,) of mechanisms that differ in parameters
        (lengths, masses, positions) but not in joints. All runs are packed into SIMD lanes together. If the mechanisms also differ in data that
        variants cannot change, such as joint limits, only runs of the same mechanism are packed together, which is slower
    q, v : (runs, nq), (runs, nv) initial configurations and velocities [rad, m; rad/s, m/s], or a single state for all runs; if there are loops,
        states are projected onto the loop constraints
    duration : duration of the runs [s]; if it is not a multiple of dt, the last step is shorter
    controller : force elements of :mod:`sarrus.control`. Their numerical parameters may be arrays (runs,), and their time functions sequences (runs,)
        of time functions. All runs have the same joints, frames, times of :class:`~sarrus.control.EffortTable` and periods of
        :class:`~sarrus.control.SampleAndHold`
    method : "auto" as for :func:`~sarrus.simulate`, or a method with fixed steps. "implicit_midpoint", "independent", "contact" and "rosenbrock"
        simulate runs one after another on each thread; each run is then bit for bit the result of :func:`~sarrus.simulate`
    near : as for :func:`~sarrus.simulate`, with coordinates (nq of the joint) or (runs, nq of the joint) [rad, m]
    dt : step [s]; default: 1 ms in all runs. No run is repeated with shorter steps, as :func:`~sarrus.simulate` does
    stabilisation, gains, limits, start : as for :func:`~sarrus.simulate`
    every : number of steps between stored samples; the initial and the final state are always stored. A sample of a run takes 8 (nq + nv) bytes. A
        million runs of 10 coordinates take 0.3 GB for the initial and final states, and 160 GB for one second in steps of 1 ms
    threads : number of threads; the result does not depend on it
    executor : a :class:`concurrent.futures.Executor` or compatible object (``dask.distributed.Client(...).get_executor()``, after
        ``pip install "dask[distributed]"``). Its jobs are groups of runs, each on `threads` threads. The result is bit for bit the same
        if all workers have the same processor
    policy : function (t, q (runs, nq), v (runs, nv)) -> efforts (runs, nv) [N m, N] of all tree joints, such as a neural network. It is evaluated
        once per step. Its efforts are constant during the step, and saturated by the joints' effort limits like the efforts of other controllers. For
        failed runs, the function is called with their last state, and their efforts are ignored
    progress : True displays a progress bar of finished runs (tqdm). Or a function (done, runs) that is called after each finished group of runs. The
        groups of an executor are larger than those of threads; with a policy, all runs finish at the same time
    store : folder in which finished runs are stored as q.npy, v.npy, status.npy and so on, as memory maps. If the same call is repeated after Ctrl-C
        or a crash, it continues bit for bit; if the runs are finished, it only reads them. A call with different arguments raises an error, and so
        does a folder to which another call is writing

    Returns
    -------
    Sweep : t (n,), q (runs, n, nq), v (runs, n, nv), and the :class:`~sarrus.results.Status` (runs,) of each run; for more attributes, see
        :class:`Sweep`. If a run fails or its initial state is invalid, its samples are NaN from there on, and no other run is affected. Ctrl-C
        ends the call early; then the finished runs are returned.

    Warns
    -----
    LimitWarning, StiffnessWarning, DriftWarning
        See :func:`~sarrus.simulate`; each warning is issued once for all runs.

    Raises
    ------
    ModelError, ShapeError, NameNotFoundError, TypeError, ValueError
        An argument does not fit the mechanism; raised before the runs start. Exceptions of the executor's jobs propagate, and jobs that
        have not begun are cancelled. ModelError if `store` has runs with other arguments, was changed, or is in use by another call.
        ValueError if both `policy` and `store` are used. OSError if the folder cannot be created.
    MemoryError
        The runs exceed the memory, or the disk of `store`.
    ImportError
        `progress` is True, and tqdm is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> runs = sarrus.simulate_many(robot, np.linspace(0.1, 0.4, 4)[:, None], [0.0], 1.0, every=100)
    >>> runs.q.shape, int(runs.status.max())
    ((4, 11, 1), 0)
    >>> t, q, v, status = runs

    A different law for each run:

    >>> push = sarrus.control.FeedforwardEffort("pivot", [sarrus.laws.harmonic(1.0, rate) for rate in (2.0, 4.0, 6.0)])
    >>> sarrus.simulate_many(robot, [0.0], [0.0], 1.0, push).q[:, -1, 0].round(3).tolist()
    [0.156, 0.124, 0.011]

    A policy for all runs at once:

    >>> controlled = sarrus.simulate_many(robot, [[0.1], [0.4]], [0.0], 4.0, policy=lambda t, q, v: 50.0 * (0.2 - q) - 10.0 * v)
    >>> controlled.q[:, -1, 0].round(2).tolist()
    [0.17, 0.17]
    """
    mechanisms, run_index = _distinct_mechanisms(mechanism)
    stepping = Stepping.checked("simulate_many", mechanisms[0], duration, options)
    if stepping.method != "auto" and arguments.METHODS[stepping.method].adaptive:
        raise ValueError(
            f"simulate_many(): method '{stepping.method}' has variable steps; expected one with fixed steps"
        )
    threads, every = checked_count("threads", threads, most=MOST_THREADS), checked_count("every", every)
    dt, near, end = stepping.dt, stepping.near, stepping.start + stepping.duration
    arguments.check_advance(stepping.start, stepping.duration, dt)
    schedule = _core.Schedule(stepping.start, end, dt, min(every, arguments.MOST_STEPS))
    rows = _rows_of_each(run_index)
    prepared = _prepared(mechanisms, controller, stepping, q, rows)
    _check_functions(mechanisms, prepared[0].setup.method)
    _check_callables(policy, executor, store)
    arguments.check_periods(prepared[0].setup.terms, stepping.duration, dt)
    if policy is not None:
        for job_setup in prepared:
            hold(job_setup.forces, mechanisms[0].nv)
    numbers = prepared[0].forces.parameters
    runs = max(1, mechanisms[0]._count) if run_index is None else len(run_index)
    numbers = numbers if run_index is None else np.zeros(numbers.shape[-1])
    q, v, parameters = _equally_many(mechanisms[0], q, v, numbers, runs)
    rows = [slice(0, len(q))] if run_index is None else rows
    if policy is not None or run_index is not None:
        parameters = np.array(np.broadcast_to(parameters, (len(q), parameters.shape[-1])))
    for share, p in zip(rows, prepared, strict=True) if run_index is not None else ():
        parameters[share] = p.forces.parameters
    work = [(share, Job(p.setup, schedule, threads)) for share, p in zip(rows, prepared, strict=True)]
    opened: contextlib.AbstractContextManager[Store | None] = contextlib.nullcontext()
    if store is not None:
        step_options = [prepared[0].setup.method, stepping.stabilisation, stepping.gains, dt]
        opened = Store.opened(store, arguments_of(work, prepared, step_options, (q, v, near), parameters, end))
    with opened as folder, _shown(progress, len(q)) as report:
        kept = _Kept.of(prepared[0], len(q), schedule, folder)
        kept.run(work, (q, v, near), parameters, executor, policy, report)
    acting = [RunForces(p.setup, dt, parameters, schedule.every, p.forces.names) for p in prepared]
    sweep = kept.sweep(end, prepared[0].limits, acting, run_index)
    of_each = list(zip(rows, prepared, strict=True))
    fault = fault_of_steps(
        of_each, kept.record, kept.q, kept.v, sweep.__getitem__, step=min(dt, stepping.duration), steps=schedule.steps
    )
    warn_of_runs(of_each, kept.record, fault, kept.end(end))
    return sweep


Report = Callable[[int], object]


@contextlib.contextmanager
def _shown(progress: bool | Callable[[int, int], object], runs: int) -> Generator[Report | None, None, None]:
    """Yield the function that displays the number of finished runs, or None."""
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
    """Collected results of the runs: samples (runs, n, ...), the initial (`begun`) and final (`ended`) status of each run, and its record."""

    core: _core.Simulation
    schedule: _core.Schedule
    q: Array
    v: Array
    z: Array
    ended: Ended
    begun: Ended
    record: Record
    store: Store | None
    efforts: Array | None = None  # efforts of a policy

    @classmethod
    def of(cls, prepared: Prepared, runs: int, schedule: _core.Schedule, store: Store | None) -> _Kept:
        core, mechanism, n = prepared.setup.core(), prepared.setup.mechanism, schedule.samples + 1

        sizes = {"q": mechanism.nq, "v": mechanism.nv, "z": core.size - mechanism.nq - mechanism.nv}
        shapes = {name: (runs, n, k) for name, k in sizes.items()}
        shapes |= {name: (runs, *x.shape[1:]) for name, x in core.record.items()}
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
        self, work: Work, start: tuple[Array, Array, Mapping[str, ArrayLike] | None], parameters: Array, executor: Executor | None, policy: Policy |
        None, report: Report | None,
    ) -> None:  # fmt: skip
        """Simulate all runs. After Ctrl-C, runs without a result have the status of an interrupted run, as in simulate()."""
        if policy is not None:
            self.efforts = np.full((*self.q.shape[:2], work[0][1].setup.mechanism.nv), np.nan)
        with contextlib.suppress(KeyboardInterrupt):
            x = self.begin(work, *start, parameters)
            if self.store is not None:
                work = self.store.unfinished(work, self.ended)
            if not work:
                return
            if policy is None or self.efforts is None:
                shares = results(executor, work, x, parameters, report is not None or self.store is not None)
            else:
                shares = (result for result in [by_policy(work, x, parameters, policy, self.efforts)])
            try:
                with contextlib.closing(shares):
                    self.take(shares, report)
            finally:
                if self.store is not None:
                    self.store.keep(self.ended, now=True)

    def begin(self, work: Work, q: Array, v: Array, near: Mapping[str, ArrayLike] | None, parameters: Array) -> Array:
        """Return the initial states (runs, size), and store them as the first samples."""
        turns = arguments.checked_turns(work[0][1].setup.mechanism, near, len(q))
        x, start = np.zeros((len(q), self.core.size)), self.schedule.start
        for rows, job in work:
            turns_of_rows = {name: angles[rows] for name, angles in turns.items()}
            core = self.core if len(work) == 1 else job.setup.core()
            begun, self.begun[rows] = job.setup.begin(core, q[rows], v[rows], start, turns_of_rows, job.threads)
            if core.holds:
                begun, sampled = core.sample(begun, parameters_of(parameters, rows), job.setup.variants(rows), start)
                self.begun[rows] = np.where(self.begun[rows] == Status.FINISHED, sampled, self.begun[rows])
            x[rows] = begun
        mechanism, good = work[0][1].setup.mechanism, self.begun == Status.FINISHED
        # for variants, the loops of initial states may have been closed with other lengths, so that q is not
        # comparable with them
        if isinstance(mechanism, Mechanism):
            warn_of_starts(mechanism, q[good], x[good][:, : mechanism.nq], start)
        self._keep(slice(None), 0, np.where((self.begun != Status.FINISHED)[:, None], np.nan, x))
        return x

    def _keep(self, rows: Rows, samples: int | slice, x: Array) -> None:
        nq, nv = self.q.shape[-1], self.v.shape[-1]
        self.q[rows, samples], self.v[rows, samples] = x[..., :nq], x[..., nq : nq + nv]
        self.z[rows, samples] = x[..., nq + nv :]

    def take(self, shares: Generator[Result, None, None], report: Report | None) -> None:
        """Store the results of each group of runs, until a group is interrupted."""
        unsound = self.begun != Status.FINISHED
        for share, states, status, record in shares:
            states = np.require(states, requirements="W")  # Ray's workers return read-only arrays
            states[unsound[share]] = np.nan
            self._keep(share, slice(1, None), states)
            ended = np.where(unsound[share], self.begun[share], status)
            failed = (ended != Status.FINISHED) & (ended != Status.INTERRUPTED)
            for name, x in record.items():
                self.record[name][share] = np.where(failed.reshape(-1, *(1,) * (x.ndim - 1)), np.nan, x)
            self.ended[share] = ended
            if self.store is not None:
                self.store.keep(self.ended)
            if report is not None:
                report(int((self.ended != Status.INTERRUPTED).sum()))
            if (status == Status.INTERRUPTED).any():
                break

    def end(self, time: float) -> tuple[float, Array, Array, NDArray[np.bool_]]:
        """Return the final time, q (runs, nq) and v (runs, nv), and a mask (runs,) of the runs that reached this time."""
        return time, self.q[:, -1], self.v[:, -1], self.ended == Status.FINISHED

    def sweep(
        self, end: float, limits: JointLimits, acting: list[RunForces], run_index: NDArray[np.intp] | None
    ) -> Sweep:
        t = self.schedule.times
        t[-1] = end  # the exact final time, not the sum of rounded steps
        q, v, z = map(np.asarray, (self.q, self.v, self.z))
        for x in (q, v, z) if self.store is not None else ():
            x.flags.writeable = False  # the arrays are memory maps of the folder's files
        mechanisms = [forces.setup.mechanism for forces in acting]
        per_run: Any = None if run_index is None else [mechanisms[k] for k in run_index]
        if isinstance(mechanisms[0], Variants):
            per_run = list(mechanisms[0]) if isinstance(mechanisms[0], Listed) else mechanisms[0]
        pairs = enumerate(() if run_index is None else run_index)
        each = [replace(acting[k], parameters=acting[k].parameters[i]) for i, k in pairs]
        return Sweep(
            mechanisms[0], t, q, v, self.ended, internal_state=z, counted=self.core.counted, limits=limits.watched,
            excess=self.record["excess"], stiffness=self.record["stiffness"], efforts=self.efforts,
            mechanisms=per_run, acting=acting[0] if run_index is None else each,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class RunForces:
    """Force elements of runs: the shared setup, and the parameters of each run."""

    setup: Setup
    dt: float
    parameters: Array
    every: int = 1  # number of steps from one sample to the next
    names: Mapping[str, slice] = field(default_factory=dict)  # slice of each named parameter in a row of parameters

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "job" in state:  # the state was read from a file of an earlier version
            job = state.pop("job")
            state |= {"setup": Setup(*(getattr(job, field.name) for field in fields(Setup))), "dt": job.clock.dt}
        kinds = ((name.partition("."), part) for name, part in state.get("names", {}).items())
        state["names"] = {"".join((ELEMENTS.get(kind, kind), *key)): part for (kind, *key), part in kinds}
        state["setup"] = replace(state["setup"], terms=with_new_kinds(state["setup"].terms))
        self.__dict__.update(state)

    def of(self, rows: Any) -> RunForces:
        """Return the force elements of the runs with this index, slice or mask."""
        return replace(self, setup=self.setup.of(rows), parameters=parameters_of(self.parameters, rows))

    def for_run(self, run: int, mechanism: Mechanism) -> RunForces:
        """Return the force elements of one run; if each run has a variant, with the mechanism of this run."""
        if not isinstance(self.setup.mechanism, Variants):
            return self
        return replace(
            self, setup=replace(self.setup, mechanism=mechanism), parameters=parameters_of(self.parameters, run)
        )

    def efforts(self, run: int, policy_efforts: Array | None, t: Array, q: Array, v: Array, z: Array) -> Array:
        """Return generalised forces (n, nv) in states of one run, with the efforts (n, nv) of a policy."""
        x = np.concatenate([q, v, z], axis=-1)
        return self._evaluated(lambda core, t, x: core.efforts(t, x), run, policy_efforts, t, x)

    def friction(self, run: int, policy_efforts: Array | None, t: Array, q: Array, v: Array, z: Array) -> Array:
        """Return dry friction (n, all nv) along all joints in states of one run, with the efforts (n, nv) of a policy."""
        x = np.concatenate([q, v, z], axis=-1)
        return self._evaluated(lambda core, t, x: core.friction(t, x, self.dt), run, policy_efforts, t, x)

    def _evaluated(
        self,
        forces_of: Callable[[_core.Simulation, Array, Array], Array],
        run: int,
        policy_efforts: Array | None,
        t: Array,
        x: Array,
    ) -> Array:
        numbers = parameters_of(self.parameters, run)
        if policy_efforts is None:
            return forces_of(self.setup.core(numbers), t, x)
        numbers, forces = numbers.copy(), []
        for k in range(len(t)):
            set_efforts(numbers, policy_efforts[k])
            forces.append(forces_of(self.setup.core(numbers), t[k : k + 1], x[k : k + 1]))
        return np.concatenate(forces)


def _prepared(
    mechanisms: Sequence[Any],
    controller: Any,
    stepping: Stepping,
    q: ArrayLike,
    rows: Sequence[Rows],
    varies: bool = False,
) -> list[Prepared]:
    """Prepare the runs of each mechanism with the force elements; raise TypeError for Python functions.

    With `varies`, the steps must have derivatives.
    """
    functions, elements = functions_and_elements(controller)
    if functions:
        raise TypeError(
            "simulate_many(): controller is a Python function; expected elements of sarrus.control. Use simulate(), or policy= over all runs at once"
        )
    limits = [joint_limits(mechanism, stepping.limits, elements) for mechanism in mechanisms]
    _check_alike(mechanisms, limits)
    start = q if feel_the_start([*elements, *limits[0].end_stops]) else None
    runs = sum(len(share) for share in rows if not isinstance(share, slice))
    prepared = [
        Prepared.of(mechanism, ([], elements), of, stepping, start, share if runs else None, runs, varies, at=q)
        for mechanism, of, share in zip(mechanisms, limits, rows, strict=True)
    ]
    if any(prepared[0].forces.sampled):
        raise TypeError(
            "simulate_many(): SampleAndHold contains a Python function; expected elements of sarrus.control. Use simulate()"
        )
    return prepared


def _rows_of_each(run_index: NDArray[np.intp] | None) -> list[Rows]:
    """Return the indices of the runs of each mechanism."""
    if run_index is None:
        return [slice(None)]
    sorted_runs, counts = np.argsort(run_index, kind="stable"), np.bincount(run_index, minlength=1)
    return [*np.split(sorted_runs, np.cumsum(counts)[:-1])]


def _check_functions(mechanisms: Sequence[Any], method: str) -> None:
    touching = _core.methods[method].rigid and any(
        pair.points for mechanism in mechanisms for pair in mechanism._may_touch
    )
    for kind, present in (("Pfaffian rows", any(map(has_functions_of_q, mechanisms))), ("points of shapes", touching)):
        if present:
            raise ModelError(f"{kind} that are Python functions cannot run in parallel: use simulate()")


def _check_callables(policy: Any, executor: Any, store: Any) -> None:
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, or have its submit(); got {executor!r}")
    if policy is None:
        return
    if not callable(policy):
        raise TypeError(f"policy must be a function (t, q, v) -> efforts; got {policy!r}")
    if store is not None:
        raise ValueError(
            "policy= controls all runs at once, but store= stores each run when it is finished: pass only one of them"
        )
    if executor is not None:
        raise TypeError(
            "policy= is evaluated in this process, but executor= runs in other processes: pass only one of them"
        )


def _distinct_mechanisms(
    mechanisms: Mechanism | Sequence[Mechanism] | Variants,
) -> tuple[Sequence[Any], NDArray[np.intp] | None]:
    """Return the distinct mechanisms, and the index of each run's mechanism; None for a single mechanism or variants of one structure."""
    if isinstance(mechanisms, Variants):
        return [mechanisms if len(mechanisms) > 1 else mechanisms[0]], None
    if not isinstance(mechanisms, (list, tuple)) or not mechanisms:
        return [checked_mechanism(mechanisms)], None
    if len(mechanisms) == 1:
        return [checked_mechanism(mechanisms[0])], None
    each = {id(mechanism): checked_mechanism(mechanism) for mechanism in mechanisms}
    index = {identity: k for k, identity in enumerate(each)}
    run_index = np.array([index[id(mechanism)] for mechanism in mechanisms], dtype=np.intp)
    if (many := _alike(list(each.values()))) is not None:
        return [many if len(each) == len(run_index) else many[run_index]], None
    return _once(list(each.values()), run_index)


def _once(mechanisms: Sequence[Any], run_index: NDArray[np.intp]) -> tuple[list[Mechanism], NDArray[np.intp]]:
    """Merge equal mechanisms, and update the index of each run's mechanism."""
    index = {mechanism: k for k, mechanism in enumerate(dict.fromkeys(mechanisms))}
    return list(index), np.array([index[mechanism] for mechanism in mechanisms], dtype=np.intp)[run_index]


def _alike(mechanisms: Sequence[Any]) -> Variants | None:
    """Return the mechanisms as variants, or None if they differ in data that variants share."""
    if len(mechanisms) == 1 or any(map(has_functions_of_q, mechanisms[:1])):
        return None
    first = _limits_from(mechanisms[0])
    rest = [mechanism for mechanism in mechanisms if _limits_from(mechanism) is not first]
    limits = _limits(mechanisms[0]) if rest else None
    if any(_limits(mechanism) != limits for mechanism in rest):
        return None
    try:
        return Listed(mechanisms)
    except ModelError:
        return None


def _limits_from(mechanism: Mechanism) -> Any:
    """Return the mechanism from which a copy was made, which has the same limits and other data that copies cannot change."""
    return vars(mechanism)["_changed"][0] if "_changed" in vars(mechanism) else mechanism.description


def _limits(mechanism: Mechanism) -> Any:
    """Return the joints' limits, and shapes and contacts: data that copies of a mechanism cannot change."""
    joints = [spec.joint for spec in mechanism.description.joints]
    return (
        mechanism.description.shapes,
        mechanism.description.contacts,
        [[np.asarray(x).tolist() for x in (j.limits, j.velocity_limit, j.effort_limit)] for j in joints],
    )


def _check_alike(mechanisms: Sequence[Mechanism], watches: Sequence[JointLimits]) -> None:
    """Raise ModelError unless all mechanisms have the same coordinates, motors and kinds of limits."""

    def structure(mechanism: Mechanism, watch: JointLimits) -> dict[str, Any]:
        types = {name: mechanism.joint(name).type for name in mechanism.joints}
        return {
            "joints": [(name, kind.coordinates, kind.velocities) for name, kind in types.items()],
            "loop joints": list(mechanism.loop_joints),
            "actuated joints": list(mechanism.actuated),
            "limits of joints": [(w.joint, w.index, w.quantity) for w in watch.watched],
            "shapes that touch": [(type(spec.shape), spec.body) for spec in mechanism.description.shapes]
            + [pair[:2] for pair in mechanism._may_touch],
        }

    first = structure(mechanisms[0], watches[0])
    for mechanism, watch in zip(mechanisms[1:], watches[1:], strict=True):
        for part, value in structure(mechanism, watch).items():
            if value != first[part]:
                raise ModelError(
                    f"mechanisms of parallel runs may differ in parameters only; '{mechanism.name}' has different {part} from '{mechanisms[0].name}'"
                )


def _equally_many(
    mechanism: Mechanism | Variants, q: ArrayLike, v: ArrayLike, parameters: Array, mechanisms: int
) -> tuple[Array, Array, Array]:
    """Return states (runs, nq), (runs, nv), and parameters (runs, k) or (k,), broadcast to the same number of runs."""
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
        raise ShapeError(
            f"q and v must be (runs, {nq}) and (runs, {nv}), or one state for all runs; got {q.shape} and {v.shape}"
        )
    try:
        (runs,) = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], parameters.shape[:-1], (mechanisms,))
        if runs != mechanisms > 1:
            raise ValueError
    except ValueError:
        several = f", with {mechanisms} mechanisms," * (mechanisms > 1)
        raise ShapeError(
            f"q {q.shape}, v {v.shape} and parameters {parameters.shape}{several} have different numbers of runs"
        ) from None
    if parameters.ndim == 2:
        parameters = np.ascontiguousarray(np.broadcast_to(parameters, (runs, parameters.shape[1])))
    return np.broadcast_to(q, (runs, nq)), np.broadcast_to(v, (runs, nv)), parameters
