"""A mechanism as it was written down: bodies, joints between them, frames on them, and what they look like.

Plain data, which pickles, compares and hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .joints import JointType
from .laws import Law
from .spatial import Inertia, Transform


@dataclass(frozen=True)
class BodySpec:
    """A rigid body: its name and its inertia in its own frame."""

    name: str
    inertia: Inertia


@dataclass(frozen=True)
class JointSpec:
    """A joint between two bodies, and where its frame sits in each.

    `tree` and `loop` are hints: keep it in the spanning tree, or close a loop with it. With `laws`, one or None for each of
    rx ry rz tx ty tz, its frame on the parent is carried along by a gimbal that moves by them.
    """

    name: str
    joint: JointType
    parent: str
    child: str
    at_parent: Transform
    at_child: Transform
    actuated: bool
    tree: bool = False
    loop: bool = False
    laws: tuple[Law | None, ...] = ()


@dataclass(frozen=True)
class DistanceSpec:
    """A massless rod between a point of one body and a point of another."""

    name: str
    first: tuple[str, tuple[float, float, float]]
    second: tuple[str, tuple[float, float, float]]
    length: float


@dataclass(frozen=True)
class CouplerSpec:
    """A relation between joint coordinates: the sum of polynomials without constants, one a coordinate, equals offset + law(t).

    `terms` are (joint, index of its coordinate, coefficients of q, q2, ...).
    """

    name: str
    terms: tuple[tuple[str, int, tuple[float, ...]], ...]
    offset: float = 0.0
    law: Law | None = None


@dataclass(frozen=True)
class RollingSpec:
    """A disc (where it has an axle) or a sphere of a body, which rolls on a plane of another, or on a sphere about `point`."""

    name: str
    body: str
    radius: float
    center: tuple[float, float, float]
    axle: tuple[float, float, float] | None
    on: str
    point: tuple[float, float, float]
    normal: tuple[float, float, float]
    on_radius: float | None


@dataclass(frozen=True)
class PfaffianSpec:
    """Rows A(q) v = c over the velocities of some joints: constant numbers, row by row, or a function of q."""

    name: str
    rows: tuple[tuple[float, ...], ...] | Callable[[Any], Any]
    joints: tuple[str, ...]
    value: tuple[float, ...]
    derivative: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True)
class TargetSpec:
    """A frame that calls lead to a point of the world, or (`turned`) to a pose; only mechanisms that close loops for others have any."""

    name: str
    frame: str
    turned: bool


ConstraintSpec = DistanceSpec | CouplerSpec | RollingSpec | PfaffianSpec | TargetSpec


@dataclass(frozen=True)
class SpringSpec:
    """A linear spring with a damper between a point of one body and a point of another."""

    name: str
    first: tuple[str, tuple[float, float, float]]
    second: tuple[str, tuple[float, float, float]]
    stiffness: float
    rest_length: float
    damping: float = 0.0


@dataclass(frozen=True)
class FrameSpec:
    """A named frame on a body."""

    name: str
    body: str
    placement: Transform


@dataclass(frozen=True)
class Box:
    """A box about its frame's origin.

    Attributes
    ----------
    size : its edges along x, y and z [m]
    """

    size: tuple[float, float, float]


@dataclass(frozen=True)
class Cylinder:
    """A cylinder about its frame's origin, along z.

    Attributes
    ----------
    radius, length : [m]
    """

    radius: float
    length: float


@dataclass(frozen=True)
class Sphere:
    """A sphere about its frame's origin.

    Attributes
    ----------
    radius : [m]
    """

    radius: float


@dataclass(frozen=True)
class Mesh:
    """A mesh in a file, which is looked for and read when it is shown, not before.

    Attributes
    ----------
    file : name as it was written: a path, "package://name/path" or "file://..."
    scale : along x, y and z, from the file's unit to metres; a negative one mirrors
    beside : folder of the model file, which relative names start from; packages are looked for in it and above it
    package_dirs : folders that hold packages, or are one; looked into first
    """

    file: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    beside: str = ""
    package_dirs: tuple[str, ...] = ()


Shape = Box | Cylinder | Sphere | Mesh


@dataclass(frozen=True)
class VisualSpec:
    """What a body looks like, or a part of it: a shape, where its frame sits in the body, and its colour.

    Attributes
    ----------
    color : red, green, blue and opacity from 0 to 1; None for the file's own colours, or the body's among the others
    """

    body: str
    shape: Shape
    placement: Transform
    color: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Description:
    """All of a mechanism. `home` is where assembly starts.

    Warnings are what a reader should know. They are no part of its identity, nor are visuals: files lie elsewhere on another machine.
    """

    name: str
    gravity: tuple[float, float, float]
    bodies: tuple[BodySpec, ...]
    joints: tuple[JointSpec, ...]
    frames: tuple[FrameSpec, ...]
    constraints: tuple[ConstraintSpec, ...] = ()
    home: tuple[tuple[str, tuple[float, ...]], ...] = ()
    springs: tuple[SpringSpec, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)
    visuals: tuple[VisualSpec, ...] = field(default=(), compare=False)


def without_effect(joints: Iterable[JointSpec], closing: Iterable[str]) -> Iterator[str]:
    """A sentence for all that joints are given and that acts on nothing, where these ones close the loops."""
    loops = set(closing)
    for spec in joints:
        joint = spec.joint
        if spec.name in loops:
            acting = ("damping", "friction", "stiffness", "rest", "armature")
            terms = [name for name in acting if getattr(joint, name).any()]
            bounds = {name: getattr(joint, name) for name in ("limits", "velocity_limit", "effort_limit")}
            terms += [name for name, bound in bounds.items() if bound is not None and np.isfinite(bound).any()]
            if terms:
                cure = "Add it with tree=True, or another joint of the loop with loop=True"
                cure = "Give such terms to a joint of the tree" if spec.laws else cure
                yield f"joint '{spec.name}' closes a loop; ignored there: {', '.join(terms)}. {cure}"
        elif joint.rest.any() and not joint.stiffness.any():
            yield f"joint '{spec.name}' has a rest without a stiffness, which acts on nothing"
        if spec.actuated and joint.nv == 0:
            yield f"joint '{spec.name}' is actuated and does not move: its motor acts on nothing"
