"""Path continuation on a branch: inputs for the core, and the messages of errors. ``cpp/loops/branch.hpp`` has the algorithm."""

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
    """A curve of configurations along n inputs, from a configuration at the first input.

    Attributes
    ----------
    closure : loop closure with these fixed joints and frames
    times : (n,) [s]
    paths : joint to coordinates (n, nq of the joint), for fixed joints
    targets : (n, numbers) targets of frames and fixed loop joints, or None
    steps : longest step, shortest step, tolerance

    With variants, configurations and statuses have an axis of variants first.
    """

    def __init__(
        self, closure: Closing, times: Array, paths: Mapping[str, Array], targets: Array | None,
        steps: tuple[float, float], tolerance: float,
    ) -> None:  # fmt: skip
        self.closure, self.times, self.paths, self.targets = closure, times, paths, targets
        self.steps = np.array([*steps, tolerance])

    def _question(self, q: Array) -> tuple[Array, ...]:
        """Return the core's arguments, for starts q (..., nq)."""
        closure, n = self.closure, len(self.times)
        targets = np.zeros((n, 0)) if self.targets is None else self.targets
        fixed_coordinates = np.tile(closure.base.neutral(), (n, 1))
        for name, x in self.paths.items():
            if name not in closure.loop_joints:
                fixed_coordinates[:, closure.base.joint(name).q_slice] = x
        # rows that are no position constraints: their values have no effect here
        row_numbers = closure.base._pfaffian_numbers(q, None).shape[-1] if closure.base._asks_for_rows else 0
        inputs = np.concatenate([self.times[:, None], fixed_coordinates, np.zeros((n, row_numbers)), targets], axis=1)
        return q, closure.fixed_mask, closure.loops.scale(), self.steps, inputs.ravel()

    def follow(self, q: Array, out: Array | None = None, threads: int = 1) -> tuple[Array, NDArray[np.int8]]:
        """Return configurations (..., n, nq) along the inputs from q (..., nq), and a status (...): 2 if the branch ends, with NaN after the end."""
        options: dict[str, Any] = {} if out is None else {"out": out}
        path, status = self.closure.robot._branch(*self._question(q), threads=threads, return_status=True, **options)
        return path, status

    def last(self, q: Array) -> tuple[Array, float]:
        """Return the last configuration of the branch of q (nq,), and the number of passed inputs, with the fraction of the path to the next."""
        numbers = self.closure.robot._move_along_branch(*self._question(q))
        return numbers[: -branch_outcome.numbers], float(numbers[-2])
