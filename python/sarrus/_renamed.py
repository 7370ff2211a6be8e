"""Names until 0.1.0 and what they are now: an old name raises AttributeError with the new one."""

from __future__ import annotations

FLOATING, WORKS, SHAPES, RESULTS, SPECS = (
    f"sarrus.{name}." for name in ("floating", "works", "shapes", "results", "description")
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
        "christoffel_symbols": WORKS + "christoffel_symbols(robot, q)",
        "cog_jacobians": WORKS + "cog_jacobians(robot, q, v)",
        "constraint_forces": WORKS + "constraint_forces(robot, q, v, a)",
        "factors": WORKS + "poe_factors(robot, q, v)",
        "free_motions": WORKS + "free_motions(robot, q)",
        "joint_bases": WORKS + "joint_bases(robot, q, joint)",
        "loop_operational_inertia": WORKS + "operational_inertia(robot, q, frame)",
        "loop_operational_inertia_inverse": WORKS + "operational_inertia_inverse(robot, q, frame)",
        "mass_matrix_derivative": WORKS + "mass_matrix_derivative(robot, q)",
        "omega": WORKS + "omega(robot, q, frame)",
        "operational_inertia": WORKS + "operational_inertia(robot, q, frame)",
        "operational_inertia_inverse": WORKS + "operational_inertia_inverse(robot, q, frame)",
        "projected_dynamics": WORKS + "projected_dynamics(robot, q, v, tau)",
        "projections": WORKS + "projections(robot, q)",
        "reactions": WORKS + "reactions(robot, q, v, a), or Mechanism.joint_wrenches(q, v, a) of all joints",
        "reduced_dynamics": WORKS + "reduced_dynamics(robot, q, v)",
        "reference_member": WORKS + "reference_member(robot, q, v, tau)",
        "screws": WORKS + "joint_screws(robot, q)",
        "virtual_work": WORKS + "virtual_work(robot, q, v, a, tau)",
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
        "Factors": RESULTS + "PoeFactors",
        "PinLoads": RESULTS + "JointWrenches",
    },
    "sarrus.design": {"Path": "sarrus.design.FramePath"},
    "sarrus.interop": {
        f"{way}_{program}": f"sarrus.interop.{way}_{program}_state"
        for way in ("to", "from")
        for program in ("mujoco", "pinocchio")
    },
    "sarrus.rolling": {name: f"sarrus.rolling.{name}Surface" for name in ("Cylinder", "Plane", "Sphere", "Torus")},
}  # fmt: skip
