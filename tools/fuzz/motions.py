"""Random cases of task control, force elements and variants. Results must obey the laws of motion, unless an error or a warning reports the
violation.

A case is defined by a seed, so that a finding is one line: ``touched(123)``. All parameters are drawn over many orders of magnitude.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from typing import Any

import numpy as np

import sarrus
from sarrus import control

from . import pieces
from .calls import Target

__all__ = ["changed", "controlled", "touched"]

METHODS = ("auto", "rk4", "implicit_midpoint", "rosenbrock", "semi_implicit", "dopri5")
RESIDUAL = 1e-6  # largest residual of an equation of motion, relative to the equation's largest term
CANCELS = 1e-9  # forces below this fraction of all applied forces are considered zero
AGREE = 1e-7  # largest relative difference between single runs and a batch of runs


def _decade(rng: random.Random, low: float, high: float) -> float:
    return float(10.0 ** rng.uniform(low, high))


def _start(rng: random.Random, m: Any, slow: float = 1.0) -> tuple[Any, Any]:
    q, v, _ = pieces.state(m)
    return q, m.project_velocity(q, slow * rng.choice((0.0, 0.1, 1.0)) * v)


def _mechanism(rng: random.Random) -> Any:
    return pieces.mechanism(rng.choice(pieces.GALLERY))


def controlled(seed: int) -> None:
    """Check random motors, tasks, contacts and limits: results are finite, within the limits, and obey the equation of motion."""
    rng = random.Random(seed)
    m = _mechanism(rng)
    q, v = _start(rng, m)
    joints = [name for name in m.joints if m.joint(name).nv == 1 == m.joint(name).nq]
    if not joints:
        return
    motors = rng.sample(joints, rng.randint(1, len(joints)))

    def task() -> Any:
        how = {"weight": _decade(rng, -3, 3), "priority": rng.randrange(3), "hard": rng.random() < 0.1}
        place = sarrus.Transform(translation=[rng.uniform(-1, 1) for _ in range(3)])
        kind = rng.randrange(4)
        if kind == 0:
            return control.JointTask(rng.choice(joints), rng.uniform(-1, 1), stiffness=_decade(rng, 0, 4), **how)
        if kind == 1:
            which = " ".join(rng.sample(["rx", "ry", "rz", "tx", "ty", "tz"], rng.randint(1, 6)))
            return control.FrameTask(rng.choice(m.frames), place, which, **how)
        if kind == 2:
            return control.CenterOfMassTask([rng.uniform(-1, 1) for _ in range(3)], **how)
        return control.PostureTask(dict.fromkeys(joints, 0.0), **how)

    most = _decade(rng, -2, 4)
    limits = rng.choice(
        (None, control.Limits(), control.Limits(effort=most), control.Limits(effort=most, velocity=10.0))
    )
    points = rng.sample(m.bodies, min(rng.choice((0, 0, 1, 2)), len(m.bodies)))
    touching = [control.PointContact(body, friction=rng.choice((0.3, 0.7))) for body in points]
    try:
        law = control.TaskControl(
            m, [task() for _ in range(rng.randint(1, 3))], limits, touching, motors, force_arm=_decade(rng, -3, 0)
        )
        r = law.solve(0.0, q, v)
    except sarrus.SarrusError:
        return
    numbers = [r.tau, r.acceleration, *r.forces.values(), *r.missed]
    assert all(np.isfinite(x).all() for x in numbers), "an answer that is not finite"
    if limits is not None and limits.effort is not None and not r.conflicts:
        over = max(abs(u) for u in r.efforts.values()) / most
        assert over <= 1.0 + 1e-6, f"efforts exceed their limit: {over:.6g} of it"
    forces = [abs(f).max() for f in r.forces.values()]
    acts = max([m.mass * np.linalg.norm(m.gravity), abs(r.tau).max(), *forces])
    judged = zip(touching, forces, strict=True) if limits is not None and r.status == "solved" else ()
    for contact, most_force in judged:
        x, y, z = r.forces[contact.frame]  # without limits, cones are not enforced either
        assert np.hypot(x, y) <= contact.friction * z + 1e-5 * most_force + CANCELS * acts, (
            f"a force leaves its cone: {r.forces[contact.frame]}"
        )
    M, h = m.mass_matrix(q), m.bias_forces(q, v)
    pushed = [m.jacobian(q, body, expressed_in="world_aligned")[3:] for body in points]
    J = np.concatenate([m.constraint_jacobian(q), *pushed])
    lacking = M @ r.acceleration + h - r.tau
    lacking = lacking - J.T @ np.linalg.lstsq(J.T, lacking, rcond=1e-11)[0] if len(J) else lacking
    size = max(np.abs(M @ r.acceleration).max(), np.abs(h).max(), np.abs(r.tau).max())
    assert np.abs(lacking).max() <= RESIDUAL * size, (
        f"M a + h is not tau + J'f: {np.abs(lacking).max() / size:.1g} of it"
    )
    if m.nc:
        rows, wanted = m.constraint_jacobian(q), m.constraint_bias(q, v)
        off = np.abs(rows @ r.acceleration - wanted)
        size = (np.abs(rows) @ np.abs(r.acceleration)).max() + np.abs(wanted).max() + 1e-3 * np.abs(rows).max()
        assert off.max() <= RESIDUAL * size, f"the acceleration opens the loops: {off.max() / size:.1g}"


def touched(seed: int) -> None:
    """Check dissipative contacts, friction and stops: a run is finite without energy gain, or a status, warning or error reports it."""
    rng = random.Random(seed)
    m = _mechanism(rng)
    q, v = _start(rng, m)
    joints = [name for name in m.joints if m.joint(name).nv == 1 == m.joint(name).nq]
    elements: list[Any] = []
    for body in rng.sample(m.bodies, min(rng.randrange(3), len(m.bodies))):
        below = float(m.pose(q, body)[2, 3]) - rng.choice((0.0, 1e-6, 1e-3))
        elements.append(
            control.CompliantContact(
                body,
                offset=below,
                stiffness=_decade(rng, 1, 7),
                dissipation=rng.choice((0.0, 0.5)),
                friction=rng.choice((0.0, 0.6)),
                slip_velocity=_decade(rng, -5, -1),
            )
        )
    for name in rng.sample(joints, min(rng.randrange(3), len(joints))):
        at = float(q[m.joint(name).q_slice][0])
        elements.append(
            rng.choice(
                (
                    control.LuGreFriction(name, _decade(rng, -3, 3), stiffness=_decade(rng, 0, 6)),
                    control.EndStop(
                        name, (at - 1e-3, at + 1e-3), stiffness=_decade(rng, 0, 7), damping=_decade(rng, -3, 2)
                    ),
                )
            )
        )
    dt, method = _decade(rng, -4, -2), rng.choice(METHODS)
    for _ in range(rng.choice((0, 0, 1, 2))):
        times: Any = rng.choice(
            ({}, {"on": 9.7 * dt}, {"off": 20 * dt}, {"on": lambda t, q, v: v[0], "off": 30.5 * dt})
        )
        capacity: Any = {"capacity": _decade(rng, -2, 3)} if rng.random() < 0.6 else {}
        elements.append(control.Weld(*rng.sample(("ground", *m.bodies), 2), name=f"weld {len(elements)}", **times))
        for name in rng.sample(joints, min(1, len(joints))):
            elements[-1] = control.Lock(name, name=f"lock {len(elements)}", **times, **capacity)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            run = sarrus.simulate(m, q, v, 40 * dt, elements, method=method, dt=dt, limits="ignore")
        except sarrus.SarrusError:
            return
    said = run.status != "finished" or any(
        issubclass(w.category, (sarrus.StiffnessWarning, RuntimeWarning)) for w in told
    )
    assert said or (np.isfinite(run.q).all() and np.isfinite(run.v).all()), "a run that is not finite, without a word"
    gained = run.energy[-1] - run.energy[0]
    size = run.kinetic_energy.max() + 1e-9 * np.abs(run.energy).max()
    # LuGre friction may increase the energy, because its bristles return stored energy
    stiction = any(isinstance(x, control.LuGreFriction) for x in elements)
    driven = any(s.prescribed(0.0) for s in m.description.constraints) or any(s.laws for s in m.description.joints)
    driven = driven or bool(m.nc and m.constraint_velocity(q).any())  # Pfaffian rows that prescribe a velocity
    if not (said or stiction or driven) and method not in ("semi_implicit",):
        assert gained <= 0.05 * size, (
            f"energy grows by {gained / size:.2g} of the largest kinetic energy ({method}), without a word"
        )


def _has_functions(m: sarrus.Mechanism) -> bool:
    return any(callable(getattr(s, "rows", None)) for s in m.description.constraints)


def changed(seed: int) -> None:
    """Check variants with changed parameters: they can be simulated, and a batch of runs agrees with single runs."""
    rng = random.Random(seed)
    m = _mechanism(rng)
    variants = [m]
    for _ in range(3):
        b = m.to_builder()
        for _ in range(rng.randint(1, 3)):
            with contextlib.suppress(sarrus.SarrusError):
                kind = rng.choice((0, 0, 0, 0, 1, 2))
                if kind == 0:
                    b.set_inertia(rng.choice(m.bodies), sarrus.Inertia.sphere(_decade(rng, -3, 3), _decade(rng, -3, 0)))
                elif kind == 1:
                    b.set_joint(rng.choice((*m.joints, *m.loop_joints)), actuated=rng.random() < 0.5)
                else:
                    b.lock(rng.choice(m.joints))
        # a function of Pfaffian rows depends on the number of coordinates
        expected = (sarrus.SarrusError, ValueError) if _has_functions(m) else (sarrus.SarrusError,)
        with contextlib.suppress(*expected):
            made = b.build()
            pieces.touch(made)
            if (made.nq, made.nv, made.loop_joints) == (m.nq, m.nv, m.loop_joints):
                variants.append(made)
    q, v = _start(rng, m, 0.1)
    threads, method = rng.choice((1, 2)), rng.choice(("rk4", "semi_implicit", "implicit_midpoint", "rosenbrock"))
    wrong = set()  # runs with a StiffnessWarning, in which rounding errors can grow exponentially
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        alone = []
        for k, x in enumerate(variants):
            try:
                alone.append(sarrus.simulate(x, q, v, 0.01, dt=1e-3, method=method, limits="ignore"))
            except sarrus.SarrusError:
                return
            if any(issubclass(w.category, sarrus.StiffnessWarning) for w in told):
                wrong.add(k)
            told.clear()
        start = np.tile(q, (len(variants), 1)), np.tile(v, (len(variants), 1))
        try:
            many = sarrus.simulate_many(
                variants, *start, 0.01, dt=1e-3, method=method, limits="ignore", threads=threads
            )
        except sarrus.ModelError:  # the mechanisms differ in more than parameters
            return
    for k, run in ((k, run) for k, run in enumerate(alone) if k not in wrong):
        off = np.abs(many.q[k, -1] - run.q[-1]).max() / max(1.0, np.abs(run.q[-1]).max())
        assert many.status[k] == 0 and off <= AGREE, (
            f"run {k} of many, {method}: status {many.status[k]}, off by {off:.2g}"
        )


PROGRAMS = {"control": controlled, "contact": touched, "variants": changed}


def motion_program(kind: str, rng: random.Random) -> tuple[list[str], Target]:
    """Return a case of this kind as a program."""
    asked = PROGRAMS[kind]
    return ["from tools.fuzz.motions import *", f"r = {asked.__name__}({rng.randrange(10**6)})"], Target(
        kind, asked, None, ""
    )
