"""Operational-space control of any mechanism, with loops, passive joints, redundant motors, floating bases and contacts: tasks, contacts and limits.

A task prescribes an acceleration such that its error e decays, e'' = -damping e' - stiffness e; the target may move. Targets are numbers, time
functions (:mod:`sarrus.laws`) or, for frames, Python functions of time. For :func:`~sarrus.simulate_many`, numerical values (targets, gains, weights)
may be arrays whose first axis is that of the runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array, checked_number, checked_truth, real_array
from ..analysis.actuation import motors_of
from ..analysis.closing import positions
from ..description.contacts import MOMENTS
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ModelWarning, NotRealizableError, ShapeError, StateError, warn_of_model
from ..laws import Law
from ..mechanism import Mechanism, checked_mechanism
from ..spatial import Rotation
from .element import Element, Run
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
    "TaskControl",
    "TaskSolution",
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
    wrench : measured external wrench on the frame: a number or time function for each component [N m, N]. The efforts do not include the force that
        cancels this wrench: subtract J^T wrench from them, as `examples/control/yielding.py` does. Default: zero; external forces then accelerate
        the mechanism with its real inertia

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


# ---- solution in one state -------------------------------------------------------------------------------------------


CONTACTS = 3  # the core's status if contacts conflict with each other or with the loops
STATES_AT_FAULT = (_core.Status.INVALID_STATE, _core.Status.OFF_LOOPS)


def refusal(law: TaskControl, report: dict[str, Any]) -> str | None:
    """Return the message of a failed solution, with its cure; None if there is a solution."""
    status, subject = report["status"], f"TaskControl of '{law.robot.name}': "
    if status == _core.Status.INVALID_STATE:
        return "q, v and t must be finite, and quaternions rotations"
    if status == _core.Status.OFF_LOOPS:
        return "the state violates the loop constraints: project it by project_configuration() and project_velocity()"
    if status == _core.Status.INCONSISTENT_CONSTRAINTS:
        named = zip(law._core.names, law.tasks, strict=False)  # without the task of rigid joints
        hard = [] if report["conflict"] == CONTACTS else [name for name, task in named if task.hard]
        return subject + _contradiction(hard, [f"the contact of '{contact.frame}'" for contact in law.contacts])
    if status == _core.Status.NO_ANSWER:
        return (
            f"{subject}no acceleration satisfies the loops in this state, or the state is so near to a singular position that rounding dominates the solution: "
            "see forward_dynamics(q, v, tau, return_status=True) and mobility(q)"
        )
    if status != _core.Status.FINE:
        return f"{subject}the quadratic programme of the limits has no solution in this state"
    return None


def _contradiction(hard: list[str], contacts: list[str]) -> str:
    """Return a message about inconsistent hard tasks and contacts, with the cure."""
    cures = ["make one of these tasks hard=False"] * bool(hard) + ["leave a contact out of contacts="] * bool(contacts)
    fault = "hard tasks and contacts are inconsistent, or no motor can realise them"
    if not hard:
        fault, cures = (
            "contacts are inconsistent with each other, or with the loops",
            [*cures, "let one slide by friction=0"],
        )
    return f"{fault}: {' and '.join([*hard, *contacts])}; {', or '.join(cures)}"


def conflict(report: dict[str, Any]) -> str | None:
    """Return a message about limits or hard tasks that had to be violated; None if there are none."""
    if report["conflict"] == 1:
        return f"limits of motion violated: {', '.join(report['conflicts']) or 'none'}"
    reached = ", ".join(report["active"])
    return f"hard tasks violated, because these limits are reached: {reached}" if report["conflict"] == 2 else None


@dataclass(frozen=True, eq=False)
class TaskSolution:
    """Solution of a :class:`TaskControl` in one state; ``print`` displays it as a table.

    Attributes
    ----------
    tau : (nv,) generalised force of the motors [N m, N]
    efforts : joint to effort, a number, or an array for a joint with several velocities [N m, N]
    acceleration : (nv,) resulting generalised acceleration [rad/s2, m/s2]
    forces : frame of a contact to its force along the contact's axes [N]: (3,) with the normal as z; (1,) without friction; for a surface (6,)
        [force; moment] [N, N m]
    errors : for each task, (rows,) target minus actual value [unit of the target]; for forces, target minus the model's force
    missed : for each task, (rows,) weighted difference between desired and resulting acceleration [rad/s2, m/s2]
    active : names of the active limits
    conflicts : names of the violated limits
    damping : degree of damping of motions near a singular position, 0 for none to 1 (dimensionless)
    status : "solved", or a description of the conflict
    """

    tau: Array
    efforts: dict[str, Any]
    acceleration: Array
    forces: dict[str, Array]
    errors: tuple[Array, ...]
    missed: tuple[Array, ...]
    active: tuple[str, ...]
    conflicts: tuple[str, ...]
    damping: float
    status: str
    _tasks: tuple[str, ...]

    @classmethod
    def _of(cls, law: TaskControl, report: dict[str, Any]) -> TaskSolution:
        if report["status"] and (failure := refusal(law, report)) is not None:
            raise StateError(failure)
        report["status"] = "solved" if report["conflict"] == 0 else conflict(report)
        del report["conflict"]
        made = object.__new__(cls)
        made.__dict__.update(report, _tasks=law._tasks)
        return made

    def __str__(self) -> str:
        lines = [f"{'task':32} {'error':>12} {'missed':>12}"]
        for name, error, missed in zip(self._tasks, self.errors, self.missed, strict=True):
            lines.append(f"{name:32} {np.linalg.norm(error):12.4g} {np.linalg.norm(missed):12.4g}")
        lines.append(
            "efforts: "
            + ", ".join(f"{name} {np.array2string(np.asarray(u), precision=4)}" for name, u in self.efforts.items())
        )
        lines += [f"force of '{name}': {np.array2string(f, precision=4)}" for name, f in self.forces.items()]
        lines.append("limits: " + (", ".join(self.active) or "none active"))
        if self.damping:
            lines.append(f"near a singular position: damped by {self.damping:.2g}")
        lines.append(f"status: {self.status}")
        return "\n".join(lines)

    __repr__ = __str__


# ---- the controller --------------------------------------------------------------------------------------------------

Touches = PointContact | SurfaceContact | Element


class TaskControl(Element):
    """Controller of tasks by motor efforts, in strict order of priority and within limits.

    The unknowns are the motor efforts and the contact forces. By the constrained equations of motion, accelerations and constraint forces are affine
    functions of these unknowns. Therefore each solution satisfies the loop constraints and has no torque in passive joints. Each priority minimises
    its weighted squared acceleration errors in the null space of the higher priorities. The remaining null space minimises the efforts. Active limits
    are determined by a quadratic programme.

    The object is a function (t, q, v) -> tau (nv,), and a force element of :func:`~sarrus.simulate` and :func:`~sarrus.simulate_many`, where it
    runs in C++. Targets that are Python functions are evaluated in Python; simulate_many does not support them.

    Parameters
    ----------
    robot : the mechanism
    tasks : a task, or a list of tasks
    limits : :class:`Limits`; default: the effort, velocity and position limits of the robot's joints; None: no limits, and no friction cones
    contacts : :class:`PointContact` or :class:`SurfaceContact` with the fixed environment; or the simulation's :class:`RigidContact` or
        :class:`CompliantContact` elements on planes of the world. Contact elements of a simulation are active while they touch
    actuated : names of the joints with motors; default: the actuated joints of the robot
    effort_weights : (nu,) or a number: weights of the squared efforts in the null space of all tasks (dimensionless)
    force_arm : lever arm by which a contact's force is weighted like a moment [m]; default: 1/30 of the mean body size
    rigid : names of passive joints, such as springs in series, that are rigid in the model of the controller

    Raises
    ------
    ModelError, ShapeError, NameNotFoundError, TypeError
        An argument does not fit the robot, for example an unknown frame or joint, gains of wrong shape, negative friction, or no motors.

    Warns
    -----
    ModelWarning
        A :class:`ForceTask` has rows whose force is indeterminate, because rows of the constraint are redundant.

    Notes
    -----
    **Singular positions.** If a singular value of a priority's rows is below 1e-3, this priority is damped (hard tasks are not), and
    ``solve().damping`` is positive. Rows and motors are scaled by kinetic energy, relative to the motion of the mechanism as one rigid body.

    **Conflicts of limits and hard tasks.** First, limits of motion (velocity, position) are violated as little as possible. If this is not
    sufficient, hard tasks become the highest priority. Effort limits and friction cones are always satisfied. A call of the object raises
    NotRealizableError with the names of the limits. :meth:`solve` returns the solution with its conflicts, and a simulation continues with it.

    **No solution.** If hard tasks conflict with each other or with contacts, or contacts with the loops, a call and :meth:`solve` raise StateError,
    and a simulation raises IntegrationError (status 3 in simulate_many). The message names the tasks and contacts.

    **Rigid joints.** The controller computes the efforts for a model whose `rigid` joints are locked in their positions. Its velocity is that after
    locking, so that the controller does not react to vibrations of springs, which would make legs with springs in series unstable. The stiffness and
    the deflection of a rigid joint have no effect, because its constraint force is unknown. It may not be a joint with a motor.

    **Contacts.** A contact prescribes J a = -J' v - damping J v. Several contacts of one rigid body (including bodies that are welded, or rigidly
    connected by loops) prescribe a single motion of the body: its angular velocity, and the velocity of the middle of the contact frames, decay by
    the mean damping of the contacts, independent of their order. Indeterminate contact forces have least norm. If contacts of several bodies depend
    on each other through loops, the motion nearest to their prescribed motions is used.

    References
    ----------
    Siciliano and Slotine 1991; Escande, Mansard and Wieber, Hierarchical quadratic programming, 2014; Li and Wu 4.4-4.6; Khatib 1987.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> from sarrus import control
    >>> robot = sarrus.mechanisms.delta()
    >>> task = control.FrameTask("platform", [0.1, 0.0, -0.6], stiffness=400.0)
    >>> law = control.TaskControl(robot, task)
    >>> q = robot.assemble()
    >>> run = sarrus.simulate(robot, q, np.zeros(robot.nv), 1.0, controller=law, limits="ignore")
    >>> bool(abs(robot.pose(run.q[-1], "platform")[:3, 3] - [0.1, 0.0, -0.6]).max() < 1e-3)
    True
    """

    def __init__(
        self,
        robot: Mechanism,
        tasks: Task | Sequence[Task],
        limits: Limits | None = Limits(),
        contacts: Touches | Sequence[Touches] = (),
        actuated: Sequence[str] | None = None,
        *,
        effort_weights: ArrayLike = 1.0,
        force_arm: float | None = None,
        rigid: Sequence[str] | None = (),
    ) -> None:
        checked_mechanism(robot)
        self.robot = robot
        several: Any = tasks
        self.tasks: tuple[Task, ...] = tuple(several) if isinstance(several, (list, tuple)) else (several,)
        listed: Any = contacts if isinstance(contacts, (list, tuple)) else (contacts,)
        self.contacts = tuple(map(as_contact, listed))
        if limits is not None and not isinstance(limits, Limits):
            raise TypeError(f"limits of TaskControl must be control.Limits(...) or None; got {limits!r}")
        self.limits = limits
        self.actuated = motors_of(robot, actuated)
        self.rigid_joints = motors_of(robot, () if rigid is None else rigid, "rigid")
        self._weighs: tuple[Any, float | None] = (
            effort_weights, None if force_arm is None else checked_number("force_arm", force_arm),
        )  # fmt: skip
        for task in self.tasks:
            if not getattr(task, "_kind", ""):
                raise TypeError(f"tasks must be tasks of sarrus.control, such as FrameTask; got {task!r}")
            if not isinstance(task.hard, (bool, np.bool_)):
                raise TypeError(f"hard of {type(task).__name__} must be True or False; got {task.hard!r}")
        described = [(task._kind, type(task).__name__, vars(task) | task._arguments(robot)) for task in self.tasks]
        touching = [(contact._kind, type(contact).__name__, vars(contact)) for contact in self.contacts]
        self._core = _core.TaskController(
            robot, described, touching, None if limits is None else vars(limits), self.actuated, *self._weighs, self.rigid_joints,
            lambda: positions(robot),
        )  # fmt: skip
        for sentence in self._core.warnings:
            warn_of_model(sentence)
        self._functions, self._none = self._core.functions, np.zeros(self._core.states)
        self._tasks = tuple(self._core.names[: len(self.tasks)])

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        if mechanism._base is not mechanism:
            raise ModelError(
                f"this TaskControl was made for the mechanism '{self.robot.name}'; expected a TaskControl for each variant"
            )
        if mechanism is not self.robot:
            raise ModelError(
                f"this TaskControl was made for the mechanism '{self.robot.name}'; to use it with '{mechanism.name}', "
                "pass the function lambda t, q, v: law(t, q, v)"
            )
        return {"law": self._core, "numbers": self.parameters}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the data for copies and pickles: the arguments of the constructor."""
        return _reconstructed, (
            self.robot,
            self.tasks,
            self.limits,
            self.contacts,
            self.actuated,
            *self._weighs,
            self.rigid_joints,
        )

    # ---- solution ----------------------------------------------------------------------------------------------------

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the generalised force of the motors (nv,) [N m, N].

        Parameters
        ----------
        t : time [s]
        q, v : (nq,), (nv,) configuration and velocity [rad, m; rad/s, m/s]

        Raises
        ------
        StateError
            The state is not finite, violates the loop constraints, or is so near to a singular position that the solution is lost in rounding. Or
            hard tasks conflict with each other.
        NotRealizableError
            Limits conflict with hard tasks.
        """
        tau = None
        if not self._functions:
            with suppress(TypeError):  # for invalid types solve() raises the error
                tau = self._core.tau(t, q, v)
        if tau is not None:
            return tau  # type: ignore[no-any-return]
        return self.solve(t, q, v, check=True).tau

    def solve(self, t: float, q: ArrayLike, v: ArrayLike, *, check: bool = False) -> TaskSolution:
        """Return the full solution in a state; raise StateError if there is none.

        Parameters
        ----------
        t : time [s]
        q, v : (nq,), (nv,) configuration and velocity [rad, m; rad/s, m/s]
        check : True raises NotRealizableError if limits conflict with hard tasks
        """
        check, t = checked_truth("check", check), checked_number("t", t, "", finite=False)
        poses = np.zeros(self._core.call_size)
        for task, start in self._functions:
            target: Any = self.tasks[task]
            poses[start : start + 24] = pose_numbers(target.target, t, f"target of {self._core.names[task]}")
        solution = TaskSolution._of(self, self._core.report(t, q, v, poses, self._none))
        if check and solution.status != "solved":
            raise NotRealizableError(f"the tasks cannot be realised within the limits: {solution.status}")
        return solution

    def _refusal(self, t: float, q: Array, v: Array) -> str | None:
        """Return the message about conflicting tasks, contacts and limits in this state, in which a simulation failed; None without conflict."""
        report = self._core.report(t, q, v, np.zeros(self._core.call_size), self._none)
        return None if report["status"] in STATES_AT_FAULT else refusal(self, report) or conflict(report)

    @property
    def native(self) -> bool:
        """True if the controller runs in C++ during a simulation, because no target is a Python function."""
        return not self._functions

    @property
    def parameters(self) -> Array:
        """Row (parameters,), or rows (runs, parameters) if a parameter differs between runs."""
        return self._core.parameters

    def __repr__(self) -> str:
        listed, motors = ", ".join(self._core.names), sum(self.robot.joint(name).type.nv for name in self.actuated)
        return f"<TaskControl of '{self.robot.name}': {listed}; {motors} motors, {len(self.contacts)} contacts>"


def _reconstructed(
    robot: Mechanism,
    tasks: Any,
    limits: Any,
    contacts: Any,
    actuated: Any,
    effort_weights: Any,
    force_arm: Any,
    rigid: Any = (),
) -> TaskControl:
    with warnings.catch_warnings():  # the constructor of the original object has already issued its warnings
        warnings.simplefilter("ignore", ModelWarning)
        weights = {"effort_weights": effort_weights, "force_arm": force_arm}
        return TaskControl(robot, tasks, limits, contacts, actuated, **weights, rigid=rigid)


DIFFERENCE = 1e-3  # step of the finite differences for the velocity and acceleration of a target function's poses [s]


def _check_pose(pose: Array, label: str) -> None:
    try:
        Rotation.from_matrix(pose[:3, :3])
    except ValueError as error:
        raise ModelError(f"{label}: {error}") from None
    if not np.isfinite(pose).all() or not np.array_equal(pose[3], [0.0, 0.0, 0.0, 1.0]):
        raise ModelError(f"{label} must be a finite pose with last row [0, 0, 0, 1]; got {pose.tolist()}")


def pose_numbers(function: Callable[[float], Any], t: float, label: str) -> Array:
    """Return R, p, V and A (24,) of a target function at time t."""

    def pose(at: float, value: Any) -> Array:
        x = real_array(f"{label} at t = {at:.6g}", value)
        if x.shape != (4, 4):
            raise ShapeError(
                f"{label} at t = {at:.6g} must be a pose (4, 4), or (pose, velocity (6,), acceleration (6,)); got {value!r}"
            )
        _check_pose(x, label)
        return x

    returned = function(t)
    if isinstance(returned, tuple):
        if len(returned) != 3 or np.shape(returned[1]) != (6,) or np.shape(returned[2]) != (6,):
            raise ShapeError(
                f"{label} at t = {t:.6g} must be a pose, or (pose, velocity (6,), acceleration (6,)); got {returned!r}"
            )
        now, V, A = pose(t, returned[0]), real_array(label, returned[1]), real_array(label, returned[2])
    else:
        now, h = pose(t, returned), DIFFERENCE
        before, after = (pose(at, function(at)) for at in (t - h, t + h))
        turn = [Rotation.from_matrix(x[:3, :3] @ now[:3, :3].T).log() for x in (before, after)]
        V = np.concatenate([turn[1] - turn[0], after[:3, 3] - before[:3, 3]]) / (2.0 * h)
        A = np.concatenate([turn[1] + turn[0], after[:3, 3] - 2.0 * now[:3, 3] + before[:3, 3]]) / h**2
    numbers = np.concatenate([now[:3, :3].ravel(), now[:3, 3], V, A])
    if not np.isfinite(numbers).all():
        raise StateError(f"{label} at t = {t:.6g} must be finite; got {returned!r}")
    return numbers
