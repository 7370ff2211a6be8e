"""Force elements as the core wants them: where they act, their laws, and the numbers that a sweep may vary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import is_masked
from ..description.joints import Revolute, unit_axis
from ..dynamics.loop_operations import LoopFunctions
from ..errors import AssemblyError, ModelError, ShapeError, StateError
from ..laws import law_terms_of_runs
from .coordinates import checked_index, coordinate, one_a_coordinate
from .elements import (
    PID,
    ActuatorDynamics,
    ComputedTorque,
    Contact,
    Efforts,
    EndStop,
    ForceElement,
    GravityCompensation,
    PDPlus,
    PrescribedEffort,
    Quantisation,
    ReactionWheel,
    Sampled,
    Stiction,
    Thruster,
    finite,
)
from .task_control import TaskControl

Numbers = NDArray[np.float64]
Term = tuple[Any, ...]
Function = Callable[..., Any]
MOST = 1e300  # for infinity, where compilers are told that numbers are finite
MOST_FELT = 1e6  # times what a joint would feel of an open tree: beyond that loops hold it, or nearly
POSITIVE, NOT_NEGATIVE = "be positive", "not be negative"


@dataclass
class ForceElements:
    """Force elements with their numbers (parameters,) or (runs, parameters), and functions that are asked at samples."""

    terms: dict[str, list[Any]] = field(default_factory=lambda: {kind: [] for kind in (*KINDS, "effort_limits")})
    numbers: list[list[Numbers]] = field(default_factory=list)
    sampled: list[list[Function]] = field(default_factory=list)

    @property
    def parameters(self) -> Numbers:
        """(parameters,), or (runs, parameters) if some number differs from run to run."""
        flat = [number for group in self.numbers for number in group]
        if not flat:
            return np.zeros(0)
        try:
            runs = np.broadcast_shapes(*(x.shape[:-1] for x in flat))
            return np.ascontiguousarray(
                np.concatenate([np.broadcast_to(x, (*runs, x.shape[-1])) for x in flat], axis=-1)
            )
        except ValueError:
            sizes = sorted({x.shape[:-1] for x in flat if x.ndim > 1})
            raise ShapeError(f"numbers that differ from run to run must be equally many; got shapes {sizes}") from None

    def as_tuple(self) -> tuple[dict[str, list[Any]], list[Any]]:
        """Terms and parameters, for a checkpoint."""
        return self.terms, self.parameters.tolist()


def functions_and_elements(controller: Any) -> tuple[list[Function], list[Any]]:
    """Of one controller, or several in a list: functions of the caller, and what may be elements."""
    several = list(controller) if isinstance(controller, (list, tuple)) else [] if controller is None else [controller]
    for kind in (c for c in several if isinstance(c, type)):
        raise TypeError(f"{kind.__name__} is a class: give one of it, {kind.__name__}(...)")
    functions = [c for c in several if _is_function(c)]
    return functions, [c for c in several if not _is_function(c)]


def _is_function(controller: Any) -> bool:
    """Whether Python answers it at each evaluation: also a TaskControl with functions for targets."""
    return callable(controller) and not (isinstance(controller, TaskControl) and controller.native)


@dataclass(frozen=True)
class Run:
    """What elements are told of the run besides the mechanism.

    Attributes
    ----------
    effort_limits : (nv,) or none; what they give in all along a velocity is kept within them
    start : configuration (nq,), or (runs, nq) of many, in which the run begins, from which defaults take the inertia that they feel; None: the
        neutral one
    """

    effort_limits: Sequence[float] = ()
    start: Any = None


def force_elements(mechanism: LoopFunctions, elements: Sequence[ForceElement], run: Run | None = None) -> ForceElements:
    """What the core is told of the elements; ModelError where they do not fit the mechanism."""
    run = Run() if run is None else run
    made = ForceElements()
    made.terms["effort_limits"] = list(run.effort_limits)
    groups: dict[str, list[list[Numbers]]] = {kind: [] for kind in KINDS}
    for element in elements:
        row = next((ELEMENTS[kind] for kind in ELEMENTS if isinstance(element, kind)), None)
        if row is None:
            raise TypeError(
                f"no element of control: {element!r}; a controller is a function (t, q, v) -> tau, an element such as "
                "sarrus.control.PID, or a list of these"
            )
        kind, describe = row
        term, numbers = describe(mechanism, element, run)
        if kind in ONE_A_VELOCITY and term[0] in [other[0] for other in made.terms[kind]]:
            named = getattr(element, "joint", "")
            raise ModelError(f"joint '{named}' has one {type(element).__name__}; there are several")
        if kind == "model_laws" and term[3] and any(other[3] for other in made.terms[kind]):
            raise ModelError(f"one {type(element).__name__} drives all joints; there are several laws that do")
        made.terms[kind].append(term)
        # a number is (..., 1), a row of them stands as it is
        groups[kind].append([numbers] if isinstance(numbers, np.ndarray) else [x[..., None] for x in numbers])
        if isinstance(element, Sampled):
            made.sampled.append(functions_and_elements(element.law)[0])
    made.numbers = [numbers for kind in KINDS for numbers in groups[kind]]  # in the order in which the core reads them
    return made


# ---- one by one: what the core is told of an element, and its numbers ------------------------------------------------


def _pid(mechanism: LoopFunctions, element: PID, run: Run) -> tuple[Term, list[Numbers]]:
    iq, iv = coordinate(mechanism, element.joint, element.index, "PID")
    law, whose = law_terms_of_runs(element.target, f"target of '{element.joint}'")
    limits = _limits(element, element.limits)
    if run.effort_limits:  # beyond it z would wind up
        limits = [np.clip(x, -run.effort_limits[iv], run.effort_limits[iv]) for x in limits]
    term = iq, iv, law
    return term, [*whose, *_numbers(element, proportional="", integral="", derivative=""), *limits]


def _prescribed_effort(mechanism: LoopFunctions, element: PrescribedEffort, _: object) -> tuple[Term, list[Numbers]]:
    law, whose = law_terms_of_runs(element.law, f"effort of '{element.joint}'")
    return (_velocity(mechanism, element.joint, element.index), law), whose


def _stiction(mechanism: LoopFunctions, element: Stiction, run: Run) -> tuple[Term, list[Numbers]]:
    term = (_velocity(mechanism, element.joint, element.index),)
    if element.sticking is None:
        element = replace(element, sticking=element.sliding)
    numbers = _numbers(element, sliding=POSITIVE, sticking=POSITIVE, stribeck_velocity=POSITIVE, stiffness=POSITIVE)
    if _less(numbers[1], numbers[0]):
        expected = "no less than sliding"
        raise ModelError(f"sticking of Stiction must be {expected}; got {element.sticking!r} and {element.sliding!r}")
    if element.damping is None:
        return term, [*numbers, 2.0 * np.sqrt(numbers[3] * _felt_inertia(mechanism, term[0], run.start))]
    return term, numbers + _numbers(element, damping=NOT_NEGATIVE)


def _contact(mechanism: LoopFunctions, element: Contact, _: object) -> tuple[Term, list[Numbers]]:
    _check_frame(mechanism, element.frame)
    offset, radius = (finite(f"{name} of Contact", getattr(element, name)) for name in ("offset", "radius"))
    if radius < 0.0:
        raise ModelError(f"radius of Contact must not be negative; got {radius!r}")
    ground, whose = _ground(element)
    term = (element.frame, (0.0, 0.0, 0.0), tuple(unit_axis(element.normal)), offset, radius, *ground)
    signs = {"dissipation": NOT_NEGATIVE, "friction": NOT_NEGATIVE, "slip_velocity": POSITIVE}
    return term, [*_numbers(element, stiffness=POSITIVE, exponent=POSITIVE, **signs), *whose]


def _end_stop(mechanism: LoopFunctions, element: EndStop, run: Run) -> tuple[Term, list[Numbers]]:
    iq, iv = coordinate(mechanism, element.joint, element.index, "an end stop")
    joint, limits = mechanism.joint(element.joint), element.limits
    if limits is None:
        if joint.limits is None:
            raise ModelError(f"joint '{element.joint}' has no limits: give limits=(lower, upper) to its EndStop")
        low, high = joint.limits
        limits = low[element.index], high[element.index]
    if element.stiffness is None or element.damping is None:
        inertia = _felt_inertia(mechanism, iv, run.start)
    if element.stiffness is None:
        element = replace(element, stiffness=2.5e5 * inertia)
    (stiffness,) = _numbers(element, stiffness=POSITIVE)
    if element.damping is None:
        element = replace(element, damping=np.sqrt(stiffness * inertia))
    lower, upper = _limits(element, limits)
    return (iq, iv), [lower, upper, stiffness, *_numbers(element, damping=NOT_NEGATIVE)]


def _thruster(mechanism: LoopFunctions, element: Thruster, _: object) -> tuple[Term, list[Numbers]]:
    _check_frame(mechanism, element.frame)
    law, whose = law_terms_of_runs(element.thrust, f"thrust of '{element.frame}'")
    return (element.frame, tuple(unit_axis(element.axis)), law), [*whose, *_limits(element, element.limits)]


def _reaction_wheel(mechanism: LoopFunctions, element: ReactionWheel, _: object) -> tuple[Term, list[Numbers]]:
    law, whose = law_terms_of_runs(element.torque, f"torque of '{element.joint}'")
    term = _velocity(mechanism, element.joint, 0), _inertia_of_wheel(mechanism, element.joint), law
    return term, [*whose, *_greatest(element, "torque_limit", "momentum_limit")]


def _computed_torque(mechanism: LoopFunctions, element: ComputedTorque, _: object) -> tuple[Term, list[Numbers]]:
    return _tracking(mechanism, element, "computed_torque")


def _pd_plus(mechanism: LoopFunctions, element: PDPlus, _: object) -> tuple[Term, list[Numbers]]:
    return _tracking(mechanism, element, "pd_plus")


def _tracking(mechanism: LoopFunctions, element: ComputedTorque | PDPlus, law: str) -> tuple[Term, list[Numbers]]:
    what = type(element).__name__
    if not isinstance(element.targets, Mapping):
        raise ModelError(f"targets of {what} map joints to laws or numbers; got {element.targets!r}")
    if not mechanism.nc and mechanism.nq != mechanism.nv:
        raise ModelError(f"{what} needs joints whose coordinates are as many as their velocities")
    targets: dict[tuple[int, int], tuple[Term, list[Numbers]]] = {}
    names: list[tuple[str, int]] = []
    if not mechanism.nc:  # all joints, in their order
        targets = {(k, k): law_terms_of_runs(0.0, "a target") for k in range(mechanism.nv)}
    for name, asked in element.targets.items():
        joint = mechanism._tree_joint(name, f"target of {what}")
        laws = one_a_coordinate(asked, joint.nv)
        if len(laws) != joint.nv:
            raise ShapeError(f"joint '{name}' has {joint.nv} coordinates; it was given {len(laws)} targets")
        for k, target in enumerate(laws):
            at = (
                coordinate(mechanism, name, k, f"a target of {what}")
                if mechanism.nc
                else (joint.v_slice.start + k,) * 2
            )
            targets[at] = law_terms_of_runs(target, f"target of '{name}'")
            names.append((name, k))
    if mechanism.nc:
        _check_independent(mechanism, what, names)
    gains = []
    for name in ("proportional", "derivative"):
        gain, n = _array(f"{name} of {what}", getattr(element, name)), len(targets)
        if gain.shape not in ((), (n,)) and not (gain.ndim == 2 and gain.shape[1] in (1, n)):
            expected = (
                f"a number, ({'n' if mechanism.nc else 'nv'},) = ({n},), or of many runs (runs, {n}) or (runs, 1)"
            )
            raise ShapeError(f"{name} of {what} is {expected}; got {gain.shape}")
        gains += list(np.moveaxis(np.broadcast_to(gain, (*gain.shape[:-1], n)), -1, 0))
    iq, iv = zip(*targets, strict=True)
    motors = _motors(mechanism, what) if mechanism.nc else []
    laws_of = [law for law, _ in targets.values()]
    return (law, list(iq), list(iv), tuple(laws_of), motors), [
        x for _, whose in targets.values() for x in whose
    ] + gains


def _gravity(mechanism: LoopFunctions, element: GravityCompensation, _: object) -> tuple[Term, list[Numbers]]:
    motors = _motors(mechanism, "GravityCompensation") if mechanism.nc or mechanism.actuated else []
    return ("gravity", [], [], (), motors), _numbers(element, scale="")


def _motors(mechanism: LoopFunctions, what: str) -> list[int]:
    """The velocity that each motor drives."""
    if not mechanism.actuated:
        raise ModelError(f"{what} needs motors, and no joint has one: give those that do actuated=True")
    if any(callable(getattr(spec, "rows", None)) for spec in mechanism.description.constraints):
        raise ModelError(f"{what} cannot ask rows that are Python functions of q")
    return [k for name in mechanism.actuated for k in range(*mechanism.joint(name)._all_v.indices(2**31))]


def _check_independent(mechanism: Any, what: str, names: list[tuple[str, int]]) -> None:
    """ModelError where in none of several configurations these coordinates determine the motion, and do not depend on one another."""
    rest, wrong = np.zeros(mechanism.nv), None
    for draw in range(4):
        try:
            q = mechanism.random(draw, closed=True) if draw else mechanism.assemble()
        except AssemblyError:
            continue
        try:
            mechanism.reduced_dynamics(q, rest, names)
            return
        except StateError as error:  # perhaps only there
            wrong = wrong or error
    if wrong:
        raise ModelError(
            f"targets of {what} must be as many independent coordinates as there are degrees of freedom: {wrong}"
        )


def _efforts(mechanism: LoopFunctions, element: Efforts, _: object) -> tuple[Term, Numbers]:
    times, u = _array("times of Efforts", element.times), _array("u of Efforts", element.u)
    if times.ndim != 1 or not len(times):
        raise ShapeError(f"times of Efforts are (n,), the same in all runs; got {times.shape}")
    if not (np.diff(times) > 0.0).all():
        raise ModelError("times of Efforts must increase")
    if isinstance(element.joints, str) or not (element.joints is None or isinstance(element.joints, Iterable)):
        raise TypeError(f"joints of Efforts are a sequence of names; got {element.joints!r}")
    names = tuple(mechanism.actuated or mechanism.joints) if element.joints is None else tuple(element.joints)
    motors = [k for name in names for k in range(*mechanism.joint(name)._all_v.indices(2**31))]
    if u.ndim not in (2, 3) or u.shape[-2:] != (len(times), len(motors)):
        raise ShapeError(
            f"u of Efforts is (n, m) = ({len(times)}, {len(motors)}) for joints {', '.join(names)}, or (runs, n, m); got {u.shape}"
        )
    return (times.tolist(), motors, bool(element.hold)), u.reshape(*u.shape[:-2], -1)


def _actuator(mechanism: LoopFunctions, element: ActuatorDynamics, _: object) -> tuple[Term, list[Numbers]]:
    if element.time_constant is not None and element.natural_frequency is not None:
        raise ModelError(
            f"ActuatorDynamics of '{element.joint}' has a time_constant (first order) or a natural_frequency (second order); got both"
        )
    order = 1 if element.time_constant is not None else 2 if element.natural_frequency is not None else 0
    if order == 0 and element.torque_speed is None:
        raise ModelError(
            f"ActuatorDynamics of '{element.joint}' does nothing: give a time_constant, a natural_frequency or torque_speed"
        )
    bandwidth = np.ones(())
    if order == 1:
        bandwidth = 1.0 / _numbers(element, time_constant=POSITIVE)[0]
    if order == 2:
        (bandwidth,) = _numbers(element, natural_frequency=POSITIVE)
    ratio, gear = _numbers(element, damping_ratio=NOT_NEGATIVE, gear_ratio=POSITIVE)
    line: Any = (np.inf, np.inf) if element.torque_speed is None else element.torque_speed
    if not isinstance(line, (tuple, list, np.ndarray)) or len(line) != 2:
        raise ModelError(f"torque_speed of ActuatorDynamics is (stall torque, no-load speed); got {line!r}")
    stall, fastest = (_array("torque_speed of ActuatorDynamics", x, finite=False) for x in line)
    if max(stall.ndim, fastest.ndim) > 1:
        raise ShapeError(
            f"torque_speed of ActuatorDynamics are numbers, or (runs,) each; got {stall.shape}, {fastest.shape}"
        )
    if not ((stall > 0.0).all() and (fastest > 0.0).all()):  # so that NaN fails too
        raise ModelError(f"torque_speed of ActuatorDynamics must be positive; got {line!r}")
    limits = [np.minimum(stall * gear, MOST), np.minimum(fastest / gear, MOST)]
    return (_velocity(mechanism, element.joint, element.index), order), [bandwidth, ratio, *limits]


def _sampled(mechanism: LoopFunctions, element: Sampled, run: Run) -> tuple[Term, Numbers]:
    period, delay = (finite(f"{name} of Sampled", getattr(element, name)) for name in ("period", "delay"))
    if not period > 0.0:
        raise ModelError(f"period of Sampled must be positive; got {period!r}")
    if not 0.0 <= delay <= 1e4 * period:
        raise ModelError(
            f"delay of Sampled must be from 0 to 10000 periods; got {delay!r} s, the period being {period!r} s"
        )
    functions, elements = functions_and_elements(element.law)
    for c in elements:
        if not isinstance(c, SAMPLED) and isinstance(c, tuple(ELEMENTS)):
            raise ModelError(
                f"{type(c).__name__} is no controller that can be sampled: give it beside Sampled, in a list"
            )
    made = force_elements(mechanism, elements, run)
    made.terms["effort_limits"] = []
    steps = element.quantisation
    if not isinstance(steps, Quantisation):
        steps = Quantisation(position=0.0 if steps is None else steps)
    quanta = [_steps(mechanism, name, getattr(steps, name)) for name in ("position", "velocity", "effort")]
    return (period, delay, bool(functions), *quanta, made.terms), made.parameters


def _steps(mechanism: LoopFunctions, quantity: str, periods: Any) -> list[float]:
    """Of every coordinate or velocity, in the order of the tree's and of those of joints that close loops; none where all are zero."""
    what = f"{quantity} of Quantisation"
    names = (*mechanism.joints, *mechanism.loop_joints)
    places = {name: getattr(mechanism.joint(name), "_all_q" if quantity == "position" else "_all_v") for name in names}
    steps = np.zeros(max((place.stop for place in places.values()), default=0))
    for name, step in periods.items() if isinstance(periods, Mapping) else ((name, periods) for name in names):
        joint, size = mechanism.joint(name), finite(what, step)
        if size < 0.0:
            raise ModelError(f"{what} must not be negative; got {step!r}")
        if quantity == "position" and joint.type.quaternion:
            if isinstance(periods, Mapping):
                raise ModelError(f"{what} needs coordinates that add up; '{name}' is {joint.type}")
            continue
        steps[places[name]] = size
    return steps.tolist() if steps.any() else []


def _task_control(mechanism: LoopFunctions, element: TaskControl, _: object) -> tuple[Term, list[Numbers]]:
    if element.robot is not mechanism:
        raise ModelError(
            f"this TaskControl was made for another mechanism, '{element.robot.name}'; as a controller of '{mechanism.name}' it is a function: "
            "give lambda t, q, v: law(t, q, v)"
        )
    return (element._core_terms,), element._terms.columns


Told = Callable[[LoopFunctions, Any, Run], tuple[Term, list[Numbers] | Numbers]]
ELEMENTS: dict[type, tuple[str, Told]] = {  # their kind, of which the core reads one after the other
    PID: ("controllers", _pid),
    PrescribedEffort: ("efforts", _prescribed_effort),
    Stiction: ("stictions", _stiction),
    Contact: ("contacts", _contact),
    EndStop: ("end_stops", _end_stop),
    Thruster: ("thrusters", _thruster),
    ReactionWheel: ("wheels", _reaction_wheel),
    ComputedTorque: ("model_laws", _computed_torque),
    PDPlus: ("model_laws", _pd_plus),
    GravityCompensation: ("model_laws", _gravity),
    ActuatorDynamics: ("drives", _actuator),
    Efforts: ("tables", _efforts),
    TaskControl: ("task_controls", _task_control),
    Sampled: ("sampled", _sampled),
}
KINDS: tuple[str, ...] = tuple(dict.fromkeys(kind for kind, _ in ELEMENTS.values()))
ONE_A_VELOCITY = ("wheels", "drives")
SAMPLED = (PID, PrescribedEffort, ComputedTorque, PDPlus, GravityCompensation, TaskControl)  # what a clock may ask


# ---- where they act --------------------------------------------------------------------------------------------------


def _velocity(mechanism: LoopFunctions, name: str, index: int) -> int:
    joint = mechanism.joint(name)
    return int(joint._all_v.start) + checked_index(name, joint.type.nv, index, "velocities")


def _check_frame(mechanism: LoopFunctions, name: str) -> None:
    if name not in mechanism.frames:
        mechanism.pose(mechanism.neutral(), name)  # which says what there is


def _ground(element: Contact) -> tuple[tuple[Any, ...], list[Numbers]]:
    """Law and direction of the ground's height, and whose law it is."""
    if element.height is None:
        return (None, (0.0, 0.0, 0.0)), []
    along, normal = unit_axis(element.along), unit_axis(element.normal)
    if not abs(along @ normal) < 1e-9:
        raise ModelError(f"along of Contact must be across its normal; got {element.along!r} and {element.normal!r}")
    law, whose = law_terms_of_runs(element.height, "height of Contact")
    return (law, tuple(along)), whose


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


def _felt_inertia(mechanism: Any, iv: int, start: Any) -> Numbers:
    """What a force along a velocity accelerates where a run begins, or each of them does, at rest: on the loops, which know no cut."""
    q = mechanism.neutral() if start is None else np.asarray(start, dtype=np.float64)
    rest, along = np.zeros_like(q[..., : mechanism.nv]), _direction(mechanism, iv, q)
    asked = {"check": False} if mechanism.nc else {}
    left = np.asarray(mechanism.forward_dynamics(q, rest, rest, **asked))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        free = (along * (np.asarray(mechanism.mass_matrix(q)) @ along[..., None])[..., 0]).sum(axis=-1)
        # as hard as what acts there, beside which a push of 1 N is nothing to a large mechanism
        push = np.where(free > 0.0, free * (1.0 + np.abs((left * along).sum(axis=-1))), 1.0)
        pushed = np.asarray(mechanism.forward_dynamics(q, rest, push[..., None] * along, **asked))
        felt = push / ((pushed - left) * along).sum(axis=-1)
    # a joint that loops hold fast feels no end of it
    sound = np.isfinite(felt) & (felt > 0.0) & (felt < MOST_FELT * free)
    return np.asarray(np.where(sound, felt, np.where(free > 0.0, free, 1.0)))


def _direction(mechanism: Any, iv: int, q: Numbers) -> Numbers:
    """(..., nv) of the tree's velocities, what a velocity of any joint is made of."""
    if iv >= mechanism.nv:
        return np.asarray(mechanism._loop_joint_jacobian(q))[..., iv - mechanism.nv, :]
    return np.broadcast_to(np.eye(mechanism.nv)[iv], (*q.shape[:-1], mechanism.nv))


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
    if is_masked(value):
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
