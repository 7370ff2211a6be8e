"""Rigid contact in one state: accelerations, impacts and forces, with exact loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import _core
from .._arrays import Array, ArrayLike, checked_number, real_rows
from .._core import Status
from ..description.contacts import RESTITUTION_LAWS, check_apart
from ..description.joints import unit_axis
from ..errors import ModelError, ShapeError, StateError, check_name
from .derivatives import check_robot
from .loop_operations import LoopFunctions

__all__ = ["ContactMotion", "ContactPoint", "contact_dynamics", "contact_impact"]


@dataclass(frozen=True)
class ContactPoint:
    """Contact of a point or ball of a body with a plane of another body, in one state.

    It is the input of :meth:`~sarrus.Mechanism.contact_dynamics` and :meth:`~sarrus.Mechanism.contact_impact`, and active in their state. In a
    simulation, which detects contacts, the same contact is :class:`sarrus.control.RigidContact`.

    Attributes
    ----------
    frame : body or frame; its origin is the point, or the ball's centre
    normal : an axis or a vector of the world, out of the touched body: forces along it push the body of `frame`
    friction : Coulomb's coefficient
    radius : of the ball [m]; 0: a point
    restitution : of an impact, from 0 to 1
    restitution_law : "newton": ratio of the normal velocities; "poisson": ratio of the normal impulses of expansion and compression
    on : body or frame of the plane
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
    """Motion and forces of contacts.

    Attributes
    ----------
    motion : (nv,) accelerations, or velocities after the impact
    forces : (contacts, 3) on the bodies, in the world [N], or impulses [N s]. Indeterminate forces minimise the sum of squares, each weighted by
        the mean inverse effective mass of its contact
    moments : (contacts, 3) of spinning and rolling friction [N m], or their impulses [N m s]
    natural_map : residual of the cones' conditions, as a velocity or an acceleration [m/s or m/s^2]
    iterations : number of equations solved for the cones
    """

    motion: Array
    forces: Array
    moments: Array
    natural_map: float
    iterations: int


WHY: dict[int, str] = {
    Status.NO_CONVERGENCE: "no forces satisfy the conditions of the contacts: friction may drive a body into the other one (Painlevé), or the "
    "contacts cannot separate",
    Status.OFF_LOOPS: "the loops are open, or forbid this velocity: see project_configuration() and project_velocity()",
    Status.INCONSISTENT_CONSTRAINTS: "the loops' constraints contradict one another in this state",
    Status.NO_ANSWER: "a joint has no inertia along it, or the independence of rows of the loops is decided by rounding",
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
        raise ModelError("contacts do not support mechanisms with a constraint whose rows are a function of q")
    q, v = real_rows("q", q, robot.nq), real_rows("v", v, robot.nv)
    push = None if tau is None else real_rows("tau", tau, robot.nv)
    if any(x is not None and x.ndim > 1 for x in (q, v, push)):
        raise ShapeError(f"contacts need one state: q ({robot.nq},), v and tau ({robot.nv},)")
    described = [c._described(robot) for c in contacts]
    seconds = 0.0 if time is None else checked_number("time", time, "")
    answer = _core.contact_response(robot, described, robot.normalize(q), v, push, seconds)
    status, motion, forces, moments, cones, hit = answer
    if tau is not None and hit > 0.0:
        raise StateError(f"a contact point approaches its plane at {hit:.3g} m/s, an impact: use contact_impact()")
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
    """Return accelerations under tau with rigid contacts and Coulomb friction, with exact loops, in one state.

    The forces of points at rest are within their friction cones: these points separate, stick, or begin to slip against friction. The friction of
    sliding points is against their velocity; separating points have no force. If several motions are possible (Painlevé), it returns one of them.

    Parameters
    ----------
    q, v, tau : (nq,), (nv,), (nv,) configuration, velocity and generalised force [rad, m; rad/s, m/s; N m, N]; consistent with the loops
    contacts : list of :class:`~sarrus.ContactPoint`, the active contacts, with positions from q
    time : time for prescribed motions [s]

    Returns
    -------
    :class:`~sarrus.results.ContactMotion`

    Raises
    ------
    StateError
        A contact has an impact; no forces satisfy the conditions; or as :meth:`forward_dynamics`.

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
    """Return velocities after an impact of contacts, and its impulses within Coulomb's cones, with exact loops, in one state.

    By Newton's law, impacting points rebound with at least `restitution` times their normal velocity, and resting points do not penetrate. With
    friction, Newton's law can add energy (Kane): check the energy if restitution is not zero, or use Poisson's law. There all contacts are first
    compressed, and then receive at least `restitution` times that normal impulse again. It adds no energy without friction, nor for a single
    contact with friction.

    Parameters
    ----------
    q, v : (nq,), (nv,) configuration and velocity [rad, m; rad/s, m/s] before the impact; loops that v violates take part in it
    contacts : list of :class:`~sarrus.ContactPoint`, the active contacts
    time : time for prescribed motions [s]

    Returns
    -------
    :class:`~sarrus.results.ContactMotion`, whose motion is the velocity and whose forces are impulses [N s]

    Raises
    ------
    StateError
        No impulses satisfy the conditions; or as :meth:`impact`.

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
