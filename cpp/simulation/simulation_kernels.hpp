// Simulation functions of one instruction set level, as plain functions, so that callers need not include the algorithms.
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

/// Many simulations in parallel: row i of x contains a state (q, v, z, sampled values) and the monitored data of run i (record.hpp). If
/// parameter_step is 0, runs share parameters.
struct Sweep {
  double* x;
  int size;
  const double* parameter;
  std::int64_t parameter_step;
  signed char* status;
  const std::int64_t* variant = nullptr;  // index of each run's variant; null: no variants
};

/// Runs whose states are stored after each step of the clock: state k of run i is at x + i run_step + k size; there is one state more than steps. A
/// clock with step 0 only projects the states onto the loops. Failures are written to status.
enum class Onto : int { none, positions, loops };
struct StepRange {
  Clock clock;
  const double* x;
  int size;
  std::int64_t run_step;
  const double* parameter;
  std::int64_t parameter_step;
  Onto onto;  // projection of each state at the beginning of its step: none, of positions, or of positions and velocities
  double closes;  // 1 if stages are projected onto the loops, 0 if not, negative if not determined yet
  signed char* status;
};
/// Changes of the state (2 nv + nz) of each run, in `count` columns; the result overwrites the input. Each column may also change one parameter (its
/// index, or -1).
struct Changes {
  double* S;
  int count;
  const int* parameter;
};
/// Cotangents of the state (2 nv + nz) and of the parameters of each run; the result overwrites the input, and cotangents of parameters are
/// accumulated. `freedoms`: numbers of independent displacements and of independent velocities.
struct Cotangents {
  double *state, *parameter;
  int freedoms[2];
};

/// Return the value of a component's polynomial (dormand_prince.hpp) at the fraction theta of the step. Its coefficients are `width` apart.
template <class T> T value(const T* d, int width, double theta) {
  const double rest = 1.0 - theta;
  return d[0] + (d[width] + (d[2 * width] + (d[3 * width] + d[4 * width] * T(rest)) * T(theta)) * T(rest)) * T(theta);
}

/// Simulation functions of one instruction set level: for one state, which they overwrite, and for many. A result of type double is the status.
struct SimulationKernels {
  double (*advance)(const Tree&, const Plan&, const double* parameter, const Clock&, double* x);
  void (*advance_many)(const Tree&, const Plan&, const Clock&, const Sweep&, std::int64_t begin, std::int64_t end);
  /// Take a trial step from x with an embedded pair: final state, polynomial, and result. `guard`: see record.hpp.
  struct TrialResult {
    double error;  // relative to the tolerance
    double part;  // fraction of the step after which it ends because a joint comes to rest; 1: at its end
    double* demanded;  // commanded efforts (nv), if limits are monitored
    // if work is computed: the work of applied forces up to the fraction `part` of the step, and the coefficients of its polynomial
    double supplied = 0.0, work[5] = {};
  };
  double (*try_step)(const Tree&, const Plan&, const double* parameter, double time, double step, const double* tolerance,
                     const double* x, double* guard, double* end_state, double* dense, TrialResult& result);
  /// Compute the state at `time` within the step that begins at `from` with the state x and has the length `step`. It is projected onto the loops
  /// like the end of the step.
  void (*between)(const Tree&, const Plan&, const double* parameter, double from, double step, double time, const double* x,
                  const double* guard, const double* dense, double* end_state);
  /// Take the controllers' samples that are due at the time of a state.
  double (*sample)(const Tree&, const Plan&, const double* parameter, double time, double* x);
  /// Compute the generalised force of all force elements and functions of the caller, without springs of the mechanism. `loads`: null, or six
  /// numbers for each frame of the tree, to which the wrenches of elements are added (at its origin and in its axes; without rigid contact and
  /// AppliedWrench).
  double (*forces)(const Tree&, const Plan&, const double* parameter, double time, const double* x, double* tau, double* loads);
  /// Compute the force (nv + loop_nv) of dry friction along every joint at a state, for a run with steps of about this length.
  double (*friction)(const Tree&, const Plan&, const double* parameter, double time, double step, const double* x, double* force);
  /// Compute coordinates and velocities of the tree's joints at x, followed by those of loop joints.
  void (*all_joints)(const Tree&, const Plan&, double time, const double* x, double* q, double* v);
  /// Return a measure of the distance of q from a singular configuration: the smallest pivot of the constraint rows, excluding redundant rows.
  double (*weakest_row)(const Tree&, const Plan&, double time, const double* q);
  /// Compute the largest change of each row of the loops by the units of the velocities (nv); 1 for rows that no velocity changes.
  void (*row_units)(const Tree&, double time, const double* q, const double* unit, double* rows);
  /// Return 1 if redundant rows are consistent only on closed loops, else 0.
  double (*only_on_loops)(const Tree&, const Plan&, double time, const double* q);
  /// Propagate changes forward through the steps of a range, or cotangents backward: see kernels/step_kernels.cpp.
  void (*push_forward)(const Tree&, const Plan&, const StepRange&, const Changes&, std::int64_t begin, std::int64_t end);
  void (*pull_back)(const Tree&, const Plan&, const StepRange&, const Cotangents&, std::int64_t begin, std::int64_t end);
};

}  // namespace sarrus
