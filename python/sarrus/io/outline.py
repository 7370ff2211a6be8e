"""Outline of a mechanism as hinges and slides, shared by the writers of formats that have only these.

A joint of several axes is a chain of hinges and slides. The pose of the outer body (farther from the ground) in the inner body is

    X(q) = start  exp(S_1 q_1) ... exp(S_n q_n)  end

Each S_i is the unit twist of a rotation about a line or of a translation along a direction, expressed in the frame at `start`. q_i is the coordinate
[rad or m]. Constant motions between the axes of a joint (fixed coordinates of a gimbal) are part of `end`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from .. import _showing
from .._arrays import Array, ArrayLike
from ..description import ConstraintSpec, CouplerSpec, DistanceSpec, JointSpec, ShapeSpec, SpringSpec, VisualSpec
from ..description.constraints import renamed
from ..description.joints import NONLINEAR, PARAMETERS, JointType, axis_frame
from ..errors import ModelError, warn_of_model
from ..mechanism import Mechanism
from ..shapes import Mesh
from ..spatial import Inertia, Rotation, Transform
from .document import Mimic, Names
from .formats import put

Element = ET.Element
IDENTITY = Transform()


# ---- losses of a format ----------------------------------------------------------------------------------------------


@dataclass
class Losses:
    """Properties of a mechanism that a format cannot represent: losses that change the motion, and minor losses."""

    format: str
    written: str = "the file"
    cure: str = "save as .json, which is complete, or with lossy=True, which omits them"
    motion: list[str] = field(default_factory=list)
    minor: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a minor loss, unless it is in the list."""
        if text not in self.minor:
            self.minor.append(text)

    def settle(self, path: Path | str, lossy: bool) -> None:
        """Raise ModelError for losses that change the motion, unless `lossy`; warn about all other losses."""
        if self.motion and not lossy:
            raise ModelError(f"{path}: {self.format} cannot represent: {'; '.join(self.motion)}. {self.cure}")
        for text in (*self.motion, *self.minor):
            warn_of_model(f"{path}: {self.format} cannot represent, and {self.written} omits: {text}")

    def note_general(self, robot: Mechanism, *, gravity: bool = False, named: bool = False) -> None:
        """Report gravity and named configurations as losses, unless the format has them."""
        d = robot.description
        if not gravity and d.gravity != (0.0, 0.0, -9.81):
            self.motion.append(f"gravity {d.gravity}")
        if not named and (names := [*(["home"] if d.home else []), *dict(d.configurations)]):
            self.minor.append(f"configurations {listed(names)}")

    def note_nonlinear(self, spring: SpringSpec) -> None:
        """Report the nonlinear terms of a spring as losses."""
        if terms := [name for name in NONLINEAR if getattr(spring, name)]:
            self.motion.append(f"{' and '.join(terms)} of spring '{spring.name}'")


def listed(names: Iterable[str]) -> str:
    return _showing.listed(f"'{name}'" for name in names)


def with_plain_names(robot: Mechanism, losses: Losses, *, distinct: bool = False, scope: str = "") -> Mechanism:
    """Return the mechanism with names that the format allows.

    Names that the format does not allow are changed: no body is called "world", which is the ground in the format, and no name contains `scope`. With
    `distinct`, no joint has the name of a body or a frame.
    """
    d = robot.description
    frames = _plain_names([b.name for b in d.bodies] + [f.name for f in d.frames], {"world"}, scope)
    reserved = set(frames.values()) if distinct else set()
    joints = _plain_names([j.name for j in d.joints] + [c.name for c in d.constraints], reserved, scope)
    if all(name == plain for names in (frames, joints) for name, plain in names.items()):
        return robot
    changed = [f"'{name}' ('{plain}')" for names in (frames, joints) for name, plain in names.items() if name != plain]
    losses.minor.append(f"names that are replaced: {', '.join(changed[:8])}{' …' if len(changed) > 8 else ''}")

    def plain(key: str, part: Any) -> Any:
        names_joints = isinstance(part, ConstraintSpec) and not part.bodies
        copy = renamed(part, lambda name: (joints if names_joints else frames).get(name, name))
        plain_names = frames if key in ("bodies", "frames") else joints
        return replace(copy, name=plain_names.get(part.name, part.name)) if hasattr(part, "name") else copy

    keys = ("bodies", "joints", "frames", "constraints", "springs", "visuals")
    parts: dict[str, Any] = {key: tuple(plain(key, part) for part in getattr(d, key)) for key in keys}
    parts["shapes"] = tuple(replace(spec, body=frames.get(spec.body, spec.body)) for spec in d.shapes)
    home = tuple((joints[name], q) for name, q in d.home)
    named = tuple((name, tuple((joints[j], q) for j, q in coordinates)) for name, coordinates in d.configurations)
    return type(robot)(replace(d, **parts, home=home, configurations=named))


def _plain_names(names: list[str], reserved: set[str], scope: str) -> dict[str, str]:
    reserved, plain = set(reserved), {}
    for name in names:
        new_name = name.replace(scope, "_") if scope else name
        while new_name in reserved or (new_name != name and new_name in names):
            new_name += "_"
        reserved.add(new_name)
        plain[name] = new_name
    return plain


# ---- joints ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Axis:
    """Axis of one coordinate of a joint: a rotation about the line through `point` along `direction`, or a translation along `direction`."""

    turns: bool
    direction: Array
    point: Array
    index: int


@dataclass(frozen=True)
class Link:
    """Tree joint from the body `inner` (nearer the ground) to the body `outer`. `axes` is empty for Fixed, Spherical and Free joints."""

    spec: JointSpec
    inner: str
    outer: str
    backward: bool
    start: Transform
    axes: tuple[Axis, ...]
    end: Transform

    @property
    def joint(self) -> JointType:
        return self.spec.joint

    @property
    def kind(self) -> str:
        """Kind of the joint; "Fixed" for any joint without a degree of freedom."""
        return self.joint.kind if self.joint.nv else "Fixed"

    @property
    def place(self) -> Transform:
        """Pose of the outer body in the inner one at zero coordinates."""
        return self.start @ self.end

    def in_outer(self, axis: Axis) -> tuple[Array, Array]:
        """Return the direction (3,) and a point (3,) [m] of an axis in the outer body's frame, at zero coordinates."""
        home = self.end.inverse()
        return home.rotation @ axis.direction, home.apply(axis.point)


def tree_links(robot: Mechanism) -> dict[str, Link]:
    """Return the dict: tree joint -> its `Link` from the inner to the outer body."""
    specs = {spec.name: spec for spec in robot.description.joints}
    return {name: link_of(specs[name], robot.joint(name).reversed) for name in robot.joints}


def depth_first(links: dict[str, Link]) -> Iterator[Link]:
    """Yield links from the ground outward, depth first: the order of MuJoCo and of Pinocchio, whose algorithms require it."""
    below: dict[str, list[Link]] = {}
    for link in reversed(links.values()):
        below.setdefault(link.inner, []).append(link)
    pending = below.get("ground", [])
    while pending:
        yield (link := pending.pop())
        pending += below.get(link.outer, [])


def link_of(spec: JointSpec, backward: bool = False) -> Link:
    """Return the `Link` of a joint; `backward` is True if the joint's child is the inner body."""
    try:
        axes, offset = axes_of(spec.joint)
    except ModelError as error:
        raise ModelError(f"joint '{spec.name}': {error}") from None
    inner, outer, start, end = spec.parent, spec.child, spec.at_parent, offset @ spec.at_child.inverse()
    if backward:  # the inverse of a product is the product of the inverses in reverse order
        inner, outer, start, end = outer, inner, end.inverse(), start.inverse()
        axes = tuple(Axis(a.turns, -a.direction, a.point, a.index) for a in reversed(axes))
    return Link(spec, inner, outer, backward, start, axes, end)


# one of the successive motions of a joint: (True for a rotation, direction, index of its coordinate or None, value of a constant motion)
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
    """Return the successive axes of a joint's motion, and the constant pose after them; no axes for Fixed, Spherical and Free.

    Raises ModelError for a type without an entry in FACTORS, because a moving joint must not be written as a fixed one.
    """
    if joint.kind not in FACTORS:
        raise ModelError(
            f"only .json supports joints of type {joint.kind}, because the axes of this type are not defined: save as .json"
        )
    axes, offset = [], IDENTITY
    for turns, direction, index, value in FACTORS[joint.kind](vars(joint)):
        if index is None:
            step = np.concatenate([direction * value, np.zeros(3)] if turns else [np.zeros(3), direction * value])
            offset = offset @ Transform.exp(step)
        else:
            axes.append(Axis(turns, offset.rotation @ direction, offset.translation, index))
    return tuple(axes), offset


def coordinate_names(link: Link, used: Names) -> list[str]:
    """Return names of the axes: the joint's name, with a number if it has several axes. The slide of a screw gets the suffix "_slide"."""
    name = link.spec.name
    if link.joint.kind == "Helical":
        slide = used.new(f"{name}_slide")
        return [name if axis.turns else slide for axis in link.axes]
    return [name] if len(link.axes) == 1 else [used.new(f"{name}_{axis.index + 1}") for axis in link.axes]


# ---- XML -------------------------------------------------------------------------------------------------------------


def add(owner: Element, tag: str, **attributes: Any) -> Element:
    """Add and return a child element. Attributes that are None are omitted; numbers are written with all digits."""
    child = ET.SubElement(owner, tag)
    for name, value in attributes.items():
        if value is not None:
            put(child, f"@{name}", value)
    return child


def add_drake(
    owner: Element, spec: ConstraintSpec | SpringSpec, names: dict[tuple[str, int], str], *, words: bool,
    zero: Mapping[str, Array] | None = None,
) -> bool:  # fmt: skip
    """Write a distance, a spring or a linear coupler with Drake's tags; return False for other constraints.

    Numbers are written as text if `words` is True, otherwise as attributes. `names` has the names of coordinates in the file, whose zero is at the
    coordinates `zero` of the mechanism.
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
    if not isinstance(spec, CouplerSpec) or not spec.is_polynomial or any(any(c[1:]) for _, _, c in spec.terms):
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
    spec: ConstraintSpec, names: dict[tuple[str, int], str], excluded: Container[str], driven: Container[str]
) -> Mimic | None:
    """Return a coupler of two coordinates as a joint that follows another one, or None for other constraints.

    The follower is never a coordinate in `excluded`. It is a coordinate in `driven` only if the other coordinate cannot be the follower.
    """
    if not isinstance(spec, CouplerSpec) or not spec.is_polynomial or len(spec.terms) != 2:
        return None
    if any((joint, index) not in names or any(c[1:]) for joint, index, c in spec.terms):
        return None
    choices = []
    for (a, i, (p, *_)), (b, k, (r, *_)) in (spec.terms, spec.terms[::-1]):
        if p != 0.0 and names[a, i] not in excluded:
            choices.append((names[a, i] in driven, Mimic(names[a, i], names[b, k], -r / p, spec.offset / p)))
    return min(choices, key=lambda choice: choice[0])[1] if choices else None


def no_shape(spec: VisualSpec | ShapeSpec) -> str:
    return f"the shape {type(spec.shape).__name__} of body '{spec.body}'"


def frame_along(direction: ArrayLike) -> Transform:
    """Return a rotation, as a pose, whose z-axis has this direction."""
    return Transform(axis_frame(direction))


def turn_from_z(along: ArrayLike) -> Rotation:
    """Return the rotation of smallest angle that maps the z-axis to a direction; for the direction -z, a rotation by pi about x."""
    x, y, z = (np.asarray(along) / (np.abs(along).max() or 1.0)).tolist()
    across = math.hypot(x, y)
    if across == 0.0 == z:
        raise ModelError("a direction of zero length")
    return Rotation.from_axis_angle((-y, x, 0.0) if across > 1e-10 * abs(z) else "x", math.atan2(across, z))


def on_plane(normal: ArrayLike) -> Transform:
    """Return the axes of URDF's planar joint, expressed in the axes of the joint type Planar.

    URDF's axes are obtained from x and y by the rotation of smallest angle that maps z to the normal, as in MuJoCo.
    """
    turned = turn_from_z(normal).matrix @ axis_frame(normal).T
    return IDENTITY if np.allclose(turned, np.eye(3), rtol=0.0, atol=1e-12) else Transform(turned)


def wxyz(rotation: ArrayLike) -> list[float]:
    """Return the quaternion (w, x, y, z) of a rotation."""
    x, y, z, w = Rotation(rotation).quaternion.tolist()
    return [w, x, y, z]


def principal_axes(inertia: Inertia) -> tuple[Array, Array]:
    """Return the principal moments [kg m²], and the rotation whose columns are their axes; identity if the body's axes are principal."""
    I = inertia.about_com
    if np.array_equal(I, np.diag(np.diag(I))):
        return np.diag(I), np.eye(3)
    moments, axes = np.linalg.eigh(I)
    return moments, axes * np.sign(np.linalg.det(axes))


def beside(shape: Mesh, path: Path) -> str:
    """Return the name of a mesh's file relative to a model file at `path`."""
    if "://" in shape.file or not shape.beside:
        return shape.file
    full_name = os.path.join(shape.beside, shape.file)
    try:
        return Path(os.path.relpath(full_name, path.absolute().parent)).as_posix()
    except ValueError:  # the two files are on different drives of Windows
        return full_name
