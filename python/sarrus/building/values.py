"""Conversion of a Builder's arguments from Python objects; the core checks their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._arrays import ArrayLike
from ..errors import ModelError
from ..spatial import Transform

Placement = Transform | ArrayLike | None
Coordinate = str | tuple[str, int]
BodyPoint = tuple[str, ArrayLike]


def checked_dict(value: object, subject: str, content: str) -> dict[Any, Any]:
    """Return a mapping as a dict. Raise ModelError for anything else."""
    if not isinstance(value, Mapping):
        raise ModelError(f"{subject} needs a dict from {content}; got {value!r}")
    return dict(value)


def term(coordinate: object, coefficients: ArrayLike) -> tuple[Any, Any, ArrayLike]:
    """Return (joint, index, coefficients); the index of a joint's only coordinate is None."""
    if isinstance(coordinate, tuple) and len(coordinate) == 2:
        return (*coordinate, coefficients)
    return coordinate, None, coefficients
