"""Rigid contact in one state: what points that touch do, loops held exactly."""

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
    """Where a body touches: a point of it, or a ball, on a plane of another one.

    It is for :meth:`~sarrus.Mechanism.contact_dynamics` and :meth:`~sarrus.Mechanism.contact_impact`, which have one state and touch there. In a
    simulation, where a body comes and goes, the same contact is :class:`sarrus.control.RigidContact`.

    Attributes
    ----------
    frame : body or frame; its origin is the point, or the ball's centre
    normal : an axis or a vector of the world, out of what is touched: forces along it push the body
    friction : Coulomb's coefficient
    radius : of the ball [m]; 0: a point
    restitution : of an impact, from 0 to 1
    restitution_law : "newton": the share of the normal velocity that comes back; "poisson": the share of the normal impulse of compression that
        expansion has again
    on : body or frame that the plane belongs to
    torsional_friction, rolling_friction : against spinning about the normal and against rolling, by moments of up to so much times the force
        along the normal [m]
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
    """What follows from contacts.

    Attributes
    ----------
    motion : (nv,) accelerations, or velocities after the impact
    forces : (contacts, 3) on the bodies, in the world [N], or impulses [N s]: where they are not unique the least ones of those that make this motion,
        by the sum of squares, each times the mean inverse mass that its contact feels
    moments : (contacts, 3) likewise, of friction against spinning and rolling [N m], or their impulses [N m s]
    natural_map : how far the cones' conditions are off, as a velocity or an acceleration [m/s or m/s^2]
    iterations : how many equations the cones took
    """

    motion: Array
    forces: Array
    moments: Array
    natural_map: float
    iterations: int


WHY: dict[int, str] = {
    Status.NO_CONVERGENCE: "no forces were found that the contacts' conditions allow: friction may drive a body into what it touches (Painlevé), or nothing "
    "can give way",
    Status.OFF_LOOPS: "the loops stand open, or forbid this velocity: see project_configuration() and project_velocity()",
    Status.INCONSISTENT_CONSTRAINTS: "the loops' constraints contradict one another in this state",
    Status.NO_ANSWER: "a joint moves nothing that has inertia, or rounding decides which rows of the loops are independent",
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
        raise ModelError("contacts have no part in mechanisms of which a constraint's rows are a function of q")
    q, v = real_rows("q", q, robot.nq), real_rows("v", v, robot.nv)
    push = None if tau is None else real_rows("tau", tau, robot.nv)
    if any(x is not None and x.ndim > 1 for x in (q, v, push)):
        raise ShapeError(f"contacts are of one state: q ({robot.nq},), v and tau ({robot.nv},)")
    described = [c._described(robot) for c in contacts]
    seconds = 0.0 if time is None else checked_number("time", time, "")
    answer = _core.contact_response(robot, described, robot.normalize(q), v, push, seconds)
    status, motion, forces, moments, cones, hit = answer
    if tau is not None and hit > 0.0:
        raise StateError(f"a contact is hit at {hit:.3g} m/s, which is an impact: see contact_impact()")
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
    """Accelerations under tau where bodies touch: loops exact, contacts rigid, with Coulomb's friction. Of one state.

    Points at rest stay within their cones: they part, stick, or begin to slip against their friction; those that slip have it against that; those
    that move away have none. Where several motions are possible (Painlevé) it is one of them.

    Parameters
    ----------
    q, v, tau : (nq,), (nv,), (nv,); they satisfy the loops
    contacts : :class:`~sarrus.ContactPoint`, those that touch; where they are is q's to say
    time : [s], where motion is prescribed

    Returns
    -------
    :class:`~sarrus.results.ContactMotion`

    Raises
    ------
    StateError
        A contact is hit, which is an impact; no forces were found; or as :meth:`forward_dynamics`.

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
    """Velocities after an impact of bodies that touch, and its impulses: within Coulomb's cones, loops exact. Of one state.

    What hits comes back with `restitution` of its normal velocity, or faster (Newton); what rests does not sink in. With friction Newton's law can
    add energy (Kane): look at it where restitution is not zero, or take Poisson's, by which all that touches is compressed first, and then has
    at least `restitution` of that normal impulse again. That adds none without friction, nor where one contact has it.

    Parameters
    ----------
    q, v : (nq,), (nv,) before the impact; where v does not satisfy the loops, they take part in it
    contacts : :class:`~sarrus.ContactPoint`, those that touch
    time : [s], where motion is prescribed

    Returns
    -------
    :class:`~sarrus.results.ContactMotion`, whose motion is the velocity and whose forces are impulses [N s]

    Raises
    ------
    StateError
        No impulses were found; or as :meth:`impact`.

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
