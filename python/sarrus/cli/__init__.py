"""Command line of sarrus: arguments and exit codes of the command `sarrus`; its commands are in :mod:`~sarrus.cli.commands`.

    sarrus demo [NAME]          run a demonstration: the valve, or a mechanism of the gallery
    sarrus info MODEL           describe a model and its mobility
    sarrus check MODEL          report suspicious properties of a model
    sarrus convert MODEL FILE   write a model in another format
    sarrus generate MODEL       write functions of a model as C code
    sarrus simulate MODEL       simulate a model; write tables, figures and films
    sarrus view MODEL           show a model in the browser, until Ctrl-C

MODEL is a model file or the name of a mechanism of the gallery (``sarrus demo --list``). The exit code is 0 for success; 1 if the model is invalid or
the simulation failed (the reason is one line on standard error); 2 for wrong usage; and 130 after Ctrl-C (0 for a view).
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

DESCRIPTION = "Rigid-body dynamics for mechanisms with closed loops."
EXIT_CODES = "Exit codes: 0 done; 1 the model is invalid or the command failed (the reason is on standard error); 2 wrong usage; 130 Ctrl-C."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: that of the process) and return the exit code.

    Raises
    ------
    SystemExit
        Raised by argparse: with 0 after --help and --version, with 2 on wrong usage.
    """
    for stream in (sys.stdout, sys.stderr):
        # names of bodies may contain characters that the terminal's encoding lacks, which must not raise an error
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    from . import commands

    parser, arguments = _parser(), argparse.Namespace(traceback=False)
    try:
        try:
            arguments = parser.parse_args(argv)
        except SystemExit:  # writes the output of --help and --version, which is still in the buffer
            sys.stdout.flush()
            raise
        if arguments.run is None:
            parser.print_help(sys.stderr)
            return 2
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `sarrus info robot.urdf | head`: a reader that stops early is not an error
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
    """Discard the buffered output, which the interpreter would otherwise try to write at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Exception) -> str:
    """Return an error as one line without control characters, because messages may contain text of a file."""
    if isinstance(error, OSError) and error.filename is not None:
        return printable(f"{error.filename}: {error.strerror}")
    text = printable(" ".join(line.strip() for line in str(error).splitlines()))
    if isinstance(error, (SarrusError, OSError, ImportError, ValueError)) and text:
        return text
    return f"{type(error).__name__}: {text or 'no message'} (--traceback shows the place)"


# ---- arguments -------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Parser that raises an error if its help cannot be written; argparse ignores this error."""

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        super().error(renamed_options(message))


Argument = tuple[tuple[str, ...], dict[str, Any]]  # (names, keyword arguments) of argparse's add_argument
# name -> brief and long description, example, arguments, function
COMMANDS: dict[str, tuple[str, str, str, Sequence[Argument], Callable[[argparse.Namespace], int]]] = {}


def command(name: str, brief: str, description: str, example: str, *arguments: Argument) -> Callable[..., Any]:
    """Register a function of :mod:`~sarrus.cli.commands` as a command with these arguments. The function returns the exit code."""

    def declared(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
        COMMANDS[name] = brief, description, example, arguments, run
        return run

    return declared


def argument(*names: str, help: str, **options: Any) -> Argument:
    return names, {"help": f"{help} (default: %(default)s)" if options.get("default") else help, **options}


def _parser() -> argparse.ArgumentParser:
    from . import commands  # noqa: F401 (registers the commands)

    parser = _Parser("sarrus", description=DESCRIPTION, epilog=EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"sarrus {__version__}")
    parser.add_argument("--traceback", action="store_true", help="print the traceback of an error")
    parser.set_defaults(run=None)
    listed = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (brief, description, example, arguments, run) in COMMANDS.items():
        epilog = f"Example:\n  {example}\n\n{EXIT_CODES}"
        added = listed.add_parser(name, help=brief, description=description, epilog=epilog, formatter_class=_Paragraphs)
        # accepted after the command as well as before it
        added.add_argument("--traceback", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        added.set_defaults(run=run, parser=added)
        for names, options in arguments:
            added.add_argument(*names, **options)
    return parser


class _Paragraphs(argparse.HelpFormatter):
    """Formatter of help texts that wraps paragraphs and keeps indented lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n\n".join(p if "\n  " in p else fill(p, width, indent) for p in text.split("\n\n"))


class ByName(argparse.Action):
    """Action that collects (name, value) pairs in a dict and rejects duplicate names."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: Any = None) -> None:
        by_name = dict(getattr(namespace, self.dest))
        for name, value in values:
            if name in by_name:
                raise argparse.ArgumentError(self, f"joint '{name}' occurs twice")
            by_name[name] = value
        setattr(namespace, self.dest, by_name)


def _float(text: str) -> float:
    """Return the number that a text represents, NaN if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _assignment(text: str) -> tuple[str, Array]:
    name, _, numbers = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not JOINT=VALUE; the MODEL comes before the options")
    value = np.array([_float(x) for x in numbers.split(",")])
    if not np.isfinite(value).all():
        fault = f"'{numbers}' is not a finite number, or several separated by commas"
        raise argparse.ArgumentTypeError(f"'{text}': {fault}")
    return name, value


def driven(text: str) -> tuple[str, Law]:
    name, equals, law = text.partition("=")
    kind, _, numbers = law.rpartition(":")
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
            expected = "zero or a positive number" if zero else "a positive number"
            raise argparse.ArgumentTypeError(f"'{text}' is not {expected}")
        return x

    return checked


def port_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"'{text}' is not a port number, 1 to 65535")
    return int(text)


MODEL = (
    argument("model", metavar="MODEL", help="a model file, or the name of a mechanism of the gallery (sarrus demo --list)"),
    argument("--floating-base", action="store_true", help="connect the root body of a file to the ground by a free joint instead of fixing it"),
    argument("--loops", metavar="FILE", help="loop joints of a URDF, a file robot.yaml (needs PyYAML)"),
)  # fmt: skip
BY_LAW: dict[str, Any] = {"nargs": "+", "type": driven, "action": ByName, "default": {}, "metavar": "JOINT=LAW"}
LAW = "a number, or a function of time: harmonic:AMPLITUDE,RATE[,PHASE[,OFFSET]] or polynomial:C0,C1,..."


def joint_values(option: str, text: str) -> Argument:
    """Return an option of the command line whose values are assigned to joints by name."""
    many = f"{text}; several coordinates as JOINT=0.1,0.2"
    return argument(option, nargs="+", type=_assignment, action=ByName, default={}, metavar="JOINT=VALUE", help=many)
