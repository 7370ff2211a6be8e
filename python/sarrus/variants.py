"""Many mechanisms of one structure, each with numbers of its own: :meth:`sarrus.Mechanism.variants`."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import Array, checked_count, checked_number, checked_times, checked_truth, common_axes, into, real_array
from .analysis.actuation import efforts
from .analysis.assembly.closing import Closing, check_frames, closing, from_each
from .analysis.assembly.multistart import TOLERANCE, checked_tolerance
from .analysis.assembly.position import Targets, looked_for
from .analysis.joint_targets import JointCoordinates, coordinates, paths, start_near
from .analysis.mobility import report
from .analysis.scaling import units_of_motion
from .dynamics.options import SearchOptions, Unpack, shows_options
from .dynamics.variants import VariantFunctions
from .errors import ModelError, ShapeError
from .spatial import Transform

HALVINGS = 12  # of the way between two inputs, before a branch counts as ended
SMOOTH = 0.3  # of a step: where steps have to mend more of what the last one foretold, the branch bends


class Variants(VariantFunctions):
    """Many mechanisms of one structure, each with numbers of its own; made by :meth:`~sarrus.Mechanism.variants`.

    It has the functions of a state of :class:`~sarrus.Mechanism`: the first axis of states is that of the variants, (N, nq), or (N, k, nq) for k
    states of each; one state, or (1, k, nq), is asked of all of them. What needs one mechanism, a simulation or a picture, takes one: ``variants[i]``.
    ``variants[2:5]``, or a list of indices, or a mask, are some of them.

    Attributes
    ----------
    base : the mechanism that they are variants of; joints, bodies, frames, nq, nv ... are its own
    """

    actuator_efforts = efforts.actuator_efforts
    mobility_map = report.mobility_map
    _units_of_motion = functools.cached_property(units_of_motion)

    @shows_options
    def assemble(
        self, near: ArrayLike | JointCoordinates | None = None, *, fixed: JointCoordinates | None = None,
        **options: Unpack[SearchOptions],
    ) -> Array:  # fmt: skip
        """A configuration (N, ..., nq) of each variant that closes every loop, near another one.

        Parameters
        ----------
        near : where to start: (nq,) or (N, ..., nq); joints to coordinates are a first guess. Default: the home of the description
        fixed, time, tolerance, out, threads, return_status : as :meth:`sarrus.Mechanism.assemble`, coordinates (N, ...) or the same for all. Each
            variant is looked for from its own start only; where its loops stay open its row is NaN and its status 2. What loops and `fixed` leave free need
            not end where it does for ``variants[i]``, which may look in the coordinates of another tree

        Raises
        ------
        ModelError, NameNotFoundError, ShapeError, StateError
            As :meth:`sarrus.Mechanism.assemble`.

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> lengths = np.linspace(0.3, 0.5, 5)
        >>> several = fourbar.variants(placements={"pin1.parent": np.outer(lengths, [1.0, 0.0, 0.0])})
        >>> several.assemble(fixed={"motor": 0.5}).shape
        (5, 3)
        """
        answer: Array = self._closed({}, near, fixed, **cast(Any, options))
        return answer

    @shows_options
    def inverse_kinematics(
        self, frames: Targets, *, near: ArrayLike | JointCoordinates | None = None, fixed: JointCoordinates | None = None,
        **options: Unpack[SearchOptions],
    ) -> Array:  # fmt: skip
        """A configuration (N, ..., nq) of each variant in which frames are where they should be, and all loops are closed.

        Parameters
        ----------
        frames : frame to its pose (..., 4, 4) or point (..., 3) in the world, the same for all or (N, ...)
        near, fixed, **options : as :meth:`assemble`

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> delta = sarrus.mechanisms.delta()
        >>> three = delta.variants(placements={"tool": [(0, 0, -0.01), (0, 0, -0.02), (0, 0, -0.03)]})  # doctest: +SKIP
        """
        check_frames(self.base, frames, "fixed")
        answer: Array = self._closed(frames, near, fixed, **cast(Any, options))
        return answer

    def follow(
        self, joints: JointCoordinates, near: ArrayLike | JointCoordinates | None = None, *, time: ArrayLike | None = None,
        max_step: float = 0.2, tolerance: float = TOLERANCE, threads: int = 1,
    ) -> Array:  # fmt: skip
        """Configurations (N, n, nq) of each variant along prescribed inputs, on one branch each, the loops closed in all of them.

        Parameters
        ----------
        joints : joint with one coordinate to what it is to go through, (n,), the same for all variants; between them it moves evenly
        near : as :meth:`assemble`, which closes the loops at the first inputs
        time : (n,) [s], where motion is prescribed
        max_step : largest motion of a joint in one step [rad, mean sizes of the bodies]; longer ways, and bends, are taken in parts
        tolerance, threads : as :meth:`assemble`

        Returns
        -------
        (N, n, nq); where a variant's branch has ended, or its loops did not close at the first inputs, NaN from there on

        Examples
        --------
        Two of three cranks turn round:

        >>> import numpy as np
        >>> import sarrus
        >>> fourbar = sarrus.mechanisms.four_bar()
        >>> cranks = fourbar.variants(placements={"pin1.parent": np.outer([0.3, 0.4, 0.9], [1.0, 0.0, 0.0])})
        >>> q = cranks.follow({"motor": np.linspace(0.0, 2 * np.pi, 61)})
        >>> q.shape, np.isfinite(q).all(axis=(1, 2)).tolist()
        ((3, 61, 3), [True, True, False])
        """
        max_step, tolerance = checked_number("max_step", max_step), checked_tolerance(tolerance)
        threads = checked_count("threads", threads)
        if not isinstance(joints, Mapping):
            raise TypeError(f"joints are a mapping of joints to where they go; got {joints!r}")
        ways, times = paths(self.base, joints, time, {})
        for name, way in ways.items():
            if way.shape[1] != 1:
                raise ModelError(
                    f"joint '{name}' has {way.shape[1]} coordinates, and variants follow single ones: assemble() takes them all"
                )
        how = {"tolerance": tolerance, "threads": threads}
        start: Array = self._closed({}, near, {name: way[0] for name, way in ways.items()}, time=float(times[0]), **how)
        if start.ndim > 2:
            raise ShapeError(
                f"near must be one configuration a variant, where a path starts; got shape {start.shape[:1] + start.shape[2:]}"
            )
        branches = _Branches(self, ways, times, max_step, tolerance, threads)
        path = np.full((len(times), len(self), self.nq), np.nan)
        path[0] = start
        there = np.flatnonzero(np.isfinite(start).all(axis=-1))
        q, last = start[there], np.zeros((len(there), self.nv))
        before = last
        for k in range(1, len(times)):
            # as steps have changed they go on changing
            ahead = 2.0 * last - before if k > 2 else last
            q, step = branches.advance(there, q, ahead, k - 1.0, float(k))
            path[k, there] = q
            on = ~np.isnan(q[:, 0])
            if not on.all():
                there, q, step, last = there[on], q[on], step[on], last[on]
            last, before = step, last
        return np.ascontiguousarray(path.swapaxes(0, 1))

    def _closed(self, frames: Targets, near: Any, fixed: Any, **options: Any) -> Any:
        held = coordinates(self.base, fixed, many=True)
        shapes = {f"coordinates of joint '{name}'": x.shape[:-1] for name, x in held.items()}
        time = checked_times(options.get("time"))
        shapes["time"] = () if time is None else np.shape(np.asarray(time))
        goals = {}
        for name, value in frames.items():
            x = real_array(f"the target of frame '{name}'", value.matrix if isinstance(value, Transform) else value)
            goals[name] = x, x.shape[-2:] == (4, 4)
            shapes[f"the target of frame '{name}'"] = x.shape[: -1 - goals[name][1]]
        guess = coordinates(self.base, near) if isinstance(near, Mapping) else {}
        at = None if near is None or isinstance(near, Mapping) else real_array("near", near)
        start = start_near(self.base, at, guess, None, () if at is None else at.shape[:-1])
        shapes["near"] = start.shape[:-1]
        lead = common_axes(shapes)
        if not lead or lead[0] == 1:
            lead = (len(self), *lead[1:])
        if lead[0] != len(self):
            raise ShapeError(
                f"the first axis is that of the variants, of which there are {len(self)}; these have leading axes {lead}"
            )

        def in_rows(x: Array, axes: int = 1) -> Array:  # the leading ones as one
            return np.broadcast_to(x, (*lead, *x.shape[x.ndim - axes :])).reshape(-1, *x.shape[x.ndim - axes :])

        each = np.repeat(np.arange(len(self)), math.prod(lead[1:]))
        many = self if len(lead) == 1 else self._of_rows(each)
        if time is not None:
            options["time"] = in_rows(np.asarray(time), 0)
        out, return_status = options.pop("out", None), options.pop("return_status", False)
        return_status = checked_truth("return_status", return_status)
        targets = {name: in_rows(x, 2 if turned else 1) for name, (x, turned) in goals.items()}
        held = {name: in_rows(x) for name, x in held.items()}
        q, state = looked_for(many, targets, in_rows(start), held, return_status=True, **options)
        q = into(out, q.reshape(*lead, self.nq))
        return (q, state.reshape(lead)) if return_status else q


class Listed(Variants):
    """Mechanisms that stand already, as variants of the first. ModelError where they differ in more than variants do."""

    _mechanisms: Sequence[Any]

    def __init__(self, mechanisms: Sequence[Any]) -> None:
        _core.Mechanism.__init__(cast(Any, self), list(mechanisms))
        vars(self).update(
            base=mechanisms[0], _changes={}, _which=np.arange(len(mechanisms)), _prepared={}, _mechanisms=mechanisms
        )

    def __getitem__(self, which: Any) -> Any:
        return self._mechanisms[int(which)] if isinstance(which, (int, np.integer)) else super().__getitem__(which)

    def _of_rows(self, which: ArrayLike) -> Any:
        some = super()._of_rows(which)
        vars(some)["_mechanisms"] = [self._mechanisms[i] for i in np.asarray(which).tolist()]
        return some

    def __reduce__(self) -> tuple[Any, ...]:
        return Listed, (self._mechanisms,)


class _Branches:
    """The branches on which variants go along inputs, and the steps on them."""

    def __init__(
        self,
        variants: Variants,
        ways: Mapping[str, Array],
        times: Array,
        max_step: float,
        tolerance: float,
        threads: int,
    ) -> None:
        self.variants, self.ways, self.times = variants, ways, times
        self.max_step, self.tolerance, self.threads = max_step, tolerance, threads
        self.how = closing(variants, (), tuple(ways))
        self.places = {name: variants.base.joint(name).q_slice for name in ways if name not in self.how.led}

    def advance(self, which: NDArray[np.intp], q: Array, ahead: Array, start: float, end: float) -> tuple[Array, Array]:
        """Configurations (n, nq) of these variants at an input, on from those at another one, and the steps (n, nv) that led there; NaN where a branch ends.

        The first guess is so much ahead, the next one along the branch's tangent. What Newton's steps have to mend of it is little on a smooth branch:
        else, and where they find nothing, the way is taken in two halves.
        """
        how = self.how if len(which) == len(self.variants) else self.how.of_rows(which)
        reached, step, good = self._tried(how, q, ahead, end)
        if good.all():
            return reached, step
        rest = np.flatnonzero(~good)
        how = how.of_rows(rest)
        along = self._tangent(how, q[rest], start, end)
        reached[rest], step[rest], good[rest] = self._tried(how, q[rest], along, end)
        reached[~good], step[~good] = np.nan, 0.0
        again, on = rest[~good[rest]], ~good[rest]
        if end - start < 0.5**HALVINGS or not again.size:
            return reached, step
        middle = 0.5 * (start + end)
        half, first = self.advance(which[again], q[again], 0.5 * along[on], start, middle)
        there = ~np.isnan(half[:, 0])
        if there.any():
            again = again[there]
            reached[again], second = self.advance(which[again], half[there], first[there], middle, end)
            step[again] = 2.0 * second
        return reached, step

    def _at(self, part: float, of: Array) -> float:
        """Between the inputs, or times, (n,), evenly."""
        return float(np.interp(part, np.arange(len(of)), of))

    def _tried(self, how: Closing, q: Array, ahead: Array, end: float) -> tuple[Array, Array, NDArray[np.bool_]]:
        """What loops close to from so much ahead, the steps that this is from q, and whether the branch was smooth."""
        guess = how.base.integrate(q, ahead)
        for name, place in self.places.items():
            guess[:, place] = self._at(end, self.ways[name][:, 0])
        targets = np.array([self._at(end, self.ways[name][:, 0]) for name in how.led]) if how.led else None
        time = np.full(len(q), self._at(end, self.times))
        targets = None if targets is None else np.tile(targets, (len(q), 1))
        reached, state = from_each(how, guess, targets, time, self.tolerance, self.threads, nearby=True)
        step, mended = how.base.difference(q, reached), how.base.difference(guess, reached)
        longest, off = (_largest(x / how.loops.column_scale) for x in (step, mended))
        return reached, step, (state == 0) & (longest <= self.max_step) & (off <= SMOOTH * longest)

    def _tangent(self, how: Closing, q: Array, start: float, end: float) -> Array:
        """Steps (n, nv) along which the loops stay closed to first order while inputs and time go on."""
        lasts = self._at(end, self.times) - self._at(start, self.times)
        change = {name: self._at(end, way[:, 0]) - self._at(start, way[:, 0]) for name, way in self.ways.items()}
        values = {"pfaffian_values": np.zeros(how.numbers)} if how.led else {}

        def motion(share: float) -> Array:
            v, rows = np.zeros(how.base.nv), np.zeros(how.robot.nc) if how.led else None
            for name, place in zip(self.ways, how.v_places, strict=True):
                if place >= 0:
                    v[place] = share * change[name]
            for name, place in zip(how.led, how.rows, strict=True):
                cast(Array, rows)[place] = share * change[name]
            time = np.full(len(q), self._at(start, self.times))
            answer = how.robot._least_motion(q, v, None, how.weight, rows, time=time, return_status=True, **values)
            return cast(Array, np.nan_to_num(answer[0]))

        # of velocities that laws of time prescribe, where none passes, only the change of inputs counts
        return lasts * motion(1.0 / lasts) if lasts > 0.0 else motion(1.0) - motion(0.0)


def _largest(x: Array) -> Array:
    """(n,) of each row (n, k), which NumPy's own takes five times as long to find where k is small."""
    return np.asarray(functools.reduce(np.maximum, abs(x).T, np.zeros(len(x))))
