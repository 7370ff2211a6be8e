"""The same mechanism with other joints in its tree, so that what is asked of a joint that closes a loop is asked of a coordinate of q.

Which joints close the loops is a choice, and a configuration can be told in the coordinates of any tree: each joint's are read off the
bodies that it joins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._arrays import Array, into
from ...dynamics.loop_operations import LoopFunctions
from ...errors import ModelError
from ..joint_targets import coordinates, quoted, start_near
from .closing import NEAR, closing, prepared


class Recut:
    """A mechanism with the named joints in its tree, and states told in the coordinates of either.

    Which other joints stand in its tree depends neither on the tree of the mechanism nor on the order of its description: bodies and joints
    are added by name.
    """

    def __init__(self, robot: LoopFunctions, names: tuple[str, ...]) -> None:
        if robot._asks_for_rows:
            raise ModelError(
                f"joints {quoted(names)} close loops and have no coordinates in q, of which Pfaffian rows are functions: add them with tree=True"
            )
        d = robot.description
        # hints are about what q holds, and this one's no caller sees; but relations between coordinates need theirs
        kept = {*_needed(robot), *names}
        joints = tuple(
            dataclasses.replace(j, tree=j.name in kept, loop=bool(j.laws))
            for j in sorted(d.joints, key=lambda joint: joint.name)
        )
        bodies = tuple(sorted(d.bodies, key=lambda body: body.name))
        other = dataclasses.replace(d, bodies=bodies, joints=joints, home=(), configurations=())
        try:
            bare = type(robot)(other)
        except ModelError as error:
            raise ModelError(
                f"joints {quoted(names)} cannot all be given: with those that must stand in the tree they close a loop among themselves, "
                f"so that their coordinates depend on each other ({error})"
            ) from None
        self.of: LoopFunctions = robot
        self.robot: Any = bare
        self.same_tree = set(bare.joints) == set(robot.joints)
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
        return _in_order(self.robot, self.of.joint_states(q, time=time).q, "q_slice")

    def back(self, there: Array, near: Any = None, time: Any = None, held: tuple[str, ...] = ()) -> Array:
        """Configurations of the other one as those of the mechanism.

        Angles are those nearest to `near`, or to where a search without it starts, that limits allow; those of held joints stay.
        """
        unsound = np.asarray(np.isnan(there).any(axis=-1))
        sound = np.where(unsound[..., None], self.robot.neutral(), there)
        guess = near if isinstance(near, Mapping) else {}
        guess = coordinates(self.of, {name: x for name, x in guess.items() if name in self.of.joints}, many=True)
        start = start_near(self.of, near, guess, time, there.shape[:-1])
        of_joints = self.robot.joint_states(sound, near=self._meant(start, sound), time=time).q
        q = self._with_nan(of_joints, "q_slice", unsound)
        return closing(self.of, (), held).unwound(q, start)

    def start(self, near: Any, time: Any) -> Any:
        """Where a search starts: joints by name as they are, configurations in the other coordinates."""
        if near is None or isinstance(near, Mapping):
            return near
        return self.there(start_near(self.of, near, {}, None, np.shape(near)[:-1]), time)

    def path_back(self, path: Array, near: Any, time: Any) -> Array:
        """A path (n, nq) of the other one, each of whose configurations is told near the one before."""
        times = [None] * len(path) if time is None else np.asarray(time)
        configurations = []
        for there, when in zip(path, times, strict=True):
            near = self.back(there, near, when)
            configurations.append(near)
        return np.array(configurations)

    def velocity_there(self, q: ArrayLike, v: ArrayLike, time: Any = None) -> Array:
        """Velocities (..., nv) in the other coordinates."""
        return _in_order(self.robot, self.of.joint_states(q, v, time=time).v, "v_slice")

    def acceleration_there(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, time: Any = None) -> Array:
        """Accelerations (..., nv) in the other coordinates."""
        return _in_order(self.robot, self.of.joint_states(q, v, a, time=time).a, "v_slice")

    def rates_back(
        self,
        answer: Any,
        q: ArrayLike,
        there: Array,
        v: Array | None = None,
        time: Any = None,
        out: Array | None = None,
    ) -> Any:
        """Velocities (..., nv) of the other one, or where its own v is given accelerations, as those of the mechanism at q; with their status."""
        x, state = answer if isinstance(answer, tuple) else (answer, None)
        unsound = np.asarray(np.isnan(x).any(axis=-1))
        x, near = np.where(unsound[..., None], 0.0, x), self._meant(q, there)
        if v is None:
            of_joints = self.robot.joint_states(there, x, near=near, time=time).v
        else:
            of_joints = self.robot.joint_states(there, v, x, near=near, time=time).a
        x = into(out, self._with_nan(of_joints, "v_slice", unsound))
        return x if state is None else (x, state)

    def _meant(self, near: ArrayLike, there: Array) -> dict[str, Array]:
        """The coordinates near which those of the mechanism's own tree are, joint by joint."""
        q = np.broadcast_to(near, (*there.shape[:-1], self.of.nq))
        return {name: q[..., self.of.joint(name).q_slice] for name in self.of.joints}

    def _with_nan(self, of_joints: Mapping[str, Array], place: str, unsound: NDArray[np.bool_]) -> Array:
        values = _in_order(self.of, of_joints, place)
        values[unsound] = np.nan
        return values


def recut(robot: LoopFunctions, *by_joint: Any) -> Recut | None:
    """With the joints in the tree that these mappings name; None where they are there."""
    names = _names(robot, *by_joint)
    if not any(robot.joint(name).closes_loop for name in names):
        return None
    return _with_in_tree(robot, names)


def searched(robot: LoopFunctions, *by_joint: Any, near: Any = None) -> tuple[Recut | None, Any]:
    """The tree in whose coordinates configurations are looked for, None where it is the mechanism's; and `near`.

    It has the joints that these mappings name, and of those that are guessed in `near` as many as do not close a loop among themselves. What
    is found from afar depends on the tree: so this one depends on what is asked, and not on which joints happen to close the loops.
    """
    names = _names(robot, *by_joint)
    if not robot.constraints or robot._asks_for_rows:
        return recut(robot, *by_joint, near if isinstance(near, Mapping) else None), near
    if isinstance(near, Mapping):
        fitting = _fitting(robot, (*_needed(robot), *names), _names(robot, near))
        near = {name: x for name, x in near.items() if name in fitting or name not in robot._joints}
        names = tuple(sorted({*names, *_names(robot, near)}))
    try:
        tree = _with_in_tree(robot, names)
    except ModelError:  # some kinds of joints cannot close a loop, and stand in the tree by a hint only
        return recut(robot, *by_joint), near
    return (None if tree.same_tree else tree), near


def _names(robot: LoopFunctions, *by_joint: Any) -> tuple[str, ...]:
    """Joints that these mappings name, by name."""
    return tuple(sorted({x for of in by_joint if isinstance(of, Mapping) for x in of if x in robot._joints}))


def _needed(robot: LoopFunctions) -> list[str]:
    """Joints whose coordinates relations are about: they stand in any tree."""
    return sorted({name for c in robot.description.constraints for name, _ in c._core_terms().get("coordinates", ())})


def _fitting(robot: LoopFunctions, kept: Iterable[str], more: Iterable[str]) -> set[str]:
    """Of more joints, those that close no loop with the kept ones and those before them."""
    group: dict[str, str] = {}

    def root(body: str) -> str:
        while body in group:
            body = group[body]
        return body

    def ties(name: str) -> bool:
        ends = root(robot.joint(name).parent), root(robot.joint(name).child)
        if ends[0] != ends[1]:
            group[ends[0]] = ends[1]
        return ends[0] != ends[1]

    kept = {name for name in kept if ties(name)}
    return {name for name in more if name in kept or ties(name)}


def _with_in_tree(robot: LoopFunctions, names: tuple[str, ...]) -> Recut:
    return prepared(robot, ("tree", *names), lambda: Recut(robot, names))


def _in_order(robot: LoopFunctions, of_joints: Mapping[str, Array], place: str) -> Array:
    """Those of the tree's joints as they stand in q ("q_slice"), or in v."""
    joints = sorted((robot.joint(name) for name in robot.joints), key=lambda joint: getattr(joint, place).start)
    return np.concatenate([of_joints[joint.name] for joint in joints], axis=-1)
