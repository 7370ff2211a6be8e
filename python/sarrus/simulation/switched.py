"""Simulation in phases, between which clutches, locks and welds engage, slip or release.

In a phase, the engaged constraints are rows of the mechanism, and slipping ones apply constant forces. Between phases, velocities change by the impulse
of the rows that engage: M (v⁺ - v⁻) = Jᵀ Λ, J v⁺ = c (:meth:`~sarrus.Mechanism.impact`), which loses the energy -Λᵀ J v⁻ / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike
from .._deferred import dataclass
from ..control.switches import Clutch, Weld
from ..description.joints import Fixed
from ..errors import IntegrationError, ModelError, StateError
from ..mechanism import Mechanism
from ..spatial import Transform
from . import setup
from .setup import Prepared, Record, Setup, Stepping
from .simulate import Event, Integration, sample_times
from .trajectory import Trajectory
from .warnings import fault_of_steps, warn_of_runs

MARGIN = 1e-12  # relative tolerance of capacities, larger than the rounding of reactions
INSTANT = 1e-9  # part of a step in which a brake can stop a motion at rounding level
STOP = 1e-6  # largest such part if the motion has just ended
SUMMED = ("energy_eaten", "supplied", "apart", "pushed")  # entries of a record that are sums over the steps
MOST_CHANGES = 50  # largest number of phases that begin within one step


@dataclass(frozen=True, eq=False)
class PhaseSetup(Setup):
    """Setup of a phase: force elements use the mechanism `described`, without switches; `load` is the force (nv) of slipping ones."""

    described: Any = None
    load: tuple[float, ...] = ()

    @property
    def _of_switches(self) -> tuple[Any, ...]:
        return self.described, list(self.load)


@dataclass(frozen=True, eq=False)
class Trigger:
    """Event that ends a phase: a function of (t, q, v, other states), and the change that follows."""

    _value: Callable[..., float]
    act: Callable[[], object]
    direction: int = -1
    terminal: bool = True
    name: str = "\0"  # no name of a user's event


class Engagement:
    """State of a switch during a run.

    Attributes
    ----------
    rows, A : terms {coordinate: coefficient} of each row of coordinates, and their coefficients (rows, nv); empty for a weld of two bodies
    on, locked, slides : True if it is engaged; True if it is engaged and does not slip; direction of slipping, 1 or -1, or 0
    slowing : acceleration that the capacity can cause [rad/s2, m/s2]
    """

    on = was = locked = stopped = False
    slides = slowing = instant = 0.0
    at_parent = Transform()

    def __init__(self, switch: Any, mechanism: Mechanism) -> None:
        self.switch, self.mechanism, self.bodies = switch, mechanism, ("", "")
        named = [getattr(switch, key, None) for key in ("joint", "first", "second", "parent", "child")]
        self.name = switch.name or f"{type(switch).__name__}({', '.join(str(x) for x in named if x is not None)})"
        self.rows: list[dict[Any, float]] = []
        if isinstance(switch, Clutch):
            self.rows = [{switch.first: 1.0, switch.second: -switch.ratio}]
        elif isinstance(switch, Weld):
            self.bodies = switch.parent, switch.child
        else:
            joint = mechanism.joint(switch.joint)
            if joint.type.holds_nothing:
                raise ModelError(
                    f"{self.name}: joint '{joint.name}' is a {joint.type.kind}; expected a joint that can be locked"
                )
            self.bodies = joint.parent, joint.child
            if not joint.closes_loop and all(joint.type.rates):
                self.rows = [{(switch.joint, k): 1.0} for k in range(joint.type.nq)]
        self.capacity = np.array(switch.capacity)
        self.limited = self.capacity.ndim == 0 and bool(np.isfinite(self.capacity))
        if self.limited and len(self.rows) != 1:
            raise ModelError(
                f"{self.name}: joint '{switch.joint}' has no single coordinate; expected one, which a capacity requires"
            )
        self.parts = [f"{self.name}[{k}]" if k else self.name for k in range(max(1, len(self.rows)))]
        self.A, self.offsets = np.zeros((len(self.rows), mechanism.nv)), [0.0] * len(self.rows)

    def lock(self, q: Array) -> None:
        """Lock at the configuration q."""
        self.locked, self.slides, self.offsets, self.A = True, 0.0, [0.0] * len(self.rows), 0.0 * self.A
        for r, row in enumerate(self.rows):
            for coordinate, coefficient in row.items():
                name, k = coordinate if isinstance(coordinate, tuple) else (coordinate, 0)
                joint = self.mechanism.joint(name)
                self.offsets[r] += coefficient * float(q[joint.q_slice][k])
                self.A[r, joint.v_slice] += coefficient * (np.arange(joint.nv) == k)
        if not self.rows:
            parent, child = (Transform.from_matrix(self.mechanism.pose(q, body)) for body in self.bodies)
            self.at_parent = parent.inverse() @ child

    def add_to(self, builder: Any) -> None:
        """Add the constraints to a builder."""
        for name, row, offset in zip(self.parts, self.rows, self.offsets, strict=False):
            builder.add_coupler(name, row, offset=offset)
        if not self.rows:
            builder.add_joint(self.name, Fixed(), *self.bodies, at_parent=self.at_parent, loop=True)

    def set(self, **state: Any) -> None:
        vars(self).update(state)

    def speed_from(self, x: Array) -> Callable[..., float]:
        """Return the function (t, q, v, z) of the speed of sliding from a state x on, with an offset that makes it positive at a start from rest."""
        v = x[self.mechanism.nq :][: self.mechanism.nv]
        speed = abs(float(self.A[0] @ v))
        offset = 1e-14 * speed + (1e-5 if speed > self.instant else 0.1) * self.instant
        return lambda t, q, v, z: float(self.slides * (self.A[0] @ v) + 1e-14 * np.abs(v).max()) + offset

    @property
    def breaks(self) -> bool:
        """True if it is locked and has a capacity."""
        return self.on and self.locked and bool(np.isfinite(self.capacity).any())

    def spare(self, multipliers: Array, wrench: Array) -> float:
        """Return the part of the capacity that a reaction leaves; negative if the reaction exceeds the capacity."""
        loads = np.abs(multipliers) if self.rows else np.linalg.norm(wrench.reshape(2, 3), axis=1)
        return float(1.0 + MARGIN - np.max(loads / self.capacity))


class SwitchedIntegration:
    """Run in phases, with the interface of :class:`~sarrus.simulation.simulate.Integration`."""

    error: IntegrationError | None = None
    trajectory: Trajectory

    def __init__(self, prepared: Prepared, stepping: Stepping, events: list[Event], switches: list[Any]) -> None:
        self.prepared, self.stepping, self.events = prepared, stepping, events
        self.mechanism: Mechanism = prepared.setup.mechanism
        self.switches = [Engagement(switch, self.mechanism) for switch in switches]
        self.changes: list[dict[str, Any]] = []
        self.phases: list[tuple[Integration, list[Any]]] = []
        for k, s in enumerate(self.switches):
            if s.name in [other.name for other in self.switches[:k]]:
                raise ValueError(f"two switches are named '{s.name}'; names must be unique: pass name=")
        self._with(self.switches)  # raises the errors of all switches before the run

    def _with(self, switches: list[Engagement]) -> Mechanism:
        """Return the mechanism with the constraints of switches."""
        if not switches:
            return self.mechanism
        builder = self.mechanism.to_builder()
        for s in switches:
            s.add_to(builder)
        d, tree = builder._described(), set(self.mechanism.joints)
        joints = [replace(j, tree=j.name in tree, loop=j.name not in tree) for j in d.joints]
        substructures = self.mechanism._substructures if self.mechanism._solver[2] else 0
        return Mechanism(replace(d, joints=tuple(joints)), substructures=substructures)

    def begin(self, q: Any, v: Any, every: int) -> None:
        """Set the initial state, as :meth:`Integration.begin` does."""
        first = Integration(self.prepared, self.stepping, [])
        first.begin(q, v, every)
        self.every, self.dt, self.state = every, self.stepping.dt / every, first.core.state
        self.begun_at = self.x = self.state["x"]
        self.t = self.stepping.start

    def go(self, times: ArrayLike | None, every: int, tolerances: tuple[float, ...], progress: bool) -> None:
        """Run all phases."""
        start, end = self.stepping.start, self.stepping.start + self.stepping.duration
        samples = None if times is None else sample_times(times, start, end)
        due = [
            (time, key == "on", k)
            for k, s in enumerate(self.switches)
            for key in ("on", "off")
            for time in s.switch._times(key)
        ]
        due.sort()
        for s in self.switches:
            s.set(on=s.switch.on is None, locked=False)
        begun: list[float] = []
        while True:
            while due and due[0][0] <= self.t:
                _, on, k = due.pop(0)
                self.switches[k].set(on=on)
            self._settle()
            stop, events = min([end, *(time for time, *_ in due[:1])]), [*self.events, *self._triggers()]
            phase = self._integration(stop, events)
            phase.core.restore(
                {**self.state, "x": self.x, "start": self.t, "k": 0, "t": self.t, "shown": (self.t, self.x)},
                looks=True,
                anew=False,
            )
            inside = None if samples is None else samples[(samples >= self.t) & ((samples < stop) | (stop == end))]
            phase.go(inside, every, tolerances, progress, stop)
            engaged = [(s, s.A.copy(), s.at_parent) for s in self.switches if s.on and s.locked]
            self.phases.append((phase, engaged))
            self.state, by = phase.core.state, phase.core.ended_by
            begun.append(self.t)
            self.t, self.x = (self.state["shown"][0] if by is not None else stop), self.state["shown"][1]
            self.error = phase.error
            if (
                phase.error
                or phase.trajectory.status == "interrupted"
                or self.t >= end
                or (by is not None and by < len(self.events))
            ):
                break
            if len(begun) > MOST_CHANGES and self.t - begun[-MOST_CHANGES] < self.dt:
                names = ", ".join(dict.fromkeys(change["name"] for change in self.changes[-MOST_CHANGES:]))
                self.error = IntegrationError(
                    f"{names}: more than {MOST_CHANGES} changes within a step at t = {self.t:.9g} s", phase.trajectory
                )
                break
            if by is not None:
                events[by].act()
        self.simulated = self.t - start
        self.trajectory = self._merged(samples)
        if self.error is not None:
            self.error = IntegrationError(str(self.error), self.trajectory)

    def _integration(self, stop: float, events: list[Any]) -> Integration:
        """Return the integration of the next phase."""
        mine = {field.name: getattr(self.prepared.setup, field.name) for field in fields(Setup)} | {
            "mechanism": self.held
        }
        its = PhaseSetup(**mine, described=self.mechanism, load=tuple(self.load.tolist()) if self.load.any() else ())
        stepping = replace(self.stepping, start=self.t, duration=max(0.0, stop - self.t))
        phase = Integration(replace(self.prepared, setup=its), stepping, events)
        phase.every = self.every
        return phase

    # ---- states of the switches ---------------------------------------------------------------------------------------

    def _note(self, s: Engagement, change: str, impulse: Any = (), energy_lost: float = 0.0) -> None:
        row = {"time": float(self.t), "name": s.name, "change": change, "impulse": [float(x) for x in impulse]}
        self.changes.append(row | {"energy_lost": float(energy_lost)})

    def _settle(self) -> None:
        """Set the velocity after impulses, the state of each switch, and the mechanism and the load of the next phase."""
        nq, nv = self.mechanism.nq, self.mechanism.nv
        q, v, z = np.split(self.x, (nq, nq + nv))
        before = {s: (s.was, s.slides) for s in self.switches}
        engaging = [s for s in self.switches if s.on and not s.was]
        for s in engaging:
            s.lock(q)
        hard, soft = ([s for s in self.switches if s.on and s.limited == limited] for limited in (False, True))
        self.held = self._with(hard)
        if sudden := [s for s in engaging if not s.limited]:
            v = self._impact(q, v, sudden)
        for s in soft:
            efforts = np.stack([0.0 * v, s.capacity * s.A[0]])
            pushed, _ = self.mechanism.forward_dynamics(
                q, 0.0 * v, efforts, time=self.t, check=False, return_status=True
            )
            s.slowing, speed = float(np.nan_to_num(s.A[0] @ (pushed[1] - pushed[0]))), float(s.A[0] @ v)
            s.instant = INSTANT * self.dt * s.slowing
            # the speed of a rocker reverses at a dead centre, though no small impulse can stop it
            rounded = s.stopped or abs(speed) <= 1e-13 * float(np.abs(s.A[0]) @ np.abs(v))
            rests = abs(speed) <= (STOP * self.dt * s.slowing if rounded else s.instant)
            if rests and not s.locked:
                s.lock(q)
            s.set(stopped=False, locked=rests, slides=0.0 if rests else float(np.sign(speed)) or -s.slides)
        undecided = [s for s in self.switches if s.breaks]
        # principal pivoting, as for dry friction of joints: first all wrong states at once, then one at a time
        for change in range(MOST_CHANGES):
            self.held = self._with([s for s in self.switches if s.on and s.locked])
            self.load = sum((-s.slides * s.capacity * s.A[0] for s in soft), np.zeros(nv))
            if not undecided:
                break
            evaluated = self._integration(self.t, [])
            a, spare = self._reactions(evaluated, self.t, q, v, z)
            wrong = [
                s
                for s in undecided
                if (
                    spare[s][0] <= 0.0
                    if s.locked
                    else s.slides * (s.A[0] @ a) < -INSTANT * s.slowing - MARGIN * np.abs(a).max()
                )
            ]
            for s in wrong[: None if change < 5 else 1]:
                s.set(
                    on=s.limited,
                    locked=not s.locked,
                    slides=-float(np.sign(spare[s][1])) if s.locked and s.limited else 0.0,
                )
            undecided = [s for s in undecided if s.on]
            if not wrong:
                break
        else:
            names = ", ".join(s.name for s in undecided)
            raise StateError(f"{names}: no consistent states of rest and slipping were found at t = {self.t:.9g} s")
        if self.held.nc:
            v = self.held.impact(q, v, time=self.t)[0]
        self.x = np.concatenate([q, v, z])
        for s in self.switches:
            if s.limited and s.on and (s in engaging or s.slides != before[s][1]):
                self._note(s, "slips" if s.slides else "locks")
            if not s.on and (s in engaging or before[s][0]):
                s.set(locked=False, slides=0.0)
                self._note(s, "releases")
            s.was = s.on

    def _impact(self, q: Array, v: Array, engaging: list[Engagement]) -> Array:
        """Return the velocity after the impulses of locks without a capacity, of which some engage."""
        mechanism = self.held
        try:
            after, impulses = mechanism.impact(q, v, time=self.t)
        except StateError as error:
            names = ", ".join(s.name for s in engaging)
            raise StateError(f"{names}: cannot engage at t = {self.t:.9g} s: {error}") from None
        wrenches = dict(zip(mechanism.constraints, mechanism._loop_wrenches(q, impulses, time=self.t), strict=True))
        lost = -0.5 * impulses * (mechanism.constraint_jacobian(q) @ v)
        for s in engaging:
            rows = np.concatenate([np.arange(mechanism.nc)[mechanism.constraint(part).rows] for part in s.parts])
            self._note(s, "locks", impulses[rows] if s.rows else wrenches[s.name], lost[rows].sum())
        return after

    def _reactions(
        self, phase: Integration, t: float, q: Array, v: Array, z: Array
    ) -> tuple[Array, dict[Engagement, tuple[float, float]]]:
        """Return the acceleration (nv), and for each switch with a capacity the spare part of it, and the multiplier of its first row."""
        x, facts = np.concatenate([q, v, z])[None], setup.forces_of(phase.setup, phase.core, self.dt)
        run = setup.trajectory_of(phase.mechanism, np.array([t]), x, phase.core.counted, **facts)
        mechanism, tau = run._acting
        a, carried = mechanism.forward_dynamics(
            q, v, tau[0], wrenches=run._loads, time=t, check=False, return_reactions=True
        )
        spare = {}
        for s in (s for s in self.switches if s.breaks):
            rows = carried.multipliers[phase.mechanism.constraint(s.name).rows]
            spare[s] = s.spare(rows, carried.wrenches[s.name]), float(rows[0])
        return a, spare

    def _triggers(self) -> list[Trigger]:
        """Return the events that end the next phase."""
        triggers = []
        for s in self.switches:
            key = "off" if s.on else "on"
            if (when := s.switch._event(key)) is not None:
                event = when if isinstance(when, Event) else Event(when, f"{key} of {s.name}")
                triggers.append(Trigger(event._value, partial(s.set, on=not s.on), event.direction))
            if s.on and s.slides:
                triggers.append(Trigger(s.speed_from(self.x), partial(s.set, stopped=True)))
            if s.breaks:
                triggers.append(Trigger(partial(self._spare, s, self._integration(self.t, [])), list))
        return triggers

    def _spare(self, s: Engagement, phase: Integration, *state: Any) -> float:
        return self._reactions(phase, *state)[1][s][0]

    # ---- results ------------------------------------------------------------------------------------------------------

    @property
    def unreliable(self) -> bool:
        """True if the run failed, or its steps are too long."""
        return self.trajectory.status != "interrupted" and (self.error is not None or bool(self.fault))

    @cached_property
    def fault(self) -> str:
        """Message that the steps are too long, or ""; phases may be too short to be examined alone."""
        q, v = np.split(
            np.stack([self.begun_at, self.x])[:, : self.mechanism.nq + self.mechanism.nv], [self.mechanism.nq], axis=1
        )
        run, first = self.trajectory, self.phases[0][0].trajectory  # the first has the forces without those of switches
        whole = fault_of_steps(
            [(slice(None), self.prepared)], self._record(), run.q[None], run.v[None], lambda _: first, step=self.dt,
            steps=run.statistics["steps"], ends=(q[None], v[None]),
        )  # fmt: skip
        return next((phase.fault for phase, _ in self.phases if phase.fault), whole)

    def result(self) -> Trajectory:
        """Return the trajectory and issue its warnings, or raise the failure."""
        if self.error is not None:
            raise self.error
        q, v, _ = np.split(self.x[None], (self.mechanism.nq, self.mechanism.nq + self.mechanism.nv), axis=1)
        warn_of_runs([(slice(None), self.prepared)], self._record(), self.fault, (self.t, q, v, np.ones(1, dtype=bool)))
        return self.trajectory

    def _record(self) -> Record:
        """Return the record of all phases, in which impulses are a part of the work."""
        records = [phase.core.record for phase, _ in self.phases]
        parts = {name: np.stack([record[name] for record in records]) for name in records[0]}
        record = {name: x.sum(axis=0) if name in SUMMED else x.max(axis=0) for name, x in parts.items()}
        excess, left = parts["excess"], parts["left_at"]
        record["excess"] = np.take_along_axis(excess, np.abs(excess).argmax(axis=0)[None], axis=0)[0]
        record["left_at"] = np.where(excess != 0.0, left, np.inf).min(axis=0)
        record["supplied"] = record["supplied"] - sum(change["energy_lost"] for change in self.changes)
        return record

    def _merged(self, samples: Array | None) -> Trajectory:
        """Return the trajectory of the mechanism without switches, whose forces are efforts and wrenches."""
        runs, last = [phase.trajectory for phase, _ in self.phases], self.phases[-1][0].trajectory
        n = np.cumsum([0, *map(len, runs)])
        tau, wrenches = np.concatenate([run.tau for run in runs]), dict[str, Array]()
        for (phase, engaged), run, rows in zip(self.phases, runs, map(slice, n[:-1], n[1:]), strict=True):
            for s, A, at_parent in engaged:
                for part, row in zip(s.parts, A, strict=False):
                    tau[rows] += run.reactions.multipliers[:, phase.mechanism.constraint(part).rows] * row
                if s.rows:
                    continue
                # zero where forward dynamics has no result, as in the last state of a motion that diverges
                on_child, R = np.nan_to_num(run.reactions.wrenches[s.name]), at_parent.rotation
                moment, force = on_child[:, :3] @ R.T, on_child[:, 3:] @ R.T
                on_parent = np.hstack([-moment - np.cross(at_parent.translation, force), -force])
                for body, wrench in zip(s.bodies, (on_parent, on_child), strict=True):
                    wrenches.setdefault(body, np.zeros((n[-1], 6)))[rows] += wrench
        wrenches.pop("ground", None)
        t = np.concatenate([run.t for run in runs])
        keep = np.ones(len(t), dtype=bool)
        if samples is not None:  # without the ends of phases
            keep[:-1] = np.isin(t[:-1], samples) & (np.diff(t) > 0.0)

        def all_of(name: str) -> Any:
            parts = [getattr(run, name) for run in runs]
            return None if parts[0] is None else np.concatenate(parts)[keep]

        facts = {name: all_of(name) for name in ("internal_state", "loop_q", "a", "friction")}
        found = [run.events for run in runs]
        events = {event.name: np.concatenate([times[event.name] for times in found]) for event in self.events}
        status = "finished" if last.status == f"terminated: {Trigger.name}" else last.status
        return Trajectory(
            self.mechanism, t[keep], all_of("q"), all_of("v"), **facts, efforts=tau[keep], events=events, status=status,
            wrenches={body: wrench[keep] for body, wrench in wrenches.items()}, statistics=self._statistics([run.statistics for run in runs]),
            touching=runs[0].touching, on_planes=runs[0].on_planes,
        )  # fmt: skip

    def _statistics(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the statistics of all phases, and the changes of switches."""
        total = dict(parts[0])
        for part in parts[1:]:
            for key, value in part.items():
                if key == "contact":
                    total[key] = {name: max(x, value[name]) for name, x in total[key].items()}
                elif key in ("stiffness", "energy_eaten"):
                    total[key] = None if value is None else max(total[key], value)
                elif key not in ("method", "dt") and value is not None:
                    total[key] = total[key] + value
        return total | {"limits": self.prepared.limits.exceeded(self._record(), 0), "switches": self.changes}
