// Simulation at one instruction set level, as plain functions: enough for a caller that does not include the algorithms.
#pragma once

#include <cstdint>

#include "../mechanism/status.hpp"
#include "../mechanism/tree.hpp"

namespace sarrus {

struct Plan;

struct Clock {
  double start, step;  // the time is start + k step
  std::int64_t first, count;
};

/// Many simulations side by side: row i of x is a state (q, v, z, held), with its record behind it; parameters may be its own (a step of 0 shares them).
struct Sweep {
  double* x;
  int size;
  const double* parameter;
  std::int64_t parameter_step;
  signed char* status;
  const std::int64_t* which = nullptr;  // of variants: which of the plan's each is of
};

/// Simulation at one instruction set level: of one state, in place, and of many. What returns a double returns the status.
struct SimulationKernels {
  double (*advance)(const Tree&, const Plan&, const double* parameter, const Clock&, double* x);
  void (*advance_many)(const Tree&, const Plan&, const Clock&, const Sweep&, std::int64_t begin, std::int64_t end);
  /// A trial step from x of a method with an embedded pair: where it leads, its polynomial, and what is found of it. `guard`: see record.hpp.
  struct Found {
    double error;  // as a share of what is allowed
    double part;  // of the step, after which a joint comes to rest: there the step ends; 1: none does
    double* demanded;  // where limits are watched, what motors ask for (nv)
  };
  double (*try_step)(const Tree&, const Plan&, const double* parameter, double time, double step, const double* tolerance,
                     const double* x, double* guard, double* there, double* dense, Found& found);
  /// The state at `time` within that step of length `step` from x at `from`, on the loops as its end is.
  void (*between)(const Tree&, const Plan&, const double* parameter, double from, double step, double time, const double* x,
                  const double* guard, const double* dense, double* there);
  /// Takes the samples that are due, of a state.
  double (*sample)(const Tree&, const Plan&, const double* parameter, double time, double* x);
  /// The generalised force of all force elements and functions of the caller, but for springs of the mechanism.
  double (*forces)(const Tree&, const Plan&, const double* parameter, double time, const double* x, double* tau);
  /// The force (nv + loop_nv) of dry friction along every joint, in a state of a run with steps of about this length.
  double (*friction)(const Tree&, const Plan&, const double* parameter, double time, double step, const double* x, double* force);
  /// Coordinates and velocities of the tree's joints at x, and behind them those of joints that close loops.
  void (*all_joints)(const Tree&, const Plan&, double time, const double* x, double* q, double* v);
  /// How near the configuration q is to a singular one: the smallest pivot of the constraints that is none of a redundant row.
  double (*weakest_row)(const Tree&, const Plan&, double time, const double* q);
  /// By how much such units of the velocities (nv) move each row of the loops, or 1.
  void (*row_units)(const Tree&, double time, const double* q, const double* unit, double* rows);
  /// 1 where redundant rows agree only on the loops, else 0.
  double (*only_on_loops)(const Tree&, const Plan&, double time, const double* q);
};

}  // namespace sarrus
