"""Which lengths, places and encoder offsets a machine has, from measured poses, distances or joint angles, loops included.

Identifiability comes first: what measurements cannot tell apart is found by the rank of exact derivatives and named, and stays as it was as far as it can.

References
----------
Hollerbach, J., Wampler, C. (1996). The calibration index and taxonomy for robot kinematic calibration methods. *International Journal of Robotics Research* 15.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ._arrays import Array, ArrayLike, NDArray, check_counts, check_mapping, checked_number, real_array
from ._showing import Brief
from .dimensions import Dimensions, Moves, checked_inputs
from .errors import AssemblyError, ModelError, ModelWarning, ShapeError, StateError, check_choice
from .identification.model import Base, independent_columns
from .mechanism import Mechanism, checked_mechanism
from .spatial import log

__all__ = ["Calibration", "Measurements", "calibrate"]

SHARPEST = 1e-12  # of the largest singular value, one below which rounding decides
ROUNDING = 1e-15  # [rad, sizes of the bodies] of residuals, which loops closed to 1e-13 cannot undercut by much
SMALL = 0.02  # of a combination, a part that its name leaves out
FEW = 1.5  # numbers for each combination found, below which the fit follows noise
DISTURBED = 1.5  # [standard deviations] of residuals, from which on they hold more than noise
SETTLED = 1e-6  # of the cost, a step that gains less is the last


def __dir__() -> list[str]:
    return sorted(__all__)


class Loss(NamedTuple):
    """Cost of a residual by its size z, in units of their spread; its weight, the cost's derivative / z; and the second derivative."""

    cost: Callable[[Array], Array]
    weight: Callable[[Array], Array]
    curvature: Callable[[Array], Array]


HUBER, CAUCHY = 1.345, 2.385  # sizes from which they believe less: of normal noise they tell 95 % of what squares do
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
    """What was measured in n positions, to which joints were led.

    Attributes
    ----------
    inputs : joint to its encoder's readings (n,) [rad, m]; as many as determine the position
    frames : frame to points (n, 3) [m], where its origin was, or poses (n, 4, 4), in the world. NaN for what was not seen
    distances : (frame, frame) to (n,) distances between their origins [m]; "ground" is the world's
    joints : joint with one coordinate to readings (n,) of a further encoder [rad, m]
    noise : standard deviation of lengths [m], and of angles [rad]
    """

    inputs: Mapping[str, ArrayLike]
    frames: Mapping[str, ArrayLike] = field(default_factory=dict)
    distances: Mapping[tuple[str, str], ArrayLike] = field(default_factory=dict)
    joints: Mapping[str, ArrayLike] = field(default_factory=dict)
    noise: tuple[float, float] = (1e-4, 1e-4)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Brief):
    """What measurements tell of dimensions.

    Attributes
    ----------
    robot : the mechanism with the dimensions found
    changes : dimension to how much it differs from what the mechanism had [rad, m], those that do not show besides included: the least that fits
    offsets : joint to what is to be added to its encoder's reading
    names : (k) what shows, a dimension each, with those that cannot be told apart from it: "rod.length - 1 elbow.parent.x". Parts below 2 % are left out
    values, deviations : (k,) of these combinations, and standard deviations of these
    unseen : dimensions that no measurement shows
    binding : dimensions whose change the loops would not survive, as out of the plane of a planar linkage: they were not looked at
    condition : of the derivatives: how much noise is magnified at worst
    before, after : root mean square of the residuals [of their standard deviations]
    outliers : (rows,) weight below 1/2: what the robust loss did not believe, as (what, position)
    covariance : (k, k)
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

    def report(self) -> str:
        """What shows with its deviations, and what does not."""
        width = max(map(len, self.names), default=0)
        lines = [f"{'':{width}}  {'change':>12} {'± deviation':>12}"]
        lines += [
            f"{n:{width}}  {x:12.6g} {s:12.2g}"
            for n, x, s in zip(self.names, self.values, self.deviations, strict=True)
        ]
        lines += [f"do not show: {', '.join(self.unseen)}"] * bool(self.unseen)
        lines += [f"not looked at, the loops would bind: {', '.join(self.binding)}"] * bool(self.binding)
        lines += [f"outlier: {what} at position {i}" for what, i in self.outliers]
        lines += [
            f"residuals {self.before:.4g} before, {self.after:.4g} after [standard deviations]; condition {self.condition:.3g}"
        ]
        return "\n".join(lines)


def calibrate(
    robot: Mechanism, measurements: Measurements, *, dimensions: Sequence[str] | None = None, near: ArrayLike | None = None,
    spread: tuple[float, float] = (0.01, 0.01), loss: str = "huber", iterations: int = 30,
) -> Calibration:  # fmt: skip
    """Dimensions and offsets of encoders that fit measurements best: Gauss and Newton's steps of least size on exact derivatives.

    Parameters
    ----------
    dimensions : names as :mod:`sarrus.dimensions` has them; default: every joint's places on both bodies, rods, offsets of the encoders that lead, and places of measured
        frames
    near : (nq,) or (n, nq) near the positions; default: along the inputs from the home, on one branch
    spread : how far dimensions may be off, lengths [m] and angles [rad]: what measurements with their noise do not tell better does not show
    loss : "squares", "huber" or "cauchy": how much is believed of residuals that are far larger than their noise. The last two start from the noise that is
        stated too, where residuals are larger. A single position that determines much pulls at "huber"; "cauchy" leaves it out
    iterations : steps at most

    Returns
    -------
    :class:`~sarrus.results.Calibration`; print its ``report()``

    Raises
    ------
    ModelError
        Nothing is measured, or nothing of it depends on the dimensions; an unknown loss.
    AssemblyError
        The loops do not close at the inputs.
    StateError, NameNotFoundError, ShapeError
        The inputs do not determine the position; unknown names; wrong sizes.

    Warns
    -----
    ModelWarning
        Fewer than 1.5 numbers for each combination of dimensions that is found: the fit follows their noise.

    Examples
    --------
    The rod of a slider-crank is 1 mm too long, and its crank's encoder is off:

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
    rows = _Rows(robot, measurements, near)
    frames_here = [f.name for f in robot.description.frames]
    chosen = Dimensions(
        robot, list(rows.inputs), dimensions, [name for name in frames_here if name in rows.seen], list(rows.joints)
    )
    x = np.zeros(len(chosen))
    residual, place = rows.at(chosen, x)
    looked, determined = place.moves.closes, place.moves.determined
    if not determined.all():
        raise StateError(
            f"the inputs do not determine the position at {int(np.argmin(determined))}: more joints, or another position"
        )
    binding = tuple(n for n, closes in zip(chosen.names, looked, strict=True) if not closes)
    if not looked.any():
        raise ModelError(f"no dimension can change: the loops would bind with any of {', '.join(chosen.names)}")
    before, known = _size(residual), np.where(chosen.angular, *reversed(_of_lengths_and_angles("spread", spread)))
    least = ROUNDING / min(rows.noise[0] / robot._length, rows.noise[1])
    fit = _Fit(x, residual, place)
    how = (rows, chosen, known, iterations, least)
    best = _fitted(fit, loss, *how)
    if loss != "squares" and _size(best.residual) > DISTURBED:
        # an outlier may have spread over all residuals, which then count as its like: start from believing in the noise that is stated
        trials = [_fitted(_fitted(start, "cauchy", *how, scale=1.0), loss, *how) for start in (fit, best)]
        best = min(best, *trials, key=lambda one: (_spread(one.residual), _cost(one.residual, loss)))
    x, residual, place = best
    weight = _believed(residual, loss)
    J = rows.derivatives(place) * weight[:, None]
    base = independent_columns(J, None, 1.0 / known)
    if not len(base.kept):
        raise ModelError(
            f"of none of the dimensions do these measurements tell more than their spread: {', '.join(chosen.names)}"
        )
    if len(residual) < FEW * len(base.kept):
        warnings.warn(
            f"{len(residual)} numbers for {len(base.kept)} combinations of {len(chosen)} dimensions: the fit follows their noise; measure more positions, "
            "or name fewer dimensions=",
            ModelWarning,
            stacklevel=2,
        )
    own_scale = max(1.0, _scale_of_deviations(residual, loss, len(base.kept)))
    size = np.linalg.norm(J[:, base.kept], axis=0)
    _, s, Vt = np.linalg.svd(J[:, base.kept] / size, full_matrices=False)
    covariance = own_scale**2 * ((Vt.T / s**2) @ Vt) / size / size[:, None]
    unseen = tuple(chosen.names[i] for i in base.unseen if looked[i])
    zero = {name: np.zeros((1, way.shape[1])) for name, way in rows.inputs.items()}
    return Calibration(
        chosen.changed(x), dict(zip(chosen.names, x.tolist(), strict=True)), {name: way[0] for name, way in chosen.led(zero, x).items()},
        base.expressions(chosen.names, known, SMALL), base.combination @ x,
        np.sqrt(np.diag(covariance)), unseen, binding, float(s[0] / s[-1]), before, _size(residual),
        tuple(rows.names[i] for i in np.flatnonzero(weight**2 < 0.5)), covariance, base,
    )  # fmt: skip


def _of_lengths_and_angles(name: str, value: tuple[float, float]) -> list[float]:
    two = real_array(name, value)
    if two.shape != (2,):
        raise ShapeError(f"{name} must be two numbers, of lengths [m] and of angles [rad]; got {value!r}")
    return [checked_number(name, x) for x in two.tolist()]


def _fitted(
    fit: _Fit, loss: str, rows: _Rows, chosen: Dimensions, known: Array, iterations: int, least: float, scale: float | None = None
) -> _Fit:  # fmt: skip
    """Gauss and Newton's steps from there, until they bring nothing more; `scale`: of the residuals, where they do not say it themselves."""
    for _ in range(iterations):
        x, residual, place = fit
        if _size(residual) < least:
            break
        weight = _believed(residual, loss, scale)
        change = _least_step(rows.derivatives(place) * weight[:, None], residual * weight, known)
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
    """By the longest part of a change by which the cost does not grow: changes, residual and the place."""
    part = 1.0
    while part >= 1e-2:
        there = x - part * change
        try:
            trial, place = rows.at(chosen, there)
            if _cost(trial, loss, scale) <= _cost(residual, loss, scale) * (1.0 + 1e-9) + 1e-24 * len(trial):
                return _Fit(there, trial, place)
        except (AssemblyError, StateError):
            pass
        part *= 0.5
    return None


def _size(residual: Array) -> float:
    return float(np.sqrt(np.mean(residual**2)))


def _spread(residual: Array) -> float:
    """Of the residuals beside what noise makes them: at least that, so that few outliers stand out, and many of a wrong model do not."""
    return max(1.0, 1.4826 * float(np.median(np.abs(residual))))


def _believed(residual: Array, loss: str, scale: float | None = None) -> Array:
    """(rows,) roots of weights."""
    return np.sqrt(LOSSES[loss].weight(np.abs(residual) / (scale or _spread(residual))))


def _scale_of_deviations(residual: Array, loss: str, found: int) -> float:
    """Factor of deviations over those of weighted least squares with the stated noise: Huber, Robust Statistics, 1981, chapter 7.

    sum of psi^2 / (rows - found), by the mean slope of psi squared, where psi is the cost's derivative; rows that are not believed have no more say in it
    than psi gives them.
    """
    spread = _spread(residual)
    z = np.abs(residual) / spread
    weight = LOSSES[loss].weight(z)
    slope = max(float(LOSSES[loss].curvature(z).mean()), 0.1 * float(weight.mean()))
    psi = float(((weight * z) ** 2).sum()) / max(1, len(z) - found)
    return spread * math.sqrt(psi * float(weight.mean())) / slope


def _cost(residual: Array, loss: str, scale: float | None = None) -> float:
    spread = scale or _spread(residual)
    return float(LOSSES[loss].cost(np.abs(residual) / spread).sum() * spread**2)


def _least_step(J: Array, residual: Array, known: Array) -> Array:
    """The shortest change, by what is known before, that undoes what shows of the residual: of directions that are told better than known."""
    U, s, Vt = np.linalg.svd(J * known, full_matrices=False)
    shows = s > max(1.0, SHARPEST * s.max(initial=0.0))
    return np.asarray(known * (Vt[shows].T @ ((U[:, shows].T @ residual) / s[shows])))


class _Place(NamedTuple):
    """Where all that is measured is, frame to (n, 4, 4), and how it moves there."""

    pose: dict[str, Array]
    moves: Moves

    def apart(self, a: str, b: str) -> Array:
        """(n, 3) from one frame to the other, or the ground."""
        one, other = (np.zeros(3) if name == "ground" else self.pose[name][:, :3, 3] for name in (a, b))
        return np.broadcast_to(other - one, (self.moves.determined.size, 3))


class _Fit(NamedTuple):
    """Changes of dimensions, the residuals with them, and the place."""

    x: Array
    residual: Array
    place: _Place


class _Rows:
    """Measurements as residuals, each divided by its standard deviation.

    Attributes
    ----------
    inputs : joint to (n, nv of the joint); seen : frames that are looked at; names : (rows) what, and in which position
    """

    def __init__(self, robot: Mechanism, m: Measurements, near: ArrayLike | None) -> None:
        if not isinstance(m, Measurements):
            raise TypeError(f"measurements are a sarrus.calibration.Measurements; got {m!r}")
        self.robot, self.inputs = robot, checked_inputs(robot, m.inputs)
        self.n = n = len(next(iter(self.inputs.values())))
        self.noise = _of_lengths_and_angles("noise", m.noise)
        for kind in ("frames", "distances", "joints"):
            check_mapping(kind, getattr(m, kind), f"{kind} to what was measured", 0)
        self.frames = {name: real_array(f"frames['{name}']", x) for name, x in m.frames.items()}
        self.distances = {pair: real_array(f"distances {pair}", x) for pair, x in m.distances.items()}
        self.joints = {name: real_array(f"joints['{name}']", x) for name, x in m.joints.items()}
        for name, x in self.frames.items():
            robot.pose(robot.neutral(), name)
            if x.shape not in ((n, 3), (n, 4, 4)):
                raise ShapeError(
                    f"frame '{name}' needs points ({n}, 3) or poses ({n}, 4, 4), one for each input; got shape {x.shape}"
                )
        for what, x in [*self.distances.items(), *self.joints.items()]:
            if x.shape != (n,):
                raise ShapeError(f"measurements of {what} need ({n},) numbers, one for each input; got shape {x.shape}")
        if not (self.frames or self.distances or self.joints):
            raise ModelError("nothing is measured: give frames, distances or joints")
        self.seen = list(
            dict.fromkeys([*self.frames, *(name for pair in self.distances for name in pair if name != "ground")])
        )
        start = robot.follow(self.inputs) if near is None else real_array("near", near)
        if start.shape not in ((robot.nq,), (n, robot.nq)):
            raise ShapeError(f"near must be ({robot.nq},), or ({n}, {robot.nq}) of each input; got shape {start.shape}")
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
        self.names = [label for label, there in zip(labels, self.read, strict=True) if there]

    def at(self, dimensions: Dimensions, x: Array) -> tuple[Array, _Place]:
        """Residuals (rows,) with these changes, and the place; AssemblyError where loops stay open."""
        robot = dimensions.changed(x)
        led = dimensions.led(self.inputs, x)
        q, status = robot.assemble(near=self.start, fixed=led, branch="any", return_status=True)  # starts are near
        if np.any(status):
            raise AssemblyError(f"at inputs {int(np.argmax(status != 0))} the loops stay open")
        self.start = q
        moves = dimensions.moves(robot, q, x, self.seen, list(self.joints))
        place = _Place({name: robot.pose(q, name) for name in self.seen}, moves)
        length, angle = self.noise
        parts: list[Array] = []
        for name, y in self.frames.items():
            X = place.pose[name]
            shift = (X[:, :3, 3] - (y if y.ndim == 2 else y[:, :3, 3])) / length
            if y.ndim == 3:
                there = np.asarray(np.isfinite(y).all(axis=(1, 2)))
                R = np.where(there[:, None, None], y[:, :3, :3], X[:, :3, :3])
                turn = log(R.swapaxes(1, 2) @ X[:, :3, :3]) / angle
                shift = np.hstack([np.where(there[:, None], turn, np.nan), shift])
            parts.append(shift.ravel())
        for (a, b), y in self.distances.items():
            parts.append((np.linalg.norm(place.apart(a, b), axis=1) - y) / length)
        states = robot.joint_states(q)
        for name, y in self.joints.items():
            unit = length if robot.joint(name).kind == "Prismatic" else angle
            off, offset = states.q[name][:, 0] - y, f"{name}.offset"
            if offset in dimensions.names:
                off = off - x[dimensions.names.index(offset)]
            parts.append((off if unit == length else (off + np.pi) % (2.0 * np.pi) - np.pi) / unit)
        return np.concatenate(parts)[self.read], place

    def derivatives(self, place: _Place) -> Array:
        """(rows, p)."""
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
            apart = place.apart(a, b)
            along = apart / np.maximum(np.linalg.norm(apart, axis=1), 1e-300)[:, None]
            change: Any = sum(sign * shifts[name] for name, sign in ((b, 1.0), (a, -1.0)) if name != "ground")
            parts.append(np.einsum("ni,nip->np", along, change) / length)
        for name in self.joints:
            parts.append(moves.joints[name] / (length if self.robot.joint(name).kind == "Prismatic" else angle))
        return np.concatenate(parts)[self.read]
