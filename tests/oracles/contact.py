"""Slow search for the distance of convex shapes: the largest gap over all directions.

For two convex sets with supports s(n) = max of n.x, the gap along n is -(s_A(-n) + s_B(n)). The largest gap is their distance or, if negative, the
least depth of penetration. Separated boxes with radii (a point and a segment are such boxes) are a least squares problem with bounds. Otherwise
directions are tried, first all around and then ever closer to the best one. No features of shapes are used.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear
from scipy.spatial import ConvexHull

from sarrus.shapes import Box, Capsule, ConvexPoints, Cylinder, Ellipsoid, Plane, Point, Sphere


def support(shape, X, n):
    """Return (m,) max of n.x over the shape, for directions n (m, 3)."""
    at = n @ X.translation
    local = n @ X.rotation
    if isinstance(shape, Point):
        return at
    if isinstance(shape, Sphere):
        return at + shape.radius
    if isinstance(shape, Capsule):
        return at + shape.radius + np.abs(local[:, 2]) * shape.length / 2
    if isinstance(shape, Box):
        return at + np.abs(local) @ np.array(shape.size) / 2
    if isinstance(shape, Cylinder):
        return at + shape.radius * np.hypot(local[:, 0], local[:, 1]) + np.abs(local[:, 2]) * shape.length / 2
    if isinstance(shape, Ellipsoid):
        return at + np.linalg.norm(local * shape.semi_axes, axis=1)
    if isinstance(shape, ConvexPoints):
        return at + (local @ np.array(shape.points).T).max(axis=1)
    assert isinstance(shape, Plane)
    return np.where(np.abs(local[:, 2] - 1.0) < 1e-12, at, np.inf)


def gap(a, X, b, Y, n):
    """Return by how much each direction (m, 3) separates the two shapes."""
    return -support(a, X, -n) - support(b, Y, n)


def distance(a, X, b, Y, rng):
    """Return (distance, direction) of two shapes."""
    if isinstance(b, Plane):
        n = Y.rotation[:, 2][None]
        return gap(a, X, b, Y, n)[0], n[0]
    apart = None if isinstance(a, Cylinder) or isinstance(b, Cylinder) else _of_cores(a, X, b, Y)
    if apart is not None:
        return apart
    n = rng.normal(size=(4000, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    n = np.concatenate([n, X.rotation.T, -X.rotation.T, Y.rotation.T, -Y.rotation.T])
    best, width = n[np.argsort(gap(a, X, b, Y, n))[-6:]], 0.1
    while width > 1e-11:
        tried = best[:, None] + width * rng.normal(size=(len(best), 60, 3))
        tried = np.concatenate([best, (tried / np.linalg.norm(tried, axis=2)[..., None]).reshape(-1, 3)])
        best, width = tried[np.argsort(gap(a, X, b, Y, tried))[-6:]], width * 0.75
    return gap(a, X, b, Y, best[-1:])[0], best[-1]


def _of_cores(a, X, b, Y):
    """Return (distance, direction) of boxes, segments and points with radii; None if their cores are not separated."""
    columns = []
    for shape, Z, sign in ((a, X, 1.0), (b, Y, -1.0)):
        half = getattr(shape, "size", (0.0, 0.0, getattr(shape, "length", 0.0)))
        columns.append(sign * Z.rotation * np.array(half) / 2)
    A = np.hstack(columns)
    A, between = A[:, np.abs(A).max(axis=0) > 0.0], X.translation - Y.translation
    d = between + A @ lsq_linear(A, -between, bounds=(-1.0, 1.0), tol=1e-15).x if A.size else between
    length = np.linalg.norm(d)
    if length < 1e-6:
        return None
    return length - getattr(a, "radius", 0.0) - getattr(b, "radius", 0.0), d / length


def outside(shape, X, p):
    """Return the signed distance of points (m, 3) from a shape; negative inside."""
    x = (p - X.translation) @ X.rotation
    if isinstance(shape, Point | Sphere):
        return np.linalg.norm(x, axis=1) - getattr(shape, "radius", 0.0)
    if isinstance(shape, Plane):
        return x[:, 2]
    if isinstance(shape, ConvexPoints):  # of its facets' planes; beyond an edge it is more
        facets = ConvexHull(shape.points).equations
        return (x @ facets[:, :3].T + facets[:, 3]).max(axis=1)
    if isinstance(shape, Capsule):
        x[:, 2] -= np.clip(x[:, 2], -shape.length / 2, shape.length / 2)
        return np.linalg.norm(x, axis=1) - shape.radius
    if isinstance(shape, Ellipsoid):  # to first order, where it is near
        level = np.linalg.norm(x / shape.semi_axes, axis=1)
        return (level - 1.0) * level / np.linalg.norm(x / np.square(shape.semi_axes), axis=1)
    if isinstance(shape, Box):
        over = np.abs(x) - np.array(shape.size) / 2
    else:
        over = np.stack([np.hypot(x[:, 0], x[:, 1]) - shape.radius, np.abs(x[:, 2]) - shape.length / 2], axis=1)
    return np.linalg.norm(np.maximum(over, 0.0), axis=1) + np.minimum(over.max(axis=1), 0.0)
