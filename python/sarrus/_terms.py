"""A description in the core's terms: plain lists of numbers and names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .description import (
    BodySpec,
    ConstraintSpec,
    CouplerSpec,
    Description,
    DistanceSpec,
    FrameSpec,
    JointSpec,
    RollingSpec,
    SpringSpec,
    TargetSpec,
)
from .errors import ModelError
from .laws import Law
from .spatial import Transform

PARTS: dict[str, Any] = {
    "bodies": BodySpec,
    "joints": JointSpec,
    "frames": FrameSpec,
    "constraints": ConstraintSpec,
    "springs": SpringSpec,
}


def core_terms(d: Description) -> tuple[Any, ...]:
    """The arguments of the core's Mechanism; TypeError or ModelError where the description holds something else than it should."""
    if not isinstance(d, Description):
        raise TypeError(f"a Mechanism is made of a description, as Builder.build() makes one; got {d!r}")
    for name, kind in PARTS.items():
        given = getattr(d, name)
        if not isinstance(given, Sequence) or not all(isinstance(part, kind) for part in given):
            raise ModelError(f"a description's {name} are a tuple of such parts; got {given!r}")
    return (
        d.name,
        list(d.gravity),
        [(b.name, _inertia(b.inertia.parameters)) for b in d.bodies],
        [_joint(j) for j in d.joints],
        [(f.name, f.body, _twelve(f.placement)) for f in d.frames],
        [_constraint(c) for c in d.constraints],
        [(s.name, *s.first, *s.second, s.stiffness, s.rest_length, s.damping) for s in d.springs],
    )


def _joint(j: JointSpec) -> dict[str, Any]:
    passive = ("armature", "damping", "friction", "stiffness", "rest")
    return {
        "axis": [0.0, 0.0, 1.0],
        "axis2": [0.0, 0.0, 1.0],
        "pitch": 0.0,
        "mask": 0,
        "fixed": [0.0] * 6,
        **j.joint._core_parameters(),
        **{key: getattr(j.joint, key).tolist() for key in passive},
        "name": j.name,
        "kind": j.joint.kind,
        "parent": j.parent,
        "child": j.child,
        "at_parent": _twelve(j.at_parent),
        "at_child": _twelve(j.at_child),
        "actuated": j.actuated,
        "nq": j.joint.nq,
        "nv": j.joint.nv,
        "tree": j.tree,
        "loop": j.loop,
        "laws": tuple(_law(law) for law in j.laws),
    }


def _constraint(c: ConstraintSpec) -> dict[str, Any]:
    if isinstance(c, DistanceSpec):
        (parent, at_parent), (child, at_child) = c.first, c.second
        return {
            "kind": "Distance",
            "name": c.name,
            "parent": parent,
            "child": child,
            "at_parent": at_parent,
            "at_child": at_child,
            "length": c.length,
        }
    if isinstance(c, CouplerSpec):
        return {"kind": "Coupler", "name": c.name, "terms": list(c.terms), "offset": c.offset, "law": _law(c.law)}
    if isinstance(c, RollingSpec):
        return {
            "kind": "Rolling",
            "name": c.name,
            "parent": c.on,
            "child": c.body,
            "at_parent": c.point,
            "at_child": c.center,
            "normal": c.normal,
            "axle": c.axle,
            "length": c.radius,
            "other_radius": c.on_radius,
        }
    if isinstance(c, TargetSpec):
        return {"kind": "Target", "name": c.name, "frame": c.frame, "turned": c.turned}
    return {
        "kind": "Pfaffian",
        "name": c.name,
        "joints": list(c.joints),
        "rows": len(c.value),
        "matrix": [x for row in c.rows for x in row] if not callable(c.rows) else [],
        "value": list(c.value),
    }


def _law(law: Law | None) -> tuple[Any, ...] | None:
    return None if law is None else (law.starts, np.ravel(law.coefficients).tolist(), np.ravel(law.harmonics).tolist())


def _twelve(placement: Transform) -> list[float]:
    return [*placement.rotation.ravel().tolist(), *placement.translation.tolist()]


def _inertia(parameters: NDArray[np.float64]) -> list[float]:
    """The core stores a symmetric matrix row by row, xx xy xz yy yz zz; the regressor's order is xx xy yy xz yz zz."""
    numbers: list[float] = parameters[[0, 1, 2, 3, 4, 5, 7, 6, 8, 9]].tolist()
    return numbers
