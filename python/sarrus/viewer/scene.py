"""A mechanism drawn in a viser server: its bodies, names, anchors, the ground under it, and from where one looks.

A body is a node with its pose; meshes, bars, pins and frames are fixed in it and move along. Only bars that stretch from one body to
another get new vertices. Bars stand for bodies without visuals, and for all of them where one asks to see those.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array
from ..description.joints import axis_frame
from ..description.specs import Mesh, VisualSpec
from ..figures.skeleton import Skeleton
from ..mechanism import Mechanism
from ..spatial import Rotation
from . import meshes
from .shapes import Triangles, capsule, cone, hinge, solid, together

Color = tuple[int, int, int]
HINGES: Color = (61, 68, 80)
# of bodies, in turn: Tol's light scheme, told apart also by those who see few colours (personal.sron.nl/~pault)
COLORS: tuple[Color, ...] = (
    (119, 170, 221), (238, 136, 102), (68, 187, 153), (238, 221, 136), (153, 221, 255), (255, 170, 187), (187, 204, 51),
    (170, 170, 0),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Look:
    """A visual that can be drawn: its mesh, before it is scaled along the axes of the visual's frame.

    It is sharp where triangles meet in edges, and colored, binary glTF, where the file has colours of its own.
    """

    visual: VisualSpec
    mesh: Triangles
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    sharp: bool = False
    colored: bytes | None = None

    @property
    def vertices(self) -> Array:
        """(k, 3) in the body's frame [m]."""
        return self.visual.placement.apply(self.mesh[0] * self.scale)


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
        self._server, self._scene = server, server.scene
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
        self._paths = {"ground": "/ground", **{body: f"/bodies/{k}" for k, body in enumerate(mechanism.bodies)}}
        self._colors = {body: COLORS[k % len(COLORS)] for k, body in enumerate(mechanism.bodies)}
        ends = self.skeleton.segments_flat(q)
        self._draw_bodies()
        self.visuals = [(look, self._draw_look(f"visual{k}", look)) for k, look in enumerate(looks)]
        self._draw_slides(ends)
        self._draw_names()
        self._draw_surroundings(q, ends)

    def show(self, q: Array) -> None:
        """Put all bodies, and the bars that stretch, where q (nq,) has them."""
        known = self.mechanism.kinematics(q)
        for body, node in self.nodes.items():
            pose = known.pose(body)
            node.wxyz, node.position = _wxyz(pose[:3, :3]), pose[:3, 3]
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
        longest: dict[str, float] = {}
        for bar in self.skeleton.bars:
            if bar.first[0] == bar.second[0]:
                length = float(np.linalg.norm(bar.second[1] - bar.first[1]))
                longest[bar.owner] = max(longest.get(bar.owner, 0.0), length)
        size = self.skeleton.size
        usual = float(np.median(list(longest.values()))) if longest else size
        return min(0.025 * size, max(0.07 * usual, 0.012 * size))

    def _draw_bodies(self) -> None:
        """A node for every body, which its bars, pins and name move with."""
        for body in self.mechanism.bodies:
            path = self._paths[body]
            self.nodes[body] = self._scene.add_frame(path, show_axes=False)
            own = [bar for bar in self.skeleton.bars if bar.first[0] == bar.second[0] == bar.owner == body]
            ends = [(bar.first[1], bar.second[1]) for bar in own]
            self._draw_bare(body, f"{path}/bars", [capsule(*pair, self._radius) for pair in ends], self._colors[body])
            hinges = [hinge(place, self._radius) for place in self.skeleton.joints.values() if place.body == body]
            self._draw_bare(body, f"{path}/joints", hinges, HINGES)
            self._label("bodies", f"{path}/name", body, np.mean(ends, axis=(0, 1)) if ends else np.zeros(3))

    def _draw_bare(self, body: str, path: str, parts: list[Triangles], color: Color) -> Any:
        """What stands for a body without visuals: hidden where it has any."""
        if not any(len(vertices) for vertices, _ in parts):
            return None
        node = self._scene.add_mesh_simple(path, *together(parts), color=color)
        if body in self._clothed:
            node.visible = False
            self._bare.append(node)
        return node

    def _draw_look(self, name: str, look: Look) -> Any:
        """A node on the body's, with the frame that the shape's file has."""
        visual, at = look.visual, look.visual.placement
        path = f"{self._paths[visual.body]}/{name}"
        place: dict[str, Any] = {"wxyz": _wxyz(at.rotation), "position": at.translation, "scale": look.scale}
        if look.colored is not None and visual.color is None:
            return self._scene.add_glb(path, look.colored, **place)
        color, opacity = self._colors.get(visual.body, HINGES), 1.0
        if visual.color is not None:
            red, green, blue, opacity = visual.color
            color = round(255 * red), round(255 * green), round(255 * blue)
        place["side"] = "double"  # many files do not know their inside from their outside
        place["opacity"] = opacity if opacity < 1.0 else None
        return self._scene.add_mesh_simple(path, *look.mesh, color=color, flat_shading=look.sharp, **place)

    def _draw_slides(self, ends: Array) -> None:
        """Bars from one body to another: with each configuration they are drawn anew."""
        for k, bar in enumerate(self.skeleton.bars):
            if bar.first[0] != bar.second[0]:
                bar_now = capsule(ends[k, 0], ends[k, 1], 0.5 * self._radius)
                color = self._colors.get(bar.owner, COLORS[0])
                self._slides.append((k, self._draw_bare(bar.owner, f"/slides/{k}", [bar_now], color)))

    def _draw_names(self) -> None:
        """Of joints and frames, and the frames' axes; hidden at first."""
        for k, place in enumerate(self.skeleton.joints.values()):
            if place.body in self.nodes:
                self._label("joints", f"{self._paths[place.body]}/joint{k}", place.joint, place.point)
        lines = {"axes_length": 4 * self._radius, "axes_radius": 0.3 * self._radius, "visible": False}
        for k, frame in enumerate(self.mechanism.description.frames):
            path, at = f"{self._paths[frame.body]}/frame{k}", frame.placement
            axes = self._scene.add_frame(path, wxyz=_wxyz(at.rotation), position=at.translation, **lines)
            self.labels["frames"].append(axes)
            self._label("frames", f"{path}/name", frame.name, np.zeros(3))

    def _draw_surroundings(self, q: Array, ends: Array) -> None:
        """Pedestals on the ground, a grid, light, and the camera."""
        scene, anchors, size, up = self._scene, self.skeleton.anchors, self.skeleton.size, _up(self.mechanism)
        scene.set_up_direction(tuple(up.tolist()))
        low, high = self._bounds(q)
        middle = (low + high) / 2
        # where the mechanism hangs from its anchors they are held from above
        weight = ends.mean(axis=(0, 1)) if ends.size else middle
        hangs = len(anchors) > 0 and float((weight - anchors.mean(axis=0)) @ up) < 0.0
        for k, anchor in enumerate(anchors):
            pedestal = cone(anchor, up if hangs else -up, self._radius)
            self._draw_bare(self._held_at(anchor), f"/ground/anchor{k}", [pedestal], HINGES)
        rolls = any(c.circles for c in self.mechanism.description.constraints)
        corners = np.array(list(itertools.product(*zip(low, high, strict=True))))
        # room for pedestals, or what is seen stands on the ground
        level = float((corners @ up).min()) - (0.0 if rolls or self._clothed else 5.0 * self._radius)
        cell = round_length(size / 4)
        scene.add_grid(
            "/ground/grid", width=24 * size, height=24 * size, cell_size=cell, section_size=5 * cell, fade_distance=8 * size,
            cell_color=(222, 224, 228), section_color=(196, 199, 205),
            wxyz=_wxyz(axis_frame(up)), position=middle + (level - middle @ up) * up,
        )  # fmt: skip
        scene.configure_default_lights(cast_shadow=True)
        span = max(float(np.linalg.norm(high - low)), size)
        camera, away = self._server.initial_camera, 1.6 * span * _from_where(high - low, up)
        camera.look_at, camera.position, camera.up = middle, middle + away, up
        camera.fov, camera.near, camera.far = math.radians(42.0), 0.01 * span, 100 * span

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
            pose = known.pose(look.visual.body) if look.visual.body in self.nodes else np.eye(4)
            seen.append(look.vertices @ pose[:3, :3].T + pose[:3, 3])
        points = np.concatenate(seen)
        return points.min(axis=0), points.max(axis=0)

    def _held_at(self, anchor: Array) -> str:
        """The body that a joint holds there; "ground" where a rod does, or another joint."""
        for spec in self.mechanism.description.joints:
            if spec.parent == "ground" and np.array_equal(spec.at_parent.translation, anchor):
                return spec.child
        return "ground"

    def _label(self, kind: str, path: str, text: str, where: Array) -> None:
        self.labels[kind].append(self._scene.add_label(path, text, position=where, visible=False))


def _looks(visuals: tuple[VisualSpec, ...]) -> tuple[list[Look], list[str]]:
    """Visuals that can be drawn, and why others cannot. Every file is read once."""
    contents: dict[Path, meshes.Content] = {}
    looks, faults = [], dict[str, dict[str, None]]()
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
            faults.setdefault(error.cause, {})[error.file] = None
    return looks, [
        f"not shown: {next(iter(files))}{f' and {len(files) - 1} more' if len(files) > 1 else ''}: {cause}"
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


def _wxyz(rotation: Array) -> tuple[float, ...]:
    x, y, z, w = Rotation(rotation).quaternion.tolist()
    return w, x, y, z


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
