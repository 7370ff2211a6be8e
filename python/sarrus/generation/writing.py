"""Writing C99: a header, and a source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from .. import _build, _recording
from .._arrays import checked_count, checked_names, checked_path, checked_truth
from .._files import replacing
from ..errors import ModelError, printable
from ..mechanism import Mechanism, checked_mechanism
from .functions import Function, by_name
from .recorder import BROKEN, Numbers, Recorder

MOST_STATEMENTS = 30_000  # of one function: compilers take a minute for so many straight lines
RESERVED = {
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float", "for", "goto", "if",
    "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "volatile", "while", "asm", "bool", "class", "delete", "new", "private", "public", "this",
}  # fmt: skip


@dataclass(frozen=True)
class CFunction:
    """A function of generated code.

    Attributes
    ----------
    name : as in the code; declaration : without its semicolon
    inputs, outputs : names of arrays to their shapes, row by row
    operations : kinds to how many of them are executed, every time; statements : all of them
    alive : how many numbers at once, at most: about so many the compiler puts on the stack
    returns_status : whether it returns an int: 0 fine; 2 no answer, 3 contradictory constraints; 8 more where an assumption does not hold
    """

    name: str
    declaration: str
    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    operations: Mapping[str, int]
    statements: int
    alive: int
    returns_status: bool


@dataclass(frozen=True)
class Generated:
    """What :func:`generate` wrote: paths of header and source, "double" or "float", and its functions by name."""

    header: Path
    source: Path
    scalar: str
    functions: Mapping[str, CFunction]


def generate(
    robot: Mechanism,
    functions: Sequence[str] | Mapping[str, str | Function],
    folder: str | Path,
    *,
    name: str | None = None,
    scalar: str = "double",
    configurations: ArrayLike | None = None,
    assumptions: bool = True,
    most_statements: int = MOST_STATEMENTS,
) -> Generated:
    """Write functions of a mechanism as C99 into a folder: NAME.h and NAME.c.

    The code has no heap, no library but the roots and arctangents of math.h, no recursion, no loop and no state of its own; it computes the same
    operations every time. It agrees with the core to rounding, redundant constraints included. The same arguments give the same files.

    Functions are ``inverse_dynamics``, ``mass_matrix``, ``bias_forces``, ``gravity_forces``, ``forward_dynamics``, ``actuator_efforts``,
    ``constraint_residual``, ``constraint_jacobian``; ``pose:FRAME``, ``velocity:FRAME``, ``jacobian:FRAME``;
    ``inverse_dynamics_derivatives``, and ``forward_dynamics_derivatives`` of trees, by displacements in the tangent space; and of joints A, B to
    joints C, D, such as motors to what they move, or back:

    ``positions:A,B`` : q from the coordinates of A and B by three of Newton's steps from the last q, with the residual that is left
    ``rates:A,B`` : v from the velocities of A and B; ``joint_jacobian:A,B>C,D`` : velocities of C and D by those of A and B
    ``torque_map:A,B>C,D`` : efforts of A and B that do what those of C and D do
    ``transmission:A,B>C,D`` : positions, Jacobian and efforts in one
    ``reduced_inertia:A,B``, ``reduced_gravity:A,B`` : what A and B feel of the whole mechanism

    Parameters
    ----------
    functions : their names; or a mapping of names in the code to such names, or to functions of a :class:`Recorder` that return a mapping of
        names of results to arrays
    folder : where the files go; it is made if it is not there
    name : of the files, and what their functions' names start with; default: the mechanism's
    scalar : "double" or "float"
    configurations : see :class:`Recorder`
    assumptions : whether functions check that what sample states decided holds (in single precision, but how often they correct), and add 8 to their
        status if not
    most_statements : of one function; ModelError for more, which compilers take minutes for

    Raises
    ------
    NameNotFoundError
        Of a function, frame or joint that there is none of.
    ModelError
        Pfaffian constraints of Python functions; a function that is too long.

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
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a string; got {name!r}")
    prefix = _identifier(robot.name if name is None else name)
    named = (
        functions if isinstance(functions, Mapping) else {text: text for text in checked_names("functions", functions)}
    )
    checked_truth("assumptions", assumptions), checked_count("most_statements", most_statements)
    if not named:
        raise ValueError("functions must name one or more; got none")
    written: dict[str, CFunction] = {}
    texts: list[str] = []
    turns = False
    for key, how in named.items():
        recorder = Recorder(robot, scalar=scalar, configurations=configurations)
        short = _identifier(key)
        if short in written:
            raise ValueError(f"two functions are to be called '{short}' in C; a mapping gives them other names")
        results = (by_name(how) if isinstance(how, str) else how)(recorder)
        made, text = _function(recorder, f"{prefix}_{short}", results, assumptions)
        if made.statements > most_statements:
            raise ModelError(f"{key} takes {made.statements} statements, more than most_statements = {most_statements}")
        written[short], turns = made, turns or text.turns
        texts.append(_comment(key, made, text, scalar) + text.definition)
    path = checked_path(folder)
    path.mkdir(parents=True, exist_ok=True)
    about = f"/* {_safe(robot.name)}: functions of a state, generated by sarrus {_build.build_info()['version']}. */\n"
    turn = _recording.turn(scalar == "float") + "\n" if turns else ""
    body = f'{about}#include "{prefix}.h"\n\n#include <math.h>\n\n{turn}' + "\n".join(texts)
    files = {".h": _header(about, prefix, robot, written), ".c": body}
    for suffix, content in files.items():
        with replacing(path / f"{prefix}{suffix}") as file:
            file.write_text(content, encoding="utf-8")
    return Generated(path / f"{prefix}.h", path / f"{prefix}.c", scalar, written)


def _function(
    r: Recorder, name: str, results: Mapping[str, Numbers], assumptions: bool
) -> tuple[CFunction, _recording.C99Function]:
    status = r.status
    if assumptions:
        broken = r._recording.assumptions(BROKEN)
        status = broken if status is None else status + broken
    if status is not None and status.constant == 0.0:
        status = None
    for key in results:
        if key in r.inputs or key in RESERVED or not key.isidentifier() or not key.isascii():
            raise ValueError(f"'{key}' cannot be the name of a result in C, or is that of an input")
    inputs = [(key, r._flat(x)) for key, x in r.inputs.items()]
    outputs = [(key, r._flat(x)) for key, x in results.items()]
    text = r._recording.c99(name, inputs, outputs, status)
    made = CFunction(
        name, text.declaration, {key: np.shape(x) for key, x in r.inputs.items()}, {key: np.shape(x) for key, x in results.items()},
        dict(text.operations), text.statements, text.alive, status is not None,
    )  # fmt: skip
    return made, text


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


def _header(about: str, prefix: str, robot: Mechanism, functions: Mapping[str, CFunction]) -> str:
    guard = f"{prefix.upper()}_H"
    places = []
    for letter, size in (("q", robot.nq), ("v", robot.nv)):
        entries, taken = [f"{prefix}_n{letter} = {size}"], set[str]()
        for joint in map(robot.joint, robot.joints):
            part: slice = getattr(joint, f"{letter}_slice")
            for k, place in enumerate(range(*part.indices(size))):
                several = f"_{k}" if part.stop - part.start > 1 else ""
                entry = f"{prefix}_{letter}_{_identifier(joint.name)}{several}"
                while entry in taken:
                    entry += "_"
                taken.add(entry)
                entries.append(f"{entry} = {place}")
        places.append(f"enum {{ {', '.join(entries)} }};\n")
    declared = "".join(f"{f.declaration};\n" for f in functions.values())
    return (
        f"{about}#ifndef {guard}\n#define {guard}\n\n/* Where joints stand in q and v. */\n{''.join(places)}\n"
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
