"""Recording of a :class:`~sarrus.control.TaskControl`, whose targets become inputs of the generated function."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..control import TaskControl
from ..errors import ModelError

if TYPE_CHECKING:
    from .recorder import Numbers, Recorder

KINDS: dict[str, tuple[tuple[str, str], ...]] = _core.task_table()  # (key, sort) of the fields of each kind
RATES = ("", "_velocity", "_acceleration")  # suffixes of the names of a target's three inputs
# kind of task -> number of its inputs, if it is not three; the target of a MultiplierTask, for example, has only a value
ORDERS = {"MomentumTask": 2, "MultiplierTask": 1}


def recorded_tasks(r: Recorder, law: TaskControl) -> Mapping[str, Numbers]:
    """Record the results of ``law.solve``.

    The results are `efforts` in the order of ``law.actuated``, `acceleration`, `errors` and `missed` of all task rows in the order of ``law.tasks``,
    and the rates `z_dot` of the actuators' internal states z.
    """
    _check(r, law)
    q, v, inputs = r.q, r.v, _Inputs(r, law)
    core, terms = law._core, law._core.described
    order = sorted(range(len(law.tasks)), key=core.levels.__getitem__)
    tasks = [inputs.described(law.tasks[i], d) for i, d in zip(order, terms["tasks"], strict=True)]
    sizes = {"parameters": len(inputs.parameters), "call_numbers": len(inputs.call)}
    described = _core.TaskDescription(r.robot, {**terms, **sizes, "tasks": tasks})
    timed = inputs.laws or r._recording.driven
    states = core.states
    z = r.input("z", np.zeros((len(r._configurations), states))) if states else []
    arguments = (inputs.parameters, inputs.call, r.time if timed else [0.0], q, v, z)
    results, status = r._recording.tasks(described, *map(r._flat, arguments))
    r.status = status if r.status is None else r.status.larger(status)
    efforts, acceleration, errors, missed, z_dot = (np.array(x, dtype=object) for x in results)
    rows = np.split(np.arange(len(errors)), np.cumsum([core.sizes[i] for i in order])[:-1])
    permutation = np.concatenate([rows[order.index(i)] for i in range(len(order))])
    named = {
        "efforts": efforts,
        "acceleration": acceleration,
        "errors": errors[permutation],
        "missed": missed[permutation],
    }
    return named | ({"z_dot": z_dot} if states else {})


def _check(r: Recorder, law: TaskControl) -> None:
    if not isinstance(law, TaskControl):
        raise TypeError(f"law must be a TaskControl; got {law!r}")
    if law.robot is not r.robot:
        raise ModelError(f"the TaskControl belongs to another mechanism, '{law.robot.name}'")
    if law.limits is not None:
        raise ModelError(
            "a TaskControl with limits solves quadratic programs, which cannot be generated as C; pass limits=None"
        )
    if law.contacts:
        frames = ", ".join(f"'{contact.frame}'" for contact in law.contacts)
        raise ModelError(f"a TaskControl with contacts cannot be generated as C; contacts: {frames}")
    if law.parameters.ndim > 1:
        raise ModelError(
            "a TaskControl with different parameters for each run cannot be generated as C; pass the parameters of one run"
        )


class _Inputs:
    """Parameters of a recorded TaskControl, and values that vary between calls. Targets that are not time functions become inputs of the recorder."""

    def __init__(self, r: Recorder, law: TaskControl) -> None:
        self.r = r
        self.parameters: list[Any] = law.parameters.tolist()
        self.call: list[Any] = []
        self.laws, self.names = False, list[str]()
        self._rng = np.random.default_rng(len(law.tasks))

    def described(self, task: Any, terms: dict[str, Any]) -> dict[str, Any]:
        """Return the task's description with inputs in place of its targets."""
        kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(task).__name__.removesuffix("Task")).lower()
        about = next((getattr(task, key) for key in ("frame", "joint", "on") if hasattr(task, key)), kind)
        short = re.sub(r"[^0-9A-Za-z]+", "_", about)
        self.names.append(short)
        name = short if self.names.count(short) == 1 else f"{short}_{self.names.count(short)}"
        fields = dict(terms["fields"])
        for key, sort in KINDS[terms["kind"]]:
            if sort == "pose":
                fields[key] = self._pose(f"{name}_{key}", task, fields)
            elif sort.startswith("targets") and fields[key] is not None:
                count = ORDERS.get(terms["kind"], 3) if key == "target" else 1
                fields[key] = self._targets(f"{name}_{key}", fields[key], count)
        return {**terms, "fields": fields}

    def _targets(self, name: str, described: tuple[int, list[Any]], count: int) -> tuple[int, list[Any]]:
        first, laws = described
        if any(law is not None for law in laws):
            self.laws = True
            return described
        n, at = len(laws), len(self.parameters)
        self.parameters[first : first + n] = [0.0] * n
        numbers = [self.r.input(name + suffix, self._drawn(n)) for suffix in RATES[:count]]
        numbers += [[0.0] * n] * (3 - count)
        self.parameters += [x for row in zip(*numbers, strict=True) for x in row]
        # time functions without polynomial pieces represent values that vary between calls
        return first, [([], at + 3 * k) for k in range(n)]

    def _pose(self, name: str, task: Any, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the target of a frame: a position if the task controls no rotation, else a pose, row-major.

        Its velocity and acceleration are [angular; linear].
        """
        described: dict[str, Any] = fields["target"]
        (first, laws), call = described["numbers"], described["call"]
        if call < 0 and any(law is not None for law in laws):
            self.laws = True
            return described
        robot, q = self.r.robot, np.roll(self.r._configurations, 1, axis=0)
        X = np.linalg.solve(robot.pose(q, getattr(task, "reference", "ground")), robot.pose(q, task.frame))
        turns = min(fields["components"]) < 3 or fields["axes"]
        n, values = (6, X.reshape(-1, 16)) if turns else (3, X[:, :3, 3])
        target, V, A = (
            self.r.input(name + s, x) for s, x in zip(RATES, (values, self._drawn(n), self._drawn(n)), strict=True)
        )
        R, p = (target.reshape(4, 4)[:3, :3], target[3:12:4]) if turns else (np.eye(3), target)
        none = [0.0] * (6 - n)
        call, self.call = len(self.call), [*self.call, *np.ravel(R), *p, *none, *V, *none, *A]
        return {"numbers": (first, [None] * len(laws)), "call": call}

    def _drawn(self, count: int) -> Any:
        return self._rng.normal(size=(len(self.r._configurations), count))
