"""Derivatives through time, exact for the steps as they are taken, loops with their projections and force elements included."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._arrays import Array, checked_count, common_axes, real_array, real_rows
from .._core import Status
from .._renamed import renamed_arguments, renamed_attribute
from .._showing import Brief
from ..control.element import ForceElement
from ..dynamics.options import shows_options
from ..errors import ModelError, NameNotFoundError, ShapeError, StateError
from ..mechanism import Mechanism, checked_mechanism
from ..variants import Variants
from . import arguments
from .arguments import Stepping
from .runs import Sweep
from .setup import Prepared
from .sweep import MOST_THREADS, RunForces, _equally_many, _prepared

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["rollouts_vjp", "step", "step_jvp", "step_vjp"]

Names = Mapping[str, slice]


class StepOptions(arguments.StepOptions, total=False):
    """And what a step has besides a state."""

    controller: ForceElement | Sequence[ForceElement] | None
    internal_state: ArrayLike | None
    time: float
    threads: int


DEFAULTS: dict[str, Any] = {
    "controller": None, "method": "auto", "stabilisation": "projection", "gains": None, "internal_state": None, "time": 0.0, "threads": 1,
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivities(Brief):
    """How states change with what came before them. Rows are of a change of the state: displacement (nv), velocity (nv), z (nz).

    Attributes
    ----------
    q : (..., 2 nv + nz, nv) by a displacement in the tangent space, after which the configuration is ``robot.integrate(q, dq)``; on loops by
        what they allow of it, the velocity going with it
    v : (..., 2 nv + nz, nv) by the velocity, or what the loops allow of it
    internal_state : (..., 2 nv + nz, nz) by the internal states of force elements
    parameters : name to (..., 2 nv + nz, numbers) by numbers of force elements
    """

    q: Array
    v: Array
    internal_state: Array
    parameters: dict[str, Array]

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute

    @classmethod
    def _of(cls, S: Array, nv: int, names: Sequence[tuple[str, int]]) -> Sensitivities:
        """Of columns by the state, and by so many numbers of each name."""
        counts = [nv, nv, S.shape[-2] - 2 * nv, *(count for _, count in names)]
        by_q, by_v, by_z, *others = np.split(S, np.cumsum(counts)[:-1], axis=-1)
        return cls(by_q, by_v, by_z, {name: by for (name, _), by in zip(names, others, strict=True)})


@dataclass(frozen=True, eq=False, repr=False)
class StateCotangents(Brief):
    """Cotangents of where states or runs began, and of numbers of force elements.

    Attributes
    ----------
    q, v, internal_state : (..., nv), (..., nv), (..., nz) by a displacement in the tangent space, the velocity and internal states; on loops by what they
        allow of these
    parameters : name to (..., numbers)
    """

    q: Array
    v: Array
    internal_state: Array
    parameters: dict[str, Array]

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute

    @classmethod
    def _of(cls, state: Array, numbers: Array, nv: int, names: Names) -> StateCotangents:
        q, v, z = np.split(state, [nv, 2 * nv], axis=-1)
        return cls(q, v, z, {name: numbers[..., at] for name, at in names.items()})


@renamed_arguments(z="internal_state")
@shows_options
def step(robot: Mechanism, q: ArrayLike, v: ArrayLike, dt: float, **options: Unpack[StepOptions]) -> Sensitivities:
    """Derivatives of one step of :func:`~sarrus.simulate`, by the state and by numbers of force elements.

    Where there are loops the state is brought onto them first, as the start of a run is, and directions are what that leaves of them.
    Limits, end stops and contacts have the derivative of the side on which they are.

    Parameters
    ----------
    q, v : (..., nq), (..., nv)
    dt : [s]
    controller : force elements of :mod:`sarrus.control`, as for :func:`~sarrus.simulate_many`; efforts that are held through the step are
        ``EffortTable([time], u[None], motors)``
    method : one of fixed steps, but for "independent", "contact" and "rosenbrock"; default: "auto", which is "implicit_midpoint" here where
        compliant contacts or bristles act
    stabilisation, gains : as for :func:`~sarrus.simulate`, but for "corrective"
    internal_state : (..., nz) internal states of the elements; default: zero
    time : at the start of the step [s]
    threads : how many work on it

    Returns
    -------
    Sensitivities of the state after the step.

    Raises
    ------
    ModelError
        What acts has no derivatives: dry friction of joints, functions, controllers that are sampled or know the mechanism
        (SampleAndHold, ComputedTorque, TaskControl and the like); other methods.
    StateError
        There is none: the position is singular, the step fails, or the state is off the loops.

    Examples
    --------
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum()  # of length 1
    >>> D = sarrus.derivatives.step(pendulum, [0.0], [0.0], 0.1, method="semi_implicit")
    >>> D.q.round(4).tolist(), D.v.round(4).tolist()  # 1 - g h^2, -g h; h, 1
    ([[0.9019], [-0.981]], [[0.1], [1.0]])
    """
    steps, shape = _Steps.from_states(robot, q, v, dt, options)
    names = [(name, at.stop - at.start) for name, at in steps.names.items()]
    S = steps.forward(np.broadcast_to(np.eye(steps.m), (len(steps.x), steps.m, steps.m)), list(steps.names))
    return Sensitivities._of(S[:, -1].reshape(*shape, steps.m, S.shape[-1]), robot.nv, names)


@renamed_arguments(z="internal_state")
@shows_options
def step_jvp(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, dt: float, dq: ArrayLike, dv: ArrayLike, dz: ArrayLike | None = None,
    **options: Unpack[StepOptions],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """How the state after a step changes along a change of the one before: :func:`step` times one vector.

    Parameters
    ----------
    q, v, dt, options : as for :func:`step`
    dq, dv, dz : (..., nv), (..., nv), (..., nz) displacement, and changes of v and of z; default: none of z

    Returns
    -------
    (..., nv), (..., nv), (..., nz)
    """
    steps, shape = _Steps.from_states(robot, q, v, dt, options)
    change = steps.tangents(shape, {"dq": dq, "dv": dv, "dz": dz})
    after = steps.forward(change[..., None], ())[:, -1, :, 0].reshape(*shape, steps.m)
    by_q, by_v, by_z = np.split(after, [robot.nv, 2 * robot.nv], axis=-1)
    return by_q, by_v, by_z


@renamed_arguments(z="internal_state")
@shows_options
def step_vjp(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, dt: float, wq: ArrayLike | None = None, wv: ArrayLike | None = None,
    wz: ArrayLike | None = None, **options: Unpack[StepOptions],
) -> StateCotangents:  # fmt: skip
    """A cotangent of the state after a step as one of the state before and of numbers of force elements: one vector times :func:`step`.

    Parameters
    ----------
    q, v, dt, options : as for :func:`step`
    wq, wv, wz : (..., nv), (..., nv), (..., nz) of the displacement, of v and of z; default: zero

    Returns
    -------
    StateCotangents
    """
    steps, shape = _Steps.from_states(robot, q, v, dt, options)
    end = steps.tangents(shape, {"wq": wq, "wv": wv, "wz": wz})
    state, numbers = steps.back(np.stack([np.zeros_like(end), end], axis=1))
    return StateCotangents._of(
        state.reshape(*shape, steps.m), numbers.reshape(*shape, numbers.shape[-1]), robot.nv, steps.names
    )


@renamed_arguments(z="internal_state")
def rollouts_vjp(
    runs: Sweep,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    internal_state: ArrayLike | None = None,
    *,
    threads: int = 1,
) -> StateCotangents:
    """Gradient of a number that samples of runs make, by where they began and by numbers of force elements: the adjoint of the steps as they were
    taken.

    It goes back from sample to sample. What lies between two of them is computed anew, so that runs that keep every tenth step (`every`) need a
    tenth of the memory and a step more a step; the answer is the same.

    Parameters
    ----------
    runs : from :func:`~sarrus.simulate_many`
    q, v, internal_state : (runs, n, nv), (runs, n, nv), (runs, n, nz) derivatives of the number by a displacement of each sample, its velocity and its internal state;
        default: zero. One of a number that samples alone decide may be (n, nv), for all runs
    threads : how many work on it; the answer does not depend on it

    Returns
    -------
    StateCotangents, (runs, ...) each; NaN of runs that have not finished, or have no derivative somewhere.

    Raises
    ------
    ModelError
        As :func:`step` does; a policy has led the runs, or nobody knows what acted (they were read from a .parquet).
    ShapeError
        Arrays do not fit the runs.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> push = sarrus.control.EffortTable([0.0, 0.1], [[1.0], [1.0]])
    >>> runs = sarrus.simulate_many(robot, [0.2], [0.0], 0.2, push, dt=0.01)
    >>> at_the_end = np.zeros((len(runs.t), 1))
    >>> at_the_end[-1] = 1.0
    >>> g = sarrus.derivatives.rollouts_vjp(runs, q=at_the_end)  # of the angle at the end
    >>> {name: by.round(4).tolist() for name, by in g.parameters.items()}
    {'EffortTable.u': [[0.0144, 0.005]]}
    """
    if not isinstance(runs, Sweep):
        raise TypeError(f"runs must be a Sweep of simulate_many(); got {runs!r}")
    acting = runs._acting
    if acting is None or runs.efforts is not None:
        raise ModelError("runs that a policy has led, or of which nobody knows what acted, have no derivatives")
    if not isinstance(acting, RunForces):
        raise ModelError("runs of several mechanisms: take those of one, runs[runs_of_it]")
    if isinstance(acting.setup.mechanism, Variants):
        raise ModelError("runs of variants: simulate those of one, variants[i], by themselves")
    steps = _Steps.of(acting, runs, checked_count("threads", threads, most=MOST_THREADS))
    n, done = len(runs.t), runs.status == Status.FINISHED
    cotangents = steps.tangents((len(runs), n), {"q": q, "v": v, "internal_state": internal_state}).reshape(
        len(runs), n, steps.m
    )
    state, numbers = (np.full((len(runs), wide), np.nan) for wide in (steps.m, steps.parameters.shape[-1]))
    some = steps.of_runs(done)
    state[done], numbers[done] = some.back(cotangents[done], refuses=False)
    return StateCotangents._of(state, numbers, runs.mechanism.nv, steps.names)


def along_run(
    prepared: Prepared, x: Array, start: float, duration: float, dt: float, names: Iterable[str]
) -> Sensitivities:
    """Of the samples x (n, size) of one run, one a step."""
    nv, numbers = prepared.setup.mechanism.nv, prepared.forces
    schedule = _core.Schedule(start, start + duration, dt)
    steps = _Steps(prepared.setup, schedule, x[None], numbers.parameters, numbers.names, 1)
    which = checked_names(prepared, names)
    S = steps.forward(np.eye(steps.m)[None], which)
    return Sensitivities._of(S[0], nv, [(name, numbers.names[name].stop - numbers.names[name].start) for name in which])


def checked_names(prepared: Prepared, names: Iterable[str]) -> list[str]:
    """Of numbers of force elements by which there are derivatives; raises what forbids them."""
    which: list[Any] = [None] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if not all(isinstance(name, str) for name in which):
        raise TypeError(
            f"sensitivities are names of numbers of force elements, or (), of the start alone; got {names!r}"
        )
    known = prepared.forces.names
    for name in which:
        if name not in known:
            raise NameNotFoundError(f"no force element has the number {name!r}; there are {sorted(known)}")
    check_smooth(prepared.setup.core(prepared.forces.parameters))
    if prepared.functions:
        raise ModelError("a function of the caller has no derivatives through a step")
    return which


def check_smooth(core: _core.Simulation) -> None:
    if core.jumps:
        cure = ": 'rk4' and 'implicit_midpoint' have" if core.jumps.startswith("method") else ""
        raise ModelError(f"{core.jumps} has no derivatives through a step{cure}")


@dataclass(frozen=True, eq=False)
class _Steps:
    """Samples x (runs, n, size) with what acted."""

    setup: Any
    schedule: _core.Schedule
    x: Array
    parameters: Array
    names: Names
    threads: int

    @classmethod
    def of(cls, acting: RunForces, runs: Sweep, threads: int) -> _Steps:
        schedule = _core.Schedule(runs.t[0], runs.t[-1], acting.dt, acting.every)
        x = np.concatenate([runs.q, runs.v, runs.internal_state], axis=-1)
        return cls(acting.setup, schedule, x, acting.parameters, acting.names, threads)

    @classmethod
    def from_states(
        cls, robot: Mechanism, q: ArrayLike, v: ArrayLike, dt: float, options: StepOptions
    ) -> tuple[_Steps, tuple[int, ...]]:
        """One step from each state, and the leading axes of these."""
        checked_mechanism(robot)
        if unknown := options.keys() - DEFAULTS.keys():
            raise TypeError(f"a step has no keyword {min(unknown)!r}; it has {sorted(DEFAULTS)}")
        how: Any = DEFAULTS | cast(Any, options)
        of_steps = {name: how[name] for name in ("method", "stabilisation", "gains")}
        steps = Stepping.checked("step", robot, dt, of_steps | {"dt": dt, "limits": "ignore", "start": how["time"]})
        time, dt = steps.start, steps.dt
        q, v = real_rows("q", q, robot.nq), real_rows("v", v, robot.nv)
        shape = common_axes({"q": q.shape[:-1], "v": v.shape[:-1]})
        q, v = (np.broadcast_to(x, (*shape, x.shape[-1])).reshape(math.prod(shape), x.shape[-1]) for x in (q, v))
        threads = checked_count("threads", how["threads"], most=MOST_THREADS)
        (prepared,) = _prepared([robot], how["controller"], steps, q, [slice(None)], varies=True)
        q, v, parameters = _equally_many(robot, q, v, prepared.forces.parameters, 1)
        core = prepared.setup.core()
        check_smooth(core)
        x, begun = prepared.setup.begin(core, q, v, time, {}, threads)
        nz = core.tangent - 2 * robot.nv
        if how["internal_state"] is not None:
            z = real_array("internal_state", how["internal_state"])
            if z.shape[-1:] != (nz,):
                raise ShapeError(f"internal_state must be (..., {nz}); got {z.shape}")
            x[:, robot.nq + robot.nv : robot.nq + robot.nv + nz] = np.broadcast_to(z, (*shape, nz)).reshape(
                math.prod(shape), nz
            )
        schedule = _core.Schedule(time, time + dt, dt)
        after, status, _ = core.run_many(x, parameters, prepared.setup.variants(slice(None)), schedule, threads)
        failed = np.where(begun != Status.FINISHED, begun, status)
        if failed.any():
            raise StateError(f"no step from state {int(failed.argmax())}: {Status(failed.max()).name.lower()}")
        x = np.concatenate([x[:, None], after], axis=1)
        return cls(prepared.setup, schedule, x, parameters, prepared.forces.names, threads), shape

    def of_runs(self, which: NDArray[np.bool_]) -> _Steps:
        some = self.parameters[which] if self.parameters.ndim == 2 else self.parameters
        return _Steps(self.setup, self.schedule, self.x[which], some, self.names, self.threads)

    @property
    def m(self) -> int:
        return int(self.setup.core().tangent)

    def tangents(self, shape: tuple[int, ...], parts: Mapping[str, ArrayLike | None]) -> Array:
        """Displacement, changes of v and of z, side by side (states, 2 nv + nz)."""
        nv, m, rows = self.setup.mechanism.nv, self.m, []
        for (name, part), wide in zip(parts.items(), (nv, nv, m - 2 * nv), strict=True):
            x = np.zeros(wide) if part is None else real_array(name, part)
            try:
                if x.shape[-1:] != (wide,) or not np.isfinite(x).all():
                    raise ValueError
                rows.append(np.broadcast_to(x, (*shape, wide)))
            except ValueError:
                raise ShapeError(f"{name} must be finite, {(*shape, wide)}; got {x.shape}") from None
        together = np.concatenate(rows, axis=-1)
        return together.reshape(math.prod(together.shape[:-1]), m)

    def forward(self, S: Array, names: Sequence[str]) -> Array:
        """(runs, n, 2 nv + nz, columns), those of S and behind them those of numbers."""
        core = self.setup.core()
        check_smooth(core)
        numbers = [k for name in names for k in range(self.names[name].start, self.names[name].stop)]
        S = np.concatenate([S, np.zeros((*S.shape[:-1], len(numbers)))], axis=-1)
        changing = [-1] * (S.shape[-1] - len(numbers)) + numbers
        changes: Array
        changes, status = core.forward(self.x, self.parameters, self.schedule, S, changing, self.threads)
        self._check(status)
        return changes

    def back(self, cotangents: Array, *, refuses: bool = True) -> tuple[Array, Array]:
        """Of the start (runs, 2 nv + nz) and of all numbers (runs, parameters)."""
        core = self.setup.core()
        check_smooth(core)
        state, numbers, status = core.back(self.x, self.parameters, self.schedule, cotangents, self.threads)
        if refuses:
            self._check(status)
        state[status != 0], numbers[status != 0] = np.nan, np.nan
        return state, numbers

    @staticmethod
    def _check(status: NDArray[np.int8]) -> None:
        if (status == Status.INTERRUPTED).any():
            raise KeyboardInterrupt
        if status.any():
            raise StateError(
                f"state {int(status.argmax())} has no derivative through its steps: the position is singular, or rounding decides what they do"
            )
