"""Newton's and Euler's equations of every body along whole runs: loops, end stops, springs, friction and rigid contact, in every method."""

import dataclasses
import os
import warnings

import numpy as np
import pytest

import sarrus
from sarrus import control
from sarrus.description import SpringSpec
from tests.laws.test_energy_table import METHODS, place
from tests.random_closed import ALL_CONSTRAINTS, random_closed

KINDS = tuple(kind for kind in ALL_CONSTRAINTS if not kind.startswith("pfaffian"))
SEEDS = range(100) if "SARRUS_SOAK" in os.environ else (0, 1, 2, 3, 6, 9)
# largest residual of a body's equations, relative to the largest force
BALANCED = 1e-9
# largest difference of momentum and integrated force, relative to the largest momentum, in steps of STEP: by methods of first and of higher order
STEP = 1e-4
INTEGRATED, INTEGRATED_BY_CONTACT = {1: 0.15, 2: 0.015}, 0.02


def mechanism(seed):
    """Return a random closed mechanism near the limits of its joints, with a spring between two bodies; its state and time."""
    options = {"friction": seed % 3 == 0, "armature": seed % 3 == 1, "springs": seed % 2 == 0}
    closed = random_closed(seed, bodies=5, loops=1 + seed % 2, kinds=KINDS, **options)
    robot, rng = closed.robot, np.random.default_rng([seed, 3])
    at = robot.joint_states(closed.q, closed.v, time=closed.time).q
    driven = {joint for spec in closed.description.constraints for joint in spec.position_joints}
    joints = []
    for spec in closed.description.joints:
        kind = spec.joint
        if kind.nv == 1 == kind.nq and spec.name not in driven and not spec.laws and hasattr(kind, "limits"):
            limits = tuple(float(at[spec.name][0]) + rng.uniform(0.01, 0.05, 2) * (-1.0, 1.0))
            kind = dataclasses.replace(kind, limits=limits)
        joints.append(dataclasses.replace(spec, joint=kind))
    first, second = (str(name) for name in rng.permutation(robot.bodies)[:2])
    ends = (first, tuple(rng.normal(size=3) * 0.3)), ("ground" if seed % 2 else second, tuple(rng.normal(size=3) * 0.3))
    length = np.linalg.norm(np.subtract(*(place(robot, closed.q, *end) for end in ends)))
    spring = SpringSpec("spring", *ends, rng.uniform(10.0, 300.0), 0.9 * float(length), rng.uniform(0.0, 5.0))
    d = dataclasses.replace(
        closed.description,
        joints=tuple(joints),
        springs=(*closed.description.springs, spring),
        gravity=(0.0, 0.0, -9.81),
    )
    return sarrus.Mechanism(d), closed.q, closed.v, closed.time


def simulated(seed, method, touches, **options):
    robot, q, v, time = mechanism(seed)
    rng, ground = np.random.default_rng([seed, 5]), []
    for body in rng.permutation(robot.bodies)[: 2 * touches]:
        height = float(place(robot, q, str(body), (0.0, 0.0, 0.0))[2]) - rng.uniform(0.0, 0.05)
        ground.append(control.RigidContact(str(body), radius=0.1, offset=height - 0.1, friction=0.4))
    return sarrus.simulate(robot, q, v, 0.15, ground, method=method, limits="enforce", start=time, **options)


def at_origin(X, wrench):
    """Return wrenches (n, 6) [moment; force] in frames X (n, 4, 4) about the world's origin, in its axes."""
    moment, force = (np.einsum("nij,nj->ni", X[:, :3, :3], part) for part in np.split(wrench, 2, axis=1))
    return np.concatenate([moment + np.cross(X[:, :3, 3], force), force], axis=1)


class Bodies:
    """Momenta, rates and forces (n, 6) of all bodies along a run, about the world's origin; `largest` force [N, N m]."""

    def __init__(self, run):
        self.run, robot = run, run.mechanism
        self.robot, self.momentum, self.rate, self.force = robot, {}, {}, {}
        self.pose = {body: robot.pose(run.q, body) for body in robot.bodies}
        self.pose["ground"] = np.broadcast_to(np.eye(4), self.pose[robot.bodies[0]].shape)
        self.largest = 1.0
        for body in robot.description.bodies:
            I, X = body.inertia, self.pose[body.name]
            R = X[:, :3, :3]

            def turned(x, R=R):
                return [np.einsum("nij,nj->ni", R, part) for part in np.split(x, 2, axis=1)]

            w, u = turned(robot.velocity(run.q, run.v, body.name))
            dw, du = turned(robot.acceleration(run.q, run.v, run.a, body.name))
            c, about = R @ I.com, R @ I.about_com @ R.swapaxes(1, 2)
            at, spin = X[:, :3, 3] + c, np.einsum("nij,nj->ni", about, w)
            P = I.mass * (u + np.cross(w, c))
            F = I.mass * (du + np.cross(dw, c) + np.cross(w, np.cross(w, c)))
            turn = np.einsum("nij,nj->ni", about, dw) + np.cross(w, spin)
            self.momentum[body.name] = np.concatenate([spin + np.cross(at, P), P], axis=1)
            self.rate[body.name] = np.concatenate([turn + np.cross(at, F), F], axis=1)
            weight = np.broadcast_to(I.mass * robot.gravity, F.shape)
            self.force[body.name] = np.concatenate([np.cross(at, weight), weight], axis=1)
        self.add_joints()
        self.add_springs()
        if run._contacts is not None:
            self.add_contacts()

    def add(self, body, wrench, sign=1.0, rows=slice(None)):
        self.largest = max(self.largest, np.abs(wrench).max(initial=0.0))
        if body != "ground":
            np.add.at(self.force[body], rows, sign * wrench)

    def add_joints(self):
        robot = self.robot
        placed = {spec.name: (spec.parent, spec.child, spec.at_child) for spec in robot.description.joints}
        for name, load in self.run.joint_wrenches(actuated=robot.joints).items():
            if name not in placed:
                spec = robot.constraint(name)
                placed[name] = (*spec.bodies, spec.spec.at_child)
            parent, child, at = placed[name]
            wrench = at_origin(self.pose[child] @ at.matrix, load)
            self.add(child, wrench), self.add(parent, wrench, -1.0)

    def add_springs(self):
        for spring in self.robot.description.springs:
            ends = spring.first, spring.second
            at = [self.pose[body][:, :3, :3] @ np.asarray(point) + self.pose[body][:, :3, 3] for body, point in ends]
            apart = at[1] - at[0]
            length = np.linalg.norm(apart, axis=1)
            along = apart / length[:, None]
            rate = np.einsum("ni,ni->n", along, self.point_velocity(1, ends, at) - self.point_velocity(0, ends, at))
            pull = along * (spring.stiffness * (length - spring.rest_length) + spring.damping * rate)[:, None]
            for k, sign in ((0, 1.0), (1, -1.0)):
                self.add(ends[k][0], np.concatenate([np.cross(at[k], pull), pull], axis=1), sign)

    def point_velocity(self, k, ends, at):
        body = ends[k][0]
        if body == "ground":
            return np.zeros_like(at[k])
        R = self.pose[body][:, :3, :3]
        V = self.robot.velocity(self.run.q, self.run.v, body)
        w, u = (np.einsum("nij,nj->ni", R, part) for part in np.split(V, 2, axis=1))
        return u + np.cross(w, at[k] - self.pose[body][:, :3, 3])

    def add_contacts(self):
        acting = self.run.contacts
        wrench = np.concatenate([np.cross(acting.position, acting.force), acting.force], axis=1)
        for k, pair in enumerate(acting.bodies):
            for body, sign in zip(pair, (1.0, -1.0), strict=True):
                self.add(body, wrench[k], sign, acting.sample[k])


def runs(method, **options):
    """Return the runs of all seeds, without the few whose prescribed motions are blocked by stops or end in a singular position."""
    done, blocked = [], 0
    for seed in SEEDS:
        for touches in (False, True)[: 1 + (method == "contact")]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("error" if options else "ignore", sarrus.StiffnessWarning)
                try:
                    done.append((simulated(seed, method, touches, **options), (seed, touches)))
                except (sarrus.IntegrationError, sarrus.StiffnessWarning):
                    blocked += 1
    assert blocked < 0.1 * len(done)
    return done


def reaches_limits(run):
    """Return True if some joint is at one of its limits or beyond in some sample."""
    robot = run.mechanism
    at = robot.joint_states(run.q, time=run.t).q
    limits = {spec.name: spec.joint.limits for spec in robot.description.joints if spec.joint.nv == 1}
    return any(
        (at[name] < low + 1e-6).any() or (at[name] > high - 1e-6).any()
        for name, (low, high) in ((name, pair) for name, pair in limits.items() if pair is not None)
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_body_is_balanced_at_every_sample(method):
    """Rate of momentum = weight + joints, motors and stops + springs + contacts."""
    stopped = 0
    for run, which in runs(method):
        bodies = Bodies(run)
        for body, force in bodies.force.items():
            off = np.abs(bodies.rate[body] - force).max()
            assert off < BALANCED * bodies.largest, (*which, body, off, bodies.largest)
        stopped += reaches_limits(run)
    assert stopped > len(SEEDS) / 2


@pytest.mark.parametrize("method", METHODS)
def test_momenta_are_integrals_of_the_forces(method):
    """Momentum of each body = momentum at the start + integral of the reported forces, to the order of the step."""
    contact = method == "contact"
    allowed = INTEGRATED_BY_CONTACT if contact else INTEGRATED[min(sarrus._core.methods[method].order, 2)]
    for run, which in runs(method, dt=STEP):
        bodies = Bodies(run)
        h, largest = np.diff(run.t)[:, None], max(np.abs(P).max() for P in bodies.momentum.values())
        for body, force in bodies.force.items():
            # forces of a rigid step are those of the sample at its end
            mean = force[1:] if contact else 0.5 * (force[1:] + force[:-1])
            off = np.abs(bodies.momentum[body][1:] - bodies.momentum[body][0] - np.cumsum(h * mean, axis=0)).max()
            assert off < allowed * largest, (*which, body, off / largest)
