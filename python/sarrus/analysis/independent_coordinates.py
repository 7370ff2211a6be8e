"""Coordinates in which a closed mechanism's motion is written, and how its velocities hang on theirs.

Coordinates y have the rates E v: some of the mechanism's own velocities (rows of the identity), or components of a frame's. With the
constraints J v = c the velocities follow, v = G y-dot + g, from

  J G = 0, E G = 1                 and, differentiated,  J G-dot = -J-dot G, E G-dot = -E-dot G

Of more coordinates than degrees of freedom only some rates are possible, those that P = (E N)(E N)^+ keeps, N spanning what J leaves free.
Then E G = P is the most that one can ask; of the G that are right for all possible rates it is the least: G = N (E N)^+, G P = G.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array
from ..description.joints import PARAMETERS
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, StateError
from .assembly.closing import closing
from .linear_algebra import FreeMotions, applied, both_solutions, orthonormal, solutions, transposed

Coordinates = str | Sequence[str | tuple[str, int]] | None


class Dependence:
    """v = G y-dot + g and a = G y-ddot + (G-dot y-dot + g-dot) in a state (q, v), for rates E v of coordinates, or of a task's components.

    StateError where the coordinates do not determine the motion, or where they must not be more than there are degrees of freedom and
    are; in a batch such states are NaN.
    """

    def __init__(
        self, robot: LoopFunctions, q: ArrayLike, v: ArrayLike, coordinates: Coordinates, time: ArrayLike | None, *,
        task: str | tuple[str, str] | None = None, independent: bool,
    ) -> None:  # fmt: skip
        self.gamma = robot.constraint_bias(q, v, time=time)  # which also says what is wrong with the state
        v = np.asarray(v, dtype=np.float64)
        self.v = v = np.where(np.isfinite(v) & np.isfinite(self.gamma).all(axis=-1, keepdims=True), v, np.nan)
        free = loop_motions(robot, robot.constraint_jacobian(q, time=time))
        names, E, E_dot = chosen(robot, coordinates, free) if task is None else of_task(robot, q, v, task)
        J_dot = robot.constraint_jacobian_derivative(q, v, time=time, return_status=True)[0]
        freedom, N = free.same_freedom(), free.basis
        if (free.freedom >= 0).any():
            N = N[..., :freedom]
        else:  # no state says how many freedoms there are
            freedom, N = len(names), np.full((*N.shape[:-1], len(names)), np.nan)
        seen = E @ N
        solution = solutions(seen, np.linalg.norm(E, axis=(-2, -1)))
        lost = solution.freedom > 0
        listed = ", ".join(names) or "no coordinates"
        if independent and len(names) > freedom:
            raise StateError(f"{listed} are not independent: there are {freedom} degrees of freedom")
        if len(names) < freedom or (lost.ndim == 0 and lost):
            held = freedom - int(solution.freedom.max(initial=0))
            raise StateError(
                f"{listed} determine {held} of {freedom} degrees of freedom: the mechanism moves while they rest"
            )
        self.names, self.E, self.E_dot = names, E, E_dot
        self.inverse = free.inverse
        self.G = np.where(lost[..., None, None], np.nan, N @ solution.inverse)
        # G-dot = K + N (...): K solves the constraints' part, the rest follows from E G = P and the rate of P, D + D^T
        K = -free.inverse @ (J_dot @ self.G)
        change = E @ K + E_dot @ self.G
        D = change - seen @ (solution.inverse @ change)
        self.derivative = K + self.G @ (transposed(D) - change)

    def solve(self, g: Array, rates: Array) -> Array:
        """x (..., nv) with J x = g (..., nc) and E x = rates (..., k)."""
        x = applied(self.inverse, g)
        return x + applied(self.G, rates - applied(self.E, x))


def chosen(robot: LoopFunctions, coordinates: Coordinates, free: FreeMotions) -> tuple[tuple[str, ...], Array, Array]:
    """Names of coordinates, E (k, nv) that picks their velocities, and its rate."""
    if coordinates is None:
        columns = showing(free)
    else:
        expected = "coordinates are 'actuated', or a sequence of joints' names"
        if isinstance(coordinates, str):
            if coordinates != "actuated":
                raise ModelError(f"{expected}, such as ['{coordinates}']")
            coordinates = robot.actuated
        elif not np.iterable(coordinates):
            raise TypeError(f"{expected}; got {coordinates!r}")
        columns = [k for which in coordinates for k in _columns(robot, which)]
    names = velocity_names(robot)
    if len(set(columns)) < len(columns):
        raise ModelError(f"a coordinate is named twice among {', '.join(names[k] for k in columns)}")
    E = np.eye(robot.nv)[columns]
    return tuple(names[k] for k in columns), E, np.zeros_like(E)


def velocity_names(robot: LoopFunctions) -> list[str]:
    """One for each velocity: "joint", or "joint[1]" where there are several."""
    return [
        joint.name if joint.nv == 1 else f"{joint.name}[{k}]"
        for joint in (robot.joint(name) for name in robot.joints)
        for k in range(joint.nv)
    ]


def of_task(
    robot: LoopFunctions, q: ArrayLike, v: Array, task: str | tuple[str, str]
) -> tuple[tuple[str, ...], Array, Array]:
    """Names of the components of a frame's velocity in the world's axes, E (..., k, nv) and its rate."""
    frame, rows = frame_components("task", task)
    E = robot.jacobian(q, frame, expressed_in="world_aligned")[..., rows, :]
    E_dot = robot.jacobian_derivative(q, v, frame, expressed_in="world_aligned")[..., rows, :]
    return tuple(f"{frame} {PARAMETERS[k]}" for k in rows), E, E_dot


def frame_components(what: str, value: str | tuple[str, str]) -> tuple[str, list[int]]:
    """A frame, and the places of the components of its velocity that were named: all six where it stands alone."""
    if isinstance(value, str):
        return value, list(range(6))
    if not isinstance(value, Sequence) or len(value) != 2 or not isinstance(value[0], str):  # type: ignore[redundant-expr]
        raise TypeError(f"{what} is a frame, or (frame, components) such as ('tip', 'tx tz'); got {value!r}")
    return value[0], component_rows(value[1])


def component_rows(components: str) -> list[int]:
    """Places of some of rx ry rz tx ty tz in a spatial vector; ModelError for others."""
    if not isinstance(components, str):
        raise TypeError(f"components are some of {' '.join(PARAMETERS)}, as one str; got {components!r}")
    names = components.split()
    for name in names:
        if name not in PARAMETERS:
            raise ModelError(f"'{name}' is not one of {' '.join(PARAMETERS)}")
    return [PARAMETERS.index(name) for name in names]


def joint_velocity(robot: LoopFunctions, q: Array, name: str) -> Array:
    """E (..., joint's nv, nv) of a joint's velocities E v, also where it closes a loop; what drives such a joint does not count."""
    joint = robot.joint(name)
    if not joint.closes_loop:
        return np.eye(robot.nv)[joint.v_slice]
    if not joint.type.constant_subspace and any(j.laws for j in robot.description.joints if j.name == name):
        raise ModelError(
            f"joint '{name}' is carried along by laws of time, and what its motor moves depends on these: drive another joint"
        )
    rows = slice(joint._all_v.start - robot.nv, joint._all_v.stop - robot.nv)
    return np.asarray(robot._loop_joint_jacobian(q)[..., rows, :])


def _columns(robot: LoopFunctions, which: str | tuple[str, int]) -> range:
    match which:
        case str(name):
            index = None
        case (str(name), Integral() as index):
            pass
        case _:
            raise TypeError(f"a coordinate is a joint's name, or (name, index); got {which!r}")
    joint = robot._tree_joint(name, "velocity in v")
    columns = range(robot.nv)[joint.v_slice]
    if index is None:
        return columns
    if not 0 <= index < joint.nv:
        raise ModelError(f"joint '{name}' has {joint.nv} velocities; there is no ('{name}', {index})")
    return columns[index : index + 1]


def showing(free: FreeMotions, first: Sequence[int] = ()) -> list[int]:
    """Velocities in which the free motions show best, those given among them: a Cholesky factorisation of their projection.

    Those given first, then the largest pivots.
    """
    count = free.same_freedom()
    P = free.basis @ transposed(free.basis)
    P = np.nan_to_num(P).sum(axis=tuple(range(P.ndim - 2)))
    columns: list[int] = []
    for _ in range(count):
        k = first[len(columns)] if len(columns) < len(first) else int(np.diagonal(P).argmax())
        columns.append(k)
        P = P - np.outer(P[:, k], P[k]) / P[k, k]
    return sorted(columns)


def loop_motions(robot: LoopFunctions, J: Array) -> FreeMotions:
    """What solves J x = g of the mechanism's constraints, whose rank is decided where radians and metres compare: in any units."""
    loops = closing(robot, (), ()).loops
    R, C = loops.row_scale[:, None], loops.column_scale[:, None]
    solution, idle = both_solutions(R * J * C[:, 0])
    basis, idle = orthonormal(C * solution.basis)[0], orthonormal(R * idle)[0]
    # of all x that solve it the shortest, and nothing for what no x gives
    inverse = C * solution.inverse * R[:, 0]
    inverse = inverse - basis @ (transposed(basis) @ inverse)
    return FreeMotions(basis, solution.freedom, inverse - (inverse @ idle) @ transposed(idle))
