"""A mechanism lowered to what a format can say: what the writers of files have in common.

A joint that the format has is written as it is; any other is a chain of hinges and slides, one an axis, with names of their own; of a screw
the slide follows the turn. What neither this nor a row of the format's table can say is refused, or named where the motion stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree as ET

import numpy as np

from .._arrays import Array
from .._files import replacing
from ..description import ConstraintSpec, FrameSpec, JointSpec, ShapeSpec, VisualSpec
from ..description.contacts import COEFFICIENTS
from ..description.joints import BOUNDS, PASSIVE, JointType
from ..mechanism import Mechanism
from ..shapes import Mesh
from ..spatial import Inertia, Transform
from . import outline
from .document import Names
from .outline import Axis, Element, Link, Losses
from .table import TOUCHING, Format, has_passive, put


@dataclass(frozen=True)
class Step:
    """A hinge or a slide of the chain that a joint becomes, with its numbers; or, of a screw, the slide that follows the turn by a pitch."""

    name: str
    axis: Axis
    numbers: dict[str, Any]
    pitch: float | None = None

    @property
    def index(self) -> int:
        return self.axis.index

    @property
    def turns(self) -> bool:
        return self.axis.turns


class Writer:
    """The parts of a mechanism, one after the other, as a format can say them; `root` is the document.

    A format says what its table does; `apart`, `scope`: what names are no names there (:func:`with_plain_names`); gravity, configurations,
    drives_all: whether it has a word for them, and for motors of joints of many directions; of_one_axis: numbers that only joints of one axis have;
    coefficients: what it has of shapes that touch.
    """

    format: ClassVar[Format]
    of_one_axis: ClassVar[tuple[str, ...]] = ("rest",)
    coefficients: ClassVar[tuple[str, ...]] = ()
    apart, scope, gravity, configurations, drives_all = False, "", False, False, False
    root: Element

    def __init__(self, robot: Mechanism, losses: Losses, path: Path) -> None:
        self.robot, self.losses, self.path, d = robot, losses, path, robot.description
        self.links = Names([b.name for b in d.bodies] + [f.name for f in d.frames])
        self.joints = Names(spec.name for spec in d.joints)
        self.coordinates: dict[tuple[str, int], str] = {}  # (joint, index) -> the joint in the file that has it
        self.driven = set[str]()  # joints in the file, of one axis

    def files(self) -> dict[Path, str]:
        """The document, and what lies beside it."""
        ET.indent(self.root)
        return {self.path: ET.tostring(self.root, encoding="unicode") + "\n"}

    # ---- joints ------------------------------------------------------------------------------------------------------

    def steps(self, link: Link) -> Iterator[Step]:
        """The hinges and slides of a joint that the format has not, or that is one of them."""
        joint, spec = link.joint, link.spec
        if not link.axes:
            self.losses.motion.append(f"joint '{spec}': neither the format has its type, nor are its axes known")
        for axis, name in zip(link.axes, outline.coordinate_names(link, self.joints), strict=True):
            if joint.kind == "Helical" and not axis.turns:
                yield Step(name, axis, {}, vars(joint)["pitch"])
                continue
            self.coordinates[spec.name, axis.index] = name
            if spec.actuated:
                self.driven.add(name)
            yield Step(name, axis, self.numbers(link, axis))

    def numbers(self, link: Link, axis: Axis) -> dict[str, Any]:
        """Of an axis, by their fields; bounds that it has not are infinite, limits None."""
        values: dict[str, Any] = {name: outline.number_of(link, axis, name) for name in PASSIVE}
        values |= {name: outline.number_of(link, axis, name, np.inf) for name in BOUNDS}
        values["lower"], values["upper"] = outline.limits_of(link, axis) or (None, None)
        return values

    def chain(self, link: Link) -> Iterator[tuple[Step, tuple[str, Transform], tuple[str, Transform]]]:
        """The hinges and slides of a joint, each between a frame on a body and one on the next; those between have no mass."""
        near, start = link.near, link.start
        for step in self.steps(link):
            point, last = Transform(translation=step.axis.point), step.axis is link.axes[-1]
            child = link.far if last else self.links.new(self.behind(link, step))
            yield step, (near, start @ point), (child, link.end.inverse() @ point if last else outline.IDENTITY)
            near, start = child, point.inverse()
        self.note_planar(link)

    def behind(self, link: Link, step: Step) -> str:
        """What the body without mass behind a step is called."""
        return f"{step.name}_link"

    def whole(self, spec: JointSpec) -> dict[str, Any]:
        """The numbers of a joint that is written as it is, one for all directions; what it loses is named."""
        joint, what = spec.joint, f"joint '{spec.name}' ({spec.joint.kind})"
        terms = [row.field for row in self.format.numbers if row.field in PASSIVE and row.field not in self.of_one_axis]
        values = {name: getattr(joint, name) for name in terms}
        if missing := [name for name in has_passive(joint) if name not in values]:
            self.losses.motion.append(f"{' and '.join(missing)} of {what}")
        if uneven := [name for name, x in values.items() if (x != x[0]).any()]:
            self.losses.motion.append(f"differences between directions in {' and '.join(uneven)} of {what}")
        self.note_whole(spec)
        return {name: x[0] for name, x in values.items()}

    def look_for_lacking(self, spec: JointSpec) -> None:
        """Name the numbers that the format has no row for."""
        passive, bounds = self.format.lacks(spec.joint)
        if passive:
            self.losses.motion.append(f"{' and '.join(passive)} of joint '{spec.name}'")
        if bounds:
            self.losses.minor.append(f"the {' and the '.join(bounds).replace('_', ' ')} of joint '{spec.name}'")

    def note_whole(self, spec: JointSpec) -> None:
        """Name what a joint loses that is written as it is."""
        what = f"joint '{spec.name}' ({spec.joint.kind})"
        if has_bounds(spec.joint):
            self.losses.minor.append(f"limits of {what}")
        if spec.actuated and not self.drives_all:
            self.losses.minor.append(f"that {what} is actuated")

    def note_inverse(self, link: Link) -> None:
        if link.backward and link.joint.nv:
            ends = f"from '{link.far}' to '{link.near}'"
            self.losses.minor.append(f"joint '{link.spec.name}' {ends}: its coordinates are those of the inverse")

    def note_planar(self, link: Link) -> None:
        if link.joint.kind == "Planar":
            text = f"velocities of joint '{link.spec.name}' along the body's own axes: they are along the plane's"
            self.losses.minor.append(text)

    # ---- constraints -------------------------------------------------------------------------------------------------

    def constraints(self) -> None:
        for spec in (self.robot.constraint(name).spec for name in self.robot.constraints):
            if isinstance(spec, JointSpec):
                self.closing(spec)
            elif not self.tie(spec):
                self.losses.motion.append(f"constraint '{spec}'")

    def declare_drake(self) -> None:
        """The namespace of Drake's tags, where there are some."""
        if any(element.tag.startswith("drake:") for element in self.root.iter()):
            self.root.set("xmlns:drake", "http://drake.mit.edu")

    def closing(self, spec: JointSpec) -> None:
        """Write a joint that closes a loop."""
        raise NotImplementedError

    def tie(self, spec: ConstraintSpec) -> bool:
        """Whether another constraint could be written."""
        raise NotImplementedError

    # ---- looks, of URDF and SDF --------------------------------------------------------------------------------------

    def looks(self, links: Mapping[str, Element]) -> None:
        """Visuals and shapes that touch, in the elements of their bodies."""
        for visual in self.robot.description.visuals:
            self.visual(links.get(visual.body), visual)
        for shape in self.robot.description.shapes:
            self.collision(links.get(shape.body), shape)
        self.note_touching()

    def visual(self, link: Element | None, visual: VisualSpec) -> None:
        element = self._solid(link, visual, "visual")
        if element is not None and visual.color is not None:
            self.color(element, visual.color)

    def collision(self, link: Element | None, spec: ShapeSpec) -> Element | None:
        """A shape that touches; in URDF its name and its place are all that is said of it."""
        element = self._solid(link, spec, "collision")
        if element is not None:
            element.set("name", spec.name)
        return element

    def note_touching(self) -> None:
        """Name what shapes that touch lose."""
        shapes = self.robot.description.shapes
        if any(spec.group is not None for spec in shapes) or self.robot.description.contacts:
            self.losses.minor.append("groups of shapes, and which may touch")
        said = [name for name in COEFFICIENTS if any(getattr(spec, name) is not None for spec in shapes)]
        if lost := [name.replace("_", " ") for name in said if name not in self.coefficients]:
            self.losses.minor.append(f"{' and '.join(filter(None, [', '.join(lost[:-1]), lost[-1]]))} of shapes")

    def _solid(self, link: Element | None, spec: VisualSpec | ShapeSpec, tag: str) -> Element | None:
        shape, kind = spec.shape, type(spec.shape)
        if link is None or kind not in TOUCHING or kind not in self.format.shapes:
            ground = f"{'visuals' if tag == 'visual' else 'shapes'} of the ground"
            self.losses.note(ground if link is None else outline.no_shape(spec))
            return None
        element = outline.add(link, tag)
        self.place(element, spec.placement)
        inside = outline.add(outline.add(element, "geometry"), self.format.shapes[kind][0])
        for field, place in self.format.places(kind):
            value = getattr(shape, field.name)
            put(
                inside,
                place,
                outline.beside(shape, self.path) if isinstance(shape, Mesh) and value == shape.file else value,
            )
        return element

    def color(self, visual: Element, color: tuple[float, ...]) -> None:
        for place in self.format.color.split():
            put(visual, place, color)

    def place(self, element: Element, place: Transform) -> None:
        raise NotImplementedError


class PosedWriter(Writer):
    """The same of a format that has poses of its bodies, in which a joint that closes a loop stands as any other does."""

    pose: dict[str, Transform]  # of bodies in the world, in the file

    def parts(self) -> None:
        d, q = self.robot.description, self.home()
        self.pose = {"ground": outline.IDENTITY}
        for body in d.bodies:
            self.pose[body.name] = Transform.from_matrix(self.robot.pose(q, body.name))
            self.body(body.name, body.inertia)
        for spec in d.joints:
            if spec.laws:
                self.losses.motion.append(f"constraint '{spec}'")
            elif spec.joint.kind == "Free":
                self.note_free(spec)
            else:
                self.joint(outline.link_of(spec))
        for frame in d.frames:
            self.frame(frame)
        self.constraints()

    def home(self) -> Array:
        """The configuration of the file's poses."""
        raise NotImplementedError

    def body(self, name: str, inertia: Inertia) -> None:
        raise NotImplementedError

    def joint(self, link: Link) -> None:
        raise NotImplementedError

    def frame(self, frame: FrameSpec) -> None:
        raise NotImplementedError

    def closing(self, spec: JointSpec) -> None:
        """As any other joint; it stands there already."""

    def note_free(self, spec: JointSpec) -> None:
        """Name what a joint loses that is not written, as its body floats."""
        if passive := has_passive(spec.joint):
            self.losses.motion.append(f"{', '.join(passive)} of joint '{spec.name}' (Free)")
        self.note_whole(spec)
        self.losses.minor.append(f"the name and the frames of joint '{spec.name}': what no joint leads to floats")


def has_bounds(joint: JointType) -> bool:
    return any(getattr(joint, name) is not None for name in ("limits", *BOUNDS))


def held_points(joint: JointType, apart: float = 1.0) -> list[Array]:
    """Where a loop is closed by holding points, or frames of which a point is held too: none of a joint that this cannot be."""
    if joint.kind == "Revolute":
        return [np.zeros(3), vars(joint)["axis"] * apart]
    return [np.zeros(3)] if joint.kind in ("Fixed", "Spherical") else []


def closes(
    spec: JointSpec, fits: bool, losses: Losses, *, can: str = "Fixed, Spherical and Revolute", driven: bool = False
) -> bool:
    """Whether a joint closes a loop in a format in which some can, and these without numbers; what it loses is named.

    fits : whether its kind is one that can, of those that are named in can
    driven : whether a motor that is lost is named elsewhere
    """
    joint, closing = spec.joint, f"joint '{spec.name}', which closes a loop"
    if spec.laws or not fits:
        instead = "without laws" if fits else "keep it in the tree (tree=True) and let one of these close"
        losses.motion.append(f"that joint '{spec}' closes a loop; {can} can{', ' if fits else ': '}{instead}")
        return False
    if passive := has_passive(joint):
        losses.motion.append(f"{', '.join(passive)} of {closing}")
    if has_bounds(joint):
        losses.minor.append(f"limits of {closing}")
    if spec.actuated and not driven:
        losses.motion.append(f"that joint '{spec.name}' is actuated, which closes a loop")
    return True


def save(writer: type[Writer], robot: Mechanism, path: Path, *, lossy: bool = False) -> list[Path]:
    """Write a file, and what lies beside it, as :meth:`sarrus.Mechanism.save` says: all of them or none."""
    losses = Losses(writer.format.name)
    losses.look_for_idle(robot, gravity=writer.gravity, named=writer.configurations)
    robot = outline.with_plain_names(robot, losses, apart=writer.apart, scope=writer.scope)
    files = writer(robot, losses, path).files()
    losses.settle(path, lossy)
    with ExitStack() as stack:
        for file, text in files.items():
            stack.enter_context(replacing(file)).write_text(text, encoding="utf-8")
    return list(files)
