"""What the core is told of tasks: of each its kind and rows, and in columns of parameters the numbers that runs may have their own of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import real_array
from .._core import tolerances
from ..analysis.scaling import PRESENT, ScaledLoops, null_space
from ..errors import AssemblyError, ModelError, ShapeError, StateError, warn_of_model
from ..laws import Law, law_terms_of_runs
from ..mechanism import Mechanism
from ..spatial import Rotation
from .coordinates import coordinate, loses_turns, one_a_coordinate, turning
from .limit_terms import check_frame, contact_rows
from .path import Path
from .tasks import (
    CenterOfMassTask,
    ForceTask,
    FrameTask,
    ImpedanceTask,
    JointTask,
    MomentumTask,
    PointContact,
    PostureTask,
    RelativeTask,
    SurfaceContact,
    Task,
)

COMPONENTS = ("rx", "ry", "rz", "tx", "ty", "tz")
DIFFERENCE = 1e-3  # [s] over which rates of a function's poses are found
ASIDE = 0.1  # [rad/s, m/s], for a second: how far from home it is looked too
Numbers = NDArray[np.float64]


class TaskTerms:
    """What tasks are to the core.

    Attributes
    ----------
    descriptors : a dict a task, by level, which the core reads
    levels, sizes : of each task as it was given, its level (0: hard) and number of rows; depth : how many priorities there are
    columns : parameters, () or (runs,) each
    functions : targets that are functions: where their 24 numbers start among the numbers of a call, the function, what to call it in messages
    call_size, states : how many numbers a call brings along, and internal states there are
    """

    def __init__(
        self, robot: Mechanism, tasks: Sequence[Task], contacts: Sequence[PointContact | SurfaceContact]
    ) -> None:
        self.robot, self.contacts = robot, contacts
        self.columns: list[Numbers] = []
        self.functions: list[tuple[int, Callable[[float], Any], str]] = []
        self.call_size = self.states = 0
        for task in tasks:
            if type(task) not in WRITERS:
                raise TypeError(f"no task: {task!r}; tasks are those of sarrus.control, such as FrameTask")
            if not isinstance(task.hard, (bool, np.bool_)):
                raise TypeError(f"hard of {task_name(task)} must be True or False; got {task.hard!r}")
            priority: Any = task.priority
            if isinstance(priority, bool) or not isinstance(priority, int) or priority < 0:
                raise ModelError(f"priority of {task_name(task)} must be 0, 1, ...; got {priority!r}")
        levels = sorted({task.priority for task in tasks if not task.hard})
        self.depth = len(levels)
        self.levels = [0 if task.hard else 1 + levels.index(task.priority) for task in tasks]
        terms = []
        for task, level in zip(tasks, self.levels, strict=True):
            term: dict[str, Any] = {
                "kind": "frame", "level": level, "component": [], "beside": [], "frames": [], "target_axes": False, "iq": [], "iv": [],
                "turns": [], "angular": [], "contact": -1, "target": [], "push": [], "stiffness": [], "damping": [], "yielding": [], "parameter": len(self.columns),
                "given": -1, "iz": -1,
            }  # fmt: skip
            WRITERS[type(task)](self, task, term)
            terms.append(term)
        self.sizes = [len(term["component"]) for term in terms]
        self.descriptors = sorted(terms, key=lambda term: int(term["level"]))

    def gains(self, task: Any, rows: int, first: Any, second: Any) -> None:
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
            self.columns += row

    @staticmethod
    def _per_row(what: str, value: Any, rows: int, *, negative: bool = False) -> list[Numbers]:
        x = real_array(what, value)
        if x.shape not in ((), (rows,)) and not (x.ndim == 2 and x.shape[1] in (1, rows)):
            raise ShapeError(
                f"{what} is a number, ({rows},) for its rows, or of many runs (runs, {rows}) or (runs, 1); got shape {x.shape}"
            )
        if not np.isfinite(x).all() or (not negative and (x < 0.0).any()):
            raise ModelError(f"{what} must be finite and not negative; got {value!r}")
        return list(np.moveaxis(np.broadcast_to(x, (*x.shape[:-1], rows)), -1, 0))

    def targets(self, term: dict[str, Any], what: str, laws: Sequence[Any]) -> None:
        """Laws and numbers, of which each run may have its own."""
        first, whose = len(self.columns) + len(laws), list[Numbers]()
        for target in laws:
            if _has_laws(target):
                law, number = law_terms_of_runs(target, what, first + len(whose))
                term["target"].append(law)
                self.columns.append(np.zeros(()))
                whose += number
                continue
            x = real_array(what, target)
            if x.ndim > 1 or not np.isfinite(x).all():
                raise ShapeError(f"{what} is a law, a finite number, or one a run; got {target!r}")
            term["target"].append(None)
            self.columns.append(x)
        self.columns += whose


# ---- task by task ----------------------------------------------------------------------------------------------------


def _frame(terms: TaskTerms, task: Any, term: dict[str, Any]) -> None:
    what = f"target of {task_name(task)}"
    reference = getattr(task, "reference", "ground")
    for name in (task.frame, reference):
        check_frame(terms.robot, name)
    if task.frame == reference:
        raise ModelError(f"{task_name(task)} relates '{reference}' to itself")
    if task.axes not in ("world", "target"):
        raise ModelError(f"axes of {task_name(task)} are 'world' or 'target'; got {task.axes!r}")
    components = _components(task)
    term |= {
        "component": components,
        "beside": _beside(components),
        "frames": [task.frame, reference],
        "target_axes": task.axes == "target",
    }
    if isinstance(task, ImpedanceTask):
        _impedance(task, term, len(components))
    terms.gains(task, len(components), getattr(task, "stiffness", 0.0) if not term["stiffness"] else 0.0,
               task.damping if not term["stiffness"] else 0.0)  # fmt: skip
    slots: list[Any] = [0.0] * 6
    target: Any = task.target
    if callable(target) and not isinstance(target, Law):
        term["given"], terms.call_size = terms.call_size, terms.call_size + 24
        terms.functions.append((term["given"], target, what))
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
    terms.targets(term, what, slots)
    if isinstance(task, ImpedanceTask):
        for wrench in task.wrench or ():
            push, whose = law_terms_of_runs(wrench, f"wrench of {task_name(task)}", len(terms.columns))
            term["push"].append(push)
            terms.columns += whose


def _impedance(task: ImpedanceTask, term: dict[str, Any], n: int) -> None:
    matrices = {}
    for name in ("inertia", "stiffness", "damping"):
        x = real_array(f"{name} of {task_name(task)}", getattr(task, name))
        if x.shape not in ((), (n,), (n, n)):
            raise ShapeError(f"{name} of {task_name(task)} is a number, ({n},) or ({n}, {n}); got {x.shape}")
        matrices[name] = x if x.ndim == 2 else np.diag(np.broadcast_to(x, (n,)))
        if not np.isfinite(x).all() or not np.allclose(matrices[name], matrices[name].T):
            raise ModelError(f"{name} of {task_name(task)} must be symmetric and finite; got {getattr(task, name)!r}")
    if not np.linalg.eigvalsh(matrices["inertia"]).min() > 0.0:
        raise ModelError(f"inertia of {task_name(task)} must be positive definite; got {task.inertia!r}")
    inverse = np.linalg.inv(matrices["inertia"])
    term["stiffness"] = (inverse @ matrices["stiffness"]).ravel().tolist()
    term["damping"] = (inverse @ matrices["damping"]).ravel().tolist()
    if task.wrench is not None:
        if len(task.wrench) != n:
            raise ShapeError(
                f"wrench of {task_name(task)} has a number or law for each of {n} components; got {task.wrench!r}"
            )
        term["yielding"] = inverse.ravel().tolist()


def _joint(terms: TaskTerms, task: JointTask, term: dict[str, Any]) -> None:
    _joints(terms, task, term, [(task.joint, task.index, task.target)])


def _posture(terms: TaskTerms, task: PostureTask, term: dict[str, Any]) -> None:
    _joints(terms, task, term, _posture_targets(terms.robot, task))


def _posture_targets(robot: Mechanism, task: PostureTask) -> list[tuple[str, int, Any]]:
    targets = task.targets
    if isinstance(targets, Path):
        return [(name, k, targets.law(name, k)) for name in _plain_joints(robot) for k in range(robot.joint(name).nv)]
    if isinstance(targets, Mapping):
        all_of = []
        for name, target in targets.items():
            n = robot.joint(name).type.nv
            several = one_a_coordinate(target, n)
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


def _joints(terms: TaskTerms, task: Any, term: dict[str, Any], targets: list[tuple[str, int, Any]]) -> None:
    if not targets:
        raise ModelError(f"{task_name(task)} holds no joint")
    term["kind"], term["component"] = "joints", [0] * len(targets)
    for name, index, _ in targets:
        iq, iv = coordinate(terms.robot, name, index, type(task).__name__)
        term["iq"].append(iq), term["iv"].append(iv)
        term["turns"].append(loses_turns(terms.robot, name, index))
        term["angular"].append(turning(terms.robot.joint(name).type)[index])
    terms.gains(task, len(targets), task.stiffness, task.damping)
    terms.targets(term, f"target of {task_name(task)}", [target for *_, target in targets])


def _centroidal(terms: TaskTerms, task: Any, term: dict[str, Any]) -> None:
    components = _components(task)
    of_mass = isinstance(task, CenterOfMassTask)
    if of_mass and min(components) < 3:
        raise ModelError(f"components of CenterOfMassTask are of 'tx ty tz'; got {task.components!r}")
    if not terms.robot.mass > 0.0:
        raise ModelError(f"{task_name(task)} needs a mechanism that has mass")
    targets = list(task.target)
    if len(targets) != len(components):
        raise ShapeError(
            f"target of {task_name(task)} has a number or law for each of {len(components)} components; got {task.target!r}"
        )
    term |= {
        "kind": "center_of_mass" if of_mass else "momentum",
        "component": components,
        "beside": _beside(components),
    }
    terms.gains(task, len(components), task.stiffness if of_mass else task.gain, task.damping if of_mass else 0.0)
    terms.targets(term, f"target of {task_name(task)}", targets)


def _force(terms: TaskTerms, task: ForceTask, term: dict[str, Any]) -> None:
    robot, frames = terms.robot, [c.frame for c in terms.contacts]
    rows, first = _force_rows(robot, task, terms.contacts)
    term["component"] = [first + r for r in rows]
    if task.on in frames:
        term |= {"kind": "force", "contact": frames.index(task.on)}
        if np.any(real_array("integral", task.integral)):
            raise ModelError(
                f"integral of {task_name(task)} is for constraints: a contact's force is what the controller chooses"
            )
    else:
        term["kind"] = "multiplier"
        _warn_of_shared_rows(robot, task, term["component"])
        if np.any(real_array("integral", task.integral)):
            term["iz"], terms.states = terms.states, terms.states + len(rows)
    terms.gains(task, len(rows), task.integral, 0.0)
    targets = task.target if isinstance(task.target, (list, tuple)) else [task.target] * len(rows)
    if len(targets) != len(rows):
        raise ShapeError(f"target of {task_name(task)} is one number or law, or {len(rows)}; got {task.target!r}")
    terms.targets(term, f"target of {task_name(task)}", targets)


def _force_rows(robot: Mechanism, task: ForceTask, contacts: Sequence[Any]) -> tuple[list[int], int]:
    """Which rows, and where those of the constraint start."""
    named = {c.frame: c for c in contacts}
    if task.on in named:
        count, first = contact_rows(named[task.on]), 0
    else:
        where = robot.constraint(task.on).rows
        count, first = where.stop - where.start, where.start
    rows: list[Any] = list(range(count)) if task.rows is None else list(task.rows)
    if not rows or any(isinstance(r, bool) or not isinstance(r, int) or not 0 <= r < count for r in rows):
        raise ModelError(f"rows of {task_name(task)} are numbers below {count}; got {task.rows!r}")
    return rows, first


def _warn_of_shared_rows(robot: Mechanism, task: ForceTask, rows: Sequence[int]) -> None:
    """ModelWarning where redundant rows carry what others might: at home and beside it, as home may be a singular position."""
    shared = set(rows)
    try:
        home = robot.assemble()
        aside = robot.project_velocity(home, ASIDE * np.random.default_rng(0).normal(size=robot.nv))
        for q in (home, robot.project_configuration(robot.integrate(home, aside))):
            loops = ScaledLoops(robot, q, None)
            J = loops.jacobian(q)
            stress = null_space(J.T, tolerances.negligible * max(1.0, float(np.linalg.norm(J, 2))))
            shared &= set(np.flatnonzero(np.linalg.norm(stress, axis=1) > PRESENT).tolist())
    except (AssemblyError, StateError):
        return  # it is not known where the loops are closed
    if shared:
        first = robot.constraint(task.on).rows.start
        warn_of_model(
            f"{task_name(task)}: what rows {sorted(r - first for r in shared)} carry is not unique, as redundant rows might carry it instead; "
            "the target is that of one choice of many. Name in rows= those that PinLoads.not_unique does not list"
        )


WRITERS: dict[type, Callable[[TaskTerms, Any, dict[str, Any]], None]] = {
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


def task_name(task: Any) -> str:
    about = next((getattr(task, key) for key in ("frame", "joint", "on") if hasattr(task, key)), "")
    return type(task).__name__ + (f"('{about}')" if about else "")


def _components(task: Any) -> list[int]:
    components: Any = task.components
    if components is None:
        target = task.target
        translates = not callable(target) and _shape(target)[-1:] == (3,)
        components = "tx ty tz" if translates else "rx ry rz tx ty tz"
    names = components.split() if isinstance(components, str) else []
    if not names or len(set(names)) != len(names) or any(name not in COMPONENTS for name in names):
        raise ModelError(
            f"components of {task_name(task)} are some of 'rx ry rz tx ty tz', each once; got {components!r}"
        )
    return [COMPONENTS.index(name) for name in names]


def _beside(components: list[int]) -> list[int]:
    """The other components of the halves, rotation and translation, that have some: by all of them it is seen how small those are."""
    return [k for k in range(6) if k not in components and any(c // 3 == k // 3 for c in components)]


def _is_pose(target: Any) -> bool:
    return _shape(target)[-2:] == (4, 4)


def _shape(target: Any) -> tuple[int, ...]:
    """Of numbers; of laws, and of components of which some are one a run, how many there are."""
    if not _has_laws(target):
        with suppress(ValueError):
            return np.shape(target)
    return () if isinstance(target, Law) else (len(target),)


def _has_laws(target: Any, deepest: int = 4) -> bool:
    """Whether there are laws among targets; of lists in lists no deeper than any target goes, as a list may stand in itself."""
    if isinstance(target, (list, tuple)) and deepest > 0:
        return any(_has_laws(one, deepest - 1) for one in target)
    return isinstance(target, Law)


def _pose_vector(pose: Numbers, what: str) -> Numbers:
    """Rotation vector and position."""
    try:
        turn = Rotation.from_matrix(pose[:3, :3]).log()
    except ValueError as error:
        raise ModelError(f"{what}: {error}") from None
    if not np.isfinite(pose).all() or not np.array_equal(pose[3], [0.0, 0.0, 0.0, 1.0]):
        raise ModelError(f"{what} is no pose: its last row must be [0, 0, 0, 1]; got {pose.tolist()}")
    return np.concatenate([turn, pose[:3, 3]])


def pose_numbers(function: Callable[[float], Any], t: float, what: str) -> Numbers:
    """R, p, V and A of a function's target."""

    def pose(at: float, value: Any) -> Numbers:
        x = real_array(f"{what} at t = {at:.6g}", value)
        if x.shape != (4, 4):
            raise ShapeError(
                f"{what} at t = {at:.6g} is a pose (4, 4), or (pose, velocity (6,), acceleration (6,)); got {value!r}"
            )
        _pose_vector(x, what)
        return x

    returned = function(t)
    if isinstance(returned, tuple):
        if len(returned) != 3 or np.shape(returned[1]) != (6,) or np.shape(returned[2]) != (6,):
            raise ShapeError(
                f"{what} at t = {t:.6g} is a pose, or (pose, velocity (6,), acceleration (6,)); got {returned!r}"
            )
        now, V, A = pose(t, returned[0]), real_array(what, returned[1]), real_array(what, returned[2])
    else:
        now, h = pose(t, returned), DIFFERENCE
        before, after = (pose(at, function(at)) for at in (t - h, t + h))
        turn = [Rotation.from_matrix(x[:3, :3] @ now[:3, :3].T).log() for x in (before, after)]
        V = np.concatenate([turn[1] - turn[0], after[:3, 3] - before[:3, 3]]) / (2.0 * h)
        A = np.concatenate([turn[1] + turn[0], after[:3, 3] - 2.0 * now[:3, 3] + before[:3, 3]]) / h**2
    numbers = np.concatenate([now[:3, :3].ravel(), now[:3, 3], V, A])
    if not np.isfinite(numbers).all():
        raise StateError(f"{what} at t = {t:.6g} must be finite; got {returned!r}")
    return numbers
