// The functions of a state by name, and what they take and give: enough for a caller that does not include the algorithms.
#pragma once

#include "../dynamics/frame.hpp"

namespace sarrus {

/// What a call is given besides rows of numbers.
struct Parameters {
  Frame frame;
  int wrenches;
  const Frame* wrench_frame;
  bool check;  // whether a state that is off the loops is to be told, instead of answered
};

constexpr int max_inputs = 6;

//  operation, inputs (`?` marks one that may be left out), axes of the result, has a frame, takes wrenches
//  an axis is q or v (as many as q or v has), a digit, p (parts), P (their inertial parameters) or k (a kept motion); of loops c (rows),
//  w (constraints), u (efforts), i (nv + rows) or m (nv + rows + 1), Q (nq + 1)
#define SARRUS_TREE_OPERATIONS(X)                                                  \
  X(inverse_dynamics, "q v a base_velocity? base_acceleration?", "v", false, true) \
  X(mass_matrix, "q", "vv", false, false)                                          \
  X(bias_forces, "q v", "v", false, true)                                          \
  X(gravity_forces, "q", "v", false, false)                                        \
  X(coriolis_matrix, "q v", "vv", false, false)                                    \
  X(mass_matrix_inverse, "q", "vv", false, false)                                  \
  X(operational_inertia_inverse, "q", "66", true, false)                           \
  X(omega, "q", "v6", true, false)                                                 \
  X(reactions, "q v a base_velocity? base_acceleration?", "p6", false, true)       \
  X(regressor, "q v a", "vP", false, false)                                        \
  X(pose, "q", "44", true, false)                                                  \
  X(velocity, "q v", "6", true, false)                                             \
  X(acceleration, "q v a", "6", true, false)                                       \
  X(jacobian, "q", "6v", true, false)                                              \
  X(jacobian_derivative, "q v", "6v", true, false)                                 \
  X(kinematics, "q v? a?", "k", false, false)                                      \
  X(known_pose, "known", "44", true, false)                                        \
  X(known_velocity, "known", "6", true, false)                                     \
  X(known_acceleration, "known", "6", true, false)                                 \
  X(known_jacobian, "known", "6v", true, false)                                    \
  X(known_jacobian_derivative, "known", "6v", true, false)                         \
  X(center_of_mass, "q", "3", false, false)                                        \
  X(center_of_mass_jacobian, "q", "3v", false, false)                              \
  X(momentum, "q v", "6", false, false)                                            \
  X(centroidal_momentum, "q v", "6", false, false)                                 \
  X(centroidal_momentum_matrix, "q", "6v", false, false)                           \
  X(centroidal_momentum_bias, "q v", "6", false, false)                            \
  X(kinetic_energy, "q v", "", false, false)                                       \
  X(potential_energy, "q", "", false, false)                                       \
  X(integrate, "q dv", "q", false, false)                                          \
  X(difference, "q0 q1", "v", false, false)                                        \
  X(normalize, "q", "q", false, false)                                             \
  X(motion_space, "q", "6v", false, false)

#define SARRUS_LOOP_OPERATIONS(X)                                       \
  X(forward_dynamics, "q v tau time? given?", "v", false, true)         \
  X(constrained_motion, "q v tau time? given?", "m", false, true)       \
  X(constraint_jacobian, "q time? given?", "cv", false, false)          \
  X(constraint_velocity, "q time? given?", "c", false, false)           \
  X(constraint_bias, "q v time? given?", "c", false, false)             \
  X(loop_residual, "q time? given?", "c", false, false)                 \
  X(loop_wrenches, "q multipliers time?", "w6", false, false)           \
  X(velocity_by_mass, "q v time? given?", "v", false, false)            \
  X(velocity_plain, "q v time? given?", "v", false, false)              \
  X(velocity_jump, "q v restitution? time? given?", "i", false, false)  \
  X(configuration_by_mass, "q weight? time? given?", "q", false, false) \
  X(configuration_plain, "q weight? time? given?", "q", false, false)   \
  X(least_motion, "q v rows weight time? given?", "v", false, false)    \
  X(close, "q scale steps time? given?", "Q", false, false)             \
  X(mobility_numbers, "q scale gains time? given?", "8", true, false)   \
  X(actuator_efforts, "q v a time? given?", "u", false, true)

#define SARRUS_OPERATIONS(X) SARRUS_TREE_OPERATIONS(X) SARRUS_LOOP_OPERATIONS(X)

enum class Operation : int {
#define SARRUS_NAME(name, ...) name,
  SARRUS_OPERATIONS(SARRUS_NAME)
#undef SARRUS_NAME
      count
};
constexpr int operations = static_cast<int>(Operation::count);

}  // namespace sarrus
