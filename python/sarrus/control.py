"""What acts on a mechanism in a simulation, without Python in the loop: controllers, prescribed efforts, sticking friction, contact.

Any of them, or several in a list, is a ``controller`` of :func:`~sarrus.simulate`. Their numbers may be arrays (runs,) for
:func:`~sarrus.simulate_many`. Targets are :mod:`laws <sarrus.laws>` of time, or numbers.

>>> import sarrus
>>> robot = sarrus.mechanisms.pendulum()
>>> hold = sarrus.control.PID("pivot", proportional=100.0, derivative=20.0, target=0.5)
>>> run = sarrus.simulate(robot, [0.0], [0.0], 4.0, controller=hold)
>>> float(run.q[-1, 0].round(2))
0.46
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ModelError, ShapeError
from .joints import unit_axis
from .laws import Law, as_law
from .state import StateFunctions

__all__ = ["PID", "ComputedTorque", "Contact", "PrescribedEffort", "Stiction", "rest_to_rest"]

Number = float | ArrayLike


@dataclass(frozen=True, eq=False)
class PID:
    """Proportional, integral and derivative control of one joint coordinate, within limits.

    u = kp e + kd de/dt + z with dz/dt = ki e and e = target(t) - q. While u is at a limit z does not go on towards it.

    Attributes
    ----------
    joint, index : the joint, and which of its coordinates
    proportional, integral, derivative : kp [N m/rad or N/m], ki [per s], kd [s times]
    target : law, or number [rad or m]
    limits : (lower, upper) of the effort [N m or N]
    """

    joint: str
    proportional: Number = 0.0
    integral: Number = 0.0
    derivative: Number = 0.0
    target: Law | float = 0.0
    limits: tuple[Number, Number] = (-1e300, 1e300)
    index: int = 0


@dataclass(frozen=True, eq=False)
class PrescribedEffort:
    """An effort that is a law of time, along one velocity of a joint [N m or N]."""

    joint: str
    law: Law | float
    index: int = 0


@dataclass(frozen=True, eq=False)
class ComputedTorque:
    """tau = M (g'' + kd (g' - v) + kp (g - q)) + h for all joints of a tree: errors die as those of linear oscillators.

    Attributes
    ----------
    targets : joint to law or number, every joint of one coordinate (others: a sequence of them); joints not named: 0
    proportional, derivative : kp [1/s2], kd [1/s]; numbers, or (nv,)
    """

    targets: Mapping[str, Any]
    proportional: Number = 100.0
    derivative: Number = 20.0


@dataclass(frozen=True, eq=False)
class Stiction:
    """Friction of a joint that sticks: bristles that bend, and slip beyond `sticking` (LuGre: Canudas de Wit and others 1995).

    Attributes
    ----------
    sliding, sticking : friction in motion, and that which must be overcome [N m or N]; sticking default: as sliding
    stribeck_velocity : at which the one goes over into the other [rad/s or m/s]
    stiffness, damping : of the bristles [N m/rad, N m s/rad]; damping default: 2 sqrt(stiffness)
    """

    joint: str
    sliding: Number
    sticking: Number | None = None
    stribeck_velocity: Number = 0.01
    stiffness: Number = 1e4
    damping: Number | None = None
    index: int = 0


@dataclass(frozen=True, eq=False)
class Contact:
    """A point or sphere of a body against a plane of the world: k d^n (1 + c d') (Hunt and Crossley 1975), smooth Coulomb friction.

    Attributes
    ----------
    frame : body or frame; its origin is the centre
    radius : [m]; 0: a point
    normal, offset : the plane normal . x = offset; an axis or a vector, away from what is solid [m]
    stiffness, exponent, dissipation : k [N/m^n], n, c [s/m]
    friction, slip_velocity : coefficient, and the speed at which friction has 0.7 of it [m/s]
    """

    frame: str
    radius: float = 0.0
    normal: Any = "z"
    offset: float = 0.0
    stiffness: Number = 1e5
    exponent: Number = 1.5
    dissipation: Number = 0.5
    friction: Number = 0.6
    slip_velocity: Number = 1e-3


Element = PID | PrescribedEffort | ComputedTorque | Stiction | Contact


def rest_to_rest(start: float, end: float, duration: float, *, begin: float = 0.0, order: int = 5) -> Law:
    """A law that goes from one value to another, at rest at both ends: cubic, or quintic with no jump of acceleration.

    >>> law = rest_to_rest(0.0, 0.25, 2.0)
    >>> law(-1.0), law(1.0), law(5.0)
    (0.0, 0.125, 0.25)
    """
    if order not in (3, 5):
        raise ModelError(f"rest_to_rest is cubic (order=3) or quintic (order=5); got order={order!r}")
    if not duration > 0.0:
        raise ModelError(f"rest_to_rest needs a positive duration; got {duration!r}")
    shape = (0.0, 0.0, 3.0, -2.0, 0.0, 0.0) if order == 3 else (0.0, 0.0, 0.0, 10.0, -15.0, 6.0)
    path = [(end - start) * c / duration**k for k, c in enumerate(shape)]
    path[0] = start
    hold = [0.0] * 5
    return Law((begin - 1.0, begin, begin + duration), ((start, *hold), tuple(path), (end, *hold)))


KINDS = ("controllers", "efforts", "stictions", "contacts", "computed_torque")


@dataclass
class Acting:
    """Elements as the core wants them, with their numbers (parameters,) or (runs, parameters)."""

    terms: dict[str, list[Any]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    columns: list[list[NDArray[np.float64]]] = field(default_factory=list)
    memory: int = 0

    @property
    def parameters(self) -> NDArray[np.float64]:
        """(parameters,), or (runs, parameters) if some number differs from run to run."""
        flat = [number for group in self.columns for number in group]
        if not flat:
            return np.zeros(0)
        try:
            return np.ascontiguousarray(np.stack(np.broadcast_arrays(*flat), axis=-1))
        except ValueError:
            sizes = sorted({x.shape for x in flat if x.ndim})
            raise ShapeError(f"numbers that differ from run to run must be equally many; got shapes {sizes}") from None


def acting(mechanism: StateFunctions, elements: Sequence[Element]) -> Acting:
    """What the core is told of the elements; ModelError where they do not fit the mechanism."""
    made = Acting()
    # in the order in which the core reads parameters
    groups: dict[str, list[list[NDArray[np.float64]]]] = {name: [] for name in made.terms}
    for element in elements:
        if isinstance(element, PID):
            iq, iv = _coordinate(mechanism, element.joint, element.index, "PID")
            made.terms["controllers"].append((iq, iv, _law(element.target, f"target of '{element.joint}'")))
            numbers = (element.proportional, element.integral, element.derivative, *element.limits)
            groups["controllers"].append(_numbers(element, numbers))
            made.memory += 1
        elif isinstance(element, PrescribedEffort):
            iv = _velocity(mechanism, element.joint, element.index)
            made.terms["efforts"].append((iv, _law(element.law, f"effort of '{element.joint}'")))
        elif isinstance(element, Stiction):
            made.terms["stictions"].append(_velocity(mechanism, element.joint, element.index))
            sticking = element.sliding if element.sticking is None else element.sticking
            damping = 2.0 * np.sqrt(np.asarray(element.stiffness)) if element.damping is None else element.damping
            numbers = (element.sliding, sticking, element.stribeck_velocity, element.stiffness, damping)
            if any(not np.all(np.asarray(x) > 0.0) for x in numbers[:4]):
                raise ModelError(f"friction, velocity and stiffness of Stiction must be positive; got {element!r}")
            groups["stictions"].append(_numbers(element, numbers))
            made.memory += 1
        elif isinstance(element, Contact):
            if element.frame not in mechanism.frames:
                mechanism.pose(mechanism.neutral(), element.frame)  # which says what there is
            normal = unit_axis(element.normal)
            made.terms["contacts"].append(
                (element.frame, (0.0, 0.0, 0.0), tuple(normal), float(element.offset), float(element.radius))
            )
            numbers = (
                element.stiffness,
                element.exponent,
                element.dissipation,
                element.friction,
                element.slip_velocity,
            )
            groups["contacts"].append(_numbers(element, numbers))
        elif isinstance(element, ComputedTorque):
            if made.terms["computed_torque"]:
                raise ModelError("one ComputedTorque drives all joints; there are several")
            made.terms["computed_torque"], numbers_of_all = _computed_torque(mechanism, element)
            groups["computed_torque"].append(numbers_of_all)
        else:
            raise TypeError(f"no element of control: {element!r}")
    for name in ("controllers", "stictions", "contacts", "computed_torque"):
        made.columns += groups[name]
    return made


def _computed_torque(mechanism: StateFunctions, element: ComputedTorque) -> tuple[list[Any], list[NDArray[np.float64]]]:
    if mechanism.nc:
        raise ModelError("ComputedTorque is for trees; where loops close, give a function that asks actuator_efforts()")
    if mechanism.nq != mechanism.nv:
        raise ModelError("ComputedTorque needs joints whose coordinates are as many as their velocities")
    targets: list[Any] = [as_law(0.0, "a target")] * mechanism.nv
    for name, given in element.targets.items():
        joint = mechanism.joint(name)
        laws = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(laws) != joint.nv:
            raise ShapeError(f"joint '{name}' has {joint.nv} coordinates; it was given {len(laws)} targets")
        targets[joint.v_slice] = [as_law(law, f"target of '{name}'") for law in laws]
    gains = []
    for gain in (element.proportional, element.derivative):
        per_velocity = np.asarray(gain, dtype=np.float64)
        if per_velocity.shape not in ((), (mechanism.nv,)):
            raise ShapeError(
                f"gains of ComputedTorque are numbers or (nv,) = ({mechanism.nv},); got {per_velocity.shape}"
            )
        gains += [np.asarray(x) for x in np.broadcast_to(per_velocity, (mechanism.nv,))]
    return [_law(law, "a target") for law in targets], gains


def _coordinate(mechanism: StateFunctions, name: str, index: int, what: str) -> tuple[int, int]:
    joint = mechanism.joint(name)
    if joint.closes_loop:
        raise ModelError(f"joint '{name}' closes a loop and has no coordinate to act on: add it with tree=True")
    if joint.nq != joint.nv:
        raise ModelError(f"{what} needs a joint whose coordinates add up; '{name}' is {joint.type}")
    if not 0 <= index < joint.nv:
        raise ModelError(f"joint '{name}' has {joint.nv} coordinates; index={index} is none of them")
    return joint.q_slice.start + index, joint.v_slice.start + index


def _velocity(mechanism: StateFunctions, name: str, index: int) -> int:
    joint = mechanism.joint(name)
    if joint.closes_loop:
        raise ModelError(f"joint '{name}' closes a loop and has no velocity to act on: add it with tree=True")
    if not 0 <= index < joint.nv:
        raise ModelError(f"joint '{name}' has {joint.nv} velocities; index={index} is none of them")
    return int(joint.v_slice.start) + index


def _numbers(element: Element, numbers: Sequence[Any]) -> list[NDArray[np.float64]]:
    arrays = [np.asarray(x, dtype=np.float64) for x in numbers]
    if any(x.ndim > 1 or not np.isfinite(x).all() for x in arrays):
        raise ModelError(f"its numbers must be finite, one or one a run: {element!r}")
    return arrays


def _law(law: Any, what: str) -> tuple[Any, Any, Any]:
    law = as_law(law, what)
    return law.starts, np.ravel(law.coefficients).tolist(), np.ravel(law.harmonics).tolist()
