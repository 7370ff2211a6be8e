"""Force elements of a simulation, which run in C++: controllers, prescribed efforts, sticking friction, contact,
end stops, thrusters, reaction wheels.

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
from contextlib import suppress
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays import checked_number
from ..description.joints import Revolute, middle, unit_axis
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ShapeError
from ..laws import Law, as_law, law_terms
from .path import Path, path_through

__all__ = [
    "PID",
    "ComputedTorque",
    "Contact",
    "EndStop",
    "Path",
    "PrescribedEffort",
    "ReactionWheel",
    "Stiction",
    "Thruster",
    "path_through",
    "rest_to_rest",
]

Number = float | ArrayLike
Numbers = NDArray[np.float64]
POSITIVE, NOT_NEGATIVE = "be positive", "not be negative"


@dataclass(frozen=True, eq=False)
class PID:
    """Proportional, integral and derivative control of one joint coordinate, within limits.

    u = kp e + kd de/dt + z with dz/dt = ki e and e = target(t) - q. Towards a limit z
    goes no faster than u would reach it in 1 ms, so that it rests there and does not wind up.

    Attributes
    ----------
    joint, index : the joint, and which of its coordinates
    proportional, integral, derivative : kp [N m/rad or N/m], ki [kp's per s], kd [kp's times s]
    target : law, or number [rad or m]
    limits : (lower, upper) of the effort [N m or N]; infinity: none
    """

    joint: str
    proportional: Number = 0.0
    integral: Number = 0.0
    derivative: Number = 0.0
    target: Law | float = 0.0
    limits: tuple[Number, Number] = (-np.inf, np.inf)
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
    proportional, derivative : kp [1/s2], kd [1/s]; numbers, or (nv,), or (runs, nv) and (runs, 1)
    """

    targets: Mapping[str, Any]
    proportional: Number = 100.0
    derivative: Number = 20.0


@dataclass(frozen=True, eq=False)
class Stiction:
    """Friction of a joint that sticks: bristles that bend by z, and slip beyond `sticking` (Canudas de Wit and others 1995).

    s0 z + c dz/dt with dz/dt = (v - r z) / (1 + r 1 ms), r = |v| s0 / F(v) and F(v) = sliding + (sticking - sliding) exp(-(v/v_s)^2).
    This is LuGre's model but for two things: bristles settle no faster than in 1 ms, and c is not the constant s1 but the smaller one of
    s1 and s0/r, so that friction of fast motion is F(v) and has no viscous part. In slow motion, |v| < F(v)/s1, it is LuGre's.

    Attributes
    ----------
    sliding, sticking : friction in motion, and that which must be overcome, no less [N m or N]; sticking default: as sliding
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
    """A point or sphere of a body against the ground: k d^n (1 + c d') (Hunt and Crossley 1975), smooth Coulomb friction.

    Attributes
    ----------
    frame : body or frame; its origin is the centre
    radius : [m]; 0: a point
    normal, offset : the plane normal . x = offset; an axis or a vector, away from what is solid [m]
    height : of rough ground above that plane [m], a law of the distance along . x [m]; None: the plane. What is touched is the nearest place,
        found from below the centre: valleys must be wider than the sphere
    along : the direction in which the ground's height changes, across the normal
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
    height: Law | None = None
    along: Any = "x"


@dataclass(frozen=True, eq=False)
class EndStop:
    """A spring and a damper where a joint coordinate is beyond its limits: k d + c d', with |c d'| no more than k d.

    So it never pulls, sets in without a jump and takes energy out at every impact. What its spring holds is no part of
    :attr:`Trajectory.energy <sarrus.Trajectory.energy>`.

    Attributes
    ----------
    joint, index : the joint, and which of its coordinates
    limits : (lower, upper) [rad or m], infinity: none; default: the joint's own
    stiffness : k [N m/rad or N/m]; default: 2.5e5/s2 times the inertia that a force on the joint feels in the neutral configuration, so
        that what hits it at v goes on for about v/(600/s), which steps of 1 ms can follow
    damping : c [N m s/rad or N s/m]; default: sqrt(k times that inertia), half of critical

    Examples
    --------
    >>> import sarrus
    >>> run = sarrus.simulate(sarrus.mechanisms.pendulum(), [1.2], [0.0], 3.0, sarrus.control.EndStop("pivot", limits=(-0.5, 2.0)))
    >>> float(run.q.min().round(3))
    -0.505
    """

    joint: str
    limits: tuple[Number, Number] | None = None
    stiffness: Number | None = None
    damping: Number | None = None
    index: int = 0


@dataclass(frozen=True, eq=False)
class Thruster:
    """A force along an axis of a frame, at its origin: it goes with the body, and pushes to one side only.

    Attributes
    ----------
    frame : body or frame
    thrust : law, or number [N]; kept within limits
    axis : of the frame, "x", "-z" or a vector: the direction of the force on the body
    limits : (least, greatest) thrust [N]; infinity: none

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.free_flyer()
    >>> push = sarrus.control.Thruster("satellite", 30.0, "x", limits=(0.0, 20.0))
    >>> run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 1.0, push)
    >>> (run.momentum[-1, 3:].round(3) + 0.0).tolist()                # 20 N for a second; it has turned a little
    [20.0, 0.0, 0.001]
    """

    frame: str
    thrust: Law | float
    axis: Any = "x"
    limits: tuple[Number, Number] = (0.0, np.inf)


@dataclass(frozen=True, eq=False)
class ReactionWheel:
    """A wheel's motor, of limited torque, on a wheel of limited momentum.

    Whatever is asked of the joint's motor, by this element, others or a function of the caller, is kept within ``torque_limit``. Towards its
    greatest momentum the wheel goes no faster than it would reach it in 10 ms; beyond, it is braked.

    Attributes
    ----------
    joint : that turns the wheel, Revolute
    torque : law, or number, on the wheel [N m]
    torque_limit : [N m]
    momentum_limit : of the wheel's inertia about the joint's axis, times the joint's velocity [N m s]

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.free_flyer(wheels=True)
    >>> wheel = sarrus.control.ReactionWheel("z axle", 0.5, torque_limit=0.2, momentum_limit=0.3)
    >>> run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 3.0, wheel)
    >>> speed = run.v[:, robot.joint("z axle").v_slice][:, 0]  # of 5 kg with a radius of 0.15 m
    >>> (0.05625 * speed[[0, 500, 1000, 3000]]).round(3).tolist()
    [0.0, 0.1, 0.2, 0.3]
    """

    joint: str
    torque: Law | float = 0.0
    torque_limit: Number = np.inf
    momentum_limit: Number = np.inf


ForceElement = PID | PrescribedEffort | ComputedTorque | Stiction | Contact | EndStop | Thruster | ReactionWheel


def rest_to_rest(start: float, end: float, duration: float, *, begin: float = 0.0, order: int = 5) -> Law:
    """A law that goes from one value to another, at rest at both ends: cubic, or quintic with no jump of acceleration.

    >>> from sarrus.control import rest_to_rest
    >>> law = rest_to_rest(0.0, 0.25, 2.0)
    >>> law(-1.0), law(1.0), law(5.0)
    (0.0, 0.125, 0.25)
    """
    if not isinstance(order, Integral) or order not in (3, 5):
        raise ModelError(f"rest_to_rest is cubic (order=3) or quintic (order=5); got order={order!r}")
    start, end, duration, begin = (
        _finite(f"{name} of rest_to_rest", x)
        for name, x in (("start", start), ("end", end), ("duration", duration), ("begin", begin))
    )
    if not duration > 0.0:
        raise ModelError(f"rest_to_rest needs a positive duration; got {duration!r}")
    shape = (0.0, 0.0, 3.0, -2.0, 0.0, 0.0) if order == 3 else (0.0, 0.0, 0.0, 10.0, -15.0, 6.0)
    path = [start]
    for k, c in enumerate(shape[1:], 1):  # by one factor at a time: powers of a short duration would be zero
        path.append((end - start) * c)
        for _ in range(k):
            path[k] /= duration
    if not np.isfinite(path).all():
        raise ModelError(
            f"rest_to_rest cannot go from {start!r} to {end!r} within {duration!r} s: too fast for numbers"
        )
    hold = [0.0] * 5
    return Law((begin - 1.0, begin, begin + duration), ((start, *hold), tuple(path), (end, *hold)))


KINDS = (
    "controllers",
    "efforts",
    "stictions",
    "contacts",
    "end_stops",
    "thrusters",
    "wheels",
    "effort_limits",
    "computed_torque",
)


@dataclass
class ForceElements:
    """Force elements as the core wants them, with their numbers (parameters,) or (runs, parameters) and how many internal states they have."""

    terms: dict[str, list[Any]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
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
    wheels: set[str] = set()
    for element in elements:
        numbers: list[Numbers] = []
        term: tuple[Any, ...]
        if isinstance(element, PID):
            iq, iv = coordinate(mechanism, element.joint, element.index, "PID")
            law = law_terms(as_law(element.target, f"target of '{element.joint}'"))
            kind, term = "controllers", (iq, iv, law, loses_turns(mechanism, element.joint, element.index))
            limits = _limits(element, element.limits)
            if effort_limits:  # beyond it z would wind up
                limits = [np.clip(x, -effort_limits[iv], effort_limits[iv]) for x in limits]
            numbers = [*_numbers(element, proportional="", integral="", derivative=""), *limits]
        elif isinstance(element, PrescribedEffort):
            law = law_terms(as_law(element.law, f"effort of '{element.joint}'"))
            kind, term = "efforts", (_velocity(mechanism, element.joint, element.index), law)
        elif isinstance(element, Stiction):
            kind, term = "stictions", (_velocity(mechanism, element.joint, element.index),)
            numbers = _stiction(element)
        elif isinstance(element, Contact):
            if element.frame not in mechanism.frames:
                mechanism.pose(mechanism.neutral(), element.frame)  # which says what there is
            offset, radius = (_finite(f"{name} of Contact", getattr(element, name)) for name in ("offset", "radius"))
            if radius < 0.0:
                raise ModelError(f"radius of Contact must not be negative; got {radius!r}")
            kind = "contacts"
            term = (element.frame, (0.0, 0.0, 0.0), tuple(unit_axis(element.normal)), offset, radius, *_ground(element))
            signs = {"dissipation": NOT_NEGATIVE, "friction": NOT_NEGATIVE, "slip_velocity": POSITIVE}
            numbers = _numbers(element, stiffness=POSITIVE, exponent=POSITIVE, **signs)
        elif isinstance(element, EndStop):
            iq, iv = coordinate(mechanism, element.joint, element.index, "an end stop")
            kind, numbers = "end_stops", _end_stop(mechanism, element, iv)
            between = middle(float(np.mean(numbers[0])), float(np.mean(numbers[1])))
            term = iq, iv, loses_turns(mechanism, element.joint, element.index), between
        elif isinstance(element, Thruster):
            if element.frame not in mechanism.frames:
                mechanism.pose(mechanism.neutral(), element.frame)
            law = law_terms(as_law(element.thrust, f"thrust of '{element.frame}'"))
            kind, term = "thrusters", (element.frame, tuple(unit_axis(element.axis)), law)
            numbers = _limits(element, element.limits)
        elif isinstance(element, ReactionWheel):
            law = law_terms(as_law(element.torque, f"torque of '{element.joint}'"))
            kind, term = (
                "wheels",
                (_velocity(mechanism, element.joint, 0), _inertia_of_wheel(mechanism, element.joint), law),
            )
            if element.joint in wheels:
                raise ModelError(f"joint '{element.joint}' has one ReactionWheel; there are several")
            wheels.add(element.joint)
            numbers = _greatest(element, "torque_limit", "momentum_limit")
        elif isinstance(element, ComputedTorque):
            kind = "computed_torque"
            if made.terms[kind]:
                raise ModelError("one ComputedTorque drives all joints; there are several")
            made.terms[kind], numbers = _computed_torque(mechanism, element)
        else:
            raise TypeError(
                f"no element of control: {element!r}; a controller is a function (t, q, v) -> tau, an element such as "
                "sarrus.control.PID, or a list of these"
            )
        if not isinstance(element, ComputedTorque):
            made.terms[kind].append(term)
        if numbers:
            groups[kind].append(numbers)
        made.nz += isinstance(element, PID | Stiction)
    made.columns = [numbers for kind in KINDS for numbers in groups[kind]]  # in the order in which the core reads them
    return made


def _computed_torque(mechanism: LoopFunctions, element: ComputedTorque) -> tuple[list[Any], list[Numbers]]:
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
    return [law_terms(law) for law in targets], gains


def coordinate(mechanism: LoopFunctions, name: str, index: int, what: str) -> tuple[int, int]:
    """Where a coordinate of a joint, and the velocity that is its rate, stand; ModelError where there are none."""
    joint = mechanism.joint(name)
    if joint.type.quaternion:
        raise ModelError(f"{what} needs a joint whose coordinates add up; '{name}' is {joint.type}")
    k = _index(name, joint.type.nv, index, "coordinates")
    if not joint.type.rates[k]:
        raise ModelError(
            f"{what} needs a coordinate whose rate is one of the velocities; that of coordinate {k} of '{name}', {joint.type}, is not, "
            "as its velocities are along axes that turn with it"
        )
    return joint._all_q.start + k, joint._all_v.start + k


def loses_turns(mechanism: LoopFunctions, name: str, index: int) -> bool:
    """Whether a coordinate is an angle whose whole turns nothing counts: of a joint that closes a loop, which a screw's displacement tells."""
    joint = mechanism.joint(name)
    return bool(joint.closes_loop and joint.type.whole_turns_return and joint.type.coordinates[index][1] == "rad")


def _velocity(mechanism: LoopFunctions, name: str, index: int) -> int:
    joint = mechanism.joint(name)
    return int(joint._all_v.start) + _index(name, joint.type.nv, index, "velocities")


def _index(name: str, count: int, index: Any, what: str) -> int:
    if isinstance(index, bool) or not isinstance(index, Integral) or not 0 <= int(index) < count:
        raise ModelError(f"joint '{name}' has {count} {what}; index={index!r} is none of them")
    return int(index)


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


def _stiction(element: Stiction) -> list[Numbers]:
    if element.sticking is None:
        element = replace(element, sticking=element.sliding)
    numbers = _numbers(element, sliding=POSITIVE, sticking=POSITIVE, stribeck_velocity=POSITIVE, stiffness=POSITIVE)
    if _less(numbers[1], numbers[0]):
        wanted = "no less than sliding"
        raise ModelError(f"sticking of Stiction must be {wanted}; got {element.sticking!r} and {element.sliding!r}")
    if element.damping is None:
        return [*numbers, 2.0 * np.sqrt(numbers[3])]
    return numbers + _numbers(element, damping=NOT_NEGATIVE)


def _end_stop(mechanism: LoopFunctions, element: EndStop, iv: int) -> list[Numbers]:
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
    return [*_limits(element, limits), stiffness, *_numbers(element, damping=NOT_NEGATIVE)]


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


def _finite(what: str, value: Any) -> float:
    with suppress(TypeError, ValueError):
        return checked_number(what, value, "")
    raise ModelError(f"{what} must be a finite number; got {value!r}")
