"""Tasks, contacts and limits of :class:`~sarrus.control.TaskControl`.

A task prescribes an acceleration such that its error e decays, e'' = -damping e' - stiffness e; the target may move. Targets are numbers, time
functions (:mod:`sarrus.laws`) or, for frames, Python functions of time. For :func:`~sarrus.simulate_many`, numerical values (targets, gains, weights)
may be arrays whose first axis is that of the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import checked_number
from ..description.contacts import MOMENTS
from ..errors import ModelError, warn_of_model
from ..laws import Law
from ..mechanism import Mechanism
from .element import Element
from .path import Path

__all__ = [
    "CenterOfMassTask",
    "ForceTask",
    "FrameTask",
    "ImpedanceTask",
    "JointTask",
    "Limits",
    "MomentumTask",
    "PointContact",
    "PostureTask",
    "RelativeTask",
    "SurfaceContact",
]

TargetAxes = Literal["world", "target"]
Gain = float | ArrayLike
Damping = Gain | Literal["critical"]
FrameTarget = ArrayLike | Sequence[Law | Gain | Sequence[Law | float]] | Callable[[float], Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """Base class of tasks.

    Attributes
    ----------
    weight : weight of the squared acceleration error among tasks of the same priority (dimensionless); a number, or a value for each row
    hard : True: the task is an equality constraint above all priorities; if it cannot be satisfied, ModelError or StateError is raised
    priority : priority, 0 is the highest; a task acts only in the null space of all tasks of higher priority
    """

    weight: Gain = 1.0
    hard: bool = False
    priority: int = 0
    _kind: ClassVar[str] = ""  # name of the kind in the core

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:
            cls._kind = cls.__name__

    def _arguments(self, robot: Mechanism) -> dict[str, Any]:
        """Return arguments of the core that replace attributes."""
        return {"hard": bool(self.hard)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Following(Task):
    """Task whose error e decays like a linear oscillator, e'' = -damping e' - stiffness e.

    Attributes
    ----------
    stiffness : kp [1/s2], a number, or a value for each row
    damping : kd [1/s], a number, or a value for each row; "critical": 2 sqrt(kp)
    """

    stiffness: Gain = 100.0
    damping: Damping = "critical"


@dataclass(frozen=True, eq=False)
class FrameTask(Following):
    """Task of a frame's pose in the world, or of some of its components.

    Attributes
    ----------
    frame : name of the body or frame
    target : target in the world, in one of these forms:

        - pose (4, 4), or position (3,) [m]
        - a number or time function for each component, or for all six: rx, ry, rz (rotation vector of the target's axes [rad]), tx, ty, tz [m]
        - function t -> pose (4, 4); its velocity and acceleration are finite differences over 1 ms
        - function t -> (pose, velocity (6,), acceleration (6,)), [angular; linear] in world axes at the frame's origin [rad/s, m/s; rad/s2, m/s2]

    components : names from "rx ry rz tx ty tz"; default: the components of the target
    stiffness : kp [1/s2], a number, or a value for each component
    damping : kd [1/s], a number, or a value for each component; "critical": 2 sqrt(kp)
    weight : weight of the squared acceleration error among tasks of the same priority (dimensionless)
    hard : True: the task is an equality constraint above all priorities; if it cannot be satisfied, ModelError or StateError is raised
    priority : priority, 0 is the highest; a task acts only in the null space of all tasks of higher priority
    axes : axes of the error's components: "world" or "target"
    """

    frame: str
    target: FrameTarget
    components: str | None = None
    axes: TargetAxes = field(default="world", kw_only=True)


@dataclass(frozen=True, eq=False)
class RelativeTask(Following):
    """Task of a frame's pose relative to another frame, in the axes of this reference frame.

    Attributes
    ----------
    frame, reference : names of the controlled frame and of the reference frame
    target, components, stiffness, damping, weight, hard, priority, axes : as for :class:`FrameTask`, with the reference frame instead of the world
    """

    frame: str
    reference: str
    target: FrameTarget
    components: str | None = None
    axes: TargetAxes = field(default="world", kw_only=True)


@dataclass(frozen=True, eq=False)
class ImpedanceTask(Task):
    """Impedance of a frame, as for a mass with spring and damper: inertia (a_t - a) + damping (v_t - v) + stiffness e + wrench = 0.

    a_t and v_t are the acceleration and velocity of the target, and e is the error of the pose.

    Attributes
    ----------
    frame, target, components, weight, hard, priority, axes : as for :class:`FrameTask`
    inertia, stiffness, damping : (k, k) symmetric matrices for k components [kg m2, kg; N m/rad, N/m; N m s/rad, N s/m], the inertia positive
        definite; (k,) or a number for a diagonal matrix
    wrench : measured external wrench on the frame: a number or time function for each component [N m, N]. Default: zero; external forces then
        accelerate the mechanism with its real inertia

    References
    ----------
    Hogan, Impedance control, J. Dyn. Sys. Meas. Control 107, 1985.
    """

    frame: str
    target: FrameTarget
    inertia: ArrayLike
    stiffness: ArrayLike
    damping: ArrayLike
    wrench: Sequence[Law | float] | None = None
    components: str | None = None
    axes: TargetAxes = field(default="world", kw_only=True)


@dataclass(frozen=True, eq=False)
class JointTask(Following):
    """Task of one coordinate of a tree joint or a loop joint.

    Attributes
    ----------
    joint, index : name of the joint, and index of its coordinate
    target : target of the coordinate, a time function or a number [rad or m]
    stiffness, damping, weight, hard, priority : as for :class:`FrameTask`
    """

    joint: str
    target: Law | Gain | Sequence[Law | float]
    index: int = 0


@dataclass(frozen=True, eq=False)
class PostureTask(Following):
    """Task of many joint coordinates.

    Attributes
    ----------
    targets : joint to time function or number [rad or m], or to a sequence of these for a joint with several coordinates. Or a path of
        :func:`~sarrus.control.path_through`, or q (nq,) [rad, m]; joints with quaternions (ball and free joints) are then not controlled, use
        FrameTask for them
    stiffness, damping, weight, hard, priority : as for :class:`FrameTask`, with a number, or a value for each coordinate
    """

    targets: Any

    def _arguments(self, robot: Mechanism) -> dict[str, Any]:
        if not isinstance(self.targets, Path):
            return super()._arguments(robot)
        # tree joints whose velocities are the rates of their coordinates
        types = {name: robot.joint(name).type for name in robot.joints}
        joints = [name for name, kind in types.items() if kind.nv and not kind.quaternion and all(kind.rates)]
        return super()._arguments(robot) | {
            "targets": {name: [self.targets.law(name, k) for k in range(types[name].nv)] for name in joints}
        }


@dataclass(frozen=True, eq=False)
class CenterOfMassTask(Following):
    """Task of the centre of mass.

    Attributes
    ----------
    target : position of the centre of mass in the world, a number or time function for each component [m]
    components : names from "tx ty tz"
    stiffness, damping, weight, hard, priority : as for :class:`FrameTask`
    """

    target: Sequence[Law | Gain | Sequence[Law | float]]
    components: str = "tx ty tz"


@dataclass(frozen=True, eq=False)
class MomentumTask(Task):
    """Task of the momentum h about the centre of mass, in world axes; its desired rate is h_d' + gain (h_d - h), with the target h_d.

    Attributes
    ----------
    target : number or time function for each component of h_d [N m s, N s]
    components : names from "rx ry rz" for the angular and "tx ty tz" for the linear momentum
    gain : decay rate of the error [1/s]
    weight, hard, priority : as for :class:`FrameTask`
    """

    target: Sequence[Law | Gain | Sequence[Law | float]]
    components: str = "rx ry rz tx ty tz"
    gain: Gain = 10.0


@dataclass(frozen=True, eq=False)
class ForceTask(Task):
    """Task of the forces lambda in rows of a constraint or contact: lambda = target + integral z, dz/dt = target - lambda.

    Motors can change a constraint force if they push against the constraint, or against each other (internal forces).
    With ``integral=0``, the force of the model equals the target. With a positive `integral`, an error between the real force and the model's force
    decays as exp(-integral t) (Li and Wu 4.6). Forces in redundant rows, such as those perpendicular to the plane of a linkage, are indeterminate in
    a rigid-body model. A task for such rows issues a ModelWarning, and controls only one of many possible distributions of the force.

    Attributes
    ----------
    on : name of a constraint or loop joint, or of the frame of a contact
    target : force in each row [N m, N]: a number or time function for all rows, or a list with a target for each row. Signs are as for
        ``sarrus.formulations.constraint_forces``; the force of a contact acts on the robot
    rows : indices of the constraint's rows, or of the contact's components; default: all
    integral : integral gain, for constraints only [1/s]
    weight, hard, priority : as for :class:`FrameTask`
    """

    on: str
    target: Any
    rows: Sequence[int] | None = None
    integral: Gain = 0.0


@dataclass(frozen=True, eq=False)
class PointContact:
    """Point contact of the robot with the environment, for a :class:`TaskControl`: the point does not move, and its force is within a friction cone.

    Several contacts of one body, such as heel and toe, prescribe a single motion of this body; see :class:`TaskControl`. An inactive contact
    prescribes no motion, and its force in :meth:`TaskControl.solve` is zero.

    Attributes
    ----------
    frame : name of the frame whose origin is the contact point
    friction : Coulomb coefficient (dimensionless); 0 for a contact that slides, with a normal force only. The cone is approximated by its inscribed
        pyramid with four sides
    normal : normal in the world, out of the environment: name of an axis or a vector
    damping : decay rate of the contact point's velocity [1/s]; for several contacts of one body, the mean is used
    stands : time function; the contact is active while its value is positive. None: always active. For a periodic gait use a sum of harmonics, or
        pieces of 1 and -1
    offset : offset of the plane normal . x = offset [m]; the contact is active while it touches this plane. None: active in all positions
    radius : radius of a sphere about the frame's origin, which rolls on its lowest point [m]; 0 for a point
    within : largest distance from the plane at which the contact counts as touching [m]; default: 1/1000 of the mechanism's characteristic length
    torsion : largest moment about the normal per normal force [m], as for a soft finger (Murray, Li and Sastry 1994, table 5.2); 0: free to spin
    """

    frame: str
    friction: float = 0.7
    normal: Any = "z"
    damping: float = 20.0
    stands: Law | None = None
    offset: float | None = None
    radius: float = 0.0
    within: float | None = None
    torsion: float = 0.0
    _kind: ClassVar[str] = "PointContact"


@dataclass(frozen=True, eq=False)
class SurfaceContact:
    """Contact of a rectangle of the robot, such as a foot's sole, with the environment; its wrench is limited so that it neither slips nor tilts.

    Attributes
    ----------
    frame : name of the frame of the rectangle: its origin is the centre, x and y are along the sides, z is the normal out of the environment
    size : (length along x, length along y) of the rectangle [m], within which the centre of pressure must be
    friction : Coulomb coefficient (dimensionless)
    torsion : largest moment about the normal per normal force [m]; default: friction times half the smaller side
    damping : decay rate of the contact's velocity [1/s]
    stands : time function; the contact is active while its value is positive. None: always active
    """

    frame: str
    size: tuple[float, float]
    friction: float = 0.7
    torsion: float | None = None
    damping: float = 20.0
    stands: Law | None = None
    _kind: ClassVar[str] = "SurfaceContact"


def as_contact(contact: Any) -> PointContact | SurfaceContact:
    """Return a contact of a controller.

    A contact element of a simulation is converted to such a contact, which is active while the element touches.
    """
    if isinstance(contact, (PointContact, SurfaceContact)):
        return contact
    kind = contact._kind if isinstance(contact, Element) else ""
    if kind not in ("RigidContact", "CompliantContact"):
        raise TypeError(
            f"contacts of TaskControl must be PointContact or SurfaceContact, or RigidContact or CompliantContact of the simulation; got {contact!r}"
        )
    label = f"{kind} of '{contact.frame}' as a contact of TaskControl"
    if getattr(contact, "on", "ground") != "ground" or getattr(contact, "height", None) is not None:
        raise ModelError(f"{label} must be on a plane that is fixed in the world")
    friction = checked_number(f"friction of {label}", contact.friction, "")
    if any(np.any(getattr(contact, name, 0.0)) for name in MOMENTS):
        warn_of_model(
            f"{label} spins and rolls freely: its torsional and rolling friction in the simulation is a disturbance. "
            "Give PointContact(..., torsion=) against spinning, or SurfaceContact against rolling too"
        )
    return PointContact(contact.frame, friction, contact.normal, offset=contact.offset, radius=contact.radius)


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of a :class:`TaskControl`. None: the limits of the robot's joints; infinity: no limit.

    Attributes
    ----------
    effort : limits of motor efforts [N m, N]: a number, or joint to number or (lower, upper)
    velocity : limits of joint velocities [rad/s, m/s]: a number, or joint to number
    position : limits of joint coordinates [rad, m]: joint to (lower, upper)
    power : limits of |effort velocity| of motors [W]: a number, or joint to number; default: no limit
    braking : largest deceleration for stopping before a position limit [rad/s2, m/s2]: a number, or joint to number
    horizon : time constant of approach to limits [s]: a velocity reaches its limit not before this time, and braking begins at the latest after it
    """

    effort: Any = None
    velocity: Any = None
    position: Mapping[str, tuple[float, float]] | None = None
    power: Any = None
    braking: Any = 10.0
    horizon: float = 0.01
