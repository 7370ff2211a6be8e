"""Mobility of batches of configurations, as arrays, for maps of a workspace.

The core computes ranks and singular values (``cpp/loops/mobility.hpp``). This module compares them with those of regular configurations.
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
    """Result of :meth:`~sarrus.Mechanism.mobility_map`; each attribute is an array (...).

    A configuration is singular if its ranks are lower than those of regular configurations. For this comparison, a few closed configurations are
    drawn at random, once for each mechanism. Therefore the result of a configuration does not depend on its batch. J is scaled such that the norm of
    each row is at most one.

    Attributes
    ----------
    rank : (...) rank of the scaled J; -1 without a result
    smallest : (...) smallest nonzero singular value of the scaled J; zero if the rank is lower than in regular configurations (dimensionless)
    degrees_of_freedom : (...) number of independent velocities, nv - rank
    actuation : (...) smallest singular value of the map from unit motions to motor velocities (dimensionless); zero at output singularities
    locked_freedoms : (...) number of degrees of freedom while all motors are locked
    condition : (...) condition number of the map from motor velocities to the output velocity, scaled by the characteristic length (dimensionless);
        infinite at singularities, NaN without an output
    singularity : (...) type of Gosselin and Angeles. "regular"; "output": the motors lose control (second type); "input": the output loses a degree
        of freedom (first type); "both"; "" without a result
    status : (...) 0: fine; 1: the configuration is not finite or its quaternion is not a rotation; 4: its loops are open
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
    """Compute rank, smallest singular value, condition number and type of singularity of a batch of configurations.

    Singular values below 1e-6 count as zero. A position is singular if its ranks are lower than those of a few closed configurations, which are drawn
    at random once for each mechanism.

    Parameters
    ----------
    q : (..., nq) configurations [rad, m] that close the loops; for variants (N, ..., nq), each scaled by its own characteristic length
    actuated, output, time : as in :meth:`mobility`
    threads : number of threads; the result does not depend on it

    Returns
    -------
    MobilityMap

    Raises
    ------
    ShapeError, NameNotFoundError
        q does not have nq entries in its last axis; a joint or frame does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.five_bar()
    >>> q = robot.inverse_kinematics({"tip": [(0.2, 0.0, 0.7), (0.25, 0.0, 0.65)]}, near=robot.assemble())
    >>> robot.mobility_map(q, output=("tip", "tx tz")).singularity.tolist()
    ['regular', 'regular']
    """
    motors = [name for name in motors_of(robot, actuated) if robot.joint(name).type.nv]
    frame, rows = ("ground", []) if output is None else frame_components("output", output)
    q, time = real_array("q", q), checked_time(time)
    base = robot.base if isinstance(robot, VariantFunctions) else robot
    single = _with_motors(base, tuple(motors))
    many = single if base is robot else robot if single is base else cast(VariantFunctions, robot)._like(single)
    is_output = np.isin(np.arange(6), rows)

    def counted(robot: Any, q: Array) -> tuple[Array, NDArray[np.int8], NDArray[np.int64]]:
        """Return the core's result (..., 8), NaN without a result, the status, and six counts (..., 6), -1 without a result.

        The counts are: rank; independent motions of the motors; independent motions of the output; rank of the output velocity per motor velocity;
        degrees of freedom with locked motors; motor motions without motion of the output.
        """
        loops = closing(robot, (), ()).at(time, None)
        l: Any = loops.length
        row_scale = loops.row_scale
        scale = np.concatenate([loops.column_scale, row_scale], axis=-1)
        if isinstance(robot, VariantFunctions):
            rows_of = (slice(None), *[None] * (q.ndim - 2))  # the scales of a variant apply to all of its states
            l, scale, row_scale = robot._lengths[:, None][rows_of], scale[rows_of], row_scale[rows_of]
        slides = sliding_velocities(robot, robot.actuated)
        motor_gains, frame_gains = 1.0 / np.where(slides, l, 1.0), is_output / np.where(np.arange(6) < 3, 1.0, l)
        gains = np.concatenate([motor_gains, frame_gains], axis=-1)
        keywords: dict[str, Any] = {"time": time, "threads": threads, "return_status": True}
        numbers, status = robot._mobility_numbers(q, scale, gains, frame, **keywords)
        residual = row_scale * robot.constraint_residual(q, **keywords)[0]
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
            _, state, q = counted(single, cast(Any, single).random(0, size=8, closed=True))
            return q[state == 0]
        except SarrusError:  # for example, the mechanism closes in a single configuration only
            return np.zeros((0, each.shape[-1]), np.int64)

    usual = prepared(single, key, drawn)
    if len(usual) == 0:
        usual = each[fine]
    best, least = usual.max(axis=0, initial=0), usual.min(axis=0, initial=robot.nv + 6)
    lost, stuck = fine & (locked > least[4]), fine & (unfelt > least[5]) & is_output.any()
    condition = np.where(fine & (lost | stuck | (gained < best[2])), np.inf, x[..., 6])
    kinds = np.array(["regular", "output", "input", "both", ""])
    return MobilityMap(
        rank=rank,
        smallest=np.where(fine & (rank < best[0]), 0.0, x[..., 1]),
        degrees_of_freedom=np.where(fine, robot.nv - rank, -1),
        actuation=np.where(fine & (seen < best[1]), 0.0, x[..., 3]),
        locked_freedoms=locked,
        condition=condition if is_output.any() else np.full(status.shape, np.nan),
        singularity=kinds[np.where(fine, lost + 2 * stuck, 4)],
        status=status,
    )


def _with_motors(robot: LoopFunctions, motors: tuple[str, ...]) -> LoopFunctions:
    """Return the mechanism with motors in these joints only."""
    if set(motors) == {name for name in robot.actuated if robot.joint(name).type.nv}:
        return robot
    return prepared(robot, ("motors", motors), lambda: on_its_tree(robot, actuated=motors))
