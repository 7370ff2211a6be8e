"""Parameters that bodies can have, nearest to an estimate of their base parameters: pseudo-inertias positive semidefinite, friction not negative.

What efforts do not tell stays as near as it can to the mechanism's own numbers, by the divergence of its log-determinant, which does not depend on frames and
units, and which is a barrier: minimise (B pi - beta)^T C^-1 (B pi - beta) + mu D(pi | nominal), mu to zero. Newton's steps in the metric of D.

References
----------
Wensing, P., Kim, S., Slotine, J.-J. (2018). Linear matrix inequalities for physically consistent inertial parameter identification.
Lee, T., Wensing, P., Park, F. (2019). Geometric robot dynamic identification: a convex programming approach. *IEEE Transactions on Robotics* 36.
"""

from __future__ import annotations

import numpy as np

from .._arrays import Array
from .._core.spatial import pseudo_inertia

THIN = 1e-2  # of a body's spread, what a rod without thickness gets as one: the divergence is from bodies with volume
FLAT = 1e-11  # of the largest, an eigenvalue at which a pseudo-inertia counts as one without volume
ENOUGH = 1e-6  # of an estimate's variance, what a step may leave

_UNITS = pseudo_inertia(np.eye(10))  # of each parameter


def pseudo_inertias(parameters: Array) -> Array:
    """(..., 4, 4) of inertial parameters (..., 10)."""
    return np.asarray(np.einsum("...p,pij->...ij", parameters, _UNITS))


def with_volume(parameters: Array) -> Array:
    """Parameters (n, 10) of bodies whose pseudo-inertia is positive definite: a rod gets a little thickness, a point a little size."""
    x = parameters.copy()
    P = pseudo_inertias(x)
    size = np.trace(P[:, :3, :3] - P[:, :3, 3:] * P[:, 3:, :3] / P[:, 3:, 3:], axis1=1, axis2=2)
    more = THIN * np.maximum(size, 1e-4 * x[:, 0])
    x[:, [4, 6, 9]] += 2.0 * more[:, None]
    return x


def consistent_parameters(
    B: Array, beta: Array, root: Array, nominal: Array, bodies: int, signed: Array, last: float = 1e-3
) -> Array:
    """pi (p,) with B pi near beta in the metric root^T root = C^-1, 10 of each body first, then numbers that are positive unless `signed`.

    Parameters
    ----------
    nominal : (p,) from which it departs as little as the rest lets it; of a number that is not told beside zero, a size
    last : the weight of the divergence at the end, where an estimate's variance counts as 1
    """
    n, x = 10 * bodies, nominal.astype(float)
    x[:n] = with_volume(x[:n].reshape(-1, 10)).ravel()
    x0, P0 = x.copy(), pseudo_inertias(x[:n].reshape(-1, 10))
    inverse0, scale = np.linalg.inv(P0), np.abs(x0[n:])
    M, rhs = root @ B, root @ beta

    def barrier(x: Array) -> float:
        P, s = pseudo_inertias(x[:n].reshape(-1, 10)), x[n:] / x0[n:]
        of_P = np.linalg.eigvalsh(P)
        if (of_P[:, 0] <= FLAT * of_P[:, -1]).any() or s[np.logical_not(signed)].min(initial=1.0) <= FLAT:
            return float(np.inf)
        of_bodies = np.sum(inverse0 * P, axis=(1, 2)) - np.linalg.slogdet(P)[1] + np.linalg.slogdet(P0)[1] - 4.0
        of_joints = np.where(signed, 0.5 * (s - 1.0) ** 2, s - np.log(np.where(signed, 1.0, s)) - 1.0)
        return float(of_bodies.sum() + of_joints.sum())

    def value(x: Array, mu: float) -> float:
        return float(np.sum((M @ x - rhs) ** 2)) + mu * barrier(x)

    # from where the divergence weighs as much as all that is to be fitted: Newton's steps then stay where they are good
    most = max(float(np.sum((M @ x - rhs) ** 2)), 1e2 * last)
    weights = np.append(10.0 ** np.arange(np.log10(most), np.log10(last), -1.0), last)
    for mu in weights:
        now = value(x, mu)
        for _ in range(30):
            inverse = np.linalg.inv(pseudo_inertias(x[:n].reshape(-1, 10)))
            each = inverse[:, None] @ _UNITS
            gradient = ((inverse0 - inverse).reshape(-1, 16) @ _UNITS.reshape(10, 16).T).ravel()
            H = each.reshape(-1, 10, 16) @ each.swapaxes(2, 3).reshape(-1, 10, 16).swapaxes(1, 2)
            L = np.linalg.cholesky(H + 1e-14 * np.eye(10) * np.trace(H, axis1=1, axis2=2)[:, None, None])
            s = x[n:]
            # in coordinates in which the barrier's Hessian is the unit matrix: x = back y
            back = np.zeros((len(x), len(x)))
            for b, of_body in enumerate(np.linalg.inv(L).swapaxes(1, 2)):
                back[10 * b : 10 * b + 10, 10 * b : 10 * b + 10] = of_body
            slope = np.where(signed, scale, s)
            back[range(n, len(x)), range(n, len(x))] = slope
            g = np.concatenate([gradient, np.where(signed, (s - x0[n:]) / scale**2, 1.0 / x0[n:] - 1.0 / s)]) @ back
            A, r = M @ back, M @ x - rhs
            # least |A d + r|^2 + mu/2 |d + g|^2, by the smaller of the two normal equations
            e = -A.T @ np.linalg.solve(A @ A.T + 0.5 * mu * np.eye(len(A)), r - A @ g)
            # within Dikin's ellipsoid: no eigenvalue falls below a tenth, and the next step's metric is sound
            step, length = back @ (e - g), min(1.0, 0.9 / max(float(np.linalg.norm(e - g)), 0.9))
            while length > 1e-9 and not (there := value(x + length * step, mu)) <= now:
                length *= 0.5
            if length <= 1e-9:
                break
            x, now = x + length * step, there
            if (decrement := float(np.sum((e - g) ** 2))) * mu < ENOUGH or (decrement < 1e-2 and mu > last):
                break
    return x
