"""Identification without accelerations: short runs from measured states, under measured efforts, are to end where the machine did.

Gauss and Newton's method on base parameters. How runs change with a parameter comes from variants of the mechanism beside it, all runs of all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._arrays import Array, check_counts, checked_number, checked_truth
from ..analysis.independent_coordinates import velocity_names
from ..control.sampling import Efforts
from ..errors import ModelError
from ..mechanism import Mechanism, checked_mechanism
from ..simulation.sweep import simulate_many
from ..spatial import Inertia
from .consistent import consistent_parameters, with_volume
from .identify import Identification, check_states
from .model import Base, EffortModel, base_of
from .samples import Samples, checked_samples

FAR = 1e100  # [rad, m; per s] whose squares are numbers
STEP = 1e-4  # of a parameter's size, to either side: the runs' own rounding is far below its square
INSIDE = 1e-2  # weight of the divergence: variants beside must be bodies too


def identify_runs(
    robot: Mechanism, data: Samples, *, horizon: int = 20, terms: Mapping[str, Sequence[str]] | None = None,
    bodies: Sequence[str] | None = None, held_out: float = 0.2, hold: bool = True, steps: int = 1, iterations: int = 20, threads: int = 1,
) -> Identification:  # fmt: skip
    """Base parameters from positions, velocities and efforts: no accelerations are differentiated.

    The record is cut into runs of `horizon` samples, each simulated from its first state under the measured efforts; compared are the
    states at their ends, each coordinate of q and v weighted by what it is off by. Every motor of the mechanism must have efforts.

    Parameters
    ----------
    data : with `t`, evenly spaced
    horizon : samples in a run: long ones tell more of small parameters, until noise of their start and chaos grow in them
    terms, bodies, held_out : as :func:`identify`, without "offset"
    hold : whether a measured effort acts until the next sample; else they are joined by lines
    steps : steps of the simulation from one sample to the next
    iterations : of Gauss and Newton's at most
    threads : how many work on the runs

    Returns
    -------
    :class:`~sarrus.results.Identification`; its `noise` and `held_out` are of the 2 nv numbers of a state, displacements then velocities

    Raises
    ------
    ModelError
        No times, or a record shorter than four runs; an offset is asked for; or the runs fail: shorter ones, more steps.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> from sarrus.identification import Samples, identify_runs
    >>> robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> t, u = np.arange(400) / 100, 3 * np.sin(np.arange(400) / 8)[:, None]
    >>> run = sarrus.simulate(robot, [0.2], [0.0], 3.99, sarrus.control.Efforts(t, u, ["pivot"]), dt=0.01)
    >>> guess = robot.replace(inertias={"bob": sarrus.Inertia.from_points([1.5], [(0, 0, -0.5)])})
    >>> found = identify_runs(guess, Samples({"pivot": u}, run.q, run.v, t=t))
    >>> dict(zip(found.names, found.values.round(6).tolist()))["bob.mz"]  # -m l [kg m]
    -1.0
    """
    checked_mechanism(robot, "robot")
    checked_samples(data)
    check_counts(horizon=horizon, steps=steps, iterations=iterations, threads=threads)
    held_out, hold = checked_number("held_out", held_out, ""), checked_truth("hold", hold)
    if not 0.0 <= held_out <= 0.5:
        raise ValueError(f"held_out must be from 0 to 0.5, a part of the runs; got {held_out!r}")
    if data.t is None or len(data) < 4 * horizon + 1:
        raise ModelError(f"runs need times, and four runs of {horizon} samples at the least; got {len(data)} samples")
    model = EffortModel(robot, tuple(data.efforts), terms, bodies)
    if any(term == "offset" for term, _, _ in model.terms):
        raise ModelError("an offset of the efforts is identified from accelerations: identify(), or subtract it")
    check_states(model.robot, data)
    still = Samples(data.efforts, data.q, data.v, np.zeros_like(data.v), data.t)
    base = base_of(model, still)
    runs = _Runs(model, data, horizon, hold, steps, threads)
    fitted = np.floor((np.arange(len(runs)) + 1) * held_out + 1e-9) == np.floor(np.arange(len(runs)) * held_out + 1e-9)
    n = 10 * len(model.bodies)
    units = model.units
    start = model.values / units
    start[:n] = with_volume(start[:n].reshape(-1, 10)).ravel()
    nominal = base.combination @ model.values
    size = np.maximum(np.abs(base.combination) @ np.abs(units * start), 1e-3 * units[base.kept])
    start[n:] = np.maximum(start[n:], 1e-2)  # of a friction that was none
    start = units * start
    least = 1e-13 * np.concatenate([model.turn, model.rate * model.turn])
    at, before, weight = start, np.inf, np.ones(2 * robot.nv)
    signed = np.zeros(len(model.terms), bool)
    for _ in range(iterations):
        off, slopes = runs.compared(at, base, STEP * size)
        noise = np.maximum(np.sqrt(np.mean(off[fitted] ** 2, axis=0)), least)
        cost = float(np.sum(np.log(noise)))
        weight = 1.0 / noise
        J, r = (slopes * weight[:, None])[fitted].reshape(-1, len(size)), (off * weight)[fitted].ravel()
        scale = 1.0 / np.maximum(np.linalg.norm(J, axis=0), 1e-300)
        U, s, Vt = np.linalg.svd(J * scale, full_matrices=False)
        good = s > 1e-8 * s[0]
        change = -scale * (Vt[good].T @ ((U[:, good].T @ r) / s[good]))
        root = (s[good, None] * Vt[good]) / scale
        now = base.combination @ at
        values, told = now + change, np.sqrt(np.sum((root @ change) ** 2))
        at = units * consistent_parameters(
            base.combination * units, values, root, start / units, len(model.bodies), signed, INSIDE
        )
        if told < 1e-3 or abs(before - cost) < 1e-6:
            break
        before = cost
    covariance = (scale[:, None] * Vt[good].T / s[good] ** 2) @ Vt[good] * scale
    deviations = np.where((np.abs(Vt[~good]) > 1e-6).any(axis=0), np.inf, np.sqrt(np.diag(covariance)))
    left = runs.compared(at, base, None)[0]
    out = np.sqrt(np.mean(left[~fitted] ** 2, axis=0)) if not fitted.all() else np.full(len(noise), np.nan)
    names = velocity_names(robot)
    measured = (*(f"{name} at the end" for name in names), *(f"rate of {name}" for name in names))
    return Identification(
        base.expressions(model.names, units), values, deviations, nominal, covariance, measured, np.sqrt(np.mean(left[fitted] ** 2, axis=0)), out,
        float(s[0] / s[-1]), tuple(model.names[i] for i in base.unseen), (), model.names, at,
        float(np.linalg.norm(root @ (base.combination @ at - values))), model, base, robot,
    )  # fmt: skip


class _Runs:
    """The record, cut."""

    def __init__(self, model: EffortModel, data: Samples, horizon: int, hold: bool, steps: int, threads: int) -> None:
        assert data.t is not None
        self.model, self.hold, self.steps, self.threads = model, hold, steps, threads
        self.joints, u = model.robot.actuated, model.measured(data)
        self.first = np.arange(0, len(data) - horizon, horizon)
        self.last = self.first + horizon
        self.q, self.v = (np.stack([x[self.first], x[self.last]]) for x in (data.q, data.v))
        self.times = data.t[: horizon + 1] - data.t[0]
        self.u = u[self.first[:, None] + np.arange(horizon + 1)]
        self.robot = model.robot

    def __len__(self) -> int:
        return len(self.first)

    def compared(self, parameters: Array, base: Base, steps: Array | None) -> tuple[Array, Array]:
        """How far runs end from where the machine did (runs, 2 nv), and by base parameters (runs, 2 nv, k) unless steps is None."""
        k = 0 if steps is None else len(steps)
        every = np.repeat(parameters[None], 2 * k + 1, axis=0)
        for i in range(k):
            every[1 + 2 * i, base.kept[i]] += steps[i]  # type: ignore[index]
            every[2 + 2 * i, base.kept[i]] -= steps[i]  # type: ignore[index]
        ends = self._off(every)
        if steps is None:
            return ends[0], np.zeros((*ends.shape[1:], 0))
        return ends[0], np.stack([(ends[1 + 2 * i] - ends[2 + 2 * i]) / (2 * steps[i]) for i in range(k)], axis=-1)

    def _off(self, parameters: Array) -> Array:
        """(variants, runs, 2 nv)."""
        model, count = self.model, len(self)
        changes: dict[str, Any] = {"inertias": {}}
        n = 10 * len(model.bodies)
        for i, body in enumerate(model.bodies):
            # a step beside a body without thickness is none that can be, and serves as well
            each = parameters[:, 10 * i : 10 * i + 10]
            changes["inertias"][body] = [Inertia.from_parameters(x, check=False) for x in each]
        for (term, joint, k), x in zip(model.terms, parameters[:, n:].T, strict=True):
            kind = model.robot.joint(joint).type
            numbers = np.tile(np.broadcast_to(getattr(kind, term), kind.nv), (len(parameters), 1))
            changes.setdefault(term, {}).setdefault(joint, numbers)[:, k] = x
        many = self.robot.variants(**changes)._of_rows(np.repeat(np.arange(len(parameters)), count))
        q, v, u = (np.tile(x, (len(parameters), *[1] * (x.ndim - 1))) for x in (self.q[0], self.v[0], self.u))
        period = self.times[-1] / (len(self.times) - 1)
        runs = simulate_many(
            many, q, v, float(self.times[-1]), Efforts(self.times, u, list(self.joints), hold=self.hold), dt=period / self.steps,
            every=10**9, limits="ignore", threads=self.threads,
        )  # fmt: skip
        if np.any(runs.status):
            raise ModelError(
                f"{int(np.count_nonzero(runs.status))} of {runs.status.size} runs fail: take a shorter horizon, or more steps"
            )
        if not max(np.abs(runs.q).max(), np.abs(runs.v).max()) < FAR:
            raise ModelError("runs end beyond all bounds: take a shorter horizon, or more steps")
        shape = (len(parameters), count, -1)
        q1, v1 = runs.q[:, -1].reshape(*shape), runs.v[:, -1].reshape(*shape)
        return np.concatenate(
            [self.robot.difference(np.broadcast_to(self.q[1], q1.shape), q1), v1 - self.v[1]], axis=-1
        )
