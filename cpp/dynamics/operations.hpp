// Every function of a state, behind one signature: constants in, rows of scalars in, rows of scalars out. The table below is the one
// place where they are listed; kernels are compiled from it for one state and for packets of states, and bindings are made from it.
#pragma once

#include "aba.hpp"
#include "configuration.hpp"
#include "coriolis.hpp"
#include "frames.hpp"
#include "ltdl.hpp"
#include "momentum.hpp"
#include "operation_list.hpp"
#include "parts.hpp"
#include "rnea.hpp"

namespace sarrus {

/// A call's arguments: in[k] is the row of input k (null: not given), wrench values follow in `wrench`.
template <class T> struct Call {
  const Tree& tree;
  Arena& arena;
  const Parameters& parameters;
  const T* const* in;
  const ExternalWrench<T>* wrench;
  T* out;

  int wrenches() const { return parameters.wrenches; }
  const Frame& frame() const { return parameters.frame; }
  Kinematics<T> motion(const T* q, const T* v, const T* a, const GroundMotion<T>& ground = {}) const {
    const Kinematics<T> k = Kinematics<T>::over(tree, arena.template take<T>(Kinematics<T>::size(tree)));
    kinematics(tree, arena, q, v, a, k, ground);
    return k;
  }
  /// What an earlier call of `kinematics` left in input 0.
  Kinematics<T> known_motion() const { return Kinematics<T>::over(tree, const_cast<T*>(in[0])); }
};

template <class T> SARRUS_INLINE void store3(const Vec3<T>& x, T* out) {
  for (int i = 0; i < 3; ++i) out[i] = x(i);
}

template <Operation> struct Run;

#define SARRUS_RUN(operation, ...)                            \
  template <> struct Run<Operation::operation> {              \
    template <class T> static void run(const Call<T>& call) { \
      [[maybe_unused]] const Tree& tree = call.tree;          \
      [[maybe_unused]] Arena& arena = call.arena;             \
      [[maybe_unused]] const T* const* in = call.in;          \
      [[maybe_unused]] T* out = call.out;                     \
      [[maybe_unused]] constexpr const T* none = nullptr;     \
      __VA_ARGS__                                             \
    }                                                         \
  };

SARRUS_RUN(inverse_dynamics,
           rnea(tree, arena, RneaInput<T>{in[0], in[1], in[2], {in[3], in[4]}, call.wrenches(), call.wrench}, out);)
SARRUS_RUN(forward_dynamics, aba(tree, arena, AbaInput<T>{in[0], in[1], in[2], call.wrenches(), call.wrench}, out);)
SARRUS_RUN(mass_matrix, crba(tree, arena, in[0], out);)
SARRUS_RUN(bias_forces, {
  const T* rest = zeros<T>(arena, tree.nv);
  rnea(tree, arena, RneaInput<T>{in[0], in[1], rest, {}, call.wrenches(), call.wrench}, out);
})
SARRUS_RUN(gravity_forces, {
  const T* rest = zeros<T>(arena, tree.nv);
  Tree without = tree;  // the joints' own forces are not gravity's
  without.has_joint_forces = false;
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

#undef SARRUS_RUN

}  // namespace sarrus
