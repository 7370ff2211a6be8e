"""Mechanisms with the same structure and different parameters, see :meth:`sarrus.Mechanism.variants`."""

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
from .analysis.assembly.closing import TOLERANCE, check_frames, checked_tolerance, closing
from .analysis.assembly.continuation import Branch, checked_steps
from .analysis.assembly.leading import continue_or_search
from .analysis.assembly.position import Targets, search_in_tree, warn_of_branch
from .analysis.joint_targets import JointCoordinates, coordinates, paths, start_near
from .analysis.mobility.map import mobility_map
from .analysis.scaling import units_of_motion
from .dynamics.options import Branching, SearchOptions, Unpack, shows_options
from .dynamics.variants import VariantFunctions
from .errors import ShapeError, check_choice
from .spatial import Transform


class Variants(VariantFunctions):
    """N mechanisms with the same structure and different parameters; returned by :meth:`~sarrus.Mechanism.variants`.

    The class has the functions of a state of :class:`~sarrus.Mechanism`. The first axis of a state is the variant: (N, nq), or (N, k, nq) for k
    states of each variant. A single state (nq,), or (1, k, nq), is evaluated for all variants. ``variants[i]`` is one mechanism, for simulations or
    figures. A slice ``variants[2:5]``, a list of indices or a mask selects a subset.

    Attributes
    ----------
    base : the mechanism from which the variants differ; attributes such as joints, bodies, frames, nq and nv are those of the base
    """

    actuator_efforts = efforts.actuator_efforts
    mobility_map = mobility_map
    _units_of_motion = functools.cached_property(units_of_motion)

    @shows_options
    def assemble(
        self, near: ArrayLike | JointCoordinates | None = None, *, fixed: JointCoordinates | None = None,
        **options: Unpack[SearchOptions],
    ) -> Array:  # fmt: skip
        """Return a configuration (N, ..., nq) of each variant that closes all loops, near an initial guess.

        Parameters
        ----------
        near : initial guess (nq,) or (N, ..., nq), or a mapping of joints to coordinates. Default: the home configuration
        fixed, branch, time, tolerance, out, threads, return_status : as for :meth:`sarrus.Mechanism.assemble`, with coordinates (N, ...), or the same
            for all variants. Each variant is solved from its own initial guess only. If the loops of a variant cannot be closed, its row is NaN and
            its status is 2. If loops and `fixed` leave coordinates undetermined, these can differ from the result of ``variants[i].assemble``, which
            may use another spanning tree

        Raises
        ------
        ModelError, NameNotFoundError, ShapeError, StateError
            See :meth:`sarrus.Mechanism.assemble`.

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
        """Return a configuration (N, ..., nq) of each variant in which frames reach their targets and all loops are closed.

        Parameters
        ----------
        frames : frame to its target in the world: pose (..., 4, 4) or point (..., 3) [m], the same for all variants or (N, ...)
        near, fixed, **options : arguments of :meth:`assemble`

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
        """Return configurations (N, n, nq) of each variant along prescribed inputs, with closed loops, on one branch of each variant.

        Parameters
        ----------
        joints : driven joint to its coordinates (n,) or (n, nq of the joint), the same for all variants. Between them the joint moves at a constant
        rate
        near : initial guess at the first inputs, as for :meth:`assemble`
        time : (n,) [s], for prescribed motions
        max_step, min_step : as for :meth:`sarrus.Mechanism.follow`
        tolerance, out, threads, return_status : as for :meth:`assemble`. Status 2: a branch ends, or the loops do not close at the first inputs

        Returns
        -------
        (N, n, nq); NaN after the end of a variant's branch, and for variants whose loops do not close at the first inputs

        Examples
        --------
        Two of three cranks can make a full turn:

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
        inputs, times = paths(self.base, joints, time, {})
        first = {name: x[0] for name, x in inputs.items()}
        start, state = self._closed(
            {}, near, first, time=float(times[0]), tolerance=tolerance, threads=threads, return_status=True
        )
        if start.ndim > 2:
            raise ShapeError(
                f"near must be one configuration for each variant, the initial configuration of its path; got shape {start.shape[:1] + start.shape[2:]}"
            )
        loops = closing(self, (), tuple(inputs))
        branches = Branch(loops, times, inputs, loops.targets([], inputs, (len(times),)), steps, tolerance)
        open_ = (state != _core.Status.FINE) & (state != _core.Status.OTHER_BRANCH)
        start[open_] = self.base.neutral()
        path, status = branches.follow(start, out, threads)
        path[open_], status[open_] = np.nan, state[open_]
        return (path, status) if checked_truth("return_status", return_status) else path

    def _closed(self, frames: Targets, near: Any, fixed: Any, **options: Any) -> Any:
        fixed_joints = coordinates(self.base, fixed, many=True)
        shapes = {f"coordinates of joint '{name}'": x.shape[:-1] for name, x in fixed_joints.items()}
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
            raise ShapeError(f"the first axis must be that of the {len(self)} variants; got leading axes {lead}")

        def in_rows(x: Array, axes: int = 1) -> Array:  # combines all leading axes to one
            return np.broadcast_to(x, (*lead, *x.shape[x.ndim - axes :])).reshape(-1, *x.shape[x.ndim - axes :])

        each = np.repeat(np.arange(len(self)), math.prod(lead[1:]))
        many = self if len(lead) == 1 else self._of_rows(each)
        if time is not None:
            options["time"] = in_rows(np.asarray(time), 0)
        out, return_status = options.pop("out", None), options.pop("return_status", False)
        return_status = checked_truth("return_status", return_status)
        targets = {name: in_rows(x, 2 if turned else 1) for name, (x, turned) in goals.items()}
        fixed_joints = {name: in_rows(x) for name, x in fixed_joints.items()}
        branch = options.pop("branch", "start")
        check_choice("branch", branch, Branching)
        begin, tracked = in_rows(start), None

        def nearest(rows: Any, origin: Array) -> tuple[Array, NDArray[np.int8]]:
            subset = many if isinstance(rows, slice) else many._of_rows(rows)
            at = options if time is None else options | {"time": options["time"][rows]}
            goal = {name: x[rows] for name, x in targets.items()}
            fixed_in_rows = {name: x[rows] for name, x in fixed_joints.items()}
            answer = search_in_tree(subset, goal, origin[rows], fixed_in_rows, return_status=True, **at)
            return cast("tuple[Array, NDArray[np.int8]]", answer)

        if branch != "any" and (fixed_joints or targets):
            closed, open_ = search_in_tree(many, {}, begin, {}, return_status=True, **options)
            first, begin = begin, np.where((open_ == 0)[:, None], closed, begin)
            places = {(name, turned): targets[name] for name, (_, turned) in goals.items()}
            tolerances = {"tolerance": options.get("tolerance", TOLERANCE), "threads": options.get("threads", 1)}
            tracked = continue_or_search(
                many, places, fixed_joints, first, begin, open_, options.get("time"), branch, nearest, **tolerances
            )
        q, state = nearest(slice(None), in_rows(start)) if tracked is None else (tracked.q, tracked.state)
        if tracked is not None and not return_status and (count := int((state == _core.Status.OTHER_BRANCH).sum())):
            warn_of_branch(count, len(state))
        q = into(out, q.reshape(*lead, self.nq))
        return (q, state.reshape(lead)) if return_status else q


class Listed(Variants):
    """Variants made of existing mechanisms; the first mechanism is the base. Raises ModelError if their structures differ."""

    _mechanisms: Sequence[Any]

    def __init__(self, mechanisms: Sequence[Any]) -> None:
        _core.Mechanism.__init__(cast(Any, self), list(mechanisms))
        vars(self).update(
            base=mechanisms[0], _changes={}, _which=np.arange(len(mechanisms)), _prepared={}, _mechanisms=mechanisms
        )

    def __getitem__(self, index: Any) -> Any:
        return self._mechanisms[int(index)] if isinstance(index, (int, np.integer)) else super().__getitem__(index)

    def _of_rows(self, indices: ArrayLike) -> Any:
        subset = super()._of_rows(indices)
        vars(subset)["_mechanisms"] = [self._mechanisms[i] for i in np.asarray(indices).tolist()]
        return subset

    def __reduce__(self) -> tuple[Any, ...]:
        return Listed, (self._mechanisms,)
