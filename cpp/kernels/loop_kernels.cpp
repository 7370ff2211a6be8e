// The operations that loops ask, at the instruction set level that this file is compiled for.
#include "loop_operations.hpp"
#include "run.hpp"
#include "shared.hpp"

namespace sarrus {

/// Where the factor of a packet would leave the cache, states go one by one: the dense rows of fronts fill registers by themselves.
template <Operation op>
void many_at_a_time(const Tree& tree, const Parameters& p, const Rows& rows, std::int64_t begin, std::int64_t end) {
  if constexpr (op == Operation::constraint_jacobian_derivative) {
    // rows on numbers that carry their rates are half a minute of a compiler's time, and on no hot path
    one_by_one<op>(tree, p, rows, begin, end);
  } else {
    constexpr std::int64_t cache = 1 << 20;
    const Substructures* pieces = tree.loops.substructures;
    if (pieces && pieces->tree.loops.dynamics.slots * std::int64_t(loop_lanes * sizeof(double)) > cache)
      one_by_one<op>(tree, p, rows, begin, end);
    else
      many<op, loop_lanes>(tree, p, rows, begin, end);
  }
}

void add_loop_kernels(KernelTable& table) {
#define SARRUS_ADD(name, ...)                                          \
  table.one[static_cast<int>(Operation::name)] = one<Operation::name>; \
  table.many[static_cast<int>(Operation::name)] = many_at_a_time<Operation::name>;
  SARRUS_LOOP_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
