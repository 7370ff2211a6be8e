"""Dimensions of a mechanism (all parameters except inertias) by name, and derivatives of the equations of motion with respect to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from .._arrays import Array, ArrayLike
from ..description.constraints import KINDS, ConstraintSpec, CouplerSpec, RollingSpec
from ..description.joints import Helical, JointType
from .loop_operations import LoopFunctions
from .operations import _undeclared

TERMS = ("stiffness", "rest", "damping", "friction", "armature", "pitch")
_inverse = _undeclared("inverse_dynamics_by_dimensions")
_forward = _undeclared("forward_dynamics_by_dimensions")


def inverse_by_dimensions(
    robot: LoopFunctions, state: tuple[ArrayLike, ...], cotangent: ArrayLike, options: dict[str, Any]
) -> Array:
    """Return the product (..., n) of a cotangent of the generalised force with its derivatives with respect to dimensions."""
    return cast(
        Array, _inverse(robot, *state, cotangent, **{**options, "return_status": True})[0][..., places(robot)[1]]
    )


def forward_by_dimensions(
    robot: LoopFunctions, state: tuple[ArrayLike, ...], cotangent: ArrayLike, options: dict[str, Any]
) -> Array:
    """Return the product (..., n) of a cotangent of the acceleration with its derivatives with respect to dimensions.

    The entries are NaN for dimensions whose change opens the loops.
    """
    answer = _forward(robot, *state, cotangent, **{**options, "return_status": True})[0]
    value, opens = (answer[..., k, places(robot)[1]] for k in (0, 1))
    unit = cast(Any, robot)._units_of_motion[1][0, : robot.nv]
    speed = np.abs(np.asarray(state[1]) / unit).max(axis=-1, initial=1.0)[..., None]
    return np.where(np.abs(opens) > 1e-6 * speed, np.nan, value)


def places(robot: LoopFunctions) -> tuple[dict[str, slice], Array]:
    """Return the slice of each name of :func:`dimensions` in the parameter vector, and the index of each entry in the core's parameter vector."""
    cached = vars(robot).get("_dimension_places")
    if cached is None:
        names: dict[str, slice] = {}
        places: list[int] = []
        for name, at in _named(robot):
            names[name] = slice(len(places), len(places) + len(at))
            places.extend(at)
        cached = vars(robot)["_dimension_places"] = names, np.array(places, dtype=int)
    return cast("tuple[dict[str, slice], Array]", cached)


def _named(robot: LoopFunctions) -> Iterator[tuple[str, range]]:
    springs, constraints = robot.description.springs, [c.spec for c in robot._constraints.values()]
    first, velocities = 12 * (len(robot.bodies) + len(constraints)), robot._all_nv
    for name, k in robot._load_places:
        yield f"{name}.parent", range(12 * k, 12 * k + 6)
        yield f"{name}.child", range(12 * k + 6, 12 * k + 12)
    for name, j in robot._joints.items():
        for k, term in enumerate(TERMS):
            if j.type.nv and _has(j.type, term) and (term != "pitch" or not j.closes_loop):
                start = first + k * velocities
                yield f"{name}.{term}", range(start + j._all_v.start, start + j._all_v.stop)
    first += len(TERMS) * velocities
    for spring in springs:
        for k, term in enumerate(("stiffness", "rest", "damping")):
            yield f"{spring.name}.{term}", range(first + k, first + k + 1)
        first += 3
    for spec in constraints:
        for name, count in _own_numbers(spec):
            yield f"{spec.name}.{name}", range(first, first + count)
            first += count
    yield "gravity", range(first, first + 3)


def _has(joint: JointType, term: str) -> bool:
    """Return True if the joint type has this parameter; a spring needs velocities that are rates of coordinates, or a ball joint."""
    if term == "pitch":
        return isinstance(joint, Helical)
    if term not in ("stiffness", "rest") or all(joint.rates):
        return True
    return term == "stiffness" and joint.quaternion and joint.nv == 3


def _own_numbers(spec: Any) -> list[tuple[str, int]]:
    if not isinstance(spec, ConstraintSpec):
        return []  # a joint
    if isinstance(spec, RollingSpec):
        return [("radius", 1), ("on_radius", 1)]
    if isinstance(spec, CouplerSpec):
        return [("coefficients", sum(len(coefficients) for _, _, coefficients in spec.terms)), ("offset", 1)]
    return [(name, 1) for name in KINDS.get(spec.kind) or ()]
