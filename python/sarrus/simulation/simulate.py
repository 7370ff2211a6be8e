"""A mechanism in motion: from a state, with its force elements, to a trajectory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import checked_number, real_array
from ..control.elements import ForceElement
from ..errors import ModelError
from ..mechanism import Mechanism, checked_mechanism
from .energy import energy_error, warn_of_energy
from .integration import (
    METHODS,
    STABILISATIONS,
    Controller,
    Event,
    EventFunction,
    Integration,
    MethodName,
    Stabilisation,
    check_choice,
)
from .limits import HEAD, LIMITS, OnLimits, ends_off_loops, warn_of_drift, warn_of_stiffness
from .trajectory import Trajectory

__all__ = ["Event", "simulate"]


def simulate(
    mechanism: Mechanism,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    duration: float | None = None,
    controller: Controller | ForceElement | Sequence[Controller | ForceElement] | None = None,
    *,
    method: MethodName = "auto",
    dt: float = 1e-3,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    stabilisation: Stabilisation = "projection",
    gains: tuple[float, float] | None = None,
    times: ArrayLike | None = None,
    events: Event | EventFunction | Iterable[Event | EventFunction] = (),
    max_step: float = np.inf,
    limits: OnLimits = "warn",
    start: float = 0.0,
    near: Mapping[str, ArrayLike] | None = None,
    resume: Trajectory | Mapping[str, Any] | None = None,
    progress: bool = False,
) -> Trajectory:
    """Let a mechanism move, and keep what it does.

    Parameters
    ----------
    mechanism : any, with loops or without
    q, v : (nq,), (nv,) to begin with; where there are loops they are brought onto them first, unless stabilisation is "none". Turns of joints
        that close loops are counted from an angle in [-pi, pi] on, or from one within the joint's limits, or as `near` says
    duration : [s]
    controller : a function (t, q, v) -> tau (nv,), or -> (tau, {frame: wrench (6,)}), [moment; force] at the frame's
        origin in its axes; force elements of :mod:`sarrus.control`, which run in C++; or several of these.
        Default: none
    method : on the manifold of configurations, quaternions stay unit

        "auto" : "implicit_midpoint" where :class:`~sarrus.control.Contact` or :class:`~sarrus.control.Stiction` acts, else "rk4"; with
            resume= the one of the checkpoint
        "euler" (the thesis'), "semi_implicit" : first order, one evaluation a step; the second is symplectic where M is constant
        "rk4" : Runge and Kutta's, on the coordinates
        "rkmk4" : the same on the exponential's argument (Munthe-Kaas)
        "dopri5" : Dormand and Prince 5(4), steps as long as rtol and atol allow, dense output
        "implicit_midpoint" : symmetric and A-stable, for long runs and stiff forces; keeps the momentum of what floats to rounding
        "independent" : rk4 in independent coordinates, which are chosen anew at each step; the loops give the others
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
        "stop" : :class:`~sarrus.control.EndStop` at all limits of position, and efforts are kept within limits: what controllers, functions
            too, give in all along a velocity (wrenches are not of motors). Only velocities are watched and warned of
        "ignore" : nothing, in silence
    start : time at the start [s]
    near : name to coordinates of joints that close loops, from which their whole turns at the start are counted, as in
        :meth:`~sarrus.Mechanism.joint_states`
    resume : an earlier Trajectory, or its `checkpoint`, instead of q and v: goes on bit for bit as if it had not ended, at its time and with
        its dt
    progress : whether a bar shows how far it is (tqdm)

    Warns
    -----
    LimitWarning
        See `limits`.
    DriftWarning
        The run ends off the loops, which no projection has held.
    StiffnessWarning
        Explicit steps of fixed length are unstable for the forces that act, or take more than a tenth of the energy of a motion that they make,
        though nothing damps it: the fastest of their rates is looked for every 64 steps (256 of first order), and where a contact or an end
        stop begins to press; ``statistics["stiffness"]`` is the largest one, times dt, ``statistics["energy_eaten"]`` the share that the
        run takes. Functions of the caller are not looked at. Also where the energy at the end is wrong by more than a fiftieth of the
        largest kinetic energy, whatever the method, if it is of second order or more: it has grown though nothing drives, or shrunk though
        nothing brakes either; of the states that are kept, if they are eight or more. Contacts, end stops and stiction that are at rest in
        the beginning do not drive.

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
    check_choice("method", method, ("auto", *METHODS))
    check_choice("limits", limits, LIMITS)
    check_choice("stabilisation", stabilisation, STABILISATIONS)
    start, duration, dt = checked_times(start, duration, dt)
    rtol, atol = (checked_number(name, x) for name, x in (("rtol", rtol), ("atol", atol)))
    max_step = checked_number("max_step", max_step, finite=False)
    gains = checked_gains(mechanism, stabilisation, gains)
    if resume is not None and (q is not None or v is not None or near is not None):
        raise TypeError("resume= holds the state: q, v and near must not be given too")
    checkpoint = None if resume is None else _as_checkpoint(resume)
    if checkpoint is not None and method == "auto":
        method = checkpoint["method"] if checkpoint["method"] in METHODS else "rk4"  # which restore() refuses
    integration = Integration(
        mechanism,
        controller,
        method,
        stabilisation,
        gains,
        _as_events(events),
        limits,
        start=q if checkpoint is None else checkpoint.get("felt_at"),
    )
    if checkpoint is None:
        integration.begin(q, v, start, dt, near)
    else:
        integration.restore(checkpoint)
    if METHODS[integration.method].adaptive:
        _check_longest_step(max_step, integration.shown[0], duration)
    trajectory = integration.go(duration, times, rtol, atol, max_step, progress)
    _warn_of_run(integration, trajectory, min(integration.dt, duration))
    return trajectory


def _warn_of_run(integration: Integration, run: Trajectory, step: float) -> None:
    method, robot = integration.method, integration.mechanism
    integration.limits.warn(run.statistics["limits"])
    eaten = float(integration.core.record[3:HEAD].sum())
    stiffness = run.statistics["stiffness"] or 0.0
    if not warn_of_stiffness(method, step, stiffness, eaten=eaten, steps=integration.steps):
        states = run.q[None], run.v[None]
        warn_of_energy(method, step, energy_error(method, robot, *integration.acting, *states, lambda _: run))
    if robot.nc and integration.stabilisation != "projection":
        warn_of_drift(integration.stabilisation, ends_off_loops(robot, run.q[-1], run.v[-1], run.t[-1]))


# ---- what callers give -----------------------------------------------------------------------------------------------

MOST_STEPS = 2**53  # which a double still counts


def _check_longest_step(max_step: float, start: float, duration: float) -> None:
    latest = max(abs(start), abs(start + duration))
    if latest + max_step == latest or duration > max_step * MOST_STEPS:
        raise ValueError(
            f"max_step = {max_step!r} s is too short: time does not advance by it near {latest!r} s, or {duration!r} s are more "
            "than 2^53 of it"
        )


IN_CHECKPOINT = {
    "mechanism", "method", "x", "start", "k", "dt", "t", "h", "shown", "stabilisation", "close_stages", "force_elements"
}  # fmt: skip


def checked_times(start: Any, duration: Any, dt: Any) -> tuple[float, float, float]:
    """Seconds that can be counted in steps."""
    start = checked_number("start", start, "")
    duration = checked_number("duration", duration, "seconds, not negative")
    step = checked_number("dt", dt)
    if not np.isfinite(start + duration):
        raise ValueError(f"start + duration must be finite; got {start!r} and {duration!r}")
    if step < np.finfo(np.float64).tiny or duration > step * MOST_STEPS:
        raise ValueError(f"dt = {step!r} s is too short: {duration!r} s must be at most 2^53 steps of it")
    return start, duration, step


def checked_gains(mechanism: Mechanism, stabilisation: str, asked: Any) -> tuple[float, float]:
    """The two gains of a stabilisation, its own where none are given."""
    if stabilisation == "corrective" and mechanism.nc and mechanism._without_inertia:
        raise ModelError(
            f"stabilisation 'corrective' pushes the bodies with their loops open, where nothing has inertia along joint "
            f"'{mechanism._without_inertia[0]}': take 'projection' or 'baumgarte', or give a body that it carries a mass"
        )
    defaults = STABILISATIONS[stabilisation]
    if asked is None:
        return defaults
    if not any(defaults):
        takes = " and ".join(repr(name) for name, gains in STABILISATIONS.items() if any(gains))
        raise ValueError(f"stabilisation '{stabilisation}' takes no gains, as {takes} do; got {asked!r}")
    try:
        gains = real_array("gains", asked)
        sound = gains.shape == (2,) and bool((np.isfinite(gains) & (gains >= 0.0)).all())
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ValueError(
            f"gains must be two finite numbers that are not negative, (of velocities, of positions); got {asked!r}"
        )
    return float(gains[0]), float(gains[1])


def _as_events(value: Any) -> list[Event]:
    if isinstance(value, Event) or callable(value):
        value = [value]
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"events must be Event or functions (t, q, v), one or several; got {value!r}")
    events = list(value)
    for event in events:
        if not isinstance(event, Event) and not callable(event):
            raise TypeError(f"events must be Event or functions (t, q, v); one of them is {event!r}")
    events = [event if isinstance(event, Event) else Event(event) for event in events]
    names = [event.name for event in events]
    for name in (name for k, name in enumerate(names) if name in names[:k]):
        raise ValueError(
            f"two events are named '{name}', under which their times are found; name each: Event(function, name=...)"
        )
    return events


def _as_checkpoint(value: Any) -> dict[str, Any]:
    checkpoint = value.checkpoint if isinstance(value, Trajectory) else value
    if isinstance(value, Trajectory) and checkpoint is None:
        raise ModelError(
            "this Trajectory has no checkpoint to resume from: it was not simulated, or was loaded without it"
        )
    if not isinstance(checkpoint, Mapping):
        raise TypeError(f"resume must be a Trajectory or its checkpoint; got {value!r}")
    missing = sorted(IN_CHECKPOINT - checkpoint.keys())
    if missing:
        raise ModelError(f"resume must be the checkpoint of a Trajectory; this one lacks {', '.join(missing)}")
    return dict(checkpoint)
