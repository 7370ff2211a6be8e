"""Scene of a mechanism in a viser server: bodies, names, anchors, and the ground.

Each body is a node with a pose; its meshes, bars, plates, pins and frames are children of the node. Therefore only poses change when the mechanism
moves, and vertices only of bars that stretch between two bodies. Bars and plates represent bodies without visuals, or all bodies if visuals are
hidden.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array
from .._showing import listed
from ..description.joints import axis_frame
from ..description.specs import VisualSpec
from ..figures.canvas import round_length
from ..figures.skeleton import Skeleton, moved
from ..mechanism import Mechanism
from ..shapes import Mesh
from ..simulation.trajectory import Trajectory
from . import shapes
from .shapes import Forces, Ghosts, Label, Labels, Traces, Triangles, capsule, cone, hinge, plate, solid, together, wxyz

Color = tuple[int, int, int]
HINGES: Color = (61, 68, 80)
# True for a dark background -> colours of pins and pedestals, of the grid's cells, and of the grid's sections
SURROUNDINGS: dict[bool, tuple[Color, Color, Color]] = {
    False: (HINGES, (222, 224, 228), (196, 199, 205)),
    True: ((150, 157, 168), (52, 55, 62), (74, 78, 87)),
}
MOST_CORNERS = 24  # largest number of corners of a plate


@dataclass(frozen=True, eq=False)
class Look:
    """Visual that can be drawn: its mesh, and its scale along the axes of the visual's frame.

    `sharp` is True if edges between triangles are drawn sharp. `colored` is binary glTF with the file's colours, or None if the file has no colours.
    """

    visual: VisualSpec
    mesh: Triangles
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    sharp: bool = False
    colored: bytes | None = None

    @property
    def vertices(self) -> Array:
        """Vertices (k, 3) in the body's frame [m]."""
        return self.visual.placement.apply(self.mesh[0] * self.scale)


class Scene:
    """Bodies of a mechanism and their surroundings.

    Attributes
    ----------
    mechanism, skeleton : the mechanism and its :class:`Skeleton`
    nodes : body to its node, which has its pose
    visuals : pairs of a :class:`Look` and its node; empty if the mechanism has no visuals, or if none can be read
    faults : a line of text for each cause of missing meshes
    labels, camera, forces, traces, ghosts : :class:`Labels`, :class:`Camera`, :class:`Forces`, :class:`Traces`; :class:`Ghosts` of
        several runs, or None
    bare : body to the mesh of its bars or plate, if it has any
    colors : body to its colour
    """

    def __init__(
        self, server: Any, mechanism: Mechanism, q: Array, trace: str | Sequence[str], runs: Sequence[Trajectory]
    ) -> None:
        self._scene = server.scene
        self.mechanism, self.skeleton = mechanism, Skeleton(mechanism)
        self.nodes: dict[str, Any] = {}
        self.bare: dict[str, Triangles] = {}
        self.labels = Labels(server)
        self._axes: list[Any] = []
        self._hinges: list[Any] = []  # pins and pedestals
        # (index of the bar in the skeleton, mesh of the bar)
        self._slides: list[tuple[int, Any]] = []
        # meshes of bars, hidden while the visuals are shown
        self._bare: list[Any] = []
        self._radius = self._bar_radius()
        self.traces = Traces(self._scene, mechanism, trace, self._radius)
        self.forces = Forces(self._scene, mechanism, self.skeleton.size, self._radius)
        looks, self.faults = _looks(mechanism.description.visuals)
        self._dressed = _dressed(mechanism, looks)
        self._paths = {"ground": "/ground", **{body: f"/bodies/{k}" for k, body in enumerate(mechanism.bodies)}}
        self.colors = self.skeleton.colors
        ends = self.skeleton.segments_flat(q)
        self._draw_bodies()
        self.visuals = [(look, self._draw_look(f"visual{k}", look)) for k, look in enumerate(looks)]
        self._draw_slides(ends)
        self._draw_names()
        up, points = _up(mechanism), self._points(q)
        self._draw_surroundings(points, ends, up)
        self.camera = Camera(server, np.concatenate([points, self._passed(runs)]), up)
        self.darken(False)
        if runs:
            self.traces.draw_run(runs[0])
        self.ghosts = Ghosts(self._scene, self.skeleton, list(runs), self.colors, self.bare) if len(runs) > 1 else None

    def show(self, q: Array) -> None:
        """Move all bodies, and the bars that stretch, to a configuration q (nq,)."""
        poses, _ = self.skeleton._poses(q)
        for body, node in self.nodes.items():
            node.wxyz, node.position = wxyz(poses[body][:3, :3]), poses[body][:3, 3]
        ends = self.skeleton.segments_flat(q) if self._slides else np.zeros((0, 2, 3))
        for k, mesh in self._slides:
            mesh.vertices = capsule(ends[k, 0], ends[k, 1], 0.5 * self._radius)[0]
        self.labels.show(poses)

    def reveal(self, kind: str, visible: bool) -> None:
        """Show or hide the names of all "bodies", "joints" or "frames", and the axes of frames."""
        self.labels.reveal(kind, visible)
        for axes in self._axes if kind == "frames" else ():
            axes.visible = visible

    def darken(self, dark: bool) -> None:
        """Set colours for a dark or a light background."""
        hinges, self._grid.cell_color, self._grid.section_color = SURROUNDINGS[dark]
        for node in self._hinges:
            node.color = hinges

    def show_visuals(self, visible: bool) -> None:
        """Show bodies by their visuals, or by bars if not `visible`."""
        for _, node in self.visuals:
            node.visible = visible
        for node in self._bare:
            node.visible = not visible

    def _bar_radius(self) -> float:
        """Return the radius of bars [m], smaller if many bodies are short."""
        longest: dict[str, float] = {}
        for bar in self.skeleton.bars:
            if bar.first[0] == bar.second[0]:
                length = float(np.linalg.norm(bar.second[1] - bar.first[1]))
                longest[bar.owner] = max(longest.get(bar.owner, 0.0), length)
        size = self.skeleton.size
        usual = float(np.median(list(longest.values()))) if longest else size
        return min(0.025 * size, max(0.07 * usual, 0.012 * size))

    def _draw_bodies(self) -> None:
        """Draw a node for every body, with its bars, pins and name."""
        for body in self.mechanism.bodies:
            path = self._paths[body]
            self.nodes[body] = self._scene.add_frame(path, show_axes=False)
            bars = [bar for bar in self.skeleton.bars if bar.first[0] == bar.second[0] == bar.owner == body]
            ends = [(bar.first[1], bar.second[1]) for bar in bars]
            parts = self._bars(body, ends)
            if self._draw_bare(body, f"{path}/bars", parts, self.colors[body]):
                self.bare[body] = together(parts)
            hinges = [hinge(place, self._radius) for place in self.skeleton.joints.values() if place.body == body]
            self._hinges += filter(None, [self._draw_bare(body, f"{path}/joints", hinges, HINGES)])
            middle = np.mean(ends, axis=(0, 1)) if ends else np.zeros(3)
            self.labels.all.append(Label("bodies", body, body, middle))

    def _bars(self, body: str, ends: list[tuple[Array, Array]]) -> list[Triangles]:
        """Return the meshes of a body without visuals: a plate with a rounded rim, a solid if its joints are not in a plane, or single bars."""
        bars, points = [capsule(*pair, self._radius) for pair in ends], self.skeleton.plates.get(body)
        if points is None or len(points) > MOST_CORNERS:
            return bars
        mesh, flat = plate(points, 0.9 * self._radius)
        return [mesh, *bars] if flat else [mesh]

    def _draw_bare(self, body: str, path: str, parts: list[Triangles], color: Color) -> Any:
        """Draw the bars or the plate of a body; hide them if the body has visuals."""
        if not any(len(vertices) for vertices, _ in parts):
            return None
        node = self._scene.add_mesh_simple(path, *together(parts), color=color)
        if body in self._dressed:
            node.visible = False
            self._bare.append(node)
        return node

    def _draw_look(self, name: str, look: Look) -> Any:
        """Draw a visual as a node of its body, in the frame of the shape's file."""
        visual, at = look.visual, look.visual.placement
        path = f"{self._paths[visual.body]}/{name}"
        place: dict[str, Any] = {"wxyz": wxyz(at.rotation), "position": at.translation, "scale": look.scale}
        if look.colored is not None and visual.color is None:
            return self._scene.add_glb(path, look.colored, **place)
        color, opacity = self.colors.get(visual.body, HINGES), 1.0
        if visual.color is not None:
            red, green, blue, opacity = visual.color
            color = round(255 * red), round(255 * green), round(255 * blue)
        place["side"] = "double"  # both sides are drawn, because many files have inconsistent normals
        place["opacity"] = opacity if opacity < 1.0 else None
        return self._scene.add_mesh_simple(path, *look.mesh, color=color, flat_shading=look.sharp, **place)

    def _draw_slides(self, ends: Array) -> None:
        """Draw the bars between two bodies, whose vertices change with the configuration."""
        for k, bar in enumerate(self.skeleton.bars):
            if bar.first[0] != bar.second[0]:
                mesh = capsule(ends[k, 0], ends[k, 1], 0.5 * self._radius)
                color = self.colors[bar.owner]
                self._slides.append((k, self._draw_bare(bar.owner, f"/slides/{k}", [mesh], color)))

    def _draw_names(self) -> None:
        """Draw the names of joints and frames, and the frames' axes, hidden at first."""
        for place in self.skeleton.joints.values():
            if place.body in self.nodes:
                self.labels.all.append(Label("joints", place.joint, place.body, place.point))
        lines = {"axes_length": 4 * self._radius, "axes_radius": 0.3 * self._radius, "visible": False}
        for k, frame in enumerate(self.mechanism.description.frames):
            path, at = f"{self._paths[frame.body]}/frame{k}", frame.placement
            self._axes.append(self._scene.add_frame(path, wxyz=wxyz(at.rotation), position=at.translation, **lines))
            self.labels.all.append(Label("frames", frame.name, frame.body, at.translation))

    def _draw_surroundings(self, points: Array, ends: Array, up: Array) -> None:
        """Draw pedestals on the ground, a grid and light around points (k, 3) of the mechanism."""
        scene, anchors, size = self._scene, self.skeleton.anchors, self.skeleton.size
        scene.set_up_direction(tuple(up.tolist()))
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        # if the mechanism hangs below its anchors, the pedestals are above the anchors
        weight = ends.mean(axis=(0, 1)) if ends.size else middle
        hangs = len(anchors) > 0 and float((weight - anchors.mean(axis=0)) @ up) < 0.0
        for k, anchor in enumerate(anchors):
            pedestal = cone(anchor, up if hangs else -up, self._radius)
            self._hinges.append(self._draw_bare(self._body_at(anchor), f"/ground/anchor{k}", [pedestal], HINGES))
        rolls = any(c.circles for c in self.mechanism.description.constraints)
        # the ground is at the lowest point, or lower if pedestals need room
        level = float((points @ up).min()) - (0.0 if rolls or self._dressed else 5.0 * self._radius)
        cell = round_length(size / 4)
        self._grid = scene.add_grid(
            "/ground/grid", width=24 * size, height=24 * size, cell_size=cell, section_size=5 * cell, fade_distance=8 * size,
            wxyz=wxyz(axis_frame(up)), position=middle + (level - middle @ up) * up,
        )  # fmt: skip
        scene.configure_default_lights(cast_shadow=True)

    def _points(self, q: Array) -> Array:
        """Return points (k, 3) around all visible parts [m]."""
        if not self.visuals:
            points = self.skeleton._points(q)
            return points if len(points) else np.zeros((1, 3))
        poses, _ = self.skeleton._poses(q)
        bare = [k for k, bar in enumerate(self.skeleton.bars) if bar.owner not in self._dressed]
        parts = [self.skeleton.segments_flat(q)[bare].reshape(-1, 3)]
        for look, _ in self.visuals:
            parts.append(moved(poses[look.visual.body][None], look.vertices))
        return np.concatenate(parts)

    def _passed(self, runs: Sequence[Trajectory]) -> Array:
        """Return points (k, 3) [m] that the mechanism reaches in the runs.

        If they are so far apart that the mechanism would look tiny, return none.
        """
        few = [run.q[np.unique(np.linspace(0, len(run) - 1, 12).astype(int))] for run in runs]
        q = np.concatenate([np.zeros((0, self.mechanism.nq)), *few])
        points = self.skeleton.segments_flat(q[np.isfinite(q).all(axis=1)]).reshape(-1, 3)
        distant = len(points) and np.ptp(points, axis=0).max() > 4.0 * self.skeleton.size
        return points[:0] if distant else points

    def _body_at(self, anchor: Array) -> str:
        """Return the body that a joint connects to the ground at this anchor; "ground" for the anchor of a rod."""
        for spec in self.mechanism.description.joints:
            if spec.parent == "ground" and np.array_equal(spec.at_parent.translation, anchor):
                return spec.child
        return "ground"


def _looks(visuals: tuple[VisualSpec, ...]) -> tuple[list[Look], list[str]]:
    """Return the visuals that can be drawn, and a line of text for each cause of missing visuals. Every file is read once."""
    contents: dict[Path, shapes.Content] = {}
    looks, faults = [], dict[str, dict[str, None]]()
    for visual in visuals:
        shape = visual.shape
        if not isinstance(shape, Mesh):
            looks.append(Look(visual, solid(shape)))
            continue
        try:
            path = shapes.find(shape)
            content = contents[path] = contents.get(path) or shapes.read(path)
            looks.append(Look(visual, (content.vertices, content.faces), shape.scale, content.sharp, content.colored))
        except shapes.MeshError as error:
            faults.setdefault(error.cause, {})[error.file] = None
    return looks, [f"not shown: {listed(files, 1)}: {cause}" for cause, files in faults.items()]


def _dressed(mechanism: Mechanism, looks: list[Look]) -> set[str]:
    """Return the bodies that need no bars: bodies with visuals, and bodies that are welded to bodies with visuals."""
    dressed, description = {look.visual.body for look in looks}, mechanism.description
    frames = set(mechanism.bodies) - {visual.body for visual in description.visuals}
    welds = [{spec.parent, spec.child} for spec in description.joints if spec.joint.kind == "Fixed"]
    # repeated until nothing changes, because welded bodies can form chains
    while new := {body for weld in welds if (weld - {"ground"}) & dressed for body in weld & frames - dressed}:
        dressed |= new
    return dressed


def _up(mechanism: Mechanism) -> Array:
    """Return the upward direction (3,), opposite to gravity; z if there is no gravity."""
    strength = float(np.linalg.norm(mechanism.gravity))
    return -mechanism.gravity / strength + 0.0 if strength > 0 else np.array([0.0, 0.0, 1.0])


# ---- cameras ---------------------------------------------------------------------------------------------------------

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
