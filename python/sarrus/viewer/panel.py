"""Sliders and buttons that a view is operated with, beside its scene.

A panel knows what can be set and shows what is; :class:`~sarrus.viewer.viewer.View` listens to it. There is a slider per independent
coordinate, and for runs a clock. Setting a slider to show where the mechanism is calls its listeners too.

On a wide screen its two parts are docked beside the picture. On a phone viser makes them a sheet at the lower end: what is asked for most
stands there, and the rest folds out at a touch.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from .._arrays import Array
from .camera import PRESETS
from .loop_sliders import Inputs
from .scene import Scene, round_length

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
