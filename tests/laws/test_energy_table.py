"""Energy of random mechanisms for every method at its default step: conserved, or reported by a warning.

``python -m tests.laws.test_energy_table`` prints the table of 200 mechanisms; ``--methods rk4,contact``, ``--seeds 0:50``.
"""

import argparse
import dataclasses
import os
import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest

import sarrus
from sarrus import control
from sarrus.description import SpringSpec
from tests.random_closed import random_closed
from tests.random_mechanisms import random_mechanism, random_state

SEEDS = range(200 if "SARRUS_SOAK" in os.environ else 6)
METHODS = [name for name, facts in sarrus._core.methods.items()]
ALLOWED = {1: 1e-2, 2: 1e-3}  # of the largest kinetic energy, by methods of first order, and of second or more


class Case(NamedTuple):
    robot: sarrus.Mechanism
    q: np.ndarray
    v: np.ndarray
    time: float
    acts: list
    touches: list  # bodies, spheres of 0.1 m around their origins, and the height of the ground


def case(seed):
    """Return a mechanism of 1 to 12 bodies, half of them with loops, a third in contact, with springs, dampers, friction and PD control."""
    rng = np.random.default_rng([seed, 7])
    bodies, loops = int(rng.integers(1, 13)), seed % 2 == 1
    options = {"friction": rng.random() < 0.3, "armature": rng.random() < 0.3, "springs": rng.random() < 0.3}
    if loops:
        closed = random_closed(seed, bodies=max(bodies, 2), loops=int(rng.integers(1, 3)), **options)
        robot, q, v, time = closed.robot, closed.q, closed.v, closed.time
    else:
        robot = random_mechanism(seed, bodies=bodies, **options)
        q, v, _ = random_state(robot, rng)
        time = 0.0
    d = robot.description
    if seed % 3 == 0:
        d = dataclasses.replace(d, gravity=(0.0, 0.0, -9.81))
    springs = []
    names = ["ground", *(body.name for body in d.bodies)]
    for k in range(int(rng.integers(0, 3))):
        first, second = rng.permutation(names)[:2]
        ends = [(str(name), tuple(rng.normal(size=3) * 0.3)) for name in (first, second)]
        stiffness = 10.0 ** rng.uniform(0.0, 7.0)
        damping = rng.choice([0.0, rng.uniform(0.0, 2.0) * np.sqrt(stiffness)])
        length = np.linalg.norm(np.subtract(*(place(robot, q, *end) for end in ends)))
        springs.append(SpringSpec(f"spring{k}", *ends, stiffness, float(length), float(damping)))
    d = dataclasses.replace(d, springs=(*d.springs, *springs))
    robot = sarrus.Mechanism(d)
    one = [name for name in robot.joints if robot.joint(name).type.nv == 1]
    acts = [
        control.PID(name, rng.uniform(1.0, 50.0), 0.0, rng.uniform(0.0, 5.0), target=rng.normal()) for name in one[:2]
    ]
    touches = []
    if seed % 3 == 0:
        bodies = [str(name) for name in rng.permutation(names[1:])[:3]]
        height = min(place(robot, q, name, (0.0, 0.0, 0.0))[2] for name in bodies) - rng.uniform(0.1, 0.3)
        touches = [(name, height) for name in bodies]
    return Case(robot, q, v, time, acts, touches)


def place(robot, q, body, point):
    if body == "ground":
        return np.asarray(point)
    pose = robot.pose(q, body)
    return pose[:3, :3] @ point + pose[:3, 3]


def soft_ground(name, **options):
    """Return ground that explicit steps resolve."""
    return control.CompliantContact(name, stiffness=1e3, slip_velocity=0.1, **options)


class Outcome(NamedTuple):
    off: float  # of the balance, as a share of the largest kinetic energy
    measured: float  # how far the work that steps have added up is from that by the powers in states, likewise; NaN where these do not resolve it
    warned: bool
    error: str


def outcome(seed, method, duration=1.0):
    c = case(seed)
    ground = {
        "contact": control.RigidContact,
        "rosenbrock": control.CompliantContact,
        "implicit_midpoint": control.CompliantContact,
    }.get(method, soft_ground)
    acts = [*c.acts, *(ground(name, radius=0.1, offset=float(height)) for name, height in c.touches)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            run = sarrus.simulate(c.robot, c.q, c.v, duration, acts, method=method, start=c.time)
        except sarrus.SarrusError as error:
            return Outcome(np.nan, np.nan, False, f"{type(error).__name__}: {error}")
    warned = any(w.category is sarrus.StiffnessWarning for w in said)
    largest = run.kinetic_energy.max()
    change = run.energy[-1] - run.energy[0]
    measured = np.nan if method == "contact" and c.touches else apart(run) / largest
    off = max(abs(change - run.statistics["work"]) - run.statistics["work_known_to"], 0.0)
    return Outcome(off / largest, measured, warned, "")


def apart(run):
    """Return the difference of a run's work and the integral of the powers in its states, by Simpson's rule; NaN if this is not resolved."""
    robot, h, t = run.mechanism, 1e-6, run.t
    energy = []
    for by in (h, -h):
        q = robot.integrate(run.q, by * (run.v + by / 2 * run.a))
        energy.append(robot.kinetic_energy(q, run.v + by * run.a) + robot.potential_energy(q))
    power = (energy[0] - energy[1]) / (2.0 * h)
    if len(t) % 2 == 0 or np.ptp(np.diff(t)) > 1e-9:
        return np.nan
    simpson = (t[1] - t[0]) / 3 * (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1])
    coarse = 2 * (t[1] - t[0]) * (power[::2].sum() - 0.5 * (power[0] + power[-1]))
    off = abs(run.statistics["work"] - simpson)
    return off if abs(coarse - simpson) < 1e-3 * run.kinetic_energy.max() else np.nan


def limit(method):
    return ALLOWED[min(sarrus._core.methods[method].order, 2)]


@pytest.mark.parametrize("method", METHODS)
def test_energy_is_balanced_or_a_warning_is_given(method):
    for seed in SEEDS:
        got = outcome(seed, method)
        assert got.error or got.warned or got.off < limit(method), (seed, got)


@pytest.mark.parametrize("seed", [60, 100])
def test_forces_that_overflow_are_errors_though_friction_stops_the_motion(seed):
    """The state was finite, at rest and 1e14 m away, and the work NaN: nothing reported it."""
    got = outcome(seed, "euler")
    assert got.error or got.off < limit("euler"), got


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0:200")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    first, last = map(int, given.seeds.split(":"))
    print(f"{'method':20}{'silent':>8}{'warned':>8}{'errors':>8}{'right':>8}{'measured otherwise':>20}", flush=True)
    for method in given.methods.split(","):
        counts, seen = Counter(), []
        for seed in range(first, last):
            got = outcome(seed, method)
            kind = (
                "errors"
                if got.error
                else "warned"
                if got.warned
                else "silent"
                if not got.off < limit(method)
                else "right"
            )
            counts[kind] += 1
            counts["measured"] += got.measured > limit(method) and not got.warned
            if kind in ("errors", "silent", "warned") or got.measured > limit(method):
                seen.append((seed, kind, got))
        print(
            f"{method:20}{counts['silent']:8}{counts['warned']:8}{counts['errors']:8}{counts['right']:8}{counts['measured']:20}",
            flush=True,
        )
        for seed, kind, got in seen if given.verbose else ():
            print(f"    {seed:5} {kind:8} {got.off:.2e} {got.measured:.2e} {got.error[:160]}", flush=True)


if __name__ == "__main__":
    main()
