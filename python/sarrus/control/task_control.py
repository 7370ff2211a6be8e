"""A controller that brings tasks about: of loops, passive joints, redundant motors, floating bases and contacts it knows by itself."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array, checked_number, checked_truth, real_array
from ..analysis.actuation.efforts import motors_of
from ..dynamics.loop_operations import LoopFunctions
from ..errors import ModelError, ModelWarning, NotRealizableError, ShapeError, StateError
from ..mechanism import Mechanism, checked_mechanism
from .element import Element, Run
from .limit_terms import all_contact_terms, cone_names, motion_terms, motor_terms
from .task_terms import Numbers, TaskTerms, pose_numbers, task_name
from .tasks import Limits, PointContact, SurfaceContact, Task, as_contact

__all__ = ["TaskControl", "TaskSolution"]


# ---- the answer in one state -----------------------------------------------------------------------------------------


CONTACTS = 3  # of what the core calls a conflict: contacts contradict each other, or loops
STATES_AT_FAULT = (_core.Status.INVALID_STATE, _core.Status.OFF_LOOPS)


def refusal(law: TaskControl, report: dict[str, Any]) -> str | None:
    """Why there is no answer, and what to do about it; None where there is one."""
    status, who = report["status"], f"TaskControl of '{law.robot.name}': "
    if status == _core.Status.INVALID_STATE:
        return "q, v and t must be finite, and quaternions rotations"
    if status == _core.Status.OFF_LOOPS:
        return "the state is off the loops: project_configuration() and project_velocity() bring it onto them"
    if status == _core.Status.INCONSISTENT_CONSTRAINTS:
        hard = [] if report["conflict"] == CONTACTS else [task_name(task) for task in law.tasks if task.hard]
        return who + _contradiction(hard, [f"the contact of '{contact.frame}'" for contact in law.contacts])
    if status == _core.Status.NO_ANSWER:
        return (
            f"{who}no acceleration satisfies the loops in this state, or it is so near to a singular position that rounding decides which: "
            "forward_dynamics(q, v, tau, return_status=True) and mobility(q) tell more"
        )
    if status != _core.Status.FINE:
        return f"{who}the quadratic programme of the limits found no answer in this state"
    return None


def _contradiction(hard: list[str], contacts: list[str]) -> str:
    """What cannot hold, and what would let it."""
    cures = ["make one of these tasks hard=False"] * bool(hard) + ["leave a contact out of contacts="] * bool(contacts)
    what = "what must hold contradicts itself, or no motor can bring it about"
    if not hard:
        what, cures = "contacts contradict each other, or the loops", [*cures, "let one slide by friction=0"]
    return f"{what}: {' and '.join([*hard, *contacts])}; {', or '.join(cures)}"


def conflict(law: TaskControl, report: dict[str, Any]) -> str | None:
    """Which limits had to be missed, or what is hard; None where neither."""
    names, active = law._limit_names, report["active"]
    missed = ", ".join(n for n, a in zip(names, active, strict=False) if abs(a) > 1)
    return {
        0: None,
        1: f"limits of motion given up: {missed or 'none'}",
        2: f"what must hold is missed, held back by {', '.join(names[i] for i in np.flatnonzero(active))}",
    }[report["conflict"]]


@dataclass(frozen=True, eq=False)
class TaskSolution:
    """What a :class:`TaskControl` does in one state; prints as a table.

    Attributes
    ----------
    tau : (nv,) generalised force of the motors [N m, N]
    efforts : joint to effort (a number, or one a velocity) [N m, N]
    acceleration : (nv,) that comes of it
    forces : frame of a contact to its force, [x, y, z] along its axes (z: normal), of a surface [force; moment]; of one without friction (1,)
    errors : for each task, target less what is (rows,); of forces, less what the model says
    missed : for each task, what its rows' accelerations, weighted, lack (rows,)
    active : limits that hold it back, by name
    conflicts : limits that had to be missed
    damping : share by which directions near a singular position are damped; 0: none
    status : "solved", or what contradicts what
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
        robot, names = law.robot, [task_name(task) for task in law.tasks]
        if (refused := refusal(law, report)) is not None:
            raise StateError(refused)
        x, k, efforts = report["x"], 0, {}
        for name in law.actuated:
            n = robot.joint(name).type.nv
            efforts[name] = float(x[k]) if n == 1 else x[k : k + n]
            k += n
        forces = {}
        for contact in law._core_terms["contacts"]:
            forces[contact["frame"]] = x[k : k + contact["rows"]]
            k += contact["rows"]
        order = sorted(range(len(law.tasks)), key=lambda i: (law._terms.levels[i], i))
        sizes = [law._terms.sizes[i] for i in order]
        split = np.cumsum([0, *sizes])
        where = {i: slice(split[j], split[j + 1]) for j, i in enumerate(order)}
        active = report["active"]
        missed = tuple(n for n, a in zip(law._limit_names, active, strict=False) if abs(a) > 1)
        return cls(
            report["tau"], efforts, report["acceleration"], forces,
            tuple(report["error"][where[i]] for i in range(len(law.tasks))), tuple(report["missed"][where[i]] for i in range(len(law.tasks))),
            tuple(n for n, a in zip(law._limit_names, active, strict=False) if a), missed, float(report["damping"]), conflict(law, report) or "solved", tuple(names),
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
        lines.append("limits: " + (", ".join(self.active) or "none acts"))
        if self.damping:
            lines.append(f"near a singular position: damped by {self.damping:.2g}")
        lines.append(f"status: {self.status}")
        return "\n".join(lines)

    __repr__ = __str__


# ---- the controller --------------------------------------------------------------------------------------------------

Touches = PointContact | SurfaceContact | Element


class TaskControl(Element):
    """Efforts of motors that bring tasks about, in strict order of priority and within limits.

    Accelerations, and forces of constraints and contacts, are affine functions of the efforts and contact forces, by the equation of
    constrained dynamics: these are the only unknowns, and what is solved cannot contradict the loops or ask a passive joint for a torque.
    Of each priority the weighted squared errors of the accelerations are least among what the higher ones leave free; what all leave free takes
    the least efforts. Where limits come in, a quadratic programme finds which.

    It is a function (t, q, v) -> tau (nv,), and a force element of :func:`~sarrus.simulate` and :func:`~sarrus.simulate_many`, where it
    runs in C++ (functions of the caller as targets: in Python, and not for many runs).

    Parameters
    ----------
    robot : the mechanism
    tasks : one or several
    limits : default: efforts, velocities and positions as the robot's joints say; None: no limits, friction cones neither
    contacts : :class:`PointContact`, :class:`SurfaceContact` with what stands still; or the simulation's own :class:`RigidContact` or
        :class:`CompliantContact` elements on planes of the world, each of which counts while it touches
    actuated : names of joints whose motors work; default: the robot's
    effort_weights : (nu,) or a number: of the squared efforts among what tasks leave free
    force_arm : [m] there a contact's force counts like the moment that it has at this arm; default: a thirtieth of the mean size of the bodies

    Raises
    ------
    ModelError, ShapeError, NameNotFoundError, TypeError
        What is given does not fit the robot: frames or joints that are not there, gains of wrong shape, negative friction, no motors.

    Warns
    -----
    ModelWarning
        A :class:`ForceTask` is at rows of which redundant ones might carry a part.

    Notes
    -----
    Near a singular position, where a singular value of a priority's rows falls below 1e-3, priorities (not what is hard) are damped, and
    ``solve().damping`` says by how much; rows and motors are measured in units of kinetic energy, and by what the whole mechanism as one
    rigid body would do. Where limits and what is hard contradict each other, limits of motion (velocity, position) are given
    up first, as little as possible, and then what is hard becomes the highest priority; efforts and friction cones hold. A call raises
    NotRealizableError then, which names the limits; :meth:`solve` answers and says so; a simulation goes on with that answer. Where what is
    hard contradicts itself or the contacts, or contacts the loops, nothing is given up: a call and :meth:`solve` raise StateError, and a
    simulation ends in IntegrationError; both say which tasks and contacts (of many runs: status 3).

    A contact is to stay: J a = -J' v - damping J v. Several contacts of one rigid body (on bodies that are welded or held together by loops
    too) ask for one motion of it: its angular velocity, and the velocity of the middle of their frames, die by their mean damping; in what order
    they are named does not matter. Forces that they share are of least norm. Where contacts of several bodies depend on each other
    by loops they ask for the motion that is nearest to what each of them asks.

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
        all_of: Any = contacts if isinstance(contacts, (list, tuple)) else (contacts,)
        self.contacts = tuple(map(as_contact, all_of))
        if limits is not None and not isinstance(limits, Limits):
            raise TypeError(f"limits of TaskControl are control.Limits(...) or None; got {limits!r}")
        self.limits = limits
        self.actuated = motors_of(robot, actuated)
        self._motors = [iv for name in self.actuated for iv in range(*robot.joint(name)._all_v.indices(10**9))]
        if not self._motors:
            raise ModelError(
                "TaskControl has no motors to work with: name them in actuated=, or mark joints as actuated"
            )
        if force_arm is None:
            force_arm = robot._length / 30.0
        self._weighs: tuple[Any, float] = effort_weights, checked_number("force_arm", force_arm)
        self._core_terms, self._limit_names = self._describe(*self._weighs)
        row = self.parameters
        self._core = _core.TaskController(robot, self._core_terms, row if row.ndim == 1 else row[0])
        self._none = np.zeros(self._terms.states)

    def _describe(self, effort_weights: ArrayLike, force_arm: float) -> tuple[dict[str, Any], list[str]]:
        """What the core is told, and the names of limits."""
        robot = self.robot
        contacts = all_contact_terms(robot, self.contacts)
        terms = self._terms = TaskTerms(robot, self.tasks, self.contacts, len(self._motors))
        weights = real_array("effort_weights", effort_weights)
        if weights.shape not in ((), (len(self._motors),)):
            raise ShapeError(
                f"effort_weights are a number, or ({len(self._motors)},) of the motors; got {weights.shape}"
            )
        weights = np.broadcast_to(weights, (len(self._motors),))
        if not (np.isfinite(weights) & (weights > 0.0)).all():
            raise ModelError(f"effort_weights must be positive; got {effort_weights!r}")
        motors, names = motor_terms(robot, self.limits, self.actuated, weights)
        motion, of_motion = motion_terms(robot, self.limits)
        horizon = checked_number("horizon of Limits", 0.01 if self.limits is None else self.limits.horizon)
        return {
            "motors": motors, "tasks": terms.descriptors, "contacts": contacts, "motion": motion, "horizon": horizon,
            "limited": self.limits is not None, "force_arm": force_arm, "levels": terms.depth, "parameters": len(terms.columns),
            "call_numbers": terms.call_size, "states": terms.states,
        }, [*names, *of_motion, *(name for contact in self.contacts for name in cone_names(contact))]  # fmt: skip

    can_be_sampled = True

    def _values(self, mechanism: LoopFunctions, run: Run) -> dict[str, Any]:
        if mechanism._base is not mechanism:
            raise ModelError(
                f"a TaskControl was made for one mechanism, here '{self.robot.name}': variants need one each"
            )
        if mechanism is not self.robot:
            raise ModelError(
                f"this TaskControl was made for another mechanism, '{self.robot.name}'; as a controller of '{mechanism.name}' it is a function: "
                "give lambda t, q, v: law(t, q, v)"
            )
        return {"law": self._core_terms, "numbers": self.parameters}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made from what it was made from."""
        return _made_again, (self.robot, self.tasks, self.limits, self.contacts, self.actuated, *self._weighs)

    # ---- what it answers ---------------------------------------------------------------------------------------------

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        """Generalised force of the motors (nv,) [N m, N].

        Raises
        ------
        StateError
            The state is not finite, off the loops, or so near to a singular position of theirs that rounding decides; or hard tasks
            contradict each other in it.
        NotRealizableError
            Limits contradict what is hard.
        """
        tau = None
        if not self._terms.functions:
            with suppress(TypeError):  # of what is no number: solve() says which
                tau = self._core.tau(t, q, v)
        if tau is not None:
            return tau  # type: ignore[no-any-return]
        return self.solve(t, q, v, check=True).tau

    def solve(self, t: float, q: ArrayLike, v: ArrayLike, *, check: bool = False) -> TaskSolution:
        """What it does in a state, with all that there is to know of it; as a call raises StateError, and with `check` NotRealizableError."""
        check, t = checked_truth("check", check), checked_number("t", t, "", finite=False)
        poses = np.zeros(self._terms.call_size)
        for start, function, what in self._terms.functions:
            poses[start : start + 24] = pose_numbers(function, t, what)
        solution = TaskSolution._of(self, self._core.report(t, q, v, poses, self._none))
        if check and solution.status != "solved":
            raise NotRealizableError(f"the tasks cannot be had within the limits: {solution.status}")
        return solution

    def _refusal(self, t: float, q: Array, v: Array) -> str | None:
        """What a simulation that ended in a state is told: which tasks, contacts and limits contradict each other there; or None."""
        report = self._core.report(t, q, v, np.zeros(self._terms.call_size), self._none)
        return None if report["status"] in STATES_AT_FAULT else refusal(self, report) or conflict(self, report)

    @property
    def native(self) -> bool:
        """True if it runs in C++ during a simulation: no target is a function of the caller."""
        return not self._terms.functions

    @property
    def parameters(self) -> Numbers:
        """(parameters,), or (runs, parameters) if some number differs from run to run."""
        try:
            return np.ascontiguousarray(np.stack(np.broadcast_arrays(*self._terms.columns), axis=-1))
        except ValueError:
            sizes = sorted({x.shape for x in self._terms.columns if x.ndim})
            raise ShapeError(f"numbers that differ from run to run must be equally many; got shapes {sizes}") from None

    def __repr__(self) -> str:
        listed = ", ".join(task_name(task) for task in self.tasks)
        return (
            f"<TaskControl of '{self.robot.name}': {listed}; {len(self._motors)} motors, {len(self.contacts)} contacts>"
        )


def _made_again(
    robot: Mechanism, tasks: Any, limits: Any, contacts: Any, actuated: Any, effort_weights: Any, force_arm: Any
) -> TaskControl:
    with warnings.catch_warnings():  # what there was to say has been said
        warnings.simplefilter("ignore", ModelWarning)
        return TaskControl(robot, tasks, limits, contacts, actuated, effort_weights=effort_weights, force_arm=force_arm)
