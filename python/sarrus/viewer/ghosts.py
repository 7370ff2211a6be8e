"""Other runs beside the one that is chosen: translucent, and in time with it.

A body's bars are one mesh in as many places as there are runs, so that a browser gets one message for a body, not one for a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array
from ..figures.skeleton import Skeleton
from ..spatial import Rotation
from .shapes import Triangles, capsule

if TYPE_CHECKING:
    from ..simulation.trajectory import Trajectory

# runs that are shown beside the chosen one: more are a cloud to the eye, and a film of few pictures to a phone
MOST = 24
OPACITY = 0.22


class Ghosts:
    """Some `runs`, each where it is at one time."""

    def __init__(
        self,
        scene: Any,
        skeleton: Skeleton,
        runs: list[Trajectory],
        colors: dict[str, Any],
        parts: dict[str, Triangles],
    ) -> None:
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
        rod = capsule(np.zeros(3), np.array([0.0, 0.0, 1.0]), 0.006 * skeleton.size)
        for k, bar in enumerate(skeleton.bars):
            if bar.first[0] != bar.second[0]:
                # a rod of one metre that is stretched
                color = colors.get(bar.owner, (150, 150, 150))
                node = scene.add_batched_meshes_simple(
                    f"/ghosts/slide{k}", *rod, batched_colors=color, batched_scales=np.ones((len(runs), 3)), **many
                )
                self._slides.append((k, node))

    def show(self, time: float) -> None:
        """Put all where they are at a time [s]; those that have ended stay where they did."""
        q = np.array([run.at(np.clip(time, run.t[0], run.t[-1]))[0] for run in self.runs])
        # where a run diverged, its last numbers
        self._q = q = np.where(np.isfinite(q).all(axis=1, keepdims=True), q, self._q)
        known = self._skeleton.mechanism.kinematics(q)
        for body, node in self._nodes.items():
            pose = known.pose(body)
            node.batched_wxyzs, node.batched_positions = _wxyz(pose[:, :3, :3]), pose[:, :3, 3]
        if self._slides:
            ends = self._skeleton.segments_flat(q)
            for k, node in self._slides:
                way = ends[:, k, 1] - ends[:, k, 0]
                length = np.linalg.norm(way, axis=1)
                node.batched_positions = ends[:, k, 0]
                node.batched_scales = np.stack(
                    [np.ones_like(length), np.ones_like(length), np.maximum(length, 1e-9)], axis=1
                )
                node.batched_wxyzs = _from_z(way / np.maximum(length, 1e-300)[:, None])


def picked(count: int) -> list[int]:
    """Which of so many runs are shown: MOST of them at most.

    >>> from sarrus.viewer.ghosts import picked
    >>> picked(3), len(picked(1000)), picked(1000)[-1]
    ([0, 1, 2], 24, 999)
    """
    return [round(float(k)) for k in np.linspace(0, count - 1, min(count, MOST))]


def _wxyz(rotations: Array) -> Array:
    return np.array([np.roll(Rotation(R).quaternion, 1) for R in rotations])


def _from_z(directions: Array) -> Array:
    """Unit quaternions (k, 4) of turns that take z to unit vectors (k, 3)."""
    x, y, z = directions.T
    turn = np.stack([1.0 + z, -y, x, np.zeros_like(z)], axis=1)
    turn[1.0 + z < 1e-9] = (0.0, 1.0, 0.0, 0.0)
    return np.asarray(turn / np.linalg.norm(turn, axis=1, keepdims=True))
