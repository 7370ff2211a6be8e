"""Pinocchio's models and rigid constraints, both ways.

========================  ==================================================  ========================================================
Pinocchio's               here                                                and back
========================  ==================================================  ========================================================
joints                    as :mod:`sarrus.interop` says; a joint that is      axes in their order: a joint of its own where it has one,
                          several has bodies without mass between them        else a composite
mimic                     a joint, and a coupler                              a linear coupler of two hinges or slides
inertias                  one body a joint: what is welded together is one,   those of welded bodies add up
                          and to the universe, the ground
`armature`                armature                                            the same
`damping`, `friction`     damping, friction: they act here, and in none of    the same, with a warning
                          Pinocchio's algorithms
limits                    of positions, velocities and efforts                the same
frames                    the first BODY frame of a joint is its body, the    bodies are BODY frames, joints JOINT and FIXED_JOINT frames,
                          others are frames, but JOINT ones                   frames OP_FRAMEs
gravity                   gravity                                             the same
`referenceConfigurations` configurations                                      configurations, and home
constraints: 6D, 3D       joints that close loops: Fixed, Spherical. They     Fixed, Spherical; Revolute as two points of its axis, 1 m
                          hold exactly: Baumgarte's terms are not read        apart
========================  ==================================================  ========================================================

What Pinocchio has not (springs, rods, rolling, prescribed motions, other joints that close loops) is an error on the way there; motors and
looks are warnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import interop
from .._files import needed
from ..building.builder import Builder
from ..description import CouplerSpec, JointSpec
from ..description.joints import Fixed, JointType, Spherical, axis_frame
from ..errors import ModelError, warn_of_model
from ..mechanism import Mechanism, checked_mechanism
from ..spatial import Inertia, Transform
from .document import Names, Notes, noted_inertia
from .lowering import closes, has_bounds, held_points
from .mujoco import Note
from .outline import Axis, Link, Losses, listed, tree_links

if TYPE_CHECKING:
    import pinocchio

NO_LIMIT = 1e300  # from here on: Pinocchio has the largest double for none
LARGEST = np.finfo(float).max


def from_pinocchio(model: pinocchio.Model, constraints: Iterable[Any] = ()) -> Mechanism:
    """The mechanism that a model of Pinocchio's and rigid constraints are. What becomes of each part: :mod:`sarrus.io.pinocchio`.

    Parameters
    ----------
    model : a ``pinocchio.Model``, or whatever has its attributes; Pinocchio is not imported
    constraints : ``pinocchio.RigidConstraintModel`` of 6D and 3D contacts, point and frame anchors: they close loops

    Returns
    -------
    Mechanism; what is not used is listed in `robot.warnings`. How its q and v are Pinocchio's: :func:`sarrus.interop.from_pinocchio_state`

    Raises
    ------
    ModelError
        A joint or a constraint that has no counterpart here, such as an ellipsoid's or a contact's; the message names it.

    Examples
    --------
    >>> model, constraints = sarrus.io.to_pinocchio(sarrus.mechanisms.four_bar())  # doctest: +SKIP
    >>> robot = sarrus.io.from_pinocchio(model, constraints)  # doctest: +SKIP
    """
    return read(model, constraints).build()


def read(model: Any, constraints: Iterable[Any] = ()) -> Builder:
    """Builder of the mechanism, as :func:`sarrus.io.from_pinocchio`."""
    interop.checked_model(model)
    notes = Notes()

    def note(message: str) -> None:
        notes.add("Model", message)

    return _Reader(model, note).read(constraints, notes)


class _Reader:
    """A model of Pinocchio's, of which one part after the other is added to a Builder."""

    def __init__(self, model: Any, note: Note) -> None:
        self.model, self.note, self.names = model, note, list(model.names)
        self.builder = Builder(model.name or "pinocchio", np.array(model.gravity.linear))
        if np.any(model.gravity.angular):
            note("the angular part of gravity is not read")
        self.frames = list(model.frames)[1:]
        self.frame_of: dict[int, Any] = {}  # joint -> the frame of its body
        for frame in self.frames:
            if _kind_of(frame) == "BODY" and frame.parentJoint:
                self.frame_of.setdefault(int(frame.parentJoint), frame)
        self.bodies, self.ties = Names({"ground"}), Names(self.names)
        self.carried = [("ground", Transform())]  # of joints, their bodies, and where their frames are in these
        self.leader_of = interop.mimics(model)

    def read(self, constraints: Iterable[Any], notes: Notes) -> Builder:
        for i in range(1, len(self.names)):
            self._add_body_name(i)
        numbers = _Numbers(self.model, self.note)
        for i in range(1, len(self.names)):
            self._add_joint(i, numbers)
        for i, leader in self.leader_of.items():
            self._add_mimic(i, self.names[leader])
        for frame in self.frames:
            if _kind_of(frame) != "JOINT" and frame is not self.frame_of.get(int(frame.parentJoint)):
                self._add_frame(frame)
        for constraint in constraints:
            _close(self.builder, constraint, self.carried, self.ties, self.note)
        self._add_configurations()
        self.builder.warnings += notes
        return self.builder

    def _add_body_name(self, i: int) -> None:
        frame = self.frame_of.get(i)
        name = self.names[i] if frame is None else frame.name
        body = self.bodies.new(name)
        if frame is not None and body != name:
            self.note(f"body '{name}' becomes '{body}'")
        self.carried.append((body, Transform() if frame is None else _transform(frame.placement).inverse()))

    def _add_joint(self, i: int, numbers: _Numbers) -> None:
        """A joint, or one after the other of which it consists, with bodies without mass between."""
        model, name = self.model, self.names[i]
        parent, place = self.carried[model.parents[i]]
        place = place @ _transform(model.jointPlacements[i])
        parts = interop.parts_of(model.joints[i], model.nq, name)
        iq, iv = model.joints[i].idx_q, model.joints[i].idx_v
        for part_name, part in zip(interop.part_names(name, parts), parts, strict=True):
            last = part is parts[-1]
            body, at_child = self.carried[i] if last else (self.bodies.new(part_name), Transform())
            for between in part.places:
                place = place @ _transform(between)
            joint = part.type if i in self.leader_of else numbers.of_part(part_name, part, iq, iv)
            inertia = _inertia(name, model.inertias[i], at_child, self.note) if last else None
            self.builder.add_body(body, inertia)
            self.builder.add_joint(part_name, joint, parent, body, at_parent=place, at_child=at_child, tree=True)
            iq, iv, parent, place = iq + part.nq, iv + part.type.nv, body, Transform()
            self.ties.add(part_name)

    def _add_mimic(self, i: int, leader: str) -> None:
        joint, name = self.model.joints[i], self.names[i]
        mimic = joint.extract() if hasattr(joint, "extract") else joint
        terms = {name: 1.0, leader: -mimic.scaling}
        self.builder.add_coupler(self.ties.new(f"{name} follows {leader}"), terms, offset=mimic.offset)

    def _add_frame(self, frame: Any) -> None:
        if (name := self.bodies.new(frame.name)) != frame.name:
            self.note(f"{_kind_of(frame)} frame '{frame.name}' becomes '{name}': its name is taken")
        body, place = self.carried[frame.parentJoint]
        self.builder.add_frame(name, body, place @ _transform(frame.placement))

    def _add_configurations(self) -> None:
        configurations = {entry.key(): entry.data() for entry in getattr(self.model, "referenceConfigurations", ())}
        if not configurations:
            return
        robot = Mechanism(self.builder._described())
        for name, q in configurations.items():
            here = interop.from_pinocchio_state(robot, self.model, q)
            known = {joint: here[robot.joint(joint).q_slice] for joint in robot.joints if robot.joint(joint).nq}
            self.builder.set_configuration(name, known)
            if name == "home":
                self.builder.set_home(known)


class _Numbers:
    """What a model says of the velocities and coordinates of its joints."""

    def __init__(self, model: Any, note: Note) -> None:
        def of(name: str, otherwise: str = "", default: float = 0.0) -> Any:
            values = getattr(model, name, None)
            values = getattr(model, otherwise, None) if values is None and otherwise else values
            return np.full(model.nv, default) if values is None else np.array(values, float).ravel()

        self.passive = {name: of(name) for name in ("armature", "damping", "friction")}
        self.bounds = {}
        for name, upper, lower in (
            ("effort_limit", of("upperEffortLimit", "effortLimit"), of("lowerEffortLimit", default=np.nan)),
            ("velocity_limit", of("upperVelocityLimit", "velocityLimit"), of("lowerVelocityLimit", default=np.nan)),
        ):
            # of velocities, Pinocchio 4.1 has the lower ones without their sign
            lower = np.abs(np.where(np.isnan(lower), upper, lower))
            if not np.array_equal(lower, upper):
                note(f"{name.replace('_', ' ')}s differ in the two directions; the larger is taken")
            self.bounds[name] = _infinite(np.maximum(upper, lower))
        limits = model.lowerPositionLimit, model.upperPositionLimit
        self.lower, self.upper = (_infinite(np.array(x, float)) for x in limits)
        if np.any(of("lowerDryFrictionLimit") + self.passive["friction"]) and np.any(of("lowerDryFrictionLimit")):
            note("friction differs in the two directions; the upper one is taken")
        if self.passive["damping"].any() or self.passive["friction"].any():
            note("damping and friction act here, and in none of Pinocchio's algorithms")
        rotors = of("rotorInertia") * of("rotorGearRatio") ** 2
        if np.any((rotors != 0.0) & ~np.isclose(rotors, self.passive["armature"], rtol=1e-6, atol=0.0)):
            note("rotorInertia and rotorGearRatio are not read; armature is")
        if np.any(getattr(model, "positionLimitMargin", 0.0)):
            note("positionLimitMargin is not read")

    def of_part(self, name: str, part: interop.Part, iq: int, iv: int) -> JointType:
        """The joint with its numbers; `part` begins at these indices."""
        free, n = part.type.kind == "Free", part.type.nv
        order = interop.FREE_V if free else list(range(n))
        properties: dict[str, Any] = {key: x[iv : iv + n][order] for key, x in self.passive.items()}
        for key, x in self.bounds.items():
            if np.isfinite(x[iv : iv + n]).any():
                properties[key] = x[iv : iv + n][order]
        low, high = self.lower[iq : iq + part.nq], self.upper[iq : iq + part.nq]
        if free:
            low, high = low[interop.FREE_Q], high[interop.FREE_Q]
        if part.type.quaternion or part.nq > part.type.nq:  # four numbers, or cosine and sine, have none here
            k = slice(0, 4) if part.type.quaternion else slice(part.type.nq - 1, None)
            low[k], high[k] = -np.inf, np.inf
            low, high = low[: part.type.nq], high[: part.type.nq]
        if np.isfinite([low, high]).any():
            properties["limits"] = low, high
        try:
            return replace(part.type, **properties)
        except ModelError as error:
            raise ModelError(f"joint '{name}': {error}") from None


def _infinite(x: Any) -> Any:
    x = x.copy()
    x[np.abs(x) >= NO_LIMIT] *= np.inf
    return x


def _kind_of(frame: Any) -> str:
    return str(frame.type).rpartition(".")[2]


def _transform(place: Any) -> Transform:
    return Transform(np.array(place.rotation), np.array(place.translation))


def _inertia(name: str, inertia: Any, joint: Transform, note: Note) -> Inertia:
    """Of a body in which its joint's frame is there; kept as it stands, with a note where no body can have it."""
    try:
        return noted_inertia(inertia.mass, np.array(inertia.lever), np.array(inertia.inertia), note).transformed(joint)
    except ModelError as error:
        raise ModelError(f"inertia of joint '{name}': {error}") from None


def _close(
    builder: Builder, constraint: Any, carried: list[tuple[str, Transform]], ties: Names,
    note: Note,
) -> None:  # fmt: skip
    """A joint that closes a loop where two frames, or their origins, coincide."""
    constraint = constraint.extract() if hasattr(constraint, "extract") else constraint
    kinds = {"CONTACT_6D": Fixed, "CONTACT_3D": Spherical}
    kinds |= {"FrameAnchorConstraintModel": Fixed, "PointAnchorConstraintModel": Spherical}
    kind = str(getattr(constraint, "type", type(constraint).__name__)).rpartition(".")[2]
    if kind not in kinds:
        raise ModelError(
            f"constraint {constraint.name!r} is a {kind}, which has no counterpart here: 6D and 3D contacts, frame and point anchors have"
            if hasattr(constraint, "name")
            else f"a constraint is a pinocchio.RigidConstraintModel; got {constraint!r}"
        )
    for word in ("contact", "constraint"):
        for what in ("placement", "velocity", "acceleration", "offset"):
            desired = getattr(constraint, f"desired_{word}_{what}", None)
            placed = what == "placement"
            vector = getattr(desired, "homogeneous", None) if placed else getattr(desired, "vector", desired)
            if vector is not None and np.any(np.asarray(vector) - (np.eye(4) if what == "placement" else 0.0)):
                note(f"desired_{word}_{what} of constraints is not read: their frames coincide")
    if hasattr(constraint, "retrieveCompliance") and np.any(constraint.retrieveCompliance()):
        note("compliance of constraints is not read: they hold exactly")
    ends = []
    for k in (1, 2):
        body, place = carried[getattr(constraint, f"joint{k}_id")]
        ends.append((body, place @ _transform(getattr(constraint, f"joint{k}_placement"))))
    (one, at_one), (other, at_other) = ends
    name = ties.new(constraint.name or f"{one} to {other}")
    builder.add_joint(name, kinds[kind](), one, other, at_parent=at_one, at_child=at_other, loop=True)


# ---- to Pinocchio --------------------------------------------------------------------------------------------------------------------


def to_pinocchio(robot: Mechanism, *, lossy: bool = False) -> tuple[Any, Any]:
    """The mechanism in Pinocchio: a model, and the rigid constraints that close its loops. Needs Pinocchio: ``pip install pin``.

    Parameters
    ----------
    lossy : whether what Pinocchio cannot say, and what changes the motion, may be left out, with a warning

    Returns
    -------
    (pinocchio.Model, StdVec_RigidConstraintModel); what became of each part: :mod:`sarrus.io.pinocchio`. How its q and v are the
    mechanism's: :func:`sarrus.interop.to_pinocchio_state`

    Raises
    ------
    ModelError
        Pinocchio has no word for something that changes the motion: springs, rods, rolling, couplers of more than two coordinates, other
        joints that close loops than Fixed, Spherical and Revolute; the message lists it all. What does not change it, motors and
        visuals, is a :class:`~sarrus.ModelWarning`.
    ModuleNotFoundError
        Pinocchio is not installed.

    Examples
    --------
    >>> model, constraints = sarrus.io.to_pinocchio(sarrus.mechanisms.double_pendulum())  # doctest: +SKIP
    """
    pin = needed("pinocchio", "to_pinocchio() needs Pinocchio", "pin")
    losses = Losses("Pinocchio", "the model", "with lossy=True they are left out")
    d, links = checked_mechanism(robot).description, tree_links(robot)
    model = pin.Model()
    model.name, model.gravity.linear = d.name, np.array(d.gravity)
    inertias = {body.name: body.inertia for body in d.bodies}
    carried = {"ground": (0, Transform(), 0)}  # the joint that a body hangs on, its place there, its frame
    outward = {link.spec.name: link for link in _depth_first(links)}
    follows = _followed(robot, outward, losses)
    for name, link in outward.items():
        joint, place, frame = carried[link.near]
        if link.joint.nv == 0:
            place = place @ link.place
            frame = model.addFrame(pin.Frame(name, joint, frame, _se3(pin, place), pin.FIXED_JOINT))
        else:
            start, form, end = _form(pin, link)
            if name in follows:
                leader, scaling, offset = follows[name]
                first = model.joints[model.getJointId(leader)]
                form.setIndexes(first.id, first.idx_q, first.idx_v, first.idx_v)
                form = pin.JointModelMimic(pin.JointModel(form), scaling, offset)
            joint, place = model.addJoint(joint, form, _se3(pin, place @ start), name), end
            _numbers(model, model.joints[joint], link, follows, losses)
            frame = model.addJointFrame(joint, frame)
        inertia, I = pin.Inertia.Zero(), inertias[link.far]
        inertia.mass, inertia.lever = I.mass, np.array(I.com)
        inertia.inertia = np.array(I.about_com)  # which no body need have
        frame = model.addFrame(pin.Frame(link.far, joint, frame, _se3(pin, place), pin.BODY, inertia))
        carried[link.far] = joint, place, frame
    for spec in d.frames:
        joint, place, frame = carried[spec.body]
        model.addFrame(pin.Frame(spec.name, joint, frame, _se3(pin, place @ spec.placement), pin.OP_FRAME))
    constraints = pin.StdVec_RigidConstraintModel()
    for tie in (robot.constraint(name).spec for name in robot.constraints):
        if isinstance(tie, JointSpec):
            constraints.extend(list(_closing(pin, model, tie, carried, losses)))
    losses.motion += [f"spring '{spring.name}'" for spring in d.springs]
    if d.visuals:
        losses.minor.append("visuals")
    if robot.actuated:
        losses.minor.append(f"motors of joints {listed(robot.actuated)}")
    losses.settle(d.name, lossy)
    if model.damping.any() or model.friction.any():
        warn_of_model(f"{d.name}: damping and friction are in the model, and in none of Pinocchio's algorithms")
    named = ({"home": d.home} if d.home else {}) | dict(d.configurations)
    for name, coordinates in named.items():
        model.referenceConfigurations[name] = interop.to_pinocchio_state(robot, model, robot._at(coordinates))
    return model, constraints


def _depth_first(links: dict[str, Link]) -> Iterator[Link]:
    """From the ground outward: Pinocchio's algorithms want the joints of a branch side by side."""
    below: dict[str, list[Link]] = {}
    for link in links.values():
        below.setdefault(link.near, []).append(link)
    pending = below.get("ground", [])[::-1]
    while pending:
        link = pending.pop()
        yield link
        pending += below.get(link.far, [])[::-1]


def _form(pin: Any, link: Link) -> tuple[Transform, Any, Transform]:
    """Pinocchio's joint, where it begins on the nearer body's frame, and where the farther body's frame is on it."""
    joint, start, end = link.joint, link.start, link.end
    if link.backward and joint.kind in ("Spherical", "Free", "Planar"):
        fault = f"joint '{link.spec.name}' ({joint.kind}) is passed from its child to its parent"
        raise ModelError(f"{fault}, and Pinocchio would have the coordinates of its inverse: exchange parent and child")
    if joint.kind == "Spherical":
        return start, pin.JointModelSpherical(), end
    if joint.kind == "Free":
        return start, pin.JointModelFreeFlyer(), end
    if joint.kind == "Planar":
        E = Transform(axis_frame(vars(joint)["normal"]))
        return start @ E, pin.JointModelPlanar(), E.inverse() @ end
    if joint.kind == "Helical":
        axis, pitch = np.array(link.axes[0].direction), vars(joint)["pitch"]
        return start, pin.JointModelHelicalUnaligned(axis, pitch), end
    points = [Transform(translation=axis.point) for axis in link.axes]
    forms = [_one_axis(pin, axis) for axis in link.axes]
    places = [start @ points[0], *(a.inverse() @ b for a, b in pairwise(points))]
    end = points[-1].inverse() @ end
    if len(forms) == 1:
        return places[0], forms[0], end
    along = [np.array(axis.direction) for axis in link.axes]
    if joint.kind == "Universal" and abs(along[0] @ along[1]) < 1e-12:
        return places[0], pin.JointModelUniversal(*along), end
    if not any(axis.turns for axis in link.axes) and np.array_equal(along, np.eye(3)):
        return places[0], pin.JointModelTranslation(), end
    composite = pin.JointModelComposite()
    for form, place in zip(forms, [Transform(), *places[1:]], strict=True):
        composite.addJoint(form, _se3(pin, place))
    return places[0], composite, end


def _one_axis(pin: Any, axis: Axis) -> Any:
    along = np.array(axis.direction)
    for letter, unit in zip("XYZ", np.eye(3), strict=True):
        if np.array_equal(along, unit):
            return getattr(pin, f"JointModel{'R' if axis.turns else 'P'}{letter}")()
    return (pin.JointModelRevoluteUnaligned if axis.turns else pin.JointModelPrismaticUnaligned)(along)


def _numbers(model: Any, there: Any, link: Link, follows: dict[str, tuple[str, float, float]], losses: Losses) -> None:
    """Passive terms and limits of a joint."""
    joint, name = link.joint, link.spec.name
    if joint.stiffness.any():
        losses.motion.append(f"stiffness of joint '{name}'")
    # a follower has no coordinate in the model: what acts on it acts on the one that leads, by the ratio of velocities
    if name in follows:
        leader, scaling, _ = follows[name]
        k = model.joints[model.getJointId(leader)].idx_v
        model.armature[k] += scaling**2 * joint.armature[0]
        model.damping[k] += scaling**2 * joint.damping[0]
        friction = np.array([abs(scaling) * joint.friction[0]])
        _add_friction(model, slice(k, k + 1), friction)
        if has_bounds(joint):
            losses.minor.append(f"limits of joint '{name}', which mimics another")
        return
    at_q, at_v = slice(there.idx_q, there.idx_q + there.nq), slice(there.idx_v, there.idx_v + there.nv)
    order_q, order_v = list(range(joint.nq)), list(range(joint.nv))
    if joint.kind == "Free":
        order_q, order_v = np.argsort(interop.FREE_Q).tolist(), interop.FREE_V
    elif link.backward:
        order_q, order_v = order_q[::-1], order_v[::-1]
    model.armature[at_v], model.damping[at_v] = joint.armature[order_v], joint.damping[order_v]
    _add_friction(model, at_v, joint.friction[order_v])
    for bound, upper, lower, before in (  # as Pinocchio 4 has them, and as 3
        (joint.effort_limit, "upperEffortLimit", "lowerEffortLimit", "effortLimit"),
        (joint.velocity_limit, "upperVelocityLimit", "lowerVelocityLimit", "velocityLimit"),
    ):
        if bound is not None:
            most = np.clip(bound[order_v], 0.0, LARGEST)
            getattr(model, upper if hasattr(model, upper) else before)[at_v] = most
            if hasattr(model, lower):
                getattr(model, lower)[at_v] = -most
    if joint.limits is not None:
        low, high = (np.clip(bound[order_q], -LARGEST, LARGEST) for bound in joint.limits)
        n = joint.nq - (there.nq > joint.nq)  # cosine and sine of an angle have none
        model.lowerPositionLimit[at_q][:n], model.upperPositionLimit[at_q][:n] = low[:n], high[:n]
        if n < joint.nq and np.isfinite([joint.limits[0][n], joint.limits[1][n]]).any():
            losses.minor.append(f"limits of the angle of joint '{name}' ({joint.kind})")


def _add_friction(model: Any, at: slice, friction: Any) -> None:
    model.friction[at] += friction
    if hasattr(model, "lowerDryFrictionLimit"):
        model.lowerDryFrictionLimit[at] -= friction


def _followed(robot: Mechanism, outward: dict[str, Link], losses: Losses) -> dict[str, tuple[str, float, float]]:
    """Joint -> (the one that it follows, scaling, offset), of couplers; the one that is followed comes first, and follows none."""
    order = {name: k for k, name in enumerate(outward)}
    known = {name: (name, 1.0, 0.0) for name in outward}  # q of a joint is scaling times that of another, and offset
    for spec in (robot.constraint(name).spec for name in robot.constraints):
        if isinstance(spec, JointSpec):
            continue
        if isinstance(spec, CouplerSpec) and spec.law is None and len(spec.terms) == 2:
            terms = sorted(((known[joint], c) for joint, _, c in spec.terms), key=lambda term: order[term[0][0]])
            ((first, s, o), (p, *more)), ((other, t, u), (r, *others)) = terms
            behind = [name for name, (leader, _, _) in known.items() if leader == other]
            # of screws that mimic Pinocchio 4.1 leaves the pitch out
            fit = first != other and all(outward[name].joint.kind != "Helical" for name in behind)
            fit &= all(outward[joint].joint.nv == 1 for joint, _, _ in spec.terms) and not any((*more, *others))
            if fit and p and r:  # p (s x + o) + r (t y + u) = offset, solved for y
                scaling, offset = -p * s / (r * t), (spec.offset - p * o - r * u) / (r * t)
                for name in behind:
                    _, m, n = known[name]
                    known[name] = first, m * scaling, m * offset + n
                continue
        losses.motion.append(f"constraint '{spec}'")
    return {name: follows for name, follows in known.items() if follows[0] != name}


def _closing(
    pin: Any, model: Any, spec: JointSpec, carried: dict[str, tuple[int, Transform, int]], losses: Losses
) -> Iterator[Any]:
    """Rigid constraints of a joint that closes a loop."""
    points = held_points(spec.joint)
    if not closes(spec, bool(points), losses, driven=True):
        return
    contact = pin.ContactType.CONTACT_6D if spec.joint.kind == "Fixed" else pin.ContactType.CONTACT_3D
    for point in points:
        ends: list[Any] = []
        for body, place in ((spec.parent, spec.at_parent), (spec.child, spec.at_child)):
            on, here, _ = carried[body]
            ends += [on, _se3(pin, here @ place @ Transform(translation=point))]
        constraint = pin.RigidConstraintModel(contact, model, *ends, pin.ReferenceFrame.LOCAL)
        constraint.name = spec.name if point is points[0] else f"{spec.name}_2"
        yield constraint


def _se3(pin: Any, place: Transform) -> Any:
    return pin.SE3(np.array(place.rotation), np.array(place.translation))
