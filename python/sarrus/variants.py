"""Mechanisms with the same structure and different parameters, see :meth:`sarrus.Mechanism.variants`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from . import _core
from ._arrays import (
    MOST_THREADS,
    Array,
    ArrayLike,
    checked_count,
    checked_truth,
    into,
)
from .analysis import actuation
from .analysis.assembly import States, Targets, solved_many, warn_of_velocity_rows
from .analysis.closing import (
    TOLERANCE,
    JointCoordinates,
    check_frames,
    checked_steps,
    checked_tolerance,
    paths,
    positions,
)
from .analysis.linear_algebra import units_of_motion
from .analysis.mobility import mobility_map
from .dynamics.options import SearchOptions, Unpack, shows_options
from .dynamics.variants import VariantFunctions
from .errors import ShapeError


class Variants(VariantFunctions):
    """N mechanisms with the same structure and different parameters; returned by :meth:`~sarrus.Mechanism.variants`.

    The class has the functions of a state of :class:`~sarrus.Mechanism`. The first axis of a state is the variant: (N, nq), or (N, k, nq) for k
    states of each variant. A single state (nq,), or (1, k, nq), is evaluated for all variants. ``variants[i]`` is one mechanism, for simulations or
    figures. A slice ``variants[2:5]``, a list of indices or a mask selects a subset.

    Attributes
    ----------
    base : the mechanism from which the variants differ; attributes such as joints, bodies, frames, nq and nv are those of the base
    changes : parameters with their N values, arguments of :meth:`sarrus.Mechanism.variants`
    """

    actuator_efforts = actuation.actuator_efforts
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
        near : initial guess (nq,) or (N, ..., nq), or a mapping of joints to coordinates [rad, m]. Default: the home configuration
        fixed, branch, time, seed, tolerance, out, threads, return_status : as for :meth:`sarrus.Mechanism.assemble`, with coordinates (N, ...), or the same
            for all variants. If the loops of a variant cannot be closed, its row is NaN and
            its status is 2. If loops and `fixed` leave coordinates undetermined, these can differ from the result of ``variants[i].assemble``, which
            may use another spanning tree
        starts : must be omitted, because each variant is solved from its own initial guess only

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
        if fixed is not None:
            warn_of_velocity_rows(self.base, fixed, "assemble")
        answer: Array = solved_many(self, {}, near, fixed, **cast(Any, options))
        return answer

    @shows_options
    def inverse_kinematics(
        self, frames: Targets, *, near: ArrayLike | JointCoordinates | None = None, fixed: JointCoordinates | None = None,
        **options: Unpack[SearchOptions],
    ) -> Array:  # fmt: skip
        """Return a configuration (N, ..., nq) of each variant in which frames reach their targets and all loops are closed.

        Parameters
        ----------
        frames : frame to its target in the world: pose (..., 4, 4) or point (..., 3) [m], the same for all variants or (N, ...); NaN marks free
            components
        near, fixed, time, branch, starts, seed, tolerance, out, threads, return_status : as for :meth:`assemble`

        Examples
        --------
        >>> import numpy as np
        >>> import sarrus
        >>> delta = sarrus.mechanisms.delta()
        >>> three = delta.variants(placements={"tool": [(0, 0, -0.01), (0, 0, -0.02), (0, 0, -0.03)]})  # doctest: +SKIP
        """
        check_frames(self.base, frames, "fixed")
        warn_of_velocity_rows(self.base, fixed, "inverse_kinematics")
        answer: Array = solved_many(self, frames, near, fixed, **cast(Any, options))
        return answer

    def follow(
        self, joints: JointCoordinates, near: ArrayLike | JointCoordinates | None = None, *, time: ArrayLike | None = None,
        max_step: float = 0.2, min_step: float = 1e-7, tolerance: float = TOLERANCE, out: Array | None = None, threads: int = 1,
        return_status: bool = False,
    ) -> Any:  # fmt: skip
        """Return configurations (N, n, nq) of each variant along prescribed inputs, with closed loops, on one branch of each variant.

        Parameters
        ----------
        joints : driven joint to its coordinates (n,) or (n, nq of the joint) [rad, m], the same for all variants. Between them the joint moves at a
            constant rate
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
        warn_of_velocity_rows(self.base, joints, "follow")
        tolerance, threads = checked_tolerance(tolerance), min(checked_count("threads", threads), MOST_THREADS)
        return_status = checked_truth("return_status", return_status)
        inputs, times = paths(self.base, joints, time, {})
        states = States(self, near, None, None, {})
        if len(states.axes) > 1:
            raise ShapeError(
                f"near must be one configuration for each variant, the initial configuration of its path; got shape {states.axes}"
            )
        by_joint = list(inputs.items())
        path, status = positions(self).follow_many(
            by_joint, times.tolist(), states.near, states.guess, *steps, tolerance, threads, states.count
        )
        path = into(out, path)
        return (path, status) if return_status else path


class Listed(Variants):
    """Variants made of existing mechanisms; the first mechanism is the base. Raises ModelError if their structures differ.

    Attributes
    ----------
    mechanisms : the mechanisms
    """

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
