// Kernels of derivatives with respect to a state, for one state at a time, with its directions in lanes.
#include "../loops/linear_equations.hpp"
#include "../loops/multiplier_rates.hpp"
#include "derivative_operations.hpp"
#include "run.hpp"
#include "shared.hpp"

namespace sarrus {

SARRUS_KERNEL(inverse_dynamics_derivatives, {
  const RneaInput<T> motion = {in[0], in[1], in[2], {in[3], in[4]}, call.wrenches(), call.wrench};
  const int size = tree.nv * tree.nv;
  inverse_dynamics_derivatives<SideBySide>(tree, arena, motion, out, out + size, out + 2 * size);
})
// without `tangent`, no status is returned for inconsistent columns, because the caller checks them
SARRUS_KERNEL(forward_dynamics_derivatives, {
  OffLoops<T> off;
  LoopInput<T> state = {in[0], in[1], in[2], call.wrenches(), call.wrench, in[4], in[5]};
  if (call.parameters.check) state.off = &off;
  const auto answer = ForwardDerivatives<T>::over(tree.nv, out);
  return verdict_of_solution(forward_dynamics_derivatives<SideBySide>(tree, arena, state, in[3][0] > 0.0, answer), off);
})
SARRUS_KERNEL(multiplier_derivatives, {
  OffLoops<T> off;
  LoopInput<T> state = {in[0], in[1], in[2], call.wrenches(), call.wrench, in[4], in[5]};
  if (call.parameters.check) state.off = &off;
  return verdict_of_solution(multiplier_derivatives<SideBySide>(tree, arena, state, in[3][0] > 0.0, out), off);
})

// out[0] is LinearOutput::exact, which is 0 if derivatives do not exist. The last entries of the output are the chosen coordinates.
SARRUS_KERNEL(linear_equations, {
  OffLoops<T> off;
  LoopInput<T> state = {in[0], in[1], in[2], call.wrenches(), call.wrench, in[5], in[6]};
  if (call.parameters.check) state.off = &off;
  LinearCoordinates y(tree.nv, arena, in[3]);
  const int size = in[3] ? linear_equations_size(tree.nv, y.k + y.m) : size_of_axis('L', tree);
  std::fill(out, out + size, 0.0);
  const auto error = linear_equations<SideBySide>(tree, arena, state, y, !in[3], in[4], in[4] + tree.nv, out);
  if (!in[3]) y.tell(out + size - tree.nv);
  const bool exact = verdict_of_solution(error.derivatives, off) == 0.0;
  out[0] = !exact ? 0.0 : error.rounding > tolerances::regular ? 0.5 : 1.0;
  return verdict_of_solution(error.state, off);
})

// change of tau due to changes of q, v and a
SARRUS_KERNEL(inverse_dynamics_jvp, {
  const RneaInput<T> motion = {in[0], in[1], in[2], {in[4], in[5]}, call.wrenches(), call.wrench};
  inverse_dynamics_jvp(tree, arena, motion, Directions<T>{in[3], in[3] + tree.nv, in[3] + 2 * tree.nv}, out);
})
SARRUS_KERNEL(forward_dynamics_jvp, {
  OffLoops<T> off;
  LoopInput<T> state = {in[0], in[1], in[2], call.wrenches(), call.wrench, in[5], in[6]};
  if (call.parameters.check) state.off = &off;
  const T* d = in[3];
  return verdict_of_solution(forward_dynamics_jvp(tree, arena, state, d, d + tree.nv, d + 2 * tree.nv, in[4][0] > 0.0, out), off);
})

// out: derivatives with respect to dimensions, then the rates at which each dimension opens the loops
SARRUS_KERNEL(forward_dynamics_by_dimensions, {
  OffLoops<T> off;
  LoopInput<T> state = {in[0], in[1], in[2], call.wrenches(), call.wrench, in[5], in[6]};
  if (call.parameters.check) state.off = &off;
  const int size = Dimensions<T>::size(tree);
  std::fill(out, out + 2 * size, 0.0);
  const Dimensions<T> dimensions(tree, out), open(tree, out + size);
  return verdict_of_solution(forward_dynamics_vjp<SideBySide>(tree, arena, state, in[3], in[4][0] > 0.0,
                                                              arena.take<T>(size_of_axis('G', tree)), &dimensions, &open),
                             off);
})

void add_derivative_kernels(KernelTable& table) {
#define SARRUS_ADD(name, ...)                                                      \
  table.single[static_cast<int>(Operation::name)] = single_state<Operation::name>; \
  table.many[static_cast<int>(Operation::name)] = table.each[static_cast<int>(Operation::name)] = one_by_one<Operation::name>;
  SARRUS_DERIVATIVE_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
