"""Steps onto the loops, for many configurations at once, each taken only where it leaves less open.

With phi the residual of all loops, J its derivative and x a velocity, all scaled as in :mod:`.scaled`, the steps are

  x = argmin |J x + phi|^2 + mu |x|^2,   q <- integrate(q, x),   mu in proportion to |phi|,

Levenberg and Marquardt's on the manifold of configurations, which tend to Newton's steps of least motion. They converge quadratically
also where rows of J depend on one another, as those of planar loops always do, and where solutions are not isolated and J loses rank on
them (Fan and Yuan, Computing 74, 2005); they halve the way to a double root. A few undamped steps take the last digits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._arrays import Array

SOLVED = 1e-13  # where damped steps end; a double root is then known to 3e-7
LONGEST = 0.5  # step [rad, sizes]: from farther away they would lead anywhere
STUCK = 1e8  # damping at which a start has come to its end
SMALL = 1e-6  # relative singular values below it are left alone by undamped steps

Residual = Callable[[Array], Array]  # q (k, nq) to (k, rows)
Jacobian = Callable[[Array], Array]  # q (k, nq) to (k, rows, nv)
Step = Callable[[Array, Array], Array]  # q (k, nq), x (k, nv) to (k, nq)


def damped_steps(
    q: Array, residual: Residual, jacobian: Jacobian, step: Step, *, count: int = 100, damping: float = 1.0
) -> tuple[Array, Array]:
    """Configurations (k, nq) on from q that close the loops as well as they can, and the residuals (k,) that are left."""
    q, phi = q.copy(), residual(q)
    left, dampings = sizes(phi), np.full(len(q), damping)
    for _ in range(count):
        far = np.flatnonzero((left > SOLVED) & (left < np.inf) & (dampings < STUCK))
        if far.size == 0:
            break
        J = jacobian(q[far])
        nv = J.shape[2]
        held = np.sqrt(dampings[far] * left[far])[:, None, None] * np.eye(nv, nv + 1)
        # least squares by the triangle alone: the right-hand side goes along as the last column
        both = np.concatenate([J, -phi[far, :, None]], axis=2)
        R = np.asarray(np.linalg.qr(np.concatenate([both, held], axis=1), mode="r"))
        x = np.linalg.solve(R[:, :nv, :nv], R[:, :nv, nv:])[..., 0]
        better = _attempt(q, phi, left, far, x, residual, step)
        dampings[far] = np.clip(dampings[far] * np.where(better, 0.3, 4.0), 1e-6, STUCK)
    return q, left


def undamped_steps(
    q: Array, residual: Residual, jacobian: Jacobian, step: Step, *, count: int = 3
) -> tuple[Array, Array]:
    """The same, by steps that are made where the loops are all but closed."""
    q, phi = q.copy(), residual(q)
    left = sizes(phi)
    for _ in range(count):
        near = np.flatnonzero((left < 1e3 * SOLVED) & (left > 0.0))
        if near.size == 0:
            break
        x = -(np.linalg.pinv(jacobian(q[near]), SMALL) @ phi[near, :, None])[..., 0]
        _attempt(q, phi, left, near, x, residual, step)
    return q, left


def sizes(x: Array) -> Array:
    """(k,) norms of rows; what is not a number is farthest."""
    with np.errstate(over="ignore"):
        size = np.linalg.norm(x, axis=1)
    return np.where(np.isnan(size), np.inf, size)


def _attempt(
    q: Array, phi: Array, left: Array, which: NDArray[np.intp], x: Array, residual: Residual, step: Step
) -> NDArray[np.bool_]:
    """Take the steps x (k, nv), of those configurations, that bring something, and say which."""
    x = x * np.minimum(1.0, LONGEST / np.maximum(np.abs(x).max(axis=1, initial=0.0), LONGEST))[:, None]
    there = step(q[which], x)
    phi_there = residual(there)
    left_there = sizes(phi_there)
    better: NDArray[np.bool_] = left_there < left[which]
    went = which[better]
    q[went], phi[went], left[went] = there[better], phi_there[better], left_there[better]
    return better
