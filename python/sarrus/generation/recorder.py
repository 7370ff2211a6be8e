"""Recorder of functions of a state, which evaluates them with symbolic numbers."""

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

Numbers = Any  # array of symbolic numbers

# distance between a controller's previous configuration and the next one in the samples [rad, or relative to the size of the bodies]
NEARBY = 0.03
# largest number of Newton steps; it is limited, because each step is recorded. Near a solution three steps are enough
MOST_STEPS = 100
NO_ANSWER = 2  # smallest status of a state with a result that is not finite
BROKEN = 8  # value that is added to the status if an assumption does not hold


class Recorder:
    """Recorder of a function for generated C code, composed of functions of a state and of NumPy operations on symbolic numbers.

    Symbolic numbers support +, -, * and / with each other and with floats, so that ``J.T @ u`` works. They have no value, so that Python code cannot
    branch on them. Decisions in the core's algorithms, such as the number of refinements, are made for sample states. The generated code can check
    that the same decisions are valid in use.

    Parameters
    ----------
    robot : the mechanism
    scalar : "double" or "float", the floating-point type of the code
    configurations : (n, nq) sample configurations with closed loops [rad, m]. If None, the home and five random configurations near it are used, or
        six random configurations for open chains. They are the same in every call

    Attributes
    ----------
    q, v, a, tau, time : arrays of inputs (nq,), (nv,), (nv,), (nv,) and (1,)

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
        about = None if configurations is None else np.atleast_2d(real_array("configurations", configurations))
        if about is not None and (about.ndim != 2 or about.shape[1] != robot.nq or not len(about)):
            raise ShapeError(f"configurations must be (n, {robot.nq}); got {about.shape}")
        count = samples.COUNT if about is None else len(about)
        self._about = about
        self._recording = _recording.recording(robot, count, scalar == "float")
        if self._recording.pfaffian_values:
            raise ModelError("Pfaffian constraints of Python functions (add_pfaffian) cannot be generated as C")
        times = rng.uniform(0.0, 1.0, count) if self._recording.driven else np.zeros(count)
        self._configurations = samples.configurations(robot, times, rng) if about is None else about
        self._samples = {"q": self._configurations, "time": times[:, None]}
        self._samples |= samples.motion(robot, self._configurations, times, rng)
        self._rng = rng
        self.inputs: dict[str, Numbers] = {}
        self.status: _recording.Number | None = None

    def assume(self, x: Numbers, least: float) -> None:
        """Assume that the magnitude of a symbolic number is at least `least`.

        The generated code checks this, and adds 8 to the status if it is false.
        """
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
        """Add an argument (n,) to the generated function; `values` (samples, n) are the argument's values in the sample states."""
        if checked_text("name", name) in self.inputs:
            raise ValueError(f"input '{name}' exists already")
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
        """Record a call of a function of the core on arrays of symbolic numbers, and return its result.

        The result has the shape that the mechanism's method of the same name returns. The status of the generated function is the largest status of
        all recorded calls.
        """
        check_name("function", operation, _recording.operations)
        keys, axes, at_frame = _recording.operations[operation]
        if at_frame != (frame is not None):
            raise TypeError(f"{operation} {'requires frame=, the name of a frame' if at_frame else 'takes no frame'}")
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
        """Return arrays as flat lists, with the sizes that the operation expects; keys that end in "?" are optional arguments."""
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
            raise TypeError(f"{operation} requires {', '.join(keys)}; got {len(inputs)} arrays")
        for key, x in zip_longest(keys, numbers):
            size = sizes.get(key.rstrip("?"), robot.nv)
            if (x is None and key[-1] != "?") or (x is not None and len(x) != size):
                raise ShapeError(f"{operation} requires {key} with {size} entries; got {x if x is None else len(x)}")
        return numbers

    def tasks(self, law: TaskControl) -> Mapping[str, Numbers]:
        """Record the results of a :class:`~sarrus.control.TaskControl` without limits and contacts.

        Results are `efforts` in the order of ``law.actuated``, their `acceleration`, and `errors` and `missed` of all rows in the order of
        ``law.tasks``. Targets become inputs TASK_target, TASK_target_velocity and TASK_target_acceleration, except that targets which are time
        functions (:mod:`sarrus.laws`) become part of the code. TASK is the name of the task's frame, joint or constraint; for other tasks it is the
        kind of the task. The target of a frame is a position (3,), or a pose (16,), row-major, if the task controls rotations; velocities and
        accelerations are [angular; linear] in the reference's axes.
        """
        return recorded_tasks(self, law)

    def derivatives(self, results: Numbers, inputs: Numbers) -> Numbers:
        """Return the Jacobian (m, n) of results with respect to inputs, by a reverse sweep for each result.

        `inputs` may be any symbolic numbers; they are regarded as independent.
        """
        rows = self._recording.derivatives(self._flat(results), self._flat(inputs))
        return np.array(rows, dtype=object).reshape(np.size(results), np.size(inputs))

    def apart(self, numbers: Numbers) -> Numbers:
        """Return copies of symbolic numbers with equal values.

        Derivatives treat a copy as an independent variable, and do not propagate through it.
        """
        return np.array([x.apart() for x in self._flat(numbers)], dtype=object).reshape(np.shape(numbers))

    def constant(self, x: float) -> _recording.Number:
        """Return a constant as a symbolic number of the recording."""
        return self._recording.constant(checked_number("x", x, ""))

    # ---- loops -------------------------------------------------------------------------------------------------------

    def positions(self, joints: Sequence[str], steps: int = 3) -> tuple[Numbers, Numbers]:
        """Return q (nq,) with closed loops for prescribed coordinates of joints, and the residual (1,) [rad, or relative to the size of the bodies].

        The function gets two inputs: the prescribed ``coordinates``, and ``near`` (nq,), the initial guess of Newton's method.
        """
        indices, _ = self._indices(joints)
        coordinates = self.input("coordinates", self._configurations[:, indices])
        near = self.input("near", self._displaced())
        q = self._loop_coordinates(near)
        q[indices] = coordinates
        closed, residual = self.closed(q, joints, steps)
        q = self._merged(closed, near)
        q[indices] = coordinates
        return q, residual

    def closed(self, q: Numbers, joints: Sequence[str], steps: int = 3) -> tuple[Numbers, Numbers]:
        """Return the configuration near q with closed loops, and the residual (1,).

        It is computed by Newton steps; the coordinates of `joints` are fixed.
        """
        _, fixed = self._indices(joints)
        phi = self._rows("constraint_residual", q, self._time())
        for _ in range(checked_count("steps", steps, most=MOST_STEPS)):
            J = self._rows("constraint_jacobian", q, self._time())
            q = self.call("integrate", q, self._solved(J, fixed, -phi))
            phi = self._rows("constraint_residual", q, self._time())
        phi = phi * self._loops.row_scale * self._loops.holonomic
        return q, np.array([np.sqrt(phi @ phi + 0.0)], dtype=object)

    def _rows(self, name: str, q: Numbers, time: Numbers | None = None) -> Numbers:
        """Record constraint rows. Rows of ball joints are expressed in world axes, because this needs fewer operations."""
        return self.call(name, q, time, expressed_in="world")

    def velocities(self, q: Numbers, joints: Sequence[str], rates: Numbers) -> Numbers:
        """Return the velocities v (nv,) or (nv, k) that satisfy the constraints and have the rates (n,) or (n, k) at these joints [rad/s, m/s]."""
        if self._recording.driven:
            raise ModelError("prescribed motions drive this mechanism: rates of joints do not determine its velocity")
        _, driven = self._indices(joints)
        self._flat(rates)
        if np.shape(rates)[:1] != (len(driven),):
            raise ShapeError(
                f"rates must have {len(driven)} entries, the velocities of the joints; got shape {np.shape(rates)}"
            )
        (flat_q,) = self._read("a velocity", ["q"], [q])
        J = self._rows("constraint_jacobian", self._loop_coordinates(flat_q))
        v = self._solved(J, driven, -J[:, driven] @ rates)
        v[driven] = rates
        return v

    def joint_jacobian(self, q: Numbers, joints: Sequence[str]) -> Numbers:
        """Return the Jacobian (nv, n) of the velocities of all joints with respect to the velocities of `joints`."""
        return self.velocities(q, joints, np.eye(len(self._indices(joints)[1])))

    @cached_property
    def _in_loops(self) -> tuple[Array, Array]:
        """Masks of the coordinates and velocities of joints in loops.

        The columns of all other joints in the constraint Jacobian are zero in every configuration.
        """
        J = self.call("constraint_jacobian", self._hidden_input("q"))
        velocities = np.array([any(x.constant != 0.0 for x in column) for column in J.T], dtype=bool)
        coordinates = np.zeros(self.robot.nq, dtype=bool)
        for joint in map(self.robot.joint, self.robot.joints):
            velocities[joint.v_slice] = coordinates[joint.q_slice] = velocities[joint.v_slice].any()
        return coordinates, velocities

    def _hidden_input(self, name: str) -> Numbers:
        """Add an input with values in the samples only.

        It is not an argument of the generated function, and results that depend on it are left out of the code.
        """
        return np.array(self._recording.input(self._samples[name]), dtype=object)

    def _extra_input(self, size: int) -> Numbers:
        """Add an input of zeros that is not an argument of the generated function."""
        return np.array(self._recording.input(np.zeros((len(self._configurations), size))), dtype=object)

    def _loop_coordinates(self, q: Numbers) -> Numbers:
        """Return q with the neutral configuration of joints outside the loops.

        These do not change the constraint rows, and constants need no operations.
        """
        return self._merged(q, self.robot.neutral().astype(object))

    def _merged(self, in_loops: Numbers, outside: Numbers) -> Numbers:
        merged: Numbers = np.where(self._in_loops[0], in_loops, outside)
        return merged

    def _displaced(self) -> Array:
        """Return configurations near the samples; they represent the previous configurations in a controller."""
        near = self._rng.uniform(-NEARBY, NEARBY, (len(self._configurations), self.robot.nv))
        return self.robot.integrate(self._configurations, near * self._loops.column_scale)

    def _solved(self, J: Numbers, fixed: list[int], b: Numbers) -> Numbers:
        """Return x (nv, ...) with J x = b, in which the fixed velocities are zero.

        The pivots of the elimination are chosen in the samples: of the entries that are large in all samples, the one with the least fill-in
        (Markowitz). Dependent rows are left out. The generated code checks that pivots are not much smaller than in the samples.
        """
        moving = [k for k in range(self.robot.nv) if k not in fixed and self._in_loops[1][k]]
        x = np.full((self.robot.nv, *b.shape[1:]), self._recording.constant(0.0), dtype=object)
        x[moving] = eliminated(self, J[:, moving] * 1.0, b)
        return x

    # ----------------------------------------------------------------------------------------------------------------

    def _indices(self, names: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the indices of joints in q and in v."""
        joints = [self.robot._tree_joint(name) for name in checked_names("joints", names)]
        return [k for j in joints for k in range(*j.q_slice.indices(self.robot.nq))], [
            k for j in joints for k in range(*j.v_slice.indices(self.robot.nv))
        ]

    def _time(self) -> Numbers | None:
        return self.time if self._recording.driven else None

    def _flat(self, x: Numbers) -> list[_recording.Number]:
        number = _recording.Number
        try:
            entries = np.ravel(np.asarray(x, dtype=object))
        except ValueError as error:
            raise ShapeError(f"numbers must be an array; {error}") from None
        return [
            e if isinstance(e, number) else self._recording.constant(checked_number("a number of a Recorder", e, ""))
            for e in entries
        ]

    def values(self, numbers: Numbers) -> Array:
        """Return the values (samples, ...) of symbolic numbers in the sample states."""
        x = self._recording.values(self._flat(numbers))
        return x.reshape(len(self._configurations), *np.shape(numbers))
