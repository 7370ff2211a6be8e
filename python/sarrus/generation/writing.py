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
from ..errors import ModelError, printable, raise_no_such_name
from ..mechanism import Mechanism, checked_mechanism
from .functions import Function, by_name, task_function
from .recorder import BROKEN, NO_ANSWER, Numbers, Recorder
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
    # names that the code uses: functions, constants of math.h, types
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
    """Result of :func:`generate`: paths of header and source, "double" or "float", functions by name, and paths of the files of other targets."""

    header: Path
    source: Path
    scalar: str
    functions: Mapping[str, CFunction]
    others: tuple[Path, ...] = ()


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
        if target not in TARGETS:
            raise_no_such_name("target", target, TARGETS)
    _arrays.checked_truth("assumptions", assumptions)
    _arrays.check_counts(most_statements=most_statements)
    if not named:
        raise ValueError("functions must have at least one name; got none")
    recorded = [
        _recorded(prefix, key, source, partial(Recorder, robot, scalar=scalar), configurations, assumptions)
        for key, source in named.items()
    ]
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
        texts.append(_comment(key, function, f.text, scalar) + f.text.definition)
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
    return Generated(
        path / f"{prefix}.h", path / f"{prefix}.c", scalar, written, tuple(path / key for key in [*contents][2:])
    )


def _recorded(
    prefix: str, key: str, source: str | Function | TaskControl, recorder: Callable[..., Recorder], configurations: ArrayLike | None, assumptions: bool
) -> Recorded:  # fmt: skip
    if isinstance(source, str):
        compute = by_name(source)
    else:
        compute = task_function(source) if isinstance(source, TaskControl) else source
    r = recorder(configurations=configurations)
    _arrays.check_callable(f"functions['{key}']", compute)
    results, inputs = compute(r), dict(r.inputs)
    _arrays.check_mapping(f"result of '{key}'", results, "names to results", 0)
    # names of local variables of the code
    elements = {f"{name}_{k}" for name, x in inputs.items() for k in range(len(x))}
    for name in (*results, *inputs):
        word = str(name)
        if (
            (name in results and name in inputs)
            or word in RESERVED | elements
            or CODE_NAMES.fullmatch(word)
            or not word.isidentifier()
            or not word.isascii()
        ):
            raise ValueError(
                f"'{name}' cannot be the name of a result or an input: it is not an identifier, or is used by C or by the code, or is the name of both a result and an input"
            )
    for name, x in results.items():
        values = r.values(x).reshape(len(r._configurations), -1)
        if values.size and (broken := ~np.isfinite(values).any(axis=0)).any():
            raise ModelError(
                f"result '{name}' of '{key}' is not finite in any sample state (entry {int(np.argmax(broken))} is "
                f"{values[0, np.argmax(broken)]}): a division by zero, or an overflow"
            )

    def written(
        name: str, inputs: Mapping[str, Numbers], results: Mapping[str, Numbers]
    ) -> tuple[_recording.C99Function, bool]:
        flat = [x for array in results.values() for x in r._flat(array)]
        status = r._recording.status_of(flat, r.constant(0.0) if r.status is None else r.status, NO_ANSWER)
        if assumptions:
            status += r._recording.assumptions(BROKEN)
        arguments, outputs = ([(key, r._flat(x)) for key, x in arrays.items()] for arrays in (inputs, results))
        returns_status = status.constant != 0.0
        return r._recording.c99(name, arguments, outputs, status if returns_status else None), returns_status

    results = {name: np.array(r._flat(x), dtype=object).reshape(np.shape(x)) for name, x in results.items()}
    name = f"{prefix}_{_identifier(key)}"
    text, returns_status = written(name, inputs, results)
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
