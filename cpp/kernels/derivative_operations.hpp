// Kernels for products of cotangents with derivatives with respect to a state: for one state with directions in lanes, and for states in
// lanes.
#pragma once

#include "../loops/efforts_pullback.hpp"
#include "call.hpp"
#include "operation_sizes.hpp"
#include "verdict.hpp"

namespace sarrus {

SARRUS_KERNEL(inverse_dynamics_vjp, {
  const RneaInput<T> motion = {in[0], in[1], in[2], {in[4], in[5]}, call.wrenches(), call.wrench};
  inverse_dynamics_vjp<Along<T>>(tree, arena, motion, in[3], out);
})
// projection of the derivatives onto the loops: an argument of the call, for all of its states
SARRUS_KERNEL(forward_dynamics_vjp, {
  OffLoops<T> off;
  LoopInput<T> state = {in[0], in[1], in[2], call.wrenches(), call.wrench, in[5], in[6]};
  if (call.parameters.check) state.off = &off;
  return verdict_of_solution(forward_dynamics_vjp<Along<T>>(tree, arena, state, in[3], lane(in[4][0], 0) > 0.0, out), off);
})

// derivatives with respect to dimensions
SARRUS_KERNEL(inverse_dynamics_by_dimensions, {
  const RneaInput<T> motion = {in[0], in[1], in[2], {in[4], in[5]}, call.wrenches(), call.wrench};
  std::fill(out, out + Dimensions<T>::size(tree), T(0.0));
  const Dimensions<T> dimensions(tree, out);
  inverse_dynamics_vjp<Along<T>>(tree, arena, motion, in[3], arena.take<T>(size_of_axis('G', tree)), &dimensions);
})
SARRUS_KERNEL(actuator_efforts_vjp, {
  const RneaInput<T> motion = {in[0], in[1], in[2], {}, call.wrenches(), call.wrench};
  OffLoops<T> off;
  return verdict(actuator_efforts_vjp<Along<T>>(tree, arena, motion, in[4], in[5], in[6], in[3], out,
                                                call.parameters.check ? &off : nullptr),
                 off);
})

}  // namespace sarrus
