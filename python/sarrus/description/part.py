"""A part of a description, and how it is written with a Builder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any


class Part:
    """What all parts share."""

    def _written(self) -> tuple[str, dict[str, Any]]:
        """The Builder's method that adds it, and what that is given: add_NAME and the fields, unless a part knows better."""
        arguments = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return f"add_{type(self).__name__.removesuffix('Spec').lower()}", arguments


def renamed(value: Any, name: Callable[[str], str]) -> Any:
    """With every text in the parts of a description changed: it is a name; those in joint types, shapes and the like are none."""
    if isinstance(value, str):
        return name(value)
    if isinstance(value, tuple):
        return tuple(renamed(x, name) for x in value)
    if isinstance(value, Part):
        names = [field.name for field in fields(value)]  # type: ignore[arg-type]
        return replace(value, **{key: renamed(getattr(value, key), name) for key in names})  # type: ignore[type-var]
    return value
