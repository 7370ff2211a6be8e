// The operations that loops ask, at the instruction set level that this file is compiled for.
#include "loop_operations.hpp"
#include "run.hpp"
#include "shared.hpp"

namespace sarrus {

void add_loop_kernels(KernelTable& table) {
#define SARRUS_ADD(name, ...)                                          \
  table.one[static_cast<int>(Operation::name)] = one<Operation::name>; \
  table.many[static_cast<int>(Operation::name)] = many<Operation::name, loop_lanes>;
  SARRUS_LOOP_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
