"""Functions of arrays with their derivatives, one row each: what :mod:`sarrus.torch`, :mod:`sarrus.jax` and :mod:`sarrus.casadi` hand on.

Rows are by displacements in tangent spaces, as :mod:`sarrus.derivatives` is; other programs count by the entries of arrays, a quaternion's four too. Between
the two stands :class:`Function`: a gradient by displacements times N is one by entries, and nothing along a quaternion's length
(:func:`~sarrus.derivatives.tangent_by_coordinates`); one by the entries of an answer times E is one by its displacements.
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
from .building.builder import Builder
from .control.coordinates import velocities
from .control.sampling import EffortTable
from .description.joints import JointType
from .dynamics.derivatives import check_robot
from .errors import ModelError, ShapeError
from .mechanism import Mechanism
from .simulation.runs import Sweep
from .simulation.setup import method_for
from .simulation.sweep import simulate_many
from .spatial import Inertia

D: Any = derivatives
Arrays = Sequence[Array]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A function of a mechanism, asked as row.value(f, x) with the :class:`Function` that has mechanism and options.

    inputs, outputs : their last axes, by :data:`SIZES`; "q" is a configuration, whose changes are displacements (nv) of it
    value(f, x) : answers y to arrays x of equal leading axes; `writes`: its one answer to out= too
    vjp(f, x, y, w) : one cotangent an input, of those of y
    jvp(f, x, y, dx) : how y changes along dx; None where that is dear
    words : names of what is told behind the arrays and is not differentiated
    """

    says: str
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
    """A row, of one mechanism, by the entries of its arrays.

    Where it remembers, the way back has the runs that the way forth has made: it is then asked of one x only.
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
        """Last axes."""
        many = {"steps": steps, "samples": -(-steps // checked_count("every", self.options.get("every", 1))) + 1}
        of = [kind.partition(" of ") for kind in kinds]
        return [((many[first], *SIZES[last](self)) if last else SIZES[first](self)) for first, _, last in of]

    def spread(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Inputs of these shapes with equal leading axes; ShapeError where one has other last axes."""
        wide, leads = self.shapes([*self.row.inputs.values()], self.steps(shapes)), {}
        for name, want, shape in zip(self.row.inputs, wide, shapes, strict=True):
            leads[name], last = shape[: len(shape) - len(want)], shape[-len(want) :]
            if last != want:
                raise ShapeError(
                    f"{name} must be (..., {', '.join(map(str, want))}) of '{self.robot.name}'; got {shape}"
                )
        if len(set(leads.values())) == 1:
            return [*shapes]
        lead = common_axes(leads)
        return [(*lead, *want) for want in wide]

    def steps(self, shapes: Sequence[Shape]) -> int:
        """Of runs; of others 0."""
        return shapes[-1][-2] if "steps of motors" in self.row.inputs.values() and len(shapes[-1]) > 1 else 0

    def outputs(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Shapes of the answers to inputs of these, whose leading axes are equal."""
        return [(*shapes[0][:-1], *of_one) for of_one in self.shapes(self.row.outputs, self.steps(shapes))]

    def value(self, *x: Array, out: Sequence[Array] = ()) -> tuple[Array, ...]:
        """Answers, in their places `out` if the row writes to them."""
        if _empty(x):
            return tuple(np.zeros(shape) for shape in self.outputs([one.shape for one in x]))
        return tuple(self.row.value(self, x, **({"out": out[0]} if out and self.row.writes else {})))

    def vjp(self, x: Arrays, y: Arrays, w: Arrays) -> tuple[Array, ...]:
        """Cotangents of the inputs."""
        if _empty(x):
            return tuple(map(np.zeros_like, x))
        w = self._between(self.row.outputs, y, w, D.coordinates_by_tangent, back=True)
        g = self.row.vjp(self, x, y, w)
        return self._between(self.row.inputs.values(), x, g, D.tangent_by_coordinates, back=True)

    def jvp(self, x: Arrays, y: Arrays, dx: Arrays) -> tuple[Array, ...]:
        """How the answers change along changes of the inputs."""
        if self.row.jvp is None:
            raise ModelError("rollouts have derivatives back alone, a gradient or vjp: take step() forward")
        if _empty(x):
            return tuple(map(np.zeros_like, y))
        dx = self._between(self.row.inputs.values(), x, dx, D.tangent_by_coordinates, back=False)
        dy = self.row.jvp(self, x, y, dx)
        return self._between(self.row.outputs, y, dy, D.coordinates_by_tangent, back=False)

    def _between(self, kinds: Iterable[str], at: Arrays, x: Arrays, matrix: Any, back: bool) -> tuple[Array, ...]:
        """Of configurations at these, rows x times the matrix, or the matrix times columns x."""
        return tuple(
            self._by_joints(q, one, matrix, back) if kind.endswith("q") else one
            for kind, q, one in zip(kinds, at, x, strict=True)
        )

    def _by_joints(self, q: Array, x: Array, matrix: Any, back: bool) -> Array:
        """Joint by joint, as the matrix has blocks."""
        if all(alone is None for _, alone in self._joints):
            return x
        entries = back == (matrix is D.coordinates_by_tangent)  # x is of these, and the answer of displacements
        answer = np.empty((*x.shape[:-1], self.robot.nv if entries else self.robot.nq))
        for joint, alone in self._joints:
            of, to = (joint.q_slice, joint.v_slice) if entries else (joint.v_slice, joint.q_slice)
            part = x[..., of]
            if alone is not None:
                M = matrix(alone, q[..., joint.q_slice])
                part = (part[..., None, :] @ M)[..., 0, :] if back else (M @ part[..., None])[..., 0]
            answer[..., to] = part
        return answer

    @cached_property
    def _joints(self) -> list[tuple[Any, Mechanism | None]]:
        """Each, and by itself where its coordinates may have other rates than its velocities."""
        joints = [self.robot.joint(name) for name in self.robot.joints]
        return [(joint, _alone(joint.type) if joint.type.nv > 1 else None) for joint in joints]


def _empty(x: Arrays) -> bool:
    """True for a batch of no states, which simulations and some of the core's functions refuse."""
    return 0 in x[0].shape[:-1]


@lru_cache(maxsize=64)
def _alone(joint: JointType) -> Mechanism:
    builder = Builder("joint")
    builder.add_body("body", Inertia.sphere(1.0, 1.0))
    builder.add_joint("joint", joint, "ground", "body")
    return builder.build()


def function(
    name: str, robot: Mechanism, arguments: tuple[Any, ...], options: Mapping[str, Any], remembers: bool = False
) -> tuple[Function, list[Any]]:
    """The function of this name with its options, and the arrays that it is given; TypeError for others."""
    row = ROWS[name]
    check_robot(robot, variants=False)
    known = (*row.inputs, *row.words)
    if len(arguments) == len(known) and not options.keys() & {"robot", *known}:
        bound, rest = dict(zip(known, arguments, strict=True)), dict(options)
    else:
        bound = signature(name).bind(robot, *arguments, **options).arguments
        rest = bound.get("options", {})
    words = {word: bound[word] for word in row.words}
    return Function(row, robot, words | rest, remembers), [bound[name] for name in row.inputs]


@cache
def signature(name: str) -> inspect.Signature:
    """(robot, arrays, words, options)"""
    kind, row = inspect.Parameter, ROWS[name]
    named = [kind(one, kind.POSITIONAL_OR_KEYWORD) for one in ("robot", *row.inputs, *row.words)]
    return inspect.Signature([*named, kind("options", kind.VAR_KEYWORD)])


def docstring(name: str) -> str:
    row = ROWS[name]
    axes = {
        "steps of motors": "steps, motors",
        "q": "nq",
        "v": "nv",
        "u": "nu",
        "samples of q": "samples, nq",
        "samples of v": "samples, nv",
    }
    inputs = ", ".join(f"{one} (..., {axes.get(kind, kind)})" for one, kind in row.inputs.items())
    outputs = " and ".join(f"(..., {axes.get(kind, kind)})" if kind != "1" else "(...)" for kind in row.outputs)
    return f"{row.says} Of {inputs}: {outputs}."


# ---- by matrices -----------------------------------------------------------------------------------------------------


def by_matrices(matrices: Callable[[Function, Arrays, Arrays], Arrays]) -> dict[str, Any]:
    """vjp and jvp of a function with one answer, by its derivatives (..., answer, size of a change) by each input."""

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


def of_state(name: str, *inputs: str, output: str, says: str, words: tuple[str, ...] = ()) -> Row:
    """The method of this name, and what :mod:`sarrus.derivatives` has of it: one array, or parts by the inputs' names."""

    def ask(of: Any, f: Function, x: Arrays, **out: Array) -> Any:
        how = dict(f.options) | out
        return of(*x, *(how.pop(word) for word in words), **how)

    def matrices(f: Function, x: Arrays, y: Arrays) -> list[Array]:
        answer = ask(lambda *a, **how: getattr(D, name)(f.robot, *a, **how), f, x)
        return [answer] if isinstance(answer, np.ndarray) else [getattr(answer, one) for one in inputs]

    kinds = {one: "q" if one == "q" else "v" for one in inputs}
    return Row(
        says,
        kinds,
        (output,),
        lambda f, x, **out: [np.asarray(ask(getattr(f.robot, name), f, x, **out))],
        words=words,
        **by_matrices(matrices),
    )


# ---- runs ------------------------------------------------------------------------------------------------------------


def run(f: Function, x: Arrays) -> Sweep:
    """Steps, each with the efforts of one row of u (..., steps, motors)."""
    q, v, u = x
    how: dict[str, Any] = dict(f.options)
    how.pop("motors", None)
    dt, others, start = how.pop("dt"), how.pop("controller", None), how.get("start", 0.0)
    elements = [] if others is None else list(others) if isinstance(others, Sequence) else [others]
    how["method"] = method_for(how.get("method", "auto"), elements, True, f.robot, q, dt)
    runs, steps = math.prod(q.shape[:-1]), u.shape[-2]
    efforts = EffortTable(start + dt * np.arange(steps), u.reshape(runs, *u.shape[-2:]), f.motors)
    of_each = q.reshape(runs, -1), v.reshape(runs, -1)
    sweep = simulate_many(f.robot, *of_each, steps * dt, [efforts, *elements], dt=dt, **how)
    if f.remembers:
        f.memory["runs"] = sweep
    return sweep


def samples(f: Function, x: Arrays) -> list[Array]:
    runs = run(f, x)
    return [s.reshape(*x[0].shape[:-1], *s.shape[1:]) for s in (runs.q, runs.v)]


def back_through(f: Function, x: Arrays, y: Arrays, w: Arrays) -> list[Array]:
    lead, steps = x[0].shape[:-1], x[2].shape[-2]
    runs = f.memory.get("runs")
    if runs is None or len(runs) != math.prod(lead):
        runs = run(f, x)
    of_runs = [one.reshape(len(runs), *one.shape[len(lead) :]) for one in w]
    g = D.rollouts_vjp(runs, *of_runs, threads=f.options.get("threads", 1))
    by_u = g.parameters["EffortTable.u"]
    return [g.q.reshape(*lead, -1), g.v.reshape(*lead, -1), by_u.reshape(*lead, steps, -1)]


def _held(x: Arrays) -> list[Array]:
    return [x[0], x[1], x[2][..., None, :]]


def one_step(f: Function, x: Arrays) -> list[Array]:
    return [s[..., -1, :] for s in samples(f, _held(x))]


def back_one_step(f: Function, x: Arrays, y: Arrays, w: Arrays) -> list[Array]:
    at_end = [np.stack([np.zeros_like(one), one], axis=-2) for one in w]
    by_q, by_v, by_u = back_through(f, _held(x), y, at_end)
    return [by_q, by_v, by_u[..., 0, :]]


def along_one_step(f: Function, x: Arrays, y: Arrays, dx: Arrays) -> list[Array]:
    q, v, u = x
    how: dict[str, Any] = {
        key: one for key, one in f.options.items() if key not in ("motors", "dt", "limits", "start", "controller")
    }
    others, start = f.options.get("controller"), f.options.get("start", 0.0)
    elements = [] if others is None else list(others) if isinstance(others, Sequence) else [others]
    efforts = EffortTable([start], u.reshape(-1, 1, u.shape[-1]), f.motors)
    S = D.step(f.robot, q, v, f.options["dt"], controller=[efforts, *elements], time=start, **how)
    change = sum(M @ d[..., None] for M, d in zip((S.q, S.v, S.parameters["EffortTable.u"]), dx, strict=True))[..., 0]
    return [change[..., : f.robot.nv], change[..., f.robot.nv : 2 * f.robot.nv]]


# ---- the rows --------------------------------------------------------------------------------------------------------


def assembled(f: Function, x: Arrays) -> list[Array]:
    how = {"branch": "only"} | dict(f.options)  # a function that jumps has no derivative there
    fixed = {name: x[0][..., k] for k, name in enumerate(how.pop("leading"))}
    return [f.robot.assemble(how.pop("near", None), fixed=fixed, return_status=True, **how)[0]]


def _kept(names: str, f: Function) -> dict[str, Any]:
    return {name: f.options[name] for name in names.split() if name in f.options}


_MOTORS = {"q": "q", "v": "v", "u": "motors"}
ROWS = {
    "forward_dynamics": Row(
        "Acceleration that forces leave, loops included; by q and v along what the loops allow.",
        {"q": "q", "v": "v", "tau": "v"}, ("v",),
        lambda f, x, **out: [f.robot.forward_dynamics(*x, **f.options, **out)],
        lambda f, x, y, w: _parts(D.forward_dynamics_vjp(f.robot, *x, w[0], **f.options), "q v tau"),
        lambda f, x, y, dx: [D.forward_dynamics_jvp(f.robot, *x, *dx, **f.options)],
    ),
    "inverse_dynamics": Row(
        "Generalised force for a motion of the tree, all loops open.",
        {"q": "q", "v": "v", "a": "v"}, ("v",),
        lambda f, x, **out: [f.robot.inverse_dynamics(*x, **f.options, **out)],
        lambda f, x, y, w: _parts(D.inverse_dynamics_vjp(f.robot, *x, w[0], **f.options), "q v a"),
        lambda f, x, y, dx: [D.inverse_dynamics_jvp(f.robot, *x, *dx, **f.options)],
    ),
    "actuator_efforts": Row(
        "Efforts of the motors for a motion, loops included.",
        {"q": "q", "v": "v", "a": "v"}, ("u",),
        lambda f, x, **out: [f.robot.actuator_efforts(*x, **f.options, **out)],
        lambda f, x, y, w: _parts(D.actuator_efforts_vjp(f.robot, *x, w[0], **f.options), "q v a"),
        by_matrices(lambda f, x, y: _parts(D.actuator_efforts(f.robot, *x, **f.options), "q v a"))["jvp"],
    ),
    "pose": of_state("pose", "q", output="4 x 4", says="Pose of a frame in the world.", words=("frame",)),
    "velocity": of_state("velocity", "q", "v", output="6", says="Velocity of a frame.", words=("frame",)),
    "acceleration": of_state("acceleration", "q", "v", "a", output="6", says="Acceleration of a frame.", words=("frame",)),
    "center_of_mass": of_state("center_of_mass", "q", output="3", says="Centre of mass."),
    "gravity_forces": of_state("gravity_forces", "q", output="v", says="Generalised force that holds the weight."),
    "kinetic_energy": of_state("kinetic_energy", "q", "v", output="1", says="Kinetic energy."),
    "potential_energy": of_state("potential_energy", "q", output="1", says="Potential energy, of springs too."),
    "constraint_residual": of_state("constraint_residual", "q", output="nc", says="By how much the loops stand open."),
    "assemble": Row(
        "Configuration that closes the loops where joints that lead have these coordinates.",
        {"x": "leading"}, ("q",), assembled, words=("leading",), writes=False,
        **by_matrices(lambda f, x, y: [D.assembled_positions(f.robot, y[0], f.options["leading"], **_kept("time", f)).leading]),
    ),
    "step": Row(
        "State after a step of the simulation, in which motors have the efforts u.",
        _MOTORS, ("q", "v"), one_step, back_one_step, along_one_step, ("dt",), False,
    ),
    "rollouts": Row(
        "States of runs, the start first, in whose steps motors have the rows of u as efforts.",
        _MOTORS | {"u": "steps of motors"}, ("samples of q", "samples of v"), samples, back_through, None, ("dt",), False,
    ),
}  # fmt: skip


def _parts(answer: Any, names: str) -> list[Array]:
    return [getattr(answer, name) for name in names.split()]
