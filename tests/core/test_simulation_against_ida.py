"""Comparison of simulations with SUNDIALS' IDA, an independent integrator of differential-algebraic equations."""

import numpy as np
import pytest

import sarrus

sun = pytest.importorskip("sksundae")

DURATION = 0.5  # [s], half a turn of the crank: IDA takes its time


def by_ida(robot, q, v, tau):
    """Integrate the equations of index 1: M v' + h - J^T lambda = tau, J v' = gamma, q' = v.

    Only as many rows as the rank are used: redundant rows leave lambda undetermined, and IDA's matrix singular.
    """
    nv = robot.nv
    J = robot.constraint_jacobian(q)
    kept = []
    for r in range(len(J)):
        if np.linalg.matrix_rank(J[[*kept, r]], tol=1e-9) > len(kept):
            kept.append(r)
    size = nv + nv + len(kept)

    def residual(t, y, rate, res):
        x, u, multipliers = y[:nv], y[nv : 2 * nv], y[2 * nv :]
        J = robot.constraint_jacobian(x)[kept]
        res[:nv] = rate[:nv] - u
        res[nv : 2 * nv] = (
            robot.mass_matrix(x) @ rate[nv : 2 * nv] + robot.bias_forces(x, u) - J.T @ multipliers - tau(t)
        )
        res[2 * nv :] = J @ rate[nv : 2 * nv] - robot.constraint_bias(x, u)[kept]

    a = robot.forward_dynamics(q, v, tau(0.0))
    pushed = robot.mass_matrix(q) @ a + robot.bias_forces(q, v) - tau(0.0)
    multipliers = np.linalg.lstsq(J[kept].T, pushed, rcond=None)[0]
    y, rate = np.r_[q, v, multipliers], np.r_[v, a, np.zeros(len(kept))]
    start = np.empty(size)
    residual(0.0, y, rate, start)
    assert np.abs(start).max() < 1e-9
    solver = sun.ida.IDA(
        residual, rtol=1e-11, atol=1e-11, algebraic_idx=np.arange(2 * nv, size), max_num_steps=1_000_000
    )
    found = solver.solve(np.array([0.0, DURATION / 2, DURATION]), y, rate)
    assert found.success, found.message
    return found.y[1:, :nv], found.y[1:, nv : 2 * nv]


@pytest.fixture(scope="module")
def four_bar():
    robot = sarrus.mechanisms.four_bar()
    q = robot.assemble(fixed={"motor": 0.5})
    v = robot.project_velocity(q, [6.0, 0.0, 0.0])
    law = sarrus.laws.harmonic(2.0, rate=5.0, offset=1.0)
    motor = np.array([1.0, 0.0, 0.0])
    return robot, q, v, law, by_ida(robot, q, v, lambda t: law(t) * motor)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("rk4", {"dt": 5e-4}),
        ("rkmk4", {"dt": 5e-4}),
        ("independent", {"dt": 5e-4}),
        ("dopri5", {"rtol": 1e-11, "atol": 1e-11}),
        ("rk4", {"dt": 5e-4, "stabilisation": "none"}),
        ("rk4", {"dt": 2.5e-4, "stabilisation": "baumgarte"}),
        ("rk4", {"dt": 2.5e-4, "stabilisation": "corrective"}),
    ],
)
def test_a_driven_four_bar(four_bar, method, options):
    """q and v of all joints after half a turn of the crank agree to 1e-8, some hundred times IDA's tolerance."""
    robot, q, v, law, (q_ida, v_ida) = four_bar
    drive = sarrus.control.FeedforwardEffort("motor", law)
    times = [DURATION / 2, DURATION]
    run = sarrus.simulate(robot, q, v, DURATION, drive, method=method, times=times, **options)
    assert run.q[-1, 0] - q[0] > np.pi
    assert np.abs(run.q - q_ida).max() < 1e-8
    assert np.abs(run.v - v_ida).max() < 1e-7
