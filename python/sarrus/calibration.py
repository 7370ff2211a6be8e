"""Calibration of lengths, placements and encoder offsets from measured poses, distances or joint angles, also for closed chains.

Identifiability is decided by the numerical rank of the Jacobian of the measurements with respect to the dimensions. If dimensions cannot be
distinguished, their identifiable linear combinations are reported, and the solution of least norm is used.

References
----------
Hollerbach, J., Wampler, C. (1996). The calibration index and taxonomy for robot kinematic calibration methods. *International Journal of Robotics Research* 15.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ._arrays import Array, ArrayLike, NDArray, check_counts, check_mapping, checked_number, real_array
from ._showing import Brief
from .analysis.closing import check_timeless
from .dimensions import Dimensions, Moves, Tied, checked_inputs
from .errors import AssemblyError, ModelError, ModelWarning, ShapeError, StateError, check_choice
from .identification.model import Base, independent_columns
from .mechanism import Mechanism, checked_mechanism
from .spatial import log

__all__ = ["Calibration", "Measurements", "calibrate"]

SHARPEST = 1e-12  # singular values below this fraction of the largest one are rounding errors
# residuals at rounding level [rad, or relative to the size of the bodies], because loops are closed to 1e-13
ROUNDING = 1e-15
SMALL = 0.02  # dimensions with a smaller coefficient in a combination are omitted from the combination's name
# noise that is to be estimated: noise of the first fit [length of the mechanism], its largest number of steps, and the residual above which a
# measurement does not count [robust standard deviations]
SMALL_NOISE, FIRST, FAR = 1e-6, 8, 5.0
FEW = 1.5  # smallest number of measured values per identified combination; with fewer, the fit follows the noise
DISTURBED = 1.5  # residuals above this bound [standard deviations] are not explained by noise
SETTLED = 1e-6  # relative decrease of the cost below which iterations end


def __dir__() -> list[str]:
    return sorted(__all__)


class Loss(NamedTuple):
    """Loss function of z, the absolute residual divided by its spread.

    It consists of three functions: cost, weight (first derivative divided by z) and second derivative.
    """

    cost: Callable[[Array], Array]
    weight: Callable[[Array], Array]
    curvature: Callable[[Array], Array]


# values of z above which weights decrease; the estimators then have 95 % efficiency for normally distributed noise
HUBER, CAUCHY = 1.345, 2.385
LOSSES = {
    "squares": Loss(lambda z: z**2 / 2, np.ones_like, np.ones_like),
    "huber": Loss(
        lambda z: np.where(z < HUBER, z**2 / 2, HUBER * (z - HUBER / 2)),
        lambda z: HUBER / np.maximum(z, HUBER),
        lambda z: np.where(z < HUBER, 1.0, 0.0),
    ),
    "cauchy": Loss(
        lambda z: CAUCHY**2 / 2 * np.log1p((z / CAUCHY) ** 2),
        lambda z: 1.0 / (1.0 + (z / CAUCHY) ** 2),
        lambda z: (1.0 - (z / CAUCHY) ** 2) / (1.0 + (z / CAUCHY) ** 2) ** 2,
    ),
}


@dataclass(frozen=True, eq=False, repr=False)
class Measurements(Brief):
    """Measurements in n positions.

    Attributes
    ----------
    inputs : driven joint to its encoder's readings (n,) [rad, m]. The driven joints must determine the position
    frames : frame to points (n, 3) [m] of its origin, or poses (n, 4, 4), in the world. NaN for missing measurements
    distances : (frame, frame) to (n,) distances between their origins [m]; "ground" is the world's origin
    joints : joint with one coordinate to readings (n,) of an additional encoder [rad, m]
    noise : standard deviations of measured lengths [m] and of measured angles [rad]; None: equal numbers of metres and radians, estimated from the
        residuals, without those of more than five robust standard deviations
    """

    inputs: Mapping[str, ArrayLike]
    frames: Mapping[str, ArrayLike] = field(default_factory=dict)
    distances: Mapping[tuple[str, str], ArrayLike] = field(default_factory=dict)
    joints: Mapping[str, ArrayLike] = field(default_factory=dict)
    noise: tuple[float, float] | None = (1e-4, 1e-4)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Brief):
    """Result of a calibration.

    Attributes
    ----------
    robot : the mechanism with the calibrated dimensions
    changes : dimension to its change from the nominal value [rad, m]. If dimensions cannot be distinguished, these are the changes of least norm
    offsets : joint to the offset that must be added to its encoder's reading [rad, m]
    names : (k) identified linear combinations of dimensions, such as "rod.length - 1 elbow.parent.x"; coefficients below 2 % are omitted
    values, deviations : (k,) changes of these combinations, and their standard deviations [rad, m]
    unseen : dimensions that do not affect the measurements
    binding : dimensions that were not calibrated because a change of them alone would open the loops, such as out-of-plane dimensions of a planar
        linkage
    condition : condition number of the Jacobian, the largest amplification of noise (dimensionless)
    before, after : root mean square of the residuals before and after the calibration, in units of their standard deviations (dimensionless)
    outliers : (measurement, position) of residuals with a weight below 1/2 in the robust loss, the largest first
    covariance : (k, k) covariance of the combinations [rad2, m2]
    base : (k) indices of the dimensions, one for each combination, whose columns of the Jacobian are linearly independent
    units : (k) units of the combinations, "rad" or "m"
    noise : standard deviations of lengths [m] and of angles [rad] that were used
    residuals : (rows,) residuals after the calibration, in units of their standard deviations (dimensionless)
    """

    robot: Mechanism
    changes: Mapping[str, float]
    offsets: Mapping[str, Array]
    names: tuple[str, ...]
    values: Array
    deviations: Array
    unseen: tuple[str, ...]
    binding: tuple[str, ...]
    condition: float
    before: float
    after: float
    outliers: tuple[tuple[str, int], ...]
    covariance: Array
    base: Base = field(repr=False)
    units: tuple[str, ...]
    noise: tuple[float, float]
    residuals: Array

    def report(self) -> str:
        """Return a table of the identified combinations with their deviations, and the dimensions that are not identified."""
        width = max(map(len, self.names), default=0)
        lines = [f"{'':{width}}  {'change':>12} {'± deviation':>12}"]
        lines += [
            f"{n:{width}}  {x:12.6g} {s:12.2g} {unit}"
            for n, x, s, unit in zip(self.names, self.values, self.deviations, self.units, strict=True)
        ]
        lines += [f"without influence: {', '.join(self.unseen)}"] * bool(self.unseen)
        lines += [f"not calibrated, the loops would open: {', '.join(self.binding)}"] * bool(self.binding)
        largest = np.sort(np.abs(self.residuals))[::-1]
        lines += [
            f"outlier: {label} at position {i}, {size:.3g} standard deviations"
            for (label, i), size in zip(self.outliers, largest, strict=False)
        ]
        lines += [
            f"residuals {self.before:.4g} before, {self.after:.4g} after [standard deviations]; condition {self.condition:.3g}"
        ]
        return "\n".join(lines)


def calibrate(
    robot: Mechanism, measurements: Measurements, *, dimensions: Sequence[str | Tied] | None = None, near: ArrayLike | None = None,
    spread: tuple[float, float] = (0.01, 0.01), loss: str = "huber", iterations: int = 30,
) -> Calibration:  # fmt: skip
    """Fit dimensions and encoder offsets to measurements by Gauss-Newton steps of least norm, with exact derivatives.

    Parameters
    ----------
    robot : the nominal mechanism
    measurements : measurements in n positions, and their noise
    dimensions : names of :mod:`sarrus.dimensions`, or :class:`~sarrus.dimensions.Tied` dimensions, such as one length of all rods; default: placements of all joints on both bodies, rods, encoder offsets of the driven joints, and
        placements of measured frames
    near : (nq,) or (n, nq) configurations near the measured positions [rad, m]; default: the configurations of `follow` along the inputs, from the home
    spread : prior standard deviations of the changes of lengths [m] and of angles [rad]. A combination is not identified if the measurements would
        determine it less precisely than this prior
    loss : "squares", "huber" or "cauchy". The last two reduce the weight of residuals that are much larger than the noise. An outlier with much
        influence on the result distorts "huber", whereas "cauchy" rejects it. With both, if the residuals exceed the stated noise, a second fit uses this
        noise for the weights
    iterations : maximum number of steps

    Returns
    -------
    :class:`~sarrus.results.Calibration`; print its ``report()``

    Raises
    ------
    ModelError
        There are no measurements, or they do not depend on the dimensions; the loss is unknown; or a prescribed motion varies in time.
    AssemblyError
        The loops do not close at the inputs.
    StateError, NameNotFoundError, ShapeError
        The inputs do not determine the position; names are unknown; arrays have wrong shapes.

    Warns
    -----
    ModelWarning
        There are fewer than 1.5 measured values for each identified combination of dimensions, so that the fit follows the noise.

    Examples
    --------
    The rod of a slider-crank is 1 mm too long, and its crank's encoder has an offset:

    >>> import numpy as np
    >>> import sarrus
    >>> from sarrus.calibration import Measurements, calibrate
    >>> robot = sarrus.mechanisms.slider_crank()
    >>> real = robot.replace(placements={"wrist.parent": (1.001, 0, 0)})
    >>> turn = np.linspace(0, 6, 30)
    >>> seen = real.pose(real.follow({"motor": turn + 0.002}), "slider")[:, :3, 3]
    >>> found = calibrate(robot, Measurements({"motor": turn}, {"slider": seen}), dimensions=["motor.offset", "wrist.parent.x"])
    >>> {name: round(x, 9) for name, x in found.changes.items()}
    {'motor.offset': 0.002, 'wrist.parent.x': 0.001}
    """
    checked_mechanism(robot, "robot")
    check_choice("loss", loss, LOSSES, ModelError)
    check_counts(iterations=iterations)
    if getattr(measurements, "noise", 0.0) is None:
        # the first fit has so little noise that the spread of its residuals is that of the measurements
        small = SMALL_NOISE * robot._length
        again: dict[str, Any] = {"dimensions": dimensions, "near": near, "spread": spread, "loss": loss}
        first = calibrate(
            robot, replace(measurements, noise=(small, small)), iterations=min(iterations, FIRST), **again
        )
        # a robust fit passes through about as many measurements as it has combinations, so the smallest residuals do not count
        size, fitted = np.sort(np.abs(first.residuals)), len(first.names)
        believed = size[size < FAR * _spread(size[min(fitted, len(size) - 1) :])]
        noise = small * math.sqrt(float(np.sum(believed**2)) / max(1, len(believed) - fitted))
        noise = max(noise, ROUNDING * robot._length)
        return calibrate(robot, replace(measurements, noise=(noise, noise)), iterations=iterations, **again)
    rows = _Rows(robot, measurements, near)
    frames_added = [f.name for f in robot.description.frames]
    chosen = Dimensions(
        robot, list(rows.inputs), dimensions, [name for name in frames_added if name in rows.seen], list(rows.joints)
    )
    x = np.zeros(len(chosen))
    residual, place = rows.at(chosen, x)
    calibrated, determined = place.moves.closes, place.moves.determined
    if not determined.all():
        raise StateError(
            f"the inputs do not determine position {int(np.argmin(determined))}: add joints to inputs, or omit this position"
        )
    binding = tuple(n for n, closes in zip(chosen.names, calibrated, strict=True) if not closes)
    if not calibrated.any():
        raise ModelError(f"no dimension can change without opening the loops; got {', '.join(chosen.names)}")
    before, prior = _size(residual), np.where(chosen.angular, *reversed(_of_lengths_and_angles("spread", spread)))
    least = ROUNDING / min(rows.noise[0] / robot._length, rows.noise[1])
    fit = _Fit(x, residual, place)
    options = (rows, chosen, prior, iterations, least)
    x, residual, place = _best_fitted(fit, loss, options)
    weight = _root_weights(residual, loss)
    J = rows.derivatives(place) * weight[:, None]
    base = independent_columns(J, None, 1.0 / prior)
    _check_count(len(residual), len(base.kept), chosen.names)
    deviation_scale = max(1.0, _scale_of_deviations(residual, loss, len(base.kept)))
    covariance, condition = _covariance(J[:, base.kept], deviation_scale)
    unseen = tuple(chosen.names[i] for i in base.unseen if calibrated[i])
    zero = {name: np.zeros((1, y.shape[1])) for name, y in rows.inputs.items()}
    return Calibration(
        chosen.changed(x), dict(zip(chosen.names, x.tolist(), strict=True)), {name: y[0] for name, y in chosen.driven(zero, x).items()},
        base.expressions(chosen.names, prior, SMALL), base.combination @ x,
        np.sqrt(np.diag(covariance)), unseen, binding, condition, before, _size(residual),
        tuple(rows.names[i] for i in np.argsort(-np.abs(residual), kind="stable") if weight[i] ** 2 < 0.5), covariance, base, tuple(chosen.units[i] for i in base.kept),
        (rows.noise[0], rows.noise[1]), residual,
    )  # fmt: skip


def _check_count(numbers: int, combinations: int, names: Sequence[str]) -> None:
    """Raise ModelError if no combination of dimensions is determined; warn if there are few measured numbers."""
    if not combinations:
        raise ModelError(
            f"the measurements determine none of these dimensions more accurately than its prior, spread=: {', '.join(names)}"
        )
    if numbers < FEW * combinations:
        warnings.warn(
            f"{numbers} measured numbers are too few for {combinations} combinations of {len(names)} dimensions: the model fits the noise; measure more positions, "
            "or name fewer dimensions=",
            ModelWarning,
            stacklevel=3,
        )


def _of_lengths_and_angles(name: str, value: Any) -> list[float]:
    two = real_array(name, value)
    if two.shape != (2,):
        raise ShapeError(f"{name} must be two numbers, one for lengths [m] and one for angles [rad]; got {value!r}")
    return [checked_number(name, x) for x in two.tolist()]


def _best_fitted(fit: _Fit, loss: str, options: tuple[_Rows, Dimensions, Array, int, float]) -> _Fit:
    """Return the fit, or, with a robust loss and large residuals, the best of three fits."""
    best = _fitted(fit, loss, *options)
    if loss == "squares" or _size(best.residual) <= DISTURBED:
        return best
    # the least-squares fit can distribute an outlier over all residuals, which increases the estimated spread. Therefore two more fits begin with the
    # stated noise as the spread
    trials = [_fitted(_fitted(start, "cauchy", *options, scale=1.0), loss, *options) for start in (fit, best)]
    return min(best, *trials, key=lambda trial: (_spread(trial.residual), _cost(trial.residual, loss)))


def _covariance(J: Array, deviation: float) -> tuple[Array, float]:
    """Return the covariance matrix for residuals with this standard deviation, and the condition number of J with columns of unit norm."""
    size = np.linalg.norm(J, axis=0)
    _, s, Vt = np.linalg.svd(J / size, full_matrices=False)
    return deviation**2 * ((Vt.T / s**2) @ Vt) / size / size[:, None], float(s[0] / s[-1])


def _fitted(
    fit: _Fit, loss: str, rows: _Rows, chosen: Dimensions, prior: Array, iterations: int, least: float, scale: float | None = None
) -> _Fit:  # fmt: skip
    """Return the fit after Gauss-Newton steps, which end when the cost converges. `scale` replaces the estimated spread of the residuals."""
    for _ in range(iterations):
        x, residual, place = fit
        if _size(residual) < least:
            break
        weight = _root_weights(residual, loss, scale)
        change = _least_step(rows.derivatives(place) * weight[:, None], residual * weight, prior)
        better = _descended(rows, chosen, x, change, residual, loss, scale)
        if better is None:
            break
        settled = _cost(better.residual, loss, scale) > (1.0 - SETTLED) * _cost(residual, loss, scale)
        fit = better
        if settled:
            break
    return fit


def _descended(
    rows: _Rows, chosen: Dimensions, x: Array, change: Array, residual: Array, loss: str, scale: float | None
) -> _Fit | None:
    """Return the fit after a step of the line search: the largest tried fraction of `change` that does not increase the cost.

    Returns None if there is none.
    """
    part = 1.0
    while part >= 1e-2:
        x_new = x - part * change
        try:
            trial, place = rows.at(chosen, x_new)
            if _cost(trial, loss, scale) <= _cost(residual, loss, scale) * (1.0 + 1e-9) + 1e-24 * len(trial):
                _ = place.moves  # raises StateError if the inputs do not determine the position
                return _Fit(x_new, trial, place)
        except (AssemblyError, StateError):
            pass
        part *= 0.5
    return None


def _size(residual: Array) -> float:
    return float(np.sqrt(np.mean(residual**2)))


def _spread(residual: Array) -> float:
    """Return a robust estimate of the spread of the residuals [standard deviations], at least 1.

    A few outliers do not affect the estimate; many errors of a wrong model increase it.
    """
    return max(1.0, 1.4826 * float(np.median(np.abs(residual))))


def _root_weights(residual: Array, loss: str, scale: float | None = None) -> Array:
    """Return the square roots (rows,) of the residuals' weights."""
    return np.sqrt(LOSSES[loss].weight(np.abs(residual) / (scale or _spread(residual))))


def _scale_of_deviations(residual: Array, loss: str, identified: int) -> float:
    """Return the ratio of the estimated standard deviations to those of weighted least squares with the stated noise (Huber, Robust Statistics, 1981,
    ch. 7).

    The square of the ratio is sum(psi^2) / (rows - identified), divided by the squared mean slope of psi, with psi the derivative of the cost. An
    outlier contributes to the sum only, because its slope is small.
    """
    spread = _spread(residual)
    z = np.abs(residual) / spread
    weight = LOSSES[loss].weight(z)
    slope = max(float(LOSSES[loss].curvature(z).mean()), 0.1 * float(weight.mean()))
    psi = float(((weight * z) ** 2).sum()) / max(1, len(z) - identified)
    return spread * math.sqrt(psi * float(weight.mean())) / slope


def _cost(residual: Array, loss: str, scale: float | None = None) -> float:
    spread = scale or _spread(residual)
    return float(LOSSES[loss].cost(np.abs(residual) / spread).sum() * spread**2)


def _least_step(J: Array, residual: Array, prior: Array) -> Array:
    """Return the least-norm change, in units of the prior deviations, that minimises the residual over the directions that are determined better than
    the prior.
    """
    U, s, Vt = np.linalg.svd(J * prior, full_matrices=False)
    identified = s > max(1.0, SHARPEST * s.max(initial=0.0))
    return np.asarray(prior * (Vt[identified].T @ ((U[:, identified].T @ residual) / s[identified])))


@dataclass(frozen=True, eq=False)
class _Place:
    """Poses of the measured frames, frame -> (n, 4, 4), and their derivatives with respect to the dimensions, which a rejected step does not need."""

    pose: dict[str, Array]
    count: int
    derive: Callable[[], Moves]

    @cached_property
    def moves(self) -> Moves:
        return self.derive()

    def between(self, a: str, b: str) -> Array:
        """Return the vectors (n, 3) [m] from the origin of frame a to the origin of frame b; "ground" is the world's frame."""
        start, end = (np.zeros(3) if name == "ground" else self.pose[name][:, :3, 3] for name in (a, b))
        return np.broadcast_to(end - start, (self.count, 3))


class _Fit(NamedTuple):
    """Changes of dimensions, with the residuals and poses that result from them."""

    x: Array
    residual: Array
    place: _Place


class _Rows:
    """Measurements as residuals, each divided by its standard deviation.

    Attributes
    ----------
    inputs : driven joint to (n, nv of the joint)
    seen : measured frames
    names : (rows) (measurement, position) of each residual
    """

    def __init__(self, robot: Mechanism, m: Measurements, near: ArrayLike | None) -> None:
        if not isinstance(m, Measurements):
            raise TypeError(f"measurements must be a sarrus.calibration.Measurements; got {m!r}")
        check_timeless(robot, "calibrate")
        self.robot, self.inputs = robot, checked_inputs(robot, m.inputs)
        self.n = n = len(next(iter(self.inputs.values())))
        self.noise = _of_lengths_and_angles("noise", m.noise)
        for kind in ("frames", "distances", "joints"):
            check_mapping(kind, getattr(m, kind), f"{kind} to measurements", 0)
        self.frames = {name: real_array(f"frames['{name}']", x) for name, x in m.frames.items()}
        self.distances = {pair: real_array(f"distances {pair}", x) for pair, x in m.distances.items()}
        self.joints = {name: real_array(f"joints['{name}']", x) for name, x in m.joints.items()}
        for name, x in self.frames.items():
            robot.pose(robot.neutral(), name)
            if x.shape not in ((n, 3), (n, 4, 4)):
                raise ShapeError(
                    f"frame '{name}' needs points ({n}, 3) or poses ({n}, 4, 4), one for each input; got shape {x.shape}"
                )
        for label, x in [*self.distances.items(), *self.joints.items()]:
            if x.shape != (n,):
                raise ShapeError(
                    f"measurements of {label} need ({n},) numbers, one for each input; got shape {x.shape}"
                )
        if not (self.frames or self.distances or self.joints):
            raise ModelError("no measurements: pass frames, distances or joints")
        self.seen = list(
            dict.fromkeys([*self.frames, *(name for pair in self.distances for name in pair if name != "ground")])
        )
        start = robot.follow(self.inputs) if near is None else real_array("near", near)
        if start.shape not in ((robot.nq,), (n, robot.nq)):
            raise ShapeError(
                f"near must be one configuration, ({robot.nq},), or one for each input, ({n}, {robot.nq}); got shape {start.shape}"
            )
        self.start = np.broadcast_to(start, (n, robot.nq))
        labels = [
            (name, i) for name, x in self.frames.items() for i in range(n) for _ in range(3 if x.ndim == 2 else 6)
        ]
        labels += [(f"{a} to {b}", i) for a, b in self.distances for i in range(n)] + [
            (name, i) for name in self.joints for i in range(n)
        ]
        values = [x.ravel() if x.ndim == 2 else np.repeat(x.sum(axis=(1, 2)), 6) for x in self.frames.values()]
        values += [*self.distances.values(), *self.joints.values()]
        self.read: NDArray[np.bool_] = np.isfinite(np.concatenate(values))
        self.names = [label for label, measured in zip(labels, self.read, strict=True) if measured]

    def at(self, dimensions: Dimensions, x: Array) -> tuple[Array, _Place]:
        """Return the residuals (rows,) and poses after changes x (p,) of the dimensions; raise AssemblyError if loops cannot be closed."""
        robot = dimensions.changed(x)
        driven = dimensions.driven(self.inputs, x)
        # branch='any' is safe, because the initial guesses are so near that assemble() stays on their branch
        q, status = robot.assemble(near=self.start, fixed=driven, branch="any", return_status=True)
        if np.any(status):
            raise AssemblyError(
                f"the loops cannot be closed at the inputs of measurement {int(np.argmax(status != 0))}"
            )
        self.start = q
        derive = partial(dimensions.moves, robot, q, x, self.seen, list(self.joints))
        place = _Place({name: robot.pose(q, name) for name in self.seen}, self.n, derive)
        length, angle = self.noise
        parts: list[Array] = []
        for name, y in self.frames.items():
            X = place.pose[name]
            shift = (X[:, :3, 3] - (y if y.ndim == 2 else y[:, :3, 3])) / length
            if y.ndim == 3:
                measured = np.asarray(np.isfinite(y).all(axis=(1, 2)))
                R = np.where(measured[:, None, None], y[:, :3, :3], X[:, :3, :3])
                turn = log(R.swapaxes(1, 2) @ X[:, :3, :3]) / angle
                shift = np.hstack([np.where(measured[:, None], turn, np.nan), shift])
            parts.append(shift.ravel())
        for (a, b), y in self.distances.items():
            parts.append((np.linalg.norm(place.between(a, b), axis=1) - y) / length)
        states = robot.joint_states(q)
        for name, y in self.joints.items():
            unit = length if robot.joint(name).kind == "Prismatic" else angle
            off, offset = states.q[name][:, 0] - y, f"{name}.offset"
            if offset in dimensions._members:
                off = off - dimensions._by_tie[dimensions._members.index(offset)] @ x
            parts.append((off if unit == length else (off + np.pi) % (2.0 * np.pi) - np.pi) / unit)
        return np.concatenate(parts)[self.read], place

    def derivatives(self, place: _Place) -> Array:
        """Return the derivatives (rows, p) of the residuals with respect to the dimensions."""
        length, angle = self.noise
        moves, parts = place.moves, []
        p = len(moves.closes)
        shifts = {name: place.pose[name][:, :3, :3] @ moves.frames[name][:, 3:] for name in self.seen}
        for name, y in self.frames.items():
            J = shifts[name] / length
            if y.ndim == 3:
                J = np.concatenate([moves.frames[name][:, :3] / angle, J], axis=1)
            parts.append(J.reshape(-1, p))
        for a, b in self.distances:
            vector = place.between(a, b)
            along = vector / np.maximum(np.linalg.norm(vector, axis=1), 1e-300)[:, None]
            change: Any = sum(sign * shifts[name] for name, sign in ((b, 1.0), (a, -1.0)) if name != "ground")
            parts.append(np.einsum("ni,nip->np", along, change) / length)
        for name in self.joints:
            parts.append(moves.joints[name] / (length if self.robot.joint(name).kind == "Prismatic" else angle))
        return np.concatenate(parts)[self.read]
