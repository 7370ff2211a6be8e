"""Reactions of joints in mechanisms with loops; indeterminate reactions have least norm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, check_mapping, real_array
from .._core import tolerances
from ..errors import ShapeError
from .operations import StateFunctions
from .options import BatchOptions, Unpack, Wrenches, of_states

if TYPE_CHECKING:
    from .loop_operations import LoopFunctions

# ---- indeterminate reactions: cpp/loops/least_reactions.hpp ---------------------------------------------------------------------------


def least_reactions(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, a: ArrayLike, multipliers: Array, along: Array | None = None, *,
    wrenches: Wrenches | None = None, time: ArrayLike | None = None, least_pivot: Array | None = None,
) -> Array:  # fmt: skip
    """Return the multipliers (..., nc) for which the reactions of all joints and constraints have least norm, with the same J^T lambda.

    Parameters
    ----------
    along : (..., all nv - nv) efforts of motors and other forces along loop joints; default: zero
    least_pivot : (...) smallest pivot of the constraint rows in the solution for accelerations, from which determinate reactions are detected
    """
    if not robot.nc or (least_pivot is not None and determined(least_pivot)):
        return multipliers
    at: dict[str, Any] = {"time": time}
    if along is None:
        along = np.zeros(robot._base._all_nv - robot.nv)  # for variants as for their base
    loads = robot._joint_loads(q, v, a, multipliers, along, wrenches=wrenches, **at, return_status=True)[0]
    if least_pivot is not None:
        at["least_pivot"] = np.nan_to_num(least_pivot)
    flat = loads.reshape(*loads.shape[:-2], 6 * loads.shape[-2])
    shared: Array = robot._least_reactions(q, multipliers, flat, **at, return_status=True)[0]
    return shared[..., : multipliers.shape[-1]]


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
    matrices = []
    for name, value in compliance.items():
        C = real_array(f"compliance['{name}']", value)
        if C.ndim == 0 and name not in robot._joints:  # a number: compliance along a rod
            C = np.concatenate([np.zeros(3), np.full(3, float(C))])
        if C.shape not in ((6,), (6, 6)):
            raise ShapeError(
                f"compliance['{name}'] has shape {C.shape}; it must be 6 numbers, or 6 x 6 [rad/(N m), m/N]"
            )
        matrices.append((name, np.diag(C) if C.ndim == 1 else C))
    return _core.compliance_roots(robot._base, matrices)


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
    phi = robot._motion_space(q)[..., robot._tree_joint(joint).v_slice]
    phi_c, psi = _core.joint_bases(phi)
    return phi, phi_c, psi, phi_c.copy()
