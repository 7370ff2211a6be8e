"""Reactions of joints in mechanisms with loops; indeterminate reactions have least norm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, ArrayLike, check_mapping, real_array
from .._core import tolerances
from ..errors import NameNotFoundError, ShapeError
from .operations import StateFunctions
from .options import BatchOptions, Unpack, Wrenches, of_states

if TYPE_CHECKING:
    from .loop_operations import LoopFunctions

# ---- indeterminate reactions: cpp/loops/least_reactions.hpp ---------------------------------------------------------------------------


def least_reactions(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, multipliers: Array, along: Array | None = None, *,
    wrenches: Wrenches | None = None, time: ArrayLike | None = None, least_pivot: Array | None = None, compliance: Array | None = None,
) -> Array:  # fmt: skip
    """Return the multipliers (..., nc) for which the reactions of all joints and constraints have least norm, with the same J^T lambda."""
    state: Any = {"wrenches": wrenches, "time": time, "least_pivot": least_pivot, "compliance": compliance}
    return shared_reactions(robot, q, v, a, multipliers, along, **state)[0]


def shared_reactions(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, multipliers: Array, along: Array | None = None, *,
    wrenches: Wrenches | None = None, time: ArrayLike | None = None, least_pivot: Array | None = None, compliance: Array | None = None,
) -> tuple[Array, Array | None]:  # fmt: skip
    """Return the multipliers of :func:`least_reactions`, and their loads (..., bodies + constraints, 6); None if all are determinate.

    Parameters
    ----------
    along : (..., all nv - nv) efforts of motors and other forces along loop joints; default: zero
    least_pivot : (...) smallest pivot of the constraint rows in the solution for accelerations, from which determinate reactions are detected
    compliance : (36 loads,) roots of the joints' compliance matrices, which define the norm; see :func:`compliance_roots`
    """
    if not robot.nc or (least_pivot is not None and determined(least_pivot)):
        return multipliers, None
    at: dict[str, Any] = {} if time is None else {"time": time}
    if along is None:
        along = np.zeros(robot._base._all_nv - robot.nv)  # for variants as for their base
    loads = robot._joint_loads(q, v, a, multipliers, along, wrenches=wrenches, **at, return_status=True)[0]
    if least_pivot is not None:
        at["least_pivot"] = np.nan_to_num(least_pivot)
    flat = loads.reshape(*loads.shape[:-2], 6 * loads.shape[-2])
    shared: Array = robot._least_reactions(q, multipliers, flat, compliance, **at, return_status=True)[0]
    nc = multipliers.shape[-1]
    return shared[..., :nc], shared[..., nc:].reshape(*shared.shape[:-1], loads.shape[-2], 6)


def determined(least_pivot: Array) -> bool:
    """Return True if a rigid-body model determines all reactions in all states.

    The criterion is that the smallest pivots (...) of the constraint rows in the factorisation for accelerations are not zero. States without a
    solution, which are NaN, are ignored.
    """
    return not (least_pivot <= tolerances.independent).any()


def compliance_roots(robot: LoopFunctions, compliance: Mapping[str, ArrayLike]) -> Array:
    """Return the flattened 6 x 6 roots R (36 loads,), R^T R = C, of the compliance C of each body's joint, then of each constraint.

    R is zero if the joint or constraint is rigid.
    """
    check_mapping("compliance", compliance, "names of joints to 6 numbers or 6 x 6", 0)
    places = dict(robot._load_places)
    roots = np.zeros((len(robot.bodies) + len(robot.constraints), 6, 6))
    for name, value in compliance.items():
        if name not in places:
            raise NameNotFoundError(
                f"compliance: no joint or rod is named '{name}'; joints and rods are {', '.join(map(repr, places))}"
            )
        C = real_array(f"compliance['{name}']", value)
        if C.ndim == 0 and name not in robot._joints:  # a number: compliance along a rod
            C = np.concatenate([np.zeros(3), np.full(3, float(C))])
        if C.shape not in ((6,), (6, 6)):
            raise ShapeError(
                f"compliance['{name}'] has shape {C.shape}; it must be 6 numbers, or 6 x 6 [rad/(N m), m/N]"
            )
        C = np.diag(C) if C.ndim == 1 else C
        unit = np.repeat([1.0 / robot._length, 1.0], 3)  # scales that make radians and metres comparable
        scaled = C / np.outer(unit, unit)
        size = np.abs(scaled).max()
        if not np.isfinite(size) or np.abs(scaled - scaled.T).max() > 1e-9 * size:
            raise ValueError(f"compliance['{name}'] must be finite and symmetric; got {value!r}")
        flexible, axes = np.linalg.eigh(scaled)
        if flexible[0] < -1e-9 * size:
            raise ValueError(
                f"compliance['{name}'] must be positive semidefinite; its least eigenvalue is {flexible[0]:.3g}"
            )
        roots[places[name]] = np.sqrt(np.maximum(flexible, 0.0))[:, None] * axes.T * unit
    return roots.ravel()


# ---- loads of loops on the tree -------------------------------------------------------------------------------------------------------


def carried_by_tree(robot: StateFunctions, q: ArrayLike, wrenches: Array) -> dict[str, Array]:
    """Return the total load (..., 6) [moment; force] that the constraints exert on the subtree of each tree joint, in the joint's frame.

    `wrenches` (..., constraints, 6) act on the constraints' children, and the opposite wrenches on the parents. Joints without load are omitted.
    """
    placed = {body: robot.pose(q, body, return_status=True)[0] for body in robot.bodies} | {"ground": np.eye(4)}
    specs = {spec.name: spec for spec in robot.description.joints}
    below = {(j.parent if j.reversed else j.child): j for j in map(robot.joint, robot.joints)}
    subtree: dict[str, Array] = {}  # load of each subtree in the world's axes, about the world's origin
    for k, constraint in enumerate(map(robot.constraint, robot.constraints)):
        if not constraint.bodies:
            continue
        parent, child = constraint.bodies
        wrench = in_world(placed[child] @ constraint.spec.at_child.matrix, wrenches[..., k, :])
        for body, sign in ((child, 1.0), (parent, -1.0)):
            while body in below:
                joint = below[body]
                subtree[joint.name] = subtree.get(joint.name, 0.0) + sign * wrench
                body = joint.child if joint.reversed else joint.parent
    through = {}
    for body, joint in below.items():
        if joint.name in subtree:
            spec = specs[joint.name]
            at = spec.at_parent if joint.reversed else spec.at_child
            through[joint.name] = in_frame(placed[body] @ at.matrix, subtree[joint.name])
    return through


def in_world(pose: Array, wrench: Array) -> Array:
    """Transform a wrench from the axes and origin of a frame to the axes and origin of the world."""
    moment, force = (
        np.einsum("...ij,...j->...i", pose[..., :3, :3], part) for part in (wrench[..., :3], wrench[..., 3:])
    )
    return np.concatenate([moment + np.cross(pose[..., :3, 3], force), force], axis=-1)


def in_frame(pose: Array, wrench: Array) -> Array:
    moment, force = wrench[..., :3] - np.cross(pose[..., :3, 3], wrench[..., 3:]), wrench[..., 3:]
    return np.concatenate([np.einsum("...ji,...j->...i", pose[..., :3, :3], part) for part in (moment, force)], axis=-1)


# ---- bases of the motions and forces of a joint ----------------------------------------------------------------------


@of_states
def joint_bases(
    robot: StateFunctions, q: ArrayLike, joint: str, **options: Unpack[BatchOptions]
) -> tuple[Array, Array, Array, Array]:
    """Return the motion space of a joint, its complement, and their dual bases (van der Merwe 2.10-2.15).

    The result is phi (..., 6, nv), phi_c (..., 6, 6 - nv), and psi and psi_c of the same shapes, in the joint's frame on its successor, the body
    farther from the ground. These matrices satisfy phi^T psi = 1, phi_c^T psi_c = 1, phi^T psi_c = 0 and phi_c^T psi = 0. phi_c is orthonormal. If
    the axes of a gimbal or universal joint are parallel, phi loses rank. Then psi is the pseudo-inverse of phi, and phi_c still has 6 - nv directions
    perpendicular to phi.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m]
    joint : name of a joint
    threads, return_status : as in :class:`~sarrus.Mechanism`

    Examples
    --------
    >>> import sarrus
    >>> phi, phi_c, psi, psi_c = sarrus.formulations.joint_bases(sarrus.mechanisms.pendulum(), [0.0], "pivot")
    >>> phi.ravel().tolist(), phi_c.shape
    ([0.0, 1.0, 0.0, 0.0, 0.0, 0.0], (6, 5))
    """
    of = robot._tree_joint(joint)
    phi = robot._motion_space(q)[..., of.v_slice]
    if of.nv == 0:
        identity = np.broadcast_to(np.eye(6), (*phi.shape[:-2], 6, 6)).copy()
        return phi, identity, phi.copy(), identity.copy()
    # decompose the unit matrix instead of an invalid state; the results of this state are NaN
    bad = np.asarray(np.isnan(phi).any(axis=(-2, -1), keepdims=True))
    sound = np.where(bad, np.eye(6)[:, : of.nv], phi)
    complement = np.linalg.svd(sound, full_matrices=True)[0][..., of.nv :]
    phi_c = orthonormal_basis(complement @ np.swapaxes(complement, -1, -2), 6 - of.nv)
    psi = np.swapaxes(np.linalg.pinv(sound), -1, -2)
    phi_c, psi = np.where(bad, np.nan, phi_c), np.where(bad, np.nan, psi)
    return phi, phi_c, psi, phi_c.copy()


def orthonormal_basis(projector: Array, count: int) -> Array:
    """Return an orthonormal basis (..., 6, count) of a projector's range. Unit vectors of the axes that are in the range are basis vectors."""
    basis = np.zeros((*projector.shape[:-1], count))
    left = projector.copy()
    for k in range(count):
        # choose the unit vector that is nearest to the range; of several equally near ones, the first
        best = np.argmax(np.round(np.diagonal(left, axis1=-2, axis2=-1), 12), axis=-1)
        column = np.take_along_axis(left, best[..., None, None], axis=-1)[..., 0]
        basis[..., k] = column / np.linalg.norm(column, axis=-1, keepdims=True)
        left = left - basis[..., :, k, None] * basis[..., None, :, k]
    return basis
