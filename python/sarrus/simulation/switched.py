"""Simulation in phases, between which clutches, locks and welds engage, slip or release.

In a phase, the engaged constraints are rows of the mechanism, and slipping ones apply constant forces. Between phases, velocities change by the impulse
of the rows that engage: M (v⁺ - v⁻) = Jᵀ Λ, J v⁺ = c (:meth:`~sarrus.Mechanism.impact`), which loses the energy -Λᵀ J v⁻ / 2.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike
from .._deferred import dataclass
from ..control.switches import Clutch, Weld
from ..description.joints import Fixed
from ..errors import IntegrationError, ModelError, StateError
from ..mechanism import Mechanism
from ..spatial import Transform
from . import setup
from .setup import Prepared, Setup, Stepping
from .simulate import Event, Integration, sample_times
from .trajectory import Trajectory

EXCEEDED = 2e-12  # relative excess of a reaction over a capacity at which a phase ends; the core's tolerance of brakes at rest is smaller
INSTANT = 1e-9  # part of a step in which a brake can stop a motion at rounding level
JUMP = 1e-12  # relative change of velocities at the start beyond rounding, which is an impulse
MOST_CHANGES = 50  # largest number of phases that begin within one step
SUMMED = (
    "energy_eaten",
    "supplied",
    "apart",
    "pushed",
    "as_touching",
    "linearly_implicit",
)  # entries of a record that are sums over the steps


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
    parts, rows, A : names of its constraints, their terms {coordinate: coefficient}, and the coefficients (rows, nv); no rows for a weld
    on, locked, slides : True if it is engaged; True if it is engaged and does not slip; direction of slipping, 1 or -1, or 0
    limited : True if it slips at its capacity
    """

    on = was = locked = stopped = False
    slides = was_sliding = instant = 0.0
    at_parent, bodies = Transform(), ("", "")
    A: Array

    def __init__(self, switch: Any, mechanism: Mechanism) -> None:
        self.switch, self.capacity = switch, np.array(switch.capacity)
        self.name = switch.name or switch._label
        self.rows: list[dict[Any, float]] = []
        if isinstance(switch, Clutch):
            self.rows = [{switch.first: 1.0, switch.second: -switch.ratio}]
        elif isinstance(switch, Weld):
            self.bodies = switch.parent, switch.child
        else:
            joint = mechanism.joint(switch.joint)
            self.bodies = joint.parent, joint.child
            if not joint.closes_loop and all(joint.type.rates):
                self.rows = [{(switch.joint, k): 1.0} for k in range(joint.type.nq)]
            limited = np.isfinite(switch.capacity)
            if joint.type.holds_nothing or (limited and len(self.rows) != 1):
                expected = "a tree joint with one coordinate, which a capacity requires" if limited else "a rigid joint"
                raise ModelError(f"{self.name}: expected {expected}, got the {joint.type.kind} '{joint.name}'")
        self.limited = bool(self.rows) and bool(np.isfinite(self.capacity))
        self.parts = [f"{self.name}[{k}]" if k else self.name for k in range(max(1, len(self.rows)))]
        self.offsets = np.zeros(len(self.rows))

    def add_to(self, builder: Any) -> None:
        """Add the constraints to a builder."""
        for name, row, offset in zip(self.parts, self.rows, self.offsets, strict=False):
            builder.add_coupler(name, row, offset=float(offset))
        if not self.rows:
            builder.add_joint(self.name, Fixed(), *self.bodies, at_parent=self.at_parent, loop=True)

    def speed(self, offset: float, t: float, q: Array, v: Array, z: Array) -> float:
        """Return the speed of slipping plus a small offset; it is negative if the direction has changed."""
        return float(self.slides * (self.A[0] @ v) + 1e-14 * np.abs(v).max()) + offset

    def set(self, **state: Any) -> None:
        vars(self).update(state)

    @property
    def breaks(self) -> bool:
        """True if it is locked and has a capacity."""
        return self.locked and bool(np.isfinite(self.capacity).any())


class SwitchedIntegration(Integration):
    """Run in phases: an integration of the mechanism without switches, which is continued by integrations with engaged switches."""

    def __init__(self, prepared: Prepared, stepping: Stepping, events: list[Event], switches: list[Any]) -> None:
        super().__init__(prepared, stepping, events)
        self.switches = [Engagement(switch, self.mechanism) for switch in switches]
        self.changes: list[dict[str, Any]] = []
        self.work_of_impulses, self.jumped = 0.0, False
        self.phases: list[tuple[Integration, list[Any]]] = []
        names = [s.name for s in self.switches]
        if doubled := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two switches are named '{doubled[0]}'; names must be unique: pass name=")
        if taken := [name for name in names if name in (*self.mechanism.joints, *self.mechanism.constraints)]:
            raise ValueError(f"a switch has the name of a joint or a constraint, '{taken[0]}'; expected another name=")
        # with the rows of all switches; it raises the errors of their arguments
        self.whole = self._with(self.switches)
        J = self.whole.constraint_jacobian(self.whole.neutral())
        for s in self.switches:
            s.A = J[self._rows(self.whole, s)] if s.rows else J[:0]

    def _with(self, switches: list[Engagement]) -> Mechanism:
        """Return the mechanism with the constraints of switches."""
        mechanism: Mechanism = self.mechanism
        if not switches:
            return mechanism
        builder = mechanism.to_builder()
        for s in switches:
            s.add_to(builder)
        d, tree = builder._described(), set(mechanism.joints)
        joints = [replace(j, tree=j.name in tree, loop=j.name not in tree) for j in d.joints]
        substructures = mechanism._substructures if mechanism._solver[2] else 0
        made = Mechanism(replace(d, joints=tuple(joints)), substructures=substructures)
        vars(made)["_may_touch"] = mechanism._may_touch  # contacts have the numbers of these pairs
        return made

    @staticmethod
    def _rows(mechanism: Mechanism, s: Engagement) -> Array:
        return np.concatenate([np.arange(mechanism.nc)[mechanism.constraint(part).rows] for part in s.parts])

    def _lock(self, s: Engagement, q: Array) -> None:
        """Lock a switch at the configuration q."""
        if s.rows:
            s.offsets = self.whole.constraint_residual(q, time=self.t)[self._rows(self.whole, s)]
        else:
            parent, child = (Transform.from_matrix(self.mechanism.pose(q, body)) for body in s.bodies)
            s.at_parent = parent.inverse() @ child
        s.set(locked=True, slides=0.0)

    def go(
        self,
        times: ArrayLike | None,
        every: int,
        tolerances: tuple[float, ...],
        progress: bool,
        end: float | None = None,
    ) -> None:
        """Run all phases."""
        begun_at, began, start = self.core.state["x"], clock.perf_counter(), self.stepping.start
        self.t, self.x, self.state, self.dt = start, begun_at, self.core.state, self.stepping.dt / self.every
        end = start + self.stepping.duration
        samples = None if times is None else sample_times(times, start, end)
        keys = [(s, key) for s in self.switches for key in ("off", "on")]
        due = sorted(((t, key, s) for s, key in keys for t in s.switch._times(key)), key=lambda change: change[:2])
        for s in self.switches:
            s.set(on=s.switch.on is None)
        begun: list[float] = []
        while self.error is None:
            while due and due[0][0] <= self.t:
                _, key, s = due.pop(0)
                s.set(on=key == "on")
            self._settle()
            if not begun:
                self._add_start(begun_at, every, tolerances)
            begun.append(self.t)
            stop, events = min([end, *(change[0] for change in due[:1])]), [*self.events, *self._triggers()]
            phase = self._phase(self.held, self.load, events, stop)
            state = {"x": self.x, "start": self.t, "k": 0, "t": self.t, "shown": (self.t, self.x)}
            phase.core.restore(self.state | state, looks=True, anew=False)
            inside = None if samples is None else samples[(samples >= self.t) & ((samples < stop) | (stop == end))]
            phase.go(inside, every, tolerances, progress, stop)
            self.phases.append((phase, [(s, s.at_parent) for s in self.switches if s.on and s.locked]))
            self.state, by, self.error = phase.core.state, phase.core.ended_by, phase.error
            self.t, self.x = (stop if by is None else self.state["shown"][0]), self.state["shown"][1]
            if phase.trajectory.status == "interrupted" or self.t >= end or (by is not None and by < len(self.events)):
                break
            if len(begun) > MOST_CHANGES and self.t - begun[-MOST_CHANGES] < self.dt:
                names = ", ".join(dict.fromkeys(change["name"] for change in self.changes[-MOST_CHANGES:]))
                fault = f"{names}: more than {MOST_CHANGES} changes within a step at t = {self.t:.9g} s"
                self.error = IntegrationError(fault, phase.trajectory)
            if by is not None and self.error is None:
                events[by].act()
        self.simulated = self.t - start
        self._merge(samples, clock.perf_counter() - began)
        if self.error is not None:
            self.error = IntegrationError(str(self.error), self.trajectory)
        else:
            self.fault = next((phase.fault for phase, _ in self.phases if phase.fault), "") or self._fault(begun_at)

    def _add_start(self, x: Array, every: int, tolerances: tuple[float, ...]) -> None:
        """Add a phase without duration, with the state before the impulses at the start, if there are any."""
        (_, before, _), (_, v, _) = (np.split(state, self.split) for state in (x, self.x))
        self.jumped = bool(np.abs(v - before).max(initial=0.0) > JUMP * np.abs(before).max(initial=0.0))
        if not self.jumped:
            return
        phase = self._phase(self.mechanism, np.zeros_like(self.load), self.events, self.t)
        phase.core.restore(
            self.state | {"x": x, "start": self.t, "k": 0, "t": self.t, "shown": (self.t, x)}, looks=True, anew=False
        )
        phase.go(None, every, tolerances, False, self.t)
        self.phases.append((phase, []))

    def _phase(self, mechanism: Mechanism, load: Array, events: list[Any], stop: float) -> Integration:
        """Return the integration of a phase that begins now."""
        numbers = tuple(load.tolist()) if load.any() else ()
        its = PhaseSetup(**vars(self.setup) | {"mechanism": mechanism}, described=self.mechanism, load=numbers)
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
        q, v, z = np.split(self.x, self.split)
        before = self.mechanism.kinetic_energy(q, v)
        engaging = [s for s in self.switches if s.on and not s.was]
        for s in engaging:
            self._lock(s, q)
        hard, soft = ([s for s in self.switches if s.on and s.limited == limited] for limited in (False, True))
        self.held = self._with(hard)
        if sudden := [s for s in engaging if not s.limited]:
            v = self._impact(q, v, sudden)
        if soft:
            self._decide(soft, q, v, z)
        self.load = sum((-s.slides * s.capacity * s.A[0] for s in soft), np.zeros(len(v)))
        self.evaluated = self._phase(self.held, self.load, [], self.t)
        self.held = self._with([*hard, *(s for s in soft if s.locked)])
        if self.held.nc:
            v = self.held.impact(q, v, time=self.t)[0]
        self.work_of_impulses += float(self.mechanism.kinetic_energy(q, v) - before)
        self.x = np.concatenate([q, v, z])
        for s in self.switches:
            if s.limited and s.on and (s in engaging or s.slides != s.was_sliding):
                self._note(s, "slips" if s.slides else "locks")
            if s.was and not s.on:
                self._note(s, "releases")
            s.set(was=s.on, was_sliding=s.slides, locked=s.locked and s.on)
        if weak := [s for s, spare in self._spare(self.t, q, v, z).items() if not s.limited and spare <= 0.0]:
            for s in weak:
                s.set(on=False)
            self._settle()

    def _impact(self, q: Array, v: Array, engaging: list[Engagement]) -> Array:
        """Return the velocity after the impulses of locks without a capacity, of which some engage."""
        try:
            after, impulses = self.held.impact(q, v, time=self.t)
        except StateError as error:
            names = ", ".join(s.name for s in engaging)
            raise StateError(f"{names}: cannot engage at t = {self.t:.9g} s: {error}") from None
        wrenches = dict(zip(self.held.constraints, self.held._loop_wrenches(q, impulses, time=self.t), strict=True))
        lost = -0.5 * impulses * (self.held.constraint_jacobian(q, time=self.t) @ v)
        for s in engaging:
            rows = self._rows(self.held, s)
            self._note(s, "locks", impulses[rows] if s.rows else wrenches[s.name], lost[rows].sum())
        return after

    def _decide(self, soft: list[Engagement], q: Array, v: Array, z: Array) -> None:
        """Set which switches with capacities are at rest, and the directions in which the others slip.

        At a dead centre, the speed of a rocker is zero as well, but its acceleration exceeds what a brake can prevent.
        """
        brakes = self._brakes(self._phase(self.held, 0.0 * v, [], self.t), soft, self.t, q, v, z)
        speeds, instant = brakes.A @ v, INSTANT * self.dt * brakes.reference
        rests = np.abs(speeds) <= np.maximum(instant, 1e-13 * np.abs(brakes.A) @ np.abs(v))
        rests |= np.array([s.stopped for s in soft])
        slides = np.where(rests, 0.0, np.sign(speeds))
        r, capacity = brakes.r - brakes.W @ (slides * brakes.capacity), brakes.capacity[rests]
        slides[rests], _ = _core.brakes_at_rest(brakes.W[np.ix_(rests, rests)], r[rests], capacity)
        for s, slide, one_instant in zip(soft, slides.tolist(), instant.tolist(), strict=True):
            if not (slide or s.locked):
                self._lock(s, q)
            s.set(stopped=False, locked=slide == 0.0, slides=slide, instant=one_instant)

    def _brakes(self, phase: Integration, soft: list[Engagement], t: float, q: Array, v: Array, z: Array) -> Any:
        """Return the data of switches with capacities in a phase without them.

        W = A M⁻¹ Aᵀ maps their forces to accelerations, r = A a without these forces; `reference` is the acceleration that the capacity causes in the
        tree without loops; move(efforts) is forward dynamics with the efforts tau of all other forces.
        """
        x = np.concatenate([q, v, z])[None]
        facts = setup.forces_of(phase.setup, phase.core, self.dt, functions=phase.pushing)
        run = setup.trajectory_of(phase.mechanism, np.array([t]), x, phase.core.counted, **facts)
        mechanism, tau = run._acting
        A = np.array([s.A[0] for s in soft]).reshape(len(soft), len(v))
        move = partial(mechanism.forward_dynamics, q, v, wrenches=run._loads, time=t, check=False)
        a = move(tau[0] + np.vstack([0.0 * v, A]))
        if not np.isfinite(a).all():
            raise StateError(f"capacities of clutches and locks: forward dynamics has no result at t = {t:.9g} s")
        capacity, inertia = (
            np.array([s.capacity for s in soft]),
            np.einsum("ij,jk,ik->i", A, self.mechanism.mass_matrix(q), A),
        )
        reference = np.divide(capacity * np.sum(A**2, axis=1) ** 2, inertia, out=0.0 * inertia, where=inertia > 0.0)
        # accelerations at rounding level are zero, as those of joints that loops or locks without a capacity hold
        r = A @ a[0]
        r[np.abs(r) <= 1e-12 * (reference + np.abs(a[0]).max())] = 0.0
        return SimpleNamespace(
            A=A, capacity=capacity, reference=reference, W=(a[1:] - a[0]) @ A.T, r=r, move=move, tau=tau[0]
        )

    def _spare(self, t: float, q: Array, v: Array, z: Array) -> dict[Engagement, float]:
        """Return the part of the capacity that reactions leave of each locked switch; negative if a reaction exceeds the capacity."""
        held = [s for s in self.switches if s.breaks]
        if not held:
            return {}
        resting = [s for s in held if s.limited]
        brakes = self._brakes(self.evaluated, resting, t, q, v, z)
        _, force = _core.brakes_at_rest(brakes.W, brakes.r, brakes.capacity)
        loads: dict[Engagement, Any] = dict(zip(resting, np.abs(force), strict=True))
        if len(held) > len(resting):
            _, carried = brakes.move(brakes.tau + force @ brakes.A, return_reactions=True)
            loads |= {s: np.linalg.norm(carried.wrenches[s.name].reshape(2, 3), axis=1) for s in held if not s.limited}
        return {s: float(1.0 + EXCEEDED - np.max(load / s.capacity)) for s, load in loads.items()}

    def _triggers(self) -> list[Trigger]:
        """Return the events that end the next phase."""
        triggers, v = [], np.split(self.x, self.split)[1]
        for s in self.switches:
            key = "off" if s.on else "on"
            if (when := s.switch._event(key)) is not None:
                event = when if isinstance(when, Event) else Event(when, f"{key} of {s.name}")
                triggers.append(Trigger(event._value, partial(s.set, on=not s.on), event.direction))
            if s.on and s.slides:
                # an offset makes the speed positive at a start from rest, where it is at rounding level
                speed = float(abs(s.A[0] @ v))
                offset = 1e-14 * speed + (1e-5 if speed > s.instant else 0.1) * s.instant
                triggers.append(Trigger(partial(s.speed, offset), partial(s.set, stopped=True)))
        if any(s.breaks for s in self.switches):
            triggers.append(Trigger(lambda *state: min(self._spare(*state).values()), list))
        return triggers

    # ---- results ------------------------------------------------------------------------------------------------------

    def _merge(self, samples: Array | None, seconds: float) -> None:
        """Set the trajectory of the mechanism without switches, whose forces are efforts and wrenches, and the data of all phases."""
        phases, runs = [phase for phase, _ in self.phases], [phase.trajectory for phase, _ in self.phases]
        self.first, (n, t) = runs[0], (np.cumsum([0, *map(len, runs)]), np.concatenate([run.t for run in runs]))
        tau, wrenches, pushes = np.concatenate([run.tau for run in runs]), dict[str, Array](), dict[str, Array]()
        for (phase, engaged), run, rows in zip(self.phases, runs, map(slice, n[:-1], n[1:]), strict=True):
            for frame, wrench in run._pushes.items():
                pushes.setdefault(frame, np.zeros((n[-1], 6)))[rows] = wrench
            for frame, wrench in run.wrenches.items():
                wrenches.setdefault(frame, np.zeros((n[-1], 6)))[rows] = wrench
            for s, at_parent in engaged:
                if s.rows:
                    tau[rows] += run.reactions.multipliers[:, self._rows(phase.mechanism, s)] @ s.A
                    continue
                # zero where forward dynamics has no result, as in the last state of a motion that diverges
                on_child, R = np.nan_to_num(run.reactions.wrenches[s.name]), at_parent.rotation
                moment, force = on_child[:, :3] @ R.T, on_child[:, 3:] @ R.T
                on_parent = np.hstack([-moment - np.cross(at_parent.translation, force), -force])
                for body, wrench in zip(s.bodies, (on_parent, on_child), strict=True):
                    wrenches.setdefault(body, np.zeros((n[-1], 6)))[rows] += wrench
        wrenches.pop("ground", None)
        keep = np.ones(len(t), dtype=bool)
        status = "finished" if runs[-1].status == f"terminated: {Trigger.name}" else runs[-1].status
        if samples is not None:  # without the ends of phases; with the end of a run that an event or an error ended
            keep = np.isin(t, samples) & np.append(np.diff(t) > 0.0, True)
            if self.jumped:  # the sample at the start is the given state
                keep[t == t[0]], keep[0] = False, t[0] in samples
            keep[-1] |= status != "finished"
        named = {
            name: [getattr(run, name) for run in runs]
            for name in ("q", "v", "internal_state", "loop_q", "a", "friction")
        }
        arrays: dict[str, Any] = {name: None if x[0] is None else np.concatenate(x)[keep] for name, x in named.items()}
        counts = {name: sum(phase.core.counts[name] for phase in phases) for name in phases[0].core.counts}
        self.core = SimpleNamespace(
            record=self._record(phases), counts=counts, state=self.state | {"shown": (self.t, self.x)}
        )
        self.trajectory = Trajectory(
            self.mechanism, t[keep], **arrays, efforts=tau[keep], wrenches={body: wrench[keep] for body, wrench in wrenches.items()},
            pushes={frame: wrench[keep] for frame, wrench in pushes.items()},
            events={event.name: np.concatenate([run.events[event.name] for run in runs]) for event in self.events},
            status=status, statistics=self._statistics(seconds) | {"switches": self.changes}, touching=self.first.touching, on_planes=self.first.on_planes,
        )  # fmt: skip

    def _record(self, phases: list[Integration]) -> dict[str, Array]:
        """Return the record of all phases, with the energy of impulses as a part of the work."""
        records = [phase.core.record for phase in phases]
        parts = {name: np.stack([record[name] for record in records]) for name in records[0]}
        record = {name: x.sum(axis=0) if name in SUMMED else x.max(axis=0) for name, x in parts.items()}
        excess, left = parts["excess"], parts["left_at"]
        record["excess"] = np.take_along_axis(excess, np.abs(excess).argmax(axis=0)[None], axis=0)[0]
        record["left_at"] = np.where(excess != 0.0, left, np.inf).min(axis=0)
        record["supplied"] = record["supplied"] + self.work_of_impulses
        return record
