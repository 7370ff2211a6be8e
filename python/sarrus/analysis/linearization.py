"""Linearised equations of motion near a state, in independent coordinates, and static equilibrium.

A deviation of the configuration is q = integrate(q0, G y), with one coordinate y for each motion that the holonomic rows allow. A deviation of the
velocity is W w, with one w for each velocity that all rows allow. Constraints on velocities (rolling, Pfaffian) reduce the number of w, but
not of y. Near a motion with velocity v, the rate of a deviation d is d-dot = dv + [d, v], with the Lie bracket of joints whose velocities
are not rates of their coordinates.

The rates of y and w are computed by exact derivatives of forward dynamics along the loops. In singular positions, and for constraint rows that
are Python functions of q, these derivatives are not available. Then they are replaced by finite differences of forward dynamics, between states
that satisfy every constraint, all in one batch. Richardson extrapolation reduces the error of these differences. Each entry uses its most
accurate step (Ridders 1982).

Of an equilibrium the core computes Newton steps and the stiffness (``cpp/loops/equilibrium.hpp``). A contact fixes the origin of a frame, or its height,
by a target constraint as in :mod:`sarrus.analysis.closing`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np

from .. import _arrays, _core
from .._arrays import Array, ArrayLike, NDArray, checked_count, checked_number, real_array
from .._core import Status, tolerances
from .._showing import Brief
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.operations import _undeclared
from ..dynamics.options import BatchOptions, TimeOptions, Unpack, Wrenches, shows_options
from ..errors import ModelError, ModelWarning, ShapeError, StateError
from .actuation import actuation_matrix
from .assembly import _closed
from .closing import Closing, JointCoordinates, closing, coordinates, movable_frames, prepared, start_near, target_name
from .independent_coordinates import Coordinates, best_shown, chosen, judge, layout, velocity_names
from .linear_algebra import sliding, transposed, velocity_scale

_linear_equations = _undeclared("linear_equations")

# largest finite-difference step [rad, characteristic length] (for velocities, relative to the largest velocity), and the number of its halvings.
# Large steps have truncation errors and small steps rounding errors, so the best step lies in between
STEP, HALVINGS = 0.05, 10
# an error of A above this value, relative to its largest entry, issues a warning
DOUBTFUL = 1e-5
# value of LinearOutput::exact (cpp/loops/linear_equations.hpp) for a state whose derivatives are sensitive to rounding of q
ROUNDS = 0.5
# joints that are slower than this fraction of the largest velocity [rad/s, characteristic length / s] are at rest for Coulomb friction
MOVING = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Modes(Brief):
    """Modes exp(eigenvalue t) of the linearised motion, slowest first; in a conjugate pair, the eigenvalue of positive imaginary part is first.

    Attributes
    ----------
    eigenvalues : (..., n) complex eigenvalues of A [1/s]
    frequencies : (..., n) |eigenvalue|, the frequency of the undamped oscillation [rad/s]
    damping : (..., n) damping ratio -Re/|eigenvalue| (dimensionless): 1 for no oscillation, negative for an unstable mode, NaN for an eigenvalue of
        zero
    states : (..., n, n) complex eigenvectors; row k is the deviation (y, w) of mode k [rad, m; rad/s, m/s]
    shapes : (..., n, nv) complex mode shapes; row k is the motion of the joints in mode k, in velocity coordinates [rad, m]; its largest entry is 1
    """

    eigenvalues: NDArray[np.complex128]
    frequencies: Array
    damping: Array
    states: NDArray[np.complex128]
    shapes: NDArray[np.complex128]
    _of: Linearization

    def configurations(self, mode: int, amplitude: float = 0.2, count: int = 60) -> Array:
        """Return configurations (count, nq) over one period of a mode, without its growth or decay, for display in a viewer.

        Parameters
        ----------
        mode : index in `eigenvalues`
        amplitude : amplitude of the joint with the largest motion [rad, m]
        count : number of configurations

        Raises
        ------
        StateError
            The loops do not close at this amplitude.

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
            raise StateError("configurations() requires the modes of one state; got the modes of many states")
        n = len(self.eigenvalues)
        mode, count = checked_count("mode", mode, 0, n - 1), checked_count("count", count)
        phase = np.exp(1j * np.linspace(0.0, 2.0 * np.pi, count))[:, None]
        away = checked_number("amplitude", amplitude, "") * (phase * self.shapes[mode]).real
        robot = self._of.mechanism
        q = robot.integrate(self._of.q, away)
        return np.asarray(robot.project_configuration(q, metric="euclidean", time=self._of.time) if robot.nc else q)


@dataclass(frozen=True, eq=False, repr=False)
class Linearization(Brief):
    """Linear equations of motion x-dot = rate + A x + B u + E d, for the deviation x of configuration and velocity from a state.

    x = (y, w) in independent coordinates. u are deviations of the motor efforts, and d deviations of the generalised force.

    Attributes
    ----------
    coordinates : names of the k coordinates y. "joint[1]" is the second velocity of a joint; its y is the constant velocity that reaches the
        deviated configuration in unit time
    velocities : names of the m coordinates w, the first m of `coordinates`. m < k if the mechanism has constraints on velocities only
    A : (..., k + m, k + m) derivative of x-dot with respect to x [per s]
    B : (..., k + m, nu) derivative of x-dot with respect to the efforts of the actuated joints [rad/s2, m/s2 per N m, N]
    E : (..., k + m, nv) derivative of x-dot with respect to the generalised force [rad/s2, m/s2 per N m, N]. A wrench on a frame has d = J^T wrench
    rate : (..., k + m) velocity and acceleration of the coordinates in the undisturbed motion [rad/s, m/s; rad/s2, m/s2]. The acceleration is zero in steady motion
    error : (..., k + m, k + m) estimated error of the entries of A [per s]: zero for exact derivatives. Near singular positions, A is sensitive to
        rounding of q; there it is the change of A if q changes by a few units in its last place
    configuration_basis, velocity_basis : G (..., nv, k) and W (..., nv, m) [rad, m per rad, m]. The deviation of the configuration is G y; for y = 0, that
        of v is W w
    q, time : configuration (..., nq) and time [s] of the state
    mechanism : the linearised mechanism
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
        """Names of the entries of x: the coordinates, then the velocities, whose names end in an apostrophe."""
        return (*self.coordinates, *(f"{name}'" for name in self.velocities))

    def modes(self) -> Modes:
        """Compute the modes: eigenvalues of A, with frequencies, damping and shapes.

        The modes determine stability only if A is constant along the motion: at rest, or in a motion that is steady in these coordinates. For a
        steady spin, use a revolute joint for the spin axis, because the axes of a free or ball joint rotate with the body. A k-fold eigenvalue of
        zero, as for a vehicle's position, heading and speed, is computed with an error of the k-th root of rounding: 1e-8 to 1e-4 per second.

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


_linear_of_one_state: Any = _core.of_one_state("linearize", Linearization)


@shows_options
def linearize(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, coordinates: Coordinates = None,
    wrenches: Wrenches | None = None, time: ArrayLike | None = None, **options: Unpack[BatchOptions],
) -> Linearization:  # fmt: skip
    """Linearise the equations of motion near a state: an equilibrium, a steady motion, or any state of a trajectory.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s] that satisfy the constraints
    tau : (..., nv) constant generalised force [N m, N]; default: zero
    coordinates : names of tree joints, or (joint, index) for one of several velocities, as many as the number of independent velocities; default:
        the best-conditioned velocities. With constraints on velocities only, more coordinates of the configuration are independent; these are
        appended automatically
    wrenches, time : as in :meth:`forward_dynamics`; constant
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    Linearization, with A, B, E and :meth:`~Linearization.modes`

    Raises
    ------
    StateError
        - The state violates the loop constraints, or forward dynamics has no result there.
        - The coordinates do not determine the motion.
        - A joint with Coulomb friction is at rest, so that no linear equations exist.
        - A motion that the linearised constraints allow is not possible over a finite distance.

        In a batch, invalid states yield NaN; friction and unsuitable coordinates raise the error.

    Warns
    -----
    ModelWarning
        A was computed by finite differences whose estimated error exceeds 1e-5 of its largest entry. The equations of motion are not smooth near the
        state, or change within milliradians.

    References
    ----------
    Ridders, Accurate computation of F'(x) and F'(x) F''(x), 1982; Meijaard, Papadopoulos, Ruina and Schwab 2007 (the bicycle).

    Examples
    --------
    An uncontrolled bicycle at 5 m/s is stable:

    >>> import sarrus
    >>> bicycle = sarrus.mechanisms.whipple_bicycle()
    >>> q = bicycle.assemble()
    >>> v = bicycle.complete_velocity(q, {"rear wheel": 5.0 / 0.3, "lean": 0.0, "steer": 0.0})
    >>> linear = bicycle.linearize(q, v, coordinates=["lean", "steer", "rear wheel"])
    >>> moving = linear.modes().eigenvalues[-4:]
    >>> moving.real.round(6).tolist()
    [-0.322866, -0.775342, -0.775342, -14.07839]
    """
    usual = wrenches is None and time is None and not options
    if usual and (linear := _linear_of_one_state(robot, q, v, tau, coordinates)):
        return cast(Linearization, linear)
    tau = np.zeros(robot.nv) if tau is None else tau
    q, v, tau = (x if type(x) is np.ndarray else real_array(n, x) for n, x in (("q", q), ("v", v), ("tau", tau)))
    single_state = q.ndim == v.ndim == tau.ndim == 1 and time is None and not (wrenches or options)
    # for a single state the core selects the coordinates, because it factorises the constraint rows anyway
    choice = None if single_state and coordinates is None else _choose(robot, q, coordinates, time)
    order, scale = choice and choice.order, prepared(robot, "units of rows", lambda: closing(robot, (), ()).loops.units)
    answer: Any = _linear_equations(robot, q, v, tau, order, scale, wrenches=wrenches, time=time, **cast(Any, options))
    numbers, status = answer if options.get("return_status") else (answer, None)
    choice = _Choice.at(robot, numbers[numbers.size - robot.nv :].tolist()) if choice is None else choice
    # constraint rows that are Python functions of q have no exact derivatives
    exact = not robot._asks_for_rows and bool(numbers[0] if numbers.ndim == 1 else numbers[..., 0].all())
    _moves_where_friction_is(robot, q, v, time, 0.0 if exact else 1.0)
    if not exact:
        for k, names in ((1, choice.names[: choice.m]), (3, choice.names)):
            status = judge(numbers[..., k : k + 2], names, True, status)
        numbers[np.isnan(numbers[..., 1:5]).any(axis=-1)] = np.nan
    lead = numbers.shape[:-1]
    rate, G, W, A, E = (numbers[..., at].reshape(lead + shape) for at, shape in choice.answers)
    error = A - A  # zero, and NaN where A is NaN
    if (rounds := numbers[..., 0] == ROUNDS).any():
        error[rounds] = abs(
            _where_rounding_shows(robot, choice, rounds, (q, v, tau), wrenches, time, scale) - A[rounds]
        )
    if not exact:
        doubtful = np.isfinite(numbers[..., 0]) if robot._asks_for_rows else numbers[..., 0] == 0.0
        A[doubtful], error[doubtful] = _differences(robot, choice, doubtful, (q, v, tau), wrenches, time, G, W)
        _is_sure(A, error, choice.names, status is None)
    B = (
        E.take(choice.motors, -1)
        if choice.motors is not None
        else E @ actuation_matrix(robot, q, return_status=True)[0]
    )
    q = q if q.shape[:-1] == lead else np.broadcast_to(q, (*lead, robot.nq))
    linear = Linearization._made(
        coordinates=choice.names, velocities=choice.names[: choice.m], A=A, B=B, E=E, rate=rate, error=error, configuration_basis=G,
        velocity_basis=W, q=q, time=time, mechanism=robot,
    )  # fmt: skip
    if status is None:
        return linear
    # False for sensitive states in whose neighbourhood the constraints have no solution
    has_result = np.isfinite(A).all(axis=(-2, -1)) | (status != Status.FINE)
    return cast(Linearization, (linear, np.where(has_result, status, Status.NO_ANSWER).astype(np.int8)))


@dataclass(frozen=True, eq=False)
class _Choice:
    """Chosen coordinates, and the layout of the core's result (cpp/loops/linear_equations.hpp).

    Attributes
    ----------
    columns : index of the velocity of each coordinate; the first m coordinates also parametrise the velocity
    order : (nv,) index + 1 of the velocity of each coordinate, negative for coordinates of the configuration only; filled up with zeros
    answers : slice and shape of each array in a row of the core's result
    parts : order and names of the coordinates, and names of the first m, for a single state
    """

    columns: list[int]
    m: int
    names: tuple[str, ...]
    order: Array
    answers: tuple[tuple[slice, tuple[int, ...]], ...]
    motors: NDArray[np.intp] | None  # indices of the velocities of actuated joints; None if a loop joint is actuated
    parts: tuple[Array, tuple[str, ...], tuple[str, ...]]

    @classmethod
    def of(cls, robot: LoopFunctions, order: Sequence[float]) -> _Choice:
        """Return the choice for an `order` of at most nv entries."""
        nv, columns, m = robot.nv, [abs(int(i)) - 1 for i in order if i], sum(i > 0 for i in order)
        n, all_names = len(columns) + m, velocity_names(robot)
        shapes = ((n,), (nv, len(columns)), (nv, m), (n, n), (n, nv))
        driven = [robot.joint(name) for name in robot.actuated]
        motors = np.array([i for j in driven for i in range(nv)[j.v_slice]], dtype=np.intp)
        names = tuple(all_names[i] for i in columns)
        in_tree = not any(j.closes_loop for j in driven)
        full = np.array([*order, *np.zeros(nv - len(order))])
        return cls(columns, m, names, full, layout(5, shapes), motors if in_tree else None, (full, names, names[:m]))

    @classmethod
    def at(cls, robot: LoopFunctions, order: Sequence[float]) -> _Choice:
        """Return the choice with this order, from the cache if possible."""
        key = np.array([*order, *np.zeros(robot.nv - len(order))]).tobytes()
        return prepared(robot, ("linear", key), lambda: cls.of(robot, order))


def _choose(robot: LoopFunctions, q: Array, coordinates: Coordinates, time: ArrayLike | None) -> _Choice:
    """Return the choice of the named or the best-conditioned coordinates, with additional coordinates that only the configuration has."""
    several = [coordinates] if isinstance(coordinates, str) else coordinates
    named = isinstance(several, list | tuple) and all(type(name) is str for name in several)
    key = ("linear", coordinates if isinstance(coordinates, str) else tuple(cast(Any, several))) if named else None
    cached = robot._prepared.get(key)
    if cached is not None:
        return cast(_Choice, cached)
    loops = closing(robot, (), ()).loops
    if named and loops.holonomic.all():
        return prepared(robot, key, lambda: _Choice.at(robot, [i + 1 for i in chosen(robot, coordinates) or []]))
    first = chosen(robot, coordinates)
    first = best_shown(robot, q, time) if first is None else first
    rest = [] if loops.holonomic.all() else best_shown(robot, q, time, loops.scale(), first)
    return _Choice.at(robot, [i + 1 for i in first] + [-i - 1 for i in rest if i not in first])


def _rows(x: ArrayLike, size: int, lead: tuple[int, ...], selected: Any) -> Array:
    """Return the row of an argument for each selected state of a batch."""
    return np.asarray(np.broadcast_to(np.asarray(x, dtype=np.float64), (*lead, size))[selected])


def _where_rounding_shows(
    robot: LoopFunctions, choice: _Choice, selected: Any, state: tuple[Array, ...], wrenches: Wrenches | None, time: ArrayLike | None, scale: Array,
) -> Array:  # fmt: skip
    """Return A (n, ...) of the selected states of a batch, with q displaced by a few units in its last place."""
    lead = selected.shape
    q, v, tau = (_rows(x, size, lead, selected) for x, size in zip(state, (robot.nq, robot.nv, robot.nv), strict=True))
    scattered = 2.0 * (np.arange(1, robot.nv + 1) * math.sqrt(2.0) % 1.0) - 1.0
    q = robot.integrate(q, 4.0 * np.finfo(np.float64).eps * scattered * velocity_scale(robot))
    pushes = wrenches and {frame: _rows(w, 6, lead, selected) for frame, w in wrenches.items()}
    when = None if time is None else _rows(np.asarray(time)[..., None], 1, lead, selected)[..., 0]
    at, shape = choice.answers[3]
    numbers = _linear_equations(robot, q, v, tau, choice.order, scale, wrenches=pushes, time=when, return_status=True)[
        0
    ]
    return cast(Array, numbers[..., at].reshape(q.shape[:1] + shape))


def _differences(
    robot: LoopFunctions, choice: _Choice, selected: Any, state: tuple[Array, ...], wrenches: Wrenches | None, time: ArrayLike | None, G: Array,
    W: Array,
) -> tuple[Array, Array]:  # fmt: skip
    """Return A (n, ...) of the selected states of a batch, by finite differences, and its estimated error (n, ...)."""
    lead = G.shape[:-2]

    def rows(x: ArrayLike, *size: int) -> Array:
        # add axes for the nearby states, which form a batch of shape (n, step, sign, deviation, coordinate)
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(np.broadcast_to(x, (*lead, *x.shape[x.ndim - len(size) :]))[selected])[:, None, None, None]

    q, v, tau = (rows(x, robot.nv) for x in state)
    G, W, k, m, first = G[selected], W[selected], len(choice.columns), choice.m, choice.columns[: choice.m]
    # scale the columns of G and W so that a deviation of one step moves no joint by more than one step
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
        dependent = np.ones(robot.nv)
        dependent[first] = 0.0
        v_near = robot._least_motion(q_near, v_near, None, dependent, **at)[0]
    pushes = wrenches and {frame: rows(w, 6) for frame, w in wrenches.items()}
    a_near = robot.forward_dynamics(q_near, v_near, tau, wrenches=pushes, **at)[0]
    rates = np.concatenate([v_near[..., choice.columns], a_near[..., first]], axis=-1)
    reach = np.concatenate([reach_q, reach_v], axis=-1)
    slope, error = _extrapolated((rates[..., 0, :, :] - rates[..., 1, :, :]) / (2.0 * step[:, 0]))
    A = transposed(slope) / reach
    A[:, :k, :k] += transposed(robot._bracket(transposed(G), v[:, 0, 0])[..., choice.columns])
    return A, transposed(error) / reach


def _moves_where_friction_is(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, time: ArrayLike | None, least: float
) -> None:
    """Raise StateError if a joint with friction is slower than MOVING times the largest joint speed, or times `least` [1/s] if this is larger."""
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
            fault = "is at rest and has Coulomb friction, which is discontinuous at rest: no linear equations exist"
            raise StateError(f"joint '{name}' {fault}; linearise a state in which it moves, or remove the friction")


def _is_sure(A: Array, error: Array, names: tuple[str, ...], raises: bool) -> None:
    if raises and A.ndim == 2 and not np.isfinite(A).all():
        k = int(np.argmax(~np.isfinite(A).all(axis=0)))
        name = names[k] if k < len(names) else "a velocity"
        raise StateError(
            f"no state near this one satisfies the constraints with a deviation along '{name}': the position may be singular; expected a regular position"
        )
    relative = error / np.maximum(1.0, abs(A).max(axis=(-2, -1), keepdims=True, initial=0.0))
    off = np.where(np.isfinite(A), relative, 0.0).max(initial=0.0)
    if off > DOUBTFUL:
        fault = f"the differences that approximate A disagree by {off:.1e} of its largest entry"
        warnings.warn(
            f"{fault}: the motion is not smooth near this state; linearise another state", ModelWarning, stacklevel=3
        )


def _largest(basis: Array, unit: Array) -> Array:
    """Return the largest velocity in a unit of each coordinate, relative to `unit`, (..., 1, k)."""
    return np.asarray(abs(basis / unit[:, None]).max(axis=-2, keepdims=True, initial=0.0))


def _extrapolated(D: Array) -> tuple[Array, Array]:
    """Return the Richardson limits of difference quotients (..., step, k, n) whose steps are halved, and their estimated errors.

    Each entry uses its most accurate order of the extrapolation table. Steps without a valid state are NaN. They are ignored if any other step is
    valid.
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


STEPS = 200


@dataclass(frozen=True, eq=False, repr=False)
class Equilibrium(Brief):
    """Static equilibrium: configuration, reactions and stiffness.

    Attributes
    ----------
    q : (..., nq) configuration [rad, m, unit quaternions]
    multipliers : (..., nc) multipliers of the constraint rows, of least norm [N m, N]
    efforts : (..., nv) efforts that keep the fixed tree joints at rest, in addition to `tau`; zero for joints that are not fixed [N m, N]
    loop_efforts : fixed loop joint to the effort (..., nv of the joint) that keeps it at rest [N m, N]
    contact_forces : frame to (..., 3) force on the mechanism, in the world's axes [N]
    stiffness : (..., k) stiffness of the independent motions that loops, fixed joints and contacts allow, due to springs and gravity, in ascending
        order [N m]. In a batch, states with fewer motions have NaN at the end. With rolling, or with `tau` on ball, planar or free joints, the
        stiffness matrix is not symmetric: these are the eigenvalues of its symmetric part
    motions : (..., k, nv) these motions as velocities [rad, m]. They are uncoupled by the stiffness, and orthonormal if displacements are divided by
        the mechanism's characteristic length. Contact points do not move
    stable : (...) True if no stiffness is negative; if all are positive, the potential energy is minimal
    compliance : (..., nv, nv) compliance matrix of the joints from the complete stiffness matrix, dq = compliance dtau for small generalised forces
        [rad, m; per N m, N]. Motions without stiffness are excluded
    neutral : (...) number of motions without stiffness (1e-10 of the largest or less), such as the spin of a rod between ball joints
    status : (...) :class:`sarrus.results.Status`: 2 if no equilibrium was found
    """

    q: Array
    multipliers: Array
    efforts: Array
    loop_efforts: dict[str, Array]
    contact_forces: dict[str, Array]
    stiffness: Array
    motions: Array
    stable: NDArray[np.bool_]
    compliance: Array
    neutral: NDArray[np.intp]
    status: NDArray[np.int8]
    _gravity: Array

    @property
    def pulling(self) -> dict[str, NDArray[np.bool_]]:
        """Frame to (...) True if the contact force at its origin pulls the mechanism down, which a unilateral contact cannot do."""
        return {frame: np.asarray(force @ self._gravity > 0.0) for frame, force in self.contact_forces.items()}


def equilibrium(
    robot: LoopFunctions, near: ArrayLike | JointCoordinates | None = None, *, fixed: JointCoordinates | None = None,
    tau: ArrayLike | None = None, contacts: str | Iterable[str] | Mapping[str, ArrayLike] | None = None, minimum: bool = True,
    time: ArrayLike | None = None, threads: int = 1,
) -> Equilibrium:  # fmt: skip
    """Compute a static equilibrium of gravity, springs and constant forces, with closed loops.

    The initial guess is projected onto the loop constraints. Then the potential energy is minimised. The result is a stable equilibrium, but
    not necessarily the nearest one. Friction, dampers, joint limits and controllers are ignored. Constraints on velocities, such as
    rolling without slip, exert reactions like constraints on positions.

    Parameters
    ----------
    robot : the mechanism
    near : initial guess [rad, m, quaternions (x, y, z, w)]: (..., nq), or joints to coordinates, as in :meth:`~sarrus.Mechanism.assemble`; default:
        the home configuration
    fixed : joints to coordinates at which they are fixed, (...) each [rad, m, quaternions (x, y, z, w)]
    tau : (..., nv) constant generalised force [N m, N]; default: zero. The axes of the force of a ball or free joint rotate with the joint. Such a
        force has no potential energy, so that the symmetric part of the stiffness alone does not determine `stable`
    contacts : contact frames. One or more names: the origins of these frames stick at their positions in the initial guess. A mapping of frames to
        points (..., 3) in the world [m], at which the origins stick; or to the height of the ground, a number or (..., 1) [m], on which the origins
        stick below or above their initial positions
    minimum : True returns only stable equilibria; False returns the equilibrium, stable or not, to which Newton's method converges
    time : (...) time for prescribed motions [s]
    threads : number of threads for a batch; it does not change the result of any state

    Returns
    -------
    Equilibrium (of ``sarrus.results``)

    Raises
    ------
    StateError
        No equilibrium was found; the message names a joint with an unbalanced force. In a batch, no error is raised: the row is NaN and its status 2.
    AssemblyError
        The loops do not close with the fixed joints, or contacts are out of reach.
    ModelError, NameNotFoundError
        The mechanism has constraint rows that are Python functions of the state. A joint or frame does not exist, or a frame is fixed to the ground.

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder("scale")
    >>> b.add_body("pan", sarrus.Inertia.sphere(2.0, 0.1))
    >>> b.add_joint("spring", sarrus.Prismatic("z", stiffness=981.0), "ground", "pan")
    >>> rest = sarrus.equilibrium(b.build())
    >>> rest.q.round(9).tolist(), rest.stable.item(), rest.compliance.round(9).tolist()  # m g / k, and 1 / k
    ([-0.02], True, [[0.001019368]])
    """
    if not isinstance(robot, LoopFunctions):
        raise TypeError(f"robot: expected a sarrus.Mechanism, got {robot!r}")
    if robot._asks_for_rows:
        fault = f"'{robot.name}': its constraint rows are Python functions of the state, without derivatives"
        raise ModelError(f"{fault}; expected constraints with derivatives, which the stiffness requires")
    goes_down, when = _arrays.checked_truth("minimum", minimum), cast(Any, _arrays.checked_times(time))
    force = np.zeros(robot.nv) if tau is None else _arrays.real_rows("tau", tau, robot.nv)
    fixed_coordinates = coordinates(robot, fixed, many=True)
    at_time = {"time": when, "threads": _arrays.checked_count("threads", threads)}
    axes = {f"coordinates of joint '{name}'": x.shape[:-1] for name, x in fixed_coordinates.items()} | {
        "time": np.shape(when)
    }
    searched = near is None or isinstance(near, Mapping)
    start = _closed(robot, {}, near, fixed, **at_time) if searched else _arrays.real_array("near", cast(Any, near))
    q = start_near(robot, start, fixed_coordinates, when, _arrays.common_axes(axes | {"near": start.shape[:-1]}))
    points = _points(robot, contacts, q)
    axes |= {"near": q.shape[:-1], "tau": force.shape[:-1]}
    lead = _arrays.common_axes(axes | {f"contact of '{frame}'": x.shape[:-1] for frame, x in points.items()})
    closure, q = (
        closing(robot, tuple((frame, False) for frame in points), fixed_coordinates),
        np.broadcast_to(q, (*lead, robot.nq)),
    )
    targets = closure.targets(list(points.values()), fixed_coordinates, lead)
    sizes = np.cumsum([robot.nq, closure.robot.nc, robot.nv, 1, 1, robot.nv, robot.nv, robot.nv**2])

    def balanced() -> tuple[list[Array], Array]:
        numbers, status = closure.robot._equilibrium(
            q, force, closure.scale, [float(goes_down), STEPS, 0.0], **closure.at(when, targets).data(q), threads=threads,
            return_status=True,
        )  # fmt: skip
        return np.split(numbers, sizes, axis=-1), status

    results, status = balanced()
    # if the core's few Newton steps do not close the loops, the multistart search closes them or raises the error with the cause
    if (open_ := results[4] > tolerances.closed).any():
        q = np.where(open_, _closed(robot, points, q, fixed, branch="any", **at_time), q)
        results, status = balanced()
    unbalanced = (results[4][..., 0] > tolerances.closed) | (abs(results[6]).max(axis=-1, initial=0.0) > 1.0)
    state = np.where((status == 0) & unbalanced, Status.NO_ANSWER, status).astype(np.int8)
    results[7:] = (x.reshape(*lead, robot.nv, robot.nv) for x in results[7:])
    if not lead and state:
        raise StateError(_why(robot, closure, results))
    return _answer(robot, closure, points, results, state)


def _answer(
    robot: LoopFunctions, closure: Closing, points: Iterable[str], answer: list[Array], state: NDArray[np.int8]
) -> Equilibrium:
    """Return the result for the core's arrays of the equilibrium."""
    touching = closure.robot
    freedom, stiffness, motions = answer[3], answer[5], answer[7]
    q, multipliers, efforts = (np.where((state != 0)[..., None], np.nan, x) for x in answer[:3])
    most = int(np.nan_to_num(freedom).max(initial=0.0))
    present = (np.arange(most) < freedom) & (state == 0)[..., None]
    stiffness = np.where(present, stiffness[..., :most], np.nan)
    order = stiffness.argsort(axis=-1)
    stiffness = np.take_along_axis(stiffness, order, axis=-1)
    motions = np.where(
        present[..., None], np.take_along_axis(motions[..., :most, :], order[..., None], axis=-2), np.nan
    )
    least = tolerances.no_stiffness * np.nan_to_num(abs(stiffness)).max(axis=-1, initial=0.0)[..., None]
    loop_rows = [k for name in robot.constraints for k in np.arange(touching.nc)[touching.constraint(name).rows]]
    pushes = {
        frame: touching.pose(q, frame, return_status=True)[0][..., :3, :3]
        @ multipliers[..., touching.constraint(target_name(frame)).rows, None]
        for frame in points
    }
    held = {
        name: multipliers[..., touching.constraint(target_name(f"joint {name}")).rows] for name in closure.loop_joints
    }
    return Equilibrium(
        q, multipliers[..., loop_rows], np.where(closure.moving, 0.0 * efforts, efforts), held, {f: x[..., 0] for f, x in pushes.items()},
        stiffness, motions, ~(stiffness < -least).any(axis=-1) & (state == 0), np.where((state == 0)[..., None, None], answer[8], np.nan),
        (abs(stiffness) <= least).sum(axis=-1), state, robot.gravity,
    )  # fmt: skip


def _points(robot: LoopFunctions, contacts: Any, q: Array) -> dict[str, Array]:
    """Return the point (..., 3) at which each frame sticks, for configurations q (..., nq)."""
    points: dict[str, Array] = {}
    movable = movable_frames(robot)
    for frame in _arrays.checked_names("contacts", () if contacts is None else contacts):
        point = robot.pose(q, frame)[..., :3, 3]
        if frame not in movable:
            raise ModelError(f"contacts: frame '{frame}' is fixed to the ground; expected a frame of a moving body")
        if isinstance(contacts, Mapping):
            x = np.atleast_1d(_arrays.real_array(f"contact of '{frame}'", contacts[frame]))
            if x.shape[-1] not in (1, 3):
                raise ShapeError(
                    f"contact of '{frame}' must be a point (..., 3), or a height (a number or (..., 1)); got shape {x.shape}"
                )
            lead = _arrays.common_axes({"near": point.shape[:-1], f"contact of '{frame}'": x.shape[:-1]})
            point = np.broadcast_to(point, (*lead, 3)).copy()
            point[..., -x.shape[-1] :] = x
        points[frame] = point
    return points


def _why(robot: LoopFunctions, closure: Closing, answer: list[Array]) -> str:
    """Return the message of the error that no equilibrium was found."""
    left, stiffness, imbalance = answer[2], answer[5], answer[6]
    name = velocity_names(robot)[int(abs(left * closure.loops.column_scale * closure.moving).argmax())]
    if (abs(imbalance[abs(stiffness) <= tolerances.no_stiffness * abs(stiffness).max()]) > 1.0).any():
        return (
            f"no equilibrium: a force moves '{name}', and no spring, loop or contact resists. A free base in gravity falls without contacts; "
            "hold the moving bodies by fixed=, contacts= or a spring, or balance the force by tau="
        )
    hint = "pass an initial guess nearer to an equilibrium, or hold the falling bodies by fixed=, contacts= or tau="
    return f"no equilibrium was found: at the last step a force still moves '{name}'; {hint}"
