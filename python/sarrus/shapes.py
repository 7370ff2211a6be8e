"""Meshes of what a mechanism is drawn with: bars, pins, sleeves, balls and pedestals.

All are surfaces of revolution: a profile of (radius, height) pairs turned about an axis. A mesh is its vertices (k, 3) [m] and
triangles (m, 3) of indices into them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .skeleton import Place
from .state import Array

Triangles = tuple[Array, NDArray[np.int64]]


def revolved(profile: ArrayLike, at: Array, axis: Array, sides: int = 20) -> Triangles:
    """A profile of (radius, height) pairs turned about an axis through a point. A point given twice makes a sharp edge."""
    radius, height = np.asarray(profile, dtype=np.float64).T
    _, _, across = np.linalg.svd(axis[None])
    first = across[1]
    second = np.cross(axis, first)
    angle = np.linspace(0.0, 2 * np.pi, sides, endpoint=False)[:, None]
    circle = np.cos(angle) * first + np.sin(angle) * second
    vertices = at + radius[:, None, None] * circle + height[:, None, None] * axis
    row, column = np.arange(len(radius) - 1)[:, None] * sides, np.arange(sides)
    a, b = row + column, row + (column + 1) % sides
    faces = np.stack([a, b, b + sides, a, b + sides, a + sides], axis=-1)
    return vertices.reshape(-1, 3), faces.reshape(-1, 3)


def capsule(a: Array, b: Array, radius: float) -> Triangles:
    """A round bar with round ends."""
    length = float(np.linalg.norm(b - a))
    axis = (b - a) / length if length > 0 else np.array([0.0, 0.0, 1.0])
    angle = np.linspace(0.0, np.pi / 2, 5)
    top = np.stack([radius * np.cos(angle), length + radius * np.sin(angle)], axis=1)
    bottom = np.stack([radius * np.cos(angle), -radius * np.sin(angle)], axis=1)[::-1]
    return revolved(np.concatenate([bottom, top]), a, axis, 14)


def hinge(place: Place, radius: float) -> Triangles:
    """A pin along the axis of what turns, a sleeve around what slides, a ball where there is not one axis."""
    if place.kind == "Fixed":
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
    if place.axis is None:
        angle = np.linspace(-np.pi / 2, np.pi / 2, 9)
        return revolved(1.5 * radius * np.stack([np.cos(angle), np.sin(angle)], axis=1), place.point, np.eye(3)[2])
    wide, half = (1.3, 2.2) if place.kind != "Revolute" else (1.15, 1.6)
    r, h = wide * radius, half * radius
    edge = 0.15 * radius
    profile = [(0, -h), (r - edge, -h), (r - edge, -h), (r, edge - h), (r, edge - h), (r, h - edge), (r, h - edge),
               (r - edge, h), (r - edge, h), (0, h)]  # fmt: skip
    return revolved(profile, place.point, place.axis)


def cone(at: Array, side: Array, radius: float) -> Triangles:
    """A pedestal with its tip at an anchor."""
    h, r = 4.0 * radius, 2.4 * radius
    return revolved([(0.6 * radius, 0), (r, h), (r, h), (r, 1.15 * h), (r, 1.15 * h), (0, 1.15 * h)], at, side)


def together(parts: Sequence[Triangles]) -> Triangles:
    """Several meshes as one."""
    counts = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    return (
        np.concatenate([vertices for vertices, _ in parts]),
        np.concatenate([faces + start for (_, faces), start in zip(parts, counts[:-1], strict=True)]),
    )
