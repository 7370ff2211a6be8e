"""A mechanism as formats with hinges and slides see it: what its writers share.

A joint of several axes is a chain of hinges and slides. With the joint's frames, the pose of the body farther from the ground in the nearer is

    X(q) = start  exp(S_1 q_1) ... exp(S_n q_n)  end

where each S is a rotation about a line or a displacement along one, given in the frame that `start` leads to: what lies between the axes
of a joint (the values that a gimbal holds) moves into `end`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from .. import _showing
from .._arrays import Array, ArrayLike
from ..description import (
    BodySpec,
    ConstraintSpec,
    CouplerSpec,
    DistanceSpec,
    FrameSpec,
    JointSpec,
    ShapeSpec,
    SpringSpec,
    VisualSpec,
)
from ..description.joints import PARAMETERS, JointType, axis_frame
from ..description.part import renamed
from ..errors import ModelError, warn_of_model
from ..mechanism import Mechanism
from ..shapes import Mesh
from ..spatial import Inertia, Rotation, Transform
from .document import Names
from .table import put

Element = ET.Element
IDENTITY = Transform()


# ---- what a format cannot say ----------------------------------------------------------------------------------------


@dataclass
class Losses:
    """What a format cannot say: what changes the motion, and what does not."""

    format: str
    written: str = "the file"
    cure: str = "save it as .json, which holds everything, or with lossy=True without that"
    motion: list[str] = field(default_factory=list)
    minor: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """A minor one, once."""
        if text not in self.minor:
            self.minor.append(text)

    def settle(self, path: Path | str, lossy: bool) -> None:
        """Raise ModelError of what changes the motion unless that is allowed; warn of all else."""
        if self.motion and not lossy:
            raise ModelError(f"{path}: {self.format} cannot say: {'; '.join(self.motion)}. {self.cure}")
        for text in (*self.motion, *self.minor):
            warn_of_model(f"{path}: {self.format} cannot say, and {self.written} does not: {text}")

    def look_for_idle(self, robot: Mechanism, *, gravity: bool = False, named: bool = False) -> None:
        """What few formats have, and needs no look at how they say it."""
        d = robot.description
        if not gravity and d.gravity != (0.0, 0.0, -9.81):
            self.motion.append(f"gravity {d.gravity}")
        if not named and (names := [*(["home"] if d.home else []), *dict(d.configurations)]):
            self.minor.append(f"configurations {listed(names)}")


def listed(names: Iterable[str]) -> str:
    return _showing.listed(f"'{name}'" for name in names)


def with_plain_names(robot: Mechanism, losses: Losses, *, apart: bool = False, scope: str = "") -> Mechanism:
    """The mechanism with names that the format can have.

    No body is called "world", which is the ground there; with `apart` no joint has the name of a body or a frame; no name holds `scope`.
    """
    d = robot.description
    frames = _plain_names([b.name for b in d.bodies] + [f.name for f in d.frames], {"world"}, scope)
    taken = set(frames.values()) if apart else set()
    joints = _plain_names([j.name for j in d.joints] + [c.name for c in d.constraints], taken, scope)
    if all(name == plain for names in (frames, joints) for name, plain in names.items()):
        return robot
    changed = [f"'{name}' ('{plain}')" for names in (frames, joints) for name, plain in names.items() if name != plain]
    losses.minor.append(f"names, which become others: {', '.join(changed[:8])}{' …' if len(changed) > 8 else ''}")

    def plain(part: Any) -> Any:
        of_joints = isinstance(part, ConstraintSpec) and not part.bodies
        whole = renamed(part, lambda name: (joints if of_joints else frames).get(name, name))
        plain_names = frames if isinstance(part, BodySpec | FrameSpec) else joints
        return replace(whole, name=plain_names.get(part.name, part.name)) if hasattr(part, "name") else whole

    parts: dict[str, Any] = {
        key: tuple(map(plain, getattr(d, key)))
        for key in ("bodies", "joints", "frames", "constraints", "springs", "visuals")
    }
    parts["shapes"] = tuple(replace(spec, body=frames.get(spec.body, spec.body)) for spec in d.shapes)
    home = tuple((joints[name], q) for name, q in d.home)
    named = tuple((name, tuple((joints[j], q) for j, q in coordinates)) for name, coordinates in d.configurations)
    return type(robot)(replace(d, **parts, home=home, configurations=named))


def _plain_names(names: list[str], taken: set[str], scope: str) -> dict[str, str]:
    taken, plain = set(taken), {}
    for name in names:
        one = name.replace(scope, "_") if scope else name
        while one in taken or (one != name and one in names):
            one += "_"
        taken.add(one)
        plain[name] = one
    return plain


# ---- joints ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Axis:
    """One coordinate of a joint: turning about the line through `point` along `direction`, or sliding along that."""

    turns: bool
    direction: Array
    point: Array
    index: int


@dataclass(frozen=True)
class Link:
    """A joint of the tree from `near` to `far`; without `axes` where it has none (Fixed), or is one of them all (Spherical, Free)."""

    spec: JointSpec
    near: str
    far: str
    backward: bool
    start: Transform
    axes: tuple[Axis, ...]
    end: Transform

    @property
    def joint(self) -> JointType:
        return self.spec.joint

    @property
    def kind(self) -> str:
        """Its kind; what nothing of is free is Fixed."""
        return self.joint.kind if self.joint.nv else "Fixed"

    @property
    def place(self) -> Transform:
        """Of the far body in the near one, where all coordinates are zero."""
        return self.start @ self.end

    def on_far(self, axis: Axis) -> tuple[Array, Array]:
        """Direction and point of an axis in the far body's frame, where all coordinates are zero."""
        home = self.end.inverse()
        return home.rotation @ axis.direction, home.apply(axis.point)


def tree_links(robot: Mechanism) -> dict[str, Link]:
    """Joint of the tree -> how it leads outward."""
    specs = {spec.name: spec for spec in robot.description.joints}
    return {name: link_of(specs[name], robot.joint(name).reversed) for name in robot.joints}


def link_of(spec: JointSpec, backward: bool = False) -> Link:
    try:
        axes, held = axes_of(spec.joint)
    except ModelError as error:
        raise ModelError(f"joint '{spec.name}': {error}") from None
    near, far, start, end = spec.parent, spec.child, spec.at_parent, held @ spec.at_child.inverse()
    if backward:  # the inverse of a product is that of its factors, the other way round
        near, far, start, end = far, near, end.inverse(), start.inverse()
        axes = tuple(Axis(a.turns, -a.direction, a.point, a.index) for a in reversed(axes))
    return Link(spec, near, far, backward, start, axes, end)


# of a joint's constants, the motions that follow one another in it: (turns, direction, coordinate or None, the value that is held)
Factor = tuple[bool, Array, int | None, float]


def _gimbal(constants: dict[str, Any]) -> list[Factor]:
    indices = {name: index for index, name in enumerate(constants["free"])}
    values = zip(PARAMETERS, constants["fixed"], strict=True)
    return [(k < 3, np.eye(3)[k % 3], indices.get(name), value) for k, (name, value) in enumerate(values)]


def _planar(constants: dict[str, Any]) -> list[Factor]:
    ex, ey, normal = axis_frame(constants["normal"]).T
    return [(False, ex, 0, 0.0), (False, ey, 1, 0.0), (True, normal, 2, 0.0)]


FACTORS: dict[str, Callable[[dict[str, Any]], list[Factor]]] = {
    **dict.fromkeys(("Fixed", "Spherical", "Free"), lambda c: []),
    "Revolute": lambda c: [(True, c["axis"], 0, 0.0)],
    "Prismatic": lambda c: [(False, c["axis"], 0, 0.0)],
    "Helical": lambda c: [(True, c["axis"], 0, 0.0), (False, c["axis"], 0, 0.0)],
    "Cylindrical": lambda c: [(True, c["axis"], 0, 0.0), (False, c["axis"], 1, 0.0)],
    "Universal": lambda c: [(True, c["axis1"], 0, 0.0), (True, c["axis2"], 1, 0.0)],
    "Planar": _planar,
    "Gimbal": _gimbal,
}


def axes_of(joint: JointType) -> tuple[tuple[Axis, ...], Transform]:
    """The axes that a joint's motion is a product of, and what follows them; no axes for Fixed, Spherical and Free.

    Raises ModelError for a type of which nothing is known here: what moves otherwise must not be written as if it were held.
    """
    if joint.kind not in FACTORS:
        known = "no other format than .json has joints of type"
        raise ModelError(f"{known} {joint.kind}, nor are their axes known: save it as .json")
    axes, held = [], IDENTITY
    for turns, direction, index, value in FACTORS[joint.kind](vars(joint)):
        if index is None:
            step = np.concatenate([direction * value, np.zeros(3)] if turns else [np.zeros(3), direction * value])
            held = held @ Transform.exp(step)
        else:
            axes.append(Axis(turns, held.rotation @ direction, held.translation, index))
    return tuple(axes), held


def coordinate_names(link: Link, taken: Names) -> list[str]:
    """Names of its axes: the joint's, or with a number where it has several; of a screw, the slide that follows the turn has another."""
    name = link.spec.name
    if link.joint.kind == "Helical":
        slide = taken.new(f"{name}_slide")
        return [name if axis.turns else slide for axis in link.axes]
    return [name] if len(link.axes) == 1 else [taken.new(f"{name}_{axis.index + 1}") for axis in link.axes]


def number_of(link: Link, axis: Axis, name: str, default: float = 0.0) -> float:
    """A passive term or a bound along an axis."""
    values = getattr(link.joint, name)
    return default if values is None else float(values[axis.index])


def limits_of(link: Link, axis: Axis) -> tuple[float, float] | None:
    """Of a coordinate, if it has any."""
    if link.joint.limits is None:
        return None
    low, high = (float(bound[axis.index]) for bound in link.joint.limits)
    return None if np.isinf([low, high]).all() else (low, high)


# ---- XML -------------------------------------------------------------------------------------------------------------


def add(owner: Element, tag: str, **attributes: Any) -> Element:
    """A child with these attributes, those that are None left out; numbers in full."""
    child = ET.SubElement(owner, tag)
    for name, value in attributes.items():
        if value is not None:
            put(child, f"@{name}", value)
    return child


def add_drake(
    owner: Element, spec: ConstraintSpec | SpringSpec, names: dict[tuple[str, int], str], *, words: bool,
    zero: Mapping[str, Array] | None = None,
) -> bool:  # fmt: skip
    """Write a distance, a spring or a linear coupler with Drake's tags, numbers as text or in attributes; whether it could be written.

    `names` are those of the coordinates that have one in the file, and count from `zero` there.
    """

    def part(element: Element, tag: str, value: ArrayLike | str, attribute: str = "value") -> None:
        put(element, f"drake:{tag}" + ("" if words else f"/@{attribute}"), value)

    def between(tag: str, **numbers: float) -> bool:
        element = add(owner, f"drake:{tag}", name=spec.name)
        for letter, (body, point) in zip("AB", (spec.first, spec.second), strict=True):  # type: ignore[union-attr]
            part(element, f"{tag}_body_{letter}", "world" if body == "ground" else body, "name")
            part(element, f"{tag}_p_{'AP' if letter == 'A' else 'BQ'}", point)
        for name, value in numbers.items():
            part(element, f"{tag}_{name}", value)
        return True

    if isinstance(spec, SpringSpec):
        numbers = {"free_length": spec.rest_length, "stiffness": spec.stiffness, "damping": spec.damping}
        return between("linear_spring_damper", **numbers)
    if isinstance(spec, DistanceSpec):
        return between("distance_constraint", distance=spec.length)
    if not isinstance(spec, CouplerSpec) or spec.law is not None or any(any(c[1:]) for _, _, c in spec.terms):
        return False
    if any((joint, index) not in names for joint, index, _ in spec.terms):
        return False
    tendon = add(owner, "drake:tendon_constraint", name=spec.name)
    for joint, index, c in spec.terms:
        add(tendon, "drake:tendon_constraint_joint", name=names[joint, index], a=c[0])
    before = sum(c[0] * zero[joint][index] for joint, index, c in spec.terms) if zero else 0.0
    for bound in ("lower", "upper"):
        part(tendon, f"tendon_constraint_{bound}_limit", spec.offset - before)
    return True


def mimic_of(
    spec: ConstraintSpec, names: dict[tuple[str, int], str], others: Container[str], driven: Container[str] = ()
) -> tuple[str, str, float, float] | None:
    """(follower, leader, multiplier, offset) of a coupler that says so, the follower none of `others`, and none of `driven` if it can."""
    if not isinstance(spec, CouplerSpec) or spec.law is not None or len(spec.terms) != 2:
        return None
    if any((joint, index) not in names or any(c[1:]) for joint, index, c in spec.terms):
        return None
    ways = []
    for (a, i, (p, *_)), (b, k, (r, *_)) in (spec.terms, spec.terms[::-1]):
        if p != 0.0 and names[a, i] not in others:
            ways.append((names[a, i] in driven, (names[a, i], names[b, k], -r / p, spec.offset / p)))
    return min(ways, key=lambda way: way[0])[1] if ways else None


def no_shape(spec: VisualSpec | ShapeSpec) -> str:
    return f"the shape {type(spec.shape).__name__} of body '{spec.body}'"


def frame_along(direction: ArrayLike) -> Transform:
    """A frame turned so that its z-axis has this direction."""
    return Transform(axis_frame(direction))


def turn_from_z(along: ArrayLike) -> Rotation:
    """The least rotation that takes z there; about x by half a turn for -z."""
    x, y, z = (np.asarray(along) / (np.abs(along).max() or 1.0)).tolist()
    across = math.hypot(x, y)
    if across == 0.0 == z:
        raise ModelError("a direction of zero length")
    return Rotation.from_axis_angle((-y, x, 0.0) if across > 1e-10 * abs(z) else "x", math.atan2(across, z))


def on_plane(normal: ArrayLike) -> Transform:
    """The axes along which URDF's planar joint counts, the least turn of x and y from z to the normal as MuJoCo has them, seen from those of Planar."""
    turned = turn_from_z(normal).matrix @ axis_frame(normal).T
    return IDENTITY if np.allclose(turned, np.eye(3), rtol=0.0, atol=1e-12) else Transform(turned)


def wxyz(rotation: ArrayLike) -> list[float]:
    """The quaternion of a rotation, its real part first."""
    x, y, z, w = Rotation(rotation).quaternion.tolist()
    return [w, x, y, z]


def principal_axes(inertia: Inertia) -> tuple[Array, Array]:
    """Principal moments, and the rotation whose columns are their axes: none where the body's own are such."""
    I = inertia.about_com
    if np.array_equal(I, np.diag(np.diag(I))):
        return np.diag(I), np.eye(3)
    moments, axes = np.linalg.eigh(I)
    return moments, axes * np.sign(np.linalg.det(axes))


def beside(shape: Mesh, path: Path) -> str:
    """The name of a mesh's file, as seen from a model file at that path."""
    if "://" in shape.file or not shape.beside:
        return shape.file
    whole = os.path.join(shape.beside, shape.file)
    try:
        return Path(os.path.relpath(whole, path.absolute().parent)).as_posix()
    except ValueError:  # on another drive
        return whole
