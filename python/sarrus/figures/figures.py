"""What figures and films of a trajectory show; how that is drawn is :mod:`~sarrus.figures.canvas`.

A figure has a curve for each number that a name stands for: a quantity (q, v, a, tau, energy, momentum, loop_error, reactions, efforts,
joint_wrenches), a joint, or a frame. Joints of several coordinates have a curve for each, named by what it does: an angle, a shift along an axis,
a component of a quaternion. A film has the bars of the skeleton at evenly spaced times.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, ArrayLike, checked_names, checked_number, real_array
from ..errors import ModelError, check_name, raise_no_such_name
from . import canvas
from .skeleton import Skeleton

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

    from ..mechanism import Mechanism
    from ..simulation.runs import Sweep
    from ..simulation.trajectory import Trajectory

SPACES = {
    "q": ("joint coordinates", "q", {"rad": "rad", "m": "m", "1": "1"}),
    "v": ("joint velocities", "v", {"rad": "rad/s", "m": "m/s"}),
    "a": ("joint accelerations", "v", {"rad": "rad/s²", "m": "m/s²"}),
    "tau": ("joint forces", "v", {"rad": "N m", "m": "N"}),
}

QUANTITIES = (*SPACES, "energy", "loop_error", "momentum", "reactions", "efforts", "joint_wrenches")

Curve = tuple[str, str, Array]  # name, unit, values (n,)
FEW_A_SIDE = 3  # curves of one unit that face those of another one, on axes left and right; where there are more, each unit has a panel
MANY = 12  # coordinates of which a figure that is asked for nothing in particular shows those of the motors alone


def figure(run: Trajectory, what: str | Sequence[str] | None, ax: Axes | None) -> Axes:
    """See :meth:`Trajectory.plot`."""
    if what is None:
        what = list(run.mechanism.actuated) if run.mechanism.nq > MANY and run.mechanism.actuated else "q"
    names = checked_names("what", what)
    panels: dict[str, dict[str, Array]] = {}  # by unit
    labels: dict[str, dict[str, None]] = {}
    for name in names:
        label, curves = _curves(run, name)
        for text, unit, y in curves:
            panels.setdefault(unit, {})[text] = y
            labels.setdefault(unit, {})[label] = None
    titled = {}
    for unit, lines in panels.items():
        title = ", ".join(labels[unit])
        if len(lines) == 1 < len(panels):  # one curve among panels has no other place for its name
            title = next(iter(lines))
        elif len(title) > 40:  # longer than the axis; the curves have the names
            title = SPACES["q"][0] if all(name in run.mechanism.joints for name in names) else "several"
        titled[f"{title} [{unit}]"] = lines
    if len(titled) == 2 and max(map(len, titled.values())) <= FEW_A_SIDE:
        return canvas.facing(run.t, titled, ax)
    if len(titled) > 1 and ax is not None:
        raise ValueError(
            f"what is drawn has several units, {', '.join(panels)}, which one axes cannot show: leave ax= out, or ask for less"
        )
    if len(titled) > 1:
        return canvas.stacked(run.t, titled)
    # there may be no curve at all: of a mechanism that cannot move
    y_label, lines = next(iter(titled.items()), (", ".join(names), {}))
    return canvas.curves(run.t, lines, y_label, ax=ax, log=names == ["loop_error"])


def phase(run: Trajectory, joint: str | Sequence[str] | None, ax: Axes | None) -> Axes:
    """See :meth:`Trajectory.plot_phase`."""
    robot = run.mechanism
    names = checked_names("joint", (robot.actuated or robot.joints) if joint is None else joint)
    paths: dict[str, tuple[Array, Array]] = {}
    units: dict[str, None] = {}
    rates = robot.joint_states(run.q, run.v, time=run.t).v if set(names) & set(robot.loop_joints) else {}
    for name in names:
        j = robot.joint(name)
        if not j.type.nv or not all(j.type.rates):
            raise ModelError(
                f"joint '{name}' has no coordinate whose rate is its velocity, which a phase portrait shows"
            )
        q, v = run.joint(name), rates[name] if j.closes_loop else run.v[:, j.v_slice]
        for k, (part, unit) in enumerate(j.type.coordinates):
            paths[f"{name} {part}" if j.type.nv > 1 else name] = q[:, k], v[:, k]
            units[unit] = None
    if len(units) > 1:
        raise ValueError(
            f"these joints have several units, {', '.join(units)}, which one portrait cannot show: ask for less"
        )
    of = f"{next(iter(paths))} " if len(paths) == 1 else ""
    unit = next(iter(units), "rad")
    return canvas.portrait(paths, f"{of or 'q '}[{unit}]", f"{'rate of ' + of if of else 'v '}[{unit}/s]", ax=ax)


def bundle(sweep: Sweep, what: str | Sequence[str] | None, quantiles: ArrayLike, lines: int, ax: Axes | None) -> Axes:
    """See :meth:`Sweep.plot`."""
    robot = sweep.mechanism
    if what is None:
        motors = [name for name in robot.actuated if name in robot.joints]
        what = motors if robot.nq > MANY and motors else "q"
    steps = real_array("quantiles", quantiles)
    if steps.ndim != 1 or not steps.size or not ((steps >= 0.0) & (steps <= 1.0)).all():
        raise ValueError(f"quantiles are numbers from 0 to 1, one or several; got {quantiles!r}")
    steps = np.sort(steps)
    panels: dict[str, dict[str, Array]] = {}
    for name in checked_names("what", what):
        for text, unit, y in _bundles(sweep, name):
            panels.setdefault(unit, {})[text] = y
    if len(panels) > 1 and ax is not None:
        raise ValueError(f"what is drawn has several units, {', '.join(panels)}: leave ax= out, or ask for less")
    return canvas.bundles(sweep.t, panels, steps, lines, ax)


def _bundles(sweep: Sweep, what: str) -> list[Curve]:
    """As _curves, of many runs: values (runs, n)."""
    robot, q, v = sweep.mechanism, sweep.q, sweep.v
    if what == "energy":
        sound = np.isfinite(q).all(axis=-1)
        energy = np.full(q.shape[:2], np.nan)
        for one, runs in sweep._by_mechanism():
            here = runs & sound
            energy[here] = one.kinetic_energy(q[here], v[here]) + one.potential_energy(q[here])
        return [("energy", "J", energy)]
    if what in robot.frames:
        position = np.empty((*q.shape[:2], 3))
        for one, runs in sweep._by_mechanism():
            position[runs[:, 0]] = one.pose(q[runs[:, 0]], what, return_status=True)[0][..., :3, 3]
        return [(f"{what} {axis}", "m", position[..., k]) for k, axis in enumerate("xyz")]
    if what not in ("q", "v", *robot.joints):
        raise_no_such_name("quantity, joint or frame", what, ("q", "v", "energy", *robot.joints, *robot.frames))
    space = "v" if what == "v" else "q"
    bundles: list[Curve] = []
    for name in robot.joints if what in ("q", "v") else (what,):
        joint = robot.joint(name)
        parts = joint.type.coordinates if space == "q" else joint.type.velocities
        of_joint = q[..., joint.q_slice] if space == "q" else v[..., joint.v_slice]
        for k, (part, unit) in enumerate(parts):
            bundles.append((f"{name} {part}" if len(parts) > 1 else name, SPACES[space][2][unit], of_joint[..., k]))
    return bundles


def film(
    run: Trajectory, path: str | os.PathLike[str] | None, speed: float, frames_per_second: float, trace: str | Sequence[str],
    forces: str | Sequence[str], labels: bool,
) -> FuncAnimation:  # fmt: skip
    """See :meth:`Trajectory.animate`."""
    trace, forces = checked_names("trace", trace), checked_names("forces", forces)
    for name in trace:
        check_name("frame", name, run.mechanism.frames)
    speed, frames_per_second = checked_number("speed", speed), checked_number("frames_per_second", frames_per_second)
    sound = np.isfinite(run.q).all(axis=1) & np.isfinite(run.v).all(axis=1)
    if not sound.any():
        raise ValueError("there is nothing to show: no sample is finite")
    # a run that diverged is shown as far as it went well
    end = len(run) if sound.all() else max(int(np.argmin(sound)), 1)
    first, last = run.t[0], run.t[end - 1]
    times = np.linspace(first, last, 1 + round((last - first) / speed * frames_per_second))
    q = run.at(times)[0]
    arrows, force = _arrows(run, forces, times, Skeleton(run.mechanism).size)
    shown = drawn(run.mechanism, q, trace, arrows, tuple(forces), force)
    if labels:
        longest = np.argsort(np.linalg.norm(np.diff(shown.bars[0], axis=1)[:, 0], axis=1))
        owners = [bar.owner for bar in Skeleton(run.mechanism).bars]
        shown = replace(shown, labels={owners[n]: int(n) for n in longest})
    return canvas.film(times, shown, run.mechanism.name, frames_per_second, path)


def drawn(robot: Mechanism, q: Array, trace: Sequence[str], *forces: Any) -> canvas.Shown:
    """Configurations (f, nq) of a mechanism, as pictures show them; with arrows, their names, and force a metre, where there are any."""
    skeleton = Skeleton(robot)

    def together(points: list[Array]) -> Array:
        return np.array(points).reshape(-1, len(q), 3).swapaxes(0, 1)

    owners = [bar.owner for bar in skeleton.bars]
    return canvas.Shown(
        skeleton.segments_flat(q),
        np.array([skeleton.colors[owner] for owner in owners]).reshape(-1, 3) / 255.0,
        np.array([owner in skeleton.slender for owner in owners], dtype=bool),
        np.array([owner in skeleton.boxes for owner in owners], dtype=bool),
        together([*skeleton.joint_points(q).values()]),
        skeleton.anchors,
        together([robot.pose(q, name)[:, :3, 3] for name in trace]),
        *forces,
    )


LONGEST = 0.4  # the longest arrow of a force, of the mechanism's size


def _arrows(run: Trajectory, names: list[str], times: Array, size: float) -> tuple[Array, float]:
    """Tails and tips (f, m, 2, 3) of the forces on the joints' children, or of loads, in the world; and force a metre [N/m]."""
    forces = np.zeros((len(times), len(names), 2, 3))
    loads, robot = run.joint_wrenches() if set(names) - set(run.wrenches) else {}, run.mechanism
    for name in names:
        check_name("joint or load", name, (*loads, *run.wrenches))
    # the force of the sample before; bodies turn little until the next
    k = np.clip(np.searchsorted(run.t, times, side="right") - 1, 0, len(run) - 1)
    for n, name in enumerate(names):
        if name in loads:
            forces[:, n, 0], forces[:, n, 1] = force_on_child(robot, run.q[k], name, loads[name][k])
        else:
            forces[:, n, 0], forces[:, n, 1] = force_at(robot.pose(run.q[k], name), run.wrenches[name][k])
    return arrows_of(forces, size)


def arrows_of(forces: Array, size: float) -> tuple[Array, float]:
    """Where forces act and the forces (f, m, 2, 3), as tails and tips; and force a metre [N/m]."""
    longest = float(np.nanmax(np.linalg.norm(forces[:, :, 1], axis=-1), initial=0.0)) or 1.0
    a_metre = longest / (LONGEST * size)
    return np.stack([forces[:, :, 0], forces[:, :, 0] + np.nan_to_num(forces[:, :, 1]) / a_metre], axis=2), a_metre


def force_on_child(robot: Mechanism, q: Array, name: str, load: Array) -> tuple[Array, Array]:
    """Where in the world a joint or rod holds its child (..., 3) [m], and the force there (..., 3) [N] of its load (..., 6)."""
    placed = {spec.name: (spec.child, spec.at_child) for spec in robot.description.joints}
    spec: Any = robot.constraint(name).spec if name not in placed else None
    child, at = placed[name] if spec is None else (spec.bodies[1], spec.at_child)
    return force_at(robot.pose(q, child) @ at.matrix, load)


def force_at(pose: Array, load: Array) -> tuple[Array, Array]:
    """Where a wrench acts, and its force, both in the world; the wrench is in the axes of the pose."""
    return pose[..., :3, 3], (pose[..., :3, :3] @ load[..., 3:, None])[..., 0]


def _curves(run: Trajectory, what: str) -> tuple[str, list[Curve]]:
    """What an axis says, and its curves."""
    robot = run.mechanism
    if what in SPACES:
        return SPACES[what][0], [curve for name in robot.joints for curve in _of_joint(run, what, name)]
    if what == "energy":
        parts = {"total": run.energy, "kinetic": run.kinetic_energy, "potential": run.potential_energy}
        return "energy", [(name, "J", y) for name, y in parts.items()]
    if what == "loop_error":
        return "opening of the loops", [("loop_error", "rad, m", run.loop_error)]
    if what == "momentum":
        return "momentum", [
            *_along("angular", "kg m²/s", run.momentum[:, :3]), *_along("linear", "kg m/s", run.momentum[:, 3:])
        ]  # fmt: skip
    if what == "reactions":
        forces = {name: np.linalg.norm(wrench[:, 3:], axis=1) for name, wrench in _wrenches(run).items()}
        only = f" by {next(iter(forces))}" if len(forces) == 1 else ""
        return f"force carried{only}", [(name, "N", force) for name, force in forces.items()]
    if what == "joint_wrenches":
        carried = {name: np.linalg.norm(load[:, 3:], axis=1) for name, load in run.joint_wrenches().items()}
        return "force carried", [(name, "N", force) for name, force in carried.items()]
    if what == "efforts":
        efforts = run.joint_wrenches().efforts
        return "efforts", [curve for name, u in efforts.items() for curve in of_effort(robot, name, u)]
    if what in (*robot.joints, *robot.loop_joints):
        return what, _of_joint(run, "q", what)
    if what not in robot.frames:
        known = (*QUANTITIES, *robot.joints, *robot.loop_joints, *robot.frames)
        raise_no_such_name("quantity, joint or frame", what, known)
    return f"position of {what}", _along(what, "m", run.frame(what)[:, :3, 3])


def _along(name: str, unit: str, vectors: Array) -> list[Curve]:
    """Components of vectors (n, 3)."""
    return [(f"{name} {axis}".strip(), unit, vectors[:, k]) for k, axis in enumerate("xyz")]


def _of_joint(run: Trajectory, what: str, name: str) -> list[Curve]:
    """What there is one of for each coordinate, or each velocity, of a joint."""
    _, space, units = SPACES[what]
    joint = run.mechanism.joint(name)
    parts = joint.type.coordinates if space == "q" else joint.type.velocities
    labels = [f"{name} {part}" if len(parts) > 1 else name for part, _ in parts]
    columns = (run.joint(name) if what == "q" else getattr(run, what)[:, joint.v_slice]).T
    return [(label, units[unit], y) for label, (_, unit), y in zip(labels, parts, columns, strict=True)]


def of_effort(robot: Mechanism, name: str, u: Array) -> list[Curve]:
    """Of a motor, or of a prescribed motion."""
    units = SPACES["tau"][2]
    if name in robot._joints:
        parts = robot.joint(name).type.velocities
    else:
        spec: Any = robot.constraint(name).spec
        joint, index, _ = spec.terms[0]
        parts = (robot.joint(joint).type.velocities[index],)
    labels = [f"{name} {part}" if len(parts) > 1 else name for part, _ in parts]
    return [(label, units[unit], y) for label, (_, unit), y in zip(labels, parts, u.T, strict=True)]


def _wrenches(run: Trajectory) -> dict[str, Array]:
    """Of all joints, those of the tree before those that close loops, and of the other constraints."""
    from ..works.tree import reactions

    if not run.mechanism.nc:
        return reactions(run.mechanism, run.q, run.v, run.a)
    carried = run.reactions
    state = run.mechanism, run.q, run.v, run.a
    of_tree: dict[str, Array] = reactions(*state, multipliers=carried.multipliers, time=run.t)
    return of_tree | carried.wrenches
