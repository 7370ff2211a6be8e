"""A mechanism drawn in a viser server: its bodies, names, anchors, the ground under it, and from where one looks.

A body is a node with its pose; meshes, bars, pins and frames are fixed in it and move along. Only bars that stretch from one body to
another get new vertices. Bars stand for bodies without visuals, and for all of them where one asks to see those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array
from ..description.specs import Mesh, VisualSpec
from ..figures.skeleton import COLORS, Skeleton
from ..mechanism import Mechanism
from ..spatial import Rotation
from . import meshes
from .shapes import Triangles, capsule, cone, hinge, solid, together

HINGES = "#3d4450"


@dataclass(frozen=True, eq=False)
class Look:
    """A visual that can be drawn.

    Attributes
    ----------
    visual : what it is
    mesh : vertices and triangles, before they are scaled
    scale : along the axes of the visual's frame
    sharp : whether triangles meet in edges
    colored : binary glTF with colours of its own, or None
    """

    visual: VisualSpec
    mesh: Triangles
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    sharp: bool = False
    colored: bytes | None = None

    @property
    def vertices(self) -> Array:
        """(k, 3) in the body's frame [m]."""
        placement = self.visual.placement
        return np.asarray((self.mesh[0] * self.scale) @ placement.rotation.T + placement.translation)


class Scene:
    """Bodies of a mechanism and their surroundings.

    Attributes
    ----------
    mechanism, skeleton : what is drawn
    nodes : body to its node, which has its pose
    visuals : pairs of a :class:`Look` and its node; empty where the mechanism has none, or none can be read
    faults : a line for each cause that meshes are missing
    labels : "bodies", "joints" and "frames" to all that shows their names
    """

    def __init__(self, server: Any, mechanism: Mechanism, q: Array) -> None:
        self._server = server
        self.mechanism, self.skeleton = mechanism, Skeleton(mechanism)
        self.nodes: dict[str, Any] = {}
        self.labels: dict[str, list[Any]] = {"bodies": [], "joints": [], "frames": []}
        # number of the bar in the skeleton, and its mesh
        self._slides: list[tuple[int, Any]] = []
        # what visuals stand for: hidden while those are shown
        self._bare: list[Any] = []
        self._radius = self._bar_radius()
        looks, self.faults = _looks(mechanism.description.visuals)
        self._clothed = _clothed(mechanism, looks)
        ends = self.skeleton.segments_flat(q)
        self._draw_bodies()
        self.visuals = [(look, self._draw_look(k, look)) for k, look in enumerate(looks)]
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

    def dress(self, visible: bool) -> None:
        """Show bodies by their visuals, or by bars."""
        for _, node in self.visuals:
            node.visible = visible
        for node in self._bare:
            node.visible = not visible

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
                self._undress(body, scene.add_mesh_simple(f"{path}/bars", vertices, faces, color=color))
            hinges = [hinge(place, radius) for place in skeleton.joints.values() if place.body == body]
            if hinges and any(len(h[0]) for h in hinges):
                vertices, faces = together(hinges)
                self._undress(body, scene.add_mesh_simple(f"{path}/joints", vertices, faces, color=_rgb(HINGES)))
            ends = [p for bar in own for p in (bar.first[1], bar.second[1])]
            middle = np.mean(ends, axis=0) if ends else np.zeros(3)
            self._label("bodies", f"{path}/name", body, middle)

    def _undress(self, body: str, node: Any) -> None:
        """Hide what stands for a body that has visuals."""
        if body in self._clothed:
            node.visible = False
            self._bare.append(node)

    def _draw_look(self, k: int, look: Look) -> Any:
        """A node on the body's, with the frame that the shape's file has."""
        visual, scene = look.visual, self._server.scene
        body = self.mechanism.bodies.index(visual.body) if visual.body in self.nodes else None
        path = f"/ground/visual{k}" if body is None else f"/bodies/{body}/visual{k}"
        x, y, z, w = _quaternion(visual.placement.rotation)
        place: dict[str, Any] = {"wxyz": (w, x, y, z), "position": visual.placement.translation, "scale": look.scale}
        if look.colored is not None and visual.color is None:
            return scene.add_glb(path, look.colored, **place)
        vertices, faces = look.mesh
        color = _rgb(HINGES if body is None else COLORS[body % len(COLORS)])
        opacity = 1.0
        if visual.color is not None:
            red, green, blue, opacity = visual.color
            color = round(255 * red), round(255 * green), round(255 * blue)
        return scene.add_mesh_simple(
            path,
            vertices,
            faces,
            color=color,
            opacity=opacity if opacity < 1.0 else None,
            flat_shading=look.sharp,
            side="double",  # many files do not know their inside from their outside
            **place,
        )

    def _draw_slides(self, ends: Array) -> None:
        """Bars from one body to another: with each configuration they are drawn anew."""
        skeleton, scene = self.skeleton, self._server.scene
        for k, bar in enumerate(skeleton.bars):
            if bar.first[0] != bar.second[0]:
                owner = self.mechanism.bodies.index(bar.owner) if bar.owner in self.mechanism.bodies else 0
                vertices, faces = capsule(ends[k, 0], ends[k, 1], 0.5 * self._radius)
                color = _rgb(COLORS[owner % len(COLORS)])
                self._slides.append((k, scene.add_mesh_simple(f"/slides/{k}", vertices, faces, color=color)))
                self._undress(bar.owner, self._slides[-1][1])

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
        low, high = self._bounds(q)
        middle = (low + high) / 2
        anchors = skeleton.anchors
        # where the mechanism hangs from its anchors they are held from above
        hangs = (
            len(anchors) > 0
            and float(((ends.reshape(-1, 3).mean(axis=0) if ends.size else middle) - anchors.mean(axis=0)) @ up) < 0.0
        )
        side = up if hangs else -up
        for k, anchor in enumerate(anchors):
            vertices, faces = cone(anchor, side, radius)
            node = scene.add_mesh_simple(f"/ground/anchor{k}", vertices, faces, color=_rgb(HINGES))
            self._undress(self._held_at(anchor), node)
        rolls = any(type(c).__name__ == "RollingSpec" for c in self.mechanism.description.constraints)
        corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
        # room for pedestals, or what is seen stands on the ground
        level = float((corners @ up).min()) - (0.0 if rolls or self._clothed else 5.0 * radius)
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

    def _bounds(self, q: Array) -> tuple[Array, Array]:
        """Lowest and highest corner (3,) of the box around all that is shown [m]."""
        if not self.visuals:
            return self.skeleton.bounds(q)
        known = self.mechanism.kinematics(q)
        bare = [k for k, bar in enumerate(self.skeleton.bars) if bar.owner not in self._clothed]
        seen = [self.skeleton.segments_flat(q)[bare].reshape(-1, 3)]
        for look, _ in self.visuals:
            body = look.visual.body
            pose = known.pose(body) if body in self.nodes else np.eye(4)
            world = look.vertices @ pose[:3, :3].T + pose[:3, 3]
            seen += [world.min(axis=0)[None], world.max(axis=0)[None]]
        corners = np.concatenate(seen)
        return corners.min(axis=0), corners.max(axis=0)

    def _held_at(self, anchor: Array) -> str:
        """The body that a joint holds there; "ground" where a rod does, or another joint."""
        for spec in self.mechanism.description.joints:
            if spec.parent == "ground" and np.array_equal(spec.at_parent.translation, anchor):
                return spec.child
        return "ground"

    def _label(self, kind: str, path: str, text: str, where: Array) -> None:
        label = self._server.scene.add_label(path, text, position=where, visible=False)
        self.labels[kind].append(label)


def _looks(visuals: tuple[VisualSpec, ...]) -> tuple[list[Look], list[str]]:
    """Visuals that can be drawn, and why others cannot. Every file is read once."""
    contents: dict[Path, meshes.Content] = {}
    looks, faults = [], dict[str, list[str]]()
    for visual in visuals:
        shape = visual.shape
        if not isinstance(shape, Mesh):
            looks.append(Look(visual, solid(shape)))
            continue
        try:
            path = meshes.find(shape)
            content = contents[path] = contents.get(path) or meshes.read(path)
            looks.append(Look(visual, (content.vertices, content.faces), shape.scale, content.sharp, content.colored))
        except meshes.MeshError as error:
            files = faults.setdefault(error.cause, [])
            if error.file not in files:
                files.append(error.file)
    return looks, [
        f"not shown: {files[0]}{f' and {len(files) - 1} more' if len(files) > 1 else ''}: {cause}"
        for cause, files in faults.items()
    ]


def _clothed(mechanism: Mechanism, looks: list[Look]) -> set[str]:
    """Bodies that no bars are needed for: those with visuals, and what is welded to them and never had any, such as a tool's frame."""
    clothed, description = {look.visual.body for look in looks}, mechanism.description
    frames = set(mechanism.bodies) - {visual.body for visual in description.visuals}
    welds = [{spec.parent, spec.child} for spec in description.joints if spec.joint.kind == "Fixed"]
    # as often as frames hang on frames
    while new := {body for weld in welds if (weld - {"ground"}) & clothed for body in weld & frames - clothed}:
        clothed |= new
    return clothed


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

    >>> from sarrus.viewer.scene import round_length
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
