"""Errors and warnings. Every error class derives from :class:`SarrusError` and from the built-in exception that describes it, such as ValueError."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._renamed import raise_renamed, renamed_attribute, renamed_value

__all__ = [
    "AssemblyError",
    "BranchWarning",
    "IntegrationError",
    "LimitWarning",
    "ModelError",
    "ModelWarning",
    "NameNotFoundError",
    "NotRealizableError",
    "PathTrackingError",
    "SarrusError",
    "ShapeError",
    "StateError",
    "StiffnessWarning",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


class SarrusError(Exception):
    """Any error that sarrus raises on purpose."""


class ModelError(SarrusError, ValueError):
    """A mechanism's description, or a model file, is invalid."""


class ModelWarning(UserWarning):
    """A part of a mechanism's description has no effect."""


# appended to errors about the shape of tau, because motors' efforts u may have been passed instead
OF_MOTORS = "; efforts u of motors, in the order of `robot.actuated`, become tau by robot.actuation_matrix(q) @ u"


class ShapeError(SarrusError, ValueError):
    """An array has the wrong shape, or an ``out=`` array cannot hold the result."""

    def __str__(self) -> str:
        text = super().__str__()
        return text + OF_MOTORS * text.startswith("tau has ")


class StateError(SarrusError, ValueError):
    """A state contains NaN, infinity or a quaternion that is not a rotation; or the function has no result in this state."""


class NameNotFoundError(SarrusError, KeyError):
    """No joint, body or frame has this name."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0])


class AssemblyError(SarrusError, ValueError):
    """No configuration was found that closes the loops."""


class PathTrackingError(AssemblyError):
    """The tracked branch of :meth:`~sarrus.Mechanism.follow` or :meth:`~sarrus.Mechanism.assemble` ends before the last input.

    Attributes
    ----------
    message : text of the error
    path : (k, nq) configurations at the inputs that were reached [rad, m]
    last_configuration : (nq,) configuration at which the branch ends [rad, m]
    """

    def __init__(self, message: str, path: NDArray[np.float64], last_configuration: NDArray[np.float64]) -> None:
        super().__init__(message)
        self.path, self.last_configuration = path, last_configuration

    def __reduce__(self) -> tuple[type[PathTrackingError], tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
        return type(self), (str(self), self.path, self.last_configuration)

    if not TYPE_CHECKING:
        __getattr__ = renamed_attribute


class NotRealizableError(SarrusError, ValueError):
    """The chosen actuators cannot produce the motion."""


class IntegrationError(SarrusError, ArithmeticError):
    """A simulation failed and cannot continue.

    Attributes
    ----------
    message : text of the error
    trajectory : :class:`~sarrus.Trajectory` up to the failure
    """

    def __init__(self, message: str, trajectory: Any) -> None:
        super().__init__(message)
        self.trajectory = trajectory

    def __reduce__(self) -> tuple[type[IntegrationError], tuple[str, Any]]:
        return type(self), (str(self), self.trajectory)


class BranchWarning(UserWarning):
    """Loops were closed on another branch than that of the initial guess, or beyond a singular position, so that the branch is undetermined."""


class LimitWarning(UserWarning):
    """A simulation exceeded joint limits that are not enforced."""


class DriftWarning(UserWarning):
    """The initial state of a simulation violated the loop constraints and was projected onto them, or the final state violates them."""


class StiffnessWarning(UserWarning):
    """A simulation's steps are too long for the stiffness of the applied forces or for the motion, so that integration errors add energy."""


def warn_of_model(message: str) -> None:
    """Issue a ModelWarning, located at the caller's line outside of this package."""
    warn_caller(message, ModelWarning)


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning, located at the caller's line outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("sarrus."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def raise_no_such_name(kind: str, name: object, names: Iterable[str], subject: str | None = None) -> NoReturn:
    """Raise NameNotFoundError for a name that is not in `names`; `subject` begins the message.

    The message does not list the frames of joints, which the core calls NAME.parent and NAME.child.
    """
    raise NameNotFoundError(_core.unknown_name(kind, str(name), names, subject or ""))


def check_name(kind: str, name: object, names: Collection[str], subject: str | None = None) -> None:
    """Raise NameNotFoundError if `name` is not one of the strings in `names`; `name` need not be hashable."""
    if not isinstance(name, str) or name not in names:
        raise_no_such_name(kind, name, names, subject)


def check_choice(argument: str, value: object, choices: Any, error: type[Exception] = ValueError) -> None:
    """Raise `error` if a value is not one of the allowed strings: those of a Literal type, or the keys of a mapping."""
    words = getattr(choices, "__args__", choices)  # the result of typing.get_args, in half a microsecond less
    if not isinstance(value, str) or value not in words:
        *first, last = map(repr, words)
        expected = f"{'one of ' * (len(first) > 1)}{', '.join(first)} or {last}"
        raise error(f"{argument} must be {expected}; got {value!r}{renamed_value(argument, value)}")


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return the end of an error message about an unknown name: the most similar names in `names`, or all of them."""
    return str(_core.did_you_mean(str(name), names))


def check_printable(kind: str, name: str) -> None:
    """Raise ModelError if a name contains unprintable characters, or is too long for messages."""
    _core.check_printable(kind, name)


def printable(text: str) -> str:
    """Return the text with escapes for characters that cannot be printed."""
    return str(_core.printable(text))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        raise_renamed(__name__, name)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)


_core.hand_over(
    ModelError=ModelError,
    NameNotFoundError=NameNotFoundError,
    ShapeError=ShapeError,
    StateError=StateError,
    AssemblyError=AssemblyError,
    PathTrackingError=PathTrackingError,
    NotRealizableError=NotRealizableError,
)
