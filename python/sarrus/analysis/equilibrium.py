"""Static equilibrium of mechanisms with springs, and its stiffness.

The core computes Newton steps and the stiffness (``cpp/loops/equilibrium.hpp``). A contact fixes the origin of a frame, or its height, by a target
constraint as in :mod:`sarrus.analysis.closing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .. import _arrays
from .._arrays import Array, ArrayLike, NDArray
from .._core import Status, tolerances
from .._showing import Brief
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ShapeError, StateError
from .assembly import _closed
from .closing import Closing, JointCoordinates, closing, coordinates, movable_frames, start_near, target_name
from .independent_coordinates import velocity_names

STEPS = 200
# a stiffness below this fraction of the largest is treated as zero: the fraction is ten times the error of its finite differences
NONE = 1e-10


@dataclass(frozen=True, eq=False, repr=False)
class Equilibrium(Brief):
    """Static equilibrium: configuration, reactions and stiffness.

    Attributes
    ----------
    q : (..., nq) configuration [rad, m, unit quaternions]
    multipliers : (..., nc) multipliers of the constraint rows, of least norm [N m, N]
    efforts : (..., nv) efforts that keep the fixed joints at rest, in addition to `tau`; zero for joints that are not fixed [N m, N]
    contact_forces : frame to (..., 3) force on the mechanism, in the world's axes [N]
    stiffness : (..., k) stiffness of the independent motions that loops, fixed joints and contacts allow, due to springs and gravity, in ascending
        order [N m]. In a batch, states with fewer motions have NaN at the end
    motions : (..., k, nv) these motions as velocities [rad, m]. They are uncoupled by the stiffness, and orthonormal if displacements are divided by
        the mechanism's characteristic length. Contact points do not move
    stable : (...) True if no stiffness is negative; if all are positive, the potential energy is minimal
    neutral : (...) number of motions without stiffness (1e-10 of the largest or less), such as the spin of a rod between ball joints
    status : (...) :class:`sarrus.results.Status`: 2 if no equilibrium was found
    """

    q: Array
    multipliers: Array
    efforts: Array
    contact_forces: dict[str, Array]
    stiffness: Array
    motions: Array
    stable: NDArray[np.bool_]
    neutral: NDArray[np.intp]
    status: NDArray[np.int8]
    _gravity: Array

    @property
    def compliance(self) -> Array:
        """Compliance matrix (..., nv, nv) of the joints, dq = compliance dtau for small generalised forces [rad, m; per N m, N].

        Motions without stiffness (see `neutral`) are excluded.
        """
        k = np.nan_to_num(self.stiffness)
        stiff = abs(k) > NONE * abs(k).max(axis=-1, keepdims=True, initial=0.0)
        soft, motions = np.where(stiff, 1.0 / np.where(stiff, k, 1.0), 0.0), np.nan_to_num(self.motions)
        compliance = np.swapaxes(motions, -1, -2) @ (soft[..., None] * motions)
        return np.where((self.status == 0)[..., None, None], compliance, np.nan)

    @property
    def pulling(self) -> dict[str, NDArray[np.bool_]]:
        """Frame to (...) True if the contact force at its origin pulls the mechanism down, which a unilateral contact cannot do."""
        return {frame: np.asarray(force @ self._gravity > 0.0) for frame, force in self.contact_forces.items()}


def equilibrium(
    robot: LoopFunctions, near: ArrayLike | JointCoordinates | None = None, *, fixed: JointCoordinates | None = None,
    tau: ArrayLike | None = None, contacts: str | Iterable[str] | Mapping[str, ArrayLike] | None = None, minimum: bool = True,
    time: ArrayLike | None = None, threads: int = 1,
) -> Equilibrium:  # fmt: skip
    """Compute a static equilibrium of gravity, springs and constant forces, with closed loops.

    The initial guess is projected onto the loop constraints. Then the potential energy is minimised. The result is a stable equilibrium, but
    not necessarily the nearest one. Friction, dampers, joint limits and controllers are ignored. Constraints on velocities, such as
    rolling without slip, exert reactions like constraints on positions.

    Parameters
    ----------
    robot : the mechanism
    near : initial guess [rad, m, quaternions (x, y, z, w)]: (..., nq), or joints to coordinates, as in :meth:`~sarrus.Mechanism.assemble`; default:
        the home configuration
    fixed : joints to coordinates at which they are fixed, (...) each [rad, m, quaternions (x, y, z, w)]
    tau : (..., nv) constant generalised force [N m, N]; default: zero. The axes of the force of a ball or free joint rotate with the joint. Such a
        force has no potential energy, so that the symmetric part of the stiffness alone does not determine `stable`
    contacts : contact frames. One or more names: the origins of these frames stick at their positions in the initial guess. A mapping of frames to
        points (..., 3) in the world [m], at which the origins stick; or to the height of the ground, a number or (..., 1) [m], on which the origins
        stick below or above their initial positions
    minimum : True returns only stable equilibria; False returns the equilibrium, stable or not, to which Newton's method converges
    time : (...) time for prescribed motions [s]
    threads : number of threads for a batch; it does not change the result of any state

    Returns
    -------
    Equilibrium (of ``sarrus.results``)

    Raises
    ------
    StateError
        No equilibrium was found; the message names a joint with an unbalanced force. In a batch, no error is raised: the row is NaN and its status 2.
    AssemblyError
        The loops do not close with the fixed joints, or contacts are out of reach.
    ModelError, NameNotFoundError
        The mechanism has constraint rows that are Python functions of the state. A joint or frame does not exist, or a frame is fixed to the ground.

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder("scale")
    >>> b.add_body("pan", sarrus.Inertia.sphere(2.0, 0.1))
    >>> b.add_joint("spring", sarrus.Prismatic("z", stiffness=981.0), "ground", "pan")
    >>> rest = sarrus.equilibrium(b.build())
    >>> rest.q.round(9).tolist(), rest.stable.item(), rest.compliance.round(9).tolist()  # m g / k, and 1 / k
    ([-0.02], True, [[0.001019368]])
    """
    if not isinstance(robot, LoopFunctions):
        raise TypeError(f"robot: expected a sarrus.Mechanism, got {robot!r}")
    if robot._asks_for_rows:
        fault = f"'{robot.name}': its constraint rows are Python functions of the state, without derivatives"
        raise ModelError(f"{fault}; expected constraints with derivatives, which the stiffness requires")
    goes_down, when = _arrays.checked_truth("minimum", minimum), cast(Any, _arrays.checked_times(time))
    force = np.zeros(robot.nv) if tau is None else _arrays.real_rows("tau", tau, robot.nv)
    fixed_coordinates = coordinates(robot, fixed, many=True)
    at_time = {"time": when, "threads": _arrays.checked_count("threads", threads)}
    axes = {f"coordinates of joint '{name}'": x.shape[:-1] for name, x in fixed_coordinates.items()} | {
        "time": np.shape(when)
    }
    searched = near is None or isinstance(near, Mapping)
    start = _closed(robot, {}, near, fixed, **at_time) if searched else _arrays.real_array("near", cast(Any, near))
    q = start_near(robot, start, fixed_coordinates, when, _arrays.common_axes(axes | {"near": start.shape[:-1]}))
    points = _points(robot, contacts, q)
    axes |= {"near": q.shape[:-1], "tau": force.shape[:-1]}
    lead = _arrays.common_axes(axes | {f"contact of '{frame}'": x.shape[:-1] for frame, x in points.items()})
    closure, q = (
        closing(robot, tuple((frame, False) for frame in points), fixed_coordinates),
        np.broadcast_to(q, (*lead, robot.nq)),
    )
    target_points = (
        np.concatenate([np.broadcast_to(p, (*lead, 3)) for p in points.values()], axis=-1) if points else None
    )
    sizes = np.cumsum([robot.nq, closure.robot.nc, robot.nv, 1, 1, robot.nv, robot.nv])

    def balanced() -> tuple[list[Array], Array]:
        numbers, status = closure.robot._equilibrium(
            q, force, closure.scale, [float(goes_down), STEPS, 0.0], **closure.at(when, target_points).data(q), threads=threads,
            return_status=True,
        )  # fmt: skip
        return np.split(numbers, sizes, axis=-1), status

    results, status = balanced()
    # if the core's few Newton steps do not close the loops, the multistart search closes them or raises the error with the cause
    if (open_ := results[4] > tolerances.closed).any():
        q = np.where(open_, _closed(robot, points, q, fixed, branch="any", **at_time), q)
        results, status = balanced()
    unbalanced = (results[4][..., 0] > tolerances.closed) | (abs(results[6]).max(axis=-1, initial=0.0) > 1.0)
    state = np.where((status == 0) & unbalanced, Status.NO_ANSWER, status).astype(np.int8)
    results[7] = results[7].reshape(*lead, robot.nv, robot.nv)
    if not lead and state:
        raise StateError(_why(robot, closure, results))
    return _answer(robot, closure, points, results, state)


def _answer(
    robot: LoopFunctions, closure: Closing, points: Iterable[str], answer: list[Array], state: NDArray[np.int8]
) -> Equilibrium:
    """Return the result for the core's arrays of the equilibrium."""
    touching = closure.robot
    freedom, stiffness, motions = answer[3], answer[5], answer[7]
    q, multipliers, efforts = (np.where((state != 0)[..., None], np.nan, x) for x in answer[:3])
    most = int(np.nan_to_num(freedom).max(initial=0.0))
    present = (np.arange(most) < freedom) & (state == 0)[..., None]
    stiffness = np.where(present, stiffness[..., :most], np.nan)
    order = stiffness.argsort(axis=-1)
    stiffness = np.take_along_axis(stiffness, order, axis=-1)
    motions = np.where(
        present[..., None], np.take_along_axis(motions[..., :most, :], order[..., None], axis=-2), np.nan
    )
    least = NONE * np.nan_to_num(abs(stiffness)).max(axis=-1, initial=0.0)[..., None]
    loop_rows = [k for name in robot.constraints for k in np.arange(touching.nc)[touching.constraint(name).rows]]
    pushes = {
        frame: touching.pose(q, frame, return_status=True)[0][..., :3, :3]
        @ multipliers[..., touching.constraint(target_name(frame)).rows, None]
        for frame in points
    }
    return Equilibrium(
        q, multipliers[..., loop_rows], np.where(closure.moving, 0.0 * efforts, efforts), {f: x[..., 0] for f, x in pushes.items()}, stiffness,
        motions, ~(stiffness < -least).any(axis=-1) & (state == 0), (abs(stiffness) <= least).sum(axis=-1), state, robot.gravity,
    )  # fmt: skip


def _points(robot: LoopFunctions, contacts: Any, q: Array) -> dict[str, Array]:
    """Return the point (..., 3) at which each frame sticks, for configurations q (..., nq)."""
    points: dict[str, Array] = {}
    movable = movable_frames(robot)
    for frame in _arrays.checked_names("contacts", () if contacts is None else contacts):
        point = robot.pose(q, frame)[..., :3, 3]
        if frame not in movable:
            raise ModelError(f"contacts: frame '{frame}' is fixed to the ground; expected a frame of a moving body")
        if isinstance(contacts, Mapping):
            x = np.atleast_1d(_arrays.real_array(f"contact of '{frame}'", contacts[frame]))
            if x.shape[-1] not in (1, 3):
                raise ShapeError(
                    f"contact of '{frame}' must be a point (..., 3), or a height (a number or (..., 1)); got shape {x.shape}"
                )
            lead = _arrays.common_axes({"near": point.shape[:-1], f"contact of '{frame}'": x.shape[:-1]})
            point = np.broadcast_to(point, (*lead, 3)).copy()
            point[..., -x.shape[-1] :] = x
        points[frame] = point
    return points


def _why(robot: LoopFunctions, closure: Closing, answer: list[Array]) -> str:
    """Return the message of the error that no equilibrium was found."""
    left, stiffness, imbalance = answer[2], answer[5], answer[6]
    name = velocity_names(robot)[int(abs(left * closure.loops.column_scale * closure.moving).argmax())]
    if (abs(imbalance[abs(stiffness) <= NONE * abs(stiffness).max()]) > 1.0).any():
        return (
            f"no equilibrium: a force moves '{name}', and no spring, loop or contact resists. A free base in gravity falls without contacts; "
            "hold the moving bodies by fixed=, contacts= or a spring, or balance the force by tau="
        )
    hint = "pass an initial guess nearer to an equilibrium, or hold the falling bodies by fixed=, contacts= or tau="
    return f"no equilibrium was found: at the last step a force still moves '{name}'; {hint}"
