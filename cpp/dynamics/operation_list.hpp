// The functions of a state by name, and what they take and give: enough for a caller that does not include the algorithms.
#pragma once

#include "../mechanism/tree.hpp"

namespace sarrus {

enum class ExpressedIn : int { frame, world, world_aligned };

/// A frame that sits at X in a body; `part` is the described body that it belongs to.
struct Frame {
  int body, part;
  Transform<double> X;
  ExpressedIn expressed_in;
};

/// What a call is given besides rows of numbers.
struct Parameters {
  Frame frame;
  int wrenches;
  const Frame* wrench_frame;
};

constexpr int max_inputs = 5;

/// Scalars that a kept motion holds: 24 a body, 12 a velocity (Kinematics lays itself over them).
inline int kept_motion_size(const Tree& t) { return 24 * t.bodies + 12 * t.nv; }

//  operation, inputs (`?` marks one that may be left out), axes of the result, has a frame, takes wrenches
//  an axis is q or v (as many as q or v has), a digit, p (parts), P (their inertial parameters) or k (a kept motion)
#define SARRUS_OPERATIONS(X)                                                       \
  X(inverse_dynamics, "q v a base_velocity? base_acceleration?", "v", false, true) \
  X(forward_dynamics, "q v tau", "v", false, true)                                 \
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

enum class Operation : int {
#define SARRUS_NAME(name, ...) name,
  SARRUS_OPERATIONS(SARRUS_NAME)
#undef SARRUS_NAME
      count
};
constexpr int operations = static_cast<int>(Operation::count);

}  // namespace sarrus
