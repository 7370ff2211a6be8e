"""The same mechanism with other joints in its tree, so that what is asked of a joint that closes a loop is asked of a coordinate of q.

Which joints close the loops is a choice, and a configuration can be told in the coordinates of any tree: each joint's are read off the
bodies that it joins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._arrays import Array, into
from ...dynamics.loop_operations import LoopFunctions
from ...errors import ModelError
from ..joint_targets import quoted, start_near
from .closing import prepared


class Recut:
    """A mechanism with the named joints in its tree, and states told in the coordinates of either."""

    def __init__(self, robot: LoopFunctions, names: tuple[str, ...]) -> None:
        if robot._asks_for_rows:
            raise ModelError(
                f"joints {quoted(names)} close loops and have no coordinates in q, of which Pfaffian rows are functions: add them with tree=True"
            )
        d = robot.description
        # hints are about what q holds, and this one's no caller sees; but relations between coordinates need theirs
        kept = {joint for c in d.constraints for joint, _ in c._core_terms().get("coordinates", ())} | {*names}
        joints = tuple(dataclasses.replace(j, tree=j.name in kept, loop=bool(j.laws)) for j in d.joints)
        try:
            bare = type(robot)(dataclasses.replace(d, joints=joints, home=()))
        except ModelError as error:
            raise ModelError(
                f"joints {quoted(names)} cannot all be given: with those that must stand in the tree they close a loop among themselves, "
                f"so that their coordinates depend on each other ({error})"
            ) from None
        self.of: LoopFunctions = robot
        self.robot: Any = bare
        at_home = self.there(start_near(robot, None, {}, None))
        home = tuple((name, tuple(at_home[bare.joint(name).q_slice].tolist())) for name in bare.joints)
        self.robot = type(robot)(dataclasses.replace(d, joints=joints, home=home))

    def there(self, q: ArrayLike, time: Any = None) -> Array:
        """Configurations (..., nq) of the mechanism, in the coordinates of the other tree."""
        return _in_order(self.robot, self.of.joint_coordinates(q, time=time), "q_slice")

    def back(self, q: Array, near: Any = None, time: Any = None) -> Array:
        """Configurations of the other one as those of the mechanism, angles counted from `near` if that is one (..., nq)."""
        start = None
        if near is not None and not isinstance(near, Mapping):
            start = {name: np.asarray(near)[..., self.of.joint(name).q_slice] for name in self.of.joints}
            start = {name: np.broadcast_to(x, (*q.shape[:-1], x.shape[-1])) for name, x in start.items()}
        unsound = np.asarray(np.isnan(q).any(axis=-1))
        there = np.where(unsound[..., None], self.robot.neutral(), q)
        found = _in_order(self.of, self.robot.joint_coordinates(there, near=start, time=time), "q_slice")
        found[unsound] = np.nan
        return found

    def start(self, near: Any, time: Any) -> Any:
        """Where a search starts: joints by name as they are, configurations in the other coordinates."""
        if near is None or isinstance(near, Mapping):
            return near
        return self.there(start_near(self.of, near, {}, None, np.shape(near)[:-1]), time)

    def path_back(self, path: Array, near: Any, time: Any) -> Array:
        """A path (n, nq) of the other one, on which angles do not jump."""
        q = self.back(path, near, time)
        for joint in map(self.of.joint, self.of.joints):
            if joint.type.whole_turns_return:
                turning = [
                    joint.q_slice.start + k for k, (_, unit) in enumerate(joint.type.coordinates) if unit == "rad"
                ]
                q[:, turning] = np.unwrap(q[:, turning], axis=0)
        return q

    def rates_back(self, found: Any, q: Array, v: Array | None, time: Any, out: Array | None) -> Any:
        """Velocities (..., nv) of the other one at its q or, where v is given, accelerations, as those of the mechanism; with their status."""
        x, state = found if isinstance(found, tuple) else (found, None)
        unsound = np.asarray(np.isnan(x).any(axis=-1))
        x = np.where(unsound[..., None], 0.0, x)
        if v is None:
            of_joints = self.robot.joint_velocities(q, x, time=time)
        else:
            of_joints = self.robot.joint_accelerations(q, v, x, time=time)
        rates = _in_order(self.of, of_joints, "v_slice")
        rates[unsound] = np.nan
        x = into(out, rates)
        return x if state is None else (x, state)

    def velocity_there(self, q: ArrayLike, v: ArrayLike, time: Any = None) -> Array:
        """Velocities (..., nv) in the other coordinates."""
        return _in_order(self.robot, self.of.joint_velocities(q, v, time=time), "v_slice")


def recut(robot: LoopFunctions, *given: Any) -> Recut | None:
    """With the joints in the tree that these mappings name; None where they are there."""
    names = tuple(name for joints in given if isinstance(joints, Mapping) for name in joints if name in robot._joints)
    if not any(robot.joint(name).closes_loop for name in names):
        return None
    return prepared(robot, ("tree", *sorted(names)), lambda: Recut(robot, names))


def _in_order(robot: LoopFunctions, of_joints: Mapping[str, Array], place: str) -> Array:
    """Those of the tree's joints as they stand in q ("q_slice"), or in v."""
    joints = sorted((robot.joint(name) for name in robot.joints), key=lambda joint: getattr(joint, place).start)
    return np.concatenate([of_joints[joint.name] for joint in joints], axis=-1)
