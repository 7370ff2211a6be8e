"""The same mechanism on another spanning tree, such that a loop joint becomes a tree joint.

The spanning tree is a choice. A configuration has coordinates in each tree; those of a joint follow from the poses of its two bodies.
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

    The other joints of its tree depend neither on the tree of the base mechanism nor on the order of its description, because bodies and joints
    are added in the order of their names.
    """

    def __init__(self, robot: LoopFunctions, names: tuple[str, ...]) -> None:
        d = robot.description
        # hints determine the joints in q, and no caller sees this q; constraints between coordinates require their joints in the tree
        kept = {*_needed(robot), *names}
        joints = tuple(
            dataclasses.replace(j, tree=j.name in kept, loop=bool(j.laws))
            for j in sorted(d.joints, key=lambda joint: joint.name)
        )
        bodies = tuple(sorted(d.bodies, key=lambda body: body.name))
        other = dataclasses.replace(d, bodies=bodies, joints=joints, home=(), configurations=())
        self.of: LoopFunctions = robot
        self.robot: Any = type(robot)(other)
        self.same_tree = set(self.robot.joints) == set(robot.joints)
        self.places, self.places_back = _places(self.robot, robot), _places(robot, self.robot)
        # the index in the base's q of each coordinate of this tree's loop joints; nq for a loop joint of both trees
        loops = [robot.joint(joint.name) for joint in self.robot._closing_joints]
        places = [np.full(j.type.nq, robot.nq) if j.closes_loop else np.r_[j.q_slice] for j in loops]
        self.meant = np.concatenate([np.zeros(0, np.intp), *places])
        if d.home and not self.same_tree:
            self.robot = type(robot)(dataclasses.replace(other, home=self._home()))

    def _home(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """Return the home of the other tree: converted if it closes the loops, else its entries for these joints."""
        start = start_near(self.of, None, {}, None)
        loops = closing(self.of, (), ()).loops
        if np.linalg.norm(loops.row_scale * loops.holonomic * self.of.constraint_residual(start)) > NEAR[2]:
            return tuple((name, x) for name, x in self.of.description.home if name in self.robot.joints)
        there = self.there(start)
        return tuple((name, tuple(there[self.robot.joint(name).q_slice].tolist())) for name in self.robot.joints)

    def there(self, q: ArrayLike, time: Any = None) -> Array:
        """Return configurations (..., nq) of the base mechanism in the coordinates of the other tree."""
        q = np.asarray(q)
        x = self.of._within_limits(self.of._loop_joint_coordinates(q, None, time=time), {})
        return np.concatenate([self.of.normalize(q), x], axis=-1)[..., self.places]

    def back(self, there: Array, near: Any = None, time: Any = None, held: tuple[str, ...] = ()) -> Array:
        """Return configurations of the other tree in the coordinates of the base mechanism.

        Whole turns are removed such that angles are as near as limits allow to `near`, or to the default start. Those of `fixed` joints do not change.
        """
        guess = near if isinstance(near, Mapping) else {}
        guess = coordinates(self.of, {name: x for name, x in guess.items() if name in self.of.joints}, many=True)
        return self.back_to(there, start_near(self.of, near, guess, time, there.shape[:-1]), time, held)

    def back_to(self, there: Array, start: Array, time: Any, held: tuple[str, ...]) -> Array:
        """Return configurations of the other tree in the coordinates of the base mechanism, near configurations `start` (..., nq)."""
        unsound = np.asarray(np.isnan(there).any(axis=-1))
        sound = np.where(unsound[..., None], self.robot.neutral(), there) if unsound.any() else there
        meant = np.concatenate([start, np.zeros((*start.shape[:-1], 1))], axis=-1)[..., self.meant]
        x = self.robot._loop_joint_coordinates(sound, meant, time=time)
        q = np.concatenate([sound, x], axis=-1)[..., self.places_back]
        q[unsound] = np.nan
        return closing(self.of, (), held).unwound(q, start)

    def start(self, near: Any, time: Any) -> Any:
        """Return the start of a search in the other tree: a mapping of joints unchanged, a configuration converted."""
        if near is None or isinstance(near, Mapping):
            return near
        return self.there(start_near(self.of, near, {}, None, np.shape(near)[:-1]), time)


def searched(robot: LoopFunctions, *by_joint: Any, near: Any = None) -> tuple[Recut | None, Any]:
    """Return the tree in whose coordinates a search runs, or None for the mechanism's tree, and `near` without dependent joints.

    The tree contains the joints of these mappings, and the joints of a mapping `near` that close no loop among themselves. The result of
    a search from far away depends on the tree. So the tree depends on the arguments only, and not on the mechanism's spanning tree.
    """
    names = _names(robot, *by_joint)
    if isinstance(near, Mapping):
        kept = fitting(robot, (*_needed(robot), *names, *_names(robot, near)))
        near = {name: x for name, x in near.items() if name in kept or name not in robot._joints}
    if not robot.constraints or robot._asks_for_rows:
        return None, near
    for those in (tuple(sorted({*names, *_names(robot, near)})), names):
        try:
            tree = prepared(robot, ("tree", *those), partial(Recut, robot, those))
        except ModelError:  # some kinds of joints cannot be loop joints, and require a hint
            continue
        return (None if tree.same_tree else tree), near
    return None, near


def _names(robot: LoopFunctions, *by_joint: Any) -> tuple[str, ...]:
    """Return the sorted names of the joints in these mappings."""
    return tuple(sorted({x for of in by_joint if isinstance(of, Mapping) for x in of if x in robot._joints}))


def _needed(robot: LoopFunctions) -> list[str]:
    """Return the joints with constrained coordinates: they are in any tree."""
    return sorted({name for c in robot.description.constraints for name, _ in c._core_terms().get("coordinates", ())})


def _places(robot: LoopFunctions, of: LoopFunctions) -> NDArray[np.intp]:
    """Return the indices of a mechanism's q among all joint coordinates of another mechanism with the same joints."""
    joints = sorted(map(robot.joint, robot.joints), key=lambda joint: joint.q_slice.start)
    return np.concatenate([np.r_[of._joints[joint.name]._all_q] for joint in joints])
