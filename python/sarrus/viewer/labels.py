"""Names of bodies, joints and frames, placed without overlaps in each page's picture."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array
from ..spatial import Rotation

# [px] dimensions of viser's labels: height of the box, width of a character, padding
HEIGHT, LETTER, PADDING = 20.0, 7.0, 10.0
GAP = 4.0  # [px] between boxes
# directions and distances [px] of a name from its point, in the order of preference: nearest first, and sideways before above and below
DIRECTIONS = tuple((math.cos(k * math.pi / 4), math.sin(k * math.pi / 4)) for k in (0, 4, 7, 1, 5, 3, 2, 6))
AWAY = (14.0, 28.0, 46.0, 68.0, 94.0)


@dataclass(frozen=True, eq=False)
class Label:
    """Displayed name at a point (3,) [m] in a body's frame. All names of the same kind (bodies, joints, frames) are shown or hidden together."""

    kind: str
    text: str
    body: str
    point: Array


class Labels:
    """Names of a scene, placed separately for each page.

    Attributes
    ----------
    all : every :class:`Label`
    shown : the displayed kinds
    """

    def __init__(self, server: Any) -> None:
        self._server, self._lock = server, threading.Lock()
        self.all: list[Label] = []
        self.shown: set[str] = set()
        self._points = np.zeros((0, 3))
        # page -> (index of the label -> the label's nodes in viser)
        self._drawn: dict[int, dict[int, tuple[Any, Any]]] = {}
        server.on_client_connect(self._follow)
        server.on_client_disconnect(lambda client: self._drawn.pop(client.client_id, None))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of names in the scene."""
        return tuple(dict.fromkeys(label.kind for label in self.all))

    def show(self, poses: dict[str, Array]) -> None:
        """Move the names with the bodies: `poses` maps a body to its pose (4, 4)."""
        self._points = np.array([poses[a.body][:3, :3] @ a.point + poses[a.body][:3, 3] for a in self.all])
        self._place_all()

    def reveal(self, kind: str, visible: bool) -> None:
        """Show or hide the names of a kind."""
        (self.shown.add if visible else self.shown.discard)(kind)
        self._place_all()

    def _place_all(self) -> None:
        for client in self._server.get_clients().values():
            self._place(client)

    def _follow(self, client: Any) -> None:
        client.camera.on_update(lambda _: self._place(client))
        self._place(client)

    def _place(self, client: Any) -> None:
        with self._lock, client.atomic():
            drawn, camera = self._drawn.setdefault(client.client_id, {}), client.camera
            visible = [k for k, label in enumerate(self.all) if label.kind in self.shown]
            for k in set(drawn) - set(visible):
                for node in drawn.pop(k):
                    node.remove()
            if not visible:
                return
            w, x, y, z = camera.wxyz
            # rows: the camera's right, down and forward directions in the world
            axes = Rotation.from_quaternion([x, y, z, w]).matrix.T
            seen = (self._points[visible] - camera.position) @ axes.T
            depth = np.maximum(seen[:, 2], 1e-9)
            pixels = camera.image_height / (2 * math.tan(camera.fov / 2)) / depth  # pixels per metre at this depth
            middle = np.array([camera.image_width, camera.image_height]) / 2
            at = seen[:, :2] * pixels[:, None] + middle
            widths = np.array([LETTER * len(self.all[k].text) + PADDING for k in visible])
            ahead = seen[:, 2] > 0.0
            centres = spread(np.where(ahead[:, None], at, np.inf), widths, 2 * middle)
            placements = zip(visible, centres, at, pixels, self._points[visible], strict=True)
            for k, centre, anchor, per_metre, point in placements:
                if k not in drawn:
                    drawn[k] = self._draw(client, k)
                text, line = drawn[k]
                text.visible = line.visible = placed = bool(np.isfinite(centre).all())
                if placed:
                    text.position = point + (centre - anchor) / per_metre @ axes[:2]
                    line.points = np.array([[point, text.position]], dtype=np.float32)

    def _draw(self, client: Any, k: int) -> tuple[Any, Any]:
        text = client.scene.add_label(f"/names/{k}", self.all[k].text, anchor="center-center")
        leader = {"colors": (140, 144, 152), "thickness": 1.5, "thickness_units": "screen"}
        return text, client.scene.add_line_segments(f"/leaders/{k}", np.zeros((1, 2, 3)), **leader)


def spread(points: Array, widths: Array, area: Array) -> Array:
    """Return centres (k, 2) [px] for label boxes next to their points, such that boxes do not overlap.

    A label's centre is NaN if its point is outside the picture, or if no free position is near the point.

    Parameters
    ----------
    points : (k, 2) positions in the picture [px]
    widths : (k,) widths of the boxes [px]
    area : (2,) width and height of the picture [px]

    Examples
    --------
    >>> import numpy as np
    >>> from sarrus.viewer.labels import spread
    >>> spread(np.array([[100.0, 100.0], [100.0, 104.0]]), np.array([40.0, 40.0]), np.array([390.0, 844.0])).tolist()
    [[134.0, 100.0], [66.0, 104.0]]
    """
    middles = np.full(points.shape, np.nan)
    placed: list[tuple[Array, Array]] = []
    for k, (point, width) in enumerate(zip(points, widths, strict=True)):
        half = np.array([width, HEIGHT]) / 2
        if not (np.isfinite(point).all() and (point > 0).all() and (point < area).all()):
            continue
        for distance in AWAY:
            # directions are distances to the nearest side of a box; its centre is half a width farther away
            tried = point + [
                [x * (distance + half[0] * abs(x) ** 0.5), y * (distance + half[1])] for x, y in DIRECTIONS
            ]
            free = ((tried > half) & (tried < area - half)).all(axis=1)
            for middle, other in placed:
                free &= (np.abs(tried - middle) >= half + other + GAP).any(axis=1)
            if free.any():
                middles[k] = tried[np.argmax(free)]
                placed.append((middles[k], half))
                break
    return middles
