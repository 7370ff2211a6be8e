"""Contact: distances of collision shapes, and dynamics and impacts with rigid contact points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Array, ArrayLike, NDArray, checked_number, real_rows
from .._core import Status
from ..description.contacts import (
    COEFFICIENTS,
    OVERLAP,
    RESTITUTION_LAWS,
    Pair,
    check_apart,
    scene,
    told_by_file,
    touching_pairs,
)
from ..description.joints import unit_axis
from ..dynamics.derivatives import check_robot
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ShapeError, StateError, check_name


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contact points of collision shapes that touch, overlap or are close: the result of :meth:`sarrus.Mechanism.contacts`.

    Attributes
    ----------
    position : (n, 3) midpoint between the surfaces of the two shapes, in the world [m]
    normal : (n, 3) unit vector from the second shape to the first, in the world (dimensionless)
    distance : (n,) distance between the surfaces along the normal [m]; negative for penetration
    shapes, bodies : n pairs (first, second) of names
    id : (n,) integer identifier of a point; it does not change while the same features (faces, edges, corners) of the same shapes touch
    friction, restitution : (n,) coefficients of the pair (dimensionless)
    torsional_friction, rolling_friction : (n,) largest friction moments of the pair per normal force [m]
    state : (n,) index of the state in the flattened batch
    """

    position: Array
    normal: Array
    distance: Array
    shapes: tuple[tuple[str, str], ...]
    bodies: tuple[tuple[str, str], ...]
    id: NDArray[np.int64]
    friction: Array
    restitution: Array
    state: NDArray[np.int64]
    torsional_friction: Array
    rolling_friction: Array


def may_touch(robot: LoopFunctions) -> list[Pair]:
    """Return the pairs of the mechanism's shapes that may touch."""
    return touching_pairs(robot.description)


def touching(
    robot: LoopFunctions,
) -> tuple[_core.Scene, list[str], list[tuple[tuple[str, str], tuple[str, str]]], Array]:
    """Return the core's scene of the shapes, the bodies whose poses it expects, and names and coefficients (n, ...) of the pairs that may touch."""
    pairs: list[Pair] = robot._may_touch  # type: ignore[attr-defined]  # Mechanism has it
    terms, bodies = scene(robot.description, robot._solids, pairs)  # type: ignore[attr-defined]
    ends = [tuple(robot.description.shapes[k] for k in (pair.first, pair.second)) for pair in pairs]
    names = [((a.name, b.name), (a.body, b.body)) for a, b in ends]
    coefficients = np.array([[getattr(pair, name) for name in COEFFICIENTS] for pair in pairs])
    return _core.Scene(*terms), bodies, names, coefficients.reshape(-1, len(COEFFICIENTS))


def overlapping(robot: LoopFunctions, q: Array) -> Iterator[str]:
    """Yield a warning if, in the home configuration q, two shapes overlap that may touch."""
    if not robot.description.shapes or told_by_file(robot.description):
        return
    home_contacts = contacts(robot, q)
    size = {spec.name: spec.shape._reach for spec in robot.description.shapes}

    def rounds(pair: tuple[str, str]) -> float:
        """Return the overlap of two shapes [m] that counts as rounding, relative to the smaller shape, or to the mechanism if both are unbounded."""
        sizes = [x for x in (size[name] for name in pair) if 0.0 < x < np.inf]
        return OVERLAP * min(sizes, default=robot._length)

    pairs = dict.fromkeys(
        pair for pair, d in zip(home_contacts.shapes, home_contacts.distance, strict=True) if d < -rounds(pair)
    )
    if pairs:
        listed = ", ".join(f"'{first}' and '{second}'" for first, second in list(pairs)[:4]) + " …" * (len(pairs) > 4)
        yield f"shapes overlap in the home configuration: {listed}. Builder.set_contact(first, second, enabled=False) allows a pair to overlap"


def contacts(self: LoopFunctions, q: ArrayLike, *, within: float = 0.0) -> Contacts:
    """Return the contact points of collision shapes: at most four for each pair that may touch.

    Shapes are added by :meth:`~sarrus.Builder.add_shape`; :meth:`~sarrus.Builder.set_contact` selects pairs.

    Parameters
    ----------
    q : (..., nq) configuration [rad, m, quaternions (x, y, z, w)]
    within : largest distance between the surfaces at a returned point [m]; the default 0 returns points of surfaces that touch or overlap

    Returns
    -------
    Contacts, ordered by state, then by pair

    Raises
    ------
    ModelError
        The contact points of a pair that may touch are not implemented, such as a cylinder and a box.
    ShapeError, StateError
        q does not have nq entries in its last axis, or is not finite.
    TypeError, ValueError
        `within` is not a number, or not finite.

    Notes
    -----
    Distances are exact, with two exceptions:

    - an edge at an angle of less than 0.01 rad to a face is treated as parallel to it, with a relative error of 5e-5
    - if two boxes overlap deeply, the distances are those of the corners of the overlap, which may be less than the displacement that
      separates the boxes

    The contact points of a cylinder on a plane are on its rims.

    References
    ----------
    Gottschalk, Lin and Manocha 1996 (two boxes: fifteen axes); Sutherland and Hodgman 1974 (overlap of two faces).

    Examples
    --------
    >>> import sarrus
    >>> from sarrus.shapes import Plane, Sphere
    >>> b = sarrus.mechanisms.pendulum().to_builder()
    >>> b.add_shape("bob", Sphere(0.1), (0, 0, -1), name="ball")
    >>> b.add_shape("ground", Plane(), (0, 0, -1.2), name="floor")
    >>> points = b.build().contacts([0.0], within=0.2)
    >>> points.shapes, points.distance.round(9), points.normal
    ((('ball', 'floor'),), array([0.1]), array([[0., 0., 1.]]))
    """
    reach = checked_number("within", within, "")
    core, bodies, names, coefficients = self._touching  # type: ignore[attr-defined]  # Mechanism has it
    ground_pose = self.pose(q, "ground")  # also checks q of robots without shapes
    poses = np.stack([self.pose(q, body) for body in bodies], axis=-3) if bodies else ground_pose[..., None, :, :]
    state, pair, name, position, normal, distance = core.touching(poses.reshape(-1, *poses.shape[-3:]), reach)
    shapes, ends = zip(*(names[k] for k in pair.tolist()), strict=True) if pair.size else ((), ())
    numbers = dict(zip(COEFFICIENTS, coefficients[pair].T.copy(), strict=True))
    found = object.__new__(
        Contacts
    )  # without the constructor, which for a frozen dataclass takes as long as all distances
    vars(found).update(
        position=position, normal=normal, distance=distance, shapes=shapes, bodies=ends, id=name, state=state, **numbers
    )
    return found


__all__ = ["ContactMotion", "ContactPoint", "contact_dynamics", "contact_impact"]


@dataclass(frozen=True)
class ContactPoint:
    """Contact of a point or ball of a body with a plane of another body, in one state.

    A list of contact points is an input of :meth:`~sarrus.Mechanism.contact_dynamics` and :meth:`~sarrus.Mechanism.contact_impact`, which treat
    every point of the list as touching. A simulation detects contacts by itself: there, use :class:`sarrus.control.RigidContact`.

    Attributes
    ----------
    frame : body or frame; its origin is the point, or the ball's centre
    normal : name of a world axis, or (3,) vector in the world (dimensionless). It points out of the touched body: a contact force along it
        pushes the body of `frame` away
    friction : Coulomb coefficient (dimensionless)
    radius : radius of the ball [m]; 0 for a point
    restitution : coefficient of restitution, from 0 to 1 (dimensionless)
    restitution_law : definition of `restitution`. "newton": ratio of the normal velocities after and before the impact; "poisson": ratio of
        the normal impulses of expansion and compression. It is reduced where an impact would add energy
    on : name of the body or frame that carries the plane
    torsional_friction, rolling_friction : largest moments against spinning about the normal and against rolling, per normal force [m]
    """

    frame: str
    normal: Any = "z"
    friction: float = 0.6
    radius: float = 0.0
    restitution: float = 0.0
    on: str = "ground"
    torsional_friction: float = 0.0
    rolling_friction: float = 0.0
    restitution_law: str = "newton"

    def _described(self, robot: LoopFunctions) -> tuple[Any, ...]:
        for name in (self.frame, self.on):
            check_name("frame", name, robot.frames, "ContactPoint")
        check_apart(robot.description, self.frame, self.on, "ContactPoint")
        check_name("restitution_law", self.restitution_law, RESTITUTION_LAWS, "ContactPoint")
        numbers = {
            k: checked_number(f"{k} of ContactPoint", getattr(self, k), "")
            for k in ("radius", "friction", "restitution", "torsional_friction", "rolling_friction")
        }
        for name, x in numbers.items():
            if x < 0.0 or (name == "restitution" and x > 1.0):
                expected = "from 0 to 1" if name == "restitution" else "no less than 0"
                raise ModelError(f"{name} of ContactPoint must be {expected}; got {x!r}")
        return (
            self.frame,
            self.on,
            (0.0, 0.0, 0.0),
            unit_axis(self.normal),
            *numbers.values(),
            self.restitution_law == "poisson",
        )


@dataclass(frozen=True, eq=False)
class ContactMotion:
    """Motion of a mechanism with rigid contacts, and the contact forces; or velocity and impulses after an impact.

    Attributes
    ----------
    motion : (nv,) accelerations [rad/s^2, m/s^2], or velocities after the impact [rad/s, m/s]
    forces : (contacts, 3) contact forces on the bodies of `frame`, in the world [N], or impulses [N s]. Indeterminate forces minimise the sum of
        squares, each weighted by the mean inverse effective mass of its contact
    moments : (contacts, 3) moments of spinning and rolling friction, in the world [N m], or their impulses [N m s]
    natural_map : residual of the friction-cone conditions, as a velocity or an acceleration [m/s or m/s^2]
    iterations : number of linear systems solved for the friction-cone conditions
    """

    motion: Array
    forces: Array
    moments: Array
    natural_map: float
    iterations: int


WHY: dict[int, str] = {
    Status.NO_CONVERGENCE: "no forces satisfy the conditions of the contacts: friction may drive a body into the other one (Painlevé), or the "
    "contacts cannot separate",
    Status.OFF_LOOPS: "the loops are open, or do not allow this velocity: see project_configuration() and project_velocity()",
    Status.INCONSISTENT_CONSTRAINTS: "the loops' constraints contradict one another in this state",
    Status.NO_ANSWER: "a joint moves no mass, or rounding decides whether the constraint rows of the loops are independent",
}


def _response(
    robot: LoopFunctions,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    contacts: Sequence[ContactPoint],
    time: float | None,
) -> ContactMotion:
    check_robot(robot, variants=False)
    if not isinstance(contacts, Sequence) or not all(isinstance(c, ContactPoint) for c in contacts):  # type: ignore[redundant-expr]
        raise TypeError(f"contacts must be a list of ContactPoints; got {contacts!r}")
    if any(callable(getattr(spec, "rows", None)) for spec in robot.description.constraints):
        raise ModelError("functions of contacts do not support constraints whose rows are a function of q")
    q, v = real_rows("q", q, robot.nq), real_rows("v", v, robot.nv)
    push = None if tau is None else real_rows("tau", tau, robot.nv)
    if any(x is not None and x.ndim > 1 for x in (q, v, push)):
        raise ShapeError(f"functions of contacts accept one state only: q ({robot.nq},), v and tau ({robot.nv},)")
    described = [c._described(robot) for c in contacts]
    seconds = 0.0 if time is None else checked_number("time", time, "")
    answer = _core.contact_response(robot, described, robot.normalize(q), v, push, seconds)
    status, motion, forces, moments, cones, hit = answer
    if tau is not None and hit > 0.0:
        raise StateError(
            f"a contact point approaches its plane at {hit:.3g} m/s, which is an impact: use contact_impact()"
        )
    if status != Status.FINE:
        raise StateError(WHY[int(status)])
    return ContactMotion(motion, forces, moments, *cones[:2])


def contact_dynamics(
    robot: LoopFunctions,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    contacts: Sequence[ContactPoint],
    *,
    time: float | None = None,
) -> ContactMotion:
    """Return the accelerations under tau with rigid contacts and Coulomb friction, which satisfy the loop constraints, in one state.

    The contact forces at points at rest lie within their friction cones: such a point separates, sticks, or begins to slip against friction.
    At sliding points friction opposes the velocity. At separating points the contact force is zero. If several motions are possible (Painlevé
    paradox), one of them is returned.

    Parameters
    ----------
    q, v, tau : (nq,), (nv,), (nv,) configuration, velocity and generalised force [rad, m; rad/s, m/s; N m, N]; consistent with the loops
    contacts : list of :class:`~sarrus.ContactPoint`, the active contacts; q determines their positions
    time : time for prescribed motions [s]

    Returns
    -------
    :class:`~sarrus.results.ContactMotion`

    Raises
    ------
    StateError
        - A contact has an approaching normal velocity: call :meth:`contact_impact` first.
        - No contact forces satisfy the friction-cone conditions.
        - The errors of :meth:`forward_dynamics`.

    References
    ----------
    De Saxcé and Feng 1998; Alart and Curnier 1991; Acary, Brémond and Huber 2018.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> b = sarrus.Builder("block")
    >>> b.add_body("block", sarrus.Inertia.box(mass=2.0, size=(0.2, 0.2, 0.1)))
    >>> b.add_joint("float", sarrus.Free(), "ground", "block")
    >>> feet = [b.add_frame(f"foot{i}", "block", (x, y, -0.05)) or f"foot{i}" for i, (x, y) in enumerate([(-.1, -.1), (-.1, .1), (.1, -.1), (.1, .1)])]
    >>> robot = b.build()
    >>> touching = [sarrus.ContactPoint(f, friction=0.5) for f in feet]
    >>> q, push = [0, 0, 0, 1, 0, 0, 0.05], [0, 0, 0, 8.0, 0, 0]
    >>> rests = robot.contact_dynamics(q, np.zeros(6), push, touching)
    >>> float(abs(rests.motion).max().round(9)), (rests.forces.sum(axis=0).round(6) + 0.0).tolist()
    (0.0, [-8.0, 0.0, 19.62])
    """
    return _response(robot, q, v, tau, contacts, time)


def contact_impact(
    robot: LoopFunctions, q: ArrayLike, v: ArrayLike, contacts: Sequence[ContactPoint], *, time: float | None = None
) -> ContactMotion:
    """Return the velocities after an impact of contacts, and the impulses within the Coulomb cones, in one state.

    The velocities satisfy the loop constraints.

    - Newton's law: impacting points rebound with at least `restitution` times their normal velocity, and resting points do not penetrate.
    - Poisson's law: all contacts are first compressed. In the expansion, each contact receives at least `restitution` times the normal impulse
      of its compression.

    Where a law would add energy, because of friction or of other contacts, the coefficients of all contacts that affect each other are reduced by
    a common factor, to the largest at which kinetic energy is kept.

    Parameters
    ----------
    q, v : (nq,), (nv,) configuration and velocity [rad, m; rad/s, m/s] before the impact. If v violates loop constraints, their impulses are part of
        the impact
    contacts : list of :class:`~sarrus.ContactPoint`, the active contacts
    time : time for prescribed motions [s]

    Returns
    -------
    :class:`~sarrus.results.ContactMotion`, whose motion is the velocity and whose forces are impulses [N s]

    Raises
    ------
    StateError
        No impulses satisfy the friction-cone conditions; also the errors of :meth:`impact`.

    References
    ----------
    De Saxcé and Feng 1998; Glocker 2001; Glocker 2013 (Energetic consistency conditions for standard impacts II: Poisson's law).

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder("ball")
    >>> b.add_body("ball", sarrus.Inertia.sphere(mass=1.0, radius=0.1))
    >>> b.add_joint("float", sarrus.Free(), "ground", "ball")
    >>> hit = [sarrus.ContactPoint("ball", radius=0.1, restitution=0.5)]
    >>> b.build().contact_impact([0, 0, 0, 1, 0, 0, 0.1], [0, 0, 0, 0, 0, -2.0], hit).motion.round(9).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    """
    return _response(robot, q, v, None, contacts, time)
