"""Path continuation on a branch: inputs of the core's algorithm (``cpp/loops/branch.hpp``), and error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._arrays import Array, NDArray, checked_number
from ..._core import branch_outcome
from ...errors import PathTrackingError
from ..joint_targets import quoted
from .closing import Closing
from .multistart import SMALL

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

    def end(self, path: Array) -> PathTrackingError:
        """Return the error for a branch that ends before the last input; its message contains the cause."""
        k, q, why = self.stop(path[0], path)
        return PathTrackingError(f"the branch ends between inputs {k} and {k + 1}{why}", path[: k + 1], q)

    def stop(self, start: Array, path: Array | None = None) -> tuple[int, Array, str]:
        """Return the end of the branch of an initial configuration (nq,): the number of inputs before it, its configuration, and its cause as
        text.
        """
        q, passed = self.last(start)
        k = int(passed)
        at = float(np.interp(passed, np.arange(len(self.times)), self.times))
        loops = self.closure.at(at, None if self.targets is None else self.targets[k])
        before = start if path is None else path[k]
        regular, singular = (loops.jacobian(x)[loops.holonomic] * self.closure.moving for x in (before, q))
        s = np.linalg.svd(regular, compute_uv=False)
        rank = int((s > SMALL * s.max(initial=0.0)).sum())
        return k, q, self._why(q, at, np.where(np.isfinite(singular), singular, 0.0), rank)

    def _why(self, q: Array, time: float, J: Array, rank: int) -> str:
        robot = self.closure.base
        coordinates = robot.joint_states(q, time=time).q
        at = {name: np.array2string(coordinates[name], precision=6)[1:-1].strip() for name in self.paths}
        reached = ", ".join(f"{name} = {motion}" for name, motion in at.items())
        where = f", at {reached}" if reached else ""
        motion = np.linalg.svd(J)[2][max(rank - 1, 0)] if len(J) else np.zeros(robot.nv)
        slowest = float(np.linalg.norm(J @ motion))
        moving = quoted(
            name for name in robot.joints if np.abs(motion[robot.joint(name).v_slice]).max(initial=0.0) > 0.1
        )
        if slowest < 0.05 and moving:
            return f"{where}: a limit position (dead point), in which {moving} can move while the inputs rest"
        return f"{where}: no step closes the loops, not even the shortest"
