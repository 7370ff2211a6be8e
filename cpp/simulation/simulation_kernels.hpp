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

/// Runs whose states are known after each of some steps: state k of run i is at x + i run_step + k size, those of the clock and one more. With a
/// clock of step 0 nothing moves: states are brought onto the loops. What goes wrong is written to status.
enum class Onto : int { nothing, positions, loops };
struct Stretch {
  Clock clock;
  const double* x;
  int size;
  std::int64_t run_step;
  const double* parameter;
  std::int64_t parameter_step;
  Onto onto;  // what each state is to be on before its step
  double closes;  // 1 where stages are closed, as far as is known
  signed char* status;
};
/// Changes of the state (2 nv + nz) of each run, in place: `count` columns, each with the parameter that changes with it, or -1.
struct Changes {
  double* S;
  int count;
  const int* parameter;
};
/// Cotangents of the state (2 nv + nz) and of the parameters of each run, in place; parameters' are added up. `freedoms`: of displacements and
/// velocities.
struct Cotangents {
  double *state, *parameter;
  int freedoms[2];
};

/// Value of a component's polynomial (dormand_prince.hpp), whose five numbers are `width` apart, at the part theta of the step.
template <class T> T value(const T* d, int width, double theta) {
  const double rest = 1.0 - theta;
  return d[0] + (d[width] + (d[2 * width] + (d[3 * width] + d[4 * width] * T(rest)) * T(theta)) * T(rest)) * T(theta);
}

/// Simulation at one instruction set level: of one state, in place, and of many. What returns a double returns the status.
struct SimulationKernels {
  double (*advance)(const Tree&, const Plan&, const double* parameter, const Clock&, double* x);
  void (*advance_many)(const Tree&, const Plan&, const Clock&, const Sweep&, std::int64_t begin, std::int64_t end);
  /// A trial step from x of a method with an embedded pair: where it leads, its polynomial, and what is found of it. `guard`: see record.hpp.
  struct Taken {
    double error;  // as a share of what is allowed
    double part;  // of the step, after which a joint comes to rest: there the step ends; 1: none does
    double* demanded;  // where limits are watched, what motors ask for (nv)
    double supplied = 0.0, work[5] = {};  // if work is added up, that of what acts: up to there; and its polynomial
  };
  double (*try_step)(const Tree&, const Plan&, const double* parameter, double time, double step, const double* tolerance,
                     const double* x, double* guard, double* there, double* dense, Taken& taken);
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
  /// Through the steps of a stretch, and back: see kernels/step_kernels.cpp.
  void (*push_forward)(const Tree&, const Plan&, const Stretch&, const Changes&, std::int64_t begin, std::int64_t end);
  void (*pull_back)(const Tree&, const Plan&, const Stretch&, const Cotangents&, std::int64_t begin, std::int64_t end);
};

}  // namespace sarrus
