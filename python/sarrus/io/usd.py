"""Reader of USD with UsdPhysics (.usd, .usda, .usdc, .usdz); it needs usd-core (``pip install usd-core``).

The table lists the schemas and prims of a stage and their counterparts in the mechanism:

==============================  ===================================================================================
the stage                       metersPerUnit, kilogramsPerUnit and degrees become SI; the axes stay, and gravity points down by
                                upAxis, or as in the scene. Instances and references are expanded
RigidBodyAPI                    a body with the name of its prim, or its path if the name is in use; kinematic: it is fixed to the ground
MassAPI, CollisionAPI           its inertia; missing parts follow from the colliders and densities (of the collider, of its material, or
                                1000 kg/m³) by the rules of UsdPhysics
joints                          between the frames localPos and localRot of the bodies that contain body0 and body1, or of the world: revolute,
                                prismatic, spherical, fixed; the general joint with its free axes; distance joints of one length
excludeFromArticulation         a loop joint, if other joints connect its bodies
LimitAPI, limits                limits of joints
DriveAPI                        a motor with its maxForce; the law (stiffness, damping, targets) is a controller, see :func:`drives`
newton:…, mjc:…, physxJoint:…   damping, stiffness, friction, armature, velocity_limit, see the table of the format. newton:inertia of bodies. Limits
                                and springs count from mjc:ref
NewtonMimicAPI, mjc:coef2 …     couplers of two joints of one axis
MjcActuator, NewtonActuator,    a motor with the largest effort of its ranges
urdf:limit:effort
ArticulationRootAPI             a body that gets a Free joint "root_joint", if no joint connects it to the ground
poses of bodies                 home
colliders                       collision shapes: sphere, capsule, cube, cylinder, plane, with dynamicFriction and restitution; meshes touch
                                planes only, by their convex hulls, with any approximation
other shapes                    visuals, except meshes
Xforms with sarrus:frame        frames, as the writer marks them
other entries of physics        a warning
==============================  ===================================================================================

Most numbers of USD have 32 bits, see :mod:`sarrus.io.usd_stage`. Rounding frames to 32 bits can make redundant constraint rows of a loop
inconsistent. :func:`sarrus.without_redundant_constraints` then replaces the loop joints by joints without redundant rows, with a warning.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array
from ..analysis.closing import start_near
from ..analysis.linear_algebra import ScaledLoops
from ..analysis.mobility import without_redundant_constraints
from ..building.builder import Builder
from ..description import joints
from ..description.contacts import NO_CONTACTS
from ..description.joints import PASSIVE, JointType, axis_frame
from ..errors import AssemblyError, ModelError
from ..mechanism import Mechanism
from ..shapes import Box, Capsule, ConvexPoints, Cylinder, Plane, Sphere
from ..spatial import Inertia, Rotation, Transform
from .document import Connected, Element, Names, add_root, add_shape, at, check_pairs, left_out, noted_inertia
from .formats import USD, combined, text_of
from .mesh_files import corners, mass_properties
from .mujoco import ROTOR, Drives, greatest
from .usd_stage import Prim, read_stage

LETTERS = "XYZ"
WATER = 1000.0  # default density [kg/m³]
# bound of the errors that frames in 32 bits cause in loop closure, and in coordinates that should be zero; relative to the size of the bodies
FLOATS = 1e-5
EXACT = 1e-10  # bound of errors in double precision
# largest unit of length [m] and mass [kg], so that the unit of inertia (mass times length squared) is finite
MOST_UNIT = 1e30
SIDES = ("0", "1")
# type of a prim that is not read -> text of the warning
UNREAD = {
    "PointInstancer": "a PointInstancer is not read: its instances are missing:",
    "MjcTendon": "tendons are not read, nor the actuators that drive them:",
    "MjcKeyframe": "keyframes are not read:",
}
ROUND: dict[str, type[Any]] = {"Capsule": Capsule, "Cylinder": Cylinder}


class Drive(NamedTuple):
    """Control law of a drive: effort = stiffness (position - q) + damping (velocity - q'), in SI units."""

    stiffness: float
    damping: float
    position: float
    velocity: float


def read(
    text: str | bytes, *, source: str = "<string>", floating_base: bool | None = None, beside: str = "",
    package_dirs: Iterable[str] = (),
) -> Builder:  # fmt: skip
    """Return a builder of the mechanism in a stage.

    Raises ModelError with file, prim and fault.

    Parameters
    ----------
    text : content of a .usda; if `beside` is given, the file `source` in that folder is read instead
    source : name of the file, also in errors and warnings
    beside : folder of the file, which may contain the files that the stage refers to; empty: no folder
    floating_base : False fixes the floating body to the ground
    package_dirs : other folders that may contain the files that the stage refers to
    """
    if not isinstance(floating_base, bool | np.bool_ | None):
        raise ModelError(f"floating_base: expected True or False; got {floating_base!r}")
    reader = _Reader(read_stage(text, source, beside, package_dirs, USD.grammar))
    reader.read(floating_base)
    reader.root.prim = None  # releases the stage: USD would return its cached layers even if their files have changed
    return reader.builder


def drives(text: str | bytes, *, source: str = "<string>", beside: str = "") -> dict[str, Drive | dict[str, Drive]]:
    """Return the control laws of a stage's drives: joint -> :class:`Drive`, or joint -> (axis such as "rotX" -> :class:`Drive`) for a general joint.

    Arguments are those of :func:`read`.
    """
    reader = _Reader(read_stage(text, source, beside, (), USD.grammar))
    found_drives: dict[str, Drive | dict[str, Drive]] = {}
    for name, element in reader.joints.items():
        laws = {}
        for drive in element.all("drive"):
            turns = str(drive.get("name")).startswith(("rot", "angular"))
            rows = [row for row in USD.rows if row.element == "drive" and row.unit]
            numbers = (drive.number(row.name, 0.0) * reader.factor(row.unit, turns) for row in rows)
            laws[drive.attributes["name"]] = Drive(*numbers)
        if laws:
            found_drives[name] = laws if element.get("type") == "d6" else next(iter(laws.values()))
    reader.root.prim = None
    return found_drives


def factor(unit: str, turns: bool, metre: float = 1.0, kilogram: float = 1.0) -> float:
    """Return the SI value of a unit. The text, such as "N m/deg, N/m", contains two units: the first is used if `turns` is True, else the second.

    `metre` [m] and `kilogram` [kg] are the units of the stage.
    """
    sizes = {
        "N": kilogram * metre, "m": metre, "m²": metre**2, "kg": kilogram, "s": 1.0, "rad": 1.0, "deg": math.pi / 180.0,
    }  # fmt: skip
    above, _, below = unit.split(", ")[not turns].partition("/")
    return math.prod(sizes[x] for x in above.split()) / math.prod(sizes[x] for x in below.split())


class _Reader:
    """Reader that adds the parts of a stage to a Builder."""

    def __init__(self, root: Prim) -> None:
        self.root = root
        self.prims: list[Prim] = root.children  # type: ignore[assignment]
        self.metre, self.kilogram = (root.number(name) for name in ("metersPerUnit", "kilogramsPerUnit"))
        if not all(1.0 / MOST_UNIT < unit < MOST_UNIT for unit in (self.metre, self.kilogram)):
            root.fail(f"expects metersPerUnit and kilogramsPerUnit from {1 / MOST_UNIT:g} to {MOST_UNIT:g}")
        self.by_path = {prim.path: prim for prim in self.prims}
        names, joint_names = Names(["ground"]), Names()
        self.bodies: dict[str, str] = {}  # path -> name
        self.joints: dict[str, Prim] = {}
        for prim in self.prims:
            if (kind := prim.attributes["type"]) in UNREAD:
                prim.note_named(UNREAD[kind])
                continue
            prim.note_unread()
            for part in (prim, *prim.children):
                part.note_unread()
                USD.remark(part)
            if prim.has("PhysicsRigidBodyAPI") and prim.truth("physics:rigidBodyEnabled", True):
                self.bodies[prim.path] = names.new(_free(prim, names))
            elif prim.tag == "joint" and prim.truth("physics:jointEnabled", True):
                self.joints[joint_names.new(_free(prim, joint_names))] = prim
            elif prim.tag == "joint":
                prim.note_named("joints that are not enabled are not read:")
        self.names, self.joint_names = names, joint_names
        # unit of angles in MuJoCo's attributes
        self.radians = any(prim.get("mjc:compiler:angle") == "radian" for prim in self.prims if prim.tag == "scene")
        self.motors = Drives()
        for prim in self.prims:
            if prim.tag == "motor":
                self._add_motor(prim)
        if not self.bodies:
            root.fail("has no prim with RigidBodyAPI")
        self.place = {path: self._pose(self.by_path[path]) for path in self.bodies}
        with at(root):
            self.builder = Builder(root.get("defaultPrim") or "stage", self._gravity())
        self.home: dict[str, Any] = {}
        self.chain_end: dict[str, str] = {}  # massless body in a chain -> last body of the chain

    def factor(self, unit: str, turns: bool) -> float:
        """Return the SI value of a unit of the stage."""
        return factor(unit, turns, self.metre, self.kilogram)

    def read(self, floating_base: bool | None) -> None:
        """Add all parts of the stage."""
        for path, name in self.bodies.items():
            with at(self.by_path[path]):
                self.builder.add_body(name, self._inertia(self.by_path[path]))
        self._add_joints(floating_base)
        self._add_mimics()
        for prim in self.prims:
            body = self._holder(prim.path)
            if prim.tag == "shape":
                self._add_shape(prim, body)
            elif prim.has("PhysicsCollisionAPI"):
                prim.note_named("CollisionAPI is read for shapes only; prims for which it is not read:")
            elif prim.attributes.get("sarrus:frame") == "true":
                with at(prim):
                    self.builder.add_frame(self.names.new(_free(prim, self.names)), *self._on(prim.path, Transform()))
        self._loosen_loops()
        self.builder.warnings += list(self.root.notes)

    # ---- poses -------------------------------------------------------------------------------------------------------

    def _pose(self, prim: Prim) -> Transform:
        """Return the pose of a prim in the world, without its scale."""
        R, _ = self._turn(prim)
        return Transform(R, prim.world[:3, 3] * self.metre)

    def _turn(self, prim: Prim) -> tuple[Array, Array]:
        """Return the rotation (3, 3) and the scale (3,) of a prim in the world."""
        M = prim.world[:3, :3]
        scale = np.linalg.norm(M, axis=0)
        if not (np.isfinite(prim.world).all() and scale.all() and np.linalg.det(M) > 0.0):
            prim.fail("is mirrored, or has zero size; expected a transformation by rotation and positive scale")
        U, s, Vt = np.linalg.svd(M / scale)
        if np.abs(s - 1.0).max() > FLOATS:
            prim.fail("is sheared; expected a transformation by rotation and positive scale")
        R = M / scale
        exact = np.abs(s - 1.0).max() < 4e-16 and np.abs(R.T @ R - np.eye(3)).max() < 4e-16
        return (R if exact else U @ Vt), scale

    def _holder(self, path: str) -> str | None:
        """Return the path of the body that a prim is or belongs to, or None."""
        while path not in self.bodies and path.count("/") > 1:
            path = path.rpartition("/")[0]
        return path if path in self.bodies else None

    def _on(self, path: str, frame: Transform) -> tuple[str, Transform]:
        """Return the body of a frame in a prim, and its pose in the body; the prim's scale is already applied."""
        body = self._holder(path)
        if body == path:
            return self.bodies[path], frame
        prim = self.by_path.get(path)
        in_world = frame if prim is None else self._pose(prim) @ frame
        return ("ground", in_world) if body is None else (self.bodies[body], self.place[body].inverse() @ in_world)

    def _end(self, joint: Prim, side: str) -> tuple[str, Transform]:
        """Return the body and the pose in it of a joint's frame on side "0" or "1"."""
        target = joint.get(f"physics:body{side}") or ""
        if " " in target or (target and target not in self.by_path):
            joint.fail(f"has body{side} {target[:200]!r}; expected one prim of the stage")
        prim = self.by_path.get(target)
        scale = np.ones(3) if prim is None else self._turn(prim)[1]
        position = np.array(joint.numbers(f"physics:localPos{side}", 3, (0.0, 0.0, 0.0)))
        frame = Transform(_rotation(joint, f"physics:localRot{side}"), position * scale * self.metre)
        return self._on(target, frame)

    def _gravity(self) -> tuple[float, ...]:
        scenes = [prim for prim in self.prims if prim.tag == "scene"]
        down = -np.eye(3)["XYZ".index(self.root.text("upAxis"))]
        if not scenes:
            return tuple(9.81 * down + 0.0)
        if len(scenes) > 1:
            scenes[1].note("of several PhysicsScenes the first is read")
        direction = np.array(scenes[0].numbers("physics:gravityDirection", 3, (0.0, 0.0, 0.0)))
        if not scenes[0].truth("newton:gravityEnabled", True):
            return 0.0, 0.0, 0.0
        size = scenes[0].number("physics:gravityMagnitude", -1.0, finite=False) * self.metre
        if direction.any():
            down = direction / np.linalg.norm(direction)
        return tuple((9.81 if size < 0.0 else size) * down + 0.0)

    # ---- joints ------------------------------------------------------------------------------------------------------

    def _add_joints(self, floating_base: bool | None) -> None:
        ends = {name: tuple(self._end(prim, side) for side in SIDES) for name, prim in self.joints.items()}
        check_pairs(((a[0], b[0]) for a, b in ends.values()), self.root.source)
        made = {name: joint for name, prim in self.joints.items() if (joint := self._joint(prim)) is not None}
        kept = {name: ends[name] for name in made}
        for name in [name for name, (a, b) in kept.items() if a[0] == b[0]]:
            self.joints[name].note("joints that connect a body, or the world, to itself are not read:", name)
            del kept[name]
        edges = {name: (a[0], b[0]) for name, (a, b) in kept.items() if made[name][0] is not None}
        closing = [n for n in edges if self.joints[n].truth("physics:excludeFromArticulation", False)]
        tree = Connected(["ground", *self.bodies.values()], [edges[n] for n in edges if n not in closing])
        tree.reach("ground")
        roots = list(self._roots(tree))
        for k, (path, free) in enumerate(roots):
            name = self.joint_names.new(f"root_joint_{self.bodies[path]}" if k else "root_joint")
            with at(self.by_path[path]):
                floats = free and (k > 0 or floating_base is not False)
                add_root(self.builder, name, self.bodies[path], self.place[path], floats, self.home)
        self._chain(kept, made, closing)
        for name, ((parent, at_parent), (child, at_child)) in kept.items():
            prim, (kind, driven, backward) = self.joints[name], made[name]
            with at(prim):
                if kind is None:
                    length = prim.number("physics:maxDistance") * self.metre
                    a, b = ((body, place.translation) for body, place in ((parent, at_parent), (child, at_child)))
                    self.builder.add_distance(name, a, b, length=length)
                    continue
                if backward:
                    parent, at_parent, child, at_child = child, at_child, parent, at_parent
                places: dict[str, Any] = {"at_parent": at_parent, "at_child": at_child}
                self.builder.add_joint(name, kind, parent, child, **places, actuated=driven, loop=name in closing)
        self._read_home([name for name in kept if name in self.builder._joints])

    def _read_home(self, names: Sequence[str]) -> None:
        """Read the coordinates of joints at the poses of the bodies, from a mechanism in which bodies float and these joints are loop joints."""
        poses = {"ground": Transform()} | {name: self.place[path] for path, name in self.bodies.items()}
        posed, root_names, q = Builder("poses"), Names(names), dict[str, list[float]]()
        for body in self.builder._bodies:
            posed.add_body(body)
            add_root(posed, root_names.new(body), body, poses[self.chain_end.get(body, body)], True, q)
        for name in names:
            spec = self.builder._joints[name]
            unlimited = {"limits": None} if hasattr(spec.joint, "limits") else {}
            joint = replace(spec.joint, **dict.fromkeys(PASSIVE, 0.0), **unlimited)
            places: dict[str, Any] = {"at_parent": spec.at_parent, "at_child": spec.at_child}
            posed.add_joint(name, joint, spec.parent, spec.child, **places, loop=True)
        robot = posed.build()
        coordinates = robot.joint_states(robot._at(q.items())).q
        for name in names:
            zero = np.eye(4)[3] if robot.joint(name).type.quaternion else 0.0
            if np.abs(coordinates[name] - zero).max(initial=0.0) >= FLOATS:
                self.home[name] = coordinates[name]

    def _chain(self, kept: dict[str, Any], made: Mapping[str, Any], closing: Sequence[str]) -> None:
        """Convert several hinges and slides between two bodies to a chain, as in MuJoCo; as parallel joints they would fix the bodies to each other."""
        pairs: dict[tuple[str, str], list[str]] = {}
        for name, (a, b) in kept.items():
            if isinstance(made[name][0], joints.Revolute | joints.Prismatic) and name not in closing:
                pairs.setdefault((a[0], b[0]), []).append(name)
        for (parent, child), names in pairs.items():
            lines = [_line(made[name][0], kept[name][0][1]) for name in names]
            if len(names) < 2 or all(_same_motion(lines[0], line) for line in lines[1:]):
                continue
            fact = "joints between one pair of bodies are read as a chain, in the order of the stage:"
            self.joints[names[0]].note(fact, ", ".join(names))
            for name, following in pairwise(names):
                between = self.names.new(f"{child}.{name}")
                self.builder.add_body(between)
                self.chain_end[between] = child
                (_, at_parent), (_, at_child) = kept[name]
                kept[name] = (parent, at_parent), (between, at_child)
                parent = between
                # the frame of a massless body is the child's frame
                kept[following] = (between, kept[following][1][1]), kept[following][1]

    def _add_mimics(self) -> None:
        """Add couplers of joints of one axis, q = coef0 + coef1 q_leader + coef2 q_leader² + ...

        newton:mimicCoef0 of a hinge is in degrees. All other coefficients count angles in radians, and lengths in the stage's unit.
        """
        names = {prim.path: name for name, prim in self.joints.items()}
        for name, prim in self.joints.items():
            polynomial = prim.has("MjcEqualityJointAPI")
            if not (prim.has("NewtonMimicAPI") or polynomial) or not prim.truth("newton:mimicEnabled", True):
                continue
            leader = names.get(prim.get("newton:mimicJoint") or prim.get("mjc:target") or "", "")
            pair = [self.builder._joints[x].joint if x in self.builder._joints else None for x in (name, leader)]
            if leader == name or not all(isinstance(joint, joints.Revolute | joints.Prismatic) for joint in pair):
                fact = "NewtonMimicAPI is read only if it couples two joints of one axis"
                prim.note(f"{fact}; joints for which it is not read:", name)
                continue
            turns = [isinstance(joint, joints.Revolute) for joint in pair]
            unit, unit_of_leader = (self.factor("rad, m", x) for x in turns)
            old = "newton:mimicCoef0" not in prim.attributes  # mjc:coef0 is in radians
            offset = prim.number("mjc:coef0" if old else "newton:mimicCoef0", 0.0)
            offset *= unit if old else self.factor("deg, m", turns[0])
            higher = [prim.number(f"mjc:coef{k}", 0.0) for k in (2, 3, 4)] if polynomial else []
            ratios = [prim.number("newton:mimicCoef1", prim.number("mjc:coef1", 1.0)), *higher]
            terms = [-ratio * unit / unit_of_leader**k for k, ratio in enumerate(ratios, start=1)]
            with at(prim):
                coupler = self.joint_names.new(f"{name} mimics {leader}")
                if not any(terms):
                    prim.note(f"the ratio of {coupler!r} is zero: joint {name!r} is held at {offset:g}")
                self.builder.add_coupler(
                    coupler, {name: 1.0} | ({leader: np.trim_zeros(terms, "b")} if any(terms) else {}), offset=offset
                )
                for joint_name in (name, leader):  # coupled joints stay in the tree
                    spec = self.builder._joints[joint_name]
                    actuated = spec.actuated and (joint_name != name or prim.path in self.motors.sums)
                    self.builder._joints[joint_name] = replace(spec, tree=True, actuated=actuated)

    def _roots(self, tree: Connected) -> Iterator[tuple[str, bool]]:
        """Yield (path, True if it floats) of bodies with a root joint: kinematic bodies, and one body of each connected group without a joint to the
        ground.
        """
        for path, name in self.bodies.items():
            if self.by_path[path].truth("physics:kinematicEnabled", False):
                self.by_path[path].note("kinematic bodies are fixed to the ground:", name)
                if name not in tree.reached:
                    tree.reach(name)
                    yield path, False
        rooted = [prim.path for prim in self.prims if prim.has("PhysicsArticulationRootAPI")]
        first = [path for root in rooted for path in self.bodies if path == root or path.startswith(f"{root}/")]
        paths = {self.bodies[path]: path for path in sorted(self.bodies, key=lambda path: path not in first)}
        yield from ((paths[name], True) for name in tree.groups(paths))

    def _joint(self, prim: Prim) -> tuple[JointType | None, bool, bool] | None:
        """Return (type, actuated, True if body1 is the parent) of a joint; the type is None for a distance. None: not read."""
        kind = prim.attributes["type"]
        with at(prim):
            if kind == "distance":
                low, high = (prim.number(f"physics:{name}Distance", -1.0) for name in ("min", "max"))
                if low == high > 0.0:
                    return None, False, False
                prim.note_named("distance joints with a range of distances are not read:")
                return None
            if kind == "d6":
                return self._general(prim)
            if kind in ("revolute", "prismatic"):
                axis = prim.word("physics:axis", "X Y Z", "X")
                turns, instance = kind == "revolute", "angular" if kind == "revolute" else "linear"
                numbers, driven = self._numbers(prim, turns, instance)
                return (joints.Revolute if turns else joints.Prismatic)(axis.lower(), **numbers), driven, False
            numbers, driven = self._numbers(prim, True, "")
            terms = {name: numbers[name] for name in ("damping", "friction", "armature") if name in numbers}
            if kind == "fixed" and any(terms.values()):
                prim.note("parameters of fixed joints, such as damping, are not read")
            driven = driven or bool(prim.all("drive"))
            return (joints.Fixed() if kind == "fixed" else joints.Spherical(**terms)), driven, False

    def _numbers(self, prim: Prim, turns: bool, instance: str) -> tuple[dict[str, Any], bool]:
        """Return the parameters of an axis, and True if a drive acts on it; `instance` is the name of its drive and of its LimitAPI."""
        drive = next((part for part in prim.all("drive") if part.get("name") == instance), None)
        if drive is not None and drive.number("physics:maxForce", math.inf, finite=False) == 0.0:
            drive = None
        drive = drive or self._motor(prim)
        axis = Element("joint", {**prim.attributes}, prim.source, prim.line, self.root, prim.notes, prim.grammar)
        axis.children = [] if drive is None else [drive]
        for limit in (part for part in prim.all("limit") if part.get("name") == instance):
            ends = {"physics:lowerLimit": "physics:low", "physics:upperLimit": "physics:high"}
            axis.attributes |= {end: limit.attributes[key] for end, key in ends.items() if key in limit.attributes}
        if "mjc:damping" in axis.attributes:
            per_degree = prim.number("mjc:damping") / factor("N m s/deg, N s/m", turns)
            axis.attributes.setdefault("newton:damping", text_of(per_degree))
        numbers: dict[str, Any] = USD.read(axis)
        for row in USD.numbers:
            if row.field in numbers:
                unit = row.unit.replace("deg", "rad") if row.name == "mjc:springref" and self.radians else row.unit
                numbers[row.field] *= self.factor(unit, turns)
        reference = prim.number("mjc:ref", 0.0) * self.factor("rad, m" if self.radians else "deg, m", turns)
        if reference and numbers.get("stiffness"):
            numbers["rest"] = numbers.get("rest", 0.0) - reference
        limits = numbers.pop("lower", -math.inf) - reference, numbers.pop("upper", math.inf) - reference
        if limits[0] > limits[1]:
            prim.fail(f"has its lower limit above the upper: {limits[0]:g} > {limits[1]:g}")
        bounds = {name: numbers.pop(name, math.inf) for name in ("effort_limit", "velocity_limit")}
        numbers |= {name: value for name, value in bounds.items() if value < math.inf}
        if not np.isinf(limits).all():
            numbers["limits"] = limits
        return numbers, drive is not None

    def _add_motor(self, prim: Prim) -> None:
        """Add an actuator of MuJoCo's or Newton's schema to the motor of its joint."""
        joint = self.by_path.get(prim.get("mjc:target") or prim.get("newton:targets") or "")
        if joint is None or joint.tag != "joint":
            prim.note_named("actuators that do not act on a joint are not read:")
            return
        most = min(
            _largest(prim, "forceLimited", "forceRange"), prim.number("newton:maxEffort", math.inf, finite=False)
        )
        laws = [prim.get(f"mjc:{name}Type") for name in ("gain", "bias", "dyn")]
        if set(laws) <= {None, "none", "fixed"} and prim.attributes["type"] != "NewtonActuator":
            gain = abs(prim.several("mjc:gainPrm", 10, (1.0,))[0])
            most = min(most, (gain or 1.0) * _largest(prim, "ctrlLimited", "ctrlRange"))
        else:
            prim.note_named("actuators whose control laws are not read:")
        self.motors.add(joint.path, prim.several("mjc:gear", 6, (1.0,))[0], most, (0.0,) * len(ROTOR))

    def _motor(self, prim: Prim) -> Element | None:
        """Return a drive for a joint with actuators of MuJoCo's schema, or with the effort limit of a URDF; None for other joints."""
        if prim.path not in self.motors.sums and "urdf:limit:effort" not in prim.attributes:
            return None
        most = prim.number("urdf:limit:effort", 0.0) or math.inf
        most = min(most, _largest(prim, "actuatorfrclimited", "actuatorfrcrange"))
        most = min(most, self.motors.sums.get(prim.path, (math.inf,))[0])
        numbers = {"physics:maxForce": text_of(most)} if math.isfinite(most) else {}
        return Element("drive", numbers, prim.source, prim.line, prim, prim.notes, prim.grammar)

    def _general(self, prim: Prim) -> tuple[JointType | None, bool, bool] | None:
        """Return the joint of the axes that no limit locks; a lower limit above the upper one locks an axis."""
        locked = set()
        for limit in prim.all("limit"):
            low = limit.number("physics:low", -math.inf, finite=False)
            high = limit.number("physics:high", math.inf, finite=False)
            if limit.get("name") == "distance":
                limit.note("limits of the distance of general joints are not read:", prim.attributes["name"])
            elif low > high:
                locked.add(limit.get("name"))
        free = [f"{kind}{axis}" for kind in ("rot", "trans") for axis in LETTERS if f"{kind}{axis}" not in locked]
        per = [self._numbers(prim, name[0] == "r", name) for name in free]
        turning = [name[-1] for name in free if name[0] == "r"]
        sliding = [name[-1] for name in free if name[0] == "t"]
        driven = any(has_drive for _, has_drive in per)
        if len(free) == 6:
            prim.note_named("general joints with six free axes are not read:")
            return None
        if not free:
            return joints.Fixed(), False, False
        # coordinates of Planar: the slides come first
        planar = len(turning) == 1 and len(sliding) == 2 and turning[0] not in sliding
        indices = ((2, 1, 0) if turning == ["Y"] else (1, 2, 0)) if planar else range(len(per))
        numbers = combined([per[k][0] for k in indices])
        if len(free) == 1:
            return (joints.Revolute if turning else joints.Prismatic)(free[0][-1].lower(), **numbers), driven, False
        if len(turning) == 3 and not sliding:
            if numbers.pop("limits", None):
                prim.note_named("limits of general joints with three free rotations are not read:")
            return joints.Spherical(**numbers), driven, False
        if planar:
            return joints.Planar(turning[0].lower(), **numbers), driven, False
        if turning == sliding and len(turning) == 1:
            return joints.Cylindrical(turning[0].lower(), **numbers), driven, False
        if len(turning) > 1:
            fact = "general joints with several free rotations are read as a gimbal, rotations in the order x, y, z:"
            prim.note_named(fact)
        # a Gimbal translates along the rotated axes, those of its child; USD translates along the axes of body0, which must therefore be the child
        backward = bool(turning and sliding)
        if backward and "limits" in numbers:
            low, high = np.array(numbers["limits"])
            numbers["limits"] = [-high, -low]
        if backward and "rest" in numbers:
            numbers["rest"] = [-x for x in numbers["rest"]]
        return joints.Gimbal([f"{name[0]}{name[-1].lower()}" for name in free], **numbers), driven, backward

    # ---- inertias and shapes -----------------------------------------------------------------------------------------

    def _inertia(self, body: Prim) -> Inertia:
        """Return the inertia of a body by the rules of UsdPhysics.

        The body's own mass properties override those of its colliders; the density of a child prim overrides its parent's.
        """
        colliders = Inertia.zero()
        entries = body.attributes
        mass = self._number(body, "physics:mass") * self.kilogram
        if not {"physics:mass", "physics:diagonalInertia", "physics:centerOfMass"} <= entries.keys():
            for prim in self.prims:
                if prim.has("PhysicsCollisionAPI") and self._holder(prim.path) == body.path:
                    colliders += self._solid(prim, body)
        if "physics:mass" not in entries:
            mass = colliders.mass
            if not mass:
                body.note_named("bodies without a mass, a density and colliders with a volume have no inertia:")
        com, about_com = colliders.com, colliders.about_com * (mass / colliders.mass if colliders.mass else 0.0)
        if "physics:centerOfMass" in entries:
            given_com = np.array(body.numbers("physics:centerOfMass", 3)) * self._turn(body)[1] * self.metre
            d = given_com - com
            if colliders.mass:  # the inertia of the colliders about the centre of mass that the body states
                about_com = about_com + mass * (d @ d * np.eye(3) - np.outer(d, d))
            com = given_com
        if "physics:principalAxes" in entries and "physics:diagonalInertia" not in entries:
            body.note_named("principal axes without moments of inertia are not read:")
        if body.get("newton:inertia"):
            xx, yy, zz, xy, xz, yz = np.array(body.numbers("newton:inertia", 6)) * self.kilogram * self.metre**2
            about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        elif "physics:diagonalInertia" in entries:
            moments = np.array(body.numbers("physics:diagonalInertia", 3)) * self.kilogram * self.metre**2
            if colliders.mass and "physics:principalAxes" not in entries:
                body.note_named("missing principal axes are read as the body's axes:")
            R = _rotation(body, "physics:principalAxes")
            about_com = R @ np.diag(moments) @ R.T
        elif mass and not colliders.mass:
            body.note_named("bodies with a mass, without inertia and colliders, are point masses:")
        return noted_inertia(mass, com, about_com, lambda text: body.note(f"{body}: {text}"))

    def _number(self, prim: Prim, name: str) -> float:
        value = prim.number(name, 0.0)
        if value < 0.0:
            prim.fail(f"has a negative {name.partition(':')[2]}: {value:g}")
        return value

    def _solid(self, prim: Prim, body: Prim) -> Inertia:
        """Return the inertia of a body's collider from its mass or density, in the body's frame."""
        if not prim.truth("physics:collisionEnabled", True):
            return Inertia.zero()
        with at(prim):
            volume, com, moments = self._volume(prim)
            if not volume:
                return Inertia.zero()
            mass = 0.0 if prim is body else self._number(prim, "physics:mass") * self.kilogram
            if not mass:
                if prim is not body and prim.prim.GetAttribute("physics:mass").HasAuthoredValue():
                    prim.note_named("a mass of zero counts as none, as in UsdPhysics, and the density applies:")
                above, density, path = prim, 0.0, prim.path
                while not density and path.startswith(body.path):
                    above = self.by_path.get(path, prim)
                    density, path = self._number(above, "physics:density"), path.rpartition("/")[0]
                material = self.by_path.get(prim.bound_material())
                density = density or (self._number(material, "physics:density") if material is not None else 0.0)
                mass = volume * (density * self.kilogram / self.metre**3 or WATER)
            if "physics:diagonalInertia" in prim.attributes and prim is not body:
                prim.note("inertias and centres of mass of colliders are not read: their density is uniform")
            place = self.place[body.path].inverse() @ self._pose(prim)
            return Inertia(mass, com, mass / volume * moments, check=False).transformed(place)

    def _shape(self, prim: Prim) -> tuple[Any, Transform]:
        """Return the shape of a prim, and the pose of its frame in the prim's frame; z is the axis of the shape."""
        kind, scale = prim.attributes["type"].removesuffix("_1"), self._turn(prim)[1] * self.metre
        axis = LETTERS.index(prim.word("axis", "X Y Z", "Z"))
        turned = Transform(axis_frame(np.eye(3)[axis])) if kind not in ("Cube", "Sphere") else Transform()
        if kind == "Cube":
            x, y, z = (scale * prim.number("size", 2.0)).tolist()
            return Box((x, y, z)), turned
        if kind == "Plane":
            return Plane(), turned
        across = scale if kind == "Sphere" else np.delete(scale, axis)
        if np.ptp(across) > FLOATS * across[0] or (kind == "Capsule" and abs(scale[axis] / across[0] - 1.0) > FLOATS):
            prim.fail(f"is a {kind} with different scales across its axis; expected equal ones")
        radius = float(prim.number("radius", 0.5 if kind == "Capsule" else 1.0) * across[0])
        length = float(prim.number("height", 1.0 if kind == "Capsule" else 2.0) * scale[axis])
        return (Sphere(radius) if kind == "Sphere" else ROUND[kind](radius, length)), turned

    def _volume(self, prim: Prim) -> tuple[float, Array, Array]:
        """Return volume [m³], centre (3,) [m], and inertia (3, 3) about it for unit density, in the prim's frame."""
        if prim.attributes["type"] == "Mesh":
            return self._mesh_volume(prim)
        if prim.tag != "shape" or prim.attributes["type"] in ("Plane", "Cone"):
            return 0.0, np.zeros(3), np.zeros((3, 3))
        shape, turned = self._shape(prim)
        filled = shape._volume
        return filled.size, np.zeros(3), turned.rotation @ filled.inertia @ turned.rotation.T

    def _mesh_volume(self, prim: Prim) -> tuple[float, Array, Array]:
        """Return volume, centre and inertia of a mesh as :meth:`_volume` does. Each face is a fan of triangles from its first corner."""
        points, counts, indices = prim.faces()
        starts = np.cumsum(counts) - counts
        fans = [(s, s + k, s + k + 1) for s, n in zip(starts, counts, strict=True) for k in range(1, n - 1)]
        if not fans:
            prim.fail("has only lines and points; expected faces")
        triangles = points[indices[np.array(fans)]] * self._turn(prim)[1] * self.metre
        if str(prim.prim.GetAttribute("orientation").Get()) == "leftHanded":
            triangles = triangles[:, ::-1]
        if np.linalg.det(triangles - triangles.mean(axis=(0, 1))).sum() < 0.0:
            prim.note_named("meshes are inside out, and their faces are reversed:")
            triangles = triangles[:, ::-1]
        return mass_properties(triangles, "exact")

    def _add_shape(self, prim: Prim, body: str | None) -> None:
        """Add a collision shape or a visual; faults are warnings, because the dynamics does not need it."""
        touches = prim.has("PhysicsCollisionAPI") and prim.truth("physics:collisionEnabled", True)
        if touches:
            prim.note(f"shapes of CollisionAPI may touch, {NO_CONTACTS}")
        kind = prim.attributes["type"].removesuffix("_1")
        purpose = "as collision shapes" if touches else "as visuals"
        if kind == "Cone" or (kind in ("Mesh", "Plane", "Capsule") and not touches):
            prim.note(f"{kind} prims are not read {purpose}")
            return
        with left_out(prim, f"it is not read {purpose}"):
            if kind == "Mesh":
                self._add_mesh(prim, body)
                return
            shape, turned = self._shape(prim)
            owner, place = self._on(prim.path, Transform())
            if touches:
                add_shape(self.builder, owner, prim, shape, place @ turned, **self._coefficients(prim))
            elif owner != "ground":
                self.builder.add_visual(owner, shape, place @ turned, color=prim.color())

    def _add_mesh(self, prim: Prim, body: str | None) -> None:
        """Add the convex hull of a mesh as a collision shape.

        Its corners are expressed in the body's frame, because the transformation of the mesh may include shear.
        """
        points, counts, indices = prim.faces()
        points = points[np.unique(indices[: counts.sum()])] @ prim.world[:3, :3].T + prim.world[:3, 3]
        place = Transform() if body is None else self.place[body]
        inside = (points * self.metre - place.translation) @ place.rotation
        owner = "ground" if body is None else self.bodies[body]
        hull = ConvexPoints(tuple(map(tuple, corners(inside).tolist())))
        add_shape(self.builder, owner, prim, hull, Transform(), **self._coefficients(prim))
        word = prim.get("physics:approximation") or "none"
        other = f"; its approximation {word} is not read" if word.startswith("bounding") else ""
        prim.note(f"a mesh in <shape> touches planes only, by its convex hull{other}")

    def _coefficients(self, prim: Prim) -> dict[str, float]:
        material = self.by_path.get(prim.bound_material())
        if material is None or not material.has("PhysicsMaterialAPI"):
            return {}
        mu = {name: self._number(material, f"physics:{name}Friction") for name in ("static", "dynamic")}
        if mu["static"] != mu["dynamic"]:
            material.note("staticFriction is not read: the friction at rest is dynamicFriction")
        return {"friction": mu["dynamic"], "restitution": self._number(material, "physics:restitution")}

    # ---- effects of 32 bits ------------------------------------------------------------------------------------------

    def _loosen_loops(self) -> None:
        """Set home, and replace loop joints whose redundant rows are inconsistent because of rounding to 32 bits."""
        robot = Mechanism(self.builder._described(tuple(self.builder._constraints.values())))
        self.builder.set_home({name: q for name, q in self.home.items() if name in robot.joints})
        if not robot.nc:
            return
        robot = Mechanism(self.builder._described(tuple(self.builder._constraints.values())))
        q = start_near(robot, None, {}, 0.0)
        s = np.linalg.svd(ScaledLoops(robot, q, 0.0).jacobian(q), compute_uv=False)
        if not ((s > EXACT) & (s < FLOATS)).any():
            return
        try:
            loose = without_redundant_constraints(robot, tolerance=FLOATS)
        except (ModelError, AssemblyError) as error:
            cause = "loops are open because numbers are rounded to 32 bits"
            self.root.note(f"{cause}, and no loop joint could be replaced: {error}")
            return
        self.builder._joints = {spec.name: spec for spec in loose.description.joints}
        self.builder.warnings += loose.warnings[len(robot.warnings) :]


def _largest(prim: Prim, limited: str, limits: str) -> float:
    """Return the largest effort of a range in MuJoCo's schema; infinite if attribute `limited` disables it."""
    low, high = (prim.number(f"mjc:{limits}:{end}", 0.0) for end in ("min", "max"))
    word = prim.get(f"mjc:{limited}") or "auto"
    return greatest((low, high), prim.note) if word == "true" or (word == "auto" and low < high) else math.inf


def _line(kind: Any, frame: Transform) -> tuple[str, Array, Array]:
    """Return the kind of a hinge or slide, its direction (3,), and a point (3,) [m] of its line, in the body of its frame."""
    return kind.kind, frame.rotation @ kind.axis, frame.translation


def _same_motion(first: tuple[str, Array, Array], second: tuple[str, Array, Array]) -> bool:
    """Return True for two hinges on one line, or two slides along one direction."""
    (kind, along, point), (kind2, along2, point2) = first, second
    gap = np.linalg.norm(np.cross(point2 - point, along)) if kind == "Revolute" else 0.0
    size = 1.0 + float(np.linalg.norm(point) + np.linalg.norm(point2))
    return kind == kind2 and bool(np.linalg.norm(np.cross(along, along2)) < 1e-3 and gap < 1e-3 * size)


def _free(prim: Prim, used: Names) -> str:
    """Return a prim's name, or its path if the name is in use."""
    return prim.path[1:] if prim.attributes["name"] in used else prim.attributes["name"]


def _rotation(prim: Prim, name: str) -> Array:
    """Return the rotation matrix (3, 3) of a quaternion (w, x, y, z) in an attribute."""
    w, x, y, z = prim.numbers(name, 4, (1.0, 0.0, 0.0, 0.0))
    if not any((w, x, y, z)):
        prim.fail(f"has a {name} of zeros; expected a quaternion")
    return Rotation.from_quaternion((x, y, z, w)).matrix
