"""Closed chains in every engine that is installed, answers first: ``python -m benchmarks --engines``.

All engines get the same numbers: bodies, joints and shapes of a mechanism's description, and PD laws of its motors (implicit in the step, where the engine can).
What is compared is read from where their bodies are, by the same few lines for all of them.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import numpy as np

import sarrus
from sarrus import _core
from sarrus.description.contacts import scene, touching_pairs
from sarrus.shapes import Plane, Sphere

from . import kamino

sys.path.append(
    str(Path(__file__).parents[1] / "examples" / "contact")
)  # the boxes, the walker and the gripper are the demonstrations'

ROUNDS = 3
TORN = 0.1  # [m]: no loop of a problem is that large where it is closed
RAISED = 0.02  # the cube [m], gently enough for soft contacts
SAMPLED = 0.02  # every so often [s], which all steps divide


@dataclass(frozen=True)
class Problem:
    """A mechanism, where it starts, what its motors hold, and which steps are tried; `solved`: as sarrus solves it, where that is another one."""

    name: str
    robot: sarrus.Mechanism
    q: np.ndarray
    v: np.ndarray
    duration: float
    steps: tuple[float, ...]
    gains: dict[str, tuple[float, float, float]] = field(default_factory=dict)  # kp, kd, target
    solved: sarrus.Mechanism | None = None
    watched: tuple[str, ...] = ()  # bodies that are not to move at last, all by default; beside another, or the world
    beside: str = ""

    @property
    def touching(self) -> bool:
        return bool(self.robot.description.shapes)


@dataclass(frozen=True)
class Motion:
    """Poses (samples, bodies, 4, 4) of all bodies, velocities (bodies, 6) of their frames at the end, angular first, in the world; CPU time [s]."""

    poses: np.ndarray
    twists: np.ndarray
    seconds: float


Engine = Callable[
    [Problem, float, np.ndarray], Motion
]  # a problem, a step, times of samples (the first is the start's)


# ---- problems ------------------------------------------------------------------------------------------------------------------------


def problems() -> Iterable[Problem]:
    """Those of which there are numbers: DR Legs and DR TestMech where they lie beside the project."""
    import dropped
    import gripper
    import walker

    ladder = sarrus.mechanisms.four_bar_ladder
    for n in (2, 40):
        v = np.array([1.0 if name.startswith("pivot") else -1.0 for name in ladder(n).joints])
        yield Problem(f"IFToMM A02, {n} four-bars", ladder(n), np.zeros(ladder(n).nq), v, 1.0, (5e-3, 1e-3, 2e-4))
    bricard = sarrus.mechanisms.bricard()
    yield Problem("IFToMM A04, Bricard", bricard, bricard.assemble(), np.zeros(5), 1.0, (5e-3, 1e-3, 2e-4))
    if (numbers := kamino.numbers()) is not None:
        testmech = kamino.testmech(numbers)
        yield Problem(
            "DR TestMech falls", testmech, testmech.assemble(), np.zeros(testmech.nv), 1.0, (5e-3, 1e-3, 2e-4)
        )
    for robot, turn, height in (
        (dropped.four_bar(), (0.3, 0.4, 0.1), 0.15),
        (dropped.nunchaku(), (0.1, 0.3, 0.2), 0.4),
    ):
        q = dropped.started(robot, turn, height)
        yield Problem(f"{robot.name}, dropped", robot, q, np.zeros(robot.nv), 3.0, (4e-3, 1e-3))
    yield _held(gripper.workplace())
    standing = [
        (
            "walker of twelve motors",
            undamped_loops(walker.walker()),
            None,
            (15.0, 0.6, 0.0),
            ("left_foot", "right_foot"),
        )
    ]
    if numbers is not None:
        standing.append(("DR Legs", *kamino.legs(numbers), (10.0, 2.0, 0.0), ("foot_l", "foot_r")))
    for name, robot, solved, law, feet in standing:
        gains = dict.fromkeys(robot.actuated, law)
        yield Problem(
            f"{name}, stands",
            robot,
            (solved or robot).assemble(),
            np.zeros(robot.nv),
            2.0,
            (4e-3, 1e-3),
            gains,
            solved,
            feet,
        )


def undamped_loops(robot: sarrus.Mechanism) -> sarrus.Mechanism:
    """Without the damping of joints that close loops, which other engines' joints do not have."""
    b = robot.to_builder()
    for name in robot.loop_joints:
        b.set_joint(name, sarrus.Revolute("y"))
    return b.build()


def _held(robot: sarrus.Mechanism) -> Problem:
    """A gripper that has closed around its cube, and is to hold it a little higher."""
    close = sarrus.control.PID("right_driver", proportional=2.0, derivative=0.02, target=0.8)
    lift = sarrus.control.PID("lift", proportional=4000.0, derivative=400.0, target=robot.assemble()[0])
    closed = sarrus.simulate(
        robot, robot.assemble(), np.zeros(robot.nv), 1.5, [close, lift], method="contact", dt=1e-3, limits="stop"
    )
    gains = {
        "right_driver": (2.0, 0.02, 0.8),
        "lift": (400.0, 50.0, float(closed.q[-1, 0]) + 9.81 * robot.mass / 400.0 + RAISED),
    }
    return Problem(
        "gripper lifts a cube",
        robot,
        closed.q[-1],
        np.zeros(robot.nv),
        4.0,
        (4e-3, 2e-3, 1e-3),
        gains,
        None,
        ("cube",),
        "right_finger",
    )


# ---- what is read from all of them ---------------------------------------------------------------------------------------------------


def energy(robot: sarrus.Mechanism, poses: np.ndarray, twists: np.ndarray) -> float:
    """Of bodies (n, 4, 4), (n, 6) in gravity, without springs [J]."""
    total = 0.0
    for body, X, V in zip(robot.description.bodies, poses, twists, strict=True):
        inertia, R = body.inertia, X[:3, :3]
        arm = R @ inertia.com
        about = (
            R
            @ (inertia.about_origin - inertia.mass * (arm @ arm * np.eye(3) - np.outer(inertia.com, inertia.com)))
            @ R.T
        )
        fast = V[3:] + np.cross(V[:3], arm)
        total += 0.5 * (inertia.mass * fast @ fast + V[:3] @ about @ V[:3])
        total -= inertia.mass * (robot.gravity @ (X[:3, 3] + arm))
    return float(total)


def gaps(robot: sarrus.Mechanism, poses: np.ndarray) -> float:
    """How far the two halves of joints that close loops are apart, the farthest [m]."""
    place = {body.name: k for k, body in enumerate(robot.description.bodies)}
    farthest = 0.0
    for joint in robot.description.joints:
        if joint.name not in robot.loop_joints:
            continue
        ends = []
        for body, at in ((joint.parent, joint.at_parent), (joint.child, joint.at_child)):
            X = poses[:, place[body]] if body != "ground" else np.broadcast_to(np.eye(4), poses[:, 0].shape)
            ends.append(X[:, :3, :3] @ at.translation + X[:, :3, 3])
        farthest = max(farthest, float(np.abs(ends[0] - ends[1]).max()))
    return farthest


def sunk(robot: sarrus.Mechanism, poses: np.ndarray) -> float:
    """How deep shapes are in each other, the deepest [m]."""
    d = robot.description
    terms, bodies = scene(d, [spec.shape for spec in d.shapes], touching_pairs(d))
    place = {body.name: k for k, body in enumerate(d.bodies)}
    at = np.stack(
        [
            poses[:, place[name]] if name != "ground" else np.broadcast_to(np.eye(4), poses[:, 0].shape)
            for name in bodies
        ],
        axis=1,
    )
    distances = _core.Scene(*terms).touching(np.ascontiguousarray(at), 0.0)[-1]
    return float(max(-distances.min(initial=0.0), 0.0))


# ---- sarrus --------------------------------------------------------------------------------------------------------------------------


def in_sarrus(problem: Problem, dt: float, times: np.ndarray, **how: object) -> Motion:
    """Runge and Kutta's steps with projections where nothing touches; else steps with cones."""
    robot = problem.solved or problem.robot
    motors = [
        sarrus.control.PID(joint, proportional=kp, derivative=kd, target=target)
        for joint, (kp, kd, target) in problem.gains.items()
    ]
    if not how:
        how = {"method": "contact" if problem.touching else "rk4", "dt": dt}
    start = process_time()
    run = sarrus.simulate(robot, problem.q, problem.v, problem.duration, motors, times=times, limits="stop", **how)
    seconds = process_time() - start
    poses = np.stack([run.frame(body) for body in robot.bodies], axis=1)
    q, v = run.q[-1], run.v[-1]
    twists = np.array([robot.velocity(q, v, body, expressed_in="world_aligned") for body in robot.bodies])
    return Motion(poses, twists, seconds)


# ---- what a step costs ---------------------------------------------------------------------------------------------------------------


def steps(tell: Callable[[str], None], seconds: float) -> str:
    """CPU time a step of what stands, alone and in many runs, in turns with MuJoCo, as a table."""
    from .engine_peers import mujoco_model
    from .measure import interleave, ratio

    lines = [
        "| what stands | step | sarrus, one run | many runs | MuJoCo | sarrus / MuJoCo: one | many |",
        "|---|---|---|---|---|---|---|",
    ]
    for problem, dt, runs, passed in standing():
        tell(f"a step: {problem.name}")
        robot = problem.solved or problem.robot
        motors = [
            sarrus.control.PID(name, proportional=kp, derivative=kd, target=q)
            for name, (kp, kd, q) in problem.gains.items()
        ]
        q, v = (np.broadcast_to(x, (runs, len(x))) for x in (problem.q, problem.v))
        how = {"dt": dt, "method": "contact", "limits": "ignore"}

        def alone(problem=problem, robot=robot, motors=motors, how=how, dt=dt) -> float:
            start = process_time()
            sarrus.simulate(robot, problem.q, problem.v, 500 * dt, motors, times=[0.0, 500 * dt], **how)
            return (process_time() - start) / 500

        def many(robot=robot, motors=motors, how=how, q=q, v=v, runs=runs, passed=passed, dt=dt) -> float:
            start = process_time()
            sarrus.simulate_many(robot, q, v, passed * dt, motors, every=passed, **how)
            return (process_time() - start) / (passed * runs)

        sides = {"one": alone, "many": many}
        if importlib.util.find_spec("mujoco"):
            import mujoco

            model, data = mujoco_model(problem, dt, None)

            def theirs(model=model, data=data) -> float:
                start = process_time()
                mujoco.mj_step(model, data, 500)
                return (process_time() - start) / 500

            sides["MuJoCo"] = theirs
        times = interleave(sides, seconds)
        told = {name: f"{1e6 * np.median(t):.3g} µs" for name, t in times.items()}
        ratios = [
            "{:.2f} ({:.2f} to {:.2f})".format(*ratio(times[x], times["MuJoCo"])) if "MuJoCo" in times else ""
            for x in ("one", "many")
        ]
        lines.append(
            f"| {problem.name} | {1e3 * dt:g} ms | {told['one']} | {told['many']}, {runs} | {told.get('MuJoCo', '')} | {' | '.join(ratios)} |"
        )
    return "\n".join([*lines, ""])


def standing() -> Iterable[tuple[Problem, float, int, int]]:
    """Problems, steps, how many runs at once, and how many steps each of them is timed for."""
    for problem in problems():
        if problem.name.endswith("stands"):
            yield problem, problem.steps[0], 64, 50
    robot = sarrus.mechanisms.quadruped()
    b = robot.to_builder()
    for foot in ("LF", "RF", "LH", "RH"):
        at = np.linalg.inv(robot.pose(robot.assemble(), f"{foot}_shank")) @ robot.pose(robot.assemble(), f"{foot}_foot")
        b.add_shape(f"{foot}_shank", Sphere(0.02), at[:3, 3] + [0.0, 0.0, 0.0], friction=0.7)
    b.add_shape("ground", Plane(), (0, 0, -0.02), friction=0.7)
    robot = b.build()
    q = robot.assemble()
    gains = {name: (400.0, 10.0, float(robot.joint_states(q).q[name][0])) for name in robot.actuated}
    yield Problem("quadruped on four feet", robot, q, np.zeros(robot.nv), 1.0, (1e-3,), gains), 1e-3, 4096, 5


# ---- the table -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One engine with one step on one problem; NaN where there is nothing to say."""

    problem: str
    engine: str
    dt: float
    seconds: float  # of CPU a simulated one
    error: float  # of the farthest body at the end [m], where nothing touches
    energy: float  # its change where nothing touches, else what is left at the end [J]
    gap: float
    depth: float
    moving: float  # the fastest body at the end [m/s]
    creep: float  # of the farthest body in the last quarter [m]


def engines() -> dict[str, Engine]:
    """Those that are installed, and how they are set."""
    from . import engine_peers

    return {"sarrus": in_sarrus, **engine_peers.installed()}


def rows(tell: Callable[[str], None], only: str = "") -> tuple[list[Row], list[str]]:
    """All of the table, and who did not answer, and why."""
    found: list[Row] = []
    silent: dict[str, None] = {}
    for problem in problems():
        if only and only not in problem.name:
            continue
        times = np.arange(round(problem.duration / SAMPLED) + 1) * SAMPLED
        reference = None if problem.touching else in_sarrus(problem, problem.steps[-1] / 4.0, times)
        for dt in problem.steps:
            motions: dict[str, list[Motion]] = {}
            for _ in range(ROUNDS):  # in turns
                for name, engine in engines().items():
                    tell(f"{problem.name}, {1e3 * dt:g} ms, {name}")
                    try:
                        motion = engine(problem, dt, times)
                        if not np.isfinite(motion.poses).all() or gaps(problem.robot, motion.poses) > TORN:
                            raise UnstableError
                        motions.setdefault(name, []).append(motion)
                    except UnsupportedError as reason:
                        silent[f"{problem.name}, {name}: it has no {reason}"] = None
                    except UnstableError:
                        silent[f"{problem.name}, {name}, {1e3 * dt:g} ms: it goes unstable"] = None
                    except sarrus.IntegrationError as reason:
                        silent[f"{problem.name}, {name}, {1e3 * dt:g} ms: {str(reason).partition(';')[0]}"] = None
            found += [_row(problem, name, dt, all_of, reference) for name, all_of in motions.items()]
    return found, list(silent)


class UnstableError(Exception):
    """What it answers is no motion of the mechanism."""


class UnsupportedError(Exception):
    """The engine has no word for something of the problem."""


def _row(problem: Problem, name: str, dt: float, motions: list[Motion], reference: Motion | None) -> Row:
    last, robot = motions[-1], problem.robot
    seconds = float(np.median([motion.seconds for motion in motions])) / problem.duration
    left = energy(robot, last.poses[-1], last.twists)
    late = last.poses[3 * len(last.poses) // 4 :]
    if problem.beside:
        late = np.linalg.inv(late[:, [robot.bodies.index(problem.beside)]]) @ late
    late = late[:, [robot.bodies.index(body) for body in problem.watched or robot.bodies]][..., :3, 3]
    return Row(
        problem.name, name, dt, seconds,
        error=np.nan if reference is None else float(np.linalg.norm(last.poses[-1, :, :3, 3] - reference.poses[-1, :, :3, 3], axis=-1).max()),
        energy=left if reference is None else left - energy(robot, reference.poses[-1], reference.twists),
        gap=gaps(robot, last.poses[1:]) if robot.loop_joints else np.nan,
        depth=sunk(robot, last.poses[1:]) if problem.touching else np.nan,
        moving=float(np.abs(last.twists[:, 3:]).max()) if problem.touching else np.nan,
        creep=float(np.abs(late - late[0]).max()) if problem.touching else np.nan,
    )  # fmt: skip


def markdown(found: list[Row], silent: list[str]) -> str:
    """The tables: where nothing touches, and where something does."""
    smooth = [row for row in found if np.isfinite(row.error)]
    rough = [row for row in found if not np.isfinite(row.error)]

    def number(x: float, unit: str) -> str:
        said = "0" if x == 0.0 else f"{x:.1e}" if x < 0.01 or x >= 1e4 else f"{x:.3g}"
        return f"{said} {unit}" if np.isfinite(x) else ""

    lines = [
        "| problem | engine | step | CPU, a simulated second | error at the end | energy off | loops open |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.problem} | {r.engine} | {1e3 * r.dt:g} ms | {1e3 * r.seconds:.3g} ms | {number(r.error, 'm')} | {number(abs(r.energy), 'J')} | {number(r.gap, 'm')} |"
        for r in smooth
    ]
    lines += [
        "",
        "| problem | engine | step | CPU, a simulated second | energy at the end | loops open | sunk in | moves at the end | creep |",
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    lines += [
        f"| {r.problem} | {r.engine} | {1e3 * r.dt:g} ms | {1e3 * r.seconds:.3g} ms | {r.energy:.4f} J | {number(r.gap, 'm')} | "
        f"{number(r.depth, 'm')} | {number(r.moving, 'm/s')} | {number(r.creep, 'm')} |"
        for r in rough
    ]
    return "\n".join([*lines, "", *(f"- {text}" for text in silent), ""])


def plot(found: list[Row], path: Path) -> None:
    """Error against time where nothing touches; how far loops are open against time where something does."""
    from matplotlib.figure import Figure

    panels = [
        *((name, "error", "error at the end [m]") for name in dict.fromkeys(r.problem for r in found if np.isfinite(r.error))),
        *((name, "gap", "loops open [m]") for name in dict.fromkeys(r.problem for r in found if not np.isfinite(r.error) and np.isfinite(r.gap))),
    ]  # fmt: skip
    columns = 3
    sheet = Figure(figsize=(4.2 * columns, 3.4 * -(-len(panels) // columns)), layout="constrained", dpi=110)
    axes = sheet.subplots(-(-len(panels) // columns), columns, squeeze=False).ravel()
    for ax, (name, what, label) in zip(axes, panels, strict=False):
        for engine in dict.fromkeys(r.engine for r in found):
            points = [r for r in found if r.problem == name and r.engine == engine]
            y = [max(getattr(r, what), 1e-17) for r in points]
            ax.loglog([1e3 * r.seconds for r in points], y, "o-", label=engine)
        ax.set_title(name, loc="left", fontsize=10)
        ax.set_xlabel("CPU, a simulated second [ms]")
        ax.set_ylabel(label)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    axes[0].legend(fontsize=8)
    sheet.savefig(path)
