"""Recorder of functions of a state, and of task control, which evaluates them with symbolic numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any, cast

import numpy as np

from .. import _core, _recording
from .._arrays import Array, ArrayLike, checked_count, checked_names, checked_number, checked_text, real_array
from ..analysis.linear_algebra import ScaledLoops
from ..control import TaskControl
from ..dynamics.options import ExpressedIn
from ..errors import ModelError, SarrusError, ShapeError, check_choice, check_name, raise_no_such_name
from ..mechanism import Mechanism
from ..variants import Variants

Numbers = Any  # array of symbolic numbers

# distance between a controller's previous configuration and the next one in the samples [rad, or relative to the size of the bodies]
NEARBY = 0.03
# largest number of Newton steps; it is limited, because each step is recorded. Near a solution three steps are enough
MOST_STEPS = 100
NO_ANSWER = 2  # smallest status of a state with a result that is not finite
BROKEN = 8  # value that is added to the status if an assumption does not hold


class Recorder:
    """Recorder of a function for generated C code, composed of functions of a state and of NumPy operations on symbolic numbers.

    Symbolic numbers support +, -, * and / with each other and with floats, so that ``J.T @ u`` works. Symbolic numbers have no value, so that Python
    code cannot branch on them. Decisions in the core's algorithms, such as the number of refinements, are made for sample states. The generated code
    can check that the same decisions are valid in use.

    Parameters
    ----------
    robot : the mechanism; or variants, for :class:`sarrus.cuda.Worlds`
    scalar : "double" or "float", the floating-point type of the code
    configurations : (n, nq) sample configurations with closed loops [rad, m]. If None, the home and five random configurations near it are used;
        these random configurations are the same in every call

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

    def __init__(
        self, robot: Mechanism | Variants, *, scalar: str = "double", configurations: ArrayLike | None = None
    ) -> None:
        if not isinstance(robot, (Mechanism, Variants)):
            raise TypeError(f"robot must be a Mechanism; got {robot!r}")
        check_choice("scalar", scalar, ("double", "float"))
        self.simulated, self.scalar = robot, scalar
        self.robot: Mechanism = cast("Mechanism", robot.base) if isinstance(robot, Variants) else robot
        robot = self.robot
        rng = np.random.default_rng(SEED)
        about = None if configurations is None else np.atleast_2d(real_array("configurations", configurations))
        if about is not None and (about.ndim != 2 or about.shape[1] != robot.nq or not len(about)):
            raise ShapeError(f"configurations must be (n, {robot.nq}); got {about.shape}")
        count = COUNT if about is None else len(about)
        self._about = about
        self._recording = _recording.recording(self.simulated, count, scalar == "float")
        if self._recording.pfaffian_values:
            raise ModelError("Pfaffian constraints of Python functions (add_pfaffian) cannot be generated as C")
        times = rng.uniform(0.0, 1.0, count) if self._recording.driven else np.zeros(count)
        if several := isinstance(self.simulated, Variants):
            self._variant_of = np.linspace(0, len(self.simulated) - 1, count).astype(int)
            self._configurations, motions = self._sample_variants(self.simulated, times, rng)
        else:
            self._variant_of = np.arange(count)
            self._configurations = sample_configurations(robot, times, rng) if about is None else about
            motions = sample_motion(robot, self._configurations, times, rng)
        self._samples = {"q": self._configurations, "time": times[:, None], **motions}
        self._rng = rng
        self.inputs: dict[str, Numbers] = {}
        self.status: _recording.Number | None = None
        self._numbers: dict[str, Array] = {}  # numbers that differ between variants, by input
        if several:
            self._vary("parameters", self._recording.varied())

    def _sample_variants(
        self, variants: Variants, times: Array, rng: np.random.Generator
    ) -> tuple[Array, dict[str, Array]]:
        """Return configurations and motions of the samples, each of them a state of another variant."""
        about, q, motions = self._about, [], []
        for k, time in enumerate(times):
            variant, twice = variants[int(self._variant_of[k])], np.full(2, time)
            near = None if about is None else np.resize(about[k], (2, self.robot.nq))
            q.append(sample_configurations(variant, twice, rng, near)[min(k, 1)])
            motions.append(sample_motion(variant, q[-1][None], twice[:1], rng))
        return np.array(q), {key: np.vstack([motion[key] for motion in motions]) for key in motions[0]}

    def _vary(self, name: str, numbers: Array) -> None:
        """Let numbers (variants, n) of the mechanism, or of force elements, be an input; those of the mechanism are added first."""
        if numbers.shape[1]:
            self._numbers[name] = numbers
            self.input(name, numbers[self._variant_of % len(numbers)])
            self._recording.vary([x for key in self._numbers for x in self.inputs[key]])

    def assume(self, x: Numbers, least: float) -> None:
        """Assume that the magnitude of a symbolic number is at least `least`.

        The generated code checks this, and adds 8 to the status if it is false.

        Parameters
        ----------
        x : one symbolic number
        least : smallest magnitude of the number [unit of x]
        """
        numbers = self._flat(x)
        if len(numbers) != 1:
            raise ShapeError(f"x must be one number; got {len(numbers)} numbers")
        self._recording.assume(numbers[0], checked_number("least", least))

    @cached_property
    def _loops(self) -> ScaledLoops:
        return ScaledLoops(self.robot, self._configurations[0], None)

    def __getattr__(self, name: str) -> Numbers:
        if name not in ("q", "v", "a", "tau", "time"):
            raise AttributeError(f"a Recorder has no attribute '{name}'")
        return self.inputs[name] if name in self.inputs else self.input(name, self._samples[name])

    def input(self, name: str, values: ArrayLike) -> Numbers:
        """Add an argument (n,) of the generated function, and return its symbolic numbers.

        Parameters
        ----------
        name : name of the argument in the code
        values : (samples, n) values of the argument in the sample states [any unit]
        """
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

        Parameters
        ----------
        operation : name of the function, a method of the mechanism, such as "inverse_dynamics"
        *inputs : arrays of symbolic numbers or floats, with shapes and units as in the mechanism's method of this name; None for an optional argument
        frame : name of a frame or body, for functions of a frame; otherwise None
        expressed_in : axes of the result of a function of a frame, and of the rows of constraints, as in :class:`~sarrus.Mechanism`
        """
        check_name("function", operation, _recording.operations)
        keys, axes, at_frame = _recording.operations[operation]
        if at_frame != (frame is not None):
            raise TypeError(f"{operation} {'requires frame=, the name of a frame' if at_frame else 'takes no frame'}")
        if frame is not None and frame not in self.robot.frames and frame not in self.robot.bodies:
            raise_no_such_name("frame", frame, (*self.robot.frames, *self.robot.bodies))
        check_choice("expressed_in", expressed_in, ExpressedIn)
        numbers = self._read(operation, keys.split(), inputs)
        result, status = self._recording.call(operation, numbers, frame, expressed_in)
        self.status = status if self.status is None else self.status.larger(status)
        sizes: dict[str, int | str] = {
            "v": self.robot.nv,
            "q": self.robot.nq,
            "c": self.robot.nc,
            "u": self.robot.nu,
            "Q": self.robot.nq + 1,
        }
        return np.array(result, dtype=object).reshape([int(sizes.get(axis, axis)) for axis in axes])

    def _read(self, operation: str, keys: Sequence[str], inputs: Sequence[Numbers | None]) -> list[Any]:
        """Return arrays as flat lists, with the sizes that the operation expects; keys that end in "?" are optional arguments."""
        robot = self.robot
        sizes = {"q": robot.nq, "time": 1, "base_velocity": 6, "base_acceleration": 6}
        sizes |= {"weights": robot.nu, "preload": robot.nu}
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

        Parameters
        ----------
        law : the controller; it must belong to the recorder's mechanism
        """
        return recorded_tasks(self, law)

    def derivatives(self, results: Numbers, inputs: Numbers) -> Numbers:
        """Return the Jacobian (m, n) of results with respect to inputs, by a reverse sweep for each result.

        `inputs` may be any symbolic numbers; they are regarded as independent.

        Parameters
        ----------
        results : m symbolic numbers, an array of any shape
        inputs : n symbolic numbers, an array of any shape
        """
        rows = self._recording.derivatives(self._flat(results), self._flat(inputs))
        return np.array(rows, dtype=object).reshape(np.size(results), np.size(inputs))

    def apart(self, numbers: Numbers) -> Numbers:
        """Return copies of symbolic numbers, which derivatives treat as independent variables.

        Parameters
        ----------
        numbers : symbolic numbers, an array of any shape
        """
        return np.array([x.apart() for x in self._flat(numbers)], dtype=object).reshape(np.shape(numbers))

    def constant(self, x: float) -> _recording.Number:
        """Return a constant as a symbolic number of the recording.

        Parameters
        ----------
        x : value of the constant [any unit]
        """
        return self._recording.constant(checked_number("x", x, ""))

    # ---- loops -------------------------------------------------------------------------------------------------------

    def positions(self, joints: Sequence[str], steps: int = 3) -> tuple[Numbers, Numbers]:
        """Return q (nq,) with closed loops for prescribed coordinates of joints, and the residual (1,) [rad, or relative to the size of the bodies].

        The function gets two inputs: the prescribed ``coordinates``, and ``near`` (nq,), the initial guess of Newton's method.

        Parameters
        ----------
        joints : names of the joints whose coordinates are prescribed
        steps : number of Newton steps
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

        Newton steps compute this configuration; the coordinates of `joints` are fixed.

        Parameters
        ----------
        q : (nq,) symbolic numbers, configuration near the closed one [rad, m]
        joints : names of the joints whose coordinates do not change
        steps : number of Newton steps
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
        """Return the velocities v (nv,) or (nv, k) that satisfy the constraints and have the rates (n,) or (n, k) at these joints [rad/s, m/s].

        Parameters
        ----------
        q : (nq,) symbolic numbers, configuration with closed loops [rad, m]
        joints : names of joints whose rates determine the velocity
        rates : (n,) or (n, k) symbolic numbers or floats, velocities of these joints [rad/s, m/s]
        """
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
        """Return the Jacobian (nv, n) of the velocities of all joints with respect to the velocities of `joints`.

        Parameters
        ----------
        q : (nq,) symbolic numbers, configuration with closed loops [rad, m]
        joints : names of joints whose velocities determine the velocity of the mechanism
        """
        return self.velocities(q, joints, np.eye(len(self._indices(joints)[1])))

    @cached_property
    def _in_loops(self) -> tuple[Array, Array]:
        """Masks of the coordinates and velocities of joints in loops.

        The columns of all other joints in the constraint Jacobian are zero in every configuration.
        """
        # not an argument of the generated function: results that depend on it are left out of the code
        q = np.array(self._recording.input(self._samples["q"]), dtype=object)
        J = self.call("constraint_jacobian", q)
        velocities = np.array([any(x.constant != 0.0 for x in column) for column in J.T], dtype=bool)
        coordinates = np.zeros(self.robot.nq, dtype=bool)
        for joint in map(self.robot.joint, self.robot.joints):
            velocities[joint.v_slice] = coordinates[joint.q_slice] = velocities[joint.v_slice].any()
        return coordinates, velocities

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
        q, v = range(self.robot.nq), range(self.robot.nv)
        return [k for j in joints for k in q[j.q_slice]], [k for j in joints for k in v[j.v_slice]]

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
        """Return the values (samples, ...) of symbolic numbers in the sample states.

        Parameters
        ----------
        numbers : symbolic numbers, an array of any shape
        """
        x = self._recording.values(self._flat(numbers))
        return x.reshape(len(self._configurations), *np.shape(numbers))


# ---- task control ----------------------------------------------------------------------------------------------------

KINDS: dict[str, tuple[tuple[str, str], ...]] = _core.task_table()  # (key, sort) of the fields of each kind
RATES = ("", "_velocity", "_acceleration")  # suffixes of the names of a target's three inputs
# kind of task -> number of its inputs, if this is not three (value, rate, acceleration); the target of a MultiplierTask, for example, has only a
# value
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
    named = {"efforts": efforts, "acceleration": acceleration}
    named |= {"errors": errors[permutation], "missed": missed[permutation]}
    return named | ({"z_dot": z_dot} if states else {})


def _check(r: Recorder, law: TaskControl) -> None:
    if not isinstance(law, TaskControl):
        raise TypeError(f"law must be a TaskControl; got {law!r}")
    if law.robot is not r.robot:
        raise ModelError(f"the TaskControl belongs to another mechanism, '{law.robot.name}'")
    if law.limits is not None:
        fault = "a TaskControl with limits solves quadratic programs, which cannot be generated as C"
        raise ModelError(f"{fault}; pass limits=None")
    if law.contacts:
        frames = ", ".join(f"'{contact.frame}'" for contact in law.contacts)
        raise ModelError(f"a TaskControl with contacts cannot be generated as C; contacts: {frames}")
    if law.rigid_joints:
        raise ModelError(
            f"a TaskControl with rigid joints cannot be generated as C; rigid: {', '.join(law.rigid_joints)}"
        )
    if law.parameters.ndim > 1:
        fault = "a TaskControl with different parameters for each run cannot be generated as C"
        raise ModelError(f"{fault}; pass the parameters of one run")


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
        # a target is a time function without polynomial pieces, and the index of its value, rate and acceleration in the parameters, which are
        # inputs of each call
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


# ---- linear equations with symbolic coefficients ---------------------------------------------------------------------

# pivots above this fraction of the best pivot are acceptable; of these, the one with the least fill-in is used
LARGE = 0.1
# rows without a pivot above this fraction of the largest entry are dependent (tolerances::negligible in the core)
DEPENDENT = 1e-9
# the generated code reports a pivot below this fraction of its smallest value in the samples, because the chosen order may be unsuitable
SMALL = 1e-3


def eliminated(recorder: Recorder, A: Numbers, b: Numbers) -> Numbers:
    """Solve A x = b, where A (m, n) has rank n in the samples, and b (m, ...) is in the span of its columns. Dependent rows of A are omitted."""
    x, N = solutions(recorder, A, b)
    if N.shape[1]:
        raise ModelError("these joints do not determine the configuration: name more joints")
    return x


def solutions(recorder: Recorder, A: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """Return x and N such that x + N y, for any y, are the solutions of A x = b. A may have any rank; y are the undetermined entries of x.

    The rank is the rank that most samples have, because a single sample, such as the home configuration, may be singular.
    """
    (m, n), shape = A.shape, b.shape[1:]
    A, b = A.copy(), b.reshape(m, math.prod(shape)).copy()
    rows, columns, pivots = list(range(m)), list(range(n)), []
    vanishes = DEPENDENT * _sizes(recorder, A).max(initial=0.0)
    # samples that are not singular so far; only these determine the pivots
    regular = np.ones(len(recorder._configurations), dtype=bool)
    while rows and columns:
        size = _sizes(recorder, A[np.ix_(rows, columns)])
        least = size[regular].min(axis=0)
        if least.max() <= vanishes:
            # a sample without a pivot is a singular position if other samples have one; the generated code reports such states by its status
            has_pivot = size > vanishes
            i, j = np.unravel_index(np.argmax(has_pivot[regular].sum(axis=0)), least.shape)
            remaining = regular & has_pivot[:, i, j]
            if 2 * remaining.sum() <= len(regular):
                break
            regular, least = remaining, size[remaining].min(axis=0)
        filled = size[regular].max(axis=0) > 0.0
        cost = np.outer(filled.sum(axis=1) - 1, filled.sum(axis=0) - 1) + 1e9 * (least < LARGE * least.max())
        i, j = np.unravel_index(np.argmin(cost), cost.shape)
        r, c = rows.pop(i), columns.pop(j)
        recorder.assume(A[r, c], SMALL * least[i, j])
        pivots.append((r, c))
        for other in rows:
            factor = A[other, c] / A[r, c]
            A[other, columns] -= factor * A[r, columns]
            b[other] -= factor * b[r]
    b = np.hstack([b, -A[:, columns]])
    x = np.full((n, b.shape[1]), recorder.constant(0.0), dtype=object)
    x[columns, range(-len(columns), 0)] = recorder.constant(1.0)
    for k, (r, c) in reversed(list(enumerate(pivots))):
        later = [column for _, column in pivots[k + 1 :]]
        x[c] = (b[r] - A[r, later] @ x[later] if later else b[r]) / A[r, c]
    free = b.shape[1] - len(columns)
    return x[:, :free].reshape(n, *shape), x[:, free:]


def _sizes(recorder: Recorder, A: Numbers) -> Array:
    """Return the magnitudes (samples, rows, columns) of the entries. Entries that are not finite become zero, so that they are not pivots."""
    values = np.abs(recorder.values(A))
    return np.where(np.isfinite(values), values, 0.0)


# ---- sample states, in which the branches of recorded algorithms are decided -----------------------------------------

COUNT = 6  # number of samples; if a decision is equal in all of them, it is equal in nearly all states
SEED = 0  # a fixed seed, so that the same mechanism always gives the same file
SPREAD = 0.3  # spread of states about home [rad, or relative to the size of the bodies]
NEARER = 0.1  # spread about the user's configurations, which span the workspace already


def sample_configurations(robot: Mechanism, time: Array, rng: np.random.Generator, about: Array | None = None) -> Array:
    """Return a configuration with closed loops for each time.

    The first is the home, or the first row of `about`; the others are near the home, or near the rows of `about`.

    Configurations are not drawn from the whole space, because decisions there, such as the choice of pivots, may be invalid in the workspace.
    """
    starts = [robot.assemble(time=t) for t in time] if about is None else list(np.resize(about, (len(time), robot.nq)))
    scale = (SPREAD if about is None else NEARER) * ScaledLoops(robot, starts[0], time[0]).column_scale
    for k, (q, t) in enumerate(zip(starts[1:], time[1:], strict=True), 1):
        for nearer in 0.5 ** np.arange(4):
            near = robot.integrate(q, nearer * scale * rng.uniform(-1.0, 1.0, robot.nv))
            try:
                starts[k] = robot.assemble(near=near, time=t) if robot.constraints else near
                break
            except SarrusError:
                continue
    return np.array(starts)


def sample_motion(robot: Mechanism, q: Array, time: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Return random velocities and accelerations that satisfy the constraints at configurations q (n, nq), and random forces."""
    v, tau = rng.normal(size=(2, len(q), robot.nv))
    a = v[::-1].copy()
    if robot.constraints:
        v = np.nan_to_num(robot.project_velocity(q, v, metric="euclidean", time=time, return_status=True)[0])
        a = np.nan_to_num(robot.complete_acceleration(q, v, {}, time=time, return_status=True)[0])
    return {"v": v, "a": a, "tau": tau}
