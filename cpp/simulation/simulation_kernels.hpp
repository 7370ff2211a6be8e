// Simulation at one instruction set level, as plain functions: sufficient for a caller that does not include the algorithms.
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

/// Many simulations side by side: row i of x is a state (q, v, z, held values), with its record behind it. A parameter_step of 0 shares parameters.
struct Sweep {
  double* x;
  int size;
  const double* parameter;
  std::int64_t parameter_step;
  signed char* status;
  const std::int64_t* variant = nullptr;  // of variants: the plan's variant of each run
};

/// Runs with known states after each step: state k of run i is at x + i run_step + k size, for the steps of the clock and one more. A clock with
/// step 0 only projects states onto the loops. Failures are written to status.
enum class Onto : int { none, positions, loops };
struct StepRange {
  Clock clock;
  const double* x;
  int size;
  std::int64_t run_step;
  const double* parameter;
  std::int64_t parameter_step;
  Onto onto;  // projection of each state before its step
  double closes;  // 1 if stages are closed, as far as is known
  signed char* status;
};
/// Changes of the state (2 nv + nz) of each run, in place: `count` columns, each with the parameter that changes with it, or -1.
struct Changes {
  double* S;
  int count;
  const int* parameter;
};
/// Cotangents of the state (2 nv + nz) and of the parameters of each run, in place; those of parameters are added up. `freedoms`: numbers of
/// independent displacements and velocities.
struct Cotangents {
  double *state, *parameter;
  int freedoms[2];
};

/// Return the value of a component's polynomial (dormand_prince.hpp), whose five numbers are `width` apart, at the part theta of the step.
template <class T> T value(const T* d, int width, double theta) {
  const double rest = 1.0 - theta;
  return d[0] + (d[width] + (d[2 * width] + (d[3 * width] + d[4 * width] * T(rest)) * T(theta)) * T(rest)) * T(theta);
}

/// Simulation at one instruction set level: of one state, in place, and of many. A double result is the status.
struct SimulationKernels {
  double (*advance)(const Tree&, const Plan&, const double* parameter, const Clock&, double* x);
  void (*advance_many)(const Tree&, const Plan&, const Clock&, const Sweep&, std::int64_t begin, std::int64_t end);
  /// Trial step from x of a method with an embedded pair: its end state, polynomial, and result. `guard`: see record.hpp.
  struct TrialResult {
    double error;  // relative to the tolerance
    double part;  // part of the step after which a joint comes to rest and the step ends; 1: no joint does
    double* demanded;  // if limits are watched, the commanded efforts (nv)
    double supplied = 0.0, work[5] = {};  // if work is added up: work of applied forces up to `part`, and its polynomial
  };
  double (*try_step)(const Tree&, const Plan&, const double* parameter, double time, double step, const double* tolerance,
                     const double* x, double* guard, double* end_state, double* dense, TrialResult& result);
  /// Return the state at `time` within that step of length `step` from x at `from`, projected onto the loops like its end.
  void (*between)(const Tree&, const Plan&, const double* parameter, double from, double step, double time, const double* x,
                  const double* guard, const double* dense, double* end_state);
  /// Take the samples that are due, of a state.
  double (*sample)(const Tree&, const Plan&, const double* parameter, double time, double* x);
  /// Compute the generalised force of all force elements and functions of the caller, without springs of the mechanism.
  double (*forces)(const Tree&, const Plan&, const double* parameter, double time, const double* x, double* tau);
  /// Compute the force (nv + loop_nv) of dry friction along every joint, in a state of a run with steps of about this length.
  double (*friction)(const Tree&, const Plan&, const double* parameter, double time, double step, const double* x, double* force);
  /// Return coordinates and velocities of the tree's joints at x, then those of loop joints.
  void (*all_joints)(const Tree&, const Plan&, double time, const double* x, double* q, double* v);
  /// Return the distance of the configuration q from a singular one: the smallest pivot of the constraints, without those of redundant rows.
  double (*weakest_row)(const Tree&, const Plan&, double time, const double* q);
  /// Compute by how much units of the velocities (nv) change each row of the loops; 1 if not at all.
  void (*row_units)(const Tree&, double time, const double* q, const double* unit, double* rows);
  /// Return 1 if redundant rows agree only on the loops, else 0.
  double (*only_on_loops)(const Tree&, const Plan&, double time, const double* q);
  /// Propagate changes forward through the steps of a range, and cotangents back: see kernels/step_kernels.cpp.
  void (*push_forward)(const Tree&, const Plan&, const StepRange&, const Changes&, std::int64_t begin, std::int64_t end);
  void (*pull_back)(const Tree&, const Plan&, const StepRange&, const Cotangents&, std::int64_t begin, std::int64_t end);
};

}  // namespace sarrus
