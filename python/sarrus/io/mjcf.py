"""MJCF, MuJoCo's XML, read with the standard library's expat.

What becomes of each part of a file, where it differs from what :mod:`sarrus.io.mujoco` says of compiled models:

=============================  ====================================================================================
`<include>`                    the file's elements in its place; names start from the main file's folder and stay in it, or in `package_dirs`, each file once
`<default>`, `class`,          inherited as MuJoCo does, "main" last
`childclass`
`<compiler>`                   angle, eulerseq, autolimits, inertiafromgeom, inertiagrouprange, boundmass, boundinertia,
                               balanceinertia, settotalmass, meshdir, assetdir
`<inertial>`                   the body's inertia; none: that of its geoms, which for meshes takes trimesh and the files
`<joint>`, `<freejoint>`       joints; `springdamper` as stiffness and damping
`<frame>`                      a pose for what is inside it
`<geom>`                       mass, and visuals: those of primitives and meshes, in the colour of their material; shapes that touch:
                               sphere, capsule, cylinder, box, plane, mesh (at hand, against planes), with friction, as many numbers as condim says, and groups by their
                               masks
`<contact>`                    exclude; pair, with its friction likewise
`<connect>`, `<weld>`          by bodies: at qpos0, or as told by `anchor` and `relpose`; by sites: theirs
`<tendon>`                     fixed ones; of spatial ones those between two sites, as springs, and as distances where an equality holds their length;
                               others guide nothing here, and are left out with a warning
`<actuator>`                   a joint or a fixed tendon that it drives is actuated; of `damping` the linear part acts, and of limits the
                               larger, with a warning
`<key>`                        a configuration: ``robot.configuration("home")``; what a short qpos does not say is as in qpos0; a quaternion of zeros is no rotation, with a warning
mocap bodies, inactive         stay where they are, are left out; both with a warning
equalities
`<replicate>`                  copies, with numbers behind their names; equalities and the like name one of them, and are not copied
`<attach>`, `<composite>`,     refused: they make bodies. MuJoCo compiles them, for :func:`sarrus.io.from_mujoco`
`<flexcomp>`
visual, statistic, sensor,     known, and of no concern to the dynamics
custom, size, ...
anything else                  a warning
=============================  ====================================================================================

A document type declaration is refused, and with it entities: a model file needs none, an attack does.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..building.builder import Builder
from ..errors import ModelError
from ..spatial import Inertia, Rotation, Transform
from .document import Element, at, check_ties, free_name, parse
from .formats import MJCF, WAY_OUT
from .mjcf_document import DEEPEST, Document, include, referred
from .mjcf_geoms import body_inertia, geom_of, masks_of, show_geom, touch_geoms
from .mujoco import HERE, Drives, Hinge, Tree, greatest, joint_type, note_contacts

Sites = dict[str, tuple[str, Transform]]  # name -> body and pose in it
Tendons = dict[str, dict[str, float] | None]  # name -> coefficients by joint, of fixed ones
JOINTS = ("joint", "freejoint")  # what has a name has that of its kind: a geom and a joint may share one
STRING = ("stiffness", "damping")  # of a straight tendon, which is read as a spring
UNGUIDED = "<spatial> tendons guide nothing here, and are left out"
DEFAULT = (0.0, 1.0, 0.0, 0.0, 0.0)  # polycoef of an equality


def read(
    text: str | bytes, *, source: str = "<string>", floating_base: bool | None = None, beside: str | None = None,
    package_dirs: Iterable[str] = (),
) -> Builder:  # fmt: skip
    """Builder of the mechanism that an MJCF document describes, which can be added to. A ModelError tells file, line and element.

    Parameters
    ----------
    text : the document
    source : what errors and warnings call it
    beside : folder of the file, where includes and meshes are; default: there are no includes
    floating_base : of no use here: an MJCF says itself what floats
    package_dirs : folders besides that of the file in which includes and meshes may lie

    Examples
    --------
    >>> from sarrus.io import mjcf
    >>> b = mjcf.read('<mujoco><worldbody><body name="stone"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>')
    >>> b.add_frame("top", "stone", (0, 0, 0.1))
    >>> b.build().frames
    ('ground', 'stone', 'top')
    """
    if floating_base is not None:
        raise ModelError(f"floating_base is for URDF; an MJCF says by <freejoint/> what floats; got {floating_base!r}")
    root = parse(text, source, MJCF.grammar, deepest=DEEPEST)
    if root.tag != "mujoco":
        root.fail("is not the root of an MJCF, <mujoco>")
    package_dirs = tuple(package_dirs)
    include(root, beside, package_dirs)
    # numbers too large are refused where they end
    with at(root), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _Reader(root, beside or "", package_dirs).read()


@dataclass(eq=False)
class _Body:
    """A body, and what is in it and in the frames in it: each with the pose of its frame, and with its classes' attributes."""

    element: Element
    name: str
    parent: str
    place: Transform
    inside: list[tuple[Element, Transform]]


class _Reader(Document):
    """The tree that is made of a document."""

    def bodies(self) -> list[_Body]:
        """All of them, the world first, a body before those on it."""
        world = [replace(self.root, tag="worldbody", attributes={}, children=[])]
        for section in self.root.all("worldbody"):
            section.look_for_unknown()
            world[0].children += section.children
        named = self.named(["body"])
        self.springdampers: dict[str, tuple[float, float, float]] = {}
        self.names = {"world": "ground"}  # of bodies, from those in the file
        pending, bodies = [(world[0], "", HERE, "")], list[_Body]()
        while pending:
            element, parent, place, childclass = pending.pop()
            name = "ground"
            if bodies:
                name = element.get("name") or free_name(f"body{len(bodies)}", named)
                if name == "world":
                    element.fail("has the name of the world")
                if name == "ground":
                    name = free_name("ground_body", named)
                    element.note(f"{element} becomes body {name!r}: 'ground' is the world")
                self.names[element.get("name") or name] = name
            inside, children = [], []
            for child, frame, of_child in self.contents(element, childclass):
                if child.tag == "body":
                    child.look_for_unknown()
                    children.append((child, name, frame @ self.pose(child), child.get("childclass") or of_child))
                elif child.tag in child.known:
                    if not bodies and child.tag in ("joint", "freejoint", "inertial"):
                        child.fail("is of the world, which does not move")
                    child.look_for_unknown()
                    plain = child.tag in ("inertial", "freejoint")
                    inside.append((child if plain else self.classed(child, of_child), frame))
            bodies.append(_Body(element, name, parent, place, inside))
            pending += reversed(children)
        return bodies

    def contents(self, element: Element, childclass: str) -> Iterator[tuple[Element, Transform, str]]:
        """What is in a body, and in frames in it; with the pose of the frame and the class for what has none."""
        pending = [(child, HERE, childclass) for child in reversed(element.children)]
        while pending:
            child, frame, of_child = pending.pop()
            if child.tag in ("composite", "flexcomp", "attach"):
                MJCF.remark(child)
            if child.tag != "frame":
                yield child, frame, of_child
                continue
            child.look_for_unknown()
            inner = frame @ self.pose(child), child.get("childclass") or of_child
            pending += [(grandchild, *inner) for grandchild in reversed(child.children)]

    # --- joints and what drives them ---

    def limit(self, element: Element, limited: str, limits: str) -> tuple[float, float] | None:
        is_limited = element.word(limited, "true false auto", "auto")
        if is_limited == "false" or limits not in element.attributes:
            return None
        low, high = element.numbers(limits, 2)
        if is_limited == "auto" and not self.autolimits:
            element.note(f"{limits} of <{element.tag}> is not read: autolimits is false, and {limited} is not true")
            return None
        if low > high:
            element.fail(f"has the lower end of {limits} above the upper: {low:g} > {high:g}")
        return (low, high) if low < high or is_limited == "true" else None

    def hinge(self, element: Element, frame: Transform, name: str, drives: Drives) -> Hinge:
        MJCF.remark(element)
        if element.tag == "freejoint":
            element = replace(element, attributes={"type": "free"})
        kind = element.word("type", "free ball slide hinge", "hinge")
        angle = self.angle if kind in ("hinge", "ball") else 1.0
        numbers: dict[str, Any] = MJCF.read(element, angle=angle, off=self.off)
        limits = self.limit(element, "limited", "range")
        most = self.limit(element, "actuatorfrclimited", "actuatorfrcrange")
        reference = element.number("ref", 0.0) * angle
        if kind in ("slide", "hinge"):
            self.springrefs[name] = (element.number("springref", 0.0) * angle,)
        time, ratio = element.numbers("springdamper", 2, (0.0, 0.0))
        if time > 0.0 and ratio > 0.0:
            self.springdampers[name] = time, ratio, element.number("springref", 0.0) * angle
        with at(element):
            limit = greatest(most, element.note) if most else math.inf
            numbers |= drives.properties(name, limit, numbers.get("armature", 0.0), numbers.get("damping", 0.0))
            if limits and "limit" not in self.off:
                numbers["limits"] = limits[0] * angle, limits[1] * angle
            axis = frame.rotation @ np.array(element.numbers("axis", 3, (0.0, 0.0, 1.0)))
            joint = joint_type(kind, axis, element.note, **numbers)
        place = frame.apply(element.numbers("pos", 3, (0.0, 0.0, 0.0))).tolist()
        return Hinge(name, joint, place, reference if kind in ("slide", "hinge") else 0.0, name in drives.most)

    def tendons(self, joints: Mapping[str, Element]) -> Tendons:
        """Coefficients by joint of fixed tendons; None of spatial ones."""
        tendons: Tendons = {}
        for element in self.grouped("tendon"):
            name = element.get("name") or f"tendon{len(tendons)}"
            if name in tendons:
                element.fail("has the name of another tendon")
            straight = element.tag == "spatial" and [part.tag for part in element.children] == ["site", "site"]
            unread = {key: x for key, x in element.attributes.items() if not (straight and key in STRING)}
            MJCF.remark(replace(element, attributes=unread))
            for limited, limits in (("limited", "range"), ("actuatorfrclimited", "actuatorfrcrange")):
                if self.limit(element, limited, limits):
                    element.note(f"{limits} of tendons is not read")
            tendons[name] = None
            if element.tag == "fixed":
                length = tendons[name] = {}
                for part in element.all("joint"):
                    joint = referred(part, "joint", joints)
                    length[joint] = length.get(joint, 0.0) + part.number("coef")
            elif straight:
                self.strings[name] = element
            else:
                element.note(UNGUIDED)
        return tendons

    def string(self, name: str, sites: Sites) -> list[tuple[str, tuple[float, ...]]]:
        """The two ends of a straight spatial tendon, bodies and points."""
        ends = [sites[referred(part, "site", sites)] for part in self.strings[name].children]
        return [(body, tuple(place.translation.tolist())) for body, place in ends]

    def springs(self, tree: Tree, sites: Sites, held: Container[str]) -> None:
        """The straight spatial tendons that are springs; those of which an equality holds the length are read there."""
        for name, element in self.strings.items():
            stiffness, damping = (element.several(key, 3, (0.0,)) for key in ("stiffness", "damping"))
            k, c = (0.0 if switch in self.off else x[0] for switch, x in (("spring", stiffness), ("damper", damping)))
            if any((*stiffness[1:], *damping[1:])):
                element.note("nonlinear stiffness and damping of tendons are not read")
            if not (k or c):
                if name not in held:
                    element.note(UNGUIDED)
                continue
            with at(element):
                one, other = self.string(name, sites)
                rest = element.several("springlength", 2, (-1.0,))
                if len(set(rest)) > 1:
                    element.note(
                        "a tendon whose springlength is a range is not read: there is no spring that is slack within one"
                    )
                elif one[0] != other[0]:
                    rest_length = tree.distance(one, other, self.springrefs) if rest[0] < 0.0 else rest[0]
                    tree.builder.add_spring(name, one, other, stiffness=k, rest_length=rest_length, damping=c)

    def drives(self, joints: Mapping[str, Element], tendons: Tendons) -> Drives:
        drives = Drives()
        for element in self.grouped("actuator"):
            if element.tag == "dcmotor" and element.get("input") == "none":
                element.note("a <dcmotor> without an input is no motor: what it adds to its joint is not read")
                continue
            limits = []
            if limit := self.limit(element, "forcelimited", "forcerange"):
                limits.append(greatest(limit, element.note))
            law = [element.get(name) for name in ("gaintype", "biastype", "dyntype")]
            straight = element.tag == "motor" or (element.tag == "general" and set(law) <= {None, "none", "fixed"})
            if straight and (limit := self.limit(element, "ctrllimited", "ctrlrange")):
                gain = element.several("gainprm", 10, (1.0,))[0] if element.tag == "general" else 1.0
                limits.append(abs(gain) * greatest(limit, element.note))
            elif not straight:
                element.note(f"<{element.tag}> drives what it acts on; its control law is not read")
            damping, *higher = element.several("damping", 3, (0.0,))
            if any(higher):
                element.note(f"nonlinear damping of <{element.tag}> is not read")
            motor = element.number("armature", 0.0), damping
            gear, most = element.several("gear", 6, (1.0,))[0], min(limits, default=math.inf)
            kind = next((kind for kind in ("joint", "jointinparent", "tendon") if element.get(kind)), None)
            if kind == "tendon":
                name = referred(element, "tendon", tendons)
                if (length := tendons[name]) is not None:
                    drives.add_tendon(length, gear, most, *motor, element.note)
                    continue
            elif kind:
                name = referred(element, kind, joints)
                scalar = joints[name].tag == "joint" and (joints[name].get("type") or "hinge") in ("slide", "hinge")
                drives.add(name, gear if scalar else 1.0, most if scalar else math.inf, *motor)
                continue
            element.note("an actuator that acts on neither a joint nor a fixed tendon is not read")
        return drives

    # --- all of it ---

    def read(self) -> Builder:
        gravity = (0.0, 0.0, 0.0) if "gravity" in self.off else self.option.numbers("gravity", 3, (0.0, 0.0, -9.81))
        bodies = self.bodies()
        joints = self.named(JOINTS)
        for body in bodies:  # with the attributes of their classes, which tell their types
            joints |= {name: e for e, _ in body.inside if e.tag in JOINTS and (name := e.get("name"))}
        equalities = self.grouped("equality")
        ends = (
            [name for k in "12" if (name := element.get(f"{end}{k}"))]
            for element in equalities
            if element.get("active") != "false"
            for end in ("body", "site")
        )
        check_ties((tuple(pair) for pair in ends if pair), self.root.source)
        self.strings: dict[str, Element] = {}
        self.springrefs: dict[str, tuple[float, ...]] = {}
        tendons = self.tendons(joints)
        drives = self.drives(joints, tendons)
        taken = {*joints, *(element.get("name") or "" for element in equalities)}
        tree = Tree(self.root.get("model") or "mujoco", gravity, taken)
        tree.bodies |= {body.name for body in bodies}
        self.build(tree, bodies, drives)
        tree.set_springs(self.springdampers, self.off)
        sites = self.sites(tree, bodies)
        held = {element.get("tendon1") or "" for element in equalities if element.tag == "tendon"}
        self.springs(tree, sites, held)
        for element in equalities if "equality" not in self.off else ():
            with at(element):
                self.equality(tree, element, sites, tendons)
        tree.set_reference()
        reference = tree.reference()
        for element in self.grouped("keyframe"):
            with at(element):
                qpos = None
                if element.attributes.get("qpos", "").strip():
                    told = element.several("qpos", max(1, len(reference)))
                    qpos = (*told, *reference[len(told) :])
                tree.add_key(element.get("name") or "", qpos, element.note)
        return tree.finish(self.notes)

    def build(self, tree: Tree, bodies: Sequence[_Body], drives: Drives) -> None:
        def inside(body: _Body, tag: str) -> list[tuple[Element, Transform]]:
            return [(element, frame) for element, frame in body.inside if element.tag == tag]

        geoms = {body.name: [geom_of(self, *geom) for geom in inside(body, "geom")] for body in bodies}
        inertias = {b.name: body_inertia(self, b.element, inside(b, "inertial"), geoms[b.name]) for b in bodies[1:]}
        total, target = sum(x.mass for x in inertias.values()), self.compiler.number("settotalmass", -1.0)
        if target > 0.0 and total > 0.0:
            scale = target / total
            for body_name, I in inertias.items():
                inertias[body_name] = Inertia(scale * I.mass, I.com, scale * I.about_com, check=False)
        for body in bodies[1:]:
            element, joints = body.element, [(e, frame) for e, frame in body.inside if e.tag in JOINTS]
            MJCF.remark(element)
            hinges = []
            for joint, frame in joints:
                kind = "free" if joint.tag == "freejoint" else joint.get("type") or "hinge"
                name = joint.get("name")
                name = tree.invent(f"{body.name}_{kind}") if name is None else name
                hinges.append(self.hinge(joint, frame, name, drives))
                if hinges[-1].type.kind == "Free" and (len(joints) > 1 or body.parent != "ground"):
                    joint.fail("is free, and not the only joint of a body of the world")
            with at(element):
                tree.add_body(body.name, body.parent, body.place, inertias[body.name], hinges)
            if hinges and hinges[-1].type.kind == "Free" and "quat" in element.attributes:
                w, x, y, z = element.numbers("quat", 4)
                q0 = np.array(tree.qpos0[hinges[-1].name])
                if q0[:4] @ (x, y, z, w) < 0.0:  # of the two quaternions of a rotation, the one that was written
                    tree.qpos0[hinges[-1].name] = (*(-q0[:4]).tolist(), *q0[4:].tolist())
        if self.flag.get("contact") != "disable":
            masks = [(body, *masks_of(geom)) for body in geoms for geom in geoms[body]]
            moving = {body.name for body in bodies if inside(body, "joint") or inside(body, "freejoint")}
            told = note_contacts(masks, [(b.name, b.parent, b.name in moving) for b in bodies[1:]], self.root.note)
            touch_geoms(self, tree.builder, geoms, self.names, told)
        for body in bodies:
            for geom in geoms[body.name]:
                show_geom(self, tree.builder, body.name, geom)

    def sites(self, tree: Tree, bodies: Sequence[_Body]) -> Sites:
        sites: Sites = {}
        for body in bodies:
            for element, frame in body.inside:
                if element.tag != "site" or not (name := element.get("name")):
                    continue
                if name in sites:
                    element.fail("has the name of another site")
                place = self.between(element)[0] if "fromto" in element.attributes else self.pose(element)
                sites[name] = body.name, frame @ place
                with at(element):
                    tree.add_site(name, *sites[name])
        return sites

    def equality(self, tree: Tree, element: Element, sites: Sites, tendons: Tendons) -> None:
        if not element.truth("active", True):
            element.note(f"{element} is inactive, and left out")
            return
        if element.tag in ("connect", "weld"):
            self.join(tree, element, sites)
            return
        if element.tag not in ("joint", "tendon"):
            element.fail(f"is of a kind that is not read: {WAY_OUT}")
        known = tree.qpos0 if element.tag == "joint" else tendons
        ends = [end for end in (f"{element.tag}1", f"{element.tag}2") if end in element.attributes]
        names = [referred(element, end, known) for end in ends]
        lengths = [{name: 1.0} if element.tag == "joint" else tendons[name] for name in names]
        if not names or f"{element.tag}1" not in element.attributes:
            element.fail(f"has no {element.tag}1")
        if len(set(names)) < len(names):
            element.fail(f"names {names[0]!r} twice")
        if element.tag == "tendon" and len(names) == 1 and names[0] in self.strings:
            one, other = self.string(names[0], sites)
            offset = element.several("polycoef", 5, DEFAULT)[0]
            name = tree.constraint_name(element.get("name"), names[0])
            tree.builder.add_distance(name, one, other, length=tree.distance(one, other) + offset)
            return
        for name, length in zip(names, lengths, strict=True):
            if length is None:
                element.fail(f"is of the spatial tendon {name!r}, which is not read")
            for joint in length:
                if len(tree.qpos0[joint]) > 1:
                    element.fail(f"is of joint {joint!r}, which has several coordinates")
        polynomial = element.several("polycoef", 5, DEFAULT)
        first, second = [*lengths, {}][:2]
        name = tree.constraint_name(element.get("name"), " follows ".join(names))
        tree.couple(name, first or {}, second or {}, (*polynomial, *DEFAULT[len(polynomial) :]))

    def join(self, tree: Tree, element: Element, sites: Sites) -> None:
        rotation = element.tag == "weld" and element.number("torquescale", 1.0) != 0.0
        at_one: Transform | None
        at_other: Transform | None
        if "site1" in element.attributes:
            (one, at_one), (other, at_other) = (sites[referred(element, f"site{k}", sites)] for k in (1, 2))
        else:
            one = self.names[referred(element, "body1", self.names)]
            other = self.names[referred(element, "body2", self.names) if "body2" in element.attributes else "world"]
            anchor = element.numbers("anchor", 3, (0.0, 0.0, 0.0) if element.tag == "weld" else None)
            at_one, at_other = None, Transform(translation=anchor)
            if element.tag == "connect":
                at_one, at_other = at_other, None
            relpose = element.several("relpose", 7, (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
            relpose += (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)[len(relpose) :]
            if element.tag == "weld" and any(relpose[3:]):
                at_one = Transform(Rotation.from_quaternion((*relpose[4:], relpose[3])), relpose[:3])
        name = tree.constraint_name(element.get("name"), f"{one} to {other}")
        tree.join(name, (one, other), at_one, at_other, rotation=rotation)
