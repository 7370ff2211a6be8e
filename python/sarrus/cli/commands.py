"""Commands of `sarrus`; their arguments are parsed by :mod:`sarrus.cli`."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import IntegrationError, ShapeError, Trajectory, build_info, load, mechanisms, simulate, view
from .._arrays import Array
from .._core import tolerances
from .._files import replacing
from .._showing import listed
from ..analysis.closing import coordinates, start_near, velocities_of
from ..analysis.linear_algebra import ScaledLoops
from ..analysis.mobility import Mobility
from ..control import FeedforwardEffort
from ..errors import ModelError, ModelWarning, NameNotFoundError, SarrusError, StateError, check_name, printable
from ..figures.canvas import check_film
from ..figures.figures import QUANTITIES
from ..io import WRITERS, save
from ..io.document import NO_CONTACTS
from ..laws import Law
from ..mechanism import Mechanism
from ..simulation.setup import METHODS, STABILISATIONS
from ..spatial import Inertia, Transform
from . import BY_LAW, LAW, MODEL, argument, command, file_name, joint_values, number, port_number
from .demo import servos

FIGURES, FILMS = (".png", ".svg", ".pdf"), (".gif", ".html", ".mp4")
VALVE = "valve"  # name of the demonstration that is not a mechanism of the gallery
# mechanism -> arguments of its function, if the defaults do not suit a demonstration
SIZES: dict[str, dict[str, Any]] = {"four_bar_ladder": {"n": 8}, "rover": {"rolling": True}}
# mechanisms that would collapse or leave the picture without control; PID-controlled motors support and swing them
DRIVEN = (
    "biped", "biped_leg", "cable_platform", "delta", "delta_printer", "gripper", "hslm", "humanoid_leg", "macro_micro_arm", "quadruped", "rotary_delta_printer",
    "six_axis_arm", "stanford_arm", "stewart", "three_finger_hand", "tsai_3upu",
)  # fmt: skip
# mechanisms that would topple -> joint of the pelvis or trunk, which is fixed
FIXED = {"biped": "float", "biped_leg": "float", "humanoid_leg": "float", "quadruped": "float"}
# initial velocities [rad/s]: the bicycle is stable at 5 m/s
PUSHED = {"whipple_bicycle": {"rear wheel": 5.0 / 0.3, "lean": 0.2}}
# durations of free motion [s]; the lift is flat at 0.93 s, where its constraints are singular
DURATION, DURATIONS = 2.0, {"scissor_lift": 0.9}
STEP, STRIDE = 1e-4, 10  # step of a demonstration's simulation [s], and steps per drawn sample


class UsageError(Exception):
    """Error for contradictory arguments of the command line."""


# ---- models ----------------------------------------------------------------------------------------------------------


def model(arguments: argparse.Namespace) -> Mechanism:
    """Return the mechanism of the gallery with the name in `arguments`, or the mechanism of the model file."""
    name, floating_base, loops = arguments.model, arguments.floating_base, arguments.loops
    if name in mechanisms.__all__:
        if floating_base or loops:
            option = "--floating-base" if floating_base else "--loops"
            raise UsageError(f"{option} requires a model file; '{name}' is a mechanism of the gallery")
        return _gallery_mechanism(name)
    path = Path(name)
    if not path.suffix and not path.exists():
        close = difflib.get_close_matches(name, mechanisms.__all__, n=3)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        fault = f"no model file and no mechanism of the gallery is named '{name}'"
        raise ModelError(f"{fault}; {hint}`sarrus demo --list` lists the gallery")
    return load(path, floating_base=floating_base or None, loops=loops)


def _gallery_mechanism(name: str) -> Mechanism:
    robot: Mechanism = getattr(mechanisms, name)(**SIZES.get(name, {}))
    return robot


def _described(name: str) -> str:
    """Return a one-line description of a mechanism of the gallery, from its docstring; "" if the interpreter strips docstrings (python -OO)."""
    return (getattr(mechanisms, name).__doc__ or "").partition("\n")[0]


def start(robot: Mechanism, positions: Mapping[str, Array], velocities: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return the initial state (q, v) for coordinates and velocities of joints: name -> array [rad, m; per s].

    The loops are closed while these coordinates are fixed. v is the velocity of least norm that satisfies the constraints and has these joint
    velocities.
    """
    for name in (*positions, *velocities):
        if name not in (*robot.joints, *robot.loop_joints):
            close = difflib.get_close_matches(name, robot.joints, n=1)
            hint = f"; did you mean '{close[0]}'?" if close else ";"
            raise NameNotFoundError(f"no joint is named '{name}'{hint} joints: {', '.join(robot.joints) or 'none'}")
    for values, size, words in ((positions, "nq", ("coordinate",)), (velocities, "nv", ("velocity", "velocities"))):
        for name, value in values.items():
            if np.size(value) != (n := getattr(robot.joint(name).type, size)):
                raise ShapeError(f"joint '{name}' has {_counted(n, *words)}; got {np.size(value)}")
    if robot.nc:
        q = robot.assemble(fixed=positions, time=0.0)
    else:
        q = start_near(robot, None, coordinates(robot, positions), 0.0)
    v, status = robot.complete_velocity(q, velocities, time=0.0, return_status=True)
    if status == 0:
        return q, np.asarray(v)
    tree_velocities = {name: value for name, value in velocities.items() if not robot.joint(name).closes_loop}
    near = robot.project_velocity(q, velocities_of(robot, tree_velocities, "velocities"), time=0.0)
    rates = robot.joint_states(q, near, time=0.0).v
    reached = " ".join(f"{name}={','.join(f'{x:.6g}' for x in rates[name])}" for name in velocities)
    raise StateError(f"the constraints do not allow these velocities; the nearest allowed velocities: {reached}")


# ---- demo ------------------------------------------------------------------------------------------------------------


@command(
    "demo", "run a demonstration: the valve, or a mechanism of the gallery",
    "Run a demonstration. valve (the default): the Stanford manipulator reaches for a tap and closes it by half a turn (van der Merwe 1995, "
    "section 4.6). The demonstration prints the joint forces, draws figures 4.2 to 4.6 of the thesis and times inverse dynamics. A mechanism of "
    "the gallery: its description, and two seconds of free motion from its home under gravity, with a push if it would rest. Motors swing "
    "mechanisms that would otherwise collapse. The figures need matplotlib; without it, only the numbers are printed.",
    "sarrus demo hslm -o hslm.svg",
    argument("name", nargs="?", default="valve", metavar="NAME", help="valve, or a mechanism of the gallery"),
    argument("--list", action="store_true", help="list all names"),
    argument("-o", "--output", type=file_name(FIGURES), metavar="FILE", help="file of the figure: .png, .svg or .pdf (default: NAME.png)"),
)  # fmt: skip
def demo(arguments: argparse.Namespace) -> int:
    if arguments.list:
        print(f"{VALVE:<22}the Stanford manipulator closes a valve: joint forces, figures, speed")
        for name in mechanisms.__all__:
            print(f"{name:<22}{_described(name)}".rstrip())
        return 0
    name, output = arguments.name, arguments.output or Path(f"{arguments.name}.png")
    check_name("demonstration", name, (VALVE, *mechanisms.__all__))
    if name == VALVE:
        _close_valve(output)
    else:
        _move_freely(name, output)
    return 0


def _close_valve(output: Path) -> None:
    from . import demo

    arm = mechanisms.stanford_arm()
    print("The Stanford manipulator closes a valve (van der Merwe 1995, section 4.6):")
    print("it reaches for the tap in 1 s and turns it by half a turn in 0.5 s against 5 N m.\n")
    print(f"Forces that the joints must apply\n\n{demo.table(arm)}\n", flush=True)
    _figure(lambda: demo.draw(arm, output), f"Figures 4.2 to 4.6: {output}\n")
    print(f"Inverse dynamics of {demo.CALLS:,} states along the motion, instruction set {build_info()['isa']}\n")
    for call, seconds in demo.time_calls(arm).items():
        print(f"  {call:<32}{seconds:6.2f} s   {seconds / demo.CALLS * 1e9:5.0f} ns each")


def _move_freely(name: str, output: Path) -> None:
    """Simulate a mechanism of the gallery from its home: without control, or with controlled motors if it would collapse."""
    robot, duration = _gallery_mechanism(name), DURATIONS.get(name, DURATION)
    if name in FIXED:
        b = robot.to_builder()
        b.lock(FIXED[name])
        robot = b.build()
    q, v = robot.assemble(), np.zeros(robot.nv)
    print(": ".join(filter(None, (name, _described(name)))))
    _print_facts({"bodies": len(robot.bodies), **_counts(robot, q)})
    motors = servos(robot, q) if name in DRIVEN else []
    motion = "free motion, from rest"
    if motors:
        motion = "motors that swing it about its home"
    elif name in PUSHED:
        v = start(robot, {}, {joint: np.array([rate]) for joint, rate in PUSHED[name].items()})[1]
        motion = "free motion, pushed"
    elif np.abs(robot.forward_dynamics(q, v, v)).max(initial=0.0) < 1e-3:  # home is an equilibrium, or nearly one
        v = robot.project_velocity(q, 1.0 / np.arange(1.0, robot.nv + 1.0), metric="euclidean")
        v /= np.abs(v).max()
        motion = "free motion, pushed"
    run = simulate(robot, q, v, duration, motors, dt=STEP, limits="enforce" if motors else "warn")
    print(f"\n{duration:g} s of {motion}, rk4 with steps of {STEP:g} s: {_per_step(run)}\n")
    change = "energy change" if motors else "energy drift" if _keeps_energy(robot) else "energy lost"
    print(f"  {'t [s]':>6}  {change + ' [J]':>17}  {'loop error [rad, m]':>19}")
    drift = np.abs(run.energy - run.energy[0])
    for k in np.linspace(0, len(run) - 1, 5).round().astype(int):
        print(f"  {run.t[k]:6.3f}  {drift[k]:17.1e}  {run.loop_error[k]:19.1e}")
    print(flush=True)
    shown = Trajectory(robot, run.t[::STRIDE], run.q[::STRIDE], run.v[::STRIDE])
    # of a closed chain, draw only the coordinates of the motors, which determine the motion; one figure cannot show all coordinates
    quantity: str | list[str] = list(robot.actuated) if robot.nc and robot.actuated else "q"
    if (robot.nq if quantity == "q" else len(quantity)) > 9:
        quantity = list(robot.actuated[:3]) or [name for name in robot.joints if robot.joint(name).nq][:1]
    _figure(lambda: _draw(shown, quantity, output), f"Joint coordinates: {output}")


def _figure(draw: Callable[[], None], text: str) -> None:
    """Draw a figure and print `text`; without matplotlib print a hint, and let the demonstration continue."""
    try:
        draw()
        print(text, flush=True)
    except ImportError as error:
        hint = "" if "pip install" in str(error) else "; to draw it: pip install matplotlib"
        print(f"sarrus: no figure ({error}){hint}", file=sys.stderr)


def _draw(run: Trajectory, quantity: str | list[str], path: Path | None) -> None:
    """Draw quantities of a run to a file; with path None only check that they can be drawn."""
    _without_windows()
    figure: Any = run.plot(quantity).figure
    try:
        if path is not None:
            with replacing(path) as file:
                figure.savefig(file, dpi=200)
    finally:
        from matplotlib import pyplot

        pyplot.close(figure)


def _without_windows() -> None:
    """Select a matplotlib backend without windows, because only files are written. A backend that the user has chosen is not changed.

    If matplotlib is not installed, nothing happens here; plot() raises the error.
    """
    if "matplotlib.pyplot" not in sys.modules:
        with contextlib.suppress(ImportError):
            import matplotlib

            matplotlib.use("agg")


# ---- info ------------------------------------------------------------------------------------------------------------


@command(
    "info", "describe a model",
    "Describe a model: bodies, joints, masses, degrees of freedom, total inertia, loops with their mobility, and entries of the file that "
    "have no effect.",
    "sarrus info robot.urdf --floating-base",
    *MODEL,
)  # fmt: skip
def info(arguments: argparse.Namespace) -> int:
    robot = model(arguments)
    try:
        q, open_loops = (robot.assemble() if robot.nc else start_near(robot, None, {}, 0.0)), ""
        where = "at home" if robot.nc or robot.description.home else "at the neutral configuration"
    except SarrusError as error:
        q, open_loops, where = robot.neutral(), str(error), "at the neutral configuration"
    total = Inertia.zero()
    for body in robot.description.bodies:
        total += body.inertia.transformed(Transform.from_matrix(robot.pose(q, body.name)))
    facts = {"bodies": len(robot.bodies), **_counts(robot, None if open_loops else q), "mass": f"{total.mass:.6g} kg"}
    if total.mass:
        facts["centre of mass"] = f"{_named(('x', 'y', 'z'), total.com)} m, in the world {where}"
        moments = total.about_com[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        facts["inertia about it"] = f"{_named(('xx', 'yy', 'zz', 'xy', 'xz', 'yz'), moments)} kg m²"
    print(robot.name)
    _print_facts(facts)
    print(f"\n{_tree(robot)}")
    if robot.nc:
        print(f"\n{open_loops or robot.mobility(q)}")
        from ..design import grashof_class  # imported here, because other commands do not need it

        if not open_loops and (linkage_class := grashof_class(robot, q)):
            print(f"  {'Grashof':<20}{linkage_class}")
    if robot.warnings:
        print("\n".join(["\nwarnings", *(f"  {printable(warning)}" for warning in robot.warnings)]))
    return 0


def _counts(robot: Mechanism, q: Array | None) -> dict[str, str]:
    """Return a line with the numbers of joints, coordinates and degrees of freedom. q is a configuration with closed loops, None if none was found."""
    joints = [robot.joint(name) for name in (*robot.joints, *robot.loop_joints)]
    sizes = f"nq = {robot.nq}, nv = {robot.nv}"
    facts = {"joints": f"{len(joints)}, {sum(joint.type.nv > 0 for joint in joints)} of them movable"}
    if not robot.nc:
        return {"degrees of freedom": f"{robot.nv}" + (f" ({sizes})" if robot.nq != robot.nv else ""), **facts}
    facts["loops"] = f"{_counted(len(robot.constraints), 'constraint')} of nc = {robot.nc} rows"
    if q is None:
        return {"degrees of freedom": f"unknown ({sizes})", **facts}
    mobility = robot.mobility(q)
    finite = mobility.finite_degrees_of_freedom
    local = "" if finite == mobility.degrees_of_freedom else f" here, {'?' if finite is None else finite} finite"
    if mobility.redundant:
        facts["loops"] += f", {mobility.redundant} of them redundant"
    freedom = f"{mobility.degrees_of_freedom}{local} ({sizes}; Kutzbach {mobility.kutzbach})"
    return {"degrees of freedom": freedom, **facts}


def _tree(robot: Mechanism) -> str:
    """Return the tree as the mechanism prints it; each line begins with the mass of the body that the line ends with."""
    mass = {body.name: f"{body.inertia.mass:.4g}" for body in robot.description.bodies}
    _, ground, *lines = str(robot).split("\n")
    rows = [("mass [kg]", ground)]
    for line in lines:
        ends_in = "" if line.startswith(("loop  ", "spring  ")) else line.rpartition(" ─ ")[2]
        rows.append((mass.get(ends_in, ""), line))
    return "\n".join(f"{kg:>11}  {line}" for kg, line in rows)


def _named(names: Sequence[str], values: Array) -> str:
    """Return text such as "x 0.1, y 0"; values below 1e-12 are printed as zero."""
    return ", ".join(f"{name} {x:.4g}" for name, x in zip(names, values.round(12) + 0.0, strict=True))


def _counted(count: int, singular: str, plural: str = "") -> str:
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def _print_facts(facts: Mapping[str, object]) -> None:
    for name, value in facts.items():
        print(f"  {name:<20}{value}")


# ---- check, convert --------------------------------------------------------------------------------------------------


@command(
    "check", "report suspicious properties of a model",
    "Report suspicious properties of a model: entries of the file that have no effect, tiny masses, unphysical inertias or inertias in other "
    "units, loops that stay open, redundant rows, rows that are inconsistent by rounding, joints outside their limits, and joints that cannot "
    "move. The exit code is 1 if there are findings.",
    "sarrus check robot.urdf",
    *MODEL,
)  # fmt: skip
def check(arguments: argparse.Namespace) -> int:
    """Print suspicious properties of a model; return exit code 1 if there are any, else 0."""
    robot = model(arguments)
    faults, notes = (list(map(printable, findings(robot))) for findings in (suspicious, usual))
    print(f"{robot.name}: {_counted(len(faults), 'finding') if faults else 'no findings'}")
    print("".join(f"  {text}\n" for text in (*faults, *(f"note: {text}" for text in notes))), end="")
    return 1 if faults else 0


@command(
    "convert", "write a model in another format",
    "Write a model in another format, chosen by the ending of FILE: .json (sarrus' own format, which is complete), .urdf (loops go into a "
    ".yaml file next to it), .xml (MJCF), .sdf, .usda. A property that the format cannot represent raises an error if it "
    "changes the motion, and a warning otherwise.",
    "sarrus convert robot.xml robot.sdf",
    *MODEL,
    argument("output", metavar="FILE", type=file_name(tuple(WRITERS)), help=f"file to write: {', '.join(WRITERS)}"),
    argument("--lossy", action="store_true", help="omit properties that the format cannot represent, with a warning, even if the motion changes"),
)  # fmt: skip
def converted(arguments: argparse.Namespace) -> int:
    robot = model(arguments)
    path: Path = arguments.output
    _check_folders(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            written = save(robot, path, lossy=arguments.lossy)
        # the message recommends an argument of the Python function; replace it by the option of the command line
        except ModelError as error:
            raise ModelError(str(error).replace("lossy=True", "--lossy")) from None
    for text in (*robot.warnings, *(str(warning.message) for warning in caught)):
        print(f"sarrus: {printable(text)}", file=sys.stderr)
    print("wrote " + " and ".join(map(str, written)))
    return 0


# ---- generate ----------------------------------------------------------------------------------------------------------


@command(
    "generate", "write functions of a model as C code",
    "Write functions of a model, which may have loops, as C99 for a controller: a header and a source file of straight-line code, without heap, "
    "libraries, recursion or state. Functions are inverse_dynamics, forward_dynamics, mass_matrix, pose:FRAME, positions:JOINT,JOINT, "
    "transmission:JOINT,JOINT>JOINT,JOINT and others: help(sarrus.generation.generate) lists them.",
    "sarrus generate four_bar --functions inverse_dynamics positions:motor -o generated",
    *MODEL,
    argument("--functions", nargs="+", required=True, metavar="FUNCTION", help="functions to write"),
    argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="folder of the files"),
    argument("--name", metavar="NAME", help="name of the files, and prefix of the functions' names (default: the model's name)"),
    argument("--scalar", choices=("double", "float"), default="double", help="floating-point type of the code"),
    argument("--targets", nargs="+", default=(), choices=("casadi", "check", "cuda", "fmu", "jax"), help="also write the functions for these programs"),
)  # fmt: skip
def generated(arguments: argparse.Namespace) -> int:
    from ..generation import generate

    code = generate(
        model(arguments), arguments.functions, arguments.output, name=arguments.name, scalar=arguments.scalar,
        targets=arguments.targets,
    )  # fmt: skip
    for f in code.functions.values():
        print(f"{f.name}: {_counted(f.statements, 'operation')}")
    print(f"wrote {', '.join(map(str, (code.header, code.source, *code.others)))}: {_counted(code.lines, 'line')} of C")
    return 0


# ---- simulate --------------------------------------------------------------------------------------------------------


@command(
    "simulate", "simulate a model; write tables, figures and films",
    "Simulate a model under gravity and the forces in its joints (springs, friction), and write the results. Initially the model is at rest in "
    "its home configuration, or at zero coordinates. The loops are closed with the given positions fixed, and the constraints are satisfied with the given velocities; "
    "all other joints move as little as possible. Ctrl-C stops the simulation early. Results up to that time are written, also if "
    "the simulation diverges.",
    "sarrus simulate four_bar --time 2 --velocity motor=6 --plot run.png --plot-quantity energy --csv run.csv",
    *MODEL,
    argument("--time", type=number(zero=True), default=1.0, metavar="S", help="duration [s]"),
    argument("--dt", type=number(), metavar="S", help="step [s]; for dopri5 the first step and the sample time (default: 1 ms, or less if this is too long)"),
    argument("--method", choices=("auto", *METHODS), default="auto", help="integration method"),
    argument("--rtol", type=number(), default=1e-6, metavar="X", help="relative tolerance of dopri5"),
    argument("--atol", type=number(), default=1e-9, metavar="X", help="absolute tolerance of dopri5"),
    argument("--stabilisation", choices=STABILISATIONS, default="projection", help="constraint stabilisation"),
    joint_values("--position", "initial positions of joints [rad, m, quaternions x,y,z,w]"),
    joint_values("--velocity", "initial velocities of joints [rad/s, m/s]"),
    argument("--effort", **BY_LAW, help=f"efforts of motors [N m, N]: {LAW}"),
    argument("--prescribe", **BY_LAW, help=f"prescribed motions of joints [rad, m]: {LAW}"),
    argument("--plot", type=file_name(FIGURES), metavar="FILE", help="write a figure: .png, .svg or .pdf"),
    argument("--plot-quantity", nargs="+", metavar="QUANTITY", help=f"quantities that --plot draws: {', '.join(QUANTITIES)}, names of joints and frames (default: q)"),
    argument("--csv", type=file_name((".csv",)), metavar="FILE", help="write a table with a row for each sample"),
    argument("--save", type=file_name((".npz",)), metavar="FILE", help="write the trajectory for sarrus.Trajectory.load: .npz"),
    argument("--animate", type=file_name(FILMS), metavar="FILE", help="write a film: .gif, .html, or .mp4 (needs ffmpeg)"),
)  # fmt: skip
def simulated(arguments: argparse.Namespace) -> int:
    robot = _with_motions(model(arguments), arguments.prescribe)
    if arguments.plot_quantity and not arguments.plot:
        raise UsageError("--plot-quantity requires --plot FILE")
    q, v = start(robot, arguments.position, arguments.velocity)
    _check_outputs(robot, q, v, arguments)
    motors, code = [FeedforwardEffort(name, law) for name, law in arguments.effort.items()], 0
    try:
        options = {name: getattr(arguments, name) for name in ("method", "dt", "rtol", "atol", "stabilisation")}
        run = simulate(robot, q, v, arguments.time, motors, **options)
    except IntegrationError as error:
        run, code = error.trajectory, 1
        # print the message without its end, which refers to Python attributes
        print(f"sarrus: {str(error).partition('; .trajectory of this error')[0]}", file=sys.stderr)
    print(f"{robot.name}: {run.t[-1] - run.t[0]:g} s by {run.statistics['method']}")
    with np.errstate(all="ignore"):  # the last samples of a diverged run may overflow
        _print_facts(_summary(run, bool(motors or arguments.prescribe)))
        if not code and not np.isfinite(run.energy).all():
            print("sarrus: the energy overflows, because the motion is too fast", file=sys.stderr)
            code = 1
        _write(run, arguments)
    return 130 if run.status == "interrupted" else code


def _with_motions(robot: Mechanism, motions: Mapping[str, Law]) -> Mechanism:
    """Return the mechanism with prescribed motions of joints."""
    b = robot.to_builder()
    for name, law in motions.items():
        b.add_prescribed_motion(f"motion of {name}", name, law)
    return b.build() if motions else robot


def _check_outputs(robot: Mechanism, q: Array, v: Array, arguments: argparse.Namespace) -> None:
    """Check the output files, and raise their errors, before a long simulation."""
    _check_folders(arguments.plot, arguments.csv, arguments.save, arguments.animate)
    if arguments.animate:
        _without_windows()
        check_film(arguments.animate)
    if arguments.plot:
        at_start = Trajectory(robot, [0.0], [q], [v], efforts=np.zeros((1, robot.nv)))
        _draw(at_start, arguments.plot_quantity or "q", None)


def _check_folders(*paths: Path | None) -> None:
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise FileNotFoundError(2, os.strerror(2), str(path))


def _summary(run: Trajectory, driven: bool) -> dict[str, str]:
    seconds = f"{run.statistics['seconds']:.3g} s"
    facts = {"status": run.status, "samples": f"{len(run)}", "wall time": f"{seconds}, {_per_step(run)}"}
    change = f"{np.abs(run.energy - run.energy[0]).max():.3g} J"
    if overflown := int(np.count_nonzero(~np.isfinite(run.energy))):
        change = f"unknown; the energy of {_counted(overflown, 'sample')} overflows"
    facts["energy drift" if not driven and _keeps_energy(run.mechanism) else "energy change"] = change
    if run.mechanism.nc:
        facts["loop error"] = f"{float(run.loop_error.max()):.3g} rad or m"
    return facts


def _per_step(run: Trajectory) -> str:
    steps = int(run.statistics["steps"])
    return _counted(steps, "step") + (f" of {run.statistics['seconds'] / steps * 1e6:.3g} µs" if steps else "")


def _keeps_energy(robot: Mechanism) -> bool:
    """Return True if no damping, friction or prescribed motion changes the mechanism's energy."""
    description = robot.description
    braked = any(spec.joint._damped or np.any(spec.joint.friction) for spec in description.joints)
    driven = any(any(spec.laws) for spec in description.joints)
    pushed = any(getattr(c, "law", None) or np.any(getattr(c, "value", 0.0)) for c in description.constraints)
    return not (braked or driven or pushed or any(s._damped for s in description.springs))


def _write(run: Trajectory, arguments: argparse.Namespace) -> None:
    """Write the requested files. Tables are written first, because films take long."""
    draw = partial(_draw, run, arguments.plot_quantity or "q")
    writers: list[tuple[str, Callable[[Path], object]]] = [("csv", run.save), ("save", run.save), ("plot", draw)]
    for option, write in (*writers, ("animate", run.animate)):
        if path := getattr(arguments, option):
            write(path)
            print(f"  {'wrote':<20}{path}", flush=True)


# ---- view ------------------------------------------------------------------------------------------------------------


@command(
    "view", "show a model in the browser",
    "Show a model in the browser, with sliders that keep its loops closed, until Ctrl-C; the exit code is then 0. "
    "Needs viser: pip install 'viser<1.2'.",
    "sarrus view delta --port 8090 --no-browser",
    *MODEL,
    argument("--trajectory", dest="trajectory", type=file_name((".npz", ".csv")), metavar="FILE", help="play back a file that `sarrus simulate` wrote"),
    joint_values("--position", "initial positions of joints [rad, m, quaternions x,y,z,w]"),
    argument("--port", type=port_number, default=8080, metavar="N", help="port; the next free port is used if it is taken"),
    argument("--host", default="127.0.0.1", metavar="ADDRESS", help="address to serve at; 0.0.0.0 also admits other machines"),
    argument("--no-browser", action="store_true", help="print the address without opening a browser"),
)  # fmt: skip
def viewed(arguments: argparse.Namespace) -> int:
    """Serve the view until Ctrl-C, and return 0 after it."""
    robot = model(arguments)
    run = None if arguments.trajectory is None else Trajectory.load(arguments.trajectory, mechanism=robot)
    q = start(robot, arguments.position, {})[0] if arguments.position else None
    options = {"port": arguments.port, "host": arguments.host, "open_browser": not arguments.no_browser}
    with contextlib.suppress(KeyboardInterrupt), view(robot, q, trajectory=run, block=False, **options) as shown:
        print(f"{robot.name} at {shown.url}  (Ctrl-C ends it)", flush=True)
        shown.wait()
    return 0


# a body is suspiciously light below this fraction of the heaviest body's mass, because its accelerations lose up to ten digits
LIGHT = 1e-6
# largest radius of gyration, or distance of the centre of mass, relative to the size of the mechanism. Larger values indicate wrong units, such as a
# tensor in g mm² or a mesh in mm
FAR = 100.0
# constraint rows with a smaller singular value are probably redundant, up to rounding of the numbers in the file
ROUNDED = 3e-3


def usual(robot: Mechanism) -> Iterator[str]:
    """Return a line of text for each property of a mechanism that is notable, but no fault."""
    yield from (text for text in robot.warnings if NO_CONTACTS in text)
    with contextlib.suppress(SarrusError):  # `suspicious` reports these errors
        report = robot.mobility(robot.assemble(time=0.0), time=0.0) if robot.nc else None
        if report and report.redundant and _across_a_plane(robot, report):
            rows = f"{report.redundant} of {robot.nc} rows are redundant, as usual for planar linkages"
            yield f"{rows}: reactions normal to the plane are indeterminate"


def suspicious(robot: Mechanism) -> Iterator[str]:
    """Return a line of text for each kind of suspicious property of a mechanism."""
    yield from (text for text in robot.warnings if NO_CONTACTS not in text)
    yield from _mass_findings(robot)
    start = start_near(robot, None, {}, 0.0)
    for name in robot.joints:
        limits, home = robot.joint(name).type.limits, start[robot.joint(name).q_slice]
        if limits is not None and not ((limits[0] <= home) & (home <= limits[1])).all():
            yield f"joint '{name}' starts outside its limits"
    if robot.nc:
        yield from _loop_findings(robot)


def _mass_findings(robot: Mechanism) -> Iterator[str]:
    inertias, reach = {body.name: body.inertia for body in robot.description.bodies}, FAR * robot._length
    size = f"{FAR:g} times the mechanism's size ({robot._length:.2g} m)"
    heaviest = max((I.mass for I in inertias.values()), default=0.0)
    if heaviest == 0.0:
        yield "no body has mass"
    massive = {name: I for name, I in inertias.items() if I.mass > 0.0}
    if light := [name for name, I in massive.items() if I.mass < LIGHT * heaviest]:
        masses = f"least {min(massive[name].mass for name in light):.2g} kg, largest body {heaviest:.3g} kg"
        yield f"tiny mass ({masses}); accelerations lose digits: {listed(light)}"
    unphysical = [name for name, I in inertias.items() if not I.is_physical()]
    if silent := [name for name in unphysical if not any(f"'{name}'" in warning for warning in robot.warnings)]:
        yield f"unphysical inertia: {listed(silent)}"
    if wide := [name for name, I in massive.items() if I.principal_moments.max() > I.mass * reach**2]:
        yield f"radius of gyration over {size}; is the inertia in kg m²? {listed(wide)}"
    if off := [name for name, I in massive.items() if np.abs(I.com).max() > reach]:
        yield f"centre of mass over {size} from the body's origin; is it in m? {listed(off)}"


def _loop_findings(robot: Mechanism) -> Iterator[str]:
    try:
        q = robot.assemble(time=0.0)
    except SarrusError as error:
        yield f"open loops: {error}"
        closed, status = robot.assemble(time=0.0, tolerance=ROUNDED, return_status=True)
        if status == 0:
            yield from _rounding_findings(robot, closed)
        return
    report = robot.mobility(q, time=0.0)
    if report.redundant and not _across_a_plane(robot, report):
        rows = f"{report.redundant} of {robot.nc} rows are redundant; some reactions are indeterminate"
        yield f"{rows}: {listed(report.redundant_rows)}"
    yield from report.warnings
    yield from _rounding_findings(robot, q)
    if report.degrees_of_freedom == 0:
        yield "the mechanism cannot move (zero degrees of freedom)"
    elif report.idle:
        yield f"joints that cannot move: {listed(report.idle)}"


def _across_a_plane(robot: Mechanism, report: Mobility) -> bool:
    """Return True if all internal forces of the redundant constraints are normal to a plane: forces along its normal, and moments about axes in the
    plane.
    """
    q, stressed = robot.assemble(time=0.0), {name: w for name, w in report.self_stress.items() if np.any(w)}
    if not stressed.keys() <= robot._joints.keys():
        return False
    wrenches = []  # pair of bodies, point, and moments and forces on the first body
    for name, w in stressed.items():
        joint = robot.joint(name)
        carried, end = (joint.parent, "parent") if joint.reversed else (joint.child, "child")
        T, pair = robot.pose(q, f"{name}.{end}"), sorted((joint.parent, joint.child))
        in_world = np.hstack([w[:, :3] @ T[:3, :3].T, w[:, 3:] @ T[:3, :3].T])
        wrenches.append((pair, T[:3, 3], in_world if carried == pair[0] else -in_world))

    def sums(normal: Array) -> tuple[Array, Array]:
        """Return sums of the moments and forces of each pair of bodies, at points on one line along the normal; at all points if it is zero."""
        groups: list[tuple[list[str], Array, Array]] = []
        for pair, point, w in wrenches:
            for other, at, total in groups:
                if pair == other and np.linalg.norm(np.cross(normal, point - at)) <= 1e-6 * report.length:
                    total += w
                    total[:, :3] += np.cross(point - at, w[:, 3:])
                    break
            else:
                groups.append((pair, point, w.copy()))
        both = np.concatenate([total for *_, total in groups])
        return both[:, :3] / report.length, both[:, 3:]

    moments, forces = sums(np.zeros(3))
    size, axes = np.linalg.eigh(forces.T @ forces - moments.T @ moments)
    normal = axes[:, 2]
    moments, forces = sums(normal)
    off = [np.abs(moments @ normal).max(), np.linalg.norm(np.cross(forces, normal), axis=1).max()]
    return bool(max(off) <= 1e-6 * np.sqrt(np.abs(size).max()))


def _rounding_findings(robot: Mechanism, q: Array) -> Iterator[str]:
    s = np.linalg.svd(ScaledLoops(robot, q, 0.0).jacobian(q), compute_uv=False)
    rank, loose = (int((s > limit * max(1.0, s.max())).sum()) for limit in (tolerances.negligible, ROUNDED))
    if loose < rank:
        before = f"the singular value {s[loose - 1]:.2g} is followed by" if loose else "the largest singular value is"
        values = f"{before} {s[loose]:.2g}"
        freedoms = f"{robot.nv - rank} degrees of freedom, and {robot.nv - loose} within {ROUNDED:g}"
        yield f"rows are inconsistent within rounding: {freedoms}; {values}. sarrus.without_redundant_constraints(robot) replaces joints by joints with fewer rows"
