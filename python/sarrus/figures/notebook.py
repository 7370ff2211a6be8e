"""Representations of mechanisms and trajectories in a notebook: a small picture and a summary."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from .._arrays import Array
from .._showing import table
from ..analysis.joint_targets import start_near
from ..errors import SarrusError
from ..mechanism import Mechanism
from .canvas import _box, _view
from .skeleton import Skeleton

if TYPE_CHECKING:
    from ..simulation.trajectory import Trajectory

SIZE, MARGIN = 220.0, 12.0  # size and margin of a picture [px]
MOST_LINES = 24  # largest number of lines of a printed tree
MOST_BARS = 2000  # largest number of bars in a picture


def mechanism(robot: Mechanism) -> str:
    """Return HTML with the picture of a mechanism at home and its tree."""
    try:
        q = robot.assemble() if robot.nc else start_near(robot, None, {}, 0.0)
    except SarrusError:  # the picture shows the open loops; `sarrus info` and `sarrus check` report the error
        q = start_near(robot, None, {}, 0.0)
    lines = str(robot).split("\n")
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"... and {len(lines) - MOST_LINES} lines more: print(robot)"]
    return _side_by_side(picture(robot, q[None]), f'<pre style="margin:0">{escape(chr(10).join(lines))}</pre>')


def trajectory(run: Trajectory) -> str:
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
