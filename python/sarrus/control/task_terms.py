"""Input of the core for tasks: kind and fields of each task, and columns of parameters for values that may differ between runs.

The core's table lists the name and the sort of each field, for each kind of task. The attributes of a task with these names are checked and converted
according to their sort.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays import real_array
from ..errors import ModelError, ShapeError, StateError, check_choice
from ..laws import Law, law_terms_of_runs
from ..mechanism import Mechanism
from ..spatial import Rotation
from .coordinates import coordinate, loses_turns, turning

if TYPE_CHECKING:
    from .tasks import PointContact, SurfaceContact, Task

TargetAxes = Literal["world", "target"]
NAMES = ("rx", "ry", "rz", "tx", "ty", "tz")
KINDS: dict[str, tuple[tuple[str, str], ...]] = _core.task_table()  # (key, sort) of the fields of each kind
DIFFERENCE = 1e-3  # step of the finite differences for the velocity and acceleration of a target function's poses [s]
Numbers = NDArray[np.float64]


class TaskTerms:
    """Input of the core for tasks.

    Attributes
    ----------
    descriptors : a dict for each task, ordered by level
    levels, sizes : level (0: hard) and number of rows of each task, in the order of the arguments
    depth : number of priorities
    rows : number of rows of the current task
    columns : parameters, () or (runs,) each
    functions : targets that are Python functions: index of their 24 values in the array of a call, the function, its label in messages
    call_size, states : length of the array of a call, and number of internal states
    """

    def __init__(
        self, robot: Mechanism, tasks: Sequence[Task], contacts: Sequence[PointContact | SurfaceContact], motors: int
    ) -> None:
        self.robot = robot
        self.columns: list[Numbers] = []
        self.functions: list[tuple[int, Callable[[float], Any], str]] = []
        self.call_size = self.states = self.rows = 0
        firsts = np.cumsum([motors, *(contact._rows for contact in contacts)]).tolist()
        self.contact_unknowns: dict[str, range] = {}
        for contact, *ends in zip(contacts, firsts, firsts[1:], strict=False):
            self.contact_unknowns.setdefault(contact.frame, range(*ends))
        for task in tasks:
            if not getattr(task, "_kind", ""):
                raise TypeError(f"tasks must be tasks of sarrus.control, such as FrameTask; got {task!r}")
            if not isinstance(task.hard, (bool, np.bool_)):
                raise TypeError(f"hard of {task_name(task)} must be True or False; got {task.hard!r}")
            priority: Any = task.priority
            if isinstance(priority, bool) or not isinstance(priority, int) or priority < 0:
                raise ModelError(f"priority of {task_name(task)} must be 0, 1, ...; got {priority!r}")
        priorities = sorted({task.priority for task in tasks if not task.hard})
        self.depth = len(priorities)
        self.levels = [0 if task.hard else 1 + priorities.index(task.priority) for task in tasks]
        terms = [self._described(task, level) for task, level in zip(tasks, self.levels, strict=True)]
        self.sizes = [term["weight"][1] for term in terms]
        self.descriptors = sorted(terms, key=lambda term: int(term["level"]))

    def _described(self, task: Task, level: int) -> dict[str, Any]:
        kind, name = task._kind_of(self), task_name(task)
        self.rows = task._rows(self)
        values = task._values(self)
        described = {
            key: SORTS[sort](self, task, values[key] if key in values else getattr(task, key), f"{key} of {name}")
            for key, sort in KINDS[kind]
        }
        weight = self.row_numbers(f"weight of {name}", task.weight)
        if any((w <= 0.0).any() for w in self.columns[weight[0] :]):
            raise ModelError(f"weight of {name} must be positive; got {task.weight!r}")
        return {"kind": kind, "level": level, "weight": weight, "fields": described}

    def row_numbers(self, label: str, value: Any, *, any_sign: bool = False) -> tuple[int, int]:
        """Add a value for each row of the task; return the first column, and the number of rows."""
        rows, x = self.rows, real_array(label, value)
        if x.shape not in ((), (rows,)) and not (x.ndim == 2 and x.shape[1] in (1, rows)):
            raise ShapeError(
                f"{label} must be a number, ({rows},) for its rows, or for many runs (runs, {rows}) or (runs, 1); got shape {x.shape}"
            )
        if not np.isfinite(x).all() or (not any_sign and (x < 0.0).any()):
            raise ModelError(f"{label} must be finite and not negative; got {value!r}")
        self.columns += list(np.moveaxis(np.broadcast_to(x, (*x.shape[:-1], rows)), -1, 0))
        return len(self.columns) - rows, rows

    def targets(self, label: str, values: Sequence[Any]) -> tuple[int, list[Any]]:
        """Add time functions and numbers, which may differ between runs; return the first column, and the time functions."""
        first, law_columns, laws = len(self.columns), list[Numbers](), list[Any]()
        for value in values:
            law, number = None, np.zeros(())
            if has_laws(value):
                law, chosen = law_terms_of_runs(value, label, first + len(values) + len(law_columns))
                law_columns += chosen
            else:
                number = real_array(label, value)
                if number.ndim > 1 or not np.isfinite(number).all():
                    raise ShapeError(
                        f"{label} must be a time function, a finite number, or one of these for each run; got {value!r}"
                    )
            laws.append(law)
            self.columns.append(number)
        self.columns += law_columns
        return first, laws

    def new_states(self, count: int) -> int:
        """Add internal states; return the index of the first."""
        self.states += count
        return self.states - count


# ---- sorts of fields: conversion of a task's value to the core's input -----------------------------------------------


def _frame(terms: TaskTerms, task: Any, name: str, label: str) -> str:
    check_frame(terms.robot, name)
    return name


def _numbers(terms: TaskTerms, task: Any, value: Any, label: str) -> tuple[int, int]:
    if isinstance(value, str) and label.startswith("damping"):
        if value != "critical":
            raise ModelError(f"{label} must be 'critical' or numbers; got {value!r}")
        value = 2.0 * np.sqrt(real_array(label, task.stiffness))
    return terms.row_numbers(label, value)


def _targets(terms: TaskTerms, task: Any, values: Any, label: str) -> tuple[int, list[Any]]:
    laws = list(values) if isinstance(values, (list, tuple)) or np.ndim(values) else [values]
    if len(laws) != terms.rows:
        raise ShapeError(
            f"{label} must have a number or time function for each of {terms.rows} components; got {values!r}"
        )
    return terms.targets(label, laws)


def _axes(terms: TaskTerms, task: Any, value: Any, label: str) -> bool:
    check_choice(label, value, TargetAxes, ModelError)
    return bool(value == "target")


def _pose(terms: TaskTerms, task: Any, target: Any, label: str) -> dict[str, Any]:
    """Return the numbers and time functions of all six components, or for a Python function the index of its values."""
    components = components_of(task)
    slots: list[Any] = [0.0] * 6
    call = -1
    if callable(target) and not isinstance(target, Law):
        call, terms.call_size = terms.call_size, terms.call_size + 24
        terms.functions.append((call, target, label))
    elif isinstance(target, (list, tuple)) and not _is_pose(target) and len(target) == 6:
        slots = list(target)
    elif isinstance(target, (list, tuple)) and not _is_pose(target) and len(target) == len(components):
        if task.axes == "target":
            raise ShapeError(
                f"{label} with axes='target' must be a full pose: numbers or time functions for all six components"
            )
        for component, value in zip(components, target, strict=True):
            slots[component] = value
    else:
        x = real_array(label, target)
        if x.shape[-2:] == (4, 4):
            flat = [_pose_vector(pose, label) for pose in x.reshape(-1, 4, 4)]
            slots = list(np.moveaxis(np.reshape(flat, (*x.shape[:-2], 6)), -1, 0))
        elif x.shape[-1:] == (3,) and min(components) >= 3:
            slots[3:] = list(np.moveaxis(x, -1, 0))
        else:
            raise ShapeError(
                f"{label} must be a pose (4, 4), a position (3,) for components of translation, a number or time function for each of its "
                f"{len(components)} components or of all six, or a function of time; got {target!r}"
            )
    return {"numbers": terms.targets(label, slots), "call": call}


def matrix_of_rows(terms: TaskTerms, value: Any, label: str) -> Numbers:
    """Return a checked symmetric matrix (rows, rows) of the current task."""
    n, x = terms.rows, real_array(label, value)
    if x.shape not in ((), (n,), (n, n)):
        raise ShapeError(f"{label} must be a number, ({n},) or ({n}, {n}); got {x.shape}")
    matrix = x if x.ndim == 2 else np.diag(np.broadcast_to(x, (n,)))
    if not np.isfinite(x).all() or not np.allclose(matrix, matrix.T):
        raise ModelError(f"{label} must be symmetric and finite; got {value!r}")
    return matrix


Sort = Callable[[TaskTerms, Any, Any, str], Any]
SORTS: dict[str, Sort] = {
    "frame": _frame,
    "components": lambda terms, task, value, label: components_of(task),
    "coordinates": lambda terms, task, names, label: [
        coordinate_terms(terms.robot, name, index, type(task).__name__) for name, index in names
    ],
    "targets": _targets,
    "targets or none": lambda *args: None if args[2] is None else _targets(*args),
    "pose": _pose,
    "numbers": _numbers,
    "numbers of any sign": lambda terms, task, value, label: terms.row_numbers(label, value, any_sign=True),
    "matrix": lambda terms, task, value, label: matrix_of_rows(terms, value, label).ravel().tolist(),
    "target's axes": _axes,
    "plain": lambda terms, task, value, label: value,
}


# ---- names, components and poses -------------------------------------------------------------------------------------


def check_frame(robot: Mechanism, name: str) -> None:
    """Raise NameNotFoundError for an unknown body or frame."""
    if name not in robot.frames:
        robot.pose(robot.neutral(), name)  # raises, with the valid names


def coordinate_terms(robot: Mechanism, name: str, index: int, label: str) -> dict[str, Any]:
    """Return the core's input for a coordinate of a joint whose rate is a velocity."""
    q, v = coordinate(robot, name, index, label)
    angular = turning(robot.joint(name).type)[index]
    return {"q": q, "v": v, "turns": loses_turns(robot, name, index), "angular": angular}


def task_name(task: Any) -> str:
    about = next((getattr(task, key) for key in ("frame", "joint", "on") if hasattr(task, key)), "")
    return type(task).__name__ + (f"('{about}')" if about else "")


def components_of(task: Any) -> list[int]:
    """Return the indices of a task's components; default: those of its target."""
    components: Any = task.components
    if components is None:
        target = task.target
        translates = not callable(target) and _shape(target)[-1:] == (3,)
        components = "tx ty tz" if translates else "rx ry rz tx ty tz"
    names = components.split() if isinstance(components, str) else []
    if not names or len(set(names)) != len(names) or any(name not in NAMES for name in names):
        raise ModelError(
            f"components of {task_name(task)} must be from 'rx ry rz tx ty tz', each once; got {components!r}"
        )
    return [NAMES.index(name) for name in names]


def _is_pose(target: Any) -> bool:
    return _shape(target)[-2:] == (4, 4)


def _shape(target: Any) -> tuple[int, ...]:
    """Return the shape of a numerical target; for time functions, and for components with a sequence for runs, the number of components."""
    if not has_laws(target):
        with suppress(ValueError):
            return np.shape(target)
    return () if isinstance(target, Law) else (len(target),)


def has_laws(target: Any, deepest: int = 4) -> bool:
    """Return True if there are time functions among targets. The depth of recursion is limited, because a list may contain itself."""
    if isinstance(target, (list, tuple)) and deepest > 0:
        return any(has_laws(item, deepest - 1) for item in target)
    return isinstance(target, Law)


def _pose_vector(pose: Numbers, label: str) -> Numbers:
    """Return rotation vector and position (6,) of a pose."""
    try:
        turn = Rotation.from_matrix(pose[:3, :3]).log()
    except ValueError as error:
        raise ModelError(f"{label}: {error}") from None
    if not np.isfinite(pose).all() or not np.array_equal(pose[3], [0.0, 0.0, 0.0, 1.0]):
        raise ModelError(f"{label} must be a finite pose with last row [0, 0, 0, 1]; got {pose.tolist()}")
    return np.concatenate([turn, pose[:3, 3]])


def pose_numbers(function: Callable[[float], Any], t: float, label: str) -> Numbers:
    """Return R, p, V and A (24,) of a target function at time t."""

    def pose(at: float, value: Any) -> Numbers:
        x = real_array(f"{label} at t = {at:.6g}", value)
        if x.shape != (4, 4):
            raise ShapeError(
                f"{label} at t = {at:.6g} must be a pose (4, 4), or (pose, velocity (6,), acceleration (6,)); got {value!r}"
            )
        _pose_vector(x, label)
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
