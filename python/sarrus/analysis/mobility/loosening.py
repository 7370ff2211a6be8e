"""Removal of redundant constraint rows, by replacing loop joints by joints with more degrees of freedom: cpp/position/loosening.hpp."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from ..._arrays import ArrayLike, checked_names, checked_number
from ...description.joints import JOINT_TYPES
from ...description.specs import JointSpec
from ...dynamics.loop_operations import LoopFunctions
from ...errors import ShapeError
from ..assembly.closing import positions

M = TypeVar("M", bound=LoopFunctions)


def without_redundant_constraints(
    robot: M, q: ArrayLike | None = None, *, tolerance: float = 3e-3, joints: Iterable[str] | None = None
) -> M:
    """Return a mechanism without redundant constraint rows, in which loop joints have more degrees of freedom.

    Each loop joint is replaced by the joint with the fewest rows that does not change the mobility of the mechanism. For example, a revolute joint
    in a planar loop becomes a ball in a slot. The tree and q do not change. If no row is redundant, the mechanism itself is returned. The
    last `warnings` of the new mechanism list the changes:

    - the replaced joints
    - the ratio of the smallest singular value above the tolerance to the largest below it
    - the loop error before and after
    - the residual of the omitted rows in nearby configurations

    Parameters
    ----------
    robot : the mechanism
    q : (nq,) configuration [rad, m] that closes the loops within the tolerance; default: the home configuration if it does, otherwise
        assemble(tolerance=tolerance)
    tolerance : largest singular value that counts as zero, of rows scaled to norm 1 (dimensionless), and largest residual of a closed loop
        [rad, mean body sizes]
    joints : names of the loop joints that may be replaced; default: all

    Raises
    ------
    AssemblyError
        The loops are open by more than the tolerance, or the loops with the replaced joints do not close.
    NameNotFoundError
        A name is not that of a loop joint.
    ModelError
        No joint can be replaced. Or the rows are redundant only because q is a singular position: in nearby configurations, the residual of the
        omitted rows exceeds ten times the tolerance.

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> loose = sarrus.without_redundant_constraints(fourbar)
    >>> fourbar.nc, loose.nc, loose.mobility(loose.assemble()).degrees_of_freedom
    (5, 2, 1)
    >>> print(loose.warnings[0])
    loosened: 'pin2' has 2 constraint rows as Gimbal(('rx', 'ry', 'rz', 'tz'), [0, 0, 0, 0, 0, 0]) instead of 5 rows as Revolute('y')
    """
    tolerance = checked_number("tolerance", tolerance)
    if not isinstance(robot, LoopFunctions):
        raise TypeError(f"robot must be a Mechanism; got {robot!r}")
    if q is not None:
        q = robot.normalize(q)
        if q.ndim != 1:
            raise ShapeError(f"q has shape {q.shape}; expected one configuration, ({robot.nq},)")
    names = None if joints is None else list(checked_names("joints", joints))
    d = robot.description
    fields, messages = positions(robot).without_redundant_constraints(d, q, tolerance, names)
    if not messages:
        return robot
    specs = tuple(_changed(spec, changes) for spec, changes in zip(d.joints, fields, strict=True) if changes)
    changed = replace(d, joints=specs, warnings=(*d.warnings, *messages))
    return type(robot)(changed, substructures=robot._substructures)


def _changed(spec: JointSpec, changes: dict[str, Any]) -> JointSpec:
    kind, numbers = changes["joint"]
    joint = spec.joint if kind == spec.kind else JOINT_TYPES[kind](**numbers)
    return replace(spec, **changes | {"joint": joint})
