"""Warnings of simulations, issued once for all runs: exceeded limits, steps that are too long, drift of the loop constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import numpy as np

from .. import _core
from .._arrays import Array, NDArray
from .._core import Status
from .._deferred import dataclass
from ..analysis.closing import prepared as cached
from ..analysis.linear_algebra import sliding_velocities, velocity_scale
from ..errors import DriftWarning, LimitWarning, ModelWarning, StiffnessWarning, warn_caller
from ..mechanism import Mechanism
from .setup import Groups, Prepared, Record, Setup, joint_at, mechanism_of, moved_by_closing, moves
from .trajectory import Trajectory

EATEN = 0.1  # fraction of a motion's energy that the steps may dissipate without a warning
RATE_ERROR = 1e-3  # relative error of a rate, which is estimated by finite differences in a few iterations
# largest motion of a joint [rad, mean body sizes] without a warning when the loops of an initial state are closed
MOVED = 1e-3
# allowed error of the energy, relative to the largest kinetic energy, by order of the method (2: second and higher)
WRONG = {1: 1e-2, 2: 1e-3}
MEASURED = 1e-4  # relative error of the work of the applied forces, which the steps integrate
ROUNDING = 1e-9  # error of the energy, relative to the potential energy, whose zero may be far from the motion
RESTING = 1e-9  # velocity of joints at rest [rad/s, mean body sizes/s], larger than the rounding of projections
RESOLVED = 0.5  # largest product of rate and step that causes no error
FEWEST = 8  # smallest number of samples from which the largest kinetic energy can be estimated
MOST = 32  # largest number of evaluated samples of a run, at irregular distances because a motion may be periodic
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
Ends = tuple[Array, Array]  # initial and final q (runs, 2, nq) and v (runs, 2, nv)


def warn_of_runs(runs: Groups, record: Record, fault: str, end: tuple[float, Array, Array, NDArray[np.bool_]]) -> None:
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


def warn_of_bushings(runs: Groups, t: Array, q: Array) -> None:
    """Warn about a bushing that turns through half a revolution between two of the times (n,) of states (runs, n, nq), where its moment jumps."""
    order = np.arange(len(q))
    for rows, prepared in runs:
        bushings = [
            e for e in prepared.elements if e._kind == "Bushing" and np.any(np.atleast_1d(e.stiffness)[..., :3])
        ]
        for e, k in ((e, k) for e in bushings for k in order[rows].tolist()):
            mechanism = mechanism_of(prepared.setup.mechanism, k)
            A, B = (mechanism.pose(q[k], frame, return_status=True)[0][:, :3, :3] for frame in (e.on, e.frame))
            R = np.swapaxes(A, 1, 2) @ B
            axis = (
                R[:, (2, 0, 1), (1, 2, 0)] - R[:, (1, 2, 0), (2, 0, 1)]
            )  # along the rotation, reversed at half a revolution
            wide = np.trace(R, axis1=1, axis2=2) < 1.0  # more than a quarter of a revolution
            reversed_at = np.flatnonzero((np.sum(axis[1:] * axis[:-1], axis=1) < 0.0) & wide[1:] & wide[:-1])
            if len(reversed_at):
                warn_caller(
                    f"the Bushing of '{e.frame}' on '{e.on}' turns through half a revolution at t = {t[reversed_at[0] + 1]:.6g} s"
                    f"{f' in run {k}' if len(q) > 1 else ''}, where the direction of its moment is reversed; for such rotations use stiffness= of a "
                    "joint, whose revolutions are counted",
                    ModelWarning,
                )
                return


def fault_of_steps(
    runs: Groups, record: Record, q: Array, v: Array, run: Callable[[int], Trajectory], *, step: float, steps: int,
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
        of_run = lambda k, indices=order[rows]: run(int(indices[k]))  # noqa: E731
        share[rows] = _energy_error(prepared, record, rows, q[rows], v[rows], ends, of_run)
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
    unit = "m" if sliding_velocities(mechanism)[place] else "rad"
    by = moved[k, place] * velocity_scale(mechanism)[place]
    warn_caller(
        f"the loops are open in the initial state{_among(exceeded)}: to close them, joints were moved, most of all joint '{joint_at(mechanism, place).name}', by {by:.3g} {unit}; pass "
        f"mechanism.assemble(near=q{at(time)}), with fixed=... for joints that must not move",
        DriftWarning,
    )


def _warn_of_shapes(setup: Setup) -> None:
    """Warn about shapes whose contact is not simulated, so that they penetrate each other; only once if the mechanism was read from a file."""
    mechanism = cast(Mechanism, setup.mechanism._base)
    d = mechanism.description
    if _core.methods[setup.method].rigid or not d.shapes:
        return
    from ..description.contacts import told_by_file

    if told_by_file(d) or not (pairs := mechanism._may_touch):
        return
    names = f"'{d.shapes[pairs[0].first].name}' and '{d.shapes[pairs[0].second].name}'"
    more = f" (and {len(pairs) - 1} more pairs)" if pairs[1:] else ""
    warn_caller(
        f"shapes {names}{more} may touch, but method='{setup.method}' lets them pass through each other: "
        "give method='contact' for contact forces",
        ModelWarning,
    )


def _of_run(runs: Groups, run: int, count: int) -> Prepared:
    """Return the setup of one of `count` runs."""
    return next(prepared for rows, prepared in runs if run in np.arange(count)[rows])


def _among(out: NDArray[np.bool_], fact: str = "") -> str:
    return f" (in {int(out.sum())} of {len(out)} runs{fact})" if len(out) > 1 else ""


def _warn_of_limits(runs: Groups, record: Record) -> None:
    """Warn about exceeded limits that are not enforced, with the values of the first run that exceeds the first of these limits."""
    if not record["excess"].any():
        return
    out, left = np.nan_to_num(record["excess"]) != 0.0, []
    for k in np.flatnonzero(out.any(axis=0)).tolist():
        first = int(out[:, k].argmax())
        limits = _of_run(runs, first, len(out)).limits
        left += [] if limits.enforced[k] else [limits.exceeded_one(record, first, k)]
    if not left:
        return
    x = left[0]

    cure = "velocity limits are never enforced"
    if x["quantity"] != "velocity":
        cure = "the limit is not enforced: limits='enforce' adds end stops and saturates efforts"
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
    if not record["stiffness"].any():
        return ""
    stable = _core.methods[method].stable
    rates, eaten = (np.nan_to_num(record[name]) for name in ("stiffness", "energy_eaten"))
    largest, most = float(rates.max(initial=0.0)), float(eaten.max(initial=0.0))
    oscillates = steps * largest > 2.0 * np.pi  # the energy loss is meaningful only after a full period
    share = -np.expm1(-most) if oscillates else 0.0
    if largest > stable * (1.0 + RATE_ERROR):
        shorter = stable / largest
        fault = (
            f"is unstable for the applied forces: their fastest rate is {largest / dt:.3g}/s, or {largest:.3g} per step"
        )
        fault += f", and the method is stable up to {stable:.3g} per step"
    elif share > EATEN:
        fault = f"dissipates {100.0 * share:.2g} % of the energy of the fastest motion, {largest / dt:.3g} rad/s, which no damping explains"
        shorter = (EATEN / most) ** 0.2  # the loss per second is proportional to dt^5
    else:
        return ""
    fast = (rates > stable) if (rates > stable).any() else (eaten > 0.0)
    return (
        f"'{method}' with dt = {dt:.3g} s {fault}{_among(fast)}; the result is unreliable. Give method='implicit_midpoint', which conserves "
        f"energy, or 'rosenbrock', which damps stiff motions, or dt = {dt * shorter:.1g} or less"
    )


def _wrong_energy(runs: Groups, dt: float, share: Array, q: Array) -> str:
    """Return the message on runs whose energy has an error, or ""; `share` (runs,) is the error relative to the largest kinetic energy."""
    k = int(np.abs(share).argmax()) if len(share) else 0
    if not len(share) or share[k] == 0.0:
        return ""
    setup, acts = runs[0][1].setup, runs[0][1].acts
    method, percent = setup.method, f"{100.0 * abs(share[k]):.2g} % of its largest kinetic energy"
    fault = f"the mechanism gains {percent}, though no force drives it"
    if acts or share[k] < 0.0:
        loses = f"the mechanism loses {percent}, though no force brakes it"
        fault = f"the energy balance, with the work of all forces, is wrong by {percent}" if acts else loses
    prepared = _of_run(runs, k, len(share))
    rate = fastest_rate(mechanism_of(prepared.setup.mechanism, k), q[k, 0], prepared.elements)
    fast = ""
    if rate is not None and rate.rate * dt > RESOLVED:
        fast = f"; the fastest rate is about {rate.rate:.2g}/s, {rate.rate * dt:.2g} a step, of {rate.quantity} {rate.number:.3g} of {rate.owner}"
    facts = _core.methods[method]
    other = "rk4" if facts.order == 1 else "implicit_midpoint" if fast and method != "implicit_midpoint" else "dopri5"
    by_steps = f"a smaller dt than {dt:.3g} s" + (f", or method='{other}'" if not facts.rigid else "")
    shorter = "smaller rtol and atol" if facts.adaptive else by_steps
    return f"by '{method}' {fault}{_among(share != 0.0)}: the steps are too long for the motion{fast}. Give {shorter}"


def _warn_of_drift(
    runs: Groups, stabilisation: str, time: float, q: Array, v: Array, finished: NDArray[np.bool_]
) -> None:
    """Warn about runs whose final state violates the loop constraints, so that accelerations are meaningless."""
    off = np.zeros(len(q), dtype=bool)
    for rows, prepared in runs:
        mechanism: Any = prepared.setup.mechanism
        if mechanism.nc:
            options: Any = {"time": time, "return_status": True}
            status = mechanism.forward_dynamics(q[rows], v[rows], np.zeros(mechanism.nv), **options)[1]
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
    prepared: Prepared, record: Record, rows: Any, q: Array, v: Array, ends: Ends | None, run: Any
) -> Array:
    """Return the error (runs,) of the final energy of runs (runs, n, nq), relative to the largest kinetic energy; 0 if it is within its bound.

    The steps have integrated the work of the applied forces and a bound of its error. Contacts must not supply energy.
    """
    mechanism, last = prepared.setup.mechanism, q.shape[1] - 1
    between = (last * (np.arange(1, MOST - 1) * GOLDEN % 1.0)).astype(int).tolist()
    samples = sorted({0, last, *between})  # np.unique imports numpy.ma
    sampled = mechanism.kinetic_energy(q[:, samples], v[:, samples])
    largest, kinetic = sampled.max(axis=1), sampled[:, [0, -1]]
    each = [mechanism] if mechanism._base is mechanism else mechanism
    # the energy of springs of loop joints depends on the revolutions that each run has counted
    if mechanism._closing_joints and any(j.type._sprung for m in each for j in m._closing_joints):
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
        raised = np.abs(potential[:, 1] - potential[:, 0])
        largest = np.maximum(largest, kinetic.max(axis=1)) + raised + np.abs(supplied + pushed)
    off = change - supplied - pushed
    off = np.sign(off) * np.maximum(np.abs(off) - np.abs(supplied_error), 0.0)
    wrong = WRONG[min(_core.methods[prepared.setup.method].order, 2)]
    uncertainty = ROUNDING * np.abs(potential).max(axis=1) + MEASURED * np.abs(supplied)
    # a motion at rounding level, as of a mechanism that locks or brakes hold at rest, has no meaningful energy
    uncertainty += mechanism.kinetic_energy(q[:, 0], RESTING * velocity_scale(cast(Mechanism, mechanism._base)))
    if _only_gives_back(prepared):
        for k in np.flatnonzero(change > WRONG[1] * largest + uncertainty).tolist():
            off[k] = off[k] if run(k).tau[0].any() else change[k]
    exact = mechanism._count == 0 and ends is None
    for k in np.flatnonzero(np.abs(off) > wrong * largest + uncertainty).tolist() if exact else ():
        largest[k] = mechanism.kinetic_energy(q[k], v[k]).max()
    detected = np.abs(off) > wrong * largest + uncertainty  # False for failed runs, whose values are NaN
    return np.asarray(np.divide(off, largest, out=np.zeros(len(q)), where=detected & (largest > 0.0)))


def _only_gives_back(prepared: Prepared) -> bool:
    """Return True if all force elements are contacts, end stops and bristles, which return at most the energy that they absorbed."""
    moved = moves(mechanism_of(prepared.setup.mechanism, 0).description)
    return bool(prepared.elements) and not (prepared.functions or moved) and all(e.stores for e in prepared.elements)


# ---- rates of dampers, springs and contacts, which bound the steps -------------------------------------------------------

STABLE = _core.methods["rk4"].stable
CURE = "method='implicit_midpoint', {shorter}"


@dataclass(frozen=True)
class FastRate:
    """Rate of a damper or spring [1/s], with its `quantity` ("damping" or "stiffness"), the `number` (value), the `owner`, and a `cure`."""

    rate: float
    quantity: str
    number: float
    owner: str
    cure: str
    is_contact: bool = False

    def message(self, method: str, dt: float) -> str:
        """Return the message that a method's steps are too long, with the cure."""
        stable = _core.methods[method].stable
        follows = f", and '{method}' is stable up to {stable:.3g} per step" if np.isfinite(stable) else ""
        shorter = min(stable, STABLE) / self.rate
        return (
            f"{self.quantity} {self.number:.3g} of {self.owner} is too fast for '{method}' with dt = {dt:.3g} s: its rate is "
            f"{self.rate:.3g}/s, or {self.rate * dt:.3g} per step{follows}. Give {self.cure.format(shorter=f'dt = {shorter:.1g} or less')}"
        )


def fastest_rate(mechanism: Mechanism, q: Array, elements: Iterable[Any] = ()) -> FastRate | None:
    """Return the fastest rate of the mechanism's dampers and springs, and of contacts among force elements, at q (nq,) with closed loops."""
    rates = [*_of_joints(mechanism, q), *_of_springs(mechanism), *_of_contacts(mechanism, elements)]
    return max(rates, key=lambda fast: fast.rate, default=None)


def _of_joints(mechanism: Mechanism, q: Array) -> Iterator[FastRate]:
    """Yield the rates of dampers and springs of joints, computed with the effective inertia along each velocity."""
    terms = cached(mechanism, "joint rates", lambda: _terms(mechanism))
    if not terms:
        return
    inertia = _core.effective_inertia(mechanism, [[iv] for *_, iv in terms], q).tolist()
    for (quantity, n, name, _), m in zip(terms, inertia, strict=True):
        rate = n / m if quantity == "damping" else (n / m) ** 0.5
        yield FastRate(rate, quantity, n, f"joint '{name}'", CURE + ", or more inertia to the bodies of the joint")


def _terms(mechanism: Mechanism) -> list[tuple[str, float, str, int]]:
    """Return (quantity, value, joint, index of the velocity) of each damper and spring of a joint."""
    return [
        (quantity, number, joint.name, joint._all_v.start + i)
        for joint in map(mechanism.joint, (*mechanism.joints, *mechanism.loop_joints))
        for quantity in ("damping", "stiffness")
        for i, number in enumerate(np.broadcast_to(getattr(joint.type, quantity), (joint.type.nv,)).tolist())
        if number > 0.0
    ]


def _of_springs(mechanism: Mechanism) -> Iterator[FastRate]:
    """Yield the rates of springs between points, computed with the masses of the bodies at their ends."""
    mass = {body.name: body.inertia.mass for body in mechanism.description.bodies}
    for spring in mechanism.description.springs:
        per_mass = sum(1.0 / mass[end[0]] for end in (spring.first, spring.second) if mass.get(end[0]))
        owner = f"spring '{spring.name}'"
        yield FastRate((spring.stiffness * per_mass) ** 0.5, "stiffness", spring.stiffness, owner, CURE)
        yield FastRate(spring.damping * per_mass, "damping", spring.damping, owner, CURE)


def _of_contacts(mechanism: Mechanism, elements: Iterable[Any]) -> Iterator[FastRate]:
    """Yield the rates of compliant contacts, for a contact force equal to the mechanism's weight."""
    weight = mechanism.mass * float(np.linalg.norm(mechanism.gravity))
    for contact in (e for e in elements if getattr(e, "_kind", "") == "CompliantContact"):
        k, n = (float(np.max(x)) for x in (contact.stiffness, contact.exponent))
        slope = n * k ** (1.0 / n) * weight ** (1.0 - 1.0 / n)
        rate = (slope / mechanism.mass) ** 0.5 if mechanism.mass > 0.0 else 0.0
        cure = "{shorter}, or RigidContact, which has no stiffness, in method='contact'"
        yield FastRate(rate, "stiffness", k, f"CompliantContact of '{contact.frame}'", cure, is_contact=True)
