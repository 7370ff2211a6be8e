"""Options, limits and setup of runs: from the arguments of simulate() and simulate_many() to the core's Simulation and the initial states."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import cached_property
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, check_mapping, checked_number, real_array, real_rows
from .._core import Status
from .._deferred import dataclass
from ..analysis.closing import prepared as cached
from ..control.element import ForceElement, ForceElements, Run
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, check_choice
from ..mechanism import Mechanism
from .trajectory import Efforts, Trajectory

if TYPE_CHECKING:
    from ..control.elements import EndStop
    from ..variants import Variants

__all__ = ["Limit"]

METHODS: dict[str, _core.Method] = _core.methods
MethodName = Literal[
    "auto", "euler", "semi_implicit", "rk4", "rkmk4", "dopri5", "implicit_midpoint", "independent", "contact", "rosenbrock"
]  # fmt: skip
OnLimits = Literal["warn", "enforce", "ignore"]
Stabilisation = Literal["none", "corrective", "baumgarte", "projection"]
STABILISATIONS: dict[str, tuple[float, float]] = _core.stabilisations  # default gains
MOST_STEPS = 2**53  # the largest count that a double represents exactly
STEP = 1e-3  # default step [s]


Loads = Mapping[str, ArrayLike | Sequence[Any]]  # frame to [moment; force]: numbers or functions of time

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
        for name, choices in CHOICES.items():
            check_choice(name, values[name], choices)
        start = checked_number("start", values["start"], "")
        duration = checked_number("duration", duration, "seconds, not negative")
        step = checked_number("dt", STEP if values["dt"] is None else values["dt"])
        _core.Timing(start, duration, step).check()
        gains = checked_gains(mechanism, values["stabilisation"], values["gains"])
        return cls(duration, **values | {"start": start, "dt": step, "gains": gains})

    @property
    def timing(self) -> _core.Timing:
        """Checks of sample times against start, duration and step of the run."""
        return _core.Timing(self.start, self.duration, self.dt)

    def resumed(self, checkpoint: Mapping[str, Any]) -> Stepping:
        """Return the options of a run that continues from a checkpoint with its step, and, for method "auto", with its method."""
        method = checkpoint["method"] if self.method == "auto" and checkpoint["method"] in METHODS else self.method
        return replace(self, method=method, start=checkpoint["shown"][0], dt=checkpoint["dt"] * checkpoint["every"])


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Stepping)[1:]} | {"dt": None}


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
        raise ValueError(f"stabilisation '{stabilisation}' has no gains; only {names} have gains; got {values!r}")
    try:
        of_velocities, of_positions = (checked_number("gains", x, "seconds, not negative") for x in values)
    except (TypeError, ValueError):
        fault = f"gains must be two finite numbers, not negative (velocities, positions); got {values!r}"
        raise ValueError(fault) from None
    return of_velocities, of_positions


def check_memory(states: float, runs: int, size: int) -> None:
    """Raise MemoryError if the samples of the runs would exceed this machine's memory; called before a run starts."""
    needed = 8.0 * states * runs * max(size, 1)
    # suppress the errors of operating systems that do not report the size of their memory
    with contextlib.suppress(AttributeError, OSError, ValueError):
        available = float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
        if needed > available:
            raise MemoryError(
                f"{states * runs:.3g} states of {size} numbers need {needed / 2**30:.3g} GiB, and this machine has {available / 2**30:.3g} GiB: pass "
                f"a longer dt, or store fewer samples by {'every=' if runs > 1 else 'times='}"
            )


def split_switches(controller: Any) -> tuple[list[Any], list[Any]]:
    """Return the controllers, and the clutches, locks and welds, of a controller or a list of them."""
    several = list(controller) if isinstance(controller, (list, tuple)) else [] if controller is None else [controller]
    switches = [c for c in several if isinstance(c, ForceElement) and not c.native and not callable(c)]
    return [c for c in several if c not in switches], switches


def checked_turns(mechanism: Mechanism, near: Mapping[str, ArrayLike] | None, runs: int) -> dict[str, Array]:
    """Return joint name -> nearby coordinates (runs, nq of the joint), which select the initial revolutions of loop joints."""
    check_mapping("near", near, "joints' names to their coordinates", 0, optional=True)
    turns = {}
    for name, coordinates in (near or {}).items():
        if not mechanism.joint(name).closes_loop:
            raise ModelError(f"near: joint '{name}' is in the tree, so q contains its turns; expected a loop joint")
        size = mechanism.joint(name).type.nq
        turns[name] = np.broadcast_to(real_rows(f"near['{name}']", coordinates, size, (runs,)), (runs, size))
    return turns


@contextlib.contextmanager
def progress_bar(total: float, shown: bool, unit: str = "s") -> Iterator[Callable[[float, float], object] | None]:
    """Yield a function (done, total) that updates a progress bar of tqdm, or None if it is not `shown`."""
    if not shown:
        yield None
        return
    from .._files import needed

    tqdm = needed("tqdm.auto", "progress=True needs tqdm", "tqdm").tqdm
    with tqdm(total=total, unit=unit, unit_scale=unit == "s") as bar:
        yield lambda done, _: bar.update(done - bar.n)


# ---- limits of joints ----------------------------------------------------------------------------------------------------

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


def joint_limits(mechanism: LoopFunctions, mode: str, elements: Sequence[ForceElement]) -> JointLimits:
    """Return the limits of a mechanism, cached by mode and end stops; `mode` is the argument `limits` of simulate()."""
    stops: Any = (e for e in elements if e._kind == "EndStop")
    stopped = frozenset(
        (e.joint, int(e.index)) for e in stops if isinstance(e.joint, str) and isinstance(e.index, Integral)
    )
    return cached(mechanism, ("limits", mode, stopped), lambda: JointLimits(mechanism, mode, stopped))


class JointLimits:
    """Limits of a mechanism's joints in a simulation; `stopped`: (joint, index) of the coordinates that have an end stop among its force elements.

    Raises ModelError if a limit cannot be enforced by an end stop.

    Attributes
    ----------
    watched, terms, enforced : limits of the joints, their form in the core, and True for each that an end stop or a saturation enforces
    end_stops, effort_limits : additional force elements, and limits of the efforts along all velocities [N m, N]; empty: efforts are not limited
    """

    def __init__(self, mechanism: LoopFunctions, mode: str, stopped: frozenset[tuple[str, int]]) -> None:
        none: Any = [], [], [], [], []
        limits = none if mode == "ignore" else _core.joint_limits(mechanism, mode == "enforce", list(stopped))
        watched, self.enforced, self.terms, stops, self.effort_limits = limits
        self.watched = [Limit(*limit) for limit in watched]
        self.end_stops: list[EndStop] = []
        if stops:
            from ..control.elements import EndStop

            self.end_stops = [EndStop(joint, index=k) for joint, k in stops]

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
BY_INERTIA = ("stiffness", "damping")  # parameters of elements whose default is computed from an effective inertia
# displacement [rad, mean body sizes], and the relative change of a parameter beyond which it depends on the configuration
NEARBY, SAME = 1e-2, 1e-8
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

    def core(self, parameters: ArrayLike = (), controller: Any = None, sampled: Any = (), events: Any = ()) -> Any:
        """Return the core's Simulation with the parameters of force elements, and with the caller's functions."""
        rows = self.mechanism._pfaffian_numbers if has_functions_of_q(self.mechanism) else None
        return _core.Simulation(
            self.mechanism, self.method, self.stabilisation, self.gains, self.terms, self.effort_limits, parameters, controller, sampled, rows,
            events, self.limits, self.mechanism._units_of_motion, *self._of_switches,
        )  # fmt: skip

    @property
    def _of_switches(self) -> tuple[Any, ...]:
        """Further arguments of the core, if switches have changed the mechanism: see :class:`~sarrus.simulation.switched.PhaseSetup`."""
        return ()

    @property
    def _varied(self) -> bool:
        """True if each run has its own variant of the mechanism."""
        return self.mechanism._base is not self.mechanism

    def of(self, rows: Any) -> Setup:
        """Return the setup of a subset of the runs; this is the setup itself if all runs have the same mechanism."""
        return replace(self, mechanism=self.mechanism[rows]) if self._varied else self

    def variants(self, rows: Any) -> NDArray[np.int64]:
        """Return the indices of the variants of the given runs."""
        return np.arange(self.mechanism._count)[rows] if self._varied else NO_VARIANTS

    def begin(
        self, core: _core.Simulation, q: Array, v: Array, time: float, near: Mapping[str, Array], threads: int = 1
    ) -> tuple[Array, Ended]:
        """Return the initial states (runs, size) with closed loops, and the Status (runs,) of each; invalid states are replaced by the neutral
        state.
        """
        nq, nv, counted = self.mechanism.nq, self.mechanism.nv, core.counted
        x, begun = np.zeros((len(q), core.size)), np.full(len(q), Status.FINISHED, np.int8)
        # SIMD lanes round the last digits differently, and impacts amplify the difference. Therefore methods with impacts close the loops of one
        # initial state at a time
        singly = len(q) == 1 or (METHODS[self.method].rigid and (self._varied or counted or bool(near)))
        for rows in range(len(q)) if singly else shares(len(q), BLOCK * threads):
            single = isinstance(rows, int) and self._varied
            mechanism = self.mechanism[rows] if single else self.mechanism._of_rows(np.arange(len(q))[rows])
            q_on, v_on, begun[rows] = self._on_the_loops(mechanism, q[rows], v[rows], time, threads)
            x[rows, :nq], x[rows, nq : nq + nv] = _replaced(begun[rows] != Status.FINISHED, mechanism, q_on, v_on)
            if counted or near:
                turns = {joint: angles[rows] for joint, angles in near.items()}
                turns = self._within_stops(mechanism, x[rows, :nq], time, turns)
                x[rows, core.size - counted :] = loop_coordinates(mechanism, x[rows, :nq], time, turns)[..., :counted]
        return x, begun

    def _within_stops(self, mechanism: Mechanism, q: Array, time: float, near: dict[str, Array]) -> dict[str, Array]:
        """Return `near`, completed for loop joints with end stops: their initial angles are shifted by full revolutions to be within the stops."""
        turns = dict(near)
        for joint, k, lower, upper in (stop for stop in self.stops if stop[0] not in near):
            x = turns[joint] = np.array(mechanism.joint_states(q, near=turns, time=time).q[joint])
            x[..., k] = np.where((x[..., k] < lower) | (x[..., k] > upper), 0.5 * (lower + upper), x[..., k])
        return turns

    def _on_the_loops(self, mechanism: Any, q: Array, v: Array, time: float, threads: int) -> tuple[Any, Any, Any]:
        """Return the nearest states that satisfy the loop constraints, and the Status of each.

        The Status is INVALID_STATE if the loops stay open, and INCONSISTENT_CONSTRAINTS if no velocity is consistent with the constraints.
        """
        options: dict[str, Any] = {"threads": threads, "return_status": True}

        def project(close: Callable[..., Any], *states: Array) -> Any:
            if q.ndim == 1 or not METHODS[self.method].rigid:
                return close(*states, **options)
            results = [close(*state, **options) for state in zip(*states, strict=True)]
            return np.array([x for x, _ in results]), np.array([status for _, status in results])

        q, off = mechanism.normalize(q, **options)
        unsound = (off != 0) | ~np.isfinite(v).all(axis=-1)
        if not mechanism.nc or self.stabilisation == "none":
            return q, v, np.where(unsound, Status.INVALID_STATE, Status.FINISHED)
        options["time"] = time
        requested, v = _replaced(unsound, mechanism, q, v)
        q, lost = project(mechanism.project_configuration, requested)
        v, status = project(mechanism.project_velocity, q, v)
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
    time : time of these configurations, the start of the runs [s]
    run : data of the runs that the elements used
    """

    setup: Setup
    forces: ForceElements
    limits: JointLimits
    functions: list[Callable[..., Any]]
    elements: list[Any]
    felt_at: Array | None
    time: float
    run: Run

    @property
    def calls(self) -> bool:
        """True if the simulation calls Python functions of the caller."""
        return bool(self.functions) or any(self.forces.sampled)

    @property
    def acts(self) -> bool:
        """True if the mechanism has controllers, loads, prescribed motions, dampers or dry friction, so that its energy may change."""
        d = self.setup.mechanism.description
        damped = any(x.joint._damped or np.any(x.joint.friction) for x in d.joints) or any(s._damped for s in d.springs)
        return bool(self.functions or self.elements or damped or moves(d))

    @cached_property
    def felt(self) -> tuple[str, ...]:
        """Names of the default parameters of elements that depend on the initial configuration, because an effective inertia does."""
        elements = [e for e in self.elements if _has_default(e, *BY_INERTIA)]
        if self.felt_at is None or not self.felt_at.size or not elements:
            return ()
        mechanism: Any = self.setup.mechanism
        q, units = self.felt_at.reshape(-1, mechanism.nq)[0], mechanism._base._units_of_motion[1][0, : mechanism.nv]
        moved = mechanism._base.integrate(q, NEARBY * units * np.random.default_rng(0).normal(size=mechanism.nv))
        there = (start_of(mechanism, x, self.time) for x in (q, moved))
        one, other = (ForceElements.of(mechanism, elements, replace(self.run, start=x)) for x in there)
        differs = ~np.isclose(one.parameters, other.parameters, rtol=SAME, atol=0.0, equal_nan=True)
        return tuple(name for name, at in one.names.items() if differs[..., at].any())

    @classmethod
    def of(
        cls, mechanism: Mechanism | Variants, controllers: tuple[list[Any], list[Any]], stepping: Stepping, start: ArrayLike | None, *,
        varies: bool = False, only_if_felt: bool = False, rows: Any = None, runs: int = 0,
    ) -> Prepared:  # fmt: skip
        """Prepare runs with functions and force elements, and check their times.

        Elements compute their default parameters in the configurations `start` (with `only_if_felt`, only if some default depends on them), and use
        the values of the runs `rows` of parameters that differ between runs. With `varies`, the steps must have derivatives.
        """
        functions, elements = controllers
        limits = joint_limits(mechanism, stepping.limits, elements)
        method = method_for(stepping.method, elements, varies, mechanism, start, stepping.dt, stepping.start)
        check_contact(mechanism, method, stepping.stabilisation, elements)
        elements = elements + limits.end_stops
        if METHODS[method].rigid and mechanism._may_touch and not any(e._kind == "CollisionContacts" for e in elements):
            from ..control.elements import CollisionContacts

            elements = [*elements, CollisionContacts()]
        # compute the initial configuration if a parameter of an element is None, because its default or its check depends on it
        felt = not only_if_felt or any(_has_default(e, *BY_INERTIA, "stop_stiffness") for e in elements)
        felt_at = start_of(mechanism, start, stepping.start) if felt and start is not None else None
        run = Run(limits.effort_limits, felt_at, rows, runs, METHODS[method].rigid)
        forces = ForceElements.of(mechanism, elements, run)
        stepping.timing.check_advance()
        for term in forces.terms:
            if term["kind"] == "SampleAndHold":
                stepping.timing.check_period(term["period"], term["kind"])
        setup = Setup(
            mechanism, method, stepping.stabilisation, stepping.gains, forces.terms, forces.effort_limits, limits.terms,
            stops_of(mechanism, elements),
        )  # fmt: skip
        return cls(setup, forces, limits, functions, elements, felt_at, stepping.start, run)


def defaults_of(names: Sequence[str]) -> str:
    """Return the fact, for messages, that these parameters depend on the initial configuration."""
    return f"the default{'s' * (len(names) > 1)} of {', '.join(names)} {'depend' if len(names) > 1 else 'depends'} on the initial configuration of a run"


def given(names: Sequence[str]) -> str:
    """Return the cure, for messages, that these parameters must be numbers."""
    owners, keys = (dict.fromkeys(x) for x in zip(*(name.rsplit(".", 1) for name in names), strict=True))
    each = dict.fromkeys(f"{key.split(' #')[0]}=" for key in keys)  # the second element of a joint has "stiffness #2"
    return f"give {' and '.join(each)} to {', '.join(owners)}"


def _has_default(element: Any, *names: str) -> bool:
    return any(getattr(element, name, 0.0) is None for name in names)


Rows = slice | NDArray[np.intp]
Groups = Sequence[tuple[Rows, Prepared]]  # indices of the runs of each mechanism


def moves(description: Any) -> bool:
    """Return True if the description has a prescribed motion, which is a function of time, or a Pfaffian constraint."""
    constraints = description.constraints
    return any(j.laws for j in description.joints) or any(hasattr(c, "rows") or c.prescribed(0.0) for c in constraints)


# ---- from the core's results to a trajectory -------------------------------------------------------------------------


def trajectory_of(mechanism: Mechanism, t: Array, x: Array, counted: int, **facts: Any) -> Trajectory:
    """Return the trajectory of a run with states x (n, size), of which the last `counted` are coordinates of loop joints."""
    q, v, z = np.split(x, (mechanism.nq, mechanism.nq + mechanism.nv), axis=1)
    if loads := facts.pop("loads", None):
        facts["wrenches"] = loads(mechanism, t, x)
    loop_q = x[:, x.shape[1] - counted :] if counted else None
    return Trajectory(mechanism, t, q, v, internal_state=z, loop_q=loop_q, **facts)


PLACED = ("AppliedWrench", "RigidContact", "CollisionContacts")  # elements whose wrenches a Trajectory has already


def forces_of(
    setup: Setup, core: _core.Simulation, dt: float, parameters: Array | None = None, functions: Sequence[Any] = ()
) -> dict[str, Any]:
    """Return the arguments of a trajectory for its forces: efforts and friction, evaluated when they are needed, its loads, and its rigid contacts.

    Parameters of force elements are those of the core, or `parameters` (n, parameters) at each sample. `functions` are those that may return wrenches.
    """

    def at_samples(forces: Callable[..., Array], *arguments: Any) -> Efforts:
        return lambda t, q, v, z: forces(t, np.concatenate([q, v, z], axis=-1), *arguments, parameters=parameters)

    rigid = zip((term for term in setup.terms if term["kind"] == "RigidContact"), core.rigid_contacts, strict=True)
    planes = [(x["frame"], x["on"], tuple(x["normal"]), float(x["radius"]), *place) for x, place in rigid]
    if planes:
        from .histories import PlaneContact

        planes = [PlaneContact(*contact) for contact in planes]
    friction = at_samples(core.friction, dt) if core.has_friction else None
    applied = [(term["frame"], term["world_aligned"]) for term in setup.terms if term["kind"] == "AppliedWrench"]

    def loads(mechanism: Mechanism, t: Array, x: Array) -> dict[str, Array]:
        wrenches: dict[str, Array] = {}
        for (frame, aligned), w in zip(
            applied, np.split(core.loads(t, x, parameters), len(applied), axis=1), strict=True
        ):
            if aligned:
                R = mechanism.pose(x[:, : mechanism.nq], frame, return_status=True)[0][:, :3, :3]
                w = np.nan_to_num(np.einsum("nji,nkj->nki", R, w.reshape(-1, 2, 3))).reshape(-1, 6)
            wrenches[frame] = wrenches[frame] + w if frame in wrenches else w
        return wrenches

    pushing = [term for term in setup.terms if "frame" in term and term["kind"] not in PLACED]
    frames = sorted({term[end] for term in pushing for end in ("frame", "on") if end in term})

    def pushes(t: Array, q: Array, v: Array, z: Array) -> dict[str, Array]:
        """Return the wrenches of elements and functions: frame name -> (n, 6)."""
        wrenches: dict[str, Array] = {}
        if frames and len(t):
            of_elements = at_samples(core.pushes, frames)(t, q, v, z)
            wrenches = dict(zip(frames, np.split(of_elements, len(frames), axis=1), strict=True))
            wrenches.pop("ground", None)
        for k, state in enumerate(zip(t.tolist(), q, v, strict=True)):
            for function in functions:
                for frame, wrench in parts_of(function(*state))[1].items():
                    wrenches.setdefault(frame, np.zeros((len(t), 6)))[k] += wrench
        return wrenches

    return {
        "efforts": at_samples(core.efforts),
        "pushes": pushes if frames or functions else None,
        "loads": loads if applied else None,
        "friction": friction,
        "touching": core.touching,
        "on_planes": tuple(planes),
    }


def parts_of(answer: Any) -> tuple[Any, Mapping[str, Any]]:
    """Return the efforts and the wrenches that a function returned; a tuple of nv numbers is an effort, not (effort, wrenches)."""
    if isinstance(answer, tuple) and len(answer) == 2 and (answer[1] is None or isinstance(answer[1], Mapping)):
        return answer[0], answer[1] or {}
    return answer, {}


# ---- initial states --------------------------------------------------------------------------------------------------


def joint_at(mechanism: Mechanism, place: int) -> Any:
    """Return the joint to which the velocity with this index belongs."""
    return next(j for j in map(mechanism.joint, mechanism.joints) if place in range(*j.v_slice.indices(mechanism.nv)))


def moved_by_closing(mechanism: Mechanism | Variants, requested: Array, closed: Array) -> Array:
    """Return displacements (..., nv) from the requested to the closed configurations [rad, mean body sizes]; zero if the loops did not close."""
    base = cast(Mechanism, mechanism._base)
    start = base.normalize(requested, return_status=True)[0]
    moved = base.difference(start, np.where(np.isfinite(closed).all(axis=-1, keepdims=True), closed, start))
    return np.asarray(np.abs(moved) / base._units_of_motion[1][0, : base.nv])


def mechanism_of(mechanism: Mechanism | Variants, run: int) -> Mechanism:
    """Return the mechanism of a run."""
    several: Any = mechanism
    return cast(Mechanism, mechanism if mechanism._base is mechanism else several[run % mechanism._count])


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


def start_of(mechanism: Any, q: ArrayLike, time: float) -> Array:
    """Return configurations (..., nq) projected onto the loop constraints at a time; invalid ones are replaced by the neutral configuration."""
    x = real_array("q", q)
    if x.shape[-1:] != (mechanism.nq,):
        return np.asarray(mechanism.neutral())  # the simulation raises the error later
    x, unsound = mechanism.normalize(x, return_status=True)
    if mechanism.nc:
        x = _replaced(unsound != 0, mechanism, x, x)[0]
        x, _ = mechanism.project_configuration(x, time=time, return_status=True)
    return _replaced((unsound != 0) | ~np.isfinite(x).all(axis=-1), mechanism, x, x)[0]


def loop_coordinates(mechanism: Mechanism, q: Array, time: float, near: Mapping[str, Array] | None = None) -> Array:
    """Return the initial coordinates (..., n) of all loop joints, from which runs count revolutions.

    Angles are in [-pi, pi], or within the limits of their joint, or nearest to `near`.
    """
    x = mechanism.joint_states(q, near=near, time=time).q
    return np.concatenate([q[..., :0], *(x[joint.name] for joint in mechanism._closing_joints)], axis=-1)


def method_for(
    method: str, elements: Iterable[Any], varies: bool, mechanism: Any, start: Any, dt: float, time: float
) -> str:
    """Return the method that "auto" selects for runs from the configurations `start` at a time.

    Contact friction and bristles are too stiff for explicit steps of any usual length. Dampers and springs may be too stiff as well, which is tested
    in the initial configurations.
    """
    if method != "auto":
        return method
    if any(e.rigid for e in elements):
        return "contact"
    if any(e.stiff for e in elements):
        return "implicit_midpoint" if varies else "rosenbrock"
    for first, q in _some_starts(mechanism, start):
        from .warnings import STABLE, fastest_rate

        fastest = fastest_rate(first, start_of(first, q, time))
        if fastest is not None and fastest.rate * dt > 0.5 * STABLE:  # a margin, because effective inertia changes
            return "implicit_midpoint"
    return "rk4"


def _some_starts(mechanism: Mechanism | Variants, start: ArrayLike | None) -> Iterator[tuple[Mechanism, Array]]:
    """Yield a few mechanisms, each with the initial configuration of one of its runs."""
    d = mechanism.description
    if not d.springs and not any(j.joint._damped or j.joint._sprung for j in d.joints):
        return
    q = np.asarray(mechanism.neutral() if start is None else real_array("q", start))
    q = q.reshape(-1, q.shape[-1]) if q.ndim else q[None, None]
    runs = max(len(q), mechanism._count)
    for k in sorted(set(np.linspace(0, runs - 1, SOME_STARTS).astype(int).tolist())):
        yield mechanism_of(mechanism, k), q[k % len(q)]


def check_contact(mechanism: Mechanism | Variants, method: str, stabilisation: str, elements: Iterable[Any]) -> None:
    """Raise ModelError for rigid contact with another method than "contact", or for options that method "contact" does not support."""
    rigid = METHODS[method].rigid
    wrong = next((type(e).__name__ for e in elements if (e.stiff and not e.implicit if rigid else e.rigid)), None)
    if wrong and not rigid:
        raise ModelError(f"{wrong} requires method='contact'; got {method!r}")
    if wrong:
        raise ModelError(f"method='contact' supports RigidContact and dry friction; got {wrong}, which is compliant")
    if rigid and stabilisation != "projection":
        raise ModelError(f"method='contact' requires stabilisation='projection'; got {stabilisation!r}")
    if rigid and mechanism._solver[2]:
        raise ModelError("method='contact' does not support substructures: build the mechanism with substructures=0")


def has_functions_of_q(mechanism: Mechanism | Variants) -> bool:
    """Return True if rows of constraints are Python functions."""
    return any(callable(getattr(spec, "rows", None)) for spec in mechanism.description.constraints)


def shares(runs: int, size: int) -> Iterator[slice]:
    for first in range(0, runs, size):
        yield slice(first, min(first + size, runs))
