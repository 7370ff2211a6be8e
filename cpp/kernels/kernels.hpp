// Interface between callers and kernels: tables of plain functions over rows of doubles. Each instruction set level is a separate shared object with
// one table, because linking objects of different levels together would merge their inline functions.
#pragma once

#include <cstdint>

#include "../contact/contact_kernels.hpp"
#include "../control/tasks.hpp"
#include "../mechanism/variant_numbers.hpp"
#include "../simulation/simulation_kernels.hpp"
#include "operation_list.hpp"

namespace sarrus {

/// A batch of states: row i of input k begins at in[k] + i * in_step[k]. Step 0: all states use one row; null: the input is omitted.
struct Rows {
  const double* in[max_inputs];
  std::int64_t in_step[max_inputs];
  int in_size[max_inputs];
  const double* const* wrench;  // six values per row
  const std::int64_t* wrench_step;
  double* out;
  int out_size;
  signed char* status;
};

/// Kernel for one state. Returns the status: 0, or the reason why there is no result.
using OneState = double (*)(const Tree&, const Parameters&, const double* const* in, const double* const* wrench, double* out);
using ManyStates = void (*)(const Tree&, const Parameters&, const Rows&, std::int64_t begin, std::int64_t end);

/// Kernel for variants: row i is a state of the variant variant[i / states].
using ManyVariants = void (*)(const VariantNumbers&, const std::int64_t* variant, std::int64_t states, const Parameters&,
                              const Rows&, std::int64_t begin, std::int64_t end);

/// Add the efforts of a task controller to `motor` (all joints). Returns the status.
using ControlTasks = double (*)(const Tree&, const TaskControl&, const double* parameter, const double* call, double time,
                                const double* q, const double* v, const double* z, double* motor, const Surroundings<double>&,
                                const TaskReport<double>&);

/// Return true if the factors of as many states as there are lanes exceed the cache. Then states are computed one by one, with lanes for the rows of
/// dense fronts.
inline bool leaves_the_cache(const Tree& tree, int lanes) {
  constexpr std::int64_t cache = 1 << 20;
  const Substructures* pieces = tree.loops.substructures;
  return pieces && pieces->tree.loops.dynamics.slots * std::int64_t(lanes * sizeof(double)) > cache;
}

struct KernelTable {
  const char* level;
  int lanes;  // number of states that ManyStates evaluates at once
  OneState single[operations];
  ManyStates many[operations];  // states in lanes
  ManyStates each[operations];  // states one by one
  ManyVariants variants[operations];  // variants in lanes; null: variants are computed one by one
  SimulationKernels simulation;
  ControlTasks tasks;
  ContactKernels contact;
};

/// Each function adds the kernels of its file to the table. Kernels for states in lanes replace kernels for single states.
void add_tree_kernels(KernelTable&);
void add_loop_kernels(KernelTable&);
void add_derivative_kernels(KernelTable&);
void add_rate_kernels(KernelTable&);
void add_simulation_kernels(KernelTable&);
void add_step_kernels(KernelTable&);
void add_control_kernels(KernelTable&);
void add_contact_kernels(KernelTable&);
void add_tree_batches(KernelTable&);
void add_loop_batches(KernelTable&);
void add_derivative_batches(KernelTable&);
void add_simulation_batches(KernelTable&);
void add_variant_batches(KernelTable&);

/// SimulationKernels::advance_many for methods that do not use lanes: one run after another.
void advance_one_by_one(const Tree&, const Plan&, const Clock&, const Sweep&, std::int64_t begin, std::int64_t end);
/// SimulationKernels::advance_many for variants, by methods that use lanes.
void advance_variants(const Plan&, const Clock&, const Sweep&, std::int64_t begin, std::int64_t end);

}  // namespace sarrus
