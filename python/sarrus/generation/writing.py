"""Writing C99: a header, and a source."""

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
from .functions import Function, by_name, of_tasks
from .recorder import BROKEN, NO_ANSWER, Numbers, Recorder
from .targets import TARGETS, Recorded, entries

MOST_STATEMENTS = 30_000  # of one function: compilers take a minute for so many straight lines
RESERVED = {
    # of C and C++, whose programs include the header
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "class", "compl",
    "concept", "const", "const_cast", "constexpr", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
    "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "restrict", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template",
    "this", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t",
    "while", "xor", "xor_eq",
    # of the code: functions that it calls, constants of math.h, types
    "sqrt", "sqrtf", "fabs", "fabsf", "atan2", "atan2f", "rint", "rintf", "NAN", "INFINITY", "real", "flags",
}  # fmt: skip
OF_THE_CODE = re.compile(r"t\d+|sarrus_.*|(M|FP|HUGE|MATH)_.*")  # temporaries, and names of math.h by their beginning
MADE_BESIDE = ("batch", "columns", "handler", "lanes", "vjp")  # endings of what targets write beside a function


@dataclass(frozen=True, eq=False)
class CFunction:
    """A function of generated code.

    Attributes
    ----------
    name : as in the code; declaration : without its semicolon
    inputs, outputs : names of arrays to their shapes, row by row
    operations : kinds to how many of them are executed, every time; statements : all of them
    alive : how many numbers at once, at most: about so many the compiler puts on the stack
    returns_status : whether it returns an int: 0 fine; 2 no answer (a result is not finite, for one), 3 contradictory constraints; 8 more where an
        assumption does not hold
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
    """What :func:`generate` wrote: paths of header and source, "double" or "float", its functions by name, and paths of what targets added."""

    header: Path
    source: Path
    scalar: str
    functions: Mapping[str, CFunction]
    others: tuple[Path, ...] = ()


@np.errstate(all="ignore")  # numbers of samples at singular positions
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

    The code has no heap, no library but the roots and arctangents of math.h, no recursion, no loop and no state of its own; it computes the same
    operations every time. It agrees with the core to rounding, redundant constraints included. The same arguments give the same files.

    Functions are ``inverse_dynamics``, ``mass_matrix``, ``bias_forces``, ``gravity_forces``, ``forward_dynamics``, ``actuator_efforts``,
    ``constraint_residual``, ``constraint_jacobian``, ``constraint_bias``; ``pose:FRAME``, ``velocity:FRAME``, ``jacobian:FRAME``;
    ``inverse_dynamics_derivatives``, ``forward_dynamics_derivatives`` and ``actuator_efforts_derivatives``, by displacements in the tangent space,
    with loops along what these allow; and of joints A, B to joints C, D, such as motors to what they move, or back:

    ``positions:A,B`` : q from the coordinates of A and B by three of Newton's steps from the last q, with the residual that is left
    ``rates:A,B`` : v from the velocities of A and B; ``joint_jacobian:A,B>C,D`` : velocities of C and D by those of A and B
    ``torque_map:A,B>C,D`` : efforts of A and B that do what those of C and D do
    ``transmission:A,B>C,D`` : positions, Jacobian and efforts in one
    ``reduced_inertia:A,B``, ``reduced_gravity:A,B`` : what A and B feel of the whole mechanism
    ``step:A,B`` : q and v after dt, by the midpoint rule and back onto the loops, A and B staying; of trees ``step``

    Parameters
    ----------
    functions : their names; or a mapping of names in the code to such names, to functions of a :class:`Recorder` that return a mapping of
        names of results to arrays, or to a :class:`~sarrus.control.TaskControl` without limits and contacts, whose targets become arguments
        and whose efforts and what tasks miss the results (:meth:`Recorder.tasks`)
    folder : where the files go; it is made if it is not there
    name : of the files, and what their functions' names start with; default: the mechanism's
    scalar : "double" or "float"
    configurations : see :class:`Recorder`
    assumptions : whether functions check that what sample states decided holds (in single precision, but how often they correct), and add 8 to their
        status if not
    most_statements : of one function; ModelError for more, which compilers take minutes for
    targets : what else is written of the same functions: "casadi", NAME_casadi.c with Jacobians, for ``casadi.external``; "jax", NAME_jax.cc with
        gradients, for :func:`jax_functions`; "cuda", NAME.cu, a thread a state; "fmu", NAME.fmu (FMI 2.0, co-simulation) of a function ``step``; and
        "check", NAME_check.py, which compiles the C and compares it with the core's answers. All but "cuda" and "check" are of double precision. Without a compiler, and
        for any mechanism, :mod:`sarrus.casadi` and :mod:`sarrus.jax` call the core

    Raises
    ------
    NameNotFoundError
        Of a function, frame or joint that there is none of.
    ModelError
        Pfaffian constraints of Python functions; a function that is too long; a result that is finite in no sample state.
    ValueError
        Names that C or the code has already.

    Notes
    -----
    Arguments must be finite, quaternions of unit length, angles less than a million [rad] (single precision: ten thousand): the code does not
    look. Arrays of results may be those of arguments. The method is that of CppADCodeGen and CasADi: operator overloading records each
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
        raise ValueError("functions must name one or more; got none")
    recorded = [
        _recorded(prefix, key, how, partial(Recorder, robot, scalar=scalar), configurations, assumptions)
        for key, how in named.items()
    ]
    places, enumerated = _places(prefix, robot)
    written: dict[str, CFunction] = {}
    texts: list[str] = []
    for key, f in zip(named, recorded, strict=True):
        short = _identifier(key)
        if short in written:
            raise ValueError(f"two functions are to be called '{short}' in C; a mapping gives them other names")
        if f.name in places:
            raise ValueError(
                f"'{f.name}' is the header's name of a place in q or v; a mapping gives the function another"
            )
        made = written[short] = _described(f)
        if made.statements > most_statements:
            raise ModelError(
                f"{key} takes {made.statements} statements, more than most_statements = {most_statements}; samples near singular positions want "
                "many corrections: give configurations= further from them"
            )
        texts.append(_comment(key, made, f.text, scalar) + f.text.definition)
    if beside := [f"{key}_{end}" for key in written for end in MADE_BESIDE if f"{key}_{end}" in written]:
        raise ValueError(f"'{beside[0]}' is what targets write beside a function; a mapping gives it another name")
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
    prefix: str, key: str, how: str | Function | TaskControl, recorder: Callable[..., Recorder], configurations: ArrayLike | None, assumptions: bool
) -> Recorded:  # fmt: skip
    compute = by_name(how) if isinstance(how, str) else of_tasks(how) if isinstance(how, TaskControl) else how
    r = recorder(configurations=configurations)
    _arrays.check_callable(f"functions['{key}']", compute)
    results, inputs = compute(r), dict(r.inputs)
    _arrays.check_mapping(f"what '{key}' returns", results, "names to results", 0)
    elements = {f"{name}_{k}" for name, x in inputs.items() for k in range(len(x))}  # what the code calls them
    for name in (*results, *inputs):
        word = str(name)
        if (
            (name in results and name in inputs)
            or word in RESERVED | elements
            or OF_THE_CODE.fullmatch(word)
            or not word.isidentifier()
            or not word.isascii()
        ):
            raise ValueError(
                f"'{name}' cannot be the name of a result or an input: C or the code has it already, it is none, or it is that of both"
            )
    for name, x in results.items():
        values = r.values(x).reshape(len(r._configurations), -1)
        if values.size and (broken := ~np.isfinite(values).any(axis=0)).any():
            raise ModelError(
                f"result '{name}' of '{key}' is not finite in any sample state (entry {int(np.argmax(broken))} is "
                f"{values[0, np.argmax(broken)]}): it divides by zero, or overflows"
            )

    def written(
        name: str, inputs: Mapping[str, Numbers], results: Mapping[str, Numbers]
    ) -> tuple[_recording.C99Function, bool]:
        flat = [x for array in results.values() for x in r._flat(array)]
        status = r._recording.status_of(flat, r.constant(0.0) if r.status is None else r.status, NO_ANSWER)
        if assumptions:
            status += r._recording.assumptions(BROKEN)
        of_inputs, of_results = ([(key, r._flat(x)) for key, x in some.items()] for some in (inputs, results))
        returns_status = status.constant != 0.0
        return r._recording.c99(name, of_inputs, of_results, status if returns_status else None), returns_status

    results = {name: np.array(r._flat(x), dtype=object).reshape(np.shape(x)) for name, x in results.items()}
    name = f"{prefix}_{_identifier(key)}"
    text, returns_status = written(name, inputs, results)
    return Recorded(name, how, r, inputs, results, text, returns_status, written, compute)


def _described(f: Recorded) -> CFunction:
    inputs, outputs = ({key: np.shape(x) for key, x in some.items()} for some in (f.inputs, f.results))
    text = f.text
    return CFunction(
        f.name, text.declaration, inputs, outputs, dict(text.operations), text.statements, text.alive, f.returns_status
    )


def _comment(key: str, f: CFunction, text: _recording.C99Function, scalar: str) -> str:
    arrays = [f"{name}[{' x '.join(map(str, shape))}]" for x in (f.inputs, f.outputs) for name, shape in x.items()]
    of_inputs = len(f.inputs)
    size = f.alive * (8 if scalar == "double" else 4)
    lines = [
        f"{_safe(key)}: {', '.join(arrays[:of_inputs]) or 'nothing'} -> {', '.join(arrays[of_inputs:])}",
        f"{f.statements} operations: " + (", ".join(f"{n} {words}" for words, n in text.operations) or "none"),
        f"stack: at most {f.alive} numbers at once, {size} bytes, where compiled with -O1 or more",
    ]
    if f.returns_status:
        lines.append(
            f"returns 0; 2 no answer, 3 contradictory constraints; {BROKEN} more where no sample state was like this one"
        )
    return "/* " + "\n * ".join(lines) + " */\n"


def _places(prefix: str, robot: Mechanism) -> tuple[set[str], str]:
    """Names of where joints stand in q and v, and their declarations."""
    all_names, enums = set[str](), ""
    for letter, size in (("q", robot.nq), ("v", robot.nv)):
        taken, entered = {f"{prefix}_n{letter}"}, [f"{prefix}_n{letter} = {size}"]
        for place, entry in enumerate(entries(robot, letter)):
            name = f"{prefix}_{letter}_{_identifier(entry)}"
            while name in taken:
                name += "_"
            taken.add(name)
            entered.append(f"{name} = {place}")
        all_names |= taken
        enums += f"enum {{ {', '.join(entered)} }};\n"
    return all_names, enums


def _header(about: str, prefix: str, places: str, functions: Mapping[str, CFunction]) -> str:
    guard = f"{prefix.upper()}_H"
    declared = "".join(f"{f.declaration};\n" for f in functions.values())
    return (
        f"{about}#ifndef {guard}\n#define {guard}\n\n/* Where joints stand in q and v. */\n{places}\n"
        f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{declared}\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n'
    )


def _identifier(name: str) -> str:
    """A name as C takes it."""
    word = re.sub(r"[^0-9A-Za-z]+", "_", name.replace(">", "_to_")).strip("_")
    word = re.sub("_+", "_", word) or "mechanism"
    return f"_{word}" if word[0].isdigit() else f"{word}_" if word in RESERVED else word


def _safe(text: str) -> str:
    """A name within a comment."""
    return printable(text).replace("*/", "* /").replace("/*", "/ *")
