"""Exact derivatives of the equations of motion with loops with respect to the state, by forward-mode differentiation of the compiled recursions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, checked_truth
from .._core import tolerances
from .._showing import Brief
from ..description.constraints import KINDS, ConstraintSpec, CouplerSpec, RollingSpec
from ..description.joints import NONLINEAR, SPRINGS, Helical, JointType
from ..errors import ModelWarning, StateError, check_choice
from .loop_operations import LoopFunctions
from .operations import _undeclared
from .options import BatchTime, ReactionOptions, Wrenches, shows_options
from .reactions import determined, least_reactions
from .variants import VariantFunctions

if TYPE_CHECKING:
    from typing import Unpack

Along = Literal["tangent", "any"]
_inverse = _undeclared("inverse_dynamics_derivatives")
_forward = _undeclared("forward_dynamics_derivatives")
_multiplier_rates = _undeclared("multiplier_derivatives")


@dataclass(frozen=True, eq=False, repr=False)
class InverseDynamicsDerivatives(Brief):
    """Derivatives of the generalised force that a motion of the tree requires: d tau = q dq + v dv + a da.

    Attributes
    ----------
    q : (..., nv, nv) with respect to a displacement dq (nv) in the tangent space [N m, N per rad, m]. The displaced configuration is
        ``robot.integrate(q, dq)``
    v, a : (..., nv, nv) with respect to the velocity [N m, N per rad/s, m/s] and to the acceleration [kg m2, kg m, kg]; `a` is the mass matrix
    """

    q: Array
    v: Array
    a: Array
    _robot: LoopFunctions
    _state: Array | tuple[Array, ...]  # copies of the inputs; one after the other for a single state
    _options: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def parameters(self) -> Array:
        """(..., nv, 10 bodies) with respect to the inertial parameters, in the order of :meth:`~sarrus.Mechanism.regressor`; computed at first
        access.
        """
        options = dict(self._options)
        if any(options.get(key) is not None for key in ("base_velocity", "base_acceleration")):
            return _matrix(_inverse_by_parameters, self._robot, _inputs(self), {**options, "return_status": True})
        threads = options.get("threads", 1)
        regressor = self._robot.regressor(*_inputs(self), threads=threads, return_status=True)[0]
        return cast(Array, regressor)

    @cached_property
    def dimensions(self) -> Array:
        """(..., nv, n) with respect to placements of joints, springs and gravity, in the order of :func:`dimensions`; computed at first access."""
        return _matrix(inverse_by_dimensions, self._robot, _inputs(self), dict(self._options))


@dataclass(frozen=True, eq=False, repr=False)
class MultiplierDerivatives(Brief):
    """Derivatives of the multipliers of :meth:`~sarrus.Mechanism.forward_dynamics`: d lambda = q dq + v dv + tau dtau.

    If constraint rows are dependent, the derivatives exist only for directions that the loops allow. They are then computed by sixth-order
    finite differences, with a relative error of about 1e-6.

    Attributes
    ----------
    q, v : (..., nc, nv) with respect to the state, along the directions of the columns of :class:`ForwardDynamicsDerivatives`
    tau : (..., nc, nv) with respect to the generalised force
    """

    q: Array
    v: Array
    tau: Array


@dataclass(frozen=True, eq=False, repr=False)
class ForwardDynamicsDerivatives(Brief):
    """Derivatives of the acceleration with respect to the state: da = q dq + v dv + tau dtau.

    With loops and ``along="tangent"``, a column of q is the derivative along a unit displacement that is projected onto the loop constraints.
    The velocity changes with this displacement so that it still satisfies the constraints. q and v are then exact for all displacements and
    changes of the velocity that the loops allow.

    Attributes
    ----------
    q : (..., nv, nv) with respect to a displacement dq (nv) in the tangent space [rad/s2, m/s2 per rad, m]. The displaced configuration is
        ``robot.integrate(q, dq)``
    v, tau : (..., nv, nv) with respect to the velocity [1/s, ...] and to the generalised force [rad/s2, m/s2 per N m, N]; `tau` is symmetric
    displacement : (..., nv, nv) displacements along which the columns of q are derivatives [rad, m per rad, m]: unit displacements, or their
        projections onto the position constraints in the metric of kinetic energy
    change : (..., nv, nv) changes of the velocity along which the columns of v are derivatives: unit changes, or their projections onto all
        constraints [rad, m per rad, m]
    velocity : (..., nv, nv) change of the velocity with the displacement of each column of q [rad/s, m/s per rad, m]; zero without loops
    residual_q, residual_v : (..., nv) relative inconsistency of the constraint rows along each column; with ``along="tangent"``, the largest of
        all columns (dimensionless). It is at rounding level if the derivative exists
    """

    q: Array
    v: Array
    tau: Array
    displacement: Array
    change: Array
    velocity: Array
    residual_q: Array
    residual_v: Array
    _robot: LoopFunctions
    _state: Array | tuple[Array, ...]  # copies of the inputs; one after the other for a single state
    _options: tuple[tuple[str, Any], ...] = (("tangent", 1.0), ("wrenches", None), ("check", True))

    @cached_property
    def dimensions(self) -> Array:
        """(..., nv, n) with respect to placements, lengths, radii, ratios, springs and gravity, in the order of :func:`dimensions`.

        Computed at first access. With along="tangent", q and v change with the dimensions so that the loops stay closed, with least kinetic
        energy. For a change dp of the dimensions, a displacement d and a change w of the velocity that are consistent with the loops,
        da = dimensions dp + q d + v (w - velocity d). The entries are NaN if the loops cannot close with changed dimensions.
        """
        return _matrix(
            forward_by_dimensions, self._robot, _inputs(self), {**dict(self._options), "return_status": True}
        )

    @cached_property
    def multipliers(self) -> MultiplierDerivatives:
        """Derivatives of the constraints' multipliers, a :class:`MultiplierDerivatives`; computed at first access."""
        options = {**dict(self._options), "return_status": True}
        matrices = _multiplier_matrices(self._robot, _inputs(self), options, self)
        return MultiplierDerivatives(*(matrices[..., k, :, :] for k in range(3)))


_inverse_of_one_state = _core.call_with_parts(
    "inverse_dynamics_derivatives", InverseDynamicsDerivatives, [("q", ""), ("v", ""), ("a", "")], keeps=True
)  # fmt: skip
_MATRICES = ("q", "v", "tau", "displacement", "change", "velocity")
_forward_of_one_state = _core.call_with_parts(
    "forward_dynamics_derivatives", ForwardDynamicsDerivatives,
    [*((name, "vv") for name in _MATRICES), ("residual_q", "v"), ("residual_v", "v")], keeps=True,
)  # fmt: skip


def dimensions(robot: LoopFunctions) -> dict[str, slice]:
    """Return the names of all parameters of a mechanism except inertias, with their slices in the parameter vector of derivatives.

    ========================================  =====================================================================================
    name                                      parameters
    ========================================  =====================================================================================
    ``JOINT.parent``, ``JOINT.child``         6: displacement [rotation; translation] of the joint's frame on that body, in its own
                                              axes [rad, m]; for rods and contacts too
    ``JOINT.stiffness``, ``.rest``,           1 for each velocity, as in :meth:`~sarrus.Mechanism.replace`. Springs between bodies have
    ``.damping``, ``.friction``,              neither ``friction`` nor ``armature``. Nonlinear terms, such as ``JOINT.cubic_stiffness``, too
    ``.armature``
    ``ROD.length``; ``WHEEL.radius``,         1: length or radius of the constraint [m]
    ``.on_radius``
    ``GEAR.coefficients``, ``.offset``        coefficients of each polynomial in turn, the gear ratio first; functions of coordinates have none
    ``SCREW.pitch``                           1: pitch of a helical tree joint [m/rad]; a helical loop joint has no entry
    ``gravity``                               3: acceleration of gravity in world axes [m/s²]
    ========================================  =====================================================================================

    Examples
    --------
    >>> import sarrus
    >>> names = sarrus.derivatives.dimensions(sarrus.mechanisms.pendulum())
    >>> list(names)[:3], names["pivot.child"]
    (['pivot.parent', 'pivot.child', 'pivot.stiffness'], slice(6, 12, None))
    """
    check_robot(robot, variants=False)
    return dict(places(robot)[0])


@shows_options
def inverse_dynamics(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, **options: Unpack[ReactionOptions]
) -> Any:
    """Return the derivatives of :meth:`~sarrus.Mechanism.inverse_dynamics` of the tree, with all loops open.

    The derivatives are with respect to the motion (q, v, a), the inertial parameters and the dimensions.

    External wrenches are constant in the axes of their frames. The Coulomb friction torque is treated as constant, which is correct only for moving
    joints. A ModelWarning is issued if a joint with friction is at rest.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
    wrenches, base_velocity, base_acceleration : as in :meth:`~sarrus.Mechanism.inverse_dynamics`
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    InverseDynamicsDerivatives

    References
    ----------
    Singh, Russell and Wensing 2022; Carpentier and Mansard 2018: the same derivatives by formulas.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)  # hangs along -z
    >>> D = sarrus.derivatives.inverse_dynamics(pendulum, [0.0], [0.0], [0.0])
    >>> D.q.round(3), D.a  # m g l and m l^2
    (array([[9.81]]), array([[0.5]]))
    """
    if not options and is_smooth(robot) and (derivatives := _inverse_of_one_state(robot, q, v, a)):
        return derivatives
    check_robot(robot)
    by_state, *status = ask(_inverse, robot, q, v, a, options)
    warn_of_friction(robot, q, v, None)
    loads = tuple((key, x) for key, x in options.items() if key != "return_status")
    by_q, by_v, by_a = (by_state[..., k, :, :] for k in range(3))
    state = (np.array(q), np.array(v), np.array(a))
    derivatives = InverseDynamicsDerivatives._made(q=by_q, v=by_v, a=by_a, _robot=robot, _state=state, _options=loads)
    return (derivatives, *status) if status else derivatives


@shows_options
def forward_dynamics(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None,
    along: Along = "tangent", check: bool = True, **options: Unpack[BatchTime],
) -> Any:  # fmt: skip
    """Return the derivatives of :meth:`~sarrus.Mechanism.forward_dynamics`, with loops, with respect to q, v and tau in coordinates of the tree.

    If a displacement violates the loops of an overconstrained mechanism, its constraint rows contradict one another, and no derivative exists
    in this direction. Therefore `along` selects the directions. External wrenches are constant in the axes of their frames, and tau is constant
    in the coordinates of the tree. The Coulomb friction torque is treated as constant, which is correct only for moving joints. A ModelWarning is
    issued if a joint with friction is at rest.

    Parameters
    ----------
    q, v, tau : (..., nq), (..., nv), (..., nv) configuration, velocity and generalised force [rad, m; rad/s, m/s; N m, N]; q and v satisfy the loops
    along : "tangent" for directions that the loops allow; "any" for all directions, even those that open the loops, as if the constraint rows were
        independent. If a column does not exist with "any", its entry of `residual_q` or `residual_v` is large
    wrenches, check : as in :meth:`~sarrus.Mechanism.forward_dynamics`
    time : (...) time for prescribed motions [s]; it is constant
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    ForwardDynamicsDerivatives, including those of the multipliers

    Raises
    ------
    StateError
        - The derivative does not exist, because the position is singular or the state violates the loop constraints.
        - Constraint rows are a Python function of q, whose derivative is unknown.

    References
    ----------
    Without loops: Carpentier and Mansard 2018, eq. 6. With loops: derivatives of van der Merwe 1995, eqs 5.22-5.33.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.four_bar()
    >>> q = robot.assemble()
    >>> v = robot.project_velocity(q, [2.0, 0.0, 0.0])
    >>> D = sarrus.derivatives.forward_dynamics(robot, q, v, np.zeros(3))
    >>> h = 1e-6 * v  # a little along the motion
    >>> q1 = robot.project_configuration(robot.integrate(q, h))
    >>> moved = robot.forward_dynamics(q1, robot.project_velocity(q1, v), np.zeros(3)) - robot.forward_dynamics(q, v, np.zeros(3))
    >>> bool(abs(moved - D.q @ h).max() < 1e-8)
    True
    """
    usual = is_default(wrenches, along, check, options) and is_smooth(robot)
    if usual and (derivatives := _forward_of_one_state(robot, q, v, tau)):
        return derivatives
    arguments: Any = {"tangent": check_forward(robot, along), "wrenches": wrenches, "check": check, **options}
    answer, *status = ask(_forward, robot, q, v, tau, arguments)
    warn_of_friction(robot, q, v, options.get("time"))
    n, arguments = robot.nv, tuple((key, x) for key, x in arguments.items() if key != "return_status")
    matrices = answer[..., : 6 * n * n].reshape(*answer.shape[:-1], 6, n, n)
    derivatives = ForwardDynamicsDerivatives._made(
        **{name: matrices[..., k, :, :] for k, name in enumerate(_MATRICES)},
        residual_q=answer[..., 6 * n * n : -n], residual_v=answer[..., -n:],
        _robot=robot, _state=(np.array(q), np.array(v), np.array(tau)), _options=arguments,
    )  # fmt: skip
    return (derivatives, *status) if status else derivatives


def _multiplier_matrices(
    robot: LoopFunctions, state: tuple[Array, ...], options: dict[str, Any], derivatives: ForwardDynamicsDerivatives
) -> Array:
    """Return the derivatives of the multipliers (..., 3, nc, nv) with respect to q, v and tau."""
    dynamics = {name: x for name, x in options.items() if name != "tangent"}
    least_pivot = robot._constrained_motion(*state, **dynamics)[0][..., -1]
    by_rows = cast(Array, _multiplier_rates(robot, *state, **options)[0])
    if determined(least_pivot):
        return by_rows

    if isinstance(robot, VariantFunctions):
        return _of_each_variant(robot, state, options, derivatives)

    # the multipliers are those of the reactions of least norm over all joints. Their derivatives are central differences of sixth order along the
    # direction of each column, in states with closed loops. Forces with a kink at zero speed are replaced by their tangents at the state
    dynamics = {
        name: np.asarray(x, dtype=float)[..., None, None] if name == "time" and x is not None
        else {key: np.asarray(w, dtype=float)[..., None, None, :] for key, w in x.items()} if name == "wrenches" and x
        else x
        for name, x in dynamics.items()
    }  # fmt: skip
    on_loops = {name: x for name, x in dynamics.items() if name in ("time", "threads", "return_status")}
    acting = {name: x for name, x in dynamics.items() if name in ("time", "wrenches")}
    kinks = _ForcesWithKinks(robot, state, dynamics.get("time"))
    smooth = kinks.smooth
    steps = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])[:, None]
    weights = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60.0
    q, v, tau = (x[..., None, None, :] for x in state)  # then columns, steps, numbers

    def slopes(dq: Array, dv: Array, dtau: Array, size: Array) -> Array:
        h = 1e-3 / np.where(size > 0.0, size, 1.0)[..., None, None]
        q1, v1, tau1 = q, v + steps * h * dv, tau + steps * h * dtau
        if np.any(dq):
            q1 = robot.project_configuration(robot.integrate(q, steps * h * dq), **on_loops)[0]
            v1 = robot.project_velocity(q1, v1, **on_loops)[0]
        along = robot._efforts_of_closing_motors(q1, tau1, dynamics.get("time"))
        if smooth is not robot:
            tau1, along = kinks.add_to(q1, v1, tau1, along)
        motion = smooth._constrained_motion(q1, v1, tau1, **dynamics)[0]
        accelerations, x, accuracy = np.split(motion, [robot.nv, robot.nv + robot.nc], axis=-1)
        x = least_reactions(smooth, q1, v1, accelerations, x, along, **acting, least_pivot=accuracy[..., 2])
        return np.swapaxes(weights @ x / h[..., 0], -1, -2)

    unit = np.concatenate(
        [np.where([u == "m" for _, u in j.type.velocities], robot._length, 1.0) for j in map(robot.joint, robot.joints)]
    )
    dq, dv, w = (
        np.swapaxes(x, -1, -2)[..., None, :]
        for x in (derivatives.displacement, derivatives.change, derivatives.velocity)
    )
    dtau, none = np.eye(robot.nv)[:, None, :], np.zeros((1, 1, robot.nv))
    size_v = 1e-3 * np.abs(dv / unit).max(axis=(-2, -1))  # multipliers are quadratic or cubic in v, and linear in tau
    if any(spring.quadratic_damping for spring in robot.description.springs):
        # steps of 1e-5 of the speed; the error of a step across zero speed of a spring is in proportion to the step
        size_v = 1e5 * size_v / np.abs(v / unit).max(axis=(-2, -1), initial=1.0)
    size_tau = np.full(robot.nv, 1e-3)
    by_q = slopes(dq, w, none, np.abs(dq / unit).max(axis=(-2, -1)))
    shared = np.stack([by_q, slopes(none, dv, none, size_v), slopes(none, none, dtau, size_tau) + 0.0 * by_q], axis=-3)
    # each state is evaluated separately, so that its result does not depend on the other states of the batch
    is_open = (least_pivot <= tolerances.independent)[..., None, None, None]
    return np.where(is_open, shared, by_rows)


class _ForcesWithKinks:
    """Forces of all joints with a kink at zero speed, as linear functions of the velocity: their tangents at a state.

    Attributes
    ----------
    smooth : the mechanism without these forces
    """

    def __init__(self, robot: LoopFunctions, state: tuple[Array, ...], time: Array | None) -> None:
        friction, damping = np.zeros((2, robot._all_nv))
        for j in robot._joints.values():
            friction[j._all_v], damping[j._all_v] = j.type.friction, j.type.quadratic_damping
        has = {
            term: {name: 0.0 for name, j in robot._joints.items() if np.any(getattr(j.type, term))}
            for term in ("friction", "quadratic_damping")
        }
        self.smooth: LoopFunctions = cast(Any, robot).replace(**has) if any(has.values()) else robot
        self.time = time
        if self.smooth is not robot:
            q, v = (x[..., None, None, :] for x in state[:2])
            rates = self._rates(q, v)
            rates = np.where(np.abs(rates) <= _velocities_of_rest(robot, v), 0.0, rates)
            self.slope = -2.0 * damping * np.abs(rates)
            self.constant = -friction * np.sign(rates) + damping * np.abs(rates) * rates

    def _rates(self, q: Array, v: Array) -> Array:
        """Return the velocities (..., all nv) of tree joints, then of loop joints."""
        across = self.smooth._loop_joint_velocities(q, v, time=self.time, return_status=True)[0]
        return np.concatenate([np.broadcast_to(v, (*across.shape[:-1], v.shape[-1])), across], axis=-1)

    def add_to(self, q: Array, v: Array, tau: Array, along: Array | None) -> tuple[Array, Array]:
        """Add these forces to the generalised force tau and to the efforts along loop joints, if there are any; return both."""
        n = self.smooth.nv
        efforts = self.constant + self.slope * self._rates(q, v)
        across = self.smooth._loop_joint_jacobian(q, time=self.time, return_status=True)[0]
        of_loops = (efforts[..., None, n:] @ across)[..., 0, :]
        return tau + efforts[..., :n] + of_loops, efforts[..., n:] + (0.0 if along is None else along)


def _of_each_variant(
    variants: Any, state: tuple[Array, ...], options: dict[str, Any], derivatives: ForwardDynamicsDerivatives
) -> Array:
    """Return the derivatives of the multipliers of each variant, computed for one variant at a time."""
    directions = (derivatives.displacement, derivatives.change, derivatives.velocity)
    lead = directions[0].shape[:-2]

    def row(x: Any, i: int, axes: int) -> Any:
        x = np.asarray(x)
        return np.broadcast_to(x, (*lead, *x.shape[x.ndim - axes :]))[i]

    matrices = []
    for i, robot in enumerate(variants):
        own = {
            key: row(x, i, 0) if key == "time" and x is not None
            else {name: row(w, i, 1) for name, w in x.items()} if key == "wrenches" and x
            else x
            for key, x in options.items()
        }  # fmt: skip
        displacement, change, velocity = (row(x, i, 2) for x in directions)
        along = replace(derivatives, displacement=displacement, change=change, velocity=velocity)
        matrices.append(_multiplier_matrices(robot, tuple(row(x, i, 1) for x in state), own, along))
    return np.stack(matrices)


def _inputs(derivatives: Any) -> tuple[Array, ...]:
    """Return the configuration, the velocity, and the acceleration or force of a derivative."""
    state, robot = derivatives._state, derivatives._robot
    return state if isinstance(state, tuple) else tuple(np.split(state, [robot.nq, robot.nq + robot.nv]))


def is_smooth(robot: object) -> bool:
    """Return True for a mechanism whose joints have no Coulomb friction; False for other objects."""
    return not getattr(robot, "_rough", True)


def is_default(wrenches: Wrenches | None, along: Along, check: bool, options: Mapping[str, Any]) -> bool:
    """Return True if all options of a derivative of forward dynamics have their default values."""
    return not options and wrenches is None and type(along) is str and along == "tangent" and check is True


def _matrix(
    product: Callable[..., Array], robot: LoopFunctions, state: tuple[Array, ...], options: dict[str, Any]
) -> Array:
    """Return the matrix whose rows are the products of unit cotangents."""
    one_more = {
        key: {name: np.asarray(w)[..., None, :] for name, w in x.items()} if key == "wrenches" and x is not None
        else np.asarray(x)[..., None] if key == "time" and x is not None
        else np.asarray(x)[..., None, :] if key.startswith("base_") and x is not None
        else x
        for key, x in options.items()
    }  # fmt: skip
    unit = np.eye(robot.nv)
    if isinstance(robot, VariantFunctions):
        unit = unit[None]  # the first axis is that of the variants
    return product(robot, tuple(x[..., None, :] for x in state), unit, one_more)


def check_robot(robot: LoopFunctions, *, variants: bool = True) -> None:
    """Raise TypeError unless robot is a Mechanism, or variants if these are allowed."""
    if not isinstance(robot, (LoopFunctions, VariantFunctions) if variants else LoopFunctions):
        raise TypeError(f"robot must be a Mechanism; got {robot!r}")


def check_forward(robot: LoopFunctions, along: Along) -> float:
    """Raise StateError if derivatives of forward dynamics do not exist; return 1.0 for along="tangent", else 0.0."""
    try:
        has_unknown_rates = robot._asks_for_rows
    except AttributeError:
        check_robot(robot)  # after the checks above, because it is slower
        raise
    check_choice("along", along, Along)
    if has_unknown_rates:
        raise StateError(
            "derivatives of forward_dynamics are not available: some constraint rows are a Python function of q, whose derivative is unknown"
        )
    return float(along == "tangent")


def ask(function: Any, robot: LoopFunctions, *arguments: Any) -> tuple[Any, ...]:
    """Call a function of the core; return its result, with the status if return_status=True is in the options (a dict, the last argument)."""
    answer = function(robot, *arguments[:-1], **arguments[-1])
    with_status = arguments[-1].get("return_status", False)
    return answer if with_status is not False and checked_truth("return_status", with_status) else (answer,)


def warn_of_friction(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, time: ArrayLike | None) -> None:
    """Issue a ModelWarning if a joint with Coulomb friction is at rest."""
    rough = robot._rough
    if not rough:
        return
    v = np.asarray(v, dtype=float)
    rest = _velocities_of_rest(robot, v)
    closing = any(j.closes_loop for j in rough.values())
    loop_v = robot._loop_joint_velocities(q, v, time=time, return_status=True)[0] if closing else v
    for name, j in rough.items():
        at = slice(j._all_v.start - robot.nv, j._all_v.stop - robot.nv)
        velocity = loop_v[..., at] if j.closes_loop else v[..., j.v_slice]
        if np.any((abs(velocity) <= rest[..., j._all_v]) & (np.asarray(j.type.friction) > 0.0)):
            fault = f"joint '{name}' is at rest and has Coulomb friction, which is discontinuous at rest"
            warnings.warn(f"{fault}: the derivatives do not include this friction", ModelWarning, stacklevel=3)
            return


def _velocities_of_rest(robot: LoopFunctions, v: Array) -> Array:
    """Return the velocities (..., all nv) at the rounding level of v, which count as rest."""
    unit = cast(Any, robot)._units_of_motion[1][0]
    return cast(Array, 1e-14 * np.abs(v / unit[: robot.nv]).max(axis=-1, initial=0.0)[..., None] * unit)


TERMS = ("stiffness", "rest", "damping", "friction", "armature", "pitch", *NONLINEAR)
_inverse_vjp = _undeclared("inverse_dynamics_vjp")
_inverse_by_dimensions = _undeclared("inverse_dynamics_by_dimensions")
_forward_by_dimensions = _undeclared("forward_dynamics_by_dimensions")


def _inverse_by_parameters(
    robot: LoopFunctions, state: tuple[ArrayLike, ...], cotangent: ArrayLike, options: dict[str, Any]
) -> Array:
    """Return the product (..., 10 bodies) of a cotangent of the generalised force with its derivatives with respect to inertial parameters."""
    return cast(Array, _inverse_vjp(robot, *state, cotangent, **options)[0][..., 3 * robot.nv :])


def inverse_by_dimensions(
    robot: LoopFunctions, state: tuple[ArrayLike, ...], cotangent: ArrayLike, options: dict[str, Any]
) -> Array:
    """Return the product (..., n) of a cotangent of the generalised force with its derivatives with respect to dimensions."""
    return cast(
        Array,
        _inverse_by_dimensions(robot, *state, cotangent, **{**options, "return_status": True})[0][
            ..., places(robot)[1]
        ],
    )


def forward_by_dimensions(
    robot: LoopFunctions, state: tuple[ArrayLike, ...], cotangent: ArrayLike, options: dict[str, Any]
) -> Array:
    """Return the product (..., n) of a cotangent of the acceleration with its derivatives with respect to dimensions.

    The entries are NaN for dimensions whose change opens the loops.
    """
    answer = _forward_by_dimensions(robot, *state, cotangent, **{**options, "return_status": True})[0]
    value, opens = (answer[..., k, places(robot)[1]] for k in (0, 1))
    unit = cast(Any, robot)._units_of_motion[1][0, : robot.nv]
    speed = np.abs(np.asarray(state[1]) / unit).max(axis=-1, initial=1.0)[..., None]
    return np.where(np.abs(opens) > 1e-6 * speed, np.nan, value)


def places(robot: LoopFunctions) -> tuple[dict[str, slice], Array]:
    """Return the slice of each name of :func:`dimensions` in the parameter vector, and the index of each entry in the core's parameter vector."""
    robot = robot._base  # of variants, too
    cached = vars(robot).get("_dimension_places")
    if cached is None:
        names: dict[str, slice] = {}
        places: list[int] = []
        for name, at in _named(robot):
            names[name] = slice(len(places), len(places) + len(at))
            places.extend(at)
        cached = vars(robot)["_dimension_places"] = names, np.array(places, dtype=int)
    return cast("tuple[dict[str, slice], Array]", cached)


def _named(robot: LoopFunctions) -> Iterator[tuple[str, range]]:
    springs, constraints = robot.description.springs, [c.spec for c in robot._constraints.values()]
    first, velocities = 12 * (len(robot.bodies) + len(constraints)), robot._all_nv
    for name, k in robot._load_places:
        yield f"{name}.parent", range(12 * k, 12 * k + 6)
        yield f"{name}.child", range(12 * k + 6, 12 * k + 12)
    for name, j in robot._joints.items():
        for k, term in enumerate(TERMS):
            if j.type.nv and _has(j.type, term) and (term != "pitch" or not j.closes_loop):
                start = first + k * velocities
                yield f"{name}.{term}", range(start + j._all_v.start, start + j._all_v.stop)
    first += len(TERMS) * velocities
    for spring in springs:
        for k, term in enumerate(("stiffness", "rest", "damping", *NONLINEAR)):
            yield f"{spring.name}.{term}", range(first + k, first + k + 1)
        first += 3 + len(NONLINEAR)
    for spec in constraints:
        for name, count in _own_numbers(spec):
            yield f"{spec.name}.{name}", range(first, first + count)
            first += count
    yield "gravity", range(first, first + 3)


def _has(joint: JointType, term: str) -> bool:
    """Return True if the joint type has this parameter; a spring needs velocities that are rates of coordinates, or a ball joint."""
    if term == "pitch":
        return isinstance(joint, Helical)
    if term not in (*SPRINGS, "rest") or all(joint.rates):
        return True
    return term != "rest" and joint.quaternion and joint.nv == 3


def _own_numbers(spec: Any) -> list[tuple[str, int]]:
    if not isinstance(spec, ConstraintSpec):
        return []  # a joint
    if isinstance(spec, RollingSpec):
        return [("radius", 1), ("on_radius", 1)]
    if isinstance(spec, CouplerSpec):
        return [("coefficients", sum(len(coefficients) for _, _, coefficients in spec.terms)), ("offset", 1)]
    return [(name, 1) for name in KINDS.get(spec.kind) or ()]
