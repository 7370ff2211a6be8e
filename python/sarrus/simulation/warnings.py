"""What a simulation warns of, once for all its runs, be they one or many: limits that were left, steps that are too long, loops that drifted open."""

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

EATEN = 0.1  # of a motion's energy, which a run may lose to its steps
TOLD = 1e-3  # how well a rate is known: by differences, and a few turns of an iteration
MOVED = 1e-3  # [rad, sizes of the bodies] by which a start may be brought onto the loops unnoticed
WRONG = {1: 1e-2, 2: 1e-3}  # of the largest kinetic energy, by methods of first order, and of second or more
MEASURED = 1e-4  # how well the work of what acts is known by the steps that do it
ROUNDING = 1e-9  # of the potential energies, whose zero is far away
RESOLVED = 0.5  # up to which a rate, times the step, is no reason for an error
FEWEST = 8  # states, of which the largest kinetic energy is known
MOST = 32  # states of a run that are looked at, at irregular distances: a motion may be periodic
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
Runs = Sequence[tuple[slice | NDArray[np.intp], Prepared]]  # which runs are of each mechanism
Ends = tuple[Array, Array]  # q (runs, 2, nq) and v (runs, 2, nv) at the start and at the end


def warn_of_runs(
    runs: Runs, record: Record, q: Array, v: Array, run: Callable[[int], Trajectory], *, step: float, steps: int,
    end: tuple[float, Array, Array, NDArray[np.bool_]], ends: Ends | None = None,
) -> None:  # fmt: skip
    """Of runs (runs, n, nq), (runs, n, nv), each of which is a Trajectory; `end`: when, (runs, nq), (runs, nv) and which runs (runs,) have come there.
    `ends`: where the work of what acts began and ended to be added up, if not in the first and last of these states.
    """
    setup = runs[0][1].setup
    _warn_of_shapes(setup)
    _warn_of_limits(runs, record)
    if not _warn_of_stiffness(setup.method, step, steps, record):
        share, order = np.zeros(len(q)), np.arange(len(q))
        for rows, prepared in runs if q.shape[1] >= FEWEST else ():
            several = order[rows]

            def one(k: int, several: NDArray[np.intp] = several) -> Trajectory:
                return run(int(several[k]))

            share[rows] = _energy_error(prepared, record, rows, q[rows], v[rows], ends, one)
        _warn_of_energy(runs, step, share, q)
    if setup.stabilisation != "projection":
        _warn_of_drift(runs, setup.stabilisation, *end)


def at(time: float) -> str:
    """As an argument, where it is not the default."""
    return f", time={time:g}" if time else ""


def warn_of_starts(one: Mechanism, given: Array, closed: Array, time: float) -> None:
    """Of runs (runs, nq) whose loops were open where they were to start, and which start elsewhere now."""
    if not one.nc:
        return
    moved = moved_by_closing(one, given, closed)
    most = moved.max(axis=-1, initial=0.0)
    if not (far := most > MOVED).any():
        return
    k = int(np.argmax(most))
    place = int(np.argmax(moved[k]))
    joint = next(j for j in map(one.joint, one.joints) if place in range(*j.v_slice.indices(one.nv)))
    unit = "m" if sliding_velocities(one)[place] else "rad"
    by = moved[k, place] * velocity_scale(one)[place]
    warn_caller(
        f"the loops are open at the start{_among(far)}: closing them moved joint '{joint.name}' most, by {by:.3g} {unit}; begin on them, with "
        f"mechanism.assemble(near=q{at(time)}, fixed=...) where joints are to stay",
        DriftWarning,
    )


def _warn_of_shapes(setup: Setup) -> None:
    """Of shapes that pass through each other, unless the warnings of the file that they were read from say so."""
    robot = cast(Mechanism, setup.mechanism._base)
    d = robot.description
    if _core.methods[setup.method].rigid or not d.shapes or told_by_file(d) or not (pairs := robot._may_touch):
        return
    names = f"'{d.shapes[pairs[0].first].name}' and '{d.shapes[pairs[0].second].name}'"
    others = f" (and {len(pairs) - 1} pairs more)" if pairs[1:] else ""
    warn_caller(
        f"shapes {names}{others} may touch, and method='{setup.method}' lets them pass through each other: "
        "in method='contact' they touch",
        ModelWarning,
    )


def _among(out: NDArray[np.bool_], what: str = "") -> str:
    return f" (in {int(out.sum())} of {len(out)} runs{what})" if len(out) > 1 else ""


def _warn_of_limits(runs: Runs, record: Record) -> None:
    """Of limits that any run left though nothing enforces them, as the first one did that left each."""
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
    cure = "nothing enforces it: limits='enforce' puts end stops there and keeps efforts within limits"
    if x["quantity"] == "velocity":
        cure = "a velocity limit is watched only"
    among = _among(out.any(axis=1), " some limit is left")
    others = f"; so do {len(left) - 1} others" if left[1:] else ""
    which = f"'{x['joint']}'" + (f"[{x['index']}]" if x["index"] else "")
    warn_caller(
        f"{x['quantity']} of joint {which} leaves its limits ({x['lower']:.6g}, {x['upper']:.6g}) at t = {x['time']:.6g} s "
        f"and reaches {x['reached']:.6g}{among}{others}; {cure}. limits='ignore' says nothing of it",
        LimitWarning,
    )


def _warn_of_stiffness(method: str, dt: float, steps: int, record: Record) -> bool:
    """Where |rate| dt of the forces is more than the method's steps can follow, or they eat a motion."""
    stable = _core.methods[method].stable
    if not record["stiffness"].any():
        return False
    rates, eaten = (np.nan_to_num(record[name]) for name in ("stiffness", "energy_eaten"))
    largest, most = float(rates.max(initial=0.0)), float(eaten.max(initial=0.0))
    swings = steps * largest > 2.0 * np.pi  # a run of less than a period is not to be judged
    share = -np.expm1(-most) if swings else 0.0
    if largest > stable * (1.0 + TOLD):
        what = (
            f"is unstable for the forces that act: their fastest rate is {largest / dt:.3g}/s, {largest:.3g} a step, where "
            f"it can follow {stable:.3g}"
        )
        shorter = dt * stable / largest
    elif share > EATEN:
        what = f"takes {100.0 * share:.2g} % of the energy of the fastest motion that the forces make, {largest / dt:.3g} rad/s, which nothing damps so"
        shorter = dt * (EATEN / most) ** 0.2  # the loss of a second goes with the fifth power
    else:
        return False
    fast = (rates > stable) if (rates > stable).any() else (eaten > 0.0)
    warn_caller(
        f"'{method}' with dt = {dt:.3g} s {what}{_among(fast)}; the motion is not to be trusted. Give method='implicit_midpoint', which keeps "
        f"energy, or 'rosenbrock', which takes it from stiff motions, or "
        f"dt = {shorter:.1g} or less",
        StiffnessWarning,
    )
    return True


def _warn_of_energy(runs: Runs, dt: float, share: Array, q: Array) -> None:
    """Of runs whose energy is wrong by such shares."""
    k = int(np.abs(share).argmax()) if len(share) else 0
    if not len(share) or share[k] == 0.0:
        return
    setup, acts = runs[0][1].setup, runs[0][1].acts
    method, percent = setup.method, f"{100.0 * abs(share[k]):.2g} % of its largest kinetic energy"
    if acts:
        fault = f"the energy of the mechanism is wrong by {percent}, beside the work of what acts"
    elif share[k] > 0.0:
        fault = f"the mechanism gains {percent}, though nothing drives it"
    else:
        fault = f"the mechanism loses {percent}, though nothing brakes it"
    prepared = next(p for rows, p in runs if k in np.arange(len(share))[rows])
    fast = _fastest(prepared.setup.mechanism, q[k], k, dt, prepared.elements)
    facts = _core.methods[method]
    other = "rk4" if facts.order == 1 else "implicit_midpoint" if fast and method != "implicit_midpoint" else "dopri5"
    by_steps = f"a smaller dt than {dt:.3g} s" + (f", or method='{other}'" if not facts.rigid else "")
    shorter = "smaller rtol and atol" if facts.adaptive else by_steps
    warn_caller(
        f"by '{method}' {fault}{_among(share != 0.0)}: the steps are too long for the motion{fast}. Give {shorter}",
        StiffnessWarning,
    )


def _fastest(robot: Mechanism | Variants, q: Array, k: int, dt: float, elements: Iterable[Any]) -> str:
    """Return the fastest of the rates of joints, springs and contacts, if steps do not resolve it."""
    from .stiffness import fastest_rate

    robot = mechanism_of(robot, k)
    fast = fastest_rate(robot, q[0], elements)
    if fast is None or not fast.rate * dt > RESOLVED:
        return ""
    return f"; the fastest rate is about {fast.rate:.2g}/s, {fast.rate * dt:.2g} a step, of {fast.what} {fast.number:.3g} of {fast.owner}"


def _warn_of_drift(
    runs: Runs, stabilisation: str, time: float, q: Array, v: Array, finished: NDArray[np.bool_]
) -> None:
    """Of runs that end off the loops, where accelerations mean nothing."""
    off = np.zeros(len(q), dtype=bool)
    for rows, prepared in runs:
        robot: Any = prepared.setup.mechanism
        if robot.nc:
            _, status = robot.forward_dynamics(q[rows], v[rows], np.zeros(robot.nv), time=time, return_status=True)
            off[rows] = finished[rows] & (status == Status.OFF_LOOPS)
    if off.any():
        which = f"{off.sum()} of {off.size} runs end" if len(off) > 1 else "the run ends"
        warn_caller(
            f"stabilisation='{stabilisation}' has not held the loops: {which} off them, where accelerations mean nothing. Give "
            "stabilisation='projection', a smaller dt, or other gains",
            DriftWarning,
        )


# ---- energy that nothing gave a run, or that nothing took: its steps are too long for the motion, whatever acts ----------


def _energy_error(
    prepared: Prepared,
    record: Record,
    rows: Any,
    q: Array,
    v: Array,
    ends: Ends | None,
    run: Callable[[int], Trajectory],
) -> Array:
    """(runs,) by how much the energy at the end of runs (runs, n, nq) is wrong, as a share of the largest kinetic energy; 0: nothing is known to be.

    Steps have added up the work of what acts, and how far that may be off. Contacts are not let give energy.
    """
    robot = prepared.setup.mechanism
    if q.shape[1] < FEWEST:
        return np.zeros(len(q))
    last = q.shape[1] - 1
    some = np.unique([0, last, *(last * (np.arange(1, MOST - 1) * GOLDEN % 1.0)).astype(int)])
    sampled = robot.kinetic_energy(q[:, some], v[:, some])
    largest, kinetic = sampled.max(axis=1), sampled[:, [0, -1]]
    springs = robot._closing_joints and any(j.type.stiffness.any() for one in _each(robot) for j in one._closing_joints)
    if springs:  # of the turns that each run has counted
        if ends is not None:
            return np.zeros(len(q))
        potential = np.array([run(k).potential_energy[[0, -1]] for k in range(len(q))])
    elif ends is None:
        potential = robot.potential_energy(q[:, [0, last]])
    else:
        potential, kinetic = robot.potential_energy(ends[0]), robot.kinetic_energy(*ends)
    change = kinetic[:, 1] - kinetic[:, 0] + potential[:, 1] - potential[:, 0]
    supplied, apart = record["supplied"][rows], record["apart"][rows]
    pushed = np.minimum(record["pushed"][rows].sum(axis=-1), 0.0)
    if ends is not None:  # between kept states it may have been larger
        largest = (
            np.maximum(largest, kinetic.max(axis=1)) + np.abs(np.diff(potential)[:, 0]) + np.abs(supplied + pushed)
        )
    off = change - supplied - pushed
    off = np.sign(off) * np.maximum(np.abs(off) - np.abs(apart), 0.0)
    wrong = WRONG[min(_core.methods[prepared.setup.method].order, 2)]
    known = ROUNDING * np.abs(potential).max(axis=1) + MEASURED * np.abs(supplied)
    if _only_gives_back(prepared):
        for k in np.flatnonzero(change > WRONG[1] * largest + known).tolist():
            off[k] = off[k] if run(k).tau[0].any() else change[k]
    for k in np.flatnonzero(np.abs(off) > wrong * largest + known).tolist():
        largest[k] = robot.kinetic_energy(q[k], v[k]).max() if robot._count == 0 and ends is None else largest[k]
    seen = np.abs(off) > wrong * largest + known  # never where a run failed: NaN
    return np.asarray(np.divide(off, largest, out=np.zeros(len(q)), where=seen & (largest > 0.0)))


def _only_gives_back(prepared: Prepared) -> bool:
    """Return True if contacts, stops and bristles act alone, which give back at most the energy that they took."""
    d = mechanism_of(prepared.setup.mechanism, 0).description
    moved = any(spec.laws for spec in d.joints) or any(hasattr(c, "rows") or c.prescribed(0.0) for c in d.constraints)
    return bool(prepared.elements) and not (prepared.functions or moved) and all(e.stores for e in prepared.elements)


def _each(robot: Mechanism | Variants) -> Iterable[Mechanism]:
    return [cast(Mechanism, robot)] if robot._base is robot else cast("Variants", robot)
