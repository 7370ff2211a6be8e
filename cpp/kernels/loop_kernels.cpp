// Kernels of mechanisms with loops, for one state at a time, at the instruction set level for which this file is compiled.
#include "loop_operations.hpp"
#include "run.hpp"
#include "shared.hpp"

namespace sarrus {

#define SARRUS_COMPILE(name, ...) \
  template void one_by_one<Operation::name>(const Tree&, const Parameters&, const Rows&, std::int64_t, std::int64_t);
SARRUS_LOOP_OPERATIONS(SARRUS_COMPILE)
#undef SARRUS_COMPILE

void add_loop_kernels(KernelTable& table) {
#define SARRUS_ADD(name, ...)                                                      \
  table.single[static_cast<int>(Operation::name)] = single_state<Operation::name>; \
  table.many[static_cast<int>(Operation::name)] = table.each[static_cast<int>(Operation::name)] = one_by_one<Operation::name>;
  SARRUS_LOOP_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
