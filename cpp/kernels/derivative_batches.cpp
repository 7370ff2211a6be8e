// Kernels for states in lanes: derivatives of plain trees with respect to a state, and products of cotangents with derivatives. For all other
// derivatives, the lanes are used for the directions of one state (derivative_kernels.cpp).
#include "derivative_operations.hpp"
#include "packets.hpp"
#include "shared.hpp"

namespace sarrus {

// these are compiled in derivative_kernels.cpp
#define SARRUS_COMPILED(name, ...) \
  extern template void one_by_one<Operation::name>(const Tree&, const Parameters&, const Rows&, std::int64_t, std::int64_t);
SARRUS_DERIVATIVE_OPERATIONS(SARRUS_COMPILED)
#undef SARRUS_COMPILED

namespace {

using Lanes = Packet<tree_lanes>;

Lanes inverse(const Call<Lanes>& call) {
  const auto& [tree, arena, parameters, in, wrench, out] = call;
  const RneaInput<Lanes> motion = {in[0], in[1], in[2], {in[3], in[4]}, call.wrenches(), wrench};
  const int size = tree.nv * tree.nv;
  plain_tree_derivatives<Lanes>(tree, arena, motion, TreeMotion<Lanes>::at(tree, arena, motion), out, out + size, out + 2 * size);
  return Lanes(0.0);
}

Lanes forward(const Call<Lanes>& call) {
  const auto& [tree, arena, parameters, in, wrench, out] = call;
  const LoopInput<Lanes> state = {in[0], in[1], in[2], call.wrenches(), wrench};
  tree_dynamics_derivatives(
      tree, arena, state, ForwardDerivatives<Lanes>::over(tree.nv, out),
      [&, &tree = tree, &arena = arena](const RneaInput<Lanes>& motion, const RneaWork<Lanes>& work, Lanes* by_q, Lanes* by_v) {
        plain_tree_derivatives<Lanes>(tree, arena, motion, TreeMotion<Lanes>(tree, arena, motion, work.poses(), work.columns),
                                      by_q, by_v);
      });
  return Lanes(0.0);
}

template <Operation op, Lanes (*kernel)(const Call<Lanes>&)>
void many_of_a_tree(const Tree& tree, const Parameters& p, const Rows& rows, std::int64_t begin, std::int64_t end) {
  if (tree.loops.rows + tree.loops.rotor_rows > 0 || !is_plain_tree(tree)) return one_by_one<op>(tree, p, rows, begin, end);
  in_packets<tree_lanes, false>(kernel, tree, p, rows, begin, end, [](std::int64_t) {});
}

template <Operation op>
void products(const Tree& tree, const Parameters& p, const Rows& rows, std::int64_t begin, std::int64_t end) {
  if (leaves_the_cache(tree, loop_lanes)) return one_by_one<op>(tree, p, rows, begin, end);
  many<op, loop_lanes>(tree, p, rows, begin, end);
}

}  // namespace

void add_derivative_batches(KernelTable& table) {
  constexpr auto inverse_dynamics = Operation::inverse_dynamics_derivatives,
                 forward_dynamics = Operation::forward_dynamics_derivatives;
  table.many[static_cast<int>(inverse_dynamics)] = many_of_a_tree<inverse_dynamics, inverse>;
  table.many[static_cast<int>(forward_dynamics)] = many_of_a_tree<forward_dynamics, forward>;
#define SARRUS_ADD(name) table.many[static_cast<int>(Operation::name)] = products<Operation::name>;
  SARRUS_ADD(inverse_dynamics_vjp)
  SARRUS_ADD(inverse_dynamics_by_dimensions)
  SARRUS_ADD(forward_dynamics_vjp)
  SARRUS_ADD(actuator_efforts_vjp)
#undef SARRUS_ADD
}

}  // namespace sarrus
