"""Models of closed chains (five for speed, the full gallery for accuracy), and states that satisfy their constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarrus import mechanisms as gallery

Array = NDArray[np.float64]


class States(NamedTuple):
    """States (count, nq), (count, nv) with closed loops and J v = 0, and forces (count, nv)."""

    q: Array
    v: Array
    tau: Array

    def first(self, count: int) -> States:
        return States(*(x[:count] for x in self))


@dataclass(frozen=True)
class LoopModel:
    """Mechanism with loops.

    Attributes
    ----------
    name : name for ``--only``
    title : name in the report
    make : function that builds it
    reach : largest distance of its states from home [rad, m]
    """

    name: str
    title: str
    make: Callable[[], Any]
    reach: float = 0.6

    @cached_property
    def robot(self) -> Any:
        return self.make()

    def states(self, count: int, seed: int = 0) -> States:
        return consistent_states(self.robot, count, self.reach, np.random.default_rng(seed))


def home(robot: Any) -> Array:
    """Return the configuration (nq,) of the description with all loops closed."""
    coordinates = dict(robot.description.home)
    parts = [coordinates.get(name, robot.neutral()[robot.joint(name).q_slice]) for name in robot.joints]
    return np.array(robot.project_configuration(np.concatenate([np.zeros(0), *parts])))


def consistent_states(robot: Any, count: int, reach: float, rng: np.random.Generator, steps: int = 12) -> States:
    """Return random states, each at the end of a nearly straight path from home on the manifold.

    Velocities are at most 1 rad/s or 1 m/s, forces normally distributed.

    Raises
    ------
    ValueError
        A loop error exceeds 1e-12.
    """
    q = np.tile(home(robot), (count, 1))
    direction = np.zeros((count, robot.nv))
    stride = reach / steps * rng.uniform(0, 1, (count, 1))
    for step in range(steps):
        turn = (0.1 if step else 1.0) * rng.standard_normal((count, robot.nv))
        direction = _unit(robot.project_velocity(q, direction + turn, metric="euclidean"))
        q = np.array(robot.project_configuration(robot.integrate(q, stride * direction)))
    worst = np.abs(robot.constraint_residual(q)).max(initial=0)
    if not worst <= 1e-12:
        raise ValueError(f"{robot.name}: loops are open by {worst:.1e}")
    v = _unit(robot.project_velocity(q, rng.standard_normal((count, robot.nv)), metric="euclidean"))
    return States(q, rng.uniform(0.2, 1, (count, 1)) * v, rng.standard_normal((count, robot.nv)))


def _unit(x: Array) -> Array:
    return np.asarray(x / np.abs(x).max(axis=1, keepdims=True))


def almost_flat(robot: Any, angle: float, count: int, seed: int = 0) -> States:
    """Return states of a ladder whose rods are flat except for +-`angle` [rad]; at zero the rank of the constraints drops.

    The rods on the ground are rotated by pi/2 -+ angle, and the rods on them are rotated back, so that the loops close up to rounding.
    """
    rng = np.random.default_rng(seed)
    along = np.zeros(robot.nv)
    for name in robot.joints:
        along[robot.joint(name).v_slice] = 1 if robot.joint(name).parent == "ground" else -1
    turn = np.pi / 2 + angle * np.where(np.arange(count) % 2, 1, -1)
    speed = rng.uniform(-1, 1, (count, 1))
    return States(turn[:, None] * along, speed * along, rng.standard_normal((count, robot.nv)))


def _ladder(n: int, closing: str = "point") -> Callable[[], Any]:
    return lambda: gallery.four_bar_ladder(n, closing=closing)


FAST = [
    LoopModel("ladder1", "ladder(1), 3 rows", _ladder(1)),
    LoopModel("ladder8", "ladder(8), 24 rows", _ladder(8)),
    LoopModel("ladder64", "ladder(64), 192 rows", _ladder(64)),
    LoopModel("welds64", "ladder(64) of 6-row welds, 384 rows", _ladder(64, "weld")),
    LoopModel("stewart", "Stewart platform, 24 dof, 18 rows", gallery.stewart, reach=0.2),
]

REDUNDANT = [
    LoopModel("five_bar3", "five-bar, 3 motors for 2 freedoms", lambda: gallery.five_bar(actuated=3), reach=0.3),
    LoopModel("five_bar4", "five-bar, 4 motors for 2 freedoms", lambda: gallery.five_bar(actuated=4), reach=0.3),
    LoopModel("three_rrr3", "3-RRR, 3 motors for 2 freedoms", gallery.three_rrr, reach=0.2),
    LoopModel("three_rrr6", "3-RRR, 6 motors for 2 freedoms", lambda: gallery.three_rrr(actuated=6), reach=0.2),
]


def all_closed() -> list[LoopModel]:
    """Return every mechanism with loops in the gallery, with default arguments.

    Two mechanisms are left out, because the dense reference has no springs, and its states are computed from first-order motions.
    """
    models = []
    for name in (name for name in gallery.__all__ if name not in ("tensegrity_prism", "wren_platform")):
        make = _ladder(3) if name == "four_bar_ladder" else getattr(gallery, name)
        model = LoopModel(name, name, make, reach=0.2)
        if model.robot.nc:  # mechanisms with cables only have no constraint rows
            models.append(model)
    return models
