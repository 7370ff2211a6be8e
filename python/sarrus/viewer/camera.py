"""Cameras of a view: initial position, four presets, and adaptation to the panel of controls that covers a part of a phone's screen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arrays import Array

FOV = math.radians(32.0)
FILLED = 0.78  # fraction of the picture's width or height that the mechanism fills
PHONE = 576  # [px] in narrower pictures, viser draws the controls over the lower part
PRESETS = ("Front", "Side", "Top", "Iso")


class Camera:
    """Cameras of all pages, at a distance at which the given points (k, 3) [m] fill the picture.

    Attributes
    ----------
    sheet : height of the controls that cover the lower end of a phone's screen [px]
    """

    def __init__(self, server: Any, points: Array, up: Array) -> None:
        self._server, self._points, self._up = server, points, up
        self.sheet = 0.0
        extent = np.ptp(points, axis=0)
        self._span = float(np.linalg.norm(extent)) or 1.0
        self._home = _onto_most(extent, up)
        camera, (position, look_at) = server.initial_camera, self._placed(self._home, 1.3, 0.0)
        camera.fov, camera.near, camera.far = FOV, 0.01 * self._span, 100 * self._span
        camera.position, camera.look_at, camera.up = position, look_at, up
        self._placed_at: dict[int, tuple[str | None, int, int, Array]] = {}
        server.on_client_connect(self._follow)
        server.on_client_disconnect(lambda client: self._placed_at.pop(client.client_id, None))

    def home(self) -> None:
        """Reset the cameras of all pages."""
        for client in self._server.get_clients().values():
            self.look(client)

    def look(self, client: Any, preset: str | None = None) -> None:
        """Place a page's camera at one of the PRESETS, or at the initial position."""
        camera = client.camera
        on_phone = camera.image_width < PHONE and camera.aspect < 1.0
        covered = min(0.5, self.sheet / camera.image_height) if on_phone else 0.0
        away = self._home if preset is None else _away(preset, self._up)
        position, look_at = self._placed(away, camera.aspect, covered)
        camera.up_direction, camera.position, camera.look_at = self._up, position, look_at
        self._placed_at[client.client_id] = preset, camera.image_width, camera.image_height, position

    def _follow(self, client: Any) -> None:
        """Set a page's camera, and set it again when the picture's size changes, unless the user has moved the camera."""

        def resized(_: Any) -> None:
            # the last message of a page may arrive after it is closed
            preset, *size, position = self._placed_at.get(client.client_id, (None, 0, 0, np.full(3, np.inf)))
            untouched = np.linalg.norm(client.camera.position - position) < 1e-3 * self._span
            if untouched and size != [client.camera.image_width, client.camera.image_height]:
                self.look(client, preset)

        self.look(client)
        client.camera.on_update(resized)

    def _placed(self, away: Array, aspect: float, covered: float) -> tuple[Array, Array]:
        """Return position and look-at of a camera in direction `away`; a fraction `covered` of its picture is hidden from below."""
        across = np.cross(self._up, away)
        right = across / np.linalg.norm(across)
        above = np.cross(away, right)
        axes = np.stack([right, above, away])
        seen = self._points @ axes.T
        middle = (seen.min(axis=0) + seen.max(axis=0)) / 2
        x, y, nearer = np.abs(seen - middle).T[0], np.abs(seen - middle).T[1], (seen - middle)[:, 2]
        tan = math.tan(FOV / 2)
        distance = float((np.maximum(x / aspect, y / (1.0 - covered)) / (FILLED * tan) + nearer).max())
        distance = max(distance, 0.3 * self._span)
        look_at = (middle - [0.0, covered * tan * distance, 0.0]) @ axes
        return look_at + distance * away, look_at


def _away(preset: str, up: Array) -> Array:
    """Return the direction (3,) from the mechanism to the camera; the front camera looks along y if z is up, along -z if y is up."""
    upright = int(np.argmax(np.abs(up)))
    front = np.eye(3)[2] if upright == 1 else -np.eye(3)[1]
    front = front - (front @ up) * up
    side = np.cross(up, front)
    # slightly tilted, because the upward direction of the picture is undefined exactly from above
    away = {"Front": front, "Side": side, "Top": up + 1e-3 * front, "Iso": front + side + up}[preset]
    return np.asarray(away / np.linalg.norm(away))


def _onto_most(extent: Array, up: Array) -> Array:
    """Return the unit direction (3,) from which most of the mechanism is visible: perpendicular to its plane, if the mechanism is flat."""
    thin = int(np.argmin(extent))
    if extent[thin] < 0.1 * extent.max():
        onto = -np.eye(3)[thin] if thin == 1 else np.eye(3)[thin]
        onto = onto if abs(onto @ up) < 0.5 else up
    else:
        onto = np.array([0.6, -1.0, 0.0]) if abs(up[2]) > 0.5 else np.array([0.6, 0.0, 1.0])
    across = np.cross(onto, up) if abs(onto @ up) < 0.5 else np.array([0.0, 1.0, 0.0])
    seen = onto + 0.3 * up - 0.25 * across
    return np.asarray(seen / np.linalg.norm(seen))
