// The operations that loops ask, at the instruction set level that this file is compiled for.

// A sparse solve is a chain of sums that wait for each other: more states side by side fill it (measured on Zen 4: eight lanes do 3.2 to
// 3.8 times what one state does, four 2.5 to 3.2).
#ifdef __AVX512F__
#define SARRUS_LANES 8
#endif

#include "loop_operations.hpp"
#include "run.hpp"

namespace sarrus {

void add_loop_kernels(KernelTable& table) {
#define SARRUS_ADD(name, ...)                                          \
  table.one[static_cast<int>(Operation::name)] = one<Operation::name>; \
  table.many[static_cast<int>(Operation::name)] = many<Operation::name>;
  SARRUS_LOOP_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
