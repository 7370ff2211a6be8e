"""What the joints of the tree carry while loops are closed."""

from __future__ import annotations

import numpy as np

from .._arrays import Array, ArrayLike
from .operations import StateFunctions


def carried_by_tree(robot: StateFunctions, q: ArrayLike, wrenches: Array) -> dict[str, Array]:
    """What wrenches (..., constraints, 6) on the constraints' children, and their opposites on the parents, put on all that is beyond
    each joint of the tree: (..., 6) [moment; force] in its frame; joints beyond which nothing acts are left out.
    """
    placed = {body: robot.pose(q, body, return_status=True)[0] for body in robot.bodies} | {"ground": np.eye(4)}
    specs = {spec.name: spec for spec in robot.description.joints}
    below = {(j.parent if j.reversed else j.child): j for j in map(robot.joint, robot.joints)}
    beyond: dict[str, Array] = {}  # in the world's axes, about its origin
    for k, constraint in enumerate(map(robot.constraint, robot.constraints)):
        if not constraint.bodies:
            continue
        parent, child = constraint.bodies
        wrench = in_world(placed[child] @ constraint.spec.at_child.matrix, wrenches[..., k, :])
        for body, sign in ((child, 1.0), (parent, -1.0)):
            while body in below:
                joint = below[body]
                beyond[joint.name] = beyond.get(joint.name, 0.0) + sign * wrench
                body = joint.child if joint.reversed else joint.parent
    through = {}
    for body, joint in below.items():
        if joint.name in beyond:
            spec = specs[joint.name]
            at = spec.at_parent if joint.reversed else spec.at_child
            through[joint.name] = in_frame(placed[body] @ at.matrix, beyond[joint.name])
    return through


def in_world(pose: Array, wrench: Array) -> Array:
    """From a frame, at its origin, to the world's axes, about the world's origin."""
    moment, force = (
        np.einsum("...ij,...j->...i", pose[..., :3, :3], part) for part in (wrench[..., :3], wrench[..., 3:])
    )
    return np.concatenate([moment + np.cross(pose[..., :3, 3], force), force], axis=-1)


def in_frame(pose: Array, wrench: Array) -> Array:
    moment, force = wrench[..., :3] - np.cross(pose[..., :3, 3], wrench[..., 3:]), wrench[..., 3:]
    return np.concatenate([np.einsum("...ji,...j->...i", pose[..., :3, :3], part) for part in (moment, force)], axis=-1)
