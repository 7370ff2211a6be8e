"""The same mechanism with other joints in its tree, so that what is asked of a joint that closes a loop is asked of a coordinate of q.

Which joints close the loops is a choice, and a configuration can be told in the coordinates of any tree: each joint's are read off the
bodies that it joins.
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
    """A mechanism with the named joints in its tree, and states told in the coordinates of either.

    Which other joints stand in its tree depends neither on the tree of the mechanism nor on the order of its description: bodies and joints
    are added by name.
    """

    def __init__(self, robot: LoopFunctions, names: tuple[str, ...]) -> None:
        d = robot.description
        # hints are about what q holds, and this one's no caller sees; but relations between coordinates need theirs
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
        # of its joints that close loops, where they stand in q; those that close loops in both stand behind it
        loops = [robot.joint(joint.name) for joint in self.robot._closing_joints]
        places = [np.full(j.type.nq, robot.nq) if j.closes_loop else np.r_[j.q_slice] for j in loops]
        self.meant = np.concatenate([np.zeros(0, np.intp), *places])
        if d.home and not self.same_tree:
            self.robot = type(robot)(dataclasses.replace(other, home=self._home()))

    def _home(self) -> tuple[tuple[str, tuple[float, ...]], ...]:
        """Where a search starts without a guess: a home that closes the loops, or what it says of these joints."""
        start = start_near(self.of, None, {}, None)
        loops = closing(self.of, (), ()).loops
        if np.linalg.norm(loops.row_scale * loops.holonomic * self.of.constraint_residual(start)) > NEAR[2]:
            return tuple((name, x) for name, x in self.of.description.home if name in self.robot.joints)
        there = self.there(start)
        return tuple((name, tuple(there[self.robot.joint(name).q_slice].tolist())) for name in self.robot.joints)

    def there(self, q: ArrayLike, time: Any = None) -> Array:
        """Configurations (..., nq) of the mechanism, in the coordinates of the other tree."""
        q = np.asarray(q)
        x = self.of._within_limits(self.of._loop_joint_coordinates(q, None, time=time), {})
        return np.concatenate([self.of.normalize(q), x], axis=-1)[..., self.places]

    def back(self, there: Array, near: Any = None, time: Any = None, held: tuple[str, ...] = ()) -> Array:
        """Configurations of the other one as those of the mechanism.

        Angles are those nearest to `near`, or to where a search without it starts, that limits allow; those of held joints stay.
        """
        guess = near if isinstance(near, Mapping) else {}
        guess = coordinates(self.of, {name: x for name, x in guess.items() if name in self.of.joints}, many=True)
        return self.back_to(there, start_near(self.of, near, guess, time, there.shape[:-1]), time, held)

    def back_to(self, there: Array, start: Array, time: Any, held: tuple[str, ...]) -> Array:
        """The same, near a configuration."""
        unsound = np.asarray(np.isnan(there).any(axis=-1))
        sound = np.where(unsound[..., None], self.robot.neutral(), there) if unsound.any() else there
        meant = np.concatenate([start, np.zeros((*start.shape[:-1], 1))], axis=-1)[..., self.meant]
        x = self.robot._loop_joint_coordinates(sound, meant, time=time)
        q = np.concatenate([sound, x], axis=-1)[..., self.places_back]
        q[unsound] = np.nan
        return closing(self.of, (), held).unwound(q, start)

    def start(self, near: Any, time: Any) -> Any:
        """Where a search starts: joints by name as they are, configurations in the other coordinates."""
        if near is None or isinstance(near, Mapping):
            return near
        return self.there(start_near(self.of, near, {}, None, np.shape(near)[:-1]), time)


def searched(robot: LoopFunctions, *by_joint: Any, near: Any = None) -> tuple[Recut | None, Any]:
    """The tree in whose coordinates configurations are looked for, None where it is the mechanism's; and `near`.

    It has the joints that these mappings name, and of those that are guessed in `near` as many as do not close a loop among themselves. What
    is found from afar depends on the tree: so this one depends on what is asked, and not on which joints happen to close the loops.
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
        except ModelError:  # some kinds of joints cannot close a loop, and stand in the tree by a hint only
            continue
        return (None if tree.same_tree else tree), near
    return None, near


def _names(robot: LoopFunctions, *by_joint: Any) -> tuple[str, ...]:
    """Joints that these mappings name, by name."""
    return tuple(sorted({x for of in by_joint if isinstance(of, Mapping) for x in of if x in robot._joints}))


def _needed(robot: LoopFunctions) -> list[str]:
    """Joints whose coordinates relations are about: they stand in any tree."""
    return sorted({name for c in robot.description.constraints for name in c.joints_related})


def _places(robot: LoopFunctions, of: LoopFunctions) -> NDArray[np.intp]:
    """Where the coordinates in q of a mechanism stand among all of another one that has the same joints."""
    joints = sorted(map(robot.joint, robot.joints), key=lambda joint: joint.q_slice.start)
    return np.concatenate([np.r_[of._joints[joint.name]._all_q] for joint in joints])
