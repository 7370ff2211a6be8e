"""Conversion of arrays for the core, and checks of arguments that several modules use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import NDArray as NDArray

from .errors import ModelError, ShapeError, StateError

Array = NDArray[np.float64]

# ---- arrays ----------------------------------------------------------------------------------------------------------


def is_masked(x: object) -> bool:
    """Return True for a masked array with masked entries, without importing ``numpy.ma``."""
    ma = sys.modules.get("numpy.ma")
    return ma is not None and bool(ma.is_masked(x))


MOST_AXES = 32  # number of axes that every function of NumPy accepts


def real_numbers(x: ArrayLike) -> Array:
    """Return a float64 copy; raise TypeError or ValueError for strings, complex numbers, arrays of booleans, None and masked entries."""
    try:
        a = np.asarray(x)
        # astype would convert any object. Objects with __float__, such as fractions and long integers, are accepted
        if a.dtype.kind not in "fiu" and not (a.dtype.kind == "O" and all(hasattr(n, "__float__") for n in a.flat)):
            raise TypeError(f"got {a.dtype}")
        if is_masked(x):
            raise TypeError("got masked entries")
        if a.ndim > MOST_AXES:
            raise ValueError(f"got {a.ndim} axes; expected at most {MOST_AXES}")
        return a.astype(float)
    except (OverflowError, RuntimeError) as error:
        # an integer is beyond the range of float64, or the array has more axes than NumPy can iterate over
        raise ValueError(error) from None


def real_array(name: str, value: ArrayLike) -> Array:
    """Return the value as a float64 array, copied only if needed; raise TypeError for complex or masked entries."""
    if is_masked(value):
        raise TypeError(f"{name} has masked entries, whose hidden values would be used; pass {name}.filled(value)")
    try:
        x = np.asarray(value)
        if x.dtype.kind in "fiubO":
            return x.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        x = np.asarray("no array")
    if x.dtype.kind == "c":
        raise TypeError(f"{name} must be real; got {value!r}, whose imaginary part would be lost")
    raise ShapeError(f"{name} must be an array of real numbers; got {value!r}")


def real_rows(name: str, value: ArrayLike, size: int, lead: tuple[int, ...] = (), *, finite: bool = True) -> Array:
    """Return a float64 array (..., size), whose leading axes broadcast with `lead`; raise TypeError or ShapeError otherwise.

    If a row is not finite, the behaviour is that of the core: StateError is raised if it is the only row; in a batch, the row becomes NaN. With
    ``finite=False``, rows are not checked.
    """
    x = real_array(name, value)
    if x.ndim == 0 or x.shape[-1] != size:
        raise ShapeError(f"{name} has shape {x.shape}; its last axis must have {size} entries")
    common_axes({name: x.shape[:-1], "the states": lead})
    if not finite or np.isfinite(x).all():
        return x
    if x.ndim == 1:
        raise StateError(f"{name} must be finite; got {x}")
    return np.where(np.isfinite(x), x, np.nan)


def common_axes(shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which the given shapes of leading axes broadcast; raise ShapeError if they do not broadcast."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except (ValueError, RuntimeError) as error:  # RuntimeError is raised for more axes than NumPy supports
        why = "do not broadcast" if isinstance(error, ValueError) else "are too many for NumPy"
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise ShapeError(f"leading axes {why}: {listed}") from None


def into(out: Array | None, result: Array) -> Array:
    """Return the result, copied into `out` unless that is None; raise ShapeError if `out` has another shape or type."""
    if out is None:
        return result
    if type(out) is not np.ndarray or out.dtype != np.float64 or not out.flags.writeable:
        raise ShapeError(f"out must be a writable float64 array; got {out!r}")
    if out.shape != result.shape:
        raise ShapeError(f"out has shape {out.shape}; the result has {result.shape}")
    out[...] = result
    return out


# ---- names, files, functions -----------------------------------------------------------------------------------------


def checked_names(argument: str, value: Any) -> list[str]:
    """Return a list of names from a sequence of names or a single name; raise TypeError for other values."""
    return checked_several(argument, [value] if isinstance(value, str) else value, str, "names, each a str")


def checked_text(name: str, value: Any) -> str:
    """Return the value if it is a str; raise TypeError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str; got {value!r}")
    return value


def checked_several(argument: str, value: Any, kind: type | Callable[[Any], bool], expected: str) -> list[Any]:
    """Return a list of objects of a class from a sequence or a single object; raise TypeError otherwise.

    `expected` describes valid values in the message.
    """
    several = list(value) if np.iterable(value) else [value]
    if not all(isinstance(item, kind) if isinstance(kind, type) else kind(item) for item in several):
        raise TypeError(f"{argument} must be {expected}; got {value!r}")
    return several


def check_mapping(argument: str, value: Any, members: str, least: int = 1, *, optional: bool = False) -> None:
    """Raise TypeError if a value is not a mapping with at least `least` members."""
    if not (optional and value is None) and (not isinstance(value, Mapping) or len(value) < least):
        raise TypeError(f"{argument} must be a mapping of {members}; got {value!r}")


def checked_path(value: Any) -> Path:
    """Return the path of a file; raise TypeError for other types, ModelError for a null character or for the contents of a model file."""
    if not isinstance(value, str | bytes | os.PathLike):
        raise TypeError(f"path must be the name of a file; got {value!r}")
    path = Path(os.fsdecode(value))
    if "\0" in str(path):
        raise ModelError(f"path must be the name of a file; {str(path)!r} contains a null character")
    if str(path).lstrip().startswith(("<", '{"', "#usda")):
        raise ModelError("path must be the name of a file; got its contents; sarrus.loads reads a model from a text")
    return path


def check_callable(argument: str, value: Any) -> None:
    """Raise TypeError if a value is not callable."""
    if not callable(value):
        raise TypeError(f"{argument} must be a function; got {value!r}")


# ---- numbers ---------------------------------------------------------------------------------------------------------


def checked_number(
    name: str, value: Any, kind: str = "positive", *, finite: bool = True, most: float = np.inf
) -> float:
    """Return a real number; raise TypeError or ValueError if it does not satisfy the condition `kind`.

    Examples of conditions are "positive" and "seconds, not negative".
    """
    x: Any = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(x, bool) or not isinstance(x, Real) or is_masked(value):
        raise TypeError(f"{name} must be a number; got {value!r}")
    try:
        number = float(x)
    except OverflowError:
        raise ValueError(f"{name} must be a number within the range of float64; got {value!r}") from None
    sound = {"positive": number > 0.0, "seconds, not negative": number >= 0.0, "": True}[kind]
    if not sound or (finite and not np.isfinite(number)):
        raise ValueError(f"{name} must be {' and '.join([kind] * bool(kind) + ['finite'] * finite)}; got {value!r}")
    if number > most:
        raise ValueError(f"{name} must be at most {most:g}; got {value!r}")
    return number


def checked_truth(name: str, value: Any) -> bool:
    """Return a bool; raise TypeError for arrays that do not have exactly one element."""
    if isinstance(value, np.ndarray) and value.size != 1:
        raise TypeError(f"{name} must be True or False; got {value!r}")
    return bool(value)


def checked_time(value: Any) -> float | None:
    """Return a checked time [s], or None."""
    return None if value is None else checked_number("time", value, "")


def checked_times(value: Any) -> float | Array | None:
    """Return a checked time [s], an array of times [s], or None."""
    several: bool = np.iterable(value) and not isinstance(value, str)
    return real_array("time", value) if several else checked_time(value)


def checked_count(name: str, value: Any, least: int = 1, most: float = np.inf) -> int:
    """Return an integer within `least` and `most`; raise TypeError or ValueError otherwise."""
    if not isinstance(value, Integral) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer of at least {least}; got {value!r}")
    count = int(value)
    if not least <= count <= most:
        raise ValueError(f"{name} must be at {f'least {least}' if count < least else f'most {most}'}; got {value!r}")
    return count


MOST_THREADS = 2**16  # more than any machine has
ENDLESS = 10**9  # largest count: larger ones take longer than any caller waits, and their arrays do not fit in memory


def check_counts(least: int = 1, **counts: Any) -> None:
    """Raise TypeError or ValueError if a count of trials or samples is not an integer of at least `least`."""
    for name, count in counts.items():
        checked_count(name, count, least, ENDLESS)
