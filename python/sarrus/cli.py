"""The command `sarrus`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import __version__, build_info, load
from .errors import SarrusError
from .spatial import Inertia, Transform

if TYPE_CHECKING:
    from .mechanism import Mechanism

DESCRIPTION = "Rigid-body dynamics for mechanisms that close on themselves."
EXIT_CODES = "Exit codes: 0 done; 1 the model or the machine said no, and standard error says why; 2 wrong usage."


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
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.run is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `sarrus info robot.urdf | head`: nobody reads on, which is no fault
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (SarrusError, OSError) as error:
        print(f"sarrus: {_message(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("sarrus", description=DESCRIPTION, epilog=EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"sarrus {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="a manipulator closes a valve: joint forces, figures, speed",
        description="The Stanford manipulator reaches for a tap and closes it by half a turn (van der Merwe 1995, section 4.6). "
        "Prints the joint forces, draws figures 4.2 to 4.6 of the thesis and times inverse dynamics.",
        epilog=f"The figure needs matplotlib. {EXIT_CODES}",
    )
    demo.add_argument(
        "-o",
        "--output",
        type=_image,
        default=Path("valve.png"),
        metavar="FILE",
        help="where the figure goes; .png, .svg and .pdf are known (default: %(default)s)",
    )
    demo.set_defaults(run=_demo)

    info = commands.add_parser(
        "info",
        help="what a model file holds",
        description="Describes a model file: bodies, joints, masses, degrees of freedom, total inertia, and what was met "
        "in the file but not used.",
        epilog=EXIT_CODES,
    )
    info.add_argument("model", metavar="MODEL", help="a .urdf file")
    info.add_argument("--floating-base", action="store_true", help="let the root body float instead of fixing it")
    info.set_defaults(run=_info)
    return parser


def _image(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise argparse.ArgumentTypeError(f"'{text}' does not end in .png, .svg or .pdf")
    return path


def _demo(arguments: argparse.Namespace) -> None:
    from . import demo
    from .mechanisms import stanford_arm

    arm = stanford_arm()
    print("The Stanford manipulator closes a valve (van der Merwe 1995, section 4.6):")
    print("it reaches for the tap in 1 s and turns it by half a turn in 0.5 s against 5 N m.\n")
    print(f"Forces that the joints must apply\n\n{demo.table(arm)}\n", flush=True)
    try:
        demo.draw(arm, arguments.output)
        print(f"Figures 4.2 to 4.6: {arguments.output}\n", flush=True)
    except ImportError as error:
        print(f'sarrus: no figure ({error}); for one: pip install "sarrus[plot]"\n', file=sys.stderr)
    print(f"{demo.CALLS:,} inverse dynamics of states along the motion, instruction set {build_info()['isa']}\n")
    for way, seconds in demo.time_calls(arm).items():
        print(f"  {way:<32}{seconds:6.2f} s   {seconds / demo.CALLS * 1e9:5.0f} ns each")


def _info(arguments: argparse.Namespace) -> None:
    robot = load(arguments.model, floating_base=arguments.floating_base)
    joints, total = [robot.joint(name) for name in robot.joints], _inertia(robot)
    facts = {
        "degrees of freedom": f"{robot.nv}" + (f" (nq = {robot.nq}, nv = {robot.nv})" if robot.nq != robot.nv else ""),
        "bodies": f"{len(robot.bodies)}",
        "joints": f"{len(joints)}, {sum(joint.nv > 0 for joint in joints)} of them movable",
        "mass": f"{total.mass:.6g} kg",
    }
    if total.mass:
        xx, xy, xz, _, yy, yz, _, _, zz = total.about_com.ravel()
        facts["centre of mass"] = f"{_named(('x', 'y', 'z'), total.com)} m, in the world at the neutral configuration"
        facts["inertia about it"] = f"{_named(('xx', 'yy', 'zz', 'xy', 'xz', 'yz'), (xx, yy, zz, xy, xz, yz))} kg m²"
    print(robot.name)
    for name, value in facts.items():
        print(f"  {name:<20}{value}")
    print(f"\n{_tree(robot)}")
    if robot.warnings:
        print("\n".join(["\nwarnings", *(f"  {warning}" for warning in robot.warnings)]))


def _inertia(robot: Mechanism) -> Inertia:
    """Of all bodies together, in the world's frame, at the neutral configuration."""
    q, total = robot.neutral(), Inertia.zero()
    for body in robot.description.bodies:
        total += body.inertia.transformed(Transform.from_matrix(robot.pose(q, body.name)))
    return total


def _tree(robot: Mechanism) -> str:
    """The tree as the mechanism prints it, with the mass of the body that a line ends with in front."""
    mass = {body.name: f"{body.inertia.mass:.4g}" for body in robot.description.bodies}
    _, ground, *lines = str(robot).split("\n")
    rows = [("mass [kg]", ground), *((mass.get(line.rpartition(" ─ ")[2], ""), line) for line in lines)]
    return "\n".join(f"{kg:>11}  {line}" for kg, line in rows)


def _named(names: Iterable[str], values: Iterable[float]) -> str:
    """As "x 0.1, y 0"; what is left of a zero after rounding is zero."""
    return ", ".join(f"{name} {round(x, 12) + 0.0:.4g}" for name, x in zip(names, values, strict=True))
