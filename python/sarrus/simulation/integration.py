"""One simulation on its way: chunks of steps in the core, samples, events, checkpoints."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array, is_masked, real_array
from .._core import Status, tolerances
from ..control.element import Run
from ..control.elements import Contact, Stiction
from ..control.terms import force_elements, functions_and_elements, task_controls
from ..description.specs import Description
from ..errors import IntegrationError, ModelError, ShapeError, StateError
from ..mechanism import Mechanism
from .limits import HEAD, JointLimits
from .trajectory import Trajectory

METHODS: dict[str, _core.Method] = _core.methods
MethodName = Literal["auto", "euler", "semi_implicit", "rk4", "rkmk4", "dopri5", "implicit_midpoint", "independent"]
Stabilisation = Literal["none", "corrective", "baumgarte", "projection"]
STABILISATIONS: dict[str, tuple[float, float]] = _core.stabilisations  # and their gains
FAILURES: dict[int, str] = {
    Status.CONTRADICTORY: "the constraints contradict one another, or the motors cannot do what a control law asks of them, or rounding "
    "decides what they do so near to a singular position,",
    Status.NO_CONVERGENCE: "the steps do not converge, or end with open loops (try shorter ones),",
    Status.DIVERGED: "the motion diverges",
}
SHORTEST_PERIOD = 1e-9  # of the duration: more samples than that never end
SHORTEST_PART = 1e-3  # of a step: signals are looked for between steps
CHUNK = 4096  # steps between looks at the clock and the progress bar

Controller = Callable[[float, Array, Array], Any]
EventFunction = Callable[[float, Array, Array], float]
Keep = Callable[[Array, Array, int], None]  # times, states, status


@dataclass(frozen=True, eq=False)
class Event:
    """Something that happens where a function of time and state goes through zero.

    Attributes
    ----------
    function : of (t, q, v), a number
    name : under which its times are found in ``Trajectory.events``, of one simulation no two alike
    terminal : whether the simulation ends there
    direction : 1: only where the function rises, -1: only where it falls, 0: both

    Raises
    ------
    TypeError, ValueError
        The function is none, or there is no such direction.
    """

    function: Callable[[float, Array, Array], float]
    name: str = "event"
    terminal: bool = True
    direction: int = 0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"an Event watches a function (t, q, v); got {self.function!r}")
        if not isinstance(self.name, str):
            raise TypeError(f"name of an Event must be a str; got {self.name!r}")
        if not isinstance(self.direction, Real) or self.direction not in (-1, 0, 1):
            raise ValueError(f"direction of event '{self.name}' must be 1, -1 or 0; got {self.direction!r}")

    def _value(self, t: float, q: Array, v: Array) -> float:
        """Of the function; TypeError or StateError where it is no finite number."""
        returned: Any = self.function(t, q, v)
        if is_masked(returned):
            raise TypeError(
                f"event '{self.name}' returned a masked number; it must return one that is not, such as q[0] - 1.0"
            )
        x = returned.item() if isinstance(returned, np.ndarray) and returned.ndim == 0 else returned
        if isinstance(x, bool) or not isinstance(x, Real):
            raise TypeError(f"event '{self.name}' returned {returned!r}; it must return one number, such as q[0] - 1.0")
        try:
            number = float(x)
        except OverflowError:  # of an integer
            number = np.inf
        if not np.isfinite(number):
            raise StateError(f"event '{self.name}' returned {returned!r} at t = {t:.9g}: it must be finite")
        return number


class Integration:
    """One simulation on its way."""

    def __init__(
        self, mechanism: Mechanism, controller: Any, method: str, stabilisation: str, gains: tuple[float, float], events: list[Event],
        limits: str, start: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        functions, elements = functions_and_elements(controller)
        method = method_for(method, elements)
        self.mechanism, self.method, self.stabilisation = mechanism, method, stabilisation
        self.limits = JointLimits(mechanism, limits, elements)
        self.acting = functions, elements + self.limits.end_stops
        self.felt_at = None if start is None else start_of(mechanism, start)
        self.forces = force_elements(mechanism, self.acting[1], Run(self.limits.effort_limits, self.felt_at))
        if self.forces.parameters.ndim > 1:
            raise ShapeError("numbers, laws or targets that differ from run to run are for simulate_many()")
        call = _force(mechanism, functions) if functions else None
        sampled = [_sampled_force(mechanism, asked) if asked else None for asked in self.forces.sampled]
        pfaffian = mechanism._pfaffian_numbers if has_functions_of_q(mechanism) else None
        self.core = _core.Simulation(
            mechanism, method, stabilisation, gains, self.forces.terms, self.forces.effort_limits,
            self.forces.parameters, call, sampled, pfaffian,
            [(e._value, e.direction, e.terminal) for e in events], self.limits.terms, mechanism._units_of_motion, True,
        )  # fmt: skip
        self.events = events
        self.ended_by: str | None = None
        self.refused = 0  # the status of samples that were taken before the first step
        self.steps = self.rejected = self.beyond_tolerance = 0

    def begin(
        self,
        q: ArrayLike | None,
        v: ArrayLike | None,
        start: float,
        dt: float,
        near: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """At the given state, on the loops."""
        if q is None or v is None:
            raise TypeError("simulate() needs q and v, or resume=")
        robot, stabilisation = self.mechanism, self.stabilisation
        q, v = real_array("q", q), real_array("v", v)
        if np.shape(q) != (robot.nq,) or np.shape(v) != (robot.nv,):
            raise ShapeError(f"q and v must be ({robot.nq},) and ({robot.nv},); got {np.shape(q)} and {np.shape(v)}")
        if not np.isfinite(v).all():
            raise StateError(f"v must be finite; got {v}")
        q = robot.normalize(q)
        if robot.nc and stabilisation != "none":
            closed, v_on, status = on_the_loops(robot, q, v, start)
            if status == Status.UNSOUND:
                raise StateError(
                    f"the loops are open by {np.abs(robot.constraint_residual(q, time=start)).max():.3g} at the start, and this is too far "
                    "to close them by small steps: begin with mechanism.assemble(near=q)"
                )
            q, v = closed, v_on if status == Status.FINISHED else robot.project_velocity(closed, v, time=start)
        self.core.look(q, start)
        self.x = np.concatenate([q, v, np.zeros(self.core.size - robot.nq - robot.nv)])
        self._begin_counting(self.x, start, near)
        self.refused = self.core.sample(self.x, float(start))
        self.start, self.k, self.dt, self.t, self.h = float(start), 0, float(dt), float(start), float(dt)
        self.shown = self.t, self.x.copy()

    def _begin_counting(self, x: Array, time: float, near: Mapping[str, ArrayLike] | None = None) -> None:
        if self.core.counted or near is not None:
            coordinates = loop_coordinates(self.mechanism, x[: self.mechanism.nq], time, near)
            x[len(x) - self.core.counted :] = coordinates[: self.core.counted]

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """Where an earlier simulation had come to."""
        _check_fields(checkpoint)
        for name, mine in (("mechanism", self.mechanism.description), ("method", self.method)):
            if checkpoint[name] != mine:
                raise ModelError(f"the checkpoint is of another {name}")
        shown_at, shown = checkpoint["shown"]
        self.x, shown = (
            self._state_of_checkpoint(name, x, at, int(checkpoint.get("counted", 0)))
            for name, x, at in (("x", checkpoint["x"], checkpoint["t"]), ("shown", shown, float(shown_at)))
        )
        self.start, self.k, self.dt, self.t, self.h = (checkpoint[name] for name in ("start", "k", "dt", "t", "h"))
        self.shown = float(shown_at), shown
        if checkpoint["stabilisation"] == self.stabilisation:
            self.core.close_stages = checkpoint["close_stages"]
        else:
            self.core.look(self.x[: self.mechanism.nq], self.t)
        if checkpoint["force_elements"] != self.forces.as_tuple():
            # those of now were not there in the part of a step that leads up to what was shown
            self.t, x = self.shown
            self.x, self.start, self.k = x.copy(), self.t, 0
            self.x[self.core.integrated : self.core.size - self.core.counted] = 0.0  # samplings begin anew
            self.refused = self.core.sample(self.x, self.t)
            self.shown = self.t, self.x.copy()

    def _state_of_checkpoint(self, name: str, value: Any, time: float, counted: int) -> Array:
        """A copy of a state, in which something or nothing counts turns of joints that close loops, as something or nothing does now."""
        if counted == self.core.counted or np.ndim(value) != 1:
            return _state_of_checkpoint(name, value, self.core.size)
        x = _state_of_checkpoint(name, value, self.core.size - self.core.counted + counted)
        x = np.append(x[: len(x) - counted], np.zeros(self.core.counted))
        self._begin_counting(x, time)
        return x

    def checkpoint(self) -> dict[str, Any]:
        """All that another simulation needs to go on from here."""
        return {
            "mechanism": self.mechanism.description, "method": self.method, "x": self.x.copy(),
            "start": self.start, "k": self.k, "dt": self.dt, "t": self.t, "h": self.h, "shown": self.shown,
            "stabilisation": self.stabilisation, "close_stages": self.core.close_stages,
            "force_elements": self.forces.as_tuple(), "felt_at": self.felt_at, "counted": self.core.counted,
        }  # fmt: skip

    def go(
        self, duration: float, times: ArrayLike | None, rtol: float, atol: float, max_step: float, progress: bool
    ) -> Trajectory:
        """The whole way."""
        # what is shown may be a part of a step ahead of where the steps have come to
        begun, first = clock.perf_counter(), self.shown
        self.core.watch_since(first[0])
        end = first[0] + duration
        check_advance(first[0], duration, self.dt)
        check_periods(self.forces.terms, duration, self.dt)
        kept_states = duration / self.dt + 2.0 if times is None else float(real_array("times", times).size)
        check_memory(kept_states, 1, self.core.size)
        samples = None if times is None else _sample_times(times, first[0], end)
        kept_times, kept, status = [np.array([first[0]])], [first[1][None].copy()], self.refused
        bar = _bar(duration, progress)

        def keep(t: Array, x: Array, state: int) -> None:
            nonlocal status
            status = state
            kept_times.append(t)
            kept.append(x)
            if len(t):
                self.shown = float(t[-1]), x[-1].copy()
            if bar is not None and len(t):
                bar.update(min(float(t[-1]) - first[0], duration) - bar.n)

        with contextlib.closing(bar) if bar is not None else contextlib.nullcontext(), _ending_by_signal(self.core):
            if status:
                pass
            elif METHODS[self.method].adaptive:
                self._adaptive(end, samples, (rtol, atol), max_step, keep)
            else:
                self._fixed(end, samples, keep)
        if status == Status.INTERRUPTED and samples is not None and self.t > self.shown[0]:
            self.shown = self.t, self.x.copy()
        t, x = np.concatenate(kept_times), np.concatenate(kept)
        if samples is not None and not (len(samples) and samples[0] == first[0]):
            t, x = t[1:], x[1:]
        return self._result(t, x, status, clock.perf_counter() - begun)

    # they hand over chunks by a call: a generator would turn a caller's StopIteration into RuntimeError

    def _fixed(self, end: float, samples: Array | None, keep: Keep) -> None:
        """Chunks (times, states, status) of fixed steps; the last one is what is left."""
        if end <= self.shown[0]:
            return
        size, begin = self.core.size, self.k
        samples = None if samples is None else samples[samples > self.shown[0]]
        whole, rest = whole_steps(self.start, end, self.dt)
        whole -= begin
        done = 0
        while done < whole:
            count = min(CHUNK, whole - done)
            before, t_before = self.x.copy(), self.start + self.k * self.dt
            out = np.empty((count, size))
            made, status = self.core.run(self.x, self.start, self.dt, self.k, count, out)
            self.k += made
            done += made
            self.steps += made
            t = self.start + (self.k - made + 1 + np.arange(made)) * self.dt
            self.t = float(self.start + self.k * self.dt)
            if done == whole and made and abs(t[-1] - end) <= 1e-9 * self.dt:
                t[-1] = end  # whatever its last digit
            out = out[:made]
            if self._ended():
                t[-1], out[-1] = self.event_time, self.event_state
                self.t, self.x = float(t[-1]), out[-1].copy()
                self.start, self.k = self.t, 0  # a later run goes on from here
            keep(*self._at(samples, np.append(t_before, t), np.vstack([before, out]), status))
            if status or self.ended_by is not None:
                return
        self.shown = self.t, self.x.copy()
        if rest:  # shown, and not part of what a later run goes on from
            stood, x, out = (self.t, self.x.copy()), self.x.copy(), np.empty((1, size))
            _, status = self.core.run(x, self.t, rest, 0, 1, out)
            if status == 0:
                to = end
                if self._ended():
                    to, x = self.event_time, self.event_state.copy()
                    self.start, self.k, self.t, self.x = to, 0, to, x.copy()
                keep(*self._at(samples, np.array([stood[0], to]), np.vstack([stood[1], x]), status))
                self.shown = to, x
            else:
                keep(np.empty(0), np.empty((0, size)), status)

    def _at(self, samples: Array | None, t: Array, x: Array, status: int) -> tuple[Array, Array, int]:
        """Of states at the steps t, what is to be kept."""
        if samples is None:
            return t[1:], x[1:], status
        times = samples[(samples > t[0]) & (samples <= t[-1])]
        ended = self.ended_by is not None
        if ended and not (len(times) and times[-1] == t[-1]):
            times = np.append(times, t[-1])
        nq, nv = self.mechanism.nq, self.mechanism.nv
        if len(t) < 2 or not len(times):
            return times[:0], x[:0], status
        steps = Trajectory(self.mechanism, t, x[:, :nq], x[:, nq : nq + nv])
        q, v = steps.at(times)
        integrated, counted = self.core.integrated, self.core.size - self.core.counted
        held = x[np.searchsorted(t, times, side="right") - 1, integrated:counted]
        z, turned = (
            [np.interp(times, t, one) for one in some.T] for some in (x[:, nq + nv : integrated], x[:, counted:])
        )
        rows = np.column_stack([q, v, *z, held, *turned])
        if ended:
            rows[-1] = x[-1]
        return times, rows, status

    def _adaptive(
        self, end: float, samples: Array | None, tolerance: tuple[float, float], longest: float, keep: Keep
    ) -> None:
        """Chunks of steps of their own length."""
        begin, later = self.shown[0], None if samples is None else samples[samples > self.shown[0]]
        whole, rest = whole_steps(begin, end, self.dt)
        total = whole + (rest > 0.0) if later is None else len(later)
        had, finished, last = 0, self.shown[0] >= end, self.shown[1]
        while not finished:
            upto = min(had + CHUNK, total)
            ask = _grid(begin, end, self.dt, had, upto, total) if later is None else later[had:upto]
            pause = ask[-1] if len(ask) else end
            out, last = np.empty((max(upto - had, 1), self.core.size)), np.empty(self.core.size)
            self.t, self.h, status, more, taken, rejected, beyond, finished = self.core.run_adaptive(
                self.x, self.t, max(float(pause), np.nextafter(self.t, np.inf)), end, self.h, (*tolerance, longest),
                np.ascontiguousarray(ask), out, last,
            )  # fmt: skip
            self.steps, self.rejected, self.beyond_tolerance = (
                self.steps + taken, self.rejected + rejected, self.beyond_tolerance + beyond
            )  # fmt: skip
            t, x = ask[:more], out[:more]
            had += more
            if self._ended():
                before = t < self.event_time
                t, x = np.append(t[before], self.event_time), np.vstack([x[before], self.event_state])
                self.t, self.x, finished = self.event_time, self.event_state.copy(), True
            keep(t, x, status)
            if status:
                return
        self.shown = (end, last) if self.ended_by is None else (self.event_time, self.event_state)

    def _ended(self) -> bool:
        """Whether an event has ended it; then which, when and where."""
        ended = self.core.ended
        if ended is not None:
            event, self.event_time, self.event_state = ended
            self.ended_by = self.events[event].name
        return ended is not None

    def _result(self, t: Array, x: Array, status: int, seconds: float) -> Trajectory:
        nq, nv = self.mechanism.nq, self.mechanism.nv
        method, record = METHODS[self.method], self.core.record
        statistics = {
            "method": self.method, "steps": self.steps, "rejected": self.rejected, "beyond_tolerance": self.beyond_tolerance,
            "seconds": seconds, "evaluations": method.stages * (self.steps + self.rejected) or None,
            "stiffness": float(record[:1].sum()) if np.isfinite(method.stable) else None,
            "energy_eaten": float(-np.expm1(-record[3:HEAD].sum())) if np.isfinite(method.stable) else None, "limits": self.limits.exceeded(record),
        }  # fmt: skip
        zeros = self.core.found
        events = {
            event.name: np.array([when for which, when in zeros if which == k]) for k, event in enumerate(self.events)
        }
        said = "finished" if self.ended_by is None else f"terminated: {self.ended_by}"
        if status:
            said = "interrupted" if status == Status.INTERRUPTED else "diverged"
        core = self.core

        def efforts(t: Array, q: Array, v: Array, z: Array) -> Array:
            return core.efforts(t, np.concatenate([q, v, z], axis=-1))

        def friction(t: Array, q: Array, v: Array, z: Array) -> Array:
            return core.friction(t, np.concatenate([q, v, z], axis=-1), step)

        step = self.dt
        acts = core.calls or bool(self.forces.terms)
        trajectory = Trajectory(
            self.mechanism, t, x[:, :nq], x[:, nq : nq + nv], z=x[:, nq + nv :],
            loop_q=x[:, core.size - core.counted :] if core.counted else None,
            efforts=efforts if acts else np.zeros((len(t), nv)), friction=friction if core.has_friction else None,
            statistics=statistics, status=said, events=events,
            checkpoint=self.checkpoint(),
        )  # fmt: skip
        if status in FAILURES:
            raise IntegrationError(
                f"{FAILURES[status]} at t = {self.t:.9g} s, after {self.steps} steps of '{self.method}'; "
                f"{self._said_by_laws(x[-1])}what was computed up to there is in .trajectory of this error",
                trajectory,
            )
        return trajectory

    def _said_by_laws(self, last: Array) -> str:
        """What TaskControls say of the state in which a run ended, or the one before."""
        nq, nv = self.mechanism.nq, self.mechanism.nv
        states = [x for x in (self.x, last) if np.isfinite(x).all()]
        said = [
            next(filter(None, (law._refusal(self.t, x[:nq], x[nq : nq + nv]) for x in states)), "")
            for law in task_controls(self.acting[1])
        ]
        return "".join(f"{one}; " for one in said if one)


# ---- what callers give -----------------------------------------------------------------------------------------------


def check_choice(what: str, value: object, known: Iterable[str]) -> None:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{what} must be one of {', '.join(repr(name) for name in known)}; got {value!r}")


# of a checkpoint, besides the state x
FIELDS: dict[str, Any] = {
    "mechanism": Description, "method": str, "start": Real, "k": Integral, "dt": Real, "t": Real, "h": Real, "shown": tuple,
    "stabilisation": str, "close_stages": bool, "force_elements": tuple,
}  # fmt: skip


def _check_fields(checkpoint: Mapping[str, Any]) -> None:
    """TypeError or ModelError for the first field of a checkpoint that can be none."""
    for name, kind in FIELDS.items():
        x: Any = checkpoint[name]
        if not isinstance(x, kind) or (isinstance(x, bool) and kind is not bool):
            raise TypeError(f"'{name}' of the checkpoint must be a {kind.__name__.lower()}; got {x!r}")
        if name == "stabilisation" and x not in STABILISATIONS:
            known = ", ".join(repr(one) for one in STABILISATIONS)
            raise ModelError(f"'stabilisation' of the checkpoint must be one of {known}; got {x!r}")
        if name == "k" and not 0 <= x <= 2**53:
            raise ModelError(f"'k' of the checkpoint must be a count of steps, not negative; got {x!r}")
        if kind is Real and not (np.isfinite(x) and (x > 0.0 or name in ("start", "t"))):
            raise ModelError(
                f"'{name}' of the checkpoint must be {'positive and ' * (name in ('dt', 'h'))}finite; got {x!r}"
            )
        if name == "shown" and not (len(x) == 2 and isinstance(x[0], Real) and np.isfinite(float(x[0]))):
            raise ModelError(f"'shown' of the checkpoint must be a finite time and a state; got {x!r}")


def _state_of_checkpoint(name: str, value: Any, size: int) -> Array:
    """A copy of a state (size,)."""
    x = real_array(f"'{name}' of the checkpoint", value).copy()
    if x.shape != (size,):
        raise ModelError(
            f"'{name}' of the checkpoint has shape {x.shape}, not ({size},): it is of another controller, with other internal states"
        )
    if not np.isfinite(x).all():
        raise ModelError(f"'{name}' of the checkpoint must be finite; got {x}")
    return x


def check_advance(start: float, duration: float, dt: float) -> None:
    """ValueError where times are so large that steps of dt, or the whole duration, would leave them as they are."""
    end = start + duration
    apart = float(np.spacing(max(abs(start), abs(end))))
    if duration > 0.0 and (end == start or dt < apart):
        raise ValueError(
            f"time cannot advance from start = {start!r} s by dt = {dt!r} s for {duration!r} s: doubles are {apart:.3g} s apart there; "
            "start nearer to zero"
        )


def check_periods(terms: Sequence[Mapping[str, Any]], duration: float, dt: float) -> None:
    """ValueError for a Sampled period so short that a step, or the whole run, would be nothing but samples."""
    least = max(SHORTEST_PERIOD * duration, SHORTEST_PART * dt) * (1.0 - 1e-9)
    for period in (term["period"] for term in terms if term["kind"] == "Sampled"):
        if period < least:
            raise ValueError(
                f"period = {period!r} s of Sampled is too short for {duration!r} s in steps of dt = {dt!r} s: it must be at least {least:.3g} s. "
                "Give the controllers without Sampled, or shorter steps"
            )


def check_memory(states: float, runs: int, size: int) -> None:
    """MemoryError for states that would not fit into this machine's memory, before any of them is computed."""
    try:
        there = float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not on this system
        return
    needed = 8.0 * states * runs * max(size, 1)
    if needed > there:
        raise MemoryError(
            f"{states * runs:.3g} states of {size} numbers take {needed / 2**30:.3g} GiB, and this machine has {there / 2**30:.3g}: give a "
            f"longer dt, or keep fewer of them, by {'every=' if runs > 1 else 'times='}"
        )


def start_of(robot: Mechanism, q: ArrayLike) -> Array:
    """Configurations (..., nq) brought onto the loops, the neutral one in place of what is none."""
    x = real_array("q", q)
    if x.shape[-1:] != (robot.nq,):
        return robot.neutral()  # of which the run says what is wrong
    x, unsound = robot.normalize(x, return_status=True)
    if robot.nc:
        x = np.where((unsound != 0)[..., None], robot.neutral(), x)
        x, _ = robot.project_configuration(x, return_status=True)
    bad = (unsound != 0) | ~np.isfinite(x).all(axis=-1)
    return np.where(bad[..., None], robot.neutral(), x)


def checked_near(near: Mapping[str, ArrayLike] | None) -> Mapping[str, ArrayLike]:
    if near is not None and not isinstance(near, Mapping):
        raise TypeError(f"near is a mapping from joints' names to their coordinates; got {near!r}")
    return near or {}


def loop_coordinates(robot: Mechanism, q: Array, time: float, near: Mapping[str, ArrayLike] | None = None) -> Array:
    """Coordinates (..., those of joints that close loops) from which runs count turns: angles in [-pi, pi], or within their joints' limits, or
    those nearest to `near`.
    """
    for name in checked_near(near):
        if not robot.joint(name).closes_loop:
            raise ModelError(f"near names joint '{name}', which stands in the tree: q says how often it has turned")
    x = robot.joint_states(q, near=near, time=time).q
    return np.concatenate([q[..., :0], *(x[joint.name] for joint in robot._closing_joints)], axis=-1)


def method_for(method: str, elements: Iterable[Any]) -> str:
    """What "auto" stands for: friction of contacts and bristles is too stiff for explicit steps."""
    if method != "auto":
        return method
    return "implicit_midpoint" if any(isinstance(e, (Contact, Stiction)) for e in elements) else "rk4"


def on_the_loops(robot: Mechanism, q: Array, v: Array, time: float, threads: int = 1) -> tuple[Array, Array, Array]:
    """The nearest states to start from, and a Status each: UNSOUND where the loops stay open, CONTRADICTORY where they allow no velocity."""
    asked: dict[str, Any] = {"time": time, "threads": threads, "return_status": True}
    q, lost = robot.project_configuration(q, **asked)
    residual, off = robot.constraint_residual(q, **asked)
    v, forbidden = robot.project_velocity(q, v, **asked)
    with np.errstate(invalid="ignore"):
        closed = (lost == 0) & (off == 0) & (np.abs(residual).max(axis=-1, initial=0.0) <= tolerances.torn)
    closed &= (forbidden == Status.FINISHED) | (forbidden == Status.CONTRADICTORY)
    return q, v, np.where(closed, forbidden, Status.UNSOUND)


def _force(mechanism: Mechanism, functions: Sequence[Controller]) -> Controller:
    """Their sums as generalised forces (2, nv): efforts of motors, and what wrenches do."""
    nv = mechanism.nv

    def force(t: float, q: Array, v: Array) -> Array:
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            return np.full((2, nv), np.nan)  # it diverges, which is not the controller's fault
        total = np.zeros((2, nv))
        for function in functions:
            answer, wrenches = function(t, q, v), None
            # a tuple of nv numbers is an effort too
            if isinstance(answer, tuple) and len(answer) == 2 and (answer[1] is None or isinstance(answer[1], Mapping)):
                answer, wrenches = answer
            total[0] += _returned(answer, nv, "tau")
            for frame, wrench in (wrenches or {}).items():
                total[1] += mechanism.jacobian(q, frame).T @ _returned(wrench, 6, f"a wrench on '{frame}'")
        if not np.isfinite(total).all():
            raise StateError(f"the controller returned {total.sum(axis=0)} at t = {t:.9g}: it must be finite")
        return total

    return force


def _sampled_force(mechanism: Mechanism, functions: Sequence[Controller]) -> Controller:
    """Efforts (nv,) of functions that are asked at samples, which give no wrenches."""

    def checked(function: Controller) -> Controller:
        def efforts(t: float, q: Array, v: Array) -> Any:
            answer = function(t, q, v)
            if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping) and answer[1]:
                raise TypeError(
                    f"a function that is Sampled returns efforts ({mechanism.nv},), which are held; it returned wrenches too: give those by a "
                    "function beside Sampled, or return tau + mechanism.jacobian(q, frame).T @ wrench"
                )
            return answer

        return efforts

    force = _force(mechanism, [checked(function) for function in functions])
    return lambda t, q, v: force(t, q, v)[0]


def _returned(value: Any, size: int, what: str) -> Array:
    """What a controller returned, as (size,) numbers; one number will do where size is 1."""
    if value is None:
        raise TypeError(f"the controller returned None; it must return {what} ({size},)")
    try:
        x = real_array(f"{what} of the controller", value)
    except ValueError:
        raise ShapeError(f"the controller returned {value!r}; it must return {what} ({size},)") from None
    if x.shape != (size,) and not (size == 1 and x.shape == ()):
        raise ShapeError(f"the controller returned shape {x.shape}; it must return {what} ({size},)")
    return x


@contextlib.contextmanager
def _ending_by_signal(core: Any) -> Iterator[None]:
    """Ctrl-C ends the simulation at a step's end instead of raising KeyboardInterrupt somewhere in between; the second one raises it."""
    before = signal.getsignal(signal.SIGINT)
    # None: not a handler of Python's, which could not be put back
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return
    asked = False

    def stop(*_: object) -> None:
        nonlocal asked
        if asked:  # a function of the caller's does not come back
            raise KeyboardInterrupt
        asked = True
        core.stop()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def has_functions_of_q(mechanism: Mechanism) -> bool:
    return any(callable(getattr(spec, "rows", None)) for spec in mechanism.description.constraints)


def _sample_times(times: ArrayLike, start: float, end: float) -> Array:
    t = real_array("times", times)
    if t.ndim != 1 or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
        raise ValueError("times must be (n,) finite seconds, each after the one before")
    if len(t) and (t[0] < start - 1e-14 * abs(start) or t[-1] > end + 1e-14 * abs(end)):
        raise ValueError(f"times must lie between {start} and {end}; they go from {t[0]} to {t[-1]}")
    return np.asarray(np.clip(t, start, end), dtype=np.float64)


def whole_steps(start: float, end: float, dt: float) -> tuple[int, float]:
    """How many steps of dt there are, and what is left then [s]; neither is decided by rounding."""
    whole = int(np.floor((end - start) / dt * (1.0 + 1e-14) + 1e-9))
    rest = end - (start + whole * dt)
    return whole, rest if rest > 1e-9 * dt else 0.0


def _grid(start: float, end: float, dt: float, first: int, last: int, total: int) -> Array:
    """Of these the ones from first to last - 1."""
    t: Array = start + dt * np.arange(first + 1, last + 1, dtype=np.float64)
    if last == total and len(t):
        t[-1] = end
    return t


def _bar(total: float, shown: bool) -> Any:
    if not shown:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError as missing:
        raise ImportError('progress=True shows a bar by tqdm: pip install "sarrus[progress]"') from missing
    return tqdm(total=total, unit="s", unit_scale=True)
