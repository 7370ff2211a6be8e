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
from ..dynamics.loop_operations import LoopReactions
from ..errors import raise_no_such_name
from . import canvas
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
    labels: dict[str, dict[str, None]] = {}
    for name in names:
        label, found = _curves(run, name)
        for text, unit, y in found:
            panels.setdefault(unit, {})[text] = y
            labels.setdefault(unit, {})[label] = None
    titled = {}
    for unit, lines in panels.items():
        title = ", ".join(labels[unit])
        if len(lines) == 1 < len(panels):  # one curve among panels has no other place for its name
            title = next(iter(lines))
        elif len(title) > 40:  # longer than the axis; the curves have the names
            title = _SPACES["q"][0] if all(name in run.mechanism.joints for name in names) else "several"
        titled[f"{title} [{unit}]"] = lines
    if len(titled) > 1 and ax is not None:
        raise ValueError(
            f"what is drawn has several units, {', '.join(panels)}, which one axes cannot show: leave ax= out, or ask for less"
        )
    if len(titled) > 1:
        return canvas.stacked(run.t, titled)
    # there may be no curve at all: of a mechanism that cannot move
    y_label, lines = next(iter(titled.items()), (", ".join(names), {}))
    return canvas.curves(run.t, lines, y_label, ax=ax, log=names == ["loop_error"])


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
    times = np.linspace(first, last, 1 + round((last - first) / speed * frames_per_second))
    q = run.at(times)[0]
    skeleton = Skeleton(run.mechanism)
    marks = np.array([*skeleton.joint_points(q).values()]).reshape(-1, len(times), 3).swapaxes(0, 1)
    bars = skeleton.segments_flat(q)
    return canvas.film(times, bars, marks, skeleton.anchors, run.mechanism.name, frames_per_second, path)


Curve = tuple[str, str, Array]  # name, unit, values (n,)


def _curves(run: Trajectory, what: str) -> tuple[str, list[Curve]]:
    """What an axis says, and its curves."""
    robot = run.mechanism
    if what in _SPACES:
        return _SPACES[what][0], [curve for name in robot.joints for curve in _of_joint(run, what, name)]
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
    if what in (*robot.joints, *robot.loop_joints):
        return what, _of_joint(run, "q", what)
    if what not in robot.frames:
        quantities = (*_SPACES, "energy", "loop_error", "momentum", "reactions")
        known = (*quantities, *robot.joints, *robot.loop_joints, *robot.frames)
        raise_no_such_name("quantity, joint or frame", what, known)
    return f"position of {what}", _along(what, "m", run.frame(what)[:, :3, 3])


def _along(name: str, unit: str, vectors: Array) -> list[Curve]:
    """Components of vectors (n, 3)."""
    return [(f"{name} {axis}".strip(), unit, vectors[:, k]) for k, axis in enumerate("xyz")]


def _of_joint(run: Trajectory, what: str, name: str) -> list[Curve]:
    """What there is one of for each coordinate, or each velocity, of a joint."""
    _, space, units = _SPACES[what]
    joint = run.mechanism.joint(name)
    parts = joint.type.coordinates if space == "q" else joint.type.velocities
    labels = [f"{name} {part}" if len(parts) > 1 else name for part, _ in parts]
    columns = (run.joint(name) if what == "q" else getattr(run, what)[:, joint.v_slice]).T
    return [(label, units[unit], y) for label, (_, unit), y in zip(labels, parts, columns, strict=True)]


def _wrenches(run: Trajectory) -> dict[str, Array]:
    """Of all joints, those of the tree before those that close loops, and of the other constraints."""
    found = run.reactions
    if not isinstance(found, LoopReactions):
        return found
    of_tree: dict[str, Array] = run.mechanism.reactions(run.q, run.v, run.a, multipliers=found.multipliers, time=run.t)
    return of_tree | found.wrenches
