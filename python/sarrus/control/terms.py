"""Input of the core for force elements: their joints and frames, time functions, and parameters that may differ between runs."""

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
    """Return the TaskControls among elements, including those in SampleAndHold."""
    laws = [element for element in elements if element._kind == "TaskControl"]
    for sampled in (element for element in elements if element._kind == "SampleAndHold"):
        laws += task_controls(functions_and_elements(sampled.law)[1])
    return laws


def terms_of(mechanism: LoopFunctions, elements: Sequence[Any], run: Run, forces: ForceElements) -> list[Term]:
    """Return the core's terms for elements, and add their parameters and Python functions to `forces`.

    Raises ModelError if elements do not fit the mechanism.
    """
    terms: list[Term] = []
    for element in sorted(elements, key=lambda element: ORDER[element._kind]):
        term = _term(mechanism, element, run, forces)
        kind, same = type(element).__name__, [other for other in terms if other["kind"] == term["kind"]]
        if element.unique_per_joint and term["joint"] in [other["joint"] for other in same]:
            raise ModelError(f"joint '{element.joint}' has several {kind}; expected one")
        if element.unique and same:
            raise ModelError(f"got several {kind}; expected one, which applies to all shapes")
        if "targets" in term and any("targets" in other for other in terms):
            raise ModelError(f"got several controllers of all joints, such as {kind}; expected one")
        terms.append(term)
    return terms


def _term(mechanism: LoopFunctions, element: ForceElement, run: Run, forces: ForceElements) -> Term:
    """Return the term of an element, with the fields that the core's table lists for its kind."""
    kind, values = element._kind, _values(mechanism, element, run, forces)
    fields = [
        (key, sort, sign, values[key] if key in values else getattr(element, key)) for key, sort, sign in KINDS[kind]
    ]
    return {"kind": kind} | {key: _field(mechanism, element, forces, key, *field) for key, *field in fields}


def _field(
    mechanism: LoopFunctions, element: Any, forces: ForceElements, key: str, sort: str, sign: str, value: Any
) -> Any:
    """Return the core's input for a field of an element: converted by its sort, or the value itself for other sorts."""
    label, place = f"{key} of {type(element).__name__}", element._place
    name = f"{type(element).__name__}{f'({place})' if place else ''}.{key}"
    match sort:
        case "coordinate":
            return coordinate(mechanism, value, element.index, type(element).__name__)
        case "velocity":
            return velocity(mechanism, value, getattr(element, "index", 0))
        case "frame" if value not in mechanism.frames:
            mechanism.pose(mechanism.neutral(), value)  # raises, with the valid names
        case "direction":
            return unit_axis(value).tolist()
        case "constant":
            return constant(label, value, sign)
        case "number":
            return forces.named(name, forces.add(number(label, value, sign)[..., None]))
        case "range":
            return forces.named(name, forces.add(*(x[..., None] for x in bounds(label, value))))
        case "numbers":
            return forces.named(name, forces.add(value))
        case "law" if not (value is None and getattr(type(element), key, 0.0) is None):
            return forces.add_law(value, f"{key} of '{element._place}'")
        case "targets":
            return [(iq, iv, forces.add_law(law, f"target of '{joint}'")) for iq, iv, law, joint in value]
    return value


def _values(mechanism: LoopFunctions, element: Any, run: Run, forces: ForceElements) -> dict[str, Any]:
    """Return values of the core's fields that are not attributes of the element."""
    values: dict[str, Any] = element._values(mechanism, run)
    if element._kind == "SampleAndHold":
        functions, controllers = functions_and_elements(element.law)
        for c in controllers:
            if not c.can_be_sampled:
                raise ModelError(
                    f"{type(c).__name__} cannot be sampled: pass [SampleAndHold(...), element] instead of an element inside SampleAndHold"
                )
        forces.sampled.append(functions)
        values |= {"calls": bool(functions), "controllers": terms_of(mechanism, controllers, run, forces)}
    return values
