"""Simulation of a mechanism with force elements, from a state to a trajectory."""

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
from .warnings import at, fault_of_steps, warn_of_runs, warn_of_starts

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
    """Simulate a mechanism and return its trajectory.

    Parameters
    ----------
    mechanism : mechanism with or without loops
    q, v : (nq,), (nv,) initial configuration and velocity [rad, m; rad/s, m/s]. If there are loops, the state is first projected onto the loop
        constraints, unless stabilisation is "none". The initial angle of a loop joint is in [-pi, pi], or within the limits of the joint or of
        its EndStop, or nearest to `near`; from there, the simulation counts its revolutions
    duration : duration of the simulation [s]
    controller : Python function, force element of :mod:`sarrus.control` (evaluated in C++), or a list of these; default: none. A function (t, q, v)
        returns tau (nv,) [N m, N], or (tau, {frame: wrench (6,)}) with [moment; force] at the frame's origin in its axes [N m, N]
    method : integration method. All methods integrate on the configuration manifold, so that quaternions stay unit

        "auto" : "contact" for :class:`~sarrus.control.RigidContact` or :class:`~sarrus.control.CollisionContacts`. "rosenbrock" for
            :class:`~sarrus.control.CompliantContact` or :class:`~sarrus.control.LuGreFriction` ("implicit_midpoint" with sensitivities).
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
        not ended, with the same steps and the same spacing of samples
    progress : True displays a progress bar (tqdm)
    sensitivities : names of parameters of force elements, such as ``"PID(motor).proportional"``, or (). The attribute `sensitivities` of the
        trajectory then has the derivatives of each sample with respect to the initial state and these parameters; see
        :func:`sarrus.derivatives.step`. Requires a method with fixed steps, samples at every step, no events and no Python functions

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
    rtol, atol = (checked_number(name, x) for name, x in (("rtol", rtol), ("atol", atol)))
    max_step = checked_number("max_step", max_step, finite=False)
    if resume is not None and (q is not None or v is not None or stepping.near is not None):
        raise TypeError("resume= contains the state: omit q, v and near")
    checkpoint: dict[str, Any] | None = None
    if resume is not None:
        from .checkpoint import as_checkpoint

        checkpoint = as_checkpoint(resume)
    if checkpoint is not None and stepping.method == "auto":
        valid = checkpoint["method"] in arguments.METHODS
        # restore() rejects an invalid checkpoint later
        stepping = replace(stepping, method=checkpoint["method"] if valid else "rk4")
    named_events: list[Event] = []
    if events != ():
        from .functions import as_events

        named_events = as_events(events)
    functions, elements = functions_and_elements(controller)
    felt_at = q if checkpoint is None else checkpoint.get("felt_at")
    watched, varies = JointLimits(mechanism, stepping.limits, elements), sensitivities is not None
    prepared = Prepared.of(mechanism, (functions, elements), watched, stepping, felt_at, varies=varies)
    adaptive = arguments.METHODS[prepared.setup.method].adaptive
    if sensitivities is not None:
        from .derivatives import along_run, checked_names

        if named_events or times is not None or resume is not None:
            raise ValueError(
                "sensitivities= requires all steps of a run from its start: omit events, times= and resume="
            )
        sensitivities = checked_names(prepared, sensitivities)

    def attempt(every: int) -> Integration:
        integration = Integration(prepared, named_events)
        if checkpoint is None:
            integration.begin(q, v, stepping, every)
        else:
            integration.restore(checkpoint)
        if adaptive:
            arguments.check_longest_step(max_step, integration.core.state["shown"][0], stepping.duration)
        integration.go(stepping.duration, times, rtol, atol, max_step, progress)
        return integration

    # functions of the caller may count their calls, and a resumed run keeps its step
    given = options.get("dt") is not None or checkpoint is not None or sensitivities is not None
    repeats = not (given or adaptive or functions or any(prepared.forces.sampled))
    run = _reliable(attempt, arguments.finer_steps(stepping) if repeats else ()).result()
    if sensitivities is not None:
        x = np.concatenate([run.q, run.v, run.internal_state], axis=-1)
        simulated = float(run.t[-1]) - stepping.start  # less than the duration after Ctrl-C
        run.__dict__["sensitivities"] = along_run(prepared, x, stepping.start, simulated, stepping.dt, sensitivities)
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
    """Run of one simulation: the core's steps, samples, events and checkpoints.

    Attributes
    ----------
    every : steps from a sample to the next
    trajectory : the samples, after :meth:`go`
    error : the failure that ended the run, or None
    fault : message that the steps are too long, or ""
    """

    every = 1
    trajectory: Trajectory
    error: IntegrationError | None = None
    fault = ""

    def __init__(self, prepared: Prepared, events: list[Event]) -> None:
        setup, forces = prepared.setup, prepared.forces
        if forces.parameters.ndim > 1:
            raise ShapeError(
                "force elements: parameters, time functions or targets differ from run to run; use simulate_many()"
            )
        self.prepared, self.setup, self.mechanism, self.events = prepared, setup, setup.mechanism, events
        call: Controller | None = None
        sampled: list[Controller | None] = [None for _ in forces.sampled]
        if prepared.functions or any(forces.sampled):
            from .functions import force, sampled_force

            call = force(self.mechanism, prepared.functions) if prepared.functions else None
            sampled = [sampled_force(self.mechanism, group) if group else None for group in forces.sampled]
        event_functions = [(e._value, e.direction, e.terminal) for e in events]
        self.core = setup.core(forces.parameters, call, sampled, event_functions)
        self.touching, self.on_planes = touching_states(self.core), plane_contacts(setup, self.core)

    def begin(self, q: ArrayLike | None, v: ArrayLike | None, stepping: Stepping, every: int) -> None:
        """Set the initial state, projected onto the loops, and the number of steps into which dt is divided."""
        if q is None or v is None:
            raise TypeError("simulate() needs q and v, or resume=")
        mechanism = self.mechanism
        q, v = real_array("q", q), real_array("v", v)
        if np.shape(q) != (mechanism.nq,) or np.shape(v) != (mechanism.nv,):
            raise ShapeError(
                f"q and v must be ({mechanism.nq},) and ({mechanism.nv},); got {np.shape(q)} and {np.shape(v)}"
            )
        turns = arguments.checked_turns(mechanism, stepping.near, 1)
        x, begun = self.setup.begin(self.core, q[None], v[None], stepping.start, turns)
        if begun[0] != Status.FINISHED:
            self._refuse(q, v, stepping.start, begun[0])
        if every == 1:
            warn_of_starts(mechanism, q[None], x[:, : mechanism.nq], stepping.start)
        self.every = every
        self.core.begin(x[0], stepping.start, stepping.dt / every)

    def _refuse(self, q: Array, v: Array, start: float, status: int) -> None:
        """Raise the error of an initial state that is invalid for a simulation."""
        mechanism = self.mechanism
        if not np.isfinite(v).all():
            raise StateError(f"v must be finite; got {v}")
        q = mechanism.normalize(q)
        if status == Status.INVALID_STATE:
            raise StateError(
                f"the loops are open by {np.abs(mechanism.constraint_residual(q, time=start)).max():.3g} at the start, too far to close them "
                f"by a small correction: pass mechanism.assemble(near=q{at(start)})"
            )
        closed, _ = mechanism.project_configuration(q, time=start, return_status=True)
        mechanism.project_velocity(closed, v, time=start)

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """Restore the state of an earlier simulation."""
        from .checkpoint import check_fields, checked_spacing

        check_fields(checkpoint)
        self.every = checked_spacing(checkpoint)
        for name, mine in (("mechanism", self.mechanism.description), ("method", self.setup.method)):
            if checkpoint[name] != mine:
                raise ModelError(f"the checkpoint belongs to another {name}")
        time, counted = float(checkpoint["shown"][0]), int(checkpoint.get("counted", 0))
        x = self._restored("x", checkpoint["x"], checkpoint["t"], counted)
        shown = time, self._restored("shown", checkpoint["shown"][1], time, counted)
        self.core.restore(
            checkpoint | {"x": x, "shown": shown},
            looks=checkpoint["stabilisation"] != self.setup.stabilisation,
            # with other force elements, the checkpoint's interpolation between the last step and the shown state is not valid
            anew=checkpoint["force_elements"] != self.prepared.forces.as_tuple(),
        )

    def _restored(self, name: str, value: Any, time: float, counted: int) -> Array:
        """Return a copy of a state, in which the counted revolutions of loop joints are added or removed as this run requires."""
        from .checkpoint import state_of_checkpoint

        size, now = self.core.size, self.core.counted
        if counted == now or np.ndim(value) != 1:
            return state_of_checkpoint(name, value, size)
        x = state_of_checkpoint(name, value, size - now + counted)[: size - now]
        return np.append(x, loop_coordinates(self.mechanism, x[: self.mechanism.nq], time)[:now])

    def checkpoint(self) -> dict[str, Any]:
        """Return all data from which another simulation can continue at the current state."""
        setup, prepared = self.setup, self.prepared
        return {
            "mechanism": self.mechanism.description, "method": setup.method, "stabilisation": setup.stabilisation, "felt_at": prepared.felt_at,
            "force_elements": prepared.forces.as_tuple(), "counted": self.core.counted, "every": self.every, **self.core.state,
        }  # fmt: skip

    def go(
        self, duration: float, times: ArrayLike | None, rtol: float, atol: float, max_step: float, progress: bool
    ) -> None:
        """Run the simulation to its end, and examine its steps."""
        begun, core, adaptive = clock.perf_counter(), self.core, arguments.METHODS[self.setup.method].adaptive
        # the displayed final state may be an interpolation after the last complete step
        dt, (first, shown) = core.state["dt"], core.state["shown"]
        end, begun_at = first + duration, core.state["x"]  # the state from which the steps continue
        arguments.check_advance(first, duration, dt)
        arguments.check_periods(self.setup.terms, duration, dt)
        kept_states = duration / (dt * self.every) + 2.0 if times is None else float(real_array("times", times).size)
        arguments.check_memory(kept_states, 1, core.size)
        samples = None if times is None else _sample_times(times, first, end)
        between_steps = None if samples is None or adaptive else samples[samples > first]
        core.aim(end, samples[samples > first] if samples is not None and adaptive else None, (rtol, atol, max_step))
        sample_times, states, status = [np.array([first])], [shown[None]], Status.FINISHED
        bar = arguments.progress_bar(duration, progress)
        # chunks are computed by a call, not by a generator, which would convert a caller's StopIteration into RuntimeError
        with contextlib.closing(bar) if bar is not None else contextlib.nullcontext(), _ending_by_signal(core):
            while not core.finished:
                made = core.state["k"]
                t, x, status = core.advance(CHUNK)
                t, x = self._samples(t[1:], x[1:], made) if between_steps is None else self._at(between_steps, t, x)
                sample_times.append(t)
                states.append(x)
                if bar is not None and len(t):
                    bar.update(min(float(t[-1]) - first, duration) - bar.n)
        t, x = np.concatenate(sample_times), np.concatenate(states)
        if samples is not None and not (len(samples) and samples[0] == first):
            t, x = t[1:], x[1:]
        self.simulated = float(core.state["shown"][0]) - first
        self._finish(t, x, status, clock.perf_counter() - begun)
        if self.error is None:
            self.fault = self._fault(min(dt, duration), begun_at)

    @property
    def unreliable(self) -> bool:
        """True if the run failed, or its steps are too long."""
        return self.trajectory.status != "interrupted" and (self.error is not None or bool(self.fault))

    def result(self) -> Trajectory:
        """Return the trajectory and issue its warnings, or raise the failure."""
        if self.error is not None:
            raise self.error
        time, x = self.core.state["shown"]
        nq, nv = self.mechanism.nq, self.mechanism.nv
        end = time, x[None, :nq], x[None, nq : nq + nv], np.ones(1, dtype=bool)
        warn_of_runs([(slice(None), self.prepared)], self.core.record, self.fault, end)
        return self.trajectory

    def _samples(self, t: Array, x: Array, made: int) -> tuple[Array, Array]:
        """Return every so many of the steps after a number of steps, and the last one of the run."""
        if self.every == 1:
            return t, x
        kept = (made + 1 + np.arange(len(t))) % self.every == 0
        kept[-1:] |= self.core.finished
        return t[kept], x[kept]

    def _at(self, samples: Array, t: Array, x: Array) -> tuple[Array, Array]:
        """Interpolate states of steps at the samples, and append the state at which an event ended the run."""
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
        constant = x[before, integrated:counted]  # values of sampled controllers are constant between their samples
        z, turns = (
            [np.interp(times, t, column) for column in block.T]
            for block in (x[:, nq + nv : integrated], x[:, counted:])
        )
        rows = np.column_stack([q, v, *z, constant, *turns])
        if self.touching is not None:  # identifiers of points cannot be interpolated
            from .histories import BEFORE

            first, points, each = self.touching
            columns = nq + nv + first + np.arange(BEFORE + each * points)
            rows[:, columns] = x[np.ix_(before, columns)]
        if ended:
            rows[-1] = x[-1]
        return times, rows

    def _finish(self, t: Array, x: Array, status: int, seconds: float) -> None:
        """Set the trajectory, and the failure that ended it."""
        core, nq, nv = self.core, self.mechanism.nq, self.mechanism.nv
        outcome = "finished" if core.ended_by is None else f"terminated: {self.events[core.ended_by].name}"
        if status:
            outcome = "interrupted" if status == Status.INTERRUPTED else "diverged"
        state, size, events = self.checkpoint(), core.size, {}
        for k, event in enumerate(self.events):
            events[event.name] = np.array([time for index, time in core.found if index == k])

        def at_samples(forces: Callable[..., Array], *arguments: float) -> Efforts:
            return lambda t, q, v, z: forces(t, np.concatenate([q, v, z], axis=-1), *arguments)

        efforts, friction = at_samples(core.efforts), at_samples(core.friction, state["dt"])
        acts = core.calls or bool(self.setup.terms)
        self.trajectory = Trajectory(
            self.mechanism, t, x[:, :nq], x[:, nq : nq + nv], internal_state=x[:, nq + nv :],
            loop_q=x[:, size - core.counted :] if core.counted else None,
            efforts=efforts if acts else np.zeros((len(t), nv)), friction=friction if core.has_friction else None,
            statistics=self._statistics(seconds), status=outcome, events=events, checkpoint=state, touching=self.touching,
            on_planes=self.on_planes,
        )  # fmt: skip
        if status in FAILURES:
            idle = next(iter(self.mechanism._massless), None)
            fault = (
                f"no body has inertia along joint '{idle}', so its acceleration is undefined,"
                if idle
                else FAILURES[status]
            )
            self.error = IntegrationError(
                f"{fault} at t = {state['t']:.9g} s, after {core.counts['steps']} steps of '{self.setup.method}'; "
                f"{self._outrun(x, status)}{self._law_failures(x[-1])}.trajectory of this error has the samples up to that time",
                self.trajectory,
            )

    def _fastest(self, x: Array) -> str:
        """Return a message about the joint with the largest motion in the last plausible step, or "" if the method resolves this motion."""
        mechanism, dt = self.mechanism, float(self.core.state["dt"])
        step = np.abs(x[:, mechanism.nq : mechanism.nq + mechanism.nv]) * dt / velocity_scale(mechanism)
        resolved = step[np.isfinite(step).all(axis=1) & (step < ABSURD).all(axis=1)]
        if not (len(resolved) and resolved[-1].max(initial=0.0) > LARGE):
            return ""
        place = int(np.argmax(resolved[-1]))
        joint = next(
            j for j in map(mechanism.joint, mechanism.joints) if place in range(*j.v_slice.indices(mechanism.nv))
        )
        return f"joint '{joint.name}' moves by {resolved[-1][place]:.2g} per step [rad, mean body sizes]: give method='dopri5', or a smaller dt than {dt:.3g} s; "

    def _outrun(self, x: Array, status: int) -> str:
        """Return a message about dampers, springs or contacts that are too fast for the method, or about the rate of the applied forces."""
        facts, dt = arguments.METHODS[self.setup.method], float(self.core.state["dt"])
        method, stable = facts.name, facts.stable
        if facts.rigid or facts.adaptive:
            return ""
        from .stiffness import STABLE, fastest_rate

        finite = x[np.isfinite(x).all(axis=1)]
        start = start_of(self.mechanism, finite[0, : self.mechanism.nq])
        fast = fastest_rate(self.mechanism, start, self.prepared.elements)
        if fast is not None and fast.rate * dt > min(stable, STABLE) and (np.isfinite(stable) or fast.is_contact):
            return fast.message(method, dt) + "; "
        rate = float(self.core.record["stiffness"][0])
        if not rate > stable:
            return self._fastest(x) if status == Status.DIVERGED else ""
        return f"the fastest rate of the applied forces is {rate / dt:.3g}/s, or {rate:.3g} per step, and '{method}' is stable up to {stable:.3g} per step: give method='implicit_midpoint', or dt = {stable * dt / rate:.1g} or less; "

    def _law_failures(self, last: Array) -> str:
        """Return the failures that TaskControls report in the last state of a run, or in the state before it."""
        from ..control.terms import task_controls

        nq, nv, now = self.mechanism.nq, self.mechanism.nv, self.core.state
        states = [x for x in (now["x"], last) if np.isfinite(x).all()]
        failures = [
            next(filter(None, (law._refusal(now["t"], x[:nq], x[nq : nq + nv]) for x in states)), "")
            for law in task_controls(self.prepared.elements)
        ]
        return "".join(f"{failure}; " for failure in failures if failure)

    def _statistics(self, seconds: float) -> dict[str, Any]:
        method, record, counts = arguments.METHODS[self.setup.method], self.core.record, self.core.counts
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

    def _fault(self, step: float, begun_at: Array) -> str:
        """Return the message that the steps are too long, or ""."""
        run, nq, nv = self.trajectory, self.mechanism.nq, self.mechanism.nv
        both = np.stack([begun_at, self.core.state["shown"][1]])[None]
        ends = both[..., :nq], both[..., nq : nq + nv]
        same = all(
            len(states) and np.array_equal(states[[0, -1]], end[0])
            for states, end in zip((run.q, run.v), ends, strict=True)
        )
        return fault_of_steps(
            [(slice(None), self.prepared)], self.core.record, run.q[None], run.v[None], lambda _: run, step=step,
            steps=self.core.counts["steps"], ends=None if same else ends,
        )  # fmt: skip


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


def _sample_times(times: ArrayLike, start: float, end: float) -> Array:
    t = real_array("times", times)
    if t.ndim != 1 or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
        raise ValueError("times must be (n,) finite increasing times [s]")
    if len(t) and (t[0] < start - 1e-14 * abs(start) or t[-1] > end + 1e-14 * abs(end)):
        raise ValueError(f"times must be between {start} and {end}; got {t[0]} to {t[-1]}")
    return np.asarray(np.clip(t, start, end), dtype=np.float64)
