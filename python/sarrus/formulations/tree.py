"""Quantities of the spanning tree, with all loops open: of joints, frames and the mass matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from .._arrays import Array, ArrayLike, checked_truth, real_array, real_rows
from .._core import Status
from ..analysis.actuation import across_loops, actuator_efforts, motors_of
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.operations import _operation
from ..dynamics.options import FrameOptions, ReactionOptions, StateOptions, ThreadedLoads, Unpack, shows_options
from ..dynamics.reactions import carried_by_tree, joint_bases
from ..errors import NotRealizableError
from ..mechanism import checked_mechanism


@_operation
def omega(robot: LoopFunctions, q: ArrayLike, frame: str, **options: Unpack[FrameOptions]) -> Array:
    """Compute Omega = M^-1 J^T (..., nv, 6) of the tree, with open loops: joint accelerations per wrench on a frame (van der Merwe 5.51).

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    frame : name of a frame, see `frames` of the mechanism
    expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.formulations.omega(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], "tip")[0].tolist()
    [0.0, 2.0, 0.0, -1.0, 0.0, 0.0]
    """


@_operation
def christoffel_symbols(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Compute Gamma(q) (..., nv, nv, nv) of the tree, C(q, v)_ij = sum over k of Gamma_ijk v_k, in closed form.

    C is the matrix of :meth:`~sarrus.Mechanism.coriolis_matrix`. For joints with v = dq/dt, Gamma are the Christoffel symbols of the first kind of
    the mass matrix, (dM_ij/dq_k + dM_ik/dq_j - dM_kj/dq_i) / 2, symmetric in j and k. The velocities of ball, free and planar joints are not rates of
    coordinates. For these joints, too, C v are the Coriolis and centrifugal forces, and dM/dt - 2C is skew. But Gamma_ijk - Gamma_ikj is not zero: it
    is the Lie bracket of the joint's motions (gyroscopic terms). Armature of tree joints is constant and has no effect. The cost is O(bodies
    depth^2).

    Raises ShapeError if nv^3 exceeds 2^31.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    References
    ----------
    Li and Wu 2011, 4.3; Murray, Li and Sastry 1994, 4.23; Echeandia and Wensing 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.mechanisms.double_pendulum()
    >>> q, v = np.array([0.3, 0.5]), np.array([1.0, -2.0])
    >>> bool(np.allclose(sarrus.formulations.christoffel_symbols(arm, q) @ v, arm.coriolis_matrix(q, v)))
    True
    """


@_operation
def mass_matrix_derivative(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Compute the derivative (..., nv, nv, nv) of the tree's mass matrix M_ij along each velocity k: dM/dt = mass_matrix_derivative(q) @ v.

    For joints with v = dq/dt it is dM_ij/dq_k. For ball, free and planar joints it is the derivative along :meth:`~sarrus.Mechanism.integrate`. It is
    computed in closed form, as Gamma_ijk + Gamma_jik of :func:`~sarrus.formulations.christoffel_symbols`.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> arm = sarrus.mechanisms.double_pendulum()
    >>> q, step = np.array([0.3, 0.5]), np.array([0.0, 1e-6])
    >>> difference = (arm.mass_matrix(q + step) - arm.mass_matrix(q - step)) / 2e-6
    >>> bool(np.allclose(sarrus.formulations.mass_matrix_derivative(arm, q)[..., 1], difference))
    True
    """


@shows_options
def constraint_forces(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, multipliers: ArrayLike | None = None, time: ArrayLike | None = None,
    **options: Unpack[ThreadedLoads],
) -> dict[str, Array]:  # fmt: skip
    """Compute the components (..., 6 - nv) of every joint's reaction in its constraint space: tau_c of f = psi tau + psi_c tau_c (2.16).

    The bases psi and psi_c are those of :func:`~sarrus.formulations.joint_bases`.

    Parameters
    ----------
    multipliers, base_velocity, base_acceleration : as in :func:`~sarrus.formulations.reactions`
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
    time : (...) time for prescribed motions [s]
    wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
    threads : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> sarrus.formulations.constraint_forces(pendulum, [0.0], [0.0], [0.0])["pivot"].shape
    (5,)
    """
    checked_mechanism(robot, "robot")
    return {
        name: np.einsum("...ij,...i->...j", joint_bases(robot, q, name)[1], f)
        for name, f in reactions(robot, q, v, a, multipliers=multipliers, time=time, **options).items()
    }


@shows_options
def reactions(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, multipliers: ArrayLike | None = None, time: ArrayLike | None = None,
    **options: Unpack[ReactionOptions],
) -> dict[str, Array]:  # fmt: skip
    """Compute the wrench that every tree joint, including fixed joints, exerts on its successor (the body farther from the ground).

    The result maps joint names to (..., 6) [moment; force] in the joint's frame on this body, at its origin: van der Merwe's f (4.23, 4.30) [N m, N].
    Its component along the motion space is the sum of motor, friction, spring and armature forces. Its component in the constraint space is returned
    by :func:`~sarrus.formulations.constraint_forces`. In contrast, :meth:`~sarrus.Mechanism.joint_wrenches` includes loop joints, returns wrenches on
    the child of each joint, and returns efforts separately.

    Parameters
    ----------
    multipliers : (..., nc) multipliers of the constraint rows in this motion [N m, N], as :meth:`~sarrus.Mechanism.forward_dynamics` and
        :meth:`~sarrus.Mechanism.actuator_efforts` return them; default: the multipliers for motor efforts, by
        :meth:`~sarrus.Mechanism.actuator_efforts`. Indeterminate components (``indeterminate`` of :meth:`~sarrus.Mechanism.joint_wrenches`) are those
        of least norm over all joints
    base_velocity, base_acceleration : as in :meth:`~sarrus.Mechanism.inverse_dynamics`
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
    time : (...) time for prescribed motions [s]
    wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    NotRealizableError
        `multipliers` is None, and motors alone cannot produce this motion.
    ValueError
        `multipliers` is None, for a mechanism with loops and a moving base.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> sarrus.formulations.reactions(pendulum, [0.0], [0.0], [0.0])["pivot"].round(3).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 19.62]

    All pins of a released four-bar, those of its tree and the loop joint:

    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q, v, tau = fourbar.assemble(), np.zeros(3), np.zeros(3)
    >>> a, loops = fourbar.forward_dynamics(q, v, tau, return_reactions=True)
    >>> pins = sarrus.formulations.reactions(fourbar, q, v, a) | loops.wrenches
    >>> sorted(pins) == sorted(joint.name for joint in fourbar.description.joints)
    True
    """
    checked_mechanism(robot, "robot")
    with_status = checked_truth("return_status", options.get("return_status", False))
    wrenches, status = robot._open_reactions(q, v, a, **options)
    if not robot.nc:
        return cast("Any", (wrenches, status)) if with_status else wrenches
    if multipliers is None:
        across, state = _carried_across(robot, q, v, a, time, options)
        status = np.maximum(status, state)
    else:
        multipliers = real_rows("multipliers", multipliers, robot.nc, np.shape(q)[:-1], finite=False)
        across = robot._loop_wrenches(q, multipliers, time=time, return_status=True)[0]
    # a joint also transmits the reactions of loop constraints on its outer bodies: minus their wrenches on these bodies
    wrenches |= {name: wrenches[name] - wrench for name, wrench in carried_by_tree(robot, q, across).items()}
    return cast("Any", (wrenches, status)) if with_status else wrenches


def _carried_across(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, time: ArrayLike | None, options: Mapping[str, Any]
) -> tuple[Array, Any]:
    """Return the wrenches (..., constraints, 6) on the constraints' children while the motors produce a motion, and the status."""
    if any(np.any(0.0 if (x := options.get(base)) is None else x) for base in ("base_velocity", "base_acceleration")):
        raise ValueError("multipliers: required for loops with a moving base; expected (..., nc), got None")
    keywords = {name: options[name] for name in ("wrenches", "threads", "return_status") if name in options}
    try:
        results: Any = actuator_efforts(robot, q, v, a, time=time, return_reactions=True, **keywords)
    except NotRealizableError as error:
        raise NotRealizableError(f"{error}; if other forces act, too, pass multipliers=") from None
    u, mu, *status = results
    across = across_loops(robot, real_array("q", q), u, mu, motors_of(robot, None), time)
    return across, status[0] if status else Status.FINE
