"""What can go wrong, by name. Every error is a :class:`SarrusError` and the built-in exception that fits it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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


class BranchEnd(AssemblyError):
    """The branch that :meth:`~sarrus.Mechanism.follow` went along ends before its inputs do.

    Attributes
    ----------
    path : (k, nq) configurations at the inputs that were reached
    last : (nq,) where the branch ends
    """

    def __init__(self, message: str, path: NDArray[np.float64], last: NDArray[np.float64]) -> None:
        super().__init__(message)
        self.path, self.last = path, last

    def __reduce__(self) -> tuple[type[BranchEnd], tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
        return type(self), (str(self), self.path, self.last)


class NotRealizableError(SarrusError, ValueError):
    """The chosen actuators cannot bring the motion about."""


class IntegrationError(SarrusError, ArithmeticError):
    """A simulation could not go on.

    Attributes
    ----------
    trajectory : :class:`~sarrus.Trajectory` of what was computed up to there
    """

    def __init__(self, message: str, trajectory: Any) -> None:
        super().__init__(message)
        self.trajectory = trajectory

    def __reduce__(self) -> tuple[type[IntegrationError], tuple[str, Any]]:
        return type(self), (str(self), self.trajectory)


class LimitWarning(UserWarning):
    """A simulation left limits of joints that nothing enforces."""


class StiffnessWarning(UserWarning):
    """A simulation's steps are too long for the forces that act."""


def raise_no_such_name(kind: str, name: object, known: Iterable[str]) -> NoReturn:
    """Raise NameNotFoundError for a name that is not among the known ones."""
    names = sorted(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    hint = f"; did you mean '{close[0]}'?" if close else f"; there are: {shown}" if names else "; there are none"
    raise NameNotFoundError(f"no {kind} is named '{name}'{hint}")
