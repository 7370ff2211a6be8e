"""Curves in the style of textbook figures, pictures and films, drawn with Matplotlib."""

from __future__ import annotations

import base64
import html
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, NDArray, check_mapping, checked_path, real_array
from .._files import needed, replacing
from ..errors import ShapeError
from .skeleton import FLAT

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


SIZE = (6.4, 4.0)  # size of a figure [in], which fits a phone's screen or a column in print
FONT = 11.0  # font size [pt]
# up to FEW lines differ by dashes only. If there are more, they differ by colours that colour-blind readers distinguish (Okabe and Ito), and then
# also by dashes
FEW = 5
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "black")
DASHES: tuple[Any, ...] = (
    "-", (0, (6, 2)), (0, (1.2, 1.4)), (0, (7, 1.8, 1.4, 1.8)), (0, (3, 1.5)), (0, (7, 1.6, 1.4, 1.6, 1.4, 1.6)), (0, (12, 3)),
)  # fmt: skip


def curves(t: Array, lines: Mapping[str, Array], y_label: str, *, ax: Axes | None = None, log: bool = False) -> Axes:
    """Draw curves (n,) over times t (n,) [s]. Their names are at the right ends of the lines or, if these overlap, in a legend above.

    Parameters
    ----------
    lines : name -> values (n,); lines are broken at values that are not finite
    y_label : quantity and units
    ax : axes to draw on; default: those of a new figure
    log : True for a logarithmic axis, unless all values are zero
    """
    check_mapping("lines", lines, "names to values", 0)
    t = real_array("t", t)
    for name, y in lines.items():
        if t.ndim != 1 or np.shape(y) != t.shape:
            raise ShapeError(f"t and line '{name}' must both be (n,); got {t.shape} and {np.shape(y)}")
    new, ax = ax is None, axes_of(ax)
    before = len(ax.lines)
    drawn = _strokes(ax, {name: (t, y) for name, y in lines.items()})
    if log and any((y > 0.0).any() for y in lines.values()):
        ax.set_yscale("log")
    if len(t) > 1 and t[-1] > t[0] and not before:
        ax.set_xlim(t[0], t[-1])
    _dressed(ax, "t [s]", y_label)
    # write names at the ends of the curves only if a layout engine reserves space for them, to the right of the axes
    has_layout = ax.figure.get_layout_engine() is not None
    if len(drawn) < 2 or not (has_layout and _name_at_the_ends(ax, drawn)):
        _legend(ax, drawn, new)
    return ax


def bundles(
    t: Array, panels: Mapping[str, Mapping[str, Array]], quantiles: Array, lines: int, ax: Axes | None = None
) -> Axes:
    """Draw the distribution of runs (runs, n) over times t (n,) [s].

    Bands are between quantiles, the outer bands fainter; the middle quantile is a line.

    Parameters
    ----------
    panels : unit -> (name -> values (runs, n)); NaN outside the time of a run
    quantiles : ascending quantiles, from 0 to 1
    lines : number of single runs to draw as thin lines
    """
    all_axes = _panels(len(panels)) if ax is None else [axes_of(ax)]
    for panel, (unit, bundles_of_unit) in zip(all_axes, panels.items(), strict=False):
        for k, (name, y) in enumerate(bundles_of_unit.items()):
            colour = _style(k)[0]
            covered = np.isfinite(y).any(axis=0)
            at = np.full((len(quantiles), len(t)), np.nan)
            at[:, covered] = np.nanquantile(y[:, covered], quantiles, axis=0)
            pairs = len(quantiles) // 2
            for n in range(pairs):
                panel.fill_between(t, at[n], at[-1 - n], color=colour, alpha=0.35 / pairs, linewidth=0)
            for row in y[np.linspace(0, len(y) - 1, min(lines, len(y))).astype(int)] if len(y) else ():
                panel.plot(t, row, color=colour, linewidth=0.5, alpha=0.5)
            middle = at[len(quantiles) // 2] if len(quantiles) % 2 else np.full(len(t), np.nan)
            panel.plot(t, middle, color=colour, linestyle=_style(k)[1], linewidth=1.4, label=literal(name))
        only = f"{next(iter(bundles_of_unit))} " if len(bundles_of_unit) == 1 else ""
        _dressed(panel, "t [s]", f"{only}[{unit}]")
        _legend(panel, [line for line in panel.lines if not str(line.get_label()).startswith("_")], len(panels) == 1)
        if len(panels) > 1:
            panel.label_outer()
    return all_axes[0]


def portrait(paths: Mapping[str, tuple[Array, Array]], x_label: str, y_label: str, *, ax: Axes | None = None) -> Axes:
    """Draw paths (x (n,), y (n,)) in a plane, such as velocities over coordinates, with a dot at their first points."""
    new, ax = ax is None, axes_of(ax)
    drawn = _strokes(ax, paths, dots=True)
    _dressed(ax, x_label, y_label)
    _legend(ax, drawn, new)
    return ax


def polar(paths: Mapping[str, tuple[Array, Array]], label: str, ax: Axes | None = None) -> Axes:
    """Draw paths (angle (n,) [rad], radius (n,)) in polar coordinates, with a dot at their first points."""
    new, ax = ax is None, axes_of(ax, figsize=(4.8, 5.0), subplot_kw={"projection": "polar"})
    if ax.name != "polar":
        raise ValueError('ax must be polar axes: pyplot.subplots(subplot_kw={"projection": "polar"})')
    drawn = _strokes(ax, paths, dots=True)
    ax.grid(color="0.88", linewidth=0.6)
    ax.tick_params(labelsize=FONT)
    ax.set_xlabel(literal(f"{next(iter(paths))}: {label}" if len(paths) == 1 else label), fontsize=FONT)
    _legend(ax, drawn, new)
    return ax


def axes_of(ax: Axes | None, **look: Any) -> Axes:
    """Return the given axes, or those of a new figure."""
    axes = _panels(1, **look)[0] if ax is None else ax
    if not hasattr(axes, "add_line"):
        raise TypeError(f"ax must be Matplotlib Axes; got {ax!r}")
    return axes


def _panels(count: int, **look: Any) -> list[Axes]:
    """Return the axes of a new figure, one above the other."""
    look = {"figsize": (SIZE[0], SIZE[1] * max(1.0, 0.75 * count)), "layout": "constrained", "sharex": True} | look
    return list(_pyplot("figures").subplots(max(count, 1), squeeze=False, **look)[1][:, 0])


def _strokes(ax: Axes, paths: Mapping[str, tuple[Array, Array]], *, dots: bool = False) -> list[Line2D]:
    """Draw lines in styles that differ from each other and from the lines already on the axes; `dots` marks their first points."""
    before = len(ax.lines)
    drawn: list[Line2D] = []
    for k, (name, (x, y)) in enumerate(paths.items(), before):
        colour, dashes = ("black", DASHES[k]) if before + len(paths) <= FEW else _style(k)
        drawn += ax.plot(
            x, y, color=colour, linestyle=dashes, linewidth=1.1 if colour == "black" else 1.4, label=literal(name)
        )
    for line in drawn if dots else ():
        ax.plot(*np.transpose(line.get_xydata())[:, :1], "o", color=line.get_color(), markersize=4.5)
    return drawn


def literal(text: str) -> str:
    """Return a text escaped for Matplotlib, so that a dollar in a name does not begin a formula."""
    return text.replace("$", r"\$")


def _style(k: int) -> tuple[str, Any]:
    return COLOURS[k % len(COLOURS)], DASHES[k // len(COLOURS) % len(DASHES)]


def _dressed(ax: Axes, x_label: str, y_label: str) -> None:
    ax.grid(color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=FONT)
    ax.yaxis.get_offset_text().set_fontsize(FONT)
    ax.set_xlabel(literal(x_label), fontsize=FONT)
    ax.set_ylabel(literal(y_label), fontsize=FONT)


def _legend(ax: Axes, drawn: list[Line2D], new: bool) -> None:
    """Add a legend of several curves above them, in as many columns as fit; a new figure becomes higher for a long legend."""
    if len(drawn) < 2:
        return
    widest = max(len(str(line.get_label())) for line in drawn) * 0.55 * FONT + 45.0  # [pt], including the dashes
    room = ax.get_window_extent().width * 72.0 / ax.figure.dpi
    columns = int(np.clip(room // widest, 1, len(drawn)))
    if new:
        width, height = ax.figure.get_size_inches()  # type: ignore[union-attr]
        longer = 1.5 * FONT / 72.0 * max(0, -(-len(drawn) // columns) - 2)
        ax.figure.set_size_inches(width, height + longer)  # type: ignore[union-attr]
    above = 1.0 if ax.name != "polar" else 1.1
    ax.legend(
        handles=drawn, loc="lower left", bbox_to_anchor=(0.0, above), ncols=columns, frameon=False, fontsize=FONT,
        handlelength=2.6, borderaxespad=0.2, columnspacing=1.2,
    )  # fmt: skip


def facing(t: Array, sides: Mapping[str, Mapping[str, Array]], ax: Axes | None = None) -> Axes:
    """Draw curves of two units over times t (n,) [s], black for the left axis, blue for the right one; return the left axes.

    Parameters
    ----------
    sides : two quantities with their units, left and right -> (name -> values (n,)), as for :func:`curves`
    ax : axes to draw on; default: those of a new figure
    """
    new, left = ax is None, axes_of(ax)
    right = left.twinx()
    drawn: list[Line2D] = []
    for side, colour, (y_label, lines) in zip((left, right), ("black", COLOURS[0]), sides.items(), strict=True):
        for dashes, (name, y) in zip(DASHES, lines.items(), strict=False):
            drawn += side.plot(t, y, color=colour, linestyle=dashes, linewidth=1.4, label=literal(name))
        _dressed(side, "t [s]", y_label)
        side.yaxis.label.set_color(colour)
    right.grid(visible=False)  # because one grid cannot match the ticks of both axes
    right.spines["right"].set(visible=True, color=colour)
    right.tick_params(axis="y", colors=colour)
    if len(t) > 1 and t[-1] > t[0]:
        left.set_xlim(t[0], t[-1])
    if max(map(len, sides.values())) > 1:  # otherwise the labels of the axes contain the names
        _legend(left, drawn, new)
    return left


def stacked(t: Array, panels: Mapping[str, Mapping[str, Array]]) -> Axes:
    """Draw curves over times t (n,) [s] in panels, one unit in each, one above the other; return the upper axes.

    Parameters
    ----------
    panels : quantity and unit -> (name -> values (n,)), as for :func:`curves`
    """
    axes = _panels(len(panels))
    for ax, (y_label, lines) in zip(axes, panels.items(), strict=True):
        curves(t, lines, y_label, ax=ax)
        ax.label_outer()
    return axes[0]


def _pyplot(purpose: str) -> Any:
    return needed("matplotlib.pyplot", f"{purpose} need matplotlib", "matplotlib")


def _name_at_the_ends(ax: Axes, lines: list[Line2D]) -> bool:
    """Write each line's name at its right end and return True; return False without text if names would overlap."""
    gap = 1.15 * FONT * ax.figure.dpi / 72.0  # smallest distance between lines of text, in pixels
    ends = []
    for line in lines:
        x, y = np.asarray(line.get_xdata(), np.float64), np.asarray(line.get_ydata(), np.float64)
        shown = np.isfinite(y) & (y > 0.0 if ax.get_yscale() == "log" else True)
        if not shown.any() or not shown[-1]:
            return False
        ends.append((x[-1], y[-1]))
    if len({x for x, _ in ends}) > 1 or len(ax.lines) > len(lines) or len(lines) * gap > ax.get_window_extent().height:
        return False
    ax.autoscale_view()
    height = ax.transData.transform(ends)[:, 1]
    order = np.argsort(height, kind="stable")
    # from the lowest name upward, each name is raised until the gap to the name below is large enough; then all names are lowered by their mean
    # displacement
    placed = height[order]
    for k in range(1, len(placed)):
        placed[k] = max(placed[k], placed[k - 1] + gap)
    placed -= (placed - height[order]).mean()
    # names at the ends would be ambiguous for curves that end at nearly the same value
    if np.abs(placed - height[order]).max() > 0.75 * gap or np.diff(height[order]).min() < 0.2 * gap:
        return False
    for k, at in zip(order, placed, strict=True):
        up = (at - height[k]) * 72.0 / ax.figure.dpi
        ax.annotate(
            str(lines[k].get_label()), ends[k], xytext=(4.0, up), textcoords="offset points",
            va="center", fontsize=FONT, annotation_clip=False,
        )  # fmt: skip
    return True


EDGE = "#3d4450"  # edges of bars and joints, in the colour of the viewer's pins
NO_POINTS, NO_ARROWS = np.empty((1, 0, 3)), np.empty((1, 0, 2, 3))


@dataclass(frozen=True, eq=False)
class Shown:
    """Lines and points with which a mechanism is drawn in f configurations.

    Attributes
    ----------
    bars : (f, s, 2, 3) ends of s bars in the world [m]
    colors : (s, 3) colours of the bars, from 0 to 1
    slender : (s,) True for bars that slide along other bars
    boxes : (s,) True for edges of boxes, which may extend beyond the picture
    joints, anchors : (f, j, 3) marks of moving joints, and (k, 3) marks of fixed ones, in the world [m]
    traces : (f, p, 3) points whose paths are drawn, in the world [m]
    arrows : (f, m, 2, 3) tails and tips of force arrows, in the world [m]
    names, force : (m,) names of the arrows, and force that an arrow of one metre represents [N/m]
    labels : name -> index of the bar that has this label
    """

    bars: Array
    colors: Array
    slender: NDArray[np.bool_]
    boxes: NDArray[np.bool_]
    joints: Array
    anchors: Array
    traces: Array = field(default_factory=lambda: NO_POINTS)
    arrows: Array = field(default_factory=lambda: NO_ARROWS)
    names: tuple[str, ...] = ()
    force: float = 1.0
    labels: Mapping[str, int] = field(default_factory=dict)

    @property
    def view(self) -> Array:
        rest = self.bars if self.boxes.all() else self.bars[:, np.flatnonzero(~self.boxes)]
        return _view(rest, self.joints, self.anchors, self.traces)

    def flat(self, view: Array) -> Shown:
        """Return a copy in which all points are projected onto the plane of `view` (2, 3) and have two coordinates."""
        names = ("bars", "joints", "anchors", "traces", "arrows")
        return replace(self, **{name: getattr(self, name) @ view.T for name in names})


class Drawing:
    """Drawing of a mechanism on axes: bars in the colours of their bodies, joints, anchors, traces, and arrows with the magnitudes of forces."""

    def __init__(self, ax: Axes, shown: Shown, view: Array, opacity: float = 1.0) -> None:
        from matplotlib.collections import LineCollection

        if opacity != 1.0:  # only the opaque configuration is labelled
            shown = replace(shown, names=(), labels={})
        self._flat, self._long = shown.flat(view), np.linalg.norm(np.diff(shown.arrows, axis=2)[..., 0, :], axis=-1)
        width = np.where(shown.slender, 2.4, 5.5)
        look: dict[str, Any] = {"capstyle": "round", "alpha": opacity}
        edges = LineCollection([], colors=EDGE, linewidths=width + 1.5, zorder=2, **look)
        bars = LineCollection([], colors=shown.colors, linewidths=width, zorder=2.1, **look)
        self._bars = [edges, bars]
        for lines in self._bars:
            ax.add_collection(lines)
        support = [(0.0, 0.0), (-0.7, -1.2), (0.7, -1.2), (0.0, 0.0)]
        if opacity == 1.0:
            ax.plot(*self._flat.anchors.T, marker=support, linestyle="", color="0.55", markersize=24, zorder=0)
        (self._marks,) = ax.plot(
            [], [], "o", color=EDGE, markerfacecolor="white", markersize=5.0, zorder=2.5, alpha=opacity
        )
        paths = range(shown.traces.shape[1]) if opacity == 1.0 else ()
        self._trails = [ax.plot([], [], color=COLOURS[n % 6], linewidth=1.4, zorder=1)[0] for n in paths]
        self._quiver: Any = None
        if shown.names:
            look = {"color": COLOURS[1], "angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.006, "zorder": 3}
            tails, tips = self._flat.arrows[0].swapaxes(0, 1)
            self._quiver = ax.quiver(*tails.T, *(tips - tails).T, **look)
        if opacity == 1.0:
            _scale(ax, 0, 0.2 * float(np.ptp(ax.get_xlim())), 1.0, "m", EDGE)
            _directions(ax, view)
        if shown.names and (longest := float(self._long.max(initial=0.0))) > 0.0:
            _scale(ax, 1, longest, shown.force, "N", COLOURS[1])
        offset: dict[str, Any] = {"xytext": (5.0, 5.0), "textcoords": "offset points", "annotation_clip": False}
        offset["zorder"] = 4
        self._sizes = [ax.annotate("", (0, 0), fontsize=0.8 * FONT, color=COLOURS[1], **offset) for _ in shown.names]
        self._labels = [ax.annotate(literal(name), (0, 0), fontsize=0.8 * FONT, **offset) for name in shown.labels]

    def show(self, k: int) -> list[Any]:
        """Draw configuration k, and return the changed artists."""
        flat = self._flat
        for lines in self._bars:
            lines.set_segments(list(flat.bars[k]))
        self._marks.set_data(*flat.joints[k].T)
        for n, trail in enumerate(self._trails):
            trail.set_data(*flat.traces[: k + 1, n].T)
        if self._quiver is not None:
            self._quiver.set_offsets(flat.arrows[k, :, 0])
            self._quiver.set_UVC(*(flat.arrows[k, :, 1] - flat.arrows[k, :, 0]).T)
        for n, (text, name) in enumerate(zip(self._sizes, flat.names, strict=True)):
            text.xy = tuple(flat.arrows[k, n, 1])
            text.set_text(f"{literal(name)} {self._long[k, n] * flat.force:.3g} N")
        for text, bar in zip(self._labels, flat.labels.values(), strict=True):
            text.xy = tuple(flat.bars[k, bar].mean(axis=0))
        arrows = [] if self._quiver is None else [self._quiver]
        return [*self._bars, self._marks, *self._trails, *arrows, *self._sizes, *self._labels]


def film(
    t: Array, shown: Shown, title: str, frames_per_second: float, path: str | os.PathLike[str] | None = None,
    clock: tuple[str, str] = ("t", "s"),
) -> FuncAnimation:  # fmt: skip
    """Return an animation of a mechanism.

    A planar mechanism is seen along the world's axis that is normal to its plane, a spatial one obliquely from above.

    Parameters
    ----------
    t : (f,) values of the clock, which is displayed above the picture
    path : file to write, .gif, .mp4 or .html; None for no file
    clock : name and unit of the clock's values
    """
    ending = None if path is None else check_film(path)
    pyplot = _pyplot("films")
    from matplotlib import animation, get_backend
    from matplotlib.figure import Figure

    # pyplot is used only if a window is needed. A notebook would show a pyplot figure in addition to the film, and a file needs no window
    window = path is None and get_backend().lower().rsplit("_", 1)[-1] not in ("inline", "agg")
    view = shown.view
    ax = _stage(pyplot.figure if window else Figure, shown.flat(view))
    drawing, places = Drawing(ax, shown, view), _decimals(t)
    caption = ax.set_title("", fontsize=FONT, loc="left")

    def draw(k: int) -> list[Any]:
        caption.set_text(f" {literal(title)}   {literal(clock[0])} = {t[k]:.{places}f} {clock[1]}")
        return [caption, *drawing.show(k)]

    def page() -> str:
        return player(t, shown, title, frames_per_second, clock)

    class Gif(animation.PillowWriter):
        """Writer of GIFs. Durations of pictures are rounded to hundredths of a second, such that their sum is exact."""

        def finish(self) -> None:
            first, *rest = frames = list(vars(self)["_frames"])
            ends = 10 * np.rint(np.arange(len(frames) + 1) * 100.0 / frames_per_second).astype(int)
            first.save(self.outfile, save_all=True, append_images=rest, duration=np.diff(ends).tolist(), loop=0)

    class Film(animation.FuncAnimation):
        """Matplotlib animation that a notebook shows as a player."""

        def _repr_html_(self) -> str:
            return f'<iframe srcdoc="{html.escape(page())}" style="width:100%;max-width:44em;height:34em;border:0"></iframe>'

        # disables matplotlib's warning about an animation that was never drawn; the player draws the pictures itself
        def __del__(self) -> None:
            pass

    draw(0)
    interval = 1000.0 / frames_per_second
    result: FuncAnimation = Film(ax.figure, draw, frames=len(t), interval=interval, cache_frame_data=False)  # type: ignore[arg-type]
    if path is not None:
        with replacing(path) as file:
            if ending == ".html":
                file.write_text(page(), encoding="utf-8")
            else:
                writer = Gif if ending == ".gif" else animation.FFMpegWriter
                result.save(os.fspath(file), writer=writer(fps=frames_per_second), dpi=100)  # type: ignore[arg-type]
    return result


def _stage(figure: Any, flat: Shown) -> Axes:
    """Return axes without ticks that fill a new figure, with room for a line of text above."""
    low, high = _corners(flat)
    width, height = high - low
    size = SIZE[0] * np.array([width, height]) / max(width, height)
    # even numbers of pixels, which video encoders require
    size = np.round(np.maximum(size + np.array([0.0, TITLE]), 2.5) * 50.0) / 50.0
    ax: Axes = figure(figsize=tuple(size)).add_axes((0.0, 0.0, 1.0, 1.0 - TITLE / size[1]))
    return _framed(ax, low, high)


TITLE = 0.35  # height of the line of text above the picture [in]
GIF_RATE = 50.0  # largest frame rate [1/s], because browsers show pictures that are shorter than 0.02 s for 0.1 s


def _corners(flat: Shown) -> tuple[Array, Array]:
    """Return the corners of the bounding box of all lines and points, with a margin and room for scales."""
    low, high = _box(flat.bars, flat.joints, flat.anchors, flat.traces, flat.arrows)
    margin = 0.07 * float((high - low).max()) or 1.0
    return low - [margin, 2.0 * margin], high + margin  # below, there is room for scales


def _framed(ax: Axes, low: Array, high: Array) -> Axes:
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def _scale(ax: Axes, row: int, longest: float, unit: float, name: str, color: str) -> None:
    """Draw a bar of a round size, at most `longest` [m], in the lower left corner; `unit` : its size for a metre."""
    value = round_length(unit * longest)
    (x, right), (y, top), long = ax.get_xlim(), ax.get_ylim(), value / unit
    x, y = x + 0.03 * (right - x), y + (0.03 + 0.05 * row) * (top - y)
    ax.plot([x, x + long], [y, y], color=color, marker="|", linewidth=1.4, zorder=4)
    ax.text(x + long, y, f"  {value:g} {name}", va="center", fontsize=0.8 * FONT, color=color)


def round_length(x: float) -> float:
    """Return the largest number of the form 1, 2 or 5 times a power of ten that is at most x.

    >>> from sarrus.figures.canvas import round_length
    >>> round_length(0.7)
    0.5
    """
    power = 10.0 ** math.floor(math.log10(x))
    return max(k for k in (1.0, 2.0, 5.0) if k * power <= x * (1 + 1e-9)) * power


def _directions(ax: Axes, view: Array) -> None:
    """Draw the axes of the world as arrows in the lower right corner; an axis normal to the picture is left out."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    tips = 0.05 * max(right - left, high - low) * view.T
    origin = np.array([right - 0.04 * (right - left), low + 0.03 * (high - low)]) - [
        max(tips[:, 0].max(), 0.0), min(tips[:, 1].min(), 0.0)
    ]  # fmt: skip
    look: dict[str, Any] = {"arrowstyle": "-|>", "color": EDGE, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 8}
    for name, tip in zip("xyz", tips, strict=True):
        if np.linalg.norm(tip) > 0.1 * np.linalg.norm(tips, axis=1).max():
            ax.annotate("", origin + tip, origin, arrowprops=look, zorder=4)
            x, y = (origin + 1.3 * tip).tolist()
            ax.text(x, y, name, ha="center", va="center", fontsize=0.8 * FONT, color=EDGE)


def moment_arc(ax: Axes, view: Array, at: Array, moment: Array, radius: float) -> None:
    """Draw a moment (3,) [N m] as an arc around `at` (3,) [m], in the plane normal to it, with an arrowhead in its right-handed direction."""
    axis = moment / np.linalg.norm(moment)
    first = np.cross(axis, np.eye(3)[np.abs(axis).argmin()])
    first /= np.linalg.norm(first)
    angle = np.linspace(0.0, np.radians(300.0), 61)[:, None]
    arc = (at + radius * (np.cos(angle) * first + np.sin(angle) * np.cross(axis, first))) @ view.T
    look: dict[str, Any] = {"arrowstyle": "-|>", "color": COLOURS[1], "shrinkA": 0, "shrinkB": 0, "mutation_scale": 14}
    ax.plot(*arc[:-4].T, color=COLOURS[1], linewidth=1.4, zorder=3)
    ax.annotate("", arc[-1], arc[-5], arrowprops=look, zorder=3)


def _decimals(t: Array) -> int:
    """Return the number of decimals of a clock that resolves a hundredth of its range."""
    return int(np.clip(np.ceil(-np.log10((t[-1] - t[0]) / 100.0)), 0, 6)) if t[-1] > t[0] else 3


def check_film(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a film's file; raise ValueError, ImportError or FileNotFoundError if it cannot be written."""
    film = checked_path(path)
    ending = film.suffix.lower()
    if ending not in (".gif", ".mp4", ".html"):
        raise ValueError(f"path of a film must end in .gif, .mp4 or .html; got '{film.name}'")
    _pyplot("films")
    from matplotlib.animation import FFMpegWriter

    if ending == ".mp4" and not FFMpegWriter.isAvailable():
        raise FileNotFoundError("program ffmpeg not found; .mp4 films need it, .gif and .html do not")
    return ending


def _box(*points: Array) -> tuple[Array, Array]:
    """Return the lowest and highest corner of the bounding box of points (..., k)."""
    together = np.concatenate([x.reshape(-1, x.shape[-1]) for x in points])
    return together.min(axis=0), together.max(axis=0)


def _view(*points: Array) -> Array:
    """Return the picture's rightward and upward axes (2, 3) in the world."""
    low, high = _box(*points)
    flat = high - low <= FLAT * (high - low).max()
    for across, axes in ((1, (0, 2)), (0, (1, 2)), (2, (0, 1))):
        if flat[across]:
            return np.eye(3)[list(axes)]
    a, e = np.radians(-60.0), np.radians(25.0)
    return np.array([[-np.sin(a), np.cos(a), 0.0], [-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)]])


def player(t: Array, shown: Shown, title: str, frames_per_second: float, clock: tuple[str, str]) -> str:
    """Return a self-contained HTML page that plays the motion; dragging rotates the view. Arguments are those of :func:`film`."""
    points = {name: getattr(shown, name) for name in ("bars", "joints", "anchors", "traces", "arrows")}
    low, high = _box(*points.values())
    centre, size = (low + high) / 2.0, float(np.linalg.norm(high - low)) or 1.0

    def numbers(x: Array) -> str:
        return base64.b64encode(np.rint((x - centre) / size * 60000.0).astype("<i2").tobytes()).decode()

    data = {
        "t": t.round(6).tolist(),
        **{name: numbers(x) for name, x in points.items()},
        "count": [points[name].shape[name != "anchors"] for name in points],
        "half": ((high - low) / 2.0 / size * 60000.0).tolist(),
        "inks": [_hex(color) for color in shown.colors],
        "slender": shown.slender.tolist(),
        "names": shown.names,
        "labels": list(shown.labels.items()),
        "force": shown.force * size / 60000.0,
        "metre": 60000.0 / size,
        "colours": COLOURS[:6],
        "clock": clock,
        "view": shown.view.tolist(),
        "rate": frames_per_second,
    }
    # "<" is escaped, so that data cannot open a tag. All placeholders are replaced in one substitution, so that a name that contains a placeholder is
    # not replaced
    words = {"$TITLE": html.escape(title), "$DATA": json.dumps(data).replace("<", "\\u003c")}
    page = Path(__file__).with_name("player.html").read_text(encoding="utf-8")
    return re.sub(r"\$(TITLE|DATA)", lambda at: words[at[0]], page)


def _hex(color: Array) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in color)
