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

from .._arrays import checked_number, real_array
from ..description.contacts import MOMENTS
from ..errors import ModelError, ShapeError, warn_of_model
from ..laws import Law
from ..mechanism import Mechanism
from .coordinates import joint_targets
from .element import Element
from .path import Path
from .shared_rows import warn_of_shared_rows
from .task_terms import KINDS, TargetAxes, TaskTerms, components_of, matrix_of_rows, task_name

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
    _kind: ClassVar[str] = ""  # name of the kind in the core; "" for the name of the class or of a base class

    def __init_subclass__(cls) -> None:
        if cls.__name__ in KINDS:
            cls._kind = cls.__name__

    def _kind_of(self, terms: TaskTerms) -> str:
        return self._kind

    def _rows(self, terms: TaskTerms) -> int:
        return 1

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        """Return values of the core's fields that are not attributes."""
        return {}


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


class _OfComponents(Task):
    """Task with a row for each of its components."""

    def _rows(self, terms: TaskTerms) -> int:
        return len(components_of(self))


class _Centroidal(_OfComponents):
    """Task of the centre of mass or the momentum of the mechanism."""

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        if not terms.robot.mass > 0.0:
            raise ModelError(f"{task_name(self)} needs a mechanism with mass; got zero mass")
        return {}


class _OfPose(_OfComponents):
    """Task of a frame's pose relative to a frame of reference."""

    frame: str

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        reference = getattr(self, "reference", "ground")
        if self.frame == reference:
            raise ModelError(f"{task_name(self)}: frame and reference are both '{reference}'; they must differ")
        return {"reference": reference}


@dataclass(frozen=True, eq=False)
class FrameTask(Following, _OfPose):
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
class RelativeTask(Following, _OfPose):
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
    _kind = "FrameTask"


@dataclass(frozen=True, eq=False)
class ImpedanceTask(_OfPose):
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

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        label = f"inertia of {task_name(self)}"
        inertia = matrix_of_rows(terms, self.inertia, label)
        if not np.linalg.eigvalsh(inertia).min() > 0.0:
            raise ModelError(f"{label} must be positive definite; got {self.inertia!r}")
        return super()._values(terms) | {"mobility": np.linalg.inv(inertia)}


class _OfJoints(Following):
    """Task of coordinates of joints."""

    _kind = "JointsTask"

    def _followed(self, robot: Mechanism) -> list[tuple[str, int, Any]]:
        """Return joint, index and target of each coordinate."""
        raise NotImplementedError

    def _rows(self, terms: TaskTerms) -> int:
        return len(self._followed(terms.robot))

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        followed = self._followed(terms.robot)
        if not followed:
            raise ModelError(f"{task_name(self)} has no targets; expected at least one joint")
        return {
            "coordinates": [(name, index) for name, index, _ in followed],
            "target": [target for *_, target in followed],
        }


@dataclass(frozen=True, eq=False)
class JointTask(_OfJoints):
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

    def _followed(self, robot: Mechanism) -> list[tuple[str, int, Any]]:
        return [(self.joint, self.index, self.target)]


@dataclass(frozen=True, eq=False)
class PostureTask(_OfJoints):
    """Task of many joint coordinates.

    Attributes
    ----------
    targets : joint to time function or number [rad or m], or to a sequence of these for a joint with several coordinates. Or a path of
        :func:`~sarrus.control.path_through`, or q (nq,) [rad, m]; joints with quaternions (ball and free joints) are then not controlled, use
        FrameTask for them
    stiffness, damping, weight, hard, priority : as for :class:`FrameTask`, with a number, or a value for each coordinate
    """

    targets: Any

    def _followed(self, robot: Mechanism) -> list[tuple[str, int, Any]]:
        if isinstance(self.targets, Mapping):
            followed = []
            for name, target in self.targets.items():
                n = robot.joint(name).type.nv
                several = joint_targets(target, n)
                if len(several) != n:
                    raise ShapeError(f"joint '{name}' has {n} coordinates; got {len(several)} targets of PostureTask")
                followed += [(name, k, x) for k, x in enumerate(several)]
            return followed
        # tree joints whose velocities are the rates of their coordinates
        types = {name: robot.joint(name).type for name in robot.joints}
        joints = [name for name, kind in types.items() if kind.nv and not kind.quaternion and all(kind.rates)]
        every = [(name, k) for name in joints for k in range(types[name].nv)]
        if isinstance(self.targets, Path):
            return [(name, k, self.targets.law(name, k)) for name, k in every]
        q = real_array("targets of PostureTask", self.targets)
        if q.shape[-1:] != (robot.nq,):
            raise ShapeError(
                f"targets of PostureTask must be a mapping, a path, or q ({robot.nq},); got shape {q.shape}"
            )
        return [(name, k, q[..., robot.joint(name).q_slice.start + k]) for name, k in every]


@dataclass(frozen=True, eq=False)
class CenterOfMassTask(Following, _Centroidal):
    """Task of the centre of mass.

    Attributes
    ----------
    target : position of the centre of mass in the world, a number or time function for each component [m]
    components : names from "tx ty tz"
    stiffness, damping, weight, hard, priority : as for :class:`FrameTask`
    """

    target: Sequence[Law | Gain | Sequence[Law | float]]
    components: str = "tx ty tz"

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        if min(components_of(self)) < 3:
            raise ModelError(f"components of CenterOfMassTask must be from 'tx ty tz'; got {self.components!r}")
        return super()._values(terms)


@dataclass(frozen=True, eq=False)
class MomentumTask(_Centroidal):
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

    _kind = "MultiplierTask"

    def _kind_of(self, terms: TaskTerms) -> str:
        return "ContactForceTask" if self.on in terms.contact_unknowns else self._kind

    def _rows(self, terms: TaskTerms) -> int:
        return len(self._numbers(terms))

    def _numbers(self, terms: TaskTerms) -> list[int]:
        """Return the indices of the rows: in all constraint rows for a constraint, in the unknowns for a contact."""
        indices = terms.contact_unknowns.get(self.on)
        if indices is None:
            place = terms.robot.constraint(self.on).rows
            indices = range(place.start, place.stop)
        rows: list[Any] = list(range(len(indices)) if self.rows is None else self.rows)
        if not rows or any(isinstance(r, bool) or not isinstance(r, int) or not 0 <= r < len(indices) for r in rows):
            raise ModelError(f"rows of {task_name(self)} must be indices below {len(indices)}; got {self.rows!r}")
        return [indices[r] for r in rows]

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        numbers, name = self._numbers(terms), task_name(self)
        targets = list(self.target) if isinstance(self.target, (list, tuple)) else [self.target] * len(numbers)
        if len(targets) != len(numbers):
            raise ShapeError(
                f"target of {name} must be a number or time function, or {len(numbers)} of these; got {self.target!r}"
            )
        integrates = bool(np.any(real_array(f"integral of {name}", self.integral)))
        if self.on in terms.contact_unknowns:
            if integrates:
                raise ModelError(
                    f"integral of {name} must be 0 for a contact, because the controller chooses its force; got {self.integral!r}"
                )
            return {"target": targets, "unknowns": numbers}
        warn_of_shared_rows(terms.robot, self.on, numbers, name)
        return {
            "target": targets,
            "rows": numbers,
            "state": terms.new_states(len(numbers)) if integrates else -1,
        }


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

    @property
    def _rows(self) -> int:
        """Number of components of the force."""
        return 1 if not self.friction > 0.0 else 4 if self.torsion > 0.0 else 3


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
    _rows: ClassVar[int] = 6


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
