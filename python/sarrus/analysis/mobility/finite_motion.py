"""With how many degrees of freedom a mechanism can move away from a configuration, whatever its velocities there promise.

Where all constraints are independent the velocities are the beginning of motions. Elsewhere the mechanism is moved: steps along random
possible velocities, of two sizes, each followed by closing the loops again. If they come back it is stuck; if they stay near where they
aimed, it has all these freedoms; else (a bifurcation) the freedoms are counted in the configurations reached, by what further small
steps from there can reach. Where the steps contradict each other the answer is None. Velocities are scaled, as in :mod:`sarrus.analysis.scaling`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._arrays import Array, NDArray
from ..scaling import PRESENT, ScaledLoops, null_space

STEP, SMALL_STEP = 0.02, 1e-3  # of the largest velocity [rad, l]: to a configuration nearby, and about there


@dataclass(frozen=True, eq=False)
class Neighbour:
    """A configuration nearby, and a basis (nv, degrees of freedom) of the scaled velocities with which it can really move."""

    q: Array
    tangent: Array


def finite_mobility(loops: ScaledLoops, q: Array, tolerance: float) -> tuple[int | None, str, list[Neighbour]]:
    """Dimension of the motions through q, how it was found, and configurations nearby."""
    dimension, because, neighbours = _branches(loops, q, tolerance)
    if dimension and not loops.holonomic.all():  # velocities are held besides
        held = [(n, loops.jacobian(n.q)[~loops.holonomic] @ n.tangent) for n in neighbours]
        neighbours = [Neighbour(n.q, n.tangent @ null_space(A, PRESENT)) for n, A in held]
        dimension = max((n.tangent.shape[1] for n in neighbours), default=None)
    return dimension, because, [n for n in neighbours if n.tangent.shape[1] == dimension]


def _branches(loops: ScaledLoops, q: Array, tolerance: float) -> tuple[int | None, str, list[Neighbour]]:
    """The same for the configurations that close the loops, whatever else holds velocities."""
    J = loops.jacobian(q)[loops.holonomic]
    N = null_space(J, tolerance)
    d = N.shape[1]
    if d == 0:
        return 0, "nothing moves here", []
    rng = np.random.default_rng(0)
    count = min(d, 8) + 4
    aim = _largest_one(rng.standard_normal((count, d)) @ N.T)
    step = np.where(np.arange(count) % 2, STEP / 4, STEP)
    ends, went, known = _walk(loops, q, aim, step)
    straight = known & (np.abs(went - aim).max(axis=1) < 0.2)
    independent = len(J) + d == loops.robot.nv
    if independent or straight.all():
        neighbours = [
            Neighbour(end, np.linalg.svd(loops.jacobian(end)[loops.holonomic])[2][-d:].T) for end in ends[straight]
        ]
        steps = f"{count} random steps along possible velocities could be taken"
        return d, "the constraints are independent here" if independent else steps, neighbours[:4]

    for _ in range(2):  # once more, where the steps led: a branch is followed, a dead end is left
        ends, went, known = _walk(loops, q, _largest_one(went @ N @ N.T), step)
    far = np.abs(went).max(axis=1)
    if (known & (far < 0.02)).all():
        return 0, f"{count} random steps along possible velocities all led back", []
    moved = known & (far > 0.8) & (far < 1.25)
    per_size = [[_tangent(loops, end, rng) for end in ends[moved & (step == size)][:4]] for size in (STEP, STEP / 4)]
    neighbours = [n for there in per_size for n in there if n is not None and n.tangent.shape[1] > 0]
    most = [max((n.tangent.shape[1] for n in there if n is not None), default=0) for there in per_size]
    if None in (*per_size[0], *per_size[1]) or most[0] != most[1] or not neighbours:
        return None, "undecided: steps of different sizes and directions do not agree", neighbours
    what = "bifurcation: of" if most[0] < d else "of"
    return most[0], f"{what} the largest branch, from {len(neighbours)} configurations nearby", neighbours


def _largest_one(v: Array) -> Array:
    """Rows scaled so that their largest entry is one."""
    return np.asarray(v / np.abs(v).max(axis=1, keepdims=True, initial=1e-300))


def _walk(loops: ScaledLoops, q: Array, aim: Array, step: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Steps along scaled velocities (k, nv) and onto the loops: where they end, how far they went per step, and whether that is known."""
    ends, left = loops.close(loops.step(q, step[:, None] * aim))
    # a residual of x^2 is all that is seen of being x away from a double root
    return ends, loops.difference(q, ends) / step[:, None], np.sqrt(left) < 0.01 * step


def _tangent(loops: ScaledLoops, q: Array, rng: np.random.Generator) -> Neighbour | None:
    """Which of the velocities that J allows at q can be followed; None where that is not clear.

    J alone would not do: a mechanism that carries along a structure at its dead centre has a velocity everywhere that leads nowhere.
    """
    N = null_space(loops.jacobian(q)[loops.holonomic], PRESENT)
    d = N.shape[1]
    directions = np.linalg.qr(rng.standard_normal((d, d)))[0]
    for aim in (directions[:8] * np.sqrt(d / 8), directions) if d > 16 else (directions,):
        _, went, known = _walk(loops, q, aim @ N.T, np.full(len(aim), SMALL_STEP))
        _, share, V = np.linalg.svd(went @ N)
        clear = known.all() and not ((share > 0.05) & (share < 0.3)).any()
        followed = int((share > 0.1).sum())
        if clear and followed < len(aim) // 2:  # a few of many directions are enough where they all lead to the same
            break
    return Neighbour(q, N @ V[:followed].T) if clear else None
