"""`sarrus demo`: the Stanford manipulator closes a valve (van der Merwe 1995, section 4.6).

The arm moves from the configuration of section 4.5 to a tap on the ground, and then rotates the tap by pi against a moment of 5 N m. Each joint
follows a cubic polynomial from rest to rest. The demonstration computes the joint forces of this motion.

Assumptions that are not in the thesis:

- The tap is at (0, 0, 0.5) m; the y-axis points up.
- The gripper points straight down, and the arm slopes down from the shoulder.
- The base rotates in the shorter direction.
- The tap rotates clockwise, seen from above; this is a positive rotation of the gripper.
- The moment is constant while the tap rotates, and zero before.
- There is no friction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import atan2, hypot, pi, sqrt
from os import PathLike
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, ArrayLike
from .._files import replacing
from ..control import PID, FeedforwardEffort
from ..laws import harmonic
from ..mechanism import Mechanism
from ..mechanisms.thesis import PARAMETERS

START = (0.0, 0.0, 0.8, 0.0, 0.0)
TAP = (0.0, 0.0, 0.5)
COORDINATES = ("base", "arm", "slide", "wrist", "gripper")
FORCE_UNITS = ("N m", "N m", "N", "N m", "N m")
CALLS, BATCH = 1_000_000, 10_000  # number of calls, and states in a batch; CALLS is a multiple of BATCH


class Motion(NamedTuple):
    """Samples of a motion, with the moment that the gripper exerts on the tap."""

    t: Array  # (N,) times [s]
    q: Array  # (N, 5) coordinates [rad, m]
    v: Array  # (N, 5) velocities [rad/s, m/s]
    a: Array  # (N, 5) accelerations [rad/s², m/s²]
    moment: Array  # (N,) moment on the tap about the gripper's axis [N m]


@dataclass(frozen=True, eq=False)
class Phase:
    """Motion from rest to rest, during which the gripper exerts a constant moment."""

    begins: float
    duration: float
    start: Array
    end: Array
    moment: float

    def at(self, t: ArrayLike) -> Motion:
        """Return the motion at the times t (N,) [s]."""
        t = np.asarray(t, np.float64)
        s = ((t - self.begins) / self.duration)[:, None]
        path, T = self.end - self.start, self.duration
        q, v, a = path * s**2 * (3 - 2 * s), path * 6 * s * (1 - s) / T, path * 6 * (1 - 2 * s) / T**2
        return Motion(t, self.start + q, v, a, np.full(t.shape, self.moment))


def at_tap(turn: float, tap: tuple[float, float, float] = TAP) -> Array:
    """Return the configuration in which the gripper points straight down with its tip on the tap; `turn` [rad] is the gripper's angle.

    Seen from above, the arm passes the base's axis at the distance `offset`. Therefore base, shoulder and tap form a right triangle, one leg of which
    is the arm's horizontal reach. The wrist is at the height `hand` above the tap.
    """
    x, y, z = tap
    height, offset = PARAMETERS[0][4:]
    hand = PARAMETERS[2][3] + PARAMETERS[3][3]
    reach, rise = sqrt(x**2 + z**2 - offset**2), y + hand - height
    arm = atan2(rise, reach)
    return np.array([atan2(x, z) - atan2(reach, offset), arm, hypot(reach, rise), -pi / 2 - arm, turn])


def phases() -> tuple[Phase, Phase]:
    """Return the two phases of the motion.

    In the first phase, the arm reaches the tap in 1 s, and the gripper rotates by pi/2. In the second phase, it closes the tap by a rotation of pi in
    0.5 s.
    """
    start, reached, closed = np.array(START), at_tap(pi / 2), at_tap(pi / 2 + pi)
    return Phase(0.0, 1.0, start, reached, moment=0.0), Phase(1.0, 0.5, reached, closed, moment=5.0)


def sample(*instants: ArrayLike) -> Motion:
    """Return samples of the motion, phase by phase. The time t = 1 s is in both phases, with different accelerations."""
    parts = [phase.at(t) for phase, t in zip(phases(), instants, strict=True)]
    return Motion(*map(np.concatenate, zip(*parts, strict=True)))


def joint_forces(arm: Mechanism, motion: Motion) -> Array:
    """Return the joint forces (N, 5) [N m, N] of all samples, computed in one call."""
    on_gripper = np.zeros((len(motion.t), 6))
    on_gripper[:, 0] = -motion.moment  # moment of the tap on the gripper, about the x axis of frame 4
    return np.asarray(arm.inverse_dynamics(motion.q, motion.v, motion.a, wrenches={"tip": on_gripper}))


def table(arm: Mechanism) -> str:
    """Return a table of the joint forces at a few times, and of the largest force of each joint."""
    few = sample([0, 0.25, 0.5, 0.75, 1], [1, 1.25, 1.5])
    many = sample(np.linspace(0, 1, 1001), np.linspace(1, 1.5, 501))
    tau, all_tau = joint_forces(arm, few), joint_forces(arm, many)
    peak = np.abs(all_tau).argmax(axis=0)
    head = [f"{name} [{unit}]" for name, unit in zip(COORDINATES, FORCE_UNITS, strict=True)]

    def line(label: str, cells: Iterable[str]) -> str:
        return f"{label:>9}  " + "  ".join(f"{cell:>{len(h)}}" for h, cell in zip(head, cells, strict=True))

    rows = [line(f"{t:.2f}", [f"{x:.3f}" for x in row.round(3) + 0.0]) for t, row in zip(few.t, tau, strict=True)]
    largest = [
        line("peak", [f"{x:.3f}" for x in all_tau[peak, range(5)]]),
        line("at t [s]", [f"{t:.3f}" for t in many.t[peak]]),
    ]
    between, above = (f"{'':>9}  {text}" for text in ("the gripper begins to turn the tap", "the largest"))
    return "\n".join([line("t [s]", head), *rows[:5], between, *rows[5:], above, *largest])


def draw(arm: Mechanism, path: str | PathLike[str]) -> None:
    """Draw figures 4.2 to 4.6, one below the other, to an image file; requires matplotlib."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.rcsetup import cycler
    from matplotlib.ticker import MaxNLocator

    # colours that colour-blind readers distinguish (Okabe and Ito, with a darker purple); dashes for grey print
    dashes: list[Any] = ["-", (0, (6, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1.2, 0.9)), (0, (2.8, 1.2))]
    styles = cycler(color=["#0072B2", "#D55E00", "#009E73", "#882255", "#000000"], linestyle=dashes)
    panels: list[tuple[str, float, Callable[[Motion], Array]]] = [
        ("4.2  joint positions [rad; slide m]", 1.0, lambda motion: motion.q),
        ("4.3  joint velocities [rad/s; slide m/s]", 1.0, lambda motion: motion.v),
        ("4.4  joint accelerations [rad/s²; slide m/s²]", 1.3, lambda motion: motion.a),
        ("4.5  moment of the gripper on the tap [N m]", 0.5, lambda motion: motion.moment[:, None]),
        ("4.6  joint forces [N m; slide N]", 1.4, lambda motion: joint_forces(arm, motion)),
    ]
    with rc_context({"font.size": 12, "axes.titlesize": 12, "lines.linewidth": 2.4, "savefig.dpi": 200}):
        figure = Figure(figsize=(5.4, 11.2), layout="constrained")
        axes = figure.subplots(len(panels), sharex=True, height_ratios=[height for _, height, _ in panels])
        for ax, (title, height, curves) in zip(axes, panels, strict=True):
            ax.axhline(0, color="0.6", linewidth=0.8)
            for phase in phases():  # one line per phase, because accelerations and forces jump between them
                motion = phase.at(phase.begins + np.linspace(0, phase.duration, 301))
                values = curves(motion)
                ax.set_prop_cycle(styles[-values.shape[1] :])  # if there is only one curve, it has the gripper's style
                lines = ax.plot(motion.t, values)
                if phase.moment:
                    ax.axvspan(motion.t[0], motion.t[-1], color="0.94", zorder=0)
            ax.set_title(title, loc="left")
            ax.margins(x=0)
            ax.grid(axis="y", color="0.85", linewidth=0.8)
            ax.yaxis.set_major_locator(MaxNLocator(round(7 * height), steps=[1, 2, 5, 10]))
            ax.spines[["top", "right"]].set_visible(False)
        for phase, name in zip(phases(), ("reaching", "turning"), strict=True):
            middle = phase.begins + phase.duration / 2
            axes[0].text(middle, 0.98, name, ha="center", va="top", transform=axes[0].get_xaxis_transform())
        axes[-1].set_xlabel("time [s]")
        figure.legend(
            lines, COORDINATES, title="The Stanford manipulator closes a valve",
            title_fontproperties={"weight": "bold", "size": 13}, loc="outside upper center", ncols=5, frameon=False,
            columnspacing=1.1, handlelength=2.0, handletextpad=0.4,
        )  # fmt: skip
        with replacing(path) as file:
            figure.savefig(file)


def time_calls(arm: Mechanism) -> dict[str, float]:
    """Return the time [s] of inverse dynamics for `CALLS` states of the motion: in single calls, and in batches on one and two threads.

    The measurements alternate batch by batch, so that changes of the processor's clock rate affect all of them equally.
    """
    motion = sample(np.linspace(0, 1, BATCH * 2 // 3), np.linspace(1, 1.5, BATCH - BATCH * 2 // 3))
    q, v, a = motion.q, motion.v, motion.a
    states, tau, many_tau = list(zip(q, v, a, strict=True)), np.empty(5), np.empty_like(q)
    inverse_dynamics = arm.inverse_dynamics

    def one_by_one() -> None:
        for q1, v1, a1 in states:
            inverse_dynamics(q1, v1, a1, out=tau)

    calls: dict[str, Callable[[], object]] = {
        "one state a call, out=": one_by_one,
        f"{BATCH:,} states a call, threads=1": lambda: inverse_dynamics(q, v, a, out=many_tau, threads=1),
        f"{BATCH:,} states a call, threads=2": lambda: inverse_dynamics(q, v, a, out=many_tau, threads=2),
    }
    seconds = dict.fromkeys(calls, 0.0)
    for call in calls.values():
        call()  # the first call allocates memory and starts threads
    for _ in range(CALLS // BATCH):
        for name, call in calls.items():
            begin = perf_counter()
            call()
            seconds[name] += perf_counter() - begin
    return seconds


# ---- servos of a mechanism of the gallery: a PID controller for each motor, which swings the mechanism about its home -----------------------


STIFF = 30.0  # natural frequency of each motor's loop, critically damped [rad/s]
ANGLE, SHIFT = 0.2, 0.03  # amplitudes of revolute and prismatic joints [rad, m]
RATE, LAG = 3.0, 1.1  # angular frequency of the motion [rad/s], and phase shift between consecutive motors [rad]


def servos(robot: Mechanism, q: Array) -> list[PID | FeedforwardEffort]:
    """Return the controllers: a constant effort against gravity at q, and a PID controller for each motor.

    Without motors, all tree joints are controlled.
    """
    names = [name for name in robot.actuated or robot.joints if all(robot.joint(name).type.rates)]
    motors = [(name, index) for name in names for index in range(robot.joint(name).type.nv)]
    rest, S = np.zeros(robot.nv), robot.actuation_matrix(q, actuated=names)
    if not robot.nc:
        weight = robot.inverse_dynamics(q, rest, rest) @ S
    elif robot.actuator_efforts(q, rest, rest, actuated=names, exact=True, return_status=True)[1] == 0:
        weight = robot.actuator_efforts(q, rest, rest, actuated=names)
    else:
        weight = np.zeros(len(motors))
    # acceleration of a motor per unit of its effort, while the other motors are free
    free = robot.forward_dynamics(q, rest, S @ weight)
    inverse_inertia = [float((robot.forward_dynamics(q, rest, S @ weight + column) - free) @ column) for column in S.T]
    coordinates = robot.joint_states(q).q
    elements: list[PID | FeedforwardEffort] = []
    for k, (name, index) in enumerate(motors):
        inertia, phase = 1.0 / inverse_inertia[k], LAG * k
        swing = SHIFT if robot.joint(name).type.coordinates[index][1] == "m" else ANGLE
        target = harmonic(swing, rate=RATE, phase=phase, offset=float(coordinates[name][index] - swing * np.sin(phase)))
        gains = inertia * STIFF**2, inertia * STIFF**3 / 10.0, 2.0 * inertia * STIFF
        elements += [FeedforwardEffort(name, float(weight[k]), index), PID(name, *gains, target=target, index=index)]
    return elements
