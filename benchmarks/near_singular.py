"""Errors of accelerations near a singular position, and the errors that sarrus reports: ladders whose rods are almost flat.

Two branches of a parallelogram meet in the flat position. On each branch all rods rotate by the same angle s, so that q = q_flat + s u, v = s' u and
a = s'' u with a constant vector u. Lagrange's equation of this degree of freedom is s'' = u (tau - h) / (u M u), which has no cancellation at any
angle. The flat ladder has two degrees of freedom; the reference of its acceleration is the pseudo-inverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sarrus

from .loop_models import almost_flat
from .tables import Run

Array = NDArray[np.float64]
# [rad] smallest angle that differs from the flat position numerically: the square root of the regularisation
DISTINCT = 5e-8


def on_the_branch(robot: Any, q: Array, v: Array, tau: Array) -> Array:
    """Return the accelerations (n, nv), exact to rounding."""
    u = np.zeros(robot.nv)
    for name in robot.joints:
        u[robot.joint(name).v_slice] = 1 if robot.joint(name).parent == "ground" else -1
    s = ((tau - robot.bias_forces(q, v)) @ u) / (robot.mass_matrix(q) @ u @ u)
    return np.asarray(s[:, None] * u)


def where_flat(robot: Any, q: Array, v: Array, tau: Array) -> Array:
    """Return the acceleration in the null space of J, after setting the entries of J to zero that vanish in the flat position."""
    J, M, f = robot.constraint_jacobian(q), robot.mass_matrix(q), tau - robot.bias_forces(q, v)
    out = np.empty_like(v)
    for k, (Jk, gamma) in enumerate(zip(np.where(np.abs(J) < 1e-7, 0.0, J), robot.constraint_bias(q, v), strict=True)):
        _, s, V = np.linalg.svd(Jk)
        free = V[(s > 1e-6).sum() :].T
        a = np.linalg.pinv(Jk, rcond=1e-6) @ gamma
        out[k] = a + free @ np.linalg.solve(free.T @ M[k] @ free, free.T @ (f[k] - M[k] @ a))
    return out


def exact(robot: Any, angle: float, q: Array, v: Array, tau: Array) -> Array:
    """Return the exact acceleration: that of the branch, or that of the flat ladder if `angle` [rad] is below DISTINCT / 2."""
    return (on_the_branch if angle > DISTINCT / 2 else where_flat)(robot, q, v, tau)


def off(a: Array, truth: Array) -> Array:
    """Return the relative errors (n,) of accelerations a."""
    return np.asarray(np.linalg.norm(a - truth, axis=1) / np.linalg.norm(truth, axis=1))


class Row(NamedTuple):
    """Medians of the relative error and of the reported error; NaN if the status is 2, no result."""

    ladder: int
    angle: float
    error: float
    told: float
    answered: float


def rows(run: Run) -> Iterator[Row]:
    """Measure the errors for several distances from the flat position."""
    angles = 10.0 ** np.arange(-1.0, -16.1, run.of(-0.25, -1.0, -5.0))
    for n in (1, 3):
        run.tell(f"ladder({n})")
        robot = sarrus.mechanisms.four_bar_ladder(n)
        for angle in map(float, angles):
            q, v, tau = map(np.array, almost_flat(robot, angle, run.of(200, 50, 4)))
            a, loops, status = robot.forward_dynamics(q, v, tau, return_reactions=True, return_status=True)
            good, error, told = status == 0, np.nan, np.nan
            if good.mean() > 0.5:
                error = float(np.median(off(a, exact(robot, angle, q, v, tau))[good]))
                told = float(np.median(loops.error[good]))
            yield Row(n, angle, error, told, float(good.mean()))


def markdown(rows: Sequence[Row]) -> str:
    """Return a table with a row for each angle."""
    lines = ["| ladder | from flat | error | LoopReactions.error | answered |", "|---|---|---|---|---|"]
    return (
        "\n".join(
            [
                *lines,
                *(
                    f"| {r.ladder} | {r.angle:.0e} rad | {r.error:.0e} | {r.told:.0e} | {r.answered:.0%} |"
                    for r in rows
                ),
            ]
        )
        + "\n"
    )


def plot(path: Path, rows: Sequence[Row], run: Run) -> None:
    """Draw the true and the reported error over the distance from the flat position."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    ax = figure.add_subplot()
    for n, style in ((1, "-"), (3, "--")):
        angles, error, told = zip(*((r.angle, r.error, r.told) for r in rows if r.ladder == n))
        bars = "one parallelogram" if n == 1 else f"{n} in a row"
        ax.loglog(angles, error, style, color="black", label=f"{bars}: error")
        ax.loglog(angles, told, style, color="black", alpha=0.4, label=f"{bars}: LoopReactions.error")
    ax.set_xlabel("distance from the singular position [rad]")
    ax.set_ylabel("relative error of the acceleration")
    ax.legend(frameon=False)
    figure.savefig(path, dpi=120)
