"""Table of renamed public attributes, arguments, values and command-line options, and errors that contain the new name."""

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
    """Raise AttributeError with the new name if `name` is an old name in the module or class `owner`."""
    if name in RENAMED.get(owner, ()):
        raise AttributeError(f"{owner}.{name} is now {RENAMED[owner][name]}", name=name)


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
