"""A mechanism in motion: from a state, with its force elements, to a trajectory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._arrays import ArrayLike, checked_number
from ..control.elements import ForceElement
from ..control.terms import functions_and_elements
from ..mechanism import Mechanism, checked_mechanism
from .arguments import (
    METHODS,
    MethodName,
    Stabilisation,
    check_choices,
    check_longest_step,
    checked_gains,
    checked_times,
)
from .checkpoint import as_checkpoint
from .derivatives import along_run, checked_names
from .functions import Controller, Event, EventFunction, as_events
from .integration import Integration
from .limits import JointLimits, OnLimits
from .setup import Prepared
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
    sensitivities: Iterable[str] | None = None,
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

        "auto" : "contact" where :class:`~sarrus.control.RigidContact` or :class:`~sarrus.control.ShapeContacts` is given, "rosenbrock" where :class:`~sarrus.control.Contact` or :class:`~sarrus.control.Stiction` acts ("implicit_midpoint" if sensitivities are asked for), else "rk4"; with
            resume= the one of the checkpoint
        "euler" (the thesis'), "semi_implicit" : first order, one evaluation a step; the second is symplectic where M is constant
        "rk4" : Runge and Kutta's, on the coordinates
        "rkmk4" : the same on the exponential's argument (Munthe-Kaas)
        "dopri5" : Dormand and Prince 5(4), steps as long as rtol and atol allow, dense output
        "implicit_midpoint" : symmetric and A-stable, for long runs and stiff forces; keeps the momentum of what floats to rounding
        "independent" : rk4 in independent coordinates, which are chosen anew at each step; the loops give the others
        "contact" : with impacts: shapes that may touch (:meth:`~sarrus.Builder.add_shape`), :class:`~sarrus.control.RigidContact`, end stops, and dry
            friction of joints as rows of the step, which are neither compliant nor creep; first order, second where nothing pushes; loops hold in position and velocity; dampers and springs along joints, and PID, are implicit
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
        "stop" : :class:`~sarrus.control.EndStop` at all limits of position, and efforts are kept within limits: what controllers, functions
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
    check_choices(method, limits, stabilisation)
    start, duration, dt = checked_times(start, duration, dt)
    rtol, atol = (checked_number(name, x) for name, x in (("rtol", rtol), ("atol", atol)))
    max_step = checked_number("max_step", max_step, finite=False)
    gains = checked_gains(mechanism, stabilisation, gains)
    if resume is not None and (q is not None or v is not None or near is not None):
        raise TypeError("resume= holds the state: q, v and near must not be given too")
    checkpoint = None if resume is None else as_checkpoint(resume)
    if checkpoint is not None and method == "auto":
        method = checkpoint["method"] if checkpoint["method"] in METHODS else "rk4"  # which restore() refuses
    named_events, (functions, elements) = as_events(events), functions_and_elements(controller)
    felt_at = q if checkpoint is None else checkpoint.get("felt_at")
    watched = JointLimits(mechanism, limits, elements)
    acting, varies = (functions, elements), sensitivities is not None
    prepared = Prepared.of(mechanism, acting, watched, method, stabilisation, gains, felt_at, varies=varies)
    integration = Integration(prepared, named_events)
    if checkpoint is None:
        integration.begin(q, v, start, dt, near)
    else:
        integration.restore(checkpoint)
    if sensitivities is not None:
        if named_events or times is not None or resume is not None:
            raise ValueError(
                "sensitivities are of all steps of a run from its start: events, times= and resume= are not for them"
            )
        sensitivities = checked_names(integration.prepared, sensitivities)
    if METHODS[integration.setup.method].adaptive:
        check_longest_step(max_step, integration.core.state["shown"][0], duration)
    run = integration.go(duration, times, rtol, atol, max_step, progress)
    if sensitivities is not None:
        x = np.concatenate([run.q, run.v, run.z], axis=-1)
        made = float(run.t[-1]) - start  # less than the duration where Ctrl-C has ended it
        run.__dict__["sensitivities"] = along_run(integration.prepared, x, start, made, dt, sensitivities)
    return run
