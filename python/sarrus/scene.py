"""A mechanism drawn in a viser server: its bodies, names, anchors, the ground under it, and from where one looks.

A body is a node with its pose; bars, pins and frames are fixed in it and move along. Only bars that stretch from one body to
another get new vertices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .mechanism import Mechanism
from .shapes import capsule, cone, hinge, together
from .skeleton import COLORS, Skeleton
from .spatial import Rotation
from .state import Array

HINGES = "#3d4450"


class Scene:
    """Bodies of a mechanism and their surroundings.

    Attributes
    ----------
    mechanism, skeleton : what is drawn
    nodes : body to its node, which has its pose
    labels : "bodies", "joints" and "frames" to all that shows their names
    """

    def __init__(self, server: Any, mechanism: Mechanism, q: Array) -> None:
        self._server = server
        self.mechanism, self.skeleton = mechanism, Skeleton(mechanism)
        self.nodes: dict[str, Any] = {}
        self.labels: dict[str, list[Any]] = {"bodies": [], "joints": [], "frames": []}
        # number of the bar in the skeleton, and its mesh
        self._slides: list[tuple[int, Any]] = []
        self._radius = self._bar_radius()
        ends = self.skeleton.segments_flat(q)
        self._draw_bodies()
        self._draw_slides(ends)
        self._draw_names()
        self._draw_surroundings(q, ends)

    def show(self, q: Array) -> None:
        """Put all bodies, and the bars that stretch, where q (nq,) has them."""
        known = self.mechanism.kinematics(q)
        for body, node in self.nodes.items():
            pose = known.pose(body)
            x, y, z, w = _quaternion(pose[:3, :3])
            node.wxyz, node.position = (w, x, y, z), pose[:3, 3]
        if self._slides:
            ends = self.skeleton.segments_flat(q)
            for k, mesh in self._slides:
                mesh.vertices = capsule(ends[k, 0], ends[k, 1], 0.5 * self._radius)[0]

    def reveal(self, kind: str, visible: bool) -> None:
        """Show or hide the names of all "bodies", "joints" or "frames"; frames' axes too."""
        for label in self.labels[kind]:
            label.visible = visible

    def _bar_radius(self) -> float:
        """Slender where many bodies are short."""
        skeleton = self.skeleton
        longest: dict[str, float] = {}
        for bar in skeleton.bars:
            if bar.first[0] == bar.second[0]:
                length = float(np.linalg.norm(bar.second[1] - bar.first[1]))
                longest[bar.owner] = max(longest.get(bar.owner, 0.0), length)
        usual = float(np.median(list(longest.values()))) if longest else skeleton.size
        return min(0.025 * skeleton.size, max(0.07 * usual, 0.012 * skeleton.size))

    def _draw_bodies(self) -> None:
        """A node for every body, which its bars, pins and name move with."""
        skeleton, scene, radius = self.skeleton, self._server.scene, self._radius
        for k, body in enumerate(self.mechanism.bodies):
            path, color = f"/bodies/{k}", _rgb(COLORS[k % len(COLORS)])
            self.nodes[body] = scene.add_frame(path, show_axes=False)
            own = [bar for bar in skeleton.bars if bar.first[0] == bar.second[0] == bar.owner == body]
            if own:
                vertices, faces = together([capsule(bar.first[1], bar.second[1], radius) for bar in own])
                scene.add_mesh_simple(f"{path}/bars", vertices, faces, color=color)
            hinges = [hinge(place, radius) for place in skeleton.joints.values() if place.body == body]
            if hinges and any(len(h[0]) for h in hinges):
                vertices, faces = together(hinges)
                scene.add_mesh_simple(f"{path}/joints", vertices, faces, color=_rgb(HINGES))
            ends = [p for bar in own for p in (bar.first[1], bar.second[1])]
            middle = np.mean(ends, axis=0) if ends else np.zeros(3)
            self._label("bodies", f"{path}/name", body, middle)

    def _draw_slides(self, ends: Array) -> None:
        """Bars from one body to another: with each configuration they are drawn anew."""
        skeleton, scene = self.skeleton, self._server.scene
        for k, bar in enumerate(skeleton.bars):
            if bar.first[0] != bar.second[0]:
                owner = self.mechanism.bodies.index(bar.owner) if bar.owner in self.mechanism.bodies else 0
                vertices, faces = capsule(ends[k, 0], ends[k, 1], 0.5 * self._radius)
                color = _rgb(COLORS[owner % len(COLORS)])
                self._slides.append((k, scene.add_mesh_simple(f"/slides/{k}", vertices, faces, color=color)))

    def _draw_names(self) -> None:
        """Of joints and frames, and the frames' axes; hidden at first."""
        scene, radius = self._server.scene, self._radius
        for k, place in enumerate(self.skeleton.joints.values()):
            if place.body in self.nodes:
                path = f"/bodies/{self.mechanism.bodies.index(place.body)}/joint{k}"
                self._label("joints", path, place.joint, place.point)
        for k, frame in enumerate(self.mechanism.description.frames):
            node = f"/bodies/{self.mechanism.bodies.index(frame.body)}" if frame.body in self.nodes else ""
            x, y, z, w = _quaternion(frame.placement.rotation)
            self.labels["frames"].append(
                scene.add_frame(
                    f"{node}/frame{k}",
                    axes_length=4 * radius,
                    axes_radius=0.3 * radius,
                    wxyz=(w, x, y, z),
                    position=frame.placement.translation,
                    visible=False,
                )
            )
            self._label("frames", f"{node}/frame{k}/name", frame.name, np.zeros(3))

    def _draw_surroundings(self, q: Array, ends: Array) -> None:
        """Pedestals on the ground, a grid, light, and the camera."""
        skeleton, scene, radius, up = self.skeleton, self._server.scene, self._radius, _up(self.mechanism)
        scene.set_up_direction(tuple(up.tolist()))
        low, high = skeleton.bounds(q)
        middle = (low + high) / 2
        anchors = skeleton.anchors
        # where the mechanism hangs from its anchors they are held from above
        hangs = (
            len(anchors) > 0
            and float(((ends.reshape(-1, 3).mean(axis=0) if ends.size else middle) - anchors.mean(axis=0)) @ up) < 0.0
        )
        side = up if hangs else -up
        if len(anchors):
            vertices, faces = together([cone(anchor, side, radius) for anchor in anchors])
            scene.add_mesh_simple("/ground/anchors", vertices, faces, color=_rgb(HINGES))
        rolls = any(type(c).__name__ == "RollingSpec" for c in self.mechanism.description.constraints)
        corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
        level = float((corners @ up).min()) - (0.0 if rolls else 5.0 * radius)
        cell = round_length(skeleton.size / 4)
        w, x, y, z = _turn_to(up)
        scene.add_grid(
            "/ground/grid",
            width=24 * skeleton.size,
            height=24 * skeleton.size,
            cell_size=cell,
            section_size=5 * cell,
            cell_color=(222, 224, 228),
            section_color=(196, 199, 205),
            fade_distance=8 * skeleton.size,
            wxyz=(w, x, y, z),
            position=middle + (level - middle @ up) * up,
        )
        scene.configure_default_lights(cast_shadow=True)
        span = max(float(np.linalg.norm(high - low)), skeleton.size)
        camera, away = self._server.initial_camera, 1.6 * span * _from_where(high - low, up)
        camera.look_at = middle
        camera.position = middle + away
        camera.up = up
        camera.fov = math.radians(42.0)
        camera.near = 0.01 * span
        camera.far = 100 * span

        def step_back(client: Any) -> None:
            # a phone held upright is narrow: from farther away
            if client.camera.aspect < 1.0:
                client.camera.position = middle + away / client.camera.aspect
                client.camera.look_at = middle  # which the position took along

        self._server.on_client_connect(step_back)

    def _label(self, kind: str, path: str, text: str, where: Array) -> None:
        label = self._server.scene.add_label(path, text, position=where, visible=False)
        self.labels[kind].append(label)


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _quaternion(rotation: Array) -> Array:
    return Rotation.from_matrix(rotation).quaternion


def _up(mechanism: Mechanism) -> Array:
    """Against gravity; z where there is none."""
    strength = float(np.linalg.norm(mechanism.gravity))
    return -mechanism.gravity / strength + 0.0 if strength > 0 else np.array([0.0, 0.0, 1.0])


def round_length(x: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not above x.

    >>> round_length(0.7)
    0.5
    """
    power = 10.0 ** math.floor(math.log10(x))
    return max(k for k in (1.0, 2.0, 5.0) if k * power <= x * (1 + 1e-9)) * power


def _turn_to(up: Array) -> Array:
    """Quaternion (w, x, y, z) that turns z to a direction."""
    axis = np.cross([0.0, 0.0, 1.0], up)
    if np.linalg.norm(axis) < 1e-12:
        return np.array([1.0, 0.0, 0.0, 0.0]) if up[2] > 0 else np.array([0.0, 1.0, 0.0, 0.0])
    x, y, z, w = Rotation.from_axis_angle(axis, math.acos(float(np.clip(up[2], -1.0, 1.0)))).quaternion
    return np.array([w, x, y, z])


def _from_where(extent: Array, up: Array) -> Array:
    """Direction (3,), of unit length, from which a mechanism shows most: onto its plane where it has one."""
    thin = int(np.argmin(extent))
    if extent[thin] < 0.1 * extent.max():
        onto = -np.eye(3)[thin] if thin == 1 else np.eye(3)[thin]
        onto = onto if abs(onto @ up) < 0.5 else up
    else:
        onto = np.array([0.6, -1.0, 0.0]) if abs(up[2]) > 0.5 else np.array([0.6, 0.0, 1.0])
    across = np.cross(onto, up) if abs(onto @ up) < 0.5 else np.array([0.0, 1.0, 0.0])
    seen = onto + 0.3 * up - 0.25 * across
    return np.asarray(seen / np.linalg.norm(seen))
