"""What the core is told of contacts and limits of a :class:`~sarrus.control.TaskControl`, and what limits are called in its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._arrays import checked_number, real_array
from ..description.joints import middle, unit_axis
from ..errors import ModelError, ShapeError
from ..mechanism import Mechanism
from .coordinates import coordinate, loses_turns
from .tasks import Limits, PointContact, SurfaceContact

FAR = 1e300  # no limit: the core knows no infinity


def contact_rows(contact: PointContact | SurfaceContact) -> int:
    """How many components its force has."""
    return 6 if isinstance(contact, SurfaceContact) else 3 if contact.friction > 0.0 else 1


def check_frame(robot: Mechanism, name: str) -> None:
    """NameNotFoundError where there is no such body or frame."""
    if name not in robot.frames:
        robot.pose(robot.neutral(), name)  # which says what there is


def contact_terms(robot: Mechanism, contact: Any) -> dict[str, Any]:
    """A contact, with the axes along which it pushes: of the frame, or of the world."""
    if not isinstance(contact, (PointContact, SurfaceContact)):
        raise TypeError(f"contacts of TaskControl are PointContact or SurfaceContact; got {contact!r}")
    what = f"{type(contact).__name__} of '{contact.frame}'"
    check_frame(robot, contact.frame)
    friction, damping = (
        checked_number(f"{name} of {what}", getattr(contact, name), "") for name in ("friction", "damping")
    )
    if friction < 0.0 or damping < 0.0:
        raise ModelError(f"friction and damping of {what} must not be negative; got {friction!r} and {damping!r}")
    term: dict[str, Any] = {"frame": contact.frame, "friction": friction, "damping": damping, "half": (0.0, 0.0)}
    if isinstance(contact, PointContact):
        axes = np.asarray(_core.axis_frame(tuple(unit_axis(contact.normal))))
        term |= {"in_world": True, "rows": contact_rows(contact), "torsion": 0.0}
        return term | {"axes": [*axes.ravel().tolist(), 0.0, 0.0, 0.0]}
    size = real_array(f"size of {what}", contact.size)
    torsion = friction * 0.5 * float(size.min(initial=np.inf)) if contact.torsion is None else contact.torsion
    torsion = checked_number(f"torsion of {what}", torsion, "")
    if size.shape != (2,) or not (size > 0.0).all() or torsion < 0.0:
        raise ModelError(f"size of {what} is two positive lengths, and torsion not negative; got {contact!r}")
    term |= {"in_world": False, "rows": contact_rows(contact), "torsion": torsion, "half": tuple((0.5 * size).tolist())}
    return term | {"axes": [*np.eye(3).ravel().tolist(), 0.0, 0.0, 0.0]}


def limit_terms(
    robot: Mechanism, limits: Limits | None, actuated: Sequence[str], contacts: Sequence[PointContact | SurfaceContact]
) -> tuple[dict[str, Any], list[str]]:
    """The limits, and their names in the order in which the core has them."""
    moving = () if limits is None else (*robot.joints, *robot.loop_joints)
    limits = limits or Limits(np.inf, np.inf, {})
    horizon = checked_number("horizon of Limits", limits.horizon)
    lower, upper, power, names = [], [], [], []
    for name in actuated:
        joint = robot.joint(name)
        rated = np.inf if joint.type.effort_limit is None else joint.type.effort_limit
        rated = np.broadcast_to(real_array("effort limit", rated), (joint.type.nv,))
        asked = _of_joint(limits.effort, name, None)
        low, high = (-rated, rated) if asked is None else _both("effort", name, asked)
        strong = _of_joint(limits.power, name, np.inf)
        if not (np.all(np.asarray(low) <= 0.0) and np.all(np.asarray(high) >= 0.0) and np.all(np.asarray(strong) >= 0)):
            raise ModelError(
                f"limits of effort and power of '{name}' must leave 0 between them; got {asked!r}, {strong!r}"
            )
        for k in range(joint.type.nv):
            lower.append(max(float(np.broadcast_to(low, (joint.type.nv,))[k]), -FAR))
            upper.append(min(float(np.broadcast_to(high, (joint.type.nv,))[k]), FAR))
            power.append(min(float(np.broadcast_to(strong, (joint.type.nv,))[k]), FAR))
            names.append(f"effort of '{name}'" + (f"[{k}]" if joint.type.nv > 1 else ""))
    joints = []
    for name in moving:
        joints += _limits_of(robot, name, limits, names)
    for what in ("effort", "velocity", "position", "power", "braking"):
        if isinstance(named := getattr(limits, what), Mapping):
            for name in named:
                robot.joint(name)
                if what in ("effort", "power") and name not in actuated:
                    raise ModelError(f"{what} of Limits names '{name}', which has no motor here")
    for contact in contacts:
        if isinstance(contact, PointContact) and contact.friction == 0.0:
            names.append(f"contact of '{contact.frame}' pulls")
            continue
        surface = isinstance(contact, SurfaceContact)
        sides = ["x", "x", "y", "y", "centre of pressure along y", "centre of pressure along y"]
        sides += ["centre of pressure along x", "centre of pressure along x", "torsion", "torsion"]
        names.append(f"contact of '{contact.frame}' pulls")
        names += [
            f"friction of '{contact.frame}' along {s}" if len(s) == 1 else f"{s} of '{contact.frame}'"
            for s in sides[: 10 if surface else 4]
        ]
    term = {"effort_lower": lower, "effort_upper": upper, "power": power, "joints": joints, "horizon": horizon}
    return term, names


def _limits_of(robot: Mechanism, name: str, limits: Limits, names: list[str]) -> list[tuple[Any, ...]]:
    joint, made = robot.joint(name), []
    rated = np.inf if joint.type.velocity_limit is None else joint.type.velocity_limit
    rated = np.broadcast_to(real_array("velocity limit", rated), (joint.type.nv,))
    fast = np.broadcast_to(_of_joint(limits.velocity, name, rated), (joint.type.nv,))
    braking = checked_number(f"braking of '{name}'", _of_joint(limits.braking, name, 10.0))
    low, high = np.full(joint.type.nv, -np.inf), np.full(joint.type.nv, np.inf)
    position = limits.position.get(name) if isinstance(limits.position, Mapping) else None
    if position is not None:
        low, high = (
            np.broadcast_to(real_array("position", x), (joint.type.nv,)) for x in _both("position", name, position)
        )
    elif limits.position is None and joint.limits is not None and not joint.type.quaternion:
        low, high = joint.limits
    for k in range(joint.type.nv):
        speed, bounds = float(fast[k]), (float(low[k]), float(high[k]))
        if not speed >= 0.0 or not bounds[0] < bounds[1]:
            raise ModelError(f"limits of '{name}' leave it no motion: velocity {speed!r}, position {bounds}")
        if not np.isfinite([speed, *bounds]).any():
            continue
        iq = iv = joint._all_v.start + k
        turns = False
        if np.isfinite(bounds).any():
            iq, iv = coordinate(robot, name, k, "a limit of position")
            turns = loses_turns(robot, name, k)
        else:
            iq = joint._all_q.start  # not looked at
        made.append(
            (iq, iv, turns, max(bounds[0], -FAR), min(bounds[1], FAR), min(speed, FAR), braking, middle(*bounds))
        )
        names.append(f"motion of '{name}'" + (f"[{k}]" if joint.type.nv > 1 else ""))
    return made


def _of_joint(value: Any, name: str, default: Any) -> Any:
    if value is None:
        return default
    if isinstance(value, Mapping):
        return value.get(name, default)
    return value


def _both(what: str, name: str, value: Any) -> tuple[Any, Any]:
    """(lower, upper) of a number that holds both ways, or of two."""
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ShapeError(f"{what} of '{name}' is a number or (lower, upper); got {value!r}")
        return value[0], value[1]
    if what == "position":
        raise ShapeError(f"position of '{name}' is (lower, upper); got {value!r}")
    return -np.asarray(value, dtype=float), np.asarray(value, dtype=float)
