"""Parallel simulation of many runs: in SIMD lanes, on threads, and in several processes; and its results."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _core
from .._arrays import MOST_THREADS, Array, ArrayLike, NDArray, checked_count, checked_path, checked_truth, is_masked
from .._core import Status
from .._files import needed, replacing
from .._renamed import ELEMENTS, renamed_arguments, renamed_attribute, with_new_kinds
from .._showing import table
from ..control.element import ForceElement, functions_and_elements
from ..dynamics.options import Unpack, shows_options
from ..errors import ModelError, ShapeError
from ..mechanism import Mechanism, checked_mechanism
from ..variants import Listed, Variants
from . import setup, storage
from .setup import METHODS, Groups, JointLimits, Limit, Loads, Prepared, Rows, RunOptions, Setup, Stepping
from .storage import Store, arguments_of
from .warnings import fault_of_steps, warn_of_bushings, warn_of_runs, warn_of_starts
from .workers import Executor, Policy, Result, by_policy, hold, parameters_of, results, set_efforts

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from ..description.specs import Description


@shows_options
def simulate_many(
    mechanism: Mechanism | Sequence[Mechanism] | Variants, q: ArrayLike, v: ArrayLike, duration: float,
    controller: ForceElement | Sequence[ForceElement] | None = None, *, every: int = 1, threads: int = 1, executor: Executor | None = None,
    policy: Policy | None = None, progress: bool | Callable[[int, int], object] = False, store: str | os.PathLike[str] | None = None,
    wrenches: Loads | None = None,
    **options: Unpack[RunOptions],
) -> Sweep:  # fmt: skip
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
    wrenches : loads, as for :func:`~sarrus.simulate`. A wrench (runs, 6), or a component (runs,) or a sequence of functions of time, differs from run
        to run

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
    if stepping.method != "auto" and METHODS[stepping.method].adaptive:
        raise ValueError(f"simulate_many(): method '{stepping.method}' has variable steps; expected fixed steps")
    threads, every = checked_count("threads", threads, most=MOST_THREADS), checked_count("every", every)
    near, dt, end = stepping.near, stepping.dt, stepping.start + stepping.duration
    rows: list[Any] = [slice(None)]
    if run_index is not None:
        rows = np.split(np.argsort(run_index, kind="stable"), np.cumsum(np.bincount(run_index))[:-1])
    prepared = _prepared(mechanisms, controller, stepping, q, rows, wrenches=wrenches)
    _check_functions(mechanisms, prepared[0].setup.method)
    _check_callables(policy, executor, store)
    schedule = _core.Schedule(stepping.start, end, dt, min(every, setup.MOST_STEPS))
    for p in prepared if policy is not None else ():
        hold(p.forces, mechanisms[0].nv)
    numbers = [p.forces.parameters for p in prepared]
    count = max(1, mechanisms[0]._count) if run_index is None else len(run_index)
    own = numbers[0] if run_index is None else np.zeros((count, numbers[0].shape[-1]))
    for share, values in zip(rows, numbers, strict=True) if run_index is not None else ():
        own[share] = values
    q, v, parameters = _equally_many(mechanisms[0], q, v, own, count)
    if policy is not None:
        parameters = np.array(np.broadcast_to(parameters, (len(q), parameters.shape[-1])))
    groups = list(zip([slice(0, len(q))] if run_index is None else rows, prepared, strict=True))
    opened: Any = contextlib.nullcontext()
    if store is not None:
        step_options = [prepared[0].setup.method, stepping.stabilisation, stepping.gains, dt]
        opened = Store.opened(store, arguments_of(groups, schedule, step_options, (q, v, near), parameters, end))
    shown: Any = contextlib.nullcontext(progress)
    if not callable(progress):
        shown = setup.progress_bar(len(q), checked_truth("progress", progress), "run")
    with opened as folder, shown as report:
        runs = _Runs(groups, len(q), schedule, folder, policy)
        runs.simulate((q, v, near), parameters, threads, executor, report)
    sweep = runs.sweep(end, dt, parameters, run_index)
    clock: dict[str, Any] = {"step": min(dt, stepping.duration), "steps": schedule.steps}
    fault = fault_of_steps(groups, runs.record, sweep.q, sweep.v, sweep.__getitem__, **clock)
    warn_of_bushings(groups, sweep.t, sweep.q)
    warn_of_runs(groups, runs.record, fault, (end, sweep.q[:, -1], sweep.v[:, -1], sweep.status == Status.FINISHED))
    return sweep


class _Runs:
    """Samples x = [q, v, z] (runs, n, ...) of runs, the initial (`begun`) and final (`ended`) status of each run, and its record."""

    def __init__(
        self, groups: Groups, runs: int, schedule: _core.Schedule, store: Store | None, policy: Policy | None
    ) -> None:
        self.groups, self.schedule, self.store, self.policy = groups, schedule, store, policy
        self.core, mechanism, n = groups[0][1].setup.core(), groups[0][1].setup.mechanism, schedule.samples + 1
        sizes = {"q": mechanism.nq, "v": mechanism.nv, "z": self.core.size - mechanism.nq - mechanism.nv}
        shapes: dict[str, tuple[int, ...]] = {name: (runs, n, k) for name, k in sizes.items()}
        shapes |= {name: (runs, *x.shape[1:]) for name, x in self.core.record.items()}
        if store is None:
            setup.check_memory(n, runs, self.core.size)
            self.record = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
        else:
            store.check_room(shapes)
            self.record = {name: store.array(name, shape, np.nan) for name, shape in shapes.items()}
        self.x = [np.asarray(self.record.pop(name)) for name in sizes]
        self.ended, self.begun = (np.full(runs, status, np.int8) for status in (Status.INTERRUPTED, Status.FINISHED))
        if store is not None:
            self.ended = store.begin(self.ended, t=schedule.times)
        self.efforts = None if policy is None else np.full((runs, n, mechanism.nv), np.nan)

    def simulate(
        self, start: tuple[Array, Array, Mapping[str, ArrayLike] | None], parameters: Array, threads: int, executor: Executor | None,
        report: Callable[[int, int], object] | None,
    ) -> None:  # fmt: skip
        """Simulate all runs. After Ctrl-C, runs without a result have the status of an interrupted run, as in simulate()."""
        groups, often = self.groups, report is not None or self.store is not None
        with contextlib.suppress(KeyboardInterrupt):
            x = self.begin(*start, parameters, threads)
            if self.store is not None and not (groups := self.store.unfinished(groups, self.ended)):
                return
            if self.policy is None or self.efforts is None:
                shares = results(executor, groups, self.schedule, threads, x, parameters, often)
            else:
                result = by_policy(groups, self.schedule, threads, x, parameters, self.policy, self.efforts)
                shares = (result for result in [result])
            try:
                with contextlib.closing(shares):
                    self.take(shares, report)
            finally:
                if self.store is not None:
                    self.store.keep(self.ended, now=True)

    def begin(self, q: Array, v: Array, near: Mapping[str, ArrayLike] | None, parameters: Array, threads: int) -> Array:
        """Return the initial states (runs, size), and store them as the first samples."""
        mechanism, x, start = self.groups[0][1].setup.mechanism, np.zeros((len(q), self.core.size)), self.schedule.start
        turns = setup.checked_turns(mechanism, near, len(q))
        for rows, prepared in self.groups:
            of_rows = {name: angles[rows] for name, angles in turns.items()}
            core = self.core if len(self.groups) == 1 else prepared.setup.core()
            x[rows], begun = prepared.setup.begin(core, q[rows], v[rows], start, of_rows, threads)
            if core.holds:
                numbers, variants = parameters_of(parameters, rows), prepared.setup.variants(rows)
                x[rows], sampled = core.sample(x[rows], numbers, variants, start)
                begun = np.where(begun == Status.FINISHED, sampled, begun)
            self.begun[rows] = begun
        good = self.begun == Status.FINISHED
        # no warning for variants: the loops of q may have been closed with other lengths, so that q is not comparable with x
        if isinstance(mechanism, Mechanism):
            warn_of_starts(mechanism, q[good], x[good][:, : mechanism.nq], start)
        self._keep(slice(None), 0, np.where(good[:, None], x, np.nan))
        return x

    def _keep(self, rows: Rows, samples: int | slice, x: Array) -> None:
        first = 0
        for kept in self.x:
            kept[rows, samples] = x[..., first : first + kept.shape[-1]]
            first += kept.shape[-1]

    def take(self, shares: Generator[Result, None, None], report: Callable[[int, int], object] | None) -> None:
        """Store the results of each group of runs, until a group is interrupted."""
        unsound = self.begun != Status.FINISHED
        for share, states, status, record in shares:
            states = np.require(states, requirements="W")  # Ray's workers return read-only arrays
            states[unsound[share]] = np.nan
            self._keep(share, slice(1, None), states)
            self.ended[share] = ended = np.where(unsound[share], self.begun[share], status)
            failed = (ended != Status.FINISHED) & (ended != Status.INTERRUPTED)
            for name, x in record.items():
                self.record[name][share] = np.where(failed.reshape(-1, *(1,) * (x.ndim - 1)), np.nan, x)
            if self.store is not None:
                self.store.keep(self.ended)
            if report is not None:
                report(int((self.ended != Status.INTERRUPTED).sum()), len(self.ended))
            if (status == Status.INTERRUPTED).any():
                break

    def sweep(self, end: float, dt: float, parameters: Array, run_index: NDArray[np.intp] | None) -> Sweep:
        t, (q, v, z) = self.schedule.times, self.x
        t[-1] = end  # the exact final time, not the sum of rounded steps
        for x in self.x if self.store is not None else ():
            x.flags.writeable = False  # the arrays are memory maps of the folder's files
        prepared: list[Any] = [p for _, p in self.groups]
        forces = [RunForces(p.setup, dt, parameters, self.schedule.every, p.forces.names) for p in prepared]
        mechanism, limits = prepared[0].setup.mechanism, prepared[0].limits.watched
        per_run: Any = None
        acting: Any = forces[0]
        if run_index is None and not isinstance(mechanism, Variants):
            acting = replace(acting, felt=prepared[0].felt)
        if run_index is not None:
            per_run = [prepared[k].setup.mechanism for k in run_index]
            acting = [replace(forces[k], parameters=parameters[i]) for i, k in enumerate(run_index)]
        elif isinstance(mechanism, Variants):
            per_run = list(mechanism) if isinstance(mechanism, Listed) else mechanism
        return Sweep(
            mechanism, t, q, v, self.ended, internal_state=z, counted=self.core.counted, limits=limits, excess=self.record["excess"],
            stiffness=self.record["stiffness"], efforts=self.efforts, mechanisms=per_run, acting=acting,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class RunForces:
    """Force elements of runs: the shared setup, and the parameters of each run."""

    setup: Setup
    dt: float
    parameters: Array
    every: int = 1  # number of steps from one sample to the next
    names: Mapping[str, slice] = field(default_factory=dict)  # slice of each named parameter in a row of parameters
    felt: tuple[str, ...] = ()  # names of parameters whose defaults depend on the initial configuration

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

    def at_samples(self, run: int, mechanism: Mechanism, policy_efforts: Array | None) -> dict[str, Any]:
        """Return the arguments of a trajectory for the forces of a run, with the efforts (n, nv) of a policy: see :func:`forces_of`."""
        varied = isinstance(self.setup.mechanism, Variants)
        of_run = replace(self.setup, mechanism=mechanism) if varied else self.setup
        numbers, per_sample = parameters_of(self.parameters, run), None
        if policy_efforts is not None:
            per_sample = np.repeat(numbers[None], len(policy_efforts), axis=0)
            set_efforts(per_sample, policy_efforts)
        return setup.forces_of(of_run, of_run.core(numbers), self.dt, per_sample)


def _prepared(
    mechanisms: Sequence[Any],
    controller: Any,
    stepping: Stepping,
    q: ArrayLike,
    rows: Any,
    varies: bool = False,
    wrenches: Any = None,
) -> list[Prepared]:
    """Prepare the runs of each mechanism with the force elements; raise TypeError for Python functions.

    With `varies`, the steps must have derivatives.
    """
    functions, elements = functions_and_elements(controller, wrenches)
    if functions:
        cure = "expected elements of sarrus.control. Use simulate(), or policy= over all runs at once"
        raise TypeError(f"simulate_many(): controller is a Python function; {cure}")
    _check_alike(mechanisms, [setup.joint_limits(mechanism, stepping.limits, elements) for mechanism in mechanisms])
    runs = sum(len(share) for share in rows if not isinstance(share, slice))
    options: dict[str, Any] = {"varies": varies, "only_if_felt": True, "runs": runs}
    prepared = [
        Prepared.of(mechanism, ([], elements), stepping, q, rows=share if runs else None, **options)
        for mechanism, share in zip(mechanisms, rows, strict=True)
    ]
    if prepared[0].calls:
        raise TypeError(
            "simulate_many(): SampleAndHold contains a Python function; expected force elements; or use simulate()"
        )
    return prepared


def _check_functions(mechanisms: Sequence[Any], method: str) -> None:
    points = METHODS[method].rigid and any(pair.points for m in mechanisms for pair in m._may_touch)
    rows = any(map(setup.has_functions_of_q, mechanisms))
    if rows or points:
        kind = "Pfaffian rows" if rows else "points of shapes"
        raise ModelError(f"{kind} that are Python functions cannot run in parallel: use simulate()")


def _check_callables(policy: Any, executor: Any, store: Any) -> None:
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, or have its submit(); got {executor!r}")
    if policy is None:
        return
    if not callable(policy):
        raise TypeError(f"policy must be a function (t, q, v) -> efforts; got {policy!r}")
    if store is not None:
        raise ValueError("policy= controls all runs at once, store= stores each run as it ends: pass only one of them")
    if executor is not None:
        raise TypeError("policy= is evaluated in this process, executor= runs in others: pass only one of them")


def _distinct_mechanisms(
    mechanisms: Mechanism | Sequence[Mechanism] | Variants,
) -> tuple[Sequence[Any], NDArray[np.intp] | None]:
    """Return the distinct mechanisms, and the index of each run's mechanism; None for a single mechanism or variants of one structure."""
    if isinstance(mechanisms, Variants):
        return [mechanisms if len(mechanisms) > 1 else mechanisms[0]], None
    several = list(mechanisms) if isinstance(mechanisms, (list, tuple)) and mechanisms else [mechanisms]
    each = {id(mechanism): checked_mechanism(mechanism) for mechanism in several}
    if len(several) == 1:
        return several, None
    index = {identity: k for k, identity in enumerate(each)}
    run_index = np.array([index[id(mechanism)] for mechanism in several], dtype=np.intp)
    if (many := _alike(list(each.values()))) is not None:
        return [many if len(each) == len(run_index) else many[run_index]], None
    equal = {mechanism: k for k, mechanism in enumerate(dict.fromkeys(each.values()))}
    return list(equal), np.array([equal[mechanism] for mechanism in each.values()], dtype=np.intp)[run_index]


def _alike(mechanisms: Sequence[Any]) -> Variants | None:
    """Return the mechanisms as variants, or None if they differ in data that variants share."""
    if len(mechanisms) == 1 or setup.has_functions_of_q(mechanisms[0]):
        return None
    # a copy has the limits, shapes and contacts of the mechanism from which it was made
    made_from = [vars(m)["_changed"][0] if "_changed" in vars(m) else m.description for m in mechanisms]
    rest = [m.description for m, first in zip(mechanisms, made_from, strict=True) if first is not made_from[0]]
    limits = _limits(mechanisms[0].description) if rest else None
    if any(_limits(description) != limits for description in rest):
        return None
    try:
        return Listed(mechanisms)
    except ModelError:
        return None


def _limits(description: Description) -> Any:
    """Return the joints' limits, and shapes and contacts: data that copies of a mechanism cannot change."""
    joints = [spec.joint for spec in description.joints]
    limits = [[np.asarray(x).tolist() for x in (j.limits, j.velocity_limit, j.effort_limit)] for j in joints]
    return description.shapes, description.contacts, limits


def _check_alike(mechanisms: Sequence[Mechanism], watches: Sequence[JointLimits]) -> None:
    """Raise ModelError unless all mechanisms have the same coordinates, motors and kinds of limits."""

    def structure(mechanism: Mechanism, watch: JointLimits) -> dict[str, Any]:
        types = {name: mechanism.joint(name).type for name in mechanism.joints}
        shapes = [(type(spec.shape), spec.body) for spec in mechanism.description.shapes]
        return {
            "joints": [(name, kind.coordinates, kind.velocities) for name, kind in types.items()],
            "loop joints": list(mechanism.loop_joints),
            "actuated joints": list(mechanism.actuated),
            "limits of joints": [(w.joint, w.index, w.quantity) for w in watch.watched],
            "shapes that touch": shapes + [pair[:2] for pair in mechanism._may_touch],
        }

    first = structure(mechanisms[0], watches[0])
    for mechanism, watch in zip(mechanisms[1:], watches[1:], strict=True):
        different = [part for part, value in structure(mechanism, watch).items() if value != first[part]]
        if different:
            names = f"'{mechanism.name}' has different {different[0]} from '{mechanisms[0].name}'"
            raise ModelError(f"mechanisms of parallel runs may differ in parameters only; {names}")


def _equally_many(
    mechanism: Mechanism | Variants, q: ArrayLike, v: ArrayLike, parameters: Array, mechanisms: int
) -> tuple[Array, Array, Array]:
    """Return states (runs, nq), (runs, nv), and parameters (runs, k) or (k,), broadcast to the same number of runs."""
    states = []
    for name, values, width in (("q", q, mechanism.nq), ("v", v, mechanism.nv)):
        try:
            x = np.asarray(None if is_masked(values) else values)
        except ValueError:  # rows of unequal lengths
            x = np.asarray(None)
        if x.dtype.kind not in "fiub":
            raise TypeError(f"{name} must be numbers (runs, {width}); got {values!r}")
        states.append(x.astype(np.float64, copy=False))
    q, v = states
    if q.ndim not in (1, 2) or v.ndim not in (1, 2) or q.shape[-1] != mechanism.nq or v.shape[-1] != mechanism.nv:
        expected = f"(runs, {mechanism.nq}) and (runs, {mechanism.nv})"
        raise ShapeError(f"q and v must be {expected}, or one state for all runs; got {q.shape} and {v.shape}")
    try:
        (runs,) = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], parameters.shape[:-1], (mechanisms,))
        if runs != mechanisms > 1:
            raise ValueError
    except ValueError:
        several = f", with {mechanisms} mechanisms," * (mechanisms > 1)
        shapes = f"q {q.shape}, v {v.shape} and parameters {parameters.shape}{several}"
        raise ShapeError(f"{shapes} have different numbers of runs") from None
    if parameters.ndim == 2:
        parameters = np.ascontiguousarray(np.broadcast_to(parameters, (runs, parameters.shape[1])))
    return np.broadcast_to(q, (runs, q.shape[-1])), np.broadcast_to(v, (runs, v.shape[-1])), parameters


# ---- results -----------------------------------------------------------------------------------------------------------


def status_name(status: int) -> str:
    """Return the name of a run's status, such as "no convergence"."""
    return "finished" if status == Status.FINISHED else Status(status).name.lower().replace("_", " ")


class Sweep:
    """Results of many runs of one or several mechanisms.

    Unpack the arrays by ``t, q, v, status = runs``. ``runs[3]`` is the fourth run as a :class:`Trajectory`.

    Attributes
    ----------
    t : (n,) sample times of all runs [s]
    q, v : (runs, n, nq), (runs, n, nv) configuration and velocity [rad, m; rad/s, m/s]; NaN after a run that ended early
    internal_state : (runs, n, nz) internal states of force elements, current values of sampled controllers, and revolutions of loop joints; see
        :class:`Trajectory`
    status : (runs,) int8, the :class:`~sarrus.results.Status` of each run
    limits : tuple of :class:`~sarrus.simulation.setup.Limit`, the limits of the (first) mechanism's joints, in the order of `excess`
    excess : (runs, limits) largest violation of each limit, positive above the upper and negative below the lower limit, 0 without violation
        [rad, m; rad/s, m/s; N m, N]; NaN for failed runs
    stiffness : (runs,) largest |lambda| dt, for eigenvalues lambda of small motions under the applied forces (dimensionless); 0 for implicit steps,
        NaN for failed runs
    efforts : (runs, n, nv) efforts of a policy [N m, N], constant from each sample to the next; None without a policy
    counted : number of revolutions of loop joints at the end of `internal_state`
    mechanisms : mechanism of each run; None if all runs have the same one
    acting : force elements with their parameters, for all runs or for each run; None if they are unknown

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> runs = sarrus.simulate_many(robot, np.linspace(0.1, 0.4, 4)[:, None], [0.0], 1.0, every=100)
    >>> runs
    <Sweep of 'pendulum': 4 runs, 11 samples over 1 s, all finished>
    >>> runs[3]
    Trajectory of 'pendulum': 11 samples over 1 s, rk4, finished
    >>> len(runs[1:3])
    2
    """

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute

    @renamed_arguments(z="internal_state")
    def __init__(
        self, mechanism: Mechanism | Variants, t: Array, q: Array, v: Array, status: NDArray[np.int8], *, internal_state: Array, limits:
        Sequence[Limit] = (), excess: Array | None = None, stiffness: Array | None = None, efforts: Array | None = None, counted: int = 0,
        mechanisms: Sequence[Mechanism] | Variants | None = None, acting: RunForces | Sequence[RunForces] | None = None,
    ) -> None:  # fmt: skip
        self._mechanism, self.t, self.q, self.v, self.status = mechanism, t, q, v, status
        self.internal_state = internal_state
        self.limits, self.efforts, self._counted = tuple(limits), efforts, counted
        self._mechanisms = mechanisms if mechanisms is None or isinstance(mechanisms, Variants) else list(mechanisms)
        self._acting = acting
        self.excess = np.full((len(q), len(self.limits)), np.nan) if excess is None else excess
        self.stiffness = np.full(len(q), np.nan) if stiffness is None else stiffness

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of all runs; if the mechanisms differ, that of the first run."""
        if isinstance(self._mechanism, Variants):
            self._mechanism = self._mechanism[0]
        return cast(Mechanism, self._mechanism)

    @property
    def mechanisms(self) -> Sequence[Mechanism] | None:
        """(runs,) mechanism of each run; None if all runs have the same mechanism."""
        # convert to a list, because Variants would create a mechanism again each time it is indexed, which takes time
        if isinstance(self._mechanisms, Variants):
            self._mechanisms = list(self._mechanisms)
        return self._mechanisms

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the arrays t, q, v and status."""
        return iter((self.t, self.q, self.v, self.status))

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.q)

    def __getitem__(self, index: Any) -> Any:
        """Return a single run as a :class:`Trajectory` up to its end; for a slice, indices or a mask, return a Sweep of these runs."""
        if isinstance(index, (slice, np.ndarray, list)):
            arrays = ("q", "v", "status", "internal_state", "excess", "stiffness")
            subset = {name: getattr(self, name)[index] for name in arrays}
            subset["efforts"] = None if self.efforts is None else self.efforts[index]
            each: Any = self._mechanisms
            varied = isinstance(each, Variants)
            subset["mechanisms"] = each[np.arange(len(self))[index]] if varied else _subset(each, index)
            return Sweep(**self._fields() | subset, acting=_subset(self._acting, index))
        try:
            i = range(len(self))[index]
        except IndexError:
            raise IndexError(f"index {index!r} is out of range: there are {len(self)} runs") from None
        lost = np.isnan(self.q[i]).any(axis=1)
        n = int(lost.argmax()) if lost.any() else len(lost)
        x = np.concatenate([self.q[i, :n], self.v[i, :n], self.internal_state[i, :n]], axis=-1)
        mechanism = self.mechanism if self._mechanisms is None else self._mechanisms[i]
        acting = self._acting[i] if isinstance(self._acting, Sequence) else self._acting
        facts: dict[str, Any] = {"status": status_name(self.status[i])}
        if acting is not None:
            facts["statistics"] = {"method": acting.setup.method}
            facts |= acting.at_samples(i, mechanism, None if self.efforts is None else self.efforts[i, :n])
        return setup.trajectory_of(mechanism, self.t[:n], x, self._counted, **facts)

    def __repr__(self) -> str:
        counts = [(name, int(count)) for name, count in self._counts().items()]
        ended = f"all {counts[0][0]}" if len(counts) == 1 else ", ".join(f"{count} {name}" for name, count in counts)
        over = f"{len(self.t)} samples over {np.ptp(self.t):.6g} s"
        return f"<Sweep of '{self.mechanism.name}': {len(self)} runs, {over}{', ' * bool(ended)}{ended}>"

    def _counts(self) -> dict[str, int]:
        kinds, counts = np.unique(self.status, return_counts=True)
        return {status_name(k): int(n) for k, n in zip(kinds, counts, strict=True)}

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"runs": len(self), "samples": len(self.t)}
        facts["time"] = f"{self.t[0]:.6g} s to {self.t[-1]:.6g} s"
        facts |= self._counts()
        for limit, excess in zip(self.limits, np.nan_to_num(self.excess).T, strict=True):
            if excess.any():
                facts[f"{limit.quantity} of '{limit.joint}'"] = f"left by {np.count_nonzero(excess)} runs"
        return table(facts.items(), f"Sweep of '{self.mechanism.name}'")

    def _by_mechanism(self) -> Iterator[tuple[Mechanism, NDArray[np.bool_]]]:
        """Yield each mechanism once, with a mask (runs, 1) of its runs."""
        per_run = [self.mechanism] * len(self) if self.mechanisms is None else self.mechanisms
        for mechanism in dict.fromkeys(per_run):
            yield mechanism, np.array([other is mechanism for other in per_run], bool)[:, None]

    # ---- files and tables --------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all data to an .npz file, or the table of :meth:`to_dataframe` to a .parquet file (needs pandas and pyarrow).

        The table is written in blocks, so that the runs of a `store` folder are never in memory all at once. The .npz also contains the mechanism, or
        the mechanisms of all runs, and the force elements, pickled.

        Parameters
        ----------
        path : file name that ends in .npz or .parquet

        Raises ValueError for another ending, ModelError if the mechanism contains a function that cannot be pickled.
        """
        path = checked_path(path)
        if storage.suffix(path, (".npz", ".parquet"), "sweep") == ".npz":
            storage.write_sweep(path, self._fields() | {"acting": self._acting})
        else:
            with replacing(path) as file:
                storage.write_parquet(file, self._tables())

    def _fields(self) -> dict[str, Any]:
        names = ("mechanism", "t", "q", "v", "status", "internal_state", "limits", "excess", "stiffness", "efforts")
        hidden = {"counted": self._counted, "mechanisms": self._mechanisms}
        return {name: getattr(self, name) for name in names} | hidden

    @classmethod
    def load(cls, path: str | os.PathLike[str], mechanism: Mechanism | Sequence[Mechanism] | None = None) -> Sweep:
        """Read a file that :meth:`save` wrote.

        Without ``mechanism=`` an .npz is **unpickled**, and a pickle can run any program: load only files from people whom you trust. With
        ``mechanism=`` nothing is unpickled, and the force elements remain unknown. A .parquet contains q, v and status only.

        Parameters
        ----------
        path : file name that ends in .npz or .parquet
        mechanism : the mechanism of all runs, or a list with the mechanism of each run; required for a .parquet

        Raises OSError if the file does not exist, ValueError if sarrus did not write it, or if it belongs to another mechanism.
        """
        path = checked_path(path)
        several: list[Any] = list(mechanism) if isinstance(mechanism, (list, tuple)) else [mechanism]
        for item in several if mechanism is not None else ():
            checked_mechanism(item)
        npz = storage.suffix(path, (".npz", ".parquet"), "sweep") == ".npz"
        if not npz and (mechanism is None or not several):
            raise TypeError("a .parquet does not contain the mechanism; pass it: Sweep.load(path, mechanism=...)")
        if npz and several != [mechanism]:
            raise TypeError("an .npz contains the mechanism of each run: omit mechanism=")
        try:
            if npz:
                return cls(**storage.read_sweep(path, several[0]))
            return cls(**storage.read_parquet(path, several))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error

    def to_dataframe(self) -> pandas.DataFrame:
        """Return a table with a row for each run and sample. Needs pandas.

        Columns: run; the index of its mechanism if the mechanisms differ; status; ``t [s]``; coordinates such as ``q:motor [rad]``; velocities such
        as ``v:motor [rad/s]``.
        """
        pandas = needed("pandas", "to_dataframe() needs pandas", "pandas")
        return pandas.concat(self._tables(), ignore_index=True)

    def _tables(self, rows: int = 2**18) -> Iterator[pandas.DataFrame]:
        """Yield the table in blocks of about `rows` rows, with complete runs; without runs, an empty block."""
        pandas = needed("pandas", "to_dataframe() needs pandas", "pandas")
        n, columns = len(self.t), storage.joint_columns(self.mechanism, self.mechanism.joints, "qv")
        numbers = None if self.mechanisms is None else storage.numbered(self.mechanisms)
        many = max(1, rows // n)
        for first in range(0, max(1, len(self)), many):
            runs = np.arange(first, min(first + many, len(self)))
            x = np.concatenate([self.q[runs], self.v[runs]], axis=-1).reshape(len(runs) * n, len(columns))
            frame = pandas.DataFrame(x, columns=columns)
            frame.insert(0, "t [s]", np.tile(self.t, len(runs)))
            frame.insert(0, "status", np.repeat(self.status[runs], n))
            if numbers is not None:
                frame.insert(0, "mechanism", np.repeat(numbers[runs], n))
            frame.insert(0, "run", np.repeat(runs, n))
            yield frame

    # ---- pictures ----------------------------------------------------------------------------------------------------

    @renamed_arguments(what="quantities")
    def plot(
        self, quantities: str | Sequence[str] | None = None, ax: Axes | None = None, *, quantiles: ArrayLike = (0.05, 0.25, 0.5, 0.75, 0.95),
        lines: int = 0,
    ) -> Axes:  # fmt: skip
        """Plot quantiles of the runs against time: bands between pairs of quantiles, and the median as a line. Needs matplotlib.

        Runs that have ended are not included.

        Parameters
        ----------
        quantities : as in :meth:`Trajectory.plot`: "q", "v", "energy", the name of a tree joint or of a frame; or a list of these
        ax : axes of matplotlib, for quantities with the same unit; default: a new figure
        quantiles : quantiles from 0 to 1 (dimensionless). The smallest and the largest bound a band, the next pair another band, and so on; a
            quantile without partner is a line
        lines : number of single runs, evenly distributed over the runs, that are also drawn as thin lines

        Raises NameNotFoundError for an unknown quantity, ValueError for invalid quantiles.
        """
        from ..figures import figures as pictures

        return pictures.bundle(self, quantities, quantiles, checked_count("lines", lines, 0), ax)


def _subset(per_run: Any, index: Any) -> Any:
    """Return the items of a sequence for the indexed runs; the sequence has an item for each run."""
    if isinstance(per_run, Sequence):
        return [per_run[i] for i in np.arange(len(per_run))[index]]
    return None if per_run is None else per_run.of(index)
