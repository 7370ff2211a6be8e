"""The same mechanism with other joints in its tree, so that what is asked of a joint that closes a loop is asked of a coordinate of q.

Which joints close the loops is a choice, and a configuration can be told in the coordinates of any tree: each joint's are read off the
bodies that it joins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._arrays import Array, common_axes, into
from ...dynamics.loop_operations import LoopFunctions
from ...errors import ModelError
from ..joint_targets import coordinates, quoted, start_near
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

    def back(self, there: Array, near: Any = None, time: Any = None) -> Array:
        """Configurations of the other one as those of the mechanism, with the angles nearest to `near` if that is one (..., nq)."""
        unsound = np.asarray(np.isnan(there).any(axis=-1))
        sound = np.where(unsound[..., None], self.robot.neutral(), there)
        found = self.robot.joint_coordinates(sound, near=self._meant(near, sound), time=time)
        return self._with_nan(found, "q_slice", unsound)

    def start(self, near: Any, time: Any) -> Any:
        """Where a search starts: joints by name as they are, configurations in the other coordinates."""
        if near is None or isinstance(near, Mapping):
            return near
        return self.there(start_near(self.of, near, {}, None, np.shape(near)[:-1]), time)

    def path_back(self, path: Array, near: Any, time: Any) -> Array:
        """A path (n, nq) of the other one, each of whose configurations is told near the one before."""
        times = [None] * len(path) if time is None else np.asarray(time)
        told = []
        for there, when in zip(path, times, strict=True):
            near = self.back(there, near, when)
            told.append(near)
        return np.array(told)

    def velocity_there(self, q: ArrayLike, v: ArrayLike, time: Any = None) -> Array:
        """Velocities (..., nv) in the other coordinates."""
        return _in_order(self.robot, self.of.joint_velocities(q, v, time=time), "v_slice")

    def acceleration_there(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, time: Any = None) -> Array:
        """Accelerations (..., nv) in the other coordinates."""
        return _in_order(self.robot, self.of.joint_accelerations(q, v, a, time=time), "v_slice")

    def rates_back(
        self, found: Any, q: ArrayLike, there: Array, v: Array | None = None, time: Any = None, out: Array | None = None
    ) -> Any:
        """Velocities (..., nv) of the other one, or where its own v is given accelerations, as those of the mechanism at q; with their status."""
        x, state = found if isinstance(found, tuple) else (found, None)
        unsound = np.asarray(np.isnan(x).any(axis=-1))
        x, near = np.where(unsound[..., None], 0.0, x), self._meant(q, there)
        if v is None:
            of_joints = self.robot.joint_velocities(there, x, near=near, time=time)
        else:
            of_joints = self.robot.joint_accelerations(there, v, x, near=near, time=time)
        x = into(out, self._with_nan(of_joints, "v_slice", unsound))
        return x if state is None else (x, state)

    def _meant(self, near: Any, there: Array) -> dict[str, Array] | None:
        """The coordinates near which those of the mechanism's own tree are, joint by joint; None where `near` is no configuration."""
        if near is None or isinstance(near, Mapping):
            return None
        q = np.broadcast_to(near, (*there.shape[:-1], self.of.nq))
        return {name: q[..., self.of.joint(name).q_slice] for name in self.of.joints}

    def _with_nan(self, of_joints: Mapping[str, Array], place: str, unsound: NDArray[np.bool_]) -> Array:
        found = _in_order(self.of, of_joints, place)
        found[unsound] = np.nan
        return found


def recut(robot: LoopFunctions, *given: Any, near: Any = None) -> tuple[Recut | None, Any]:
    """With the joints in the tree that these mappings name, None where they are there; and `near`.

    Joints may be guessed, too, in `near`: together with those that are given they may close a loop among themselves, as all joints of a
    mechanism do. Then what counts of them is the configuration that those of its own tree make.
    """
    try:
        return _with_in_tree(robot, *given, near), near
    except ModelError:
        if not isinstance(near, Mapping):
            raise
    guessed = {name: x for name, x in near.items() if not robot.joint(name).closes_loop}
    kept = coordinates(robot, guessed, many=True)
    lead = common_axes({f"coordinates of joint '{name}'": x.shape[:-1] for name, x in kept.items()})
    return _with_in_tree(robot, *given), start_near(robot, None, kept, None, lead)


def _with_in_tree(robot: LoopFunctions, *given: Any) -> Recut | None:
    names = tuple(name for joints in given if isinstance(joints, Mapping) for name in joints if name in robot._joints)
    if not any(robot.joint(name).closes_loop for name in names):
        return None
    return prepared(robot, ("tree", *sorted(set(names))), lambda: Recut(robot, names))


def _in_order(robot: LoopFunctions, of_joints: Mapping[str, Array], place: str) -> Array:
    """Those of the tree's joints as they stand in q ("q_slice"), or in v."""
    joints = sorted((robot.joint(name) for name in robot.joints), key=lambda joint: getattr(joint, place).start)
    return np.concatenate([of_joints[joint.name] for joint in joints], axis=-1)
