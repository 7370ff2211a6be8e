// Functions of a state by name, with their inputs and results, for callers that do not include the algorithms.
#pragma once

#include "../control/quadratic_programme.hpp"
#include "../dynamics/frame.hpp"

namespace sarrus {

/// Arguments of a call in addition to rows of values.
struct Parameters {
  Frame frame;
  int wrenches;
  const Frame* wrench_frame;
  bool check;  // true: a state off the loops yields an error status
  bool exact = false;  // true: a motion that the loops forbid yields an error status
  int inputs = 1;  // number of waypoints of a branch
  QuadraticProgramme solve = nullptr;
};

constexpr int max_inputs = 7;

/// Flags: properties of an operation.
namespace fact {
enum Fact : unsigned {
  at_frame = 1,       // takes a frame, and a choice of axes for the result
  loads = 2,          // takes external wrenches
  divides = 4,        // solves an equation: a valid state may have no solution
  needs_mass = 8,     // no result exists if the mechanism has no mass
  any_length = 16,    // takes quaternions of any length
  checks_loops = 32,  // requires a state on the loops; the caller may disable this check
  closes_loops = 64,  // projects a state onto the loops; there is no result if loops remain open
  dense = 128,        // uses an nv x nv matrix internally
  row_rates = 256,    // for constraint rows that depend on q, the input contains their rates instead of the rows
  on_loops = 1024,    // solves an equation with loops, in which bodies may be massless
  ends = 4096,  // valid results may contain NaN in their last entries
  checks_motion = 2048,  // on request, checks that the loops allow a motion
  floats = 512        // only for floating mechanisms, whose base is connected to the ground by a free joint only
};
}

//  operation, inputs (`?`: optional), axes of the result, facts. An axis is a digit, or a letter for its length: q nq, v nv, p bodies, P 10 p,
//  u efforts, k cached kinematics, c constraint rows, w constraints, l p + w, i v + c, m v + c + 3, C c + 6 l, Q q + 1, A q + 4, F v v + 1, B u + 1,
//  S q + 2 v + 1, G 3 v + P, H v + P, W waypoints, J and K coordinates and velocities of loop joints, j joint velocities of a floating mechanism;
//  in operation_sizes.hpp: E equilibrium, R reduced dynamics, D derivatives, L linear equations (by `independent`), N dimensions
#define SARRUS_TREE_OPERATIONS(X)                                            \
  X(inverse_dynamics, "q v a base_velocity? base_acceleration?", "v", loads) \
  X(mass_matrix, "q", "vv", 0)                                               \
  X(bias_forces, "q v", "v", loads)                                          \
  X(gravity_forces, "q", "v", 0)                                             \
  X(coriolis_matrix, "q v", "vv", 0)                                         \
  X(mass_matrix_inverse, "q", "vv", divides)                                 \
  X(operational_inertia_inverse, "q", "66", at_frame | divides | dense)      \
  X(omega, "q", "v6", at_frame | divides | dense)                            \
  X(reactions, "q v a base_velocity? base_acceleration?", "p6", loads)       \
  X(regressor, "q v a", "vP", 0)                                             \
  X(pose, "q", "44", at_frame)                                               \
  X(velocity, "q v", "6", at_frame)                                          \
  X(acceleration, "q v a", "6", at_frame)                                    \
  X(jacobian, "q", "6v", at_frame)                                           \
  X(jacobian_derivative, "q v", "6v", at_frame)                              \
  X(kinematics, "q v? a?", "k", 0)                                           \
  X(cached_pose, "cached", "44", at_frame)                                   \
  X(cached_velocity, "cached", "6", at_frame)                                \
  X(cached_acceleration, "cached", "6", at_frame)                            \
  X(cached_jacobian, "cached", "6v", at_frame)                               \
  X(cached_jacobian_derivative, "cached", "6v", at_frame)                    \
  X(center_of_mass, "q", "3", needs_mass)                                    \
  X(center_of_mass_jacobian, "q", "3v", needs_mass)                          \
  X(momentum, "q v", "6", 0)                                                 \
  X(centroidal_momentum, "q v", "6", needs_mass)                             \
  X(centroidal_momentum_matrix, "q", "6v", needs_mass)                       \
  X(centroidal_momentum_bias, "q v", "6", needs_mass)                        \
  X(generalized_jacobian, "q", "6j", at_frame | floats)                      \
  X(generalized_jacobian_derivative, "q v", "6j", at_frame | floats)         \
  X(momentum_velocity, "q v momentum?", "v", floats)                         \
  X(kinetic_energy, "q v", "", 0)                                            \
  X(potential_energy, "q", "", 0)                                            \
  X(integrate, "q dv", "q", 0)                                               \
  X(difference, "q0 q1", "v", 0)                                             \
  X(coordinate_rate, "q v", "q", 0)                                          \
  X(coordinate_acceleration, "q v a", "q", 0)                                \
  X(normalize, "q", "q", any_length)                                         \
  X(motion_space, "q", "6v", 0)                                              \
  X(christoffel_symbols, "q", "vvv", 0)                                      \
  X(mass_matrix_derivative, "q", "vvv", 0)                                   \
  X(joint_screws, "q", "v6", 0)                                              \
  X(bracket, "dv v", "v", 0)

#define SARRUS_LOOP_OPERATIONS(X)                                                                                  \
  X(forward_dynamics, "q v tau time? pfaffian_values?", "v", loads | divides | on_loops | checks_loops)            \
  X(constrained_motion, "q v tau time? pfaffian_values?", "m", loads | divides | on_loops | checks_loops)          \
  X(constraint_jacobian, "q time? pfaffian_values?", "cv", 0)                                                      \
  X(constraint_jacobian_derivative, "q v time? pfaffian_values?", "cv", row_rates)                                 \
  X(constraint_velocity, "q time? pfaffian_values?", "c", 0)                                                       \
  X(constraint_bias, "q v time? pfaffian_values?", "c", 0)                                                         \
  X(constraint_residual, "q time? pfaffian_values?", "c", 0)                                                       \
  X(loop_wrenches, "q multipliers time?", "w6", 0)                                                                 \
  X(loop_joint_wrenches, "q v a", "w6", 0)                                                                         \
  X(effort_wrenches, "q loop_efforts time?", "w6", 0)                                                              \
  X(joint_loads, "q v a multipliers loop_efforts time?", "l6", loads)                                              \
  X(least_reactions, "q multipliers loads compliance? least_pivot? time? pfaffian_values?", "C", 0)                \
  X(loop_joint_coordinates, "q near? time?", "J", 0)                                                               \
  X(loop_joint_velocities, "q v near? time?", "K", 0)                                                              \
  X(loop_joint_accelerations, "q v a near? time?", "K", 0)                                                         \
  X(loop_joint_jacobian, "q time?", "Kv", 0)                                                                       \
  X(velocity_by_mass, "q v time? pfaffian_values?", "v", divides | on_loops)                                       \
  X(velocity_plain, "q v time? pfaffian_values?", "v", 0)                                                          \
  X(velocity_jump, "q v restitution? time? pfaffian_values?", "i", divides | on_loops)                             \
  X(configuration_by_mass, "q weight? time? pfaffian_values?", "q", closes_loops)                                  \
  X(configuration_plain, "q weight? time? pfaffian_values?", "q", closes_loops)                                    \
  X(least_motion, "q v a? weight rates? time? pfaffian_values?", "v", 0)                                           \
  X(close, "q scale steps time? pfaffian_values?", "Q", 0)                                                         \
  X(branch, "q prescribed scale steps waypoints", "Wq", ends)                                                      \
  X(move_along_branch, "q prescribed scale steps waypoints", "A", 0)                                               \
  X(equilibrium, "q tau? scale steps time? pfaffian_values?", "E", dense)                                          \
  X(mobility_numbers, "q scale gains time? pfaffian_values?", "8", at_frame)                                       \
  X(actuator_efforts, "q v a time? pfaffian_values? weights? preload?", "u", loads | checks_loops | checks_motion) \
  X(effort_regressor, "q v a time? pfaffian_values?", "uH", 0)                                                     \
  X(loop_jacobian, "q time? pfaffian_values?", "6u", at_frame)                                                     \
  X(loop_motions, "q scale time? pfaffian_values?", "F", dense)                                                    \
  X(reduced_dynamics, "q v scale coordinates? time? pfaffian_values? pfaffian_rates?", "R", at_frame | loads)      \
  X(path_motion, "piece scale? guide? time?", "S", dense)

#define SARRUS_DERIVATIVE_OPERATIONS(X)                                                                                         \
  X(inverse_dynamics_derivatives, "q v a base_velocity? base_acceleration?", "3vv", loads | dense)                              \
  X(forward_dynamics_derivatives, "q v tau tangent time? pfaffian_values?", "D",                                                \
    loads | divides | on_loops | checks_loops | dense)                                                                          \
  X(multiplier_derivatives, "q v tau tangent time? pfaffian_values?", "3cv", loads | divides | on_loops | checks_loops | dense) \
  X(linear_equations, "q v tau independent? scale time? pfaffian_values?", "L",                                                 \
    loads | divides | on_loops | checks_loops | dense)                                                                          \
  X(inverse_dynamics_jvp, "q v a displacements base_velocity? base_acceleration?", "v", loads)                                  \
  X(forward_dynamics_jvp, "q v tau displacements tangent time? pfaffian_values?", "v",                                          \
    loads | divides | on_loops | checks_loops)                                                                                  \
  X(inverse_dynamics_vjp, "q v a cotangent base_velocity? base_acceleration?", "G", loads)                                      \
  X(forward_dynamics_vjp, "q v tau cotangent tangent time? pfaffian_values?", "G", loads | divides | on_loops | checks_loops)   \
  X(inverse_dynamics_by_dimensions, "q v a cotangent base_velocity? base_acceleration?", "N", loads)                            \
  X(forward_dynamics_by_dimensions, "q v tau cotangent tangent time? pfaffian_values?", "2N",                                   \
    loads | divides | on_loops | checks_loops)                                                                                  \
  X(actuator_efforts_vjp, "q v a effort_cotangent time? pfaffian_values? weights?", "G", loads | on_loops | checks_loops)

#define SARRUS_CONTROL_OPERATIONS(X) X(bounded_efforts, "q v a limits time? pfaffian_values? sharing?", "B", loads)

// derivatives of functions of a state with respect to displacements of each input: rate_kernels.cpp
#define SARRUS_RATE_OPERATIONS(X)                                             \
  X(pose_derivatives, "q", "44v", at_frame | dense)                           \
  X(velocity_derivatives, "q v", "26v", at_frame | dense)                     \
  X(acceleration_derivatives, "q v a", "36v", at_frame | dense)               \
  X(momentum_derivatives, "q v", "26v", dense)                                \
  X(centroidal_momentum_derivatives, "q v", "26v", needs_mass | dense)        \
  X(gravity_forces_derivatives, "q", "vv", 0)                                 \
  X(kinetic_energy_derivatives, "q v", "2v", dense)                           \
  X(potential_energy_derivatives, "q", "v", dense)                            \
  X(constraint_residual_derivatives, "q time? pfaffian_values?", "cv", dense) \
  X(constraint_rates_derivatives, "q v time? pfaffian_values?", "2cv", dense) \
  X(integrate_derivatives, "q dv", "2vv", dense)                              \
  X(difference_derivatives, "q0 q1", "2vv", dense)                            \
  X(coordinates_by_tangent, "q", "qv", 0)                                     \
  X(tangent_by_coordinates, "q", "vq", 0)

#define SARRUS_OPERATIONS(X) \
  SARRUS_TREE_OPERATIONS(X)  \
  SARRUS_LOOP_OPERATIONS(X) SARRUS_DERIVATIVE_OPERATIONS(X) SARRUS_CONTROL_OPERATIONS(X) SARRUS_RATE_OPERATIONS(X)

enum class Operation : int {
#define SARRUS_NAME(name, ...) name,
  SARRUS_OPERATIONS(SARRUS_NAME)
#undef SARRUS_NAME
      count
};
constexpr int operations = static_cast<int>(Operation::count);

}  // namespace sarrus
