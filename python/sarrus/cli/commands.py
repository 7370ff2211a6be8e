"""What the commands of `sarrus` do; how they are asked for is :mod:`~sarrus.cli`."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import IntegrationError, Trajectory, build_info, load, mechanisms, simulate, view
from .._arrays import Array
from .._files import replacing
from ..analysis.joint_targets import coordinates, start_near, velocities_of
from ..control import PrescribedEffort
from ..errors import (
    ModelError,
    ModelWarning,
    NameNotFoundError,
    SarrusError,
    ShapeError,
    StateError,
    printable,
    raise_no_such_name,
)
from ..figures.canvas import check_film
from ..figures.figures import QUANTITIES
from ..io import save
from ..io.saving import WRITERS
from ..laws import Law
from ..mechanism import Mechanism
from ..simulation.arguments import METHODS, STABILISATIONS
from ..spatial import Inertia, Transform
from .check import grashof
from .demo import servos
from .parser import BY_LAW, LAW, MODEL, argument, command, file_name, number, of_joints, port_number

FIGURES, FILMS = (".png", ".svg", ".pdf"), (".gif", ".html", ".mp4")
VALVE = "valve"  # the demonstration that is no mechanism of the gallery
# of those that come in sizes, or on wheels
SIZES: dict[str, dict[str, Any]] = {"four_bar_ladder": {"n": 8}, "rover": {"rolling": True}}
# what would fall apart, or out of the picture: motors hold it, and swing; of what would topple, pelvis or trunk is held
DRIVEN = (
    "biped", "biped_leg", "cable_platform", "delta", "gripper", "hslm", "humanoid_leg", "macro_micro_arm", "quadruped", "six_axis_arm",
    "stanford_arm", "stewart", "three_finger_hand", "tsai_3upu",
)  # fmt: skip
HELD = {"biped": "float", "biped_leg": "float", "humanoid_leg": "float", "quadruped": "float"}
PUSHED = {"whipple_bicycle": {"rear wheel": 5.0 / 0.3, "lean": 0.2}}  # [rad/s]: at 5 m/s it stands by itself
# [s] of free motion; the lift has fallen flat at 0.93 s, where its constraints are singular
DURATION, DURATIONS = 2.0, {"scissor_lift": 0.9}
STEP, STRIDE = 1e-4, 10  # [s] of a demonstration's simulation; every so many of them are drawn


class UsageError(Exception):
    """The words on the command line do not go together."""


# ---- models ----------------------------------------------------------------------------------------------------------


def model(arguments: argparse.Namespace) -> Mechanism:
    """The mechanism of a file or, where the name is one of the gallery's, of the gallery."""
    name, floating_base, loops = arguments.model, arguments.floating_base, arguments.loops
    if name in mechanisms.__all__:
        if floating_base or loops:
            option = "--floating-base" if floating_base else "--loops"
            raise UsageError(f"{option} is for model files; '{name}' is of the gallery")
        return _of_gallery(name)
    path = Path(name)
    if not path.suffix and not path.exists():
        close = difflib.get_close_matches(name, mechanisms.__all__, n=3)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        fault = f"no file, and no mechanism of the gallery, is named '{name}'"
        raise ModelError(f"{fault}; {hint}`sarrus demo --list` lists them")
    return load(path, floating_base=floating_base or None, loops=loops)


def _of_gallery(name: str) -> Mechanism:
    made: Mechanism = getattr(mechanisms, name)(**SIZES.get(name, {}))
    return made


def _described(name: str) -> str:
    """A mechanism of the gallery in one line; nothing where the interpreter leaves docstrings out (python -OO)."""
    return (getattr(mechanisms, name).__doc__ or "").partition("\n")[0]


def start(robot: Mechanism, positions: Mapping[str, Array], velocities: Mapping[str, Array]) -> tuple[Array, Array]:
    """The state (q, v) with these coordinates and velocities of joints.

    Loops are closed with the given coordinates held; of all velocities that the constraints allow with the given ones, the least one.
    """
    for name in (*positions, *velocities):
        if name not in (*robot.joints, *robot.loop_joints):
            close = difflib.get_close_matches(name, robot.joints, n=1)
            hint = f"; did you mean '{close[0]}'?" if close else ";"
            raise NameNotFoundError(f"no joint is named '{name}'{hint} there are: {', '.join(robot.joints) or 'none'}")
    for name, value in positions.items():
        if np.size(value) != (nq := robot.joint(name).type.nq):
            raise ShapeError(f"joint '{name}' takes {_counted(nq, 'coordinate', 'coordinates')}; got {np.size(value)}")
    for name, value in velocities.items():
        if np.size(value) != (nv := robot.joint(name).type.nv):
            raise ShapeError(f"joint '{name}' takes {_counted(nv, 'velocity', 'velocities')}; got {np.size(value)}")
    if robot.nc:
        q = robot.assemble(fixed=positions, time=0.0)
    else:
        q = start_near(robot, None, coordinates(robot, positions), 0.0)
    v, status = robot.complete_velocity(q, velocities, time=0.0, return_status=True)
    if status == 0:
        return q, np.asarray(v)
    of_tree = {name: value for name, value in velocities.items() if not robot.joint(name).closes_loop}
    near = robot.project_velocity(q, velocities_of(robot, of_tree, "velocities"), time=0.0)
    of_joints = robot.joint_states(q, near, time=0.0).v
    reached = [f"{name}={','.join(f'{x:.6g}' for x in of_joints[name])}" for name in velocities]
    raise StateError(f"the constraints do not allow these velocities here; near them they allow {' '.join(reached)}")


# ---- demo ------------------------------------------------------------------------------------------------------------


@command(
    "demo", "a demonstration: the valve, or any mechanism of the gallery",
    "valve (the default): the Stanford manipulator reaches for a tap and closes it by half a turn (van der Merwe 1995, section "
    "4.6); prints the joint forces, draws figures 4.2 to 4.6 of the thesis and times inverse dynamics. Any mechanism of the "
    "gallery: what it is, and two seconds of free motion from its home under gravity, pushed if it would rest; what would fall apart is "
    "swung about its home by its motors. The figures need "
    "matplotlib; without it the numbers come alone.",
    "sarrus demo hslm -o hslm.svg",
    argument("name", nargs="?", default="valve", metavar="NAME", help="which one"),
    argument("--list", action="store_true", help="list all names"),
    argument("-o", "--output", type=file_name(FIGURES), metavar="FILE", help="where the figure goes; .png, .svg and .pdf are known (default: NAME.png)"),
)  # fmt: skip
def demo(arguments: argparse.Namespace) -> int:
    if arguments.list:
        print(f"{VALVE:<20}the Stanford manipulator closes a valve: joint forces, figures, speed")
        for name in mechanisms.__all__:
            print(f"{name:<20}{_described(name)}".rstrip())
        return 0
    name, output = arguments.name, arguments.output or Path(f"{arguments.name}.png")
    if name not in (VALVE, *mechanisms.__all__):
        raise_no_such_name("demonstration", name, (VALVE, *mechanisms.__all__))
    if name == VALVE:
        _close_valve(output)
    else:
        _let_go(name, output)
    return 0


def _close_valve(output: Path) -> None:
    from . import demo

    arm = mechanisms.stanford_arm()
    print("The Stanford manipulator closes a valve (van der Merwe 1995, section 4.6):")
    print("it reaches for the tap in 1 s and turns it by half a turn in 0.5 s against 5 N m.\n")
    print(f"Forces that the joints must apply\n\n{demo.table(arm)}\n", flush=True)
    _figure(lambda: demo.draw(arm, output), f"Figures 4.2 to 4.6: {output}\n")
    print(f"{demo.CALLS:,} inverse dynamics of states along the motion, instruction set {build_info()['isa']}\n")
    for way, seconds in demo.time_calls(arm).items():
        print(f"  {way:<32}{seconds:6.2f} s   {seconds / demo.CALLS * 1e9:5.0f} ns each")


def _let_go(name: str, output: Path) -> None:
    """A mechanism of the gallery moves from its home: freely, or about it by its motors where it would fall apart."""
    robot, duration = _of_gallery(name), DURATIONS.get(name, DURATION)
    if name in HELD:
        b = robot.to_builder()
        b.lock(HELD[name])
        robot = b.build()
    q, v = robot.assemble(), np.zeros(robot.nv)
    print(": ".join(filter(None, (name, _described(name)))))
    _print_facts({"bodies": len(robot.bodies), **_counts(robot, q)})
    motors = servos(robot, q) if name in DRIVEN else []
    how = "free motion, from rest"
    if motors:
        how = "motors that swing it about its home"
    elif name in PUSHED:
        v = start(robot, {}, {joint: np.array([rate]) for joint, rate in PUSHED[name].items()})[1]
        how = "free motion, pushed"
    elif np.abs(robot.forward_dynamics(q, v, v)).max(initial=0.0) < 1e-3:  # it would stay where it is, or nearly so
        v = robot.project_velocity(q, 1.0 / np.arange(1.0, robot.nv + 1.0), metric="euclidean")
        v /= np.abs(v).max()
        how = "free motion, pushed"
    run = simulate(robot, q, v, duration, motors, dt=STEP, limits="stop" if motors else "warn")
    print(f"\n{duration:g} s of {how}, rk4 with steps of {STEP:g} s: {_per_step(run)}\n")
    change = "energy change" if motors else "energy drift" if _keeps_energy(robot) else "energy lost"
    print(f"  {'t [s]':>6}  {change + ' [J]':>17}  {'loop error [rad, m]':>19}")
    drift = np.abs(run.energy - run.energy[0])
    for k in np.linspace(0, len(run) - 1, 5).round().astype(int):
        print(f"  {run.t[k]:6.3f}  {drift[k]:17.1e}  {run.loop_error[k]:19.1e}")
    print(flush=True)
    shown = Trajectory(robot, run.t[::STRIDE], run.q[::STRIDE], run.v[::STRIDE])
    # all coordinates of a closed mechanism are more than a figure shows; those of its motors say how it moves
    what: str | list[str] = list(robot.actuated) if robot.nc and robot.actuated else "q"
    if (robot.nq if what == "q" else len(what)) > 9:
        what = list(robot.actuated[:3]) or [name for name in robot.joints if robot.joint(name).nq][:1]
    _figure(lambda: _draw(shown, what, output), f"Joint coordinates: {output}")


def _figure(draw: Callable[[], None], said: str) -> None:
    """Draw it, or say what it needs: a demonstration goes on without."""
    try:
        draw()
        print(said, flush=True)
    except ImportError as error:
        hint = "" if "pip install" in str(error) else "; for one: pip install matplotlib"
        print(f"sarrus: no figure ({error}){hint}", file=sys.stderr)


def _draw(run: Trajectory, what: str | list[str], path: Path | None) -> None:
    """None: to see whether it can be drawn."""
    _without_windows()
    figure: Any = run.plot(what).figure
    try:
        if path is not None:
            with replacing(path) as file:
                figure.savefig(file, dpi=200)
    finally:
        from matplotlib import pyplot

        pyplot.close(figure)


def _without_windows() -> None:
    """Files are all that is asked for; who has chosen where figures appear, keeps it. Without matplotlib plot() says how to get it."""
    if "matplotlib.pyplot" not in sys.modules:
        with contextlib.suppress(ImportError):
            import matplotlib

            matplotlib.use("agg")


# ---- info ------------------------------------------------------------------------------------------------------------


@command(
    "info", "what a model holds",
    "Describes a model: bodies, joints, masses, degrees of freedom, total inertia, loops and how they let it move, and what was "
    "met in the file but not used.",
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
        if not open_loops and (said := grashof(robot, q)):
            print(f"  {'Grashof':<20}{said}")
    if robot.warnings:
        print("\n".join(["\nwarnings", *(f"  {printable(warning)}" for warning in robot.warnings)]))
    return 0


def _counts(robot: Mechanism, q: Array | None) -> dict[str, str]:
    """Joints, coordinates and freedoms; with loops those in a configuration that closes them, if there is one."""
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
    here = "" if finite == mobility.degrees_of_freedom else f" here, {'?' if finite is None else finite} finite"
    if mobility.redundant:
        facts["loops"] += f", {mobility.redundant} of them redundant"
    return {
        "degrees of freedom": f"{mobility.degrees_of_freedom}{here} ({sizes}; Kutzbach {mobility.kutzbach})",
        **facts,
    }


def _tree(robot: Mechanism) -> str:
    """The tree as the mechanism prints it, with the mass of the body that a line ends with in front."""
    mass = {body.name: f"{body.inertia.mass:.4g}" for body in robot.description.bodies}
    _, ground, *lines = str(robot).split("\n")
    rows = [("mass [kg]", ground)]
    for line in lines:
        ends_in = "" if line.startswith(("loop  ", "spring  ")) else line.rpartition(" ─ ")[2]
        rows.append((mass.get(ends_in, ""), line))
    return "\n".join(f"{kg:>11}  {line}" for kg, line in rows)


def _named(names: Sequence[str], values: Array) -> str:
    """As "x 0.1, y 0"; what is left of a zero after rounding is zero."""
    return ", ".join(f"{name} {x:.4g}" for name, x in zip(names, values.round(12) + 0.0, strict=True))


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _print_facts(facts: Mapping[str, object]) -> None:
    for name, value in facts.items():
        print(f"  {name:<20}{value}")


# ---- check, convert --------------------------------------------------------------------------------------------------


@command(
    "check", "what is suspicious about a model",
    "Looks at a model with a critical eye: parts of the file that are not read, masses next to nothing, inertias that no body has or "
    "in other units, loops that stay open, redundant rows and such as rounding makes contradict one another, joints outside of their "
    "limits or that cannot move. The exit code is 1 where it finds something.",
    "sarrus check robot.urdf",
    *MODEL,
)  # fmt: skip
def check(arguments: argparse.Namespace) -> int:
    """1 where something is suspicious."""
    from .check import suspicious, usual

    robot = model(arguments)
    faults, besides = (list(map(printable, look(robot))) for look in (suspicious, usual))
    print(f"{robot.name}: {_counted(len(faults), 'suspicious thing') if faults else 'nothing suspicious'}")
    print("".join(f"  {text}\n" for text in (*faults, *(f"note: {text}" for text in besides))), end="")
    return 1 if faults else 0


@command(
    "convert", "a model in another format",
    "Writes a model in the format that the ending of FILE tells: .json (sarrus' own, which holds everything), .urdf (with its loops "
    "in a .yaml beside it), .xml (MJCF), .sdf, .usda. What a format cannot say is an error, if it changes the motion, else a warning.",
    "sarrus convert robot.xml robot.sdf",
    *MODEL,
    argument("output", metavar="FILE", type=file_name(tuple(WRITERS)), help=f"what to write: {', '.join(WRITERS)}"),
    argument("--lossy", action="store_true", help="leave out what the format cannot say, with a warning, even if the motion changes"),
)  # fmt: skip
def converted(arguments: argparse.Namespace) -> int:
    robot = model(arguments)
    path: Path = arguments.output
    _check_folders(path)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ModelWarning)
        try:
            written = save(robot, path, lossy=arguments.lossy)
        except ModelError as error:  # which tells of the argument of Python's function
            raise ModelError(str(error).replace("lossy=True", "--lossy")) from None
    for text in (*robot.warnings, *(str(warning.message) for warning in said)):
        print(f"sarrus: {printable(text)}", file=sys.stderr)
    print("wrote " + " and ".join(map(str, written)))
    return 0


# ---- generate ----------------------------------------------------------------------------------------------------------


@command(
    "generate", "functions of a model as C code",
    "Writes functions of a model, loops included, as C99 for the computer that runs it: a header and a source in straight lines, without heap, "
    "library, recursion or state. Functions are inverse_dynamics, forward_dynamics, mass_matrix, pose:FRAME, positions:JOINT,JOINT, "
    "transmission:JOINT,JOINT>JOINT,JOINT and others: help(sarrus.generation.generate) lists them.",
    "sarrus generate four_bar --functions inverse_dynamics positions:motor -o generated",
    *MODEL,
    argument("--functions", nargs="+", required=True, metavar="FUNCTION", help="which ones"),
    argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="the folder that they go to"),
    argument("--name", metavar="NAME", help="of the files and before every function's name (default: the model's)"),
    argument("--scalar", choices=("double", "float"), default="double", help="what they compute in"),
    argument("--targets", nargs="+", default=(), choices=("casadi", "check", "cuda", "fmu", "jax"), help="for which others besides"),
)  # fmt: skip
def generated(arguments: argparse.Namespace) -> int:
    from ..generation import generate

    made = generate(
        model(arguments), arguments.functions, arguments.output, name=arguments.name, scalar=arguments.scalar,
        targets=arguments.targets,
    )  # fmt: skip
    for f in made.functions.values():
        print(f"{f.name}: {_counted(f.statements, 'operation', 'operations')}")
    print(f"wrote {', '.join(map(str, (made.header, made.source, *made.others)))}")
    return 0


# ---- simulate --------------------------------------------------------------------------------------------------------


@command(
    "simulate", "let a model move: tables, figures, films",
    "Lets a model move under gravity and what its joints hold (springs, friction), and writes what it did. It starts at its home, "
    "or at zero, at rest. Given positions are kept when its loops are closed, given velocities when the constraints are satisfied; "
    "all others follow, moving as little as they can. Ctrl-C ends it early: files hold what was computed, as they do when the "
    "motion diverges.",
    "sarrus simulate four_bar --time 2 --velocity motor=6 --plot run.png --show-what energy --csv run.csv",
    *MODEL,
    argument("--time", type=number(zero=True), default=1.0, metavar="S", help="how long [s]"),
    argument("--dt", type=number(), default=1e-3, metavar="S", help="step [s]; of dopri5 the first one, and the spacing of samples"),
    argument("--method", choices=("auto", *METHODS), default="auto", help="of integration"),
    argument("--rtol", type=number(), default=1e-6, metavar="X", help="relative tolerance of dopri5"),
    argument("--atol", type=number(), default=1e-9, metavar="X", help="absolute tolerance of dopri5"),
    argument("--stabilisation", choices=STABILISATIONS, default="projection", help="of loops against drift"),
    of_joints("--position", "where joints start [rad, m, quaternions x,y,z,w]"),
    of_joints("--velocity", "how fast joints start [rad/s, m/s]"),
    argument("--effort", **BY_LAW, help=f"what motors do [N m, N]: {LAW}"),
    argument("--motion", **BY_LAW, help=f"how joints are made to move, whatever that takes [rad, m]: {LAW}"),
    argument("--plot", type=file_name(FIGURES), metavar="FILE", help="draw it: .png, .svg or .pdf"),
    argument("--show-what", nargs="+", metavar="WHAT", help=f"what --plot draws: {', '.join(QUANTITIES)}, names of joints and frames (default: q)"),
    argument("--csv", type=file_name((".csv",)), metavar="FILE", help="write a table, a row a sample"),
    argument("--save", type=file_name((".npz",)), metavar="FILE", help="write all of it, for sarrus.Trajectory.load: .npz"),
    argument("--animate", type=file_name(FILMS), metavar="FILE", help="write a film: .gif, .html, or .mp4 (needs ffmpeg)"),
)  # fmt: skip
def simulated(arguments: argparse.Namespace) -> int:
    robot = _moved(model(arguments), arguments.motion)
    if arguments.show_what and not arguments.plot:
        raise UsageError("--show-what says what --plot FILE draws; there is no --plot")
    q, v = start(robot, arguments.position, arguments.velocity)
    _foresee(robot, q, v, arguments)
    motors, code = [PrescribedEffort(name, law) for name, law in arguments.effort.items()], 0
    try:
        how = {name: getattr(arguments, name) for name in ("method", "dt", "rtol", "atol", "stabilisation")}
        run = simulate(robot, q, v, arguments.time, motors, **how)
    except IntegrationError as error:
        run, code = error.trajectory, 1
        # the rest of the message is about Python
        print(f"sarrus: {str(error).partition('; .trajectory of this error')[0]}", file=sys.stderr)
    print(f"{robot.name}: {run.t[-1] - run.t[0]:g} s by {run.statistics['method']}")
    with np.errstate(all="ignore"):  # a run that diverged may end in any numbers
        _print_facts(_summary(run, bool(motors or arguments.motion)))
        if not code and not np.isfinite(run.energy).all():
            print("sarrus: the motion is too fast for its energy to be computed", file=sys.stderr)
            code = 1
        _write(run, arguments)
    return 130 if run.status == "interrupted" else code


def _moved(robot: Mechanism, motions: Mapping[str, Law]) -> Mechanism:
    """The mechanism with joints that move by laws."""
    b = robot.to_builder()
    for name, law in motions.items():
        b.add_prescribed_motion(f"motion of {name}", name, law)
    return b.build() if motions else robot


def _foresee(robot: Mechanism, q: Array, v: Array, arguments: argparse.Namespace) -> None:
    """What could not be written in the end is found out before a long simulation."""
    _check_folders(arguments.plot, arguments.csv, arguments.save, arguments.animate)
    if arguments.animate:
        _without_windows()
        check_film(arguments.animate)
    if arguments.plot:
        at_start = Trajectory(robot, [0.0], [q], [v], efforts=np.zeros((1, robot.nv)))
        _draw(at_start, arguments.show_what or "q", None)


def _check_folders(*paths: Path | None) -> None:
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise FileNotFoundError(2, os.strerror(2), str(path))


def _summary(run: Trajectory, driven: bool) -> dict[str, str]:
    seconds = f"{run.statistics['seconds']:.3g} s"
    facts = {"status": run.status, "samples": f"{len(run)}", "wall time": f"{seconds}, {_per_step(run)}"}
    change = f"{np.abs(run.energy - run.energy[0]).max():.3g} J"
    if overflown := int(np.count_nonzero(~np.isfinite(run.energy))):
        change = f"unknown; the energy of {_counted(overflown, 'sample')} is beyond what numbers hold"
    facts["energy drift" if not driven and _keeps_energy(run.mechanism) else "energy change"] = change
    if run.mechanism.nc:
        facts["loop error"] = f"{float(run.loop_error.max()):.3g} rad or m"
    return facts


def _per_step(run: Trajectory) -> str:
    steps = int(run.statistics["steps"])
    return _counted(steps, "step") + (f" of {run.statistics['seconds'] / steps * 1e6:.3g} µs" if steps else "")


def _keeps_energy(robot: Mechanism) -> bool:
    """Whether nothing in the mechanism itself brakes or drives it."""
    description = robot.description
    braked = any(np.any(getattr(spec.joint, x)) for spec in description.joints for x in ("damping", "friction"))
    driven = any(any(spec.laws) for spec in description.joints)
    pushed = any(getattr(c, "law", None) or np.any(getattr(c, "value", 0.0)) for c in description.constraints)
    return not (braked or driven or pushed or any(spring.damping for spring in description.springs))


def _write(run: Trajectory, arguments: argparse.Namespace) -> None:
    """The files that are asked for, tables before what takes long."""
    draw = partial(_draw, run, arguments.show_what or "q")
    writers: list[tuple[str, Callable[[Path], object]]] = [("csv", run.save), ("save", run.save), ("plot", draw)]
    for option, write in (*writers, ("animate", run.animate)):
        if path := getattr(arguments, option):
            write(path)
            print(f"  {'wrote':<20}{path}", flush=True)


# ---- view ------------------------------------------------------------------------------------------------------------


@command(
    "view", "a model in the browser",
    "Opens a model in the browser, with sliders that keep its loops closed, and serves it until Ctrl-C, after which the exit code "
    "is 0. Needs viser: pip install 'viser<1.2'.",
    "sarrus view delta --port 8090 --no-browser",
    *MODEL,
    argument("--run", dest="run_file", type=file_name((".npz", ".csv")), metavar="FILE", help="play back what simulate wrote"),
    of_joints("--position", "where joints are at first [rad, m, quaternions x,y,z,w]"),
    argument("--port", type=port_number, default=8080, metavar="N", help="the next free one from here"),
    argument("--host", default="127.0.0.1", metavar="ADDRESS", help="0.0.0.0 lets other machines look"),
    argument("--no-browser", action="store_true", help="print the address and open nothing"),
)  # fmt: skip
def viewed(arguments: argparse.Namespace) -> int:
    """Until Ctrl-C, which is how it is meant to end."""
    robot = model(arguments)
    run = None if arguments.run_file is None else Trajectory.load(arguments.run_file, mechanism=robot)
    q = start(robot, arguments.position, {})[0] if arguments.position else None
    how = {"port": arguments.port, "host": arguments.host, "open_browser": not arguments.no_browser}
    with contextlib.suppress(KeyboardInterrupt), view(robot, q, trajectory=run, block=False, **how) as shown:
        print(f"{robot.name} at {shown.url}  (Ctrl-C ends it)", flush=True)
        shown.wait()
    return 0
