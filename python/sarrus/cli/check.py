"""Checks of a model for suspicious properties: `sarrus check`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import numpy as np

from .._arrays import Array
from .._core import tolerances
from .._showing import listed
from ..analysis.closing import start_near
from ..analysis.linear_algebra import ScaledLoops
from ..analysis.mobility import Mobility
from ..errors import SarrusError
from ..figures.skeleton import Skeleton
from ..io.document import NO_CONTACTS
from ..mechanism import Mechanism

# a body is suspiciously light below this fraction of the heaviest body's mass, because its accelerations lose up to ten digits
LIGHT = 1e-6
# largest radius of gyration, or distance of the centre of mass, relative to the size of the mechanism. Larger values indicate wrong units, such as a
# tensor in g mm² or a mesh in mm
FAR = 100.0
# constraint rows with a smaller singular value are probably redundant, up to rounding of the numbers in the file
ROUNDED = 3e-3


def usual(robot: Mechanism) -> Iterator[str]:
    """Return a line of text for each property of a mechanism that is notable, but no fault."""
    yield from (text for text in robot.warnings if NO_CONTACTS in text)
    with contextlib.suppress(SarrusError):  # `suspicious` reports these errors
        report = robot.mobility(robot.assemble(time=0.0), time=0.0) if robot.nc else None
        if report and report.redundant and _across_a_plane(robot, report):
            rows = f"{report.redundant} of {robot.nc} rows are redundant, as usual for planar linkages"
            yield f"{rows}: reactions normal to the plane are indeterminate"


def suspicious(robot: Mechanism) -> Iterator[str]:
    """Return a line of text for each kind of suspicious property of a mechanism."""
    yield from (text for text in robot.warnings if NO_CONTACTS not in text)
    yield from _mass_findings(robot)
    start = start_near(robot, None, {}, 0.0)
    for name in robot.joints:
        limits, home = robot.joint(name).type.limits, start[robot.joint(name).q_slice]
        if limits is not None and not ((limits[0] <= home) & (home <= limits[1])).all():
            yield f"joint '{name}' starts outside its limits"
    if robot.nc:
        yield from _loop_findings(robot)


def _mass_findings(robot: Mechanism) -> Iterator[str]:
    bodies, size = robot.description.bodies, robot._length
    heaviest = max((body.inertia.mass for body in bodies), default=0.0)
    if heaviest == 0.0:
        yield "no body has mass"
    light = [b for b in bodies if 0.0 < b.inertia.mass < LIGHT * heaviest]
    if light:
        least = min(b.inertia.mass for b in light)
        yield f"tiny mass (least {least:.2g} kg, largest body {heaviest:.3g} kg); accelerations lose digits: {_names(light)}"
    unphysical = [
        b for b in bodies if not b.inertia.is_physical() and not any(f"'{b.name}'" in w for w in robot.warnings)
    ]
    if unphysical:
        yield f"unphysical inertia: {_names(unphysical)}"
    massive = [b for b in bodies if b.inertia.mass > 0.0]
    wide = [b for b in massive if b.inertia.principal_moments.max() > b.inertia.mass * (FAR * size) ** 2]
    if wide:
        yield f"radius of gyration over {FAR:g} times the mechanism's size ({size:.2g} m); is the inertia in kg m²? {_names(wide)}"
    off = [b for b in massive if np.abs(b.inertia.com).max() > FAR * size]
    if off:
        yield f"centre of mass over {FAR:g} times the mechanism's size ({size:.2g} m) from the body's origin; is it in m? {_names(off)}"


def _loop_findings(robot: Mechanism) -> Iterator[str]:
    try:
        q = robot.assemble(time=0.0)
    except SarrusError as error:
        yield f"open loops: {error}"
        closed, status = robot.assemble(time=0.0, tolerance=ROUNDED, return_status=True)
        if status == 0:
            yield from _rounding_findings(robot, closed)
        return
    report = robot.mobility(q, time=0.0)
    if report.redundant and not _across_a_plane(robot, report):
        rows = f"{report.redundant} of {robot.nc} rows are redundant; some reactions are indeterminate"
        yield f"{rows}: {listed(report.redundant_rows)}"
    yield from report.warnings
    yield from _rounding_findings(robot, q)
    if report.degrees_of_freedom == 0:
        yield "the mechanism cannot move (zero degrees of freedom)"
    elif report.idle:
        yield f"joints that cannot move: {listed(report.idle)}"


def _across_a_plane(robot: Mechanism, report: Mobility) -> bool:
    """Return True if all internal forces of the redundant constraints are normal to a plane: forces along its normal, and moments about axes in the
    plane.
    """
    q, stressed = robot.assemble(time=0.0), {name: w for name, w in report.self_stress.items() if np.any(w)}
    if not stressed.keys() <= robot._joints.keys():
        return False
    ends = {name: "parent" if robot.joint(name).reversed else "child" for name in stressed}
    R = {name: robot.pose(q, f"{name}.{end}")[:3, :3] for name, end in ends.items()}
    moments, forces = (
        np.concatenate([w[:, part] @ R[name].T for name, w in stressed.items()]) for part in (slice(3), slice(3, 6))
    )
    moments = moments / report.length
    size, axes = np.linalg.eigh(forces.T @ forces - moments.T @ moments)
    off = [np.abs(moments @ axes[:, 2]).max(), np.linalg.norm(np.cross(forces, axes[:, 2]), axis=1).max()]
    return bool(max(off) <= 1e-6 * np.sqrt(np.abs(size).max()))


def _rounding_findings(robot: Mechanism, q: Array) -> Iterator[str]:
    s = np.linalg.svd(ScaledLoops(robot, q, 0.0).jacobian(q), compute_uv=False)
    rank, loose = (int((s > limit * max(1.0, s.max())).sum()) for limit in (tolerances.negligible, ROUNDED))
    if loose < rank:
        before = f"the singular value {s[loose - 1]:.2g} is followed by" if loose else "the largest singular value is"
        values = f"{before} {s[loose]:.2g}"
        freedoms = f"{robot.nv - rank} degrees of freedom, and {robot.nv - loose} within {ROUNDED:g}"
        yield f"rows are inconsistent within rounding: {freedoms}; {values}. sarrus.without_redundant_constraints(robot) replaces joints by joints with fewer rows"


def _names(bodies: Iterable[object]) -> str:
    return listed([body.name for body in bodies])  # type: ignore[attr-defined]


# ---- four-bar linkages -----------------------------------------------------------------------------------------------


SAME = 1e-9  # two sums of lengths are considered equal up to this relative difference


def grashof(robot: Mechanism, q: Array) -> str:
    """Return the name of the Grashof class of a planar four-bar linkage with four revolute joints; "" for all other mechanisms.

    If the sum of the shortest and the longest link is smaller than the sum of the other two (Grashof 1883), the shortest link can rotate fully. The
    class depends on the position of the shortest link.
    """
    joints = [robot.joint(name) for name in (*robot.joints, *robot.loop_joints)]
    if len(robot.constraints) != 1 or len(joints) != 4 or {joint.kind for joint in joints} != {"Revolute"}:
        return ""
    skeleton, links = Skeleton(robot), dict[str, list[Array]]((name, []) for name in ("ground", *robot.bodies))
    axes = np.array([skeleton.joint_axis(q, joint.name) for joint in joints])
    for name, point in skeleton.joint_points(q).items():
        for body in (robot.joint(name).parent, robot.joint(name).child):
            links[body].append(point - axes[0] * (axes[0] @ point))
    if np.abs(np.cross(axes, axes[0])).max() > SAME or {len(ends) for ends in links.values()} != {2}:
        return ""
    length = {body: float(np.linalg.norm(a - b)) for body, (a, b) in links.items()}
    shortest, *middle, longest = sorted(length, key=length.__getitem__)
    spare = sum(length[body] for body in middle) - length[shortest] - length[longest]
    terms = (
        f"{length[shortest]:.4g} + {length[longest]:.4g} {{}} {' + '.join(f'{length[body]:.4g}' for body in middle)} m"
    )
    if abs(spare) <= SAME * length[longest]:
        return f"change point: {terms.format('=')}; it can fold flat, and two branches meet there"
    if spare < 0.0:
        return f"triple rocker: {terms.format('>')}; no link turns fully"
    grounded = {
        body for joint in joints if "ground" in (joint.parent, joint.child) for body in (joint.parent, joint.child)
    }
    kind = "double crank" if shortest == "ground" else "crank-rocker" if shortest in grounded else "double rocker"
    turns = "both grounded links turn" if shortest == "ground" else f"{shortest} turns"
    return f"{kind}: {terms.format('<')}; {turns} fully"
