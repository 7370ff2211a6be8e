"""Force elements of a simulation, evaluated in C++: controllers, drives, prescribed efforts, friction, contact, end stops, actuators.

A force element, or a list of them, is the argument ``controller`` of :func:`~sarrus.simulate`. Targets are numbers or functions of time
(:mod:`sarrus.laws`). For :func:`~sarrus.simulate_many`, a numerical parameter may be an array (runs,), and a time function may be a sequence with a
time function for each run. Sampled controllers have a zero-order hold and a delay; tables contain precomputed efforts.

>>> import sarrus
>>> robot = sarrus.mechanisms.pendulum()
>>> hold = sarrus.control.PID("pivot", proportional=100.0, derivative=20.0, target=0.5)
>>> run = sarrus.simulate(robot, [0.0], [0.0], 4.0, controller=hold)
>>> float(run.q[-1, 0].round(2))
0.46
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, cast

import numpy as np

from .._arrays import ArrayLike
from .._deferred import dataclass
from ..description.contacts import COEFFICIENTS, scene
from ..description.joints import Revolute
from ..description.specs import Description
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError
from ..laws import Law
from .element import KINDS, TYPED, Element, Run, constant, declared, entries, functions_and_elements

__all__ = [
    "PID",
    "ActuatorModel",
    "AppliedWrench",
    "Bushing",
    "CollisionContacts",
    "CompliantContact",
    "ComputedTorque",
    "EffortTable",
    "EndStop",
    "FeedforwardEffort",
    "GasSpring",
    "GravityCompensation",
    "LuGreFriction",
    "PDPlus",
    "PinClearance",
    "Quantisation",
    "ReactionWheel",
    "RigidContact",
    "SampleAndHold",
    "Thruster",
    "rest_to_rest",
]  # fmt: skip

Number = float | ArrayLike
Steps = float | Mapping[str, float]
Laws = Law | Number | Sequence[Law | float]  # time function or number; a sequence has an item for each run


@dataclass(frozen=True, eq=False)
class PID(Element):
    """Proportional, integral and derivative control of one joint coordinate, within limits.

    The effort is u = kp e + kd de/dt + z with dz/dt = ki e and e = target(t) - q. Anti-windup: if u approaches a limit, dz/dt is limited to the
    remaining distance to the limit per 1 ms.

    Attributes
    ----------
    joint, index : name of the joint, and index of its coordinate
    proportional, integral, derivative : kp [N m/rad or N/m], ki [N m/(rad s) or N/(m s)], kd [N m s/rad or N s/m]
    target : target of the coordinate, a time function or a number [rad or m]
    limits : (lower, upper) limits of the effort [N m or N]; infinity: no limit
    """

    joint: str
    proportional: Number = 0.0
    integral: Number = 0.0
    derivative: Number = 0.0
    target: Laws = 0.0
    limits: tuple[Number, Number] = (-np.inf, np.inf)
    index: int = 0


@dataclass(frozen=True, eq=False)
class FeedforwardEffort(Element):
    """Effort along one velocity of a joint as a function of time.

    Attributes
    ----------
    joint, index : name of the joint, and index of its velocity
    law : effort, a time function or a number [N m or N]
    """

    joint: str
    law: Laws
    index: int = 0


@dataclass(frozen=True, eq=False)
class _Tracking(Element):
    """Tracking of coordinates by all motors, with a dynamic model of the mechanism."""

    targets: Mapping[str, Any]
    proportional: Number = 100.0
    derivative: Number = 20.0


@dataclass(frozen=True, eq=False)
class ComputedTorque(_Tracking):
    """Computed torque: tau = M a + h with a = g'' + kd (g' - v) + kp (g - q) and targets g(t). Errors decay like linear oscillators.

    Without loops, all tree joints have a target and a motor. With loops, as many independent coordinates have a target as the mechanism has degrees
    of freedom. The loop constraints then determine the accelerations of all joints, and redundant motors have the efforts of least norm. The
    simulation fails at singular positions and with too few motors, because the acceleration then violates the loop constraints or requires other
    efforts.

    Attributes
    ----------
    targets : tree joint to its target [rad or m]: a time function or number, or a sequence of these with an item for each run. The target of a joint
        with several coordinates is a sequence of such targets. Without loops, the default target is 0
    proportional, derivative : kp [1/s2], kd [1/s]: a number; (n,) values for the n targets; or (runs, n) or (runs, 1) for many runs. Without loops n
        = nv and the order is that of v; with loops it is the order of ``targets``

    References
    ----------
    Murray, Li and Sastry 4.5; Li and Wu 4.4 and 4.6.

    Examples
    --------
    >>> import sarrus
    >>> fourbar = sarrus.mechanisms.four_bar()
    >>> q = fourbar.assemble(fixed={"motor": 0.5})
    >>> law = sarrus.control.ComputedTorque({"motor": 1.0}, proportional=100.0, derivative=20.0)
    >>> run = sarrus.simulate(fourbar, q, [0.0, 0.0, 0.0], 1.0, law)
    >>> float(run.q[-1, 0].round(3))                                      # 1 - 0.5 (1 + 10) exp(-10)
    1.0
    """


@dataclass(frozen=True, eq=False)
class PDPlus(_Tracking):
    """PD+ tracking control: tau = M g'' + C(q, v) g' + n + kp (g - q) + kd (g' - v), with the forces n of gravity and springs (Paden and Panja 1988).

    g(t) are the targets, and C is the Coriolis matrix with dM/dt - 2 C skew. The energy of the error, (v - g')' M (v - g') / 2 + kp (q - g)^2 / 2,
    never grows, because kd and friction dissipate it. Therefore the control is stable for all positive gains, independent of the masses. In contrast
    to :class:`ComputedTorque`, the errors of joints are coupled by the mechanism's inertia. With loops, g' and g'' of all joints follow from the loop
    constraints, as in ComputedTorque. Dampers between bodies are not compensated.

    Attributes
    ----------
    targets : as for :class:`ComputedTorque`
    proportional, derivative : kp [N m/rad, N/m], kd [N m s/rad, N s/m]; shapes as for :class:`ComputedTorque`

    References
    ----------
    Paden and Panja, Globally asymptotically stable PD+ controller for robot manipulators, Int. J. Control 47, 1988.
    """


@dataclass(frozen=True, eq=False)
class GravityCompensation(Element):
    """Motor efforts that balance gravity and springs at rest, in addition to other controllers.

    With loops, redundant motors have the efforts of least norm, and the simulation fails if the motors cannot balance the load. Without loops, each
    actuated joint balances its own load; if no joint is actuated, all joints do.

    Attributes
    ----------
    scale : fraction of the load that is balanced, 1 for the whole load (dimensionless)

    Examples
    --------
    >>> import sarrus
    >>> delta = sarrus.mechanisms.delta()
    >>> q = delta.assemble()
    >>> run = sarrus.simulate(delta, q, [0.0] * delta.nv, 0.5, sarrus.control.GravityCompensation())
    >>> bool(abs(run.v).max() < 1e-9)
    True
    """

    scale: Number = 1.0


@dataclass(frozen=True, eq=False)
class LuGreFriction(Element):
    """LuGre friction of a joint, with sticking: bristles deflect by z, and slip beyond `sticking` (Canudas de Wit and others 1995).

    The friction is s0 z + c dz/dt, with dz/dt = (v - r z) / (1 + r 1 ms), r = |v| s0 / F(v) and F(v) = sliding + (sticking - sliding)
    exp(-(v/v_s)^2). It differs from the LuGre model in two points. First, the time constant of the bristles is at least 1 ms. Second, c is the
    smaller of s1 and s0/r, so that friction of fast motion is F(v), without a viscous part. In slow motion, |v| < F(v)/s1, c equals s1 as in the
    LuGre model.

    Attributes
    ----------
    joint, index : name of the joint, and index of its velocity
    sliding, sticking : friction in motion, and breakaway friction, which is not less [N m or N]; default of sticking: sliding
    stribeck_velocity : v_s, velocity at which breakaway friction changes into sliding friction [rad/s or m/s]
    stiffness, damping : s0 [N m/rad or N/m] and s1 [N m s/rad or N s/m] of the bristles; default of damping: critical damping,
        2 sqrt(stiffness times the effective inertia of the joint in the initial configuration)
    """

    joint: str
    sliding: Number
    sticking: Number | None = None
    stribeck_velocity: Number = 0.01
    stiffness: Number = 1e4
    damping: Number | None = None
    index: int = 0

    stiff = True
    stores = True


@dataclass(frozen=True, eq=False)
class CompliantContact(Element):
    """Compliant contact of a point or sphere with the ground, with smooth Coulomb friction.

    The normal force at penetration d is k d^n (1 + c d') (Hunt and Crossley 1975).

    Attributes
    ----------
    frame : name of the body or frame whose origin is the point, or the sphere's centre
    radius : radius of the sphere [m]; 0 for a point
    normal, offset : plane normal . x = offset in the world [m]; the normal is the name of an axis or a vector, and points out of the ground
    height : height of rough ground above this plane [m], as a function (``sarrus.laws``) of the distance along . x [m]; None: the plane. The contact
        point is the nearest point of the ground, searched from below the centre; therefore valleys must be wider than the sphere
    along : direction in which the height of the ground changes, perpendicular to the normal: name of an axis or a vector
    stiffness, exponent, dissipation : k [N/m^n], n (dimensionless), c [s/m]
    friction, slip_velocity : coefficient of friction (dimensionless), and the slip speed at which friction is 0.7 of its limit [m/s]
    """

    frame: str
    radius: float = 0.0
    normal: Any = "z"
    offset: float = 0.0
    stiffness: Number = 1e5
    exponent: Number = 1.5
    dissipation: Number = 0.5
    friction: Number = 0.6
    slip_velocity: Number = 1e-3
    height: Law | Sequence[Law] | None = None
    along: Any = "x"

    stiff = True
    stores = True


@dataclass(frozen=True, eq=False)
class Bushing(Element):
    """Bushing, such as a rubber mount: six springs and dampers between two frames.

    Its coordinates are the rotation vector of `frame` relative to `on`, and the displacement of its origin in the axes halfway between both frames.
    The force along each coordinate x is preload - k x - c dx/dt. These forces derive from the energy k x^2 / 2, and do not change if the frames are
    exchanged. The rotation must be less than half a revolution, where a simulation issues a ModelWarning. The energy is not included in
    :attr:`Trajectory.energy <sarrus.Trajectory.energy>`.

    Attributes
    ----------
    frame, on : names of the bodies or frames; without preload, the springs are relaxed if the frames coincide
    stiffness, damping : (6,) k [N m/rad, N/m] and c [N m s/rad, N s/m], [rotations; displacements]; (runs, 6) for many runs
    preload : (6,) moment and force on the body of `frame` at zero displacement [N m, N]; (runs, 6) for many runs

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder("engine")
    >>> b.add_body("engine", sarrus.Inertia.sphere(80.0, 0.2))
    >>> b.add_joint("float", sarrus.Free(), "ground", "engine")
    >>> mount = sarrus.control.Bushing("engine", "ground", [500, 500, 500, 1e5, 1e5, 2e5], [20, 20, 20, 1e3, 1e3, 2e3])
    >>> run = sarrus.simulate(b.build(), [0, 0, 0, 1, 0, 0, 0], [0] * 6, 1.0, mount)
    >>> float(run.q[-1, 6].round(6)), -80 * 9.81 / 2e5
    (-0.003924, -0.003924)
    """

    frame: str
    on: str
    stiffness: ArrayLike
    damping: ArrayLike = 0.0
    preload: ArrayLike = 0.0

    stiff = True
    implicit = True


@dataclass(frozen=True, eq=False)
class PinClearance(Element):
    """Radial play of a pin in a bearing: the pin moves freely within the clearance, and presses on the wall beyond it.

    The normal force at penetration d is k d^n (1 + c d'), as for :class:`CompliantContact` (Hunt and Crossley 1975); friction acts at the radius of the
    pin. Lankarani and Nikravesh (1990) use c = 3 (1 - e^2) / (4 v) for restitution e at impact speed v. Motion along the axis and tilting are free,
    except for friction: two elements at the ends of a bearing limit tilting. The joint itself is not part of the mechanism.
    :class:`sarrus.design.Clearance` is the distance to singular positions.

    Attributes
    ----------
    frame, on : names of the bodies or frames whose origins are on the axes of the pin and of the bearing
    clearance : radius of the bearing minus radius of the pin [m]
    radius : radius of the pin [m]
    stiffness, exponent, dissipation : k [N/m^n], n (dimensionless), c [s/m]
    friction, slip_velocity : coefficient of friction (dimensionless), and the slip speed at which friction is 0.7 of its limit [m/s]
    axis : direction of the bearing's axis, in the axes of `on`: name of an axis or a vector

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder("pin")
    >>> b.add_body("pin", sarrus.Inertia.cylinder(0.5, 0.01, 0.05, "y"))
    >>> b.add_joint("plane", sarrus.Planar("y"), "ground", "pin")
    >>> play = sarrus.control.PinClearance("pin", "ground", 1e-4, 0.01, 1e8, dissipation=5.0, axis="y")
    >>> run = sarrus.simulate(b.build(), [0] * 3, [0] * 3, 0.5, play)
    >>> float(run.frame("pin")[-1, 2, 3].round(6)), round(-1e-4 - (0.5 * 9.81 / 1e8) ** (2 / 3), 6)
    (-0.000113, -0.000113)
    """

    frame: str
    on: str
    clearance: Number
    radius: Number
    stiffness: Number
    exponent: Number = 1.5
    dissipation: Number = 0.5
    friction: Number = 0.0
    slip_velocity: Number = 1e-3
    axis: Any = "z"

    stiff = True
    implicit = True
    stores = True


@dataclass(frozen=True, eq=False)
class GasSpring(Element):
    """Gas spring between two points, which pushes them apart, in the terms of a datasheet.

    Compressed by x from the extended length, the gas has the force F1 (1 - (1 - P^(-1/n)) x / stroke)^(-n): F1 if extended, and P F1 if compressed by
    the stroke. Damping, friction against the motion and stops at both ends are added. The stops have the law of :class:`EndStop`. The atmospheric
    pressure, and heat that the gas stores, are neglected. The energy is not included in :attr:`Trajectory.energy <sarrus.Trajectory.energy>`.

    Attributes
    ----------
    frame, on : names of the bodies or frames whose origins are the two points
    extended_length, stroke : distance of the points if the rod is extended, and the travel to the compressed length [m]
    force : F1, force of the gas at the extended length [N]
    progression : P, force at the compressed length divided by F1, at least 1 (dimensionless)
    exponent : polytropic exponent n: 1 for slow (isothermal) motion, up to 1.4 for fast motion of nitrogen (dimensionless)
    damping : damping along the line [N s/m]
    friction, slip_velocity : friction [N], and the speed at which it is 0.7 of this value [m/s]. With a datasheet's forces F1 (extending) and F3
        (compressing) at one length, force is (F1 + F3)/2 and friction (F3 - F1)/2
    stop_stiffness, stop_damping : k [N/m] and c [N s/m] of the stops; defaults: 100 F1/stroke, and k times 10 ms. 0: no stops

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder("weight on a gas spring")
    >>> b.add_body("weight", sarrus.Inertia.sphere(50.0, 0.1))
    >>> b.add_joint("guide", sarrus.Prismatic("z"), "ground", "weight")
    >>> strut = sarrus.control.GasSpring("weight", "ground", 0.5, 0.2, force=400.0, progression=1.5, damping=300.0)
    >>> run = sarrus.simulate(b.build(), [0.4], [0.0], 10.0, strut)
    >>> float(run.q[-1, 0].round(4)), round(0.5 - (1 - 400 / (50 * 9.81)) * 0.2 / (1 - 1 / 1.5), 4)
    (0.3893, 0.3893)
    """

    frame: str
    on: str
    extended_length: Number
    stroke: Number
    force: Number
    progression: Number = 1.3
    exponent: Number = 1.0
    damping: Number = 0.0
    friction: Number = 0.0
    slip_velocity: Number = 1e-2
    stop_stiffness: Number | None = None
    stop_damping: Number | None = None

    stiff = True
    implicit = True


@dataclass(frozen=True, eq=False)
class RigidContact(Element):
    """Rigid contact of a point or sphere of a body with a plane of the world, or of another body, for ``method="contact"``.

    For contacts in a single state, use :class:`sarrus.ContactPoint` instead.

    The contact impulse lies within the Coulomb cone. Impacts rebound by `restitution`, unless they are slower than the velocity that gravity causes
    in three steps. Indeterminate forces minimise the sum of their squares, each weighted by the inverse effective mass of its contact.

    The forces are in :attr:`Trajectory.contacts <sarrus.Trajectory.contacts>`. Each contact also has four entries in
    :attr:`Trajectory.internal_state <sarrus.Trajectory.internal_state>`: the mean force of the step before a sample, along the normal and two
    tangents [N], and the residual of the contact conditions [m/s]. With torsional or rolling friction, three moments about these axes follow [N m].

    Attributes
    ----------
    frame : name of the body or frame whose origin is the point, or the sphere's centre
    radius : radius of the sphere [m]; 0 for a point
    on : name of the body or frame that carries the plane
    normal, offset : plane normal . x = offset in the axes of `on` [m]; the normal is the name of an axis or a vector, and points out of the solid
    friction : Coulomb coefficient (dimensionless)
    restitution : coefficient of restitution, from 0 to 1 (dimensionless)
    restitution_law : definition of `restitution`. "newton": ratio of the normal velocities after and before the impact; "poisson": ratio of
        the normal impulses of expansion and compression. It is reduced where an impact would add energy
    torsional_friction, rolling_friction : largest moments against spinning about the normal and against rolling, per normal force [m]. A
        :class:`TaskControl` ignores them, with a ModelWarning

    Examples
    --------
    >>> import sarrus
    >>> b = sarrus.Builder("ball")
    >>> b.add_body("ball", sarrus.Inertia.sphere(mass=1.0, radius=0.1))
    >>> b.add_joint("float", sarrus.Free(), "ground", "ball")
    >>> ground = sarrus.control.RigidContact("ball", radius=0.1)
    >>> run = sarrus.simulate(b.build(), [0, 0, 0, 1, 0, 0, 0.3], [0.0] * 6, 1.0, ground)
    >>> float(run.q[-1, 6].round(6)), float(abs(run.v[-1]).max().round(6))
    (0.1, 0.0)
    """

    frame: str
    radius: float = 0.0
    on: str = "ground"
    normal: Any = "z"
    offset: float = 0.0
    friction: Number = 0.6
    restitution: Number = 0.0
    torsional_friction: Number = 0.0
    rolling_friction: Number = 0.0
    restitution_law: str = "newton"

    rigid = True


@dataclass(frozen=True, eq=False)
class CollisionContacts(Element):
    """Rigid contact between the shapes of a mechanism, for ``method="contact"``, which adds it automatically.

    Add this element yourself only to change coefficients, for each run if necessary. Contact points are computed as in
    :meth:`sarrus.Mechanism.contacts`. Their forces lie within the Coulomb cones, as for :class:`RigidContact`, and are in
    :attr:`Trajectory.contacts <sarrus.Trajectory.contacts>`.

    Attributes
    ----------
    friction, restitution, torsional_friction, rolling_friction : coefficients of all pairs [dimensionless, dimensionless, m, m], a number or (runs,)
        for many runs; or a dict of pairs of shape names (first, second) to these. Default: coefficients of the shapes and of
        :meth:`~sarrus.Builder.set_contact`
    restitution_law : definition of restitution for all pairs, as for :class:`RigidContact`

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> from sarrus.shapes import Box, Plane
    >>> b = sarrus.Builder("brick")
    >>> b.add_body("brick", sarrus.Inertia.box(2.0, (0.3, 0.2, 0.1)))
    >>> b.add_joint("float", sarrus.Free(), "ground", "brick")
    >>> b.add_shape("brick", Box((0.3, 0.2, 0.1)))
    >>> b.add_shape("ground", Plane(), (0, 0, -0.05), name="floor")
    >>> icy = sarrus.control.CollisionContacts(friction=np.array([0.0, 0.1, 0.5]))
    >>> start, shoved = [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 1.0, 0, 0]
    >>> runs = sarrus.simulate_many(b.build(), start, shoved, 1.0, icy, dt=4e-3)
    >>> (runs.v[:, -1, 3].round(6) + 0.0).tolist()  # v - mu g t
    [1.0, 0.019, 0.0]
    """

    friction: Number | Mapping[tuple[str, str], Number] | None = None
    restitution: Number | Mapping[tuple[str, str], Number] | None = None
    torsional_friction: Number | Mapping[tuple[str, str], Number] | None = None
    rolling_friction: Number | Mapping[tuple[str, str], Number] | None = None
    restitution_law: str = "newton"

    rigid = True

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        robot: Any = mechanism
        pairs = robot._may_touch
        if not pairs:
            raise ModelError(
                f"CollisionContacts: '{robot.name}' has no pair of shapes that may touch: see Builder.add_shape"
            )
        terms, bodies = scene(robot.description, robot._solids, pairs)
        coefficients = [[getattr(pair, key) for key in COEFFICIENTS] for pair in pairs]
        names: list[tuple[str, str]] = []
        if any(isinstance(getattr(self, key), Mapping) for key in COEFFICIENTS):
            shapes = robot.description.shapes
            names = [(shapes[pair.first].name, shapes[pair.second].name) for pair in pairs]
        return {"scene": terms, "bodies": bodies, "coefficients": coefficients, "pairs": names}


@dataclass(frozen=True, eq=False)
class EndStop(Element):
    """Spring and damper beyond the limits of a joint coordinate: k d + c d', with |c d'| at most k d.

    d is the distance beyond the limit. The force never pulls the coordinate towards the limit. The force is continuous at the limit, and every impact
    dissipates energy. The spring's energy is not included in :attr:`Trajectory.energy <sarrus.Trajectory.energy>`. With ``method="contact"`` the stop
    is rigid. Then the trajectory's `internal_state` has the mean force of the step before a sample, which `tau`, `a` and reactions include.

    With several joints, the limits apply to the sum of their coordinates. An example is a rope over pulleys, in which each section between two
    pulleys is a :meth:`cable <sarrus.Builder.add_cable>`: the rope is taut if the sum of all lengths reaches the rope's length.

    Attributes
    ----------
    joint, index : name of the joint, and index of its coordinate; or several names of joints, in which a repeated joint is added twice
    limits : (lower, upper) limits [rad or m]; infinity: no limit; default: the limits of the joint
    stiffness : k [N m/rad or N/m]; default: 2.5e5/s2 times the effective inertia of the joint in the initial configuration, with closed loops. An
        impact with velocity v then penetrates by about v/(600/s), which steps of 1 ms resolve
    damping : c [N m s/rad or N s/m]; default: sqrt(k times this inertia), half of critical damping

    Examples
    --------
    >>> import sarrus
    >>> run = sarrus.simulate(sarrus.mechanisms.pendulum(), [1.2], [0.0], 3.0, sarrus.control.EndStop("pivot", limits=(-0.5, 2.0)))
    >>> float(run.q.min().round(3))
    -0.505
    """

    joint: str | Sequence[str]
    limits: tuple[Number, Number] | None = None
    stiffness: Number | None = None
    damping: Number | None = None
    index: int = 0

    stores = True


@dataclass(frozen=True, eq=False)
class Thruster(Element):
    """Force along an axis of a frame, at its origin, within limits; by default it cannot pull.

    Attributes
    ----------
    frame : name of the body or frame
    thrust : force, a time function or a number [N]; saturated by `limits`
    axis : direction of the force on the body, in the axes of the frame: "x", "-z" or a vector
    limits : (smallest, largest) thrust [N]; infinity: no limit

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.free_flyer()
    >>> push = sarrus.control.Thruster("satellite", 30.0, "x", limits=(0.0, 20.0))
    >>> run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 1.0, push)
    >>> (run.momentum[-1, 3:].round(3) + 0.0).tolist()                # 20 N for a second; the satellite has turned a little
    [20.0, 0.0, 0.001]
    """

    frame: str
    thrust: Laws
    axis: Any = "x"
    limits: tuple[Number, Number] = (0.0, np.inf)


@dataclass(frozen=True, eq=False)
class AppliedWrench(Element):
    """Load on a body: a wrench whose components are functions of time, at the origin of a frame.

    The argument ``wrenches={frame: wrench}`` of :func:`~sarrus.simulate` and :func:`~sarrus.simulate_many` creates such elements. Order, sign, axes and
    point are those of the argument ``wrenches`` of :meth:`~sarrus.Mechanism.forward_dynamics`. The loads are in `wrenches` of the
    :class:`~sarrus.Trajectory`, and not in `tau`; reactions and joint wrenches include them. Their work is in ``statistics["work"]``.

    Attributes
    ----------
    frame : name of the body or frame
    wrench : [moment; force] on the mechanism [N m, N]: six numbers or functions of time, or an array (6,), or (runs, 6) for many runs. In a list, each
        component may also differ from run to run: an array (runs,), or a sequence of functions of time
    scale : factor of the wrench (dimensionless)
    expressed_in : axes of the wrench: "frame", the frame's own, or "world_aligned"

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.free_flyer()
    >>> wind = sarrus.control.AppliedWrench("satellite", [0, 0, 0, sarrus.laws.polynomial(0.0, 2.0), 0, 0], expressed_in="world_aligned")
    >>> run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 3.0, wind)
    >>> (run.momentum[-1, 3:].round(9) + 0.0).tolist()                            # integral of 2 t
    [9.0, 0.0, 0.0]
    """

    frame: str
    wrench: Any
    scale: Number = 1.0
    expressed_in: str = "frame"


@dataclass(frozen=True, eq=False)
class ActuatorModel(Element):
    """Drive of a joint: a lag between commanded and delivered effort along a velocity, and a torque-speed line.

    First order: T dz/dt = u - z. Second order: d2z/dt2 = w^2 (u - z) - 2 d w dz/dt. Here u is the sum of all controllers' efforts, including Python
    functions of the caller, and z is the delivered effort, which is initially zero. The torque-speed line limits an effort that accelerates the joint
    to stall (1 - |v|/v0), and an effort that brakes it to stall.

    The inertia J of a rotor is not a parameter of this element. Set the joint's ``armature`` to gear_ratio^2 J; all dynamics then include it.

    Attributes
    ----------
    joint, index : name of the joint, and index of its velocity
    time_constant : T of a first-order lag [s]; None: no first-order lag
    natural_frequency, damping_ratio : w [rad/s] and d (dimensionless) of a second-order lag; None: no second-order lag
    torque_speed : (stall torque, no-load speed) of the motor [N m, rad/s or N, m/s]; None: no torque-speed line
    gear_ratio : motor speed divided by joint speed (dimensionless). At the joint, the motor's torque is multiplied and its speed divided by this
        ratio

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> drive = sarrus.control.ActuatorModel("pivot", time_constant=0.1)
    >>> run = sarrus.simulate(robot, [0.0], [0.0], 0.3, [sarrus.control.FeedforwardEffort("pivot", 2.0), drive])
    >>> bool(np.allclose(run.tau[:, 0], 2.0 * (1.0 - np.exp(-run.t / 0.1))))
    True
    """

    joint: str
    time_constant: Number | None = None
    natural_frequency: Number | None = None
    damping_ratio: Number = 0.7
    torque_speed: tuple[Number, Number] | None = None
    gear_ratio: Number = 1.0
    index: int = 0


@dataclass(frozen=True, eq=False)
class ReactionWheel(Element):
    """Reaction wheel: a motor of limited torque on a wheel of limited momentum.

    The sum of all efforts of the joint's motor, from elements and functions of the caller, is saturated by ``torque_limit``. If the wheel's momentum
    approaches its limit, its rate is limited to the remaining distance to the limit per 10 ms. Above the limit, the wheel is braked.

    Attributes
    ----------
    joint : name of the Revolute joint of the wheel
    torque : torque on the wheel, a time function or a number [N m]
    torque_limit : largest torque of the motor [N m]
    momentum_limit : largest momentum of the wheel, its inertia about the joint's axis times the joint's velocity [N m s]

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.free_flyer(wheels=True)
    >>> wheel = sarrus.control.ReactionWheel("z axle", 0.5, torque_limit=0.2, momentum_limit=0.3)
    >>> run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 3.0, wheel)
    >>> speed = run.v[:, robot.joint("z axle").v_slice][:, 0]  # of 5 kg with a radius of 0.15 m
    >>> (0.05625 * speed[[0, 500, 1000, 3000]]).round(3).tolist()
    [0.0, 0.1, 0.2, 0.3]
    """

    joint: str
    torque: Laws = 0.0
    torque_limit: Number = np.inf
    momentum_limit: Number = np.inf

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        """Return the wheel's inertia about the joint's axis in each variant."""
        if mechanism._base is mechanism or mechanism.joint(self.joint).kind != "Revolute":
            return {}
        each: Any = mechanism
        return {"inertia": np.array([_inertia_about(m.description, self.joint) for m in each])}


def _inertia_about(description: Description, joint: str) -> float:
    """Return the inertia of a revolute joint's child about its axis [kg m2]."""
    spec = next(j for j in description.joints if j.name == joint)
    wheel = next(b for b in description.bodies if b.name == spec.child)
    about = wheel.inertia.transformed(spec.at_child.inverse()).about_origin
    axis = cast(Revolute, spec.joint).axis
    return float(axis @ about @ axis)


@dataclass(frozen=True, eq=False)
class Quantisation:
    """Quantisation of a sampled controller's inputs and outputs, which are rounded to multiples of a step; 0: no rounding.

    Attributes
    ----------
    position : step of encoders, 2 pi / counts per revolution [rad or m]: a number for all coordinates except quaternions, or joint to number
    velocity : step of tachometers [rad/s or m/s]: a number, or joint to number
    effort : step of motor commands [N m or N]: a number, or joint to number
    """

    position: Steps = 0.0
    velocity: Steps = 0.0
    effort: Steps = 0.0


@dataclass(frozen=True, eq=False)
class SampleAndHold(Element):
    """Digital controller: controllers that are evaluated once per ``period``, with a zero-order hold and a delay.

    The first sample is at the initial time. The efforts that are computed from the sample at t act from t + ``delay`` until the efforts of the next
    sample act. Before the first efforts act, the efforts are zero. Steps of every method end at samples and at changes of
    effort, so that efforts are constant within a step. A function is called once per sample if `dt` divides the period and there are no events
    within steps. The integral of a PID is computed by Euler's method with one step per period. The current efforts are part of the state: they follow
    the internal states in ``Trajectory.internal_state``, and are in checkpoints. With ``delay=0`` and a period of one step of "euler" or
    "semi_implicit", the motion is bit for bit the same as without SampleAndHold.

    Attributes
    ----------
    law : controller: a function (t, q, v) -> tau (nv,) [N m, N], a :class:`TaskControl`, :class:`PID`, :class:`ComputedTorque`, :class:`PDPlus`,
        :class:`GravityCompensation` or :class:`FeedforwardEffort`, or a list of these
    period, delay : sampling period and delay of the efforts [s]; the delay may be shorter or longer than the period
    quantisation : :class:`Quantisation`, or the step of all encoders [rad or m]

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> hold = sarrus.control.PID("pivot", proportional=100.0, derivative=20.0, target=0.5)
    >>> slow = sarrus.control.SampleAndHold(hold, period=0.02, delay=0.01)
    >>> run = sarrus.simulate(robot, [0.0], [0.0], 4.0, controller=slow)
    >>> float(run.q[-1, 0].round(2)), run.tau[[0, 9, 10, 29, 30], 0].round(2).tolist()
    (0.46, [0.0, 0.0, 50.0, 50.0, 39.75])
    """

    law: Any
    period: float = 1e-3
    delay: float = 0.0
    quantisation: Quantisation | float | None = None

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        """Return the controllers, which may be functions, and the steps of quantities."""
        functions, controllers = functions_and_elements(self.law)
        steps = vars(self.quantisation) if isinstance(self.quantisation, Quantisation) else self.quantisation
        inner = entries(mechanism, controllers, run)
        return {"controllers": inner, "calls": bool(functions), "quantisation": steps}


@dataclass(frozen=True, eq=False)
class EffortTable(Element):
    """Table of motor efforts over time, such as those of an optimal trajectory or a recording.

    Before the first time the efforts are zero; after the last time they are constant. With `hold`, steps end at the times of the table.

    Attributes
    ----------
    times : (n,) increasing times [s]
    u : (n, m) efforts [N m, N], or (runs, n, m) for :func:`~sarrus.simulate_many`
    joints : names of the joints whose m velocities are the columns of `u`; default: the actuated joints in the order of
        ``mechanism.actuated``, or all tree joints if no joint is actuated
    hold : True: each row acts until the time of the next row (zero-order hold); False: linear interpolation

    Examples
    --------
    >>> import sarrus
    >>> robot = sarrus.mechanisms.pendulum()
    >>> run = sarrus.simulate(robot, [0.0], [0.0], 0.3, sarrus.control.EffortTable([0.1, 0.2], [[1.0], [-1.0]]))
    >>> run.tau[[50, 150, 250], 0].tolist()
    [0.0, 1.0, -1.0]
    """

    times: ArrayLike
    u: ArrayLike
    joints: Sequence[str] | None = None
    hold: bool = True

    @property
    def _kind(self) -> str:
        return "ZeroOrderHold" if self.hold else "EffortTable"

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        if isinstance(self.joints, str) or not (self.joints is None or isinstance(self.joints, Iterable)):
            raise TypeError(f"joints of EffortTable must be a sequence of names; got {self.joints!r}")
        return {"joints": None if self.joints is None else tuple(self.joints)}


for _kind, _rows in KINDS.items():
    if _kind not in globals() and all(sort in TYPED for _, sort, _ in _rows):
        globals()[_kind] = declared(_kind, __name__)
        __all__ += [_kind]


def rest_to_rest(start: float, end: float, duration: float, *, begin: float = 0.0, order: int = 5) -> Law:
    """Return a time function from one value to another, at rest at both ends: cubic, or quintic with continuous acceleration.

    Parameters
    ----------
    start, end : values before and after the motion [rad or m]
    duration : duration of the motion [s]
    begin : time at which the motion begins [s]
    order : 3 for a cubic, 5 for a quintic

    >>> from sarrus.control import rest_to_rest
    >>> law = rest_to_rest(0.0, 0.25, 2.0)
    >>> law(-1.0), law(1.0), law(5.0)
    (0.0, 0.125, 0.25)
    """
    if not isinstance(order, Integral) or order not in (3, 5):
        raise ModelError(f"order of rest_to_rest must be 3 (cubic) or 5 (quintic); got {order!r}")
    start, end, duration, begin = (
        constant(f"{name} of rest_to_rest", x)
        for name, x in (("start", start), ("end", end), ("duration", duration), ("begin", begin))
    )
    if not duration > 0.0:
        raise ModelError(f"duration of rest_to_rest must be positive; got {duration!r}")
    shape = (0.0, 0.0, 3.0, -2.0, 0.0, 0.0) if order == 3 else (0.0, 0.0, 0.0, 10.0, -15.0, 6.0)
    path = [start]
    for k, c in enumerate(shape[1:], 1):  # one factor at a time, because powers of a short duration would underflow
        path.append((end - start) * c)
        for _ in range(k):
            path[k] /= duration
    if not np.isfinite(path).all():
        raise ModelError(
            f"rest_to_rest from {start!r} to {end!r} within {duration!r} s: the polynomial coefficients overflow"
        )
    hold = [0.0] * 5
    return Law((begin - 1.0, begin, begin + duration), ((start, *hold), tuple(path), (end, *hold)))


def loses_turns(mechanism: LoopFunctions, name: str, index: int) -> bool:
    """Return True if a coordinate is an angle of a loop joint whose full revolutions are unknown from the poses of its bodies.

    They are known for a helical joint, because its displacement determines them.
    """
    joint = mechanism.joint(name)
    returns = joint.type.whole_turns_return or getattr(joint.type, "pitch", None) == 0.0
    return bool(joint.closes_loop and returns and joint.type.coordinates[index][1] == "rad")


def velocities(mechanism: LoopFunctions, names: Iterable[str]) -> list[int]:
    """Return the indices of all velocities of joints."""
    return [k for name in names for k in range(*mechanism.joint(name)._all_v.indices(2**31))]
