"""What can go wrong, by name. Every error is a :class:`SarrusError` and the built-in exception that fits it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn


class SarrusError(Exception):
    """Any error that sarrus raises on purpose."""


class ModelError(SarrusError, ValueError):
    """A mechanism's description, or a file that holds one, is wrong."""


class ShapeError(SarrusError, ValueError):
    """An array has the wrong shape, or an ``out=`` array cannot take the result."""


class StateError(SarrusError, ValueError):
    """A state holds NaN, infinity or a quaternion that is no rotation, or no answer exists there."""


class NameNotFoundError(SarrusError, KeyError):
    """No joint, body or frame has this name."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class AssemblyError(SarrusError, ValueError):
    """No configuration was found that closes the loops."""


class NotRealizableError(SarrusError, ValueError):
    """The chosen actuators cannot bring the motion about."""


class IntegrationError(SarrusError, ArithmeticError):
    """A simulation could not go on; it holds what was computed up to there."""


def raise_no_such_name(kind: str, name: object, known: Iterable[str]) -> NoReturn:
    """Raise NameNotFoundError for a name that is not among the known ones."""
    names = sorted(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    hint = f"; did you mean '{close[0]}'?" if close else f"; there are: {shown}" if names else "; there are none"
    raise NameNotFoundError(f"no {kind} is named '{name}'{hint}")
