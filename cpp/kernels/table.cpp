// Table of kernels of one instruction set level.
#include "kernels.hpp"

#ifndef SARRUS_LEVEL
#error "SARRUS_LEVEL names the instruction set level"
#endif

extern "C" const sarrus::KernelTable* sarrus_kernel_table() {
  static const sarrus::KernelTable table = [] {
    sarrus::KernelTable t{};
    t.level = SARRUS_LEVEL;
    t.lanes = 1;
    sarrus::add_tree_kernels(t);
    sarrus::add_loop_kernels(t);
    sarrus::add_derivative_kernels(t);
    sarrus::add_rate_kernels(t);
    sarrus::add_simulation_kernels(t);
    sarrus::add_step_kernels(t);
    sarrus::add_control_kernels(t);
    sarrus::add_contact_kernels(t);
#ifndef SARRUS_ONE_STATE
    sarrus::add_tree_batches(t);
    sarrus::add_loop_batches(t);
    sarrus::add_derivative_batches(t);
    sarrus::add_simulation_batches(t);
    sarrus::add_variant_batches(t);
#endif
    return t;
  }();
  return &table;
}
