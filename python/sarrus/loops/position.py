"""Configurations that close all loops: found from anywhere, counted, led to a target, followed along an input.

The search (:mod:`.search`) takes damped steps of least motion from many starts. Targets of frames are one more loop each, closed by a
joint from the ground to where the frame is to be. A branch (:mod:`.branch`) is followed by predictions along its tangent, each corrected
by the same steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, checked_count, real_array
from ..description import Description, FrameSpec, JointSpec
from ..errors import AssemblyError, BranchEnd, ModelError, ShapeError, StateError, raise_no_such_name
from ..joints import Fixed, Spherical
from ..spatial import Rotation, Transform
from .branch import Branch, checked_steps
from .functions import LoopFunctions
from .given import JointCoordinates, coordinates, paths, quoted, start_near
from .search import SAME, TOLERANCE, Search, checked_tolerance, open_by, sought, why_open


class Position(LoopFunctions):
    """Closing the loops of a mechanism, and moving while they stay closed."""

    def assemble(
        self,
        near: ArrayLike | JointCoordinates | None = None,
        fixed: JointCoordinates | None = None,
        *,
        time: float | None = None,
        starts: int = 60,
        seed: int = 0,
        tolerance: float = TOLERANCE,
    ) -> Array:
        """A configuration (nq,) that closes every loop, near another one.

        Parameters
        ----------
        near : where to start: (nq,), or joints to coordinates, which are kept if the loops can close with them and a first guess if
            not; default, and for joints that are not named: the home of the description, or neutral
        fixed : joints to coordinates that they must have [rad, m, quaternions (x, y, z, w)]
        time : [s], where motion is prescribed
        starts : how many other starts are tried if that one leads nowhere, or out of joint limits; the nearest answer is taken, one out
            of limits only if none within them was found
        seed : of these starts; equal seeds give equal answers
        tolerance : residual up to which a loop counts as closed, in radians and in mean sizes of the bodies. It is for parts that do
            not fit exactly: where they do, loops are closed to rounding, below which (1e-13) it cannot be

        Raises
        ------
        AssemblyError
            The loops cannot close, or not with what is fixed or prescribed, or no start led there: which one stays open, and how far.
        ModelError, NameNotFoundError
            A joint that closes a loop has no coordinates; a joint is not known.
        ShapeError, StateError
            A wrong number of coordinates; some that are not finite, or no rotation.

        Examples
        --------
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.assemble(fixed={"motor": 0.5})
        >>> float(q[0]), bool(abs(fourbar.loop_residual(q)).max() < 1e-14)
        (0.5, True)
        """
        search, q, left = sought(self, near, fixed, time, starts, seed, tolerance)
        if left > tolerance:
            raise AssemblyError(why_open(search, q))
        return q

    def assembly_modes(
        self,
        fixed: JointCoordinates | None = None,
        *,
        time: float | None = None,
        attempts: int = 200,
        seed: int = 0,
        tolerance: float = TOLERANCE,
    ) -> list[Array]:
        """All configurations found in which the loops close with some joints fixed, one (nq,) for each way in which the bodies can lie.

        From as many starts as `attempts` says: there may be more. The one nearest to the home comes first; none found, an empty list.
        Joint limits are not asked for. The other arguments are those of :meth:`assemble`.

        Raises
        ------
        ModelError
            With these joints fixed the mechanism can still move: there is no end of configurations. And as :meth:`assemble`.

        Examples
        --------
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> [float(fourbar.pose(q, "rocker")[0, 0].round(3)) for q in fourbar.assembly_modes({"motor": 0.5})]
        [-0.329, 0.237]
        """
        attempts, tolerance = checked_count("attempts", attempts, most=10**6), checked_tolerance(tolerance)
        held = coordinates(self, fixed)
        search = Search(self, start_near(self, None, held, time), held, time, seed)
        q, left = search.close(search.starts(0, attempts))
        q = search.unwound(q[left <= tolerance])
        if len(q) == 0:
            return []
        freedom = min(search.freedom(one) for one in q)
        if freedom > 0:
            raise ModelError(
                f"with {quoted(held) or 'nothing'} fixed {freedom} degrees of freedom are left, and so no end of configurations: "
                "fix more joints"
            )
        # the nearest first; digits that rounding decides must not decide on the order
        q = q[np.lexsort([*q.T.round(6), search.distance(q).round(6)])]
        looks = search.appearance(q)
        modes: list[int] = []
        for k, look in enumerate(looks):
            if np.abs(looks[modes] - look).max(axis=1, initial=0.0).min(initial=np.inf) > SAME:
                modes.append(k)
        return [q[k].copy() for k in modes]

    def inverse_kinematics(
        self,
        targets: Mapping[str, ArrayLike | Transform],
        near: ArrayLike | JointCoordinates | None = None,
        fixed: JointCoordinates | None = None,
        *,
        time: float | None = None,
        starts: int = 60,
        seed: int = 0,
        tolerance: float = TOLERANCE,
    ) -> Array:
        """A configuration (nq,) in which frames are where they should be, and all loops are closed.

        Parameters
        ----------
        targets : frame to its pose in the world, (4, 4) or a Transform, or to the point (3,) where its origin is to be [m]; or joint to
            coordinates, as in `fixed`. A name that a frame and a joint share is the frame's
        near, fixed, time, starts, seed, tolerance : as :meth:`assemble`. What targets and loops leave free moves as little as it can

        Raises
        ------
        AssemblyError
            A target is out of reach: how far away the frame stays. And as :meth:`assemble`.

        Examples
        --------
        >>> import sarrus
        >>> robot = sarrus.mechanisms.delta()
        >>> q = robot.inverse_kinematics({"platform": (0.05, 0.0, -0.5)})
        >>> [round(float(q[robot.joint(name).q_slice][0]), 4) for name in robot.actuated]
        [0.139, 0.3476, 0.3476]
        """
        if not isinstance(targets, Mapping):
            raise TypeError(f"targets are a mapping of frames or joints to where they are to be; got {targets!r}")
        aims = {name: _target(self, name, value) for name, value in targets.items() if name in self.frames}
        held: dict[str, Any] = {**coordinates(self, fixed)}
        for name, value in targets.items():
            if name in aims:
                continue
            if name not in self._joints:
                raise_no_such_name("frame or joint", name, (*self.frames, *self.joints))
            if isinstance(value, Transform):
                raise ShapeError(f"'{name}' is a joint: its target is coordinates, not a Transform")
            held[name] = value
        # a frame that is held somewhere closes one more loop there
        led = type(self)(_with_targets(self, aims))
        search, q, left = sought(led, near, held, time, starts, seed, tolerance)
        if left > tolerance:
            raise AssemblyError(_why_out_of_reach(search, q, aims))
        return q

    def follow(
        self,
        inputs: JointCoordinates,
        near: ArrayLike | JointCoordinates | None = None,
        *,
        time: ArrayLike | None = None,
        max_step: float = 0.2,
        min_step: float = 1e-7,
        tolerance: float = TOLERANCE,
    ) -> Array:
        """Configurations (n, nq) along prescribed inputs, on one branch, the loops closed in each.

        From one input to the next steps go along the tangent and then back onto the loops; a step after which they would have to go far
        back is halved. Through positions where branches meet the motion goes straight on. What inputs and loops leave free moves as
        little as it can.

        Parameters
        ----------
        inputs : joint to the coordinates that it is to go through, (n,) or (n, nq of the joint); between them it moves evenly
        near : as :meth:`assemble`, which closes the loops at the first inputs
        time : (n,) [s], where motion is prescribed
        max_step : largest motion of a joint in one step [rad, mean sizes of the bodies], at least min_step
        min_step : part of the way from one input to the next below which the branch counts as ended, more than rounding
        tolerance : as :meth:`assemble`

        Raises
        ------
        AssemblyError
            The loops do not close at the first inputs; or the branch ends, as at a dead point. It is then an errors.BranchEnd: its
            `path` (k, nq) holds the configurations at the inputs up to there, and `last` (nq,) the one where the branch ends.
        ModelError, NameNotFoundError, ShapeError, StateError
            As :meth:`assemble`.

        Examples
        --------
        The coupler's middle of a four-bar goes round once:

        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.follow({"motor": np.linspace(0.0, 2 * np.pi, 91)})
        >>> curve = fourbar.pose(q, "coupler") @ (0.55, 0.0, 0.0, 1.0)
        >>> bool(np.allclose(curve[0], curve[-1])), curve[:, 0].min().round(3).item(), curve[:, 0].max().round(3).item()
        (True, 0.005, 0.784)

        Led by its rocker it goes until crank and coupler are in line:

        >>> try:
        ...     fourbar.follow({"pivot": np.linspace(-1.6, -1.0, 31)})
        ... except sarrus.AssemblyError as end:
        ...     print(end.path.shape, end.last[fourbar.joint("pivot").q_slice].round(3))
        (14, 3) [-1.324]
        """
        branch_steps = checked_steps(max_step, min_step)
        ways, times = paths(self, inputs, time)
        first = {name: way[0] for name, way in ways.items()}
        q = self.assemble(near, first, time=float(times[0]), tolerance=tolerance)
        branch = Branch(Search(self, q, first, float(times[0]), 0), *branch_steps, tolerance)
        path = [q]
        for k in range(1, len(times)):
            goal = path[-1].copy()
            for name, way in ways.items():
                goal[self.joint(name).q_slice] = way[k]
            q, part = branch.advance(path[-1], goal, times[k - 1], times[k])
            if part < 1.0:
                raise BranchEnd(f"the branch ends between inputs {k - 1} and {k}{branch.why(q)}", np.array(path), q)
            path.append(q)
        return np.array(path)


def _target(robot: LoopFunctions, frame: str, value: ArrayLike | Transform) -> tuple[FrameSpec, Transform, bool]:
    """The frame, where it is to be, and whether it is to be turned so too."""
    specs = {spec.name: spec for spec in robot.description.frames}
    spec = specs.get(frame, FrameSpec(frame, frame, Transform()))
    if spec.body == "ground":
        raise ModelError(f"frame '{frame}' is fixed to the ground: it cannot be led anywhere")
    if isinstance(value, Transform):
        return spec, value, True
    where = real_array(f"the target of frame '{frame}'", value)
    if where.shape not in ((3,), (4, 4)):
        raise ShapeError(f"the target of frame '{frame}' is a pose (4, 4) or a point (3,); got shape {where.shape}")
    if not np.isfinite(where).all():
        raise StateError(f"the target of frame '{frame}' must be finite; got {where.tolist()}")
    return spec, Transform(translation=where) if where.ndim == 1 else Transform.from_matrix(where), where.ndim == 2


def _with_targets(robot: LoopFunctions, aims: Mapping[str, tuple[FrameSpec, Transform, bool]]) -> Description:
    """The mechanism on the same tree, with joints from the ground that hold frames where they are to be."""
    d = robot.description
    joints = [
        dataclasses.replace(j, tree=not robot.joint(j.name).closes_loop, loop=robot.joint(j.name).closes_loop)
        for j in d.joints
    ]
    for name, (frame, place, turned) in aims.items():
        joint = Fixed() if turned else Spherical()
        joints.append(JointSpec(_aim(name), joint, "ground", frame.body, place, frame.placement, False, loop=True))
    return dataclasses.replace(d, joints=tuple(joints))


def _aim(frame: str) -> str:
    """Name of the joint that holds a frame."""
    return f"target of {frame}"


def _why_out_of_reach(search: Search, q: Array, aims: Mapping[str, tuple[FrameSpec, Transform, bool]]) -> str:
    """How far frames stay from their targets when the loops are closed."""
    robot = search.robot
    rows = np.arange(robot.nc)
    of_aims = np.concatenate([np.zeros(0, int), *(rows[robot.constraint(_aim(name)).rows] for name in aims)])
    # loops before targets
    search.weights = np.where(np.isin(rows, of_aims), 1.0, 1e4)[search.loops.holonomic]
    q = search.close(q[None])[0][0]
    loops = {name: off for name, off in open_by(search, q).items() if name not in map(_aim, aims)}
    if not aims or max(loops.values(), default=0.0) > 1e-6:
        return why_open(search, q)
    texts = []
    for name, (_, place, turned) in aims.items():
        pose = robot.pose(q, name)
        text = f"frame '{name}' stays {np.linalg.norm(pose[:3, 3] - place.translation):.3g} m"
        if turned:
            text += f" and {np.linalg.norm(Rotation(place.rotation.T @ pose[:3, :3]).log()):.3g} rad"
        texts.append(f"{text} away")
    fixed = f" while {quoted(search.held)} are held" if search.held else ""
    return f"no configuration was found that leads all frames to their targets{fixed}: at best, with loops closed, {'; '.join(texts)}"
