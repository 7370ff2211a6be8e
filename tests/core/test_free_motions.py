"""Free motions, their inertia, and roots of compliance matrices, against singular values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sarrus
from sarrus import _core
from sarrus import mechanisms as gallery
from sarrus.analysis.closing import closing
from tests.gallery import made
from tests.oracles.free_motions import free_motions
from tests.random_closed import random_closed

ROUNDING = 1e-9  # of null spaces: a few eps, divided by the smallest nonzero singular value


def states():
    for seed in (0, 3, 11):
        closed = random_closed(seed, bodies=5, loops=2, floating=seed % 2 == 1)
        yield closed.robot, closed.q, closed.time
    for make in (gallery.bennett, gallery.sarrus_linkage, gallery.four_bar, gallery.delta):  # three with dependent rows
        robot = made(make.__name__)
        yield robot, robot.assemble(), 0.0
    yield gallery.pendulum(), np.zeros(1), 0.0


@pytest.mark.parametrize(("robot", "q", "time"), list(states()))
def test_free_motions_and_their_inertia(robot, q, time):
    J, loops = robot.constraint_jacobian(q, time=time), closing(robot, (), ()).loops
    N, inverse = free_motions(J, loops.column_scale, loops.row_scale)
    free = sarrus.formulations.free_motions(robot, q, time=time)
    assert free.freedom == N.shape[1] == free.basis.shape[1]
    assert_allclose(free.basis @ free.basis.T, N @ N.T, atol=ROUNDING)
    assert_allclose(free.inverse, inverse, atol=ROUNDING * max(1.0, np.abs(inverse).max(initial=0.0)))
    M = robot.mass_matrix(q)
    expected = N @ np.linalg.inv(N.T @ M @ N) @ N.T
    scale = np.abs(expected).max(initial=1e-300)
    assert_allclose(free.constrained_inverse(M) / scale, expected / scale, atol=ROUNDING)


def test_batches_with_states_of_fewer_motions_and_without_a_result():
    """A parallelogram has one more motion where it is flat."""
    robot = gallery.four_bar(0.5, 1.0, 0.5, ground=1.0)
    flat = robot.assemble(fixed={"motor": 0.0})
    J = robot.constraint_jacobian(np.array([flat, robot.assemble(near=flat, fixed={"motor": 0.4})]))
    loops = closing(robot, (), ()).loops
    batch = np.array([[J[0]], [J[1]], [np.full_like(J[0], np.nan)]])
    bases, freedom, inverses = _core.free_motions(batch, loops.column_scale, loops.row_scale)
    assert freedom.tolist() == [[2], [1], [-1]]
    assert bases.shape == (3, 1, 3, 2) and inverses.shape == (3, 1, 3, 5)
    assert not bases[1, 0, :, 1].any() and np.isnan(bases[2]).all() and np.isnan(inverses[2]).all()
    N = free_motions(J[1], loops.column_scale, loops.row_scale)[0]
    assert_allclose(bases[1, 0] @ bases[1, 0].T, N @ N.T, atol=ROUNDING)


@pytest.mark.parametrize("rank", [0, 1, 3, 6])
def test_roots_of_compliances(rank):
    """R^T R = C, also for directions without compliance, and for compliances of which one is 1e8 times another."""
    robot, rng = gallery.four_bar(), np.random.default_rng(rank)
    factor = rng.standard_normal((6, rank)) * 10.0 ** rng.uniform(-4.0, 0.0, rank)
    C = factor @ factor.T
    roots = _core.compliance_roots(robot, [("pin2", C)]).reshape(-1, 6, 6)
    place = dict(_core.load_places(robot))["pin2"]
    unit = np.repeat([robot._length, 1.0], 3)
    scaled = np.outer(unit, unit) * C
    difference = np.outer(unit, unit) * (roots[place].T @ roots[place] - C)
    assert np.abs(difference).max() <= 1e-14 * np.abs(scaled).max()
    assert not np.delete(roots, place, axis=0).any()


@pytest.mark.parametrize("C", [np.diag([1.0, 1, 1, 1, 1, -1e-3]), np.fliplr(np.eye(6))])
def test_compliances_with_a_negative_eigenvalue(C):
    least = float(np.linalg.eigvalsh(C)[0])
    with pytest.raises(ValueError, match="its least eigenvalue is -"):
        _core.compliance_roots(gallery.delta(), [(gallery.delta().loop_joints[0], C)])
    assert least < 0.0


def test_one_joint_basis_per_state():
    """Unit vectors of the axes in the complement are its basis; parallel axes have the pseudo-inverse."""
    parallel = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    phi_c, psi = _core.joint_bases(np.array([np.eye(6)[:, 1:3], parallel, np.full((6, 2), np.nan)]))
    assert_allclose(phi_c[0], np.eye(6)[:, [0, 3, 4, 5]], atol=1e-15)
    assert_allclose(psi[1], np.linalg.pinv(parallel).T, atol=1e-15)
    assert_allclose(phi_c[1].T @ parallel, 0.0, atol=1e-15)
    assert_allclose(phi_c[1].T @ phi_c[1], np.eye(4), atol=1e-15)
    assert np.isnan(phi_c[2]).all() and np.isnan(psi[2]).all()
