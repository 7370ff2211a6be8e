"""What the core is told of tasks: of each its kind and fields, and in columns of parameters the numbers that runs may have their own of.

A kind in the core says which fields it has, and by their types of which sorts they are: a task's attributes of these names are checked, and
made what the core reads, as the sort says.
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
KINDS: dict[str, tuple[tuple[str, str], ...]] = _core.task_table()  # of each kind (key, sort) of its fields
DIFFERENCE = 1e-3  # [s] over which rates of a function's poses are found
Numbers = NDArray[np.float64]


class TaskTerms:
    """What tasks are to the core.

    Attributes
    ----------
    descriptors : a dict a task, by level, which the core reads
    levels, sizes : of each task in the order of the arguments, its level (0: hard) and number of rows; depth : how many priorities there are
    rows : of the task that is described
    columns : parameters, () or (runs,) each
    functions : targets that are functions: where their 24 numbers start among the numbers of a call, the function, what to call it in messages
    call_size, states : how many numbers a call brings along, and internal states there are
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
                raise TypeError(f"no task: {task!r}; tasks are those of sarrus.control, such as FrameTask")
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

    def row_numbers(self, what: str, value: Any, *, any_sign: bool = False) -> tuple[int, int]:
        """A number of each row: its first column, and how many there are."""
        rows, x = self.rows, real_array(what, value)
        if x.shape not in ((), (rows,)) and not (x.ndim == 2 and x.shape[1] in (1, rows)):
            raise ShapeError(
                f"{what} is a number, ({rows},) for its rows, or of many runs (runs, {rows}) or (runs, 1); got shape {x.shape}"
            )
        if not np.isfinite(x).all() or (not any_sign and (x < 0.0).any()):
            raise ModelError(f"{what} must be finite and not negative; got {value!r}")
        self.columns += list(np.moveaxis(np.broadcast_to(x, (*x.shape[:-1], rows)), -1, 0))
        return len(self.columns) - rows, rows

    def targets(self, what: str, values: Sequence[Any]) -> tuple[int, list[Any]]:
        """Laws and numbers, of which each run may have its own: the first column, and the laws."""
        first, whose, laws = len(self.columns), list[Numbers](), list[Any]()
        for value in values:
            law, number = None, np.zeros(())
            if has_laws(value):
                law, chosen = law_terms_of_runs(value, what, first + len(values) + len(whose))
                whose += chosen
            else:
                number = real_array(what, value)
                if number.ndim > 1 or not np.isfinite(number).all():
                    raise ShapeError(f"{what} is a law, a finite number, or one a run; got {value!r}")
            laws.append(law)
            self.columns.append(number)
        self.columns += whose
        return first, laws

    def new_states(self, count: int) -> int:
        """Where internal states start."""
        self.states += count
        return self.states - count


# ---- sorts of fields: what the core reads of a task's value ----------------------------------------------------------


def _frame(terms: TaskTerms, task: Any, name: str, what: str) -> str:
    check_frame(terms.robot, name)
    return name


def _numbers(terms: TaskTerms, task: Any, value: Any, what: str) -> tuple[int, int]:
    if isinstance(value, str) and what.startswith("damping"):
        if value != "critical":
            raise ModelError(f"{what} is 'critical' or numbers; got {value!r}")
        value = 2.0 * np.sqrt(real_array(what, task.stiffness))
    return terms.row_numbers(what, value)


def _targets(terms: TaskTerms, task: Any, values: Any, what: str) -> tuple[int, list[Any]]:
    laws = list(values) if isinstance(values, (list, tuple)) or np.ndim(values) else [values]
    if len(laws) != terms.rows:
        raise ShapeError(f"{what} has a number or law for each of {terms.rows} components; got {values!r}")
    return terms.targets(what, laws)


def _axes(terms: TaskTerms, task: Any, value: Any, what: str) -> bool:
    check_choice(what, value, TargetAxes, ModelError)
    return bool(value == "target")


def _pose(terms: TaskTerms, task: Any, target: Any, what: str) -> dict[str, Any]:
    """Numbers and laws of all six components, or where a function's numbers stand."""
    components = components_of(task)
    slots: list[Any] = [0.0] * 6
    call = -1
    if callable(target) and not isinstance(target, Law):
        call, terms.call_size = terms.call_size, terms.call_size + 24
        terms.functions.append((call, target, what))
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
    return {"numbers": terms.targets(what, slots), "call": call}


def matrix_of_rows(terms: TaskTerms, value: Any, what: str) -> Numbers:
    """Symmetric, of the task's rows."""
    n, x = terms.rows, real_array(what, value)
    if x.shape not in ((), (n,), (n, n)):
        raise ShapeError(f"{what} is a number, ({n},) or ({n}, {n}); got {x.shape}")
    matrix = x if x.ndim == 2 else np.diag(np.broadcast_to(x, (n,)))
    if not np.isfinite(x).all() or not np.allclose(matrix, matrix.T):
        raise ModelError(f"{what} must be symmetric and finite; got {value!r}")
    return matrix


Sort = Callable[[TaskTerms, Any, Any, str], Any]
SORTS: dict[str, Sort] = {
    "frame": _frame,
    "components": lambda terms, task, value, what: components_of(task),
    "coordinates": lambda terms, task, names, what: [
        coordinate_terms(terms.robot, name, index, type(task).__name__) for name, index in names
    ],
    "targets": _targets,
    "targets or none": lambda *of: None if of[2] is None else _targets(*of),
    "pose": _pose,
    "numbers": _numbers,
    "numbers of any sign": lambda terms, task, value, what: terms.row_numbers(what, value, any_sign=True),
    "matrix": lambda terms, task, value, what: matrix_of_rows(terms, value, what).ravel().tolist(),
    "target's axes": _axes,
    "plain": lambda terms, task, value, what: value,
}


# ---- names, components and poses -------------------------------------------------------------------------------------


def check_frame(robot: Mechanism, name: str) -> None:
    """NameNotFoundError where there is no such body or frame."""
    if name not in robot.frames:
        robot.pose(robot.neutral(), name)  # which says what there is


def coordinate_terms(robot: Mechanism, name: str, index: int, what: str) -> dict[str, Any]:
    """A coordinate of a joint whose rate is one of the velocities."""
    q, v = coordinate(robot, name, index, what)
    angular = turning(robot.joint(name).type)[index]
    return {"q": q, "v": v, "turns": loses_turns(robot, name, index), "angular": angular}


def task_name(task: Any) -> str:
    about = next((getattr(task, key) for key in ("frame", "joint", "on") if hasattr(task, key)), "")
    return type(task).__name__ + (f"('{about}')" if about else "")


def components_of(task: Any) -> list[int]:
    """Numbers of a task's components; by default those that its target has."""
    components: Any = task.components
    if components is None:
        target = task.target
        translates = not callable(target) and _shape(target)[-1:] == (3,)
        components = "tx ty tz" if translates else "rx ry rz tx ty tz"
    names = components.split() if isinstance(components, str) else []
    if not names or len(set(names)) != len(names) or any(name not in NAMES for name in names):
        raise ModelError(
            f"components of {task_name(task)} are some of 'rx ry rz tx ty tz', each once; got {components!r}"
        )
    return [NAMES.index(name) for name in names]


def _is_pose(target: Any) -> bool:
    return _shape(target)[-2:] == (4, 4)


def _shape(target: Any) -> tuple[int, ...]:
    """Of numbers; of laws, and of components of which some are one a run, how many there are."""
    if not has_laws(target):
        with suppress(ValueError):
            return np.shape(target)
    return () if isinstance(target, Law) else (len(target),)


def has_laws(target: Any, deepest: int = 4) -> bool:
    """Whether there are laws among targets; of lists in lists no deeper than any target goes, as a list may stand in itself."""
    if isinstance(target, (list, tuple)) and deepest > 0:
        return any(has_laws(one, deepest - 1) for one in target)
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
