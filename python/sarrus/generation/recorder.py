"""Functions of a state on numbers that are not known yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np

from .. import _recording
from .._arrays import Array, ArrayLike, checked_count, checked_names, checked_number, checked_text, real_array
from ..analysis.scaling import ScaledLoops
from ..control import TaskControl
from ..dynamics.options import ExpressedIn
from ..errors import ModelError, ShapeError, check_choice, check_name, raise_no_such_name
from ..mechanism import Mechanism
from . import samples
from .elimination import eliminated
from .tasks import recorded_tasks

Numbers = Any  # an array of objects that compute

NEARBY = 0.03  # how far a last configuration is from the next one, in samples [rad, sizes of the bodies]
MOST_STEPS = 100  # each is recorded; Newton's steps that near need three
NO_ANSWER = 2  # what the status is at least where a result is not finite
BROKEN = 8  # what the status has besides where an assumption does not hold


class Recorder:
    """What a function of generated C does, written with functions of a state and NumPy on arrays of numbers that are not known yet.

    Such numbers add, subtract, multiply and divide, with each other and with floats, so ``J.T @ u`` works; they have no value, so nothing can
    be decided by them. Where the core's algorithms decide (how often an answer is corrected), sample states do, and the code that comes of it can
    check whether they were representative.

    Parameters
    ----------
    robot : the mechanism
    scalar : "double" or "float", what the code is to compute in
    configurations : (n, nq) sample configurations on the loops; None: the home and five drawn about it, the same ones every time; of open chains six
        drawn anywhere

    Attributes
    ----------
    q, v, a, tau, time : arrays of inputs, of the sizes that they have elsewhere

    Examples
    --------
    >>> import sarrus
    >>> recorder = sarrus.generation.Recorder(sarrus.mechanisms.pendulum())
    >>> tau = recorder.call("inverse_dynamics", recorder.q, recorder.v, recorder.a)
    >>> power = recorder.v @ tau
    """

    def __init__(self, robot: Mechanism, *, scalar: str = "double", configurations: ArrayLike | None = None) -> None:
        if not isinstance(robot, Mechanism):
            raise TypeError(f"robot must be a Mechanism; got {robot!r}")
        check_choice("scalar", scalar, ("double", "float"))
        self.robot, self.scalar = robot, scalar
        rng = np.random.default_rng(samples.SEED)
        chosen = None if configurations is None else np.atleast_2d(real_array("configurations", configurations))
        if chosen is not None and (chosen.ndim != 2 or chosen.shape[1] != robot.nq or not len(chosen)):
            raise ShapeError(f"configurations must be (n, {robot.nq}); got {chosen.shape}")
        count = samples.COUNT if chosen is None else len(chosen)
        self._given = chosen
        self._recording = _recording.recording(robot, count, scalar == "float")
        if self._recording.pfaffian_values:
            raise ModelError("constraints whose rows Python functions give (add_pfaffian) cannot be generated as C")
        times = rng.uniform(0.0, 1.0, count) if self._recording.driven else np.zeros(count)
        self._configurations = samples.configurations(robot, times, rng) if chosen is None else chosen
        self._samples = {"q": self._configurations, "time": times[:, None]}
        self._samples |= samples.motion(robot, self._configurations, times, rng)
        self._rng = rng
        self.inputs: dict[str, Numbers] = {}
        self.status: _recording.Number | None = None

    def assume(self, x: Numbers, least: float) -> None:
        """That a number's size is this at least, wherever the code is used; it checks so, and the status has 8 more where it is not."""
        numbers = self._flat(x)
        if len(numbers) != 1:
            raise ShapeError(f"x must be one number; got {len(numbers)}")
        self._recording.assume(numbers[0], checked_number("least", least))

    @cached_property
    def _loops(self) -> ScaledLoops:
        return ScaledLoops(self.robot, self._configurations[0], None)

    def __getattr__(self, name: str) -> Numbers:
        if name not in ("q", "v", "a", "tau", "time"):
            raise AttributeError(f"a Recorder has no attribute '{name}'")
        return self.inputs[name] if name in self.inputs else self.input(name, self._samples[name])

    def input(self, name: str, values: ArrayLike) -> Numbers:
        """An argument (n,) of the function, with its values (samples, n) in the sample states."""
        if checked_text("name", name) in self.inputs:
            raise ValueError(f"there is an input '{name}' already")
        values = real_array(name, values)
        if values.ndim != 2 or len(values) != len(self._configurations):
            raise ShapeError(
                f"{name} must have values in {len(self._configurations)} samples; got shape {values.shape}"
            )
        self.inputs[name] = np.array(self._recording.input(values), dtype=object)
        return self.inputs[name]

    def call(
        self, operation: str, *inputs: Numbers | None, frame: str | None = None, expressed_in: ExpressedIn = "frame"
    ) -> Numbers:
        """A function of the core by its name, on arrays of numbers; its result, in the shape that it has elsewhere.

        The status of the generated function is the worst of those of all calls.
        """
        check_name("function", operation, _recording.operations)
        keys, axes, at_frame = _recording.operations[operation]
        if at_frame != (frame is not None):
            raise TypeError(f"{operation} wants {'the name of a frame' if at_frame else 'no frame'}")
        if frame is not None and frame not in self.robot.frames and frame not in self.robot.bodies:
            raise_no_such_name("frame", frame, (*self.robot.frames, *self.robot.bodies))
        check_choice("expressed_in", expressed_in, ExpressedIn)
        result, status = self._recording.call(
            operation, self._read(operation, keys.split(), inputs), frame, expressed_in
        )
        self.status = status if self.status is None else self.status.larger(status)
        sizes = {"v": self.robot.nv, "q": self.robot.nq, "c": self.robot.nc, "u": self.robot.nu, "Q": self.robot.nq + 1}
        return np.array(result, dtype=object).reshape(
            [sizes.get(axis) or int(axis) if axis not in sizes else sizes[axis] for axis in axes]
        )

    def _read(self, operation: str, keys: Sequence[str], inputs: Sequence[Numbers | None]) -> list[Any]:
        """Arrays as flat lists, of the sizes that the operation reads; what ends in "?" may be missing."""
        robot = self.robot
        sizes = {
            "q": robot.nq,
            "time": 1,
            "weights": robot.nu,
            "preload": robot.nu,
            "base_velocity": 6,
            "base_acceleration": 6,
        }
        numbers = [None if x is None else self._flat(x) for x in inputs]
        if len(inputs) > len(keys):
            raise TypeError(f"{operation} takes {', '.join(keys)}; got {len(inputs)} arrays")
        for key, x in zip_longest(keys, numbers):
            size = sizes.get(key.rstrip("?"), robot.nv)
            if (x is None and key[-1] != "?") or (x is not None and len(x) != size):
                raise ShapeError(f"{operation} takes {key} of {size} numbers; got {x if x is None else len(x)}")
        return numbers

    def tasks(self, law: TaskControl) -> Mapping[str, Numbers]:
        """What a :class:`~sarrus.control.TaskControl` without limits and contacts answers: `efforts` in the order of ``law.actuated``, the `acceleration`
        of it, and of all rows in the order of ``law.tasks`` `errors` and `missed`.

        Targets become inputs, TASK_target, with TASK_target_velocity and _acceleration, whatever numbers or functions they are; those that are laws
        of time stay so. TASK is what the task is at (its frame, joint or constraint), or else its kind. Of a frame that turns the target is a
        pose (16,), row by row, otherwise a position (3,); velocities and accelerations are [angular; linear] in the reference's axes.
        """
        return recorded_tasks(self, law)

    def derivatives(self, results: Numbers, inputs: Numbers) -> Numbers:
        """d results / d inputs (m, n), by a sweep backwards a result; `inputs` may be any numbers, and count as independent of each other."""
        rows = self._recording.derivatives(self._flat(results), self._flat(inputs))
        return np.array(rows, dtype=object).reshape(np.size(results), np.size(inputs))

    def apart(self, numbers: Numbers) -> Numbers:
        """The same numbers as expressions of their own: derivatives by them, or beside them, do not see what they are made of."""
        return np.array([x.apart() for x in self._flat(numbers)], dtype=object).reshape(np.shape(numbers))

    def constant(self, x: float) -> _recording.Number:
        """A number that is known."""
        return self._recording.constant(checked_number("x", x, ""))

    # ---- of loops ----------------------------------------------------------------------------------------------------

    def positions(self, joints: Sequence[str], steps: int = 3) -> tuple[Numbers, Numbers]:
        """The configuration in which these joints have the coordinates of the input ``coordinates``, by Newton's steps from the input ``last``;
        and what the loops lack there (1,), in radians and sizes of the bodies.
        """
        held_q, held = self._places(joints)
        coordinates = self.input("coordinates", self._configurations[:, held_q])
        last = self.input("near", self._displaced())
        q = self._of_loops(last)
        q[held_q] = coordinates
        closed, residual = self.closed(q, joints, steps)
        q = self._chosen(closed, last)
        q[held_q] = coordinates
        return q, residual

    def closed(self, q: Numbers, joints: Sequence[str], steps: int = 3) -> tuple[Numbers, Numbers]:
        """The configuration near q in which loops are closed and these joints are where they are, by Newton's steps, and what is left open."""
        _, held = self._places(joints)
        phi = self._rows("constraint_residual", q, self._time())
        for _ in range(checked_count("steps", steps, most=MOST_STEPS)):
            J = self._rows("constraint_jacobian", q, self._time())
            q = self.call("integrate", q, self._others(J, held, -phi))
            phi = self._rows("constraint_residual", q, self._time())
        phi = phi * self._loops.row_scale * self._loops.holonomic
        return q, np.array([np.sqrt(phi @ phi + 0.0)], dtype=object)

    def _rows(self, name: str, q: Numbers, time: Numbers | None = None) -> Numbers:
        """Of constraints, those of ball joints along the world's axes: fewer operations, and the same motions."""
        return self.call(name, q, time, expressed_in="world")

    def velocities(self, q: Numbers, joints: Sequence[str], rates: Numbers) -> Numbers:
        """v (nv,), or several (nv, k), in which these joints move at these rates (n,) or (n, k), and all others as the loops make them."""
        if self._recording.driven:
            raise ModelError("laws of time move this mechanism: rates of joints do not tell its velocity")
        _, held = self._places(joints)
        self._flat(rates)
        if np.shape(rates)[:1] != (len(held),):
            raise ShapeError(f"rates must be of {len(held)} velocities of joints; got shape {np.shape(rates)}")
        (of_q,) = self._read("a velocity", ["q"], [q])
        J = self._rows("constraint_jacobian", self._of_loops(of_q))
        return self._with(held, self._others(J, held, -J[:, held] @ rates), rates)

    def joint_jacobian(self, q: Numbers, joints: Sequence[str]) -> Numbers:
        """(nv, n) velocities of all joints by those of these ones."""
        return self.velocities(q, joints, np.eye(len(self._places(joints)[1])))

    @cached_property
    def _in_loops(self) -> tuple[Array, Array]:
        """Which coordinates and velocities are of joints that a loop knows of: the others have no column in its rows, wherever they are."""
        J = self.call("constraint_jacobian", self._inputs_of_none("q"))
        touched = np.array([any(x.constant != 0.0 for x in column) for column in J.T], dtype=bool)
        of_q = np.zeros(self.robot.nq, dtype=bool)
        for joint in map(self.robot.joint, self.robot.joints):
            touched[joint.v_slice] = of_q[joint.q_slice] = touched[joint.v_slice].any()
        return of_q, touched

    def _inputs_of_none(self, name: str) -> Numbers:
        """An input that is none of the function's: what is asked of it is left out of the code."""
        return np.array(self._recording.input(self._samples[name]), dtype=object)

    def _unasked(self, size: int) -> Numbers:
        """An input besides those of the function, of no values."""
        return np.array(self._recording.input(np.zeros((len(self._configurations), size))), dtype=object)

    def _of_loops(self, q: Numbers) -> Numbers:
        """The same, with the joints that no loop knows of at rest: where they are changes nothing, and costs nothing then."""
        return self._chosen(q, self.robot.neutral().astype(object))

    def _chosen(self, in_loops: Numbers, others: Numbers) -> Numbers:
        chosen: Numbers = np.where(self._in_loops[0], in_loops, others)
        return chosen

    def _displaced(self) -> Array:
        """Configurations nearby: the last ones of a controller."""
        near = self._rng.uniform(-NEARBY, NEARBY, (len(self._configurations), self.robot.nv))
        return self.robot.integrate(self._configurations, near * self._loops.column_scale)

    def _with(self, held: list[int], others: Numbers, rates: Numbers) -> Numbers:
        """The same with the rates of those that are held, which the equation of the others leaves zero."""
        v = others.copy()
        v[held] = rates
        return v

    def _others(self, J: Numbers, held: list[int], b: Numbers) -> Numbers:
        """x (nv, ...) with J x = b, zero where joints are held.

        By elimination, with the pivots of the samples: of those that are large in all of them the one that fills in least (Markowitz). Rows
        that depend on the ones before are left; code checks that pivots do not become small where the samples' are not.
        """
        moving = [k for k in range(self.robot.nv) if k not in held and self._in_loops[1][k]]
        x = np.full((self.robot.nv, *b.shape[1:]), self._recording.constant(0.0), dtype=object)
        x[moving] = eliminated(self, J[:, moving] * 1.0, b)
        return x

    # ----------------------------------------------------------------------------------------------------------------

    def _places(self, joints: Sequence[str]) -> tuple[list[int], list[int]]:
        """Where coordinates and velocities of joints stand."""
        of = [self.robot._tree_joint(name) for name in checked_names("joints", joints)]
        return [k for j in of for k in range(*j.q_slice.indices(self.robot.nq))], [
            k for j in of for k in range(*j.v_slice.indices(self.robot.nv))
        ]

    def _time(self) -> Numbers | None:
        return self.time if self._recording.driven else None

    def _flat(self, x: Numbers) -> list[_recording.Number]:
        number = _recording.Number
        try:
            each = np.ravel(np.asarray(x, dtype=object))
        except ValueError as error:
            raise ShapeError(f"numbers must be an array; {error}") from None
        return [
            e if isinstance(e, number) else self._recording.constant(checked_number("a number of a Recorder", e, ""))
            for e in each
        ]

    def values(self, numbers: Numbers) -> Array:
        """What numbers are in the sample states: (samples, ...)."""
        x = self._recording.values(self._flat(numbers))
        return x.reshape(len(self._configurations), *np.shape(numbers))
