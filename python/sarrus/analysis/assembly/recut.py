"""The same mechanism with another spanning tree, in which a loop joint becomes a tree joint.

A configuration is converted from one tree to the other, because the poses of a joint's two bodies determine its coordinates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ..._arrays import Array, ArrayLike, NDArray
from ...dynamics.loop_operations import LoopFunctions
from ...errors import ModelError
from ..joint_targets import coordinates, start_near
from .closing import NEAR, closing, fitting, prepared


class Recut:
    """A mechanism with the named joints in its tree, and conversions of configurations between both trees.

    Bodies and joints are added in the order of their names. Therefore the new tree depends neither on the tree of the base mechanism nor on the
    order of its description.
    """

    def __init__(self, robot: LoopFunctions, names: tuple[str, ...]) -> None:
        base_description = robot.description
        # this mechanism may choose its tree joints by hints, because its q is internal; constraints between coordinates require their joints in the
        # tree
        tree_joints = {*_needed(robot), *names}
        joints = tuple(
            dataclasses.replace(j, tree=j.name in tree_joints, loop=bool(j.laws))
            for j in sorted(base_description.joints, key=lambda joint: joint.name)
        )
        bodies = tuple(sorted(base_description.bodies, key=lambda body: body.name))
        description = dataclasses.replace(base_description, bodies=bodies, joints=joints, home=(), configurations=())
        self.base: LoopFunctions = robot
        self.robot: Any = type(robot)(description)
        self.same_tree = set(self.robot.joints) == set(robot.joints)
        self.places, self.places_back = _places(self.robot, robot), _places(robot, self.robot)
        # the index in the base's q of each coordinate of this tree's loop joints; nq for a loop joint of both trees
        loops = [robot.joint(joint.name) for joint in self.robot._closing_joints]
        places = [np.full(j.type.nq, robot.nq) if j.closes_loop else np.r_[j.q_slice] for j in loops]
        self.reference_places = np.concatenate([np.zeros(0, np.intp), *places])
        if base_description.home and not self.same_tree:
            self.robot = type(robot)(dataclasses.replace(description, home=self._home()))

    def _home(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """Return the home configuration for the new tree: converted if it closes the loops, otherwise its entries for joints of both trees."""
        start = start_near(self.base, None, {}, None)
        loops = closing(self.base, (), ()).loops
        if np.linalg.norm(loops.row_scale * loops.holonomic * self.base.constraint_residual(start)) > NEAR[2]:
            return tuple((name, x) for name, x in self.base.description.home if name in self.robot.joints)
        home = self.convert(start)
        return tuple((name, tuple(home[self.robot.joint(name).q_slice].tolist())) for name in self.robot.joints)

    def convert(self, q: ArrayLike, time: Any = None) -> Array:
        """Return configurations (..., nq) of the base mechanism in the coordinates of the other tree."""
        q = np.asarray(q)
        x = self.base._within_limits(self.base._loop_joint_coordinates(q, None, time=time), {})
        return np.concatenate([self.base.normalize(q), x], axis=-1)[..., self.places]

    def convert_back(self, q: Array, near: Any = None, time: Any = None, fixed: tuple[str, ...] = ()) -> Array:
        """Return configurations of the other tree in the coordinates of the base mechanism.

        Angles are shifted by full revolutions to be as near as limits allow to `near`, or to the default guess. Angles of `fixed` joints do not
        change.
        """
        guess = near if isinstance(near, Mapping) else {}
        guess = coordinates(self.base, {name: x for name, x in guess.items() if name in self.base.joints}, many=True)
        return self.convert_back_near(q, start_near(self.base, near, guess, time, q.shape[:-1]), time, fixed)

    def convert_back_near(self, q: Array, start: Array, time: Any, fixed: tuple[str, ...]) -> Array:
        """Return configurations of the other tree in the coordinates of the base mechanism, near configurations `start` (..., nq)."""
        unsound = np.asarray(np.isnan(q).any(axis=-1))
        sound = np.where(unsound[..., None], self.robot.neutral(), q) if unsound.any() else q
        meant = np.concatenate([start, np.zeros((*start.shape[:-1], 1))], axis=-1)[..., self.reference_places]
        x = self.robot._loop_joint_coordinates(sound, meant, time=time)
        converted = np.concatenate([sound, x], axis=-1)[..., self.places_back]
        converted[unsound] = np.nan
        return closing(self.base, (), fixed).unwound(converted, start)

    def start(self, near: Any, time: Any) -> Any:
        """Return the initial guess of a search in the other tree: a mapping of joints is unchanged, a configuration is converted."""
        if near is None or isinstance(near, Mapping):
            return near
        return self.convert(start_near(self.base, near, {}, None, np.shape(near)[:-1]), time)


def searched(robot: LoopFunctions, *by_joint: Any, near: Any = None) -> tuple[Recut | None, Any]:
    """Return the tree in whose coordinates a search runs, or None for the mechanism's tree, and `near` without dependent joints.

    The tree contains the joints of these mappings, and the joints of a mapping `near` that close no loop among themselves. The result of a search far
    from the initial guess depends on the tree. Therefore the tree is determined by the arguments only, not by the mechanism's spanning tree.
    """
    names = _names(robot, *by_joint)
    if isinstance(near, Mapping):
        independent = fitting(robot, (*_needed(robot), *names, *_names(robot, near)))
        near = {name: x for name, x in near.items() if name in independent or name not in robot._joints}
    if not robot.constraints or robot._asks_for_rows:
        return None, near
    for joints in (tuple(sorted({*names, *_names(robot, near)})), names):
        try:
            tree = prepared(robot, ("tree", *joints), partial(Recut, robot, joints))
        except ModelError:  # some kinds of joints cannot be loop joints, and require a hint
            continue
        return (None if tree.same_tree else tree), near
    return None, near


def _names(robot: LoopFunctions, *by_joint: Any) -> tuple[str, ...]:
    """Return the sorted names of the joints in these mappings."""
    return tuple(
        sorted({x for mapping in by_joint if isinstance(mapping, Mapping) for x in mapping if x in robot._joints})
    )


def _needed(robot: LoopFunctions) -> list[str]:
    """Return the joints whose coordinates are related by constraints, and which therefore must be tree joints."""
    return sorted({name for c in robot.description.constraints for name in c.joints_related})


def _places(robot: LoopFunctions, target: LoopFunctions) -> NDArray[np.intp]:
    """Return the index of each coordinate of a mechanism among all joint coordinates of another mechanism with the same joints."""
    joints = sorted(map(robot.joint, robot.joints), key=lambda joint: joint.q_slice.start)
    return np.concatenate([np.r_[target._joints[joint.name]._all_q] for joint in joints])
