"""Input of the core for motors, contacts and limits of a :class:`~sarrus.control.TaskControl`, and names of limits in its solutions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, checked_number, real_array
from ..description.joints import middle, unit_axis
from ..errors import ModelError, ShapeError
from ..laws import as_law, law_terms
from ..mechanism import Mechanism
from .coordinates import turning
from .shared_rows import rigid_groups
from .task_terms import check_frame, coordinate_terms
from .tasks import Limits, PointContact, SurfaceContact

FAR = 1e300  # value that means "no limit", because the core does not support infinity
NO_LIMITS = Limits(np.inf, np.inf, {})


def contact_terms(robot: Mechanism, contact: Any) -> dict[str, Any]:
    """Return the core's input for a contact, with the axes of its force: those of the frame, or in the world."""
    label = f"{type(contact).__name__} of '{contact.frame}'"
    check_frame(robot, contact.frame)
    friction, damping = (
        checked_number(f"{name} of {label}", getattr(contact, name), "") for name in ("friction", "damping")
    )
    if friction < 0.0 or damping < 0.0:
        raise ModelError(f"friction and damping of {label} must not be negative; got {friction!r} and {damping!r}")
    torsion, size, axes = 0.0, np.zeros(2), None
    plane = {"radius": 0.0, "offset": 0.0, "within": np.inf}
    if isinstance(contact, PointContact):
        plane = _plane(robot, contact, label)
        torsion = checked_number(f"torsion of {label}", contact.torsion, "")
        if torsion < 0.0 or (torsion and not friction):
            raise ModelError(f"torsion of {label} must not be negative, and needs friction; got {contact.torsion!r}")
        axes = [*np.ravel(_core.axis_frame(tuple(unit_axis(contact.normal)))).tolist(), 0.0, 0.0, 0.0]
    else:
        size = real_array(f"size of {label}", contact.size)
        torsion = friction * 0.5 * float(size.min(initial=np.inf)) if contact.torsion is None else contact.torsion
        torsion = checked_number(f"torsion of {label}", torsion, "")
        if size.shape != (2,) or not (size > 0.0).all() or torsion < 0.0:
            raise ModelError(f"size of {label} must be two positive lengths, and torsion not negative; got {contact!r}")
    half_x, half_y = (0.5 * size).tolist()
    return {
        "frame": contact.frame, "world_axes": axes, "rows": contact._rows, "friction": friction, "torsion": torsion,
        "half_x": half_x, "half_y": half_y, "damping": damping, "together": [], **plane,
        "stands": None if contact.stands is None else law_terms(as_law(contact.stands, f"stands of {label}")),
    }  # fmt: skip


def _plane(robot: Mechanism, contact: PointContact, label: str) -> dict[str, float]:
    """Return the parameters of a contact's sphere and plane; without a plane, the contact is always within reach."""
    within = 1e-3 * robot._length if contact.within is None else contact.within  # as in method="contact"
    numbers = {
        "radius": contact.radius, "offset": 0.0 if contact.offset is None else contact.offset, "within": within,
    }  # fmt: skip
    numbers = {name: checked_number(f"{name} of {label}", x, "") for name, x in numbers.items()}
    if numbers["radius"] < 0.0 or numbers["within"] < 0.0:
        raise ModelError(f"radius and within of {label} must not be negative; got {contact.radius!r} and {within!r}")
    if contact.offset is None:
        if contact.within is not None:
            raise ModelError(f"within of {label} is a distance from a plane: also pass the plane's offset")
        numbers["within"] = np.inf
    return numbers


def all_contact_terms(robot: Mechanism, contacts: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the core's input for all contacts; contacts of one rigid body share a group and their mean damping."""
    terms = [contact_terms(robot, contact) for contact in contacts]
    frames = [term["frame"] for term in terms]
    for group in rigid_groups(robot, frames) if len(frames) > 1 else ():
        if len(group) > 1:
            members = [k for k, frame in enumerate(frames) if frame in group]
            damping = math.fsum(terms[k]["damping"] for k in members) / len(members)
            for k in members:
                terms[k] |= {"together": members, "damping": damping}
    return terms


def motor_terms(
    robot: Mechanism, limits: Limits | None, actuated: Sequence[str], weights: Array
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the core's input for motors with their limits, and the names of the limits."""
    limits, motors, names = limits or NO_LIMITS, list[dict[str, Any]](), list[str]()
    for name in actuated:
        joint = robot.joint(name)
        n, first = joint.type.nv, joint._all_v.start
        rated = np.inf if joint.type.effort_limit is None else real_array("effort limit", joint.type.effort_limit)
        effort, power = _of_joint(limits.effort, name, None), _of_joint(limits.power, name, np.inf)
        low, high = (-rated, rated) if effort is None else _both("effort", name, effort)
        if not (np.all(np.asarray(low) <= 0.0) and np.all(np.asarray(high) >= 0.0) and np.all(np.asarray(power) >= 0)):
            raise ModelError(f"limits of effort and power of '{name}' must include 0; got {effort!r}, {power!r}")
        bounds = np.stack([np.broadcast_to(np.clip(x, -FAR, FAR), (n,)) for x in (low, high, power)], axis=-1)
        angular = turning(joint.type)
        for k, (lower, upper, most) in enumerate(bounds.tolist()):
            same = len(list(takewhile(angular[k].__eq__, angular[k:])))
            motors.append({
                "v": first + k, "angular": angular[k], "same": same, "weight": float(weights[len(motors)]), "lower": lower,
                "upper": upper, "power": most,
            })  # fmt: skip
        names += _named("effort", name, n)
    for quantity in ("effort", "velocity", "position", "power", "braking"):
        if isinstance(named := getattr(limits, quantity), Mapping):
            for name in named:
                robot.joint(name)
                if quantity in ("effort", "power") and name not in actuated:
                    raise ModelError(f"{quantity} of Limits: joint '{name}' has no motor in this controller")
    return motors, names


def motion_terms(robot: Mechanism, limits: Limits | None) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the core's input for position and velocity limits of all joints, and their names."""
    terms, names = list[dict[str, Any]](), list[str]()
    for name in () if limits is None else (*robot.joints, *robot.loop_joints):
        assert limits is not None
        joint = robot.joint(name)
        n = joint.type.nv
        velocity = _of_joint(limits.velocity, name, joint.type.velocity_limit)
        low, high = -np.inf, np.inf
        position = limits.position.get(name) if isinstance(limits.position, Mapping) else None
        if position is not None:
            low, high = _both("position", name, position)
        elif limits.position is None and joint.limits is not None and not joint.type.quaternion:
            low, high = joint.limits  # type: ignore[assignment]
        braking = checked_number(f"braking of '{name}'", _of_joint(limits.braking, name, 10.0))
        ends = {"velocity": np.inf if velocity is None else velocity, "lower position": low, "upper position": high}
        columns = [np.broadcast_to(real_array(f"{key} of '{name}'", x), (n,)).tolist() for key, x in ends.items()]
        for k, (speed, lower, upper) in enumerate(zip(*columns, strict=True)):
            if not speed >= 0.0 or not lower < upper:
                raise ModelError(f"limits of '{name}' allow no motion: velocity {speed!r}, position {lower, upper}")
            placed = np.isfinite([lower, upper]).any()
            if not placed and not np.isfinite(speed):
                continue
            terms.append({
                "coordinate": coordinate_terms(robot, name, k, "a limit of position") if placed else _velocity_terms(robot, name, k),
                "lower": max(lower, -FAR), "upper": min(upper, FAR), "velocity": min(speed, FAR), "braking": braking,
                "middle": middle(lower, upper),
            })  # fmt: skip
            names.append(_named("motion", name, n)[k])
    return terms, names


def cone_names(contact: PointContact | SurfaceContact) -> list[str]:
    """Return the names of the sides of a contact's cone."""
    frame, names = contact.frame, [f"contact of '{contact.frame}' pulls"]
    if contact._rows > 1:
        names += [f"friction of '{frame}' along {axis}" for axis in "xxyy"]
    if contact._rows == 4:
        names += [f"torsion of '{frame}'"] * 2
    if contact._rows == 6:
        sides = [f"centre of pressure along {axis}" for axis in "yyxx"]
        names += [f"{side} of '{frame}'" for side in (*sides, "torsion", "torsion")]
    return names


def _velocity_terms(robot: Mechanism, name: str, index: int) -> dict[str, Any]:
    """Return the core's input for a velocity of any joint; the coordinate is a placeholder."""
    joint = robot.joint(name)
    return {"q": joint._all_q.start, "v": joint._all_v.start + index, "turns": False, "angular": turning(joint.type)[index]}  # fmt: skip


def _named(label: str, name: str, count: int) -> list[str]:
    return [f"{label} of '{name}'" + (f"[{k}]" if count > 1 else "") for k in range(count)]


def _of_joint(value: Any, name: str, default: Any) -> Any:
    if value is None:
        return default
    if isinstance(value, Mapping):
        return value.get(name, default)
    return value


def _both(label: str, name: str, value: Any) -> tuple[Any, Any]:
    """Return (lower, upper) of a symmetric limit, or of a pair."""
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ShapeError(f"{label} of '{name}' must be a number or (lower, upper); got {value!r}")
        return value[0], value[1]
    if label == "position":
        raise ShapeError(f"position of '{name}' must be (lower, upper); got {value!r}")
    return -np.asarray(value, dtype=float), np.asarray(value, dtype=float)
