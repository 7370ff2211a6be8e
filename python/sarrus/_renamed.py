"""Tables of renamed public attributes, arguments, values and command-line options and of other programs' names; errors with the names to use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import EnumMeta
from typing import Any, NoReturn, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

FLOATING, FORMULATIONS, SHAPES, RESULTS, SPECS = (
    f"sarrus.{name}." for name in ("floating", "formulations", "shapes", "results", "description")
)

RENAMED = {
    "Mechanism": {
        "accelerations": "Mechanism.complete_acceleration",
        "actuation_jacobian": "Mechanism.actuation_matrix(q)",
        "configurations": "Mechanism.description.configurations",
        "is_realizable": "Mechanism.actuator_efforts(q, v, a, exact=True, return_status=True)[1] == 0",
        "joint_accelerations": "Mechanism.joint_states(q, v, a).a",
        "joint_coordinates": "Mechanism.joint_states(q).q",
        "joint_velocities": "Mechanism.joint_states(q, v).v",
        "loop_residual": "Mechanism.constraint_residual",
        "loop_wrenches": "LoopReactions.wrenches of Mechanism.forward_dynamics(..., return_reactions=True)",
        "loosened": "sarrus.without_redundant_constraints(robot)",
        "pin_loads": "Mechanism.joint_wrenches",
        "solver": "the last line of print(robot)",
        "without_redundant_constraints": "sarrus.without_redundant_constraints(robot)",
        "to_pinocchio": "sarrus.io.to_pinocchio(robot)",
        "velocities": "Mechanism.complete_velocity",
        "base_reaction": FLOATING + "base_reaction(robot, q, v, a)",
        "center_of_mass_jacobian": FLOATING + "center_of_mass_jacobian(robot, q)",
        "centroidal_momentum": FLOATING + "centroidal_momentum(robot, q, v)",
        "centroidal_momentum_matrix": FLOATING + "centroidal_momentum_matrix(robot, q)",
        "centroidal_momentum_bias": FLOATING + "centroidal_momentum_bias(robot, q, v)",
        "dynamic_singularity_map": FLOATING + "dynamic_singularity_map(robot, q, output)",
        "free_floating": FLOATING + "equations_of_motion(robot, q, v)",
        "free_floating_motion": FLOATING + "motion(robot, q, velocity, times)",
        "free_floating_path": FLOATING + "path(robot, q, way_points, times)",
        "generalized_jacobian": FLOATING + "generalized_jacobian(robot, q, frame)",
        "generalized_jacobian_derivative": FLOATING + "generalized_jacobian_derivative(robot, q, v, frame)",
        "momentum_about": FLOATING + "momentum_about(robot, q, v, point)",
        "momentum_velocity": FLOATING + "momentum_velocity(robot, q, v, momentum)",
        "reaction_null_space": FLOATING + "reaction_null_space(robot, q)",
        "resolved_rate": FLOATING + "resolved_rate(robot, q, motions)",
        "christoffel_symbols": FORMULATIONS + "christoffel_symbols(robot, q)",
        "cog_jacobians": FORMULATIONS + "cog_jacobians(robot, q, v)",
        "constraint_forces": FORMULATIONS + "constraint_forces(robot, q, v, a)",
        "factors": FORMULATIONS + "poe_factors(robot, q, v)",
        "free_motions": FORMULATIONS + "free_motions(robot, q)",
        "joint_bases": FORMULATIONS + "joint_bases(robot, q, joint)",
        "loop_operational_inertia": FORMULATIONS + "operational_inertia(robot, q, frame)",
        "loop_operational_inertia_inverse": FORMULATIONS + "operational_inertia_inverse(robot, q, frame)",
        "mass_matrix_derivative": FORMULATIONS + "mass_matrix_derivative(robot, q)",
        "omega": FORMULATIONS + "omega(robot, q, frame)",
        "operational_inertia": FORMULATIONS + "operational_inertia(robot, q, frame)",
        "operational_inertia_inverse": FORMULATIONS + "operational_inertia_inverse(robot, q, frame)",
        "projected_dynamics": FORMULATIONS + "projected_dynamics(robot, q, v, tau)",
        "projections": FORMULATIONS + "projections(robot, q)",
        "reactions": FORMULATIONS + "reactions(robot, q, v, a), or Mechanism.joint_wrenches(q, v, a) of all joints",
        "reduced_dynamics": FORMULATIONS + "reduced_dynamics(robot, q, v)",
        "reference_member": FORMULATIONS + "reference_member(robot, q, v, tau)",
        "screws": FORMULATIONS + "joint_screws(robot, q)",
        "virtual_work": FORMULATIONS + "virtual_work(robot, q, v, a, tau)",
    },
    "sarrus": {
        **{name: SHAPES + name for name in ("Box", "Cylinder", "Mesh", "Sphere")},
        **{name: SPECS + name for name in (
            "BodySpec", "CouplerSpec", "DistanceSpec", "FrameSpec", "JointSpec", "PfaffianSpec", "RollingSpec", "SpringSpec", "VisualSpec",
        )},
        **{name: RESULTS + name for name in (
            "ActuationMobility", "CogJacobians", "Constraint", "DynamicSingularityMap", "EndPoint", "FreeFloatingForm", "FreeFloatingMotion",
            "Joint", "Kinematics", "Linearization", "LoopReactions", "Mobility", "MobilityMap", "Modes", "ProjectedEquations",
            "ReactionNullSpace", "ReducedForm", "ReferenceMemberSolution", "Status", "Sweep", "View",
        )},
        "from_mujoco": "sarrus.io.from_mujoco(model)",
        "from_pinocchio": "sarrus.io.from_pinocchio(model, constraints)",
        "BranchEnd": "sarrus.PathTrackingError",
        "Factors": RESULTS + "PoeFactors",
        "PinLoads": RESULTS + "JointWrenches",
        "works": "sarrus.formulations",
    },
    "sarrus.control": {
        old: f"sarrus.control.{new}"
        for old, new in {
            "ActuatorDynamics": "ActuatorModel",
            "Contact": "CompliantContact",
            "Efforts": "EffortTable",
            "PrescribedEffort": "FeedforwardEffort",
            "Sampled": "SampleAndHold",
            "ShapeContacts": "CollisionContacts",
            "Stiction": "LuGreFriction",
        }.items()
    },
    "Dimensions": {"led": "Dimensions.driven"},
    "sarrus.errors": {"BranchEnd": "sarrus.PathTrackingError"},
    "JointWrenches": {"not_unique": "JointWrenches.indeterminate"},
    "JointWrenchHistory": {"not_unique": "JointWrenchHistory.indeterminate"},
    "PinLoad": {"not_unique": "PinLoad.indeterminate"},
    "PathTrackingError": {"last": "PathTrackingError.last_configuration"},
    "Status": {"UNSOUND": "Status.INVALID_STATE", "CONTRADICTORY": "Status.INCONSISTENT_CONSTRAINTS"},
    **{
        owner: {"z": f"{owner}.internal_state"} for owner in ("Sensitivities", "StateCotangents", "Sweep", "Trajectory")
    },
    "sarrus.design": {"Path": "sarrus.design.FramePath"},
    "sarrus.interop": {
        f"{way}_{program}": f"sarrus.interop.{way}_{program}_state"
        for way in ("to", "from")
        for program in ("mujoco", "pinocchio")
    },
    "sarrus.rolling": {name: f"sarrus.rolling.{name}Surface" for name in ("Cylinder", "Plane", "Sphere", "Torus")},
}  # fmt: skip

# names of other programs -> the names here
_WRENCHES = "wrenches= of the functions of a mechanism, or sarrus.simulate(..., wrenches={frame: wrench})"
_BUSHING = 'a joint sarrus.Gimbal("rx ry rz tx ty tz", stiffness=..., damping=...), or the force element sarrus.control.Bushing'
_PLAY = "sarrus.control.PinClearance"
_GEAR = "Builder.add_coupler(name, {joint: coefficient, ...})"
_CAM = "Builder.add_coupler with a function of sarrus.laws; profiles by sarrus.cams.cam_profile"
_MOTOR = "Builder.add_joint(..., actuated=True)"
_SWITCH = "sarrus.control.Clutch, sarrus.control.Lock or sarrus.control.Weld, in the controllers of sarrus.simulate"
_LOOP = "Builder.add_joint(...): a joint between any two bodies may close a loop"
_IK = "Mechanism.inverse_kinematics({frame: target})"
SYNONYMS = {
    "sarrus": {
        **dict.fromkeys(("Hinge", "Pin", "RevoluteJoint", "Continuous"), "sarrus.Revolute"),
        **dict.fromkeys(("Slider", "PrismaticJoint", "Slide", "Translational"), "sarrus.Prismatic"),
        **dict.fromkeys(("Ball", "BallJoint", "SphericalJoint"), "sarrus.Spherical"),
        **dict.fromkeys(("Weld", "WeldJoint", "FixedJoint", "Rigid"), "sarrus.Fixed; sarrus.control.Weld for a part of a run"),
        **dict.fromkeys(("Clutch", "Brake", "Latch"), _SWITCH),
        **dict.fromkeys(("Screw", "ScrewJoint"), "sarrus.Helical"),
        **dict.fromkeys(("Cardan", "Hooke", "UJoint", "UniversalJoint"), "sarrus.Universal"),
        **dict.fromkeys(("Floating", "FreeJoint", "FreeFlyer", "SixDof"), "sarrus.Free"),
        "Bushing": _BUSHING,
        **dict.fromkeys(("Clearance", "PinClearance", "Play"), f"{_PLAY} of a pin, or sarrus.design.Clearance to singular positions"),
        **dict.fromkeys(("GasSpring", "GasStrut"), "sarrus.control.GasSpring"),
        "Gear": _GEAR,
        "Cam": _CAM,
        **dict.fromkeys(("Spring", "Damper"), "Builder.add_spring, or stiffness= and damping= of joints such as sarrus.Revolute"),
        **dict.fromkeys(("Rod", "Distance"), "Builder.add_distance"),
        **dict.fromkeys(("Body", "Link", "RigidBody"), "Builder.add_body"),
        "Motor": _MOTOR,
        **dict.fromkeys(("Model", "Robot", "System", "MultibodyPlant"), "sarrus.Builder, or sarrus.load(path)"),
        **dict.fromkeys(("Simulation", "Simulator"), "sarrus.simulate(robot, q, v, duration)"),
        **dict.fromkeys(("from_urdf", "load_urdf", "from_mjcf", "load_mjcf", "from_file"), "sarrus.load(path)"),
        **dict.fromkeys(("SE3", "Pose"), "sarrus.Transform"),
        "SO3": "sarrus.Rotation",
    },
    "sarrus.control": {
        **dict.fromkeys(("PD", "Servo"), "sarrus.control.PID(joint, proportional=..., derivative=...)"),
        **dict.fromkeys(("Torque", "ConstantEffort", "Motor"), "sarrus.control.FeedforwardEffort(joint, effort)"),
        **dict.fromkeys(("Force", "Wrench", "ExternalForce"), _WRENCHES),
        "Friction": "friction= of joints such as sarrus.Revolute, or sarrus.control.LuGreFriction",
        **dict.fromkeys(("Spring", "Damper"), "Builder.add_spring, or stiffness= and damping= of joints such as sarrus.Revolute"),
        **dict.fromkeys(("Brake", "Latch", "Gripper", "Docking"), "sarrus.control.Lock(joint, capacity=...), sarrus.control.Weld(parent, child)"),
        **dict.fromkeys(("Clearance", "Play", "Backlash"), f"{_PLAY}, or sarrus.control.EndStop"),
        **dict.fromkeys(("GasStrut", "Strut"), "sarrus.control.GasSpring"),
        "Gravity": "sarrus.control.GravityCompensation; gravity= of sarrus.Builder",
    },
    "Builder": {
        **dict.fromkeys(("add_link", "add_rigid_body", "body"), "Builder.add_body"),
        **dict.fromkeys(("add_revolute", "add_hinge", "add_pin"), "Builder.add_joint(name, sarrus.Revolute(axis), parent, child)"),
        **dict.fromkeys(("add_prismatic", "add_slider"), "Builder.add_joint(name, sarrus.Prismatic(axis), parent, child)"),
        **dict.fromkeys(("add_spherical", "add_ball"), "Builder.add_joint(name, sarrus.Spherical(), parent, child)"),
        **dict.fromkeys(("add_weld", "add_fixed", "weld"), "Builder.add_joint(name, sarrus.Fixed(), parent, child)"),
        **dict.fromkeys(("add_loop", "close_loop", "add_loop_joint", "add_closure"), _LOOP),
        **dict.fromkeys(("add_gear", "add_mimic", "add_belt"), _GEAR),
        **dict.fromkeys(("add_differential", "add_gearbox"), "Builder.add_transmission(name, motors, joints, matrix)"),
        "add_cam": _CAM,
        "add_bushing": f"Builder.add_joint with {_BUSHING}",
        **dict.fromkeys(("add_motor", "add_actuator"), _MOTOR),
        **dict.fromkeys(("add_force", "add_torque", "add_wrench"), _WRENCHES),
        "add_damper": "Builder.add_spring(..., stiffness=0.0, damping=...), or damping= of joints such as sarrus.Revolute",
        "add_torsion_spring": "stiffness= and rest= of joints such as sarrus.Revolute",
        "add_rod": "Builder.add_distance",
        **dict.fromkeys(("add_flexible_body", "add_flexible_link", "add_flexure"), "Builder.add_beam"),
        **dict.fromkeys(("add_collision", "add_geometry", "add_contact"), "Builder.add_shape, and Builder.set_contact"),
        "add_mesh": "Builder.add_visual, or Builder.add_shape for contact",
        "set_gravity": "sarrus.Builder(name, gravity=...)",
        **dict.fromkeys(("finalize", "compile", "finish"), "Builder.build()"),
    },
    "Mechanism": {
        **dict.fromkeys(("simulate", "step", "run"), "sarrus.simulate(robot, q, v, duration)"),
        **dict.fromkeys(("fk", "forward_kinematics", "transform", "position"), "Mechanism.pose(q, frame)"),
        **dict.fromkeys(("ik", "solve_ik"), _IK),
        "jac": "Mechanism.jacobian(q, frame)",
        **dict.fromkeys(("id", "rnea"), "Mechanism.inverse_dynamics(q, v, a)"),
        **dict.fromkeys(("fd", "aba"), "Mechanism.forward_dynamics(q, v, tau)"),
        **dict.fromkeys(("crba", "inertia_matrix", "M"), "Mechanism.mass_matrix(q)"),
        **dict.fromkeys(("dof", "dofs", "ndof"), "Mechanism.mobility(q), Mechanism.nv without loops"),
        **dict.fromkeys(("links", "body_names"), "Mechanism.bodies"),
        "joint_names": "Mechanism.joints",
        **dict.fromkeys(("show", "view", "visualize"), "sarrus.view(robot)"),
        **dict.fromkeys(("draw", "animate"), "Mechanism.plot(q)"),
        "com": "Mechanism.center_of_mass(q)",
        "energy": "Mechanism.kinetic_energy(q, v), Mechanism.potential_energy(q)",
        "gravity_vector": "Mechanism.gravity_forces(q)",
        **dict.fromkeys(("home", "solve"), "Mechanism.assemble()"),
        **dict.fromkeys(("export", "to_urdf", "to_mjcf"), "Mechanism.save(path)"),
        "equilibrium": "sarrus.equilibrium(robot)",
        **dict.fromkeys(("add_body", "add_joint", "add_frame"), "Mechanism.to_builder(), and the method of the builder"),
    },
}  # fmt: skip

# old -> new names of force elements in stored checkpoints and sweeps
ELEMENTS = {"HeldEfforts": "ZeroOrderHold"} | {
    old: new.rpartition(".")[2] for old, new in RENAMED["sarrus.control"].items()
}
# old -> new modules of classes in stored runs
MODULES = {
    "sarrus.control.interpolation": "sarrus.control.path",
    "sarrus.control.sampling": "sarrus.control.elements",
    "sarrus.control.task_control": "sarrus.control.tasks",
}
VALUES = {("limits", "stop"): "enforce"}  # (argument, old value) -> new value
OPTIONS = {"--motion": "--prescribe", "--run": "--trajectory", "--show-what": "--plot-quantity"}  # of the command line


def raise_renamed(owner: str, name: str) -> None:
    """Raise AttributeError with the name to use if `name` is an old name in the module or class `owner`, or the name of another program."""
    if name in RENAMED.get(owner, ()):
        raise AttributeError(f"{owner}.{name} is now {RENAMED[owner][name]}", name=name)
    if name in SYNONYMS.get(owner, ()):
        raise AttributeError(f"{owner} has no attribute '{name}': use {SYNONYMS[owner][name]}", name=name)


def renamed_attribute(self: object, name: str) -> NoReturn:
    """Raise AttributeError, with the new name if there is one: ``__getattr__`` of classes with renamed attributes."""
    kind = type(self).__name__
    raise_renamed(kind, name)
    raise AttributeError(f"'{kind}' object has no attribute '{name}'", name=name, obj=self)


class RenamedMembers(EnumMeta):
    """Metaclass of enumerations with renamed members."""

    def __getattr__(cls, name: str) -> Any:
        raise_renamed(cls.__name__, name)
        if name in cls._member_map_:  # Python 3.10 accesses members through this method
            return cls._member_map_[name]
        raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'", name=name, obj=cls)


def renamed_arguments(**new_names: str) -> Callable[[F], F]:
    """Return a decorator that raises TypeError with the new name if an argument is passed by an old one."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            for old in new_names.keys() & keywords.keys():
                raise TypeError(f"{function.__name__}(): {old}= is now {new_names[old]}=")
            return function(*arguments, **keywords)

        return cast(F, checked)

    return decorate


def renamed_value(argument: str, value: object) -> str:
    """Return the end of an error message about an invalid value of an argument: if the value has been renamed, its new name, otherwise ""."""
    new = VALUES.get((argument, value)) if isinstance(value, str) else None
    return f"; {value!r} is now {new!r}" if new else ""


def with_new_kinds(stored: Any) -> Any:
    """Return the force elements from a file, in which old names of kinds are replaced by the new ones."""
    if isinstance(stored, dict):
        kind = stored.get("kind")
        new = {"kind": ELEMENTS[kind]} if isinstance(kind, str) and kind in ELEMENTS else {}
        return {key: with_new_kinds(value) for key, value in stored.items()} | new
    return type(stored)(map(with_new_kinds, stored)) if type(stored) in (list, tuple) else stored


def renamed_options(message: str) -> str:
    """Return an error message of the command line, extended by the new names of old options in it."""
    return "; ".join([message, *(f"{old} is now {new}" for old, new in OPTIONS.items() if old in message.split())])
