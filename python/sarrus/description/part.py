"""A part of a description, and how it is written with a Builder."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Part:
    """What all parts share."""

    def _written(self) -> tuple[str, dict[str, Any]]:
        """The Builder's method that adds it, and what that is given: add_NAME and the fields, unless a part knows better."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return f"add_{type(self).__name__.removesuffix('Spec').lower()}", given
