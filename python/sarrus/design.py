"""Dimensional synthesis, and tolerance budgets.

Objectives and constraints are residuals at n configurations of a motion, in which the driven joints pass through prescribed inputs. Derivatives with
respect to dimensions are exact for positions, efforts, reactions and singular values. If a user-defined objective has no derivatives, central
differences of variants are used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arrays
from ._arrays import Array, ArrayLike
from ._deferred import attributes
from ._files import needed
from ._motor_motions import MotorChanges, MotorMotions
from ._showing import Brief
from .analysis.closing import check_timeless
from .dimensions import AXES, Dimensions, Moves, Tied, checked_inputs
from .errors import AssemblyError, ModelError, NameNotFoundError, ShapeError, check_name
from .mechanism import Mechanism, checked_mechanism
from .spatial import log, right_jacobian_inverse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Budget",
    "Clearance",
    "Design",
    "FramePath",
    "JointAngle",
    "MotorEfforts",
    "Reaction",
    "TransmissionAngle",
    "Variable",
    "design",
    "grashof_class",
    "tolerances",
]  # fmt: skip

__getattr__ = attributes(__name__, {})

STEP = 1e-4  # step of central differences, relative to the range between a dimension's bounds
SAME = 1e-9  # two sums of lengths are considered equal up to this relative difference
MOST_PROGRAMMES, SETTLED = (
    200,
    1e-7,
)  # minimax: largest number of steps, and expected relative decrease below which they end
BROKEN = 1e3  # value of all residuals if the loops do not close


def __dir__() -> list[str]:
    return sorted(__all__)


# ---- objectives and constraints ----------------------------------------------------------------------------------------


class _Checked:
    """Base class of dataclasses whose attributes are checked against their annotations."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            label = f"{field.name} of a {type(self).__name__}"
            object.__setattr__(self, field.name, _CHECKS[str(field.type)](label, getattr(self, field.name)))


def _number(label: str, x: Any) -> float:
    return _arrays.checked_number(label, x, "positive" if label.startswith(("scale", "turn")) else "")


def _numbers_by_name(label: str, numbers: Any) -> dict[str, Array]:
    _arrays.check_mapping(label, numbers, "motors to (n,) numbers", 0)
    return {name: _arrays.real_array(f"{label}, '{name}',", x) for name, x in numbers.items()}


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "str": _arrays.checked_text,
    "str | Tied": lambda label, x: x if isinstance(x, Tied) else _arrays.checked_text(label, x),
    "float": _number,
    "ArrayLike": _arrays.real_array,
    "Sequence[str]": lambda label, x: tuple(_arrays.checked_several(label, x, str, "names")),
    "Mapping[str, ArrayLike]": _numbers_by_name,
}


def _at_inputs(label: str, x: Any, q: Array, *more: int) -> Array:
    """Return x as an array (n, ...) with one row for each of the n inputs of the configurations q (..., n, nq).

    Raises ShapeError if x has another number of rows.
    """
    if x.shape != (q.shape[-2], *more):
        raise ShapeError(
            f"{label} must have a value for each of {q.shape[-2]} inputs, shape {(q.shape[-2], *more)}; got shape {x.shape}"
        )
    return np.asarray(x)


@dataclass(frozen=True, eq=False)
class FramePath(_Checked):
    """Objective of path or motion generation. At the n inputs, the origin of a frame must be at given points, or the frame at given poses.

    Attributes
    ----------
    frame : name of the frame
    points : (n, 3) in the world [m], NaN for a component without requirement; or poses (n, 4, 4)
    scale : displacement that corresponds to a residual of 1 [m]
    turn : angle of rotation that corresponds to a residual of 1 [rad]
    """

    frame: str
    points: ArrayLike
    scale: float = 1.0
    turn: float = 1.0

    def rows(self, variants: Any, q: Array) -> Array:
        """Return the residuals (N, 3 n) of N variants, or (N, 6 n) for poses.

        A pose has six: the rotation vector in the frame's axes, then the displacement.

        Parameters
        ----------
        variants : N variants of the mechanism
        q : (N, n, nq) their configurations at the inputs [rad, m]
        """
        points, X = self._points(q), variants.pose(q, self.frame)
        rows = [(X[..., :3, 3] - (points[:, :3, 3] if points.ndim == 3 else points)) / self.scale]
        if points.ndim == 3:
            rows.insert(0, self._turned(points, X) / self.turn)
        return np.asarray(np.nan_to_num(np.concatenate(rows, axis=-1)).reshape(len(q), -1))

    def derivatives(self, robot: Mechanism, q: Array, moves: Moves) -> Array:
        """Return derivatives (rows, p) with respect to dimensions.

        Parameters
        ----------
        robot : the mechanism
        q : (n, nq) its configurations at the inputs [rad, m]
        moves : derivatives of its frames and joints at q
        """
        points, X, D = self._points(q), robot.pose(q, self.frame), moves.frames[self.frame]
        J = X[:, :3, :3] @ D[:, 3:] / self.scale
        if points.ndim == 3:
            J = np.concatenate([right_jacobian_inverse(self._turned(points, X)) @ D[:, :3] / self.turn, J], axis=1)
        else:
            J = np.where(np.isnan(points)[..., None], 0.0, J)
        return J.reshape(-1, J.shape[-1])

    def _points(self, q: Array) -> Array:
        return _at_inputs("points of a FramePath", self.points, q, *((4, 4) if np.ndim(self.points) == 3 else (3,)))

    def _turned(self, poses: Array, X: Array) -> Array:
        return log(np.swapaxes(poses[:, :3, :3], -1, -2) @ X[..., :3, :3])


@dataclass(frozen=True, eq=False)
class JointAngle(_Checked):
    """Objective of function generation: a joint with one coordinate has prescribed values at the n inputs.

    Attributes
    ----------
    joint : name of the joint
    values : (n,) prescribed coordinates [rad, m]; NaN for no requirement
    scale : deviation that corresponds to a residual of 1 [rad, m]
    """

    joint: str
    values: ArrayLike
    scale: float = 1.0

    def rows(self, variants: Any, q: Array) -> Array:
        """Return residuals (N, n).

        Parameters
        ----------
        variants : N variants of the mechanism
        q : (N, n, nq) their configurations at the inputs [rad, m]
        """
        off = variants.joint_states(q).q[self.joint][..., 0] - _at_inputs("values of a JointAngle", self.values, q)
        return np.asarray(np.nan_to_num(off / self.scale))

    def derivatives(self, robot: Mechanism, q: Array, moves: Moves) -> Array:
        """Return derivatives (n, p) with respect to dimensions.

        Parameters
        ----------
        robot : the mechanism
        q : (n, nq) its configurations at the inputs [rad, m]
        moves : derivatives of its frames and joints at q
        """
        return np.where(np.isnan(np.asarray(self.values))[..., None], 0.0, moves.joints[self.joint] / self.scale)


@dataclass(frozen=True, eq=False)
class TransmissionAngle(_Checked):
    """Constraint on the angle between two bars at a pin: it must differ by at least `least` from the aligned position.

    A residual is the amount by which the constraint is violated.

    Attributes
    ----------
    joint : name of the pin, a joint with one coordinate
    least : smallest angle from the aligned position [rad]
    straight : coordinate of the joint at which the bars are aligned [rad]
    scale : violation that corresponds to a residual of 1 [rad]
    """

    joint: str
    least: float = float(np.radians(40.0))
    straight: float = 0.0
    scale: float = 1.0

    def rows(self, variants: Any, q: Array) -> Array:
        """Return residuals (N, n).

        Parameters
        ----------
        variants : N variants of the mechanism
        q : (N, n, nq) their configurations at the inputs [rad, m]
        """
        return self._deficit(variants.joint_states(q).q[self.joint][..., 0])[0]

    def derivatives(self, robot: Mechanism, q: Array, moves: Moves) -> Array:
        """Return derivatives (n, p) with respect to dimensions.

        Parameters
        ----------
        robot : the mechanism
        q : (n, nq) its configurations at the inputs [rad, m]
        moves : derivatives of its frames and joints at q
        """
        return np.asarray(
            self._deficit(robot.joint_states(q).q[self.joint][:, 0])[1][:, None] * moves.joints[self.joint]
        )

    def _deficit(self, angle: Array) -> tuple[Array, Array]:
        off = (angle - self.straight + 0.5 * np.pi) % np.pi - 0.5 * np.pi
        deficit = self.least - np.abs(off)
        return np.maximum(deficit, 0.0) / self.scale, np.where(deficit > 0.0, -np.sign(off), 0.0) / self.scale


@dataclass(frozen=True, eq=False)
class MotorEfforts(_Checked):
    """Efforts of the motors along the motion. Residuals are the amounts by which efforts exceed `limit`, or the efforts themselves if
    `limit` is 0.

    Attributes
    ----------
    velocity, acceleration : motor to its velocities and accelerations (n,) at the inputs [rad/s, m/s; per s]. There must be as many motors as degrees
        of freedom, all at tree joints
    limit : largest absolute effort of each motor; 0 for residuals that are the efforts themselves [N m, N]
    scale : effort that corresponds to a residual of 1 [N m, N]
    """

    velocity: Mapping[str, ArrayLike]
    acceleration: Mapping[str, ArrayLike]
    limit: float = 0.0
    scale: float = 1.0

    def rows(self, variants: Any, q: Array) -> Array:
        """Return residuals (N, n nu).

        Parameters
        ----------
        variants : N variants of the mechanism
        q : (N, n, nq) their configurations at the inputs [rad, m]
        """
        work = MotorMotions.of(variants.base)
        return self._beyond(work.efforts(variants, q, *_rates(work, self, q)))[0].reshape(len(q), -1)

    def derivatives(self, robot: Mechanism, q: Array, moves: Moves) -> Array:
        """Return derivatives (n nu, p) with respect to dimensions.

        Parameters
        ----------
        robot : the mechanism
        q : (n, nq) its configurations at the inputs [rad, m]
        moves : derivatives of its frames and joints at q
        """
        work = MotorMotions.of(moves.of.robot)
        u, du = MotorChanges(work, moves, q).efforts(*_rates(work, self, q))
        return (self._beyond(u)[1][..., None] * du).reshape(-1, du.shape[-1])

    def _beyond(self, u: Array) -> tuple[Array, Array]:
        over = np.abs(u) - self.limit
        return np.sign(u) * np.maximum(over, 0.0) / self.scale, (over > 0.0) / self.scale


@dataclass(frozen=True, eq=False)
class Reaction(_Checked):
    """Force or moment of a joint along the motion. Residuals are the amounts by which its norm exceeds `limit`, or the norm itself if `limit` is 0.

    Attributes
    ----------
    joint : name of a tree joint or loop joint
    velocity, acceleration : motor to its velocities and accelerations (n,), as for :class:`MotorEfforts` [rad/s, m/s; per s]
    axes : components whose norm is used: "x", "y", "z" of the force [N], or "rx", "ry", "rz" of the moment [N m]. They act on the child, in the axes
        of the joint's frame on the child. Indeterminate components raise an error, such as out-of-plane components of a planar linkage
    limit : largest norm of these components; 0 for residuals that are the norm itself [N, N m]
    scale : norm that corresponds to a residual of 1 [N, N m]
    """

    joint: str
    velocity: Mapping[str, ArrayLike]
    acceleration: Mapping[str, ArrayLike]
    axes: Sequence[str] = ("x", "y", "z")
    limit: float = 0.0
    scale: float = 1.0

    def rows(self, variants: Any, q: Array) -> Array:
        """Return residuals (N, n).

        Parameters
        ----------
        variants : N variants of the mechanism
        q : (N, n, nq) their configurations at the inputs [rad, m]
        """
        work = self._work(variants.base)
        return self._beyond(work.efforts(variants, q, *_rates(work, self, q))[..., -len(self.axes) :])[0]

    def derivatives(self, robot: Mechanism, q: Array, moves: Moves) -> Array:
        """Return the derivatives (n, p) of the residuals with respect to the dimensions.

        Parameters
        ----------
        robot : the mechanism
        q : (n, nq) configurations at the inputs [rad, m]
        moves : derivatives of frames and joint coordinates of the mechanism with respect to the dimensions, at q
        """
        work = self._work(moves.of.robot)
        f, df = (x[:, -len(self.axes) :] for x in MotorChanges(work, moves, q).efforts(*_rates(work, self, q)))
        return np.asarray(np.einsum("nk,nkp->np", self._beyond(f)[1], df))

    def _work(self, robot: Mechanism) -> MotorMotions:
        check_name("joint", self.joint, robot._joints)
        if not self.axes or set(self.axes) - set(AXES):
            raise ModelError(f"axes of a Reaction must be among {', '.join(AXES)}; got {self.axes!r}")
        return MotorMotions.of(robot, self.joint, self.axes)

    def _beyond(self, f: Array) -> tuple[Array, Array]:
        size = np.linalg.norm(f, axis=-1)
        unit = f / np.where(size > 0.0, size, 1.0)[..., None]
        return np.maximum(size - self.limit, 0.0) / self.scale, unit * (size > self.limit)[..., None] / self.scale


@dataclass(frozen=True, eq=False)
class Clearance(_Checked):
    """Constraint on the distance to singular positions: `actuation` of :meth:`~sarrus.Mechanism.mobility_map` must be at least `least`.

    A residual is the amount by which the constraint is violated. Velocities of sliding joints are divided by the length of the initial mechanism, so
    that they are comparable with angular velocities. The play of a pin in its bearing is :class:`sarrus.control.PinClearance`.

    Attributes
    ----------
    least : smallest value of `actuation`, a singular value (dimensionless)
    scale : violation that corresponds to a residual of 1 (dimensionless)
    """

    least: float
    scale: float = 1.0

    def rows(self, variants: Any, q: Array) -> Array:
        """Return residuals (N, n).

        Parameters
        ----------
        variants : N variants of the mechanism
        q : (N, n, nq) their configurations at the inputs [rad, m]
        """
        return np.asarray(
            np.maximum(self.least - MotorMotions.of(variants.base).actuation(variants, q), 0.0) / self.scale
        )

    def derivatives(self, robot: Mechanism, q: Array, moves: Moves) -> Array:
        """Return derivatives (n, p) with respect to dimensions.

        Parameters
        ----------
        robot : the mechanism
        q : (n, nq) its configurations at the inputs [rad, m]
        moves : derivatives of its frames and joints at q
        """
        actuation, by = MotorChanges(MotorMotions.of(moves.of.robot), moves, q).actuation()
        return np.where((actuation < self.least)[:, None], -by / self.scale, 0.0)


def _rates(work: MotorMotions, of: MotorEfforts | Reaction, q: Array) -> tuple[Array, Array]:
    """Return the velocities and accelerations of the motors, (n, m) each; the entries of fixed joints are zero."""
    motors = work.base.actuated
    for name in motors:
        if name not in of.velocity or name not in of.acceleration:
            raise ModelError(f"velocity and acceleration must have an entry for each motor; '{name}' is missing")
    rates, bends = (
        np.stack([_at_inputs(f"rates of '{name}'", x[name], q) for name in motors], axis=-1)
        for x in (of.velocity, of.acceleration)
    )
    none = np.zeros((len(rates), len(work.fixed_joints)))
    return np.concatenate([rates, none], axis=1), np.concatenate([bends, none], axis=1)


@dataclass(frozen=True)
class Variable(_Checked):
    """A dimension of the design, and the bounds of its change.

    Attributes
    ----------
    name : name of the dimension, see :mod:`sarrus.dimensions`; or :class:`~sarrus.dimensions.Tied` dimensions, which change together
    low, high : bounds of its change [rad, m]
    """

    name: str | Tied
    low: float
    high: float


# ---- synthesis ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Design(Brief):
    """Result of a synthesis.

    Attributes
    ----------
    robot : the best mechanism
    changes : dimension to its change [rad, m]
    q : (n, nq) configurations along the inputs [rad, m]
    cost, first_cost : half the sum of squared residuals, of the best mechanism, and of the best initial guess before its improvement (dimensionless)
    rows : (rows,) residuals of all objectives, in their order (dimensionless)
    largest : largest residual of each objective, times its scale [unit of the scale]; zero or small for a satisfied constraint
    starts, closed : number of initial guesses, and number of initial guesses whose loops close at all inputs
    costs : costs of all improved initial guesses, ascending (dimensionless). If many costs are equal to the lowest, a better mechanism within the bounds is unlikely
    evaluations : number of Jacobians that were evaluated
    values : dimension to its value in the best mechanism [rad, m], see :meth:`sarrus.dimensions.Dimensions.values`
    units : dimension to its unit, "rad" or "m"
    at_bounds : dimensions at a bound: wider bounds may give a better mechanism
    objectives : names of the objectives' classes
    """

    robot: Mechanism
    changes: Mapping[str, float]
    q: Array
    cost: float
    first_cost: float
    rows: Array
    largest: tuple[float, ...]
    starts: int
    closed: int
    costs: tuple[float, ...]
    evaluations: int
    values: Mapping[str, float]
    units: Mapping[str, str]
    at_bounds: tuple[str, ...]
    objectives: tuple[str, ...]

    def report(self) -> str:
        """Return a table of the dimensions, with their values and changes, and the largest residual of each objective."""
        width = max(map(len, self.changes))
        lines = [f"{'':{width}}  {'value':>12} {'change':>12}"]
        lines += [
            f"{n:{width}}  {self.values[n]:12.6g} {x:12.6g} {self.units[n]}{'  at its bound' * (n in self.at_bounds)}"
            for n, x in self.changes.items()
        ]
        lines += [f"{n}: largest residual {x:.4g}" for n, x in zip(self.objectives, self.largest, strict=True)]
        return "\n".join(
            [*lines, f"cost {self.cost:.6g}; {self.closed} of {self.starts} initial guesses close their loops"]
        )


def design(
    robot: Mechanism, inputs: Mapping[str, ArrayLike], variables: Sequence[Variable], objectives: Sequence[Any], *,
    near: ArrayLike | Mapping[str, Any] | None = None, starts: int = 256, improved: int = 8, seconds: float | None = None, seed: int = 0,
    minimax: bool = False,
) -> Design:  # fmt: skip
    """Minimise objectives over dimensions, along one branch.

    Many initial guesses are evaluated together as variants, and the best ones are improved by SciPy's `least_squares`. A mechanism is rejected if its
    branch ends before the last input. The first initial guess has the dimensions of `robot`.

    Parameters
    ----------
    robot : the initial mechanism
    inputs : driven joint with one coordinate, to its values (n,) [rad, m] along the motion
    variables : dimensions that may change, by the names of :mod:`sarrus.dimensions`, with their bounds
    objectives : :class:`FramePath`, :class:`JointAngle`, :class:`TransmissionAngle`, :class:`MotorEfforts`, :class:`Reaction`,
        :class:`Clearance`, or an object with ``rows(variants, q)`` and, for exact derivatives, ``derivatives(robot, q, moves)``.
        An objective whose residuals are zero if it is satisfied is a constraint; a smaller `scale` makes it stricter
    near : initial guess of the configuration at the first inputs, as for :meth:`sarrus.Mechanism.follow`; it selects the branch
    starts : number of initial guesses, drawn from the uniform distribution within the bounds
    improved : number of initial guesses, beginning with the best, that are improved
    seconds : time limit [s]; until then, rounds of initial guesses and improvements are repeated. Default: one round
    seed : seed of the random initial guesses
    minimax : True minimises the largest absolute residual, which is then the `cost`, instead of the sum of squares: by successive linear programmes,
        from the solution of least squares

    Raises
    ------
    AssemblyError
        No initial guess closes its loops at all inputs.
    ImportError
        SciPy is not installed: ``pip install scipy``.
    StateError
        The inputs do not determine the position.
    ModelError, ShapeError, NameNotFoundError
        Bounds are invalid; names are unknown; arrays have wrong shapes; a prescribed motion varies in time.

    Examples
    --------
    Synthesis of a four-bar whose coupler point passes through six points:

    >>> import numpy as np
    >>> import sarrus
    >>> from sarrus.design import FramePath, Variable, design
    >>> robot = sarrus.mechanisms.four_bar()
    >>> crank = np.linspace(0.3, 2.4, 6)
    >>> wanted = robot.replace(placements={"pin1.parent": (0.45, 0, 0)})
    >>> points = wanted.pose(wanted.follow({"motor": crank}), "pin2.parent")[:, :3, 3]
    >>> made = design(robot, {"motor": crank}, [Variable("pin1.parent.x", -0.1, 0.1)], [FramePath("pin2.parent", points)], starts=4, improved=1)
    >>> round(made.changes["pin1.parent.x"], 9)
    0.05
    """
    optimize = needed("scipy.optimize", "design() improves with SciPy", "scipy")
    minimax = _arrays.checked_truth("minimax", minimax)
    checked_mechanism(robot, "robot")
    _arrays.check_counts(starts=starts, improved=improved)
    if seconds is not None:
        seconds = _arrays.checked_number("seconds", seconds, "seconds, not negative", most=_arrays.ENDLESS)
    check_timeless(robot, "design")
    problem = _Problem(robot, checked_inputs(robot, inputs), variables, objectives, near)
    rng, begun = np.random.default_rng(_arrays.checked_count("seed", seed, 0)), time.perf_counter()
    low, high = problem.low, problem.high
    ends: list[tuple[float, Array]] = []
    drawn, closed, first = 0, 0, float(np.inf)
    while True:
        x = low + (high - low) * rng.random((starts, len(low)))
        if not drawn:
            x[0] = np.clip(0.0, low, high)
        cost = problem.costs(x)
        drawn, closed, first = drawn + starts, closed + int(np.isfinite(cost).sum()), min(first, float(cost.min()))
        for i in np.argsort(cost)[:improved]:
            if not np.isfinite(cost[i]) or (seconds is not None and ends and time.perf_counter() - begun > seconds):
                break
            result = optimize.least_squares(problem.residual, np.clip(x[i], low, high), problem.jacobian, bounds=(low, high), x_scale=high - low,
                                  xtol=1e-14, ftol=1e-14, gtol=1e-14, max_nfev=100)  # fmt: skip
            ends.append(
                problem.least_largest(result.x, optimize.linprog) if minimax else (float(result.cost), result.x)
            )
        if seconds is None or time.perf_counter() - begun > seconds:
            break
    if not ends:
        raise AssemblyError(
            f"none of {drawn} mechanisms within the bounds closes its loops at all inputs on one branch: pass wider bounds, or `near`"
        )
    ends.sort(key=lambda end: end[0])
    least, best = ends[0]
    rows, sizes = problem.residual(best), problem.sizes
    ends_of = np.cumsum(sizes)
    largest = tuple(
        float(np.abs(rows[end - size : end]).max(initial=0.0)) * getattr(of, "scale", 1.0)
        for of, size, end in zip(objectives, sizes, ends_of, strict=True)
    )
    changes = dict(zip(problem.dimensions.names, best.tolist(), strict=True))
    return Design(
        problem.dimensions.changed(best), changes, problem.q, least, first, rows, largest, drawn, closed, tuple(c for c, _ in ends), problem.evaluations,
        dict(zip(changes, problem.dimensions.values(best).tolist(), strict=True)), dict(zip(changes, problem.dimensions.units, strict=True)),
        tuple(name for name, bound in zip(changes, np.minimum(best - low, high - best) <= 1e-6 * (high - low), strict=True) if bound),
        tuple(type(of).__name__ for of in problem.objectives),
    )  # fmt: skip


class _Problem:
    """Optimisation problem: objectives as functions of the changes x (p,) of the dimensions."""

    def __init__(
        self,
        robot: Mechanism,
        inputs: dict[str, Array],
        variables: Sequence[Variable],
        objectives: Sequence[Any],
        near: Any,
    ) -> None:
        variables = _arrays.checked_several("variables", variables, Variable, "sarrus.design.Variable(name, low, high)")
        self.dimensions = Dimensions(robot, list(inputs), [variable.name for variable in variables])
        self.low, self.high = (
            np.array([getattr(variable, side) for variable in variables], float) for side in ("low", "high")
        )
        if not (self.low < self.high).all() or not np.isfinite(self.high - self.low).all():
            raise ModelError("bounds of variables must be finite, with low < high for each variable")
        self.inputs, self.near, self.evaluations = inputs, near, 0
        self.objectives = _arrays.checked_several(
            "objectives", objectives, lambda x: callable(getattr(x, "rows", None)), "of sarrus.design, or have rows(variants, q)"
        )  # fmt: skip
        self.count, self.sizes = 0, list[int]()
        if not variables or not self.objectives:
            raise ModelError(
                "a design requires objectives and variables: pass a FramePath, or another class of sarrus.design, and a Variable"
            )
        self.exact = [hasattr(of, "derivatives") for of in self.objectives]
        self.frames = list(dict.fromkeys(of.frame for of in self.objectives if hasattr(of, "frame")))
        self.joints = list(
            dict.fromkeys(of.joint for of in self.objectives if hasattr(of, "joint") and not isinstance(of, Reaction))
        )
        for name in self.frames:
            robot.pose(robot.neutral(), name)
        for name in self.joints:
            if robot.joint(name).type.nv != 1:
                raise ModelError(
                    f"objectives require joints with one coordinate; '{name}' has {robot.joint(name).type.nv} coordinates"
                )
        self.at, self.q, self.broken = np.full(len(self.low), np.nan), np.zeros((0, robot.nq)), True

    def _followed(self, x: Array) -> tuple[Any, Array]:
        """Return the variants with changes x (N, p), and their configurations (N, n, nq) along the inputs; NaN after the end of a branch."""
        variants = self.dimensions.variants(x)
        if any(name.rpartition(".")[2] == "offset" for name in self.dimensions._members):
            raise ModelError(
                "an encoder offset cannot be a variable of a design: change the inputs, or rotate the placement of a joint"
            )
        return variants, variants.follow({name: values[:, 0] for name, values in self.inputs.items()}, self.near)

    def costs(self, x: Array) -> Array:
        """Return half the sums of squared residuals (N,); inf if loops cannot be closed."""
        variants, q = self._followed(x)
        good = np.isfinite(q).all(axis=(1, 2))
        cost = np.full(len(x), np.inf)
        if good.any():
            rows = np.concatenate([of.rows(variants[good], q[good]) for of in self.objectives], axis=1)
            cost[good] = np.where(np.isfinite(rows).all(axis=1), 0.5 * np.sum(np.nan_to_num(rows) ** 2, axis=1), np.inf)
        return cost

    def residual(self, x: Array) -> Array:
        """Return the residuals (rows,); all are BROKEN if loops do not close."""
        variants, q = self._followed(x[None])
        self.at, self.q, self.broken = x.copy(), q[0], not np.isfinite(q).all()
        if not self.broken:
            parts = [of.rows(variants, q)[0] for of in self.objectives]
            rows, self.sizes = np.concatenate(parts), [len(part) for part in parts]
            self.broken = not np.isfinite(rows).all()
        if self.broken:
            return np.full(self.count, BROKEN)
        self.count = len(rows)
        return rows

    def least_largest(self, x: Array, linprog: Callable[..., Any]) -> tuple[float, Array]:
        """Return the least of the largest absolute residuals, and the changes x (p,) there, from an initial guess.

        Each step solves the linear programme: minimise t with ``abs(r + J dx) <= t``, within the bounds and a trust region (Madsen 1975).
        """
        size, radius = self.high - self.low, 0.1
        rows = self.residual(x)
        most = float(np.abs(rows).max())
        J = self.jacobian(x)
        for _ in range(MOST_PROGRAMMES):
            if not most > 0.0 or radius < STEP**3:
                break
            A = np.concatenate([J, -J]) * size / most
            near = np.stack(
                [np.maximum((self.low - x) / size, -radius), np.minimum((self.high - x) / size, radius)], axis=1
            )
            step = linprog(
                np.append(np.zeros(len(x)), 1.0), np.column_stack([A, -np.ones(len(A))]), np.concatenate([-rows, rows]) / most, bounds=[*near, (0.0, None)]
            )  # fmt: skip
            expected = 1.0 - step.x[-1] if step.success else 0.0
            if expected < SETTLED:
                break
            trial = np.clip(x + step.x[:-1] * size, self.low, self.high)
            rows_trial = self.residual(trial)
            gain = 1.0 - float(np.abs(rows_trial).max()) / most
            radius = (
                min(2.0 * radius, 1.0) if gain > 0.5 * expected else radius if gain > 0.1 * expected else 0.25 * radius
            )
            if gain > 0.0:
                x, rows, most = trial, rows_trial, (1.0 - gain) * most
                J = self.jacobian(x)
        return most, x

    def jacobian(self, x: Array) -> Array:
        """Return the Jacobian (rows, p)."""
        if not np.array_equal(x, self.at):
            self.residual(x)
        if self.broken:
            return np.zeros((self.count, len(x)))
        self.evaluations += 1
        robot = self.dimensions.changed(x)
        parts: list[Array | None] = [None] * len(self.objectives)
        if any(self.exact):
            moves = self.dimensions.moves(robot, self.q, x, self.frames, self.joints)
            if not moves.determined.all():  # at a singular position, exact derivatives do not exist
                return np.zeros((self.count, len(x)))
            parts = [
                of.derivatives(robot, self.q, moves) if exact else None
                for of, exact in zip(self.objectives, self.exact, strict=True)
            ]
        if not all(self.exact):
            steps = STEP * (self.high - self.low)
            variants, q = self._followed(np.concatenate([x + np.diag(steps), x - np.diag(steps)]))
            for i in [i for i, exact in enumerate(self.exact) if not exact]:
                ahead, behind = np.split(np.nan_to_num(self.objectives[i].rows(variants, q)), 2)
                parts[i] = ((ahead - behind) / (2.0 * steps[:, None])).T
        return np.concatenate([part for part in parts if part is not None])


# ---- four-bar linkages ------------------------------------------------------------------------------------------------


def grashof_class(robot: Mechanism, q: ArrayLike | None = None) -> str:
    """Return the Grashof class of a planar four-bar linkage with four revolute joints, and its reason; "" for all other mechanisms.

    If the sum of the shortest and the longest link is smaller than the sum of the other two (Grashof 1883), the shortest link can rotate fully. The
    class depends on the position of the shortest link.

    Parameters
    ----------
    robot : the mechanism
    q : (nq,) configuration that closes the loop [rad]; default: the assembled home configuration

    Examples
    --------
    >>> import sarrus
    >>> from sarrus.design import grashof_class
    >>> grashof_class(sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0))
    'crank-rocker: 0.4 + 1.1 < 0.9 + 1 m; crank turns fully'
    """
    from .figures.skeleton import Skeleton  # imported here, because only this function needs it

    checked_mechanism(robot, "robot")
    q = robot.assemble() if q is None else _arrays.real_rows("q", q, robot.nq)
    if q.ndim != 1:
        raise ShapeError(f"q must be one configuration, ({robot.nq},); got shape {q.shape}")
    joints = [robot.joint(name) for name in (*robot.joints, *robot.loop_joints)]
    if len(robot.constraints) != 1 or len(joints) != 4 or {joint.kind for joint in joints} != {"Revolute"}:
        return ""
    skeleton, links = Skeleton(robot), dict[str, list[Array]]((name, []) for name in ("ground", *robot.bodies))
    axes = np.array([skeleton.joint_axis(q, joint.name) for joint in joints])
    for name, point in skeleton.joint_points(q).items():
        for body in (robot.joint(name).parent, robot.joint(name).child):
            links[body].append(point - axes[0] * (axes[0] @ point))
    if np.abs(np.cross(axes, axes[0])).max() > SAME or {len(ends) for ends in links.values()} != {2}:
        return ""
    length = {body: float(np.linalg.norm(a - b)) for body, (a, b) in links.items()}
    shortest, *middle, longest = sorted(length, key=length.__getitem__)
    spare = sum(length[body] for body in middle) - length[shortest] - length[longest]
    terms = (
        f"{length[shortest]:.4g} + {length[longest]:.4g} {{}} {' + '.join(f'{length[body]:.4g}' for body in middle)} m"
    )
    if abs(spare) <= SAME * length[longest]:
        return f"change point: {terms.format('=')}; it can fold flat, and two branches meet there"
    if spare < 0.0:
        return f"triple rocker: {terms.format('>')}; no link turns fully"
    grounded = {
        body for joint in joints if "ground" in (joint.parent, joint.child) for body in (joint.parent, joint.child)
    }
    kind = "double crank" if shortest == "ground" else "crank-rocker" if shortest in grounded else "double rocker"
    turns = "both grounded links turn" if shortest == "ground" else f"{shortest} turns"
    return f"{kind}: {terms.format('<')}; {turns} fully"


# ---- tolerances --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Budget(Brief):
    """Tolerance budget: standard deviations of positions that result from errors of the dimensions.

    Attributes
    ----------
    names, spread : (p) dimensions, and their standard deviations [rad, m]
    of : (k) names of the quantities, such as "tool.x", "slider"
    parts : (n, k, p) standard deviation of each quantity caused by each dimension alone, to first order, at n inputs [rad, m]
    first_order : (n, k) standard deviation of each quantity caused by all dimensions, to first order [rad, m]
    drawn : (n, k) standard deviation of each quantity over randomly drawn mechanisms [rad, m]; NaN if none were drawn
    worst : (n, k) largest absolute deviation of each quantity from its mean over the drawn mechanisms [rad, m]
    lost : number of drawn mechanisms whose loops did not close
    binding : dimensions whose error would open the loops. Their entries of `parts` are zero, and their errors were not drawn
    units : (p) units of the dimensions, "rad" or "m"
    units_of : (k) units of the quantities, "rad" or "m"
    """

    names: tuple[str, ...]
    spread: Array
    of: tuple[str, ...]
    parts: Array
    first_order: Array
    drawn: Array
    worst: Array
    lost: int
    binding: tuple[str, ...]
    units: tuple[str, ...]
    units_of: tuple[str, ...]

    def report(self, count: int = 10) -> str:
        """Return a table for each quantity, at the inputs with its largest deviation: the dimensions that contribute most.

        A row has the standard deviation of a dimension, that of the quantity which it causes, and its share of the variance.

        Parameters
        ----------
        count : largest number of dimensions in a table
        """
        lines, count = [], _arrays.checked_count("count", count)
        for k, name in enumerate(self.of):
            i = int(np.argmax(self.first_order[:, k]))
            unit, drawn = self.units_of[k], float(self.drawn[i, k])
            by_chance = "" if np.isnan(drawn) else f", {drawn:.4g} {unit} drawn"
            lines.append(f"{name}: {self.first_order[i, k]:.4g} {unit} to first order{by_chance}, at input {i}")
            order = np.argsort(-self.parts[i, k], kind="stable")[:count]
            share = self.parts[i, k] ** 2 / max(self.first_order[i, k] ** 2, 1e-300)
            lines += [
                f"  {self.names[j]:24} {self.spread[j]:.4g} {self.units[j]} causes {self.parts[i, k, j]:.4g} {self.units_of[k]}  {share[j]:6.1%}"
                for j in order
                if self.parts[i, k, j] > 0.0
            ]
        return "\n".join(lines + [f"not absorbed by the loops: {', '.join(self.binding)}"] * bool(self.binding))

    def plot(self, of: str | None = None, *, count: int = 8, ax: Axes | None = None) -> Axes:
        """Plot the variance of one quantity along the inputs, stacked by dimension. Needs matplotlib.

        The variance over the drawn mechanisms is plotted, too.

        Parameters
        ----------
        of : name of the quantity; default: the first one
        count : number of dimensions that are named, those with the largest contributions
        ax : axes of Matplotlib; default: new ones
        """
        import matplotlib.pyplot as plt

        from .figures.canvas import literal

        if of is not None:
            check_name("quantity", of, self.of)
        k, count = self.of.index(of) if of is not None else 0, _arrays.checked_count("count", count)
        axes = ax if ax is not None else plt.subplots()[1]
        if not hasattr(axes, "stackplot"):
            raise TypeError(f"ax must be Axes of Matplotlib; got {ax!r}")
        variance = self.parts[:, k] ** 2
        order = np.argsort(-variance.sum(axis=0), kind="stable")
        top, rest = order[:count], order[count:]
        layers = [variance[:, j] for j in top] + [variance[:, rest].sum(axis=1)] * bool(len(rest))
        axes.stackplot(
            np.arange(len(variance)),
            layers,
            labels=[literal(self.names[j]) for j in top] + ["the rest"] * bool(len(rest)),
        )
        axes.plot(self.drawn[:, k] ** 2, "k.", label="drawn")
        axes.set_xlabel("input")
        axes.set_ylabel(literal(f"variance of {self.of[k]} [{self.units_of[k]}²]"))
        axes.legend(fontsize="small")
        return axes


def tolerances(
    robot: Mechanism, spread: Mapping[str | Tied, float], inputs: Mapping[str, ArrayLike], of: Sequence[str], *, near: ArrayLike | None = None,
    samples: int = 1000, seed: int = 0, threads: int = 1,
) -> Budget:  # fmt: skip
    """Return the tolerance budget of positions, to first order and by Monte Carlo sampling. Errors of dimensions are independent and normally
    distributed.

    Parameters
    ----------
    robot : the nominal mechanism
    spread : dimension (:mod:`sarrus.dimensions`, or :class:`~sarrus.dimensions.Tied` dimensions with one share) to its standard deviation [rad, m].
        ``"joints.x"`` (or y, z, rx, ry, rz) sets it for both frames of all joints, so that four errors change the length of a bar between two joints;
        ``"joints.parent.x"`` and ``"joints.child.x"`` set it for one frame of each joint, so that one error changes the length
    inputs : driven joint to its coordinates (n,) [rad, m]
    of : quantities: "FRAME.x" (or y, z, rx, ry, rz) for a frame's displacement or rotation in world axes, or the name of a joint with one coordinate
    near : initial guess of the configuration at the first inputs, as for :meth:`sarrus.Mechanism.follow`
    samples : number of mechanisms to draw; 0 for none
    seed, threads : seed of the random draws, and number of threads for their evaluation

    Raises
    ------
    NameNotFoundError, ModelError, ShapeError
        Names are unknown; a spread is negative; a prescribed motion varies in time.
    StateError
        The inputs do not determine the position. If this happens at some of the n inputs only, their entries of `parts` are NaN instead.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> from sarrus.design import tolerances
    >>> robot = sarrus.mechanisms.slider_crank()
    >>> budget = tolerances(robot, {"joints.x": 5e-5, "joints.z": 5e-5}, {"motor": [0.6]}, ["slider.x"])
    >>> float((1e3 * budget.first_order[0, 0]).round(3)), abs(budget.drawn / budget.first_order - 1).max().item() < 0.1
    (0.125, True)
    """
    checked_mechanism(robot, "robot")
    _arrays.check_counts(0, samples=samples)
    check_timeless(robot, "tolerances")
    paths = checked_inputs(robot, inputs)
    sizes = _spreads(robot, paths, spread)
    dimensions = Dimensions(robot, list(paths), list(sizes))
    sigma = np.array([_arrays.checked_number(f"spread of '{name}'", x) for name, x in sizes.items()])
    of = _arrays.checked_names("of", of)
    quantities = [_quantity(robot, name) for name in of]
    q, x = robot.follow(paths, near), np.zeros(len(sigma))
    moves = dimensions.moves(robot, q, x, [f for f, k in quantities if k >= 0], [j for j, k in quantities if k < 0])
    parts = np.zeros((len(q), len(quantities), len(sigma)))
    for i, (name, k) in enumerate(quantities):
        if k < 0:
            parts[:, i] = np.abs(moves.joints[name]) * sigma
        else:
            R = robot.pose(q, name)[:, :3, :3]
            parts[:, i] = np.abs((R @ moves.frames[name][:, 3 * (k // 3) : 3 * (k // 3) + 3])[:, k % 3]) * sigma
    drawn, lost = np.full((2, len(q), len(quantities)), np.nan), 0
    if samples:
        rng = np.random.default_rng(_arrays.checked_count("seed", seed, 0))
        errors = rng.normal(size=(samples, len(sigma))) * sigma * moves.closes
        many = dimensions.variants(errors)
        start = np.broadcast_to(q, (samples, *q.shape))
        driven = dimensions.driven(paths, errors)
        # branch='any' is safe, because the initial guesses are so near that assemble() stays on their branch
        q_drawn, status = many.assemble(start, fixed=driven, branch="any", threads=threads, return_status=True)
        good = (status == 0).all(axis=1)
        lost = int((~good).sum())
        off = np.stack([_off(robot, many, q, q_drawn, name, k) for name, k in quantities], axis=-1)[good]
        if good.any():
            off -= off.mean(axis=0)
            drawn[0], drawn[1] = off.std(axis=0), np.abs(off).max(axis=0)
    binding = tuple(name for name, closes in zip(dimensions.names, moves.closes, strict=True) if not closes)
    total = np.sqrt(np.sum(parts**2, axis=-1))
    angular = [robot.joint(name).kind != "Prismatic" if k < 0 else k < 3 for name, k in quantities]
    units_of = tuple("rad" if turns else "m" for turns in angular)
    return Budget(
        dimensions.names, sigma, tuple(of), parts, total, drawn[0], drawn[1], lost, binding, dimensions.units, units_of
    )


def _spreads(
    robot: Mechanism, inputs: Mapping[str, Array], spread: Mapping[str | Tied, float]
) -> dict[str | Tied, float]:
    _arrays.check_mapping("spread", spread, "dimensions to standard deviations")
    every = Dimensions(robot, list(inputs)).names
    sizes: dict[str | Tied, float] = {}
    for name, size in spread.items():
        if isinstance(name, Tied):
            sizes[name] = size
            continue
        start, _, axis = name.rpartition(".")
        sides = {"joints": ("parent", "child"), "joints.parent": ("parent",), "joints.child": ("child",)}.get(start, ())
        ends = tuple(f".{side}.{axis}" for side in sides)
        names = [name] if name in every or axis not in AXES or not ends else [n for n in every if n.endswith(ends)]
        sizes |= dict.fromkeys(names, size)
    return sizes


def _quantity(robot: Mechanism, name: str) -> tuple[str, int]:
    """Return the frame and the component of a quantity such as "tool.x", or the joint and -1."""
    if name in robot._joints:
        return name, -1
    frame, _, axis = name.rpartition(".")
    if axis not in AXES:
        raise NameNotFoundError(f"'{name}' is neither a joint nor FRAME.x, .y, .z, .rx, .ry or .rz")
    robot.pose(robot.neutral(), frame)
    return frame, AXES.index(axis)


def _off(robot: Mechanism, variants: Any, q: Array, q_drawn: Array, name: str, k: int) -> Array:
    """Return the deviations (samples, n) of a quantity of the variants from the nominal mechanism."""
    if k < 0:
        return np.asarray(variants.joint_states(q_drawn).q[name][..., 0] - robot.joint_states(q).q[name][:, 0])
    X, X0 = variants.pose(q_drawn, name), robot.pose(q, name)
    if k >= 3:
        return np.asarray(X[..., k - 3, 3] - X0[:, k - 3, 3])
    turn = X[..., :3, :3] @ X0[:, :3, :3].swapaxes(-1, -2)  # rotation vector in world axes, to first order
    i, j = (k + 2) % 3, (k + 1) % 3
    return np.asarray(0.5 * (turn[..., i, j] - turn[..., j, i]))
