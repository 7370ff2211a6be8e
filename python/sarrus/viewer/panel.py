"""Sliders and buttons that a view is operated with, beside its scene.

A panel knows what can be set and shows what is; :class:`~sarrus.viewer.viewer.View` listens to it. There is a slider per independent
coordinate, and for runs a clock. Setting a slider to show where the mechanism is calls its listeners too.

On a wide screen its two parts are docked beside the picture. On a phone viser makes them a sheet at the lower end: what is asked for most
stands there, and the rest folds out at a touch.
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
# The chosen coordinates and those being moved are rows of the core's, beside the loops, and go to their goal as inputs of
# :func:`~sarrus.Mechanism.follow` do; the others move as little as they can. Where the branch ends the mechanism has reached the end of its range.

CLOSED = 1e-11  # relative residual up to which a moved mechanism counts as closed, and miss of a coordinate
STEPS = 0.2, 1e-4  # the longest [rad, mean sizes of the bodies], and the part of the way that is the shortest


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
        """All coordinates (..., nv) of configurations (..., nq)."""
        return self._chart.difference(self.mechanism.neutral(), np.asarray(q, dtype=np.float64))

    def lead(self, q: Array, goal: Mapping[int, float]) -> tuple[Array, bool]:
        """Move coordinates to a goal on their branch, the other chosen ones held; how far that led, and whether all the way."""
        rows = sorted({*self.chosen, *goal})
        start = self.coordinates(q)[rows]
        end = [goal.get(k, x) for k, x in zip(rows, start, strict=True)]
        how = closing(self.mechanism, (), (), tuple(self._single[k] for k in rows))
        branch = Branch(how, np.full(2, self.loops.time or 0.0), {}, np.array([start, end]), STEPS, CLOSED)
        q, passed = branch.last(q)
        return q, passed == 1.0

    def reach(self, q: Array, k: int, ends: tuple[float, float]) -> tuple[float, float]:
        """How far a chosen coordinate goes between these ends, the other chosen ones held; the ends, where no loop holds it."""
        rows = self.loops.holonomic
        if not rows.any() or not np.abs(self.loops.jacobian(q)[rows][:, k]).max() > CLOSED:
            return ends
        low, high = (float(self.coordinates(self.lead(q, {k: end})[0])[k]) for end in ends)
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
                # the first of equals; digits that rounding decides must not decide on it
                best = max(candidates, key=lambda k: (float(np.linalg.norm(shown[k]).round(6)), -k), default=-1)
                if best < 0 or np.linalg.norm(shown[best]) < 1e-3:
                    break
                take(best)
        chosen.sort()
        return [k for k in chosen if k in motors] + [k for k in chosen if k not in motors]


# ---- the panel -------------------------------------------------------------------------------------------------------

NAMES = {"bodies": "body", "joints": "joint", "frames": "frame"}
SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5")
SHEET, PLAYBACK, ROW = 220, 70, 34  # [px] how high the sheet is on a phone; with a playback more, and more with a row
MARKUP = re.compile(r"[\\`*_~<>\[\]&|!#]")  # what Markdown may read as more than text, but with a backslash before it
FOLLOWED = 8  # sliders whose range is found by moving the mechanism, so that a view of many still opens at once


class Panel:
    """Controls in a viser server.

    Attributes
    ----------
    status : the line that says what went wrong; `note`, the one that says what arrows and ghosts mean
    home, views : the button that leads back, and those that place the camera
    configurations : from which one is chosen by name; only where there are any
    sliders : coordinate to its slider, as in :attr:`Inputs.names`
    boxes : "bodies", "joints" and "frames", where there are any, to the box that shows their names
    visuals : the box that shows bodies by their visuals; only where there are any
    forces, dark : boxes
    play, clock, speed, repeat : of the playback; only with runs
    run : number of the run that is chosen; only with several
    """

    def __init__(self, gui: Any, inputs: Inputs, q: Array, scene: Scene, span: tuple[float, float], runs: int) -> None:
        self._inputs, self._plays = inputs, runs > 0
        self.sliders: dict[str, Any] = {}
        gui.main_panel.dock_right()
        gui.set_panel_label(inputs.mechanism.name)
        self.status = gui.add_markdown("", visible=False)
        if runs:
            self._playback(gui, *span, runs)
        self.home = gui.add_button("Home", hint="the first configuration, and the first look")
        named = [name for name, _ in inputs.mechanism.description.configurations if name != "home"]
        if named:
            self.configurations = gui.add_dropdown("configuration", ("home", *named), initial_value="home")
        self.views = gui.add_button_group("view", PRESETS)
        with gui.add_folder("Show", expand_by_default=False):
            self.boxes = {kind: gui.add_checkbox(f"{NAMES[kind]} names", False) for kind in scene.labels.kinds}
            self.forces = gui.add_checkbox("forces", False, hint="that joints exert on their children")
            if scene.visuals:
                self.visuals = gui.add_checkbox("meshes", True, hint="bars instead, where it is off")
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
        """Light or dark, on all pages."""
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(68, 119, 170), dark_mode=dark)

    def show(self, coordinates: Array, time: float) -> None:
        """Put the sliders where the mechanism is: all its coordinates (nv,), and the time [s]."""
        for k in self._inputs.chosen:
            slider, value = self.sliders[self._inputs.names[k]], _shown(coordinates[k])
            slider.min, slider.max = min(slider.min, value), max(slider.max, value)
            slider.value = value
        if self._plays:
            self.clock.value = time

    def say(self, text: str) -> None:
        """What the status line says; nothing, where all is well."""
        self.status.content, self.status.visible = _plain(text), bool(text)

    def explain(self, text: str) -> None:
        """What the note under the boxes says."""
        content = _plain(text.strip())
        if content != self.note.content:
            self.note.content, self.note.visible = content, bool(content)

    def _playback(self, gui: Any, first: float, last: float, runs: int) -> None:
        # a slider needs a length, which a trajectory of one sample has not
        last = last if last > first else first + 1.0
        self.play = gui.add_button("Play")
        self.clock = gui.add_slider("time [s]", first, last, round_length((last - first) / 5000), first)
        if runs > 1:
            self.run = gui.add_slider("run", 0, runs - 1, 1, 0)

    def _joints(self, gui: Any, now: Array, q: Array, size: float) -> None:
        below = gui.add_panel()
        below.dock_below(gui.main_panel)
        with below.add_tab("Joints"):
            for number, k in enumerate(self._inputs.chosen):
                lowest, highest = self._range(q, k, float(now[k]), size, number < FOLLOWED)
                label = f"{self._inputs.names[k]} [{'m' if self._inputs.lengths[k] else 'rad'}]"
                step = round_length((highest - lowest) / 2000)
                self.sliders[self._inputs.names[k]] = gui.add_slider(label, lowest, highest, step, _shown(now[k]))

    def _range(self, q: Array, k: int, now: float, size: float, follow: bool) -> tuple[float, float]:
        """Where a slider ends: where the loops do, at the joint's limits, or half a turn or the mechanism's size away."""
        inputs = self._inputs
        joint = inputs.mechanism.joint(inputs.joints[k])
        ends = np.array([now - size, now + size] if inputs.lengths[k] else [-math.pi, math.pi])
        if joint.limits is not None and joint.nq == joint.nv:
            limits = np.array(joint.limits)[:, inputs.joints[:k].count(joint.name)]
            ends = np.where(np.isfinite(limits), limits, ends)
        ends = np.array([min(ends[0], now), max(ends[1], now)])
        if follow:
            reached = inputs.reach(q, k, (float(ends[0]), float(ends[1])))
            # a slider needs a length, where the loops give none in this configuration
            ends = np.array(reached) if reached[1] - reached[0] > 1e-2 * inputs.loops.column_scale[k] else ends
        # outward to what a slider's label can show
        return math.floor(1e3 * ends[0]) / 1e3, math.ceil(1e3 * ends[1]) / 1e3


def _plain(text: str) -> str:
    """As Markdown that shows the text itself: viser renders tags too, scripts among them, and a joint's name may come from anybody's file."""
    return MARKUP.sub(r"\\\g<0>", text)


def _shown(value: float) -> float:
    """To the digits that a slider shows, and never -0."""
    return round(float(value), 6) + 0.0
