"""Writer of USD with UsdPhysics, as .usda or .usd text, in metres, kilograms and degrees, z up.

============================  ==========================================================================================================
bodies                        prims with RigidBodyAPI and MassAPI, without nesting, with their poses at home, or at closed loops
joints                        revolute, prismatic, spherical and fixed joints; Cylindrical and Planar as the general joint (PhysicsJoint). Other
                              joints become chains of revolute and prismatic joints with massless bodies. The body of a Free joint floats
loops                         joints with excludeFromArticulation, except screws, in whose loops another joint is the loop joint of the reader
motors                        DriveAPI with maxForce and no law
damping, friction, armature,  NewtonJointAPI
velocity limits
stiffness and rest            mjc:stiffness and mjc:springref
couplers, screws              NewtonMimicAPI, of two joints of one axis; a screw is a hinge and a slide that mimics it
distances                     distance joints of one length
frames                        Xforms with sarrus:frame
visuals, collision shapes     shapes, except height fields and ellipsoids; friction and restitution as a material. Collision meshes and convex
                              points are written as the mesh of their convex hull; visual meshes are left out
numbers                       32 bits if UsdPhysics requires it, with additional attributes of 64 bits: :mod:`sarrus.io.usd_stage`
============================  ==========================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from .._arrays import Array
from ..description import ConstraintSpec, DistanceSpec, FrameSpec, JointSpec, ShapeSpec, VisualSpec
from ..errors import AssemblyError, ModelError
from ..mechanism import Mechanism
from ..shapes import Box, Capsule, ConvexPoints, Cylinder, Mesh, Plane, Sphere
from ..spatial import Inertia, Rotation, Transform
from . import lowering
from .document import Connected, Mimic
from .formats import USD, has_passive, put
from .lowering import PosedWriter, Step
from .mesh_files import hull, hull_faces
from .outline import IDENTITY, Element, Link, Losses, add, frame_along, link_of, no_shape, principal_axes, wxyz
from .usd import factor
from .usd_stage import write_stage

SHAPES: dict[type, str] = {Box: "Cube", Capsule: "Capsule", Cylinder: "Cylinder", Plane: "Plane", Sphere: "Sphere"}
ENDS = ("lower", "upper")
WORDS = {kind: f"Physics{name.title()}Joint" for kind, name in USD.joints.items() if name != "d6"}


class _Writer(PosedWriter):
    """Writer of USD."""

    format = USD
    scalar_only, coefficients, gravity = ("rest", "stiffness"), ("friction", "restitution"), True

    def __init__(self, robot: Mechanism, losses: Losses, path: Path) -> None:
        super().__init__(robot, losses, path)
        d = robot.description
        self.root = ET.Element("stage")
        self.top = add(self.root, "prim", type="Xform", name=robot.name, schemas="PhysicsArticulationRootAPI")
        scene = add(self.top, "prim", type="PhysicsScene", name="scene")
        size = float(np.linalg.norm(d.gravity))
        put(scene, "@physics:gravityDirection", np.array(d.gravity) / size if size else (0.0, 0.0, -1.0))
        put(scene, "@physics:gravityMagnitude", size)
        self.prims: dict[str, Element] = {}
        self.axes: dict[str, tuple[Element, bool]] = {}  # joint of one axis -> (element, True if it turns)
        self.coupled: dict[str, list[str]] = {}  # joint of one axis that follows or leads -> its two bodies
        self.parts()
        losses.motion += [f"spring '{spring.name}'" for spring in d.springs]
        self.looks({})

    def files(self) -> dict[Path, str]:
        return {self.path: write_stage(self.root)}

    def home(self) -> Array:
        """Return the home configuration (nq,), corrected so that the loops are closed."""
        robot = self.robot
        try:
            return np.asarray(robot.assemble(time=0.0)) if robot.nc else robot._at(robot.description.home)
        except AssemblyError as error:
            self.losses.note(f"a configuration that closes the loops ({error})")
            return robot._at(robot.description.home)

    def _on(self, body: str) -> Element:
        return self.top if body == "ground" else self.prims[body]

    def body(self, name: str, inertia: Inertia) -> None:
        element = add(self.top, "prim", type="Xform", name=name, id=name, schemas="PhysicsRigidBodyAPI PhysicsMassAPI")
        self.prims[name] = element
        self.place(element, self.pose[name])
        moments, axes = principal_axes(inertia)
        put(element, "@physics:mass", inertia.mass)
        put(element, "@physics:centerOfMass", inertia.com)
        put(element, "@physics:diagonalInertia", moments)
        put(element, "@physics:principalAxes", wxyz(axes))

    # ---- joints ------------------------------------------------------------------------------------------------------

    def frame(self, frame: FrameSpec) -> None:
        element = add(self._on(frame.body), "prim", type="Xform", name=frame.name)
        element.set("sarrus:frame", "true")
        self.place(element, frame.placement)

    def joint(self, link: Link) -> None:
        spec, kind = link.spec, link.kind
        ends = ((spec.parent, spec.at_parent), (spec.child, spec.at_child))
        if kind in ("Fixed", "Spherical"):
            element = self._element(spec.name, WORDS[kind], *ends)
            self._write(element, _numbers_in_file(self.uniform_numbers(spec) if kind == "Spherical" else {}, True))
        elif kind in WORDS or (
            kind in USD.joints and not has_passive(spec.joint) and spec.joint.velocity_limit is None
        ):
            self.note_missing(spec)
            general = [Step(spec.name, axis, self.numbers(link, axis)) for axis in link.axes if kind not in WORDS]
            self._axes(spec, kind, ends, general or list(self.steps(link)))
        else:
            self.note_missing(spec)
            self.joint_chain(link)

    def step(self, spec: JointSpec, step: Step, inner: tuple[str, Transform], outer: tuple[str, Transform]) -> None:
        self._axes(spec, "Revolute" if step.turns else "Prismatic", (inner, outer), [step])
        if step.pitch is not None:
            self.mimic(Mimic(step.name, spec.name, step.pitch, 0.0))

    def _axes(self, spec: JointSpec, kind: str, ends: Any, steps: list[Step]) -> None:
        """Write a joint of one axis, or a general joint with the free axes of a Cylindrical or Planar joint."""
        along, letter = next((s.axis.direction for s in steps[::-1] if s.turns), steps[0].axis.direction), "Z"
        if kind in WORDS and (along == np.abs(along).round()).all():
            letter = "XYZ"[int(np.argmax(along))]
        else:
            ends = tuple((body, place @ frame_along(along)) for body, place in ends)
        element = self._element(steps[0].name, WORDS.get(kind, "PhysicsJoint"), *ends)
        if kind in WORDS:
            put(element, "@physics:axis", letter)
            self.axes[steps[0].name] = element, steps[0].turns
            element.set("id", f"joint {steps[0].name}")
            self._numbers(element, element, steps[0], spec, "angular" if steps[0].turns else "linear")
            return
        self.note_planar(link_of(spec))
        names = {"Cylindrical": ("rotZ", "transZ"), "Planar": ("transX", "transY", "rotZ")}[kind]
        free = dict(zip(names, steps, strict=True))
        for axis in (f"{kind_of_axis}{x}" for kind_of_axis in ("trans", "rot") for x in "XYZ"):
            limit = add(element, "limit", name=axis)
            if axis in free:
                self._numbers(element, limit, free[axis], spec, axis)
            else:
                limit.attrib.update({"physics:low": "1", "physics:high": "-1"})

    def _numbers(self, joint: Element, limits: Element, step: Step, spec: JointSpec, instance: str) -> None:
        """Write the parameters of an axis: limits into `limits`, a motor into a new element, and all others into the joint's element."""
        values = {
            name: x for name, x in _numbers_in_file(step.numbers, step.turns).items() if np.isfinite(x) or name in ENDS
        }
        if spec.actuated and step.pitch is None:
            add(joint, "drive", name=instance)
        elif values.pop("effort_limit", None) is not None:
            self.losses.note(f"the effort limit of joint '{spec.name}', which is passive")
        if limits is not joint:
            drive = joint.findall("drive")[-1] if spec.actuated else joint
            places = {"lower": (limits, "low"), "upper": (limits, "high"), "effort_limit": (drive, "maxForce")}
            for name in values.keys() & places.keys():
                put(places[name][0], f"@physics:{places[name][1]}", values[name])
            return
        self._write(joint, values)

    def _write(self, joint: Element, values: Mapping[str, float]) -> None:
        USD.write(joint, values)
        if any(name.startswith("newton:") for name in joint.attrib):
            joint.set("schemas", "NewtonJointAPI")

    def _element(self, name: str, kind: str, *ends: tuple[str, Transform]) -> Element:
        element = add(self.top, "prim", type=kind, name=name)
        for side, (body, place) in enumerate(ends):
            if body != "ground":
                element.set(f"physics:body{side}", body)
            put(element, f"@physics:localPos{side}", place.translation)
            put(element, f"@physics:localRot{side}", wxyz(place.rotation))
        # coupled joints, as those of a screw, have coordinates, so that another joint of the loop closes it
        if name in self.robot.loop_joints and self.robot.joint(name).kind != "Helical":
            element.set("physics:excludeFromArticulation", "true")
        return element

    def mimic(self, mimic: Mimic) -> None:
        """Write the coupler; its offset is in degrees for hinges."""
        follower, leader, ratio, offset = mimic
        element, turns = self.axes[follower]
        coupled = self.coupled | {
            name: [self.axes[name][0].get(f"physics:body{side}", "ground") for side in (0, 1)]
            for name in (follower, leader)
        }
        bodies = {name for ends in coupled.values() for name in ends}
        if len(coupled) > len(bodies) - len(list(Connected(bodies, coupled.values()).groups(bodies))):
            self.losses.motion.append(
                f"the relation of '{follower}' and '{leader}' in a loop of screws and coupled joints only"
            )
            return
        self.coupled = coupled
        element.set("schemas", f"{element.get('schemas', '')} NewtonMimicAPI".strip())
        element.set("newton:mimicJoint", f"joint {leader}")
        put(element, "@newton:mimicCoef0", _in_file(offset, factor("deg, m", turns)) or 0.0)
        put(element, "@newton:mimicCoef1", ratio)

    def excluded(self) -> set[str]:
        # joints of several axes, and driven joints, cannot follow
        return self.followers | self.driven

    def other_constraint(self, spec: ConstraintSpec) -> bool:
        if not isinstance(spec, DistanceSpec):
            return False
        ends = ((body, Transform(translation=point)) for body, point in spec.points)
        element = self._element(spec.name, "PhysicsDistanceJoint", *ends)
        for name in ("min", "max"):
            put(element, f"@physics:{name}Distance", spec.length)
        return True

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def visual(self, link: Element | None, visual: VisualSpec) -> None:
        if (element := self._shape(visual, "visual")) is not None and visual.color is not None:
            for name, numbers in (("Color", visual.color[:3]), ("Opacity", visual.color[3:])):
                put(element, f"@primvars:display{name}", numbers)

    def collision(self, link: Element | None, spec: ShapeSpec) -> Element | None:
        if (element := self._shape(spec, spec.name)) is None:
            return None
        schemas = "PhysicsCollisionAPI" + " PhysicsMeshCollisionAPI" * (element.get("type") == "Mesh")
        element.set("schemas", schemas)
        if (spec.friction, spec.restitution) != (None, None):
            element.set("schemas", f"{schemas} MaterialBindingAPI")
            key = f"material of {spec.name}"
            material = add(self.top, "prim", type="Material", name=key, id=key, schemas="PhysicsMaterialAPI")
            mu = {"staticFriction": spec.friction, "dynamicFriction": spec.friction, "restitution": spec.restitution}
            for name, value in mu.items():
                if value is not None:
                    put(material, f"@physics:{name}", value)
            element.set("material:binding:physics", key)
        return element

    def _shape(self, spec: VisualSpec | ShapeSpec, name: str) -> Element | None:
        shape: Any = spec.shape
        if isinstance(spec, ShapeSpec) and isinstance(shape, ConvexPoints | Mesh):
            return self._hull(spec, shape)
        if type(shape) not in SHAPES:
            self.losses.note(no_shape(spec))
            return None
        element = add(self._on(spec.body), "prim", type=SHAPES[type(shape)], name=name)
        self.place(element, spec.placement)
        if isinstance(shape, Box):
            element.set("size", "1")
            put(element, "@scale", shape.size)
        else:
            for measure, field in (("radius", "radius"), ("height", "length")):
                if hasattr(shape, field):
                    put(element, f"@{measure}", getattr(shape, field))
            if not isinstance(shape, Sphere):
                element.set("axis", "Z")
        return element

    def _hull(self, spec: ShapeSpec, shape: ConvexPoints | Mesh) -> Element | None:
        """Write the convex hull of a collision shape as a mesh."""
        try:
            solid = hull_faces(np.array((hull(shape) if isinstance(shape, Mesh) else shape).points))
            reason = "which has no volume, or needs scipy"
        except ModelError:
            solid, reason = None, "whose file cannot be read"
        if solid is None:
            self.losses.note(f"{no_shape(spec)}, {reason}")
            return None
        element = add(self._on(spec.body), "prim", type="Mesh", name=spec.name)
        self.place(element, spec.placement)
        put(element, "@physics:approximation", "convexHull")
        points, triangles = solid
        numbers = {"points": points, "faceVertexCounts": np.full(len(triangles), 3), "faceVertexIndices": triangles}
        for name, values in numbers.items():
            put(element, f"@{name}", values)
        return element

    def place(self, element: Element, place: Transform) -> None:
        if place != IDENTITY:
            put(element, "@pose", [*place.translation, *Rotation(place.rotation).quaternion])


def _numbers_in_file(numbers: Mapping[str, Any], turns: bool) -> dict[str, float]:
    """Return the parameters of a joint in the units of the file."""
    inside = {row.field: _in_file(numbers.get(row.field), factor(row.unit, turns)) for row in USD.numbers}
    return {name: x for name, x in inside.items() if x is not None}


def _in_file(value: float | None, unit: float) -> float | None:
    """Return a number in the file's unit that reads back as the same double, if there is one."""
    if value is None or not np.isfinite(value):
        return value
    nearest = value / unit
    neighbours = np.nextafter(nearest, np.inf), np.nextafter(nearest, -np.inf)
    return next((x for x in (nearest, *neighbours) if x * unit == value), nearest)


save = partial(lowering.save, _Writer)
