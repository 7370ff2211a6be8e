"""Warnings of simulations, issued once for all runs: exceeded limits, steps that are too long, drift of the loop constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _core
from .._arrays import Array, NDArray
from .._core import Status
from ..analysis.scaling import sliding_velocities, velocity_scale
from ..description.contacts import told_by_file
from ..errors import DriftWarning, LimitWarning, ModelWarning, StiffnessWarning, warn_caller
from ..mechanism import Mechanism
from .limits import Record
from .setup import Prepared, Setup, mechanism_of, moved_by_closing
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..variants import Variants

EATEN = 0.1  # fraction of a motion's energy that the steps may dissipate without a warning
RATE_ERROR = 1e-3  # relative error of a rate, which is estimated by finite differences in a few iterations
# largest motion of a joint [rad, mean body sizes] without a warning when the loops of an initial state are closed
MOVED = 1e-3
WRONG = {
    1: 1e-2,
    2: 1e-3,
}  # allowed error of the energy, relative to the largest kinetic energy, by order of the method (2: second and higher)
MEASURED = 1e-4  # relative error of the work of the applied forces, which the steps integrate
ROUNDING = (
    1e-9  # error of the energy, relative to the potential energy, whose zero may be far from its values in the motion
)
RESOLVED = 0.5  # largest product of rate and step that causes no error
FEWEST = 8  # smallest number of samples from which the largest kinetic energy can be estimated
MOST = 32  # largest number of evaluated samples of a run, at irregular distances because a motion may be periodic
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
Runs = Sequence[tuple[slice | NDArray[np.intp], Prepared]]  # indices and setup of the runs of each mechanism
Ends = tuple[Array, Array]  # initial and final q (runs, 2, nq) and v (runs, 2, nv)


def warn_of_runs(runs: Runs, record: Record, fault: str, end: tuple[float, Array, Array, NDArray[np.bool_]]) -> None:
    """Issue all warnings of runs.

    - `fault`: message that the steps are too long, or ""
    - `end`: final time, final states (runs, nq), (runs, nv), and a mask (runs,) of the runs that reached this time
    """
    setup = runs[0][1].setup
    _warn_of_shapes(setup)
    _warn_of_limits(runs, record)
    if fault:
        warn_caller(fault, StiffnessWarning)
    if setup.stabilisation != "projection":
        _warn_of_drift(runs, setup.stabilisation, *end)


def fault_of_steps(
    runs: Runs, record: Record, q: Array, v: Array, run: Callable[[int], Trajectory], *, step: float, steps: int,
    ends: Ends | None = None,
) -> str:  # fmt: skip
    """Return the message that the steps are too long for runs with samples (runs, n, nq), (runs, n, nv), or "".

    `run` returns a run as a Trajectory. `ends`: states between which the work of the applied forces was integrated, if not the first and
    last of these samples.
    """
    if fault := _fast_rate(runs[0][1].setup.method, step, steps, record):
        return fault
    share, order = np.zeros(len(q)), np.arange(len(q))
    for rows, prepared in runs if q.shape[1] >= FEWEST else ():
        indices = order[rows]

        def trajectory(k: int, indices: NDArray[np.intp] = indices) -> Trajectory:
            return run(int(indices[k]))

        share[rows] = _energy_error(prepared, record, rows, q[rows], v[rows], ends, trajectory)
    return _wrong_energy(runs, step, share, q)


def at(time: float) -> str:
    """Return the source text of the argument `time`, or "" for the default."""
    return f", time={time:g}" if time else ""


def warn_of_starts(mechanism: Mechanism, requested: Array, closed: Array, time: float) -> None:
    """Warn about initial configurations `requested` (runs, nq) with open loops, which were moved to `closed` (runs, nq)."""
    if not mechanism.nc:
        return
    moved = moved_by_closing(mechanism, requested, closed)
    most = moved.max(axis=-1, initial=0.0)
    if not (exceeded := most > MOVED).any():
        return
    k = int(np.argmax(most))
    place = int(np.argmax(moved[k]))
    joint = next(j for j in map(mechanism.joint, mechanism.joints) if place in range(*j.v_slice.indices(mechanism.nv)))
    unit = "m" if sliding_velocities(mechanism)[place] else "rad"
    by = moved[k, place] * velocity_scale(mechanism)[place]
    warn_caller(
        f"the loops are open in the initial state{_among(exceeded)}: to close them, joints were moved, most of all joint '{joint.name}', by {by:.3g} {unit}; pass "
        f"mechanism.assemble(near=q{at(time)}), with fixed=... for joints that must not move",
        DriftWarning,
    )


def _warn_of_shapes(setup: Setup) -> None:
    """Warn about shapes whose contact is not simulated, so that they penetrate each other; only once if the mechanism was read from a file."""
    mechanism = cast(Mechanism, setup.mechanism._base)
    d = mechanism.description
    if _core.methods[setup.method].rigid or not d.shapes or told_by_file(d) or not (pairs := mechanism._may_touch):
        return
    names = f"'{d.shapes[pairs[0].first].name}' and '{d.shapes[pairs[0].second].name}'"
    more = f" (and {len(pairs) - 1} more pairs)" if pairs[1:] else ""
    warn_caller(
        f"shapes {names}{more} may touch, but method='{setup.method}' lets them pass through each other: "
        "give method='contact' for contact forces",
        ModelWarning,
    )


def _among(out: NDArray[np.bool_], fact: str = "") -> str:
    return f" (in {int(out.sum())} of {len(out)} runs{fact})" if len(out) > 1 else ""


def _warn_of_limits(runs: Runs, record: Record) -> None:
    """Warn about exceeded limits that are not enforced, with the values of the first run that exceeds the first of these limits."""
    if not record["excess"].any():
        return
    out = np.nan_to_num(record["excess"]) != 0.0
    exceeded = []
    for k in np.flatnonzero(out.any(axis=0)).tolist():
        first = int(out[:, k].argmax())
        limits = next(p.limits for rows, p in runs if first in np.arange(len(out))[rows])
        exceeded.append(limits.exceeded_one(record, first, k))
    enforced = runs[0][1].limits.enforced
    left = [x for x in exceeded if (x["joint"], x["index"], x["quantity"]) not in enforced]
    if not left:
        return
    x = left[0]
    cure = "the limit is not enforced: limits='enforce' adds end stops and saturates efforts"
    if x["quantity"] == "velocity":
        cure = "velocity limits are never enforced"
    among = _among(out.any(axis=1), " some limit is exceeded")
    more = f"; {len(left) - 1} more limits are exceeded" if left[1:] else ""
    joint = f"'{x['joint']}'" + (f"[{x['index']}]" if x["index"] else "")
    warn_caller(
        f"{x['quantity']} of joint {joint} leaves its limits ({x['lower']:.6g}, {x['upper']:.6g}) at t = {x['time']:.6g} s "
        f"and reaches {x['reached']:.6g}{among}{more}; {cure}. limits='ignore' disables this warning",
        LimitWarning,
    )


def _fast_rate(method: str, dt: float, steps: int, record: Record) -> str:
    """Return the message that |rate| dt of the forces exceeds the stability limit, or that the steps dissipate a motion; else ""."""
    stable = _core.methods[method].stable
    if not record["stiffness"].any():
        return ""
    rates, eaten = (np.nan_to_num(record[name]) for name in ("stiffness", "energy_eaten"))
    largest, most = float(rates.max(initial=0.0)), float(eaten.max(initial=0.0))
    oscillates = steps * largest > 2.0 * np.pi  # the energy loss is meaningful only after a full period
    share = -np.expm1(-most) if oscillates else 0.0
    if largest > stable * (1.0 + RATE_ERROR):
        fault = (
            f"is unstable for the applied forces: their fastest rate is {largest / dt:.3g}/s, or {largest:.3g} per step, "
            f"and the method is stable up to {stable:.3g} per step"
        )
        shorter = dt * stable / largest
    elif share > EATEN:
        fault = f"dissipates {100.0 * share:.2g} % of the energy of the fastest motion, {largest / dt:.3g} rad/s, which no damping explains"
        shorter = dt * (EATEN / most) ** 0.2  # the loss per second is proportional to dt^5
    else:
        return ""
    fast = (rates > stable) if (rates > stable).any() else (eaten > 0.0)
    return (
        f"'{method}' with dt = {dt:.3g} s {fault}{_among(fast)}; the result is unreliable. Give method='implicit_midpoint', which conserves "
        f"energy, or 'rosenbrock', which damps stiff motions, or "
        f"dt = {shorter:.1g} or less"
    )


def _wrong_energy(runs: Runs, dt: float, share: Array, q: Array) -> str:
    """Return the message on runs whose energy has an error, or ""; `share` (runs,) is the error relative to the largest kinetic energy."""
    k = int(np.abs(share).argmax()) if len(share) else 0
    if not len(share) or share[k] == 0.0:
        return ""
    setup, acts = runs[0][1].setup, runs[0][1].acts
    method, percent = setup.method, f"{100.0 * abs(share[k]):.2g} % of its largest kinetic energy"
    if acts:
        fault = f"the energy balance, with the work of all forces, is wrong by {percent}"
    elif share[k] > 0.0:
        fault = f"the mechanism gains {percent}, though no force drives it"
    else:
        fault = f"the mechanism loses {percent}, though no force brakes it"
    prepared = next(p for rows, p in runs if k in np.arange(len(share))[rows])
    fast = _fastest(prepared.setup.mechanism, q[k], k, dt, prepared.elements)
    facts = _core.methods[method]
    other = "rk4" if facts.order == 1 else "implicit_midpoint" if fast and method != "implicit_midpoint" else "dopri5"
    by_steps = f"a smaller dt than {dt:.3g} s" + (f", or method='{other}'" if not facts.rigid else "")
    shorter = "smaller rtol and atol" if facts.adaptive else by_steps
    return f"by '{method}' {fault}{_among(share != 0.0)}: the steps are too long for the motion{fast}. Give {shorter}"


def _fastest(mechanism: Mechanism | Variants, q: Array, k: int, dt: float, elements: Iterable[Any]) -> str:
    """Return a message about the fastest rate of joints, springs and contacts, or "" if the steps resolve this rate."""
    from .stiffness import fastest_rate

    mechanism = mechanism_of(mechanism, k)
    fast = fastest_rate(mechanism, q[0], elements)
    if fast is None or not fast.rate * dt > RESOLVED:
        return ""
    return f"; the fastest rate is about {fast.rate:.2g}/s, or {fast.rate * dt:.2g} per step, of {fast.quantity} {fast.number:.3g} of {fast.owner}"


def _warn_of_drift(
    runs: Runs, stabilisation: str, time: float, q: Array, v: Array, finished: NDArray[np.bool_]
) -> None:
    """Warn about runs whose final state violates the loop constraints, so that accelerations are meaningless."""
    off = np.zeros(len(q), dtype=bool)
    for rows, prepared in runs:
        mechanism: Any = prepared.setup.mechanism
        if mechanism.nc:
            _, status = mechanism.forward_dynamics(
                q[rows], v[rows], np.zeros(mechanism.nv), time=time, return_status=True
            )
            off[rows] = finished[rows] & (status == Status.OFF_LOOPS)
    if off.any():
        runs_end = f"{off.sum()} of {off.size} runs end" if len(off) > 1 else "the run ends"
        warn_caller(
            f"stabilisation='{stabilisation}' did not keep the loops closed: {runs_end} with open loops, where accelerations are meaningless. "
            "Give stabilisation='projection', a smaller dt, or other gains",
            DriftWarning,
        )


# ---- balance of energy: if it is violated, the steps are too long for the motion ---------------------------------------


def _energy_error(
    prepared: Prepared,
    record: Record,
    rows: Any,
    q: Array,
    v: Array,
    ends: Ends | None,
    run: Callable[[int], Trajectory],
) -> Array:
    """Return the error (runs,) of the final energy of runs (runs, n, nq), relative to the largest kinetic energy; 0 if it is within its bound.

    The steps have integrated the work of the applied forces and a bound of its error. Contacts must not supply energy.
    """
    mechanism = prepared.setup.mechanism
    if q.shape[1] < FEWEST:
        return np.zeros(len(q))
    last = q.shape[1] - 1
    samples = np.unique([0, last, *(last * (np.arange(1, MOST - 1) * GOLDEN % 1.0)).astype(int)])
    sampled = mechanism.kinetic_energy(q[:, samples], v[:, samples])
    largest, kinetic = sampled.max(axis=1), sampled[:, [0, -1]]
    springs = mechanism._closing_joints and any(
        j.type.stiffness.any() for m in _each(mechanism) for j in m._closing_joints
    )
    if springs:  # the energy of these springs depends on the revolutions that each run has counted
        if ends is not None:
            return np.zeros(len(q))
        potential = np.array([run(k).potential_energy[[0, -1]] for k in range(len(q))])
    elif ends is None:
        potential = mechanism.potential_energy(q[:, [0, last]])
    else:
        potential, kinetic = mechanism.potential_energy(ends[0]), mechanism.kinetic_energy(*ends)
    change = kinetic[:, 1] - kinetic[:, 0] + potential[:, 1] - potential[:, 0]
    supplied, supplied_error = record["supplied"][rows], record["apart"][rows]
    pushed = np.minimum(record["pushed"][rows].sum(axis=-1), 0.0)
    if ends is not None:  # the largest kinetic energy may have occurred between the samples
        largest = (
            np.maximum(largest, kinetic.max(axis=1)) + np.abs(np.diff(potential)[:, 0]) + np.abs(supplied + pushed)
        )
    off = change - supplied - pushed
    off = np.sign(off) * np.maximum(np.abs(off) - np.abs(supplied_error), 0.0)
    wrong = WRONG[min(_core.methods[prepared.setup.method].order, 2)]
    uncertainty = ROUNDING * np.abs(potential).max(axis=1) + MEASURED * np.abs(supplied)
    if _only_gives_back(prepared):
        for k in np.flatnonzero(change > WRONG[1] * largest + uncertainty).tolist():
            off[k] = off[k] if run(k).tau[0].any() else change[k]
    for k in np.flatnonzero(np.abs(off) > wrong * largest + uncertainty).tolist():
        largest[k] = (
            mechanism.kinetic_energy(q[k], v[k]).max() if mechanism._count == 0 and ends is None else largest[k]
        )
    detected = np.abs(off) > wrong * largest + uncertainty  # False for failed runs, whose values are NaN
    return np.asarray(np.divide(off, largest, out=np.zeros(len(q)), where=detected & (largest > 0.0)))


def _only_gives_back(prepared: Prepared) -> bool:
    """Return True if all force elements are contacts, end stops and bristles, which return at most the energy that they absorbed."""
    d = mechanism_of(prepared.setup.mechanism, 0).description
    moved = any(spec.laws for spec in d.joints) or any(hasattr(c, "rows") or c.prescribed(0.0) for c in d.constraints)
    return bool(prepared.elements) and not (prepared.functions or moved) and all(e.stores for e in prepared.elements)


def _each(mechanism: Mechanism | Variants) -> Iterable[Mechanism]:
    return [cast(Mechanism, mechanism)] if mechanism._base is mechanism else cast("Variants", mechanism)
