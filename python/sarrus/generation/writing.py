"""Writer of C99: a header and a source file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from .. import _arrays, _build, _recording
from .._arrays import ArrayLike
from .._files import replacing
from ..control import TaskControl
from ..errors import ModelError, check_name, printable, raise_no_such_name
from ..mechanism import Mechanism, checked_mechanism
from .recorder import BROKEN, NO_ANSWER, Numbers, Recorder, eliminated, solutions
from .targets import TARGETS, Recorded, entries

MOST_STATEMENTS = 30_000  # default limit for one function; compilers need a minute for so many statements
RESERVED = {
    # keywords of C and of C++, because C++ programs can include the header, too
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "class", "compl",
    "concept", "const", "const_cast", "constexpr", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
    "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "restrict", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template",
    "this", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t",
    "while", "xor", "xor_eq",
    # names that the generated code uses: functions, constants of math.h, types
    "sqrt", "sqrtf", "fabs", "fabsf", "atan2", "atan2f", "rint", "rintf", "NAN", "INFINITY", "real", "flags",
}  # fmt: skip
CODE_NAMES = re.compile(r"t\d+|sarrus_.*|(M|FP|HUGE|MATH)_.*")  # temporaries, and prefixes of names in math.h
TARGET_SUFFIXES = ("batch", "columns", "handler", "lanes", "vjp")  # suffixes of additional functions that targets write


@dataclass(frozen=True, eq=False)
class CFunction:
    """Function of generated code.

    Attributes
    ----------
    name, declaration : name of the function in the code, and its declaration without the semicolon
    inputs, outputs : name of an array to its shape, row-major
    operations, statements : kind of operation to the number executed in each call, and number of all operations
    alive : largest number of values that are live at the same time; the compiler stores about as many on the stack
    returns_status : True if the function returns an int: 0, solved; 2, no result, for example because a result is not finite; 3, inconsistent
        constraints; plus 8 if an assumption does not hold
    """

    name: str
    declaration: str
    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    operations: Mapping[str, int]
    statements: int
    alive: int
    returns_status: bool


@dataclass(frozen=True, eq=False)
class Generated:
    """Result of :func:`generate`: the written files, and the functions in them.

    Attributes
    ----------
    header, source : paths of the header and of the source file
    scalar : "double" or "float", the floating-point type of the code
    functions : name of a function to its :class:`CFunction`
    others : paths of the files of other targets
    """

    header: Path
    source: Path
    scalar: str
    functions: Mapping[str, CFunction]
    others: tuple[Path, ...] = ()

    @property
    def lines(self) -> int:
        """Number of lines of the source file, about one for each operation; the time to compile grows with it."""
        return self.source.read_text(encoding="utf-8").count("\n")


@np.errstate(all="ignore")  # results in the samples may overflow, because samples may be singular positions
def generate(
    robot: Mechanism,
    functions: Sequence[str] | Mapping[str, str | Function | TaskControl],
    folder: str | Path,
    *,
    name: str | None = None,
    scalar: str = "double",
    configurations: ArrayLike | None = None,
    assumptions: bool = True,
    most_statements: int = MOST_STATEMENTS,
    targets: Sequence[str] = (),
) -> Generated:
    """Write functions of a mechanism as C99 into a folder: NAME.h and NAME.c.

    The code uses no heap, no recursion, no loop and no static data, and calls only square roots and arctangents of math.h. Every call executes the
    same operations. Results agree with those of the core to rounding, also for redundant constraints. The same arguments always give the same files.

    Functions of a state have the names of the mechanism's methods: ``inverse_dynamics``, ``mass_matrix``, ``bias_forces``, ``gravity_forces``,
    ``forward_dynamics``, ``actuator_efforts``, ``constraint_residual``, ``constraint_jacobian``, ``constraint_bias``. Functions of a frame are
    ``pose:FRAME``, ``velocity:FRAME``, ``jacobian:FRAME``. ``inverse_dynamics_derivatives``, ``forward_dynamics_derivatives`` and
    ``actuator_efforts_derivatives`` are with respect to displacements in the tangent space; for closed chains, along motions that the loops allow.
    Other functions relate the joints A, B before ">" to the joints C, D after it, for example motors to driven joints:

    ``positions:A,B`` : q and the residual, from the coordinates of A and B and the previous q, by three Newton steps
    ``rates:A,B`` : v from the velocities of A and B
    ``joint_jacobian:A,B>C,D`` : Jacobian of the velocities of C and D with respect to those of A and B
    ``torque_map:A,B>C,D`` : efforts of A and B that are equivalent to efforts of C and D
    ``transmission:A,B>C,D`` : results of ``positions``, ``joint_jacobian`` and ``torque_map`` in one function
    ``reduced_inertia:A,B``, ``reduced_gravity:A,B`` : mass matrix and gravity forces of the mechanism, reduced to A and B
    ``step:A,B`` : q and v after dt, by the midpoint rule and a projection onto the loops with A and B fixed; for trees ``step``

    Parameters
    ----------
    functions : list of names of functions, or a mapping: name in the code to function. A function is one of these names, a Python function of a
        :class:`Recorder` that returns a mapping of names to arrays, or a :class:`~sarrus.control.TaskControl` without limits and contacts. Targets of
        a TaskControl become arguments; :meth:`Recorder.tasks` lists its results
    folder : folder of the files; it is created if it does not exist
    name : name of the files, and prefix of the functions' names; default: the mechanism's name
    scalar : "double" or "float"
    configurations : see :class:`Recorder`
    assumptions : True if functions check the decisions that were made in the sample states, and add 8 to their status if a decision is invalid. In
        single precision the number of refinements is not checked
    most_statements : largest number of statements of a function, because compilers need minutes for longer functions; a longer one raises
        ModelError
    targets : other files of the same functions. "casadi": NAME_casadi.c with Jacobians, for ``casadi.external``. "jax": NAME_jax.cc with
        gradients, for :func:`jax_functions`. "cuda": NAME.cu, with one thread for each state. "fmu": NAME.fmu (FMI 2.0, co-simulation) of a function
        ``step``. "check": NAME_check.py, which compiles the C code and compares it with the core. "casadi", "jax" and "fmu" require double precision.
        Alternatively, :mod:`sarrus.casadi` and :mod:`sarrus.jax` call the core, and need no compiler

    Raises
    ------
    NameNotFoundError
        A function, frame or joint does not exist.
    ModelError
        The mechanism has Pfaffian constraints that are Python functions; a function is too long; a result is not finite in any sample state.
    ValueError
        A name is reserved in C or C++, or the code already uses it.

    Notes
    -----
    The code does not check its arguments. They must be finite, quaternions must have unit norm, and angles must be less than 10⁶ rad (10⁴ rad in
    single precision). An array of results may be the same as an array of arguments. As in CppADCodeGen and CasADi, operator overloading records each
    expression once.

    Examples
    --------
    >>> import sarrus, tempfile
    >>> robot = sarrus.mechanisms.four_bar()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = sarrus.generation.generate(robot, ["inverse_dynamics", "forward_dynamics"], folder)
    ...     print(made.functions["forward_dynamics"].declaration)
    int four_bar_forward_dynamics(const double q[3], const double v[3], const double tau[3], double a[3])
    """
    checked_mechanism(robot, "robot")
    prefix = _identifier(robot.name if name is None else _arrays.checked_text("name", name))
    names = _arrays.checked_names("functions", functions)
    named = functions if isinstance(functions, Mapping) else {text: text for text in names}
    targets = _arrays.checked_names("targets", targets)
    for target in targets:
        check_name("target", target, TARGETS)
    _arrays.checked_truth("assumptions", assumptions)
    _arrays.check_counts(most_statements=most_statements)
    if not named:
        raise ValueError("functions must have at least one name; got none")
    recorder = partial(Recorder, robot, scalar=scalar, configurations=configurations)
    recorded = [_recorded(prefix, key, source, recorder(), assumptions) for key, source in named.items()]
    indices, enumerated = _joint_indices(prefix, robot)
    written: dict[str, CFunction] = {}
    texts: list[str] = []
    for key, f in zip(named, recorded, strict=True):
        short = _identifier(key)
        if short in written:
            raise ValueError(f"two functions would have the name '{short}' in C; pass a mapping with other names")
        if f.name in indices:
            raise ValueError(
                f"'{f.name}' is the header's name of an index in q or v; pass a mapping with another name of the function"
            )
        function = written[short] = _described(f)
        if function.statements > most_statements:
            raise ModelError(
                f"{key} has {function.statements} statements, more than most_statements = {most_statements}; samples near singular positions need "
                "many refinements: pass configurations= farther from them"
            )
        called = "".join(f"static {text}\n" for text in f.text.called)
        texts.append(called + _comment(key, function, f.text, scalar) + f.text.definition)
    if clashes := [f"{key}_{end}" for key in written for end in TARGET_SUFFIXES if f"{key}_{end}" in written]:
        raise ValueError(f"'{clashes[0]}' is a name that targets use; pass a mapping with another name")
    about = f"/* {_safe(robot.name)}: functions of a state, generated by sarrus {_build.build_info()['version']}. */\n"
    turn = _recording.turn(scalar == "float") + "\n" if any(f.text.turns for f in recorded) else ""
    body = f'{about}#include "{prefix}.h"\n\n#include <math.h>\n\n{turn}' + "\n".join(texts)
    c = {".h": _header(about, prefix, enumerated, written), ".c": body, "about": about, "turn": turn}
    contents: dict[str, str | bytes] = {f"{prefix}{suffix}": c[suffix] for suffix in (".h", ".c")}
    for target in targets:
        contents |= TARGETS[target](prefix, recorded, c)
    path = _arrays.checked_path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for file_name, content in contents.items():
        with replacing(path / file_name) as file:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
    header, source_file, *files = (path / file_name for file_name in contents)
    return Generated(header, source_file, scalar, written, tuple(files))


def _recorded(
    prefix: str, key: str, source: str | Function | TaskControl, r: Recorder, assumptions: bool, for_gpu: bool = False
) -> Recorded:
    if isinstance(source, str):
        compute = by_name(source)
    else:
        compute = task_function(source) if isinstance(source, TaskControl) else source
    _arrays.check_callable(f"functions['{key}']", compute)
    results, inputs = compute(r), dict(r.inputs)
    _arrays.check_mapping(f"result of '{key}'", results, "names to results", 0)
    # names of local variables of the code
    elements = {f"{name}_{k}" for name, x in inputs.items() for k in range(len(x))}
    for name in (*results, *inputs):
        word = str(name)
        is_used = word in RESERVED | elements or CODE_NAMES.fullmatch(word) or (name in results and name in inputs)
        if is_used or not (word.isidentifier() and word.isascii()):
            causes = (
                "is not an identifier, or is used by C or by the code, or is the name of both a result and an input"
            )
            raise ValueError(f"'{name}' cannot be the name of a result or an input: it {causes}")
    for name, x in results.items():
        values = r.values(x).reshape(len(r._configurations), -1)
        if values.size and (broken := ~np.isfinite(values).any(axis=0)).any():
            raise ModelError(
                f"result '{name}' of '{key}' is not finite in any sample state (entry {int(np.argmax(broken))} is "
                f"{values[0, np.argmax(broken)]}): a division by zero, or an overflow"
            )

    def written(
        name: str, inputs: Mapping[str, Numbers], results: Mapping[str, Numbers], for_gpu: bool
    ) -> tuple[_recording.C99Function, bool]:
        flat = [x for array in results.values() for x in r._flat(array)]
        status = r._recording.status_of(flat, r.constant(0.0) if r.status is None else r.status, NO_ANSWER)
        if assumptions:
            status += r._recording.assumptions(BROKEN)
        arguments, outputs = ([(key, r._flat(x)) for key, x in arrays.items()] for arrays in (inputs, results))
        returns_status = status.constant != 0.0
        return r._recording.c99(name, arguments, outputs, status if returns_status else None, for_gpu), returns_status

    results = {name: np.array(r._flat(x), dtype=object).reshape(np.shape(x)) for name, x in results.items()}
    name = f"{prefix}_{_identifier(key)}"
    text, returns_status = written(name, inputs, results, for_gpu)
    return Recorded(name, source, r, inputs, results, text, returns_status, written, compute)


def _described(f: Recorded) -> CFunction:
    inputs, outputs = ({key: np.shape(x) for key, x in arrays.items()} for arrays in (f.inputs, f.results))
    text = f.text
    return CFunction(
        f.name, text.declaration, inputs, outputs, dict(text.operations), text.statements, text.alive, f.returns_status
    )


def _comment(key: str, f: CFunction, text: _recording.C99Function, scalar: str) -> str:
    arrays = [f"{name}[{' x '.join(map(str, shape))}]" for x in (f.inputs, f.outputs) for name, shape in x.items()]
    count = len(f.inputs)
    size = f.alive * (8 if scalar == "double" else 4)
    lines = [
        f"{_safe(key)}: {', '.join(arrays[:count]) or 'no arguments'} -> {', '.join(arrays[count:])}",
        f"{f.statements} operations: " + (", ".join(f"{n} {words}" for words, n in text.operations) or "none"),
        f"stack: at most {f.alive} live values, {size} bytes, if compiled with -O1 or higher",
    ]
    if f.returns_status:
        lines.append(
            f"status: 0 solved; 2 no result; 3 inconsistent constraints; {BROKEN} more if a decision of the sample states does not hold"
        )
    return "/* " + "\n * ".join(lines) + " */\n"


def _joint_indices(prefix: str, robot: Mechanism) -> tuple[set[str], str]:
    """Return the names of the indices of joints in q and v, and their declarations."""
    all_names, enums = set[str](), ""
    for letter, size in (("q", robot.nq), ("v", robot.nv)):
        names, values = {f"{prefix}_n{letter}"}, [f"{prefix}_n{letter} = {size}"]
        for index, entry in enumerate(entries(robot, letter)):
            name = f"{prefix}_{letter}_{_identifier(entry)}"
            while name in names:
                name += "_"
            names.add(name)
            values.append(f"{name} = {index}")
        all_names |= names
        enums += f"enum {{ {', '.join(values)} }};\n"
    return all_names, enums


def _header(about: str, prefix: str, indices: str, functions: Mapping[str, CFunction]) -> str:
    guard = f"{prefix.upper()}_H"
    declared = "".join(f"{f.declaration};\n" for f in functions.values())
    return (
        f"{about}#ifndef {guard}\n#define {guard}\n\n/* Indices of joints in q and v. */\n{indices}\n"
        f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{declared}\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n'
    )


def _identifier(name: str) -> str:
    """Return a name as an identifier of C."""
    word = re.sub(r"[^0-9A-Za-z]+", "_", name.replace(">", "_to_")).strip("_")
    word = re.sub("_+", "_", word) or "mechanism"
    return f"_{word}" if word[0].isdigit() else f"{word}_" if word in RESERVED else word


def _safe(text: str) -> str:
    """Return a name without the character sequences that end a C comment."""
    return printable(text).replace("*/", "* /").replace("/*", "/ *")


# ---- functions by name -----------------------------------------------------------------------------------------------

Function = Callable[[Recorder], Mapping[str, Numbers]]
# operations of the core with arguments other than a state; they can be recorded only by a Recorder
COMPOSED_ONLY = ("integrate", "coordinate_rate")


def _core_function(name: str) -> Callable[[Recorder, str], Mapping[str, Numbers]]:
    inputs, *_ = _recording.operations[name]

    def recorded(r: Recorder, frame: str) -> Mapping[str, Numbers]:
        state = [r._time() if key == "time?" else None if key[-1] == "?" else getattr(r, key) for key in inputs.split()]
        return {RESULTS.get(name, name): r.call(name, *state, frame=frame or None)}

    return recorded


RESULTS = {
    "inverse_dynamics": "tau", "bias_forces": "tau", "gravity_forces": "tau", "forward_dynamics": "a", "mass_matrix": "M", "jacobian": "J",
    "constraint_jacobian": "J", "constraint_bias": "gamma", "constraint_residual": "phi", "actuator_efforts": "u",
}  # fmt: skip


def _inverse_dynamics_derivatives(r: Recorder, _: str) -> Mapping[str, Numbers]:
    tau = r.call("inverse_dynamics", r.q, r.v, r.a)
    return {"dtau_dq": _by_tangent(r, tau, ()), "dtau_dv": r.derivatives(tau, r.v)}


def _forward_dynamics_derivatives(r: Recorder, _: str) -> Mapping[str, Numbers]:
    """Return the derivatives by the implicit function theorem.

    M da - J' dlambda = -d(forces) and J da = -d(rows), where d(...) are derivatives at constant a and lambda. With a solution x of J x = -d(rows) and
    the null space N of J: da = x - N (N' M N)^-1 N' (d(forces) + M x).
    """
    n, time = r.robot.nv, r._time()
    a = r.apart(r.call("forward_dynamics", r.q, r.v, r.tau, time))
    M, J = r.call("mass_matrix", r.q), r.call("constraint_jacobian", r.q, time)
    forces = r.call("inverse_dynamics", r.q, r.v, a)
    multipliers = r.apart(solutions(r, J.T, forces - r.tau)[0])
    N = r.apart(solutions(r, J, J[:, :0])[1])
    rows = J @ a - r.call("constraint_bias", r.q, r.v, time)
    left = np.concatenate([rows, N.T @ (forces - J.T @ multipliers)])
    constants = np.concatenate([a, multipliers, N.ravel()])
    by_v = r.derivatives(left, np.concatenate([r.v, constants]))[:, :n]
    by_rows, by_forces = np.split(np.hstack([_by_tangent(r, left, constants), by_v]), [len(J)])
    x, _N = solutions(r, J, -by_rows)
    y = eliminated(r, N.T @ M @ N, np.hstack([by_forces + N.T @ M @ x, N.T]))
    da = x - N @ y[:, : 2 * n]
    return {"da_dq": da[:, :n], "da_dv": da[:, n:], "da_dtau": N @ y[:, 2 * n :]}


def _actuator_efforts_derivatives(r: Recorder, _: str) -> Mapping[str, Numbers]:
    u = r.call("actuator_efforts", r.q, r.v, r.a, r._time())
    return {"du_dq": _by_tangent(r, u, ()), "du_dv": r.derivatives(u, r.v), "du_da": r.derivatives(u, r.a)}


def _by_tangent(r: Recorder, results: Numbers, constants: Numbers) -> Numbers:
    """Return derivatives of results with respect to displacements in the tangent space.

    They follow from derivatives with respect to q, because q-dot is linear in v. Results in `constants` do not depend on q.
    """
    by_q = r.derivatives(results, np.concatenate([r.q, constants]))[:, : r.robot.nq]
    return by_q @ np.stack([r.call("coordinate_rate", r.q, unit) for unit in np.eye(r.robot.nv)], axis=1)


def _positions(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    q, residual = r.positions(_names(joints))
    return {"q": q, "residual": residual}


def _step(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    """Return q and v after a step of the explicit midpoint rule.

    Both are projected onto the constraints, while the coordinates and velocities of `joints` are fixed.
    """
    q0, v0, tau, fixed = r.q, r.v, r.tau, _names(joints)
    dt = r.input("dt", np.full((len(r._configurations), 1), 1e-3))[0]

    def on_loops(q: Numbers, v: Numbers) -> tuple[Numbers, Numbers]:
        if not r.robot.constraints:
            return q, v
        q = r._merged(r.closed(r._loop_coordinates(q), fixed, 1)[0], q)
        return q, r.velocities(q, fixed, v[r._indices(fixed)[1]])

    a = r.call("forward_dynamics", q0, v0, tau)
    q, v = on_loops(r.call("integrate", q0, v0 * dt / 2), v0 + a * dt / 2)
    a = r.call("forward_dynamics", q, v, tau)
    q, v = on_loops(r.call("integrate", q0, v * dt), v0 + a * dt)
    return {"q_next": q, "v_next": v}


def _rates(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    _, driven = r._indices(_names(joints))
    return {"v": r.velocities(r.q, _names(joints), r.input("rates", r._samples["v"][:, driven]))}


def _joint_jacobian(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    return {"J": _jacobian_rows(r, r.q, *_sides(joints))}


def _torque_map(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    """Return the efforts tau of the joints before ">" that are equivalent to efforts u of the joints after it.

    By virtual work, tau = J^T u, if v_after = J v_before.
    """
    start, to = _sides(joints)
    return {"tau": _jacobian_rows(r, r.q, start, to).T @ r.input("u", r._samples["tau"][:, r._indices(to)[1]])}


def _transmission(r: Recorder, joints: str) -> Mapping[str, Numbers]:
    """Return positions, Jacobian and efforts from the coordinates of the joints before ">" and the efforts u of the joints after it."""
    start, to = _sides(joints)
    q, residual = r.positions(start)
    J = _jacobian_rows(r, q, start, to)
    u = r.input("u", r._samples["tau"][:, r._indices(to)[1]])
    return {"q": q, "J": J, "tau": J.T @ u, "residual": residual}


def _reduced(result: str, operation: str) -> Callable[[Recorder, str], Mapping[str, Numbers]]:
    """Return a function that reduces the mechanism's inertia or gravity forces to some joints."""

    def recorded(r: Recorder, joints: str) -> Mapping[str, Numbers]:
        J, x = r.joint_jacobian(r.q, _names(joints)), r.call(operation, r.q)
        return {result: J.T @ x @ J if np.ndim(x) == 2 else J.T @ x}

    return recorded


def _jacobian_rows(r: Recorder, q: Numbers, start: list[str], to: list[str]) -> Numbers:
    return r.joint_jacobian(q, start)[r._indices(to)[1]]


def task_function(law: TaskControl) -> Function:
    """Return a function whose results are the efforts of a TaskControl, the acceleration errors of its task rows (`missed`), and the rates of its
    internal states.
    """
    return lambda r: {key: x for key, x in r.tasks(law).items() if key in ("efforts", "missed", "z_dot")}


def _names(joints: str) -> list[str]:
    return [name for name in joints.split(",") if name]


def _sides(joints: str) -> tuple[list[str], list[str]]:
    """Return the names of the joints before and after ">"."""
    start, _, to = joints.partition(">")
    return _names(start), _names(to)


# name of a generated function -> Python function that records it; its arguments are the recorder and the text after the colon
NAMED: dict[str, Callable[[Recorder, str], Mapping[str, Numbers]]] = {
    **{name: _core_function(name) for name in _recording.operations if name not in COMPOSED_ONLY},
    "inverse_dynamics_derivatives": _inverse_dynamics_derivatives,
    "forward_dynamics_derivatives": _forward_dynamics_derivatives,
    "actuator_efforts_derivatives": _actuator_efforts_derivatives,
    "positions": _positions,
    "rates": _rates,
    "step": _step,
    "joint_jacobian": _joint_jacobian,
    "torque_map": _torque_map,
    "transmission": _transmission,
    "reduced_inertia": _reduced("M", "mass_matrix"),
    "reduced_gravity": _reduced("tau", "gravity_forces"),
}


def by_name(text: str) -> Function:
    """Return the function that the text NAME or NAME:OPERAND denotes; OPERAND is a frame or a list of joints."""
    name, _, operand = text.partition(":")
    if name not in NAMED:
        raise_no_such_name("function", name, NAMED)
    core = _recording.operations.get(name, ("", "", True))
    needs_operand = core[2] if name in _recording.operations else not name.endswith("_derivatives")
    # for "step" the text after the colon is optional, because a tree needs no names of joints
    if needs_operand != bool(operand) and name != "step":
        kind = "the name of a frame" if name in _recording.operations else "names of joints"
        cure = f"{name} requires {kind}, {name}:NAME" if needs_operand else f"{name} takes no name after a colon"
        raise ValueError(f"'{text}': {cure}")
    if name in ("joint_jacobian", "torque_map", "transmission") and not all(operand.partition(">")[::2]):
        raise ValueError(f"'{text}': {name} requires input and output joints, {name}:JOINT,JOINT>JOINT,JOINT")
    return lambda recorder: NAMED[name](recorder, operand)
