"""Motion of a floating base as a function of the motion of the joints, as in chapter 3 of SpaceDyn, extended to mechanisms with loops.

The equations of motion are split into the base's motion x_b and the joints' coordinates phi (SpaceDyn 3.18)

  H_b  x_b-ddot + H_bm phi-ddot + c_b = F_b        external force on the base
  H_bm^T x_b-ddot + H_m phi-ddot + c_m = tau       efforts of the motors

Without external force on the base, the integral of the first line is the conservation of momentum, so that x_b-dot follows from phi-dot. Loop
constraints are internal forces, which do not change the momentum. They only restrict the joint velocities: phi-dot = G y-dot + g, with independent
velocities y-dot (:mod:`~sarrus.analysis.independent_coordinates`).

The base velocity x_b-dot may be the velocity of any frame of the mechanism, in any axes: v = Z [x_b-dot; y-dot] + z.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .._arrays import Array, ArrayLike, check_mapping, checked_names, into, real_array, real_rows
from .._showing import Brief
from ..analysis.independent_coordinates import Coordinates, reduced_form, velocity_names
from ..analysis.linear_algebra import applied, solutions, transposed
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.operations import Joint, _operation
from ..dynamics.options import BatchOptions, ExpressedIn, FrameOptions, StateOptions, Unpack, Wrenches, of_states
from ..errors import ModelError, ShapeError, StateError, check_name


@dataclass(frozen=True, eq=False)
class EndPoint:
    """Velocity of a frame, J_b x_b-dot + J_m y-dot (SpaceDyn 3.16), and rates of the Jacobians for its acceleration (3.17).

    Attributes
    ----------
    base_jacobian, joint_jacobian : J_b (..., 6, 6) and J_m (..., 6, n) [rad, m per rad, m]
    base_jacobian_derivative, joint_jacobian_derivative : time derivatives of J_b and J_m along v [rad, m per rad, m; per s]
    """

    base_jacobian: Array
    joint_jacobian: Array
    base_jacobian_derivative: Array
    joint_jacobian_derivative: Array


@dataclass(frozen=True, eq=False, repr=False)
class FreeFloatingForm(Brief):
    """Equations of motion of a mechanism with floating base, split into equations of its base and of its joints (SpaceDyn 3.18).

    Attributes
    ----------
    coordinates : names of the joints' velocities y-dot (n,); "joint[1]" is the second velocity of a joint
    base_velocity, joint_velocity : x_b-dot (..., 6) and y-dot (..., n) of the state [rad/s, m/s]
    base_inertia, coupling_inertia, joint_inertia : H_b (..., 6, 6), H_bm (..., 6, n), H_m (..., n, n) (3.19-3.23) [kg m2, kg m, kg]
    base_bias, joint_bias : c_b (..., 6), c_m (..., n), forces at zero acceleration of these coordinates [N m, N]. They include gravity, friction,
        springs and minus the external wrenches, like :meth:`~sarrus.Mechanism.bias_forces`
    momentum : (..., 6) momentum along the base's coordinates [kg m2/s, kg m/s]; for a base velocity in "world" axes it is [angular, about the world's
        origin; linear]
    velocity_map : Z (..., nv, 6 + n) in v = Z [x_b-dot; y-dot] + z, where z is the velocity that prescribed motions add
    end_points : frame to its :class:`EndPoint`
    """

    coordinates: tuple[str, ...]
    base_velocity: Array
    joint_velocity: Array
    base_inertia: Array
    coupling_inertia: Array
    joint_inertia: Array
    base_bias: Array
    joint_bias: Array
    momentum: Array
    velocity_map: Array
    end_points: Mapping[str, EndPoint]

    @property
    def base_motion(self) -> Array:
        """-H_b^-1 H_bm (..., 6, n), the base's velocity per joint velocity at zero momentum."""
        return -_solved(self.base_inertia, self.coupling_inertia)

    @property
    def generalized_inertia(self) -> Array:
        """H* = H_m - H_bm^T H_b^-1 H_bm (..., n, n), the inertia at the motors without external force on the base."""
        return self.joint_inertia + transposed(self.coupling_inertia) @ self.base_motion

    @property
    def generalized_bias(self) -> Array:
        """c* = c_m - H_bm^T H_b^-1 c_b (..., n): H* y-ddot + c* = tau without external force on the base."""
        return self.joint_bias + applied(transposed(self.base_motion), self.base_bias)

    def generalized_jacobian(self, end_point: str) -> Array:
        """Return J* = J_m - J_b H_b^-1 H_bm (..., 6, n) of an end point.

        Parameters
        ----------
        end_point : name of a frame in `end_points`
        """
        point = self._at(end_point)
        return np.asarray(point.joint_jacobian + point.base_jacobian @ self.base_motion)

    def drift(self, end_point: str) -> Array:
        """Return J_b H_b^-1 p (..., 6): velocity of the end point due to the momentum p of the state, with joints at rest [rad/s, m/s].

        Parameters
        ----------
        end_point : name of a frame in `end_points`
        """
        return applied(self._at(end_point).base_jacobian, _solved(self.base_inertia, self.momentum[..., None])[..., 0])

    def _at(self, end_point: str) -> EndPoint:
        check_name("end point", end_point, self.end_points, "equations_of_motion()")
        return self.end_points[end_point]

    def coupling_factor(self, end_point: str) -> Array:
        """Return -H_b^-1 H_bm J*^+ (..., 6, 6), the base's velocity per velocity of the end point at zero momentum.

        Each singular value is the disturbance of the base by a unit motion of the end point along the corresponding singular vector (Xu 1993, dynamic
        coupling factor).

        Parameters
        ----------
        end_point : name of a frame in `end_points`
        """
        return np.asarray(self.base_motion @ solutions(self.generalized_jacobian(end_point)).inverse)


INDETERMINATE = (
    "the inertia of all bodies together is singular about some axis, so the motion of the base is indeterminate"
)


def _solved(H: Array, b: Array, fault: str = INDETERMINATE) -> Array:
    try:
        return np.asarray(np.linalg.solve(H, b))
    except np.linalg.LinAlgError:
        raise StateError(fault) from None


@_operation
def generalized_jacobian(
    robot: LoopFunctions, q: ArrayLike, frame: str, *, independent: Coordinates = None, time: ArrayLike | None = None,
    **options: Unpack[FrameOptions],
) -> Array:  # fmt: skip
    """Return the generalized Jacobian J* = J_m - J_b H_b^-1 H_bm (..., 6, nv - 6), a frame's velocity per joint velocity on a floating base.

    Without external forces, momentum is constant. If it is zero, the frame's velocity is J* times the velocities of all joints except the base's free
    joint, in the order of v. A nonzero momentum adds a drift, which is the frame's velocity at ``momentum_velocity(q, zeros, momentum)``. The result
    does not depend on the choice of the base body.

    With loops, J* is valid for joint velocities that the loops allow, as :meth:`~sarrus.Mechanism.jacobian`. With ``independent``, the columns belong
    to independent velocities, and the loops are closed.

    Parameters
    ----------
    robot : a mechanism with floating base
    q : (..., nq) configuration [rad, m]
    frame : name of a frame, whose velocity is [angular; linear] in the axes of ``expressed_in``
    independent : names of joints, or (joint, index) for one of several velocities, or "actuated"; the result (..., 6, k) is then per independent
        velocity, with closed loops. Default: all joints
    time : (...) time for prescribed motions [s]; the velocity due to prescribed motions is not included in J*
    expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    ModelError
        The mechanism is connected to the ground.
    StateError
        The mechanism, as a single rigid body, has no inertia about some axis. Or the velocities `independent` are dependent, or do not determine the
        motion.

    References
    ----------
    SpaceDyn 3.16, 3.18-3.28; Umetani and Yoshida 1989; Wilde, Kwok Choon, Grall and Romano 2018, with another derivation.

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.box(3.0, (1, 1, 1)))
    >>> b.add_body("arm", sarrus.Inertia(1.0, (1, 0, 0), [[0, 0, 0], [0, 1e-9, 0], [0, 0, 1e-9]]))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> b.add_joint("shoulder", sarrus.Prismatic("x"), "satellite", "arm")
    >>> robot = b.build()
    >>> sarrus.floating.generalized_jacobian(robot, robot.neutral(), "arm").ravel().round(6).tolist()     # the arm has 1 kg of 4 kg
    [0.0, 0.0, 0.0, 0.75, 0.0, 0.0]
    """
    return _reduced(robot, generalized_jacobian, (q, frame), None, independent, time, options)


@_operation
def generalized_jacobian_derivative(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, frame: str, *, independent: Coordinates = None, time: ArrayLike | None = None,
    **options: Unpack[FrameOptions],
) -> Array:  # fmt: skip
    """Return the exact time derivative (..., 6, nv - 6) of :func:`~sarrus.floating.generalized_jacobian` along v.

    v is the full velocity of the mechanism, including the base's: see :func:`~sarrus.floating.momentum_velocity`.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    frame : name of a frame, see `frames` of the mechanism
    independent : as in :func:`~sarrus.floating.generalized_jacobian`
    time : (...) time for prescribed motions [s]
    expressed_in, out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.box(3.0, (1, 1, 1)))
    >>> b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), radius=0.1))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> b.add_joint("shoulder", sarrus.Revolute("z"), "satellite", "arm", at_parent=(0.5, 0, 0))
    >>> robot = b.build()
    >>> v = sarrus.floating.momentum_velocity(robot, robot.neutral(), [0, 0, 0, 0, 0, 0, 1.0])
    >>> sarrus.floating.generalized_jacobian_derivative(robot, robot.neutral(), v, "arm").shape
    (6, 1)
    """
    return _reduced(robot, generalized_jacobian_derivative, (q, v, frame), v, independent, time, options)


@_operation
def momentum_velocity(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, momentum: ArrayLike | None = None, **options: Unpack[StateOptions]
) -> Array:
    """Return the velocity v (..., nv) in which the base moves such that the mechanism has a given momentum: x_b-dot = H_b^-1 (p - H_bm phi-dot).

    Parameters
    ----------
    robot : a mechanism with floating base
    q : (..., nq) configuration [rad, m]
    v : (..., nv) velocity [rad/s, m/s]; the six entries of the base are replaced, the entries of the joints are unchanged
    momentum : (..., 6) [angular, about the world's origin; linear] in the world's axes, as returned by :meth:`~sarrus.Mechanism.momentum`
        [kg m2/s, kg m/s]; default: zero
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    ModelError
        The mechanism is connected to the ground.

    References
    ----------
    SpaceDyn 3.18, integral of the first line.

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.box(3.0, (1, 1, 1)))
    >>> b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), radius=0.1))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> b.add_joint("shoulder", sarrus.Revolute("z"), "satellite", "arm", at_parent=(0.5, 0, 0))
    >>> robot = b.build()
    >>> v = sarrus.floating.momentum_velocity(robot, robot.neutral(), [0, 0, 0, 0, 0, 0, 1.0], [0, 0, 0, 4.0, 0, 0])
    >>> robot.momentum(robot.neutral(), v).round(12) + 0.0
    array([0., 0., 0., 4., 0., 0.])
    """


@of_states
def equations_of_motion(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike | None = None, *, base: str | None = None, expressed_in: ExpressedIn = "frame",
    independent: Coordinates = None, end_points: Iterable[str] = (), wrenches: Wrenches | None = None,
    time: ArrayLike | None = None,
    **options: Unpack[BatchOptions],
) -> FreeFloatingForm:  # fmt: skip
    """Return the equations of motion of base and joints: H_b, H_bm, H_m, c_b, c_m, and derived quantities.

    Parameters
    ----------
    robot : a mechanism with floating base
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s] that satisfy the loop constraints; default of v: zero
    base : name of the frame, on any body, whose velocity is x_b-dot; default: the child of the free joint. For SpaceDyn's inertial coordinates (but
        with angular components first), use a frame at the body's centroid and "world_aligned"
    expressed_in : axes of the velocities of the base and of the end points: "frame", "world_aligned" or "world"
    independent : joints whose velocities are y-dot, as for :func:`~sarrus.formulations.reduced_dynamics`. Default: all joints without loops; with
        loops, the best-conditioned velocities
    end_points : names of frames for which J_b, J_m and their time derivatives are computed
    wrenches, time : see :class:`~sarrus.Mechanism`
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    ModelError
        The mechanism is connected to the ground.
    StateError
        The coordinates are dependent, or do not determine the motion. In a batch, no error is raised and the rows of these states are NaN.

    References
    ----------
    SpaceDyn 3.16-3.28 (in 3.24, /w is a misprint, and w is the mass of all bodies).

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.box(3.0, (1, 1, 1)))
    >>> b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), radius=0.1))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> b.add_joint("shoulder", sarrus.Revolute("z"), "satellite", "arm", at_parent=(0.5, 0, 0))
    >>> robot = b.build()
    >>> form = sarrus.floating.equations_of_motion(robot, robot.neutral(), end_points=["arm"])
    >>> bool(np.allclose(form.generalized_jacobian("arm"), sarrus.floating.generalized_jacobian(robot, robot.neutral(), "arm")))
    True
    >>> bool(form.generalized_inertia[0, 0] < form.joint_inertia[0, 0])      # the base can move
    True
    """
    floating = base_joint(robot, "equations_of_motion")
    q = real_array("q", q)
    v = np.zeros(robot.nv) if v is None else real_rows("v", v, robot.nv, q.shape[:-1])
    motions = _motions(robot, q, v, independent, time)
    Y, Y_dot, free = motions.basis, motions.derivative, motions.bias_acceleration
    frame = (floating.parent if floating.reversed else floating.child) if base is None else base

    J = robot.jacobian(q, frame, expressed_in=expressed_in)
    J_dot = robot.jacobian_derivative(q, v, frame, expressed_in=expressed_in)
    # v = Y [base's entries of v; y-dot] + z, and x_b-dot = J v: W maps [base's entries of v; y-dot] to [x_b-dot; y-dot]
    moved = J @ Y
    rest = np.zeros((*moved.shape[:-2], Y.shape[-1] - 6, Y.shape[-1]))
    W = np.concatenate([moved, rest + np.eye(Y.shape[-1])[6:]], axis=-2)
    W_dot = np.concatenate([J_dot @ Y + J @ Y_dot, rest], axis=-2)
    fault = f"the velocity of frame '{frame}' does not determine the motion of the base"
    back = _solved(W, np.eye(W.shape[-1]), fault)
    Z = Y @ back
    Z_dot = (Y_dot - Z @ W_dot) @ back
    at_rest = free - applied(Z[..., :6], applied(J, free) + applied(J_dot, v))

    M = transposed(Z) @ robot.mass_matrix(q)
    H = M @ Z
    bias = applied(transposed(Z), robot.inverse_dynamics(q, v, at_rest, wrenches=wrenches))
    points = {}
    for name in checked_names("end_points", end_points):
        A = robot.jacobian(q, name, expressed_in=expressed_in)
        A_dot = robot.jacobian_derivative(q, v, name, expressed_in=expressed_in) @ Z + A @ Z_dot
        A = A @ Z
        points[name] = EndPoint(A[..., :6], A[..., 6:], A_dot[..., :6], A_dot[..., 6:])
    return FreeFloatingForm(
        coordinates=motions.names,
        base_velocity=applied(J, v),
        joint_velocity=np.broadcast_to(v, (*q.shape[:-1], robot.nv))[..., motions.columns],
        base_inertia=H[..., :6, :6],
        coupling_inertia=H[..., :6, 6:],
        joint_inertia=H[..., 6:, 6:],
        base_bias=bias[..., :6],
        joint_bias=bias[..., 6:],
        momentum=applied(M, v)[..., :6],
        velocity_map=Z,
        end_points=points,
    )


@of_states
def momentum_about(
    robot: LoopFunctions,
    q: ArrayLike,
    v: ArrayLike,
    *,
    point: str | ArrayLike | None = None,
    axes: str = "ground",
    **options: Unpack[StateOptions],
) -> Array:
    """Return the momentum (..., 6): [angular, about a point; linear], in the axes of a frame [kg m2/s, kg m/s].

    Parameters
    ----------
    robot : a mechanism
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    point : point of reference: name of a frame, for its origin, or (..., 3) in the world [m]; default: the centre of mass
    axes : name of the frame in whose axes the result is expressed
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> (sarrus.floating.momentum_about(robot, [0.0], [1.0], point="tip").round(12) + 0.0).tolist()
    [0.0, 0.0, 0.0, -1.0, 0.0, 0.0]
    """
    h = robot.momentum(q, v)
    if point is None:
        at = robot.center_of_mass(q)
    else:
        at = robot.pose(q, point)[..., :3, 3] if isinstance(point, str) else real_rows("point", point, 3, h.shape[:-1])
    R = transposed(robot.pose(q, axes)[..., :3, :3])
    angular = h[..., :3] - np.cross(at, h[..., 3:])
    return np.concatenate(np.broadcast_arrays(applied(R, angular), applied(R, h[..., 3:])), axis=-1)


@of_states
def base_reaction(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, frame: str | None = None, *, expressed_in: ExpressedIn = "frame",
    wrenches: Wrenches | None = None,
    **options: Unpack[StateOptions],
) -> Array:  # fmt: skip
    """Return the wrench (..., 6) that all other bodies exert on the base through joints, loops and springs, [moment; force] [N m, N].

    SpaceDyn's F_0 and N_0 (3.38, 3.39) are the opposite wrench, which the base exerts on the joints.

    Parameters
    ----------
    robot : a mechanism with floating base
    q, v, a : (..., nq), (..., nv), (..., nv) configuration, velocity and acceleration [rad, m; rad/s, m/s; rad/s^2, m/s^2]
    frame : name of a frame on the base, whose origin is the reference point; default: the child of the free joint
    expressed_in : "frame" or "world_aligned": axes of the wrench, about the frame's origin; "world": world axes, about the world's origin
    wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Raises
    ------
    ModelError
        The mechanism is connected to the ground by a joint or spring, or the frame is not on the base.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.box(3.0, (1, 1, 1)))
    >>> b.add_body("arm", sarrus.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), radius=0.1))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> b.add_joint("shoulder", sarrus.Prismatic("x"), "satellite", "arm")
    >>> sarrus.floating.base_reaction(b.build(), [0, 0, 0, 1, 0, 0, 0, 0], np.zeros(7), [0, 0, 0, 0, 0, 0, 2.0])[3:].round(12) + 0.0
    array([-2.,  0.,  0.])
    """
    floating = base_joint(robot, "base_reaction")
    base = _welded_to_base(robot, floating)
    if sprung := [s.name for s in robot.description.springs if "ground" in (s.first[0], s.second[0])]:
        raise ModelError(
            f"spring '{sprung[0]}' connects the mechanism to the ground, so its force would be part of the reaction; expected no such spring"
        )
    frame = (floating.parent if floating.reversed else floating.child) if frame is None else frame
    hosts = {f.name: f.body for f in robot.description.frames}
    check_name("frame", frame, robot.frames)
    if hosts.get(frame, frame) not in base:
        raise ModelError(f"frame '{frame}' is not on the base, which consists of {', '.join(base)}")
    # virtual work of a rigid motion of all bodies together, in which the joints do no work: the base's wrench on the other bodies balances their
    # inertia, their weight and the external wrenches on them
    elsewhere = np.repeat([name not in base for name in robot.bodies], 10)
    pi = np.concatenate([body.inertia.parameters for body in robot.description.bodies])
    needed = applied(robot.regressor(q, v, a)[..., floating.v_slice, :], pi * elsewhere)
    check_mapping("wrenches", wrenches, "frame names to [moment; force]", 0, optional=True)
    for name, wrench in list((wrenches or {}).items()):
        check_name("frame", name, robot.frames, "wrenches")
        if hosts.get(name, name) not in base:
            wrench_rows = real_rows(f"wrenches['{name}']", wrench, 6, needed.shape[:-1])
            needed = needed - applied(transposed(robot.jacobian(q, name)[..., floating.v_slice]), wrench_rows)
    J = transposed(robot.jacobian(q, frame, expressed_in=expressed_in)[..., floating.v_slice])
    return -_solved(J, needed[..., None])[..., 0]


def base_joint(robot: LoopFunctions, function: str) -> Joint:
    """Return the free joint of the base; raise ModelError if the mechanism is connected to the ground."""
    if robot._tie:
        raise ModelError(
            f"{function} requires a floating mechanism, whose base is carried by a Free joint: {robot._tie}"
        )
    return next(j for j in map(robot.joint, robot.joints) if j.nv and j.v_slice.start == robot._base_velocity)


def joint_columns(robot: LoopFunctions, base: Joint) -> Array:
    """Return the indices of all velocities except the base's."""
    return np.delete(np.arange(robot.nv), base.v_slice)


def _welded_to_base(robot: LoopFunctions, base: Joint) -> list[str]:
    """Return the names of the bodies that are welded to the base."""
    welded = [base.parent if base.reversed else base.child]
    for body in welded:
        for j in map(robot.joint, robot.joints):
            if j.type.nv == 0 and body in (j.parent, j.child):
                welded += [end for end in (j.parent, j.child) if end not in welded]
    return welded


@dataclass(frozen=True, eq=False)
class _Motions:
    """Motions that satisfy the loops: v = basis [velocities of the base in v; y-dot] + velocity of prescribed motions."""

    names: tuple[str, ...]  # names of the entries of y-dot
    columns: Array  # indices of y-dot in v
    basis: Array
    derivative: Array
    bias_acceleration: Array  # v-dot at constant base velocity and y-dot


def _motions(robot: LoopFunctions, q: Array, v: Array, independent: Coordinates, time: ArrayLike | None) -> _Motions:
    base = base_joint(robot, "this")
    base_columns = np.arange(robot.nv)[base.v_slice]
    if robot.nc == 0 and independent is None:
        joints = joint_columns(robot, base)
        Y = np.eye(robot.nv)[:, np.concatenate([base_columns, joints])]
        every = velocity_names(robot)
        return _Motions(tuple(every[k] for k in joints), joints, Y, np.zeros_like(Y), np.zeros(robot.nv))
    if not q.size:
        raise ShapeError(
            f"q has shape {q.shape}: expected at least one configuration, because the motions that the loops allow depend on it"
        )
    if independent is not None:
        listed = robot.actuated if isinstance(independent, str) and independent == "actuated" else independent
        if not isinstance(listed, str) and isinstance(listed, Iterable):
            independent = [base.name, *(c for c in listed if not (isinstance(c, str) and c == base.name))]
    form, _ = reduced_form(robot, q, v, independent, time)
    shown = np.array(form._places)  # index in v of each coordinate
    order = np.argsort(~np.isin(shown, base_columns), kind="stable")  # the base's coordinates first
    names, basis, rate = [form.coordinates[k] for k in order[6:]], form.jacobian, form.jacobian_derivative
    return _Motions(tuple(names), shown[order[6:]], basis[..., order], rate[..., order], form.bias_acceleration)


def _reduced(
    robot: LoopFunctions, function: Any, arguments: tuple[Any, ...], v: ArrayLike | None, independent: Coordinates,
    time: ArrayLike | None, options: Any,
) -> Array:  # fmt: skip
    """Return J* with respect to independent velocities; if v is not None, return its time derivative."""
    if independent is None:
        return cast("Array", function(robot, *arguments, **options))
    out, with_status = options.pop("out", None), options.pop("return_status", False)
    J = function(robot, *arguments, **options, return_status=with_status)
    J, status = J if with_status else (J, None)
    q = real_array("q", arguments[0])
    moving = np.zeros(robot.nv) if v is None else real_rows("v", v, robot.nv, q.shape[:-1])
    motions = _motions(robot, q, moving, independent, time)
    columns = joint_columns(robot, base_joint(robot, "this"))
    result = J @ motions.basis[..., columns, 6:]
    if v is not None:
        bare = {name: value for name, value in options.items() if name != "threads"}
        still = generalized_jacobian(robot, q, arguments[2], **bare)
        result = result + still @ motions.derivative[..., columns, 6:]
    result = into(out, result)
    return cast("Array", (result, status) if with_status else result)


# ---- centre of mass, and momentum about it, also with a fixed base ---------------------------------------------------


@_operation
def center_of_mass_jacobian(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return the Jacobian (..., 3, nv) of :meth:`~sarrus.Mechanism.center_of_mass` by the velocities of the tree (SpaceDyn 3.24 per total mass).

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.floating.center_of_mass_jacobian(sarrus.mechanisms.pendulum(length=0.5), [0.0]).ravel().tolist()
    [-0.5, 0.0, 0.0]
    """


@_operation
def centroidal_momentum(robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return the momentum (..., 6): [angular, about the centre of mass; linear], in world axes.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.floating.centroidal_momentum(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], [1.0])[:3].tolist()
    [0.0, 0.0, 0.0]
    """


@_operation
def centroidal_momentum_matrix(robot: LoopFunctions, q: ArrayLike, **options: Unpack[StateOptions]) -> Array:
    """Return the centroidal momentum matrix A_G (..., 6, nv), by the velocities of the tree: centroidal momentum = A_G v (Orin, Goswami and Lee 2013).

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> sarrus.floating.centroidal_momentum_matrix(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0])[3]
    array([-1.])
    """


@_operation
def centroidal_momentum_bias(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, **options: Unpack[StateOptions]
) -> Array:
    """Return (d A_G / dt) v (..., 6), the rate of the centroidal momentum at zero acceleration of the joints of the tree.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) configuration and velocity [rad, m; rad/s, m/s]
    out, threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> float(sarrus.floating.centroidal_momentum_bias(sarrus.mechanisms.pendulum(mass=2.0, length=0.5), [0.0], [1.0])[5])
    1.0
    """
