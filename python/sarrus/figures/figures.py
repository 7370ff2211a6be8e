"""What figures and films of a trajectory show; how that is drawn is :mod:`~sarrus.figures.canvas`.

A figure has a curve for each number that a name stands for: a quantity (q, v, a, tau, energy, momentum, loop_error, reactions),
a joint, or a frame. Joints of several coordinates have a curve for each, named by what it does: an angle, a shift along an axis,
a component of a quaternion. A film has the bars of the skeleton at evenly spaced times.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._arrays import Array
from ..description.joints import JointType
from ..dynamics.loop_operations import LoopReactions
from ..errors import raise_no_such_name
from . import canvas as plot
from .skeleton import Skeleton

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

    from ..simulation.trajectory import Trajectory

_SPACES = {
    "q": ("joint coordinates", "q", {"rad": "rad", "m": "m", "1": "1"}),
    "v": ("joint velocities", "v", {"rad": "rad/s", "m": "m/s"}),
    "a": ("joint accelerations", "v", {"rad": "rad/s²", "m": "m/s²"}),
    "tau": ("joint forces", "v", {"rad": "N m", "m": "N"}),
}


def figure(run: Trajectory, what: str | Sequence[str], ax: Axes | None) -> Axes:
    """See :meth:`Trajectory.plot`."""
    names = [what] if isinstance(what, str) else list(what)
    panels: dict[str, dict[str, Array]] = {}  # by unit
    labels: dict[str, list[str]] = {}
    for name in names:
        label, found = _curves(run, name)
        for text, unit, y in found:
            panels.setdefault(unit, {})[text] = y
            labels.setdefault(unit, []).append(label)
    titled = {}
    for unit, lines in panels.items():
        # one curve among panels has no other place for its name
        title = next(iter(lines)) if len(lines) == 1 < len(panels) else _title(run, names, labels[unit])
        titled[f"{title} [{unit}]"] = lines
    if len(titled) > 1:
        if ax is not None:
            raise ValueError(
                f"what is drawn has several units, {', '.join(panels)}, which one axes cannot show: leave ax= out, or ask for less"
            )
        return plot.stacked(run.t, titled)
    # there may be no curve at all: of a mechanism that cannot move
    y_label, lines = next(iter(titled.items()), (", ".join(names), {}))
    return plot.curves(run.t, lines, y_label, ax=ax, log=names == ["loop_error"])


def _title(run: Trajectory, names: Sequence[str], labels: Sequence[str]) -> str:
    title = ", ".join(dict.fromkeys(labels))
    if len(title) <= 40:
        return title
    # longer than the axis; the curves have the names
    return _SPACES["q"][0] if all(name in run.mechanism.joints for name in names) else "several"


def film(run: Trajectory, path: str | os.PathLike[str] | None, speed: float, frames_per_second: float) -> FuncAnimation:
    """See :meth:`Trajectory.animate`."""
    if not (speed > 0.0 and np.isfinite(speed) and frames_per_second > 0.0 and np.isfinite(frames_per_second)):
        raise ValueError(f"speed and frames_per_second must be positive; got {speed!r} and {frames_per_second!r}")
    sound = np.isfinite(run.q).all(axis=1) & np.isfinite(run.v).all(axis=1)
    if not sound.any():
        raise ValueError("there is nothing to show: no sample is finite")
    # a run that diverged is shown as far as it went well
    end = len(run) if sound.all() else max(int(np.argmin(sound)), 1)
    first, last = run.t[0], run.t[end - 1]
    pictures = 1 + round((last - first) / speed * frames_per_second)
    times = np.linspace(first, last, pictures)
    q = run.at(times)[0]
    skeleton = Skeleton(run.mechanism)
    joints = list(skeleton.joint_points(q).values())
    marks = np.stack(joints, axis=1) if joints else np.empty((pictures, 0, 3))
    bars = skeleton.segments_flat(q)
    return plot.film(times, bars, marks, skeleton.anchors, run.mechanism.name, frames_per_second, path)


def _curves(run: Trajectory, what: str) -> tuple[str, list[tuple[str, str, Array]]]:
    """What an axis says, and (name, unit, values (n,)) of each curve."""
    robot = run.mechanism
    if what in _SPACES:
        label, space, units = _SPACES[what]
        values = getattr(run, what)
        found = []
        for name in robot.joints:
            joint = robot.joint(name)
            at = joint.q_slice if space == "q" else joint.v_slice
            parts = _components(joint.type, space)
            for k, (part, unit) in enumerate(parts):
                found.append((f"{name} {part}".strip(), units[unit], values[:, at.start + k]))
        return label, found
    if what == "energy":
        parts_of = {"total": run.energy, "kinetic": run.kinetic_energy, "potential": run.potential_energy}
        return "energy", [(name, "J", y) for name, y in parts_of.items()]
    if what == "loop_error":
        return "opening of the loops", [("loop_error", "rad, m", run.loop_error)]
    if what == "momentum":
        shown = [("angular", "kg m²/s"), ("linear", "kg m/s")]
        return "momentum", [
            (f"{kind} {axis}", unit, run.momentum[:, 3 * i + k])
            for i, (kind, unit) in enumerate(shown)
            for k, axis in enumerate("xyz")
        ]
    if what == "reactions":
        forces = {name: np.linalg.norm(wrench[:, 3:], axis=1) for name, wrench in _wrenches(run).items()}
        only = f" by {next(iter(forces))}" if len(forces) == 1 else ""
        return f"force carried{only}", [(name, "N", force) for name, force in forces.items()]
    if what in (*robot.joints, *robot.loop_joints):
        joint = robot.joint(what)
        parts, coordinates = _components(joint.type, "q"), run.joint(what)
        return what, [
            (f"{what} {part}".strip(), _SPACES["q"][2][unit], coordinates[:, k]) for k, (part, unit) in enumerate(parts)
        ]
    if what not in robot.frames:
        quantities = (*_SPACES, "energy", "loop_error", "momentum", "reactions")
        known = (*quantities, *robot.joints, *robot.loop_joints, *robot.frames)
        raise_no_such_name("quantity, joint or frame", what, known)
    place = run.frame(what)[:, :3, 3]
    return f"position of {what}", [(f"{what} {axis}", "m", place[:, k]) for k, axis in enumerate("xyz")]


def _wrenches(run: Trajectory) -> dict[str, Array]:
    """Of all joints, those of the tree before those that close loops, and of the other constraints."""
    found = run.reactions
    if not isinstance(found, LoopReactions):
        return found
    of_tree: dict[str, Array] = run.mechanism.reactions(run.q, run.v, run.a, multipliers=found.multipliers, time=run.t)
    return of_tree | found.wrenches


def _components(joint: JointType, space: str) -> list[tuple[str, str]]:
    parts = joint.coordinates if space == "q" else joint.velocities
    return [(name if len(parts) > 1 else "", unit) for name, unit in parts]
