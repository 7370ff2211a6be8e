"""Base class of force elements, which are dataclasses; their fields are checked by the core's struct of the same name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from .. import _core
from .._arrays import Array, check_mapping, checked_number
from .._deferred import dataclass
from ..analysis.closing import positions
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError

Function = Callable[..., Any]
# (name, category, required sign) of the fields of each kind of element; the category determines how a value is converted
KINDS: dict[str, tuple[tuple[str, str, str], ...]] = _core.element_table()
# a kind of element whose fields are all of these categories gets a generated class; other kinds have handwritten classes
TYPED = ("coordinate", "velocity", "frame", "direction", "constant", "number", "range", "law")


@dataclass(frozen=True)
class Run:
    """Data of a run on which elements depend, in addition to the mechanism.

    Attributes
    ----------
    effort_limits : (nv,) limits of the sum of all efforts along each velocity, or empty
    start : initial configuration (nq,), or (runs, nq), in which effective inertias for default parameters are computed; None: the neutral
        configuration
    rows, runs : if several mechanisms are simulated in parallel, the indices of the runs of this mechanism, and the number of all runs; None: all
        runs
    rigid : True if end stops are rigid, that is, constraints of the time steps
    """

    effort_limits: Sequence[float] = ()
    start: Any = None
    rows: Any = None
    runs: int = 0
    rigid: bool = False


class Element:
    """Force element.

    Its attributes are the arguments of its kind in the core, which checks them: see cpp/reading/elements.hpp. `_values` returns other arguments.
    """

    rigid: ClassVar[bool] = False  # requires method="contact"
    stiff: ClassVar[bool] = False  # too stiff for explicit steps of any usual length
    implicit: ClassVar[bool] = False  # steps of method="contact" are implicit in its stiffness and damping
    stores: ClassVar[bool] = False  # returns at most the energy that it absorbed

    @property
    def _kind(self) -> str:
        """Name of the kind in the core."""
        return next(kind.__name__ for kind in type(self).__mro__ if kind.__name__ in KINDS)

    @property
    def native(self) -> bool:
        """True if the element runs in C++ during a simulation."""
        return True

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        """Return arguments of the core that are not attributes, or replace them."""
        return {}


ForceElement = Element
Term = dict[str, Any]


def declared(kind: str, module: str) -> type[Element]:
    """Create a class for a kind of the core that has no class in Python, with the fields of the core's struct."""
    rows = KINDS[kind]
    described = ", ".join(" ".join(filter(None, (sign, key, f"({sort})"))) for key, sort, sign in rows)
    fields = {key: Any for key, _, _ in rows} | {"index": int}
    members = {"__doc__": f"Fields: {described}.", "__module__": module, "__annotations__": fields}
    return dataclass(type(kind, (Element,), members | {"index": field(default=0, kw_only=True)}), frozen=True, eq=False)


def functions_and_elements(controller: Any, wrenches: Any = None) -> tuple[list[Function], list[Element]]:
    """Split a controller, or a list of controllers, into Python functions and force elements; append an element for each load in `wrenches`."""
    several = list(controller) if isinstance(controller, (list, tuple)) else [] if controller is None else [controller]
    functions: list[Function] = []
    elements: list[Element] = []
    for c in several:
        if isinstance(c, type):
            raise TypeError(f"controller: {c.__name__} is a class; expected an instance, {c.__name__}(...)")
        if isinstance(c, Element) and c.native:
            elements.append(c)
        elif callable(c):  # including a TaskControl whose targets are Python functions
            functions.append(c)
        elif isinstance(c, Element):
            raise ModelError(
                f"controller: a {type(c).__name__} engages constraints, which only simulate() supports; call simulate() for each run"
            )
        else:
            raise TypeError(
                f"controller must be a function (t, q, v) -> tau, an element such as sarrus.control.PID, or a list of these; got {c!r}"
            )
    check_mapping("wrenches", wrenches, "frames to [moment; force]", 0, optional=True)
    if wrenches:
        from .elements import AppliedWrench

        elements += [AppliedWrench(frame, wrench) for frame, wrench in wrenches.items()]
    return functions, elements


def entries(
    mechanism: LoopFunctions, elements: Sequence[Element], run: Run
) -> list[tuple[Element, str, str, dict[str, Any]]]:
    """Return the core's input for elements: object, kind, name of the class, and arguments that are not attributes."""
    return [(e, e._kind, type(e).__name__, e._values(mechanism, run)) for e in elements]


def task_controls(elements: Sequence[Any]) -> list[Any]:
    """Return the TaskControls among elements, including those in SampleAndHold."""
    laws = [element for element in elements if element._kind == "TaskControl"]
    for sampled in (element for element in elements if element._kind == "SampleAndHold"):
        laws += task_controls(functions_and_elements(sampled.law)[1])
    return laws


@dataclass(eq=False)
class ForceElements:
    """Core input for force elements, in the order of their kinds: structs, a row or rows of parameters, and sampled functions.

    Attributes
    ----------
    parameters : (parameters,), or (runs, parameters) if a parameter differs between runs
    names : name of a parameter to its slice in a row of parameters
    """

    terms: list[Term] = field(default_factory=list)
    effort_limits: list[float] = field(default_factory=list)
    parameters: Array = field(default_factory=lambda: np.zeros(0))
    sampled: list[list[Function]] = field(default_factory=list)
    names: dict[str, slice] = field(default_factory=dict)

    def add(self, numbers: Array) -> int:
        """Append parameters (n,), the same for all runs, and return the index of the first."""
        first: int = self.parameters.shape[-1]
        shape = (*self.parameters.shape[:-1], len(numbers))
        self.parameters = np.concatenate([self.parameters, np.broadcast_to(numbers, shape)], axis=-1)
        return first

    def as_tuple(self) -> tuple[Any, ...]:
        """Return the structs and parameters as a tuple, which a checkpoint stores."""
        return self.terms, self.effort_limits, self.parameters.tolist()

    @classmethod
    def of(cls, mechanism: LoopFunctions, elements: Sequence[Element], run: Run | None = None) -> ForceElements:
        """Return the core's input for the given elements; raise ModelError if they do not fit the mechanism."""
        run = Run() if run is None else run
        limits = list(run.effort_limits)
        if not elements:
            return cls(effort_limits=limits)
        rows = None if run.rows is None else np.arange(run.runs)[run.rows].tolist()
        start = None if run.start is None else np.asarray(run.start, dtype=np.float64)
        terms, names, parameters = _core.read_force_elements(
            mechanism, entries(mechanism, elements, run), limits, start, rows, run.runs, run.rigid,
            lambda: positions(mechanism._base),
        )  # fmt: skip
        sampled = [functions_and_elements(e.law)[0] for e in elements if e._kind == "SampleAndHold"]  # type: ignore[attr-defined]
        return cls(terms, limits, parameters, sampled, names)


def constant(label: str, value: Any) -> float:
    """Return a finite number; raise ModelError for other values."""
    try:
        return checked_number(label, value, "")
    except (TypeError, ValueError):
        raise ModelError(f"{label} must be a finite number; got {value!r}") from None
