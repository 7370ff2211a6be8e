"""Table of differentiable functions of arrays, for :mod:`sarrus.torch`, :mod:`sarrus.jax` and :mod:`sarrus.casadi`.

Rows of the table have derivatives with respect to displacements in tangent spaces, like :mod:`sarrus.derivatives`. PyTorch, JAX and CasADi
differentiate with respect to the entries of arrays, including all four entries of a quaternion. :class:`Function` converts between the two. A
gradient with respect to displacements, times the matrix N, is a gradient with respect to entries, with zero component along a quaternion
(:func:`~sarrus.derivatives.tangent_by_coordinates`). A gradient with respect to the entries of a result, times the matrix E, is a gradient with
respect to its displacements.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from . import derivatives
from ._arrays import Array, checked_count, common_axes
from ._core import Status
from .building.builder import Builder
from .control.elements import EffortTable, velocities
from .description.joints import JointType
from .dynamics.derivatives import check_robot
from .errors import IntegrationError, ModelError, ShapeError, StateError
from .mechanism import Mechanism
from .simulation.setup import method_for
from .simulation.sweep import Sweep, simulate_many, status_name
from .spatial import Inertia

D: Any = derivatives
Arrays = Sequence[Array]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """Differentiable function of a mechanism. The functions in its fields have the argument f, a :class:`Function` with the mechanism and the
    options.

    summary : first sentence of the function's docstring
    inputs, outputs : kinds of the arrays, keys of :data:`SIZES`, which define their last axes; "q" is a configuration, whose changes are
    displacements (nv)
    value(f, x) : results y for arrays x of equal leading axes; if `writes` is True, it also accepts out= for its only result
    vjp(f, x, y, w) : cotangents of the inputs, for cotangents w of y
    jvp(f, x, y, dx) : change of y along dx; None if it would be expensive
    words : names of non-differentiable arguments that follow the arrays
    """

    summary: str
    inputs: Mapping[str, str]
    outputs: tuple[str, ...]
    value: Callable[..., Arrays]
    vjp: Callable[..., Arrays]
    jvp: Callable[..., Arrays] | None
    words: tuple[str, ...] = ()
    writes: bool = True


SIZES: dict[str, Callable[[Function], Shape]] = {
    "q": lambda f: (f.robot.nq,),
    "v": lambda f: (f.robot.nv,),
    "u": lambda f: (f.robot.nu,),
    "nc": lambda f: (f.robot.nc,),
    "motors": lambda f: (len(velocities(f.robot, f.motors)),),
    "leading": lambda f: (len(f.options["leading"]),),
    "1": lambda f: (),
    "3": lambda f: (3,),
    "6": lambda f: (6,),
    "4 x 4": lambda f: (4, 4),
}


@dataclass(frozen=True, eq=False)
class Function:
    """Function of one mechanism from a row of the table, with derivatives with respect to the entries of its arrays.

    If `remembers` is True, the reverse pass reuses the simulations of the preceding forward pass, so that it must be called with the same x.
    """

    row: Row
    robot: Mechanism
    options: Mapping[str, Any]
    remembers: bool = False
    memory: dict[str, Any] = field(default_factory=dict)

    @property
    def motors(self) -> tuple[str, ...]:
        return tuple(self.options.get("motors") or self.robot.actuated or self.robot.joints)

    def shapes(self, kinds: Sequence[str], steps: int = 0) -> list[Shape]:
        """Return the sizes of the last axes of arrays of the given kinds; `steps` is the number of simulation steps."""
        counts = {"steps": steps, "samples": -(-steps // checked_count("every", self.options.get("every", 1))) + 1}
        parts = [kind.partition(" of ") for kind in kinds]
        return [((counts[first], *SIZES[last](self)) if last else SIZES[first](self)) for first, _, last in parts]

    def spread(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Return the shapes of the inputs after broadcasting of their leading axes; raise ShapeError for wrong last axes."""
        wide, leads = self.shapes([*self.row.inputs.values()], self.steps(shapes)), {}
        for name, want, shape in zip(self.row.inputs, wide, shapes, strict=True):
            leads[name], last = shape[: len(shape) - len(want)], shape[-len(want) :]
            if last != want:
                raise ShapeError(
                    f"{name} of '{self.robot.name}' must have shape (..., {', '.join(map(str, want))}); got {shape}"
                )
        if len(set(leads.values())) == 1:
            return [*shapes]
        lead = common_axes(leads)
        return [(*lead, *want) for want in wide]

    def steps(self, shapes: Sequence[Shape]) -> int:
        """Return the number of steps if the function is a simulation, else 0."""
        return shapes[-1][-2] if "steps of motors" in self.row.inputs.values() and len(shapes[-1]) > 1 else 0

    def outputs(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Return the shapes of the results for inputs of the given shapes, whose leading axes are equal."""
        return [(*shapes[0][:-1], *last) for last in self.shapes(self.row.outputs, self.steps(shapes))]

    def value(self, *x: Array, out: Sequence[Array] = ()) -> tuple[Array, ...]:
        """Return the results of the function, written to `out` if the row of the table supports this."""
        if _empty(x):
            return tuple(np.zeros(shape) for shape in self.outputs([array.shape for array in x]))
        return tuple(self.row.value(self, x, **({"out": out[0]} if out and self.row.writes else {})))

    def vjp(self, x: Arrays, y: Arrays, w: Arrays) -> tuple[Array, ...]:
        """Return the cotangents of the inputs that follow from the cotangents w of the results."""
        if _empty(x):
            return tuple(map(np.zeros_like, x))
        w = self._between(self.row.outputs, y, w, D.coordinates_by_tangent, back=True)
        g = self.row.vjp(self, x, y, w)
        return self._between(self.row.inputs.values(), x, g, D.tangent_by_coordinates, back=True)

    def jvp(self, x: Arrays, y: Arrays, dx: Arrays) -> tuple[Array, ...]:
        """Return the changes of the results, to first order, for given changes of the inputs."""
        if self.row.jvp is None:
            raise ModelError("rollouts have reverse-mode derivatives only (gradient, vjp): use step() for forward mode")
        if _empty(x):
            return tuple(map(np.zeros_like, y))
        dx = self._between(self.row.inputs.values(), x, dx, D.tangent_by_coordinates, back=False)
        dy = self.row.jvp(self, x, y, dx)
        return self._between(self.row.outputs, y, dy, D.coordinates_by_tangent, back=False)

    def _between(self, kinds: Iterable[str], at: Arrays, x: Arrays, matrix: Any, back: bool) -> tuple[Array, ...]:
        """Return the arrays, with those that are configurations multiplied by the conversion matrix: rows x times the matrix, or the matrix times
        columns x.
        """
        return tuple(
            self._by_joints(q, change, matrix, back) if kind.endswith("q") else change
            for kind, q, change in zip(kinds, at, x, strict=True)
        )

    def _by_joints(self, q: Array, x: Array, matrix: Any, back: bool) -> Array:
        """Return the product joint by joint, because the matrix is block diagonal."""
        if all(single is None for _, single in self._joints):
            return x
        # True if x is differentiated with respect to entries, and the result with respect to displacements
        entries = back == (matrix is D.coordinates_by_tangent)
        answer = np.empty((*x.shape[:-1], self.robot.nv if entries else self.robot.nq))
        for joint, single in self._joints:
            source, target = (joint.q_slice, joint.v_slice) if entries else (joint.v_slice, joint.q_slice)
            part = x[..., source]
            if single is not None:
                M = matrix(single, q[..., joint.q_slice])
                part = (part[..., None, :] @ M)[..., 0, :] if back else (M @ part[..., None])[..., 0]
            answer[..., target] = part
        return answer

    @cached_property
    def _joints(self) -> list[tuple[Any, Mechanism | None]]:
        """Joints of the mechanism.

        A joint whose velocities can differ from the rates of its coordinates has a mechanism that consists of this joint only.
        """
        joints = [self.robot.joint(name) for name in self.robot.joints]
        return [(joint, _single(joint.type) if joint.type.nv > 1 else None) for joint in joints]


def _empty(x: Arrays) -> bool:
    """Return True for an empty batch, which simulations and some functions of the core do not accept."""
    return 0 in x[0].shape[:-1]


@lru_cache(maxsize=64)
def _single(joint: JointType) -> Mechanism:
    builder = Builder("joint")
    builder.add_body("body", Inertia.sphere(1.0, 1.0))
    builder.add_joint("joint", joint, "ground", "body")
    return builder.build()


def function(
    name: str, robot: Mechanism, arguments: tuple[Any, ...], options: Mapping[str, Any], remembers: bool = False
) -> tuple[Function, list[Any]]:
    """Return the :class:`Function` of this name with its options, and its arrays; raise TypeError for wrong arguments."""
    row = ROWS[name]
    check_robot(robot, variants=False)
    names = (*row.inputs, *row.words)
    if len(arguments) == len(names) and not options.keys() & {"robot", *names}:
        bound, rest = dict(zip(names, arguments, strict=True)), dict(options)
    else:
        bound = signature(name).bind(robot, *arguments, **options).arguments
        rest = bound.get("options", {})
    words = {word: bound[word] for word in row.words}
    return Function(row, robot, words | rest, remembers), [bound[name] for name in row.inputs]


@cache
def signature(name: str) -> inspect.Signature:
    """Return the signature (robot, arrays, words, options)."""
    kind, row = inspect.Parameter, ROWS[name]
    named = [kind(argument, kind.POSITIONAL_OR_KEYWORD) for argument in ("robot", *row.inputs, *row.words)]
    return inspect.Signature([*named, kind("options", kind.VAR_KEYWORD)])


AXES = {
    "steps of motors": "steps, motors", "q": "nq", "v": "nv", "u": "nu", "samples of q": "samples, nq", "samples of v": "samples, nv", "4 x 4": "4, 4",
}  # fmt: skip
ARGUMENTS = {
    "q": "configuration [rad, m]", "v": "velocity [rad/s, m/s]", "a": "acceleration [rad/s2, m/s2]", "tau": "generalised force [N m, N]",
    "u": "efforts of the motors [N m, N]", "x": "coordinates of the driven joints [rad, m]", "frame": "name of the frame",
    "leading": "names of the driven joints, in the order of x, with one coordinate each", "dt": "step of the simulation [s]",
}  # fmt: skip
_OF_RUNS = "motors, the names of the joints with efforts in u; controller, further force elements; others as for :func:`sarrus.simulate_many`"
OPTIONS = {
    "assemble": 'as for :meth:`sarrus.Mechanism.assemble`, with `near`, and branch="only" as the default',
    "step": _OF_RUNS,
    "rollouts": _OF_RUNS,
}


def docstring(name: str, callback: bool = False) -> str:
    """Return the docstring of a function, or of the function that creates its callback for single states."""
    row = ROWS[name]

    def shape(kind: str) -> str:
        axes = AXES.get(kind, kind)
        if callback:
            return f"({axes})" if "," in axes else f"({axes},)"
        return "(...)" if kind == "1" else f"(..., {axes})"

    arrays = [f"{argument} : {shape(kind)} {ARGUMENTS[argument]}" for argument, kind in row.inputs.items()]
    others = [f"{word} : {ARGUMENTS[word]}" for word in row.words]
    options = f"**options : {OPTIONS.get(name, f'as for :meth:`sarrus.Mechanism.{name}`')}"
    head = [row.summary]
    if callback:
        summary = f"Create a callback that returns {row.summary.removeprefix('Return ')}"
        head = [summary, "", "Inputs of the callback:", "", *arrays]
    parameters = ["robot : the mechanism", *([] if callback else arrays), *others, options]
    results = " and ".join(map(shape, row.outputs))
    return "\n".join([*head, "", "Parameters", "----------", *parameters, "", "Returns", "-------", results])


# ---- by matrices -----------------------------------------------------------------------------------------------------


def by_matrices(matrices: Callable[[Function, Arrays, Arrays], Arrays]) -> dict[str, Any]:
    """Return vjp and jvp of a function with one result, from its Jacobians with respect to each input: (..., size of the result, size of a change)."""

    def flat(x: Arrays, M: Array) -> Array:
        return M.reshape(*x[0].shape[:-1], -1, M.shape[-1])

    def vjp(f: Function, x: Arrays, y: Arrays, w: Arrays) -> list[Array]:
        row = w[0].reshape(*x[0].shape[:-1], 1, -1)
        return [(row @ flat(x, M))[..., 0, :] for M in matrices(f, x, y)]

    def jvp(f: Function, x: Arrays, y: Arrays, dx: Arrays) -> list[Array]:
        terms = [flat(x, M) @ d[..., None] for M, d in zip(matrices(f, x, y), dx, strict=True)]
        changes: Array = sum(terms[1:], terms[0])[..., 0]
        return [changes if changes.ndim == y[0].ndim else changes.reshape(y[0].shape)]

    return {"vjp": vjp, "jvp": jvp}


def state_function(name: str, *inputs: str, output: str, summary: str, words: tuple[str, ...] = ()) -> Row:
    """Return the row of a method.

    Its derivatives are those of :mod:`sarrus.derivatives`, which are one array, or an object with an attribute for each input.
    """

    def call(target: Any, f: Function, x: Arrays, **out: Array) -> Any:
        options = dict(f.options) | out
        return target(*x, *(options.pop(word) for word in words), **options)

    def matrices(f: Function, x: Arrays, y: Arrays) -> list[Array]:
        answer = call(lambda *a, **options: getattr(D, name)(f.robot, *a, **options), f, x)
        return [answer] if isinstance(answer, np.ndarray) else [getattr(answer, argument) for argument in inputs]

    def value(f: Function, x: Arrays, **out: Array) -> list[Array]:
        return [np.asarray(call(getattr(f.robot, name), f, x, **out))]

    kinds = {argument: "q" if argument == "q" else "v" for argument in inputs}
    return Row(summary, kinds, (output,), value, words=words, **by_matrices(matrices))


# ---- runs ------------------------------------------------------------------------------------------------------------


def run(f: Function, x: Arrays) -> Sweep:
    """Return simulations in which row k of u (..., steps, motors) has the efforts of step k."""
    q, v, u = x
    options: dict[str, Any] = dict(f.options)
    options.pop("motors", None)
    dt, elements, start = options.pop("dt"), _elements(options.pop("controller", None)), options.get("start", 0.0)
    options["method"] = method_for(options.get("method", "auto"), elements, True, f.robot, q, dt, start)
    runs, steps = math.prod(q.shape[:-1]), u.shape[-2]
    efforts = EffortTable(start + dt * np.arange(steps), u.reshape(runs, *u.shape[-2:]), f.motors)
    states = q.reshape(runs, -1), v.reshape(runs, -1)
    sweep = simulate_many(f.robot, *states, steps * dt, [efforts, *elements], dt=dt, **options)
    if f.remembers:
        f.memory["runs"] = sweep
    return sweep


def _elements(controller: Any) -> list[Any]:
    return [] if controller is None else list(controller) if isinstance(controller, Sequence) else [controller]


def samples(f: Function, x: Arrays) -> list[Array]:
    runs = run(f, x)
    if x[0].ndim == 1 and (status := int(runs.status[0])) != Status.FINISHED:
        end = status_name(status)
        text = f"the run of this state ends with the status '{end}'; sarrus.simulate() reports the cause"
        raise IntegrationError(text, runs[0]) if np.isfinite(runs.q[0, 0]).all() else StateError(text)
    return [s.reshape(*x[0].shape[:-1], *s.shape[1:]) for s in (runs.q, runs.v)]


def back_through(f: Function, x: Arrays, y: Arrays, w: Arrays) -> list[Array]:
    lead, steps = x[0].shape[:-1], x[2].shape[-2]
    runs = f.memory.get("runs")
    if runs is None or len(runs) != math.prod(lead):
        runs = run(f, x)
    cotangents = [array.reshape(len(runs), *array.shape[len(lead) :]) for array in w]
    g = D.rollouts_vjp(runs, *cotangents, threads=f.options.get("threads", 1))
    by_u = g.parameters["EffortTable.u"]
    return [g.q.reshape(*lead, -1), g.v.reshape(*lead, -1), by_u.reshape(*lead, steps, -1)]


def _as_one_step(x: Arrays) -> list[Array]:
    return [x[0], x[1], x[2][..., None, :]]


def one_step(f: Function, x: Arrays) -> list[Array]:
    return [s[..., -1, :] for s in samples(f, _as_one_step(x))]


def back_one_step(f: Function, x: Arrays, y: Arrays, w: Arrays) -> list[Array]:
    at_end = [np.stack([np.zeros_like(array), array], axis=-2) for array in w]
    by_q, by_v, by_u = back_through(f, _as_one_step(x), y, at_end)
    return [by_q, by_v, by_u[..., 0, :]]


def along_one_step(f: Function, x: Arrays, y: Arrays, dx: Arrays) -> list[Array]:
    q, v, u = x
    passed = ("motors", "dt", "limits", "start", "controller")
    options: dict[str, Any] = {key: value for key, value in f.options.items() if key not in passed}
    elements, start = _elements(f.options.get("controller")), f.options.get("start", 0.0)
    efforts = EffortTable([start], u.reshape(-1, 1, u.shape[-1]), f.motors)
    S = D.step(f.robot, q, v, f.options["dt"], controller=[efforts, *elements], time=start, **options)
    change = sum(M @ d[..., None] for M, d in zip((S.q, S.v, S.parameters["EffortTable.u"]), dx, strict=True))[..., 0]
    return [change[..., : f.robot.nv], change[..., f.robot.nv : 2 * f.robot.nv]]


# ---- the rows --------------------------------------------------------------------------------------------------------


def assembled(f: Function, x: Arrays) -> list[Array]:
    # default branch='only', because with other values the result could jump to another branch, and a jump has no derivative
    options = {"branch": "only"} | dict(f.options)
    fixed = {name: x[0][..., k] for k, name in enumerate(options.pop("leading"))}
    return [f.robot.assemble(options.pop("near", None), fixed=fixed, return_status=True, **options)[0]]


def _kept(names: str, f: Function) -> dict[str, Any]:
    return {name: f.options[name] for name in names.split() if name in f.options}


_MOTORS = {"q": "q", "v": "v", "u": "motors"}
ROWS = {
    "forward_dynamics": Row(
        "Return the acceleration [rad/s2, m/s2] by forces, loops included; derivatives by q and v are along motions that the loops allow.",
        {"q": "q", "v": "v", "tau": "v"}, ("v",),
        lambda f, x, **out: [f.robot.forward_dynamics(*x, **f.options, **out)],
        lambda f, x, y, w: _parts(D.forward_dynamics_vjp(f.robot, *x, w[0], **f.options), "q v tau"),
        lambda f, x, y, dx: [D.forward_dynamics_jvp(f.robot, *x, *dx, **f.options)],
    ),
    "inverse_dynamics": Row(
        "Return the generalised force [N m, N] for a motion of the tree, with all loops open.",
        {"q": "q", "v": "v", "a": "v"}, ("v",),
        lambda f, x, **out: [f.robot.inverse_dynamics(*x, **f.options, **out)],
        lambda f, x, y, w: _parts(D.inverse_dynamics_vjp(f.robot, *x, w[0], **f.options), "q v a"),
        lambda f, x, y, dx: [D.inverse_dynamics_jvp(f.robot, *x, *dx, **f.options)],
    ),
    "actuator_efforts": Row(
        "Return the efforts [N m, N] of the motors for a motion, loops included.",
        {"q": "q", "v": "v", "a": "v"}, ("u",),
        lambda f, x, **out: [f.robot.actuator_efforts(*x, **f.options, **out)],
        lambda f, x, y, w: _parts(D.actuator_efforts_vjp(f.robot, *x, w[0], **f.options), "q v a"),
        by_matrices(lambda f, x, y: _parts(D.actuator_efforts(f.robot, *x, **f.options), "q v a"))["jvp"],
    ),
    "pose": state_function("pose", "q", output="4 x 4", summary="Return the pose [dimensionless, m] of a frame in the world.", words=("frame",)),
    "velocity": state_function("velocity", "q", "v", output="6", summary="Return the velocity [angular; linear] of a frame in its axes [rad/s, m/s].", words=("frame",)),
    "acceleration": state_function("acceleration", "q", "v", "a", output="6", summary="Return the acceleration [angular; linear] of a frame in its axes [rad/s2, m/s2].", words=("frame",)),
    "center_of_mass": state_function("center_of_mass", "q", output="3", summary="Return the centre of mass in the world [m]."),
    "gravity_forces": state_function("gravity_forces", "q", output="v", summary="Return the generalised force [N m, N] that balances the weight."),
    "kinetic_energy": state_function("kinetic_energy", "q", "v", output="1", summary="Return the kinetic energy [J]."),
    "potential_energy": state_function("potential_energy", "q", output="1", summary="Return the potential energy [J], springs included."),
    "constraint_residual": state_function("constraint_residual", "q", output="nc", summary="Return the residual [rad, m] of the loop constraints."),
    "assemble": Row(
        "Return the configuration [rad, m] that closes the loops at coordinates x of the driven joints.",
        {"x": "leading"}, ("q",), assembled, words=("leading",), writes=False,
        **by_matrices(lambda f, x, y: [D.assembled_positions(f.robot, y[0], f.options["leading"], **_kept("time", f)).leading]),
    ),
    "step": Row(
        "Return the state (q [rad, m], v [rad/s, m/s]) after a step of the simulation with efforts u of the motors.",
        _MOTORS, ("q", "v"), one_step, back_one_step, along_one_step, ("dt",), False,
    ),
    "rollouts": Row(
        "Return the states (q [rad, m], v [rad/s, m/s]) of runs, the start first, with the rows of u as efforts of the motors in their steps.",
        _MOTORS | {"u": "steps of motors"}, ("samples of q", "samples of v"), samples, back_through, None, ("dt",), False,
    ),
}  # fmt: skip


def _parts(answer: Any, names: str) -> list[Array]:
    return [getattr(answer, name) for name in names.split()]
