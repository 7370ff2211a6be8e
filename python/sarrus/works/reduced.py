"""The equations of motion in as many coordinates as a closed mechanism has freedoms: independent, actuated or task coordinates.

With v = G y-dot + g of :mod:`~sarrus.analysis.independent_coordinates`

  G^T M G y-ddot + G^T (M (G-dot y-dot + g-dot) + h) = G^T tau

which is Lagrange's and d'Alembert's equation with the dependent velocities eliminated (Li and Wu 2011, 4.6) and, written for each link's
centre of gravity, the COG Jacobian of Sonoda, Ishii and Isobe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, checked_truth, common_axes, into, real_rows
from .._showing import Brief
from ..analysis.independent_coordinates import Coordinates, Dependence, component_rows, loop_motions
from ..analysis.linear_algebra import NEGLIGIBLE, applied, transposed
from ..description.joints import PARAMETERS
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.options import BatchOptions, ExpressedIn, FrameTimeOptions, StateOptions, Wrenches, shows_options
from ..dynamics.states import of_states
from ..errors import ModelError, StateError
from ..mechanism import checked_mechanism

if TYPE_CHECKING:
    from typing import Unpack

ROUNDING = 1e-12  # of mobilities, relative: no loops add to it


@dataclass(frozen=True, eq=False, repr=False)
class ReducedForm(Brief):
    """A closed mechanism's equations of motion in independent coordinates y: mass_matrix y-ddot + bias = G^T tau.

    Attributes
    ----------
    coordinates : names of the coordinates; "joint[1]" is the second velocity of a joint, "tip tx" a component of a frame's velocity
    velocity : y-dot (..., k) of the state
    jacobian : G (..., nv, k), v = G y-dot + drift
    drift : g (..., nv), what prescribed motions add to v
    jacobian_derivative : G-dot (..., nv, k)
    bias_acceleration : (..., nv), a = G y-ddot + bias_acceleration
    mass_matrix : G^T M G (..., k, k)
    bias : (..., k) forces along y that y-ddot = 0 takes
    """

    coordinates: tuple[str, ...]
    velocity: Array
    jacobian: Array
    drift: Array
    jacobian_derivative: Array
    bias_acceleration: Array
    mass_matrix: Array
    bias: Array

    def reduced_force(self, tau: ArrayLike) -> Array:
        """G^T tau (..., k), of a generalised force (..., nv) [N m, N]."""
        tau = real_rows("tau", tau, self.jacobian.shape[-2], self.bias.shape[:-1])
        return applied(transposed(self.jacobian), tau)

    def forward(self, force: ArrayLike) -> Array:
        """y-ddot (..., k) under forces (..., k) along y; StateError where the coordinates move nothing with mass."""
        need = self._checked("force", force) - self.bias
        try:
            return np.asarray(np.linalg.solve(self.mass_matrix, need[..., None])[..., 0])
        except np.linalg.LinAlgError:
            listed = ", ".join(self.coordinates)
            raise StateError(f"the coordinates {listed} are not free to move, or not all with mass") from None

    def inverse(self, acceleration: ArrayLike) -> Array:
        """Forces (..., k) along y for y-ddot (..., k)."""
        return applied(self.mass_matrix, self._checked("acceleration", acceleration)) + self.bias

    def full_velocity(self, velocity: ArrayLike) -> Array:
        """v (..., nv) for y-dot (..., k)."""
        return applied(self.jacobian, self._checked("velocity", velocity)) + self.drift

    def full_acceleration(self, acceleration: ArrayLike) -> Array:
        """The mechanism's acceleration (..., nv), at the velocity of the state, for y-ddot (..., k)."""
        return applied(self.jacobian, self._checked("acceleration", acceleration)) + self.bias_acceleration

    def _checked(self, what: str, x: ArrayLike) -> Array:
        return real_rows(what, x, len(self.coordinates), self.bias.shape[:-1])


@of_states
def reduced_dynamics(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, *, independent: Coordinates = None, task: str | tuple[str, str] | None = None,
    wrenches: Wrenches | None = None, time: ArrayLike | None = None,
    **options: Unpack[BatchOptions],
) -> ReducedForm:  # fmt: skip
    """The equations of motion in independent coordinates, as many as there are degrees of freedom.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) that satisfy the constraints
    independent : names of joints of the tree, or (joint, index) for one of several velocities; "actuated" for the driven joints;
        default: those in which the motion shows best (a pivoted factorisation of its projection), the same for all states
    task : instead, a frame, or (frame, "rx ty ..."): components of its velocity in the world's axes

    Raises
    ------
    StateError
        The coordinates are not independent, or do not determine the motion. In a batch the rows of such states are NaN.

    References
    ----------
    Li and Wu 2011, 4.6 (Lagrange and d'Alembert); Sonoda, Ishii and Isobe, eqs 3-18.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble()
    >>> v = fourbar.project_velocity(q, [1.0, 0.0, 0.0])
    >>> form = sarrus.works.reduced_dynamics(fourbar, q, v, independent=["motor"])
    >>> bool(np.allclose(form.full_acceleration(form.forward([2.0])), fourbar.forward_dynamics(q, v, [2.0, 0.0, 0.0])))
    True
    """
    checked_mechanism(robot, "robot")
    motion = Dependence(robot, q, v, independent, time, task=task, independent=True)
    a, G = motion.solve(motion.gamma, -applied(motion.E_dot, motion.v)), motion.G
    return ReducedForm(
        coordinates=motion.names,
        velocity=applied(motion.E, motion.v),
        jacobian=G,
        drift=motion.solve(robot.constraint_velocity(q, time=time), np.zeros(len(motion.names))),
        jacobian_derivative=motion.derivative,
        bias_acceleration=a,
        mass_matrix=transposed(G) @ robot.mass_matrix(q) @ G,
        bias=applied(transposed(G), robot.inverse_dynamics(q, motion.v, a, wrenches=wrenches)),
    )


@shows_options
def operational_inertia_inverse(
    robot: LoopFunctions, q: ArrayLike, frame: str, **options: Unpack[FrameTimeOptions]
) -> Array:
    """Acceleration of a frame per wrench on it, (..., 6, 6), loops closed: J_f (M^-1 as they leave it) J_f^T; defined everywhere.

    van der Merwe 5.58. With all loops open it is J_f :func:`~sarrus.works.omega`.

    >>> import sarrus
    >>> float(sarrus.works.operational_inertia_inverse(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], "tip")[3, 3])
    0.5
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> sarrus.works.operational_inertia_inverse(fourbar, fourbar.assemble(), "coupler").shape
    (6, 6)
    """
    checked_mechanism(robot, "robot")
    time = cast("dict[str, Any]", options).pop("time", None)
    if not robot.nc:
        return robot._tree_operational_inertia_inverse(q, frame, **options)
    out, with_status = options.pop("out", None), checked_truth("return_status", options.pop("return_status", False))
    if not with_status:
        cast("Any", robot.jacobian)(q, frame, **options)  # which says what is wrong
    J, status = cast("Any", robot.jacobian)(q, frame, **options, return_status=True)
    M = robot.mass_matrix(q, return_status=True)[0]
    A, rows = cast("tuple[Array, Array]", robot.constraint_jacobian(q, time=time, return_status=True))
    bad = (np.asarray(status) != 0) | (np.asarray(rows) != 0)
    M, A = np.where(bad[..., None, None], np.eye(robot.nv), M), np.where(bad[..., None, None], 0.0, A)
    answer = J @ loop_motions(robot, A).constrained_inverse(M) @ transposed(J)
    answer = into(out, np.where(bad[..., None, None], np.nan, answer))
    return cast("Array", (answer, np.maximum(status, rows)) if with_status else answer)


@of_states
def operational_inertia(
    robot: LoopFunctions, q: ArrayLike, frame: str, *, components: str = "rx ry rz tx ty tz", expressed_in: ExpressedIn = "frame",
    time: ArrayLike | None = None,
    **options: Unpack[StateOptions],
) -> Array:  # fmt: skip
    """Operational-space inertia (..., n, n) of a frame, loops closed, along those of rx ry rz tx ty tz in which it can move.

    Raises StateError where it cannot: its inertia is infinite there, and :func:`~sarrus.works.operational_inertia_inverse` is what exists; ModelError
    for other names. van der Merwe 5.57.

    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> sarrus.works.operational_inertia(fourbar, fourbar.assemble(), "coupler", components="ry").shape
    (1, 1)
    >>> sarrus.works.operational_inertia(sarrus.mechanisms.pendulum(), [0.0], "tip")
    Traceback (most recent call last):
        ...
    sarrus.errors.StateError: frame 'tip' can move in 1 of 6 directions: its inertia is infinite in the others
    """
    checked_mechanism(robot, "robot")
    rows = component_rows(components)
    if not rows:
        raise ModelError(f"components are one or more of {' '.join(PARAMETERS)}; got {components!r}")
    whole = operational_inertia_inverse(robot, q, frame, expressed_in=expressed_in, time=time)
    common_axes({"the answer": whole.shape})
    # what the frame could do with the loops open is what its mobility is measured by: it may be nothing but rounding
    open_ = robot._tree_operational_inertia_inverse(q, frame, expressed_in=expressed_in, return_status=True)[0]
    held = np.sqrt(np.diagonal(np.where(np.isnan(open_), np.abs(whole), open_), axis1=-2, axis2=-1))[..., rows]
    bad = np.asarray(np.isnan(whole).any(axis=(-2, -1), keepdims=True))  # stays NaN, and no other state's business
    scale = np.where((held > 0.0) & ~bad[..., 0], held, 1.0)
    inverse = np.where(bad, np.eye(len(rows)), whole[..., np.array(rows)[:, None], rows])
    relative = inverse / (scale[..., :, None] * scale[..., None, :])
    rank = np.linalg.matrix_rank(relative, tol=NEGLIGIBLE if robot.nc else ROUNDING, hermitian=True)
    if np.any(rank < len(rows)):
        which = "directions" if len(rows) == 6 else f"directions {components}"
        raise StateError(
            f"frame '{frame}' can move in {int(np.min(rank))} of {len(rows)} {which}: its inertia is infinite in the others"
        )
    return np.where(bad, np.nan, np.linalg.inv(relative) / (scale[..., :, None] * scale[..., None, :]))
