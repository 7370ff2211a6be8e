"""The command `sarrus`: what it takes and how it ends; what its commands do is :mod:`~sarrus.cli.commands`.

    sarrus demo [NAME]       a demonstration: the valve, or any mechanism of the gallery
    sarrus info MODEL        what a model holds, and how it can move
    sarrus check MODEL       what is suspicious about it
    sarrus convert MODEL FILE   write it in another format
    sarrus generate MODEL    functions of it as C code
    sarrus simulate MODEL    let it move; tables, figures, films
    sarrus view MODEL        in the browser, until Ctrl-C
    sarrus new FILE.py       a commented script to start a model from
    sarrus bench             how fast sarrus is on this machine

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
from typing import Any

import numpy as np

from .. import __version__
from .._arrays import Array
from ..errors import ModelError, SarrusError, printable
from ..figures.figures import QUANTITIES
from ..io.saving import WRITERS
from ..laws import Law, harmonic, polynomial
from ..simulation.arguments import METHODS, STABILISATIONS

DESCRIPTION = "Rigid-body dynamics for mechanisms that close on themselves."
EXIT_CODES = "Exit codes: 0 done; 1 the model, the machine or the motion said no, and standard error says why; 2 wrong usage; 130 Ctrl-C."
MODEL = "a model file, or the name of a mechanism of the gallery (sarrus demo --list)"
FIGURES, FILMS = (".png", ".svg", ".pdf"), (".gif", ".html", ".mp4")


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
        if arguments.command is None:
            parser.print_help(sys.stderr)
            return 2
        code: int = getattr(commands, arguments.command)(arguments)
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


# a command of that name, function, brief and long description, and example; and what adds its arguments
Command = Callable[[str, str, str, str, str], Callable[..., None]]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("sarrus", description=DESCRIPTION, epilog=EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"sarrus {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from in the program")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, function: str, brief: str, description: str, example: str) -> Callable[..., None]:
        """A command, and what adds its arguments."""
        epilog = f"Example:\n  {example}\n\n{EXIT_CODES}"
        added = commands.add_parser(
            name, help=brief, description=description, epilog=epilog, formatter_class=_Paragraphs
        )
        # after the command as well as before it
        added.add_argument("--traceback", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        added.set_defaults(command=function, parser=added)

        def argument(*names: str, help: str, **how: Any) -> None:
            added.add_argument(*names, help=f"{help} (default: %(default)s)" if how.get("default") else help, **how)

        return argument

    _add_demo(command)
    _add_models(command)
    _add_generate(command)
    _add_simulate(command)
    _add_view(command)
    _add_others(command)
    return parser


def _add_demo(command: Command) -> None:
    demo = command(
        "demo", "demo",
        "a demonstration: the valve, or any mechanism of the gallery",
        "valve (the default): the Stanford manipulator reaches for a tap and closes it by half a turn (van der Merwe 1995, section "
        "4.6); prints the joint forces, draws figures 4.2 to 4.6 of the thesis and times inverse dynamics. Any mechanism of the "
        "gallery: what it is, and two seconds of free motion from its home under gravity, pushed if it would rest; what would fall apart is "
        "swung about its home by its motors. The figures need "
        "matplotlib; without it the numbers come alone.",
        "sarrus demo hslm -o hslm.svg",
    )  # fmt: skip
    demo("name", nargs="?", default="valve", metavar="NAME", help="which one")
    demo("--list", action="store_true", help="list all names")
    where = "where the figure goes; .png, .svg and .pdf are known (default: NAME.png)"
    demo("-o", "--output", type=_file(FIGURES), metavar="FILE", help=where)


def _add_models(command: Command) -> None:
    info = command(
        "info", "info",
        "what a model holds",
        "Describes a model: bodies, joints, masses, degrees of freedom, total inertia, loops and how they let it move, and what was "
        "met in the file but not used.",
        "sarrus info robot.urdf --floating-base",
    )  # fmt: skip
    _model(info)

    check = command(
        "check", "check",
        "what is suspicious about a model",
        "Looks at a model with a critical eye: parts of the file that are not read, masses next to nothing, inertias that no body has or "
        "in other units, loops that stay open, redundant rows and such as rounding makes contradict one another, joints outside of their "
        "limits or that cannot move. The exit code is 1 where it finds something.",
        "sarrus check robot.urdf",
    )  # fmt: skip
    _model(check)

    convert = command(
        "convert", "converted",
        "a model in another format",
        "Writes a model in the format that the ending of FILE tells: .json (sarrus' own, which holds everything), .urdf (with its loops "
        "in a .yaml beside it), .xml (MJCF), .sdf, .usda. What a format cannot say is an error, if it changes the motion, else a warning.",
        "sarrus convert robot.xml robot.sdf",
    )  # fmt: skip
    _model(convert)
    convert("output", metavar="FILE", type=_file(tuple(WRITERS)), help=f"what to write: {', '.join(WRITERS)}")
    lossy = "leave out what the format cannot say, with a warning, even if the motion changes"
    convert("--lossy", action="store_true", help=lossy)


def _add_generate(command: Command) -> None:
    generate = command(
        "generate", "generated",
        "functions of a model as C code",
        "Writes functions of a model, loops included, as C99 for the computer that runs it: a header and a source in straight lines, without heap, "
        "library, recursion or state. Functions are inverse_dynamics, forward_dynamics, mass_matrix, pose:FRAME, positions:JOINT,JOINT, "
        "transmission:JOINT,JOINT>JOINT,JOINT and others: help(sarrus.generation.generate) lists them.",
        "sarrus generate four_bar --functions inverse_dynamics positions:motor -o generated",
    )  # fmt: skip
    _model(generate)
    generate("--functions", nargs="+", required=True, metavar="FUNCTION", help="which ones")
    generate("-o", "--output", type=Path, default=Path(), metavar="DIR", help="the folder that they go to")
    generate("--name", metavar="NAME", help="of the files and before every function's name (default: the model's)")
    generate("--scalar", choices=("double", "float"), default="double", help="what they compute in")
    targets = ("casadi", "check", "cuda", "fmu", "jax")
    generate("--targets", nargs="+", default=(), choices=targets, help="for which others besides")


def _add_simulate(command: Command) -> None:
    simulate = command(
        "simulate", "simulated",
        "let a model move: tables, figures, films",
        "Lets a model move under gravity and what its joints hold (springs, friction), and writes what it did. It starts at its home, "
        "or at zero, at rest. Given positions are kept when its loops are closed, given velocities when the constraints are satisfied; "
        "all others follow, moving as little as they can. Ctrl-C ends it early: files hold what was computed, as they do when the "
        "motion diverges.",
        "sarrus simulate four_bar --time 2 --velocity motor=6 --plot run.png --show-what energy --csv run.csv",
    )  # fmt: skip
    _model(simulate)
    simulate("--time", type=_number(zero=True), default=1.0, metavar="S", help="how long [s]")
    step = "step [s]; of dopri5 the first one, and the spacing of samples"
    simulate("--dt", type=_number(), default=1e-3, metavar="S", help=step)
    simulate("--method", choices=("auto", *METHODS), default="auto", help="of integration")
    simulate("--rtol", type=_number(), default=1e-6, metavar="X", help="relative tolerance of dopri5")
    simulate("--atol", type=_number(), default=1e-9, metavar="X", help="absolute tolerance of dopri5")
    simulate("--stabilisation", choices=STABILISATIONS, default="projection", help="of loops against drift")
    _coordinates(simulate, "--position", "where joints start [rad, m, quaternions x,y,z,w]")
    _coordinates(simulate, "--velocity", "how fast joints start [rad/s, m/s]")
    law = "a number, harmonic:AMPLITUDE,RATE[,PHASE[,OFFSET]] or polynomial:C0,C1,... of time"
    how: dict[str, Any] = {"nargs": "+", "type": _driven, "action": _ByName, "default": {}, "metavar": "JOINT=LAW"}
    simulate("--effort", **how, help=f"what motors do [N m, N]: {law}")
    simulate("--motion", **how, help=f"how joints are made to move, whatever that takes [rad, m]: {law}")
    simulate("--plot", type=_file(FIGURES), metavar="FILE", help="draw it: .png, .svg or .pdf")
    what = f"{', '.join(QUANTITIES)}, names of joints and frames"
    simulate("--show-what", nargs="+", metavar="WHAT", help=f"what --plot draws: {what} (default: q)")
    simulate("--csv", type=_file((".csv",)), metavar="FILE", help="write a table, a row a sample")
    whole = "write all of it, for sarrus.Trajectory.load: .npz"
    simulate("--save", type=_file((".npz",)), metavar="FILE", help=whole)
    simulate("--animate", type=_file(FILMS), metavar="FILE", help="write a film: .gif, .html, or .mp4 (needs ffmpeg)")


def _add_view(command: Command) -> None:
    view = command(
        "view", "viewed",
        "a model in the browser",
        "Opens a model in the browser, with sliders that keep its loops closed, and serves it until Ctrl-C, after which the exit code "
        "is 0. Needs viser: pip install 'viser<1.2'.",
        "sarrus view delta --port 8090 --no-browser",
    )  # fmt: skip
    _model(view)
    view("--run", dest="run_file", type=_file((".npz", ".csv")), metavar="FILE", help="play back what simulate wrote")
    _coordinates(view, "--position", "where joints are at first [rad, m, quaternions x,y,z,w]")
    view("--port", type=_port, default=8080, metavar="N", help="the next free one from here")
    view("--host", default="127.0.0.1", metavar="ADDRESS", help="0.0.0.0 lets other machines look")
    view("--no-browser", action="store_true", help="print the address and open nothing")


def _add_others(command: Command) -> None:
    new = command(
        "new", "new",
        "a commented script to start a model from",
        "Writes a Python script that builds a crank-rocker, asks how it can move and what a motion takes, and simulates it, with comments that "
        "say what to change. A file that is there already is left as it is.",
        "sarrus new excavator.py",
    )  # fmt: skip
    new("script", type=_file((".py",)), metavar="FILE.py", help="where it goes")

    bench = command(
        "bench", "bench",
        "how fast sarrus is on this machine",
        "Times inverse dynamics, mass matrix, forward dynamics (loops satisfied), a step of simulation, and batches on all threads, "
        "for some mechanisms of the gallery and for chains, and compares with the machine's earlier run, which it keeps in the folder for "
        "caches ($XDG_CACHE_HOME/sarrus, or ~/.cache/sarrus). Takes a few seconds.",
        "sarrus bench --json machine.json",
    )  # fmt: skip
    bench("--json", type=_file((".json",)), metavar="FILE", help="write the numbers too")
    against = "compare with the numbers of such a file instead of the earlier run"
    bench("--against", type=_file((".json",)), metavar="FILE", help=against)


class _Paragraphs(argparse.HelpFormatter):
    """Fills paragraphs, and leaves indented lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n\n".join(p if "\n  " in p else fill(p, width, indent) for p in text.split("\n\n"))


def _model(argument: Callable[..., None]) -> None:
    argument("model", metavar="MODEL", help=MODEL)
    argument("--floating-base", action="store_true", help="let the root body of a file float instead of fixing it")
    argument("--loops", metavar="FILE", help="what closes the loops of a URDF: robot.yaml (needs PyYAML)")


def _coordinates(argument: Callable[..., None], option: str, what: str) -> None:
    many = f"{what}; several coordinates as JOINT=0.1,0.2"
    argument(option, nargs="+", type=_assignment, action=_ByName, default={}, metavar="JOINT=VALUE", help=many)


class _ByName(argparse.Action):
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


def _driven(text: str) -> tuple[str, Law]:
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


def _file(endings: Sequence[str]) -> Callable[[str], Path]:
    def path(text: str) -> Path:
        if Path(text).suffix.lower() not in endings:
            listed = " or ".join(filter(None, [", ".join(endings[:-1]), endings[-1]]))
            raise argparse.ArgumentTypeError(f"'{text}' does not end in {listed}")
        return Path(text)

    return path


def _number(zero: bool = False) -> Callable[[str], float]:
    def number(text: str) -> float:
        x = _float(text)
        if not (math.isfinite(x) and (x > 0.0 or (zero and x == 0.0))):
            expected = "number that is not negative" if zero else "positive number"
            raise argparse.ArgumentTypeError(f"'{text}' is not a {expected}")
        return x

    return number


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"'{text}' is not a port, 1 to 65535")
    return int(text)
