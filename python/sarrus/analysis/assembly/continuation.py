"""Path continuation on a branch: inputs of the core's algorithm (``cpp/loops/branch.hpp``), and error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._arrays import Array, NDArray, checked_number
from ..._core import branch_outcome
from .closing import Closing

EPS = float(np.finfo(np.float64).eps)


def checked_steps(max_step: float, min_step: float) -> tuple[float, float]:
    """Return both step sizes; raise ValueError if a path with such steps would not terminate."""
    longest, shortest = checked_number("max_step", max_step), checked_number("min_step", min_step)
    if not EPS <= shortest <= 1.0:
        raise ValueError(
            f"min_step must be a fraction of the distance between two inputs, from {EPS:.3g} (rounding) to 1; got {min_step!r}"
        )
    if longest < shortest:
        raise ValueError(f"max_step must be at least min_step = {min_step!r}; got {max_step!r}")
    return longest, shortest


class Branch:
    """Path of configurations along n inputs, which begins in a configuration at the first input.

    Attributes
    ----------
    closure : loop closure with these fixed joints and frames
    times : (n,) [s]
    paths : joint to coordinates (n, nq of the joint), for fixed joints
    targets : (n, k) targets of frames and fixed loop joints, or None
    steps : longest step, shortest step, tolerance

    With variants, the first axis of configurations and statuses is the axis of variants.
    """

    def __init__(
        self, closure: Closing, times: Array, paths: Mapping[str, Array], targets: Array | None,
        steps: tuple[float, float], tolerance: float,
    ) -> None:  # fmt: skip
        self.closure, self.times, self.paths, self.targets = closure, times, paths, targets
        self.steps = np.array([*steps, tolerance])

    def _question(self, q: Array) -> tuple[Array, ...]:
        """Return the core's arguments, for initial configurations q (..., nq)."""
        closure, n = self.closure, len(self.times)
        targets = np.zeros((n, 0)) if self.targets is None else self.targets
        fixed_coordinates = np.tile(closure.base.neutral(), (n, 1))
        for name, x in self.paths.items():
            if name not in closure.loop_joints:
                fixed_coordinates[:, closure.base.joint(name).q_slice] = x
        # zeros for rows that are velocity constraints: their values have no effect on positions
        row_numbers = closure.base._pfaffian_numbers(q, None).shape[-1] if closure.base._asks_for_rows else 0
        inputs = np.concatenate([self.times[:, None], fixed_coordinates, np.zeros((n, row_numbers)), targets], axis=1)
        return q, closure.fixed_mask, closure.loops.scale(), self.steps, inputs.ravel()

    def follow(self, q: Array, out: Array | None = None, threads: int = 1) -> tuple[Array, NDArray[np.int8]]:
        """Return configurations (..., n, nq) along the inputs from q (..., nq), and a status (...).

        The status is 2 if the branch ends; the configurations after its end are NaN.
        """
        options: dict[str, Any] = {} if out is None else {"out": out}
        path, status = self.closure.robot._branch(*self._question(q), threads=threads, return_status=True, **options)
        return path, status

    def last(self, q: Array) -> tuple[Array, float]:
        """Return the last configuration of the branch of q (nq,), and the number of inputs before it, with the fraction of the path to the next
        input.
        """
        numbers = self.closure.robot._move_along_branch(*self._question(q))
        return numbers[: -branch_outcome.numbers], float(numbers[-2])
