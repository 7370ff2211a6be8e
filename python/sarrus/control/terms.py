"""Force elements as the core wants them: where they act, their laws, and the numbers that a sweep may vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._arrays import Array
from ..description.joints import unit_axis
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.variants import VariantFunctions
from ..errors import ModelError, ShapeError
from ..laws import law_terms_of_runs
from .coordinates import coordinate, velocity
from .element import KINDS, Element, Function, Run, bounds, constant, number
from .elements import ForceElement
from .sampling import Sampled
from .task_control import TaskControl

Term = dict[str, Any]
ORDER = {kind: k for k, kind in enumerate(KINDS)}


@dataclass(eq=False)
class ForceElements:
    """Terms of force elements in the order of their kinds, their numbers (..., n), and functions that are asked at samples."""

    terms: list[Term] = field(default_factory=list)
    effort_limits: list[float] = field(default_factory=list)
    numbers: list[Array] = field(default_factory=list)
    sampled: list[list[Function]] = field(default_factory=list)
    width: int = 0  # of a row of parameters
    run: Run = field(default_factory=Run)
    names: dict[str, slice] = field(default_factory=dict)  # of numbers of elements, where they stand in a row

    def named(self, name: str, first: int) -> int:
        """The numbers from the first on, under a name that no others have."""
        count = sum(known.partition(" #")[0] == name for known in self.names)
        self.names[f"{name} #{count + 1}" if count else name] = slice(first, self.width)
        return first

    def add(self, *numbers: Array) -> int:
        """Numbers (..., n) for the end of a row of parameters; where the first one stands there."""
        return self._append(*(self._those(x) if x.ndim > 1 else x for x in numbers))

    def _append(self, *numbers: Array) -> int:
        first = self.width
        self.numbers += numbers
        self.width += sum(x.shape[-1] for x in numbers)
        return first

    def add_law(self, law: Any, what: str) -> Any:
        """Of a law, or of several, one a run."""
        several = isinstance(law, (list, tuple)) or np.ndim(law) == 1
        terms, whose = law_terms_of_runs(self._those(law) if several else law, what, self.width)
        self._append(*(x[..., None] for x in whose))
        return terms

    def _those(self, of_runs: Any) -> Any:
        """Of what there is one of a run, those of the runs that are of the mechanism."""
        rows, runs = self.run.rows, self.run.runs
        if rows is None or len(of_runs) == 1:
            return of_runs
        if len(of_runs) != runs:
            raise ShapeError(f"numbers and laws that differ from run to run are {len(of_runs)}, with {runs} mechanisms")
        return of_runs[rows] if isinstance(of_runs, np.ndarray) else [of_runs[k] for k in rows]

    @property
    def parameters(self) -> Array:
        """(parameters,), or (runs, parameters) if some number differs from run to run."""
        if not self.numbers:
            return np.zeros(0)
        if all(x.ndim == 1 for x in self.numbers):
            return np.concatenate(self.numbers)
        try:
            runs = np.broadcast_shapes(*(x.shape[:-1] for x in self.numbers))
            return np.ascontiguousarray(
                np.concatenate([np.broadcast_to(x, (*runs, x.shape[-1])) for x in self.numbers], axis=-1)
            )
        except ValueError:
            sizes = sorted({x.shape[:-1] for x in self.numbers if x.ndim > 1})
            raise ShapeError(f"numbers that differ from run to run must be equally many; got shapes {sizes}") from None

    def as_tuple(self) -> tuple[Any, ...]:
        """Terms and parameters, for a checkpoint."""
        return self.terms, self.effort_limits, self.parameters.tolist()


def functions_and_elements(controller: Any) -> tuple[list[Function], list[Any]]:
    """Of one controller, or several in a list: functions of the caller, and what may be elements."""
    several = list(controller) if isinstance(controller, (list, tuple)) else [] if controller is None else [controller]
    for kind in (c for c in several if isinstance(c, type)):
        raise TypeError(f"{kind.__name__} is a class: give one of it, {kind.__name__}(...)")
    functions = [c for c in several if _is_function(c)]
    return functions, [c for c in several if not _is_function(c)]


def task_controls(elements: Sequence[Any]) -> list[TaskControl]:
    """Those among elements, behind clocks too."""
    laws = [element for element in elements if isinstance(element, TaskControl)]
    for clock in (element for element in elements if isinstance(element, Sampled)):
        laws += task_controls(functions_and_elements(clock.law)[1])
    return laws


def _is_function(controller: Any) -> bool:
    """Whether Python answers it at each evaluation: also a TaskControl with functions for targets."""
    return callable(controller) and not (isinstance(controller, TaskControl) and controller.native)


def force_elements(mechanism: LoopFunctions, elements: Sequence[ForceElement], run: Run | None = None) -> ForceElements:
    """What the core is told of the elements; ModelError where they do not fit the mechanism."""
    run = Run() if run is None else run
    made = ForceElements(effort_limits=list(run.effort_limits), run=run)
    made.terms = _terms(mechanism, elements, run, made)
    return made


def _terms(mechanism: LoopFunctions, elements: Sequence[Any], run: Run, made: ForceElements) -> list[Term]:
    """With numbers and functions that go to `made`."""
    for element in elements:
        if not isinstance(element, (Element, TaskControl)):
            raise TypeError(
                f"no element of control: {element!r}; a controller is a function (t, q, v) -> tau, an element such as "
                "sarrus.control.PID, or a list of these"
            )
    terms: list[Term] = []
    for element in sorted(elements, key=lambda element: ORDER[_kind(element)]):
        term = _term(mechanism, element, run, made)
        what, others = type(element).__name__, [other for other in terms if other["kind"] == term["kind"]]
        if getattr(element, "one_a_velocity", False) and term["joint"] in [other["joint"] for other in others]:
            raise ModelError(f"joint '{element.joint}' has one {what}; there are several")
        if getattr(element, "one_a_run", False) and others:
            raise ModelError(f"one {what} is of all shapes; there are several")
        if "targets" in term and any("targets" in other for other in terms):
            raise ModelError(f"one {what} drives all joints; there are several laws that do")
        terms.append(term)
    return terms


def _kind(element: ForceElement) -> str:
    return "TaskControl" if isinstance(element, TaskControl) else element._kind


def _term(mechanism: LoopFunctions, element: ForceElement, run: Run, made: ForceElements) -> Term:
    """The fields of its kind, as the core's table says what they are."""
    kind, values = _kind(element), _values(mechanism, element, run, made)
    fields = [
        (key, sort, sign, values[key] if key in values else getattr(element, key)) for key, sort, sign in KINDS[kind]
    ]
    return {"kind": kind} | {key: _field(mechanism, element, made, key, *field) for key, *field in fields}


def _field(
    mechanism: LoopFunctions, element: Any, made: ForceElements, key: str, sort: str, sign: str, value: Any
) -> Any:
    """What the core takes for a field of an element: by its sort where that says it all, else the value as it is."""
    what = f"{key} of {type(element).__name__}"
    place = getattr(element, "_place", "")
    name = f"{type(element).__name__}{f'({place})' if place else ''}.{key}"
    match sort:
        case "coordinate":
            return coordinate(mechanism, value, element.index, type(element).__name__)
        case "velocity":
            return velocity(mechanism, value, getattr(element, "index", 0))
        case "frame" if value not in mechanism.frames:
            mechanism.pose(mechanism.neutral(), value)  # which says what there is
        case "direction":
            return unit_axis(value).tolist()
        case "constant":
            return constant(what, value, sign)
        case "number":
            return made.named(name, made.add(number(what, value, sign)[..., None]))
        case "range":
            return made.named(name, made.add(*(x[..., None] for x in bounds(what, value))))
        case "numbers":
            return made.named(name, made.add(value))
        case "law" if not (value is None and getattr(type(element), key, 0.0) is None):
            return made.add_law(value, f"{key} of '{element._place}'")
        case "targets":
            return [(iq, iv, made.add_law(law, f"target of '{joint}'")) for iq, iv, law, joint in value]
    return value


def _values(mechanism: LoopFunctions, element: ForceElement, run: Run, made: ForceElements) -> dict[str, Any]:
    """Of fields in the core that are no attributes of the element."""
    if isinstance(element, TaskControl):
        if isinstance(mechanism, VariantFunctions):
            raise ModelError(
                f"a TaskControl was made for one mechanism, here '{element.robot.name}': variants need one each"
            )
        if element.robot is not mechanism:
            raise ModelError(
                f"this TaskControl was made for another mechanism, '{element.robot.name}'; as a controller of '{mechanism.name}' it is a function: "
                "give lambda t, q, v: law(t, q, v)"
            )
        return {"law": element._core_terms, "numbers": element.parameters}
    values = element._values(mechanism, run)
    if isinstance(element, Sampled):
        functions, controllers = functions_and_elements(element.law)
        for c in controllers:
            if isinstance(c, Element) and not c.can_be_sampled:
                raise ModelError(
                    f"{type(c).__name__} is no controller that can be sampled: give it beside Sampled, in a list"
                )
        made.sampled.append(functions)
        values |= {"calls": bool(functions), "controllers": _terms(mechanism, controllers, run, made)}
    return values
