"""Controls of a view: sliders and buttons next to the scene.

A panel has a slider for each independent coordinate, and a time slider for runs. :class:`~sarrus.viewer.viewer.View` handles the events of the
controls. viser also calls the handlers of a slider if the program sets its value.

On a wide screen the panel is next to the picture. On a phone, viser shows it at the lower end of the screen, with the frequent controls first and all
others folded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._arrays import Array, ArrayLike
from ..analysis.assembly.closing import closing
from ..analysis.assembly.continuation import Branch
from ..analysis.scaling import ScaledLoops
from ..control.interpolation import Chart
from ..mechanism import Mechanism
from .camera import PRESETS
from .scene import Scene, round_length

# ---- independent coordinates that move a mechanism with its loops closed ---------------------------------------------
#
# Each independent coordinate is a row in addition to the loop constraints, like the inputs of :func:`~sarrus.Mechanism.follow`. All other coordinates
# move as little as possible. The motion ends at the end of the branch.

CLOSED = 1e-11  # largest relative residual of closed loops, and largest error of a coordinate
# longest step [rad, or relative to the mean size of the bodies], and shortest step as a fraction of the path
STEPS = 0.2, 1e-4


class Inputs:
    """Independent coordinates of a mechanism, which move it with its loops closed.

    The nv coordinates are those of q, joint by joint, but with rotation vectors instead of quaternions. As many independent coordinates are chosen as
    there are degrees of freedom at q: coordinates of motors first, then coordinates with large changes.

    Attributes
    ----------
    names : names of all nv coordinates: the joint's name, with the name of the coordinate if the joint has several
    joints : joint of each coordinate
    lengths : (nv,) True for a length [m], False for an angle [rad]
    chosen : indices of the independent coordinates
    """

    def __init__(self, mechanism: Mechanism, q: Array, time: float = 0.0) -> None:
        self.mechanism, self.time = mechanism, time
        self.names: list[str] = []
        self._single: list[tuple[str, int]] = []
        for name in mechanism.joints:
            labels = [label for label, _ in mechanism.joint(name).type.velocities]
            self.names += [name] if len(labels) == 1 else [f"{name}: {label}" for label in labels]
            self._single += [(name, k) for k in range(len(labels))]
        self.joints = [name for name, _ in self._single]
        self._chart = Chart(mechanism)
        self.loops = ScaledLoops(mechanism, q, time)
        self.lengths = self.loops.sliding
        self.chosen = self._choose(q)

    def coordinates(self, q: ArrayLike) -> Array:
        """Return all coordinates (..., nv) of configurations (..., nq) [rad, m]."""
        return self._chart.difference(self.mechanism.neutral(), np.asarray(q, dtype=np.float64))

    def move_to(self, q: Array, goal: Mapping[int, float]) -> tuple[Array, bool]:
        """Move coordinates to a goal on the current branch; the other independent coordinates do not move.

        Return the last configuration (nq,), and True if the goal was reached.
        """
        rows = sorted({*self.chosen, *goal})
        start = self.coordinates(q)[rows]
        end = [goal.get(k, x) for k, x in zip(rows, start, strict=True)]
        loops = closing(self.mechanism, (), (), tuple(self._single[k] for k in rows))
        branch = Branch(loops, np.full(2, self.loops.time or 0.0), {}, np.array([start, end]), STEPS, CLOSED)
        q, passed = branch.last(q)
        return q, passed == 1.0

    def reach(self, q: Array, k: int, ends: tuple[float, float]) -> tuple[float, float]:
        """Return the range of independent coordinate k that is reachable within `ends`; the other independent coordinates do not move.

        If the coordinate is in no loop, the range is `ends`.
        """
        rows = self.loops.holonomic
        if not rows.any() or not np.abs(self.loops.jacobian(q)[rows][:, k]).max() > CLOSED:
            return ends
        low, high = (float(self.coordinates(self.move_to(q, {k: end})[0])[k]) for end in ends)
        return low, high

    def _choose(self, q: Array) -> list[int]:
        if self.mechanism.nv == 0:
            return []
        J = self.loops.jacobian(q)[self.loops.holonomic]
        _, sizes, directions = np.linalg.svd(J, full_matrices=True)
        rank = int((sizes > 1e-7 * max(1.0, sizes.max(initial=0.0))).sum())
        scale = self.loops.column_scale
        shown = (self._chart.rates(q, np.eye(self.mechanism.nv)).T * scale / scale[:, None]) @ directions[rank:].T
        chosen: list[int] = []

        def take(k: int) -> None:
            nonlocal shown
            chosen.append(k)
            along = shown[k] / np.linalg.norm(shown[k])
            shown = shown - np.outer(shown @ along, along)

        motors = [k for k, name in enumerate(self.joints) if name in self.mechanism.actuated]
        for candidates in (motors, range(self.mechanism.nv)):
            while len(chosen) < self.mechanism.nv - rank:
                # choose the first of the candidates with equal norm; norms are rounded so that rounding errors do not affect the choice
                best = max(candidates, key=lambda k: (float(np.linalg.norm(shown[k]).round(6)), -k), default=-1)
                if best < 0 or np.linalg.norm(shown[best]) < 1e-3:
                    break
                take(best)
        chosen.sort()
        return [k for k in chosen if k in motors] + [k for k in chosen if k not in motors]


# ---- the panel -------------------------------------------------------------------------------------------------------

NAMES = {"bodies": "body", "joints": "joint", "frames": "frame"}
SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5")
# [px] height of the panel on a phone, and additional heights for the playback and for each row
SHEET, PLAYBACK, ROW = 220, 70, 34
MARKUP = re.compile(r"[\\`*_~<>\[\]&|!#]")  # characters with a meaning in Markdown, which are escaped by a backslash
# largest number of sliders whose range is computed by moving the mechanism; limited, so that views open quickly
FOLLOWED = 8


class Panel:
    """Panel with the controls of a viewer, in a viser server.

    Attributes
    ----------
    status, note : line for errors, and line that explains arrows and ghosts
    home, views : button that resets the view, and buttons of the camera presets
    configurations : menu of named configurations, if there are any
    sliders : coordinate to its slider, as in :attr:`Inputs.names`
    boxes : "bodies", "joints" and "frames" (each only if there are any) to the checkbox that shows their names
    visuals : checkbox that shows meshes instead of bars, if bodies have visuals
    forces, dark : checkboxes for arrows of forces, and for dark colours
    play, clock, speed, repeat : controls of the playback, only with runs
    run : slider of the displayed run, only with several runs
    """

    def __init__(self, gui: Any, inputs: Inputs, q: Array, scene: Scene, span: tuple[float, float], runs: int) -> None:
        self._inputs, self._plays = inputs, runs > 0
        self.sliders: dict[str, Any] = {}
        gui.main_panel.dock_right()
        gui.set_panel_label(inputs.mechanism.name)
        self.status = gui.add_markdown("", visible=False)
        if runs:
            self._playback(gui, *span, runs)
        self.home = gui.add_button("Home", hint="initial configuration and camera")
        named = [name for name, _ in inputs.mechanism.description.configurations if name != "home"]
        if named:
            self.configurations = gui.add_dropdown("configuration", ("home", *named), initial_value="home")
        self.views = gui.add_button_group("view", PRESETS)
        with gui.add_folder("Show", expand_by_default=False):
            self.boxes = {kind: gui.add_checkbox(f"{NAMES[kind]} names", False) for kind in scene.labels.kinds}
            self.forces = gui.add_checkbox("forces", False, hint="forces of joints on their children")
            if scene.visuals:
                self.visuals = gui.add_checkbox("meshes", True, hint="off: bars instead of meshes")
            self.dark = gui.add_checkbox("dark", False)
            if runs:
                self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
                self.repeat = gui.add_checkbox("repeat", True)
        self.note = gui.add_markdown("", visible=False)
        if inputs.chosen:
            self._joints(gui, inputs.coordinates(q), q, scene.skeleton.size)
        scene.camera.sheet = SHEET + (PLAYBACK if runs else 0) + ROW * ((runs > 1) + bool(named))
        self.theme(gui, False)

    def theme(self, gui: Any, dark: bool) -> None:
        """Set light or dark colours on all pages."""
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(68, 119, 170), dark_mode=dark)

    def show(self, coordinates: Array, time: float) -> None:
        """Set the sliders to the mechanism's coordinates (nv,) [rad, m], and the clock to a time [s]."""
        for k in self._inputs.chosen:
            slider, value = self.sliders[self._inputs.names[k]], _shown(coordinates[k])
            slider.min, slider.max = min(slider.min, value), max(slider.max, value)
            slider.value = value
        if self._plays:
            self.clock.value = time

    def set_status(self, text: str) -> None:
        """Set the text of the status line; "" hides it."""
        self.status.content, self.status.visible = _plain(text), bool(text)

    def set_note(self, text: str) -> None:
        """Set the text of the note under the checkboxes; "" hides it."""
        content = _plain(text.strip())
        if content != self.note.content:
            self.note.content, self.note.visible = content, bool(content)

    def _playback(self, gui: Any, first: float, last: float, runs: int) -> None:
        # a slider needs a positive range, also for a trajectory of one sample
        last = last if last > first else first + 1.0
        self.play = gui.add_button("Play")
        self.clock = gui.add_slider("time [s]", first, last, round_length((last - first) / 5000), first)
        if runs > 1:
            self.run = gui.add_slider("run", 0, runs - 1, 1, 0)

    def _joints(self, gui: Any, values: Array, q: Array, size: float) -> None:
        below = gui.add_panel()
        below.dock_below(gui.main_panel)
        with below.add_tab("Joints"):
            for number, k in enumerate(self._inputs.chosen):
                lowest, highest = self._range(q, k, float(values[k]), size, number < FOLLOWED)
                label = f"{self._inputs.names[k]} [{'m' if self._inputs.lengths[k] else 'rad'}]"
                step = round_length((highest - lowest) / 2000)
                self.sliders[self._inputs.names[k]] = gui.add_slider(label, lowest, highest, step, _shown(values[k]))

    def _range(self, q: Array, k: int, value: float, size: float, follow: bool) -> tuple[float, float]:
        """Return the range of a slider, limited by the loops and by the joint's limits. Without both, it is one rotation, or the mechanism's size."""
        inputs = self._inputs
        joint = inputs.mechanism.joint(inputs.joints[k])
        ends = np.array([value - size, value + size] if inputs.lengths[k] else [-math.pi, math.pi])
        if joint.limits is not None and joint.nq == joint.nv:
            limits = np.array(joint.limits)[:, inputs.joints[:k].count(joint.name)]
            ends = np.where(np.isfinite(limits), limits, ends)
        ends = np.array([min(ends[0], value), max(ends[1], value)])
        if follow:
            reached = inputs.reach(q, k, (float(ends[0]), float(ends[1])))
            # a slider needs a positive range, also if the loops block the coordinate at q
            ends = np.array(reached) if reached[1] - reached[0] > 1e-2 * inputs.loops.column_scale[k] else ends
        # rounded outward to the digits of a slider's label
        return math.floor(1e3 * ends[0]) / 1e3, math.ceil(1e3 * ends[1]) / 1e3


def _plain(text: str) -> str:
    """Return a text escaped for Markdown. Names come from files and could contain tags and scripts, which viser would render."""
    return MARKUP.sub(r"\\\g<0>", text)


def _shown(value: float) -> float:
    """Return a value rounded to the digits of a slider; -0 becomes 0."""
    return round(float(value), 6) + 0.0
