"""What the joints of the tree carry while loops are closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, real_rows
from .loop_operations import LoopFunctions
from .options import ReactionOptions, shows_options

if TYPE_CHECKING:
    from typing import Unpack


class Reactions(LoopFunctions):
    """Wrenches of all joints, whether they close loops or not."""

    @shows_options
    def reactions(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, multipliers: ArrayLike | None = None, time: ArrayLike | None = None,
        **options: Unpack[ReactionOptions],
    ) -> Any:  # fmt: skip
        """Wrench that every joint of the tree, fixed ones too, exerts on the body that it carries (the one farther from the ground).

        Takes what :meth:`inverse_dynamics` takes. Returns joint name -> (..., 6) [moment; force] in the joint's frame on that body,
        at its origin: van der Merwe's f (4.23, 4.30). Its part along the motion space is what drives the joint (motor, friction,
        spring and armature together); :meth:`constraint_forces` gives the rest.

        Parameters
        ----------
        multipliers : (..., nc) what the loops carry in this motion, as :meth:`forward_dynamics` and :meth:`actuator_efforts` return it;
            default: nothing, as if every loop were open
        time : (...) [s], where motion is prescribed

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> pendulum = sarrus.mechanisms.pendulum(mass=2.0, length=0.5)
        >>> pendulum.reactions([0.0], [0.0], [0.0])["pivot"].round(3).tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 19.62]

        All pins of a four-bar that is let go, those of its tree and the one that closes it:

        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q, v, tau = fourbar.assemble(), np.zeros(3), np.zeros(3)
        >>> a, loops = fourbar.forward_dynamics(q, v, tau, return_reactions=True)
        >>> pins = fourbar.reactions(q, v, a, multipliers=loops.multipliers) | loops.wrenches
        >>> sorted(pins) == sorted(joint.name for joint in fourbar.description.joints)
        True
        """
        answer = super().reactions(q, v, a, **options)
        if multipliers is None or self.nc == 0:
            return answer
        found, status = answer if options.get("return_status") else (answer, None)
        closed = self._with_loops(q, multipliers, time, found)
        return closed if status is None else (closed, status)

    def _with_loops(
        self, q: ArrayLike, multipliers: ArrayLike, time: ArrayLike | None, opened: dict[str, Array]
    ) -> dict[str, Array]:
        """A joint carries, besides, what the loops do not carry of the bodies beyond it: their wrenches on these, negative."""
        multipliers = real_rows("multipliers", multipliers, self.nc, np.shape(q)[:-1], finite=False)
        carried = self.loop_wrenches(q, multipliers, time=time, return_status=True)[0]
        through = carried_by_tree(self, q, carried)
        return {name: wrench - through[name] if name in through else wrench for name, wrench in opened.items()}


def carried_by_tree(robot: LoopFunctions, q: ArrayLike, wrenches: Array) -> dict[str, Array]:
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
        wrench = _in_world(placed[child] @ constraint.spec.at_child.matrix, wrenches[..., k, :])
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
            through[joint.name] = _in_frame(placed[body] @ at.matrix, beyond[joint.name])
    return through


def _in_world(pose: Array, wrench: Array) -> Array:
    """From a frame, at its origin, to the world's axes, about the world's origin."""
    moment, force = (
        np.einsum("...ij,...j->...i", pose[..., :3, :3], part) for part in (wrench[..., :3], wrench[..., 3:])
    )
    return np.concatenate([moment + np.cross(pose[..., :3, 3], force), force], axis=-1)


def _in_frame(pose: Array, wrench: Array) -> Array:
    moment, force = wrench[..., :3] - np.cross(pose[..., :3, 3], wrench[..., 3:]), wrench[..., 3:]
    return np.concatenate([np.einsum("...ji,...j->...i", pose[..., :3, :3], part) for part in (moment, force)], axis=-1)
