"""Independent coordinates of a mechanism with loops, and its equations of motion in these coordinates.

The coordinates y are defined by their rates y-dot = E v, which are selected entries of v, or components of a frame's velocity. All velocities follow
as v = G y-dot + g. The core computes G, g and the equations of motion (``cpp/loops/reduced_dynamics.hpp``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, into, real_array, real_rows
from .._core import Status
from .._showing import Brief
from ..description.joints import PARAMETERS
from ..dynamics.loop_operations import LoopFunctions
from ..dynamics.options import Wrenches
from ..errors import ModelError, ShapeError, StateError
from .closing import closing, prepared
from .linear_algebra import FreeMotions, applied, same_freedom, transposed

Coordinates = str | Sequence[str | tuple[str, int]] | None


@dataclass(frozen=True, eq=False, repr=False)
class ReducedForm(Brief):
    """Equations of motion of a closed mechanism in independent coordinates y: mass_matrix y-ddot + bias = G^T tau.

    Attributes
    ----------
    coordinates : names of the coordinates; "joint[1]" is the second velocity of a joint, "tip tx" a component of a frame's velocity
    velocity : y-dot (..., k) of the state [rad/s, m/s]
    jacobian : G (..., nv, k), with v = G y-dot + drift [rad, m per rad, m]
    drift : g (..., nv), velocity due to prescribed motions [rad/s, m/s]
    jacobian_derivative : G-dot (..., nv, k), time derivative of G [rad, m per rad, m; per s]
    bias_acceleration : (..., nv) acceleration at y-ddot = 0: a = G y-ddot + bias_acceleration [rad/s^2, m/s^2]
    mass_matrix : G^T M G (..., k, k) [kg m2, kg m, kg]
    bias : (..., k) generalised forces along y that are required for y-ddot = 0 [N m, N]
    """

    coordinates: tuple[str, ...]
    velocity: Array
    jacobian: Array
    drift: Array
    jacobian_derivative: Array
    bias_acceleration: Array
    mass_matrix: Array
    bias: Array
    # index of each coordinate in the nv velocities, followed by the 6 components of the frame's velocity
    _places: list[int]

    def reduced_force(self, tau: ArrayLike) -> Array:
        """Return G^T tau (..., k) for a generalised force tau (..., nv) [N m, N].

        Parameters
        ----------
        tau : (..., nv) generalised force [N m, N]
        """
        tau = real_rows("tau", tau, self.jacobian.shape[-2], self.bias.shape[:-1])
        return applied(transposed(self.jacobian), tau)

    def forward(self, force: ArrayLike) -> Array:
        """Return the acceleration y-ddot (..., k) under generalised forces along y.

        Parameters
        ----------
        force : (..., k) generalised forces along y [N m, N]

        Raises
        ------
        StateError
            The mass matrix is singular, because a motion of the coordinates moves no mass.
        """
        need = self._checked("force", force) - self.bias
        try:
            return np.asarray(np.linalg.solve(self.mass_matrix, need[..., None])[..., 0])
        except np.linalg.LinAlgError:
            listed = ", ".join(self.coordinates)
            raise StateError(
                f"the coordinates {listed} cannot all move independently, or one of them moves no mass"
            ) from None

    def inverse(self, acceleration: ArrayLike) -> Array:
        """Return the generalised forces (..., k) along y [N m, N] that are required for an acceleration.

        Parameters
        ----------
        acceleration : (..., k) y-ddot [rad/s^2, m/s^2]
        """
        return applied(self.mass_matrix, self._checked("acceleration", acceleration)) + self.bias

    def full_velocity(self, velocity: ArrayLike) -> Array:
        """Return the velocity v (..., nv) of the mechanism for rates of the coordinates.

        Parameters
        ----------
        velocity : (..., k) y-dot [rad/s, m/s]
        """
        return applied(self.jacobian, self._checked("velocity", velocity)) + self.drift

    def full_acceleration(self, acceleration: ArrayLike) -> Array:
        """Return the generalised acceleration (..., nv) for an acceleration of the coordinates, at the velocity of the state.

        Parameters
        ----------
        acceleration : (..., k) y-ddot [rad/s^2, m/s^2]
        """
        return applied(self.jacobian, self._checked("acceleration", acceleration)) + self.bias_acceleration

    def _checked(self, name: str, x: ArrayLike) -> Array:
        return real_rows(name, x, len(self.coordinates), self.bias.shape[:-1])


def reduced_form(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, coordinates: Coordinates, time: ArrayLike | None = None, *,
    task: str | tuple[str, str] | None = None, independent: bool = True, wrenches: Wrenches | None = None, out: ReducedForm | None = None,
    **options: Any,
) -> tuple[ReducedForm, NDArray[np.int8] | None]:  # fmt: skip
    """Return the equations of motion in these coordinates, or in the velocity components of a task frame, and the status.

    The status is None without `return_status`. A StateError is raised if the coordinates do not determine the motion, or if `independent` is true and
    they outnumber the degrees of freedom. In a batch, such states are NaN instead.
    """
    q = q if type(q) is np.ndarray else real_array("q", q)
    v = v if type(v) is np.ndarray else real_array("v", v)
    one_state = q.ndim == v.ndim == 1 and wrenches is None and (time is None or not np.ndim(time))
    choice = _choose(robot, coordinates, task)
    if choice is None and not one_state:
        choice = _Choice.at(robot, best_shown(robot, q, time))
    frame, marks = ("ground", None) if choice is None else (choice.frame, choice.marks)
    if robot._asks_for_rows:
        options["pfaffian_rates"] = robot._pfaffian_numbers(q, v, True)
    options |= {"expressed_in": "world_aligned", "time": time, "wrenches": wrenches}
    answer: Any = robot._reduced_dynamics(q, v, closing(robot, (), ()).loops.units, marks, frame, **options)
    numbers, status = answer if options.get("return_status") else (answer, None)
    freedom, determined, count = numbers[:3].tolist() if numbers.ndim == 1 else (-1, -1, 0)
    if choice is None:
        places = [] if math.isnan(count) else numbers[3 : 3 + int(count)].tolist()
        choice = _Choice.at(robot, list(map(int, places)))
    if not freedom == determined == len(choice.names):
        status = judge(numbers, choice.names, independent, status)
    return _form(choice, numbers, out), status


@dataclass(frozen=True, eq=False)
class _Choice:
    """Chosen coordinates, and the layout of the core's result (cpp/loops/reduced_dynamics.hpp).

    Attributes
    ----------
    names : names of the coordinates
    places : index of each coordinate in the nv velocities, followed by the 6 components of the frame's velocity
    marks : (nv + 6,) number of each coordinate, counted from 1, at its index; 0 for velocities that are not coordinates
    answers : slice and shape of each array in a row of the core's result
    """

    names: tuple[str, ...]
    places: list[int]
    frame: str
    marks: Array
    answers: tuple[tuple[slice, tuple[int, ...]], ...]

    @classmethod
    def of(cls, robot: LoopFunctions, places: list[int], frame: str) -> _Choice:
        nv, k, all_names = robot.nv, len(places), velocity_names(robot)
        names = tuple(all_names[i] if i < nv else f"{frame} {PARAMETERS[i - nv]}" for i in places)
        if len(set(places)) < k:
            raise ModelError(f"a coordinate is named twice among {', '.join(names)}")
        marks = np.zeros(nv + 6)
        marks[places] = np.arange(1, k + 1)
        shapes = ((nv,), (nv,), (k,), (k,), (nv, k), (nv, k), (k, k))
        return cls(names, places, frame, marks, layout(3 + nv, shapes))

    @classmethod
    def at(cls, robot: LoopFunctions, places: list[int], frame: str = "ground") -> _Choice:
        """Return the choice with these indices, from the cache if possible."""
        return prepared(robot, ("coordinates", frame, *places), lambda: cls.of(robot, places, frame))


def layout(start: int, shapes: Iterable[tuple[int, ...]]) -> tuple[tuple[slice, tuple[int, ...]], ...]:
    """Return slice and shape of each array in a row of the core's result, in which the arrays follow one another from index `start`."""
    parts = []
    for shape in shapes:
        parts.append((slice(start, start + math.prod(shape)), shape))
        start += math.prod(shape)
    return tuple(parts)


def _choose(robot: LoopFunctions, coordinates: Coordinates, task: str | tuple[str, str] | None) -> _Choice | None:
    """Return the choice for the caller's arguments; None if the core selects the best-conditioned coordinates."""
    if task is not None:
        frame, components = frame_components("task", task)
        return _Choice.at(robot, [robot.nv + k for k in components], frame)
    if coordinates is None:
        return None
    if isinstance(coordinates, str) and coordinates == "actuated":
        return prepared(robot, coordinates, lambda: _Choice.at(robot, chosen(robot, "actuated") or []))
    return _Choice.at(robot, chosen(robot, coordinates) or [])


def best_shown(
    robot: LoopFunctions, q: ArrayLike, time: ArrayLike | None, scale: Array | None = None, first: Sequence[int] = ()
) -> list[int]:
    """Return the indices of the velocities that best represent the motions of all states q (..., nq); the indices `first` are always included."""
    nv, units = robot.nv, closing(robot, (), ()).loops.units if scale is None else scale
    numbers = robot._loop_motions(q, units, time=time, return_status=True)[0].reshape(-1, nv**2 + 1)
    sound = np.isfinite(numbers[:, -1])
    numbers = numbers if sound.all() else numbers[sound]
    count = same_freedom(numbers[:, -1].astype(int))
    return showing(numbers.sum(axis=0)[:-1].reshape(nv, nv), count, first[:count])


def judge(numbers: Array, names: Sequence[str], independent: bool, status: Any) -> Any:
    """Set the results to NaN in states whose motion the coordinates do not determine, or raise StateError if status is None; return the status."""
    freedom, determined, k = numbers[..., 0], numbers[..., 1], len(names)
    lost = determined < freedom
    depend = (k > freedom) & independent
    listed = ", ".join(names) or "no coordinates"
    if status is None:
        freedoms = freedom[np.isfinite(freedom)].astype(int)
        f = same_freedom(freedoms)
        if freedoms.size and independent and k > f:
            raise StateError(f"{listed} are not independent: there are {f} degrees of freedom")
        if freedoms.size and (k < f or (lost.ndim == 0 and lost)):
            rank = int(determined[np.isfinite(determined)].max())
            raise StateError(
                f"{listed} determine {rank} of {f} degrees of freedom; expected coordinates that determine all of them"
            )
    else:
        status = np.where((lost | depend) & (status == Status.FINE), Status.NO_ANSWER, status).astype(np.int8)
    numbers[lost | depend] = np.nan
    return status


def _form(choice: _Choice, numbers: Array, out: ReducedForm | None) -> ReducedForm:
    """Return the result for the core's rows."""
    if lead := numbers.shape[:-1]:
        parts = [numbers[..., at].reshape(*lead, *shape).copy() for at, shape in choice.answers]
    else:
        parts = [numbers[at] if len(shape) == 1 else numbers[at].reshape(shape) for at, shape in choice.answers]
    drift, bias_acceleration, velocity, bias, G, G_dot, mass = parts
    arrays = velocity, G, drift, G_dot, bias_acceleration, mass, bias
    if out is None:
        return ReducedForm(choice.names, *arrays, choice.places)
    if not isinstance(out, ReducedForm) or out.coordinates != choice.names:  # type: ignore[redundant-expr]
        raise ShapeError(f"out must be a ReducedForm for the coordinates {', '.join(choice.names)}; got {out!r}")
    for name, array in zip(ARRAYS, arrays, strict=True):
        into(getattr(out, name), array)
    return out


ARRAYS = [field.name for field in fields(ReducedForm)[1:-1]]


def chosen(robot: LoopFunctions, coordinates: Coordinates) -> list[int] | None:
    """Return the indices of the coordinates among the velocities; None if the core selects them."""
    if coordinates is None:
        return None
    expected = "coordinates must be 'actuated', or a sequence of joints' names"
    if isinstance(coordinates, str):
        if coordinates != "actuated":
            raise ModelError(f"{expected}, such as ['{coordinates}']")
        coordinates = robot.actuated
    elif not np.iterable(coordinates):
        raise TypeError(f"{expected}; got {coordinates!r}")
    columns = [k for coordinate in coordinates for k in _columns(robot, coordinate)]
    if len(set(columns)) < len(columns):
        names = velocity_names(robot)
        raise ModelError(f"a coordinate is named twice among {', '.join(names[k] for k in columns)}")
    return columns


def velocity_names(robot: LoopFunctions) -> list[str]:
    """Return a name for each velocity: "joint", or "joint[1]" if the joint has several."""
    return [
        joint.name if joint.nv == 1 else f"{joint.name}[{k}]"
        for joint in (robot.joint(name) for name in robot.joints)
        for k in range(joint.nv)
    ]


def frame_components(argument: str, value: str | tuple[str, str]) -> tuple[str, list[int]]:
    """Return a frame, and the indices of the named components of its velocity. If no components are named, return the indices of all six."""
    if isinstance(value, str):
        return value, list(range(6))
    if not isinstance(value, Sequence) or len(value) != 2 or not isinstance(value[0], str):  # type: ignore[redundant-expr]
        raise TypeError(f"{argument} must be a frame, or (frame, components) such as ('tip', 'tx tz'); got {value!r}")
    return value[0], component_rows(value[1])


def component_rows(components: str) -> list[int]:
    """Return the indices of components rx ry rz tx ty tz in a spatial vector; raise ModelError for other names."""
    if not isinstance(components, str):
        raise TypeError(f"components must be a str of names among {' '.join(PARAMETERS)}; got {components!r}")
    names = components.split()
    for name in names:
        if name not in PARAMETERS:
            raise ModelError(f"'{name}' is not one of {' '.join(PARAMETERS)}, the components of a velocity")
    return [PARAMETERS.index(name) for name in names]


def joint_velocity(robot: LoopFunctions, q: Array, name: str) -> Array:
    """Return E (..., nv of the joint, nv), which maps v to the velocities E v of a tree or loop joint.

    A prescribed motion of the joint does not change E.
    """
    joint = robot.joint(name)
    if not joint.closes_loop:
        return np.eye(robot.nv)[joint.v_slice]
    if not joint.type.constant_subspace and any(j.laws for j in robot.description.joints if j.name == name):
        raise ModelError(
            f"joint '{name}' follows time functions, so it cannot have a motor; name the motor of another joint"
        )
    rows = slice(joint._all_v.start - robot.nv, joint._all_v.stop - robot.nv)
    return np.asarray(robot._loop_joint_jacobian(q)[..., rows, :])


def _columns(robot: LoopFunctions, coordinate: str | tuple[str, int]) -> range:
    match coordinate:
        case str(name):
            index = None
        case (str(name), Integral() as index):
            pass
        case _:
            raise TypeError(f"a coordinate must be a joint's name, or (name, index); got {coordinate!r}")
    joint = robot._tree_joint(name, "velocity in v")
    columns = range(robot.nv)[joint.v_slice]
    if index is None:
        return columns
    if not 0 <= index < joint.nv:
        raise ModelError(
            f"joint '{name}' has {joint.nv} velocities; expected an index from 0 to {joint.nv - 1}, got ('{name}', {index})"
        )
    return columns[index : index + 1]


def showing(projector: Array, count: int, first: Sequence[int] = ()) -> list[int]:
    """Return the indices of `count` velocities that best represent the range of a projector (nv, nv); the indices `first` are always included.

    The velocities are those with the largest pivots in a Cholesky factorisation. Among pivots that differ only by rounding, the first is selected.
    """
    return _core.showing(projector, count, list(first))


def loop_motions(robot: LoopFunctions, J: Array) -> FreeMotions:
    """Return the solutions of J x = g for the mechanism's constraints. Ranks are those of the scaled J, so that they do not depend on units."""
    loops = closing(robot, (), ()).loops
    return FreeMotions(*_core.free_motions(J, loops.column_scale, loops.row_scale))
