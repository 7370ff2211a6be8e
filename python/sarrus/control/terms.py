"""Force elements as the core wants them: where they act, their laws, and the numbers that a sweep may vary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..description.joints import unit_axis
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError
from .coordinates import coordinate, velocity
from .element import (
    KINDS,
    ForceElement,
    ForceElements,
    Run,
    Term,
    bounds,
    constant,
    functions_and_elements,
    number,
)

if TYPE_CHECKING:
    from .task_control import TaskControl

ORDER = {kind: k for k, kind in enumerate(KINDS)}


def task_controls(elements: Sequence[Any]) -> list[TaskControl]:
    """Those among elements, behind clocks too."""
    laws = [element for element in elements if element._kind == "TaskControl"]
    for clock in (element for element in elements if element._kind == "SampleAndHold"):
        laws += task_controls(functions_and_elements(clock.law)[1])
    return laws


def terms_of(mechanism: LoopFunctions, elements: Sequence[Any], run: Run, made: ForceElements) -> list[Term]:
    """Return what the core takes of elements, whose numbers and functions go to `made`; ModelError if they do not fit the mechanism."""
    terms: list[Term] = []
    for element in sorted(elements, key=lambda element: ORDER[element._kind]):
        term = _term(mechanism, element, run, made)
        what, others = type(element).__name__, [other for other in terms if other["kind"] == term["kind"]]
        if element.one_a_velocity and term["joint"] in [other["joint"] for other in others]:
            raise ModelError(f"joint '{element.joint}' has one {what}; there are several")
        if element.one_a_run and others:
            raise ModelError(f"one {what} is of all shapes; there are several")
        if "targets" in term and any("targets" in other for other in terms):
            raise ModelError(f"one {what} drives all joints; there are several laws that do")
        terms.append(term)
    return terms


def _term(mechanism: LoopFunctions, element: ForceElement, run: Run, made: ForceElements) -> Term:
    """The fields of its kind, as the core's table says what they are."""
    kind, values = element._kind, _values(mechanism, element, run, made)
    fields = [
        (key, sort, sign, values[key] if key in values else getattr(element, key)) for key, sort, sign in KINDS[kind]
    ]
    return {"kind": kind} | {key: _field(mechanism, element, made, key, *field) for key, *field in fields}


def _field(
    mechanism: LoopFunctions, element: Any, made: ForceElements, key: str, sort: str, sign: str, value: Any
) -> Any:
    """What the core takes for a field of an element: by its sort where that says it all, else the value as it is."""
    what, place = f"{key} of {type(element).__name__}", element._place
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


def _values(mechanism: LoopFunctions, element: Any, run: Run, made: ForceElements) -> dict[str, Any]:
    """Of fields in the core that are no attributes of the element."""
    values: dict[str, Any] = element._values(mechanism, run)
    if element._kind == "SampleAndHold":
        functions, controllers = functions_and_elements(element.law)
        for c in controllers:
            if not c.can_be_sampled:
                raise ModelError(
                    f"{type(c).__name__} is no controller that can be sampled: give it beside SampleAndHold, in a list"
                )
        made.sampled.append(functions)
        values |= {"calls": bool(functions), "controllers": terms_of(mechanism, controllers, run, made)}
    return values
