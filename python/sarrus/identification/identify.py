"""Identification of masses, inertias, friction, armature and springs from measured motions and efforts, also with loops, and motions that excite them.

Exciting motions are Fourier series of the driven joints that minimise the condition number of the regressor.

References
----------
Swevers, J., Ganseman, C., Tükel, D., De Schutter, J., Van Brussel, H. (1997). Optimal robot excitation and identification. *IEEE Transactions on
Robotics and Automation* 13.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import cast

import numpy as np

from .. import _arrays
from .._arrays import Array, ArrayLike, NDArray, check_counts, checked_number, checked_truth
from .._core import tolerances
from .._showing import Brief, table
from ..analysis.closing import check_timeless, closing
from ..analysis.independent_coordinates import velocity_names
from ..control.elements import EffortTable
from ..errors import AssemblyError, ModelError, ShapeError, StateError
from ..mechanism import Mechanism, checked_mechanism
from ..simulation.sweep import simulate_many
from .model import (
    BLOCK,
    Base,
    EffortModel,
    Samples,
    base_of,
    checked_samples,
    combined,
    consistent_parameters,
    with_volume,
)

# number of sections of a record; validation uses complete sections, because neighbouring samples are correlated
STRETCHES = 10
BLUNT = 1e-5  # lower bound of the relative noise of efforts in the search for physically consistent bodies
SHARPEST = 1e-8  # smallest relative noise of efforts that sums of squares resolve
# lower bound of a motor's noise, relative to the largest noise of all motors, so that the exact zeros of a passive joint do not dominate the fit
TRUSTED = 1e-4
STILL = 1e-7  # below this relative norm of its column, a parameter is not excited by the data
# relative eigenvalue of the normal equations (columns of unit norm) below which a combination is not excited
UNEXCITED = 1e-13


@dataclass(frozen=True, eq=False, repr=False)
class Identification(Brief):
    """Result of an identification.

    Attributes
    ----------
    names : (k) names of the base parameters, such as "arm.m + 0.4 hand.m"
    values, deviations : (k,) estimates and their standard deviations [unit of each parameter]; inf for combinations that the motion did not excite
    nominal : (k,) nominal values [unit of each parameter]
    covariance : (k, k) covariance of the estimates [products of their units], for noise that is independent between samples
    measured : (m) names of the measured quantities: motors [N m, N]; for :func:`identify_runs`, the displacements and velocities of a state
    noise : (m,) standard deviation of the measurements from the fit [unit of each measured quantity]
    held_out : (m,) standard deviation of the validation samples, which were not fitted [unit of each measured quantity]
    condition : condition number of the weighted rows with columns of unit norm, the largest amplification of noise (dimensionless). Values below 100
        are good
    unseen : names of parameters without influence on motions near the data
    unexcited : names of combinations that this motion does not excite, but other motions would
    parameters : (p,) physically consistent parameters [unit of each]: base parameters are near the estimates, all other combinations near nominal
        values
    parameter_names : (p) names of the parameters
    misfit : deviation of the consistent parameters pi from the estimates in standard deviations, sqrt((B pi - values)^T C^-1 (B pi - values)), where
        B maps pi to base parameters and C is `covariance` (dimensionless). About sqrt(k) is explained by noise; much larger values indicate a wrong
        model
    robot : the mechanism with these parameters
    """

    names: tuple[str, ...]
    values: Array
    deviations: Array
    nominal: Array
    covariance: Array
    measured: tuple[str, ...]
    noise: Array
    held_out: Array
    condition: float
    unseen: tuple[str, ...]
    unexcited: tuple[str, ...]
    parameter_names: tuple[str, ...]
    parameters: Array
    misfit: float
    _model: EffortModel = field(repr=False)
    _base: Base = field(repr=False)
    _original: Mechanism = field(repr=False)

    @cached_property
    def robot(self) -> Mechanism:
        """Mechanism with the identified parameters. Offsets are not included, because they are properties of the measurement."""
        changes = self._model.changes(self.parameters[None])
        changes = {kind: {name: x for name, (x,) in parts.items()} for kind, parts in changes.items()}
        return self._original.replace(**changes)

    def report(self) -> str:
        """Return a table of the base parameters, indistinguishable and unidentified parameters, and the error of predictions."""
        width = max(map(len, self.names), default=0)
        lines = [f"{'':{width}}  {'estimate':>12} {'± deviation':>12} {'before':>12}"]
        lines += [f"{n:{width}}  {x:12.6g} {s:12.2g} {x0:12.6g}" for n, x, s, x0 in self._rows()]
        lines += [f"indistinguishable: {name}" for name in self.names if " " in name]
        lines += [f"no influence on efforts: {', '.join(self.unseen)}"] * bool(self.unseen)
        lines += [f"not excited by this motion: {name}" for name in self.unexcited]
        lines += [f"condition {self.condition:.3g}; consistent bodies cost {self.misfit:.3g} standard deviations"]
        pairs = zip(self.measured, self.noise, self.held_out, strict=True)
        lines += [f"{name}: {fit:.4g} about the fit, {out:.4g} held out" for name, fit, out in pairs]
        return "\n".join(lines)

    def _rows(self) -> Iterator[tuple[str, float, float, float]]:
        return zip(self.names, self.values.tolist(), self.deviations.tolist(), self.nominal.tolist(), strict=True)

    def of(self, robot: Mechanism) -> Array:
        """Return the base parameters (k,) of another mechanism with the same parts."""
        return self._base.combination @ self._model.values_of(checked_mechanism(robot, "robot"))

    def _repr_html_(self) -> str:
        rows = [(name, f"{x:.6g}", f"{s:.2g}", f"{x0:.6g}") for name, x, s, x0 in self._rows()]
        return table(rows, "Identification", ("parameter", "estimate", "deviation", "before"))


def identify(
    robot: Mechanism, data: Samples, *, terms: Mapping[str, Sequence[str]] | None = None, bodies: Sequence[str] | None = None,
    held_out: float = 0.2, consistent: bool = True,
) -> Identification:  # fmt: skip
    """Identify base parameters by weighted least squares, from motions and motor efforts, also for mechanisms with loops.

    The equations are tau = Y pi, projected onto motions that the loops allow, so that constraint forces cancel. The rank of the equations determines
    the base parameters. Parameters that are not identified (other bodies, springs, gravity) have their nominal values. Each motor is weighted by the
    inverse of its estimated noise. Internal efforts of redundant motors are removed. Samples are processed once, in blocks, so that only one matrix
    per motor is in memory.

    Parameters
    ----------
    robot : the nominal mechanism
    data : samples with closed loops, and efforts; without accelerations use :func:`identify_runs`. Prescribed motions require `t`
    terms : joint parameters that are identified: "damping", "friction" (Coulomb), "armature", "stiffness" (about the joint's rest) or "offset" (of
        the measured effort [N m, N]) to names of tree joints or loop joints
    bodies : names of the bodies whose parameters are identified; default: all bodies with mass
    held_out : fraction of the samples for validation, 0 to 0.5 (dimensionless), in complete sections of the record; these are not fitted
    consistent : True makes `parameters` physically consistent. False uses nominal values outside the base parameters, and `robot` may raise an error

    Returns
    -------
    :class:`~sarrus.results.Identification`; print its ``report()``

    Raises
    ------
    NotRealizableError
        The motors in the efforts do not determine the motion. Add passive joints to the efforts, with zeros.
    StateError, ShapeError, NameNotFoundError, ModelError
        A sample violates the loop constraints, shapes are wrong, names are unknown, or there are fewer samples than parameters.

    Notes
    -----
    The standard deviations are valid for efforts with independent noise and motions that are measured much more accurately. Filtered samples are not
    independent: use every k-th sample, ``data.rows(slice(None, None, k))``. For redundant motors, equal noise of all motors is assumed.

    References
    ----------
    Gautier, M. (1991). Numerical calculation of the base inertial parameters of robots. *Journal of Robotic Systems* 8. Wensing, Kim and Slotine (2018).

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> from sarrus.identification import Samples, identify
    >>> robot = sarrus.mechanisms.four_bar()
    >>> t = np.linspace(0.0, 4.0, 400)
    >>> q = robot.follow({"motor": 3 * t + np.sin(5 * t)})
    >>> v = robot.complete_velocity(q, {"motor": 3 + 5 * np.cos(5 * t)})
    >>> a = robot.complete_acceleration(q, v, {"motor": -25 * np.sin(5 * t)})
    >>> real = robot.replace(damping={"motor": 0.2})
    >>> found = identify(robot, Samples({"motor": real.actuator_efforts(q, v, a)[:, 0]}, q, v, a), terms={"damping": ["motor"]})
    >>> found.names[0], float(found.values[0].round(9))
    ('motor.damping', 0.2)
    """
    checked_mechanism(robot, "robot")
    checked_samples(data)
    held_out, consistent = checked_number("held_out", held_out, ""), checked_truth("consistent", consistent)
    if not 0.0 <= held_out <= 0.5:
        raise ValueError(f"held_out must be from 0 to 0.5, a fraction of the samples; got {held_out!r}")
    if data.a is None:
        raise ModelError(
            "the samples have no accelerations: use identify_runs(), which fits runs, or Samples.from_joints, which differentiates"
        )
    model = EffortModel(robot, tuple(data.efforts), terms, bodies)
    check_states(model.robot, data)
    base = base_of(model, data)
    fitted, out, counts = _statistics(model, data, base.kept, held_out)
    if counts.sum() < 2 * len(base.kept):
        raise ModelError(
            f"{len(data)} samples of {model.robot.nu} efforts are too few for {len(base.kept)} base parameters"
        )
    nominal = base.combination @ model.values
    size = np.sqrt(np.mean((model.turn_of_motors * model.measured(data)) ** 2, axis=0)).max() / model.turn_of_motors
    size = np.maximum(size, 1e-100)
    fit = _weighted(fitted, counts[0], base.size, SHARPEST * size)
    expressions = base.expressions(model.names, model.units)
    labels, units = [f"({e})" for e in expressions], model.units[base.kept]
    largest = np.abs(fit.dark / units).argmax(axis=1).tolist()
    unexcited = [combined(x / x[k], labels, k, 1.0 / units, 1e-3) for x, k in zip(fit.dark, largest, strict=True)]
    values = nominal + fit.change
    # the noise has a lower bound in the search for consistent bodies, because it may be zero for simulated data or zero efforts
    blunt = min(1.0, float((fit.noise / (BLUNT * size)).max()))
    parameters, misfit = _all_parameters(model, base, values, blunt * fit.root, consistent)
    return Identification(
        expressions, values, fit.deviations, nominal, fit.covariance, model.motors, fit.noise, _deviation(out, fit.change, counts[1]), fit.condition,
        tuple(model.names[i] for i in base.unseen), tuple(unexcited), model.names, parameters, misfit, model, base, robot,
    )  # fmt: skip


def check_states(robot: Mechanism, data: Samples) -> None:
    """Raise an error if the samples have wrong shapes or open loops, or if the motors do not determine the motion."""
    off = np.abs(closing(robot, (), ()).at(data.t, None).residual(data.q)).max(axis=1, initial=0.0)
    if off.max(initial=0.0) > tolerances.torn:
        raise StateError(
            f"sample {int(off.argmax())} violates the loops by {off.max():.3g} [rad, mean body sizes]: use robot.project_configuration(q)"
        )
    few = np.linspace(0, len(data) - 1, min(len(data), 32)).astype(int)
    for i in () if data.a is None else few:
        time = None if data.t is None else data.t[i]
        robot.actuator_efforts(data.q[i], data.v[i], cast(Array, data.a)[i], time=time, check=False)


def _statistics(
    model: EffortModel, data: Samples, kept: NDArray[np.intp], held_out: float
) -> tuple[Array, Array, Array]:
    """Return the products [W y]^T [W y] of each motor (nu, k + 1, k + 1), for fit and validation, and the numbers of equations (2, nu) of both.

    Internal efforts are removed from y. A sample then counts as P_kk equations of motor k: for equal noise of all motors, this is the part of the
    variance that remains, and the trace of P is the number of equations that the motors determine.
    """
    n, y, a = len(data), model.measured(data), cast(Array, data.a)
    k = len(kept) + 1
    sums, counts = np.zeros((2, y.shape[1], k, k)), np.zeros((2, y.shape[1]))
    edges = np.linspace(0, n, STRETCHES * max(1, min(5, n // (STRETCHES * 20))) + 1).astype(int)
    for s, (first, last) in enumerate(pairwise(edges)):
        # the validation sections are distributed evenly over the record
        out = int(np.floor((s + 1) * held_out + 1e-9) > np.floor(s * held_out + 1e-9))
        for begin in range(first, last, BLOCK):
            rows = slice(begin, min(begin + BLOCK, last))
            signs = None if data.directions is None else {name: d[rows] for name, d in data.directions.items()}
            time = None if data.t is None else data.t[rows]
            Z, P = model.rows(data.q[rows], data.v[rows], a[rows], kept, signs, time)
            Z[..., -1] = (P @ y[rows, :, None])[..., 0].T - Z[..., -1]
            counts[out] += np.einsum("nkk->k", P)
            for u, block in enumerate(Z):
                sums[out, u] += block.T @ block
    return sums[0], sums[1], counts


@dataclass(frozen=True, eq=False)
class _Fit:
    """Fitted change (k,) of base parameters, `root` with root^T root = C^-1, and combinations `dark` (., k) that the data do not excite."""

    change: Array
    covariance: Array
    deviations: Array
    root: Array
    dark: Array
    noise: Array
    condition: float


def _weighted(sums: Array, counts: Array, size: Array, least: Array) -> _Fit:
    """Return the least-squares fit in which each motor is weighted by its residuals, iteratively.

    The set of excited combinations does not depend on the weights.
    """
    p = sums.shape[-1] - 1
    alike = np.einsum("u,uii->i", least**-2.0, sums)[:-1]  # squares of columns, with equal weights of all motors
    moved = np.sqrt(alike) > STILL * size * np.sqrt(np.sum(counts * least**-2.0))

    def bounded(noise: Array) -> Array:
        return np.asarray(least * np.maximum(np.maximum(noise / least, 1.0), TRUSTED * (noise / least).max()))

    noise = bounded(np.sqrt(sums[:, -1, -1] / np.maximum(counts, 1.0)))
    for _ in range(20):
        total = np.einsum("u,uij->ij", noise**-2.0, sums)
        G, b = total[:-1, :-1], total[:-1, -1]
        length, usual = np.sqrt(np.diag(G)), size * np.sqrt(np.sum(counts * noise**-2.0))
        scale = np.where(moved, 1.0 / np.where(moved, length, 1.0), 0.0)
        values, vectors = np.linalg.eigh(scale[:, None] * G * scale)
        excited = values > UNEXCITED * values.max(initial=0.0)
        inverse = (scale[:, None] * vectors[:, excited] / values[excited]) @ vectors[:, excited].T * scale
        change, before = inverse @ b, noise
        change = change + inverse @ (b - G @ change)
        noise = bounded(_deviation(sums, change, np.maximum(counts * (1.0 - p / counts.sum()), 1.0)))
        if np.all(np.abs(noise - before) < 1e-6 * noise):
            break
    dark = vectors[:, ~excited].T * np.where(moved, scale, 1.0 / usual)
    deviations = np.where((np.abs(vectors[:, ~excited]) > 1e-6).any(axis=1), np.inf, np.sqrt(np.diag(inverse)))
    root = np.sqrt(values[excited])[:, None] * vectors[:, excited].T * np.where(moved, length, 0.0)
    condition = float(np.sqrt(values.max(initial=1.0) / max(values.min(initial=1.0), 1e-30)))
    return _Fit(change, inverse, deviations, root, dark, noise, condition)


def _deviation(sums: Array, change: Array, counts: Array) -> Array:
    """Return the standard deviation (nu,) of the measurements in these sums from their prediction; NaN without samples."""
    x = np.concatenate([-change, [1.0]])
    squares = np.maximum(np.einsum("i,uij,j->u", x, sums, x), 0.0)
    return np.asarray(np.sqrt(np.divide(squares, counts, out=np.full(len(sums), np.nan), where=counts > 0.0)))


def _all_parameters(
    model: EffortModel, base: Base, values: Array, root: Array, consistent: bool
) -> tuple[Array, float]:
    """Return all parameters, and their distance from the estimate in standard deviations."""
    if not consistent:
        parameters = model.values.copy()
        parameters[base.kept] += values - base.combination @ model.values
        return parameters, 0.0
    n, units = 10 * len(model.bodies), model.units
    nominal, signed = model.values / units, np.array([term == "offset" for term, _, _ in model.terms], bool)
    # for a nominal value of zero, the reference is the magnitude of the estimate
    sizes = np.zeros(len(nominal))
    sizes[base.kept] = np.abs(values) / units[base.kept]
    references = np.where(nominal[n:] > 0.0, nominal[n:], np.maximum(sizes[n:], 1e-12))
    nominal[n:] = np.where(signed, np.where(nominal[n:] == 0.0, references, nominal[n:]), references)
    parameters = units * consistent_parameters(
        base.combination * units, values, root, nominal, len(model.bodies), signed
    )
    return parameters, float(np.linalg.norm(root @ (base.combination @ parameters - values)))


# ---- parameters from runs --------------------------------------------------------------------------------------------
# Identification without accelerations: short simulations from measured states with measured efforts should end in the measured states.
#
# The method is Gauss-Newton on base parameters. Derivatives are finite differences between variants of the mechanism, whose runs are simulated
# together.


FAR = 1e100  # bound of errors [rad, m; rad/s, m/s] below which squares do not overflow
STEP = 1e-4  # relative step of central differences; the rounding errors of runs are far below its square
INSIDE = 1e-2  # weight of the log-determinant divergence, so that variants at the step are physically possible


def identify_runs(
    robot: Mechanism, data: Samples, *, horizon: int = 20, terms: Mapping[str, Sequence[str]] | None = None,
    bodies: Sequence[str] | None = None, held_out: float = 0.2, hold: bool = True, steps: int = 1, iterations: int = 20, threads: int = 1,
) -> Identification:  # fmt: skip
    """Identify base parameters from positions, velocities and efforts, without accelerations.

    The record is divided into runs of `horizon` samples. Each run is simulated from its first measured state with the measured efforts. The fit
    minimises the errors of the final states; each coordinate of q and v is weighted by the inverse of its estimated noise. The data must have the
    efforts of all motors.

    Parameters
    ----------
    robot : the nominal mechanism
    data : samples with uniformly spaced `t`
    horizon : number of samples in a run. Longer runs are more sensitive to small parameters, until noise of the initial state and chaos dominate
    terms, bodies, held_out : as in :func:`identify`, without "offset"
    hold : True: zero-order hold of the measured efforts; False: linear interpolation
    steps : number of simulation steps from sample to sample
    iterations : maximum number of Gauss-Newton steps
    threads : number of threads for the runs

    Returns
    -------
    :class:`~sarrus.results.Identification`; its `noise` and `held_out` have 2 nv entries, displacements, then velocities [rad, m; rad/s, m/s]

    Raises
    ------
    ModelError
        - The data have no times, or the record is shorter than four runs.
        - `terms` contains "offset", or a prescribed motion varies in time.
        - Simulations fail; reduce `horizon` or increase `steps`.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> from sarrus.identification import Samples, identify_runs
    >>> robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> t, u = np.arange(400) / 100, 3 * np.sin(np.arange(400) / 8)[:, None]
    >>> run = sarrus.simulate(robot, [0.2], [0.0], 3.99, sarrus.control.EffortTable(t, u, ["pivot"]), dt=0.01)
    >>> guess = robot.replace(inertias={"bob": sarrus.Inertia.from_points([1.5], [(0, 0, -0.5)])})
    >>> found = identify_runs(guess, Samples({"pivot": u}, run.q, run.v, t=t))
    >>> dict(zip(found.names, found.values.round(6).tolist()))["bob.mz"]  # -m l [kg m]
    -1.0
    """
    checked_mechanism(robot, "robot")
    checked_samples(data)
    check_counts(horizon=horizon, steps=steps, iterations=iterations, threads=threads)
    held_out, hold = checked_number("held_out", held_out, ""), checked_truth("hold", hold)
    if not 0.0 <= held_out <= 0.5:
        raise ValueError(f"held_out must be from 0 to 0.5, a fraction of the runs; got {held_out!r}")
    if data.t is None or len(data) < 4 * horizon + 1:
        raise ModelError(
            f"identify_runs() requires times, and at least four runs of {horizon} samples; got {len(data)} samples"
        )
    model = EffortModel(robot, tuple(data.efforts), terms, bodies)
    if any(term == "offset" for term, _, _ in model.terms):
        raise ModelError(
            "identify_runs() does not identify offsets of efforts: use identify(), or subtract the offsets"
        )
    check_states(model.robot, data)
    check_timeless(robot, "identify_runs")
    still = Samples(data.efforts, data.q, data.v, np.zeros_like(data.v), data.t)
    base = base_of(model, still)
    runs = _Runs(model, data, horizon, hold, steps, threads)
    fitted = np.floor((np.arange(len(runs)) + 1) * held_out + 1e-9) == np.floor(np.arange(len(runs)) * held_out + 1e-9)
    units, nominal = model.units, base.combination @ model.values
    start, size = _start(model, base)
    least = 1e-13 * np.concatenate([model.turn, model.rate * model.turn])
    at, before, weight = start, np.inf, np.ones(2 * robot.nv)
    signed = np.zeros(len(model.terms), bool)
    for _ in range(iterations):
        off, slopes = runs.compared(at, base, STEP * size)
        noise = np.maximum(np.sqrt(np.mean(off[fitted] ** 2, axis=0)), least)
        cost = float(np.sum(np.log(noise)))
        weight = 1.0 / noise
        J, r = (slopes * weight[:, None])[fitted].reshape(-1, len(size)), (off * weight)[fitted].ravel()
        change, scale, s, Vt, good = _least_step(J, r)
        root = (s[good, None] * Vt[good]) / scale
        now = base.combination @ at
        values, decrement = now + change, np.sqrt(np.sum((root @ change) ** 2))
        at = units * consistent_parameters(
            base.combination * units, values, root, start / units, len(model.bodies), signed, INSIDE
        )
        if decrement < 1e-3 or abs(before - cost) < 1e-6:
            break
        before = cost
    covariance = (scale[:, None] * Vt[good].T / s[good] ** 2) @ Vt[good] * scale
    deviations = np.where((np.abs(Vt[~good]) > 1e-6).any(axis=0), np.inf, np.sqrt(np.diag(covariance)))
    left = runs.off(at[None])[0]
    out = np.sqrt(np.mean(left[~fitted] ** 2, axis=0)) if not fitted.all() else np.full(len(noise), np.nan)
    names = velocity_names(robot)
    measured = (*(f"{name} at the end" for name in names), *(f"rate of {name}" for name in names))
    return Identification(
        base.expressions(model.names, units), values, deviations, nominal, covariance, measured, np.sqrt(np.mean(left[fitted] ** 2, axis=0)), out,
        float(s[0] / s[-1]), tuple(model.names[i] for i in base.unseen), (), model.names, at,
        float(np.linalg.norm(root @ (base.combination @ at - values))), model, base, robot,
    )  # fmt: skip


def _start(model: EffortModel, base: Base) -> tuple[Array, Array]:
    """Return initial parameters with finite volumes and positive frictions, and the sizes of the base parameters."""
    n, units = 10 * len(model.bodies), model.units
    start = model.values / units
    start[:n] = with_volume(start[:n].reshape(-1, 10)).ravel()
    size = np.maximum(np.abs(base.combination) @ np.abs(units * start), 1e-3 * units[base.kept])
    start[n:] = np.maximum(start[n:], 1e-2)  # a positive initial value replaces a nominal friction of zero
    return units * start, size


def _least_step(J: Array, r: Array) -> tuple[Array, Array, Array, Array, NDArray[np.bool_]]:
    """Return the least-squares step, the units of columns, the singular values of J in these units, Vt, and which of them are not negligible."""
    scale = 1.0 / np.maximum(np.linalg.norm(J, axis=0), 1e-300)
    U, s, Vt = np.linalg.svd(J * scale, full_matrices=False)
    good = s > 1e-8 * s[0]
    return -scale * (Vt[good].T @ ((U[:, good].T @ r) / s[good])), scale, s, Vt, good


class _Runs:
    """Runs into which the record is divided."""

    def __init__(self, model: EffortModel, data: Samples, horizon: int, hold: bool, steps: int, threads: int) -> None:
        assert data.t is not None
        self.model, self.hold, self.steps, self.threads = model, hold, steps, threads
        self.joints, u = model.robot.actuated, model.measured(data)
        self.first = np.arange(0, len(data) - horizon, horizon)
        self.last = self.first + horizon
        self.q, self.v = (np.stack([x[self.first], x[self.last]]) for x in (data.q, data.v))
        self.times = data.t[: horizon + 1] - data.t[0]
        self.u = u[self.first[:, None] + np.arange(horizon + 1)]
        self.robot = model.robot

    def __len__(self) -> int:
        return len(self.first)

    def compared(self, parameters: Array, base: Base, steps: Array) -> tuple[Array, Array]:
        """Return errors of the final states (runs, 2 nv), and their derivatives by base parameters (runs, 2 nv, k)."""
        k = len(steps)
        moved = np.zeros((k, len(parameters)))
        moved[range(k), base.kept] = steps
        ends = self.off(np.concatenate([parameters[None], parameters + moved, parameters - moved]))
        return ends[0], np.moveaxis(ends[1 : k + 1] - ends[k + 1 :], 0, -1) / (2 * steps)

    def off(self, parameters: Array) -> Array:
        """Return errors of the final states (variants, runs, 2 nv) for parameters (variants, p)."""
        count = len(self)
        # parameters are not checked, because a finite-difference step from a thin body may be physically impossible, which has no effect on the
        # derivative
        changes = self.model.changes(parameters, check=False)
        many = self.robot.variants(**changes)._of_rows(np.repeat(np.arange(len(parameters)), count))
        q, v, u = (np.tile(x, (len(parameters), *[1] * (x.ndim - 1))) for x in (self.q[0], self.v[0], self.u))
        period = self.times[-1] / (len(self.times) - 1)
        runs = simulate_many(
            many, q, v, float(self.times[-1]), EffortTable(self.times, u, list(self.joints), hold=self.hold), dt=period / self.steps,
            every=10**9, limits="ignore", threads=self.threads,
        )  # fmt: skip
        if np.any(runs.status):
            raise ModelError(
                f"{int(np.count_nonzero(runs.status))} of {runs.status.size} runs fail: use a shorter horizon, or more steps"
            )
        if not max(np.abs(runs.q).max(), np.abs(runs.v).max()) < FAR:
            raise ModelError("runs diverge: use a shorter horizon, or more steps")
        q1, v1 = (x[:, -1].reshape(len(parameters), count, -1) for x in (runs.q, runs.v))
        off = self.robot.difference(np.broadcast_to(self.q[1], q1.shape), q1)
        return np.concatenate([off, v1 - self.v[1]], axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class Excitation(Brief):
    """Periodic motion for identification.

    Attributes
    ----------
    coefficients : driven joint to (2 harmonics,) Fourier coefficients of its coordinate minus `middle`: of sines, then of cosines [rad, m]
    middle : driven joint to the middle of its range [rad, m]
    period : period [s]
    condition, first_condition : condition number of the regressor with columns of unit norm (dimensionless), for this motion and for the best random
        motion before the search
    q, v, a, t : (n, nq), (n, nv), (n, nv), (n,) samples of the motion with closed loops [rad, m; rad/s, m/s; rad/s^2, m/s^2; s]
    """

    coefficients: Mapping[str, Array]
    middle: Mapping[str, float]
    period: float
    condition: float
    first_condition: float
    q: Array
    v: Array
    a: Array
    t: Array

    def joints(self, t: ArrayLike) -> dict[str, Array]:
        """Return a dictionary from each driven joint to its coordinates (n,) at times t [rad, m], for `follow` or the targets of a controller.

        Parameters
        ----------
        t : (n,) times [s]
        """
        t = _arrays.real_array("t", t)
        if t.ndim != 1:
            raise ShapeError(f"t must be (n,) times; got shape {t.shape}")
        waves = _waves(t, self.period, len(next(iter(self.coefficients.values()))) // 2)[0]
        return {name: self.middle[name] + waves @ c for name, c in self.coefficients.items()}


def exciting_motion(
    robot: Mechanism, ranges: Mapping[str, tuple[float, float]], period: float, *, near: ArrayLike | None = None, harmonics: int = 5,
    terms: Mapping[str, Sequence[str]] | None = None, bodies: Sequence[str] | None = None, efforts: Sequence[str] | None = None,
    samples: int = 60, rounds: int = 40, seed: int = 0,
) -> Excitation:  # fmt: skip
    """Optimise a periodic motion of the driven joints for the identification of base parameters.

    The motion minimises the condition number of the regressor, within the ranges of the joints and with closed loops. The method is an evolution
    strategy: in each round, eight random variations of the best motion are evaluated. Variations whose loops do not close, or change the branch, are
    rejected.

    Parameters
    ----------
    robot : the nominal mechanism
    ranges : driven joint with one coordinate to its (lowest, highest) coordinate [rad, m]; the joints must determine the motion
    period : period [s]
    near : (nq,) initial guess of the first configuration [rad, m]; default: the home configuration
    harmonics : number of harmonics of each joint
    terms, bodies : as in :func:`identify`
    efforts : names of the joints whose efforts will be measured; default: the joints of `ranges`
    samples : number of samples at which the motion is evaluated
    rounds, seed : number of rounds of the search, and seed of its random numbers

    Raises
    ------
    AssemblyError
        No motion within the ranges was found whose loops close; reduce the ranges.

    Examples
    --------
    >>> import sarrus
    >>> from sarrus.identification import exciting_motion
    >>> robot = sarrus.mechanisms.five_bar()
    >>> home = robot.assemble()
    >>> x = {name: float(home[robot.joint(name).q_slice][0]) for name in robot.actuated}
    >>> motion = exciting_motion(robot, {name: (x[name] - 0.3, x[name] + 0.3) for name in x}, 4.0, rounds=5)
    >>> motion.condition <= motion.first_condition, bool(abs(robot.constraint_residual(motion.q)).max() < 1e-9)
    (True, True)
    """
    checked_mechanism(robot, "robot")
    _arrays.check_counts(harmonics=harmonics, samples=samples, rounds=rounds)
    period = _arrays.checked_number("period", period)
    _arrays.check_mapping("ranges", ranges, "joints to (lowest, highest)")
    both = np.stack([_arrays.real_array(f"ranges['{name}']", x) for name, x in list(ranges.items())])
    if both.ndim != 2 or both.shape[1] != 2:
        raise ShapeError(f"ranges must be (lowest, highest) of each joint; got {dict(ranges)}")
    low, high = both.T
    if not (low < high).all() or not np.isfinite(high - low).all():
        raise ModelError(f"ranges must be (lowest, highest), the first below the second; got {dict(ranges)}")
    measured = [] if efforts is None else _arrays.checked_names("efforts", efforts)
    model = EffortModel(robot, tuple(measured or ranges), terms, bodies)
    rng = np.random.default_rng(_arrays.checked_count("seed", seed, 0))
    t = np.linspace(0.0, period, samples, endpoint=False)
    waves, middle, kept = _waves(t, period, harmonics), 0.5 * (low + high), None
    start = near if near is not None else robot.assemble(near=dict(zip(ranges, middle.tolist(), strict=True)))

    def motion(c: Array) -> tuple[Array, Array, Array] | None:
        """Return q, v and a for coefficients (joints, 2 harmonics); None if loops cannot be closed."""
        at = [dict(zip(ranges, (w @ c.T).T, strict=True)) for w in waves]
        try:
            q = robot.follow({name: middle[i] + x for i, (name, x) in enumerate(at[0].items())}, start, time=t)
        except AssemblyError:
            return None
        v = robot.complete_velocity(q, at[1], time=t, return_status=True)[0]
        a = robot.complete_acceleration(q, v, at[2], time=t, return_status=True)[0]
        return (q, v, a) if np.isfinite(a).all() else None

    def condition(moved: tuple[Array, Array, Array] | None) -> float:
        nonlocal kept
        if moved is None:
            return float(np.inf)
        if kept is None:
            kept = base_of(model, Samples(dict.fromkeys(ranges, t), *moved, t)).kept
        X = (model.turn_of_motors[:, None, None] * model.rows(*moved, kept, time=t)[0][..., :-1]).reshape(-1, len(kept))
        return float(np.linalg.cond(X / np.maximum(np.linalg.norm(X, axis=0), 1e-300)))

    def within(c: Array) -> Array:
        """Return the coefficients scaled to the largest motion within the ranges."""
        x = waves[0] @ c.T
        return np.asarray(c * (0.5 * (high - low) / np.maximum(np.abs(x).max(axis=0), 1e-300))[:, None])

    best, lowest, size, first = np.zeros((len(low), 2 * harmonics)), float(np.inf), 0.3, float(np.inf)
    falling = np.tile(1.0 / np.arange(1, harmonics + 1), 2)
    for k in range(rounds + 3):
        drawn = k < 3 or not np.isfinite(lowest)
        for _ in range(8):
            change = rng.normal(size=best.shape) * falling * 0.5 * (high - low)[:, None]
            c = within(change if drawn else best + size * change)
            if (value := condition(motion(c))) < lowest:
                best, lowest, size = c, value, min(1.3 * size, 0.5)
        size = max(0.85 * size, 0.01)
        first = lowest if k < 3 else first
    moved = motion(best)
    if moved is None or not np.isfinite(lowest):
        raise AssemblyError(
            f"none of {8 * (rounds + 3)} motions in these ranges closes the loops on one branch: narrow the ranges"
        )
    each = {name: best[i] for i, name in enumerate(ranges)}
    return Excitation(each, dict(zip(ranges, middle.tolist(), strict=True)), period, lowest, first, *moved, t)


def _waves(t: Array, period: float, harmonics: int) -> tuple[Array, Array, Array]:
    """Return sines and cosines (n, 2 harmonics), and their first two derivatives."""
    w = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    sin, cos = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    return np.hstack([sin, cos]), np.hstack([w * cos, -w * sin]), np.hstack([-(w**2) * sin, -(w**2) * cos])
