"""A mechanism in the browser: looked at from all sides, moved by hand with its loops closed, and a run played back."""

from __future__ import annotations

import contextlib
import importlib
import io
import math
import threading
import time as clock
import webbrowser
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ModelError, ShapeError, StateError, raise_no_such_name
from .loops.scaled import ScaledLoops
from .mechanism import Mechanism
from .skeleton import COLORS, Place, Skeleton
from .spatial import Rotation
from .state import Array

if TYPE_CHECKING:
    from typing import Self

    from .trajectory import Trajectory

Triangles = tuple[Array, NDArray[np.int64]]

FRAMES_PER_SECOND = 30
SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5")
CLOSED = 1e-11  # relative residual up to which a moved mechanism counts as closed
HINGES = "#3d4450"
AXES = ("x", "y", "z")


def view(
    mechanism: Mechanism,
    q: ArrayLike | None = None,
    *,
    trajectory: Trajectory | None = None,
    port: int = 8080,
    host: str = "127.0.0.1",
    open_browser: bool = True,
    block: bool = True,
) -> View:
    """Show a mechanism in the browser, with a slider per independent coordinate; loops stay closed as it moves.

    Parameters
    ----------
    mechanism : the mechanism
    q : (nq,) configuration to show first; default: the first of the trajectory, or the assembled home
    trajectory : a run to play back
    port : where to serve it; the next free one is taken if something else is there
    host : which addresses may look: this machine's own; "0.0.0.0" for others too
    open_browser : whether to open a browser window
    block : True waits until Ctrl-C; False returns at once, as a notebook wants it

    Returns
    -------
    View : the handle: ``.url``, ``.set(q)``, ``.move({"motor": 0.5})``, ``.play()``, ``.close()``

    Raises
    ------
    ModuleNotFoundError
        viser is not installed: ``pip install "sarrus[view]"``.
    ShapeError, StateError
        q has a wrong size, or is not finite.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.view(sarrus.mechanisms.four_bar(), block=False)  # doctest: +SKIP
    <view of 'four_bar' at http://127.0.0.1:8080>
    """
    shown = View(mechanism, q, trajectory=trajectory, port=port, host=host)
    if open_browser:
        webbrowser.open(shown.url)
    if block:
        print(f"{mechanism.name} at {shown.url}  (Ctrl-C ends it)", flush=True)
        shown.wait()
    return shown


# ---- moving by hand --------------------------------------------------------------------------------------------------


class Inputs:
    """Independent coordinates of a mechanism, which move it with its loops closed.

    Coordinates are q, joint by joint; rotations of ball and free joints count as rotation vectors, so that there are nv of them. As many
    as there are degrees of freedom in q are chosen: those of motors first, then the ones that the motion shows best.

    Attributes
    ----------
    names : of the coordinates, all nv: the joint's, with the coordinate where there are several
    joints : of which joint each is
    lengths : (nv,) whether it is one [m] instead of an angle [rad]
    chosen : indices of the independent ones
    """

    def __init__(self, mechanism: Mechanism, q: Array, time: float = 0.0) -> None:
        self.mechanism, self.time = mechanism, time
        self.names: list[str] = []
        self.joints: list[str] = []
        for name in mechanism.joints:
            labels = _coordinate_names(mechanism, name)
            self.names += [name] if len(labels) == 1 else [f"{name}: {label}" for label in labels]
            self.joints += [name] * len(labels)
        self.loops = ScaledLoops(mechanism, q, time)
        self.lengths = self.loops.sliding
        self.chosen = self._choose(q)

    def coordinates(self, q: ArrayLike) -> Array:
        """All coordinates (..., nv) of configurations (..., nq)."""
        q = np.asarray(q, dtype=np.float64)
        parts = [np.zeros((*q.shape[:-1], 0))]
        for name in self.mechanism.joints:
            joint = self.mechanism.joint(name)
            x = q[..., joint.q_slice]
            if joint.kind in ("Spherical", "Free"):
                x = np.concatenate([_rotation_vector(x[..., :4]), x[..., 4:]], axis=-1)
            parts.append(x)
        return np.concatenate(parts, axis=-1)

    def lead(self, q: Array, goal: Mapping[int, float]) -> tuple[Array, bool]:
        """Move coordinates to a goal in small steps, the other chosen ones held; how far that led, and whether all the way."""
        rows = np.array(sorted({*self.chosen, *goal}), dtype=np.intp)
        if len(rows) == 0:
            return q, not goal
        start = self.coordinates(q)[rows]
        way = np.array([goal.get(int(k), x) for k, x in zip(rows, start, strict=True)]) - start
        count = max(1, math.ceil(float(np.abs(way / self.loops.column_scale[rows]).max()) / 0.1))
        longest = part_step = 1.0 / count
        part = 0.0
        while part < 1.0:
            there = min(1.0, part + part_step)
            found = self._close(q, rows, start + there * way)
            if found is None:
                part_step /= 2
                if part_step < longest / 256:
                    return q, False
            else:
                q, part, part_step = found, there, min(longest, 2 * part_step)
        return q, True

    def _close(self, q: Array, rows: NDArray[np.intp], target: Array) -> Array | None:
        """The configuration with closed loops and these coordinates, by Newton's steps; None where they lead nowhere, or far away."""
        loops, now = self.loops, q
        scale = loops.column_scale
        closed = False
        for _ in range(12):
            off = np.concatenate(
                [loops.residual(now)[loops.holonomic], (self.coordinates(now)[rows] - target) / scale[rows]]
            )
            if closed:
                moved = np.abs(self.mechanism.difference(q, now) / scale).max()
                return now if moved < 0.6 else None
            A = np.concatenate(
                [loops.jacobian(now)[loops.holonomic], self._rates(now)[rows] * scale / scale[rows, None]]
            )
            # not solve: rows of planar loops depend on one another
            step = np.linalg.lstsq(A, -off, rcond=1e-9)[0]
            if not np.abs(step).max() < 1.0:
                return None
            now = self.mechanism.integrate(now, step * scale)
            # one step more takes the last digits
            closed = bool(np.abs(off).max() < CLOSED)
        return None

    def _rates(self, q: Array) -> Array:
        """Derivative (nv, nv) of the coordinates by the velocities, by differences: Newton's steps need no more."""
        h = 1e-6
        steps = h * np.eye(self.mechanism.nv)
        return np.asarray((self.coordinates(self.mechanism.integrate(q, steps)) - self.coordinates(q)).T / h)

    def _choose(self, q: Array) -> list[int]:
        if self.mechanism.nv == 0:
            return []
        J = self.loops.jacobian(q)[self.loops.holonomic]
        _, sizes, directions = np.linalg.svd(J, full_matrices=True)
        rank = int((sizes > 1e-7 * max(1.0, sizes.max(initial=0.0))).sum())
        scale = self.loops.column_scale
        shown = (self._rates(q) * scale / scale[:, None]) @ directions[rank:].T
        chosen: list[int] = []

        def take(k: int) -> None:
            nonlocal shown
            chosen.append(k)
            along = shown[k] / np.linalg.norm(shown[k])
            shown = shown - np.outer(shown @ along, along)

        motors = [k for k, name in enumerate(self.joints) if name in self.mechanism.actuated]
        for candidates in (motors, range(self.mechanism.nv)):
            while len(chosen) < self.mechanism.nv - rank:
                # the first of equals; digits that rounding decides must not decide on it
                best = max(candidates, key=lambda k: (float(np.linalg.norm(shown[k]).round(6)), -k), default=-1)
                if best < 0 or np.linalg.norm(shown[best]) < 1e-3:
                    break
                take(best)
        chosen.sort()
        return [k for k in chosen if k in motors] + [k for k in chosen if k not in motors]


def _coordinate_names(mechanism: Mechanism, name: str) -> Sequence[str]:
    joint = mechanism.joint(name)
    turns = tuple(f"r{axis}" for axis in AXES)
    several: dict[str, Sequence[str]] = {
        "Gimbal": tuple(getattr(joint.type, "free", ())),
        "Spherical": turns,
        "Free": (*turns, *AXES),
        "Planar": ("x", "y", "angle"),
        "Universal": ("1", "2"),
        "Cylindrical": ("angle", "slide"),
    }
    return several[joint.kind] if joint.kind in several else ("",) * int(joint.nv)


def _rotation_vector(quaternion: Array) -> Array:
    """Rotation vectors (..., 3) of unit quaternions (..., 4), (x, y, z, w), of at most half a turn."""
    q = np.where(quaternion[..., 3:] < 0.0, -quaternion, quaternion)
    sine = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    safe = np.where(sine > 0.0, sine, 1.0)
    factor = np.where(sine > 0.0, 2.0 * np.arctan2(sine, q[..., 3:]) / safe, 2.0)
    return np.asarray(factor * q[..., :3])


# ---- the scene -------------------------------------------------------------------------------------------------------


class View:
    """A mechanism on show. Any thread may use it; as a context manager it closes itself.

    Attributes
    ----------
    mechanism, trajectory : what is shown
    url : where a browser finds it
    sliders : coordinate to its slider, as in :attr:`Inputs.names`
    """

    def __init__(
        self,
        mechanism: Mechanism,
        q: ArrayLike | None = None,
        *,
        trajectory: Trajectory | None = None,
        port: int = 8080,
        host: str = "127.0.0.1",
    ) -> None:
        viser = _viser()
        if trajectory is not None and trajectory.mechanism != mechanism:
            raise ModelError(f"the trajectory is one of '{trajectory.mechanism.name}', not of '{mechanism.name}'")
        self.mechanism, self.trajectory = mechanism, trajectory
        if q is None:
            q = mechanism.assemble() if trajectory is None else trajectory.q[0]
        self._q = self._checked(q)
        self._home, self._time = self._q, 0.0 if trajectory is None else float(trajectory.t[0])
        self._start = self._time
        self._skeleton = Skeleton(mechanism)
        self._inputs = Inputs(mechanism, self._q, self._time)
        # what callbacks of the browser, the player and the user's own thread share
        self._lock = threading.RLock()
        self._showing = self._closed = False
        self._playing, self._ended = threading.Event(), threading.Event()
        with contextlib.redirect_stdout(io.StringIO()):  # its banner says what url says
            self._server = viser.ViserServer(host=host, port=port, verbose=False)
        self.url = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{self._server.get_port()}"
        self._nodes: dict[str, Any] = {}
        self._slides: list[tuple[int, Any]] = []
        self._labels: dict[str, list[Any]] = {"bodies": [], "joints": [], "frames": []}
        self.sliders: dict[str, Any] = {}
        self._player = threading.Thread(target=self._play, name="sarrus-view", daemon=True)
        try:
            with self._server.atomic():
                self._draw()
                self._controls()
                self._show()
        except BaseException:
            self.close()
            raise
        if trajectory is not None:
            self._player.start()

    # ---- what one does with it ---------------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """(nq,) configuration on show."""
        with self._lock:
            return self._q.copy()

    @property
    def time(self) -> float:
        """Time of the trajectory that is shown [s]."""
        return self._time

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the coordinates with sliders."""
        return tuple(self.sliders)

    def set(self, q: ArrayLike) -> None:
        """Show a configuration (nq,), as it is: its loops may be open."""
        checked = self._checked(q)
        with self._lock:
            self._q = checked
            self._show()

    def move(self, coordinates: Mapping[str, float]) -> bool:
        """Lead coordinates to values, loops closed; False where they could not come all the way, and the mechanism stays where it was.

        Names are those of :attr:`Inputs.names`: joints, or "joint: coordinate".
        """
        known = {name: k for k, name in enumerate(self._inputs.names)}
        goal: dict[int, float] = {}
        for name, value in coordinates.items():
            if name not in known:
                raise_no_such_name("coordinate", name, known)
            if not math.isfinite(value):
                raise StateError(f"coordinate '{name}' must be finite; got {value}")
            goal[known[name]] = float(value)
        with self._lock:
            self._inputs.loops.time = self._time
            q, arrived = self._inputs.lead(self._q, goal)
            if arrived:
                self._q = q
                self._say("")
            else:
                reached = self._inputs.coordinates(q)
                ends = [f"{name} ends at {reached[known[name]]:.3f}" for name in coordinates]
                self._say(f"The loops would open: {', '.join(ends)}.")
            self._show()
        return arrived

    def home(self) -> None:
        """Go back to the first configuration."""
        self.pause()
        with self._lock:
            self._q, self._time = self._home, self._start
            self._say("")
            self._show()

    def seek(self, time: float) -> None:
        """Show the trajectory at a time [s], at its ends beyond them."""
        run = self._run()
        with self._lock:
            self._time = float(np.clip(time, run.t[0], run.t[-1]))
            q = np.asarray(run.at(self._time)[0], dtype=np.float64)
            # a run that diverged may end in numbers that are none
            if np.isfinite(q).all():
                self._q = q
            self._show()

    def play(self) -> None:
        """Play the trajectory, from its start if it is at its end."""
        run = self._run()
        if self._time >= float(run.t[-1]):
            self.seek(float(run.t[0]))
        self._playing.set()
        self._play_button.label = "Pause"

    def pause(self) -> None:
        """Stop playing."""
        self._playing.clear()
        if self.trajectory is not None:
            self._play_button.label = "Play"

    def wait(self) -> None:
        """Wait until it is closed, or for Ctrl-C, which closes it."""
        try:
            while not self._ended.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop serving; a second time does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._ended.set()
        self._playing.set()
        if self._player.is_alive() and self._player is not threading.current_thread():
            self._player.join(timeout=5.0)
        with contextlib.redirect_stdout(io.StringIO()):
            self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<view of '{self.mechanism.name}' {'closed' if self._closed else f'at {self.url}'}>"

    def _repr_html_(self) -> str:
        if self._closed:
            return repr(self).replace("<", "&lt;")
        return f'<iframe src="{self.url}" width="100%" height="480" style="border: 0"></iframe>'

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        skeleton, scene = self._skeleton, self._server.scene
        longest: dict[str, float] = {}
        for bar in skeleton.bars:
            if bar.first[0] == bar.second[0]:
                length = float(np.linalg.norm(bar.second[1] - bar.first[1]))
                longest[bar.owner] = max(longest.get(bar.owner, 0.0), length)
        # slender where many bodies are short
        usual = float(np.median(list(longest.values()))) if longest else skeleton.size
        radius = min(0.025 * skeleton.size, max(0.07 * usual, 0.012 * skeleton.size))
        self._radius = radius
        up = _up(self.mechanism)
        scene.set_up_direction(tuple(up.tolist()))
        for k, body in enumerate(self.mechanism.bodies):
            path, color = f"/bodies/{k}", _rgb(COLORS[k % len(COLORS)])
            self._nodes[body] = scene.add_frame(path, show_axes=False)
            own = [bar for bar in skeleton.bars if bar.first[0] == bar.second[0] == bar.owner == body]
            if own:
                vertices, faces = _together([_capsule(bar.first[1], bar.second[1], radius) for bar in own])
                scene.add_mesh_simple(f"{path}/bars", vertices, faces, color=color)
            hinges = [_hinge(place, radius) for place in skeleton.joints.values() if place.body == body]
            if hinges and any(len(h[0]) for h in hinges):
                vertices, faces = _together(hinges)
                scene.add_mesh_simple(f"{path}/joints", vertices, faces, color=_rgb(HINGES))
            ends = [p for bar in own for p in (bar.first[1], bar.second[1])]
            middle = np.mean(ends, axis=0) if ends else np.zeros(3)
            self._label("bodies", f"{path}/name", body, middle)
        ends_now = skeleton.segments_flat(self._q)
        for k, bar in enumerate(skeleton.bars):
            if bar.first[0] != bar.second[0]:
                owner = self.mechanism.bodies.index(bar.owner) if bar.owner in self.mechanism.bodies else 0
                vertices, faces = _capsule(ends_now[k, 0], ends_now[k, 1], 0.5 * radius)
                color = _rgb(COLORS[owner % len(COLORS)])
                self._slides.append((k, scene.add_mesh_simple(f"/slides/{k}", vertices, faces, color=color)))
        for k, place in enumerate(skeleton.joints.values()):
            if place.body in self._nodes:
                path = f"/bodies/{self.mechanism.bodies.index(place.body)}/joint{k}"
                self._label("joints", path, place.joint, place.point)
        for k, frame in enumerate(self.mechanism.description.frames):
            node = f"/bodies/{self.mechanism.bodies.index(frame.body)}" if frame.body in self._nodes else ""
            x, y, z, w = _quaternion(frame.placement.rotation)
            self._labels["frames"].append(
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
        self._surroundings(up, ends_now)

    def _surroundings(self, up: Array, ends: Array) -> None:
        """Pedestals on the ground, a grid, light, and the camera."""
        skeleton, scene, radius = self._skeleton, self._server.scene, self._radius
        low, high = skeleton.bounds(self._q)
        middle = (low + high) / 2
        anchors = skeleton.anchors
        # where the mechanism hangs from its anchors they are held from above
        hangs = (
            len(anchors) > 0
            and float(((ends.reshape(-1, 3).mean(axis=0) if ends.size else middle) - anchors.mean(axis=0)) @ up) < 0.0
        )
        side = up if hangs else -up
        if len(anchors):
            vertices, faces = _together([_cone(anchor, side, radius) for anchor in anchors])
            scene.add_mesh_simple("/ground/anchors", vertices, faces, color=_rgb(HINGES))
        rolls = any(type(c).__name__ == "RollingSpec" for c in self.mechanism.description.constraints)
        corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
        level = float((corners @ up).min()) - (0.0 if rolls else 5.0 * radius)
        cell = _round_length(skeleton.size / 4)
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
        camera = self._server.initial_camera
        camera.look_at = middle
        camera.position = middle + 1.6 * span * _from_where(high - low, up)
        camera.up = up
        camera.fov = math.radians(42.0)
        camera.near = 0.01 * span
        camera.far = 100 * span

    def _label(self, kind: str, path: str, text: str, where: Array) -> None:
        label = self._server.scene.add_label(path, text, position=where, visible=False)
        self._labels[kind].append(label)

    # ---- controls ----------------------------------------------------------------------------------------------------

    def _controls(self) -> None:
        gui, inputs = self._server.gui, self._inputs
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(68, 119, 170))
        gui.main_panel.dock_right()
        gui.set_panel_label(self.mechanism.name)
        self._status = gui.add_markdown("")
        if self.trajectory is not None:
            self._playback(self.trajectory)
        now = inputs.coordinates(self._q)
        with gui.add_folder("Joints"):
            for k in inputs.chosen:
                lowest, highest = self._range(k, float(now[k]))
                unit = "m" if inputs.lengths[k] else "rad"
                step = _round_length((highest - lowest) / 2000)
                slider = gui.add_slider(
                    f"{inputs.names[k]} [{unit}]", lowest, highest, step, round(float(now[k]), 6) + 0.0
                )
                slider.on_update(lambda _, name=inputs.names[k]: self._slid(name))
                self.sliders[inputs.names[k]] = slider
            home = gui.add_button("Home")
            home.on_click(lambda _: self.home())
        with gui.add_folder("Show", expand_by_default=False):
            for kind in ("bodies", "joints", "frames"):
                if self._labels[kind]:
                    box = gui.add_checkbox(f"Names of {kind}", False)
                    box.on_update(lambda event, kind=kind: self._reveal(kind, event.target.value))

    def _playback(self, run: Trajectory) -> None:
        gui = self._server.gui
        first, last = float(run.t[0]), float(run.t[-1])
        with gui.add_folder("Playback"):
            self._play_button = gui.add_button("Play")
            self._play_button.on_click(lambda _: self.pause() if self._playing.is_set() else self.play())
            last_shown = last if last > first else first + 1.0
            self._clock = gui.add_slider(
                "time [s]", first, last_shown, _round_length((last_shown - first) / 5000), first
            )
            self._clock.on_update(lambda _: self._sought())
            self._speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
            self._repeat = gui.add_checkbox("repeat", True)

    def _range(self, k: int, now: float) -> tuple[float, float]:
        """Where a slider ends: at the joint's limits, or half a turn or the mechanism's size away."""
        inputs = self._inputs
        joint = self.mechanism.joint(inputs.joints[k])
        reach = self._skeleton.size if inputs.lengths[k] else math.pi
        lowest, highest = (now - reach, now + reach) if inputs.lengths[k] else (-reach, reach)
        if joint.limits is not None and joint.nq == joint.nv:
            index = inputs.joints[:k].count(joint.name)
            low, high = float(joint.limits[0][index]), float(joint.limits[1][index])
            lowest, highest = low if math.isfinite(low) else lowest, high if math.isfinite(high) else highest
        # outward to what a slider's label can show
        return math.floor(1e3 * min(lowest, now)) / 1e3, math.ceil(1e3 * max(highest, now)) / 1e3

    def _slid(self, name: str) -> None:
        """A slider was moved: by hand, unless it is us who show where the mechanism is."""
        with self._lock:
            if self._showing or self._closed:
                return
            self.pause()
            # read under the lock: of many messages about one drag the last counts
            self.move({name: float(self.sliders[name].value)})

    def _sought(self) -> None:
        with self._lock:
            if not self._showing and not self._closed:
                self.pause()
                self.seek(float(self._clock.value))

    def _reveal(self, kind: str, visible: bool) -> None:
        for label in self._labels[kind]:
            label.visible = visible

    def _say(self, text: str) -> None:
        self._status.content = text

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Put all bodies where q has them, and sliders with them."""
        known = self.mechanism.kinematics(self._q)
        now = self._inputs.coordinates(self._q)
        self._showing = True
        try:
            with self._server.atomic():
                for body, node in self._nodes.items():
                    pose = known.pose(body)
                    x, y, z, w = _quaternion(pose[:3, :3])
                    node.wxyz, node.position = (w, x, y, z), pose[:3, 3]
                if self._slides:
                    ends = self._skeleton.segments_flat(self._q)
                    for k, mesh in self._slides:
                        mesh.vertices = _capsule(ends[k, 0], ends[k, 1], 0.5 * self._radius)[0]
                for k in self._inputs.chosen:
                    slider, value = self.sliders.get(self._inputs.names[k]), round(float(now[k]), 6) + 0.0
                    if slider is not None:
                        slider.min, slider.max = min(slider.min, value), max(slider.max, value)
                        slider.value = value
                if self.trajectory is not None:
                    self._clock.value = self._time
        finally:
            self._showing = False

    def _play(self) -> None:
        """What the player's thread does: as often as a film changes, one more picture."""
        run = self._run()
        first, last = float(run.t[0]), float(run.t[-1])
        while not self._ended.is_set():
            self._playing.wait()
            before = clock.perf_counter()
            while self._playing.is_set() and not self._ended.wait(1.0 / FRAMES_PER_SECOND):
                now = clock.perf_counter()
                with self._lock:
                    if not self._playing.is_set():
                        break
                    t = self._time + (now - before) * float(self._speed.value)
                    if t >= last and self._repeat.value:
                        t = first
                    self.seek(t)
                    if t >= last:
                        self.pause()
                before = now

    def _run(self) -> Trajectory:
        if self.trajectory is None:
            raise ModelError("there is no trajectory to play: view(mechanism, trajectory=...)")
        return self.trajectory

    def _checked(self, q: ArrayLike) -> Array:
        given = np.asarray(q, dtype=np.float64)
        if given.shape != (self.mechanism.nq,):
            raise ShapeError(f"q has shape {given.shape}; a view shows one configuration, ({self.mechanism.nq},)")
        if not np.isfinite(given).all():
            raise StateError("q must be finite to be shown")
        return np.asarray(self.mechanism.normalize(given))


def _viser() -> Any:
    try:
        return importlib.import_module("viser")
    except ModuleNotFoundError as error:
        if error.name != "viser":
            raise
        raise ModuleNotFoundError('the view needs viser: pip install "sarrus[view]"', name="viser") from None


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _quaternion(rotation: Array) -> Array:
    return Rotation.from_matrix(rotation).quaternion


def _up(mechanism: Mechanism) -> Array:
    """Against gravity; z where there is none."""
    strength = float(np.linalg.norm(mechanism.gravity))
    return -mechanism.gravity / strength + 0.0 if strength > 0 else np.array([0.0, 0.0, 1.0])


def _round_length(x: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not above x.

    >>> _round_length(0.7)
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


# ---- meshes ----------------------------------------------------------------------------------------------------------


def _revolved(profile: ArrayLike, at: Array, axis: Array, sides: int = 20) -> Triangles:
    """A profile of (radius, height) pairs turned about an axis through a point. A point given twice makes a sharp edge."""
    radius, height = np.asarray(profile, dtype=np.float64).T
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


def _capsule(a: Array, b: Array, radius: float) -> Triangles:
    """A round bar with round ends."""
    length = float(np.linalg.norm(b - a))
    axis = (b - a) / length if length > 0 else np.array([0.0, 0.0, 1.0])
    angle = np.linspace(0.0, np.pi / 2, 5)
    top = np.stack([radius * np.cos(angle), length + radius * np.sin(angle)], axis=1)
    bottom = np.stack([radius * np.cos(angle), -radius * np.sin(angle)], axis=1)[::-1]
    return _revolved(np.concatenate([bottom, top]), a, axis, 14)


def _hinge(place: Place, radius: float) -> Triangles:
    """A pin along the axis of what turns, a sleeve around what slides, a ball where there is not one axis."""
    if place.kind == "Fixed":
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
    if place.axis is None:
        angle = np.linspace(-np.pi / 2, np.pi / 2, 9)
        return _revolved(1.5 * radius * np.stack([np.cos(angle), np.sin(angle)], axis=1), place.point, np.eye(3)[2])
    wide, half = (1.3, 2.2) if place.kind != "Revolute" else (1.15, 1.6)
    r, h = wide * radius, half * radius
    edge = 0.15 * radius
    profile = [(0, -h), (r - edge, -h), (r - edge, -h), (r, edge - h), (r, edge - h), (r, h - edge), (r, h - edge),
               (r - edge, h), (r - edge, h), (0, h)]  # fmt: skip
    return _revolved(profile, place.point, place.axis)


def _cone(at: Array, side: Array, radius: float) -> Triangles:
    """A pedestal with its tip at an anchor."""
    h, r = 4.0 * radius, 2.4 * radius
    return _revolved([(0.6 * radius, 0), (r, h), (r, h), (r, 1.15 * h), (r, 1.15 * h), (0, 1.15 * h)], at, side)


def _together(parts: Sequence[Triangles]) -> Triangles:
    """Several meshes as one."""
    counts = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    return (
        np.concatenate([vertices for vertices, _ in parts]),
        np.concatenate([faces + start for (_, faces), start in zip(parts, counts[:-1], strict=True)]),
    )
