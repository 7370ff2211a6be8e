"""How far the links of a four-bar linkage turn, by their lengths."""

from __future__ import annotations

import numpy as np

from .._arrays import Array
from ..figures.skeleton import Skeleton
from ..mechanism import Mechanism

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
