"""Parts of a description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any


class Part:
    """The base class of all parts."""


def renamed(value: Any, name: Callable[[str], str]) -> Any:
    """Return elements of a description in which every name is changed. Every str is a name, except those in joint types, shapes and other objects."""
    if isinstance(value, str):
        return name(value)
    if isinstance(value, tuple):
        return tuple(renamed(x, name) for x in value)
    if isinstance(value, Part):
        names = [field.name for field in fields(value)]  # type: ignore[arg-type]
        return replace(value, **{key: renamed(getattr(value, key), name) for key in names})  # type: ignore[type-var]
    return value
