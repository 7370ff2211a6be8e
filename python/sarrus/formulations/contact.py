"""Sliding contacts: friction along a joint, proportional to its constraint force."""

from __future__ import annotations

import numpy as np

from .._arrays import Array, ArrayLike, common_axes, real_array, real_rows
from ..analysis.actuation import actuation_matrix
from ..analysis.linear_algebra import applied
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.options import BatchOptions, Unpack, Wrenches
from ..dynamics.states import of_states
from ..errors import ModelError, ShapeError, StateError
from ..mechanism import checked_mechanism

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
