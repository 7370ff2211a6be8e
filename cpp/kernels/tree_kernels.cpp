// Kernels of trees, for one state at a time, at the instruction set level for which this file is compiled.
#include "run.hpp"
#include "shared.hpp"
#include "tree_operations.hpp"

namespace sarrus {

void add_tree_kernels(KernelTable& table) {
#define SARRUS_ADD(name, ...)                                                      \
  table.single[static_cast<int>(Operation::name)] = single_state<Operation::name>; \
  table.many[static_cast<int>(Operation::name)] = table.each[static_cast<int>(Operation::name)] = one_by_one<Operation::name>;
  SARRUS_TREE_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
