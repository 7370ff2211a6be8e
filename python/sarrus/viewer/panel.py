"""Sliders and buttons that a view is operated with, beside its scene.

A panel knows what can be set and shows what is; :class:`~sarrus.viewer.viewer.View` listens to it. There is a slider per independent
coordinate, and for a trajectory a clock. Setting a slider to show where the mechanism is calls its listeners too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array
from .loop_sliders import Inputs
from .scene import Scene, round_length

if TYPE_CHECKING:
    from ..simulation.trajectory import Trajectory

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5")


class Panel:
    """Controls in a viser server.

    Attributes
    ----------
    status : the line that says what went wrong
    sliders : coordinate to its slider, as in :attr:`Inputs.names`
    home : the button that leads back
    boxes : "bodies", "joints" and "frames", where there are any, to the box that shows their names
    visuals : the box that shows bodies by their visuals; only where there are any
    play, clock, speed, repeat : of the playback; only with a trajectory
    """

    def __init__(self, gui: Any, inputs: Inputs, q: Array, scene: Scene, trajectory: Trajectory | None) -> None:
        self._inputs, self._trajectory = inputs, trajectory
        self.sliders: dict[str, Any] = {}
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(68, 119, 170))
        gui.main_panel.dock_right()
        gui.set_panel_label(inputs.mechanism.name)
        self.status = gui.add_markdown("")
        if trajectory is not None:
            self._playback(gui, float(trajectory.t[0]), float(trajectory.t[-1]))
        now = inputs.coordinates(q)
        with gui.add_folder("Joints"):
            for k in inputs.chosen:
                lowest, highest = self._range(k, float(now[k]), scene.skeleton.size)
                label, step = f"{inputs.names[k]} [{'m' if inputs.lengths[k] else 'rad'}]", (highest - lowest) / 2000
                slider = gui.add_slider(label, lowest, highest, round_length(step), _shown(now[k]))
                self.sliders[inputs.names[k]] = slider
            self.home = gui.add_button("Home")
        if scene.visuals:
            self.visuals = gui.add_checkbox("meshes", True, hint="bars instead, where it is off")
        with gui.add_folder("Names"):
            self.boxes = {kind: gui.add_checkbox(kind, False) for kind, labels in scene.labels.items() if labels}

    def show(self, coordinates: Array, time: float) -> None:
        """Put the sliders where the mechanism is: all its coordinates (nv,), and the time [s]."""
        for k in self._inputs.chosen:
            slider, value = self.sliders[self._inputs.names[k]], _shown(coordinates[k])
            slider.min, slider.max = min(slider.min, value), max(slider.max, value)
            slider.value = value
        if self._trajectory is not None:
            self.clock.value = time

    def say(self, text: str) -> None:
        """What the status line says; nothing, where all is well."""
        self.status.content = text

    def _playback(self, gui: Any, first: float, last: float) -> None:
        # a slider needs a length, which a trajectory of one sample has not
        last = last if last > first else first + 1.0
        with gui.add_folder("Playback"):
            self.play = gui.add_button("Play")
            self.clock = gui.add_slider("time [s]", first, last, round_length((last - first) / 5000), first)
            self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
            self.repeat = gui.add_checkbox("repeat", True)

    def _range(self, k: int, now: float, size: float) -> tuple[float, float]:
        """Where a slider ends: at the joint's limits, or half a turn or the mechanism's size away."""
        inputs = self._inputs
        joint = inputs.mechanism.joint(inputs.joints[k])
        ends = np.array([now - size, now + size] if inputs.lengths[k] else [-math.pi, math.pi])
        if joint.limits is not None and joint.nq == joint.nv:
            limits = np.array(joint.limits)[:, inputs.joints[:k].count(joint.name)]
            ends = np.where(np.isfinite(limits), limits, ends)
        # outward to what a slider's label can show
        return math.floor(1e3 * min(ends[0], now)) / 1e3, math.ceil(1e3 * max(ends[1], now)) / 1e3


def _shown(value: float) -> float:
    """To the digits that a slider shows, and never -0."""
    return round(float(value), 6) + 0.0
