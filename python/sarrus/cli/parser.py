"""The command `sarrus`: what it takes and how it ends; what its commands do is :mod:`~sarrus.cli.commands`.

    sarrus demo [NAME]       a demonstration: the valve, or any mechanism of the gallery
    sarrus info MODEL        what a model holds, and how it can move
    sarrus check MODEL       what is suspicious about it
    sarrus convert MODEL FILE   write it in another format
    sarrus generate MODEL    functions of it as C code
    sarrus simulate MODEL    let it move; tables, figures, films
    sarrus view MODEL        in the browser, until Ctrl-C

MODEL is a model file or the name of a mechanism of the gallery (``sarrus demo --list``). Exit codes: 0 done; 1 the model,
the machine or the motion said no, and one line on standard error says why; 2 wrong usage; 130 Ctrl-C (a view, which is meant
to be ended so, gives 0).
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import __version__
from .._arrays import Array
from .._renamed import renamed_options
from ..errors import ModelError, SarrusError, printable
from ..laws import Law, harmonic, polynomial

DESCRIPTION = "Rigid-body dynamics for mechanisms that close on themselves."
EXIT_CODES = "Exit codes: 0 done; 1 the model, the machine or the motion said no, and standard error says why; 2 wrong usage; 130 Ctrl-C."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's) and return the exit code.

    Raises
    ------
    SystemExit
        As argparse does: with 0 after --help and --version, with 2 on wrong usage.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names of bodies may hold letters that the terminal lacks
            stream.reconfigure(errors="replace")
    from . import commands

    parser, arguments = _parser(), argparse.Namespace(traceback=False)
    try:
        try:
            arguments = parser.parse_args(argv)
        except SystemExit:  # --help and --version, which may not have been written either
            sys.stdout.flush()
            raise
        if arguments.run is None:
            parser.print_help(sys.stderr)
            return 2
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `sarrus info robot.urdf | head`: nobody reads on, which is no fault
        _discard_output()
        return 0
    except commands.UsageError as error:
        arguments.parser.error(str(error))
    except Exception as error:
        if arguments.traceback:
            traceback.print_exc()
        print(f"sarrus: {_message(error)}", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:
            _discard_output()
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _discard_output() -> None:
    """What stands in the buffer still cannot be written: the interpreter would try again as it ends, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Exception) -> str:
    """One line that a terminal shows and does not obey, whatever went wrong and whatever a file says."""
    if isinstance(error, OSError) and error.filename is not None:
        return printable(f"{error.filename}: {error.strerror}")
    text = printable(" ".join(line.strip() for line in str(error).splitlines()))
    if isinstance(error, (SarrusError, OSError, ImportError, ValueError)) and text:
        return text
    return f"{type(error).__name__}: {text or 'no message'} (--traceback shows where)"


# ---- what it takes ---------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Says when its help could not be written; argparse keeps that to itself."""

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        super().error(renamed_options(message))


Argument = tuple[tuple[str, ...], dict[str, Any]]  # names, and what argparse is told of it
# name -> brief and long description, example, arguments, what it does
COMMANDS: dict[str, tuple[str, str, str, Sequence[Argument], Callable[[argparse.Namespace], int]]] = {}


def command(name: str, brief: str, description: str, example: str, *arguments: Argument) -> Callable[..., Any]:
    """Make a function of :mod:`~sarrus.cli.commands` a command with these arguments; it returns the exit code."""

    def declared(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
        COMMANDS[name] = brief, description, example, arguments, run
        return run

    return declared


def argument(*names: str, help: str, **how: Any) -> Argument:
    return names, {"help": f"{help} (default: %(default)s)" if how.get("default") else help, **how}


def _parser() -> argparse.ArgumentParser:
    from . import commands  # noqa: F401 (where they are declared)

    parser = _Parser("sarrus", description=DESCRIPTION, epilog=EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"sarrus {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from in the program")
    parser.set_defaults(run=None)
    listed = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (brief, description, example, arguments, run) in COMMANDS.items():
        epilog = f"Example:\n  {example}\n\n{EXIT_CODES}"
        added = listed.add_parser(name, help=brief, description=description, epilog=epilog, formatter_class=_Paragraphs)
        # after the command as well as before it
        added.add_argument("--traceback", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        added.set_defaults(run=run, parser=added)
        for names, how in arguments:
            added.add_argument(*names, **how)
    return parser


class _Paragraphs(argparse.HelpFormatter):
    """Fills paragraphs, and leaves indented lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n\n".join(p if "\n  " in p else fill(p, width, indent) for p in text.split("\n\n"))


class ByName(argparse.Action):
    """Gathers (name, value) in a dict; no name twice."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: Any = None) -> None:
        known = dict(getattr(namespace, self.dest))
        for name, value in values:
            if name in known:
                raise argparse.ArgumentError(self, f"joint '{name}' is given twice")
            known[name] = value
        setattr(namespace, self.dest, known)


def _float(text: str) -> float:
    """NaN for what is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _assignment(text: str) -> tuple[str, Array]:
    name, _, numbers = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not JOINT=VALUE (MODEL stands before the options)")
    value = np.array([_float(x) for x in numbers.split(",")])
    if not np.isfinite(value).all():
        fault = f"'{numbers}' is not a finite number, or several with commas between"
        raise argparse.ArgumentTypeError(f"'{text}': {fault}")
    return name, value


def driven(text: str) -> tuple[str, Law]:
    name, equals, told = text.partition("=")
    kind, _, numbers = told.rpartition(":")
    laws: dict[str, Callable[..., Law]] = {"": polynomial, "polynomial": polynomial, "harmonic": harmonic}
    terms = [_float(x) for x in numbers.split(",")]
    try:
        if name and equals and (kind or len(terms) == 1):
            return name, laws[kind](*terms)
    except (KeyError, TypeError, ModelError):
        pass
    raise argparse.ArgumentTypeError(f"'{text}' is not JOINT=5, JOINT=harmonic:2,6 or JOINT=polynomial:0,1")


def file_name(endings: Sequence[str]) -> Callable[[str], Path]:
    def path(text: str) -> Path:
        if Path(text).suffix.lower() not in endings:
            listed = " or ".join(filter(None, [", ".join(endings[:-1]), endings[-1]]))
            raise argparse.ArgumentTypeError(f"'{text}' does not end in {listed}")
        return Path(text)

    return path


def number(zero: bool = False) -> Callable[[str], float]:
    def checked(text: str) -> float:
        x = _float(text)
        if not (math.isfinite(x) and (x > 0.0 or (zero and x == 0.0))):
            expected = "number that is not negative" if zero else "positive number"
            raise argparse.ArgumentTypeError(f"'{text}' is not a {expected}")
        return x

    return checked


def port_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"'{text}' is not a port, 1 to 65535")
    return int(text)


MODEL = (
    argument("model", metavar="MODEL", help="a model file, or the name of a mechanism of the gallery (sarrus demo --list)"),
    argument("--floating-base", action="store_true", help="let the root body of a file float instead of fixing it"),
    argument("--loops", metavar="FILE", help="what closes the loops of a URDF: robot.yaml (needs PyYAML)"),
)  # fmt: skip
BY_LAW: dict[str, Any] = {"nargs": "+", "type": driven, "action": ByName, "default": {}, "metavar": "JOINT=LAW"}
LAW = "a number, harmonic:AMPLITUDE,RATE[,PHASE[,OFFSET]] or polynomial:C0,C1,... of time"


def of_joints(option: str, what: str) -> Argument:
    """Of joints by their names."""
    many = f"{what}; several coordinates as JOINT=0.1,0.2"
    return argument(option, nargs="+", type=_assignment, action=ByName, default={}, metavar="JOINT=VALUE", help=many)
