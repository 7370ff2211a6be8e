"""Functions of time, or of a coordinate in :meth:`sarrus.Builder.add_coupler`, with derivatives. They are plain data, which the core evaluates.

>>> from sarrus.laws import harmonic, polynomial
>>> ramp_and_ripple = polynomial(0.0, 2.0) + harmonic(0.1, rate=10.0)
>>> round(ramp_and_ripple(1.0), 6)
1.945598
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np

from . import _core
from ._arrays import Array, ArrayLike, is_masked, real_array, real_numbers
from ._deferred import dataclass
from .errors import ModelError

__all__ = ["Law", "as_law", "harmonic", "polynomial", "spline", "table"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class Law:
    """Time function: a piecewise polynomial plus harmonics. It can be added to functions and numbers, and multiplied by numbers.

    In :meth:`sarrus.Builder.add_coupler`, it is a function of a coordinate: read coordinate [rad, m] instead of time [s].

    Attributes
    ----------
    starts : (n,) initial times of the polynomial pieces [s]. The first piece also applies before its initial time, and the last piece has no end
    coefficients : (n, k) coefficients of (t - start)^0, ^1, ... of each piece [rad, m; per s; ...]
    harmonics : (amplitude [rad, m], rate [rad/s], phase [rad]) of each harmonic, which is amplitude x sin(rate t + phase)
    period : time after which the pieces are repeated, before the first initial time too [s]; 0: they are not repeated

    Raises
    ------
    ModelError
        A number is not finite, the initial times are not ascending, the pieces have unequal degrees, there is no piece, or the pieces are longer
        than the period.

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
    period: float = 0.0

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
        period = float(_finite([self.period], "period", 1)[0])
        if period < 0.0 or 0.0 < period < starts[-1] - starts[0]:
            raise ModelError(
                f"period of a time function must not be shorter than its pieces, which begin at {starts.tolist()}; got {period:g}"
            )
        for name, array in (("starts", starts), ("coefficients", coefficients), ("harmonics", harmonics)):
            object.__setattr__(self, name, _tuples(array))
        object.__setattr__(self, "period", period)

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
        with np.errstate(invalid="ignore"):
            within = time - self.period * np.floor((time - self.starts[0]) / self.period) if self.period else time
        piece = np.searchsorted(self.starts[1:], within, side="right")
        s, coefficients = within - np.array(self.starts)[piece], np.array(self.coefficients)[piece]
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
        periods = {law.period for law in parts if len(law.starts) > 1 or any(law.coefficients[0][1:])}
        if len(periods) > 1:
            raise ModelError(
                f"pieces of time functions that are added must have equal periods; got {self.period:g} and {parts[1].period:g}"
            )
        period = max(periods, default=0.0)
        later = sorted({start for law in parts for start in law.starts[1:]})
        first = {law.starts[0] for law in parts if period and law.period}
        if len(first) > 1:
            raise ModelError(
                f"pieces of periodic time functions that are added must begin at the same time; got {sorted(first)}"
            )
        starts = [*(first or [later[0] if later else self.starts[0]]), *later]
        # the first piece of a function also applies before its start time, so the first piece of the sum ends where a second piece of either
        # function starts
        shifted = [[law._shifted(start, first=k == 0) for k, start in enumerate(starts)] for law in parts]
        degree = max(len(piece) for pieces in shifted for piece in pieces)
        rows = sum(np.array([np.pad(piece, (0, degree - len(piece))) for piece in pieces]) for pieces in shifted)
        return Law(tuple(starts), _tuples(np.asarray(rows)), self.harmonics + parts[1].harmonics, period)

    __radd__ = __add__

    def __mul__(self, factor: float) -> Law:
        """Return the product of a time function and a number."""
        if not isinstance(factor, Real):
            return NotImplemented
        number = float(_finite([factor], "a factor", 1)[0])
        harmonics = tuple((number * amplitude, rate, phase) for amplitude, rate, phase in self.harmonics)
        return Law(self.starts, _tuples(number * np.array(self.coefficients)), harmonics, self.period)

    __rmul__ = __mul__

    def __neg__(self) -> Law:
        """Return the time function with the opposite sign."""
        return self * -1.0

    def __sub__(self, other: Law | float) -> Law:
        """Return the difference of two time functions, or of a time function and a number."""
        return self + -1.0 * as_law(other, "a term") if isinstance(other, (Law, Real)) else NotImplemented

    def __rsub__(self, other: float) -> Law:
        """Return the difference of a number and a time function."""
        return -self + other

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


def polynomial(*coefficients: float | Sequence[float]) -> Law:
    """Return the time function c0 + c1 t + c2 t^2 + ....

    Parameters
    ----------
    *coefficients : c0, c1, c2, ... [rad, m; per s; per s2; ...]; or one sequence of them

    >>> from sarrus.laws import polynomial
    >>> polynomial(1.0, -2.0)(0.5)
    0.0
    """
    only: Any = coefficients[0] if len(coefficients) == 1 else None
    if isinstance(only, (list, tuple)) or (isinstance(only, np.ndarray) and only.ndim == 1):
        coefficients = tuple(only)
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
    t, y = _points("a spline", times, values, 2)
    ends = _finite(slopes, "a spline's slopes", 1)
    if len(ends) != 2:
        raise ModelError(f"slopes of a spline must be two numbers, at its first and last point; got {slopes!r}")
    start, end = ends.tolist()
    # points 1e-200 s apart cause an overflow, for which Law raises an error
    with np.errstate(over="ignore", invalid="ignore"):
        h = np.diff(t)
        secant = np.diff(y) / h
        d = _core.spline_slopes(t, y, start, end)
        second, third = (3.0 * secant - 2.0 * d[:-1] - d[1:]) / h, (d[:-1] + d[1:] - 2.0 * secant) / h / h
    inner = np.stack([y[:-1], d[:-1], second, third], axis=-1)
    pieces = [(y[0], start, 0.0, 0.0), *inner.tolist(), (y[-1], end, 0.0, 0.0)]
    return Law((t[0], *t), _tuples(np.array(pieces)))


def table(times: ArrayLike, values: ArrayLike, *, periodic: bool = False) -> Law:
    """Return the spline of fifth degree through the points of a table; its derivatives up to the fourth are continuous.

    Polynomials of degree 5 are reproduced by six points or more. Before and after the points, value, first and second derivative continue (a parabola); their values at the
    ends are those of the polynomial through the nearest points, at most six.

    Parameters
    ----------
    times : (n,) increasing times of the points [s], or coordinates [rad, m]; n at least 3
    values : (n,) values at the points [rad, m]
    periodic : True if the table is one period of a function, such as the lift of a cam in a turn. The last value must equal the first

    Raises
    ------
    ModelError
        A number is not finite, the times do not increase, the lengths of `times` and `values` differ, or the last value of a period is not the first.

    Examples
    --------
    A table of a sine, one turn in steps of 5 degrees:

    >>> import numpy as np
    >>> from sarrus.laws import table
    >>> angle = np.linspace(0.0, 2.0 * np.pi, 73)
    >>> law = table(angle, np.sin(angle), periodic=True)
    >>> bool(abs(law(40.0) - np.sin(40.0)) < 1e-9)
    True
    """
    t, y = _points("a table", times, values, 3)
    scale = float(t[-1] - t[0]) / (len(t) - 1)  # times are scaled, so that the equations are well conditioned
    if periodic and abs(y[-1] - y[0]) > 1e-9 * np.abs(y).max():
        raise ModelError(f"the last value of a periodic table must equal the first, {y[0]:g}; got {y[-1]:g}")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            ends = None if periodic else [_end(t, y, scale, 0), _end(t, y, scale, -1)]
            rates = _knots(np.diff(t) / scale, np.diff(y), ends) / [scale, scale**2]
            inner = quintic_pieces(t, np.column_stack([y, rates]))
    except np.linalg.LinAlgError:
        raise ModelError("points of a table are too unevenly spaced for a spline of fifth degree") from None
    if periodic:
        return Law(tuple(t[:-1].tolist()), _tuples(inner), (), float(t[-1] - t[0]))
    before, after = ((y[k], *rates[k] / [1.0, 2.0], 0.0, 0.0, 0.0) for k in (0, -1))
    return Law((t[0], *t.tolist()), _tuples(np.array([before, *inner, after])))


def quintic_pieces(t: Array, values: Array, ends: Array | None = None) -> Array:
    """Return the coefficients (n - 1, 6) of polynomials of degree 5 that have these values and first two derivatives (n, 3) at times t (n,).

    If derivatives jump at these times, `values` are those after, and `ends` (n - 1, 3) those before each time except the first.

    >>> import numpy as np
    >>> from sarrus.laws import quintic_pieces
    >>> quintic_pieces(np.array([0.0, 1.0]), np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])).tolist()
    [[0.0, 0.0, 0.0, 10.0, -15.0, 6.0]]
    """
    h = np.diff(t)
    (x0, r0, b0), (x1, r1, b1) = values[:-1].T, (values[1:] if ends is None else ends).T
    # value, rate and acceleration at the end of each piece, minus those of the quadratic polynomial that continues from its beginning
    x = x1 - x0 - h * (r0 + h * b0 / 2.0)
    r, b = (r1 - r0 - h * b0) * h, (b1 - b0) * h**2
    third, fourth, fifth = 10 * x - 4 * r + b / 2, -15 * x + 7 * r - b, 6 * x - 3 * r + b / 2
    return np.stack([x0, r0, b0 / 2.0, third / h**3, fourth / h**4, fifth / h**5], axis=-1)


def _end(t: Array, y: Array, scale: float, at: int) -> Array:
    """Return first and second derivative (2,) at the first or last point, of the polynomial through the nearest points; times in `scale`."""
    near = slice(0, 6) if at == 0 else slice(-6, None)
    x = (t[near] - t[at]) / scale
    c = np.linalg.solve(x[:, None] ** np.arange(len(x)), y[near])
    return np.array([c[1], 2.0 * c[2]])


def _knots(h: Array, rise: Array, ends: list[Array] | None) -> Array:
    """Return first and second derivatives (n, 2) at the points of a spline of fifth degree; `ends` are those of the end points, None: periodic.

    At every point, third and fourth derivative of both adjacent pieces are equal. These equations of the derivatives X at points k - 1, k, k + 1 are
    block tridiagonal, A X[k - 1] + B X[k] + C X[k + 1] = R, and are solved by elimination. X at the ends is a second right-hand side.
    """
    n, d = len(h) + 1, h[:, None, None]
    # third and fourth derivatives at the beginning and at the end of each piece, from the derivatives at its two ends and from its rise
    begin = np.array([[-36.0, -9.0, -24.0, 3.0], [192.0, 36.0, 168.0, -24.0]])
    end = np.array([[-24.0, -3.0, -36.0, 9.0], [-168.0, -24.0, -192.0, 36.0]])
    powers = np.array([[2.0, 1.0, 2.0, 1.0], [3.0, 2.0, 3.0, 2.0]])
    begin, end = begin / d**powers, end / d**powers
    from_rise = np.array([60.0, -360.0]) / h[:, None] ** [3.0, 4.0] * rise[:, None]
    after, before = np.arange(n - 1), np.arange(-1, n - 2)  # pieces on both sides of points 0 to n - 2
    A, C = end[before, :, :2], -begin[after, :, 2:]
    B, R = end[before, :, 2:] - begin[after, :, :2], from_rise[after] - from_rise[before] * [1.0, -1.0]
    X = np.zeros((n, 2, 5))  # coefficients of 1, of X[0] and of X[n - 1]
    X[0, :, 1:3] = X[-1, :, 3:] = np.eye(2)
    ratio = np.zeros((n, 2, 2))
    for k in range(1, n - 1):
        pivot = B[k] - A[k] @ ratio[k - 1]
        right = np.column_stack([R[k], np.zeros((2, 4))]) - A[k] @ X[k - 1]
        ratio[k], X[k] = np.linalg.solve(pivot, C[k]), np.linalg.solve(pivot, right)
    for k in range(n - 2, 0, -1):
        X[k] -= ratio[k] @ X[k + 1]
    if ends is None:
        row = A[0] @ X[-2] + C[0] @ X[1]
        first = np.linalg.solve(B[0] + row[:, 1:3] + row[:, 3:], R[0] - row[:, 0])
        ends = [first, first]
    return np.asarray(X @ np.concatenate([[1.0], *ends]))


def _points(subject: str, times: ArrayLike, values: ArrayLike, least: int) -> tuple[Array, Array]:
    """Return the points of a spline or table as arrays (n,)."""
    t, y = _finite(times, f"{subject}'s times", 1), _finite(values, f"{subject}'s values", 1)
    if len(t) < least or len(t) != len(y):
        raise ModelError(
            f"times and values of {subject} must have equal lengths, at least {least}; got {len(t)} and {len(y)}"
        )
    if not (np.diff(t) > 0.0).all():
        late = int(np.argmin(np.diff(t) > 0.0))
        raise ModelError(f"{subject}'s times must increase; got {t[late]:g} and then {t[late + 1]:g}")
    return t, y


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
