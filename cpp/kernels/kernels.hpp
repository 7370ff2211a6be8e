// The border between the caller and the kernels: tables of plain functions over rows of doubles. Each instruction set level is a
// shared object of its own that hands over one table, because objects of different levels in one link merge their inline functions.
#pragma once

#include <cstdint>

#include "../simulation/plan.hpp"
#include "operation_list.hpp"

namespace sarrus {

/// Many states: row i of input k starts at in[k] + i * in_step[k] (a step of 0 repeats one row; a null input was not given).
struct Rows {
  const double* in[max_inputs];
  std::int64_t in_step[max_inputs];
  int in_size[max_inputs];
  const double* const* wrench;  // six numbers a row
  const std::int64_t* wrench_step;
  double* out;
  int out_size;
  signed char* status;
};

/// Returns the status: 0, or why there is no answer.
using OneState = double (*)(const Tree&, const Parameters&, const double* const* in, const double* const* wrench, double* out);
using ManyStates = void (*)(const Tree&, const Parameters&, const Rows&, std::int64_t begin, std::int64_t end);

/// Many runs of a simulation: row i of x is its state, with the record of what it left where there is one, and parameters may be its own (a step of 0 shares them).
struct Runs {
  double* x;
  int size;
  const double* parameter;
  std::int64_t parameter_step;
  signed char* status;
};
struct Clock {
  double start, step;  // the time is start + k step
  std::int64_t first, count;
};

/// Simulation of one state, in place, and of many.
struct SimulationKernels {
  double (*advance)(const Tree&, const Plan&, const double* parameter, const Clock&, double* x);
  void (*advance_many)(const Tree&, const Plan&, const Clock&, const Runs&, std::int64_t begin, std::int64_t end);
  /// A trial step of Dormand and Prince's from x: where it leads, its polynomial, and its error as a share of what is allowed, and behind that,
  /// where limits are watched, what motors ask for (nv).
  double (*try_step)(const Tree&, const Plan&, const double* parameter, double time, double step, const double* tolerance,
                     const double* x, double* there, double* dense, double* error);
  /// The state at `time` within that step of length `step` from x at `from`, on the loops as its end is.
  void (*between)(const Tree&, const Plan&, const double* parameter, double from, double step, double time, const double* x,
                  const double* dense, double* there);
  /// The generalised force of all that acts, and the rates of what it remembers.
  double (*act)(const Tree&, const Plan&, const double* parameter, double time, const double* x, double* tau);
  /// Of the constraint Jacobian at x, without rows that laws of time drive; and its smallest pivot, as a share of its row.
  int (*rank)(const Tree&, const Plan&, double time, const double* x, double* weakest);
};

struct KernelTable {
  const char* level;
  int lanes;  // states that ManyStates works on at once
  OneState one[operations];
  ManyStates many[operations];
  SimulationKernels simulation;
};

/// Each file of kernels adds its own.
void add_tree_kernels(KernelTable&);
void add_loop_kernels(KernelTable&);
void add_simulation_kernels(KernelTable&);

}  // namespace sarrus
