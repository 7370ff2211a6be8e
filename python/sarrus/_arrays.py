"""Arrays as the core reads them, and the checks of what callers give that more than one module makes."""

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
    """Whether a mask hides some of it; who has no masked arrays has not imported them, and need not."""
    ma = sys.modules.get("numpy.ma")
    return ma is not None and bool(ma.is_masked(x))


MOST_AXES = 32  # that every function of NumPy takes


def real_numbers(x: ArrayLike) -> Array:
    """Float64 copy; TypeError or ValueError for texts, complex numbers, truth values, None and what a mask hides."""
    try:
        a = np.asarray(x)
        # one way or another all of them would become floats; fractions and long integers are objects, and may
        if a.dtype.kind not in "fiu" and not (a.dtype.kind == "O" and all(hasattr(n, "__float__") for n in a.flat)):
            raise TypeError(f"got {a.dtype}")
        if is_masked(x):
            raise TypeError("got a mask that hides some")
        if a.ndim > MOST_AXES:
            raise ValueError(f"got {a.ndim} axes; there may be {MOST_AXES}")
        return a.astype(float)
    except (OverflowError, RuntimeError) as error:
        # an integer that is no float; more axes than NumPy goes over one by one
        raise ValueError(error) from None


def real_array(what: str, value: ArrayLike) -> Array:
    """Numbers as float64, not copied where they are; TypeError where imaginary parts would be dropped or masked values used."""
    if is_masked(value):
        raise TypeError(f"{what} has masked entries, whose hidden values would count; give {what}.filled(value)")
    try:
        x = np.asarray(value)
        if x.dtype.kind in "fiubO":
            return x.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        x = np.asarray("no array")
    if x.dtype.kind == "c":
        raise TypeError(f"{what} must be real; got {value!r}, of which the imaginary part would be dropped")
    raise ShapeError(f"{what} must be an array of real numbers; got {value!r}")


def real_rows(what: str, value: ArrayLike, size: int, lead: tuple[int, ...] = (), *, finite: bool = True) -> Array:
    """Numbers (..., size), whose leading axes broadcast with `lead`; TypeError or ShapeError where they are something else.

    As the core has it, an unsound row is a StateError where it is the only one, and NaN among others; not where finite is False.
    """
    x = real_array(what, value)
    if x.ndim == 0 or x.shape[-1] != size:
        raise ShapeError(f"{what} has shape {x.shape}; its last axis must have {size} entries")
    common_axes({what: x.shape[:-1], "the states": lead})
    if not finite or np.isfinite(x).all():
        return x
    if x.ndim == 1:
        raise StateError(f"{what} must be finite; got {x}")
    return np.where(np.isfinite(x), x, np.nan)


def common_axes(shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The leading axes to which these broadcast; ShapeError where they do not."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except (ValueError, RuntimeError) as error:  # the second: more axes than NumPy can have
        why = "do not broadcast" if isinstance(error, ValueError) else "are too many for NumPy"
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise ShapeError(f"leading axes {why}: {listed}") from None


def into(out: Array | None, result: Array) -> Array:
    """The result, in `out` where one is given; ShapeError where that cannot take it."""
    if out is None:
        return result
    if type(out) is not np.ndarray or out.dtype != np.float64 or not out.flags.writeable:
        raise ShapeError(f"out must be a writable float64 array; got {out!r}")
    if out.shape != result.shape:
        raise ShapeError(f"out has shape {out.shape}; the result has {result.shape}")
    out[...] = result
    return out


# ---- names, files, functions -----------------------------------------------------------------------------------------


def checked_names(what: str, value: Any) -> list[str]:
    """Names, of which one may stand alone; TypeError for anything else."""
    return checked_several(what, [value] if isinstance(value, str) else value, str, "names, each a str")


def checked_text(name: str, value: Any) -> str:
    """A str; TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str; got {value!r}")
    return value


def checked_several(what: str, value: Any, kind: type | Callable[[Any], bool], of: str) -> list[Any]:
    """A list of things of this kind, of which one may stand alone; TypeError where something among them is none."""
    several = list(value) if np.iterable(value) else [value]
    if not all(isinstance(one, kind) if isinstance(kind, type) else kind(one) for one in several):
        raise TypeError(f"{what} must be {of}; got {value!r}")
    return several


def check_mapping(what: str, value: Any, of: str, least: int = 1, *, optional: bool = False) -> None:
    """Raise TypeError for what is no mapping, or has fewer members."""
    if not (optional and value is None) and (not isinstance(value, Mapping) or len(value) < least):
        raise TypeError(f"{what} must be a mapping of {of}; got {value!r}")


def checked_path(value: Any) -> Path:
    """The name of a file; TypeError for what is none, ModelError for one with a null character."""
    if not isinstance(value, str | bytes | os.PathLike):
        raise TypeError(f"path must be the name of a file; got {value!r}")
    path = Path(os.fsdecode(value))
    if "\0" in str(path):
        raise ModelError(f"path must be the name of a file; {str(path)!r} holds a null character")
    return path


def check_callable(what: str, value: Any) -> None:
    """Raise TypeError, which tells what it is called with, for what is no function."""
    if not callable(value):
        raise TypeError(f"{what} must be a function; got {value!r}")


# ---- numbers ---------------------------------------------------------------------------------------------------------


def checked_number(
    name: str, value: Any, kind: str = "positive", *, finite: bool = True, most: float = np.inf
) -> float:
    """A real number that is "positive", "seconds, not negative" or anything; TypeError or ValueError tell what was given."""
    x: Any = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(x, bool) or not isinstance(x, Real) or is_masked(value):
        raise TypeError(f"{name} must be a number; got {value!r}")
    try:
        number = float(x)
    except OverflowError:
        raise ValueError(f"{name} must be a number that float64 can hold; got {value!r}") from None
    sound = {"positive": number > 0.0, "seconds, not negative": number >= 0.0, "": True}[kind]
    if not sound or (finite and not np.isfinite(number)):
        raise ValueError(f"{name} must be {' and '.join([kind] * bool(kind) + ['finite'] * finite)}; got {value!r}")
    if number > most:
        raise ValueError(f"{name} must be at most {most:g}; got {value!r}")
    return number


def checked_truth(name: str, value: Any) -> bool:
    """True or False, or what Python takes for either; TypeError for arrays but those of one element."""
    if isinstance(value, np.ndarray) and value.size != 1:
        raise TypeError(f"{name} must be True or False; got {value!r}")
    return bool(value)


def checked_time(value: Any) -> float | None:
    """[s], or None."""
    return None if value is None else checked_number("time", value, "")


def checked_times(value: Any) -> float | Array | None:
    """[s] of one state or of each, or None."""
    several: bool = np.iterable(value) and not isinstance(value, str)
    return real_array("time", value) if several else checked_time(value)


def checked_count(name: str, value: Any, least: int = 1, most: float = np.inf) -> int:
    """An integer of at least so many."""
    if not isinstance(value, Integral) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer of at least {least}; got {value!r}")
    count = int(value)
    if not least <= count <= most:
        raise ValueError(f"{name} must be at {f'least {least}' if count < least else f'most {most}'}; got {value!r}")
    return count


ENDLESS = 10**9  # of things to try, or of seconds: nobody waits for more, and arrays of so many do not fit


def check_counts(least: int = 1, **counts: Any) -> None:
    """Raise for what is no number of things to try, draw or go through."""
    for name, count in counts.items():
        checked_count(name, count, least, ENDLESS)
