"""Conversion of models and rigid constraints of Pinocchio to mechanisms, and back.

========================  ==================================================  ========================================================
in Pinocchio              from Pinocchio                                      to Pinocchio
========================  ==================================================  ========================================================
joints                    see :mod:`sarrus.interop`; a composite joint has    Pinocchio's joint if it has one, else a composite of the
                          massless bodies between its parts                   axes in their order
mimic                     a joint, and a coupler                              a linear coupler of two hinges or slides
inertias                  one body for each joint, or the ground for the      the sum of the inertias of welded bodies
                          universe; welded bodies are one body
`armature`                armature                                            the same
`damping`, `friction`     damping, friction: they act in sarrus, and in none  the same, with a warning
                          of Pinocchio's algorithms
limits                    of positions, velocities and efforts                the same
frames                    the first BODY frame of a joint is its body; the    bodies are BODY frames, joints JOINT and FIXED_JOINT frames,
                          others are frames, except JOINT frames              frames OP_FRAMEs
gravity                   gravity                                             the same
`referenceConfigurations` configurations                                      configurations, and home
constraints: 6D, 3D       loop joints: Fixed, Spherical. They are exact:      Fixed, Spherical; Revolute as two points of its axis at a
                          Baumgarte's terms are not read                      distance of 1 m
========================  ==================================================  ========================================================

Pinocchio has no springs, rods, rolling, prescribed motions, or loop joints of other types. A mechanism with any of these raises an error on
conversion to Pinocchio. Motors and visuals raise warnings.
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
from ..description.joints import NONLINEAR, Fixed, JointType, Spherical, axis_frame
from ..errors import ModelError, warn_of_model
from ..mechanism import Mechanism, checked_mechanism
from ..spatial import Inertia, Transform
from .document import Names, Notes, noted_inertia
from .lowering import closes, coincident_points, has_bounds
from .mujoco import Note
from .outline import Axis, Link, Losses, depth_first, listed, tree_links

if TYPE_CHECKING:
    import pinocchio

NO_LIMIT = 1e300  # larger limits mean "no limit": Pinocchio writes the largest double
LARGEST = np.finfo(float).max
# kind of a constraint -> joint type of its loop joint
CONSTRAINTS: dict[str, type[JointType]] = {
    "CONTACT_6D": Fixed, "CONTACT_3D": Spherical,
    "FrameAnchorConstraintModel": Fixed, "PointAnchorConstraintModel": Spherical,
}  # fmt: skip
# bound of a joint type -> names of the upper and the lower limit in Pinocchio 4, and of the limit in Pinocchio 3
BOUNDS = {
    f"{kind}_limit": (f"upper{kind.title()}Limit", f"lower{kind.title()}Limit", f"{kind}Limit")
    for kind in ("effort", "velocity")
}


def from_pinocchio(model: pinocchio.Model, constraints: Iterable[Any] = ()) -> Mechanism:
    """Return the mechanism of a Pinocchio model with rigid constraints; :mod:`sarrus.io.pinocchio` lists what each element becomes.

    Parameters
    ----------
    model : a ``pinocchio.Model``, or an object with its attributes; Pinocchio is not imported
    constraints : ``pinocchio.RigidConstraintModel`` of 6D and 3D contacts, point and frame anchors: they become loop joints

    Returns
    -------
    Mechanism; `robot.warnings` lists the parts that were not used. :func:`sarrus.interop.from_pinocchio_state` converts q and v

    Raises
    ------
    ModelError
        A joint or a constraint is not supported, such as an ellipsoid joint; the message has its name.

    Examples
    --------
    >>> model, constraints = sarrus.io.to_pinocchio(sarrus.mechanisms.four_bar())  # doctest: +SKIP
    >>> robot = sarrus.io.from_pinocchio(model, constraints)  # doctest: +SKIP
    """
    return read(model, constraints).build()


def read(model: Any, constraints: Iterable[Any] = ()) -> Builder:
    """Return a builder of the mechanism, see :func:`sarrus.io.from_pinocchio`."""
    interop.checked_model(model)
    notes = Notes()

    def note(message: str) -> None:
        notes.add("Model", message)

    return _Reader(model, note).read(constraints, notes)


class _Reader:
    """Reader that adds the parts of a Pinocchio model to a Builder."""

    def __init__(self, model: Any, note: Note) -> None:
        self.model, self.note, self.names = model, note, list(model.names)
        self.builder = Builder(model.name or "pinocchio", np.array(model.gravity.linear))
        if np.any(model.gravity.angular):
            note("the angular part of gravity is not read")
        self.frames = list(model.frames)[1:]
        self.frame_of: dict[int, Any] = {}  # joint -> frame of its body
        for frame in self.frames:
            if _kind_of(frame) == "BODY" and frame.parentJoint:
                self.frame_of.setdefault(int(frame.parentJoint), frame)
        self.bodies, self.joint_names = Names({"ground"}), Names(self.names)
        # for each joint of Pinocchio: its body, and the pose of the joint's frame in the body
        self.carried = [("ground", Transform())]
        self.leader_of = interop.mimics(model)

    def read(self, constraints: Iterable[Any], notes: Notes) -> Builder:
        """Return the builder of the model and of constraints."""
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
            _close(self.builder, constraint, self.carried, self.joint_names, self.note)
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
        """Add a joint, or the parts of a composite joint with massless bodies between them."""
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
            joint = part.type if i in self.leader_of else numbers.joint(part_name, part, iq, iv)
            inertia = _inertia(name, model.inertias[i], at_child, self.note) if last else None
            self.builder.add_body(body, inertia)
            self.builder.add_joint(part_name, joint, parent, body, at_parent=place, at_child=at_child, tree=True)
            iq, iv, parent, place = iq + part.nq, iv + part.type.nv, body, Transform()
            self.joint_names.add(part_name)

    def _add_mimic(self, i: int, leader: str) -> None:
        joint, name = self.model.joints[i], self.names[i]
        mimic = joint.extract() if hasattr(joint, "extract") else joint
        terms = {name: 1.0, leader: -mimic.scaling}
        self.builder.add_coupler(self.joint_names.new(f"{name} follows {leader}"), terms, offset=mimic.offset)

    def _add_frame(self, frame: Any) -> None:
        if (name := self.bodies.new(frame.name)) != frame.name:
            self.note(f"{_kind_of(frame)} frame '{frame.name}' becomes '{name}': its name is in use")
        body, place = self.carried[frame.parentJoint]
        self.builder.add_frame(name, body, place @ _transform(frame.placement))

    def _add_configurations(self) -> None:
        configurations = {entry.key(): entry.data() for entry in getattr(self.model, "referenceConfigurations", ())}
        if not configurations:
            return
        robot = Mechanism(self.builder._described())
        for name, q in configurations.items():
            x = interop.from_pinocchio_state(robot, self.model, q)
            coordinates = {joint: x[robot.joint(joint).q_slice] for joint in robot.joints if robot.joint(joint).nq}
            self.builder.set_configuration(name, coordinates)
            if name == "home":
                self.builder.set_home(coordinates)


class _Numbers:
    """Arrays of a Pinocchio model with one entry for each velocity or coordinate of its joints."""

    def __init__(self, model: Any, note: Note) -> None:
        def array(name: str, older_name: str = "", default: float = 0.0) -> Any:
            values = getattr(model, name, None)
            values = getattr(model, older_name, None) if values is None and older_name else values
            return np.full(model.nv, default) if values is None else np.array(values, float).ravel()

        self.passive = {name: array(name) for name in ("armature", "damping", "friction")}
        self.bounds = {}
        for name, (upper_name, lower_name, older_name) in BOUNDS.items():
            upper, lower = array(upper_name, older_name), array(lower_name, default=np.nan)
            # Pinocchio 4.1 stores lower velocity limits without their negative sign
            lower = np.abs(np.where(np.isnan(lower), upper, lower))
            if not np.array_equal(lower, upper):
                note(f"{name.replace('_', ' ')}s of the two directions differ; the larger one is used for both")
            self.bounds[name] = _infinite(np.maximum(upper, lower))
        limits = model.lowerPositionLimit, model.upperPositionLimit
        self.lower, self.upper = (_infinite(np.array(x, float)) for x in limits)
        if np.any(array("lowerDryFrictionLimit") + self.passive["friction"]) and np.any(array("lowerDryFrictionLimit")):
            note("friction of the two directions differs; the upper one is used for both")
        if self.passive["damping"].any() or self.passive["friction"].any():
            note("damping and friction act in sarrus, and in none of Pinocchio's algorithms")
        rotors = array("rotorInertia") * array("rotorGearRatio") ** 2
        if np.any((rotors != 0.0) & ~np.isclose(rotors, self.passive["armature"], rtol=1e-6, atol=0.0)):
            note("rotorInertia and rotorGearRatio are not read; armature is")
        if np.any(getattr(model, "positionLimitMargin", 0.0)):
            note("positionLimitMargin is not read")

    def joint(self, name: str, part: interop.Part, iq: int, iv: int) -> JointType:
        """Return the joint type of a joint, or of a part of a composite joint, with its parameters; iq and iv are its first indices in q and v."""
        free, n = part.type.kind == "Free", part.type.nv
        order = interop.FREE_V if free else list(range(n))
        properties: dict[str, Any] = {key: x[iv : iv + n][order] for key, x in self.passive.items()}
        for key, x in self.bounds.items():
            if np.isfinite(x[iv : iv + n]).any():
                properties[key] = x[iv : iv + n][order]
        low, high = self.lower[iq : iq + part.nq], self.upper[iq : iq + part.nq]
        if free:
            low, high = low[interop.FREE_Q], high[interop.FREE_Q]
        # in sarrus, coordinates that are quaternions or (cosine, sine) pairs have no limits
        if part.type.quaternion or part.nq > part.type.nq:
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
    return np.where(np.abs(x) >= NO_LIMIT, np.copysign(np.inf, x), x)


def _kind_of(frame: Any) -> str:
    return str(frame.type).rpartition(".")[2]


def _transform(place: Any) -> Transform:
    return Transform(np.array(place.rotation), np.array(place.translation))


def _inertia(name: str, inertia: Any, joint: Transform, note: Note) -> Inertia:
    """Return the inertia of a body from that in its joint's frame, whose pose in the body is `joint`; warn if it is not physical."""
    try:
        return noted_inertia(inertia.mass, np.array(inertia.lever), np.array(inertia.inertia), note).transformed(joint)
    except ModelError as error:
        raise ModelError(f"inertia of joint '{name}': {error}") from None


def _close(builder: Builder, constraint: Any, carried: list[tuple[str, Transform]], names: Names, note: Note) -> None:
    """Add the loop joint of a rigid constraint."""
    constraint = constraint.extract() if hasattr(constraint, "extract") else constraint
    kind = str(getattr(constraint, "type", type(constraint).__name__)).rpartition(".")[2]
    if not hasattr(constraint, "name"):
        raise ModelError(f"constraints: expected pinocchio.RigidConstraintModel; got {constraint!r}")
    if kind not in CONSTRAINTS:
        fault = f"constraint {constraint.name!r} is a {kind}"
        raise ModelError(f"{fault}; expected a 6D or 3D contact, or a frame or point anchor")
    for word in ("contact", "constraint"):
        for quantity in ("placement", "velocity", "acceleration", "offset"):
            desired = getattr(constraint, f"desired_{word}_{quantity}", None)
            placed = quantity == "placement"
            vector = getattr(desired, "homogeneous", None) if placed else getattr(desired, "vector", desired)
            if vector is not None and np.any(np.asarray(vector) - (np.eye(4) if placed else 0.0)):
                note(f"desired_{word}_{quantity} of constraints is not read: their frames coincide")
    if hasattr(constraint, "retrieveCompliance") and np.any(constraint.retrieveCompliance()):
        note("compliance of constraints is not read: they are rigid")
    (parent, X_P), (child, X_C) = (carried[k] for k in (constraint.joint1_id, constraint.joint2_id))
    at_parent = X_P @ _transform(constraint.joint1_placement)
    at_child = X_C @ _transform(constraint.joint2_placement)
    name = names.new(constraint.name or f"{parent} to {child}")
    builder.add_joint(name, CONSTRAINTS[kind](), parent, child, at_parent=at_parent, at_child=at_child, loop=True)


# ---- to Pinocchio --------------------------------------------------------------------------------------------------------------------


def to_pinocchio(robot: Mechanism, *, lossy: bool = False) -> tuple[Any, Any]:
    """Return a mechanism as a Pinocchio model, and the rigid constraints that close its loops. Needs Pinocchio: ``pip install pin``.

    Parameters
    ----------
    robot : the mechanism
    lossy : if True, parts that Pinocchio cannot represent are omitted with a warning, even if the motion changes

    Returns
    -------
    (pinocchio.Model, StdVec_RigidConstraintModel); :mod:`sarrus.io.pinocchio` lists what each element becomes.
    :func:`sarrus.interop.to_pinocchio_state` converts q and v

    Raises
    ------
    ModelError
        Pinocchio cannot represent parts that change the motion: springs, rods, rolling, couplers of more than two coordinates, and loop joints
        other than Fixed, Spherical and Revolute. The message lists all of them. Other parts, motors and visuals, raise a
        :class:`~sarrus.ModelWarning`.
    ModuleNotFoundError
        Pinocchio is not installed.

    Examples
    --------
    >>> model, constraints = sarrus.io.to_pinocchio(sarrus.mechanisms.double_pendulum())  # doctest: +SKIP
    """
    pin = needed("pinocchio", "to_pinocchio() needs Pinocchio", "pin")
    losses = Losses("Pinocchio", "the model", "lossy=True omits them")
    d, links = checked_mechanism(robot).description, tree_links(robot)
    model = pin.Model()
    model.name, model.gravity.linear = d.name, np.array(d.gravity)
    inertias = {body.name: body.inertia for body in d.bodies}
    # body -> (index of Pinocchio's joint, pose of the body in the joint's frame, index of Pinocchio's frame)
    carried = {"ground": (0, Transform(), 0)}
    outward = {link.spec.name: link for link in depth_first(links)}
    follows = _followed(robot, outward, losses)
    for name, link in outward.items():
        joint, place, frame = carried[link.inner]
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
        inertia, I = pin.Inertia.Zero(), inertias[link.outer]
        inertia.mass, inertia.lever = I.mass, np.array(I.com)
        # the tensor is set separately, because Pinocchio's constructor rejects unphysical inertias
        inertia.inertia = np.array(I.about_com)
        frame = model.addFrame(pin.Frame(link.outer, joint, frame, _se3(pin, place), pin.BODY, inertia))
        carried[link.outer] = joint, place, frame
    for spec in d.frames:
        joint, place, frame = carried[spec.body]
        model.addFrame(pin.Frame(spec.name, joint, frame, _se3(pin, place @ spec.placement), pin.OP_FRAME))
    constraints = pin.StdVec_RigidConstraintModel()
    for constraint in (robot.constraint(name).spec for name in robot.constraints):
        if isinstance(constraint, JointSpec):
            constraints.extend(list(_closing(pin, model, constraint, carried, losses)))
    losses.motion += [f"spring '{spring.name}'" for spring in d.springs]
    if d.visuals:
        losses.minor.append("visuals")
    if robot.actuated:
        losses.minor.append(f"motors of joints {listed(robot.actuated)}")
    losses.settle(d.name, lossy)
    if model.damping.any() or model.friction.any():
        warn_of_model(f"{d.name}: damping and friction are in the model, but Pinocchio's algorithms do not use them")
    named = ({"home": d.home} if d.home else {}) | dict(d.configurations)
    for name, coordinates in named.items():
        model.referenceConfigurations[name] = interop.to_pinocchio_state(robot, model, robot._at(coordinates))
    return model, constraints


def _form(pin: Any, link: Link) -> tuple[Transform, Any, Transform]:
    """Return the pose of Pinocchio's joint in the inner body, the joint, and the pose of the outer body in the joint's frame."""
    joint, start, end = link.joint, link.start, link.end
    if link.backward and joint.kind in ("Spherical", "Free", "Planar"):
        fault = f"joint '{link.spec.name}' ({joint.kind}) has its child nearer to the ground"
        effect = "Pinocchio's coordinates would belong to the inverse motion"
        raise ModelError(f"{fault}, so that {effect}: exchange parent and child")
    if joint.kind in ("Spherical", "Free"):
        return start, (pin.JointModelFreeFlyer if joint.kind == "Free" else pin.JointModelSpherical)(), end
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


def _numbers(
    model: Any, pin_joint: Any, link: Link, follows: dict[str, tuple[str, float, float]], losses: Losses
) -> None:
    """Set the passive terms and limits of a joint in the model."""
    joint, name = link.joint, link.spec.name
    if terms := [term for term in ("stiffness", *NONLINEAR) if getattr(joint, term).any()]:
        losses.motion.append(f"{' and '.join(terms)} of joint '{name}'")
    # a follower has no coordinate in Pinocchio's model: its terms are added to the leader's, scaled by the ratio of velocities
    if name in follows:
        leader, scaling, _ = follows[name]
        k = model.joints[model.getJointId(leader)].idx_v
        model.armature[k] += scaling**2 * joint.armature[0]
        model.damping[k] += scaling**2 * joint.damping[0]
        _add_friction(model, slice(k, k + 1), abs(scaling) * joint.friction)
        if has_bounds(joint):
            losses.minor.append(f"limits of joint '{name}', which mimics another")
        return
    iq, iv = pin_joint.idx_q, pin_joint.idx_v
    at_q, at_v = slice(iq, iq + pin_joint.nq), slice(iv, iv + pin_joint.nv)
    order_q, order_v = list(range(joint.nq)), list(range(joint.nv))
    if joint.kind == "Free":
        order_q, order_v = np.argsort(interop.FREE_Q).tolist(), interop.FREE_V
    elif link.backward:
        order_q, order_v = order_q[::-1], order_v[::-1]
    model.armature[at_v], model.damping[at_v] = joint.armature[order_v], joint.damping[order_v]
    _add_friction(model, at_v, joint.friction[order_v])
    for bound_name, (upper, lower, before) in BOUNDS.items():
        if (bound := getattr(joint, bound_name)) is not None:
            most = np.clip(bound[order_v], 0.0, LARGEST)
            getattr(model, upper if hasattr(model, upper) else before)[at_v] = most
            if hasattr(model, lower):
                getattr(model, lower)[at_v] = -most
    if joint.limits is not None:
        low, high = (np.clip(bound[order_q], -LARGEST, LARGEST) for bound in joint.limits)
        n = joint.nq - (pin_joint.nq > joint.nq)  # coordinates (cosine, sine) of an angle have no limits
        model.lowerPositionLimit[at_q][:n], model.upperPositionLimit[at_q][:n] = low[:n], high[:n]
        if n < joint.nq and np.isfinite([joint.limits[0][n], joint.limits[1][n]]).any():
            losses.minor.append(f"limits of the angle of joint '{name}' ({joint.kind})")


def _add_friction(model: Any, at: slice, friction: Any) -> None:
    model.friction[at] += friction
    if hasattr(model, "lowerDryFrictionLimit"):
        model.lowerDryFrictionLimit[at] -= friction


def _followed(robot: Mechanism, outward: dict[str, Link], losses: Losses) -> dict[str, tuple[str, float, float]]:
    """Return the dict: follower -> (leader, scaling, offset) for the couplers.

    A leader comes before its followers in the tree, and is not a follower itself.
    """
    order = {name: k for k, name in enumerate(outward)}
    # joint -> (leader, scaling, offset): q = scaling q_leader + offset
    root_of = {name: (name, 1.0, 0.0) for name in outward}
    for spec in (robot.constraint(name).spec for name in robot.constraints):
        if isinstance(spec, JointSpec):
            continue
        if isinstance(spec, CouplerSpec) and spec.is_polynomial and len(spec.terms) == 2:
            terms = sorted(((root_of[joint], c) for joint, _, c in spec.terms), key=lambda term: order[term[0][0]])
            ((first, s, o), (p, *higher1)), ((second, t, u), (r, *higher2)) = terms
            followers = [name for name, (leader, _, _) in root_of.items() if leader == second]
            # Pinocchio 4.1 ignores the pitch of screws that mimic
            fits = first != second and all(outward[name].joint.kind != "Helical" for name in followers)
            fits &= all(outward[joint].joint.nv == 1 for joint, _, _ in spec.terms) and not any((*higher1, *higher2))
            if fits and p and r:  # p (s x + o) + r (t y + u) = offset, solved for y
                scaling, offset = -p * s / (r * t), (spec.offset - p * o - r * u) / (r * t)
                for name in followers:
                    _, m, n = root_of[name]
                    root_of[name] = first, m * scaling, m * offset + n
                continue
        losses.motion.append(f"constraint '{spec}'")
    return {name: follows for name, follows in root_of.items() if follows[0] != name}


def _closing(
    pin: Any, model: Any, spec: JointSpec, carried: dict[str, tuple[int, Transform, int]], losses: Losses
) -> Iterator[Any]:
    """Yield the rigid constraints of a loop joint."""
    points = coincident_points(spec.joint)
    if not closes(spec, bool(points), losses, driven=True):
        return
    contact = pin.ContactType.CONTACT_6D if spec.joint.kind == "Fixed" else pin.ContactType.CONTACT_3D
    for point in points:
        ends: list[Any] = []
        for body, place in ((spec.parent, spec.at_parent), (spec.child, spec.at_child)):
            joint, in_joint, _ = carried[body]
            ends += [joint, _se3(pin, in_joint @ place @ Transform(translation=point))]
        constraint = pin.RigidConstraintModel(contact, model, *ends, pin.ReferenceFrame.LOCAL)
        constraint.name = spec.name if point is points[0] else f"{spec.name}_2"
        yield constraint


def _se3(pin: Any, place: Transform) -> Any:
    return pin.SE3(np.array(place.rotation), np.array(place.translation))
