// The border between the caller and the kernels: tables of plain functions over rows of doubles. Each instruction set level is a
// shared object of its own that hands over one table, because objects of different levels in one link merge their inline functions.
#pragma once

#include <cstdint>

#include "../contact/contact_kernels.hpp"
#include "../control/tasks.hpp"
#include "../mechanism/variant_numbers.hpp"
#include "../simulation/simulation_kernels.hpp"
#include "operation_list.hpp"

namespace sarrus {

/// Many states: row i of input k starts at in[k] + i * in_step[k] (a step of 0 repeats one row; a null input was not given).
struct Rows {
  const double* in[max_inputs];
  std::int64_t in_step[max_inputs];
  int in_size[max_inputs];
  const double* const* wrench;  // six numbers per row
  const std::int64_t* wrench_step;
  double* out;
  int out_size;
  signed char* status;
};

/// Returns the status: 0, or the reason that there is no result.
using OneState = double (*)(const Tree&, const Parameters&, const double* const* in, const double* const* wrench, double* out);
using ManyStates = void (*)(const Tree&, const Parameters&, const Rows&, std::int64_t begin, std::int64_t end);

/// Kernel of variants: row i is a state of variant which[i / states].
using ManyVariants = void (*)(const VariantNumbers&, const std::int64_t* variant, std::int64_t states, const Parameters&,
                              const Rows&, std::int64_t begin, std::int64_t end);

/// Returns the status. Adds efforts to `motor`, of all joints.
using ControlTasks = double (*)(const Tree&, const TaskControl&, const double* parameter, const double* call, double time,
                                const double* q, const double* v, const double* z, double* motor, const Surroundings<double>&,
                                const TaskReport<double>&);

/// True if the factors of so many states exceed the cache: they are then made one by one, as the dense rows of fronts fill registers.
inline bool leaves_the_cache(const Tree& tree, int lanes) {
  constexpr std::int64_t cache = 1 << 20;
  const Substructures* pieces = tree.loops.substructures;
  return pieces && pieces->tree.loops.dynamics.slots * std::int64_t(lanes * sizeof(double)) > cache;
}

struct KernelTable {
  const char* level;
  int lanes;  // states that ManyStates works on at once
  OneState single[operations];
  ManyStates many[operations];  // side by side
  ManyStates each[operations];  // one by one
  ManyVariants variants[operations];  // side by side; null: one by one
  SimulationKernels simulation;
  ControlTasks tasks;
  ContactKernels contact;
};

/// Each file of kernels adds its own; those of batches replace the ones of single states.
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

/// SimulationKernels::advance_many for methods that do not use lanes.
void advance_one_by_one(const Tree&, const Plan&, const Clock&, const Sweep&, std::int64_t begin, std::int64_t end);
/// The same for methods that use lanes, and for variants.
void advance_variants(const Plan&, const Clock&, const Sweep&, std::int64_t begin, std::int64_t end);

}  // namespace sarrus
