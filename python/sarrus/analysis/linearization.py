"""The motion near a state, to first order, in independent coordinates.

Deviations of the configuration are velocities, q = integrate(q0, G y), in as many coordinates y as the holonomic rows leave free;
deviations of the velocity v are W u, in as many as all rows leave free: rows that hold velocities only (rolling, Pfaffian) take away from the
second. Near a motion at v a deviation d moves on at d-dot = dv + [d, v], the bracket being that of the joints whose velocities are no rates.

The rates of y and u are the exact derivatives of forward dynamics along the loops. Where there are none (rows that are a function of q, of
which nobody knows the rate; singular positions) they are differences of the core's forward dynamics between states that satisfy every row,
all in one batch, extrapolated by Richardson's rule with the step of which each entry is surest (Ridders 1982).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays import Array, checked_count, checked_number, real_rows
from .._core import Status
from .._showing import Brief
from ..dynamics.derivatives import forward_dynamics as forward_dynamics_derivatives
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.options import TimeOptions, Wrenches
from ..errors import ModelWarning, StateError
from .actuation.efforts import actuation_matrix
from .independent_coordinates import Coordinates, chosen, showing, velocity_names
from .linear_algebra import FreeMotions, applied, solutions, transposed
from .scaling import sliding

# the largest step, in radians and parts of the mechanism's length (of velocities, of the largest), and how often it is halved: large steps suffer
# from curvature, small ones from rounding, and between them one is good
STEP, HALVINGS = 0.05, 10
# of the largest entry of A
DOUBTFUL = 1e-5
# a velocity at which Coulomb friction has a direction, of the largest
MOVING = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Modes(Brief):
    """Motions exp(eigenvalue t) near a state, slowest first; of a conjugate pair the one with positive imaginary part comes first.

    Attributes
    ----------
    eigenvalues : (..., n) complex [1/s]; those of A
    frequencies : (..., n) |eigenvalue| [rad/s], that of the undamped oscillation
    damping : (..., n) ratio -Re/|eigenvalue|: 1 and more no oscillation, negative unstable; NaN where the eigenvalue is zero
    states : (..., n, n) complex, row k the deviation (y, u) of mode k
    shapes : (..., n, nv) complex, row k how the joints move in it, as velocities; the largest entry is 1
    """

    eigenvalues: NDArray[np.complex128]
    frequencies: Array
    damping: Array
    states: NDArray[np.complex128]
    shapes: NDArray[np.complex128]
    _of: Linearization

    def configurations(self, mode: int, amplitude: float = 0.2, count: int = 60) -> Array:
        """(count, nq) over a period of the mode's motion, without its growth or decay: what a viewer shows.

        Parameters
        ----------
        mode : counted as in `eigenvalues`
        amplitude : of the joint that moves most [rad, m]
        count : how many

        Raises
        ------
        StateError
            The loops do not close so far from where they were linearised.

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> pendulum = sarrus.mechanisms.pendulum()
        >>> swing = pendulum.linearize([0.0], [0.0]).modes().configurations(0, amplitude=0.1, count=5)
        >>> (swing[:, 0].round(3) + 0.0).tolist()
        [0.1, 0.0, -0.1, 0.0, 0.1]
        """
        if self.eigenvalues.ndim != 1:
            raise StateError("these are modes at many states: ask for the configurations of one")
        n = len(self.eigenvalues)
        mode, count = checked_count("mode", mode, 0, n - 1), checked_count("count", count)
        phase = np.exp(1j * np.linspace(0.0, 2.0 * np.pi, count))[:, None]
        away = checked_number("amplitude", amplitude, "") * (phase * self.shapes[mode]).real
        robot = self._of.mechanism
        q = robot.integrate(self._of.q, away)
        return np.asarray(robot.project_configuration(q, metric="euclidean", time=self._of.time) if robot.nc else q)


@dataclass(frozen=True, eq=False, repr=False)
class Linearization(Brief):
    """x-dot = rate + A x + B u + E d of the deviation x = (y, u) of configuration and velocity from a state, in independent coordinates.

    Attributes
    ----------
    coordinates : names of the k freedoms of the configuration, y; "joint[1]" is the second velocity of a joint, and its y the velocity
        that leads from the state to a configuration nearby in unit time
    velocities : names of the m freedoms of velocity, u; fewer where rows hold velocities only, which the first of `coordinates` then are
    A : (..., k + m, k + m) [per s]
    B : (..., k + m, nu) of the efforts of the actuated joints
    E : (..., k + m, nv) of any generalised force d: a wrench on a frame is d = J^T wrench
    rate : (..., k + m) of x along the motion itself, the velocities and accelerations: its second half is zero in steady motion
    error : (..., k + m, k + m) by how much the entries of A may be off, estimated: zero where they are exact derivatives, to rounding
    configuration_basis, velocity_basis : G (..., nv, k), W (..., nv, m): deviations G y of the configuration and, y being zero, W u of v
    q, time : where
    mechanism : of which it is
    """

    coordinates: tuple[str, ...]
    velocities: tuple[str, ...]
    A: Array
    B: Array
    E: Array
    rate: Array
    error: Array
    configuration_basis: Array
    velocity_basis: Array
    q: Array
    time: ArrayLike | None
    mechanism: LoopFunctions

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the entries of x: the coordinates, and the velocities with a dot."""
        return (*self.coordinates, *(f"{name}'" for name in self.velocities))

    def modes(self) -> Modes:
        """Eigenvalues of A, as frequencies, damping and shapes.

        They tell of stability where A stays the same along the motion: at rest, or in steady motion if the coordinates see it as steady. What
        spins is a hinge of its own then, and not a free or ball joint, whose axes turn with it. Eigenvalues of zero that belong together (a
        vehicle's place, heading and speed) come out as small as the k-th root of rounding, k being how many do: 1e-8 to 1e-4 per second.

        Examples
        --------
        >>> import sarrus
        >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
        >>> pendulum.linearize([0.0], [0.0]).modes().frequencies.round(6)  # the root of g / length
        array([4.429447, 4.429447])
        """
        bad = np.asarray(~np.isfinite(self.A).all(axis=(-2, -1)))[..., None]
        values, vectors = np.linalg.eig(np.where(bad[..., None], 0.0, self.A))
        eigenvalues, vectors = values.astype(np.complex128), vectors.astype(np.complex128)
        order = np.lexsort((-eigenvalues.imag, eigenvalues.real, abs(eigenvalues)), axis=-1)
        eigenvalues = np.where(bad, np.nan, np.take_along_axis(eigenvalues, order, axis=-1))
        size = np.hypot(eigenvalues.real, eigenvalues.imag).astype(np.float64)
        states: NDArray[np.complex128] = np.take_along_axis(np.swapaxes(vectors, -1, -2), order[..., None], axis=-2)
        shapes = states[..., : len(self.coordinates)] @ transposed(self.configuration_basis)
        largest = np.zeros((*shapes.shape[:-1], 1), dtype=np.complex128)
        if shapes.size:
            largest = np.take_along_axis(shapes, abs(shapes).argmax(axis=-1, keepdims=True), axis=-1)
        largest[largest == 0.0] = 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            damping = np.where(size > 0.0, -eigenvalues.real / size, np.nan)
            return Modes(eigenvalues, size, damping, states / largest, shapes / largest, self)


def linearize(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, coordinates: Coordinates = None,
    wrenches: Wrenches | None = None, time: ArrayLike | None = None,
) -> Linearization:  # fmt: skip
    """The linear equations of motion near a state: of equilibrium, of steady motion, or any point of a trajectory.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) that satisfy the constraints
    tau : (..., nv) generalised force, which stays as it is [N m, N]; default: none
    coordinates : names of joints of the tree, or (joint, index) for one of several velocities, as many as there are freedoms of
        velocity; default: those in which the motion shows best. Where rows hold velocities only, the configuration has
        more freedoms, and their coordinates follow these
    wrenches, time : as in :meth:`forward_dynamics`; they too stay as they are

    Returns
    -------
    Linearization, with A, B, E and :meth:`~Linearization.modes`

    Raises
    ------
    StateError
        The state is off the loops; the coordinates do not determine the motion; a joint with Coulomb friction stands still, where
        motion has no linear equations; the mechanism cannot leave the state in a direction that its constraints seem to allow. Of
        many states a bad one is NaN, but for friction and for coordinates that will not do.

    Warns
    -----
    ModelWarning
        Where A is made of differences: they disagree by more than 1e-5 of the largest entry of A: motion is not smooth here, or changes within milliradians.

    References
    ----------
    Ridders, Accurate computation of F'(x) and F'(x) F''(x), 1982; Meijaard, Papadopoulos, Ruina and Schwab 2007 (the bicycle).

    Examples
    --------
    A bicycle that nobody steers, at 5 m/s: it stays upright by itself.

    >>> import sarrus
    >>> bicycle = sarrus.mechanisms.whipple_bicycle()
    >>> q = bicycle.assemble()
    >>> v = bicycle.complete_velocity(q, {"rear wheel": 5.0 / 0.3, "lean": 0.0, "steer": 0.0})
    >>> linear = bicycle.linearize(q, v, coordinates=["lean", "steer", "rear wheel"])
    >>> moving = linear.modes().eigenvalues[-4:]
    >>> moving.real.round(6).tolist()
    [-0.322866, -0.775342, -0.775342, -14.07839]
    """
    a = robot.forward_dynamics(q, v, np.zeros(robot.nv) if tau is None else tau, wrenches=wrenches, time=time)
    lead = a.shape[:-1]
    q = np.broadcast_to(real_rows("q", q, robot.nq, finite=False), (*lead, robot.nq))
    v = np.broadcast_to(real_rows("v", v, robot.nv), (*lead, robot.nv))
    _moves_where_friction_is(robot, q, v, time)

    J = robot.constraint_jacobian(q, time=time, return_status=True)[0]
    holonomic = [held for c in robot._constraints.values() for held in c.holonomic]
    free = solutions(np.broadcast_to(J, (*lead, *J.shape[-2:])))
    first = chosen(robot, coordinates)
    first, free_q = _best(free) if first is None else first, solutions(J[..., holonomic, :])
    columns = first + [k for k in _best(free_q, first) if k not in first]
    E_v, E_q = np.eye(robot.nv)[first], np.eye(robot.nv)[columns]
    all_names = tuple(velocity_names(robot)[k] for k in columns)
    names = all_names[: len(first)]
    W = _dependence(free, E_v, names)
    G = np.broadcast_to(_dependence(free_q, E_q, all_names), (*lead, robot.nv, len(columns)))

    forces = np.zeros(robot.nv) if tau is None else np.asarray(tau, dtype=np.float64)
    near = _Near(robot, q, v, forces, wrenches, time, E_q, E_v, np.asarray(G), np.asarray(W))
    exact = near.derivatives()
    A, error = near.differences() if exact is None else (exact, np.zeros_like(exact))
    k = len(columns)
    moved = robot._bracket(transposed(G), v[..., None, :], return_status=True)[0]
    A[..., :k, :k] += transposed(moved @ E_q.T)
    _is_sure(robot, A, error, all_names)

    E = np.concatenate([np.zeros((*lead, k, robot.nv)), E_v @ free.constrained_inverse(robot.mass_matrix(q))], axis=-2)
    S = actuation_matrix(robot, q) if robot.actuated else np.zeros((robot.nv, 0))
    rate = np.concatenate([applied(E_q, v), applied(E_v, a)], axis=-1)
    return Linearization(all_names, names, A, E @ S, E, rate, error, G, W, q, time, robot)


@dataclass(frozen=True, eq=False)
class _Near:
    """A state, and the deviations y and u from it: d = G y, and W u of v, with E_q G = 1 and E_v W = 1."""

    robot: LoopFunctions
    q: Array
    v: Array
    tau: Array
    wrenches: Wrenches | None
    time: ArrayLike | None
    E_q: Array
    E_v: Array
    G: Array
    W: Array

    def derivatives(self) -> Array | None:
        """[E_q v; E_v a] by y and u, exact; None where a state of the batch that has an acceleration has no derivative.

        With q along G y the velocity goes so that the rows allow it and E_v v stays: by the least kinetic energy, and back along W.
        """
        robot, G, W = self.robot, self.G, self.W
        if robot._asks_for_rows:
            return None
        how: dict[str, Any] = {"wrenches": self.wrenches, "time": self.time, "return_status": True}
        D, status = forward_dynamics_derivatives(robot, self.q, self.v, self.tau, **how)
        if np.any(status > Status.UNSOUND):
            return None
        v_y = D.velocity @ G
        back = self.E_v @ v_y
        v_y = v_y - W @ back
        a_u = D.v @ W
        a_y = D.q @ G - a_u @ back
        top = np.concatenate([self.E_q @ v_y, self.E_q @ W], axis=-1)
        return np.concatenate([top, np.concatenate([self.E_v @ a_y, self.E_v @ a_u], axis=-1)], axis=-2)

    def differences(self) -> tuple[Array, Array]:
        """The same by differences, and by how much they may be off."""
        robot, q, v, G, W, time = self.robot, self.q, self.v, self.G, self.W, self.time
        lead, k, m, here = q.shape[:-1], G.shape[-1], W.shape[-1], (..., None, None, None, slice(None))
        # states nearby: (..., step, way, deviation, coordinate), as rows of one batch; no joint moves farther than a step
        step = STEP * 0.5 ** np.arange(HALVINGS)[:, None, None, None] * np.array([1.0, -1.0])[:, None, None]
        slides = np.concatenate([np.zeros(0, dtype=bool), *(sliding(robot.joint(name).type) for name in robot.joints)])
        unit = np.where(slides, robot._length, 1.0)
        fastest = np.maximum(1.0, abs(v / unit).max(axis=-1, initial=0.0))[..., None, None]
        reach_q, reach_v = 1.0 / _largest(G, unit), fastest / _largest(W, unit)
        away_q = np.concatenate([transposed(G * reach_q), np.zeros((*lead, m, robot.nv))], axis=-2)
        away_v = np.concatenate([np.zeros((*lead, k, robot.nv)), transposed(W * reach_v)], axis=-2)
        q_near = robot.integrate(q[here], step * away_q[..., None, None, :, :])
        v_near = v[here] + step * away_v[..., None, None, :, :]
        at: TimeOptions = {
            "time": None if time is None else np.asarray(time, dtype=float)[..., None, None, None],
            "return_status": True,
        }
        if robot.nc:
            q_near = robot._configuration_plain(q_near, None, **at)[0]
            v_near = robot._least_motion(q_near, v_near, None, 1.0 - self.E_v.sum(axis=0), **at)[0]
        pushes = self.wrenches and {frame: np.asarray(w, dtype=float)[here] for frame, w in self.wrenches.items()}
        a_near = robot.forward_dynamics(q_near, v_near, self.tau[here], wrenches=pushes, **at)[0]
        rates = np.concatenate([v_near @ self.E_q.T, a_near @ self.E_v.T], axis=-1)
        reach = np.concatenate([reach_q, reach_v], axis=-1)
        slope, error = _extrapolated((rates[..., 0, :, :] - rates[..., 1, :, :]) / (2.0 * step[:, 0]))
        return transposed(slope) / reach, transposed(error) / reach


def _moves_where_friction_is(robot: LoopFunctions, q: Array, v: Array, time: ArrayLike | None) -> None:
    rough = robot._rough
    if not rough:
        return
    slow = MOVING * np.maximum(1.0, abs(v).max(axis=-1, initial=0.0))[..., None]
    for name, velocity in robot.joint_states(q, v, time=time).v.items():
        if name in rough and np.any((abs(velocity) < slow) & (np.asarray(rough[name].type.friction) > 0.0)):
            fault = "stands still and has Coulomb friction, which jumps there: motion has no linear equations"
            raise StateError(f"joint '{name}' {fault}; linearise where it moves, or without the friction")


def _is_sure(robot: LoopFunctions, A: Array, error: Array, names: tuple[str, ...]) -> None:
    if A.ndim == 2 and not np.isfinite(A).all():
        k = int(np.argmax(~np.isfinite(A).all(axis=0)))
        which = names[k] if k < len(names) else "a velocity"
        raise StateError(
            f"no state near this one deviates along '{which}' and satisfies the constraints: is the position singular?"
        )
    relative = error / np.maximum(1.0, abs(A).max(axis=(-2, -1), keepdims=True, initial=0.0))
    off = np.where(np.isfinite(A), relative, 0.0).max(initial=0.0)
    if off > DOUBTFUL:
        fault = f"the differences that make A disagree by {off:.1e} of its largest entry"
        warnings.warn(f"{fault}: motion is not smooth near this state", ModelWarning, stacklevel=3)


def _best(free: FreeMotions, first: Sequence[int] = ()) -> list[int]:
    """The velocities in which free motions of all states show best, those given first among them."""
    P, count = np.nan_to_num(free.basis @ transposed(free.basis)), free.same_freedom()
    return showing(P.sum(axis=tuple(range(P.ndim - 2))), count, first[:count])


def _dependence(free: FreeMotions, E: Array, names: tuple[str, ...]) -> Array:
    """G (..., nv, k): the free motions with E G = 1. StateError where E does not choose them."""
    freedom, listed = free.same_freedom(), ", ".join(names) or "no coordinates"
    if len(names) != freedom:
        raise StateError(f"there are {freedom} degrees of freedom, and {len(names)} coordinates: {listed}")
    N = free.basis[..., :freedom]
    solution = solutions(E @ N, np.ones(N.shape[:-2]))
    lost = solution.freedom > 0
    if lost.ndim == 0 and lost:
        held = freedom - int(solution.freedom)
        raise StateError(
            f"{listed} determine {held} of {freedom} degrees of freedom: the mechanism moves while they rest"
        )
    return np.where(lost[..., None, None], np.nan, N @ solution.inverse)


def _largest(basis: Array, unit: Array) -> Array:
    """How many units a unit of each coordinate moves what it moves most: (..., 1, k)."""
    return np.asarray(abs(basis / unit[:, None]).max(axis=-2, keepdims=True, initial=0.0))


def _extrapolated(D: Array) -> tuple[Array, Array]:
    """The limits of differences (..., step, k, n) whose steps halve, and how sure they are; each entry where Richardson's table is surest.

    Steps that found no state are NaN and do not count, unless none did.
    """
    table = [D[..., i, :, :] for i in range(D.shape[-3])]
    best, error = np.full_like(table[0], np.nan), np.full_like(table[0], np.inf)
    for order in range(1, len(table)):
        finer = [fine + (fine - coarse) / (4.0**order - 1.0) for coarse, fine in pairwise(table)]
        for new, coarse, fine in zip(finer, table, table[1:], strict=False):
            off = np.maximum(abs(new - coarse), abs(new - fine))
            surer = off < error
            best, error = np.where(surer, new, best), np.where(surer, off, error)
        table = finer
    return best, error
