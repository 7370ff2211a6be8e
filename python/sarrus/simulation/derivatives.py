"""Exact derivatives of simulations: of the discrete steps, including the projections onto the loops and the force elements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._arrays import MOST_THREADS, Array, checked_count, common_axes, real_array, real_rows
from .._core import Status
from .._renamed import renamed_arguments, renamed_attribute
from .._showing import Brief
from ..control.element import ForceElement
from ..dynamics.options import shows_options
from ..errors import ModelError, ModelWarning, NameNotFoundError, ShapeError, StateError, warn_caller
from ..mechanism import Mechanism, checked_mechanism
from ..variants import Variants
from . import setup
from .setup import Prepared, Stepping, defaults_of, given
from .sweep import RunForces, Sweep, _equally_many, _prepared
from .trajectory import Trajectory

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["rollouts_vjp", "step", "step_jvp", "step_vjp"]

Names = Mapping[str, slice]


class StepOptions(setup.StepOptions, total=False):
    """Options of the derivatives of a step."""

    controller: ForceElement | Sequence[ForceElement] | None
    internal_state: ArrayLike | None
    time: float
    threads: int


DEFAULTS: dict[str, Any] = {
    "controller": None, "method": "auto", "stabilisation": "projection", "gains": None, "internal_state": None, "time": 0.0, "threads": 1,
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivities(Brief):
    """Derivatives of states with respect to earlier states and parameters.

    The rows are changes of the later state: displacement (nv), velocity (nv) and internal states of force elements (nz). With loops, changes of the
    earlier state are first projected onto the loop constraints.

    Attributes
    ----------
    q : (..., 2 nv + nz, nv) with respect to a displacement dq in the tangent space [unit of the row per rad, m], where the displaced configuration is
        ``robot.integrate(q, dq)``. With loops, the velocity changes with the displacement so that it satisfies the constraints
    v : (..., 2 nv + nz, nv) with respect to the velocity [unit of the row per rad/s, m/s]
    internal_state : (..., 2 nv + nz, nz) with respect to the internal states of force elements [unit of the row per unit of the state]
    parameters : name to (..., 2 nv + nz, k), with respect to the k values of a parameter of a force element [unit of the row per unit of the parameter]
    """

    q: Array
    v: Array
    internal_state: Array
    parameters: dict[str, Array]

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute

    @classmethod
    def _of(cls, S: Array, nv: int, names: Sequence[tuple[str, int]]) -> Sensitivities:
        """Split the columns of S: derivatives by the state, then by each parameter, with `names` of (name, number of values)."""
        counts = [nv, nv, S.shape[-2] - 2 * nv, *(count for _, count in names)]
        by_q, by_v, by_z, *by_numbers = np.split(S, np.cumsum(counts)[:-1], axis=-1)
        return cls(by_q, by_v, by_z, {name: by for (name, _), by in zip(names, by_numbers, strict=True)})


@dataclass(frozen=True, eq=False, repr=False)
class StateCotangents(Brief):
    """Cotangents (gradients) of initial states, and of parameters of force elements.

    Attributes
    ----------
    q, v, internal_state : (..., nv), (..., nv), (..., nz) with respect to a displacement in the tangent space, the velocity and the internal states
        [unit of the loss per rad, m; rad/s, m/s; unit of the state]. With loops, changes of q and v are projected onto the loop constraints
    parameters : name to (..., k), with respect to the k values of a parameter [unit of the loss per unit of the parameter]
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
    """Return the derivatives of one step of :func:`~sarrus.simulate`, with respect to the state and to parameters of force elements.

    If there are loops, the state is first projected onto the loop constraints, as at the beginning of a run, and its changes are projected in the
    same way. At limits, end stops and contacts, which are not smooth, the derivative is that of the current state: touching or not.
    Default parameters that are computed from the state, such as the stiffness of an end stop, are constants of the derivative.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s] before the step
    dt : length of the step [s]
    controller : force elements of :mod:`sarrus.control`, as for :func:`~sarrus.simulate_many`; constant efforts during the step are
        ``EffortTable([time], u[None], motors)``. Parameters with n values give n steps, of n states or of the same state
    method : a method with fixed steps except "independent", "contact" and "rosenbrock"; default: "auto", which selects "implicit_midpoint"
        for compliant contacts or bristles
    stabilisation, gains : as for :func:`~sarrus.simulate`, except "corrective"
    internal_state : (..., nz) internal states of the elements; default: zero
    time : time at the beginning of the step [s]
    threads : number of threads; the result does not depend on it

    Returns
    -------
    Sensitivities of the state after the step.

    Warns
    -----
    ModelWarning
        The default of a parameter depends on q; the message has its name.

    Raises
    ------
    ModelError
        The derivatives of a force are not available: dry friction of joints, Python functions, sampled controllers (SampleAndHold), or controllers
        with a model of the mechanism (ComputedTorque, TaskControl). Or the method has no derivatives.
    StateError
        The derivative does not exist, because the position is singular, the step fails, or the state violates the loop constraints.

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
    """Return the change of the state after a step due to a change of the state before it: the matrices of :func:`step` times a vector.

    Parameters
    ----------
    q, v, dt : as in :func:`step`
    dq, dv, dz : (..., nv), (..., nv), (..., nz) displacement, change of the velocity and change of the internal states [rad, m; rad/s, m/s; units of
        the internal states]; default of dz: zero
    controller, method, stabilisation, gains, internal_state, time, threads : as in :func:`step`

    Returns
    -------
    (..., nv), (..., nv), (..., nz) displacement, change of the velocity and change of the internal states after the step
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
    """Return the cotangents of the state before a step, and of parameters of force elements: a cotangent times the matrices of :func:`step`.

    Parameters
    ----------
    q, v, dt : as in :func:`step`
    wq, wv, wz : (..., nv), (..., nv), (..., nz) cotangents of the state after the step, of its displacement, velocity and internal states
        [per rad, m; per rad/s, m/s; per unit of the internal states]; default: zero
    controller, method, stabilisation, gains, internal_state, time, threads : as in :func:`step`

    Returns
    -------
    StateCotangents
    """
    steps, shape = _Steps.from_states(robot, q, v, dt, options)
    end = steps.tangents(shape, {"wq": wq, "wv": wv, "wz": wz})
    state, numbers = steps.back(np.stack([np.zeros_like(end), end], axis=1))
    state, numbers = (x.reshape(*shape, x.shape[-1]) for x in (state, numbers))
    return StateCotangents._of(state, numbers, robot.nv, steps.names)


@renamed_arguments(z="internal_state")
def rollouts_vjp(
    runs: Sweep, q: ArrayLike | None = None, v: ArrayLike | None = None, internal_state: ArrayLike | None = None, *, threads: int = 1
) -> StateCotangents:  # fmt: skip
    """Return the gradient of a function of the samples of runs with respect to initial states and parameters, by the adjoint of the steps.

    The parameters are those of force elements. The algorithm goes back from sample to sample, and repeats the steps between two samples. Runs that
    store every tenth step (``every=10``) therefore need a tenth of the memory, and one more forward step for each step. The result is the same.

    Parameters
    ----------
    runs : result of :func:`~sarrus.simulate_many`
    q, v, internal_state : (runs, n, nv), (runs, n, nv), (runs, n, nz) derivatives of the function with respect to a displacement, the velocity and
        the internal states of each sample [per rad, m; per rad/s, m/s; per unit of the internal states]; default: zero. Derivatives that are equal
        for all runs may have the shape (n, nv)
    threads : number of threads; the result does not depend on it

    Returns
    -------
    StateCotangents, (runs, ...) each; NaN for runs that have not finished, or that have a step without derivative.

    Warns
    -----
    ModelWarning
        The default of a parameter depends on the initial configuration, as in :func:`step`.

    Raises
    ------
    ModelError
        The errors of :func:`step`. Or the runs had a policy, or their force elements are unknown because they were read from a .parquet file.
    ShapeError
        The arrays do not have the shape of the runs' samples.

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
        raise ModelError(
            "runs have no derivatives, because they used a policy, or because their force elements are unknown"
        )
    if not isinstance(acting, RunForces):
        raise ModelError("runs: got several mechanisms, expected one; select its runs by runs[indices]")
    if isinstance(acting.setup.mechanism, Variants):
        raise ModelError("runs: got variants, expected one mechanism; simulate variants[i] separately")
    _warn_of_defaults(acting.felt)
    steps = _Steps.of(acting, runs, checked_count("threads", threads, most=MOST_THREADS))
    n, done = len(runs.t), runs.status == Status.FINISHED
    parts = {"q": q, "v": v, "internal_state": internal_state}
    cotangents = steps.tangents((len(runs), n), parts).reshape(len(runs), n, steps.m)
    state, numbers = (np.full((len(runs), wide), np.nan) for wide in (steps.m, acting.parameters.shape[-1]))
    state[done], numbers[done] = steps.subset(done).back(cotangents[done], raises=False)
    return StateCotangents._of(state, numbers, runs.mechanism.nv, steps.names)


def along_run(prepared: Prepared, run: Trajectory, stepping: Stepping, names: Sequence[str]) -> Sensitivities:
    """Return the sensitivities of the samples of one run, which has a sample at each step; they end early after Ctrl-C."""
    numbers = prepared.forces
    forces = RunForces(prepared.setup, stepping.dt, numbers.parameters, 1, numbers.names)
    x = np.concatenate([run.q, run.v, run.internal_state], axis=-1)
    steps = _Steps(forces, _core.Schedule(stepping.start, run.t[-1], stepping.dt), x[None], 1)
    S = steps.forward(np.eye(steps.m)[None], names)
    counts = [(name, numbers.names[name].stop - numbers.names[name].start) for name in names]
    return Sensitivities._of(S[0], run.mechanism.nv, counts)


def checked_names(prepared: Prepared, names: Iterable[str]) -> list[str]:
    """Return checked names of parameters of force elements; raise ModelError if the run has no derivatives."""
    checked: list[Any] = [None] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if not all(isinstance(name, str) for name in checked):
        raise TypeError(f"sensitivities must be names of parameters of force elements, or () for none; got {names!r}")
    valid = prepared.forces.names
    for name in checked:
        if name not in valid:
            raise NameNotFoundError(f"no force element has the parameter {name!r}; expected one of {sorted(valid)}")
    check_smooth(prepared.setup.core(prepared.forces.parameters))
    if prepared.functions:
        raise ModelError(
            "a controller that is a Python function has no derivatives; use force elements of sarrus.control"
        )
    _warn_of_defaults(prepared.felt)
    return checked


def _warn_of_defaults(names: Sequence[str]) -> None:
    """Warn about parameters whose dependence on the initial configuration is not differentiated."""
    if names:
        warn_caller(f"derivatives do not include that {defaults_of(names)}; {given(names)}", ModelWarning)


def check_smooth(core: _core.Simulation) -> None:
    if core.jumps:
        cure = "; give 'rk4' or 'implicit_midpoint'" if core.jumps.startswith("method") else ""
        raise ModelError(f"{core.jumps} has no derivatives through a step{cure}")


@dataclass(frozen=True, eq=False)
class _Steps:
    """Samples x (runs, n, size) with the force elements of their runs."""

    forces: RunForces
    schedule: _core.Schedule
    x: Array
    threads: int

    @classmethod
    def of(cls, forces: RunForces, runs: Sweep, threads: int) -> _Steps:
        schedule = _core.Schedule(runs.t[0], runs.t[-1], forces.dt, forces.every)
        return cls(forces, schedule, np.concatenate([runs.q, runs.v, runs.internal_state], axis=-1), threads)

    @classmethod
    def from_states(
        cls, robot: Mechanism, q: ArrayLike, v: ArrayLike, dt: float, options: StepOptions
    ) -> tuple[_Steps, tuple[int, ...]]:
        """Simulate one step from each state; return the steps, and the leading axes of the states."""
        checked_mechanism(robot)
        if unknown := options.keys() - DEFAULTS.keys():
            raise TypeError(f"step() got an unexpected keyword {min(unknown)!r}; expected {sorted(DEFAULTS)}")
        values: Any = DEFAULTS | cast(Any, options)
        step_options = {name: values[name] for name in ("method", "stabilisation", "gains")}
        step_options |= {"dt": dt, "limits": "ignore", "start": values["time"]}
        steps = Stepping.checked("step", robot, dt, step_options)
        q, v = real_rows("q", q, robot.nq), real_rows("v", v, robot.nv)
        shape = common_axes({"q": q.shape[:-1], "v": v.shape[:-1]})
        count, threads = math.prod(shape), checked_count("threads", values["threads"], most=MOST_THREADS)
        q, v = (np.broadcast_to(x, (*shape, x.shape[-1])).reshape(count, x.shape[-1]) for x in (q, v))
        (prepared,) = _prepared([robot], values["controller"], steps, q, [slice(None)], varies=True)
        q, v, parameters = _equally_many(robot, q, v, prepared.forces.parameters, 1)
        if len(q) != count:  # one state, with a controller that has one row of parameters for each step
            shape, count = (len(q),), len(q)
        core = prepared.setup.core()
        check_smooth(core)
        _warn_of_defaults(prepared.felt)
        x, begun = prepared.setup.begin(core, q, v, steps.start, {}, threads)
        if values["internal_state"] is not None:
            z, nz = real_array("internal_state", values["internal_state"]), core.tangent - 2 * robot.nv
            if z.shape[-1:] != (nz,):
                raise ShapeError(f"internal_state must be (..., {nz}); got {z.shape}")
            x[:, robot.nq + robot.nv :][:, :nz] = np.broadcast_to(z, (*shape, nz)).reshape(count, nz)
        schedule, variants = (
            _core.Schedule(steps.start, steps.start + steps.dt, steps.dt),
            prepared.setup.variants(slice(None)),
        )
        if core.holds:
            x, sampled = core.sample(x, parameters, variants, steps.start)
            begun = np.where(begun == Status.FINISHED, sampled, begun)
        after, status, _ = core.run_many(x, parameters, variants, schedule, threads)
        failed = np.where(begun != Status.FINISHED, begun, status)
        if failed.any():
            raise StateError(f"the step from state {int(failed.argmax())} failed: {Status(failed.max()).name.lower()}")
        forces = RunForces(prepared.setup, steps.dt, parameters, 1, prepared.forces.names)
        return cls(forces, schedule, np.concatenate([x[:, None], after], axis=1), threads), shape

    def subset(self, runs: NDArray[np.bool_]) -> _Steps:
        return replace(self, forces=self.forces.of(runs), x=self.x[runs])

    @cached_property
    def core(self) -> Any:
        """The core's Simulation; raises ModelError if the steps have no derivatives."""
        core = self.forces.setup.core()
        check_smooth(core)
        return core

    @property
    def names(self) -> Names:
        return self.forces.names

    @property
    def m(self) -> int:
        return int(self.forces.setup.core().tangent)

    def tangents(self, shape: tuple[int, ...], parts: Mapping[str, ArrayLike | None]) -> Array:
        """Return displacements, changes of velocities and changes of internal states, concatenated to (states, 2 nv + nz)."""
        nv, m, rows = self.forces.setup.mechanism.nv, self.m, []
        for (name, part), wide in zip(parts.items(), (nv, nv, m - 2 * nv), strict=True):
            x = np.zeros(wide) if part is None else real_array(name, part)
            try:
                if x.shape[-1:] != (wide,) or not np.isfinite(x).all():
                    raise ValueError
                rows.append(np.broadcast_to(x, (*shape, wide)))
            except ValueError:
                raise ShapeError(
                    f"{name} must be finite and have shape {(*shape, wide)}; got shape {x.shape}"
                ) from None
        together = np.concatenate(rows, axis=-1)
        return together.reshape(math.prod(together.shape[:-1]), m)

    def forward(self, S: Array, names: Sequence[str]) -> Array:
        """Return derivatives (runs, n, 2 nv + nz, columns) along the columns of S, followed by derivatives with respect to the named parameters."""
        numbers = [k for name in names for k in range(self.names[name].start, self.names[name].stop)]
        S = np.concatenate([S, np.zeros((*S.shape[:-1], len(numbers)))], axis=-1)
        changing = [-1] * (S.shape[-1] - len(numbers)) + numbers
        changes, status = self.core.forward(self.x, self.forces.parameters, self.schedule, S, changing, self.threads)
        self._check(status)
        return np.asarray(changes)

    def back(self, cotangents: Array, *, raises: bool = True) -> tuple[Array, Array]:
        """Return the cotangents of the initial states (runs, 2 nv + nz) and of all parameters (runs, parameters)."""
        state, numbers, status = self.core.back(self.x, self.forces.parameters, self.schedule, cotangents, self.threads)
        if raises:
            self._check(status)
        state[status != 0], numbers[status != 0] = np.nan, np.nan
        return state, numbers

    @staticmethod
    def _check(status: NDArray[np.int8]) -> None:
        if (status == Status.INTERRUPTED).any():
            raise KeyboardInterrupt
        if status.any():
            fault = "has no derivative through its steps: the position is singular, or too near to a singular position"
            raise StateError(f"state {int(status.argmax())} {fault}")
