"""What of a mechanism is suspicious: `sarrus check`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import numpy as np

from .._arrays import Array
from .._core import tolerances
from .._showing import listed
from ..analysis.joint_targets import start_near
from ..analysis.mobility.report import Mobility
from ..analysis.scaling import ScaledLoops
from ..errors import SarrusError
from ..figures.skeleton import Skeleton
from ..io.document import NO_CONTACTS
from ..mechanism import Mechanism

# a millionth of the whole, as of a link of 1e-9 kg: accelerations then have ten digits less than the numbers
LIGHT = 1e-6
# radius of gyration, or distance of the centre of mass, in sizes of the bodies: a tensor in g mm², a mesh in mm
FAR = 100.0
# rows that depend on one another but for rounding in the file
ROUNDED = 3e-3


def usual(robot: Mechanism) -> Iterator[str]:
    """A line for each thing that is worth knowing, and as it should be."""
    yield from (text for text in robot.warnings if NO_CONTACTS in text)
    with contextlib.suppress(SarrusError):  # of which `suspicious` tells
        report = robot.mobility(robot.assemble(time=0.0), time=0.0) if robot.nc else None
        if report and report.redundant and _across_a_plane(robot, report):
            rows = f"{report.redundant} of {robot.nc} rows are redundant, as is usual of linkages that move in a plane"
            yield f"{rows}: what joints carry across it is not determined"


def suspicious(robot: Mechanism) -> Iterator[str]:
    """A line for each kind of thing that somebody should look at."""
    yield from (text for text in robot.warnings if NO_CONTACTS not in text)
    yield from _of_masses(robot)
    start = start_near(robot, None, {}, 0.0)
    for name in robot.joints:
        limits, home = robot.joint(name).type.limits, start[robot.joint(name).q_slice]
        if limits is not None and not ((limits[0] <= home) & (home <= limits[1])).all():
            yield f"joint '{name}' starts outside of its limits"
    if robot.nc:
        yield from _of_loops(robot)


def _of_masses(robot: Mechanism) -> Iterator[str]:
    bodies, size = robot.description.bodies, robot._length
    heaviest = max((body.inertia.mass for body in bodies), default=0.0)
    if heaviest == 0.0:
        yield "no body has any mass"
    light = [b for b in bodies if 0.0 < b.inertia.mass < LIGHT * heaviest]
    if light:
        least = min(b.inertia.mass for b in light)
        yield f"next to no mass, from {least:.2g} kg on beside {heaviest:.3g} kg, which costs digits of accelerations: {_names(light)}"
    strange = [b for b in bodies if not b.inertia.is_physical() and not any(f"'{b.name}'" in w for w in robot.warnings)]
    if strange:
        yield f"inertia that no body has: {_names(strange)}"
    massive = [b for b in bodies if b.inertia.mass > 0.0]
    wide = [b for b in massive if b.inertia.principal_moments.max() > b.inertia.mass * (FAR * size) ** 2]
    if wide:
        yield f"inertia of bodies {FAR:g} times as large as the mechanism's ({size:.2g} m); is it in kg m²? {_names(wide)}"
    off = [b for b in massive if np.abs(b.inertia.com).max() > FAR * size]
    if off:
        yield f"centre of mass {FAR:g} times as far off as bodies are large ({size:.2g} m); is it in m? {_names(off)}"


def _of_loops(robot: Mechanism) -> Iterator[str]:
    try:
        q = robot.assemble(time=0.0)
    except SarrusError as error:
        yield f"open loops: {error}"
        closed, status = robot.assemble(time=0.0, tolerance=ROUNDED, return_status=True)
        if status == 0:
            yield from _of_rounding(robot, closed)
        return
    report = robot.mobility(q, time=0.0)
    if report.redundant and not _across_a_plane(robot, report):
        rows = f"{report.redundant} of {robot.nc} rows are redundant, so that some reactions are not determined"
        yield f"{rows}: {listed(report.redundant_rows)}"
    yield from report.warnings
    yield from _of_rounding(robot, q)
    if report.degrees_of_freedom == 0:
        yield "nothing can move"
    elif report.idle:
        yield f"joints that cannot move: {listed(report.idle)}"


def _across_a_plane(robot: Mechanism, report: Mobility) -> bool:
    """Whether loops are braced across a plane alone: by forces along its normal, and moments about axes in it."""
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


def _of_rounding(robot: Mechanism, q: Array) -> Iterator[str]:
    s = np.linalg.svd(ScaledLoops(robot, q, 0.0).jacobian(q), compute_uv=False)
    rank, loose = (int((s > limit * max(1.0, s.max())).sum()) for limit in (tolerances.negligible, ROUNDED))
    if loose < rank:
        before = f"the singular value {s[loose - 1]:.2g} is followed by" if loose else "the largest singular value is"
        values = f"{before} {s[loose]:.2g}"
        freedoms = f"{robot.nv - rank} degrees of freedom, and {robot.nv - loose} within {ROUNDED:g}"
        yield f"rows contradict one another by rounding, or nearly: {freedoms}; {values}. sarrus.without_redundant_constraints(robot) takes joints that hold less"


def _names(bodies: Iterable[object]) -> str:
    return listed([body.name for body in bodies])  # type: ignore[attr-defined]


# ---- four-bar linkages -----------------------------------------------------------------------------------------------


SAME = 1e-9  # of the lengths: a sum that equals the other


def grashof(robot: Mechanism, q: Array) -> str:
    """The class of a planar four-bar of pins alone, in words; "" for anything else.

    The shortest and the longest link together are shorter than the other two (Grashof 1883): one link turns all the way round, and which one
    the shortest link tells.
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
    shortest, *others, longest = sorted(length, key=length.__getitem__)
    spare = sum(length[body] for body in others) - length[shortest] - length[longest]
    terms = (
        f"{length[shortest]:.4g} + {length[longest]:.4g} {{}} {' + '.join(f'{length[body]:.4g}' for body in others)} m"
    )
    if abs(spare) <= SAME * length[longest]:
        return f"change point: {terms.format('=')}; it can fold flat, where it may go on in two ways"
    if spare < 0.0:
        return f"triple rocker: {terms.format('>')}; no link turns all the way round"
    grounded = {
        body for joint in joints if "ground" in (joint.parent, joint.child) for body in (joint.parent, joint.child)
    }
    kind = "double crank" if shortest == "ground" else "crank-rocker" if shortest in grounded else "double rocker"
    turns = "both grounded links turn" if shortest == "ground" else f"{shortest} turns"
    return f"{kind}: {terms.format('<')}; {turns} all the way round"
