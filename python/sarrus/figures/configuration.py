"""A mechanism in one configuration or several, moved along by a joint, and the polygons of its velocities and accelerations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, ArrayLike, check_mapping, checked_names, real_rows
from ..errors import AssemblyError, BranchEnd, ModelError, ShapeError
from . import canvas
from .figures import arrows_of, drawn, force_at
from .skeleton import Skeleton

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

    from ..mechanism import Mechanism

GHOSTS = 24  # configurations beside the last one
STEPS = 60  # from where a joint stands to each end of its way
IN_PLANE = 1e-6  # how far a motion may leave a plane, of itself


def plot(
    robot: Mechanism, q: ArrayLike | None, v: ArrayLike | None, a: ArrayLike | None, trace: str | Sequence[str],
    wrenches: Mapping[str, ArrayLike] | None, labels: bool, drive: str | None, ax: Axes | None,
) -> Axes | FuncAnimation:  # fmt: skip
    """See :meth:`Mechanism.plot`."""
    names = checked_names("trace", trace)
    configurations = np.atleast_2d(real_rows("q", robot.assemble() if q is None else q, robot.nq))
    if configurations.ndim > 2 or not len(configurations):
        raise ShapeError(f"q has shape {configurations.shape}; a picture shows (nq,) or (n, nq), nq = {robot.nq}")
    if drive is not None:
        way, q_way = _way(robot, configurations[-1], drive)
        unit = robot.joint(drive).type.coordinates[0][1]
        return canvas.film(way, drawn(robot, q_way, names), robot.name, 20.0, clock=(drive, unit))
    if a is not None and v is None:
        raise ValueError("accelerations are drawn with the velocities: give v, too")
    if v is not None and (len(configurations) > 1 or ax is not None):
        raise ValueError("velocities are drawn of one configuration, in a figure of their own")
    rates = [real_rows(name, x, robot.nv) for name, x in (("v", v), ("a", a)) if x is not None]
    for x in rates:
        if math.prod(x.shape[:-1]) != 1:
            raise ShapeError(f"velocities are drawn of one configuration; got those of {x.shape[:-1]}")
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
        canvas._framed(canvas._axes(ax), *canvas._corners(shown.flat(view)))
    last = len(configurations) - 1
    for k in np.unique(np.linspace(0, last, GHOSTS + 1).astype(int))[:-1]:
        canvas.Drawing(ax, shown, view, 0.2).show(int(k))
    canvas.Drawing(ax, shown, view).show(last)
    named = Skeleton(robot).joint_points(configurations[-1]) if labels or panels > 1 else {}
    for text, at in [*moments, *_together(named)]:
        _label(ax, text, view @ at)
    ax.set_title(f" {robot.name}", fontsize=canvas.FONT, loc="left")
    return ax


def _label(ax: Any, text: str, at: Array) -> None:
    ax.annotate(text, at, (6.0, -11.0), textcoords="offset points", fontsize=0.8 * canvas.FONT, zorder=4)


def _together(points: Mapping[str, Array]) -> list[tuple[str, Array]]:
    """Names of points (d,), those at one place in one text, and where that is."""
    places: dict[tuple[float, ...], list[str]] = {}
    largest = max((float(np.abs(at).max()) for at in points.values()), default=0.0) or 1.0
    for name, at in points.items():
        places.setdefault(tuple((at / largest).round(6) + 0.0), []).append(name)
    return [(", ".join(names), np.array(at) * largest) for at, names in places.items()]


def _loads(robot: Mechanism, q: Array, wrenches: Mapping[str, ArrayLike] | None) -> tuple[tuple[Any, ...], list[Any]]:
    """Arrows of forces with names and scale, if there are any, and moments as texts and places."""
    check_mapping("wrenches", wrenches, "frames to (6,) or (n, 6)", 0, optional=True)
    forces, moments = np.zeros((len(q), len(wrenches or ()), 2, 3)), []
    for n, (frame, wrench) in enumerate((wrenches or {}).items()):
        load, poses = real_rows(f"wrench on '{frame}'", wrench, 6), robot.pose(q, frame)
        if load.shape not in ((6,), (len(q), 6)):
            raise ShapeError(f"the wrench on '{frame}' is (6,), or ({len(q)}, 6) as q is; got {load.shape}")
        load = np.broadcast_to(load, (len(q), 6))
        forces[:, n, 0], forces[:, n, 1] = force_at(poses, load)
        if load[-1, :3].any():
            moments.append((f"{frame} {np.linalg.norm(load[-1, :3]):.3g} N m", poses[-1, :3, 3]))
    arrows, a_metre = arrows_of(forces, Skeleton(robot).size)
    return ((arrows, tuple(wrenches), a_metre) if wrenches else ()), moments


def _way(robot: Mechanism, q: Array, name: str) -> tuple[Array, Array]:
    """Values (f,) of a joint from one end of its way through q to the other, and the configurations (f, nq)."""
    joint, now = robot.joint(name), robot.joint_states(q).q[name]
    if len(now) != 1:
        raise ModelError(f"joint '{name}' has {len(now)} coordinates; one that drives a picture has one")
    reach = np.pi if joint.type.coordinates[0][1] == "rad" else Skeleton(robot).size
    ends = [now[0] - reach, now[0] + reach]
    if joint.type.limits is not None:
        ends = np.clip(ends, *(limit[0] for limit in joint.type.limits)).tolist()
    halves = []
    for end in ends:
        try:
            halves.append(robot.follow({name: np.linspace(now[0], end, STEPS)}, near=q))
        except BranchEnd as stopped:
            halves.append(stopped.path)
        except AssemblyError:  # it cannot even begin
            halves.append(q[None])
    values = [np.linspace(now[0], end, STEPS)[: len(half)] for end, half in zip(ends, halves, strict=True)]
    back, forth = slice(None, 0, -1), slice(None)
    whole, path = (np.concatenate([x[0][back], x[1][forth]]) for x in (values, halves))
    return whole, path


# ---- polygons --------------------------------------------------------------------------------------------------------


def _polygon(ax: Any, robot: Mechanism, q: Array, rates: list[Array], view: Array) -> None:
    """Images of the joints' places, and of bars, from a pole: of velocities, or with those of accelerations of these."""
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
                f"'{robot.name}' does not move in a plane of two of the world's axes, which a polygon shows"
            )
    for bar in skeleton.bars:
        first, second = view @ image(bar.first), view @ image(bar.second)
        look: dict[str, Any] = {"color": np.array(skeleton.colors[bar.owner]) / 255.0, "zorder": 2}
        ax.plot(*np.transpose([first, second]), linewidth=3.0, linestyle=":" if bar.slides else "-", **look)
        if order == 2 and not bar.slides and bar.first[0] == bar.second[0]:
            w = motions[bar.owner][0][:3] if bar.owner in motions else np.zeros(3)
            R = robot.pose(q, bar.first[0])[:3, :3]
            normal = view @ np.cross(w, np.cross(w, R @ (bar.second[1] - bar.first[1])))
            way = np.transpose([first, first + normal, second])
            ax.plot(*way, linewidth=1.0, linestyle="--", color=canvas.EDGE, zorder=3)
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
    """Velocity and classical acceleration (6,) of a body's frame, along the world's axes; zeros for what is not told."""
    V = robot.velocity(q, rates[0], body, expressed_in="world_aligned")
    if len(rates) == 1:
        return V, np.zeros(6)
    return V, robot.acceleration(q, rates[0], rates[1], body, expressed_in="world_aligned")
