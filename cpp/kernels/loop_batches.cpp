// Kernels of mechanisms with loops, for states in lanes, at the instruction set level for which this file is compiled.
#include "loop_operations.hpp"
#include "packets.hpp"
#include "shared.hpp"

namespace sarrus {

// these are compiled in loop_kernels.cpp
#define SARRUS_COMPILED(name, ...) \
  extern template void one_by_one<Operation::name>(const Tree&, const Parameters&, const Rows&, std::int64_t, std::int64_t);
SARRUS_LOOP_OPERATIONS(SARRUS_COMPILED)
#undef SARRUS_COMPILED

template <Operation op>
void many_at_a_time(const Tree& tree, const Parameters& p, const Rows& rows, std::int64_t begin, std::int64_t end) {
  if (leaves_the_cache(tree, loop_lanes))
    one_by_one<op>(tree, p, rows, begin, end);
  else
    many<op, loop_lanes>(tree, p, rows, begin, end);
}

/// Compute least reactions in lanes; states for which this is not possible are computed one by one.
void least_reactions_at_a_time(const Tree& tree, const Parameters& p, const Rows& rows, std::int64_t begin, std::int64_t end) {
  constexpr Operation op = Operation::least_reactions;
  if (rows.in[3])  // compliances require one state at a time
    return one_by_one<op>(tree, p, rows, begin, end);
  many_at_a_time<op>(tree, p, rows, begin, end);
  for (std::int64_t i = begin; i < end; ++i)
    if (rows.status[i] != 0) one_by_one<op>(tree, p, rows, i, i + 1);
}

/// Return true for operations without kernels for states in lanes, of which there are three groups. Operations that evaluate rows on dual numbers
/// take half a minute to compile, and are not critical for performance. `equilibrium` uses the lanes for directions. Computations of ranks branch
/// differently for each state.
constexpr bool is_unbatched(Operation op) {
  return op == Operation::constraint_jacobian_derivative || op == Operation::equilibrium || op == Operation::loop_motions ||
         op == Operation::reduced_dynamics || op == Operation::path_motion;
}

void add_loop_batches(KernelTable& table) {
#define SARRUS_ADD(name, ...) \
  if constexpr (!is_unbatched(Operation::name)) table.many[static_cast<int>(Operation::name)] = many_at_a_time<Operation::name>;
  SARRUS_LOOP_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
  table.many[static_cast<int>(Operation::least_reactions)] = least_reactions_at_a_time;
}

}  // namespace sarrus
