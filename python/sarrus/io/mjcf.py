"""Reader of MJCF, MuJoCo's XML.

The table lists the elements of a file and their counterparts in the mechanism. :mod:`sarrus.io.mujoco` lists the elements that are read as in
compiled models:

=============================  ====================================================================================
`<include>`                    the included file's elements. File names are relative to the main file's folder. An included file has to be in this
                               folder or in `package_dirs`, and can be included once
`<default>`, `class`,          inherited as in MuJoCo, "main" last
`childclass`
`<compiler>`                   angle, eulerseq, autolimits, inertiafromgeom, inertiagrouprange, boundmass, boundinertia,
                               balanceinertia, settotalmass, meshdir, assetdir
`<inertial>`                   the body's inertia; without it the inertia of its geoms, which needs trimesh and the files for meshes
`<joint>`, `<freejoint>`       joints; `springdamper` as stiffness and damping
`<frame>`                      a pose for its contents; `scale`, `scaling` and `massscale` for bodies, joints with their actuators, geoms and sites
                               in it, and for keys; an error if tendons, equalities, meshes or forces of free joints would be scaled
`<geom>`                       mass; visuals of primitives and meshes, in the colour of their material; collision shapes:
                               sphere, capsule, cylinder, box, plane, mesh (if its file exists, against planes), with the friction that
                               condim selects, in groups by their masks
`<contact>`                    exclude; pair, with its friction
`<connect>`, `<weld>`          between bodies at qpos0, or by `anchor` and `relpose`; or between sites
`<tendon>`                     fixed tendons; spatial tendons between two sites, as springs, or as distances if an equality fixes their
                               length; a warning for other spatial tendons, which are left out
`<actuator>`                   the joint or fixed tendon that it drives is actuated, with its armature and damping. If the limits of the two
                               directions differ, the larger one is read, with a warning
`<key>`                        a configuration: ``robot.configuration("home")``. If qpos is too short, the missing entries are those of qpos0. A
                               quaternion of zeros is replaced by the identity, with a warning
mocap bodies                   are fixed, with a warning
inactive equalities            are left out, with a warning
`<replicate>`                  copies with numbers after their names; equalities and other references to them are not copied
`<attach>`, `<composite>`,     errors, because they generate bodies; compile the model with MuJoCo for :func:`sarrus.io.from_mujoco`
`<flexcomp>`
visual, statistic, sensor,     ignored, because they do not affect the dynamics
custom, size, ...
other elements                 a warning
=============================  ====================================================================================

A document type declaration is an error, because it allows entities, which model files do not need and attacks use.
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
from .document import Element, at, check_pairs, free_name, parse
from .formats import MJCF, WAY_OUT
from .mjcf_document import (
    DEEPEST,
    Document,
    Scale,
    body_inertia,
    geom_of,
    include,
    masks_of,
    referred,
    show_geom,
    touch_geoms,
)
from .mujoco import HERE, MOTOR, ROTOR, STRING, Drives, Ends, Hinge, Tree, greatest, joint_type, note_contacts, point_of

Sites = dict[str, tuple[str, Transform]]  # name -> body and pose in it
Tendons = dict[str, dict[str, float] | None]  # tendon -> (joint -> coefficient); None for spatial tendons
# tags whose elements share one set of names; elements of other tags, such as geoms, may have the name of a joint
JOINTS = ("joint", "freejoint")
STRAIGHT = ("stiffness", "damping")  # attributes of a straight tendon, which is read as a spring with a damper
WOUND = ("range", *(name for name, *_ in MOTOR.values()))  # attributes of a fixed tendon that is a transmission
UNGUIDED = "<spatial> tendons other than springs between two sites are not read"
DEFAULT = (0.0, 1.0, 0.0, 0.0, 0.0)  # polycoef of an equality


def read(
    text: str | bytes, *, source: str = "<string>", floating_base: bool | None = None, beside: str | None = None,
    package_dirs: Iterable[str] = (),
) -> Builder:  # fmt: skip
    """Return a builder of the mechanism in an MJCF document.

    Raises ModelError with file, line and element.

    Parameters
    ----------
    text : the document
    source : name of the document in errors and warnings
    beside : folder of the file, in which included files and meshes are searched; without it, an <include> raises ModelError
    floating_base : must be None, because an MJCF file defines floating bodies by <freejoint/>
    package_dirs : other folders that may contain includes and meshes

    Examples
    --------
    >>> from sarrus.io import mjcf
    >>> b = mjcf.read('<mujoco><worldbody><body name="stone"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>')
    >>> b.add_frame("top", "stone", (0, 0, 0.1))
    >>> b.build().frames
    ('ground', 'stone', 'top')
    """
    if floating_base is not None:
        fault = f"floating_base does not apply to MJCF; got {floating_base!r}"
        raise ModelError(f"{fault}. Add or remove <freejoint/> in the file")
    root = parse(text, source, MJCF.grammar, deepest=DEEPEST)
    if root.tag != "mujoco":
        root.fail("is not the root of an MJCF document; expected <mujoco>")
    package_dirs = tuple(package_dirs)
    include(root, beside, package_dirs)
    # overflow does not need a warning of NumPy, because the functions that use the number raise an error
    with at(root), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _Reader(root, beside or "", package_dirs).read()


@dataclass(eq=False)
class _Body:
    """Body with its elements, including those of <frame> elements in it. Each element has the attributes of its class, and the pose of its frame."""

    element: Element
    name: str
    parent: str
    place: Transform
    inside: list[tuple[Element, Transform]]


class _Reader(Document):
    """Reader that makes a Tree of a document."""

    def bodies(self) -> list[_Body]:
        """Return all bodies, the world first, parents before their children."""
        world = [replace(self.root, tag="worldbody", attributes={}, children=[])]
        for section in self.root.all("worldbody"):
            section.note_unread()
            world[0].children += section.children
        named = self.named(["body"])
        self.springdampers: dict[str, tuple[float, float, float]] = {}
        self.names = {"world": "ground"}  # name of a body in the file -> its name in the mechanism
        self.scaled: dict[str, Scale] = {}  # name of a body, joint or site -> factors of the <frame> elements around it
        self.scale_of: dict[int, Scale] = {}  # the same for elements of joints, by their identity
        pending, bodies = [(world[0], "", HERE, "", Scale())], list[_Body]()
        while pending:
            element, parent, place, childclass, outer = pending.pop()
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
            for child, frame, inherited, scale in self.contents(element, childclass, outer):
                if scale != Scale() and child.tag in ("body", "joint", "site"):
                    self.scaled[child.get("name") or ""] = scale
                if child.tag == "body":
                    child.note_unread()
                    placed = frame @ self.pose(scale.of(child))
                    children.append((child, name, placed, child.get("childclass") or inherited, scale))
                elif child.tag in child.grammar:
                    if not bodies and child.tag in ("joint", "freejoint", "inertial"):
                        child.fail("is in the world, which does not move")
                    child.note_unread()
                    plain = child.tag in ("inertial", "freejoint")
                    inside.append((scale.of(child if plain else self.classed(child, inherited)), frame))
                    self.scale_of[id(inside[-1][0])] = scale
            bodies.append(_Body(element, name, parent, place, inside))
            pending += reversed(children)
        return bodies

    def contents(
        self, element: Element, childclass: str, outer: Scale
    ) -> Iterator[tuple[Element, Transform, str, Scale]]:
        """Yield (element, pose of its frame, default class, scale) for the contents of a body and of frames in it."""
        pending = [(child, HERE, childclass, outer) for child in reversed(element.children)]
        while pending:
            child, frame, inherited, scale = pending.pop()
            if child.tag in ("composite", "flexcomp", "attach"):
                MJCF.remark(child)
            if child.tag != "frame":
                yield child, frame, inherited, scale
                continue
            child.note_unread()
            inner = frame @ self.pose(scale.of(child)), child.get("childclass") or inherited, scale.within(child)
            pending += [(grandchild, *inner) for grandchild in reversed(child.children)]

    # --- joints and actuators ---

    def check_unscaled(self, element: Element, names: Iterable[str | None]) -> None:
        """Raise ModelError if an element refers to a body, joint or site in a <frame> with a scale."""
        for name in names:
            if name in self.scaled:
                fault = f"refers to {name!r}, which is in a <frame> with a scale"
                element.fail(f"{fault}; expected only actuators of joints and keys to refer to it: {WAY_OUT}")

    def limit(self, element: Element, limited: str, limits: str) -> tuple[float, float] | None:
        """Return the range in attribute `limits`, or None if attribute `limited` disables it."""
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
        """Return the joint of an element."""
        MJCF.remark(element)
        scale = self.scale_of[id(element)]
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
            if scale != Scale():
                self.scaled[name] = scale
                factors = scale.of_slide if kind == "slide" else np.full(5, scale.force_mass * scale.force_length**2)
                drives.sums |= {name: drives.sums[name] * factors} if name in drives.sums else {}
            numbers |= drives.properties(name, limit, numbers)
            if limits and "limit" not in self.off:
                numbers["limits"] = limits[0] * angle, limits[1] * angle
            axis = frame.rotation @ np.array(element.numbers("axis", 3, (0.0, 0.0, 1.0)))
            joint = joint_type(kind, axis, element.note, **numbers)
        place = frame.apply(element.numbers("pos", 3, (0.0, 0.0, 0.0))).tolist()
        return Hinge(name, joint, place, reference if kind in ("slide", "hinge") else 0.0, name in drives.sums)

    def tendons(self, joints: Mapping[str, Element]) -> Tendons:
        """Return name -> coefficients by joint of fixed tendons; None for spatial tendons."""
        tendons: Tendons = {}
        driven = {e.get("tendon") for e in self.grouped("actuator") if any(_terms(e, self.off).values())}
        for element in self.grouped("tendon"):
            name = element.get("name") or f"tendon{len(tendons)}"
            self.check_unscaled(element, (part.get(tag) for part in element.children for tag in ("joint", "site")))
            if name in tendons:
                element.fail("has the same name as another tendon")
            straight = element.tag == "spatial" and [part.tag for part in element.children] == ["site", "site"]
            turns = name in driven and len({part.get("joint") for part in element.all("joint")}) > 1
            if element.tag == "fixed" and (turns or any(_terms(element, self.off).values())):
                self.rotors[name] = element
            known = STRAIGHT if straight else WOUND if name in self.rotors else ()
            unread = {key: x for key, x in element.attributes.items() if key not in known}
            MJCF.remark(replace(element, attributes=unread))
            for limited, limits in (("limited", "range"), ("actuatorfrclimited", "actuatorfrcrange")):
                if limits not in known and self.limit(element, limited, limits):
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

    def transmissions(self, tree: Tree, tendons: Tendons, drives: Drives) -> None:
        """Add the fixed tendons with armature, springs, damping or friction, which are transmissions."""
        for name, element in self.rotors.items():
            length, reference = tendons[name] or {}, tree.qpos0 | self.springrefs
            rest = element.several("springlength", 2, (-1.0,))
            if set(rest) == {-1.0}:  # the value of MuJoCo's default
                rest = (sum(c * reference[joint][0] for joint, c in length.items()),)
            limits = self.limit(element, "limited", "range")
            with at(element):
                drive = drives.sums.get(("tendon", name))
                tree.transmit(name, length, drive, rest, limits, _terms(element, self.off), self.off, element.note)

    def string(self, name: str, sites: Sites) -> Ends:
        """Return (body, point) of the two ends of a straight spatial tendon."""
        first, second = (sites[referred(part, "site", sites)] for part in self.strings[name].children)
        return point_of(first), point_of(second)

    def springs(self, tree: Tree, sites: Sites, constrained: Container[str]) -> None:
        """Add the straight spatial tendons that are springs; `constrained` has the tendons that an equality uses."""
        for name, element in self.strings.items():
            terms = _terms(element, self.off)
            if not any(terms[field] for field in STRING):
                if name not in constrained:
                    element.note(UNGUIDED)
                continue
            with at(element):
                rest = element.several("springlength", 2, (-1.0,))
                tree.add_spring(name, self.string(name, sites), terms, rest, element.note, self.springrefs)

    def drives(self, joints: Mapping[str, Element], tendons: Tendons) -> Drives:
        """Return the joints that actuators drive, with their limits, armature and damping."""
        drives = Drives()
        for element in self.grouped("actuator"):
            if element.tag == "dcmotor" and element.get("input") == "none":
                element.note("a <dcmotor> without an input is not a motor: its effect on the joint is not read")
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
                element.note(f"<{element.tag}> actuates its joint; its control law is not read")
            terms = _terms(element, self.off)
            rotor = [terms[name] for name in ROTOR]
            gear, most = element.several("gear", 6, (1.0,))[0], min(limits, default=math.inf)
            kind = next((kind for kind in ("joint", "jointinparent", "tendon") if element.get(kind)), None)
            if kind == "tendon":
                name = referred(element, "tendon", tendons)
                if (length := tendons[name]) is not None:
                    motor = ("tendon", name) if name in self.rotors else None
                    drives.add_tendon(length, gear, most, rotor, element.note, motor)
                    continue
            elif kind:
                name = referred(element, kind, joints)
                scalar = joints[name].tag == "joint" and (joints[name].get("type") or "hinge") in ("slide", "hinge")
                drives.add(name, gear if scalar else 1.0, most if scalar else math.inf, rotor)
                continue
            element.note("an actuator that acts on neither a joint nor a fixed tendon is not read")
        return drives

    # --- the document ---

    def read(self) -> Builder:
        """Return the builder of the document."""
        gravity = (0.0, 0.0, 0.0) if "gravity" in self.off else self.option.numbers("gravity", 3, (0.0, 0.0, -9.81))
        bodies = self.bodies()
        joints = self.named(JOINTS)
        for body in bodies:  # add the attributes of the joints' classes, which may include the type
            joints |= {name: e for e, _ in body.inside if e.tag in JOINTS and (name := e.get("name"))}
        equalities = self.grouped("equality")
        ends = (
            [name for k in "12" if (name := element.get(f"{end}{k}"))]
            for element in equalities
            if element.get("active") != "false"
            for end in ("body", "site")
        )
        check_pairs((tuple(pair) for pair in ends if pair), self.root.source)
        self.strings: dict[str, Element] = {}
        self.rotors: dict[str, Element] = {}  # fixed tendons with passive terms
        self.springrefs: dict[str, tuple[float, ...]] = {}
        tendons = self.tendons(joints)
        drives = self.drives(joints, tendons)
        names = {*joints, *(element.get("name") or "" for element in equalities)}
        tree = Tree(self.root.get("model") or "mujoco", gravity, names)
        tree.bodies |= {body.name for body in bodies}
        self.build(tree, bodies, drives)
        tree.set_springs(self.springdampers, self.off)
        sites = self.sites(tree, bodies)
        constrained = {element.get("tendon1") or "" for element in equalities if element.tag == "tendon"}
        self.springs(tree, sites, constrained)
        for element in equalities if "equality" not in self.off else ():
            with at(element):
                self.equality(tree, element, sites, tendons)
        self.transmissions(tree, tendons, drives)
        tree.set_reference()
        reference, lengths = tree.reference(), list[float]()
        for joint, q in tree.qpos0.items():
            length = self.scaled.get(joint, Scale()).length
            lengths += (
                [length] * 3 + [1.0] * 4
                if len(q) == 7
                else [length if tree.builder._joints[joint].kind == "Prismatic" else 1.0] * len(q)
            )
        for element in self.grouped("keyframe"):
            with at(element):
                qpos = None
                if element.attributes.get("qpos", "").strip():
                    numbers = element.several("qpos", max(1, len(reference)))
                    scaled = (x * length for x, length in zip(numbers, lengths, strict=False))
                    qpos = (*scaled, *reference[len(numbers) :])
                tree.add_key(element.get("name") or "", qpos, element.note)
        return tree.finish(self.notes)

    def build(self, tree: Tree, bodies: Sequence[_Body], drives: Drives) -> None:
        """Add bodies, joints, collision shapes and visuals to the tree."""

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
                    joint.fail("is free; expected it to be the only joint of a body in the world")
            with at(element):
                tree.add_body(body.name, body.parent, body.place, inertias[body.name], hinges)
            if hinges and hinges[-1].type.kind == "Free" and "quat" in element.attributes:
                w, x, y, z = element.numbers("quat", 4)
                q0 = np.array(tree.qpos0[hinges[-1].name])
                if q0[:4] @ (x, y, z, w) < 0.0:  # q and -q represent the same rotation: keep the sign of the file
                    tree.qpos0[hinges[-1].name] = (*(-q0[:4]).tolist(), *q0[4:].tolist())
        if self.flag.get("contact") != "disable":
            masks = [(body, *masks_of(geom)) for body in geoms for geom in geoms[body]]
            moving = {body.name for body in bodies if inside(body, "joint") or inside(body, "freejoint")}
            warn = note_contacts(masks, [(b.name, b.parent, b.name in moving) for b in bodies[1:]], self.root.note)
            touch_geoms(self, tree.builder, geoms, self.names, warn)
        for body in bodies:
            for geom in geoms[body.name]:
                show_geom(self, tree.builder, body.name, geom)

    def sites(self, tree: Tree, bodies: Sequence[_Body]) -> Sites:
        """Add the named sites to the tree, and return them."""
        sites: Sites = {}
        for body in bodies:
            for element, frame in body.inside:
                if element.tag != "site" or not (name := element.get("name")):
                    continue
                if name in sites:
                    element.fail("has the same name as another site")
                place = self.between(element)[0] if "fromto" in element.attributes else self.pose(element)
                sites[name] = body.name, frame @ place
                with at(element):
                    tree.add_site(name, *sites[name])
        return sites

    def equality(self, tree: Tree, element: Element, sites: Sites, tendons: Tendons) -> None:
        """Add an equality to the tree."""
        if not element.truth("active", True):
            element.note(f"{element} is inactive, and left out")
            return
        if element.tag in ("connect", "weld"):
            self.join(tree, element, sites)
            return
        if element.tag not in ("joint", "tendon"):
            element.fail(f"is an equality that is not read: {WAY_OUT}")
        candidates = tree.qpos0 if element.tag == "joint" else tendons
        ends = [end for end in (f"{element.tag}1", f"{element.tag}2") if end in element.attributes]
        names = [referred(element, end, candidates) for end in ends]
        lengths = [{name: 1.0} if element.tag == "joint" else tendons[name] for name in names]
        if not names or f"{element.tag}1" not in element.attributes:
            element.fail(f"has no {element.tag}1")
        if len(set(names)) < len(names):
            element.fail(f"names {names[0]!r} twice")
        if element.tag == "tendon" and len(names) == 1 and names[0] in self.strings:
            points = self.string(names[0], sites)
            offset = element.several("polycoef", 5, DEFAULT)[0]
            name = tree.constraint_name(element.get("name"), names[0])
            tree.builder.add_distance(name, *points, length=tree.distance(*points) + offset)
            return
        parts: dict[str, dict[str, float]] = {}
        for name, length in zip(names, lengths, strict=True):
            if length is None:
                element.fail(f"uses the spatial tendon {name!r}, which is not read")
            parts[name] = length
            for joint in length:
                if tree.builder._joints[joint].kind == "Prismatic":
                    self.check_unscaled(element, [joint])
                if len(tree.qpos0[joint]) > 1:
                    element.fail(f"uses joint {joint!r}, which has several coordinates; expected one")
        polynomial = element.several("polycoef", 5, DEFAULT)
        tree.couple(element.get("name"), parts, (*polynomial, *DEFAULT[len(polynomial) :]))

    def join(self, tree: Tree, element: Element, sites: Sites) -> None:
        """Add a <connect> or <weld> to the tree."""
        rotation = element.tag == "weld" and element.number("torquescale", 1.0) != 0.0
        in_body1: Transform | None
        in_body2: Transform | None
        if "site1" in element.attributes:
            (body1, in_body1), (body2, in_body2) = (sites[referred(element, f"site{k}", sites)] for k in (1, 2))
        else:
            self.check_unscaled(element, (element.get("body1"), element.get("body2")))
            body1 = self.names[referred(element, "body1", self.names)]
            body2 = self.names[referred(element, "body2", self.names) if "body2" in element.attributes else "world"]
            anchor = element.numbers("anchor", 3, (0.0, 0.0, 0.0) if element.tag == "weld" else None)
            in_body1, in_body2 = None, Transform(translation=anchor)
            if element.tag == "connect":
                in_body1, in_body2 = in_body2, None
            relpose = element.several("relpose", 7, (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
            relpose += (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)[len(relpose) :]
            if element.tag == "weld" and any(relpose[3:]):
                in_body1 = Transform(Rotation.from_quaternion((*relpose[4:], relpose[3])), relpose[:3])
        name = tree.constraint_name(element.get("name"), f"{body1} to {body2}")
        tree.join(name, (body1, body2), in_body1, in_body2, rotation=rotation)


def _terms(element: Element, off: Container[str]) -> dict[str, float]:
    """Return field of a joint -> passive term of a tendon or an actuator."""
    terms = {}
    for field, (name, place, flag) in MOTOR.items():
        numbers = element.several(name, 3, (0.0,)) if flag not in off else ()
        terms[field] = numbers[place] if place < len(numbers) else 0.0
    return terms
