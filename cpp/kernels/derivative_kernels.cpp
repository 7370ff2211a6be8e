// Derivatives by a state, for one state at a time: its directions stand side by side.
#include "../loops/derivatives.hpp"
#include "call.hpp"
#include "run.hpp"
#include "shared.hpp"
#include "verdict.hpp"

namespace sarrus {

SARRUS_KERNEL(inverse_dynamics_derivatives, {
  const RneaInput<T> motion = {in[0], in[1], in[2], {in[3], in[4]}, call.wrenches(), call.wrench};
  inverse_dynamics_derivatives<SideBySide>(tree, arena, motion, out, out + tree.nv * tree.nv);
})
// without `tangent` it is for the caller to say which columns contradict
SARRUS_KERNEL(forward_dynamics_derivatives, {
  OffLoops<T> off;
  LoopInput<T> state = {in[0], in[1], in[2], call.wrenches(), call.wrench, in[4], in[5]};
  if (call.parameters.check) state.off = &off;
  const auto answer = ForwardDerivatives::over(tree.nv, out);
  return verdict_of_solution(forward_dynamics_derivatives<SideBySide>(tree, arena, state, in[3][0] > 0.0, answer), off);
})

void add_derivative_kernels(KernelTable& table) {
#define SARRUS_ADD(name, ...)                                          \
  table.one[static_cast<int>(Operation::name)] = one<Operation::name>; \
  table.many[static_cast<int>(Operation::name)] = one_by_one<Operation::name>;
  SARRUS_DERIVATIVE_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
