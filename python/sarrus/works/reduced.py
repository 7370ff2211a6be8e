"""The equations of motion in as many coordinates as a closed mechanism has freedoms: independent, actuated or task coordinates.

With v = G y-dot + g of :mod:`~sarrus.analysis.independent_coordinates`

  G^T M G y-ddot + G^T (M (G-dot y-dot + g-dot) + h) = G^T tau

which is Lagrange's and d'Alembert's equation with the dependent velocities eliminated (Li and Wu 2011, 4.6) and, written for each link's
centre of gravity, the COG Jacobian of Sonoda, Ishii and Isobe.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from .._arrays import Array, ArrayLike, checked_truth, common_axes, into
from ..analysis.independent_coordinates import Coordinates, ReducedForm, component_rows, loop_motions, reduced_form
from ..analysis.linear_algebra import NEGLIGIBLE, transposed
from ..description.joints import PARAMETERS
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.options import (
    BatchOptions,
    ExpressedIn,
    FrameTimeOptions,
    StateOptions,
    Unpack,
    Wrenches,
    shows_options,
)
from ..dynamics.states import of_states
from ..errors import ModelError, StateError
from ..mechanism import checked_mechanism

ROUNDING = 1e-12  # of mobilities, relative: no loops add to it


@shows_options
def reduced_dynamics(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, *, independent: Coordinates = None, task: str | tuple[str, str] | None = None,
    wrenches: Wrenches | None = None, time: ArrayLike | None = None, out: ReducedForm | None = None,
    **options: Unpack[BatchOptions],
) -> ReducedForm:  # fmt: skip
    """The equations of motion in independent coordinates, as many as there are degrees of freedom.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) that satisfy the constraints
    independent : names of joints of the tree, or (joint, index) for one of several velocities; "actuated" for the driven joints;
        default: those in which the motion shows best (a pivoted factorisation of its projection), the same for all states
    task : instead, a frame, or (frame, "rx ty ..."): components of its velocity in the world's axes
    wrenches : of frames, [moment; force] (..., 6) each, as in :meth:`~sarrus.Mechanism.inverse_dynamics`: part of `bias` [N m, N]
    time : (...) where motion is prescribed [s]
    out : the form of an earlier call, of as many states and the same coordinates, whose arrays get the answer

    Raises
    ------
    StateError
        The coordinates are not independent, or do not determine the motion: of the loops, or of E on the free motions, a part below 1e-9 of
        the largest counts as none. In a batch the rows of such states are NaN, and their status is 2.

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
    form, status = reduced_form(robot, q, v, independent, time, task=task, wrenches=wrenches, out=out, **options)
    return form if status is None else cast("ReducedForm", (form, status))


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
