// Kernels for functions of a state of trees.
#pragma once

#include "../dynamics/bodies.hpp"
#include "../dynamics/christoffel.hpp"
#include "../dynamics/configuration.hpp"
#include "../dynamics/coriolis.hpp"
#include "../dynamics/frames.hpp"
#include "../dynamics/free_floating.hpp"
#include "../dynamics/ltdl.hpp"
#include "../dynamics/momentum.hpp"
#include "../dynamics/rnea.hpp"
#include "call.hpp"

namespace sarrus {

template <class T> SARRUS_INLINE void store3(const Vec3<T>& x, T* out) {
  for (int i = 0; i < 3; ++i) out[i] = x(i);
}

SARRUS_KERNEL(inverse_dynamics,
              rnea(tree, arena, RneaInput<T>{in[0], in[1], in[2], {in[3], in[4]}, call.wrenches(), call.wrench}, out);)
SARRUS_KERNEL(mass_matrix, crba(tree, arena, in[0], out);)
SARRUS_KERNEL(bias_forces, {
  const T* rest = zeros<T>(arena, tree.nv);
  rnea(tree, arena, RneaInput<T>{in[0], in[1], rest, {}, call.wrenches(), call.wrench}, out);
})
SARRUS_KERNEL(gravity_forces, {
  const T* rest = zeros<T>(arena, tree.nv);
  Tree without = tree;  // gravity forces exclude the forces of joints and springs
  without.has_joint_forces = without.ties_links = false;
  rnea(without, arena, RneaInput<T>{in[0], rest, rest}, out);
})
SARRUS_KERNEL(coriolis_matrix, {
  coriolis(tree, arena, call.motion(in[0], in[1], none), out);
  if (tree.loops.rotor_rows > 0) add_loop_armature(tree, arena, in[0], in[1], out);
})
SARRUS_KERNEL(mass_matrix_inverse, mass_matrix_inverse(tree, arena, in[0], out);)
SARRUS_KERNEL(operational_inertia_inverse, operational_inertia_inverse(tree, arena, in[0], call.frame(), out);)
SARRUS_KERNEL(omega, omega(tree, arena, in[0], call.frame(), out);)
SARRUS_KERNEL(reactions,
              reactions(tree, arena, call.motion(in[0], in[1], in[2], {in[3], in[4]}), call.wrenches(), call.wrench, out);)
SARRUS_KERNEL(regressor, regressor(tree, call.motion(in[0], in[1], in[2]), out);)

SARRUS_KERNEL(pose, frame_pose(call.motion(in[0], none, none), call.frame(), out);)
SARRUS_KERNEL(velocity, frame_velocity(call.motion(in[0], in[1], none), call.frame(), out);)
SARRUS_KERNEL(acceleration, frame_acceleration(call.motion(in[0], in[1], in[2]), call.frame(), out);)
SARRUS_KERNEL(jacobian, frame_jacobian<T>(tree, call.motion(in[0], none, none), call.frame(), out, nullptr);)
SARRUS_KERNEL(jacobian_derivative, frame_jacobian<T>(tree, call.motion(in[0], in[1], none), call.frame(), nullptr, out);)

SARRUS_KERNEL(kinematics, { kinematics(tree, arena, in[0], in[1], in[2], Kinematics<T>::over(tree, out)); })
SARRUS_KERNEL(cached_pose, frame_pose(call.cached_motion(), call.frame(), out);)
SARRUS_KERNEL(cached_velocity, frame_velocity(call.cached_motion(), call.frame(), out);)
SARRUS_KERNEL(cached_acceleration, frame_acceleration(call.cached_motion(), call.frame(), out);)
SARRUS_KERNEL(cached_jacobian, frame_jacobian<T>(tree, call.cached_motion(), call.frame(), out, nullptr);)
SARRUS_KERNEL(cached_jacobian_derivative, frame_jacobian<T>(tree, call.cached_motion(), call.frame(), nullptr, out);)

SARRUS_KERNEL(center_of_mass, store3(center_of_mass(tree, call.motion(in[0], none, none)), out);)
SARRUS_KERNEL(center_of_mass_jacobian, {
  // the linear rows of the momentum matrix, divided by the mass
  const Kinematics<T> k = call.motion(in[0], none, none);
  T* A = arena.take<T>(6 * tree.nv);
  momentum_matrix(tree, arena, k, center_of_mass(tree, k), A);
  const T share = T(1.0) / total_mass<T>(tree);
  for (int i = 0; i < 3 * tree.nv; ++i) out[i] = A[3 * tree.nv + i] * share;
})
SARRUS_KERNEL(momentum, store(momentum(tree, call.motion(in[0], in[1], none), zero3<T>()), out);)
SARRUS_KERNEL(centroidal_momentum, {
  const Kinematics<T> k = call.motion(in[0], in[1], none);
  store(momentum(tree, k, center_of_mass(tree, k)), out);
})
SARRUS_KERNEL(centroidal_momentum_matrix, {
  const Kinematics<T> k = call.motion(in[0], none, none);
  momentum_matrix(tree, arena, k, center_of_mass(tree, k), out);
})
SARRUS_KERNEL(centroidal_momentum_bias, {
  const Kinematics<T> k = call.motion(in[0], in[1], none);
  store(momentum_rate(tree, k, center_of_mass(tree, k)), out);
})
SARRUS_KERNEL(generalized_jacobian, {
  if (!tree.floats) return T(no_answer);
  generalized_jacobian(tree, arena, in[0], call.frame(), out);
})
SARRUS_KERNEL(generalized_jacobian_derivative, {
  if (!tree.floats) return T(no_answer);
  generalized_jacobian_derivative(tree, arena, in[0], in[1], call.frame(), out);
})
SARRUS_KERNEL(momentum_velocity, {
  for (int i = 0; i < tree.nv; ++i) out[i] = in[1][i];
  if (!tree.floats) return T(no_answer);
  momentum_velocity(tree, arena, in[0], in[1], in[2], out);
})
SARRUS_KERNEL(kinetic_energy, out[0] = kinetic_energy(tree, call.motion(in[0], in[1], none), in[1]);)
SARRUS_KERNEL(potential_energy, out[0] = potential_energy(tree, call.motion(in[0], none, none), in[0]);)

SARRUS_KERNEL(integrate, integrate(tree, in[0], in[1], out);)
SARRUS_KERNEL(difference, difference(tree, in[0], in[1], out);)
SARRUS_KERNEL(coordinate_rate, coordinate_rate(tree, in[0], in[1], out);)
SARRUS_KERNEL(coordinate_acceleration, coordinate_acceleration(tree, arena, in[0], in[1], in[2], out);)
SARRUS_KERNEL(normalize, normalize(tree, in[0], out);)
SARRUS_KERNEL(motion_space, motion_space(tree, arena, in[0], out);)
SARRUS_KERNEL(christoffel_symbols, christoffel_symbols(tree, arena, in[0], out);)
SARRUS_KERNEL(mass_matrix_derivative, mass_matrix_derivative(tree, arena, in[0], out);)
SARRUS_KERNEL(joint_screws, joint_screws(tree, call.motion(in[0], none, none), out);)
SARRUS_KERNEL(bracket, bracket(tree, in[0], in[1], out);)

}  // namespace sarrus
