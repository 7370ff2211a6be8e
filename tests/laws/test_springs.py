"""Springs between points of two bodies: energy and power; their forces act on bodies, not through joints."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from tests.random_mechanisms import random_mechanism, random_state

STEP = 1e-6  # of central differences: errors of some 1e-9 of what is differentiated
STIFFNESS, REST, DAMPING = 50.0, 0.3, 3.0


def sprung(seed, damping=0.0):
    """Return a random tree with springs between two bodies, and between a body and the ground."""
    robot = random_mechanism(seed, bodies=5)
    rng = np.random.default_rng(seed)
    d = robot.description
    first, second = rng.choice(len(d.bodies), 2, replace=False)
    points = [tuple(p) for p in rng.normal(size=(4, 3))]
    springs = (
        sarrus.description.SpringSpec("s", (d.bodies[first].name, points[0]), (d.bodies[second].name, points[1]), STIFFNESS, REST, damping),
        sarrus.description.SpringSpec("g", ("ground", points[2]), (d.bodies[first].name, points[3]), STIFFNESS, REST),
    )  # fmt: skip
    return robot, sarrus.Mechanism(sarrus.Description(d.name, d.gravity, d.bodies, d.joints, d.frames, springs=springs))


def lengths(robot, q):
    ends = [
        [(robot.pose(q, body) @ np.append(point, 1.0))[:3] for body, point in (s.first, s.second)]
        for s in robot.description.springs
    ]
    return np.array([np.linalg.norm(b - a) for a, b in ends])


@pytest.mark.parametrize("seed", range(6))
def test_energy_and_force(seed):
    """Springs add k (l - l0)^2/2 to the potential energy, and its gradient to the bias forces."""
    plain, robot = sprung(seed)
    q, _, _ = random_state(robot, np.random.default_rng(seed))
    added = robot.potential_energy(q) - plain.potential_energy(q)
    expected = 0.5 * STIFFNESS * ((lengths(robot, q) - REST) ** 2).sum()
    assert_allclose(added, expected, rtol=1e-10)
    rest = np.zeros(robot.nv)
    steps = STEP * np.eye(robot.nv)
    energy = [
        np.array([0.5 * STIFFNESS * ((lengths(robot, robot.integrate(q, sign * e)) - REST) ** 2).sum() for e in steps])
        for sign in (1.0, -1.0)
    ]
    force = robot.bias_forces(q, rest) - plain.bias_forces(q, rest)
    assert_allclose(force, (energy[0] - energy[1]) / (2.0 * STEP), atol=1e-7 * (1.0 + expected))
    assert_allclose(robot.gravity_forces(q), plain.gravity_forces(q), atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_power_of_the_damper(seed):
    """The dissipated power is c (dl/dt)^2."""
    undamped, robot = sprung(seed)[1], sprung(seed, DAMPING)[1]
    q, v, _ = random_state(robot, np.random.default_rng(seed))
    force = robot.bias_forces(q, v) - undamped.bias_forces(q, v)
    rate = (lengths(robot, robot.integrate(q, STEP * v)) - lengths(robot, robot.integrate(q, -STEP * v))) / (2.0 * STEP)
    assert_allclose(force @ v, DAMPING * rate[0] ** 2, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_forward_inverse_and_reactions_agree(seed):
    _, robot = sprung(seed, DAMPING)
    q, v, tau = random_state(robot, np.random.default_rng(seed))
    a = robot.forward_dynamics(q, v, tau)
    scale = 1.0 + np.abs(robot.mass_matrix(q) @ a).max()
    assert_allclose(robot.inverse_dynamics(q, v, a), tau, atol=1e-10 * scale)
    stacked = [np.broadcast_to(x, (9, len(x))) for x in (q, v, tau)]
    assert_allclose(robot.forward_dynamics(*stacked), np.broadcast_to(a, (9, robot.nv)), rtol=1e-9, atol=1e-9 * scale)
    # the joint drives what the recursion says, and springs do not pass through it
    reactions = sarrus.formulations.reactions(robot, q, v, a)
    for name in robot.joints:
        joint = robot.joint(name)
        if joint.nv:
            phi = sarrus.formulations.joint_bases(robot, q, name)[0]
            assert_allclose(phi.T @ reactions[name], tau[joint.v_slice], atol=1e-9 * scale)


def test_a_spring_closes_no_loop_and_is_kept():
    b = sarrus.Builder("bob")
    b.add_body("bob", sarrus.Inertia.sphere(2.0, 0.1))
    b.add_joint("guide", sarrus.Prismatic("z"), "ground", "bob")
    b.add_spring("coil", ("ground", (0, 0, 0)), ("bob", (0, 0, 0)), stiffness=200.0, rest_length=0.5)
    robot = b.build()
    assert robot.nc == 0 and "spring  coil: 200 N/m ─ from ground to bob" in str(robot)
    assert pickle.loads(pickle.dumps(robot)) == robot
    run = sarrus.simulate(robot, [-0.5 - 2.0 * 9.81 / 200.0 + 0.01], [0.0], 2.0, method="rkmk4")
    # about its place of rest it swings with sqrt(k/m) = 10/s
    assert_allclose(run.q[:, 0], -0.5981 + 0.01 * np.cos(10.0 * run.t), atol=1e-9)
    assert robot.forward_dynamics([0.0], [0.0], [0.0]) == pytest.approx(-9.81)  # no length, no direction


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"stiffness": -1.0}, sarrus.ModelError, "must not be negative"),
        ({"damping": np.nan}, sarrus.ModelError, "damping"),
        ({"second": ("ground", (1, 0, 0))}, sarrus.ModelError, "connects body 'ground' to itself"),
        ({"second": ("bab", (1, 0, 0))}, sarrus.NameNotFoundError, "did you mean 'bob'"),
        ({"second": ("bob", (1, 0))}, sarrus.ModelError, "second"),
        ({"name": ""}, sarrus.ModelError, "needs a name"),
    ],
)
def test_bad_springs(change, error, message):
    b = sarrus.Builder("bob")
    b.add_body("bob", sarrus.Inertia.sphere(2.0, 0.1))
    b.add_joint("guide", sarrus.Prismatic("z"), "ground", "bob")
    given = {
        "name": "coil",
        "first": ("ground", (0, 0, 0)),
        "second": ("bob", (0, 0, 0)),
        "stiffness": 1.0,
        "rest_length": 0.0,
    }
    with pytest.raises(error, match=message):
        b.add_spring(**given | change)
