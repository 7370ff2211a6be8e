"""Time functions of a coordinate, with their first two derivatives. They are stored as plain data, which the core evaluates.

>>> from sarrus.laws import harmonic, polynomial
>>> ramp_and_ripple = polynomial(0.0, 2.0) + harmonic(0.1, rate=10.0)
>>> round(ramp_and_ripple(1.0), 6)
1.945598
"""

from __future__ import annotations

from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np

from . import _core
from ._arrays import Array, ArrayLike, is_masked, real_array, real_numbers
from ._deferred import dataclass
from .errors import ModelError

__all__ = ["Law", "as_law", "harmonic", "polynomial", "spline"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class Law:
    """Time function: a piecewise polynomial plus harmonics. Time functions and numbers can be added.

    Attributes
    ----------
    starts : (n,) initial times of the polynomial pieces [s]. The first piece also applies before its initial time, and the last piece has no end
    coefficients : (n, k) coefficients of (t - start)^0, ^1, ... of each piece [rad, m; per s; ...]
    harmonics : (amplitude [rad, m], rate [rad/s], phase [rad]) of each harmonic, which is amplitude x sin(rate t + phase)

    Raises
    ------
    ModelError
        A number is not finite, the initial times are not ascending, the pieces have unequal degrees, or there is no piece.

    Examples
    --------
    >>> from sarrus.laws import polynomial
    >>> law = polynomial(1.0, 0.0, 3.0)
    >>> law(2.0), law.derivatives([0.0, 2.0])[1].tolist()
    (13.0, [0.0, 12.0])
    """

    starts: tuple[float, ...] = (0.0,)
    coefficients: tuple[tuple[float, ...], ...] = ((0.0,),)
    harmonics: tuple[tuple[float, float, float], ...] = ()

    __array_ufunc__ = None  # so that NumPy scalar + Law calls Law.__radd__

    def __post_init__(self) -> None:
        starts, coefficients = _finite(self.starts, "starts", 1), _finite(self.coefficients, "coefficients", 2)
        harmonics = _finite(self.harmonics, "harmonics", 2)
        if not starts.size or len(coefficients) != len(starts) or not coefficients.size:
            raise ModelError(
                f"a time function needs one start time or more, and one row of coefficients for each; got {coefficients.shape} "
                f"coefficients for {len(starts)} starts"
            )
        if (np.diff(starts) < 0.0).any():
            raise ModelError(f"start times of a time function must not decrease; got {starts.tolist()}")
        if harmonics.size and harmonics.shape[-1] != 3:
            raise ModelError(f"a harmonic must be (amplitude, rate, phase); got {self.harmonics!r}")
        for name, array in (("starts", starts), ("coefficients", coefficients), ("harmonics", harmonics)):
            object.__setattr__(self, name, _tuples(array))

    def __call__(self, t: ArrayLike) -> Any:
        """Return the value (...) at the times t (...) [s]; a float for one time."""
        return self.derivatives(t)[0]

    def derivatives(self, t: ArrayLike) -> tuple[Any, Any, Any]:
        """Return value, rate and acceleration, each (...), at the times t; floats for one time.

        At the boundary of two pieces the later piece applies.

        Parameters
        ----------
        t : (...) times [s]
        """
        time = real_array("t", t)
        piece = np.searchsorted(self.starts[1:], time, side="right")
        s, coefficients = time - np.array(self.starts)[piece], np.array(self.coefficients)[piece]
        value, rate, acceleration = (np.zeros(time.shape) for _ in range(3))
        # at times such as 1e300 s the polynomial overflows; the result is then infinite or NaN, which is not an error
        with np.errstate(over="ignore", invalid="ignore"):
            for k in reversed(range(coefficients.shape[-1])):  # Horner's scheme for the polynomial and its derivatives
                acceleration = acceleration * s + 2.0 * rate
                rate = rate * s + value
                value = value * s + coefficients[..., k]
        for amplitude, omega, phase in self.harmonics:
            sine, cosine = amplitude * np.sin(omega * time + phase), amplitude * np.cos(omega * time + phase)
            value, rate, acceleration = value + sine, rate + omega * cosine, acceleration - omega**2 * sine
        if time.ndim == 0:
            return float(value), float(rate), float(acceleration)
        return value, rate, acceleration

    def __add__(self, other: Law | float) -> Law:
        """Return the sum of two time functions, or of a time function and a number."""
        if not isinstance(other, (Law, Real)):
            return NotImplemented
        parts = (self, as_law(other, "a term"))
        later = sorted({start for law in parts for start in law.starts[1:]})
        starts = [later[0] if later else self.starts[0], *later]
        # the first piece of a function also applies before its start time, so the first piece of the sum ends where a second piece of either
        # function starts
        shifted = [[law._shifted(start, first=k == 0) for k, start in enumerate(starts)] for law in parts]
        degree = max(len(piece) for pieces in shifted for piece in pieces)
        rows = sum(np.array([np.pad(piece, (0, degree - len(piece))) for piece in pieces]) for pieces in shifted)
        return Law(tuple(starts), _tuples(np.asarray(rows)), self.harmonics + parts[1].harmonics)

    __radd__ = __add__

    def _shifted(self, start: float, *, first: bool) -> Array:
        """Return the polynomial coefficients in powers of (t - start), of the first piece if `first`, otherwise of the piece that applies at `start`."""
        piece = 0 if first else int(np.searchsorted(self.starts[1:], start, side="right"))
        polynomial = np.polynomial.Polynomial(self.coefficients[piece])
        return np.asarray(polynomial(np.polynomial.Polynomial([start - self.starts[piece], 1.0])).coef, np.float64)


_core.hand_over(Law=Law)


def as_law(value: object, label: str) -> Law:
    """Return a time function, or the constant time function of a number. Any other value raises ModelError.

    Parameters
    ----------
    value : a time function, or a finite number [rad, m]
    label : subject of the error message

    >>> from sarrus.laws import as_law, polynomial
    >>> as_law(0.5, "a law") == polynomial(0.5)
    True
    """
    if isinstance(value, Law):
        return value
    with suppress(TypeError, ValueError):  # raised for values that are not numbers
        number = real_numbers(value)  # type: ignore[arg-type]
        if number.ndim == 0 and np.isfinite(number):
            return polynomial(float(number))
    raise ModelError(
        f"{label} must be a time function, such as sarrus.laws.harmonic(1.0, rate=2.0), or a finite number; got {value!r}"
    )


def polynomial(*coefficients: float) -> Law:
    """Return the time function c0 + c1 t + c2 t^2 + ....

    Parameters
    ----------
    *coefficients : c0, c1, c2, ... [rad, m; per s; per s2; ...]

    >>> from sarrus.laws import polynomial
    >>> polynomial(1.0, -2.0)(0.5)
    0.0
    """
    numbers = _finite(coefficients, "a polynomial's coefficients", 1)
    if not numbers.size:
        raise ModelError("a polynomial needs one coefficient or more; got none")
    return Law((0.0,), _tuples(numbers[None]))


def harmonic(amplitude: float, rate: float, phase: float = 0.0, offset: float = 0.0) -> Law:
    """Return the time function offset + amplitude sin(rate t + phase).

    Parameters
    ----------
    amplitude, offset : amplitude and mean value [rad, m]
    rate : angular frequency [rad/s]
    phase : phase at t = 0 [rad]

    >>> from sarrus.laws import harmonic
    >>> harmonic(2.0, rate=3.0).derivatives(0.0)
    (0.0, 6.0, 0.0)
    """
    a, w, p, c = _finite([amplitude, rate, phase, offset], "a harmonic's amplitude, rate, phase and offset", 1).tolist()
    return Law((0.0,), ((c,),), ((a, w, p),))


def spline(times: ArrayLike, values: ArrayLike, *, slopes: tuple[float, float] = (0.0, 0.0)) -> Law:
    """Return the cubic spline through points, with prescribed slopes at its two ends. Before and after the points it is linear with these slopes.

    The first derivative is continuous; the second derivative is continuous except at the two ends. With slopes of zero, the motion begins and ends at
    rest.

    Parameters
    ----------
    times : (n,) increasing times of the points [s], n at least 2
    values : (n,) values at the points [rad, m]
    slopes : slopes at the first and at the last point [rad/s, m/s]

    Raises
    ------
    ModelError
        A number is not finite, the times do not increase, or the lengths of `times` and `values` differ.

    References
    ----------
    de Boor, A practical guide to splines, 1978, ch. IV (the complete cubic spline).

    Examples
    --------
    >>> from sarrus.laws import spline
    >>> law = spline([0.0, 1.0], [0.0, 2.0])
    >>> law([-1.0, 0.5, 1.0, 9.0]).tolist()
    [0.0, 1.0, 2.0, 2.0]
    """
    t, y = _finite(times, "a spline's times", 1), _finite(values, "a spline's values", 1)
    if len(t) < 2 or len(t) != len(y):
        raise ModelError(f"times and values of a spline must have equal lengths, at least 2; got {len(t)} and {len(y)}")
    ends = _finite(slopes, "a spline's slopes", 1)
    if len(ends) != 2:
        raise ModelError(f"slopes of a spline must be two numbers, at its first and last point; got {slopes!r}")
    if not (np.diff(t) > 0.0).all():
        late = int(np.argmin(np.diff(t) > 0.0))
        raise ModelError(f"a spline's times must increase; got {t[late]:g} and then {t[late + 1]:g}")
    start, end = ends.tolist()
    # points 1e-200 s apart cause an overflow, for which Law raises an error
    with np.errstate(over="ignore", invalid="ignore"):
        h = np.diff(t)
        secant = np.diff(y) / h
        d = _inner_slopes(h, secant, start, end)
        second, third = (3.0 * secant - 2.0 * d[:-1] - d[1:]) / h, (d[:-1] + d[1:] - 2.0 * secant) / h / h
    inner = np.stack([y[:-1], d[:-1], second, third], axis=-1)
    pieces = [(y[0], start, 0.0, 0.0), *inner.tolist(), (y[-1], end, 0.0, 0.0)]
    return Law((t[0], *t), _tuples(np.array(pieces)))


def _inner_slopes(h: Array, secant: Array, start: float, end: float) -> Array:
    """Return the slopes (n,) at the points that make the acceleration continuous: a tridiagonal system, which needs no pivots."""
    d = np.empty(len(h) + 1)
    d[0], d[-1] = start, end
    # solves h[i] d[i-1] + 2 (h[i-1] + h[i]) d[i] + h[i-1] d[i+1] = 3 (h[i] secant[i-1] + h[i-1] secant[i]) by elimination and back substitution
    ratio, right_side = np.zeros(len(h)), np.empty(len(h))
    right_side[0] = start
    for i in range(1, len(h)):
        pivot = 2.0 * (h[i - 1] + h[i]) - h[i] * ratio[i - 1]
        ratio[i] = h[i - 1] / pivot
        right_side[i] = (3.0 * (h[i] * secant[i - 1] + h[i - 1] * secant[i]) - h[i] * right_side[i - 1]) / pivot
    for i in range(len(h) - 1, 0, -1):
        d[i] = right_side[i] - ratio[i] * d[i + 1]
    return d


def _finite(value: ArrayLike, label: str, axes: int) -> Array:
    if is_masked(value):
        raise ModelError(f"{label} must have no masked entries, whose hidden values would be used; pass .filled(value)")
    try:
        array = np.asarray(value)
    except ValueError:  # raised for rows of unequal lengths
        raise ModelError(f"{label} must be rows of equally many finite numbers; got {value!r}") from None
    if array.size == 0:
        return np.zeros((0,) * axes)
    if array.dtype.kind not in "fiu" or is_masked(value) or array.ndim != axes or not np.isfinite(array).all():
        shape = "a sequence" if axes == 1 else "rows"
        raise ModelError(f"{label} must be {shape} of finite numbers; got {value!r}")
    return array.astype(np.float64)


def _tuples(array: Array) -> Any:
    return tuple(map(tuple, array.tolist())) if array.ndim > 1 else tuple(array.tolist())
