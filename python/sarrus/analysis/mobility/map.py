"""Mobility in numbers, for many configurations at once: what maps of a workspace are drawn from.

The core finds ranks and singular values (``cpp/loops/mobility.hpp``); here they are compared with what is usual for the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..._arrays import Array, ArrayLike, NDArray, checked_time, real_array
from ..._showing import Brief
from ...dynamics.loop_operations import LoopFunctions
from ...dynamics.variants import VariantFunctions
from ...errors import SarrusError
from ..actuation.efforts import motors_of
from ..assembly.closing import closing, on_its_tree, prepared
from ..independent_coordinates import frame_components
from ..scaling import CLOSED, sliding_velocities


@dataclass(frozen=True, eq=False, repr=False)
class MobilityMap(Brief):
    """What :meth:`~sarrus.Mechanism.mobility_map` found, an array (...) each. Singular values are those of rows of size one.

    Attributes
    ----------
    rank : of the scaled J; -1 where there is no answer
    smallest : its smallest singular value; zero where the rank is lower than usual
    degrees_of_freedom : nv - rank
    actuation : smallest singular value of what the motors see of unit motions; zero at output singularities
    locked_freedoms : degrees of freedom that are left while all motors stand still
    condition : of the output's velocity per motor velocity, radians and metres compared by the characteristic length; infinite at
        singularities, NaN without an output
    singularity : "regular", "output" (motors lose control: Gosselin and Angeles' second type), "input" (the output loses a freedom: the
        first), or "both"; "" where there is no answer. Usual is the best of a few closed configurations that are drawn at random once, so that
        what is said of one configuration does not depend on its neighbours
    status : 0 fine, 1 the configuration is not finite or its quaternion is no rotation, 4 it leaves the loops open
    """

    rank: NDArray[np.int64]
    smallest: Array
    degrees_of_freedom: NDArray[np.int64]
    actuation: Array
    locked_freedoms: NDArray[np.int64]
    condition: Array
    singularity: NDArray[np.str_]
    status: NDArray[np.int8]


def mobility_map(
    robot: LoopFunctions, q: ArrayLike, *, actuated: Sequence[str] | None = None, output: str | tuple[str, str] | None = None,
    time: float | None = None, threads: int = 1,
) -> MobilityMap:  # fmt: skip
    """Rank, smallest singular value, condition number and type of singularity of many configurations, without a report's words.

    Singular values below 1e-6 count as zero; whether a position is singular is told by comparison
    with a few closed configurations that are drawn once.

    Parameters
    ----------
    q : (..., nq) configurations that close the loops; of variants (N, ..., nq), each compared by its own characteristic length
    actuated, output, time : as :meth:`mobility`
    threads : how many threads work on it

    Raises
    ------
    ShapeError, NameNotFoundError
        q has not nq entries in its last axis; a name is not known.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.five_bar()
    >>> q = robot.inverse_kinematics({"tip": [(0.2, 0.0, 0.7), (0.25, 0.0, 0.65)]}, near=robot.assemble())
    >>> robot.mobility_map(q, output=("tip", "tx tz")).singularity.tolist()
    ['regular', 'regular']
    """
    # with motors in these joints and these components of a frame's velocity as output
    motors = [name for name in motors_of(robot, actuated) if robot.joint(name).type.nv]
    frame, rows = ("ground", []) if output is None else frame_components("output", output)
    q, time = real_array("q", q), checked_time(time)
    base = robot.base if isinstance(robot, VariantFunctions) else robot
    one = _with_motors(base, tuple(motors))
    many = one if base is robot else robot if one is base else cast(VariantFunctions, robot)._like(one)
    of_output = np.isin(np.arange(6), rows)

    def counted(robot: Any, q: Array) -> tuple[Array, NDArray[np.int8], NDArray[np.int64]]:
        """Numbers (..., 8), NaN where there are none, statuses, and of each row rank, locked freedoms, motions that no motor feels, ..."""
        loops = closing(robot, (), ()).at(time, None)
        l: Any = loops.length
        row_scale = loops.row_scale
        scale = np.concatenate([loops.column_scale, row_scale], axis=-1)
        if isinstance(robot, VariantFunctions):
            rows_of = (slice(None), *[None] * (q.ndim - 2))  # each variant's own for all of its states
            l, scale, row_scale = robot._lengths[:, None][rows_of], scale[rows_of], row_scale[rows_of]
        slides = sliding_velocities(robot, robot.actuated)
        of_motors, of_frame = 1.0 / np.where(slides, l, 1.0), of_output / np.where(np.arange(6) < 3, 1.0, l)
        gains = np.concatenate([of_motors, of_frame], axis=-1)
        how: dict[str, Any] = {"time": time, "threads": threads, "return_status": True}
        numbers, status = robot._mobility_numbers(q, scale, gains, frame, **how)
        residual = row_scale * robot.constraint_residual(q, **how)[0]
        off = np.abs(residual).max(axis=-1, initial=0.0) > CLOSED
        status = np.where((status == 0) & off, 4, status).astype(np.int8)
        fine = (status == 0)[..., None]
        counts = np.where(fine, numbers, -1.0).round().astype(np.int64)
        rank, seen, felt, together, gained = (counts[..., k] for k in (0, 2, 4, 5, 7))
        each = np.stack([rank, seen, felt, gained, robot.nv - rank - seen, together - felt], axis=-1)
        return np.where(fine, numbers, np.nan), status, np.where(fine, each, -1)

    x, status, each = counted(many, q)
    fine = status == 0
    rank, seen, _, gained, locked, unfelt = np.moveaxis(each, -1, 0)
    key = ("usual", frame, tuple(rows), time)

    def drawn() -> Any:
        try:
            _, state, q = counted(one, cast(Any, one).random(0, size=8, closed=True))
            return q[state == 0]
        except SarrusError:  # as of a mechanism that closes in one configuration
            return np.zeros((0, each.shape[-1]), np.int64)

    usual = prepared(one, key, drawn)
    if len(usual) == 0:
        usual = each[fine]
    best, least = usual.max(axis=0, initial=0), usual.min(axis=0, initial=robot.nv + 6)
    lost, stuck = fine & (locked > least[4]), fine & (unfelt > least[5]) & of_output.any()
    condition = np.where(fine & (lost | stuck | (gained < best[2])), np.inf, x[..., 6])
    kinds = np.array(["regular", "output", "input", "both", ""])
    return MobilityMap(
        rank=rank,
        smallest=np.where(fine & (rank < best[0]), 0.0, x[..., 1]),
        degrees_of_freedom=np.where(fine, robot.nv - rank, -1),
        actuation=np.where(fine & (seen < best[1]), 0.0, x[..., 3]),
        locked_freedoms=locked,
        condition=condition if of_output.any() else np.full(status.shape, np.nan),
        singularity=kinds[np.where(fine, lost + 2 * stuck, 4)],
        status=status,
    )


def _with_motors(robot: LoopFunctions, motors: tuple[str, ...]) -> LoopFunctions:
    """The mechanism with motors in these joints."""
    if set(motors) == {name for name in robot.actuated if robot.joint(name).type.nv}:
        return robot
    return prepared(robot, ("motors", motors), lambda: on_its_tree(robot, actuated=motors))
