"""Force elements of a simulation, which run in C++: controllers, also through a clock, drives, prescribed efforts, sticking friction,
contact, end stops, thrusters, reaction wheels.

Any of them, or several in a list, is a ``controller`` of :func:`~sarrus.simulate`. Targets are :mod:`laws <sarrus.laws>` of time, or
numbers. For :func:`~sarrus.simulate_many` numbers may be arrays (runs,), and a law a sequence of laws, one a run.

>>> import sarrus
>>> robot = sarrus.mechanisms.pendulum()
>>> hold = sarrus.control.PID("pivot", proportional=100.0, derivative=20.0, target=0.5)
>>> run = sarrus.simulate(robot, [0.0], [0.0], 4.0, controller=hold)
>>> float(run.q[-1, 0].round(2))
0.46
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, cast

import numpy as np

from .._arrays import ArrayLike
from ..description.contacts import COEFFICIENTS, MOMENTS, RESTITUTION_LAWS, check_apart, scene
from ..description.joints import Revolute, unit_axis
from ..description.specs import Description
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ShapeError, check_name
from ..laws import Law
from .coordinates import check_independent, coordinate, felt_inertia, motors, one_a_coordinate, velocity
from .element import KINDS, TYPED, Element, Run, array, bounds, constant, declared, less, number, numbers_of

__all__ = [
    "PID",
    "ActuatorModel",
    "CollisionContacts",
    "CompliantContact",
    "ComputedTorque",
    "EndStop",
    "FeedforwardEffort",
    "GravityCompensation",
    "LuGreFriction",
    "PDPlus",
    "ReactionWheel",
    "RigidContact",
    "Thruster",
    "rest_to_rest",
]  # fmt: skip

Number = float | ArrayLike
MOST = 1e300  # for infinity, where compilers are told that numbers are finite
Laws = Law | Number | Sequence[Law | float]  # the last: one a run


@dataclass(frozen=True, eq=False)
class PID(Element):
    """Proportional, integral and derivative control of one joint coordinate, within limits.

    u = kp e + kd de/dt + z with dz/dt = ki e and e = target(t) - q. Towards a limit z
    goes no faster than u would reach it in 1 ms, so that it rests there and does not wind up.

    Attributes
    ----------
    joint, index : the joint, and which of its coordinates
    proportional, integral, derivative : kp [N m/rad or N/m], ki [kp's per s], kd [kp's times s]
    target : law, or number [rad or m]
    limits : (lower, upper) of the effort [N m or N]; infinity: none
    """

    joint: str
    proportional: Number = 0.0
    integral: Number = 0.0
    derivative: Number = 0.0
    target: Laws = 0.0
    limits: tuple[Number, Number] = (-np.inf, np.inf)
    index: int = 0

    can_be_sampled = True

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        if not run.effort_limits:
            return {}
        most = run.effort_limits[coordinate(mechanism, self.joint, self.index, "PID")[1]]  # beyond it z would wind up
        return {"limits": [np.clip(x, -most, most) for x in bounds("limits of PID", self.limits)]}


@dataclass(frozen=True, eq=False)
class FeedforwardEffort(Element):
    """An effort that is a law of time, along one velocity of a joint [N m or N]."""

    joint: str
    law: Laws
    index: int = 0

    can_be_sampled = True

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        return {"effort": self.law}


@dataclass(frozen=True, eq=False)
class _Tracking(Element):
    """By the motors, with a law that knows the mechanism."""

    targets: Mapping[str, Any]
    proportional: Number = 100.0
    derivative: Number = 20.0

    can_be_sampled = True

    def _values(self, mechanism: Any, run: Run) -> dict[str, Any]:
        """Targets of coordinates, in the order in which gains are theirs."""
        what = type(self).__name__
        if not isinstance(self.targets, Mapping):
            raise ModelError(f"targets of {what} map joints to laws or numbers; got {self.targets!r}")
        closed = bool(mechanism.nc) or any(mechanism.joint(name).closes_loop for name in mechanism.actuated)
        if not closed and mechanism.nq != mechanism.nv:
            raise ModelError(f"{what} needs joints whose coordinates are as many as their velocities")
        # on a tree all joints have one, in their order
        targets: dict[tuple[int, int], Any] = {} if closed else {(k, k): (0.0, "") for k in range(mechanism.nv)}
        names: list[tuple[str, int]] = []
        for name, asked in self.targets.items():
            joint = mechanism._tree_joint(name, f"target of {what}")
            laws = one_a_coordinate(asked, joint.nv)
            if len(laws) != joint.nv:
                raise ShapeError(f"joint '{name}' has {joint.nv} coordinates; it was given {len(laws)} targets")
            for k, target in enumerate(laws):
                on_tree = (joint.v_slice.start + k,) * 2
                at = coordinate(mechanism, name, k, f"a target of {what}") if closed else on_tree
                targets[at] = target, name
                names.append((name, k))
        if closed:
            check_independent(mechanism, what, names)
        n = len(targets)
        gains = {}
        for key in ("proportional", "derivative"):
            gain = array(f"{key} of {what}", getattr(self, key))
            if gain.shape not in ((), (n,)) and not (gain.ndim == 2 and gain.shape[1] in (1, n)):
                of = "n" if closed else "nv"
                expected = f"a number, ({of},) = ({n},), or of many runs (runs, {n}) or (runs, 1)"
                raise ShapeError(f"{key} of {what} is {expected}; got {gain.shape}")
            gains[key] = np.broadcast_to(gain, (*gain.shape[:-1], n))
        driven = motors(mechanism, what) if closed else []
        return {"targets": [(*at, *target) for at, target in targets.items()], "motors": driven, **gains}


@dataclass(frozen=True, eq=False)
class ComputedTorque(_Tracking):
    """tau = M a + h with a = g'' + kd (g' - v) + kp (g - q): errors die as those of linear oscillators.

    On a tree all joints have a target, and a motor. Where loops close, as many independent coordinates as there are degrees of freedom
    have one; the loops complete their accelerations to those of all joints, and the motors share the effort, redundant ones so that it is
    least. The simulation fails where no motion on the loops, or no effort of the motors, does what is asked: at singular positions, or with too
    few motors.

    Attributes
    ----------
    targets : joint of the tree to law or number, or to one a run; of several coordinates to a sequence of these. On a tree: joints not named, 0
    proportional, derivative : kp [1/s2], kd [1/s]; numbers, or one a target, (n,), or (runs, n) and (runs, 1): in the order of v
        on a tree, (nv,), in that of ``targets`` where loops close

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
    """tau = M g'' + C(q, v) g' + n + kp (g - q) + kd (g' - v): PD that tracks, with n what gravity and springs do (Paden and Panja 1988).

    The energy of the error, (v - g')' M (v - g') / 2 + kp (q - g)^2 / 2, never grows: it is lost to kd and to friction. Stable for any
    positive gains, without those being masses; where :class:`ComputedTorque` makes errors decouple, this leaves the mechanism its inertia.
    On loops g' and g'' are completed as there, and C is the matrix with dM/dt - 2 C skew. Dampers between bodies are not compensated.

    Attributes
    ----------
    targets : as of :class:`ComputedTorque`
    proportional, derivative : kp [N m/rad, N/m], kd [N m s/rad, N s/m]; as there

    References
    ----------
    Paden and Panja, Globally asymptotically stable PD+ controller for robot manipulators, Int. J. Control 47, 1988.
    """


@dataclass(frozen=True, eq=False)
class GravityCompensation(Element):
    """The efforts with which motors hold gravity and springs at rest, beside other controllers.

    Where loops close motors share them, redundant ones so that they are least, and the simulation fails where they cannot hold the
    mechanism. On a tree each joint holds its own: actuated joints where some are marked so, else all.

    Attributes
    ----------
    scale : 1: all of it

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

    can_be_sampled = True

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        driven = mechanism.nc or mechanism.actuated
        return {"motors": motors(mechanism, "GravityCompensation") if driven else []}


@dataclass(frozen=True, eq=False)
class LuGreFriction(Element):
    """Friction of a joint that sticks: bristles that bend by z, and slip beyond `sticking` (Canudas de Wit and others 1995).

    s0 z + c dz/dt with dz/dt = (v - r z) / (1 + r 1 ms), r = |v| s0 / F(v) and F(v) = sliding + (sticking - sliding) exp(-(v/v_s)^2).
    This is LuGre's model but for two things: bristles settle no faster than in 1 ms, and c is not the constant s1 but the smaller one of
    s1 and s0/r, so that friction of fast motion is F(v) and has no viscous part. In slow motion, |v| < F(v)/s1, it is LuGre's.

    Attributes
    ----------
    sliding, sticking : friction in motion, and that which must be overcome, no less [N m or N]; sticking default: as sliding
    stribeck_velocity : at which the one goes over into the other [rad/s or m/s]
    stiffness, damping : of the bristles [N m/rad, N m s/rad]; damping default: 2 sqrt(stiffness times
        the inertia that a force on the joint feels where the run begins), critical
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

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        whole = self if self.sticking is not None else replace(self, sticking=self.sliding)
        sliding, sticking, stiffness = numbers_of(whole, sliding="positive", sticking="positive", stiffness="positive")
        if less(sticking, sliding):
            expected = "no less than sliding"
            raise ModelError(
                f"sticking of LuGreFriction must be {expected}; got {whole.sticking!r} and {self.sliding!r}"
            )
        values = {"sticking": sticking}
        if self.damping is None:
            felt = felt_inertia(mechanism, [velocity(mechanism, self.joint, self.index)], run.start)
            values["damping"] = 2.0 * np.sqrt(stiffness * felt)
        return values


@dataclass(frozen=True, eq=False)
class CompliantContact(Element):
    """A point or sphere of a body against the ground: k d^n (1 + c d') (Hunt and Crossley 1975), smooth Coulomb friction.

    Attributes
    ----------
    frame : body or frame; its origin is the centre
    radius : [m]; 0: a point
    normal, offset : the plane normal . x = offset; an axis or a vector, away from what is solid [m]
    height : of rough ground above that plane [m], a law of the distance along . x [m]; None: the plane. What is touched is the nearest place,
        found from below the centre: valleys must be wider than the sphere
    along : the direction in which the ground's height changes, across the normal
    stiffness, exponent, dissipation : k [N/m^n], n, c [s/m]
    friction, slip_velocity : coefficient, and the speed at which friction has 0.7 of it [m/s]
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

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        if self.height is not None and not abs(unit_axis(self.along) @ unit_axis(self.normal)) < 1e-9:
            got = f"{self.along!r} and {self.normal!r}"
            raise ModelError(f"along of CompliantContact must be across its normal; got {got}")
        return {}


def _is_poisson(element: RigidContact | CollisionContacts) -> bool:
    check_name("restitution_law", element.restitution_law, RESTITUTION_LAWS, type(element).__name__)
    return element.restitution_law == "poisson"


@dataclass(frozen=True, eq=False)
class RigidContact(Element):
    """A point or sphere of a body on a plane of the world, or of another body, without compliance, for steps of ``method="contact"``.

    Of one state that is known to touch, :class:`sarrus.ContactPoint` is the same contact.

    Where it touches, its impulse lies within Coulomb's cone; what hits comes back by `restitution`, but for hits slower than gravity makes in three
    steps. :attr:`Trajectory.contacts <sarrus.Trajectory.contacts>` has the forces. Of a run's :attr:`Trajectory.internal_state <sarrus.Trajectory.internal_state>` each has four
    numbers: the mean force of the step that leads to a sample, along the normal and two tangents [N], the least ones where forces are not unique (squares
    times each contact's own inverse mass), and how far the step's conditions are off [m/s]; with friction against spinning or rolling three more, their
    moments about these axes [N m].

    Attributes
    ----------
    frame : body or frame; its origin is the centre
    radius : [m]; 0: a point
    on : body or frame in whose axes the plane is
    normal, offset : the plane normal . x = offset; an axis or a vector, away from what is solid [m]
    friction : Coulomb's coefficient
    restitution : from 0 to 1
    restitution_law : "newton": of the normal velocity so much comes back; "poisson": of the normal impulse of compression
    torsional_friction, rolling_friction : against spinning about the normal and against rolling, by moments of up to so much times the impulse along
        the normal [m]; in a :class:`TaskControl` they do not act, which it says

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

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        check_apart(mechanism.description, self.frame, self.on, "RigidContact")
        restitution, *moments = numbers_of(self, **dict.fromkeys(("restitution", *MOMENTS), "not negative"))
        if (np.asarray(restitution) > 1.0).any():
            raise ModelError(f"restitution of RigidContact must be from 0 to 1; got {self.restitution!r}")
        return {"turns": any(np.any(x) for x in moments), "poisson": _is_poisson(self)}


@dataclass(frozen=True, eq=False)
class CollisionContacts(Element):
    """What a mechanism's shapes do to each other in steps of ``method="contact"``: there it acts without being given, if there are such shapes.

    It is given where numbers are to be other ones, run by run say. Points touch as :meth:`sarrus.Mechanism.contacts` says, and push as those of
    :class:`RigidContact`: within Coulomb's cones. :attr:`Trajectory.contacts <sarrus.Trajectory.contacts>` has the
    forces.

    Attributes
    ----------
    friction, restitution, torsional_friction, rolling_friction : of all pairs, (runs,) of many runs; or a dict of such numbers by pairs of names of shapes, (one, other); default: what
        shapes and :meth:`~sarrus.Builder.set_contact` say
    restitution_law : of all pairs, as of :class:`RigidContact`

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

    one_a_run = True

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
                f"no shapes of '{robot.name}' may touch, and CollisionContacts does nothing: see Builder.add_shape"
            )
        terms, bodies = scene(robot.description, robot._solids, pairs)
        numbers = {key: self._of_pairs(key, robot) for key in COEFFICIENTS}
        turns = any(np.any(numbers[key]) for key in MOMENTS)
        return {"scene": terms, "bodies": bodies, "turns": turns, "poisson": _is_poisson(self)} | numbers

    def _of_pairs(self, key: str, robot: Any) -> Any:
        """(..., pairs)"""
        what, numbers = f"{key} of CollisionContacts", getattr(self, key)
        names = [frozenset(robot.description.shapes[k].name for k in pair[:2]) for pair in robot._may_touch]
        by_pair = dict.fromkeys(names, numbers)
        if isinstance(numbers, Mapping):
            by_pair = {frozenset(pair): x for pair, x in numbers.items()}
            for pair in by_pair.keys() - set(names):
                raise ModelError(f"{what}: {tuple(sorted(pair))} is no pair of shapes that may touch")
        of_shapes = [getattr(pair, key) for pair in robot._may_touch]
        each = [
            number(what, x if (mine := by_pair.get(name)) is None else mine, "not negative")
            for name, x in zip(names, of_shapes, strict=True)
        ]
        if key == "restitution" and any((x > 1.0).any() for x in each):
            raise ModelError(f"{what} must be from 0 to 1; got {numbers!r}")
        try:
            return np.stack(np.broadcast_arrays(*each), axis=-1)
        except ValueError:
            raise ShapeError(f"{what}: of some pairs there are more numbers than of others") from None


@dataclass(frozen=True, eq=False)
class EndStop(Element):
    """A spring and a damper where a joint coordinate is beyond its limits: k d + c d', with |c d'| no more than k d.

    So it never pulls, sets in without a jump and takes energy out at every impact. What its spring holds is no part of
    :attr:`Trajectory.energy <sarrus.Trajectory.energy>`. In steps of ``method="contact"`` there is no spring: what stops goes no farther. Then `run.internal_state`
    has the mean force of the step that leads to a sample, with which `run.tau`, `run.a` and reactions are.

    Of several joints it is the sum of their coordinates that stops: a rope that runs over pulleys, each :meth:`cable
    <sarrus.Builder.add_cable>` one fall of it, is taut where all together are as long as it is.

    Attributes
    ----------
    joint, index : the joint, and which of its coordinates; or several joints, one named twice counts twice
    limits : (lower, upper) [rad or m], infinity: none; default: the joint's
    stiffness : k [N m/rad or N/m]; default: 2.5e5/s2 times the inertia that a force on the joint feels, on the loops, where the run begins, so
        that what hits it at v goes on for about v/(600/s), which steps of 1 ms can follow
    damping : c [N m s/rad or N s/m]; default: sqrt(k times that inertia), half of critical

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

    @property
    def _place(self) -> str:
        return self.joint if isinstance(self.joint, str) else " + ".join(map(str, self.joint))

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        names = [self.joint] if isinstance(self.joint, str) else list(self.joint)
        if not names:
            raise ModelError("an end stop needs a joint, or several; got none")
        places = [coordinate(mechanism, name, self.index, "an end stop") for name in names]
        values: dict[str, Any] = {"joint": places, "rigid": run.rigid}
        if self.limits is None:
            if len(names) > 1:
                raise ModelError(
                    f"the sum of {', '.join(map(repr, names))} has no limits: give limits=(lower, upper) to its EndStop"
                )
            limits = mechanism.joint(names[0]).limits
            if limits is None:
                raise ModelError(f"joint '{names[0]}' has no limits: give limits=(lower, upper) to its EndStop")
            values["limits"] = [bound[self.index] for bound in limits]
        if self.stiffness is None or self.damping is None:
            felt = felt_inertia(mechanism, [iv for _, iv in places], run.start)
            stiffness = 2.5e5 * felt if self.stiffness is None else numbers_of(self, stiffness="positive")[0]
            values["stiffness"] = stiffness
            if self.damping is None:
                values["damping"] = np.sqrt(stiffness * felt)
        return values


@dataclass(frozen=True, eq=False)
class Thruster(Element):
    """A force along an axis of a frame, at its origin: it goes with the body, and pushes to one side only.

    Attributes
    ----------
    frame : body or frame
    thrust : law, or number [N]; kept within limits
    axis : of the frame, "x", "-z" or a vector: the direction of the force on the body
    limits : (least, greatest) thrust [N]; infinity: none

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.mechanisms.free_flyer()
    >>> push = sarrus.control.Thruster("satellite", 30.0, "x", limits=(0.0, 20.0))
    >>> run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 1.0, push)
    >>> (run.momentum[-1, 3:].round(3) + 0.0).tolist()                # 20 N for a second; it has turned a little
    [20.0, 0.0, 0.001]
    """

    frame: str
    thrust: Laws
    axis: Any = "x"
    limits: tuple[Number, Number] = (0.0, np.inf)


@dataclass(frozen=True, eq=False)
class ActuatorModel(Element):
    """A drive at a joint: it delivers what controllers ask for along a velocity with a lag, and less the faster it turns.

    First order: T dz/dt = u - z. Second order: d2z/dt2 = w^2 (u - z) - 2 d w dz/dt. Here u is what all controllers ask for, functions of
    the caller too, and z is delivered, from zero at the start. A torque-speed line then keeps it, where it drives the joint, within
    stall (1 - |v|/v0), and where it brakes it, within stall.

    The inertia of a rotor behind a gear is the joint's own ``armature`` = gear_ratio^2 J, which all dynamics know: it has no place here.

    Attributes
    ----------
    joint, index : the joint, and which of its velocities
    time_constant : T of a lag of first order [s]; None: none
    natural_frequency, damping_ratio : w [rad/s] and d of one of second order; None: none
    torque_speed : (stall torque, no-load speed) of the motor [N m, rad/s or N, m/s]; None: no such line
    gear_ratio : turns of the motor for one of the joint: at the joint the torque is so many times larger, the speed so many times less

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

    one_a_velocity = True

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        """Its lag and its line, at the joint."""
        if self.time_constant is not None and self.natural_frequency is not None:
            raise ModelError(
                f"ActuatorModel of '{self.joint}' has a time_constant (first order) or a natural_frequency (second order); got both"
            )
        order = 1 if self.time_constant is not None else 2 if self.natural_frequency is not None else 0
        if order == 0 and self.torque_speed is None:
            raise ModelError(
                f"ActuatorModel of '{self.joint}' does nothing: give a time_constant, a natural_frequency or torque_speed"
            )
        bandwidth: Any = 1.0
        if order == 1:
            bandwidth = 1.0 / numbers_of(self, time_constant="positive")[0]
        if order == 2:
            (bandwidth,) = numbers_of(self, natural_frequency="positive")
        (gear,) = numbers_of(self, gear_ratio="positive")
        line: Any = (np.inf, np.inf) if self.torque_speed is None else self.torque_speed
        if not isinstance(line, (tuple, list, np.ndarray)) or len(line) != 2:
            raise ModelError(f"torque_speed of ActuatorModel is (stall torque, no-load speed); got {line!r}")
        stall, fastest = (number("torque_speed of ActuatorModel", x, "positive or infinite") for x in line)
        at_joint = {"stall": np.minimum(stall * gear, MOST), "no_load_speed": np.minimum(fastest / gear, MOST)}
        return {"order": order, "bandwidth": bandwidth, **at_joint}


@dataclass(frozen=True, eq=False)
class ReactionWheel(Element):
    """A wheel's motor, of limited torque, on a wheel of limited momentum.

    Whatever is asked of the joint's motor, by this element, others or a function of the caller, is kept within ``torque_limit``. Towards its
    greatest momentum the wheel goes no faster than it would reach it in 10 ms; beyond, it is braked.

    Attributes
    ----------
    joint : that turns the wheel, Revolute
    torque : law, or number, on the wheel [N m]
    torque_limit : [N m]
    momentum_limit : of the wheel's inertia about the joint's axis, times the joint's velocity [N m s]

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

    one_a_velocity = True

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        """Its inertia about the joint's axis."""
        joint = mechanism.joint(self.joint)
        spec = next(j for j in mechanism.description.joints if j.name == self.joint)
        if not isinstance(spec.joint, Revolute):
            raise ModelError(f"a ReactionWheel needs a Revolute joint; '{self.joint}' is {joint.type}")
        each: Any = mechanism if mechanism._base is not mechanism else [mechanism]
        inertias = [_inertia_about(one.description, self.joint) for one in each]
        return {"inertia": inertias[0] if len(inertias) == 1 else np.array(inertias)}


def _inertia_about(description: Description, joint: str) -> float:
    """Of what a revolute joint carries."""
    spec = next(j for j in description.joints if j.name == joint)
    wheel = next(b for b in description.bodies if b.name == spec.child)
    about = wheel.inertia.transformed(spec.at_child.inverse()).about_origin
    axis = cast(Revolute, spec.joint).axis
    return float(axis @ about @ axis)


for _kind, _rows in KINDS.items():
    if _kind not in globals() and all(sort in TYPED for _, sort, _ in _rows):
        globals()[_kind] = declared(_kind, __name__)
        __all__ += [_kind]


def rest_to_rest(start: float, end: float, duration: float, *, begin: float = 0.0, order: int = 5) -> Law:
    """A law that goes from one value to another, at rest at both ends: cubic, or quintic with no jump of acceleration.

    >>> from sarrus.control import rest_to_rest
    >>> law = rest_to_rest(0.0, 0.25, 2.0)
    >>> law(-1.0), law(1.0), law(5.0)
    (0.0, 0.125, 0.25)
    """
    if not isinstance(order, Integral) or order not in (3, 5):
        raise ModelError(f"rest_to_rest is cubic (order=3) or quintic (order=5); got order={order!r}")
    start, end, duration, begin = (
        constant(f"{name} of rest_to_rest", x)
        for name, x in (("start", start), ("end", end), ("duration", duration), ("begin", begin))
    )
    if not duration > 0.0:
        raise ModelError(f"rest_to_rest needs a positive duration; got {duration!r}")
    shape = (0.0, 0.0, 3.0, -2.0, 0.0, 0.0) if order == 3 else (0.0, 0.0, 0.0, 10.0, -15.0, 6.0)
    path = [start]
    for k, c in enumerate(shape[1:], 1):  # by one factor at a time: powers of a short duration would be zero
        path.append((end - start) * c)
        for _ in range(k):
            path[k] /= duration
    if not np.isfinite(path).all():
        raise ModelError(
            f"rest_to_rest cannot go from {start!r} to {end!r} within {duration!r} s: too fast for numbers"
        )
    hold = [0.0] * 5
    return Law((begin - 1.0, begin, begin + duration), ((start, *hold), tuple(path), (end, *hold)))
