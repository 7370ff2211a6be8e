"""The motion near a state, to first order, in independent coordinates.

Deviations of the configuration are velocities, q = integrate(q0, G y), in as many coordinates y as the holonomic rows leave free;
deviations of the velocity v are W u, in as many as all rows leave free: rows that hold velocities only (rolling, Pfaffian) take away from the
second. Near a motion at v a deviation d moves on at d-dot = dv + [d, v], the bracket being that of the joints whose velocities are no rates.

The rates of y and u are the exact derivatives of forward dynamics along the loops. Where there are none (rows that are a function of q, of
which nobody knows the rate; singular positions) they are differences of the core's forward dynamics between states that satisfy every row,
all in one batch, extrapolated by Richardson's rule with the step of which each entry is surest (Ridders 1982).
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np

from .._arrays import Array, ArrayLike, NDArray, checked_count, checked_number, real_array
from .._core import Status
from .._showing import Brief
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.operations import _undeclared
from ..dynamics.options import BatchOptions, TimeOptions, Unpack, Wrenches, shows_options
from ..errors import ModelWarning, StateError
from .actuation.efforts import actuation_matrix
from .assembly.closing import closing, prepared
from .independent_coordinates import Coordinates, best_shown, chosen, judge, velocity_names
from .linear_algebra import transposed
from .scaling import sliding, velocity_scale

_linear_equations = _undeclared("linear_equations")

# the largest step, in radians and parts of the mechanism's length (of velocities, of the largest), and how often it is halved: large steps suffer
# from curvature, small ones from rounding, and between them one is good
STEP, HALVINGS = 0.05, 10
# of the largest entry of A
DOUBTFUL = 1e-5
# as the core says it of a state (cpp/loops/linear_equations.hpp, LinearOutput::exact)
ROUNDS = 0.5
# a velocity at which Coulomb friction has a direction, of the largest, in radians and lengths of the mechanism
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
    error : (..., k + m, k + m) by how much the entries of A may be off, estimated: zero where they are exact derivatives, to rounding. Near
        singular positions, where rounding of q shows in them, the difference that a few units in its last place make
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


@shows_options
def linearize(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, coordinates: Coordinates = None,
    wrenches: Wrenches | None = None, time: ArrayLike | None = None, **options: Unpack[BatchOptions],
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
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    Linearization, with A, B, E and :meth:`~Linearization.modes`

    Raises
    ------
    StateError
        The state is off the loops, or has no acceleration; the coordinates do not determine the motion; a joint with Coulomb friction stands still, where
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
    tau = np.zeros(robot.nv) if tau is None else tau
    q, v, tau = (x if type(x) is np.ndarray else real_array(n, x) for n, x in (("q", q), ("v", v), ("tau", tau)))
    one = q.ndim == v.ndim == tau.ndim == 1 and time is None and not (wrenches or options)
    # of one state the core chooses, which looks at its rows anyway
    asked = None if one and coordinates is None else _asked(robot, q, coordinates, time)
    order, scale = asked and asked.order, prepared(robot, "units of rows", lambda: closing(robot, (), ()).loops.units)
    answer: Any = _linear_equations(robot, q, v, tau, order, scale, wrenches=wrenches, time=time, **cast(Any, options))
    numbers, status = answer if options.get("return_status") else (answer, None)
    asked = _Asked.at(robot, numbers[numbers.size - robot.nv :].tolist()) if asked is None else asked
    # nobody knows the rates of rows that are a function of q
    sure = not robot._asks_for_rows and bool(numbers[0] if numbers.ndim == 1 else numbers[..., 0].all())
    _moves_where_friction_is(robot, q, v, time, 0.0 if sure else 1.0)
    if not sure:
        for k, names in ((1, asked.names[: asked.m]), (3, asked.names)):
            status = judge(numbers[..., k : k + 2], names, True, status)
        numbers[np.isnan(numbers[..., 1:5]).any(axis=-1)] = np.nan
    lead = numbers.shape[:-1]
    rate, G, W, A, E = (numbers[..., at].reshape(lead + shape) for at, shape in asked.answers)
    error = A - A  # no number where there is none
    if (rounds := numbers[..., 0] == ROUNDS).any():
        error[rounds] = abs(_where_rounding_shows(robot, asked, rounds, (q, v, tau), wrenches, time, scale) - A[rounds])
    if not sure:
        doubtful = np.isfinite(numbers[..., 0]) if robot._asks_for_rows else numbers[..., 0] == 0.0
        A[doubtful], error[doubtful] = _differences(robot, asked, doubtful, (q, v, tau), wrenches, time, G, W)
        _is_sure(A, error, asked.names, status is None)
    B = E.take(asked.motors, -1) if asked.motors is not None else E @ actuation_matrix(robot, q, return_status=True)[0]
    q = q if q.shape[:-1] == lead else np.broadcast_to(q, (*lead, robot.nq))
    linear = Linearization._made(
        coordinates=asked.names, velocities=asked.names[: asked.m], A=A, B=B, E=E, rate=rate, error=error, configuration_basis=G,
        velocity_basis=W, q=q, time=time, mechanism=robot,
    )  # fmt: skip
    if status is None:
        return linear
    found = np.isfinite(A).all(axis=(-2, -1)) | (status != Status.FINE)  # a state nearby, of those that are doubtful
    return cast(Linearization, (linear, np.where(found, status, Status.NO_ANSWER).astype(np.int8)))


@dataclass(frozen=True, eq=False)
class _Asked:
    """Coordinates: their places among the velocities, the first m those of velocity, too; how the core tells of them, and where in its rows the
    answers stand (cpp/loops/linear_equations.hpp).
    """

    columns: list[int]
    m: int
    names: tuple[str, ...]
    order: Array
    answers: tuple[tuple[slice, tuple[int, ...]], ...]
    motors: NDArray[np.intp] | None  # among the velocities, where all of them drive joints of the tree

    @classmethod
    def of(cls, robot: LoopFunctions, order: Sequence[float]) -> _Asked:
        """`order`: of each coordinate which velocity it is, from 1, negative where it is one of the configuration alone; 0: no more."""
        nv, columns, m = robot.nv, [abs(int(i)) - 1 for i in order if i], sum(i > 0 for i in order)
        n, all_names = len(columns) + m, velocity_names(robot)
        shapes = ((n,), (nv, len(columns)), (nv, m), (n, n), (n, nv))
        ends = (5 + np.cumsum([0, *map(math.prod, shapes)])).tolist()
        answers = tuple(zip(itertools.starmap(slice, pairwise(ends)), shapes, strict=True))
        driven = [robot.joint(name) for name in robot.actuated]
        motors = np.array([i for j in driven for i in range(nv)[j.v_slice]], dtype=np.intp)
        names = tuple(all_names[i] for i in columns)
        in_tree = not any(j.closes_loop for j in driven)
        full = np.array([*order, *np.zeros(nv - len(order))])
        return cls(columns, m, names, full, answers, motors if in_tree else None)

    @classmethod
    def at(cls, robot: LoopFunctions, order: Sequence[float]) -> _Asked:
        """The same, kept for the next call."""
        return prepared(robot, ("linear", *order), lambda: cls.of(robot, order))


def _asked(robot: LoopFunctions, q: Array, coordinates: Coordinates, time: ArrayLike | None) -> _Asked:
    """Those that are named, or in which the motion of all states shows best, and what the configuration has besides."""
    several = [coordinates] if isinstance(coordinates, str) else coordinates
    named = isinstance(several, list | tuple) and all(type(name) is str for name in several)
    key = ("linear", type(coordinates), *cast("Sequence[str]", several)) if named else None
    kept = robot._prepared.get(key)
    if kept is not None:
        return cast(_Asked, kept)
    loops = closing(robot, (), ()).loops
    if named and loops.holonomic.all():
        return prepared(robot, key, lambda: _Asked.at(robot, [i + 1 for i in chosen(robot, coordinates) or []]))
    first = chosen(robot, coordinates)
    first = best_shown(robot, q, time) if first is None else first
    rest = [] if loops.holonomic.all() else best_shown(robot, q, time, loops.scale(), first)
    return _Asked.at(robot, [i + 1 for i in first] + [-i - 1 for i in rest if i not in first])


def _rows(x: ArrayLike, size: int, lead: tuple[int, ...], which: Any) -> Array:
    """One row of an argument for each of those states of a batch."""
    return np.asarray(np.broadcast_to(np.asarray(x, dtype=np.float64), (*lead, size))[which])


def _where_rounding_shows(
    robot: LoopFunctions, asked: _Asked, which: Any, state: tuple[Array, ...], wrenches: Wrenches | None, time: ArrayLike | None, scale: Array,
) -> Array:  # fmt: skip
    """A (n, ...) of those states of a batch, once q is displaced by a few units in its last place."""
    lead = which.shape
    q, v, tau = (_rows(x, size, lead, which) for x, size in zip(state, (robot.nq, robot.nv, robot.nv), strict=True))
    scattered = 2.0 * (np.arange(1, robot.nv + 1) * math.sqrt(2.0) % 1.0) - 1.0
    q = robot.integrate(q, 4.0 * np.finfo(np.float64).eps * scattered * velocity_scale(robot))
    pushes = wrenches and {frame: _rows(w, 6, lead, which) for frame, w in wrenches.items()}
    when = None if time is None else _rows(np.asarray(time)[..., None], 1, lead, which)[..., 0]
    at, shape = asked.answers[3]
    found = _linear_equations(robot, q, v, tau, asked.order, scale, wrenches=pushes, time=when, return_status=True)[0]
    return cast(Array, found[..., at].reshape(q.shape[:1] + shape))


def _differences(
    robot: LoopFunctions, asked: _Asked, which: Any, state: tuple[Array, ...], wrenches: Wrenches | None, time: ArrayLike | None, G: Array,
    W: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """A (n, ...) of those states of a batch, and by how much it may be off."""
    lead = G.shape[:-2]

    def rows(x: ArrayLike, *size: int) -> Array:
        # of states nearby: (n, step, way, deviation, coordinate), as rows of one batch
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(np.broadcast_to(x, (*lead, *x.shape[x.ndim - len(size) :]))[which])[:, None, None, None]

    q, v, tau = (rows(x, robot.nv) for x in state)
    G, W, k, m, first = G[which], W[which], len(asked.columns), asked.m, asked.columns[: asked.m]
    # no joint moves farther than a step
    step = STEP * 0.5 ** np.arange(HALVINGS)[:, None, None, None] * np.array([1.0, -1.0])[:, None, None]
    unit = velocity_scale(robot)
    fastest = np.maximum(1.0, abs(v[:, 0, 0] / unit).max(axis=-1, initial=0.0))[..., None]
    reach_q, reach_v = 1.0 / _largest(G, unit), fastest / _largest(W, unit)
    away_q = np.concatenate([transposed(G * reach_q), np.zeros((len(G), m, robot.nv))], axis=-2)
    away_v = np.concatenate([np.zeros((len(G), k, robot.nv)), transposed(W * reach_v)], axis=-2)
    q_near = robot.integrate(q, step * away_q[:, None, None])
    v_near = v + step * away_v[:, None, None]
    at: TimeOptions = {"time": None if time is None else rows(time), "return_status": True}
    if robot.nc:
        q_near = robot._configuration_plain(q_near, None, **at)[0]
        others = np.ones(robot.nv)
        others[first] = 0.0
        v_near = robot._least_motion(q_near, v_near, None, others, **at)[0]
    pushes = wrenches and {frame: rows(w, 6) for frame, w in wrenches.items()}
    a_near = robot.forward_dynamics(q_near, v_near, tau, wrenches=pushes, **at)[0]
    rates = np.concatenate([v_near[..., asked.columns], a_near[..., first]], axis=-1)
    reach = np.concatenate([reach_q, reach_v], axis=-1)
    slope, error = _extrapolated((rates[..., 0, :, :] - rates[..., 1, :, :]) / (2.0 * step[:, 0]))
    A = transposed(slope) / reach
    A[:, :k, :k] += transposed(robot._bracket(transposed(G), v[:, 0, 0])[..., asked.columns])
    return A, transposed(error) / reach


def _moves_where_friction_is(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, time: ArrayLike | None, least: float
) -> None:
    """Raise where a joint with friction is slower than MOVING of the fastest, which counts as no slower than `least` [per s]."""
    rough = robot._rough
    if not rough:
        return
    fastest = abs(np.asarray(v, dtype=float) / velocity_scale(robot)).max(axis=-1, initial=least)[..., None]
    states = cast(Any, robot.joint_states(q, v, time=time, return_status=True))[0]
    for name, velocity in states.v.items():
        if name not in rough:
            continue
        joint = rough[name].type
        slow = MOVING * fastest * np.where(sliding(joint), robot._length, 1.0)
        if np.any((abs(velocity) <= slow) & (np.asarray(joint.friction) > 0.0)):
            fault = "stands still and has Coulomb friction, which jumps there: motion has no linear equations"
            raise StateError(f"joint '{name}' {fault}; linearise where it moves, or without the friction")


def _is_sure(A: Array, error: Array, names: tuple[str, ...], raises: bool) -> None:
    if raises and A.ndim == 2 and not np.isfinite(A).all():
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
