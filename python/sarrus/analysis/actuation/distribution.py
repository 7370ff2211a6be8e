"""Redundant motors within their limits: a small quadratic program, solved exactly."""

from __future__ import annotations

import numpy as np

from ..._arrays import Array

ROUNDING = 1e-10  # by which limits may be missed, relative to the largest effort or limit


def within_limits(u: Array, moves: Array, lower: Array, upper: Array) -> tuple[Array, float]:
    """Efforts u + moves y (nu,) between the limits, of least |y|, and by how much the limits must be missed (then of least violation).

    `moves` (nu, k) are the directions in which the efforts may be changed.
    """
    G, g = np.concatenate([moves, -moves]), np.concatenate([lower - u, u - upper])
    G, g = G[np.isfinite(g)], g[np.isfinite(g)]
    y = _least_distance(G, g)
    known = np.concatenate([u, lower, upper])
    if (g - G @ y).max(initial=0.0) <= ROUNDING * np.abs(known[np.isfinite(known)]).max():
        return np.clip(u + moves @ y, lower, upper), 0.0
    # the least violation t of any y: |y| counts next to nothing beside it
    little = 1e-4
    y_and_t = _least_distance(np.column_stack([G / little, np.ones(len(g))]), g)
    return u + moves @ (y_and_t[:-1] / little), float(y_and_t[-1])


def _least_distance(G: Array, g: Array) -> Array:
    """y of least norm with G y >= g, if there is one (Lawson and Hanson, Solving Least Squares Problems, 1974, 23.27).

    Of the residual r of least |[G g]^T w - (0, 1)| with w >= 0, y is -r[:-1] / r[-1], and w says which limits hold it.
    """
    size = np.abs(g).max(initial=0.0)
    if size == 0.0 or not (g > 0.0).any():
        return np.zeros(G.shape[1])
    E = np.column_stack([G, g / size])
    E = (E / np.linalg.norm(E, axis=1, keepdims=True)).T
    w = _non_negative(E, np.eye(len(E))[-1])
    return np.asarray(np.linalg.lstsq(G[w > 0.0], g[w > 0.0], rcond=1e-12)[0])


def _non_negative(E: Array, f: Array) -> Array:
    """w >= 0 of least |E w - f|, by active sets (Lawson and Hanson 1974, 23.10)."""
    w, used = np.zeros(E.shape[1]), np.zeros(E.shape[1], dtype=bool)
    for _ in range(3 * len(w) + 10):
        r = f - E @ w
        gain = np.where(used, -np.inf, E.T @ r)
        j = int(gain.argmax())
        if gain[j] <= 1e-12 * np.linalg.norm(r):
            break
        used[j] = True
        while True:
            x = np.zeros(len(w))
            x[used] = np.linalg.lstsq(E[:, used], f, rcond=None)[0]
            leaving = used & (x <= 0.0)
            if not leaving.any():
                break
            # only as far as all of them stay positive
            shares = np.where(leaving, w / np.where(leaving, w - x, 1.0), np.inf)
            w = w + shares.min() * (x - w)
            used &= shares > shares.min()
            w[~used] = 0.0
        w = x
        if not used[j]:
            break  # its gain was rounding
    return w
