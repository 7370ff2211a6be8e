"""Reader of SDF, versions 1.3 to 1.12.

The table lists the elements of a file and their counterparts in the mechanism:

============================  =====================================================================================
`<model>`                     the mechanism: the only non-static model of a world, the model named by the argument `model`, or all models if joints of
                              the world connect them. Links of nested models are called "nested::link"
`<include>`                   a nested or a merged model; its file is searched in the folders of :func:`sarrus.load`
`<pose>`                      with `relative_to` (up to 1.6 `frame`), `degrees`, `rotation_format`, `placement_frame`
`<link>`                      a body. Without `<inertial>` it has SDF's defaults, 1 kg and 1 kg m² about each axis, with a warning;
                              `auto`: the inertia of its collisions (box, capsule, cylinder, ellipsoid, sphere)
`<frame>`                     a frame
`<joint>`                     a joint. Its two frames coincide in the file's poses, in which q = 0. It may connect any two links and close loops.
                              Types: revolute, continuous, prismatic, screw, ball, universal and revolute2 (Universal), fixed. An
                              effort of 0 makes it passive, a negative one is not a limit; ball joints are passive
`<axis>`                      along z by default, in the joint's frame or the frame `expressed_in`; up to 1.6 in the model's frame with
                              `use_parent_model_frame`, up to 1.4 always
`<limit>`, `<dynamics>`       limits, velocity_limit, effort_limit, damping, friction, stiffness and rest
gearbox, `<mimic>`            couplers of two joints, both in the tree; plugins that couple two joints too
`drake:…`                     planar joints, mimic, and :mod:`sarrus.io.extensions`
links without a joint         a Free joint "root_joint" of the canonical link, with the file's pose as home
`<static>`                    its links are fixed to the ground
`<gravity>` of the world      gravity
`<collision>`                 a collision shape: box, capsule, cylinder, plane, sphere, with ODE's mu, the restitution, and torsional
                              friction by its patch_radius; a mesh, if its file exists, against planes
`<visual>`                    a visual for `sarrus.view`, as in :mod:`sarrus.io.urdf`
`<plugin>`                    Gazebo's DetachableJoint between two links of the model is a fixed joint; other plugins raise a warning if they
                              may connect bodies or apply forces
other elements                a warning, unless they do not affect the dynamics
============================  =====================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._arrays import Array
from ..building.builder import Builder
from ..description import joints
from ..errors import ModelError, did_you_mean
from ..spatial import Rotation, Transform
from . import extensions, sdf_document
from .document import Connected, Coupling, Element, Mimic, Names, add_root, at, check_pairs, free_name, mimic_circles
from .sdf_document import Scene, SdfJoint, axis_direction, axis_in_model, inside, joint_type


def read(
    text: str | bytes, *, source: str = "<string>", floating_base: bool | None = None, beside: str = "",
    package_dirs: Iterable[str] = (), model: str | None = None,
) -> Builder:  # fmt: skip
    """Return a builder of the mechanism in an SDF document.

    Raises ModelError with file, line and element.

    Parameters
    ----------
    text : the document
    source : name of the document in errors and warnings
    beside : folder of the file, in which meshes and included models are searched first; empty: no folder
    floating_base : False fixes the canonical link to the ground if it floats in the file
    package_dirs, model : arguments of :func:`sarrus.load`

    Examples
    --------
    >>> from sarrus.io import sdf
    >>> b = sdf.read('<sdf version="1.7"><model name="stone"><link name="stone"><inertial/></link></model></sdf>')
    >>> b.build().joint("root_joint").kind
    'Free'
    """
    if not isinstance(floating_base, bool | np.bool_ | None):
        raise ModelError(f"floating_base: expected True or False; got {floating_base!r}")
    scene = Scene(beside, tuple(package_dirs))
    root = scene.document(text, source)
    top = scene.choose(root, model)
    reader = _Reader(scene, root, top)
    reader.add_roots(floating_base)
    reader.add_joints()
    reader.add_frames()
    reader.add_drake_elements()
    builder = reader.builder
    with at(root):
        builder.set_home(reader.home)
    links = {reader.body[key]: (key, link) for key, link in reader.links.items()}
    sdf_document.add_shapes(scene, builder, links)
    builder.warnings += [note for document in scene.documents for note in document.notes]
    return builder


class _Reader:
    """Reader that adds one model of a document, or all its models, to a Builder."""

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
                self.builder.add_body(self.body[key], sdf_document.inertia_of(scene, key, link))
        self.repeated: set[int] = set()
        self.attached = dict(self._attached())
        scene.joints += self.attached.values()
        fixed_links = {"world", *scene.static}
        self.ends = {joint.name: tuple(scene.body(end, joint.element) for end in joint.ends) for joint in scene.joints}
        check_pairs(self.ends.values(), root.source)
        movable = [joint for joint in scene.joints if not fixed_links.issuperset(self.ends[joint.name])]
        self.moving = list(filter(self._belongs_to_model, movable))
        self.joints = [joint for joint in self.moving if not joint.is_gearbox]
        self.names = Names(self.short(joint.name) for joint in self.joints)
        self.home: dict[str, list[float]] = {}

    def _plugins(self) -> Iterator[tuple[str, Element]]:
        """Yield (scope, plugin) for the plugins of the models, of their links and joints, and of the world."""
        for key, model in self.models.items():
            yield from ((f"{key}::", x) for owner in (model, *model.all("link", "joint")) for x in owner.all("plugin"))
        yield from (("", plugin) for world in self.root.all("world") for plugin in world.all("plugin"))

    def _attached(self) -> Iterator[tuple[int, SdfJoint]]:
        """Yield (id of a plugin, fixed joint) for the joints by which Gazebo attaches two links of the model when it starts."""
        joined = set[frozenset[str]]()
        for scope, plugin in self._plugins():
            parent, model, child = extensions.attached(plugin) or ("", "", "")
            own = scope.removesuffix("::")
            scopes = (
                [scope] if model in ("", "__model__", own.rpartition("::")[2]) else [f"{scope}{model}::", f"{model}::"]
            )
            second = next((f"{x}{child}" for x in scopes if f"{x}{child}" in self.links), "")
            if second and scope + parent in self.links:
                element = replace(plugin, tag="joint", attributes={"type": "fixed"}, children=[])
                ends, name = (scope + parent, second), f"{scope}{parent}_to_{child}"
                if frozenset(ends) in joined:
                    plugin.note(
                        f"plugin {plugin.get('name')!r} connects {parent!r} and {child!r}, as another plugin does: it is read once"
                    )
                    self.repeated.add(id(plugin))
                    continue
                joined.add(frozenset(ends))
                fact = f"plugin {plugin.get('name')!r} is read as a fixed joint"
                plugin.note(f"{fact} between {parent!r} and {child!r}, which Gazebo can detach at run time")
                yield id(plugin), SdfJoint(element, free_name(name, self.scene.frames), second, ends, scope, own)

    def short(self, key: str) -> str:
        """Return a scoped name without the name of the model."""
        return key.removeprefix(f"{self.top}::")

    def place(self, element: Element, key: str) -> tuple[str, Transform]:
        """Return the body of a frame, and the frame's pose in it."""
        link, pose = self.scene.on_body(key, element)
        if link not in self.body:
            element.fail(f"refers to {key!r}, which is not a part of model {self.top!r}")
        return self.body[link], pose

    def _belongs_to_model(self, joint: SdfJoint) -> bool:
        """Return True for a joint of the model, or of the world if it connects links of the model only."""
        if joint.scope:
            return inside(joint.name, self.top)
        ends = self.ends[joint.name]
        read = [end in self.body for end in ends]
        if any(end in self.body for end in ends if end != "world") and not all(read):
            fact = f"connects model {self.top!r} to another model, and is not read"
            joint.element.note(f"{joint.element} {fact}")
        return all(read)

    def add_roots(self, floating_base: bool | None) -> None:
        """Add joints between the ground and static or floating links."""
        scene, links = self.scene, self.links
        for key in (key for key in links if key in scene.static):
            name, pose = self.names.new(f"{self.body[key]}_to_ground"), scene.pose(key, links[key])
            self.builder.add_joint(name, joints.Fixed(), "ground", self.body[key], at_parent=pose)
        for k, key in enumerate(_afloat(scene, links, [self.ends[joint.name] for joint in self.joints])):
            body, pose = self.body[key], scene.pose(key, links[key])
            name = self.names.new(f"root_joint_{body}" if k else "root_joint")
            if k:
                fault = "is connected neither to the ground nor to the first link: it floats freely"
                links[key].note(f"{links[key]} {fault}")
            add_root(self.builder, name, body, pose, k > 0 or floating_base is not False, self.home)

    def add_joints(self) -> None:
        """Add the joints and the couplers; coupled joints stay in the tree."""
        mimics = list(self._mimics())
        _note_circles(mimics)
        couplers = [*mimics, *self._gearboxes()]
        coupled = {name for coupler in couplers for name, _ in coupler.terms}
        for key, model in self.models.items():
            coupled |= {self.short(f"{key}::{name}") for name in extensions.coupled(model)}
        followers = {next(iter(coupler.terms))[0] for coupler in mimics}
        for joint in self.joints:
            with at(joint.element):
                name = self.short(joint.name)
                self._add_joint(joint, name, name in coupled, name in followers)
        for coupler in couplers:
            with at(coupler.element):
                self.builder.add_coupler(self.names.new(coupler.name), coupler.terms, offset=coupler.offset)

    def _add_joint(self, joint: SdfJoint, name: str, keep: bool, follows: bool) -> None:
        element, scene = joint.element, self.scene
        (parent, at_parent), (child, at_child) = (self.place(element, end) for end in joint.ends)
        if element.tag == "drake:joint":
            kind, driven, keep = _planar(element), False, True
            self.home[name] = _on_plane(*(scene.pose(end, element) for end in joint.ends))
        else:
            kind, driven = joint_type(element, partial(_direction, scene, joint))
            # SDF defines the joint's frame in the child only; its pose in the parent is computed from the poses of the links
            at_parent, at_child = (scene.between(end, joint.frame, element) for end in self.ends[joint.name])
        driven = driven and kind.nv > 0 and not follows
        places: dict[str, Any] = {"at_parent": at_parent, "at_child": at_child}
        self.builder.add_joint(name, kind, parent, child, **places, actuated=driven, tree=keep)

    def add_frames(self) -> None:
        """Add the frames."""
        bodies = Names(self.body.values())
        for key, frame in self.scene.frames.items():
            if frame.element.tag == "frame" and inside(key, self.top):
                with at(frame.element):
                    self.builder.add_frame(bodies.new(self.short(key)), *self.place(frame.element, key))

    def add_drake_elements(self) -> None:
        """Add the constraints and springs of :mod:`sarrus.io.extensions`."""
        for key, model in self.models.items():

            def place_in(element: Element, name: str, model: str = key) -> tuple[str, Transform]:
                return self.place(element, name if name == "world" else f"{model}::{name}")

            def joint_in(element: Element, name: str, model: str = key) -> str:
                if f"{model}::{name}" not in self.ends:
                    element.fail(f"names an unknown joint {name!r}{did_you_mean(name, self.names)}")
                return self.short(f"{model}::{name}")

            extensions.add(self.builder, model, place_in, joint_in, self.names)

    # ---- couplers ----------------------------------------------------------------------------------------------------

    def _mimics(self) -> Iterator[Coupling]:
        """Yield the couplers of joints that follow another: q = multiplier (q_leader - reference) + offset."""
        names = {joint.name for joint in self.joints}
        for joint in self.joints:
            for index, tag in enumerate(("axis", "axis2")):
                axis = joint.element.child(tag)
                mimic = (axis and axis.child("mimic")) or (joint.element.child("drake:mimic") if index == 0 else None)
                if mimic is None:
                    continue
                leader = joint.scope + mimic.text("joint")
                if leader not in names:
                    mimic.fail(f"names an unknown joint {mimic.text('joint')!r}{did_you_mean(leader, names)}")
                number = mimic.child_number if mimic.tag == "mimic" else mimic.number
                multiplier, offset = number("multiplier", 1.0), number("offset", 0.0)
                reference = mimic.child_number("reference", 0.0) if mimic.tag == "mimic" else 0.0
                follower = (self.short(joint.name), index)
                leads = (self.short(leader), int(mimic.get("axis") == "axis2"))
                if follower == leads:
                    mimic.fail("names the joint itself")
                terms = {follower: 1.0, leads: -multiplier}
                yield Coupling(mimic, f"{follower[0]} mimics {leads[0]}", terms, offset - multiplier * reference)
        yield from self._mimics_of_plugins(names)

    def _mimics_of_plugins(self, names: Container[str]) -> Iterator[Coupling]:
        for scope, plugin in self._plugins():
            if id(plugin) in {*self.attached, *self.repeated} or (mimic := extensions.mimic(plugin)) is None:
                continue
            leads, follower = scope + mimic.leader, scope + mimic.follower
            if leads not in names or follower not in names or leads == follower:
                fact = f"couples joint {mimic.follower!r} to {mimic.leader!r}, which are not two joints of the model"
                plugin.note(f"{plugin} {fact}: it is not read")
                continue
            terms = {(self.short(follower), 0): 1.0, (self.short(leads), 0): -mimic.multiplier}
            yield Coupling(plugin, f"{self.short(follower)} mimics {self.short(leads)}", terms, mimic.offset)

    def _gearboxes(self) -> Iterator[Coupling]:
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
            terms = sdf_document.gear_terms(element, scene.body(body, element), ends[gear.name], hinges, about)
            yield Coupling(element, self.short(gear.name), {(name, 0): c for name, c in terms.items()})


def _gravity(world: Element | None) -> tuple[float, float, float] | None:
    if world is None:
        return None
    physics = world.all("physics")  # in versions before 1.6, <physics> contains the gravity
    gravity = world.child("gravity") or next((g for p in physics if (g := p.child("gravity")) is not None), None)
    if gravity is None:
        return None
    x, y, z = gravity.numbers(None, 3)
    return x, y, z


def _afloat(scene: Scene, links: dict[str, Element], edges: list[tuple[str, ...]]) -> Iterator[str]:
    """Return one link of each group of connected links that no joint connects to the ground: the model's canonical link, or the group's first link."""
    parts = Connected(("world", *links), edges)
    parts.reach("world", *(key for key in links if key in scene.static))
    canonical = [scene.body(key, model) for key, model in scene.models.items() if scene.frames[key].on]
    return parts.groups((*(key for key in canonical if key in links), *links))


def _direction(scene: Scene, joint: SdfJoint, axis: Element) -> tuple[float, float, float]:
    """Return the direction of an axis in the joint's frame."""

    def turned(xyz: Element) -> Rotation | None:
        name = xyz.get("expressed_in")
        in_model = axis_in_model(axis) or name == "__model__"
        frame = joint.model if in_model else joint.scope + name if name else joint.frame
        if frame == joint.frame:
            return None
        return Rotation(scene.pose(joint.frame, axis).rotation.T @ scene.pose(frame, xyz).rotation)

    return axis_direction(axis, turned)


def _note_circles(mimics: list[Coupling]) -> None:
    def called(name: str, index: int) -> str:
        return name if index == 0 else f"{name} (axis2)"

    follows, elements = [], {}
    for coupler in mimics:
        (follower, _), (leader, minus_multiplier) = coupler.terms.items()
        follows.append(Mimic(called(*follower), called(*leader), -minus_multiplier, coupler.offset))
        elements[called(*follower)] = coupler.element
    for name, fault in mimic_circles(follows):
        elements[name].note(fault)


def _in_world(scene: Scene, joint: SdfJoint, axis: Element | None) -> Array:
    """Return the unit direction (3,) of an axis in the world."""
    direction = (0.0, 0.0, 1.0) if axis is None else _direction(scene, joint, axis)
    return np.asarray(scene.pose(joint.frame, joint.element).rotation @ joints.unit_axis(direction))


def _planar(element: Element) -> joints.JointType:
    """Return Drake's planar joint, which moves the child's frame in the x-y plane of the parent's frame."""
    if element.text("type") != "planar":
        element.fail(f"has an unknown type {element.text('type')!r}; expected planar")
    damping = element.child("drake:damping")
    return joints.Planar("z", damping=(0.0, 0.0, 0.0) if damping is None else damping.numbers(None, 3))


def _on_plane(parent: Transform, child: Transform) -> list[float]:
    """Return the coordinates (x, y, angle) [m, m, rad] of a planar joint in the pose of the file."""
    X = parent.inverse() @ child
    return [*X.translation[:2].tolist(), math.atan2(X.rotation[1, 0], X.rotation[0, 0])]
