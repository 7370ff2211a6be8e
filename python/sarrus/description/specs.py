"""A mechanism as it was written down: bodies, joints between them, frames on them, and what they look like.

Plain data, which pickles, compares and hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._arrays import Array
from ..errors import ModelError
from ..laws import Law, law_terms
from ..shapes import Shape
from ..spatial import Inertia, Transform
from .constraints import ConstraintSpec
from .contacts import ContactSpec, ShapeSpec
from .joints import PARAMETERS, PASSIVE, JointType
from .part import Part

_IDENTITY = Transform()


@dataclass(frozen=True)
class BodySpec(Part):
    """A rigid body: its name and its inertia in its own frame."""

    name: str
    inertia: Inertia


@dataclass(frozen=True)
class JointSpec(Part):
    """A joint between two bodies, and where its frame sits in each.

    `tree` and `loop` are hints: keep it in the spanning tree, or close a loop with it. With `laws`, one or None for each of
    rx ry rz tx ty tz, its frame on the parent is carried along by a gimbal that moves by them.
    """

    name: str
    joint: JointType
    parent: str
    child: str
    at_parent: Transform = _IDENTITY
    at_child: Transform = _IDENTITY
    actuated: bool = False
    tree: bool = False
    loop: bool = False
    laws: tuple[Law | None, ...] = ()

    @property
    def kind(self) -> str:
        """Name of the joint's type."""
        return self.joint.kind

    @property
    def bodies(self) -> tuple[str, ...]:
        """(parent, child)."""
        return (self.parent, self.child)

    def _written(self) -> tuple[str, dict[str, Any]]:
        method, arguments = super()._written()
        laws = {name: law for name, law in zip(PARAMETERS, arguments.pop("laws"), strict=False) if law is not None}
        if not self.laws:
            return method, arguments
        arguments |= {"body": self.child, "relative_to": self.parent, "laws": laws}
        return "add_prescribed_frame", {
            k: x for k, x in arguments.items() if k not in ("parent", "child", "actuated", "tree", "loop")
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.joint} ─ from {self.parent} to {self.child}{', driven' if self.laws else ''}"


@dataclass(frozen=True)
class SpringSpec(Part):
    """A linear spring with a damper between a point of one body and a point of another."""

    name: str
    first: tuple[str, tuple[float, float, float]]
    second: tuple[str, tuple[float, float, float]]
    stiffness: float
    rest_length: float
    damping: float = 0.0


@dataclass(frozen=True)
class FrameSpec(Part):
    """A named frame on a body."""

    name: str
    body: str
    placement: Transform = _IDENTITY


@dataclass(frozen=True)
class VisualSpec(Part):
    """What a body looks like, or a part of it: a shape, where its frame sits in the body, and its colour.

    That is red, green, blue and opacity from 0 to 1; None for the file's own colours, or the body's among the others.
    """

    body: str
    shape: Shape
    placement: Transform = _IDENTITY
    color: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Description:
    """All of a mechanism. `home` is where assembly starts, `configurations` are those that have a name; both give joints' coordinates.

    Warnings are what a reader should know. They are no part of its identity, nor are visuals: files lie elsewhere on another machine.
    """

    name: str
    gravity: tuple[float, float, float]
    bodies: tuple[BodySpec, ...]
    joints: tuple[JointSpec, ...]
    frames: tuple[FrameSpec, ...] = ()
    constraints: tuple[ConstraintSpec, ...] = ()
    home: tuple[tuple[str, tuple[float, ...]], ...] = ()
    springs: tuple[SpringSpec, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)
    visuals: tuple[VisualSpec, ...] = field(default=(), compare=False)
    configurations: tuple[tuple[str, tuple[tuple[str, tuple[float, ...]], ...]], ...] = ()
    shapes: tuple[ShapeSpec, ...] = ()
    contacts: tuple[ContactSpec, ...] = ()


def in_degrees(joint: JointType, q: Array) -> bool:
    """Whether some of a joint's angles look like degrees: multiples of five from two turns in radians to two turns in degrees."""
    angles = (abs(x) for x, (_, unit) in zip(q, joint.coordinates, strict=True) if unit == "rad")
    return any(4.0 * np.pi < x <= 720.0 and x % 5.0 == 0.0 for x in angles)


def doubtful(joints: Iterable[JointSpec]) -> Iterator[str]:
    """A sentence for all that joints are given and that acts on nothing, or is in another unit."""
    for spec in joints:
        joint = spec.joint
        if joint.limits is not None and any(in_degrees(joint, limit) for limit in joint.limits):
            shown = ", ".join(f"{x:g}" for limit in joint.limits for x in limit)
            yield f"limits of joint '{spec.name}' look like degrees, and are taken as radians: {shown}"
        if spec.laws:  # its frame moves in time, which forces along a joint are not told
            terms = [name for name in ("damping", "friction", "stiffness", "armature") if getattr(joint, name).any()]
            if terms:
                yield f"joint '{spec.name}' is carried along by laws of time; ignored there: {', '.join(terms)}. Give such terms to another joint"
        if joint.rest.any() and not joint.stiffness.any():
            yield f"joint '{spec.name}' has a rest without a stiffness, which acts on nothing"
        if spec.actuated and joint.nv == 0:
            yield f"joint '{spec.name}' is actuated and does not move: its motor acts on nothing"


# ---- what the core takes -------------------------------------------------------------------------------------------------------------

_PARTS: dict[str, Any] = {"bodies": BodySpec, "joints": JointSpec, "frames": FrameSpec}
_PARTS |= {"constraints": ConstraintSpec, "springs": SpringSpec}


def core_terms(d: Description) -> tuple[Any, ...]:
    """The arguments of the core's Mechanism; TypeError or ModelError where the description holds something else than it should."""
    if not isinstance(d, Description):
        raise TypeError(f"a Mechanism is made of a description, as Builder.build() makes one; got {d!r}")
    for name, kind in _PARTS.items():
        parts = getattr(d, name)
        if not isinstance(parts, Sequence) or not all(isinstance(part, kind) for part in parts):
            raise ModelError(f"a description's {name} are a tuple of such parts; got {parts!r}")
    return (
        d.name,
        list(d.gravity),
        [(b.name, b.inertia) for b in d.bodies],
        [_joint(j) for j in d.joints],
        [(f.name, f.body, f.placement) for f in d.frames],
        [c._core_terms() for c in d.constraints],
        [(s.name, *s.first, *s.second, s.stiffness, s.rest_length, s.damping) for s in d.springs],
    )


_AS_THEY_ARE = ("name", "kind", "parent", "child", "at_parent", "at_child", "actuated", "tree", "loop")


def _joint(j: JointSpec) -> dict[str, Any]:
    return {
        "axes": [getattr(j.joint, axis).tolist() for axis in j.joint.axes],
        "numbers": j.joint._core_numbers(),
        **{key: getattr(j.joint, key).tolist() for key in PASSIVE},
        **{key: getattr(j, key) for key in _AS_THEY_ARE},
        "nq": j.joint.nq,
        "nv": j.joint.nv,
        "laws": tuple(law_terms(law) for law in j.laws),
    }
