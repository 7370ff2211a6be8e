"""Closed chains in every installed engine, accuracy before speed: ``python -m benchmarks --engines``.

All engines get the same parameters: bodies, joints and shapes of a mechanism's description, and PD controllers of its motors (integrated implicitly,
if the engine supports this). Errors are computed from the poses of the bodies, by the same code for all engines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import process_time

import numpy as np

import sarrus
from sarrus import _core
from sarrus.description.contacts import scene, touching_pairs
from sarrus.shapes import Plane, Sphere

from . import kamino
from .tables import Run, installed

sys.path.append(
    str(Path(__file__).parents[1] / "examples" / "contact")
)  # the boxes, the walker and the gripper are those of the demonstrations

TORN = 0.1  # [m] loops with larger errors are considered torn
RAISED = 0.02  # height by which the cube is lifted [m], slowly enough for soft contacts
SAMPLED = 0.02  # sampling interval, a multiple of all steps [s]


@dataclass(frozen=True)
class Problem:
    """Benchmark problem: a mechanism, its initial state, the targets of its motors, and the time steps to measure.

    `solved` is another model for sarrus, or None.
    """

    name: str
    robot: sarrus.Mechanism
    q: np.ndarray
    v: np.ndarray
    duration: float
    steps: tuple[float, ...]
    gains: dict[str, tuple[float, float, float]] = field(default_factory=dict)  # motor -> (kp, kd, target)
    solved: sarrus.Mechanism | None = None
    # bodies that should be at rest at the end (default: all), relative to another body or to the world
    watched: tuple[str, ...] = ()
    beside: str = ""

    @property
    def touching(self) -> bool:
        return bool(self.robot.description.shapes)


@dataclass(frozen=True)
class Motion:
    """Poses (samples, bodies, 4, 4) of all bodies, velocities (bodies, 6) [angular; linear] of their frames at the end, and CPU time [s].

    Poses and velocities are expressed in world axes.
    """

    poses: np.ndarray
    twists: np.ndarray
    seconds: float


Engine = Callable[
    [Problem, float, np.ndarray], Motion
]  # (problem, time step, times of samples; the first one is the initial time)


# ---- problems ------------------------------------------------------------------------------------------------------------------------


def problems() -> Iterable[Problem]:
    """Return the problems. DR Legs and DR TestMech are included only if their files are in a folder next to the project."""
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
    """Return a mechanism without damping of loop joints, which other engines lack."""
    b = robot.to_builder()
    for name in robot.loop_joints:
        b.set_joint(name, sarrus.Revolute("y"))
    return b.build()


def _held(robot: sarrus.Mechanism) -> Problem:
    """Return a gripper that has closed around its cube and lifts it."""
    close = sarrus.control.PID("right_driver", proportional=2.0, derivative=0.02, target=0.8)
    lift = sarrus.control.PID("lift", proportional=4000.0, derivative=400.0, target=robot.assemble()[0])
    closed = sarrus.simulate(
        robot, robot.assemble(), np.zeros(robot.nv), 1.5, [close, lift], method="contact", dt=1e-3, limits="enforce"
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


# ---- results of all engines ---------------------------------------------------------------------------------------------------


def energy(robot: sarrus.Mechanism, poses: np.ndarray, twists: np.ndarray) -> float:
    """Return the kinetic and gravitational energy [J] of bodies with poses (n, 4, 4) and velocities (n, 6), without springs."""
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
    """Return the largest distance [m] between the two frames of a loop joint."""
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
    """Return the largest penetration depth of collision shapes [m]."""
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
    """Simulate with sarrus: by Runge-Kutta steps with projection, or by time stepping with friction cones if there is contact."""
    robot = problem.solved or problem.robot
    motors = [
        sarrus.control.PID(joint, proportional=kp, derivative=kd, target=target)
        for joint, (kp, kd, target) in problem.gains.items()
    ]
    if not how:
        how = {"method": "contact" if problem.touching else "rk4", "dt": dt}
    start = process_time()
    run = sarrus.simulate(robot, problem.q, problem.v, problem.duration, motors, times=times, limits="enforce", **how)
    seconds = process_time() - start
    poses = np.stack([run.frame(body) for body in robot.bodies], axis=1)
    q, v = run.q[-1], run.v[-1]
    twists = np.array([robot.velocity(q, v, body, expressed_in="world_aligned") for body in robot.bodies])
    return Motion(poses, twists, seconds)


# ---- cost of a step ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """CPU time of a step of a standing mechanism [s], and its ratio to MuJoCo's time: median and quartiles."""

    problem: str
    dt: float
    runs: int
    one: float
    many: float
    mujoco: float | None
    one_ratio: tuple[float, float, float] | None
    many_ratio: tuple[float, float, float] | None


def costs(run: Run) -> Iterator[Cost]:
    """Measure the CPU time per step of standing mechanisms, in single runs and in many parallel runs; calls alternate with MuJoCo."""
    from .engine_peers import mujoco_model
    from .measure import interleave, ratio

    for problem, dt, runs, passed in standing():
        run.tell(f"a step: {problem.name}")
        runs, passed, count = run.of((runs, passed, 500), (runs, passed, 100), (2, 2, 2))
        robot = problem.solved or problem.robot
        motors = [
            sarrus.control.PID(name, proportional=kp, derivative=kd, target=q)
            for name, (kp, kd, q) in problem.gains.items()
        ]
        q, v = (np.broadcast_to(x, (runs, len(x))) for x in (problem.q, problem.v))
        how = {"dt": dt, "method": "contact", "limits": "ignore"}

        def alone(problem=problem, robot=robot, motors=motors, how=how, dt=dt, count=count) -> float:
            start = process_time()
            sarrus.simulate(robot, problem.q, problem.v, count * dt, motors, times=[0.0, count * dt], **how)
            return (process_time() - start) / count

        def many(robot=robot, motors=motors, how=how, q=q, v=v, runs=runs, passed=passed, dt=dt) -> float:
            start = process_time()
            sarrus.simulate_many(robot, q, v, passed * dt, motors, every=passed, **how)
            return (process_time() - start) / (passed * runs)

        sides = {"one": alone, "many": many}
        if installed("mujoco"):
            import mujoco

            model, data = mujoco_model(problem, dt, None)

            def theirs(model=model, data=data, count=count) -> float:
                start = process_time()
                mujoco.mj_step(model, data, count)
                return (process_time() - start) / count

            sides["mujoco"] = theirs
        times = interleave(sides, run.of(20.0, 0.3, 0.0))
        medians = [float(np.median(times[name])) if name in times else None for name in ("one", "many", "mujoco")]
        ratios = [ratio(times[x], times["mujoco"]) if "mujoco" in times else None for x in ("one", "many")]
        yield Cost(problem.name, dt, runs, *medians, *ratios)


def standing() -> Iterable[tuple[Problem, float, int, int]]:
    """Return the problems of standing mechanisms, with time steps, numbers of parallel runs, and numbers of timed steps."""
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
    """Result of one engine with one step on one problem; NaN if not applicable."""

    problem: str
    engine: str
    dt: float
    seconds: float = np.nan  # CPU seconds per simulated second
    error: float = np.nan  # largest position error of a body at the end [m], in problems without contact
    energy: float = np.nan  # energy at the end [J]; in problems without contact, its difference from the reference
    gap: float = np.nan
    depth: float = np.nan
    moving: float = np.nan  # largest velocity component of a body at the end [m/s], in problems with contact
    creep: float = np.nan  # largest displacement component of a watched body in the last quarter of the simulation [m]
    failure: str = ""  # reason for missing values


def engines() -> dict[str, Engine]:
    """Return installed engines with their settings."""
    from . import engine_peers

    return {"sarrus": in_sarrus, **engine_peers.installed()}


def rows(run: Run) -> Iterator[Row | Cost]:
    """Measure all engines on all problems, then the cost of a step of standing mechanisms."""
    for problem in problems():
        if run.only not in problem.name:
            continue
        rounds, duration, dts = run.of(
            (3, problem.duration, problem.steps),
            (1, problem.duration, problem.steps[:2]),
            (1, 2 * SAMPLED, problem.steps[:1]),
        )
        problem = replace(problem, duration=duration)
        times = np.arange(round(duration / SAMPLED) + 1) * SAMPLED
        reference = None if problem.touching else in_sarrus(problem, dts[-1] / 4.0, times)
        for dt in dts:
            motions: dict[str, list[Motion]] = {}
            failures: dict[str, str] = {}
            for _ in range(rounds):  # engines alternate, so that changes of the machine's speed affect all of them
                for name, engine in engines().items():
                    run.tell(f"{problem.name}, {1e3 * dt:g} ms, {name}")
                    try:
                        motion = engine(problem, dt, times)
                        if not np.isfinite(motion.poses).all() or gaps(problem.robot, motion.poses) > TORN:
                            raise UnstableError
                        motions.setdefault(name, []).append(motion)
                    except UnsupportedError as reason:
                        failures[name] = f"it has no {reason}"
                    except UnstableError:
                        failures[name] = "it goes unstable"
                    except sarrus.IntegrationError as reason:
                        failures[name] = str(reason).partition(";")[0]
            yield from (_row(problem, name, dt, results, reference) for name, results in motions.items())
            yield from (
                Row(problem.name, name, dt, failure=why) for name, why in failures.items() if name not in motions
            )
    yield from costs(run)


class UnstableError(Exception):
    """Error of an engine whose result diverges or tears the mechanism's loops."""


class UnsupportedError(Exception):
    """Error of an engine that cannot represent a part of the problem."""


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


def markdown(rows: Sequence[Row | Cost]) -> str:
    """Return the tables: without contact, with contact, and the cost of a step."""
    tried = [row for row in rows if isinstance(row, Row)]
    failures = dict.fromkeys(f"- {r.problem}, {r.engine}, {1e3 * r.dt:g} ms: {r.failure}" for r in tried if r.failure)
    answers = [row for row in tried if not row.failure]
    costs = [row for row in rows if isinstance(row, Cost)]
    return "\n".join([*smooth(answers), "", *touching(answers), "", *failures, "", *of_a_step(costs), ""])


def smooth(rows: Sequence[Row]) -> list[str]:
    """Return the table of problems without contact."""
    return [
        "| problem | engine | step | CPU, a simulated second | error at the end | energy off | loops open |",
        "|---|---|---|---|---|---|---|",
        *(
            f"{_timed(r)} {_number(r.error, 'm')} | {_number(abs(r.energy), 'J')} | {_number(r.gap, 'm')} |"
            for r in rows
            if np.isfinite(r.error)
        ),
    ]


def touching(rows: Sequence[Row]) -> list[str]:
    """Return the table of problems with contact."""
    return [
        "| problem | engine | step | CPU, a simulated second | energy at the end | loops open | sunk in | moves at the end | creep |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            f"{_timed(r)} {r.energy:.4f} J | {_number(r.gap, 'm')} | {_number(r.depth, 'm')} | {_number(r.moving, 'm/s')} | {_number(r.creep, 'm')} |"
            for r in rows
            if not np.isfinite(r.error)
        ),
    ]


def of_a_step(rows: Sequence[Cost]) -> list[str]:
    """Return the table of the cost of a step of standing mechanisms."""
    lines = [
        "| what stands | step | sarrus, one run | many runs | MuJoCo | sarrus / MuJoCo: one | many |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        ratios = ["{:.2f} ({:.2f} to {:.2f})".format(*x) if x else "" for x in (r.one_ratio, r.many_ratio)]
        peer = "" if r.mujoco is None else f"{1e6 * r.mujoco:.3g} µs"
        lines.append(
            f"| {r.problem} | {1e3 * r.dt:g} ms | {1e6 * r.one:.3g} µs | {1e6 * r.many:.3g} µs, {r.runs} | {peer} | {' | '.join(ratios)} |"
        )
    return lines


def _timed(r: Row) -> str:
    return f"| {r.problem} | {r.engine} | {1e3 * r.dt:g} ms | {1e3 * r.seconds:.3g} ms |"


def _number(x: float, unit: str) -> str:
    said = "0" if x == 0.0 else f"{x:.1e}" if x < 0.01 or x >= 1e4 else f"{x:.3g}"
    return f"{said} {unit}" if np.isfinite(x) else ""


def plot(path: Path, rows: Sequence[Row | Cost], run: Run) -> None:
    """Draw the error over time without contact, and the loop error over time with contact."""
    from matplotlib.figure import Figure

    results = [row for row in rows if isinstance(row, Row) and not row.failure]
    panels = [
        *((name, "error", "error at the end [m]") for name in dict.fromkeys(r.problem for r in results if np.isfinite(r.error))),
        *((name, "gap", "loops open [m]") for name in dict.fromkeys(r.problem for r in results if not np.isfinite(r.error) and np.isfinite(r.gap))),
    ]  # fmt: skip
    columns = 3
    sheet = Figure(figsize=(4.2 * columns, 3.4 * -(-len(panels) // columns)), layout="constrained", dpi=110)
    axes = sheet.subplots(-(-len(panels) // columns), columns, squeeze=False).ravel()
    for ax, (name, what, label) in zip(axes, panels, strict=False):
        for engine in dict.fromkeys(r.engine for r in results):
            points = [r for r in results if r.problem == name and r.engine == engine]
            y = [max(getattr(r, what), 1e-17) for r in points]
            ax.loglog([1e3 * r.seconds for r in points], y, "o-", label=engine)
        ax.set_title(name, loc="left", fontsize=10)
        ax.set_xlabel("CPU, a simulated second [ms]")
        ax.set_ylabel(label)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    axes[0].legend(fontsize=8)
    sheet.savefig(path)
