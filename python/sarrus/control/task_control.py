"""Operational-space control of any mechanism: with loops, passive joints, redundant motors, floating bases and contacts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array, checked_number, checked_truth
from ..analysis.actuation.efforts import motors_of
from ..analysis.assembly.closing import positions
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ModelWarning, NotRealizableError, StateError, warn_of_model
from ..mechanism import Mechanism, checked_mechanism
from .element import Element, Run
from .target_functions import pose_numbers
from .tasks import Limits, PointContact, SurfaceContact, Task, as_contact

__all__ = ["TaskControl", "TaskSolution"]


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
        named = zip(law._core.names, law.tasks, strict=True)
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


def conflict(law: TaskControl, report: dict[str, Any]) -> str | None:
    """Return a message about limits or hard tasks that had to be violated; None if there are none."""
    names, active = law._core.limits, report["active"]
    missed = ", ".join(n for n, a in zip(names, active, strict=False) if abs(a) > 1)
    return {
        0: None,
        1: f"limits of motion violated: {missed or 'none'}",
        2: f"hard tasks violated, because these limits are reached: {', '.join(names[i] for i in np.flatnonzero(active))}",
    }[report["conflict"]]


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
        robot, core = law.robot, law._core
        if (failure := refusal(law, report)) is not None:
            raise StateError(failure)
        x, k, efforts = report["x"], 0, {}
        for name in law.actuated:
            n = robot.joint(name).type.nv
            efforts[name] = float(x[k]) if n == 1 else x[k : k + n]
            k += n
        forces = {}
        for contact, rows in zip(law.contacts, core.contact_rows, strict=True):
            forces[contact.frame] = x[k : k + rows]
            k += rows
        order = sorted(range(len(law.tasks)), key=lambda i: (core.levels[i], i))
        sizes = [core.sizes[i] for i in order]
        split = np.cumsum([0, *sizes])
        of_task = {i: slice(split[j], split[j + 1]) for j, i in enumerate(order)}
        active = report["active"]
        missed = tuple(n for n, a in zip(core.limits, active, strict=False) if abs(a) > 1)
        return cls(
            report["tau"], efforts, report["acceleration"], forces,
            tuple(report["error"][of_task[i]] for i in range(len(law.tasks))), tuple(report["missed"][of_task[i]] for i in range(len(law.tasks))),
            tuple(n for n, a in zip(core.limits, active, strict=False) if a), missed, float(report["damping"]), conflict(law, report) or "solved", tuple(core.names),
        )  # fmt: skip

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

    The unknowns are the motor efforts and the contact forces. Accelerations and constraint forces are affine functions of these by the constrained
    equations of motion. Therefore each solution satisfies the loop constraints and has no torque in passive joints. Each priority minimises its
    weighted squared acceleration errors in the null space of the higher priorities. The remaining null space minimises the efforts. Active
    limits are determined by a quadratic programme.

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
        limits: Limits | None = Limits(),  # noqa: B008
        contacts: Touches | Sequence[Touches] = (),
        actuated: Sequence[str] | None = None,
        *,
        effort_weights: ArrayLike = 1.0,
        force_arm: float | None = None,
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
            robot, described, touching, None if limits is None else vars(limits), self.actuated, *self._weighs,
            lambda: positions(robot),
        )  # fmt: skip
        for sentence in self._core.warnings:
            warn_of_model(sentence)
        self._functions, self._none = self._core.functions, np.zeros(self._core.states)

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
        return _reconstructed, (self.robot, self.tasks, self.limits, self.contacts, self.actuated, *self._weighs)

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
        return None if report["status"] in STATES_AT_FAULT else refusal(self, report) or conflict(self, report)

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
    robot: Mechanism, tasks: Any, limits: Any, contacts: Any, actuated: Any, effort_weights: Any, force_arm: Any
) -> TaskControl:
    with warnings.catch_warnings():  # the constructor of the original object has already issued its warnings
        warnings.simplefilter("ignore", ModelWarning)
        return TaskControl(robot, tasks, limits, contacts, actuated, effort_weights=effort_weights, force_arm=force_arm)
