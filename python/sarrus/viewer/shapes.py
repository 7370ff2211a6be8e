"""Meshes of bodies and joints, mesh files, and marks: arrows for joint forces, paths of frames, and translucent copies for other simulation runs.

All shapes except boxes are surfaces of revolution, described by a profile of (radius, height) pairs about an axis. A mesh consists of vertices (k, 3)
[m] and triangles (m, 3), which are indices of vertices.
"""

from __future__ import annotations

import importlib
import itertools
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike, NDArray
from .._core.spatial import quaternion_from_rotation
from ..errors import SarrusError, raise_no_such_name
from ..figures.figures import force_on_child
from ..figures.skeleton import FLAT, Place, Skeleton, principal
from ..io.mesh_files import MeshError as MeshError
from ..io.mesh_files import find as find
from ..io.mesh_files import opened
from ..mechanism import Mechanism
from ..shapes import Box, Cylinder, Sphere
from ..simulation.trajectory import Trajectory
from ..spatial import Rotation

# ---- mesh files, read with trimesh, a dependency of viser ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Content:
    """Contents of a mesh file: vertices (k, 3) in the file's unit, and faces (m, 3), which are indices of vertices.

    `sharp` is True if the file has no normals, so that edges between faces are drawn sharp. `colored` is the mesh as binary glTF with the file's
    colours and textures, or None if the file has neither.
    """

    vertices: Array
    faces: NDArray[np.int64]
    sharp: bool
    colored: bytes | None


def read(path: Path) -> Content:
    """Read a mesh file (.stl .obj .dae .glb .gltf .ply); raise MeshError if it is not a mesh, or has another format.

    As in RViz and Pinocchio, the unit of a COLLADA file is applied, but its up-axis is ignored.
    """
    trimesh: Any = importlib.import_module("trimesh")
    suffix = path.suffix.lower()
    if suffix == ".dae" and find_spec("collada") is None:
        raise MeshError(path.name, "COLLADA files need pycollada: pip install pycollada")
    try:
        scene = opened(path, force="scene")
        solids = [solid for solid in scene.dump() if isinstance(solid, trimesh.Trimesh) and len(solid.faces)]
        if not solids:
            raise MeshError(path.name, "contains no faces")
        unit = trimesh.units.unit_conversion(scene.units, "meters") if suffix == ".dae" and scene.units else 1.0
        mesh = trimesh.util.concatenate([trimesh.Trimesh(s.vertices, s.faces, process=False) for s in solids])
        colored = None
        if any(solid.visual.defined for solid in solids):
            scene.apply_scale(unit)
            colored = scene.export(file_type="glb")
    except MeshError:
        raise
    except Exception as error:  # trimesh's readers can raise any error
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise MeshError(path.name, f"cannot be read ({reason}); expected .stl, .obj, .dae or .glb") from error
    vertices = unit * np.asarray(mesh.vertices, dtype=np.float64)
    if not np.isfinite(vertices).all():
        raise MeshError(path.name, "contains vertices that are not finite")
    return Content(vertices, np.asarray(mesh.faces, dtype=np.int64), suffix == ".stl", colored)


# ---- bodies of revolution and plates ---------------------------------------------------------------------------------

Triangles = tuple[Array, NDArray[np.int64]]


def revolved(profile: ArrayLike, at: Array, axis: Array, sides: int = 20, *, sharp: bool = False) -> Triangles:
    """Return a surface of revolution of a profile of (radius, height) pairs about an axis through a point.

    If `sharp` is True, the surface has sharp edges at the corners of the profile.
    """
    points = np.asarray(profile, dtype=np.float64)
    radius, height = (np.repeat(points, 2, axis=0)[1:-1] if sharp else points).T
    _, _, across = np.linalg.svd(axis[None])
    first = across[1]
    second = np.cross(axis, first)
    angle = np.linspace(0.0, 2 * np.pi, sides, endpoint=False)[:, None]
    circle = np.cos(angle) * first + np.sin(angle) * second
    vertices = at + radius[:, None, None] * circle + height[:, None, None] * axis
    row, column = np.arange(len(radius) - 1)[:, None] * sides, np.arange(sides)
    a, b = row + column, row + (column + 1) % sides
    faces = np.stack([a, b, b + sides, a, b + sides, a + sides], axis=-1)
    return vertices.reshape(-1, 3), faces.reshape(-1, 3)


def capsule(a: Array, b: Array, radius: float) -> Triangles:
    """Return a round bar with round ends."""
    length = math.hypot(*(b - a))  # hypot avoids an intermediate overflow
    axis = (b - a) / length if length > 0 else np.array([0.0, 0.0, 1.0])
    angle = np.linspace(-np.pi / 2, np.pi / 2, 9)
    profile = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return revolved(np.concatenate([profile[:5], profile[4:] + np.array([0.0, length])]), a, axis, 14)


def hinge(place: Place, radius: float) -> Triangles:
    """Return a pin along a revolute axis, a sleeve around a prismatic axis, or a ball for joints without a single axis."""
    if place.kind == "Fixed":
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
    if place.axis is None:
        return ball(place.point, 1.5 * radius)
    wide, half = (1.3, 2.2) if place.kind != "Revolute" else (1.15, 1.6)
    r, h, edge = wide * radius, half * radius, 0.15 * radius
    profile = [(0, -h), (r - edge, -h), (r, edge - h), (r, h - edge), (r - edge, h), (0, h)]
    return revolved(profile, place.point, place.axis, sharp=True)


def ball(at: Array, radius: float, rings: int = 9, sides: int = 20) -> Triangles:
    """Return a sphere."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, rings)
    return revolved(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1), at, np.eye(3)[2], sides)


def solid(shape: Box | Cylinder | Sphere) -> Triangles:
    """Return the mesh of a visual's shape, centred at the origin.

    >>> from sarrus.viewer.shapes import solid
    >>> from sarrus.shapes import Box
    >>> vertices, faces = solid(Box((2.0, 4.0, 6.0)))
    >>> vertices.max(axis=0).tolist(), len(vertices), len(faces)
    ([1.0, 2.0, 3.0], 24, 12)
    """
    if isinstance(shape, Sphere):
        return ball(np.zeros(3), shape.radius, 25, 48)
    if isinstance(shape, Cylinder):
        r, h = shape.radius, shape.length / 2
        return revolved([(0, -h), (r, -h), (r, h), (0, h)], np.zeros(3), np.eye(3)[2], 48, sharp=True)
    # each side has its own four corners, so that edges are sharp; this is the side towards z, from which the other five follow
    side = np.array([(-1, -1, 1), (1, -1, 1), (1, 1, 1), (-1, 1, 1)])
    turned = np.concatenate([sign * np.roll(side, k, axis=1)[::sign] for k in range(3) for sign in (1, -1)])
    faces = np.array([(0, 1, 2), (0, 2, 3)]) + 4 * np.arange(6)[:, None, None]
    return turned * np.array(shape.size) / 2, faces.reshape(-1, 3)


def cone(at: Array, side: Array, radius: float) -> Triangles:
    """Return the mesh of a conical pedestal whose tip is at an anchor."""
    h, r = 4.0 * radius, 2.4 * radius
    return revolved([(0.6 * radius, 0), (r, h), (r, 1.15 * h), (0, 1.15 * h)], at, side, sharp=True)


def plate(points: Array, thickness: float) -> tuple[Triangles, bool]:
    """Return the mesh of the convex hull of points (k, 3) that are not on a line, and True if the points are in a plane.

    If the points are in a plane, the mesh is a plate of this thickness [m].

    >>> import numpy as np
    >>> from sarrus.viewer.shapes import plate
    >>> (vertices, faces), flat = plate(np.array([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]), 0.2)
    >>> np.ptp(vertices, axis=0).tolist(), flat
    ([1.0, 1.0, 0.2], True)
    """
    _, extents, axes = principal(points)
    flat = bool(extents[2] <= FLAT * extents[0])
    if flat:
        points = np.concatenate([points + side * thickness / 2 * axes[2] for side in (1, -1)])
    # three points form a face if all other points are on one side of their plane; testing all triples is fast enough for few points
    triples = np.array(list(itertools.combinations(range(len(points)), 3)))
    a, b, c = points[triples].transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    distance = np.einsum("fi,fki->fk", normals, points - a[:, None])
    tiny = 1e-9 * extents[0] ** 3
    outward, inward = (distance <= tiny).all(axis=1), (distance >= -tiny).all(axis=1)
    faces = np.concatenate([triples[outward & ~inward], triples[inward & ~outward][:, ::-1]])
    # corners are not shared between faces, so that edges are sharp
    return (points[faces.ravel()], np.arange(faces.size).reshape(-1, 3)), flat


def together(parts: Sequence[Triangles]) -> Triangles:
    """Return several meshes as one."""
    vertices, faces = zip(*parts, strict=True)
    starts = np.cumsum([0, *map(len, vertices)])
    return np.concatenate(vertices), np.concatenate([f + start for f, start in zip(faces, starts, strict=False)])


FORCE = (204, 51, 85)
PATHS = ((204, 51, 17), (0, 119, 187), (0, 153, 136), (238, 119, 51), (170, 51, 119))
LONGEST = 0.28  # longest arrow, as a fraction of the mechanism's size
LONGEST_PATH = 2000  # largest number of points of a path


class Forces:
    """Arrows for the forces on the children of joints and rods.

    With a run, the forces are those of :meth:`Trajectory.joint_wrenches`; without a run, those of the mechanism at rest. A run with rigid contact
    also has an arrow for each collision pair: the force on the pair's first shape.

    Attributes
    ----------
    shown : True if arrows are visible
    scale : force that an arrow of one metre represents [N]; 0.0 before the first force
    """

    def __init__(self, scene: Any, mechanism: Mechanism, size: float, radius: float) -> None:
        self._scene, self._mechanism, self._size, self._radius = scene, mechanism, size, radius
        self.shown, self.scale = False, 0.0
        self._node: Any = None

    def show(self, q: Array, run: Trajectory | None, time: float) -> str:
        """Draw the forces at a configuration (nq,), or the forces of a run at a time [s]. Return a line of text that explains the arrows."""
        if self._node is not None:
            self._node.visible = self.shown
        if not self.shown:
            return ""
        robot = self._mechanism
        touching: list[tuple[Array, Array]] = []
        try:
            loads: Mapping[str, Array]
            if run is None:
                loads, largest = robot.joint_wrenches(q, np.zeros(robot.nv), np.zeros(robot.nv)), 0.0
            else:
                wrenches = run.joint_wrenches()
                # uses the preceding sample, because bodies rotate little until the next one
                k = int(np.clip(np.searchsorted(run.t, time, side="right") - 1, 0, len(run) - 1))
                loads = {name: load[k] for name, load in wrenches.items()}
                touching = [(place[k], force[k]) for place, force in run._pressed.values()]
                every = [force for _, force in run._pressed.values()] + [x[:, 3:] for x in wrenches.values()]
                largest = max((float(np.nanmax(np.linalg.norm(x, axis=-1))) for x in every), default=0.0)
        except SarrusError as error:
            if self._node is not None:
                self._node.visible = False
            return f"No forces: {error}"
        forces = [*(force_on_child(robot, q, name, np.asarray(load)) for name, load in loads.items()), *touching]
        arrows = np.nan_to_num(np.array(forces).reshape(-1, 2, 3))
        largest = max(largest, float(np.linalg.norm(arrows[:, 1], axis=1).max(initial=0.0)))
        # the scale does not change between pictures, unless arrows become too long, or too short to be visible
        if not 0.25 * LONGEST * self._size < largest / (self.scale or np.inf) <= 1.0001 * LONGEST * self._size:
            self.scale = largest / (LONGEST * self._size)
        arrows[:, 1] = arrows[:, 0] + arrows[:, 1] / (self.scale or 1.0)
        if self._node is not None and len(self._node.points) != len(arrows):
            self._node.remove()
            self._node = None
        if self._node is None:
            # the arrow's head is wider than a bar, so that a force along the bar is visible
            r = self._radius
            head = {"shaft_radius": 0.4 * r, "head_radius": 1.4 * r, "head_length": 2.8 * r}
            self._node = self._scene.add_arrows("/forces", arrows, FORCE, **head)
        self._node.points = arrows.astype(np.float32)
        when = "in the run" if run is not None else "at rest"
        title = "Forces of joints on their children" + (", and of contacts" if touching else "")
        return f"{title}: {largest:.3g} N at most {when}; 0.1 m is {0.1 * self.scale:.3g} N."


class Traces:
    """Paths of frames' origins during a full run, or during the motion since the last reset to home."""

    def __init__(self, scene: Any, mechanism: Mechanism, names: str | Sequence[str], radius: float) -> None:
        self._scene, self._mechanism, self._radius = scene, mechanism, radius
        self.names = [names] if isinstance(names, str) else list(names)
        for name in self.names:
            if not isinstance(name, str) or name not in mechanism.frames:  # type: ignore[redundant-expr]
                raise_no_such_name("frame", name, mechanism.frames)
        self._lines: dict[str, Any] = {}
        self._visited = np.zeros((len(self.names), 0, 3))

    def draw_run(self, run: Trajectory) -> None:
        """Draw the paths of a run."""
        q = run.q[np.isfinite(run.q).all(axis=1)]
        q = q[np.unique(np.linspace(0, len(q) - 1, min(len(q), LONGEST_PATH)).astype(int))]
        paths = [self._mechanism.pose(q, name)[:, :3, 3] for name in self.names]
        self._visited = np.array(paths).reshape(-1, len(q), 3)
        self._draw()

    def extend(self, q: Array) -> None:
        """Extend the paths to a configuration (nq,)."""
        points = np.array([self._mechanism.pose(q, name)[:3, 3] for name in self.names]).reshape(-1, 1, 3)
        if self._visited.shape[1] and np.abs(points - self._visited[:, -1:]).max(initial=0.0) < 1e-2 * self._radius:
            return
        self._visited = np.concatenate([self._visited, points], axis=1)[:, -LONGEST_PATH:]
        self._draw()

    def clear(self) -> None:
        """Delete the paths."""
        self._visited = self._visited[:, :0]

    def _draw(self) -> None:
        for k, (name, path) in enumerate(zip(self.names, self._visited, strict=True)):
            lines = np.stack([path[:-1], path[1:]], axis=1).astype(np.float32)
            if name not in self._lines:
                style = {"colors": PATHS[k % len(PATHS)], "thickness": 0.35 * self._radius}
                self._lines[name] = self._scene.add_line_segments(f"/traces/{k}", np.zeros((1, 2, 3)), **style)
            self._lines[name].visible = len(lines) > 0
            if len(lines):
                self._lines[name].points = lines


# ---- ghosts: other runs, drawn translucently at the same time ------------------------------------------------------------- A body's bars are one
# mesh with a pose for each run, so that a browser gets one message for each body instead of one for each run.


# largest number of ghosts; more cannot be distinguished, and are too slow on a phone
MOST = 24
OPACITY = 0.22


class Ghosts:
    """Translucent copies of the mechanism, which show several `runs` at one time."""

    def __init__(
        self, scene: Any, skeleton: Skeleton, runs: list[Trajectory], colors: dict[str, Any], parts: dict[str, Triangles]
    ) -> None:  # fmt: skip
        self._skeleton, self.runs = skeleton, runs
        self._q = np.array([run.q[0] for run in runs])
        self._nodes: dict[str, Any] = {}
        self._slides: list[tuple[int, Any]] = []
        many: dict[str, Any] = {"opacity": OPACITY, "cast_shadow": False, "receive_shadow": False, "lod": "off"}
        many["batched_positions"] = np.zeros((len(runs), 3))
        many["batched_wxyzs"] = np.tile([1.0, 0.0, 0.0, 0.0], (len(runs), 1))
        for body, mesh in parts.items():
            path = f"/ghosts/{skeleton.mechanism.bodies.index(body)}"
            self._nodes[body] = scene.add_batched_meshes_simple(path, *mesh, batched_colors=colors[body], **many)
        # a mesh of a rod of one metre, which is scaled to the rod's length
        rod = capsule(np.zeros(3), np.array([0.0, 0.0, 1.0]), 0.006 * skeleton.size)
        many["batched_scales"] = np.ones((len(runs), 3))
        for k, bar in enumerate(skeleton.bars):
            if bar.first[0] != bar.second[0]:
                many["batched_colors"] = colors.get(bar.owner, (150, 150, 150))
                self._slides.append((k, scene.add_batched_meshes_simple(f"/ghosts/slide{k}", *rod, **many)))

    def show(self, time: float) -> None:
        """Move all runs to a time [s]; a run that has ended stays at its last sample."""
        q = np.array([run.at(np.clip(time, run.t[0], run.t[-1]))[0] for run in self.runs])
        # a diverged run stays at its last finite configuration on the screen
        self._q = q = np.where(np.isfinite(q).all(axis=1, keepdims=True), q, self._q)
        poses, _ = self._skeleton._poses(q)
        for body, node in self._nodes.items():
            pose = poses[body]
            node.batched_wxyzs, node.batched_positions = wxyz(pose[:, :3, :3]), pose[:, :3, 3]
        ends = self._skeleton.segments_flat(q) if self._slides else np.zeros((len(q), 0, 2, 3))
        for k, node in self._slides:
            vector = ends[:, k, 1] - ends[:, k, 0]
            length = np.linalg.norm(vector, axis=1, keepdims=True)
            node.batched_positions = ends[:, k, 0]
            node.batched_scales = np.maximum(length, 1e-9) ** [0.0, 0.0, 1.0]
            node.batched_wxyzs = _from_z(vector / np.maximum(length, 1e-300))


def picked(count: int) -> list[int]:
    """Return the indices of the runs that are displayed if there are `count` runs: at most MOST, evenly spaced.

    >>> from sarrus.viewer.shapes import picked
    >>> picked(3), len(picked(1000)), picked(1000)[-1]
    ([0, 1, 2], 24, 999)
    """
    return [round(float(k)) for k in np.linspace(0, count - 1, min(count, MOST))]


def wxyz(rotations: Array) -> Array:
    return np.roll(quaternion_from_rotation(rotations), 1, axis=-1)


def _from_z(directions: Array) -> Array:
    """Return unit quaternions (k, 4) of rotations from z to unit vectors (k, 3)."""
    x, y, z = directions.T
    turn = np.stack([1.0 + z, -y, x, np.zeros_like(z)], axis=1)
    turn[1.0 + z < 1e-9] = (0.0, 1.0, 0.0, 0.0)
    return np.asarray(turn / np.linalg.norm(turn, axis=1, keepdims=True))


# ---- names of bodies, joints and frames ------------------------------------------------------------------------------

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
    >>> from sarrus.viewer.shapes import spread
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
            # distances are to the nearest side of the name's box; the box's centre is half a width or height farther away
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
