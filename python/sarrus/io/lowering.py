"""Base classes of the file writers, which reduce (lower) a mechanism to the joints and parameters of a format.

A joint type that the format has is written directly. Any other joint becomes a chain of hinges and slides, one for each axis, each with a name of its
own. A screw becomes a hinge and a slide that is coupled to it. A property that the format cannot represent is a loss, see
:class:`~sarrus.io.outline.Losses`: an error if it changes the motion, otherwise a warning.
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
from ..description.joints import BOUNDS, PASSIVE, SPRINGS, JointType
from ..mechanism import Mechanism
from ..shapes import Mesh
from ..spatial import Inertia, Transform
from . import outline
from .document import Mimic, Names
from .formats import TOUCHING, Format, has_passive, put
from .outline import Axis, Element, Link, Losses

# passive terms of a Planar joint that depend on the axes of its velocities, even if they are equal for both, as linear damping does not
ALONG_BODY = tuple(name for name in PASSIVE if name not in ("damping", "rest", *SPRINGS))


@dataclass(frozen=True)
class Step:
    """Hinge or slide in the chain of a joint, with its parameters. `pitch` [m/rad] is set for the slide of a screw, which is coupled to the screw's
    rotation.
    """

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
    """Writer of a mechanism in a format; `root` is the root element of the document.

    format : table of the format
    distinct, scope : restrictions on names, as in :func:`with_plain_names`
    gravity, configurations, drives_all : True if the format has gravity, named configurations, and motors of joints of several axes
    scalar_only : parameters that the format has only for joints of one axis
    coefficients : contact coefficients that the format has
    """

    format: ClassVar[Format]
    scalar_only: ClassVar[tuple[str, ...]] = ("rest",)
    coefficients: ClassVar[tuple[str, ...]] = ()
    distinct, scope, gravity, configurations, drives_all = False, "", False, False, False
    root: Element

    def __init__(self, robot: Mechanism, losses: Losses, path: Path) -> None:
        self.robot, self.losses, self.path, d = robot, losses, path, robot.description
        self.links = Names([b.name for b in d.bodies] + [f.name for f in d.frames])
        self.joints = Names(spec.name for spec in d.joints)
        # (joint, index of the coordinate) -> name of the joint in the file that has this coordinate
        self.coordinates: dict[tuple[str, int], str] = {}
        self.driven = set[str]()  # names of actuated single-axis joints in the file
        self.followers = set[str]()  # names of joints in the file that follow another joint

    def files(self) -> dict[Path, str]:
        """Return path -> text of the document and of the files next to it."""
        ET.indent(self.root)
        return {self.path: ET.tostring(self.root, encoding="unicode") + "\n"}

    # ---- joints ------------------------------------------------------------------------------------------------------

    def steps(self, link: Link) -> Iterator[Step]:
        """Yield the hinges and slides of a joint, in order."""
        joint, spec = link.joint, link.spec
        if not link.axes:
            self.losses.motion.append(f"joint '{spec}': the format does not have its type, and its axes are unknown")
        for axis, name in zip(link.axes, outline.coordinate_names(link, self.joints), strict=True):
            if joint.kind == "Helical" and not axis.turns:
                yield Step(name, axis, {}, vars(joint)["pitch"])
                continue
            self.coordinates[spec.name, axis.index] = name
            if spec.actuated:
                self.driven.add(name)
            yield Step(name, axis, self.numbers(link, axis))

    def numbers(self, link: Link, axis: Axis) -> dict[str, Any]:
        """Return the parameters of an axis by field; missing bounds are infinite, missing limits None."""
        joint, k = link.joint, axis.index
        values: dict[str, Any] = {name: float(getattr(joint, name)[k]) for name in PASSIVE}
        values |= {name: np.inf if (x := getattr(joint, name)) is None else float(x[k]) for name in BOUNDS}
        limits = (None, None) if joint.limits is None else tuple(float(bound[k]) for bound in joint.limits)
        values["lower"], values["upper"] = (None, None) if limits == (-np.inf, np.inf) else limits
        return values

    def chain(self, link: Link) -> Iterator[tuple[Step, tuple[str, Transform], tuple[str, Transform]]]:
        """Yield each hinge or slide of a joint with (inner body, frame) and (outer body, frame). Bodies between two of them are massless."""
        inner, start = link.inner, link.start
        for step in self.steps(link):
            point, last = Transform(translation=step.axis.point), step.axis is link.axes[-1]
            child = link.outer if last else self.links.new(self.massless_name(link, step))
            yield step, (inner, start @ point), (child, link.end.inverse() @ point if last else outline.IDENTITY)
            inner, start = child, point.inverse()
        self.note_planar(link)

    def massless_name(self, link: Link, step: Step) -> str:
        """Return a name for the massless body after a step."""
        return f"{step.name}_link"

    def uniform_numbers(self, spec: JointSpec) -> dict[str, Any]:
        """Return those passive terms of a joint that the format can represent, one value for all directions; report the other terms as losses."""
        joint, label = spec.joint, f"joint '{spec.name}' ({spec.joint.kind})"
        terms = [row.field for row in self.format.numbers if row.field in PASSIVE and row.field not in self.scalar_only]
        values = {name: getattr(joint, name) for name in terms}
        if missing := [name for name in has_passive(joint) if name not in values]:
            self.losses.motion.append(f"{' and '.join(missing)} of {label}")
        if uneven := [name for name, x in values.items() if (x != x[0]).any()]:
            self.losses.motion.append(f"differences between directions in {' and '.join(uneven)} of {label}")
        self.note_bounds(spec)
        return {name: x[0] for name, x in values.items()}

    def note_missing(self, spec: JointSpec) -> None:
        """Report as losses the parameters of a joint for which the format has no row."""
        passive, bounds = self.format.missing(spec.joint)
        if passive:
            self.losses.motion.append(f"{' and '.join(passive)} of joint '{spec.name}'")
        if bounds:
            self.losses.minor.append(f"the {' and the '.join(bounds).replace('_', ' ')} of joint '{spec.name}'")

    def note_bounds(self, spec: JointSpec) -> None:
        """Report as losses the limits and the motor of a joint of several axes."""
        label = f"joint '{spec.name}' ({spec.joint.kind})"
        if has_bounds(spec.joint):
            self.losses.minor.append(f"limits of {label}")
        if spec.actuated and not self.drives_all:
            self.losses.minor.append(f"the motor of {label}")

    def note_inverse(self, link: Link) -> None:
        """Report a loss for a joint whose child is the inner body (nearer the ground): the joint is written with the inverse motion."""
        if link.backward and link.joint.nv:
            ends = f"from '{link.outer}' to '{link.inner}'"
            self.losses.minor.append(
                f"joint '{link.spec.name}' {ends}: its coordinates become those of the inverse motion"
            )

    def note_planar(self, link: Link) -> None:
        """Report a loss for a planar joint: in sarrus its velocities are along the body's axes, in the file along the plane's axes."""
        if (joint := link.joint).kind == "Planar":
            text = f"of joint '{link.spec.name}' along the body's axes: they are along the plane's axes"
            self.losses.minor.append(f"velocities {text}")
            along = [name for name in ALONG_BODY if getattr(joint, name)[:2].any()]
            along += ["damping"] if joint.damping[0] != joint.damping[1] else []
            if along := [name for name in along if name not in self.format.missing(joint)[0]]:
                self.losses.motion.append(f"{' and '.join(along)} {text}")

    # ---- constraints -------------------------------------------------------------------------------------------------

    def constraints(self) -> None:
        """Write the loop joints and the other constraints."""
        for spec in (self.robot.constraint(name).spec for name in self.robot.constraints):
            if isinstance(spec, JointSpec):
                self.loop_joint(spec)
            elif not self.constraint(spec):
                self.losses.motion.append(f"constraint '{spec}'")

    def declare_drake(self) -> None:
        """Declare the namespace of Drake's tags if the document has any."""
        if any(element.tag.startswith("drake:") for element in self.root.iter()):
            self.root.set("xmlns:drake", "http://drake.mit.edu")

    def loop_joint(self, spec: JointSpec) -> None:
        """Write a loop joint."""
        raise NotImplementedError

    def constraint(self, spec: ConstraintSpec) -> bool:
        """Write a constraint that is not a loop joint; return False if the format cannot represent it."""
        mimic = outline.mimic_of(spec, self.coordinates, self.excluded(), self.driven)
        if mimic is None:
            return self.other_constraint(spec)
        self.followers.add(mimic.follower)
        self.mimic(mimic)
        return True

    def excluded(self) -> set[str]:
        """Return the names of joints in the file that must not follow another joint."""
        return self.followers

    def mimic(self, mimic: Mimic) -> None:
        """Write a coupler of two joints of one axis."""
        raise NotImplementedError

    def other_constraint(self, spec: ConstraintSpec) -> bool:
        """Write any other constraint; return False if the format cannot represent it."""
        raise NotImplementedError

    # ---- visuals and collision shapes of URDF and SDF ----------------------------------------------------------------

    def looks(self, links: Mapping[str, Element]) -> None:
        """Write the visuals and collision shapes of all bodies into the bodies' elements."""
        for visual in self.robot.description.visuals:
            self.visual(links.get(visual.body), visual)
        for shape in self.robot.description.shapes:
            self.collision(links.get(shape.body), shape)
        self.note_shapes()

    def visual(self, link: Element | None, visual: VisualSpec) -> None:
        """Write a visual with its colour."""
        element = self._solid(link, visual, "visual")
        if element is not None and visual.color is not None:
            self.color(element, visual.color)

    def collision(self, link: Element | None, spec: ShapeSpec) -> Element | None:
        """Write a collision shape with its name and pose, and return its element."""
        element = self._solid(link, spec, "collision")
        if element is not None:
            element.set("name", spec.name)
        return element

    def note_shapes(self) -> None:
        """Report as losses those groups and contact coefficients of collision shapes that the format cannot represent."""
        shapes = self.robot.description.shapes
        if any(spec.group is not None for spec in shapes) or self.robot.description.contacts:
            self.losses.minor.append("groups of shapes, and which pairs may touch")
        defined = [name for name in COEFFICIENTS if any(getattr(spec, name) is not None for spec in shapes)]
        if lost := [name.replace("_", " ") for name in defined if name not in self.coefficients]:
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
            if isinstance(shape, Mesh) and field.name == "file":
                value = outline.beside(shape, self.path)
            put(inside, place, value)
        return element

    def color(self, visual: Element, color: tuple[float, ...]) -> None:
        """Write the colour (r, g, b, a) of a visual."""
        for place in self.format.color.split():
            put(visual, place, color)

    def place(self, element: Element, place: Transform) -> None:
        """Write the pose of an element."""
        raise NotImplementedError


class PosedWriter(Writer):
    """Writer of a format that stores the poses of bodies; loop joints are then written like tree joints."""

    pose: dict[str, Transform]  # body -> its pose in the world that the file stores
    at_home: dict[str, Array]  # joint -> its coordinates at these poses

    def parts(self) -> None:
        """Write bodies, joints, frames and constraints."""
        d, q = self.robot.description, self.home()
        self.at_home = {name: np.atleast_1d(x) for name, x in self.robot.joint_states(q, time=0.0).q.items()}
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
        """Return the configuration (nq,) of the poses in the file."""
        raise NotImplementedError

    def body(self, name: str, inertia: Inertia) -> None:
        """Write a body."""
        raise NotImplementedError

    def joint(self, link: Link) -> None:
        """Write a joint."""
        raise NotImplementedError

    def joint_chain(self, link: Link) -> None:
        """Write a joint as a chain of hinges and slides."""
        for step, inner, (child, at_child) in self.chain(link):
            if child != link.outer:
                q = self.at_home[link.spec.name][step.index] * (1.0 if step.pitch is None else step.pitch)
                motion, zero = step.axis.direction * q, np.zeros(3)
                moved = Transform.exp(np.concatenate([motion, zero] if step.turns else [zero, motion]))
                self.pose[child] = self.pose[inner[0]] @ inner[1] @ moved
                self.body(child, Inertia.zero())
            self.step(link.spec, step, inner, (child, at_child))

    def step(self, spec: JointSpec, step: Step, inner: tuple[str, Transform], outer: tuple[str, Transform]) -> None:
        """Write a hinge or a slide between two frames (body, pose in it)."""
        raise NotImplementedError

    def frame(self, frame: FrameSpec) -> None:
        """Write a frame."""
        raise NotImplementedError

    def loop_joint(self, spec: JointSpec) -> None:
        """Do nothing, because :meth:`parts` writes loop joints together with tree joints."""

    def note_free(self, spec: JointSpec) -> None:
        """Report the losses of a Free joint. The joint is not written, because a body without a joint floats in the format."""
        if passive := has_passive(spec.joint):
            self.losses.motion.append(f"{', '.join(passive)} of joint '{spec.name}' (Free)")
        self.note_bounds(spec)
        self.losses.minor.append(f"the name and the frames of joint '{spec.name}': a body without a joint floats")


def has_bounds(joint: JointType) -> bool:
    """Return True if a joint has limits, a velocity limit or an effort limit."""
    return any(getattr(joint, name) is not None for name in ("limits", *BOUNDS))


def coincident_points(joint: JointType, distance: float = 1.0) -> list[Array]:
    """Return the points (3,) [m] in the joint frame whose coincidence on both bodies replaces a loop joint.

    The list is empty if coincident points cannot replace the joint. `distance` [m] is that of the second point on a hinge's axis.
    """
    if joint.kind == "Revolute":
        return [np.zeros(3), vars(joint)["axis"] * distance]
    return [np.zeros(3)] if joint.kind in ("Fixed", "Spherical") else []


def closes(
    spec: JointSpec, fits: bool, losses: Losses, *, can: str = "Fixed, Spherical and Revolute", driven: bool = False
) -> bool:
    """Return True if the format can represent the geometry of a loop joint; report as losses the parameters that it cannot represent.

    fits : True if the format has loop joints of this kind
    can : names of the kinds that the format has, for the message
    driven : True if the loss of its motor is reported elsewhere
    """
    joint, label = spec.joint, f"loop joint '{spec.name}'"
    if spec.laws or not fits:
        cure = "without laws" if fits else "keep it in the tree (tree=True) and close the loop with one of these"
        losses.motion.append(f"loop joint '{spec}'; loop joints can be {can}{', ' if fits else ': '}{cure}")
        return False
    if passive := has_passive(joint):
        losses.motion.append(f"{', '.join(passive)} of {label}")
    if has_bounds(joint):
        losses.minor.append(f"limits of {label}")
    if spec.actuated and not driven:
        losses.motion.append(f"the motor of {label}")
    return True


def save(writer: type[Writer], robot: Mechanism, path: Path, *, lossy: bool = False) -> list[Path]:
    """Write a document and its accompanying files, all or none, see :meth:`sarrus.Mechanism.save`; return their paths."""
    losses = Losses(writer.format.name)
    losses.note_general(robot, gravity=writer.gravity, named=writer.configurations)
    robot = outline.with_plain_names(robot, losses, distinct=writer.distinct, scope=writer.scope)
    files = writer(robot, losses, path).files()
    losses.settle(path, lossy)
    with ExitStack() as stack:
        for file, text in files.items():
            stack.enter_context(replacing(file)).write_text(text, encoding="utf-8")
    return list(files)
