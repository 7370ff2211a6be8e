"""A controller that brings tasks about: of loops, passive joints, redundant motors, floating bases and contacts it knows by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._arrays import Array, checked_number, real_array
from ..description.joints import unit_axis
from ..errors import ModelError, NotRealizableError, ShapeError, StateError
from ..laws import Law, law_terms_of_runs
from ..mechanism import Mechanism, checked_mechanism
from ..spatial import Rotation
from .coordinates import coordinate, loses_turns, one_a_coordinate
from .path import Path
from .tasks import (
    CenterOfMassTask,
    ForceTask,
    FrameTask,
    ImpedanceTask,
    JointTask,
    Limits,
    MomentumTask,
    PointContact,
    PostureTask,
    RelativeTask,
    SurfaceContact,
)

__all__ = ["TaskControl", "TaskSolution"]

COMPONENTS = ("rx", "ry", "rz", "tx", "ty", "tz")
FAR = 1e30  # no limit: the core knows no infinity
DIFFERENCE = 1e-3  # [s] over which rates of a function's poses are found
Task = FrameTask | RelativeTask | ImpedanceTask | JointTask | PostureTask | CenterOfMassTask | MomentumTask | ForceTask
Numbers = NDArray[np.float64]


class TaskControl:
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
    contacts : :class:`PointContact`, :class:`SurfaceContact` with what stands still
    actuated : names of joints whose motors work; default: the robot's
    effort_weights : (nu,) or a number: of the squared efforts among what tasks leave free
    force_arm : [m] there a contact's force counts like the moment that it has at this arm

    Raises
    ------
    ModelError, ShapeError, NameNotFoundError, TypeError
        What is given does not fit the robot: frames or joints that are not there, gains of wrong shape, negative friction, no motors.

    Notes
    -----
    Near a singular position, where a row is below 1e-3 of what it is elsewhere, priorities (not what is hard) are damped, and
    ``solve().damping`` says by how much. Where limits and what is hard contradict each other, limits of motion (velocity, position) are given
    up first, as little as possible, and then what is hard becomes the highest priority; efforts and friction cones hold. A call raises
    NotRealizableError then, which names the limits; :meth:`solve` answers and says so; a simulation goes on with that answer.

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
        contacts: PointContact | SurfaceContact | Sequence[PointContact | SurfaceContact] = (),
        actuated: Sequence[str] | None = None,
        *,
        effort_weights: ArrayLike = 1.0,
        force_arm: float = 0.01,
    ) -> None:
        checked_mechanism(robot)
        self.robot = robot
        given: Any = tasks
        self.tasks: tuple[Task, ...] = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        self.contacts = tuple(contacts) if isinstance(contacts, (list, tuple)) else (contacts,)
        if limits is not None and not isinstance(limits, Limits):
            raise TypeError(f"limits of TaskControl are control.Limits(...) or None; got {limits!r}")
        self.limits = limits
        self.actuated = robot._motors(actuated)
        self._motors = [iv for name in self.actuated for iv in range(*robot.joint(name)._all_v.indices(10**9))]
        if not self._motors:
            raise ModelError(
                "TaskControl has no motors to work with: name them in actuated=, or mark joints as actuated"
            )
        if any(callable(getattr(spec, "rows", None)) for spec in robot.description.constraints):
            raise ModelError("TaskControl cannot know rows that a function of the caller gives at each call (Pfaffian)")
        self._columns: list[Numbers] = []
        self._functions: list[tuple[int, Callable[[float], Any], str]] = []
        self._limit_names: list[str] = []
        self._given = self._states = 0
        self._terms = self._describe(effort_weights, checked_number("force_arm", force_arm))
        row = self.parameters
        self._core = _core.TaskController(robot, self._terms, row if row.ndim == 1 else row[0])
        self._none = np.zeros(self._states)

    # ---- what it answers ---------------------------------------------------------------------------------------------

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        """Generalised force of the motors (nv,) [N m, N].

        Raises
        ------
        StateError
            The state is not finite, off the loops, or hard tasks contradict each other in it.
        NotRealizableError
            Limits contradict what is hard.
        """
        tau = None if self._functions else self._core.tau(t, q, v)
        if tau is not None:
            return tau  # type: ignore[no-any-return]
        return self.solve(t, q, v, check=True).tau

    def solve(self, t: float, q: ArrayLike, v: ArrayLike, *, check: bool = False) -> TaskSolution:
        """What it does in a state, with all that there is to know of it; as a call raises StateError, and with `check` NotRealizableError."""
        given = np.zeros(self._given)
        for start, function, what in self._functions:
            given[start : start + 24] = _pose_numbers(function, t, what)
        found = TaskSolution._of(self, self._core.report(t, q, v, given, self._none))
        if check and found.status != "solved":
            raise NotRealizableError(f"the tasks cannot be had within the limits: {found.status}")
        return found

    @property
    def native(self) -> bool:
        """Whether it runs in C++ during a simulation: no target is a function of the caller."""
        return not self._functions

    @property
    def parameters(self) -> Numbers:
        """(parameters,), or (runs, parameters) if some number differs from run to run."""
        try:
            return np.ascontiguousarray(np.stack(np.broadcast_arrays(*self._columns), axis=-1))
        except ValueError:
            sizes = sorted({x.shape for x in self._columns if x.ndim})
            raise ShapeError(f"numbers that differ from run to run must be equally many; got shapes {sizes}") from None

    def __repr__(self) -> str:
        listed = ", ".join(_name(task) for task in self.tasks)
        return (
            f"<TaskControl of '{self.robot.name}': {listed}; {len(self._motors)} motors, {len(self.contacts)} contacts>"
        )

    # ---- what the core is told ---------------------------------------------------------------------------------------

    def _describe(self, effort_weights: ArrayLike, force_arm: float) -> dict[str, Any]:
        robot, loops, given = self.robot, False, list[Any](self.tasks)
        contacts = [self._contact(c) for c in self.contacts]
        levels = sorted({task.priority for task in given if isinstance(task, Task) and not task.hard})
        told = []
        for number, task in enumerate(given):
            if not isinstance(task, Task):
                raise TypeError(f"no task: {task!r}; tasks are those of sarrus.control, such as FrameTask")
            priority: Any = task.priority
            if isinstance(priority, bool) or not isinstance(priority, int) or priority < 0:
                raise ModelError(f"priority of {_name(task)} must be 0, 1, ...; got {priority!r}")
            level = 0 if task.hard else 1 + levels.index(task.priority)
            term = {
                "kind": "frame", "level": level, "component": [], "frames": [], "target_axes": False, "iq": [], "iv": [], "turns": [],
                "contact": -1, "target": [], "push": [], "stiffness": [], "damping": [], "yielding": [], "parameter": len(self._columns),
                "given": -1, "iz": -1,
            }  # fmt: skip
            WRITERS[type(task)](self, task, term)
            loops |= any(iv >= robot.nv for iv in term["iv"])  # type: ignore[attr-defined]
            told.append((level, number, term))
        self._levels, self._sizes = [level for level, *_ in told], [len(term["component"]) for *_, term in told]  # type: ignore[arg-type]
        told.sort(key=lambda one: one[:2])
        limits, names = self._limited()
        self._limit_names = names
        weights = real_array("effort_weights", effort_weights)
        if weights.shape not in ((), (len(self._motors),)):
            raise ShapeError(
                f"effort_weights are a number, or ({len(self._motors)},) of the motors; got {weights.shape}"
            )
        weights = np.broadcast_to(weights, (len(self._motors),))
        if not (np.isfinite(weights) & (weights > 0.0)).all():
            raise ModelError(f"effort_weights must be positive; got {effort_weights!r}")
        loops |= any(iv >= robot.nv for iv in self._motors) or any(j[1] >= robot.nv for j in limits["joints"])
        return {
            "motors": self._motors, "effort_weight": weights.tolist(), "force_arm": force_arm, "tasks": [term for _, _, term in told],
            "contacts": contacts, "limits": limits, "limited": self.limits is not None, "levels": len(levels),
            "parameters": len(self._columns), "given": self._given, "states": self._states, "drives_loop_joints": loops,
        }  # fmt: skip

    def _gains(self, task: Any, rows: int, first: Any, second: Any) -> None:
        """kp, kd and weight of each row."""
        what = type(task).__name__
        kp = self._per_row(f"stiffness or gain of {what}", first, rows, negative=isinstance(task, ForceTask))
        if isinstance(second, str):
            if second != "critical":
                raise ModelError(f"damping of {what} is 'critical' or numbers; got {second!r}")
            kd = [2.0 * np.sqrt(k) for k in kp]
        else:
            kd = self._per_row(f"damping of {what}", second, rows)
        weight = self._per_row(f"weight of {what}", task.weight, rows)
        if any((w <= 0.0).any() for w in weight):
            raise ModelError(f"weight of {what} must be positive; got {task.weight!r}")
        for row in zip(kp, kd, weight, strict=True):
            self._columns += row

    @staticmethod
    def _per_row(what: str, given: Any, rows: int, *, negative: bool = False) -> list[Numbers]:
        x = real_array(what, given)
        if x.shape not in ((), (rows,)) and not (x.ndim == 2 and x.shape[1] in (1, rows)):
            raise ShapeError(
                f"{what} is a number, ({rows},) for its rows, or of many runs (runs, {rows}) or (runs, 1); got shape {x.shape}"
            )
        if not np.isfinite(x).all() or (not negative and (x < 0.0).any()):
            raise ModelError(f"{what} must be finite and not negative; got {given!r}")
        return list(np.moveaxis(np.broadcast_to(x, (*x.shape[:-1], rows)), -1, 0))

    def _targets(self, term: dict[str, Any], what: str, given: Sequence[Any]) -> None:
        """Laws and numbers, of which each run may have its own."""
        first, whose = len(self._columns) + len(given), list[Numbers]()
        for target in given:
            if _has_laws(target):
                law, number = law_terms_of_runs(target, what, first + len(whose))
                term["target"].append(law)
                self._columns.append(np.zeros(()))
                whose += number
                continue
            x = real_array(what, target)
            if x.ndim > 1 or not np.isfinite(x).all():
                raise ShapeError(f"{what} is a law, a finite number, or one a run; got {target!r}")
            term["target"].append(None)
            self._columns.append(x)
        self._columns += whose

    def _contact(self, contact: Any) -> dict[str, Any]:
        if not isinstance(contact, (PointContact, SurfaceContact)):
            raise TypeError(f"contacts of TaskControl are PointContact or SurfaceContact; got {contact!r}")
        what = f"{type(contact).__name__} of '{contact.frame}'"
        _check_frame(self.robot, contact.frame)
        friction, damping = (
            checked_number(f"{name} of {what}", getattr(contact, name), "") for name in ("friction", "damping")
        )
        if friction < 0.0 or damping < 0.0:
            raise ModelError(f"friction and damping of {what} must not be negative; got {friction!r} and {damping!r}")
        told: dict[str, Any] = {"frame": contact.frame, "friction": friction, "damping": damping, "half": (0.0, 0.0)}
        if isinstance(contact, PointContact):
            axes = np.asarray(_core.axis_frame(tuple(unit_axis(contact.normal))))
            told |= {"in_world": True, "rows": 3 if friction > 0.0 else 1, "torsion": 0.0}
            return told | {"axes": [*axes.ravel().tolist(), 0.0, 0.0, 0.0]}
        size = real_array(f"size of {what}", contact.size)
        torsion = friction * 0.5 * float(size.min(initial=np.inf)) if contact.torsion is None else contact.torsion
        torsion = checked_number(f"torsion of {what}", torsion, "")
        if size.shape != (2,) or not (size > 0.0).all() or torsion < 0.0:
            raise ModelError(f"size of {what} is two positive lengths, and torsion not negative; got {contact!r}")
        told |= {"in_world": False, "rows": 6, "torsion": torsion, "half": tuple((0.5 * size).tolist())}
        return told | {"axes": [*np.eye(3).ravel().tolist(), 0.0, 0.0, 0.0]}

    def _limited(self) -> tuple[dict[str, Any], list[str]]:
        robot, limits = self.robot, self.limits or Limits(np.inf, np.inf, {})
        horizon = checked_number("horizon of Limits", limits.horizon)
        lower, upper, power, names = [], [], [], []
        for name in self.actuated:
            joint = robot.joint(name)
            own = np.inf if joint.type.effort_limit is None else joint.type.effort_limit
            own = np.broadcast_to(real_array("effort limit", own), (joint.type.nv,))
            given = _of_joint(limits.effort, name, None)
            low, high = (-own, own) if given is None else _both("effort", name, given)
            strong = _of_joint(limits.power, name, np.inf)
            if not (
                np.all(np.asarray(low) <= 0.0) and np.all(np.asarray(high) >= 0.0) and np.all(np.asarray(strong) >= 0)
            ):
                raise ModelError(
                    f"limits of effort and power of '{name}' must leave 0 between them; got {given!r}, {strong!r}"
                )
            for k in range(joint.type.nv):
                lower.append(max(float(np.broadcast_to(low, (joint.type.nv,))[k]), -FAR))
                upper.append(min(float(np.broadcast_to(high, (joint.type.nv,))[k]), FAR))
                power.append(min(float(np.broadcast_to(strong, (joint.type.nv,))[k]), FAR))
                names.append(f"effort of '{name}'" + (f"[{k}]" if joint.type.nv > 1 else ""))
        joints = []
        for name in (*robot.joints, *robot.loop_joints) if self.limits is not None else ():
            joints += self._limits_of(name, limits, names)
        for what in ("effort", "velocity", "position", "power", "braking"):
            if isinstance(named := getattr(limits, what), Mapping):
                for name in named:
                    robot.joint(name)
                    if what in ("effort", "power") and name not in self.actuated:
                        raise ModelError(f"{what} of Limits names '{name}', which has no motor here")
        for contact in self.contacts:
            if isinstance(contact, PointContact) and contact.friction == 0.0:
                names.append(f"contact of '{contact.frame}' pulls")
                continue
            surface = isinstance(contact, SurfaceContact)
            sides = ["x", "x", "y", "y", "centre of pressure along y", "centre of pressure along y"]
            sides += ["centre of pressure along x", "centre of pressure along x", "torsion", "torsion"]
            names.append(f"contact of '{contact.frame}' pulls")
            names += [
                f"friction of '{contact.frame}' along {s}" if len(s) == 1 else f"{s} of '{contact.frame}'"
                for s in sides[: 10 if surface else 4]
            ]
        told = {"effort_lower": lower, "effort_upper": upper, "power": power, "joints": joints, "horizon": horizon}
        return told, names

    def _limits_of(self, name: str, limits: Limits, names: list[str]) -> list[tuple[Any, ...]]:
        joint, made = self.robot.joint(name), []
        own = np.inf if joint.type.velocity_limit is None else joint.type.velocity_limit
        own = np.broadcast_to(real_array("velocity limit", own), (joint.type.nv,))
        fast = np.broadcast_to(_of_joint(limits.velocity, name, own), (joint.type.nv,))
        braking = checked_number(f"braking of '{name}'", _of_joint(limits.braking, name, 10.0))
        low, high = np.full(joint.type.nv, -np.inf), np.full(joint.type.nv, np.inf)
        given = limits.position.get(name) if isinstance(limits.position, Mapping) else None
        if given is not None:
            low, high = (
                np.broadcast_to(real_array("position", x), (joint.type.nv,)) for x in _both("position", name, given)
            )
        elif limits.position is None and joint.limits is not None and not joint.type.quaternion:
            low, high = joint.limits
        for k in range(joint.type.nv):
            speed, bounds = float(fast[k]), (float(low[k]), float(high[k]))
            if not speed >= 0.0 or not bounds[0] < bounds[1]:
                raise ModelError(f"limits of '{name}' leave it no motion: velocity {speed!r}, position {bounds}")
            if not np.isfinite([speed, *bounds]).any():
                continue
            iq = iv = joint._all_v.start + k
            turns = False
            if np.isfinite(bounds).any():
                iq, iv = coordinate(self.robot, name, k, "a limit of position")
                turns = loses_turns(self.robot, name, k)
            else:
                iq = joint._all_q.start  # not looked at
            made.append((iq, iv, turns, max(bounds[0], -FAR), min(bounds[1], FAR), min(speed, FAR), braking))
            names.append(f"motion of '{name}'" + (f"[{k}]" if joint.type.nv > 1 else ""))
        return made


# ---- task by task ----------------------------------------------------------------------------------------------------


def _frame(law: TaskControl, task: Any, term: dict[str, Any]) -> None:
    what = f"target of {_name(task)}"
    reference = getattr(task, "reference", "ground")
    for name in (task.frame, reference):
        _check_frame(law.robot, name)
    if task.frame == reference:
        raise ModelError(f"{_name(task)} relates '{reference}' to itself")
    if task.axes not in ("world", "target"):
        raise ModelError(f"axes of {_name(task)} are 'world' or 'target'; got {task.axes!r}")
    components = _components(task)
    term |= {"component": components, "frames": [task.frame, reference], "target_axes": task.axes == "target"}
    if isinstance(task, ImpedanceTask):
        _impedance(task, term, len(components))
    law._gains(task, len(components), getattr(task, "stiffness", 0.0) if not term["stiffness"] else 0.0,
               task.damping if not term["stiffness"] else 0.0)  # fmt: skip
    slots: list[Any] = [0.0] * 6
    target: Any = task.target
    if callable(target) and not isinstance(target, Law):
        term["given"], law._given = law._given, law._given + 24
        law._functions.append((term["given"], target, what))
    elif isinstance(target, (list, tuple)) and not _is_pose(target) and len(target) == 6:
        slots = list(target)
    elif isinstance(target, (list, tuple)) and not _is_pose(target) and len(target) == len(components):
        if task.axes == "target":
            raise ShapeError(f"{what} is a whole pose where axes = 'target': numbers or laws for all six components")
        for component, one in zip(components, target, strict=True):
            slots[component] = one
    else:
        x = real_array(what, target)
        if x.shape[-2:] == (4, 4):
            flat = [_pose_vector(pose, what) for pose in x.reshape(-1, 4, 4)]
            slots = list(np.moveaxis(np.reshape(flat, (*x.shape[:-2], 6)), -1, 0))
        elif x.shape[-1:] == (3,) and min(components) >= 3:
            slots[3:] = list(np.moveaxis(x, -1, 0))
        else:
            raise ShapeError(
                f"{what} is a pose (4, 4), a position (3,) for components of translation, a number or law for each of its "
                f"{len(components)} components or of all six, or a function of time; got {target!r}"
            )
    law._targets(term, what, slots)
    if isinstance(task, ImpedanceTask):
        for wrench in task.wrench or ():
            push, whose = law_terms_of_runs(wrench, f"wrench of {_name(task)}", len(law._columns))
            term["push"].append(push)
            law._columns += whose


def _impedance(task: ImpedanceTask, term: dict[str, Any], n: int) -> None:
    matrices = {}
    for name in ("inertia", "stiffness", "damping"):
        x = real_array(f"{name} of {_name(task)}", getattr(task, name))
        if x.shape not in ((), (n,), (n, n)):
            raise ShapeError(f"{name} of {_name(task)} is a number, ({n},) or ({n}, {n}); got {x.shape}")
        matrices[name] = x if x.ndim == 2 else np.diag(np.broadcast_to(x, (n,)))
        if not np.isfinite(x).all() or not np.allclose(matrices[name], matrices[name].T):
            raise ModelError(f"{name} of {_name(task)} must be symmetric and finite; got {getattr(task, name)!r}")
    if not np.linalg.eigvalsh(matrices["inertia"]).min() > 0.0:
        raise ModelError(f"inertia of {_name(task)} must be positive definite; got {task.inertia!r}")
    inverse = np.linalg.inv(matrices["inertia"])
    term["stiffness"] = (inverse @ matrices["stiffness"]).ravel().tolist()
    term["damping"] = (inverse @ matrices["damping"]).ravel().tolist()
    if task.wrench is not None:
        if len(task.wrench) != n:
            raise ShapeError(
                f"wrench of {_name(task)} has a number or law for each of {n} components; got {task.wrench!r}"
            )
        term["yielding"] = inverse.ravel().tolist()


def _joint(law: TaskControl, task: JointTask, term: dict[str, Any]) -> None:
    _joints(law, task, term, [(task.joint, task.index, task.target)])


def _posture(law: TaskControl, task: PostureTask, term: dict[str, Any]) -> None:
    _joints(law, task, term, _posture_targets(law.robot, task))


def _posture_targets(robot: Mechanism, task: PostureTask) -> list[tuple[str, int, Any]]:
    targets = task.targets
    if isinstance(targets, Path):
        return [(name, k, targets.law(name, k)) for name in _plain_joints(robot) for k in range(robot.joint(name).nv)]
    if isinstance(targets, Mapping):
        all_of = []
        for name, given in targets.items():
            n = robot.joint(name).type.nv
            several = one_a_coordinate(given, n)
            if len(several) != n:
                raise ShapeError(f"joint '{name}' has {n} coordinates; PostureTask gives {len(several)} targets")
            all_of += [(name, k, one) for k, one in enumerate(several)]
        return all_of
    q = real_array("targets of PostureTask", targets)
    if q.shape[-1:] != (robot.nq,):
        raise ShapeError(f"targets of PostureTask are a mapping, a path, or q ({robot.nq},); got shape {q.shape}")
    return [
        (name, k, q[..., robot.joint(name).q_slice.start + k])
        for name in _plain_joints(robot)
        for k in range(robot.joint(name).nv)
    ]


def _plain_joints(robot: Mechanism) -> list[str]:
    """Those of the tree whose coordinates have the velocities for their rates."""
    return [
        n
        for n in robot.joints
        if robot.joint(n).nv and not robot.joint(n).type.quaternion and all(robot.joint(n).type.rates)
    ]


def _joints(law: TaskControl, task: Any, term: dict[str, Any], targets: list[tuple[str, int, Any]]) -> None:
    if not targets:
        raise ModelError(f"{_name(task)} holds no joint")
    term["kind"], term["component"] = "joints", [0] * len(targets)
    for name, index, _ in targets:
        iq, iv = coordinate(law.robot, name, index, type(task).__name__)
        term["iq"].append(iq), term["iv"].append(iv)
        term["turns"].append(loses_turns(law.robot, name, index))
    law._gains(task, len(targets), task.stiffness, task.damping)
    law._targets(term, f"target of {_name(task)}", [target for *_, target in targets])


def _centroidal(law: TaskControl, task: Any, term: dict[str, Any]) -> None:
    components = _components(task)
    of_mass = isinstance(task, CenterOfMassTask)
    if of_mass and min(components) < 3:
        raise ModelError(f"components of CenterOfMassTask are of 'tx ty tz'; got {task.components!r}")
    if not law.robot.mass > 0.0:
        raise ModelError(f"{_name(task)} needs a mechanism that has mass")
    targets = list(task.target)
    if len(targets) != len(components):
        raise ShapeError(
            f"target of {_name(task)} has a number or law for each of {len(components)} components; got {task.target!r}"
        )
    term |= {"kind": "center_of_mass" if of_mass else "momentum", "component": components}
    law._gains(task, len(components), task.stiffness if of_mass else task.gain, task.damping if of_mass else 0.0)
    law._targets(term, f"target of {_name(task)}", targets)


def _force(law: TaskControl, task: ForceTask, term: dict[str, Any]) -> None:
    robot, frames = law.robot, [c.frame for c in law.contacts]
    rows, first = _force_rows(robot, task, law.contacts)
    term["component"] = [first + r for r in rows]
    if task.on in frames:
        term |= {"kind": "force", "contact": frames.index(task.on)}
        if np.any(real_array("integral", task.integral)):
            raise ModelError(
                f"integral of {_name(task)} is for constraints: a contact's force is what the controller chooses"
            )
    else:
        term["kind"] = "multiplier"
        if np.any(real_array("integral", task.integral)):
            term["iz"], law._states = law._states, law._states + len(rows)
    law._gains(task, len(rows), task.integral, 0.0)
    given = task.target if isinstance(task.target, (list, tuple)) else [task.target] * len(rows)
    if len(given) != len(rows):
        raise ShapeError(f"target of {_name(task)} is one number or law, or {len(rows)}; got {task.target!r}")
    law._targets(term, f"target of {_name(task)}", given)


def _force_rows(robot: Mechanism, task: ForceTask, contacts: Sequence[Any]) -> tuple[list[int], int]:
    """Which rows, and where those of the constraint start."""
    named = {c.frame: c for c in contacts}
    if task.on in named:
        contact = named[task.on]
        count = 6 if isinstance(contact, SurfaceContact) else 3 if contact.friction > 0.0 else 1
        first = 0
    else:
        where = robot.constraint(task.on).rows
        count, first = where.stop - where.start, where.start
    rows: list[Any] = list(range(count)) if task.rows is None else list(task.rows)
    if not rows or any(isinstance(r, bool) or not isinstance(r, int) or not 0 <= r < count for r in rows):
        raise ModelError(f"rows of {_name(task)} are numbers below {count}; got {task.rows!r}")
    return rows, first


WRITERS: dict[type, Callable[[TaskControl, Any, dict[str, Any]], None]] = {
    FrameTask: _frame,
    RelativeTask: _frame,
    ImpedanceTask: _frame,
    JointTask: _joint,
    PostureTask: _posture,
    CenterOfMassTask: _centroidal,
    MomentumTask: _centroidal,
    ForceTask: _force,
}


# ---- what is given ---------------------------------------------------------------------------------------------------


def _name(task: Any) -> str:
    about = next((getattr(task, key) for key in ("frame", "joint", "on") if hasattr(task, key)), "")
    return type(task).__name__ + (f"('{about}')" if about else "")


def _components(task: Any) -> list[int]:
    given: Any = task.components
    if given is None:
        target = task.target
        translates = not callable(target) and _shape(target)[-1:] == (3,)
        given = "tx ty tz" if translates else "rx ry rz tx ty tz"
    names = given.split() if isinstance(given, str) else []
    if not names or len(set(names)) != len(names) or any(name not in COMPONENTS for name in names):
        raise ModelError(f"components of {_name(task)} are some of 'rx ry rz tx ty tz', each once; got {given!r}")
    return [COMPONENTS.index(name) for name in names]


def _is_pose(target: Any) -> bool:
    return _shape(target)[-2:] == (4, 4)


def _shape(target: Any) -> tuple[int, ...]:
    """Of numbers; of laws, and of components of which some are one a run, how many there are."""
    if not _has_laws(target):
        with suppress(ValueError):
            return np.shape(target)
    return () if isinstance(target, Law) else (len(target),)


def _has_laws(given: Any) -> bool:
    return isinstance(given, Law) or (isinstance(given, (list, tuple)) and any(map(_has_laws, given)))


def _pose_vector(pose: Numbers, what: str) -> Numbers:
    """Rotation vector and position."""
    try:
        turn = Rotation.from_matrix(pose[:3, :3]).log()
    except ValueError as error:
        raise ModelError(f"{what}: {error}") from None
    if not np.isfinite(pose).all() or not np.array_equal(pose[3], [0.0, 0.0, 0.0, 1.0]):
        raise ModelError(f"{what} is no pose: its last row must be [0, 0, 0, 1]; got {pose.tolist()}")
    return np.concatenate([turn, pose[:3, 3]])


def _pose_numbers(function: Callable[[float], Any], t: float, what: str) -> Numbers:
    """R, p, V and A of a function's target."""

    def pose(at: float, given: Any) -> Numbers:
        x = real_array(f"{what} at t = {at:.6g}", given)
        if x.shape != (4, 4):
            raise ShapeError(
                f"{what} at t = {at:.6g} is a pose (4, 4), or (pose, velocity (6,), acceleration (6,)); got {given!r}"
            )
        _pose_vector(x, what)
        return x

    given = function(t)
    if isinstance(given, tuple):
        if len(given) != 3 or np.shape(given[1]) != (6,) or np.shape(given[2]) != (6,):
            raise ShapeError(
                f"{what} at t = {t:.6g} is a pose, or (pose, velocity (6,), acceleration (6,)); got {given!r}"
            )
        now, V, A = pose(t, given[0]), real_array(what, given[1]), real_array(what, given[2])
    else:
        now, h = pose(t, given), DIFFERENCE
        before, after = (pose(at, function(at)) for at in (t - h, t + h))
        turn = [Rotation.from_matrix(x[:3, :3] @ now[:3, :3].T).log() for x in (before, after)]
        V = np.concatenate([turn[1] - turn[0], after[:3, 3] - before[:3, 3]]) / (2.0 * h)
        A = np.concatenate([turn[1] + turn[0], after[:3, 3] - 2.0 * now[:3, 3] + before[:3, 3]]) / h**2
    numbers = np.concatenate([now[:3, :3].ravel(), now[:3, 3], V, A])
    if not np.isfinite(numbers).all():
        raise StateError(f"{what} at t = {t:.6g} must be finite; got {given!r}")
    return numbers


def _check_frame(robot: Mechanism, name: str) -> None:
    if name not in robot.frames:
        robot.pose(robot.neutral(), name)  # which says what there is


def _of_joint(given: Any, name: str, default: Any) -> Any:
    if given is None:
        return default
    if isinstance(given, Mapping):
        return given.get(name, default)
    return given


def _both(what: str, name: str, given: Any) -> tuple[Any, Any]:
    """(lower, upper) of a number that holds both ways, or of two."""
    if isinstance(given, (tuple, list)):
        if len(given) != 2:
            raise ShapeError(f"{what} of '{name}' is a number or (lower, upper); got {given!r}")
        return given[0], given[1]
    if what == "position":
        raise ShapeError(f"position of '{name}' is (lower, upper); got {given!r}")
    return -np.asarray(given, dtype=float), np.asarray(given, dtype=float)


# ---- the answer ------------------------------------------------------------------------------------------------------


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
    def _of(cls, law: TaskControl, found: dict[str, Any]) -> TaskSolution:
        robot, names = law.robot, [_name(task) for task in law.tasks]
        status = found["status"]
        if status == _core.Status.UNSOUND:
            raise StateError("q, v and t must be finite, and quaternions rotations")
        if status == _core.Status.OFF_LOOPS:
            raise StateError(
                "the state is off the loops: project_configuration() and project_velocity() bring it onto them"
            )
        if status == _core.Status.CONTRADICTORY:
            hard = ", ".join(name for name, task in zip(names, law.tasks, strict=True) if task.hard)
            hard += (" and " if hard else "") + ", ".join(f"the contact of '{c.frame}'" for c in law.contacts)
            raise StateError(
                f"what must hold contradicts itself, or no motor can bring it about: {hard}; make one of them hard=False"
            )
        if status != _core.Status.FINE:
            raise StateError("the quadratic programme of the limits found no answer in this state")
        x, k, efforts = found["x"], 0, {}
        for name in law.actuated:
            n = robot.joint(name).type.nv
            efforts[name] = float(x[k]) if n == 1 else x[k : k + n]
            k += n
        forces = {}
        for contact in law._terms["contacts"]:
            forces[contact["frame"]] = x[k : k + contact["rows"]]
            k += contact["rows"]
        order = sorted(range(len(law.tasks)), key=lambda i: (law._levels[i], i))
        sizes = [law._sizes[i] for i in order]
        split = np.cumsum([0, *sizes])
        where = {i: slice(split[j], split[j + 1]) for j, i in enumerate(order)}
        active = found["active"]
        missed = tuple(n for n, a in zip(law._limit_names, active, strict=False) if abs(a) > 1)
        said = {
            0: "solved",
            1: f"limits of motion given up: {', '.join(missed) or 'none'}",
            2: f"what must hold is missed, held back by {', '.join(law._limit_names[i] for i in np.flatnonzero(active))}",
        }[found["conflict"]]
        return cls(
            found["tau"], efforts, found["acceleration"], forces,
            tuple(found["error"][where[i]] for i in range(len(law.tasks))), tuple(found["missed"][where[i]] for i in range(len(law.tasks))),
            tuple(n for n, a in zip(law._limit_names, active, strict=False) if a), missed, float(found["damping"]), said, tuple(names),
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
