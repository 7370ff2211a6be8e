"""A question to the core, as CONTRIBUTING's recipe has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _core
from .._arrays import ArrayLike
from ..dynamics.loop_operations import LoopFunctions


def manipulability(robot: LoopFunctions, q: ArrayLike, frame: str) -> Mapping[str, Any]:
    """Yoshikawa's measure of how well motors move a frame, and the singular values of which it is the product."""
    return _core.manipulability(robot, robot.normalize(q), frame)
