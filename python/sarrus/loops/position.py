"""Configurations that close all loops: found from anywhere, counted, led to a target, followed along an input.

With phi the residual of all loops, J its derivative and x a velocity, in units in which rotations and displacements compare (those of
:mod:`.mobility`), the steps are Levenberg and Marquardt's on the manifold of configurations,

  x = argmin |J x + phi|^2 + mu |x|^2,   q <- integrate(q, x),   mu in proportion to |phi|,

which tend to Newton's steps of least motion. They converge quadratically also where rows of J depend on one another, as those of
planar loops always do, and where solutions are not isolated (Fan and Yuan, Computing 74, 2005). Joints that are held do not take part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..description import CouplerSpec, Description, FrameSpec, JointSpec
from ..errors import AssemblyError, ModelError, ShapeError, StateError, raise_no_such_name
from ..joints import Fixed, Spherical
from ..spatial import Rotation, Transform
from ..state import Array, Joint
from .functions import LoopFunctions
from .mobility import _Loops

Coordinates = Mapping[str, ArrayLike]

TOLERANCE = 1e-10  # residual up to which a loop counts as closed, unless the caller knows better
SOLVED = 1e-13  # where damped steps end; a few undamped ones take the rest
NEGLIGIBLE = 1e-6  # relative singular values below it are left alone by undamped steps
LONGEST = 0.5  # step [rad, sizes]: from farther away they would lead anywhere
STUCK = 1e8  # damping at which a start has come to its end
SAME = 1e-5  # poses that differ by less are one assembly mode
ASIDE = 0.1  # how far a prediction may miss the branch, relative to its length
TURN = 2.0 * np.pi


class BranchEnd(AssemblyError):
    """The branch that :meth:`~sarrus.Mechanism.follow` went along ends before the inputs do.

    Attributes
    ----------
    path : (k, nq) configurations at the inputs that were reached
    last : (nq,) where the branch ends
    """

    def __init__(self, message: str, path: Array, last: Array) -> None:
        super().__init__(message)
        self.path, self.last = path, last

    def __reduce__(self) -> tuple[type[BranchEnd], tuple[str, Array, Array]]:
        return type(self), (str(self), self.path, self.last)


class Position(LoopFunctions):
    """Closing the loops of a mechanism, and moving while they stay closed."""

    def assemble(
        self,
        near: ArrayLike | Coordinates | None = None,
        fixed: Coordinates | None = None,
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
        starts : how many other starts are tried if that one leads nowhere, or out of joint limits; the nearest answer is taken
        seed : of these starts; equal seeds give equal answers
        tolerance : residual up to which a loop counts as closed, in radians and in mean sizes of the bodies. It is for parts that do
            not fit exactly: where they do, loops are closed to rounding

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
        search, q, left = _sought(self, near, fixed, time, starts, seed, tolerance)
        if left > tolerance:
            raise AssemblyError(_why_open(search, q))
        return q

    def assembly_modes(
        self,
        fixed: Coordinates | None = None,
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
        [0.183, -0.611]
        """
        held = _coordinates(self, fixed)
        search = _Search(self, _start(self, None, held), held, time, seed)
        q, left = search.close(search.starts(0, attempts))
        q = search.unwound(q[left <= tolerance])
        if len(q) == 0:
            return []
        freedom = min(search.freedom(one) for one in q)
        if freedom > 0:
            raise ModelError(
                f"with {_listed(held) or 'nothing'} fixed {freedom} degrees of freedom are left, and so no end of configurations: "
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
        near: ArrayLike | Coordinates | None = None,
        fixed: Coordinates | None = None,
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
        [0.1585, 0.293, 0.293]
        """
        aims = {name: _target(self, name, value) for name, value in targets.items() if name in self.frames}
        joints = {name: value for name, value in targets.items() if name not in aims}
        for name in joints:
            if name not in self._joints:
                raise_no_such_name("frame or joint", name, (*self.frames, *self.joints))
        held = {**(fixed or {}), **joints}  # type: ignore[dict-item]
        # a frame that is held somewhere closes one more loop there
        led = type(self)(_with_targets(self, aims))
        search, q, left = _sought(led, near, held, time, starts, seed, tolerance)
        if left > tolerance:
            raise AssemblyError(_why_out_of_reach(search, q, aims))
        return q

    def follow(
        self,
        inputs: Coordinates,
        near: ArrayLike | Coordinates | None = None,
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
        max_step : largest motion of a joint in one step [rad, mean sizes of the bodies]
        min_step : part of the way from one input to the next below which the branch counts as ended
        tolerance : as :meth:`assemble`

        Raises
        ------
        AssemblyError
            The loops do not close at the first inputs; or the branch ends, as at a dead point. It is then a BranchEnd, whose `path`
            (k, nq) holds the configurations up to there, and `last` the end.
        ModelError, NameNotFoundError, ShapeError, StateError
            As :meth:`assemble`.

        Examples
        --------
        The coupler's middle of a four-bar goes round once:

        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> q = fourbar.follow({"motor": np.linspace(0.0, 2 * np.pi, 91)})
        >>> curve = fourbar.pose(q, "coupler") @ (0.55, 0.0, 0.0, 1.0)
        >>> bool(np.allclose(curve[0], curve[-1])), curve[:, 0].min().round(3), curve[:, 0].max().round(3)
        (True, 0.029, 0.785)
        """
        ways, times = _ways(self, inputs, time)
        first = {name: way[0] for name, way in ways.items()}
        q = self.assemble(near, first, time=float(times[0]), tolerance=tolerance)
        branch = _Branch(_Search(self, q, first, float(times[0]), 0), max_step, min_step, tolerance)
        path = [q]
        for k in range(1, len(times)):
            goal = path[-1].copy()
            for name, way in ways.items():
                goal[self.joint(name).q_slice] = way[k]
            q, part = branch.advance(path[-1], goal, times[k - 1], times[k])
            if part < 1.0:
                reached = ", ".join(
                    f"{name} = {np.array2string(q[self.joint(name).q_slice], precision=6)[1:-1].strip()}"
                    for name in ways
                )
                raise BranchEnd(
                    f"the branch ends between inputs {k - 1} and {k}{', at ' * bool(reached)}{reached}: {branch.why(q)}",
                    np.array(path),
                    q,
                )
            path.append(q)
        return np.array(path)


# ---- the search ----------------------------------------------------------------------------------------------------------------------


class _Search:
    """Ways from many starts to configurations that close the loops, of which one start is given."""

    def __init__(self, robot: LoopFunctions, start: Array, held: Iterable[str], time: float | None, seed: int) -> None:
        self.robot, self.start, self.held = robot, start, tuple(held)
        self.rng = np.random.default_rng(seed)
        # sizes of rows are asked for away from the start, which may be as special as a rod of no length
        away = robot.integrate(start, 0.1 * self.rng.normal(size=robot.nv))
        self.loops = _Loops(robot, away, time)
        self.weights = np.ones(int(self.loops.holonomic.sum()))
        joints = [robot.joint(name) for name in robot.joints]
        driven = {
            name for spec in robot.description.constraints if isinstance(spec, CouplerSpec) for name, *_ in spec.terms
        }
        self.moving = np.concatenate([np.zeros(0, bool), *(np.full(j.nv, j.name not in self.held) for j in joints)])
        self.low, self.high = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
        self.whole_turns = np.zeros(robot.nq, bool)
        for joint in joints:
            if joint.name in self.held:
                continue
            if joint.limits is not None:
                self.low[joint.q_slice], self.high[joint.q_slice] = joint.limits
            if joint.nq == joint.nv and joint.kind != "Helical" and joint.name not in driven:
                self.whole_turns[joint.q_slice] = self.loops.column_scale[joint.v_slice] == 1.0

    def residual(self, q: Array) -> Array:
        """Weighted residuals (k, rows) of what holds positions."""
        return self.weights * self.loops.residual(q)[:, self.loops.holonomic]

    def jacobian(self, q: Array) -> Array:
        """Its derivative (k, rows, nv) by what may move."""
        J = self.weights[:, None] * self.loops.jacobian(q)[:, self.loops.holonomic] * self.moving
        return np.where(np.isfinite(J), J, 0.0)

    def close(self, q: Array, steps: int = 100, damping: float = 1.0) -> tuple[Array, Array]:
        """Configurations (k, nq) on from q that close the loops as well as they can, and the residuals (k,) that are left."""
        q, nv, dampings = q.copy(), self.robot.nv, np.full(len(q), damping)
        phi = self.residual(q)
        left = _size(phi)
        for _ in range(steps):
            far = np.flatnonzero((left > SOLVED) & (left < np.inf) & (dampings < STUCK))
            if far.size == 0:
                break
            held = np.sqrt(dampings[far] * left[far])[:, None, None] * np.eye(nv, nv + 1)
            # least squares by the triangle alone: the right-hand side goes along as the last column
            both = np.concatenate([self.jacobian(q[far]), -phi[far, :, None]], axis=2)
            R = np.asarray(np.linalg.qr(np.concatenate([both, held], axis=1), mode="r"))
            better = self._try(q, phi, left, far, np.linalg.solve(R[:, :nv, :nv], R[:, :nv, nv:])[..., 0])
            dampings[far] = np.clip(dampings[far] * np.where(better, 0.3, 4.0), 1e-4, 2 * STUCK)
        for _ in range(3):
            near = np.flatnonzero((left < 1e3 * SOLVED) & (left > 0.0))
            if near.size == 0:
                break
            x = -(np.linalg.pinv(self.jacobian(q[near]), NEGLIGIBLE) @ phi[near, :, None])[..., 0]
            self._try(q, phi, left, near, x)
        return q, left

    def _try(self, q: Array, phi: Array, left: Array, which: Array, x: Array) -> Array:
        """Take the steps x (k, nv) that bring something, and say which."""
        x = x * np.minimum(1.0, LONGEST / np.maximum(np.abs(x).max(axis=1, initial=0.0), LONGEST))[:, None]
        there = self.loops.step(q[which], x)
        phi_there = self.residual(there)
        left_there = _size(phi_there)
        better = left_there < left[which]
        went = which[better]
        q[went], phi[went], left[went] = there[better], phi_there[better], left_there[better]
        return better

    def starts(self, first: int, count: int) -> Array:
        """Some of an endless row of starts: the one that was given, then others about it, a little and all the way round."""
        spread = (
            np.array([0.1, 0.3, 1.0])[np.arange(first, first + count) % 3, None]
            * (np.arange(first, first + count) > 0)[:, None]
        )
        reach = np.where(self.loops.column_scale == 1.0, np.pi, 1.0) * self.moving
        x = spread * reach * self.rng.uniform(-1.0, 1.0, (count, self.robot.nv))
        q = self.loops.step(np.broadcast_to(self.start, (count, self.robot.nq)), x)
        return np.where(spread > 0.0, np.clip(q, self.low, self.high), self.start)

    def nearest(self, starts: int, tolerance: float) -> tuple[Array, float]:
        """The configuration nearest to the start, of the first found, within joint limits if possible; or the one that is least open."""
        ends, lefts = np.empty((0, self.robot.nq)), np.empty(0)
        while len(lefts) <= starts:
            tried = len(lefts)
            q, left = self.close(self.starts(tried, min(1 + 3 * tried, starts + 1 - tried)))
            ends, lefts = np.concatenate([ends, self.unwound(q)]), np.concatenate([lefts, left])
            if ((lefts <= tolerance) & self.within(ends)).any():
                break
        closed = lefts <= tolerance
        if closed.any():
            ends, lefts = ends[closed], lefts[closed]
            best = int(np.lexsort([self.distance(ends), ~self.within(ends)])[0])
        else:
            best = int(lefts.argmin())
        return ends[best].copy(), float(lefts[best])

    def unwound(self, q: Array) -> Array:
        """The same configurations (k, nq) without needless whole turns: as near to the start as can be, or within limits."""
        q = q - self.whole_turns * TURN * np.round((q - self.start) / TURN)
        bounded = self.whole_turns & np.isfinite(self.low) & np.isfinite(self.high)
        middle = (np.where(bounded, self.low, 0.0) + np.where(bounded, self.high, 0.0)) / 2.0
        return q - (bounded & ((q < self.low) | (q > self.high))) * TURN * np.round((q - middle) / TURN)

    def within(self, q: Array) -> Array:
        """(k,) whether all joints that may move are within their limits."""
        return np.asarray(((q >= self.low - SAME) & (q <= self.high + SAME)).all(axis=1))

    def distance(self, q: Array) -> Array:
        """(k,) how far all joints are from the start."""
        return _size(self.loops.difference(self.start, q))

    def appearance(self, q: Array) -> Array:
        """(k, 12 bodies) how the bodies lie: what does not depend on the coordinates that say so."""
        poses = [self.robot.pose(q, body)[:, :3] / (1.0, 1.0, 1.0, self.loops.length) for body in self.robot.bodies]
        return np.concatenate(poses, axis=1).reshape(len(q), -1)

    def freedom(self, q: Array) -> int:
        """Degrees of freedom that the loops leave to the joints that may move."""
        s = np.linalg.svd(self.jacobian(q[None])[0], compute_uv=False)
        return int(self.moving.sum() - (s > NEGLIGIBLE * s.max(initial=0.0)).sum())


def _sought(
    robot: LoopFunctions, near: ArrayLike | Coordinates | None, fixed: Coordinates | None, time: float | None, starts: int, seed: int,
    tolerance: float,
) -> tuple[_Search, Array, float]:  # fmt: skip
    """The last search that was made, what it found and how far that is open."""
    held = _coordinates(robot, fixed)
    guess = _coordinates(robot, near) if isinstance(near, Mapping) else {}
    start = _start(robot, near, {**guess, **held})
    for kept in ({**guess, **held}, held) if guess.keys() - held.keys() else (held,):
        search = _Search(robot, start, kept, time, seed)
        q, left = search.nearest(starts, tolerance)
        if left <= tolerance:
            break
    return search, q, left


# ---- following a branch --------------------------------------------------------------------------------------------------------------


class _Branch:
    """A curve of configurations over what prescribes it, of which one is known."""

    def __init__(self, search: _Search, max_step: float, min_step: float, tolerance: float) -> None:
        self.search, self.max_step, self.min_step, self.tolerance = search, max_step, min_step, tolerance
        self.rank = 0
        self.last = np.zeros(search.robot.nv), np.ones(1)  # tangent, and the input's velocity that it belongs to

    def tangent(self, q: Array, given: Array, seconds: float) -> Array:
        """Scaled velocity along the branch with which the held joints move as given."""
        search, loops = self.search, self.search.loops
        J = loops.jacobian(q)[loops.holonomic]
        c = (loops.row_scale * search.robot.constraint_velocity(q, time=loops.time))[loops.holonomic] * seconds
        U, s, V = np.linalg.svd(J * search.moving, full_matrices=False)
        kept = s > NEGLIGIBLE * s.max(initial=0.0)
        pace = np.append(given, seconds)
        onward = np.zeros_like(given)
        if kept.sum() < self.rank:  # branches meet: straight on
            before, pace_before = self.last
            onward = before * search.moving * float(pace @ pace_before) / max(float(pace_before @ pace_before), 1e-300)
        else:
            self.rank = int(kept.sum())
        missing = c - J @ (given + onward)
        x = given + onward + V[kept].T @ ((U[:, kept].T @ missing) / s[kept])
        self.last = x, pace
        return np.asarray(x)

    def advance(self, q: Array, goal: Array, time: float, end: float) -> tuple[Array, float]:
        """The configuration in which the held joints are where they are in the goal, or where the branch ends; part of the way made."""
        search, loops = self.search, self.search.loops
        given = loops.difference(q, goal) * ~search.moving
        at_goal = np.concatenate(
            [np.zeros(0, bool), *(np.full(j.nq, j.name in search.held) for j in _tree_joints(search.robot))]
        )
        done, step = 0.0, 1.0
        while done < 1.0:
            loops.time = time + done * (end - time)
            x = self.tangent(q, given, end - time)
            fastest = float(np.abs(x).max(initial=0.0))
            step = min(step, 1.0 - done, self.max_step / max(fastest, self.max_step))
            predicted = loops.step(q, step * x)
            if last := step >= 1.0 - done:
                predicted = np.where(at_goal, goal, predicted)
            loops.time = end if last else time + (done + step) * (end - time)
            found, left = search.close(predicted[None], steps=15, damping=1e-3)
            aside = float(np.abs(loops.difference(predicted, found[0])).max(initial=0.0))
            if left[0] <= self.tolerance and aside <= ASIDE * step * fastest + self.tolerance:
                q, done, step = found[0], 1.0 if last else done + step, 2.0 * step
            elif step < self.min_step:
                break
            else:
                step /= 2.0
        return q, done

    def why(self, q: Array) -> str:
        """Why it does not go on."""
        J = self.search.jacobian(q[None])[0]
        x = np.linalg.svd(J)[2][max(self.rank - 1, 0)] if len(J) else np.zeros(self.search.robot.nv)
        slowest = float(np.linalg.norm(J @ x))
        moving = _listed(j.name for j in _tree_joints(self.search.robot) if np.abs(x[j.v_slice]).max(initial=0.0) > 0.1)
        if slowest < 0.05 and moving:
            return f"a limit position (dead point), where {moving} can move while the inputs rest"
        return "no step, however small, closes the loops"


# ---- what callers give, and what they are told ---------------------------------------------------------------------------------------


def _size(x: Array) -> Array:
    """(k,) norms of rows; what is not a number is farthest."""
    size = np.linalg.norm(x, axis=1)
    return np.where(np.isnan(size), np.inf, size)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _tree_joints(robot: LoopFunctions) -> list[Joint]:
    return [robot.joint(name) for name in robot.joints]


def _checked(robot: LoopFunctions, name: str, value: ArrayLike, count: int | None = None) -> Array:
    """Coordinates (nq,) of a joint, or (n, nq) of as many as there are if count is not None; quaternions are made unit."""
    joint = robot.joint(name)
    if joint.closes_loop:
        raise ModelError(
            f"joint '{name}' closes a loop and has no coordinates in q: add it with tree=True to make it a coordinate"
        )
    x = np.asarray(value, dtype=np.float64)
    x = x[..., None] if joint.nq == 1 and x.ndim == (0 if count is None else 1) else x
    if x.shape != ((joint.nq,) if count is None else (len(x) if x.ndim else 0, joint.nq)):
        wanted = f"({joint.nq},)" if count is None else f"(n, {joint.nq})"
        raise ShapeError(f"joint '{name}' takes {wanted} coordinates; got shape {np.shape(value)}")
    q = np.broadcast_to(robot.neutral(), (*x.shape[:-1], robot.nq)).copy()
    if not np.isfinite(x).all():
        raise StateError(f"coordinates of joint '{name}' must be finite; got {np.array2string(x, threshold=12)}")
    q[..., joint.q_slice] = x
    return np.asarray(robot.normalize(q)[..., joint.q_slice])


def _coordinates(robot: LoopFunctions, given: Coordinates | None) -> dict[str, Array]:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"joints to coordinates are a mapping; got {given!r}")
    return {name: _checked(robot, name, value) for name, value in (given or {}).items()}


def _start(robot: LoopFunctions, near: ArrayLike | Coordinates | None, given: Mapping[str, Array]) -> Array:
    """The configuration near which to look."""
    if near is None or isinstance(near, Mapping):
        q = robot.neutral()
        for name, home in robot.description.home:
            q[robot.joint(name).q_slice] = home
    else:
        if np.shape(near) != (robot.nq,):
            raise ShapeError(
                f"near has shape {np.shape(near)}; it must be one configuration, ({robot.nq},), or joints to coordinates"
            )
        q = robot.normalize(near)
    for name, value in given.items():
        q[robot.joint(name).q_slice] = value
    return q


def _ways(robot: LoopFunctions, inputs: Coordinates, time: ArrayLike | None) -> tuple[dict[str, Array], Array]:
    """Joint to (n, nq) coordinates, and times (n,)."""
    if not isinstance(inputs, Mapping):
        raise TypeError(f"inputs are a mapping of joints to coordinates; got {inputs!r}")
    ways = {name: _checked(robot, name, value, count=0) for name, value in inputs.items()}
    lengths = {name: len(way) for name, way in ways.items()} | ({} if time is None else {"time": np.size(time)})
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ShapeError(f"inputs need equally many values, at least one; got {lengths or 'none'}")
    times = np.zeros(max(lengths.values())) if time is None else np.asarray(time, dtype=np.float64)
    if times.ndim != 1 or not np.isfinite(times).all():
        raise StateError(f"time must be (n,) finite seconds; got {time!r}")
    return ways, times


def _target(robot: LoopFunctions, frame: str, value: ArrayLike | Transform) -> tuple[FrameSpec, Transform, bool]:
    """The frame, where it is to be, and whether it is to be turned so too."""
    specs = {spec.name: spec for spec in robot.description.frames}
    spec = specs.get(frame, FrameSpec(frame, frame, Transform()))
    if spec.body == "ground":
        raise ModelError(f"frame '{frame}' is fixed to the ground: it cannot be led anywhere")
    if isinstance(value, Transform):
        return spec, value, True
    where = np.asarray(value, dtype=np.float64)
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
    return f"target of {frame}"


def _open_by(search: _Search, q: Array) -> dict[str, float]:
    """How far each constraint is open, relative to the mechanism's size."""
    phi = search.loops.residual(q)
    return {name: float(np.linalg.norm(phi[search.robot.constraint(name).rows])) for name in search.robot.constraints}


def _why_open(search: _Search, q: Array) -> str:
    """What stays open in the best configuration that was found, and why."""
    robot, off = search.robot, _open_by(search, q)
    name = max(off, key=lambda name: off[name])
    constraint, phi = robot.constraint(name), robot.loop_residual(q, time=search.loops.time)
    row = constraint.rows.start + int(np.abs(search.loops.residual(q)[constraint.rows]).argmax())
    text = (
        f"no configuration was found that closes all loops: '{name}' ({constraint.kind}) stays open, at best by {off[name]:.3g} of the "
        f"mechanism's size ({constraint.row_names[row - constraint.rows.start]}: {phi[row]:.3g})"
    )
    others = [other for other in off if other != name and off[other] > 0.1 * off[name]]
    if others:
        text += f"; so do {_listed(others)}: they contradict one another, or none of them can close"
    if search.held:
        free = _Search(robot, q, (), search.loops.time, 0)
        if free.nearest(10, TOLERANCE)[1] <= TOLERANCE:
            return f"{text}; loops do close where {_listed(search.held)} may move: the coordinates fixed for them contradict the loops"
    if off[name] < 1e-3:
        return f"{text}; if parts fit no better than that, say so by tolerance="
    return f"{text}; either lengths and places do not allow it, or another start is needed: near=, starts="


def _why_out_of_reach(search: _Search, q: Array, aims: Mapping[str, tuple[FrameSpec, Transform, bool]]) -> str:
    """How far frames stay from their targets when the loops are closed."""
    robot = search.robot
    rows = np.arange(robot.nc)
    of_aims = np.concatenate([np.zeros(0, int), *(rows[robot.constraint(_aim(name)).rows] for name in aims)])
    # loops before targets
    search.weights = np.where(np.isin(rows, of_aims), 1.0, 1e4)[search.loops.holonomic]
    q = search.close(q[None])[0][0]
    loops = {name: off for name, off in _open_by(search, q).items() if name not in map(_aim, aims)}
    if not aims or max(loops.values(), default=0.0) > 1e-6:
        return _why_open(search, q)
    texts = []
    for name, (_, place, turned) in aims.items():
        pose = robot.pose(q, name)
        text = f"frame '{name}' stays {np.linalg.norm(pose[:3, 3] - place.translation):.3g} m"
        if turned:
            text += f" and {np.linalg.norm(Rotation(place.rotation.T @ pose[:3, :3]).log()):.3g} rad"
        texts.append(f"{text} away")
    fixed = f" while {_listed(search.held)} are held" if search.held else ""
    return f"no configuration was found that leads all frames to their targets{fixed}: at best, with loops closed, {'; '.join(texts)}"
