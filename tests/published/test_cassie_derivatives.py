"""Derivatives of Cassie with its loops, springs and floating base, to the accuracy published for other libraries with this robot."""

import numpy as np
import pytest

import sarrus
from reference_models import MODELS
from tests.oracles import Closed

FILE = MODELS / "menagerie" / "agility_cassie" / "cassie.xml"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="needs the models beside the checkout")
DIGITS = 1e-10


def slope(f, h=2e-3):
    """Return f'(0) by central differences of sixth order."""
    return (45 * (f(h) - f(-h)) - 9 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) / (60 * h)


def test_cassie():
    robot = sarrus.load(FILE)
    oracle = Closed(robot.description, closing=robot.loop_joints, dtype=np.longdouble)
    rng = np.random.default_rng(0)
    q = robot.assemble()
    q = robot.project_configuration(robot.integrate(q, 0.1 * rng.normal(size=robot.nv)))
    v, x, tau = robot.project_velocity(q, rng.normal(size=robot.nv)), *rng.normal(size=(2, robot.nv))
    inverse = sarrus.derivatives.inverse_dynamics(robot, q, v, x)
    forward = sarrus.derivatives.forward_dynamics(robot, q, v, tau)

    def along_the_loops(s, p, r):
        """Comparison in the oracle's precision, along the loops: the rows are redundant, and off the loops they are inconsistent."""
        x = oracle.close(oracle.integrate(q, s * p), tolerance=1e-17)
        return oracle.forward_dynamics(x, oracle.project_velocity(x, v + s * r), tau)

    M = robot.mass_matrix(q)
    assert 1e6 < np.linalg.cond(M) < 1e8  # so that accelerations are compared by the forces that they take
    for d, u, w in rng.normal(size=(3, 3, robot.nv)):
        along, with_it, change = forward.displacement @ d, forward.velocity @ d, forward.change @ u
        for said, f, N in (
            (inverse.q @ d, lambda s, d=d: oracle.inverse_dynamics(oracle.integrate(q, s * d), v, x), np.eye(robot.nv)),
            (inverse.v @ u, lambda s, u=u: oracle.inverse_dynamics(q, v + s * u, x), np.eye(robot.nv)),
            (inverse.a @ w, lambda s, w=w: oracle.inverse_dynamics(q, v, x + s * w), np.eye(robot.nv)),
            (forward.q @ d, lambda s, p=along, r=with_it: along_the_loops(s, p, r), M),
            (forward.v @ u, lambda s, u=change: oracle.forward_dynamics(q, v + s * u, tau), M),
            (forward.tau @ w, lambda s, w=w: oracle.forward_dynamics(q, v, tau + s * w), M),
        ):
            truth = np.asarray(slope(f), dtype=float)
            size = (np.abs(N) @ np.abs(truth)).max()
            np.testing.assert_allclose(N @ (said - truth), 0, atol=DIGITS * size)
