"""Recorded steps of a simulation: symbolic numbers of the next state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from .. import _recording
from .._arrays import checked_count, checked_number
from ..control.element import functions_and_elements
from ..errors import ModelError, check_choice
from ..simulation.setup import Prepared, Stepping, defaults_of, given
from .recorder import Numbers, Recorder

Method = Literal["euler", "semi_implicit", "midpoint", "rk4"]


def recorded_step(
    recorder: Recorder, *, dt: float, method: Method = "semi_implicit", elements: Any = (), substeps: int = 1,
    corrections: int = 2,
) -> Mapping[str, Numbers]:  # fmt: skip
    """Record a step of :func:`~sarrus.simulate`, and return its results as symbolic numbers.

    The inputs are `q`, `v`, the internal states `z` of the elements, and, if the step depends on them, `tau` (nv,), the efforts that a controller
    commands during the step, and `time`; if parameters of the elements are arrays, those that differ are the input `element_parameters` (n,). The
    results are the next `q`, `v` and `z`, and `residual` (2,): the largest residuals of the loops, in position [rad, or relative to the size of the
    bodies] and in velocity [the same per second]. The core's own methods and elements are recorded;
    limits of joints have no effect. In single precision, the velocities of "semi_implicit" are projected too, because displacements divided by the
    length would have few digits. Parameters whose defaults depend on the initial configuration of a run, such as the stiffness of an end stop, must be
    numbers.

    Parameters
    ----------
    recorder : recorder of the mechanism
    dt : length of the step [s]
    method : "euler", "semi_implicit" and "rk4" as in :func:`~sarrus.simulate`; "midpoint" is the explicit midpoint rule
    elements : force element of :mod:`sarrus.control` or a list of them, as the controllers of :func:`~sarrus.simulate`
    substeps : number of equal parts of the step, each of them a step of the method
    corrections : number of projections of the positions onto the loops, and of the velocities, after each part; they have one factor. Velocities of
        "semi_implicit" are displacements divided by the length, and are not projected

    Raises
    ------
    ModelError
        The step cannot be recorded; the message has the name of the element and the reason.

    Examples
    --------
    >>> import sarrus
    >>> recorder = sarrus.generation.Recorder(sarrus.mechanisms.four_bar())
    >>> list(sarrus.generation.recorded_step(recorder, dt=1e-3))
    ['q', 'v', 'z', 'residual']
    """
    if not isinstance(recorder, Recorder):
        raise TypeError(f"recorder must be a Recorder; got {recorder!r}")
    r, robot = recorder, recorder.robot
    check_choice("method", method, Method)
    dt = checked_number("dt", dt)
    substeps, corrections = (
        checked_count(key, x, most=1000) for key, x in (("substeps", substeps), ("corrections", corrections))
    )
    functions, forces = functions_and_elements(elements)
    if functions:
        raise ModelError(
            f"a step with a Python function cannot be recorded: {functions[0]!r}; pass its efforts to each step"
        )
    if rigid := next((e for e in forces if e.rigid), None):
        reason = (
            "it solves a contact problem, in a number of iterations that depends on the state; use CompliantContact"
        )
        raise ModelError(f"a step with {type(rigid).__name__} cannot be recorded: {reason}")
    stepping = Stepping.checked(
        "recorded_step", robot, 0.0,
        {"method": "rk4" if method == "midpoint" else method, "limits": "ignore", "dt": dt / substeps},
    )  # fmt: skip
    core, simulated, varied = _recordable(r, forces, stepping)
    states = core.size - robot.nq - robot.nv
    q, v = r.q, r.v
    optional = {"tau": r._samples["tau"], "time": r._samples["time"]}
    hidden = {
        key: r.inputs[key] if key in r.inputs else np.array(r._recording.input(x), dtype=object)
        for key, x in optional.items()
    }
    z = r.input("z", np.zeros((len(r._configurations), states))) if states else []
    arrays = (q, v, z, hidden["tau"], hidden["time"])
    parts, status = r._recording.step(
        simulated, dt / substeps, method == "midpoint", substeps, corrections, varied, *map(r._flat, arrays)
    )
    r.status = status if r.status is None else r.status.larger(status)
    results = [x for part in parts for x in part]
    for key, x in hidden.items():
        if r._recording.depends([*results, status], list(x)):
            r.inputs[key] = x
    return {key: np.array(x, dtype=object) for key, x in zip(("q", "v", "z", "residual"), parts, strict=True)}


def _recordable(r: Recorder, forces: list[Any], stepping: Stepping) -> tuple[Any, Any, list[int]]:
    """Return the run, what the recorder reads of it, and the indices of parameters that differ between variants; raise ModelError with the reason why
    its steps cannot be recorded.
    """
    robot, reason = r.robot, ""
    prepared = Prepared.of(r.simulated, ([], forces), stepping, r._configurations[0])
    if prepared.felt:
        reason = f"{defaults_of(prepared.felt)}, which a step does not have; {given(prepared.felt)}"
        raise ModelError(f"a step of '{robot.name}' cannot be recorded: {reason}")
    parameters = prepared.forces.parameters
    varied = np.flatnonzero((parameters != parameters[0]).any(axis=0)).tolist() if parameters.ndim == 2 else []
    r._vary("element_parameters", np.atleast_2d(parameters)[:, varied])
    core = prepared.setup.core(parameters[0] if parameters.ndim == 2 else parameters)
    simulated = core.simulated()
    reason = _recording.not_recorded(simulated, stepping.dt)
    if not reason:
        core.begin([*r._configurations[0], *np.zeros(core.size - robot.nq)], r._samples["time"][0, 0], stepping.dt)
        reason = "redundant rows of its loops are consistent only on closed loops" if core.state["close_stages"] else ""
    if reason:
        raise ModelError(f"a step of '{robot.name}' cannot be recorded: {reason}")
    return core, simulated, varied
