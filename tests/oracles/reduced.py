"""Equations of motion in independent coordinates by singular values, state by state: a reference for the core's orthogonal factors."""

import numpy as np

from sarrus.analysis.closing import closing
from sarrus.analysis.linear_algebra import sliding_velocities
from tests.oracles.free_motions import free_motions


def loop_motions(robot, q, time):
    loops = closing(robot, (), ()).loops
    return free_motions(robot.constraint_jacobian(q, time=time), loops.column_scale, loops.row_scale)


def reduced(robot, q, v, E, E_dot, *, time=None, wrenches=None):
    """Return G, its rate, drift, bias acceleration, mass matrix and bias, for rates E v (k, nv); of least norm for dependent rates."""
    N, J_inverse = loop_motions(robot, q, time)
    seen = E @ N
    B, s, V = np.linalg.svd(seen, full_matrices=False)
    assert (s > 1e-9 * np.linalg.norm(E)).all() and len(s) == N.shape[1]
    inverse = (V.T / s) @ B.T
    G = N @ inverse
    K = -J_inverse @ robot.constraint_jacobian_derivative(q, v, time=time) @ G
    change = E @ K + E_dot @ G
    D = change - seen @ (inverse @ change)

    def on_loops(g, rates):
        x = J_inverse @ g
        return x + G @ (rates - E @ x)

    a = on_loops(robot.constraint_bias(q, v, time=time), -E_dot @ v)
    return {
        "velocity": E @ v,
        "jacobian": G,
        "jacobian_derivative": K + G @ (D.T - change),
        "drift": on_loops(robot.constraint_velocity(q, time=time), np.zeros(len(E))),
        "bias_acceleration": a,
        "mass_matrix": G.T @ robot.mass_matrix(q) @ G,
        "bias": G.T @ robot.inverse_dynamics(q, v, a, wrenches=wrenches),
    }


def in_lengths(robot, N):
    """Return motions (nv, k) in units of the mechanism's length, orthonormal there."""
    return np.linalg.qr(N / np.where(sliding_velocities(robot), robot._length, 1.0)[:, None])[0]


def showing(robot, states, time=None):
    """Return velocities that represent the free motions of all states best: a pivoted Cholesky factorisation of the sum of projectors."""
    motions = [in_lengths(robot, loop_motions(robot, q, time)[0]) for q in states]
    P, columns = sum(N @ N.T for N in motions), []
    for _ in range(motions[0].shape[1]):
        k = int(np.argmax(np.diagonal(P) > np.diagonal(P).max() * (1.0 - 1e-8)))
        columns.append(k)
        P = P - np.outer(P[:, k], P[k]) / P[k, k]
    return sorted(columns)
