"""Descriptions with other parameters, for ``Mechanism.replace``.

The core computes the copy's parameters (cpp/bindings/changes.hpp). The copy's description is created at first access.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from .._arrays import check_mapping, real_numbers
from ..errors import ModelError
from ..spatial import Inertia, Transform
from .constraints import Part
from .joints import PASSIVE
from .specs import Description

OF_JOINT_TYPES = {key: key for key in (*PASSIVE, "pitch")}  # changes of a field of the joint type
OF_SPRINGS = {"stiffness": "stiffness", "damping": "damping", "rest": "rest_length"}
P = TypeVar("P", bound=Part)


def _inertia(subject: str, value: Any) -> Inertia:
    if not isinstance(value, Inertia):
        raise ModelError(f"{subject} needs a sarrus.Inertia; got {value!r}")
    return value


def _placement(subject: str, value: Any) -> Transform:
    try:
        return value if isinstance(value, Transform) else Transform(translation=value)
    except ValueError as error:
        expected = "a Transform or a translation of three numbers"
        raise ModelError(f"{subject} must be {expected}; got {value!r} ({error})") from None


def _numbers(subject: str, value: Any) -> Any:
    """Return a float, or a read-only copy of an array; the core checks if the joint type supports it."""
    try:
        numbers = real_numbers(value)
    except (TypeError, ValueError):
        raise ModelError(f"{subject} needs numbers; got {value!r}") from None
    numbers.flags.writeable = False
    return float(numbers) if numbers.ndim == 0 else numbers


_SORTS: dict[str, tuple[type, Callable[[str, Any], Any]]] = {
    "inertias": (Inertia, _inertia),
    "placements": (Transform, _placement),
}


def checked_changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that are not None, in new dicts of floats, read-only arrays, inertias and placements."""
    changes: dict[str, Any] = {}
    for key, values in given.items():
        if values is None:
            continue
        if key == "gravity":
            x = _numbers(key, values)
            if getattr(x, "shape", ()) != (3,) or not all(abs(g) < float("inf") for g in x):
                raise ModelError(f"gravity needs three finite numbers [m/s2]; got {values!r}")
            changes[key] = tuple(x.tolist())
            continue
        check_mapping(key, values, "names to their new values", 0)
        plain, check = _SORTS.get(key, (float, _numbers))
        changes[key] = {name: x if type(x) is plain else check(f"{key} of '{name}'", x) for name, x in values.items()}
    return changes


def merged(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return all changes; later changes replace earlier changes of the same parameter."""
    both = {**earlier, **later}
    for key in earlier.keys() & later.keys() - {"gravity"}:
        both[key] = {**earlier[key], **later[key]}
    return both


def replaced(d: Description, changes: Mapping[str, Any]) -> Description:
    """Return the description with these parameters, which the core has already checked."""
    frames = {frame.name for frame in d.frames}
    ends = {name: at for name, at in changes.get("placements", {}).items() if name not in frames}

    def of(name: str, fields: Mapping[str, str]) -> dict[str, Any]:
        return {field: changes[key][name] for key, field in fields.items() if name in changes.get(key, ())}

    def changed(part: P, terms: Mapping[str, Any]) -> P:
        return replace(part, **terms) if terms else part  # type: ignore[type-var]

    joints = []
    for spec in d.joints:
        terms: dict[str, Any] = {f"at_{e}": ends[at] for e in ("parent", "child") if (at := f"{spec.name}.{e}") in ends}
        if numbers := of(spec.name, OF_JOINT_TYPES):
            terms["joint"] = spec.joint._with(numbers)
        joints.append(changed(spec, terms))
    return replace(
        d,
        gravity=changes.get("gravity", d.gravity),
        bodies=tuple(changed(body, of(body.name, {"inertias": "inertia"})) for body in d.bodies),
        joints=tuple(joints),
        frames=tuple(changed(frame, of(frame.name, {"placements": "placement"})) for frame in d.frames),
        constraints=tuple(changed(c, of(c.name, {"lengths": "length"})) for c in d.constraints),
        springs=tuple(changed(s, of(s.name, OF_SPRINGS)) for s in d.springs),
    )
