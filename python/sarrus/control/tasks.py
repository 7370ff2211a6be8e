"""What a controller is to bring about, and within what: tasks, contacts and limits of :class:`~sarrus.control.TaskControl`.

A task asks for the acceleration that leads its error to zero, e'' = -damping e' - stiffness e, about a target that may move. Targets are numbers,
:mod:`laws <sarrus.laws>` of time, or, of frames, functions of time. Numbers (targets, gains, weights) may be arrays with a first axis of runs
for :func:`~sarrus.simulate_many`.
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
from .coordinates import one_a_coordinate
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
    """What all tasks have.

    Attributes
    ----------
    weight : among tasks of one priority, of the squared acceleration; a number or one a row
    hard : whether it must hold: above all priorities, and ModelError or StateError where it cannot
    priority : 0 is the highest; a lower task does what the higher ones leave free
    """

    weight: Gain = 1.0
    hard: bool = False
    priority: int = 0
    _kind: ClassVar[str] = ""  # what the core calls it: as the class, or one that it derives from

    def __init_subclass__(cls) -> None:
        if cls.__name__ in KINDS:
            cls._kind = cls.__name__

    def _kind_of(self, terms: TaskTerms) -> str:
        return self._kind

    def _rows(self, terms: TaskTerms) -> int:
        return 1

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        """Of fields in the core that are none of its own."""
        return {}


@dataclass(frozen=True, eq=False, kw_only=True)
class Following(Task):
    """A task whose error e is to die as that of linear oscillators, e'' = -damping e' - stiffness e.

    Attributes
    ----------
    stiffness : kp [1/s2], a number or one a row; damping : kd [1/s]; "critical": 2 sqrt(kp)
    """

    stiffness: Gain = 100.0
    damping: Damping = "critical"


class _OfComponents(Task):
    """A task with a row for each of its components."""

    def _rows(self, terms: TaskTerms) -> int:
        return len(components_of(self))


class _Centroidal(_OfComponents):
    """A task of the whole mechanism."""

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        if not terms.robot.mass > 0.0:
            raise ModelError(f"{task_name(self)} needs a mechanism that has mass")
        return {}


class _OfPose(_OfComponents):
    """A task of a frame's pose relative to a frame of reference."""

    frame: str

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        reference = getattr(self, "reference", "ground")
        if self.frame == reference:
            raise ModelError(f"{task_name(self)} relates '{reference}' to itself")
        return {"reference": reference}


@dataclass(frozen=True, eq=False)
class FrameTask(Following, _OfPose):
    """A frame is to follow a pose, or some components of it.

    Attributes
    ----------
    frame : body or frame
    target : pose (4, 4) in the world; position (3,) [m]; a number or law for each of rx, ry, rz (rotation vector of the target's axes in the
        world [rad]), tx, ty, tz [m], as many as there are components, or six; or a function t -> pose, whose rates are differences over 1 ms, or
        t -> (pose, velocity (6,), acceleration (6,)), [angular; linear] in world axes at its origin
    components : of "rx ry rz tx ty tz"; default: those that the target has
    stiffness : kp [1/s2], a number or one a component; damping : kd [1/s]; "critical": 2 sqrt(kp)
    weight : among tasks of one priority, of the squared acceleration
    hard : whether it must hold: above all priorities, and ModelError or StateError where it cannot
    priority : 0 is the highest; a lower task does what the higher ones leave free
    axes : "world", or "target": along whose axes the error has its components
    """

    frame: str
    target: FrameTarget
    components: str | None = None
    axes: TargetAxes = field(default="world", kw_only=True)


@dataclass(frozen=True, eq=False)
class RelativeTask(Following, _OfPose):
    """A frame is to follow a pose relative to another one, `reference`; as :class:`FrameTask`, in the axes of the reference."""

    frame: str
    reference: str
    target: FrameTarget
    components: str | None = None
    axes: TargetAxes = field(default="world", kw_only=True)
    _kind = "FrameTask"


@dataclass(frozen=True, eq=False)
class ImpedanceTask(_OfPose):
    """A frame is to yield to forces as a mass on a spring and a damper: inertia (a_t - a) + damping (v_t - v) + stiffness e + wrench = 0.

    Attributes
    ----------
    frame, target, components, weight, hard, priority, axes : as of :class:`FrameTask`
    inertia, stiffness, damping : (k, k) of k components, symmetric, the inertia positive definite; (k,) or a number: diagonal
    wrench : what acts on the frame from outside, as measured: a number or law for each component; default: nothing, then what acts is felt
        as the mechanism's own inertia makes it felt

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
        what = f"inertia of {task_name(self)}"
        inertia = matrix_of_rows(terms, self.inertia, what)
        if not np.linalg.eigvalsh(inertia).min() > 0.0:
            raise ModelError(f"{what} must be positive definite; got {self.inertia!r}")
        return super()._values(terms) | {"mobility": np.linalg.inv(inertia)}


class _OfJoints(Following):
    """A task of coordinates of joints."""

    _kind = "JointsTask"

    def _followed(self, robot: Mechanism) -> list[tuple[str, int, Any]]:
        """Joint, index and target of each."""
        raise NotImplementedError

    def _rows(self, terms: TaskTerms) -> int:
        return len(self._followed(terms.robot))

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        followed = self._followed(terms.robot)
        if not followed:
            raise ModelError(f"{task_name(self)} holds no joint")
        return {
            "coordinates": [(name, index) for name, index, _ in followed],
            "target": [target for *_, target in followed],
        }


@dataclass(frozen=True, eq=False)
class JointTask(_OfJoints):
    """One coordinate of a joint, also of one that closes a loop, is to follow a law or number [rad or m]; gains as of :class:`FrameTask`."""

    joint: str
    target: Law | Gain | Sequence[Law | float]
    index: int = 0

    def _followed(self, robot: Mechanism) -> list[tuple[str, int, Any]]:
        return [(self.joint, self.index, self.target)]


@dataclass(frozen=True, eq=False)
class PostureTask(_OfJoints):
    """Many joints are to follow laws or numbers; gains as of :class:`FrameTask`, numbers or one a coordinate.

    Attributes
    ----------
    targets : joint to law or number (to several where it has several coordinates); a path of :func:`~sarrus.control.path_through`;
        or q (nq,), which leaves out joints whose coordinates do not add up: ball and free joints, for which there is FrameTask
    """

    targets: Any

    def _followed(self, robot: Mechanism) -> list[tuple[str, int, Any]]:
        if isinstance(self.targets, Mapping):
            followed = []
            for name, target in self.targets.items():
                n = robot.joint(name).type.nv
                several = one_a_coordinate(target, n)
                if len(several) != n:
                    raise ShapeError(f"joint '{name}' has {n} coordinates; PostureTask gives {len(several)} targets")
                followed += [(name, k, one) for k, one in enumerate(several)]
            return followed
        # joints of the tree whose coordinates have the velocities for their rates
        types = {name: robot.joint(name).type for name in robot.joints}
        joints = [name for name, kind in types.items() if kind.nv and not kind.quaternion and all(kind.rates)]
        every = [(name, k) for name in joints for k in range(types[name].nv)]
        if isinstance(self.targets, Path):
            return [(name, k, self.targets.law(name, k)) for name, k in every]
        q = real_array("targets of PostureTask", self.targets)
        if q.shape[-1:] != (robot.nq,):
            raise ShapeError(f"targets of PostureTask are a mapping, a path, or q ({robot.nq},); got shape {q.shape}")
        return [(name, k, q[..., robot.joint(name).q_slice.start + k]) for name, k in every]


@dataclass(frozen=True, eq=False)
class CenterOfMassTask(Following, _Centroidal):
    """The centre of mass is to follow numbers or laws, one for each component [m]; gains as of :class:`FrameTask`."""

    target: Sequence[Law | Gain | Sequence[Law | float]]
    components: str = "tx ty tz"

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        if min(components_of(self)) < 3:
            raise ModelError(f"components of CenterOfMassTask are of 'tx ty tz'; got {self.components!r}")
        return super()._values(terms)


@dataclass(frozen=True, eq=False)
class MomentumTask(_Centroidal):
    """The momentum about the centre of mass, in world axes, is to follow numbers or laws: its rate is h_d' + gain (h_d - h).

    Attributes
    ----------
    target : one for each component [N m s, N s]
    components : "rx ry rz" are of the angular, "tx ty tz" of the linear momentum
    gain : [1/s]
    """

    target: Sequence[Law | Gain | Sequence[Law | float]]
    components: str = "rx ry rz tx ty tz"
    gain: Gain = 10.0


@dataclass(frozen=True, eq=False)
class ForceTask(Task):
    """Rows of a constraint, or a contact, are to carry given forces: lambda = target + integral z, dz/dt = target - lambda.

    What a constraint carries depends on the efforts where motors press on it, or against each other (the slides' internal forces).
    Without `integral` the model's own force is made equal to the target; with it, forces that the model does not know, which are measured,
    die as exp(-integral t) (Li and Wu 4.6). Of redundant rows, such as those across the plane of a linkage, no rigid-body model tells who carries
    what: a task at these is a ModelWarning, and regulates one choice of many.

    Attributes
    ----------
    on : a constraint or joint that closes a loop, or the frame of a contact
    target : a number or law, or one for each row [N m, N]; signs as of ``sarrus.formulations.constraint_forces``, of a contact from the ground to the robot
    rows : which of the constraint's rows, or of the contact's components, by number; default: all
    integral : [1/s]; of constraints only
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
        """Of its rows: among those of all constraints, or among the unknowns."""
        all_of = terms.contact_unknowns.get(self.on)
        if all_of is None:
            where = terms.robot.constraint(self.on).rows
            all_of = range(where.start, where.stop)
        rows: list[Any] = list(range(len(all_of)) if self.rows is None else self.rows)
        if not rows or any(isinstance(r, bool) or not isinstance(r, int) or not 0 <= r < len(all_of) for r in rows):
            raise ModelError(f"rows of {task_name(self)} are numbers below {len(all_of)}; got {self.rows!r}")
        return [all_of[r] for r in rows]

    def _values(self, terms: TaskTerms) -> dict[str, Any]:
        numbers, what = self._numbers(terms), task_name(self)
        targets = list(self.target) if isinstance(self.target, (list, tuple)) else [self.target] * len(numbers)
        if len(targets) != len(numbers):
            raise ShapeError(f"target of {what} is one number or law, or {len(numbers)}; got {self.target!r}")
        integrates = bool(np.any(real_array(f"integral of {what}", self.integral)))
        if self.on in terms.contact_unknowns:
            if integrates:
                raise ModelError(
                    f"integral of {what} is for constraints: a contact's force is what the controller chooses"
                )
            return {"target": targets, "unknowns": numbers}
        warn_of_shared_rows(terms.robot, self.on, numbers, what)
        return {
            "target": targets,
            "rows": numbers,
            "state": terms.new_states(len(numbers)) if integrates else -1,
        }


@dataclass(frozen=True, eq=False)
class PointContact:
    """A point of the robot that stands on something: it stays there, and is pushed within a cone of friction; with torsion it does not spin either.

    A body may stand on several, such as heel and toe: they ask for one motion of it, see :class:`TaskControl`.

    Attributes
    ----------
    frame : its origin is the point
    friction : coefficient; 0: pushed along the normal alone, free to slide. The cone is the pyramid of four sides within Coulomb's
    normal : in the world, away from what is touched
    damping : of a velocity that the point should not have [1/s]; contacts of one body have their mean
    stands : a law of time, while it is positive the point stands; None: always. A gait is harmonics, or pieces of 1 and -1
    offset : of the plane normal . x = offset [m]: the point stands while it touches that; None: wherever it is
    radius : of a sphere about the frame's origin, whose lowest point stands and rolls on [m]; 0: a point
    within : it touches where it is no farther away [m]; default: a thousandth of the mechanism's length
    torsion : moment about the normal per normal force [m], of a soft finger (Murray, Li and Sastry 1994, table 5.2): it holds against spinning;
        0: it is free to

    A contact that does not stand asks for nothing and pushes nothing: its force in :meth:`TaskControl.solve` is zero.
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
        """How many components its force has."""
        return 1 if not self.friction > 0.0 else 4 if self.torsion > 0.0 else 3


@dataclass(frozen=True, eq=False)
class SurfaceContact:
    """A rectangle of the robot, such as a foot's sole, that stands on something: pushed and twisted so that it neither slips nor tilts.

    Attributes
    ----------
    frame : its origin is the middle, x and y are along the sides, z is the normal away from what is touched
    size : (along x, along y) [m]: where the centre of pressure may be
    friction : coefficient; torsion : moment about the normal per normal force [m]; default: friction times half the smaller side
    damping : [1/s]
    stands : a law of time, while it is positive the rectangle stands; None: always
    """

    frame: str
    size: tuple[float, float]
    friction: float = 0.7
    torsion: float | None = None
    damping: float = 20.0
    stands: Law | None = None
    _rows: ClassVar[int] = 6


def as_contact(contact: Any) -> PointContact | SurfaceContact:
    """A contact of a controller; of a simulation's the same point on the same plane, which stands while it touches that."""
    if isinstance(contact, (PointContact, SurfaceContact)):
        return contact
    kind = contact._kind if isinstance(contact, Element) else ""
    if kind not in ("RigidContact", "CompliantContact"):
        raise TypeError(
            f"contacts of TaskControl are PointContact or SurfaceContact, or RigidContact or CompliantContact of the simulation; got {contact!r}"
        )
    what = f"{kind} of '{contact.frame}' as a contact of TaskControl"
    if getattr(contact, "on", "ground") != "ground" or getattr(contact, "height", None) is not None:
        raise ModelError(f"{what} must be on a plane of the world, which stands still")
    friction = checked_number(f"friction of {what}", contact.friction, "")
    if any(np.any(getattr(contact, name, 0.0)) for name in MOMENTS):
        warn_of_model(
            f"{what} spins and rolls freely: what brakes that in the simulation is a disturbance there. "
            "PointContact(..., torsion=) holds against spinning, SurfaceContact against rolling too"
        )
    return PointContact(contact.frame, friction, contact.normal, offset=contact.offset, radius=contact.radius)


@dataclass(frozen=True, eq=False)
class Limits:
    """Within what a controller stays. None: as the robot's joints say; infinity: no limit.

    Attributes
    ----------
    effort : of motors [N m, N]: a number, or joint to number or (lower, upper)
    velocity : of joints [rad/s, m/s]: a number, or joint to number
    position : of joints [rad, m]: joint to (lower, upper)
    power : of motors, |effort velocity| [W]: a number, or joint to number; default: none
    braking : deceleration with which a joint can be stopped before its end [rad/s2, m/s2]: a number, or joint to number
    horizon : time within which a velocity may reach its limit, and after which braking begins at the latest [s]
    """

    effort: Any = None
    velocity: Any = None
    position: Mapping[str, tuple[float, float]] | None = None
    power: Any = None
    braking: Any = 10.0
    horizon: float = 0.01
