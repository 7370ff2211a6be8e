"""One simulation on its way: stretches of steps in the core, samples, events, checkpoints."""

from __future__ import annotations

import contextlib
import signal
import threading
import time as clock
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, real_array
from .._core import Status
from ..control.terms import task_controls
from ..errors import IntegrationError, ModelError, ShapeError, StateError
from .arguments import METHODS, check_advance, check_memory, check_periods, checked_turns, progress_bar
from .checkpoint import check_fields, state_of_checkpoint
from .contact_history import BEFORE
from .functions import Event, force, sampled_force
from .setup import Prepared, loop_coordinates, touching_states
from .trajectory import Efforts, Trajectory
from .warnings import warn_of_runs

__all__: list[str] = []

FAILURES: dict[int, str] = {
    Status.CONTRADICTORY: "the constraints contradict one another, or the motors cannot do what a control law asks of them, or rounding "
    "decides what they do so near to a singular position,",
    Status.NO_CONVERGENCE: "the steps do not converge, or end with open loops (try shorter ones),",
    Status.DIVERGED: "the motion diverges",
}
HELD = (
    "kinematics", "positions", "penetration", "momentum", "primal", "dual", "complementarity", "natural_map", "work",
)  # fmt: skip
CHUNK = 4096  # steps between looks at the clock and the progress bar


class Integration:
    """One simulation on its way."""

    def __init__(self, prepared: Prepared, events: list[Event]) -> None:
        setup, forces = prepared.setup, prepared.forces
        if forces.parameters.ndim > 1:
            raise ShapeError("numbers, laws or targets that differ from run to run are for simulate_many()")
        self.prepared, self.setup, self.mechanism, self.events = prepared, setup, setup.mechanism, events
        call = force(self.mechanism, prepared.functions) if prepared.functions else None
        sampled = [sampled_force(self.mechanism, asked) if asked else None for asked in forces.sampled]
        watched = [(e._value, e.direction, e.terminal) for e in events]
        self.core = setup.core(forces.parameters, call, sampled, watched)
        self.touching = touching_states(self.core)

    def begin(
        self, q: ArrayLike | None, v: ArrayLike | None, start: float, dt: float, near: Mapping[str, ArrayLike] | None
    ) -> None:
        """At the given state, on the loops."""
        if q is None or v is None:
            raise TypeError("simulate() needs q and v, or resume=")
        robot = self.mechanism
        q, v = real_array("q", q), real_array("v", v)
        if np.shape(q) != (robot.nq,) or np.shape(v) != (robot.nv,):
            raise ShapeError(f"q and v must be ({robot.nq},) and ({robot.nv},); got {np.shape(q)} and {np.shape(v)}")
        x, begun = self.setup.begin(self.core, q[None], v[None], start, checked_turns(robot, near, 1))
        if begun[0] != Status.FINISHED:
            self._refuse(q, v, start, begun[0])
        self.core.begin(x[0], start, dt)

    def _refuse(self, q: Array, v: Array, start: float, why: int) -> None:
        """Raise what is wrong with a state from which no run starts."""
        robot = self.mechanism
        if not np.isfinite(v).all():
            raise StateError(f"v must be finite; got {v}")
        q = robot.normalize(q)
        if why == Status.UNSOUND:
            raise StateError(
                f"the loops are open by {np.abs(robot.constraint_residual(q, time=start)).max():.3g} at the start, and this is too far "
                "to close them by small steps: begin with mechanism.assemble(near=q)"
            )
        closed, _ = robot.project_configuration(q, time=start, return_status=True)
        robot.project_velocity(closed, v, time=start)

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """Where an earlier simulation had come to."""
        check_fields(checkpoint)
        for name, mine in (("mechanism", self.mechanism.description), ("method", self.setup.method)):
            if checkpoint[name] != mine:
                raise ModelError(f"the checkpoint is of another {name}")
        time, counted = float(checkpoint["shown"][0]), int(checkpoint.get("counted", 0))
        x = self._restored("x", checkpoint["x"], checkpoint["t"], counted)
        shown = time, self._restored("shown", checkpoint["shown"][1], time, counted)
        self.core.restore(
            checkpoint | {"x": x, "shown": shown},
            looks=checkpoint["stabilisation"] != self.setup.stabilisation,
            # those of now were not there in the part of a step that leads up to what was shown
            anew=checkpoint["force_elements"] != self.prepared.forces.as_tuple(),
        )

    def _restored(self, name: str, value: Any, time: float, counted: int) -> Array:
        """A copy of a state, in which something or nothing counts turns of joints that close loops, as something or nothing does now."""
        size, now = self.core.size, self.core.counted
        if counted == now or np.ndim(value) != 1:
            return state_of_checkpoint(name, value, size)
        x = state_of_checkpoint(name, value, size - now + counted)[: size - now]
        return np.append(x, loop_coordinates(self.mechanism, x[: self.mechanism.nq], time)[:now])

    def checkpoint(self) -> dict[str, Any]:
        """All that another simulation needs to go on from here."""
        setup, prepared = self.setup, self.prepared
        return {
            "mechanism": self.mechanism.description, "method": setup.method, "stabilisation": setup.stabilisation, "felt_at": prepared.felt_at,
            "force_elements": prepared.forces.as_tuple(), "counted": self.core.counted, **self.core.state,
        }  # fmt: skip

    def go(
        self, duration: float, times: ArrayLike | None, rtol: float, atol: float, max_step: float, progress: bool
    ) -> Trajectory:
        """The whole way."""
        begun, core, adaptive = clock.perf_counter(), self.core, METHODS[self.setup.method].adaptive
        # what is shown may be a part of a step ahead of where the steps have come to
        dt, (first, shown) = core.state["dt"], core.state["shown"]
        end = first + duration
        check_advance(first, duration, dt)
        check_periods(self.setup.terms, duration, dt)
        check_memory(duration / dt + 2.0 if times is None else float(real_array("times", times).size), 1, core.size)
        samples = None if times is None else _sample_times(times, first, end)
        between_steps = None if samples is None or adaptive else samples[samples > first]
        core.aim(end, samples[samples > first] if samples is not None and adaptive else None, (rtol, atol, max_step))
        kept_times, kept, status = [np.array([first])], [shown[None]], Status.FINISHED
        bar = progress_bar(duration, progress)
        # stretches come by a call: a generator would turn a caller's StopIteration into RuntimeError
        with contextlib.closing(bar) if bar is not None else contextlib.nullcontext(), _ending_by_signal(core):
            while not core.finished:
                t, x, status = core.advance(CHUNK)
                t, x = (t[1:], x[1:]) if between_steps is None else self._at(between_steps, t, x)
                kept_times.append(t)
                kept.append(x)
                if bar is not None and len(t):
                    bar.update(min(float(t[-1]) - first, duration) - bar.n)
        t, x = np.concatenate(kept_times), np.concatenate(kept)
        if samples is not None and not (len(samples) and samples[0] == first):
            t, x = t[1:], x[1:]
        trajectory = self._result(t, x, status, clock.perf_counter() - begun)
        self._warn(trajectory, min(dt, duration))
        return trajectory

    def _at(self, samples: Array, t: Array, x: Array) -> tuple[Array, Array]:
        """Of states at steps, those at the samples, and where an event has ended the run."""
        times = samples[(samples > t[0]) & (samples <= t[-1])]
        ended = self.core.ended_by is not None
        if ended and not (len(times) and times[-1] == t[-1]):
            times = np.append(times, t[-1])
        if not len(times):
            return times, x[:0]
        nq, nv = self.mechanism.nq, self.mechanism.nv
        integrated, counted = self.core.integrated, self.core.size - self.core.counted
        q, v = Trajectory(self.mechanism, t, x[:, :nq], x[:, nq : nq + nv]).at(times)
        before = np.searchsorted(t, times, side="right") - 1
        held = x[before, integrated:counted]
        z, turned = (
            [np.interp(times, t, one) for one in some.T] for some in (x[:, nq + nv : integrated], x[:, counted:])
        )
        rows = np.column_stack([q, v, *z, held, *turned])
        if self.touching is not None:  # names of points lie not between each other
            first, points, each = self.touching
            these = nq + nv + first + np.arange(BEFORE + each * points)
            rows[:, these] = x[np.ix_(before, these)]
        if ended:
            rows[-1] = x[-1]
        return times, rows

    def _result(self, t: Array, x: Array, status: int, seconds: float) -> Trajectory:
        core, nq, nv = self.core, self.mechanism.nq, self.mechanism.nv
        said = "finished" if core.ended_by is None else f"terminated: {self.events[core.ended_by].name}"
        if status:
            said = "interrupted" if status == Status.INTERRUPTED else "diverged"
        state, size, events = self.checkpoint(), core.size, {}
        for k, event in enumerate(self.events):
            events[event.name] = np.array([when for which, when in core.found if which == k])

        def of_samples(ask: Callable[..., Array], *more: float) -> Efforts:
            return lambda t, q, v, z: ask(t, np.concatenate([q, v, z], axis=-1), *more)

        efforts, friction = of_samples(core.efforts), of_samples(core.friction, state["dt"])
        acts = core.calls or bool(self.setup.terms)
        trajectory = Trajectory(
            self.mechanism, t, x[:, :nq], x[:, nq : nq + nv], z=x[:, nq + nv :],
            loop_q=x[:, size - core.counted :] if core.counted else None,
            efforts=efforts if acts else np.zeros((len(t), nv)), friction=friction if core.has_friction else None,
            statistics=self._statistics(seconds), status=said, events=events, checkpoint=state, touching=self.touching,
        )  # fmt: skip
        if status in FAILURES:
            raise IntegrationError(
                f"{FAILURES[status]} at t = {state['t']:.9g} s, after {core.counts['steps']} steps of '{self.setup.method}'; "
                f"{self._said_by_laws(x[-1])}what was computed up to there is in .trajectory of this error",
                trajectory,
            )
        return trajectory

    def _said_by_laws(self, last: Array) -> str:
        """What TaskControls say of the state in which a run ended, or the one before."""
        nq, nv, now = self.mechanism.nq, self.mechanism.nv, self.core.state
        states = [x for x in (now["x"], last) if np.isfinite(x).all()]
        said = [
            next(filter(None, (law._refusal(now["t"], x[:nq], x[nq : nq + nv]) for x in states)), "")
            for law in task_controls(self.prepared.elements)
        ]
        return "".join(f"{one}; " for one in said if one)

    def _statistics(self, seconds: float) -> dict[str, Any]:
        method, record, counts = METHODS[self.setup.method], self.core.record, self.core.counts
        judged = np.isfinite(method.stable)
        return {
            "method": method.name, **counts, "seconds": seconds,
            "evaluations": method.stages * (counts["steps"] + counts["rejected"]) or None,
            "stiffness": float(record["stiffness"][0]) if judged else None,
            "energy_eaten": float(-np.expm1(-record["energy_eaten"][0])) if judged else None,
            "limits": self.prepared.limits.exceeded(record, 0),
            **({"linearly_implicit": int(record["linearly_implicit"].item(0))} if record["linearly_implicit"].size else {}),
            **({"contact": {name: record[name].item(0) for name in HELD} | {"as_touching": int(record["as_touching"].item(0))}} if method.rigid else {}),
        }  # fmt: skip

    def _warn(self, run: Trajectory, step: float) -> None:
        time, x = self.core.state["shown"]
        nq, nv = self.mechanism.nq, self.mechanism.nv
        warn_of_runs(
            [(slice(None), self.prepared)], self.core.record, run.q[None], run.v[None], lambda _: run, step=step,
            steps=self.core.counts["steps"], end=(time, x[None, :nq], x[None, nq : nq + nv], np.ones(1, dtype=bool)),
        )  # fmt: skip


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


def _sample_times(times: ArrayLike, start: float, end: float) -> Array:
    t = real_array("times", times)
    if t.ndim != 1 or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
        raise ValueError("times must be (n,) finite seconds, each after the one before")
    if len(t) and (t[0] < start - 1e-14 * abs(start) or t[-1] > end + 1e-14 * abs(end)):
        raise ValueError(f"times must lie between {start} and {end}; they go from {t[0]} to {t[-1]}")
    return np.asarray(np.clip(t, start, end), dtype=np.float64)
