"""Contents of figures and films of a trajectory; :mod:`~sarrus.figures.canvas` draws them.

A figure has a curve for each component of a quantity (q, v, a, tau, energy, momentum, loop_error, reactions, efforts, joint_wrenches, contacts), of a
joint, or of a frame. A joint of several coordinates has a curve for each coordinate, named after it: an angle, a displacement along an axis, or a
component of a quaternion. A film shows the bars of the skeleton at evenly spaced times.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, ArrayLike, check_mapping, checked_names, checked_number, real_array, real_rows
from .._showing import table
from ..analysis.closing import start_near
from ..errors import (
    AssemblyError,
    ModelError,
    PathTrackingError,
    SarrusError,
    ShapeError,
    check_name,
    raise_no_such_name,
)
from ..mechanism import Mechanism
from . import canvas
from .canvas import _box, _view
from .skeleton import Skeleton

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

    from ..simulation.sweep import Sweep
    from ..simulation.trajectory import Trajectory


SPACES = {
    "q": ("joint coordinates", "q", {"rad": "rad", "m": "m", "1": "1"}),
    "v": ("joint velocities", "v", {"rad": "rad/s", "m": "m/s"}),
    "a": ("joint accelerations", "v", {"rad": "rad/s²", "m": "m/s²"}),
    "tau": ("joint forces", "v", {"rad": "N m", "m": "N"}),
}

QUANTITIES = (*SPACES, "energy", "loop_error", "momentum", "reactions", "efforts", "joint_wrenches", "contacts")

Curve = tuple[str, str, Array]  # name, unit, values (n,)
# curves of two units share a panel, with axes on the left and the right, if each unit has at most this number of curves
FEW_A_SIDE = 3
SEVERAL_UNITS = "the curves have several units, {}; ax= can show one unit: omit ax=, or name fewer quantities"
MANY = 12  # for more coordinates, a figure without named quantities shows only the motors' coordinates


def figure(run: Trajectory, quantities: str | Sequence[str] | None, ax: Axes | None) -> Axes:
    """Draw the figure of :meth:`Trajectory.plot`."""
    if quantities is None:
        quantities = list(run.mechanism.actuated) if run.mechanism.nq > MANY and run.mechanism.actuated else "q"
    names = checked_names("quantities", quantities)
    panels: dict[str, dict[str, Array]] = {}  # unit -> (name -> values)
    labels: dict[str, dict[str, None]] = {}
    for name in names:
        label, curves = _curves(run, name)
        for text, unit, y in curves:
            panels.setdefault(unit, {})[text] = y
            labels.setdefault(unit, {})[label] = None
    titled = {}
    for unit, lines in panels.items():
        title = ", ".join(labels[unit])
        if len(lines) == 1 < len(panels):  # a single curve of a panel has no legend
            title = next(iter(lines))
        elif len(title) > 40:  # the title is too long for the axis; the legend contains the names
            title = SPACES["q"][0] if all(name in run.mechanism.joints for name in names) else "several"
        titled[f"{title} [{unit}]"] = lines
    if len(titled) == 2 and max(map(len, titled.values())) <= FEW_A_SIDE:
        return canvas.facing(run.t, titled, ax)
    if len(titled) > 1 and ax is not None:
        raise ValueError(SEVERAL_UNITS.format(", ".join(panels)))
    if len(titled) > 1:
        return canvas.stacked(run.t, titled)
    # the default applies to a mechanism without degrees of freedom, which has no curve
    y_label, lines = next(iter(titled.items()), (", ".join(names), {}))
    return canvas.curves(run.t, lines, y_label, ax=ax, log=names == ["loop_error"])


def phase(run: Trajectory, joint: str | Sequence[str] | None, ax: Axes | None) -> Axes:
    """Draw the figure of :meth:`Trajectory.plot_phase`."""
    robot = run.mechanism
    names = checked_names("joint", (robot.actuated or robot.joints) if joint is None else joint)
    paths: dict[str, tuple[Array, Array]] = {}
    units: dict[str, None] = {}
    rates = robot.joint_states(run.q, run.v, time=run.t).v if set(names) & set(robot.loop_joints) else {}
    for name in names:
        j = robot.joint(name)
        if not j.type.nv or not all(j.type.rates):
            raise ModelError(
                f"joint '{name}' has no coordinate whose rate is its velocity; a phase portrait requires one"
            )
        q, v = run.joint(name), rates[name] if j.closes_loop else run.v[:, j.v_slice]
        for k, (part, unit) in enumerate(j.type.coordinates):
            paths[f"{name} {part}" if j.type.nv > 1 else name] = q[:, k], v[:, k]
            units[unit] = None
    if len(units) > 1:
        raise ValueError(
            f"these joints have several units, {', '.join(units)}; a phase portrait shows one unit: name fewer joints"
        )
    label = f"{next(iter(paths))} " if len(paths) == 1 else ""
    unit = next(iter(units), "rad")
    return canvas.portrait(
        paths, f"{label or 'q '}[{unit}]", f"{'rate of ' + label if label else 'v '}[{unit}/s]", ax=ax
    )


def bundle(
    sweep: Sweep, quantities: str | Sequence[str] | None, quantiles: ArrayLike, lines: int, ax: Axes | None
) -> Axes:
    """Draw the figure of :meth:`Sweep.plot`."""
    robot = sweep.mechanism
    if quantities is None:
        motors = [name for name in robot.actuated if name in robot.joints]
        quantities = motors if robot.nq > MANY and motors else "q"
    steps = real_array("quantiles", quantiles)
    if steps.ndim != 1 or not steps.size or not ((steps >= 0.0) & (steps <= 1.0)).all():
        raise ValueError(f"quantiles must be one or several numbers from 0 to 1; got {quantiles!r}")
    steps = np.sort(steps)
    panels: dict[str, dict[str, Array]] = {}
    for name in checked_names("quantities", quantities):
        for text, unit, y in _bundles(sweep, name):
            panels.setdefault(unit, {})[text] = y
    if len(panels) > 1 and ax is not None:
        raise ValueError(SEVERAL_UNITS.format(", ".join(panels)))
    return canvas.bundles(sweep.t, panels, steps, lines, ax)


def _bundles(sweep: Sweep, quantity: str) -> list[Curve]:
    """Return the curves of a quantity, joint or frame for all runs, with values (runs, n)."""
    robot, q, v = sweep.mechanism, sweep.q, sweep.v
    if quantity == "energy":
        sound = np.isfinite(q).all(axis=-1)
        energy = np.full(q.shape[:2], np.nan)
        for variant, runs in sweep._by_mechanism():
            states = runs & sound
            energy[states] = variant.kinetic_energy(q[states], v[states]) + variant.potential_energy(q[states])
        return [("energy", "J", energy)]
    if quantity in robot.frames:
        position = np.empty((*q.shape[:2], 3))
        for variant, runs in sweep._by_mechanism():
            position[runs[:, 0]] = variant.pose(q[runs[:, 0]], quantity, return_status=True)[0][..., :3, 3]
        return [(f"{quantity} {axis}", "m", position[..., k]) for k, axis in enumerate("xyz")]
    if quantity not in ("q", "v", *robot.joints):
        raise_no_such_name("quantity, joint or frame", quantity, ("q", "v", "energy", *robot.joints, *robot.frames))
    space = "v" if quantity == "v" else "q"
    bundles: list[Curve] = []
    for name in robot.joints if quantity in ("q", "v") else (quantity,):
        joint = robot.joint(name)
        parts = joint.type.coordinates if space == "q" else joint.type.velocities
        values = q[..., joint.q_slice] if space == "q" else v[..., joint.v_slice]
        bundles += _labelled(name, parts, SPACES[space][2], values)
    return bundles


def film(
    run: Trajectory, path: str | os.PathLike[str] | None, speed: float, frames_per_second: float, trace: str | Sequence[str],
    forces: str | Sequence[str], labels: bool,
) -> FuncAnimation:  # fmt: skip
    """Return the animation of :meth:`Trajectory.animate`."""
    trace, forces = checked_names("trace", trace), checked_names("forces", forces)
    for name in trace:
        check_name("frame", name, run.mechanism.frames)
    speed, frames_per_second = checked_number("speed", speed), checked_number("frames_per_second", frames_per_second)
    sound = np.isfinite(run.q).all(axis=1) & np.isfinite(run.v).all(axis=1)
    if not sound.any():
        raise ValueError("nothing to show: no sample is finite")
    # a diverged run is shown up to its last finite sample
    end = len(run) if sound.all() else max(int(np.argmin(sound)), 1)
    first, last = run.t[0], run.t[end - 1]
    duration = (last - first) / speed
    steps = round(duration * frames_per_second)
    if path is not None and canvas.check_film(path) == ".gif":
        steps = min(steps, int(duration * canvas.GIF_RATE))
    times = np.linspace(first, last, 1 + steps)
    if steps:  # keeps the exact duration, which need not be a multiple of the requested interval
        frames_per_second = steps / duration
    q = run.at(times)[0]
    shown = drawn(run.mechanism, q, trace, *_arrows(run, forces, times, Skeleton(run.mechanism).size))
    if labels:
        longest = np.argsort(np.linalg.norm(np.diff(shown.bars[0], axis=1)[:, 0], axis=1))
        owners = [bar.owner for bar in Skeleton(run.mechanism).bars]
        shown = replace(shown, labels={owners[n]: int(n) for n in longest})
    return canvas.film(times, shown, run.mechanism.name, frames_per_second, path)


def drawn(robot: Mechanism, q: Array, trace: Sequence[str], *forces: Any) -> canvas.Shown:
    """Return the lines and points with which a mechanism is drawn in configurations q (f, nq).

    `forces`, if not None, contains arrows, their names, and the force that an arrow of one metre represents [N/m].
    """
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


LONGEST = 0.4  # longest arrow of a force, as a fraction of the mechanism's size


def _arrows(run: Trajectory, names: list[str], times: Array, size: float) -> tuple[Array, tuple[str, ...], float]:
    """Return the force arrows (f, m, 2, 3) [m] in the world, their m names, and the force that an arrow of one metre represents [N/m].

    Forces are those of joints on their children, of loads, or of contacts. An arrow consists of its tail and its tip.
    """
    contacts = run.contacts.by_pair(len(run)) if "contacts" in names else {}
    carried = [name for name in names if name != "contacts"]
    loads, robot = run.joint_wrenches() if set(carried) - set(run.wrenches) else {}, run.mechanism
    for name in carried:
        check_name("joint or load", name, ("contacts", *loads, *run.wrenches))
    # uses the force of the preceding sample, because bodies rotate little until the next one
    k = np.clip(np.searchsorted(run.t, times, side="right") - 1, 0, len(run) - 1)
    by_name = {name: (place[k], force[k]) for name, (place, force) in contacts.items()}
    for name in carried:
        if name in loads:
            by_name[name] = force_on_child(robot, run.q[k], name, loads[name][k])
        else:
            by_name[name] = force_at(robot.pose(run.q[k], name), run.wrenches[name][k])
    forces = np.array(list(by_name.values())).reshape(-1, 2, len(times), 3).transpose(2, 0, 1, 3)
    arrows, scale = scaled_arrows(forces, size)
    return arrows, tuple(by_name), scale


def scaled_arrows(forces: Array, size: float) -> tuple[Array, float]:
    """Return arrows (tail, tip) for pairs (point [m], force [N]) (f, m, 2, 3), and the force that an arrow of one metre represents [N/m]."""
    longest = float(np.nanmax(np.linalg.norm(forces[:, :, 1], axis=-1), initial=0.0)) or 1.0
    scale = longest / (LONGEST * size)
    return np.stack([forces[:, :, 0], forces[:, :, 0] + np.nan_to_num(forces[:, :, 1]) / scale], axis=2), scale


def force_on_child(robot: Mechanism, q: Array, name: str, load: Array) -> tuple[Array, Array]:
    """Return the position (..., 3) [m] of a joint or rod on its child, and the force (..., 3) [N] of its wrench `load` (..., 6), both in the world."""
    placed = {spec.name: (spec.child, spec.at_child) for spec in robot.description.joints}
    spec: Any = robot.constraint(name).spec if name not in placed else None
    child, at = placed[name] if spec is None else (spec.bodies[1], spec.at_child)
    return force_at(robot.pose(q, child) @ at.matrix, load)


def force_at(pose: Array, load: Array) -> tuple[Array, Array]:
    """Return the point of application [m] of a wrench and its force [N], both in the world; the wrench is expressed in the frame at `pose`."""
    return pose[..., :3, 3], (pose[..., :3, :3] @ load[..., 3:, None])[..., 0]


def _curves(run: Trajectory, quantity: str) -> tuple[str, list[Curve]]:
    """Return the label of the axis and the curves of a quantity, joint or frame."""
    robot = run.mechanism
    if quantity in SPACES:
        return SPACES[quantity][0], [curve for name in robot.joints for curve in _joint_curves(run, quantity, name)]
    if quantity == "energy":
        parts = {"total": run.energy, "kinetic": run.kinetic_energy, "potential": run.potential_energy}
        return "energy", [(name, "J", y) for name, y in parts.items()]
    if quantity == "loop_error":
        return "loop error", [("loop_error", "rad, m", run.loop_error)]
    if quantity == "momentum":
        return "momentum", [
            *_components("angular", "kg m²/s", run.momentum[:, :3]), *_components("linear", "kg m/s", run.momentum[:, 3:])
        ]  # fmt: skip
    if quantity == "reactions":
        forces = _magnitudes(_wrenches(run))
        return "force carried" + (f" by {forces[0][0]}" if len(forces) == 1 else ""), forces
    if quantity == "joint_wrenches":
        return "force carried", _magnitudes(run.joint_wrenches())
    if quantity == "contacts":
        pressed = run.contacts.by_pair(len(run))
        return "force of contact", [(name, "N", np.linalg.norm(force, axis=1)) for name, (_, force) in pressed.items()]
    if quantity == "efforts":
        efforts = run.joint_wrenches().efforts
        return "efforts", [curve for name, u in efforts.items() for curve in effort_curves(robot, name, u)]
    if quantity in (*robot.joints, *robot.loop_joints):
        return quantity, _joint_curves(run, "q", quantity)
    if quantity not in robot.frames:
        names = (*QUANTITIES, *robot.joints, *robot.loop_joints, *robot.frames)
        raise_no_such_name("quantity, joint or frame", quantity, names)
    return f"position of {quantity}", _components(quantity, "m", run.frame(quantity)[:, :3, 3])


def _magnitudes(wrenches: Mapping[str, Array]) -> list[Curve]:
    """Return curves of the magnitudes of the forces of wrenches (n, 6)."""
    return [(name, "N", np.linalg.norm(wrench[:, 3:], axis=1)) for name, wrench in wrenches.items()]


def _components(name: str, unit: str, vectors: Array) -> list[Curve]:
    """Return curves of the components of vectors (n, 3)."""
    return [(f"{name} {axis}".strip(), unit, vectors[:, k]) for k, axis in enumerate("xyz")]


def _joint_curves(run: Trajectory, quantity: str, name: str) -> list[Curve]:
    """Return a curve for each coordinate, or each velocity, of a joint."""
    _, space, units = SPACES[quantity]
    joint = run.mechanism.joint(name)
    parts = joint.type.coordinates if space == "q" else joint.type.velocities
    return _labelled(
        name, parts, units, run.joint(name) if quantity == "q" else getattr(run, quantity)[:, joint.v_slice]
    )


def _labelled(name: str, parts: Sequence[tuple[str, str]], units: Mapping[str, str], values: Array) -> list[Curve]:
    """Return a curve for each part of a joint, (label, unit), from values (..., parts)."""
    labels = [f"{name} {part}" if len(parts) > 1 else name for part, _ in parts]
    return [(label, units[parts[k][1]], values[..., k]) for k, label in enumerate(labels)]


def effort_curves(robot: Mechanism, name: str, u: Array) -> list[Curve]:
    """Return curves of the efforts u (n, nv) of a motor, or of a prescribed motion."""
    if name in robot._joints:
        parts = robot.joint(name).type.velocities
    else:
        spec: Any = robot.constraint(name).spec
        joint, index = spec.coordinates[0]
        parts = (robot.joint(joint).type.velocities[index],)
    return _labelled(name, parts, SPACES["tau"][2], u)


def _wrenches(run: Trajectory) -> dict[str, Array]:
    """Return the reactions, name -> (n, 6) [N m, N]: those of tree joints first, then those of loop joints and other constraints."""
    from ..formulations.reference_member import reactions

    if not run.mechanism.nc:
        return reactions(run.mechanism, run.q, run.v, run.a)
    carried = run.reactions
    state = run.mechanism, run.q, run.v, run.a
    tree_reactions: dict[str, Array] = reactions(*state, multipliers=carried.multipliers, time=run.t)
    return tree_reactions | carried.wrenches


# ---- pictures of configurations --------------------------------------------------------------------------------------
# A mechanism in one or several configurations, or moved by one joint, and the polygons of its velocities and accelerations.


GHOSTS = 24  # largest number of translucent configurations in a picture
MOMENT = 0.08  # radius of the arc of a moment, as a fraction of the mechanism's size
STEPS = 60  # number of pictures from a joint's coordinate to each end of its range
IN_PLANE = 1e-6  # largest velocity normal to the plane of a planar motion, relative to the largest velocity


def plot(
    robot: Mechanism, q: ArrayLike | None, v: ArrayLike | None, a: ArrayLike | None, trace: str | Sequence[str],
    wrenches: Mapping[str, ArrayLike] | None, labels: bool, drive: str | None, ax: Axes | None,
) -> Axes | FuncAnimation:  # fmt: skip
    """Draw the picture of :meth:`Mechanism.plot`."""
    names = checked_names("trace", trace)
    configurations = np.atleast_2d(real_rows("q", robot.assemble() if q is None else q, robot.nq))
    if configurations.ndim > 2 or not len(configurations):
        raise ShapeError(f"q has shape {configurations.shape}; expected (nq,) or (n, nq), nq = {robot.nq}")
    if drive is not None:
        path, q_path = _drive_path(robot, configurations[-1], drive)
        unit = robot.joint(drive).type.coordinates[0][1]
        return canvas.film(path, drawn(robot, q_path, names), robot.name, 20.0, clock=(drive, unit))
    if a is not None and v is None:
        raise ValueError("a requires v, because accelerations are drawn together with velocities")
    if v is not None and (len(configurations) > 1 or ax is not None):
        raise ValueError("velocities need one configuration and a new figure; got several configurations, or ax=")
    rates = [real_rows(name, x, robot.nv) for name, x in (("v", v), ("a", a)) if x is not None]
    for x in rates:
        if math.prod(x.shape[:-1]) != 1:
            raise ShapeError(f"only the velocities of one configuration can be drawn; got shape {x.shape[:-1]}")
    forces, moments = _loads(robot, configurations, wrenches)
    shown = drawn(robot, configurations, names, *forces)
    view, panels = shown.view, 1 + (v is not None) + (a is not None)
    if panels > 1:
        size = (0.8 * canvas.SIZE[0] * panels, canvas.SIZE[1])
        axes = canvas._pyplot("pictures").subplots(1, panels, figsize=size, layout="constrained")[1]
        ax = canvas._framed(axes[0], *canvas._corners(shown.flat(view)))
        for k, panel in enumerate(axes[1:]):
            _polygon(panel, robot, configurations[-1], [x.reshape(-1) for x in rates[: k + 1]], view)
    elif ax is None:
        ax = canvas._stage(canvas._pyplot("pictures").figure, shown.flat(view))
    else:
        canvas._framed(canvas.axes_of(ax), *canvas._corners(shown.flat(view)))
    last = len(configurations) - 1
    for k in np.unique(np.linspace(0, last, GHOSTS + 1).astype(int))[:-1]:
        canvas.Drawing(ax, shown, view, 0.2).show(int(k))
    canvas.Drawing(ax, shown, view).show(last)
    named = Skeleton(robot).joint_points(configurations[-1]) if labels or panels > 1 else {}
    for text, at, moment in moments:
        canvas.moment_arc(ax, view, at, moment, MOMENT * Skeleton(robot).size)
        _label(ax, text, view @ at)
    for text, at in _together(named):
        _label(ax, text, view @ at)
    ax.set_title(f" {canvas.literal(robot.name)}", fontsize=canvas.FONT, loc="left")
    return ax


def _label(ax: Any, text: str, at: Array) -> None:
    ax.annotate(
        canvas.literal(text), at, (6.0, -11.0), textcoords="offset points", fontsize=0.8 * canvas.FONT, zorder=4
    )


def _together(points: Mapping[str, Array]) -> list[tuple[str, Array]]:
    """Return texts and points (d,); the names of coinciding points are combined in one text."""
    places: dict[tuple[float, ...], list[str]] = {}
    largest = max((float(np.abs(at).max()) for at in points.values()), default=0.0) or 1.0
    for name, at in points.items():
        places.setdefault(tuple((at / largest).round(6) + 0.0), []).append(name)
    return [(", ".join(names), np.array(at) * largest) for at, names in places.items()]


def _loads(robot: Mechanism, q: Array, wrenches: Mapping[str, ArrayLike] | None) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the arrows of forces with names and scale, if there are forces; and texts, positions and vectors of moments, in the world."""
    check_mapping("wrenches", wrenches, "frames to (6,) or (n, 6)", 0, optional=True)
    wrenches = dict(wrenches or {})  # a copy, because the conversion of a value could change the caller's mapping
    forces, moments = np.zeros((len(q), len(wrenches), 2, 3)), []
    for n, (frame, wrench) in enumerate(wrenches.items()):
        load, poses = real_rows(f"wrench on '{frame}'", wrench, 6), robot.pose(q, frame)
        if load.shape not in ((6,), (len(q), 6)):
            raise ShapeError(
                f"the wrench on '{frame}' must be (6,), or ({len(q)}, 6) with a row for each configuration; got {load.shape}"
            )
        load = np.broadcast_to(load, (len(q), 6))
        forces[:, n, 0], forces[:, n, 1] = force_at(poses, load)
        if load[-1, :3].any():
            moment = poses[-1, :3, :3] @ load[-1, :3]
            moments.append((f"{frame} {np.linalg.norm(moment):.3g} N m", poses[-1, :3, 3], moment))
    arrows, scale = scaled_arrows(forces, Skeleton(robot).size)
    return ((arrows, tuple(wrenches), scale) if wrenches else ()), moments


def _drive_path(robot: Mechanism, q: Array, name: str) -> tuple[Array, Array]:
    """Return values (f,) of a joint's coordinate over its range, which includes q, and the corresponding configurations (f, nq)."""
    joint, value = robot.joint(name), robot.joint_states(q).q[name]
    if len(value) != 1:
        raise ModelError(f"joint '{name}' has {len(value)} coordinates; drive= requires a joint with one")
    reach = np.pi if joint.type.coordinates[0][1] == "rad" else Skeleton(robot).size
    ends = [value[0] - reach, value[0] + reach]
    if joint.type.limits is not None:
        ends = np.clip(ends, *(limit[0] for limit in joint.type.limits)).tolist()
    halves = []
    for end in ends:
        try:
            halves.append(robot.follow({name: np.linspace(value[0], end, STEPS)}, near=q))
        except PathTrackingError as stopped:
            halves.append(stopped.path)
        except AssemblyError:  # the branch ends at q in this direction
            halves.append(q[None])
    values = [np.linspace(value[0], end, STEPS)[: len(half)] for end, half in zip(ends, halves, strict=True)]
    back, forth = slice(None, 0, -1), slice(None)
    joined, path = (np.concatenate([x[0][back], x[1][forth]]) for x in (values, halves))
    return joined, path


# ---- polygons --------------------------------------------------------------------------------------------------------


def _polygon(ax: Any, robot: Mechanism, q: Array, rates: list[Array], view: Array) -> None:
    """Draw the velocity polygon of joints and bars about a pole. If `rates` also contains an acceleration, draw the acceleration polygon."""
    skeleton, across = Skeleton(robot), np.cross(view[0], view[1])
    order = len(rates)
    motions = {body: _motion(robot, q, rates, body) for body in ("ground", *robot.bodies)}

    def image(end: tuple[str, Array]) -> Array:
        pose, (V, A) = robot.pose(q, end[0]), motions[end[0]]
        r = pose[:3, :3] @ end[1]
        if order == 1:
            return np.asarray(V[3:] + np.cross(V[:3], r))
        return np.asarray(A[3:] + np.cross(A[:3], r) + np.cross(V[:3], np.cross(V[:3], r)))

    for rate in map(np.stack, zip(*motions.values(), strict=True)):
        off = np.concatenate([rate[:, :3] @ view.T, rate[:, 3:] @ across[:, None]], axis=1)
        if np.abs(off).max() > IN_PLANE * np.abs(rate).max():
            raise ValueError(
                f"'{robot.name}' does not move in a coordinate plane of the world; a velocity polygon requires planar motion"
            )
    for bar in skeleton.bars:
        first, second = view @ image(bar.first), view @ image(bar.second)
        look: dict[str, Any] = {"color": np.array(skeleton.colors[bar.owner]) / 255.0, "zorder": 2}
        ax.plot(*np.transpose([first, second]), linewidth=3.0, linestyle=":" if bar.slides else "-", **look)
        if order == 2 and not bar.slides and bar.first[0] == bar.second[0]:
            w = motions[bar.owner][0][:3] if bar.owner in motions else np.zeros(3)
            R = robot.pose(q, bar.first[0])[:3, :3]
            normal = view @ np.cross(w, np.cross(w, R @ (bar.second[1] - bar.first[1])))
            path = np.transpose([first, first + normal, second])
            ax.plot(*path, linewidth=1.0, linestyle="--", color=canvas.EDGE, zorder=3)
    images = {"o": np.zeros(2)}
    for name, place in skeleton.joints.items():
        images[name] = view @ image((place.body, place.point))
    for text, at in _together(images):
        look = {"arrowstyle": "->", "color": "0.6", "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", at, (0.0, 0.0), arrowprops=look, zorder=1)
        ax.plot(*at, "o", color=canvas.EDGE, markerfacecolor="white", markersize=4.5, zorder=4)
        _label(ax, text, at)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.15)
    unit = "m/s" if order == 1 else "m/s²"
    canvas._dressed(ax, f"[{unit}]", f"[{unit}]")
    ax.set_title("velocities" if order == 1 else "accelerations", fontsize=canvas.FONT, loc="left")


def _motion(robot: Mechanism, q: Array, rates: list[Array], body: str) -> tuple[Array, Array]:
    """Return the velocity and the classical acceleration (6,) of a body's frame, [angular; linear] in world axes.

    The acceleration is zero if `rates` contains only a velocity.
    """
    V = robot.velocity(q, rates[0], body, expressed_in="world_aligned")
    if len(rates) == 1:
        return V, np.zeros(6)
    return V, robot.acceleration(q, rates[0], rates[1], body, expressed_in="world_aligned")


# ---- pictures and summaries in a notebook ----------------------------------------------------------------------------

SIZE, MARGIN = 220.0, 12.0  # size and margin of a picture [px]
MOST_LINES = 24  # largest number of lines of a printed tree
MOST_BARS = 2000  # largest number of bars in a picture


def mechanism_html(robot: Mechanism) -> str:
    """Return HTML with the picture of a mechanism at home and its tree."""
    q = start_near(robot, None, {}, 0.0)
    with suppress(SarrusError):  # the picture shows the open loops; `sarrus info` and `sarrus check` report the error
        q = robot.assemble() if robot.nc else q
    lines = str(robot).split("\n")
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"... and {len(lines) - MOST_LINES} lines more: print(robot)"]
    return _side_by_side(picture(robot, q[None]), f'<pre style="margin:0">{escape(chr(10).join(lines))}</pre>')


def trajectory_html(run: Trajectory) -> str:
    """Return HTML with a picture of a run, in which earlier configurations are grey, and a table of its properties."""
    facts: dict[str, object] = {"samples": len(run), "status": run.status}
    if len(run):
        facts["time"] = f"{run.t[0]:.6g} s to {run.t[-1]:.6g} s"
    facts |= {name: run.statistics[name] for name in ("method", "steps") if name in run.statistics}
    facts |= {f"event '{name}'": f"{len(at)} times" for name, at in run.events.items()}
    violated = {str(limit["joint"]) for limit in run.statistics.get("limits") or ()}
    if violated:
        facts["limits exceeded"] = ", ".join(sorted(violated))
    sound = np.flatnonzero(np.isfinite(run.q).all(axis=1))
    image = picture(run.mechanism, run.q[sound[np.linspace(0, len(sound) - 1, 4).astype(int)]]) if len(sound) else ""
    return _side_by_side(image, table(facts.items(), f"Trajectory of '{run.mechanism.name}'"))


def picture(robot: Mechanism, q: Array) -> str:
    """Return inline SVG of configurations q (k, nq).

    The last configuration has the colour of text; all others are grey. Returns "" if the mechanism has no bars, or too many.
    """
    skeleton = Skeleton(robot)
    if not skeleton.bars or len(skeleton.bars) * len(q) > MOST_BARS:
        return ""
    bars, anchors = skeleton.segments_flat(q), skeleton.anchors
    joints = np.array([*skeleton.joint_points(q).values()]).reshape(-1, len(q), 3).swapaxes(0, 1)
    view = _view(bars, joints, anchors) * [[1.0], [-1.0]]  # the y-axis of a screen points downward
    flat, dots, fixed = bars @ view.T, joints @ view.T, anchors @ view.T
    low, high = _box(flat, dots, fixed)
    zoom = (SIZE - 2 * MARGIN) / (float((high - low).max()) or 1.0)
    width, height = ((high - low) * zoom + 2 * MARGIN).round(1)

    def at(points: Array) -> Array:
        return ((points - low) * zoom + MARGIN).round(1)

    parts = [f'<path d="M{x:g} {y:g}l-5 9h10z" fill="gray"/>' for x, y in at(fixed)]
    for k, lines in enumerate(at(flat)):
        path = "".join(f"M{a:g} {b:g}L{c:g} {d:g}" for (a, b), (c, d) in lines)
        faint = "" if k == len(q) - 1 else ' opacity="0.25"'
        parts.append(
            f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round"{faint}/>'
        )
    parts += [f'<circle cx="{x:g}" cy="{y:g}" r="2.5" fill="gray" stroke="currentColor"/>' for x, y in at(dots[-1])]
    label = escape(f"picture of '{robot.name}'", quote=True)
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" {size}>{"".join(parts)}</svg>'


def _side_by_side(image: str, text: str) -> str:
    return f'<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:center">{image}<div>{text}</div></div>'
