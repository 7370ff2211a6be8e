"""Motion of a mechanism whose base floats, as a function of its joints' motion: SpaceDyn's chapter 3, loops included.

The equations of motion are split into the base's motion x_b and the joints' coordinates phi (SpaceDyn 3.18)

  H_b  x_b-ddot + H_bm phi-ddot + c_b = F_b        what acts on the base
  H_bm^T x_b-ddot + H_m phi-ddot + c_m = tau       what the motors give

and while nothing acts on the base the first line, integrated, is momentum: x_b-dot follows from phi-dot. Loops tie joints to joints. They
leave momentum as it is, so that they enter in one place: phi-dot = G y-dot + g, with y-dot independent velocities
(:mod:`~sarrus.analysis.independent_coordinates`).

Coordinates of the base are the velocity of any frame of the mechanism, in any axes: v = Z [x_b-dot; y-dot] + z.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, check_mapping, checked_names, into, real_array, real_rows
from .._showing import Brief
from ..analysis.independent_coordinates import Coordinates, reduced_form, velocity_names
from ..analysis.linear_algebra import applied, solutions, transposed
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.operations import Joint, _operation
from ..dynamics.options import BatchOptions, ExpressedIn, FrameOptions, StateOptions, Unpack, Wrenches
from ..dynamics.states import of_states
from ..errors import ModelError, ShapeError, StateError, check_name
from ..mechanism import checked_mechanism


@dataclass(frozen=True, eq=False)
class EndPoint:
    """How a frame moves: velocity = J_b x_b-dot + J_m y-dot (SpaceDyn 3.16), and what its rate needs besides (3.17).

    Attributes
    ----------
    base_jacobian, joint_jacobian : J_b (..., 6, 6) and J_m (..., 6, n)
    base_jacobian_derivative, joint_jacobian_derivative : their rates along v
    """

    base_jacobian: Array
    joint_jacobian: Array
    base_jacobian_derivative: Array
    joint_jacobian_derivative: Array


@dataclass(frozen=True, eq=False, repr=False)
class FreeFloatingForm(Brief):
    """The equations of motion of a floating mechanism, split into those of its base and those of its joints (SpaceDyn 3.18).

    Attributes
    ----------
    coordinates : names of the joints' velocities y-dot, n of them; "joint[1]" is the second one of a joint
    base_velocity, joint_velocity : x_b-dot (..., 6) and y-dot (..., n) of the state
    base_inertia, coupling_inertia, joint_inertia : H_b (..., 6, 6), H_bm (..., 6, n), H_m (..., n, n) (3.19-3.23)
    base_bias, joint_bias : c_b (..., 6), c_m (..., n): the forces that no acceleration of these coordinates takes; gravity, friction, springs
        and minus the wrenches from outside are in them, as in :meth:`~sarrus.Mechanism.bias_forces`
    momentum : (..., 6) along the base's coordinates: for a base velocity in "world" axes [angular, about the world's origin; linear]
    velocity_map : Z (..., nv, 6 + n), of v = Z [x_b-dot; y-dot] + z
    end_points : by name, how the frames that were asked for move
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
        """-H_b^-1 H_bm (..., 6, n): the base's velocity per joint velocity, at zero momentum."""
        return -_solved(self.base_inertia, self.coupling_inertia)

    @property
    def generalized_inertia(self) -> Array:
        """H* = H_m - H_bm^T H_b^-1 H_bm (..., n, n): what the motors feel while nothing acts on the base."""
        return self.joint_inertia + transposed(self.coupling_inertia) @ self.base_motion

    @property
    def generalized_bias(self) -> Array:
        """c* = c_m - H_bm^T H_b^-1 c_b (..., n): H* y-ddot + c* = tau while nothing acts on the base."""
        return self.joint_bias + applied(transposed(self.base_motion), self.base_bias)

    def generalized_jacobian(self, end_point: str) -> Array:
        """J* = J_m - J_b H_b^-1 H_bm (..., 6, n) of one of the end points."""
        at = self._at(end_point)
        return np.asarray(at.joint_jacobian + at.base_jacobian @ self.base_motion)

    def drift(self, end_point: str) -> Array:
        """J_b H_b^-1 p (..., 6): how the end point moves at this momentum while the joints rest."""
        return applied(self._at(end_point).base_jacobian, _solved(self.base_inertia, self.momentum[..., None])[..., 0])

    def _at(self, end_point: str) -> EndPoint:
        check_name("end point", end_point, self.end_points, "equations_of_motion()")
        return self.end_points[end_point]

    def coupling_factor(self, end_point: str) -> Array:
        """The base's velocity per velocity of the end point (..., 6, 6): -H_b^-1 H_bm J*^+, at zero momentum.

        Its singular values say how strongly the base is disturbed, and for which motions (Xu 1993, the dynamic coupling factor).
        """
        return np.asarray(self.base_motion @ solutions(self.generalized_jacobian(end_point)).inverse)


def _solved(H: Array, b: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(H, b))
    except np.linalg.LinAlgError:
        raise StateError(
            "the bodies, taken as one, have no inertia about some axis: any motion of the base goes"
        ) from None


@_operation
def generalized_jacobian(
    robot: LoopFunctions, q: ArrayLike, frame: str, *, independent: Coordinates = None, time: ArrayLike | None = None,
    **options: Unpack[FrameOptions],
) -> Array:  # fmt: skip
    """Generalized Jacobian J* = J_m - J_b H_b^-1 H_bm (..., 6, nv - 6) of a frame: its velocity per joint velocity, on a floating base.

    While nothing acts on a mechanism from outside, its momentum stays as it is; where that is zero, the frame's velocity is J* times
    the velocities of all joints but the base's own, in their order in v. A momentum adds a drift: the velocity that the frame has in
    ``momentum_velocity(q, zeros, momentum)``. It does not matter which of the bodies is called the base.

    With loops this holds for the joint velocities that these allow, as :meth:`~sarrus.Mechanism.jacobian` does; ``independent`` goes on to the columns of
    independent ones.

    Parameters
    ----------
    q : (..., nq)
    frame : name of a frame, whose velocity is [angular; linear] in the axes that ``expressed_in`` says
    independent : names of joints, or (joint, index) for one of several velocities, or "actuated": then (..., 6, k), the velocity per
        velocity of these while the loops are kept; StateError where they are not independent or do not determine the motion
    time : (...) [s], where motion is prescribed; what that adds to the velocity is not in J*

    Raises
    ------
    ModelError
        Something ties the mechanism to the ground: the error says what.
    StateError
        The bodies, taken as one, have no inertia about some axis.

    References
    ----------
    SpaceDyn 3.16, 3.18-3.28; Umetani and Yoshida 1989. Wilde, Kwok Choon, Grall and Romano 2018 derive it anew.

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder(gravity=(0, 0, 0))
    >>> b.add_body("satellite", sarrus.Inertia.box(3.0, (1, 1, 1)))
    >>> b.add_body("arm", sarrus.Inertia(1.0, (1, 0, 0), [[0, 0, 0], [0, 1e-9, 0], [0, 0, 1e-9]]))
    >>> b.add_joint("base", sarrus.Free(), "ground", "satellite")
    >>> b.add_joint("shoulder", sarrus.Prismatic("x"), "satellite", "arm")
    >>> robot = b.build()
    >>> sarrus.floating.generalized_jacobian(robot, robot.neutral(), "arm").ravel().round(6).tolist()     # one of four kilograms is the arm's
    [0.0, 0.0, 0.0, 0.75, 0.0, 0.0]
    """
    J: Array = _reduced(robot, generalized_jacobian, (q, frame), None, independent, time, options)
    return J


@_operation
def generalized_jacobian_derivative(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, frame: str, *, independent: Coordinates = None, time: ArrayLike | None = None,
    **options: Unpack[FrameOptions],
) -> Array:  # fmt: skip
    """Exact time derivative (..., 6, nv - 6) of :func:`~sarrus.floating.generalized_jacobian` along v, in the same representation; arguments as there.

    v is the mechanism's whole velocity, the base's in it: see :func:`~sarrus.floating.momentum_velocity`.

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
    rate: Array = _reduced(robot, generalized_jacobian_derivative, (q, v, frame), v, independent, time, options)
    return rate


@_operation
def momentum_velocity(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, momentum: ArrayLike | None = None, **options: Unpack[StateOptions]
) -> Array:
    """v (..., nv) with that velocity of the base at which the mechanism has this momentum: x_b-dot = H_b^-1 (p - H_bm phi-dot).

    Parameters
    ----------
    q : (..., nq)
    v : (..., nv); the base's own six are not read, those of the joints stay as they are
    momentum : (..., 6) as :meth:`~sarrus.Mechanism.momentum` has it, [angular, about the world's origin; linear] in the world's axes; default zero

    Raises
    ------
    ModelError
        Something ties the mechanism to the ground, which takes up the momentum: the error says what.

    References
    ----------
    SpaceDyn 3.18, its first line integrated.

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
    """The equations of motion split into the base's and the joints': H_b, H_bm, H_m, c_b, c_m, and what follows from them.

    Parameters
    ----------
    q, v : (..., nq), (..., nv) that satisfy the loops; v default zero
    base : the frame whose velocity x_b-dot is, on any body; default: the body that the free joint carries. A frame at that body's
        centroid and "world_aligned" give SpaceDyn's inertial coordinates (angular ones first), the default sarrus' own
    expressed_in : "frame", "world_aligned" or "world", of the base's velocity and of the end points'
    independent : joints whose velocities are y-dot, as in :func:`~sarrus.formulations.reduced_dynamics`; default: all of a tree; where there are loops, those
        in which the motion shows best
    end_points : frames whose J_b and J_m are wanted, and their rates
    wrenches, time : see :class:`~sarrus.Mechanism`

    Raises
    ------
    ModelError
        Something ties the mechanism to the ground: the error says what.
    StateError
        The coordinates are not independent, or do not determine the motion. In a batch the rows of such states are NaN.

    References
    ----------
    SpaceDyn 3.16-3.28 (the /w in 3.24 is a misprint, and w is the mass of all bodies).

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
    >>> bool(form.generalized_inertia[0, 0] < form.joint_inertia[0, 0])      # the base gives way
    True
    """
    checked_mechanism(robot, "robot")
    floating = base_joint(robot, "equations_of_motion")
    q = real_array("q", q)
    v = np.zeros(robot.nv) if v is None else real_rows("v", v, robot.nv, q.shape[:-1])
    motions = _motions(robot, q, v, independent, time)
    Y, Y_dot, free = motions.basis, motions.derivative, motions.bias_acceleration
    frame = (floating.parent if floating.reversed else floating.child) if base is None else base

    J = robot.jacobian(q, frame, expressed_in=expressed_in)
    J_dot = robot.jacobian_derivative(q, v, frame, expressed_in=expressed_in)
    # v = Y [own velocities of the base; y-dot] + z, and x_b-dot = J v: W leads from the first to [x_b-dot; y-dot]
    moved = J @ Y
    rest = np.zeros((*moved.shape[:-2], Y.shape[-1] - 6, Y.shape[-1]))
    W = np.concatenate([moved, rest + np.eye(Y.shape[-1])[6:]], axis=-2)
    W_dot = np.concatenate([J_dot @ Y + J @ Y_dot, rest], axis=-2)
    back = _inverse(W, frame)
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
    """Momentum (..., 6): [angular, about any point; linear], in the axes of any frame [kg m2/s, kg m/s].

    Parameters
    ----------
    q, v : (..., nq), (..., nv)
    point : the name of a frame, at whose origin, or (..., 3) in the world [m]; default: the centre of mass
    axes : the name of a frame

    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
    >>> (sarrus.floating.momentum_about(robot, [0.0], [1.0], point="tip").round(12) + 0.0).tolist()
    [0.0, 0.0, 0.0, -1.0, 0.0, 0.0]
    """
    checked_mechanism(robot, "robot")
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
    """Wrench (..., 6) that all other bodies exert on the base in a motion, [moment; force], through joints, loops and springs.

    SpaceDyn's F_0 and N_0 (3.38, 3.39) are what the base exerts on the joints: the negative of it.

    Parameters
    ----------
    q, v, a : (..., nq), (..., nv), (..., nv)
    frame : a frame on the base, at whose origin; default: the body that the free joint carries
    expressed_in : axes of the wrench: "frame" or "world_aligned"; "world": about the world's origin
    wrenches : frame name to (..., 6) [moment; force] on the mechanism, in that frame's axes at its origin [N m, N]

    Raises
    ------
    ModelError
        Something ties the mechanism to the ground; or a spring does, which acts on other bodies than the base alone; or the frame is
        not on the base.

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
    checked_mechanism(robot, "robot")
    floating = base_joint(robot, "base_reaction")
    base = _welded_to_base(robot, floating)
    if sprung := [s.name for s in robot.description.springs if "ground" in (s.first[0], s.second[0])]:
        raise ModelError(f"spring '{sprung[0]}' ties the mechanism to the ground: its force would count as a reaction")
    frame = (floating.parent if floating.reversed else floating.child) if frame is None else frame
    hosts = {f.name: f.body for f in robot.description.frames}
    check_name("frame", frame, robot.frames)
    if hosts.get(frame, frame) not in base:
        raise ModelError(f"frame '{frame}' is not on the base, which is made of {', '.join(base)}")
    # what moves the other bodies is what the base exerts on them, with what acts on them from outside: virtual work of a motion of all
    others = np.repeat([name not in base for name in robot.bodies], 10)
    pi = np.concatenate([body.inertia.parameters for body in robot.description.bodies])
    needed = applied(robot.regressor(q, v, a)[..., floating.v_slice, :], pi * others)
    check_mapping("wrenches", wrenches, "frame names to [moment; force]", 0, optional=True)
    for name, wrench in list((wrenches or {}).items()):
        check_name("frame", name, robot.frames, "wrenches")
        if hosts.get(name, name) not in base:
            wrench_rows = real_rows(f"wrenches['{name}']", wrench, 6, needed.shape[:-1])
            needed = needed - applied(transposed(robot.jacobian(q, name)[..., floating.v_slice]), wrench_rows)
    J = transposed(robot.jacobian(q, frame, expressed_in=expressed_in)[..., floating.v_slice])
    return -_solved(J, needed[..., None])[..., 0]


def base_joint(robot: LoopFunctions, asks: str) -> Joint:
    """The joint that carries the base; ModelError where something ties the mechanism to the ground."""
    if robot._tie:
        raise ModelError(f"{asks} requires a floating mechanism, whose base is carried by a Free joint: {robot._tie}")
    return next(j for j in map(robot.joint, robot.joints) if j.nv and j.v_slice.start == robot._base_velocity)


def joint_columns(robot: LoopFunctions, base: Joint) -> Array:
    """Which velocities are not the base's."""
    return np.delete(np.arange(robot.nv), base.v_slice)


def _welded_to_base(robot: LoopFunctions, base: Joint) -> list[str]:
    """Names of the bodies that are one with the base."""
    far = [base.parent if base.reversed else base.child]
    for body in far:
        for j in map(robot.joint, robot.joints):
            if j.type.nv == 0 and body in (j.parent, j.child):
                far += [end for end in (j.parent, j.child) if end not in far]
    return far


@dataclass(frozen=True, eq=False)
class _Motions:
    """What the loops allow: v = basis [own velocities of the base; y-dot] + what prescribed motions add."""

    names: tuple[str, ...]  # of y-dot
    columns: Array  # which velocities y-dot are
    basis: Array
    derivative: Array
    bias_acceleration: Array  # v-dot while the rates of both do not change


def _motions(robot: LoopFunctions, q: Array, v: Array, independent: Coordinates, time: ArrayLike | None) -> _Motions:
    base = base_joint(robot, "this")
    of_base = np.arange(robot.nv)[base.v_slice]
    if robot.nc == 0 and independent is None:
        joints = joint_columns(robot, base)
        Y = np.eye(robot.nv)[:, np.concatenate([of_base, joints])]
        names = velocity_names(robot)
        return _Motions(tuple(names[k] for k in joints), joints, Y, np.zeros_like(Y), np.zeros(robot.nv))
    if not q.size:
        raise ShapeError(f"q has shape {q.shape}: it takes a configuration to tell which motions the loops allow")
    if independent is not None:
        listed = robot.actuated if isinstance(independent, str) and independent == "actuated" else independent
        if not isinstance(listed, str) and isinstance(listed, Iterable):
            independent = [base.name, *(c for c in listed if not (isinstance(c, str) and c == base.name))]
    form, _ = reduced_form(robot, q, v, independent, time)
    shown = np.array(form._places)  # which velocity each coordinate is
    order = np.concatenate([np.flatnonzero(np.isin(shown, of_base)), np.flatnonzero(~np.isin(shown, of_base))])
    return _Motions(
        tuple(form.coordinates[k] for k in order[6:]),
        shown[order[6:]],
        form.jacobian[..., order],
        form.jacobian_derivative[..., order],
        form.bias_acceleration,
    )


def _reduced(
    robot: LoopFunctions, function: Any, arguments: tuple[Any, ...], v: ArrayLike | None, independent: Coordinates,
    time: ArrayLike | None, options: Any,
) -> Any:  # fmt: skip
    """J* or, where v is given, its rate, by the velocities of independent coordinates."""
    if independent is None:
        return function(robot, *arguments, **options)
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
    return (result, status) if with_status else result


def _inverse(W: Array, frame: str) -> Array:
    try:
        return np.asarray(np.linalg.inv(W))
    except np.linalg.LinAlgError:
        raise StateError(f"the velocity of frame '{frame}' does not tell how the base moves") from None
