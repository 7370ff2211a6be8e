"""Options, limits and setup of runs: from the arguments of simulate() and simulate_many() to the core's Simulation and the initial states."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, check_mapping, checked_number, real_array, real_rows
from .._core import Status
from ..analysis.assembly.closing import prepared as cached
from ..control.element import Element, ForceElement, ForceElements, Run
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, check_choice
from ..mechanism import Mechanism

if TYPE_CHECKING:
    from ..control.elements import EndStop
    from ..variants import Variants
    from .histories import PlaneContact

__all__ = ["Limit"]

METHODS: dict[str, _core.Method] = _core.methods
MethodName = Literal[
    "auto", "euler", "semi_implicit", "rk4", "rkmk4", "dopri5", "implicit_midpoint", "independent", "contact", "rosenbrock"
]  # fmt: skip
OnLimits = Literal["warn", "enforce", "ignore"]
Stabilisation = Literal["none", "corrective", "baumgarte", "projection"]
STABILISATIONS: dict[str, tuple[float, float]] = _core.stabilisations  # default gains
MOST_STEPS = 2**53  # the largest count that a double represents exactly
SHORTEST_PERIOD = 1e-9  # shortest sampling period, as a fraction of the duration: more samples would take days
SHORTEST_PART = 1e-3  # shortest sampling period, as a fraction of a step: Ctrl-C is only checked between steps
STEP = 1e-3  # default step [s]
FINER = (
    4,
    16,
    64,
)  # divisors of the default step, powers of two, that are tried in turn if longer steps are unreliable
MOST_FINER = 2**20  # largest number of shorter steps of a run


CHOICES: dict[str, Any] = {"method": ("auto", *METHODS), "limits": OnLimits, "stabilisation": STABILISATIONS}


class StepOptions(TypedDict, total=False):
    """Options of a step; see :func:`~sarrus.simulate`."""

    method: MethodName
    stabilisation: Stabilisation
    gains: tuple[float, float] | None


class RunOptions(StepOptions, total=False):
    """Options of a run; see :func:`~sarrus.simulate`."""

    dt: float | None
    limits: OnLimits
    start: float
    near: Mapping[str, ArrayLike] | None


@dataclass(frozen=True, eq=False)
class Stepping:
    """Checked options of a run, and its duration [s]."""

    duration: float
    method: str = "auto"
    dt: float = STEP
    stabilisation: str = "projection"
    gains: Any = None
    limits: str = "warn"
    start: float = 0.0
    near: Mapping[str, ArrayLike] | None = None

    @classmethod
    def checked(cls, function: str, mechanism: Mechanism, duration: Any, options: Mapping[str, object]) -> Stepping:
        """Check the options of a call of `function` (its name, for messages), and add defaults."""
        for name in options.keys() - DEFAULTS.keys():
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        values: dict[str, Any] = DEFAULTS | dict(options)
        if values["dt"] is None:
            values["dt"] = STEP
        for name, choices in CHOICES.items():
            check_choice(name, values[name], choices)
        values["start"], duration, values["dt"] = checked_times(values["start"], duration, values["dt"])
        values["gains"] = checked_gains(mechanism, values["stabilisation"], values["gains"])
        return cls(duration, **values)


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Stepping)[1:]} | {"dt": None}


def checked_times(start: Any, duration: Any, dt: Any) -> tuple[float, float, float]:
    """Return start, duration and step in seconds; raise ValueError if the number of steps exceeds MOST_STEPS."""
    start = checked_number("start", start, "")
    duration = checked_number("duration", duration, "seconds, not negative")
    step = checked_number("dt", dt)
    if not np.isfinite(start + duration):
        raise ValueError(f"start + duration must be finite; got {start!r} and {duration!r}")
    if step < np.finfo(np.float64).tiny or duration > step * MOST_STEPS:
        raise ValueError(f"dt = {step!r} s is too short: {duration!r} s must be at most 2^53 steps of it")
    return start, duration, step


def checked_gains(mechanism: Mechanism, stabilisation: str, values: Any) -> tuple[float, float]:
    """Return the two gains of a stabilisation, or its default gains if `values` is None."""
    if stabilisation == "corrective" and mechanism.nc and mechanism._without_inertia:
        raise ModelError(
            f"stabilisation 'corrective' needs inertia along each joint of the tree; joint '{mechanism._without_inertia[0]}' has none: "
            "pass 'projection' or 'baumgarte', or give inertia to a body that the joint moves"
        )
    defaults = STABILISATIONS[stabilisation]
    if values is None:
        return defaults
    if not any(defaults):
        names = " and ".join(repr(name) for name, gains in STABILISATIONS.items() if any(gains))
        raise ValueError(f"stabilisation '{stabilisation}' has no gains, only {names} have; got {values!r}")
    try:
        gains = real_array("gains", values)
        sound = gains.shape == (2,) and bool((np.isfinite(gains) & (gains >= 0.0)).all())
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ValueError(
            f"gains must be two finite numbers that are not negative, (of velocities, of positions); got {values!r}"
        )
    return float(gains[0]), float(gains[1])


def check_longest_step(max_step: float, start: float, duration: float) -> None:
    latest = max(abs(start), abs(start + duration))
    if latest + max_step == latest or duration > max_step * MOST_STEPS:
        raise ValueError(
            f"max_step = {max_step!r} s is too short: time near {latest!r} s does not advance by such a step, or {duration!r} s take more "
            "than 2^53 steps"
        )


def check_advance(start: float, duration: float, dt: float) -> None:
    """Raise ValueError if times are so large that adding dt, or the duration, does not change them."""
    end = start + duration
    spacing = float(np.spacing(max(abs(start), abs(end))))
    if duration > 0.0 and (end == start or dt < spacing):
        raise ValueError(
            f"time cannot advance from start = {start!r} s by dt = {dt!r} s for {duration!r} s: adjacent doubles differ by {spacing:.3g} s; "
            "pass a start nearer to zero"
        )


def finer_steps(stepping: Stepping) -> Iterator[int]:
    """Yield the numbers by which dt may be divided: time advances, and the number of steps is bounded."""
    end = stepping.start + stepping.duration
    shortest = max(stepping.duration / MOST_FINER, float(np.spacing(max(abs(stepping.start), abs(end)))))
    yield from (divisor for divisor in FINER if stepping.dt / divisor >= shortest)


def check_periods(terms: Sequence[Mapping[str, Any]], duration: float, dt: float) -> None:
    """Raise ValueError for a period of SampleAndHold that is too short for the step or the duration."""
    least = max(SHORTEST_PERIOD * duration, SHORTEST_PART * dt) * (1.0 - 1e-9)
    for period in (term["period"] for term in terms if term["kind"] == "SampleAndHold"):
        if period < least:
            raise ValueError(
                f"period = {period!r} s of SampleAndHold is too short for {duration!r} s in steps of dt = {dt!r} s; expected at least {least:.3g} s. "
                "Give the controllers without SampleAndHold, or a smaller dt"
            )


def check_memory(states: float, runs: int, size: int) -> None:
    """Raise MemoryError if the samples of the runs would exceed this machine's memory; called before a run starts."""
    try:
        available = float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # this operating system does not report the size of its memory
        return
    needed = 8.0 * states * runs * max(size, 1)
    if needed > available:
        raise MemoryError(
            f"{states * runs:.3g} states of {size} numbers need {needed / 2**30:.3g} GiB, and this machine has {available / 2**30:.3g} GiB: pass "
            f"a longer dt, or store fewer samples by {'every=' if runs > 1 else 'times='}"
        )


def checked_turns(mechanism: Mechanism, near: Mapping[str, ArrayLike] | None, runs: int) -> dict[str, Array]:
    """Return joint name -> nearby coordinates (runs, nq of the joint), which select the initial revolutions of loop joints."""
    check_mapping("near", near, "joints' names to their coordinates", 0, optional=True)
    turns = {}
    for name, coordinates in (near or {}).items():
        if not mechanism.joint(name).closes_loop:
            raise ModelError(
                f"near: joint '{name}' is in the tree, so q already contains its turns; expected a loop joint"
            )
        size = mechanism.joint(name).type.nq
        rows = real_rows(f"near['{name}']", coordinates, size, (runs,))
        turns[name] = np.broadcast_to(rows, (runs, size))
    return turns


def progress_bar(total: float, shown: bool, unit: str = "s") -> Any:
    """Return a progress bar of tqdm, or None if it is not `shown`."""
    if not shown:
        return None
    from .._files import needed

    return needed("tqdm.auto", "progress=True needs tqdm", "tqdm").tqdm(total=total, unit=unit, unit_scale=unit == "s")


# ---- limits of joints ----------------------------------------------------------------------------------------------------

QUANTITIES = ("position", "velocity", "effort")  # in the order of the core's indices
# tolerance of a limit, relative to its value and to 1 rad or the characteristic length (per second for velocities)
ROUNDING = 1e-9
Record = dict[str, Array]  # name of a field of the core's struct -> array (runs,) or (runs, limits)


@dataclass(frozen=True)
class Limit:
    """Limit of a joint that a simulation monitors: lower and upper bound of a coordinate, a velocity or an effort with this index in the joint.

    The quantity is a "position" [rad, m], a "velocity" [rad/s, m/s] or an "effort", the sum of all controllers' efforts [N m, N].
    """

    joint: str
    index: int
    quantity: str
    lower: float
    upper: float


def _stopped(elements: Sequence[ForceElement]) -> set[tuple[str, int]]:
    """Return (joint, index) of the coordinates that have an end stop among the force elements."""
    stops = (cast("EndStop", e) for e in elements if e._kind == "EndStop")
    return {(e.joint, e.index) for e in stops if isinstance(e.joint, str)}


def joint_limits(mechanism: LoopFunctions, mode: str, elements: Sequence[ForceElement]) -> JointLimits:
    """Return the limits of a mechanism, cached by mode and end stops."""
    stopped = frozenset(_stopped(elements))
    return cached(mechanism, ("limits", mode, stopped), lambda: JointLimits(mechanism, mode, elements))


class JointLimits:
    """Limits of a mechanism's joints in a simulation with force elements; `mode` is the argument `limits` of simulate().

    Raises ModelError if a limit cannot be enforced by an end stop.
    """

    def __init__(self, mechanism: LoopFunctions, mode: str, elements: Sequence[ForceElement]) -> None:
        self.watched: list[Limit] = []
        self.terms: list[tuple[int, int, float, float]] = []  # limits in the core's format
        self.end_stops: list[EndStop] = []
        self.effort_limits: list[float] = []
        stopped = _stopped(elements)
        self.enforced = {(*place, "position") for place in stopped}
        if mode == "ignore":
            return
        most = np.full(mechanism.nv + sum(joint.type.nv for joint in mechanism._closing_joints), np.inf)
        for name in (*mechanism.joints, *mechanism.loop_joints):
            joint = mechanism.joint(name)
            limits = joint.limits if mode == "enforce" else None
            for k in () if limits is None else np.flatnonzero(np.isfinite(limits).any(axis=0)).tolist():
                from ..control.coordinates import coordinate

                try:
                    coordinate(mechanism, name, k, "an end stop")
                except ModelError as error:
                    cure = "Remove the limits, or give limits='warn'"
                    raise ModelError(f"limits of '{name}' do not allow an end stop: {error}. {cure}") from None
                if (name, k) not in stopped:
                    from ..control.elements import EndStop

                    self.end_stops.append(EndStop(name, index=k))
                    self.enforced.add((name, k, "position"))
            fast, strong = joint.type.velocity_limit, joint.type.effort_limit
            sizes = [
                np.array([mechanism._length if unit == "m" else 1.0 for _, unit in of])
                for of in (joint.type.coordinates, joint.type.velocities)
            ]
            self._watch(name, "position", joint._all_q.start, joint.limits, sizes[0])
            self._watch(name, "velocity", joint._all_v.start, None if fast is None else (-fast, fast), sizes[1])
            none = np.zeros_like(sizes[1])
            self._watch(name, "effort", joint._all_v.start, None if strong is None else (-strong, strong), none)
            if strong is not None:
                most[joint._all_v] = strong
        if mode == "enforce" and np.isfinite(most).any():
            self.effort_limits = most.tolist()
            self.enforced |= {(w.joint, w.index, "effort") for w in self.watched if w.quantity == "effort"}

    def _watch(self, joint: str, quantity: str, first: int, limits: Any, sizes: Array) -> None:
        for k, bounds in enumerate(zip(*(() if limits is None else limits), strict=True)):
            lower, upper = map(float, bounds)
            if math.isfinite(lower) or math.isfinite(upper):
                self.watched.append(Limit(joint, k, quantity, lower, upper))
                slack = [ROUNDING * (float(sizes[k]) + abs(x)) for x in (lower, upper)]
                self.terms.append((QUANTITIES.index(quantity), first + k, lower - slack[0], upper + slack[1]))

    def exceeded(self, record: Record, run: int) -> list[dict[str, Any]]:
        """Return the limits that a run violates, each with the time of its first violation [s] and the largest value of its quantity."""
        return [self.exceeded_one(record, run, k) for k in np.flatnonzero(record["excess"][run]).tolist()]

    def exceeded_one(self, record: Record, run: int, k: int) -> dict[str, Any]:
        _, _, lower, upper = self.terms[k]
        excess = float(record["excess"][run, k])
        reached = (upper if excess > 0.0 else lower) + excess
        return {**asdict(self.watched[k]), "time": float(record["left_at"][run, k]), "reached": reached}


# ---- setup ---------------------------------------------------------------------------------------------------------------

BLOCK = 1024  # number of runs of each thread whose results are in memory at the same time
SOME_STARTS = 8  # number of initial configurations in which the rates of joints are evaluated
NO_VARIANTS = np.zeros(0, np.int64)
# largest motion of a joint [rad, mean body sizes] when the loops of an initial state are closed: a larger motion is an error
ELSEWHERE = 1.0
Ended = NDArray[np.int8]  # (runs,), a Status each


@dataclass(frozen=True, eq=False)
class Setup:
    """Picklable data from which this process or another one creates the core's Simulation."""

    mechanism: Any  # a Mechanism, or Variants with a mechanism for each run
    method: str
    stabilisation: str
    gains: tuple[float, float]
    terms: list[dict[str, Any]]
    effort_limits: list[float]
    limits: list[tuple[int, int, float, float]]
    # end stops of loop joints: joint, index of the coordinate, lower and upper limit
    stops: tuple[tuple[str, int, float, float], ...] = ()

    def core(
        self,
        parameters: ArrayLike = (),
        controller: Any = None,
        sampled: Sequence[Any] = (),
        events: Sequence[Any] = (),
    ) -> _core.Simulation:
        """Return the core's Simulation with the parameters of force elements, and with the caller's functions."""
        mechanism = self.mechanism
        return _core.Simulation(
            mechanism, self.method, self.stabilisation, self.gains, self.terms, self.effort_limits, parameters, controller, sampled,
            mechanism._pfaffian_numbers if has_functions_of_q(mechanism) else None, events, self.limits, mechanism._units_of_motion,
        )  # fmt: skip

    @property
    def _varied(self) -> bool:
        """True if each run has its own variant of the mechanism."""
        return self.mechanism._base is not self.mechanism

    def of(self, rows: Any) -> Setup:
        """Return the setup of a subset of the runs; this is the setup itself if all runs have the same mechanism."""
        if not self._varied:
            return self
        return replace(self, mechanism=self.mechanism[rows])

    def variants(self, rows: Any) -> NDArray[np.int64]:
        """Return the indices of the variants of these runs."""
        return np.arange(self.mechanism._count)[rows] if self._varied else NO_VARIANTS

    def begin(
        self, core: _core.Simulation, q: Array, v: Array, time: float, near: Mapping[str, Array], threads: int = 1
    ) -> tuple[Array, Ended]:
        """Return the initial states (runs, size) with closed loops, and the Status (runs,) of each; invalid states are replaced by the neutral
        state.
        """
        nq, nv = self.mechanism.nq, self.mechanism.nv
        x, begun = np.zeros((len(q), core.size)), np.full(len(q), Status.FINISHED, np.int8)
        # SIMD lanes round the last digits differently, and impacts amplify the difference. Therefore methods that simulate one run at a time also
        # compute their
        # initial states one at a time
        singly = len(q) == 1 or _core.methods[self.method].rigid
        for rows in range(len(q)) if singly else shares(len(q), BLOCK * threads):
            single = isinstance(rows, int) and self._varied
            mechanism = self.mechanism[rows] if single else self.mechanism._of_rows(np.arange(len(q))[rows])
            q_on, v_on, begun[rows] = self._on_the_loops(mechanism, q[rows], v[rows], time, threads)
            x[rows, :nq], x[rows, nq : nq + nv] = _replaced(begun[rows] != Status.FINISHED, mechanism, q_on, v_on)
            if core.counted or near:
                turns = self._within_stops(
                    mechanism, x[rows, :nq], time, {name: angles[rows] for name, angles in near.items()}
                )
                coordinates = loop_coordinates(mechanism, x[rows, :nq], time, turns)
                x[rows, core.size - core.counted :] = coordinates[..., : core.counted]
        return x, begun

    def _within_stops(self, mechanism: Mechanism, q: Array, time: float, near: dict[str, Array]) -> dict[str, Array]:
        """Return `near`, completed for loop joints with end stops: their initial angles are shifted by full revolutions to be within the stops."""
        turns = dict(near)
        for joint, k, lower, upper in self.stops:
            if joint not in near:
                x = np.array(mechanism.joint_states(q, near=turns, time=time).q[joint])
                outside = (x[..., k] < lower) | (x[..., k] > upper)
                x[..., k] = np.where(outside, 0.5 * (lower + upper), x[..., k])
                turns[joint] = x
        return turns

    def _on_the_loops(
        self, mechanism: Mechanism, q: Array, v: Array, time: float, threads: int
    ) -> tuple[Array, Array, Array]:
        """Return the nearest states that satisfy the loop constraints, and the Status of each.

        The Status is INVALID_STATE if the loops stay open, and INCONSISTENT_CONSTRAINTS if no velocity is consistent with the constraints.
        """
        options: dict[str, Any] = {"threads": threads, "return_status": True}
        q, off = mechanism.normalize(q, **options)
        unsound = (off != 0) | ~np.isfinite(v).all(axis=-1)
        if not mechanism.nc or self.stabilisation == "none":
            return q, v, np.where(unsound, Status.INVALID_STATE, Status.FINISHED)
        options["time"] = time
        requested, v = _replaced(unsound, mechanism, q, v)
        q, lost = mechanism.project_configuration(requested, **options)
        v, status = mechanism.project_velocity(q, v, **options)
        closed = ~unsound & (lost == 0) & ((status == Status.FINISHED) | (status == Status.INCONSISTENT_CONSTRAINTS))
        closed &= moved_by_closing(mechanism, requested, q).max(axis=-1, initial=0.0) <= ELSEWHERE
        return q, v, np.where(closed, status, Status.INVALID_STATE)


def _replaced(rows: Any, mechanism: Mechanism | Variants, q: Array, v: Array) -> tuple[Array, Array]:
    """Return the states, in which these rows are replaced by the neutral configuration at rest."""
    if not np.any(rows):
        return q, v
    return np.where(rows[..., None], mechanism.neutral(), q), np.where(rows[..., None], 0.0, v)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Runs of a mechanism before they start: the core's setup, force elements and limits.

    Attributes
    ----------
    functions, elements : Python functions of the caller; force elements, including the end stops at joint limits
    felt_at : (..., nq) configurations whose effective inertia determined default parameters of elements, or None
    """

    setup: Setup
    forces: ForceElements
    limits: JointLimits
    functions: list[Callable[..., Any]]
    elements: list[Any]
    felt_at: Array | None

    @property
    def acts(self) -> bool:
        """True if the mechanism has controllers, loads, prescribed motions, dampers or dry friction, so that its energy may change."""
        d = self.setup.mechanism.description
        damped = any(np.any(j.joint.damping) or np.any(j.joint.friction) for j in d.joints) or any(
            s.damping for s in d.springs
        )
        driven = any(j.laws for j in d.joints) or any(hasattr(c, "rows") or c.prescribed(0.0) for c in d.constraints)
        return bool(self.functions or self.elements or damped or driven)

    @classmethod
    def of(
        cls, mechanism: Mechanism | Variants, controllers: tuple[list[Any], list[Any]], limits: JointLimits, stepping: Stepping,
        start: ArrayLike | None, rows: Any = None, runs: int = 0, varies: bool = False, at: ArrayLike | None = None,
    ) -> Prepared:  # fmt: skip
        """Prepare runs with functions and force elements.

        Elements compute their default parameters in the configuration `start`, and use the values of the runs `rows` of parameters that differ
        between runs. With `varies`, the steps must have derivatives. The method is selected by the initial configurations `at`; default: `start`.
        """
        functions, elements = controllers
        method = method_for(stepping.method, elements, varies, mechanism, start if at is None else at, stepping.dt)
        check_contact(mechanism, method, stepping.stabilisation, elements)
        elements = elements + limits.end_stops + shapes_that_touch(mechanism, method, elements)
        felt_at = None if start is None else start_of(mechanism, start)
        run = Run(limits.effort_limits, felt_at, rows, runs, _core.methods[method].rigid)
        forces = ForceElements.of(mechanism, elements, run)
        setup = Setup(
            mechanism,
            method,
            stepping.stabilisation,
            stepping.gains,
            forces.terms,
            forces.effort_limits,
            limits.terms,
            stops_of(mechanism, elements),
        )
        return cls(setup, forces, limits, functions, elements, felt_at)


def moved_by_closing(mechanism: Mechanism | Variants, requested: Array, closed: Array) -> Array:
    """Return displacements (..., nv) from the requested to the closed configurations [rad, mean body sizes]; zero if the loops did not close."""
    base = cast(Mechanism, mechanism._base)
    start = base.normalize(requested, return_status=True)[0]
    moved = base.difference(start, np.where(np.isfinite(closed).all(axis=-1, keepdims=True), closed, start))
    return np.asarray(np.abs(moved) / base._units_of_motion[1][0, : base.nv])


def mechanism_of(mechanism: Mechanism | Variants, run: int) -> Mechanism:
    """Return the mechanism of a run."""
    return cast(
        Mechanism, mechanism if mechanism._base is mechanism else cast("Variants", mechanism)[run % mechanism._count]
    )


def stops_of(mechanism: Mechanism | Variants, elements: Iterable[Any]) -> tuple[tuple[str, int, float, float], ...]:
    """Return joint, index of the coordinate and limits of each end stop at a loop joint.

    The initial angle of the joint is shifted by full revolutions to be within these limits.
    """
    return tuple(
        (e.joint, e.index, *map(float, e.limits))
        for e in elements
        if e._kind == "EndStop" and isinstance(e.joint, str) and mechanism.joint(e.joint).closes_loop
        if e.limits is not None and all(isinstance(x, Real) and np.isfinite(float(x)) for x in e.limits)
    )


def feel_the_start(elements: Iterable[Any]) -> bool:
    """Return True if a default parameter of an element depends on the effective inertia in the initial configuration."""
    return any(getattr(e, name, 0.0) is None for e in elements for name in ("damping", "stiffness"))


def start_of(mechanism: Any, q: ArrayLike) -> Array:
    """Return configurations (..., nq) projected onto the loop constraints; invalid ones are replaced by the neutral configuration."""
    x = real_array("q", q)
    if x.shape[-1:] != (mechanism.nq,):
        return np.asarray(mechanism.neutral())  # the simulation raises the error later
    x, unsound = mechanism.normalize(x, return_status=True)
    if mechanism.nc:
        x, _ = _replaced(unsound != 0, mechanism, x, x)
        x, _ = mechanism.project_configuration(x, return_status=True)
    return _replaced((unsound != 0) | ~np.isfinite(x).all(axis=-1), mechanism, x, x)[0]


def loop_coordinates(mechanism: Mechanism, q: Array, time: float, near: Mapping[str, Array] | None = None) -> Array:
    """Return the initial coordinates (..., n) of all loop joints, from which runs count revolutions.

    Angles are in [-pi, pi], or within the limits of their joint, or nearest to `near`.
    """
    x = mechanism.joint_states(q, near=near, time=time).q
    return np.concatenate([q[..., :0], *(x[joint.name] for joint in mechanism._closing_joints)], axis=-1)


def method_for(
    method: str,
    elements: Iterable[Any],
    varies: bool,
    mechanism: Mechanism | Variants,
    start: ArrayLike | None,
    dt: float,
) -> str:
    """Return the method that "auto" selects.

    Contact friction and bristles are too stiff for explicit steps of any usual length. Dampers and springs may be too stiff as well, which is tested
    in the initial configurations.
    """
    if method != "auto":
        return method
    if any(e.rigid for e in elements):
        return "contact"
    stiff = "implicit_midpoint" if varies else "rosenbrock"
    if any(e.stiff for e in elements):
        return stiff
    for first, q in _some_starts(mechanism, start):
        from .warnings import outruns

        if outruns(first, start_of(first, q), dt):
            return "implicit_midpoint"
    return "rk4"


def _some_starts(mechanism: Mechanism | Variants, start: ArrayLike | None) -> Iterator[tuple[Mechanism, Array]]:
    """Yield a few mechanisms, each with the initial configuration of one of its runs."""
    d = mechanism.description
    if not d.springs and not any(np.any(j.joint.damping) or np.any(j.joint.stiffness) for j in d.joints):
        return
    q = np.asarray(mechanism.neutral() if start is None else real_array("q", start))
    q = q.reshape(-1, q.shape[-1]) if q.ndim else q[None, None]
    runs = max(len(q), mechanism._count)
    for k in np.unique(np.linspace(0, runs - 1, SOME_STARTS).astype(int)).tolist():
        yield mechanism_of(mechanism, k), q[k % len(q)]


def check_contact(mechanism: Mechanism | Variants, method: str, stabilisation: str, elements: Iterable[Any]) -> None:
    """Raise ModelError for rigid contact with another method than "contact", or for options that method "contact" does not support."""
    if not _core.methods[method].rigid:
        for e in elements:
            if e.rigid:
                raise ModelError(f"{type(e).__name__} requires method='contact'; got {method!r}")
        return
    compliant = next((type(e).__name__ for e in elements if e.stiff), None)
    if compliant:
        raise ModelError(
            f"method='contact' supports RigidContact and dry friction of joints; got {compliant}, which is compliant"
        )
    if stabilisation != "projection":
        raise ModelError(f"method='contact' requires stabilisation='projection'; got {stabilisation!r}")
    if mechanism._solver[2]:
        raise ModelError("method='contact' does not support substructures: build the mechanism with substructures=0")


def touching_states(core: _core.Simulation) -> tuple[int, int, int] | None:
    """Return the layout of the contacts of shapes in z: first index, number of points, states of each point; None without such contacts."""
    return None if core.touching[1] < 0 else core.touching


def plane_contacts(setup: Setup, core: _core.Simulation) -> tuple[PlaneContact, ...]:
    """Return the RigidContacts of a simulation, with the indices of their states in z."""
    rigid = [term for term in setup.terms if term["kind"] == "RigidContact"]
    if not rigid:
        return ()
    from .histories import PlaneContact

    return tuple(
        PlaneContact(term["frame"], term["on"], tuple(term["normal"]), float(term["radius"]), *place)
        for term, place in zip(rigid, core.rigid_contacts, strict=True)
    )


def shapes_that_touch(mechanism: Mechanism | Variants, method: str, elements: Iterable[Element]) -> list[Element]:
    """Return the force elements for contacts of shapes, which are added if the caller has not added them."""
    if (
        not _core.methods[method].rigid
        or any(e._kind == "CollisionContacts" for e in elements)
        or not mechanism._may_touch
    ):
        return []
    from ..control.elements import CollisionContacts

    return [CollisionContacts()]


def has_functions_of_q(mechanism: Mechanism | Variants) -> bool:
    return any(callable(getattr(spec, "rows", None)) for spec in mechanism.description.constraints)


def shares(runs: int, size: int) -> Iterator[slice]:
    for first in range(0, runs, size):
        yield slice(first, min(first + size, runs))
