"""What keeps a path on closed loops near the spline through its way-points: see :mod:`~sarrus.control.path`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._arrays import Array
from ..errors import StateError
from ..mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Guide:
    """The spline p, and along which combinations K (n, d, nv) of velocities, in the loops' scale, the path keeps to it at each way-point."""

    mechanism: Mechanism
    t: Array
    q: Array
    v: Array
    row_scale: Array
    column_scale: Array
    K: Array

    @cached_property
    def rows(self) -> Array:
        """(n - 1, numbers) for the core, K at both ends of each piece; and of the last one backwards, beyond the last way-point."""
        K = self.K.reshape(len(self.K), -1)
        both = np.concatenate([np.column_stack([K[:-1], K[1:]]), [np.concatenate([K[-1], K[-2]])]])
        rows = np.zeros((len(both), 1 + 2 * self.mechanism.nv**2))
        rows[:, 0], rows[:, 1 : 1 + both.shape[1]] = self.K.shape[1], both
        return rows

    @cached_property
    def scale(self) -> Array:
        return np.concatenate([self.column_scale, self.row_scale])

    def lost(self, time: float, k: int) -> StateError:
        t = self.t
        if t[0] <= time <= t[-1]:
            return too_far(k)
        return StateError(
            f"at t = {time:.9g} s the loops cannot close: the path has no way-points beyond {t[0]:.9g} s to {t[-1]:.9g} s, and goes straight on"
        )


def too_far(k: int) -> StateError:
    return StateError(
        f"the loops turn too far between way-points {k} and {k + 1} for a path to be led along them, or the way-points are on different "
        "branches: add way-points in between, such as mechanism.follow finds"
    )
