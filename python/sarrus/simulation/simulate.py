"""A mechanism in motion: from a state, with its force elements, to a trajectory."""

from __future__ import annotations

import contextlib
import signal
import threading
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, ArrayLike, checked_number, real_array
from .._core import Status
from ..analysis.scaling import velocity_scale
from ..control.element import ForceElement, functions_and_elements
from ..dynamics.options import Unpack, shows_options
from ..errors import IntegrationError, ModelError, ShapeError, StateError
from ..mechanism import Mechanism, checked_mechanism
from . import arguments
from .arguments import RunOptions, Stepping
from .limits import JointLimits
from .setup import Prepared, loop_coordinates, plane_contacts, start_of, touching_states
from .trajectory import Efforts, Trajectory
from .warnings import at, warn_of_runs, warn_of_starts

if TYPE_CHECKING:
    from .functions import Controller, Event, EventFunction

__all__ = ["simulate"]


@shows_options
def simulate(
    mechanism: Mechanism,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    duration: float | None = None,
    controller: Controller | ForceElement | Sequence[Controller | ForceElement] | None = None,
    *,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    times: ArrayLike | None = None,
    events: Event | EventFunction | Iterable[Event | EventFunction] = (),
    max_step: float = np.inf,
    resume: Trajectory | Mapping[str, Any] | None = None,
    progress: bool = False,
    sensitivities: Iterable[str] | None = None,
    **options: Unpack[RunOptions],
) -> Trajectory:
    """Let a mechanism move, and keep what it does.

    Parameters
    ----------
    mechanism : any, with loops or without
    q, v : (nq,), (nv,) to begin with; where there are loops they are brought onto them first, unless stabilisation is "none". Turns of joints
        that close loops are counted from an angle in [-pi, pi] on, or from one within the limits of the joint or of an EndStop at it, or as `near` says
    duration : [s]
    controller : a function (t, q, v) -> tau (nv,), or -> (tau, {frame: wrench (6,)}), [moment; force] at the frame's
        origin in its axes; force elements of :mod:`sarrus.control`, which run in C++; or several of these.
        Default: none
    method : on the manifold of configurations, quaternions stay unit

        "auto" : "contact" where :class:`~sarrus.control.RigidContact` or :class:`~sarrus.control.CollisionContacts` is given, "rosenbrock" where
            :class:`~sarrus.control.CompliantContact` or :class:`~sarrus.control.LuGreFriction` acts ("implicit_midpoint" if sensitivities are asked for),
            "implicit_midpoint" where a damper or a spring of a joint is faster at the start than half of what explicit steps of dt follow, else
            "rk4"; with resume= the one of the checkpoint
        "euler" (the thesis'), "semi_implicit" : first order, one evaluation a step; the second is symplectic where M is constant
        "rk4" : Runge and Kutta's, on the coordinates
        "rkmk4" : the same on the exponential's argument (Munthe-Kaas)
        "dopri5" : Dormand and Prince 5(4), steps as long as rtol and atol allow, dense output
        "implicit_midpoint" : symmetric and A-stable, for long runs and stiff forces; keeps the momentum of what floats to rounding
        "independent" : rk4 in independent coordinates, which are chosen anew at each step; the loops give the others
        "contact" : with impacts: shapes that may touch (:meth:`~sarrus.Builder.add_shape`), :class:`~sarrus.control.RigidContact`, end stops, and dry
            friction of joints as rows of the step, which are neither compliant nor creep; second order but for the instant of an impact; loops hold in position and velocity; dampers and springs along joints, and PID, are implicit. Contact forces are those of the middle of a step
        "rosenbrock" : where the fastest rate of the forces is more than 0.7 a step, linearly implicit, of second order and L-stable (ROS2, Verwer and others 1999), else
            rk4; for forces so stiff that explicit steps cannot follow: it costs a few of theirs. ``statistics["linearly_implicit"]`` steps were so
    dt : step [s]; for "dopri5" the first step and the spacing of samples
    rtol, atol : of "dopri5", for q as a displacement and for v; atol in rad, and of what slides in mean sizes of the bodies, a second for v
    stabilisation : of loops against drift: "projection" after each step, "baumgarte", "corrective" (van der Merwe 5.75), "none"; the last
        three are not for overconstrained linkages such as Bennett's, whose rows agree only on the loops
    gains : (of velocities, of positions); "baumgarte" takes (2 alpha, beta^2), default (20, 100), "corrective" (K_v, K_p), default (40, 60):
        those of the thesis' example, to be chosen anew for other masses; the others none
    times : (n,) [s] at which states are kept, in order; default: the start, every dt, and the end
    events : :class:`Event` or functions (t, q, v) whose zeros end the simulation; several need a name each, ``Event(function, name=...)``
    max_step : the longest step of "dopri5" [s]; ValueError where time does not advance by it
    limits : what joints' own `limits`, `velocity_limit` and `effort_limit` do. Whatever was left is in ``statistics["limits"]``

        "warn" : nothing; a :class:`~sarrus.errors.LimitWarning` says where the motion, or what controllers ask for, left them
        "enforce" : :class:`~sarrus.control.EndStop` at all limits of position, and efforts are kept within limits: what controllers, functions
            too, give in all along a velocity (wrenches are not of motors). Only velocities are watched and warned of
        "ignore" : nothing, in silence
    start : time at the start [s]
    near : name to coordinates of joints that close loops, from which their whole turns at the start are counted, as in
        :meth:`~sarrus.Mechanism.joint_states`
    resume : an earlier Trajectory, or its `checkpoint`, instead of q and v: goes on bit for bit as if it had not ended, at its time and with
        its dt
    progress : whether a bar shows how far it is (tqdm)
    sensitivities : names of numbers of force elements, as ``"PID(motor).proportional"``, or (): then the trajectory's `sensitivities` are how each
        sample changes with the start, and with these; see :func:`sarrus.derivatives.step`. With fixed steps and samples at all of them, without
        events and functions

    Warns
    -----
    LimitWarning
        See `limits`.
    DriftWarning
        The loops are open at the start, and closing them moves a joint by more than 1e-3 rad or mean sizes of the bodies (by more than 1: StateError);
        or the run ends off the loops, which no projection has held.
    StiffnessWarning
        Explicit steps of fixed length are unstable for the forces that act, or take more than a tenth of the energy of a motion that they make,
        though nothing damps it: the fastest of their rates is looked for every 64 steps (256 of first order), and where a contact or an end
        stop begins to press; ``statistics["stiffness"]`` is the largest one, times dt, ``statistics["energy_eaten"]`` the share that the
        run takes. Functions of the caller are not looked at. Also where the energy at the end, less the work of what acts
        (``statistics["work"]``), is wrong by more than a thousandth of the largest kinetic energy, a hundredth by methods of first order and by
        "contact"; of runs with eight kept states or more.

    Returns
    -------
    Trajectory; Ctrl-C ends it early, with what there is.

    Raises
    ------
    IntegrationError
        The motion diverges, or loops cannot be satisfied; its `trajectory` ends before that.
    MemoryError
        What is to be kept is more than this machine's memory holds; nothing was computed.
    ImportError
        A bar is asked for, and tqdm is not installed.
    ModelError, ShapeError, StateError, NameNotFoundError, TypeError, ValueError
        What is given does not fit the mechanism, or is nothing that a simulation can do. What a caller's function raises comes through.

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble(fixed={"motor": 0.5})
    >>> run = sarrus.simulate(fourbar, q, fourbar.project_velocity(q, [6.0, 0.0, 0.0]), duration=1.0)
    >>> run.q.shape, bool(run.loop_error.max() < 1e-12), bool(abs(run.energy - run.energy[0]).max() < 1e-6)
    ((1001, 3), True, True)
    """
    checked_mechanism(mechanism)
    if duration is None:
        raise TypeError("simulate() needs a duration [s]")
    how = Stepping.checked("simulate", mechanism, duration, options)
    rtol, atol = (checked_number(name, x) for name, x in (("rtol", rtol), ("atol", atol)))
    max_step = checked_number("max_step", max_step, finite=False)
    if resume is not None and (q is not None or v is not None or how.near is not None):
        raise TypeError("resume= holds the state: q, v and near must not be given too")
    checkpoint: dict[str, Any] | None = None
    if resume is not None:
        from .checkpoint import as_checkpoint

        checkpoint = as_checkpoint(resume)
    if checkpoint is not None and how.method == "auto":
        known = checkpoint["method"] in arguments.METHODS
        how = replace(how, method=checkpoint["method"] if known else "rk4")  # which restore() refuses
    named_events: list[Event] = []
    if events != ():
        from .functions import as_events

        named_events = as_events(events)
    functions, elements = functions_and_elements(controller)
    felt_at = q if checkpoint is None else checkpoint.get("felt_at")
    watched, varies = JointLimits(mechanism, how.limits, elements), sensitivities is not None
    prepared = Prepared.of(mechanism, (functions, elements), watched, how, felt_at, varies=varies)
    integration = Integration(prepared, named_events)
    if checkpoint is None:
        integration.begin(q, v, how)
    else:
        integration.restore(checkpoint)
    if sensitivities is not None:
        from .derivatives import along_run, checked_names

        if named_events or times is not None or resume is not None:
            raise ValueError(
                "sensitivities are of all steps of a run from its start: events, times= and resume= are not for them"
            )
        sensitivities = checked_names(integration.prepared, sensitivities)
    if arguments.METHODS[integration.setup.method].adaptive:
        arguments.check_longest_step(max_step, integration.core.state["shown"][0], how.duration)
    run = integration.go(how.duration, times, rtol, atol, max_step, progress)
    if sensitivities is not None:
        x = np.concatenate([run.q, run.v, run.internal_state], axis=-1)
        made = float(run.t[-1]) - how.start  # less than the duration where Ctrl-C has ended it
        run.__dict__["sensitivities"] = along_run(integration.prepared, x, how.start, made, how.dt, sensitivities)
    return run


# ---- one run ---------------------------------------------------------------------------------------------------------
# One simulation on its way: stretches of steps in the core, samples, events, checkpoints.


FAILURES: dict[int, str] = {
    Status.INCONSISTENT_CONSTRAINTS: "the constraints contradict one another, or the motors cannot do what a control law asks of them, or rounding "
    "decides what they do so near to a singular position,",
    Status.NO_CONVERGENCE: "the steps do not converge, or end with open loops (try shorter ones),",
    Status.DIVERGED: "the motion diverges",
    Status.EXHAUSTED: "more contacts depend on one another than a step may work for (separate bodies that overlap, or exempt pairs by "
    "Builder.set_contact(one, other, enabled=False)),",
}
HELD = (
    "kinematics", "positions", "penetration", "momentum", "primal", "dual", "complementarity", "natural_map", "work",
)  # fmt: skip
LARGE, ABSURD = (
    0.1,
    10.0,
)  # [rad, sizes of the bodies] in a step: what steps hardly resolve, and what no longer is a motion
CHUNK = 4096  # steps between looks at the clock and the progress bar


class Integration:
    """One simulation on its way."""

    def __init__(self, prepared: Prepared, events: list[Event]) -> None:
        setup, forces = prepared.setup, prepared.forces
        if forces.parameters.ndim > 1:
            raise ShapeError("numbers, laws or targets that differ from run to run are for simulate_many()")
        self.prepared, self.setup, self.mechanism, self.events = prepared, setup, setup.mechanism, events
        call: Controller | None = None
        sampled: list[Controller | None] = [None for _ in forces.sampled]
        if prepared.functions or any(forces.sampled):
            from .functions import force, sampled_force

            call = force(self.mechanism, prepared.functions) if prepared.functions else None
            sampled = [sampled_force(self.mechanism, asked) if asked else None for asked in forces.sampled]
        watched = [(e._value, e.direction, e.terminal) for e in events]
        self.core = setup.core(forces.parameters, call, sampled, watched)
        self.touching, self.on_planes = touching_states(self.core), plane_contacts(setup, self.core)

    def begin(self, q: ArrayLike | None, v: ArrayLike | None, how: Stepping) -> None:
        """At the given state, on the loops."""
        if q is None or v is None:
            raise TypeError("simulate() needs q and v, or resume=")
        robot = self.mechanism
        q, v = real_array("q", q), real_array("v", v)
        if np.shape(q) != (robot.nq,) or np.shape(v) != (robot.nv,):
            raise ShapeError(f"q and v must be ({robot.nq},) and ({robot.nv},); got {np.shape(q)} and {np.shape(v)}")
        turns = arguments.checked_turns(robot, how.near, 1)
        x, begun = self.setup.begin(self.core, q[None], v[None], how.start, turns)
        if begun[0] != Status.FINISHED:
            self._refuse(q, v, how.start, begun[0])
        warn_of_starts(robot, q[None], x[:, : robot.nq], how.start)
        self.core.begin(x[0], how.start, how.dt)

    def _refuse(self, q: Array, v: Array, start: float, why: int) -> None:
        """Raise what is wrong with a state from which no run starts."""
        robot = self.mechanism
        if not np.isfinite(v).all():
            raise StateError(f"v must be finite; got {v}")
        q = robot.normalize(q)
        if why == Status.INVALID_STATE:
            raise StateError(
                f"the loops are open by {np.abs(robot.constraint_residual(q, time=start)).max():.3g} at the start, and this is too far "
                f"to close them by small steps: begin with mechanism.assemble(near=q{at(start)})"
            )
        closed, _ = robot.project_configuration(q, time=start, return_status=True)
        robot.project_velocity(closed, v, time=start)

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """Begin where an earlier simulation had come to."""
        from .checkpoint import check_fields

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
        from .checkpoint import state_of_checkpoint

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
        begun, core, adaptive = clock.perf_counter(), self.core, arguments.METHODS[self.setup.method].adaptive
        # what is shown may be a part of a step ahead of where the steps have come to
        dt, (first, shown) = core.state["dt"], core.state["shown"]
        end, begun_at = first + duration, core.state["x"]  # where steps go on
        arguments.check_advance(first, duration, dt)
        arguments.check_periods(self.setup.terms, duration, dt)
        kept_states = duration / dt + 2.0 if times is None else float(real_array("times", times).size)
        arguments.check_memory(kept_states, 1, core.size)
        samples = None if times is None else _sample_times(times, first, end)
        between_steps = None if samples is None or adaptive else samples[samples > first]
        core.aim(end, samples[samples > first] if samples is not None and adaptive else None, (rtol, atol, max_step))
        kept_times, kept, status = [np.array([first])], [shown[None]], Status.FINISHED
        bar = arguments.progress_bar(duration, progress)
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
        self._warn(trajectory, min(dt, duration), begun_at)
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
            from .histories import BEFORE

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
            self.mechanism, t, x[:, :nq], x[:, nq : nq + nv], internal_state=x[:, nq + nv :],
            loop_q=x[:, size - core.counted :] if core.counted else None,
            efforts=efforts if acts else np.zeros((len(t), nv)), friction=friction if core.has_friction else None,
            statistics=self._statistics(seconds), status=said, events=events, checkpoint=state, touching=self.touching,
            on_planes=self.on_planes,
        )  # fmt: skip
        if status in FAILURES:
            idle = next(iter(self.mechanism._massless), None)
            why = f"nothing has inertia along joint '{idle}', which has no acceleration," if idle else FAILURES[status]
            raise IntegrationError(
                f"{why} at t = {state['t']:.9g} s, after {core.counts['steps']} steps of '{self.setup.method}'; "
                f"{self._outrun(x, status)}{self._said_by_laws(x[-1])}what was computed up to there is in .trajectory of this error",
                trajectory,
            )
        return trajectory

    def _fastest(self, x: Array) -> str:
        """Name the joint that moves most in the last step that is not yet absurd, if by more than the method resolves."""
        robot, dt = self.mechanism, float(self.core.state["dt"])
        step = np.abs(x[:, robot.nq : robot.nq + robot.nv]) * dt / velocity_scale(robot)
        resolved = step[np.isfinite(step).all(axis=1) & (step < ABSURD).all(axis=1)]
        if not (len(resolved) and resolved[-1].max(initial=0.0) > LARGE):
            return ""
        place = int(np.argmax(resolved[-1]))
        joint = next(j for j in map(robot.joint, robot.joints) if place in range(*j.v_slice.indices(robot.nv)))
        return f"joint '{joint.name}' moves by {resolved[-1][place]:.2g} a step [rad, sizes of the bodies]: give method='dopri5', or a smaller dt than {dt:.3g} s; "

    def _outrun(self, x: Array, status: int) -> str:
        """Return dampers, springs or contacts that are too fast for the method, or the rate of the forces that act."""
        facts, dt = arguments.METHODS[self.setup.method], float(self.core.state["dt"])
        method, stable = facts.name, facts.stable
        if facts.rigid or facts.adaptive:
            return ""
        from .stiffness import STABLE, fastest_rate

        finite = x[np.isfinite(x).all(axis=1)]
        start = start_of(self.mechanism, finite[0, : self.mechanism.nq])
        fast = fastest_rate(self.mechanism, start, self.prepared.elements)
        if fast is not None and fast.rate * dt > min(stable, STABLE) and (np.isfinite(stable) or fast.of_contact):
            return fast.beside(method, dt) + "; "
        rate = float(self.core.record["stiffness"][0])
        if not rate > stable:
            return self._fastest(x) if status == Status.DIVERGED else ""
        return f"the fastest rate of the forces that act is {rate / dt:.3g}/s, {rate:.3g} a step, where '{method}' can follow {stable:.3g}: give method='implicit_midpoint', or dt = {stable * dt / rate:.1g} or less; "

    def _said_by_laws(self, last: Array) -> str:
        """What TaskControls report of the state in which a run ended, or the one before."""
        from ..control.terms import task_controls

        nq, nv, now = self.mechanism.nq, self.mechanism.nv, self.core.state
        states = [x for x in (now["x"], last) if np.isfinite(x).all()]
        said = [
            next(filter(None, (law._refusal(now["t"], x[:nq], x[nq : nq + nv]) for x in states)), "")
            for law in task_controls(self.prepared.elements)
        ]
        return "".join(f"{one}; " for one in said if one)

    def _statistics(self, seconds: float) -> dict[str, Any]:
        method, record, counts = arguments.METHODS[self.setup.method], self.core.record, self.core.counts
        judged = np.isfinite(method.stable)
        return {
            "method": method.name, **counts, "seconds": seconds,
            "evaluations": method.stages * (counts["steps"] + counts["rejected"]) or None,
            "stiffness": float(record["stiffness"][0]) if judged else None,
            "energy_eaten": float(-np.expm1(-record["energy_eaten"][0])) if judged else None,
            "work": float(record["supplied"][0] + record["pushed"].sum()), "work_known_to": abs(float(record["apart"][0])),
            "limits": self.prepared.limits.exceeded(record, 0),
            **({"linearly_implicit": int(record["linearly_implicit"].item(0))} if record["linearly_implicit"].size else {}),
            **({"contact": {name: record[name].item(0) for name in HELD} | {"as_touching": int(record["as_touching"].item(0))}} if method.rigid else {}),
        }  # fmt: skip

    def _warn(self, run: Trajectory, step: float, begun_at: Array) -> None:
        time, x = self.core.state["shown"]
        nq, nv = self.mechanism.nq, self.mechanism.nv
        both = np.stack([begun_at, x])[None]
        ends = both[..., :nq], both[..., nq : nq + nv]
        same = all(
            len(kept) and np.array_equal(kept[[0, -1]], end[0]) for kept, end in zip((run.q, run.v), ends, strict=True)
        )
        warn_of_runs(
            [(slice(None), self.prepared)], self.core.record, run.q[None], run.v[None], lambda _: run, step=step,
            steps=self.core.counts["steps"], end=(time, x[None, :nq], x[None, nq : nq + nv], np.ones(1, dtype=bool)),
            ends=None if same else ends,
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
