"""SDF, versions 1.3 to 1.12, read with the standard library's expat.

What becomes of each part of a file:

============================  =====================================================================================
`<model>`                     the mechanism; the only one of a world that is not static, the one that `model=` names, or all of them
                              where joints of the world connect them. Links of nested models are called "nested::link"
`<include>`                   as a nested model, or merged; its file is looked for as :func:`sarrus.load` says
`<pose>`                      with `relative_to` (up to 1.6 `frame`), `degrees`, `rotation_format`, `placement_frame`
`<link>`                      a body. Without `<inertial>` it has SDF's defaults, 1 kg and 1 kg m² about each axis, with a warning;
                              `auto`: the inertia of its collisions (box, capsule, cylinder, ellipsoid, sphere)
`<frame>`                     a frame
`<joint>`                     a joint, whose frame is one in the file's pose: q = 0 there. Any two links may be joined, so that loops
                              close: revolute, continuous, prismatic, screw, ball, universal and revolute2 (Universal), fixed. An effort
                              of 0 makes it passive, a negative one is no limit; ball joints are passive
`<axis>`                      along z where it does not say; in the joint's frame, unless `expressed_in` another one, or up to 1.6 in the model's where
                              `use_parent_model_frame` says so, as files up to 1.4 always mean it
`<limit>`, `<dynamics>`       limits, velocity_limit, effort_limit, damping, friction, stiffness and rest
gearbox, `<mimic>`            couplers of two joints, both kept in the tree; plugins by which one joint mimics another likewise
`drake:…`                     planar joints, mimic, and :mod:`sarrus.io.extensions`
what no joint leads to        floats, by a Free joint "root_joint" of the canonical link, with the file's pose as home
`<static>`                    its links are fixed to the ground
`<gravity>` of the world      gravity
`<collision>`                 a shape that touches: box, capsule, cylinder, plane, sphere, with ODE's mu, the restitution, and torsional
                              friction by its patch_radius; a mesh, if it is at hand, against planes
`<visual>`                    what `sarrus.view` shows, as in :mod:`sarrus.io.urdf`
`<plugin>`                    a warning, if it may tie or push bodies: Gazebo's DetachableJoint holds two links together
anything else                 a warning, but for what has no bearing on the dynamics
============================  =====================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._arrays import Array
from ..building.builder import Builder
from ..description import joints
from ..errors import ModelError, did_you_mean
from ..spatial import Rotation, Transform
from . import extensions
from .document import Connected, Element, Names, at, check_ties, free_name, mimic_circles
from .sdf_parts import axis_direction, axis_in_model, dress, inertia_of, joint_type
from .sdf_scene import Scene, SdfJoint, inside


def read(
    text: str | bytes, *, source: str = "<string>", floating_base: bool | None = None, beside: str = "",
    package_dirs: Iterable[str] = (), model: str | None = None,
) -> Builder:  # fmt: skip
    """Builder of the mechanism that an SDF document describes, which can be added to. A ModelError tells file, line and element.

    Parameters
    ----------
    text : the document
    source : what errors and warnings call it
    beside : folder of the file, where the search for meshes and included models starts; empty: there is none
    floating_base : False fixes the canonical link to the ground, where the file lets it float
    package_dirs, model : as of :func:`sarrus.load`

    Examples
    --------
    >>> from sarrus.io import sdf
    >>> b = sdf.read('<sdf version="1.7"><model name="stone"><link name="stone"><inertial/></link></model></sdf>')
    >>> b.build().joint("root_joint").kind
    'Free'
    """
    if not isinstance(floating_base, bool | np.bool_ | None):
        raise ModelError(f"floating_base is True or False; got {floating_base!r}")
    scene = Scene(beside, tuple(package_dirs))
    root = scene.document(text, source)
    top = scene.choose(root, model)
    reader = _Reader(scene, root, top)
    reader.add_roots(floating_base)
    reader.add_joints()
    reader.add_frames()
    reader.add_drakes()
    builder = reader.builder
    with at(root):
        builder.set_home(reader.home)
    faults = dress(scene, builder, {reader.body[key]: (key, link) for key, link in reader.links.items()})
    builder.warnings += [*(note for document in scene.documents for note in document.notes), *faults]
    return builder


@dataclass(frozen=True)
class _Coupler:
    """Sum of coefficients times coordinates (joint, index) = offset."""

    element: Element
    name: str
    terms: dict[tuple[str, int], float]
    offset: float


class _Reader:
    """One model of a scene, or all, of which one part after the other is added to a Builder."""

    def __init__(self, scene: Scene, root: Element, top: str) -> None:
        self.scene, self.root, self.top = scene, root, top
        self.links = {key: link for key, link in scene.links.items() if inside(key, top)}
        if not self.links:
            scene.models[top].fail("has no links")
        self.body = {key: self.short(key) for key in self.links}
        if ground := [key for key, name in self.body.items() if name == "ground"]:
            root.note("a link called 'ground' becomes body 'ground_link': 'ground' is the world")
            self.body[ground[0]] = free_name("ground_link", self.body.values())
        self.body["world"] = "ground"
        self.models = {key: model for key, model in scene.models.items() if inside(key, top) or key == top}
        world = next(iter(root.all("world")), None)
        with at(root):
            self.builder = Builder(name=top or (world and world.get("name")) or "world")
        if (gravity := _gravity(world)) is not None:
            self.builder.gravity = gravity
        for key, link in self.links.items():
            with at(link):
                self.builder.add_body(self.body[key], inertia_of(scene, key, link))
        still = {"world", *scene.static}
        self.ends = {joint.name: tuple(scene.body(end, joint.element) for end in joint.ends) for joint in scene.joints}
        check_ties(self.ends.values(), root.source)
        self.moving = [
            joint for joint in scene.joints if not still.issuperset(self.ends[joint.name]) and self._is_of(joint)
        ]
        self.joints = [joint for joint in self.moving if not joint.is_gearbox]
        self.taken = Names(self.short(joint.name) for joint in self.joints)
        self.home: dict[str, list[float]] = {}

    def short(self, key: str) -> str:
        return key.removeprefix(f"{self.top}::")

    def place(self, element: Element, key: str) -> tuple[str, Transform]:
        """Body and pose in it of a frame."""
        link, pose = self.scene.on_body(key, element)
        if link not in self.body:
            element.fail(f"refers to {key!r}, which is no part of model {self.top!r}")
        return self.body[link], pose

    def _is_of(self, joint: SdfJoint) -> bool:
        """Whether a joint is the model's, or one of the world that holds it."""
        if joint.scope:
            return inside(joint.name, self.top)
        ends = self.ends[joint.name]
        read = [end in self.body for end in ends]
        if any(end in self.body for end in ends if end != "world") and not all(read):
            other = f"leads to another model than {self.top!r}, which is not read: it holds nothing"
            joint.element.note(f"{joint.element} {other}")
        return all(read)

    def add_roots(self, floating_base: bool | None) -> None:
        """Joints to the ground of what is static, and of what nothing holds."""
        scene, links = self.scene, self.links
        for key in (key for key in links if key in scene.static):
            name, pose = self.taken.new(f"{self.body[key]}_to_ground"), scene.pose(key, links[key])
            self.builder.add_joint(name, joints.Fixed(), "ground", self.body[key], at_parent=pose)
        for k, key in enumerate(_afloat(scene, links, [self.ends[joint.name] for joint in self.joints])):
            body, pose = self.body[key], scene.pose(key, links[key])
            name = self.taken.new(f"root_joint_{body}" if k else "root_joint")
            if k:
                fault = "is joined neither to the ground nor to what stands before it: it floats by itself"
                links[key].note(f"{links[key]} {fault}")
            if floating_base is False and k == 0:
                self.builder.add_joint(name, joints.Fixed(), "ground", body, at_parent=pose)
            else:
                self.builder.add_joint(name, joints.Free(), "ground", body)
                self.home[name] = [*Rotation(pose.rotation).quaternion.tolist(), *pose.translation.tolist()]

    def add_joints(self) -> None:
        """The joints, and the couplers of those that keep their coordinates."""
        mimics = list(self._mimics())
        _look_for_circles(mimics)
        couplers = [*mimics, *self._gearboxes()]
        coupled = {name for coupler in couplers for name, _ in coupler.terms}
        coupled |= {
            self.short(f"{key}::{name}") for key, model in self.models.items() for name in extensions.coupled(model)
        }
        followers = {next(iter(coupler.terms))[0] for coupler in mimics}
        for joint in self.joints:
            with at(joint.element):
                name = self.short(joint.name)
                self._add_joint(joint, name, name in coupled, name in followers)
        for coupler in couplers:
            with at(coupler.element):
                self.builder.add_coupler(self.taken.new(coupler.name), coupler.terms, offset=coupler.offset)

    def _add_joint(self, joint: SdfJoint, name: str, keep: bool, follows: bool) -> None:
        element, scene = joint.element, self.scene
        (parent, at_parent), (child, at_child) = (self.place(element, end) for end in joint.ends)
        if element.tag == "drake:joint":
            kind, driven, keep = _planar(element), False, True
            self.home[name] = _on_plane(*(scene.pose(end, element) for end in joint.ends))
        else:
            kind, driven = joint_type(element, partial(_direction, scene, joint))
            # the frame of a joint is one frame: where it is in the parent follows from the pose of the file
            at_parent, at_child = (scene.between(end, joint.frame, element) for end in self.ends[joint.name])
        driven = driven and kind.nv > 0 and not follows
        places: dict[str, Any] = {"at_parent": at_parent, "at_child": at_child}
        self.builder.add_joint(name, kind, parent, child, **places, actuated=driven, tree=keep)

    def add_frames(self) -> None:
        bodies = Names(self.body.values())
        for key, frame in self.scene.frames.items():
            if frame.element.tag == "frame" and inside(key, self.top):
                with at(frame.element):
                    self.builder.add_frame(bodies.new(self.short(key)), *self.place(frame.element, key))

    def add_drakes(self) -> None:
        for key, model in self.models.items():

            def place_in(element: Element, name: str, model: str = key) -> tuple[str, Transform]:
                return self.place(element, name if name == "world" else f"{model}::{name}")

            def joint_in(element: Element, name: str, model: str = key) -> str:
                if f"{model}::{name}" not in self.ends:
                    element.fail(f"names an unknown joint {name!r}{did_you_mean(name, self.taken)}")
                return self.short(f"{model}::{name}")

            extensions.add(self.builder, model, place_in, joint_in, self.taken)

    # ---- couplers ----------------------------------------------------------------------------------------------------

    def _mimics(self) -> Iterator[_Coupler]:
        """A joint that follows another: q = multiplier (q_leader - reference) + offset."""
        known = {joint.name for joint in self.joints}
        for joint in self.joints:
            for index, tag in enumerate(("axis", "axis2")):
                axis = joint.element.child(tag)
                mimic = (axis and axis.child("mimic")) or (joint.element.child("drake:mimic") if index == 0 else None)
                if mimic is None:
                    continue
                leader = joint.scope + mimic.text("joint")
                if leader not in known:
                    mimic.fail(f"names an unknown joint {mimic.text('joint')!r}{did_you_mean(leader, known)}")
                number = mimic.child_number if mimic.tag == "mimic" else mimic.number
                multiplier, offset = number("multiplier", 1.0), number("offset", 0.0)
                reference = mimic.child_number("reference", 0.0) if mimic.tag == "mimic" else 0.0
                follower = (self.short(joint.name), index)
                leads = (self.short(leader), int(mimic.get("axis") == "axis2"))
                if follower == leads:
                    mimic.fail("names the joint itself")
                terms = {follower: 1.0, leads: -multiplier}
                yield _Coupler(mimic, f"{follower[0]} mimics {leads[0]}", terms, offset - multiplier * reference)
        yield from self._mimics_of_plugins(known)

    def _mimics_of_plugins(self, known: Container[str]) -> Iterator[_Coupler]:
        worlds = self.root.all("world")
        owners = [
            (f"{key}::", owner) for key, model in self.models.items() for owner in (model, *model.all("link", "joint"))
        ]
        for scope, plugin in (
            (scope, one) for scope, owner in [*owners, *(("", w) for w in worlds)] for one in owner.all("plugin")
        ):
            if (mimic := extensions.mimic(plugin)) is None:
                continue
            leads, follower = scope + mimic.leader, scope + mimic.follower
            if leads not in known or follower not in known or leads == follower:
                plugin.note(
                    f"{plugin} makes joint {mimic.follower!r} follow {mimic.leader!r}, which are no two joints: not read"
                )
                continue
            terms = {(self.short(follower), 0): 1.0, (self.short(leads), 0): -mimic.multiplier}
            yield _Coupler(plugin, f"{self.short(follower)} mimics {self.short(leads)}", terms, mimic.offset)

    def _gearboxes(self) -> Iterator[_Coupler]:
        scene, ends = self.scene, self.ends
        hinges = {
            (ends[j.name][0], ends[j.name][1]): (self.short(j.name), _in_world(scene, j, j.element.child("axis")))
            for j in self.moving
            if j.element.get("type") in ("revolute", "continuous")
        }
        for gear in (joint for joint in self.moving if joint.is_gearbox):
            element = gear.element
            body = scene.named(element.needed("gearbox_reference_body"), gear.scope, gear.model)
            about = partial(_in_world, scene, gear)
            terms = gear_terms(element, scene.body(body, element), ends[gear.name], hinges, about)
            yield _Coupler(element, self.short(gear.name), {(name, 0): c for name, c in terms.items()}, 0.0)


def _gravity(world: Element | None) -> tuple[float, float, float] | None:
    if world is None:
        return None
    physics = world.all("physics")  # where versions before 1.6 have it
    gravity = world.child("gravity") or next((g for p in physics if (g := p.child("gravity")) is not None), None)
    if gravity is None:
        return None
    x, y, z = gravity.numbers(None, 3)
    return x, y, z


def _afloat(scene: Scene, links: dict[str, Element], edges: list[tuple[str, ...]]) -> Iterator[str]:
    """A link of each part that no joint leads to from the ground: the model's canonical one, or its first."""
    parts = Connected(("world", *links), edges)
    parts.reach("world", *(key for key in links if key in scene.static))
    canonical = [scene.body(key, model) for key, model in scene.models.items() if scene.frames[key].on]
    for key in (*(key for key in canonical if key in links), *links):
        if key not in parts.reached:
            parts.reach(key)
            yield key


def _direction(scene: Scene, joint: SdfJoint, axis: Element) -> tuple[float, float, float]:
    """Of an axis, in the joint's frame."""

    def turned(xyz: Element) -> Rotation | None:
        name = xyz.get("expressed_in")
        in_model = axis_in_model(axis) or name == "__model__"
        frame = joint.model if in_model else joint.scope + name if name else joint.frame
        if frame == joint.frame:
            return None
        return Rotation(scene.pose(joint.frame, axis).rotation.T @ scene.pose(frame, xyz).rotation)

    return axis_direction(axis, turned)


def _look_for_circles(mimics: list[_Coupler]) -> None:
    def called(name: str, index: int) -> str:
        return name if index == 0 else f"{name} (axis2)"

    follows, elements = {}, {}
    for coupler in mimics:
        (follower, _), (leader, minus_multiplier) = coupler.terms.items()
        follows[called(*follower)] = called(*leader), -minus_multiplier, coupler.offset
        elements[called(*follower)] = coupler.element
    for name, fault in mimic_circles(follows):
        elements[name].note(fault)


def gear_terms(
    element: Element, reference: str, ends: Sequence[str], hinges: Mapping[tuple[str, str], tuple[str, Array]],
    in_world: Callable[[Element], Array],
) -> dict[str, float]:  # fmt: skip
    """Coefficients of joints in theta2 + ratio theta1 = 0, the angles from the reference body to parent and child, about axis and axis2.

    `hinges` are the names and axes in the world of the revolute joints that lead from one body to another.
    """
    ratio = element.needed("gearbox_ratio").number(None)
    terms: dict[str, float] = {}
    for end, tag, factor in zip(ends, ("axis", "axis2"), (ratio, 1.0), strict=True):
        about = element.child(tag) or element.needed("axis")
        sign = 1.0 if (reference, end) in hinges else -1.0
        hinge = hinges.get((reference, end)) or hinges.get((end, reference))
        if hinge is None:
            element.fail(f"couples {end!r} and {reference!r}, which no revolute joint connects")
        name, axis = hinge
        along = float(axis @ in_world(about))
        if abs(along) < 0.999:  # files write 1.57 for a quarter turn
            about.fail(f"is not parallel to that of joint {name!r}, whose angle it couples")
        terms[name] = factor * sign * math.copysign(1.0, along)
    return terms


def _in_world(scene: Scene, joint: SdfJoint, axis: Element | None) -> Array:
    """Unit direction (3,) of an axis in the world."""
    direction = (0.0, 0.0, 1.0) if axis is None else _direction(scene, joint, axis)
    return np.asarray(scene.pose(joint.frame, joint.element).rotation @ joints.unit_axis(direction))


def _planar(element: Element) -> joints.JointType:
    """Drake's own joint, which moves the frame of its child in the plane of that of its parent."""
    if element.text("type") != "planar":
        element.fail(f"has an unknown type {element.text('type')!r}; known is planar")
    damping = element.child("drake:damping")
    return joints.Planar("z", damping=(0.0, 0.0, 0.0) if damping is None else damping.numbers(None, 3))


def _on_plane(parent: Transform, child: Transform) -> list[float]:
    """Coordinates of a planar joint in the pose of the file."""
    X = parent.inverse() @ child
    return [*X.translation[:2].tolist(), math.atan2(X.rotation[1, 0], X.rotation[0, 0])]
