"""Quantities of the spanning tree, with all loops open: of joints, frames and the mass matrix; and friction that is proportional to constraint forces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from .._arrays import Array, ArrayLike, checked_truth, common_axes, real_array, real_rows
from .._core import Status
from ..analysis.actuation import across_loops, actuation_matrix, actuator_efforts, motors_of
from ..analysis.linear_algebra import applied
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.operations import _operation
from ..dynamics.options import (
    BatchOptions,
    FrameOptions,
    ReactionOptions,
    StateOptions,
    ThreadedLoads,
    Unpack,
    Wrenches,
    of_states,
    shows_options,
)
from ..dynamics.reactions import carried_by_tree, joint_bases
from ..errors import ModelError, NotRealizableError, ShapeError, StateError
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


JAMMED = 1e-10  # smallest singular value of the contact's linear system below which the contact jams


@of_states
def sliding_contact(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, tau: ArrayLike, joint: str, ratio: ArrayLike, *, wrenches: Wrenches | None = None,
    time: ArrayLike | None = None, **options: Unpack[BatchOptions],
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Compute forward dynamics with friction in a loop joint, where the friction is proportional to the joint's constraint force (Class II contact).

    The effort along the joint is h = ratio h_c, with the joint's multipliers h_c. For Coulomb friction of a tip that slides on a surface, the ratio
    for the normal force is -mu in the direction of sliding, and +mu in the opposite direction: the caller selects the sign. h_c depends linearly on
    h, therefore h is the solution of a small linear system.

    Parameters
    ----------
    q, v, tau : (..., nq), (..., nv), (..., nv) configuration, velocity and generalised force [rad, m; rad/s, m/s; N m, N]; q and v satisfy the loops
    joint : name of a loop joint with n velocities and r constraint rows
    ratio : (..., n, r) ratio of the efforts along its velocities to its multipliers (dimensionless; m for a moment from a force)
    wrenches, time : as in :meth:`~sarrus.Mechanism.forward_dynamics`
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Returns
    -------
    a : (..., nv) generalised acceleration [rad/s^2, m/s^2]
    multipliers : (..., nc) multipliers of all constraint rows [N m, N]
    h : (..., n) efforts along the joint [N m, N]

    Raises
    ------
    StateError
        The contact jams, because with this ratio the constraint force increases as fast as the friction force (Painlevé paradox).
    ModelError, ShapeError
        The joint is not a loop joint; the ratio is not (..., n, r).

    References
    ----------
    van der Merwe 1995, 5.2.4 (Class II), with 5.21 to 5.29.

    Examples
    --------
    A block on an incline of 45 degrees, mu = 0.3: a = g (sin - mu cos).

    >>> import numpy as np
    >>> import sarrus
    >>> b = sarrus.Builder("block")
    >>> b.add_body("block", sarrus.Inertia.box(2.0, (0.1, 0.1, 0.1)))
    >>> b.add_joint("float", sarrus.Free(), "ground", "block")
    >>> down = sarrus.Transform.from_rpy(0.0, np.pi / 4, 0.0)  # its x goes down
    >>> b.add_joint("slope", sarrus.Prismatic("x"), "ground", "block", at_parent=down, at_child=down, loop=True)
    >>> robot = b.build()
    >>> q, v = robot.neutral(), np.zeros(6)
    >>> ratio = [[0.0, 0.0, 0.0, 0.0, -0.3]]  # multipliers: three moments, a side force and the normal force
    >>> a, _, h = sarrus.formulations.sliding_contact(robot, q, v, v, "slope", ratio)
    >>> float(np.linalg.norm(a).round(6)), float((9.81 * np.sqrt(0.5) * 0.7).round(6))
    (4.855702, 4.855702)
    """
    checked_mechanism(robot, "robot")
    contact_joint = robot.joint(joint)
    if not contact_joint.closes_loop:
        raise ModelError(f"joint '{joint}' is a tree joint; expected a loop joint (loop=True) for a sliding contact")
    rows, n = robot.constraint(joint).rows, contact_joint.type.nv
    count = rows.stop - rows.start
    K = real_array("ratio", ratio)
    if K.shape[-2:] != (n, count):
        raise ShapeError(f"ratio of joint '{joint}' must be (..., {n}, {count}); got {K.shape}")
    q, v = robot.normalize(q), real_rows("v", v, robot.nv, finite=False)
    tau = real_rows("tau", tau, robot.nv, finite=False)
    S = actuation_matrix(robot, q, actuated=[joint])
    lead = common_axes({"q": q.shape[:-1], "v": v.shape[:-1], "tau": tau.shape[:-1], "ratio": K.shape[:-2]})
    unit = max(1.0, float(np.abs(tau[np.isfinite(tau)]).max(initial=0.0)))  # force along the joint in each column
    along = [np.zeros(robot.nv), *(unit * S[..., k] for k in range(n))]
    pushes = np.stack([np.broadcast_to(tau + x, (*lead, robot.nv)) for x in along])
    a, reactions = robot.forward_dynamics(q, v, pushes, wrenches=wrenches, time=time, return_reactions=True)
    carried = reactions.multipliers
    per_unit = np.moveaxis(carried[1:] - carried[0], 0, -1) / unit
    with np.errstate(over="ignore", invalid="ignore"):
        system, constant = np.eye(n) - K @ per_unit[..., rows, :], applied(K, carried[0][..., rows])
    sound = np.isfinite(system).all(axis=(-2, -1)) & np.isfinite(constant).all(axis=-1)
    if not lead and not sound:
        raise StateError(f"joint '{joint}' has no result: with a ratio of {np.abs(K).max():.3g} the result overflows")
    system = np.where(sound[..., None, None], system, np.eye(n))  # the forces of invalid states are NaN
    if np.linalg.svd(system, compute_uv=False).min(initial=1.0) <= JAMMED:
        raise StateError(
            f"joint '{joint}' jams: the required force grows with the friction force; expected a smaller ratio"
        )
    h = np.linalg.solve(system, np.where(sound[..., None], constant, np.nan)[..., None])[..., 0]
    a = a[0] + applied(np.moveaxis(a[1:] - a[0], 0, -1) / unit, h)
    return a, carried[0] + applied(per_unit, h), h
