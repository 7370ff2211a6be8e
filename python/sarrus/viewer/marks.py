"""What is drawn beside a mechanism: forces in its joints as arrows, and the paths of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array
from ..errors import SarrusError, raise_no_such_name
from ..figures.figures import force_on_child
from ..mechanism import Mechanism

if TYPE_CHECKING:
    from ..simulation.trajectory import Trajectory

FORCE = (204, 51, 85)
PATHS = ((204, 51, 17), (0, 119, 187), (0, 153, 136), (238, 119, 51), (170, 51, 119))
LONGEST = 0.28  # arrow, of the mechanism's size
LONGEST_PATH = 2000  # points of it


class Forces:
    """An arrow for the force on the child in each joint and rod, as :meth:`Trajectory.joint_wrenches` tells it, or at rest where there is no run.

    Attributes
    ----------
    shown : whether they are
    scale : newtons that are drawn one metre long; 0.0 while no force is known
    """

    def __init__(self, scene: Any, mechanism: Mechanism, size: float, radius: float) -> None:
        self._scene, self._mechanism, self._size, self._radius = scene, mechanism, size, radius
        self.shown, self.scale = False, 0.0
        self._node: Any = None

    def show(self, q: Array, run: Trajectory | None, time: float) -> str:
        """Draw them in a configuration (nq,), of a run those at this time; what is to be said of it."""
        if self._node is not None:
            self._node.visible = self.shown
        if not self.shown:
            return ""
        robot = self._mechanism
        try:
            loads: Mapping[str, Array]
            if run is None:
                loads, largest = robot.joint_wrenches(q, np.zeros(robot.nv), np.zeros(robot.nv)), 0.0
            else:
                known = run.joint_wrenches()
                # bodies turn little after a sample
                k = int(np.clip(np.searchsorted(run.t, time, side="right") - 1, 0, len(run) - 1))
                loads = {name: load[k] for name, load in known.items()}
                largest = max(
                    (float(np.nanmax(np.linalg.norm(x[:, 3:], axis=-1))) for x in known.values()), default=0.0
                )
        except SarrusError as error:
            if self._node is not None:
                self._node.visible = False
            return f"No forces: {error}"
        arrows = np.array([force_on_child(robot, q, name, np.asarray(load)) for name, load in loads.items()]).reshape(
            -1, 2, 3
        )
        arrows = np.nan_to_num(arrows)
        largest = max(largest, float(np.linalg.norm(arrows[:, 1], axis=1).max(initial=0.0)))
        # one scale of a pose after the other, unless arrows get too long, or too short to be seen
        if not 0.25 * LONGEST * self._size < largest / (self.scale or np.inf) <= 1.0001 * LONGEST * self._size:
            self.scale = largest / (LONGEST * self._size)
        arrows[:, 1] = arrows[:, 0] + arrows[:, 1] / (self.scale or 1.0)
        if self._node is None:
            # a force along a bar shows its head out of it
            r = self._radius
            head = {"shaft_radius": 0.4 * r, "head_radius": 1.4 * r, "head_length": 2.8 * r}
            self._node = self._scene.add_arrows("/forces", arrows, FORCE, **head)
        self._node.points = arrows.astype(np.float32)
        when = "in the run" if run is not None else "at rest"
        return f"Forces of joints on their children: {largest:.3g} N at most {when}; 0.1 m is {0.1 * self.scale:.3g} N."


class Traces:
    """Paths of frames' origins: of a run all of it, else of where they have been since they were at home."""

    def __init__(self, scene: Any, mechanism: Mechanism, names: str | Sequence[str], radius: float) -> None:
        self._scene, self._mechanism, self._radius = scene, mechanism, radius
        self.names = [names] if isinstance(names, str) else list(names)
        for name in self.names:
            if not isinstance(name, str) or name not in mechanism.frames:  # type: ignore[redundant-expr]
                raise_no_such_name("frame", name, mechanism.frames)
        self._lines: dict[str, Any] = {}
        self._visited = np.zeros((len(self.names), 0, 3))

    def of_run(self, run: Trajectory) -> None:
        """Draw the paths of a run."""
        q = run.q[np.isfinite(run.q).all(axis=1)]
        q = q[np.unique(np.linspace(0, len(q) - 1, min(len(q), LONGEST_PATH)).astype(int))]
        self._visited = np.array([self._mechanism.pose(q, name)[:, :3, 3] for name in self.names]).reshape(
            -1, len(q), 3
        )
        self._draw()

    def go_on(self, q: Array) -> None:
        """Draw paths on to a configuration (nq,)."""
        here = np.array([self._mechanism.pose(q, name)[:3, 3] for name in self.names]).reshape(-1, 1, 3)
        if self._visited.shape[1] and np.abs(here - self._visited[:, -1:]).max(initial=0.0) < 1e-2 * self._radius:
            return
        self._visited = np.concatenate([self._visited, here], axis=1)[:, -LONGEST_PATH:]
        self._draw()

    def begin(self) -> None:
        """Forget where they have been."""
        self._visited = self._visited[:, :0]

    def _draw(self) -> None:
        for k, (name, path) in enumerate(zip(self.names, self._visited, strict=True)):
            lines = np.stack([path[:-1], path[1:]], axis=1).astype(np.float32)
            if name not in self._lines:
                how = {"colors": PATHS[k % len(PATHS)], "thickness": 0.35 * self._radius}
                self._lines[name] = self._scene.add_line_segments(f"/traces/{k}", np.zeros((1, 2, 3)), **how)
            self._lines[name].visible = len(lines) > 0
            if len(lines):
                self._lines[name].points = lines
