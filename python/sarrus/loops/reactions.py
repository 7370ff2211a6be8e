"""What the joints of the tree carry while loops are closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..description import DistanceSpec, JointSpec, RollingSpec
from ..errors import ShapeError
from ..spatial import Transform
from ..state import Array
from .functions import LoopFunctions


class Reactions(LoopFunctions):
    """Wrenches of all joints, whether they close loops or not."""

    def reactions(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        multipliers: ArrayLike | None = None,
        wrenches: Mapping[str, ArrayLike] | None = None,
        time: ArrayLike | None = None,
        base_velocity: ArrayLike | None = None,
        base_acceleration: ArrayLike | None = None,
        threads: int = 1,
        return_status: bool = False,
    ) -> Any:
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
        known: dict[str, Any] = {
            "wrenches": wrenches, "base_velocity": base_velocity, "base_acceleration": base_acceleration, "threads": threads
        }  # fmt: skip
        answer = super().reactions(q, v, a, return_status=return_status, **known)
        if multipliers is None or self.nc == 0:
            return answer
        found, status = answer if return_status else (answer, None)
        closed = self._with_loops(q, multipliers, time, found)
        return closed if status is None else (closed, status)

    def _with_loops(
        self, q: ArrayLike, multipliers: ArrayLike, time: ArrayLike | None, opened: dict[str, Array]
    ) -> dict[str, Array]:
        """A joint carries, besides, what the loops do not carry of the bodies beyond it: their wrenches on these, negative."""
        if np.shape(multipliers)[-1:] != (self.nc,):
            raise ShapeError(f"multipliers has shape {np.shape(multipliers)}; its last axis must be nc = {self.nc}")
        carried = self.loop_wrenches(q, multipliers, time=time, return_status=True)[0]
        placed = {body: self.pose(q, body, return_status=True)[0] for body in self.bodies}
        placed["ground"] = np.eye(4)
        of_tree = [self._joints[name] for name in opened]
        specs = {spec.name: spec for spec in self.description.joints}
        below = {(j.parent if j.reversed else j.child): j for j in of_tree}

        on: dict[
            str, Array
        ] = {}  # per joint: the loops' wrenches on all that is beyond it, [moment; force] about the world's origin
        for k, constraint in enumerate(self._constraints.values()):
            if not constraint.bodies:
                continue
            parent, child = constraint.bodies
            wrench = _in_world(placed[child] @ _place_on_child(constraint.spec).matrix, carried[..., k, :])
            for body, sign in ((child, 1.0), (parent, -1.0)):
                while body in below:
                    joint = below[body]
                    on[joint.name] = on.get(joint.name, 0.0) + sign * wrench
                    body = joint.child if joint.reversed else joint.parent
        closed = dict(opened)
        for body, joint in below.items():
            if joint.name in on:
                spec = specs[joint.name]
                frame = placed[body] @ (spec.at_parent if joint.reversed else spec.at_child).matrix
                closed[joint.name] = opened[joint.name] - _in_frame(frame, on[joint.name])
        return closed


def _place_on_child(spec: Any) -> Transform:
    if isinstance(spec, JointSpec):
        return spec.at_child
    point = (
        spec.second[1]
        if isinstance(spec, DistanceSpec)
        else spec.center
        if isinstance(spec, RollingSpec)
        else (0.0, 0.0, 0.0)
    )
    return Transform(translation=np.array(point))


def _in_world(pose: Array, wrench: Array) -> Array:
    """From a frame, at its origin, to the world's axes, about the world's origin."""
    moment, force = (
        np.einsum("...ij,...j->...i", pose[..., :3, :3], part) for part in (wrench[..., :3], wrench[..., 3:])
    )
    return np.concatenate([moment + np.cross(pose[..., :3, 3], force), force], axis=-1)


def _in_frame(pose: Array, wrench: Array) -> Array:
    moment, force = wrench[..., :3] - np.cross(pose[..., :3, 3], wrench[..., 3:]), wrench[..., 3:]
    return np.concatenate([np.einsum("...ji,...j->...i", pose[..., :3, :3], part) for part in (moment, force)], axis=-1)
