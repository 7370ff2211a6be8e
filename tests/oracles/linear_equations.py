"""Linear equations of motion of one state by dense algebra from derivatives in tree coordinates, a reference for the core's."""

import numpy as np

import sarrus
from tests.oracles.reduced import in_lengths


def null_space(J):
    """Return N (nv, k), orthonormal: the null space of rows that may be dependent."""
    _, s, V = np.linalg.svd(J)
    return V[int((s > 1e-9 * s.max(initial=0.0)).sum()) :].T


def showing(N, first=()):
    """Return velocities that represent the motions N best, these first among them: a pivoted Cholesky factorisation of their projector."""
    P, columns = N @ N.T, []
    for i in range(N.shape[1]):
        k = first[i] if i < len(first) else int(np.argmax(np.diagonal(P) > np.diagonal(P).max() * (1.0 - 1e-8)))
        columns.append(k)
        P = P - np.outer(P[:, k], P[k]) / P[k, k]
    return sorted(columns)


def linear_equations(robot, q, v, tau, first=None, *, time=None, wrenches=None):
    """Return the fields of a Linearization by name, in velocities `first`, or in those that represent the motion best."""
    J = robot.constraint_jacobian(q, time=time)
    held = [row for c in robot.constraints for row in robot.constraint(c).holonomic]
    N, N_q = null_space(J), null_space(J[held])
    first = showing(in_lengths(robot, N)) if first is None else list(first)
    columns = first + [k for k in showing(in_lengths(robot, N_q), first) if k not in first]
    E_v, E_q = np.eye(robot.nv)[first], np.eye(robot.nv)[columns]
    W, G = N @ np.linalg.inv(E_v @ N), N_q @ np.linalg.inv(E_q @ N_q)

    D = sarrus.derivatives.forward_dynamics(robot, q, v, tau, time=time, wrenches=wrenches)
    # with q along G y the velocity goes by the least kinetic energy, and back along W so that E_v v stays
    back = E_v @ D.velocity @ G
    a_u = D.v @ W
    bracket = robot._bracket(G.T, v, return_status=True)[0].T
    top = np.hstack([E_q @ (D.velocity @ G - W @ back + bracket), E_q @ W])
    A = np.vstack([top, np.hstack([E_v @ (D.q @ G) - E_v @ a_u @ back, E_v @ a_u])])

    size = np.sqrt(np.diagonal(robot.mass_matrix(q)).clip(0.0))
    size = np.where(size > 0.0, size, 1.0)[:, None]
    L = np.linalg.qr(size * N)[0]
    inertia = L.T @ (robot.mass_matrix(q) / size / size.T) @ L
    E = np.vstack([np.zeros((len(columns), robot.nv)), E_v @ (L @ np.linalg.solve(inertia, L.T) / size / size.T)])
    a = robot.forward_dynamics(q, v, tau, time=time, wrenches=wrenches)
    B = E @ robot.actuation_matrix(q) if robot.actuated else np.zeros((len(E), 0))
    return {
        "A": A, "B": B, "E": E, "rate": np.concatenate([E_q @ v, E_v @ a]), "configuration_basis": G, "velocity_basis": W,
        "columns": columns, "freedoms": len(first),
    }  # fmt: skip
