// The functions of a state that a tree has, each as a Run.
#pragma once

#include "../dynamics/configuration.hpp"
#include "../dynamics/coriolis.hpp"
#include "../dynamics/frames.hpp"
#include "../dynamics/ltdl.hpp"
#include "../dynamics/momentum.hpp"
#include "../dynamics/parts.hpp"
#include "../dynamics/rnea.hpp"
#include "call.hpp"

namespace sarrus {

template <class T> SARRUS_INLINE void store3(const Vec3<T>& x, T* out) {
  for (int i = 0; i < 3; ++i) out[i] = x(i);
}

SARRUS_RUN(inverse_dynamics,
           rnea(tree, arena, RneaInput<T>{in[0], in[1], in[2], {in[3], in[4]}, call.wrenches(), call.wrench}, out);)
SARRUS_RUN(mass_matrix, crba(tree, arena, in[0], out);)
SARRUS_RUN(bias_forces, {
  const T* rest = zeros<T>(arena, tree.nv);
  rnea(tree, arena, RneaInput<T>{in[0], in[1], rest, {}, call.wrenches(), call.wrench}, out);
})
SARRUS_RUN(gravity_forces, {
  const T* rest = zeros<T>(arena, tree.nv);
  Tree without = tree;  // the joints' own forces are not gravity's, nor are springs'
  without.has_joint_forces = false, without.springs = 0;
  rnea(without, arena, RneaInput<T>{in[0], rest, rest}, out);
})
SARRUS_RUN(coriolis_matrix, coriolis(tree, arena, call.motion(in[0], in[1], none), out);)
SARRUS_RUN(mass_matrix_inverse, mass_matrix_inverse(tree, arena, in[0], out);)
SARRUS_RUN(operational_inertia_inverse, operational_inertia_inverse(tree, arena, in[0], call.frame(), out);)
SARRUS_RUN(omega, omega(tree, arena, in[0], call.frame(), out);)
SARRUS_RUN(reactions,
           reactions(tree, arena, call.motion(in[0], in[1], in[2], {in[3], in[4]}), call.wrenches(), call.wrench, out);)
SARRUS_RUN(regressor, regressor(tree, call.motion(in[0], in[1], in[2]), out);)

SARRUS_RUN(pose, frame_pose(call.motion(in[0], none, none), call.frame(), out);)
SARRUS_RUN(velocity, frame_velocity(call.motion(in[0], in[1], none), call.frame(), out);)
SARRUS_RUN(acceleration, frame_acceleration(call.motion(in[0], in[1], in[2]), call.frame(), out);)
SARRUS_RUN(jacobian, frame_jacobian<T>(tree, call.motion(in[0], none, none), call.frame(), out, nullptr);)
SARRUS_RUN(jacobian_derivative, frame_jacobian<T>(tree, call.motion(in[0], in[1], none), call.frame(), nullptr, out);)

SARRUS_RUN(kinematics, { kinematics(tree, arena, in[0], in[1], in[2], Kinematics<T>::over(tree, out)); })
SARRUS_RUN(known_pose, frame_pose(call.known_motion(), call.frame(), out);)
SARRUS_RUN(known_velocity, frame_velocity(call.known_motion(), call.frame(), out);)
SARRUS_RUN(known_acceleration, frame_acceleration(call.known_motion(), call.frame(), out);)
SARRUS_RUN(known_jacobian, frame_jacobian<T>(tree, call.known_motion(), call.frame(), out, nullptr);)
SARRUS_RUN(known_jacobian_derivative, frame_jacobian<T>(tree, call.known_motion(), call.frame(), nullptr, out);)

SARRUS_RUN(center_of_mass, store3(center_of_mass(tree, call.motion(in[0], none, none)), out);)
SARRUS_RUN(center_of_mass_jacobian, {
  // the linear rows of the momentum matrix, per mass
  const Kinematics<T> k = call.motion(in[0], none, none);
  T* A = arena.take<T>(6 * tree.nv);
  momentum_matrix(tree, arena, k, center_of_mass(tree, k), A);
  const T share = T(1.0 / total_mass(tree));
  for (int i = 0; i < 3 * tree.nv; ++i) out[i] = A[3 * tree.nv + i] * share;
})
SARRUS_RUN(momentum, store(momentum(tree, call.motion(in[0], in[1], none), zero3<T>()), out);)
SARRUS_RUN(centroidal_momentum, {
  const Kinematics<T> k = call.motion(in[0], in[1], none);
  store(momentum(tree, k, center_of_mass(tree, k)), out);
})
SARRUS_RUN(centroidal_momentum_matrix, {
  const Kinematics<T> k = call.motion(in[0], none, none);
  momentum_matrix(tree, arena, k, center_of_mass(tree, k), out);
})
SARRUS_RUN(centroidal_momentum_bias, {
  const Kinematics<T> k = call.motion(in[0], in[1], none);
  store(momentum_rate(tree, k, center_of_mass(tree, k)), out);
})
SARRUS_RUN(kinetic_energy, out[0] = kinetic_energy(tree, call.motion(in[0], in[1], none), in[1]);)
SARRUS_RUN(potential_energy, out[0] = potential_energy(tree, call.motion(in[0], none, none), in[0]);)

SARRUS_RUN(integrate, integrate(tree, in[0], in[1], out);)
SARRUS_RUN(difference, difference(tree, in[0], in[1], out);)
SARRUS_RUN(normalize, normalize(tree, in[0], out);)
SARRUS_RUN(motion_space, motion_space(tree, arena, in[0], out);)

}  // namespace sarrus
