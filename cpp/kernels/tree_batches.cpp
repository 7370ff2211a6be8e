// Kernels of trees, for states in lanes, at the instruction set level for which this file is compiled.
#include "packets.hpp"
#include "shared.hpp"
#include "tree_operations.hpp"

namespace sarrus {

void add_tree_batches(KernelTable& table) {
  table.lanes = tree_lanes;
#define SARRUS_ADD(name, ...) table.many[static_cast<int>(Operation::name)] = many<Operation::name, tree_lanes>;
  SARRUS_TREE_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
