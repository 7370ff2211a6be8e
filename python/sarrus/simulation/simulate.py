"""Simulation of a mechanism with force elements, from a state to a trajectory; events and checkpoints."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, cast

import numpy as np

from .._arrays import Array, ArrayLike, checked_count, checked_number, checked_text, is_masked, real_array
from .._core import Status
from .._deferred import dataclass
from .._renamed import with_new_kinds
from ..analysis.linear_algebra import velocity_scale
from ..control.element import ForceElement, functions_and_elements, task_controls
from ..description.specs import Description
from ..dynamics.options import Unpack, shows_options
from ..errors import OF_MOTORS, IntegrationError, ModelError, ShapeError, StateError, check_choice
from ..mechanism import Mechanism, checked_mechanism
from . import setup
from .setup import METHODS, Loads, Prepared, RunOptions, Stepping
from .trajectory import Trajectory
from .warnings import STABLE, at, fastest_rate, fault_of_steps, warn_of_bushings, warn_of_runs, warn_of_starts

__all__ = ["Event", "simulate"]


@shows_options
def simulate(
    mechanism: Mechanism, q: ArrayLike | None = None, v: ArrayLike | None = None, duration: float | None = None,
    controller: Controller | ForceElement | Sequence[Controller | ForceElement] | None = None, *, rtol: float = 1e-6, atol: float = 1e-9,
    times: ArrayLike | None = None, every: int = 1, events: Event | EventFunction | Iterable[Event | EventFunction] = (), max_step: float = np.inf,
    resume: Trajectory | Mapping[str, Any] | None = None, progress: bool = False, sensitivities: Iterable[str] | None = None,
    wrenches: Loads | None = None, **options: Unpack[RunOptions],
) -> Trajectory:  # fmt: skip
    """Simulate a mechanism and return its trajectory.

    Parameters
    ----------
    mechanism : mechanism with or without loops
    q, v : (nq,), (nv,) initial configuration and velocity [rad, m; rad/s, m/s]. If there are loops, the state is first projected onto the loop
        constraints, unless stabilisation is "none". The initial angle of a loop joint is in [-pi, pi], or within the limits of the joint or of
        its EndStop, or nearest to `near`; from there, the simulation counts its revolutions
    duration : duration of the simulation [s]
    controller : Python function, force element of :mod:`sarrus.control` (evaluated in C++), or a list of these; default: none. A function (t, q, v)
        returns tau (nv,) [N m, N], or (tau, {frame: wrench (6,)}) with [moment; force] at the frame's origin in its axes [N m, N]. The list may
        contain :class:`~sarrus.control.Clutch`, :class:`~sarrus.control.Lock` and :class:`~sarrus.control.Weld`, which engage and release
    method : integration method. All methods integrate on the configuration manifold, so that quaternions stay unit

        "auto" : "contact" for :class:`~sarrus.control.RigidContact` or :class:`~sarrus.control.CollisionContacts`. "rosenbrock" for
            :class:`~sarrus.control.CompliantContact`, :class:`~sarrus.control.LuGreFriction` and elements between frames, such as
            :class:`~sarrus.control.Bushing` ("implicit_midpoint" with sensitivities).
            "implicit_midpoint" if, in the initial state, the rate of a damper or spring of a joint exceeds half of the stability limit of explicit
            steps of dt. Otherwise "rk4". With resume=, the method of the checkpoint
        "euler" (as in van der Merwe's thesis), "semi_implicit" : first order, one evaluation per step; "semi_implicit" is symplectic if M is constant
        "rk4" : classical Runge-Kutta on the coordinates
        "rkmk4" : Runge-Kutta-Munthe-Kaas, on the argument of the exponential map
        "dopri5" : Dormand-Prince 5(4) with dense output; rtol and atol control the step size
        "implicit_midpoint" : symmetric and A-stable, for long simulations and stiff forces; conserves the momentum of floating mechanisms to rounding
        "independent" : rk4 with coordinate partitioning: each step selects independent coordinates, from which the loops determine all coordinates
        "contact" : time stepping with impacts, second order except at impacts. Shapes that may touch (:meth:`~sarrus.Builder.add_shape`),
            :class:`~sarrus.control.RigidContact`, end stops and dry friction of joints are constraints of the step: contacts do not penetrate and
            sticking joints do not creep. Loop constraints are satisfied in position and velocity. Dampers and springs along joints, and
            PID, are implicit. Contact forces are evaluated at the middle of a step
        "rosenbrock" : linearly implicit, second order and L-stable (ROS2, Verwer and others 1999), for forces that are too stiff for explicit
            steps. A step costs a few explicit steps. While the fastest rate of the forces is below 0.7 per step, rk4 is used instead.
            ``statistics["linearly_implicit"]`` is the number of linearly implicit steps
    dt : step [s]; for "dopri5" the first step and the spacing of samples. Default: 1 ms. If the run then fails, or would cause a StiffnessWarning, it
        is repeated with 4, 16 and 64 steps a millisecond, until the steps are short enough; functions of `events` are then evaluated in each run.
        Samples stay 1 ms apart; ``statistics["dt"]`` is the step used. A given dt is never changed. The default is not changed either with
        controllers that are Python functions, with "dopri5", sensitivities= or resume=, or if a run would take more than 2^20 steps
    rtol, atol : relative and absolute tolerance of "dopri5" for the displacement and the velocity in a step. atol has the unit rad, or mean body
        sizes for sliding coordinates, and this unit per second for velocities [rad, mean body sizes; per s]; rtol is dimensionless
    stabilisation : method against drift of the loop constraints: "projection" after each step, "baumgarte", "corrective" (van der Merwe 5.75), or
        "none". Use "projection" for overconstrained linkages such as Bennett's, whose constraint rows are inconsistent if the loops are not closed
    gains : gains of the stabilisation for (velocities, positions) [1/s, 1/s^2]. "baumgarte": (2 alpha, beta^2), default (20, 100). "corrective":
        (K_v, K_p), default (40, 60) as in the example of the thesis; these depend on the masses of the mechanism. "projection" and "none" have no
        gains
    times : (n,) increasing times of the samples [s]; default: the initial time, every dt, and the final time
    every : number of steps dt between samples, as in :func:`simulate_many`: with the default dt of 1 ms, 10 gives samples 10 ms apart
    events : :class:`Event` or functions (t, q, v) whose zeros end the simulation; several events need distinct names, ``Event(function, name=...)``
    max_step : longest step of "dopri5" [s]; a step that is too short to advance the time raises ValueError
    limits : treatment of the `limits`, `velocity_limit` and `effort_limit` of joints. ``statistics["limits"]`` lists all violations

        "warn" : limits are not enforced; a :class:`~sarrus.errors.LimitWarning` reports motions and controllers' efforts that exceed them
        "enforce" : each position limit is enforced by an :class:`~sarrus.control.EndStop`. The sum of all efforts of controllers and functions along
            a velocity is saturated (wrenches are not saturated). Violated velocity limits only cause warnings
        "ignore" : limits are not checked
    start : initial time [s]
    near : loop joint name to nearby coordinates [rad, m], which select the full revolutions of its initial angle, as in
        :meth:`~sarrus.Mechanism.joint_states`
    resume : an earlier Trajectory, or its `checkpoint`, instead of q and v. The simulation continues from the final time, bit for bit as if it had
        not ended, with the same steps; pass the same `every` for the same spacing of samples
    progress : True displays a progress bar (tqdm)
    sensitivities : names of parameters of force elements, such as ``"PID(motor).proportional"``, or (). The attribute `sensitivities` of the
        trajectory then has the derivatives of each sample with respect to the initial state and these parameters; see
        :func:`sarrus.derivatives.step`. Requires a method with fixed steps, samples at every step, no events and no Python functions
    wrenches : loads during the motion: name of a frame or body to [moment; force] on the mechanism, in that frame's axes at its origin, as in
        :meth:`~sarrus.Mechanism.forward_dynamics`: six numbers or functions of time (:mod:`sarrus.laws`) [N m, N]. This is a short form of
        :class:`~sarrus.control.AppliedWrench`, which also has loads in the world's axes. ``Trajectory.wrenches`` contains their values

    Warns
    -----
    LimitWarning
        See `limits`.
    DriftWarning
        - The loops are open in the initial state, and closing them moves a joint by more than 1e-3 rad or mean body sizes (by more than 1:
          StateError).
        - The final state violates the loop constraints, which is possible without projection.
    StiffnessWarning
        - Explicit steps of fixed length, with the default dt also the shortest ones, are unstable for the applied forces, or they dissipate more than
          a tenth of the energy of an undamped motion due to these forces. The fastest rate is estimated every 64 steps (256 for first order), and
          whenever a contact or an end stop becomes active. ``statistics["stiffness"]`` is the largest rate times dt, and
          ``statistics["energy_eaten"]`` the dissipated fraction of the energy. Python functions of the caller are not included.
        - The energy balance of the simulation has an error above 1/1000 of the largest kinetic energy (above 1/100 for first-order methods and
          "contact"). The balance includes the work of all forces (``statistics["work"]``). This check needs at least eight samples.

    ModelWarning
        With sensitivities=, the default of a parameter depends on the initial configuration, as for end stops; the derivatives do not include this.

    Returns
    -------
    Trajectory. Ctrl-C ends the simulation early; then the samples before it are returned.

    Raises
    ------
    IntegrationError
        The motion diverges, or the loop constraints cannot be satisfied; the attribute `trajectory` of the error has the samples before the failure.
    MemoryError
        The samples exceed this machine's memory; nothing was computed.
    ImportError
        `progress` is True, and tqdm is not installed.
    ModelError, ShapeError, StateError, NameNotFoundError, TypeError, ValueError
        An argument does not fit the mechanism, or the simulation does not support it. Exceptions of the caller's functions propagate.

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
    stepping = Stepping.checked("simulate", mechanism, duration, options)
    rtol, atol = checked_number("rtol", rtol), checked_number("atol", atol)
    max_step = checked_number("max_step", max_step, finite=False)
    if resume is not None and (q is not None or v is not None or stepping.near is not None):
        raise TypeError("resume= contains the state: omit q, v and near")
    checkpoint = None if resume is None else checked_checkpoint(resume)
    if checkpoint is not None:
        stepping = stepping.resumed(checkpoint)
    elif q is None or v is None:
        raise TypeError("simulate() needs q and v, or resume=")
    named_events, varies = as_events(events), sensitivities is not None
    felt_at = q if checkpoint is None else checkpoint["felt_at"]
    controller, switches = setup.split_switches(controller)
    prepared = Prepared.of(mechanism, functions_and_elements(controller, wrenches), stepping, felt_at, varies=varies)
    adaptive = METHODS[prepared.setup.method].adaptive
    every = checked_count("every", every, most=2**53)
    if every > 1 and times is not None:
        raise ValueError("times= and every= both determine the samples; pass one of them")
    if adaptive:
        stepping.timing.check_longest_step(max_step)
        if every > 1:
            start, end = stepping.start, stepping.start + stepping.duration
            count = math.ceil(stepping.duration / (every * stepping.dt) * (1.0 - 1e-12))
            times = np.append(start + every * stepping.dt * np.arange(count), end)
    if sensitivities is not None:
        from .derivatives import along_run, checked_names

        if named_events or times is not None or resume is not None or every > 1:
            raise ValueError(
                "sensitivities= requires all steps from the start of a run: omit events, times, every, resume"
            )
        sensitivities = checked_names(prepared, sensitivities)

    integrated: Any = Integration
    if switches:
        from .switched import SwitchedIntegration

        if resume is not None or varies:
            raise ValueError(
                "clutches, locks and welds support neither resume= nor sensitivities=: simulate from q and v without them"
            )
        integrated = partial(SwitchedIntegration, switches=switches)

    def attempt(divisor: int) -> Integration:
        integration: Integration = integrated(prepared, stepping, named_events)
        integration.restore(checkpoint) if checkpoint is not None else integration.begin(q, v, divisor)
        integration.go(times, every, (rtol, atol, max_step), progress)
        return integration

    # the step is fixed if the caller sets dt, or if functions of the caller may count their calls; a resumed run keeps its step
    fixed = options.get("dt") is not None or checkpoint is not None or varies or adaptive or prepared.calls
    run = _reliable(attempt, () if fixed else stepping.timing.divisors()).result()
    if sensitivities is not None:
        run.__dict__["sensitivities"] = along_run(prepared, run, stepping, sensitivities)
    return run


def _reliable(attempt: Callable[[int], Integration], finer: Iterable[int]) -> Integration:
    """Return the integration with one step a sample, or the first of those with finer steps that are not too long."""
    best = attempt(1)
    for every in finer:
        if not best.unreliable:
            break
        last, best = best, attempt(every)
        fails = best.error is not None
        if fails and (last.error is None or abs(best.simulated - last.simulated) <= SAME_PLACE * last.simulated):
            return last  # shorter steps do not pass the place either
    return best


# ---- one run ---------------------------------------------------------------------------------------------------------


FAILURES: dict[int, str] = {
    Status.INCONSISTENT_CONSTRAINTS: "the constraints are inconsistent, or the motors cannot realise the efforts of a control law, or the position "
    "is so near to a singular position that rounding dominates the solution,",
    Status.NO_CONVERGENCE: "the step did not converge, or violates the loop constraints (reduce dt),",
    Status.DIVERGED: "the motion diverges",
    Status.EXHAUSTED: "more contacts are coupled than a step can solve for (separate bodies that overlap, or exempt pairs by "
    "Builder.set_contact(one, other, enabled=False)),",
}
CONTACT_ERRORS = (
    "kinematics", "positions", "penetration", "momentum", "primal", "dual", "complementarity", "natural_map", "work",
)  # fmt: skip
LARGE = 0.1  # motion of a joint in a step [rad, mean body sizes] that methods hardly resolve
ABSURD = 10.0  # motion of a joint in a step [rad, mean body sizes] that is only possible if the simulation has diverged
SAME_PLACE = 0.1  # relative difference of the times of failures at one place of the motion, such as a singular position
CHUNK = 4096  # steps between updates of the progress bar


class Integration:
    """Run of one simulation by the core.

    Attributes
    ----------
    every : steps from a sample to the next
    trajectory : the samples, after :meth:`go`
    first : the trajectory with the forces at the start, if it is not `trajectory`
    error : the failure that ended the run, or None
    fault : message that the steps are too long, or ""
    """

    every = 1
    trajectory: Trajectory
    first: Trajectory | None = None
    error: IntegrationError | None = None
    fault = ""

    def __init__(self, prepared: Prepared, stepping: Stepping, events: list[Event]) -> None:
        forces, mechanism = prepared.forces, prepared.setup.mechanism
        if forces.parameters.ndim > 1:
            raise ShapeError("force elements have values or functions that differ from run to run; use simulate_many()")
        self.prepared, self.setup, self.stepping, self.events = prepared, prepared.setup, stepping, events
        self.mechanism, self.split = mechanism, (mechanism.nq, mechanism.nq + mechanism.nv)
        self.call = call = force(mechanism, prepared.functions) if prepared.functions else None
        sampled = [force(mechanism, group, sampled=True) if group else None for group in forces.sampled]
        functions = [(event._value, event.direction, event.terminal) for event in events]
        self.core = prepared.setup.core(forces.parameters, call, sampled, functions)

    @property
    def pushing(self) -> Sequence[Controller]:
        """Functions of the run, if any of them has returned a wrench."""
        return self.prepared.functions if self.call and cast(Any, self.call).frames else ()

    def begin(self, q: Any, v: Any, every: int) -> None:
        """Set the initial state, projected onto the loops, and the number of steps into which dt is divided."""
        mechanism, start = self.mechanism, self.stepping.start
        q, v = real_array("q", q), real_array("v", v)
        if q.shape != (mechanism.nq,) or v.shape != (mechanism.nv,):
            raise ShapeError(f"q and v must be ({mechanism.nq},) and ({mechanism.nv},); got {q.shape} and {v.shape}")
        turns = setup.checked_turns(mechanism, self.stepping.near, 1)
        x, begun = self.setup.begin(self.core, q[None], v[None], start, turns)
        if begun[0] != Status.FINISHED:
            _raise_start(mechanism, q, v, start, begun[0])
        if every == 1:
            warn_of_starts(mechanism, q[None], x[:, : mechanism.nq], start)
        self.every = every
        self.core.begin(x[0], start, self.stepping.dt / every)

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """Restore the state of an earlier simulation."""
        self.every = checkpoint["every"]
        for name, mine in (("mechanism", self.mechanism.description), ("method", self.setup.method)):
            if checkpoint[name] != mine:
                raise ModelError(f"the checkpoint belongs to a simulation with another {name}")
        time, shown = checkpoint["shown"]
        x = self._restored("x", checkpoint["x"], checkpoint)
        shown = time, self._restored("shown", shown, checkpoint)
        self.core.restore(
            checkpoint | {"x": x, "shown": shown},
            looks=checkpoint["stabilisation"] != self.setup.stabilisation,
            # if the force elements differ, the checkpoint's interpolation between the last step and the shown state is not valid
            anew=checkpoint["force_elements"] != self.prepared.forces.as_tuple(),
        )

    def _restored(self, name: str, value: Any, checkpoint: dict[str, Any]) -> Array:
        """Return a checked state, in which the counted revolutions of loop joints are added or removed as this run requires."""
        x, size, now = real_array(f"'{name}' of the checkpoint", value), self.core.size, self.core.counted
        counted = int(checkpoint["counted"])
        if x.shape != (expected := (size - now + counted,)):
            of = "The checkpoint belongs to a controller with other internal states"
            raise ModelError(f"'{name}' of the checkpoint has shape {x.shape}; expected {expected}. {of}")
        if not np.isfinite(x).all():
            raise ModelError(f"'{name}' of the checkpoint must be finite; got {x}")
        if counted == now:
            return x
        time = checkpoint["shown"][0] if name == "shown" else checkpoint["t"]
        return np.append(x[: size - now], setup.loop_coordinates(self.mechanism, x[: self.mechanism.nq], time)[:now])

    def checkpoint(self) -> dict[str, Any]:
        """Return all data from which another simulation can continue at the current state."""
        forces, felt_at = self.prepared.forces.as_tuple(), self.prepared.felt_at
        return {
            "mechanism": self.mechanism.description, "method": self.setup.method, "stabilisation": self.setup.stabilisation,
            "felt_at": felt_at, "force_elements": forces, "counted": self.core.counted, "every": self.every, **self.core.state,
        }  # fmt: skip

    def go(
        self,
        times: ArrayLike | None,
        every: int,
        tolerances: tuple[float, ...],
        progress: bool,
        end: float | None = None,
    ) -> None:
        """Run the simulation to its end, by default that of the duration, and examine its steps."""
        core, stepping = self.core, self.stepping
        parts: list[Any] = []
        begun, begun_at, first = clock.perf_counter(), core.state["shown"][1], stepping.start
        samples = (
            None if times is None else sample_times(times, first, first + stepping.duration if end is None else end)
        )
        setup.check_memory(
            stepping.duration / stepping.dt / every + 2.0 if samples is None else samples.size, 1, core.size
        )
        core.aim(first + stepping.duration if end is None else end, samples, self.every * every, tolerances)
        # chunks are computed by a call, not by a generator, which would convert a caller's StopIteration into RuntimeError
        with setup.progress_bar(stepping.duration, progress) as report, _ending_by_signal(core):
            while not (parts and core.finished):
                parts.append(core.advance(CHUNK))
                if report is not None and len(parts[-1][0]):
                    report(min(float(parts[-1][0][-1]) - first, stepping.duration), stepping.duration)
        t, x = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        self.simulated = float(core.state["shown"][0]) - first
        self._finish(t, x, parts[-1][2], clock.perf_counter() - begun)
        if self.error is None:
            self.fault = self._fault(begun_at)

    @property
    def unreliable(self) -> bool:
        """True if the run failed, or its steps are too long."""
        return self.trajectory.status != "interrupted" and (self.error is not None or bool(self.fault))

    def result(self) -> Trajectory:
        """Return the trajectory and issue its warnings, or raise the failure."""
        if self.error is not None:
            raise self.error
        time, x = self.core.state["shown"]
        q, v, _ = np.split(x[None], self.split, axis=1)
        warn_of_bushings([(slice(None), self.prepared)], self.trajectory.t, self.trajectory.q[None])
        warn_of_runs([(slice(None), self.prepared)], self.core.record, self.fault, (time, q, v, np.ones(1, dtype=bool)))
        return self.trajectory

    def _finish(self, t: Array, x: Array, status: int, seconds: float) -> None:
        """Set the trajectory, and the failure that ended it."""
        core, state = self.core, self.checkpoint()
        outcome = "finished" if core.ended_by is None else f"terminated: {self.events[core.ended_by].name}"
        if status:
            outcome = "interrupted" if status == Status.INTERRUPTED else "diverged"
        found = [np.array([time for index, time in core.found if index == k]) for k in range(len(self.events))]
        events = {event.name: times for event, times in zip(self.events, found, strict=True)}
        facts = setup.forces_of(self.setup, core, state["dt"], functions=self.pushing)
        facts |= {"events": events, "status": outcome, "checkpoint": state}
        if not (core.calls or self.setup.terms):
            facts["efforts"] = np.zeros((len(t), self.mechanism.nv))
        facts["statistics"] = self._statistics(seconds)
        self.trajectory = setup.trajectory_of(self.mechanism, t, x, core.counted, **facts)
        if status in FAILURES:
            fault = FAILURES[status]
            for joint in self.mechanism._massless[:1]:
                fault = f"no body has inertia along joint '{joint}', so its acceleration is undefined,"
            self.error = IntegrationError(
                f"{fault} at t = {state['t']:.9g} s, after {core.counts['steps']} steps of '{self.setup.method}'; "
                f"{self._outrun(x, status)}{self._law_failures(x[-1])}.trajectory of this error has the samples up to that time",
                self.trajectory,
            )

    def _fastest(self, x: Array, dt: float) -> str:
        """Return a message about the joint with the largest motion in the last plausible step, or "" if the method resolves this motion."""
        mechanism = self.mechanism
        step = np.abs(x[:, slice(*self.split)]) * dt / velocity_scale(mechanism)
        resolved = step[np.isfinite(step).all(axis=1) & (step < ABSURD).all(axis=1)]
        if not (len(resolved) and resolved[-1].max(initial=0.0) > LARGE):
            return ""
        place = int(np.argmax(resolved[-1]))
        name = setup.joint_at(mechanism, place).name
        return f"joint '{name}' moves by {resolved[-1][place]:.2g} per step [rad, mean body sizes]: give method='dopri5', or a smaller dt than {dt:.3g} s; "

    def _outrun(self, x: Array, status: int) -> str:
        """Return a message about dampers, springs or contacts that are too fast for the method, or about the rate of the applied forces."""
        facts, dt = METHODS[self.setup.method], float(self.core.state["dt"])
        method, stable = facts.name, facts.stable
        if facts.rigid or facts.adaptive:
            return ""
        finite = x[np.isfinite(x).all(axis=1)]
        start = setup.start_of(self.mechanism, finite[0, : self.mechanism.nq], self.stepping.start)
        fast = fastest_rate(self.mechanism, start, self.prepared.elements)
        if fast is not None and fast.rate * dt > min(stable, STABLE) and (np.isfinite(stable) or fast.is_contact):
            return fast.message(method, dt) + "; "
        rate = float(self.core.record["stiffness"][0])
        if not rate > stable:
            return self._fastest(x, dt) if status == Status.DIVERGED else ""
        return f"the fastest rate of the applied forces is {rate / dt:.3g}/s, or {rate:.3g} per step, and '{method}' is stable up to {stable:.3g} per step: give method='implicit_midpoint', or dt = {stable * dt / rate:.1g} or less; "

    def _law_failures(self, last: Array) -> str:
        """Return the failures that TaskControls report in the last state of a run, or in the state before it."""
        time, states = self.core.state["t"], [x for x in (self.core.state["x"], last) if np.isfinite(x).all()]
        return "".join(
            next((f"{failure}; " for x in states if (failure := law._refusal(time, *np.split(x, self.split)[:2]))), "")
            for law in task_controls(self.prepared.elements)
        )

    def _statistics(self, seconds: float) -> dict[str, Any]:
        method, record, counts = METHODS[self.setup.method], self.core.record, self.core.counts
        explicit = np.isfinite(method.stable)
        return {
            "method": method.name, "dt": float(self.core.state["dt"]), **counts, "seconds": seconds,
            "evaluations": method.stages * (counts["steps"] + counts["rejected"]) or None,
            "stiffness": float(record["stiffness"][0]) if explicit else None,
            "energy_eaten": float(-np.expm1(-record["energy_eaten"][0])) if explicit else None,
            "work": float(record["supplied"][0] + record["pushed"].sum()), "work_known_to": abs(float(record["apart"][0])),
            "limits": self.prepared.limits.exceeded(record, 0),
            **({"linearly_implicit": int(record["linearly_implicit"].item(0))} if record["linearly_implicit"].size else {}),
            **({"contact": {name: record[name].item(0) for name in CONTACT_ERRORS} | {"as_touching": int(record["as_touching"].item(0))}} if
            method.rigid else {}),
        }  # fmt: skip

    def _fault(self, begun_at: Array) -> str:
        """Return the message that the steps are too long, or ""."""
        run, core = self.trajectory, self.core
        ends = np.split(np.stack([begun_at, core.state["shown"][1]])[None], self.split, axis=2)[:2]
        same = len(run) and all(np.array_equal(x[[0, -1]], end[0]) for x, end in zip((run.q, run.v), ends, strict=True))
        return fault_of_steps(
            [(slice(None), self.prepared)], core.record, run.q[None], run.v[None], lambda _: self.first or run,
            step=min(core.state["dt"], self.stepping.duration), steps=core.counts["steps"], ends=None if same else (ends[0], ends[1]),
        )  # fmt: skip


def _raise_start(mechanism: Mechanism, q: Array, v: Array, start: float, status: int) -> None:
    """Raise the error of an initial state that is invalid for a simulation."""
    if not np.isfinite(v).all():
        raise StateError(f"v must be finite; got {v}")
    q = mechanism.normalize(q)
    if status == Status.INVALID_STATE:
        gap = np.abs(mechanism.constraint_residual(q, time=start)).max()
        cure = f"too far to close them by a small correction: pass mechanism.assemble(near=q{at(start)})"
        raise StateError(f"the loops are open by {gap:.3g} at the start, {cure}")
    closed, _ = mechanism.project_configuration(q, time=start, return_status=True)
    mechanism.project_velocity(closed, v, time=start)


@contextlib.contextmanager
def _ending_by_signal(core: Any) -> Iterator[None]:
    """On Ctrl-C, end the simulation after the current step; on a second Ctrl-C, raise KeyboardInterrupt."""
    before = signal.getsignal(signal.SIGINT)
    # None: the handler was not installed by Python, and could not be restored
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        if stopping:  # second Ctrl-C: a function of the caller does not return
            raise KeyboardInterrupt
        stopping = True
        core.stop()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def sample_times(times: ArrayLike, start: float, end: float) -> Array:
    t = real_array("times", times)
    if t.ndim != 1 or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
        raise ValueError("times must be (n,) finite increasing times [s]")
    if len(t) and (t[0] < start - 1e-14 * abs(start) or t[-1] > end + 1e-14 * abs(end)):
        raise ValueError(f"times must be between {start} and {end}; got {t[0]} to {t[-1]}")
    return np.asarray(np.clip(t, start, end), dtype=np.float64)


# ---- checkpoints -------------------------------------------------------------------------------------------------------

# required fields of a checkpoint, in addition to the state x, with their types
FIELDS: dict[str, Any] = {
    "mechanism": Description, "method": str, "start": Real, "k": Integral, "dt": Real, "t": Real, "h": Real, "shown": tuple,
    "stabilisation": str, "close_stages": bool, "force_elements": tuple,
}  # fmt: skip


def checked_checkpoint(resume: Any) -> dict[str, Any]:
    """Return a copy of a checkpoint, or of the checkpoint of a Trajectory, with defaults of fields that earlier versions lack."""
    checkpoint = resume.checkpoint if isinstance(resume, Trajectory) else resume
    if isinstance(resume, Trajectory) and checkpoint is None:
        raise ModelError(
            "resume: this Trajectory has no checkpoint: it was not simulated, was loaded without it, or has switches"
        )
    if not isinstance(checkpoint, Mapping):
        raise TypeError(f"resume must be a Trajectory or its checkpoint; got {resume!r}")
    if missing := sorted({"x", *FIELDS} - checkpoint.keys()):
        raise ModelError(f"resume: the checkpoint lacks {', '.join(missing)}")
    checkpoint = {"every": 1, "counted": 0, "felt_at": None, **checkpoint}
    for name, kind in FIELDS.items():
        x = checkpoint[name]
        if not isinstance(x, kind) or (isinstance(x, bool) and kind is not bool):
            raise TypeError(f"'{name}' of the checkpoint must be a {kind.__name__.lower()}; got {x!r}")
        if kind is Real and not (np.isfinite(x) and (x > 0.0 or name in ("start", "t"))):
            positive = "positive and " * (name in ("dt", "h"))
            raise ModelError(f"'{name}' of the checkpoint must be {positive}finite; got {x!r}")
    check_choice("'stabilisation' of the checkpoint", checkpoint["stabilisation"], setup.STABILISATIONS, ModelError)
    shown = checkpoint["shown"]
    if not (len(shown) == 2 and isinstance(shown[0], Real) and np.isfinite(float(shown[0]))):
        raise ModelError(f"'shown' of the checkpoint must be a finite time and a state; got {shown!r}")
    for name, least in (("k", 0), ("every", 1)):
        x = checkpoint[name]
        if isinstance(x, bool) or not isinstance(x, Integral) or not least <= int(x) <= setup.MOST_STEPS:
            raise ModelError(f"'{name}' of the checkpoint must be a number of steps, at least {least}; got {x!r}")
    return checkpoint | {"force_elements": with_new_kinds(checkpoint["force_elements"])}


# ---- functions of the caller: events and controllers -------------------------------------------------------------------

Controller = Callable[[float, Array, Array], Any]
EventFunction = Callable[[float, Array, Array], float]


@dataclass(frozen=True, eq=False)
class Event:
    """Event of a simulation, at zeros of a function of time and state.

    Attributes
    ----------
    function : function of time [s], configuration (nq,) [rad, m] and velocity (nv,) [rad/s, m/s] that returns a number; the event occurs at its zeros
    name : key of the event times in ``Trajectory.events``, unique within a simulation
    terminal : True ends the simulation at the event
    direction : zeros that count. 1: the function increases; -1: it decreases; 0: both

    Raises
    ------
    TypeError, ValueError
        The function is not callable, or the direction is invalid.
    """

    function: Callable[[float, Array, Array], float]
    name: str = "event"
    terminal: bool = True
    direction: int = 0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function of an Event must be callable (t, q, v); got {self.function!r}")
        checked_text("name of an Event", self.name)
        if not isinstance(self.direction, Real) or self.direction not in (-1, 0, 1):
            raise ValueError(f"direction of event '{self.name}' must be 1, -1 or 0; got {self.direction!r}")

    def _value(self, t: float, q: Array, v: Array, *_: Array) -> float:
        """Return the value of the function; raise TypeError or StateError unless it is a finite number."""
        returned: Any = self.function(t, q, v)
        try:
            number = checked_number("", returned, "", finite=False)
        except TypeError:
            kind = "a masked number" if is_masked(returned) else repr(returned)
            fault = f"event '{self.name}' returned {kind}; it must return one number, such as q[0] - 1.0"
            raise TypeError(fault) from None
        except ValueError:  # an integer beyond the range of float64
            number = np.inf
        if not np.isfinite(number):
            raise StateError(f"event '{self.name}' returned {returned!r} at t = {t:.9g}: it must be finite")
        return number


def as_events(value: Any) -> list[Event]:
    """Return the events of the argument `events`, with unique names."""
    value = [value] if isinstance(value, Event) or callable(value) else value
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"events must be an Event or a function (t, q, v), or a sequence of these; got {value!r}")
    events: list[Event] = []
    for event in value:
        if not isinstance(event, Event) and not callable(event):
            raise TypeError(f"events must be Event or functions (t, q, v); got {event!r}")
        events.append(event if isinstance(event, Event) else Event(event))
        if any(event.name == events[-1].name for event in events[:-1]):
            raise ValueError(f"two events are named '{events[-1].name}'; names must be unique: Event(f, name=...)")
    return events


# ---- controllers -------------------------------------------------------------------------------------------------------


def force(mechanism: Mechanism, functions: Sequence[Controller], sampled: bool = False) -> Controller:
    """Return a function for the sum of all functions' forces (2, nv): motor efforts, and the generalised force of wrenches.

    The function for `sampled` functions, which must not return wrenches, returns efforts (nv,).
    """
    nv, part, frames = mechanism.nv, 0 if sampled else slice(2), set[str]()

    def forces(t: float, q: Array, v: Array) -> Array:
        total = np.zeros((2, nv))
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            total += np.nan  # the motion has diverged; the controller is not called with NaN
            return total[part]
        for function in functions:
            answer, wrenches = setup.parts_of(function(t, q, v))
            if sampled and wrenches:
                raise TypeError(
                    f"a function in SampleAndHold returned wrenches; expected efforts ({nv},) only. Return wrenches from a function "
                    "outside SampleAndHold, or return tau + mechanism.jacobian(q, frame).T @ wrench"
                )
            total[0] += _returned(answer, nv, "tau")
            frames.update(wrenches)
            for frame, wrench in wrenches.items():
                total[1] += mechanism.jacobian(q, frame).T @ _returned(wrench, 6, f"a wrench on '{frame}'")
        if not np.isfinite(total).all():
            raise StateError(f"the controller returned {total.sum(axis=0)} at t = {t:.9g}: it must be finite")
        return total[part]

    cast(Any, forces).frames = frames  # frames on which a function has returned a wrench
    return forces


def _returned(value: Any, size: int, name: str) -> Array:
    """Return the checked return value (size,) of a controller; a number is valid for size 1."""
    expected = f"it must return {name} ({size},)"
    if value is None:
        raise TypeError(f"the controller returned None; {expected}")
    try:
        x = real_array(f"{name} of the controller", value)
    except ValueError:
        raise ShapeError(f"the controller returned {value!r}; {expected}") from None
    if x.shape != (size,) and not (size == 1 and x.shape == ()):
        raise ShapeError(f"the controller returned shape {x.shape}; {expected}{OF_MOTORS * (name == 'tau')}")
    return x
