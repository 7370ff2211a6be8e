"""Many mechanisms of one structure, each with numbers of its own: :meth:`sarrus.Mechanism.variants`."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from . import _core
from ._arrays import (
    Array,
    ArrayLike,
    NDArray,
    checked_count,
    checked_times,
    checked_truth,
    common_axes,
    into,
    real_array,
)
from .analysis.actuation import efforts
from .analysis.assembly.closing import check_frames, closing
from .analysis.assembly.continuation import Branch, checked_steps
from .analysis.assembly.leading import led_or_nearest
from .analysis.assembly.multistart import TOLERANCE, checked_tolerance
from .analysis.assembly.position import Targets, looked_for, warn_of_branch
from .analysis.joint_targets import JointCoordinates, coordinates, paths, start_near
from .analysis.mobility.map import mobility_map
from .analysis.scaling import units_of_motion
from .dynamics.options import Branching, SearchOptions, Unpack, shows_options
from .dynamics.variants import VariantFunctions
from .errors import ShapeError, check_choice
from .spatial import Transform


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
    mobility_map = mobility_map
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
        fixed, branch, time, tolerance, out, threads, return_status : as :meth:`sarrus.Mechanism.assemble`, coordinates (N, ...) or the same for all. Each
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
        max_step: float = 0.2, min_step: float = 1e-7, tolerance: float = TOLERANCE, out: Array | None = None, threads: int = 1,
        return_status: bool = False,
    ) -> Any:  # fmt: skip
        """Configurations (N, n, nq) of each variant along prescribed inputs, on one branch each, the loops closed in all of them.

        Parameters
        ----------
        joints : joint to the coordinates that it is to go through, (n,) or (n, nq of the joint), the same for all variants; between them it
            moves evenly
        near : as :meth:`assemble`, which closes the loops at the first inputs
        time : (n,) [s], where motion is prescribed
        max_step, min_step : as :meth:`sarrus.Mechanism.follow`
        tolerance, out, threads, return_status : as :meth:`assemble`. Status 2: a branch ends, or did not begin

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
        steps = checked_steps(max_step, min_step)
        tolerance, threads = checked_tolerance(tolerance), checked_count("threads", threads)
        ways, times = paths(self.base, joints, time, {})
        first = {name: way[0] for name, way in ways.items()}
        start, state = self._closed(
            {}, near, first, time=float(times[0]), tolerance=tolerance, threads=threads, return_status=True
        )
        if start.ndim > 2:
            raise ShapeError(
                f"near must be one configuration a variant, where a path starts; got shape {start.shape[:1] + start.shape[2:]}"
            )
        how = closing(self, (), tuple(ways))
        branches = Branch(how, times, ways, how.targets([], ways, (len(times),)), steps, tolerance)
        open_ = (state != _core.Status.FINE) & (state != _core.Status.OTHER_BRANCH)
        start[open_] = self.base.neutral()
        path, status = branches.follow(start, out, threads)
        path[open_], status[open_] = np.nan, state[open_]
        return (path, status) if checked_truth("return_status", return_status) else path

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
        branch = options.pop("branch", "start")
        check_choice("branch", branch, Branching)
        begin, led = in_rows(start), None

        def nearest(rows: Any, origin: Array) -> tuple[Array, NDArray[np.int8]]:
            some = many if isinstance(rows, slice) else many._of_rows(rows)
            at = options if time is None else options | {"time": options["time"][rows]}
            there = {name: x[rows] for name, x in targets.items()}
            answer = looked_for(
                some, there, origin[rows], {name: x[rows] for name, x in held.items()}, return_status=True, **at
            )
            return cast("tuple[Array, NDArray[np.int8]]", answer)

        if branch != "any" and (held or targets):
            closed, open_ = looked_for(many, {}, begin, {}, return_status=True, **options)
            first, begin = begin, np.where((open_ == 0)[:, None], closed, begin)
            places = {(name, turned): targets[name] for name, (_, turned) in goals.items()}
            how = {"tolerance": options.get("tolerance", TOLERANCE), "threads": options.get("threads", 1)}
            led = led_or_nearest(many, places, held, first, begin, open_, options.get("time"), branch, nearest, **how)
        q, state = nearest(slice(None), in_rows(start)) if led is None else (led.q, led.state)
        if led is not None and not return_status and (count := int((state == _core.Status.OTHER_BRANCH).sum())):
            warn_of_branch(count, len(state))
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
