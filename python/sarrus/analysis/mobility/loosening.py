"""Removal of redundant constraint rows, by replacing loop joints by joints with more degrees of freedom.

Small inaccuracies of a model, such as an angle of 1.57 instead of pi/2 or an offset of 3e-8 m, make redundant rows inconsistent, and the mechanism
locks. A loop joint with fewer rows tolerates these inaccuracies. The number r of required rows is the number of singular values of the scaled J
(:mod:`sarrus.analysis.scaling`) above a tolerance. The replacement is the joint type with the fewest rows; among several, the one with the largest
r-th singular value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

import numpy as np

from ... import _core
from ..._arrays import Array, ArrayLike, checked_names, checked_number
from ...description.joints import BOUNDS, PARAMETERS, PASSIVE, Cylindrical, Gimbal, JointType, Spherical, axis_frame
from ...description.specs import Description, JointSpec
from ...dynamics.loop_operations import LoopFunctions
from ...errors import AssemblyError, ModelError, ShapeError, check_name
from ...spatial import Transform
from ..assembly.position import assemble
from ..joint_targets import start_near
from ..scaling import CLOSED, PRESENT, ScaledLoops, null_space

M = TypeVar("M", bound=LoopFunctions)

# a joint with fewer rows is acceptable if the smallest singular value above the tolerance does not decrease below this fraction of its value
SHARE = 0.1
# number of samples of the motion, and their distance [rad, mean body sizes]
SAMPLES, AWAY = 6, 0.4
# rows that are redundant only in a singular position have, at a distance d from it, a residual of about this factor times d squared
CURVED = 0.1


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
    loosened: 'pin2' closes its loop in 2 rows as Gimbal(('rx', 'ry', 'rz', 'tz'), [0, 0, 0, 0, 0, 0]) instead of 5 as Revolute('y')
    """
    tolerance = checked_number("tolerance", tolerance)
    if not isinstance(robot, LoopFunctions):
        raise TypeError(f"robot must be a Mechanism; got {robot!r}")
    if q is None:
        # the home configuration is preferred, because assembling minimises the residual and may end in a singular position
        q = start_near(robot, None, {}, 0.0)
        if _singular_values(robot, q)[1] > tolerance:
            q = assemble(robot, tolerance=tolerance, time=0.0)
    q = robot.normalize(q)
    if q.ndim != 1:
        raise ShapeError(f"q has shape {q.shape}; expected one configuration, ({robot.nq},)")
    allowed = robot.loop_joints if joints is None else checked_names("joints", joints)
    for name in allowed:
        check_name("loop joint", name, robot.loop_joints)
    s, residual = _singular_values(robot, q)
    if residual > tolerance:
        limit = f"expected at most the tolerance, {tolerance:g}"
        raise AssemblyError(f"q violates the loops by {residual:.2g}, relative to the mechanism's length; {limit}")
    needed = int((s > tolerance * max(1.0, s.max(initial=0.0))).sum())
    if needed == robot.nc:
        return robot
    least, loose = SHARE * s[needed - 1] if needed else 0.0, _with_its_tree(robot)
    messages: list[str] = []
    for name in reversed(allowed):
        if (looser := _loosest(loose, name, q, needed, least)) is not None:
            messages.append(_change(loose, looser, name))
            loose = looser
    stay = [
        f"'{j.name}' stays as it is ({why})"
        for j in robot.description.joints
        if j.name in allowed and (why := _why_not(j))
    ]
    if not messages:
        fault = f"though {robot.nc - needed} of {robot.nc} rows are redundant within {tolerance:g}"
        cure = "tree= and loop= select the loop joints" if stay else "these rows do not belong to loop joints"
        raise ModelError(
            "; ".join(
                [
                    f"no joint of '{robot.name}' can be replaced by a joint with fewer constraint rows, {fault}",
                    *stay,
                    cure,
                ]
            )
        )
    closed = np.asarray(assemble(loose, q, time=0.0))
    (worst, row), after = _left_open(robot, loose, closed), _singular_values(loose, closed)[1]
    if worst > max(10.0 * tolerance, CURVED * AWAY**2):
        raise ModelError(
            f"'{robot.name}' is in a singular position at q: in nearby positions '{row}' is violated by {worst:.2g} (relative to the mechanism's length) "
            f"if the rows that are redundant at q (within {tolerance:g}) are removed; expected a regular position q"
        )
    zero = f"and {s[needed]:.2g} is treated as zero" if needed < len(s) else "and no singular value is treated as zero"
    counts = (
        f"the smallest nonzero singular value is {s[needed - 1]:.2g}, {zero}"
        if needed
        else "all singular values are treated as zero"
    )
    left = [f"{loose.nc - needed} redundant rows are left", *stay] if loose.nc > needed else []
    messages += [
        f"loosened within {tolerance:g}: {'; '.join([counts, *left])}",
        f"loosened: relative to the mechanism's length, the loop error was {residual:.1g} and is now {after:.1g}; in nearby configurations "
        f"'{row}' is violated by {worst:.1g}",
    ]
    warnings = (*robot.description.warnings, *messages)
    return type(robot)(replace(loose.description, warnings=warnings), substructures=robot._substructures)


def _change(robot: LoopFunctions, looser: LoopFunctions, name: str) -> str:
    """Return the sentence of `warnings` that describes the replacement of a joint."""
    was, many = robot.joint(name).type, len(robot.constraint(name).row_names)
    if name not in looser.constraints:
        return f"loosened: '{name}' is omitted, with no row, instead of {many} as {was}"
    now, few = looser.joint(name).type, len(looser.constraint(name).row_names)
    return f"loosened: '{name}' closes its loop in {few} rows as {now} instead of {many} as {was}"


def _again(robot: M, description: Description) -> M:
    return type(robot)(description, substructures=robot._substructures)


def _with_its_tree(robot: M) -> M:
    """Return the mechanism with its choice of tree joints recorded in the description, so that it does not change with joint types."""
    d = robot.description
    kept = (replace(j, tree=j.name in robot.joints and not j.laws, loop=j.name in robot.loop_joints) for j in d.joints)
    return _again(robot, replace(d, joints=tuple(kept)))


def _singular_values(robot: LoopFunctions, q: Array) -> tuple[Array, float]:
    """Return the singular values of the scaled J, and the largest scaled residual."""
    result = _core.constraint_rank(robot, q, None, 0.0)
    return result["singular_values"], result["closing_error"]


def _loosest(robot: M, name: str, q: Array, needed: int, least: float) -> M | None:
    """Return the mechanism with the replacement of this joint that has the fewest rows; None if no replacement is possible.

    After the replacement, `needed` singular values must still exceed `least`.
    """
    spec = next(j for j in robot.description.joints if j.name == name)
    if _why_not(spec):
        return None
    rows, free = robot.constraint(name).rows, _free_parameters(spec.joint)
    rank = int((_core.constraint_rank(robot, q, name, 0.0)["singular_values"] > least).sum())
    for count in range(max(0, needed - rank), rows.stop - rows.start):
        best, largest = None, least
        for candidate in _looser(robot, spec, free, count, q):
            joints = (candidate if j.name == name else j for j in robot.description.joints)
            other = _again(robot, replace(robot.description, joints=tuple(j for j in joints if j is not None)))
            s = _singular_values(other, q)[0]
            if needed == 0 or (len(s) >= needed and s[needed - 1] >= largest):
                best, largest = other, s[needed - 1] if needed else 0.0
        if best is not None:
            return best
    return None


def _why_not(spec: JointSpec) -> str:
    """Return the reason why a joint cannot be replaced, or an empty str."""
    if spec.laws or spec.actuated:
        return "it follows time functions" if spec.laws else "it has a motor"
    if spec.joint.free_components is None:
        return f"no less restrictive joint type exists for {spec.joint.kind}"
    if _has_terms(spec.joint) and spec.joint.kind in ("Spherical", "Planar"):
        return "no joint with fewer constraint rows has its velocities, on which its damping, friction or spring acts"
    return ""


def _free_parameters(joint: JointType) -> list[str]:
    free = joint.free_components or 0
    return [name for k, name in enumerate(PARAMETERS) if free >> k & 1]


def _has_terms(joint: JointType) -> bool:
    return any(getattr(joint, term).any() for term in PASSIVE)


def _looser(robot: LoopFunctions, spec: JointSpec, free: list[str], rows: int, q: Array) -> Iterator[JointSpec | None]:
    """Yield joints with this many rows that can replace a joint; None means removal of the joint."""
    joint, numbers = spec.joint, vars(spec.joint)
    if rows == 0:
        if not _has_terms(joint):
            yield None
        return
    axis = next((numbers[key] for key in ("axis", "normal") if key in numbers), None)
    in_parent = in_child = Transform() if axis is None else Transform(axis_frame(axis))
    # a ball joint has no axis: use the directions of its self-stress, and align both joint frames with them
    if joint.kind == "Spherical":
        U, s, _ = np.linalg.svd(ScaledLoops(robot, q, 0.0).jacobian(q))
        stress = U[robot.constraint(spec.name).rows, int((s > 1e-3 * s.max(initial=0.0)).sum()) :]
        turned = np.linalg.svd(stress)[0]
        in_child = Transform(turned * np.sign(np.linalg.det(turned)))
        R_P, R_C = (
            robot.pose(q, body)[:3, :3] @ at.rotation
            for body, at in ((spec.parent, spec.at_parent), (spec.child, spec.at_child))
        )
        in_parent = Transform(R_P.T @ R_C @ in_child.rotation)
    for more in combinations([p for p in PARAMETERS if p not in free], 6 - rows - len(free)):
        parameters = [p for p in PARAMETERS if p in free or p in more]
        at_parent, at_child = spec.at_parent @ in_parent, spec.at_child @ in_child
        yield replace(spec, joint=_gimbal(joint, free, parameters), at_parent=at_parent, at_child=at_child)


def _gimbal(joint: JointType, free: list[str], parameters: list[str]) -> JointType:
    """Return the joint with free directions `parameters`, z along its axis, with the springs, friction and limits of `joint`.

    The free directions of `joint` are `free`.
    """
    order = [p for p in PARAMETERS if p in free]

    def spread(values: Array, rest: float) -> list[float]:
        return [float(values[order.index(p)]) if p in order else rest for p in parameters]

    passive = () if joint.kind in ("Spherical", "Planar") else PASSIVE
    terms = {name: spread(getattr(joint, name), 0.0) for name in passive}
    bounded = [name for name in BOUNDS if getattr(joint, name) is not None and terms]
    bounds = {name: spread(getattr(joint, name), np.inf) for name in bounded}
    if joint.limits is not None and terms:
        bounds["limits"] = [spread(joint.limits[0], -np.inf), spread(joint.limits[1], np.inf)]  # type: ignore[list-item]
    if tuple(parameters) == ("rx", "ry", "rz"):
        plain = not bounds and not any(any(x) for x in terms.values())
        return Spherical() if plain else Gimbal(parameters, **terms, **bounds)
    if tuple(parameters) == ("rz", "tz"):
        return Cylindrical("z", **terms, **bounds)
    return Gimbal(parameters, **terms, **bounds)


def _left_open(robot: LoopFunctions, loose: LoopFunctions, q: Array) -> tuple[float, str]:
    """Return the largest scaled residual of the original rows in nearby configurations of the mechanism `loose`, and the row's name."""
    loops, loosened, rng = ScaledLoops(robot, q, 0.0), ScaledLoops(loose, q, 0.0), np.random.default_rng(0)
    motions, states = null_space(loosened.jacobian(q), PRESENT), [q]
    if motions.size:
        x = rng.standard_normal((SAMPLES, motions.shape[1])) @ motions.T
        near, left = loosened.close(loosened.step(q, AWAY * x / np.abs(x).max(axis=1, keepdims=True)))
        states += list(near[left < CLOSED])
    residuals = np.abs(np.array([loops.residual(state) for state in states]))
    if not residuals.size:
        return 0.0, ""
    worst = np.unravel_index(residuals.argmax(), residuals.shape)
    return float(residuals[worst]), robot._row_names[int(worst[1])]
