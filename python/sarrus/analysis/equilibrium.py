"""Static equilibrium of mechanisms on springs, and how stiffly they stand.

The core takes the steps and finds the stiffness (``cpp/loops/equilibrium.hpp``); a contact is a frame that is led to a point, as in
:mod:`sarrus.analysis.assembly.closing`.
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
from .assembly.closing import Closing, closing, movable_frames, target_name
from .assembly.position import _closed
from .independent_coordinates import velocity_names
from .joint_targets import JointCoordinates, coordinates, start_near

STEPS = 200
NONE = 1e-10  # a stiffness below this part of the largest is none: ten times what differences leave


@dataclass(frozen=True, eq=False, repr=False)
class Equilibrium(Brief):
    """Where a mechanism rests, what holds it there, and how stiffly.

    Attributes
    ----------
    q : (..., nq) configuration [rad, m, unit quaternions]
    multipliers : (..., nc) of the loops, of several that do the same the smallest
    efforts : (..., nv) what the joints that were fixed are held by besides `tau`; zero in the others [N m, N]
    contact_forces : frame to (..., 3) force on the mechanism, in the world's axes [N]
    stiffness : (..., k) of the independent motions, least first [N m]: what its loops, joints and contacts leave free, with springs and gravity.
        Where states of a batch have fewer freedoms, NaN
    motions : (..., k, nv) these motions as velocities: orthonormal where radians compare with displacements of the mechanism's
        characteristic length, uncoupled and uncontacted [rad, m]
    stable : (...) whether no stiffness is negative: where all are positive, the potential energy is least
    neutral : (...) how many motions have no stiffness (1e-10 of the largest or less), such as the spin of a rod between ball joints
    status : (...) :class:`sarrus.results.Status`: 2 where no equilibrium was found
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
        """(..., nv, nv): how far a small generalised force moves the joints, dq = compliance dtau [rad, m; per N m, N].

        Along motions that have a stiffness: those without, counted by `neutral`, are left out.
        """
        k = np.nan_to_num(self.stiffness)
        stiff = abs(k) > NONE * abs(k).max(axis=-1, keepdims=True, initial=0.0)
        soft, motions = np.where(stiff, 1.0 / np.where(stiff, k, 1.0), 0.0), np.nan_to_num(self.motions)
        compliance = np.swapaxes(motions, -1, -2) @ (soft[..., None] * motions)
        return np.where((self.status == 0)[..., None, None], compliance, np.nan)

    @property
    def pulling(self) -> dict[str, NDArray[np.bool_]]:
        """Frame to (...) whether its contact pulls the mechanism down, which ground alone cannot."""
        return {frame: np.asarray(force @ self._gravity > 0.0) for frame, force in self.contact_forces.items()}


def equilibrium(
    robot: LoopFunctions, near: ArrayLike | JointCoordinates | None = None, *, fixed: JointCoordinates | None = None,
    tau: ArrayLike | None = None, contacts: str | Iterable[str] | Mapping[str, ArrayLike] | None = None, minimum: bool = True,
    time: ArrayLike | None = None, threads: int = 1,
) -> Equilibrium:  # fmt: skip
    """Where gravity, springs and constant forces balance on the loops: of one state, or of many, each from its own start.

    From a start onto which the loops are closed, downhill to a least potential energy: a stable equilibrium, and not always the nearest.
    Friction, dampers, limits of joints and controllers have no part in it; rows that hold velocities only, as rolling does, push like others.

    Parameters
    ----------
    robot : the mechanism
    near : where to start: (..., nq), or joints to coordinates, as in :meth:`~sarrus.Mechanism.assemble`; default: the home
    fixed : joints to coordinates that they are held at, (...) each [rad, m, quaternions (x, y, z, w)]
    tau : (..., nv) generalised force that stays as it is [N m, N]; default: none. Of a ball or free joint it turns with the joint, so that it has
        no energy, and `stable` is not told by the symmetric part of the stiffness alone
    contacts : names of frames, one or several, that stick where they are at the start, or frames to the points (..., 3) where they do, in the world,
        or to the height of the ground under where they are, (..., 1) of many [m]
    minimum : False: an equilibrium of any kind, the first to which Newton's steps lead, stable or not
    time : (...) at which motion is prescribed [s]
    threads : of a batch, of which each state has its own answer, however many there are

    Returns
    -------
    Equilibrium (of ``sarrus.results``)

    Raises
    ------
    StateError
        None was found: along which joint something stays unbalanced. In a batch such a row is NaN, and its status 2.
    AssemblyError
        The loops do not close with what is fixed, or contacts are out of reach.
    ModelError, NameNotFoundError
        Rows that are functions of the state, which the core does not know elsewhere; a joint or frame that is not there, or on the ground.

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
        raise TypeError(f"equilibrium is of a sarrus.Mechanism; got {robot!r}")
    if robot._asks_for_rows:
        fault = "rows that are functions of the state have no rates that the core knows"
        raise ModelError(f"{fault}, and without these there is no stiffness")
    goes_down, when = _arrays.checked_truth("minimum", minimum), cast(Any, _arrays.checked_times(time))
    force = np.zeros(robot.nv) if tau is None else _arrays.real_rows("tau", tau, robot.nv)
    held = coordinates(robot, fixed, many=True)
    at_time = {"time": when, "threads": _arrays.checked_count("threads", threads)}
    axes = {f"coordinates of joint '{name}'": x.shape[:-1] for name, x in held.items()} | {"time": np.shape(when)}
    searched = near is None or isinstance(near, Mapping)
    start = _closed(robot, {}, near, fixed, **at_time) if searched else _arrays.real_array("near", cast(Any, near))
    q = start_near(robot, start, held, when, _arrays.common_axes(axes | {"near": start.shape[:-1]}))
    points = _points(robot, contacts, q)
    axes |= {"near": q.shape[:-1], "tau": force.shape[:-1]}
    lead = _arrays.common_axes(axes | {f"contact of '{frame}'": x.shape[:-1] for frame, x in points.items()})
    how, q = closing(robot, tuple((frame, False) for frame in points), held), np.broadcast_to(q, (*lead, robot.nq))
    where = np.concatenate([np.broadcast_to(p, (*lead, 3)) for p in points.values()], axis=-1) if points else None
    sizes = np.cumsum([robot.nq, how.robot.nc, robot.nv, 1, 1, robot.nv, robot.nv])

    def balanced() -> tuple[list[Array], Array]:
        numbers, status = how.robot._equilibrium(
            q, force, how.scale, [float(goes_down), STEPS, 0.0], **how.at(when, where).data(q), threads=threads,
            return_status=True,
        )  # fmt: skip
        return np.split(numbers, sizes, axis=-1), status

    answer, status = balanced()
    if (open_ := answer[4] > tolerances.closed).any():  # a search closes what the core's few steps do not, or says why
        q = np.where(open_, _closed(robot, points, q, fixed, branch="any", **at_time), q)
        answer, status = balanced()
    unbalanced = (answer[4][..., 0] > tolerances.closed) | (abs(answer[6]).max(axis=-1, initial=0.0) > 1.0)
    state = np.where((status == 0) & unbalanced, Status.NO_ANSWER, status).astype(np.int8)
    answer[7] = answer[7].reshape(*lead, robot.nv, robot.nv)
    if not lead and state:
        raise StateError(_why(robot, how, answer))
    return _answer(robot, how, points, answer, state)


def _answer(
    robot: LoopFunctions, how: Closing, points: Iterable[str], answer: list[Array], state: NDArray[np.int8]
) -> Equilibrium:
    """Of what the core says."""
    touching = how.robot
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
    own = [k for name in robot.constraints for k in np.arange(touching.nc)[touching.constraint(name).rows]]
    pushes = {
        frame: touching.pose(q, frame, return_status=True)[0][..., :3, :3]
        @ multipliers[..., touching.constraint(target_name(frame)).rows, None]
        for frame in points
    }
    return Equilibrium(
        q, multipliers[..., own], np.where(how.moving, 0.0 * efforts, efforts), {f: x[..., 0] for f, x in pushes.items()}, stiffness, motions,
        ~(stiffness < -least).any(axis=-1) & (state == 0), (abs(stiffness) <= least).sum(axis=-1), state, robot.gravity,
    )  # fmt: skip


def _points(robot: LoopFunctions, contacts: Any, q: Array) -> dict[str, Array]:
    """Frame to the point (..., 3) where it sticks, of mechanisms at q."""
    points: dict[str, Array] = {}
    movable = movable_frames(robot)
    for frame in _arrays.checked_names("contacts", () if contacts is None else contacts):
        here = robot.pose(q, frame)[..., :3, 3]
        if frame not in movable:
            raise ModelError(f"frame '{frame}' sits on the ground: it touches nothing")
        if isinstance(contacts, Mapping):
            x = np.atleast_1d(_arrays.real_array(f"contact of '{frame}'", contacts[frame]))
            if x.shape[-1] not in (1, 3):
                raise ShapeError(
                    f"contact of '{frame}' is a point (..., 3), or a height, (..., 1) of many; got shape {x.shape}"
                )
            lead = _arrays.common_axes({"near": here.shape[:-1], f"contact of '{frame}'": x.shape[:-1]})
            here = np.broadcast_to(here, (*lead, 3)).copy()
            here[..., -x.shape[-1] :] = x
        points[frame] = here
    return points


def _why(robot: LoopFunctions, how: Closing, answer: list[Array]) -> str:
    """There is no equilibrium."""
    left, stiffness, imbalance = answer[2], answer[5], answer[6]
    name = velocity_names(robot)[int(abs(left * how.loops.column_scale * how.moving).argmax())]
    if (abs(imbalance[abs(stiffness) <= NONE * abs(stiffness).max()]) > 1.0).any():
        return (
            f"no equilibrium: a force moves '{name}', and no spring, loop or contact resists. A free base in gravity falls without contacts; "
            "hold what moves by fixed=, contacts= or a spring, or balance the force by tau="
        )
    hint = "start nearer to one, or hold what falls by fixed=, contacts= or tau="
    return f"no equilibrium was found: where the steps ended, a force still moves '{name}'; {hint}"
