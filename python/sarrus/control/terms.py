"""Force elements as the core wants them: where they act, their laws, and the numbers that a sweep may vary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..description.joints import Revolute, middle, unit_axis
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ShapeError
from ..laws import as_law, law_terms
from .coordinates import checked_index, coordinate, loses_turns
from .elements import (
    PID,
    ComputedTorque,
    Contact,
    EndStop,
    ForceElement,
    PrescribedEffort,
    ReactionWheel,
    Stiction,
    Thruster,
    finite,
)

from .task_control import TaskControl

Numbers = NDArray[np.float64]
Term = tuple[Any, ...]
POSITIVE, NOT_NEGATIVE = "be positive", "not be negative"


@dataclass
class ForceElements:
    """Force elements with their numbers (parameters,) or (runs, parameters) and how many internal states they have."""

    terms: dict[str, list[Any]] = field(default_factory=lambda: {kind: [] for kind in (*KINDS, "effort_limits")})
    columns: list[list[Numbers]] = field(default_factory=list)
    nz: int = 0

    @property
    def parameters(self) -> Numbers:
        """(parameters,), or (runs, parameters) if some number differs from run to run."""
        flat = [number for group in self.columns for number in group]
        if not flat:
            return np.zeros(0)
        try:
            return np.ascontiguousarray(np.stack(np.broadcast_arrays(*flat), axis=-1))
        except ValueError:
            sizes = sorted({x.shape for x in flat if x.ndim})
            raise ShapeError(f"numbers that differ from run to run must be equally many; got shapes {sizes}") from None

    def as_tuple(self) -> tuple[dict[str, list[Any]], list[Any]]:
        """Terms and parameters, for a checkpoint."""
        return self.terms, self.parameters.tolist()


def force_elements(
    mechanism: LoopFunctions, elements: Sequence[ForceElement], effort_limits: Sequence[float] = ()
) -> ForceElements:
    """What the core is told of the elements; ModelError where they do not fit the mechanism.

    What they give in all along a velocity is kept within its effort limit, (nv,) or none.
    """
    made = ForceElements()
    made.terms["effort_limits"] = list(effort_limits)
    groups: dict[str, list[list[Numbers]]] = {kind: [] for kind in KINDS}
    for element in elements:
        row = next((ELEMENTS[kind] for kind in ELEMENTS if isinstance(element, kind)), None)
        if row is None:
            raise TypeError(
                f"no element of control: {element!r}; a controller is a function (t, q, v) -> tau, an element such as "
                "sarrus.control.PID, or a list of these"
            )
        kind, told = row
        term, numbers = told(mechanism, element, effort_limits)
        if kind == "wheels" and term[0] in [other[0] for other in made.terms[kind]]:
            raise ModelError(f"joint '{element.joint}' has one ReactionWheel; there are several")
        if kind in ALONE and made.terms[kind]:
            raise ModelError(f"one {type(element).__name__} drives all joints; there are several")
        made.terms[kind].append(term)
        groups[kind].append(numbers)
        made.nz += term[0]["states"] if kind == "task_controls" else kind in ("controllers", "stictions")
    made.columns = [numbers for kind in KINDS for numbers in groups[kind]]  # in the order in which the core reads them
    return made


# ---- one by one: what the core is told of an element, and its numbers ------------------------------------------------


def _pid(mechanism: LoopFunctions, element: PID, effort_limits: Sequence[float]) -> tuple[Term, list[Numbers]]:
    iq, iv = coordinate(mechanism, element.joint, element.index, "PID")
    law = law_terms(as_law(element.target, f"target of '{element.joint}'"))
    limits = _limits(element, element.limits)
    if effort_limits:  # beyond it z would wind up
        limits = [np.clip(x, -effort_limits[iv], effort_limits[iv]) for x in limits]
    term = iq, iv, law, loses_turns(mechanism, element.joint, element.index)
    return term, [*_numbers(element, proportional="", integral="", derivative=""), *limits]


def _prescribed_effort(mechanism: LoopFunctions, element: PrescribedEffort, _: object) -> tuple[Term, list[Numbers]]:
    law = law_terms(as_law(element.law, f"effort of '{element.joint}'"))
    return (_velocity(mechanism, element.joint, element.index), law), []


def _stiction(mechanism: LoopFunctions, element: Stiction, _: object) -> tuple[Term, list[Numbers]]:
    term = (_velocity(mechanism, element.joint, element.index),)
    if element.sticking is None:
        element = replace(element, sticking=element.sliding)
    numbers = _numbers(element, sliding=POSITIVE, sticking=POSITIVE, stribeck_velocity=POSITIVE, stiffness=POSITIVE)
    if _less(numbers[1], numbers[0]):
        wanted = "no less than sliding"
        raise ModelError(f"sticking of Stiction must be {wanted}; got {element.sticking!r} and {element.sliding!r}")
    if element.damping is None:
        return term, [*numbers, 2.0 * np.sqrt(numbers[3])]
    return term, numbers + _numbers(element, damping=NOT_NEGATIVE)


def _contact(mechanism: LoopFunctions, element: Contact, _: object) -> tuple[Term, list[Numbers]]:
    _check_frame(mechanism, element.frame)
    offset, radius = (finite(f"{name} of Contact", getattr(element, name)) for name in ("offset", "radius"))
    if radius < 0.0:
        raise ModelError(f"radius of Contact must not be negative; got {radius!r}")
    term = (element.frame, (0.0, 0.0, 0.0), tuple(unit_axis(element.normal)), offset, radius, *_ground(element))
    signs = {"dissipation": NOT_NEGATIVE, "friction": NOT_NEGATIVE, "slip_velocity": POSITIVE}
    return term, _numbers(element, stiffness=POSITIVE, exponent=POSITIVE, **signs)


def _end_stop(mechanism: LoopFunctions, element: EndStop, _: object) -> tuple[Term, list[Numbers]]:
    iq, iv = coordinate(mechanism, element.joint, element.index, "an end stop")
    joint, limits = mechanism.joint(element.joint), element.limits
    if limits is None:
        if joint.limits is None:
            raise ModelError(f"joint '{element.joint}' has no limits: give limits=(lower, upper) to its EndStop")
        low, high = joint.limits
        limits = low[element.index], high[element.index]
    inertia = _felt_inertia(mechanism, iv)
    if element.stiffness is None:
        element = replace(element, stiffness=2.5e5 * inertia)
    (stiffness,) = _numbers(element, stiffness=POSITIVE)
    if element.damping is None:
        element = replace(element, damping=np.sqrt(stiffness * inertia))
    lower, upper = _limits(element, limits)
    term = (
        iq,
        iv,
        loses_turns(mechanism, element.joint, element.index),
        middle(float(np.mean(lower)), float(np.mean(upper))),
    )
    return term, [lower, upper, stiffness, *_numbers(element, damping=NOT_NEGATIVE)]


def _thruster(mechanism: LoopFunctions, element: Thruster, _: object) -> tuple[Term, list[Numbers]]:
    _check_frame(mechanism, element.frame)
    law = law_terms(as_law(element.thrust, f"thrust of '{element.frame}'"))
    return (element.frame, tuple(unit_axis(element.axis)), law), _limits(element, element.limits)


def _reaction_wheel(mechanism: LoopFunctions, element: ReactionWheel, _: object) -> tuple[Term, list[Numbers]]:
    law = law_terms(as_law(element.torque, f"torque of '{element.joint}'"))
    term = _velocity(mechanism, element.joint, 0), _inertia_of_wheel(mechanism, element.joint), law
    return term, _greatest(element, "torque_limit", "momentum_limit")


def _computed_torque(mechanism: LoopFunctions, element: ComputedTorque, _: object) -> tuple[Term, list[Numbers]]:
    if mechanism.nc:
        raise ModelError("ComputedTorque is for trees; where loops close, give a function that asks actuator_efforts()")
    if mechanism.nq != mechanism.nv:
        raise ModelError("ComputedTorque needs joints whose coordinates are as many as their velocities")
    if not isinstance(element.targets, Mapping):
        raise ModelError(f"targets of ComputedTorque map joints to laws or numbers; got {element.targets!r}")
    targets: list[Any] = [as_law(0.0, "a target")] * mechanism.nv
    for name, given in element.targets.items():
        joint = mechanism.joint(name)
        laws = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(laws) != joint.nv:
            raise ShapeError(f"joint '{name}' has {joint.nv} coordinates; it was given {len(laws)} targets")
        targets[joint.v_slice] = [as_law(law, f"target of '{name}'") for law in laws]
    gains = []
    for name in ("proportional", "derivative"):
        gain, nv = _array(f"{name} of ComputedTorque", getattr(element, name)), mechanism.nv
        if gain.shape not in ((), (nv,)) and not (gain.ndim == 2 and gain.shape[1] in (1, nv)):
            wanted = f"a number, (nv,) = ({nv},), or of many runs (runs, {nv}) or (runs, 1)"
            raise ShapeError(f"{name} of ComputedTorque is {wanted}; got {gain.shape}")
        gains += list(np.moveaxis(np.broadcast_to(gain, (*gain.shape[:-1], nv)), -1, 0))
    return tuple(law_terms(law) for law in targets), gains


def _task_control(mechanism: LoopFunctions, element: TaskControl, _: object) -> tuple[Term, list[Numbers]]:
    if element.robot is not mechanism:
        raise ModelError(
            f"this TaskControl was made for another mechanism, '{element.robot.name}'; as a controller of '{mechanism.name}' it is a function: "
            "give lambda t, q, v: law(t, q, v)"
        )
    return (element._terms,), element._columns


Told = Callable[[LoopFunctions, Any, Sequence[float]], tuple[Term, list[Numbers]]]
ELEMENTS: dict[type, tuple[str, Told]] = {  # their kind, of which the core reads one after the other
    PID: ("controllers", _pid),
    PrescribedEffort: ("efforts", _prescribed_effort),
    Stiction: ("stictions", _stiction),
    Contact: ("contacts", _contact),
    EndStop: ("end_stops", _end_stop),
    Thruster: ("thrusters", _thruster),
    ReactionWheel: ("wheels", _reaction_wheel),
    ComputedTorque: ("computed_torque", _computed_torque),
    TaskControl: ("task_controls", _task_control),
}
KINDS = tuple(kind for kind, _ in ELEMENTS.values())
ALONE = ("computed_torque",)  # kinds of which there is one


# ---- where they act --------------------------------------------------------------------------------------------------


def _velocity(mechanism: LoopFunctions, name: str, index: int) -> int:
    joint = mechanism.joint(name)
    return int(joint._all_v.start) + checked_index(name, joint.type.nv, index, "velocities")


def _check_frame(mechanism: LoopFunctions, name: str) -> None:
    if name not in mechanism.frames:
        mechanism.pose(mechanism.neutral(), name)  # which says what there is


def _ground(element: Contact) -> tuple[Any, ...]:
    """Law and direction of the ground's height."""
    if element.height is None:
        return None, (0.0, 0.0, 0.0)
    along, normal = unit_axis(element.along), unit_axis(element.normal)
    if not abs(along @ normal) < 1e-9:
        raise ModelError(f"along of Contact must be across its normal; got {element.along!r} and {element.normal!r}")
    return law_terms(as_law(element.height, "height of Contact")), tuple(along)


def _inertia_of_wheel(mechanism: LoopFunctions, name: str) -> float:
    """About the joint's axis."""
    joint = mechanism.joint(name)
    spec = next(j for j in mechanism.description.joints if j.name == name)
    if not isinstance(spec.joint, Revolute):
        raise ModelError(f"a ReactionWheel needs a Revolute joint; '{name}' is {joint.type}")
    wheel = next(b for b in mechanism.description.bodies if b.name == spec.child)
    about = wheel.inertia.transformed(spec.at_child.inverse()).about_origin
    return float(spec.joint.axis @ about @ spec.joint.axis)


def _greatest(element: ReactionWheel, *names: str) -> list[Numbers]:
    """Numbers that are not negative, or infinite."""
    arrays = []
    for name in names:
        value, what = getattr(element, name), f"{name} of {type(element).__name__}"
        x = _array(what, value, finite=False)
        if x.ndim > 1:
            raise ShapeError(f"{what} is a number, or (runs,); got {x.shape}")
        if not (x >= 0.0).all():  # so that NaN fails too
            raise ModelError(f"{what} must not be negative; got {value!r}")
        arrays.append(x)
    return arrays


def _felt_inertia(mechanism: LoopFunctions, iv: int) -> float:
    """What a force along a velocity accelerates in the neutral configuration, all other joints being free."""
    q = mechanism.neutral()
    mass = mechanism.mass_matrix(q)
    along = np.concatenate([np.eye(mechanism.nv), mechanism._loop_joint_jacobian(q)])[iv]
    try:
        felt = 1.0 / float(along @ np.linalg.inv(mass) @ along)
    except (np.linalg.LinAlgError, ZeroDivisionError):
        felt = 0.0
    return felt if np.isfinite(felt) and felt > 0.0 else float(along @ mass @ along) or 1.0


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _limits(element: PID | EndStop | Thruster, limits: Any) -> list[Numbers]:
    what = f"limits of {type(element).__name__}"
    if not isinstance(limits, (tuple, list, np.ndarray)) or len(limits) != 2:
        raise ModelError(f"{what} are two, (lower, upper); got {limits!r}")
    lower, upper = (_array(what, x, finite=False) for x in limits)
    if max(lower.ndim, upper.ndim) > 1:
        raise ShapeError(f"{what} are numbers, or (runs,) each; got {lower.shape} and {upper.shape}")
    # so that NaN fails too; an effort must be left between them
    if not ((lower < np.inf).all() and (upper > -np.inf).all()) or _less(upper, lower):
        raise ModelError(f"{what} are (lower, upper), the one no greater than the other; got {limits!r}")
    return [lower, upper]


def _less(x: Numbers, y: Numbers) -> bool:
    """Whether some x is less than its y; where they are not equally many, ForceElements.parameters says so."""
    try:
        return bool((x < y).any())
    except ValueError:
        return False


def _numbers(element: ForceElement, **signs: str) -> list[Numbers]:
    """Numbers of an element by their names, each () or (runs,) and of a sign; ModelError names the one that is wrong."""
    arrays = []
    for name, sign in signs.items():
        value, what = getattr(element, name), f"{name} of {type(element).__name__}"
        x = _array(what, value)
        if x.ndim > 1:
            raise ShapeError(f"{what} is a number, or (runs,); got {x.shape}")
        if (sign and not (x >= 0.0).all()) or (sign == POSITIVE and not (x > 0.0).all()):
            raise ModelError(f"{what} must {sign}; got {value!r}")
        arrays.append(x)
    return arrays


def _array(what: str, value: Any, *, finite: bool = True) -> Numbers:
    if np.ma.is_masked(value):
        raise TypeError(f"{what} has masked entries, whose hidden values would count; give .filled(value)")
    try:
        x = np.asarray(value)
    except ValueError:  # rows of unequal lengths
        x = np.asarray(None)
    if x.dtype.kind not in "fiu" and x.size:
        raise ModelError(f"{what} must be a number, or one a run; got {value!r}")
    if finite and not np.isfinite(x.astype(np.float64)).all():
        raise ModelError(f"{what} must be finite; got {value!r}")
    return x.astype(np.float64)
