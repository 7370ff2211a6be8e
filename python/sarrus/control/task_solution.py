"""What a :class:`~sarrus.control.TaskControl` answers in one state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._arrays import Array
from ..errors import StateError
from .task_terms import task_name

if TYPE_CHECKING:
    from .task_control import TaskControl

__all__ = ["TaskSolution"]

CONTACTS = 3  # of what the core calls a conflict: contacts contradict each other, or loops
STATES_AT_FAULT = (_core.Status.UNSOUND, _core.Status.OFF_LOOPS)


def refusal(law: TaskControl, report: dict[str, Any]) -> str | None:
    """Why there is no answer, and what to do about it; None where there is one."""
    status, who = report["status"], f"TaskControl of '{law.robot.name}': "
    if status == _core.Status.UNSOUND:
        return "q, v and t must be finite, and quaternions rotations"
    if status == _core.Status.OFF_LOOPS:
        return "the state is off the loops: project_configuration() and project_velocity() bring it onto them"
    if status == _core.Status.CONTRADICTORY:
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
