"""Solutions of the loop equations by singular values, and the scales of their rows from wrenches: references for the core's orthogonal factors."""

import numpy as np

NEGLIGIBLE = 1e-9  # singular values below this fraction of the largest are zero


def row_scale(robot, q, time=None):
    """Return the inverse of the largest possible norm (nc,) of each row that restricts the motion of two bodies; NaN for other rows."""
    wrenches = robot._loop_wrenches(q, np.eye(robot.nc), time=time) * np.repeat([1.0, robot._length], 3)
    sizes = np.sqrt((wrenches**2).sum(axis=(1, 2)))
    for constraint in map(robot.constraint, robot.constraints):
        if not constraint.bodies:
            sizes[constraint.rows] = np.nan
    return 1.0 / sizes


def free_motions(J, column_scale, row_scale):
    """Return N (nv, freedom) and the pseudo-inverse (nv, nc) of J x = g, for ranks in scaled units."""
    U, s, V = np.linalg.svd(row_scale[:, None] * J * column_scale)
    rank = int((s > NEGLIGIBLE * s.max(initial=0.0)).sum())
    N = np.linalg.qr(column_scale[:, None] * V[rank:].T)[0]
    idle = np.linalg.qr(row_scale[:, None] * U[:, rank:])[0]
    inverse = column_scale[:, None] * (V[:rank].T / s[:rank]) @ U[:, :rank].T * row_scale
    inverse = inverse - N @ (N.T @ inverse)
    return N, inverse - (inverse @ idle) @ idle.T
