"""A mechanism in motion: from a state, with what acts on it, to a trajectory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .control import Element
from .mechanism import Mechanism
from .run import METHODS, STABILISATIONS, Controller, Event, EventFunction, Run, check_choice
from .trajectory import Trajectory

__all__ = ["Event", "simulate"]


def simulate(
    mechanism: Mechanism,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    duration: float = 0.0,
    controller: Controller | Element | Sequence[Controller | Element] | None = None,
    *,
    method: str = "rk4",
    dt: float = 1e-3,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    stabilisation: str = "projection",
    gains: tuple[float, float] | None = None,
    times: ArrayLike | None = None,
    events: Event | EventFunction | Iterable[Event | EventFunction] = (),
    max_step: float = np.inf,
    start: float = 0.0,
    resume: dict[str, Any] | None = None,
    progress: bool = False,
) -> Trajectory:
    """Let a mechanism move, and keep what it does.

    Parameters
    ----------
    q, v : (nq,), (nv,) to begin with; where there are loops they are brought onto them first, unless stabilisation is "none"
    duration : [s]
    controller : a function (t, q, v) -> tau (nv,), or -> (tau, {frame: wrench (6,)}); elements of :mod:`sarrus.control`, which need no
        Python while the simulation runs; or several of these. Default: nothing acts
    method : on the manifold of configurations, quaternions stay unit

        "euler" (the thesis'), "semi_implicit" : first order, one evaluation a step
        "rk4" : Runge and Kutta's, on the coordinates
        "rkmk4" : the same on the exponential's argument (Munthe-Kaas)
        "dopri5" : Dormand and Prince 5(4), steps as long as rtol and atol allow, dense output
        "implicit_midpoint" : symmetric and A-stable, for long runs and stiff forces
        "independent" : rk4 in independent coordinates, which are chosen anew at each step; the loops give the others
    dt : step [s]; for "dopri5" the first step and the spacing of samples
    rtol, atol : of "dopri5", for q as a displacement and for v
    stabilisation : of loops against drift: "projection" after each step, "baumgarte", "corrective" (van der Merwe 5.75), "none"
    gains : (of velocities, of positions); "baumgarte" takes (2 alpha, beta^2), "corrective" (K_v, K_p)
    times : (n,) [s] at which states are kept, in order; default: the start, every dt, and the end
    events : :class:`Event` or functions (t, q, v) whose zeros end the simulation
    max_step : the longest step of "dopri5" [s]
    start : time at the start [s]
    resume : the `checkpoint` of an earlier Trajectory, instead of q and v: goes on bit for bit as if it had not ended
    progress : whether a bar shows how far it is (tqdm, if installed)

    Returns
    -------
    Trajectory; Ctrl-C ends it early, with what there is.

    Raises
    ------
    IntegrationError
        The motion diverges, or loops cannot be satisfied; its `trajectory` ends before that.
    ModelError, ShapeError, StateError, NameNotFoundError
        What is given does not fit the mechanism.

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble(fixed={"motor": 0.5})
    >>> run = sarrus.simulate(fourbar, q, fourbar.project_velocity(q, [6.0, 0.0, 0.0]), duration=1.0)
    >>> run.q.shape, bool(run.loop_error.max() < 1e-12), bool(abs(run.energy - run.energy[0]).max() < 1e-6)
    ((1001, 3), True, True)
    """
    check_choice("method", method, METHODS)
    check_choice("stabilisation", stabilisation, STABILISATIONS)
    run = Run(mechanism, controller, method, stabilisation, gains, events)
    if resume is not None:
        if q is not None or v is not None:
            raise TypeError("resume= holds the state: q and v must not be given too")
        run.restore(resume)
    else:
        run.begin(q, v, start, dt, stabilisation)
    return run.go(duration, times, rtol, atol, max_step, progress)
